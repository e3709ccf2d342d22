//! From a typed logical plan to the one that is executed.
//!
//! Responsible for: the order of rules. DataFusion's rules simplify, decorrelate and push filters
//! down; ours order the joins, with statistics of the snapshot; DataFusion's push down what the
//! new order allows. Not responsible for: estimates ([`selectivity`]).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::optimizer::OptimizerRule;

use crate::engine::Shared;
use crate::relation::Snapshot;

pub(crate) mod selectivity;

type Rules = Vec<Arc<dyn OptimizerRule + Send + Sync>>;

/// Optimizes an analyzed plan for a snapshot. Parameters stay open.
pub(crate) fn optimize(
    shared: &Shared,
    _snapshot: &Arc<dyn Snapshot>,
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    Optimizer::with_rules(simplifying_rules()).optimize(plan, shared.state(), |_, _| {})
}

/// DataFusion's rules in its order.
fn simplifying_rules() -> Rules {
    Optimizer::new().rules
}
