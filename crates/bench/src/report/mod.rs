//! The result of a run: one JSON object for programs, one screen for people.
//!
//! Rates count every transaction that ended as it should, New-Orders rolled back on purpose among them
//! (the specification counts them too). Latencies are of a client that sends its next
//! transaction when the last has ended. A query's time runs from the question to the answer and so
//! includes its snapshot and its plan; freshness is the age of its snapshot at the answer.

mod shows;
mod snapshots;
mod table;

use std::collections::BTreeMap;

use albireo::LogStatistics;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::config::{Logging, Procedures};
use crate::latency::{Durations, Quantiles, round};
use crate::tpcc::input::Mix;
use crate::tpcc::schema::Layout;

pub use shows::Shown;
pub use snapshots::{RateReport, SnapshotMemory, SnapshotReport};
pub(crate) use table::thousands;

/// A finished or interrupted run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `TPC-C` or `CH-benCHmark`.
    pub benchmark: String,
    /// Warehouses.
    pub warehouses: i16,
    /// Partitions.
    pub partitions: u16,
    /// How tables lay in memory.
    pub layout: Layout,
    /// Which transactions ran.
    pub mix: Mix,
    /// What the transactions were written in.
    pub procedures: Procedures,
    /// What became of the records of transactions.
    pub log: LogReport,
    /// What decided population and inputs.
    pub seed: u64,
    /// Streams of queries in the mixed phase.
    pub query_streams: usize,
    /// Time to create and populate the database.
    pub load_seconds: f64,
    /// Rows loaded.
    pub rows_loaded: u64,
    /// Transactions without queries; null when interrupted before.
    pub oltp_alone: Option<Oltp>,
    /// Transactions together with queries; null without queries or when interrupted before.
    pub oltp_mixed: Option<Oltp>,
    /// One entry a query, in the order asked for.
    pub queries: Vec<QueryReport>,
    /// All snapshots of the run; pauses are those while transactions ran.
    pub snapshots: Snapshots,
    /// Age of a query's snapshot when its answer was there; null without queries.
    pub freshness_ms: Option<Quantiles>,
    /// Whether each condition held, on the snapshot taken under load and at the end.
    pub consistency: Consistency,
    /// Memory at the end, by kind.
    pub memory_bytes: BTreeMap<String, u64>,
    /// Whether the run was ended early on request.
    pub interrupted: bool,
    /// What ended the run, if it failed.
    pub error: Option<String>,
}

/// The redo log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogReport {
    /// `off`, `null`, `async` or `group`.
    pub mode: Logging,
    /// The most transactions of one partition that had run and waited for the disk.
    pub in_flight: usize,
    /// Records made durable while transactions ran.
    pub records: u64,
    /// Bytes of records as they lie in memory, per record.
    pub bytes_per_record: f64,
    /// Frames written, each with one write and one sync.
    pub frames: u64,
    /// Bytes written, with headers, checksums and padding.
    pub written_bytes: u64,
    /// How long writing and syncing a frame took; null without frames.
    pub flush_us: Option<Quantiles>,
}

impl LogReport {
    /// Fills in what the log has done between two moments.
    pub(crate) fn fill(&mut self, before: &LogStatistics, after: &LogStatistics) {
        self.records = after.records - before.records;
        let bytes = after.record_bytes - before.record_bytes;
        self.bytes_per_record = round(bytes as f64 / self.records.max(1) as f64);
        self.frames = after.frames - before.frames;
        self.written_bytes = after.written_bytes - before.written_bytes;
        let mut flushes = after.flush_ns.clone();
        // The later one has all that the earlier one has.
        let _ = flushes.subtract(&before.flush_ns);
        self.flush_us = Durations::of(&flushes).quantiles(1_000);
    }
}

/// Transactions of all phases of a kind.
#[derive(Clone, Debug, Serialize)]
pub struct Oltp {
    /// Measured time.
    pub seconds: f64,
    /// Transactions of all types, rolled back New-Orders included.
    pub transactions_per_second: f64,
    /// Transactions for each second of processor time that the threads running them used: the rate
    /// of a machine without other work.
    pub transactions_per_cpu_second: f64,
    /// New-Orders, rolled back ones included.
    pub new_orders_per_second: f64,
    /// Transactions per second of each of the phases that the figures are sums of, in order: how steady
    /// the machine was.
    pub turns: Vec<f64>,
    /// Transactions that committed.
    pub committed: u64,
    /// New-Orders rolled back for their unused item.
    pub rolled_back: u64,
    /// From one transaction's end to the next one's; null if there was none.
    pub latency_us: Option<Quantiles>,
}

/// Runs of one query.
#[derive(Clone, Debug, Serialize)]
pub struct QueryReport {
    /// `Q1` to `Q22` or `top10`.
    pub name: String,
    /// Finished runs; the rest is null when there was none.
    pub runs: u64,
    /// Median time from question to answer.
    pub median_ms: Option<f64>,
    /// 99 % of the runs took no longer.
    pub p99_ms: Option<f64>,
    /// Median part of it spent planning.
    pub planning_ms: Option<f64>,
    /// Rows of the last answer.
    pub rows: Option<u64>,
}

/// Snapshots and what they cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshots {
    /// Snapshots taken.
    pub taken: u64,
    /// From asking for one to having it, which executors do not stand still for longer than.
    pub pause_us: Option<Quantiles>,
    /// Blocks copied because a snapshot still saw them.
    pub blocks_copied: u64,
    /// Their bytes.
    pub bytes_copied: u64,
}

/// Violations of each condition found by one check: `[0]` of condition 1; `None` if not checked.
pub type Violations = [Option<u64>; 12];

/// Both checks; serialized as an object with keys "1" to "12", true, false, or null if unchecked.
#[derive(Clone, Debug, Default)]
pub struct Consistency {
    /// Of a snapshot taken while transactions ran and used while they went on.
    pub under_load: Violations,
    /// Of a snapshot taken after the last transaction.
    pub at_end: Violations,
}

impl Consistency {
    /// Whether condition `number`, 1 to 12, held wherever it was checked; `None` if nowhere.
    pub fn holds(&self, number: usize) -> Option<bool> {
        let checks = [self.under_load[number - 1], self.at_end[number - 1]];
        let mut checked = checks.into_iter().flatten().peekable();
        checked.peek()?;
        Some(checked.all(|violations| violations == 0))
    }
}

impl Serialize for Consistency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.at_end.len()))?;
        for number in 1..=self.at_end.len() {
            map.serialize_entry(&number.to_string(), &self.holds(number))?;
        }
        map.end()
    }
}

impl Report {
    /// The JSON object, indented.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys and finite numbers")
    }

    /// The screen for people.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// Whether the run counts: nothing failed and no checked condition was violated.
    pub fn passed(&self) -> bool {
        self.error.is_none() && (1..=12).all(|number| self.consistency.holds(number) != Some(false))
    }
}

#[cfg(test)]
mod tests;
