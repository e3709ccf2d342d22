//! Runs of pages, for sections of which few would fit a slab: there slabs would waste a quarter of their bytes and more,
//! and sections longer than a slab fit none.
//!
//! Addresses are cut into windows, as long as a huge page. A window comes with a huge page behind it, and runs are cut from
//! it one after the other. Then a row of a frozen chunk, which lies in as many places as it has columns, is found without a
//! walk through page tables for each. The regions are mapped in large steps: a mapping for each run would meet the kernel's
//! limit of 65,530.
//!
//! What is given back stays ready for other runs, pages and all, until nothing of its windows is taken: then their pages go
//! at once. Else they go where memory is short, or when nobody has wanted them for a while: this has the kernel split a huge
//! page, which takes a third of a millisecond or more, so a thread does it that owns no partition. What is left is a gap,
//! which costs addresses alone. If there are many, runs fill them, with small pages.
//!
//! ```text
//!            huge page                         cut off
//! whole ------------------> ready (or the rest of it) -------> taken
//!   ^                        |     ^--------- given back -------- |
//!   |                        | trimmed                            |
//!   |                        v          pages of 4 KiB            |
//!   '-- nothing taken ----- gap --------------------------------->'
//! ```
//!
//! Regions are marked to have small pages, but for a window while it gets its page. Else `khugepaged` would fill their gaps
//! again.
//!
//! - U-1 Each byte of a region is of one run that is taken or warm, or in one list, or with a thread that gets or gives
//!   back its pages.
//! - U-2 Only what is taken, warm, ready, or with such a thread has pages. A whole window has none.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use parking_lot::MutexGuard;

use super::extents::Extents;
use super::system::{self, PAGE_BYTES};
use super::{BlockPool, LOW_RESERVE_SLABS, Need, OutOfMemory, REGION_BYTES, SLAB_BYTES, SlabPtr, State};

/// Bytes of a window.
const WINDOW_BYTES: usize = SLAB_BYTES;
/// If gaps are a larger part of what is taken, they are filled before new windows are opened.
const GAPS_PART: u64 = 8;

/// The runs of a pool. Guarded by its mutex.
#[derive(Default)]
pub(super) struct Runs {
    /// Free windows without pages.
    whole: Extents,
    /// Free, with pages.
    ready: Extents,
    /// Free, without pages, in windows that are not whole.
    gaps: Extents,
    /// By address: the bytes of each window that are in none of these lists. A window that has none is not here.
    used: BTreeMap<usize, usize>,
    /// Where the windows end that were opened last.
    opened_until: usize,
    /// Free bytes with threads that get or give back their pages.
    moving_bytes: u64,
    /// The fewest that were ready since [`BlockPool::shrink`] looked.
    least_ready: usize,
    regions: Vec<(SlabPtr, usize)>,
    taken_bytes: u64,
    /// By length: runs that nobody has, with the pages that they had.
    warm: BTreeMap<usize, Vec<SlabPtr>>,
    warm_bytes: u64,
}

/// Windows that are to get pages, for a run that begins in them or in what is ready before them.
struct Opening {
    run: usize,
    /// Start and length.
    windows: (usize, usize),
    /// What is left of them behind the run.
    rest: usize,
}

fn address(at: usize) -> NonNull<u8> {
    NonNull::new(at as *mut u8).expect("a region is not at null")
}

impl Runs {
    /// Bytes of runs that are handed out.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes that nobody has and that have pages.
    pub(super) fn warm_bytes(&self) -> u64 {
        self.warm_bytes + self.ready.bytes() as u64 + self.moving_bytes
    }

    /// Counts a range as used in its windows.
    fn use_range(&mut self, start: usize, bytes: usize) {
        for (window, part) in parts_by_window(start, bytes) {
            *self.used.entry(window).or_default() += part;
        }
    }

    /// Counts it out again. Windows of which nothing else is used leave the lists: tells their ranges.
    fn unuse_range(&mut self, start: usize, bytes: usize) -> Vec<(usize, usize)> {
        let mut free = Vec::<(usize, usize)>::new();
        for (window, part) in parts_by_window(start, bytes) {
            let used = self.used.get_mut(&window).expect("a window that is used is known");
            *used -= part;
            if *used > 0 {
                continue;
            }
            self.used.remove(&window);
            match free.last_mut() {
                Some((first, length)) if *first + *length == window => *length += WINDOW_BYTES,
                _ => free.push((window, WINDOW_BYTES)),
            }
        }
        free
    }

    /// A run of what is ready.
    fn take_ready(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let start = self.ready.take(bytes)?;
        self.least_ready = self.least_ready.min(self.ready.bytes());
        Some(self.hand_out(start, bytes))
    }

    fn take_gap(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let start = self.gaps.take(bytes)?;
        Some(self.hand_out(start, bytes))
    }

    /// A run without pages in free windows; `None` when the kernel refuses.
    fn take_bare(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let windows = bytes.checked_next_multiple_of(WINDOW_BYTES)?;
        let start = self.take_windows(windows)?;
        self.gaps.insert(start + bytes, windows - bytes);
        Some(self.hand_out(start, bytes))
    }

    fn hand_out(&mut self, start: usize, bytes: usize) -> NonNull<u8> {
        self.taken_bytes += bytes as u64;
        self.use_range(start, bytes);
        address(start)
    }

    /// Whether gaps are not to be filled first.
    fn wants_window(&self) -> bool {
        self.gaps.bytes() as u64 <= self.taken_bytes / GAPS_PART
    }

    /// Takes a run of windows that are to get their pages; `None` when the kernel refuses addresses. Those are taken that
    /// lie behind the last ones, if these have something left, so that the run lies in both.
    fn begin_opening(&mut self, bytes: usize) -> Option<Opening> {
        if let Some((run, tail)) = self.ready.ending_at(self.opened_until).filter(|(_, tail)| *tail < bytes) {
            let windows = (run + tail, (bytes - tail).next_multiple_of(WINDOW_BYTES));
            if self.whole.has(windows.0, windows.1) {
                self.whole.cut(windows.0, windows.1);
                self.ready.cut(run, tail);
                self.least_ready = self.least_ready.min(self.ready.bytes());
                return Some(self.opening(run, bytes, windows));
            }
        }
        let length = bytes.checked_next_multiple_of(WINDOW_BYTES)?;
        let start = self.take_windows(length)?;
        Some(self.opening(start, bytes, (start, length)))
    }

    fn opening(&mut self, run: usize, bytes: usize, windows: (usize, usize)) -> Opening {
        self.hand_out(run, bytes);
        let end = windows.0 + windows.1;
        let rest = end - (run + bytes);
        self.moving_bytes += rest as u64;
        Opening { run, windows, rest }
    }

    fn end_opening(&mut self, opening: &Opening) {
        let end = opening.windows.0 + opening.windows.1;
        self.moving_bytes -= opening.rest as u64;
        self.ready.insert(end - opening.rest, opening.rest);
        self.opened_until = end;
    }

    /// Free windows in a row of so many bytes, from a new region if need be.
    fn take_windows(&mut self, bytes: usize) -> Option<usize> {
        if let Some(start) = self.whole.take(bytes) {
            return Some(start);
        }
        let region_bytes = bytes.max(REGION_BYTES);
        let region = system::map(region_bytes, system::Pages::Small)?;
        self.regions.push((SlabPtr(region), region_bytes));
        self.whole.insert(region.as_ptr() as usize, region_bytes);
        self.whole.take(bytes)
    }

    /// A warm run of just so many bytes, with what was written there last.
    fn take_warm(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let run = self.warm.get_mut(&bytes)?.pop()?;
        self.warm_bytes -= bytes as u64;
        self.taken_bytes += bytes as u64;
        Some(run.0)
    }

    /// Takes a run back, with its pages.
    fn keep_warm(&mut self, run: NonNull<u8>, bytes: usize) {
        self.count_back(bytes);
        self.warm_bytes += bytes as u64;
        self.warm.entry(bytes).or_default().push(SlabPtr(run));
    }

    fn count_back(&mut self, bytes: usize) {
        assert!(self.taken_bytes >= bytes as u64, "no more is given back than was taken");
        self.taken_bytes -= bytes as u64;
    }

    /// Takes a range back whose pages are gone.
    fn give_bare(&mut self, start: usize, bytes: usize) {
        self.gaps.insert(start, bytes);
        for (start, bytes) in self.unuse_range(start, bytes) {
            let there = self.gaps.cut(start, bytes) + self.ready.cut(start, bytes);
            debug_assert_eq!(there, bytes, "what is not used is in a list (U-1)");
            self.whole.insert(start, bytes);
        }
    }

    /// All warm runs, with their lengths: taken from now on.
    fn take_all_warm(&mut self) -> Vec<(SlabPtr, usize)> {
        self.taken_bytes += std::mem::take(&mut self.warm_bytes);
        let warm = std::mem::take(&mut self.warm).into_iter();
        warm.flat_map(|(bytes, runs)| runs.into_iter().map(move |run| (run, bytes))).collect()
    }
}

/// The windows of a range, and how many of its bytes lie in each.
fn parts_by_window(start: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = start + bytes;
    let first = start & !(WINDOW_BYTES - 1);
    (first..end).step_by(WINDOW_BYTES).map(move |window| {
        let part = (window + WINDOW_BYTES).min(end) - window.max(start);
        (window, part)
    })
}

impl State {
    /// Gives the pages of the longest range back that is ready; whether there was one. For threads that own no partition.
    pub(super) fn trim(state: &mut MutexGuard<'_, Self>) -> bool {
        let runs = &mut state.runs;
        let Some((start, bytes)) = runs.ready.take_longest() else { return false };
        runs.least_ready = runs.least_ready.min(runs.ready.bytes());
        runs.use_range(start, bytes);
        runs.moving_bytes += bytes as u64;
        // SAFETY: whole pages of a region, in no list now, so nobody else's (U-1).
        MutexGuard::unlocked(state, || unsafe { system::give_back_part(address(start), bytes) });
        state.runs.moving_bytes -= bytes as u64;
        State::take_back_bare(state, start, bytes);
        true
    }

    /// Takes a range back whose pages are gone; those of windows go too of which nothing is used any more.
    fn take_back_bare(state: &mut MutexGuard<'_, Self>, start: usize, bytes: usize) {
        state.runs.gaps.insert(start, bytes);
        let free = state.runs.unuse_range(start, bytes);
        State::take_back_windows(state, free);
    }

    /// Windows of which nothing is used any more are whole once their pages are gone.
    fn take_back_windows(state: &mut MutexGuard<'_, Self>, windows: Vec<(usize, usize)>) {
        for (start, bytes) in windows {
            let runs = &mut state.runs;
            let with_pages = runs.ready.cut(start, bytes);
            let without = runs.gaps.cut(start, bytes);
            debug_assert_eq!(with_pages + without, bytes, "what is not used is in a list (U-1)");
            runs.least_ready = runs.least_ready.min(runs.ready.bytes());
            if with_pages > 0 {
                runs.moving_bytes += with_pages as u64;
                // SAFETY: whole windows of a region, in no list now, so nobody else's (U-1).
                MutexGuard::unlocked(state, || unsafe { system::give_back(address(start), bytes) });
                state.runs.moving_bytes -= with_pages as u64;
            }
            state.runs.whole.insert(start, bytes);
        }
    }
}

impl BlockPool {
    /// Pages in a row, a multiple of [`system::PAGE_BYTES`], with zeroes or what was there before. Before it refuses, it asks
    /// for relief. The caller owns no partition: the kernel may have to clear 2 MiB, or to split a huge page.
    pub(super) fn alloc_run(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "a run of {bytes} bytes");
        self.with_relief(|| self.try_alloc_run(bytes))
    }

    fn try_alloc_run(&self, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let mut state = self.inner.state.lock();
        let (run, has_pages) = self.find_run(&mut state, bytes)?;
        let is_over = |state: &State| state.held_bytes() > self.inner.limit_bytes;
        while is_over(&state) && (State::cool_slab(&mut state) || State::trim(&mut state)) {}
        let is_tight = self.is_tight(&state);
        drop(state);
        if !has_pages {
            // SAFETY: whole pages of a region, which nobody else has.
            unsafe { system::provide(run, bytes) };
        }
        self.count_in_use(bytes as u64);
        if is_tight {
            self.relieve(false);
        }
        Ok(run)
    }

    /// A run, and whether it has pages: one that is free with them if there is such a one; else a gap, if there are many,
    /// windows with huge pages, or what is left.
    fn find_run(
        &self,
        state: &mut MutexGuard<'_, State>,
        bytes: usize,
    ) -> Result<(NonNull<u8>, bool), OutOfMemory> {
        self.admit(state, bytes as u64, Need::Ordinary)?;
        let runs = &mut state.runs;
        if let Some(run) = runs.take_warm(bytes).or_else(|| runs.take_ready(bytes)) {
            return Ok((run, true));
        }
        if !runs.wants_window()
            && let Some(run) = runs.take_gap(bytes)
        {
            return Ok((run, false));
        }
        if self.inner.has_huge_runs {
            if let Some(run) = self.open_windows(state, bytes) {
                return Ok((run, true));
            }
            // Others may have taken some while it was tried.
            self.admit(state, bytes as u64, Need::Ordinary)?;
        }
        let runs = &mut state.runs;
        let run = runs.take_gap(bytes).or_else(|| runs.take_bare(bytes));
        Ok((run.ok_or_else(|| self.refused_by_system())?, false))
    }

    /// A run in windows that get huge pages, if the limit has room for these.
    fn open_windows(&self, state: &mut MutexGuard<'_, State>, bytes: usize) -> Option<NonNull<u8>> {
        let most = bytes.checked_next_multiple_of(WINDOW_BYTES)? as u64;
        // Slabs beyond the reserve are not what is wanted now, and the kernel has at hand what they give back.
        if state.warm.len() > self.inner.reserve_slabs && state.held_bytes() >= state.asked_bytes + most {
            State::cool_slab(state);
        }
        let is_over = |state: &State| state.held_bytes() + most > self.inner.limit_bytes;
        while is_over(state) && state.warm.len() > LOW_RESERVE_SLABS && State::cool_slab(state) {}
        if is_over(state) || self.admit(state, bytes as u64, Need::Ordinary).is_err() {
            return None;
        }
        let opening = state.runs.begin_opening(bytes)?;
        let (start, length) = opening.windows;
        // SAFETY: whole windows of a region, just taken from the list of those that nobody has (U-1).
        MutexGuard::unlocked(state, || unsafe { system::provide_huge(address(start), length) });
        state.runs.end_opening(&opening);
        Some(address(opening.run))
    }

    /// Gives a run back.
    ///
    /// # Safety
    /// S-1: `run` came from [`BlockPool::alloc_run`] of this pool with the same `bytes`.
    /// S-2: nobody reads or writes it any more, and it is given back once.
    pub(super) unsafe fn free_run(&self, run: NonNull<u8>, bytes: usize) {
        let mut state = self.inner.state.lock();
        let start = run.as_ptr() as usize;
        if self.inner.has_huge_runs {
            state.runs.count_back(bytes);
            state.runs.ready.insert(start, bytes);
            let free = state.runs.unuse_range(start, bytes);
            State::take_back_windows(&mut state, free);
        } else if state.runs.warm_bytes() + bytes as u64 <= self.inner.warm_run_bytes {
            state.runs.keep_warm(run, bytes);
        } else {
            // SAFETY: whole pages of a region (S-1), and nobody else's (S-2) until they are free below.
            MutexGuard::unlocked(&mut state, || unsafe { system::give_back(run, bytes) });
            state.runs.count_back(bytes);
            state.runs.give_bare(start, bytes);
        }
        drop(state);
        self.count_out_of_use(bytes as u64);
    }

    /// Gives the kernel back what is warm, and what is ready and was not wanted since this was called last.
    pub(super) fn shrink_runs(state: &mut MutexGuard<'_, State>) {
        for (run, bytes) in state.runs.take_all_warm() {
            // SAFETY: whole pages of a region; taken just now, so nobody else's.
            MutexGuard::unlocked(state, || unsafe { system::give_back(run.0, bytes) });
            state.runs.count_back(bytes);
            state.runs.give_bare(run.0.as_ptr() as usize, bytes);
        }
        let left = state.runs.ready.bytes() - state.runs.least_ready.min(state.runs.ready.bytes());
        while state.runs.ready.bytes() > left && State::trim(state) {}
        state.runs.least_ready = state.runs.ready.bytes();
    }
}

#[cfg(test)]
impl Runs {
    /// Panics unless all that was mapped is free, and in whole windows.
    pub(super) fn check_all_is_free(&self) {
        let mapped: usize = self.regions.iter().map(|region| region.1).sum();
        assert_eq!(self.whole.bytes(), mapped, "U-1");
        assert_eq!((self.gaps.bytes(), self.ready.bytes(), self.used.len()), (0, 0, 0), "U-1");
        assert_eq!((self.moving_bytes, self.warm_bytes, self.taken_bytes), (0, 0, 0), "U-1");
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
            // SAFETY: mapped in `take_windows` with this length. Each run keeps a handle to the pool, so with the pool
            // all are gone (I-3 of `pool`).
            unsafe { system::unmap(region.0, *bytes) };
        }
    }
}
