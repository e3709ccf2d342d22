//! Rows of a file on their way into their table, all or none, in one transaction.
//!
//! Batches are laid down beside the table as they come, while transactions go on; then all partitions are owned
//! and the rows are appended. So a load needs hardly more memory than its rows take in the table. Only if there
//! is no memory for them beside the table, as when it is to be filled again after a DELETE, the file is read once
//! more, kept as batches, and its rows are inserted one by one into the table's free slots.
//!
//! Responsible for: columns that the file does not fill, which place in the file an error has.
//! Not responsible for: reading files (`text`, `parquet`), constraints (`albireo_storage`).

use std::sync::Arc;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState, Value};
use albireo_files::{Batch, Places};
use albireo_partition::{Abort, BulkInsert, Call, Route, Transaction};
use albireo_sql::{ColumnDef, TableDef};
use albireo_storage::{RowFault, TableError};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::{CopyTarget, Limits, ROWS_PER_CHECK};
use crate::arrays;
use crate::ddl::handle;

/// The schema of batches for `target`. Whether a column may be NULL is checked with its values.
pub(super) fn schema(target: &CopyTarget<'_>) -> SchemaRef {
    let defs = target.columns.iter().map(|column| target.table.column_def(*column));
    arrays::schema(defs.map(|def| (def.name.as_str(), def.ty)))
}

/// Rows of a file, in order.
pub(super) struct Load<'a> {
    target: &'a CopyTarget<'a>,
    limits: &'a Limits<'a>,
    /// A value for each column of the table, for those that the file does not fill.
    defaults: Vec<Value>,
    /// Which of a batch's columns is which of the table's.
    given: Vec<Option<usize>>,
    schema: SchemaRef,
    rows: Collected,
    count: u64,
    /// Where in the file the rows are, from which row on.
    places: Vec<(u64, Places)>,
    is_short: bool,
}

/// Rows so far.
enum Collected {
    /// Beside the table.
    Laid(BulkInsert),
    /// As they came, and their bytes.
    Kept(Vec<RecordBatch>, u64),
}

impl<'a> Load<'a> {
    /// Begins to lay rows down beside the table.
    ///
    /// # Errors
    /// The table was dropped.
    pub(super) fn beside(
        target: &'a CopyTarget<'a>,
        defaults: Vec<Value>,
        limits: &'a Limits<'a>,
    ) -> Result<Self, SqlError> {
        let rows = limits.database.inner.partitions.bulk_insert(handle(target.table));
        let rows = Collected::Laid(rows.ok_or_else(|| dropped(target.table))?);
        let mut given = vec![None; target.table.columns.len()];
        for (at, column) in target.columns.iter().enumerate() {
            given[column.index()] = Some(at);
        }
        let schema = arrays::schema_of(target.table);
        let (count, places, is_short) = (0, Vec::new(), false);
        Ok(Self { target, limits, defaults, given, schema, rows, count, places, is_short })
    }

    /// Begins again, and keeps rows as they come.
    pub(super) fn kept(self) -> Self {
        let (count, places, is_short) = (0, Vec::new(), false);
        Self { rows: Collected::Kept(Vec::new(), 0), count, places, is_short, ..self }
    }

    /// What goes where.
    pub(super) fn target(&self) -> &'a CopyTarget<'a> {
        self.target
    }

    /// When to end early, and whom to tell how far it is.
    pub(super) fn limits(&self) -> &'a Limits<'a> {
        self.limits
    }

    /// Says that what was read is gone: rows that have no room beside the table are not read once more.
    pub(super) fn cannot_read_again(&mut self) {
        self.is_short = false;
    }

    /// Whether rows had no room beside the table, and are to be read once more.
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.is_short
    }

    /// Ends the statement when it is to end; see [`Limits::check`].
    pub(super) fn check(&self) -> Result<(), SqlError> {
        self.limits.check(match &self.rows {
            // The pool refuses what it has no room for.
            Collected::Laid(_) => 0,
            Collected::Kept(_, bytes) => *bytes,
        })
    }

    /// Adds the rows that follow. The batch is its owner's again, who may give its memory back where it came from.
    ///
    /// # Errors
    /// One of them violates a constraint, or there is no memory.
    pub(super) fn push(&mut self, batch: &mut Batch) -> Result<(), SqlError> {
        let columns = self.complete(&batch.columns)?;
        self.places.push((self.count, std::mem::replace(&mut batch.places, Places::Consecutive(0))));
        self.count += columns.num_rows() as u64;
        match &mut self.rows {
            Collected::Kept(batches, bytes) => {
                *bytes += columns.get_array_memory_size() as u64;
                batches.push(columns);
                Ok(())
            }
            Collected::Laid(rows) => rows.push(&columns).map_err(|fault| {
                self.is_short = matches!(fault.error, TableError::OutOfMemory(_));
                self.explain(&fault)
            }),
        }
    }

    /// A batch with all columns of the table.
    fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let rows = batch.num_rows();
        let columns = self.target.table.columns.iter().zip(&self.given).zip(&self.defaults);
        let column = |((column, given), default): ((&ColumnDef, &Option<usize>), &Value)| match given {
            Some(at) => Ok(Arc::clone(batch.column(*at))),
            None => arrays::repeated(column.ty, default, rows),
        };
        let columns = columns.map(column).collect::<Result<Vec<ArrayRef>, SqlError>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(arrays::internal)
    }

    /// What is wrong with a row, and where in the file it is.
    fn explain(&self, fault: &RowFault) -> SqlError {
        let error = self.limits.database.explain_fault(fault);
        match fault.row.and_then(|row| self.place_of(row)) {
            Some(place) => self.target.at(error, place, None),
            None => error,
        }
    }

    fn place_of(&self, row: u64) -> Option<u64> {
        let batch = self.places.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        let (first, places) = &self.places[batch];
        Some(places.of((row - first) as usize))
    }

    /// Makes them rows of the table; gives their number.
    ///
    /// # Errors
    /// A key is there twice, a constraint is violated, there is no memory, or the table was dropped. Then no row
    /// is there.
    pub(super) fn finish(mut self) -> Result<u64, SqlError> {
        let Limits { database, progress, .. } = *self.limits;
        progress.begin(Phase::InsertingRows, Unit::Rows, Some(self.count));
        if let Collected::Laid(rows) = &mut self.rows {
            rows.index(progress);
        }
        self.check()?;
        // Definitions stand still from here on, so that whoever changes them did not wait for the indexes. The table
        // may have been dropped while the file was read, and its indexes be others. Its columns never change.
        let _fixed = database.inner.definitions.read();
        let catalog = database.catalog();
        let table = catalog.table(self.target.table.id).ok_or_else(|| dropped(self.target.table))?;
        let call = Call::new(Route::Crossing, "COPY");
        let mut fault = None;
        let rows = std::mem::replace(&mut self.rows, Collected::Kept(Vec::new(), 0));
        let inserted = match rows {
            Collected::Laid(rows) => {
                let limits = self.limits.of_statement();
                let brought = database.bring(&call, rows, None, progress, &limits, &mut fault);
                brought.map(Option::unwrap_or_default)
            }
            Collected::Kept(batches, _) => {
                let inserted = database
                    .inner
                    .partitions
                    .crossing(&call, |tx| self.insert_by_rows(tx, table, &batches, &mut fault));
                inserted.map_err(|error| database.explain_call(error))
            }
        };
        inserted.map_err(|error| match fault {
            Some(fault) => self.explain(&fault),
            None => error,
        })
    }

    /// Inserts rows one by one. What is wrong with one of them is left in `fault`.
    #[cold]
    fn insert_by_rows(
        &self,
        tx: &mut Transaction,
        table: &TableDef,
        batches: &[RecordBatch],
        fault: &mut Option<RowFault>,
    ) -> Result<u64, Abort> {
        let mut count = 0_u64;
        for (batch, row) in
            batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
        {
            if count.is_multiple_of(ROWS_PER_CHECK) {
                self.limits.check(0)?;
                self.limits.progress.add(if count == 0 { 0 } else { ROWS_PER_CHECK });
            }
            let values = arrays::row_of(batch, row, table);
            insert(tx, table, &values).inspect_err(|abort| {
                if let Abort::Table(error) = abort {
                    let key = key_at_fault(table, error, &values);
                    *fault = Some(RowFault { row: Some(count), error: error.clone(), key });
                }
            })?;
            count += 1;
        }
        Ok(count)
    }
}

fn insert(tx: &mut Transaction, table: &TableDef, values: &[Value]) -> Result<(), Abort> {
    let site = match table.partition_by {
        Some(column) => tx.site_of_value(&values[column.index()])?,
        None => tx.home(),
    };
    tx.insert_values_at(site, handle(table), values).map(|_| ())
}

/// The key that is there twice, if that is the error.
fn key_at_fault(table: &TableDef, error: &TableError, values: &[Value]) -> Vec<Value> {
    let TableError::Duplicate { index, .. } = error else { return Vec::new() };
    let Some(index) = table.indexes.get(index.index()) else { return Vec::new() };
    index.columns.iter().map(|column| values[column.index()].clone()).collect()
}

fn dropped(table: &TableDef) -> SqlError {
    let text = format!("relation \"{}\" was dropped while the file was read", table.name);
    SqlError::new(SqlState::UNDEFINED_TABLE, text)
}
