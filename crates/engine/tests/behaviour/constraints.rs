use crate::support::{ask, database, fails, is_well, run, state};

#[test]
fn row_that_breaks_a_constraint_changes_nothing() {
    let db = database();
    run(
        &db,
        "CREATE TABLE t (a SMALLINT PRIMARY KEY, b VARCHAR(3) UNIQUE, c NUMERIC(4,2) NOT NULL DEFAULT 1,
         CONSTRAINT order_of_things CHECK (a < c * 10));
         INSERT INTO t VALUES (1, 'x', 2), (2, NULL, 3), (3, NULL, 4)",
    );
    let before = ask(&db, "SELECT * FROM t ORDER BY a");
    let cases = [
        ("INSERT INTO t VALUES (4, 'y', 9), (1, 'z', 9)", "23505", "t_pkey"),
        ("INSERT INTO t VALUES (4, 'x', 9)", "23505", "t_b_key"),
        ("INSERT INTO t VALUES (NULL, 'y', 9)", "23502", "\"a\""),
        ("INSERT INTO t VALUES (4, 'y', NULL)", "23502", "\"c\""),
        ("INSERT INTO t VALUES (40000, 'y', 9)", "22003", "smallint"),
        ("INSERT INTO t VALUES (4, 'long', 9)", "22001", "character varying(3)"),
        ("INSERT INTO t VALUES (4, 'y', 100)", "22003", "numeric"),
        ("INSERT INTO t VALUES (99, 'y', 9)", "23514", "order_of_things"),
        ("INSERT INTO t SELECT a + 10, 'n' || a, 0.5 FROM t", "23514", "order_of_things"),
        ("INSERT INTO t VALUES ('abc', 'y', 9)", "22P02", "abc"),
        ("UPDATE t SET a = a + 39", "23514", "order_of_things"),
        ("UPDATE t SET b = 'x' WHERE a > 1", "23505", "t_b_key"),
        ("UPDATE t SET c = NULL", "23502", "\"c\""),
        ("UPDATE t SET c = c * 1000", "22003", "numeric"),
        ("UPDATE t SET c = c / (a - 2)", "22012", "division by zero"),
        ("DELETE FROM t WHERE 10 / (a - 3) > 0", "22012", "division by zero"),
    ];
    for (sql, expected, names) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
        assert!(error.message().contains(names), "{sql}: {error}");
        assert_eq!(ask(&db, "SELECT * FROM t ORDER BY a"), before, "{sql}");
    }
    run(&db, "INSERT INTO t VALUES (4, 'y', 9)");
    is_well(&db);
}

#[test]
fn check_that_cannot_be_evaluated_is_refused_with_its_place_and_makes_no_table() {
    let db = database();
    let error = fails(&db, "CREATE TABLE t (a INTEGER CHECK (sqrt(a) > 2))");
    assert_eq!(state(&error), "0A000", "{error}");
    assert!(error.position().is_some() && error.hint().is_some(), "{error}");
    assert_eq!(state(&fails(&db, "SELECT * FROM t")), "42P01");
    is_well(&db);
}
