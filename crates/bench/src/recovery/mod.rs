//! What durability costs while all is well, and how fast it gives back what was lost.
//!
//! ```text
//! rounds of: off | null | group, each a run of TPC-C on a database of its own
//! then one database: load -- run -- archive beside -- run -- close -- open
//! ```
//! Responsible for: these figures beside what is asked of them. Not responsible for: runs (`driver`), the
//! log and recovery themselves (`engine`), crashes under load (a test of the program).
//!
//! Ratios are of runs in turn, and the median of the rounds counts: the machine is another from minute to
//! minute.

mod phases;
mod report;

use std::path::{Path, PathBuf};

use albireo::{Config as Settings, Database, LogRecords, SqlError};
use albireo_env::Env;

use crate::config::{Config, ConfigError, Logging, Workload};
use crate::driver::{self, Cancel, Loading, SystemUnderTest};
use crate::latency::{Durations, Quantiles};
use crate::progress::Observer;
use crate::report::Report;
use crate::target::Albireo;
use crate::tpcc::Scale;
use crate::tpcc::input::{Inputs, Kind, Mix};
use crate::tpcc::procedures::logged;
use crate::tpcc::rows::Timestamp;

pub use report::{Figure, RecoveryReport};

/// Rounds of runs with and without a log.
const ROUNDS: usize = 5;
/// Writes with a sync that make the disk's unit.
const UNIT_WRITES: usize = 2_000;
/// The time after which it is enough of them on a slow disk, in nanoseconds.
const UNIT_NS: u64 = 2_000_000_000;
/// New-Orders whose records are measured.
const ORDERS: usize = 2_000;

/// What the parts need.
struct Bench<'a> {
    config: &'a Config,
    directory: &'a Path,
    env: &'a Env,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
}

/// What ends it.
enum End {
    Failed(String),
    Interrupted,
}

impl From<SqlError> for End {
    fn from(error: SqlError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs it in `config.data`, where nothing may be yet and nothing is left. The report has whatever was
/// measured.
///
/// # Errors
/// The configuration makes no sense; nothing has been done then.
pub fn run(
    config: &Config,
    env: &Env,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<RecoveryReport, ConfigError> {
    let Some(directory) = &config.data else { return Err(ConfigError::NoDirectory) };
    Config { logging: Logging::Group, ..config.clone() }.validate()?;
    let mut report = RecoveryReport::new(config);
    let bench = Bench { config, directory, env, observer, cancel };
    let done = bench.everything(&mut report);
    observer.finished();
    match done {
        Ok(()) => {}
        Err(End::Interrupted) => report.interrupted = true,
        Err(End::Failed(error)) => report.error = Some(error),
    }
    Ok(report)
}

impl Bench<'_> {
    fn everything(&self, report: &mut RecoveryReport) -> Result<(), End> {
        self.env.disk.create_dir_all(self.directory)?;
        if !self.env.disk.read_dir(self.directory)?.is_empty() {
            let text = format!("\"{}\" is not empty: name a new directory", self.directory.display());
            return Err(End::Failed(text));
        }
        self.rounds(report)?;
        self.bytes_per_order(report)?;
        self.one_database(report)
    }

    fn go_on(&self) -> Result<(), End> {
        if self.cancel.is_cancelled() { Err(End::Interrupted) } else { Ok(()) }
    }

    fn rounds(&self, report: &mut RecoveryReport) -> Result<(), End> {
        let mut rounds = Vec::new();
        for number in 0..ROUNDS {
            let off = self.run_with(Logging::Off, None)?;
            let null = self.run_with(Logging::Null, None)?;
            let before = self.unit()?;
            let group = self.in_directory(&format!("round-{number}"), |directory| {
                self.run_with(Logging::Group, Some(directory.to_owned()))
            })?;
            let after = self.unit()?;
            rounds.push(report::Round::new(&off, &null, &group, (before, after)));
            report.set_rounds(&rounds);
        }
        Ok(())
    }

    /// A run of TPC-C on a database of its own.
    fn run_with(&self, logging: Logging, data: Option<PathBuf>) -> Result<Report, End> {
        self.go_on()?;
        let config = Config { workload: Workload::Tpcc, logging, data, ..self.config.clone() };
        let target = Albireo::open(&config, self.env, self.cancel)?;
        let report = driver::run(&config, &target, &self.env.clock, self.observer, self.cancel);
        let report = report.map_err(|error| End::Failed(error.to_string()))?;
        match &report.error {
            _ if report.interrupted => Err(End::Interrupted),
            Some(error) => Err(End::Failed(error.clone())),
            None if report.passed() => Ok(report),
            None => Err(End::Failed("a consistency condition does not hold".to_owned())),
        }
    }

    /// Calls `work` with a directory that is removed afterwards.
    fn in_directory<T>(&self, name: &str, work: impl FnOnce(&Path) -> Result<T, End>) -> Result<T, End> {
        let directory = self.directory.join(name);
        let done = work(&directory);
        // What it failed of is said; a directory that was not made cannot be removed.
        let removed = self.env.disk.remove_dir_all(&directory);
        let done = done?;
        removed?;
        Ok(done)
    }

    /// How long a write of one sector and its sync take here, in microseconds.
    fn unit(&self) -> Result<Quantiles, End> {
        self.go_on()?;
        let path = self.directory.join("unit");
        let file = self.env.disk.open_placed(&path)?;
        // As the log's segments are: written before, so that a write changes nothing but bytes.
        file.write_at(&vec![0; UNIT_WRITES * 512], 0)?;
        file.sync()?;
        let (mut durations, begin) = (Durations::default(), self.env.clock.now());
        // A test wants a figure, not a good one.
        let writes = if self.config.transactions.is_some() { UNIT_WRITES / 20 } else { UNIT_WRITES };
        for number in 0..writes {
            let start = self.env.clock.now();
            if start - begin > UNIT_NS {
                break;
            }
            file.write_at(&[number as u8; 512], (number * 512) as u64)?;
            file.sync()?;
            durations.record(self.env.clock.now() - start);
        }
        drop(file);
        self.env.disk.remove_file(&path)?;
        durations.quantiles(1_000).ok_or(End::Interrupted)
    }

    /// Bytes that a New-Order leaves in the log, as a call and as rows.
    fn bytes_per_order(&self, report: &mut RecoveryReport) -> Result<(), End> {
        for records in [LogRecords::Calls, LogRecords::Rows] {
            self.go_on()?;
            let config = Config {
                logging: Logging::Null,
                data: None,
                scale: Scale::SMALL,
                warehouses: 1,
                partitions: 1,
                ..self.config.clone()
            };
            let target = Albireo::open_with(&config, self.env, self.cancel, records)?;
            let population = config.population(Timestamp(self.env.clock.unix_us()));
            target.load(&config, &population, &Loading::new(&population, self.observer, self.cancel))?;
            let mut inputs = Inputs::new(Mix::Two, config.scale, 1, &[1], config.seed, 0);
            let orders = std::iter::repeat_with(|| inputs.next_transaction());
            let orders: Vec<_> =
                orders.filter(|transaction| transaction.kind() == Kind::NewOrder).take(ORDERS).collect();
            let mut last = None;
            target.worker(0)?.run(&orders, &mut |_, receipt| {
                last = Some(receipt);
                Ok(())
            })?;
            last.map_or(Ok(()), |receipt| target.acknowledge(receipt))?;
            let statistics = target.log_statistics().ok_or(End::Interrupted)?;
            report
                .set_order_bytes(records, statistics.record_bytes as f64 / statistics.records.max(1) as f64);
        }
        Ok(())
    }

    /// An archive beside transactions, and opening what was left.
    fn one_database(&self, report: &mut RecoveryReport) -> Result<(), End> {
        self.in_directory("database", |directory| {
            let run = {
                let config = Config {
                    logging: Logging::Async,
                    data: Some(directory.to_owned()),
                    ..self.config.clone()
                };
                let target = Albireo::open(&config, self.env, self.cancel)?;
                let run = phases::beside_archive(self, &config, &target)?;
                report.set_archive(&run);
                run
            };
            self.go_on()?;
            let settings = Settings {
                partitions: self.config.partitions,
                procedures: logged(),
                ..self.config.database.clone()
            };
            let database = Database::open_in(directory, settings, self.env.clone())?;
            let memory = database.memory();
            let table_bytes = memory.rows_bytes + memory.strings_bytes + memory.indexes_bytes;
            report.set_recovery(&database.recovery(), table_bytes, &run);
            Ok(())
        })
    }
}
