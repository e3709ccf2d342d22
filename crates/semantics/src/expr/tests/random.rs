//! Whatever is written, binding and evaluating give a value of the type or an error.

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::*;

fn leaf() -> impl Strategy<Value = String> {
    let fixed = [
        "NULL",
        "0",
        "1",
        "-1",
        "2147483647",
        "9223372036854775807",
        "99999999999999999999",
        "1.50",
        "-0.001",
        "1e30",
        "1e-30",
        "'abc'",
        "'7'",
        "''",
        "true",
        "false",
        "$1",
        "$2",
        "$3",
        "$4",
        "date '2024-02-29'",
        "timestamp '2024-02-29 13:14:15.678'",
        "interval '1 mon -2 days 03:00'",
        "time '23:59:59'",
        "5::smallint",
        "7::bigint",
        "1.5::real",
        "1e300::double precision",
        "array[1, 2, NULL]",
        "'{a,b}'::text[]",
        "now()",
        "current_date",
        "'-2147483648'::int",
        "'99999999999999999999999999999999999999'::numeric",
        "'0.00000000000000000000000000000000000001'::numeric",
        "array[1.5]",
        "row(1, 'a')",
        "(-32768)::smallint",
        "'-9223372036854775808'::bigint",
        "'x'::char(3)",
    ];
    prop_oneof![
        8 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        1 => any::<i64>().prop_map(|n| format!("({n})")),
        1 => (any::<i32>(), 0_u32..9).prop_map(|(n, e)| format!("({n}e-{e})")),
        1 => "[a-z%_ ,{}é-]{0,6}".prop_map(|text| format!("'{text}'")),
    ]
}

const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "||",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "LIKE",
    "ILIKE",
    "&",
    "|",
    "#",
    "<<",
    ">>",
    "IS DISTINCT FROM",
];

const ONE: &[&str] = &[
    "abs",
    "ceil",
    "floor",
    "round",
    "trunc",
    "sign",
    "sqrt",
    "length",
    "upper",
    "initcap",
    "reverse",
    "btrim",
    "quote_ident",
    "quote_literal",
    "cardinality",
    "exp",
    "ln",
    "chr",
    "ascii",
    "concat",
    "pg_typeof",
    "justify_days",
    "NOT",
    "-",
    "~",
    "trim_scale",
];

const TWO: &[&str] = &[
    "round",
    "trunc",
    "mod",
    "div",
    "power",
    "left",
    "right",
    "lpad",
    "repeat",
    "strpos",
    "coalesce",
    "nullif",
    "greatest",
    "least",
    "concat",
    "concat_ws",
    "format",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_position",
    "array_remove",
    "array_length",
    "array_to_string",
    "string_to_array",
    "date_trunc",
    "date_part",
    "substr",
    "starts_with",
    "gcd",
    "lcm",
];

const THREE: &[&str] =
    &["substr", "replace", "split_part", "lpad", "rpad", "translate", "make_date", "overlay", "format"];

const TYPES: &[&str] = &[
    "int",
    "smallint",
    "bigint",
    "numeric",
    "numeric(6,2)",
    "real",
    "double precision",
    "text",
    "varchar(2)",
    "char(3)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "boolean",
    "int[]",
    "text[]",
    "uuid",
    "bytea",
    "numeric(38,38)[]",
];

fn grown(inner: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop_oneof![
        6 => (inner.clone(), proptest::sample::select(OPERATORS), inner.clone())
            .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
        3 => (proptest::sample::select(ONE), inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
        3 => (proptest::sample::select(TWO), inner.clone(), inner.clone())
            .prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
        2 => (proptest::sample::select(THREE), inner.clone(), inner.clone(), inner.clone())
            .prop_map(|(f, a, b, c)| format!("{f}({a}, {b}, {c})")),
        3 => (inner.clone(), proptest::sample::select(TYPES)).prop_map(|(a, ty)| format!("({a})::{ty}")),
        1 => (inner.clone(), inner.clone(), inner.clone())
            .prop_map(|(a, b, c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
        1 => (inner.clone(), inner.clone(), inner.clone())
            .prop_map(|(a, b, c)| format!("CASE {a} WHEN {b} THEN {c} END")),
        1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} IN ({b}, {c}))")),
        1 => (inner.clone(), inner.clone(), inner.clone())
            .prop_map(|(a, b, c)| format!("({a} BETWEEN {b} AND {c})")),
        1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} >= ANY ({b}))")),
        1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("ARRAY[{a}, {b}]")),
        1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
        1 => inner.clone().prop_map(|a| format!("extract(epoch FROM {a})")),
        1 => inner.prop_map(|a| format!("({a} IS NOT NULL)")),
    ]
    .boxed()
}

fn expression() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 24, 3, grown)
}

random_tests! {
    #![cases(4000)]

    #[test]
    fn any_expression_gives_a_value_of_its_type_or_an_error(text in expression()) {
        if let Err(error) = outcome(&text) {
            prop_assert!(error.state().to_string() != "XX000", "{text}: {error}");
        }
    }

    #[test]
    fn text_of_an_array_reads_back_as_the_same(items in proptest::collection::vec("[a-zN ,{}\"\\\\é]{0,6}|null", 0..5)) {
        let items = items.into_iter().map(|item| Datum::from(albireo_base::Value::Text(item))).collect();
        let array = Datum::Array(std::sync::Arc::new(crate::datum::Array { lower: 1, items }));
        let text = text_of(&array).unwrap();
        let back = read(&text, &Type::Array(Scalar::Text)).unwrap();
        prop_assert!(compare(&array, &back).is_eq(), "{text}");
    }
}
