//! Statements in one transaction over all partitions that is rolled back in the end, for tests.
//!
//! Responsible for: running statements one after another where each sees what those before it did, taking
//! back what a failed one did, ending without a trace. Not responsible for: how a statement is bound and
//! run (`bind`, `run`, `routines`).
//!
//! Every statement takes the transactional path: no snapshot sees what the transaction has changed.
//!
//! Invariant: nothing that a trial changes is there after it, whatever happens in it
//! (`tests/behaviour/trials.rs`).

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value};
use albireo_execute::{Execution, Notice};
use albireo_olap::CancelToken;
use albireo_partition::{self as partition, Abort, Route, Transaction};
use albireo_semantics::Stop;
use albireo_sql::classify::{StatementClass, classify, name_of};

use super::bind::Parsed;
use super::cache::Entry;
use super::run::Ran;
use crate::routines::{self, Library, Limits, RoutineStatement};
use crate::settings::Settings;
use crate::{Database, Outcome};

/// A transaction that is rolled back in the end: see [`Connection::rolled_back`].
///
/// [`Connection::rolled_back`]: crate::Connection::rolled_back
pub struct Trial<'t> {
    perform: &'t mut Perform<'t>,
    notices: Vec<Notice>,
}

/// Runs one statement; what RAISE tells the client goes to the list, also if the statement fails.
type Perform<'t> = dyn FnMut(&str, &[Value], &mut Vec<Notice>) -> Result<Outcome, SqlError> + 't;

impl Trial<'_> {
    /// Runs one statement with parameters `$1`, `$2`, ...: SELECT, INSERT, UPDATE, DELETE or CALL. It sees
    /// what the statements before it did. If it fails, what it did is taken back, and the next may run.
    ///
    /// # Errors
    /// The statement's. 0A000 for a statement of another kind, and for a query that procedures cannot run.
    /// 57014 once the connection is cancelled.
    pub fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Outcome, SqlError> {
        self.notices.clear();
        (self.perform)(sql, parameters, &mut self.notices)
    }

    /// What RAISE told the client in the latest statement, whether it failed or not.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        let told = self.notices.iter().filter(|notice| notice.is_for_client());
        told.map(|notice| notice.message.as_str())
    }
}

impl Database {
    /// Runs `work` in a transaction over all partitions and rolls it back.
    pub(crate) fn try_out<R>(
        &self,
        settings: &Settings,
        cancel: &CancelToken,
        work: impl FnOnce(&mut Trial<'_>) -> R,
    ) -> Result<R, SqlError> {
        let _fixed = self.inner.definitions.read();
        let library = self.library();
        let mut given = None;
        let ended = self.inner.partitions.crossing_once(
            &partition::Call::new(Route::Crossing, "trial"),
            |tx| -> Result<(), Abort> {
                let mut perform = |text: &str, values: &[Value], notices: &mut Vec<Notice>| {
                    // The time limit is that of a statement.
                    let limits = self.limits(settings, cancel);
                    let inside = Inside { tx, library: &library, limits: &limits, notices };
                    self.budget(settings, cancel).within(|| inside.run(text, values))
                };
                // What the caller has seen of it is not taken back, so it waits for rows that are not in memory.
                let mut trial = Trial { perform: &mut perform, notices: Vec::new() };
                given = Some(albireo_storage::waiting(|| work(&mut trial)));
                Err(Abort::raise(SqlState::QUERY_CANCELED, "the transaction is one that is rolled back"))
            },
        );
        match (given, ended) {
            (Some(given), _) => Ok(given),
            (None, Err(error)) => Err(self.explain_call(error)),
            (None, Ok(())) => unreachable!("the transaction ends with an error"),
        }
    }
}

/// One statement in the transaction.
struct Inside<'i> {
    tx: &'i mut Transaction,
    library: &'i Arc<Library>,
    limits: &'i Limits,
    notices: &'i mut Vec<Notice>,
}

impl Inside<'_> {
    fn run(mut self, text: &str, values: &[Value]) -> Result<Outcome, SqlError> {
        self.limits.check()?;
        let entry = self.bind(text, values)?;
        let before = self.tx.savepoint();
        let done = self.perform(&entry, values);
        if done.is_err() {
            self.tx.roll_back_to(before);
        }
        done
    }

    fn bind(&self, text: &str, values: &[Value]) -> Result<Entry, SqlError> {
        let entry = |parsed| Entry::new(self.library, parsed, text, values, 0, None);
        match routines::parse(text)? {
            Some(RoutineStatement::Call(function)) => return Ok(entry(Parsed::Call(&function))),
            Some(RoutineStatement::Create(definition)) => {
                return Err(refused(&format!("CREATE {}", definition.kind.word().to_uppercase())));
            }
            Some(RoutineStatement::Explain(_)) => return Err(refused("EXPLAIN of a routine")),
            Some(RoutineStatement::Drop(_)) => return Err(refused("DROP of a routine")),
            None => {}
        }
        let statement = albireo_sql::parse_one(text)?;
        match classify(&statement)? {
            StatementClass::Query | StatementClass::Change => Ok(entry(Parsed::Statement(&statement))),
            _ => Err(refused(&name_of(&statement))),
        }
    }

    fn perform(&mut self, entry: &Entry, values: &[Value]) -> Result<Outcome, SqlError> {
        let (bound, live) = match (&entry.bound, entry.live(self.tx.partitions())) {
            (Ok(bound), Ok(live)) => (bound, live),
            (_, Err(error)) => return Err(explained(error)),
            (Err(error), _) => return Err(explained(error.clone())),
        };
        let Limits { interrupts, interprets, .. } = self.limits;
        let start = interrupts.clock.now();
        let mut execution = Execution::new(self.tx, &self.library.catalog, interrupts);
        let done = match bound.arguments(values) {
            Ok(arguments) => live.perform(bound, &mut execution, &arguments, None, *interprets),
            Err(error) => Err(error.into()),
        };
        self.notices.append(&mut execution.take_notices());
        let (count, rows) = done.map_err(|stop| match stop {
            Stop::Error(error) | Stop::Fatal(error) => *error,
            Stop::Crossing | Stop::Locked => SqlError::new(
                SqlState::INTERNAL_ERROR,
                "a transaction over all partitions asked for another partition",
            ),
        })?;
        let lasted = Duration::from_nanos(interrupts.clock.now().saturating_sub(start));
        bound.outcome(Ran { count, rows, notices: self.notices.clone() }, lasted)
    }
}

/// 0A000 for what no such transaction can do.
fn refused(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in a transaction that is rolled back"))
        .with_hint("Run it before; in a file of tests, put it before the first test.")
}

/// Says of a query that is not supported why not here, although it may be elsewhere.
fn explained(error: SqlError) -> SqlError {
    match error.state() == SqlState::FEATURE_NOT_SUPPORTED && error.hint().is_none() {
        true => error.with_hint("Only queries that a procedure can make see what this transaction changed."),
        false => error,
    }
}
