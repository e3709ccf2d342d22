//! The embedded API from end to end, in small.

use albireo::{Config, Database, Outcome, Value};

#[test]
fn statements_change_and_read_rows() {
    let db = Database::in_memory(Config::default()).unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b NUMERIC(8,2), c TEXT)").unwrap();
    let outcomes =
        db.execute("INSERT INTO t VALUES (1, 1.50, 'one'), (2, 2.25, NULL), (3, -7, 'three')").unwrap();
    assert!(
        matches!(&outcomes[0], Outcome::Done { tag, rows: 3, .. } if tag == "INSERT 0 3"),
        "{outcomes:?}"
    );
    db.execute("UPDATE t SET b = b * 2, c = c || '!' WHERE a <> 3").unwrap();
    db.execute("DELETE FROM t WHERE c IS NULL").unwrap();
    let result = db.query("SELECT a, b, c, a FROM t WHERE a < $1 ORDER BY a", &[Value::Integer(9)]).unwrap();
    let text: Vec<String> =
        result.rows().iter().map(|r| r.iter().map(Value::to_string).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(text, ["1,3.00,one!,1", "3,-7.00,three,3"]);
}

#[test]
fn duplicate_key_names_constraint_and_key_and_changes_nothing() {
    let db = Database::in_memory(Config::default()).unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
    let error = db.execute("INSERT INTO t VALUES (2, 2), (1, 3)").unwrap_err();
    assert_eq!(error.state().to_string(), "23505");
    assert_eq!(error.detail(), Some("Key (a)=(1) already exists."));
    assert_eq!(db.query("SELECT count(*) FROM t", &[]).unwrap().value(0, 0).to_string(), "1");
}
