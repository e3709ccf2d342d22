//! Frozen chunks leave memory when that is short: those first that no transaction has read for longest.
//!
//! A hand goes round over the chunks of all tables, as over a clock: a chunk that a transaction has read since the hand was
//! there is passed over once. What queries read does not count: they read for themselves. Memory is short when more than
//! 15 of 16 parts of [`crate::Config::data_limit_bytes`] are taken; the thread stops at 14. If it finds nothing frozen,
//! what was written longest ago is frozen without waiting for its time.
//!
//! I-1 A chunk leaves between two transactions, and its bytes are in a file before.
//! I-2 Whatever fails leaves rows where they are.
//!
//! Paper: DeBrabant and others, *Anti-Caching*, VLDB 2013, has a list of tuples by when they were read last, of which only
//! some transactions take note; this is of chunks, and a bit of each.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use albireo_base::{PartitionId, SqlError, SqlState, TableId};
use albireo_partition::{Evictor, TableHandle};
use albireo_storage::{ColdChunk, EvictedChunk};
use parking_lot::{Condvar, Mutex};

use super::shelf::Shelves;
use crate::durability::Home;
use crate::errors::no_thread;
use crate::{Database, WeakDatabase};

/// Sixteenths of the limit at which room is made, and down to which.
const SHORT: u64 = 15;
const ENOUGH: u64 = 14;
/// From which on it is watched what is written, and how often.
const WATCHED: u64 = 12;
const WATCH: Duration = Duration::from_secs(1);
/// Sixteenths of the limit at which chunks leave that are loaded when a database is opened.
const HALF: u64 = 8;
/// Bytes that are made room for one who waits for it.
const ONE_ROOM_BYTES: u64 = 32 << 20;
/// Chunks that are looked at while a partition is owned, and that leave together.
const LOOKED_AT: u32 = 64;
/// Between two tries to find something that may leave.
const PAUSE: Duration = Duration::from_millis(100);
/// Looks for something to freeze at once before giving up, and for how long then.
const LOOKS: u32 = 3;
const REST: Duration = Duration::from_secs(1);
/// Times that the hand goes round in one search: at the first, it passes over what was read.
const ROUNDS: usize = 2;
/// Between these, so that transactions can read again what they read all the time: where little is frozen and in memory,
/// a round takes microseconds.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(10);

/// Whether rows may leave memory that does not suffice, and where to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// They stay: when [`crate::Config::data_limit_bytes`] is reached, changes are refused.
    #[default]
    Off,
    /// Of a database that is kept in a directory to `cold` in that; those of one in memory stay.
    Auto,
    /// To this directory, which is made; files in it whose names end in `.cold` are removed.
    To(PathBuf),
}

/// Where the hand is: a table's part, and a chunk's number there.
type Hand = Option<(TableId, PartitionId, u32)>;

/// What leaves memory in one database.
#[derive(Default)]
pub(crate) struct Evicting {
    shelves: OnceLock<Shelves>,
    /// Held by whoever makes room.
    search: Mutex<Search>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The search for what may leave.
#[derive(Default)]
struct Search {
    hand: Hand,
    /// Nothing was there to be frozen; it is not looked for again before.
    rests_until: u64,
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

    /// Waits until somebody wants room, or a while: whether somebody does; `None` if the database closes.
    fn next(&self) -> Option<bool> {
        let mut state = self.state.lock();
        if !state.is_wanted && !state.is_closing {
            self.changed.wait_for(&mut state, WATCH);
        }
        (!state.is_closing).then(|| std::mem::take(&mut state.is_wanted))
    }

    /// Gives memory back that readers of evicted chunks have left.
    pub(super) fn tidy(&self) {
        if let Some(shelves) = self.shelves.get() {
            shelves.tidy();
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
        let shelves = Shelves::open(&self.inner.env.disk, &directory).map_err(|error| {
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
            while let Some(is_wanted) = database.inner.evicting.next() {
                if is_wanted {
                    database.evict_if_short();
                } else if database.inner.pool.excess_bytes(WATCHED) > 0 {
                    database.look_at_writes();
                }
            }
        });
        self.closes_with(thread.map_err(no_thread)?);
        self.inner.evicting.state.lock().has_thread = true;
        Ok(())
    }

    /// Has rows leave memory as long as that is short.
    fn evict_if_short(&self) {
        let pool = &self.inner.pool;
        if pool.excess_bytes(SHORT) == 0 {
            return;
        }
        loop {
            match pool.excess_bytes(ENOUGH) {
                0 => return,
                excess if self.free_memory(excess.min(ONE_ROOM_BYTES)) > 0 => {}
                // Nothing may leave: a snapshot may. Whoever takes more memory wakes it again.
                _ => return self.inner.sessions.end_oldest(),
            }
            if self.inner.evicting.state.lock().is_closing || pool.excess_bytes(SHORT) == 0 {
                return;
            }
        }
    }

    /// Has frozen chunks of some bytes leave memory, and tells how many bytes did. If none are frozen, it takes a moment
    /// to see which nobody writes; not soon again if there are none. The caller owns no partition.
    fn free_memory(&self, bytes: u64) -> u64 {
        let Some(shelves) = self.inner.evicting.shelves.get().filter(|_| !EVICTS.get()) else { return 0 };
        let _evicts = Evicts::new();
        let mut search = self.inner.evicting.search.lock();
        let mut evicted = self.evict_bytes(&mut search.hand, bytes, BETWEEN_ROUNDS);
        let clock = &self.inner.env.clock;
        if evicted > 0 || search.rests_until > clock.now() {
            return evicted;
        }
        for _ in 0..LOOKS {
            // What cannot be done leaves rows as they are.
            let _ = self.freeze_to_leave(shelves.buffer(), || {
                evicted += self.evict_bytes(&mut search.hand, bytes, BETWEEN_ROUNDS);
                evicted >= bytes
            });
            if evicted > 0 {
                return evicted;
            }
            clock.sleep(PAUSE);
        }
        search.rests_until = clock.now() + REST.as_nanos() as u64;
        0
    }

    /// Has all frozen chunks leave memory that may, and tells how many bytes did.
    pub fn evict_frozen(&self) -> u64 {
        self.evict_bytes(&mut self.inner.evicting.search.lock().hand, u64::MAX, Duration::ZERO)
    }

    /// If memory is half full, chunks of a table that is being loaded, ready to leave it: what comes behind them is hot, and
    /// needs its blocks and indexes.
    pub(crate) fn leaving(&self, cold: impl FnOnce() -> Vec<ColdChunk>) -> Option<Vec<EvictedChunk>> {
        let shelves = self.inner.evicting.shelves.get()?;
        let is_short = self.inner.pool.excess_bytes(HALF) > 0;
        // What cannot be written stays.
        is_short.then(|| cold().iter().map_while(|chunk| shelves.put(chunk).ok()).collect())
    }

    /// Whether rows may leave memory.
    pub(super) fn may_evict(&self) -> bool {
        self.inner.evicting.shelves.get().is_some()
    }

    fn evict_bytes(&self, hand: &mut Hand, wanted: u64, between: Duration) -> u64 {
        let Some(shelves) = self.inner.evicting.shelves.get() else { return 0 };
        let catalog = self.catalog();
        let mut parts: Vec<(TableHandle, PartitionId)> = Vec::new();
        for def in catalog.tables() {
            let table = TableHandle::new(def.id, def.is_shared());
            let count = if def.is_shared() { 1 } else { self.inner.partitions.count() };
            parts.extend((0..count).map(|partition| (table, PartitionId(partition))));
        }
        parts.sort_by_key(|(table, partition)| (table.id(), *partition));
        let (at, mut chunk) =
            hand.map_or(((TableId(0), PartitionId(0)), 0), |(table, part, n)| ((table, part), n));
        let first = parts.iter().position(|(table, part)| (table.id(), *part) >= at).unwrap_or(0);
        if parts.get(first).is_none_or(|(table, part)| (table.id(), *part) != at) {
            chunk = 0;
        }
        let mut evicted = 0;
        let round = parts.iter().cycle().skip(first).take(parts.len() * ROUNDS + 1);
        for (looked, (table, partition)) in round.enumerate() {
            if looked == parts.len() && !between.is_zero() {
                self.inner.env.clock.sleep(between);
            }
            let mut next = Some(std::mem::take(&mut chunk));
            while let Some(from) = next {
                let (cold, more) = self.inner.partitions.cold_chunks(*table, *partition, from, LOOKED_AT);
                // What cannot be written stays.
                let chunks = cold.iter().map_while(|chunk| shelves.put(chunk).ok()).collect::<Vec<_>>();
                if !chunks.is_empty() {
                    drop(cold);
                    evicted += self.inner.partitions.evict(*table, *partition, chunks);
                }
                *hand = Some((table.id(), *partition, more.unwrap_or(u32::MAX)));
                if evicted >= wanted {
                    return evicted;
                }
                next = more;
            }
        }
        evicted
    }
}
