//! Runs of small pages, for sections of which few would fit a slab: there slabs would waste a quarter of
//! their bytes and more, and sections longer than a slab fit none.
//!
//! A run that is free has no pages behind it, unless it is one of a few that are kept warm, so gaps between runs cost addresses alone, of which there are
//! plenty, and the limit counts runs by their bytes. The regions are mapped in large steps: a mapping for each
//! run would meet the kernel's limit of 65,530.
//!
//! - U-1 Free runs neither overlap nor touch, and are nobody's. Warm ones are not among them.
//! - U-2 A region is at least as long as the run that it was mapped for.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use super::system::{self, PAGE_BYTES};
use super::{REGION_BYTES, SLAB_BYTES, SlabPtr};

/// The runs of a pool. Guarded by its mutex.
#[derive(Default)]
pub(super) struct Runs {
    /// By address: the bytes of each free run.
    free: BTreeMap<usize, usize>,
    regions: Vec<(SlabPtr, usize)>,
    taken_bytes: u64,
    /// By length: runs that nobody has, with the pages that they had.
    warm: BTreeMap<usize, Vec<SlabPtr>>,
    warm_bytes: u64,
}

impl Runs {
    /// Bytes of runs that are handed out.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// The first free run of so many bytes, from a new region if need be; `None` when the kernel refuses.
    pub(super) fn take(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "a run of {bytes} bytes");
        let fits = |(&start, &free): (&usize, &usize)| (free >= bytes).then_some((start, free));
        let (start, free) = match self.free.iter().find_map(fits) {
            Some(found) => found,
            None => self.add_region(bytes)?,
        };
        self.free.remove(&start);
        if free > bytes {
            self.free.insert(start + bytes, free - bytes);
        }
        self.taken_bytes += bytes as u64;
        NonNull::new(start as *mut u8)
    }

    /// Bytes of runs that are warm.
    pub(super) fn warm_bytes(&self) -> u64 {
        self.warm_bytes
    }

    /// A warm run of just so many bytes, with what was written there last.
    pub(super) fn take_warm(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let run = self.warm.get_mut(&bytes)?.pop()?;
        self.warm_bytes -= bytes as u64;
        self.taken_bytes += bytes as u64;
        Some(run.0)
    }

    /// Takes a run back that was taken, with its pages.
    pub(super) fn keep_warm(&mut self, run: NonNull<u8>, bytes: usize) {
        assert!(self.taken_bytes >= bytes as u64, "no more is given back than was taken");
        self.taken_bytes -= bytes as u64;
        self.warm_bytes += bytes as u64;
        self.warm.entry(bytes).or_default().push(SlabPtr(run));
    }

    /// All warm runs, with their lengths: taken from now on.
    pub(super) fn take_all_warm(&mut self) -> Vec<(SlabPtr, usize)> {
        self.taken_bytes += std::mem::take(&mut self.warm_bytes);
        let warm = std::mem::take(&mut self.warm).into_iter();
        warm.flat_map(|(bytes, runs)| runs.into_iter().map(move |run| (run, bytes))).collect()
    }

    /// Maps a region that has room for a run, and tells the free run that it is.
    #[cold]
    fn add_region(&mut self, bytes: usize) -> Option<(usize, usize)> {
        let bytes = bytes.checked_next_multiple_of(SLAB_BYTES)?.max(REGION_BYTES);
        let region = system::map(bytes, system::Pages::Small)?;
        self.regions.push((SlabPtr(region), bytes));
        let start = region.as_ptr() as usize;
        let before = self.free.insert(start, bytes);
        assert!(before.is_none(), "a region is mapped once (U-1)");
        Some((start, bytes))
    }

    /// Takes a run back that [`Runs::take`] gave, and whose pages are gone.
    pub(super) fn give(&mut self, run: NonNull<u8>, bytes: usize) {
        let (mut start, mut end) = (run.as_ptr() as usize, run.as_ptr() as usize + bytes);
        if let Some((&before, &free)) = self.free.range(..start).next_back() {
            assert!(before + free <= start, "a run is given back once (U-1)");
            if before + free == start {
                start = before;
            }
        }
        if let Some((&behind, &free)) = self.free.range(end - bytes..).next() {
            assert!(behind >= end, "a run is given back once (U-1)");
            if behind == end {
                self.free.remove(&behind);
                end += free;
            }
        }
        // Two regions may touch too: they are one to those that come, and are unmapped together.
        self.free.insert(start, end - start);
        assert!(self.taken_bytes >= bytes as u64, "no more is given back than was taken");
        self.taken_bytes -= bytes as u64;
    }
}

#[cfg(test)]
impl Runs {
    /// Panics unless all that was mapped is free, and in no more pieces than were mapped.
    pub(super) fn check_all_is_free(&self) {
        let mapped: usize = self.regions.iter().map(|region| region.1).sum();
        assert_eq!(self.free.values().sum::<usize>(), mapped, "U-1");
        assert!(self.free.len() <= self.regions.len(), "free runs do not touch (U-1)");
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
