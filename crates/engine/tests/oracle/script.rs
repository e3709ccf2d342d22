//! Files of statements and the answers they must give.
//!
//! A record is a paragraph. Lines before it that begin with `#` are comments.
//!
//! ```text
//! skipif sqlite                    some systems mean something else by it, or do not know it
//! statement ok                     or `count 3` (rows changed), or `error 22012` (SQLSTATE)
//! INSERT INTO t VALUES (1, 'a')
//!
//! query                            or `query unordered`
//! SELECT a, count(*) FROM t GROUP BY a
//! ----
//! a integer | count bigint         names and types as PostgreSQL gives them
//! 1 | 1                            `NULL`, and `(empty)` for the empty text
//! ```

use std::fmt::{self, Write};

/// A system that statements run in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum System {
    Albireo,
    Sqlite,
    Postgres,
}

impl System {
    const ALL: [Self; 3] = [Self::Albireo, Self::Sqlite, Self::Postgres];

    pub fn name(self) -> &'static str {
        match self {
            Self::Albireo => "albireo",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    fn named(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|system| system.name() == name)
            .unwrap_or_else(|| panic!("no system {name}"))
    }
}

/// What a statement gives, in texts that can be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A statement that gives no rows was done, with so many rows changed.
    Done(u64),
    /// Columns as `name type`, and rows.
    Rows { columns: Vec<String>, rows: Vec<Vec<String>> },
    /// It failed. Systems without SQLSTATE give an empty one.
    Error { state: String, message: String },
}

/// What a record expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    Ok,
    Count(u64),
    Error(String),
    Rows { columns: Vec<String>, rows: Vec<Vec<String>>, ordered: bool },
}

/// One statement of a file.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where it begins, counted from 1.
    pub line: usize,
    /// Comments and blank lines before it, as they stand.
    pub preamble: String,
    pub skipped_by: Vec<System>,
    pub sql: String,
    pub expected: Expected,
}

impl Record {
    pub fn runs_in(&self, system: System) -> bool {
        !self.skipped_by.contains(&system)
    }
}

/// Reads a file's records; what follows the last one is given back too.
pub fn parse(text: &str) -> (Vec<Record>, String) {
    let mut lines = text.lines().enumerate().peekable();
    let mut records = Vec::new();
    loop {
        let mut preamble = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.is_empty() || line.starts_with('#')) {
            writeln!(preamble, "{line}").unwrap();
        }
        let Some((number, mut head)) = lines.next() else { return (records, preamble) };
        let line = number + 1;
        let mut skipped_by = Vec::new();
        loop {
            match head.split_once(' ') {
                Some(("skipif", names)) => skipped_by.extend(names.split(' ').map(System::named)),
                Some(("onlyif", name)) => {
                    skipped_by.extend(System::ALL.into_iter().filter(|system| system.name() != name));
                }
                _ => break,
            }
            head = lines.next().unwrap_or_else(|| panic!("line {line}: nothing to skip")).1;
        }
        let mut body = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            body.push(line);
        }
        let (sql, result) = match body.iter().position(|line| *line == "----") {
            Some(end) => (&body[..end], &body[end + 1..]),
            None => (body.as_slice(), [].as_slice()),
        };
        assert!(!sql.is_empty(), "line {line}: no statement");
        let expected =
            expected(head, result).unwrap_or_else(|| panic!("line {line}: \"{head}\" is no record"));
        records.push(Record { line, preamble, skipped_by, sql: sql.join("\n"), expected });
    }
}

fn expected(head: &str, result: &[&str]) -> Option<Expected> {
    let words: Vec<&str> = head.split(' ').collect();
    Some(match words[..] {
        ["statement", "ok"] => Expected::Ok,
        ["statement", "count", count] => Expected::Count(count.parse().ok()?),
        ["statement", "error", state] => Expected::Error(state.to_owned()),
        ["query"] => rows(result, true),
        ["query", "unordered"] => rows(result, false),
        _ => return None,
    })
}

fn rows(result: &[&str], ordered: bool) -> Expected {
    let split = |line: &&str| line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
    let columns = result.first().map_or_else(Vec::new, split);
    Expected::Rows { columns, rows: result.iter().skip(1).map(split).collect(), ordered }
}

/// A cell as files show it.
pub fn cell(text: &str) -> String {
    match text.trim_end() {
        "" => "(empty)".to_owned(),
        text => text.trim_start().replace('\n', "\\n"),
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.preamble)?;
        match self.skipped_by[..] {
            [] => {}
            [one, other] => {
                let only = System::ALL.into_iter().find(|&system| system != one && system != other);
                writeln!(f, "onlyif {}", only.unwrap_or(System::Albireo).name())?;
            }
            _ => {
                let names: Vec<_> = self.skipped_by.iter().map(|system| system.name()).collect();
                writeln!(f, "skipif {}", names.join(" "))?;
            }
        }
        match &self.expected {
            Expected::Ok => writeln!(f, "statement ok\n{}", self.sql),
            Expected::Count(count) => writeln!(f, "statement count {count}\n{}", self.sql),
            Expected::Error(state) => writeln!(f, "statement error {state}\n{}", self.sql),
            Expected::Rows { columns, rows, ordered } => {
                let head = if *ordered { "query" } else { "query unordered" };
                writeln!(f, "{head}\n{}\n----\n{}", self.sql, columns.join(" | "))?;
                rows.iter().try_for_each(|row| writeln!(f, "{}", row.join(" | ")))
            }
        }
    }
}
