//! A statement as a transaction runs it: access paths, where it runs, machine code.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::{SqlError, Value};
use albireo_compile::{Compiled, Output, Ran, Reply, run_statement};
use albireo_execute::query::{self, Estimate};
use albireo_execute::{Executables, Execution, Host, Limits as BodyLimits, run_call, with_parameters};
use albireo_plpgsql::body::{BoundCall, routine_of_change, routine_of_select};
use albireo_plpgsql::plan::{plan_select, planned};
use albireo_semantics::Stop;
use albireo_semantics::datum::{Array, Datum};
use albireo_semantics::expr::Expr;
use albireo_semantics::query::tree::{AccessInfo, AccessKind};
use albireo_semantics::query::{ChangePlan, SelectPlan};
use albireo_sql::RowLocks;
use albireo_storage::with_prepass;

use super::bind::{Bound, Meaning};
use super::call::callee;
use super::path::{Extent, Overruns};
use super::routing::Routing;
use crate::routines::{Callee, Interpreted, Library};

/// A statement with access paths.
pub(super) enum Work {
    /// It reads.
    Select(SelectPlan),
    /// It changes.
    Change(ChangePlan),
    /// It calls a procedure.
    Call(BoundCall),
}

impl Work {
    /// Calls `visit` for every expression.
    pub(super) fn each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Self::Select(plan) => plan.each_expr(visit),
            Self::Change(plan) => plan.each_expr(visit),
            Self::Call(call) => call.args.iter().for_each(|arg| arg.walk(visit)),
        }
    }

    pub(super) fn accesses(&self) -> &[AccessInfo] {
        match self {
            Self::Select(plan) => &plan.accesses,
            Self::Change(plan) => &plan.accesses,
            Self::Call(_) => &[],
        }
    }

    /// The first word.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Select(_) => "SELECT",
            Self::Change(plan) => plan.change.verb(),
            Self::Call(_) => "CALL",
        }
    }
}

/// See the module.
pub(crate) struct Live {
    pub(super) work: Work,
    pub(super) routing: Routing,
    pub(super) extent: Extent,
    /// Whether it asks which rows others have locked: there is no other path then.
    pub(super) asks: bool,
    /// Whether all rows are found by indexes.
    pub(super) indexed: bool,
    /// The procedure that it calls, if it goes the way of handles.
    pub(super) callee: Option<Callee>,
    pub(super) overruns: Overruns,
    hot: Hot,
}

impl Live {
    /// # Errors
    /// 0A000 for what does not run on live rows.
    pub(super) fn new(bound: &Bound, locks: RowLocks, partitions: u16) -> Result<Self, SqlError> {
        let work = match &bound.meaning {
            Meaning::Select(select) => Work::Select(plan_select(select.clone())?),
            Meaning::Change(change) => Work::Change(planned(change.clone())?),
            Meaning::Call(call) => Work::Call(call.clone()),
        };
        let by_index = |access: &AccessInfo| {
            access.index.is_some() || matches!(access.kind, AccessKind::Insert | AccessKind::Move)
        };
        Ok(Self {
            routing: Routing::new(&work, bound, partitions),
            extent: Extent::of(&work, locks.asks || bound.calls && !bound.is_found_without_calls()),
            asks: locks.asks,
            indexed: work.accesses().iter().all(by_index),
            callee: callee(&work, bound),
            overruns: Overruns::default(),
            hot: Hot::default(),
            work,
        })
    }

    /// About how many rows it is about to read; `given`: whether its parameters have values.
    ///
    /// # Errors
    /// Only [`Stop::Crossing`].
    pub(super) fn estimate(
        &self,
        bound: &Bound,
        execution: &mut Execution<'_>,
        arguments: &[Datum],
        given: bool,
    ) -> Result<Estimate, Stop> {
        let library: &dyn Executables = bound.library.as_ref();
        with_parameters(execution, library, BodyLimits::default(), &bound.around, arguments, |host| {
            let host: &mut dyn Host = host;
            match &self.work {
                Work::Select(plan) => query::estimate_select(plan, host, given),
                Work::Change(plan) => query::estimate_change(plan, host, given),
                Work::Call(_) => Ok(Estimate::default()),
            }
        })
    }

    /// Makes the change, or reads: how many rows it concerned, and those it gives. `interprets` says whether
    /// routines that it calls do without their machine code.
    pub(crate) fn perform(
        &self,
        bound: &Bound,
        execution: &mut Execution<'_>,
        arguments: &[Datum],
        code: Option<&Arc<Compiled>>,
        interprets: bool,
    ) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
        let interpreted = Interpreted(&bound.library);
        let library: &dyn Executables = match interprets {
            true => &interpreted,
            false => bound.library.as_ref(),
        };
        let (limits, around) = (BodyLimits::default(), &bound.around);
        with_prepass(|| match (code, &self.work) {
            (Some(code), _) => run_statement(code, arguments, execution, library, limits).map(of_statement),
            (None, Work::Call(call)) => {
                let rows = run_call(call, execution, library, limits, around, arguments)?;
                Ok((rows.len() as u64, rows))
            }
            (None, work) => with_parameters(execution, library, limits, around, arguments, |host| {
                let host: &mut dyn Host = host;
                match work {
                    Work::Select(plan) => {
                        query::select(plan, host, usize::MAX).map(|rows| (rows.len() as u64, rows))
                    }
                    Work::Change(plan) => query::change(plan, host),
                    Work::Call(_) => Ok((0, Vec::new())),
                }
            }),
        })
    }

    /// How often it was run so far, counted until it is hot.
    pub(super) fn executions(&self) -> u32 {
        self.hot.executions.load(Ordering::Relaxed)
    }

    /// Its machine code, if it is asked often and has some.
    #[inline]
    pub(crate) fn code(&self, bound: &Bound) -> Option<&Arc<Compiled>> {
        match self.hot.code.get() {
            Some(code) => code.as_ref(),
            None => self.warm_up(bound),
        }
    }

    #[cold]
    fn warm_up(&self, bound: &Bound) -> Option<&Arc<Compiled>> {
        // One of them makes it; those meanwhile do without.
        if self.hot.executions.fetch_add(1, Ordering::Relaxed) != HOT {
            return None;
        }
        self.hot.code.get_or_init(|| self.compiled(bound)).as_ref()
    }

    /// Machine code for a statement that gives one row at most, found by keys.
    fn compiled(&self, bound: &Bound) -> Option<Arc<Compiled>> {
        if bound.calls {
            return None;
        }
        let routine = match &self.work {
            Work::Select(plan) => routine_of_select(plan, &bound.around),
            Work::Change(plan) => routine_of_change(plan, &bound.around),
            Work::Call(_) => None,
        };
        let code = bound.library.compile(&Arc::new(routine?))?;
        // What the compiler leaves to the interpreter is faster without it.
        (code.statements().1 == 0).then_some(code)
    }
}

/// Executions of a statement before it is compiled.
pub(super) const HOT: u32 = 64;

/// How often a statement was asked, and its code once that was often.
#[derive(Default)]
struct Hot {
    executions: AtomicU32,
    code: OnceLock<Option<Arc<Compiled>>>,
}

/// What the routine of a statement gave: FOUND, and the row.
fn of_statement(ran: Ran) -> (u64, Vec<Vec<Datum>>) {
    let mut row = match ran {
        Ran::Reply(reply) => {
            let found = matches!(reply.get(0), Output::Value(found) if found.to_value() == Value::Bool(true));
            let rows = if found && reply.width() > 1 { vec![row_of(&reply, 1)] } else { Vec::new() };
            return (u64::from(found), rows);
        }
        Ran::Values(mut values) => match values.pop() {
            Some(Datum::Row(fields)) => fields.to_vec(),
            _ => Vec::new(),
        },
    };
    let found = matches!(row.first(), Some(Datum::Value(Value::Bool(true))));
    let rows = match found && row.len() > 1 {
        true => {
            row.remove(0);
            vec![row]
        }
        false => Vec::new(),
    };
    (u64::from(found), rows)
}

/// The values of a reply from a column on.
pub(super) fn row_of(reply: &Reply, from: usize) -> Vec<Datum> {
    let value = |column| match reply.get(column) {
        Output::Value(value) => Datum::Value(value.to_value()),
        Output::Array(items) => {
            let items = items.iter().map(|item| Datum::Value(item.to_value())).collect();
            Datum::Array(Arc::new(Array { lower: 1, items }))
        }
    };
    (from..reply.width()).map(value).collect()
}

impl Library {
    /// Whether two routines have one name, so that types of arguments tell them apart.
    pub(super) fn is_overloaded(&self) -> bool {
        let mut names: Vec<&str> = self.signatures().map(|(_, signature)| signature.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}
