//! Keys of tables, kept from rules that would draw wrong conclusions from them.
//!
//! DataFusion takes a key of a table for one of a whole group: of `GROUP BY t.id, u.b` over a join it
//! says that `t.id`, unique in `t`, determines `u.b`. A second aggregate or a join above then leaves
//! `u.b` out of its own keys, or takes the rows for unique. So plans with anything above an aggregate
//! over a join are planned as if tables had no keys. Others keep them: they make keys of groups short.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::scan::provider::SnapshotTable;

/// The plan without the keys of its tables, where a rule could be wrong about them.
pub(crate) fn without_misleading_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !misleads(&plan) {
        return Ok(plan);
    }
    Ok(plan
        .transform_up(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let Some(table) = provider.downcast_ref::<SnapshotTable>() else {
                    return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
                };
                let source = provider_as_source(Arc::new(table.without_keys()));
                let scan = TableScanBuilder::new(scan.table_name, source)
                    .with_projection(scan.projection)
                    .with_filters(scan.filters)
                    .with_fetch(scan.fetch)
                    .build()?;
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            other => Ok(Transformed::yes(other.recompute_schema()?)),
        })?
        .data)
}

/// Whether a plan groups a join below another grouping or join.
fn misleads(plan: &LogicalPlan) -> bool {
    let mut search = Search { found: false };
    search.has_join(plan, false);
    search.found
}

struct Search {
    /// Whether a grouped join below another grouping or join has been met.
    found: bool,
}

impl Search {
    /// Whether there is a join in a plan. `below`: it is below a grouping or join.
    fn has_join(&mut self, plan: &LogicalPlan, below: bool) -> bool {
        let (groups, joins) = match plan {
            LogicalPlan::Distinct(_) => (1, false),
            // Aggregates of distinct values are computed in two steps.
            LogicalPlan::Aggregate(node) => (1 + usize::from(node.aggr_expr.iter().any(is_distinct)), false),
            LogicalPlan::Join(_) => (0, true),
            _ => (0, false),
        };
        let mut has_join = joins;
        for input in plan.inputs() {
            has_join |= self.has_join(input, below || joins || groups > 0);
        }
        self.found |= has_join && groups > usize::from(!below);
        has_join
    }
}

fn is_distinct(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_distinct(&alias.expr),
        Expr::AggregateFunction(call) => call.params.distinct,
        _ => false,
    }
}
