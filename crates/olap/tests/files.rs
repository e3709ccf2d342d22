//! Files as tables, and Parquet out and in again.
#![allow(
    clippy::disallowed_methods,
    reason = "a test or a measurement uses files, threads and clocks directly"
)]

mod support;

use std::sync::Arc;

use albireo_olap::write_parquet;
use arrow::array::{
    ArrayRef, Date32Array, Decimal256Array, DictionaryArray, FixedSizeBinaryArray, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Schema, TimeUnit, i256};
use support::{Fixture, decimal, relation};
use tempfile::TempDir;

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
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
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
    assert_eq!(f.rows(&format!("select sum(t.d) from '{file}' x, t where x.a = t.a")), ["4.00"]);
    let prepared = f.prepare(&format!("select * from '{file}'")).unwrap();
    assert!(prepared.reads_files());
    let names: Vec<&str> = prepared.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["a", "s"]);
}

/// A Parquet file with a row of values and one of NULLs.
fn parquet_of(path: &std::path::Path, columns: Vec<(&str, ArrayRef)>) {
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    write_parquet(std::fs::File::create(path).unwrap(), &schema, [Ok(batch)]).unwrap();
}

#[test]
fn columns_of_parquet_have_the_nearest_type_of_sql() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
    let int = |ty: DataType| cast(&Int64Array::from(vec![Some(200), None]), &ty).unwrap();
    let dictionary: DictionaryArray<Int32Type> = [Some("d"), None].into_iter().collect();
    let bytes = |length| {
        let values = [Some(vec![7_u8; length as usize]), None].into_iter();
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, length).unwrap())
    };
    let wide = Decimal256Array::from(vec![Some(i256::from(12345)), None]).with_precision_and_scale(40, 2);
    let columns: Vec<(&str, ArrayRef, &str, &str)> = vec![
        ("u8", int(DataType::UInt8), "smallint", "200"),
        ("i8", cast(&Int64Array::from(vec![Some(-7), None]), &DataType::Int8).unwrap(), "smallint", "-7"),
        ("u16", int(DataType::UInt16), "integer", "200"),
        ("u32", int(DataType::UInt32), "bigint", "200"),
        ("u64", int(DataType::UInt64), "bigint", "200"),
        ("f16", int(DataType::Float16), "real", "200.0"),
        ("d32", int(DataType::Decimal32(9, 2)), "numeric(38,2)", "200.00"),
        ("d256", Arc::new(wide.unwrap()), "numeric(38,2)", "123.45"),
        ("utf8", Arc::new(StringArray::from(vec![Some("x"), None])), "text", "x"),
        ("dictionary", Arc::new(dictionary), "text", "d"),
        ("fixed18", bytes(18), "bytea", "070707070707070707070707070707070707"),
        ("fixed3", bytes(3), "bytea", "070707"),
        (
            "ms",
            int(DataType::Timestamp(TimeUnit::Millisecond, None)),
            "timestamp without time zone",
            "1970-01-01T00:00:00.200",
        ),
        (
            "time",
            cast(&Int32Array::from(vec![Some(200), None]), &DataType::Time32(TimeUnit::Millisecond)).unwrap(),
            "time without time zone",
            "00:00:00.200",
        ),
    ];
    parquet_of(&path, columns.iter().map(|(name, array, ..)| (*name, Arc::clone(array))).collect());
    let f = fixture();
    for (name, _, ty, value) in columns {
        let from = format!("from '{}'", path.display());
        let prepared = f.prepare(&format!("select {name} {from}")).unwrap();
        let found = prepared.columns()[0].ty.map(|ty| ty.to_string());
        assert_eq!(found.as_deref(), Some(ty), "{name}");
        // The kernels of SQL take it.
        let sql = format!("select {name} {from} where {name}::text <> '' and {name} = {name}");
        assert_eq!(f.rows(&sql), [value], "{name}");
        assert_eq!(f.rows(&format!("select count(*) {from} where {name} is null")), ["1"], "{name}");
    }
}

#[test]
fn column_without_a_type_of_sql_is_refused_by_name_where_it_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), None]);
    let huge = UInt64Array::from(vec![Some(u64::MAX), None]);
    parquet_of(
        &path,
        vec![
            ("id", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
            ("tags", Arc::new(list)),
            ("huge", Arc::new(huge)),
        ],
    );
    let f = fixture();
    let file = path.display();
    assert_eq!(f.rows(&format!("select sum(id), count(*) from '{file}' x")), ["3|2"]);
    let refused = [
        format!("select * from '{file}'"),
        format!("select id from '{file}' where tags is null"),
        format!("select x from '{file}' x"),
        format!("select id from '{file}' x join '{file}' y using (tags)"),
    ];
    for sql in refused {
        let error = f.query(&sql).unwrap_err();
        assert_eq!(error.state().to_string(), "0A000", "{sql}: {error}");
        assert!(error.message().contains("\"tags\""), "{sql}: {error}");
        assert!(error.position().is_some() && error.hint().is_some(), "{sql}: {error}");
    }
    let error = f.query(&format!("select huge from '{file}'")).unwrap_err();
    assert_eq!(error.state().to_string(), "22003", "{error}");
}

#[test]
fn csv_with_header_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.csv");
    std::fs::write(&path, "a,b\n1,x\n2,y\n").unwrap();
    let f = fixture();
    assert_eq!(f.rows(&format!("select b, a + 1 from '{}' order by a", path.display())), ["x|2", "y|3"]);
}

#[test]
fn damaged_parquet_in_from_is_an_error_or_rows() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
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
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
    std::fs::write(&path, "this is not Parquet").unwrap();
    let e = f.query(&format!("select * from '{}'", path.display())).unwrap_err();
    assert_eq!(e.state().to_string(), "22P04", "{e}");
    let e = f.query("select * from 'x.doc'").unwrap_err();
    assert_eq!(e.state().to_string(), "0A000", "{e}");
    let e = f.query("select * from read_parquet('x.doc')").unwrap_err();
    assert_eq!((e.state().to_string().as_str(), e.position()), ("58P01", Some(15)), "{e}");
}

#[test]
fn moments_that_postgresql_has_not_are_values_or_errors() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.parquet");
    let extremes = Int64Array::from(vec![i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX]);
    let dates = Date32Array::from(vec![i32::MIN, i32::MIN + 1, -1, i32::MAX - 1, i32::MAX]);
    let of = |ty: DataType| cast(&extremes, &ty).unwrap();
    let micros = TimeUnit::Microsecond;
    parquet_of(
        &path,
        vec![
            ("d", Arc::new(dates) as ArrayRef),
            ("t", of(DataType::Timestamp(micros, None))),
            ("z", of(DataType::Timestamp(micros, Some("UTC".into())))),
            ("h", of(DataType::Time64(micros))),
            ("s", of(DataType::Timestamp(TimeUnit::Second, None))),
        ],
    );
    let f = fixture();
    let any = [
        "x",
        "x::text",
        "max(x)",
        "count(distinct x)",
        "x = x",
        "x + interval '1 month 1 day 1 hour'",
        "x - interval '1 year -3 days'",
        "extract(hour from x)",
        "extract(epoch from x)",
    ];
    let days = [
        "x::date",
        "x::timestamp",
        "x::timestamptz",
        "age(x, '2000-01-01')",
        "to_char(x, 'YYYY-MM-DD HH24:MI:SS Day')",
        "extract(year from x)",
        "extract(week from x)",
        "extract(dow from x)",
        "extract(julian from x)",
        "extract(decade from x)",
        "date_trunc('month', x)",
        "date_trunc('week', x)",
        "date_trunc('hour', x)",
        "date_bin('1 day', x, '2000-01-01')",
        "x - date '2000-01-01'",
        "x - timestamp '2000-01-01'",
        "x > timestamp '2000-01-01'",
    ];
    let (mut good, mut refused) = (0, 0);
    for (column, only) in [
        ("d", &["x + 1", "x - 1", "x - 2000000000"][..]),
        ("t", &["x::time"]),
        ("z", &["x::time"]),
        ("h", &["x::interval"]),
        ("s", &["x - x"]),
    ] {
        for expr in any.iter().chain(only).chain(days.iter().filter(|_| column != "h")) {
            for row in ["min", "max"] {
                let from = format!("from (select {row}({column}) as x from '{}') y", path.display());
                match f.query(&format!("select {expr} {from}")) {
                    Ok(_) => good += 1,
                    Err(error) => {
                        refused += 1;
                        assert_ne!(error.state().to_string(), "XX000", "{expr} of {column}, {row}: {error}");
                    }
                }
            }
        }
    }
    assert!(good > 50 && refused > 20, "{good}, {refused}");
}
