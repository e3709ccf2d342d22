//! Sides of outer joins whose columns may become NULL do not promise constants.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::nodes::nullable::NullableExec;

/// Puts a [`NullableExec`] around them. The first rule: all others look at what plans promise.
#[derive(Debug)]
pub(super) struct HideConstants;

impl PhysicalOptimizerRule for HideConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(hidden).data()
    }

    fn name(&self) -> &str {
        "hide_constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn join_type(plan: &dyn ExecutionPlan) -> Option<JoinType> {
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let loops = || plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let merge = || plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type());
    hash.or_else(loops).or_else(merge)
}

fn hidden(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let nullable = match join_type(plan.as_ref()) {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Ok(Transformed::no(plan)),
    };
    let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
    let mut changes = false;
    for (child, _) in children.iter_mut().zip(nullable).filter(|(_, nullable)| *nullable) {
        if let Some(around) = NullableExec::around(child)? {
            *child = around;
            changes = true;
        }
    }
    if !changes {
        return Ok(Transformed::no(plan));
    }
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        .map(Transformed::yes)
}
