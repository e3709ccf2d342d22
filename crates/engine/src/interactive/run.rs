//! One statement of a transaction of several.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{PartitionId, SqlError, SqlState, Value};
use albireo_execute::Execution;
use albireo_olap::{CancelToken, Prepared};
use albireo_partition::{Abort, Call, CallError, Held, Reader, Route, Transaction};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_storage::{DatabaseSnapshot, Savepoint, SnapshotScope, unless_away};

use super::Interactive;
use super::locks::lock_tables;
use crate::adapters::scope_of;
use crate::dml::{Queried, Seen, TRIES};
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::{Entry, Judged, Live, Parsed, Ran, is_refusal};
use crate::{Database, Outcome};

/// A statement as the connection has it.
#[derive(Clone, Copy)]
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
    /// It did nothing: it must wait first.
    Waits(Held),
    /// It did nothing: others have changed what it has found.
    Stale,
}

impl Database {
    /// Runs a statement, a query if only `queries` are wanted, once nobody else has locked what it locks or changes;
    /// `None` if it is not kept.
    ///
    /// # Errors
    /// The statement's; 40001 if somebody has changed what the transaction has read; 40P01, 55P03.
    pub(crate) fn run_interactive(
        &self,
        open: &mut Interactive,
        statement: Statement<'_>,
        (text, values, queries): (&str, &[Value], bool),
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        let limits = self.limits(settings, cancel);
        loop {
            let generation = self.inner.definitions.read();
            let entry = match statement {
                Statement::Kept => {
                    let kept = self.inner.statements.get(text, values, *generation);
                    kept.filter(|entry| !queries || entry.is_query())?
                }
                Statement::Parsed(parsed) => self.entry(parsed, text, values, *generation),
            };
            let inside = Inside { database: self, settings, cancel, values, limits: &limits };
            let step = open.stay_with(*generation).and_then(|()| inside.run(open, &entry));
            // Definitions may change while a query runs over a snapshot, and while a statement waits.
            drop(generation);
            let catalog = &entry.library.catalog;
            let done = step.and_then(|step| match step {
                Step::Done(outcome) => Ok(Some(outcome)),
                Step::Query(prepared, snapshot) => {
                    let rows = self.run_prepared(&prepared, values, &snapshot, settings, cancel)?;
                    Ok(Some(Outcome::Rows(rows)))
                }
                Step::Waits(held) => {
                    let goes_on = || open.check(catalog);
                    let owner = open.reader.owner();
                    let how = (settings, &limits, open.activity());
                    self.wait_for_lock(owner, &held, how, &goes_on).map(|()| None)
                }
            });
            if let Some(done) = open.check_answer(catalog).and(done).transpose() {
                return Some(done);
            }
        }
    }
}

/// What is left to do of a statement.
enum Step {
    Done(Outcome),
    /// A query, over a snapshot that shows what the transaction has written.
    Query(Arc<Prepared>, Arc<DatabaseSnapshot>),
    /// All, once somebody has released a lock.
    Waits(Held),
}

struct Inside<'a> {
    database: &'a Database,
    settings: &'a Settings,
    cancel: &'a CancelToken,
    values: &'a [Value],
    limits: &'a Limits,
}

impl Inside<'_> {
    fn run(&self, open: &mut Interactive, entry: &Entry) -> Result<Step, SqlError> {
        open.at_one_moment = false;
        open.check(&entry.library.catalog)?;
        self.limits.check()?;
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        if bound.change().is_some() || entry.calls {
            self.database.check_room()?;
        }
        let live = entry.live(self.database.inner.partitions.count());
        if let Ok(live) = &live
            && let Some(judged) = self.database.judged(entry, live)
            && let Some(step) = self.live(open, entry, live, judged)?
        {
            return Ok(step);
        }
        if bound.change().is_some() {
            return self.changed(open, entry);
        }
        if entry.calls {
            let unknown = || SqlError::new(SqlState::INTERNAL_ERROR, "a call for the other path");
            return Err(live.err().unwrap_or_else(unknown));
        }
        let budget = self.database.budget(self.settings, self.cancel);
        let prepared = budget.within(|| self.database.plan_of(entry))?;
        Ok(match self.snapshot(open, entry, &prepared)? {
            Ok(snapshot) => Step::Query(prepared, snapshot),
            Err(held) => Step::Waits(held),
        })
    }

    /// Runs it on live rows; `None` if it is cheaper over a snapshot.
    fn live(
        &self,
        open: &mut Interactive,
        entry: &Entry,
        live: &Live,
        judged: Judged,
    ) -> Result<Option<Step>, SqlError> {
        let limits = self.limits;
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let arguments = bound.arguments(self.values)?;
        // Machine code takes no lock: a serial transaction needs none.
        let code = match self.settings.interprets || entry.locks.any {
            true => None,
            false => live.code(bound),
        };
        let run = |open: &mut Interactive, tx: &mut Transaction, in_place| -> Result<End, Abort> {
            let (catalog, interrupts) = (&bound.library.catalog, &limits.interrupts);
            open.enter(tx, in_place, catalog)?;
            let since = tx.savepoint();
            tx.note_reads(&open.reader);
            let start = bound.has_columns().then(|| interrupts.clock.now());
            let mut execution = Execution::new(tx, catalog, interrupts);
            if !live.allows(judged, bound, &mut execution, &arguments, code.is_some())? {
                return Ok(End::Dearer);
            }
            let done = live.perform(bound, &mut execution, &arguments, code, true);
            let (too_many, notices) = (execution.met_too_many_rows(), execution.take_notices());
            if let Some(abort) = self.for_room(&done) {
                return Err(abort);
            }
            let refused = match &done {
                Err(Stop::Error(error) | Stop::Fatal(error)) => judged != Judged::Runs && is_refusal(error),
                _ => false,
            };
            if too_many || refused {
                tx.roll_back_to(since);
                return Ok(End::Dearer);
            }
            let lasted = start.map_or(0, |start| interrupts.clock.now().saturating_sub(start));
            let lasted = Duration::from_nanos(lasted);
            let done = match done {
                Err(Stop::Crossing) => return Err(Abort::Crossing),
                Err(Stop::Locked) => return Ok(waits(tx, since)),
                Err(Stop::Error(error) | Stop::Fatal(error)) => Err(*error),
                Ok((count, rows)) => bound.outcome(Ran { count, rows, notices }, lasted),
            };
            Ok(finish(open, tx, since, done))
        };
        let alone = match self.database.route_of(bound, live, &arguments) {
            _ if open.needs_all(self.database.inner.partitions.count()) => None,
            Route::Crossing => None,
            Route::Partition(partition) => Some(partition),
            Route::Key(key) => Some(self.database.inner.partitions.partition_of_key(key)),
        };
        let end = match alone.map(|partition| self.in_partition(open, (partition, live.verb()), run)) {
            None | Some(Err(CallError::Aborted(Abort::Crossing))) => {
                self.across(open, alone, live.verb(), run)
            }
            Some(end) => end.map_err(|error| self.database.explain_call(error)),
        };
        match end {
            Ok(End::Ran(done)) => done.map(|outcome| Some(Step::Done(outcome))),
            Ok(End::Waits(held)) => Ok(Some(Step::Waits(held))),
            Ok(End::Dearer | End::Stale) => Ok(None),
            Err(error) if judged != Judged::Runs && is_refusal(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How a statement ends that is run again because room can be made for it.
    fn for_room<T>(&self, done: &Result<T, Stop>) -> Option<Abort> {
        let Err(Stop::Error(error) | Stop::Fatal(error)) = done else { return None };
        let abort = Abort::Raised((**error).clone());
        self.database.inner.partitions.runs_again(&abort).then_some(abort)
    }

    fn snapshot(
        &self,
        open: &mut Interactive,
        entry: &Entry,
        prepared: &Arc<Prepared>,
    ) -> Result<Result<Arc<DatabaseSnapshot>, Held>, SqlError> {
        let scope = scope_of(std::slice::from_ref(prepared));
        self.over_all(open, "SELECT", |open, tx, in_place| {
            open.enter(tx, in_place, &entry.library.catalog)?;
            let since = tx.savepoint();
            note_tables(tx, &open.reader, &scope);
            if let Some(held) = lock_tables(tx, &scope, entry.locks, &entry.library.catalog)? {
                return Ok(Err(held));
            }
            let snapshot = self.snapshot_of(tx, &scope);
            open.keep(tx, since);
            snapshot.map(Ok)
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
    fn changed(&self, open: &mut Interactive, entry: &Entry) -> Result<Step, SqlError> {
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let (settings, cancel) = (self.settings, self.cancel);
        let text = ("", self.values);
        let queried = match Queried::new(self.database, bound, text, settings, cancel, self.limits) {
            Ok(queried) => queried,
            Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                let live = entry.live(self.database.inner.partitions.count()).map_err(|_| error)?;
                let done = self.live(open, entry, live, Judged::Runs)?;
                let dearer = || SqlError::new(SqlState::INTERNAL_ERROR, "a change for the other path");
                return done.ok_or_else(dearer);
            }
            Err(error) => return Err(error),
        };
        let arguments = bound.arguments(self.values)?;
        let scope = queried.scope();
        let may_find = !open.has_written_of(&scope);
        for tries in 0.. {
            let found = match may_find && tries < TRIES {
                true => queried.find(&scope)?,
                false => None,
            };
            match self.change(open, entry, &queried, (&arguments, found))? {
                End::Ran(done) => return done.map(Step::Done),
                End::Waits(held) => return Ok(Step::Waits(held)),
                End::Stale => {}
                End::Dearer => break,
            }
        }
        Err(SqlError::new(SqlState::INTERNAL_ERROR, "a change that did not run"))
    }

    /// Makes a change of what was `found` while nothing was owned, and of the snapshot that showed it; if nothing was, the query
    /// runs now, while everybody waits.
    fn change(
        &self,
        open: &mut Interactive,
        entry: &Entry,
        queried: &Queried<'_>,
        (arguments, found): (&[Datum], Option<Seen>),
    ) -> Result<End, SqlError> {
        let (limits, scope) = (self.limits, queried.scope());
        let (mut seen, results) = found.unzip();
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        self.over_all(open, queried.verb(), |open, tx, in_place| {
            open.enter(tx, in_place, &bound.library.catalog)?;
            let since = tx.savepoint();
            // What nobody sees any more need not be copied when it is written.
            if results.is_some() && !seen.take().is_some_and(|then| tx.is_current(&then)) {
                return Ok(End::Stale);
            }
            note_tables(tx, &open.reader, &scope);
            if let Some(held) = lock_tables(tx, &scope, entry.locks, &bound.library.catalog)? {
                return Ok(End::Waits(held));
            }
            let start = limits.interrupts.clock.now();
            let done = match &results {
                None => {
                    let snapshot = self.snapshot_of(tx, &scope)?;
                    queried.make_with(tx, snapshot, arguments)
                }
                Some(results) => {
                    match unless_away(|| queried.make_of(tx, results, arguments)) {
                        Ok(done) => done,
                        Err(away) => {
                            // Nothing of it is left, so what was seen is so still.
                            tx.roll_back_to(since);
                            seen = self.snapshot_of(tx, &scope).ok();
                            return Err(Abort::Away(away));
                        }
                    }
                }
            };
            let lasted = Duration::from_nanos(limits.interrupts.clock.now().saturating_sub(start));
            let done = match done {
                Err(Abort::Crossing) => return Err(Abort::Crossing),
                Err(Abort::Locked) => return Ok(waits(tx, since)),
                Err(abort) if self.database.inner.partitions.runs_again(&abort) => return Err(abort),
                Err(abort) => Err(self.database.explain_call(CallError::Aborted(abort))),
                Ok(ran) => bound.outcome(ran, lasted),
            };
            Ok(finish(open, tx, since, done))
        })
    }

    /// Runs `work` in one partition, where what it writes stays as long as nobody else comes.
    fn in_partition<R>(
        &self,
        open: &mut Interactive,
        (partition, name): (PartitionId, &str),
        mut work: impl FnMut(&mut Interactive, &mut Transaction, bool) -> Result<R, Abort>,
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
        work: impl FnMut(&mut Interactive, &mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, SqlError> {
        self.across(open, None, name, work)
    }

    /// As [`Inside::over_all`]; if a `first` partition is given, over that and those that `work` reaches for.
    fn across<R>(
        &self,
        open: &mut Interactive,
        first: Option<PartitionId>,
        name: &str,
        mut work: impl FnMut(&mut Interactive, &mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, SqlError> {
        let (call, partitions) = (self.call(open, Route::Crossing, name), &self.database.inner.partitions);
        let mut given = None;
        let run = |tx: &mut Transaction| -> Result<(), Abort> {
            given = Some(work(open, tx, false)?);
            Err(Abort::TakenBack)
        };
        let ended = match first {
            Some(first) => partitions.transact_over([first], &call, run),
            None => partitions.crossing(&call, run),
        };
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

/// A statement ends. One that failed has read, and written nothing; one that has changed a row which somebody has locked
/// has done nothing.
fn finish(
    open: &mut Interactive,
    tx: &mut Transaction,
    since: Savepoint,
    done: Result<Outcome, SqlError>,
) -> End {
    if done.is_err() {
        tx.roll_back_to(since);
        tx.forget_locks();
    }
    if let Some(held) = tx.lock_in_the_way(since) {
        tx.roll_back_to(since);
        return End::Waits(held);
    }
    open.keep(tx, since);
    End::Ran(done)
}

/// A statement that met a lock has done nothing.
fn waits(tx: &mut Transaction, since: Savepoint) -> End {
    tx.roll_back_to(since);
    match tx.take_wait() {
        Some(held) => End::Waits(held),
        None => End::Dearer,
    }
}

/// The tables that queries read are read whole.
fn note_tables(tx: &mut Transaction, reader: &Arc<Reader>, scope: &SnapshotScope) {
    tx.note_reads(reader);
    let SnapshotScope::Tables(tables) = scope else { unreachable!("a statement names its tables") };
    for site in tx.sites().collect::<Vec<_>>() {
        tables.iter().for_each(|(table, _)| tx.note_table(site, *table));
    }
}
