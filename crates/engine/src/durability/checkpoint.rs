//! Writing archives while transactions run, and what the log may forget then.
//!
//! I-1 The snapshot of an archive and the end of a frame of the log are of one moment: all partitions are
//! owned while both are made.
//! I-2 Segments of the log go only when each archive that is kept can do without them.
//! I-3 On a full disk what is older than the newest archive goes first, but only after all of that one was read
//! and found sound: at any moment there is one that can be loaded, with the log behind it.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use albireo_archive::{
    ArchiveError, ColumnMeta, Contents, Gone, LogPosition, Progress, Report, Request, RestorePoint,
    TableMeta, write,
};
use albireo_base::{SqlError, SqlState};
use albireo_redo::{Log, LogError, Ticket, oldest_segment};
use albireo_sql::Catalog;
use albireo_storage::{DatabaseSnapshot, SnapshotScope};
use parking_lot::Mutex;

use super::Home;
use super::recovery::utc;
use crate::Database;
use crate::errors::{log as log_error, session as snapshot_error};
use crate::stored::Definitions;

/// Looks whether a log for which room was made has found it, and the time between two.
const LOG_TRIES: u32 = 40;
const LOG_RETRY: Duration = Duration::from_millis(50);

const NO_ROOM: &str = "Remove other files or add space: a new archive needs room beside the newest one.";

/// How an archive is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointOptions {
    /// The most to write in a second, in bytes; `None`: as fast as the disk takes it.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Archives to keep, this one included, at least 1. On a full disk older ones go, before a new one is
    /// written, if the newest is sound.
    pub keep: usize,
}

impl Default for CheckpointOptions {
    /// At full speed; two are kept, so that one that turns out to be damaged can be done without.
    fn default() -> Self {
        Self { bytes_per_second: None, keep: 2 }
    }
}

impl Database {
    /// Writes an archive of the database as it is now while transactions go on, then removes what no kept
    /// archive needs: older archives, and segments of the redo log. `progress` is told from time to time.
    /// An archive that the schedule is writing is given up for it.
    ///
    /// On a full disk it first removes what the newest archive, which is read whole for that and found to be
    /// sound, can do without, and then tries again.
    ///
    /// # Errors
    /// 0A000 for a database that lives in memory; 53100 if the disk is full, 58030 if it fails; 55006 if
    /// another is being written. What was there before is still there, as far as the newest archive needs it.
    pub fn checkpoint_with(
        &self,
        options: &CheckpointOptions,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<Report, SqlError> {
        self.archive(options, &Arc::default(), false, progress)
    }

    /// Writes an archive until `cancel` is set; with `gently`, it is one of the schedule, whose writing gives
    /// way to all other threads.
    pub(super) fn archive(
        &self,
        options: &CheckpointOptions,
        cancel: &Arc<AtomicBool>,
        gently: bool,
        mut progress: impl FnMut(Progress) + Send,
    ) -> Result<Report, SqlError> {
        let (Some(home), Some(log)) = (self.inner.home.get(), self.log()) else {
            return Err(SqlError::unsupported("CHECKPOINT of a database that lives in memory")
                .with_hint("Open it with a directory."));
        };
        let mut last = match self.inner.archived.try_lock() {
            Some(last) => last,
            None if !gently && self.inner.archiving.give_way() => self.inner.archived.lock(),
            None => {
                let text = "an archive is being written already";
                return Err(SqlError::new(SqlState::OBJECT_IN_USE, text));
            }
        };
        let work = ArchiveJob { home, log, options, cancel, gently };
        let earliest = self.earliest(home);
        self.inner.archiving.begin();
        let (mut began_ns, mut mark_bytes) = (0, 0);
        let mut attempt = || {
            (began_ns, mark_bytes) = (self.inner.env.clock.now(), self.log_written_bytes());
            self.archive_once(&work, &mut last, &mut progress)
        };
        let mut done = attempt();
        // What there is to remove becomes less every time.
        while matches!(&done, Err(full) if full.state() == SqlState::DISK_FULL) {
            // Why there is no room is more to the point than why none was made.
            match self.make_room(&work) {
                Ok(true) => done = attempt(),
                Ok(false) | Err(_) => {
                    done = done.map_err(|full| full.with_hint(NO_ROOM));
                    break;
                }
            }
        }
        let done = self.tell_gone(home, earliest, done);
        self.inner.archiving.end(&done, began_ns, mark_bytes, self.inner.env.clock.now());
        done
    }

    /// The earliest moment that the database can be restored to.
    fn earliest(&self, home: &Home) -> Option<RestorePoint> {
        let env = &self.inner.env;
        let oldest = oldest_segment(&*env.disk, &home.log()).ok().flatten();
        if let Some(first) = oldest.filter(|first| (first.first_sequence, first.first_ordinal) == (1, 1)) {
            return Some(RestorePoint { record: 1, time_us: first.created_us });
        }
        let listing = albireo_archive::list(env, &home.archive()).ok()?;
        let oldest = listing.complete.iter().min_by_key(|manifest| manifest.log.sequence)?;
        let record = oldest.log.next_record.saturating_sub(1);
        Some(RestorePoint { record, time_us: oldest.time_us })
    }

    /// Says which moments the database could be restored to before, and no more.
    fn tell_gone(
        &self,
        home: &Home,
        before: Option<RestorePoint>,
        done: Result<Report, SqlError>,
    ) -> Result<Report, SqlError> {
        let gone = before.zip(self.earliest(home));
        let gone = gone.filter(|(from, until)| from.record < until.record);
        let gone = gone.map(|(from, until)| Gone { from, until });
        match (done, gone) {
            (Ok(report), gone) => Ok(Report { gone, ..report }),
            // Room was made for it.
            (Err(error), Some(gone)) if error.detail().is_none() => Err(error.with_detail(gone_text(&gone))),
            (Err(error), _) => Err(error),
        }
    }

    fn archive_once(
        &self,
        work: &ArchiveJob<'_>,
        last: &mut Option<Contents>,
        progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<Report, SqlError> {
        let ArchiveJob { home, log, options, .. } = *work;
        let Captured { time_us, snapshot, definitions, catalog, sequence, next_record } = self.capture()?;
        // An archive must not know more than the log does, or an older one could not be used with it. A log
        // without room says so, since it may be this that makes room.
        log.wait_for_reader(Ticket(sequence)).map_err(|error| log_error(&error))?;
        let request = Request {
            time_us,
            log: LogPosition { log: log.log_id(), sequence, next_record },
            partitions: self.partitions(),
            catalog: definitions.to_json(),
            tables: catalog.tables().map(|table| meta(table)).collect(),
            bytes_per_second: options.bytes_per_second,
            cancel: Arc::clone(work.cancel),
        };
        let (env, directory) = (&self.inner.env, home.archive());
        let tell = |now: Progress| {
            self.inner.archiving.note(now);
            progress(now);
        };
        let writing = || write(env, &directory, snapshot, request, last.as_ref(), tell);
        let written = if work.gently { at_low_priority(THREAD, writing) } else { writing() };
        let written = written.map_err(archive_error)?;
        let evicting = &self.inner.evicting;
        // Before older ones go: chunks lie in the files of the newest.
        evicting.note_archived(&written.contents);
        *last = Some(written.contents);
        evicting.retain(env, &directory, options.keep).map_err(archive_error)?;
        self.forget_log(&directory)?;
        Ok(written.report)
    }

    /// Removes what is left over of archives that were never complete, or else what the newest archive can do
    /// without: older ones, and the log that only they need. Whether anything went.
    fn make_room(&self, work: &ArchiveJob<'_>) -> Result<bool, SqlError> {
        let (env, directory, evicting) = (&self.inner.env, work.home.archive(), &self.inner.evicting);
        let mut retained = evicting.retain(env, &directory, work.options.keep).map_err(archive_error)?;
        if retained.files_removed == 0 {
            let listing = albireo_archive::list(env, &directory).map_err(archive_error)?;
            let [newest, _, ..] = &listing.complete[..] else { return Ok(false) };
            // Older ones are kept for the case that this one is damaged, so it must not be.
            let sound = || albireo_archive::is_sound(env, &directory, newest, work.cancel);
            let sound = if work.gently { at_low_priority(THREAD, sound) } else { sound() };
            if !listing.unreadable.is_empty() || sound != Some(true) {
                return Ok(false);
            }
            retained = evicting.retain(env, &directory, 1).map_err(archive_error)?;
        }
        let segments = self.forget_log(&directory)?;
        for _ in 0..LOG_TRIES {
            // A log without room tries again by itself; what it waits for goes before the archive.
            if !matches!(work.log.check_freeing(), Err(LogError::Full(_))) {
                break;
            }
            env.clock.sleep(LOG_RETRY);
        }
        Ok(retained.files_removed > 0 || segments > 0)
    }

    /// Writes an archive with the default options; SQL's CHECKPOINT.
    ///
    /// # Errors
    /// As [`Database::checkpoint_with`].
    pub fn checkpoint(&self) -> Result<Report, SqlError> {
        self.checkpoint_with(&CheckpointOptions::default(), |_| {})
    }

    /// Everything that an archive says, of one moment.
    pub(super) fn capture(&self) -> Result<Captured, SqlError> {
        let _fixed = self.inner.definitions.read();
        let library = self.library();
        let catalog = Arc::clone(&library.catalog);
        let definitions = Definitions {
            catalog: catalog.stored(),
            routines: library.stored(),
            next_routine: library.next_id(),
        };
        let _whole = self.inner.partitions.without_parts();
        let (time_us, snapshot, sealed) = self
            .inner
            .partitions
            .exclusively(|all| {
                let snapshot = all.snapshot(&SnapshotScope::All)?;
                snapshot.exempt();
                // Not earlier: what is in the archive is not later than it says, so that recovery to a time knows
                // which archive is early enough.
                Ok((self.inner.env.clock.unix_us(), snapshot, all.seal_log()))
            })
            .map_err(|spent: albireo_storage::BudgetSpent| snapshot_error(spent.into()))?;
        let (sequence, next_record) = sealed.unwrap_or_default();
        Ok(Captured { time_us, snapshot, definitions, catalog, sequence, next_record })
    }

    /// Removes segments that no archive needs any more; how many.
    fn forget_log(&self, directory: &std::path::Path) -> Result<usize, SqlError> {
        let listing = albireo_archive::list(&self.inner.env, directory).map_err(archive_error)?;
        // One that cannot be read may be needed after it was mended; then nothing goes.
        let oldest = listing.complete.iter().map(|manifest| manifest.log.sequence).min();
        if let (Some(oldest), Some(log), true) = (oldest, self.log(), listing.unreadable.is_empty()) {
            return log.remove_before(oldest + 1).map_err(|failure| {
                SqlError::new(SqlState::IO_ERROR, format!("could not remove old segments: {failure}"))
            });
        }
        Ok(0)
    }
}

/// Which restore points are gone, in words.
pub fn gone_text(gone: &Gone) -> String {
    let Gone { from, until } = gone;
    format!(
        "restore points from record {} of {} to record {} are gone with older archives and their log; the earliest is \
         now record {} of {}",
        from.record,
        utc(from.time_us),
        until.record - 1,
        until.record,
        utc(until.time_us)
    )
}

/// What writing an archive needs.
struct ArchiveJob<'a> {
    home: &'a Home,
    log: &'a Log,
    options: &'a CheckpointOptions,
    cancel: &'a Arc<AtomicBool>,
    gently: bool,
}

/// The thread that writes archives gently.
const THREAD: &str = "albireo-archive";

/// Does something on a thread of this name that gives way to all others; on this one, if there is no other.
pub(crate) fn at_low_priority<R: Send>(name: &str, work: impl FnOnce() -> R + Send) -> R {
    let work = Mutex::new(Some(work));
    let run = || {
        let work = work.lock().take().expect("it is done once");
        work()
    };
    albireo_env::scope(|scope| {
        let gently = || {
            // Without permission it runs at the priority it has.
            let _ = albireo_env::lower_priority();
            run()
        };
        match albireo_env::spawn_scoped(scope, name, gently) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => run(),
        }
    })
}

/// A moment of a database.
pub(super) struct Captured {
    /// When it is, in microseconds since 1970.
    pub(super) time_us: i64,
    pub(super) snapshot: Arc<DatabaseSnapshot>,
    pub(super) definitions: Definitions,
    pub(super) catalog: Arc<Catalog>,
    /// The last frame of the log that it has; 0 without a log.
    pub(super) sequence: u64,
    /// The ordinal of the first record that it has not; 0 without a log.
    pub(super) next_record: u64,
}

pub(super) fn meta(table: &albireo_sql::TableDef) -> TableMeta {
    let column = |column: &albireo_sql::ColumnDef| ColumnMeta {
        name: column.name.clone(),
        ty: column.ty,
        nullable: column.nullable,
    };
    TableMeta {
        id: table.id,
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: table.columns.iter().map(column).collect(),
    }
}

/// What went wrong with an archive, as SQL says it.
pub(super) fn archive_error(error: ArchiveError) -> SqlError {
    let state = match &error {
        ArchiveError::Unread(error) => return error.clone().into(),
        ArchiveError::NoSpace { .. } => SqlState::DISK_FULL,
        ArchiveError::Io { .. } => SqlState::IO_ERROR,
        ArchiveError::Busy { .. } => SqlState::OBJECT_IN_USE,
        ArchiveError::Cancelled => SqlState::QUERY_CANCELED,
        ArchiveError::SnapshotEnded => SqlState::SNAPSHOT_TOO_OLD,
        ArchiveError::Format { .. } => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::DATA_CORRUPTED,
    };
    SqlError::new(state, error.to_string())
}

/// Whether a statement is CHECKPOINT, which the SQL parser does not know.
///
/// # Errors
/// 42601 if something follows.
pub(crate) fn is_checkpoint(text: &str) -> Result<bool, SqlError> {
    let trimmed = text.trim_start();
    let word = trimmed.get(..10).filter(|word| word.eq_ignore_ascii_case("checkpoint"));
    let Some(rest) = word.and_then(|_| trimmed.get(10..)) else { return Ok(false) };
    match rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';') {
        "" => Ok(true),
        more if rest.starts_with(|c: char| c.is_whitespace() || c == ';') => {
            let position = text.chars().count() - more.chars().count() + 1;
            let word: String = more.chars().take_while(|c| !c.is_whitespace()).collect();
            let text = format!("syntax error at or near \"{word}\"");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, text).with_position(position))
        }
        _ => Ok(false),
    }
}
