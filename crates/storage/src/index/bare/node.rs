//! Leaves and what can be done to one or two of them alone.

use super::super::StoredKeys;
use super::super::leaves::{Linked, Links, cut};
use super::super::pages::Node;
use super::Probe;

/// Entries of a leaf, so many that it takes 1 KiB.
pub(super) const CAP: usize = 126;
/// `Leaf::run` when the last change was no insert.
const NO_RUN: u16 = u16::MAX;

/// TIDs in the order of their rows' keys.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Leaf {
    tids: [u64; CAP],
    pub(super) links: Links,
    len: u16,
    /// The position after the last inserted entry: where the next of an ascending run comes.
    run: u16,
}

const _: () = assert!(size_of::<Leaf>() == 1024);

impl Node for Leaf {
    const EMPTY: Self = Self { tids: [0; CAP], links: Links::NONE, len: 0, run: NO_RUN };
}

impl Linked for Leaf {
    #[inline]
    fn links(&self) -> Links {
        self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Leaf {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == CAP
    }

    #[inline]
    pub(super) fn tids(&self) -> &[u64] {
        &self.tids[..self.len()]
    }

    /// Whether the last change put an entry at the end.
    #[inline]
    pub(super) fn grows_at_end(&self) -> bool {
        self.run == self.len
    }

    /// The entry at the probe's place, or where it would be.
    #[inline]
    pub(super) fn search(&self, probe: &Probe<'_>, stored: &mut impl StoredKeys) -> Result<usize, usize> {
        self.tids().binary_search_by(|tid| probe.order(*tid, stored).reverse())
    }

    /// Where a probe that is at no entry would be, if that is in `from..=to`.
    pub(super) fn search_within(
        &self,
        from: usize,
        to: usize,
        probe: &Probe<'_>,
        stored: &mut impl StoredKeys,
    ) -> usize {
        from + self.tids[from..to].partition_point(|tid| probe.order(*tid, stored).is_gt())
    }

    /// Puts an entry at `at`; there is room.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, tid: u64) {
        let len = self.len();
        assert!(at <= len && len < CAP, "there is room for one more");
        self.tids.copy_within(at..len, at + 1);
        self.tids[at] = tid;
        self.len += 1;
        self.run = at as u16 + 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) -> u64 {
        let len = self.len();
        assert!(at < len, "the entry is there");
        let tid = self.tids[at];
        self.tids.copy_within(at + 1..len, at);
        self.len -= 1;
        // The run goes on one to the left if the hole was before it.
        if self.run != NO_RUN && at < self.run as usize {
            self.run -= 1;
        }
        tid
    }

    /// Gives the entry at `at` the TID `new` in the place of `old`.
    pub(super) fn replace(&mut self, at: usize, old: u64, new: u64) {
        assert_eq!(self.tids()[at], old, "the entry is there");
        self.tids[at] = new;
    }

    /// Puts `tid` in the place of the entry at `at`; a search found that it would be at `place`.
    pub(super) fn exchange(&mut self, at: usize, place: usize, tid: u64) {
        let run = self.run;
        self.remove(at);
        self.insert(if place > at { place - 1 } else { place }, tid);
        // Nothing came in, so a run goes on where it did.
        self.run = run;
    }

    /// Where to cut this full leaf when an entry comes in at `at`.
    pub(super) fn cut(&self, at: usize) -> usize {
        cut(self.links, self.run, CAP, at)
    }

    /// Moves the entries from `at` on to the front of the empty leaf `right`.
    pub(super) fn split_off(&mut self, at: usize, right: &mut Leaf) {
        debug_assert!(right.len() == 0 && at <= self.len(), "what is split off goes to an empty node");
        let moved = self.len() - at;
        right.tids[..moved].copy_from_slice(&self.tids[at..at + moved]);
        right.len = moved as u16;
        self.len = at as u16;
        self.run = NO_RUN;
    }

    /// Takes over all entries of the leaf to the right.
    pub(super) fn absorb(&mut self, right: &Leaf) {
        let (len, more) = (self.len(), right.len());
        assert!(len + more <= CAP, "two leaves that are merged fit one");
        self.tids[len..len + more].copy_from_slice(right.tids());
        self.len += right.len;
        self.run = NO_RUN;
    }
}
