//! Why an evaluation ends without a value.

use albireo_base::SqlError;

/// Why a procedure, or an expression, does not go on.
#[derive(Debug)]
pub enum Stop {
    /// An error that EXCEPTION may catch.
    Error(Box<SqlError>),
    /// An error that nothing catches: the statement was cancelled, or ran out of time or memory.
    Fatal(Box<SqlError>),
    /// It reached for a partition that the transaction does not own: to be run again over all.
    Crossing,
    /// Another transaction has locked a row: to be run again once that is released.
    Locked,
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(Box::new(error))
    }
}
