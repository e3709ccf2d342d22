//! What PostgreSQL said to the statements of `corpus/*.sql`, and whether we say the same.
//!
//! `corpus/deviations.txt` lists the records on which we do not agree yet, as `file:line`; one that
//! agrees must leave it. `ALBIREO_TEST_REWRITE=1` writes the list.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

#[path = "../../engine/tests/oracle/compare.rs"]
#[allow(dead_code, reason = "written for several systems")]
mod compare;
mod memory;
#[path = "../../engine/tests/oracle/script.rs"]
#[allow(dead_code, reason = "written for several systems")]
mod script;

use std::fmt::Write;
use std::path::PathBuf;

use albireo_base::SqlError;

use memory::{Database, Outcome};
use script::{Answer, System};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plpgsql/tests/corpus")
}

fn answer(result: Result<Outcome, SqlError>) -> Answer {
    match result {
        Err(error) => Answer::Error { state: error.state().to_string(), message: error.to_string() },
        Ok(Outcome::Done(count)) => Answer::Done(count),
        Ok(Outcome::Rows(columns, rows)) => {
            let columns = columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
            let cell = |cell: Option<String>| cell.map_or_else(|| "NULL".to_owned(), |c| script::cell(&c));
            let rows = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
            Answer::Rows { columns, rows }
        }
    }
}

/// The records of a file that do not agree: where they are, and how.
fn disagreements(name: &str, compiles: bool) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(directory().join(name)).unwrap();
    let (records, _) = script::parse(&text);
    let mut database = Database::new(compiles);
    let mut found = Vec::new();
    let results = database.run_all(records.iter().map(|record| record.sql.as_str()));
    for (record, result) in records.iter().zip(results) {
        if let Err(why) = compare::check(&record.expected, &answer(result), System::Albireo) {
            found.push((format!("{name}:{}", record.line), why));
        }
    }
    found
}

#[test]
fn corpus_interpreted_agrees_with_postgresql_but_for_the_listed_deviations() {
    corpus_agrees(false);
}

#[test]
fn corpus_compiled_agrees_with_postgresql_but_for_the_listed_deviations() {
    corpus_agrees(true);
}

fn corpus_agrees(compiles: bool) {
    let run = move || {
        let mut names: Vec<String> = std::fs::read_dir(directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sql"))
            .collect();
        names.sort();
        names.iter().flat_map(|name| disagreements(name, compiles)).collect::<Vec<_>>()
    };
    let found = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    let list = directory().join("deviations.txt");
    if std::env::var_os("ALBIREO_TEST_REWRITE").is_some() {
        let lines: String = found.iter().map(|(place, _)| format!("{place}\n")).collect();
        std::fs::write(&list, lines).unwrap();
    }
    let listed = std::fs::read_to_string(&list).unwrap_or_default();
    let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    let mut report = String::new();
    for (place, why) in &found {
        if !listed.contains(&place.as_str()) || std::env::var_os("ALBIREO_TEST_VERBOSE").is_some() {
            writeln!(report, "{place}: {why}").unwrap();
        }
    }
    for place in &listed {
        if !found.iter().any(|(other, _)| other == place) {
            writeln!(report, "{place} agrees, and must leave the list").unwrap();
        }
    }
    assert!(report.is_empty(), "{} disagree:\n{report}", found.len());
}
