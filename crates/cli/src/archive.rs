//! `albireo archive`: writes an archive of a database that nobody has open.
//!
//! Responsible for: opening it, saying how far it is, the result, the exit status. Not responsible for:
//! writing archives ([`Database::checkpoint_with`](albireo::Database::checkpoint_with)).

use crate::args::{ArchiveArgs, ReportFormat};
use crate::embedded::Embedded;
use crate::interrupt::Interrupt;
use crate::log::time;
use crate::progress::{Progress, megabytes, rate};
use crate::settings::{self, Settings};
use crate::shell::report;
use albireo::{ArchiveReport, CheckpointOptions, DirectoryKind, SqlError, SqlState, gone_text};
use albireo_env::Env;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// Exit status when there is no archive.
const FAILED: u8 = 1;

/// Writes the archive; returns the exit status.
pub fn run(args: &ArchiveArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    match write(args, env, interrupt) {
        Ok(report) => print(args, &report),
        Err(error) => complain(&error),
    }
}

/// Says why there is no result.
pub fn complain(error: &SqlError) -> u8 {
    eprint!("albireo: {}", report::error(None, 1, "", error));
    FAILED
}

/// Opens a database that is there, for a tool; `instead` says what to do in a process that has it open.
///
/// # Errors
/// 58P01 or 55000 if it is none, and those of opening.
pub fn open(directory: &Path, settings: Settings, env: &Env, instead: &str) -> Result<Embedded, SqlError> {
    // Opening would make an empty one, in the wrong place perhaps.
    let kind = DirectoryKind::of(directory, env)?;
    if kind != DirectoryKind::Database {
        return Err(kind.refusal(directory, "an Albireo database"));
    }
    match Embedded::open(None, Some(directory), settings, env) {
        Ok(embedded) => {
            embedded.recovered().iter().for_each(|line| eprintln!("{line}"));
            Ok(embedded)
        }
        Err(error) if error.state() == SqlState::OBJECT_IN_USE => Err(error.with_hint(instead)),
        Err(error) => Err(error),
    }
}

fn write(args: &ArchiveArgs, env: &Env, interrupt: &Interrupt) -> Result<ArchiveReport, SqlError> {
    let instead = "Run CHECKPOINT in the process that has it open, or close it there.";
    let settings = settings::of(&args.database, env, interrupt)?;
    let embedded = open(&args.directory, settings, env, instead)?;
    let mut progress = Progress::new(&env.clock);
    let options =
        CheckpointOptions { bytes_per_second: args.limit_rate.map(|rate| rate.0), keep: args.keep.get() };
    embedded.database().checkpoint_with(&options, |at| {
        progress.show("writing the archive", at.bytes_written + at.bytes_reused, at.bytes_total_estimate());
    })
}

fn print(args: &ArchiveArgs, report: &ArchiveReport) -> u8 {
    let ArchiveReport { number, rows, files_written, files_reused, bytes_written, bytes_reused, .. } =
        *report;
    let ArchiveReport { duration_ns, gone, .. } = *report;
    let text = match args.format {
        ReportFormat::Table => format!(
            "archive {number} of {}: {rows} rows, {files_written} files with {} written, {files_reused} with {} of \
             older archives used again, in {}{}",
            args.directory.display(),
            megabytes(bytes_written),
            megabytes(bytes_reused),
            rate(bytes_written, duration_ns),
            gone.map_or_else(String::new, |gone| format!("\n{}", gone_text(&gone)))
        ),
        ReportFormat::Json => {
            let object = json!({
                "archive": number, "directory": args.directory.display().to_string(), "rows": rows,
                "files_written": files_written, "files_reused": files_reused, "bytes_written": bytes_written,
                "bytes_reused": bytes_reused, "seconds": duration_ns as f64 / 1e9,
                "restore_points_gone": gone.map(|gone| json!({
                    "from_record": gone.from.record, "from_time": time(gone.from.time_us),
                    "until_record": gone.until.record, "until_time": time(gone.until.time_us),
                })),
            });
            format!("{object:#}")
        }
    };
    say(&text)
}

/// Prints a result; returns the exit status.
pub fn say(text: &str) -> u8 {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => 0,
        // What was to be done is done.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("albireo: cannot write: {error}");
            FAILED
        }
    }
}
