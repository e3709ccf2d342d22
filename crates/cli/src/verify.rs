//! `albireo verify`: checks the files of a database, or of a backup, without opening it.
//!
//! Responsible for: what is checked, the report, the exit status. Not responsible for: reading files and
//! understanding what is in them ([`LogInspector`](albireo::LogInspector), [`ArchiveInspector`], [`Backup`]).
//!
//! Each kind of files is one part of the report, which has its counts and its faults: the redo log, the
//! archives, and of a backup the files that it should have.

mod log;
#[cfg(test)]
mod tests;

use crate::args::{ReportFormat, VerifyArgs};
use crate::log::time;
use crate::progress::{Progress, megabytes};
use crate::shell::report;
use albireo::{
    ArchiveCheck, ArchiveInspector, Backup, BackupFault, DirectoryKind, LogCompleteness, LogSummary, SqlError,
};
use albireo_env::Env;
use log::LogReport;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Exit status when something is damaged or cannot be read.
const DAMAGED: u8 = 1;

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
    let report = match Report::of(&args.path, env) {
        Ok(report) => report,
        Err(error) => {
            write!(err, "albireo: {}", report::error(None, 1, "", &error))?;
            return Ok(DAMAGED);
        }
    };
    match args.format {
        ReportFormat::Table => report.print(out)?,
        ReportFormat::Json => writeln!(out, "{:#}", report.json())?,
    }
    Ok(if report.count() == 0 { 0 } else { DAMAGED })
}

/// All that was found.
struct Report {
    /// What the path is, in words.
    kind: &'static str,
    path: String,
    backup: Option<BackupPart>,
    log: LogReport,
    /// `None`: the path is not the directory of a database.
    archives: Option<ArchivesPart>,
}

/// What was found of a backup as such.
struct BackupPart {
    backup: Backup,
    faults: Vec<BackupFault>,
}

/// What was found in archives.
struct ArchivesPart {
    directory: String,
    /// Newest first.
    checks: Vec<ArchiveCheck>,
    incomplete: Vec<u64>,
}

impl Report {
    fn of(path: &Path, env: &Env) -> Result<Self, SqlError> {
        let kind = DirectoryKind::of(path, env)?;
        let (word, backup) = match &kind {
            DirectoryKind::Database => ("database", None),
            DirectoryKind::Log(_) => ("redo log", None),
            DirectoryKind::Backup | DirectoryKind::UnfinishedBackup | DirectoryKind::File => {
                ("backup", Some(BackupPart::of(path, env)?))
            }
            other => return Err(other.refusal(path, "an Albireo database, a backup, or a redo log")),
        };
        let env = backup.as_ref().map_or(env, |part| part.backup.env());
        // Before the log: it had come to their places then.
        let inspector = ArchiveInspector::open(path, env)?;
        let mut log = LogReport::of(path, env)?;
        if inspector.as_ref().is_some_and(ArchiveInspector::is_empty) {
            log.miss_beginning();
        }
        let mut archives = inspector.map(|inspector| ArchivesPart::of(&inspector, Some(log.summary())));
        if let Some(part) = &backup {
            // Each fault once.
            let is_known = |file: &Path| part.faults.iter().any(|fault| fault.file == file);
            log.leave_out(is_known);
            let checks = archives.iter_mut().flat_map(|part| &mut part.checks);
            checks.for_each(|check| check.faults.retain(|fault| !is_known(&fault.file)));
        }
        Ok(Self { kind: word, path: path.display().to_string(), backup, log, archives })
    }

    fn checks(&self) -> &[ArchiveCheck] {
        self.archives.as_ref().map_or(&[], |part| &part.checks)
    }

    /// How many faults there are.
    fn count(&self) -> u64 {
        let backup = self.backup.as_ref().map_or(0, |part| part.faults.len());
        let archives: usize = self.checks().iter().map(|check| check.faults.len()).sum();
        (backup + archives) as u64 + self.log.count()
    }

    /// Whether nothing can be missing of which nobody knows.
    fn is_known(&self) -> bool {
        matches!(self.log.summary().completeness, None | Some(LogCompleteness::Complete { .. }))
    }

    /// Bytes and rows that were looked at.
    fn totals(&self) -> (u64, u64) {
        let log = (self.log.summary().frame_bytes, self.log.summary().rows);
        let archives = self.checks().iter().map(|check| (check.bytes, check.rows));
        archives.fold(log, |(bytes, rows), (more_bytes, more_rows)| (bytes + more_bytes, rows + more_rows))
    }

    /// What is no fault.
    fn notices(&self) -> Vec<String> {
        let mut notices = self.log.notices();
        let incomplete = self.archives.iter().flat_map(|part| &part.incomplete);
        let why =
            "it is being written just now, an open database has evicted rows in it, or it is not needed";
        notices.extend(incomplete.map(|number| format!("archive {number} is not complete: {why}")));
        notices
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.backup {
            Some(part) => part.print(out)?,
            None => writeln!(out, "{} in {}", self.kind, self.path)?,
        }
        self.log.print(out)?;
        self.archives.iter().try_for_each(|part| part.print(out))?;
        for notice in self.notices() {
            writeln!(out, "notice: {notice}")?;
        }
        for fault in self.backup.iter().flat_map(|part| &part.faults) {
            writeln!(out, "DAMAGED {fault}")?;
        }
        self.log.print_faults(out)?;
        for fault in self.checks().iter().flat_map(|check| &check.faults) {
            writeln!(out, "DAMAGED {fault}")?;
        }
        let (bytes, rows) = self.totals();
        writeln!(out, "checked {} with {rows} rows", megabytes(bytes))?;
        match self.count() {
            0 if self.is_known() => writeln!(out, "sound"),
            0 => writeln!(out, "sound, as far as can be known"),
            1 => writeln!(out, "1 fault"),
            count => writeln!(out, "{count} faults"),
        }
    }

    fn json(&self) -> Value {
        let (bytes, rows) = self.totals();
        json!({
            "kind": self.kind, "sound": self.count() == 0, "known_complete": self.count() == 0 && self.is_known(),
            "fault_count": self.count(), "bytes": bytes, "rows": rows,
            "notices": self.notices(),
            "log": self.log.json(),
            "archives": self.checks().iter().map(archive_json).collect::<Vec<_>>(),
            "backup": self.backup.as_ref().map(BackupPart::json),
        })
    }
}

impl BackupPart {
    fn of(path: &Path, env: &Env) -> Result<Self, SqlError> {
        let backup = Backup::open(path, env)?;
        let mut progress = Progress::new(&env.clock);
        let faults = backup.check(|at| progress.show("checking the backup", at.bytes_done, at.bytes_total));
        Ok(Self { backup, faults })
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let manifest = self.backup.manifest();
        writeln!(
            out,
            "backup in {}\n  state of     {}, by version {}\n  files        {}, {}: {}",
            self.backup.path().display(),
            time(manifest.time_us),
            manifest.program,
            manifest.files.len(),
            megabytes(manifest.bytes()),
            verdict(self.faults.len())
        )
    }

    fn json(&self) -> Value {
        let manifest = self.backup.manifest();
        let fault = |fault: &BackupFault| fault_json(&fault.file, &fault.reason);
        json!({
            "path": self.backup.path().display().to_string(), "time": time(manifest.time_us),
            "program": manifest.program, "archive": manifest.archive, "rows": manifest.rows,
            "records": manifest.records, "files": manifest.files.len(), "bytes": manifest.bytes(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
        })
    }
}

impl ArchivesPart {
    fn of(inspector: &ArchiveInspector, log: Option<&LogSummary>) -> Self {
        Self {
            directory: inspector.directory().display().to_string(),
            checks: inspector.check(log),
            incomplete: inspector.incomplete().to_vec(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.checks.is_empty() {
            return writeln!(out, "no archives in {}", self.directory);
        }
        writeln!(out, "archives in {}", self.directory)?;
        for check in &self.checks {
            let ArchiveCheck { number, tables, rows, files, bytes, frame, .. } = check;
            let verdict = verdict(check.faults.len());
            match check.time_us {
                Some(time_us) => writeln!(
                    out,
                    "  archive {number}: {}, {tables} tables, {rows} rows, {files} files, {}, the log up to frame {frame}: \
                     {verdict}",
                    time(time_us),
                    megabytes(*bytes)
                )?,
                None => writeln!(out, "  archive {number}: cannot be used: {verdict}")?,
            }
        }
        Ok(())
    }
}

fn verdict(faults: usize) -> String {
    match faults {
        0 => "sound".to_owned(),
        1 => "1 fault".to_owned(),
        count => format!("{count} faults"),
    }
}

fn archive_json(check: &ArchiveCheck) -> Value {
    let ArchiveCheck { number, time_us, tables, rows, files, bytes, frame, faults } = check;
    let faults: Vec<Value> = faults.iter().map(|fault| fault_json(&fault.file, &fault.reason)).collect();
    json!({
        "number": number, "time": time_us.map(time), "tables": tables, "rows": rows, "files": files, "bytes": bytes,
        "frame": frame, "faults": faults,
    })
}

fn fault_json(file: &Path, reason: &str) -> Value {
    json!({ "file": file.display().to_string(), "reason": reason })
}
