//! Why a change of a table was refused.

use albireo_base::{ColumnId, IndexId, SqlError, TableId, Tid};

use crate::frozen::away::FetchError;
use crate::pool::OutOfMemory;

/// Why a change of a table failed. The transaction goes on unchanged and may abort.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// No memory for the change.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Rows that are not in memory cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FetchError),
    /// The row is not in memory, and the transaction is in a pre-pass: it is taken back in the end, and what is read of the
    /// row is made up.
    #[error("a row is not in memory")]
    Away,
    /// Another row has the key.
    #[error("duplicate key in index {index} of table {table}")]
    Duplicate {
        /// The table.
        table: TableId,
        /// The unique index.
        index: IndexId,
        /// The row that has the key.
        existing: Tid,
    },
    /// NULL, or no value, for a NOT NULL column.
    #[error("NULL in column {column} of table {table}")]
    NotNull {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
    },
    /// A DECIMAL has more digits than declared.
    #[error("value with too many digits for column {column} of table {table}")]
    OutOfRange {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
    },
    /// A text has more characters than declared, or more bytes than any column holds.
    #[error("text of {bytes} bytes is too long for column {column} of table {table}")]
    TooLong {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
        /// Bytes of the text.
        bytes: usize,
    },
    /// A text holds the character U+0000, which text may not.
    #[error("text for column {column} of table {table} holds a zero character")]
    ZeroCharacter {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
    },
    /// A CHECK constraint does not hold.
    #[error("check {check} of table {table} does not hold")]
    Check {
        /// The table.
        table: TableId,
        /// The constraint's position.
        check: usize,
    },
    /// Whether a CHECK constraint holds cannot be said.
    #[error(transparent)]
    Unchecked(#[from] SqlError),
    /// The row belongs to another partition.
    #[error("the row belongs to another partition of table {table}")]
    WrongPartition {
        /// The table.
        table: TableId,
    },
    /// The value has not the column's type.
    #[error("value of another type for column {column} of table {table}")]
    WrongType {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
    },
    /// There is no such row.
    #[error("no row {} in table {table}", .tid.0)]
    NoRow {
        /// The table.
        table: TableId,
        /// Where it was looked for.
        tid: Tid,
    },
}
