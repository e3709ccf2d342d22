//! Our rules over physical plans. They run at each execution, so they may rely on what the snapshot
//! holds: the range of a column is a fact here, not an estimate.

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

mod accumulators;
mod bounds;
mod dense;
mod early_sums;
mod groups;
mod in_scan;
mod joins;
mod keys;
mod nullable;
mod order;
mod pairs;
mod pushdown;
mod ranges;
mod sums;
mod text_groups;
mod text_joins;
mod texts;

/// DataFusion's rules and ours, in order.
pub(crate) fn rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(nullable::HideConstants));
    let sides = rules.iter().position(|rule| rule.name() == JoinSelection::new().name());
    rules.insert(sides.map_or(0, |at| at + 1), Arc::new(early_sums::LeaveInParts));
    // Before dynamic filters are made of the joins' keys: the last rule but the check of the plan.
    let last = FilterPushdown::new_post_optimization();
    let at = rules.iter().rposition(|rule| rule.name() == last.name()).unwrap_or(rules.len());
    rules.insert(at, Arc::new(order::SortAgain));
    let at = at + 1;
    rules.insert(at, Arc::new(keys::PackJoinKeys));
    rules.insert(at, Arc::new(text_joins::JoinByNumbers));
    let at = at + 1;
    let [first, last] = [FilterPushdown::new(), last];
    let pushes = |name: &str| name == first.name() || name == last.name();
    for rule in rules.iter_mut().filter(|rule| pushes(rule.name())) {
        *rule = Arc::new(pushdown::WhereNamesAreUnique(Arc::clone(rule)));
    }
    // After it, because dynamic filters pass through DataFusion's aggregation.
    let at = (at + 2).min(rules.len());
    rules.insert(at, Arc::new(sums::SumInScan));
    rules.insert(at + 1, Arc::new(groups::AggregateByArray));
    rules.insert(at + 2, Arc::new(texts::AggregateByTexts));
    rules
}
