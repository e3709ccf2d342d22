//! `albireo-sim`: runs simulations from the command line.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;

use albireo_env::{Clock, Seeds};
use albireo_sim::{Options, run, run_all};
use clap::Parser;

/// Runs databases in simulated worlds that crash, and holds them against a model.
#[derive(Parser, Debug)]
#[command(name = "albireo-sim", version)]
struct Arguments {
    /// Run one seed, twice, and compare the two runs.
    #[arg(long, conflicts_with_all = ["seeds", "minutes"])]
    seed: Option<u64>,
    /// Run these seeds.
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    seeds: Option<Range<u64>>,
    /// Run for so long; without --seeds, from a seed that nobody knows before.
    #[arg(long)]
    minutes: Option<f64>,
    /// Run so many seeds side by side [default: as many as there are cores].
    #[arg(long)]
    threads: Option<usize>,
    /// Print each event as it happens.
    #[arg(long)]
    verbose: bool,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write FROM..TO")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("\"{text}\": {error}"));
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options { verbose: arguments.verbose };
    let outcome = match arguments.seed {
        Some(seed) => one(seed, options),
        None => many(&arguments, options),
    };
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, options: Options) -> Result<String, String> {
    let first = run(seed, options).map_err(|failure| failure.to_string())?;
    let second = run(seed, Options::default()).map_err(|failure| failure.to_string())?;
    if first != second {
        return Err(format!("seed {seed} makes two runs: {first:?} and {second:?}"));
    }
    Ok(format!("seed {seed}: {first:?}"))
}

fn many(arguments: &Arguments, options: Options) -> Result<String, String> {
    let clock = Clock::real();
    let until = arguments.minutes.map(|minutes| (minutes * 60e9) as u64);
    let seeds = match (&arguments.seeds, until) {
        (Some(seeds), _) => seeds.clone(),
        (None, Some(_)) => Seeds::real().next_seed() >> 16..u64::MAX,
        (None, None) => 0..1_000,
    };
    let threads = arguments.threads.unwrap_or_else(albireo_env::cores).max(1);
    println!("seeds from {}, {threads} side by side", seeds.start);
    let in_time = |_: &_| until.is_none_or(|until| clock.now() < until);
    let totals = run_all(seeds, threads, options, in_time).map_err(|failure| failure.to_string())?;
    let seconds = clock.now() as f64 / 1e9;
    Ok(format!("{totals}\n{:.1} s, {:.1} runs a second", seconds, totals.runs as f64 / seconds))
}
