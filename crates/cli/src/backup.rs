//! `albireo backup`: copies a database that nobody has open.
//!
//! Responsible for: opening it, Ctrl-C, saying how far it is, the result, the exit status. Not responsible
//! for: taking backups ([`Database::backup`](albireo::Database::backup)).

use crate::archive::{complain, open, say};
use crate::args::{BackupArgs, ReportFormat};
use crate::interrupt::{EXIT_STATUS, Interrupt};
use crate::log::time;
use crate::progress::{Progress, megabytes, rate};
use crate::settings;
use albireo::{BackupOptions, BackupProgress, BackupReport, BackupStep, SqlError, SqlState};
use albireo_env::Env;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes the backup; returns the exit status.
pub fn run(args: &BackupArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    match take(args, env, interrupt) {
        Ok(report) => print(args, &report),
        Err(error) => ended(&error),
    }
}

/// Says why there is no result; the exit status.
pub fn ended(error: &SqlError) -> u8 {
    let status = complain(error);
    if error.state() == SqlState::QUERY_CANCELED { EXIT_STATUS } else { status }
}

/// Shows how far copying is.
pub fn show(progress: &mut Progress, at: BackupProgress) {
    let what = match at.step {
        BackupStep::Archive => "writing an archive",
        BackupStep::Check => "checking",
        BackupStep::Copy => "copying",
    };
    progress.show(what, at.bytes_done, at.bytes_total);
}

/// Runs `work` with a flag that Ctrl-C sets.
pub fn interruptible<T>(interrupt: &Interrupt, work: impl FnOnce(Arc<AtomicBool>) -> T) -> T {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    interrupt.during(Box::new(move || flag.store(true, Ordering::Relaxed)), || work(cancel))
}

fn take(args: &BackupArgs, env: &Env, interrupt: &Interrupt) -> Result<BackupReport, SqlError> {
    let instead = format!(
        "Run BACKUP TO '{}' in the process that has it open, or close it there.",
        args.target.display().to_string().replace('\'', "''")
    );
    let settings = settings::of(&args.database, env, interrupt)?;
    let embedded = open(&args.directory, settings, env, &instead)?;
    let mut progress = Progress::new(&env.clock);
    interruptible(interrupt, |cancel| {
        let bytes_per_second = args.limit_rate.map(|rate| rate.0);
        let options = BackupOptions { bytes_per_second, links: args.link, cancel };
        embedded.database().backup(&args.target, &options, |at| show(&mut progress, at))
    })
}

fn print(args: &BackupArgs, report: &BackupReport) -> u8 {
    let BackupReport { archive, rows, records, time_us, files, files_linked, bytes, duration_ns } = *report;
    let target = args.target.display();
    let text = match args.format {
        ReportFormat::Table => {
            let linked = match files_linked {
                0 => String::new(),
                count => format!(", {count} of them second names of the database's"),
            };
            format!(
                "backup in {target}: archive {archive} with {rows} rows, {records} records of the log after it, as of \
                 {}; {} in {files} files{linked}, in {}",
                time(time_us),
                megabytes(bytes),
                rate(bytes, duration_ns)
            )
        }
        ReportFormat::Json => {
            let object = json!({
                "backup": target.to_string(), "archive": archive, "rows": rows, "records": records,
                "time": time(time_us), "files": files, "files_linked": files_linked, "bytes": bytes,
                "seconds": duration_ns as f64 / 1e9,
            });
            format!("{object:#}")
        }
    };
    say(&text)
}
