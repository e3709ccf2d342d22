//! Joins of which one side has few values: rows of the other that have none of these are left out by the scan. Each answer is
//! that of a join by an expression, for which no row is left out.

use std::sync::Arc;

use albireo::{Config, Database, Eviction, Outcome};
use albireo_env::{Env, MemoryDisk};

use crate::support::{ask, run, show};

/// Three chunks and some more.
const ROWS: i64 = 56_000;

fn filled() -> Database {
    let config = Config { query_threads: 2, eviction: Eviction::To("/cold".into()), ..Config::default() };
    let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
    let db = Database::in_memory_in(config, env).unwrap();
    run(
        &db,
        &format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, w SMALLINT NOT NULL, b BIGINT NOT NULL, d DATE, s TEXT NOT NULL);
             INSERT INTO t SELECT g, CASE WHEN g % 13 <> 5 THEN g * 7919 % 50021 - 100 END, g % 90,
                 9000000000000 + g * 31 % 20011, DATE '2020-01-01' + CASE WHEN g % 17 <> 3 THEN g * 31 % 4001 END, 'text ' || g % 50
                 FROM generate_series(1, {ROWS}) q (g);
             DELETE FROM t WHERE id % 36 = 0;
             CREATE TABLE few (k INTEGER, w SMALLINT, b BIGINT, d DATE);
             INSERT INTO few SELECT CASE WHEN g % 9 <> 4 THEN g * 601 % 40009 - 200 END, g % 5, 9000000000000 + g * 401 % 30011,
                 CASE WHEN g % 7 <> 2 THEN DATE '2020-01-10' + g * 13 END FROM generate_series(1, 60) q (g);
             INSERT INTO few SELECT k, w, b, d FROM t WHERE id < 20;
             INSERT INTO few VALUES (2147483647, 32767, 9223372036854775807, NULL), (-2147483648, -32768, -9223372036854775808, NULL);
             INSERT INTO few SELECT * FROM few WHERE w < 3"
        ),
    );
    db
}

/// Queries, in which columns of `t` stand in braces.
const QUERIES: [&str; 14] = [
    "SELECT count(*), sum(id), sum(few.w), min(s) FROM t JOIN few ON {k} = few.k WHERE few.k < 2000000000 AND few.k > -2000000000",
    "SELECT count(*), sum(id), max(s) FROM t JOIN few ON {k} = few.k AND {w} = few.w WHERE few.w BETWEEN 0 AND 100",
    "SELECT count(*), sum(id) FROM t JOIN few ON {k} = few.k AND {w} = few.w AND {d} = few.d",
    "SELECT count(*), sum(id), min(t.b) FROM t JOIN few ON {b} = few.b WHERE few.w BETWEEN 0 AND 100",
    "SELECT count(*), sum(id), min(t.d) FROM t JOIN few ON {d} = few.d",
    "SELECT count(*), sum(id) FROM t JOIN few ON {k} = few.k + 1 WHERE few.w BETWEEN 0 AND 100",
    "SELECT count(*), sum(id) FROM t WHERE {k} IN (SELECT k FROM few WHERE w BETWEEN 0 AND 100)",
    "SELECT count(*), sum(id) FROM t WHERE {k} NOT IN (SELECT k FROM few WHERE k IS NOT NULL)",
    "SELECT count(*), sum(id) FROM t WHERE NOT EXISTS (SELECT FROM few WHERE few.k = {k})",
    "SELECT count(*), sum(id), count(few.w) FROM t LEFT JOIN few ON {k} = few.k AND few.w < 4",
    "SELECT count(*), sum(id), sum(few.w) FROM few LEFT JOIN t ON {k} = few.k",
    "SELECT count(*), sum(id), sum(few.w) FROM few FULL JOIN t ON {k} = few.k",
    "SELECT count(*), sum(id) FROM t JOIN few ON {k} IS NOT DISTINCT FROM few.k WHERE few.w BETWEEN 0 AND 100",
    "SELECT t.w, count(*), sum(id) FROM t JOIN few ON {k} = few.k WHERE few.w = 2 AND t.s LIKE '%7' GROUP BY t.w ORDER BY t.w",
];

/// The query by columns, and by expressions.
fn both(query: &str) -> [String; 2] {
    let columns = ["k", "w", "b", "d"];
    let by = |left: &str, right: &str| {
        columns.iter().fold(query.to_owned(), |query, column| {
            query.replace(&format!("{{{column}}}"), &format!("{left}t.{column}{right}"))
        })
    };
    [by("", ""), by("(", " + 0)")]
}

fn left_out(db: &Database, query: &str) -> bool {
    let plan = match db.execute(&format!("EXPLAIN ANALYZE {query}")).unwrap().remove(0) {
        Outcome::Rows(plan) => show(&plan),
        other => panic!("{other:?}"),
    };
    plan.split("rows_left_out=").skip(1).any(|rest| !rest.starts_with('0'))
}

fn same(db: &Database, state: &str) -> usize {
    let left_out_in = QUERIES.map(|query| {
        let [by_columns, by_expressions] = both(query);
        assert!(!left_out(db, &by_expressions), "{state}: {by_expressions}");
        assert_eq!(ask(db, &by_columns), ask(db, &by_expressions), "{state}: {query}");
        usize::from(left_out(db, &by_columns))
    });
    left_out_in.iter().sum()
}

#[test]
fn rows_that_a_join_drops_are_left_out_whatever_they_lie_in() {
    let db = filled();
    let hot = same(&db, "hot");
    assert!(hot >= 8, "of {hot} queries rows are left out");
    run(&db, "CALL albireo.freeze('t')");
    assert_eq!(same(&db, "frozen"), hot);
    db.evict_frozen();
    assert_eq!(same(&db, "evicted"), hot);
    run(&db, "UPDATE t SET k = 401 WHERE id % 1000 = 7; DELETE FROM t WHERE id % 50 = 3");
    assert_eq!(same(&db, "in several states"), hot);
}
