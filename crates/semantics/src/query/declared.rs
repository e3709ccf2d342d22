//! The types of results that are columns of tables as they are.
//!
//! Responsible for: precision, scale and length, which types of expressions do not have.

use albireo_base::SqlType;

use super::SelectPlan;
use super::tree::{Body, Relation, RelationSource, Select};
use crate::expr::{Expr, ExprKind};

impl SelectPlan {
    /// The declared type of a column of the result, if it is one of a table.
    pub fn declared(&self, at: usize) -> Option<SqlType> {
        match &self.query.body {
            Body::Select(select) => of_output(select, at),
            _ => None,
        }
    }
}

fn of_output(select: &Select, at: usize) -> Option<SqlType> {
    let output = select.outputs.get(at)?;
    match (&output.kind, &select.grouping) {
        (ExprKind::Column(column), Some(grouping))
            if column.depth == 0 && usize::from(column.relation) == select.relations.len() =>
        {
            declared_column(&select.relations, grouping.keys.get(usize::from(column.column))?)
        }
        _ => declared_column(&select.relations, output),
    }
}

/// The declared type of an expression over these relations, if it is a column of a table.
pub fn declared_column(relations: &[Relation], expr: &Expr) -> Option<SqlType> {
    let ExprKind::Column(column) = &expr.kind else { return None };
    if column.depth > 0 {
        return None;
    }
    let at = usize::from(column.column);
    match &relations.get(usize::from(column.relation))?.source {
        RelationSource::Table(table) => table.columns.get(at).map(|def| def.ty),
        RelationSource::Query(query) => match &query.body {
            Body::Select(select) => of_output(select, at),
            _ => None,
        },
        _ => None,
    }
}
