use albireo::{Database, Outcome};

use crate::support::{ask, database, fails, is_well, run, state};

fn notices(db: &Database, sql: &str) -> usize {
    match db.execute(sql).unwrap().remove(0) {
        Outcome::Done { notices, .. } => notices.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_exists_or_not_is_an_error_or_a_notice() {
    let db = database();
    run(&db, "CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER); CREATE INDEX i ON s.t (a)");
    let cases = [
        ("CREATE SCHEMA s", "42P06"),
        ("CREATE TABLE s.t (b INTEGER)", "42P07"),
        ("CREATE INDEX i ON s.t (a)", "42P07"),
        ("DROP TABLE nothing", "42P01"),
        ("DROP INDEX nothing", "42704"),
        ("DROP SCHEMA nothing", "3F000"),
        ("DROP SCHEMA s", "2BP01"),
        ("CREATE TABLE x.t (a INTEGER)", "3F000"),
        ("CREATE TABLE u (a INTEGER, a TEXT)", "42701"),
        ("CREATE TABLE u (a NONSENSE)", "42704"),
        ("SELECT * FROM t", "42P01"),
    ];
    for (sql, expected) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
    }
    assert_eq!(notices(&db, "CREATE SCHEMA IF NOT EXISTS s"), 1);
    assert_eq!(notices(&db, "CREATE TABLE IF NOT EXISTS s.t (b INTEGER)"), 1);
    assert_eq!(notices(&db, "DROP TABLE IF EXISTS nothing"), 1);
    assert_eq!(notices(&db, "DROP INDEX IF EXISTS nothing"), 1);
    run(&db, "INSERT INTO s.t VALUES (1); DROP INDEX s.i; DROP TABLE s.t; DROP SCHEMA s");
    is_well(&db);
}

#[test]
fn unique_index_over_duplicates_is_refused_and_leaves_no_trace() {
    let db = database();
    run(
        &db,
        "CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 1), (1, 2), (NULL, 3), (NULL, 4)",
    );
    let error = fails(&db, "CREATE UNIQUE INDEX i ON t (a)");
    assert_eq!(state(&error), "23505", "{error}");
    assert!(error.message().contains("\"i\""), "{error}");
    run(&db, "INSERT INTO t VALUES (1, 5); CREATE UNIQUE INDEX i ON t (b)");
    assert_eq!(state(&fails(&db, "INSERT INTO t VALUES (2, 5)")), "23505");
    run(&db, "DROP INDEX i; INSERT INTO t VALUES (2, 5)");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "6");
    is_well(&db);
}

#[test]
fn table_dropped_or_emptied_gives_its_memory_back() {
    let db = database();
    run(&db, "CREATE TABLE warm (a INTEGER); DROP TABLE warm");
    let before = db.memory().in_use_bytes;
    run(
        &db,
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'a text of more than fifty characters, which lies in a heap')",
    );
    assert!(db.memory().in_use_bytes > before);
    run(&db, "DROP TABLE t");
    assert_eq!(db.memory().in_use_bytes, before);
    run(&db, "CREATE TABLE t (c TEXT); INSERT INTO t VALUES ('x'); TRUNCATE t");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
    is_well(&db);
}

/// Handles name indexes by position: with one dropped before it, a handle would mean another.
#[test]
fn index_whose_table_procedures_know_is_not_dropped() {
    let db = database();
    run(&db, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER); CREATE INDEX i ON t (a)");
    run(&db, "CREATE INDEX j ON t (a); DROP INDEX j");
    db.with_table("t", |_, table| table.index("i")).unwrap();
    assert_eq!(state(&fails(&db, "DROP INDEX i")), "55006");
    run(&db, "CREATE INDEX k ON t (a); DROP TABLE t");
}
