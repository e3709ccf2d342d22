use albireo::{Config, Database, ExecutionPath, Value};

use crate::support::{ask, database, fails, rows_of, run, show, small, state};

#[test]
fn parameters_take_the_types_of_their_places() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c NUMERIC(8,2), d DATE)");
    let row: [Value; 4] = [Value::BigInt(1), "it's".into(), Value::Double(2.5), "2024-01-05".into()];
    db.execute_with("INSERT INTO t VALUES ($1, $2, $3, $4)", &row).unwrap();
    db.execute_with("INSERT INTO t (b, a) VALUES ($2 || '!', $1 + 1)", &[Value::Integer(1), "x".into()])
        .unwrap();
    db.execute_with(
        "UPDATE t SET c = $1, d = $3 WHERE a = $2",
        &[Value::Integer(7), Value::Integer(2), Value::Null],
    )
    .unwrap();
    assert_eq!(ask(&db, "SELECT a, b, c, d FROM t ORDER BY a"), "1,it's,2.50,2024-01-05 2,x!,7.00,NULL");
    db.execute_with(
        "INSERT INTO t SELECT a + $1, $2, c FROM t WHERE a = $3",
        &[10.into(), "s".into(), 1.into()],
    )
    .unwrap();
    let deleted =
        db.execute_with("DELETE FROM t WHERE a > $1 RETURNING a, b", &[Value::SmallInt(1)]).unwrap();
    assert_eq!(sorted(&rows_of(deleted)), ["11,s", "2,x!"]);
    let wrong = db.execute_with("DELETE FROM t WHERE a = $1", &[]).unwrap_err();
    assert_eq!(state(&wrong), "42P02", "{wrong}");
    let wrong = db.execute_with("INSERT INTO t VALUES ($1)", &["seven".into()]).unwrap_err();
    assert_eq!(state(&wrong), "22P02", "{wrong}");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "1");
}

fn sorted(rows: &str) -> Vec<String> {
    let mut rows: Vec<String> = rows.split(' ').map(str::to_owned).collect();
    rows.sort();
    rows
}

fn returned(db: &Database, sql: &str) -> String {
    rows_of(db.execute(sql).unwrap().remove(0))
}

#[test]
fn returning_gives_new_rows_and_for_delete_old_ones() {
    for partitions in [1, 3] {
        let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
        run(
            &db,
            "CREATE TABLE t (a INTEGER, b CHAR(4) DEFAULT 'none', c NUMERIC(6,2)) PARTITION BY HASH (a)",
        );
        assert_eq!(
            returned(&db, "INSERT INTO t (a, c) VALUES (1, 2), (2, 3.5) RETURNING *"),
            "1,none,2.00 2,none,3.50"
        );
        assert_eq!(
            returned(&db, "INSERT INTO t SELECT a + 2, 'x', 1 FROM t WHERE a = 1 RETURNING a * 10 AS ten"),
            "30"
        );
        let moved = returned(&db, "UPDATE t AS n SET a = a + 1, c = 9 WHERE b = 'none' RETURNING n.a, c + 1");
        assert_eq!(sorted(&moved), ["2,10.00", "3,10.00"]);
        assert_eq!(sorted(&returned(&db, "DELETE FROM t WHERE a = 3 RETURNING b, a")), ["none,3", "x,3"]);
        assert_eq!(ask(&db, "SELECT a, b, c FROM t"), "2,none,9.00");
        let error = fails(&db, "UPDATE t SET a = 5 RETURNING 1 / (a - 5)");
        assert_eq!(state(&error), "22012", "{error}");
        let error = fails(&db, "INSERT INTO t VALUES (7) RETURNING 1 / (a - 7)");
        assert_eq!(state(&error), "22012", "{error}");
        assert_eq!(ask(&db, "SELECT a, b, c FROM t"), "2,none,9.00");
    }
}

#[test]
fn returning_names_its_columns_as_postgresql() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER)");
    let names = |sql: &str| match db.execute(sql).unwrap().remove(0) {
        albireo::Outcome::Rows(rows) => rows.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(names("INSERT INTO t VALUES (1) RETURNING a, a + 1, a AS b"), ["a", "?column?", "b"]);
    assert_eq!(names("DELETE FROM t RETURNING a, a + 1, a AS b"), ["a", "?column?", "b"]);
}

#[test]
fn explain_of_a_change_says_where_it_runs_and_changes_nothing() {
    let db = Database::in_memory(Config { partitions: 2, ..small() }).unwrap();
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY) PARTITION BY HASH (a); INSERT INTO t VALUES (1), (2)");
    let first = |sql: &str| {
        let plan = db.execute(sql).unwrap().remove(0);
        rows_of(plan)
    };
    assert!(first("EXPLAIN INSERT INTO t VALUES (3)").contains("transactional, partition 1"));
    assert!(first("EXPLAIN INSERT INTO t VALUES (3), (4)").contains("all partitions (crossing)"));
    assert!(first("EXPLAIN UPDATE t SET a = a + 1").contains("changes all rows of t"));
    // As of a table with many rows.
    db.force_execution_path(Some(ExecutionPath::Analytical));
    assert!(first("EXPLAIN INSERT INTO t SELECT a + 2 FROM t").contains("rows computed by:"));
    let plan = first("EXPLAIN UPDATE t SET a = a + 1 WHERE a % 2 = 1");
    assert!(plan.contains("all partitions (crossing)") && plan.contains("rows found by:"), "{plan}");
    assert!(first("EXPLAIN DELETE FROM t").contains("DELETE of t"));
    assert_eq!(state(&fails(&db, "EXPLAIN ANALYZE DELETE FROM t")), "0A000");
    assert_eq!(show(&db.query("SELECT count(*) FROM t", &[]).unwrap()), "2");
}
