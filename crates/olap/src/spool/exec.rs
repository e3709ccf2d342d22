//! Spools in physical plans.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::fill::Spool;
use super::{SpoolId, SpoolScan, Spools};
use crate::errors::{external, internal};

/// Makes execution plans of spools.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = node.as_any().downcast_ref::<SpoolScan>() {
            let threads = session.config().target_partitions();
            let schema = Arc::clone(scan.schema.inner());
            return Ok(Some(Arc::new(SpoolScanExec::new(scan.id, schema, threads, Arc::default()))));
        }
        let Some(spools) = node.as_any().downcast_ref::<Spools>() else { return Ok(None) };
        SpoolsExec::of(&spools.ids, inputs.to_vec()).map(|plan| Some(Arc::new(plan) as _))
    }
}

/// A plan and what fills its spools.
#[derive(Debug)]
struct SpoolsExec {
    spools: Vec<(SpoolId, Arc<Spool>)>,
    /// What fills them, and last the plan.
    inputs: Vec<Arc<dyn ExecutionPlan>>,
}

impl SpoolsExec {
    /// Gives the scans among `inputs` their spools.
    fn of(ids: &[SpoolId], inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let spools: Vec<(SpoolId, Arc<Spool>)> = ids.iter().map(|id| (*id, Arc::default())).collect();
        let ordered: Vec<bool> = inputs.iter().map(|input| input.output_ordering().is_some()).collect();
        let linked = inputs.into_iter().map(|input| {
            let linked = input.transform_up(|node| {
                let Some(scan) = node.downcast_ref::<SpoolScanExec>() else {
                    return Ok(Transformed::no(node));
                };
                // Ids rise: `lower` numbers spools as it makes them.
                let Ok(at) = spools.binary_search_by_key(&scan.id, |(id, _)| *id) else {
                    return Err(external(internal("a scan of a spool that there is not")));
                };
                let spool = Arc::clone(&spools[at].1);
                // An order, which nobody may ask for but people expect, is kept by one reader alone.
                let threads = if ordered[at] { 1 } else { scan.properties.partitioning.partition_count() };
                Ok(
                    Transformed::yes(
                        Arc::new(SpoolScanExec::new(scan.id, node.schema(), threads, spool)) as _
                    ),
                )
            });
            linked.map(|linked| linked.data)
        });
        let inputs = linked.collect::<Result<_>>()?;
        Self::over(spools, inputs)
    }

    fn over(spools: Vec<(SpoolId, Arc<Spool>)>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        match inputs.len() == spools.len() + 1 {
            true => Ok(Self { spools, inputs }),
            false => Err(external(internal("a spool has lost its input"))),
        }
    }

    fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inputs[self.spools.len()]
    }
}

impl DisplayAs for SpoolsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<SpoolId> = self.spools.iter().map(|(id, _)| *id).collect();
        write!(f, "SpoolsExec: {ids:?}")
    }
}

impl ExecutionPlan for SpoolsExec {
    fn name(&self) -> &str {
        "SpoolsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan().properties()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        let mut required = vec![Distribution::SinglePartition; self.spools.len()];
        required.push(Distribution::UnspecifiedDistribution);
        required
    }

    /// The orders that there are: nothing else asks for them here, and a sort that nobody asks for goes.
    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = |input: &Arc<dyn ExecutionPlan>| input.output_ordering().cloned().map(Into::into);
        self.inputs.iter().map(order).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let mut keeps = vec![false; self.spools.len()];
        keeps.push(true);
        keeps
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::over(self.spools.clone(), children)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::over(self.spools.clone(), children)?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        for ((_, spool), input) in self.spools.iter().zip(&self.inputs) {
            spool.is_filled_by(input, &context);
        }
        self.plan().execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        let mut requests = vec![ChildStats::Skip; self.spools.len()];
        requests.push(ChildStats::At(partition));
        requests
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.schema()));
        Ok(inputs.last().map_or_else(unknown, Arc::clone))
    }
}

/// Reads the rows of a spool: each partition its share of the batches, the first also what was spilled.
#[derive(Debug)]
struct SpoolScanExec {
    id: SpoolId,
    spool: Arc<Spool>,
    properties: Arc<PlanProperties>,
}

impl SpoolScanExec {
    fn new(id: SpoolId, schema: SchemaRef, partitions: usize, spool: Arc<Spool>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { id, spool, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SpoolScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpoolScanExec: {}", self.id)
    }
}

impl ExecutionPlan for SpoolScanExec {
    fn name(&self) -> &str {
        "SpoolScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            Err(external(internal("a scan of a spool has no inputs")))
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            Err(external(internal("a scan of a spool has no inputs")))
        }
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (spool, schema) = (Arc::clone(&self.spool), self.schema());
        let partitions = self.properties.partitioning.partition_count();
        let named = Arc::clone(&schema);
        let batches = async move {
            let rows = spool.rows().await?;
            let spilled = if partition == 0 { rows.spilled()? } else { None };
            let own = (partition..rows.batches.len()).step_by(partitions);
            let kept = stream::iter(own.map(move |at| Ok(rows.batches[at].clone())));
            let spilled = stream::iter(spilled).flatten();
            Ok::<_, DataFusionError>(kept.chain(spilled).map(move |batch| renamed(&batch?, &named)))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// A batch under the names of a scan.
fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?)
}
