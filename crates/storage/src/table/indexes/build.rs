//! Entering many rows at once into an index: all that a table has, or those that were appended.
//!
//! Rows come in batches. What is ordered gets each batch in the order of its keys, so that its leaves are met
//! one after another, and filled; elsewhere the processor is asked for places ahead. Keys are built once each,
//! and rows with equal beginnings of keys are told apart by the keys of the batch as far as it goes.

use std::cmp::Ordering;
use std::ops::Range;

use albireo_base::{StatementProgress, Tid};

use super::sorted::{Packing, live_from};
use super::{Failure, Known, TableIndex, build_key};
use crate::key::{KeyBuilder, KeyRef};
use crate::rows::{RowRun, Rows};

/// Rows of a batch: with their keys some 10 MiB.
const BATCH_ROWS: usize = 256 << 10;
/// Bytes behind the first 16 of the keys of a batch, beyond which it ends.
const BATCH_BYTES: usize = 16 << 20;
/// Bytes behind the first 16 of most keys that have some.
const USUAL_REST: usize = 64;
/// Comparisons, and rows, after which whoever works gives way, which it does if others wait: some 50 and 200 µs.
const COMPARISONS: usize = 8 << 10;
pub(super) const ROWS_AT_ONCE: usize = 4 << 10;
/// Places that the processor is asked for ahead.
const AHEAD: usize = 16;

/// Keys of some rows.
#[derive(Default)]
pub(super) struct Batch {
    /// The first 16 bytes, and the row's position in what follows.
    pub(super) keys: Vec<(u128, u32)>,
    /// Ascending, unless rows went to free slots.
    pub(super) tids: Vec<Tid>,
    /// Where each key's other bytes end in `rests`.
    ends: Vec<u32>,
    rests: Vec<u8>,
    nulls: Vec<bool>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.tids.clear();
        self.ends.clear();
        self.rests.clear();
        self.nulls.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= BATCH_ROWS || self.rests.len() >= BATCH_BYTES
    }

    /// Makes room for more rows, and touches it: memory that is new to the process takes long to come, and whoever
    /// reads keys owns the table. Keys that are longer than usual may still need more.
    pub(super) fn make_room(&mut self, rows: usize) {
        grow(&mut self.keys, rows, (0, 0));
        grow(&mut self.tids, rows, Tid(0));
        grow(&mut self.ends, rows, 0);
        grow(&mut self.nulls, rows, false);
        if !self.rests.is_empty() {
            grow(&mut self.rests, rows * USUAL_REST, 0);
        }
    }

    fn push(&mut self, tid: Tid, key: KeyRef<'_>, has_null: bool) {
        self.keys.push((key.prefix, self.tids.len() as u32));
        self.tids.push(tid);
        self.rests.extend_from_slice(key.rest);
        self.ends.push(self.rests.len() as u32);
        self.nulls.push(has_null);
        debug_assert_eq!(self.keys.len(), self.nulls.len(), "each row has a key");
        debug_assert_eq!(self.ends.len(), self.tids.len(), "each row has a rest");
    }

    fn rest(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.rests[start as usize..self.ends[row] as usize]
    }

    /// What is behind the first 16 bytes of a row's key, if the row is of the batch.
    fn rest_of(&self, tid: Tid) -> Option<&[u8]> {
        let first = self.tids.first()?;
        // Where no row is dead, TIDs are positions. A row that is not found is read in the table.
        let guess = tid.0.checked_sub(first.0)? as usize;
        let row = match self.tids.get(guess) {
            Some(&there) if there == tid => guess,
            _ => self.tids.binary_search(&tid).ok()?,
        };
        Some(self.rest(row))
    }

    /// Brings the keys into their order; rows of one key stay as they are.
    pub(super) fn sort(&mut self) {
        let mut keys = std::mem::take(&mut self.keys);
        let by_prefix = self.rests.is_empty();
        if by_prefix && !keys.is_sorted() {
            sort_by(&mut keys, Ord::cmp);
        } else if !by_prefix {
            let rest = |row: u32| self.rest(row as usize);
            sort_by(&mut keys, |a, b| {
                a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(rest(b.1))).then(a.1.cmp(&b.1))
            });
        }
        self.keys = keys;
        debug_assert!(self.keys.is_sorted_by(|a, b| a.0 <= b.0), "leaves are met one after another");
    }
}

/// Sorts a list, and gives way meanwhile. Keys of rows that queries give come in long runs, one of each chunk that they
/// read: a sort that merges runs takes a third of the time of one that does not.
pub(super) fn sort_by<T>(list: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    let mut compared = 0_usize;
    list.sort_by(|a, b| {
        compared += 1;
        if compared.is_multiple_of(COMPARISONS) {
            albireo_env::give_way();
        }
        order(a, b)
    });
}

/// Makes room behind what a list holds: twice as much as there is, if there is too little.
fn grow<T: Copy>(list: &mut Vec<T>, more: usize, any: T) {
    let length = list.len();
    if list.capacity() - length < more {
        list.resize((length + more).max(2 * list.capacity()), any);
        list.truncate(length);
    }
}

impl TableIndex {
    /// Puts all live rows in, and counts them in `progress`.
    ///
    /// # Panics
    /// The index is not empty.
    pub(in crate::table) fn build(
        &mut self,
        rows: &Rows,
        progress: &StatementProgress,
    ) -> Result<(), Failure> {
        assert!(self.index.is_empty(), "an index is built once");
        match self.packing(rows) {
            _ if self.index.bare().is_some() => self.build_bare(rows, progress)?,
            Some(packing) => self.insert_words(rows, &packing, progress)?,
            None => {
                let tids = live_from(rows, Tid(0));
                self.insert_all(rows, tids, &mut Batch::default(), progress)
                    .map_err(|(_, failure)| failure)?;
            }
        }
        assert_eq!(self.len(), rows.live_rows, "each live row stands in the index once (I-1 of `table`)");
        Ok(())
    }

    /// Puts all rows in whose entries are words.
    fn insert_words(
        &mut self,
        rows: &Rows,
        packing: &Packing,
        progress: &StatementProgress,
    ) -> Result<(), Failure> {
        let mut from = Some(Tid(0));
        while let Some(first) = from {
            let words;
            (words, from) = self.sorted_words(rows, packing, first);
            for some in words.chunks(ROWS_AT_ONCE) {
                for &word in some {
                    let (key, tid) = packing.unpack(word);
                    if !self.index.append_short(key, tid.0) {
                        self.index.insert_short(key, tid.0)?;
                    }
                }
                progress.add(some.len() as u64);
                albireo_env::give_way();
            }
        }
        Ok(())
    }

    /// Puts rows in that were appended, and counts them in `progress`; all or none.
    pub(in crate::table) fn insert_runs(
        &mut self,
        rows: &Rows,
        runs: &[RowRun],
        progress: &StatementProgress,
    ) -> Result<(), Failure> {
        let (was_empty, mut batch) = (self.index.is_empty(), Batch::default());
        let tids = || runs.iter().flat_map(|run| run.tids());
        let before = self.len();
        let Err((entered, failure)) = self.insert_all(rows, tids(), &mut batch, progress) else {
            let count: u64 = runs.iter().map(|run| run.rows).sum();
            let is_once = self.len() == before + count || rows.has_ghosts();
            assert!(is_once, "each row stands in the index once (I-1 of `table`)");
            return Ok(());
        };
        if was_empty {
            self.index.clear();
            return Err(failure);
        }
        // Batches before the last are in whole.
        let last = batch.tids.first().copied();
        tids().take_while(|tid| Some(*tid) != last).for_each(|tid| self.remove(rows, tid));
        for (_, row) in &batch.keys[..entered] {
            self.remove(rows, batch.tids[*row as usize]);
        }
        let is_as_it_was = self.len() == before || rows.has_ghosts();
        assert!(is_as_it_was, "rows that fail leave the index as it was (I-2 of `table`)");
        Err(failure)
    }

    /// Takes rows out that were appended, all of which are in.
    pub(in crate::table) fn remove_runs(&mut self, rows: &Rows, runs: &[RowRun]) {
        let count: u64 = runs.iter().map(|run| run.rows).sum();
        assert!(self.len() >= count, "the rows stand in the index");
        if self.index.len() as u64 == count {
            // There are no others.
            return self.index.clear();
        }
        runs.iter().flat_map(|run| run.tids()).for_each(|tid| self.remove(rows, tid));
    }

    /// Puts rows in. After a failure `batch` is the one in which it was; so many of its keys
    /// are in.
    fn insert_all(
        &mut self,
        rows: &Rows,
        mut tids: impl Iterator<Item = Tid>,
        batch: &mut Batch,
        progress: &StatementProgress,
    ) -> Result<(), (usize, Failure)> {
        let mut key = KeyBuilder::new();
        loop {
            batch.clear();
            while !batch.is_full()
                && let Some(tid) = tids.next()
            {
                self.push(rows, tid, batch, &mut key);
                if batch.keys.len().is_multiple_of(ROWS_AT_ONCE) {
                    albireo_env::give_way();
                }
            }
            if batch.keys.is_empty() {
                return Ok(());
            }
            self.prepare_batch(batch);
            let count = batch.keys.len();
            for first in (0..count).step_by(ROWS_AT_ONCE) {
                self.insert_batch(rows, batch, first..count.min(first + ROWS_AT_ONCE))?;
                albireo_env::give_way();
            }
            progress.add(count as u64);
        }
    }

    pub(super) fn push(&self, rows: &Rows, tid: Tid, batch: &mut Batch, key: &mut KeyBuilder) {
        if self.columns.are_integers() {
            batch.push(tid, KeyRef { prefix: self.short_key(rows, tid), rest: &[] }, false);
            return;
        }
        let has_null = build_key(&self.columns, rows, tid, key);
        batch.push(tid, key.key(), has_null);
    }

    /// Brings the keys of a batch into the order in which they are put in.
    pub(super) fn prepare_batch(&mut self, batch: &mut Batch) {
        if self.index.has_order() {
            batch.sort();
        } else if self.index.is_empty() {
            self.index.expect(batch.keys.iter().map(|&(prefix, _)| prefix));
        }
    }

    /// Puts some of a batch in; after a failure those before this position are in.
    pub(super) fn insert_batch(
        &mut self,
        rows: &Rows,
        batch: &Batch,
        range: Range<usize>,
    ) -> Result<(), (usize, Failure)> {
        let is_tree = self.index.has_order();
        let is_simple = self.index.is_short() && !self.unique_unless_null;
        let key_of = |&(prefix, row): &(u128, u32)| KeyRef { prefix, rest: batch.rest(row as usize) };
        for (group, first) in batch.keys[range.clone()].chunks(AHEAD).zip((range.start..).step_by(AHEAD)) {
            if !is_tree {
                group.iter().for_each(|entry| self.index.prefetch(key_of(entry)));
            }
            for (at, entry) in group.iter().enumerate() {
                let row = entry.1 as usize;
                let tid = batch.tids[row];
                let entered = match is_simple {
                    true => match self.index.insert_short(entry.0, tid.0) {
                        Ok(()) => Ok(()),
                        Err(error) => self.insert_over(rows, tid, key_of(entry), error),
                    },
                    false => {
                        let known = |tid| batch.rest_of(tid).map(|rest| Known { prefix: None, rest });
                        self.insert_key(rows, tid, key_of(entry), batch.nulls[row], known)
                    }
                };
                entered.map_err(|failure| (first + at, failure))?;
            }
        }
        Ok(())
    }
}
