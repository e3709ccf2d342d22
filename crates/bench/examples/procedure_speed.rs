//! What each transaction of TPC-C takes as a native procedure, as compiled PL/pgSQL, and as interpreted
//! PL/pgSQL: over the same data in one process, in turns, so that all meet the same machine. The interpreter
//! gets a turn for every four of the others.
//!
//! `cargo run --release -p albireo-bench --example procedure_speed -- 5 groups 20` is 5 warehouses, the
//! layout, and how many turns of 200 ms each one gets; `native` or `compiled` behind them lets only that one
//! run, for profiling, and a number behind that only that kind of transaction.
#![allow(clippy::print_stdout, reason = "a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest, Worker};
use albireo_bench::progress::Silent;
use albireo_bench::target::{Albireo, StoredTransactions};
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Kind, Mix, Transaction};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::Layout;
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const TURN_NS: u64 = 200_000_000;
const KINDS: [Kind; 5] = [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

/// Nanoseconds and transactions by kind.
type Times = BTreeMap<usize, (u64, u64)>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or_else(|| default.to_owned());
    let warehouses: i16 = argument("5").parse()?;
    let layout: Layout = argument("groups").parse()?;
    let turns: usize = argument("20").parse()?;
    let only = argument("all");
    let kind: Option<usize> = argument("").parse().ok();
    let config = Config {
        workload: Workload::Tpcc,
        warehouses,
        partitions: 1,
        duration: Duration::ZERO,
        layout,
        mix: Mix::Spec,
        procedures: Procedures::PlPgSql,
        seed: 42,
        scale: Scale::SPEC,
        ..Config::default()
    };
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel)?;
    target.take_memory(&config, &mut |_, _| true);
    let population =
        Population { scale: Scale::SPEC, warehouses, seed: 42, loaded_at: Timestamp(env.clock.unix_us()) };
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel))?;
    let interpreted = StoredTransactions::new(target.database())?.interpreted();
    let homes: Vec<i16> = (1..=warehouses).collect();
    let mut inputs = Inputs::new(config.mix, config.scale, warehouses, &homes, config.seed, 0);
    let (mut native, mut compiled, mut slow) = (Times::new(), Times::new(), Times::new());
    for n in 0..turns {
        if only != "compiled" {
            turn(&env, &mut target.transactions()?, &mut inputs, kind, &mut native)?;
        }
        if only != "native" {
            turn(&env, &mut target.stored()?, &mut inputs, kind, &mut compiled)?;
        }
        if n % 4 == 0 && only == "all" {
            turn(&env, &mut &interpreted, &mut inputs, kind, &mut slow)?;
        }
    }
    show(&native, &compiled, &slow);
    Ok(())
}

/// Transactions that are made at once.
const BATCH: usize = 64;

/// Runs transactions in the order in which the mix has them, for a while on this thread, and times each.
fn turn(
    env: &Env,
    worker: &mut dyn Worker,
    inputs: &mut Inputs,
    only: Option<usize>,
    times: &mut Times,
) -> Result<(), Box<dyn Error>> {
    let end = env.clock.now() + TURN_NS;
    let kind_of = |transaction: &Transaction| KINDS.iter().position(|kind| *kind == transaction.kind());
    while env.clock.now() < end {
        let wanted = std::iter::repeat_with(|| inputs.next_transaction());
        let wanted = wanted.filter(|transaction| only.is_none_or(|only| kind_of(transaction) == Some(only)));
        let batch: Vec<Transaction> = wanted.take(BATCH).collect();
        let mut kinds = batch.iter().filter_map(kind_of);
        let mut last = env.clock.now();
        worker.run(&batch, &mut |_, _| {
            let now = env.clock.now();
            let (time, count) = times.entry(kinds.next().unwrap_or_default()).or_default();
            *time += now - last;
            *count += 1;
            last = now;
            Ok(())
        })?;
    }
    Ok(())
}

fn show(native: &Times, compiled: &Times, interpreted: &Times) {
    let mean = |times: &Times, kind: usize| {
        times.get(&kind).map_or(f64::NAN, |(time, count)| *time as f64 / *count as f64)
    };
    println!(
        "{:<12} {:>10} {:>10} {:>12} {:>8} {:>18}",
        "ns each", "native", "compiled", "interpreted", "of it", "faster than slow"
    );
    let weights = [0.45, 0.43, 0.04, 0.04, 0.04];
    let mut spec = [0.0; 3];
    let line = |name: &str, [a, b, c]: [f64; 3]| {
        println!("{name:<12} {a:>10.0} {b:>10.0} {c:>12.0} {:>7.1}% {:>17.1}x", 100.0 * a / b, c / b);
    };
    for (kind, name) in KINDS.iter().enumerate() {
        let means = [mean(native, kind), mean(compiled, kind), mean(interpreted, kind)];
        line(&format!("{name:?}"), means);
        for (sum, mean) in spec.iter_mut().zip(means) {
            *sum += weights[kind] * mean;
        }
    }
    line("mix", spec);
    println!("native: {:.0} a second, compiled: {:.0}", 1e9 / spec[0], 1e9 / spec[1]);
}
