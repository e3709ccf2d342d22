//! Statements in one transaction over all partitions that is rolled back in the end, for tests.
//!
//! Responsible for: running statements one after another where each sees what those before it did, taking
//! back what a failed one did, ending without a trace. Not responsible for: how a statement is bound and
//! run (`bind`, `run`, `routines`).
//!
//! Every statement takes the road of procedures: no snapshot sees what the transaction has changed.
//!
//! Invariant: nothing that a trial changes is there after it, whatever happens in it
//! (`tests/behaviour/trials.rs`).

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value};
use albireo_olap::CancelToken;
use albireo_partition::{self as partition, Abort, Route, Transaction};
use albireo_procedure::store::Stop;
use albireo_sql::ast::Statement;
use albireo_sql::classify::{StatementClass, classify, name_of};

use super::bind::Bound;
use super::run::Ran;
use crate::routines::{self, Call, Library, Limits, Notice, RoutineStatement, TransactionStore};
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
        let told = self.notices.iter().filter(|notice| routines::is_for_client(notice));
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
        let ended = self.inner.partitions.crossing(
            &partition::Call::new(Route::Crossing, "trial"),
            |tx| -> Result<(), Abort> {
                let mut perform = |text: &str, values: &[Value], notices: &mut Vec<Notice>| {
                    // The time limit is that of a statement.
                    let limits = self.limits(settings, cancel);
                    let inside = Inside { tx, library: &library, limits: &limits, notices };
                    self.budget(settings, cancel).within(|| inside.run(text, values))
                };
                given = Some(work(&mut Trial { perform: &mut perform, notices: Vec::new() }));
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

/// A statement that is bound.
enum Task {
    Call(Call),
    Bound(Box<Bound>),
}

/// One statement in the transaction.
struct Inside<'i, 'a, 'p> {
    tx: &'i mut Transaction<'a, 'p>,
    library: &'i Arc<Library>,
    limits: &'i Limits,
    notices: &'i mut Vec<Notice>,
}

impl Inside<'_, '_, '_> {
    fn run(mut self, text: &str, values: &[Value]) -> Result<Outcome, SqlError> {
        self.limits.check()?;
        let (task, values) = self.bind(text, values)?;
        let before = self.tx.savepoint();
        let done = self.perform(&task, values);
        if done.is_err() {
            self.tx.roll_back_to(before);
        }
        done
    }

    /// Binds a statement: what to run, with which of the values.
    fn bind<'v>(&self, text: &str, values: &'v [Value]) -> Result<(Task, &'v [Value]), SqlError> {
        match routines::parse(text)? {
            Some(RoutineStatement::Call(function)) => {
                let call = Call::new(self.library, *function, text, values)?;
                return Ok((Task::Call(call), &[]));
            }
            Some(RoutineStatement::Create(definition)) => {
                return Err(refused(&format!("CREATE {}", definition.kind.word().to_uppercase())));
            }
            Some(RoutineStatement::Explain(_)) => return Err(refused("EXPLAIN of a routine")),
            Some(RoutineStatement::Drop(_)) => return Err(refused("DROP of a routine")),
            None => {}
        }
        let mut statement = albireo_sql::parse_one(text)?;
        match classify(&statement)? {
            StatementClass::Query | StatementClass::Change => {}
            _ => return Err(refused(&name_of(&statement))),
        }
        let mut values = values;
        if matches!(statement, Statement::Query(_)) && routines::calls(self.library, &statement) {
            // As such queries do elsewhere: which routine a call means depends on what it is given.
            routines::fill(&mut statement, values)?;
            values = &[];
        }
        let bound = Bound::new(self.library, &statement, text, values, self.tx.partitions());
        bound.map(|bound| (Task::Bound(Box::new(bound)), values)).map_err(explained)
    }

    fn perform(&mut self, task: &Task, values: &[Value]) -> Result<Outcome, SqlError> {
        let start = self.limits.clock.now();
        let mut store = TransactionStore::new(self.tx, &self.library.catalog, self.limits);
        let done = match task {
            Task::Call(call) => call.run(&mut store).map(|rows| (rows.len() as u64, rows)),
            Task::Bound(bound) => match bound.arguments(values) {
                Ok(arguments) => bound.perform(&mut store, &arguments),
                Err(error) => Err(error.into()),
            },
        };
        self.notices.append(&mut store.notices);
        let (count, rows) = done.map_err(|stop| match stop {
            Stop::Error(error) | Stop::Fatal(error) => *error,
            Stop::Crossing => SqlError::new(
                SqlState::INTERNAL_ERROR,
                "a transaction over all partitions asked for another partition",
            ),
        })?;
        let notices = self.notices.clone();
        match task {
            Task::Call(call) => call.outcome(&rows, notices),
            Task::Bound(bound) => {
                let execution = Duration::from_nanos(self.limits.clock.now().saturating_sub(start));
                bound.outcome(Ran { count, rows, notices }, execution)
            }
        }
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
