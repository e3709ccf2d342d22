//! INSERT ... SELECT: rows by the column, all or none, serializable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use albireo::{BudgetPolicy, Config, Database};
use albireo_env::{Env, MemoryDisk, scope, spawn_scoped};
use albireo_testing::wait_until;

use crate::support::{ask, chunks_cool, database, fails, is_well, run, small, state};

fn partitioned(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
    let by = if partitions > 1 { " PARTITION BY HASH (a)" } else { "" };
    run(
        &db,
        &format!(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR(20) NOT NULL, c NUMERIC(6,2) CHECK (c < 5000),
             d TEXT DEFAULT 'none', UNIQUE (b, a)){by}"
        ),
    );
    db
}

#[test]
fn concurrent_inserts_of_what_they_read_are_as_one_after_the_other() {
    const EACH: usize = 150;
    for partitions in [1, 3] {
        let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
        let by = if partitions > 1 { " PARTITION BY HASH (a)" } else { "" };
        run(&db, &format!("CREATE TABLE t (a BIGINT PRIMARY KEY){by}; INSERT INTO t VALUES (0)"));
        run(&db, "CREATE TABLE counted (n BIGINT)");
        scope(|s| {
            let inserter = || {
                for _ in 0..EACH {
                    run(&db, "INSERT INTO t SELECT max(a) + 1 FROM t");
                    run(&db, "INSERT INTO counted SELECT count(*) FROM counted");
                }
            };
            let threads = [(); 2].map(|()| spawn_scoped(s, "inserter", inserter).unwrap());
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        let all = 2 * EACH;
        assert_eq!(ask(&db, "SELECT count(*), max(a) FROM t"), format!("{},{all}", all + 1));
        let counted = "SELECT count(*), count(DISTINCT n), min(n), max(n) FROM counted";
        assert_eq!(ask(&db, counted), format!("{all},{all},0,{}", all - 1));
        is_well(&db);
    }
}

#[test]
fn insert_of_a_query_goes_on_while_others_spend_the_budget_of_snapshots() {
    let budget =
        Config { snapshot_budget_bytes: 64 << 10, snapshot_policy: BudgetPolicy::EndOldest, ..small() };
    let db = Database::in_memory(budget).unwrap();
    run(&db, "CREATE TABLE s (a INTEGER PRIMARY KEY, b INTEGER); CREATE TABLE t (a BIGINT, b INTEGER)");
    run(&db, "INSERT INTO s SELECT a, 1 FROM generate_series(1, 40000) AS g(a)");
    let done = AtomicBool::new(false);
    scope(|s| {
        let writer = spawn_scoped(s, "writer", || {
            while !done.load(Ordering::Acquire) {
                run(&db, "UPDATE s SET b = -b");
            }
        });
        for _ in 0..5 {
            run(&db, "INSERT INTO t SELECT x.a, sum(y.b) FROM s x JOIN s y ON x.a % 5000 = y.a GROUP BY x.a");
        }
        done.store(true, Ordering::Release);
        writer.unwrap().join().unwrap();
    });
    let seen = ask(&db, "SELECT count(*), count(DISTINCT b) <= 2 FROM t");
    assert_eq!(seen, format!("{},t", 5 * (40_000 - 8)));
    is_well(&db);
}

#[test]
fn fault_among_many_rows_says_what_it_says_among_few_and_changes_nothing() {
    for partitions in [1, 3] {
        let db = partitioned(partitions);
        run(&db, "INSERT INTO t SELECT a, 'old ' || a, 1 FROM generate_series(1, 3) AS g(a)");
        let before = ask(&db, "SELECT a, b, c, d FROM t ORDER BY a");
        let rows = |rows: u32, with: &str| {
            let text = format!(
                "INSERT INTO t (a, b, c) SELECT CASE a {with} FROM generate_series(10, {}) AS g(a)",
                rows + 9
            );
            fails(&db, &text)
        };
        // The fault stands at 20, or at the end.
        for (with, code) in [
            ("WHEN 20 THEN 15 ELSE a END, 'n' || a, 1", "23505"),
            ("WHEN 20 THEN 2 ELSE a END, 'n' || a, 1", "23505"),
            ("WHEN 20 THEN NULL ELSE a END, 'n' || a, 1", "23502"),
            ("WHEN 0 THEN 0 ELSE a END, CASE a WHEN 20 THEN NULL ELSE 'n' END, 1", "23502"),
            ("WHEN 0 THEN 0 ELSE a END, CASE a WHEN 20 THEN repeat('x', 21) ELSE 'n' END, 1", "22001"),
            ("WHEN 0 THEN 0 ELSE a END, 'n', CASE a WHEN 20 THEN 10000 ELSE 1 END", "22003"),
            ("WHEN 0 THEN 0 ELSE a END, 'n', CASE a WHEN 20 THEN 5000 ELSE 1 END", "23514"),
        ] {
            let (few, many) = (rows(50, with), rows(40_000, with));
            assert_eq!(state(&few), code, "{few}");
            let said = |error: &albireo::SqlError| {
                (error.to_string(), error.detail().map(str::to_owned), error.hint().map(str::to_owned))
            };
            assert_eq!(said(&few), said(&many));
            assert_eq!(ask(&db, "SELECT a, b, c, d FROM t ORDER BY a"), before, "{with}");
        }
        let error = rows(40_000, "WHEN 20 THEN 15 ELSE a END, 'n' || a, 1");
        assert_eq!(error.detail(), Some("Key (a)=(15) already exists."), "{error}");
        run(&db, "INSERT INTO t (a, b, c) SELECT a, 'n' || a, 1 FROM generate_series(10, 40009) AS g(a)");
        assert_eq!(ask(&db, "SELECT count(*), min(d), max(b) FROM t WHERE a >= 10"), "40000,none,n9999");
        assert_eq!(ask(&db, "SELECT b, d FROM t WHERE a = 777"), "n777,none");
        is_well(&db);
    }
}

#[test]
fn sessions_see_no_row_that_came_after_them_though_it_lies_in_their_chunks() {
    let db = partitioned(1);
    run(&db, "INSERT INTO t SELECT a, 'b', 1 FROM generate_series(1, 20000) AS g(a)");
    run(&db, "DELETE FROM t WHERE a % 2 = 0");
    let old = db.begin_read_only().unwrap();
    let sum = "SELECT count(*), sum(a), count(DISTINCT d) FROM t";
    let shown = crate::support::show(&old.query(sum, &[]).unwrap());
    run(&db, "INSERT INTO t SELECT a, 'c', 2, 'new' || a FROM generate_series(30001, 55000) AS g(a)");
    assert_eq!(crate::support::show(&old.query(sum, &[]).unwrap()), shown);
    drop(old);
    run(&db, "INSERT INTO t SELECT a, 'c', 2, 'new' || a FROM generate_series(60001, 69000) AS g(a)");
    assert_eq!(ask(&db, sum), "44000,1743017000,34001");
    is_well(&db);
}

#[test]
fn table_refilled_again_and_again_takes_no_more_memory() {
    // No new row comes to the slots of chunks that cool.
    if chunks_cool() {
        return;
    }
    let db = partitioned(1);
    let fill = "INSERT INTO t SELECT a, 'b' || a, 1, repeat('x', 30) FROM generate_series(1, 60000) AS g(a)";
    let mut most = None;
    for _ in 0..6 {
        run(&db, fill);
        let bytes = db.memory().in_use_bytes;
        assert!(bytes <= *most.get_or_insert(bytes) + (8 << 20), "{bytes}, not {most:?}");
        run(&db, "DELETE FROM t");
    }
}

#[test]
fn transactions_go_on_while_the_query_of_an_insert_runs() {
    for partitions in [1, 3] {
        let db = partitioned(partitions);
        run(&db, "CREATE TABLE s (a INTEGER PRIMARY KEY, b INTEGER); INSERT INTO s VALUES (1, 0)");
        let connection = db.connect();
        scope(|s| {
            let forever = "INSERT INTO t SELECT sum(x % 7 + y % 7)::integer, 'b', 1
                FROM generate_series(1, 1000000) AS g(x), generate_series(1, 1000000) AS h(y)";
            let inserter = spawn_scoped(s, "inserter", || connection.execute(forever).unwrap_err());
            wait_until("the query runs", || db.memory().queries_bytes > 0);
            for _ in 0..100 {
                run(&db, "UPDATE s SET b = b + 1 WHERE a = 1");
            }
            connection.cancel();
            assert_eq!(state(&inserter.unwrap().join().unwrap()), "57014");
        });
        assert_eq!(ask(&db, "SELECT b, (SELECT count(*) FROM t) FROM s"), "100,0");
        is_well(&db);
    }
}

#[test]
fn insert_of_a_query_ends_though_others_change_what_it_reads_all_the_time() {
    let db = database();
    run(&db, "CREATE TABLE s (a INTEGER PRIMARY KEY, b INTEGER); CREATE TABLE t (a INTEGER, b BIGINT)");
    run(&db, "INSERT INTO s SELECT a, a % 2 FROM generate_series(0, 19999) AS g(a)");
    let done = AtomicBool::new(false);
    scope(|s| {
        let writers = [0, 10_000].map(|first| {
            let (db, done) = (&db, &done);
            spawn_scoped(s, "writer", move || {
                let mut at = first;
                while !done.load(Ordering::Acquire) {
                    // The sum stays 10,000 after each transaction.
                    run(db, &format!("UPDATE s SET b = 1 - b WHERE a = {at} OR a = {}", at + 1));
                    at = (at + 2) % 20_000;
                }
            })
        });
        for run_at in 0..10 {
            run(&db, &format!("INSERT INTO t SELECT {run_at}, sum(b) FROM s"));
            run(&db, "INSERT INTO t SELECT a, (SELECT sum(b) FROM s) FROM s WHERE a >= 19900");
        }
        done.store(true, Ordering::Release);
        writers.into_iter().for_each(|writer| writer.unwrap().join().unwrap());
    });
    assert_eq!(ask(&db, "SELECT count(*), min(b), max(b) FROM t"), "1010,10000,10000");
    is_well(&db);
}

#[test]
fn rows_inserted_by_queries_and_no_refused_ones_are_there_again_after_a_restart() {
    for partitions in [1, 3] {
        let disk = MemoryDisk::default();
        let env = || Env { disk: Arc::new(disk.clone()), ..Env::real() };
        let open = || Database::open_in("/data", Config { partitions, ..small() }, env()).unwrap();
        let db = open();
        let by = if partitions > 1 { " PARTITION BY HASH (a)" } else { "" };
        run(
            &db,
            &format!(
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c NUMERIC(6,2)){by}; CREATE INDEX ON t (b);
                 CREATE TABLE u (a BIGINT, b VARCHAR(80), UNIQUE (b))"
            ),
        );
        let rows = |from: u32, to: u32| {
            format!(
                "SELECT a, CASE a % 5 WHEN 0 THEN NULL ELSE repeat('long ', a % 7) || a END, a % 1000 / 8.0
                 FROM generate_series({from}, {to}) AS g(a)"
            )
        };
        run(&db, &format!("INSERT INTO t {}", rows(1, 30_000)));
        run(&db, "DELETE FROM t WHERE a % 3 = 0");
        run(&db, &format!("INSERT INTO t {}", rows(40_000, 65_000)));
        // The last key is there already.
        assert_eq!(
            state(&fails(&db, &format!("INSERT INTO t {} ORDER BY a DESC", rows(64_000, 95_000)))),
            "23505"
        );
        run(&db, "INSERT INTO u SELECT a, b FROM t");
        run(&db, "UPDATE t SET b = 'new' WHERE a BETWEEN 50000 AND 50009; INSERT INTO t (a) SELECT 100000");
        let sums = |table: &str| {
            format!("SELECT count(*), count(b), sum(a), sum(length(b)), min(b), max(b) FROM {table}")
        };
        let shown =
            |db: &Database| [ask(db, &sums("t")), ask(db, &sums("u")), ask(db, "SELECT sum(c) FROM t")];
        let before = shown(&db);
        assert!(before[0].starts_with("45002,"), "{before:?}");
        drop(db);
        let db = open();
        assert_eq!(shown(&db), before);
        assert_eq!(ask(&db, "SELECT b FROM t WHERE a = 50001"), "new");
        assert_eq!(state(&fails(&db, "INSERT INTO t (a) SELECT a FROM t WHERE a = 41111")), "23505");
        is_well(&db);
    }
}
