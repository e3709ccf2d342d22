//! Rows and sums of unchanged chunks are kept between queries that ask the same. Each answer, asked as
//! often as it takes to be kept and once more, is held against that of the same query with a filter that
//! no scan evaluates itself (`w + 0`), on snapshots in which chunks grow, change and lose rows.

mod support;

use std::sync::Arc;

use albireo_base::SqlType;
use albireo_olap::memory::{MemoryDatabase, MemoryRelation};
use albireo_olap::relation::{Relation, Snapshot};
use albireo_olap::{OlapConfig, RunOptions};
use arrow::array::{ArrayRef, Decimal128Array, Int16Array, Int32Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use support::{Fixture, decimal, relation, rows};

const CHUNK: usize = 16_384;
/// Lines of an order, one row after the other.
const LINES: usize = 10;
const WAREHOUSES: usize = 60;

fn table() -> Relation {
    let columns = [
        ("o", SqlType::Integer),
        ("w", SqlType::SmallInt),
        ("line", SqlType::SmallInt),
        ("n", decimal(12, 2)),
        ("m", decimal(12, 2)),
    ];
    let mut relation = relation(1, "lines", &columns, &[0, 1, 2]);
    relation.columns[3].nullable = false;
    relation
}

/// Rows `first..first + count`; `salt` decides the amounts.
fn batch(first: usize, count: usize, salt: i128) -> RecordBatch {
    let rows = || first..first + count;
    let order = |row: usize| row / LINES;
    let amount = |row: usize| (row as i128 * 7919 + salt) % 20_011 - 10_000;
    let decimals = |values: Vec<Option<i128>>| {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(12, 2).unwrap()) as ArrayRef
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(rows().map(|row| (order(row) / WAREHOUSES) as i32))),
        Arc::new(Int16Array::from_iter_values(rows().map(|row| (order(row) % WAREHOUSES) as i16))),
        Arc::new(Int16Array::from_iter_values(rows().map(|row| (row % LINES) as i16))),
        decimals(rows().map(|row| Some(amount(row))).collect()),
        decimals(rows().map(|row| (row % 3 > 0).then(|| amount(row))).collect()),
    ];
    RecordBatch::try_new(table().arrow_schema(), columns).unwrap()
}

/// Chunks of all rows up to `count`; those from chunk `changed` on with other amounts.
fn chunks(count: usize, changed: usize) -> Vec<RecordBatch> {
    let chunk = |first: usize| {
        let salt = if first / CHUNK < changed { 0 } else { 55 };
        batch(first, CHUNK.min(count - first), salt)
    };
    (0..count).step_by(CHUNK).map(chunk).collect()
}

fn snapshot(data: MemoryRelation) -> Arc<dyn Snapshot> {
    let mut database = MemoryDatabase::default();
    database.add(table(), Arc::new(data));
    Arc::new(database)
}

const QUESTIONS: [&str; 6] = [
    "select o, sum(n) from lines where w = 7 group by o order by o",
    // The same columns and filter, but each row by itself.
    "select o, n from lines where w = 7 order by o, n",
    "select o, sum(n) from lines where w = 8 group by o order by o",
    "select o, line, n from lines where w = 7 and o between 5 and 60 order by o, line",
    "select sum(n), min(o) from lines where w in (7, 8)",
    "select o, sum(m), sum(n) from lines where w = 7 group by o order by o",
];

fn answers_are_right(f: &Fixture, snapshot: &Arc<dyn Snapshot>) {
    for sql in QUESTIONS {
        let ask = |sql: &str| {
            let prepared = f.prepare(sql).unwrap();
            rows(&f.olap.run(&prepared, &[], snapshot, RunOptions::default()).unwrap().batches)
        };
        let plain = ask(&sql.replace("w =", "w + 0 =").replace("w in", "w + 0 in"));
        for time in 1..=4 {
            assert_eq!(ask(sql), plain, "{sql}, asked {time} times");
        }
    }
}

/// What EXPLAIN ANALYZE says about a question on a snapshot.
fn analyzed(f: &Fixture, sql: &str, snapshot: &Arc<dyn Snapshot>) -> String {
    let prepared = f.prepare(sql).unwrap();
    f.olap.explain_analyze(&prepared, &[], snapshot, RunOptions::default()).unwrap()
}

#[test]
fn kept_rows_and_sums_follow_every_change_of_their_chunks() {
    for threads in [1, 3] {
        let config = OlapConfig { threads, ..OlapConfig::default() };
        let f = Fixture::with_config(vec![(table(), chunks(100, 0))], config);
        let rows = 4 * CHUNK + 1234;
        let first = snapshot(MemoryRelation::new(chunks(rows, 9), 1));
        answers_are_right(&f, &first);
        assert!(f.olap.memory_kept_bytes() > 0);
        let text = analyzed(&f, QUESTIONS[0], &first);
        assert!(text.contains("chunks_kept=4"), "all full chunks are kept:\n{text}");
        // The last chunk grows and becomes full; then chunks change; then some of their rows die.
        answers_are_right(&f, &snapshot(MemoryRelation::new(chunks(rows + 3 * CHUNK, 9), 1)));
        answers_are_right(&f, &snapshot(MemoryRelation::new(chunks(rows, 2), 2)));
        let live = BooleanBuffer::collect_bool(CHUNK, |row| row % 77 > 30);
        let holey = snapshot(MemoryRelation::new(chunks(rows, 9), 1).with_live(1, live));
        answers_are_right(&f, &holey);
        let text = analyzed(&f, QUESTIONS[0], &holey);
        assert!(text.contains("chunks_kept=3"), "not the chunk with dead rows:\n{text}");
        answers_are_right(&f, &first);
    }
}

#[test]
fn sums_are_taken_by_the_scan_where_nothing_else_is_asked_of_the_rows() {
    let f = Fixture::new(vec![(table(), chunks(5 * CHUNK, 9))]);
    let explain = |sql: &str| analyzed(&f, sql, &f.snapshot());
    let summing = [QUESTIONS[0], "select sum(n) from lines where w = 7"];
    for sql in summing {
        let text = explain(sql);
        assert!(text.contains("sums=[n#"), "{text}");
    }
    // Ten lines of an order become one row, in 27 runs a chunk.
    assert!(explain(QUESTIONS[0]).contains("output_rows=137"), "{}", explain(QUESTIONS[0]));
    let not_summing = [
        "select o, sum(n), count(*) from lines where w = 7 group by o",
        "select o, sum(n), max(line) from lines where w = 7 group by o",
        "select o, avg(n) from lines where w = 7 group by o",
        "select o, sum(distinct n) from lines where w = 7 group by o",
        "select n, sum(n) from lines where w = 7 group by n",
        "select o, sum(n) filter (where line > 3) from lines where w = 7 group by o",
        "select o, sum(m) from lines where w = 7 group by o",
        "select o, sum(n + 1) from lines where w = 7 group by o",
        "select sum(o) from lines where w = 7",
        "select o, sum(n) from lines where w = 7 and o % 2 = 1 group by o",
    ];
    for sql in not_summing {
        let text = explain(sql);
        assert!(!text.contains("sums=["), "{sql}\n{text}");
    }
}

#[test]
fn question_asked_once_leaves_nothing_behind_and_a_dropped_table_neither() {
    let f = Fixture::new(vec![(table(), chunks(3 * CHUNK, 9))]);
    for w in 0..20 {
        f.rows(&format!("select o, sum(n) from lines where w = {w} group by o"));
    }
    assert_eq!(f.olap.memory_kept_bytes(), 0);
    f.rows(QUESTIONS[0]);
    f.rows(QUESTIONS[0]);
    let kept = f.olap.memory_kept_bytes();
    assert!(kept > 0 && kept < 10_000, "three chunks of 28 rows: {kept}");
    f.olap.forget(table().id);
    assert_eq!(f.olap.memory_kept_bytes(), 0);
}
