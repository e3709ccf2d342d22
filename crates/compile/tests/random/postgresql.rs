//! The same programs in PostgreSQL, through psql.
//!
//! It asks the server that psql finds by PGHOST, PGPORT, PGUSER and PGDATABASE; `against_postgresql.py`
//! starts one. Each program runs in a transaction of its own that is rolled back.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::program::Program;
use super::runner::Outcome;

const OPTIONS: &str = "-c client_min_messages=log -c extra_float_digits=1 -c datestyle=ISO \
    -c intervalstyle=postgres -c statement_timeout=20s -c lc_messages=C";
/// Begins what the script tells us; no value holds it.
const MARK: &str = "==== ";

/// A running psql.
pub struct Psql {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Each table that a schema was made for, by its statements.
    schemas: Vec<Vec<String>>,
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _ = self.input.write_all(b"\\q\n");
        let _ = self.input.flush();
        let _ = self.child.wait();
    }
}

impl Psql {
    pub fn new() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "exec psql -XqAt 2>&1"])
            .env("PGOPTIONS", OPTIONS)
            .env("PGTZ", "UTC")
            .env("PGCLIENTENCODING", "UTF8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut psql = Self { child, input, output, schemas: Vec::new() };
        psql.ask("\\set VERBOSITY terse\n\\pset null 'NULL'\n");
        psql
    }

    /// What a script says, line by line.
    fn ask(&mut self, script: &str) -> Vec<String> {
        writeln!(self.input, "{script}\\echo '{MARK}all'").unwrap();
        self.input.flush().unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "psql ended: {lines:?}");
            let line = line.trim_end_matches('\n').to_owned();
            if line == format!("{MARK}all") {
                return lines;
            }
            lines.push(line);
        }
    }

    /// The schema with this table, which is made if it is the first of its kind.
    fn schema(&mut self, table: &[String]) -> String {
        let known = self.schemas.iter().position(|known| known == table);
        let name = format!("random_{}", known.unwrap_or(self.schemas.len()));
        if known.is_none() {
            self.schemas.push(table.to_vec());
            let begin = format!("DROP SCHEMA IF EXISTS {name} CASCADE;\nCREATE SCHEMA {name};\n");
            let said = self.ask(&format!("{begin}SET search_path = {name};\n{};\n", table.join(";\n")));
            assert!(!said.iter().any(|line| line.starts_with("ERROR")), "{said:?}");
        }
        name
    }

    /// What a program comes to.
    ///
    /// # Errors
    /// What it says to statements before the call.
    pub fn run(&mut self, program: &Program) -> Result<Outcome, String> {
        let schemas: Vec<String> = program.tables.iter().map(|table| self.schema(table)).collect();
        let mut script = format!("BEGIN;\nSET LOCAL search_path = {};\n", schemas.join(", "));
        for statement in &program.rows {
            writeln!(script, "{statement};").unwrap();
        }
        for routine in &program.routines {
            writeln!(script, "{};", routine.text()).unwrap();
        }
        script.push_str("SAVEPOINT before;\n");
        writeln!(script, "\\echo '{MARK}call'\n{};", program.call()).unwrap();
        writeln!(script, "\\echo '{MARK}end' :SQLSTATE :LAST_ERROR_MESSAGE").unwrap();
        script.push_str("\\if :ERROR\nROLLBACK TO before;\n\\endif\n");
        for dump in &program.dumps {
            writeln!(script, "\\echo '{MARK}table'\n{dump};").unwrap();
        }
        script.push_str("ROLLBACK;\n");
        outcome(&self.ask(&script))
    }
}

fn outcome(lines: &[String]) -> Result<Outcome, String> {
    let mut parts: Vec<(&str, Vec<String>)> = vec![("", Vec::new())];
    for line in lines {
        match line.strip_prefix(MARK) {
            Some(head) => parts.push((head, Vec::new())),
            None => parts.last_mut().unwrap().1.push(line.clone()),
        }
    }
    let mut parts = parts.into_iter();
    let before = parts.next().unwrap().1;
    if !before.is_empty() {
        return Err(before.join("\n"));
    }
    let mut called = parts.next().unwrap().1;
    let end = parts.next().unwrap().0;
    let (state, message) = end.trim_start_matches("end ").split_once(' ').unwrap_or((end, ""));
    let tables = parts.map(|(_, rows)| rows).collect();
    let levels = ["NOTICE:  ", "WARNING:  ", "INFO:  ", "LOG:  "];
    let is_notice = |line: &String| levels.iter().any(|level| line.starts_with(level));
    let notices = called.iter().filter(|line| is_notice(line)).cloned().collect();
    called.retain(|line| !is_notice(line));
    Ok(match state == "00000" {
        true => Outcome { result: Ok(comparable(&called)), notices, tables },
        false => {
            let error = (state.to_owned(), message.to_owned());
            Outcome { result: Err(error), notices, tables: Vec::new() }
        }
    })
}

/// Our outcome as psql would show it.
pub fn as_psql_shows(outcome: &Outcome) -> Outcome {
    let levels = [("Notice", "NOTICE"), ("Warning", "WARNING"), ("Info", "INFO"), ("Log", "LOG")];
    let notice = |text: &String| {
        let (level, message) = text.split_once(": ")?;
        let (_, shown) = levels.iter().find(|(ours, _)| *ours == level)?;
        Some(format!("{shown}:  {message}"))
    };
    let notices = outcome.notices.iter().filter_map(notice).collect();
    let result = match &outcome.result {
        Ok(rows) => Ok(comparable(rows)),
        Err(error) => Err(error.clone()),
    };
    Outcome { notices, result, tables: outcome.tables.clone() }
}

/// Rows without blanks at the end of each value: we do not show those of CHAR. One row of one empty text
/// is no row: a value of type VOID.
fn comparable(rows: &[String]) -> Vec<String> {
    let row = |row: &String| row.split('|').map(str::trim_end).collect::<Vec<_>>().join("|");
    let rows: Vec<String> = rows.iter().map(row).collect();
    if rows == [""] { Vec::new() } else { rows }
}
