//! Evicted chunks most of whose rows are gone: what is left of them moves, where memory has room for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use albireo::{Config, Database, Eviction, FreezeSchedule, Outcome};
use albireo_env::{Clock, CrashDisk, Env};

use crate::support::{ask, rows_stay, run, small, state};

const MINUTE: Duration = Duration::from_secs(60);
const STATES: &str = "SELECT chunk, state, rows FROM albireo.chunks WHERE \"table\" = 't' ORDER BY 1";
const SUMS: &str = "SELECT count(*), sum(a), min(b), max(b), sum(length(b)) FROM t";

/// A database in memory whose rows go to `/cold` of a disk. Its clock stands still: nothing is frozen for its age.
fn database(disk: &CrashDisk, config: Config) -> Database {
    let freeze = FreezeSchedule { after: Some(MINUTE) };
    let env = Env { clock: Clock::simulated().0, disk: Arc::new(disk.clone()), ..Env::real() };
    Database::with_env(Config { eviction: Eviction::To("/cold".into()), freeze, ..config }, env).unwrap()
}

/// Three evicted chunks: one without rows, one with a quarter of them, and one with three quarters.
fn with_holes(db: &Database) {
    run(db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL)");
    run(db, "INSERT INTO t SELECT g, 'a text that is long ' || g FROM generate_series(0, 49151) s (g)");
    run(db, "CALL albireo.freeze('t')");
    db.evict_frozen();
    run(db, "DELETE FROM t WHERE a < 16384");
    run(db, "DELETE FROM t WHERE a BETWEEN 16384 AND 32767 AND a % 4 <> 0");
    run(db, "DELETE FROM t WHERE a > 32767 AND a % 4 = 0");
    db.evict_frozen();
    assert_eq!(ask(db, STATES), "0,evicted,0 1,evicted,4096 2,evicted,12288");
}

/// What a look has done: rows that moved, chunks that were emptied, and those that could not be fetched.
fn look(db: &Database) -> (u64, u64, u64) {
    let report = db.freeze_if_due().unwrap();
    (report.moved, report.emptied, report.unfetched)
}

/// Why the second chunk is as it is.
fn reason(db: &Database) -> String {
    ask(db, "SELECT reason FROM albireo.chunks WHERE \"table\" = 't' AND chunk = 1")
}

/// What `CALL albireo.freeze` says.
fn freeze(db: &Database) -> String {
    match db.execute("CALL albireo.freeze('t')").unwrap().remove(0) {
        Outcome::Done { notices, .. } => notices.join("\n"),
        other => panic!("{other:?}"),
    }
}

/// Files of evicted rows, with what is in them.
fn cold_files(disk: &CrashDisk) -> Vec<(PathBuf, Vec<u8>)> {
    disk.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "cold")).collect()
}

#[test]
fn what_is_left_of_an_evicted_chunk_of_holes_moves_to_memory() {
    if !rows_stay() {
        return;
    }
    let disk = CrashDisk::new(1);
    let db = database(&disk, small());
    with_holes(&db);
    let before = ask(&db, SUMS);
    assert_eq!(reason(&db), "most of its rows are gone, the others wait for a look and for memory");
    // Whoever has read a row in an open transaction holds on to its address: nothing is fetched for nothing.
    let reader = db.connect();
    reader.execute("BEGIN; SELECT b FROM t WHERE a = 40001").unwrap();
    db.evict_frozen();
    assert_eq!(look(&db), (0, 0, 0));
    assert_eq!(ask(&db, "SELECT state FROM albireo.chunks WHERE chunk < 2"), "evicted evicted");
    reader.execute("COMMIT").unwrap();
    db.evict_frozen();
    assert_eq!(look(&db), (4096, 2, 0));
    assert_eq!(ask(&db, STATES), "0,hot,4096 1,empty,0 2,evicted,12288");
    assert_eq!(ask(&db, SUMS), before);
    assert_eq!(
        ask(&db, "SELECT a, b FROM t WHERE a IN (16384, 16385, 32764) ORDER BY a"),
        "16384,a text that is long 16384 32764,a text that is long 32764"
    );
    // It may be frozen, and leave, like any other.
    freeze(&db);
    db.evict_frozen();
    assert_eq!(ask(&db, STATES), "0,evicted,4096 1,empty,0 2,evicted,12288");
    assert_eq!(ask(&db, SUMS), before);
    assert_eq!(look(&db), (0, 0, 0));
}

#[test]
fn call_fetches_what_is_left_of_an_evicted_chunk_of_holes() {
    if !rows_stay() {
        return;
    }
    let db = database(&CrashDisk::new(1), small());
    with_holes(&db);
    let before = ask(&db, SUMS);
    let said = freeze(&db);
    assert!(said.contains("2 frozen chunks emptied") && said.contains("4096 rows moved"), "{said}");
    assert_eq!(ask(&db, SUMS), before);
    assert_eq!(look(&db), (0, 0, 0), "there is nothing left to do");
}

#[test]
fn chunk_of_holes_that_cannot_be_read_is_not_read_again_by_itself() {
    if !rows_stay() {
        return;
    }
    let disk = CrashDisk::new(1);
    let db = database(&disk, small());
    with_holes(&db);
    let files = cold_files(&disk);
    files.iter().for_each(|(path, _)| disk.damage(path, Vec::clear));
    assert_eq!(look(&db), (0, 1, 1), "a chunk without rows goes without being read");
    assert_eq!(ask(&db, STATES), "0,empty,0 1,evicted,4096 2,evicted,12288");
    let why = reason(&db);
    assert!(why.starts_with("most of its rows are gone, the others cannot be read: "), "{why}");
    assert!(files.iter().any(|(path, _)| why.contains(path.to_str().unwrap())), "{why}");
    let operations = disk.operations();
    assert_eq!((look(&db), look(&db)), ((0, 0, 0), (0, 0, 0)));
    assert_eq!(disk.operations(), operations, "nobody tries again");
    let said = freeze(&db);
    assert!(said.contains("1 evicted chunks left as they are"), "{said}");
    for (path, bytes) in &files {
        disk.damage(path, |damaged| damaged.clone_from(bytes));
    }
    assert_eq!(look(&db), (0, 0, 0));
    let said = freeze(&db);
    assert!(said.contains("1 frozen chunks emptied") && said.contains("4096 rows moved"), "{said}");
    let sums = "SELECT count(*), sum(a) FROM t";
    let right =
        "SELECT count(*), sum(g) FROM generate_series(16384, 49151) s (g) WHERE (g < 32768) = (g % 4 = 0)";
    assert_eq!(ask(&db, sums), ask(&db, right));
}

#[test]
fn chunk_of_holes_stays_where_it_is_while_memory_is_short() {
    if !rows_stay() {
        return;
    }
    let db = database(&CrashDisk::new(1), Config { data_limit_bytes: 48 << 20, ..small() });
    with_holes(&db);
    let before = ask(&db, SUMS);
    // Its rows stay in memory, whoever needs room.
    run(&db, "CREATE TABLE u (a INTEGER, b TEXT) WITH (freeze = off)");
    let insert = "INSERT INTO u SELECT g, repeat('x', 1000) FROM generate_series(1, 500) s (g)";
    let most = (0..1000).take_while(|_| db.execute(insert).is_ok()).count();
    let refused = db.execute(insert).expect_err("memory is full");
    assert_eq!(state(&refused), "53200", "{refused}");
    // What had no rows was let go of by whoever looked for room.
    assert_eq!(look(&db), (0, 0, 1));
    assert_eq!(ask(&db, STATES), "0,empty,0 1,evicted,4096 2,evicted,12288");
    assert_eq!(reason(&db), "most of its rows are gone, the others wait for a look and for memory");
    assert_eq!(ask(&db, SUMS), before);
    // Nor is it fetched where there were just room for it.
    run(&db, "TRUNCATE u");
    (6..most).for_each(|_| run(&db, insert));
    assert_eq!(look(&db), (0, 0, 1));
    run(&db, "DROP TABLE u");
    assert_eq!(look(&db), (4096, 1, 0));
    assert_eq!(ask(&db, SUMS), before);
}
