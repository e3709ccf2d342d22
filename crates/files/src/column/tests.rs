use super::*;
use arrow_array::Array;
use proptest::prelude::*;

fn types() -> Vec<SqlType> {
    vec![
        SqlType::Bool,
        SqlType::SmallInt,
        SqlType::Integer,
        SqlType::BigInt,
        SqlType::Real,
        SqlType::Double,
        SqlType::Decimal { precision: 9, scale: 2 },
        SqlType::Decimal { precision: 38, scale: 0 },
        SqlType::Decimal { precision: 18, scale: 18 },
        SqlType::Char(4),
        SqlType::Varchar(4),
        SqlType::Text,
        SqlType::Bytea,
        SqlType::Date,
        SqlType::Time,
        SqlType::Timestamp,
        SqlType::TimestampTz,
        SqlType::Uuid,
    ]
}

/// Texts that are nearly values of some type.
fn near_values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+]?[0-9]{1,21}",
        "-?[0-9]{0,19}\\.?[0-9]{0,19}",
        "-?[0-9]{1,4}\\.[0-9]{1,3}",
        "[-+]?[0-9]{1,3}(\\.[0-9]{1,3})?[eE][-+]?[0-9]{1,3}",
        "[0-9]{4}-[01][0-9]-[0-3][0-9]",
        "[0-9]{4}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{1,7})?(Z|\\+00|\\+02|-05:30)?",
        "[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,7})?",
        "(t|true|f|false|1|0|yes|no|on|off|TRUE)",
        "(NaN|nan|inf|-inf|Infinity|-0|0|-0\\.0|1e400|1e-400|0e5|\\.|-|e)",
        "[ a-z0-9é]{0,6}",
        "\\\\x[0-9a-f]{0,6}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        ".{0,8}",
    ]
}

/// The array of one text, by the fast way.
fn by_columns(text: &str, ty: SqlType) -> Result<ArrayRef, CellError> {
    let mut builder = ColumnBuilder::new(ty, true, 1, text.len());
    let is_checked = !text.contains('\0');
    let texts = [Some(Text { bytes: text.as_bytes(), is_checked })];
    builder.extend(texts.into_iter()).map_err(|(_, error)| error)?;
    Ok(builder.finish())
}

/// The array of one text, as a value is read anywhere else.
fn by_values(text: &str, ty: SqlType) -> Result<ArrayRef, CellError> {
    let mut builder = ColumnBuilder::new(ty, true, 1, text.len());
    builder.push_value(Value::parse(text, ty).map_err(CellError::Value)?)?;
    Ok(builder.finish())
}

#[test]
fn texts_read_fast_are_the_values_that_they_are_anywhere_else() {
    albireo_testing::check(&albireo_testing::test!(), 4000, near_values(), |text| {
        for ty in types() {
            let (fast, slow) = (by_columns(&text, ty), by_values(&text, ty));
            match (&fast, &slow) {
                (Ok(fast), Ok(slow)) => prop_assert_eq!(fast.to_data(), slow.to_data(), "{} {:?}", ty, text),
                (Err(_), Err(_)) => {}
                _ => prop_assert!(false, "{ty} {text:?}: {fast:?} {slow:?}"),
            }
        }
        Ok(())
    });
}

#[test]
fn value_beyond_measure_is_shortened_in_its_message() {
    let error = by_columns(&"x".repeat(100_000), SqlType::Integer).unwrap_err();
    let CellError::Value(error) = error else { panic!("{error:?}") };
    assert!(error.message().starts_with("invalid input syntax for type integer: \"xxxx"), "{error}");
    assert!(error.message().len() < 200, "{error}");
}

#[test]
fn null_is_refused_where_a_value_must_be() {
    let mut builder = ColumnBuilder::new(SqlType::Integer, false, 2, 0);
    let texts = [Some(Text { bytes: b"1", is_checked: true }), None];
    assert_eq!(builder.extend(texts.into_iter()), Err((1, CellError::Null)));
}
