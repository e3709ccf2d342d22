//! Removal that may change separators, merge nodes or empty the tree.

use std::cmp::Ordering;

use super::super::pages::NONE;
use super::search::CAP;
use super::{MAX_HEIGHT, OrderedIndex, Path};

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
        if self.root == NONE {
            return None;
        }
        let mut path = [(NONE, 0); MAX_HEIGHT];
        let (id, _) = self.descend(prefix, tie, &mut path);
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
            self.remove_child(path);
            return tid;
        }
        if at == 0 {
            let first = leaf.entry(0);
            self.hot.raise(id, first.0);
            self.set_separator(&path[..self.height as usize], first);
        }
        if len <= MERGE_AT {
            self.merge_leaf(id, path);
        }
        tid
    }

    /// Sets the separator left of the subtree that `steps` lead to: its first entry changed (O-2).
    pub(super) fn set_separator(&mut self, steps: &[(u32, u32)], first: (u128, u64)) {
        if let Some(&(id, at)) = steps.iter().rev().find(|step| step.1 > 0) {
            let inner = self.inners.get_mut(id);
            inner.keys.set(at as usize - 1, first.0);
            inner.tids[at as usize - 1] = first.1;
        }
    }

    /// Takes a leaf out of the list and frees it.
    fn unlink_leaf(&mut self, id: u32) {
        let leaf = self.leaves.get(id);
        let (prev, next) = (leaf.prev, leaf.next);
        match prev {
            NONE => {
                debug_assert_eq!(self.first, id, "a leaf without one before it is the first (O-1)");
                self.first = next;
            }
            prev => {
                let before = self.leaves.get_mut(prev);
                debug_assert_eq!(before.next, id, "leaves are linked both ways (O-1)");
                before.next = next;
            }
        }
        match next {
            NONE => {
                debug_assert_eq!(self.last, id, "a leaf without one behind it is the last (O-1)");
                self.last = prev;
            }
            next => {
                let behind = self.leaves.get_mut(next);
                debug_assert_eq!(behind.prev, id, "leaves are linked both ways (O-1)");
                behind.prev = prev;
            }
        }
        self.leaves.free(id);
        self.hot.forget(id);
    }

    /// Removes the child that `path` leads to, and the nodes above that have no other.
    fn remove_child(&mut self, path: &Path) {
        let mut level = self.height as usize;
        loop {
            if level == 0 {
                assert_eq!(self.len, 0, "only an empty tree has no root");
                self.root = NONE;
                self.height = 0;
                return;
            }
            level -= 1;
            let (id, at) = path[level];
            let inner = self.inners.get_mut(id);
            if inner.len() > 0 {
                let first = inner.remove(at as usize);
                if at == 0 {
                    self.set_separator(&path[..level], first);
                }
                break;
            }
            self.inners.free(id);
        }
        self.merge_inners(path, level);
        self.lower_root();
    }

    fn merge_leaf(&mut self, id: u32, path: &Path) {
        let Some(level) = (self.height as usize).checked_sub(1) else { return };
        let (parent, at) = (path[level].0, path[level].1 as usize);
        let inner = self.inners.get(parent);
        debug_assert_eq!(inner.children[at], id, "the path leads to the leaf");
        let len = |at: usize| self.leaves.get(inner.children[at]).len();
        let Some(left_at) = mergeable(inner.len(), at, len, 0) else { return };
        let (left_id, right_id) = (inner.children[left_at], inner.children[left_at + 1]);
        let (left, right) = self.leaves.get_two_mut(left_id, right_id);
        left.absorb(right);
        self.unlink_leaf(right_id);
        self.inners.get_mut(parent).remove(left_at + 1);
        self.merge_inners(path, level);
        self.lower_root();
    }

    /// Merges the node of `path` at `level`, and those above it, with neighbours while they are thin.
    fn merge_inners(&mut self, path: &Path, level: usize) {
        for level in (1..=level).rev() {
            if self.inners.get(path[level].0).len() > MERGE_AT {
                return;
            }
            let (parent, at) = (path[level - 1].0, path[level - 1].1 as usize);
            let above = self.inners.get(parent);
            debug_assert_eq!(above.children[at], path[level].0, "the path leads to the node");
            let len = |at: usize| self.inners.get(above.children[at]).len();
            let Some(left_at) = mergeable(above.len(), at, len, 1) else { return };
            let (left_id, right_id) = (above.children[left_at], above.children[left_at + 1]);
            let separator = self.inners.get_mut(parent).remove(left_at + 1);
            let (left, right) = self.inners.get_two_mut(left_id, right_id);
            left.absorb(separator, right);
            self.inners.free(right_id);
        }
    }

    /// Drops roots that have one child.
    fn lower_root(&mut self) {
        while self.height > 0 && self.inners.get(self.root).len() == 0 {
            let child = self.inners.get(self.root).children[0];
            debug_assert_ne!(child, NONE, "a node has a child");
            self.inners.free(self.root);
            self.root = child;
            self.height -= 1;
        }
    }
}

/// The left one of two neighbours that may merge: the child at `at`, of children `0..=last`, and
/// the one after or before it.
fn mergeable(last: usize, at: usize, len: impl Fn(usize) -> usize, more: usize) -> Option<usize> {
    let fits = |left: usize| len(left) + len(left + 1) + more <= MERGED_MAX;
    if at < last && fits(at) {
        return Some(at);
    }
    (at > 0 && fits(at - 1)).then(|| at - 1)
}
