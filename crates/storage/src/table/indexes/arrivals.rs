//! Rows that come to a table in small steps, and are there in a moment.
//!
//! ```text
//! admit_some   chunks change hands, or one is copied: the rows have slots, and do not live
//! enter_some   some keys are read; all that were read are sorted (nobody owns the table); some are entered
//! settle       keys that others have taken meanwhile: one that is still taken is a fault
//! wake         all rows live
//! ```
//!
//! Until they live they are ghosts: nobody finds them. Whoever inserts a row with the key of one takes its place in the
//! index: it is there first.
//!
//! I-1 A fault is that of the first row at fault, and of its first index, of all that were met; others may have been met
//! had the rows come at another moment.

use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{IndexId, StatementProgress, Tid};

use super::build::Batch;
use super::{Failure, Table, TableError};
use crate::pool::Need;
use crate::rows::{RowRun, RowSet, Rows};
use crate::table::RowFault;

/// Keys that are read, and entered, while the table is owned.
const READ_AT_ONCE: usize = 1024;
const ENTERED_AT_ONCE: usize = 256;

/// Rows on their way into a table.
pub struct Arrival {
    /// Those that have no slot there yet, from a chunk on.
    staged: Option<(Rows, usize)>,
    /// Where the others lie, in their order.
    runs: Vec<RowRun>,
    set: RowSet,
    /// The index that they enter; how many rows of it were read, and up to where in which run.
    index: usize,
    read: u64,
    cursor: (usize, u64),
    /// Keys that were read, the number of the first, and how many of them were entered.
    batch: Batch,
    batch_first: u64,
    is_sorted: bool,
    entered: usize,
    /// The first row that is at fault, by its number; its index, and the row that is there already.
    fault: Option<(u64, IndexId, Tid)>,
}

/// What is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entering {
    /// [`Table::enter_some`] again.
    Again,
    /// [`Arrival::sort`], for which nobody need own the table.
    Sort,
    /// Nothing: they have entered all indexes, or there is a fault.
    Done,
}

impl Arrival {
    pub(in crate::table) fn new(staged: Rows) -> Self {
        Self {
            staged: Some((staged, 0)),
            runs: Vec::new(),
            set: RowSet::default(),
            index: 0,
            read: 0,
            cursor: (0, 0),
            batch: Batch::default(),
            batch_first: 0,
            is_sorted: false,
            entered: 0,
            fault: None,
        }
    }

    /// The rows that have slots in the table.
    pub fn rows(&self) -> &RowSet {
        &self.set
    }

    /// Makes room for what the next step reads, for which nobody need own the table.
    pub fn make_room(&mut self) {
        if self.staged.is_none() && !self.is_sorted {
            self.batch.make_room(READ_AT_ONCE);
        }
    }

    /// Sorts the keys that were read, and gives way to other threads meanwhile.
    pub fn sort(&mut self) {
        self.batch.sort();
        self.is_sorted = true;
    }

    /// The next row that is to be read.
    fn next(&mut self) -> Option<Tid> {
        let (run, at) = &mut self.cursor;
        let there = self.runs.get(*run)?;
        let tid = Tid(there.first.0 + *at);
        *at += 1;
        if *at == there.rows {
            (*run, *at) = (*run + 1, 0);
        }
        self.read += 1;
        Some(tid)
    }

    /// The row at a number, and the number of a row.
    fn tid_at(&self, number: u64) -> Option<Tid> {
        let mut before = 0;
        self.runs.iter().find_map(|run| {
            let at = number - before;
            before += run.rows;
            (at < run.rows).then(|| Tid(run.first.0 + at))
        })
    }

    fn number_of(&self, tid: Tid) -> u64 {
        let mut before = 0;
        for run in &self.runs {
            if (run.first.0..run.first.0 + run.rows).contains(&tid.0) {
                return before + tid.0 - run.first.0;
            }
            before += run.rows;
        }
        before
    }

    fn note_fault(&mut self, number: u64, index: IndexId, existing: Tid) {
        if self.fault.is_none_or(|(first, at, _)| (number, index.0) < (first, at.0)) {
            self.fault = Some((number, index, existing));
        }
    }
}

impl Table {
    /// Gives some rows slots; whether there are more that have none.
    ///
    /// # Errors
    /// There is no memory.
    pub fn admit_some(&mut self, arrival: &mut Arrival) -> Result<bool, TableError> {
        let Some((mut staged, chunk)) = arrival.staged.take() else { return Ok(false) };
        if arrival.runs.is_empty() {
            // Of rows that did not come, whose slots these may get.
            self.indexes.iter_mut().for_each(|index| index.taken.clear());
        }
        let mut runs = Vec::new();
        let next = self.rows.absorb_some(&mut staged, chunk, &mut runs);
        for run in runs {
            self.rows.conceal(run);
            arrival.set.add_run(run.first, run.rows);
            match arrival.runs.last_mut() {
                Some(last) if last.first.0 + last.rows == run.first.0 => last.rows += run.rows,
                _ => arrival.runs.push(run),
            }
        }
        arrival.staged = next?.map(|chunk| (staged, chunk));
        Ok(arrival.staged.is_some())
    }

    /// Enters some rows, all of which have slots, into an index, and counts those that stand in all in `progress`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn enter_some(
        &mut self,
        arrival: &mut Arrival,
        progress: &StatementProgress,
    ) -> Result<Entering, TableError> {
        let count = arrival.set.count();
        let Some(index) = self.indexes.get_mut(arrival.index) else { return Ok(Entering::Done) };
        let (rows, id) = (&self.rows, IndexId(arrival.index as u16));
        if !arrival.is_sorted {
            let mut key = crate::key::KeyBuilder::new();
            let mut left = READ_AT_ONCE;
            while left > 0
                && !arrival.batch.is_full()
                && let Some(tid) = arrival.next()
            {
                index.push(rows, tid, &mut arrival.batch, &mut key);
                left -= 1;
            }
            if arrival.read < count && !arrival.batch.is_full() {
                return Ok(Entering::Again);
            }
            if index.index.has_order() {
                return Ok(Entering::Sort);
            }
            index.prepare_batch(&mut arrival.batch);
            arrival.is_sorted = true;
            return Ok(Entering::Again);
        }
        let end = arrival.batch.keys.len().min(arrival.entered + ENTERED_AT_ONCE);
        while arrival.entered < end {
            match index.insert_batch(rows, &arrival.batch, arrival.entered..end) {
                Ok(()) => arrival.entered = end,
                Err((at, Failure::Duplicate(existing))) => {
                    // Rows of a batch are in the order of their numbers.
                    let number = arrival.batch_first + u64::from(arrival.batch.keys[at].1);
                    arrival.note_fault(number, id, existing);
                    arrival.entered = at + 1;
                }
                Err((_, failure)) => return Err(failure.in_index(self.spec.id, id)),
            }
        }
        if arrival.entered < arrival.batch.keys.len() {
            return Ok(Entering::Again);
        }
        if arrival.index + 1 == self.indexes.len() {
            progress.add(arrival.entered as u64);
        }
        arrival.batch.clear();
        (arrival.entered, arrival.is_sorted, arrival.batch_first) = (0, false, arrival.read);
        if arrival.read < count {
            return Ok(Entering::Again);
        }
        (arrival.index, arrival.read, arrival.cursor, arrival.batch_first) =
            (arrival.index + 1, 0, (0, 0), 0);
        Ok(if arrival.index < self.indexes.len() { Entering::Again } else { Entering::Done })
    }

    /// Looks for keys that others have taken meanwhile, and gets ready for [`Table::wake`], which then cannot fail.
    ///
    /// # Errors
    /// A key is there twice, or there is no memory.
    pub fn settle(&mut self, arrival: &mut Arrival) -> Result<(), RowFault> {
        for position in 0..self.indexes.len() {
            let taken = std::mem::take(&mut self.indexes[position].taken);
            let (index, rows) = (&mut self.indexes[position], &self.rows);
            for tid in taken {
                if !arrival.set.has(tid) {
                    continue;
                }
                match index.enter_again(rows, tid) {
                    Ok(()) => {}
                    Err(Failure::Duplicate(existing)) => {
                        let number = arrival.number_of(tid);
                        arrival.note_fault(number, IndexId(position as u16), existing);
                    }
                    Err(failure) => {
                        return Err(failure.in_index(self.spec.id, IndexId(position as u16)).into());
                    }
                }
            }
        }
        match self.fault_of(arrival) {
            Some(fault) => Err(fault),
            None => Ok(self.rows.prepare(&arrival.set, Need::Ordinary).map_err(TableError::from)?),
        }
    }

    /// What was found to be wrong with a row, if anything was.
    pub fn fault_of(&self, arrival: &Arrival) -> Option<RowFault> {
        let (number, index, existing) = arrival.fault?;
        let tid = arrival.tid_at(number)?;
        let columns = Arc::clone(&self.spec);
        let columns = columns.indexes[index.index()].columns.iter();
        let key = columns.map(|column| self.value(tid, *column)).collect();
        let error = TableError::Duplicate { table: self.spec.id, index, existing };
        Some(RowFault { row: Some(number), error, key })
    }

    /// Takes rows out of the indexes that do not come.
    pub fn leave_some(&mut self, tids: impl Iterator<Item = Tid>) {
        for tid in tids {
            self.indexes.iter_mut().for_each(|index| index.remove_ghost(&self.rows, tid));
        }
    }

    /// Gives the slots of some rows back that do not come, and stand in no index; whether there are more.
    pub fn dismiss_some(&mut self, arrival: &mut Arrival) -> bool {
        let Some(run) = arrival.runs.last_mut() else {
            self.rows.tidy();
            return false;
        };
        // Chunks that begin with one of the last rows go with their heaps.
        let (gone, texts) = match (self.rows.leave_no_trace(*run), run.first.slot()) {
            (true, 0) => (*run, 0),
            (true, slot) => (*run, (CHUNK_ROWS - slot) as u64),
            (false, _) => {
                let rows = run.rows.min(ENTERED_AT_ONCE as u64);
                (RowRun { first: Tid(run.first.0 + run.rows - rows), rows }, rows)
            }
        };
        run.rows -= gone.rows;
        if run.rows == 0 {
            arrival.runs.pop();
        }
        if !self.rows.layout.heap_columns.is_empty() {
            gone.tids().take(texts as usize).for_each(|tid| self.count_texts(tid, 1));
        }
        self.rows.withdraw(gone);
        true
    }

    /// Makes rows of the table of rows that have settled.
    pub fn wake(&mut self, arrival: Arrival) {
        self.rows.wake_all(&arrival.set);
        let whole = arrival.set.count();
        debug_assert!(
            self.rows.has_ghosts() || self.indexes.iter().all(|index| index.len() == self.rows.live_rows)
        );
        debug_assert_eq!(arrival.runs.iter().map(|run| run.rows).sum::<u64>(), whole, "all rows have slots");
    }
}

impl super::TableIndex {
    /// Puts a row that is about to come in again, whose place another has taken.
    fn enter_again(&mut self, rows: &Rows, tid: Tid) -> Result<(), Failure> {
        if !self.unique_unless_null {
            return self.insert(rows, tid);
        }
        // It still stands in it, beside the other.
        let mut key = crate::key::KeyBuilder::new();
        super::build_key(&self.columns, rows, tid, &mut key);
        match self.find_all(rows, key.key()).first() {
            Some(existing) => Err(Failure::Duplicate(*existing)),
            None => Ok(()),
        }
    }
}
