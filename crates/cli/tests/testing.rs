//! `albireo test` as its users meet it: files in, lines or JSON out, an exit status.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program, in the directory of the files.
fn program(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    command.args(arguments.split(' ')).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/procedures"));
    command
}

fn albireo(arguments: &str) -> Output {
    program(arguments).output().expect("the program starts")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

/// The lines of standard output without times.
fn lines(output: &Output) -> Vec<String> {
    let untimed = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
    out(output).lines().map(untimed).collect()
}

#[test]
fn tests_that_pass_are_listed_with_status_0() {
    for partitions in ["", " --partitions 3"] {
        let output = albireo(&format!("test passing.sql{partitions}"));
        let expected = ["ok money moves", "ok nobody pays more than there is", "2 passed, 0 failed"];
        assert_eq!(lines(&output), expected, "{output:?}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn example_in_the_help_is_the_file_that_passes() {
    let help = out(&albireo("test --help"));
    let example: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    for line in include_str!("procedures/passing.sql").lines().filter(|line| !line.is_empty()) {
        assert!(example.contains(&line), "{line} is not in\n{help}");
    }
}

#[test]
fn tests_that_fail_say_where_and_why_with_status_1_and_leave_nothing() {
    for partitions in ["", " --partitions 3"] {
        let output = albireo(&format!("test failing.sql --load bank.sql{partitions}"));
        let said = out(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let named: Vec<String> = lines(&output)
            .into_iter()
            .filter(|line| line.starts_with("ok") || line.starts_with("FAILED"))
            .collect();
        let expected = [
            "ok statements of one test see what those before did",
            "ok rows are as they were",
            "FAILED a condition of several rows",
            "FAILED a procedure raises",
            "FAILED a procedure asserts",
            "FAILED another error than expected",
            "FAILED an expected error that does not come",
            "FAILED a mistake has its place",
            "FAILED definitions stand before",
            "FAILED a condition without rows",
            "ok a statement that failed has done nothing",
            "ok rows are still as they were",
        ];
        assert_eq!(named, expected, "{said}");
        assert!(said.ends_with("4 passed, 8 failed\n"), "{said}");
    }
}

/// What is said of the test that fails and has this name.
fn failure(said: &str, name: &str) -> String {
    let from = said.split(&format!("FAILED {name}\n")).nth(1).unwrap_or_else(|| panic!("{name}:\n{said}"));
    let told = from.lines().take_while(|line| line.starts_with("  "));
    told.map(|line| line.trim_start_matches("  ").to_owned() + "\n").collect()
}

#[test]
fn failures_name_line_statement_error_and_rows() {
    let said = out(&albireo("test failing.sql --load bank.sql"));
    let of = |name| failure(&said, name);
    let rows = of("a condition of several rows");
    assert!(rows.starts_with("failing.sql:14: 2 of 3 rows are not true\nSELECT cents = 0\nFROM"), "{rows}");
    assert_eq!((rows.matches("│ f ").count(), rows.matches("│ t ").count()), (2, 1), "{rows}");
    let raised = of("a procedure raises");
    let told = "failing.sql:18: ERROR P0042: no account 9\nDETAIL: It is not there.\nHINT: Open it.\n\
                NOTICE: before 10 go\nSELECT withdraw(9, 10)\n";
    assert_eq!(raised, told);
    assert!(
        of("a procedure asserts").starts_with("failing.sql:21: ERROR P0004: an unlucky rest\n"),
        "{said}"
    );
    let other = of("another error than expected");
    assert!(
        other.starts_with("failing.sql:25: ERROR P0042") && other.contains("EXPECTED: ERROR 23514\n"),
        "{other}"
    );
    let none = of("an expected error that does not come");
    assert!(none.starts_with("failing.sql:29: ERROR P0042 was expected, but none came\n"), "{none}");
    let place = of("a mistake has its place");
    assert!(place.starts_with("failing.sql:33: ERROR 42703"), "{place}");
    assert!(place.contains("LINE 34:        nonsense FROM account\n"), "{place}");
    let definition = of("definitions stand before");
    assert!(
        definition.starts_with("failing.sql:37: ERROR 0A000: CREATE TABLE in a transaction"),
        "{definition}"
    );
    assert!(definition.contains("HINT: ") && definition.contains("before the first test"), "{definition}");
    assert!(
        of("a condition without rows").starts_with("failing.sql:40: the condition has no rows"),
        "{said}"
    );
}

#[test]
fn set_up_that_fails_is_said_and_other_files_are_run() {
    let output = albireo("test broken.sql passing.sql nowhere.sql");
    let said = out(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("FAILED before the first test\n  broken.sql:2: ERROR 23505"), "{said}");
    assert!(said.contains("ok money moves") && !said.contains("never run"), "{said}");
    assert!(said.contains("cannot read nowhere.sql: "), "{said}");
    assert!(said.ends_with("2 passed, 0 failed, 2 files not run\n"), "{said}");
}

#[test]
fn json_is_one_object_that_says_the_same() {
    let output = albireo("test failing.sql broken.sql --load bank.sql --format json");
    assert_eq!(output.status.code(), Some(1));
    let all: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&all["passed"], &all["failed"], &all["files_not_run"]), (&4.into(), &8.into(), &1.into()));
    let tests = all["files"][0]["tests"].as_array().expect("a list of tests");
    assert_eq!((tests.len(), &tests[0]["ok"], &tests[3]["ok"]), (12, &true.into(), &false.into()));
    assert!(tests[0]["failure"].is_null() && tests[0]["milliseconds"].is_number());
    let failure = &tests[3]["failure"];
    assert_eq!((&failure["line"], &failure["statement"]), (&18.into(), &"SELECT withdraw(9, 10)".into()));
    assert_eq!(
        (&failure["error"]["sqlstate"], &failure["error"]["hint"]),
        (&"P0042".into(), &"Open it.".into())
    );
    assert!(all["files"][1]["error"].as_str().is_some_and(|error| error.contains("broken.sql:2")), "{all}");
}

#[test]
fn interrupt_ends_a_test_that_never_ends() {
    let mut child = program("test endless.sql").stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines().map_while(Result::ok);
    assert!(lines.next().is_some_and(|line| line.starts_with("ok short")));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
    assert_eq!(lines.collect::<Vec<_>>(), ["1 passed, 0 failed; interrupted"]);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
