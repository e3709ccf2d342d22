//! What a database costs whose rows do not fit into memory: TPC-C while most of it is in files, alone and beside queries,
//! transactions beside one that waits for a file, and queries that read files.
//!
//! The databases are in memory and have a directory for what leaves ([`Eviction::To`]): no redo log takes part. Freezing is
//! left as it is by default: nothing is old enough to be frozen for its age during a run, so that the database that
//! holds everything is the fastest there is, and the other freezes what it needs when memory is short. Freezing by age,
//! after two seconds say, would also freeze orders that are yet to be delivered: TPC-C delivers later and later.
//!
//! Responsible for: these figures, one file for each of the four experiments. Not responsible for: what leaves memory,
//! and how it comes back (`engine`, `partition`, `storage`).

mod counted;
mod fetches;
mod growth;
mod queries;
mod report;
mod tenfold;

use std::path::{Path, PathBuf};

use albireo::{Database, Eviction, SqlError, SqlState, Value};
use albireo_env::{Env, Scratch};

use crate::config::{Config, Procedures};
use crate::driver::Cancel;
use crate::progress::Observer;

pub use report::{
    FetchTimes, GrowthRun, Held, LargerReport, Plan, QuerySpeed, Speeds, TenfoldPart, TenfoldRun,
};

/// What is run.
#[derive(Clone, Debug)]
pub struct LargerConfig {
    /// TPC-C, with one partition.
    pub workload: Config,
    /// Bytes of rows, as they are while they are hot, to which TPC-C has the database grow.
    pub rows_bytes: u64,
    /// How many times the memory that is left for them the rows of tables that grow take then.
    pub multiple: f64,
    /// How often what is compared is measured.
    pub turns: usize,
    /// Chunks of the table whose rows are fetched.
    pub chunks: u64,
    /// Transactions that make the order lines for queries.
    pub transactions: u64,
    /// A directory, in which a temporary one is made for what leaves memory.
    pub directory: PathBuf,
    /// Only experiments whose names contain this are run.
    pub only: String,
}

/// The experiments, in the order of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Experiment {
    Growth,
    Tenfold,
    Fetches,
    Queries,
}

impl Experiment {
    const ALL: [Self; 4] = [Self::Growth, Self::Tenfold, Self::Fetches, Self::Queries];

    fn name(self) -> &'static str {
        match self {
            Self::Growth => "TPC-C",
            Self::Tenfold => "tenfold",
            Self::Fetches => "fetches",
            Self::Queries => "queries",
        }
    }
}

/// Runs it. The report has whatever was measured.
pub fn run(config: &LargerConfig, env: &Env, observer: &dyn Observer, cancel: &Cancel) -> LargerReport {
    let mut report = LargerReport::new(config);
    let done = measure(config, env, observer, cancel, &mut report);
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().filter(|_| !report.interrupted).map(|error| error.to_string());
    observer.finished();
    report
}

fn measure(
    config: &LargerConfig,
    env: &Env,
    observer: &dyn Observer,
    cancel: &Cancel,
    report: &mut LargerReport,
) -> Result<(), SqlError> {
    // It goes when this is dropped, however the run ends.
    let scratch = Scratch::create(&config.directory).map_err(|error| io_error(&config.directory, &error))?;
    let directory = scratch.path().to_owned();
    let bench = Bench { config, env, observer, cancel, directory };
    for experiment in Experiment::ALL.into_iter().filter(|one| one.name().contains(&config.only)) {
        if cancel.is_cancelled() {
            break;
        }
        match experiment {
            Experiment::Growth => bench.growth(report)?,
            Experiment::Tenfold => bench.tenfold(report)?,
            Experiment::Fetches => report.fetches = Some(bench.fetches()?),
            Experiment::Queries => report.queries = Some(bench.queries()?),
        }
    }
    Ok(())
}

/// Everything that the experiments need.
struct Bench<'a> {
    config: &'a LargerConfig,
    env: &'a Env,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
    /// For what leaves memory; each database makes one of its own in it.
    directory: PathBuf,
}

impl Bench<'_> {
    /// A directory for what leaves one database.
    fn cold(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// TPC-C by native procedures on one partition, whose rows leave for a directory.
    fn workload(&self, cold: &Path) -> Config {
        let workload = &self.config.workload;
        let database =
            albireo::Config { eviction: Eviction::To(cold.to_owned()), ..workload.database.clone() };
        Config { procedures: Procedures::Native, partitions: 1, database, ..workload.clone() }
    }

    /// Has nothing of the files in a directory be in the page cache, so that who reads them reads the disk.
    fn forget_files(&self, directory: &Path) -> Result<(), SqlError> {
        use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, open};
        for path in self.env.disk.read_dir(directory).map_err(|error| io_error(directory, &error))? {
            let file = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
            // Only what is on the disk is forgotten.
            let done = file.and_then(|file| {
                fdatasync(&file)?;
                fadvise(&file, 0, None, Advice::DontNeed)
            });
            done.map_err(|error| io_error(&path, &error.into()))?;
        }
        Ok(())
    }

    /// Bytes of the files in a directory.
    fn file_bytes(&self, directory: &Path) -> Result<u64, SqlError> {
        let disk = &self.env.disk;
        let lengths = || {
            let files = disk.read_dir(directory)?;
            files.iter().map(|file| disk.open(file)?.len()).sum::<std::io::Result<u64>>()
        };
        lengths().map_err(|error| io_error(directory, &error))
    }
}

/// Chunks with rows by whether they have blocks, are frozen and in memory, or frozen and not; of all tables, or of some.
fn chunk_counts(db: &Database, tables: &[&str]) -> Result<(u64, u64, u64), SqlError> {
    let names = tables.iter().map(|table| format!("'{table}'")).collect::<Vec<_>>().join(", ");
    let those = if tables.is_empty() { String::new() } else { format!("AND \"table\" IN ({names})") };
    let one = |states: &str| {
        let sql =
            format!("SELECT count(*) FROM albireo.chunks WHERE rows > 0 AND state IN ({states}) {those}");
        match db.query(&sql, &[])?.value(0, 0) {
            Value::BigInt(count) => Ok(count as u64),
            other => Err(wrong(format!("{other:?} is no number of chunks"))),
        }
    };
    Ok((one("'hot', 'cooling', 'cold'")?, one("'frozen'")?, one("'evicted'")?))
}

/// What was measured is not what it should be.
fn wrong(text: String) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, text)
}

fn io_error(path: &Path, error: &std::io::Error) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("\"{}\": {error}", path.display()))
}

fn no_thread(error: &std::io::Error) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string())
}
