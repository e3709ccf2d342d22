//! Block memory: a few large regions on huge pages, cut into slabs of 2 MiB, each slab into blocks
//! of one size. Beside them, for sections of frozen chunks, runs of pages (`runs`), and for short ones the
//! allocator of everything else.
//!
//! Responsible for: handing out and taking back blocks and [`Part`]s from any thread, keeping a
//! reserve of slabs whose pages are already there, so that an executor never waits for the kernel to
//! clear a page, giving back what is beyond it, and the memory limit. Not responsible for: what lies
//! in a block, or who may still see it (`registry`).
//!
//! ```text
//! fresh --touch (helper, replenish, preallocation)--> warm --first block--> in use
//!   ^----------------shrink---------------------------'  ^----last block----'
//! ```
//!
//! Invariants:
//! - I-1 A slab is cut into blocks of one size; the block of index `i` starts at `i * size`.
//! - I-2 A block is either free (its index is in its slab's free list, once) or owned by exactly
//!   one caller.
//! - I-3 Regions are unmapped only when the last handle to the pool is gone.
//! - I-4 What is in use, whole slabs, runs and small sections, is not above the limit, but for undoing. What is warm or
//!   ready besides is given back where it lifts both together above the limit: by whoever takes a run, else by the helper.
//!
//! Huge pages are asked for with `madvise`; without them TPC-C loses 13-44 % to TLB misses.

use std::alloc::Layout;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

mod buffer;
mod claim;
mod extents;
mod part;
mod runs;
mod system;

pub(crate) use buffer::Buffer;
pub(crate) use claim::Claim;
pub use part::{NewPart, Part};
use runs::Runs;

/// Bytes in a slab, and of a huge page.
pub const SLAB_BYTES: usize = 2 << 20;
/// Bytes asked from the kernel at once.
const REGION_BYTES: usize = 64 << 20;
/// Every block is aligned to this many bytes, a cache line, as Arrow recommends.
pub const BLOCK_ALIGN: usize = 64;
/// Slabs kept touched ahead of need when the pool has a helper thread.
const RESERVE_SLABS: usize = 24;
/// What [`BlockPool::replenish`] leaves.
const LOW_RESERVE_SLABS: usize = 8;
/// Which part of the limit only deletions and recovery may use; at least [`LEAST_KEPT_SLABS`] if the limit is
/// [`LEAST_WITH_KEPT_BYTES`] or more, else nothing: of a few slabs, each size of block takes one.
///
/// What a deletion takes is a copy of the bitmap of live rows, 2 KiB for a chunk of 16,384 rows, where a
/// snapshot still sees the old one: with rows of 16 bytes and more, a 128th of the rows' memory at most.
const KEPT_PART: u64 = 128;
const LEAST_KEPT_SLABS: u64 = 2;
const LEAST_WITH_KEPT_BYTES: u64 = 32 << 20;
/// What is to be free where rows leave memory, unless the limit is small.
const LEAST_MARGIN_BYTES: u64 = 8 << 20;

/// What memory is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Anything that may be refused when memory is short.
    Ordinary,
    /// To free other memory: may use what is kept for that.
    Freeing,
    /// To take a transaction back, which must not fail: may pass the limit.
    Undoing,
}

/// Why there is no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OutOfMemory {
    /// The pool's limit is reached.
    #[error("out of memory: the limit of {limit_bytes} bytes for data is reached")]
    Limit {
        /// The limit that was reached.
        limit_bytes: u64,
    },
    /// The operating system gives no more, though the limit would allow it.
    #[error(
        "out of memory: the operating system refuses more than the {in_use_bytes} bytes that data takes, \
             though the limit is {limit_bytes}"
    )]
    System {
        /// What the pool has handed out.
        in_use_bytes: u64,
        /// What it may hand out.
        limit_bytes: u64,
    },
}

impl OutOfMemory {
    /// How each message begins, and no other of a statement that needs too much.
    pub const WHAT: &str = "out of memory: ";
}

/// A handle to the pool; clones share it.
#[derive(Clone)]
pub struct BlockPool {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    wanted: Condvar,
    stop: AtomicBool,
    limit_bytes: u64,
    /// The part of it that is kept for deletions and recovery.
    kept_bytes: u64,
    /// What runs may take that nobody has and that keep their pages.
    warm_run_bytes: u64,
    /// Runs lie in huge pages, and stay ready when they are given back. Else they have small ones.
    has_huge_runs: bool,
    /// Slabs that nobody has and that [`BlockPool::shrink`] leaves their pages.
    reserve_slabs: usize,
    /// While positive, all allocations may use that.
    opened: AtomicU64,
    /// While positive, allocations may pass the limit: an abort must not fail for memory.
    emergency: AtomicU64,
    in_use_bytes: AtomicU64,
    relief: OnceLock<Box<dyn Relief>>,
    /// Somebody is at it.
    relieving: AtomicBool,
    time: Time,
}

/// A time, in a cache line of its own: every read of frozen rows looks at it.
#[derive(Default)]
#[repr(align(64))]
struct Time(AtomicU32);

/// Frees memory that somebody can do without.
pub trait Relief: Send + Sync {
    /// Waits until somebody has freed some, if there is such a one and the caller may wait; whether it was done.
    fn make_room(&self) -> bool {
        false
    }
    /// Frees some before this returns if `now`, else soon. The caller may own a partition.
    fn relieve(&self, now: bool);
}

#[derive(Default)]
struct State {
    regions: Vec<SlabPtr>,
    /// Free slabs whose pages are not there: never touched, or given back.
    fresh: Vec<SlabPtr>,
    /// Free slabs whose pages are there, those used last at the end.
    warm: VecDeque<SlabPtr>,
    /// The fewest that were warm since [`BlockPool::shrink`] looked.
    least_warm: usize,
    /// What was preallocated, in use or warm; it is not given back.
    asked_bytes: u64,
    slabs: HashMap<usize, Slab>,
    /// By block size: slabs with at least one free block. Blocks are taken from the first by address, so that the last
    /// become free.
    partial: HashMap<usize, BTreeSet<usize>>,
    slabs_in_use: u64,
    /// Slabs with threads that are touching them.
    slabs_touched: u64,
    runs: Runs,
    /// Bytes of what is too small for either.
    small_bytes: u64,
    has_toucher: bool,
}

/// The address of a slab or region. Plain memory, owned by the pool.
#[derive(Clone, Copy)]
struct SlabPtr(NonNull<u8>);
// SAFETY: the pointer is only a number until a block is handed out; the pool's mutex guards it.
unsafe impl Send for SlabPtr {}

struct Slab {
    size: usize,
    free: Vec<u16>,
    blocks: usize,
}

impl BlockPool {
    /// A pool that never holds more than `limit_bytes` in use, counted in whole slabs and runs; at least one slab.
    pub fn new(limit_bytes: u64) -> Self {
        Self::keeping(limit_bytes, None, RESERVE_SLABS)
    }

    /// A pool without a limit for what is taken for a moment, again and again in about the same lengths: up to
    /// `warm_run_bytes` of runs keep their pages until [`BlockPool::shrink`], and so do slabs. Pages cost as much to have
    /// cleared and to give back as to be filled from a file.
    pub fn for_buffers(warm_run_bytes: u64) -> Self {
        Self::keeping(u64::MAX >> 1, Some(warm_run_bytes), 0)
    }

    fn keeping(limit_bytes: u64, warm_run_bytes: Option<u64>, reserve_slabs: usize) -> Self {
        let limit_bytes = limit_bytes.max(SLAB_BYTES as u64);
        let kept_slabs = match limit_bytes >= LEAST_WITH_KEPT_BYTES {
            true => (limit_bytes / KEPT_PART / SLAB_BYTES as u64).max(LEAST_KEPT_SLABS),
            false => 0,
        };
        let kept_bytes = kept_slabs * SLAB_BYTES as u64;
        assert!(kept_bytes < limit_bytes, "what is kept for deletions is a part of the limit");
        Self {
            inner: Arc::new(Inner {
                state: Mutex::default(),
                wanted: Condvar::new(),
                stop: AtomicBool::new(false),
                limit_bytes,
                kept_bytes,
                warm_run_bytes: warm_run_bytes.unwrap_or(0),
                has_huge_runs: warm_run_bytes.is_none(),
                reserve_slabs,
                opened: AtomicU64::new(0),
                emergency: AtomicU64::new(0),
                in_use_bytes: AtomicU64::new(0),
                relief: OnceLock::new(),
                relieving: AtomicBool::new(false),
                time: Time::default(),
            }),
        }
    }

    /// Body of the helper thread that keeps a reserve of touched slabs. Returns when
    /// [`BlockPool::stop_toucher`] is called.
    pub fn run_toucher(&self) {
        let mut state = self.inner.state.lock();
        state.has_toucher = true;
        while !self.inner.stop.load(Ordering::Relaxed) {
            let room = state.held_bytes() + SLAB_BYTES as u64 <= self.inner.limit_bytes;
            let is_low = state.warm.len() < RESERVE_SLABS;
            if is_low && room && State::touch_slab(&mut state) {
                MutexGuard::unlocked(&mut state, albireo_env::give_way);
                continue;
            }
            // What is ready makes room for slabs, and is given back where both are too much (I-4). A slab is, where blocks
            // were taken while it was touched.
            let is_over = state.held_bytes() > self.inner.limit_bytes;
            let has_given = (is_over || is_low && !room) && State::trim(&mut state);
            if !(has_given || is_over && State::cool_slab(&mut state)) {
                self.inner.wanted.wait(&mut state);
            }
        }
        state.has_toucher = false;
    }

    /// Touches a slab on this thread if hardly any are left. Who uses many at once asks for that where nobody waits for
    /// it: the helper thread may not keep up, and then others wait for the kernel.
    pub fn replenish(&self) {
        let is_low = {
            let state = self.inner.state.lock();
            state.has_toucher && state.warm.len() < LOW_RESERVE_SLABS
        };
        if is_low {
            self.add_warm_slab(&mut self.inner.state.lock(), u64::MAX);
        }
    }

    /// Takes one more slab from the kernel and touches it on this thread, unless slabs of `total_bytes`
    /// or of the limit are there, in use or free; returns whether it did.
    ///
    /// What the helper thread touches while transactions run it touches beside them: where cores share
    /// their parts, and pages come from under a virtual machine, TPC-C lost 10 % to it.
    pub fn preallocate_slab(&self, total_bytes: u64) -> bool {
        let mut state = self.inner.state.lock();
        state.asked_bytes = state.asked_bytes.max(total_bytes.min(self.inner.limit_bytes));
        self.add_warm_slab(&mut state, total_bytes)
    }

    fn add_warm_slab(&self, state: &mut MutexGuard<'_, State>, total_bytes: u64) -> bool {
        if state.held_bytes() + SLAB_BYTES as u64 > total_bytes.min(self.inner.limit_bytes) {
            return false;
        }
        State::touch_slab(state)
    }

    /// Gives the kernel back the slabs and runs that nobody has wanted since this was called last, so that the process
    /// shrinks; tells the bytes of the slabs. The reserve stays, and what was preallocated.
    ///
    /// To be called every few seconds or so, by a thread that owns no partition: each slab takes the kernel some
    /// microseconds, and he who needs it again has it cleared. What is freed and taken in turns within that time stays.
    pub fn shrink(&self) -> u64 {
        let slab_bytes = SLAB_BYTES as u64;
        let mut state = self.inner.state.lock();
        let reserve = self.inner.reserve_slabs;
        let spare = state.least_warm.saturating_sub(reserve);
        let mut given = 0;
        while given < spare
            && state.warm.len() > reserve
            && state.held_bytes() >= state.asked_bytes + slab_bytes
        {
            State::cool_slab(&mut state);
            given += 1;
        }
        state.least_warm = state.warm.len();
        Self::shrink_runs(&mut state);
        given as u64 * slab_bytes
    }

    /// Ends [`BlockPool::run_toucher`].
    pub fn stop_toucher(&self) {
        self.inner.stop.store(true, Ordering::Relaxed);
        let _state = self.inner.state.lock();
        self.inner.wanted.notify_all();
    }

    /// A block of `bytes`, a multiple of 64 and at most [`SLAB_BYTES`], with arbitrary contents.
    pub fn alloc(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        self.alloc_for(bytes, Need::Ordinary)
    }

    /// As [`BlockPool::alloc`], for a need. Before it refuses, it asks for relief.
    pub(crate) fn alloc_for(&self, bytes: usize, need: Need) -> Result<NonNull<u8>, OutOfMemory> {
        self.with_relief(|| self.try_alloc(bytes, need))
    }

    /// Tries again as long as the limit refuses, and somebody frees memory.
    fn with_relief<T>(&self, attempt: impl Fn() -> Result<T, OutOfMemory>) -> Result<T, OutOfMemory> {
        let mut done = attempt();
        while matches!(done, Err(OutOfMemory::Limit { .. })) && (self.make_room() || self.relieve(true)) {
            done = attempt();
        }
        done
    }

    /// Has somebody free memory before the next is refused. The first one counts.
    pub fn set_relief(&self, relief: Box<dyn Relief>) {
        let _ = self.inner.relief.set(relief);
    }

    #[cold]
    fn make_room(&self) -> bool {
        self.inner.relief.get().is_some_and(|relief| relief.make_room())
    }

    /// Asks for it; whether some is free that was not.
    #[cold]
    pub(crate) fn relieve(&self, now: bool) -> bool {
        let Some(relief) = self.inner.relief.get() else { return false };
        if self.inner.relieving.swap(true, Ordering::Acquire) {
            return false;
        }
        let before = self.in_use_bytes();
        relief.relieve(now);
        self.inner.relieving.store(false, Ordering::Release);
        self.in_use_bytes() < before
    }

    /// Says what time it is, in units of whoever says so.
    pub fn set_time(&self, time: u32) {
        self.inner.time.0.store(time, Ordering::Relaxed);
    }

    /// The time that was said last.
    #[inline]
    pub fn time(&self) -> u32 {
        self.inner.time.0.load(Ordering::Relaxed)
    }

    /// By how many bytes what is taken leaves less than so many margins of what others than deletions may use. A margin is
    /// a 64th of that, but at least 8 MiB, and at most an eighth.
    pub fn excess_bytes(&self, margins: u64) -> u64 {
        self.excess_bytes_with(0, margins)
    }

    /// The same, if so many more bytes were taken.
    pub fn excess_bytes_with(&self, more_bytes: u64, margins: u64) -> u64 {
        let usable = self.inner.limit_bytes - self.inner.kept_bytes;
        let margin = (usable / 64).max(LEAST_MARGIN_BYTES.min(usable / 8));
        let taken = self.inner.state.lock().taken_bytes();
        (taken + more_bytes).saturating_sub(usable.saturating_sub(margin * margins))
    }

    /// Whether little is left.
    fn is_tight(&self, state: &State) -> bool {
        state.taken_bytes() > self.inner.limit_bytes / 16 * 15
    }

    fn try_alloc(&self, bytes: usize, need: Need) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(
            bytes > 0 && bytes.is_multiple_of(BLOCK_ALIGN) && bytes <= SLAB_BYTES,
            "block of {bytes} bytes"
        );
        let mut guard = self.inner.state.lock();
        let state = &mut *guard;
        let (mut took_slab, mut is_tight) = (false, false);
        let candidates = state.partial.entry(bytes).or_default();
        let base = match candidates.first() {
            Some(&base) => base,
            None => {
                let slab = self.take_slab(state, need)?;
                (took_slab, is_tight) = (true, self.is_tight(state));
                let base = slab.0.as_ptr() as usize;
                let blocks = SLAB_BYTES / bytes;
                let free = (0..blocks as u16).rev().collect();
                debug_assert!(base.is_multiple_of(SLAB_BYTES), "an address says its slab (I-1)");
                let before = state.slabs.insert(base, Slab { size: bytes, free, blocks });
                assert!(before.is_none(), "a slab is cut once (I-1)");
                state.partial.entry(bytes).or_default().insert(base);
                base
            }
        };
        let slab = state.slabs.get_mut(&base).expect("a partial slab is known");
        let index = slab.free.pop().expect("a partial slab has a free block");
        debug_assert_eq!(slab.size, bytes, "a slab has blocks of one size (I-1)");
        debug_assert!(usize::from(index) < slab.blocks, "a free block lies in its slab (I-1)");
        if slab.free.is_empty() {
            let full = state.partial.get_mut(&bytes).expect("the size is known").pop_first();
            debug_assert_eq!(full, Some(base), "the slab that became full is the first of its size");
        }
        self.count_in_use(bytes as u64);
        let address = base + index as usize * bytes;
        debug_assert!(address.is_multiple_of(BLOCK_ALIGN), "blocks are aligned to cache lines");
        if took_slab {
            self.keep_to_limit(&mut guard);
        }
        drop(guard);
        if is_tight {
            self.relieve(false);
        }
        Ok(NonNull::new(address as *mut u8).expect("a mapped address is not null"))
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// S-1: `block` came from [`BlockPool::alloc`] of this pool with the same `bytes`.
    /// S-2: nobody reads or writes it any more, and it is given back once.
    pub unsafe fn free(&self, block: NonNull<u8>, bytes: usize) {
        let address = block.as_ptr() as usize;
        let base = address & !(SLAB_BYTES - 1);
        let mut state = self.inner.state.lock();
        let state = &mut *state;
        let slab = state.slabs.get_mut(&base).expect("a freed block lies in a slab of this pool");
        assert_eq!(slab.size, bytes, "a block is given back with the size it was taken with");
        assert!((address - base).is_multiple_of(bytes), "a block begins where its slab was cut (I-1)");
        let index = ((address - base) / bytes) as u16;
        debug_assert!(usize::from(index) < slab.blocks, "a block lies in its slab (I-1)");
        debug_assert!(!slab.free.contains(&index), "a block is given back once (I-2)");
        // Tests and sanitizers see a block that is read after this, as they would with `malloc`.
        // SAFETY: the block is mapped, as long as this, and by S-2 nobody else's any more.
        #[cfg(debug_assertions)]
        unsafe {
            block.as_ptr().write_bytes(0xdd, bytes.min(4096));
        }
        slab.free.push(index);
        let (free, blocks) = (slab.free.len(), slab.blocks);
        assert!(free <= blocks, "no more blocks are free than there are (I-2)");
        if free == blocks {
            state.slabs.remove(&base);
            if let Some(partial) = state.partial.get_mut(&bytes) {
                partial.remove(&base);
            }
            state.warm.push_back(SlabPtr(NonNull::new(base as *mut u8).expect("a slab is not at null")));
            assert!(state.slabs_in_use > 0, "a slab that is given back was in use");
            state.slabs_in_use -= 1;
        } else if free == 1 {
            state.partial.entry(bytes).or_default().insert(base);
        }
        self.count_out_of_use(bytes as u64);
    }

    /// Bytes that are too few for a block of their own size, aligned as blocks are, from the allocator of everything else.
    /// Before it refuses, it asks for relief.
    fn alloc_small(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        self.take_small(bytes as u64)?;
        // SAFETY: it is not of no bytes.
        let start = NonNull::new(unsafe { std::alloc::alloc(small_layout(bytes)) });
        start.ok_or_else(|| {
            self.give_small(bytes as u64);
            self.refused_by_system()
        })
    }

    /// Gives those back.
    ///
    /// # Safety
    /// S-1: `start` came from [`BlockPool::alloc_small`] of this pool with the same `bytes`.
    /// S-2: nobody reads or writes it any more, and it is given back once.
    unsafe fn free_small(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: taken with this layout (S-1), and nobody else's (S-2).
        unsafe { std::alloc::dealloc(start.as_ptr(), small_layout(bytes)) };
        self.give_small(bytes as u64);
    }

    fn count_in_use(&self, bytes: u64) {
        self.inner.in_use_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn count_out_of_use(&self, bytes: u64) {
        let before = self.inner.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "no more is given back than was taken");
    }

    /// Bytes in blocks that are handed out.
    pub fn in_use_bytes(&self) -> u64 {
        self.inner.in_use_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of slabs that hold at least one block, of runs, and of what is too small; and of slabs and runs that are kept
    /// free for the next.
    pub fn reserved_bytes(&self) -> u64 {
        self.inner.state.lock().held_bytes()
    }

    /// The most that may be in use.
    pub fn limit_bytes(&self) -> u64 {
        self.inner.limit_bytes
    }

    /// The error for memory that the operating system has refused.
    pub(crate) fn refused_by_system(&self) -> OutOfMemory {
        OutOfMemory::System { in_use_bytes: self.in_use_bytes(), limit_bytes: self.limit_bytes() }
    }

    /// Runs `work` with the limit lifted: undoing a transaction must not fail for memory. The
    /// little it takes (index nodes that the transaction had freed) was there before.
    pub fn with_emergency<R>(&self, work: impl FnOnce() -> R) -> R {
        let _emergency = Counted::new(&self.inner.emergency);
        work()
    }

    /// Runs `work` with the whole limit open to everybody, that part too which is kept for deletions:
    /// recovery, which nobody else runs beside, lays the rows down that there were, though in another order.
    pub fn with_kept<R>(&self, work: impl FnOnce() -> R) -> R {
        let _opened = Counted::new(&self.inner.opened);
        work()
    }

    /// Whether so much more may be taken (I-4).
    fn admit(&self, state: &State, more_bytes: u64, need: Need) -> Result<(), OutOfMemory> {
        let may_use_kept = need != Need::Ordinary || self.inner.opened.load(Ordering::Relaxed) > 0;
        let kept_bytes = if may_use_kept { 0 } else { self.inner.kept_bytes };
        let is_over = state.taken_bytes() + more_bytes > self.inner.limit_bytes - kept_bytes;
        match is_over && need != Need::Undoing && self.inner.emergency.load(Ordering::Relaxed) == 0 {
            true => Err(OutOfMemory::Limit { limit_bytes: self.inner.limit_bytes }),
            false => Ok(()),
        }
    }

    /// Gives back what is warm where it lifts what is held above the limit, and has what is ready be given back (I-4). For
    /// threads that may own a partition.
    fn keep_to_limit(&self, state: &mut MutexGuard<'_, State>) {
        let is_over = |state: &State| state.held_bytes() > self.inner.limit_bytes;
        while is_over(state) && State::cool_slab(state) {}
        match state.has_toucher {
            true if is_over(state) => drop(self.inner.wanted.notify_one()),
            true => {}
            false => while is_over(state) && State::trim(state) {},
        }
    }

    fn take_slab(&self, state: &mut State, need: Need) -> Result<SlabPtr, OutOfMemory> {
        self.admit(state, SLAB_BYTES as u64, need)?;
        let slab = match state.warm.pop_back() {
            Some(slab) => slab,
            None => state.take_fresh().ok_or_else(|| self.refused_by_system())?,
        };
        state.least_warm = state.least_warm.min(state.warm.len());
        state.slabs_in_use += 1;
        if state.has_toucher && state.warm.len() < RESERVE_SLABS / 2 {
            self.inner.wanted.notify_one();
        }
        Ok(slab)
    }
}

/// Counts somebody until it is dropped, also by a panic.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn small_layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, BLOCK_ALIGN).expect("a few kilobytes")
}

impl State {
    /// Bytes in use: of slabs that hold a block, of runs, and of what is too small for either.
    fn taken_bytes(&self) -> u64 {
        self.slabs_in_use * SLAB_BYTES as u64 + self.runs.taken_bytes() + self.small_bytes
    }

    /// Those, and of slabs and runs whose pages are there, or about to be.
    fn held_bytes(&self) -> u64 {
        let slabs = self.warm.len() as u64 + self.slabs_touched;
        self.taken_bytes() + self.runs.warm_bytes() + slabs * SLAB_BYTES as u64
    }

    /// Gives the pages of the warm slab back that was used least recently; whether there was one.
    fn cool_slab(state: &mut MutexGuard<'_, Self>) -> bool {
        let Some(slab) = state.warm.pop_front() else { return false };
        state.least_warm = state.least_warm.min(state.warm.len());
        // SAFETY: a whole slab of a region; it is in none of the lists, so nobody else touches it.
        MutexGuard::unlocked(state, || unsafe { system::give_back(slab.0, SLAB_BYTES) });
        state.fresh.push(slab);
        true
    }

    /// Touches one more slab; whether there was one.
    fn touch_slab(state: &mut MutexGuard<'_, Self>) -> bool {
        let Some(slab) = state.take_fresh() else { return false };
        state.slabs_touched += 1;
        MutexGuard::unlocked(state, || system::touch(slab));
        state.slabs_touched -= 1;
        state.warm.push_front(slab);
        true
    }

    /// An untouched slab, from a new region if need be; `None` when the kernel refuses.
    fn take_fresh(&mut self) -> Option<SlabPtr> {
        if self.fresh.is_empty() {
            let region = system::map(REGION_BYTES, system::Pages::Huge)?;
            self.regions.push(SlabPtr(region));
            for i in (0..REGION_BYTES / SLAB_BYTES).rev() {
                let address = region.as_ptr() as usize + i * SLAB_BYTES;
                self.fresh.push(SlabPtr(NonNull::new(address as *mut u8)?));
            }
        }
        self.fresh.pop()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for region in &self.state.get_mut().regions {
            // SAFETY: the region was mapped with this length; the last handle is gone, so no block of it is in use
            // (I-3).
            unsafe { system::unmap(region.0, REGION_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests;
