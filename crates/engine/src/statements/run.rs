//! Statements at work: the kept ones, and those met for the first time.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value, budget};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Call};
use albireo_procedure::body::{Limits as BodyLimits, Routines, with_parameters};
use albireo_procedure::datum::Datum;
use albireo_procedure::host::Host;
use albireo_procedure::plan;
use albireo_procedure::store::Stop;
use albireo_sql::ast::Statement;

use super::bind::{Bound, Work};
use super::cache::{Found, Kept};
use super::road::Road;
use crate::routines::{Limits, Notice, TransactionStore, is_for_client};
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

impl Tried {
    /// What it gave, of a statement that was not to go to the other road.
    fn done(self) -> Result<Outcome, SqlError> {
        match self {
            Self::Ran(outcome) => Ok(outcome),
            Self::Failed(error) | Self::Not(Some(error)) => Err(error),
            Self::Not(None) => Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement for the other road")),
        }
    }
}

impl Database {
    /// Runs a change.
    pub(crate) fn run_change(
        &self,
        statement: &Statement,
        text: &str,
        values: &[Value],
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let limits = self.limits(settings, cancel);
        match self.try_statement(statement, text, values, &limits) {
            // What is wrong with it, the other road says.
            Tried::Not(_) => self.run_queried(statement, text, values, settings, cancel),
            tried => tried.done(),
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
        match self.try_statement(statement, text, values, &limits) {
            Tried::Ran(outcome) => outcome.into_rows(),
            Tried::Failed(error) => Err(error),
            // What is wrong with it, the other road says.
            Tried::Not(_) => self.run_query(statement, text, values, None, settings, cancel),
        }
    }

    /// The plan of a change, a line each; nothing changes.
    pub(crate) fn explain_change(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Vec<String>, SqlError> {
        match self.explain_statement(statement, text, None) {
            Ok(Some(lines)) => Ok(lines),
            // What is wrong with it, the other road says.
            _ => self.explain_queried(statement, text, settings, cancel),
        }
    }
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) count: u64,
    pub(crate) rows: Vec<Vec<Datum>>,
    pub(crate) notices: Vec<Notice>,
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
        limits: &Limits,
    ) -> Tried {
        let generation = self.inner.definitions.read();
        let kept = self.kept(statement, text, values, *generation);
        match &kept.found {
            Found::Refused(error, _) => Tried::Not(Some(error.clone())),
            Found::Bound(_, Road::Analytical) => Tried::Not(None),
            Found::Bound(bound, Road::Transactional) => self.run_bound(bound, values, limits, Some(&kept)),
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
        // Not if there are more or fewer values than parameters, nor what was ended.
        if kept.takes(values) && budget::check().is_ok() {
            statements.put(Arc::clone(&kept), values);
        }
        kept
    }

    /// Runs a statement on live rows, however many it reads.
    pub(crate) fn run_in_full(
        &self,
        bound: Bound,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        self.run_bound(&Arc::new(bound), values, limits, None).done()
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
        let start = bound.shape.has_columns().then(|| limits.clock.now());
        let ran = self.inner.partitions.transact(&call, |tx| {
            let mut store = TransactionStore::new(tx, &bound.library.catalog, limits);
            store.allow_rows(most);
            let done = bound.perform(&mut store, &arguments);
            too_many = store.met_too_many_rows();
            match done {
                Ok((count, rows)) => Ok(Ran { count, rows, notices: store.notices }),
                Err(Stop::Crossing) => Err(Abort::Crossing),
                Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
            }
        });
        let execution = start.map(|start| Duration::from_nanos(limits.clock.now().saturating_sub(start)));
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
        store: &mut TransactionStore<'_, '_, '_>,
        arguments: &[Datum],
    ) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
        let library: &dyn Routines = self.library.as_ref();
        with_parameters(store, library, BodyLimits::default(), &self.around, arguments, |host| {
            let host: &mut dyn Host = host;
            match &self.work {
                Work::Select(plan) => {
                    plan::select(plan, host, usize::MAX).map(|rows| (rows.len() as u64, rows))
                }
                Work::Change(plan) => plan::change(plan, host),
            }
        })
    }

    /// What it gave, as clients see it.
    pub(crate) fn outcome(&self, ran: Ran, execution: Duration) -> Result<Outcome, SqlError> {
        let Ran { count, rows, notices } = ran;
        if self.shape.has_columns() {
            return self.shape.result(rows, execution).map(Outcome::Rows);
        }
        let zero = if self.work.verb() == "INSERT" { "0 " } else { "" };
        let notices = notices.into_iter().filter(is_for_client).map(|notice| notice.message).collect();
        Ok(Outcome::Done { tag: format!("{} {zero}{count}", self.work.verb()), rows: count, notices })
    }
}

/// Whether an error says that this road cannot do it: not supported, too much memory, too complex.
fn is_refusal(error: &SqlError) -> bool {
    [SqlState::FEATURE_NOT_SUPPORTED, SqlState::OUT_OF_MEMORY, SqlState::STATEMENT_TOO_COMPLEX]
        .contains(&error.state())
}
