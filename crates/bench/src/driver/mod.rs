//! Runs a workload against a [`SystemUnderTest`] and reports it.
//!
//! ```text
//!  memory -- load -- mixed -- alone -- alone -- mixed -- ... -- alone -- mixed -- checks
//!                    |warm-up| measured |            |warm-up| measured |overlap|
//!                                                                       ^ snapshot for the check
//! ```
//! In a phase one thread a partition runs transactions as fast as they end (a closed loop, no think
//! time), and in a mixed one each stream of queries takes a fresh snapshot for every query. Phases take
//! turns ([`turns`]). When the last has been measured, a snapshot is taken while transactions still run,
//! and they go on for a moment, so that they change what it sees; the conditions are checked on it after
//! they have stopped, and again on a last snapshot.
//!
//! Responsible for: threads, time, counting, checks. Not responsible for: anything behind the traits
//! below. Errors and interruptions do not lose what was measured before: [`run`] always reports.

mod in_flight;
mod phase;
mod snapshots;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use albireo::{LogStatistics, Receipt};
use albireo_base::SqlError;
use albireo_env::Clock;
use parking_lot::Mutex;

use crate::ch::queries::Query;
use crate::config::{Config, ConfigError, Workload};
use crate::latency::{Durations, Quantiles, round};
use crate::progress::Observer;
use crate::report::{Consistency, LogReport, Report, Snapshots, Violations};
use crate::tpcc::consistency;
use crate::tpcc::input::Transaction;
use crate::tpcc::population::Population;
use crate::tpcc::rows::Timestamp;

pub use snapshots::run_snapshots;

/// The system under test.
pub trait SystemUnderTest: Sync {
    /// Takes the memory that the run will need, as far as that is known, so that it is not taken while
    /// the run is measured. Calls `go_on` with the bytes there and wanted, and returns when that is false.
    fn take_memory(&self, config: &Config, go_on: &mut dyn FnMut(u64, u64) -> bool) {
        let _ = (config, go_on);
    }

    /// Creates the tables (see [`crate::tpcc::schema::ddl`]) in `config.layout`, spread over
    /// `config.partitions`, and fills them. It should call [`Loading::add`] every few thousand rows,
    /// from any thread, and return early when [`Loading::is_cancelled`].
    ///
    /// # Errors
    /// Why the database cannot be made; the run ends.
    fn load(&self, config: &Config, population: &Population, loading: &Loading<'_>) -> Result<(), SqlError>;

    /// The partition that owns a warehouse, below `config.partitions`.
    fn partition_of(&self, w_id: i16) -> u16;

    /// What runs transactions whose home is in `partition`. Called once a phase, on the thread that
    /// will use it.
    ///
    /// # Errors
    /// Why there is none; the run ends.
    fn worker(&self, partition: u16) -> Result<Box<dyn Worker + '_>, SqlError>;

    /// Makes a query ready, so that runs of it need not plan.
    ///
    /// # Errors
    /// The query does not fit the database; the run ends.
    fn prepare(&self, query: &Query) -> Result<(), SqlError> {
        let _ = query;
        Ok(())
    }

    /// A new snapshot that sees every transaction committed before the call. It is given up when the
    /// value is dropped.
    ///
    /// # Errors
    /// Why there is none; the run ends.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, SqlError>;

    /// The same for one query: it need not cover what the query does not read.
    ///
    /// # Errors
    /// Why there is none; the run ends.
    fn snapshot_for(&self, query: &Query) -> Result<Box<dyn Snapshot + '_>, SqlError> {
        let _ = query;
        self.snapshot()
    }

    /// Whether a crash cannot take back what a transaction left that ended with this receipt.
    fn is_acknowledged(&self, receipt: Receipt) -> bool {
        let _ = receipt;
        true
    }

    /// Waits for that.
    ///
    /// # Errors
    /// It will not be so; the run ends.
    fn acknowledge(&self, receipt: Receipt) -> Result<(), SqlError> {
        let _ = receipt;
        Ok(())
    }

    /// What the redo log has done, if there is one.
    fn log_statistics(&self) -> Option<LogStatistics> {
        None
    }

    /// Forgets the pauses so far: [`SnapshotCosts::pauses`] starts anew.
    fn forget_pauses(&self);

    /// What snapshots have cost since the target was made.
    fn snapshot_costs(&self) -> SnapshotCosts;

    /// Memory in use, in bytes, by kind.
    fn memory_bytes(&self) -> BTreeMap<String, u64>;
}

/// What snapshots have cost.
#[derive(Clone, Debug, Default)]
pub struct SnapshotCosts {
    /// Snapshots taken.
    pub taken: u64,
    /// Blocks copied because a snapshot saw them.
    pub blocks_copied: u64,
    /// Their bytes.
    pub bytes_copied: u64,
    /// How long executors stood still for each snapshot.
    pub pauses: Durations,
}

impl SnapshotCosts {
    /// The pauses in microseconds; `None` without snapshots. If no executor had to wait for any, none was
    /// longer than nothing.
    fn pause_us(&self) -> Option<Quantiles> {
        let mut pauses = self.pauses.clone();
        if self.taken > 0 && pauses.count() == 0 {
            pauses.record(0);
        }
        pauses.quantiles(1_000)
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It committed.
    Committed,
    /// It was a New-Order with an unused item and left no trace.
    RolledBack,
}

/// Is told how a transaction ended, and what makes it count.
pub type Ended<'a> = &'a mut dyn FnMut(Outcome, Receipt) -> Result<(), SqlError>;

/// Runs the transactions of one partition.
pub trait Worker {
    /// Runs `transactions` in order and calls `ended` right after each one's end, with what is to be waited
    /// for before it counts. All are known in advance so that data of the next can be fetched meanwhile.
    ///
    /// # Errors
    /// A transaction failed that should not have; the run ends.
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError>;
}

/// A snapshot and the queries on it.
pub trait Snapshot {
    /// How old its data is, in nanoseconds.
    fn age_ns(&self) -> u64;

    /// Runs `query` with its parameters, all SMALLINT, to the last row.
    ///
    /// # Errors
    /// The query failed; the run ends.
    fn query(&mut self, query: &Query, parameters: &[i16]) -> Result<Answer, SqlError>;

    /// The one number that the statement `sql` gives.
    ///
    /// # Errors
    /// The statement failed; the run ends.
    fn count(&mut self, sql: &str) -> Result<u64, SqlError>;
}

/// What came back of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// Rows.
    pub rows: u64,
    /// Time spent planning.
    pub planning_ns: u64,
}

/// A wish to end a run early. Clones are the same wish.
#[derive(Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Default)]
struct CancelState {
    cancelled: AtomicBool,
    hooks: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Cancel {
    /// Ends the run soon; may be called from any thread, also more than once.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
        self.0.hooks.lock().iter().for_each(|hook| hook());
    }

    /// Whether the run should end.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Calls `hook` at each later [`Cancel::cancel`], so that what runs for long ends early: with
    /// any error, which is not reported then.
    pub fn on_cancel(&self, hook: impl Fn() + Send + 'static) {
        self.0.hooks.lock().push(Box::new(hook));
    }
}

/// Counts rows while a target loads.
pub struct Loading<'a> {
    rows: AtomicU64,
    expected: u64,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
}

impl<'a> Loading<'a> {
    /// Counts rows of `population`.
    pub fn new(population: &Population, observer: &'a dyn Observer, cancel: &'a Cancel) -> Self {
        Self { rows: AtomicU64::new(0), expected: population.expected_rows(), observer, cancel }
    }

    /// `rows` more are loaded.
    pub fn add(&self, rows: u64) {
        let loaded = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        self.observer.loading(loaded, self.expected);
    }

    /// Whether loading should stop; the result does not matter then.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// Everything a run is made of.
struct BenchmarkRun<'a> {
    config: &'a Config,
    target: &'a dyn SystemUnderTest,
    clock: &'a Clock,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
}

/// Runs `config` against `target`. The report holds whatever was measured; look at
/// [`Report::passed`], [`Report::interrupted`] and [`Report::error`].
///
/// # Errors
/// The configuration makes no sense; nothing has been done then.
pub fn run(
    config: &Config,
    target: &dyn SystemUnderTest,
    clock: &Clock,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, ConfigError> {
    config.validate()?;
    let mut report = blank(config);
    let run = BenchmarkRun { config, target, clock, observer, cancel };
    let done = run.everything(&mut report);
    run.finish(done, &mut report);
    Ok(report)
}

fn blank(config: &Config) -> Report {
    let streams = match config.workload {
        Workload::Tpcc => 0,
        Workload::Ch { streams, .. } => streams,
    };
    Report {
        benchmark: config.workload.to_string(),
        warehouses: config.warehouses,
        partitions: config.partitions,
        layout: config.layout,
        mix: config.mix,
        procedures: config.procedures,
        log: LogReport { mode: config.logging.clone(), in_flight: config.in_flight, ..LogReport::default() },
        seed: config.seed,
        query_streams: streams,
        load_seconds: 0.0,
        rows_loaded: 0,
        oltp_alone: None,
        oltp_mixed: None,
        queries: Vec::new(),
        snapshots: Snapshots::default(),
        freshness_ms: None,
        consistency: Consistency::default(),
        memory_bytes: BTreeMap::new(),
        interrupted: false,
        error: None,
    }
}

/// What ends a run, in words.
type Failure = String;

/// An error with what was being done.
fn during(what: &str) -> impl Fn(SqlError) -> Failure + '_ {
    move |error| format!("{what}: {error}")
}

impl BenchmarkRun<'_> {
    /// All parts of the run, in order; fills in `report` as far as it gets.
    fn everything(&self, report: &mut Report) -> Result<(), Failure> {
        self.load(report)?;
        let before = self.target.log_statistics();
        self.take_turns(report)?;
        if let (Some(before), Some(after)) = (before, self.target.log_statistics()) {
            report.log.fill(&before, &after);
        }
        self.check_at_end(report)
    }

    /// Fills in what is known when the run is over, however it ended.
    fn finish(&self, done: Result<(), Failure>, report: &mut Report) {
        self.observer.finished();
        report.interrupted = self.cancel.is_cancelled();
        match done {
            // What an interrupted query or load says is no news.
            Err(error) if !report.interrupted => report.error = Some(error),
            Ok(()) | Err(_) => {}
        }
        let costs = self.target.snapshot_costs();
        report.snapshots = Snapshots {
            taken: costs.taken,
            pause_us: costs.pause_us(),
            blocks_copied: costs.blocks_copied,
            bytes_copied: costs.bytes_copied,
        };
        report.memory_bytes = self.target.memory_bytes();
    }

    fn load(&self, report: &mut Report) -> Result<(), Failure> {
        let population = self.config.population(Timestamp(self.clock.unix_us()));
        self.target.take_memory(self.config, &mut |there, wanted| {
            self.observer.taking_memory(there, wanted);
            !self.cancel.is_cancelled()
        });
        self.observer.finished();
        let loading = Loading::new(&population, self.observer, self.cancel);
        let begin = self.clock.now();
        let loaded = self.target.load(self.config, &population, &loading);
        self.observer.finished();
        report.load_seconds = round((self.clock.now() - begin) as f64 / 1e9);
        report.rows_loaded = loading.rows.into_inner();
        loaded.map_err(during("loading"))?;
        self.go_on()
    }

    fn check_at_end(&self, report: &mut Report) -> Result<(), Failure> {
        let mut snapshot = self.target.snapshot().map_err(during("taking the last snapshot"))?;
        report.consistency.at_end = self.check(snapshot.as_mut())?;
        Ok(())
    }

    /// Counts the violations of every condition; those after an interruption are not checked.
    fn check(&self, snapshot: &mut dyn Snapshot) -> Result<Violations, Failure> {
        let mut violations = [None; consistency::COUNT];
        for (place, condition) in violations.iter_mut().zip(1..) {
            if self.cancel.is_cancelled() {
                break;
            }
            self.observer.checking(condition - 1, consistency::COUNT);
            let sql = consistency::violations(condition, self.config.scale);
            let what = format!("checking condition {condition}");
            *place = Some(snapshot.count(&sql).map_err(during(&what))?);
        }
        self.observer.finished();
        Ok(violations)
    }

    /// An interruption ends the run between two parts, without being a failure.
    fn go_on(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() { Err("interrupted".into()) } else { Ok(()) }
    }
}
