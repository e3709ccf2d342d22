use crate::support::{ask, database, fails, is_well, run, state};

#[test]
fn unknown_names_are_pointed_at_with_a_suggestion() {
    let db = database();
    run(&db, "CREATE TABLE customer (id INTEGER, balance NUMERIC(9,2))");
    let cases = [
        ("SELECT balanse FROM customer", "42703", "balance"),
        ("SELECT * FROM custommer", "42P01", "customer"),
        ("INSERT INTO customer (idd) VALUES (1)", "42703", "id"),
        ("UPDATE customer SET balanc = 1", "42703", "balance"),
        ("DELETE FROM customer WHERE balence = 1", "42703", "balance"),
        ("CREATE INDEX i ON customer (ballance)", "42703", "balance"),
    ];
    for (sql, expected, suggestion) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
        assert!(error.position().is_some(), "{sql}: {error}");
        assert!(error.hint().unwrap_or_default().contains(suggestion), "{sql}: {error}");
    }
    is_well(&db);
}

#[test]
fn expressions_that_fail_end_their_query_alone() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER, b BIGINT); INSERT INTO t VALUES (0, 9223372036854775807), (1, 1)");
    let cases = [
        ("SELECT 1 / a FROM t", "22012"),
        ("SELECT b + 1 FROM t", "22003"),
        ("SELECT a + 2147483647 FROM t", "22003"),
        ("SELECT CAST(b AS SMALLINT) FROM t", "22003"),
        ("SELECT (SELECT a FROM t)", "21000"),
        ("SELECT CAST('x' AS INTEGER)", "22P02"),
        ("SELEC 1", "42601"),
        ("SELECT nonsense(a) FROM t", "42883"),
    ];
    for (sql, expected) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
    }
    assert_eq!(ask(&db, "SELECT sum(a) FROM t"), "1");
    is_well(&db);
}

#[test]
fn statement_nested_too_deeply_is_refused() {
    let db = database();
    for (open, close, depth) in
        [("(", ")", 100_000), ("NOT ", "", 100_000), ("-", "", 100_000), ("(SELECT ", ")", 5_000)]
    {
        let sql = format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
        let error = fails(&db, &sql);
        assert!(["54001", "42601", "42804"].contains(&state(&error).as_str()), "{open:?}: {error}");
    }
    is_well(&db);
}

#[test]
fn script_stops_at_its_first_failure_and_counts_from_its_start() {
    let db = database();
    let error =
        fails(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);\n SELECT b FROM t; DROP TABLE t");
    assert_eq!((state(&error).as_str(), error.position()), ("42703", Some(63)), "{error}");
    assert_eq!(ask(&db, "SELECT a FROM t"), "1");
}

#[test]
fn two_databases_in_one_process_know_nothing_of_each_other() {
    let (one, two) = (database(), database());
    run(&one, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    assert_eq!(state(&fails(&two, "SELECT * FROM t")), "42P01");
    run(&two, "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('two'), ('zwei')");
    assert_eq!(ask(&one, "SELECT a FROM t"), "1");
    drop(one);
    assert_eq!(ask(&two, "SELECT a FROM t ORDER BY a"), "two zwei");
}
