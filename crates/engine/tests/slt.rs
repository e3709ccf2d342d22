//! What our SQL means, statement by statement: `slt/*.slt`.

#![allow(clippy::disallowed_methods, reason = "tests read files and start other databases")]

mod oracle;

macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { oracle::run(stringify!($name)); })*
    };
}

files! {
    aggregates
    analytics
    arithmetic
    conditionals
    correlated
    datetime
    ddl
    decimals
    dml
    found
    functions
    joins
    merge
    names
    null_logic
    ordering
    set_operations
    strings
    subqueries
    types
    windows
    with_queries
}

#[test]
fn expressions_mean_the_same_on_every_path_but_for_what_is_listed() {
    oracle::grid::run();
}

#[test]
fn every_file_is_run() {
    let mut found: Vec<String> = std::fs::read_dir(oracle::directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "slt"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, FILES);
}
