//! The most rows that a plan reads, where unique keys say so.

use albireo_semantics::query::{ChangePlan, SelectPlan};
use albireo_sql::TableDef;

use super::tree::{Body, Change, IndexUse, Insert, Query, Relation, RelationSource, Step, Update};
use crate::expr::{Expr, ExprKind};

/// Calls what it is given for each expression.
type EachExpr<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&Expr));

/// The most rows that a query reads, if each is found by a unique key.
pub fn most_rows_read(plan: &SelectPlan) -> Option<usize> {
    most_rows_of_query(&plan.query)
}

/// The most rows that a change looks at, if each is found by a unique key.
pub fn most_rows_looked_at(plan: &ChangePlan) -> Option<usize> {
    most_rows_of_change(&plan.change)
}

fn most_rows_of_query(query: &Query) -> Option<usize> {
    if !query.ctes.is_empty() || has_queries(&mut |visit| query.each_expr(visit)) {
        return None;
    }
    most_rows_of_body(query)
}

fn most_rows_of_body(query: &Query) -> Option<usize> {
    match &query.body {
        Body::Select(select) => most_rows_of_steps(&select.relations, &select.steps),
        Body::Values(_) => Some(0),
        Body::Nested(_) | Body::Set(_) => None,
    }
}

fn most_rows_of_change(change: &Change) -> Option<usize> {
    if has_queries(&mut |visit| change.each_expr(visit)) {
        return None;
    }
    match change {
        Change::Insert(Insert { source, .. }) if source.ctes.is_empty() => most_rows_of_body(source),
        Change::Insert(_) | Change::Merge(_) => None,
        Change::Update(Update { target, .. }) | Change::Delete(target) => match target.ctes.is_empty() {
            true => most_rows_of_steps(&target.relations, &target.steps),
            false => None,
        },
    }
}

fn has_queries(each_expr: EachExpr<'_>) -> bool {
    let mut found = false;
    each_expr(&mut |expr| {
        expr.walk(&mut |part| found |= matches!(part.kind, ExprKind::Subquery(_)));
    });
    found
}

fn most_rows_of_steps(relations: &[Relation], steps: &[Step]) -> Option<usize> {
    let single = |step: &Step| match step {
        Step::Inner { access, .. } => {
            match (&relations[usize::from(access.relation)].source, &access.index) {
                (RelationSource::Table(table), Some(index)) => is_one(table, index),
                _ => false,
            }
        }
        Step::Left { .. } => false,
    };
    steps.iter().all(single).then_some(steps.len())
}

/// Whether an index gives one row at most.
pub fn is_one(table: &TableDef, index: &IndexUse) -> bool {
    index.whole && table.indexes.iter().any(|def| def.name == index.name && def.unique)
}
