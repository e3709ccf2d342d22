//! Queries and changes inside procedures: bound to tables, with the index each access uses.
//!
//! Responsible for: which rows a statement reads and by which index, joins, grouping, order,
//! RETURNING. Not responsible for: expressions (`expr`), what becomes of the rows (`body`).

use albireo_base::SqlError;
use albireo_sql::{Catalog, ast};

use crate::datum::Datum;
use crate::expr::Names;
use crate::host::Host;
use crate::store::Stop;
use crate::types::Type;

/// A query.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// Names, as PostgreSQL gives them, and types of its columns.
    pub columns: Vec<(String, Type)>,
}

/// An INSERT, UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct ChangePlan {
    /// Names and types of the columns of RETURNING; none without.
    pub returning: Vec<(String, Type)>,
}

/// Binds a query: SELECT, VALUES, WITH, set operations. Names that none of its tables has mean what
/// `outer` says.
///
/// # Errors
/// Names, types and what is not supported, with positions.
pub fn bind_select(
    catalog: &Catalog,
    query: &ast::Query,
    outer: &mut dyn Names,
) -> Result<SelectPlan, SqlError> {
    let _ = (catalog, query, outer);
    Err(SqlError::unsupported("a query here"))
}

/// Binds an INSERT, UPDATE or DELETE.
///
/// # Errors
/// As [`bind_select`].
pub fn bind_change(
    catalog: &Catalog,
    statement: &ast::Statement,
    outer: &mut dyn Names,
) -> Result<ChangePlan, SqlError> {
    let _ = (catalog, statement, outer);
    Err(SqlError::unsupported("a change here"))
}

/// The rows of a query, at most `limit`, all read before the first is given back.
///
/// # Errors
/// An expression's, or the store's.
pub fn select(plan: &SelectPlan, host: &mut dyn Host, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
    let _ = (plan, host, limit);
    Err(SqlError::unsupported("a query here").into())
}

/// Makes a change: how many rows it concerned, and what RETURNING says of each.
///
/// # Errors
/// An expression's, or the store's; the caller rolls back.
pub fn change(plan: &ChangePlan, host: &mut dyn Host) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    let _ = (plan, host);
    Err(SqlError::unsupported("a change here").into())
}
