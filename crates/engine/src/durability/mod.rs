//! A database kept in a directory: opening, recovery, definitions in the redo log.
//!
//! Responsible for: the directory and its lock, starting the log, doing its records again, writing changes
//! of definitions into it. Not responsible for: records of rows (`albireo_partition`), files
//! (`albireo_redo`).
//!
//! A module and no crate: recovery makes definitions and calls again by the code that made them first (statements,
//! routines, native procedures), so a trait between would name most of the engine and have one implementation.
//!
//! ```text
//! DIRECTORY/lock     held as long as a process has the database open
//! DIRECTORY/log/     segments of the redo log, and its control file
//! DIRECTORY/control  a copy of the control file
//! DIRECTORY/archive/ archives
//! DIRECTORY/restore.unfinished  there until restoring into it has ended
//! ```
//!
//! I-1 What recovery gives is the state at one moment: all that frames up to the last sound one say, and
//! nothing else.
//! I-2 What the control files say was durable is in it, or opening refuses (`completeness`).
//! I-3 Opening changes nothing that a crash while opening would make worse: it can be repeated any number
//! of times.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §4.4, §4.7.

mod backup;
mod checkpoint;
mod commands;
mod completeness;
mod directory;
mod inspect;
mod kind;
mod load;
mod point;
mod progress;
mod recovery;
mod replay;
mod schedule;
mod target;

use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_partition::{Exclusive, Receipt};
use albireo_redo::{Config as LogConfig, Controls, Log, LogDestination, LogStart, StartError};

pub use albireo_archive::{Gone as RestorePointsGone, Progress as ArchiveProgress, Report as ArchiveReport};
pub(crate) use backup::backup_target;
pub use backup::{
    Backup, BackupFault, BackupFile, BackupManifest, BackupOptions, BackupProgress, BackupReport, BackupStep,
    RestoreOptions, RestoreReport, restore,
};
pub use checkpoint::{CheckpointOptions, gone_text};
pub(crate) use checkpoint::{at_low_priority, is_checkpoint};
pub use completeness::LogCompleteness;
pub(crate) use directory::Home;
pub use inspect::{
    ArchiveCheck, ArchiveFault, ArchiveInspector, LogContent, LogEntry, LogFault, LogInspector, LogRows,
    LogRowsIter, LogSummary, LogTable, LogWrite, RowChange,
};
pub use kind::DirectoryKind;
pub use point::CopyReport;
pub use progress::{RecoveryPhase, RecoveryProgress};
pub use recovery::RecoveryReport;
pub(crate) use schedule::Archiving;
pub use schedule::{ArchiveStatus, CheckpointSchedule};
pub use target::RecoveryTarget;

use progress::Reporter;
use recovery::How;

use crate::errors::no_thread;
use crate::{Config, Database};

/// How long a good disk takes for a write and a sync.
const DISK_DELAY: Duration = Duration::from_micros(500);

/// When a transaction of a database that is kept in a directory is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// When its record is on stable storage, together with those of others.
    #[default]
    Group,
    /// When it has run; its record follows. A crash may take back the last few milliseconds, but never a
    /// transaction without those that came after it.
    Async,
}

impl Database {
    /// Brings the database, which is empty, to what the directory says, and starts its log.
    pub(crate) fn start_log(
        &self,
        home: Home,
        config: &Config,
        listener: &mut (dyn FnMut(RecoveryProgress) + Send),
    ) -> Result<(), SqlError> {
        let reporter = Reporter::new(self.inner.env.clock.clone(), listener);
        let threads = config.recovery_threads;
        let controls = Controls::read(&*self.inner.env.disk, &home.controls());
        let how =
            How { target: RecoveryTarget::End, threads, reporter: &reporter, controls: Some(&controls) };
        let (start, report) = self.inner.pool.with_kept(|| self.recover(&home, &how))?;
        // Set once, by whoever made the database.
        let log_bytes = report.log_bytes;
        let _ = self.inner.recovered.set(report);
        self.inner.archiving.opened(log_bytes, self.inner.env.clock.now());
        let durability = config.durability;
        let target = LogDestination::Directory(home.log());
        let config = LogConfig {
            segment_bytes: config.log_segment_bytes,
            control_copies: vec![home.control_copy()],
            ..LogConfig::new(target, usize::from(self.partitions()))
        };
        let log = Log::start(&self.inner.env, config, start).map_err(not_started)?;
        self.inner.partitions.start_log(log, durability == Durability::Group);
        let _ = self.inner.home.set(home);
        Ok(())
    }

    /// Starts the thread that writes the log.
    pub(crate) fn start_log_thread(&self) -> Result<(), SqlError> {
        let Some(log) = self.inner.partitions.log().cloned() else { return Ok(()) };
        let thread = albireo_env::spawn("albireo-log", move || log.run()).map_err(no_thread)?;
        self.inner.threads.lock().log = Some(thread);
        Ok(())
    }

    /// Does all that a log costs but writing it, from now on: to measure by. Batches are closed as often as a good
    /// disk would take them.
    ///
    /// # Errors
    /// 53000 when the system refuses a thread.
    ///
    /// # Panics
    /// The database has a log.
    pub fn log_to_nowhere(&self) -> Result<(), SqlError> {
        let config = LogConfig::new(LogDestination::Null, usize::from(self.partitions()));
        let config = LogConfig { batch_delay: DISK_DELAY, ..config };
        let start = LogStart::new(self.inner.env.seeds.next_seed());
        let log = Log::start(&self.inner.env, config, start).map_err(not_started)?;
        self.inner.partitions.start_log(log, true);
        self.start_log_thread()
    }

    /// The redo log, if there is one: its counters, and its steps in a simulation.
    pub fn log(&self) -> Option<&Log> {
        self.inner.partitions.log()
    }

    /// Writes a change of definitions into the log, as the text that makes it again.
    pub(crate) fn log_definition(&self, all: &mut Exclusive<'_>, text: &str) -> Result<Receipt, SqlError> {
        all.log_definition(text).map_err(|error| self.explain_call(error))
    }

    /// Whether a crash cannot take back what was started with this receipt. Always, without a log.
    #[inline]
    pub fn is_acknowledged(&self, receipt: Receipt) -> bool {
        self.inner.partitions.log().is_none_or(|log| receipt.is_durable(log))
    }

    /// Waits until a crash cannot take back what was started with this receipt.
    ///
    /// # Errors
    /// 58030 if the log failed before: after a restart it may be there or not.
    pub fn acknowledge(&self, receipt: Receipt) -> Result<(), SqlError> {
        match self.inner.partitions.log() {
            Some(log) => receipt.wait(log).map_err(|error| self.explain_call(error)),
            None => Ok(()),
        }
    }
}

impl Database {
    /// Waits for a call as its promise says.
    #[inline]
    pub(crate) fn acknowledge_call(&self, asked: Option<bool>, receipt: Receipt) -> Result<(), SqlError> {
        let acknowledged = self.inner.partitions.acknowledge(asked, receipt);
        acknowledged.map_err(|error| self.explain_call(error))
    }
}

fn not_started(error: StartError) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("could not start the redo log: {error}"))
}
