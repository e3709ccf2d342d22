//! What `albireo verify` found in the redo log.

use crate::log::time;
use crate::progress::megabytes;
use albireo::{LogCompleteness, LogFault, LogInspector, LogSummary, SqlError};
use albireo_env::Env;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Faults that are told one by one; the others are only counted.
const MOST_FAULTS: usize = 100;

/// What was found in the redo log.
pub struct LogReport {
    directory: String,
    summary: LogSummary,
    faults: Vec<LogFault>,
    /// All faults, those told and those not.
    count: u64,
}

impl LogReport {
    /// Reads the log in `path`.
    ///
    /// # Errors
    /// 58P01 if there is none, 58030 if the directory cannot be read.
    pub fn of(path: &Path, env: &Env) -> Result<Self, SqlError> {
        let mut inspector = LogInspector::open(path, env)?;
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
        for (file, reason) in &inspector.summary().control_faults {
            let (file, offset, record, is_last) = (file.clone(), None, None, false);
            faults.push(LogFault { file, offset, record, reason: reason.clone(), is_last });
            count += 1;
        }
        let directory = inspector.directory().display().to_string();
        Ok(Self { directory, summary: inspector.summary().clone(), faults, count })
    }

    /// What the log has.
    pub fn summary(&self) -> &LogSummary {
        &self.summary
    }

    /// How many faults there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A log that begins late, without an archive that has what was before.
    pub fn miss_beginning(&mut self) {
        let (first, record) = self.summary.begins;
        if first > 1 || record > 1 {
            let reason = format!(
                "the log begins with frame {first}, record {record}, and no archive has what was before it"
            );
            let (file, offset, record, is_last) = (self.directory.clone().into(), None, None, false);
            self.faults.push(LogFault { file, offset, record, reason, is_last });
            self.count += 1;
        }
    }

    /// Leaves out what is wrong with files that are known to be damaged.
    pub fn leave_out(&mut self, is_known: impl Fn(&Path) -> bool) {
        let before = self.faults.len();
        self.faults.retain(|fault| !is_known(&fault.file));
        self.count -= (before - self.faults.len()) as u64;
    }

    /// Says what there is.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let LogSummary { segments, frames, writes, rows, definitions, commands, untold, unknown, .. } =
            self.summary;
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
        if let Some(completeness) = &self.summary.completeness {
            let state = match completeness {
                LogCompleteness::Complete { .. } => completeness.to_string(),
                LogCompleteness::Unclosed { .. } => "open, or not closed cleanly".to_owned(),
                _ => "unknown".to_owned(),
            };
            line("state", state)?;
        }
        if untold > 0 {
            line("  untold", untold.to_string())?;
        }
        if unknown > 0 {
            line("  unknown", unknown.to_string())?;
        }
        if let Some((first_us, last_us)) = self.summary.times_us {
            line("times", format!("{} to {}", time(first_us), time(last_us)))?;
            line("partitions", self.summary.partitions.to_string())?;
        }
        Ok(())
    }

    /// Says what is wrong.
    pub fn print_faults(&self, out: &mut dyn Write) -> io::Result<()> {
        self.faults.iter().try_for_each(|fault| writeln!(out, "DAMAGED {fault}"))
    }

    /// What is no fault.
    pub fn notices(&self) -> Vec<String> {
        let unclosed = !matches!(self.summary.completeness, Some(LogCompleteness::Complete { .. }));
        let torn = self.summary.torn.as_ref().map(|torn| match unclosed {
            true => format!("{torn}, or it is being written just now"),
            false => {
                format!("{torn}; the database was closed cleanly before that, and nothing of it is missing")
            }
        });
        let unknown = self.summary.completeness.filter(|_| unclosed);
        let unknown = unknown.map(|completeness| match completeness {
            LogCompleteness::Unclosed { .. } => format!("the database is {completeness}"),
            _ => format!("the state of the redo log is {completeness}"),
        });
        let growing = "the log is being written; later records were not checked".to_owned();
        let stopped = "what follows the last fault could not be checked".to_owned();
        let untold = self.summary.untold;
        let untold = (untold > 0).then(|| {
            format!(
                "{untold} records are older than the oldest archive, and of tables that have changed since: only \
                 their checksums were looked at"
            )
        });
        let is_stopped = self.faults.iter().any(|fault| fault.is_last);
        let growing = self.summary.is_growing.then_some(growing);
        torn.into_iter()
            .chain(unknown)
            .chain(growing)
            .chain(untold)
            .chain(is_stopped.then_some(stopped))
            .collect()
    }

    /// All of it for programs.
    pub fn json(&self) -> Value {
        let LogSummary { segments, segment_bytes, frames, frame_bytes, ordinals, partitions, .. } =
            self.summary;
        let LogSummary { writes, rows, definitions, commands, untold, unknown, sequences, .. } = self.summary;
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
            "untold": untold, "unknown": unknown, "first_frame": sequences.0, "last_frame": sequences.1,
            "state": self.summary.completeness.map(|completeness| completeness.to_string()), "first_time": times.0, "last_time": times.1, "notices": self.notices(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(), "fault_count": self.count,
        })
    }
}
