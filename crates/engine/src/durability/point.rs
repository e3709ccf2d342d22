//! A copy of a database as it was at a moment: recovery to a point.
//!
//! Responsible for: choosing what there is to begin with, recovering in memory up to the moment, writing the
//! outcome as a new database. Not responsible for: recovery itself (`recovery`), the form of archives
//! (`albireo_archive`).
//!
//! The new database is one archive and an empty log. The log has a new id, so that it never goes on with segments
//! of the old one, which tell of what did not happen here; records go on counting.
//!
//! I-1 The database that is read stays as it is. I-2 The new one is there when its archive's manifest is; before,
//! opening it is refused, so that what a crash left is never taken for an empty database.

use std::io;
use std::path::Path;
use std::sync::Arc;

use albireo_archive::{LogPosition, Report, Request, list, write};
use albireo_base::{SqlError, SqlState};
use albireo_env::{DiskLock, Env};
use albireo_redo::{Control, Controls, LogReader};

use super::checkpoint::{Captured, archive_error, meta};
use super::directory::controls_of;
use super::progress::{RecoveryProgress, Reporter};
use super::recovery::{How, State, utc};
use super::{DirectoryKind, Home, LogInspector, RecoveryReport, RecoveryTarget};
use crate::{Config, Database};

/// What [`Database::recover_copy`] did.
#[derive(Clone, Debug)]
pub struct CopyReport {
    /// How the state was found.
    pub recovery: RecoveryReport,
    /// The archive that the new database is.
    pub archive: Report,
    /// The number of the last record that is in it; 0 if none is.
    pub last_record: u64,
    /// When that was logged, in microseconds since 1970, if it was read from the log.
    pub last_time_us: Option<i64>,
    /// Something to know: the log ended before the moment that was asked for.
    pub notice: Option<String>,
}

impl Database {
    /// Makes a new database in `to`, which is made and must be empty, of what the one in `from` was at
    /// `target`. That one is only read, and must not be open. The partitions are as many as it had, whatever
    /// `config` says. The new database is complete when this returns; it can then be opened.
    ///
    /// ```
    /// # use albireo::{Config, Database, RecoveryTarget};
    /// # let base = std::env::temp_dir().join(format!("albireo-copy-{}", std::process::id()));
    /// # let (old, new) = (base.join("old"), base.join("new"));
    /// # let env = albireo_env::Env::real();
    /// let db = Database::open(&old, Config::default())?;
    /// db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); DELETE FROM t")?;
    /// drop(db);
    /// let target = RecoveryTarget::Record(2);
    /// let report = Database::recover_copy(&old, &new, target, Config::default(), &env, &mut |_| {})?;
    /// assert_eq!(report.last_record, 2);
    /// let db = Database::open(&new, Config::default())?;
    /// assert_eq!(db.query("SELECT count(*) FROM t", &[])?.value(0, 0).to_string(), "1");
    /// # drop(db);
    /// # std::fs::remove_dir_all(&base).unwrap();
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 22023 if the moment is before all that is kept, or is a record that the log does not have; 55006 if
    /// `from` is open; 58P02 if `to` is not empty; as [`Database::open`] for what `from` says; 53100 if the
    /// disk is full, 58030 if it fails. `to` is no database then, and to be removed.
    pub fn recover_copy(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        target: RecoveryTarget,
        config: Config,
        env: &Env,
        listener: &mut (dyn FnMut(RecoveryProgress) + Send),
    ) -> Result<CopyReport, SqlError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_empty(env, to)?;
        let _held = hold(env, from)?;
        let kind = DirectoryKind::of(from, env)?;
        if !matches!(kind, DirectoryKind::Database | DirectoryKind::Backup) {
            return Err(kind.refusal(from, "an Albireo database or a backup in a directory"));
        }
        let partitions = Self::kept_partitions(from, env)?.ok_or_else(|| {
            let text = format!("the database in \"{}\" has no record yet", from.display());
            SqlError::new(SqlState::UNDEFINED_FILE, text)
        })?;
        let config = Config { partitions, ..config };
        config.check()?;
        let threads = config.recovery_threads;
        let database = Self::with_env(config, env.clone())?;
        let reporter = Reporter::new(env.clock.clone(), listener);
        let controls = Controls::read(&*env.disk, &controls_of(from));
        let controls = (kind == DirectoryKind::Database).then_some(&controls);
        let how = How { target, threads, reporter: &reporter, controls };
        let mut recovery = RecoveryReport::default();
        let (archives, log) = (from.join("archive"), from.join("log"));
        let state = database.read_state(&archives, &log, &how, &mut recovery)?;
        let notice = check_reached(&state, target, &|| first_moment(env, &log))?;
        let last_record = state.last_record();
        let archive = database.write_new(to, last_record + 1)?;
        let last_time_us = state.last.map(|last| last.time_us);
        Ok(CopyReport { recovery, archive, last_record, last_time_us, notice })
    }

    /// How many partitions the database has that is kept in a directory, as its newest archive or its log says;
    /// `None` if there is neither. Nothing is locked or changed.
    ///
    /// # Errors
    /// 58030 if files cannot be read; as [`LogInspector::partitions`].
    pub fn kept_partitions(path: impl AsRef<Path>, env: &Env) -> Result<Option<u16>, SqlError> {
        let path = path.as_ref();
        let listing = list(env, &path.join("archive")).map_err(archive_error)?;
        match listing.complete.first() {
            Some(manifest) => Ok(Some(manifest.partitions)),
            None => LogInspector::partitions(path, env),
        }
    }

    /// Writes the database, which has no log, as a new one.
    fn write_new(&self, to: &Path, next_record: u64) -> Result<Report, SqlError> {
        let env = &self.inner.env;
        let failed = |error: io::Error| {
            let text = format!("could not restore into \"{}\": {error}", to.display());
            SqlError::new(SqlState::IO_ERROR, text)
        };
        let home = Home::open(env, to)?;
        home.begin_restore(&*env.disk).map_err(failed)?;
        for directory in [home.log(), home.archive()] {
            env.disk.create_dir_all(&directory).map_err(failed)?;
        }
        env.disk.sync_directory(to).map_err(failed)?;
        let Captured { time_us, snapshot, definitions, catalog, .. } = self.capture()?;
        let log_id = env.seeds.next_seed();
        let request = Request {
            time_us,
            log: LogPosition { log: log_id, sequence: 0, next_record },
            partitions: self.partitions(),
            catalog: definitions.to_json(),
            tables: catalog.tables().map(|table| meta(table)).collect(),
            bytes_per_second: None,
            cancel: Arc::default(),
        };
        let written = write(env, &home.archive(), snapshot, request, None, |_| {}).map_err(archive_error)?;
        let control = Control {
            log_id,
            generation: 1,
            is_closed: true,
            sequence: 0,
            ordinal: next_record - 1,
            segment: 0,
            time_us: env.clock.unix_us(),
        };
        control.write(&*env.disk, &home.controls()).map_err(|failure| failed(failure.source))?;
        home.end_restore(&*env.disk).map_err(failed)?;
        Ok(written.report)
    }
}

/// A directory into which nothing of somebody else goes.
fn check_empty(env: &Env, to: &Path) -> Result<(), SqlError> {
    match env.disk.read_dir(to) {
        Ok(files) if files.is_empty() => Ok(()),
        Ok(_) => {
            let text = format!("\"{}\" is not empty", to.display());
            Err(SqlError::new(SqlState(*b"58P02"), text)
                .with_hint("Name a directory that does not exist, or remove what is in it."))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let text = format!("could not read the directory \"{}\": {error}", to.display());
            Err(SqlError::new(SqlState::IO_ERROR, text))
        }
    }
}

/// Keeps others from opening a database while it is read. A backup may have no lock, and be on a disk that cannot
/// be written to; then nobody can open it.
fn hold(env: &Env, from: &Path) -> Result<Option<Box<dyn DiskLock>>, SqlError> {
    let lock = from.join("lock");
    if env.disk.open(&lock).is_err() {
        return Ok(None);
    }
    match env.disk.lock(&lock) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let text = format!("the database in \"{}\" is open", from.display());
            Err(SqlError::new(SqlState::OBJECT_IN_USE, text)
                .with_hint("Close it, or make a backup and restore from that."))
        }
        Err(_) => Ok(None),
    }
}

/// When the first record of a log was made, in microseconds since 1970.
fn first_moment(env: &Env, log: &Path) -> Option<i64> {
    let mut reader = LogReader::open(Arc::clone(&env.disk), log, 0, None).ok()?;
    let frame = reader.next_frame().ok()??;
    frame.records().next().map(|record| record.time_us)
}

/// Whether the moment that was asked for is one of the log; if the log ended before, that is said.
fn check_reached(
    state: &State,
    target: RecoveryTarget,
    first: &dyn Fn() -> Option<i64>,
) -> Result<Option<String>, SqlError> {
    let last = state.last_record();
    let refused = |text: String, detail: String| {
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_detail(detail))
    };
    match target {
        RecoveryTarget::End => Ok(None),
        RecoveryTarget::Record(0) => {
            refused("there is no record 0".to_owned(), "Records count from 1.".to_owned())
        }
        RecoveryTarget::Record(record) if record > last => {
            refused(format!("there is no record {record}"), format!("The log ends with record {last}."))
        }
        RecoveryTarget::Record(_) => Ok(None),
        RecoveryTarget::Time(time_us) if last == 0 => {
            let begins = first().map_or_else(String::new, |time_us| {
                format!(" with record 1 of {}: restoring is possible from then on", utc(time_us))
            });
            refused(format!("nothing is kept of {}", utc(time_us)), format!("The log begins later{begins}."))
        }
        RecoveryTarget::Time(time_us) => Ok(state.end.is_some().then(|| {
            let of = state.last.map_or_else(String::new, |last| format!(" of {}", utc(last.time_us)));
            format!("the log ends with record {last}{of}, before {}", utc(time_us))
        })),
    }
}
