//! Many rows at once, in two steps: laid down beside the table while others use it, then made its rows.
//!
//! [`Staging`] takes batches of rows and writes them into chunks of its own, in the form in which the table has
//! them. [`Table::append`] then hands these chunks over, a few words each, and enters the rows into the indexes,
//! in the order of their keys. So whoever appends owns the table for the second step alone, and the rows are in
//! memory once. A statement that adds few rows goes the same way: rows that do not begin at a chunk's first slot
//! are copied into what is left of the table's last chunk.
//!
//! Responsible for: NOT NULL, lengths, digits, CHECK constraints while rows are laid down; uniqueness when they
//! are appended; the undo of both; which row is the first that violates something. Not responsible for:
//! conversions (`engine`), which rows belong to which partition (`partition`).
//!
//! Invariants:
//! - I-1 Rows that are staged are seen by nobody. They count as memory of the pool; dropped, they give it back.
//! - I-2 [`Table::append`] appends all rows or none, and leaves one undo record for rows in slots next to each
//!   other, whatever their number.
//! - I-3 The fault that is reported is the one that inserting the rows one by one would have met first.

use std::sync::Arc;

use albireo_base::{IndexId, StatementProgress, Tid, Value};
use arrow_array::RecordBatch;

use super::{Placement, Table, TableError, TableSpec, batch};
use crate::rows::{RowRun, Rows};
use crate::undo::UndoLog;

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
    rows: Rows,
    /// The first failure of [`Staging::push`]: rows are missing.
    failed: Option<RowFault>,
}

impl Staging {
    /// Rows so far.
    pub fn row_count(&self) -> u64 {
        self.rows.live_rows
    }

    /// Bytes of their memory.
    pub fn memory_bytes(&self) -> u64 {
        let (blocks, heaps) = self.rows.memory_bytes();
        blocks + heaps
    }

    /// Without the rows, to begin again.
    pub fn emptied(self) -> Self {
        Self { rows: self.rows.apart_as(), failed: None, ..self }
    }

    /// Adds the rows of a batch: the table's columns in order, with the types of [`crate::arrow_type`], or
    /// texts as `Utf8` and byte strings as `Binary`; names do not matter.
    ///
    /// # Errors
    /// A row does not fit the table or violates a constraint, or there is no memory. After an error nothing can
    /// be done with it any more but to say so again.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let before = self.row_count();
        let Err(mut fault) = self.lay(batch) else { return Ok(()) };
        fault.row = fault.row.map(|row| before + row);
        self.failed = Some(fault.clone());
        Err(fault)
    }

    fn lay(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        let fault = |(row, error)| RowFault { row: Some(row as u64), error, key: Vec::new() };
        match batch::lay(&self.spec, self.placement, &mut self.rows, batch) {
            Ok(()) if self.spec.checks.is_empty() => Ok(()),
            Ok(()) => batch::first_unmet(&self.spec, batch).map_or(Ok(()), |found| Err(fault(found))),
            Err(
                error @ (TableError::OutOfMemory(_)
                | TableError::WrongType { .. }
                | TableError::WrongPartition { .. }),
            ) => Err(error.into()),
            Err(error) => match batch::first_fault(&self.spec, batch) {
                Some(found) => Err(fault(found)),
                None => Err(error.into()),
            },
        }
    }
}

impl Table {
    /// An empty staging for rows of this table.
    pub fn staging(&self) -> Staging {
        let (spec, placement) = (Arc::clone(&self.spec), self.placement);
        Staging { spec, placement, rows: self.rows.apart(), failed: None }
    }

    /// Makes staged rows rows of the table, and counts each in `progress` once it stands in all indexes.
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
        let mut runs = Vec::new();
        let done = self.rows.absorb(staged.rows, &mut runs);
        let done = done.map_err(|full| TableError::from(full).into());
        if let Err(fault) = done.and_then(|()| self.index_runs(&runs, progress)) {
            for &run in runs.iter().rev() {
                self.retract(run);
            }
            if undo.is_empty() {
                // The transaction has changed nothing so far, so no before image refers to a heap.
                self.rows.tidy();
            }
            return Err(fault);
        }
        for &run in &runs {
            undo.push_appended(self.id, run);
        }
        self.note_untidy(undo);
        Ok(runs.iter().map(|run| run.rows).sum())
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
        // Chunks that have no other rows go with their heaps.
        if run.first.slot() > 0 && !self.rows.layout.heap_columns.is_empty() {
            let chunk = run.first.chunk();
            run.tids().take_while(|tid| tid.chunk() == chunk).for_each(|tid| self.count_texts(tid, 1));
        }
        self.rows.retract(run);
    }
}
