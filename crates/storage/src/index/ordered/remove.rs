//! Removal that may change separators, merge nodes or empty the tree.

use std::cmp::Ordering;

use super::super::levels::{Levels, Path};
use super::super::search::CAP;
use super::OrderedIndex;

/// A node with so few entries looks for a neighbour to merge with.
pub(super) const MERGE_AT: usize = CAP / 4;
/// Two nodes merge when they have at most so many entries together: room is left for inserts.
const MERGED_MAX: usize = CAP * 3 / 4;

impl OrderedIndex {
    #[inline(never)]
    pub(super) fn remove_descending(
        &mut self,
        prefix: u128,
        tie: &mut impl FnMut(u64) -> Ordering,
    ) -> Option<u64> {
        if self.levels.is_empty() {
            return None;
        }
        let mut path = Levels::no_path();
        let (id, _) = self.levels.descend(prefix, tie, &mut path);
        let at = self.leaves.get(id).search(prefix, tie).ok()?;
        Some(self.take_out(id, at, &path))
    }

    /// Removes the entry at a place in the leaf that `path` leads to, and returns its TID.
    pub(super) fn take_out(&mut self, id: u32, at: usize, path: &Path) -> u64 {
        let leaf = self.leaves.get_mut(id);
        let tid = leaf.remove(at);
        let len = leaf.len();
        debug_assert!(self.len > 0, "entries are counted");
        self.len -= 1;
        if len == 0 {
            self.unlink_leaf(id);
            self.levels.remove_child(path);
            assert_eq!(self.levels.is_empty(), self.len == 0, "only an empty tree has no root");
            return tid;
        }
        if at == 0 {
            let first = leaf.entry(0);
            self.hot.raise(id, first.0);
            self.levels.set_first(path, first);
        }
        if len <= MERGE_AT {
            self.merge_leaf(id, path);
        }
        tid
    }

    /// Takes a leaf out of the list and frees it.
    fn unlink_leaf(&mut self, id: u32) {
        self.leaf_list.unlink(&mut self.leaves, id);
        self.hot.forget(id);
    }

    fn merge_leaf(&mut self, id: u32, path: &Path) {
        let len = |id: u32| self.leaves.get(id).len();
        let Some((at, left_id, right_id)) = self.levels.mergeable_leaves(path, id, len, MERGED_MAX) else {
            return;
        };
        let (left, right) = self.leaves.get_two_mut(left_id, right_id);
        left.absorb(right);
        self.unlink_leaf(right_id);
        self.levels.remove_merged(path, at);
    }
}
