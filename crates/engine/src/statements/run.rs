//! Statements at work: the kept ones, and those met for the first time.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value, budget};
use albireo_execute::query::Estimate;
use albireo_execute::{Execution, Notice};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Call, Route};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_sql::ast::{Function, Statement};

use super::bind::{Bound, Parsed};
use super::cache::Entry;
use super::live::{Live, Work};
use super::path::{Costs, ExecutionPath, Extent};
use crate::routines::Limits;
use crate::settings::Settings;
use crate::{Database, Outcome};

/// Rows that a query reads as a transaction before it is begun again on a snapshot: as many as a chunk has.
const MOST_ROWS_READ: u32 = 16 << 10;
/// Rows that a change looks at as a transaction before it is begun again in the other way.
const MOST_ROWS_CHANGED: u32 = 256 << 10;
/// Machine code looks for interrupts this much more often than the interpreter, for the rows it reads.
const CHECKS_OF_CODE: u32 = 16;

/// Which kept statements are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// All.
    Any,
    /// Those that read.
    Queries,
}

/// What became of a statement as a transaction.
pub(crate) enum Attempt {
    /// It ran.
    Ran(Outcome),
    /// It ran and failed.
    Failed(SqlError),
    /// It belongs to the other path; the error if it cannot run here at all.
    Not(Option<SqlError>),
}

/// What became of a statement that may be kept.
pub(crate) enum Kept {
    /// It ran as a transaction.
    Ran(Result<Outcome, SqlError>),
    /// It is a query to be run on a snapshot.
    Query(Arc<Entry>),
    /// It is not kept, or must be looked at first.
    Unknown,
}

impl Attempt {
    /// What it gave, of a statement that was not to go to the other path.
    pub(crate) fn done(self) -> Result<Outcome, SqlError> {
        match self {
            Self::Ran(outcome) => Ok(outcome),
            Self::Failed(error) | Self::Not(Some(error)) => Err(error),
            Self::Not(None) => Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement for the other path")),
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
        match self.try_statement(Parsed::Statement(statement), text, values, &limits).0 {
            // What is wrong with it, the other path says.
            Attempt::Not(_) => self.run_queried(statement, (text, values), settings, cancel, &limits),
            attempt => attempt.done(),
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
    ) -> Result<Outcome, SqlError> {
        let limits = self.limits(settings, cancel);
        let (attempt, entry) = self.try_statement(Parsed::Statement(statement), text, values, &limits);
        match attempt {
            Attempt::Not(_) if !entry.calls => {
                // What is wrong with it, the other path says.
                let rows = self.run_query(&entry, values, None, settings, cancel);
                rows.map(Outcome::Rows)
            }
            attempt => attempt.done(),
        }
    }

    /// Calls a procedure.
    pub(crate) fn run_call(
        &self,
        function: &Function,
        text: &str,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        self.try_statement(Parsed::Call(function), text, values, limits).0.done()
    }

    /// The plan of a change, a line each; nothing changes.
    pub(crate) fn explain_change(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Vec<String>, SqlError> {
        let limits = self.limits(settings, cancel);
        let reason = match self.explain_statement(statement, text, &limits, false) {
            Ok(Explained::Here(lines)) => return Ok(lines),
            Ok(Explained::Elsewhere(reason)) => Some(reason),
            // What is wrong with it, the other path says.
            Err(_) => None,
        };
        let mut lines = self.explain_queried(statement, text, settings, cancel, &limits)?;
        if let Some(reason) = reason.filter(|_| !lines.is_empty()) {
            lines.insert(1, reason);
        }
        Ok(lines)
    }
}

/// What EXPLAIN says of a statement as a transaction.
pub(crate) enum Explained {
    /// Its plan.
    Here(Vec<String>),
    /// It takes the other path; why, as a line of the plan.
    Elsewhere(String),
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) count: u64,
    pub(crate) rows: Vec<Vec<Datum>>,
    pub(crate) notices: Vec<Notice>,
}

/// What a transaction came to.
enum Done {
    /// Rows to be shown once it is over.
    Ran(Ran),
    /// Shown already.
    Shown(Outcome),
    /// Nothing: the other path is cheaper.
    Dearer,
}

impl Database {
    /// Runs a statement that is kept.
    #[inline]
    pub(crate) fn run_kept(&self, text: &str, values: &[Value], wanted: Wanted, limits: &Limits) -> Kept {
        let generation = self.inner.definitions.read();
        let Some(entry) = self.inner.statements.get(text, values, *generation) else {
            return Kept::Unknown;
        };
        if wanted == Wanted::Queries && !entry.is_query() {
            return Kept::Unknown;
        }
        match self.attempt(&entry, values, limits) {
            Attempt::Ran(outcome) => Kept::Ran(Ok(outcome)),
            Attempt::Failed(error) => Kept::Ran(Err(error)),
            Attempt::Not(_) if entry.is_query() && !entry.calls => Kept::Query(entry),
            Attempt::Not(_) => Kept::Unknown,
        }
    }

    /// Runs a statement that may belong here, and keeps it.
    fn try_statement(
        &self,
        parsed: Parsed<'_>,
        text: &str,
        values: &[Value],
        limits: &Limits,
    ) -> (Attempt, Arc<Entry>) {
        let generation = self.inner.definitions.read();
        let entry = self.entry(parsed, text, values, *generation);
        (self.attempt(&entry, values, limits), entry)
    }

    /// The bound statement, kept or made now; the caller keeps the definitions as they are.
    pub(crate) fn entry(
        &self,
        parsed: Parsed<'_>,
        text: &str,
        values: &[Value],
        generation: u64,
    ) -> Arc<Entry> {
        let statements = &self.inner.statements;
        if let Some(entry) = statements.get(text, values, generation) {
            return entry;
        }
        let entry =
            Arc::new(Entry::new(&self.library(), parsed, text, values, generation, Some(&self.sources())));
        // Not what was ended, nor what the next time may find other files.
        if !entry.reads_files && budget::check().is_ok() {
            statements.put(&entry, values);
        }
        entry
    }

    /// Runs a statement as a transaction, if that is its path.
    fn attempt(&self, entry: &Entry, values: &[Value], limits: &Limits) -> Attempt {
        let (bound, live) = match (&entry.bound, entry.live(self.inner.partitions.count())) {
            (Ok(bound), Ok(live)) => (bound, live),
            (_, Err(error)) => return Attempt::Not(Some(error)),
            (Err(error), _) => return Attempt::Not(Some(error.clone())),
        };
        let Some(judged) = self.judged(entry, live) else { return Attempt::Not(None) };
        let arguments = match bound.arguments(values) {
            Ok(arguments) => arguments,
            Err(error) => return Attempt::Failed(error),
        };
        match self.call_directly(bound, live, &arguments, limits) {
            Some(done) => done,
            None => self.run_live(bound, live, &arguments, judged, limits),
        }
    }

    /// Whether an error says that there is no memory for rows, rather than that a statement needs too much.
    pub(crate) fn is_full(&self, error: &SqlError) -> bool {
        let limit = albireo_storage::OutOfMemory::Limit { limit_bytes: self.inner.pool.limit_bytes() };
        error.message() == limit.to_string()
    }

    /// Whether a statement may run as a transaction this time; `None`: it may not.
    pub(crate) fn judged(&self, entry: &Entry, live: &Live) -> Option<Judged> {
        match (self.inner.statements.forced(), live.extent) {
            (_, Extent::Whatever) => Some(Judged::Runs),
            (_, Extent::Unknown) | (Some(ExecutionPath::Analytical), _) => None,
            (Some(ExecutionPath::Transactional), _) | (None, Extent::Keys(_)) => Some(Judged::Runs),
            (None, Extent::Estimated) => {
                let planned = entry.prepared.get().map_or(live.executions(), |_| u32::MAX);
                Some(Judged::ByEstimate { planned })
            }
        }
    }

    /// Where a statement runs as a transaction.
    #[inline]
    pub(crate) fn route_of(&self, bound: &Bound, live: &Live, arguments: &[Datum]) -> Route {
        let (statements, partitions) = (&self.inner.statements, self.inner.partitions.count());
        live.routing.route(&bound.around, arguments, partitions, statements)
    }

    /// Runs a statement as a transaction; one that is judged only as long as it is the cheaper path.
    pub(crate) fn run_live(
        &self,
        bound: &Bound,
        live: &Live,
        arguments: &[Datum],
        judged: Judged,
        limits: &Limits,
    ) -> Attempt {
        let route = self.route_of(bound, live, arguments);
        let call = Call { synchronous: limits.synchronous, ..Call::new(route, live.work.verb()) };
        let code = if limits.interprets { None } else { live.code(bound) };
        let start = bound.shape.has_columns().then(|| limits.interrupts.clock.now());
        let lasted = || {
            let ns = start.map_or(0, |start| limits.interrupts.clock.now().saturating_sub(start));
            Duration::from_nanos(ns)
        };
        let (mut too_many, mut expected) = (false, 0.0);
        let ran = self.inner.partitions.transact(&call, |tx| {
            let mut execution = Execution::new(tx, &bound.library.catalog, &limits.interrupts);
            if let Judged::ByEstimate { planned } = judged {
                let estimate = live.estimate(bound, &mut execution, arguments, true).map_err(abort)?;
                let costs = live.costs(&estimate, planned);
                expected = costs.rows;
                let dearer = costs.path(live.most_rows()) == ExecutionPath::Analytical;
                if dearer || live.overruns.skips(expected) {
                    return Ok(Done::Dearer);
                }
                let checks = code.map_or(1, |_| CHECKS_OF_CODE);
                execution.allow_rows(live.most_rows().saturating_mul(checks));
            }
            let done = live.perform(bound, &mut execution, arguments, code, limits.interprets);
            too_many = execution.met_too_many_rows();
            let (count, rows) = done.map_err(abort)?;
            let ran = Ran { count, rows, notices: execution.take_notices() };
            match live.work {
                Work::Select(_) if !bound.calls => Ok(Done::Ran(ran)),
                // Before the commit, as a result that cannot be shown undoes the changes.
                _ => bound.outcome(ran, lasted()).map(Done::Shown).map_err(Abort::Raised),
            }
        });
        let error = match ran {
            Ok(Done::Dearer) => return Attempt::Not(None),
            Ok(done) => {
                if judged != Judged::Runs {
                    live.overruns.stayed();
                }
                let outcome = match done {
                    Done::Ran(ran) => bound.outcome(ran, lasted()),
                    Done::Shown(outcome) => Ok(outcome),
                    Done::Dearer => return Attempt::Not(None),
                };
                return match outcome {
                    Ok(outcome) => Attempt::Ran(outcome),
                    Err(error) => Attempt::Failed(error),
                };
            }
            Err(error) => self.explain_call(error),
        };
        if too_many {
            live.overruns.overran(expected);
            return Attempt::Not(Some(error));
        }
        // There is no more memory for its rows on the other path, where all would wait for it to find out.
        let is_full = error.state() == SqlState::OUT_OF_MEMORY && !live.is_query() && self.is_full(&error);
        match judged == Judged::Runs && (bound.calls || live.asks) || is_full || !is_refusal(&error) {
            true => Attempt::Failed(error),
            false => Attempt::Not(Some(error)),
        }
    }
}

/// Whether an execution may go to the other path once it is begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judged {
    /// No.
    Runs,
    /// If it is cheaper.
    ByEstimate {
        /// Over how many executions the cost of planning is spread.
        planned: u32,
    },
}

pub(super) fn abort(stop: Stop) -> Abort {
    match stop {
        Stop::Crossing => Abort::Crossing,
        Stop::Locked => Abort::Locked,
        Stop::Error(error) | Stop::Fatal(error) => Abort::Raised(*error),
    }
}

impl Live {
    fn is_query(&self) -> bool {
        matches!(self.work, Work::Select(_))
    }

    /// The first word.
    pub(crate) fn verb(&self) -> &'static str {
        self.work.verb()
    }

    /// Whether it is the cheaper path; it ends if it turns out not to be.
    pub(crate) fn allows(
        &self,
        judged: Judged,
        bound: &Bound,
        execution: &mut Execution<'_>,
        arguments: &[Datum],
        has_code: bool,
    ) -> Result<bool, Abort> {
        let Judged::ByEstimate { planned } = judged else { return Ok(true) };
        let estimate = self.estimate(bound, execution, arguments, true).map_err(abort)?;
        let checks = if has_code { CHECKS_OF_CODE } else { 1 };
        execution.allow_rows(self.most_rows().saturating_mul(checks));
        Ok(self.costs(&estimate, planned).path(self.most_rows()) != ExecutionPath::Analytical)
    }

    /// What it would cost on either path.
    pub(super) fn costs(&self, estimate: &Estimate, planned: u32) -> Costs {
        let mut costs = Costs::of(estimate, planned);
        if matches!(self.work, Work::Change(_)) && self.indexed {
            // The rows that it finds it changes, on either path.
            costs.analytical_ns += costs.transactional_ns;
        }
        costs
    }

    /// Rows that it may look at.
    pub(super) fn most_rows(&self) -> u32 {
        match self.work {
            Work::Change(_) => MOST_ROWS_CHANGED,
            Work::Select(_) | Work::Call(_) => MOST_ROWS_READ,
        }
    }
}

/// Whether an error says that this path cannot do it: not supported, too much memory, too complex.
pub(crate) fn is_refusal(error: &SqlError) -> bool {
    [SqlState::FEATURE_NOT_SUPPORTED, SqlState::OUT_OF_MEMORY, SqlState::STATEMENT_TOO_COMPLEX]
        .contains(&error.state())
}
