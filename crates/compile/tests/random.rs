//! Random routines: every way to run them must come to the same.
//!
//! `ALBIREO_TEST_POSTGRESQL=1` asks PostgreSQL as well, see `against_postgresql.py`.

#![allow(clippy::disallowed_methods, reason = "tests start psql and threads")]

#[path = "random/maker/mod.rs"]
mod maker;
mod memory;
#[path = "random/postgresql.rs"]
mod postgresql;
#[path = "random/program.rs"]
mod program;
#[path = "../../plpgsql/tests/random/rng.rs"]
mod rng;
#[path = "random/runner.rs"]
mod runner;
#[path = "random/tables.rs"]
mod tables;
#[path = "random/types.rs"]
mod types;

use std::ops::Range;

use albireo_testing::test;

use program::Program;
use runner::{Outcome, runners};

/// The programs that are run.
const SEEDS: Range<u64> = 1..1_001;

/// Those that are run under a sanitizer, which `cargo xtask sanitize` says.
const SANITIZED_SEEDS: Range<u64> = 1..301;

/// Smaller programs that are tried, at most, after one that differs.
const TRIES: u32 = 600;

/// Programs that differ from PostgreSQL, after which no more are looked for.
const MOST: usize = 10;

/// Runs in a thread with the stack that ours have.
fn on_a_thread(act: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(act).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// How two outcomes differ.
fn difference(names: [&str; 2], outcomes: [&Outcome; 2]) -> Option<String> {
    let [a, b] = outcomes;
    let mut text = String::new();
    let mut note = |what: &str, a: String, b: String| {
        if a != b {
            text.push_str(&format!("{what} in {}: {a}\n{what} in {}: {b}\n", names[0], names[1]));
        }
    };
    note("result", format!("{:?}", a.result), format!("{:?}", b.result));
    let common = a.notices.iter().zip(&b.notices).take_while(|(a, b)| a == b).count();
    note("notices", format!("{:#?}", &a.notices[common..]), format!("{:#?}", &b.notices[common..]));
    for n in 0..a.tables.len().max(b.tables.len()) {
        note(&format!("table {n}"), format!("{:?}", a.tables.get(n)), format!("{:?}", b.tables.get(n)));
    }
    (!text.is_empty()).then_some(text)
}

/// How the runners differ on a program, each asked twice.
///
/// # Errors
/// What is wrong with the program itself.
fn differing_runners(program: &Program) -> Result<Option<String>, String> {
    let mut database = runner::database(program)?;
    let mut oracle: Option<(&str, Outcome)> = None;
    for mut runner in runners() {
        for _ in 0..2 {
            let outcome = runner::run(runner.as_mut(), program, &mut database)?;
            match &oracle {
                None => oracle = Some((runner.name(), outcome)),
                Some((name, expected)) => {
                    if let Some(text) = difference([name, runner.name()], [expected, &outcome]) {
                        return Ok(Some(text));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// The program with as much as possible taken away while it still differs, and how it does.
fn smallest(
    program: Program,
    how: String,
    mut differs: impl FnMut(&Program) -> Option<String>,
) -> (Program, String) {
    let (mut program, mut how) = (program, how);
    let mut tries = TRIES;
    'again: loop {
        for smaller in program.smaller() {
            if tries == 0 {
                return (program, how);
            }
            tries -= 1;
            if let Some(text) = differs(&smaller) {
                (program, how) = (smaller, text);
                continue 'again;
            }
        }
        return (program, how);
    }
}

#[test]
fn random_routines_come_to_the_same_by_every_runner() {
    let test = test!();
    let seeds = if std::env::var_os("ALBIREO_SANITIZED").is_some() { SANITIZED_SEEDS } else { SEEDS };
    on_a_thread(move || {
        test.for_each_seed(seeds, |seed| {
            let program = maker::program(seed);
            match differing_runners(&program) {
                Ok(None) => {}
                Ok(Some(how)) => {
                    let differs = |program: &Program| differing_runners(program).ok().flatten();
                    let (program, how) = smallest(program, how, differs);
                    panic!("{}\n{how}", program.text());
                }
                Err(error) => panic!("{}\n{error}", program.text()),
            }
        });
    });
}

/// How the interpreter and PostgreSQL differ on a program.
///
/// # Errors
/// What is wrong with the program itself.
fn differs_from_postgresql(program: &Program, psql: &mut postgresql::Psql) -> Result<Option<String>, String> {
    let mut database = runner::database(program).map_err(|error| format!("ours: {error}"))?;
    let ours = runner::run(&mut runner::Interpreter, program, &mut database)
        .map_err(|error| format!("ours: {error}"))?;
    let theirs = psql.run(program).map_err(|error| format!("PostgreSQL: {error}"))?;
    Ok(difference(["PostgreSQL", "ours"], [&theirs, &postgresql::as_psql_shows(&ours)]))
}

fn repeat(seed: u64) -> String {
    format!("seed {seed}; repeat it with\n    crates/plpgsql/tests/against_postgresql.py 1 {seed}")
}

#[test]
fn random_routines_come_to_the_same_in_postgresql() {
    if std::env::var_os("ALBIREO_TEST_POSTGRESQL").is_none() {
        eprintln!(
            "SKIPPED: PostgreSQL is asked by crates/plpgsql/tests/against_postgresql.py, as in .ci/run"
        );
        return;
    }
    let seeds = test!().seeds(SEEDS);
    on_a_thread(move || {
        let mut psql = postgresql::Psql::new();
        let mut failures = Vec::new();
        for seed in seeds {
            let program = maker::program(seed);
            match differs_from_postgresql(&program, &mut psql) {
                Ok(None) => {}
                Ok(Some(how)) => {
                    let differs =
                        |program: &Program| differs_from_postgresql(program, &mut psql).ok().flatten();
                    let (program, how) = smallest(program, how, differs);
                    failures.push(format!("{}\n{}\n{how}", repeat(seed), program.text()));
                }
                Err(error) => failures.push(format!("{}\n{}\n{error}", repeat(seed), program.text())),
            }
            if failures.len() >= MOST {
                break;
            }
        }
        assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n----\n"));
    });
}
