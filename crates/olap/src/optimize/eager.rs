//! Sums are taken below a join when that makes the joined side much smaller.
//!
//! `sum(line.amount) ... order JOIN line ... GROUP BY order's columns` has a row for each line in the
//! join and in the grouping, although the lines of one order all go the same way. Summed by the join's
//! key first, there is one row for each order. Valid for every inner equi-join, whether or not its keys
//! are unique: the rows of one key meet the same partners, and sums of sums are sums.
//! Paper: Yan and Larson, *Eager Aggregation and Lazy Aggregation*, VLDB 1995 (eager group-by).
//!
//! Only sums of decimals, whose sums have the same type again; anything else stays as it is.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, Join, LogicalPlan};

use super::estimate::{Estimator, plain_column};
use crate::functions::sums::EARLY_SUM;

/// Rows that a sum below the join must take together on average to be worth taking.
const FEWER: f64 = 4.0;
/// Share of the side's rows that must be expected to find a partner.
const JOINED: f64 = 0.8;
/// Rows of the side below which nothing is gained.
const WORTHWHILE: f64 = 10_000.0;

/// Moves sums below joins in a whole plan.
pub(crate) fn sum_early(plan: LogicalPlan, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Aggregate(aggregate) => {
            let early = sums_below(aggregate, estimator)?;
            Ok(early.map_or(Transformed::no(node), Transformed::yes))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

fn sums_below(aggregate: &Aggregate, estimator: &Estimator<'_>) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Join(join) = without_renaming(&aggregate.input) else { return Ok(None) };
    let plain = join.join_type == JoinType::Inner
        && join.null_equality == NullEquality::NullEqualsNothing
        && join.filter.is_none()
        && !join.on.is_empty();
    let Some(arguments) = arguments(aggregate).filter(|_| plain) else { return Ok(None) };
    for right in [true, false] {
        let side = if right { &join.right } else { &join.left };
        let keys: Option<Vec<Expr>> = join
            .on
            .iter()
            .map(|(l, r)| plain_column(if right { r } else { l }).cloned().map(Expr::Column))
            .collect();
        let Some(keys) = keys else { continue };
        if is_side(side, &arguments, &keys, &aggregate.group_expr) && pays(join, side, &keys, estimator) {
            return rewrite(aggregate, join, right, keys).map(Some);
        }
    }
    Ok(None)
}

/// The plan below a projection that does nothing but choose and order columns.
fn without_renaming(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(p) if p.expr.iter().all(|e| matches!(e, Expr::Column(_))) => &p.input,
        other => other,
    }
}

/// The columns summed, if there is nothing but sums of decimal columns.
fn arguments(aggregate: &Aggregate) -> Option<Vec<Column>> {
    let arguments: Option<Vec<Column>> =
        aggregate.aggr_expr.iter().map(|expr| summed(expr, aggregate)).collect();
    let no_sets = aggregate.group_expr.iter().all(|g| !matches!(g, Expr::GroupingSet(_)));
    arguments.filter(|arguments| !arguments.is_empty() && no_sets)
}

fn summed(expr: &Expr, aggregate: &Aggregate) -> Option<Column> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = unaliased(expr) else { return None };
    let [Expr::Column(argument)] = params.args.as_slice() else { return None };
    let simple = func.name() == "sum"
        && !params.distinct
        && params.filter.is_none()
        && params.order_by.is_empty()
        && params.null_treatment.is_none();
    let ty = Expr::Column(argument.clone()).get_type(aggregate.input.schema()).ok()?;
    (simple && matches!(ty, DataType::Decimal128(..))).then(|| argument.clone())
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// Whether all arguments come from this side, and no group reads more of it than the keys.
fn is_side(side: &LogicalPlan, arguments: &[Column], keys: &[Expr], groups: &[Expr]) -> bool {
    let here = |column: &Column| side.schema().maybe_index_of_column(column).is_some();
    let is_key = |column: &Column| keys.iter().any(|key| plain_column(key) == Some(column));
    arguments.iter().all(here)
        && groups.iter().flat_map(Expr::column_refs).all(|column| !here(column) || is_key(column))
}

fn pays(join: &Join, side: &LogicalPlan, keys: &[Expr], estimator: &Estimator<'_>) -> bool {
    let rows = estimator.rows(side);
    let joined = estimator.rows(&LogicalPlan::Join(join.clone()));
    rows >= WORTHWHILE && joined >= JOINED * rows && estimator.distinct_rows(keys, side) * FEWER <= rows
}

fn rewrite(aggregate: &Aggregate, join: &Join, right: bool, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let mut early = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut late = Vec::with_capacity(aggregate.aggr_expr.len());
    for (i, expr) in aggregate.aggr_expr.iter().enumerate() {
        let name = format!("{EARLY_SUM}{i}");
        let sum = unaliased(expr);
        early.push(sum.clone().alias(&name));
        let Expr::AggregateFunction(function) = sum else {
            return Ok(LogicalPlan::Aggregate(aggregate.clone()));
        };
        let args = vec![Expr::Column(Column::new_unqualified(name))];
        let params = AggregateFunctionParams { args, ..function.params.clone() };
        let of_sums = Expr::AggregateFunction(AggregateFunction { func: Arc::clone(&function.func), params });
        late.push(of_sums.alias(expr.schema_name().to_string()));
    }
    let mut unique = Vec::with_capacity(keys.len());
    for key in keys {
        if !unique.contains(&key) {
            unique.push(key);
        }
    }
    let side = if right { &join.right } else { &join.left };
    let side = Arc::new(LogicalPlan::Aggregate(Aggregate::try_new(Arc::clone(side), unique, early)?));
    let (left, right) = match right {
        true => (Arc::clone(&join.left), side),
        false => (side, Arc::clone(&join.right)),
    };
    let joined = Join::try_new(
        left,
        right,
        join.on.clone(),
        None,
        JoinType::Inner,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    let groups = aggregate.group_expr.clone();
    Aggregate::try_new(Arc::new(LogicalPlan::Join(joined)), groups, late).map(LogicalPlan::Aggregate)
}
