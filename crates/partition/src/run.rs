//! One transaction from its beginning to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use albireo_redo::Log;
use albireo_storage::Savepoint;

use crate::data::{self, PartitionState};
use crate::journal::Receipt;
use crate::{Abort, Call, CallError, Transaction};

pub(crate) fn count<T>(state: &mut PartitionState, result: &Result<T, CallError>) {
    match result {
        Ok(_) => state.committed += 1,
        // It runs again, or is a part of another one, and is counted then.
        Err(CallError::Aborted(Abort::Crossing | Abort::TakenBack)) => {}
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
    // Whatever a panic interrupts is taken back from the undo buffer, so nothing half done is seen.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let start = call.measure.map(|_| tx.clock.now());
        tx.begin(home, call.time_us);
        let value = work(tx).map_err(CallError::Aborted)?;
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
            Err(CallError::Panicked { procedure: call.name.to_owned(), message: panic_message(&*panic) })
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
