//! Spools: the rows of a part of a plan, computed once per execution and read in several places.
//!
//! A query of WITH that is used twice would otherwise be planned and computed at each use, and chains of such
//! queries 2^n times. [`Spools`] is the root of a plan: its first inputs give the rows of its spools, its last
//! one the result. [`SpoolScan`] is a leaf that stands for the rows of a spool. A spool may scan those
//! before it. Which parts of a query become spools, `lower` says.
//!
//! **Invariant:** a plan has as many nodes as the query asks for, however often parts of it are used.
//! **Invariant:** a spool is filled by a task of its own, never by one of its readers: whichever reader an
//! operator polls first, and whether it polls the others, all of them end.

mod exec;
mod fill;
mod narrow;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Projection, UserDefinedLogicalNodeCore};

pub(crate) use exec::Planner;
pub(crate) use narrow::add_names;

use crate::errors::{external, internal};

/// The number of a spool, of one per statement.
pub(crate) type SpoolId = u32;

/// A plan and the spools that it reads.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Spools {
    ids: Vec<SpoolId>,
    /// What fills the spools, and last the plan that gives the result.
    inputs: Vec<LogicalPlan>,
}

/// The rows of a spool, read.
#[derive(PartialEq, Eq)]
pub(crate) struct SpoolScan {
    id: SpoolId,
    /// The columns of the spool in its order, under names of this scan.
    schema: DFSchemaRef,
}

/// `plan` with what fills the spools that it and later spools read.
///
/// Where it sorts, that goes below its select list. The columns that ORDER BY names need not be in that, and a sort
/// whose order cannot be named at the top is taken for one that nobody requires, and removed.
pub(crate) fn with_spools(spools: Vec<(SpoolId, LogicalPlan)>, plan: LogicalPlan) -> Result<LogicalPlan> {
    if spools.is_empty() {
        return Ok(plan);
    }
    let (spools, plan) = narrow::narrowed(spools, plan)?;
    below_select_list(spools, plan)
}

fn below_select_list(spools: Vec<(SpoolId, LogicalPlan)>, plan: LogicalPlan) -> Result<LogicalPlan> {
    if let LogicalPlan::Projection(Projection { expr, input, .. }) = &plan
        && is_sorted(input)
    {
        let (expr, input) = (expr.clone(), Arc::clone(input));
        let input = below_select_list(spools, Arc::unwrap_or_clone(input))?;
        return Ok(LogicalPlan::Projection(Projection::try_new(expr, Arc::new(input))?));
    }
    let (ids, mut inputs): (Vec<_>, Vec<_>) = spools.into_iter().unzip();
    inputs.push(plan);
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(Spools { ids, inputs }) }))
}

/// Whether a plan sorts before it does anything but choose columns and rows.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(Projection { input, .. }) => is_sorted(input),
        LogicalPlan::Limit(limit) => is_sorted(&limit.input),
        _ => false,
    }
}

/// The rows of a spool under the names of `schema`.
pub(crate) fn scan(id: SpoolId, schema: DFSchemaRef) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(SpoolScan { id, schema }) })
}

/// The spool that a plan scans, if it does nothing else.
pub(crate) fn scanned(plan: &LogicalPlan) -> Option<&SpoolScan> {
    match plan {
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
        _ => None,
    }
}

/// What fills the spools of a whole plan, each after those that it reads.
pub(crate) fn of(plan: &LogicalPlan) -> Vec<(SpoolId, &LogicalPlan)> {
    let spools = match plan {
        LogicalPlan::Projection(projection) => return of(&projection.input),
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref::<Spools>(),
        _ => None,
    };
    spools.map_or_else(Vec::new, |spools| spools.ids.iter().copied().zip(&spools.inputs).collect())
}

impl SpoolScan {
    pub(crate) fn id(&self) -> SpoolId {
        self.id
    }
}

impl fmt::Debug for Spools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl fmt::Debug for SpoolScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for Spools {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.inputs.partial_cmp(&other.inputs)
    }
}

impl PartialOrd for SpoolScan {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.id.partial_cmp(&other.id)
    }
}

impl Hash for SpoolScan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for Spools {
    fn name(&self) -> &str {
        "Spools"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        // There is a plan behind the spools: `with_spools` puts it there and no rule changes their number.
        self.inputs[self.ids.len()].schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spools: {:?}", self.ids)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match inputs.len() == self.ids.len() + 1 {
            true => Ok(Self { ids: self.ids.clone(), inputs }),
            false => Err(external(internal("a spool has lost its input"))),
        }
    }
}

impl UserDefinedLogicalNodeCore for SpoolScan {
    fn name(&self) -> &str {
        "SpoolScan"
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
        write!(f, "SpoolScan: {}", self.id)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match inputs.is_empty() {
            true => Ok(Self { id: self.id, schema: Arc::clone(&self.schema) }),
            false => Err(external(internal("a scan of a spool has no input"))),
        }
    }
}
