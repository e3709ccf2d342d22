//! What a bound statement may say that does not run on live rows.

use albireo_base::SqlError;

use super::tree::{
    Body, Change, Cte, Item, Merge, Pool, Query, Relation, RelationSource, Select, Target, Update,
};
use super::{ChangePlan, SelectPlan};
use crate::expr::{Expr, ExprKind};

type Result = std::result::Result<(), SqlError>;

/// Refuses a query that does not run on live rows.
///
/// # Errors
/// 0A000 with what it is.
pub(super) fn select(plan: &SelectPlan) -> Result {
    query(&plan.query)?;
    let mut found = Ok(());
    plan.query.each_expr(&mut |expr| within(expr, &mut found));
    found
}

/// Refuses a change that does not run on live rows.
///
/// # Errors
/// As [`select`].
pub(super) fn change(plan: &ChangePlan) -> Result {
    match &*plan.change {
        Change::Insert(insert) => query(&insert.source)?,
        Change::Update(Update { target: rows, .. })
        | Change::Delete(rows)
        | Change::Merge(Merge { target: rows, .. }) => {
            target(rows)?;
        }
    }
    let mut found = Ok(());
    plan.change.each_expr(&mut |expr| within(expr, &mut found));
    found
}

/// The queries in an expression.
pub(super) fn within(expr: &Expr, found: &mut Result) {
    expr.walk(&mut |part| {
        if let (ExprKind::Subquery(subquery), true) = (&part.kind, found.is_ok()) {
            *found = select(&subquery.plan);
        }
    });
}

/// Refuses a query of WITH.
///
/// # Errors
/// As [`select`].
pub(super) fn cte(cte: &Cte) -> Result {
    if cte.repeated.is_some() {
        return Err(SqlError::unsupported("WITH RECURSIVE in a procedure").with_hint("Use a loop."));
    }
    query(&cte.query)
}

fn query(tree: &Query) -> Result {
    tree.ctes.iter().try_for_each(cte)?;
    match &tree.body {
        Body::Select(select) => of_select(select),
        Body::Values(_) => Ok(()),
        Body::Nested(inner) => query(inner),
        Body::Set(set) => {
            query(&set.left)?;
            query(&set.right)
        }
    }
}

fn of_select(select: &Select) -> Result {
    relations(&select.relations)?;
    pool(&select.from)?;
    if !select.windows.is_empty() {
        return Err(SqlError::unsupported("a window function in a procedure"));
    }
    match &select.grouping {
        Some(grouping) if grouping.sets.is_some() => {
            Err(SqlError::unsupported("grouping sets in a procedure"))
        }
        _ => Ok(()),
    }
}

fn target(target: &Target) -> Result {
    target.ctes.iter().try_for_each(cte)?;
    relations(&target.relations)?;
    pool(&target.from)
}

fn relations(relations: &[Relation]) -> Result {
    relations.iter().try_for_each(|relation| match &relation.source {
        RelationSource::Query(inner) => query(inner),
        RelationSource::Lateral(_) => Err(SqlError::unsupported("LATERAL in a procedure")
            .with_hint("Loop over the rows of one query and run the other for each.")),
        RelationSource::File(_) => Err(SqlError::unsupported("a file in FROM of a transaction")),
        _ => Ok(()),
    })
}

fn pool(from: &Pool) -> Result {
    from.items.iter().try_for_each(|item| match item {
        Item::One { .. } => Ok(()),
        Item::Left { pool: inner, .. } => pool(inner),
        Item::Full { .. } => Err(SqlError::unsupported("FULL JOIN in a procedure")
            .with_hint("Write it as a UNION ALL of a LEFT JOIN and the rows without partner.")),
    })
}
