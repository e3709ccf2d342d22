//! `albireo verify`: checks the files of a database without opening it.
//!
//! Responsible for: what is checked (the redo log), the summary, the exit status. Not responsible for:
//! reading files and understanding records ([`LogInspector`]).
//!
//! Each kind of files is one part of the report, which has its counts and its faults.

use crate::args::{ReportFormat, VerifyArgs};
use crate::log::time;
use crate::shell::report;
use albireo::{LogFault, LogInspector, LogSummary, SqlError};
use albireo_env::Env;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Exit status when something is damaged or cannot be read.
const DAMAGED: u8 = 1;

/// Faults that are told one by one; the others are only counted.
const MOST_FAULTS: usize = 100;

/// Checks what `args` names; returns the exit status.
pub fn run(args: &VerifyArgs, env: &Env) -> u8 {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    match check(args, env, &mut out, &mut err) {
        Ok(status) => status,
        // Nobody reads on, and whether all is sound is not known to them.
        Err(error) => {
            let _ = writeln!(err, "albireo: cannot write: {error}");
            DAMAGED
        }
    }
}

/// As [`run`], with the report to `out` and what prevents one to `err`.
pub fn check(args: &VerifyArgs, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let log = match LogReport::of(args, env) {
        Ok(log) => log,
        Err(error) => {
            write!(err, "albireo: {}", report::error(None, 1, "", &error))?;
            return Ok(DAMAGED);
        }
    };
    match args.format {
        ReportFormat::Table => log.print(out)?,
        ReportFormat::Json => writeln!(out, "{:#}", json!({ "sound": log.is_sound(), "log": log.json() }))?,
    }
    Ok(if log.is_sound() { 0 } else { DAMAGED })
}

/// What was found in the redo log.
struct LogReport {
    directory: String,
    summary: LogSummary,
    faults: Vec<LogFault>,
    /// All faults, those told and those not.
    count: u64,
}

impl LogReport {
    fn of(args: &VerifyArgs, env: &Env) -> Result<Self, SqlError> {
        let mut inspector = LogInspector::open(&args.path, env)?;
        let (mut faults, mut count) = (Vec::new(), 0);
        inspector.visit(&mut |entry| {
            if let Err(fault) = entry {
                count += 1;
                // What ended reading is told in any case.
                if faults.len() < MOST_FAULTS || fault.is_last {
                    faults.push(fault);
                }
            }
            ControlFlow::Continue(())
        });
        let directory = inspector.directory().display().to_string();
        Ok(Self { directory, summary: inspector.summary().clone(), faults, count })
    }

    fn is_sound(&self) -> bool {
        self.count == 0
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let LogSummary { segments, frames, writes, rows, definitions, commands, unknown, .. } = self.summary;
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        writeln!(out, "redo log in {}", self.directory)?;
        let mut line = |name: &str, value: String| writeln!(out, "  {name:<12} {value}");
        line("segments", format!("{segments}, {}", megabytes(self.summary.segment_bytes)))?;
        line("frames", format!("{frames}, {}", megabytes(self.summary.frame_bytes)))?;
        let (first, last) = self.summary.ordinals;
        let numbers = if last > 0 { format!(", {first} to {last}") } else { String::new() };
        line("records", format!("{}{numbers}", self.summary.records()))?;
        line("  write", format!("{writes} with {rows} rows"))?;
        line("  definition", definitions.to_string())?;
        line("  command", commands.to_string())?;
        if unknown > 0 {
            line("  unknown", unknown.to_string())?;
        }
        if let Some((first_us, last_us)) = self.summary.times_us {
            line("times", format!("{} to {}", time(first_us), time(last_us)))?;
            line("partitions", self.summary.partitions.to_string())?;
        }
        for notice in self.notices() {
            writeln!(out, "notice: {notice}")?;
        }
        for fault in &self.faults {
            writeln!(out, "DAMAGED {fault}")?;
        }
        match self.count {
            0 => writeln!(out, "sound"),
            1 => writeln!(out, "1 fault"),
            count => writeln!(out, "{count} faults"),
        }
    }

    /// What is no fault.
    fn notices(&self) -> Vec<String> {
        let torn = self.summary.torn.as_ref().map(|torn| format!("{torn}, or it is being written just now"));
        let growing = "the log is being written; what came meanwhile was not checked".to_owned();
        let stopped = "what follows the last fault could not be checked".to_owned();
        let is_stopped = self.faults.iter().any(|fault| fault.is_last);
        let growing = self.summary.is_growing.then_some(growing);
        torn.into_iter().chain(growing).chain(is_stopped.then_some(stopped)).collect()
    }

    fn json(&self) -> Value {
        let LogSummary { segments, segment_bytes, frames, frame_bytes, ordinals, partitions, .. } =
            self.summary;
        let LogSummary { writes, rows, definitions, commands, unknown, .. } = self.summary;
        let fault = |fault: &LogFault| {
            json!({
                "file": fault.file.display().to_string(), "offset": fault.offset, "record": fault.record,
                "reason": fault.reason,
            })
        };
        let times = self.summary.times_us.map(|(first, last)| (time(first), time(last))).unzip();
        json!({
            "directory": self.directory, "segments": segments, "segment_bytes": segment_bytes,
            "frames": frames, "frame_bytes": frame_bytes, "partitions": partitions,
            "records": self.summary.records(), "first_record": ordinals.0, "last_record": ordinals.1,
            "writes": writes, "rows": rows, "definitions": definitions, "commands": commands,
            "unknown": unknown, "first_time": times.0, "last_time": times.1, "notices": self.notices(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(), "fault_count": self.count,
        })
    }
}
