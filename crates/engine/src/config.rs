//! Settings of a database, fixed while it is open.

use std::path::PathBuf;

use albireo_base::{SqlError, SqlState};
use albireo_storage::BudgetPolicy;

use crate::{CheckpointSchedule, Durability, LogRecords, Procedures};

/// How a database is set up. The default suits a program that embeds it: one partition, as many
/// analytical threads as cores, memory limits by the machine's customary sizes.
#[derive(Clone, Debug)]
pub struct Config {
    /// Partitions of tables that have PARTITION BY, 1 to 1,024. One executor thread each.
    pub partitions: u16,
    /// Queued calls that one partition holds before submitters wait, at least 1.
    pub queue_capacity: usize,
    /// The most memory that tables and snapshots together may use, in bytes, at least 16 MiB. From 32 MiB on, a
    /// 128th of it and at least 4 MiB are for deletions and for opening the database alone.
    pub data_limit_bytes: u64,
    /// The most memory that snapshots alone may hold back, in bytes.
    pub snapshot_budget_bytes: u64,
    /// What happens when that is spent.
    pub snapshot_policy: BudgetPolicy,
    /// Threads for analytical queries, at least 1.
    pub query_threads: usize,
    /// The most memory that all running queries may use, in bytes.
    pub query_memory_bytes: usize,
    /// The most memory that one query may use, in bytes; what does not fit goes to
    /// `spill_directory`.
    pub query_limit_bytes: usize,
    /// Where queries put what does not fit; `None`: the system's temporary directory.
    pub spill_directory: Option<PathBuf>,
    /// The most disk space that all queries together may use there, in bytes.
    pub spill_limit_bytes: u64,
    /// When transactions of a database that is kept in a directory are acknowledged.
    pub durability: Durability,
    /// The native procedures that the redo log may call.
    pub procedures: Procedures,
    /// What calls of repeatable routines and procedures leave in the redo log.
    pub log_records: LogRecords,
    /// Bytes of one segment of the redo log, at least 8 KiB.
    pub log_segment_bytes: u64,
    /// Threads that load an archive and do the redo log again when a database is opened, at least 1. The log
    /// takes no more than there are partitions, and one that reads ahead.
    pub recovery_threads: usize,
    /// When archives of a database that is kept in a directory are written by themselves.
    pub checkpoint: CheckpointSchedule,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            partitions: 1,
            queue_capacity: 1024,
            data_limit_bytes: 16 << 30,
            snapshot_budget_bytes: 4 << 30,
            snapshot_policy: BudgetPolicy::default(),
            query_threads: albireo_env::cores(),
            query_memory_bytes: 4 << 30,
            query_limit_bytes: 2 << 30,
            spill_directory: None,
            spill_limit_bytes: 64 << 30,
            durability: Durability::default(),
            procedures: Procedures::default(),
            log_records: LogRecords::default(),
            log_segment_bytes: 16 << 20,
            recovery_threads: albireo_env::cores(),
            checkpoint: CheckpointSchedule::default(),
        }
    }
}

impl Config {
    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        let wrong = |what: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what));
        match () {
            () if !(1..=1024).contains(&self.partitions) => wrong("partitions must be 1 to 1024"),
            () if self.queue_capacity == 0 => wrong("queue_capacity must be at least 1"),
            () if self.query_threads == 0 => wrong("query_threads must be at least 1"),
            () if self.data_limit_bytes < 16 << 20 => wrong("data_limit_bytes must be at least 16 MiB"),
            () if self.recovery_threads == 0 => wrong("recovery_threads must be at least 1"),
            () if self.log_segment_bytes < 8 << 10 => wrong("log_segment_bytes must be at least 8 KiB"),
            () => self.checkpoint.check(),
        }
    }
}
