//! Chunks in which a few rows are written again and again: they are frozen but for these.

use std::time::Duration;

use albireo::{Config, Database, FreezeReport, FreezeSchedule, Value};
use albireo_env::{Clock, CrashDisk, Env, SimulatedClock};

use crate::frozen::{CHANGES, all, filled, freeze};
use crate::recovery::{config, env_of};
use crate::support::{ask, fails, rows_stay, run, show, small, state};

const HOUR: Duration = Duration::from_secs(3600);
/// Time between two looks.
const QUARTER: Duration = Duration::from_secs(900);

/// A database that freezes what nobody has written for an hour, as a clock says that is set by hand.
struct Clocked {
    db: Database,
    hand: SimulatedClock,
}

impl Clocked {
    fn new(config: Config, env: Env, open: impl Fn(Config, Env) -> Database) -> Self {
        let (clock, hand) = Clock::simulated();
        let freeze = FreezeSchedule { after: Some(HOUR) };
        Self { db: open(Config { freeze, ..config }, Env { clock, ..env }), hand }
    }

    fn in_memory() -> Self {
        Self::new(small(), Env::real(), |config, env| Database::with_env(config, env).unwrap())
    }

    fn look(&self) -> FreezeReport {
        self.db.freeze_if_due().unwrap()
    }

    /// Lets time pass, writes, and looks, so many times; what was done in the looks.
    fn pass(&self, times: u32, mut write: impl FnMut(&Database)) -> (u64, u64) {
        let (mut cooled, mut frozen) = (0, 0);
        for _ in 0..times {
            self.hand.advance(QUARTER);
            write(&self.db);
            let report = self.look();
            (cooled, frozen) = (cooled + report.cooled, frozen + report.chunks);
        }
        (cooled, frozen)
    }

    fn chunks(&self, columns: &str) -> String {
        ask(&self.db, &format!("SELECT {columns} FROM albireo.chunks ORDER BY chunk"))
    }
}

/// Two whole chunks and a part of one.
fn fill(db: &Database) {
    run(db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT); CREATE INDEX by_c ON t (c)");
    run(
        db,
        "INSERT INTO t SELECT g, 0, 'a text that is rather long, of row ' || g FROM generate_series(0, 39999) s (g)",
    );
}

/// Writes some rows, one by one.
fn write(db: &Database, rows: impl IntoIterator<Item = i32>) {
    for a in rows {
        let changed = db.connect().execute_with("UPDATE t SET b = b + 1 WHERE a = $1", &[Value::Integer(a)]);
        changed.unwrap();
    }
}

fn hot_rows() -> impl Iterator<Item = i32> {
    (0..40_000).step_by(1000)
}

const SUMS: &str = "SELECT count(*), sum(a), sum(b), min(c), max(c), count(DISTINCT c) FROM t";

#[test]
fn chunk_with_a_few_hot_rows_is_frozen_but_for_these() {
    if !rows_stay() {
        return;
    }
    let clocked = Clocked::in_memory();
    fill(&clocked.db);
    assert_eq!(clocked.look(), FreezeReport::default());
    assert_eq!(clocked.pass(3, |db| write(db, hot_rows())), (0, 0), "it is not old yet");
    assert_eq!(clocked.chunks("state"), "hot hot hot");
    assert_eq!(clocked.pass(1, |db| write(db, hot_rows())), (2, 0));
    assert_eq!(
        clocked.chunks("state, rows, reason"),
        "cooling,16384,rows that are written move out first: 0 so far \
         cooling,16384,rows that are written move out first: 0 so far hot,7232,new rows come to it"
    );
    let session = clocked.db.connect();
    session.execute("BEGIN READ ONLY").unwrap();
    let before = show(&session.query(SUMS, &[]).unwrap());
    assert_eq!(clocked.pass(3, |db| write(db, hot_rows())), (0, 0));
    assert_eq!(
        clocked.chunks("state, rows, dead, reason"),
        "cooling,16367,17,rows that are written move out first: 17 so far \
         cooling,16368,16,rows that are written move out first: 16 so far hot,7265,0,new rows come to it"
    );
    assert_eq!(clocked.pass(1, |db| write(db, hot_rows())), (0, 2), "others were not written for an hour");
    assert_eq!(
        clocked.chunks("state, rows, dead, bytes < block_bytes / 2"),
        "frozen,16367,17,t frozen,16368,16,t hot,7265,0,f"
    );
    assert_eq!(show(&session.query(SUMS, &[]).unwrap()), before);
    session.execute("COMMIT").unwrap();
    assert_eq!(clocked.pass(8, |db| write(db, hot_rows())), (0, 0), "they stay frozen");
    assert_eq!(clocked.chunks("state"), "frozen frozen hot");
    assert_eq!(
        ask(&clocked.db, "SELECT count(*), sum(a), sum(b), count(DISTINCT c) FROM t"),
        "40000,799980000,640,40000"
    );
    assert_eq!(
        ask(&clocked.db, "SELECT a, b FROM t WHERE c = 'a text that is rather long, of row 17000'"),
        "17000,16"
    );
}

#[test]
fn chunk_most_of_whose_rows_are_written_is_hot_again() {
    if !rows_stay() {
        return;
    }
    let clocked = Clocked::in_memory();
    fill(&clocked.db);
    clocked.look();
    assert_eq!(clocked.pass(4, |db| write(db, [1, 20_000])), (2, 0));
    // 3,000 rows of the first chunk, and one of the second.
    let many = |db: &Database| write(db, (0..3000).chain([20_000]));
    assert_eq!(clocked.pass(1, many), (0, 0));
    let states = "hot,14336,2048,many of its rows are written \
                  cooling,16383,1,rows that are written move out first: 1 so far hot,9281,0,new rows come to it";
    assert_eq!(clocked.chunks("state, rows, dead, reason"), states);
    // It is left alone for eight hours, and the other is frozen.
    assert_eq!(clocked.pass(31, |db| write(db, [10_000])), (0, 1));
    assert_eq!(clocked.chunks("state, dead"), "hot,2048 frozen,1 hot,0");
    // Its holes are filled first.
    run(&clocked.db, "INSERT INTO t SELECT g, 0, NULL FROM generate_series(50000, 52047) s (g)");
    assert_eq!(clocked.chunks("rows, dead"), "16384,0 16383,1 9281,0");
    assert_eq!(clocked.pass(1, |db| write(db, [10_000])), (1, 0));
    assert_eq!(clocked.pass(4, |db| write(db, [10_000])), (0, 1));
    assert_eq!(clocked.chunks("state, dead"), "frozen,1 frozen,1 hot,0");
    assert_eq!(ask(&clocked.db, "SELECT count(*), sum(b) FROM t"), "42048,3045");
}

#[test]
fn rows_of_cooling_chunks_are_changed_one_by_one_and_all_together() {
    let (hot, cooling) = (Clocked::in_memory(), Clocked::in_memory());
    for clocked in [&hot, &cooling] {
        filled(&clocked.db);
    }
    let cools = || {
        cooling.look();
        cooling.pass(4, |db| run(db, "UPDATE t SET b = b WHERE id = 1"))
    };
    let (cooled, _) = cools();
    assert!(cooled == 1 || !rows_stay());
    for change in CHANGES {
        run(&hot.db, change);
        run(&cooling.db, change);
        assert_eq!(all(&cooling.db), all(&hot.db), "after {change}");
    }
    cools();
    assert_eq!(state(&fails(&cooling.db, "INSERT INTO t (id, b) VALUES (77, 1)")), "23505");
    for db in [&hot.db, &cooling.db] {
        run(db, "UPDATE t SET x = 'again', b = -b WHERE id IN (1, 77, 20000)");
    }
    freeze(&cooling.db);
    assert_eq!(all(&cooling.db), all(&hot.db));
}

#[test]
fn open_transaction_that_moves_rows_of_a_cooling_chunk_is_taken_back_and_goes_on() {
    let clocked = Clocked::in_memory();
    let db = &clocked.db;
    fill(db);
    clocked.look();
    clocked.pass(4, |db| write(db, [7]));
    let before = ask(db, SUMS);
    let open = db.connect();
    open.execute("BEGIN; UPDATE t SET b = 100, c = 'changed' WHERE a = 8; DELETE FROM t WHERE a = 9")
        .unwrap();
    // Somebody else comes in between.
    write(db, [20]);
    assert_eq!(show(&open.query("SELECT a, b FROM t WHERE c = 'changed'", &[]).unwrap()), "8,100");
    open.execute("ROLLBACK").unwrap();
    write(db, [20]);
    run(db, "UPDATE t SET b = b - 2 WHERE a = 20");
    assert_eq!(ask(db, SUMS), before);
    open.execute("BEGIN; UPDATE t SET b = 100, c = 'changed' WHERE a = 8; DELETE FROM t WHERE a = 9")
        .unwrap();
    write(db, [21]);
    // The chunk is frozen while the transaction is open.
    let (_, frozen) = clocked.pass(5, |_| ());
    assert!(frozen > 0 || !rows_stay());
    open.execute("UPDATE t SET b = b + 1 WHERE a = 8; COMMIT").unwrap();
    assert_eq!(
        ask(db, "SELECT a, b, c = 'changed' FROM t WHERE a IN (8, 9, 21) ORDER BY a"),
        "8,101,t 21,1,f"
    );
}

#[test]
fn chunks_of_a_table_that_is_not_frozen_by_itself_any_more_do_not_cool() {
    if !rows_stay() {
        return;
    }
    let clocked = Clocked::in_memory();
    fill(&clocked.db);
    clocked.look();
    assert_eq!(clocked.pass(4, |db| write(db, hot_rows())), (2, 0));
    // One more look sees that they cool.
    assert_eq!(clocked.pass(1, |db| write(db, hot_rows())), (0, 0));
    assert_eq!(clocked.chunks("state, dead"), "cooling,17 cooling,16 hot,0");
    run(&clocked.db, "ALTER TABLE t SET (freeze = off)");
    clocked.look();
    assert_eq!(clocked.chunks("state, dead"), "hot,17 hot,16 hot,0");
    write(&clocked.db, 1..10);
    assert_eq!(clocked.chunks("state, dead"), "hot,17 hot,16 hot,0", "rows are written in place");
}

#[test]
fn changes_of_rows_that_leave_cooling_chunks_are_in_the_log_and_in_archives() {
    let disk = CrashDisk::new(1);
    let open = || {
        let open = |config, env| Database::open_in("/data", config, env).unwrap();
        Clocked::new(config(2, 1), env_of(&disk), open)
    };
    let clocked = open();
    fill(&clocked.db);
    clocked.look();
    clocked.pass(4, |db| write(db, hot_rows()));
    run(&clocked.db, "CHECKPOINT");
    clocked.pass(2, |db| write(db, hot_rows()));
    run(&clocked.db, "DELETE FROM t WHERE a = 11; UPDATE t SET a = -5, c = 'five' WHERE a = 5");
    let before = ask(&clocked.db, SUMS);
    drop(clocked);
    let clocked = open();
    assert_eq!(ask(&clocked.db, SUMS), before);
    clocked.look();
    clocked.pass(6, |db| write(db, hot_rows()));
    run(&clocked.db, "CHECKPOINT");
    clocked.pass(3, |db| write(db, hot_rows()));
    let before = ask(&clocked.db, SUMS);
    drop(clocked);
    assert_eq!(ask(&open().db, SUMS), before);
    assert_eq!(ask(&open().db, "SELECT a FROM t WHERE c = 'five'"), "-5");
}
