//! Runs files of statements in Albireo and in those whose word we take: SQLite, and PostgreSQL
//! where it is at hand.
//!
//! What a file expects was said by PostgreSQL 15, once, and by nobody else. Every run asks Albireo,
//! with one partition and with three, on each execution path, and SQLite wherever it means the same.
//!
//! - `ALBIREO_TEST_POSTGRES=<socket directory>` asks PostgreSQL (user `test`, no password) as well.
//! - `ALBIREO_TEST_REWRITE=1` beside it writes PostgreSQL's answers into the files, and `skipif
//!   sqlite` where SQLite disagrees. Read the difference before you commit it.

mod compare;
pub mod grid;
mod script;
mod systems;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use albireo::{Config, ExecutionPath};
use script::{Answer, Expected, Record, System};

/// Where the files are.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/slt")
}

/// Runs one file in all systems.
///
/// # Panics
/// An answer is not the expected one; all such answers are listed.
pub fn run(name: &str) {
    let path = directory().join(format!("{name}.slt"));
    let (records, rest) = script::parse(&fs::read_to_string(&path).unwrap());
    let postgres = std::env::var("ALBIREO_TEST_POSTGRES").ok();
    if let (Some(socket), Some(_)) = (&postgres, std::env::var_os("ALBIREO_TEST_REWRITE")) {
        let records = rewritten(records, socket, name);
        let text: String = records.iter().map(Record::to_string).collect();
        return fs::write(path, text + &rest).unwrap();
    }
    let mut faults = String::new();
    let (here, there) = (Some(ExecutionPath::Transactional), Some(ExecutionPath::Analytical));
    for (partitions, path) in [(1, there), (3, there), (1, here), (3, None)] {
        let config = Config { partitions, query_threads: 2, ..Config::default() };
        let answers = systems::albireo(&records, config, path);
        judge_ours(name, &records, &answers, &mut faults);
        if !faults.is_empty() {
            writeln!(faults, "on the path {path:?}").unwrap();
            break;
        }
    }
    judge(&records, &systems::sqlite(&records), System::Sqlite, &mut faults);
    if let Some(socket) = postgres {
        let answers = systems::postgres(&records, &socket, &format!("slt_{name}"), script::cell);
        judge(&records, &answers, System::Postgres, &mut faults);
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// As `judge`, for us: what `deviations.txt` lists must still deviate, or leave the list; all else
/// must agree. With `ALBIREO_TEST_DEVIATIONS=1` new deviations are added to the list.
fn judge_ours(name: &str, records: &[Record], answers: &[Answer], faults: &mut String) {
    let list = directory().join("deviations.txt");
    let known = fs::read_to_string(&list).unwrap();
    let known: Vec<&str> = known.lines().collect();
    let asked: Vec<&Record> = records.iter().filter(|record| record.runs_in(System::Albireo)).collect();
    assert_eq!(asked.len(), answers.len(), "answers of albireo");
    for (record, answer) in asked.into_iter().zip(answers) {
        let Record { line, sql, .. } = record;
        let key = format!("{name}: {}", sql.split_whitespace().collect::<Vec<_>>().join(" "));
        let listed = known.contains(&key.as_str());
        match compare::check(&record.expected, answer, System::Albireo) {
            Ok(()) if listed => {
                writeln!(faults, "line {line}: agrees now; take it off deviations.txt\n{sql}\n").unwrap();
            }
            Err(_) if std::env::var_os("ALBIREO_TEST_DEVIATIONS").is_some() && !listed => {
                let old = fs::read_to_string(&list).unwrap();
                fs::write(&list, format!("{old}{key}\n")).unwrap();
            }
            Err(fault) if !listed => writeln!(faults, "line {line}, albireo: {fault}\n{sql}\n").unwrap(),
            // Shown by `--nocapture`.
            Err(fault) => println!("{name}, line {line}: {fault}\n{sql}\n"),
            Ok(()) => {}
        }
    }
}

fn judge(records: &[Record], answers: &[Answer], system: System, faults: &mut String) {
    let asked: Vec<&Record> = records.iter().filter(|record| record.runs_in(system)).collect();
    assert_eq!(asked.len(), answers.len(), "answers of {}", system.name());
    for (record, answer) in asked.into_iter().zip(answers) {
        if let Err(fault) = compare::check(&record.expected, answer, system) {
            let Record { line, sql, .. } = record;
            writeln!(faults, "line {line}, {}: {fault}\n{sql}\n", system.name()).unwrap();
        }
    }
}

/// The records with PostgreSQL's answers; SQLite is left out where it says something else.
fn rewritten(mut records: Vec<Record>, socket: &str, name: &str) -> Vec<Record> {
    let answers = systems::postgres(&records, socket, &format!("slt_{name}"), script::cell);
    let asked = records.iter_mut().filter(|record| record.runs_in(System::Postgres));
    for (record, answer) in asked.zip(answers) {
        record.expected = match (answer, &record.expected) {
            (Answer::Rows { columns, rows }, Expected::Rows { ordered, .. }) => {
                Expected::Rows { columns, rows, ordered: *ordered }
            }
            (Answer::Done(count), Expected::Count(_)) => Expected::Count(count),
            (Answer::Error { state, .. }, _) => Expected::Error(state),
            (_, expected) => expected.clone(),
        };
    }
    // One that SQLite does not run may change what later ones say.
    loop {
        let answers = systems::sqlite(&records);
        let asked = records.iter_mut().filter(|record| record.runs_in(System::Sqlite));
        let wrong = |(record, answer): &(&mut Record, &Answer)| {
            compare::check(&record.expected, answer, System::Sqlite).is_err()
        };
        let Some((record, _)) = asked.zip(&answers).find(wrong) else { return records };
        record.skipped_by.push(System::Sqlite);
    }
}
