//! Aggregations by integers in narrow ranges find their groups in an array instead of a hash table, and those that a scan
//! can add up on codes, or knows without reading, leave that to it. Those of nothing but least and greatest values tell the
//! scan what they have met ([`super::bounds`]).
//!
//! Responsible for: which aggregations these are. Not responsible for: running them ([`super::dense`]).
//! Grouping by hash costs DataFusion 4.5 ns a row, by array about one. What is aggregated, and the
//! state of it, is left to DataFusion's own accumulators and ours.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::accumulators::Function;
use super::dense::DenseAggregate;
use super::in_scan;
use super::ranges;
use crate::pack::{Pack, Part};

/// Most places in the array: 16 MiB, of which only the pages that groups fall into are touched.
const MOST_PLACES: u64 = 1 << 22;

/// The rule.
#[derive(Debug)]
pub(crate) struct AggregateByArray;

impl PhysicalOptimizerRule for AggregateByArray {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let dense = node.downcast_ref::<AggregateExec>().map(dense).transpose()?.flatten();
            Ok(dense.map_or(Transformed::no(node), |dense| Transformed::yes(Arc::new(dense) as _)))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "aggregate_by_array"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn dense(aggregate: &AggregateExec) -> Result<Option<DenseAggregate>> {
    let groups = aggregate.group_expr();
    let takes = |mode: &AggregateMode| {
        use AggregateMode::{Final, FinalPartitioned, Partial, Single};
        matches!(mode, Single | Partial | Final | FinalPartitioned)
    };
    let plain = takes(aggregate.mode())
        && groups.is_single()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear;
    if !plain {
        return Ok(None);
    }
    if groups.is_empty() {
        let in_scan = in_scan::of(aggregate);
        // All else the operator does as DataFusion's does, but for what it tells the scan.
        let tells = !aggregate.dynamic_expressions_produced().is_empty();
        let dense =
            (in_scan.is_some() || tells).then(|| DenseAggregate::new(aggregate, Vec::new(), 1, in_scan));
        return dense.transpose();
    }
    if !Function::are_plain(aggregate) {
        return Ok(None);
    }
    let in_scan = in_scan::of(aggregate);
    let schema = aggregate.input().schema();
    let mut parts = Vec::with_capacity(groups.expr().len());
    for (expr, _) in groups.expr() {
        if !Pack::takes(&expr.data_type(&schema)?) {
            return Ok(None);
        }
        let Some(range) = ranges::of(expr, aggregate.input()) else { return Ok(None) };
        parts.push((expr, range));
    }
    let (exprs, ranges): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let Some((parts, places)) = Part::with_nulls(exprs, &ranges) else { return Ok(None) };
    if places > MOST_PLACES {
        return Ok(None);
    }
    DenseAggregate::new(aggregate, parts, places as usize, in_scan).map(Some)
}
