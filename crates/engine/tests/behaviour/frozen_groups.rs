//! Groups of frozen rows by texts: each answer is that of the same rows unfrozen, and of plain grouping.

use albireo::{Config, Database};

use crate::support::{ask, fails, rows_stay, run, show, state};

/// Three chunks and some more.
const ROWS: i64 = 56_000;

/// How a plan says that texts are looked up once a chunk.
const BY_TEXTS: &str = "DictionaryAggregateExec";

fn filled(query_threads: usize) -> Database {
    let db = Database::in_memory(Config { query_threads, ..Config::default() }).unwrap();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s SMALLINT, n NUMERIC(8,2) NOT NULL, d DATE NOT NULL,
         k TEXT NOT NULL, v VARCHAR(30) NOT NULL, w TEXT, x TEXT, r TEXT NOT NULL, c CHAR(5), p TEXT NOT NULL,
         one TEXT NOT NULL, nothing TEXT, z TEXT NOT NULL)",
    );
    // k: many texts that are not those of other chunks. v: the same in all, short and long. w: some rows NULL. x: empty
    // texts too. r: runs. c: padded. p: where a chunk begins with others.
    run(
        &db,
        &format!(
            "INSERT INTO t SELECT g, nullif(g % 7, 3), (g % 500) / 4.0, DATE '2020-01-01' + g % 40,
             'key number ' || g / 10, CASE WHEN g % 2 = 0 THEN 'v' ELSE 'a text beyond twelve ' END || g % 97,
             CASE WHEN g % 11 < 3 THEN NULL ELSE 'w' || (g / 100) % 29 END, nullif(repeat('x', g % 5), 'xxx'),
             'run ' || g / 700, 'c' || g % 10, CASE WHEN g > 30000 THEN 'b' ELSE 'z' END || g % 3, 'same', NULL,
             'unique ' || g::bigint * 7919 % 56003 FROM generate_series(1, {ROWS}) q (g)"
        ),
    );
    run(&db, "DELETE FROM t WHERE id % 36 = 0 OR id BETWEEN 500 AND 700");
    db
}

/// Queries, each in an order that leaves nothing open, and whether texts are looked up once a chunk.
const QUERIES: [(&str, bool); 37] = [
    ("SELECT k, count(*), sum(n) FROM t GROUP BY k ORDER BY k", true),
    ("SELECT v, count(*), sum(n), min(id), max(d), avg(s) FROM t GROUP BY v ORDER BY v", true),
    ("SELECT v, count(*) FROM t WHERE s = 2 GROUP BY v ORDER BY v", true),
    ("SELECT v, count(*) FROM t WHERE d = DATE '2020-01-05' AND n > 120 GROUP BY v ORDER BY v", true),
    ("SELECT v, count(*) FROM t WHERE v LIKE 'v1%' AND v <> 'v12' GROUP BY v ORDER BY v DESC", true),
    ("SELECT v, sum(n) FROM t WHERE n < 0 GROUP BY v ORDER BY v", true),
    (
        "SELECT v, count(*) FILTER (WHERE s = 1), sum(n) FILTER (WHERE id > 20000) FROM t GROUP BY v ORDER BY v",
        true,
    ),
    (
        "SELECT v, sum(n + id) FROM t GROUP BY v HAVING v > 'a text beyond twelve 5' AND count(*) > 10 ORDER BY v",
        true,
    ),
    ("SELECT v || '!', length(v), sum(id) FROM t GROUP BY v ORDER BY 3 DESC, v LIMIT 7", true),
    ("SELECT w, count(*), sum(id) FROM t GROUP BY w ORDER BY w", true),
    ("SELECT w, count(*) FROM t WHERE w IS NULL OR w = 'w3' GROUP BY w ORDER BY w", true),
    ("SELECT x, count(*), max(n) FROM t GROUP BY x ORDER BY x", true),
    ("SELECT r, count(*), sum(n) FROM t GROUP BY r ORDER BY r", true),
    ("SELECT c, c = 'c1', count(*) FROM t GROUP BY c ORDER BY c", true),
    ("SELECT p, count(*), min(id) FROM t GROUP BY p ORDER BY p", true),
    ("SELECT one, count(*) FROM t GROUP BY one ORDER BY one", true),
    ("SELECT nothing, count(*) FROM t GROUP BY nothing ORDER BY nothing", true),
    ("SELECT w, v, count(*), sum(n) FROM t GROUP BY w, v ORDER BY w, v", true),
    (
        "SELECT x, c, p, one, nothing, sum(id) FROM t GROUP BY x, c, p, one, nothing ORDER BY x, c, p, one",
        true,
    ),
    ("SELECT s, v, sum(n) FROM t GROUP BY s, v ORDER BY s, v", true),
    ("SELECT x, s, c, d, count(*) FROM t GROUP BY x, s, c, d ORDER BY x, s, c, d", true),
    ("SELECT DISTINCT v FROM t ORDER BY v", true),
    ("SELECT DISTINCT x, w, s FROM t ORDER BY x, w, s", true),
    ("SELECT DISTINCT s, x, x AS y, w AS x FROM t ORDER BY 1, 2, 4", true),
    (
        "SELECT a, max(b), count(c), sum(e) FROM (SELECT w, n AS e, v AS a, v AS b, w AS c FROM t) q GROUP BY a ORDER BY a",
        true,
    ),
    ("SELECT DISTINCT k FROM t WHERE n < 3 ORDER BY k", true),
    ("SELECT count(DISTINCT k) FROM t", true),
    ("SELECT count(DISTINCT w) FROM t", true),
    ("SELECT p, count(DISTINCT v) FROM t GROUP BY p ORDER BY p", true),
    ("SELECT v, count(*) FROM t WHERE p IN ('b1', 'z2') GROUP BY v ORDER BY 2, 1", true),
    ("SELECT v, min(v), max(v), count(v), sum(length(v)) FROM t GROUP BY v ORDER BY v", true),
    ("SELECT w, x, max(w), count(x) FILTER (WHERE w > 'w2') FROM t GROUP BY w, x ORDER BY w, x", true),
    // As rows: groups are many, texts are no one else's, a key is no column, or the scan does not decide the filter.
    ("SELECT v, count(*) FROM t WHERE id % 3 = n - n GROUP BY v ORDER BY v", false),
    ("SELECT id, v, sum(n) FROM t GROUP BY id, v ORDER BY id LIMIT 50", false),
    ("SELECT z, count(*) FROM t GROUP BY z ORDER BY z LIMIT 50", false),
    ("SELECT substr(v, 1, 3), count(*) FROM t GROUP BY substr(v, 1, 3) ORDER BY 1", false),
    ("SELECT v, w, count(*) FROM t GROUP BY GROUPING SETS ((v), (w), ()) ORDER BY 1, 2, 3", false),
];

fn plan(db: &Database, query: &str) -> String {
    format!("{:?}", db.execute(&format!("EXPLAIN {query}")).unwrap())
}

fn assert_all_same(hot: &Database, frozen: &Database) {
    for (query, _) in QUERIES {
        assert_eq!(ask(frozen, query), ask(hot, query), "{query}");
    }
}

#[test]
fn groups_by_texts_are_the_same_frozen_as_hot_whatever_becomes_of_rows() {
    for threads in [1, 2, 4] {
        let (hot, frozen) = (filled(threads), filled(threads));
        run(&frozen, "CALL albireo.freeze('t')");
        assert_all_same(&hot, &frozen);
        // Texts that no row has any more, rows that move and get texts that were not there before.
        for db in [&hot, &frozen] {
            run(db, "DELETE FROM t WHERE id % 7 = 1 OR v = 'v42' OR k LIKE '%7'");
            run(db, "UPDATE t SET v = 'new ' || id % 3, w = NULL WHERE id % 50 = 3");
            run(
                db,
                "INSERT INTO t SELECT id + 100000, s, n, d, k, v, w, x, r, c, p, 'other', 'some', z FROM t WHERE id % 3 = 1",
            );
        }
        assert_all_same(&hot, &frozen);
    }
}

#[test]
fn texts_of_frozen_rows_are_looked_up_once_a_chunk() {
    if !rows_stay() {
        return;
    }
    for threads in [1, 2] {
        let db = filled(threads);
        for (query, _) in QUERIES {
            assert!(!plan(&db, query).contains(BY_TEXTS), "hot: {query}");
        }
        let one = plan(&db, "SELECT count(DISTINCT v) FROM t");
        assert!(!one.contains("#distinct"), "a set is faster than groups\n{one}");
        run(&db, "CALL albireo.freeze('t')");
        for (query, by_texts) in QUERIES {
            let plan = plan(&db, query);
            assert_eq!(plan.contains(BY_TEXTS), by_texts, "{query}\n{plan}");
        }
    }
}

#[test]
fn groups_by_texts_that_do_not_fit_go_out_in_parts_or_the_query_says_so() {
    let query = "SELECT count(*), sum(c), min(x), max(x) FROM (SELECT x, count(*) AS c FROM u GROUP BY x) q";
    for threads in [1, 2] {
        let db = filled(threads);
        run(&db, "CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT NOT NULL)");
        run(
            &db,
            "INSERT INTO u SELECT g, repeat('long ', 60) || g % 3000 FROM generate_series(1, 120000) q (g)",
        );
        let expected = ask(&db, query);
        run(&db, "CALL albireo.freeze('u')");
        let connection = db.connect();
        for memory in ["64MB", "16MB", "4MB", "2MB", "1MB"] {
            connection.execute(&format!("SET query_memory = '{memory}'")).unwrap();
            match connection.query(query, &[]) {
                Ok(rows) => assert_eq!(show(&rows), expected, "{memory}"),
                Err(error) => {
                    assert!(!memory.starts_with(['6', '1']) || memory == "1MB", "{memory}: {error}");
                    assert_eq!(state(&error), "53200", "{memory}: {error}");
                }
            }
        }
        albireo_testing::wait_until("queries hold no memory any more", || db.memory().queries_bytes == 0);
    }
}

#[test]
fn error_in_a_function_of_a_group_by_texts_ends_the_query_alone() {
    let db = filled(2);
    run(&db, "CALL albireo.freeze('t')");
    assert_eq!(state(&fails(&db, "SELECT v, sum(1 / (id - 40007)) FROM t GROUP BY v")), "22012");
    assert_eq!(ask(&db, "SELECT p, count(*) FROM t WHERE id < 10 GROUP BY p ORDER BY p"), "z0,3 z1,3 z2,3");
}
