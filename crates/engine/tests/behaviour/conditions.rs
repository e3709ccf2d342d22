//! IN, NOT IN and their kin anywhere in a WHERE: the same rows as SQLite finds, whatever is NULL.

use albireo::{Database, Value};
use albireo_testing::random_tests;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;

use super::support::{database, run};

const TABLES: &str = "
CREATE TABLE t1 (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
CREATE TABLE t2 (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
INSERT INTO t1 VALUES (1, 1, 1), (2, 2, 2), (3, NULL, 3), (4, NULL, 4), (5, 5, NULL), (6, NULL, NULL);
INSERT INTO t2 VALUES (1, 1, 3), (2, NULL, 1), (3, 1, 2), (4, 2, 1);";

/// What a condition is made of, as we and as SQLite say it.
const ATOMS: [(&str, &str); 14] = [
    ("a IN (SELECT a FROM t2)", ""),
    ("a NOT IN (SELECT a FROM t2)", ""),
    ("a IN (SELECT a FROM t2 WHERE a IS NOT NULL)", ""),
    ("a NOT IN (SELECT a FROM t2 WHERE a IS NOT NULL)", ""),
    ("a NOT IN (SELECT a FROM t2 WHERE id > 9)", ""),
    ("b NOT IN (SELECT b FROM t2 WHERE t2.a = t1.a)", ""),
    ("b IN (SELECT b FROM t2 WHERE t2.a = t1.a)", ""),
    ("a <> ALL (SELECT a FROM t2)", "a NOT IN (SELECT a FROM t2)"),
    ("a = ANY (SELECT a FROM t2)", "a IN (SELECT a FROM t2)"),
    ("(a, b) IN (SELECT a, b FROM t2)", ""),
    ("(a, b) NOT IN (SELECT a, b FROM t2)", ""),
    ("EXISTS (SELECT 1 FROM t2 WHERE t2.a = t1.a)", ""),
    ("b = 3", ""),
    ("a IS DISTINCT FROM 1", "a IS NOT 1"),
];

/// A condition, as we and as SQLite say it.
type Condition = (String, String);

fn conditions() -> impl Strategy<Value = Condition> {
    let atom = proptest::sample::select(&ATOMS[..]).prop_map(|(ours, theirs)| {
        (ours.to_owned(), if theirs.is_empty() { ours } else { theirs }.to_owned())
    });
    atom.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(ours, theirs)| (format!("NOT ({ours})"), format!("NOT ({theirs})"))),
            (inner.clone(), inner, proptest::sample::select(&["AND", "OR"][..])).prop_map(
                |((left, left_there), (right, right_there), op)| (
                    format!("({left} {op} {right})"),
                    format!("({left_there} {op} {right_there})")
                )
            ),
        ]
    })
}

fn ours(db: &Database, condition: &str) -> Result<Vec<i64>, String> {
    let sql = format!("SELECT id FROM t1 WHERE {condition} ORDER BY id");
    let rows = db.query(&sql, &[]).map_err(|error| error.to_string())?;
    let id = |row: &Vec<Value>| match row[0] {
        Value::Integer(id) => i64::from(id),
        ref other => panic!("{other:?}"),
    };
    Ok(rows.rows().iter().map(id).collect())
}

fn theirs(sqlite: &Connection, condition: &str) -> Vec<i64> {
    let sql = format!("SELECT id FROM t1 WHERE {condition} ORDER BY id");
    let mut statement = sqlite.prepare(&sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

random_tests! {
    #![cases(50)]

    #[test]
    fn conditions_with_in_select_and_delete_the_rows_that_sqlite_finds(some in vec(conditions(), 4)) {
        let db = database();
        run(&db, TABLES);
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.execute_batch(TABLES).unwrap();
        for (here, there) in &some {
            prop_assert_eq!(ours(&db, here), Ok(theirs(&sqlite, there)), "WHERE {}", here);
        }
        let (here, there) = &some[0];
        let gone = theirs(&sqlite, there);
        run(&db, &format!("DELETE FROM t1 WHERE {here}"));
        let left: Vec<i64> = (1..=6).filter(|id| !gone.contains(id)).collect();
        prop_assert_eq!(ours(&db, "true"), Ok(left), "DELETE FROM t1 WHERE {}", here);
    }
}

#[test]
fn conditions_of_having_know_null() {
    let db = database();
    run(&db, TABLES);
    let shown = |sql: &str| super::support::show(&db.query(sql, &[]).unwrap());
    let having = "SELECT a FROM t1 GROUP BY a HAVING NOT (a IN (SELECT a FROM t2) AND max(b) > 0) ORDER BY a";
    assert_eq!(shown(having), "");
}

#[test]
fn not_in_with_outer_columns_never_mistakes_its_table_for_the_outer_one_of_the_same_name() {
    let db = database();
    run(&db, TABLES);
    let query = |inner: &str| {
        format!(
            "SELECT t1.id FROM t1, t2 AS u WHERE u.id = 1 \
             AND t1.a NOT IN (SELECT a FROM t1 {inner} WHERE id < u.b) ORDER BY 1"
        )
    };
    for inner in ["", "AS other"] {
        assert_eq!(super::support::show(&db.query(&query(inner), &[]).unwrap()), "5");
    }
}

#[test]
fn grouped_joins_keep_every_key_that_they_are_ordered_or_grouped_by() {
    let db = database();
    run(&db, TABLES);
    run(
        &db,
        "CREATE TABLE u (k INTEGER UNIQUE, v INTEGER); INSERT INTO u VALUES (NULL, 1), (NULL, 2), (3, 3)",
    );
    let shown = |sql: &str| super::support::show(&db.query(sql, &[]).unwrap());
    let pairs = "FROM t1 JOIN t2 ON t1.a = t2.a OR t2.a IS NULL";
    let cases = [
        (
            "SELECT t1.id, t2.b {} WHERE t1.id < 3 GROUP BY t1.id, t2.b ORDER BY t1.id, t2.b",
            "1,1 1,2 1,3 2,1",
        ),
        ("SELECT DISTINCT t1.id, t2.b {} WHERE t1.id = 1 ORDER BY t1.id, t2.b LIMIT 2", "1,1 1,2"),
        (
            "SELECT id, count(*) FROM (SELECT t1.id, t2.b {} GROUP BY t1.id, t2.b) AS x WHERE id < 3 \
             GROUP BY id, b ORDER BY id, count",
            "1,1 1,1 1,1 2,1",
        ),
        (
            "SELECT t1.id, count(DISTINCT t2.id) {} WHERE t1.id < 3 GROUP BY t1.id, t2.b ORDER BY 1, t2.b",
            "1,1 1,1 1,1 2,2",
        ),
        (
            "SELECT t1.id FROM t1 LEFT JOIN (SELECT t1.id, t2.b {} GROUP BY t1.id, t2.b) x ON x.id = t1.id \
             WHERE t1.id < 3 ORDER BY 1",
            "1 1 1 2",
        ),
        ("SELECT k, count(*) FROM u GROUP BY k, v ORDER BY k, count", "3,1 NULL,1 NULL,1"),
    ];
    let answers = cases.map(|(sql, _)| (sql, shown(&sql.replace("{}", pairs))));
    assert_eq!(answers, cases.map(|(sql, expected)| (sql, expected.to_owned())));
}

#[test]
fn condition_of_several_subqueries_looks_at_the_result_of_each() {
    let db = database();
    run(&db, TABLES);
    let sql = "SELECT id FROM t1 WHERE NOT ((a, b) IN (SELECT a, b FROM t2)) \
               OR NOT (a NOT IN (SELECT a FROM t2) AND a IN (SELECT a FROM t2)) ORDER BY id";
    assert_eq!(super::support::show(&db.query(sql, &[]).unwrap()), "1 2 4");
}
