//! Queries and changes, bound: every name resolved, every expression typed.
//!
//! Responsible for: which relations a statement reads, joins, grouping, order, RETURNING, as a [`tree`]
//! that says nothing of how rows are found. Not responsible for: expressions ([`expr`](crate::expr)),
//! access paths and running (`procedure`), plans over snapshots (`olap`).

mod access;
pub mod accumulate;
mod aggregate;
mod bind;
mod change;
mod declared;
mod edit;
mod every;
mod file;
mod float_moments;
mod from;
mod group;
pub mod inline;
mod insert;
mod join;
mod levels;
mod lock;
mod merge;
mod output;
mod recursion;
mod regroup;
mod row_lock;
mod rows;
mod scope;
mod select;
pub mod series;
mod sets;
mod signature;
#[cfg(test)]
mod tests;
pub mod tree;
mod view;
mod walk;
mod window;
pub mod windowed;
mod with;

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::SqlError;
use albireo_sql::ast::Spanned;
use albireo_sql::{Catalog, ast};

use crate::expr::{Expr, ExprKind, Names};
use crate::types::{RowType, Type};
pub use declared::declared_column;
pub use file::{File, FileColumn, FileFormat, FileOption, Files, NamedFile};
pub use rows::{ADDRESS, Finding};
use scope::Env;
use tree::{AccessInfo, Change, Query};
pub use view::View;

/// Whether a call is one of an aggregate, which no routine of its name hides.
pub fn is_aggregate(function: &ast::Function) -> bool {
    aggregate::is_aggregate(function)
}

/// Whether a call is one that only a query can have.
pub(crate) fn is_special(function: &ast::Function) -> bool {
    aggregate::is_special(function)
}

/// A query with one column, which has the rows of another one as its values.
///
/// # Errors
/// 0A000 for columns that no field of a row can have.
pub(crate) fn as_row(mut plan: SelectPlan) -> Result<SelectPlan, SqlError> {
    let mut fields = Vec::with_capacity(plan.columns.len());
    for (name, ty) in &plan.columns {
        match ty {
            Type::Scalar(scalar) => fields.push((name.clone(), *scalar)),
            _ => return Err(SqlError::unsupported("a row with an array in it")),
        }
    }
    let ty = Type::Row(Arc::new(RowType { fields }));
    let mut around = sets::around(Arc::unwrap_or_clone(plan.query));
    let kind = ExprKind::Row(std::mem::take(&mut around.outputs));
    around.outputs.push(Expr { kind, ty: ty.clone() });
    plan.query = Arc::new(sets::as_query(tree::Body::Select(Box::new(around))));
    plan.columns = vec![("row".to_owned(), ty)];
    Ok(plan)
}

/// A query.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// Names, as PostgreSQL gives them, and types of its columns.
    pub columns: Vec<(String, Type)>,
    /// What to do.
    pub query: Arc<Query>,
    /// The tables it reads and how, those of queries in its expressions included; none before access
    /// paths are chosen.
    pub accesses: Vec<AccessInfo>,
    /// Whether it refers to columns of a query around it.
    pub correlated: bool,
    /// The line of the text it begins on, from 1, if it is known.
    pub line: Option<usize>,
}

impl PartialEq for SelectPlan {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.query == other.query
    }
}

/// An INSERT, UPDATE, DELETE or MERGE.
#[derive(Clone, Debug)]
pub struct ChangePlan {
    /// Names and types of the columns of RETURNING; none without.
    pub returning: Vec<(String, Type)>,
    /// What to do.
    pub change: Arc<Change>,
    /// The tables it reads and changes and how, those of queries in its expressions included; none before
    /// access paths are chosen.
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
    bind::bind_query(Env { catalog, ctes: None, next_cte: &next_cte }, query, outer)
}

/// Binds an INSERT, UPDATE, DELETE or MERGE, after WITH or not.
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
