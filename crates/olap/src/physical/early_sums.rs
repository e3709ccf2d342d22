//! Sums that were moved below a join are left in parts: who adds them up after it adds parts as well.
//!
//! Responsible for: leaving out the second half of such an aggregation, its exchange of rows and its final sums, where what
//! it groups is what a join looks up. Not responsible for: moving sums (`crate::optimize`).
//!
//! To merge the parts first takes longer than to look up a few more rows, and makes the join wait for all of them. Where the
//! join keeps them in its table, or exchanges them itself, they are merged: there each row counts.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::functions::sums::is_early_sum;

/// The rule. It comes after the sides of joins are chosen, and before rows are exchanged for anybody.
#[derive(Debug)]
pub(super) struct LeaveInParts;

impl PhysicalOptimizerRule for LeaveInParts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(in_parts).data()
    }

    fn name(&self) -> &str {
        "leave_early_sums_in_parts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn in_parts(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
    let looks_up =
        *join.partition_mode() == PartitionMode::CollectLeft && *join.join_type() == JoinType::Inner;
    let Some(parts) = looks_up.then(|| parts_of(join.right())).transpose()?.flatten() else {
        return Ok(Transformed::no(plan));
    };
    let children = vec![Arc::clone(join.left()), parts];
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        .map(Transformed::yes)
}

/// The first half of an aggregation of nothing but early sums, its columns named and typed as those of the second.
fn parts_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let second = plan.downcast_ref::<AggregateExec>().filter(|second| {
        // One without functions is a DISTINCT.
        *second.mode() == AggregateMode::FinalPartitioned
            && !second.aggr_expr().is_empty()
            && second.aggr_expr().iter().all(|function| is_early_sum(function.name()))
    });
    let Some(second) = second else { return Ok(None) };
    let first = second.input();
    let is_first =
        first.downcast_ref::<AggregateExec>().is_some_and(|first| *first.mode() == AggregateMode::Partial);
    let (parts, sums) = (first.schema(), second.schema());
    let is_like = parts.fields().len() == sums.fields().len()
        && parts.fields().iter().zip(sums.fields()).all(|(part, sum)| {
            part.data_type() == sum.data_type() && part.is_nullable() == sum.is_nullable()
        });
    if !is_first || !is_like {
        return Ok(None);
    }
    let columns = parts.fields().iter().zip(sums.fields()).enumerate().map(|(index, (part, sum))| {
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(part.name(), index));
        ProjectionExpr { expr, alias: sum.name().clone() }
    });
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, Arc::clone(first))?)))
}
