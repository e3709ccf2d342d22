//! Inserts that leave the remembered leaf, and splits.

use std::cmp::Ordering;

use super::super::InsertError;
use super::super::leaves::cut;
use super::super::levels::{Levels, Path};
use super::super::search::CAP;
use super::OrderedIndex;
use super::hot::Hot;

impl OrderedIndex {
    #[inline(never)]
    pub(super) fn insert_descending(
        &mut self,
        prefix: u128,
        tid: u64,
        tie: &mut impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        if self.levels.is_empty() {
            self.leaves.reserve(1)?;
            let leaf = self.leaves.take();
            self.levels.begin(leaf);
            self.leaf_list.begin(leaf);
        }
        let mut path = Levels::no_path();
        let (id, high) = self.levels.descend(prefix, tie, &mut path);
        let leaf = self.leaves.get_mut(id);
        let at = match leaf.search_run(prefix, tie) {
            Ok(at) => return Err(InsertError::Duplicate(leaf.tids[at])),
            Err(at) => at,
        };
        if leaf.is_full() {
            // All nodes that the split may need (O-5).
            self.levels.reserve_for_split(&path)?;
            self.leaves.reserve(1)?;
            self.insert_splitting(id, at, (prefix, tid), &path, high);
        } else {
            leaf.insert(at, prefix, tid);
            self.hot.remember(prefix, Hot { leaf: id, low: leaf.keys.get(0), high });
        }
        self.len += 1;
        Ok(())
    }

    fn insert_splitting(&mut self, id: u32, at: usize, entry: (u128, u64), path: &Path, high: u128) {
        let right_id = self.leaves.take();
        let (leaf, right) = self.leaves.get_two_mut(id, right_id);
        debug_assert!(leaf.is_full() && right.len() == 0, "a full leaf is split with an empty one");
        let cut = cut(leaf.links, leaf.run, CAP, at);
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
        self.hot.forget(id);
        let hot = match in_left {
            true => Hot { leaf: id, low: leaf.keys.get(0), high: separator.0 },
            false => Hot { leaf: right_id, low: separator.0, high },
        };
        self.hot.remember(entry.0, hot);
        self.leaf_list.link(&mut self.leaves, id, right_id);
        self.levels.insert_child(path, separator, right_id);
    }
}
