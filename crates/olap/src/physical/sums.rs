//! Sums over a scan: rows of a chunk that differ in the summed columns alone may be added up by it.
//!
//! Responsible for: which aggregations these are. Not responsible for: adding ([`crate::scan`]), nor for
//! the sums themselves: the aggregation goes on as if it was given the rows, so it may get both.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use crate::functions::sums;
use crate::scan::exec::ScanExec;

/// The rule.
#[derive(Debug)]
pub(crate) struct SumInScan;

impl PhysicalOptimizerRule for SumInScan {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let Some(scan) = node.downcast_ref::<AggregateExec>().and_then(summing_scan) else {
                return Ok(Transformed::no(node));
            };
            let input = node.children().first().map(|&input| Arc::clone(input));
            let input = match input.filter(|input| input.is::<CooperativeExec>()) {
                Some(yielding) => replace_children_if_necessary(yielding, vec![Arc::new(scan)])?,
                None => Arc::new(scan) as _,
            };
            Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "sum_in_scan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan below an aggregation that only sums some of its columns by all others.
fn summing_scan(aggregate: &AggregateExec) -> Option<ScanExec> {
    let reads_rows = matches!(aggregate.mode(), AggregateMode::Single | AggregateMode::Partial);
    let plain = reads_rows
        && aggregate.group_expr().is_single()
        && aggregate.limit_options().is_none()
        && aggregate.filter_expr().iter().all(Option::is_none);
    let input = aggregate.input();
    let input = input.downcast_ref::<CooperativeExec>().map_or(input, |yielding| yielding.input());
    let scan = input.downcast_ref::<ScanExec>().filter(|_| plain)?;
    let groups: Option<Vec<usize>> =
        aggregate.group_expr().expr().iter().map(|(expr, _)| column(expr)).collect();
    let groups = groups?;
    let mut summed = Vec::new();
    for function in aggregate.aggr_expr() {
        let is_sum = sums::is_sum(function.fun()) && !function.is_distinct();
        let [argument] = function.expressions().try_into().ok().filter(|_: &[_; 1]| is_sum)?;
        summed.push(column(&argument)?);
    }
    summed.sort_unstable();
    summed.dedup();
    let columns = scan.properties().eq_properties.schema().fields().len();
    let is_either = |index: &usize| groups.contains(index) != summed.contains(index);
    (0..columns).all(|index| is_either(&index)).then(|| scan.summing(summed)).flatten()
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}
