use std::sync::Arc;

use albireo::{CancelToken, Config, Database, Outcome, SqlError, Value};
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
        &connection.query("SELECT * FROM (SELECT a, b FROM t ORDER BY b LIMIT 3) f ORDER BY b", &[]).unwrap(),
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
fn statement_whose_token_was_cancelled_before_it_began_is_the_only_one_that_ends() {
    let db = filled(small(), ENDLESS_ROWS);
    let connection = db.connect();
    // Too early: nothing runs.
    connection.cancel();
    let count = || show(&connection.query("SELECT count(*) FROM t", &[]).unwrap());
    assert_eq!(count(), "500");
    let statements: [&dyn Fn() -> SqlError; 6] = [
        &|| connection.query("SELECT count(*) FROM t", &[]).unwrap_err(),
        &|| connection.execute("DELETE FROM t; DELETE FROM t").unwrap_err(),
        &|| connection.execute_with("DELETE FROM t WHERE a < $1", &[Value::Integer(9)]).unwrap_err(),
        &|| connection.execute("CREATE TABLE other (a INTEGER)").unwrap_err(),
        &|| connection.copy_from("COPY t (a) FROM STDIN", "1000\n".as_bytes()).unwrap_err(),
        &|| connection.rolled_back(|trial| drop(trial.run("DELETE FROM t", &[]))).unwrap_err(),
    ];
    for (number, statement) in statements.iter().enumerate() {
        let token = connection.cancel_token();
        // By the token, and by the connection.
        if number % 2 == 0 {
            token.cancel()
        } else {
            connection.cancel()
        }
        let error = statement();
        assert_eq!(state(&error), "57014", "{number}: {error}");
        assert_eq!(count(), "500", "{number}");
    }
    assert!(connection.execute("SELECT * FROM other").is_err());
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

/// The lines of a plan that have a word in them.
fn steps(db: &Database, sql: &str, word: &str) -> usize {
    let plan = db.execute(&format!("EXPLAIN {sql}")).unwrap().pop().unwrap();
    let Outcome::Rows(rows) = plan else { panic!("EXPLAIN gives rows") };
    let lines = rows.rows().into_iter().map(|row| row[0].to_string());
    lines.skip_while(|line| !line.contains("Physical plan")).filter(|line| line.contains(word)).count()
}

/// Queries of WITH each of which reads the one before twice.
fn doubled(levels: usize) -> String {
    let first = "WITH c0 AS (SELECT a AS x FROM t WHERE a < 1)".to_owned();
    let next = |n: usize| format!(", c{n} AS (SELECT a.x FROM c{m} a, c{m} b WHERE a.x = b.x)", m = n - 1);
    let ctes: String = (1..=levels).map(next).collect();
    format!("{first}{ctes} SELECT count(*) FROM c{levels}")
}

#[test]
fn query_of_with_that_is_used_twice_is_planned_and_computed_once() {
    let db = filled(small(), 1000);
    let connection = db.connect();
    connection.execute("SET query_memory = '64MB'").unwrap();
    for levels in [1, 2, 24, 150] {
        let sql = doubled(levels);
        assert_eq!(show(&connection.query(&sql, &[]).unwrap()), "1", "{levels} levels");
        assert_eq!(steps(&db, &sql, "ScanExec: t,"), 1, "{levels} levels");
        assert_eq!(steps(&db, &sql, "JoinExec"), levels, "{levels} levels");
    }
}

#[test]
fn query_of_with_is_a_spool_as_postgresql_materializes_it() {
    let db = filled(small(), 1000);
    let twice = |how: &str| {
        format!(
            "WITH c AS {how} (SELECT a FROM t WHERE a % 2 = 0) SELECT count(*) FROM c x JOIN c y ON x.a = y.a"
        )
    };
    let once =
        |how: &str| format!("WITH c AS {how} (SELECT a FROM t WHERE a % 2 = 0) SELECT count(*) FROM c");
    let whole = "WITH c AS (SELECT b, a FROM t) SELECT count(*) FROM c x JOIN c y ON x.a = y.a";
    let cases = [
        (twice(""), 2, "500"),
        (twice("MATERIALIZED"), 2, "500"),
        (twice("NOT MATERIALIZED"), 0, "500"),
        (once(""), 0, "500"),
        (once("MATERIALIZED"), 1, "500"),
        (once("NOT MATERIALIZED"), 0, "500"),
        (whole.to_owned(), 0, "1000"),
    ];
    for (sql, scans, count) in cases {
        assert_eq!(steps(&db, &sql, "SpoolScanExec"), scans, "{sql}");
        assert_eq!(ask(&db, &sql), count, "{sql}");
    }
}

/// Readers of one spool that are polled in all ways: both sides of joins, branches of unions, one inside the other.
#[test]
fn spool_gives_all_its_rows_to_each_reader() {
    let db = filled(small(), 50_000);
    let with = "WITH c AS (SELECT a, b || '!' AS b FROM t WHERE a % 5 < 3)";
    let cases = [
        ("SELECT count(*) FROM c x JOIN c y ON x.a = y.a", "30000"),
        ("SELECT count(*) FROM c x LEFT JOIN c y ON x.a = y.a + 1 WHERE y.a IS NULL", "10000"),
        ("SELECT count(*), sum(a) FROM (SELECT a FROM c UNION ALL SELECT a FROM c) u", "60000,1499910000"),
        ("SELECT count(*) FROM (SELECT a FROM c INTERSECT SELECT a + 1 FROM c) u", "20000"),
        ("SELECT (SELECT min(a) FROM c), (SELECT max(a) FROM c), (SELECT count(*) FROM c)", "0,49997,30000"),
        ("SELECT count(*) FROM c WHERE a = (SELECT max(a) FROM c)", "1"),
        ("SELECT count(*) FROM c x WHERE NOT EXISTS (SELECT 1 FROM c y WHERE y.a = x.a + 2)", "20000"),
        ("SELECT count(*) FROM (SELECT 1 FROM c x, c y LIMIT 7) l", "7"),
        (
            ", d AS (SELECT a FROM c WHERE a < 10) SELECT count(*) FROM d x, d y, c z WHERE z.a = x.a + y.a",
            "24",
        ),
    ];
    for threads in [1, 2, 4] {
        let connection = db.connect();
        connection.execute(&format!("SET query_threads = {threads}")).unwrap();
        for (query, expected) in cases {
            let sql = format!("{with} {query}");
            assert_eq!(show(&connection.query(&sql, &[]).unwrap()), expected, "{threads} threads: {sql}");
        }
    }
    is_well(&db);
}

#[test]
fn spool_keeps_the_order_of_its_query() {
    let db = filled(small(), 50_000);
    let sql = "WITH c AS (SELECT a FROM t ORDER BY a DESC LIMIT 40000) SELECT a FROM c WHERE a > (SELECT min(a) FROM c)";
    let result = db.query(sql, &[]).unwrap();
    assert_eq!(result.row_count(), 39_999);
    let number = |row: usize| result.value(row, 0).to_string().parse::<i32>().unwrap();
    assert!((1..39_999).all(|row| number(row - 1) > number(row)));
}

#[test]
fn spool_over_its_memory_limit_spills_and_is_right() {
    let db = filled(small(), ROWS);
    let connection = db.connect();
    let sql = "WITH c AS (SELECT a, b || 'x' AS b FROM t WHERE a >= 0) \
        SELECT (SELECT count(*) FROM c), (SELECT sum(length(b)) FROM c), (SELECT max(a) FROM c)";
    let whole = show(&connection.query(sql, &[]).unwrap());
    assert_eq!(whole, format!("{ROWS},{},{}", ROWS * 41, ROWS - 1));
    connection.execute("SET query_memory = '16MB'").unwrap();
    assert_eq!(show(&connection.query(sql, &[]).unwrap()), whole);
    is_well(&db);
}

#[test]
fn error_in_a_spool_is_the_error_of_each_statement_that_reads_it() {
    let db = filled(small(), 1000);
    let sql = "WITH c AS (SELECT 1 / (a - 500) AS x FROM t WHERE a >= 0) SELECT count(*) FROM c x JOIN c y ON x.x = y.x";
    assert_eq!(state(&db.query(sql, &[]).unwrap_err()), "22012");
    assert_eq!(state(&db.query(sql, &[]).unwrap_err()), "22012");
    is_well(&db);
}

/// A statement whose text is long.
fn large(kind: &str) -> String {
    let list = |count: usize, separator: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(separator)
    };
    match kind {
        "IN" => format!("SELECT count(*) FROM t WHERE a IN ({})", list(60_000, ",", &|n| n.to_string())),
        "VALUES" => {
            format!("SELECT count(*) FROM (VALUES {}) v", list(60_000, ",", &|n| format!("({n}, 'x')")))
        }
        "AND" => {
            format!("SELECT count(*) FROM t WHERE {}", list(9000, " AND ", &|n| format!("a <> {n} + {n}")))
        }
        "OR" => {
            format!("SELECT count(*) FROM t WHERE {}", list(9000, " OR ", &|n| format!("b = 'x' || {n}")))
        }
        "UNION" => format!(
            "SELECT count(*) FROM ({}) u",
            list(1900, " UNION ALL ", &|n| format!("SELECT a + {n}, b FROM t"))
        ),
        "columns" => format!(
            "SELECT {} FROM t LIMIT 1",
            list(1600, ", ", &|n| format!("a + {n} * {n} - a * {n} + length(b)"))
        ),
        "WITH" => {
            let ctes =
                list(700, ", ", &|n| format!("c{n} AS (SELECT a + {n} AS a, b FROM t WHERE a <> {n})"));
            let uses = list(700, " UNION ALL ", &|n| format!("SELECT a FROM c{n}"));
            format!("WITH {ctes} SELECT count(*) FROM ({uses}) u")
        }
        other => panic!("{other}"),
    }
}

const LARGE: [&str; 7] = ["IN", "VALUES", "AND", "OR", "UNION", "columns", "WITH"];

#[test]
fn statement_too_large_for_its_memory_is_refused_before_it_is_planned() {
    let db = filled(small(), 10);
    let connection = db.connect();
    connection.execute("SET query_memory = '1MB'").unwrap();
    for kind in LARGE {
        let error = connection.query(&large(kind), &[]).unwrap_err();
        assert_eq!(state(&error), "53200", "{kind}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("query_memory")), "{kind}: {error}");
    }
    let error = connection
        .execute(&format!("INSERT INTO t VALUES {}", "(1, 'x'),".repeat(60_000) + "(2, 'y')"))
        .unwrap_err();
    assert_eq!(state(&error), "53200", "{error}");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "10");
}

#[test]
fn planning_ends_when_its_statement_is_cancelled() {
    let db = filled(small(), 10);
    for kind in LARGE {
        let cancel = CancelToken::new();
        cancel.cancel();
        let session = db.begin_read_only().unwrap();
        let error = session.query_until(&cancel, None, &large(kind), &[]).unwrap_err();
        assert_eq!(state(&error), "57014", "{kind}: {error}");
    }
    // What was ended is not kept as an error of its text.
    let sql = large("IN");
    assert_eq!(ask(&db, &sql), "10");
}

/// A procedure of so many statements.
fn long_body(statements: usize) -> String {
    let body = "n := n + 1; IF n > 7 THEN n := 0; END IF;\n".repeat(statements / 3);
    format!("CREATE PROCEDURE long(INOUT n INTEGER) LANGUAGE plpgsql AS $$ BEGIN {body} END $$")
}

#[test]
fn routine_too_large_for_its_memory_is_not_created() {
    let db = filled(small(), 10);
    let connection = db.connect();
    connection.execute("SET query_memory = '1MB'").unwrap();
    let error = connection.execute(&long_body(20_000)).unwrap_err();
    assert_eq!(state(&error), "53200", "{error}");
    assert_eq!(state(&db.execute("CALL long(1)").unwrap_err()), "42883");
}

#[test]
fn value_is_refused_before_it_takes_more_memory_than_its_statement_has() {
    let db = filled(small(), 100);
    let connection = db.connect();
    connection.execute("SET query_memory = '100MB'").unwrap();
    let long = |text: &str| [format!("SELECT length({text})"), format!("SELECT max(length({text})) FROM t")];
    let cases = [
        ("repeat('x', 1000000000)", "53200"),
        ("repeat(left(b, 1), 1000000000)", "53200"),
        ("repeat('x', 2000000000)", "54000"),
        ("repeat('xyz', 2000000000)", "54000"),
        ("lpad('x', 200000000)", "53200"),
        ("rpad('x', 2000000000)", "54000"),
        ("repeat('x', 60000000) || repeat('y', 60000000)", "53200"),
        ("replace(repeat('x', 1000000), 'x', repeat('y', 1000000))", "54000"),
        ("replace(repeat('x', 10000), 'x', repeat('y', 20000))", "53200"),
        ("regexp_replace(repeat('x', 10000), 'x', repeat('y', 20000), 'g')", "53200"),
        ("concat(repeat('x', 60000000), repeat('y', 60000000))", "53200"),
        ("concat_ws(',', repeat('x', 60000000), repeat('y', 60000000))", "53200"),
        ("format('%s%s', repeat('x', 60000000), repeat('y', 60000000))", "53200"),
        ("array_to_string(array_fill(repeat('x', 1000), ARRAY[200000]), ',')", "53200"),
    ];
    for (text, expected) in cases {
        for sql in long(text).into_iter().filter(|sql| !text.contains("(b") || sql.contains("FROM")) {
            match connection.query(&sql, &[]) {
                Err(error) => assert_eq!(state(&error), expected, "{sql}: {error}"),
                Ok(rows) => panic!("{sql} gave {}", show(&rows)),
            }
        }
    }
    is_well(&db);
}

#[test]
fn texts_of_a_batch_are_refused_together_before_they_take_too_much() {
    let db = filled(small(), 1000);
    let connection = db.connect();
    connection.execute("SET query_memory = '64MB'").unwrap();
    // Each has a megabyte; together they have more than the statement.
    let sql = "SELECT count(*) FROM (SELECT repeat(b, 25000) AS x FROM t OFFSET 0) u WHERE x <> 'y' || x";
    let error = connection.query(sql, &[]).unwrap_err();
    assert_eq!(state(&error), "53200", "{error}");
    connection.execute("SET query_memory = '16MB'").unwrap();
    let each = "SELECT max(length(repeat(b, 25000))) FROM t";
    assert_eq!(show(&connection.query(each, &[]).unwrap()), "1000000");
    is_well(&db);
}

#[test]
fn value_in_a_routine_is_refused_before_it_takes_more_memory_than_a_call_has() {
    let db = filled(small(), 10);
    run(
        &db,
        "CREATE FUNCTION long(n INTEGER) RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN length(repeat('x', n)); END $$",
    );
    for jit in ["on", "off"] {
        let connection = db.connect();
        connection.execute(&format!("SET jit = {jit}")).unwrap();
        let length = |n: u32| connection.query(&format!("SELECT long({n})"), &[]);
        assert_eq!(show(&length(1_000_000).unwrap()), "1000000");
        assert_eq!(state(&length(1_000_000_000).unwrap_err()), "53200");
        assert_eq!(state(&length(2_000_000_000).unwrap_err()), "54000");
    }
}

#[test]
fn dependent_queries_in_a_row_do_not_double_the_plan_each_time() {
    let db = filled(small(), 100);
    let connection = db.connect();
    connection.execute("SET query_memory = '512MB'").unwrap();
    let query = |n: usize| format!("(SELECT count(*) FROM t x WHERE x.a < t.a + {n})");
    let select: String = (0..30).map(query).collect::<Vec<_>>().join(" + ");
    assert_eq!(show(&connection.query(&format!("SELECT sum({select}) FROM t"), &[]).unwrap()), "187940");
    let lateral = |n: usize| {
        let before = if n == 0 { "t.a".to_owned() } else { format!("l{}.a", n - 1) };
        format!(", LATERAL (SELECT max(x.a) AS a FROM t x WHERE x.a <= {before}) l{n}")
    };
    let from: String = (0..20).map(lateral).collect();
    assert_eq!(show(&connection.query(&format!("SELECT sum(l19.a) FROM t{from}"), &[]).unwrap()), "4950");
}
