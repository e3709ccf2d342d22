//! Freezing by itself: what nobody has written for a while.
//!
//! ```text
//!          written since the last look                nobody has written it for `after`
//! HOT ◄───────────────────────────── COOLING ─────────────────────────────► FROZEN, unless it was written meanwhile
//! ```
//!
//! I-1 What is frozen depends on what was written when the database was looked at, on nothing else: a simulation looks
//! by [`Database::freeze_if_due`].
//! I-2 Whoever owns a partition runs at normal priority; only the encoding gives way to transactions.
//! I-3 The thread ends before the database does.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use albireo_base::{Epoch, PartitionId, SqlError, SqlState, TableId};
use albireo_partition::TableHandle;
use albireo_storage::SnapshotScope;
use parking_lot::{Condvar, Mutex};

use super::{FreezeReport, Pick};
use crate::Database;
use crate::errors::no_thread;

/// Looks at the tables in the time after which a chunk is frozen.
const LOOKS: u32 = 4;
/// Between two looks at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// When rows are frozen by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FreezeSchedule {
    /// When nobody has written a chunk of some thousand rows for so long, at least a millisecond; `None`: only by
    /// `CALL albireo.freeze`.
    pub after: Option<Duration>,
}

impl FreezeSchedule {
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
type ChunkPlace = (PartitionId, u32);

/// The schedule of one database, and what it has seen.
pub(crate) struct Freezing {
    schedule: FreezeSchedule,
    /// When each chunk that has blocks was written last, and when that was seen first.
    seen: Mutex<HashMap<(TableId, ChunkPlace), (Epoch, u64)>>,
    is_closing: Mutex<bool>,
    /// Told when the database closes.
    ends: Condvar,
}

impl Freezing {
    pub(crate) fn new(schedule: FreezeSchedule) -> Self {
        let (seen, is_closing) = (Mutex::default(), Mutex::new(false));
        Self { schedule, seen, is_closing, ends: Condvar::new() }
    }

    pub(crate) fn close(&self) {
        *self.is_closing.lock() = true;
        self.ends.notify_all();
    }

    fn goes_on(&self) -> bool {
        !*self.is_closing.lock()
    }

    /// Lets some time pass; whether the database is still open then.
    fn pause(&self, after: Duration) -> bool {
        let mut is_closing = self.is_closing.lock();
        if !*is_closing {
            self.ends.wait_for(&mut is_closing, (after / LOOKS).min(LONGEST_PAUSE));
        }
        !*is_closing
    }
}

impl Database {
    /// Freezes what nobody has written for long enough ([`crate::Config::freeze`]), on this thread. For a simulation; a
    /// database that runs by itself does so.
    ///
    /// # Errors
    /// There is no memory; what was frozen before stays so.
    pub fn freeze_if_due(&self) -> Result<FreezeReport, SqlError> {
        let mut report = FreezeReport::default();
        let Some(after) = self.inner.freezing.schedule.after else { return Ok(report) };
        for (table, due) in self.due_chunks(after)? {
            let goes_on = || self.inner.freezing.goes_on();
            let pick = Pick { wants: &|place| due.contains(place), goes_on: &goes_on, gently: true };
            self.freeze_those(table, pick, &mut report)?;
        }
        // What was freed goes back to the system where nobody waits for it.
        self.inner.pool.shrink();
        Ok(report)
    }

    /// The chunks of each table that nobody has written for so long.
    fn due_chunks(&self, after: Duration) -> Result<Vec<(TableHandle, BTreeSet<ChunkPlace>)>, SqlError> {
        let catalog = self.catalog();
        let snapshot = self.inner.partitions.snapshot(&SnapshotScope::All);
        let snapshot = snapshot.map_err(|spent| crate::errors::session(spent.into()))?;
        let (mut seen, now) = (self.inner.freezing.seen.lock(), self.inner.env.clock.now());
        seen.retain(|(table, _), _| catalog.table(*table).is_some());
        let mut all = Vec::new();
        for def in catalog.tables() {
            let Some(view) = snapshot.table(def.id) else { continue };
            let mut due = BTreeSet::new();
            for chunk in (0..view.chunk_count()).map(|number| view.chunk(number)) {
                let place = (chunk.partition(), chunk.number());
                if !chunk.is_encodable() {
                    seen.remove(&(def.id, place));
                    continue;
                }
                let written = chunk.written();
                let (last, since) = seen.entry((def.id, place)).or_insert((written, now));
                if *last != written {
                    (*last, *since) = (written, now);
                }
                if now.saturating_sub(*since) >= after.as_nanos() as u64 {
                    due.insert(place);
                }
            }
            if !due.is_empty() {
                all.push((TableHandle::new(def.id, def.is_shared()), due));
            }
        }
        Ok(all)
    }

    /// Starts the thread that freezes, if the schedule wants one.
    pub(crate) fn start_freezing(&mut self) -> Result<(), SqlError> {
        let Some(after) = self.inner.freezing.schedule.after else { return Ok(()) };
        // Without a closer: it is not this handle that keeps the database open.
        let database = self.without_closer();
        let thread = albireo_env::spawn("albireo-freeze", move || {
            while database.inner.freezing.pause(after) {
                // Without memory for it, rows stay as they are, and are looked at again.
                let _ = database.freeze_if_due();
            }
        });
        self.closes_with(thread.map_err(no_thread)?);
        Ok(())
    }
}
