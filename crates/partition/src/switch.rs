//! What was worked out beside a table takes its place in it.
//!
//! ```text
//! follow ──► work beside ──► take up changed rows, a few at a time ──► switch: all partitions owned
//!                            (one partition owned, for each few)       the last changed rows, then either ordinary
//!                                                                      changes, or new blocks for whole columns, or
//!                                                                      the death of many rows
//!                                                                 ──► tidy: rows that died leave the indexes
//!                                                                      (one partition owned, for each few, whose keys
//!                                                                      were fetched before)
//! ```
//!
//! I-1 A switch sees every row that was changed since its snapshot, or does nothing.
//! I-2 What is switched is in the redo log, as the statement that made it, before it is in the table; if the log does
//! not take it, nothing was done.

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, Tid};
use albireo_redo::{Header, Kind};
use albireo_storage::{DatabaseSnapshot, FetchError, FrozenKeys, Replaced, Rewrite, RowSet, Table};

use crate::call::Command;
use crate::follow::{ChangedRows, Follower};
use crate::handle::TableHandle;
use crate::journal::Receipt;
use crate::{Abort, Call, CallError, Exclusive, Pace, Partitions, Transaction};

/// Rows that are tidied away while a partition is owned.
const TIDIED_AT_ONCE: usize = 256;

/// Chunks that are looked at while a partition is owned.
pub(crate) const CHUNKS_LOOKED_AT: usize = 256;

/// What becomes of the rows of one partition.
pub enum Change {
    /// Some get new values in some columns.
    Columns(PartitionId, Rewrite),
    /// These die.
    Gone(PartitionId, RowSet),
}

impl Change {
    fn partition(&self) -> PartitionId {
        let (Self::Columns(partition, _) | Self::Gone(partition, _)) = self;
        *partition
    }

    fn rows(&self) -> &RowSet {
        match self {
            Self::Columns(_, rewrite) => rewrite.rows(),
            Self::Gone(_, rows) => rows,
        }
    }

    /// A row came to the table since: new columns take it over.
    ///
    /// # Errors
    /// There is no memory.
    pub fn follow(&mut self, partition: PartitionId, table: &Table, tid: Tid) -> Result<(), Abort> {
        match self {
            Self::Columns(at, rewrite) if *at == partition => {
                rewrite.put_live(table, tid, None).map_err(Abort::Table)
            }
            _ => Ok(()),
        }
    }

    /// Those of each partition, in order.
    pub fn of_each<P>(parts: Vec<P>, of: impl Fn(PartitionId, P) -> Self) -> Vec<Self> {
        (0..).map(PartitionId).zip(parts).map(|(partition, part)| of(partition, part)).collect()
    }

    /// How many rows it concerns.
    pub fn count(&self) -> u64 {
        self.rows().count()
    }
}

/// What a switch does at its end, beside what its transaction changed.
pub struct Switch<'r> {
    /// Of partitions of the table.
    pub changes: Vec<Change>,
    /// Appends the statement to a record of the redo log.
    pub record: &'r dyn Fn(&mut Vec<u8>),
}

/// What is left to do after a switch.
#[derive(Default)]
pub struct Switched {
    receipt: Receipt,
    table: Option<TableHandle>,
    /// Rows that stand in indexes and do not live, and from where on.
    gone: Vec<(PartitionId, RowSet, Tid)>,
    /// Partitions whose string heaps may be garbage, which nobody else rewrites meanwhile.
    untidy: Vec<(PartitionId, Arc<()>)>,
    /// Blocks that were replaced.
    replaced: Vec<Replaced>,
    /// Why rows that died stay in indexes.
    unread: Option<FetchError>,
}

impl Switched {
    /// Why rows that died stay in indexes, if some do: their keys could be read before the switch, and cannot any more.
    pub fn unread(&self) -> Option<&FetchError> {
        self.unread.as_ref()
    }
}

impl Partitions {
    /// Ends what was worked out beside a table: runs `work` as a transaction over all partitions, which is told the rows
    /// that were changed since they were taken last, and makes the changes that it gives. `None`: it was not told of all
    /// changes, or rows had to be fetched or room to be made, and nothing was done. Else [`Partitions::tidy`] and [`Partitions::end_switch`] are to follow.
    ///
    /// # Errors
    /// As [`Partitions::crossing`].
    pub fn switch<'r, R>(
        &self,
        follower: Follower,
        call: &Call<'_>,
        work: impl FnOnce(&mut Transaction, Vec<(PartitionId, Tid)>) -> Result<(R, Option<Switch<'r>>), Abort>,
    ) -> Result<Option<(R, Switched)>, CallError> {
        let table = follower.table();
        self.none_if_away(|all| {
            let mut changed = Vec::new();
            for partition in follower.partitions() {
                let ChangedRows::These(tids) = follower.take(partition) else { return Ok(None) };
                changed.extend(tids.into_iter().map(|tid| (partition, tid)));
            }
            // What nobody sees any more need not be copied when it is written.
            drop(follower);
            let ((value, switch), receipt) = all.run(0, call, |tx| work(tx, changed))?;
            match switch {
                None => Ok(Some((value, Switched { receipt, ..Switched::default() }))),
                Some(switch) => Ok(Some((value, all.switch(table, call, switch)?))),
            }
        })
    }

    /// As [`Partitions::switch`], of changes of a table that were worked out of what was `seen`: if it is still so, runs
    /// `work` as a transaction over all partitions and makes the changes, in the log as one. The changes
    /// [follow](Change::follow) the rows that it inserts. `None`: something has changed, or rows had to be fetched
    /// or room to be made, and nothing was done.
    ///
    /// # Errors
    /// As [`Partitions::crossing`].
    pub fn switch_if_current<R>(
        &self,
        table: TableHandle,
        seen: Arc<DatabaseSnapshot>,
        call: &Call<'_>,
        mut switch: Switch<'_>,
        work: impl FnOnce(&mut Transaction, &mut [Change]) -> Result<R, Abort>,
    ) -> Result<Option<(R, Switched)>, CallError> {
        self.none_if_away(|all| {
            if !all.is_current(&seen) {
                return Ok(None);
            }
            // What nobody sees any more need not be copied when it is written.
            drop(seen);
            all.prepare(table, &mut switch)?;
            let record = switch.record;
            let write = move |_: u64, out: &mut Vec<u8>| record(out);
            let command = Command { kind: Kind::STATEMENT, write: &write, rows_up_to: 0 };
            let call = Call { command: Some(command), ..*call };
            let mut changes = false;
            let (value, receipt) = all.run(0, &call, |tx| {
                let value = work(tx, &mut switch.changes)?;
                changes = tx.changes() > 0;
                Ok(value)
            })?;
            // One record for both.
            let receipt = if changes { receipt } else { all.log_record(Kind::STATEMENT, false, record)? };
            Ok(Some((value, all.make(table, &call, switch, receipt))))
        })
    }

    /// Runs `work` over all partitions. `None`: it met rows that are in memory now, or found no memory, and room was made.
    fn none_if_away<R>(
        &self,
        work: impl FnOnce(&mut Exclusive<'_>) -> Result<Option<R>, CallError>,
    ) -> Result<Option<R>, CallError> {
        match self.exclusively(work) {
            Err(CallError::Aborted(Abort::Away(away))) => {
                self.room().fetch(&away)?;
                Ok(None)
            }
            Err(CallError::Aborted(abort)) if self.room().helps(&abort) && self.room().make() => Ok(None),
            done => done,
        }
    }

    /// Sees whether the keys can be read of rows that are to die in a switch and do not lie in memory, so that they can be
    /// [tidied](Partitions::tidy) away; has those in memory for which there is room. `goes_on` is asked now and then.
    ///
    /// # Errors
    /// They cannot be read, or `goes_on` says so.
    pub fn check_keys(
        &self,
        table: TableHandle,
        (partition, rows): (PartitionId, &RowSet),
        goes_on: impl Fn() -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let chunks: Vec<usize> = rows.chunk_numbers().collect();
        for some in chunks.chunks(CHUNKS_LOOKED_AT) {
            for keys in self.frozen_keys(table, partition, some) {
                goes_on()?;
                keys.check()?;
            }
        }
        Ok(())
    }

    fn frozen_keys(&self, table: TableHandle, partition: PartitionId, chunks: &[usize]) -> Vec<FrozenKeys> {
        let keys = |target: &Table| target.frozen_keys(chunks.iter().copied());
        self.with_table_if_there(table, partition, keys).unwrap_or_default()
    }

    /// Tidies some rows away that died in a switch; whether there are more.
    pub fn tidy(&self, switched: &mut Switched, pace: &mut Pace<'_>) -> bool {
        let Some(table) = switched.table else { return false };
        switched.replaced.clear();
        let partition = match (switched.gone.last_mut(), switched.untidy.last()) {
            (Some((partition, rows, from)), _) => {
                let partition = *partition;
                let some: Vec<Tid> = rows.from(*from).take(TIDIED_AT_ONCE).collect();
                if let Err(error) = self.tidy_away(table, partition, &some, pace) {
                    switched.unread.get_or_insert(error);
                }
                match some.last() {
                    Some(last) if some.len() == TIDIED_AT_ONCE => *from = Tid(last.0 + 1),
                    _ => drop(switched.gone.pop()),
                }
                partition
            }
            (None, Some((partition, _))) => {
                let (partition, mut more) = (*partition, false);
                pace.begin();
                self.with_table_mut(table, partition, |target| more = target.tidy_one_heap());
                if !more {
                    switched.untidy.pop();
                }
                partition
            }
            (None, None) => return false,
        };
        pace.rest(partition, 0);
        true
    }

    /// Takes rows out of the indexes.
    ///
    /// # Errors
    /// Keys cannot be read any more: rows of their chunk stay in the indexes, where nobody finds them.
    fn tidy_away(
        &self,
        table: TableHandle,
        partition: PartitionId,
        rows: &[Tid],
        pace: &mut Pace<'_>,
    ) -> Result<(), FetchError> {
        let mut chunks: Vec<usize> = rows.iter().map(|tid| tid.chunk()).collect();
        chunks.dedup();
        let keys = self.frozen_keys(table, partition, &chunks);
        let (mut unread, mut brought) = (Vec::new(), Ok(()));
        for keys in &keys {
            if let Err(error) = keys.bring() {
                unread.push(keys.chunk());
                brought = Err(error);
            }
        }
        pace.begin();
        self.with_table_mut(table, partition, |target| {
            let there = rows.iter().filter(|tid| !unread.contains(&tid.chunk()));
            target.tidy_away(there.copied());
        });
        brought
    }

    /// Ends a switch: waits until a crash cannot take it back, as [`Partitions::acknowledge`].
    ///
    /// # Errors
    /// The log failed before.
    pub fn end_switch(&self, asked: Option<bool>, switched: Switched) -> Result<(), CallError> {
        debug_assert!(switched.gone.is_empty() && switched.untidy.is_empty(), "all is tidied");
        self.acknowledge(asked, switched.receipt)
    }

    /// Lets somebody work on a table between two transactions.
    pub(crate) fn with_table_mut(
        &self,
        table: TableHandle,
        partition: PartitionId,
        work: impl FnOnce(&mut Table),
    ) {
        self.with_table_at_rest(table, partition, |target, _| work(target));
    }

    /// As [`Partitions::with_table_mut`]; tells whether nobody holds on to TIDs.
    pub(crate) fn with_table_at_rest(
        &self,
        table: TableHandle,
        partition: PartitionId,
        work: impl FnOnce(&mut Table, bool),
    ) {
        if table.is_shared() {
            return self.exclusively(|all| {
                let holds_no_tids = all.holds_no_tids();
                if let Some(target) = all.tables(table).into_iter().next() {
                    work(target, holds_no_tids);
                }
            });
        }
        self.own(partition, |data| {
            let holds_no_tids = data.holds_no_tids();
            if let Some(target) = data.tables.get_mut(table.id().index()).and_then(Option::as_mut) {
                work(target, holds_no_tids);
            }
        });
    }
}

/// One of the rows that are changed.
fn first_of(changes: &[Change]) -> Option<(PartitionId, Tid)> {
    changes.iter().find_map(|change| Some((change.partition(), change.rows().first()?)))
}

impl Exclusive<'_> {
    /// Makes changes of many rows.
    fn switch(
        &mut self,
        table: TableHandle,
        call: &Call<'_>,
        mut switch: Switch<'_>,
    ) -> Result<Switched, CallError> {
        // What can fail comes before what cannot: memory, and the log.
        self.prepare(table, &mut switch)?;
        let frees = switch.changes.iter().all(|change| matches!(change, Change::Gone(..)));
        let receipt = self.log_record(Kind::STATEMENT, frees, switch.record)?;
        Ok(self.make(table, call, switch, receipt))
    }

    /// Gets ready for [`Exclusive::make`], which then cannot fail.
    fn prepare(&mut self, table: TableHandle, switch: &mut Switch<'_>) -> Result<(), CallError> {
        for change in &mut switch.changes {
            let prepared = match change {
                Change::Gone(partition, rows) => self.table(table, *partition).prepare_to_kill(rows),
                Change::Columns(_, rewrite) => rewrite.settle(),
            };
            prepared.map_err(|error| CallError::Aborted(Abort::Table(error)))?;
        }
        if let Some((partition, tid)) = first_of(&switch.changes) {
            // Whoever is told of it is told its identity: it is read while that may fail.
            let example = &*self.table(table, partition);
            example.identity_columns().iter().for_each(|column| drop(example.value(tid, *column)));
        }
        Ok(())
    }

    /// Makes changes that are in the log, and for which it is ready.
    fn make(
        &mut self,
        table: TableHandle,
        call: &Call<'_>,
        switch: Switch<'_>,
        receipt: Receipt,
    ) -> Switched {
        if let Some((partition, tid)) = first_of(&switch.changes) {
            self.tell_of_many(table, partition, tid, call.name);
        }
        let (mut gone, mut untidy, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in switch.changes {
            let partition = change.partition();
            let target = self.table(table, partition);
            untidy.push((partition, target.keep_heaps()));
            match change {
                Change::Columns(_, rewrite) => replaced.push(target.install(rewrite)),
                Change::Gone(_, rows) => {
                    target.kill_all(&rows);
                    gone.push((partition, rows, Tid(0)));
                }
            }
        }
        Switched { receipt, table: Some(table), gone, untidy, replaced, unread: None }
    }

    /// A table in one partition; a shared one is in the first.
    fn table(&mut self, table: TableHandle, partition: PartitionId) -> &mut Table {
        let at = if table.is_shared() { 0 } else { partition.index() };
        self.tables(table).into_iter().nth(at).expect("the table is in each partition")
    }

    /// Appends a record of something that is about to be done; what `frees` more than it takes, also in the room that is kept
    /// for that.
    pub(crate) fn log_record(
        &mut self,
        kind: Kind,
        frees: bool,
        record: &dyn Fn(&mut Vec<u8>),
    ) -> Result<Receipt, CallError> {
        let header = Header { kind, time_us: self.time_us() };
        let Some(log) = self.log() else { return Ok(Receipt::default()) };
        let ticket = match frees {
            true => log.append_freeing(None, header, |out| record(out)),
            false => log.append_crossing(header, |out| record(out)),
        };
        ticket.map(Receipt::of_record).map_err(CallError::Log)
    }

    /// Tells all who have read a table, or follow it, that many of its rows were changed, this one among them.
    pub(crate) fn tell_of_many(&mut self, table: TableHandle, partition: PartitionId, tid: Tid, rival: &str) {
        let example = &*self.table(table, partition);
        let columns = example.identity_columns().to_vec();
        let row = columns.iter().map(|column| example.value(tid, *column)).collect::<Vec<_>>();
        for data in self.each_data() {
            data.readers.tell_all(table.id(), &columns, &row, rival);
            data.feeds.lose(table.id());
        }
    }
}
