//! Memory and the disk that rows leave it for, both full: new rows are refused, rows are read and deleted, and come again.

use std::sync::Arc;
use std::time::Duration;

use albireo::{CheckpointSchedule, Config, Database, Eviction, SqlError};
use albireo_env::{Clock, CrashDisk, Env, SimulatedClock};
use albireo_testing::wait_until;

use crate::support::{ask, rows_stay, run, small, state};

const LIMIT: u64 = 32 << 20;
const SUMS: &str = "SELECT count(*), sum(id), sum(length(text)) FROM t";
/// More than any of the tests gets to.
const MOST_ROWS: u64 = 2_000_000;

/// Rows with texts of 128 letters, of which encoding takes half.
fn insert(first: u64, rows: u64) -> String {
    format!(
        "INSERT INTO t SELECT g, md5(g::text) || md5((g + 1)::text) || md5((g * 7)::text) || md5((g * 11)::text)
         FROM generate_series({first}, {}) s (g)",
        first + rows - 1
    )
}

/// Inserts rows from `first` on until that is refused, many at a time and then few; the first that is not there, and why.
fn fill(db: &Database, first: u64, mut pass: impl FnMut()) -> (u64, SqlError) {
    let (mut next, mut last) = (first, None);
    for rows in [5_000, 100] {
        while next < MOST_ROWS {
            pass();
            match db.execute(&insert(next, rows)) {
                Ok(_) => next += rows,
                Err(refused) => {
                    last = Some(refused);
                    break;
                }
            }
        }
    }
    (next, last.expect("rows are refused in the end"))
}

/// What [`SUMS`] gives if these ids are there.
fn sums(ids: impl Iterator<Item = u64>) -> String {
    let (count, sum) = ids.fold((0, 0), |(count, sum), id| (count + 1, sum + id));
    format!("{count},{sum},{}", count * 128)
}

/// A row of a chunk that is not in memory.
fn evicted_row(db: &Database) -> u64 {
    let chunk = ask(db, "SELECT min(chunk) FROM albireo.chunks WHERE state = 'evicted'");
    chunk.parse::<u64>().expect("some rows have left memory") * 16_384 + 1
}

fn assert_reads_row(db: &Database, id: u64) {
    let is_right = format!("SELECT md5('{id}') = substr(text, 1, 32) FROM t WHERE id = {id}");
    assert_eq!(ask(db, &is_right), "t");
}

/// A database in memory whose rows leave it for a disk of 4 MiB, and its clock.
fn in_memory() -> (Database, SimulatedClock) {
    let (clock, hand) = Clock::simulated();
    let disk = CrashDisk::new(1);
    disk.set_capacity_bytes(4 << 20);
    let config = Config { data_limit_bytes: LIMIT, eviction: Eviction::To("/cold".into()), ..small() };
    let db = Database::with_env(config, Env { clock, disk: Arc::new(disk), ..Env::real() }).unwrap();
    run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    (db, hand)
}

#[test]
fn rows_are_refused_when_memory_and_disk_are_full_and_deleted_all_the_same() {
    if !rows_stay() {
        return;
    }
    let (db, hand) = in_memory();
    let pass = || hand.advance(Duration::from_secs(2));
    let (end, refused) = fill(&db, 1, pass);
    // What is frozen and cannot be written is beside it: no more than 16 MiB, and four chunks.
    let frozen = ask(&db, "SELECT sum(bytes) FROM albireo.chunks WHERE state = 'frozen'");
    assert!(frozen.parse::<u64>().unwrap() < 22 << 20, "{frozen} bytes are frozen");
    assert!(end * 128 > 28 << 20, "{end} rows take more than memory has");
    assert_eq!(state(&refused), "53200", "{refused}");
    assert!(refused.message().contains("for data is reached"), "{refused}");
    let detail = refused.detail().unwrap_or_default();
    assert!(detail.contains("Rows cannot leave memory for \"/cold\": "), "{refused:?}");
    // Nothing of what was refused is there, and all is read, whether it is in memory or not.
    assert_eq!(ask(&db, SUMS), sums(1..end));
    let row = evicted_row(&db);
    assert_reads_row(&db, row);
    // One row, half of them, and all.
    run(&db, &format!("DELETE FROM t WHERE id = {row}"));
    assert_eq!(ask(&db, SUMS), sums((1..end).filter(|id| *id != row)));
    run(&db, "DELETE FROM t WHERE id % 2 = 1");
    assert_eq!(ask(&db, SUMS), sums((1..end).filter(|id| id % 2 == 0)));
    let row = evicted_row(&db) + 1;
    assert_reads_row(&db, row);
    run(&db, "DELETE FROM t");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
    // Room comes back with the chunks, which have no rows, in memory and on the disk.
    assert!(db.freeze_if_due().unwrap().emptied > 0);
    let (again, refused) = fill(&db, end, pass);
    assert!(again - end > end / 2, "{} rows came where {end} were", again - end);
    assert_eq!(state(&refused), "53200", "{refused}");
    assert_eq!(ask(&db, SUMS), sums(end..again));
}

#[test]
fn all_rows_are_deleted_by_one_statement_while_memory_and_disk_are_full() {
    if !rows_stay() {
        return;
    }
    let (db, hand) = in_memory();
    let (end, _) = fill(&db, 1, || hand.advance(Duration::from_secs(2)));
    evicted_row(&db);
    // What is taken back needs its rows in memory.
    run(&db, "BEGIN; DELETE FROM t WHERE id BETWEEN 1 AND 2000; ROLLBACK");
    assert_eq!(ask(&db, SUMS), sums(1..end));
    run(&db, "DELETE FROM t");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
    run(&db, &insert(1, 5_000));
    assert_eq!(ask(&db, SUMS), sums(1..5_001));
}

#[test]
fn what_lies_in_files_leaves_memory_when_nothing_can_be_written() {
    if !rows_stay() {
        return;
    }
    let disk = CrashDisk::new(5);
    let env = Env { clock: Clock::simulated().0, disk: Arc::new(disk.clone()), ..Env::real() };
    let db = Database::with_env(Config { eviction: Eviction::To("/cold".into()), ..small() }, env).unwrap();
    // Chunks of this one are tried before those of the other.
    run(&db, "CREATE TABLE new (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    run(&db, &insert(1, 16_384));
    run(&db, "CALL albireo.freeze('t')");
    db.evict_frozen();
    run(&db, "INSERT INTO new SELECT * FROM t");
    run(&db, "CALL albireo.freeze('new')");
    let used: usize = disk.files().values().map(Vec::len).sum();
    disk.set_capacity_bytes(used as u64);
    assert_reads_row(&db, 77);
    let states = "SELECT \"table\", state FROM albireo.chunks WHERE rows > 0 ORDER BY 1";
    assert_eq!(ask(&db, states), "new,frozen t,frozen");
    assert!(db.evict_frozen() > 0);
    assert_eq!(ask(&db, states), "new,frozen t,evicted");
}

#[test]
fn full_disk_of_the_log_refuses_changes_of_many_rows_and_no_deletion_of_many() {
    let disk = CrashDisk::new(4);
    let checkpoint = CheckpointSchedule { every: None, log_bytes: None, ..CheckpointSchedule::default() };
    let config = Config { log_segment_bytes: 2 << 20, checkpoint, ..small() };
    let db = Database::open_in("/data", config, Env { disk: Arc::new(disk.clone()), ..Env::real() }).unwrap();
    run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    let used: usize = disk.files().values().map(Vec::len).sum();
    disk.set_capacity_bytes(used as u64 + (10 << 20));
    let (end, refused) = fill(&db, 1, || ());
    assert_eq!(state(&refused), "53100", "{refused}");
    let changed = db.execute("UPDATE t SET text = text || 'more' WHERE id % 2 = 1");
    assert_eq!(changed.map_err(|error| state(&error)).unwrap_err(), "53100");
    run(&db, "DELETE FROM t WHERE id % 2 = 1");
    assert_eq!(ask(&db, SUMS), sums((1..end).filter(|id| id % 2 == 0)));
}

#[test]
fn nothing_is_lost_by_a_crash_while_the_disk_of_log_and_evicted_rows_is_full() {
    if !rows_stay() {
        return;
    }
    let disk = CrashDisk::new(3);
    let open = || {
        let checkpoint = CheckpointSchedule { every: None, log_bytes: None, ..CheckpointSchedule::default() };
        let config = Config {
            data_limit_bytes: LIMIT,
            eviction: Eviction::Auto,
            log_segment_bytes: 2 << 20,
            checkpoint,
            ..small()
        };
        Database::open_in("/data", config, Env { disk: Arc::new(disk.clone()), ..Env::real() }).unwrap()
    };
    let (left, end) = {
        let db = open();
        run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
        for first in (1..100_000).step_by(5_000) {
            run(&db, &insert(first, 5_000));
        }
        run(&db, "CALL albireo.freeze('t'); CHECKPOINT");
        let used: usize = disk.files().values().map(Vec::len).sum();
        disk.set_capacity_bytes(used as u64 + (12 << 20));
        let (end, refused) = fill(&db, 100_001, || ());
        // Whichever ends first, the room of the log or memory with the room that rows leave it for.
        match state(&refused).as_str() {
            "53100" => assert!(refused.message().contains("the disk of the log is full"), "{refused}"),
            "53200" => assert!(refused.message().contains("for data is reached"), "{refused}"),
            _ => panic!("{refused}"),
        }
        db.evict_frozen();
        assert_reads_row(&db, 1);
        assert_eq!(ask(&db, SUMS), sums(1..end));
        run(&db, "DELETE FROM t WHERE id = 7");
        // Of many rows, beside the table, and of few.
        run(&db, "DELETE FROM t WHERE id % 2 = 1");
        run(&db, "DELETE FROM t WHERE id BETWEEN 100 AND 120");
        let left = sums((1..end).filter(|id| id % 2 == 0 && !(100..=120).contains(id)));
        assert_eq!(ask(&db, SUMS), left);
        disk.crash();
        (left, end)
    };
    let db = open();
    assert_eq!(ask(&db, SUMS), left);
    assert_reads_row(&db, 2);
    run(&db, "DELETE FROM t");
    db.freeze_if_due().unwrap();
    // Two archives are kept, with the log behind the older one.
    run(&db, "CHECKPOINT; CHECKPOINT");
    wait_until("rows come again", || db.execute(&insert(end, 5_000)).is_ok());
    assert_eq!(ask(&db, SUMS), sums(end..end + 5_000));
}
