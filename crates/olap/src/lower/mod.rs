//! From the bound form of a query to DataFusion's logical plan.
//!
//! Responsible for: one plan for a whole bound query (`query`, `select`, `from`, `group`, `window`, `sets`),
//! its scalar expressions (`expr`), which are vectorised where that computes the same and else run row by
//! row (`kernel`), and queries inside expressions as joins (`subquery`). Not responsible for: names and types
//! (`albireo_semantics`), the order of joins and all else that an optimizer does ([`crate::optimize`]).
//!
//! **Invariant:** every column of a plan has a name that no other column of it has, whatever its qualifier:
//! nothing can be taken for another column of the same name.
//! **Invariant:** what a plan computes is what the interpreter computes of the same bound form, value,
//! type and SQLSTATE. The tests `expressions_mean_the_same_on_every_path_but_for_what_is_listed` and
//! `correlated` of the engine hold it.
//!
//! Paper for subqueries: Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015.

mod checks;
mod expr;
mod free;
mod from;
mod group;
mod kernel;
mod keys;
mod once;
mod outer;
mod query;
mod recursion;
mod scaled;
mod select;
mod sets;
mod spools;
mod subquery;
mod whole;
mod window;
mod windowed;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::SqlError;
use albireo_semantics::expr::{ColumnRef, VariableId};
use albireo_semantics::query::SelectPlan;
use albireo_semantics::types::Type;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, ExprSchema, Result};
use datafusion::logical_expr::expr_rewriter::replace_col;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder, SortExpr};

use crate::engine::Shared;
use crate::errors::external;
use crate::relation::{Relation, Relations};
use crate::spool::{SpoolId, with_spools};
use spools::Named;

pub(crate) use once::left_open;

/// The parameters of a statement: their numbers from 0, and their types.
pub(crate) type Parameters = HashMap<VariableId, (usize, Type)>;

/// A query as a plan.
pub(crate) struct Lowered {
    pub(crate) plan: LogicalPlan,
    /// The relations that it reads.
    pub(crate) relations: Vec<Arc<Relation>>,
    /// Whether it reads files.
    pub(crate) reads_files: bool,
    /// Plans of one row or none each, to be run before in this order; their columns are its parameters, behind
    /// those of the statement and of the plans before.
    pub(crate) once: Vec<LogicalPlan>,
}

/// Makes the plan of a bound query. Its columns come in the query's order, under names of ours.
///
/// # Errors
/// 0A000 for what has no plan; the planner's.
pub(crate) fn lower(
    shared: &Shared,
    relations: &dyn Relations,
    plan: &SelectPlan,
    parameters: &Parameters,
    parameter_count: usize,
) -> Result<Lowered> {
    let lowering = Lowering {
        shared,
        relations,
        parameters,
        used: RefCell::default(),
        reads_files: Cell::new(false),
        next: Cell::new(0),
        ctes: RefCell::default(),
        spools: RefCell::default(),
        repeating: Cell::new(false),
        next_parameter: Cell::new(parameter_count),
        once: RefCell::default(),
    };
    let rows = lowering.query(&plan.query, None)?;
    let outputs: Vec<Planned> =
        rows.outputs.into_iter().map(|column| Planned::Column(column).alias(lowering.name("out"))).collect();
    let plan = LogicalPlanBuilder::from(rows.plan).project(outputs)?.build()?;
    let plan = with_spools(lowering.spools.into_inner(), plan)?;
    let (relations, once) = (lowering.used.into_inner(), lowering.once.into_inner());
    Ok(Lowered { plan, relations, reads_files: lowering.reads_files.get(), once })
}

/// What all parts of one statement share while it is lowered.
struct Lowering<'a> {
    shared: &'a Shared,
    relations: &'a dyn Relations,
    parameters: &'a Parameters,
    used: RefCell<Vec<Arc<Relation>>>,
    reads_files: Cell<bool>,
    next: Cell<u32>,
    /// The queries of WITH in sight.
    ctes: RefCell<HashMap<u32, Named>>,
    /// What is computed once and read wherever it is used.
    spools: RefCell<Vec<(SpoolId, LogicalPlan)>>,
    /// Whether a part of a recursive query is lowered that is run again and again.
    repeating: Cell<bool>,
    /// The last parameter that is taken.
    next_parameter: Cell<usize>,
    /// Plans to be run before.
    once: RefCell<Vec<LogicalPlan>>,
}

/// A plan and which of its columns matter.
#[derive(Clone, Default)]
struct Rows {
    plan: LogicalPlan,
    /// The columns of the query's result.
    outputs: Vec<Column>,
    /// Of a query inside another one: for which row of that one a row is, as [`Domain::columns`] has it.
    keys: Vec<Column>,
    /// The order of its rows, over columns of the plan; none if they have none.
    order: Vec<SortExpr>,
}

/// The values of the columns around for which a query inside is to be computed.
struct Domain {
    /// Each combination once.
    plan: LogicalPlan,
    /// What the query inside calls them, and their columns.
    columns: Vec<(ColumnRef, Column)>,
}

/// The columns that expressions of one SELECT may name.
#[derive(Clone, Default)]
struct Level {
    /// By relation; those after the last of FROM are of groups and of windows.
    relations: Vec<Vec<Typed>>,
    /// Those of queries around.
    outer: HashMap<ColumnRef, Typed>,
    /// The results of queries in expressions, by the address of these.
    queries: HashMap<usize, Typed>,
}

impl Level {
    /// Makes columns others.
    fn replace(&mut self, new: &HashMap<&Column, &Column>) -> Result<()> {
        let own = self.relations.iter_mut().flatten();
        for (expr, _) in own.chain(self.outer.values_mut()).chain(self.queries.values_mut()) {
            *expr = replace_col(expr.clone(), new)?;
        }
        Ok(())
    }
}

impl Lowering<'_> {
    /// A name that nothing in the statement has.
    fn name(&self, from: &str) -> String {
        let number = self.next.get();
        self.next.set(number + 1);
        format!("{from}#{number}")
    }

    /// A new column of this name.
    fn column(&self, from: &str) -> Column {
        Column::new_unqualified(self.name(from))
    }
}

/// An expression and its Arrow type.
type Typed = (Planned, DataType);

/// Bytes of a plan's node with what rules make of it, of a column of a node, and of a node of an expression.
const NODE_BYTES: usize = 2048;
const COLUMN_BYTES: usize = 256;
const EXPR_BYTES: usize = 512;

/// Takes memory from the statement's budget.
fn take(bytes: usize) -> Result<()> {
    albireo_base::budget::take(bytes).map_err(external)
}

/// Takes the nodes of a plan from the statement's budget. They are counted as often as they can be reached: rules
/// copy what a plan shares.
pub(crate) fn take_nodes(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        take(NODE_BYTES + COLUMN_BYTES * node.schema().fields().len())?;
        node.apply_expressions(|expr| expr.apply(|_| take(EXPR_BYTES).map(|()| TreeNodeRecursion::Continue)))
    })?;
    Ok(())
}

/// What has no plan.
fn unsupported(what: impl std::fmt::Display) -> DataFusionError {
    external(SqlError::unsupported(what))
}

/// The Arrow type of a plan's column.
fn type_of(plan: &LogicalPlan, column: &Column) -> Result<DataType> {
    Ok(plan.schema().field_from_column(column)?.data_type().clone())
}

/// A column with its type.
fn typed_column(plan: &LogicalPlan, column: &Column) -> Result<Typed> {
    Ok((Planned::Column(column.clone()), type_of(plan, column)?))
}

/// A condition over a plan.
fn filter(plan: LogicalPlan, condition: Option<Planned>) -> Result<LogicalPlan> {
    match condition {
        Some(condition) => LogicalPlanBuilder::from(plan).filter(condition)?.build(),
        None => Ok(plan),
    }
}

fn all_of(conditions: Vec<Planned>) -> Option<Planned> {
    datafusion::logical_expr::utils::conjunction(conditions)
}
