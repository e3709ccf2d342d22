//! Recovery: on any number of threads the same, after crashes of its own, and refused where files are missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo::{Config, Database, Durability, RecoveryReport, SqlError, SqlState, Value};
use albireo_env::{CrashDisk, Env};

const HOME: &str = "/data";

pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn disk_of(files: &Files) -> CrashDisk {
    let disk = CrashDisk::new(1);
    files.iter().for_each(|(path, bytes)| disk.put(path, bytes));
    disk
}

pub(crate) fn env_of(disk: &CrashDisk) -> Env {
    Env { disk: Arc::new(disk.clone()), ..Env::real() }
}

pub(crate) fn config(partitions: u16, threads: usize) -> Config {
    Config {
        partitions,
        query_threads: 1,
        log_segment_bytes: 256 << 10,
        recovery_threads: threads,
        ..Config::default()
    }
}

fn try_open(disk: &CrashDisk, partitions: u16, threads: usize) -> Result<Database, SqlError> {
    Database::open_in(HOME, config(partitions, threads), env_of(disk))
}

fn open(disk: &CrashDisk, partitions: u16, threads: usize) -> Database {
    try_open(disk, partitions, threads).unwrap_or_else(|error| panic!("{error}"))
}

/// All rows of all tables, each table's sorted.
pub(crate) fn all_rows(db: &Database) -> Vec<Vec<String>> {
    let tables: Vec<String> = db.catalog().tables().map(|table| table.name.clone()).collect();
    let rows = |table: &String| {
        let rows = db.query(&format!("SELECT * FROM {table}"), &[]).unwrap().rows();
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{table} {row:?}")).collect();
        rows.sort();
        rows
    };
    tables.iter().map(rows).collect()
}

/// A report without times.
fn timeless(report: RecoveryReport) -> RecoveryReport {
    RecoveryReport { load_ns: 0, replay_ns: 0, ..report }
}

/// Transactions of single partitions, among them crossing ones and definitions; some 4 MB of log for 5,000 rows.
fn work(db: &Database, rows: i32) {
    db.execute(
        "CREATE TABLE part (id INTEGER PRIMARY KEY, n BIGINT NOT NULL, t TEXT) PARTITION BY HASH (id);
         CREATE TABLE heap (id INTEGER, t TEXT) PARTITION BY HASH (id);
         CREATE TABLE rate (id INTEGER UNIQUE, n BIGINT)",
    )
    .unwrap();
    let text = "some text that takes room ".repeat(25);
    for id in 0..rows {
        let values = [Value::Integer(id), Value::Text(format!("{id} {text}"))];
        db.execute_with("INSERT INTO part VALUES ($1, 0, $2)", &values).unwrap();
        db.execute_with("INSERT INTO heap VALUES ($1, 'x')", &values[..1]).unwrap();
        db.execute_with("UPDATE part SET n = n + $1 WHERE id = $1", &values[..1]).unwrap();
        match id % 1_000 {
            100 => drop(db.execute("UPDATE part SET n = n + 1 WHERE id < 50").unwrap()),
            300 => drop(db.execute_with("INSERT INTO rate VALUES ($1, 1)", &values[..1]).unwrap()),
            500 => drop(db.execute(&format!("CREATE TABLE late{id} (a INTEGER PRIMARY KEY)")).unwrap()),
            501..510 => drop(db.execute(&format!("INSERT INTO late{} VALUES ({id})", id / 10 * 10)).unwrap()),
            700 => drop(db.execute("DELETE FROM heap WHERE id % 3 = 0").unwrap()),
            900 => drop(db.execute("UPDATE rate SET n = n * 2; CREATE INDEX ON part (n)").unwrap()),
            _ => {}
        }
    }
}

/// The files of a database that has done work, and its rows.
fn worked(partitions: u16, rows: i32) -> (Files, Vec<Vec<String>>) {
    let disk = CrashDisk::new(1);
    let setup = Config { durability: Durability::Async, ..config(partitions, 1) };
    let db = Database::open_in(HOME, setup, env_of(&disk)).unwrap();
    work(&db, rows);
    let rows = all_rows(&db);
    drop(db);
    (disk.files(), rows)
}

#[test]
fn threads_recover_the_same_rows_as_one() {
    for partitions in [1, 4] {
        let (files, rows) = worked(partitions, 5_000);
        let log: usize = files.values().map(Vec::len).sum();
        assert!(log > 2 << 20, "{log} bytes of log are too few for threads to be used");
        let serial = open(&disk_of(&files), partitions, 1);
        assert_eq!(all_rows(&serial), rows);
        for threads in [2, 4, 9] {
            let db = open(&disk_of(&files), partitions, threads);
            assert_eq!(timeless(db.recovery()), timeless(serial.recovery()));
            assert_eq!(all_rows(&db), rows, "{threads} threads, {partitions} partitions");
            assert!(db.execute("INSERT INTO part VALUES (7, 0, '')").is_err(), "the index is there");
        }
    }
}

#[test]
fn crashes_while_recovering_lose_nothing() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 2, 1);
    work(&db, 40);
    db.execute("CHECKPOINT; INSERT INTO rate VALUES (-1, 0); INSERT INTO part VALUES (-1, 0, 'last')")
        .unwrap();
    let rows = all_rows(&db);
    disk.crash();
    drop(db);
    let files = disk.files();
    let mut crashed = 0;
    let test = albireo_testing::test!();
    test.for_each_seed(0..20, |seed| {
        let disk = CrashDisk::new(seed);
        files.iter().for_each(|(path, bytes)| disk.put(path, bytes));
        for crash in 0..3 {
            disk.crash_at(disk.operations() + 5 + (seed * 7 + crash * 13) % 60);
            let opened = try_open(&disk, 2, 2);
            crashed += usize::from(disk.is_down());
            drop(opened);
            disk.crash_at(u64::MAX);
            disk.restart();
        }
        let db = open(&disk, 2, 2);
        assert_eq!(all_rows(&db), rows);
    });
    assert!(crashed > 30 || !test.has_usual_seeds(), "{crashed} crashes");
}

fn is_log(path: &Path) -> bool {
    path.starts_with("/data/log")
}

fn only(files: &Files, keep: impl Fn(&Path) -> bool) -> Files {
    files.iter().filter(|(path, _)| keep(path)).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

fn refusal(files: &Files) -> SqlError {
    let error = try_open(&disk_of(files), 2, 2).err().expect("it is refused");
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
    error
}

#[test]
fn log_that_ends_before_its_archive_is_refused() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 2, 1);
    work(&db, 20);
    drop(db);
    let before = disk.files();
    let db = open(&disk, 2, 1);
    let (logged, rows_before) = (db.recovery().records, all_rows(&db));
    db.execute("INSERT INTO rate VALUES (1000, 0); CHECKPOINT").unwrap();
    let rows = all_rows(&db);
    drop(db);
    let after = disk.files();
    assert_eq!(all_rows(&open(&disk_of(&after), 2, 2)), rows, "the archive and no record behind it");
    // Its log is that of before.
    let mut mixed = only(&after, |path| !is_log(path));
    mixed.extend(only(&before, is_log));
    let error = refusal(&mixed);
    assert!(error.message().contains("archive 1 has what is in frames up to"), "{error}");
    let hint = error.hint().unwrap().to_owned();
    // There is no log at all.
    let alone = only(&after, |path| !is_log(path));
    let error = refusal(&alone);
    assert!(error.message().contains("but the log has no frame in /data/log"), "{error}");
    assert_eq!(error.hint(), Some(hint.as_str()));
    // What is in the log that is left can be had.
    let disk = disk_of(&mixed);
    let target = albireo::RecoveryTarget::Record(logged);
    Database::recover_copy(HOME, "/new", target, config(1, 2), &env_of(&disk), &mut |_| {}).unwrap();
    let db = Database::open_in("/new", config(2, 2), env_of(&disk)).unwrap();
    assert_eq!(all_rows(&db), rows_before);
    // What the hint says gives what the archive has.
    let record: u64 = hint.rsplit(' ').next().unwrap().parse().unwrap();
    for files in [&mixed, &alone] {
        let disk = disk_of(files);
        let target = albireo::RecoveryTarget::Record(record);
        let copy =
            |target| Database::recover_copy(HOME, "/new", target, config(1, 2), &env_of(&disk), &mut |_| {});
        assert_eq!(copy(albireo::RecoveryTarget::End).unwrap_err().state(), SqlState::DATA_CORRUPTED);
        copy(target).unwrap();
        let db = Database::open_in("/new", config(2, 2), env_of(&disk)).unwrap();
        assert_eq!(all_rows(&db), rows);
    }
}

#[test]
fn archive_of_a_database_that_never_logged_needs_no_log() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 2, 1);
    db.execute("CHECKPOINT").unwrap();
    drop(db);
    let files = only(&disk.files(), |path| !is_log(path));
    let disk = disk_of(&files);
    for n in 0..3 {
        let db = open(&disk, 2, 2);
        assert_eq!((db.recovery().archive, db.recovery().records), (Some(1), n));
        db.execute(&format!("CREATE TABLE t{n} (a INTEGER)")).unwrap();
    }
}

#[test]
fn log_without_its_beginning_is_refused() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 2, 1);
    for n in 0..4 {
        let filler = "x".repeat(200_000);
        db.execute(&format!("CREATE TABLE t{n} (a TEXT); INSERT INTO t{n} VALUES ('{filler}')")).unwrap();
        db.execute("CHECKPOINT").unwrap();
    }
    drop(db);
    let files = only(&disk.files(), |path| !path.starts_with("/data/archive"));
    let error = refusal(&files);
    assert!(
        error.message().contains("the beginning of the redo log is missing: it begins with frame"),
        "{error}"
    );
}

#[test]
fn newest_archive_is_the_one_that_is_named_when_none_can_be_loaded() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 2, 1);
    db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    db.execute("INSERT INTO t VALUES (2); CHECKPOINT").unwrap();
    drop(db);
    let files = disk.files();
    disk.flip_bit("/data/archive/0000000001/manifest.json", 400);
    let newest = files.keys().find(|path| {
        path.starts_with("/data/archive/0000000002") && path.extension().is_some_and(|end| end == "arrow")
    });
    disk.flip_bit(newest.unwrap(), 4_000);
    let error = refusal(&disk.files());
    assert!(error.message().starts_with("no archive can be loaded; the newest is 2: "), "{error}");
}

#[test]
fn log_that_lost_its_only_file_s_contents_is_not_taken_for_a_new_one_in_silence() {
    let disk = CrashDisk::new(1);
    let db = open(&disk, 1, 1);
    assert_eq!(db.recovery().notices, [""; 0]);
    db.execute("CREATE TABLE t (a INTEGER)").unwrap();
    let mut files = disk.files();
    drop(db);
    // A crash came before the control files said that anything was durable, and before there was a next segment.
    files.retain(|path, _| path.ends_with("00000000000000000001.log"));
    assert_eq!(files.len(), 1);
    files.values_mut().for_each(Vec::clear);
    let recovery = open(&disk_of(&files), 1, 1).recovery();
    assert!(
        matches!(&recovery.notices[..], [notice] if notice.contains("00001.log has no header")),
        "{recovery:?}"
    );
}
