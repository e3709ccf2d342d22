//! Leaves and what can be done to one or two of them alone.

use std::cmp::Ordering;

use super::super::leaves::{Linked, Links};
use super::super::pages::Node;
use super::super::search::{CAP, Keys, among_equals};

/// `Leaf::run` when the last change was no insert.
pub(super) const NO_RUN: u16 = u16::MAX;

/// Entries in order. 1600 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Leaf {
    pub(super) keys: Keys,
    pub(super) tids: [u64; CAP],
    pub(super) links: Links,
    pub(super) len: u16,
    /// The position after the last inserted entry: where the next of an ascending run comes.
    pub(super) run: u16,
}

impl Node for Leaf {
    const EMPTY: Self = Self { len: 0, run: NO_RUN, links: Links::NONE, keys: Keys::FILLED, tids: [0; CAP] };
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
    pub(super) fn entry(&self, at: usize) -> (u128, u64) {
        (self.keys.get(at), self.tids[at])
    }

    #[inline]
    pub(super) fn last(&self) -> (u128, u64) {
        self.entry(self.len() - 1)
    }

    /// The entry equal to the probe, or where it would be.
    #[inline]
    pub(super) fn search(&self, prefix: u128, tie: &mut impl FnMut(u64) -> Ordering) -> Result<usize, usize> {
        let at = self.keys.below_for_tid(&self.tids, prefix);
        // Only a prefix of all ones can equal the filling; so the line with `len` is mostly unread.
        if at == CAP || self.keys.get(at) != prefix || (prefix == u128::MAX && at >= self.len()) {
            return Err(at);
        }
        // Mostly there is one entry with the prefix.
        match tie(self.tids[at]) {
            Ordering::Equal => Ok(at),
            Ordering::Less => Err(at),
            Ordering::Greater => among_equals(&self.tids, at + 1, self.keys.up_to(self.len(), prefix), tie),
        }
    }

    /// [`Leaf::search`] that looks first where a run would go on.
    #[inline]
    pub(super) fn search_run(
        &self,
        prefix: u128,
        tie: &mut impl FnMut(u64) -> Ordering,
    ) -> Result<usize, usize> {
        let run = self.run as usize;
        // Past the length lies the filling, which is above any prefix but itself.
        if run > 0
            && run < CAP
            && self.keys.get(run - 1) < prefix
            && prefix < self.keys.get(run)
            && run <= self.len()
        {
            return Err(run);
        }
        self.search(prefix, tie)
    }

    /// Puts an entry at `at`; there is room.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, prefix: u128, tid: u64) {
        let len = self.len();
        assert!(at <= len && len < CAP, "there is room for one more");
        debug_assert!(at == 0 || self.keys.get(at - 1) <= prefix, "entries ascend (O-1)");
        debug_assert!(at == len || prefix <= self.keys.get(at), "entries ascend (O-1)");
        if at < len {
            self.tids.copy_within(at..len, at + 1);
        }
        self.keys.insert(at, len, prefix);
        self.tids[at] = tid;
        self.len += 1;
        self.run = at as u16 + 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) -> u64 {
        let len = self.len();
        assert!(at < len, "the entry is there");
        let tid = self.tids[at];
        self.keys.remove(at, len);
        self.tids.copy_within(at + 1..len, at);
        self.len -= 1;
        // The run goes on one to the left if the hole was before it.
        if self.run != NO_RUN && at < self.run as usize {
            self.run -= 1;
        }
        tid
    }

    /// Moves the entries from `at` on to the front of the empty leaf `right`.
    pub(super) fn split_off(&mut self, at: usize, right: &mut Leaf) {
        debug_assert!(right.len() == 0 && at <= self.len(), "what is split off goes to an empty node");
        let moved = self.len() - at;
        right.keys.copy_from(0, &self.keys, at, moved);
        right.tids[..moved].copy_from_slice(&self.tids[at..at + moved]);
        right.len = moved as u16;
        self.keys.fill_from(at);
        self.len = at as u16;
        self.run = NO_RUN;
    }

    /// Takes over all entries of the leaf to the right.
    pub(super) fn absorb(&mut self, right: &Leaf) {
        let (len, more) = (self.len(), right.len());
        assert!(len + more <= CAP, "two leaves that are merged fit one");
        debug_assert!(self.last().0 <= right.entry(0).0, "leaves ascend (O-1)");
        self.keys.copy_from(len, &right.keys, 0, more);
        self.tids[len..len + more].copy_from_slice(&right.tids[..more]);
        self.len += right.len;
        self.run = NO_RUN;
    }
}
