//! `albireo archive`, `backup` and `restore` as their users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use albireo::{BackupOptions, Config, Database, Value};
use albireo_testing::wait_until;
use serde_json::Value as Json;

use crate::directory::TestDirectory;
use crate::mounted::Mounted;
use crate::tools::{albireo, err, out};

fn config() -> Config {
    Config { partitions: 2, log_segment_bytes: 256 << 10, query_threads: 1, ..Config::default() }
}

/// A database with `rows` rows in `place/data`.
fn made(place: &Path, rows: i32) -> PathBuf {
    let data = place.join("data");
    let db = Database::open(&data, config()).unwrap();
    db.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, price NUMERIC(10,2), name TEXT) PARTITION BY HASH (id);
         CREATE TABLE s (a INTEGER)",
    )
    .unwrap();
    for id in 0..rows {
        insert(&db, id);
    }
    data
}

fn insert(db: &Database, id: i32) {
    let values = [Value::Integer(id), Value::Text(format!("name of {id}"))];
    db.execute_with("INSERT INTO t VALUES ($1, $1 * 0.5, $2)", &values).unwrap();
}

/// All rows, in order.
fn dump(data: &Path) -> String {
    let query = "SELECT * FROM t ORDER BY id";
    let output = albireo(&["shell", "--data", "PATH", "--format", "csv", "-c", query], data);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of a test is text")
}

fn json(arguments: &[&str], path: &Path) -> Json {
    let output = albireo(arguments, path);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    serde_json::from_slice(&output.stdout).expect("it prints an object")
}

#[test]
fn archive_is_written_and_older_ones_go() {
    let place = TestDirectory::new("archive");
    let data = made(place.path(), 50);
    let output = albireo(&["archive", "PATH", "--limit-rate", "50M"], &data);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).starts_with("archive 1 of "), "{}", out(&output));
    assert!(out(&output).contains(": 50 rows, "), "{}", out(&output));
    for number in 2..=3 {
        let report = json(&["archive", "PATH", "--keep", "1", "--format", "json"], &data);
        assert_eq!((&report["archive"], &report["rows"]), (&number.into(), &50.into()));
    }
    let names = |directory: &Path| {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // The rows are still where the first archive has them, which is not one any more.
    let archives = data.join("archive");
    assert_eq!(names(&archives), ["0000000001", "0000000003", "lock"]);
    assert_eq!(names(&archives.join("0000000003")), ["manifest.json"]);
    assert!(names(&archives.join("0000000001")).iter().all(|name| name.ends_with(".arrow")));
    assert!(dump(&data).contains("\n49,24.50,name of 49\n"));
}

#[test]
fn tools_say_what_to_do_with_a_database_that_is_open_or_not_there() {
    let place = TestDirectory::new("locked");
    let data = made(place.path(), 5);
    let db = Database::open(&data, config()).unwrap();
    let target = place.path().join("it's.tar");
    let output = albireo(&["archive", "PATH"], &data);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("HINT: Run CHECKPOINT in the process"), "{}", err(&output));
    let output = albireo(&["backup", "PATH", text(&target)], &data);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("HINT: Run BACKUP TO '"), "{}", err(&output));
    assert!(err(&output).contains("it''s.tar' in the process"), "{}", err(&output));
    assert!(!target.exists());
    db.execute(&format!("BACKUP TO '{}'", text(&target).replace('\'', "''"))).unwrap();
    assert!(target.exists());
    drop(db);
    let nowhere = place.path().join("nowhere");
    for arguments in [&["archive", "PATH"][..], &["backup", "PATH", text(&target)]] {
        let output = albireo(arguments, &nowhere);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("there is nothing at"), "{}", err(&output));
        assert!(!nowhere.exists(), "nothing was made");
    }
}

#[test]
fn backup_and_restore_keep_every_row() {
    let place = TestDirectory::new("backup");
    let data = made(place.path(), 300);
    assert_eq!(albireo(&["archive", "PATH"], &data).status.code(), Some(0));
    let expected = dump(&data);
    for (name, more) in [("copy", &[][..]), ("linked", &["--link"]), ("copy.tar", &["--limit-rate", "1G"])] {
        let target = place.path().join(name);
        let report = json(&[&["backup", "PATH", text(&target), "--format", "json"], more].concat(), &data);
        assert_eq!((&report["rows"], &report["records"]), (&300.into(), &0.into()));
        assert_eq!(report["files_linked"].as_u64().unwrap() > 0, name == "linked", "{report:#}");
        let verified = json(&["verify", "PATH", "--format", "json"], &target);
        assert_eq!((&verified["sound"], &verified["backup"]["rows"]), (&true.into(), &300.into()));
        assert_eq!(verified["archives"][0]["rows"], 300);
        let restored = place.path().join(format!("{name}.restored"));
        let output = albireo(&["restore", "PATH", text(&restored)], &target);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(out(&output).contains(": 300 rows and 0 records"), "{}", out(&output));
        assert!(out(&output).ends_with(": all is there\n"), "{}", out(&output));
        assert_eq!(dump(&restored), expected);
        let output = albireo(&["shell", "--data", "PATH", "-c", "SELECT 1"], &target);
        assert_eq!(output.status.code(), Some(1), "a backup is no database");
    }
    assert_eq!(dump(&data), expected);
}

/// What was committed while the backup was taken is in its log.
#[test]
fn backup_of_a_database_in_use_has_the_log_behind_its_archive() {
    let place = TestDirectory::new("inuse");
    let data = made(place.path(), 100);
    let db = Database::open(&data, config()).unwrap();
    let target = place.path().join("copy.tar");
    let mut next = 100;
    let report = db
        .backup(&target, &BackupOptions::default(), |at| {
            // Between the archive and the end of the copy.
            if at.step == albireo::BackupStep::Copy && next < 120 {
                insert(&db, next);
                next += 1;
            }
        })
        .unwrap();
    assert!(report.records > 0 && report.rows == 100, "{report:?}");
    let log = albireo(&["log", "PATH"], &target);
    assert_eq!(log.status.code(), Some(0), "{}", err(&log));
    assert!(out(&log).contains("insert t: id=100 "), "{}", out(&log));
    let restored = place.path().join("restored");
    let report_of = json(&["restore", "PATH", text(&restored), "--no-open", "--format", "json"], &target);
    assert_eq!((&report_of["opened"], &report_of["records"]), (&false.into(), &report.records.into()));
    let rows = dump(&restored).lines().count() as u64 - 1;
    assert_eq!(rows, 100 + report.records);
}

#[test]
fn restore_says_everything_that_is_wrong_at_once() {
    let place = TestDirectory::new("refused");
    let data = made(place.path(), 20);
    let target = place.path().join("copy");
    json(&["backup", "PATH", text(&target), "--format", "json"], &data);
    let manifest = target.join("archive/0000000001/manifest.json");
    std::fs::write(&manifest, b"{}").unwrap();
    let output = albireo(&["restore", "PATH", text(&data)], &target);
    assert_eq!(output.status.code(), Some(1));
    for reason in [" is not empty", "instead of"] {
        assert!(err(&output).contains(reason), "{reason}: {}", err(&output));
    }
    let nothing = place.path().join("nothing");
    let output = albireo(&["restore", "PATH", text(&nothing)], &place.path().join("missing"));
    assert!(err(&output).contains("there is no backup at"), "{}", err(&output));
    assert!(!nothing.exists());
}

#[test]
fn restore_to_a_disk_that_is_too_small_is_refused_before_it_begins() {
    let mounted = match Mounted::new(1) {
        Ok(mounted) => mounted,
        Err(error) => {
            eprintln!("SKIPPED: a test needs a small file system, which cannot be mounted: {error}");
            return;
        }
    };
    let place = TestDirectory::new("small");
    let data = made(place.path(), 20);
    let target = place.path().join("copy.tar");
    json(&["backup", "PATH", text(&target), "--format", "json"], &data);
    let filler = mounted.fill();
    let directory = mounted.path().join("restored");
    let output = albireo(&["restore", "PATH", text(&directory), "--no-open"], &target);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("53100"), "{}", err(&output));
    assert!(err(&output).contains("bytes, and there are"), "{}", err(&output));
    assert!(!directory.exists(), "nothing was made");
    // A backup that runs out of room leaves nothing either.
    let db = Database::open(&data, config()).unwrap();
    let error = db.backup(mounted.path().join("b"), &BackupOptions::default(), |_| {}).unwrap_err();
    assert_eq!(error.state(), albireo::SqlState::DISK_FULL, "{error}");
    assert!(!mounted.path().join("b").exists());
    std::fs::remove_file(filler).unwrap();
    db.backup(mounted.path().join("b"), &BackupOptions::default(), |_| {}).unwrap();
}

#[test]
fn killed_restore_and_killed_backup_are_refused_later() {
    let place = TestDirectory::new("killed");
    let data = made(place.path(), 2_000);
    let target = place.path().join("copy");
    json(&["backup", "PATH", text(&target), "--format", "json"], &data);
    let restored = place.path().join("restored");
    kill_at(&["restore", text(&target), text(&restored), "--limit-rate", "20K"], &restored.join("archive"));
    let output = albireo(&["shell", "--data", "PATH", "-c", "SELECT 1"], &restored);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("was not restored wholly"), "{}", err(&output));
    assert!(err(&output).contains("HINT: Remove the directory, and restore again."), "{}", err(&output));
    let output = albireo(&["restore", "PATH", text(&restored)], &target);
    assert!(err(&output).contains("is not empty"), "{}", err(&output));

    for (name, appears) in [("half", "half/archive"), ("half.tar", "half.tar.tmp")] {
        let half = place.path().join(name);
        let arguments = ["backup", text(&data), text(&half), "--limit-rate", "20K"];
        kill_at(&arguments, &place.path().join(appears));
        let output = albireo(&["restore", "PATH", text(&place.path().join("new"))], &half);
        assert_eq!(output.status.code(), Some(1), "{}", out(&output));
        let said = if name == "half" { "was not finished" } else { "there is no backup at" };
        assert!(err(&output).contains(said), "{}", err(&output));
        let output = albireo(&["verify", "PATH"], &half);
        assert_eq!(output.status.code(), Some(1), "{}", out(&output));
    }
    assert_eq!(dump(&data).lines().count(), 2_001, "the database is as it was");
}

/// Starts the program and kills it when a file is there.
fn kill_at(arguments: &[&str], appears: &Path) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_albireo"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut ended = None;
    wait_until("the file appears", || {
        ended = child.try_wait().expect("it can be asked");
        appears.exists() || ended.is_some()
    });
    assert_eq!(ended, None, "{arguments:?} ended by itself");
    child.kill().expect("it can be killed");
    child.wait().expect("it has ended");
}
