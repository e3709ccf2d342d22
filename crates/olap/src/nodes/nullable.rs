//! The side of an outer join whose rows may be missing: its columns are then NULL.
//!
//! A column that is constant on that side, or equals an expression, need not be so after the join. DataFusion's
//! outer joins keep both properties, and plans above rely on them: sorts and grouping leave such columns out, and
//! give rows in wrong order and a group twice. This node passes rows on and hides these properties.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
};

use crate::errors::{external, internal};

/// Passes rows on; of their properties, only those that hold where all columns are NULL.
#[derive(Debug)]
pub(crate) struct NullableExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullableExec {
    /// Around `input`, if it has properties to be hidden.
    ///
    /// # Errors
    /// Properties that DataFusion cannot combine.
    pub(crate) fn around(input: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let properties = &input.properties().eq_properties;
        let hides = properties.eq_group().iter().any(|class| {
            class.iter().any(|expr| !is_column(expr) || properties.is_expr_constant(expr).is_some())
        });
        Ok(if hides { Some(Arc::new(Self::new(Arc::clone(input))?)) } else { None })
    }

    fn new(input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let shown = shown(&input.properties().eq_properties)?;
        let properties = Arc::new(PlanProperties::clone(input.properties()).with_eq_properties(shown));
        Ok(Self { input, properties })
    }
}

fn is_column(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<Column>()
}

/// Orders, and which columns are equal.
fn shown(all: &EquivalenceProperties) -> Result<EquivalenceProperties> {
    let mut shown = EquivalenceProperties::new(Arc::clone(all.schema()));
    for class in all.eq_group().iter() {
        let mut columns = class.iter().filter(|expr| is_column(expr));
        let Some(first) = columns.next() else { continue };
        for other in columns {
            shown.add_equal_conditions(Arc::clone(first), Arc::clone(other))?;
        }
    }
    shown.add_orderings(all.oeq_class().iter().cloned());
    Ok(shown)
}

impl DisplayAs for NullableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullableExec")
    }
}

impl ExecutionPlan for NullableExec {
    fn name(&self) -> &str {
        "NullableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| external(internal("a nullable side has one input")))?;
        Ok(Arc::new(Self::new(input)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let [input] = inputs else {
            return Err(external(internal("a nullable side has one input")));
        };
        Ok(Arc::clone(input))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }
}
