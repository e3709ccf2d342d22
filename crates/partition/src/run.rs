//! One transaction from its beginning to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use albireo_redo::Log;
use albireo_storage::{Evicted, FetchError, Savepoint, without_waiting};

use crate::data::{self, PartitionState};
use crate::journal::Receipt;
use crate::parked::Parked;
use crate::{Abort, Call, CallError, Transaction};

pub(crate) fn count<T>(state: &mut PartitionState, result: &Result<T, CallError>) {
    match result {
        Ok(_) => state.committed += 1,
        // It runs again, or is a part of another one, and is counted then.
        Err(CallError::Aborted(Abort::Crossing | Abort::Away(_) | Abort::TakenBack)) => {}
        Err(_) => state.rolled_back += 1,
    }
}

/// Runs one transaction on one partition, owned by the caller.
#[inline]
pub(crate) fn run_in<T>(
    state: &mut PartitionState,
    log: Option<&Log>,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    let result = run(&mut state.tx, log, 0, call, work);
    count(state, &result);
    result
}

/// Runs one transaction, at home in the site `home`, to its end: commit, or no trace. The receipt is for
/// its record, or for what it read.
#[inline]
pub(crate) fn run<T>(
    tx: &mut Transaction,
    log: Option<&Log>,
    home: u16,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    tx.begin(home, call.time_us);
    run_to_end(tx, log, call, work)
}

/// As [`run`], of a transaction that has begun.
#[inline]
fn run_to_end<T>(
    tx: &mut Transaction,
    log: Option<&Log>,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    // Whatever a panic interrupts is taken back from the undo buffer, so nothing half done is seen.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let start = call.measure.map(|_| tx.clock.now());
        let value = without_waiting(|| work(tx)).map_err(CallError::Aborted)?;
        if let (Some(measure), Some(start)) = (call.measure, start) {
            measure.run_ns.set(tx.clock.now() - start);
        }
        let receipt = match log {
            None => Receipt::default(),
            Some(log) => {
                let receipt = tx.append_record(log, call).map_err(CallError::Log)?;
                receipt.asked(tx.synchronous_commit())
            }
        };
        Ok((value, receipt))
    }));
    match outcome {
        Ok(Ok(done)) => {
            data::commit(&mut tx.sites, &mut tx.undo, call.name);
            Ok(done)
        }
        Ok(Err(error)) => {
            tx.roll_back_to(Savepoint::START);
            Err(error)
        }
        Err(panic) => {
            tx.roll_back_to(Savepoint::START);
            Err(interrupted(call, panic))
        }
    }
}

/// What an unwind says that has interrupted a transaction.
fn interrupted(call: &Call<'_>, panic: Box<dyn Any + Send>) -> CallError {
    let panic = match panic.downcast::<Evicted>() {
        Ok(evicted) => return CallError::Aborted(Abort::Away(*evicted)),
        Err(panic) => panic,
    };
    match panic.downcast::<FetchError>() {
        Ok(error) => CallError::Aborted((*error).into()),
        Err(panic) => {
            CallError::Panicked { procedure: call.name.to_owned(), message: panic_message(&*panic) }
        }
    }
}

/// Runs a statement of `mine`, a transaction of several, and leaves what it writes where it is. `work` learns whether
/// what the statements before have written is in place. If it fails, nothing of it is left.
pub(crate) fn run_part<T>(
    state: &mut PartitionState,
    call: &Call<'_>,
    (mine, in_place): (&Arc<Parked>, bool),
    work: impl FnOnce(&mut Transaction, bool) -> Result<T, Abort>,
) -> Result<T, CallError> {
    let before = state.tx.savepoint();
    debug_assert!(in_place || before == Savepoint::START, "what is not in place was taken back");
    let tx = &mut state.tx;
    tx.resume(0, call.time_us);
    let work = || without_waiting(|| work(tx, in_place)).map_err(CallError::Aborted);
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(interrupted(call, panic)));
    if result.is_err() {
        state.tx.roll_back_to(before);
    }
    if !state.tx.undo.is_empty() {
        state.parked = Some(Arc::clone(mine));
    }
    result
}

/// Runs the end of such a transaction: commit, or no trace.
pub(crate) fn run_end<T>(
    state: &mut PartitionState,
    log: Option<&Log>,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    state.tx.resume(0, call.time_us);
    let result = run_to_end(&mut state.tx, log, call, work);
    count(state, &result);
    result
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}
