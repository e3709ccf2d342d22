//! Keeps conditions above aggregates without GROUP BY.
//!
//! Such an aggregate gives a row even if it has read none. DataFusion pushes a condition that names no column,
//! such as what is left of `NOT (m = m)`, below any aggregate, where it takes the rows that are read instead
//! of the one that is given. It pushes none below a LIMIT.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

/// Takes the one row of each aggregate without GROUP BY by LIMIT 1, but where nothing can be pushed into it: at
/// the top.
pub(super) fn kept(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(_) => Ok(plan.map_children(|child| kept(child).map(Transformed::yes))?.data),
        LogicalPlan::Aggregate(_) => {
            Ok(plan.map_children(|child| limited(child).map(Transformed::yes))?.data)
        }
        _ => limited(plan),
    }
}

fn limited(plan: LogicalPlan) -> Result<LogicalPlan> {
    let limit = |node: LogicalPlan| {
        let whole = matches!(&node, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty());
        Ok(match whole {
            true => Transformed::yes(LogicalPlanBuilder::from(node).limit(0, Some(1))?.build()?),
            false => Transformed::no(node),
        })
    };
    Ok(plan.transform_up(limit)?.data)
}
