//! Many rows at once, in two steps: laid down beside the table while others use it, then made its rows.
//!
//! [`Staging`] takes batches of rows and writes them into chunks of its own, in the form in which the table has
//! them. [`Table::append`] then hands these chunks over, a few words each, and enters the rows into the indexes,
//! in the order of their keys. So whoever appends owns the table for the second step alone, and the rows are in
//! memory once. Rows that do not begin at a chunk's first slot, and chunks for which the table has free slots,
//! are copied. Few rows are checked and kept as they are, and inserted one by one: they need no chunk of their
//! own. The first rows of a table are entered into indexes of their own ahead ([`Staging::index`]): where a row lies
//! is then known, and the table takes over the indexes too.
//!
//! Responsible for: NOT NULL, lengths, digits, CHECK constraints while rows are laid down; uniqueness when they
//! are appended; the undo of both; which row is the first that violates something. Not responsible for:
//! conversions (`engine`), which rows belong to which partition (`partition`).
//!
//! Invariants:
//! - I-1 Rows that are staged are seen by nobody. They count as memory of the pool; dropped, they give it back.
//! - I-2 [`Table::append`] appends all rows or none, and leaves one undo record for rows in slots next to each
//!   other, whatever their number.
//! - I-3 The fault that [`Staging::push`] reports is the one that inserting the rows one by one would have met
//!   first, but for keys that are there twice; of these [`Table::append`] reports the first.

use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{IndexId, StatementProgress, Tid, Value};
use arrow_array::RecordBatch;

use super::indexes::{Arrival, TableIndex};
use super::{Placement, Table, TableError, TableSpec, batch};
use crate::rows::{RowRun, Rows};
use crate::undo::UndoLog;

/// So many rows are inserted one by one, unless they are large.
const FEW_ROWS: u64 = 1000;
/// Bytes of batches beyond which rows are laid down, however few.
const FEW_BYTES: usize = 1 << 20;

/// A row that a table does not take.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct RowFault {
    /// Its position among the rows that were to be appended, from 0; `None` if no row is to blame.
    pub row: Option<u64>,
    /// Why.
    pub error: TableError,
    /// The key that is there twice, if that is why.
    pub key: Vec<Value>,
}

impl From<TableError> for RowFault {
    fn from(error: TableError) -> Self {
        Self { row: None, error, key: Vec::new() }
    }
}

/// Rows to be appended to a table. Made by [`Table::staging`].
pub struct Staging {
    spec: Arc<TableSpec>,
    placement: Option<Placement>,
    /// The first rows, while they are few.
    few: Vec<RecordBatch>,
    few_rows: u64,
    few_bytes: usize,
    /// Up to how many rows are few.
    most_few: u64,
    /// All others.
    rows: Rows,
    /// The table never had a row.
    is_first: bool,
    /// All indexes of the table with these rows, or none.
    indexes: Vec<TableIndex>,
    /// The first failure of [`Staging::push`]: rows are missing.
    failed: Option<RowFault>,
}

impl Staging {
    /// Rows so far.
    pub fn row_count(&self) -> u64 {
        let is_one = self.few_rows == 0 || self.rows.live_rows == 0;
        debug_assert!(is_one || self.failed.is_some(), "rows are few, or laid down");
        self.rows.live_rows + self.few_rows
    }

    /// Bytes of their memory.
    pub fn memory_bytes(&self) -> u64 {
        let (blocks, heaps, _) = self.rows.memory_bytes();
        blocks + heaps + self.few_bytes as u64
    }

    /// With another limit up to which rows are inserted one by one, for tests.
    pub fn with_few(self, most_few: u64) -> Self {
        Self { most_few, ..self }
    }

    /// Adds the rows of a batch: the table's columns in order, with the types of [`albireo_base::arrow_type`], or
    /// texts as `Utf8` and byte strings as `Binary`; names do not matter.
    ///
    /// # Errors
    /// A row does not fit the table or violates a constraint, or there is no memory. After an error nothing can
    /// be done with it any more but to say so again.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.indexes.clear();
        let before = self.row_count();
        let Err(mut fault) = self.take(batch) else { return Ok(()) };
        fault.row = fault.row.map(|row| before + row);
        self.failed = Some(fault.clone());
        Err(fault)
    }

    /// After the last batch: enters the rows into indexes ahead, and counts them in `progress`, if the table has no
    /// rows yet; [`Table::append`] then need not do so, unless others came first. A fault is left for it to find.
    pub fn index(&mut self, progress: &StatementProgress) {
        if !self.is_first || self.failed.is_some() || self.rows.live_rows == 0 || !self.indexes.is_empty() {
            return;
        }
        let (spec, rows) = (&self.spec, &self.rows);
        let all = [RowRun { first: Tid(0), rows: rows.live_rows }];
        let (unwatched, last) = (StatementProgress::default(), spec.indexes.len().saturating_sub(1));
        let built = spec.indexes.iter().enumerate().map(|(position, index)| {
            let mut index = TableIndex::new(index, &spec.columns, &rows.layout, rows.pool());
            let watched = if position == last { progress } else { &unwatched };
            index.insert_runs(rows, &all, watched).map(|()| index)
        });
        self.indexes = built.collect::<Result<_, _>>().unwrap_or_default();
    }

    /// Lays rows down that were few, so that it can arrive.
    ///
    /// # Errors
    /// There is no memory; or the first failure of [`Staging::push`].
    pub fn lay_down(&mut self) -> Result<(), RowFault> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        for few in std::mem::take(&mut self.few) {
            // These were checked, so only memory can be missing.
            batch::lay(&self.spec, self.placement, &mut self.rows, &few)?;
        }
        (self.few_rows, self.few_bytes) = (0, 0);
        Ok(())
    }

    /// Whether [`Table::append`] is a matter of a few words, if no row came meanwhile: the table had none, and its indexes
    /// have been made.
    pub fn is_ready(&self) -> bool {
        self.is_first && self.rows.live_rows > 0 && self.indexes.len() == self.spec.indexes.len()
    }

    /// Its rows, which are laid down, and the slot of the first.
    pub(crate) fn laid(&self) -> (&TableSpec, &Rows, u64) {
        debug_assert!(self.few.is_empty(), "the rows are laid down");
        (&self.spec, &self.rows, self.rows.slots - self.rows.live_rows)
    }

    /// The rows on their way into the table.
    pub fn into_arrival(self) -> Arrival {
        debug_assert!(self.few.is_empty(), "the rows are laid down");
        Arrival::new(self.rows)
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        let (rows, bytes) = (batch.num_rows() as u64, batch.get_array_memory_size());
        let is_few = self.row_count() + rows <= self.most_few && self.few_bytes + bytes <= FEW_BYTES;
        if is_few && self.rows.live_rows == 0 {
            self.check(batch)?;
            self.few.push(batch.clone());
            (self.few_rows, self.few_bytes) = (self.few_rows + rows, self.few_bytes + bytes);
            return Ok(());
        }
        self.lay_down()?;
        self.lay(batch)
    }

    /// Looks for what [`Staging::lay`] would not take.
    fn check(&self, batch: &RecordBatch) -> Result<(), RowFault> {
        let shape = batch::check(&self.spec, self.placement, batch);
        shape.map_err(|error| self.fault(batch, error))?;
        batch::first_fault(&self.spec, batch).map_or(Ok(()), |found| Err(at_row(found)))
    }

    fn lay(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        match batch::lay(&self.spec, self.placement, &mut self.rows, batch) {
            Ok(()) if self.spec.checks.is_empty() => Ok(()),
            Ok(()) => batch::first_unmet(&self.spec, batch).map_or(Ok(()), |found| Err(at_row(found))),
            Err(error) => Err(self.fault(batch, error)),
        }
    }

    /// The first fault of a batch of which `error` is known.
    fn fault(&self, batch: &RecordBatch, error: TableError) -> RowFault {
        match error {
            TableError::OutOfMemory(_) | TableError::WrongType { .. } | TableError::WrongPartition { .. } => {
                error.into()
            }
            error => batch::first_fault(&self.spec, batch).map_or_else(|| error.into(), at_row),
        }
    }
}

fn at_row((row, error): (usize, TableError)) -> RowFault {
    RowFault { row: Some(row as u64), error, key: Vec::new() }
}

impl Table {
    /// An empty staging for rows of this table.
    pub fn staging(&self) -> Staging {
        let (spec, placement) = (Arc::clone(&self.spec), self.placement);
        let rows = self.rows.apart();
        let (few, few_rows, few_bytes, most_few) = (Vec::new(), 0, 0, FEW_ROWS);
        let (is_first, indexes) = (self.rows.slots == 0, Vec::new());
        Staging { spec, placement, few, few_rows, few_bytes, most_few, rows, is_first, indexes, failed: None }
    }

    /// Makes staged rows rows of the table, and counts each in `progress` once it stands in all indexes, unless
    /// [`Staging::index`] has.
    ///
    /// # Errors
    /// A key is there twice, or there is no memory; the table is then as it was.
    ///
    /// # Panics
    /// They are rows of another table.
    pub fn append(
        &mut self,
        undo: &mut UndoLog,
        staged: Staging,
        progress: &StatementProgress,
    ) -> Result<u64, RowFault> {
        if let Some(failed) = staged.failed {
            return Err(failed);
        }
        if !staged.few.is_empty() {
            assert!(staged.rows.live_rows == 0, "rows are few, or laid down");
            return self.insert_few(undo, &staged.few, progress);
        }
        let (mut runs, count, before) = (Vec::new(), staged.rows.live_rows, self.row_count());
        let is_first = self.rows.slots == 0 && self.indexes.iter().all(TableIndex::is_empty);
        let done = self.rows.absorb(staged.rows, &mut runs);
        let done = done.map_err(|full| TableError::from(full).into());
        let indexed = !staged.indexes.is_empty()
            && staged.spec.indexes == self.spec.indexes
            && is_first
            && runs == [RowRun { first: Tid(0), rows: count }];
        let done = done.and_then(|()| match indexed {
            true => {
                self.indexes = staged.indexes;
                Ok(())
            }
            false => self.index_runs(&runs, progress),
        });
        if let Err(fault) = done {
            for &run in runs.iter().rev() {
                self.retract(run);
            }
            if undo.is_empty() {
                // The transaction has changed nothing so far, so no before image refers to a heap.
                self.rows.tidy();
            }
            assert_eq!(self.row_count(), before, "rows are appended all or none (I-2)");
            return Err(fault);
        }
        assert_eq!(runs.iter().map(|run| run.rows).sum::<u64>(), count, "all rows came (I-2)");
        assert_eq!(self.row_count(), before + count, "rows that came are counted (I-2)");
        for &run in &runs {
            undo.push_appended(self.id, run);
        }
        self.note_untidy(undo);
        Ok(count)
    }

    /// Inserts rows one by one.
    fn insert_few(
        &mut self,
        undo: &mut UndoLog,
        few: &[RecordBatch],
        progress: &StatementProgress,
    ) -> Result<u64, RowFault> {
        let (start, spec, mut count) = (undo.savepoint(), Arc::clone(&self.spec), 0);
        let mut values = Vec::with_capacity(self.columns);
        for (batch, row) in few.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row))) {
            let columns = batch.columns().iter().zip(&spec.columns);
            values.clear();
            values.extend(columns.map(|(array, column)| batch::value_in(array, column.ty, row)));
            if let Err(error) = self.insert_values(undo, &values) {
                self.roll_back_to(undo, start);
                let (row, mut key) = (Some(count), Vec::new());
                if let TableError::Duplicate { index, .. } = &error {
                    let columns = spec.indexes[index.index()].columns.iter();
                    key = columns.map(|column| values[column.index()].clone()).collect();
                }
                return Err(match error {
                    TableError::OutOfMemory(_) => error.into(),
                    _ => RowFault { row, error, key },
                });
            }
            count += 1;
        }
        progress.add(count);
        Ok(count)
    }

    fn index_runs(&mut self, runs: &[RowRun], progress: &StatementProgress) -> Result<(), RowFault> {
        // Only one index's rows are counted: the statement's rows are not as many as it has indexes.
        let (unwatched, last) = (StatementProgress::default(), self.indexes.len().saturating_sub(1));
        for index in 0..self.indexes.len() {
            let watched = if index == last { progress } else { &unwatched };
            let Err(failure) = self.indexes[index].insert_runs(&self.rows, runs, watched) else { continue };
            let error = self.index_error(IndexId(index as u16), failure);
            self.leave_indexes(index, runs);
            return Err(match error {
                TableError::Duplicate { .. } => self.first_duplicate(runs).unwrap_or_else(|| error.into()),
                error => error.into(),
            });
        }
        if self.indexes.is_empty() {
            progress.add(runs.iter().map(|run| run.rows).sum());
        }
        Ok(())
    }

    /// Takes the rows out of the first so many indexes.
    fn leave_indexes(&mut self, indexes: usize, runs: &[RowRun]) {
        for index in &mut self.indexes[..indexes] {
            index.remove_runs(&self.rows, runs);
        }
    }

    /// The first of these rows, which stand in no index, whose key is there already or is that of a row before
    /// it.
    #[cold]
    fn first_duplicate(&mut self, runs: &[RowRun]) -> Option<RowFault> {
        let mut found: Option<(u64, IndexId, Tid)> = None;
        for position in 0..self.indexes.len() {
            let (index, rows) = (&mut self.indexes[position], &self.rows);
            let before = found.map_or(u64::MAX, |(row, ..)| row);
            let tids = || runs.iter().flat_map(|run| run.tids()).zip(0..before);
            let mut entered = 0;
            for (tid, row) in tids() {
                match index.insert(rows, tid) {
                    Ok(()) => entered = row + 1,
                    Err(super::indexes::Failure::Duplicate(existing)) => {
                        found = Some((row, IndexId(position as u16), existing));
                        break;
                    }
                    // What was found before is a fault as well.
                    Err(super::indexes::Failure::OutOfMemory(_)) => break,
                }
            }
            tids().take(entered as usize).for_each(|(tid, _)| index.remove(rows, tid));
        }
        let (row, index, existing) = found?;
        let tid = runs.iter().flat_map(|run| run.tids()).nth(row as usize).expect("counted above");
        let columns = &self.spec.indexes[index.index()].columns;
        let key = columns.iter().map(|column| self.value(tid, *column)).collect();
        let error = TableError::Duplicate { table: self.spec.id, index, existing };
        Some(RowFault { row: Some(row), error, key })
    }

    /// Takes appended rows back, all of which live.
    pub(super) fn undo_append(&mut self, run: RowRun) {
        self.leave_indexes(self.indexes.len(), &[run]);
        self.retract(run);
    }

    /// Takes rows back that stand in no index.
    fn retract(&mut self, run: RowRun) {
        if !self.rows.layout.heap_columns.is_empty() {
            // Chunks that begin with one of the last rows go with their heaps.
            let stays = match (self.rows.are_last(run), run.first.slot()) {
                (true, 0) => 0,
                (true, slot) => (CHUNK_ROWS - slot) as u64,
                (false, _) => run.rows,
            };
            run.tids().take(stays as usize).for_each(|tid| self.count_texts(tid, 1));
        }
        self.rows.retract(run);
    }
}
