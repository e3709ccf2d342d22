//! TPC-C by procedures on one partition: alone, beside open transactions that wait for their clients, and beside ten
//! open ones that write, in turns. Each of these runs a statement a millisecond, an UPDATE of a row of STOCK by its key,
//! and commits after ten.
//!
//! `cargo run --release -p albireo-bench --example open_speed -- 5 10` is 5 warehouses and 10 turns of half a second
//! each. Prints transactions a second: the median of the turns, and its share of alone.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Connection, Database, SqlError, SqlState, Value};
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest, Worker};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix, Transaction};
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::Layout;
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TURN: Duration = Duration::from_millis(500);
const OPEN: usize = 10;
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_micros(1_000 / OPEN as u64);
const TAKE: &str = "UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = $1 AND s_i_id = $2";

/// Transactions a second, for a turn.
fn turn(env: &Env, worker: &mut dyn Worker, inputs: &mut Inputs) -> Result<f64, SqlError> {
    let (start, mut done) = (env.clock.now(), 0_u64);
    while env.clock.now() - start < TURN.as_nanos() as u64 {
        let batch: Vec<Transaction> =
            std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
        worker.run(&batch, &mut |_, _| {
            done += 1;
            Ok(())
        })?;
    }
    Ok(done as f64 * 1e9 / (env.clock.now() - start) as f64)
}

/// One of the open ones.
struct Client {
    connection: Connection,
    statements: u32,
}

impl Client {
    fn step(&mut self, warehouses: i16, number: u64) -> Result<bool, SqlError> {
        if self.statements == 0 {
            self.connection.begin()?;
        }
        self.statements += 1;
        let w_id = (number % warehouses as u64) as i16 + 1;
        let item = (number.wrapping_mul(7_919) % 100_000) as i32 + 1;
        let done = self.connection.execute_with(TAKE, &[Value::SmallInt(w_id), Value::Integer(item)]);
        let ended = match done {
            Ok(_) if self.statements < 10 => return Ok(true),
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

/// Runs `work` while ten transactions are open; those write too, if they are `active`.
fn beside<R>(
    env: &Env,
    db: &Database,
    active: bool,
    warehouses: i16,
    failed: &AtomicU64,
    work: impl FnOnce() -> R,
) -> Result<R, SqlError> {
    let mut clients: Vec<Client> =
        (0..OPEN).map(|_| Client { connection: db.connect(), statements: 0 }).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.step(warehouses, number as u64 * 31)?;
    }
    let over = AtomicBool::new(false);
    albireo_env::scope(|scope| {
        let over = &over;
        let writes = move || -> Result<(), SqlError> {
            let mut number = 1_000;
            while active && !over.load(Ordering::Relaxed) {
                number += 1;
                let lived = clients[number as usize % OPEN].step(warehouses, number)?;
                failed.fetch_add(u64::from(!lived), Ordering::Relaxed);
                env.clock.sleep(PAUSE);
            }
            while !over.load(Ordering::Relaxed) {
                env.clock.sleep(TURN / 100);
            }
            Ok(())
        };
        let writer = albireo_env::spawn_scoped(scope, "open", writes).expect("there is a thread");
        let given = work();
        over.store(true, Ordering::Relaxed);
        writer.join().expect("the writer does not panic")?;
        Ok(given)
    })
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let warehouses: i16 = args.next().map_or(Ok(5), |text| text.parse())?;
    let turns: usize = args.next().map_or(Ok(10), |text| text.parse())?;
    let config = Config {
        workload: Workload::Tpcc,
        warehouses,
        partitions: 1,
        duration: Duration::ZERO,
        layout: Layout::Groups,
        mix: Mix::Spec,
        procedures: Procedures::PlPgSql,
        seed: 42,
        scale: Scale::SPEC,
        ..Config::default()
    };
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel)?;
    target.take_memory(&config, &mut |_, _| true);
    let population = config.population(Timestamp(env.clock.unix_us()));
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel))?;
    let homes: Vec<i16> = (1..=warehouses).collect();
    let mut inputs = Inputs::new(config.mix, config.scale, warehouses, &homes, config.seed, 0);
    let (db, failed) = (target.database(), AtomicU64::new(0));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..turns {
        times[0].push(turn(&env, &mut target.stored()?, &mut inputs)?);
        for (at, active) in [(1, false), (2, true)] {
            let mut stored = target.stored()?;
            let run = || turn(&env, &mut stored, &mut inputs);
            times[at].push(beside(&env, db, active, warehouses, &failed, run)??);
        }
    }
    let alone = median(&mut times[0]);
    for (name, times) in ["alone", "beside 10 open", "beside 10 that write"].iter().zip(&mut times) {
        let median = median(times);
        println!("{name:<24}{median:>10.0} a second {:>6.1} % of alone", 100.0 * median / alone);
    }
    println!("{} of the open ones ended by a procedure", failed.load(Ordering::Relaxed));
    Ok(())
}
