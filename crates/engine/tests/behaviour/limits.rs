use std::sync::Arc;

use albireo::Config;
use albireo_testing::wait_until;

use crate::support::{ask, filled, is_well, run, show, small, state};

const ROWS: u32 = 400_000;

/// Sorts some 30 MB.
const SORT: &str = "SELECT a, b FROM t ORDER BY b, a";

#[test]
fn sort_over_its_memory_limit_spills_and_is_right() {
    let db = filled(small(), ROWS);
    let connection = db.connect();
    let whole = show(
        &connection.query("SELECT * FROM (SELECT a, b FROM t ORDER BY b LIMIT 3) ORDER BY b", &[]).unwrap(),
    );
    connection.execute("SET query_memory = '16MB'; SET query_threads = 1").unwrap();
    let result = connection.query(SORT, &[]).unwrap();
    assert_eq!(result.row_count(), ROWS as usize);
    let first: Vec<String> =
        (0..3).map(|i| format!("{},{}", result.value(i, 0), result.value(i, 1))).collect();
    assert_eq!(first.join(" "), whole);
    is_well(&db);
}

#[test]
fn full_disk_while_spilling_ends_the_query_alone() {
    let db = filled(Config { spill_limit_bytes: 64 << 10, ..small() }, ROWS);
    let connection = db.connect();
    connection.execute("SET query_memory = '16MB'; SET query_threads = 1").unwrap();
    let error = connection.query(SORT, &[]).unwrap_err();
    assert_eq!(state(&error), "53100", "{error}");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), ROWS.to_string());
    is_well(&db);
}

#[test]
fn query_over_its_memory_limit_that_cannot_spill_says_so() {
    let db = filled(small(), ROWS);
    let connection = db.connect();
    connection.execute("SET query_memory = '1MB'").unwrap();
    let join = "SELECT count(*) FROM t AS x JOIN t AS y ON x.b = y.b AND x.a + 1 = y.a + 1";
    let error = connection.query(join, &[]).unwrap_err();
    assert_eq!(state(&error), "53200", "{error}");
    assert!(error.hint().is_some(), "{error}");
    is_well(&db);
}

#[test]
fn data_over_the_limit_is_refused_and_the_rest_goes_on() {
    let db = filled(Config { data_limit_bytes: 64 << 20, ..small() }, ROWS);
    let error = loop {
        if let Err(error) = db.execute("INSERT INTO t SELECT a, b || b FROM t") {
            break error;
        }
    };
    assert_eq!(state(&error), "53200", "{error}");
    run(&db, "DELETE FROM t WHERE a > 10; TRUNCATE t");
    is_well(&db);
}

/// Runs for minutes unless stopped.
const ENDLESS: &str = "SELECT count(*) FROM t AS x, t AS y, t AS z, t AS u WHERE x.a + y.a * z.a + u.a = -1";
/// Rows of `t` for it: a query notices that it was given up between two batches of a join, so the
/// fewer rows a batch is compared with, the sooner.
const ENDLESS_ROWS: u32 = 500;

#[test]
fn query_cancelled_from_another_thread_ends_and_the_connection_goes_on() {
    let db = filled(small(), ENDLESS_ROWS);
    let connection = Arc::new(db.connect());
    let (other, watched) = (Arc::clone(&connection), db.clone());
    let canceller = albireo_env::spawn("canceller", move || {
        wait_until("a join has rows", || watched.memory().queries_bytes > 0);
        other.cancel();
    });
    let error = connection.query(ENDLESS, &[]).unwrap_err();
    assert_eq!(state(&error), "57014", "{error}");
    canceller.unwrap().join().unwrap();
    assert_eq!(show(&connection.query("SELECT count(*) FROM t", &[]).unwrap()), "500");
}

#[test]
fn statement_out_of_time_ends_and_changes_nothing() {
    let db = filled(small(), ENDLESS_ROWS);
    let connection = db.connect();
    connection.execute("SET statement_timeout = '200ms'").unwrap();
    for sql in [ENDLESS.to_owned(), format!("UPDATE t SET a = 1 WHERE a < ({ENDLESS})")] {
        let error = connection.execute(&sql).unwrap_err();
        assert_eq!(state(&error), "57014", "{sql}: {error}");
    }
    assert_eq!(ask(&db, "SELECT count(*) FROM t WHERE a = 1"), "1");
}
