//! Transactions of several statements: BEGIN, think, COMMIT.
//!
//! Responsible for: what such a transaction has written, where it has read, its savepoints, COMMIT and ROLLBACK; its
//! statements (`run`). Not responsible for: what its partitions know of it (`albireo_partition`), the connection's state
//! between its statements (`connection`).
//!
//! It is optimistic, and nobody waits for it. Each statement is a short transaction of the partitions that it concerns:
//! what the statements before have written is written again, the statement runs, its writes are kept as a record, and
//! everything is taken back. So it sees its own writes whichever way it runs, and nobody else sees them. What it has
//! read is entered in the partitions; whoever commits a change of it ends the transaction, which learns of it at its
//! next statement or at COMMIT: 40001. As long as that has not happened, all that it has read is as it was, so its
//! statements see the present state as one. COMMIT writes everything again, for good.
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
//! I-2 A transaction that is open holds no partition and no row, and nobody waits for it.
//!
//! Papers: Larson and others, *High-Performance Concurrency Control Mechanisms for Main-Memory Databases*, VLDB 2012
//! (optimistic, §3); Neumann and others, *Fast Serializable Multi-Version Concurrency Control for Main-Memory Database
//! Systems*, SIGMOD 2015.

mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, SqlState};
use albireo_partition::{Abort, Call, CallError, Conflict, PartWritten, Reader, Route, Transaction};
use albireo_sql::Catalog;
use albireo_sql::classify::Isolation;
use albireo_storage::Savepoint as Mark;

use crate::Database;

pub(crate) use run::Statement;

/// A transaction between two of its statements.
pub(crate) struct Interactive {
    isolation: Isolation,
    reader: Arc<Reader>,
    /// Of the definitions that its statements were bound to.
    generation: Option<u64>,
    /// When it began, in microseconds since 1970: what now() is.
    began_us: i64,
    /// What it has written, a record for each partition.
    written: Vec<PartWritten>,
    /// The partitions in which it is entered.
    entered: BTreeSet<PartitionId>,
    savepoints: Vec<Savepoint>,
}

struct Savepoint {
    name: String,
    written: Vec<PartWritten>,
}

impl Interactive {
    pub(crate) fn new(isolation: Isolation, began_us: i64) -> Self {
        Self {
            isolation,
            reader: Reader::new(),
            generation: None,
            began_us,
            written: Vec::new(),
            entered: BTreeSet::new(),
            savepoints: Vec::new(),
        }
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
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

    pub(crate) fn savepoint(&mut self, name: String) {
        self.savepoints.push(Savepoint { name, written: self.written.clone() });
    }

    /// Forgets what was written since a savepoint, and the savepoints since.
    ///
    /// # Errors
    /// 3B001 without such a savepoint.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.position(name)?;
        self.written = self.savepoints[at].written.clone();
        self.savepoints.truncate(at + 1);
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
        !self.written.is_empty()
    }

    /// Whether reads count, not writes alone.
    fn keeps_reads(&self) -> bool {
        self.isolation != Isolation::ReadCommitted
    }

    /// Whether its next statement needs all partitions, because it has written what they share.
    fn wrote_shared(&self) -> bool {
        self.written.iter().any(|part| part.partition.is_none())
    }

    /// A statement begins: the partitions become what they are for this transaction.
    fn enter(&self, tx: &mut Transaction, catalog: &Catalog) -> Result<(), Abort> {
        self.check(catalog)?;
        for part in &self.written {
            if owns(tx, part) {
                tx.write_again(part)?;
            }
        }
        Ok(())
    }

    /// A statement ends: keeps what it has read and written since `since`; the reads in any case if it `locks`.
    fn keep(&mut self, tx: &mut Transaction, since: Mark, locks: bool) {
        tx.enter_reads(&self.reader, since, locks || self.keeps_reads());
        self.entered.extend(tx.sites().map(|site| tx.partition(site)));
        self.written.retain(|part| !owns(tx, part));
        self.written.append(&mut tx.parts_written());
    }

    /// # Errors
    /// 40001 if somebody has changed what it has read.
    fn check(&self, catalog: &Catalog) -> Result<(), SqlError> {
        match self.reader.conflict() {
            Some(conflict) => Err(failed(conflict, catalog)),
            None => Ok(()),
        }
    }

    /// # Errors
    /// 40001 if the definitions are others than those of its statements so far.
    fn stay_with(&mut self, generation: u64) -> Result<(), SqlError> {
        let known = *self.generation.get_or_insert(generation);
        match known == generation || self.entered.is_empty() && self.written.is_empty() {
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
        Some(partition) => tx.site_of_partition(partition).is_ok(),
        None => tx.sites().len() == usize::from(tx.partitions()),
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
    pub(crate) fn begin_interactive(&self, isolation: Isolation) -> Interactive {
        Interactive::new(isolation, self.inner.env.clock.unix_us())
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
        if open.written.is_empty() {
            self.end_interactive(&open);
            return Ok(());
        }
        let done = self.write_for_good(&mut open, synchronous);
        if done.is_err() {
            self.end_interactive(&open);
        }
        done
    }

    fn write_for_good(&self, open: &mut Interactive, synchronous: Option<bool>) -> Result<(), SqlError> {
        let generation = self.inner.definitions.read();
        open.stay_with(*generation)?;
        let catalog = self.catalog();
        let route = match (open.entered.len(), open.entered.first()) {
            (1, Some(only)) if !open.wrote_shared() => Route::Partition(*only),
            _ => Route::Crossing,
        };
        let call = Call {
            synchronous,
            time_us: Some(open.began_us),
            ..Call::new(route, "a transaction that committed")
        };
        let committed = self.inner.partitions.transact(&call, |tx| {
            open.check(&catalog)?;
            // Not told of its own changes.
            tx.leave(&open.reader);
            open.written.iter().try_for_each(|part| tx.write_again(part))
        });
        committed.map_err(|error| self.explain_call(error))
    }

    /// Forgets a transaction that is over.
    pub(crate) fn end_interactive(&self, open: &Interactive) {
        for partition in &open.entered {
            let call = Call::new(Route::Partition(*partition), "the end of a transaction");
            let left = self.inner.partitions.transact(&call, |tx| -> Result<(), Abort> {
                tx.leave(&open.reader);
                Err(Abort::TakenBack)
            });
            debug_assert!(matches!(left, Err(CallError::Aborted(Abort::TakenBack) | CallError::Closed)));
        }
    }
}
