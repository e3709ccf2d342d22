//! From a bound statement to a plan that can be run on any snapshot, again and again.
//!
//! `prepare` makes the plan; the first run optimizes it with the statistics of its snapshot
//! and keeps the optimized plan, parameters still open. The plan is optimized anew when a table
//! it reads has grown or shrunk so much that another join order may be better.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, TableId, Value};
use albireo_semantics::expr::{VariableId, given};
use albireo_semantics::query::SelectPlan;
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, ParamValues, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, TableSource, Volatility};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::optimizer::OptimizerRule;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer};
use parking_lot::Mutex;

use crate::engine::{Olap, Shared};
use crate::errors::to_sql_error;
use crate::lower::{self, Lowered};
use crate::optimize::{self, without_misleading_keys};
use crate::output::{OPEN_RESULT, OutputColumn};
use crate::relation::{Relation, Relations, Snapshot};
use crate::scan::provider::SnapshotTable;
use crate::spool;
use crate::types::{result_type, sql_type};
use crate::values::{self, numeric};

/// A statement with its cached plan. Shared by any number of concurrent runs.
#[derive(Debug)]
pub struct Prepared {
    plan: CachedPlan,
    columns: Vec<OutputColumn>,
    parameter_types: Vec<Option<SqlType>>,
    /// Whether each run must fold constants anew: parameters, or functions of the time.
    binds: bool,
    /// Whether files are read.
    reads_files: bool,
    /// The types of parameters as the bound form has them.
    bound_types: Vec<Option<Type>>,
    relations: Vec<Arc<Relation>>,
    /// By relation: the columns that some run may read.
    columns_read: Vec<Vec<ColumnId>>,
    catalog_version: u64,
    /// What is computed before, in this order: plans whose columns are parameters of those behind them.
    once: Vec<CachedPlan>,
}

/// A plan, and how it was optimized last.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    analyzed: LogicalPlan,
    optimized: Mutex<Option<Arc<OptimizedPlan>>>,
}

impl CachedPlan {
    fn new(analyzed: LogicalPlan) -> Self {
        Self { analyzed, optimized: Mutex::new(None) }
    }
}

#[derive(Debug)]
struct OptimizedPlan {
    plan: LogicalPlan,
    /// Rows of each relation when the plan was made.
    rows: Vec<(TableId, u64)>,
    /// Whether constants are to be folded once the parameters are in.
    folds: bool,
}

/// A plan to put parameters in.
pub(crate) struct Optimized {
    plan: LogicalPlan,
    folds: bool,
}

impl Optimized {
    /// The same with all parameters behind the first `known` as calls of functions that stand for them.
    pub(crate) fn left_open(self, known: usize) -> Result<Self, SqlError> {
        let plan = lower::left_open(self.plan, known).map_err(|e| to_sql_error(&e))?;
        Ok(Self { plan, folds: self.folds })
    }
}

impl Prepared {
    /// The result's columns.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// The types of the parameters, as they were given.
    pub fn parameter_types(&self) -> &[Option<SqlType>] {
        &self.parameter_types
    }

    /// Whether it reads files: which they are, and their columns, was found out when it was prepared.
    pub fn reads_files(&self) -> bool {
        self.reads_files
    }

    /// The columns as a stream has them: batches leave before all values are known, so a NUMERIC of any scale is
    /// text with the digits of each value.
    pub(crate) fn streamed(&self) -> Vec<OutputColumn> {
        let fields = self.plan.analyzed.schema().fields();
        let column = |(column, field): (&OutputColumn, &FieldRef)| match *field.data_type() == numeric::OPEN {
            true => OutputColumn { arrow: DataType::Utf8View, ..column.clone() },
            false => column.clone(),
        };
        self.columns.iter().zip(fields).map(column).collect()
    }

    /// The relations the query reads.
    pub fn relations(&self) -> &[Arc<Relation>] {
        &self.relations
    }

    /// The relations and which of their columns some run may read, for its rows or its statistics.
    pub fn reads(&self) -> impl Iterator<Item = (&Relation, &[ColumnId])> {
        self.relations.iter().map(|relation| &**relation).zip(self.columns_read.iter().map(Vec::as_slice))
    }

    /// The version of the catalog the statement was prepared with.
    pub fn catalog_version(&self) -> u64 {
        self.catalog_version
    }

    /// The plan of the result.
    pub(crate) fn plan(&self) -> &CachedPlan {
        &self.plan
    }

    /// The plans that are run before, in this order.
    pub(crate) fn once(&self) -> &[CachedPlan] {
        &self.once
    }

    /// A plan optimized for this snapshot, from the cache if it still serves.
    pub(crate) fn optimized(
        &self,
        plan: &CachedPlan,
        shared: &Shared,
        snapshot: &Arc<dyn Snapshot>,
    ) -> Result<Optimized, SqlError> {
        let rows = self.row_counts(&**snapshot)?;
        let known = plan.optimized.lock().clone();
        if let Some(known) = known
            && known.rows.iter().zip(&rows).all(|(then, now)| plan_still_serves(then.1, now.1))
        {
            return Ok(Optimized { plan: known.plan.clone(), folds: known.folds });
        }
        let best =
            optimize::optimize(shared, snapshot, plan.analyzed.clone()).map_err(|e| to_sql_error(&e))?;
        let folds = folds(&best).map_err(|e| to_sql_error(&e))?;
        *plan.optimized.lock() = Some(Arc::new(OptimizedPlan { plan: best.clone(), rows, folds }));
        Ok(Optimized { plan: best, folds })
    }

    fn row_counts(&self, snapshot: &dyn Snapshot) -> Result<Vec<(TableId, u64)>, SqlError> {
        let count = |relation: &Arc<Relation>| match snapshot.relation(relation.id) {
            Some(data) => Ok((relation.id, data.row_count())),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist in this snapshot", relation.name),
            )),
        };
        self.relations.iter().map(count).collect()
    }

    /// The parameters' values as plans take them.
    pub(crate) fn arguments(&self, parameters: &[Value]) -> Result<Vec<ScalarValue>, SqlError> {
        if parameters.len() != self.parameter_types.len() {
            let message = format!(
                "the statement has {} parameters, but {} were given",
                self.parameter_types.len(),
                parameters.len()
            );
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
        }
        let typed = parameters.iter().zip(&self.bound_types);
        typed.map(|(value, ty)| argument(value, ty.as_ref())).collect()
    }

    /// An optimized plan with values of its parameters and the time of the run put in.
    pub(crate) fn bind(
        &self,
        optimized: Optimized,
        arguments: &[ScalarValue],
        state: &SessionState,
    ) -> Result<LogicalPlan, SqlError> {
        let Optimized { plan, folds } = optimized;
        if !self.binds {
            return Ok(plan);
        }
        let bound = plan.replace_params_with_values(&ParamValues::from(arguments.to_vec()));
        let bound = if folds { bound.and_then(|plan| fold(plan, state)) } else { bound };
        bound.map_err(|e| to_sql_error(&e))
    }
}

/// Whether a plan has anything to fold once its parameters are values: not if each parameter is
/// compared with a column as it is, which is what most statements do.
fn folds(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| match e {
                Expr::BinaryExpr(b) if is_comparison(b.op) => match (&*b.left, &*b.right) {
                    (Expr::Column(_), Expr::Placeholder(_)) | (Expr::Placeholder(_), Expr::Column(_)) => {
                        Ok(TreeNodeRecursion::Jump)
                    }
                    _ => Ok(TreeNodeRecursion::Continue),
                },
                Expr::Placeholder(_) => {
                    found = true;
                    Ok(TreeNodeRecursion::Stop)
                }
                Expr::ScalarFunction(f) if f.func.signature().volatility == Volatility::Stable => {
                    found = true;
                    Ok(TreeNodeRecursion::Stop)
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(found)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn fold(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan, DataFusionError> {
    // A sort that is to return no row panics, so a LIMIT that turns out to be 0 has to go.
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> =
        vec![Arc::new(SimplifyExpressions::new()), Arc::new(EliminateLimit::new())];
    Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})
}

/// A plan is kept until a table is more than half larger or smaller than it was.
fn plan_still_serves(then: u64, now: u64) -> bool {
    now.abs_diff(then) <= then / 2 + 1024
}

/// A parameter's value as a literal of the type that the statement was bound with.
fn argument(value: &Value, ty: Option<&Type>) -> Result<ScalarValue, SqlError> {
    let Some((ty, arrow)) = ty.and_then(|ty| Some((ty, values::arrow_of(ty)?))) else {
        return Ok(ScalarValue::Null);
    };
    let datum = given(value, ty)?;
    let array = values::array_of(std::slice::from_ref(&datum), &arrow)?;
    ScalarValue::try_from_array(&array, 0).map_err(|e| to_sql_error(&e))
}

impl Olap {
    /// Makes the plan of a bound query. `parameters` are the types of `$1`, `$2`, ..., with what the bound
    /// form calls them.
    ///
    /// # Errors
    /// 0A000 for what has no plan here.
    pub fn prepare(
        &self,
        relations: &Arc<dyn Relations>,
        query: &SelectPlan,
        parameters: &[(VariableId, Option<Type>)],
    ) -> Result<Arc<Prepared>, SqlError> {
        let (engine, relations) = (self.clone(), Arc::clone(relations));
        let (query, parameters) = (query.clone(), parameters.to_vec());
        // On a thread of ours: its stack is deep enough for any statement the parser lets pass.
        self.plan(async move {
            let prepared = prepare(&engine.shared, &*relations, &query, &parameters);
            prepared.map(Arc::new).map_err(|e| to_sql_error(&e))
        })
    }

    /// Forgets what is known about a dropped table.
    pub fn forget(&self, table: TableId) {
        self.shared.caches.forget(table);
    }
}

fn prepare(
    shared: &Shared,
    relations: &dyn Relations,
    query: &SelectPlan,
    parameters: &[(VariableId, Option<Type>)],
) -> Result<Prepared, DataFusionError> {
    let numbered = parameters.iter().enumerate();
    let known = numbered.filter_map(|(at, (id, ty))| Some((*id, (at, ty.clone()?)))).collect();
    let Lowered { plan, relations: read, reads_files, once } =
        lower::lower(shared, relations, query, &known, parameters.len())?;
    lower::take_nodes(&plan)?;
    once.iter().try_for_each(lower::take_nodes)?;
    let analyzed = analyze(plan, shared.options())?;
    let once = once.into_iter().map(|plan| analyze(plan, shared.options()));
    let once: Vec<LogicalPlan> = once.collect::<Result<_, _>>()?;
    let mut time = depends_on_time(&analyzed)?;
    for plan in &once {
        time |= depends_on_time(plan)?;
    }
    let types: Vec<Option<Type>> = parameters.iter().map(|(_, ty)| ty.clone()).collect();
    Ok(Prepared {
        binds: !types.is_empty() || !once.is_empty() || time,
        columns: bound_columns(&analyzed, query)?,
        columns_read: columns_scanned(std::iter::once(&analyzed).chain(&once), &read)?,
        plan: CachedPlan::new(analyzed),
        once: once.into_iter().map(CachedPlan::new).collect(),
        parameter_types: types.iter().map(|ty| ty.as_ref().and_then(sql_type_of)).collect(),
        bound_types: types,
        reads_files,
        relations: read,
        catalog_version: relations.version(),
    })
}

/// Makes a lowered plan, whose types are settled, one that DataFusion can optimize.
fn analyze(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan, DataFusionError> {
    let rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(TypeCoercion::new())];
    let plan = Analyzer::with_rules(rules).execute_and_check(plan, options, |_, _| {})?;
    without_misleading_keys(plan)
}

/// The type of a parameter, if it has one without a scale of its own.
fn sql_type_of(ty: &Type) -> Option<SqlType> {
    match ty {
        Type::Scalar(Scalar::Numeric { .. } | Scalar::Interval) => None,
        _ => sql_type(&values::arrow_of(ty)?),
    }
}

/// The result's columns. A NUMERIC has the precision of its column, or the highest if it is computed; one of any
/// scale has, until a run knows better, the least that a quotient has.
fn bound_columns(plan: &LogicalPlan, query: &SelectPlan) -> Result<Vec<OutputColumn>, DataFusionError> {
    let fields = plan.schema().fields().iter().zip(&query.columns).enumerate();
    let columns = fields.map(|(at, (field, (name, _)))| {
        let arrow = match (field.data_type(), query.declared(at)) {
            (ty, _) if *ty == numeric::OPEN => OPEN_RESULT,
            (DataType::Decimal128(_, scale), Some(SqlType::Decimal { precision, scale: declared }))
                if *scale == declared as i8 =>
            {
                DataType::Decimal128(precision, *scale)
            }
            (DataType::Decimal128(_, scale), _) => DataType::Decimal128(38, *scale),
            // Arrays and rows are given as their texts, as on the transactional path.
            (ty, _) if ty.is_nested() => DataType::Utf8View,
            (ty, _) => result_type(ty),
        };
        Ok(OutputColumn { name: name.clone(), ty: sql_type(&arrow), arrow })
    });
    columns.collect()
}

/// The columns that the scans of lowered plans may read; there each has a name of its own.
fn columns_scanned<'p>(
    plans: impl Iterator<Item = &'p LogicalPlan>,
    relations: &[Arc<Relation>],
) -> Result<Vec<Vec<ColumnId>>, DataFusionError> {
    let mut names = HashSet::new();
    let mut scans = Vec::new();
    for plan in plans {
        scans_and_names(plan, &mut scans, &mut names)?;
    }
    let mut read = vec![BTreeSet::new(); relations.len()];
    for source in scans {
        let provider = source_as_provider(&source)?;
        let Some(table) = provider.downcast_ref::<SnapshotTable>() else { continue };
        let Some(at) = relations.iter().position(|relation| relation.id == table.relation.id) else {
            continue;
        };
        let columns = (0..).map(ColumnId).zip(&table.relation.columns);
        read[at].extend(columns.filter(|(_, column)| names.contains(&column.name)).map(|(id, _)| id));
    }
    Ok(read.into_iter().map(|columns| columns.into_iter().collect()).collect())
}

/// The sources that a plan scans, and the names of all columns in its expressions.
fn scans_and_names(
    plan: &LogicalPlan,
    scans: &mut Vec<Arc<dyn TableSource>>,
    names: &mut HashSet<String>,
) -> Result<(), DataFusionError> {
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.push(Arc::clone(&scan.source));
        }
        spool::add_names(node, names)
    })?;
    Ok(())
}

/// Whether the plan calls functions whose value is fixed only when it runs (`now()`).
fn depends_on_time(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                if let Expr::ScalarFunction(f) = e {
                    found |= f.func.signature().volatility == Volatility::Stable;
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}
