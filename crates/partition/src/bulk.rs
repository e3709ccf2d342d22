//! Many rows for one table, laid down beside its partitions while transactions go on.
//!
//! [`BulkInsert`] takes batches of rows and splits them by partition; [`crate::Transaction::append`] makes them
//! rows of the table. Whoever does so owns the partitions for that alone, not while rows are read, computed or
//! laid down.
//!
//! I-1 The fault that is reported is that of the first row at fault in the order in which rows were given,
//! whichever partition it belongs to.

use albireo_base::{ColumnId, PartitionId, SqlType, StatementProgress};
use albireo_storage::{RowFault, Staging, partitions_of};
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;

use crate::handle::TableHandle;
use crate::{Abort, Partitions};

/// Rows to be inserted. Made by [`Partitions::bulk_insert`].
pub struct BulkInsert {
    pub(crate) table: TableHandle,
    /// The column that places rows, and its type, if there are several partitions.
    place: Option<(ColumnId, SqlType)>,
    /// One for each partition, or one alone.
    pub(crate) parts: Vec<Part>,
    count: u64,
    /// The partition of each row of a batch, and the rows of each.
    places: Vec<u16>,
    chosen: Vec<Vec<u32>>,
}

/// The rows of one partition.
pub(crate) struct Part {
    pub(crate) staging: Staging,
    /// Which of all rows they are; empty with one partition.
    pub(crate) numbers: Vec<u32>,
}

/// Why rows were not appended.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// The table does not take a row, or there is no memory.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// The transaction does not own all of their partitions.
    #[error("the rows belong to several partitions")]
    Crossing,
}

impl From<AppendError> for Abort {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Row(fault) => Self::Table(fault.error),
            AppendError::Crossing => Self::Crossing,
        }
    }
}

impl Partitions {
    /// Begins to collect rows for a table; `None` if it was dropped.
    pub fn bulk_insert(&self, table: TableHandle) -> Option<BulkInsert> {
        let partitions = if table.is_shared() { 1 } else { self.count() };
        let mut place = None;
        let part = |partition| {
            self.with_table_if_there(table, PartitionId(partition), |table| {
                let spec = table.spec();
                place = spec.partition_by.map(|column| (column, spec.columns[column.index()].ty));
                Part { staging: table.staging(), numbers: Vec::new() }
            })
        };
        let parts = (0..partitions).map(part).collect::<Option<Vec<Part>>>()?;
        let chosen = vec![Vec::new(); parts.len()];
        Some(BulkInsert { table, place, parts, count: 0, places: Vec::new(), chosen })
    }
}

impl BulkInsert {
    /// Rows so far.
    pub fn row_count(&self) -> u64 {
        self.count
    }

    /// Bytes of their memory.
    pub fn memory_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.staging.memory_bytes()).sum()
    }

    /// Adds the rows of a batch; see [`Staging::push`].
    ///
    /// # Errors
    /// As for [`Staging::push`]; the row's position is that among all rows.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), RowFault> {
        let before = self.count;
        self.count += batch.num_rows() as u64;
        match self.place {
            Some((column, ty)) if self.parts.len() > 1 => self.split(batch, column, ty, before),
            _ => self.parts[0].staging.push(batch),
        }
    }

    fn split(
        &mut self,
        batch: &RecordBatch,
        column: ColumnId,
        ty: SqlType,
        before: u64,
    ) -> Result<(), RowFault> {
        let Self { parts, places, chosen, .. } = self;
        // A batch that is not of the table is refused by whoever has the first part.
        let suits = batch.columns().get(column.index()).is_some_and(|array| {
            *array.data_type() == albireo_base::arrow_type(ty) || ty.is_string() || ty == SqlType::Bytea
        });
        if !suits {
            return parts[0].staging.push(batch);
        }
        partitions_of(batch.column(column.index()), ty, parts.len() as u16, places);
        debug_assert_eq!(places.len(), batch.num_rows(), "each row has a partition");
        chosen.iter_mut().for_each(Vec::clear);
        for (row, place) in (0..).zip(&*places) {
            chosen[usize::from(*place)].push(row);
        }
        let mut first: Option<RowFault> = None;
        for (part, rows) in parts.iter_mut().zip(chosen).filter(|(_, rows)| !rows.is_empty()) {
            // Beyond 2^32 rows a number is wrong, and only messages have numbers.
            part.numbers.extend(rows.iter().map(|row| (before as u32).wrapping_add(*row)));
            let pushed = match rows.len() == batch.num_rows() {
                true => part.staging.push(batch),
                false => {
                    let rows = take_record_batch(batch, &UInt32Array::from(std::mem::take(rows)));
                    part.staging.push(&rows.expect("rows of the batch"))
                }
            };
            if let Err(fault) = pushed {
                keep_first(&mut first, part.numbered(fault));
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// After the last batch: does ahead what can be done of entering the rows into indexes, and counts those rows in
    /// `progress`; see [`Staging::index`].
    pub fn index(&mut self, progress: &StatementProgress) {
        self.parts.iter_mut().for_each(|part| part.staging.index(progress));
    }

    /// Appends all rows by `append`, which is given the partition of each part.
    pub(crate) fn append(
        self,
        mut append: impl FnMut(u16, Staging) -> Result<u64, AppendError>,
    ) -> Result<u64, AppendError> {
        let (mut count, mut first) = (0, None);
        for (partition, part) in (0..).zip(self.parts).filter(|(_, part)| part.staging.row_count() > 0) {
            let Part { staging, numbers } = part;
            let rows = staging.row_count();
            match append(partition, staging) {
                Ok(appended) => {
                    assert_eq!(appended, rows, "all rows of a partition are appended, or none");
                    count += appended;
                }
                // Rows of other partitions may be at fault that came before.
                Err(AppendError::Row(fault)) => keep_first(&mut first, numbered(&numbers, fault)),
                Err(crossing) => return Err(crossing),
            }
        }
        first.map_or(Ok(count), |fault| Err(fault.into()))
    }
}

impl Part {
    fn numbered(&self, fault: RowFault) -> RowFault {
        numbered(&self.numbers, fault)
    }
}

/// The fault by its row's position among all rows.
pub(crate) fn numbered(numbers: &[u32], mut fault: RowFault) -> RowFault {
    fault.row = fault.row.map(|row| numbers.get(row as usize).map_or(row, |number| u64::from(*number)));
    fault
}

/// Keeps the fault of the first row; one without a row, which want of memory leaves, only if there is no other.
pub(crate) fn keep_first(first: &mut Option<RowFault>, fault: RowFault) {
    let place = |fault: &RowFault| fault.row.unwrap_or(u64::MAX);
    if first.as_ref().is_none_or(|first| place(&fault) < place(first)) {
        *first = Some(fault);
    }
}
