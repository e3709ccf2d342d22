//! Archives by themselves: when they are due, what happens when they fail, and how they end.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use albireo::{CheckpointOptions, CheckpointSchedule, Config, Database, Durability, SqlState};
use albireo_env::{Disk, Env, MemoryDisk, SimulatedClock};
use albireo_testing::wait_until;

use crate::support::{ask, rows_stay, run};

const MINUTE: Duration = Duration::from_secs(60);

fn config(checkpoint: CheckpointSchedule) -> Config {
    Config { query_threads: 1, log_segment_bytes: 64 << 10, checkpoint, ..Config::default() }
}

fn open(disk: &MemoryDisk, checkpoint: CheckpointSchedule) -> Database {
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    Database::open_in("/data", config(checkpoint), env).unwrap()
}

/// Whose log and archives make their steps when they are told to.
fn stepped(disk: &MemoryDisk, checkpoint: CheckpointSchedule) -> (Database, SimulatedClock) {
    let (env, hand) = Env::simulated(7);
    let env = Env { disk: Arc::new(disk.clone()), ..env };
    let config = Config { durability: Durability::Async, ..config(checkpoint) };
    (Database::open_stepped("/data", config, env).unwrap(), hand)
}

fn settle(db: &Database) {
    while !matches!(db.log().unwrap().step(), albireo_redo::Step::Idle) {}
}

fn insert(db: &Database, rows: u32) {
    let text = format!("INSERT INTO t SELECT a, repeat('x', 100) FROM generate_series(1, {rows}) AS g(a)");
    run(db, &text);
}

/// So slowly that it never ends.
fn slowly() -> CheckpointSchedule {
    let options = CheckpointOptions { bytes_per_second: NonZeroU64::new(100), keep: 2 };
    CheckpointSchedule { every: Some(Duration::from_millis(10)), log_bytes: None, options }
}

#[test]
fn archive_is_due_by_time_if_the_log_has_grown_and_by_the_log_at_any_time() {
    let schedule = CheckpointSchedule {
        every: Some(15 * MINUTE),
        log_bytes: Some(300 << 10),
        options: CheckpointOptions::default(),
    };
    let disk = MemoryDisk::default();
    let (db, hand) = stepped(&disk, schedule.clone());
    hand.advance(20 * MINUTE);
    assert!(!db.checkpoint_due() && db.checkpoint_if_due().is_none(), "nothing has changed");
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    settle(&db);
    assert!(db.checkpoint_due());
    assert_eq!(db.checkpoint_if_due().unwrap().unwrap().number, 1);
    hand.advance(20 * MINUTE);
    assert!(!db.checkpoint_due(), "nothing has changed since then");
    insert(&db, 10);
    settle(&db);
    assert!(db.checkpoint_due());
    assert_eq!(db.checkpoint_if_due().unwrap().unwrap().rows, 10);
    hand.advance(14 * MINUTE);
    insert(&db, 10);
    settle(&db);
    assert!(!db.checkpoint_due(), "neither the time nor the log");
    insert(&db, 4000);
    settle(&db);
    assert!(db.archive_status().log_bytes > 300 << 10);
    assert!(db.checkpoint_due());
    drop(db);
    // What opening had to read counts: it would have to again.
    let (db, hand) = stepped(&disk, schedule);
    assert!(db.checkpoint_due());
    assert_eq!(db.checkpoint_if_due().unwrap().unwrap().rows, 4020);
    assert!(!db.checkpoint_due());
    assert_eq!(db.archive_status().log_bytes, 0);
    hand.advance(20 * MINUTE);
    assert!(!db.checkpoint_due());
    assert_eq!(db.archive_status().last.unwrap().number, 3);
}

#[test]
fn attempt_that_fails_is_noted_and_tried_again_later_and_later() {
    let schedule = CheckpointSchedule { every: Some(MINUTE), ..CheckpointSchedule::default() };
    let disk = MemoryDisk::with_capacity(4 << 20);
    let (db, hand) = stepped(&disk, schedule);
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    insert(&db, 10_000);
    settle(&db);
    db.log().unwrap().prepare();
    let room = disk.free_bytes(Path::new("/data")).unwrap();
    disk.put("/filler", &vec![1; (room - 1000) as usize]);
    hand.advance(MINUTE);
    let mut waited = Vec::new();
    for failures in 1..=4 {
        let error = db.checkpoint_if_due().expect("it is due").unwrap_err();
        assert_eq!(error.state(), SqlState::DISK_FULL, "{error}");
        let status = db.archive_status();
        assert_eq!((status.failures, status.last), (failures, None));
        assert_eq!(status.failure.unwrap().state(), SqlState::DISK_FULL);
        assert!(status.running.is_none() && !db.checkpoint_due());
        waited.push(status.retry_in.unwrap());
        hand.advance(status.retry_in.unwrap());
    }
    assert!(waited.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{waited:?}");
    disk.remove_file(Path::new("/filler")).unwrap();
    assert_eq!(db.checkpoint_if_due().unwrap().unwrap().rows, 10_000);
    let status = db.archive_status();
    assert!(status.failure.is_none() && status.failures == 0 && status.retry_in.is_none());
}

#[test]
fn thread_writes_archives_and_the_log_behind_them_goes() {
    let disk = MemoryDisk::default();
    let schedule = CheckpointSchedule { every: None, log_bytes: Some(200 << 10), ..Default::default() };
    let db = open(&disk, schedule.clone());
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    insert(&db, 5000);
    wait_until("there is an archive", || db.archive_status().last.is_some());
    insert(&db, 5000);
    wait_until("there is another", || db.archive_status().last.unwrap().number > 1);
    insert(&db, 5000);
    wait_until("and a third", || db.archive_status().last.unwrap().number > 2);
    assert!(disk.get("/data/archive/0000000001/manifest.json").is_none(), "two are kept");
    assert!(disk.get("/data/log/00000000000000000001.log").is_none(), "nobody needs the beginning");
    drop(db);
    let db = open(&disk, schedule);
    assert!(db.recovery().archive.unwrap() >= 3);
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "15000");
}

#[test]
fn closing_gives_up_an_archive_that_is_being_written() {
    let disk = MemoryDisk::default();
    let db = open(&disk, slowly());
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    insert(&db, 40_000);
    wait_until("it is being written", || db.archive_status().running.is_some_and(|now| now.rows_done > 0));
    run(&db, "INSERT INTO t VALUES (0, 'while it is written')");
    // Of the empty table there may be one.
    let complete = db.archive_status().last.map(|report| report.number);
    let other = db.clone();
    drop(db);
    assert!(other.archive_status().running.is_some(), "somebody still has it open");
    // Would not come back before the archive is written, which takes hours.
    drop(other);
    let db = open(&disk, CheckpointSchedule::never());
    assert_eq!((db.recovery().archive, db.recovery().archive_rows), (complete, 0));
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "40001");
}

#[test]
fn archive_that_is_asked_for_takes_the_place_of_a_slow_one_of_the_schedule() {
    let disk = MemoryDisk::default();
    let db = open(&disk, slowly());
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    insert(&db, 40_000);
    wait_until("it is being written", || db.archive_status().running.is_some_and(|now| now.rows_done > 0));
    run(&db, "CHECKPOINT");
    let status = db.archive_status();
    assert_eq!(status.last.unwrap().rows, 40_000);
    assert!(status.failure.is_none(), "giving way is no failure: {status:?}");
}

#[test]
fn schedule_out_of_range_is_refused() {
    let wrong = [
        CheckpointSchedule { every: Some(Duration::ZERO), ..Default::default() },
        CheckpointSchedule { log_bytes: Some(0), ..Default::default() },
        CheckpointSchedule {
            options: CheckpointOptions { keep: 0, ..Default::default() },
            ..Default::default()
        },
    ];
    for schedule in wrong {
        let error = Database::in_memory(config(schedule)).err().expect("it is out of range");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    }
}

#[test]
fn archive_after_a_restart_refers_to_files_whose_rows_are_where_they_were() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let open = || {
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        let checkpoint = CheckpointSchedule::never();
        Database::open_in("/data", Config { partitions: 2, checkpoint, ..Config::default() }, env).unwrap()
    };
    let files = |db: &Database| {
        let report = db.checkpoint().unwrap();
        (report.files_written, report.files_reused)
    };
    let rows = |db: &Database| ask(db, "SELECT count(*), sum(a), min(b), max(b) FROM t");
    let mut db = open();
    // So wide that a file has one chunk: two files and some rows in a third in each partition of t; one of u.
    run(
        &db,
        "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR(128), c VARCHAR(128), d VARCHAR(128), e VARCHAR(128),
             f VARCHAR(128), g VARCHAR(128), h VARCHAR(128)) PARTITION BY HASH (a);
         CREATE TABLE u (a INTEGER);
         INSERT INTO t (a, b) SELECT a, 'b' FROM generate_series(1, 80000) AS g(a); INSERT INTO u VALUES (1)",
    );
    assert_eq!(files(&db), (7, 0));
    let reopen = |db: &mut Database| {
        let before = rows(db);
        *db = {
            drop(std::mem::replace(db, crate::support::database()));
            open()
        };
        assert_eq!(rows(db), before);
    };
    reopen(&mut db);
    assert_eq!(files(&db), (0, 7), "nothing has changed");
    reopen(&mut db);
    // What the log does again counts as changed, as what is done now does.
    run(&db, "UPDATE t SET b = 'x' WHERE a = 2");
    reopen(&mut db);
    run(&db, "INSERT INTO u VALUES (2)");
    assert_eq!(files(&db), (2, 5));
    reopen(&mut db);
    assert_eq!(ask(&db, "SELECT b FROM t WHERE a = 2"), "x");
    // A row that is gone: behind it, in its partition, all move up.
    run(&db, "DELETE FROM t WHERE a = 4");
    assert_eq!(files(&db), (1, 6));
    reopen(&mut db);
    assert_eq!(files(&db), (3, 4));
    reopen(&mut db);
    assert_eq!(files(&db), (0, 7));
    run(&db, "DELETE FROM t WHERE a <> 1; INSERT INTO t (a, b) VALUES (-1, 'y')");
    reopen(&mut db);
    assert_eq!(rows(&db), ask(&db, "SELECT 2, 0, 'b', 'y'"));
    db.checkpoint().unwrap();
    reopen(&mut db);
    db.checkpoint().unwrap();
    assert_eq!(rows(&db), ask(&db, "SELECT 2, 0, 'b', 'y'"));
}
