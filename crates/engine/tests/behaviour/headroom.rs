//! Memory that is full: deleting, archives, closing and opening go on.

use std::sync::Arc;

use albireo::{BudgetPolicy, Config, Database, SqlState};
use albireo_env::{Env, MemoryDisk};

use crate::support::{ask, fails, rows_stay, run};

fn open(disk: &MemoryDisk) -> Database {
    open_with(disk, BudgetPolicy::default())
}

fn open_with(disk: &MemoryDisk, snapshot_policy: BudgetPolicy) -> Database {
    let config =
        Config { query_threads: 1, data_limit_bytes: 32 << 20, snapshot_policy, ..Config::default() };
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    Database::open_in("/data", config, env).unwrap()
}

/// Inserts until memory refuses; how many rows there are then. Small transactions at the end leave no room.
fn fill(db: &Database, from: u32) -> u32 {
    let mut next = from;
    for rows in [2000, 50] {
        loop {
            let last = next + rows;
            let insert = format!(
                "INSERT INTO t SELECT a, a % 7, repeat('x', 150) || a FROM generate_series({next}, {}) AS g(a)",
                last - 1
            );
            match db.execute(&insert) {
                Ok(_) => next = last,
                Err(error) => {
                    assert_eq!(error.state(), SqlState::OUT_OF_MEMORY, "{error}");
                    break;
                }
            }
        }
    }
    next
}

#[test]
fn rows_go_and_others_come_in_a_full_memory_and_all_is_there_after_a_restart() {
    if !rows_stay() {
        return;
    }
    for archives in [true, false] {
        let checkpoint = |db: &Database| {
            if archives {
                run(db, "CHECKPOINT")
            }
        };
        let disk = MemoryDisk::default();
        let db = open(&disk);
        run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT); CREATE INDEX ON t (b)");
        let full = fill(&db, 0);
        assert!(full > 20_000, "{full}");
        checkpoint(&db);
        drop(db);
        let db = open(&disk);
        assert_eq!(ask(&db, "SELECT count(*) FROM t"), full.to_string(), "it opens while memory is full");
        run(&db, &format!("DELETE FROM t WHERE a < {}", full / 2));
        let again = fill(&db, full);
        assert!(again > full + full / 3, "half was made room for, and {} rows came", again - full);
        checkpoint(&db);
        run(&db, &format!("DELETE FROM t WHERE a >= {}", again - 10));
        let query = "SELECT count(*), sum(a), sum(b), sum(length(c)) FROM t";
        let before = db.query(query, &[]).unwrap().rows();
        drop(db);
        let db = open(&disk);
        assert_eq!(db.recovery().archive.is_some(), archives);
        assert_eq!(db.query(query, &[]).unwrap().rows(), before);
    }
}

#[test]
fn deleting_while_snapshots_hold_memory_takes_what_is_kept_for_it() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = open_with(&disk, BudgetPolicy::RefuseNew);
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT)");
    let full = fill(&db, 0);
    // Each of them keeps a bitmap of the rows that were live: more than what is left of any slab.
    let mut sessions = Vec::new();
    for row in 0..1500 {
        sessions.push(db.begin_read_only().unwrap());
        run(&db, &format!("DELETE FROM t WHERE a = {row}"));
    }
    let error = fails(&db, "INSERT INTO t SELECT a + 1000000, 1, c || c FROM t");
    assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
    let counted = sessions[700].query("SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(counted.value(0, 0).to_string(), (full - 700).to_string());
    run(&db, "CHECKPOINT");
    drop(sessions);
    run(&db, "INSERT INTO t SELECT a, 1, 'again' FROM generate_series(0, 1499) AS g(a)");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), full.to_string());
}

#[test]
fn statement_refused_for_memory_is_not_tried_again_with_all_others_waiting() {
    let config = Config { query_threads: 1, data_limit_bytes: 32 << 20, ..Config::default() };
    let db = Database::in_memory(config).unwrap();
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT)");
    let mut next = fill(&db, 0);
    let failed = || db.statistics().transactions.rolled_back;
    loop {
        let before = failed();
        next += 1;
        match db.execute(&format!("INSERT INTO t VALUES ({next}, 0, repeat('x', 500))")) {
            Ok(_) => assert_eq!(failed(), before),
            Err(error) => {
                assert_eq!(error.state(), SqlState::OUT_OF_MEMORY, "{error}");
                assert_eq!(failed(), before + 1);
                break;
            }
        }
    }
}
