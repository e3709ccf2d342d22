//! Row locks: which exclude each other, who waits, who is passed over, when they are released.

use std::sync::{Arc, Barrier};
use std::thread::{self, Scope, ScopedJoinHandle};

use albireo::{Config, Connection, Database};

use super::blocks::{database, told};

const LEVELS: [&str; 3] = ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"];

/// The database of [`database`], or one whose table is shared by the partitions.
fn databases() -> Vec<Database> {
    let shared = Database::in_memory(Config { partitions: 2, ..Config::default() }).unwrap();
    shared.execute("CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER)").unwrap();
    shared.execute("INSERT INTO test VALUES (1, 10), (2, 20)").unwrap();
    vec![database(1), database(2), shared]
}

/// Connections that wait for a lock for a moment only.
fn connections(db: &Database, level: &str) -> Vec<Connection> {
    let open = || {
        let connection = db.connect();
        connection.execute("SET lock_timeout = '1ms'").unwrap();
        connection.execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
        connection
    };
    (0..3).map(|_| open()).collect()
}

/// Runs steps at every level on every database: `T1: statement => what it gives`, or `serial: statement`.
fn steps(steps: &str) {
    for level in LEVELS {
        for (number, db) in databases().iter().enumerate() {
            let connections = connections(db, level);
            for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
                let (what, expected) = step.split_once("=>").unwrap();
                let (who, sql) = what.trim().split_once(':').unwrap();
                let done = match who {
                    "serial" => db.execute(sql),
                    who => connections[who[1..].parse::<usize>().unwrap() - 1].execute(sql),
                };
                assert_eq!(told(done), expected.trim(), "at {level} on database {number}: {step}");
            }
        }
    }
}

#[test]
fn locks_exclude_each_other_as_the_table_says() {
    let lock = |mode: &str| format!("SELECT value FROM test WHERE id = 1 FOR {mode}");
    let update = "UPDATE test SET value = value + 1 WHERE id = 1".to_owned();
    let delete = "DELETE FROM test WHERE id = 1".to_owned();
    let (update_lock, share) = (lock("UPDATE"), lock("SHARE"));
    let table = [
        (&update_lock, &update_lock, false),
        (&update_lock, &share, false),
        (&update_lock, &update, false),
        (&update_lock, &delete, false),
        (&share, &share, true),
        (&share, &update_lock, false),
        (&share, &update, false),
        (&update, &update_lock, false),
        (&update, &share, false),
        (&delete, &share, false),
        // The first to commit wins.
        (&update, &update, true),
        (&update, &delete, true),
    ];
    for (first, second, goes) in table {
        let second_gives = match (goes, second.starts_with("SELECT")) {
            (true, true) => "10",
            (true, false) => "ok",
            (false, _) => "55P03",
        };
        let first_gives = if first.starts_with("SELECT") { "10" } else { "ok" };
        steps(&format!(
            "T1: BEGIN => ok
             T1: {first} => {first_gives}
             T2: BEGIN => ok
             T2: SELECT value FROM test WHERE id = 2 FOR UPDATE => 20
             T2: {second} => {second_gives}
             T2: ROLLBACK => ok
             T1: ROLLBACK => ok
             T2: BEGIN => ok
             T2: {second} => {}
             T2: ROLLBACK => ok",
            if second.starts_with("SELECT") { "10" } else { "ok" },
        ));
    }
}

#[test]
fn key_locks_are_the_plain_ones() {
    steps(
        "T1: BEGIN => ok
         T1: SELECT value FROM test WHERE id = 1 FOR NO KEY UPDATE => 10
         T2: BEGIN => ok
         T2: SELECT id FROM test ORDER BY id FOR KEY SHARE SKIP LOCKED => 2
         T1: SELECT value FROM test WHERE id = 2 FOR KEY SHARE => 20
         T1: SELECT value FROM test WHERE id = 2 FOR UPDATE NOWAIT => 55P03",
    );
}

#[test]
fn locks_end_with_what_took_them() {
    let taken = "T2: SELECT id FROM test ORDER BY id FOR UPDATE SKIP LOCKED => 2";
    let free = "T2: SELECT id FROM test ORDER BY id FOR UPDATE SKIP LOCKED => 1 2";
    for end in ["COMMIT", "ROLLBACK"] {
        steps(&format!(
            "T1: BEGIN => ok
             T1: SELECT value FROM test WHERE id = 1 FOR UPDATE => 10
             {taken}
             T1: {end} => ok
             {free}"
        ));
    }
    // What is taken back had no locks; what was locked before is.
    steps(&format!(
        "T1: BEGIN => ok
         T1: SAVEPOINT a => ok
         T1: SELECT value FROM test WHERE id = 1 FOR UPDATE => 10
         {taken}
         T1: ROLLBACK TO a => ok
         {free}
         T1: SELECT value FROM test WHERE id = 1 FOR SHARE => 10
         T1: SAVEPOINT b => ok
         T1: UPDATE test SET value = 11 WHERE id = 2 => ok
         T2: SELECT id FROM test ORDER BY id FOR UPDATE SKIP LOCKED =>
         T1: ROLLBACK TO b => ok
         {taken}
         T1: COMMIT => ok
         {free}"
    ));
    // A statement that fails ends a transaction without savepoints, and what was done since the last one.
    steps(&format!(
        "T1: BEGIN => ok
         T1: SELECT value FROM test WHERE id = 1 FOR UPDATE => 10
         T1: INSERT INTO test VALUES (2, 0) => 23505
         {free}
         T1: ROLLBACK => ok
         T1: BEGIN => ok
         T1: SELECT value FROM test WHERE id = 1 FOR UPDATE => 10
         T1: SAVEPOINT a => ok
         T1: SELECT value FROM test WHERE id = 2 FOR UPDATE => 20
         T1: INSERT INTO test VALUES (2, 0) => 23505
         {taken}
         T1: ROLLBACK TO a => ok
         T1: COMMIT => ok"
    ));
}

#[test]
fn connection_that_is_dropped_has_no_locks() {
    for db in databases() {
        let (gone, other) = (db.connect(), db.connect());
        gone.execute("BEGIN; SELECT * FROM test FOR UPDATE").unwrap();
        let ask = "SELECT id FROM test ORDER BY id FOR SHARE SKIP LOCKED";
        assert_eq!(told(other.execute(ask)), "");
        drop(gone);
        assert_eq!(told(other.execute(ask)), "1 2");
    }
}

#[test]
fn serial_transactions_win_and_ask_only_if_they_say_so() {
    steps(
        "T1: BEGIN => ok
         T1: SELECT value FROM test WHERE id = 1 FOR UPDATE => 10
         serial: SELECT value FROM test WHERE id = 1 FOR UPDATE NOWAIT => 55P03
         serial: SELECT id FROM test ORDER BY id FOR UPDATE SKIP LOCKED => 2
         serial: SELECT id FROM test ORDER BY id FOR UPDATE => 1 2
         serial: UPDATE test SET value = 12 WHERE id IN (SELECT id FROM test FOR SHARE SKIP LOCKED) => ok
         T1: SELECT value FROM test WHERE id = 1 => 10
         serial: UPDATE test SET value = 11 WHERE id = 1 => ok
         T2: SELECT value FROM test WHERE id = 1 FOR UPDATE NOWAIT => 11
         T1: SELECT value FROM test WHERE id = 1 => 40001
         T1: COMMIT => ok
         serial: SELECT id, value FROM test ORDER BY id => 1:11 2:12",
    );
}

#[test]
fn procedure_passes_over_what_is_locked_whichever_way_it_runs() {
    for db in databases() {
        db.execute(
            "CREATE PROCEDURE take(INOUT got INTEGER) LANGUAGE plpgsql AS $$
             BEGIN SELECT id INTO got FROM test ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED; END $$;
             CREATE PROCEDURE grab(INOUT got TEXT) LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM id FROM test WHERE id = 1 FOR UPDATE NOWAIT;
                 got := 'free';
             EXCEPTION WHEN lock_not_available THEN
                 got := SQLERRM;
             END $$",
        )
        .unwrap();
        let (holder, other) = (db.connect(), db.connect());
        for jit in ["on", "off"] {
            other.execute(&format!("SET jit = {jit}")).unwrap();
            for _ in 0..200 {
                assert_eq!(told(other.execute("CALL take(NULL)")), "1");
                assert_eq!(told(other.execute("CALL grab(NULL)")), "free");
            }
            holder.execute("BEGIN; SELECT value FROM test WHERE id = 1 FOR UPDATE").unwrap();
            for _ in 0..3 {
                assert_eq!(told(other.execute("CALL take(NULL)")), "2");
                let refused = "could not obtain lock on row in relation \"test\"";
                assert_eq!(told(other.execute("CALL grab(NULL)")), refused);
            }
            // In a block it locks what it takes.
            other.execute("BEGIN").unwrap();
            assert_eq!(told(other.execute("CALL take(NULL)")), "2");
            assert_eq!(told(db.execute("SELECT id FROM test FOR UPDATE SKIP LOCKED")), "");
            other.execute("COMMIT").unwrap();
            holder.execute("COMMIT").unwrap();
        }
    }
}

#[test]
fn limit_counts_what_is_not_passed_over() {
    for (number, db) in databases().iter().enumerate() {
        db.execute("INSERT INTO test SELECT i, 100 - i FROM generate_series(3, 10) AS x(i)").unwrap();
        let (one, two) = (db.connect(), db.connect());
        one.execute("BEGIN").unwrap();
        let next = |by: &str| format!("SELECT id FROM test ORDER BY {by} LIMIT 2 FOR UPDATE SKIP LOCKED");
        assert_eq!(told(one.execute(&next("id"))), "1 2", "{number}");
        two.execute("BEGIN").unwrap();
        assert_eq!(told(two.execute(&next("id"))), "3 4", "{number}");
        assert_eq!(told(one.execute(&next("value DESC"))), "5 6", "{number}");
        assert_eq!(told(two.execute(&next("value DESC, id"))), "3 4", "{number}");
        // Its own are not locked for itself, those behind OFFSET are locked too.
        assert_eq!(
            told(one.execute("SELECT id FROM test ORDER BY id OFFSET 4 LIMIT 1 FOR SHARE SKIP LOCKED")),
            "7"
        );
        assert_eq!(told(db.execute(&next("id"))), "8 9", "{number}");
        // In a query inside of another, and what it names alone.
        let inner = "SELECT count(*) FROM (SELECT id FROM test WHERE id > 6 ORDER BY id LIMIT 2
                     FOR UPDATE SKIP LOCKED) AS x";
        assert_eq!(told(two.execute(inner)), "2", "{number}");
        assert_eq!(told(db.execute(&next("id"))), "10", "{number}");
        let joined = "SELECT a.id FROM test a JOIN test b ON b.id = a.id - 9 FOR UPDATE OF a SKIP LOCKED";
        assert_eq!(told(two.execute(joined)), "10", "{number}");
        let both = "SELECT a.id FROM test a JOIN test b ON b.id = a.id - 9 FOR UPDATE OF a, b SKIP LOCKED";
        assert_eq!(told(two.execute(both)), "", "{number}");
    }
}

#[test]
fn query_over_many_rows_locks_its_tables() {
    for partitions in [1, 2] {
        let db = database(partitions);
        db.execute("INSERT INTO test SELECT i, i FROM generate_series(3, 100000) AS x(i)").unwrap();
        let (one, two) = (db.connect(), db.connect());
        one.execute("BEGIN").unwrap();
        let most = "SELECT id FROM test WHERE value > 1000 FOR UPDATE";
        assert_eq!(one.query(most, &[]).unwrap().row_count(), 99_000);
        assert_eq!(told(two.execute("SELECT id FROM test WHERE id = 5000 FOR SHARE NOWAIT")), "55P03");
        two.execute("BEGIN; SET LOCAL lock_timeout = '1ms'").unwrap();
        assert_eq!(told(two.execute("UPDATE test SET value = 0 WHERE id = 5000")), "55P03");
        two.execute("ROLLBACK").unwrap();
        one.execute("COMMIT").unwrap();
        assert_eq!(told(two.execute("SELECT id FROM test WHERE id = 5000 FOR SHARE NOWAIT")), "5000");
        // And waits for those of others.
        two.execute("BEGIN").unwrap();
        two.execute("SELECT id FROM test WHERE id = 7 FOR SHARE").unwrap();
        one.execute("BEGIN; SET LOCAL lock_timeout = '1ms'").unwrap();
        assert_eq!(told(one.execute(most)), "55P03");
    }
}

#[test]
fn clauses_stand_where_rows_come_from_tables() {
    let db = database(1);
    let connection = db.connect();
    let cases = [
        ("SELECT DISTINCT id FROM test FOR UPDATE", "FOR UPDATE is not allowed with DISTINCT clause"),
        ("SELECT id FROM test GROUP BY id FOR SHARE", "FOR SHARE is not allowed with GROUP BY clause"),
        ("SELECT 1 FROM test HAVING true FOR SHARE", "FOR SHARE is not allowed with HAVING clause"),
        ("SELECT count(*) FROM test FOR UPDATE", "FOR UPDATE is not allowed with aggregate functions"),
        ("SELECT rank() OVER () FROM test FOR UPDATE", "FOR UPDATE is not allowed with window functions"),
        (
            "SELECT 1 UNION SELECT id FROM test FOR UPDATE",
            "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
        ),
        (
            "(SELECT id FROM test FOR UPDATE) UNION SELECT 1",
            "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
        ),
        ("VALUES (1) FOR UPDATE", "FOR UPDATE cannot be applied to VALUES"),
        (
            "SELECT 1 FROM test a LEFT JOIN test b ON a.id = b.id FOR UPDATE",
            "FOR UPDATE cannot be applied to the nullable side of an outer join",
        ),
        (
            "SELECT 1 FROM test FOR UPDATE OF other",
            "relation \"other\" in FOR UPDATE clause not found in FROM clause",
        ),
        (
            "WITH x AS (SELECT 1) SELECT * FROM test, x FOR UPDATE OF test, x",
            "FOR UPDATE cannot be applied to a WITH query",
        ),
        (
            "SELECT * FROM (SELECT DISTINCT id FROM test) AS x FOR SHARE",
            "FOR SHARE is not allowed with DISTINCT clause",
        ),
    ];
    for (sql, message) in cases {
        assert_eq!(connection.execute(sql).unwrap_err().message(), message, "{sql}");
    }
    for sql in [
        "SELECT a.id FROM test a LEFT JOIN test b ON a.id = b.id + 10 WHERE a.id = 1 FOR UPDATE OF a",
        "WITH x AS (SELECT 1 AS id) SELECT id FROM test NATURAL JOIN x FOR UPDATE",
        "(SELECT id FROM test ORDER BY id LIMIT 1) FOR UPDATE",
        "SELECT id FROM (SELECT * FROM test ORDER BY id LIMIT 1) AS x, generate_series(1, 1) FOR NO KEY UPDATE",
    ] {
        assert_eq!(told(connection.execute(sql)), "1", "{sql}");
    }
    connection.execute("BEGIN READ ONLY").unwrap();
    let error = connection.execute("SELECT id FROM test FOR UPDATE").unwrap_err();
    assert_eq!(error.message(), "cannot execute SELECT FOR UPDATE in a read-only transaction");
}

/// Starts a thread.
pub(super) fn start<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    albireo_env::spawn_scoped(scope, "client", work).unwrap()
}

/// Runs `work` on so many threads at once, each with a connection and its number.
pub(super) fn at_once<R: Send>(
    db: &Database,
    threads: usize,
    work: impl Fn(&Connection, usize) -> R + Sync,
) -> Vec<R> {
    let barrier = Barrier::new(threads);
    albireo_env::scope(|scope| {
        let (barrier, work) = (&barrier, &work);
        let started: Vec<_> = (0..threads)
            .map(|number| {
                start(scope, move || {
                    let connection = db.connect();
                    barrier.wait();
                    work(&connection, number)
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn transactions_that_lock_what_they_change_do_not_fail() {
    for level in LEVELS {
        for db in databases() {
            at_once(&db, 4, |connection, _| {
                connection.execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
                for _ in 0..100 {
                    connection.execute("BEGIN").unwrap();
                    let sql = "SELECT value FROM test WHERE id = 1 FOR UPDATE";
                    let value = connection.query(sql, &[]).unwrap().value(0, 0);
                    let sql = "UPDATE test SET value = $1::integer + 1 WHERE id = 1";
                    connection.execute_with(sql, &[value]).unwrap();
                    connection.execute("COMMIT").unwrap();
                }
            });
            assert_eq!(told(db.execute("SELECT value FROM test WHERE id = 1")), "410");
        }
    }
}

#[test]
fn one_of_two_that_wait_for_each_other_fails_and_the_other_goes_on() {
    for db in databases() {
        for _ in 0..20 {
            let both = Arc::new(Barrier::new(2));
            let ends = at_once(&db, 2, |connection, number| {
                let (mine, other) = if number == 0 { (1, 2) } else { (2, 1) };
                connection.execute("BEGIN").unwrap();
                let lock = |id| format!("SELECT value FROM test WHERE id = {id} FOR UPDATE");
                connection.execute(&lock(mine)).unwrap();
                both.wait();
                let end = told(connection.execute(&lock(other)));
                // It has no locks any more, even before it is rolled back.
                both.wait();
                connection.execute("ROLLBACK").unwrap();
                end
            });
            let failed = ends.iter().filter(|end| *end == "40P01").count();
            assert_eq!(failed, 1, "{ends:?}");
            assert!(ends.iter().any(|end| end == "10" || end == "20"), "{ends:?}");
        }
    }
}

#[test]
fn closure_runs_again_after_a_deadlock() {
    let db = database(2);
    at_once(&db, 2, |connection, number| {
        for _ in 0..50 {
            let (mine, other) = if number == 0 { (1, 2) } else { (2, 1) };
            let both = |connection: &Connection| {
                for id in [mine, other] {
                    connection.execute(&format!("SELECT value FROM test WHERE id = {id} FOR UPDATE"))?;
                }
                connection.execute("UPDATE test SET value = value + 1 WHERE id IN (1, 2)")
            };
            connection.transaction(both).unwrap();
        }
    });
    assert_eq!(told(db.execute("SELECT value FROM test ORDER BY id")), "110 120");
}

/// Has four threads take jobs until there are none; each is taken by one.
fn queue(level: &str, db: &Database, take: impl Fn(&Connection) -> Option<String> + Sync) {
    db.execute("DELETE FROM test; INSERT INTO test SELECT i, i % 7 FROM generate_series(1, 200) AS x(i)")
        .unwrap();
    let taken = at_once(db, 4, |connection, _| {
        connection.execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
        std::iter::from_fn(|| take(connection)).collect::<Vec<_>>()
    });
    let mut taken: Vec<String> = taken.into_iter().flatten().collect();
    taken.sort_unstable();
    let mut all: Vec<String> = (1..=200).map(|i: i32| i.to_string()).collect();
    all.sort_unstable();
    assert_eq!(taken, all, "at {level}");
    assert_eq!(told(db.execute("SELECT count(*) FROM test")), "0");
}

#[test]
fn each_job_of_a_queue_is_taken_once() {
    for level in LEVELS {
        for db in databases() {
            // Locked, worked at, deleted.
            queue(level, &db, |connection| {
                connection.execute("BEGIN").unwrap();
                let next = "SELECT id FROM test ORDER BY value, id LIMIT 1 FOR UPDATE SKIP LOCKED";
                let id = told(connection.execute(next));
                let found = (!id.is_empty()).then(|| {
                    connection.execute(&format!("DELETE FROM test WHERE id = {id}")).unwrap();
                    id
                });
                connection.execute("COMMIT").unwrap();
                found
            });
            // In one statement, in a block or by itself.
            let delete = "DELETE FROM test WHERE id =
                          (SELECT id FROM test ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id";
            queue(level, &db, |connection| {
                connection.execute("BEGIN").unwrap();
                let id = told(connection.execute(delete));
                connection.execute("COMMIT").unwrap();
                (!id.is_empty()).then_some(id)
            });
            queue(level, &db, |connection| {
                let id = told(connection.execute(delete));
                (!id.is_empty()).then_some(id)
            });
        }
    }
}

#[test]
fn who_waits_can_be_cancelled_and_ends_in_time() {
    for db in databases() {
        let holder = db.connect();
        holder.execute("BEGIN; SELECT id FROM test WHERE id = 1 FOR UPDATE").unwrap();
        let waiting = db.connect();
        waiting.execute("BEGIN; SET LOCAL statement_timeout = '20ms'").unwrap();
        let wanted = "SELECT id FROM test WHERE id = 1 FOR UPDATE";
        assert_eq!(told(waiting.execute(wanted)), "57014");
        waiting.execute("ROLLBACK; BEGIN").unwrap();
        albireo_env::scope(|scope| {
            let ended = start(scope, || told(waiting.execute(wanted)));
            while !ended.is_finished() {
                waiting.cancel();
                thread::yield_now();
            }
            assert_eq!(ended.join().unwrap(), "57014");
        });
        // A serial transaction that changes the row ends the wait: the holder may not commit any more.
        waiting.execute("ROLLBACK; BEGIN").unwrap();
        albireo_env::scope(|scope| {
            let ended =
                start(scope, || told(waiting.execute("SELECT value FROM test WHERE id = 1 FOR UPDATE")));
            db.execute("UPDATE test SET value = 77 WHERE id = 1").unwrap();
            let seen = ended.join().unwrap();
            assert_eq!(seen, "77");
        });
        assert_eq!(told(holder.execute("SELECT value FROM test WHERE id = 1")), "40001");
    }
}
