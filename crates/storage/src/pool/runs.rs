//! Runs of pages, for sections of which few would fit a slab: there slabs would waste a quarter of their bytes and more,
//! and sections longer than a slab fit none.
//!
//! Addresses are cut into windows, as long as a huge page. A window comes with a huge page behind it, and runs are cut from
//! it one after the other; what is given back loses its pages at once, 4 KiB by 4 KiB, so that gaps between runs cost
//! addresses alone, of which there are plenty, and the limit counts runs by their bytes. If there are many such gaps, runs
//! fill them, with small pages. Then a row of a frozen chunk, which lies in as many places as it has columns, is found
//! without a walk through page tables for each.
//!
//! ```text
//!            huge page                       cut off
//! whole ------------------> ready (a window, or its rest) ------> taken
//!   ^ `--- cut, without pages ---> gap --- pages of 4 KiB ------>  |
//!   `--------- all of a window ---- ^ ---- pages given back -------'
//! ```
//!
//! The regions are mapped in large steps: a mapping for each run would meet the kernel's limit of 65,530. They are marked
//! to have small pages, but for a window while it gets its page. Else `khugepaged` would fill their gaps again.
//!
//! - U-1 Each byte of a region is of one run that is taken, or in one list. No gap has a whole window in it.
//! - U-2 Only what is taken, warm or ready has pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

use parking_lot::MutexGuard;

use super::extents::Extents;
use super::system::{self, PAGE_BYTES};
use super::{BlockPool, Need, OutOfMemory, REGION_BYTES, SLAB_BYTES, SlabPtr, State};

/// Bytes of a window.
const WINDOW_BYTES: usize = SLAB_BYTES;
/// If gaps are a larger part of what is taken, they are filled before new windows are opened.
const GAPS_PART: u64 = 8;

/// The runs of a pool. Guarded by its mutex.
#[derive(Default)]
pub(super) struct Runs {
    /// Free, without pages, in windows of which something else is not free or has pages.
    gaps: Extents,
    /// Free windows without pages.
    whole: BTreeSet<usize>,
    /// Free, with pages.
    ready: Extents,
    /// Of windows that somebody is getting pages for.
    opening_bytes: u64,
    /// Something was taken since [`BlockPool::shrink`] looked.
    is_wanted: bool,
    regions: Vec<(SlabPtr, usize)>,
    taken_bytes: u64,
    /// By length: runs that nobody has, with the pages that they had.
    warm: BTreeMap<usize, Vec<SlabPtr>>,
    warm_bytes: u64,
}

/// A run, and whether the caller is to see to its pages.
struct Taken {
    run: NonNull<u8>,
    is_bare: bool,
}

impl Runs {
    /// Bytes of runs that are handed out.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes that nobody has and that have pages.
    pub(super) fn warm_bytes(&self) -> u64 {
        self.warm_bytes + self.ready.bytes() as u64 + self.opening_bytes
    }

    /// A warm run of just so many bytes, with what was written there last, or one of a huge page.
    fn take_warm(&mut self, bytes: usize) -> Option<Taken> {
        let run = match self.warm.get_mut(&bytes).and_then(Vec::pop) {
            Some(run) => {
                self.warm_bytes -= bytes as u64;
                run.0
            }
            None => NonNull::new(self.ready.take(bytes)? as *mut u8)?,
        };
        Some(self.hand_out(run, bytes, false))
    }

    /// A run without pages, from a gap if one is long enough; `None` when the kernel refuses.
    fn take_bare(&mut self, bytes: usize) -> Option<Taken> {
        let start = match self.gaps.take(bytes) {
            Some(start) => start,
            None => {
                let (start, windows) = self.take_windows(bytes)?;
                if windows > bytes {
                    self.gaps.insert(start + bytes, windows - bytes);
                }
                start
            }
        };
        Some(self.hand_out(NonNull::new(start as *mut u8)?, bytes, true))
    }

    fn hand_out(&mut self, run: NonNull<u8>, bytes: usize, is_bare: bool) -> Taken {
        self.taken_bytes += bytes as u64;
        self.is_wanted = true;
        Taken { run, is_bare }
    }

    /// Whether gaps are not to be filled first.
    fn wants_window(&self) -> bool {
        self.gaps.bytes() as u64 <= self.taken_bytes / GAPS_PART
    }

    /// Free windows in a row that a run fits into, and their bytes, from a new region if need be; `None` when the kernel
    /// refuses. Those behind what is ready come first: a run may then lie in both.
    fn take_windows(&mut self, bytes: usize) -> Option<(usize, usize)> {
        let bytes = bytes.checked_next_multiple_of(WINDOW_BYTES)?;
        let are_free =
            |start: &usize| (*start..start + bytes).step_by(WINDOW_BYTES).all(|at| self.whole.contains(&at));
        let found = self.ready.ends().find(are_free).or_else(|| self.whole.iter().copied().find(are_free));
        let start = match found {
            Some(start) => start,
            None => self.add_region(bytes)?,
        };
        for window in (start..start + bytes).step_by(WINDOW_BYTES) {
            let was_free = self.whole.remove(&window);
            assert!(was_free, "a window is taken once (U-1)");
        }
        Some((start, bytes))
    }

    /// Maps a region that has room for a run; tells its start.
    #[cold]
    fn add_region(&mut self, bytes: usize) -> Option<usize> {
        let bytes = bytes.max(REGION_BYTES);
        let region = system::map(bytes, system::Pages::Small)?;
        self.regions.push((SlabPtr(region), bytes));
        let start = region.as_ptr() as usize;
        self.whole.extend((start..start + bytes).step_by(WINDOW_BYTES));
        Some(start)
    }

    /// Takes a run back, with its pages.
    fn keep_warm(&mut self, run: NonNull<u8>, bytes: usize) {
        self.count_back(bytes);
        self.warm_bytes += bytes as u64;
        self.warm.entry(bytes).or_default().push(SlabPtr(run));
    }

    /// Takes a run back whose pages are gone.
    fn give(&mut self, run: NonNull<u8>, bytes: usize) {
        self.count_back(bytes);
        self.add_bare(run.as_ptr() as usize, bytes);
    }

    fn count_back(&mut self, bytes: usize) {
        assert!(self.taken_bytes >= bytes as u64, "no more is given back than was taken");
        self.taken_bytes -= bytes as u64;
    }

    /// Adds what has no pages to the gaps, and whole windows of them to those.
    fn add_bare(&mut self, start: usize, bytes: usize) {
        let (start, bytes) = self.gaps.insert(start, bytes);
        let first = start.next_multiple_of(WINDOW_BYTES);
        for window in (first..start + bytes).step_by(WINDOW_BYTES) {
            if window + WINDOW_BYTES <= start + bytes {
                self.gaps.remove(window, WINDOW_BYTES);
                self.whole.insert(window);
            }
        }
    }

    /// All warm runs, with their lengths: taken from now on.
    fn take_all_warm(&mut self) -> Vec<(SlabPtr, usize)> {
        self.taken_bytes += std::mem::take(&mut self.warm_bytes);
        let warm = std::mem::take(&mut self.warm).into_iter();
        warm.flat_map(|(bytes, runs)| runs.into_iter().map(move |run| (run, bytes))).collect()
    }

    /// Gives the pages back that are ready; whether there were any. They are few.
    pub(super) fn cool(&mut self) -> bool {
        let had_some = self.ready.bytes() > 0;
        for (start, bytes) in self.ready.take_all() {
            let address = NonNull::new(start as *mut u8).expect("a region is not at null");
            // SAFETY: whole pages of a region, which nobody has (U-1).
            unsafe { system::give_back(address, bytes) };
            self.add_bare(start, bytes);
        }
        had_some
    }
}

impl BlockPool {
    /// Pages in a row, a multiple of [`system::PAGE_BYTES`], with zeroes or what was there before. Before it refuses, it asks for relief.
    pub(super) fn alloc_run(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "a run of {bytes} bytes");
        self.with_relief(|| self.try_alloc_run(bytes))
    }

    fn try_alloc_run(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let mut state = self.inner.state.lock();
        self.admit(&state, bytes as u64, Need::Ordinary)?;
        let mut taken = state.runs.take_warm(bytes);
        if taken.is_none() && self.inner.has_huge_runs && state.runs.wants_window() {
            self.open_windows(&mut state, bytes);
            self.admit(&state, bytes as u64, Need::Ordinary)?;
            taken = state.runs.take_warm(bytes);
        }
        let taken = match taken {
            Some(taken) => taken,
            None => state.runs.take_bare(bytes).ok_or_else(|| self.refused_by_system())?,
        };
        self.keep_to_limit(&mut state);
        let is_tight = self.is_tight(&state);
        drop(state);
        if taken.is_bare {
            // SAFETY: whole pages of a region, which nobody else has.
            unsafe { system::provide(taken.run, bytes) };
        }
        self.count_in_use(bytes as u64);
        if is_tight {
            self.relieve(false);
        }
        Ok(taken.run)
    }

    /// Gets huge pages for windows that a run fits into, if the limit has room for them. Others go on meanwhile, and may be
    /// faster to take them.
    fn open_windows(&self, state: &mut MutexGuard<'_, State>, bytes: usize) {
        let window_bytes = bytes.next_multiple_of(WINDOW_BYTES) as u64;
        // Slabs beyond the reserve are not what is wanted now. What they give back the kernel has at hand.
        if state.warm.len() > self.inner.reserve_slabs
            && state.held_bytes() >= state.asked_bytes + window_bytes
        {
            State::cool_slab(state);
        }
        if state.held_bytes() + window_bytes > self.inner.limit_bytes {
            return;
        }
        let Some((start, bytes)) = state.runs.take_windows(bytes) else { return };
        state.runs.opening_bytes += window_bytes;
        let windows = NonNull::new(start as *mut u8).expect("a region is not at null");
        // SAFETY: whole windows of a region, just taken from the list of those that nobody has (U-1).
        MutexGuard::unlocked(state, || unsafe { system::provide_huge(windows, bytes) });
        state.runs.opening_bytes -= window_bytes;
        state.runs.ready.insert(start, bytes);
    }

    /// Gives a run back, and its pages to the kernel unless they are kept for the next.
    ///
    /// # Safety
    /// S-1: `run` came from [`BlockPool::alloc_run`] of this pool with the same `bytes`.
    /// S-2: nobody reads or writes it any more, and it is given back once.
    pub(super) unsafe fn free_run(&self, run: NonNull<u8>, bytes: usize) {
        let mut state = self.inner.state.lock();
        if state.runs.warm_bytes() + bytes as u64 <= self.inner.warm_run_bytes {
            state.runs.keep_warm(run, bytes);
        } else {
            // SAFETY: whole pages of a region (S-1), and nobody else's (S-2) until they are free below.
            MutexGuard::unlocked(&mut state, || unsafe { system::give_back(run, bytes) });
            state.runs.give(run, bytes);
        }
        drop(state);
        self.count_out_of_use(bytes as u64);
    }

    /// Gives the kernel back what is warm, and what is ready if nobody has wanted any since this was called last.
    pub(super) fn shrink_runs(state: &mut MutexGuard<'_, State>) {
        for (run, bytes) in state.runs.take_all_warm() {
            // SAFETY: whole pages of a region; taken just now, so nobody else's.
            MutexGuard::unlocked(state, || unsafe { system::give_back(run.0, bytes) });
            state.runs.give(run.0, bytes);
        }
        if !std::mem::take(&mut state.runs.is_wanted) {
            state.runs.cool();
        }
    }
}

#[cfg(test)]
impl Runs {
    /// Panics unless all that was mapped is free, and in whole windows.
    pub(super) fn check_all_is_free(&mut self) {
        self.cool();
        let mapped: usize = self.regions.iter().map(|region| region.1).sum();
        assert_eq!(self.whole.len() * WINDOW_BYTES, mapped, "U-1");
        assert_eq!((self.gaps.bytes(), self.opening_bytes, self.warm_bytes), (0, 0, 0), "U-1");
    }

    /// Bytes of gaps, and of what is ready.
    pub(super) fn free_bytes(&self) -> (usize, usize) {
        (self.gaps.bytes(), self.ready.bytes())
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        debug_assert_eq!(self.taken_bytes, 0, "a part keeps its pool");
        for (region, bytes) in &self.regions {
            // SAFETY: mapped in `add_region` with this length. Each run keeps a handle to the pool, so with the pool
            // all are gone (I-3 of `pool`).
            unsafe { system::unmap(region.0, *bytes) };
        }
    }
}
