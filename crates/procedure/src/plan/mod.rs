//! Queries and changes inside procedures: which index each access uses, and running them on live rows.
//!
//! Responsible for: access paths (`paths`, `access`, `key`), what a plan accesses (`explain`), running it on
//! storage (`run`). Not responsible for: what names mean ([`albireo_semantics::query`]), expressions
//! (`expr`), what becomes of the rows (`body`).

mod access;
mod explain;
mod key;
mod paths;
mod refuse;
mod run;
#[cfg(test)]
mod tests;

use albireo_base::{SqlError, SqlType, Value};
pub use albireo_semantics::query::{ChangePlan, SelectPlan, is_aggregate, tree};
use albireo_sql::{Catalog, ast};

use crate::Stop;
use crate::datum::Datum;
use crate::expr::Names;
use crate::host::Host;
use crate::types::Type;
pub use explain::placing_of;
pub use run::Estimate;
pub use run::{FoundRow, FoundRows};
pub(crate) use run::{Search, search_of};

/// Binds a query and chooses its access paths.
///
/// # Errors
/// Names, types and what is not supported, with positions.
pub fn bind_select(
    catalog: &Catalog,
    query: &ast::Query,
    outer: &mut dyn Names,
) -> Result<SelectPlan, SqlError> {
    paths::select(albireo_semantics::query::bind_select(catalog, query, outer)?)
}

/// Binds an INSERT, UPDATE, DELETE or MERGE and chooses its access paths.
///
/// # Errors
/// As [`bind_select`].
pub fn bind_change(
    catalog: &Catalog,
    statement: &ast::Statement,
    outer: &mut dyn Names,
) -> Result<ChangePlan, SqlError> {
    planned(albireo_semantics::query::bind_change(catalog, statement, outer)?)
}

/// Chooses the access paths of a change.
///
/// # Errors
/// 0A000 for what does not run on live rows.
pub fn planned(plan: ChangePlan) -> Result<ChangePlan, SqlError> {
    paths::change(plan)
}

/// What is left to do here of a change whose rows a query finds: ON CONFLICT, WHEN of MERGE, RETURNING, with access
/// paths for the queries in them.
///
/// # Errors
/// 0A000 for what does not run on live rows.
pub fn rest_of(plan: ChangePlan) -> Result<ChangePlan, SqlError> {
    paths::rest(plan)
}

/// Chooses the access paths of a bound query.
///
/// # Errors
/// 0A000 for what does not run on live rows.
pub fn plan_select(bound: SelectPlan) -> Result<SelectPlan, SqlError> {
    paths::select(bound)
}

/// The value of a column that a bound's value is; `None` if it is none of them.
pub(crate) fn key_of(value: Value, bound: &tree::Bound) -> Option<Value> {
    placing(value, &bound.value.ty, bound.ty)
}

/// What `value`, of type `ty`, is among the values of a column of type `column`: that by which its rows are
/// placed. `None` if the column cannot have it, or for NULL.
pub fn placing(value: Value, ty: &Type, column: SqlType) -> Option<Value> {
    match key::fit(value, ty, column) {
        key::Fit::Exact(value) => Some(value),
        _ => None,
    }
}

/// The rows of a query, at most `limit`, all read before the first is given back.
///
/// # Errors
/// An expression's, or the transaction's.
pub fn select(plan: &SelectPlan, host: &mut dyn Host, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
    run::Running::new(host).query(&plan.query, limit)
}

/// Makes a change: how many rows it concerned, and what RETURNING says of each.
///
/// # Errors
/// An expression's, or the transaction's; the caller rolls back.
pub fn change(plan: &ChangePlan, host: &mut dyn Host) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    run::Running::new(host).change(&plan.change)
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
    add: impl FnOnce(&mut run::Estimator<'_, '_>) -> Result<(), Stop>,
) -> Result<Estimate, Stop> {
    let mut running = run::Running::new(host);
    let mut estimator = run::Estimator { running: &mut running, given, sum: Estimate::default() };
    match add(&mut estimator) {
        Err(Stop::Crossing) => Err(Stop::Crossing),
        // What fails fails again where it counts.
        _ => Ok(estimator.sum),
    }
}

/// The most rows that a query reads, if each is found by a unique key.
pub fn most_rows_read(plan: &SelectPlan) -> Option<usize> {
    run::most_rows_of_query(&plan.query)
}

/// The most rows that a change looks at, if each is found by a unique key.
pub fn most_rows_looked_at(plan: &ChangePlan) -> Option<usize> {
    run::most_rows_of_change(&plan.change)
}

/// Makes a change, of which [`rest_of`] is left, of rows that a query found.
///
/// # Errors
/// As [`change`]; those of `found`.
pub fn apply(
    plan: &ChangePlan,
    host: &mut dyn Host,
    found: FoundRows<'_>,
) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    run::Running::new(host).apply(&plan.change, found)
}
