//! Frozen chunks leave memory when that is short: those first that no transaction has read for longest.
//!
//! 1. What is frozen, and was not read for ten seconds, leaves.
//! 2. What was not written for a moment is frozen without waiting for its time, if few of its like are written again and it
//!    is not read often.
//! 3. What is frozen leaves, unless it was read just now.
//! 4. What may be written again is frozen: its rows would be moved out of the frozen chunk one by one.
//! 5. What is frozen leaves, unless it is read at this moment.
//! 6. What is read often is frozen: each read would decode a row.
//! 7. Anything frozen leaves.
//!
//! Each frozen chunk has the time at which a transaction has read it last, or it was frozen; those leave first whose time is
//! longest ago. What queries read does not count: they read for themselves. A margin is a 64th of
//! [`crate::Config::data_limit_bytes`], or a little more of a small one. Memory is short when less than one is left; the
//! thread makes two.
//!
//! I-1 A chunk leaves between two transactions, and its bytes are in a file before: in one of ours, or in that of the archive
//! which has it.
//! I-2 Whatever fails leaves rows where they are. Where files cannot be written, those leave still that lie in files already;
//! and who finds no memory then is told why none was made.
//! I-3 What is frozen to leave memory that has no room for it is in other memory, which is bounded: a 16th of the limit, or 16 MB,
//! and a few chunks. It stays there if it cannot be written, and then nothing more is frozen so.
//!
//! A hand that goes round as over a clock, and passes over what was read since it was there, is too fast where memory is
//! short: between two rounds, transactions have not read again what they read all the time.
//!
//! TPC-C at four times the limit, its rows of 3,000 MB, had 57 and 81 % of its throughput in memory while what is only read,
//! as ITEM is, was frozen as soon as memory was short, and has 68 to 92 % since that stays.
//!
//! Paper: DeBrabant and others, *Anti-Caching*, VLDB 2013, has a list of tuples by when they were read last, of which only
//! some transactions take note; this is of chunks, and a number for each.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use albireo_archive::{ArchiveError, Contents, FileEntry, Retained, retain_unless};
use albireo_base::{PartitionId, SqlError, SqlState, TableId};
use albireo_env::Env;
use albireo_execute::errors::out_of_memory;
use albireo_partition::{Evictor, TableHandle};
use albireo_storage::{ColdChunk, EvictedChunk, OutOfMemory};
use parking_lot::{Condvar, Mutex};

use super::How;
use super::freezer::{Due, Returning};
use super::shelf::{Archives, Pins, Shelves};
use crate::durability::Home;
use crate::errors::no_thread;
use crate::{Database, WeakDatabase};

/// Margins that are left when snapshots are ended, when room is made, and that are made.
const NONE: u64 = 0;
const SHORT: u64 = 1;
const ENOUGH: u64 = 2;
/// Margins that are left when it is watched what is written, and how often; and how often memory is looked at else.
const WATCHED: u64 = 16;
const WATCH: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_secs(1);
/// Margins that are left when chunks leave that are loaded when a database is opened: half.
const HALF: u64 = 32;
/// Bytes that are made room for one who waits for it.
const ONE_ROOM_BYTES: u64 = 32 << 20;
/// What may be on its way through other memory, as a part of the limit, and however small that is.
const PASSING: u64 = 16;
const LEAST_PASSING_BYTES: u64 = 16 << 20;
/// Chunks that are looked at while a partition is owned, and that leave together.
const LOOKED_AT: u32 = 64;
/// Ticks of a second, by which it is noted when chunks are read.
const TICKS: u64 = 16;
/// Ticks in which nobody has read what leaves before anything is frozen for it.
const IDLE: u32 = 160;
/// The same before what may be written again is frozen for it.
const SETTLED: u32 = 4;
/// The same before what is read often is frozen for it.
const RECENT: u32 = 1;
/// Between two tries to find something that may leave.
const PAUSE: Duration = Duration::from_millis(100);
/// Tries before giving up, and for how long then.
const TRIES: u32 = 3;
const REST: Duration = Duration::from_secs(1);

/// Whether rows may leave memory that does not suffice, and where to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// They stay: when [`crate::Config::data_limit_bytes`] is reached, changes are refused.
    #[default]
    Off,
    /// Of a database that is kept in a directory to `cold` in that; those of one in memory stay. What an archive has as it
    /// is frozen is not written once more.
    Auto,
    /// To this directory, which is made; files in it whose names end in `.cold` are removed. Archives have what they have.
    To(PathBuf),
}

/// What leaves memory in one database.
#[derive(Default)]
pub(crate) struct Evicting {
    shelves: OnceLock<Shelves>,
    /// Files of archives in which evicted chunks lie.
    pins: Arc<Pins>,
    /// Files of the newest archive, by the frozen chunks that they have.
    archived: Mutex<BTreeMap<u64, Arc<FileEntry>>>,
    /// Held by whoever makes room. Nothing was there to be frozen; it is not looked for again before this time.
    rests_until: Mutex<u64>,
    /// Bytes that room was made of so far.
    freed_bytes: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    has_thread: bool,
    is_closing: bool,
    is_wanted: bool,
}

thread_local! {
    /// Whether this thread makes room, and so is not to wait for that.
    static EVICTS: Cell<bool> = const { Cell::new(false) };
}

/// While this is there, the thread makes room.
struct Evicts;

impl Evicts {
    fn new() -> Self {
        EVICTS.set(true);
        Self
    }
}

impl Drop for Evicts {
    fn drop(&mut self) {
        EVICTS.set(false);
    }
}

/// What somebody who waits for room calls.
struct Room(WeakDatabase);

impl Evictor for Room {
    fn make_room(&self) -> bool {
        self.0.upgrade().is_some_and(|database| database.free_memory(ONE_ROOM_BYTES) > 0)
    }

    fn wake(&self) -> bool {
        self.0.upgrade().is_some_and(|database| database.inner.evicting.wake())
    }

    fn is_at_it(&self) -> bool {
        EVICTS.get()
    }
}

impl Evicting {
    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// Wakes the thread, if there is one.
    fn wake(&self) -> bool {
        let mut state = self.state.lock();
        state.is_wanted = true;
        self.changed.notify_all();
        state.has_thread
    }

    /// Waits until somebody wants room, or a while; `false` if the database closes.
    fn next(&self, a_while: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_wanted && !state.is_closing {
            self.changed.wait_for(&mut state, a_while);
        }
        state.is_wanted = false;
        !state.is_closing
    }

    /// From now on, chunks that this archive has lie in its files when they leave memory.
    pub(crate) fn note_archived(&self, contents: &Contents) {
        let files = contents.frozen_files().map(|(chunk, file)| (chunk, Arc::clone(file))).collect();
        *self.archived.lock() = files;
    }

    /// As [`albireo_archive::retain`], but files stay in which evicted chunks lie.
    pub(crate) fn retain(&self, env: &Env, directory: &Path, keep: usize) -> Result<Retained, ArchiveError> {
        retain_unless(env, directory, keep, &|path, remove| self.pins.unless_pinned(path, remove))
    }

    /// Gives memory back that readers of evicted chunks have left, and room in files that nobody wants.
    pub(super) fn tidy(&self) {
        if let Some(shelves) = self.shelves.get() {
            shelves.buffer().shrink();
            shelves.passing().shrink();
            shelves.give_room_back();
        }
    }
}

impl Database {
    /// Has rows leave memory for a directory when that is short, if they may.
    ///
    /// # Errors
    /// The directory cannot be made or emptied.
    pub(crate) fn set_eviction(&self, eviction: &Eviction, home: Option<&Home>) -> Result<(), SqlError> {
        let directory = match (eviction, home) {
            (Eviction::To(directory), _) => directory.clone(),
            (Eviction::Auto, Some(home)) => home.cold(),
            (Eviction::Auto, None) | (Eviction::Off, _) => return Ok(()),
        };
        let (env, pins) = (&self.inner.env, &self.inner.evicting.pins);
        let archives = home.map(|home| Archives::new(env, home.archive(), pins));
        let shelves = Shelves::open(&env.disk, &directory, archives).map_err(|error| {
            let text = format!("could not use the directory \"{}\": {error}", directory.display());
            SqlError::new(SqlState::IO_ERROR, text)
        })?;
        if self.inner.evicting.shelves.set(shelves).is_ok() {
            self.inner.partitions.set_evictor(Box::new(Room(self.downgrade())));
        }
        Ok(())
    }

    /// Starts the thread that makes room, if rows may leave memory.
    pub(crate) fn start_evicting(&mut self) -> Result<(), SqlError> {
        if self.inner.evicting.shelves.get().is_none() {
            return Ok(());
        }
        // Without a closer: it is not this handle that keeps the database open.
        let database = self.without_closer();
        let thread = albireo_env::spawn("albireo-evict", move || {
            let is_watched = || database.inner.pool.excess_bytes(WATCHED) > 0;
            while database.inner.evicting.next(if is_watched() { WATCH } else { LOOK }) {
                database.note_time();
                if database.inner.pool.excess_bytes(SHORT) > 0 {
                    database.make_enough();
                } else if is_watched() {
                    database.look_at_writes();
                }
                database.inner.evicting.shelves.get().into_iter().for_each(Shelves::give_room_back);
            }
        });
        self.closes_with(thread.map_err(no_thread)?);
        self.inner.evicting.state.lock().has_thread = true;
        Ok(())
    }

    /// Makes room until there is enough.
    fn make_enough(&self) {
        let pool = &self.inner.pool;
        let mut excess = pool.excess_bytes(ENOUGH);
        while excess > 0 && !self.inner.evicting.state.lock().is_closing {
            self.free_memory(excess.min(ONE_ROOM_BYTES));
            let left = pool.excess_bytes(ENOUGH);
            if left >= excess {
                // A snapshot may hold what was freed, or nothing may leave. Whoever takes more memory wakes it again.
                if pool.excess_bytes(NONE) > 0 {
                    self.inner.sessions.end_oldest();
                }
                return;
            }
            excess = left;
        }
    }

    /// Makes room of some bytes, and tells of how many. If nothing may be frozen or leave, it takes a moment to see which
    /// chunks nobody writes; not soon again if there are none. The caller owns no partition.
    fn free_memory(&self, bytes: u64) -> u64 {
        if self.inner.evicting.shelves.get().is_none() || EVICTS.get() {
            return 0;
        }
        let _evicts = Evicts::new();
        let (evicting, clock) = (&self.inner.evicting, &self.inner.env.clock);
        let before = evicting.freed_bytes.load(Ordering::Relaxed);
        let mut rests_until = evicting.rests_until.lock();
        let others = evicting.freed_bytes.load(Ordering::Relaxed) - before;
        if others > 0 {
            // Somebody has made room while this one waited.
            return others;
        }
        let tries = if *rests_until <= clock.now() { TRIES } else { 1 };
        let mut freed = 0;
        for attempt in 0..tries {
            if attempt > 0 {
                clock.sleep(PAUSE);
            }
            freed = self.free_once(bytes);
            if freed > 0 {
                break;
            }
        }
        if freed == 0 && tries > 1 {
            *rests_until = clock.now() + REST.as_nanos() as u64;
        }
        evicting.freed_bytes.fetch_add(freed, Ordering::Relaxed);
        freed
    }

    /// Makes room in the order that the module tells of.
    fn free_once(&self, wanted: u64) -> u64 {
        let now = self.note_time();
        let before = |ticks: u32| move |chunk: &ColdChunk| chunk.read_at().saturating_add(ticks) <= now;
        // To find what is due meets all executors, so it is found once, and not before it is asked for.
        let mut due = None;
        let mut freed = self.evict_bytes(wanted, before(IDLE));
        freed += self.freeze_bytes(&mut due, Returning::Few, wanted.saturating_sub(freed));
        freed += self.evict_bytes(wanted.saturating_sub(freed), before(SETTLED));
        freed += self.freeze_bytes(&mut due, Returning::Seldom, wanted.saturating_sub(freed));
        freed += self.evict_bytes(wanted.saturating_sub(freed), before(RECENT));
        freed += self.freeze_bytes(&mut due, Returning::Any, wanted.saturating_sub(freed));
        freed + self.evict_bytes(wanted.saturating_sub(freed), |_| true)
    }

    /// Freezes what is not written, so that some bytes become free, and tells how many did.
    fn freeze_bytes(&self, due: &mut Option<Vec<Due>>, who: Returning, wanted: u64) -> u64 {
        let Some(shelves) = self.inner.evicting.shelves.get().filter(|_| wanted > 0) else { return 0 };
        // What chunks took that had no rows any more.
        let mut emptied = 0;
        if due.is_none() {
            // Without memory for a snapshot, it is not known.
            *due = self.due_at_once().ok().map(|(due, bytes)| {
                emptied = bytes;
                due
            });
        }
        if emptied >= wanted {
            return emptied;
        }
        let (due, mut freed) = (due.as_deref().unwrap_or_default(), emptied);
        let done = self.freeze_at_once(due, who, How::AtOnce, |report| {
            freed = emptied + report.block_bytes.saturating_sub(report.bytes);
            freed >= wanted
        });
        if done.is_err() && freed == emptied && self.may_pass(shelves) {
            // There is no memory for what is smaller: it goes through other memory, so that all of what it was becomes free.
            // What cannot be done leaves rows as they are.
            let _ = self.freeze_at_once(due, who, How::ToLeave(shelves.passing()), |report| {
                freed = emptied + report.block_bytes;
                self.evict_bytes(u64::MAX, |chunk| chunk.read_at() == 0);
                freed >= wanted || !self.may_pass(shelves)
            });
        }
        freed
    }

    /// Whether chunks may be frozen in other memory, to leave it at once: little of those before is there still (I-3).
    fn may_pass(&self, shelves: &Shelves) -> bool {
        let most_bytes = (self.inner.pool.limit_bytes() / PASSING).max(LEAST_PASSING_BYTES);
        shelves.passing().in_use_bytes() < most_bytes
    }

    /// How chunks are frozen that somebody waits for, when there was no memory to do it: to leave memory at once.
    ///
    /// # Errors
    /// The `error`: it has another reason, or they cannot leave.
    pub(super) fn way_out<'a>(&'a self, error: SqlError, how: How<'a>) -> Result<How<'a>, SqlError> {
        let waits = matches!(how, How::Here | How::Alone) && error.state() == SqlState::OUT_OF_MEMORY;
        match self.inner.evicting.shelves.get().filter(|shelves| waits && self.may_pass(shelves)) {
            Some(shelves) => Ok(How::ToLeave(shelves.passing())),
            None => Err(error),
        }
    }

    /// Has chunks leave that were frozen so.
    ///
    /// # Errors
    /// 53200: too many of them cannot.
    pub(super) fn have_leave(&self) -> Result<(), SqlError> {
        let Some(shelves) = self.inner.evicting.shelves.get() else { return Ok(()) };
        {
            let _evicts = Evicts::new();
            let _rests_until = self.inner.evicting.rests_until.lock();
            self.evict_bytes(u64::MAX, |chunk| chunk.read_at() == 0);
        }
        let limit_bytes = self.inner.pool.limit_bytes();
        self.may_pass(shelves).then_some(()).ok_or_else(|| out_of_memory(OutOfMemory::Limit { limit_bytes }))
    }

    /// Tells those who read from now on what time it is, in ticks; 0 is never.
    fn note_time(&self) -> u32 {
        let now = (self.inner.env.clock.now() / (1_000_000_000 / TICKS)) as u32 + 1;
        self.inner.pool.set_time(now);
        now
    }

    /// Has all frozen chunks leave memory that may, and tells how many bytes did.
    pub fn evict_frozen(&self) -> u64 {
        let _evicts = Evicts::new();
        let _rests_until = self.inner.evicting.rests_until.lock();
        self.evict_bytes(u64::MAX, |_| true)
    }

    /// For tests: files of archives that stay, whatever archives need, because rows that are not in memory lie in them, or did when
    /// archives were thrown away last.
    #[doc(hidden)]
    pub fn evicted_archive_files(&self) -> Vec<PathBuf> {
        let directory = self.inner.home.get().map(Home::archive).unwrap_or_default();
        self.inner.evicting.pins.paths().into_iter().map(|path| directory.join(path)).collect()
    }

    /// If memory is half full, chunks of a table that is being loaded, ready to leave it: what comes behind them is hot, and
    /// needs its blocks and indexes. They were loaded from `files` of the archives in a directory: frozen ones, in their order.
    pub(crate) fn leaving(
        &self,
        table: TableId,
        cold: impl FnOnce() -> Vec<ColdChunk>,
        (directory, files): (&Path, &[&FileEntry]),
    ) -> Option<Vec<EvictedChunk>> {
        let shelves = self.inner.evicting.shelves.get()?;
        let is_short = self.inner.pool.excess_bytes(HALF) > 0;
        let files: &[&FileEntry] = if shelves.has_archives(directory) { files } else { &[] };
        let file_of = |chunk: &ColdChunk| {
            let file = files.get(chunk.number() as usize).copied();
            file.filter(|file| file.frozen.is_some())
        };
        let mut may_write = true;
        let put = |chunk: &ColdChunk| shelves.put(table, chunk, file_of(chunk), &mut may_write);
        is_short.then(|| cold().iter().filter_map(put).collect())
    }

    /// Whether memory has room for so many bytes, so that nothing has to leave for them.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.inner.pool.excess_bytes_with(bytes, SHORT) == 0
    }

    /// Whether rows may leave memory.
    pub(super) fn may_evict(&self) -> bool {
        self.inner.evicting.shelves.get().is_some()
    }

    /// Has frozen chunks of some bytes leave memory, of those that `may`, and tells how many bytes did: first those that
    /// nobody has read for longest.
    fn evict_bytes(&self, wanted: u64, may: impl Fn(&ColdChunk) -> bool) -> u64 {
        let Some(shelves) = self.inner.evicting.shelves.get().filter(|_| wanted > 0) else { return 0 };
        let mut cold = self.cold_chunks(may);
        cold.sort_by_key(|(.., chunk)| chunk.read_at());
        let (mut cold, mut evicted, mut may_write) = (cold.into_iter().peekable(), 0, true);
        while let Some(&(table, partition, _)) = cold.peek().filter(|_| evicted < wanted) {
            let (mut chunks, mut bytes) = (Vec::new(), 0);
            while chunks.len() < LOOKED_AT as usize && bytes < wanted - evicted {
                let of_it = |(of, part, _): &ColdPart| (*of, *part) == (table, partition);
                let Some((.., chunk)) = cold.next_if(of_it) else { break };
                let file = self.inner.evicting.archived.lock().get(&chunk.id()).cloned();
                if let Some(put) = shelves.put(table.id(), &chunk, file.as_deref(), &mut may_write) {
                    bytes += chunk.bytes();
                    chunks.push(put);
                }
            }
            if !chunks.is_empty() {
                evicted += self.inner.partitions.evict(table, partition, chunks);
            }
        }
        evicted
    }

    /// An error, with why rows could not leave memory if that is full.
    pub(crate) fn with_why_full(&self, error: SqlError) -> SqlError {
        let is_full = error.state() == SqlState::OUT_OF_MEMORY && self.is_full(&error);
        if !is_full || error.detail().is_some() {
            return error;
        }
        match self.inner.evicting.shelves.get().and_then(Shelves::why_unwritten) {
            Some(why) => error.with_detail(why),
            None => error,
        }
    }

    /// The frozen chunks of all tables that take memory and `may` leave it.
    fn cold_chunks(&self, may: impl Fn(&ColdChunk) -> bool) -> Vec<ColdPart> {
        let (catalog, mut all) = (self.catalog(), Vec::new());
        for def in catalog.tables() {
            let table = TableHandle::new(def.id, def.is_shared());
            let count = if def.is_shared() { 1 } else { self.inner.partitions.count() };
            for partition in (0..count).map(PartitionId) {
                let mut next = Some(0);
                while let Some(from) = next {
                    let (cold, more) = self.inner.partitions.cold_chunks(table, partition, from, LOOKED_AT);
                    let those = cold.into_iter().filter(|chunk| may(chunk));
                    all.extend(those.map(|chunk| (table, partition, chunk)));
                    next = more;
                }
            }
        }
        all
    }
}

/// A chunk, and the partition's part of the table that it is of.
type ColdPart = (TableHandle, PartitionId, ColdChunk);
