//! Conditions on one text column that are expressions: on frozen rows they are evaluated once for each text of a dictionary.
//! Each finds the rows that it finds unfrozen, and for which a CASE says so that is computed from each row.

use albireo::{Database, Value};

use crate::support::{ask, database, fails, rows_stay, run, show, state};

/// Rows of a chunk and some more.
const ROWS: i64 = 20_000;
/// Different texts in `v`, and in `long`.
const TEXTS: usize = 97;

/// Columns of texts: few short ones, few long ones that chunks share, with NULLs, of a fixed length, in runs, in runs with
/// NULLs, of one text, each another, and none at all.
const COLUMNS: [&str; 9] = ["v", "long", "x", "c", "run", "gap", "one", "z", "nothing"];

/// Conditions on `?`.
const CONDITIONS: [&str; 34] = [
    "upper(?) = 'V7'",
    "length(?) > 3",
    "substr(?, 1, 2) = 'v1'",
    "starts_with(?, 'v2')",
    "left(?, 1) || right(?, 1) IN ('v1', 'T3', 'n7')",
    "? ILIKE 'V_5%'",
    "? NOT ILIKE '%3'",
    "? LIKE '_1'",
    "? NOT LIKE '%_1%'",
    "? LIKE '10\\%%'",
    "? ~ '^v[0-4]'",
    "? !~ '[135]$'",
    "? ~* 'TEXT|NAME'",
    "? !~* 'V.*7'",
    "regexp_like(?, '[0-9]{2}$')",
    "? SIMILAR TO '(v|c)[0-9]+'",
    "? IN ('v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','c1','run 3')",
    "? NOT IN ('v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','c1','run 3')",
    "? NOT IN ('v1','v2','v3','v4','v5','v6','v7','v8','v9','v10','v11','v12','v13','v14','v15','v16','c1',NULL)",
    "(lower(?) = 'v3' OR length(?) = 2 OR ? = 'v77')",
    "(length(?) = 2 AND ? <> 'v5')",
    "CASE WHEN ? < 'v5' THEN length(?) = 2 ELSE upper(?) LIKE '%9' END",
    "coalesce(?, 'none') = 'none'",
    "coalesce(upper(?), 'V1') = 'V1'",
    "upper(?) IS NULL",
    "upper(?) IS NOT NULL",
    "? IS DISTINCT FROM 'v5'",
    "? IS NOT DISTINCT FROM 'v5'",
    "nullif(?, 'v3') IS NULL",
    "(upper(?) = 'V3') IS NOT TRUE",
    "NOT (upper(?) = 'V3')",
    "md5(?) < '8'",
    "reverse(?) <= ?",
    "(ascii(?) + length(?)) % 3 = 1",
];

/// Conditions on `?` and other columns.
const MIXED: [&str; 5] = [
    "upper(?) = 'V7' AND id % 2 = 0",
    "(? ILIKE '%7' OR n < 40)",
    "(n < 40 AND length(?) = 2 OR id = 77)",
    "n > 20 AND (? ~ '1' OR length(v) = 2)",
    "? || 'x' > v",
];

fn filled() -> Database {
    let db = database();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, v VARCHAR(12) NOT NULL, long TEXT NOT NULL, x TEXT,
         c CHAR(5) NOT NULL, run TEXT NOT NULL, gap TEXT, one TEXT NOT NULL, z TEXT NOT NULL, nothing TEXT)",
    );
    run(
        &db,
        &format!(
            "INSERT INTO t SELECT g, g % 97, 'v' || g % 97, 'Name ' || g % 97 || repeat(' and more of it', 6),
             CASE WHEN g % 5 = 0 THEN NULL WHEN g % 7 = 0 THEN '' ELSE 'Text ' || g % 13 END, 'c' || g % 10,
             'run ' || g / 1000, CASE WHEN g / 1000 % 3 = 1 THEN NULL ELSE 'v' || g / 1000 END, 'v7',
             'unique ' || g::bigint * 7919 % 20011, NULL FROM generate_series(1, {ROWS}) q (g)"
        ),
    );
    run(&db, "DELETE FROM t WHERE id % 36 = 0 OR id BETWEEN 500 AND 700");
    db
}

/// Every third condition of each column, beginning with one of the first three.
fn conditions(first: usize) -> impl Iterator<Item = String> {
    let of = move |(at, column): (usize, &'static str)| {
        let all = CONDITIONS.iter().chain(&MIXED).enumerate();
        let chosen = all.filter(move |(number, _)| (number + at) % 3 == first);
        chosen.map(move |(_, condition)| condition.replace('?', column))
    };
    COLUMNS.into_iter().enumerate().flat_map(of)
}

fn assert_same(hot: &Database, frozen: &Database, first: usize) {
    let mut found = 0;
    for condition in conditions(first) {
        let counted = format!(
            "SELECT count(CASE WHEN {condition} THEN 1 END), sum(CASE WHEN {condition} THEN id END) FROM t"
        );
        let filtered = format!("SELECT count(*), sum(id), min(v), max(x) FROM t WHERE {condition}");
        let (expected, of_hot) = (ask(hot, &counted), ask(hot, &filtered));
        assert!(of_hot.starts_with(&format!("{expected},")), "{condition}: {of_hot} for {expected}");
        assert_eq!(ask(frozen, &filtered), of_hot, "{condition}");
        found += usize::from(!expected.starts_with("0,"));
    }
    assert!(found > 30, "{found} conditions find rows: too few for a test");
}

#[test]
fn expressions_over_one_column_of_texts_find_the_same_rows_frozen_as_hot() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    assert_same(&hot, &frozen, 0);
    // Rows that die when they are frozen, all of some texts among them, and rows that move, with texts that are new.
    for db in [&hot, &frozen] {
        run(db, "DELETE FROM t WHERE id % 7 = 1 OR v = 'v42' OR run = 'run 4'");
        run(db, "UPDATE t SET v = 'V1000', x = NULL, gap = 'moved' WHERE id % 50 = 3");
    }
    assert_same(&hot, &frozen, 1);
    run(&frozen, "CALL albireo.freeze('t')");
    assert_same(&hot, &frozen, 2);
}

#[test]
fn text_of_dead_rows_raises_no_error() {
    let (hot, frozen) = (filled(), filled());
    for db in [&hot, &frozen] {
        run(db, "UPDATE t SET v = 'vx' WHERE id % 1000 = 5");
    }
    run(&frozen, "CALL albireo.freeze('t')");
    let dividing = "SELECT count(*), sum(id) FROM t WHERE 1 / (length(v) - 3) < 0";
    let casting = "SELECT count(*), sum(id) FROM t WHERE substr(v, 2)::integer > 5";
    let guarded = "SELECT count(*), sum(id) FROM t WHERE length(v) <> 3 AND 1 / (length(v) - 3) < 0";
    for db in [&hot, &frozen] {
        assert_eq!(state(&fails(db, dividing)), "22012");
        assert_eq!(state(&fails(db, casting)), "22P02");
    }
    assert_eq!(ask(&frozen, guarded), ask(&hot, guarded));
    for db in [&hot, &frozen] {
        run(db, "DELETE FROM t WHERE length(v) = 3 OR v = 'vx'");
    }
    for query in [dividing, casting, guarded] {
        let answer = ask(&frozen, query);
        assert!(!answer.starts_with("0,"), "{query}: {answer}");
        assert_eq!(answer, ask(&hot, query), "{query}");
    }
}

#[test]
fn text_of_rows_that_another_filter_refuses_raises_no_error() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    for condition in [
        "n < 10 AND length(v) * 1000000000 > 5",
        "length(v) * 1000000000 > 5 AND n < 10",
        "n < 10 AND length(v) * 1000000000 > 5 AND upper(v) <> 'V3'",
        "(n < 10 AND length(v) * 1000000000 > 5 OR id = 77)",
        "n < 10 AND (length(v) * 1000000000 > 5 OR id = 77)",
        "n < 10 AND 1 / (length(v) - 3) < 0",
        "v < 'v10' AND 1 / (length(v) - 3) < 0",
        "length(v) = 3 OR 1 / (length(v) - 3) < 0",
        "n >= 10 OR 1 / (length(v) - 3) < 0",
    ] {
        let query = format!("SELECT count(*), sum(id) FROM t WHERE {condition}");
        assert_eq!(ask(&frozen, &query), ask(&hot, &query), "{condition}");
    }
    for db in [&hot, &frozen] {
        let all = "SELECT count(*) FROM t WHERE length(v) * 1000000000 > 5";
        assert_eq!(state(&fails(db, all)), "22003");
    }
}

#[test]
fn parameters_of_expressions_are_those_of_each_execution() {
    let (hot, frozen) = (filled(), filled());
    run(&frozen, "CALL albireo.freeze('t')");
    let query = "SELECT count(*), sum(id) FROM t WHERE upper(v) = $1 OR v ILIKE $2";
    for (one, other) in [("V7", "%8"), ("V8", "v_1"), ("none", ""), ("V7", "%8")] {
        let values: [Value; 2] = [one.into(), other.into()];
        let answer = |db: &Database| show(&db.query(query, &values).unwrap());
        assert_eq!(answer(&frozen), answer(&hot), "{one}, {other}");
    }
}

/// For how many texts and rows the scan of a query evaluated expressions.
fn computed(db: &Database, condition: &str) -> String {
    let query = format!("EXPLAIN ANALYZE SELECT count(*) FROM t WHERE {condition}");
    let plan = format!("{:?}", db.execute(&query).unwrap());
    let computed =
        plan.split("values_computed=").nth(1).unwrap_or_else(|| panic!("a scan says how many: {plan}"));
    computed[..computed.find([',', ']']).expect("metrics end")].to_owned()
}

#[test]
fn expression_is_evaluated_once_for_each_text_of_a_chunk() {
    if !rows_stay() {
        return;
    }
    let db = filled();
    let alive: usize = ask(&db, "SELECT count(*) FROM t").parse().unwrap();
    let by_row = format!("{:.2} K", alive as f64 / 1000.0);
    assert_eq!(computed(&db, "upper(v) = 'V7'"), by_row);
    run(&db, "CALL albireo.freeze('t')");
    // In each of two chunks.
    let by_text = (2 * TEXTS).to_string();
    for condition in ["upper(?) = 'V7'", "? ILIKE 'v7%'", "? LIKE '_7'", "? ~ '7'", "length(?) > 2"] {
        for column in ["v", "long"] {
            assert_eq!(computed(&db, &condition.replace('?', column)), by_text, "{condition} of {column}");
        }
    }
    // 13 texts, the empty one and NULL.
    assert_eq!(computed(&db, "upper(x) = 'TEXT 7'"), "30");
    assert_eq!(computed(&db, "upper(one) = 'V7'"), "2");
    // Each row has another text, or fewer rows are wanted than there are texts.
    assert_eq!(computed(&db, "upper(z) = 'V7'"), by_row);
    let two = "z IN ('unique 7919', 'unique 15838') AND upper(v) = 'V7'";
    assert_eq!(computed(&db, two), "2");
    // Equality, lists, ranges and beginnings need no evaluation.
    assert_eq!(computed(&db, "v = 'v7' OR v IN ('v1', 'v2') OR v > 'v9' OR v LIKE 'v8%'"), "0");
}
