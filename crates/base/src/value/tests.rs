use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::*;
use crate::SqlError;

const NUMERIC_5_2: SqlType = SqlType::Decimal { precision: 5, scale: 2 };

fn shown(text: &str, ty: SqlType) -> String {
    Value::parse(text, ty).unwrap().to_string()
}

fn refused(text: &str, ty: SqlType) -> (String, String) {
    code_and_message(Value::parse(text, ty).unwrap_err())
}

fn code_and_message(error: SqlError) -> (String, String) {
    (error.state().to_string(), error.message().to_owned())
}

#[track_caller]
fn assert_refused(text: &str, ty: SqlType, code: &str, message: &str) {
    assert_eq!(refused(text, ty), (code.to_owned(), message.to_owned()), "{text}");
}

#[test]
fn bool_in_every_spelling_is_read() {
    for text in ["t", "TRUE", "tr", "y", "yes", "on", "1", " true "] {
        assert_eq!(shown(text, SqlType::Bool), "t", "{text}");
    }
    for text in ["f", "False", "n", "no", "of", "off", "0"] {
        assert_eq!(shown(text, SqlType::Bool), "f", "{text}");
    }
    for text in ["", "o", "2", "truest", "maybe"] {
        let message = format!("invalid input syntax for type boolean: \"{text}\"");
        assert_refused(text, SqlType::Bool, "22P02", &message);
    }
}

#[test]
fn integer_beyond_its_type_is_out_of_range() {
    assert_eq!(shown(" -32768 ", SqlType::SmallInt), "-32768");
    assert_eq!(shown("+7", SqlType::Integer), "7");
    let message = "value \"32768\" is out of range for type smallint";
    assert_refused("32768", SqlType::SmallInt, "22003", message);
    let message = "value \"9223372036854775808\" is out of range for type bigint";
    assert_refused("9223372036854775808", SqlType::BigInt, "22003", message);
    for text in ["", "1.5", "abc", "-", "1 2"] {
        let message = format!("invalid input syntax for type integer: \"{text}\"");
        assert_refused(text, SqlType::Integer, "22P02", &message);
    }
}

#[test]
fn decimal_is_rounded_half_away_from_zero_to_its_scale() {
    let cases = [
        ("1", "1.00"),
        ("-1.005", "-1.01"),
        ("1.004999", "1.00"),
        ("999.99", "999.99"),
        (".5", "0.50"),
        ("5.", "5.00"),
        ("1e2", "100.00"),
        ("12345e-3", "12.35"),
        ("-0.001", "0.00"),
        ("0e999999999999", "0.00"),
        ("1e-999999999999", "0.00"),
        ("0.005", "0.01"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, NUMERIC_5_2), expected, "{text}");
    }
}

#[test]
fn decimal_that_does_not_fit_is_an_overflow_with_the_limit() {
    for text in ["1000", "999.995", "1e50", "1e999999999999", "-12345"] {
        let error = Value::parse(text, NUMERIC_5_2).unwrap_err();
        assert_eq!(error.state().to_string(), "22003");
        assert_eq!(error.message(), "numeric field overflow");
        let detail = "A field with precision 5, scale 2 must round to an absolute value less than \
                      10^3.";
        assert_eq!(error.detail(), Some(detail));
    }
    let error = Value::parse("1", SqlType::Decimal { precision: 2, scale: 2 }).unwrap_err();
    assert!(error.detail().unwrap().ends_with("less than 1."));
    for text in ["", ".", "1.2.3", "e5", "1e", "--1", "NaN", "1x"] {
        let message = format!("invalid input syntax for type numeric: \"{text}\"");
        assert_refused(text, NUMERIC_5_2, "22P02", &message);
    }
}

#[test]
fn decimal_of_38_digits_keeps_every_digit() {
    let ty = SqlType::Decimal { precision: 38, scale: 10 };
    let text = "-1234567890123456789012345678.0123456789";
    assert_eq!(shown(text, ty), text);
}

#[test]
fn decimal_arithmetic_takes_the_larger_scale_and_reports_overflow() {
    let a = Decimal::new(150, 2);
    let b = Decimal::new(25, 1);
    assert_eq!(a.checked_add(b).unwrap().to_string(), "4.00");
    assert_eq!(a.checked_sub(b).unwrap().to_string(), "-1.00");
    assert_eq!(a.checked_mul(b).unwrap().to_string(), "3.750");
    let large = Decimal::new(i128::MAX, 0);
    assert!(large.checked_add(Decimal::new(1, 0)).is_none());
    assert!(large.checked_mul(Decimal::new(2, 0)).is_none());
    assert!(Decimal::new(1, 38).checked_mul(Decimal::new(1, 1)).is_none());
    assert_eq!(Decimal::new(-25, 1).rescale(0).unwrap().unscaled, -3);
    assert_eq!(Decimal::new(-24, 1).round(), -2);
}

#[test]
fn decimals_of_different_scale_compare_by_number() {
    assert_eq!(Decimal::new(10, 1), Decimal::new(100, 2));
    assert_eq!(hash(Value::Decimal(Decimal::new(10, 1))), hash(Value::Decimal(Decimal::new(1, 0))));
    assert!(Decimal::new(i128::MAX, 0) > Decimal::new(i128::MAX, 38));
    assert!(Decimal::new(-15, 1) < Decimal::new(-149, 2));
    assert!(Decimal::new(-1, 38) < Decimal::new(0, 0));
}

#[test]
fn double_is_shown_as_postgresql_does() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (-12.5, "-12.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e14, "100000000000000"),
        (1e15, "1e+15"),
        (123_456_789_012_345.6, "123456789012345.6"),
        (9_007_199_254_740_991.0, "9.007199254740991e+15"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ];
    for (number, expected) in cases {
        assert_eq!(Value::Double(number).to_string(), expected);
    }
    assert_eq!(Value::Real(1e5).to_string(), "100000");
    assert_eq!(Value::Real(1_234_567.0).to_string(), "1.234567e+06");
    assert_eq!(Value::Real(0.1).to_string(), "0.1");
}

#[test]
fn double_beyond_its_range_is_refused() {
    for text in ["inf", "-Infinity", "NaN", " 1e308 ", "0e5", "-.5"] {
        assert!(Value::parse(text, SqlType::Double).is_ok(), "{text}");
    }
    let message = "\"1e400\" is out of range for type double precision";
    assert_refused("1e400", SqlType::Double, "22003", message);
    let message = "\"1e-50\" is out of range for type real";
    assert_refused("1e-50", SqlType::Real, "22003", message);
    let message = "invalid input syntax for type double precision: \"1,5\"";
    assert_refused("1,5", SqlType::Double, "22P02", message);
}

#[test]
fn string_too_long_by_blanks_only_is_cut() {
    assert_eq!(shown("abc  ", SqlType::Varchar(3)), "abc");
    assert_eq!(shown("ab ", SqlType::Varchar(3)), "ab ");
    assert_eq!(shown("ab ", SqlType::Char(3)), "ab");
    assert_eq!(shown("äöü", SqlType::Char(3)), "äöü");
    let message = "value too long for type character varying(3)";
    assert_refused("abcd", SqlType::Varchar(3), "22001", message);
    assert_refused("äöüß", SqlType::Char(3), "22001", "value too long for type character(3)");
    let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
    assert_refused("a\0b", SqlType::Text, "22021", message);
}

#[test]
fn bytea_is_read_in_both_forms() {
    assert_eq!(shown("\\xDEad be", SqlType::Bytea), "\\xdeadbe");
    assert_eq!(shown("a\\\\b\\001", SqlType::Bytea), "\\x615c6201");
    assert_eq!(shown("", SqlType::Bytea), "\\x");
    assert_refused("\\xg0", SqlType::Bytea, "22023", "invalid hexadecimal digit: \"g\"");
    let message = "invalid hexadecimal data: odd number of digits";
    assert_refused("\\xabc", SqlType::Bytea, "22023", message);
    assert_refused("\\9", SqlType::Bytea, "22P02", "invalid input syntax for type bytea");
}

#[test]
fn uuid_is_read_in_any_case_with_or_without_hyphens() {
    let expected = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    for text in [
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ] {
        assert_eq!(shown(text, SqlType::Uuid), expected);
    }
    for text in ["", "{a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0e-ebc999c0b4ef8bb6d6bb9bd380a11", "x"] {
        let message = format!("invalid input syntax for type uuid: \"{text}\"");
        assert_refused(text, SqlType::Uuid, "22P02", &message);
    }
}

#[test]
fn date_is_read_and_shown_in_iso_form() {
    let cases = [
        ("1970-01-01", "1970-01-01"),
        ("2024-2-29", "2024-02-29"),
        ("20240229", "2024-02-29"),
        ("2024-02-29 23:59:59", "2024-02-29"),
        ("2024-02-29T23:59:59.5Z", "2024-02-29"),
        ("0044-03-15 BC", "0044-03-15 BC"),
        ("5874897-12-31", "5874897-12-31"),
        ("4713-01-01 BC", "4713-01-01 BC"),
        ("epoch", "1970-01-01"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, SqlType::Date), expected, "{text}");
    }
    assert_eq!(Value::parse("1969-12-31", SqlType::Date).unwrap(), Value::Date(-1));
    for text in ["2023-02-29", "2024-13-01", "2024-00-01", "2024-01-32", "0000-01-01"] {
        let message = format!("date/time field value out of range: \"{text}\"");
        assert_refused(text, SqlType::Date, "22008", &message);
    }
    for text in ["", "x", "2024", "2024-01", "24-01-01", "2024-01-01x1", "2024-01-01 10:00 25"] {
        let error = Value::parse(text, SqlType::Date).unwrap_err();
        assert!(matches!(&error.state().0, b"22007" | b"22023"), "{text}: {error}");
    }
    let message = "date out of range: \"5874898-01-01\"";
    assert_refused("5874898-01-01", SqlType::Date, "22008", message);
    assert_refused("infinity", SqlType::Date, "0A000", "date \"infinity\" is not supported");
}

#[test]
fn time_is_read_to_the_microsecond() {
    let cases = [
        ("04:05", "04:05:00"),
        ("4:5:6.789", "04:05:06.789"),
        ("23:59:59.9999999", "24:00:00"),
        ("24:00:00", "24:00:00"),
        ("12:00:60", "12:01:00"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, SqlType::Time), expected, "{text}");
    }
    for text in ["24:00:01", "25:00", "12:60", "12:00:61"] {
        let message = format!("date/time field value out of range: \"{text}\"");
        assert_refused(text, SqlType::Time, "22008", &message);
    }
    let message = "invalid input syntax for type time without time zone: \"noon\"";
    assert_refused("noon", SqlType::Time, "22007", message);
}

#[test]
fn timestamp_is_shown_without_trailing_zeros() {
    let cases = [
        ("2024-01-05 10:20:30.500000", "2024-01-05 10:20:30.5"),
        ("2024-01-05T10:20:30Z", "2024-01-05 10:20:30"),
        ("2024-01-05", "2024-01-05 00:00:00"),
        ("1969-12-31 23:59:59.000001", "1969-12-31 23:59:59.000001"),
        ("2024-01-05 10:20:30+02", "2024-01-05 10:20:30"),
        ("294246-12-31 23:59:59.999999", "294246-12-31 23:59:59.999999"),
        ("0001-12-31 00:00:00 BC", "0001-12-31 00:00:00 BC"),
        ("2023-12-31 24:00", "2024-01-01 00:00:00"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, SqlType::Timestamp), expected, "{text}");
    }
    for text in ["294247-12-31", "294276-01-01", "5874897-01-01"] {
        let message = format!("timestamp out of range: \"{text}\"");
        assert_refused(text, SqlType::Timestamp, "22008", &message);
    }
    let message = "invalid input syntax for type timestamp without time zone: \"yesterday\"";
    assert_refused("yesterday", SqlType::Timestamp, "22007", message);
}

#[test]
fn timestamptz_is_moved_to_utc() {
    let cases = [
        ("2024-01-05 10:20:30+02", "2024-01-05 08:20:30+00"),
        ("2024-01-05 10:20:30 -0530", "2024-01-05 15:50:30+00"),
        ("2024-01-05 10:20:30.25+01:30:15", "2024-01-05 08:50:15.25+00"),
        ("2024-01-05T10:20:30Z", "2024-01-05 10:20:30+00"),
        ("2024-01-05 10:20 utc", "2024-01-05 10:20:00+00"),
        ("2024-01-05 10:20", "2024-01-05 10:20:00+00"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, SqlType::TimestampTz), expected, "{text}");
    }
    let message = "time zone displacement out of range: \"2024-01-05 10:20+16\"";
    assert_refused("2024-01-05 10:20+16", SqlType::TimestampTz, "22009", message);
    let message = "time zone not recognized: \"2024-01-05 10:20 Mars/Base\"";
    assert_refused("2024-01-05 10:20 Mars/Base", SqlType::TimestampTz, "22023", message);
}

#[test]
fn extreme_moments_are_shown_without_panic() {
    for value in [
        Value::Date(i32::MIN),
        Value::Date(i32::MAX),
        Value::Timestamp(i64::MIN),
        Value::TimestampTz(i64::MAX),
        Value::Time(i64::MAX),
    ] {
        assert!(!value.to_string().is_empty());
    }
}

#[test]
fn coerce_between_numbers_rounds_and_checks() {
    let coerce = |value: Value, ty| value.coerce(ty).unwrap().to_string();
    assert_eq!(coerce(Value::Double(2.5), SqlType::Integer), "2");
    assert_eq!(coerce(Value::Decimal(Decimal::new(25, 1)), SqlType::Integer), "3");
    assert_eq!(coerce(Value::BigInt(7), NUMERIC_5_2), "7.00");
    assert_eq!(coerce(Value::Double(1.005), NUMERIC_5_2), "1.01");
    assert_eq!(coerce(Value::Real(0.1), NUMERIC_5_2), "0.10");
    assert_eq!(coerce(Value::Decimal(Decimal::new(12345, 4)), NUMERIC_5_2), "1.23");
    assert_eq!(coerce(Value::Decimal(Decimal::new(1, 1)), SqlType::Double), "0.1");
    assert_eq!(coerce(Value::Integer(3), SqlType::Double), "3");
    assert_eq!(coerce(Value::SmallInt(3), SqlType::BigInt), "3");
    assert_eq!(coerce(Value::Null, SqlType::Integer), "NULL");

    let refuse = |value: Value, ty| code_and_message(value.coerce(ty).unwrap_err());
    let expected = ("22003".to_owned(), "integer out of range".to_owned());
    assert_eq!(refuse(Value::BigInt(1 << 40), SqlType::Integer), expected);
    assert_eq!(refuse(Value::Double(f64::NAN), SqlType::Integer), expected);
    assert_eq!(refuse(Value::Double(1e30), SqlType::Integer), expected);
    assert_eq!(refuse(Value::Double(1e30), NUMERIC_5_2).1, "numeric field overflow");
    assert_eq!(refuse(Value::Double(f64::INFINITY), NUMERIC_5_2).1, "numeric field overflow");
    assert_eq!(refuse(Value::Double(f64::NAN), NUMERIC_5_2).0, "0A000");
    assert_eq!(refuse(Value::Integer(1000), NUMERIC_5_2).0, "22003");
    assert_eq!(refuse(Value::Double(1e300), SqlType::Real).1, "value out of range: overflow");
    assert_eq!(refuse(Value::Double(1e-300), SqlType::Real).1, "value out of range: underflow");
}

#[test]
fn coerce_between_text_and_other_types_parses_and_formats() {
    let coerce = |value: Value, ty| value.coerce(ty).unwrap().to_string();
    assert_eq!(coerce("12.345".into(), NUMERIC_5_2), "12.35");
    assert_eq!(coerce("2024-01-05".into(), SqlType::Date), "2024-01-05");
    assert_eq!(coerce("ab  ".into(), SqlType::Char(2)), "ab");
    assert_eq!(coerce("ab  ".into(), SqlType::Char(9)), "ab");
    assert_eq!(coerce(Value::Integer(42), SqlType::Varchar(2)), "42");
    assert_eq!(coerce(Value::Bool(true), SqlType::Text), "t");
    assert_eq!(coerce(Value::Timestamp(86_400_000_001), SqlType::Date), "1970-01-02");
    assert_eq!(coerce(Value::Timestamp(86_400_000_001), SqlType::Time), "00:00:00.000001");
    assert_eq!(coerce(Value::Date(1), SqlType::TimestampTz), "1970-01-02 00:00:00+00");

    let refuse = |value: Value, ty| code_and_message(value.coerce(ty).unwrap_err());
    assert_eq!(refuse(Value::Integer(123), SqlType::Varchar(2)).0, "22001");
    let expected = ("42846".to_owned(), "cannot cast type boolean to integer".to_owned());
    assert_eq!(refuse(Value::Bool(true), SqlType::Integer), expected);
    assert_eq!(refuse(Value::Integer(1), SqlType::Date).0, "42846");
    assert_eq!(refuse(Value::Date(i32::MAX), SqlType::Timestamp).0, "22008");
}

fn hash(value: Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn order_is_total_with_nan_and_null_last() {
    let mut values = [
        Value::Null,
        Value::Double(f64::NAN),
        Value::Double(f64::INFINITY),
        Value::Double(-1.0),
        Value::Double(0.0),
    ];
    values.sort();
    let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["-1", "0", "Infinity", "NaN", "NULL"]);
    assert_eq!(Value::Double(0.0), Value::Double(-0.0));
    assert_eq!(hash(Value::Double(0.0)), hash(Value::Double(-0.0)));
    assert_eq!(hash(Value::Double(f64::NAN)), hash(Value::Double(-f64::NAN)));
    assert_ne!(Value::Integer(1), Value::BigInt(1));
}

#[test]
fn literal_quotes_everything_but_numbers() {
    assert_eq!(Value::Integer(-5).to_literal(), "-5");
    assert_eq!(Value::from("it's").to_literal(), "'it''s'");
    assert_eq!(Value::Date(0).to_literal(), "'1970-01-01'");
    assert_eq!(Value::from(None::<i32>).to_literal(), "NULL");
}
