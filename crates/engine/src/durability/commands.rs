//! Command records: calls of routines and native procedures that are made again.

use albireo_base::packed::Input;
use albireo_base::{SqlError, SqlState};
use albireo_partition::{Abort, Call, Route, Transaction};
use albireo_redo::Record;

use crate::Database;
use crate::routines::{CommandRecord, StatementRecord};

impl Database {
    /// Makes a call again that was logged, at its time, in its partition or over all. The records before it
    /// have made the definitions what they were.
    ///
    /// # Errors
    /// XX001 if the record is none, names a routine or version that is not there, or the call moves another
    /// number of rows than it did; the call's own error.
    pub(super) fn redo_command(&self, record: &Record<'_>, call: &Call<'_>) -> Result<u64, SqlError> {
        let damaged = |text: String| SqlError::new(SqlState::DATA_CORRUPTED, text);
        let (moved, now) = match record.payload {
            [0, native @ ..] => self.call_native_again(Input::new(native), call)?,
            stored => {
                let command = CommandRecord::read(stored).map_err(|error| damaged(error.to_string()))?;
                let CommandRecord { routine, version, moved, .. } = command;
                let handle = u32::try_from(routine).ok().and_then(|id| self.routine_of(id, version));
                let handle = handle.ok_or_else(|| {
                    damaged(format!("it calls version {version} of routine {routine}, which is not there"))
                })?;
                (moved, handle.call_again(&command.arguments(), call)?)
            }
        };
        match now == moved {
            true => Ok(now),
            false => Err(damaged(format!("it moved {moved} rows when it ran, and {now} in replay"))),
        }
    }

    /// Makes a change of many rows again that was logged as its statement.
    ///
    /// # Errors
    /// XX001 if the record is none, or the statement concerns another number of rows than it did; its own error.
    pub(super) fn redo_statement(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        let damaged = |text: String| SqlError::new(SqlState::DATA_CORRUPTED, text);
        let statement = StatementRecord::read(record.payload).map_err(|error| damaged(error.to_string()))?;
        let StatementRecord { rows, text, parameters, .. } = &statement;
        match self.change_again(text, parameters)? {
            now if now == *rows => Ok(now),
            now => Err(damaged(format!("it concerned {rows} rows when it ran, and {now} in replay"))),
        }
    }

    /// Runs a transaction of the log again where it ran, at home where its `route` says, as its first run was;
    /// how many rows it moved.
    ///
    /// # Errors
    /// XX001 if it accesses another partition in replay, which it did not when it ran; its own.
    pub(crate) fn run_again(
        &self,
        call: &Call<'_>,
        route: Route,
        work: impl Fn(&mut Transaction) -> Result<(), Abort>,
    ) -> Result<u64, SqlError> {
        let strayed = || {
            let text = "it accesses another partition in replay, which it did not when it ran";
            Abort::Raised(SqlError::new(SqlState::DATA_CORRUPTED, text))
        };
        let work = |tx: &mut Transaction| match work(tx) {
            Ok(()) => Ok(tx.rows_moved()),
            // Others may be in that partition.
            Err(Abort::Crossing) if call.route != Route::Crossing => Err(strayed()),
            Err(abort) => Err(abort),
        };
        let partitions = &self.inner.partitions;
        let done = match call.route {
            Route::Crossing => partitions.crossing_at(route, call, work),
            _ => partitions.transact(call, work),
        };
        done.map_err(|error| self.explain_call(error))
    }
}
