//! How many TPC-C transactions a processor second one partition runs, without queries: for profiling.
//! `cargo run --release -p albireo-bench --example tpcc_speed -- 5 groups 10 0` is 5 warehouses, the
//! layout, seconds for each of three rounds, and snapshots a second.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::time::Duration;

use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, Outcome, SystemUnderTest};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::Layout;
use albireo_env::Env;

const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or_else(|| default.to_owned());
    let warehouses: i16 = argument("5").parse()?;
    let layout: Layout = argument("groups").parse()?;
    let seconds: u64 = argument("5").parse()?;
    let snapshots: u64 = argument("0").parse()?;
    let config = Config {
        workload: Workload::Tpcc,
        warehouses,
        partitions: 1,
        duration: Duration::from_secs(seconds),
        layout,
        mix: Mix::Spec,
        procedures: Procedures::Native,
        ..Config::default()
    };
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel)?;
    let start = env.clock.now();
    let population =
        Population { scale: Scale::SPEC, warehouses, seed: 42, loaded_at: Timestamp(env.clock.unix_us()) };
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel))?;
    println!("loaded in {:.1} s", (env.clock.now() - start) as f64 / 1e9);
    let homes: Vec<i16> = (1..=warehouses).collect();
    let mut inputs = Inputs::new(config.mix, config.scale, warehouses, &homes, config.seed, 0);
    for _ in 0..3 {
        round(&target, &env, &mut inputs, seconds, snapshots)?;
    }
    Ok(())
}

/// Runs transactions for some seconds on this thread and prints how many there were.
fn round(
    target: &Albireo,
    env: &Env,
    inputs: &mut Inputs,
    seconds: u64,
    snapshots: u64,
) -> Result<(), Box<dyn Error>> {
    let mut worker = target.worker(0)?;
    let (start, cpu) = (env.clock.now(), albireo_env::cpu_time_ns());
    let end = start + seconds * 1_000_000_000;
    let (mut committed, mut rolled_back, mut next_snapshot) = (0_u64, 0_u64, start);
    let mut taking_ns = Vec::new();
    let mut held = None;
    loop {
        let batch: Vec<_> = std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
        worker.run(&batch, &mut |outcome, _| {
            match outcome {
                Outcome::Committed => committed += 1,
                Outcome::RolledBack => rolled_back += 1,
            }
            Ok(())
        })?;
        let now = env.clock.now();
        if now > end {
            break;
        }
        if snapshots > 0 && now >= next_snapshot {
            next_snapshot = now + 1_000_000_000 / snapshots;
            held = Some(target.snapshot()?);
            taking_ns.push(env.clock.now() - now);
        }
    }
    drop(held);
    let elapsed = (env.clock.now() - start) as f64 / 1e9;
    let cpu = (albireo_env::cpu_time_ns() - cpu) as f64 / 1e9;
    taking_ns.sort_unstable();
    let costs = target.snapshot_costs();
    println!(
        "{:.0} per CPU second, {:.0} per second ({committed} committed, {rolled_back} rolled back); \
         {} snapshots, median {:?} ns; {} blocks copied so far, {} bytes",
        committed as f64 / cpu,
        committed as f64 / elapsed,
        taking_ns.len(),
        taking_ns.get(taking_ns.len() / 2),
        costs.blocks_copied,
        costs.bytes_copied,
    );
    Ok(())
}
