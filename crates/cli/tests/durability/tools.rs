//! `albireo shell --data`, `albireo log` and `albireo verify`: arguments in, lines and an exit status out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicU32;

use albireo::{Config, Database, Durability, LogInspector};
use albireo_env::Env;
use albireo_testing::wait_until;
use serde_json::Value;

use crate::directory::TestDirectory;

pub fn albireo(arguments: &[&str], path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    let arguments = arguments.iter().map(|argument| match *argument {
        "PATH" => path.as_os_str(),
        other => other.as_ref(),
    });
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("it prints text")
}

/// Lines of `albireo log` without their times, whose form is checked.
fn untimed(lines: &str) -> Vec<String> {
    let untimed = |line: &str| {
        let (ordinal, rest) = line.split_once("  ").expect("a record has a number");
        let (time, rest) = rest.split_once("  ").expect("a record has a time");
        assert_eq!((time.len(), &time[10..11], &time[26..]), (27, "T", "Z"), "{time}");
        format!("{ordinal} {rest}")
    };
    lines.lines().map(untimed).collect()
}

const SCRIPT: &str = "
    CREATE SCHEMA s; CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, cents NUMERIC(8,2) NOT NULL)
    PARTITION BY HASH (id); CREATE TABLE s.note (t TEXT);
    CREATE FUNCTION pay(p_id integer, p_cents numeric) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN UPDATE account SET cents = cents + p_cents WHERE id = p_id; END $$;
    INSERT INTO account VALUES (1, 'Ada', 5); INSERT INTO account VALUES (2, NULL, 7.25);
    INSERT INTO s.note VALUES (E'it''s\ntwo lines');
    UPDATE account SET owner = 'Kurt', cents = cents * 2 WHERE id = 2;
    UPDATE account SET cents = cents + 1; DELETE FROM account WHERE id = 1; DROP TABLE s.note";

/// A database made by the shell.
fn made() -> TestDirectory {
    let place = TestDirectory::new("tools");
    let output = albireo(&["shell", "--data", "PATH", "--partitions", "2", "-c", SCRIPT], place.path());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).starts_with("albireo: an empty database in "), "{}", err(&output));
    place
}

#[test]
fn shell_keeps_a_database_in_a_directory() {
    let place = made();
    let query = "SELECT * FROM account";
    let output = albireo(&["shell", "-d", "PATH", "--format", "csv", "-c", query], place.path());
    assert_eq!(out(&output), "id,owner,cents\n2,Kurt,15.50\n");
    assert!(err(&output).contains(": 11 records with 7 rows from "), "{}", err(&output));
    let db = Database::open(place.path(), Config { partitions: 2, ..Config::default() }).unwrap();
    let output = albireo(&["shell", "-d", "PATH", "-c", query], place.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("is open already"), "{}", err(&output));
    drop(db);
    let output = albireo(&["shell", "-d", "PATH", "--partitions", "1", "-c", query], place.path());
    assert!(err(&output).contains("HINT: Open it with 2 partitions."), "{}", err(&output));
}

#[test]
fn log_prints_records_with_names() {
    let place = made();
    let output = albireo(&["log", "PATH"], place.path());
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    let expected = [
        "1 crossing     definition  CREATE SCHEMA s",
        "2 crossing     definition  CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, cents \
         NUMERIC(8,2) NOT NULL)\\n    PARTITION BY HASH (id)",
        "3 crossing     definition  CREATE TABLE s.note (t TEXT)",
        "4 crossing     definition  CREATE FUNCTION pay(p_id integer, p_cents numeric) RETURNS void \
         LANGUAGE plpgsql AS $$\\n    BEGIN UPDATE account SET cents = cents + p_cents WHERE id = p_id; END $$",
        "5 partition 1  write       insert account: id=1 owner='Ada' cents=5.00",
        "6 partition 0  write       insert account: id=2 owner=NULL cents=7.25",
        "7 crossing     write       insert s.note: t='it''s\\ntwo lines'",
        "8 partition 0  write       update account id=2: owner='Kurt' cents=14.50",
        "9 crossing     write       update account id=2: cents=15.50",
        "9 crossing     write       update account id=1: cents=6.00",
        "10 partition 1  write       delete account id=1",
        "11 crossing     definition  DROP TABLE s.note",
    ];
    assert_eq!(untimed(&out(&output)), expected);
}

#[test]
fn log_is_filtered_by_table_procedure_record_time_and_number() {
    let place = made();
    let numbers = |arguments: &[&str]| {
        let output = albireo(&[&["log", "PATH"], arguments].concat(), place.path());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let number = |line: &str| line.split(' ').next().unwrap().parse::<u64>().unwrap();
        let mut numbers: Vec<u64> = out(&output).lines().map(number).collect();
        numbers.dedup();
        numbers
    };
    assert_eq!(numbers(&["--table", "s.note"]), [3, 7, 11]);
    assert_eq!(numbers(&["--table", "public.account"]), [2, 5, 6, 8, 9, 10]);
    assert_eq!(numbers(&["--table", "note"]), [0_u64; 0]);
    assert_eq!(numbers(&["--procedure", "pay"]), [4]);
    assert_eq!(numbers(&["--from", "3", "--until", "5"]), [3, 4, 5]);
    assert_eq!(numbers(&["--table", "account", "--limit", "2"]), [2, 5]);
    assert_eq!(numbers(&["--limit", "0"]), [0_u64; 0]);
    assert_eq!(numbers(&["--until", "2020-01-01"]), [0_u64; 0]);
    assert_eq!(numbers(&["--from", "2020-01-01T00:00:00Z"]).len(), 11);
    let sixth = out(&albireo(&["log", "PATH", "--from", "6", "--limit", "1"], place.path()));
    let time = sixth.split("  ").nth(1).unwrap();
    let around = numbers(&["--from", time, "--until", time]);
    assert!(around.contains(&6), "{around:?} at {time}");
}

#[test]
fn log_as_json_is_an_object_on_each_line() {
    let place = made();
    let output = albireo(&["log", "PATH", "--format", "json"], place.path());
    let lines: Vec<Value> =
        out(&output).lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[2]["tables"], serde_json::json!(["s.note"]));
    assert_eq!(lines[3]["routines"], serde_json::json!(["pay"]));
    assert_eq!((&lines[7]["partition"], &lines[7]["crossing"]), (&0.into(), &false.into()));
    let row = serde_json::json!({
        "operation": "update", "table": "account", "partition": 0, "key": {"id": 2},
        "values": {"owner": "Kurt", "cents": 14.5},
    });
    assert_eq!(lines[7]["row"], row);
    assert_eq!((&lines[8]["record"], &lines[9]["record"]), (&9.into(), &9.into()));
    assert_eq!((&lines[8]["partition"], &lines[9]["row"]["key"]["id"]), (&Value::Null, &1.into()));
    assert!(out(&output).contains("\"cents\": 14.50}"), "numbers keep their digits");
}

#[test]
fn log_counts_the_rows_of_a_large_record_that_it_does_not_print() {
    let place = TestDirectory::new("large");
    let script = "CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE s (a INTEGER);
        INSERT INTO t SELECT i FROM generate_series(1, 1234) AS g(i);
        CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN DELETE FROM t WHERE a <= 5; UPDATE t SET a = a + 10000 WHERE a > 1230;
            INSERT INTO s VALUES (1), (2); END $$;
        SELECT f()";
    assert_eq!(albireo(&["shell", "-d", "PATH", "-c", script], place.path()).status.code(), Some(0));
    let log = |arguments: &[&str]| {
        let output = albireo(&[&["log", "PATH"], arguments].concat(), place.path());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let lines = untimed(&log(&["--from", "3", "--limit", "1"]));
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[99], "3 crossing     write       insert t: a=100");
    assert_eq!(lines[100], "3 crossing     write       ... and 1,134 more rows in t (1,134 inserted)");
    let last = untimed(&log(&["--from", "5", "--rows", "3"]));
    let rest = [
        "5 partition 0  write       ... and 10 more rows in t (4 inserted, 6 deleted)",
        "5 partition 0  write       ... and 2 more rows in s (2 inserted)",
    ];
    assert_eq!(last[3..], rest);
    assert_eq!(log(&["--all"]).lines().count(), 3 + 1234 + 5 + 8 + 2);
    let rest = log(&["--from", "3", "--limit", "1", "--rows", "0", "--format", "json"]);
    let rest: Value = serde_json::from_str(&rest).unwrap();
    let counts = serde_json::json!({"table": "t", "inserted": 1234, "updated": 0, "deleted": 0});
    assert_eq!((&rest["record"], &rest["more_rows"]), (&3.into(), &counts));
}

/// Rows of a record are made one by one: 400,000 of them would take more than 150 MB at once.
#[test]
#[cfg(target_os = "linux")]
fn log_of_a_large_record_needs_little_more_memory_than_the_record() {
    use std::io::{BufRead, BufReader};
    let place = TestDirectory::new("streams");
    let script = "CREATE TABLE t (a INTEGER, b TEXT, c INTEGER, d INTEGER);
        INSERT INTO t SELECT i, 'row ' || i, i, i FROM generate_series(1, 400000) AS g(i)";
    assert_eq!(albireo(&["shell", "-d", "PATH", "-c", script], place.path()).status.code(), Some(0));
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    let mut child = command.args(["log", "--all"]).arg(place.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.by_ref().nth(300_000).unwrap().unwrap();
    assert!(line.ends_with("insert t: a=300000 b='row 300000' c=300000 d=300000"), "{line}");
    // It waits for the reader of the rest meanwhile.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0), "a closed pipe is no failure");
    assert!(peak_kb < 130_000, "{peak_kb} kB");
}

#[test]
fn log_and_verify_change_nothing_and_work_while_the_database_is_open() {
    let place = TestDirectory::new("open");
    let config = Config { log_segment_bytes: 64 << 10, ..Config::default() };
    let segment_bytes = config.log_segment_bytes;
    let db = Database::open(place.path(), config).unwrap();
    db.execute("CREATE TABLE t (a INTEGER)").unwrap();
    db.execute("INSERT INTO t VALUES (1)").unwrap();
    let files = || {
        let entries = std::fs::read_dir(place.path().join("log")).unwrap();
        let mut files: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| entry.unwrap().path())
            // The control file says from time to time how far the log is.
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    // The segment after the first is prepared in the background: it has its name before its length.
    let is_whole = |file: &(PathBuf, Vec<u8>)| file.1.len() as u64 == segment_bytes;
    wait_until("there is a second segment", || files().iter().filter(|file| is_whole(file)).count() == 2);
    let before = files();
    for path in [place.path().to_owned(), place.path().join("log")] {
        let output = albireo(&["log", "PATH"], &path);
        assert_eq!((output.status.code(), out(&output).lines().count()), (Some(0), 2), "{}", err(&output));
        let output = albireo(&["verify", "PATH", "--format", "json"], &path);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &report["sound"]), (Some(0), &true.into()), "{report:#}");
        assert_eq!((&report["log"]["records"], &report["log"]["rows"]), (&2.into(), &1.into()));
    }
    assert!(files() == before, "a file was changed");
    db.execute("INSERT INTO t VALUES (2)").unwrap();
}

/// How often it is looked at while it grows.
const LOOKS: u32 = 100;
/// Rows that are inserted around each look.
const ROWS_OF_A_LOOK: u32 = 300;

/// A later frame may be seen where an earlier one was not there yet: that is no damage.
#[test]
fn log_that_is_being_written_is_never_called_damaged() {
    let place = TestDirectory::new("growing");
    let config = Config { log_segment_bytes: 1 << 20, durability: Durability::Async, ..Config::default() };
    let db = Database::open(place.path(), config).unwrap();
    db.execute("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    let (allowed, inserted) = (AtomicU32::new(0), AtomicU32::new(0));
    let order = std::sync::atomic::Ordering::Relaxed;
    let mut faults = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for a in 0..LOOKS * ROWS_OF_A_LOOK {
                wait_until("it is looked at again", || allowed.load(order) > a);
                let values = [albireo::Value::Integer(a as i32), albireo::Value::Text("x".repeat(500))];
                db.execute_with("INSERT INTO t VALUES ($1, $2)", &values).unwrap();
                inserted.fetch_add(1, order);
            }
        });
        for _ in 0..LOOKS {
            let before = inserted.load(order);
            let rows = allowed.fetch_add(ROWS_OF_A_LOOK, order) + ROWS_OF_A_LOOK;
            wait_until("it grows", || inserted.load(order) > before);
            let mut inspector = LogInspector::open(place.path(), &Env::real()).unwrap();
            inspector.visit(&mut |entry| {
                faults.extend(entry.err());
                std::ops::ControlFlow::Continue(())
            });
            wait_until("its rows are there", || inserted.load(order) == rows);
        }
    });
    assert!(faults.is_empty(), "{faults:?}");
}

/// The only segment with frames.
fn segment(place: &TestDirectory) -> PathBuf {
    place.path().join("log/00000000000000000001.log")
}

#[test]
fn torn_tail_is_a_notice() {
    let place = made();
    let mut bytes = std::fs::read(segment(&place)).unwrap();
    bytes.resize(bytes.len() + 300, 7);
    std::fs::write(segment(&place), &bytes).unwrap();
    let output = albireo(&["log", "PATH"], place.path());
    assert_eq!((output.status.code(), out(&output).lines().count()), (Some(0), 12));
    assert!(err(&output).contains("albireo: left out 300 bytes of an unfinished write"), "{}", err(&output));
    let output = albireo(&["verify", "PATH"], place.path());
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("notice: left out 300 bytes"), "{}", out(&output));
    assert!(out(&output).ends_with("\nsound\n"), "{}", out(&output));
    let output = albireo(&["shell", "-d", "PATH", "-c", "SELECT 1"], place.path());
    assert!(err(&output).contains("\nalbireo: left out 300 bytes"), "{}", err(&output));
}

#[test]
fn damage_is_told_with_its_place_and_status_1() {
    let place = made();
    let sound = albireo(&["verify", "PATH"], place.path());
    assert_eq!(sound.status.code(), Some(0));
    assert!(out(&sound).contains("    write      6 with 7 rows\n"), "{}", out(&sound));
    let mut bytes = std::fs::read(segment(&place)).unwrap();
    bytes[4096 + 3 * 512 + 70] ^= 1;
    std::fs::write(segment(&place), &bytes).unwrap();
    let output = albireo(&["log", "PATH"], place.path());
    assert_eq!((output.status.code(), out(&output).lines().count()), (Some(1), 3));
    assert!(
        err(&output).contains("00000000000000000001.log, byte 5696, record 4: frame 4 is damaged"),
        "{}",
        err(&output)
    );
    let output = albireo(&["verify", "PATH"], place.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("\nDAMAGED "), "{}", out(&output));
    assert!(out(&output).ends_with("\n1 fault\n"), "{}", out(&output));
    let output = albireo(&["verify", "PATH", "--format", "json"], place.path());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["sound"], &report["log"]["faults"][0]["offset"]), (&false.into(), &5696.into()));
}

#[test]
fn path_without_a_log_is_said() {
    let place = TestDirectory::new("empty");
    for command in ["log", "verify"] {
        let output = albireo(&[command, "PATH"], place.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("it is an empty directory"), "{}", err(&output));
        assert_eq!(albireo(&[command], place.path()).status.code(), Some(2));
    }
}
