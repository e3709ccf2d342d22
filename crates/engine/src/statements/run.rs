//! Statements at work: the kept ones, and those met for the first time.
use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value};
use albireo_execute::{Executables, Execution, Host, Limits as BodyLimits, Notice, query, with_parameters};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Call};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_sql::ast::Statement;

use super::bind::{Bound, Work};
use super::cache::{Found, Kept};
use super::road::Road;
use crate::routines::Limits;
use crate::settings::Settings;
use crate::{Database, Outcome, QueryResult};

/// Rows that a query reads here before it is begun again on the analytical road: as many as a chunk has.
const MOST_ROWS_READ: u32 = 16 << 10;
/// Rows that a change looks at here before it is begun again on the analytical road.
const MOST_ROWS_CHANGED: u32 = 256 << 10;

/// Which kept statements are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// All.
    Any,
    /// Those that read.
    Queries,
}

/// What became of a statement here.
pub(crate) enum Tried {
    /// It ran.
    Ran(Outcome),
    /// It ran and failed.
    Failed(SqlError),
    /// It belongs to the other road; the error if it cannot run here at all.
    Not(Option<SqlError>),
}

/// How much of a statement's own judgement counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Insist {
    /// It runs here if it belongs here.
    No,
    /// It runs here if it can: the other road has refused it.
    Yes,
}

impl Database {
    /// Runs an INSERT, UPDATE or DELETE.
    pub(crate) fn run_change(
        &self,
        statement: &Statement,
        text: &str,
        values: &[Value],
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let limits = self.limits(settings, cancel);
        match self.try_statement(statement, text, values, Insist::No, &limits) {
            Tried::Ran(outcome) => return Ok(outcome),
            Tried::Failed(error) => return Err(error),
            Tried::Not(_) => {}
        }
        let other = match self.run_dml(statement, text, values, settings, cancel) {
            Err(error) if is_unknown(&error) => error,
            done => return done,
        };
        match self.try_statement(statement, text, values, Insist::Yes, &limits) {
            Tried::Ran(outcome) => Ok(outcome),
            Tried::Failed(error) => Err(error),
            Tried::Not(error) => Err(better(error, other)),
        }
    }

    /// Runs a query on a snapshot of its own, or on live rows.
    pub(crate) fn run_read(
        &self,
        statement: &Statement,
        text: &str,
        values: &[Value],
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<QueryResult, SqlError> {
        let limits = self.limits(settings, cancel);
        match self.try_statement(statement, text, values, Insist::No, &limits) {
            Tried::Ran(outcome) => outcome.into_rows(),
            Tried::Failed(error) => Err(error),
            // What is wrong with it, the other road says.
            Tried::Not(_) => self.run_query(statement, text, values, None, settings, cancel),
        }
    }

    /// The plan of an INSERT, UPDATE or DELETE, a line each; nothing changes.
    pub(crate) fn explain_change(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Vec<String>, SqlError> {
        if let Ok(Some(lines)) = self.explain_statement(statement, text, Insist::No, None) {
            return Ok(lines);
        }
        let other = match self.explain_dml(statement, text, settings, cancel) {
            Ok(plan) => return Ok(plan.lines().map(str::to_owned).collect()),
            Err(error) if is_unknown(&error) => error,
            Err(error) => return Err(error),
        };
        match self.explain_statement(statement, text, Insist::Yes, None) {
            Ok(Some(lines)) => Ok(lines),
            Ok(None) => Err(other),
            Err(error) => Err(better(Some(error), other)),
        }
    }
}

/// Whether an error says that a statement means nothing to the analytical road: its class is that of what
/// is wrong with a text, or not supported.
fn is_unknown(error: &SqlError) -> bool {
    let state = error.state();
    state == SqlState::FEATURE_NOT_SUPPORTED || state.0.starts_with(b"42")
}

/// Of the errors of both roads the one that helps: that of this road if the other merely refused.
fn better(error: Option<SqlError>, other: SqlError) -> SqlError {
    match error {
        Some(error)
            if other.state() == SqlState::FEATURE_NOT_SUPPORTED
                && error.state() != SqlState::FEATURE_NOT_SUPPORTED =>
        {
            error
        }
        _ => other,
    }
}

/// What a run gave.
pub(super) struct Ran {
    pub(super) count: u64,
    pub(super) rows: Vec<Vec<Datum>>,
    pub(super) notices: Vec<Notice>,
}

impl Database {
    /// Runs a statement that is kept; `None` if none is, or it must be run in another way.
    #[inline]
    pub(crate) fn run_kept(
        &self,
        text: &str,
        values: &[Value],
        wanted: Wanted,
        limits: &Limits,
    ) -> Option<Result<Outcome, SqlError>> {
        let generation = self.inner.definitions.read();
        let kept = self.inner.statements.get(text, values, *generation)?;
        let Found::Bound(bound, Road::Transactional) = &kept.found else { return None };
        if wanted == Wanted::Queries && !matches!(bound.work, Work::Select(_)) {
            return None;
        }
        match self.run_bound(bound, values, limits, Some(&kept)) {
            Tried::Ran(outcome) => Some(Ok(outcome)),
            Tried::Failed(error) => Some(Err(error)),
            Tried::Not(_) => None,
        }
    }

    /// Runs a statement that may belong here.
    pub(crate) fn try_statement(
        &self,
        statement: &Statement,
        text: &str,
        values: &[Value],
        insist: Insist,
        limits: &Limits,
    ) -> Tried {
        let generation = self.inner.definitions.read();
        let kept = self.kept(statement, text, values, *generation);
        match (&kept.found, insist) {
            (Found::Refused(error, _), _) => Tried::Not(Some(error.clone())),
            (Found::Bound(_, Road::Analytical), Insist::No) => Tried::Not(None),
            (Found::Bound(bound, Road::Transactional), Insist::No) => {
                self.run_bound(bound, values, limits, Some(&kept))
            }
            (Found::Bound(bound, _), Insist::Yes) => self.run_bound(bound, values, limits, None),
        }
    }

    /// The bound statement, kept or made now.
    fn kept(&self, statement: &Statement, text: &str, values: &[Value], generation: u64) -> Arc<Kept> {
        let statements = &self.inner.statements;
        if let Some(kept) = statements.get(text, values, generation) {
            return kept;
        }
        let library = self.library();
        let kept = match Bound::new(&library, statement, text, values, self.inner.partitions.count()) {
            Ok(bound) => {
                let road = statements.forced().unwrap_or_else(|| Road::of(&bound));
                Kept::new(text, generation, Found::Bound(Arc::new(bound), road))
            }
            Err(error) => Kept::refused(text, generation, error, values),
        };
        // Not if there are more or fewer values than parameters.
        if kept.takes(values) {
            statements.put(Arc::clone(&kept), values);
        }
        kept
    }

    /// Runs a bound statement; one that is `kept` only as long as it stays small.
    pub(super) fn run_bound(
        &self,
        bound: &Arc<Bound>,
        values: &[Value],
        limits: &Limits,
        kept: Option<&Kept>,
    ) -> Tried {
        let arguments = match bound.arguments(values) {
            Ok(arguments) => arguments,
            Err(error) => return Tried::Failed(error),
        };
        let most = match &bound.work {
            _ if kept.is_none() || bound.calls => u32::MAX,
            Work::Select(_) => MOST_ROWS_READ,
            Work::Change(_) => MOST_ROWS_CHANGED,
        };
        let statements = &self.inner.statements;
        let route = bound.home.route(&bound.around, &arguments, self.inner.partitions.count(), statements);
        let call = Call { synchronous: limits.synchronous, ..Call::new(route, bound.work.verb()) };
        let mut too_many = false;
        let start = bound.shape.has_columns().then(|| limits.interrupts.clock.now());
        let ran = self.inner.partitions.transact(&call, |tx| {
            let mut execution = Execution::new(tx, &bound.library.catalog, &limits.interrupts);
            execution.allow_rows(most);
            let done = bound.perform(&mut execution, &arguments);
            too_many = execution.met_too_many_rows();
            match done {
                Ok((count, rows)) => Ok(Ran { count, rows, notices: execution.take_notices() }),
                Err(Stop::Crossing) => Err(Abort::Crossing),
                Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
            }
        });
        let execution =
            start.map(|start| Duration::from_nanos(limits.interrupts.clock.now().saturating_sub(start)));
        match (ran.map_err(|error| self.explain_call(error)), kept) {
            (Ok(ran), _) => match bound.outcome(ran, execution.unwrap_or_default()) {
                Ok(outcome) => Tried::Ran(outcome),
                Err(error) => Tried::Failed(error),
            },
            (Err(error), Some(kept)) if too_many => {
                statements.put(kept.turned_away(bound), values);
                Tried::Not(Some(error))
            }
            (Err(error), Some(_)) if is_refusal(&error) => Tried::Not(Some(error)),
            (Err(error), _) => Tried::Failed(error),
        }
    }
}

impl Bound {
    /// Makes the change, or reads: how many rows it concerned, and those it gives.
    pub(super) fn perform(
        &self,
        execution: &mut Execution<'_>,
        arguments: &[Datum],
    ) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
        let library: &dyn Executables = self.library.as_ref();
        with_parameters(execution, library, BodyLimits::default(), &self.around, arguments, |host| {
            let host: &mut dyn Host = host;
            match &self.work {
                Work::Select(plan) => {
                    query::select(plan, host, usize::MAX).map(|rows| (rows.len() as u64, rows))
                }
                Work::Change(plan) => query::change(plan, host),
            }
        })
    }

    /// What it gave, as clients see it.
    pub(super) fn outcome(&self, ran: Ran, execution: Duration) -> Result<Outcome, SqlError> {
        let Ran { count, rows, notices } = ran;
        if self.shape.has_columns() {
            return self.shape.result(rows, execution).map(Outcome::Rows);
        }
        let zero = if self.work.verb() == "INSERT" { "0 " } else { "" };
        let notices =
            notices.into_iter().filter(Notice::is_for_client).map(|notice| notice.message).collect();
        Ok(Outcome::Done { tag: format!("{} {zero}{count}", self.work.verb()), rows: count, notices })
    }
}

/// Whether an error says that this road cannot do it: not supported, too much memory, too complex.
fn is_refusal(error: &SqlError) -> bool {
    [SqlState::FEATURE_NOT_SUPPORTED, SqlState::OUT_OF_MEMORY, SqlState::STATEMENT_TOO_COMPLEX]
        .contains(&error.state())
}
