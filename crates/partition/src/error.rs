//! Why a transaction did not commit.

use albireo_base::{SqlError, SqlState};
use albireo_redo::LogError;
use albireo_storage::{Evicted, FetchError, OutOfMemory, TableError};

/// Returned by a procedure to end its transaction; all it did is rolled back.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Abort {
    /// The procedure decided so.
    #[error(transparent)]
    Raised(#[from] SqlError),
    /// A change was not possible.
    #[error(transparent)]
    Table(#[from] TableError),
    /// It touches a partition it does not own. The transaction is run again, as a crossing one.
    #[error("the transaction crosses partitions")]
    Crossing,
    /// Another transaction of several statements has locked a row: to be run again once that is released.
    #[error("a row is locked")]
    Locked,
    /// It has met a row that is not in memory: to be run again once that was fetched.
    #[error("a row is not in memory")]
    Away(Evicted),
    /// It was run for what it gives, and leaves nothing: a statement of a transaction of several.
    #[error("the transaction was taken back")]
    TakenBack,
}

impl Abort {
    /// An abort with a SQLSTATE and a message.
    pub fn raise(state: SqlState, message: impl Into<String>) -> Self {
        Self::Raised(SqlError::new(state, message))
    }
}

impl From<FetchError> for Abort {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Memory(full) => full.into(),
            error => Self::Raised(error.into()),
        }
    }
}

impl From<OutOfMemory> for Abort {
    fn from(full: OutOfMemory) -> Self {
        Self::Table(full.into())
    }
}

/// Why a call did not commit. Nothing of it remains, but for [`CallError::Unacknowledged`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The procedure aborted.
    #[error(transparent)]
    Aborted(Abort),
    /// The procedure has a bug.
    #[error("procedure {procedure} panicked: {message}")]
    Panicked {
        /// Its name.
        procedure: String,
        /// The panic's message.
        message: String,
    },
    /// The redo log does not take it.
    #[error(transparent)]
    Log(LogError),
    /// It committed, but the redo log failed before a crash could not take it back any more: after a
    /// restart it may be there or not.
    #[error("the transaction may be lost after a restart: {0}")]
    Unacknowledged(LogError),
    /// The database is closing.
    #[error("the database is closing")]
    Closed,
}

/// Why a call could not be queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The partition's queue is full; try again when earlier calls are done.
    #[error("the queue of partition {partition} is full ({capacity} calls)")]
    Full {
        /// The partition.
        partition: u16,
        /// Calls it holds.
        capacity: usize,
    },
    /// The database is closing.
    #[error("the database is closing")]
    Closed,
}
