//! Orders that a plan relies on and no longer shows are made again by a sort.
//!
//! DataFusion leaves out a sort where what is below gives the order already: a column is constant there, or
//! equals another one. Rules that run later may take that from sight, though not from the rows: a projection
//! moved into a join hides a constant, a union of branches keeps no columns that are equal in one of them alone.
//! The check of the plan then refuses it. Rare, so what the sort costs is not worth a finer proof.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};

/// The rule.
#[derive(Debug)]
pub(super) struct SortAgain;

impl PhysicalOptimizerRule for SortAgain {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(with_sorted_inputs).data()
    }

    fn name(&self) -> &str {
        "sort_again"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_sorted_inputs(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut sorts = false;
    let mut children = Vec::with_capacity(plan.children().len());
    for (child, required) in plan.children().into_iter().zip(plan.required_input_ordering()) {
        let mut child = Arc::clone(child);
        if let Some(required) = required.map(|all| all.into_single())
            && !child.equivalence_properties().ordering_satisfy_requirement(required.clone())?
        {
            let several = child.output_partitioning().partition_count() > 1;
            let sort = SortExec::new(LexOrdering::from(required), child).with_preserve_partitioning(several);
            child = Arc::new(sort);
            sorts = true;
        }
        children.push(child);
    }
    if !sorts {
        return Ok(Transformed::no(plan));
    }
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        .map(Transformed::yes)
}
