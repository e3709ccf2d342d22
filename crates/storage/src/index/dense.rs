//! Unique index of composite integer keys: a plain array as far as keys are dense, a hash table for
//! the others.
//!
//! Responsible for: choosing, moving and giving up the array without being told, and without a long
//! stall. Not responsible for: order (there is none), keys that are not integers.
//!
//! A key is in exactly one of three places, and is looked for in this order: the array (`current`),
//! the array before it while that is being emptied (`old`), the hash table. So a lookup is right at
//! any moment of a move, and keys that fit no array may stay in the hash table for ever.
//!
//! - Keys go into the array if it covers them and a page for them is justified (four slots for each
//!   entry of the index), else into the hash table.
//! - When the hash table has grown to an eighth of the array, or by half without one, a new layout
//!   is planned (`plan`): one exists if the ranges of the components multiply to at most twice the
//!   entries. The component that grew last is the most significant digit and can grow on for ever.
//! - A new layout replaces the old in steps: each later insert or remove moves at most `STEP`
//!   entries, first those of the old array, then those of the hash table that the new one covers.
//! - When removals leave less than one entry in 16 slots, the array is emptied into the hash table,
//!   in the same steps.
//!
//! Worst insert: one step, a page of 8 KiB, a division of a hash segment (4,096 slots), and the
//! doubling of a directory of 16 bytes per 1,024 positions. Measured over 1.5 million orders, loaded
//! by warehouse and then grown in all districts: 0.08 to 0.23 ms in three runs on touched memory.

mod array;
mod plan;
#[cfg(test)]
mod tests;

use array::{DenseArray, Digit, EMPTY, PAGE_SLOTS, Put};
use plan::{Evidence, Ranges};

use super::InsertError;
use super::hash::{Slot, Slot16, Table};
use crate::key::{Component, KeyShape, always_equal};
use crate::pool::BlockPool;

/// Entries moved, or slots of the hash table looked at, by one insert or remove.
const STEP: usize = 32;
/// The hash table is not looked at before it has so many entries.
const FIRST_PLAN: usize = 256;
/// An array with more slots than this for each entry is given up.
const SPARSE: usize = 16;

/// What is being moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    None,
    /// `old` is being emptied.
    Array,
    /// Slots of the hash table before this segment and slot were looked at.
    Hash {
        segment: usize,
        slot: usize,
    },
    /// `retired` is being given back.
    Release,
}

/// The index. See the module.
pub struct DenseOrHash<S: Slot> {
    current: DenseArray,
    /// Entries in `old` and `hash`.
    elsewhere: usize,
    components: Vec<Component>,
    old: DenseArray,
    hash: Table<S>,
    retired: Table<S>,
    moving: Move,
    /// Hash entries at which to plan next.
    plan_at: usize,
    all: Ranges,
    recent: Ranges,
    raised_last: usize,
    raised: u32,
    pool: BlockPool,
}

impl<S: Slot> DenseOrHash<S> {
    /// Whether all keys have at most eight bytes.
    const NARROW: bool = S::WORDS == Slot16::WORDS;

    /// An empty index of keys with this shape; `None` if its keys cannot be dense.
    pub fn new(shape: &KeyShape, pool: &BlockPool) -> Option<Self> {
        let components = shape.components()?;
        components.iter().all(|&component| Digit::suits(component)).then(|| Self {
            current: DenseArray::nothing(pool),
            elsewhere: 0,
            components,
            old: DenseArray::nothing(pool),
            hash: Table::new(pool),
            retired: Table::new(pool),
            moving: Move::None,
            plan_at: FIRST_PLAN,
            all: Ranges::EMPTY,
            recent: Ranges::EMPTY,
            raised_last: 0,
            raised: 0,
            pool: pool.clone(),
        })
    }

    /// Lays the array out for keys that are about to be inserted, so that they need not move.
    ///
    /// # Panics
    /// The index is not empty.
    pub fn expect(&mut self, keys: impl Iterator<Item = u128>) {
        assert!(self.is_empty() && self.moving == Move::None, "keys are expected before the first comes");
        let (mut ranges, mut raised_last) = (Ranges::EMPTY, 0);
        for key in keys {
            raised_last = ranges.include(&self.components, key).unwrap_or(raised_last);
        }
        let evidence = Evidence {
            components: &self.components,
            all: &ranges,
            recent: &ranges,
            raised_last,
            raised: 0,
            array: &self.current,
            entries: ranges.keys,
        };
        if ranges.keys >= FIRST_PLAN
            && let Some(digits) = evidence.plan()
        {
            self.current = DenseArray::new(digits, &self.pool);
        }
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.current.len() + self.elsewhere
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether most entries are in an array now.
    pub fn is_dense(&self) -> bool {
        self.current.len() > self.elsewhere
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        let arrays = self.current.memory_bytes() + self.old.memory_bytes();
        arrays + self.hash.memory_bytes() + self.retired.memory_bytes()
    }

    /// The TID of a key.
    #[inline(always)]
    pub fn find(&self, key: u128) -> Option<u64> {
        let tid = self.current.look_up(key, Self::NARROW);
        if tid != EMPTY {
            return Some(tid);
        }
        if self.elsewhere == 0 { None } else { self.find_elsewhere(key) }
    }

    #[inline(never)]
    fn find_elsewhere(&self, key: u128) -> Option<u64> {
        match self.old.get(key) {
            EMPTY => self.hash.find(key, |_| true),
            tid => Some(tid),
        }
    }

    /// Asks the processor for the place of `key`.
    #[inline(always)]
    pub fn prefetch(&self, key: u128) {
        self.ask(key);
    }

    /// Asks the processor for the place of `key`, and tells its slot in the array if there is one,
    /// else null. The slot holds a TID, or [`EMPTY`] if the key is elsewhere or nowhere.
    #[inline(always)]
    pub(super) fn ask(&self, key: u128) -> *const u64 {
        if self.elsewhere > 0 {
            self.prefetch_elsewhere(key);
        }
        self.current.ask(key, Self::NARROW)
    }

    #[inline(never)]
    fn prefetch_elsewhere(&self, key: u128) {
        self.hash.prefetch(key);
    }

    /// Adds an entry; `tid` is below `2^63`.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when the key is there, [`InsertError::OutOfMemory`] when the pool
    /// refuses; the entries are then as they were.
    #[inline]
    pub fn insert(&mut self, key: u128, tid: u64) -> Result<(), InsertError> {
        assert_ne!(tid, EMPTY, "a TID is none of an empty slot");
        if self.elsewhere == 0 && self.moving == Move::None {
            match self.current.put_if_paged(key, tid) {
                Some(EMPTY) => return Ok(()),
                Some(there) => return Err(InsertError::Duplicate(there)),
                None => {}
            }
        }
        self.insert_with_care(key, tid)
    }

    #[inline(never)]
    fn insert_with_care(&mut self, key: u128, tid: u64) -> Result<(), InsertError> {
        for array in [&self.current, &self.old] {
            let there = array.get(key);
            if there != EMPTY {
                return Err(InsertError::Duplicate(there));
            }
        }
        // The hash table looks for itself if the key goes there.
        if self.current.covers(key)
            && let Some(there) = self.hash.find(key, |_| true)
        {
            return Err(InsertError::Duplicate(there));
        }
        self.put(key, tid)?;
        if self.moving != Move::None {
            self.step();
        } else if self.hash.len() >= self.plan_at {
            self.replan();
        }
        debug_assert_eq!(self.elsewhere, self.old.len() + self.hash.len(), "a key is counted in its place");
        Ok(())
    }

    /// Puts an entry that is in no array, and if the array covers it not in the hash table either,
    /// into the array or else the hash table.
    fn put(&mut self, key: u128, tid: u64) -> Result<(), InsertError> {
        let entries = self.len() + 1;
        // Without memory for a page there may still be a slot in the hash table.
        if self.current.put(key, tid, entries).is_ok_and(|put| put == Put::Done) {
            return Ok(());
        }
        self.hash.insert(key, tid, |_| true)?;
        self.elsewhere += 1;
        self.recent.include(&self.components, key);
        if let Some(raised) = self.all.include(&self.components, key) {
            self.raised_last = raised;
            self.raised |= 1 << raised;
        }
        Ok(())
    }

    /// Removes a key and returns its TID.
    #[inline]
    pub fn remove(&mut self, key: u128) -> Option<u64> {
        let tid = match self.current.take(key) {
            EMPTY => self.remove_elsewhere(key)?,
            tid => tid,
        };
        if self.moving != Move::None {
            self.step();
        } else if self.current.slots() > SPARSE * self.current.len() + SPARSE * PAGE_SLOTS {
            self.replace(DenseArray::nothing(&self.pool.clone()));
        }
        debug_assert_eq!(self.elsewhere, self.old.len() + self.hash.len(), "a key is counted in its place");
        Some(tid)
    }

    fn remove_elsewhere(&mut self, key: u128) -> Option<u64> {
        let tid = match self.old.take(key) {
            EMPTY => self.hash.remove(key, |_| true)?,
            tid => tid,
        };
        debug_assert!(self.elsewhere > 0, "a key is counted in its place");
        self.elsewhere -= 1;
        Some(tid)
    }

    /// Gives a key the TID `new`, below `2^63`, in the place of `old`. Takes no memory, and moves nothing.
    ///
    /// # Panics
    /// The key has not the TID `old`.
    pub fn retarget(&mut self, key: u128, old: u64, new: u64) {
        assert_ne!(new, EMPTY, "a TID is none of an empty slot");
        let mut before = self.current.retarget(key, new);
        if before == EMPTY && self.elsewhere > 0 {
            before = self.old.retarget(key, new);
            if before == EMPTY {
                return self.hash.replace(key, new, |tid| tid == old);
            }
        }
        assert_eq!(before, old, "the entry is there");
    }

    /// Looks for a better array now that the hash table has grown.
    #[cold]
    fn replan(&mut self) {
        let evidence = Evidence {
            components: &self.components,
            all: &self.all,
            recent: &self.recent,
            raised_last: self.raised_last,
            raised: self.raised,
            array: &self.current,
            entries: self.len(),
        };
        let digits = evidence.plan();
        self.plan_at = self.hash.len() + self.hash.len() / 2;
        self.recent = Ranges::EMPTY;
        self.raised = 0;
        if let Some(digits) = digits {
            self.replace(DenseArray::new(digits, &self.pool));
        } else if self.current.covers_something() && self.current.len() < self.hash.len() / SPARSE {
            self.replace(DenseArray::nothing(&self.pool));
        }
    }

    /// Begins to move to another array.
    fn replace(&mut self, array: DenseArray) {
        assert!(self.old.len() == 0 && self.moving == Move::None, "one layout is replaced at a time");
        self.old = std::mem::replace(&mut self.current, array);
        self.elsewhere += self.old.len();
        self.moving = Move::Array;
    }

    /// Goes on with what is being moved, a little.
    fn step(&mut self) {
        match self.moving {
            Move::None => {}
            Move::Array => self.step_array(),
            Move::Hash { segment, slot } => self.step_hash(segment, slot),
            Move::Release => {
                if !self.retired.release_segment() {
                    self.moving = Move::None;
                }
            }
        }
    }

    fn step_array(&mut self) {
        let mut old = std::mem::replace(&mut self.old, DenseArray::nothing(&self.pool));
        let mut put = 0;
        let done = old.drain(STEP, |key, tid| {
            // `put` counts the entry where it goes to; here it is no longer counted as old.
            let moved = self.put(key, tid).is_ok();
            put += usize::from(moved);
            moved
        });
        self.elsewhere -= put;
        self.old = old;
        debug_assert!(self.elsewhere >= self.old.len(), "a key is counted in its place");
        if done {
            assert_eq!(self.old.len(), 0, "an array is given up once it is empty");
            self.old = DenseArray::nothing(&self.pool);
            let sweep = Move::Hash { segment: 0, slot: 0 };
            self.moving = if self.current.covers_something() { sweep } else { Move::None };
            self.settle();
        }
    }

    fn step_hash(&mut self, segment: usize, slot: usize) {
        if segment >= self.hash.segment_count() {
            self.retire_hash();
            return;
        }
        let entries = self.len();
        let current = &mut self.current;
        let before = self.hash.len();
        let mut budget = STEP;
        let next = self.hash.sweep(segment, slot, &mut budget, |key, tid| {
            current.put(key, tid, entries).is_ok_and(|put| put == Put::Done)
        });
        self.elsewhere -= before - self.hash.len();
        self.moving = match next {
            Some(slot) => Move::Hash { segment, slot },
            None => Move::Hash { segment: segment + 1, slot: 0 },
        };
    }

    /// After the sweep: a hash table with little left in it is replaced by a small one.
    fn retire_hash(&mut self) {
        debug_assert_eq!(self.old.len(), 0, "the array before is emptied before the hash table");
        self.settle();
        self.moving = Move::None;
        if self.hash.len() > FIRST_PLAN || self.hash.segment_count() == 0 {
            return;
        }
        let mut small = Table::new(&self.pool);
        for (key, tid) in self.hash.iter() {
            if small.insert(key, tid, |_| false).is_err() {
                return;
            }
        }
        assert_eq!(small.len(), self.hash.len(), "all keys move to the smaller table");
        self.retired = std::mem::replace(&mut self.hash, small);
        self.moving = Move::Release;
    }

    /// Sets when to plan next.
    fn settle(&mut self) {
        let grown = self.hash.len() + (self.hash.len() / 2).max(FIRST_PLAN);
        self.plan_at = grown.max(self.hash.len() + self.current.len() / 8);
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        self.current = DenseArray::nothing(&self.pool);
        self.old = DenseArray::nothing(&self.pool);
        self.hash.clear();
        self.retired.clear();
        self.elsewhere = 0;
        self.moving = Move::None;
        self.plan_at = FIRST_PLAN;
        (self.all, self.recent) = (Ranges::EMPTY, Ranges::EMPTY);
        (self.raised_last, self.raised) = (0, 0);
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, u64)> + '_ {
        self.current.iter().chain(self.old.iter()).chain(self.hash.iter())
    }

    /// Panics if an invariant does not hold.
    pub fn check(&self) {
        self.current.check();
        self.old.check();
        self.hash.check();
        assert_eq!(self.elsewhere, self.old.len() + self.hash.len());
        for (key, _) in self.old.iter().chain(self.hash.iter()) {
            assert_eq!(self.current.get(key), EMPTY, "a key is in one place");
        }
        for (key, _) in self.hash.iter() {
            assert_eq!(self.old.get(key), EMPTY, "a key is in one place");
            assert!(self.hash.find(key, |tid| always_equal(tid).is_eq()).is_some());
        }
    }
}
