//! Freezing by itself: what nobody has written for a while.
//!
//! ```text
//!       the same in two looks         nobody has written it for `after`        the next look
//! HOT ───────────────────────► COOLING ───────────────────────────────► COLD ───────────────► FROZEN
//!  ▲         written              │                                       │
//!  └──────────────────────────────┴───────────────────────────────────────┘
//! ```
//! A chunk stays COLD while it is read often, or its table keeps it as it is. One that is written again and again comes to
//! COOLING otherwise: its rows move out before they are written (`cooling`). What cannot be frozen by itself is not looked
//! at, and counts as HOT.
//!
//! I-1 What is frozen depends on what was written and read when the database was looked at, on nothing else: a simulation
//! looks by [`Database::freeze_if_due`].
//! I-2 Whoever owns a partition runs at normal priority; only the encoding gives way to transactions, and rests most of the
//! time ([`Pace`]).
//! I-3 The thread ends before the database does.
//!
//! Where memory is short, a chunk is frozen when nobody has written it for a moment. Chunks of one table are much alike: rows
//! of orders come, are changed once when they are delivered, and never again. So it is counted what became of those that
//! were left alone for a moment, after so many times that they were written; those are frozen first of whose like few were
//! written again, and then those that were written longest ago.
//!
//! What transactions read often ([`OFTEN`]) is not frozen for its age, and last where memory is short: who reads a frozen row
//! decodes it each time.
//!
//! A frozen chunk most of whose rows have died since is emptied, so that it is let go of (`packing`): what is left of it
//! moves, and is frozen again where it moved to, in time. So is what is left of a chunk that has blocks: it waits for new rows in its
//! free slots, and is not frozen while most slots are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use albireo_base::{Epoch, PartitionId, SqlError, SqlState, TableId};
use albireo_partition::TableHandle;
use albireo_sql::{Freeze, TableDef};
use albireo_storage::{ChunkView, ColumnSet, SnapshotScope};
use parking_lot::{Condvar, Mutex};

use super::cooling::{Changes, Cooling, Window};
use super::packing::{Unread, is_mostly_holes};
use super::{CHUNKS_AT_ONCE, FreezeReport, How, Pick};
use crate::Database;
use crate::errors::no_thread;

/// Looks at the tables in the time after which a chunk is frozen.
pub(super) const LOOKS: u32 = 4;
/// Between two looks at least, because each makes all executors meet, and at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How many times as long as it works the thread rests that freezes.
const RESTS: u64 = 3;
/// After which time what nobody has written is frozen because memory is short.
const AT_ONCE: Duration = Duration::from_millis(100);

/// What is read so often, rows of a chunk in a second, stays as it is: decoding a row takes about 100 ns, so these would take
/// a thousandth of a core, and the chunk more memory by less than a megabyte.
const OFTEN: u64 = 10_000;
/// In which time at least reads are counted.
const COUNTED: Duration = Duration::from_millis(20);
/// For how long what was read often is taken for such: who waits for memory reads nothing.
const STAYS: Duration = Duration::from_secs(1);

/// When rows are frozen by themselves, of tables that say nothing else (`WITH (freeze = ...)`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreezeSchedule {
    /// When nobody has written a chunk of some thousand rows for so long, at least a millisecond; `None`: only by
    /// `CALL albireo.freeze`.
    pub after: Option<Duration>,
}

impl Default for FreezeSchedule {
    /// After ten minutes: who changes rows that old pays twice as much for it, once.
    fn default() -> Self {
        Self { after: Some(Duration::from_secs(600)) }
    }
}

impl FreezeSchedule {
    /// Only by `CALL albireo.freeze`, and where tables say so.
    pub fn never() -> Self {
        Self { after: None }
    }

    /// When rows of this table are frozen.
    fn of(&self, table: &TableDef) -> Option<Duration> {
        match table.freeze {
            Freeze::Auto => self.after,
            Freeze::Off => None,
            Freeze::After(after) => Some(after),
        }
    }

    /// Checks the range.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        match self.after.is_some_and(|after| after < Duration::from_millis(1)) {
            true => {
                let what = "freeze.after must be at least a millisecond";
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what))
            }
            false => Ok(()),
        }
    }
}

/// Where a chunk of a table is: its partition, and its number there.
pub(super) type ChunkPlace = (PartitionId, u32);

/// The schedule of one database, and what it has seen.
pub(crate) struct Freezing {
    schedule: FreezeSchedule,
    /// Of each chunk that has blocks and may be frozen by itself.
    seen: Mutex<HashMap<(TableId, ChunkPlace), Seen>>,
    /// What became of such chunks of each table.
    habits: Mutex<HashMap<TableId, Habits>>,
    /// Evicted chunks of holes that cannot be read.
    pub(super) unread: Unread,
    told: Mutex<Told>,
    /// Notified when the thread was told something.
    ends: Condvar,
    /// Statements that were run, where everything is frozen again and again.
    pub(super) statements: AtomicU32,
}

/// What the thread that freezes was told.
#[derive(Default)]
struct Told {
    is_closing: bool,
    /// It was said anew when a table is frozen, since the thread has looked.
    is_anew: bool,
}

impl Freezing {
    pub(crate) fn new(schedule: FreezeSchedule) -> Self {
        let (seen, habits, unread) = (Mutex::default(), Mutex::default(), Unread::default());
        let (told, statements) = (Mutex::default(), AtomicU32::new(0));
        Self { schedule, seen, habits, unread, told, ends: Condvar::new(), statements }
    }

    pub(crate) fn close(&self) {
        self.told.lock().is_closing = true;
        self.ends.notify_all();
    }

    fn goes_on(&self) -> bool {
        !self.told.lock().is_closing
    }

    /// Lets some time pass, or until it is said anew when a table is frozen; whether the database is still open then.
    fn pause(&self, after: Option<Duration>) -> bool {
        let pause = after.map_or(LONGEST_PAUSE, |after| (after / LOOKS).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
        let mut told = self.told.lock();
        if !told.is_closing && !told.is_anew {
            self.ends.wait_for(&mut told, pause);
        }
        told.is_anew = false;
        !told.is_closing
    }

    /// Lets some time pass, or until the database closes, or it is said anew when a table is frozen.
    pub(super) fn rest(&self, rest: Duration) {
        let mut told = self.told.lock();
        if !told.is_closing && !rest.is_zero() {
            self.ends.wait_for(&mut told, rest);
        }
    }

    /// It was said anew when a table is frozen.
    pub(crate) fn look(&self) {
        self.told.lock().is_anew = true;
        self.ends.notify_all();
    }

    /// After how long rows of a table are frozen by themselves, if they are.
    pub(super) fn after(&self, table: &TableDef) -> Option<Duration> {
        self.schedule.of(table)
    }

    /// What was seen of a chunk, if it was looked at.
    pub(super) fn seen_of(&self, table: TableId, chunk: ChunkPlace) -> Option<Seen> {
        self.seen.lock().get(&(table, chunk)).copied()
    }
}

/// For how long nobody has written a chunk that has blocks, as far as looks tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Temperature {
    /// It was written since the last look, or one look at most has found it as it is.
    Hot,
    /// Two looks have found it as it is.
    Cooling,
    /// For its table's time.
    Cold,
}

/// What was seen of a chunk that has blocks.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// When it was seen first.
    pub(super) first: u64,
    /// When it was written last.
    written: Epoch,
    /// When that was seen first, and how often since.
    pub(super) since: u64,
    times: u32,
    /// How often it was written again after it was left alone for a moment, up to [`MOST_RETURNS`].
    returns: u8,
    /// Whether it is left alone now.
    is_left: bool,
    read: Read,
    pub(super) cooling: Cooling,
}

/// What was seen of how a chunk is read.
#[derive(Clone, Copy)]
struct Read {
    /// Reads until then, and when that was.
    reads: u64,
    at: u64,
    /// Whether it is read often, and until when it is for what was read before.
    often: bool,
    until: u64,
}

impl Read {
    fn look(&mut self, reads: u64, now: u64) {
        let passed = now.saturating_sub(self.at);
        if passed >= COUNTED.as_nanos() as u64 {
            let more = u128::from(reads.saturating_sub(self.reads));
            let is_now = more * 1_000_000_000 >= u128::from(OFTEN) * u128::from(passed);
            let until = if is_now { now + STAYS.as_nanos() as u64 } else { self.until };
            *self = Self { reads, at: now, often: is_now || now < until, until };
        }
    }
}

/// Times that a chunk is written again which are told apart.
const MOST_RETURNS: u8 = 2;

/// Chunks that were written again which are counted.
const MOST_COUNTED: u32 = 256;
/// In how many of 8 cases those chunks are written again of which some are frozen before anything else leaves memory.
const FEW_RETURNS: u32 = 2;

/// Which chunks are frozen because memory is short.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Returning {
    /// Those of whose like few are written again, and that are not read often.
    Few,
    /// Those that are not read often.
    Seldom,
    Any,
}

impl Returning {
    fn includes(self, cold: &Cold) -> bool {
        match self {
            Self::Few => !cold.often && cold.returns < FEW_RETURNS,
            Self::Seldom => !cold.often,
            Self::Any => true,
        }
    }
}

/// By how often they were written again before: chunks that were left alone, and those of them that were written again.
#[derive(Clone, Copy, Default)]
pub(super) struct Habits {
    left: [u32; MOST_RETURNS as usize + 1],
    returned: [u32; MOST_RETURNS as usize + 1],
    /// How many chunks may cool at a time.
    window: Window,
}

impl Habits {
    /// What was long ago counts less.
    fn fade(&mut self, before: u8) {
        let before = usize::from(before);
        if self.returned[before] >= MOST_COUNTED {
            self.returned[before] -= MOST_COUNTED / 2;
            self.left[before] -= MOST_COUNTED / 2;
        }
    }

    /// In how many of 8 cases such a chunk is written again.
    fn returns(&self, before: u8) -> u32 {
        let before = usize::from(before);
        self.returned[before] * 8 / self.left[before].max(1)
    }
}

impl Seen {
    pub(super) fn new(written: Epoch, reads: u64, now: u64) -> Self {
        let read = Read { reads, at: now, often: false, until: 0 };
        let cooling = Cooling::default();
        Self { first: now, written, since: now, times: 0, returns: 0, is_left: false, read, cooling }
    }

    pub(super) fn is_read_often(&self) -> bool {
        self.read.often
    }

    /// How warm it is if it was written last at this epoch, and is frozen when nobody has written it for `after`.
    pub(super) fn temperature(&self, written: Epoch, after: Duration, now: u64) -> Temperature {
        match self.written == written {
            true if now.saturating_sub(self.since) >= after.as_nanos() as u64 => Temperature::Cold,
            true if self.times > 1 => Temperature::Cooling,
            _ => Temperature::Hot,
        }
    }

    /// It was frozen: whether it would have been written again will not be known.
    fn forget(self, habits: &mut Habits) {
        habits.left[usize::from(self.returns)] -= u32::from(self.is_left);
    }

    /// It is looked at.
    pub(super) fn look(&mut self, (written, reads): (Epoch, u64), now: u64, habits: &mut Habits) {
        self.read.look(reads, now);
        if self.written != written {
            if self.is_left {
                habits.returned[usize::from(self.returns)] += 1;
                habits.fade(self.returns);
            }
            let returns = (self.returns + u8::from(self.is_left)).min(MOST_RETURNS);
            *self = Self { written, since: now, times: 0, returns, is_left: false, ..*self };
        }
        self.times = self.times.saturating_add(1);
        if !self.is_left && now.saturating_sub(self.since) >= AT_ONCE.as_nanos() as u64 {
            self.is_left = true;
            habits.left[usize::from(self.returns)] += 1;
        }
    }
}

/// A chunk that may be frozen; the first of several comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cold {
    /// Whether it is read often.
    often: bool,
    /// In how many of 8 cases its like are written again.
    returns: u32,
    /// When it was written last.
    written: Epoch,
}

/// How long the thread that freezes rests, so that transactions lose little to it: while it encodes, it takes a share of the
/// memory's bandwidth and of the cache that the cores have in common, about a tenth of TPC-C's throughput.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// It does not rest from then on, a time of the clock: what is due is frozen in about the time after which it is due.
    pub(super) until: u64,
}

impl Pace {
    /// How long it rests now, when it has worked since `began`.
    pub(super) fn rest(self, began: u64, now: u64) -> Duration {
        let rest = now.saturating_sub(began).saturating_mul(RESTS);
        Duration::from_nanos(rest.min(self.until.saturating_sub(now)))
    }
}

/// What is to be done with chunks of a table.
pub(super) struct Due {
    table: TableHandle,
    /// For how long nobody has written what is cold, in nanoseconds.
    after: u64,
    /// Nobody has written these for long enough.
    cold: BTreeMap<ChunkPlace, Cold>,
    /// Most rows of these have died since they were frozen; so many live.
    holey: Vec<(ChunkPlace, usize, u64)>,
    /// These begin to cool, or are hot again; none where memory is short.
    changes: Changes,
}

/// Whether most slots of a chunk, of whose rows so many live, wait for new ones.
pub(super) fn is_mostly_free(chunk: &ChunkView<'_>, live: usize) -> bool {
    live * 2 < chunk.slots()
}

impl Database {
    /// Freezes what nobody has written for long enough ([`crate::Config::freeze`]), on this thread, which rests three quarters
    /// of the time. For a simulation; a database that runs by itself does so.
    ///
    /// # Errors
    /// There is no memory; what was frozen before stays so.
    pub fn freeze_if_due(&self) -> Result<FreezeReport, SqlError> {
        let (mut report, due) = (FreezeReport::default(), self.due_chunks(None)?);
        let now = self.inner.env.clock.now();
        // What takes no memory comes first, then what gives some back, and last what takes some before.
        self.empty_due(&due, |live| live == 0, &mut report)?;
        for of_table in due.iter().filter(|of_table| !of_table.cold.is_empty()) {
            let wants = |place: &ChunkPlace| of_table.cold.contains_key(place);
            let goes_on = || self.inner.freezing.goes_on();
            let how = How::Gently(Pace { until: now.saturating_add(of_table.after) });
            let pick = Pick { wants: &wants, goes_on: &goes_on, how };
            self.freeze_those(of_table.table, pick, &mut report)?;
        }
        due.iter().for_each(|of_table| self.cool_due(of_table.table, &of_table.changes, &mut report));
        self.empty_due(&due, |live| live > 0, &mut report)?;
        // What was freed goes back to the system where nobody waits for it.
        self.inner.pool.shrink();
        self.inner.evicting.tidy();
        Ok(report)
    }

    /// What nobody has written for a moment, because memory is short. Chunks of which no row lives are emptied: how many bytes
    /// they took.
    pub(super) fn due_at_once(&self) -> Result<(Vec<Due>, u64), SqlError> {
        let due = self.due_chunks(Some(AT_ONCE))?;
        let bytes = self.empty_due(&due, |live| live == 0, &mut FreezeReport::default())?;
        Ok((due, bytes))
    }

    /// Freezes what of `due` is hot still, first what is written again least. Tells `enough` after each few chunks what was
    /// done all in all, until that says that it is enough.
    pub(super) fn freeze_at_once(
        &self,
        due: &[Due],
        who: Returning,
        how: How<'_>,
        mut enough: impl FnMut(&FreezeReport) -> bool,
    ) -> Result<(), SqlError> {
        let mut report = FreezeReport::default();
        let of_table =
            |due: &Due| due.cold.iter().map(|(place, cold)| (*cold, due.table, *place)).collect::<Vec<_>>();
        let mut cold: Vec<(Cold, TableHandle, ChunkPlace)> = due.iter().flat_map(of_table).collect();
        cold.retain(|(cold, ..)| who.includes(cold));
        cold.sort_by_key(|(cold, ..)| *cold);
        let goes_on = || self.inner.freezing.goes_on();
        for of_table in cold.chunk_by(|(_, one, _), (_, other, _)| one == other) {
            let table = of_table[0].1;
            for some in of_table.chunks(CHUNKS_AT_ONCE).take_while(|_| goes_on()) {
                let wants = |place: &ChunkPlace| some.iter().any(|(.., chosen)| chosen == place);
                let pick = Pick { wants: &wants, goes_on: &goes_on, how };
                self.freeze_round(table, (PartitionId(0), 0), pick, &mut report)?;
                if enough(&report) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Notes which chunks are written, before memory is so short that nobody can write.
    pub(super) fn look_at_writes(&self) {
        // Without memory for a snapshot, it is not known.
        let _ = self.due_chunks(None);
    }

    /// Empties those chunks of holes that have so many live rows as `wants` says; tells how many bytes those took that are
    /// empty now.
    fn empty_due(
        &self,
        due: &[Due],
        wants: impl Fn(usize) -> bool,
        report: &mut FreezeReport,
    ) -> Result<u64, SqlError> {
        let mut emptied_bytes = 0;
        for of_table in due {
            let those = of_table.holey.iter().filter(|(_, live, _)| wants(*live));
            for (place, _, bytes) in those.take_while(|_| self.inner.freezing.goes_on()) {
                let before = report.emptied;
                self.empty_chunk(of_table.table, *place, report)?;
                emptied_bytes += if report.emptied > before { *bytes } else { 0 };
            }
        }
        Ok(emptied_bytes)
    }

    /// The chunks of each table that something is to be done with; of a table that is frozen by itself after `at_most`.
    fn due_chunks(&self, at_most: Option<Duration>) -> Result<Vec<Due>, SqlError> {
        let (catalog, schedule) = (self.catalog(), self.inner.freezing.schedule);
        let (is_short, at_most) = (at_most.is_some(), at_most.unwrap_or(Duration::MAX));
        let of_table = |def: &Arc<TableDef>| Some((Arc::clone(def), schedule.of(def)?.min(at_most)));
        let tables: Vec<_> = catalog.tables().filter_map(of_table).collect();
        let is_there = |table: &TableId| tables.iter().any(|(def, _)| def.id == *table);
        let gone =
            self.inner.freezing.seen.lock().extract_if(|(table, _), _| !is_there(table)).collect::<Vec<_>>();
        self.end_cooling_of(gone.into_iter().filter_map(|(key, seen)| seen.cooling.is_on.then_some(key)));
        self.inner.freezing.habits.lock().retain(|table, _| is_there(table));
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        // No column is read: if they were covered, who writes meanwhile would copy each block that it meets.
        let scope = tables.iter().map(|(def, _)| (def.id, ColumnSet::of([]))).collect();
        let snapshot = self.inner.partitions.snapshot(&SnapshotScope::Tables(scope));
        let snapshot = snapshot.map_err(|spent| crate::errors::session(spent.into()))?;
        let (mut seen, mut all_habits) = (self.inner.freezing.seen.lock(), self.inner.freezing.habits.lock());
        let now = self.inner.env.clock.now();
        let (mut all, mut evicted) = (Vec::new(), HashSet::new());
        for (def, after) in &tables {
            let Some(view) = snapshot.table(def.id) else { continue };
            let table = TableHandle::new(def.id, def.is_shared());
            let habits = all_habits.entry(def.id).or_default();
            let (after, changes) = (after.as_nanos() as u64, Changes::default());
            let mut due = Due { table, after, cold: BTreeMap::new(), holey: Vec::new(), changes };
            for chunk in (0..view.chunk_count()).map(|number| view.chunk(number)) {
                let place = (chunk.partition(), chunk.number());
                let live = chunk.live_rows();
                evicted.extend(chunk.frozen_id().filter(|_| chunk.is_evicted()));
                let is_useless = || live > 0 && chunk.is_evicted() && self.inner.freezing.unread.has(&chunk);
                if is_mostly_holes(&chunk, live) && !is_useless() {
                    due.holey.push((place, live, chunk.memory_bytes()));
                }
                if !chunk.is_encodable() || is_mostly_free(&chunk, live) {
                    if chunk.moved_rows().is_some() {
                        due.changes.end(place);
                    }
                    if let Some(known) = seen.remove(&(def.id, place)) {
                        known.forget(habits);
                        if known.cooling.is_on && chunk.is_frozen() {
                            habits.window.widen();
                        }
                    }
                    continue;
                }
                let (written, reads) = (chunk.written(), chunk.reads());
                let known = seen.entry((def.id, place)).or_insert(Seen::new(written, reads, now));
                known.look((written, reads), now, habits);
                let (often, returns) = (known.read.often, habits.returns(known.returns));
                if now.saturating_sub(known.since) >= after && (is_short || !often) {
                    due.cold.insert(place, Cold { often, returns, written });
                }
                if !is_short {
                    due.changes.look(place, (&chunk, live), known, &mut habits.window, (after, now));
                }
            }
            due.changes.limit(habits.window);
            if !due.cold.is_empty() || !due.holey.is_empty() || !due.changes.is_empty() {
                all.push(due);
            }
        }
        // Chunks that are gone, or that somebody could read, are not in the way any more.
        self.inner.freezing.unread.retain(|id, table| match is_there(&table) {
            true => evicted.contains(&id),
            false => catalog.table(table).is_some(),
        });
        Ok(all)
    }

    /// After how long the first table is frozen by itself, if one is.
    fn freezes_after(&self) -> Option<Duration> {
        let schedule = self.inner.freezing.schedule;
        self.catalog().tables().filter_map(|def| schedule.of(def)).min()
    }

    /// Starts the thread that freezes.
    pub(crate) fn start_freezing(&mut self) -> Result<(), SqlError> {
        // Without a closer: it is not this handle that keeps the database open.
        let database = self.without_closer();
        let thread = albireo_env::spawn("albireo-freeze", move || {
            while database.inner.freezing.pause(database.freezes_after()) {
                // Without memory for it, rows stay as they are, and are looked at again.
                let _ = database.freeze_if_due();
            }
        });
        self.closes_with(thread.map_err(no_thread)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: u64 = AT_ONCE.as_nanos() as u64;

    /// Looks at a chunk every moment while it is written at these epochs.
    fn watch(epochs: &[u64], habits: &mut Habits) -> Seen {
        let mut seen = Seen::new(Epoch(epochs[0]), 0, 0);
        for (look, epoch) in epochs.iter().enumerate() {
            seen.look((Epoch(*epoch), 0), look as u64 * MOMENT, habits);
        }
        seen
    }

    #[test]
    fn chunks_that_come_back_are_told_from_those_that_do_not() {
        let mut habits = Habits::default();
        // Orders: filled, left alone, delivered, left alone for ever.
        let orders: Vec<Seen> =
            (0..8).map(|n| watch(&[1 + n, 2 + n, 2 + n, 2 + n, 20 + n, 20 + n], &mut habits)).collect();
        assert!(orders.iter().all(|seen| (seen.returns, seen.is_left) == (1, true)));
        assert_eq!((habits.returns(0), habits.returns(1)), (8, 0));
        // What was delivered is frozen first, although orders that wait were written longer ago.
        let waits = watch(&[1, 1, 1], &mut habits);
        let cold = |seen: &Seen| {
            let (often, returns) = (seen.read.often, habits.returns(seen.returns));
            Cold { often, returns, written: seen.written }
        };
        assert!(cold(&orders[0]) < cold(&waits));
        // One of nine waits, and may come back or not.
        assert_eq!(habits.returns(0), 7);
    }

    #[test]
    fn chunk_that_is_read_often_is_told_by_what_was_read_since_it_was_looked_at() {
        let (mut read, second) = (Read { reads: 5, at: 0, often: false, until: 0 }, 1_000_000_000);
        let mut look = |reads, now| {
            read.look(reads, now);
            read.often
        };
        assert!(!look(u64::MAX, 1), "nothing is said of so short a time");
        assert!(look(5 + OFTEN, second) && look(5 + 3 * OFTEN, 2 * second));
        assert!(look(5 + 3 * OFTEN, 2 * second + 1), "as before");
        assert!(look(5 + 3 * OFTEN, 3 * second - 1), "a moment ago it was");
        assert!(!look(5 + 3 * OFTEN, 4 * second - 1) && !look(4 + 4 * OFTEN, 5 * second - 1));
        let mut habits = Habits::default();
        let often = Cold { often: true, returns: 0, written: Epoch(1) };
        let seldom = Cold { often: false, returns: 8, written: Epoch(9) };
        assert!(seldom < often, "what is read often is frozen last");
        // What it was read before is not forgotten when it is written.
        let mut seen = Seen::new(Epoch(1), 0, 0);
        seen.look((Epoch(1), OFTEN), second, &mut habits);
        seen.look((Epoch(2), 3 * OFTEN), 2 * second, &mut habits);
        assert!(seen.read.often && seen.read.reads == 3 * OFTEN);
    }

    #[test]
    fn chunk_is_cold_when_nobody_has_written_it_for_its_time_whoever_looks_meanwhile() {
        let (mut habits, mut seen, after) = (Habits::default(), Seen::new(Epoch(1), 0, 0), AT_ONCE * 4);
        seen.look((Epoch(1), 0), 0, &mut habits);
        assert_eq!(seen.temperature(Epoch(1), after, MOMENT), Temperature::Hot);
        assert_eq!(seen.temperature(Epoch(1), after, 4 * MOMENT), Temperature::Cold);
        seen.look((Epoch(1), 0), MOMENT, &mut habits);
        assert_eq!(seen.temperature(Epoch(1), after, 4 * MOMENT - 1), Temperature::Cooling);
        assert_eq!(seen.temperature(Epoch(1), after, 4 * MOMENT), Temperature::Cold);
        assert_eq!(seen.temperature(Epoch(2), after, 4 * MOMENT), Temperature::Hot, "it was written since");
        seen.look((Epoch(2), 0), 5 * MOMENT, &mut habits);
        assert_eq!(seen.temperature(Epoch(2), after, 9 * MOMENT - 1), Temperature::Hot);
        assert_eq!(seen.temperature(Epoch(2), after, 9 * MOMENT), Temperature::Cold);
    }

    #[test]
    fn thread_that_freezes_rests_most_of_the_time_until_it_is_late() {
        let (pace, worked) = (Pace { until: 100 * MOMENT }, 3 * AT_ONCE);
        assert_eq!(pace.rest(0, 0), Duration::ZERO, "no time has passed");
        assert_eq!(pace.rest(0, MOMENT), worked);
        assert_eq!(pace.rest(96 * MOMENT, 97 * MOMENT), worked);
        assert_eq!(
            pace.rest(97 * MOMENT, 98 * MOMENT),
            2 * AT_ONCE,
            "it does not rest longer than it has time"
        );
        assert_eq!(pace.rest(100 * MOMENT, 200 * MOMENT), Duration::ZERO);
        assert_eq!(pace.rest(MOMENT, 0), Duration::ZERO, "a clock that goes back");
        assert_eq!(Pace { until: u64::MAX }.rest(0, u64::MAX - 7), Duration::from_nanos(7));
    }

    #[test]
    fn chunk_that_is_written_all_the_time_is_never_left_alone() {
        let mut habits = Habits::default();
        let seen = watch(&[1, 2, 3, 4, 5], &mut habits);
        assert_eq!((seen.returns, seen.is_left, habits.left), (0, false, [0; 3]));
    }

    #[test]
    fn chunk_that_is_frozen_tells_nothing_and_what_was_long_ago_fades() {
        let mut habits = Habits::default();
        let left = watch(&[1, 1], &mut habits);
        assert!(left.is_left);
        left.forget(&mut habits);
        assert_eq!(habits.left, [0; 3]);
        for _ in 0..10 * MOST_COUNTED {
            watch(&[1, 1, 2], &mut habits);
        }
        assert!(habits.left[0] <= MOST_COUNTED && habits.returns(0) == 8);
        for _ in 0..2 * MOST_COUNTED {
            watch(&[1, 1], &mut habits);
        }
        assert!(habits.returns(0) < FEW_RETURNS + 2, "{}", habits.returns(0));
    }
}
