//! Data that others made: TPC-H from the `tpchgen` crates, read from CSV and Parquet, and the 22
//! queries over it with SQLite's answers.
//!
//! `ALBIREO_TEST_TPCH_SCALE` sets the scale; see [`scale`].

#![allow(clippy::disallowed_methods, reason = "tests write the files that are to be read")]

mod data;

use std::sync::LazyLock;

use albireo::{Config, Database, Outcome, QueryResult, SqlType, Value};
use data::{Directory, TABLES, Table};
use rusqlite::types::Value as SqliteValue;

/// Digits after the point up to which decimals are exact in SQLite's sums of doubles.
const EXACT_SCALE: u8 = 4;
/// How far other numbers may be apart, relatively.
const TOLERANCE: f64 = 1e-9;

macro_rules! queries {
    ($($number:literal)*) => { [$(include_str!(concat!("queries/", $number, ".sql"))),*] };
}

/// The queries of clause 2.4 with the parameters of its validation.
const QUERIES: [&str; 22] = queries![
    "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11"
    "12" "13" "14" "15" "16" "17" "18" "19" "20" "21" "22"
];

/// 1 is a gigabyte. The default, 600,000 lines of orders, takes a minute of computing though neither
/// we nor SQLite are optimised in tests; 0.01 takes a tenth.
fn scale() -> f64 {
    std::env::var("ALBIREO_TEST_TPCH_SCALE").map_or(0.1, |scale| scale.parse().expect("a number"))
}

fn query(index: usize) -> String {
    QUERIES[index].replace(":fraction", &format!("{:.10}", 0.0001 / scale()))
}

/// A query as SQLite understands it.
fn in_sqlite(sql: &str) -> String {
    let days = [
        ("DATE '1998-12-01' - INTERVAL '90' DAY", "'1998-09-02'"),
        ("DATE '1993-07-01' + INTERVAL '3' MONTH", "'1993-10-01'"),
        ("DATE '1994-01-01' + INTERVAL '1' YEAR", "'1995-01-01'"),
        ("DATE '1993-10-01' + INTERVAL '3' MONTH", "'1994-01-01'"),
        ("DATE '1995-09-01' + INTERVAL '1' MONTH", "'1995-10-01'"),
        ("DATE '1996-01-01' + INTERVAL '3' MONTH", "'1996-04-01'"),
        ("DATE '", "'"),
        ("extract(year FROM l_shipdate)", "CAST(substr(l_shipdate, 1, 4) AS INTEGER)"),
        ("extract(year FROM o_orderdate)", "CAST(substr(o_orderdate, 1, 4) AS INTEGER)"),
        ("substring(c_phone FROM 1 FOR 2)", "substr(c_phone, 1, 2)"),
        ("count(o_orderkey)", "count(o_orderkey) AS c_count"),
        ("c_orders (c_custkey, c_count)", "c_orders"),
    ];
    days.iter().fold(sql.to_owned(), |sql, (ours, theirs)| sql.replace(ours, theirs))
}

type Rows = Vec<Vec<SqliteValue>>;

/// What SQLite knows: the queries' answers and the tables' sizes.
struct Expected {
    answers: Vec<Rows>,
    counts: Vec<u64>,
}

static EXPECTED: LazyLock<Expected> = LazyLock::new(|| {
    let connection = data::sqlite(scale());
    let rows = |sql: &str| -> Rows {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|i| row.get(i)).collect()).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let count = |table: &Table| {
        connection.query_row(&format!("SELECT count(*) FROM {}", table.name), [], |row| row.get(0)).unwrap()
    };
    Expected {
        answers: (0..QUERIES.len()).map(|index| rows(&in_sqlite(&query(index)))).collect(),
        counts: TABLES.iter().map(count).collect(),
    }
});

fn agree(found: &Value, ty: SqlType, expected: &SqliteValue) -> bool {
    let expected = match expected {
        SqliteValue::Null => return found.is_null(),
        SqliteValue::Text(text) => return found.to_string().trim_end() == text.trim_end(),
        SqliteValue::Integer(number) => *number as f64,
        SqliteValue::Real(number) => *number,
        SqliteValue::Blob(_) => return false,
    };
    let Ok(number) = found.to_string().parse::<f64>() else { return false };
    match ty {
        SqlType::Decimal { scale: scale @ 0..=EXACT_SCALE, .. } => {
            format!("{:.*}", usize::from(scale), expected + 0.0) == found.to_string()
        }
        _ => (number - expected).abs() <= TOLERANCE * number.abs().max(expected.abs()),
    }
}

fn compare(what: &str, found: &QueryResult, expected: &Rows) {
    let rows = found.rows();
    for (number, (found_row, expected)) in rows.iter().zip(expected).enumerate() {
        let same = found_row.iter().zip(&*found.columns).zip(expected).all(|((v, c), e)| agree(v, c.ty, e));
        assert!(same, "row {number} of {what}\n  expected {expected:?}\n  found    {found_row:?}");
    }
    assert_eq!(rows.len(), expected.len(), "rows of {what}");
}

fn database(partitions: u16) -> Database {
    Database::in_memory(Config { partitions, query_threads: 2, ..Config::default() }).unwrap()
}

fn load(db: &Database, table: &Table, copy: &str, expected: u64) {
    let outcomes = db.execute(copy).unwrap_or_else(|error| panic!("{copy}\n{error}"));
    assert!(
        matches!(outcomes[..], [Outcome::Done { rows, .. }] if rows == expected),
        "{}: {outcomes:?}",
        table.name
    );
}

fn compare_all(db: &Database) {
    for (index, expected) in EXPECTED.answers.iter().enumerate() {
        let name = format!("Q{}", index + 1);
        let found = db.query(&query(index), &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        compare(&name, &found, expected);
    }
}

#[test]
fn tables_from_csv_answer_all_queries_as_sqlite_does() {
    let (directory, db) = (Directory::new("csv"), database(1));
    for (table, &count) in TABLES.iter().zip(&EXPECTED.counts) {
        let file = directory.file(table, "csv");
        table.write_csv(scale(), &file);
        db.execute(&table.create(false)).unwrap();
        load(&db, table, &format!("COPY {} FROM '{file}' (FORMAT csv, HEADER)", table.name), count);
    }
    compare_all(&db);
}

#[test]
fn partitioned_tables_from_parquet_answer_all_queries_as_sqlite_does() {
    let (directory, db) = (Directory::new("parquet"), database(3));
    for (table, &count) in TABLES.iter().zip(&EXPECTED.counts) {
        let file = directory.file(table, "parquet");
        table.write_parquet(scale(), &file);
        db.execute(&table.create(true)).unwrap();
        load(&db, table, &format!("COPY {} FROM '{file}' (FORMAT parquet)", table.name), count);
    }
    compare_all(&db);
}

#[test]
fn parquet_files_answer_all_queries_without_being_loaded() {
    let (directory, db) = (Directory::new("files"), database(1));
    for table in &TABLES {
        table.write_parquet(scale(), &directory.file(table, "parquet"));
    }
    // Each table's name stands for its file in the whole query.
    let with: Vec<String> = TABLES
        .iter()
        .map(|table| format!("{} AS (SELECT * FROM '{}')", table.name, directory.file(table, "parquet")))
        .collect();
    let with = format!("WITH {}", with.join(", "));
    for (index, expected) in EXPECTED.answers.iter().enumerate() {
        let (sql, name) = (query(index), format!("Q{} over files", index + 1));
        let sql = match sql.split_once("\nWITH ") {
            Some((_, rest)) => format!("{with}, {rest}"),
            None => format!("{with}\n{sql}"),
        };
        let found = db.query(&sql, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        compare(&name, &found, expected);
    }
}

#[test]
fn queries_have_answers_that_say_something() {
    let empty: Vec<usize> =
        (1..).zip(&EXPECTED.answers).filter(|(_, rows)| rows.is_empty()).map(|(n, _)| n).collect();
    // Orders of more than 300 pieces are rare; so are they among few.
    assert!(empty.is_empty() || scale() < 0.1 && empty.iter().all(|&n| n == 18), "{empty:?}");
}
