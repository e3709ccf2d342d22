//! CALL whose arguments are known before it runs: as calls of a [`RoutineHandle`](crate::RoutineHandle) are made,
//! in machine code, where the arguments say, and as a record of the redo log.

use std::time::Duration;

use albireo_compile::Ran as Given;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::evaluate;

use super::bind::Bound;
use super::live::{Live, Work, row_of};
use super::routing::{self, is_given};
use super::run::{Attempt, Ran};
use crate::routines::{Argument, Callee, Limits, argument, borrowed};
use crate::{Database, Outcome, SqlError};

/// The procedure that a statement calls, if its arguments depend on nothing but parameters.
pub(super) fn callee(work: &Work, bound: &Bound) -> Option<Callee> {
    let Work::Call(call) = work else { return None };
    let given = call.args.iter().all(is_given);
    let callee = given.then(|| Callee::new(&bound.library, call.id, false));
    callee.flatten()
}

/// A value as an argument; `None` if it is none that a program could give.
fn as_argument(value: Datum) -> Option<Argument> {
    let is_value = |item: &Datum| matches!(item, Datum::Value(_));
    match &value {
        Datum::Value(_) => {}
        Datum::Array(array) if array.lower == 1 && array.items.iter().all(is_value) => {}
        _ => return None,
    }
    Some(argument(value))
}

impl Database {
    /// Makes a call; `None` if it must be made in the way of other statements.
    pub(super) fn call_directly(
        &self,
        bound: &Bound,
        live: &Live,
        arguments: &[Datum],
        limits: &Limits,
    ) -> Option<Attempt> {
        let (Work::Call(call), Some(callee)) = (&live.work, &live.callee) else { return None };
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            match evaluate(arg, &mut routing::Given { around: &bound.around, arguments }) {
                Ok(value) => args.push(as_argument(value)?),
                Err(Stop::Error(error) | Stop::Fatal(error)) => return Some(Attempt::Failed(*error)),
                Err(Stop::Crossing | Stop::Locked) => return None,
            }
        }
        let start = bound.shape.has_columns().then(|| limits.interrupts.clock.now());
        let finish = |ran: Given, notices| {
            let rows = match ran {
                Given::Reply(reply) => vec![row_of(&reply, 0)],
                Given::Values(values) => {
                    values.into_iter().map(|value| callee.signature.result.row(value)).collect()
                }
            };
            let lasted = start.map_or(0, |start| limits.interrupts.clock.now().saturating_sub(start));
            bound.outcome(Ran { count: 0, rows, notices }, Duration::from_nanos(lasted))
        };
        let called = self.start_routine(callee, &borrowed(&args), limits, limits.interprets, finish);
        let done: Result<Outcome, SqlError> = called.and_then(|(outcome, receipt)| {
            self.acknowledge_call(limits.synchronous, receipt)?;
            Ok(outcome)
        });
        Some(done.map_or_else(Attempt::Failed, Attempt::Ran))
    }
}
