//! `albireo restore`: makes a database of a backup.
//!
//! Responsible for: Ctrl-C, saying how far it is, the result, the exit status. Not responsible for: what is
//! looked at, and copying ([`albireo::restore`]).

use crate::archive::say;
use crate::args::{ReportFormat, RestoreArgs};
use crate::backup::{ended, interruptible, show};
use crate::interrupt::Interrupt;
use crate::log::time;
use crate::progress::{Progress, megabytes, rate};
use crate::settings;
use crate::until;
use albireo::{BackupOptions, RestoreOptions, RestoreReport, SqlError};
use albireo_env::Env;
use serde_json::json;

/// Restores; returns the exit status.
pub fn run(args: &RestoreArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    if let Some(until) = args.until {
        return until::run(args, until, env, interrupt);
    }
    match restore(args, env, interrupt) {
        Ok(report) => print(args, &report),
        Err(error) => ended(&error),
    }
}

fn restore(args: &RestoreArgs, env: &Env, interrupt: &Interrupt) -> Result<RestoreReport, SqlError> {
    // Its files of rows that leave memory stay until this returns.
    let settings = settings::of(&args.database, env, interrupt)?;
    let mut progress = Progress::new(&env.clock);
    interruptible(interrupt, |cancel| {
        let bytes_per_second = args.limit_rate.map(|rate| rate.0);
        let copy = BackupOptions { bytes_per_second, cancel, ..BackupOptions::default() };
        let options = RestoreOptions {
            copy,
            opens: !args.no_open,
            config: settings.config.clone(),
            ..RestoreOptions::default()
        };
        albireo::restore(&args.backup, &args.directory, &options, env, |at| show(&mut progress, at))
    })
}

fn print(args: &RestoreArgs, report: &RestoreReport) -> u8 {
    let RestoreReport { manifest, recovery, copy_ns, open_ns } = report;
    let directory = args.directory.display();
    let text = match args.format {
        ReportFormat::Table => {
            let opened = match recovery {
                Some(_) => format!("opened in {:.1} s: all is there", *open_ns as f64 / 1e9),
                None => "not opened".to_owned(),
            };
            format!(
                "restored to {directory}: {} rows and {} records of the log behind them, as of {}; {} in {} files, in \
                 {}; {opened}",
                manifest.rows,
                manifest.records,
                time(manifest.time_us),
                megabytes(manifest.bytes()),
                manifest.files.len(),
                rate(manifest.bytes(), *copy_ns)
            )
        }
        ReportFormat::Json => {
            let object = json!({
                "directory": directory.to_string(), "archive": manifest.archive, "rows": manifest.rows,
                "records": manifest.records, "time": time(manifest.time_us), "files": manifest.files.len(),
                "bytes": manifest.bytes(), "partitions": manifest.partitions,
                "seconds": *copy_ns as f64 / 1e9, "opened": recovery.is_some(),
                "open_seconds": *open_ns as f64 / 1e9,
            });
            format!("{object:#}")
        }
    };
    say(&text)
}
