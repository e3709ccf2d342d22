//! The least and the greatest values of frozen rows: those of the same rows unfrozen, and known of whole chunks without
//! reading them.

use albireo::Database;

use crate::frozen_scans::added;
use crate::support::{ask, database, rows_stay, run, state};

/// Columns of all types that have an order for `min`. In one all values are `-0`, in one there is none, in one none in the
/// first chunk, in one none but there.
const COLUMNS: [&str; 19] = [
    "id", "s", "i", "b", "n", "w", "r", "d", "z", "c", "v", "x", "e", "m", "ts", "tz", "nothing", "late",
    "early",
];

/// Two chunks and some rows.
fn filled() -> Database {
    let db = database();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s SMALLINT, i INTEGER NOT NULL, b BIGINT, n NUMERIC(8,2), w NUMERIC(30,4),
         r REAL, d DOUBLE PRECISION, z DOUBLE PRECISION, c CHAR(5), v VARCHAR(12), x TEXT NOT NULL, e DATE, m TIME,
         ts TIMESTAMP, tz TIMESTAMPTZ NOT NULL, nothing INTEGER, late BIGINT, early TEXT, o BOOLEAN, u UUID, y BYTEA)",
    );
    run(
        &db,
        "INSERT INTO t SELECT g, nullif(g % 7, 3) - 3, (g::bigint * 7919 % 20011 - 500)::integer,
         (g::bigint * 7919 % 20011 - 9000) * 1000003, CASE WHEN g % 17 = 0 THEN NULL ELSE (g % 500) / 4.0 - 60 END,
         (g - 7000) * 12345678901234567.5,
         CASE WHEN g = 20000 THEN 'NaN'::real WHEN g = 10 THEN 'Infinity'::real ELSE (nullif(g % 11, 5) / 3.0 - 1)::real END,
         CASE WHEN g = 3 THEN '-Infinity'::double precision ELSE (g / 7.0 - 100)::double precision END,
         '-0'::double precision, 'c' || g % 10, CASE WHEN g % 13 = 0 THEN NULL ELSE 'v' || g % 97 END,
         'a text that is longer than a view has room for ' || g::bigint * 7919 % 20011 || chr(228),
         DATE '2020-01-01' + g % 400, TIME '00:00' + (g % 1440) * INTERVAL '1 minute',
         TIMESTAMP '2020-01-01' + (g % 1000) * INTERVAL '1 hour', TIMESTAMPTZ '2020-01-01 00:00+00' + g * INTERVAL '1 second',
         NULL, CASE WHEN g > 16384 THEN g END, CASE WHEN g <= 16384 THEN 'early ' || g END,
         g % 3 = 0, lpad(to_hex(g % 50), 32, '0')::uuid, decode(lpad(to_hex(g % 256), 2, '0'), 'hex')
         FROM generate_series(1, 33000) q (g)",
    );
    db
}

/// Filters that all rows pass, all of some chunks, some of each, and none.
const FILTERS: [&str; 11] = [
    "true",
    "i >= -500",
    "nothing IS NULL",
    "id > 100",
    "id > 16384",
    "s = 1",
    "v IS NOT NULL",
    "x LIKE '%7_'",
    "early IS NULL",
    "nothing = 1",
    "id < 0",
];

fn ends(columns: &[&str]) -> String {
    columns.iter().map(|column| format!("min({column}), max({column})")).collect::<Vec<_>>().join(", ")
}

fn questions() -> Vec<String> {
    let (all, exact) = (ends(&COLUMNS), ends(&["s", "n", "v", "late"]));
    let mut questions = Vec::new();
    for filter in FILTERS {
        questions.push(format!("SELECT {all} FROM t WHERE {filter}"));
        questions.push(format!(
            "SELECT {exact}, count(*), count(n), sum(b), avg(n), count(late) FROM t WHERE {filter}"
        ));
    }
    // Of some types there is no least value.
    for column in COLUMNS.into_iter().chain(["o", "u", "y"]) {
        questions.push(format!("SELECT {} FROM t", ends(&[column])));
    }
    questions.push("SELECT max(x) FROM t HAVING min(late) > 5".to_owned());
    questions
        .push("SELECT min(v || x), max(DISTINCT r), min(d) FILTER (WHERE s = 1), max(b) FROM t".to_owned());
    questions
}

/// The values with their types, or the error.
fn told(db: &Database, question: &str) -> String {
    match db.query(question, &[]) {
        Ok(result) => format!("{:?}", result.rows()),
        Err(error) => format!("{} {error}", state(&error)),
    }
}

#[test]
fn ends_of_frozen_rows_are_those_of_hot_ones() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    let assert_same = || {
        for question in questions() {
            assert_eq!(told(&frozen, &question), told(&hot, &question), "{question}");
        }
    };
    assert_same();
    for change in [
        // The ends die, and so do some rows of each chunk.
        "DELETE FROM t WHERE id % 1000 = 1 OR i = -500 OR r = 'NaN' OR d = '-Infinity' OR b > 11000000000",
        // A chunk dies.
        "DELETE FROM t WHERE id <= 16384",
        // Hot rows beside frozen ones.
        "INSERT INTO t SELECT g, 4 - g % 9, -g, -g, g % 7, g, g, -g, '-0'::double precision, 'a', 'z', '', DATE '2019-01-01', TIME '23:59:59',
         TIMESTAMP '2030-01-01', TIMESTAMPTZ '2019-01-01 00:00+00', 5, 5, 'late', true, NULL, NULL
         FROM generate_series(100001, 100010) q (g)",
        "DELETE FROM t",
    ] {
        run(&hot, change);
        run(&frozen, change);
        assert_same();
    }
    assert_eq!(ask(&frozen, "SELECT count(*), min(x), max(r) FROM t"), "0,NULL,NULL");
}

#[test]
fn ends_of_whole_frozen_chunks_are_known_without_reading_them() {
    if !rows_stay() {
        return;
    }
    let db = filled();
    let ends = "SELECT count(*), sum(b), min(s), max(i), min(b), max(n), min(w), max(r), min(d), max(c), min(v), max(x), min(e), \
                max(m), min(ts), max(tz), max(nothing), min(late), max(early) FROM t";
    assert_eq!(added(&db, ends), "0, as rows");
    run(&db, "CALL albireo.freeze('t')");
    let those_with = |filter: &str| added(&db, &format!("{ends} WHERE {filter}"));
    assert_eq!([added(&db, ends), those_with("i >= -500")], ["3, on codes", "3, on codes"]);
    assert_eq!([those_with("id > 100"), those_with("s = 1")], ["2, on codes", "0, on codes"]);
    assert_eq!(added(&db, "SELECT count(*), max(z) FROM t"), "0, on codes", "a zero may be another");
    for rows in [
        "SELECT min(n + 1), count(*) FROM t",
        "SELECT min(n) FILTER (WHERE id > 5), count(*) FROM t",
        "SELECT max(DISTINCT r), count(*) FROM t",
        "SELECT s, min(n) FROM t GROUP BY s",
    ] {
        assert_eq!(added(&db, rows), "0, as rows", "{rows}");
    }
    run(&db, "DELETE FROM t WHERE id = 77");
    assert_eq!(added(&db, ends), "2, on codes");
}

#[test]
fn end_that_the_first_frozen_chunks_have_not_is_found() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER NOT NULL, b BIGINT)");
    run(
        &db,
        "INSERT INTO t SELECT g, CASE WHEN g > 35000 THEN g END FROM generate_series(1, 40000) q (g);
         CALL albireo.freeze('t')",
    );
    // No chunk is whole.
    run(&db, "DELETE FROM t WHERE a % 5000 = 5");
    for _ in 0..3 {
        assert_eq!(ask(&db, "SELECT min(a), max(b) FROM t"), "1,40000");
        assert_eq!(ask(&db, "SELECT min(b), max(a) FROM t WHERE a <> 35001"), "35002,40000");
    }
}
