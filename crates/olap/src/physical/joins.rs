//! Hash joins on other keys than they had.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

/// The plan with each join in whose place `other` gives one. Such a join does not tell any more that the columns of its
/// keys are equal: where an order relied on that, the plan stays as it was.
pub(super) fn with_other_keys(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    other: impl Fn(&HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = Arc::clone(&plan).transform_up(|node| {
        let join = node.downcast_ref::<HashJoinExec>().map(&other).transpose()?.flatten();
        Ok(join.map_or(Transformed::no(node), Transformed::yes))
    })?;
    let is_sound = || SanityCheckPlan::new().optimize(Arc::clone(&changed.data), config).is_ok();
    Ok(if changed.transformed && is_sound() { changed.data } else { plan })
}
