//! What transactions that cross partitions cost, themselves and whoever has nothing to do with them.
//!
//! Transfers between two accounts, by a procedure in PL/pgSQL. One client for each pair of partitions calls it, one call
//! after another, and has a share of its transfers cross from one of its partitions to the other.
//!
//! Responsible for: these figures; that no cent is lost. Not responsible for: how partitions are taken (`partition`).

mod report;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Config as Settings, Connection, Database, SqlError, Value};
use albireo_base::SqlState;
use albireo_env::{Clock, Env};

use crate::driver::Cancel;
use crate::progress::Observer;

pub use report::{CrossingReport, Load, Spared};

/// Accounts of each partition.
const ACCOUNTS: i64 = 10_000;
/// What each has in the beginning.
const CENTS: i64 = 1_000;
/// Turns of each measurement: the median counts.
const TURNS: usize = 5;
/// The shares of transfers that cross, in percent.
const SHARES: [u64; 4] = [0, 1, 10, 100];

/// What is run.
#[derive(Clone, Debug)]
pub struct CrossingConfig {
    /// How long each measurement takes.
    pub duration: Duration,
    /// The databases.
    pub database: Settings,
}

/// Runs it on databases in memory. The report has whatever was measured.
pub fn run(config: &CrossingConfig, env: &Env, observer: &dyn Observer, cancel: &Cancel) -> CrossingReport {
    let mut report = CrossingReport::default();
    let done = measure(config, &env.clock, observer, cancel, &mut report);
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().map(|error| error.to_string());
    observer.finished();
    report
}

fn measure(
    config: &CrossingConfig,
    clock: &Clock,
    observer: &dyn Observer,
    cancel: &Cancel,
    report: &mut CrossingReport,
) -> Result<(), SqlError> {
    let bench = |partitions| Bench::new(config, partitions, clock);
    let four = bench(4)?;
    let mut spared = Vec::new();
    for turn in 0..TURNS {
        observer.running("beside crossing transfers", config.duration, config.duration * TURNS as u32, 0.0);
        let alone = four.together(&[(0, 0), (2, 0)])?;
        let beside = four.together(&[(0, 10), (2, 0)])?;
        let beside_all = four.together(&[(0, 0), (2, 0), (ALL, 0)])?;
        let own = |counts: &[f64]| counts[1];
        spared.push([own(&alone), own(&beside), own(&beside_all)]);
        if cancel.is_cancelled() || turn + 1 == TURNS {
            break;
        }
    }
    four.check()?;
    report.spared = Some(Spared::of(&spared));
    for partitions in [1, 2] {
        let bench = bench(partitions)?;
        // Where there is one partition nothing crosses.
        let shares = if partitions > 1 { &SHARES[..] } else { &SHARES[..1] };
        for share in shares.iter().copied() {
            if cancel.is_cancelled() {
                return Ok(());
            }
            observer.running("transfers", config.duration, config.duration, 0.0);
            let clients: Vec<(i64, u64)> =
                (0..2).map(|client| (client % i64::from(partitions), share)).collect();
            let counts = bench.together(&clients)?;
            report.loads.push(Load { partitions, crossing_percent: share, per_second: counts.iter().sum() });
        }
        bench.check()?;
    }
    Ok(())
}

/// The client that takes all partitions, again and again.
const ALL: i64 = -1;

/// A database of accounts.
struct Bench<'a> {
    db: Database,
    partitions: i64,
    duration: Duration,
    clock: &'a Clock,
}

impl<'a> Bench<'a> {
    fn new(config: &CrossingConfig, partitions: u16, clock: &'a Clock) -> Result<Self, SqlError> {
        let db = Database::in_memory(Settings { partitions, ..config.database.clone() })?;
        let accounts = ACCOUNTS * i64::from(partitions);
        db.execute(&format!(
            "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL) PARTITION BY HASH (id);
             CREATE TABLE fee (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL);
             INSERT INTO fee VALUES (1, 0);
             INSERT INTO account SELECT i, {CENTS} FROM generate_series(0, {accounts} - 1) AS x(i);
             CREATE PROCEDURE transfer(source BIGINT, target BIGINT) LANGUAGE plpgsql AS $$
             BEGIN
                 UPDATE account SET cents = cents - 1 WHERE id = source;
                 UPDATE account SET cents = cents + 1 WHERE id = target;
             END $$"
        ))?;
        Ok(Self { db, partitions: i64::from(partitions), duration: config.duration, clock })
    }

    /// Runs clients at once, each with its first partition and the share of its transfers that cross to the next one;
    /// how many transfers each made in a second.
    fn together(&self, clients: &[(i64, u64)]) -> Result<Vec<f64>, SqlError> {
        let no_thread =
            |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let (over, counts) =
            (AtomicBool::new(false), clients.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let start = self.clock.now();
        albireo_env::scope(|scope| {
            let mut running = Vec::new();
            for (number, (client, count)) in clients.iter().zip(&counts).enumerate() {
                let (over, connection) = (&over, self.db.connect());
                let work = move || self.client(*client, &connection, (over, count, number as u64));
                running.push(albireo_env::spawn_scoped(scope, "client", work).map_err(no_thread)?);
            }
            self.clock.sleep(self.duration);
            over.store(true, Ordering::Relaxed);
            running.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
        })?;
        let seconds = (self.clock.now() - start) as f64 / 1e9;
        Ok(counts.iter().map(|count| count.load(Ordering::Relaxed) as f64 / seconds).collect())
    }

    fn client(
        &self,
        (partition, share): (i64, u64),
        connection: &Connection,
        (over, count, number): (&AtomicBool, &AtomicU64, u64),
    ) -> Result<(), SqlError> {
        if partition == ALL {
            while !over.load(Ordering::Relaxed) {
                connection.execute("UPDATE fee SET cents = cents + 1 WHERE id = 1")?;
                count.fetch_add(1, Ordering::Relaxed);
                // As often as one in ten transfers crosses.
                self.clock.sleep(Duration::from_micros(20));
            }
            return Ok(());
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1);
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        while !over.load(Ordering::Relaxed) {
            let mut account = |partition: i64| draw(ACCOUNTS as u64) as i64 * self.partitions + partition;
            let (source, other) = (account(partition), account(partition));
            let crosses = draw(100) < share && self.partitions > 1;
            let target = if crosses { other - partition + (partition ^ 1) } else { other };
            connection
                .execute_with("CALL transfer($1, $2)", &[Value::BigInt(source), Value::BigInt(target)])?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// # Errors
    /// XX000 if a cent was lost.
    fn check(&self) -> Result<(), SqlError> {
        let sum = self.db.query("SELECT sum(cents)::bigint FROM account", &[])?.value(0, 0);
        match sum == Value::BigInt(CENTS * ACCOUNTS * self.partitions) {
            true => Ok(()),
            false => Err(SqlError::new(SqlState::INTERNAL_ERROR, format!("the accounts have {sum} cents"))),
        }
    }
}
