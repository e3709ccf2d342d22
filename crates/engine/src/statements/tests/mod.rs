//! What is kept is found, and no more than that; `random` has what every path must say of a statement.

mod calls;
mod changes;
mod generate;
mod paths;
mod postgresql;
mod random;

use std::sync::Arc;

use albireo_base::{SqlError, SqlType, Value};

use super::cache::Entry;
use super::path::{ExecutionPath, Extent};
use crate::{Config, Database, Outcome, QueryResult};

const TABLES: &str = "
CREATE TABLE p (id INTEGER PRIMARY KEY, k SMALLINT NOT NULL, n NUMERIC(10,2), s VARCHAR(12), c CHAR(4), d DATE,
    b BIGINT, r DOUBLE PRECISION, f BOOLEAN, ts TIMESTAMP, CHECK (k < 90)) PARTITION BY HASH (id);
CREATE INDEX p_k ON p (k, id);
CREATE TABLE q (id INTEGER, line INTEGER, amount NUMERIC(8,3) NOT NULL, note TEXT, PRIMARY KEY (id, line))
    PARTITION BY HASH (id);
CREATE TABLE g (a INTEGER PRIMARY KEY, b TEXT DEFAULT 'none', c NUMERIC(6,2) DEFAULT 1.5);
INSERT INTO p VALUES (1, 1, 1.25, 'one', 'a', '2024-01-01', 10, 0.5, true, '2024-01-01 10:00:00'),
    (2, 1, -2, 'two', 'bb', '2024-02-29', 20, 1.5, false, NULL), (3, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 2, 40.4, 'four', 'dddd', '2023-12-31', -4, -2.25, true, '2023-12-31 23:59:59.5'),
    (5, 3, 0, '', 'e', '1970-01-01', 5000000000, 0, false, '1970-01-01 00:00:00');
INSERT INTO q VALUES (1, 1, 1.5, 'x'), (1, 2, 2.125, NULL), (2, 1, 10, 'y'), (4, 1, 0, 'x'), (4, 7, -1, 'z');
INSERT INTO g (a) VALUES (1), (2); INSERT INTO g VALUES (3, 'three', NULL), (4, NULL, 4)";

fn database(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, query_threads: 2, ..Config::default() }).unwrap();
    db.execute(TABLES).unwrap();
    db
}

fn forced(partitions: u16, path: ExecutionPath) -> Database {
    let db = database(partitions);
    db.force_execution_path(Some(path));
    db
}

/// The statement as it is kept.
fn kept(db: &Database, sql: &str, values: &[Value]) -> Option<Arc<Entry>> {
    let generation = *db.inner.definitions.read();
    db.inner.statements.get(sql, values, generation)
}

/// An outcome as it can be compared: the columns with the classes of their types, and the rows in order.
fn shown(outcome: Result<Outcome, SqlError>) -> String {
    match outcome {
        Err(error) => format!("error {}", error.state()),
        Ok(Outcome::Done { tag, rows, notices }) => format!("{tag}, {rows} rows, {notices:?}"),
        Ok(Outcome::Rows(rows)) => table(&rows),
    }
}

fn table(result: &QueryResult) -> String {
    let class = |ty: SqlType| match ty {
        SqlType::Decimal { .. } => "numeric".to_owned(),
        other => other.to_string(),
    };
    let columns: Vec<String> = result.columns.iter().map(|c| format!("{} {}", c.name, class(c.ty))).collect();
    let mut rows: Vec<String> = result
        .rows()
        .iter()
        .map(|row| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "))
        .collect();
    // Neither path promises an order that was not asked for; those asked for are tested elsewhere.
    rows.sort();
    format!("{}\n{}", columns.join(" | "), rows.join("\n"))
}

#[test]
fn columns_of_a_table_have_its_types_on_both_paths() {
    let sql = "SELECT n, s, c, d, b, r, f, ts, n + 1 AS m, count(*) AS z FROM p WHERE id = 1
               GROUP BY n, s, c, d, b, r, f, ts";
    let types = |path| {
        let rows = forced(1, path).query(sql, &[]).unwrap();
        rows.columns.iter().map(|column| (column.name.clone(), column.ty)).collect::<Vec<_>>()
    };
    let (mut live, mut snapshot) = (types(ExecutionPath::Transactional), types(ExecutionPath::Analytical));
    // How many digits a computed number has at most is our own affair.
    for types in [&mut live, &mut snapshot] {
        let SqlType::Decimal { precision, scale: 2 } = &mut types[8].1 else { panic!("{types:?}") };
        *precision = 38;
    }
    assert_eq!(live, snapshot);
    assert_eq!(live[0].1, SqlType::Decimal { precision: 10, scale: 2 });
}

#[test]
fn statement_sent_again_is_not_bound_again_until_definitions_change() {
    let db = database(1);
    let sql = "UPDATE p SET n = n + $1 WHERE id = $2";
    let kept = |values: &[Value]| kept(&db, sql, values);
    let values = [Value::Integer(1), Value::Integer(1)];
    assert!(kept(&values).is_none());
    db.execute_with(sql, &values).unwrap();
    let first = kept(&values).unwrap();
    assert_eq!(first.live(1).unwrap().extent, Extent::Keys(1));
    // Other types are converted to those that the places demand.
    db.execute_with(sql, &["2.5".into(), Value::BigInt(1)]).unwrap();
    assert!(Arc::ptr_eq(&first, &kept(&values).unwrap()));
    assert_eq!(db.query("SELECT n FROM p WHERE id = 1", &[]).unwrap().value(0, 0).to_string(), "4.75");
    db.execute("DROP INDEX p_k").unwrap();
    assert!(kept(&values).is_none());
    db.execute_with(sql, &values).unwrap();
    assert!(!Arc::ptr_eq(&first, &kept(&values).unwrap()));
}

#[test]
fn parameter_that_no_place_types_has_the_type_of_each_value() {
    let db = database(1);
    let ask = |value: Value| {
        let result = db.query("SELECT $1 AS v FROM p WHERE id = 1", &[value]).unwrap();
        (result.columns[0].ty, result.value(0, 0).to_string())
    };
    assert_eq!(ask(7.into()), (SqlType::Integer, "7".to_owned()));
    assert_eq!(ask("x".into()), (SqlType::Text, "x".to_owned()));
    assert_eq!(ask(true.into()), (SqlType::Bool, "t".to_owned()));
    assert_eq!(ask(8.into()), (SqlType::Integer, "8".to_owned()));
    assert_eq!(ask(Value::Null).1, "NULL");
}

#[test]
fn parameter_has_the_type_that_its_first_place_demands() {
    let db = forced(1, ExecutionPath::Transactional);
    let ask = |sql: &str, values: &[Value]| match db.query(sql, values) {
        Ok(rows) => rows.rows().iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join(" "),
        Err(error) => error.state().to_string(),
    };
    let (one, text) = (Value::Integer(1), |text: &str| Value::from(text));
    let cases: [(&str, &[Value], &str); 14] = [
        ("SELECT d + $1 FROM p WHERE id = $1", std::slice::from_ref(&one), "2024-01-02"),
        ("SELECT id FROM p WHERE k = $1 AND id = $1", &[Value::BigInt(1)], "1"),
        ("SELECT id FROM p WHERE k = $1 AND id = $1", &[Value::BigInt(3_000_000_000)], "22003"),
        ("SELECT n + $1 FROM p WHERE id = 1", &[text("0.5")], "1.75"),
        ("SELECT n + $1 FROM p WHERE id = 1", &[text("half")], "22P02"),
        ("SELECT s || $1 FROM p WHERE id = 1", &[5.into()], "one5"),
        ("SELECT id FROM p WHERE k = $1 ORDER BY id LIMIT $2", &[one.clone(), text("1")], "1"),
        ("SELECT id FROM p WHERE id = $1 UNION ALL SELECT $2", &[one.clone(), text("9")], "1 9"),
        ("SELECT ts + $1 FROM p WHERE id = 1", &[text("90 minutes")], "2024-01-01 11:30:00"),
        ("SELECT id FROM p WHERE id = 1 AND id = ANY ($1)", &[text("{3,1}")], "1"),
        // Nothing demands a type here, so the values' count.
        ("SELECT $1 < $2 FROM p WHERE id = 1", &[10.into(), 9.into()], "f"),
        ("SELECT $1 < $2 FROM p WHERE id = 1", &[text("10"), text("9")], "t"),
        ("SELECT coalesce($1, $2) FROM p WHERE id = 1", &[Value::Null, 7.into()], "7"),
        ("SELECT -$1 FROM p WHERE id = 1", &[5.into()], "-5"),
    ];
    for (sql, values, expected) in cases {
        assert_eq!(ask(sql, values), expected, "{sql} {values:?}");
    }
    let inserted = "INSERT INTO q SELECT id, $1, $2, $3 FROM p WHERE id = $4 RETURNING line, amount";
    let values = [text("8"), text("1.25"), one, text("5")];
    assert_eq!(shown(db.execute_with(inserted, &values)), "line integer | amount numeric\n8 | 1.250");
}

#[test]
fn no_more_statements_are_kept_than_there_are_places_and_those_in_use_stay() {
    let db = database(1);
    let in_use = "DELETE FROM g WHERE a = $1";
    for n in 0..3000 {
        db.execute(&format!("UPDATE p SET k = k WHERE id = {n}")).unwrap();
        db.execute_with(in_use, &[Value::Integer(99)]).unwrap();
    }
    assert!(db.inner.statements.count() <= 1024);
    assert!(kept(&db, in_use, &[Value::Integer(1)]).is_some());
    let long = |n: u32| format!("UPDATE p SET s = 'x' WHERE id = {n} -- {}", "x".repeat(20_000));
    db.execute_with(&long(1), &[]).unwrap();
    assert!(kept(&db, &long(1), &[]).is_some());
    for n in 2..2000 {
        db.execute_with(&long(n), &[]).unwrap();
    }
    // One of them for each set at most.
    assert!(db.inner.statements.count() <= 1024);
    assert!((1..2000).filter(|n| kept(&db, &long(*n), &[]).is_some()).count() <= 256);
    let longer = long(1).repeat(2);
    assert!(db.execute_with(&longer, &[]).is_ok());
    assert!(kept(&db, &longer, &[]).is_none());
}
