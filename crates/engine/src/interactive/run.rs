//! One statement of a transaction of several.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{PartitionId, SqlError, SqlState, Value};
use albireo_execute::Execution;
use albireo_olap::{CancelToken, Prepared};
use albireo_partition::{Abort, Call, CallError, Route, Transaction};
use albireo_semantics::Stop;
use albireo_storage::{DatabaseSnapshot, Savepoint, SnapshotScope};

use super::Interactive;
use crate::adapters::scope_of;
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::{Entry, Judged, Live, Parsed, Ran, is_refusal};
use crate::{Database, Outcome};

/// A statement as the connection has it.
pub(crate) enum Statement<'a> {
    /// Its text alone: it may be kept.
    Kept,
    /// Parsed.
    Parsed(Parsed<'a>),
}

/// What a statement came to before everything was taken back.
enum End {
    /// It ran.
    Ran(Result<Outcome, SqlError>),
    /// It is cheaper over a snapshot.
    Dearer,
}

impl Database {
    /// Runs a statement, a query if only `queries` are wanted; `None` if it is not kept.
    ///
    /// # Errors
    /// The statement's; 40001 if somebody has changed what the transaction has read.
    pub(crate) fn run_interactive(
        &self,
        open: &mut Interactive,
        statement: Statement<'_>,
        (text, values, queries): (&str, &[Value], bool),
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        let generation = self.inner.definitions.read();
        let entry = match statement {
            Statement::Kept => {
                let kept = self.inner.statements.get(text, values, *generation);
                kept.filter(|entry| !queries || entry.is_query())?
            }
            Statement::Parsed(parsed) => self.entry(parsed, text, values, *generation),
        };
        let inside = Inside { database: self, settings, cancel, values };
        let step = open.stay_with(*generation).and_then(|()| inside.run(open, &entry));
        // Definitions may change while a query runs over a snapshot.
        drop(generation);
        let done = step.and_then(|step| match step {
            Step::Done(outcome) => Ok(outcome),
            Step::Query(prepared, snapshot) => {
                self.run_prepared(&prepared, values, &snapshot, settings, cancel).map(Outcome::Rows)
            }
        });
        // What it gave may have been read before somebody changed what was read elsewhere.
        Some(open.check(&entry.library.catalog).and(done))
    }
}

/// What is left to do of a statement.
enum Step {
    Done(Outcome),
    /// A query, over a snapshot that shows what the transaction has written.
    Query(Arc<Prepared>, Arc<DatabaseSnapshot>),
}

struct Inside<'a> {
    database: &'a Database,
    settings: &'a Settings,
    cancel: &'a CancelToken,
    values: &'a [Value],
}

impl Inside<'_> {
    fn run(&self, open: &mut Interactive, entry: &Entry) -> Result<Step, SqlError> {
        open.check(&entry.library.catalog)?;
        let limits = self.database.limits(self.settings, self.cancel);
        limits.check()?;
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let live = entry.live(self.database.inner.partitions.count());
        if let Ok(live) = &live
            && let Some(judged) = self.database.judged(entry, live)
            && let Some(outcome) = self.live(open, entry, live, judged, &limits)?
        {
            return Ok(Step::Done(outcome));
        }
        if bound.change().is_some() {
            return self.changed(open, entry, &limits).map(Step::Done);
        }
        if entry.calls {
            let unknown = || SqlError::new(SqlState::INTERNAL_ERROR, "a call for the other path");
            return Err(live.err().unwrap_or_else(unknown));
        }
        let budget = self.database.budget(self.settings, self.cancel);
        let prepared = budget.within(|| self.database.plan_of(entry))?;
        let snapshot = self.snapshot(open, entry, &prepared)?;
        Ok(Step::Query(prepared, snapshot))
    }

    /// Runs it on live rows; `None` if it is cheaper over a snapshot.
    fn live(
        &self,
        open: &mut Interactive,
        entry: &Entry,
        live: &Live,
        judged: Judged,
        limits: &Limits,
    ) -> Result<Option<Outcome>, SqlError> {
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let arguments = bound.arguments(self.values)?;
        let run = |open: &mut Interactive, tx: &mut Transaction, in_place| -> Result<End, Abort> {
            let (catalog, interrupts) = (&bound.library.catalog, &limits.interrupts);
            open.enter(tx, in_place, catalog)?;
            let since = tx.savepoint();
            tx.note_reads();
            let start = interrupts.clock.now();
            let mut execution = Execution::new(tx, catalog, interrupts);
            if !live.allows(judged, bound, &mut execution, &arguments)? {
                return Ok(End::Dearer);
            }
            let done = live.perform(bound, &mut execution, &arguments, None, true);
            let (too_many, notices) = (execution.met_too_many_rows(), execution.take_notices());
            let refused = match &done {
                Err(Stop::Error(error) | Stop::Fatal(error)) => judged != Judged::Runs && is_refusal(error),
                _ => false,
            };
            if too_many || refused {
                tx.roll_back_to(since);
                return Ok(End::Dearer);
            }
            let lasted = Duration::from_nanos(interrupts.clock.now().saturating_sub(start));
            let done = match done {
                Err(Stop::Crossing) => return Err(Abort::Crossing),
                Err(Stop::Error(error) | Stop::Fatal(error)) => Err(*error),
                Ok((count, rows)) => bound.outcome(Ran { count, rows, notices }, lasted),
            };
            Ok(End::Ran(finish(open, tx, (since, entry.locks), done)))
        };
        let alone = match self.database.route_of(bound, live, &arguments) {
            _ if open.needs_all(self.database.inner.partitions.count()) => None,
            Route::Crossing => None,
            Route::Partition(partition) => Some(partition),
            Route::Key(key) => Some(self.database.inner.partitions.partition_of_key(key)),
        };
        let end = match alone.map(|partition| self.in_partition(open, (partition, live.verb()), run)) {
            None | Some(Err(CallError::Aborted(Abort::Crossing))) => self.over_all(open, live.verb(), run)?,
            Some(end) => end.map_err(|error| self.database.explain_call(error))?,
        };
        match end {
            End::Ran(done) => done.map(Some),
            End::Dearer => Ok(None),
        }
    }

    fn snapshot(
        &self,
        open: &mut Interactive,
        entry: &Entry,
        prepared: &Arc<Prepared>,
    ) -> Result<Arc<DatabaseSnapshot>, SqlError> {
        let scope = scope_of(std::slice::from_ref(prepared));
        self.over_all(open, "SELECT", |open, tx, in_place| {
            open.enter(tx, in_place, &entry.library.catalog)?;
            let since = tx.savepoint();
            note_tables(tx, &scope);
            let snapshot = self.snapshot_of(tx, &scope);
            open.keep(tx, since, entry.locks);
            snapshot
        })
    }

    fn snapshot_of(
        &self,
        tx: &mut Transaction,
        scope: &SnapshotScope,
    ) -> Result<Arc<DatabaseSnapshot>, Abort> {
        let snapshot = tx.snapshot(self.database.inner.partitions.registry(), scope);
        snapshot.map_err(|spent| Abort::Raised(crate::errors::session(spent.into())))
    }

    /// Makes a change whose rows a query over a snapshot finds.
    fn changed(&self, open: &mut Interactive, entry: &Entry, limits: &Limits) -> Result<Outcome, SqlError> {
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let (settings, cancel) = (self.settings, self.cancel);
        let queried =
            match crate::dml::Queried::new(self.database, bound, ("", self.values), settings, cancel) {
                Ok(queried) => queried,
                Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                    let live = entry.live(self.database.inner.partitions.count()).map_err(|_| error)?;
                    let done = self.live(open, entry, live, Judged::Runs, limits)?;
                    let dearer = || SqlError::new(SqlState::INTERNAL_ERROR, "a change for the other path");
                    return done.ok_or_else(dearer);
                }
                Err(error) => return Err(error),
            };
        let arguments = bound.arguments(self.values)?;
        let scope = queried.scope();
        let end = self.over_all(open, queried.verb(), |open, tx, in_place| {
            open.enter(tx, in_place, &bound.library.catalog)?;
            let since = tx.savepoint();
            note_tables(tx, &scope);
            let snapshot = self.snapshot_of(tx, &scope)?;
            let start = limits.interrupts.clock.now();
            let done = queried.make_with(tx, snapshot, &arguments, limits);
            let lasted = Duration::from_nanos(limits.interrupts.clock.now().saturating_sub(start));
            let done = match done {
                Err(Abort::Crossing) => return Err(Abort::Crossing),
                Err(abort) => Err(self.database.explain_call(CallError::Aborted(abort))),
                Ok(ran) => bound.outcome(ran, lasted),
            };
            Ok(End::Ran(finish(open, tx, (since, entry.locks), done)))
        })?;
        match end {
            End::Ran(done) => done,
            End::Dearer => Err(SqlError::new(SqlState::INTERNAL_ERROR, "a change that did not run")),
        }
    }

    /// Runs `work` in one partition, where what it writes stays as long as nobody else comes.
    fn in_partition<R>(
        &self,
        open: &mut Interactive,
        (partition, name): (PartitionId, &str),
        work: impl FnOnce(&mut Interactive, &mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let call = self.call(open, Route::Partition(partition), name);
        let parked = Arc::clone(&open.parked);
        self.database
            .inner
            .partitions
            .part(partition, &call, &parked, |tx, in_place| work(open, tx, in_place))
    }

    /// Runs `work` over all partitions, and takes everything back.
    fn over_all<R>(
        &self,
        open: &mut Interactive,
        name: &str,
        work: impl FnOnce(&mut Interactive, &mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, SqlError> {
        let call = self.call(open, Route::Crossing, name);
        let mut given = None;
        let ended = self.database.inner.partitions.crossing(&call, |tx| -> Result<(), Abort> {
            given = Some(work(open, tx, false)?);
            Err(Abort::TakenBack)
        });
        match (ended, given) {
            (Err(CallError::Aborted(Abort::TakenBack)), Some(given)) => Ok(given),
            (Err(error), _) => Err(self.database.explain_call(error)),
            (Ok(()), _) => unreachable!("the transaction ends with an error"),
        }
    }

    fn call<'n>(&self, open: &Interactive, route: Route, name: &'n str) -> Call<'n> {
        let synchronous = self.settings.synchronous;
        Call { synchronous, time_us: Some(open.began_us), ..Call::new(route, name) }
    }
}

/// A statement that failed has read, and written nothing.
fn finish(
    open: &mut Interactive,
    tx: &mut Transaction,
    (since, locks): (Savepoint, bool),
    done: Result<Outcome, SqlError>,
) -> Result<Outcome, SqlError> {
    if done.is_err() {
        tx.roll_back_to(since);
    }
    open.keep(tx, since, locks);
    done
}

/// The tables that queries read are read whole.
fn note_tables(tx: &mut Transaction, scope: &SnapshotScope) {
    tx.note_reads();
    let SnapshotScope::Tables(tables) = scope else { unreachable!("a statement names its tables") };
    for site in tx.sites().collect::<Vec<_>>() {
        tables.iter().for_each(|(table, _)| tx.note_table(site, *table));
    }
}
