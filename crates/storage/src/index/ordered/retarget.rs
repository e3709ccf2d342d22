//! Entries that get another TID: their rows have moved.

use std::cmp::Ordering;

use super::super::InsertError;
use super::super::levels::Levels;
use super::super::pages::NONE;
use super::OrderedIndex;
use super::node::Leaf;

impl Leaf {
    /// Gives the entry at `at` the TID `new` in the place of `old`.
    fn retarget(&mut self, at: usize, old: u64, new: u64) {
        assert!(at < self.len() && self.tids[at] == old, "the entry is there");
        self.tids[at] = new;
    }

    /// Puts `entry` in the place of the one at `at`; a search found that it would be at `place`.
    fn exchange(&mut self, at: usize, place: usize, entry: (u128, u64)) {
        let run = self.run;
        self.remove(at);
        self.insert(if place > at { place - 1 } else { place }, entry.0, entry.1);
        // Nothing came in, so a run goes on where it did.
        self.run = run;
    }
}

impl OrderedIndex {
    /// Gives the entry for which `tie` says `Equal` the TID `new` in the place of `old`. Takes no memory. For trees in
    /// which TIDs have no part in the order.
    ///
    /// # Panics
    /// There is no such entry.
    #[inline]
    pub fn retarget(&mut self, prefix: u128, old: u64, new: u64, mut tie: impl FnMut(u64) -> Ordering) {
        if let Some(leaf) = self.hot.covering(prefix) {
            let leaf = self.leaves.get_mut(leaf);
            let at = leaf.search(prefix, &mut tie).expect("the entry is there");
            // Not the first entry, so no separator changes.
            debug_assert!(at > 0, "an entry between the bounds is not the first (O-4)");
            return leaf.retarget(at, old, new);
        }
        self.retarget_descending(prefix, (old, new), &mut tie);
    }

    #[inline(never)]
    fn retarget_descending(
        &mut self,
        prefix: u128,
        (old, new): (u64, u64),
        tie: &mut impl FnMut(u64) -> Ordering,
    ) {
        assert!(!self.levels.is_empty(), "the entry is there");
        let mut path = Levels::no_path();
        let (id, _) = self.levels.descend(prefix, tie, &mut path);
        let leaf = self.leaves.get_mut(id);
        let at = leaf.search(prefix, tie).expect("the entry is there");
        leaf.retarget(at, old, new);
        if at == 0 {
            self.levels.set_first(&path, (prefix, new));
        }
    }

    /// Puts the entry `new`, a prefix and a TID, in the place of `old`. For trees in which entries of one key are ordered
    /// by their TIDs; `tie` compares keys only. Takes memory only if the new entry's place is in another leaf, and that
    /// is full.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when the new entry is there, [`InsertError::OutOfMemory`] when the pool refuses a node;
    /// the tree is then as it was.
    ///
    /// # Panics
    /// The old entry is not there.
    pub fn exchange(
        &mut self,
        old: (u128, u64),
        new: (u128, u64),
        mut tie: impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        assert!(!self.levels.is_empty(), "the old entry is there");
        let mut path = Levels::no_path();
        let mut old_order = |stored: u64| tie(stored).then(old.1.cmp(&stored));
        let (id, _) = self.levels.descend(old.0, &mut old_order, &mut path);
        let at = self.leaves.get(id).search(old.0, &mut old_order).expect("the old entry is there");
        assert_eq!(self.leaves.get(id).tids[at], old.1, "the old entry is there");
        let mut new_order = |stored: u64| tie(stored).then(new.1.cmp(&stored));
        let new_id = self.levels.leaf_of(new.0, &mut new_order).expect("the tree is not empty");
        let place = match self.leaves.get(new_id).search(new.0, &mut new_order) {
            Ok(at) => return Err(InsertError::Duplicate(self.leaves.get(new_id).tids[at])),
            Err(place) => place,
        };
        // The end of the leaf before is the same place as the front of this one. The bounds of the leaf before stay
        // right (O-4) if the prefix does.
        let is_before = at == 0 && old.0 == new.0 && {
            let before = self.leaves.get(new_id);
            before.links.next == id && place == before.len()
        };
        if new_id != id && !is_before {
            let leaf = self.leaves.get_mut(new_id);
            if !leaf.is_full() {
                // Only of the first leaf it may be the first entry, so no separator changes; nor does the way to the
                // old one.
                debug_assert!(
                    place > 0 || leaf.links.prev == NONE,
                    "a separator is not above what is right of it (O-2)"
                );
                leaf.insert(place, new.0, new.1);
                self.len += 1;
                let removed = self.take_out(id, at, &path);
                assert_eq!(removed, old.1, "the old entry is there");
                return Ok(());
            }
            self.insert(new.0, new.1, new_order)?;
            let old_order = |stored: u64| tie(stored).then(old.1.cmp(&stored));
            let removed = self.remove(old.0, old_order);
            assert_eq!(removed, Some(old.1), "the old entry is there");
            return Ok(());
        }
        let place = if is_before { 0 } else { place };
        let leaf = self.leaves.get_mut(id);
        let first = leaf.entry(0);
        leaf.exchange(at, place, new);
        let now_first = leaf.entry(0);
        if now_first != first {
            if now_first.0 > first.0 {
                self.hot.raise(id, now_first.0);
            }
            // A lower prefix can only be that of the first leaf, left of which there is no separator.
            self.levels.set_first(&path, now_first);
        }
        Ok(())
    }
}
