//! Writing archives while transactions run, and what the log may forget then.
//!
//! I-1 The snapshot of an archive and the end of a frame of the log are of one moment: all partitions are
//! owned while both are made.
//! I-2 Segments of the log go only when each archive that is kept can do without them.

use std::num::NonZeroU64;
use std::sync::Arc;

use albireo_archive::{
    ArchiveError, ColumnMeta, LogPosition, Progress, Report, Request, TableMeta, retain, write,
};
use albireo_base::{SqlError, SqlState};
use albireo_redo::Ticket;
use albireo_sql::Catalog;
use albireo_storage::{DatabaseSnapshot, SnapshotScope};

use super::stored::Definitions;
use crate::Database;
use crate::errors::{log as log_error, session as snapshot_error};

/// How an archive is written.
#[derive(Clone, Debug)]
pub struct CheckpointOptions {
    /// The most to write in a second, in bytes; `None`: as fast as the disk takes it.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Archives to keep, this one included, at least 1.
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
    ///
    /// # Errors
    /// 0A000 for a database that lives in memory; 53100 if the disk is full, 58030 if it fails; 55006 if
    /// another is being written. What was there before is still there.
    pub fn checkpoint_with(
        &self,
        options: &CheckpointOptions,
        progress: impl FnMut(Progress),
    ) -> Result<Report, SqlError> {
        let (Some(home), Some(log)) = (self.inner.home.get(), self.log()) else {
            return Err(SqlError::unsupported("CHECKPOINT of a database that lives in memory")
                .with_hint("Open it with a directory."));
        };
        let Some(mut last) = self.inner.archived.try_lock() else {
            return Err(SqlError::new(SqlState::OBJECT_IN_USE, "an archive is being written already"));
        };
        let Frozen { time_us, snapshot, definitions, catalog, sequence, next_record } = self.freeze()?;
        // An archive must not know more than the log does, or an older one could not be used with it.
        log.wait(Ticket(sequence)).map_err(|error| log_error(&error))?;
        let request = Request {
            time_us,
            log: LogPosition { log: log.log_id(), sequence, next_record },
            partitions: self.partitions(),
            catalog: definitions.to_json(),
            tables: catalog.tables().map(|table| meta(table)).collect(),
            bytes_per_second: options.bytes_per_second,
            cancel: Arc::default(),
        };
        let (env, directory) = (&self.inner.env, home.archive());
        let written = write(env, &directory, snapshot, request, last.as_ref(), progress);
        let written = written.map_err(archive_error)?;
        *last = Some(written.contents);
        let retained = retain(env, &directory, options.keep.max(1)).map_err(archive_error)?;
        drop(retained);
        self.forget_log(&directory)?;
        Ok(written.report)
    }

    /// Writes an archive with the default options; SQL's CHECKPOINT.
    ///
    /// # Errors
    /// As [`Database::checkpoint_with`].
    pub fn checkpoint(&self) -> Result<Report, SqlError> {
        self.checkpoint_with(&CheckpointOptions::default(), |_| {})
    }

    /// Everything that an archive says, of one moment.
    pub(super) fn freeze(&self) -> Result<Frozen, SqlError> {
        let _fixed = self.inner.definitions.read();
        let library = self.library();
        let catalog = Arc::clone(&library.catalog);
        let definitions = Definitions {
            catalog: catalog.stored(),
            routines: library.stored(),
            next_routine: library.next_id(),
        };
        let (time_us, snapshot, sealed) = self
            .inner
            .partitions
            .exclusively(|all| {
                let snapshot = all.snapshot(&SnapshotScope::All)?;
                // Not earlier: what is in the archive is not later than it says, so that recovery to a time knows
                // which archive is early enough.
                Ok((self.inner.env.clock.unix_us(), snapshot, all.seal_log()))
            })
            .map_err(|spent: albireo_storage::BudgetSpent| snapshot_error(spent.into()))?;
        let (sequence, next_record) = sealed.unwrap_or_default();
        Ok(Frozen { time_us, snapshot, definitions, catalog, sequence, next_record })
    }

    /// Removes segments that no archive needs any more.
    fn forget_log(&self, directory: &std::path::Path) -> Result<(), SqlError> {
        let listing = albireo_archive::list(&self.inner.env, directory).map_err(archive_error)?;
        // One that cannot be read may be needed after it was mended; then nothing goes.
        let oldest = listing.complete.iter().map(|manifest| manifest.log.sequence).min();
        if let (Some(oldest), Some(log), true) = (oldest, self.log(), listing.unreadable.is_empty()) {
            log.remove_before(oldest + 1).map_err(|failure| {
                SqlError::new(SqlState::IO_ERROR, format!("could not remove old segments: {failure}"))
            })?;
        }
        Ok(())
    }
}

/// A moment of a database.
pub(super) struct Frozen {
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
