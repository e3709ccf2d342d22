//! Settings of a database, fixed while it is open.

use std::path::PathBuf;

use albireo_base::{SqlError, SqlState};
use albireo_storage::BudgetPolicy;

use crate::{CheckpointSchedule, Durability, Eviction, FreezeSchedule, LogRecords, Procedures};

/// How a database is set up. The default is one partition, as many analytical threads as cores, and memory limits
/// that are shares of what this process may use ([`Config::for_memory`]).
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
    /// The most transactions that may be open at the same time, at least 1.
    pub open_transactions: usize,
    /// The most memory for what open transactions have written while others go on, in bytes.
    pub open_writes_bytes: u64,
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
    /// When rows that nobody writes any more are frozen by themselves.
    pub freeze: FreezeSchedule,
    /// Whether it is counted which rows transactions find by indexes, so that those that are read often are frozen last.
    pub observe_reads: bool,
    /// Where frozen rows go when [`Config::data_limit_bytes`] is nearly reached.
    pub eviction: Eviction,
}

/// What a process is assumed to have where the system does not say.
const UNKNOWN_MEMORY_BYTES: u64 = 8 << 30;

/// The least memory that a database is set up for.
const LEAST_MEMORY_BYTES: u64 = 64 << 20;

impl Default for Config {
    /// [`Config::for_memory`] of what the machine has, or less where a control group (a container) or a resource
    /// limit says so; of 8 GiB where the system does not say.
    fn default() -> Self {
        Self::for_memory(albireo_env::memory_bytes().unwrap_or(UNKNOWN_MEMORY_BYTES))
    }
}

impl Config {
    /// The defaults for a database that may use `bytes` of memory, at least 64 MiB: five eighths for tables and
    /// snapshots, two fifths of these for snapshots alone, a quarter of the whole for queries, half of that for one
    /// query. An eighth is left for open transactions (a 64th), plans, connections and the program itself.
    pub fn for_memory(bytes: u64) -> Self {
        let bytes = bytes.max(LEAST_MEMORY_BYTES);
        let query_memory_bytes = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
        Self {
            partitions: 1,
            queue_capacity: 1024,
            data_limit_bytes: bytes / 8 * 5,
            snapshot_budget_bytes: bytes / 4,
            snapshot_policy: BudgetPolicy::default(),
            open_transactions: 10_000,
            open_writes_bytes: bytes / 64,
            query_threads: albireo_env::cores(),
            query_memory_bytes,
            query_limit_bytes: query_memory_bytes / 2,
            spill_directory: None,
            spill_limit_bytes: 64 << 30,
            durability: Durability::default(),
            procedures: Procedures::default(),
            log_records: LogRecords::default(),
            log_segment_bytes: 16 << 20,
            recovery_threads: albireo_env::cores(),
            checkpoint: CheckpointSchedule::default(),
            freeze: FreezeSchedule::default(),
            observe_reads: true,
            eviction: Eviction::default(),
        }
    }

    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        let wrong = |what: &str| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what));
        match () {
            () if !(1..=1024).contains(&self.partitions) => wrong("partitions must be 1 to 1024"),
            () if self.queue_capacity == 0 => wrong("queue_capacity must be at least 1"),
            () if self.open_transactions == 0 => wrong("open_transactions must be at least 1"),
            () if self.query_threads == 0 => wrong("query_threads must be at least 1"),
            () if self.data_limit_bytes < 16 << 20 => wrong("data_limit_bytes must be at least 16 MiB"),
            () if self.recovery_threads == 0 => wrong("recovery_threads must be at least 1"),
            () if self.log_segment_bytes < 8 << 10 => wrong("log_segment_bytes must be at least 8 KiB"),
            () => self.checkpoint.check().and_then(|()| self.freeze.check()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shares_of_the_memory_that_there_is() {
        for bytes in [0, LEAST_MEMORY_BYTES, 1 << 30, 24 << 30, u64::MAX] {
            let config = Config::for_memory(bytes);
            config.check().unwrap();
            let bytes = bytes.max(LEAST_MEMORY_BYTES);
            assert!(config.data_limit_bytes + config.query_memory_bytes as u64 <= bytes);
            assert!(config.snapshot_budget_bytes <= config.data_limit_bytes);
            assert!(config.query_limit_bytes <= config.query_memory_bytes);
        }
        assert_eq!(Config::for_memory(24 << 30).data_limit_bytes, 15 << 30);
    }
}
