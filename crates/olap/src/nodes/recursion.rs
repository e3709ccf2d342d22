//! WITH RECURSIVE: a query that is repeated over the rows of its last round until a round gives none.
//!
//! Responsible for: the rounds, their memory, rows that must come once. The rows of the last round lie in a
//! *working table* that the execution plans of both nodes share; a logical plan holds no rows.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning,
    PlanProperties,
};
use futures::StreamExt;
use parking_lot::Mutex;

use crate::context::QueryContext;
use crate::errors::{cancelled, external, from_arrow, internal};

/// The rows of the last round.
type Table = Arc<Mutex<Vec<RecordBatch>>>;

/// The logical node of the rows of the last round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Working {
    /// Of which recursion.
    id: u32,
    schema: DFSchemaRef,
}

impl Working {
    /// A plan that reads them.
    pub(crate) fn plan(id: u32, schema: DFSchemaRef) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { id, schema }) })
    }
}

impl PartialOrd for Working {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.id.partial_cmp(&other.id)
    }
}

impl UserDefinedLogicalNodeCore for Working {
    fn name(&self) -> &str {
        "Working"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Working: {}", self.id)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, _: Vec<LogicalPlan>) -> Result<Self> {
        Ok(self.clone())
    }
}

/// The logical node of a recursion.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Recursion {
    id: u32,
    begins: LogicalPlan,
    repeats: LogicalPlan,
    /// The columns in which rows must differ, if each row comes once.
    distinct: Option<Vec<usize>>,
    schema: DFSchemaRef,
}

/// The same columns, each of which may be NULL.
pub(crate) fn nullable(schema: &DFSchema) -> Result<DFSchema> {
    let fields = schema
        .iter()
        .map(|(qualifier, field)| (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true))));
    DFSchema::new_with_metadata(fields.collect(), Default::default())
}

impl Recursion {
    /// A plan of all rows that `begins` and all rounds of `repeats` give; both have the same types.
    pub(crate) fn plan(
        id: u32,
        begins: LogicalPlan,
        repeats: LogicalPlan,
        distinct: Option<Vec<usize>>,
    ) -> Result<LogicalPlan> {
        let node = Arc::new(Self::new(id, begins, repeats, distinct)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn new(id: u32, begins: LogicalPlan, repeats: LogicalPlan, distinct: Option<Vec<usize>>) -> Result<Self> {
        // What begins may be a constant, and NULL later.
        let schema = Arc::new(nullable(begins.schema())?);
        Ok(Self { id, begins, repeats, distinct, schema })
    }
}

impl PartialOrd for Recursion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.id.partial_cmp(&other.id)
    }
}

impl UserDefinedLogicalNodeCore for Recursion {
    fn name(&self) -> &str {
        "Recursion"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.begins, &self.repeats]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recursion: {}, distinct={}", self.id, self.distinct.is_some())
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.pop()) {
            (Some(repeats), Some(begins)) => Self::new(self.id, begins, repeats, self.distinct.clone()),
            _ => Err(external(internal("a recursion has two inputs"))),
        }
    }
}

fn properties(schema: &SchemaRef) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// The execution plan of the rows of the last round.
#[derive(Debug)]
pub(crate) struct WorkingExec {
    id: u32,
    table: Table,
    properties: Arc<PlanProperties>,
}

impl WorkingExec {
    pub(super) fn new(node: &Working) -> Self {
        Self { id: node.id, table: Table::default(), properties: properties(node.schema.inner()) }
    }
}

impl DisplayAs for WorkingExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkingExec: {}", self.id)
    }
}

impl ExecutionPlan for WorkingExec {
    fn name(&self) -> &str {
        "WorkingExec"
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
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let of = Arc::clone(&schema);
        let batches = self.table.lock().clone();
        let named = move |batch: RecordBatch| renamed(&batch, &of);
        let stream = futures::stream::iter(batches.into_iter().map(named));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// The same columns by other names.
fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().iter().take(schema.fields().len()).cloned().collect();
    let renamed = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
    renamed.map_err(|e| external(from_arrow(&e)))
}

/// The execution plan of a recursion.
#[derive(Debug)]
pub(crate) struct RecursionExec {
    begins: Arc<dyn ExecutionPlan>,
    repeats: Arc<dyn ExecutionPlan>,
    distinct: Option<Vec<usize>>,
    table: Table,
    properties: Arc<PlanProperties>,
}

impl RecursionExec {
    pub(super) fn new(
        node: &Recursion,
        begins: &Arc<dyn ExecutionPlan>,
        repeats: &Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let table = Table::default();
        let shared = Arc::clone(repeats).transform_down(|plan| {
            Ok(match plan.downcast_ref::<WorkingExec>() {
                Some(working) if working.id == node.id => {
                    let (table, properties) = (Arc::clone(&table), Arc::clone(&working.properties));
                    Transformed::yes(Arc::new(WorkingExec { id: node.id, table, properties }) as _)
                }
                _ => Transformed::no(plan),
            })
        })?;
        let properties = properties(node.schema.inner());
        let (begins, repeats) = (Arc::clone(begins), shared.data);
        Ok(Self { begins, repeats, distinct: node.distinct.clone(), table, properties })
    }
}

impl DisplayAs for RecursionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecursionExec: distinct={}", self.distinct.is_some())
    }
}

impl ExecutionPlan for RecursionExec {
    fn name(&self) -> &str {
        "RecursionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.begins, &self.repeats]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
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
        let (Some(repeats), Some(begins)) = (children.pop(), children.pop()) else {
            return Err(external(internal("a recursion has two inputs")));
        };
        let Self { distinct, table, properties, .. } = &*self;
        let (distinct, table, properties) = (distinct.clone(), Arc::clone(table), Arc::clone(properties));
        Ok(Arc::new(Self { begins, repeats, distinct, table, properties }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let pool = context.memory_pool();
        let rounds = Rounds {
            query: context.session_config().get_extension::<QueryContext>(),
            input: self.begins.execute(0, Arc::clone(&context))?,
            repeats: Arc::clone(&self.repeats),
            table: Arc::clone(&self.table),
            found: Vec::new(),
            seen: self.distinct.as_ref().map(|columns| Seen::new(columns, &schema)).transpose()?,
            memory: MemoryConsumer::new("rows of a round").register(pool),
            schema: Arc::clone(&schema),
            context,
        };
        let stream = futures::stream::try_unfold(rounds, |mut rounds| async move {
            Ok(rounds.next().await?.map(|batch| (batch, rounds)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// A running recursion.
struct Rounds {
    query: Option<Arc<QueryContext>>,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    /// The round that runs.
    input: SendableRecordBatchStream,
    repeats: Arc<dyn ExecutionPlan>,
    table: Table,
    /// What this round has given so far.
    found: Vec<RecordBatch>,
    seen: Option<Seen>,
    memory: MemoryReservation,
}

impl Rounds {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.query.as_ref().is_some_and(|query| query.is_cancelled()) {
                return Err(external(cancelled()));
            }
            if let Some(batch) = self.input.next().await.transpose()? {
                let mut batch = renamed(&batch, &self.schema)?;
                if let Some(seen) = &mut self.seen {
                    batch = seen.new_rows(&batch, &mut self.memory)?;
                }
                if batch.num_rows() == 0 {
                    continue;
                }
                self.memory.try_grow(batch.get_array_memory_size())?;
                self.found.push(batch.clone());
                return Ok(Some(batch));
            }
            if self.found.is_empty() {
                self.table.lock().clear();
                return Ok(None);
            }
            let last = std::mem::replace(&mut *self.table.lock(), std::mem::take(&mut self.found));
            self.memory.shrink(last.iter().map(RecordBatch::get_array_memory_size).sum());
            let repeats = reset_plan_states(Arc::clone(&self.repeats))?;
            self.input = repeats.execute(0, Arc::clone(&self.context))?;
        }
    }
}

/// The rows that have come.
struct Seen {
    columns: Vec<usize>,
    converter: RowConverter,
    rows: HashSet<Box<[u8]>>,
}

impl Seen {
    fn new(columns: &[usize], schema: &SchemaRef) -> Result<Self> {
        let field = |at: &usize| SortField::new(schema.field(*at).data_type().clone());
        let converter = RowConverter::new(columns.iter().map(field).collect())?;
        Ok(Self { columns: columns.to_vec(), converter, rows: HashSet::new() })
    }

    /// The rows of a batch that have not come before.
    fn new_rows(&mut self, batch: &RecordBatch, memory: &mut MemoryReservation) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let rows = self.converter.convert_columns(&columns)?;
        let mut taken = 0;
        let is_new = rows.iter().map(|row| {
            let new = self.rows.insert(Box::from(row.as_ref()));
            // About what the set keeps beside the bytes.
            taken += if new { row.as_ref().len() + 48 } else { 0 };
            Some(new)
        });
        let is_new: BooleanArray = is_new.collect();
        memory.try_grow(taken)?;
        filter_record_batch(batch, &is_new).map_err(|e| external(from_arrow(&e)))
    }
}
