//! Ordered index: a B+tree over `(prefix, tid)` with wide nodes.
//!
//! Responsible for: unique and non-unique ordered entries, ranges in both directions, least and
//! greatest. Not responsible for: what a key means; entries with equal prefixes are ordered by the
//! caller's `tie(tid)`, the order of the probe relative to the stored entry.
//!
//! Ascending runs are the normal case of transactions (order numbers, time stamps), also many at
//! once in one index. Hence:
//! - The leaves of the last inserts are remembered, by run, with the prefixes that bound them; the
//!   next insert looks there before it descends (`hot`).
//! - A full leaf whose last insert was just before this one is cut at the insertion point instead
//!   of in the middle, so the run goes on at the end of a leaf and fills it. Descending runs alike.
//!
//! Invariants (`check`):
//! - O-1 Entries are strictly ascending within and across leaves; leaves are linked in that order.
//! - O-2 A separator is exactly the first entry of the subtree to its right. So every TID in the
//!   tree is of a present entry, and `tie` never sees a row that is gone.
//! - O-3 No leaf is empty; keys past a node's length are all ones.
//! - O-4 For each remembered leaf `low < prefix < high` implies that an entry with that prefix can
//!   only be in it, and not first in it.
//! - O-5 `insert` and `exchange` change nothing unless all nodes they may need are there.

use std::cmp::Ordering;

use super::InsertError;
use super::cursor::{self, Chain};
use super::leaves::LeafList;
use super::levels::{Levels, entries_between};
use super::pages::{NONE, Pages};
use crate::pool::BlockPool;

mod check;
mod hot;
mod insert;
mod node;
mod remove;
mod retarget;
#[cfg(test)]
mod tests;

/// A place between two entries of the tree.
pub type Cursor<'a> = cursor::Cursor<'a, OrderedIndex>;
/// Entries between two places of the tree, from either end.
pub type Range<'a> = cursor::Range<'a, OrderedIndex>;

use hot::HotLeaves;
use node::Leaf;

/// The tree. See the module.
pub struct OrderedIndex {
    hot: Box<HotLeaves>,
    levels: Levels,
    leaf_list: LeafList,
    len: usize,
    leaves: Pages<Leaf>,
}

impl Chain for OrderedIndex {
    type Entry = (u128, u64);

    #[inline]
    fn leaf_len(&self, leaf: u32) -> usize {
        self.leaves.get(leaf).len()
    }

    #[inline]
    fn neighbours(&self, leaf: u32) -> (u32, u32) {
        let leaf = self.leaves.get(leaf);
        (leaf.links.prev, leaf.links.next)
    }

    #[inline]
    fn entry(&self, leaf: u32, at: usize) -> (u128, u64) {
        self.leaves.get(leaf).entry(at)
    }
}

impl OrderedIndex {
    /// An empty tree; takes no memory before the first insert.
    pub fn new(pool: &BlockPool) -> Self {
        Self {
            hot: Box::new(HotLeaves::COLD),
            levels: Levels::new(pool),
            leaf_list: LeafList::EMPTY,
            len: 0,
            leaves: Pages::new(pool.clone()),
        }
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        self.leaves.memory_bytes() + self.levels.memory_bytes() + size_of::<HotLeaves>()
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.levels.clear();
        (self.leaf_list, self.len) = (LeafList::EMPTY, 0);
        *self.hot = HotLeaves::COLD;
    }

    /// The TID of the entry for which `tie` says `Equal`.
    #[inline]
    pub fn find(&self, prefix: u128, mut tie: impl FnMut(u64) -> Ordering) -> Option<u64> {
        let leaf = match self.hot.covering(prefix) {
            Some(leaf) => leaf,
            None => self.levels.leaf_of(prefix, &mut tie)?,
        };
        let leaf = self.leaves.get(leaf);
        leaf.search(prefix, &mut tie).ok().map(|at| leaf.tids[at])
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when `tie` says `Equal` to an entry, [`InsertError::OutOfMemory`]
    /// when the pool refuses a node; the tree is then as it was.
    #[inline]
    pub fn insert(
        &mut self,
        prefix: u128,
        tid: u64,
        mut tie: impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        if let Some(leaf) = self.hot.covering(prefix) {
            let leaf = self.leaves.get_mut(leaf);
            match leaf.search_run(prefix, &mut tie) {
                Ok(at) => return Err(InsertError::Duplicate(leaf.tids[at])),
                Err(at) if !leaf.is_full() => {
                    debug_assert!(at > 0, "an entry between the bounds is not the first (O-4)");
                    leaf.insert(at, prefix, tid);
                    self.len += 1;
                    return Ok(());
                }
                Err(_) => {}
            }
        }
        self.insert_descending(prefix, tid, &mut tie)
    }

    /// Adds an entry behind all others, if its prefix is above theirs (or, `by_tid`, the prefix is the last one's and the
    /// TID above), and the last leaf has room; whether it did.
    #[inline]
    pub fn append(&mut self, prefix: u128, tid: u64, by_tid: bool) -> bool {
        if self.leaf_list.last == NONE {
            return false;
        }
        let leaf = self.leaves.get_mut(self.leaf_list.last);
        let last = leaf.last();
        let is_behind = last.0 < prefix || (by_tid && last.0 == prefix && last.1 < tid);
        if !is_behind || leaf.is_full() {
            return false;
        }
        leaf.insert(leaf.len(), prefix, tid);
        self.len += 1;
        true
    }

    /// Removes the entry for which `tie` says `Equal` and returns its TID. Takes no memory.
    #[inline]
    pub fn remove(&mut self, prefix: u128, mut tie: impl FnMut(u64) -> Ordering) -> Option<u64> {
        if let Some(leaf) = self.hot.covering(prefix) {
            let leaf = self.leaves.get_mut(leaf);
            if leaf.len() > remove::MERGE_AT {
                // Not the first entry (O-4), so no separator changes.
                let at = leaf.search(prefix, &mut tie).ok()?;
                debug_assert!(at > 0, "an entry between the bounds is not the first (O-4)");
                debug_assert!(self.len > 0, "entries are counted");
                self.len -= 1;
                return Some(leaf.remove(at));
            }
        }
        if self.leaf_list.first != NONE {
            // The head of a queue: no separator is left of the first leaf, and it stays non-empty.
            let leaf = self.leaves.get_mut(self.leaf_list.first);
            if prefix < leaf.last().0 {
                let at = leaf.search(prefix, &mut tie).ok()?;
                let removed = leaf.remove(at);
                debug_assert!(leaf.len() > 0, "an entry behind it stays (O-3)");
                if at == 0 {
                    self.hot.raise(self.leaf_list.first, leaf.keys.get(0));
                }
                self.len -= 1;
                return Some(removed);
            }
        }
        self.remove_descending(prefix, &mut tie)
    }

    /// The least entry.
    #[inline]
    pub fn first(&self) -> Option<(u128, u64)> {
        debug_assert_eq!(self.leaf_list.first == NONE, self.len == 0, "a tree with entries has a first leaf");
        (self.leaf_list.first != NONE).then(|| self.leaves.get(self.leaf_list.first).entry(0))
    }

    /// The greatest entry.
    #[inline]
    pub fn last(&self) -> Option<(u128, u64)> {
        debug_assert_eq!(self.leaf_list.last == NONE, self.len == 0, "a tree with entries has a last leaf");
        (self.leaf_list.last != NONE).then(|| self.leaves.get(self.leaf_list.last).last())
    }

    /// A cursor before the first entry that is not below the probe. With `|_| Ordering::Equal`:
    /// before all entries that have the prefix.
    #[inline]
    pub fn lower_bound(&self, prefix: u128, mut tie: impl FnMut(u64) -> Ordering) -> Cursor<'_> {
        Cursor::at(self, self.bound(prefix, &mut |tid| tie(tid).then(Ordering::Less)))
    }

    /// A cursor before the first entry above the probe. With `|_| Ordering::Equal`: after all
    /// entries that have the prefix.
    #[inline]
    pub fn upper_bound(&self, prefix: u128, mut tie: impl FnMut(u64) -> Ordering) -> Cursor<'_> {
        Cursor::at(self, self.bound(prefix, &mut |tid| tie(tid).then(Ordering::Greater)))
    }

    /// All entries in order.
    pub fn iter(&self) -> Range<'_> {
        self.range(0, u128::MAX)
    }

    /// The entries whose prefix is in `low..=high`, in order.
    #[inline]
    pub fn range(&self, low: u128, high: u128) -> Range<'_> {
        if low > high {
            return Range::empty(self);
        }
        let front = self.bound(low, &mut |_| Ordering::Less);
        let back = match self.bound_nearby(front, high) {
            Some(back) => back,
            None => self.bound(high, &mut |_| Ordering::Greater),
        };
        Range::between(self, front, back)
    }

    /// About how many entries have a prefix in `low..=high`: exact if they are in at most 48 leaves. At each
    /// level so many nodes are looked at, spread evenly from the first to the last, and the others are taken to be like
    /// these.
    pub fn estimate(&self, low: u128, high: u128) -> usize {
        if self.levels.is_empty() || low > high {
            return 0;
        }
        if (low, high) == (0, u128::MAX) {
            return self.len;
        }
        let (mut ways, mut places) = ([Levels::no_path(); 2], [0; 2]);
        for (n, (prefix, order)) in [(low, Ordering::Less), (high, Ordering::Greater)].into_iter().enumerate()
        {
            let tie = &mut |_| order;
            let (id, _) = self.levels.descend(prefix, tie, &mut ways[n]);
            let (Ok(at) | Err(at)) = self.leaves.get(id).search(prefix, tie);
            places[n] = at;
        }
        let (seen, nodes) = self.levels.spread_leaves(&ways[0], &ways[1]);
        let sizes: Vec<usize> = seen.iter().map(|id| self.leaves.get(*id).len()).collect();
        (entries_between(&sizes, nodes, places[0], places[1]) as usize).min(self.len)
    }

    /// The entries between two probes, in order. The ties tell the order of each probe among the
    /// entries with its prefix; entries equal to a probe are included (a caller that wants them left
    /// out turns `Equal` into `Greater` for the low probe, `Less` for the high one).
    ///
    /// The low probe must not be above the high one.
    pub fn range_ties(
        &self,
        low: (u128, impl FnMut(u64) -> Ordering),
        high: (u128, impl FnMut(u64) -> Ordering),
    ) -> Range<'_> {
        Range::between_cursors(self.lower_bound(low.0, low.1), self.upper_bound(high.0, high.1))
    }

    /// Asks the processor for the leaf where `prefix` is or would be.
    #[inline]
    pub fn prefetch(&self, prefix: u128) {
        let leaf = self.hot.covering(prefix).or_else(|| self.levels.leaf_of(prefix, &mut |_| Ordering::Less));
        if let Some(leaf) = leaf {
            self.leaves.get(leaf).keys.prefetch();
        }
    }

    /// The leaf and position where the probe, to which `tie` calls no entry equal, would be.
    #[inline]
    fn bound(&self, prefix: u128, tie: &mut impl FnMut(u64) -> Ordering) -> (u32, usize) {
        let Some(leaf) = self.levels.leaf_of(prefix, tie) else { return (NONE, 0) };
        match self.leaves.get(leaf).search(prefix, tie) {
            Ok(at) | Err(at) => (leaf, at),
        }
    }

    /// The place after all entries up to prefix `high`, if it is in the leaf of `front` or the next.
    #[inline]
    fn bound_nearby(&self, front: (u32, usize), high: u128) -> Option<(u32, usize)> {
        let mut id = front.0;
        for _ in 0..2 {
            if id == NONE {
                return None;
            }
            let leaf = self.leaves.get(id);
            if high < leaf.last().0 {
                return Some((id, leaf.keys.up_to(leaf.len(), high)));
            }
            id = leaf.links.next;
        }
        None
    }
}
