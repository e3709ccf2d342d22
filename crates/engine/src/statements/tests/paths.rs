//! Which path a statement takes, and what it is kept for.

use std::sync::Arc;

use albireo_base::Value;
use albireo_testing::test;

use super::super::live::HOT;
use super::generate::Generator;
use super::random::{self, CONTENTS};
use super::{ExecutionPath, database, kept, shown};
use crate::cold::everything::is_asked;
use crate::{Database, Outcome};

/// A table with many rows for the keys 0 and 1, few for others; and one that joins it by a column.
fn skewed() -> Database {
    let db = database(1);
    db.execute(
        "CREATE TABLE big (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a);
         INSERT INTO big SELECT x % 2, x FROM generate_series(1, 60000) g (x);
         INSERT INTO big SELECT x / 10 + 2, x FROM generate_series(0, 199) g (x);
         CREATE TABLE pointer (id INTEGER PRIMARY KEY, a INTEGER NOT NULL);
         INSERT INTO pointer VALUES (1, 1), (2, 2), (3, 3)",
    )
    .unwrap();
    db
}

/// How many snapshots were taken so far.
fn snapshots(db: &Database) -> u64 {
    db.statistics().snapshots.counters.taken
}

/// The path of a query, and its first value.
fn asked(db: &Database, sql: &str, value: i32) -> (ExecutionPath, String) {
    let before = snapshots(db);
    let result = db.query(sql, &[value.into()]).unwrap().value(0, 0).to_string();
    let path = match snapshots(db) - before {
        0 => ExecutionPath::Transactional,
        _ => ExecutionPath::Analytical,
    };
    (path, result)
}

#[test]
fn path_follows_from_the_values_at_each_execution() {
    // Frozen rows cost otherwise.
    if is_asked() {
        return;
    }
    let db = skewed();
    let sql = "SELECT count(*) FROM big WHERE a = $1";
    let (here, there) = (ExecutionPath::Transactional, ExecutionPath::Analytical);
    for _ in 0..3 {
        assert_eq!(asked(&db, sql, 7), (here, "10".to_owned()));
        assert_eq!(asked(&db, sql, 1), (there, "30000".to_owned()));
        assert_eq!(asked(&db, sql, 700), (here, "0".to_owned()));
        assert_eq!(asked(&db, sql, 0), (there, "30000".to_owned()));
    }
    // No execution was begun twice.
    let entry = kept(&db, sql, &[1.into()]).unwrap();
    assert_eq!(entry.live(1).unwrap().overruns.left(), 0);
    // Ranges too, and what is small by now.
    let range = "SELECT count(*) FROM big WHERE a >= $1";
    assert_eq!(asked(&db, range, 5), (here, "170".to_owned()));
    assert_eq!(asked(&db, range, 0), (there, "60200".to_owned()));
    db.execute("DELETE FROM big WHERE a = 0; DELETE FROM big WHERE a = 1 AND b > 100").unwrap();
    assert_eq!(asked(&db, sql, 1), (here, "50".to_owned()));
    assert_eq!(asked(&db, range, 0), (here, "250".to_owned()));
}

#[test]
fn table_without_index_is_read_in_a_transaction_while_it_is_small() {
    let db = database(1);
    db.execute("CREATE TABLE few (a INTEGER, b TEXT); INSERT INTO few VALUES (1, 'x'), (2, 'y')").unwrap();
    let sql = "SELECT count(*) FROM few WHERE a < $1";
    assert_eq!(asked(&db, sql, 2), (ExecutionPath::Transactional, "1".to_owned()));
    db.execute("INSERT INTO few SELECT x, 'z' FROM generate_series(1, 20000) g (x)").unwrap();
    assert_eq!(asked(&db, sql, 2), (ExecutionPath::Analytical, "2".to_owned()));
    db.execute("DELETE FROM few WHERE a > 10").unwrap();
    assert_eq!(asked(&db, sql, 2), (ExecutionPath::Transactional, "2".to_owned()));
}

#[test]
fn query_that_reads_more_than_it_seemed_to_is_begun_twice_ever_more_rarely() {
    // Frozen rows cost otherwise.
    if is_asked() {
        return;
    }
    let db = skewed();
    // How many rows the second table has for the first's is not known before.
    let sql = "SELECT count(*) FROM pointer p JOIN big ON big.a = p.a WHERE p.id = $1";
    let transactions = || db.statistics().transactions.rolled_back;
    let mut twice = 0;
    for round in 0..64 {
        let large = round % 2 == 0;
        let before = transactions();
        let (path, count) = asked(&db, sql, if large { 1 } else { 2 });
        assert_eq!(count, if large { "30000" } else { "10" }, "round {round}");
        assert!(!large || path == ExecutionPath::Analytical);
        twice += transactions() - before;
    }
    assert!((1..=20).contains(&twice), "{twice} of 64");
    // What is small only from now on is a transaction again, and stays one.
    let last: Vec<ExecutionPath> = (0..2000).map(|_| asked(&db, sql, 2).0).skip(1100).collect();
    assert!(last.iter().all(|path| *path == ExecutionPath::Transactional));
}

#[test]
fn index_that_comes_and_goes_changes_nothing_but_explain() {
    let db = skewed();
    let explained = |sql: &str| {
        let outcome = db.execute(&format!("EXPLAIN {sql}")).unwrap().remove(0);
        outcome.into_rows().unwrap().value(0, 0).to_string()
    };
    let all = || {
        let texts = [
            "SELECT a, b FROM big WHERE b = 61 ORDER BY a",
            "SELECT count(*), min(a), sum(b) FROM big WHERE b BETWEEN 10 AND 12",
            "UPDATE big SET b = b + 100000 WHERE b = 30 RETURNING a, b",
            "UPDATE big SET b = b - 100000 WHERE b = 100030 RETURNING a, b",
            "SELECT a / (b - 61) FROM big WHERE b = 61",
        ];
        texts.map(|sql| shown(db.execute_with(sql, &[])))
    };
    let without = all();
    let sql = "SELECT a, b FROM big WHERE b = 61 ORDER BY a";
    assert!(explained(sql).starts_with("analytical"));
    db.execute("CREATE INDEX big_b ON big (b)").unwrap();
    assert_eq!(all(), without);
    assert!(explained(sql).contains("transactional, all partitions") || explained(sql).contains("big_b"));
    db.execute("DROP INDEX big_b").unwrap();
    assert_eq!(all(), without);
    assert!(explained(sql).starts_with("analytical"));
}

#[test]
fn analytical_statement_asked_again_is_neither_parsed_nor_bound() {
    let db = skewed();
    let sql = "SELECT count(*) FROM big WHERE b > $1";
    let values = [Value::Integer(5)];
    let count = |outcome: Outcome| outcome.into_rows().unwrap().value(0, 0).to_string();
    db.query(sql, &values).unwrap();
    let first = kept(&db, sql, &values).unwrap();
    let plan = Arc::clone(first.prepared.get().unwrap());
    let connection = db.connect();
    assert_eq!(count(connection.execute_with(sql, &values).unwrap()), "60189");
    connection.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(count(connection.execute_with(sql, &values).unwrap()), "60189");
    connection.execute("COMMIT").unwrap();
    assert_eq!(db.begin_read_only().unwrap().query(sql, &values).unwrap().value(0, 0).to_string(), "60189");
    assert_eq!(db.prepare(sql).unwrap().query(&values).unwrap().value(0, 0).to_string(), "60189");
    let again = kept(&db, sql, &values).unwrap();
    assert!(Arc::ptr_eq(&first, &again) && Arc::ptr_eq(&plan, again.prepared.get().unwrap()));
    db.execute("CREATE TABLE other (a INTEGER)").unwrap();
    assert!(kept(&db, sql, &values).is_none());
    assert_eq!(db.query(sql, &values).unwrap().value(0, 0).to_string(), "60189");
    // What was bound to the definitions before is not kept any more.
    assert_eq!(Arc::strong_count(&first), 2);
}

#[test]
fn hot_statements_become_machine_code_that_does_what_the_interpreter_does() {
    const ROUNDS: usize = 200;
    test!().for_each_seed(1..3, |seed| {
        let partitions = if seed % 2 == 0 { 3 } else { 1 };
        let here = ExecutionPath::Transactional;
        let (hot, cold) = (random::database(partitions, here), random::database(partitions, here));
        let interpreted = cold.connect();
        interpreted.execute("SET jit = off").unwrap();
        let mut generator = Generator::new(seed);
        let mut compiled = 0;
        for round in 0..ROUNDS {
            let statement = match round % 2 {
                0 => generator.change(),
                _ => generator.query(),
            };
            let (sql, values) = (statement.sql, statement.values);
            for turn in 0..2 {
                let (a, b) = (hot.execute_with(&sql, &values), interpreted.execute_with(&sql, &values));
                let errors = format!("{:?}\n{:?}", a.as_ref().err(), b.as_ref().err());
                assert_eq!(shown(a), shown(b), "round {round}, {turn}:\n{sql}\n{values:?}\n{errors}");
                if turn == 0
                    && let Some(entry) = kept(&hot, &sql, &values)
                    && let (Ok(bound), Ok(live)) = (&entry.bound, entry.live(partitions))
                {
                    (0..HOT).for_each(|_| drop(live.code(bound).cloned()));
                    compiled += usize::from(live.code(bound).is_some());
                }
            }
            for (_, contents) in CONTENTS {
                let all = |db: &Database| shown(db.query(contents, &[]).map(Outcome::Rows));
                assert_eq!(all(&hot), all(&cold), "after {sql}\n{values:?}");
            }
        }
        assert!(compiled > ROUNDS / 20, "{compiled} of {ROUNDS} have code");
    });
}

#[test]
fn statement_becomes_hot_after_many_executions() {
    let db = database(1);
    let sql = "SELECT s, n, d FROM p WHERE id = $1";
    let values = [Value::Integer(2)];
    for _ in 0..=HOT {
        assert_eq!(db.query(sql, &values).unwrap().value(0, 0).to_string(), "two");
    }
    let entry = kept(&db, sql, &values).unwrap();
    let (Ok(bound), Ok(live)) = (&entry.bound, entry.live(1)) else { panic!() };
    assert!(live.code(bound).is_some());
    assert_eq!(shown(db.execute_with(sql, &values)), shown(db.execute_with(&format!("{sql} "), &values)));
    // No row, NULLs, and a value that is none of the parameter's.
    assert_eq!(db.query(sql, &[Value::Integer(99)]).unwrap().row_count(), 0);
    assert_eq!(db.query(sql, &[Value::Integer(3)]).unwrap().value(0, 0), Value::Null);
    assert_eq!(db.query(sql, &[Value::Null]).unwrap().row_count(), 0);
    assert_eq!(db.query(sql, &["x".into()]).unwrap_err().state().to_string(), "22P02");
}
