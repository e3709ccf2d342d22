//! What frozen rows take, what freezing costs others, and what frozen rows cost whoever reads and changes them: the
//! evaluation of the paper on compaction, on this engine.
//!
//! Most experiments use a pair of databases that went through the same transactions at the same times, on a clock that
//! the benchmark moves. One stays as it is; of the other all tables are frozen. Both are asked in turns, and must give the
//! same answers. There is no choice of what is cold: everything is frozen, also what transactions still change.
//!
//! Responsible for: these figures, one file for each group of experiments. Not responsible for: freezing (`storage`,
//! `engine`), TPC-C and the queries (`tpcc`, `ch`).
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §5.

mod archive;
mod counts;
mod fig13;
mod fig14;
mod freezing;
mod loss;
mod observers;
mod pair;
mod queries;
mod report;
mod rows;
mod scans;
mod sequence;
mod sizes;
mod table1;

use albireo::{Database, SqlError, SqlState};
use albireo_env::Env;

use crate::config::Config;
use crate::driver::Cancel;
use crate::progress::Observer;
use pair::Pair;

pub use counts::Sizes;
pub use report::{
    Archives, CompactionReport, ComparedObservers, Freezing, InTurns, InstantCompression, Loss, LossTimes,
    Marks, ObserverWay, Observers, PrefixScan, PrefixScans, QueryTimes, RunSums, Schemes, SequenceUpdates,
    Size,
};

/// The tables that grow for ever, those last whose rows deliveries change.
const GROWING: [&str; 3] = ["history", "order_line", "orders"];

/// What is run.
#[derive(Clone, Debug)]
pub struct CompactionConfig {
    /// TPC-C, with one partition. It runs for `duration` wherever it is to have run or is measured.
    pub workload: Config,
    /// How often what is compared is measured: medians count. What takes less than a second is measured more often.
    pub turns: usize,
    /// How many rows there are. With few of them, `workload` is of a small scale and of few transactions.
    pub sizes: Sizes,
    /// Only experiments whose names contain this are run.
    pub only: String,
}

/// The experiments, in the order of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Experiment {
    Loss,
    Observers,
    Compared,
    Prefixes,
    Instant,
    Runs,
    Sequence,
    Freezing,
    Memory,
    Queries,
    Select,
    Update,
    Scan,
    Sizes,
    Archives,
}

impl Experiment {
    const ALL: [Self; 15] = [
        Self::Loss,
        Self::Observers,
        Self::Compared,
        Self::Prefixes,
        Self::Instant,
        Self::Runs,
        Self::Sequence,
        Self::Freezing,
        Self::Memory,
        Self::Queries,
        Self::Select,
        Self::Update,
        Self::Scan,
        Self::Sizes,
        Self::Archives,
    ];

    /// Whether it makes databases of its own.
    fn has_databases(self) -> bool {
        matches!(
            self,
            Self::Loss
                | Self::Observers
                | Self::Compared
                | Self::Archives
                | Self::Prefixes
                | Self::Instant
                | Self::Runs
                | Self::Sequence
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss of throughput",
            Self::Observers => "observers",
            Self::Compared => "observers compared",
            Self::Prefixes => "prefix scans",
            Self::Instant => "instant compression",
            Self::Runs => "sums of runs",
            Self::Sequence => "updates in sequence",
            Self::Freezing => "freezing",
            Self::Memory => "memory",
            Self::Queries => "queries",
            Self::Select => "point SELECT",
            Self::Update => "random update",
            Self::Scan => "scan with invalid rows",
            Self::Sizes => "sizes",
            Self::Archives => "archives",
        }
    }
}

/// Runs it on databases in memory. The report has whatever was measured.
pub fn run(
    config: &CompactionConfig,
    env: &Env,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> CompactionReport {
    let mut report = CompactionReport::new(config);
    let bench = Bench { config, env, observer, cancel };
    let done = bench.measure(&mut report);
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().filter(|_| !report.interrupted).map(|error| error.to_string());
    observer.finished();
    report
}

/// Everything that the experiments need.
struct Bench<'a> {
    config: &'a CompactionConfig,
    env: &'a Env,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
}

impl Bench<'_> {
    fn measure(&self, report: &mut CompactionReport) -> Result<(), SqlError> {
        let asked = |experiment: &Experiment| experiment.name().contains(&self.config.only);
        if asked(&Experiment::Loss) {
            report.loss = Some(self.loss()?);
        }
        if asked(&Experiment::Observers) && !self.cancel.is_cancelled() {
            report.observers = Some(self.observers()?);
        }
        if asked(&Experiment::Compared) && !self.cancel.is_cancelled() {
            self.show(Experiment::Compared);
            report.compared = Some(self.compared()?);
        }
        if asked(&Experiment::Archives) && !self.cancel.is_cancelled() {
            self.show(Experiment::Archives);
            report.archives = Some(self.archives()?);
        }
        if asked(&Experiment::Prefixes) && !self.cancel.is_cancelled() {
            self.show(Experiment::Prefixes);
            report.prefixes = Some(self.prefixes()?);
        }
        if asked(&Experiment::Instant) && !self.cancel.is_cancelled() {
            self.show(Experiment::Instant);
            report.instant = self.instant_compression()?;
        }
        if asked(&Experiment::Runs) && !self.cancel.is_cancelled() {
            self.show(Experiment::Runs);
            report.runs = self.run_sums()?;
        }
        if asked(&Experiment::Sequence) && !self.cancel.is_cancelled() {
            self.show(Experiment::Sequence);
            report.sequences = self.sequences()?;
        }
        let mut others = Experiment::ALL.into_iter().filter(asked).filter(|one| !one.has_databases());
        let Some(first) = others.next() else { return Ok(()) };
        self.show(first);
        let (pair, memory) = self.pair()?;
        report.transactions = pair.transactions;
        report.order_lines = row_count(pair.hot.database(), "order_line")?;
        for experiment in std::iter::once(first).chain(others) {
            if self.cancel.is_cancelled() {
                break;
            }
            self.show(experiment);
            match experiment {
                Experiment::Loss
                | Experiment::Observers
                | Experiment::Compared
                | Experiment::Archives
                | Experiment::Prefixes
                | Experiment::Instant
                | Experiment::Runs
                | Experiment::Sequence => unreachable!("they have databases of their own"),
                Experiment::Freezing => report.freezing = self.freezing(&pair.frozen)?,
                Experiment::Memory => report.memory.clone_from(&memory),
                Experiment::Queries => report.queries = self.queries(&pair)?,
                Experiment::Select => report.selects = Some(self.selects(&pair)?),
                Experiment::Update => report.updates = Some(self.updates(&pair)?),
                Experiment::Scan => report.scans = self.scans(&pair.frozen)?,
                Experiment::Sizes => report.columns = self.sizes(&pair.frozen)?,
            }
        }
        Ok(())
    }

    fn show(&self, experiment: Experiment) {
        let duration = self.config.workload.duration;
        self.observer.running(experiment.name(), duration, duration, 0.0);
    }

    /// Runs `work`; how long it took, in milliseconds.
    fn timed<R>(&self, work: impl FnOnce() -> Result<R, SqlError>) -> Result<(f64, R), SqlError> {
        let start = self.env.clock.now();
        let given = work()?;
        Ok(((self.env.clock.now() - start) as f64 / 1e6, given))
    }
}

/// Freezes a table.
fn freeze(db: &Database, table: &str) -> Result<(), SqlError> {
    db.execute(&format!("CALL albireo.freeze('{table}')")).map(drop)
}

/// What rows of a table in one partition take, indexes apart, in bytes.
fn rows_bytes(db: &Database, table: &str) -> Result<u64, SqlError> {
    db.with_table(table, |_, table| {
        let memory = table.memory();
        Ok(memory.blocks_bytes + memory.heaps_bytes + memory.frozen_bytes)
    })
}

/// Rows of a table in one partition.
fn row_count(db: &Database, table: &str) -> Result<u64, SqlError> {
    db.with_table(table, |_, table| Ok(table.row_count()))
}

/// What was measured is not what it should be.
fn wrong(text: String) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, text)
}
