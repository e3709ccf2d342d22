//! Inserts that leave the remembered leaf, and splits.

use std::cmp::Ordering;

use super::super::InsertError;
use super::super::pages::NONE;
use super::hot::Hot;
use super::node::{Inner, Leaf};
use super::search::CAP;
use super::{MAX_HEIGHT, OrderedIndex, Path};

impl Leaf {
    /// Where to cut this full leaf when an entry comes in at `at`.
    fn cut(&self, at: usize) -> usize {
        let run = self.run as usize;
        let ascending = run == at || (at == CAP && self.next == NONE);
        // Descending runs keep what is below them on the left; only while that is little.
        let descending = (run == at + 1 && at <= CAP / 2) || (at == 0 && self.prev == NONE);
        if ascending || descending { at } else { CAP / 2 }
    }
}

impl Inner {
    /// Splits this full node and puts `child` right of the child at `at`. Returns the separator
    /// between this node and `right`.
    fn split_insert(
        &mut self,
        at: usize,
        separator: (u128, u64),
        child: u32,
        right: &mut Inner,
    ) -> (u128, u64) {
        let ascending = self.run as usize == at;
        if ascending && at == CAP {
            right.children[0] = child;
            right.run = 0;
            return separator;
        }
        let keep = if ascending { at } else { CAP / 2 };
        let middle = self.split_off(keep, right);
        if at <= keep {
            self.insert(at, separator, child);
        } else {
            right.insert(at - keep - 1, separator, child);
        }
        middle
    }
}

impl OrderedIndex {
    #[inline(never)]
    pub(super) fn insert_descending(
        &mut self,
        prefix: u128,
        tid: u64,
        tie: &mut impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        if self.root == NONE {
            self.leaves.reserve(1)?;
            self.root = self.leaves.take();
            (self.first, self.last) = (self.root, self.root);
        }
        let mut path = [(NONE, 0); MAX_HEIGHT];
        let (id, high) = self.descend(prefix, tie, &mut path);
        let leaf = self.leaves.get_mut(id);
        let at = match leaf.search_run(prefix, tie) {
            Ok(at) => return Err(InsertError::Duplicate(leaf.tids[at])),
            Err(at) => at,
        };
        if leaf.is_full() {
            self.reserve_for_split(&path)?;
            self.insert_splitting(id, at, (prefix, tid), &path, high);
        } else {
            leaf.insert(at, prefix, tid);
            self.hot.remember(prefix, Hot { leaf: id, low: leaf.keys.get(0), high });
        }
        self.len += 1;
        Ok(())
    }

    /// The nodes that a split of the leaf at the end of `path` may need (O-5).
    fn reserve_for_split(&mut self, path: &Path) -> Result<(), InsertError> {
        let height = self.height as usize;
        let full = path[..height].iter().rev().take_while(|step| self.inners.get(step.0).is_full()).count();
        let new_root = (full == height) as usize;
        assert!(height + new_root <= MAX_HEIGHT, "the tree is too high");
        self.inners.reserve(full + new_root)?;
        self.leaves.reserve(1)?;
        Ok(())
    }

    fn insert_splitting(&mut self, id: u32, at: usize, entry: (u128, u64), path: &Path, high: u128) {
        let right_id = self.leaves.take();
        let (leaf, right) = self.leaves.get_two_mut(id, right_id);
        debug_assert!(leaf.is_full() && right.len() == 0, "a full leaf is split with an empty one");
        let cut = leaf.cut(at);
        if cut < CAP {
            leaf.split_off(cut, right);
        }
        let in_left = at <= cut && cut < CAP;
        if in_left {
            leaf.insert(at, entry.0, entry.1);
        } else {
            right.insert(at - cut, entry.0, entry.1);
        }
        assert!(leaf.len() > 0 && right.len() > 0, "no leaf is empty (O-3)");
        assert_eq!(leaf.len() + right.len(), CAP + 1, "a split loses no entry");
        let separator = right.entry(0);
        debug_assert!(leaf.last().0 <= separator.0, "leaves ascend (O-1)");
        right.prev = id;
        right.next = leaf.next;
        leaf.next = right_id;
        self.hot.forget(id);
        let hot = match in_left {
            true => Hot { leaf: id, low: leaf.keys.get(0), high: separator.0 },
            false => Hot { leaf: right_id, low: separator.0, high },
        };
        self.hot.remember(entry.0, hot);
        let after = right.next;
        if after == NONE {
            self.last = right_id;
        } else {
            let after = self.leaves.get_mut(after);
            debug_assert_eq!(after.prev, id, "leaves are linked both ways (O-1)");
            after.prev = right_id;
        }
        self.insert_child(path, separator, right_id);
    }

    /// Enters a new child, right of the one that `path` leads to, in the nodes above.
    fn insert_child(&mut self, path: &Path, mut separator: (u128, u64), mut child: u32) {
        for &(id, at) in path[..self.height as usize].iter().rev() {
            let at = at as usize;
            let inner = self.inners.get_mut(id);
            debug_assert!(at <= inner.len(), "the path leads to a child");
            if !inner.is_full() {
                inner.insert(at, separator, child);
                return;
            }
            let right_id = self.inners.take();
            let (inner, right) = self.inners.get_two_mut(id, right_id);
            separator = inner.split_insert(at, separator, child, right);
            child = right_id;
        }
        assert!((self.height as usize) < MAX_HEIGHT, "the tree is too high");
        let root = self.inners.take();
        let inner = self.inners.get_mut(root);
        inner.children[0] = self.root;
        inner.insert(0, separator, child);
        self.root = root;
        self.height += 1;
    }
}
