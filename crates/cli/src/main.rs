//! The `albireo` program: the shell and the benchmarks.
//!
//! Responsible for: the command line, the terminal, Ctrl-C, exit status. Not responsible for:
//! executing SQL (`engine`), what benchmarks do (`bench`).
//!
//! **Invariant:** nothing here knows how data is stored; the shell sees a database through
//! [`sql::Sql`] only.
#![forbid(unsafe_code)]

mod args;
mod bench;
#[allow(dead_code, reason = "the engine's adapter, which calls it, comes with the engine")]
mod catalog;
mod interrupt;
mod output;
mod shell;
#[allow(dead_code, reason = "the engine's adapter, which makes these, comes with the engine")]
mod sql;

use albireo_base::SqlError;
use albireo_bench::config::Config;
use albireo_bench::driver::Target;
use albireo_env::Env;
use args::{Cli, Command, ShellArgs};
use clap::Parser;
use interrupt::Interrupt;
use sql::Sql;
use std::process::ExitCode;

/// Queries allocate and free batches on several threads at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let env = Env::real();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return failure(&format!("cannot listen for Ctrl-C: {error}")),
    };
    match cli.command {
        Command::Bench(args) => ExitCode::from(bench::run(&args, &env, &interrupt, open_target)),
        Command::Shell(args) => match open(&args) {
            Ok(sql) => ExitCode::from(shell::run(&args, sql.as_ref(), &env, &interrupt)),
            Err(error) => failure(&error.to_string()),
        },
    }
}

fn failure(message: &str) -> ExitCode {
    eprintln!("albireo: {message}");
    ExitCode::FAILURE
}

/// The database that a benchmark measures.
fn open_target(_config: &Config) -> Result<Box<dyn Target>, SqlError> {
    Err(SqlError::unsupported("a benchmark without an engine"))
}

/// The database that the shell works on.
fn open(_args: &ShellArgs) -> Result<Box<dyn Sql>, SqlError> {
    Err(SqlError::unsupported("the shell without an engine"))
}
