//! In which partition a statement runs.
//!
//! A wrong answer is slow, not wrong: a transaction that reaches for another partition is run again over
//! all.
//!
//! Where a call of a routine goes follows from what the routine reaches (`albireo_plpgsql::classify`).

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, SqlState};
use albireo_partition::Route;
use albireo_plpgsql::body::Routine;
use albireo_plpgsql::classify::{Classes, Destination, RoutingClass, routing_of_call, routing_of_query};
use albireo_plpgsql::plan::placing_of;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, Expr, ExprKind, Frame, RoutineId, VariableId, evaluate};
use albireo_semantics::query::SelectPlan;
use albireo_semantics::query::tree::AccessInfo;
use albireo_storage::partition_of;

use super::bind::Bound;
use super::cache::Statements;
use super::live::Work;

/// Where a statement runs.
pub(super) enum Routing {
    /// In this partition.
    Partition(u16),
    /// Where these expressions of constants and parameters say, if they agree.
    Keys(Vec<AccessInfo>),
    /// In any partition: it only reads what all have.
    Any,
    /// Over all partitions.
    All,
    /// Where the routines run that it calls.
    Classes(RoutingClass),
}

impl Routing {
    pub(super) fn new(work: &Work, bound: &Bound, partitions: u16) -> Self {
        if partitions == 1 {
            return Self::Partition(0);
        }
        let (around, library) = (&bound.around, &bound.library);
        let classes: Classes<'_> = &|id| library.class(id).map(Arc::clone);
        match work {
            Work::Call(call) => return Self::Classes(routing_of_call(call, around, classes)),
            Work::Select(plan) if bound.calls => {
                return Self::Classes(routing_of_query(plan, around, classes));
            }
            Work::Select(_) | Work::Change(_) => {}
        }
        if work.verb() == "MERGE" {
            return Self::All;
        }
        let inserts = work.verb() == "INSERT";
        let mut keys = Vec::new();
        let mut elsewhere = false;
        for access in work.accesses() {
            match &access.partition {
                _ if access.table.is_shared() && access.kind.writes() => return Self::All,
                _ if access.table.is_shared() => {}
                Some(key) if is_given(key) => keys.push(access.clone()),
                // A row of another table says it, which is mostly where this table's are; or new rows do.
                Some(_) => elsewhere = true,
                None if access.kind.writes() && inserts => elsewhere = true,
                None => return Self::All,
            }
        }
        match (keys.is_empty(), elsewhere) {
            (true, true) => Self::All,
            (true, false) => Self::Any,
            (false, _) if keys.iter().all(|key| is_constant(key.partition.as_ref())) => {
                let values = vec![Datum::NULL; around.variables.len()];
                match agreed(&keys, around, &values, partitions) {
                    Some(partition) => Self::Partition(partition),
                    None => Self::All,
                }
            }
            (false, _) => Self::Keys(keys),
        }
    }

    /// The route of a run with these arguments.
    #[inline]
    pub(super) fn route(
        &self,
        around: &Routine,
        arguments: &[Datum],
        partitions: u16,
        all: &Statements,
    ) -> Route {
        let partition = match self {
            Self::Partition(partition) => *partition,
            Self::Keys(keys) => match agreed(keys, around, arguments, partitions) {
                Some(partition) => partition,
                None => return Route::Crossing,
            },
            Self::Any => all.next_partition(partitions),
            Self::All => return Route::Crossing,
            Self::Classes(class) => match class.destination(arguments) {
                Destination::Any => all.next_partition(partitions),
                Destination::Value(value) => partition_of(&value, partitions),
                Destination::All => return Route::Crossing,
            },
        };
        Route::Partition(PartitionId(partition))
    }
}

/// Whether an expression depends on nothing but parameters.
pub(super) fn is_given(expr: &Expr) -> bool {
    let mut given = true;
    expr.walk(&mut |part| {
        given &= !matches!(
            part.kind,
            ExprKind::Column(_) | ExprKind::Call(..) | ExprKind::Subquery(_) | ExprKind::Now
        );
    });
    given
}

fn is_constant(expr: Option<&Expr>) -> bool {
    let mut constant = true;
    if let Some(expr) = expr {
        expr.walk(&mut |part| constant &= !matches!(part.kind, ExprKind::Variable(_)));
    }
    constant
}

/// The one partition that all keys mean.
fn agreed(keys: &[AccessInfo], around: &Routine, arguments: &[Datum], partitions: u16) -> Option<u16> {
    let mut agreed = None;
    for access in keys {
        let key = access.partition.as_ref()?;
        let partition = match evaluate(key, &mut Given { around, arguments }) {
            Ok(Datum::Value(value)) => partition_of(&placing_of(access, value), partitions),
            // It will say so where it runs.
            Ok(_) | Err(_) => 0,
        };
        if agreed.is_some_and(|other| other != partition) {
            return None;
        }
        agreed = Some(partition);
    }
    agreed
}

/// Parameters, and nothing else.
pub(super) struct Given<'a> {
    pub(super) around: &'a Routine,
    pub(super) arguments: &'a [Datum],
}

static NOTHING: Datum = Datum::NULL;

fn nothing_else<T>() -> Result<T, Stop> {
    Err(SqlError::new(SqlState::INTERNAL_ERROR, "a value that depends on rows").into())
}

impl Frame for Given<'_> {
    fn variable(&self, variable: VariableId) -> &Datum {
        let at = self.around.parameters.iter().position(|parameter| *parameter == variable);
        at.and_then(|at| self.arguments.get(at)).unwrap_or(&NOTHING)
    }

    fn column(&mut self, _: ColumnRef) -> Result<Datum, Stop> {
        nothing_else()
    }

    fn now(&mut self) -> i64 {
        0
    }

    fn call(&mut self, _: RoutineId, _: Vec<Datum>) -> Result<Datum, Stop> {
        nothing_else()
    }

    fn query(&mut self, _: &SelectPlan, _: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        nothing_else()
    }
}
