//! Orders all joins of a plan and chooses the side each is built on.
//!
//! DataFusion joins in the order of the FROM clause, builds hash tables on the left side, and
//! with `join_reordering` off leaves the sides as they are: so a plan's joins run as they stand
//! here. Trees of inner joins are ordered as a whole ([`super::order`]); outer, semi and anti
//! joins stay where they are and are turned so that the smaller side is built.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Join, LogicalPlan};

use super::estimate::Estimator;
use super::graph::{JoinGraph, is_inner_join};
use super::order;

/// A side must be this much smaller to be worth a turn.
const TURN: f64 = 1.2;

/// Orders the joins of a plan and of the subqueries in its expressions.
pub(crate) fn order_joins(plan: LogicalPlan, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    let plan = plan.map_subqueries(|subquery| order_joins(subquery, estimator).map(Transformed::yes))?;
    order_node(plan.data, estimator)
}

fn order_node(plan: LogicalPlan, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    if is_group(&plan, estimator) {
        return order_group(plan, estimator);
    }
    let plan = plan.map_children(|child| order_joins(child, estimator).map(Transformed::yes))?.data;
    match plan {
        LogicalPlan::Join(join) => turn(join, estimator),
        other => other.recompute_schema(),
    }
}

fn is_group(plan: &LogicalPlan, _: &Estimator<'_>) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => is_inner_join(&filter.input),
        LogicalPlan::Join(join) if join.join_type == JoinType::LeftSemi => join.filter.is_none(),
        other => is_inner_join(other),
    }
}

fn order_group(plan: LogicalPlan, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let Some(mut graph) = JoinGraph::of(plan.clone(), estimator)? else {
        return plan
            .map_children(|child| order_joins(child, estimator).map(Transformed::yes))
            .map(|t| t.data);
    };
    if graph.relations.len() == 1 {
        // A semi join that is not an inner one: its sides are ordered each for itself.
        let plan = plan.map_children(|child| order_joins(child, estimator).map(Transformed::yes))?.data;
        return match plan {
            LogicalPlan::Join(join) => turn(join, estimator),
            other => Ok(other),
        };
    }
    for relation in &mut graph.relations {
        *relation = order_joins(relation.clone(), estimator)?;
    }
    order::with_columns(order::order(graph, estimator)?, columns)
}

/// Exchanges the sides of a join when the right one is the smaller.
fn turn(join: Join, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    let turned = match join.join_type {
        JoinType::Inner | JoinType::Full => join.join_type,
        JoinType::Left => JoinType::Right,
        JoinType::Right => JoinType::Left,
        JoinType::LeftSemi => JoinType::RightSemi,
        JoinType::RightSemi => JoinType::LeftSemi,
        JoinType::LeftAnti => JoinType::RightAnti,
        JoinType::RightAnti => JoinType::LeftAnti,
        JoinType::LeftMark | JoinType::RightMark => return Ok(LogicalPlan::Join(join)),
    };
    let smaller = estimator.rows(&join.right) * TURN < estimator.rows(&join.left);
    if join.null_aware || join.on.is_empty() || !smaller {
        return Ok(LogicalPlan::Join(join));
    }
    let columns = join.schema.columns();
    let turned = Join::try_new(
        Arc::clone(&join.right),
        Arc::clone(&join.left),
        join.on.into_iter().map(|(l, r)| (r, l)).collect(),
        join.filter,
        turned,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    order::with_columns(LogicalPlan::Join(turned), columns)
}
