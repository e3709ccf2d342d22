//! From a bound statement to a planned one: access paths for all its queries.
//!
//! Responsible for: walking the tree, which order an index may give, what a plan accesses. Not responsible
//! for: one FROM (`access`).
//!
//! Invariant: a tree that is planned already is left as it is.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError};

use super::access::{Planner, Wanted, column_of};
use super::tree::{
    AccessInfo, AccessKind, AggregateKind, Body, Change, Distinct, Insert, Merge, MergeAction, OrderBy,
    OrderKey, Pool, Query, Relation, RelationSource, Select, Target, Update,
};
use super::{ChangePlan, SelectPlan, explain, refuse};
use crate::expr::{Expr, ExprKind};

/// Chooses the access paths of a query.
///
/// # Errors
/// 0A000 for what does not run on live rows.
pub(super) fn select(mut plan: SelectPlan) -> Result<SelectPlan, SqlError> {
    refuse::select(&plan)?;
    of_select(&mut plan);
    Ok(plan)
}

/// Chooses the access paths of a change.
///
/// # Errors
/// As [`select`].
pub(super) fn change(mut plan: ChangePlan) -> Result<ChangePlan, SqlError> {
    refuse::change(&plan)?;
    let change = Arc::make_mut(&mut plan.change);
    change.each_expr_mut(&mut of_expr);
    let mut inside = Vec::new();
    nested_in_change(change, &mut inside);
    match change {
        Change::Insert(insert) => of_query(&mut insert.source),
        Change::Update(Update { target, .. })
        | Change::Delete(target)
        | Change::Merge(Merge { target, .. }) => {
            of_target(target);
        }
    }
    plan.accesses = accesses_of_change(change, inside);
    Ok(plan)
}

/// Chooses the access paths of what is left to do of a change whose rows a query finds.
///
/// # Errors
/// As [`select`].
pub(super) fn rest(mut plan: ChangePlan) -> Result<ChangePlan, SqlError> {
    let asks = plan.change.asks_late();
    let change = Arc::make_mut(&mut plan.change);
    let mut refused = Ok(());
    change.each_late_expr_mut(&mut |expr| {
        refuse::within(expr, &mut refused);
        if refused.is_ok() {
            of_expr(expr);
        }
    });
    refused?;
    match change {
        Change::Insert(insert) => insert.source.body = Body::Values(Vec::new()),
        Change::Update(Update { target, .. })
        | Change::Delete(target)
        | Change::Merge(Merge { target, .. }) => {
            target.from = Pool::default();
        }
    }
    let ctes = change.ctes_mut();
    if !asks {
        ctes.clear();
    }
    for cte in ctes {
        refuse::cte(cte)?;
        cte.query.each_expr_mut(&mut of_expr);
        of_query(&mut cte.query);
    }
    Ok(plan)
}

fn of_select(plan: &mut SelectPlan) {
    if !plan.accesses.is_empty() {
        return;
    }
    let query = Arc::make_mut(&mut plan.query);
    query.each_expr_mut(&mut of_expr);
    // Before conditions are copied into steps.
    nested(query, 0, &mut plan.accesses);
    of_query(query);
    explain::collect(query, 0, &mut plan.accesses);
}

/// The queries inside an expression.
fn of_expr(expr: &mut Expr) {
    if let ExprKind::Subquery(subquery) = &mut expr.kind {
        of_select(&mut Arc::make_mut(subquery).plan);
    }
    expr.each_part_mut(&mut of_expr);
}

fn of_query(query: &mut Query) {
    query.ctes.iter_mut().for_each(|cte| of_query(&mut cte.query));
    match &mut query.body {
        Body::Select(select) => of_body(select, &query.order),
        Body::Values(_) => {}
        Body::Nested(inner) => of_query(inner),
        Body::Set(set) => {
            of_query(&mut set.left);
            of_query(&mut set.right);
        }
    }
}

fn of_relations(relations: &mut [Relation]) {
    for relation in relations {
        if let RelationSource::Query(query) = &mut relation.source {
            of_query(query);
        }
    }
}

fn of_body(select: &mut Select, order: &[OrderKey]) {
    of_relations(&mut select.relations);
    if select.from.items.is_empty() && select.from.conditions.is_empty() {
        return;
    }
    let mut pool = std::mem::take(&mut select.from);
    select.constants = constants(&mut pool);
    let wish = wish(select, order, &pool);
    let wished = wish.is_some();
    let mut planner = Planner::new(&select.relations, wish, select.limited);
    select.steps = planner.steps(pool);
    let ordered = planner.ordered;
    let grouping = select.grouping.as_ref();
    select.ordered = ordered && grouping.is_none();
    select.ends = ordered && wished && grouping.is_some_and(|grouping| grouping.having.is_none());
}

fn of_target(target: &mut Target) {
    target.ctes.iter_mut().for_each(|cte| of_query(&mut cte.query));
    of_relations(&mut target.relations);
    let mut pool = std::mem::take(&mut target.from);
    target.constants = constants(&mut pool);
    target.steps = Planner::new(&target.relations, None, false).steps(pool);
}

/// Takes the conditions that concern no relation.
fn constants(pool: &mut Pool) -> Vec<Expr> {
    let (constants, rest) =
        std::mem::take(&mut pool.conditions).into_iter().partition(|condition| condition.relations() == 0);
    pool.conditions = rest;
    constants.into_iter().map(|condition| condition.expr).collect()
}

/// The order in which an index should give the rows.
fn wish(select: &Select, order: &[OrderKey], pool: &Pool) -> Option<Wanted> {
    if let Some(grouping) = &select.grouping {
        let ([one], true, [_]) =
            (grouping.aggregates.as_slice(), grouping.keys.is_empty(), pool.items.as_slice())
        else {
            return None;
        };
        let plain = !one.distinct && one.filter.is_none() && one.order.is_empty();
        let backward = match one.kind {
            AggregateKind::Min if plain => false,
            AggregateKind::Max if plain => true,
            _ => return None,
        };
        let column = column_of(one.args.first()?).filter(|column| column.depth == 0)?;
        return Some(Wanted { keys: vec![(column, backward, backward)], present: true });
    }
    if !matches!(select.distinct, Distinct::No) || order.is_empty() {
        return None;
    }
    let key = |key: &OrderKey| {
        let expr = match &key.by {
            OrderBy::Output(at) => &select.outputs[*at],
            OrderBy::Expr(expr) => expr,
        };
        let column = column_of(expr).filter(|column| column.depth == 0)?;
        Some((column, key.descending, key.nulls_first))
    };
    Some(Wanted { keys: order.iter().map(key).collect::<Option<Vec<_>>>()?, present: false })
}

/// Adds what the queries inside a query's expressions access.
fn nested(query: &Query, depth: u16, into: &mut Vec<AccessInfo>) {
    query.ctes.iter().for_each(|cte| nested(&cte.query, depth, into));
    match &query.body {
        Body::Select(select) => {
            for relation in &select.relations {
                if let RelationSource::Query(query) = &relation.source {
                    nested(query, depth, into);
                }
            }
            select.each_own_expr(&mut |expr| within(expr, depth + 1, into));
        }
        Body::Values(rows) => rows.iter().flatten().for_each(|expr| within(expr, depth, into)),
        Body::Nested(inner) => nested(inner, depth, into),
        Body::Set(set) => {
            nested(&set.left, depth, into);
            nested(&set.right, depth, into);
        }
    }
    for key in &query.order {
        if let OrderBy::Expr(expr) = &key.by {
            within(expr, depth + 1, into);
        }
    }
    query.limit.iter().chain(&query.offset).for_each(|expr| within(expr, depth, into));
}

/// Adds what the queries inside an expression access.
fn within(expr: &Expr, depth: u16, into: &mut Vec<AccessInfo>) {
    expr.walk(&mut |part| {
        if let ExprKind::Subquery(subquery) = &part.kind {
            let deeper = subquery.plan.accesses.iter().cloned();
            into.extend(deeper.map(|access| AccessInfo { depth: access.depth + depth, ..access }));
        }
    });
}

/// Adds what the queries inside a bound change's expressions access.
fn nested_in_change(change: &Change, into: &mut Vec<AccessInfo>) {
    match change {
        Change::Insert(insert) => {
            let update = insert.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
            let values = update
                .into_iter()
                .flat_map(|update| update.set.iter().map(|(_, value)| value).chain(&update.filter));
            insert.returning.iter().chain(values).for_each(|expr| within(expr, 1, into));
            nested(&insert.source, 0, into);
        }
        Change::Update(update) => {
            nested_in_target(&update.target, into);
            update.set.iter().for_each(|(_, value)| within(value, 1, into));
        }
        Change::Delete(target) => nested_in_target(target, into),
        Change::Merge(merge) => {
            nested_in_target(&merge.target, into);
            for clause in &merge.clauses {
                let values = clause.action.values().iter().map(|(_, value)| value);
                clause.condition.iter().chain(values).for_each(|expr| within(expr, 1, into));
            }
        }
    }
}

fn nested_in_target(target: &Target, into: &mut Vec<AccessInfo>) {
    target.ctes.iter().for_each(|cte| nested(&cte.query, 0, into));
    for relation in &target.relations {
        if let RelationSource::Query(query) = &relation.source {
            nested(query, 0, into);
        }
    }
    target.each_own_expr(&mut |expr| within(expr, 1, into));
    target.returning.iter().for_each(|expr| within(expr, 1, into));
}

fn accesses_of_change(change: &Change, inside: Vec<AccessInfo>) -> Vec<AccessInfo> {
    let mut accesses = Vec::new();
    match change {
        Change::Insert(insert) => {
            explain::collect(&insert.source, 0, &mut accesses);
            of_insert(insert, &mut accesses);
            accesses.extend(inside);
        }
        Change::Update(update) => {
            let target = &update.target;
            accesses.extend(inside);
            of_changed(target, &mut accesses);
            of_moved(target, &update.set, &mut accesses);
        }
        Change::Delete(target) => {
            accesses.extend(inside);
            of_changed(target, &mut accesses);
        }
        Change::Merge(merge) => {
            let target = &merge.target;
            accesses.extend(inside);
            of_changed(target, &mut accesses);
            for clause in &merge.clauses {
                match &clause.action {
                    MergeAction::Nothing | MergeAction::Delete => {}
                    MergeAction::Update(set) => of_moved(target, set, &mut accesses),
                    MergeAction::Insert(values) => {
                        let place =
                            values.iter().find(|(column, _)| Some(*column) == target.table.partition_by);
                        let (table, kind) = (&target.table, AccessKind::Insert);
                        accesses.push(match place {
                            Some((_, value)) => {
                                explain::placed(table, kind, value, &target.relations, &target.steps)
                            }
                            None => explain::written(table, kind),
                        });
                    }
                }
            }
        }
    }
    accesses
}

/// Where rows go that get another partitioning column.
fn of_moved(target: &Target, set: &[(ColumnId, Expr)], into: &mut Vec<AccessInfo>) {
    if let Some(column) = target.table.partition_by
        && let Some((_, value)) = set.iter().find(|(set, _)| *set == column)
    {
        let (table, kind) = (&target.table, AccessKind::Move);
        into.push(explain::placed(table, kind, value, &target.relations, &[]));
    }
}

fn of_changed(target: &Target, into: &mut Vec<AccessInfo>) {
    target.ctes.iter().for_each(|cte| explain::collect(&cte.query, 0, into));
    explain::relations(&target.relations, 0, into);
    explain::steps(&target.steps, &target.relations, 0, true, into);
}

/// Where the new rows go.
fn of_insert(insert: &Insert, into: &mut Vec<AccessInfo>) {
    let (table, kind) = (&insert.table, AccessKind::Insert);
    let Some(column) = table.partition_by else { return into.push(explain::written(table, kind)) };
    let place = insert.columns.iter().position(|other| *other == column);
    let default = insert.defaults.iter().find(|(other, _)| *other == column).map(|(_, expr)| expr.clone());
    let mut add = |value: Option<&Expr>, select: Option<&Select>| {
        let (relations, steps) = select.map_or((&[][..], &[][..]), |s| (&s.relations[..], &s.steps[..]));
        into.push(match value {
            Some(value) => explain::placed(table, kind, value, relations, steps),
            None => explain::written(table, kind),
        });
    };
    match (&insert.source.body, place) {
        (Body::Values(rows), Some(at)) => rows.iter().for_each(|row| add(row.get(at), None)),
        (Body::Select(select), Some(at)) => add(select.outputs.get(at), Some(select.as_ref())),
        (_, Some(_)) => add(None, None),
        (_, None) => add(Some(&default.unwrap_or_else(Expr::null)), None),
    }
    let update = insert.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
    if let Some((_, value)) = update.and_then(|update| update.set.iter().find(|(set, _)| *set == column)) {
        let relation = |source| Relation { source, columns: columns_of(insert) };
        let relations = [relation(RelationSource::Table(Arc::clone(table)))];
        into.push(explain::placed(table, AccessKind::Move, value, &relations, &[]));
    }
}

fn columns_of(insert: &Insert) -> Vec<(String, crate::types::Type)> {
    let column = |def: &albireo_sql::ColumnDef| {
        (def.name.clone(), crate::types::Type::Scalar(crate::types::Scalar::of(def.ty)))
    };
    insert.table.columns.iter().map(column).collect()
}
