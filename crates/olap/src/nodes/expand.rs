//! Each row several times: once for each value of a series, or element of an array, that its arguments are.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use albireo_base::SqlError;
use albireo_semantics::datum::Datum;
use albireo_semantics::query::series::Series;
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;

use crate::context::QueryContext;
use crate::errors::{cancelled, external, from_arrow, internal};
use crate::values::{array_of, datum_at};

/// What makes the values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    /// `generate_series` of the arguments.
    Series,
    /// The elements of the one argument.
    Elements,
}

/// The logical node. The values are its last column.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Expand {
    input: LogicalPlan,
    source: Source,
    pub(crate) args: Vec<Expr>,
    /// The name of the column.
    name: String,
    ty: DataType,
    schema: DFSchemaRef,
}

impl Expand {
    /// A plan whose rows are those of `input`, each once for each value, and the values in column `name`.
    pub(crate) fn plan(
        input: LogicalPlan,
        source: Source,
        args: Vec<Expr>,
        name: String,
        ty: DataType,
    ) -> Result<LogicalPlan> {
        let node = Arc::new(Self::new(input, source, args, name, ty)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn new(input: LogicalPlan, source: Source, args: Vec<Expr>, name: String, ty: DataType) -> Result<Self> {
        let fields = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let value = (None, Arc::new(Field::new(&name, ty.clone(), true)));
        let schema = DFSchema::new_with_metadata(fields.chain([value]).collect(), Default::default())?;
        Ok(Self { input, source, args, name, ty, schema: Arc::new(schema) })
    }
}

impl PartialOrd for Expand {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Expand {
    fn name(&self) -> &str {
        "Expand"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.args.clone()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::from([self.name.clone()])
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        write!(f, "Expand: {:?}({})", self.source, args.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return Err(external(internal("an expansion has an input"))) };
        Self::new(input, self.source, exprs, self.name.clone(), self.ty.clone())
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let own = self.schema.fields().len() - 1;
        Some(vec![columns.iter().copied().filter(|column| *column < own).collect()])
    }
}

/// The execution plan.
#[derive(Debug)]
pub(crate) struct ExpandExec {
    input: Arc<dyn ExecutionPlan>,
    source: Source,
    args: Vec<Arc<dyn PhysicalExpr>>,
    ty: DataType,
    batch_rows: usize,
    properties: Arc<PlanProperties>,
}

impl ExpandExec {
    pub(super) fn new(
        node: &Expand,
        args: Vec<Arc<dyn PhysicalExpr>>,
        input: Arc<dyn ExecutionPlan>,
        batch_rows: usize,
    ) -> Self {
        let schema: SchemaRef = Arc::clone(node.schema.inner());
        let properties = properties(&schema, &input);
        Self { input, source: node.source, args, ty: node.ty.clone(), batch_rows, properties }
    }
}

fn properties(schema: &SchemaRef, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let partitions = input.properties().partitioning.partition_count();
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for ExpandExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        write!(f, "ExpandExec: {:?}({})", self.source, args.join(", "))
    }
}

impl ExecutionPlan for ExpandExec {
    fn name(&self) -> &str {
        "ExpandExec"
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
        for expr in &self.args {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else {
            return Err(external(internal("an expansion has an input")));
        };
        let properties = properties(&self.schema(), &input);
        let Self { source, args, ty, batch_rows, .. } = &*self;
        let (args, ty) = (args.clone(), ty.clone());
        Ok(Arc::new(Self { input, source: *source, args, ty, batch_rows: *batch_rows, properties }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::ChildrenPropertiesMode;
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let expansion = Expansion {
            query: context.session_config().get_extension::<QueryContext>(),
            source: self.source,
            args: self.args.clone(),
            ty: self.ty.clone(),
            batch_rows: self.batch_rows,
            schema: Arc::clone(&schema),
            input: self.input.execute(partition, context)?,
            batch: None,
        };
        let stream = futures::stream::try_unfold(expansion, |mut expansion| async move {
            Ok(expansion.next().await?.map(|batch| (batch, expansion)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// A running expansion.
struct Expansion {
    query: Option<Arc<QueryContext>>,
    source: Source,
    args: Vec<Arc<dyn PhysicalExpr>>,
    ty: DataType,
    batch_rows: usize,
    schema: SchemaRef,
    input: SendableRecordBatchStream,
    batch: Option<Current>,
}

/// The rows that are being expanded.
struct Current {
    batch: RecordBatch,
    args: Vec<ArrayRef>,
    row: usize,
    /// What is left of the row's values, once it has begun.
    values: Option<Values>,
}

enum Values {
    Series(Series),
    Elements(VecDeque<Datum>),
}

impl Values {
    fn next(&mut self) -> std::result::Result<Option<Datum>, SqlError> {
        match self {
            Self::Series(series) => series.next().transpose(),
            Self::Elements(elements) => Ok(elements.pop_front()),
        }
    }
}

impl Expansion {
    /// The next rows.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.query.as_ref().is_some_and(|query| query.is_cancelled()) {
                return Err(external(cancelled()));
            }
            let Some(current) = &mut self.batch else {
                let Some(batch) = self.input.next().await.transpose()? else { return Ok(None) };
                let args = self.args.iter().map(|arg| arg.evaluate(&batch)?.into_array(batch.num_rows()));
                let args = args.collect::<Result<_>>()?;
                self.batch = Some(Current { batch, args, row: 0, values: None });
                continue;
            };
            let (rows, values) = current.fill(self.source, self.batch_rows).map_err(external)?;
            if values.is_empty() {
                self.batch = None;
                continue;
            }
            let rows = UInt32Array::from(rows);
            let columns = current.batch.columns().iter().map(|column| take(column, &rows, None));
            let mut columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            columns.push(array_of(&values, &self.ty).map_err(external)?);
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
            return batch.map(Some).map_err(|e| external(from_arrow(&e)));
        }
    }
}

impl Current {
    /// The next values, at most `most`, and the rows that they belong to.
    fn fill(&mut self, source: Source, most: usize) -> std::result::Result<(Vec<u32>, Vec<Datum>), SqlError> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        while self.row < self.batch.num_rows() && values.len() < most {
            let made = match &mut self.values {
                Some(made) => made,
                None => self.values.insert(begun(source, &self.args, self.row)?),
            };
            match made.next()? {
                Some(value) => {
                    rows.push(self.row as u32);
                    values.push(value);
                }
                None => {
                    self.values = None;
                    self.row += 1;
                }
            }
        }
        Ok((rows, values))
    }
}

/// The values of a row.
fn begun(source: Source, args: &[ArrayRef], row: usize) -> std::result::Result<Values, SqlError> {
    let args: Vec<Datum> =
        args.iter().map(|arg| datum_at(arg.as_ref(), row)).collect::<std::result::Result<_, _>>()?;
    Ok(match (source, args.as_slice()) {
        (Source::Series, args) => Values::Series(Series::new(args)?),
        (Source::Elements, [Datum::Array(array)]) => Values::Elements(array.items.iter().cloned().collect()),
        (Source::Elements, _) => Values::Elements(VecDeque::new()),
    })
}
