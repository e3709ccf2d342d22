//! How results of tests are said: lines for people as they come, or one JSON object in the end.

use super::file::Step;
use super::{Failure, Ran, Reason, Stop};
use crate::args::{Format, ReportFormat};
use crate::interrupt::Interrupt;
use crate::output::{self, Expanded, Style, Table};
use crate::shell::report;
use crate::sql::Column;
use albireo::{Outcome, QueryResult, SqlError, Value};
use serde_json::json;
use std::io::{self, Write};

/// Rows of a condition that are shown.
const MOST_ROWS: usize = 20;

/// Writes results, counts them.
pub struct Reporter<'a> {
    format: ReportFormat,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    files: Vec<FileReport>,
}

/// What became of one file.
struct FileReport {
    name: String,
    /// Why its tests were not run.
    error: Option<String>,
    tests: Vec<Ran>,
}

impl<'a> Reporter<'a> {
    /// Results go to `out`, notices to `err`.
    pub fn new(format: ReportFormat, out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Self { format, out, err, files: Vec::new() }
    }

    /// What comes belongs to this file.
    pub fn begin_file(&mut self, name: String) {
        self.files.push(FileReport { name, error: None, tests: Vec::new() });
    }

    fn file(&mut self) -> &mut FileReport {
        self.files.last_mut().expect("a file has begun")
    }

    /// The file's tests cannot be run.
    pub fn stop_file(&mut self, message: &str) -> Result<(), Stop> {
        if self.format == ReportFormat::Table {
            writeln!(self.out, "FAILED before the first test")?;
            write!(self.out, "{}", indented(message, "  "))?;
        }
        self.file().error = Some(message.trim_end().to_owned());
        Ok(())
    }

    /// A statement of the set-up, which stands in the file `name`, failed.
    pub fn fail_set_up(&mut self, name: &str, step: &Step, error: &SqlError) -> Result<(), Stop> {
        let message = report::error(Some(name), step.line, &step.text, error);
        self.stop_file(&format!("{message}{}", indented(&step.text, "    ")))
    }

    /// Remarks of statements of the set-up.
    pub fn notices(&mut self, outcomes: &[Outcome]) -> Result<(), Stop> {
        for outcome in outcomes {
            if let Outcome::Done { notices, .. } = outcome {
                notices.iter().try_for_each(|notice| writeln!(self.err, "NOTICE: {notice}"))?;
            }
        }
        Ok(())
    }

    /// A test has run.
    pub fn test(&mut self, ran: Ran) -> Result<(), Stop> {
        if self.format == ReportFormat::Table {
            match &ran.failure {
                None => writeln!(self.out, "ok {} ({:.1} ms)", ran.name, ran.elapsed_ns as f64 / 1e6)?,
                Some(failure) => {
                    let said = failure.said(&self.file().name);
                    writeln!(self.out, "FAILED {}", ran.name)?;
                    write!(self.out, "{}", indented(&said, "  "))?;
                }
            }
        }
        self.file().tests.push(ran);
        Ok(())
    }

    fn counts(&self) -> (usize, usize, usize) {
        let tests = || self.files.iter().flat_map(|file| &file.tests);
        let failed = tests().filter(|test| test.failure.is_some()).count();
        let not_run = self.files.iter().filter(|file| file.error.is_some()).count();
        (tests().count() - failed, failed, not_run)
    }

    /// Whether a test failed, or could not be run.
    pub fn has_failed(&self) -> bool {
        let (_, failed, not_run) = self.counts();
        failed + not_run > 0
    }

    /// The last words.
    pub fn finish(&mut self, interrupted: bool) -> io::Result<()> {
        let (passed, failed, not_run) = self.counts();
        if self.format == ReportFormat::Json {
            let files: Vec<_> = self.files.iter().map(FileReport::json).collect();
            let all = json!({
                "passed": passed, "failed": failed, "files_not_run": not_run, "interrupted": interrupted,
                "files": files,
            });
            return writeln!(self.out, "{all:#}");
        }
        let files = match not_run {
            0 => String::new(),
            1 => ", 1 file not run".to_owned(),
            count => format!(", {count} files not run"),
        };
        let stopped = if interrupted { "; interrupted" } else { "" };
        writeln!(self.out, "{passed} passed, {failed} failed{files}{stopped}")
    }
}

impl FileReport {
    fn json(&self) -> serde_json::Value {
        let test = |ran: &Ran| {
            json!({
                "name": ran.name, "line": ran.line, "ok": ran.failure.is_none(),
                "milliseconds": ran.elapsed_ns as f64 / 1e6,
                "failure": ran.failure.as_ref().map(|failure| failure.json(&self.name)),
            })
        };
        let tests: Vec<_> = self.tests.iter().map(test).collect();
        json!({ "file": self.name, "error": self.error, "tests": tests })
    }
}

impl Failure {
    /// What to tell people: place, reason, statement.
    fn said(&self, file: &str) -> String {
        let Step { text, line, error: wanted } = &self.step;
        let located = |message: String| format!("{}\n", report::located(Some(file), *line, &message));
        let mut said = match (&self.reason, wanted) {
            (Reason::Error(error), wanted) => {
                let wanted = wanted.map(|state| format!("EXPECTED: ERROR {state}\n")).unwrap_or_default();
                report::error(Some(file), *line, text, error) + &wanted
            }
            (Reason::NoError, Some(state)) => located(format!("ERROR {state} was expected, but none came")),
            (Reason::NoError, None) => located("an error was expected, but none came".to_owned()),
            (Reason::NotTrue(rows), _) => located(not_true(rows)),
        };
        for notice in &self.notices {
            said.push_str(&format!("NOTICE: {notice}\n"));
        }
        said.push_str(&indented(text, "    "));
        if let Reason::NotTrue(rows) = &self.reason {
            said.push_str(drawn(rows).trim_end());
            said.push('\n');
        }
        said
    }

    fn json(&self, file: &str) -> serde_json::Value {
        let error = match &self.reason {
            Reason::Error(error) => json!({
                "sqlstate": error.state().to_string(), "message": error.message(),
                "detail": error.detail(), "hint": error.hint(), "position": error.position(),
            }),
            Reason::NoError | Reason::NotTrue(_) => serde_json::Value::Null,
        };
        json!({
            "line": self.step.line, "statement": self.step.text,
            "expected": self.step.error.map(|state| state.to_string()),
            "error": error, "report": self.said(file),
        })
    }
}

fn not_true(result: &QueryResult) -> String {
    let rows = result.rows();
    let wrong = rows.iter().filter(|row| row[0] != Value::Bool(true)).count();
    match (wrong, rows.len()) {
        (_, 0) => "the condition has no rows, so it says nothing".to_owned(),
        (1, 1) => "the condition is not true".to_owned(),
        (wrong, all) if all > MOST_ROWS => {
            format!("{wrong} of {all} rows are not true; the first {MOST_ROWS} rows are shown")
        }
        (wrong, all) => format!("{wrong} of {all} rows are not true"),
    }
}

/// The rows as the shell shows them, as far as there is room.
fn drawn(result: &QueryResult) -> String {
    let column = |column: &albireo::Column| Column { name: column.name.clone(), ty: column.ty };
    let columns: Vec<Column> = result.columns.iter().map(column).collect();
    let mut left = MOST_ROWS;
    let mut batches = Vec::new();
    for batch in &*result.batches() {
        let rows = batch.num_rows().min(left);
        batches.push(batch.slice(0, rows));
        left -= rows;
    }
    // Few rows are drawn too soon to be interrupted.
    let interrupt = Interrupt::default();
    let (format, expanded) = (Format::Box, Expanded::Off);
    let style = Style { format, expanded, width: None, null: "NULL", interrupt: &interrupt };
    let mut bytes = Vec::new();
    match output::print(&Table::of_result(&columns, &batches), style, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("the rows cannot be shown: {error}\n"),
    }
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}").trim_end().to_owned() + "\n").collect()
}
