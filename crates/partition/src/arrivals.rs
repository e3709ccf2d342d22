//! Many rows that come to a table beside whoever uses it.
//!
//! ```text
//! parts in the redo log ──► slots ──► keys entered, a few at a time ──► all partitions owned: the rows live
//! (nothing owned)           (one partition owned, for each step)        (keys that others took, the log, a bit each)
//! ```
//!
//! Responsible for: the steps, what of them is in the redo log, and that nothing is left of rows that do not come. Not
//! responsible for: what the steps do (`albireo_storage`), where rows come from.
//!
//! I-1 One statement at a time works beside a table to change it ([`Turn`]): others wait, on no partition. So no row is
//! about to come whose values new columns would lack.
//! I-2 Parts of a transaction and its end are in the log behind the same archive: none is begun in between
//! ([`Partitions::without_parts`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use albireo_base::packed::put_number;
use albireo_base::{PartitionId, StatementProgress, TableId, Tid};
use albireo_redo::{Header, Kind};
use albireo_storage::{
    Arrival, DatabaseSnapshot, Entering, RowFault, SHARED_SITE, Staging, TableError, encode_staged,
};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::bulk::{keep_first, numbered};
use crate::call::Command;
use crate::{BulkInsert, Call, CallError, Pace, Partitions, Receipt, TableHandle};

/// Rows of a part of a record.
const PART_ROWS: u64 = 1024;
/// How often whoever waits for its turn asks whether it goes on.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(10);
/// Rows that are sent away while a partition is owned.
const SENT_AT_ONCE: usize = 256;
/// Rows up to which they are appended while all partitions are owned; and those that then go into the redo log whole,
/// if nothing else is left to be done.
const FEW_ROWS: u64 = 1000;
const FEW_IN_LOG: u64 = 10_000;

/// What arrivals of a database share.
#[derive(Default)]
pub(crate) struct Arrivals {
    tables: Mutex<BTreeMap<TableId, Arc<Mutex<()>>>>,
    parts: RwLock<()>,
}

/// The turn of a statement that works beside a table.
pub struct Turn(Arc<Mutex<()>>);

/// While this is there, no other statement works beside the table.
pub type Alone<'t> = MutexGuard<'t, ()>;

impl Turn {
    /// Takes it if nobody has it.
    pub fn take(&self) -> Option<Alone<'_>> {
        self.0.try_lock()
    }

    /// Waits for it, as long as the statement goes on.
    pub fn wait(&self, goes_on: &dyn Fn() -> bool) -> Option<Alone<'_>> {
        loop {
            if let Some(alone) = self.0.try_lock_for(BETWEEN_QUESTIONS) {
                return Some(alone);
            }
            if !goes_on() {
                return None;
            }
        }
    }
}

/// Why rows have not come.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// The table does not take a row, or there is no memory.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// The transaction failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The table was dropped.
    #[error("the table was dropped")]
    Dropped,
    /// It was to end.
    #[error("the statement was ended")]
    Ended,
}

impl From<TableError> for ArrivalError {
    fn from(error: TableError) -> Self {
        Self::Row(error.into())
    }
}

/// What a statement brings, and how it goes on.
pub struct Bringing<'a> {
    /// What it read: if something has changed since, nothing comes.
    pub seen: Option<Arc<DatabaseSnapshot>>,
    /// Counts rows.
    pub progress: &'a StatementProgress,
    /// Is asked between steps whether it goes on.
    pub goes_on: &'a dyn Fn() -> bool,
    /// A number that no other statement of the log has.
    pub number: u64,
}

/// Rows under way; dropped, what has slots of them is sent away.
struct UnderWay<'p> {
    partitions: &'p Partitions,
    table: TableHandle,
    parts: Vec<(PartitionId, Option<Arrival>, Vec<u32>)>,
}

impl Partitions {
    /// Keeps parts of records away: what is in the log now has all parts of its transactions, or none that counts.
    pub fn without_parts(&self) -> RwLockWriteGuard<'_, ()> {
        self.arrivals().parts.write()
    }

    /// The turn to work beside a table.
    pub fn turn(&self, table: TableHandle) -> Turn {
        Turn(Arc::clone(self.arrivals().tables.lock().entry(table.id()).or_default()))
    }

    /// Makes rows that were collected rows of their table: all of them at one moment, or none; how many. `None`:
    /// something of what was read has changed, and nothing came.
    ///
    /// # Errors
    /// As the error says; no row has come.
    pub fn bring(
        &self,
        call: &Call<'_>,
        mut rows: BulkInsert,
        bringing: Bringing<'_>,
    ) -> Result<Option<u64>, ArrivalError> {
        if rows.row_count() <= FEW_ROWS {
            return self.append_now(call, rows, bringing);
        }
        for staging in rows.stagings_mut() {
            staging.lay_down()?;
        }
        let table = rows.table;
        let turn = self.turn(table);
        let _alone = turn.wait(bringing.goes_on).ok_or(ArrivalError::Ended)?;
        let is_ready = rows.stagings_mut().all(|staging| staging.row_count() == 0 || staging.is_ready());
        if is_ready && rows.row_count() <= FEW_IN_LOG {
            return self.append_now(call, rows, bringing);
        }
        let (parts, _kept) = self.log_parts(&rows, &bringing)?;
        if is_ready {
            let number = bringing.number;
            let write = move |_: u64, out: &mut Vec<u8>| put_joined(out, number, parts);
            let command = Command { kind: Kind::JOINED, write: &write, rows_up_to: 0 };
            let call = Call { command: (parts > 0).then_some(command), ..*call };
            return self.append_now(&call, rows, bringing);
        }
        let mut under_way = UnderWay { partitions: self, table, parts: rows.into_arrivals() };
        under_way.enter(&bringing)?;
        self.wake(call, under_way, bringing, parts)
    }

    /// Appends rows while all partitions are owned.
    fn append_now(
        &self,
        call: &Call<'_>,
        rows: BulkInsert,
        bringing: Bringing<'_>,
    ) -> Result<Option<u64>, ArrivalError> {
        let mut fault = None;
        let append = |tx: &mut crate::Transaction| tx.append(rows, bringing.progress, &mut fault);
        let done = match bringing.seen {
            Some(seen) => self.crossing_if_current(call, seen, append),
            None => self.crossing_once(call, append).map(Some),
        };
        done.map_err(|error| fault.map_or(ArrivalError::Call(error), ArrivalError::Row))
    }

    /// Puts all rows into the redo log, in parts that mean nothing without an end; how many parts, and what keeps
    /// archives away until then.
    fn log_parts(
        &self,
        rows: &BulkInsert,
        bringing: &Bringing<'_>,
    ) -> Result<(u64, Option<RwLockReadGuard<'_, ()>>), ArrivalError> {
        let Some(log) = self.log() else { return Ok((0, None)) };
        let kept = self.arrivals().parts.read();
        let mut parts = 0;
        for (partition, staging) in rows.stagings() {
            let site = if rows.table.is_shared() { SHARED_SITE } else { partition };
            let mut from = 0;
            while from < staging.row_count() {
                let to = staging.row_count().min(from + PART_ROWS);
                let mut part = Vec::new();
                put_number(&mut part, bringing.number);
                put_number(&mut part, parts);
                encode_staged(staging, from..to, site, &mut part);
                crate::journal::wait_for_room(log);
                let header = Header { kind: Kind::PART, time_us: self.clock().unix_us() };
                let appended =
                    self.own(PartitionId(0), |_| log.append(0, header, |out| out.extend_from_slice(&part)));
                appended.map_err(CallError::Log)?;
                (parts, from) = (parts + 1, to);
                if !(bringing.goes_on)() {
                    return Err(ArrivalError::Ended);
                }
            }
        }
        Ok((parts, Some(kept)))
    }

    /// Makes rows of the table of those that have entered all indexes.
    fn wake(
        &self,
        call: &Call<'_>,
        mut under_way: UnderWay<'_>,
        bringing: Bringing<'_>,
        parts: u64,
    ) -> Result<Option<u64>, ArrivalError> {
        let table = under_way.table;
        let woken = self.exclusively(|all| {
            if let Some(seen) = bringing.seen
                && !all.is_current(&seen)
            {
                return Ok(None);
            }
            let mut first: Option<RowFault> = None;
            for (target, (_, arrival, numbers)) in all.tables(table).into_iter().zip(&mut under_way.parts) {
                let Some(arrival) = arrival else { continue };
                if let Err(fault) = target.settle(arrival) {
                    keep_first(&mut first, numbered(numbers, fault));
                }
            }
            if let Some(fault) = first {
                return Err(fault.into());
            }
            let receipt = match parts {
                0 => Receipt::default(),
                _ => all.log_record(Kind::JOINED, false, &|out| put_joined(out, bringing.number, parts))?,
            };
            let mut count = 0;
            let come = under_way.parts.iter_mut().filter_map(|(at, arrival, _)| Some((*at, arrival.take()?)));
            let come: Vec<(PartitionId, Arrival)> = come.collect();
            let example = come.iter().find_map(|(at, arrival)| Some((*at, arrival.rows().first()?)));
            for (partition, arrival) in come {
                count += arrival.rows().count();
                let at = if table.is_shared() { 0 } else { partition.index() };
                if let Some(target) = all.tables(table).into_iter().nth(at) {
                    target.wake(arrival);
                }
            }
            if let Some((partition, tid)) = example {
                all.tell_of_many(table, partition, tid, call.name);
            }
            Ok::<_, ArrivalError>(Some((count, receipt)))
        })?;
        let Some((count, receipt)) = woken else { return Ok(None) };
        self.acknowledge(call.synchronous, receipt)?;
        Ok(Some(count))
    }
}

impl UnderWay<'_> {
    /// Gives all rows slots, and enters them into all indexes.
    fn enter(&mut self, bringing: &Bringing<'_>) -> Result<(), ArrivalError> {
        let (partitions, table) = (self.partitions, self.table);
        let mut pace = partitions.pace();
        let mut first: Option<RowFault> = None;
        for (partition, arrival, numbers) in &mut self.parts {
            let Some(arrival) = arrival else { continue };
            let mut state = Entering::Again;
            let mut has_more = true;
            while state != Entering::Done {
                if !(bringing.goes_on)() {
                    return Err(ArrivalError::Ended);
                }
                if state == Entering::Sort {
                    arrival.sort();
                }
                arrival.make_room();
                let mut done = None;
                pace.begin();
                partitions.with_table_mut(table, *partition, |target| {
                    done = Some(match has_more {
                        true => target.admit_some(arrival).map(|more| {
                            has_more = more;
                            Entering::Again
                        }),
                        false => target.enter_some(arrival, bringing.progress),
                    });
                });
                pace.rest(*partition, 0);
                state = done.ok_or(ArrivalError::Dropped)??;
            }
            partitions.with_table_mut(table, *partition, |target| {
                if let Some(fault) = target.fault_of(arrival) {
                    keep_first(&mut first, numbered(numbers, fault));
                }
            });
        }
        first.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Sends rows of a partition away that have slots.
    fn send_away(&self, partition: PartitionId, mut arrival: Arrival, pace: &mut Pace<'_>) {
        let mut from = Some(Tid(0));
        while let Some(first) = from {
            let some: Vec<Tid> = arrival.rows().from(first).take(SENT_AT_ONCE).collect();
            from = some.last().map(|last| Tid(last.0 + 1));
            pace.begin();
            self.partitions
                .with_table_mut(self.table, partition, |target| target.leave_some(some.iter().copied()));
            pace.rest(partition, 0);
        }
        let mut has_more = true;
        while has_more {
            has_more = false;
            pace.begin();
            self.partitions.with_table_mut(self.table, partition, |target| {
                has_more = target.dismiss_some(&mut arrival);
            });
            pace.rest(partition, 0);
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut pace = self.partitions.pace();
        for (partition, arrival, _) in std::mem::take(&mut self.parts) {
            if let Some(arrival) = arrival {
                self.send_away(partition, arrival, &mut pace);
            }
        }
    }
}

fn put_joined(out: &mut Vec<u8>, number: u64, parts: u64) {
    put_number(out, number);
    put_number(out, parts);
}

impl BulkInsert {
    fn stagings_mut(&mut self) -> impl Iterator<Item = &mut Staging> {
        self.parts.iter_mut().map(|part| &mut part.staging)
    }

    fn stagings(&self) -> impl Iterator<Item = (u16, &Staging)> {
        (0..).zip(self.parts.iter().map(|part| &part.staging))
    }

    /// The rows of each partition, with the numbers that they have among all.
    fn into_arrivals(self) -> Vec<(PartitionId, Option<Arrival>, Vec<u32>)> {
        let arrivals = self.parts.into_iter().zip(0..).map(|(part, partition)| {
            let arrival = (part.staging.row_count() > 0).then(|| part.staging.into_arrival());
            (PartitionId(partition), arrival, part.numbers)
        });
        arrivals.collect()
    }
}
