//! What old versions of rows cost whoever reads them: AnKerDB's experiments on this engine.
//!
//! Small transactions change single rows while queries read whole tables, in three ways. *Heterogeneous*: a query reads a
//! snapshot. *Homogeneous*: it reads the rows where the transactions change them, as a transaction itself, between BEGIN
//! and COMMIT, at two levels. The paper's homogeneous system keeps versions of rows; this engine has none, and a query on
//! live rows makes the others wait instead. The paper's system has 8 threads, 7 of them for small transactions; here one
//! thread runs small transactions and one runs queries.
//!
//! Responsible for: the latency of queries beside small transactions (the paper's Fig. 7), the throughput of both (Fig. 8),
//! scans through a snapshot of rows that were changed since (Fig. 9). Not responsible for: snapshots (`storage`).
//!
//! Paper: Sharma, Schuhknecht and Dittrich, SIGMOD 2018, §5.3 to §5.5.

mod report;
mod workload;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Config as Settings, Connection, Database, ExecutionPath, SqlError};
use albireo_base::SqlState;
use albireo_env::{Clock, Env};

use crate::driver::Cancel;
use crate::latency::median;
use crate::progress::Observer;
use workload::{Draw, QUERIES, Sizes, query, small};

pub use report::{Latency, Scan, Throughput, VersionsReport};

/// How often each query runs for its latency: the median counts.
const RUNS: usize = 5;
/// The same for scans through a snapshot, which take a millisecond.
const SCANS: usize = 51;
/// Queries beside the small transactions whose throughput is measured.
const QUERIES_BESIDE: usize = 10;
/// Shares of rows that were changed since the snapshot, in percent.
const SHARES: [u64; 6] = [0, 20, 40, 60, 80, 100];

/// What is run.
#[derive(Clone, Debug)]
pub struct VersionsConfig {
    /// Rows of LINEITEM; ORDERS has a quarter, PART a thirtieth.
    pub rows: u64,
    /// Small transactions of each measurement of throughput.
    pub transactions: u64,
    /// The database.
    pub database: Settings,
}

/// Where queries read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processing {
    /// On snapshots.
    Heterogeneous,
    /// On live rows, SERIALIZABLE.
    Serializable,
    /// On live rows, READ COMMITTED: what they have read is not checked.
    ReadCommitted,
}

impl Processing {
    const ALL: [Self; 3] = [Self::Heterogeneous, Self::Serializable, Self::ReadCommitted];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heterogeneous => "heterogeneous",
            Self::Serializable => "homogeneous, serializable",
            Self::ReadCommitted => "homogeneous, read committed",
        }
    }

    fn begin(self) -> Option<&'static str> {
        match self {
            Self::Heterogeneous => None,
            Self::Serializable => Some("BEGIN ISOLATION LEVEL SERIALIZABLE"),
            Self::ReadCommitted => Some("BEGIN ISOLATION LEVEL READ COMMITTED"),
        }
    }
}

/// Runs it on a database in memory. The report has whatever was measured.
pub fn run(config: &VersionsConfig, env: &Env, observer: &dyn Observer, cancel: &Cancel) -> VersionsReport {
    let mut report = VersionsReport::new(config.rows, config.transactions);
    let done = measure(config, &env.clock, observer, cancel, &mut report);
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().map(|error| error.to_string());
    observer.finished();
    report
}

fn measure(
    config: &VersionsConfig,
    clock: &Clock,
    observer: &dyn Observer,
    cancel: &Cancel,
    report: &mut VersionsReport,
) -> Result<(), SqlError> {
    let sizes = Sizes::of(config.rows);
    let db = Database::in_memory(config.database.clone())?;
    observer.loading(0, config.rows);
    db.execute(&sizes.script())?;
    observer.loading(config.rows, config.rows);
    let bench = Bench { db, sizes, clock, transactions: config.transactions };
    for share in SHARES {
        observer.running("scans through a snapshot", Duration::ZERO, Duration::ZERO, 0.0);
        report.scans.push(bench.scan(share)?);
        if cancel.is_cancelled() {
            return Ok(());
        }
    }
    for (number, name) in QUERIES.into_iter().enumerate() {
        observer.running(name, Duration::ZERO, Duration::ZERO, 0.0);
        report.latencies.push(bench.latency(number)?);
        if cancel.is_cancelled() {
            return Ok(());
        }
    }
    for processing in Processing::ALL {
        observer.running(processing.name(), Duration::ZERO, Duration::ZERO, 0.0);
        report.throughput.push(bench.throughput(processing)?);
        if cancel.is_cancelled() {
            return Ok(());
        }
    }
    Ok(())
}

/// A filled database.
struct Bench<'a> {
    db: Database,
    sizes: Sizes,
    clock: &'a Clock,
    transactions: u64,
}

impl Bench<'_> {
    /// Runs `work` beside small transactions on another thread.
    fn beside<R>(&self, work: impl FnOnce() -> Result<R, SqlError>) -> Result<R, SqlError> {
        let no_thread =
            |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let over = AtomicBool::new(false);
        albireo_env::scope(|scope| {
            let clients = || {
                let (connection, mut draw) = (self.db.connect(), Draw::new(1));
                while !over.load(Ordering::Relaxed) {
                    small(&connection, self.sizes, &mut draw)?;
                }
                Ok(())
            };
            let client = albireo_env::spawn_scoped(scope, "transactions", clients).map_err(no_thread)?;
            let done = work();
            over.store(true, Ordering::Relaxed);
            let ran: Result<(), SqlError> = client.join().expect("the small transactions do not panic");
            ran.and(done)
        })
    }

    /// Runs a query one way; how long it took in milliseconds.
    fn run(&self, connection: &Connection, processing: Processing, text: &str) -> Result<f64, SqlError> {
        let start = self.clock.now();
        match processing.begin() {
            None => drop(connection.query(text, &[])?),
            Some(begin) => {
                connection.execute(begin)?;
                connection.query(text, &[])?;
                connection.commit()?;
            }
        }
        Ok((self.clock.now() - start) as f64 / 1e6)
    }

    /// Has queries go one way. Small transactions read a row by its key: theirs is the same in any case.
    fn force(&self, processing: Processing) {
        let path = (processing != Processing::Heterogeneous).then_some(ExecutionPath::Transactional);
        self.db.force_execution_path(path);
    }

    /// The latency of a query beside small transactions, in turns the three ways.
    fn latency(&self, number: usize) -> Result<Latency, SqlError> {
        let (connection, mut draw) = (self.db.connect(), Draw::new(7 + number as u64));
        let mut all = [const { Vec::new() }; 3];
        for _ in 0..RUNS {
            for (processing, taken) in Processing::ALL.into_iter().zip(&mut all) {
                let text = query(number, &mut draw);
                self.force(processing);
                taken.push(self.beside(|| self.run(&connection, processing, &text))?);
            }
        }
        self.force(Processing::Heterogeneous);
        let [heterogeneous_ms, serializable_ms, read_committed_ms] = all.map(median);
        Ok(Latency { query: QUERIES[number], heterogeneous_ms, serializable_ms, read_committed_ms })
    }

    /// Transactions a second: small ones alone, and beside queries.
    fn throughput(&self, processing: Processing) -> Result<Throughput, SqlError> {
        self.force(processing);
        let alone_per_second = self.together(processing, 0)?;
        let mixed_per_second = self.together(processing, QUERIES_BESIDE)?;
        self.force(Processing::Heterogeneous);
        Ok(Throughput { processing: processing.name(), alone_per_second, mixed_per_second })
    }

    /// Two threads run the small transactions, and one of them so many queries besides, evenly between.
    fn together(&self, processing: Processing, queries: usize) -> Result<f64, SqlError> {
        let no_thread =
            |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let left = AtomicU64::new(self.transactions);
        let start = self.clock.now();
        albireo_env::scope(|scope| {
            let other = || self.client(processing, (3, 0), &left);
            let other = albireo_env::spawn_scoped(scope, "transactions", other).map_err(no_thread)?;
            let done = self.client(processing, (5, queries as u64), &left);
            other.join().expect("the small transactions do not panic").and(done)
        })?;
        let seconds = (self.clock.now() - start) as f64 / 1e9;
        Ok((self.transactions + queries as u64) as f64 / seconds)
    }

    /// Runs small transactions until none is left, and so many queries evenly between.
    fn client(
        &self,
        processing: Processing,
        (seed, queries): (u64, u64),
        left: &AtomicU64,
    ) -> Result<(), SqlError> {
        let (connection, mut draw, mut asked) = (self.db.connect(), Draw::new(seed), 0);
        let take =
            || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
        while let Some(before) = take() {
            small(&connection, self.sizes, &mut draw)?;
            let due = (self.transactions + 1 - before) * queries / self.transactions.max(1);
            while asked < due {
                let text = query(asked as usize % QUERIES.len(), &mut draw);
                self.run(&connection, processing, &text)?;
                asked += 1;
            }
        }
        Ok(())
    }

    /// Scans of each table through a snapshot, before and after a share of its rows is changed, in milliseconds.
    fn scan(&self, percent: u64) -> Result<Scan, SqlError> {
        let tables = [
            (4, "UPDATE lineitem SET l_extendedprice = l_extendedprice + 1 WHERE l_id % 100 <"),
            (5, "UPDATE orders SET o_totalprice = o_totalprice + 1 WHERE o_orderkey % 100 <"),
            (6, "UPDATE part SET p_retailprice = p_retailprice + 1 WHERE p_partkey % 100 <"),
        ];
        let (mut before, mut after, mut draw) = ([0.0; 3], [0.0; 3], Draw::new(11));
        for (table, (number, change)) in tables.into_iter().enumerate() {
            let session = self.db.begin_read_only()?;
            let mut scans = || {
                let one = |_| {
                    let (text, start) = (query(number, &mut draw), self.clock.now());
                    session.query(&text, &[]).map(|_| (self.clock.now() - start) as f64 / 1e6)
                };
                (0..SCANS).map(one).collect::<Result<Vec<f64>, SqlError>>().map(median)
            };
            before[table] = scans()?;
            self.db.execute(&format!("{change} {percent}"))?;
            after[table] = scans()?;
        }
        Ok(Scan { percent, before_ms: before, after_ms: after })
    }
}
