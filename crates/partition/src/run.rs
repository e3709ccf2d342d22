//! One transaction from its beginning to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use albireo_env::Clock;
use albireo_storage::{Savepoint, UndoLog};

use crate::data::{self, PartitionData, PartitionState};
use crate::{Abort, CallError, Transaction};

pub(crate) fn count<T>(state: &mut PartitionState, result: &Result<T, CallError>) {
    match result {
        Ok(_) => state.committed += 1,
        // It runs again and is counted then.
        Err(CallError::Aborted(Abort::Crossing)) => {}
        Err(_) => state.rolled_back += 1,
    }
}

/// Runs one transaction on one partition, owned by the caller.
#[inline]
pub(crate) fn run_in<T>(
    state: &mut PartitionState,
    partitions: u16,
    clock: &Clock,
    name: &str,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, Abort>,
) -> Result<T, CallError> {
    let PartitionState { data, undo, .. } = state;
    let result = run(&mut [data], undo, (0, partitions), clock, name, work);
    count(state, &result);
    result
}

/// Runs one transaction to its end: commit, or no trace.
#[inline]
pub(crate) fn run<T>(
    sites: &mut [&mut PartitionData],
    undo: &mut UndoLog,
    (home, partitions): (u16, u16),
    clock: &Clock,
    name: &str,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, Abort>,
) -> Result<T, CallError> {
    // Whatever a panic interrupts is taken back from the undo buffer, so nothing half done is seen.
    let outcome =
        catch_unwind(AssertUnwindSafe(|| work(&mut Transaction::new(sites, undo, home, partitions, clock))));
    match outcome {
        Ok(Ok(value)) => {
            data::commit(sites, undo);
            Ok(value)
        }
        Ok(Err(abort)) => {
            data::roll_back(sites, undo, Savepoint::START);
            Err(CallError::Aborted(abort))
        }
        Err(panic) => {
            data::roll_back(sites, undo, Savepoint::START);
            Err(CallError::Panicked { procedure: name.to_owned(), message: panic_message(&*panic) })
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}
