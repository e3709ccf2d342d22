//! Queries and changes at work.
//!
//! Responsible for: the rows that expressions see (`frame`), finding rows (`scan`) by keys (`keys`), queries
//! (`select`), groups (`aggregate`), changes (`change`), how many rows they are about to read (`estimate`). Not
//! responsible for: what is to be done (`tree`).
//!
//! Rows of tables are addresses; their values are read when an expression asks for them.

mod aggregate;
mod change;
mod estimate;
mod frame;
mod keys;
mod scan;
mod select;
#[cfg(test)]
mod tests;

pub use change::{Decided, Decision, FoundRow, FoundRows};
pub use estimate::Estimate;
use estimate::Estimator;
use frame::Running;
pub use scan::{Search, search_of};

use albireo_base::{PartitionId, Tid, Value};
use albireo_semantics::query::tree::Change;
use albireo_semantics::query::{ChangePlan, SelectPlan};

use crate::Stop;
use crate::datum::Datum;
use crate::host::Host;

/// The rows of a query, at most `limit`, all read before the first is given back.
///
/// # Errors
/// An expression's, or the transaction's.
pub fn select(plan: &SelectPlan, host: &mut dyn Host, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
    Running::new(host).query(&plan.query, limit)
}

/// Makes a change: how many rows it concerned, and what RETURNING says of each.
///
/// # Errors
/// An expression's, or the transaction's; the caller rolls back.
pub fn change(plan: &ChangePlan, host: &mut dyn Host) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    Running::new(host).change(&plan.change)
}

/// About how many rows a query is about to read; `given` says whether its parameters have values.
///
/// # Errors
/// Only [`Stop::Crossing`], as the query itself.
pub fn estimate_select(plan: &SelectPlan, host: &mut dyn Host, given: bool) -> Result<Estimate, Stop> {
    estimated(host, given, |estimator| estimator.query(&plan.query, f64::INFINITY).map(drop))
}

/// As [`estimate_select`], of the rows that a change finds and looks at.
///
/// # Errors
/// As [`estimate_select`].
pub fn estimate_change(plan: &ChangePlan, host: &mut dyn Host, given: bool) -> Result<Estimate, Stop> {
    estimated(host, given, |estimator| estimator.change(&plan.change))
}

fn estimated(
    host: &mut dyn Host,
    given: bool,
    add: impl FnOnce(&mut Estimator<'_, '_>) -> Result<(), Stop>,
) -> Result<Estimate, Stop> {
    let mut running = Running::new(host);
    let mut estimator = Estimator { running: &mut running, given, sum: Estimate::default() };
    match add(&mut estimator) {
        Err(Stop::Crossing) => Err(Stop::Crossing),
        // What fails fails again where it counts.
        _ => Ok(estimator.sum),
    }
}

/// Makes a change, of which [`rest_of`](albireo_plpgsql::plan::rest_of) is left, of rows that a query found.
///
/// # Errors
/// As [`change`]; those of `found`.
pub fn apply(
    plan: &ChangePlan,
    host: &mut dyn Host,
    found: FoundRows<'_>,
) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    Running::new(host).apply(&plan.change, found)
}

/// What an UPDATE or DELETE that looks at [one row at a time](Change::is_of_rows_alone), as it is bound, makes of rows
/// as they are now: new values, in the order of SET; `None` of those that it does not concern.
///
/// # Errors
/// An expression's.
pub fn judge(
    change: &Change,
    host: &mut dyn Host,
    rows: &[(PartitionId, Tid)],
) -> Result<Vec<Option<Vec<Value>>>, Stop> {
    Running::new(host).judge(change, rows)
}

/// What a change, of which [`rest_of`](albireo_plpgsql::plan::rest_of) is left, does with rows that a query found, as they
/// are now; nothing is done. A row that comes several times has several decisions.
///
/// # Errors
/// An expression's; those of `found`.
pub fn decide(plan: &ChangePlan, host: &mut dyn Host, found: FoundRows<'_>) -> Result<Vec<Decided>, Stop> {
    Running::new(host).decide_all(&plan.change, found)
}
