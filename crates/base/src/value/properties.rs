//! What holds for every value and every text.

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::*;

fn any_type() -> impl Strategy<Value = SqlType> {
    prop_oneof![
        Just(SqlType::Bool),
        Just(SqlType::SmallInt),
        Just(SqlType::Integer),
        Just(SqlType::BigInt),
        Just(SqlType::Real),
        Just(SqlType::Double),
        (1_u8..=38).prop_flat_map(|precision| {
            (0..=precision).prop_map(move |scale| SqlType::Decimal { precision, scale })
        }),
        (1_u32..40).prop_map(SqlType::Char),
        (1_u32..40).prop_map(SqlType::Varchar),
        Just(SqlType::Text),
        Just(SqlType::Bytea),
        Just(SqlType::Date),
        Just(SqlType::Time),
        Just(SqlType::Timestamp),
        Just(SqlType::TimestampTz),
        Just(SqlType::Uuid),
    ]
}

/// A value that a column of some type can hold, and that type.
fn typed_value() -> impl Strategy<Value = (SqlType, super::Value)> {
    use super::Value as V;
    let micros = -200_000_000_000_000_000_i64..=9_000_000_000_000_000_000;
    prop_oneof![
        any::<bool>().prop_map(|v| (SqlType::Bool, V::Bool(v))),
        any::<i16>().prop_map(|v| (SqlType::SmallInt, V::SmallInt(v))),
        any::<i32>().prop_map(|v| (SqlType::Integer, V::Integer(v))),
        any::<i64>().prop_map(|v| (SqlType::BigInt, V::BigInt(v))),
        any::<u32>().prop_map(|bits| (SqlType::Real, V::Real(f32::from_bits(bits)))),
        any::<u64>().prop_map(|bits| (SqlType::Double, V::Double(f64::from_bits(bits)))),
        (any::<i128>(), 0_u8..=38).prop_map(|(n, scale)| {
            let unscaled = n % 10_i128.pow(38);
            let ty = SqlType::Decimal { precision: 38, scale };
            (ty, V::Decimal(Decimal::new(unscaled, scale)))
        }),
        "[^\0]{0,20}".prop_map(|s| (SqlType::Text, V::Text(s))),
        any::<Vec<u8>>().prop_map(|b| (SqlType::Bytea, V::Bytea(b))),
        (-2_000_000..=2_000_000_000_i32).prop_map(|v| (SqlType::Date, V::Date(v))),
        (0..=MICROS_PER_DAY).prop_map(|v| (SqlType::Time, V::Time(v))),
        micros.clone().prop_map(|v| (SqlType::Timestamp, V::Timestamp(v))),
        micros.prop_map(|v| (SqlType::TimestampTz, V::TimestampTz(v))),
        any::<[u8; 16]>().prop_map(|v| (SqlType::Uuid, V::Uuid(v))),
    ]
}

random_tests! {
    #![cases(256)]

    #[test]
    fn value_shown_and_read_back_is_the_same((ty, value) in typed_value()) {
        let text = value.to_string();
        prop_assert_eq!(super::Value::parse(&text, ty).unwrap(), value);
    }

    #[test]
    fn value_as_text_coerced_back_is_the_same((ty, value) in typed_value()) {
        let text = value.clone().coerce(SqlType::Text).unwrap();
        prop_assert_eq!(text.coerce(ty).unwrap(), value);
    }

    #[test]
    fn parse_of_any_text_never_panics_and_what_it_reads_fits(
        text in "\\PC{0,12}|[-+0-9eE.: TZ]{0,24}", ty in any_type(),
    ) {
        if let Ok(value) = super::Value::parse(&text, ty) {
            prop_assert!(value.fits(ty), "{value:?} in {ty}");
            prop_assert_eq!(super::Value::parse(&value.to_string(), ty).unwrap(), value);
        }
    }

    #[test]
    fn coerce_to_any_type_never_panics_and_fits((_, value) in typed_value(), ty in any_type()) {
        if let Ok(converted) = value.coerce(ty) {
            prop_assert!(converted.fits(ty), "{converted:?} in {ty}");
        }
    }

    #[test]
    fn civil_day_there_and_back_is_the_same(days in -2_147_483_648_i64..=2_147_483_647) {
        let civil = Civil::from_days(days);
        prop_assert!(civil.exists());
        prop_assert_eq!(civil.to_days(), days);
        let next = Civil::from_days(days + 1);
        prop_assert!((civil.year, civil.month, civil.day) < (next.year, next.month, next.day));
    }

    #[test]
    fn decimal_order_agrees_with_aligned_numbers(
        a in -1_000_000_i128..1_000_000, b in -1_000_000_i128..1_000_000, s in 0_u8..6, t in 0_u8..6,
    ) {
        let (x, y) = (Decimal::new(a, s), Decimal::new(b, t));
        let expected = (a * 10_i128.pow(6 - u32::from(s))).cmp(&(b * 10_i128.pow(6 - u32::from(t))));
        prop_assert_eq!(x.cmp(&y), expected);
        prop_assert_eq!(x.checked_sub(y).unwrap().unscaled.cmp(&0), expected);
    }
}
