//! The least and the greatest value of an encoded column, as values of its type.
//!
//! Responsible for: which of those that a column knows of itself are exactly what reading it would give. Not responsible
//! for: of which rows they are ([`super::sums`]).
//!
//! Columns know them in SQL's order and whole, texts too. Only of floats there are several that are equal in that order:
//! zeros, of which one is shown as `-0`, and NaNs, which nobody can tell apart.

use albireo_encoding::{Scalar, Summary};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;

use super::zones::has_zones;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Least,
    Greatest,
}

/// One of the two, and the type of the column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extreme {
    end: End,
    ty: DataType,
}

impl Extreme {
    /// That of a column of a type. `None`: such columns are always read for it.
    pub(crate) fn new(end: End, ty: &DataType) -> Option<Self> {
        let is_known = has_zones(ty)
            || matches!(
                ty,
                DataType::Decimal128(..) | DataType::Float32 | DataType::Float64 | DataType::Utf8View
            );
        is_known.then(|| Self { end, ty: ty.clone() })
    }

    /// The value, NULL if there is none. `None`: it may be another that is equal in SQL's order.
    pub(super) fn of(&self, summary: &Summary) -> Option<ScalarValue> {
        let value = match self.end {
            End::Least => &summary.least,
            End::Greatest => &summary.greatest,
        };
        match value {
            Some(value) => exactly(value, &self.ty),
            None => ScalarValue::try_new_null(&self.ty).ok(),
        }
    }
}

/// A value of a type; `None` if others are equal to it.
fn exactly(value: &Scalar, ty: &DataType) -> Option<ScalarValue> {
    Some(match (value, ty) {
        (Scalar::Integer(value), DataType::Int16) => ScalarValue::Int16(Some(i16::try_from(*value).ok()?)),
        (Scalar::Integer(value), DataType::Int32) => ScalarValue::Int32(Some(i32::try_from(*value).ok()?)),
        (Scalar::Integer(value), DataType::Int64) => ScalarValue::Int64(Some(*value)),
        (Scalar::Integer(value), DataType::Date32) => ScalarValue::Date32(Some(i32::try_from(*value).ok()?)),
        (Scalar::Integer(value), DataType::Time64(TimeUnit::Microsecond)) => {
            ScalarValue::Time64Microsecond(Some(*value))
        }
        (Scalar::Integer(value), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            ScalarValue::TimestampMicrosecond(Some(*value), zone.clone())
        }
        (Scalar::Integer(value), DataType::Decimal128(precision, scale)) => {
            ScalarValue::Decimal128(Some(i128::from(*value)), *precision, *scale)
        }
        (Scalar::I128(value), DataType::Decimal128(precision, scale)) => {
            ScalarValue::Decimal128(Some(*value), *precision, *scale)
        }
        (Scalar::F32(bits), DataType::Float32) if f32::from_bits(*bits) != 0.0 => {
            ScalarValue::Float32(Some(f32::from_bits(*bits)))
        }
        (Scalar::F64(bits), DataType::Float64) if f64::from_bits(*bits) != 0.0 => {
            ScalarValue::Float64(Some(f64::from_bits(*bits)))
        }
        (Scalar::Text(text), DataType::Utf8View) => {
            ScalarValue::Utf8View(Some(std::str::from_utf8(text).ok()?.to_owned()))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(end: End, ty: &DataType, ends: Option<(Scalar, Scalar)>) -> Option<ScalarValue> {
        let (least, greatest) = ends.unzip();
        let count = u32::from(least.is_some());
        Extreme::new(end, ty).unwrap().of(&Summary { least, greatest, count, ..Summary::default() })
    }

    #[test]
    fn value_has_the_type_of_its_column() {
        let ends = |least, greatest| Some((Scalar::Integer(least), Scalar::Integer(greatest)));
        let least = |ty: &DataType| of(End::Least, ty, ends(-1, 7));
        assert_eq!(least(&DataType::Int16), Some(ScalarValue::Int16(Some(-1))));
        assert_eq!(least(&DataType::Date32), Some(ScalarValue::Date32(Some(-1))));
        let decimal = |value| Some(ScalarValue::Decimal128(Some(value), 8, 2));
        assert_eq!(of(End::Greatest, &DataType::Decimal128(8, 2), ends(-1, 7)), decimal(7));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(least(&zoned), Some(ScalarValue::TimestampMicrosecond(Some(-1), Some("UTC".into()))));
        let text = |text: &str| Scalar::Text(text.as_bytes().into());
        let greatest = of(End::Greatest, &DataType::Utf8View, Some((text("a"), text("ä"))));
        assert_eq!(greatest, Some(ScalarValue::Utf8View(Some("ä".to_owned()))));
        assert_eq!(of(End::Least, &DataType::Int64, None), Some(ScalarValue::Int64(None)));
    }

    #[test]
    fn zero_is_not_known_and_nan_is() {
        let bits = |value: f64| Scalar::F64(value.to_bits());
        let double = |end, least, greatest| of(end, &DataType::Float64, Some((bits(least), bits(greatest))));
        assert_eq!(double(End::Least, 0.0, f64::NAN), None);
        assert_eq!(double(End::Least, -1.5, 0.0), Some(ScalarValue::Float64(Some(-1.5))));
        assert_eq!(double(End::Greatest, -1.5, 0.0), None);
        let greatest = double(End::Greatest, 0.0, f64::NAN);
        assert!(matches!(greatest, Some(ScalarValue::Float64(Some(value))) if value.is_nan()));
    }
}
