//! Joins that probe with frozen rows by texts: each answer is that of the same rows unfrozen.

use albireo::{Config, Database};

use crate::support::{ask, rows_stay, run, show, state};

/// Three chunks and some more.
const ROWS: i64 = 56_000;

/// How a plan says that texts are looked up once a chunk.
const BY_NUMBERS: &str = "number(";

fn filled(query_threads: usize) -> Database {
    let db = Database::in_memory(Config { query_threads, ..Config::default() }).unwrap();
    // v: texts that chunks share, NULL too. u: no one else's.
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, v TEXT, c CHAR(6) NOT NULL, u TEXT NOT NULL)",
    );
    run(
        &db,
        &format!(
            "INSERT INTO t SELECT g, g % 701, CASE WHEN g % 11 < 3 THEN NULL WHEN g > 40000 AND g % 7 = 0 THEN 'only here ' || g % 5
             ELSE 'text number ' || (g / 100) % 97 END, 'c' || g % 13, 'unique ' || g FROM generate_series(1, {ROWS}) q (g)"
        ),
    );
    run(&db, "DELETE FROM t WHERE id % 36 = 0");
    // Some texts twice, some that t has not, some NULL; others are missing.
    run(&db, "CREATE TABLE names (name TEXT, kind INTEGER NOT NULL, c CHAR(6))");
    run(
        &db,
        "INSERT INTO names SELECT nullif('text number ' || g % 120, 'text number 13'), g % 3, 'c' || g % 9
         FROM generate_series(20, 160) q (g)",
    );
    run(&db, "INSERT INTO names VALUES ('only here 2', 1, NULL), ('unique 77', 0, 'c1'), ('', 0, 'c2')");
    db
}

/// Queries, and whether they join by numbers.
const QUERIES: [(&str, bool); 18] = [
    ("SELECT count(*), sum(t.n), sum(kind) FROM t JOIN names ON v = name", true),
    (
        "SELECT kind, count(*), min(id), max(v), min(name) FROM t JOIN names ON v = name GROUP BY kind ORDER BY kind",
        true,
    ),
    ("SELECT id, kind FROM t JOIN names ON v = name WHERE n < 3 ORDER BY id, kind LIMIT 40", true),
    ("SELECT count(*), count(kind), sum(id) FROM t LEFT JOIN names ON v = name", true),
    (
        "SELECT v, count(kind), sum(n) FROM t LEFT JOIN names ON v = name AND kind = 1 GROUP BY v ORDER BY v",
        true,
    ),
    (
        "SELECT name, kind, count(id) FROM names LEFT JOIN t ON v = name GROUP BY name, kind ORDER BY name, kind",
        true,
    ),
    (
        "SELECT name, count(*), count(id), count(kind) FROM names FULL JOIN t ON v = name GROUP BY name ORDER BY name",
        true,
    ),
    ("SELECT count(*), sum(id) FROM t WHERE v IN (SELECT name FROM names WHERE kind = 2)", true),
    (
        "SELECT count(*), sum(id) FROM t WHERE EXISTS (SELECT FROM names WHERE name = v AND length(v) + kind < n)",
        true,
    ),
    ("SELECT count(*), sum(id), min(v) FROM t WHERE NOT EXISTS (SELECT FROM names WHERE name = v)", true),
    (
        "SELECT name, kind FROM names WHERE EXISTS (SELECT FROM t WHERE v = name AND n > 3) ORDER BY name, kind",
        true,
    ),
    (
        "SELECT name, kind FROM names WHERE NOT EXISTS (SELECT FROM t WHERE v = name) ORDER BY name, kind",
        true,
    ),
    ("SELECT count(*), sum(id) FROM t JOIN names ON v = name AND t.c = names.c", true),
    ("SELECT count(*), sum(id) FROM t JOIN names ON v = name AND n = kind", true),
    ("SELECT count(*), sum(id) FROM t JOIN names ON t.c = names.c AND v > name", true),
    // As texts: what probes is not t, no rows share its texts, or the key is no column.
    ("SELECT id, v, name, kind FROM t JOIN names ON name = v WHERE n = 5 ORDER BY id, kind", false),
    ("SELECT count(*), sum(id) FROM t JOIN names ON u = name", false),
    ("SELECT count(*), sum(id) FROM t JOIN names ON lower(v) = name", false),
];

#[test]
fn joins_by_texts_are_the_same_frozen_as_hot() {
    for threads in [1, 2, 4] {
        let (hot, frozen) = (filled(threads), filled(threads));
        run(&frozen, "CALL albireo.freeze('t')");
        let assert_all_same = || {
            for (query, by_numbers) in QUERIES {
                assert_eq!(ask(&frozen, query), ask(&hot, query), "{query}");
                if rows_stay() {
                    let plan =
                        |db: &Database| format!("{:?}", db.execute(&format!("EXPLAIN {query}")).unwrap());
                    assert_eq!(plan(&frozen).contains(BY_NUMBERS), by_numbers, "{query}\n{}", plan(&frozen));
                    assert!(!plan(&hot).contains(BY_NUMBERS), "{query}");
                }
            }
        };
        assert_all_same();
        for db in [&hot, &frozen] {
            run(db, "DELETE FROM t WHERE id % 7 = 1 OR v = 'text number 42'");
            run(
                db,
                "UPDATE t SET v = CASE WHEN id % 3 = 0 THEN 'unique 77' ELSE v || '!' END WHERE id % 50 = 3",
            );
            run(db, "UPDATE names SET name = 'only here 4' WHERE kind = 2 AND name > 'text number 6'");
        }
        assert_all_same();
        run(&frozen, "CALL albireo.freeze('t')");
        assert_all_same();
    }
}

#[test]
fn prepared_join_by_texts_answers_each_time_from_what_is_there() {
    let db = filled(2);
    run(&db, "CALL albireo.freeze('t')");
    let query = db.prepare("SELECT count(*) FROM t JOIN names ON v = name WHERE kind < $1").unwrap();
    let count = |most: i32| format!("{:?}", query.query(&[albireo::Value::Integer(most)]).unwrap().rows());
    let (all, none) = (count(3), count(0));
    assert_ne!(all, none);
    run(&db, "INSERT INTO names VALUES ('only here 1', 0, NULL)");
    assert_ne!(count(3), all);
    run(&db, "DELETE FROM names WHERE name = 'only here 1'");
    assert_eq!((count(3), count(0)), (all, none));
}

#[test]
fn texts_of_a_join_that_do_not_fit_end_it() {
    let db = filled(2);
    run(&db, "CREATE TABLE long (name TEXT NOT NULL)");
    run(&db, "INSERT INTO long SELECT repeat('long ', 20) || g FROM generate_series(1, 3000) q (g)");
    let query = "SELECT count(*), sum(id) FROM t JOIN long ON v = name";
    let expected = ask(&db, query);
    run(&db, "CALL albireo.freeze('t')");
    let connection = db.connect();
    for memory in ["64MB", "16MB", "2MB", "1MB", "300kB"] {
        connection.execute(&format!("SET query_memory = '{memory}'")).unwrap();
        match connection.query(query, &[]) {
            Ok(rows) => assert_eq!(show(&rows), expected, "{memory}"),
            Err(error) => {
                assert!(!memory.ends_with("6MB") && memory != "64MB", "{memory}: {error}");
                assert_eq!(state(&error), "53200", "{memory}: {error}");
            }
        }
    }
    albireo_testing::wait_until("queries hold no memory any more", || db.memory().queries_bytes == 0);
}
