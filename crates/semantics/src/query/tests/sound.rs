//! Whether a bound query is sound: each column is one of a relation that is there, and of its type.

use super::super::SelectPlan;
use super::super::tree::{
    Body, Distinct, FrameBound, Item, OrderBy, OrderKey, Pool, Query, RelationSource, Select,
};
use crate::expr::{ColumnRef, Expr, ExprKind};
use crate::types::{Scalar, Type};

type Result = std::result::Result<(), String>;

/// The types of the columns of a SELECT's relations, those of groups and windows included.
type Level = Vec<Vec<Type>>;

/// What is wrong with a query.
pub(super) fn check(plan: &SelectPlan) -> Result {
    let types: Vec<Type> = plan.columns.iter().map(|(_, ty)| ty.clone()).collect();
    query(&plan.query, &mut Vec::new(), &types)
}

fn same(a: &Type, b: &Type) -> bool {
    let text = |ty: &Type| matches!(ty, Type::Scalar(Scalar::Text | Scalar::Bpchar));
    match (a, b) {
        // A text becomes one with blanks at its end, and the other way around, without a conversion.
        (a, b) if text(a) && text(b) => true,
        (Type::Scalar(a), Type::Scalar(b)) | (Type::Array(a), Type::Array(b)) => a.same(*b),
        (a, b) => a == b,
    }
}

fn query(tree: &Query, levels: &mut Vec<Level>, types: &[Type]) -> Result {
    for cte in &tree.ctes {
        let own = types_of(&cte.query);
        query(&cte.query, levels, &own)?;
        if let Some(repeated) = &cte.repeated {
            query(&repeated.query, levels, &own)?;
        }
    }
    for limit in tree.limit.iter().chain(&tree.offset) {
        expr(limit, levels)?;
    }
    match &tree.body {
        Body::Select(inner) => return select(inner, &tree.order, levels, types),
        Body::Values(rows) => {
            for row in rows {
                outputs(row, types)?;
                row.iter().try_for_each(|value| expr(value, levels))?;
            }
        }
        Body::Nested(inner) => query(inner, levels, types)?,
        Body::Set(set) => {
            query(&set.left, levels, types)?;
            query(&set.right, levels, types)?;
        }
    }
    tree.order.iter().try_for_each(|key| match key.by {
        OrderBy::Output(at) if at < types.len() => Ok(()),
        _ => Err("an order of no column".to_owned()),
    })
}

fn types_of(tree: &Query) -> Vec<Type> {
    match &tree.body {
        Body::Select(select) => select.outputs.iter().map(|output| output.ty.clone()).collect(),
        Body::Values(rows) => rows[0].iter().map(|value| value.ty.clone()).collect(),
        Body::Nested(inner) => types_of(inner),
        Body::Set(set) => types_of(&set.left),
    }
}

fn outputs(exprs: &[Expr], types: &[Type]) -> Result {
    let fits = exprs.len() == types.len() && exprs.iter().zip(types).all(|(expr, ty)| same(&expr.ty, ty));
    if fits { Ok(()) } else { Err(format!("outputs {exprs:?} are not of types {types:?}")) }
}

fn select(tree: &Select, order: &[OrderKey], levels: &mut Vec<Level>, types: &[Type]) -> Result {
    outputs(&tree.outputs, types)?;
    let of = |columns: &[(String, Type)]| columns.iter().map(|(_, ty)| ty.clone()).collect();
    let relations: Level = tree.relations.iter().map(|relation| of(&relation.columns)).collect();
    for relation in &tree.relations {
        if let RelationSource::Query(inner) = &relation.source {
            query(inner, levels, &of(&relation.columns))?;
        }
    }
    levels.push(relations);
    for relation in &tree.relations {
        match &relation.source {
            RelationSource::Lateral(inner) => query(inner, levels, &of(&relation.columns))?,
            RelationSource::Series(args) => args.iter().try_for_each(|arg| expr(arg, levels))?,
            RelationSource::Unnest(array) => expr(array, levels)?,
            _ => {}
        }
    }
    pool(&tree.from, levels)?;
    groups(tree, levels)?;
    let beside = tree.outputs.iter();
    beside
        .chain(tree.grouping.iter().flat_map(|grouping| &grouping.having))
        .try_for_each(|e| expr(e, levels))?;
    for key in order {
        match &key.by {
            OrderBy::Output(at) if *at < types.len() => {}
            OrderBy::Output(_) => return Err("an order of no column".to_owned()),
            OrderBy::Expr(by) => expr(by, levels)?,
        }
    }
    if let Distinct::On(keys) = &tree.distinct {
        keys.iter().try_for_each(|key| expr(key, levels))?;
    }
    levels.pop();
    Ok(())
}

/// GROUP BY, aggregates and windows, whose results the level has afterwards.
fn groups(tree: &Select, levels: &mut Vec<Level>) -> Result {
    let mut results = Vec::new();
    if let Some(grouping) = &tree.grouping {
        results.extend(grouping.keys.iter().map(|key| key.ty.clone()));
        let keys = results.clone();
        grouping.keys.iter().try_for_each(|key| expr(key, levels))?;
        if grouping.sets.iter().flatten().flatten().any(|key| *key >= keys.len()) {
            return Err("a grouping by no key".to_owned());
        }
        for aggregate in &grouping.aggregates {
            if aggregate.kind == super::super::tree::AggregateKind::Grouping {
                levels.last_mut().expect("a level").push(keys.clone());
            }
            aggregate.args.iter().chain(&aggregate.filter).try_for_each(|arg| expr(arg, levels))?;
            ordered(&aggregate.order, levels)?;
            levels.last_mut().expect("a level").truncate(tree.relations.len());
            results.push(aggregate.ty.clone());
        }
    }
    levels.last_mut().expect("a level").push(results);
    for call in &tree.windows {
        call.args.iter().chain(&call.filter).chain(&call.partition).try_for_each(|arg| expr(arg, levels))?;
        ordered(&call.order, levels)?;
        for bound in [&call.frame.start, &call.frame.end] {
            if let FrameBound::Before(by) | FrameBound::After(by) = bound {
                expr(by, levels)?;
            }
        }
    }
    let windows = tree.windows.iter().map(|call| call.ty.clone()).collect();
    levels.last_mut().expect("a level").push(windows);
    Ok(())
}

fn ordered(keys: &[OrderKey], levels: &mut Vec<Level>) -> Result {
    keys.iter().try_for_each(|key| match &key.by {
        OrderBy::Expr(by) => expr(by, levels),
        OrderBy::Output(_) => Err("an order by a result".to_owned()),
    })
}

fn pool(tree: &Pool, levels: &mut Vec<Level>) -> Result {
    for item in &tree.items {
        match item {
            Item::One { .. } => {}
            Item::Left { pool: inner, .. } => pool(inner, levels)?,
            Item::Full { left, right, on, .. } => {
                pool(left, levels)?;
                pool(right, levels)?;
                on.iter().try_for_each(|condition| expr(&condition.expr, levels))?;
            }
        }
    }
    tree.conditions.iter().try_for_each(|condition| expr(&condition.expr, levels))
}

fn expr(tree: &Expr, levels: &mut Vec<Level>) -> Result {
    let mut result = Ok(());
    tree.walk(&mut |part| {
        if result.is_ok() {
            result = one(part, levels);
        }
    });
    result
}

fn one(part: &Expr, levels: &mut Vec<Level>) -> Result {
    if part.ty == Type::Scalar(Scalar::Unknown) {
        return Err(format!("{part:?} has no type"));
    }
    match &part.kind {
        ExprKind::Column(column) => {
            let ColumnRef { depth, relation, column: at } = *column;
            let level = levels.len().checked_sub(usize::from(depth) + 1).map(|level| &levels[level]);
            let ty = level.and_then(|level| level.get(usize::from(relation))?.get(usize::from(at)));
            match ty {
                Some(ty) if same(ty, &part.ty) => Ok(()),
                other => Err(format!("column {column:?} is {other:?}, not {:?}", part.ty)),
            }
        }
        ExprKind::Subquery(subquery) => {
            let types: Vec<Type> = subquery.plan.columns.iter().map(|(_, ty)| ty.clone()).collect();
            query(&subquery.plan.query, levels, &types)
        }
        _ => Ok(()),
    }
}
