//! Rows read from a file, by columns.

use arrow_array::RecordBatch;

/// Rows that stand one after another in a file.
#[derive(Debug)]
pub struct Batch {
    /// An array for each column that was asked for, in that order, of the type that [`albireo_base::arrow_type`] says.
    pub columns: RecordBatch,
    /// Where in the file the rows are.
    pub places: Places,
}

/// The lines (or rows, of a Parquet file) on which a batch's rows begin, from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Places {
    /// Each row on the line after the last one's.
    Consecutive(u64),
    /// One for each row.
    Listed(Vec<u64>),
}

impl Places {
    /// Where row `row` of the batch is.
    pub fn of(&self, row: usize) -> u64 {
        match self {
            Self::Consecutive(first) => first + row as u64,
            Self::Listed(places) => places[row],
        }
    }
}
