//! Rows that leave memory for files: `--eviction` and `--eviction-directory`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Less than the rows of the tests take, even when they are frozen.
const LIMITS: [&str; 4] = ["--memory", "512MB", "--data-limit", "32MB"];

/// Reads every row.
const SUMS: &str = "select count(*), sum(id), max(text), sum(length(text)) from t";

/// Says `evicted` if a chunk has left memory.
const EVICTED: &str = "select distinct state from albireo.chunks where state = 'evicted'";

/// The program with arguments, of which some are paths, and no eviction but what they say.
fn albireo<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    command.env_remove("ALBIREO_EVICTION").env_remove("ALBIREO_EVICTION_DIRECTORY");
    command.args(arguments).stdin(Stdio::null());
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What a command prints that must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{command:?}: {}", err(&output));
    out(&output)
}

/// What is in a directory.
fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn database_that_does_not_fit_is_opened_and_archived_with_eviction_and_refused_without() {
    let base = tempfile::tempdir().unwrap();
    let paths = ["data", "data.tar", "copy"].map(|name| base.path().join(name).to_str().unwrap().to_owned());
    let [data, backup, copy] = paths.each_ref().map(String::as_str);
    // Each character takes half a byte when it is frozen: 38 MB.
    let script = format!(
        "create table t (id bigint not null, text text not null);
         insert into t select g, repeat(md5(g::text), 4) from generate_series(1, 600000) s (g);
         call albireo.freeze('t'); checkpoint; {SUMS}"
    );
    let shell = ["shell", "--format", "csv", "--data"];
    let sums = printed(albireo(shell).args([data, "-c", &script]));
    assert!(sums.contains("600000,"), "{sums}");
    let refused = albireo(shell).args([data, "-c", SUMS]).args(LIMITS).output().unwrap();
    assert_eq!((refused.status.code(), out(&refused).as_str()), (Some(1), ""), "{}", err(&refused));
    assert!(err(&refused).contains("ERROR 53200"), "{}", err(&refused));
    let evicting = [data, "--eviction", "on", "-c", SUMS, "-c", EVICTED];
    let asked = printed(albireo(shell).args(evicting).args(LIMITS));
    assert!(asked.starts_with(&sums) && asked.contains("evicted"), "{asked}");
    assert!(Path::new(data).join("cold").is_dir(), "the files are in the directory of the database");
    let refused = albireo(["archive", data]).args(LIMITS).output().unwrap();
    assert!(err(&refused).contains("ERROR 53200"), "{}", err(&refused));
    for arguments in [vec!["archive", data], vec!["backup", data, backup], vec!["restore", backup, copy]] {
        printed(albireo(arguments).args(["--eviction", "on"]).args(LIMITS));
    }
    // The variable says the same.
    let mut restored = albireo(shell);
    let asked = printed(restored.args([copy, "-c", SUMS]).args(LIMITS).env("ALBIREO_EVICTION", "on"));
    assert_eq!(asked, sums);
}

#[test]
fn table_in_memory_grows_beyond_the_limit_and_leaves_no_files() {
    let base = tempfile::tempdir().unwrap();
    let (script, directory) = (base.path().join("script.sql"), base.path().join("cold"));
    let mut text = "create table t (id bigint primary key, text text not null);\n".to_owned();
    for from in (1..600_000).step_by(10_000) {
        let rows = format!("generate_series({from}, {})", from + 9_999);
        text.push_str(&format!("insert into t select g, repeat(md5(g::text), 4) from {rows} s (g);\n"));
    }
    text.push_str(&format!("select count(*), sum(id), sum(length(text)) from t;\n{EVICTED};\n"));
    std::fs::write(&script, text).unwrap();
    // Its texts have 77 MB, and take half of that when they are frozen; the index comes on top.
    let mut shell = albireo(["shell", "--format", "csv", "--memory", "512MB", "--data-limit", "48MB"]);
    let asked = printed(shell.arg("--eviction-directory").arg(&directory).arg(&script));
    assert!(asked.contains("600000,180000300000,76800000\n") && asked.contains("evicted"), "{asked}");
    assert_eq!(entries(&directory), [] as [PathBuf; 0]);
}

/// A shell whose rows leave memory for a directory below `directory`, and that waits for a statement.
fn waiting(directory: &Path) -> Child {
    let mut command = albireo(["shell", "--eviction-directory"]);
    let mut child = command.arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"\\echo ready\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn directory_is_shared_by_processes_and_what_a_killed_one_left_goes() {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("cold");
    let killed = directory.join("albireo-spill-1-0");
    std::fs::create_dir_all(&killed).unwrap();
    for name in ["lock", "0000000001.cold"] {
        std::fs::write(killed.join(name), "").unwrap();
    }
    let first = waiting(&directory);
    let of_first = entries(&directory);
    assert_eq!(of_first, [directory.join(format!("albireo-spill-{}-0", first.id()))]);
    printed(albireo(["shell", "-c", "select 1", "--eviction-directory"]).arg(&directory));
    assert_eq!(entries(&directory), of_first, "that of the first stays");
    // The end of its input ends it.
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(entries(&directory), [] as [PathBuf; 0]);
}

#[test]
fn ctrl_c_that_ends_the_program_leaves_no_files() {
    let base = tempfile::tempdir().unwrap();
    let mut child = waiting(base.path());
    assert_eq!(entries(base.path()).len(), 1);
    // The first may come while the shell still prints.
    while child.try_wait().unwrap().is_none() {
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(entries(base.path()), [] as [PathBuf; 0]);
}

#[test]
fn eviction_without_a_directory_that_can_be_used_is_refused_with_what_to_do() {
    let output = albireo(["shell", "--eviction", "on", "-c", "select 1"]).output().unwrap();
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
    assert!(err(&output).contains("--eviction-directory DIRECTORY"), "{}", err(&output));
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let mut shell = albireo(["shell", "-c", "select 1", "--eviction-directory"]);
    let output = shell.arg(&file).output().unwrap();
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""));
    let said = format!("could not use the directory \"{}\" for rows that leave memory: ", file.display());
    assert!(err(&output).contains(&said), "{}", err(&output));
}
