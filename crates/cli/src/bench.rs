//! Runs a benchmark and prints what it found.
//!
//! Responsible for: options, progress, the result's format, exit status. Not responsible for: what is
//! measured and how (`albireo_bench`).

use crate::args::{
    Bench, BenchArgs, CompactionArgs, CrossingArgs, LargerArgs, LayoutArg, LogArg, MixArg, OpenArgs,
    ProceduresArg, ReportFormat, StallArgs, TransactionsArg, VersionsArgs,
};
use crate::interrupt::{self, Interrupt};
use crate::shell::report;
use albireo_base::SqlError;
use albireo_bench::compaction::{self, CompactionConfig, Sizes};
use albireo_bench::config::{Config, ConfigError, Logging, Procedures, Workload};
use albireo_bench::crossing::{self, CrossingConfig};
use albireo_bench::driver::{self, Cancel, SystemUnderTest};
use albireo_bench::larger::{self, LargerConfig};
use albireo_bench::open::{self, OpenConfig};
use albireo_bench::progress::Bars;
use albireo_bench::recovery;
use albireo_bench::report::Report;
use albireo_bench::stall::{self, StallConfig};
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::Mix;
use albireo_bench::tpcc::schema::Layout;
use albireo_bench::versions::{self, VersionsConfig};
use albireo_env::Env;
use std::io::{self, Write};
use std::time::Duration;

/// The figures of a report.
macro_rules! figures {
    ($report:expr) => {{
        let report = $report;
        let (table, json) = (report.table(), report.json());
        Figures { table, json, error: report.error, interrupted: report.interrupted }
    }};
}

/// Exit status when the run failed or the data is inconsistent.
const FAILED: u8 = 1;
/// Exit status when the options make no sense together; also clap's.
const USAGE: u8 = 2;

/// Runs `bench` on what `open` makes for it; returns the exit status. Ctrl-C ends the run early, and
/// what has been measured is printed.
pub fn run<'a>(
    bench: &Bench,
    env: &Env,
    interrupt: &Interrupt,
    open: impl FnOnce(&Config, &Cancel) -> Result<Box<dyn SystemUnderTest + 'a>, SqlError>,
) -> u8 {
    let (args, workload) = match bench {
        Bench::Recovery(args) => return run_recovery(args, env, interrupt),
        Bench::Stall(args) => return run_stall(args, env, interrupt),
        Bench::Crossing(args) => return run_crossing(args, env, interrupt),
        Bench::Versions(args) => return run_versions(args, env, interrupt),
        Bench::Compaction(args) => return run_compaction(args, env, interrupt),
        Bench::LargerThanMemory(args) => return run_larger(args, env, interrupt),
        Bench::Open(args) => return run_open(args, env, interrupt),
        Bench::Tpcc(args) => (args, Workload::Tpcc),
        Bench::Ch(args) => {
            let streams = usize::from(args.query_streams);
            (&args.bench, Workload::Ch { queries: args.queries.clone(), streams })
        }
        Bench::Snapshot(args) => (args, Workload::Tpcc),
    };
    let config = config(args, workload);
    if let Err(error) = config.validate() {
        return failed(USAGE, &error.to_string());
    }
    let cancel = Cancel::default();
    let target = match open(&config, &cancel) {
        Ok(target) => target,
        Err(error) => return failed(FAILED, report::error(None, 1, "", &error).trim_end()),
    };
    let pressed = cancel.clone();
    let (target, clock, bars) = (target.as_ref(), &env.clock, Bars::default());
    let done = interrupt.during(Box::new(move || pressed.cancel()), || match bench {
        Bench::Snapshot(_) => {
            let report = driver::run_snapshots(&config, target, clock, &bars, &cancel)?;
            let text = match args.format {
                ReportFormat::Table => report.table(),
                ReportFormat::Json => report.json(),
            };
            Ok((text, report.run))
        }
        _ => {
            let report = driver::run(&config, target, clock, &bars, &cancel)?;
            let text = match args.format {
                ReportFormat::Table => report.table(),
                ReportFormat::Json => report.json(),
            };
            Ok((text, report))
        }
    });
    match done {
        Ok((text, report)) => print(&text, &report, &mut io::stdout().lock()),
        Err(error) => failed(USAGE, &ConfigError::to_string(&error)),
    }
}

/// Runs `bench recovery`, whose databases it makes itself.
fn run_recovery(args: &BenchArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let cancel = Cancel::default();
    let (config, pressed, bars) = (config(args, Workload::Tpcc), cancel.clone(), Bars::default());
    let done =
        interrupt.during(Box::new(move || pressed.cancel()), || recovery::run(&config, env, &bars, &cancel));
    let report = match done {
        Ok(report) => report,
        Err(error) => return failed(USAGE, &error.to_string()),
    };
    let text = match args.format {
        ReportFormat::Table => report.table(),
        ReportFormat::Json => report.json(),
    };
    print_figures(&text, report.error.as_deref(), report.interrupted)
}

/// Runs `bench stall`, whose database it makes itself.
fn run_stall(args: &StallArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let config = StallConfig {
        rows: args.rows,
        partitions: args.partitions,
        alone: Duration::from_millis(args.milliseconds.into()),
        only: args.only.clone(),
        turns: args.turns,
        new_memory: args.new_memory,
        directory: std::env::temp_dir(),
        database: args.memory.config(),
    };
    run_own(args.format, interrupt, |bars, cancel| figures!(stall::run(&config, env, bars, cancel)))
}

/// Runs `bench crossing`, whose databases it makes itself.
fn run_crossing(args: &CrossingArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let config = CrossingConfig {
        duration: Duration::from_millis(args.milliseconds.into()),
        database: args.memory.config(),
    };
    run_own(args.format, interrupt, |bars, cancel| figures!(crossing::run(&config, env, bars, cancel)))
}

/// Runs `bench open`, whose database it makes itself.
fn run_open(args: &OpenArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let config = OpenConfig {
        workload: Config {
            workload: Workload::Tpcc,
            warehouses: args.warehouses,
            scale: if args.small { Scale::SMALL } else { Scale::SPEC },
            database: args.memory.config(),
            ..Config::default()
        },
        turns: args.turns as usize,
        turn: Duration::from_millis(args.milliseconds.into()),
    };
    run_own(args.format, interrupt, |bars, cancel| figures!(open::run(&config, env, bars, cancel)))
}

/// Runs `bench versions`, whose database it makes itself.
fn run_versions(args: &VersionsArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let VersionsArgs { rows, transactions, .. } = *args;
    let config = VersionsConfig { rows, transactions, database: args.memory.config() };
    run_own(args.format, interrupt, |bars, cancel| figures!(versions::run(&config, env, bars, cancel)))
}

/// Runs `bench compaction`, whose databases it makes itself.
fn run_compaction(args: &CompactionArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let seconds = Duration::from_secs(args.seconds.into());
    let config = CompactionConfig {
        workload: Config {
            warehouses: args.warehouses,
            duration: if args.small { seconds / 20 } else { seconds },
            transactions: args.small.then_some(2_000),
            scale: if args.small { Scale::SMALL } else { Scale::SPEC },
            database: args.memory.config(),
            ..Config::default()
        },
        turns: args.turns as usize,
        sizes: match (args.small, args.paper_sizes) {
            (true, _) => Sizes::Few,
            (false, true) => Sizes::Paper,
            (false, false) => Sizes::Usual,
        },
        only: args.only.clone(),
    };
    run_own(args.format, interrupt, |bars, cancel| figures!(compaction::run(&config, env, bars, cancel)))
}

/// Runs `bench larger-than-memory`, whose databases it makes itself.
fn run_larger(args: &LargerArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let config = LargerConfig {
        workload: Config {
            warehouses: args.warehouses,
            scale: if args.small { Scale::SMALL } else { Scale::SPEC },
            database: args.memory.config(),
            ..Config::default()
        },
        rows_bytes: args.megabytes << 20,
        multiple: 4.0,
        turns: args.turns as usize,
        chunks: if args.small { 3 } else { 128 },
        transactions: if args.small { 4_000 } else { args.transactions },
        directory: args.directory.clone().unwrap_or_else(std::env::temp_dir),
        only: args.only.clone(),
    };
    run_own(args.format, interrupt, |bars, cancel| figures!(larger::run(&config, env, bars, cancel)))
}

/// What a benchmark has found.
struct Figures {
    table: String,
    json: String,
    error: Option<String>,
    interrupted: bool,
}

/// Runs a benchmark that makes its databases itself, and prints what it has found.
fn run_own(format: ReportFormat, interrupt: &Interrupt, run: impl FnOnce(&Bars, &Cancel) -> Figures) -> u8 {
    let cancel = Cancel::default();
    let (pressed, bars) = (cancel.clone(), Bars::default());
    let found = interrupt.during(Box::new(move || pressed.cancel()), || run(&bars, &cancel));
    let text = match format {
        ReportFormat::Table => found.table,
        ReportFormat::Json => found.json,
    };
    print_figures(&text, found.error.as_deref(), found.interrupted)
}

/// Prints figures; returns the exit status.
fn print_figures(text: &str, error: Option<&str>, interrupted: bool) -> u8 {
    if let Err(error) = writeln!(io::stdout().lock(), "{}", text.trim_end()) {
        return failed(FAILED, &format!("cannot write the result: {error}"));
    }
    match (error, interrupted) {
        (Some(error), _) => failed(FAILED, error),
        (None, true) => interrupt::EXIT_STATUS,
        (None, false) => 0,
    }
}

fn config(args: &BenchArgs, workload: Workload) -> Config {
    Config {
        workload,
        warehouses: args.warehouses,
        partitions: args.partitions,
        duration: Duration::from_secs(args.seconds.into()),
        transactions: match args.transactions {
            Some(TransactionsArg::Count(count)) => Some(count),
            Some(TransactionsArg::Interactive) | None => None,
        },
        layout: match args.layout {
            LayoutArg::Column => Layout::Column,
            LayoutArg::Row => Layout::Row,
            LayoutArg::Groups => Layout::Groups,
        },
        mix: match args.mix {
            MixArg::Spec => Mix::Spec,
            MixArg::Two => Mix::Two,
        },
        procedures: match args.procedures {
            _ if args.transactions == Some(TransactionsArg::Interactive) => Procedures::Statements,
            ProceduresArg::Native => Procedures::Native,
            ProceduresArg::Plpgsql => Procedures::PlPgSql,
            ProceduresArg::Interpreted => Procedures::Interpreted,
            ProceduresArg::Statements => Procedures::Statements,
        },
        logging: match args.log {
            LogArg::Off => Logging::Off,
            LogArg::Null => Logging::Null,
            LogArg::Async => Logging::Async,
            LogArg::Group => Logging::Group,
        },
        data: args.data.clone(),
        in_flight: args.in_flight as usize,
        seed: args.seed,
        scale: if args.small { Scale::SMALL } else { Scale::SPEC },
        database: args.memory.config(),
    }
}

/// Prints the report's text; returns the exit status.
fn print(text: &str, report: &Report, out: &mut impl Write) -> u8 {
    if let Err(error) = writeln!(out, "{}", text.trim_end()) {
        return failed(FAILED, &format!("cannot write the result: {error}"));
    }
    if let Some(error) = &report.error {
        return failed(FAILED, error);
    }
    match (report.passed(), report.interrupted) {
        (false, _) => failed(FAILED, "a consistency condition does not hold"),
        (true, true) => interrupt::EXIT_STATUS,
        (true, false) => 0,
    }
}

fn failed(status: u8, message: &str) -> u8 {
    eprintln!("albireo: {message}");
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn run_line(line: &str) -> (u8, Option<Config>) {
        let Command::Bench(bench) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("{line} is no benchmark")
        };
        let mut asked = None;
        let status = run(&bench, &Env::real(), &Interrupt::default(), |config, _| {
            asked = Some(config.clone());
            Err(SqlError::unsupported("a database in this test"))
        });
        (status, asked)
    }

    #[test]
    fn options_reach_the_benchmark() {
        let line =
            "albireo bench ch --warehouses 3 --partitions 2 --seconds 4 --layout row --mix two --seed 9";
        let (status, config) = run_line(line);
        let config = config.unwrap();
        assert_eq!(status, FAILED);
        assert_eq!((config.warehouses, config.partitions, config.seed), (3, 2, 9));
        assert_eq!((config.layout, config.mix), (Layout::Row, Mix::Two));
        assert_eq!(config.duration, Duration::from_secs(4));
        assert!(matches!(config.workload, Workload::Ch { streams: 1, .. }));
    }

    #[test]
    fn options_that_make_no_sense_together_are_a_usage_error_before_anything_is_made() {
        let (status, config) = run_line("albireo bench tpcc --warehouses 1 --partitions 2");
        assert_eq!(status, USAGE);
        assert!(config.is_none());
    }
}
