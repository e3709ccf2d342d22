//! `albireo log`: prints the records of a redo log, a line for each change.
//!
//! Responsible for: which records are wanted, the form of lines, the exit status. Not responsible for:
//! reading the log and understanding its records ([`LogInspector`]).

pub mod line;

use crate::args::{LogArgs, Moment};
use crate::shell::report;
use albireo::{Backup, LogCompleteness, LogContent, LogEntry, LogFault, LogInspector, SqlError};
use albireo_env::Env;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use line::Lines;
pub use line::time;

/// Exit status when the log is damaged or cannot be read.
const FAILED: u8 = 1;

/// Prints the log; returns the exit status.
pub fn run(args: &LogArgs, env: &Env) -> u8 {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut err = io::stderr().lock();
    let status = print(args, env, &mut out, &mut err).and_then(|status| out.flush().map(|()| status));
    match status {
        Ok(status) => status,
        // Whoever reads has read enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(err, "albireo: cannot write: {error}");
            FAILED
        }
    }
}

/// Prints the log to `out`, and what is to be said of it to `err`; returns the exit status.
pub fn print(args: &LogArgs, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let mut inspector = match open(&args.path, env) {
        Ok(inspector) => inspector,
        Err(error) => {
            write!(err, "albireo: {}", report::error(None, 1, "", &error))?;
            return Ok(FAILED);
        }
    };
    let rows = if args.all { u64::MAX } else { args.rows };
    let lines = Lines { format: args.format, table: args.table.as_deref(), rows };
    let mut printer = Printer { args, lines, out, err, printed: 0, status: 0 };
    let mut result = Ok(());
    inspector.visit(&mut |entry| match printer.visit(entry) {
        Ok(flow) => flow,
        Err(error) => {
            result = Err(error);
            ControlFlow::Break(())
        }
    });
    result?;
    let (status, summary) = (printer.status, inspector.summary());
    if let Some(torn) = &summary.torn {
        let rest = match summary.completeness {
            Some(LogCompleteness::Complete { .. }) => "",
            _ => ", or it is being written just now",
        };
        writeln!(err, "albireo: {torn}{rest}")?;
    }
    if summary.is_growing {
        writeln!(err, "albireo: the log is being written; later records were left out")?;
    }
    Ok(status)
}

/// The log of a database or of a backup.
fn open(path: &Path, env: &Env) -> Result<LogInspector, SqlError> {
    match Backup::is_at(path, env) {
        true => Backup::open(path, env).and_then(|backup| LogInspector::open(path, backup.env())),
        false => LogInspector::open(path, env),
    }
}

struct Printer<'a> {
    args: &'a LogArgs,
    lines: Lines<'a>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    printed: u64,
    status: u8,
}

impl Printer<'_> {
    fn visit(&mut self, entry: Result<LogEntry<'_>, LogFault>) -> io::Result<ControlFlow<()>> {
        if self.args.limit == Some(self.printed) {
            return Ok(ControlFlow::Break(()));
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(fault) => return self.complain(&fault),
        };
        if let Some(Moment::Record(last)) = self.args.until
            && entry.ordinal > last
        {
            return Ok(ControlFlow::Break(()));
        }
        if !self.wants(&entry) {
            return Ok(ControlFlow::Continue(()));
        }
        self.lines.print(&entry, self.out)?;
        self.printed += 1;
        Ok(match self.args.limit == Some(self.printed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    /// Says what is wrong; what came before is out by then.
    fn complain(&mut self, fault: &LogFault) -> io::Result<ControlFlow<()>> {
        self.status = FAILED;
        self.out.flush()?;
        writeln!(self.err, "albireo: {fault}")?;
        Ok(if self.args.skip_damage { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    /// Whether the record, or some of its rows, is asked for.
    fn wants(&self, entry: &LogEntry<'_>) -> bool {
        let LogArgs { from, until, table, procedure, .. } = self.args;
        let is_early = |moment: &Moment| match moment {
            Moment::Record(first) => entry.ordinal < *first,
            Moment::Time(first_us) => entry.time_us < *first_us,
        };
        let is_late = |moment: &Moment| matches!(moment, Moment::Time(last_us) if entry.time_us > *last_us);
        if from.as_ref().is_some_and(is_early) || until.as_ref().is_some_and(is_late) {
            return false;
        }
        let is_named = line::is_named;
        match (&entry.content, table, procedure) {
            (_, None, None) => true,
            (LogContent::Definition { tables, .. }, Some(table), _) => {
                tables.iter().any(|name| is_named(name, table))
            }
            (LogContent::Definition { routines, .. }, _, Some(procedure)) => {
                routines.iter().any(|name| is_named(name, procedure))
            }
            (LogContent::Writes(rows) | LogContent::Part { rows, .. }, Some(table), _) => {
                rows.tables().any(|written| written.rows() > 0 && is_named(&written.table, table))
            }
            (LogContent::Command { routine, .. }, _, Some(procedure)) => is_named(routine, procedure),
            (
                LogContent::Untold { table: name, .. } | LogContent::Statement { table: name, .. },
                Some(table),
                _,
            ) => is_named(name, table),
            (
                LogContent::Writes(_)
                | LogContent::Untold { .. }
                | LogContent::Part { .. }
                | LogContent::Joined { .. }
                | LogContent::Command { .. }
                | LogContent::Statement { .. },
                ..,
            ) => false,
        }
    }
}
