//! From a typed logical plan to the one that is executed.
//!
//! Responsible for: the order of rules. DataFusion's rules simplify and push filters down; ours
//! order the joins, with statistics of the snapshot; DataFusion's push down what the new order
//! allows. Lowered plans have no subqueries, so none of the rules for these is here. Not responsible for: estimates ([`estimate`], [`crate::scan::selectivity`]).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer as rules;
use datafusion::optimizer::optimizer::OptimizerRule;
use datafusion::optimizer::{Optimizer, OptimizerConfig};

use crate::engine::Shared;
use crate::errors::external;
use crate::relation::Snapshot;

mod count_groups;
mod dependencies;
mod eager;
pub(crate) mod estimate;
mod graph;
mod join_order;
mod keys;
mod order;
mod whole;

pub(crate) use dependencies::without_misleading_keys;

type Rules = Vec<Arc<dyn OptimizerRule + Send + Sync>>;

/// Optimizes an analyzed plan for a snapshot. Parameters stay open.
pub(crate) fn optimize(
    shared: &Shared,
    snapshot: &Arc<dyn Snapshot>,
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    let state = shared.state();
    let plan = whole::kept(plan)?;
    let mut rules = simplifying();
    if groups_below_join(&plan, false) {
        let eliminating = rules::eliminate_join::EliminateJoin::new();
        rules.retain(|rule| rule.name() != eliminating.name());
    }
    let plan = Optimizer::with_rules(interruptible(rules)).optimize(plan, state, |_, _| {})?;
    let estimator = estimate::Estimator::new(snapshot, &shared.caches, &plan);
    let plan = join_order::order_joins(plan, &estimator)?;
    // What is summed early is grouped twice.
    let plan = without_misleading_keys(eager::sum_early(plan, &estimator)?)?;
    Optimizer::with_rules(interruptible(finishing(snapshot))).optimize(plan, state, |_, _| {})
}

/// Rules, and before each one a look whether planning is to go on.
fn interruptible(rules: Rules) -> Rules {
    rules.into_iter().flat_map(|rule| [Arc::new(Checkpoint) as _, rule]).collect()
}

/// A rule that changes nothing, and fails once the statement's budget is spent or the statement is ended.
#[derive(Debug)]
struct Checkpoint;

impl OptimizerRule for Checkpoint {
    fn name(&self) -> &str {
        "checkpoint"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        albireo_base::budget::check().map_err(external)?;
        Ok(Transformed::no(plan))
    }
}

/// Whether one side of a join is grouped. DataFusion's rule that drops joins takes some of the columns that a
/// group is made of for a key of it, and makes a semi join of one whose rows have several partners.
fn groups_below_join(plan: &LogicalPlan, below: bool) -> bool {
    let groups = matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_));
    let below = below || matches!(plan, LogicalPlan::Join(_));
    groups && below || plan.inputs().into_iter().any(|input| groups_below_join(input, below))
}

/// DataFusion's rules that give a plan its shape, in its order; without the one that orders
/// joins as the query names them, and without those that put projections between joins.
fn simplifying() -> Rules {
    vec![
        Arc::new(rules::optimize_unions::OptimizeUnions::new()),
        Arc::new(rules::simplify_expressions::SimplifyExpressions::new()),
        Arc::new(rules::replace_distinct_aggregate::ReplaceDistinctWithAggregate::new()),
        Arc::new(rules::eliminate_join::EliminateJoin::new()),
        Arc::new(keys::KeysOfEqualities::default()),
        Arc::new(rules::eliminate_filter::EliminateFilter::new()),
        Arc::new(rules::eliminate_limit::EliminateLimit::new()),
        Arc::new(rules::propagate_empty_relation::PropagateEmptyRelation::new()),
        Arc::new(rules::eliminate_outer_join::EliminateOuterJoin::new()),
        Arc::new(rules::push_down_limit::PushDownLimit::new()),
        Arc::new(rules::push_down_filter::PushDownFilter::new()),
        Arc::new(rules::single_distinct_to_groupby::SingleDistinctToGroupBy::new()),
        Arc::new(rules::eliminate_group_by_constant::EliminateGroupByConstant::new()),
    ]
}

/// DataFusion's rules for a plan whose joins are ordered.
fn finishing(snapshot: &Arc<dyn Snapshot>) -> Rules {
    vec![
        Arc::new(rules::push_down_limit::PushDownLimit::new()),
        Arc::new(rules::push_down_filter::PushDownFilter::new()),
        Arc::new(rules::common_subexpr_eliminate::CommonSubexprEliminate::new()),
        Arc::new(rules::optimize_projections::OptimizeProjections::new()),
        // Of what is left: a count that nobody reads is not one of groups.
        Arc::new(count_groups::CountGroups(Arc::clone(snapshot))),
    ]
}
