//! Integers in narrow ranges take special ways: packed join keys, groups in an array, rows gathered
//! from chunks of which few pass, masks kept between queries. Each answer is held against that of the
//! same query over computed columns (`a + 0`), which no special way takes.

mod support;

use std::sync::Arc;

use albireo_base::{Decimal, SqlType, Value};
use albireo_olap::memory::MemoryRelation;
use albireo_olap::relation::Relation;
use albireo_olap::{OlapConfig, RunOptions};
use albireo_semantics::types::{Scalar, Type};
use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::BooleanBuffer;
use support::{Fixture, decimal, relation, rows};

const CHUNK: usize = 16_384;

fn mix(i: usize, salt: usize) -> usize {
    let mut z = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (salt as u64) << 7;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)) as usize % 1_000_003
}

fn table(id: u32, name: &str) -> Relation {
    let columns = [
        ("id", SqlType::Integer),
        ("s", SqlType::SmallInt),
        ("i", SqlType::Integer),
        ("b", SqlType::BigInt),
        ("d", SqlType::Date),
        ("n", decimal(12, 2)),
        ("t", SqlType::Timestamp),
        ("x", SqlType::Text),
    ];
    relation(id, name, &columns, &[0])
}

/// Rows with small numbers, some negative, some NULL.
fn batch(relation: &Relation, first: usize, count: usize, salt: usize) -> RecordBatch {
    let all = first..first + count;
    let some =
        move |i: usize, n: usize| (!mix(i, n + salt).is_multiple_of(11)).then_some(mix(i, n + salt + 1));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(all.clone().map(|i| i as i32))),
        Arc::new(all.clone().map(|i| some(i, 2).map(|v| (v % 9) as i16 - 4)).collect::<Int16Array>()),
        Arc::new(all.clone().map(|i| some(i, 3).map(|v| (v % 40) as i32 + 100)).collect::<Int32Array>()),
        Arc::new(
            all.clone()
                .map(|i| some(i, 4).map(|v| (v % 7) as i64 - 1_000_000_000_000))
                .collect::<Int64Array>(),
        ),
        Arc::new(all.clone().map(|i| some(i, 5).map(|v| (v % 5) as i32 + 19_000)).collect::<Date32Array>()),
        Arc::new(
            all.clone()
                .map(|i| some(i, 6).map(|v| v as i128 - 500_000))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(12, 2)
                .unwrap(),
        ),
        Arc::new(
            all.clone()
                .map(|i| some(i, 7).map(|v| v as i64 * 1_000_000))
                .collect::<TimestampMicrosecondArray>(),
        ),
        Arc::new(all.map(|i| some(i, 8).map(|v| format!("text {}", v % 30))).collect::<StringViewArray>()),
    ];
    RecordBatch::try_new(relation.arrow_schema(), columns).unwrap()
}

/// `l` has three chunks, two of them full; `r` is small and has other ranges.
fn fixture(threads: usize) -> Fixture {
    let (left, right) = (table(1, "l"), table(2, "r"));
    let mut fixture = Fixture::with_config(Vec::new(), OlapConfig { threads, ..OlapConfig::default() });
    let chunk = |i: usize, rows| batch(&left, i * CHUNK, rows, 0);
    let contents = MemoryRelation::new(vec![chunk(0, CHUNK), chunk(1, CHUNK), chunk(2, 900)], 1);
    let contents = contents.with_live(1, BooleanBuffer::collect_bool(CHUNK, |i| i % 3 > 0));
    let small = MemoryRelation::new(vec![batch(&right, 7, 300, 50)], 1);
    let database = Arc::get_mut(&mut fixture.database).unwrap();
    database.add(left, Arc::new(contents));
    database.add(right, Arc::new(small));
    fixture
}

fn sorted(f: &Fixture, sql: &str) -> Vec<String> {
    let mut rows = f.rows(sql);
    rows.sort();
    rows
}

fn plan(f: &Fixture, sql: &str) -> String {
    let prepared = f.prepare(sql).unwrap();
    f.olap.explain(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap()
}

#[test]
fn joins_on_packed_keys_find_what_joins_on_computed_keys_find() {
    for threads in [1, 2] {
        let f = fixture(threads);
        let queries = [
            "select l.id, r.id from l join r on {on}",
            "select l.id, r.id from l left join r on {on} where l.id < 2000",
            "select l.id, r.id from r left join l on {on}",
            "select l.id, r.id from l full join r on {on}",
            "select l.id from l where exists (select 1 from r where {on})",
            "select l.id from l where not exists (select 1 from r where {on})",
            "select r.id from r where not exists (select 1 from l where {on})",
            "select l.id, r.id from l join r on {on} and l.n < r.n",
        ];
        for query in queries {
            for columns in [&["s", "i"][..], &["s", "i", "b"], &["d", "s"]] {
                let on = |plus: &str| {
                    let equal = columns.iter().map(|c| match *c {
                        "d" if !plus.is_empty() => "cast(l.d as text) = cast(r.d as text)".to_owned(),
                        c => format!("l.{c}{plus} = r.{c}{plus}"),
                    });
                    equal.collect::<Vec<_>>().join(" and ")
                };
                let packed = query.replace("{on}", &on(""));
                let plain = query.replace("{on}", &on(" + 0"));
                assert!(plan(&f, &packed).contains("pack("), "{packed}\n{}", plan(&f, &packed));
                assert!(!plan(&f, &plain).contains("pack("), "{plain}");
                let (found, expected) = (sorted(&f, &packed), sorted(&f, &plain));
                assert!(!expected.is_empty(), "{plain}: useless as a test");
                assert!(found == expected, "{packed}: {} rows, not {}", found.len(), expected.len());
            }
        }
    }
}

#[test]
fn groups_in_an_array_are_those_of_a_hash_table() {
    let functions = "count(*), count(n), sum(n), avg(n), sum(i), avg(b), min(x), max(t), \
        sum(i) filter (where s > 0)";
    for threads in [1, 2] {
        let f = fixture(threads);
        for columns in [&["s"][..], &["i", "s"], &["b", "s", "i"], &["d"], &["i % 7"], &["s * i % 10", "d"]] {
            for from in ["l", "l where id < 0", "l where i = 101", "(select * from l where n > 0) l"] {
                let by = columns.join(", ");
                let array = format!("select {by}, {functions} from {from} group by {by}");
                let plain = format!("select {by}, {functions} from {from} group by {by}, length(x) * 0");
                let plain = plain.replace("length(x) * 0", "cast(d is null as text) = 'never'");
                assert!(plan(&f, &array).contains("ArrayAggregateExec"), "{array}\n{}", plan(&f, &array));
                assert!(!plan(&f, &plain).contains("ArrayAggregateExec"), "{plain}");
                assert_eq!(sorted(&f, &array), sorted(&f, &plain), "{array}");
            }
        }
    }
}

#[test]
fn a_group_by_wide_or_unknown_ranges_uses_the_hash_table() {
    let f = fixture(1);
    for by in ["id * 1000", "x", "t", "n", "i + 1", "id, i, b, s"] {
        let text = plan(&f, &format!("select {by}, count(*) from l group by {by}"));
        assert!(!text.contains("ArrayAggregateExec"), "{by}\n{text}");
    }
}

#[test]
fn rows_gathered_from_sparse_chunks_are_those_that_pass() {
    let f = fixture(1);
    let all = f.rows("select id, s, i, b, d, n, t, x from l");
    let passing = |what: &dyn Fn(&[&str]) -> bool| {
        let mut lines: Vec<String> =
            all.iter().filter(|line| what(&line.split('|').collect::<Vec<_>>())).cloned().collect();
        lines.sort();
        lines
    };
    // Asked thrice: computed, computed and kept, taken from what was kept.
    for _ in 0..3 {
        let found = sorted(&f, "select id, s, i, b, d, n, t, x from l where i = 117 and s = -4");
        assert_eq!(found, passing(&|c| c[2] == "117" && c[1] == "-4"));
        let fixed = sorted(&f, "select id, s, i, b, d, n, t from l where i = 117 and s = -4");
        let cut = |line: &String| line.rsplit_once('|').unwrap().0.to_owned();
        assert_eq!(fixed, found.iter().map(cut).collect::<Vec<_>>());
        assert!(!found.is_empty());
        assert_eq!(f.value("select count(*) from l where i = 117 and s = -4"), found.len().to_string());
        let limited = f.rows("select id, n from l where i = 117 limit 5");
        assert_eq!(limited.len(), 5);
    }
}

#[test]
fn null_parameter_finds_nothing_and_the_same_plan_then_finds_rows() {
    let f = fixture(1);
    let types = [SqlType::SmallInt, SqlType::Integer];
    let prepared = f.prepare_with("select id from l where s = $1 and i > $2", &types).unwrap();
    let run = |values: &[Value]| {
        let output = f.olap.run(&prepared, values, &f.snapshot(), RunOptions::default()).unwrap();
        rows(&output.batches).len()
    };
    assert_eq!(run(&[Value::Null, Value::Integer(0)]), 0);
    let expected = f.rows("select id from l where s + 0 = 3 and i + 0 > 120").len();
    assert_eq!(run(&[Value::SmallInt(3), Value::Integer(120)]), expected);
    assert!(expected > 0);
}

#[test]
fn number_of_any_scale_is_compared_by_the_scan() {
    let f = fixture(1);
    let any_scale = Type::Scalar(Scalar::Numeric { scale: None });
    // Of the column are numbers with two digits behind the point, from -5000.00 to 5000.02.
    let values = [
        "-99999999999.999",
        "-10000000000",
        "-5000.005",
        "-5000",
        "-0.001",
        "0",
        "0.000",
        "123.45",
        "123.454",
        "123.4500000000",
        "5000.02",
        "5000.021",
        "9999999999.99",
        "9999999999.991",
    ];

    // And what lies between one of them and the next.
    let of_column = ["min(n)", "max(n)"].map(|of| f.rows(&format!("select {of} from l")).remove(0));
    let between = of_column.iter().map(|text| {
        let number = Decimal::parse(text).unwrap();
        Decimal::new(number.unscaled * 10 + 4, 3).to_string()
    });
    let values: Vec<String> =
        values.iter().map(ToString::to_string).chain(of_column.clone()).chain(between).collect();
    for (op, mirrored) in [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")] {
        for condition in [format!("n {op} $1"), format!("$1 {mirrored} n")] {
            let sql = format!("select id from l where {condition}");
            let prepared = f.prepare_of(&sql, vec![any_scale.clone()]).unwrap();
            let found = |value: Value| {
                let output = f.olap.run(&prepared, &[value], &f.snapshot(), RunOptions::default()).unwrap();
                let mut found = rows(&output.batches);
                found.sort();
                found
            };
            let half = [Value::Decimal(Decimal::parse("0.5").unwrap())];
            let plan = f.olap.explain(&prepared, &half, &f.snapshot(), RunOptions::default()).unwrap();
            assert!(!plan.contains("FilterExec"), "{plan}");
            for value in &values {
                let expected = sorted(&f, &format!("select id from l where n + 0 {op} {value}"));
                let number = Value::Decimal(Decimal::parse(value).unwrap());
                assert_eq!(found(number), expected, "{condition}, {value}");
                let literal = sql.replace("$1", value);
                assert_eq!(sorted(&f, &literal), expected, "{literal}");
                assert!(!self::plan(&f, &literal).contains("FilterExec"), "{literal}");
            }
            assert!(found(Value::Null).is_empty());
        }
        // A column that is rounded is no column.
        for value in ["5.5", "0.0", "-123.4"] {
            let rounded = format!("select id from l where n::numeric(12,1) {op} {value}");
            let expected = format!("select id from l where (n + 0)::numeric(12,1) {op} {value}");
            assert_eq!(sorted(&f, &rounded), sorted(&f, &expected), "{rounded}");
        }
    }
}

#[test]
fn sums_taken_below_a_join_are_those_taken_above_it() {
    for threads in [1, 3] {
        sums_below_joins_are_those_above(&fixture(threads), threads > 1);
    }
}

fn sums_below_joins_are_those_above(f: &Fixture, are_parts: bool) {
    // `l` has about 30,000 rows in 40 values of i; those of `r` are not unique.
    let queries = [
        "select r.id, r.x, sum(l.n) as total from l join r on l.i = r.i{plus} group by r.id, r.x",
        "select r.id, l.i, sum(l.n) as total, sum(l.n) * 2 as twice from r join l on l.i = r.i{plus} group by r.id, l.i",
        "select sum(l.n) as total from l join r on l.i = r.i{plus}",
        "select r.s, sum(l.n) as total from l join r on l.i = r.i{plus} group by r.s having sum(l.n) > 0",
        "select r.s % 3 as m, sum(l.n) as total from r, l where l.i = r.i{plus} and l.s = 2 group by r.s % 3",
    ];
    for query in queries {
        let early = query.replace("{plus}", "");
        // A condition over both sides keeps the sum above the join.
        let late = query.replace("{plus}", " and (l.id >= 0 or r.x is null)");
        if !query.contains("l.s = 2") {
            assert!(plan(f, &early).contains("__early_sum_0"), "{early}\n{}", plan(f, &early));
        }
        assert!(!plan(f, &late).contains("__early_sum"), "{late}");
        let expected = sorted(f, &late);
        assert!(!expected.is_empty(), "{late}: useless as a test");
        assert_eq!(sorted(f, &early), expected, "{early}");
        // What the join looks up stays in parts, which the sum above it adds up.
        let plan = plan(f, &early);
        let merges = |line: &str| line.contains("FinalPartitioned") && line.contains("aggr=[__early_sum_0");
        assert!(!plan.lines().any(merges), "{early}\n{plan}");
        let has_parts = are_parts && !query.contains("l.s = 2");
        assert_eq!(plan.contains("__early_sum_0[sum]"), has_parts, "{early}\n{plan}");
    }
    // Rows that are one for each group stay so.
    for query in [
        "select r.id, d.i from r join (select distinct i from l) d on d.i = r.i",
        "select r.id, d.i from (select distinct i from l) d join r on d.i = r.i",
        "select r.id, d.i from (select distinct i from l) d join (select * from r where s = 2) r on d.i = r.i",
        "select r.id, d.i, d.n from r join (select i, sum(n) as n from l group by i) d on d.i = r.i",
    ] {
        let expected = sorted(f, &query.replace("d.i = r.i", "d.i + 0 = r.i + 0"));
        assert!(!expected.is_empty() && sorted(f, query) == expected, "{query}\n{}", plan(f, query));
    }
    for other in [
        "select r.id, sum(l.n), count(*) from l join r on l.i = r.i group by r.id",
        "select r.id, sum(l.i) from l join r on l.i = r.i group by r.id",
        "select r.id, sum(l.n) from r left join l on l.i = r.i group by r.id",
        "select l.s, sum(l.n) from l join r on l.i = r.i group by l.s",
        "select r.id, sum(l.n + r.n) from l join r on l.i = r.i group by r.id",
    ] {
        assert!(!plan(f, other).contains("__early_sum"), "{other}");
    }
}
