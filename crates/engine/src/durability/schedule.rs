//! Archives by themselves: when one is due, the thread that writes it, and what became of it.
//!
//! ```text
//!              due                          written
//! Waiting ────────────► Writing ───────────────────────────► Waiting
//!    ▲                     │ failed: noted, tried again later    ▲
//!    │                     ├─────────────────────────────────────┤
//!    │                     │ given up: the database closes, or   │
//!    │                     │ somebody asks for an archive now    │
//!    └─────────────────────┴─────────────────────────────────────┘
//! ```
//!
//! I-1 What is due depends on the clock, the bytes of the log and what came of the archives before, on nothing
//! else: a simulation asks ([`Database::checkpoint_due`]) and writes it itself.
//! I-2 The thread ends before the database does: it holds the database, but nobody who closes it waits for
//! more than the piece that is being written.
//! I-3 The snapshot is taken at normal priority, since whoever holds all partitions must not wait for a core;
//! only the writing gives way to transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_archive::{Progress, Report};
use albireo_base::{SqlError, SqlState};
use parking_lot::{Condvar, Mutex};

use super::CheckpointOptions;
use crate::Database;
use crate::errors::no_thread;

/// Between two looks whether an archive is due; less where the schedule is closer.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// After the first failed attempt in a row; each further one doubles it.
const FIRST_RETRY: Duration = Duration::from_secs(10);

/// The longest time between two attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(15 * 60);

/// When archives are written by themselves, and how. What comes first counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointSchedule {
    /// So long after the last one began, or the database was opened, if the log has grown since; `None`:
    /// never for the time.
    pub every: Option<Duration>,
    /// When the log has grown by so many bytes since the last one began, what was read of it by opening
    /// included, at least 1; `None`: never for the log.
    pub log_bytes: Option<u64>,
    /// How they are written.
    pub options: CheckpointOptions,
}

impl Default for CheckpointSchedule {
    /// Every 15 minutes or GiB of log, at 64 MiB a second, two kept: what opening has to do stays small, and
    /// writing takes a small part of a disk and of a core.
    fn default() -> Self {
        let options =
            CheckpointOptions { bytes_per_second: std::num::NonZeroU64::new(64 << 20), ..Default::default() };
        Self { every: Some(Duration::from_secs(15 * 60)), log_bytes: Some(1 << 30), options }
    }
}

impl CheckpointSchedule {
    /// Archives only when somebody asks for them.
    pub fn never() -> Self {
        Self { every: None, log_bytes: None, options: CheckpointOptions::default() }
    }

    fn is_never(&self) -> bool {
        self.every.is_none() && self.log_bytes.is_none()
    }

    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        let wrong = |what: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what));
        match () {
            () if self.every.is_some_and(|every| every < Duration::from_millis(1)) => {
                wrong("checkpoint.every must be at least a millisecond")
            }
            () if self.log_bytes == Some(0) => wrong("checkpoint.log_bytes must be at least 1"),
            () if self.options.keep == 0 => wrong("checkpoint.options.keep must be at least 1"),
            () => Ok(()),
        }
    }

    /// Whether an archive is due after so long and so many bytes of log.
    fn asks(&self, since: Duration, log_bytes: u64) -> bool {
        log_bytes > 0
            && (self.every.is_some_and(|every| since >= every)
                || self.log_bytes.is_some_and(|limit| log_bytes >= limit))
    }
}

/// What became of the archives of a database since it was opened.
#[derive(Clone, Debug, Default)]
pub struct ArchiveStatus {
    /// How far the one is that is being written.
    pub running: Option<Progress>,
    /// The last complete one that was written since then, with the restore points that went with older ones.
    pub last: Option<Report>,
    /// Why the last attempt failed; nothing once one has succeeded.
    pub failure: Option<SqlError>,
    /// Attempts that have failed since one succeeded.
    pub failures: u32,
    /// How long until the next attempt after failed ones, at the earliest.
    pub retry_in: Option<Duration>,
    /// Bytes of the log that opening the database now would have to do again, about.
    pub log_bytes: u64,
}

/// The schedule of one database, and where it stands.
pub(crate) struct Archiving {
    schedule: CheckpointSchedule,
    state: Mutex<State>,
    /// Told when the database closes.
    ends: Condvar,
}

struct State {
    running: Option<Progress>,
    last: Option<Report>,
    failure: Option<SqlError>,
    failures: u32,
    /// Not before this moment; 0 if nothing has failed.
    retry_ns: u64,
    /// When the last archive began, or the database was opened.
    began_ns: u64,
    /// Bytes of the log that were written before that.
    mark_bytes: u64,
    /// Bytes of the log behind the archive that was loaded, until the next archive.
    replayed_bytes: u64,
    /// Ends the archive that the schedule has begun.
    scheduled: Option<Arc<AtomicBool>>,
    is_closing: bool,
}

impl Archiving {
    pub(crate) fn new(schedule: CheckpointSchedule, began_ns: u64) -> Self {
        let state = State {
            running: None,
            last: None,
            failure: None,
            failures: 0,
            retry_ns: 0,
            began_ns,
            mark_bytes: 0,
            replayed_bytes: 0,
            scheduled: None,
            is_closing: false,
        };
        Self { schedule, state: Mutex::new(state), ends: Condvar::new() }
    }

    /// Notes what opening has read of the log.
    pub(super) fn opened(&self, replayed_bytes: u64, now_ns: u64) {
        let mut state = self.state.lock();
        (state.replayed_bytes, state.began_ns) = (replayed_bytes, now_ns);
    }

    /// Gives up an archive of the schedule, if one is being written: somebody wants one now.
    pub(super) fn give_way(&self) -> bool {
        let state = self.state.lock();
        state.scheduled.as_ref().inspect(|cancel| cancel.store(true, Ordering::Relaxed)).is_some()
    }

    /// Notes that writing has begun.
    pub(super) fn begin(&self) {
        self.state.lock().running = Some(Progress::default());
    }

    /// Notes how far it is.
    pub(super) fn note(&self, progress: Progress) {
        self.state.lock().running = Some(progress);
    }

    /// Notes how it ended: `began_ns` and `mark_bytes` are of the moment of the snapshot.
    pub(super) fn end(&self, done: &Result<Report, SqlError>, began_ns: u64, mark_bytes: u64, now_ns: u64) {
        let mut state = self.state.lock();
        state.running = None;
        match done {
            Ok(report) => {
                (state.last, state.failure, state.failures) = (Some(*report), None, 0);
                (state.began_ns, state.mark_bytes) = (began_ns, mark_bytes);
                (state.replayed_bytes, state.retry_ns) = (0, 0);
            }
            // Somebody wanted it to end; the schedule goes on as before.
            Err(error) if error.state() == SqlState::QUERY_CANCELED => {}
            Err(error) => {
                let doubled = FIRST_RETRY.saturating_mul(1 << state.failures.min(16));
                state.retry_ns = now_ns + doubled.min(LONGEST_RETRY).as_nanos() as u64;
                (state.failures, state.failure) = (state.failures.saturating_add(1), Some(error.clone()));
            }
        }
    }

    fn is_due(&self, now_ns: u64, written_bytes: u64) -> bool {
        let state = self.state.lock();
        let since = Duration::from_nanos(now_ns.saturating_sub(state.began_ns));
        let log_bytes = state.log_bytes(written_bytes);
        state.running.is_none()
            && !state.is_closing
            && now_ns >= state.retry_ns
            && self.schedule.asks(since, log_bytes)
    }

    /// Lets some time pass; whether the database is still open then.
    fn pause(&self) -> bool {
        let pause = self.schedule.every.map_or(LOOK_EVERY, |every| LOOK_EVERY.min(every));
        let mut state = self.state.lock();
        if !state.is_closing {
            self.ends.wait_for(&mut state, pause);
        }
        !state.is_closing
    }

    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        if let Some(cancel) = &state.scheduled {
            cancel.store(true, Ordering::Relaxed);
        }
        self.ends.notify_all();
    }

    /// The flag that ends the archive that the schedule begins now; set already if the database closes.
    fn schedule_one(&self) -> Arc<AtomicBool> {
        let mut state = self.state.lock();
        let cancel = Arc::new(AtomicBool::new(state.is_closing));
        state.scheduled = Some(Arc::clone(&cancel));
        cancel
    }
}

impl State {
    fn log_bytes(&self, written_bytes: u64) -> u64 {
        self.replayed_bytes + written_bytes.saturating_sub(self.mark_bytes)
    }
}

impl Database {
    /// What became of archives since the database was opened, by the schedule and by CHECKPOINT.
    pub fn archive_status(&self) -> ArchiveStatus {
        let now_ns = self.inner.env.clock.now();
        let written_bytes = self.log_written_bytes();
        let state = self.inner.archiving.state.lock();
        let retry_ns = state.retry_ns.saturating_sub(now_ns);
        ArchiveStatus {
            running: state.running,
            last: state.last,
            failure: state.failure.clone(),
            failures: state.failures,
            retry_in: (retry_ns > 0).then(|| Duration::from_nanos(retry_ns)),
            log_bytes: state.log_bytes(written_bytes),
        }
    }

    /// Whether the schedule asks for an archive now ([`crate::Config::checkpoint`]). The thread of
    /// [`Database::open`] looks itself; for a simulation, whose log makes its steps when told to.
    pub fn checkpoint_due(&self) -> bool {
        self.inner.home.get().is_some()
            && self.inner.archiving.is_due(self.inner.env.clock.now(), self.log_written_bytes())
    }

    /// Writes the archive that is due, as the schedule has it, on this thread; `None` if none is.
    ///
    /// # Errors
    /// As [`Database::checkpoint_with`]; the next attempt is due later then.
    pub fn checkpoint_if_due(&self) -> Option<Result<Report, SqlError>> {
        self.checkpoint_due().then(|| self.write_scheduled(false))
    }

    /// Writes an archive as the schedule has it; with `gently`, on a thread of low priority.
    fn write_scheduled(&self, gently: bool) -> Result<Report, SqlError> {
        let archiving = &self.inner.archiving;
        let cancel = archiving.schedule_one();
        let done = self.archive(&archiving.schedule.options, &cancel, gently, |_| {});
        archiving.state.lock().scheduled = None;
        done
    }

    /// Bytes that this process has written to the log.
    pub(super) fn log_written_bytes(&self) -> u64 {
        self.log().map_or(0, albireo_redo::Log::written_bytes)
    }

    /// Starts the thread that writes archives, if the schedule ever asks for one.
    pub(crate) fn start_schedule(&mut self) -> Result<(), SqlError> {
        if self.inner.archiving.schedule.is_never() {
            return Ok(());
        }
        // Without a closer: it is not this handle that keeps the database open.
        let database = self.without_closer();
        let thread = albireo_env::spawn("albireo-archive", move || database.run_schedule());
        self.closes_with(thread.map_err(no_thread)?);
        Ok(())
    }

    /// Body of the thread for archives.
    fn run_schedule(&self) {
        while self.inner.archiving.pause() {
            if self.checkpoint_due() {
                // What failed can be seen in the status, and is tried again.
                let _ = self.write_scheduled(true);
            }
        }
    }
}
