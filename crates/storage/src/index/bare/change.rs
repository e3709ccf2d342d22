//! Entries come, go and get other TIDs.

use super::super::levels::{Levels, Path};
use super::super::pages::NONE;
use super::super::{InsertError, StoredKeys};
use super::node::CAP;
use super::{BareIndex, KeyRef, OutOfMemory, Probe, Then, What};

/// A leaf with so few entries looks for a neighbour to merge with.
const MERGE_AT: usize = CAP / 4;
/// Two leaves merge when they have at most so many entries together: room is left for inserts.
const MERGED_MAX: usize = CAP * 3 / 4;

impl BareIndex {
    /// Adds an entry; `tid` is below `2^63`.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when the key is there (in an index that is not unique: with this TID),
    /// [`InsertError::OutOfMemory`] when the pool refuses; the index is then as it was.
    pub fn insert(
        &mut self,
        key: KeyRef<'_>,
        tid: u64,
        stored: &mut impl StoredKeys,
    ) -> Result<(), InsertError> {
        if self.is_empty() {
            return Ok(self.append(key.prefix, tid)?);
        }
        let probe = self.entry_probe(key, tid);
        if self.comes_last(&probe, stored) {
            return Ok(self.append(key.prefix, tid)?);
        }
        let mut path = Levels::no_path();
        let id = self.descend(&probe, stored, &mut path);
        match self.leaves.get(id).search(&probe, stored) {
            Ok(at) => Err(InsertError::Duplicate(self.leaves.get(id).tids()[at])),
            Err(at) => Ok(self.put_in((id, at), (key.prefix, tid), &path, stored)?),
        }
    }

    /// Adds an entry behind all others, where the caller knows that it belongs; `prefix` are the first 16 bytes of its
    /// key. Looks at no row.
    ///
    /// # Errors
    /// The pool refuses memory; the index is then as it was.
    pub fn append(&mut self, prefix: u128, tid: u64) -> Result<(), OutOfMemory> {
        if self.levels.is_empty() {
            self.leaves.reserve(1)?;
            let leaf = self.leaves.take();
            self.levels.begin(leaf);
            self.leaf_list.begin(leaf);
        }
        let last = self.leaves.get_mut(self.leaf_list.last);
        if !last.is_full() {
            last.insert(last.len(), tid);
            self.len += 1;
            return Ok(());
        }
        let mut path = Levels::no_path();
        let id = self.levels.descend_to_last(&mut path);
        debug_assert_eq!(id, self.leaf_list.last, "the last leaf is the last of the list (B-2)");
        self.reserve_for_split(&path)?;
        let right = self.split((id, CAP), tid);
        self.levels.insert_child(&path, (prefix, tid), right);
        Ok(())
    }

    /// Whether a probe is behind all entries: asked where the last one came so too, as in runs that ascend.
    fn comes_last(&self, probe: &Probe<'_>, stored: &mut impl StoredKeys) -> bool {
        let last = self.leaves.get(self.leaf_list.last);
        last.grows_at_end() && probe.order(last.tids()[last.len() - 1], stored).is_gt()
    }

    /// The nodes that a split of the leaf at the end of `path` may need (B-5).
    fn reserve_for_split(&mut self, path: &Path) -> Result<(), OutOfMemory> {
        self.levels.reserve_for_split(path)?;
        self.leaves.reserve(1)
    }

    /// Puts an entry in at a place to which `path` leads.
    fn put_in(
        &mut self,
        (id, at): (u32, usize),
        (prefix, tid): (u128, u64),
        path: &Path,
        stored: &mut impl StoredKeys,
    ) -> Result<(), OutOfMemory> {
        let leaf = self.leaves.get_mut(id);
        debug_assert!(
            at > 0 || leaf.links.prev == NONE,
            "a separator is not above what is right of it (B-3)"
        );
        if !leaf.is_full() {
            leaf.insert(at, tid);
            self.len += 1;
            return Ok(());
        }
        self.reserve_for_split(path)?;
        let right = self.split((id, at), tid);
        let first = self.leaves.get(right).tids()[0];
        let prefix = if first == tid { prefix } else { stored.prefix(first) };
        self.levels.insert_child(path, (prefix, first), right);
        Ok(())
    }

    /// Splits a full leaf into which an entry comes at `at`; gives the new one, to the right, which has no separator yet.
    fn split(&mut self, (id, at): (u32, usize), tid: u64) -> u32 {
        let right_id = self.leaves.take();
        let (leaf, right) = self.leaves.get_two_mut(id, right_id);
        debug_assert!(leaf.is_full() && right.len() == 0, "a full leaf is split with an empty one");
        let cut = leaf.cut(at);
        if cut < CAP {
            leaf.split_off(cut, right);
        }
        if at <= cut && cut < CAP {
            leaf.insert(at, tid);
        } else {
            right.insert(at - cut, tid);
        }
        assert!(leaf.len() > 0 && right.len() > 0, "no leaf is empty (B-4)");
        assert_eq!(leaf.len() + right.len(), CAP + 1, "a split loses no entry");
        self.leaf_list.link(&mut self.leaves, id, right_id);
        self.len += 1;
        right_id
    }

    /// Removes the entry of a key, in an index that is not unique that with this TID, and returns its TID. Takes no
    /// memory.
    pub fn remove(&mut self, key: KeyRef<'_>, tid: u64, stored: &mut impl StoredKeys) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let (probe, mut path) = (self.entry_probe(key, tid), Levels::no_path());
        let id = self.descend(&probe, stored, &mut path);
        let at = self.leaves.get(id).search(&probe, stored).ok()?;
        Some(self.take_out((id, at), &path, stored))
    }

    /// Removes the entry at a place to which `path` leads, and returns its TID.
    fn take_out(&mut self, (id, at): (u32, usize), path: &Path, stored: &mut impl StoredKeys) -> u64 {
        let leaf = self.leaves.get_mut(id);
        let tid = leaf.remove(at);
        let len = leaf.len();
        debug_assert!(self.len > 0, "entries are counted");
        self.len -= 1;
        if len == 0 {
            self.leaf_list.unlink(&mut self.leaves, id);
            self.levels.remove_child(path);
            assert_eq!(self.levels.is_empty(), self.len == 0, "only an empty tree has no root");
            return tid;
        }
        if at == 0 && leaf.links.prev != NONE {
            // The separator has a TID that is none of an entry now (B-3).
            let first = leaf.tids()[0];
            self.levels.set_first(path, (stored.prefix(first), first));
        }
        if len <= MERGE_AT {
            self.merge_leaf(id, path);
        }
        tid
    }

    fn merge_leaf(&mut self, id: u32, path: &Path) {
        let len = |id: u32| self.leaves.get(id).len();
        let Some((at, left_id, right_id)) = self.levels.mergeable_leaves(path, id, len, MERGED_MAX) else {
            return;
        };
        let (left, right) = self.leaves.get_two_mut(left_id, right_id);
        left.absorb(right);
        self.leaf_list.unlink(&mut self.leaves, right_id);
        self.levels.remove_merged(path, at);
    }

    /// Gives the entry of `key` with the TID `old` the TID `new`: the row has moved. Both rows are there, with this key.
    ///
    /// # Errors
    /// Of an index that is not unique: [`InsertError::Duplicate`] when the key has the new TID already,
    /// [`InsertError::OutOfMemory`] when the pool refuses, which it is asked only if the new place is in another leaf that
    /// is full. The index is then as it was.
    ///
    /// # Panics
    /// There is no such entry.
    pub fn retarget(
        &mut self,
        key: KeyRef<'_>,
        (old, new): (u64, u64),
        stored: &mut impl StoredKeys,
    ) -> Result<(), InsertError> {
        assert!(!self.is_empty(), "the entry is there");
        let (probe, mut path) = (self.entry_probe(key, old), Levels::no_path());
        let id = self.descend(&probe, stored, &mut path);
        let at = self.leaves.get(id).search(&probe, stored).expect("the entry is there");
        if self.unique {
            self.leaves.get_mut(id).replace(at, old, new);
            if at == 0 {
                self.levels.set_first(&path, (key.prefix, new));
            }
            return Ok(());
        }
        let (new_id, place) = self.place(What::Key(key), Then::Tid(new), stored);
        if self.leaves.get(new_id).tids().get(place) == Some(&new) {
            return Err(InsertError::Duplicate(new));
        }
        if new_id != id {
            self.insert(key, new, stored)?;
            let removed = self.remove(key, old, stored);
            assert_eq!(removed, Some(old), "the entry is there");
            return Ok(());
        }
        let leaf = self.leaves.get_mut(id);
        leaf.exchange(at, place, new);
        let first = leaf.tids()[0];
        if at == 0 && leaf.links.prev != NONE {
            let prefix = if first == new { key.prefix } else { stored.prefix(first) };
            self.levels.set_first(&path, (prefix, first));
        }
        Ok(())
    }
}
