//! The operator that aggregates by texts, which the scan below gives numbers ([`crate::scan::text_ids`]).
//!
//! Of one text the number is that of the group. Of several keys, numbers are paired ([`super::pairs`]), integers packed
//! before ([`super::pack`]). States of accumulators go out with the texts themselves, so whatever is above sees no numbers.
//! It only aggregates in part: where there is no memory for more groups, or where there are very many, those that are there
//! go out and it begins anew.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, SchemaRef, UInt32Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::accumulators::{Accumulators, Function};
use super::in_scan::scan_of;
use super::pairs::Pairs;
use crate::errors::{external, internal};
use crate::pack::{Part, place_of, unpack};
use crate::scan::exec::ScanExec;
use crate::scan::text_ids::IdRows;

/// Groups after which those that are there go out.
const MOST_GROUPS: usize = 1 << 20;

/// Bytes of a batch that goes out.
const BATCH_BYTES: usize = 256 << 10;

/// What rows are grouped by.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The columns of the scan that all expressions are over.
    pub(super) columns: Vec<usize>,
    /// Those of them that are numbers of texts, each once, of which there is one at least.
    pub(super) texts: Vec<usize>,
    /// Integers, with room for NULL, that have less than 2^32 places together.
    pub(super) integers: Vec<Part>,
    /// By group expression: which one it is.
    pub(super) order: Vec<Key>,
}

/// One of the texts, or one of the integers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Text(usize),
    Integer(usize),
}

/// What is computed.
struct Spec {
    keys: Keys,
    groups: Vec<String>,
    functions: Vec<Function>,
    schema: SchemaRef,
}

/// The plan node.
pub(super) struct TextAggregate {
    spec: Arc<Spec>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TextAggregate {
    /// Does what `partial` does, over a scan that gives its texts numbers.
    pub(super) fn new(partial: &AggregateExec, keys: Keys, scan: ScanExec) -> Result<Self> {
        let groups = partial.group_expr().expr().iter().map(|(expr, _)| expr.to_string()).collect();
        let functions = Function::of(partial)?;
        Ok(Self {
            spec: Arc::new(Spec { keys, groups, functions, schema: partial.schema() }),
            input: Arc::new(scan),
            properties: Arc::clone(partial.properties()),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn over(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) if scan_of(&input).is_some() => Ok(Arc::new(Self {
                spec: Arc::clone(&self.spec),
                input,
                properties: Arc::clone(&self.properties),
                metrics: ExecutionPlanMetricsSet::new(),
            })),
            _ => Err(external(internal("an aggregation by texts has one scan below it"))),
        }
    }
}

impl fmt::Debug for TextAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextAggregate").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for TextAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions: Vec<&str> = self.spec.functions.iter().map(Function::name).collect();
        let (groups, functions) = (self.spec.groups.join(", "), functions.join(", "));
        write!(f, "DictionaryAggregateExec: mode=Partial, gby=[{groups}], aggr=[{functions}]")
    }
}

impl ExecutionPlan for TextAggregate {
    fn name(&self) -> &str {
        "DictionaryAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for part in &self.spec.keys.integers {
            if f(part.expr())? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
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
        let Some(scan) = scan_of(&self.input) else {
            return Err(external(internal("an aggregation by texts has a scan below it")));
        };
        let reservation = MemoryConsumer::new("DictionaryAggregateExec").register(context.memory_pool());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let aggregation = Aggregation {
            rows: scan.id_rows(partition),
            table: Table::new(Arc::clone(&self.spec))?,
            ready: VecDeque::new(),
            is_done: false,
            batch_rows: context.session_config().batch_size().max(1),
            reservation,
            metrics,
        };
        let batches = futures::stream::try_unfold(aggregation, Aggregation::next);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.spec.schema), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.spec.schema)))
    }
}

/// The aggregation of one partition.
struct Aggregation {
    rows: IdRows,
    table: Table,
    /// What goes out next.
    ready: VecDeque<RecordBatch>,
    is_done: bool,
    batch_rows: usize,
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
}

impl Aggregation {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.metrics.record_output(batch.num_rows());
                return Ok(Some((batch, self)));
            }
            if self.is_done {
                return Ok(None);
            }
            let batch = self.rows.next().await?;
            let elapsed = self.metrics.elapsed_compute().clone();
            let timer = elapsed.timer();
            match batch {
                Some(batch) => self.add(&batch)?,
                None => {
                    self.is_done = true;
                    self.hand_out()?;
                }
            }
            timer.done();
        }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.table.add(batch, self.rows.ids()[0].count())?;
        let ids: usize = self.rows.ids().iter().map(|ids| ids.bytes()).sum();
        let refused = self.reservation.try_resize(self.table.bytes() + ids).is_err();
        if refused || self.table.groups >= MOST_GROUPS {
            self.hand_out()?;
        }
        Ok(())
    }

    /// Makes ready what is there, and begins anew.
    fn hand_out(&mut self) -> Result<()> {
        for batch in self.rows.rest()? {
            self.table.add(&batch, self.rows.ids()[0].count())?;
        }
        let texts: Vec<ArrayRef> = self.rows.ids().iter_mut().map(|ids| ids.take()).collect();
        let new = Table::new(Arc::clone(&self.table.spec))?;
        let groups = std::mem::replace(&mut self.table, new).finish(&texts)?;
        self.reservation.free();
        // Whoever merges groups has to hold all of a batch, in which none is there twice.
        let rows = groups.num_rows();
        let row_bytes = groups.get_array_memory_size() / rows.max(1) + 1;
        let most = (BATCH_BYTES / row_bytes).clamp(1, self.batch_rows);
        let slice = |first| groups.slice(first, most.min(rows - first));
        self.ready.extend((0..rows).step_by(most).map(slice));
        Ok(())
    }
}

/// The groups met so far.
struct Table {
    spec: Arc<Spec>,
    /// Of the keys before and each text from the second on, and then of these and the integers.
    pairs: Vec<Pairs>,
    groups: usize,
    accumulators: Accumulators,
    /// Of the batch at hand, kept for their memory.
    numbers: Vec<u32>,
    places: Vec<i64>,
    group_of_row: Vec<usize>,
}

impl Table {
    fn new(spec: Arc<Spec>) -> Result<Self> {
        let Keys { texts, integers, .. } = &spec.keys;
        let pairs = texts.len() - 1 + usize::from(!integers.is_empty());
        Ok(Self {
            pairs: std::iter::repeat_with(Pairs::default).take(pairs).collect(),
            groups: 0,
            accumulators: Accumulators::new(&spec.functions)?,
            numbers: Vec::new(),
            places: Vec::new(),
            group_of_row: Vec::new(),
            spec,
        })
    }

    /// Adds rows, by the numbers of their texts; there are so many `firsts` of the first one.
    fn add(&mut self, batch: &RecordBatch, firsts: usize) -> Result<()> {
        let Keys { columns, texts, integers, .. } = &self.spec.keys;
        let batch = &batch.project(columns)?;
        let ids = |column: usize| batch.column(column).as_primitive::<UInt32Type>().values();
        self.numbers.clear();
        self.numbers.extend_from_slice(ids(texts[0]));
        let mut pairs = self.pairs.iter_mut();
        for (column, pairs) in texts[1..].iter().zip(&mut pairs) {
            pairs.number(&mut self.numbers, ids(*column).iter().copied());
        }
        if let Some(pairs) = pairs.next() {
            place_of(integers, batch, &mut self.places)?;
            if self.places.iter().any(|place| u32::try_from(*place).is_err()) {
                return Err(external(internal("a value lies outside its column's range")));
            }
            pairs.number(&mut self.numbers, self.places.iter().map(|place| *place as u32));
        }
        self.groups = self.pairs.last().map_or(firsts, Pairs::count);
        if !self.accumulators.is_empty() {
            self.group_of_row.clear();
            self.group_of_row.extend(self.numbers.iter().map(|number| *number as usize));
            self.accumulators.update(&self.spec.functions, batch, &self.group_of_row, self.groups)?;
        }
        Ok(())
    }

    /// Memory, in bytes.
    fn bytes(&self) -> usize {
        self.accumulators.bytes()
            + self.pairs.iter().map(Pairs::bytes).sum::<usize>()
            + self.numbers.capacity() * size_of::<u32>()
            + self.places.capacity() * size_of::<i64>()
            + self.group_of_row.capacity() * size_of::<usize>()
    }

    /// The keys and states of all groups, of texts by their numbers.
    fn finish(mut self, texts: &[ArrayRef]) -> Result<RecordBatch> {
        let Keys { integers, order, .. } = &self.spec.keys;
        // From the last pair to the first: what is second is a key, what is first a pair, or the first text.
        let mut seconds = Vec::with_capacity(self.pairs.len());
        let mut firsts: Vec<u32> = (0..self.groups as u32).collect();
        for pairs in self.pairs.iter().rev() {
            let (before, second): (Vec<u32>, Vec<u32>) =
                firsts.iter().map(|number| pairs.pair(*number as usize)).unzip();
            seconds.push(second);
            firsts = before;
        }
        let is_integer = |key: &&(&Key, DataType)| matches!(key.0, Key::Integer(_));
        let fields = self.spec.schema.fields().iter().map(|field| field.data_type().clone());
        let keys: Vec<(&Key, DataType)> = order.iter().zip(fields).collect();
        let integers = match integers.is_empty() {
            true => Vec::new(),
            false => {
                let types: Vec<DataType> = keys.iter().filter(is_integer).map(|key| key.1.clone()).collect();
                unpack(integers, &seconds.remove(0), &types)?
            }
        };
        seconds.push(firsts);
        seconds.reverse();
        let text = |at: usize| match self.pairs.is_empty() {
            true => Ok(Arc::clone(&texts[at])),
            false => Ok(take(&texts[at], &UInt32Array::from(seconds[at].clone()), None)?),
        };
        let column = |key: &Key| match *key {
            Key::Text(at) => text(at),
            Key::Integer(at) => Ok(Arc::clone(&integers[at])),
        };
        let mut columns: Vec<ArrayRef> = order.iter().map(column).collect::<Result<_>>()?;
        columns.extend(self.accumulators.states()?);
        let options = RecordBatchOptions::new().with_row_count(Some(self.groups));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.spec.schema), columns, &options)?)
    }
}
