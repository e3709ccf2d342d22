//! Temporary files of queries that memory cannot hold.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Spills, and does not end by itself before the disk is full.
const ENDLESS: &str = "set query_memory = '32MB'; set query_threads = 1;
    copy (select i, repeat('x', 40) from generate_series(1, 1000000000000) g(i) order by i % 1000, i desc)
    to '/dev/null' with (format csv);";

/// A shell whose temporary files go to `directory`.
fn shell(directory: &Path, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    command.args(["shell", "-c", script]).env("TMPDIR", directory);
    // Rows that leave memory would have files there too.
    command.env_remove("ALBIREO_EVICT");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A shell that has written temporary files.
fn spilling(directory: &Path) -> Child {
    let mut child = shell(directory, ENDLESS).spawn().unwrap();
    let own = directory.join(format!("albireo-spill-{}-0", child.id()));
    while !entries(&own).iter().any(|path| !entries(path).is_empty()) {
        assert_eq!(child.try_wait().unwrap(), None, "the query spills");
        std::thread::yield_now();
    }
    child
}

/// What is in a directory; nothing if it is none.
fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn send(signal: Signal, child: &Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn ctrl_c_during_a_query_that_spills_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let child = spilling(directory.path());
    send(Signal::SIGINT, &child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(entries(directory.path()), [] as [&Path; 0]);
}

#[test]
fn files_of_a_killed_process_are_removed_by_the_next_one_and_those_of_a_living_one_stay() {
    let directory = tempfile::tempdir().unwrap();
    let (living, killed) = (spilling(directory.path()), spilling(directory.path()));
    send(Signal::SIGKILL, &killed);
    killed.wait_with_output().unwrap();
    assert_eq!(entries(directory.path()).len(), 2);
    assert!(shell(directory.path(), "select 1").status().unwrap().success());
    let of_living = format!("albireo-spill-{}-0", living.id());
    assert_eq!(entries(directory.path()), [directory.path().join(of_living)]);
    send(Signal::SIGKILL, &living);
    living.wait_with_output().unwrap();
}
