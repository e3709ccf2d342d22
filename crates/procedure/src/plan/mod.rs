//! Queries and changes inside procedures: bound to tables, with the index each access uses.
//!
//! Responsible for: which rows a statement reads and by which index, joins, grouping, order,
//! RETURNING. Not responsible for: expressions (`expr`), what becomes of the rows (`body`).
//!
//! A statement is bound to a [`tree`] (`query`, `select`, `from`, `scope`, `group`, `change`), its
//! access paths are chosen (`access`, `key`), and it is run on storage (`run`).

mod access;
mod change;
mod every;
mod explain;
mod from;
mod group;
mod key;
mod query;
mod run;
mod scope;
mod select;
#[cfg(test)]
mod tests;
pub mod tree;
mod walk;

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::{SqlError, SqlType, Value};
use albireo_sql::ast::Spanned;
use albireo_sql::{Catalog, ast};

use crate::datum::Datum;
use crate::expr::Names;
use crate::host::Host;
use crate::store::Stop;
use crate::types::Type;
pub(crate) use run::{Search, search_of};
use scope::Env;
use tree::{AccessInfo, Change, Query};

/// Whether a call is one of an aggregate, which no routine of its name hides.
pub fn is_aggregate(function: &ast::Function) -> bool {
    group::aggregate_kind(function).is_some()
}

/// A query.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// Names, as PostgreSQL gives them, and types of its columns.
    pub columns: Vec<(String, Type)>,
    /// What to do.
    pub query: Arc<Query>,
    /// The tables it reads and how, those of queries in its expressions included.
    pub accesses: Vec<AccessInfo>,
    /// Whether it refers to columns of a query around it.
    pub correlated: bool,
    /// The line of the text it begins on, from 1, if it is known.
    pub line: Option<usize>,
}

/// An INSERT, UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct ChangePlan {
    /// Names and types of the columns of RETURNING; none without.
    pub returning: Vec<(String, Type)>,
    /// What to do.
    pub change: Arc<Change>,
    /// The tables it reads and changes and how, those of queries in its expressions included.
    pub accesses: Vec<AccessInfo>,
    /// The line of the text it begins on, from 1, if it is known.
    pub line: Option<usize>,
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
    let next_cte = Cell::new(0);
    query::bind_query(Env { catalog, ctes: None, next_cte: &next_cte }, query, outer)
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
    let next_cte = Cell::new(0);
    change::bind(Env { catalog, ctes: None, next_cte: &next_cte }, statement, outer)
}

/// The line that a tree begins on, if the text has it.
fn line_of(tree: &impl Spanned) -> Option<usize> {
    let line = tree.span().start.line;
    usize::try_from(line).ok().filter(|line| *line > 0)
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
/// An expression's, or the store's.
pub fn select(plan: &SelectPlan, host: &mut dyn Host, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
    run::Running::new(host).query(&plan.query, limit)
}

/// Makes a change: how many rows it concerned, and what RETURNING says of each.
///
/// # Errors
/// An expression's, or the store's; the caller rolls back.
pub fn change(plan: &ChangePlan, host: &mut dyn Host) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    run::Running::new(host).change(&plan.change)
}
