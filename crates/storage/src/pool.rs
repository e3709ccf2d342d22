//! Block memory: a few large regions on huge pages, cut into slabs of 2 MiB, each slab into blocks
//! of one size.
//!
//! Responsible for: handing out and taking back blocks from any thread, keeping a reserve of slabs
//! whose pages are already there, so that an executor never waits for the kernel to clear a page,
//! and the memory limit. Not responsible for: what lies in a block, or who may still see it
//! (`registry`).
//!
//! Invariants:
//! - I-1 A slab is cut into blocks of one size; the block of index `i` starts at `i * size`.
//! - I-2 A block is either free (its index is in its slab's free list, once) or owned by exactly
//!   one caller.
//! - I-3 Regions are unmapped only when the last handle to the pool is gone.
//!
//! Huge pages are asked for with `madvise`; without them TPC-C loses 13-44 % to TLB misses.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

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
    /// While positive, all allocations may use that.
    opened: AtomicU64,
    /// While positive, allocations may pass the limit: an abort must not fail for memory.
    emergency: AtomicU64,
    in_use_bytes: AtomicU64,
    relief: OnceLock<Box<dyn Relief>>,
    /// Somebody is at it.
    relieving: AtomicBool,
}

/// Frees memory that somebody can do without.
pub trait Relief: Send + Sync {
    /// Frees some before this returns if `now`, else soon. The caller may own a partition.
    fn relieve(&self, now: bool);
}

#[derive(Default)]
struct State {
    regions: Vec<SlabPtr>,
    /// Slabs never cut, pages not yet touched.
    fresh: Vec<SlabPtr>,
    /// Free slabs whose pages are there.
    warm: Vec<SlabPtr>,
    slabs: HashMap<usize, Slab>,
    /// By block size: slabs with at least one free block.
    partial: HashMap<usize, Vec<usize>>,
    mapped_bytes: u64,
    slabs_in_use: u64,
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
    /// A pool that never holds more than `limit_bytes` in use, rounded up to whole slabs.
    pub fn new(limit_bytes: u64) -> Self {
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
                opened: AtomicU64::new(0),
                emergency: AtomicU64::new(0),
                in_use_bytes: AtomicU64::new(0),
                relief: OnceLock::new(),
                relieving: AtomicBool::new(false),
            }),
        }
    }

    /// Body of the helper thread that keeps a reserve of touched slabs. Returns when
    /// [`BlockPool::stop_toucher`] is called.
    pub fn run_toucher(&self) {
        let mut state = self.inner.state.lock();
        state.has_toucher = true;
        while !self.inner.stop.load(Ordering::Relaxed) {
            let room =
                (state.slabs_in_use + state.warm.len() as u64) * (SLAB_BYTES as u64) < self.inner.limit_bytes;
            if state.warm.len() >= RESERVE_SLABS || !room {
                self.inner.wanted.wait(&mut state);
                continue;
            }
            let Some(slab) = state.take_fresh() else {
                self.inner.wanted.wait(&mut state);
                continue;
            };
            parking_lot::MutexGuard::unlocked(&mut state, || touch(slab));
            state.warm.push(slab);
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
            self.preallocate_slab(u64::MAX);
        }
    }

    /// Takes one more slab from the kernel and touches it on this thread, unless slabs of `total_bytes`
    /// or of the limit are there, in use or free; returns whether it did.
    ///
    /// What the helper thread touches while transactions run it touches beside them: where cores share
    /// their parts, and pages come from under a virtual machine, TPC-C lost 10 % to it.
    pub fn preallocate_slab(&self, total_bytes: u64) -> bool {
        let mut state = self.inner.state.lock();
        let next_bytes = (state.slabs_in_use + state.warm.len() as u64 + 1) * SLAB_BYTES as u64;
        if next_bytes > total_bytes.min(self.inner.limit_bytes) {
            return false;
        }
        let Some(slab) = state.take_fresh() else { return false };
        parking_lot::MutexGuard::unlocked(&mut state, || touch(slab));
        state.warm.push(slab);
        true
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
        let mut done = self.try_alloc(bytes, need);
        while done == Err(OutOfMemory::Limit { limit_bytes: self.inner.limit_bytes }) && self.relieve(true) {
            done = self.try_alloc(bytes, need);
        }
        done
    }

    /// Has somebody free memory before the next is refused. The first one counts.
    pub fn set_relief(&self, relief: Box<dyn Relief>) {
        let _ = self.inner.relief.set(relief);
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

    /// Whether little is left.
    fn is_tight(&self, state: &State) -> bool {
        state.slabs_in_use * SLAB_BYTES as u64 > self.inner.limit_bytes / 16 * 15
    }

    fn try_alloc(&self, bytes: usize, need: Need) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(
            bytes > 0 && bytes.is_multiple_of(BLOCK_ALIGN) && bytes <= SLAB_BYTES,
            "block of {bytes} bytes"
        );
        let mut guard = self.inner.state.lock();
        let state = &mut *guard;
        let mut is_tight = false;
        let candidates = state.partial.entry(bytes).or_default();
        let base = match candidates.last() {
            Some(&base) => base,
            None => {
                let slab = self.take_slab(state, need)?;
                is_tight = self.is_tight(state);
                let base = slab.0.as_ptr() as usize;
                let blocks = SLAB_BYTES / bytes;
                let free = (0..blocks as u16).rev().collect();
                debug_assert!(base.is_multiple_of(SLAB_BYTES), "an address says its slab (I-1)");
                let before = state.slabs.insert(base, Slab { size: bytes, free, blocks });
                assert!(before.is_none(), "a slab is cut once (I-1)");
                state.partial.entry(bytes).or_default().push(base);
                base
            }
        };
        let slab = state.slabs.get_mut(&base).expect("a partial slab is known");
        let index = slab.free.pop().expect("a partial slab has a free block");
        debug_assert_eq!(slab.size, bytes, "a slab has blocks of one size (I-1)");
        debug_assert!(usize::from(index) < slab.blocks, "a free block lies in its slab (I-1)");
        if slab.free.is_empty() {
            let full = state.partial.get_mut(&bytes).expect("the size is known").pop();
            debug_assert_eq!(full, Some(base), "the slab that became full is the last of its size");
        }
        self.inner.in_use_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let address = base + index as usize * bytes;
        debug_assert!(address.is_multiple_of(BLOCK_ALIGN), "blocks are aligned to cache lines");
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
                partial.retain(|&other| other != base);
            }
            state.warm.push(SlabPtr(NonNull::new(base as *mut u8).expect("a slab is not at null")));
            assert!(state.slabs_in_use > 0, "a slab that is given back was in use");
            state.slabs_in_use -= 1;
        } else if free == 1 {
            state.partial.entry(bytes).or_default().push(base);
        }
        let before = self.inner.in_use_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        debug_assert!(before >= bytes as u64, "no more is given back than was taken");
    }

    /// Bytes in blocks that are handed out.
    pub fn in_use_bytes(&self) -> u64 {
        self.inner.in_use_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of slabs that hold at least one block, or are kept free for the next.
    pub fn reserved_bytes(&self) -> u64 {
        let state = self.inner.state.lock();
        (state.slabs_in_use + state.warm.len() as u64) * SLAB_BYTES as u64
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

    fn take_slab(&self, state: &mut State, need: Need) -> Result<SlabPtr, OutOfMemory> {
        let next_bytes = (state.slabs_in_use + 1) * SLAB_BYTES as u64;
        let may_use_kept = need != Need::Ordinary || self.inner.opened.load(Ordering::Relaxed) > 0;
        let kept_bytes = if may_use_kept { 0 } else { self.inner.kept_bytes };
        if next_bytes > self.inner.limit_bytes - kept_bytes
            && need != Need::Undoing
            && self.inner.emergency.load(Ordering::Relaxed) == 0
        {
            return Err(OutOfMemory::Limit { limit_bytes: self.inner.limit_bytes });
        }
        let slab = match state.warm.pop() {
            Some(slab) => slab,
            None => state.take_fresh().ok_or_else(|| self.refused_by_system())?,
        };
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

impl State {
    /// An untouched slab, from a new region if need be; `None` when the kernel refuses.
    fn take_fresh(&mut self) -> Option<SlabPtr> {
        if self.fresh.is_empty() {
            let region = map_region()?;
            self.regions.push(region);
            self.mapped_bytes += REGION_BYTES as u64;
            for i in (0..REGION_BYTES / SLAB_BYTES).rev() {
                let address = region.0.as_ptr() as usize + i * SLAB_BYTES;
                self.fresh.push(SlabPtr(NonNull::new(address as *mut u8)?));
            }
        }
        self.fresh.pop()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for region in &self.state.get_mut().regions {
            // SAFETY: the region was mapped by `map_region` with this length; the last handle is
            // gone, so no block of it is in use (I-3).
            unsafe { libc::munmap(region.0.as_ptr().cast(), REGION_BYTES) };
        }
    }
}

/// Maps a region aligned to a slab, or `None` when the kernel refuses.
fn map_region() -> Option<SlabPtr> {
    let length = REGION_BYTES + SLAB_BYTES;
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory
    // of ours.
    let raw = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let start = raw as usize;
    let aligned = start.next_multiple_of(SLAB_BYTES);
    assert!(aligned + REGION_BYTES <= start + length, "the region lies in what was mapped");
    // SAFETY: both ranges lie inside the mapping just made, outside the region that is kept.
    unsafe {
        if aligned > start {
            libc::munmap(raw, aligned - start);
        }
        let tail = start + length - (aligned + REGION_BYTES);
        if tail > 0 {
            libc::munmap((aligned + REGION_BYTES) as *mut libc::c_void, tail);
        }
        // Advice: if the kernel has no huge pages for us, small ones serve.
        libc::madvise(aligned as *mut libc::c_void, REGION_BYTES, libc::MADV_HUGEPAGE);
    }
    NonNull::new(aligned as *mut u8).map(SlabPtr)
}

/// Writes one byte of each page, so that the kernel provides it now.
fn touch(slab: SlabPtr) {
    for offset in (0..SLAB_BYTES).step_by(4096) {
        // SAFETY: the slab is mapped and not yet handed out, so nobody else looks at it.
        unsafe { slab.0.as_ptr().add(offset).write_volatile(0) };
    }
}

#[cfg(test)]
mod tests {
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
}
