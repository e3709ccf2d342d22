//! The `albireo` program: the shell, tests of procedures, the files of a database and the benchmarks.
//!
//! Responsible for: the command line, the terminal, Ctrl-C, exit status. Not responsible for:
//! executing SQL (`engine`), what benchmarks do (`bench`).
//!
//! **Invariant:** nothing here knows how data is stored; the shell sees a database through
//! [`sql::Sql`] only.
#![forbid(unsafe_code)]

/// As the standard library's, but without a panic where standard error is closed: whoever cannot be told need not be.
macro_rules! eprint {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($argument)*);
    }};
}

/// As [`eprint!`].
macro_rules! eprintln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

mod archive;
mod args;
mod backup;
mod bench;
mod catalog;
mod crash;
mod embedded;
mod interrupt;
mod log;
mod output;
mod progress;
mod recovering;
mod restore;
mod settings;
mod shell;
mod sql;
mod testing;
mod until;
mod verify;

use albireo_allocator::Allocator;
use albireo_base::SqlError;
use albireo_bench::config::Config;
use albireo_bench::driver::{Cancel, SystemUnderTest};
use albireo_bench::target::Albireo;
use albireo_env::Env;
use args::{Cli, Command, ShellArgs};
use embedded::Embedded;
use interrupt::Interrupt;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {};

fn main() -> ExitCode {
    crash::install();
    crash::guard(run)
}

fn run() -> ExitCode {
    let cli = Cli::of_process();
    let env = Env::real();
    if let Err(error) = albireo_allocator::give_back_aside() {
        eprintln!("albireo: free memory goes back to the system later: {error}");
    }
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return failure(&format!("cannot listen for Ctrl-C: {error}")),
    };
    match cli.command {
        Command::Bench(args) => {
            let open = |config: &Config, cancel: &Cancel| -> Result<Box<dyn SystemUnderTest>, SqlError> {
                Ok(Box::new(Albireo::open(config, &env, cancel)?))
            };
            ExitCode::from(bench::run(&args, &env, &interrupt, open))
        }
        Command::Shell(args) => match open(&args, &env, &interrupt) {
            Ok(sql) => {
                sql.recovered().iter().for_each(|line| eprintln!("{line}"));
                if let Some(spill) = sql.database().spill_files() {
                    interrupt.at_exit(move || spill.remove());
                }
                ExitCode::from(shell::run(&args, &sql, &env, &interrupt))
            }
            Err(error) => failure(&shell::report::error(None, 1, "", &error)),
        },
        Command::Log(args) => ExitCode::from(log::run(&args, &env)),
        Command::Verify(args) => ExitCode::from(verify::run(&args, &env)),
        Command::Archive(args) => ExitCode::from(archive::run(&args, &env, &interrupt)),
        Command::Backup(args) => ExitCode::from(backup::run(&args, &env, &interrupt)),
        Command::Restore(args) => ExitCode::from(restore::run(&args, &env, &interrupt)),
        Command::Test(args) => ExitCode::from(testing::run(&args, &env, &interrupt)),
    }
}

/// Opens the shell's database.
fn open(args: &ShellArgs, env: &Env, interrupt: &Interrupt) -> Result<Embedded, SqlError> {
    let settings = settings::of(&args.database, env, interrupt)?;
    Embedded::open(args.partitions, args.data.as_deref(), settings, env)
}

fn failure(message: &str) -> ExitCode {
    eprintln!("albireo: {}", message.trim_end());
    ExitCode::FAILURE
}
