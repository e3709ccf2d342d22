//! Filters on frozen rows: each answer is that of the same rows unfrozen. Columns are of all types and such that each
//! form of encoding is there: constants, runs, dictionaries, integers of several widths, texts that are packed, compressed or
//! neither; with NULLs here and there, in runs, everywhere and nowhere.

use albireo::Database;
use albireo_testing::Random;

use crate::support::{ask, database, rows_stay, run};

/// Rows of a chunk and some more.
const ROWS: i64 = 20_000;

const COLUMNS: [&str; 24] = [
    "id", "s", "run", "k", "b", "n", "w", "r", "d", "o", "c", "v", "x", "z", "f", "y", "e", "i", "ts", "tz",
    "u", "nothing", "rare", "l",
];

fn filled() -> Database {
    let db = database();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s SMALLINT, run INTEGER, k BIGINT NOT NULL, b BIGINT NOT NULL,
         n NUMERIC(8,2), w NUMERIC(30,4), r REAL, d DOUBLE PRECISION, o BOOLEAN, c CHAR(5), v VARCHAR(12) NOT NULL, x TEXT,
         z TEXT NOT NULL, f CHAR(8) NOT NULL, y BYTEA, e DATE, i TIME NOT NULL, ts TIMESTAMP, tz TIMESTAMPTZ NOT NULL,
         u UUID, nothing INTEGER, rare VARCHAR(20), l TEXT NOT NULL)",
    );
    run(
        &db,
        &format!(
            "INSERT INTO t SELECT g, nullif(g % 7, 3), CASE WHEN g / 1000 = 4 THEN NULL ELSE g / 100 END, 5,
             (g::bigint * 7919 % 20011 - 500) * 1000003, CASE WHEN g % 17 = 0 THEN NULL ELSE (g % 500) / 4.0 END,
             g * 12345678901234567.5, nullif(g % 11, 5) / 3.0::real, g / 7.0, CASE WHEN g % 19 = 0 THEN NULL ELSE g % 3 = 0 END,
             'c' || g % 10, 'v' || g % 97, CASE WHEN g % 5 = 0 THEN NULL ELSE repeat('text ' || g % 13 || ' ', g % 9) END,
             'unique ' || g::bigint * 7919 % 20011, lpad(to_hex(g::bigint * 7919 % 20011), 8, '0'),
             decode(lpad(to_hex(g % 256), 2, '0'), 'hex'), DATE '2020-01-01' + g % 400,
             TIME '00:00' + (g % 1440) * INTERVAL '1 minute', TIMESTAMP '2020-01-01' + (g % 1000) * INTERVAL '1 hour',
             TIMESTAMPTZ '2020-01-01 00:00+00' + g * INTERVAL '1 second',
             CASE WHEN g % 23 = 0 THEN NULL ELSE lpad(to_hex(g % 50), 32, '0')::uuid END, NULL,
             CASE WHEN g % 4000 = 7 THEN 'rare ' || g END,
             g::bigint * 7919 % 20011 || chr(19968 + g % 500) FROM generate_series(1, {ROWS}) q (g)"
        ),
    );
    run(&db, "DELETE FROM t WHERE id % 36 = 0 OR id BETWEEN 500 AND 700");
    db
}

/// A constant for a column: a value that is there as a rule, or one beside.
fn constant(random: &mut Random, column: &str) -> String {
    let g = random.between(-20, ROWS + 20);
    let key = (g * 7919).rem_euclid(20_011);
    let (day, hour) = (1 + g.rem_euclid(31), g.rem_euclid(24));
    match column {
        "id" => g.to_string(),
        "s" => (g.rem_euclid(9) - 1).to_string(),
        "run" => (g / 100).to_string(),
        "k" => random.between(4, 6).to_string(),
        "b" => ((key - 500) * 1_000_003 + i64::from(random.percent(10))).to_string(),
        // More digits than any value has.
        "n" if random.percent(20) => random
            .pick(&["1000000", "-1000000.00", "123456789.5", "999999.99", "-0.001", "2000000.001"])
            .to_owned(),
        "n" => format!("{}.{:02}", g.rem_euclid(500) / 4, g.rem_euclid(4) * 25),
        "w" => {
            let tenths = i128::from(g) * 123_456_789_012_345_675;
            format!("{}{}.{}", if g < 0 { "-" } else { "" }, tenths.abs() / 10, tenths.abs() % 10)
        }
        "r" | "d" => format!("{}.5", g.rem_euclid(4)),
        "o" => random.percent(50).to_string(),
        "c" => format!("'c{}{}'", g.rem_euclid(12), &"   "[..random.index(4)]),
        "v" => format!("'v{}'", g.rem_euclid(110)),
        "x" => format!("'{}'", format!("text {} ", g.rem_euclid(13)).repeat(g.rem_euclid(9) as usize)),
        "z" => format!("'unique {key}'"),
        "f" => format!("'{key:08x}'"),
        "y" => format!("'\\x{:02x}'::bytea", g.rem_euclid(256)),
        "e" => format!("DATE '2020-01-{day:02}'"),
        "i" => format!("TIME '{hour:02}:{:02}'", key % 60),
        "ts" => format!("TIMESTAMP '2020-01-{day:02} {hour:02}:00'"),
        "tz" => {
            format!("TIMESTAMPTZ '2020-01-01 {:02}:{:02}:{:02}+00'", hour % 6, key % 60, g.rem_euclid(60))
        }
        "u" => format!("UUID '{:032x}'", g.rem_euclid(60)),
        "nothing" => "1".to_owned(),
        "rare" => format!("'rare {}'", g / 4000 * 4000 + 7),
        "l" => {
            let letter = char::from_u32(19_968 + g.rem_euclid(500) as u32).expect("a character");
            format!("'{key}{letter}'")
        }
        other => panic!("{other} is not a column"),
    }
}

fn pattern(random: &mut Random, column: &str) -> String {
    let text = constant(random, column).replace('\'', "");
    let part = &text[..random.index(text.len() + 1)];
    let end = &text[text.len() - random.index(text.len() + 1)..];
    match random.below(7) {
        0 => text.clone(),
        1 | 2 => format!("{part}%"),
        3 => format!("%{end}"),
        4 => format!("%{}%", &part[part.len() / 2..]),
        5 => format!("{part}_%"),
        _ => format!("{}%{end}", &part[..part.len() / 2]),
    }
}

/// A comparison, or several.
fn predicate(random: &mut Random, depth: u32) -> String {
    if depth > 0 && random.percent(40) {
        let join = random.pick(&["AND", "OR"]);
        return format!("({} {join} {})", predicate(random, depth - 1), predicate(random, depth - 1));
    }
    let column = random.pick(&COLUMNS);
    let not = random.pick(&["", "", "NOT "]);
    let is_text = ["c", "v", "x", "z", "f", "rare"].contains(&column);
    match random.below(if is_text { 14 } else { 10 }) {
        0 => format!("{column} IS {not}NULL"),
        1 => format!("{column} {not}BETWEEN {} AND {}", constant(random, column), constant(random, column)),
        2 | 3 => {
            let count = 1 + random.below(12);
            let mut list: Vec<String> = (0..count).map(|_| constant(random, column)).collect();
            if random.percent(10) {
                list.push("NULL".to_owned());
            }
            format!("{column} {not}IN ({})", list.join(", "))
        }
        4..10 => {
            let operator = random.pick(&["=", "=", "<>", "<", "<=", ">", ">="]);
            format!("{column} {operator} {}", constant(random, column))
        }
        _ => format!("{column} {not}LIKE '{}'", pattern(random, column)),
    }
}

/// Questions about the rows that pass: how many, of columns that are gathered, of texts that are, all of a few, and sums
/// that are added up on codes, by groups that are few, as many as fit, and too many.
fn questions(predicate: &str) -> [String; 8] {
    let sums = "count(*), count(n), sum(id), sum(b), sum(n), avg(s), sum(run), sum(k), count(e), count(ts), count(nothing)";
    let by = |groups: &str| {
        format!("SELECT {groups}, {sums} FROM t WHERE {predicate} GROUP BY {groups} ORDER BY {groups}")
    };
    [
        format!("SELECT {sums} FROM t WHERE {predicate}"),
        by("s"),
        by("run, k, nothing"),
        format!("SELECT e, s, count(*), sum(n) FROM t WHERE {predicate} GROUP BY e, s ORDER BY e, s"),
        format!("SELECT count(*) FROM t WHERE {predicate}"),
        format!(
            "SELECT count(*), sum(id), sum(b), sum(n), min(e), max(ts), sum(s), sum(run), count(nothing) FROM t WHERE {predicate}"
        ),
        format!(
            "SELECT count(w), sum(w), min(v), max(x), max(z), min(f), count(o), max(d), min(u::text), count(y) FROM t WHERE {predicate}"
        ),
        format!("SELECT {} FROM t WHERE {predicate} ORDER BY id LIMIT 5", COLUMNS.join(", ")),
    ]
}

fn assert_same(hot: &Database, frozen: &Database, predicate: &str) -> bool {
    let mut is_empty = false;
    for question in questions(predicate) {
        let expected = ask(hot, &question);
        is_empty |= expected == "0";
        assert_eq!(ask(frozen, &question), expected, "{question}");
    }
    is_empty
}

fn assert_all_same(hot: &Database, frozen: &Database, seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let mut empty = 0;
    for _ in 0..count {
        empty += usize::from(assert_same(hot, frozen, &predicate(&mut random, 2)));
    }
    assert!((1..count / 2).contains(&empty), "{empty} of {count} answers are empty");
}

#[test]
fn filters_find_the_same_rows_frozen_as_hot() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    assert_all_same(&hot, &frozen, 1, 100);
    // Rows that die when they are frozen, all of a range among them.
    for db in [&hot, &frozen] {
        run(db, "DELETE FROM t WHERE id % 7 = 1 OR v = 'v42' OR run BETWEEN 20 AND 30");
    }
    assert_all_same(&hot, &frozen, 2, 40);
    // Rows that move, with values that were not there before.
    for db in [&hot, &frozen] {
        run(db, "UPDATE t SET v = 'v1000', n = n + 1000, run = NULL WHERE id % 50 = 3");
    }
    assert_all_same(&hot, &frozen, 3, 30);
}

#[test]
fn each_filter_of_each_column_finds_the_same_rows_frozen_as_hot() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    let mut random = Random::new(4);
    for column in COLUMNS {
        for operator in ["=", "<>", "<", "<=", ">", ">="] {
            assert_same(&hot, &frozen, &format!("{column} {operator} {}", constant(&mut random, column)));
        }
        for test in ["IS NULL", "IS NOT NULL", "IN (NULL)", "= NULL"] {
            assert_same(&hot, &frozen, &format!("{column} {test}"));
        }
        let (one, other) = (constant(&mut random, column), constant(&mut random, column));
        for list in [format!("{one}, {other}, {one}"), format!("{one}, NULL, {other}, {one}, {other}")] {
            for not in ["", "NOT"] {
                assert_same(&hot, &frozen, &format!("({column} {not} IN ({list}) OR id = 77)"));
            }
        }
    }
}

#[test]
fn filter_that_is_asked_again_and_again_finds_the_same_rows() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    for predicate in
        ["b < 20000060 AND k = 5", "id BETWEEN 100 AND 250", "k = 5 AND v IN ('v1', 'v2', 'v3', 'v4')"]
    {
        for _ in 0..4 {
            assert_same(&hot, &frozen, predicate);
        }
        run(&hot, "DELETE FROM t WHERE id = 120");
        run(&frozen, "DELETE FROM t WHERE id = 120");
        assert_same(&hot, &frozen, predicate);
    }
}

/// How many chunks the scan of a query added up or knew, and whether it was asked to.
pub fn added(db: &Database, query: &str) -> String {
    let plan = format!("{:?}", db.execute(&format!("EXPLAIN ANALYZE {query}")).unwrap());
    let added = plan.split("chunks_added=").nth(1).expect("a scan says how many chunks it added up");
    let added = &added[..added.find([',', ']']).expect("metrics end")];
    format!("{added}, {}", if plan.contains("on_codes=true") { "on codes" } else { "as rows" })
}

#[test]
fn sums_of_frozen_rows_are_added_up_on_codes() {
    if !rows_stay() {
        return;
    }
    let db = filled();
    let all = "SELECT sum(n), count(*) FROM t";
    let few = "SELECT s, sum(b), avg(n), count(*) FROM t WHERE id > 5000 GROUP BY s";
    assert_eq!([added(&db, all), added(&db, few)], ["0, as rows", "0, as rows"]);
    run(&db, "CALL albireo.freeze('t')");
    assert_eq!([added(&db, all), added(&db, few)], ["2, on codes", "2, on codes"]);
    for rows in [
        "SELECT s, min(n), count(*) FROM t GROUP BY s",
        "SELECT s, sum(n) FILTER (WHERE id > 5) FROM t GROUP BY s",
        "SELECT s, count(DISTINCT n) FROM t GROUP BY s",
        "SELECT s, sum(n + 1) FROM t GROUP BY s",
        "SELECT v, sum(n) FROM t GROUP BY v",
    ] {
        assert_eq!(added(&db, rows), "0, as rows", "{rows}");
    }
    // Too many groups, too few rows: what a chunk holds decides.
    for rows in
        ["SELECT id, sum(n) FROM t GROUP BY id", "SELECT s, sum(n) FROM t WHERE z = 'unique 5' GROUP BY s"]
    {
        assert_eq!(added(&db, rows), "0, on codes", "{rows}");
    }
    // Hot rows beside frozen ones.
    run(
        &db,
        "INSERT INTO t (id, s, k, b, v, z, f, i, tz, l) SELECT g, 1, 5, 7, '', '', '', '00:00', now(), ''
              FROM generate_series(100001, 110000) q (g)",
    );
    assert_eq!([added(&db, all), added(&db, few)], ["2, on codes", "2, on codes"]);
    assert_eq!(ask(&db, "SELECT sum(b) FROM t WHERE id > 100000 AND b + 0 = 7"), "70000");
}

#[test]
fn statement_finds_the_frozen_rows_that_it_changes() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    for change in [
        "UPDATE t SET b = b + 1 WHERE v LIKE 'v1%' AND n > 100",
        "DELETE FROM t WHERE z >= 'unique 7' AND s IN (1, 2)",
        "UPDATE t SET x = 'moved' WHERE x IS NULL AND rare IS NOT NULL",
        "UPDATE t SET s = s + 1 WHERE c = 'c3'",
    ] {
        assert_eq!(changed(&frozen, change), changed(&hot, change), "{change}");
        assert_same(&hot, &frozen, "true");
    }
}

fn changed(db: &Database, sql: &str) -> String {
    format!("{:?}", db.execute(sql).unwrap())
}

#[test]
fn constant_of_more_digits_than_a_column_has_is_compared_as_any() {
    let db = database();
    run(&db, "CREATE TABLE t (n NUMERIC(2,0), m NUMERIC(4,1) NOT NULL)");
    run(
        &db,
        "INSERT INTO t SELECT CASE WHEN g % 11 = 0 THEN NULL ELSE g % 199 - 99 END, (g % 1000 - 500) / 10.0
         FROM generate_series(1, 20000) s (g)",
    );
    for _ in ["hot", "frozen"] {
        for column in ["n", "m"] {
            for operator in ["=", "<>", "<", "<=", ">", ">="] {
                for constant in
                    ["100000", "-100000", "99", "-99", "99.0", "5.5", "0.05", "-12.30", "1000.0", "999.95"]
                {
                    let count = |of: &str| {
                        ask(&db, &format!("SELECT count(*) FROM t WHERE {of} {operator} {constant}"))
                    };
                    // What is computed from a column is compared row by row.
                    let (fast, plain) = (count(column), count(&format!("({column} + 0.00 * m)")));
                    assert_eq!(fast, plain, "{column} {operator} {constant}");
                }
            }
        }
        run(&db, "CALL albireo.freeze('t')");
    }
}

#[test]
fn constant_of_a_wider_type_is_compared_with_integers_as_any() {
    let db = database();
    run(&db, "CREATE TABLE t (s SMALLINT, i INTEGER NOT NULL, b BIGINT)");
    run(
        &db,
        "INSERT INTO t SELECT CASE WHEN g % 11 = 0 THEN NULL ELSE g * 4 % 65536 - 32768 END,
         g * 214748::bigint % 4294967296 - 2147483648, g FROM generate_series(1, 20000) q (g)",
    );
    run(&db, "INSERT INTO t SELECT -32768, -2147483648, 0; INSERT INTO t SELECT 32767, 2147483647, NULL");
    let edges = [32767, 32768, 2147483647, 2147483648, i128::from(i64::MAX), 99_999_999_999_999_999_999];
    let edges: Vec<i128> = edges.iter().flat_map(|edge| [*edge, -edge, -edge - 1]).collect();
    for state in ["hot", "frozen"] {
        for column in ["s", "i", "b"] {
            for operator in ["=", "<>", "<", "<=", ">", ">="] {
                for edge in &edges {
                    let count = |of: &str| {
                        ask(&db, &format!("SELECT count(*), sum(i) FROM t WHERE {of} {operator} {edge}"))
                    };
                    // What is computed from a column is compared row by row.
                    let (fast, plain) = (count(column), count(&format!("({column}::numeric + 0 * i)")));
                    assert_eq!(fast, plain, "{column} {operator} {edge}, {state}");
                }
            }
        }
        run(&db, "CALL albireo.freeze('t')");
    }
}
