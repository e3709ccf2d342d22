//! Files as tables, and Parquet out and in again.
#![allow(
    clippy::disallowed_methods,
    reason = "a test or a measurement uses files, threads and clocks directly"
)]

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use albireo_olap::{RunOptions, write_parquet};
use arrow::array::{Int32Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use support::{Fixture, decimal, relation, rows};

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("albireo-olap-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn fixture() -> Fixture {
    let r = relation(1, "t", &[("a", albireo_base::SqlType::Integer), ("d", decimal(5, 2))], &[0]);
    let d = arrow::array::Decimal128Array::from(vec![150, 250]);
    let batch = RecordBatch::try_new(
        r.arrow_schema(),
        vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(d.with_precision_and_scale(5, 2).unwrap())],
    );
    Fixture::new(vec![(r, vec![batch.unwrap()])])
}

#[test]
fn parquet_written_is_read_again() {
    let path = directory("parquet").join("x.parquet");
    let schema = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("s", DataType::Utf8View, true),
    ]));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(Int32Array::from(vec![1, 2, 3])),
            Arc::new(StringViewArray::from(vec![Some("x"), None, Some("long enough for the heap")])),
        ],
    );
    let sink = std::fs::File::create(&path).unwrap();
    assert_eq!(write_parquet(sink, &schema, [Ok(batch.unwrap())]).unwrap(), 3);
    let f = fixture();
    let file = path.to_str().unwrap();
    assert_eq!(f.rows(&format!("select s from '{file}' where a > 2")), ["long enough for the heap"]);
    assert_eq!(f.value(&format!("select sum(t.d) from '{file}' x, t where x.a = t.a")), "4.00");
    let prepared = f.olap.prepare_file(file).unwrap();
    assert_eq!(prepared.columns().len(), 2);
    let output = f.olap.run(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
    assert_eq!(rows(&output.batches).len(), 3);
}

#[test]
fn csv_with_header_is_read() {
    let path = directory("csv").join("x.csv");
    std::fs::write(&path, "a,b\n1,x\n2,y\n").unwrap();
    let f = fixture();
    assert_eq!(f.rows(&format!("select b, a + 1 from '{}' order by a", path.display())), ["x|2", "y|3"]);
}

#[test]
fn damaged_parquet_in_from_is_an_error_or_rows() {
    let path = directory("damaged").join("x.parquet");
    let schema = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("s", DataType::Utf8View, true),
    ]));
    let numbers = Int32Array::from_iter((0..2000).map(|i| (i % 5 != 0).then_some(i)));
    let texts: StringViewArray = (0..2000).map(|i| Some(format!("text number {}", i % 300))).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers), Arc::new(texts)]);
    let mut whole = Vec::new();
    write_parquet(&mut whole, &schema, [Ok(batch.unwrap())]).unwrap();
    let f = fixture();
    let test = albireo_testing::test!();
    let mut refused = 0;
    let mut check = |seed| {
        let mut bytes = whole.clone();
        albireo_testing::damage(&mut bytes, seed);
        std::fs::write(&path, &bytes).unwrap();
        let result = f.query(&format!("select count(a), max(s), min(a) from '{}'", path.display()));
        if let Err(error) = result {
            refused += 1;
            assert_ne!(error.state().to_string(), "XX000", "{error}");
            assert!(!error.to_string().contains("panicked"), "{error}");
        }
    };
    test.for_each_seed(0..400, &mut check);
    // Statistics of more NULLs than rows: a sum of DataFusion's overflows.
    check(777_233);
    assert!(refused > 150 || !test.has_usual_seeds(), "{refused}");
}

#[test]
fn missing_or_malformed_file_is_a_clear_error() {
    let f = fixture();
    let e = f.query("select * from '/nowhere/x.parquet'").unwrap_err();
    assert_eq!(e.state().to_string(), "58P01", "{e}");
    assert!(e.message().contains("/nowhere/x.parquet"), "{e}");
    let path = directory("bad").join("x.parquet");
    std::fs::write(&path, "this is not Parquet").unwrap();
    let e = f.query(&format!("select * from '{}'", path.display())).unwrap_err();
    assert_eq!(e.state().to_string(), "22P04", "{e}");
    assert_eq!(f.olap.prepare_file("x.doc").unwrap_err().state().to_string(), "0A000");
}
