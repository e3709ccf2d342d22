//! Queries and changes inside procedures: which index each access uses.
//!
//! Responsible for: access paths (`paths`, `access`, `beginnings`, `key`), what a plan accesses (`explain`), the most
//! rows that it reads (`bounds`).
//! Not responsible for: running it (`execute`), what names mean ([`albireo_semantics::query`]), expressions
//! (`expr`), what becomes of the rows (`body`).

mod access;
mod beginnings;
mod bounds;
mod explain;
pub mod key;
mod paths;
mod refuse;

use albireo_base::{SqlError, SqlType, Value};
pub use albireo_semantics::query::{ChangePlan, SelectPlan, is_aggregate, tree};
use albireo_sql::{Catalog, ast};

use crate::expr::Names;
use crate::types::Type;
pub use bounds::{is_one, most_rows_looked_at, most_rows_read};
pub use explain::placing_of;

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
pub fn key_of(value: Value, bound: &tree::Bound) -> Option<Value> {
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
