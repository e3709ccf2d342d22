//! Blocks, parts, the limit, and what goes back to the kernel.

use albireo_testing::Random;

use super::*;

#[test]
fn blocks_of_one_size_do_not_overlap_and_come_back() {
    let pool = BlockPool::new(64 << 20);
    let size = 192 << 10;
    let blocks: Vec<_> = (0..40).map(|_| pool.alloc(size).unwrap()).collect();
    let mut addresses: Vec<usize> = blocks.iter().map(|b| b.as_ptr() as usize).collect();
    addresses.sort_unstable();
    assert!(addresses.windows(2).all(|w| w[1] - w[0] >= size));
    assert_eq!(pool.in_use_bytes(), 40 * size as u64);
    for block in blocks {
        // SAFETY: taken above with this size, given back once.
        unsafe { pool.free(block, size) };
    }
    assert_eq!(pool.in_use_bytes(), 0);
}

#[test]
fn alloc_beyond_the_limit_is_refused_and_succeeds_after_a_free() {
    let pool = BlockPool::new(2 * SLAB_BYTES as u64);
    let first = pool.alloc(SLAB_BYTES).unwrap();
    let _second = pool.alloc(SLAB_BYTES).unwrap();
    assert_eq!(pool.alloc(SLAB_BYTES), Err(OutOfMemory::Limit { limit_bytes: 2 * SLAB_BYTES as u64 }));
    assert!(pool.with_emergency(|| pool.alloc(SLAB_BYTES)).is_ok());
    // SAFETY: taken above with this size, given back once.
    unsafe { pool.free(first, SLAB_BYTES) };
    assert!(pool.alloc(64).is_err(), "still one slab over the limit's two");
}

#[test]
fn last_slabs_are_for_what_frees_and_for_recovery() {
    let pool = BlockPool::new(LEAST_WITH_KEPT_BYTES);
    let slabs = LEAST_WITH_KEPT_BYTES / SLAB_BYTES as u64;
    for _ in 0..slabs - LEAST_KEPT_SLABS {
        pool.alloc(SLAB_BYTES).unwrap();
    }
    assert!(pool.alloc(64).is_err());
    let kept = pool.alloc_for(64, Need::Freeing).unwrap();
    assert!(pool.alloc(128).is_err());
    assert!(pool.with_kept(|| pool.alloc(SLAB_BYTES)).is_ok());
    assert!(pool.with_kept(|| pool.alloc(SLAB_BYTES)).is_err(), "the limit stays");
    assert!(pool.alloc_for(SLAB_BYTES, Need::Freeing).is_err());
    // SAFETY: taken above with this size, given back once.
    unsafe { pool.free(kept, 64) };
    assert!(pool.alloc(64).is_err(), "what was lent is kept again");
    assert!(pool.alloc_for(SLAB_BYTES, Need::Freeing).is_ok());
}

#[test]
fn preallocated_slabs_are_there_up_to_the_limit_and_serve_blocks() {
    let slab = SLAB_BYTES as u64;
    let pool = BlockPool::new(3 * slab);
    let block = pool.alloc(64).unwrap();
    assert!(pool.preallocate_slab(2 * slab), "one is in use, one is added");
    assert!(!pool.preallocate_slab(2 * slab));
    assert_eq!((pool.reserved_bytes(), pool.in_use_bytes()), (2 * slab, 64));
    assert!(pool.preallocate_slab(u64::MAX));
    assert!(!pool.preallocate_slab(u64::MAX), "the limit is reached");
    assert!(pool.alloc(SLAB_BYTES).is_ok() && pool.alloc(SLAB_BYTES).is_ok());
    assert!(pool.alloc(SLAB_BYTES).is_err());
    // SAFETY: taken above with this size, given back once.
    unsafe { pool.free(block, 64) };
}

#[test]
fn empty_slab_serves_another_size() {
    let pool = BlockPool::new(SLAB_BYTES as u64);
    let block = pool.alloc(128).unwrap();
    // SAFETY: taken above with this size, given back once.
    unsafe { pool.free(block, 128) };
    assert!(pool.alloc(4096).is_ok());
}

/// Slabs that no block lies in, warm and fresh.
fn free_slabs(pool: &BlockPool) -> (usize, usize) {
    let state = pool.inner.state.lock();
    (state.warm.len(), state.fresh.len())
}

/// All memory has come back, and is whole.
fn assert_all_is_back(pool: &BlockPool) {
    assert_eq!(pool.in_use_bytes(), 0);
    let state = pool.inner.state.lock();
    assert_eq!((state.taken_bytes(), state.slabs_in_use, state.slabs.len()), (0, 0, 0));
    assert!(state.partial.values().all(std::collections::BTreeSet::is_empty));
    let slabs = state.regions.len() * REGION_BYTES / SLAB_BYTES;
    assert_eq!(state.warm.len() + state.fresh.len(), slabs, "each slab is in one list");
    state.runs.check_all_is_free();
}

/// What a test holds, and the byte that it is filled with.
enum Held {
    Block(NonNull<u8>, usize),
    Part(Part),
}

impl Held {
    /// Takes a block or a part of any length, if there is memory.
    fn take(pool: &BlockPool, random: &mut Random, fill: u8) -> Option<Self> {
        let longest = random.pick(&[200, 5_000, 100_000, 700_000, 4_000_000]);
        let len = random.index(longest);
        if random.percent(40) {
            let bytes = len.next_multiple_of(BLOCK_ALIGN).clamp(BLOCK_ALIGN, SLAB_BYTES);
            let block = pool.alloc(bytes).ok()?;
            // SAFETY: the block is ours and has `bytes` bytes.
            unsafe { block.write_bytes(fill, bytes) };
            return Some(Self::Block(block, bytes));
        }
        Part::new(pool, &vec![fill; len]).ok().map(Self::Part)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: written whole when it was taken.
            Self::Block(block, bytes) => unsafe { std::slice::from_raw_parts(block.as_ptr(), *bytes) },
            Self::Part(part) => part,
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Block(_, bytes) => *bytes,
            Self::Part(part) => part.memory_bytes(),
        }
    }

    fn give_back(self, pool: &BlockPool, fill: u8) {
        assert!(self.bytes().iter().all(|&byte| byte == fill), "nobody else has written here");
        if let Self::Block(block, bytes) = self {
            // SAFETY: taken with this size, given back once.
            unsafe { pool.free(block, bytes) };
        }
    }
}

#[test]
fn blocks_and_parts_of_any_length_keep_their_contents_and_the_limit() {
    albireo_testing::test!().for_each_seed(0..6, |seed| {
        let mut random = Random::new(seed);
        let limit_bytes = random.pick(&[30_u64 << 20, 41_943_041, 100 << 20]);
        let pool = BlockPool::new(limit_bytes);
        let mut held: Vec<(Held, u8)> = Vec::new();
        let mut refused = 0;
        for round in 0..3_000_u32 {
            let fill = round as u8 | 1;
            // It fills, and empties, in turns.
            let takes = if round / 500 % 2 == 0 { 70 } else { 40 };
            if random.percent(takes) {
                match Held::take(&pool, &mut random, fill) {
                    Some(taken) => held.push((taken, fill)),
                    None => refused += 1,
                }
            } else if !held.is_empty() {
                let (gone, fill) = held.swap_remove(random.index(held.len()));
                gone.give_back(&pool, fill);
            }
            match random.below(50) {
                0 => drop(pool.shrink()),
                1 => drop(pool.preallocate_slab(20 << 20)),
                _ => {}
            }
            let in_use: usize = held.iter().map(|(held, _)| held.memory_bytes()).sum();
            assert_eq!(pool.in_use_bytes(), in_use as u64);
            assert!(pool.reserved_bytes() <= limit_bytes, "the limit counts what is warm too (I-4)");
            assert!(pool.reserved_bytes() >= pool.in_use_bytes());
        }
        assert!(refused > 0, "the limit is reached");
        held.into_iter().for_each(|(gone, fill)| gone.give_back(&pool, fill));
        assert_all_is_back(&pool);
    });
}

#[test]
fn blocks_and_parts_of_two_threads_are_never_shared() {
    let pool = BlockPool::new(64 << 20);
    // Each thread gives back what the other has taken.
    let post: [Mutex<Vec<(Held, u8)>>; 2] = Default::default();
    albireo_env::scope(|scope| {
        let spawn = |thread: usize| {
            let (pool, post) = (&pool, &post);
            let work = move || {
                let mut random = Random::new(thread as u64);
                for round in 0..1_500_u32 {
                    let fill = (round as u8) << 1 | thread as u8;
                    if let Some(taken) = Held::take(pool, &mut random, fill) {
                        assert!(taken.bytes().iter().all(|&byte| byte == fill));
                        post[1 - thread].lock().push((taken, fill));
                    }
                    let mut mine = post[thread].lock();
                    let count = mine.len().saturating_sub(20);
                    let gone: Vec<_> = mine.drain(..count).collect();
                    drop(mine);
                    gone.into_iter().for_each(|(gone, fill)| gone.give_back(pool, fill));
                    if round % 64 == 0 {
                        pool.shrink();
                    }
                }
            };
            albireo_env::spawn_scoped(scope, "taker", work).expect("a thread")
        };
        // Joined one by one: ThreadSanitizer does not see that a scope waits.
        [0, 1].map(spawn).into_iter().for_each(|thread| thread.join().expect("it has found nothing"));
    });
    for (gone, fill) in post.into_iter().flat_map(Mutex::into_inner) {
        gone.give_back(&pool, fill);
    }
    assert_all_is_back(&pool);
}

// SAFETY: for tests: a block is memory that belongs to whoever holds it.
unsafe impl Send for Held {}

/// Fills so many slabs, and frees them.
fn fill_and_free(pool: &BlockPool, slabs: usize) {
    let blocks: Vec<_> = (0..slabs).map(|_| pool.alloc(SLAB_BYTES).unwrap()).collect();
    for block in blocks {
        // SAFETY: ours, of this size, given back once.
        unsafe {
            block.write_bytes(0xAB, SLAB_BYTES);
            pool.free(block, SLAB_BYTES);
        }
    }
}

/// How many of all free slabs have kept what was written there.
fn slabs_with_contents(pool: &BlockPool) -> usize {
    let mut with = 0;
    let mut state = pool.inner.state.lock();
    let state = &mut *state;
    for slab in state.warm.iter().chain(&state.fresh) {
        // SAFETY: a free slab of the pool, whose mutex is held.
        with += usize::from(unsafe { slab.0.add(SLAB_BYTES / 2).read() } == 0xAB);
    }
    with
}

#[test]
fn slabs_that_nobody_wants_go_back_to_the_kernel_but_for_a_reserve() {
    let pool = BlockPool::new(256 << 20);
    fill_and_free(&pool, 60);
    assert_eq!(free_slabs(&pool), (60, 4));
    assert_eq!(pool.shrink(), 0, "they were wanted since the pool began");
    assert_eq!(slabs_with_contents(&pool), 60);
    assert_eq!(pool.shrink(), ((60 - RESERVE_SLABS) * SLAB_BYTES) as u64);
    assert_eq!(slabs_with_contents(&pool), RESERVE_SLABS);
    assert_eq!(free_slabs(&pool), (RESERVE_SLABS, 64 - RESERVE_SLABS));
    assert_eq!(pool.reserved_bytes(), (RESERVE_SLABS * SLAB_BYTES) as u64);
    assert_eq!(pool.shrink(), 0);
    // They come again, as any.
    fill_and_free(&pool, 64);
    assert_eq!(free_slabs(&pool), (64, 0));
}

#[test]
fn pool_for_buffers_keeps_no_slab_that_nobody_wants() {
    let pool = BlockPool::for_buffers(8 << 20);
    fill_and_free(&pool, 4);
    assert_eq!(pool.shrink(), 0, "they were wanted since the pool began");
    assert_eq!(pool.shrink(), 4 * SLAB_BYTES as u64);
    assert_eq!((slabs_with_contents(&pool), pool.reserved_bytes()), (0, 0));
}

#[test]
fn slabs_that_are_used_in_turns_stay() {
    let pool = BlockPool::new(256 << 20);
    fill_and_free(&pool, 60);
    pool.shrink();
    for _ in 0..3 {
        fill_and_free(&pool, 50);
        // Ten were free all the time, fewer than the reserve.
        assert_eq!(pool.shrink(), 0);
    }
    fill_and_free(&pool, 30);
    assert_eq!(pool.shrink(), (6 * SLAB_BYTES) as u64, "30 were free all the time");
}

#[test]
fn slabs_that_were_preallocated_stay() {
    let slab = SLAB_BYTES as u64;
    let pool = BlockPool::new(256 << 20);
    while pool.preallocate_slab(40 * slab) {}
    fill_and_free(&pool, 60);
    pool.shrink();
    assert_eq!(pool.shrink(), 20 * slab);
    assert_eq!(pool.reserved_bytes(), 40 * slab);
    let used = pool.alloc(64).unwrap();
    assert_eq!((pool.shrink(), pool.reserved_bytes()), (0, 40 * slab), "one of them is in use");
    // SAFETY: ours, of this size, given back once.
    unsafe { pool.free(used, 64) };
}

#[test]
fn warm_slabs_make_room_for_a_run() {
    let slab = SLAB_BYTES as u64;
    let pool = BlockPool::new(15 * slab);
    fill_and_free(&pool, 15);
    assert_eq!(pool.reserved_bytes(), 15 * slab);
    let long = Part::new(&pool, &vec![7; 3 * SLAB_BYTES]).unwrap();
    assert_eq!((pool.reserved_bytes(), free_slabs(&pool).0), (15 * slab, 12));
    assert!(Part::new(&pool, &vec![7; 12 * SLAB_BYTES + 1]).is_err());
    assert!(Part::new(&pool, &vec![7; 12 * SLAB_BYTES]).is_ok());
    assert!(long.iter().all(|&byte| byte == 7));
    drop(long);
    assert_all_is_back(&pool);
}

#[test]
fn part_outlives_the_pool_and_goes_on_another_thread() {
    let pool = BlockPool::new(256 << 20);
    let content: Vec<u8> = (0..3_276_800_u32).map(|n| (n ^ n >> 9) as u8).collect();
    for len in [0, 1, 63, 64, 65, 4_096, 524_288, 524_289, 2_097_152, 2_097_153, 3_276_800] {
        let part = Part::new(&pool, &content[..len]).unwrap();
        assert_eq!((&part[..], part.len()), (&content[..len], len));
        assert!(part.memory_bytes() >= len && (part.as_ptr() as usize).is_multiple_of(BLOCK_ALIGN));
        assert_eq!(pool.in_use_bytes(), part.memory_bytes() as u64);
        albireo_env::scope(|scope| {
            albireo_env::spawn_scoped(scope, "other", move || drop(part)).expect("a thread");
        });
    }
    assert_all_is_back(&pool);
    let part = Part::new(&pool, &content).unwrap();
    let empty = Part::new(&pool, &[]).unwrap();
    drop(pool);
    assert_eq!((&part[..], &empty[..]), (&content[..], &[][..]));
}

#[test]
fn relief_is_asked_before_a_run_is_refused() {
    /// Drops a part that somebody can do without.
    struct Spare(Mutex<Option<Part>>);
    impl Relief for Spare {
        fn relieve(&self, now: bool) {
            if now {
                self.0.lock().take();
            }
        }
    }
    let pool = BlockPool::new(10 << 20);
    let spare = Part::new(&pool, &vec![1; 6 << 20]).unwrap();
    assert!(Part::new(&pool, &vec![2; 6 << 20]).is_err());
    pool.set_relief(Box::new(Spare(Mutex::new(Some(spare)))));
    let part = Part::new(&pool, &vec![2; 6 << 20]).unwrap();
    assert!(Part::new(&pool, &vec![3; 6 << 20]).is_err(), "there is no more to do without");
    // The relief holds no part any more that would keep the pool.
    drop(part);
    assert_all_is_back(&pool);
}

#[test]
fn reserve_is_replenished_from_slabs_that_went_back() {
    let pool = BlockPool::new(256 << 20);
    fill_and_free(&pool, 60);
    pool.shrink();
    pool.shrink();
    pool.inner.state.lock().has_toucher = true;
    for _ in 0..RESERVE_SLABS - LOW_RESERVE_SLABS {
        pool.alloc(SLAB_BYTES).unwrap();
    }
    pool.replenish();
    assert_eq!(free_slabs(&pool).0, LOW_RESERVE_SLABS, "there are enough");
    pool.alloc(SLAB_BYTES).unwrap();
    pool.replenish();
    assert_eq!(free_slabs(&pool).0, LOW_RESERVE_SLABS);
    assert_eq!(pool.inner.state.lock().regions.len(), 2, "no more is mapped");
}

#[test]
fn buffers_keep_their_pages_until_the_pool_shrinks() {
    let pool = BlockPool::for_buffers(256 << 10);
    let part = |byte: u8| {
        let mut part = NewPart::of_length(&pool, 100_000).unwrap();
        part.bytes_mut().fill(byte);
        part.finish()
    };
    let bytes = part(1).memory_bytes() as u64;
    assert_eq!((pool.in_use_bytes(), pool.reserved_bytes()), (0, bytes), "it stays warm");
    let parts: Vec<Part> = (1..=4).map(part).collect();
    assert_eq!((pool.in_use_bytes(), pool.reserved_bytes()), (4 * bytes, 4 * bytes));
    for (part, byte) in parts.iter().zip(1..) {
        assert!(part.iter().all(|found| *found == byte), "each has its own bytes");
    }
    drop(parts);
    assert_eq!((pool.in_use_bytes(), pool.reserved_bytes()), (0, 2 * bytes), "no more than is asked for");
    let other = NewPart::of_length(&pool, 200_000).unwrap();
    assert!(pool.reserved_bytes() > 2 * bytes, "of another length there was none");
    drop(other);
    pool.shrink();
    assert_eq!(pool.reserved_bytes(), 0);
    assert_all_is_back(&pool);
}

/// A pool, and parts of so many bytes in it, each filled with its number.
fn with_parts(limit_bytes: u64, parts: usize, bytes: usize) -> (BlockPool, Vec<Part>) {
    let pool = BlockPool::new(limit_bytes);
    let parts = (0..parts).map(|n| Part::new(&pool, &vec![n as u8; bytes]).unwrap()).collect();
    (pool, parts)
}

#[test]
fn runs_are_cut_from_windows_one_after_the_other() {
    let (pool, parts) = with_parts(64 << 20, 5, 1_200_000);
    let taken = parts[0].memory_bytes();
    for (n, pair) in parts.windows(2).enumerate() {
        assert_eq!(pair[0].as_ptr() as usize + taken, pair[1].as_ptr() as usize);
        assert!(pair[0].iter().all(|&byte| byte == n as u8), "one may lie in two windows");
    }
    assert_eq!(free_bytes(&pool), (0, 3 * SLAB_BYTES - 5 * taken));
    assert_eq!(pool.reserved_bytes(), 3 * SLAB_BYTES as u64, "what is ready counts");
    assert_eq!(pool.shrink(), 0);
    assert_eq!(pool.reserved_bytes(), 3 * SLAB_BYTES as u64, "it was wanted");
    pool.shrink();
    assert_eq!(pool.reserved_bytes(), 5 * taken as u64);
    drop(parts);
    assert_all_is_back(&pool);
}

/// Bytes of gaps, and of what is ready.
fn free_bytes(pool: &BlockPool) -> (usize, usize) {
    pool.inner.state.lock().runs.free_bytes()
}

#[test]
fn what_is_given_back_is_ready_for_others_until_nothing_of_its_window_is_taken() {
    let quarter = SLAB_BYTES / 4;
    let (pool, mut parts) = with_parts(64 << 20, 8, quarter);
    assert_eq!(free_bytes(&pool), (0, 0));
    let (first, third) = (parts[0].as_ptr(), parts[2].as_ptr());
    parts.remove(2);
    parts.remove(0);
    assert_eq!(free_bytes(&pool), (0, 2 * quarter));
    assert_eq!(pool.reserved_bytes(), 2 * SLAB_BYTES as u64);
    // It is used again, with what was there.
    let again = NewPart::of_length(&pool, quarter).unwrap().finish();
    assert!([first, third].contains(&again.as_ptr()));
    drop(again);
    parts.drain(..2);
    assert_eq!(free_bytes(&pool), (0, 0), "a window is all free");
    assert_eq!(pool.reserved_bytes(), SLAB_BYTES as u64);
    // A long run is cut from windows in a row.
    let long = Part::new(&pool, &vec![9; 3 * SLAB_BYTES + quarter]).unwrap();
    assert_eq!(free_bytes(&pool), (0, 3 * quarter));
    drop(long);
    assert_eq!(free_bytes(&pool), (0, 0));
    drop(parts);
    assert_all_is_back(&pool);
}

#[test]
fn gaps_are_filled_when_they_are_many() {
    let quarter = SLAB_BYTES / 4;
    let (pool, mut parts) = with_parts(64 << 20, 40, quarter);
    let gap = parts.swap_remove(17).as_ptr();
    assert!(State::trim(&mut pool.inner.state.lock()));
    assert_eq!(free_bytes(&pool), (quarter, 0));
    let another = Part::new(&pool, &vec![41; quarter]).unwrap();
    assert_ne!(another.as_ptr(), gap, "one of forty is few");
    assert_eq!(free_bytes(&pool), (quarter, 3 * quarter));
    parts.push(another);
    [1, 9, 10, 22, 30].into_iter().for_each(|n| drop(parts.swap_remove(n)));
    while State::trim(&mut pool.inner.state.lock()) {}
    assert_eq!(free_bytes(&pool), (9 * quarter, 0));
    parts.push(Part::new(&pool, &vec![60; quarter]).unwrap());
    assert_eq!(free_bytes(&pool), (8 * quarter, 0));
    // What fits into no gap has windows, and huge pages, all the same.
    let long = Part::new(&pool, &vec![61; 3 * SLAB_BYTES - quarter]).unwrap();
    assert_eq!(free_bytes(&pool), (8 * quarter, quarter));
    assert!(long.iter().all(|&byte| byte == 61));
    drop((long, parts));
    assert_all_is_back(&pool);
}

#[test]
fn what_is_ready_makes_room_for_slabs_and_for_longer_runs() {
    let slab = SLAB_BYTES as u64;
    let (pool, parts) = with_parts(4 * slab, 1, 256 << 10);
    assert_eq!(pool.reserved_bytes(), slab);
    let blocks: Vec<_> = (0..3).map(|_| pool.alloc(SLAB_BYTES).unwrap()).collect();
    assert_eq!(pool.reserved_bytes(), 4 * slab);
    assert!(pool.alloc(SLAB_BYTES).is_err(), "taken is more than three slabs");
    let rest = Part::new(&pool, &vec![2; SLAB_BYTES - (256 << 10)]).unwrap();
    assert_eq!(pool.reserved_bytes(), 4 * slab);
    drop(rest);
    // SAFETY: ours, of this size, given back once.
    blocks.into_iter().for_each(|block| unsafe { pool.free(block, SLAB_BYTES) });
    let long = Part::new(&pool, &vec![3; 3 * SLAB_BYTES]).unwrap();
    assert!(pool.reserved_bytes() <= 4 * slab);
    assert!(long.iter().all(|&byte| byte == 3) && parts[0].iter().all(|&byte| byte == 0));
    drop((parts, long));
    assert_all_is_back(&pool);
}

#[test]
fn helper_gives_back_what_is_ready_for_slabs() {
    let slab = SLAB_BYTES as u64;
    let (pool, mut parts) = with_parts(6 * slab, 8, SLAB_BYTES / 2);
    // Half of each of four windows.
    for n in (0..4).rev() {
        parts.remove(2 * n);
    }
    assert_eq!((free_bytes(&pool), pool.reserved_bytes()), ((0, 2 * SLAB_BYTES), 4 * slab));
    albireo_env::scope(|scope| {
        let helper = {
            let pool = &pool;
            albireo_env::spawn_scoped(scope, "helper", move || pool.run_toucher()).expect("a thread")
        };
        let blocks: Vec<_> = (0..4).map(|_| pool.alloc(SLAB_BYTES).unwrap()).collect();
        while pool.reserved_bytes() > 6 * slab {
            pool.inner.wanted.notify_one();
            std::thread::yield_now();
        }
        pool.stop_toucher();
        helper.join().expect("the helper does not panic");
        // SAFETY: ours, of this size, given back once.
        blocks.into_iter().for_each(|block| unsafe { pool.free(block, SLAB_BYTES) });
    });
    assert_eq!(free_bytes(&pool).0, 2 * SLAB_BYTES);
    assert!(parts.iter().zip([1, 3, 5, 7]).all(|(part, fill)| part.iter().all(|&byte| byte == fill)));
    drop(parts);
    assert_all_is_back(&pool);
}
