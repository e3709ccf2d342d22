//! Transactions of several statements: BEGIN, think, COMMIT.
//!
//! Responsible for: what such a transaction has written, where it has read, its savepoints, COMMIT and ROLLBACK; its
//! statements (`run`). Not responsible for: what its partitions know of it (`albireo_partition`), the connection's state
//! between its statements (`connection`).
//!
//! It is optimistic. Each statement is a short transaction of the partitions that it concerns.
//! What it writes stays in place until somebody else comes, who takes it back and keeps it as a record; then the next
//! statement writes it again. So it sees its own writes whichever way it runs, and nobody else sees them. What it has
//! read is entered in the partitions; whoever commits a change of it ends the transaction, which learns of it at its
//! next statement or at COMMIT: 40001. As long as that has not happened, all that it has read is as it was, so its
//! statements see the present state as one. COMMIT makes final what is in place, or writes it again.
//!
//! Where others keep versions of rows, so that a transaction goes on reading what was there when it began, this one
//! moves on to the present with each statement, or ends. Reads that must never be disturbed belong into a READ ONLY
//! transaction, which has a snapshot.
//!
//! | level | ends when somebody changes |
//! |---|---|
//! | SERIALIZABLE, REPEATABLE READ | what it has read or written |
//! | READ COMMITTED | rows and unique keys that it has written, or read FOR UPDATE or FOR SHARE |
//!
//! I-1 What a transaction commits is what it would have done, and told its client, had it run at the moment of its
//! COMMIT (SERIALIZABLE). One that has written nothing did run at the moment of its last statement.
//! I-2 A transaction that is open holds no partition. It holds no row but what it has locked by SELECT ... FOR UPDATE or
//! FOR SHARE, for which other such transactions wait, on their own threads; serial ones do not.
//!
//! Papers: Larson and others, *High-Performance Concurrency Control Mechanisms for Main-Memory Databases*, VLDB 2012
//! (optimistic, §3); Neumann and others, *Fast Serializable Multi-Version Concurrency Control for Main-Memory Database
//! Systems*, SIGMOD 2015.

mod locks;
mod registry;
mod run;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, SqlState, TableId};
use albireo_partition::{Abort, Call, Conflict, LockOwner, Parked, PartWritten, Reader, Route, Transaction};
use albireo_sql::Catalog;
use albireo_sql::classify::Isolation;
use albireo_storage::{Savepoint as Mark, SnapshotScope};

use crate::Database;

pub(crate) use registry::{Activity, OpenTransactions, Overdue, Registered};
pub(crate) use run::Statement;

/// A transaction between two of its statements.
pub(crate) struct Interactive {
    isolation: Isolation,
    reader: Arc<Reader>,
    /// Of the definitions that its statements were bound to.
    generation: Option<u64>,
    /// When it began, in microseconds since 1970: what now() is.
    began_us: i64,
    /// What it has written, where that is not in place.
    parked: Arc<Parked>,
    /// Whether it has written anything.
    wrote: bool,
    /// The tables that it has written, whether that was taken back or not.
    tables: BTreeSet<TableId>,
    /// The partitions in which it is entered.
    entered: BTreeSet<PartitionId>,
    /// Whether its last statement owned every partition in which it is entered: then all that it has read was so at that
    /// one moment, whatever has been changed since.
    at_one_moment: bool,
    savepoints: Vec<Savepoint>,
    /// What others see of it.
    activity: Option<Arc<Activity>>,
    /// It was ended because it took too long.
    ended: Option<Overdue>,
    /// How many savepoints there were so far: a lock is of the step that took it.
    step: u32,
}

struct Savepoint {
    name: String,
    written: Vec<PartWritten>,
    /// The step that it begins.
    step: u32,
}

impl Interactive {
    fn new(isolation: Isolation, began_us: i64, owner: &Arc<LockOwner>, parked: Arc<Parked>) -> Self {
        Self {
            isolation,
            reader: Reader::new(owner),
            generation: None,
            began_us,
            parked,
            wrote: false,
            tables: BTreeSet::new(),
            entered: BTreeSet::new(),
            at_one_moment: false,
            savepoints: Vec::new(),
            activity: None,
            ended: None,
            step: 0,
        }
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Others see from now on what it does.
    pub(crate) fn show(&mut self, activity: &Arc<Activity>) {
        self.activity = Some(Arc::clone(activity));
    }

    /// What others see of it.
    fn activity(&self) -> Option<&Activity> {
        self.activity.as_deref()
    }

    /// Changes the level.
    ///
    /// # Errors
    /// 25001 if it has run a statement.
    pub(crate) fn set_isolation(&mut self, isolation: Isolation) -> Result<(), SqlError> {
        if self.generation.is_some() {
            let text = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
            return Err(SqlError::new(SqlState(*b"25001"), text));
        }
        self.isolation = isolation;
        Ok(())
    }

    /// Forgets a savepoint and those since.
    ///
    /// # Errors
    /// 3B001 without such a savepoint.
    pub(crate) fn release(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.position(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    fn position(&self, name: &str) -> Result<usize, SqlError> {
        self.savepoints
            .iter()
            .rposition(|savepoint| savepoint.name == name)
            .ok_or_else(|| SqlError::new(SqlState(*b"3B001"), format!("savepoint \"{name}\" does not exist")))
    }

    #[cfg(test)]
    pub(crate) fn has_written(&self) -> bool {
        self.wrote
    }

    /// The step in which it is: how many savepoints there were.
    pub(crate) fn step(&self) -> u32 {
        self.step
    }

    /// The step that its last savepoint began.
    pub(crate) fn step_of_savepoint(&self) -> u32 {
        self.savepoints.last().map_or(0, |savepoint| savepoint.step)
    }

    /// Whether reads count, not writes alone.
    fn keeps_reads(&self) -> bool {
        self.isolation != Isolation::ReadCommitted
    }

    /// Whether it has written one of these tables.
    fn has_written_of(&self, scope: &SnapshotScope) -> bool {
        self.tables.iter().any(|table| scope.columns_of(*table).is_some())
    }

    /// Whether its next statement needs all of so many partitions, because it has written what they share.
    fn needs_all(&self, partitions: u16) -> bool {
        partitions > 1 && self.parked.has_shared()
    }

    /// A statement begins: the partitions become what they are for this transaction, if they are not so any more.
    fn enter(&self, tx: &mut Transaction, in_place: bool, catalog: &Catalog) -> Result<(), Abort> {
        self.check(catalog)?;
        match in_place {
            true => Ok(()),
            false => self.write_again(tx),
        }
    }

    fn write_again(&self, tx: &mut Transaction) -> Result<(), Abort> {
        for part in self.parked.parts() {
            if owns(tx, &part) {
                tx.write_again(&part)?;
            }
        }
        Ok(())
    }

    /// A statement ends: keeps what it has read, locked, and written since `since`.
    fn keep(&mut self, tx: &mut Transaction, since: Mark) {
        tx.enter_reads(&self.reader, since, self.keeps_reads(), self.step);
        self.entered.extend(tx.sites().map(|site| tx.partition(site)));
        self.at_one_moment = self.entered.len() == tx.sites().count();
        self.wrote |= tx.changes() > 0;
        self.tables.extend(tx.tables_written(since));
        if tx.is_crossing() {
            // It is taken back.
            tx.park(&self.parked);
        }
    }

    /// # Errors
    /// 25P03 or 25P04 if it was ended because it took too long.
    fn check_time(&self) -> Result<(), SqlError> {
        self.ended.map_or(Ok(()), |overdue| Err(overdue.error()))
    }

    /// # Errors
    /// 40001 if somebody has changed what it has read; as [`Interactive::check_time`].
    fn check(&self, catalog: &Catalog) -> Result<(), SqlError> {
        self.check_time()?;
        match self.reader.conflict() {
            Some(conflict) => Err(failed(conflict, catalog)),
            None => Ok(()),
        }
    }

    /// Whether what its last statement gave may be told to the client.
    ///
    /// # Errors
    /// 40001 if it may have been read before somebody changed what was read in another partition; as
    /// [`Interactive::check_time`].
    fn check_answer(&self, catalog: &Catalog) -> Result<(), SqlError> {
        match self.at_one_moment {
            true => self.check_time(),
            false => self.check(catalog),
        }
    }

    /// # Errors
    /// 40001 if the definitions are others than those of its statements so far.
    fn stay_with(&mut self, generation: u64) -> Result<(), SqlError> {
        let known = *self.generation.get_or_insert(generation);
        match known == generation || self.entered.is_empty() {
            true => {
                self.generation = Some(generation);
                Ok(())
            }
            false => Err(serialization_failure().with_detail("A definition was changed meanwhile.")),
        }
    }
}

fn owns(tx: &Transaction, part: &PartWritten) -> bool {
    match part.partition {
        Some(partition) => tx.owns(partition),
        None => tx.owns_all(),
    }
}

fn serialization_failure() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to changes by another transaction",
    )
    .with_hint("The transaction might succeed if it is run again.")
}

fn failed(conflict: &Conflict, catalog: &Catalog) -> SqlError {
    let detail = match catalog.table(conflict.table) {
        Some(table) => {
            let values: Vec<String> = conflict.row.iter().map(ToString::to_string).collect();
            let names: Vec<&str> =
                conflict.columns.iter().map(|column| table.column_def(*column).name.as_str()).collect();
            format!(
                "Row ({})=({}) of table \"{}\" was changed by {}.",
                names.join(", "),
                values.join(", "),
                table.name,
                conflict.rival
            )
        }
        None => format!("A table was changed by {}.", conflict.rival),
    };
    serialization_failure().with_detail(detail)
}

impl Database {
    /// A transaction begins.
    pub(crate) fn begin_interactive(&self, isolation: Isolation, owner: &Arc<LockOwner>) -> Interactive {
        let parked = self.inner.partitions.new_parked();
        Interactive::new(isolation, self.inner.env.clock.unix_us(), owner, parked)
    }

    /// Makes final what it has written.
    ///
    /// # Errors
    /// 40001 if somebody has changed what it has read; then nothing is left of it.
    pub(crate) fn commit_interactive(
        &self,
        mut open: Interactive,
        synchronous: Option<bool>,
    ) -> Result<(), SqlError> {
        let done = match open.wrote {
            true => self.write_for_good(&mut open, synchronous),
            false => open.check_time(),
        };
        if done.is_err() || !open.wrote {
            self.end_interactive(&open);
        }
        self.end_locks(&open);
        done
    }

    fn write_for_good(&self, open: &mut Interactive, synchronous: Option<bool>) -> Result<(), SqlError> {
        let generation = self.inner.definitions.read();
        open.stay_with(*generation)?;
        let catalog = self.catalog();
        let name = "a transaction that committed";
        let call = Call { synchronous, time_us: Some(open.began_us), ..Call::new(Route::Crossing, name) };
        let work = |tx: &mut Transaction, in_place: bool| {
            open.check(&catalog)?;
            if !in_place {
                open.write_again(tx)?;
            }
            // Not told of its own changes. If it has to be run again, it is told of others' until then.
            tx.leave(&open.reader);
            Ok(())
        };
        let partitions = &self.inner.partitions;
        let committed = match (open.entered.len(), open.entered.first()) {
            (1, Some(only)) if !open.needs_all(partitions.count()) => {
                partitions.last_part(*only, &call, &open.parked, work)
            }
            _ if open.needs_all(partitions.count()) => partitions.crossing(&call, |tx| work(tx, false)),
            _ => partitions.transact_over(open.entered.clone(), &call, |tx| work(tx, false)),
        };
        committed.map_err(|error| self.explain_call(error))
    }

    /// Ends a transaction that has taken too long; its next statement, and COMMIT, say so.
    pub(crate) fn expire(&self, open: &mut Interactive, overdue: Overdue) {
        if open.ended.is_none() {
            open.ended = Some(overdue);
            self.end_interactive(open);
        }
    }

    /// Forgets a transaction that is over.
    pub(crate) fn end_interactive(&self, open: &Interactive) {
        for partition in &open.entered {
            self.inner.partitions.forget_part(*partition, &open.parked, &open.reader);
        }
        self.end_locks(open);
    }

    fn end_locks(&self, open: &Interactive) {
        open.reader.end();
        self.inner.advisory.release_since(open.reader.owner(), 0);
    }

    /// SAVEPOINT.
    pub(crate) fn set_savepoint(&self, open: &mut Interactive, name: String) {
        self.put_away(open);
        open.step += 1;
        open.savepoints.push(Savepoint { name, written: open.parked.parts(), step: open.step });
    }

    /// Forgets what was written since a savepoint, and the savepoints since.
    ///
    /// # Errors
    /// 3B001 without such a savepoint.
    pub(crate) fn roll_back_to(&self, open: &mut Interactive, name: &str) -> Result<(), SqlError> {
        let at = open.position(name)?;
        self.put_away(open);
        open.parked.set(open.savepoints[at].written.clone());
        open.wrote = !open.savepoints[at].written.is_empty();
        open.savepoints.truncate(at + 1);
        self.release_since(open, open.savepoints[at].step);
        Ok(())
    }

    /// Nothing of it is in place any more.
    fn put_away(&self, open: &Interactive) {
        open.entered.iter().for_each(|partition| self.inner.partitions.vacate(*partition));
    }
}
