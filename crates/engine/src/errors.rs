//! From what went wrong below to a SQLSTATE, a message and a remedy; of rows, `albireo_execute::errors` says it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use albireo_base::{SqlError, SqlState};
use albireo_execute::errors::Explainer;
use albireo_partition::SessionError;
use albireo_partition::{CallError, SubmitError};
use albireo_redo::LogError;
use albireo_storage::{FetchError, LayoutError};

/// Runs what waits for rows that are not in memory; if these cannot be read, that is its error.
pub(crate) fn or_unreadable<R>(work: impl FnOnce() -> Result<R, SqlError>) -> Result<R, SqlError> {
    let panic = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => return done,
        Err(panic) => panic,
    };
    match panic.downcast::<FetchError>() {
        Ok(error) => Err((*error).into()),
        Err(other) => resume_unwind(other),
    }
}

/// What ended a call.
pub(crate) fn call(explainer: &Explainer<'_>, error: CallError) -> SqlError {
    match error {
        CallError::Aborted(abort) => explainer.abort(abort),
        CallError::Panicked { procedure, message } => {
            SqlError::new(SqlState::INTERNAL_ERROR, format!("procedure \"{procedure}\" panicked: {message}"))
                .with_hint("Its transaction was rolled back; the database goes on.")
        }
        CallError::Log(error) => log(&error),
        CallError::Unacknowledged(error) => {
            log(&error).with_detail("The transaction may be there or not after a restart.")
        }
        CallError::Closed => closed(),
        other => SqlError::new(SqlState::INTERNAL_ERROR, other.to_string()),
    }
}

pub(crate) fn session(error: SessionError) -> SqlError {
    match error {
        SessionError::BudgetSpent(spent) => SqlError::new(SqlState::OUT_OF_MEMORY, spent.to_string())
            .with_hint("End old query sessions, or raise snapshot_budget_bytes."),
        other => SqlError::new(SqlState::SNAPSHOT_TOO_OLD, other.to_string()),
    }
}

pub(crate) fn submit(error: SubmitError) -> SqlError {
    match error {
        SubmitError::Full { .. } => SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, error.to_string())
            .with_hint("Wait for earlier calls, or raise queue_capacity."),
        _ => closed(),
    }
}

pub(crate) fn layout(error: LayoutError) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string())
        .with_hint("Split the group, or use layout = 'column'.")
}

/// 53100 while there is no room, 58030 once the log has failed.
pub(crate) fn log(error: &LogError) -> SqlError {
    let state = match error {
        LogError::Full(_) => SqlState::DISK_FULL,
        LogError::Failed(_) => SqlState::IO_ERROR,
        LogError::Closed => return closed(),
        _ => SqlState::PROGRAM_LIMIT_EXCEEDED,
    };
    SqlError::new(state, error.to_string())
}

pub(crate) fn closed() -> SqlError {
    SqlError::new(SqlState::ADMIN_SHUTDOWN, "the database is closing")
}

/// What the system said when it was asked for a thread.
pub(crate) fn no_thread(error: std::io::Error) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_RESOURCES, format!("could not start a thread: {error}"))
}
