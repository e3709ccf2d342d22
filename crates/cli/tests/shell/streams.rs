//! In pipes and with files, devices and arguments that are not what they should be.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

const FORMATS: [&str; 3] = ["box", "csv", "json"];

/// Enough rows that no pipe holds them.
const MANY: &str = "select i, i + 1 as j from generate_series(1, 50000) g(i)";

fn albireo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    command.stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The status and the errors of a program whose output nobody reads on after the first line.
fn after_first_line(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), said(&output))
}

#[test]
fn reader_that_goes_away_ends_the_shell_with_0() {
    for format in FORMATS {
        let ended = after_first_line(albireo().args(["shell", "--format", format, "-c", MANY]));
        assert_eq!(ended, (Some(0), String::new()), "{format}");
    }
    let mut piped = albireo();
    let ended = after_first_line(piped.args(["shell", "-c", MANY, "-c", "\\echo more", "-c", "select 1"]));
    assert_eq!(ended, (Some(0), String::new()));
}

#[test]
fn reader_that_goes_away_ends_the_log_with_0() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let script = format!("create table t (a bigint primary key, b bigint); insert into t {MANY}");
    let made = albireo().args(["shell", "-c", &script, "--data"]).arg(&data).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    for format in ["text", "json"] {
        let ended = after_first_line(albireo().args(["log", "--all", "--format", format]).arg(&data));
        assert_eq!(ended, (Some(0), String::new()), "{format}");
    }
}

#[test]
fn output_on_a_full_device_is_an_error_that_says_so() {
    for format in FORMATS {
        for statement in [MANY, "select 1"] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut command = albireo();
            command.args(["shell", "--format", format, "-c", statement, "-c", "\\echo more"]).stdout(full);
            let output = command.output().unwrap();
            let expected = "albireo: cannot write: No space left on device (os error 28)\n";
            assert_eq!((output.status.code(), said(&output).as_str()), (Some(1), expected), "{format}");
        }
    }
    let script = "\\o /dev/full\nselect 1;\n";
    let output = albireo().args(["shell", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot write: No space left on device"), "{output:?}");
}

#[test]
fn closed_streams_do_not_panic() {
    for closed in [">&-", "2>&-", "<&-", ">&- 2>&- <&-"] {
        for arguments in
            ["shell -c 'select 1' -c fail", "shell -c '\\warn x'", "shell", "log /nowhere", "fly"]
        {
            let script = format!("exec \"$0\" {arguments} {closed}");
            let program = env!("CARGO_BIN_EXE_albireo");
            let output = Command::new("sh").args(["-c", &script, program]).output().unwrap();
            assert!(output.status.code().is_some_and(|status| status <= 3), "{script}: {output:?}");
            assert!(!said(&output).contains("internal error"), "{script}: {output:?}");
        }
    }
}

#[test]
fn help_is_cut_without_a_complaint() {
    for arguments in [["shell", "--help"], ["--help", "--help"]] {
        let (_, errors) = after_first_line(albireo().args(arguments));
        assert_eq!(errors, "");
    }
}

#[test]
fn directory_in_place_of_a_file_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_str().unwrap();
    for (arguments, part) in [
        (vec!["shell", name], format!("cannot open {name}: is a directory")),
        (vec!["shell", "-c", &format!("\\i {name}")], format!("cannot open {name}: is a directory")),
        (vec!["shell", "-c", &format!("\\o {name}")], format!("cannot create {name}: Is a directory")),
        (
            vec!["shell", "-c", &format!("select 1 \\g {name}")],
            format!("cannot create {name}: Is a directory"),
        ),
        (
            vec!["shell", "-c", &format!("select 1 \\w {name}")],
            format!("cannot write {name}: Is a directory"),
        ),
    ] {
        let output = albireo().args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        assert!(said(&output).contains(&part), "{arguments:?}: {output:?}");
    }
    let output = albireo().arg("shell").stdin(File::open(name).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("cannot read stdin: Is a directory"), "{output:?}");
}

#[test]
fn script_in_a_fifo_is_run_as_it_comes() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut child = albireo().arg("shell").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut script = File::options().write(true).open(&fifo).unwrap();
    script.write_all(b"\\format csv\nselect 40 + 2 as n;\n").unwrap();
    assert_eq!([lines.next(), lines.next()].map(|line| line.unwrap().unwrap()), ["n", "42"]);
    script.write_all(b"\\echo end").unwrap();
    drop(script);
    assert_eq!(lines.next().unwrap().unwrap(), "end");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn arguments_that_are_not_utf8_are_names_of_files_or_refused() {
    let bad = OsStr::from_bytes(b"no\xff.sql");
    let output = albireo().arg("shell").arg(bad).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said(&output).starts_with("cannot open no\u{fffd}.sql: "), "{output:?}");
    let output = albireo().args(["shell", "-c"]).arg(bad).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains("UTF-8"), "{output:?}");
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join(bad);
    for _ in 0..2 {
        let output = albireo().args(["shell", "-c", "\\conninfo", "--data"]).arg(&data).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let output = albireo().arg("verify").arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
