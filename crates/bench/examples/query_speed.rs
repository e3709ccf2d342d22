//! What queries cost while the tables grow: transactions and queries take turns on one thread, so that
//! each query meets a new snapshot and nobody else uses the machine. For profiling and for comparing
//! builds on a busy machine: times are processor time of the whole process.
//!
//! `cargo run --release -p albireo-bench --example query_speed -- [queries] [warehouses] [transactions
//! before] [runs] [transactions between two runs]`
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::time::Duration;

use albireo_bench::ch::queries::Selection;
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest, Worker};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::Layout;
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or_else(|| default.to_owned());
    let selection: Selection = argument("top10").parse()?;
    let warehouses: i16 = argument("5").parse()?;
    let before: usize = argument("1000000").parse()?;
    let runs: usize = argument("100").parse()?;
    let between: usize = argument("2000").parse()?;
    let config = Config {
        workload: Workload::Tpcc,
        warehouses,
        partitions: 1,
        duration: Duration::from_secs(1),
        layout: Layout::Groups,
        mix: Mix::Spec,
        procedures: Procedures::Native,
        seed: 42,
        scale: Scale::SPEC,
        ..Config::default()
    };
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel)?;
    let population =
        Population { scale: Scale::SPEC, warehouses, seed: 42, loaded_at: Timestamp(env.clock.unix_us()) };
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel))?;
    for query in selection.queries() {
        target.prepare(query)?;
    }
    let homes: Vec<i16> = (1..=warehouses).collect();
    let mut inputs = Inputs::new(config.mix, config.scale, warehouses, &homes, config.seed, 0);
    let mut worker = target.worker(0)?;
    // As in a run under load: plans are made while the tables are small.
    queries(&target, &selection, 0, warehouses, &mut Vec::new())?;
    transactions(&mut *worker, &mut inputs, before)?;
    let mut took = Vec::new();
    for run in 0..runs {
        transactions(&mut *worker, &mut inputs, between)?;
        queries(&target, &selection, run, warehouses, &mut took)?;
    }
    print(&selection, took);
    Ok(())
}

/// Processor time of the whole process, in milliseconds.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn transactions(worker: &mut dyn Worker, inputs: &mut Inputs, count: usize) -> Result<(), Box<dyn Error>> {
    for _ in 0..count.div_ceil(BATCH) {
        let batch: Vec<_> = std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
        worker.run(&batch, &mut |_, _| Ok(()))?;
    }
    Ok(())
}

/// Runs each query on a snapshot of its own and notes: which query, all its time, its planning.
fn queries(
    target: &Albireo,
    selection: &Selection,
    run: usize,
    warehouses: i16,
    took: &mut Vec<(usize, f64, f64)>,
) -> Result<(), Box<dyn Error>> {
    let warehouse = (run * 7 % warehouses as usize) as i16 + 1;
    let parameters = [warehouse, (run * 3 % 10) as i16 + 1];
    for (number, query) in selection.queries().iter().enumerate() {
        let begin = cpu_ms();
        let answer = target.snapshot()?.query(query, &parameters[..query.parameters])?;
        took.push((number, cpu_ms() - begin, answer.planning_ns as f64 / 1e6));
    }
    Ok(())
}

fn print(selection: &Selection, took: Vec<(usize, f64, f64)>) {
    println!("query     median      p90  planning");
    for (number, query) in selection.queries().iter().enumerate() {
        let of_query = || took.iter().filter(|t| t.0 == number);
        let sorted = |mut ms: Vec<f64>| {
            ms.sort_by(f64::total_cmp);
            ms
        };
        let all = sorted(of_query().map(|t| t.1).collect());
        let planning = sorted(of_query().map(|t| t.2).collect());
        if let (Some(median), Some(p90)) = (all.get(all.len() / 2), all.get(all.len() * 9 / 10)) {
            println!("{:<6} {median:9.2} {p90:8.2} {:9.2}", query.name, planning[planning.len() / 2]);
        }
    }
}
