//! Scans, filters, limits, parameters, errors and cancellation.
#![allow(
    clippy::disallowed_methods,
    reason = "a test or a measurement uses files, threads and clocks directly"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlType, Value};
use albireo_olap::memory::{MemoryDatabase, MemoryRelation};
use albireo_olap::relation::Snapshot;
use albireo_olap::{CancelToken, Olap, OlapConfig, RunOptions};
use albireo_testing::wait_until;
use arrow::array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow::buffer::BooleanBuffer;
use support::{Fixture, decimal, relation, rows};

const CHUNK: i32 = 1000;

/// `t(id, g, amount, note)`: `chunks` chunks of 1000 rows, id ascending, every 7th note NULL.
fn table(chunks: i32) -> (albireo_olap::relation::Relation, Vec<RecordBatch>) {
    let r = relation(
        1,
        "t",
        &[
            ("id", SqlType::Integer),
            ("g", SqlType::Integer),
            ("amount", decimal(12, 2)),
            ("note", SqlType::Varchar(24)),
        ],
        &[0],
    );
    let batches = (0..chunks)
        .map(|c| {
            let ids: Vec<i32> = (c * CHUNK..(c + 1) * CHUNK).collect();
            let amounts = ids.iter().map(|i| i128::from(*i) * 10).collect::<Vec<_>>();
            let notes = ids.iter().map(|i| (i % 7 != 0).then(|| format!("note {i}")));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int32Array::from(ids.clone())),
                Arc::new(Int32Array::from(ids.iter().map(|i| i % 10).collect::<Vec<_>>())),
                Arc::new(Decimal128Array::from(amounts).with_precision_and_scale(12, 2).unwrap()),
                Arc::new(notes.collect::<StringViewArray>()),
            ];
            RecordBatch::try_new(r.arrow_schema(), columns).unwrap()
        })
        .collect();
    (r, batches)
}

fn fixture(chunks: i32) -> Fixture {
    Fixture::new(vec![table(chunks)])
}

#[test]
fn filters_the_scan_decides_give_the_right_rows() {
    let f = fixture(5);
    let count = |condition: &str| f.value(&format!("select count(*) from t where {condition}"));
    assert_eq!(count("id >= 2500"), "2500");
    assert_eq!(count("2500 > id"), "2500");
    assert_eq!(count("id between 990 and 1010"), "21");
    assert_eq!(count("amount < 10.00"), "100");
    assert_eq!(count("amount <= 10.005"), "101");
    assert_eq!(count("amount > 49989"), "0");
    assert_eq!(count("id = 17 or id = 4711"), "2");
    assert_eq!(count("id in (1, 2, 3, 4, 5, 9999)"), "5");
    assert_eq!(count("id not in (1, 2, 3, 4, 5, 9999)"), "4995");
    assert_eq!(count("note is null"), "715");
    assert_eq!(count("note is not null and id < 7"), "6");
    assert_eq!(count("note = 'note 8'"), "1");
    assert_eq!(count("note <> 'note 8'"), "4284");
    assert_eq!(count("note like 'note 1%' and id < 100"), "10");
    assert_eq!(count("id < 0"), "0");
    assert_eq!(count("g = 3 and amount > 100"), "400");
    assert_eq!(count("id = null"), "0");
    assert_eq!(count("not (id > 10)"), "11");
}

#[test]
fn zone_maps_skip_chunks() {
    let f = fixture(20);
    let prepared = f.prepare("select sum(amount) from t where id >= 19500").unwrap();
    let text = f.olap.explain_analyze(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
    assert!(text.contains("chunks_pruned=19"), "{text}");
}

#[test]
fn dead_slots_are_not_seen() {
    let (r, batches) = table(2);
    let dead_evens = BooleanBuffer::collect_bool(CHUNK as usize, |i| i % 2 == 1);
    let data = MemoryRelation::new(batches, 1).with_live(0, dead_evens);
    let mut database = MemoryDatabase::default();
    database.add(r, Arc::new(data));
    let f = Fixture { olap: Olap::new(OlapConfig::default()).unwrap(), database: Arc::new(database) };
    assert_eq!(f.value("select count(*) from t"), "1500");
    assert_eq!(f.value("select count(*) from t where id < 10"), "5");
    assert_eq!(f.value("select sum(id) from t where id < 1000"), "250000");
    assert_eq!(f.value("select min(id), max(id) from t where id < 10"), "1|9");
}

#[test]
fn limits_and_order_hold() {
    let f = fixture(5);
    assert_eq!(f.rows("select id from t limit 3").len(), 3);
    assert_eq!(f.rows("select id from t where id > 4000 limit 2000").len(), 999);
    assert_eq!(f.rows("select id from t order by id desc limit 2 offset 1"), ["4998", "4997"]);
    assert_eq!(f.rows("select note from t order by note nulls first limit 1"), [""]);
    assert_eq!(f.rows("select note from t where id < 9 order by note limit 1"), ["note 1"]);
    assert_eq!(
        f.rows("select g, count(*), sum(amount) from t where id < 20 group by g order by g limit 2"),
        ["0|2|1.00", "1|2|1.20"]
    );
}

#[test]
fn two_threads_see_every_row_once() {
    let config = OlapConfig { threads: 2, ..OlapConfig::default() };
    let f = Fixture::with_config(vec![table(40)], config);
    assert_eq!(f.value("select count(*), sum(id), count(distinct g) from t"), "40000|799980000|10");
    let sql = "select count(*) from t a, t b where a.id = b.id and a.g = 1";
    assert_eq!(f.value(sql), "4000");
}

#[test]
fn parameters_are_bound_at_each_run() {
    let f = fixture(3);
    let sql = "select count(*), min(note) from t where id >= $1 and amount < $2 and note <> $3";
    let types = [SqlType::Integer, decimal(12, 2), SqlType::Text];
    let prepared = f.prepare_with(sql, &types).unwrap();
    let run = |id: i64, amount: &str, note: &str| {
        let parameters =
            [Value::BigInt(id), Value::parse(amount, decimal(12, 2)).unwrap(), Value::Text(note.to_owned())];
        let output = f.olap.run(&prepared, &parameters, &f.snapshot(), RunOptions::default()).unwrap();
        rows(&output.batches)
    };
    assert_eq!(run(2990, "299.50", "note 2991"), ["4|note 2990"]);
    assert_eq!(run(2995, "300.00", "none"), ["4|note 2995"]);
    let none = f.olap.run(&prepared, &[], &f.snapshot(), RunOptions::default());
    assert_eq!(none.unwrap_err().state().to_string(), "42P02");
}

#[test]
fn errors_have_sqlstates() {
    let f = fixture(1);
    for (sql, state) in [
        ("select nothing from t", "42703"),
        ("select * from missing", "42P01"),
        ("select frobnicate(id) from t", "42883"),
        ("select sum(note) from t", "42883"),
        ("select id, sum(amount) from t", "42803"),
        ("select a.id from t a, t b where id = 1", "42702"),
        ("select (select id from t) as x", "21000"),
        ("select cast(note as integer) from t", "22P02"),
        ("select cast('2022-13-01' as date)", "22008"),
        ("select id + note from t", "42883"),
    ] {
        assert_eq!(f.state_of(sql), state, "{sql}");
    }
    let e = f.query("select amont from t").unwrap_err();
    assert!(e.hint().is_some_and(|h| h.contains("amount")), "{e}");
}

#[test]
fn query_over_its_memory_limit_is_53200_and_the_engine_lives() {
    let f = fixture(40);
    let options = RunOptions { memory_limit_bytes: Some(100_000), ..RunOptions::default() };
    let sql = "select note, sum(amount) from t group by note order by 2";
    let e = f.query_with(sql, options).unwrap_err();
    assert_eq!(e.state().to_string(), "53200", "{e}");
    assert!(e.hint().is_some());
    assert_eq!(f.value("select count(*) from t"), "40000");
    assert_eq!(f.olap.memory_used_bytes(), 0);
}

#[test]
fn query_that_spills_gives_the_same_rows() {
    let directory = tempfile::tempdir().unwrap();
    let spills = Some(directory.path().to_owned());
    let config = OlapConfig { spill_directory: spills, ..OlapConfig::default() };
    let f = Fixture::with_config(vec![table(60)], config);
    let sql = "select note, id from t order by note, id";
    let whole = f.query(sql).unwrap();
    let options = RunOptions { memory_limit_bytes: Some(16 << 20), ..RunOptions::default() };
    let spilled = f.query_with(sql, options).unwrap();
    assert_eq!(rows(&whole.batches), rows(&spilled.batches));
    assert_eq!(f.olap.spill_used_bytes(), 0);
}

#[test]
fn cancelled_query_ends_with_57014() {
    let f = fixture(40);
    let cancel = CancelToken::new();
    let options = RunOptions { cancel: cancel.clone(), ..RunOptions::default() };
    let sql = "select count(*) from t a, t b where a.id + b.id > 7 and a.id <> b.id";
    let prepared = f.prepare(sql).unwrap();
    let (olap, snapshot) = (f.olap.clone(), f.snapshot());
    let query = std::thread::spawn(move || olap.run(&prepared, &[], &snapshot, options));
    wait_until("the join has rows", || f.olap.memory_used_bytes() > 0);
    cancel.cancel();
    // Not cancelled, it would run for minutes and succeed.
    let e = query.join().unwrap().unwrap_err();
    assert_eq!(e.state().to_string(), "57014");
}

#[test]
fn query_out_of_time_ends_with_57014() {
    let f = fixture(40);
    let options = RunOptions { timeout: Some(Duration::from_millis(50)), ..RunOptions::default() };
    let sql = "select count(*) from t a, t b where a.id + b.id > 7 and a.id <> b.id";
    let e = f.query_with(sql, options).unwrap_err();
    assert_eq!(e.state().to_string(), "57014");
    assert!(e.message().contains("timeout"));
}

#[test]
fn stream_delivers_every_row_and_stops_when_dropped() {
    let f = fixture(40);
    let prepared = f.prepare("select id, note from t").unwrap();
    let mut stream = f.olap.run_stream(&prepared, &[], &f.snapshot(), RunOptions::default());
    assert_eq!(stream.columns()[1].name, "note");
    let mut count = 0;
    while let Some(batch) = stream.next_blocking() {
        count += batch.unwrap().num_rows();
    }
    assert_eq!(count, 40_000);
    let options = RunOptions::default();
    let mut stream = f.olap.run_stream(&prepared, &[], &f.snapshot(), options.clone());
    assert!(stream.next_blocking().is_some());
    drop(stream);
    assert!(!options.cancel.is_cancelled(), "what else the client's token stops goes on");
    // More rows than can be on the way to the client.
    let pairs = f.prepare("select x.id from t x, t y").unwrap();
    let mut stream = f.olap.run_stream(&pairs, &[], &f.snapshot(), options.clone());
    assert!(stream.next_blocking().is_some());
    options.cancel.cancel();
    let last = std::iter::from_fn(|| stream.next_blocking()).last().unwrap();
    assert_eq!(last.unwrap_err().state().to_string(), "57014");
}

#[test]
fn plan_serves_a_later_snapshot() {
    let f = fixture(2);
    let prepared = f.prepare("select count(*) as n, max(id) from t").unwrap();
    let count = |snapshot: Arc<dyn Snapshot>| {
        rows(&f.olap.run(&prepared, &[], &snapshot, RunOptions::default()).unwrap().batches)
    };
    assert_eq!(count(f.snapshot()), ["2000|1999"]);
    let (r, batches) = table(9);
    let mut later = MemoryDatabase::default();
    later.add(r, Arc::new(MemoryRelation::new(batches, 2)));
    assert_eq!(count(Arc::new(later)), ["9000|8999"]);
    assert_eq!(count(f.snapshot()), ["2000|1999"]);
}

#[test]
fn deeply_nested_statement_is_answered_or_refused() {
    let f = fixture(1);
    let sum = vec!["1"; 100].join(" + ");
    match f.query(&format!("select {sum} as x")) {
        Ok(output) => assert_eq!(rows(&output.batches), ["100"]),
        Err(e) => assert_eq!(e.state().to_string(), "54001", "{e}"),
    }
    let union = vec!["select id from t"; 200].join(" union all ");
    assert_eq!(f.value(&format!("select count(*) from ({union}) u")), "200000");
}

#[test]
fn columns_of_results_keep_names_and_types() {
    let f = fixture(1);
    let prepared = f.prepare("select id, note as id, count(*) over () from t limit 1").unwrap();
    let names: Vec<&str> = prepared.columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["id", "id", "count"]);
    let output = f.olap.run(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
    assert_eq!(output.schema.field(1).name(), "id");
    assert_eq!(output.batches[0].schema(), output.schema);
    let ints = output.batches[0].column(2).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(ints.value(0), 1000);
}

#[test]
fn time_functions_are_those_of_the_run() {
    let f = fixture(1);
    let prepared = f.prepare("select now() as t").unwrap();
    let run = || {
        let output = f.olap.run(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
        rows(&output.batches)
    };
    let first = run();
    wait_until("the clock has gone on", || run() != first);
}

#[test]
fn time_of_a_query_is_the_clocks_also_before_1970_and_after_2262() {
    for (start_us, expected) in
        [(-2_208_988_800_000_000, "1900-01-01"), (0, "1970-01-01"), (16_725_225_600_000_000, "2500-01-01")]
    {
        let (clock, _) = albireo_env::Clock::simulated_from(start_us);
        let f = Fixture::with_config(Vec::new(), OlapConfig { clock, ..OlapConfig::default() });
        let sql = "select cast(now() as timestamp)::varchar, current_date::varchar";
        let found = rows(&f.query(sql).unwrap().batches);
        assert!(found[0].starts_with(expected) && found[0].matches(expected).count() == 2, "{found:?}");
    }
}

#[test]
fn engine_refuses_configurations_without_sense() {
    let zero = OlapConfig { threads: 0, ..OlapConfig::default() };
    assert_eq!(Olap::new(zero).unwrap_err().state().to_string(), "22023");
}
