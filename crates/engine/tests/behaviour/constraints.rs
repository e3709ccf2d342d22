use std::sync::Arc;

use albireo::Database;
use albireo_env::{Env, MemoryDisk};

use crate::support::{ask, database, database_on, fails, is_well, run, small, state};

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
fn check_or_default_that_cannot_be_evaluated_is_refused_with_its_place_and_makes_no_table() {
    let db = database();
    run(&db, "CREATE FUNCTION even(n INTEGER) RETURNS BOOLEAN LANGUAGE sql AS $$ SELECT n % 2 = 0 $$");
    let cases = [
        ("a INTEGER CHECK (even(a))", "0A000", "the routine even in a check constraint is not supported"),
        ("a INTEGER CHECK (lower(a) = 'x')", "42883", "function lower(integer) does not exist"),
        ("a DATE CHECK (a <= now())", "0A000", "the time in a check constraint is not supported"),
        ("a INTEGER CHECK (a)", "42804", "argument of CHECK must be type boolean, not type integer"),
        ("a INTEGER CHECK (u.a > 0)", "42P01", "missing FROM-clause entry for table \"u\""),
        ("a INTEGER CHECK (sum(a) > 0)", "42803", "aggregate functions are not allowed in check constraints"),
        ("a INTEGER DEFAULT 'x'", "22P02", "invalid input syntax for type integer: \"x\""),
        ("a BOOLEAN DEFAULT even(1)", "0A000", "the routine even in a DEFAULT expression is not supported"),
        (
            "a INTEGER DEFAULT true",
            "42804",
            "column \"a\" is of type integer but default expression is of type boolean",
        ),
    ];
    for (column, expected, message) in cases {
        let error = fails(&db, &format!("CREATE TABLE t ({column})"));
        assert_eq!((state(&error).as_str(), error.message()), (expected, message), "{column}");
        assert!(error.position().is_some(), "{column}: {error}");
        assert_eq!(state(&fails(&db, "SELECT * FROM t")), "42P01");
    }
    for (check, expected) in [
        ("a > (SELECT 1)", "0A000"),
        ("a IN (SELECT 1)", "0A000"),
        ("a > $1", "42P02"),
        ("row_number() OVER () > 0", "42P20"),
    ] {
        assert_eq!(state(&fails(&db, &format!("CREATE TABLE t (a INTEGER CHECK ({check}))"))), expected);
    }
    is_well(&db);
}

#[test]
fn error_inside_a_check_is_that_error_whichever_way_the_row_comes() {
    let disk = MemoryDisk::default();
    let line = |n: u32| format!("{n},{}\n", if n == 70_000 { 0 } else { 1 });
    disk.put("/few.csv", b"4,1\n5,0\n");
    disk.put("/many.csv", (10..100_000).map(line).collect::<String>().as_bytes());
    let db = database_on(disk, small());
    run(
        &db,
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, CHECK (10 / b < 11)); INSERT INTO t VALUES (1, 1)",
    );
    run(
        &db,
        "CREATE FUNCTION put(p_a INTEGER, p_b INTEGER) RETURNS void LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO t VALUES (p_a, p_b); END $$",
    );
    let statements = [
        "INSERT INTO t VALUES (2, 0)",
        "INSERT INTO t VALUES (2, 1), (3, 0)",
        "INSERT INTO t VALUES (1, 0) ON CONFLICT (a) DO NOTHING",
        "INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = 0",
        "INSERT INTO t SELECT a + 1, b - 1 FROM t",
        "INSERT INTO t SELECT n, n - 70000 FROM generate_series(2, 90000) AS g(n)",
        "UPDATE t SET b = 0 WHERE a = 1",
        "UPDATE t SET b = 0 WHERE a + 0 = 1",
        "SELECT put(2, 0)",
        "COPY t FROM '/few.csv'",
        "COPY t FROM '/many.csv'",
    ];
    for sql in statements {
        let error = fails(&db, sql);
        assert_eq!((state(&error).as_str(), error.message()), ("22012", "division by zero"), "{sql}");
        assert_eq!(ask(&db, "SELECT * FROM t"), "1,1", "{sql}");
    }
    let error = fails(&db, "COPY t FROM '/many.csv'");
    assert!(error.detail().is_some_and(|detail| detail.contains("line 69991")), "{error}");
    is_well(&db);
}

#[test]
fn default_is_the_same_whichever_way_the_row_comes() {
    let disk = MemoryDisk::default();
    disk.put("/t.csv", b"7\n");
    let db = database_on(disk, small());
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 7 / 2.0, b CHAR(3) DEFAULT 'x' || 1,
         c NUMERIC(6,2) DEFAULT round(10 / 3.0, 5), d TEXT DEFAULT repeat('ab', 2), e INTEGER DEFAULT 1 / 0)",
    );
    let given = "0 FROM generate_series";
    run(
        &db,
        &format!(
            "INSERT INTO t (id, e) VALUES (1, 0);
             INSERT INTO t VALUES (2, DEFAULT, DEFAULT, DEFAULT, DEFAULT, 0);
             INSERT INTO t (id, a, e) VALUES (3, DEFAULT, (SELECT count(*) - 2 FROM t WHERE id + 0 < 3));
             INSERT INTO t (id, e) SELECT n, {given}(4, 4) AS g(n);
             INSERT INTO t SELECT n, 0, '', 0, '', {given}(5, 6) AS g(n);
             UPDATE t SET a = DEFAULT, b = DEFAULT, c = DEFAULT, d = DEFAULT WHERE id = 5;
             UPDATE t SET a = DEFAULT, b = DEFAULT, c = DEFAULT, d = DEFAULT WHERE id + 0 = 6"
        ),
    );
    let expected: Vec<String> = (1..=6).map(|id| format!("{id},4,x1,3.33,abab,0")).collect();
    assert_eq!(ask(&db, "SELECT * FROM t ORDER BY id"), expected.join(" "));
    for sql in [
        "INSERT INTO t (id) VALUES (7)",
        "INSERT INTO t (id) SELECT 7",
        "UPDATE t SET e = DEFAULT WHERE id = 1",
        "UPDATE t SET e = DEFAULT WHERE id + 0 = 1",
        "COPY t (id) FROM '/t.csv'",
    ] {
        assert_eq!(state(&fails(&db, sql)), "22012", "{sql}");
    }
    is_well(&db);
}

#[test]
fn checks_of_every_form_mean_the_same_after_a_restart() {
    let checks = [
        "extract(year FROM d) > 2000 AND date_trunc('month', d) <= d",
        "trim(BOTH 'x' FROM s) <> '' AND substring(s FROM 2 FOR 1) = 'b' AND position('c' IN s) = 3",
        "CASE WHEN n > 0 THEN s LIKE 'a%' WHEN n = 0 THEN s ILIKE 'A%' ELSE n IS NULL END",
        "n = ANY (ARRAY[1, 2, 3]) AND n NOT IN (4, 5) AND NOT n BETWEEN SYMMETRIC 9 AND 7",
        "d + INTERVAL '1 day 02:00:00' > timestamp '2001-01-01' AND d - date '2001-01-01' >= 0",
        "n::text || s::varchar(2) = '1ab' AND CAST(n AS numeric(4,1)) = 1.0 AND n IS DISTINCT FROM 2",
        "(n, s) < (2, 'a') AND coalesce(nullif(n, 1), 5) = 5 AND greatest(n, 0) = n AND n # 3 = 2",
        "s ~~ 'a%' AND overlay(s PLACING 'z' FROM 1) = 'zbc' AND (s IS NULL) IS NOT TRUE = (n IS NOT NULL) AND n ^ 2 = 1",
    ];
    let disk = MemoryDisk::default();
    let open = || {
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        Database::open_in("/data", small(), env).unwrap()
    };
    let made = open();
    for (i, check) in checks.iter().enumerate() {
        run(&made, &format!("CREATE TABLE t{i} (n INTEGER, s TEXT, d DATE, CHECK ({check}))"));
    }
    drop(made);
    // First from the log, then from an archive.
    for _ in 0..2 {
        let db = open();
        for (i, check) in checks.iter().enumerate() {
            run(&db, &format!("INSERT INTO t{i} VALUES (1, 'abc', '2024-02-03'), (NULL, NULL, NULL)"));
            let refused = fails(&db, &format!("INSERT INTO t{i} VALUES (-1, 'q', '1999-01-01')"));
            assert_eq!(state(&refused), "23514", "{check}");
        }
        run(&db, "CHECKPOINT");
        is_well(&db);
    }
}
