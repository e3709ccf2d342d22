//! What open transactions cost procedures: those that wait for their clients, and those that write.
//!
//! TPC-C by procedures on one partition, in turns alone, beside ten open transactions, and beside ten that write. Each of
//! these runs a statement a millisecond, an UPDATE of a row of STOCK by its key, and commits after ten.
//!
//! Responsible for: these figures. Not responsible for: the procedures (`tpcc`, `target`).

mod report;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Connection, Database, SqlError, SqlState, Value};
use albireo_env::{Clock, Env};

use crate::config::Config;
use crate::driver::{Cancel, Loading, SystemUnderTest, Worker};
use crate::progress::Observer;
use crate::target::Albireo;
use crate::tpcc::input::{Inputs, Transaction};
use crate::tpcc::rows::Timestamp;

pub use report::OpenReport;

/// Open transactions at the same time.
const OPEN: usize = 10;
/// Transactions that a worker gets at once.
const BATCH: usize = 64;
/// Between two statements of all open ones: each runs one in a millisecond.
const PAUSE: Duration = Duration::from_micros(1_000 / OPEN as u64);
/// Statements of each of them.
const STATEMENTS: u32 = 10;
const TAKE: &str = "UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = $1 AND s_i_id = $2";

/// What is run.
#[derive(Clone, Debug)]
pub struct OpenConfig {
    /// The workload, with one partition.
    pub workload: Config,
    /// How often each of the three is measured: the median counts.
    pub turns: usize,
    /// How long, each time.
    pub turn: Duration,
}

/// Runs it on a database in memory. The report has whatever was measured.
pub fn run(config: &OpenConfig, env: &Env, observer: &dyn Observer, cancel: &Cancel) -> OpenReport {
    let mut report = OpenReport::default();
    let done = measure(config, env, observer, cancel, &mut report);
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().filter(|_| !report.interrupted).map(|error| error.to_string());
    observer.finished();
    report
}

fn measure(
    config: &OpenConfig,
    env: &Env,
    observer: &dyn Observer,
    cancel: &Cancel,
    report: &mut OpenReport,
) -> Result<(), SqlError> {
    let workload = &config.workload;
    let target = Albireo::open(workload, env, cancel)?;
    target.take_memory(workload, &mut |_, _| true);
    let population = workload.population(Timestamp(env.clock.unix_us()));
    target.load(workload, &population, &Loading::new(&population, observer, cancel))?;
    let homes: Vec<i16> = (1..=workload.warehouses).collect();
    let mut inputs = Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
    let (bench, ended) = (Bench { db: target.database(), clock: &env.clock, config }, AtomicU64::new(0));
    for _ in 0..config.turns {
        if cancel.is_cancelled() {
            break;
        }
        observer.running("beside open transactions", config.turn, config.turn, 0.0);
        report.alone.push(bench.turn(&mut target.stored()?, &mut inputs)?);
        for (writes, times) in [(false, &mut report.beside_idle), (true, &mut report.beside_writing)] {
            let mut stored = target.stored()?;
            times.push(bench.beside(writes, &ended, || bench.turn(&mut stored, &mut inputs))??);
        }
    }
    report.ended_by_procedures = ended.load(Ordering::Relaxed);
    Ok(())
}

struct Bench<'a> {
    db: &'a Database,
    clock: &'a Clock,
    config: &'a OpenConfig,
}

/// One of the open ones.
struct Client {
    connection: Connection,
    statements: u32,
}

impl Client {
    /// Runs a statement; whether the transaction has not ended with 40001.
    fn step(&mut self, (warehouses, items): (i16, u64), number: u64) -> Result<bool, SqlError> {
        if self.statements == 0 {
            self.connection.begin()?;
        }
        self.statements += 1;
        let w_id = (number % warehouses.unsigned_abs() as u64) as i16 + 1;
        let item = (number.wrapping_mul(7_919) % items) as i32 + 1;
        let done = self.connection.execute_with(TAKE, &[Value::SmallInt(w_id), Value::Integer(item)]);
        let ended = match done {
            Ok(_) if self.statements < STATEMENTS => return Ok(true),
            Ok(_) => self.connection.commit(),
            Err(error) => Err(error),
        };
        self.statements = 0;
        match ended {
            Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => {
                self.connection.rollback()?;
                Ok(false)
            }
            ended => ended.map(|()| true),
        }
    }
}

impl Bench<'_> {
    /// Transactions a second, for a turn.
    fn turn(&self, worker: &mut dyn Worker, inputs: &mut Inputs) -> Result<f64, SqlError> {
        let (start, mut done) = (self.clock.now(), 0_u64);
        while u128::from(self.clock.now() - start) < self.config.turn.as_nanos() {
            let batch: Vec<Transaction> =
                std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
            worker.run(&batch, &mut |_, _| {
                done += 1;
                Ok(())
            })?;
        }
        Ok(done as f64 * 1e9 / (self.clock.now() - start) as f64)
    }

    /// Runs `work` while ten transactions are open, which write if they do.
    fn beside<R>(&self, writes: bool, ended: &AtomicU64, work: impl FnOnce() -> R) -> Result<R, SqlError> {
        let no_thread =
            |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let (db, clock, workload) = (self.db, self.clock, &self.config.workload);
        let rows = (workload.warehouses, workload.scale.items.unsigned_abs().into());
        let mut clients: Vec<Client> =
            (0..OPEN).map(|_| Client { connection: db.connect(), statements: 0 }).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.step(rows, number as u64 * 31)?;
        }
        let over = AtomicBool::new(false);
        albireo_env::scope(|scope| {
            let over = &over;
            let open = move || -> Result<(), SqlError> {
                let mut number = 1_000;
                while !over.load(Ordering::Relaxed) {
                    if writes {
                        number += 1;
                        let lived = clients[number as usize % OPEN].step(rows, number)?;
                        ended.fetch_add(u64::from(!lived), Ordering::Relaxed);
                    }
                    clock.sleep(PAUSE);
                }
                Ok(())
            };
            let open = albireo_env::spawn_scoped(scope, "open", open).map_err(no_thread)?;
            let given = work();
            over.store(true, Ordering::Relaxed);
            open.join().expect("the open ones do not panic")?;
            Ok(given)
        })
    }
}
