//! SQL types as Arrow and DataFusion see them, and back.
//!
//! Responsible for: the way back from Arrow types, of which [`arrow_type`](albireo_base::arrow_type) is the one way there.
//! **Invariant:** every NUMERIC is `Decimal128` here; Arrow's narrower decimals truncate silently
//! against integer literals in DataFusion and never appear.

use std::sync::Arc;

use albireo_base::{Decimal, SqlType};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;

fn utc() -> Arc<str> {
    Arc::from("UTC")
}

/// The SQL type of a result column; `None` for types SQL values do not have here (intervals,
/// lists).
pub fn sql_type(ty: &DataType) -> Option<SqlType> {
    Some(match ty {
        DataType::Boolean => SqlType::Bool,
        DataType::Int16 => SqlType::SmallInt,
        DataType::Int32 => SqlType::Integer,
        DataType::Int64 => SqlType::BigInt,
        DataType::Float32 => SqlType::Real,
        DataType::Float64 => SqlType::Double,
        DataType::Decimal128(precision, scale) => {
            SqlType::Decimal { precision: *precision, scale: u8::try_from(*scale).unwrap_or(0) }
        }
        DataType::Utf8View => SqlType::Text,
        DataType::BinaryView => SqlType::Bytea,
        DataType::Date32 => SqlType::Date,
        DataType::Time64(TimeUnit::Microsecond) => SqlType::Time,
        DataType::Timestamp(TimeUnit::Microsecond, None) => SqlType::Timestamp,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => SqlType::TimestampTz,
        DataType::FixedSizeBinary(16) => SqlType::Uuid,
        _ => return None,
    })
}

/// The type a result column is delivered in: one Arrow type for every SQL type, whatever
/// DataFusion's functions happen to return.
pub fn result_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
        DataType::Decimal256(_, s) => DataType::Decimal128(38, *s),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| utc()))
        }
        // Columns of results cannot be intervals yet: they are given as PostgreSQL's text.
        DataType::Duration(_) | DataType::Interval(_) => DataType::Utf8View,
        DataType::Dictionary(_, value) => result_type(value),
        other => other.clone(),
    }
}

/// A number as DataFusion's literal, with no more digits than it has.
pub(crate) fn decimal(number: Decimal) -> ScalarValue {
    let digits = number.unscaled.unsigned_abs().checked_ilog10().map_or(1, |n| n + 1);
    let precision = (digits as u8).max(number.scale).clamp(1, 38);
    ScalarValue::Decimal128(Some(number.unscaled), precision, number.scale as i8)
}
