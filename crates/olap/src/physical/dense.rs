//! The operator that aggregates by an array of groups.
//!
//! A row's group expressions, packed ([`super::pack`]), are a place in the array; the place holds the
//! group's number. Groups are numbered in the order they are met, so accumulators stay small however
//! wide the array. Does not spill: there are never more groups than places. Over a scan that adds up encoded chunks by
//! itself ([`super::in_scan`]) it merges their sums with those of the rows of the others. Without groups all rows are one.
//! Parts of an aggregation are merged by an array too.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, AggregateMode};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};

use super::accumulators::{Accumulators, Function};
use super::bounds::Bounds;
use super::in_scan::{InScan, scan_of};
use crate::errors::{external, internal};
use crate::pack::{Part, place_of, unpack};
use crate::scan::sums::{self, ChunkSums, Parts};

/// What is computed.
struct Spec {
    parts: Vec<Part>,
    places: usize,
    functions: Vec<Function>,
    mode: AggregateMode,
    schema: SchemaRef,
    /// What the scan below does of it.
    in_scan: Option<InScan>,
    /// What the scan below is told of the values met.
    bounds: Option<Bounds>,
}

/// The plan node.
pub(super) struct DenseAggregate {
    spec: Arc<Spec>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DenseAggregate {
    /// Does what `aggregate` does; `parts` are its group expressions, `places` all their combinations.
    pub(super) fn new(
        aggregate: &AggregateExec,
        parts: Vec<Part>,
        places: usize,
        in_scan: Option<InScan>,
    ) -> Result<Self> {
        let spec = Spec {
            parts,
            places,
            functions: Function::of(aggregate)?,
            mode: *aggregate.mode(),
            schema: aggregate.schema(),
            in_scan,
            bounds: Bounds::of(aggregate),
        };
        Ok(Self {
            spec: Arc::new(spec),
            input: Arc::clone(aggregate.input()),
            properties: Arc::clone(aggregate.properties()),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The least and greatest value that group `index` can have, NULL apart; `None`: there is no such group.
    pub(super) fn range(&self, index: usize) -> Option<(i64, i64)> {
        self.spec.parts.get(index).map(Part::range)
    }

    fn over(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) => Ok(Arc::new(Self {
                spec: Arc::clone(&self.spec),
                input,
                properties: Arc::clone(&self.properties),
                metrics: ExecutionPlanMetricsSet::new(),
            })),
            _ => Err(external(internal("an aggregation has one input"))),
        }
    }
}

impl fmt::Debug for DenseAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenseAggregate").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for DenseAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.spec.parts.iter().map(ToString::to_string).collect();
        let functions: Vec<&str> = self.spec.functions.iter().map(Function::name).collect();
        write!(
            f,
            "ArrayAggregateExec: mode={:?}, gby=[{}], aggr=[{}], places={}{}",
            self.spec.mode,
            groups.join(", "),
            functions.join(", "),
            self.spec.places,
            if self.spec.in_scan.is_some() { ", on_codes=true" } else { "" }
        )
    }
}

impl ExecutionPlan for DenseAggregate {
    fn name(&self) -> &str {
        "ArrayAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        match self.spec.mode {
            AggregateMode::Partial => vec![Distribution::UnspecifiedDistribution],
            AggregateMode::FinalPartitioned => {
                let groups = self.spec.parts.iter().map(|part| Arc::clone(part.expr()));
                vec![Distribution::KeyPartitioned(groups.collect())]
            }
            _ => vec![Distribution::SinglePartition],
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for part in &self.spec.parts {
            if f(part.expr())? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.spec.bounds.iter().map(|bounds| Arc::clone(bounds.filter())).collect()
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.spec.bounds.as_ref().map_or(Ok(()), Bounds::forget)?;
        self.over(vec![Arc::clone(&self.input)])
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = match (&self.spec.in_scan, scan_of(&self.input)) {
            (Some(in_scan), Some(scan)) => Input::Parts(scan.parts(partition, &in_scan.wanted)),
            _ => Input::Batches(self.input.execute(partition, Arc::clone(&context))?),
        };
        let reservation = MemoryConsumer::new("ArrayAggregateExec").register(context.memory_pool());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (spec, batch_rows) = (Arc::clone(&self.spec), context.session_config().batch_size());
        // Each thread makes its own table: one alone would clear them all before the first starts.
        let aggregated =
            async move { aggregate(Table::new(spec, reservation, metrics)?, input, batch_rows).await };
        let batches = futures::stream::once(aggregated)
            .map_ok(|batches| futures::stream::iter(batches.into_iter().map(Ok)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.spec.schema), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.spec.schema)))
    }
}

/// Where rows come from.
enum Input {
    Batches(SendableRecordBatchStream),
    Parts(Parts),
}

/// Aggregates all of the input; the result in batches of at most `batch_rows` rows.
async fn aggregate(mut table: Table, input: Input, batch_rows: usize) -> Result<Vec<RecordBatch>> {
    match input {
        Input::Batches(mut batches) => {
            while let Some(batch) = batches.next().await {
                table.add(&batch?)?;
            }
        }
        Input::Parts(mut parts) => {
            while let Some(part) = parts.next().await? {
                match part {
                    sums::Part::Rows(batch) => table.add(&batch)?,
                    sums::Part::Sums(sums) => table.add_sums(&sums)?,
                }
            }
        }
    }
    let result = table.finish()?;
    let slice = |first| result.slice(first, batch_rows.min(result.num_rows() - first));
    Ok((0..result.num_rows()).step_by(batch_rows.max(1)).map(slice).collect())
}

/// The groups met so far.
struct Table {
    spec: Arc<Spec>,
    /// By place: the group's number plus one; 0 means none.
    numbers: Vec<u32>,
    /// By number: the group's place.
    groups: Vec<u32>,
    accumulators: Accumulators,
    /// The places and the groups of the batch at hand; kept for their memory.
    places: Vec<i64>,
    group_of_row: Vec<usize>,
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
}

impl Table {
    fn new(spec: Arc<Spec>, reservation: MemoryReservation, metrics: BaselineMetrics) -> Result<Self> {
        reservation.try_grow(spec.places * size_of::<u32>())?;
        // Without groups, all rows are one, which is there without rows too.
        let is_whole = spec.parts.is_empty();
        Ok(Self {
            numbers: vec![0; spec.places],
            groups: vec![0; usize::from(is_whole)],
            accumulators: match is_whole {
                true => Accumulators::whole(&spec.functions)?,
                false => Accumulators::new(&spec.functions)?,
            },
            places: Vec::new(),
            group_of_row: Vec::new(),
            reservation,
            metrics,
            spec,
        })
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        if !self.spec.parts.is_empty() {
            place_of(&self.spec.parts, batch, &mut self.places)?;
            self.number()?;
        }
        let (spec, groups) = (&self.spec, self.groups.len());
        match spec.mode.input_mode() {
            AggregateInputMode::Raw => {
                self.accumulators.update(&spec.functions, batch, &self.group_of_row, groups)?;
            }
            AggregateInputMode::Partial => {
                let states = batch.columns().get(spec.parts.len()..).unwrap_or_default();
                self.accumulators.merge_states(&spec.functions, states, &self.group_of_row, groups)?;
            }
        }
        self.tell()?;
        self.account()
    }

    /// Adds what a chunk comes to.
    fn add_sums(&mut self, chunk: &ChunkSums) -> Result<()> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let place = |key: &Vec<Option<i64>>| {
            let places = self.spec.parts.iter().zip(key).map(|(part, value)| part.place(*value));
            places.fold(0, i64::wrapping_add)
        };
        if !self.spec.parts.is_empty() {
            self.places.clear();
            self.places.extend(chunk.keys.iter().map(place));
            self.number()?;
        }
        let states = self.spec.in_scan.as_ref().map(|in_scan| in_scan.states(chunk)).transpose()?;
        self.accumulators.merge(states.into_iter().flatten(), &self.group_of_row, self.groups.len())?;
        self.tell()?;
        self.account()
    }

    /// Finds the group of each row, or makes it.
    fn number(&mut self) -> Result<()> {
        self.group_of_row.clear();
        let (numbers, groups) = (&mut self.numbers, &mut self.groups);
        for &place in &self.places {
            let Some(number) = usize::try_from(place).ok().and_then(|place| numbers.get_mut(place)) else {
                return Err(external(internal("a value lies outside its column's range")));
            };
            if *number == 0 {
                groups.push(place as u32);
                *number = groups.len() as u32;
            }
            self.group_of_row.push(*number as usize - 1);
        }
        Ok(())
    }

    /// Tells the scan what has been met.
    fn tell(&mut self) -> Result<()> {
        let Some(bounds) = &self.spec.bounds else { return Ok(()) };
        bounds.meet(self.accumulators.values()?)
    }

    fn account(&mut self) -> Result<()> {
        let rows =
            self.places.capacity() * size_of::<i64>() + self.group_of_row.capacity() * size_of::<usize>();
        let tables = (self.numbers.len() + self.groups.capacity()) * size_of::<u32>();
        self.reservation.try_resize(self.accumulators.bytes() + rows + tables)
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let fields = self.spec.schema.fields().iter();
        let types: Vec<DataType> = fields.map(|field| field.data_type().clone()).collect();
        let mut columns = unpack(&self.spec.parts, &self.groups, &types)?;
        match self.spec.mode {
            AggregateMode::Partial => columns.extend(self.accumulators.states()?),
            _ => columns.extend(self.accumulators.results()?),
        }
        self.metrics.record_output(self.groups.len());
        let options = RecordBatchOptions::new().with_row_count(Some(self.groups.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?)
    }
}
