//! Walks over expressions and the queries in them that count how many queries are around.
//!
//! Responsible for: which depth the columns of a query have where an expression of another query stands.
//! Not responsible for: what is done to them.

use std::sync::Arc;

use albireo_base::SqlError;

use super::tree::{
    Body, FrameBound, Item, OrderBy, OrderKey, Pool, Query, RelationSource, Select, WindowCall,
};
use crate::expr::{Expr, ExprKind};

type Result = std::result::Result<(), SqlError>;

/// What is called for each expression, outer ones first, with the depth that columns of the level where the
/// walk began have there; whether to go on inside of it.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&mut Expr, u16) -> std::result::Result<bool, SqlError>;

/// Visits an expression, all within it and within its correlated queries.
pub(super) fn expr(tree: &mut Expr, depth: u16, visit: Visit<'_>) -> Result {
    if !visit(tree, depth)? {
        return Ok(());
    }
    let mut result = Ok(());
    tree.each_part_mut(&mut |part| {
        if result.is_ok() {
            result = expr(part, depth, visit);
        }
    });
    result?;
    if let ExprKind::Subquery(subquery) = &mut tree.kind
        && subquery.plan.correlated
    {
        let plan = &mut Arc::make_mut(subquery).plan;
        query(Arc::make_mut(&mut plan.query), depth, visit)?;
    }
    Ok(())
}

/// The least depth of a column in expressions: 0 if one is of the level where they stand.
pub(super) fn nearest<'e>(exprs: impl IntoIterator<Item = &'e mut Expr>) -> Option<u16> {
    let mut least: Option<u16> = None;
    for tree in exprs {
        // The visitor has no errors.
        let _ = expr(tree, 0, &mut |part, depth| {
            if let ExprKind::Column(column) = &part.kind
                && let Some(out) = column.depth.checked_sub(depth)
            {
                least = Some(least.map_or(out, |least| least.min(out)));
            }
            Ok(true)
        });
    }
    least
}

/// Makes the columns of queries around those of one level further in.
pub(super) fn lift<'e>(exprs: impl IntoIterator<Item = &'e mut Expr>) {
    for tree in exprs {
        // The visitor has no errors.
        let _ = expr(tree, 0, &mut |part, depth| {
            if let ExprKind::Column(column) = &mut part.kind
                && column.depth > depth
            {
                column.depth -= 1;
            }
            Ok(true)
        });
    }
}

/// Makes the columns around a query those of so many levels further out.
pub(super) fn raise(tree: &mut Query, by: u16) {
    // The visitor has no errors.
    let _ = query(tree, 0, &mut |part, depth| {
        if let ExprKind::Column(column) = &mut part.kind
            && column.depth >= depth
        {
            column.depth += by;
        }
        Ok(true)
    });
}

/// As [`raise`], of columns.
pub(super) fn raise_columns(columns: &mut [Expr], by: u16) {
    for column in columns {
        if let ExprKind::Column(column) = &mut column.kind {
            column.depth += by;
        }
    }
}

/// The expressions of a query that stands where columns have this depth.
fn query(tree: &mut Query, depth: u16, visit: Visit<'_>) -> Result {
    for cte in &mut tree.ctes {
        query(&mut cte.query, depth, visit)?;
        if let Some(repeated) = &mut cte.repeated {
            query(&mut repeated.query, depth, visit)?;
        }
    }
    match &mut tree.body {
        Body::Select(inner) => {
            select(inner, depth + 1, visit)?;
            order(&mut tree.order, depth + 1, visit)?;
        }
        Body::Values(rows) => rows.iter_mut().flatten().try_for_each(|value| expr(value, depth, visit))?,
        Body::Nested(inner) => query(inner, depth, visit)?,
        Body::Set(set) => {
            query(&mut set.left, depth, visit)?;
            query(&mut set.right, depth, visit)?;
        }
    }
    tree.limit.iter_mut().chain(&mut tree.offset).try_for_each(|limit| expr(limit, depth, visit))
}

fn select(tree: &mut Select, depth: u16, visit: Visit<'_>) -> Result {
    for relation in &mut tree.relations {
        match &mut relation.source {
            RelationSource::Query(inner) => query(inner, depth - 1, visit)?,
            RelationSource::Lateral(inner) => query(inner, depth, visit)?,
            RelationSource::Series(args) | RelationSource::Cte(_, args) => all(args, depth, visit)?,
            RelationSource::Unnest(array) => expr(array, depth, visit)?,
            RelationSource::Routine(call, _) => all(&mut call.args, depth, visit)?,
            RelationSource::Table(_) | RelationSource::File(_) | RelationSource::Given => {}
        }
    }
    pool(&mut tree.from, depth, visit)?;
    if let Some(grouping) = &mut tree.grouping {
        all(&mut grouping.keys, depth, visit)?;
        for aggregate in &mut grouping.aggregates {
            all(aggregate.args.iter_mut().chain(&mut aggregate.filter), depth, visit)?;
            order(&mut aggregate.order, depth, visit)?;
        }
        all(&mut grouping.having, depth, visit)?;
    }
    tree.windows.iter_mut().try_for_each(|call| window(call, depth, visit))?;
    all(&mut tree.outputs, depth, visit)?;
    match &mut tree.distinct {
        super::tree::Distinct::On(keys) => all(keys, depth, visit),
        _ => Ok(()),
    }
}

fn all<'e>(exprs: impl IntoIterator<Item = &'e mut Expr>, depth: u16, visit: Visit<'_>) -> Result {
    exprs.into_iter().try_for_each(|tree| expr(tree, depth, visit))
}

fn pool(tree: &mut Pool, depth: u16, visit: Visit<'_>) -> Result {
    for item in &mut tree.items {
        match item {
            Item::One { .. } => {}
            Item::Left { pool: inner, .. } => pool(inner, depth, visit)?,
            Item::Full { left, right, on, .. } => {
                pool(left, depth, visit)?;
                pool(right, depth, visit)?;
                all(on.iter_mut().map(|condition| &mut condition.expr), depth, visit)?;
            }
        }
    }
    all(tree.conditions.iter_mut().map(|condition| &mut condition.expr), depth, visit)
}

fn order(keys: &mut [OrderKey], depth: u16, visit: Visit<'_>) -> Result {
    keys.iter_mut().try_for_each(|key| match &mut key.by {
        OrderBy::Expr(tree) => expr(tree, depth, visit),
        OrderBy::Output(_) => Ok(()),
    })
}

fn window(call: &mut WindowCall, depth: u16, visit: Visit<'_>) -> Result {
    all(call.args.iter_mut().chain(&mut call.filter).chain(&mut call.partition), depth, visit)?;
    order(&mut call.order, depth, visit)?;
    [&mut call.frame.start, &mut call.frame.end].into_iter().try_for_each(|bound| match bound {
        FrameBound::Before(by) | FrameBound::After(by) => expr(by, depth, visit),
        FrameBound::First | FrameBound::Current | FrameBound::Last => Ok(()),
    })
}
