//! NUMERIC and integers as PostgreSQL has them: types, scales, overflow, division.

mod support;

use std::sync::Arc;

use albireo_base::SqlType;
use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray,
};
use support::{Fixture, decimal, relation};

/// One table: i2, i4, i8, d (12,2), w (38,0), f, s, t (date); three rows, one of NULLs.
fn fixture() -> Fixture {
    let r = relation(
        1,
        "n",
        &[
            ("id", SqlType::Integer),
            ("i2", SqlType::SmallInt),
            ("i4", SqlType::Integer),
            ("i8", SqlType::BigInt),
            ("d", decimal(12, 2)),
            ("w", decimal(38, 0)),
            ("f", SqlType::Double),
            ("s", SqlType::Text),
            ("t", SqlType::Date),
        ],
        &[0],
    );
    let wide = 99_999_999_999_999_999_999_999_999_999_999_999_999i128;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        Arc::new(Int16Array::from(vec![Some(30_000), Some(7), None])),
        Arc::new(Int32Array::from(vec![Some(i32::MAX), Some(10), None])),
        Arc::new(Int64Array::from(vec![Some(i64::MAX), Some(100), None])),
        Arc::new(
            Decimal128Array::from(vec![Some(194_752), Some(-100), None])
                .with_precision_and_scale(12, 2)
                .unwrap(),
        ),
        Arc::new(
            Decimal128Array::from(vec![Some(wide), Some(wide), None])
                .with_precision_and_scale(38, 0)
                .unwrap(),
        ),
        Arc::new(Float64Array::from(vec![Some(2.5), Some(0.0), None])),
        Arc::new(StringViewArray::from(vec![Some("12"), Some("x"), None])),
        Arc::new(Date32Array::from(vec![Some(19_000), Some(19_031), None])),
    ];
    let batch = RecordBatch::try_new(r.arrow_schema(), columns).unwrap();
    Fixture::new(vec![(r, vec![batch])])
}

#[test]
fn decimal_beside_integer_literals_keeps_its_scale() {
    let f = fixture();
    let d = |e: &str| f.value(&format!("select {e} as x from n where id = 1"));
    assert_eq!(d("d * 2"), "3895.04");
    assert_eq!(d("1 + d"), "1948.52");
    assert_eq!(d("d - 1"), "1946.52");
    assert_eq!(d("d % 7"), "1.52");
    assert_eq!(d("coalesce(d, 0)"), "1947.52");
    assert_eq!(d("nullif(d, 0)"), "1947.52");
    assert_eq!(d("greatest(d, 5)"), "1947.52");
    assert_eq!(d("case when id = 7 then 0 else d end"), "1947.52");
    assert_eq!(d("d / 2"), "973.7600000000000000");
    assert_eq!(d("-d"), "-1947.52");
    assert_eq!(d("abs(-d)"), "1947.52");
    assert_eq!(d("round(d, 1)"), "1947.5");
    assert_eq!(d("d * 0.5"), "973.760");
    let mut union = f.rows("select d as x from n where id = 1 union all select 1");
    union.sort();
    assert_eq!(union, ["1", "1947.52"]);
    assert_eq!(f.value("select sum(case when id = 1 then d else 0 end) as x from n"), "1947.52");
}

#[test]
fn results_have_postgresql_types() {
    let f = fixture();
    let ty = |e: &str| f.type_of(e, "from n");
    assert_eq!(ty("1"), "integer");
    assert_eq!(ty("3000000000"), "bigint");
    assert_eq!(ty("i2 + 1"), "integer");
    assert_eq!(ty("i2 + i2"), "smallint");
    assert_eq!(ty("i4 + 1"), "integer");
    assert_eq!(ty("i4 + i8"), "bigint");
    assert_eq!(ty("i4 / 2"), "integer");
    assert_eq!(ty("sum(i2)"), "bigint");
    assert_eq!(ty("sum(i4)"), "bigint");
    assert_eq!(ty("sum(i8)"), "numeric(38,0)");
    assert_eq!(ty("sum(d)"), "numeric(38,2)");
    assert_eq!(ty("sum(f)"), "double precision");
    assert_eq!(ty("avg(i4)"), "numeric(38,16)");
    assert_eq!(ty("avg(d)"), "numeric(38,16)");
    assert_eq!(ty("avg(f)"), "double precision");
    assert_eq!(ty("count(*)"), "bigint");
    assert_eq!(ty("sum(case when i4 > 1 then 1 else 0 end)"), "bigint");
    assert_eq!(ty("d * d"), "numeric(38,4)");
    assert_eq!(ty("f * d"), "double precision");
    assert_eq!(ty("t"), "date");
    assert_eq!(ty("row_number() over (order by id)"), "bigint");
}

#[test]
fn quotients_have_sixteen_significant_digits_and_round() {
    let f = fixture();
    assert_eq!(f.value("select 1.0 / 3 as x"), "0.33333333333333333333");
    assert_eq!(f.value("select 2.00 / 3.00 as x"), "0.66666666666666666667");
    assert_eq!(f.value("select -2.0 / 3 as x"), "-0.66666666666666666667");
    assert_eq!(f.value("select 7 / 2 as x"), "3");
    assert_eq!(f.value("select -7 / 2 as x"), "-3");
    assert_eq!(f.value("select -7 % 3 as x"), "-1");
    assert_eq!(f.value("select mod(7, 3) as x"), "1");
    assert_eq!(f.value("select avg(i4) as x from n where id = 2"), "10.0000000000000000");
    assert_eq!(f.value("select avg(i2) as x from n"), "15003.500000000000");
    assert_eq!(f.value("select avg(d) as x from n"), "973.2600000000000000");
    assert_eq!(f.value("select 100.00 * sum(d) / sum(i2) as x from n"), "6.4868863931749259");
}

#[test]
fn division_by_zero_is_22012_for_every_type() {
    let f = fixture();
    for e in [
        "1 / 0",
        "i4 / (i2 - 7)",
        "i4 % (i2 - 7)",
        "d / (d + 1)",
        "d % (d + 1)",
        "2.5 / 0",
        "f / f",
        "i8 / 0",
        "mod(i4, 0)",
    ] {
        assert_eq!(f.state_of(&format!("select {e} as x from n")), "22012", "{e}");
    }
    // Not where the row is not computed.
    let guarded = "select case when f <> 0 then 1 / f else 0 end as x from n where id < 3 order by id";
    assert_eq!(f.rows(guarded), ["0.4", "0.0"]);
    assert_eq!(f.rows("select i4 / i2 as x from n where i2 > 7"), ["71582"]);
}

#[test]
fn overflow_is_22003_for_every_type() {
    let f = fixture();
    for e in [
        "i4 + 1",
        "i4 * 2",
        "i8 + 1",
        "-i8 - 2",
        "i8 * i8",
        "i2 + i2",
        "w + w",
        "w * 10",
        "w * w",
        "i4 + i4",
        "2147483647 + 1",
        "9223372036854775807 + 1",
    ] {
        assert_eq!(f.state_of(&format!("select {e} as x from n")), "22003", "{e}");
    }
    assert_eq!(f.state_of("select sum(w) as x from n"), "22003");
    assert_eq!(f.state_of("select id / 10 as g, sum(w) as x from n group by id / 10"), "22003");
    assert_eq!(f.state_of("select cast(i4 as smallint) as x from n"), "22003");
    assert_eq!(f.state_of("select cast(i8 as integer) as x from n"), "22003");
}

#[test]
fn sums_beyond_64_bits_are_exact() {
    let f = fixture();
    assert_eq!(f.value("select sum(i8) as x from n"), "9223372036854775907");
    assert_eq!(f.value("select sum(i8 * 1.0) as x from n"), "9223372036854775907.0");
    assert_eq!(f.value("select sum(i4) as x from n"), "2147483657");
    assert_eq!(f.value("select sum(i4) as x from n where id > 5"), "");
    assert_eq!(f.value("select avg(d) as x from n where id > 5"), "");
    assert_eq!(
        f.value("select count(*), count(d), sum(d), min(d), max(d) from n"),
        "3|2|1946.52|-1.00|1947.52"
    );
}

#[test]
fn distinct_and_window_sums_are_exact() {
    let f = fixture();
    let sql = "select sum(distinct i2 % 7), avg(distinct i2 % 7), count(distinct i2) from n";
    assert_eq!(f.value(sql), "5|2.5000000000000000|2");
    let sql = "select sum(i8) over (order by id rows between 1 preceding and current row) as x \
               from n order by id";
    assert_eq!(f.rows(sql), ["9223372036854775807", "9223372036854775907", "100"]);
    let sql = "select avg(i2) over (partition by id) as x from n order by id";
    assert_eq!(f.rows(sql), ["30000.000000000000", "7.0000000000000000", ""]);
}

#[test]
fn casts_to_integers_round() {
    let f = fixture();
    assert_eq!(f.value("select cast(2.5 as integer) as x"), "3");
    assert_eq!(f.value("select cast(-2.5 as integer) as x"), "-3");
    assert_eq!(f.value("select cast(d as bigint) as x from n where id = 1"), "1948");
    assert_eq!(f.value("select cast(f as integer) as x from n where id = 1"), "2");
    assert_eq!(f.value("select cast('42' as integer) + 1 as x"), "43");
    assert_eq!(f.state_of("select cast(s as integer) as x from n"), "22P02");
    assert_eq!(f.value("select cast(1947.525 as numeric(10,2)) as x"), "1947.53");
    assert_eq!(f.state_of("select cast(1947.525 as numeric(4,2)) as x"), "22003");
}

#[test]
fn dates_and_intervals_compute() {
    let f = fixture();
    let d = |e: &str| f.value(&format!("select {e} as x from n where id = 1"));
    assert_eq!(d("t"), "2022-01-08");
    assert_eq!(d("t + 30"), "2022-02-07");
    assert_eq!(d("t - 8"), "2021-12-31");
    assert_eq!(d("date '2022-02-08' - t"), "31");
    assert_eq!(d("(t + interval '1 month')::date"), "2022-02-08");
    assert_eq!(d("t + interval '1 month' = timestamp '2022-02-08 00:00'"), "true");
    assert_eq!(d("extract(year from t)"), "2022");
    assert_eq!(d("extract(year from t) * 2"), "4044");
    assert_eq!(d("t >= date '2022-01-01' and t < date '2022-01-01' + interval '1 year'"), "true");
}

#[test]
fn string_functions_of_the_benchmarks_compute() {
    let f = fixture();
    assert_eq!(f.value("select substring('abcdef' from 2 for 3) as x"), "bcd");
    assert_eq!(f.value("select substr('abcdef', 1, 1) as x"), "a");
    assert_eq!(f.value("select ascii(substr('abc', 1, 1)) as x"), "97");
    assert_eq!(f.value("select position('c' in 'abc') as x"), "3");
    assert_eq!(f.value("select 'a' || 'b' || null as x"), "");
    assert_eq!(f.value("select upper('a') || lower('B') || length('abc') as x"), "Ab3");
    assert_eq!(f.value("select 'PROMO x' like 'PROMO%' as x"), "true");
    assert_eq!(f.value("select trim('  a ') as x"), "a");
}
