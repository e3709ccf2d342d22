//! Non-unique hash index: a key's TIDs, in ascending order.
//!
//! Responsible for: sets of TIDs per key. Every operation on one TID is bounded, however many a key
//! has: one TID lies in the table itself, up to seven in a cache line of their own, more in a tree
//! that all such keys share, under `(group, tid)`.
//!
//! - M-1 A table value is a TID, or a tag and the number of a `Few` node or of a group.
//! - M-2 A `Few` node holds 2 to 7 TIDs, ascending; a group at least one.

use std::cmp::Ordering;

use super::super::InsertError;
use super::super::ordered::{OrderedIndex, Range};
use super::super::pages::{Node, Pages};
use super::{Slot, Table};
use crate::key::always_equal;
use crate::pool::BlockPool;

const FEW_MAX: usize = 7;
/// A group that shrinks to so many goes back into a node.
const GROUP_MIN: usize = 4;

const TAG_FEW: u64 = 2 << 62;
const TAG_MANY: u64 = 3 << 62;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Few {
    tids: [u64; FEW_MAX],
    len: u64,
}

impl Node for Few {
    const EMPTY: Self = Self { tids: [0; FEW_MAX], len: 0 };
}

impl Few {
    fn tids(&self) -> &[u64] {
        &self.tids[..self.len as usize]
    }

    fn insert(&mut self, at: usize, tid: u64) {
        let len = self.len as usize;
        debug_assert!(at <= len && len < FEW_MAX, "there is room for one more (M-2)");
        self.tids.copy_within(at..len, at + 1);
        self.tids[at] = tid;
        self.len += 1;
        debug_assert!(self.tids().is_sorted_by(|a, b| a < b), "TIDs ascend (M-2)");
    }

    fn remove(&mut self, at: usize) {
        let len = self.len as usize;
        debug_assert!(at < len && len >= 2, "there are at least two (M-2)");
        self.tids.copy_within(at + 1..len, at);
        self.len -= 1;
    }

    /// Puts `tid` in the place of the one at `at`; a search found that it would be at `place`.
    fn exchange(&mut self, at: usize, place: usize, tid: u64) {
        if place > at {
            self.tids.copy_within(at + 1..place, at);
            self.tids[place - 1] = tid;
        } else {
            self.tids.copy_within(place..at, place + 1);
            self.tids[place] = tid;
        }
        debug_assert!(self.tids().is_sorted_by(|a, b| a < b), "TIDs ascend (M-2)");
    }
}

/// A table value, taken apart.
enum Value {
    One(u64),
    Few(u32),
    Many(u64),
}

impl Value {
    #[inline]
    fn of(value: u64) -> Self {
        match value >> 62 {
            2 => Value::Few(value as u32),
            3 => Value::Many(value & !TAG_MANY),
            _ => Value::One(value),
        }
    }
}

/// The tree's keys of a group, first to last.
fn group_range(group: u64) -> (u128, u128) {
    (u128::from(group) << 64, u128::from(group) << 64 | u128::from(u64::MAX))
}

/// Where the TIDs of keys with several are.
struct Groups {
    few: Pages<Few>,
    many: OrderedIndex,
    next: u64,
}

impl Groups {
    /// One TID of a value.
    #[inline]
    fn first(&self, value: u64) -> u64 {
        match Value::of(value) {
            Value::One(tid) => tid,
            Value::Few(id) => self.few.get(id).tids[0],
            Value::Many(group) => self.range(group).next().expect("M-2").1,
        }
    }

    fn range(&self, group: u64) -> Range<'_> {
        let (low, high) = group_range(group);
        self.many.range(low, high)
    }

    /// Puts TIDs into a new group; all or none.
    fn start_group(&mut self, tids: &[u64]) -> Result<u64, InsertError> {
        let group = self.next;
        debug_assert!(group < TAG_FEW, "a group's number leaves room for its tag (M-1)");
        debug_assert!(self.range(group).next().is_none(), "a new group is empty");
        for (i, &tid) in tids.iter().enumerate() {
            let added = self.many.insert(u128::from(group) << 64 | u128::from(tid), tid, always_equal);
            if let Err(error) = added {
                for &tid in &tids[..i] {
                    self.many.remove(u128::from(group) << 64 | u128::from(tid), always_equal);
                }
                return Err(error);
            }
        }
        self.next += 1;
        Ok(TAG_MANY | group)
    }

    /// The value that a value becomes with `tid` added.
    fn with(&mut self, value: u64, tid: u64) -> Result<u64, InsertError> {
        match Value::of(value) {
            Value::One(one) if one == tid => Err(InsertError::Duplicate(tid)),
            Value::One(one) => {
                self.few.reserve(1)?;
                let id = self.few.take();
                let few = self.few.get_mut(id);
                debug_assert_eq!(few.len, 0, "a node that was taken is empty");
                few.tids[..2].copy_from_slice(&[one.min(tid), one.max(tid)]);
                few.len = 2;
                Ok(TAG_FEW | u64::from(id))
            }
            Value::Few(id) => {
                let few = self.few.get_mut(id);
                let Err(at) = few.tids().binary_search(&tid) else { return Err(InsertError::Duplicate(tid)) };
                if few.tids().len() < FEW_MAX {
                    few.insert(at, tid);
                    return Ok(value);
                }
                debug_assert_eq!(few.tids().len(), FEW_MAX, "a node that becomes a group is full");
                let mut tids = [tid; FEW_MAX + 1];
                tids[..at].copy_from_slice(&few.tids[..at]);
                tids[at + 1..].copy_from_slice(&few.tids[at..]);
                let value = self.start_group(&tids)?;
                self.few.free(id);
                Ok(value)
            }
            Value::Many(group) => {
                self.many.insert(u128::from(group) << 64 | u128::from(tid), tid, always_equal)?;
                Ok(value)
            }
        }
    }

    /// The value that a value becomes with `tid` removed: `None` if `tid` is not in it, `Some(None)`
    /// if nothing is left.
    fn without(&mut self, value: u64, tid: u64) -> Option<Option<u64>> {
        match Value::of(value) {
            Value::One(one) => (one == tid).then_some(None),
            Value::Few(id) => {
                let few = self.few.get_mut(id);
                few.remove(few.tids().binary_search(&tid).ok()?);
                if let [one] = *few.tids() {
                    self.few.free(id);
                    return Some(Some(one));
                }
                Some(Some(value))
            }
            Value::Many(group) => {
                self.many.remove(u128::from(group) << 64 | u128::from(tid), always_equal)?;
                Some(self.shrink_group(value, group))
            }
        }
    }

    /// The value that a value becomes with `new` in the place of `old`. Takes memory only for a group, if the TIDs
    /// around `new` fill a leaf of the tree and `old` is in another one.
    fn exchange(&mut self, value: u64, old: u64, new: u64) -> Result<u64, InsertError> {
        match Value::of(value) {
            Value::One(one) => {
                assert_eq!(one, old, "the TID is there");
                Ok(new)
            }
            Value::Few(id) => {
                let few = self.few.get_mut(id);
                let at = few.tids().binary_search(&old).expect("the TID is there");
                let Err(place) = few.tids().binary_search(&new) else {
                    return Err(InsertError::Duplicate(new));
                };
                few.exchange(at, place, new);
                Ok(value)
            }
            Value::Many(group) => {
                let entry = |tid: u64| (u128::from(group) << 64 | u128::from(tid), tid);
                self.many.exchange(entry(old), entry(new), always_equal)?;
                Ok(value)
            }
        }
    }

    /// Moves a small group into a node, if there is memory for one.
    fn shrink_group(&mut self, value: u64, group: u64) -> Option<u64> {
        let mut tids = [0; GROUP_MIN + 1];
        let mut len = 0;
        for (slot, entry) in tids.iter_mut().zip(self.range(group)) {
            *slot = entry.1;
            len += 1;
        }
        if len == 0 {
            return None;
        }
        if !(2..=GROUP_MIN).contains(&len) || self.few.reserve(1).is_err() {
            return Some(value);
        }
        debug_assert!(tids[..len].is_sorted_by(|a, b| a < b), "a group's TIDs ascend (M-2)");
        for &tid in &tids[..len] {
            let removed = self.many.remove(u128::from(group) << 64 | u128::from(tid), always_equal);
            assert_eq!(removed, Some(tid), "a group has the TIDs that were found in it");
        }
        let id = self.few.take();
        let few = self.few.get_mut(id);
        few.tids[..len].copy_from_slice(&tids[..len]);
        few.len = len as u64;
        Some(TAG_FEW | u64::from(id))
    }
}

/// A non-unique hash index over `(key, tie)`, where `key` is a short key or a fingerprint.
pub struct MultiHash<S: Slot> {
    table: Table<S>,
    groups: Groups,
    len: usize,
}

impl<S: Slot> MultiHash<S> {
    /// An empty index; takes no memory before the first insert.
    pub fn new(pool: &BlockPool) -> Self {
        let groups = Groups { few: Pages::new(pool.clone()), many: OrderedIndex::new(pool), next: 0 };
        Self { table: Table::new(pool), groups, len: 0 }
    }

    /// Entries: pairs of key and TID.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Different keys.
    #[inline]
    pub fn key_count(&self) -> usize {
        self.table.len()
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.groups.few.memory_bytes() + self.groups.many.memory_bytes()
    }

    #[inline]
    fn value(&self, key: u128, tie: &mut impl FnMut(u64) -> Ordering) -> Option<u64> {
        self.table.find(key, |value| tie(self.groups.first(value)).is_eq())
    }

    /// The least TID of the key for which `tie` says `Equal`.
    #[inline]
    pub fn find(&self, key: u128, mut tie: impl FnMut(u64) -> Ordering) -> Option<u64> {
        self.value(key, &mut tie).map(|value| self.groups.first(value))
    }

    /// The TIDs of the key for which `tie` says `Equal`, ascending.
    #[inline]
    pub fn tids(&self, key: u128, mut tie: impl FnMut(u64) -> Ordering) -> Tids<'_> {
        match self.value(key, &mut tie).map(Value::of) {
            None => Tids::Slice([].iter()),
            Some(Value::One(tid)) => Tids::One(Some(tid).into_iter()),
            Some(Value::Few(id)) => Tids::Slice(self.groups.few.get(id).tids().iter()),
            Some(Value::Many(group)) => Tids::Tree(self.groups.range(group)),
        }
    }

    /// Adds an entry; `tid` is below `2^63`. `tie` compares keys only.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when the key has this TID, [`InsertError::OutOfMemory`] when the
    /// pool refuses; the index is then as it was.
    pub fn insert(
        &mut self,
        key: u128,
        tid: u64,
        mut tie: impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        assert!(tid < TAG_FEW, "a TID leaves room for tags (M-1)");
        let groups = &self.groups;
        match self.table.insert(key, tid, |value| tie(groups.first(value)).is_eq()) {
            Ok(()) => {}
            Err(InsertError::Duplicate(old)) => {
                let new = self.groups.with(old, tid)?;
                if new != old {
                    self.table.replace(key, new, |value| value == old);
                }
            }
            Err(refused) => return Err(refused),
        }
        self.len += 1;
        debug_assert!(self.len >= self.table.len(), "each key has a TID");
        Ok(())
    }

    /// Removes `tid` from the key for which `tie` says `Equal`. Returns whether it was there.
    pub fn remove(&mut self, key: u128, tid: u64, mut tie: impl FnMut(u64) -> Ordering) -> bool {
        let Some(old) = self.value(key, &mut tie) else { return false };
        match self.groups.without(old, tid) {
            None => return false,
            Some(None) => {
                let removed = self.table.remove(key, |value| value == old);
                debug_assert_eq!(removed, Some(old), "a key without TIDs goes");
            }
            Some(Some(new)) if new != old => self.table.replace(key, new, |value| value == old),
            Some(Some(_)) => {}
        }
        self.len -= 1;
        debug_assert!(self.len >= self.table.len(), "each key has a TID");
        true
    }

    /// Puts the TID `new`, below `2^63`, in the place of `old` under the key for which `tie` says `Equal`. `tie` compares
    /// keys only. Takes memory only for a key with more TIDs than a leaf of a tree holds.
    ///
    /// # Errors
    /// As [`MultiHash::insert`].
    ///
    /// # Panics
    /// The key has not the TID `old`.
    pub fn retarget(
        &mut self,
        key: u128,
        old: u64,
        new: u64,
        mut tie: impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        assert!(new < TAG_FEW, "a TID leaves room for tags (M-1)");
        let before = self.value(key, &mut tie).expect("the key is there");
        let after = self.groups.exchange(before, old, new)?;
        if after != before {
            self.table.replace(key, after, |value| value == before);
        }
        Ok(())
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        self.table.clear();
        self.groups.few.clear();
        self.groups.many.clear();
        self.len = 0;
    }

    /// Asks the processor for the place of `key`.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        self.table.prefetch(key);
    }

    /// Panics if an invariant does not hold.
    pub fn check(&self) {
        self.table.check();
        self.groups.many.check(|_, _| Ordering::Equal);
        let (mut few, mut many, mut len) = (0, 0, 0);
        for (_, value) in self.table.iter() {
            match Value::of(value) {
                Value::One(_) => len += 1,
                Value::Few(id) => {
                    let tids = self.groups.few.get(id).tids();
                    assert!(tids.len() >= 2 && tids.is_sorted_by(|a, b| a < b), "M-2");
                    few += 1;
                    len += tids.len();
                }
                Value::Many(group) => {
                    let count = self.groups.range(group).count();
                    assert!(count > 0, "M-2");
                    many += count;
                    len += count;
                }
            }
        }
        assert_eq!((self.groups.few.used(), self.groups.many.len(), self.len), (few, many, len));
    }
}

/// TIDs of one key, ascending.
#[derive(Clone)]
pub enum Tids<'a> {
    /// Of a key with one.
    One(std::option::IntoIter<u64>),
    /// Of a key with none or few.
    Slice(std::slice::Iter<'a, u64>),
    /// Of a key with many, or of an ordered index.
    Tree(Range<'a>),
    /// Of a bare index.
    Bare(super::super::cursor::Range<'a, super::super::BareIndex>),
}

impl Iterator for Tids<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self {
            Tids::One(one) => one.next(),
            Tids::Slice(tids) => tids.next().copied(),
            Tids::Tree(range) => range.next().map(|entry| entry.1),
            Tids::Bare(range) => range.next(),
        }
    }
}

impl DoubleEndedIterator for Tids<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u64> {
        match self {
            Tids::One(one) => one.next_back(),
            Tids::Slice(tids) => tids.next_back().copied(),
            Tids::Tree(range) => range.next_back().map(|entry| entry.1),
            Tids::Bare(range) => range.next_back(),
        }
    }
}

impl std::iter::FusedIterator for Tids<'_> {}
