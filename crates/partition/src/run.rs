//! One transaction from its beginning to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use albireo_env::Clock;
use albireo_redo::Log;
use albireo_storage::Savepoint;

use crate::data::{self, PartitionData, PartitionState, Workspace};
use crate::journal::{Entry, Receipt};
use crate::{Abort, Call, CallError, Transaction};

/// What transactions of a database share.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) clock: &'a Clock,
    /// How many partitions there are.
    pub(crate) partitions: u16,
    /// Where their records go.
    pub(crate) log: Option<&'a Log>,
    /// They own all partitions.
    pub(crate) crossing: bool,
}

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
    around: Around<'_>,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    let PartitionState { data, work: workspace, .. } = state;
    let result = run(&mut [data], workspace, around, 0, call, work);
    count(state, &result);
    result
}

/// Runs one transaction, at home in the site `home`, to its end: commit, or no trace. The receipt is for
/// its record, or for what it read.
#[inline]
pub(crate) fn run<T>(
    sites: &mut [&mut PartitionData],
    workspace: &mut Workspace,
    around: Around<'_>,
    home: u16,
    call: &Call<'_>,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<T, Abort>,
) -> Result<(T, Receipt), CallError> {
    let Around { clock, partitions, log, crossing } = around;
    debug_assert!(!crossing || sites.len() == usize::from(partitions), "a crossing transaction owns all");
    // Whatever a panic interrupts is taken back from the undo buffer, so nothing half done is seen.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let owner = (home, partitions);
        let start = call.measure.map(|_| clock.now());
        let mut tx = Transaction::new(sites, &mut workspace.undo, owner, clock, call.time_us);
        let value = work(&mut tx).map_err(CallError::Aborted)?;
        if let (Some(measure), Some(start)) = (call.measure, start) {
            measure.run_ns.set(clock.now() - start);
        }
        let receipt = match log {
            None => Receipt::default(),
            Some(log) => {
                let Call { command, measure, .. } = *call;
                let asked = tx.synchronous_commit();
                let entry = Entry { time_us: tx.now(), command, measure, clock, crossing };
                entry.append(log, sites, workspace).map_err(CallError::Log)?.asked(asked)
            }
        };
        Ok((value, receipt))
    }));
    match outcome {
        Ok(Ok(done)) => {
            data::commit(sites, &mut workspace.undo);
            Ok(done)
        }
        Ok(Err(error)) => {
            data::roll_back(sites, &mut workspace.undo, Savepoint::START);
            Err(error)
        }
        Err(panic) => {
            data::roll_back(sites, &mut workspace.undo, Savepoint::START);
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
