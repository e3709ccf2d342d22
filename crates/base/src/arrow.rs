//! How columns look in Arrow: the one form in which crates hand rows to each other.

use arrow_schema::{DataType, TimeUnit};

use crate::SqlType;

/// The Arrow type of a column of `ty`.
pub fn arrow_type(ty: SqlType) -> DataType {
    match ty {
        SqlType::Bool => DataType::Boolean,
        SqlType::SmallInt => DataType::Int16,
        SqlType::Integer => DataType::Int32,
        SqlType::BigInt => DataType::Int64,
        SqlType::Real => DataType::Float32,
        SqlType::Double => DataType::Float64,
        SqlType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => DataType::Utf8View,
        SqlType::Bytea => DataType::BinaryView,
        SqlType::Date => DataType::Date32,
        SqlType::Time => DataType::Time64(TimeUnit::Microsecond),
        SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        SqlType::Uuid => DataType::FixedSizeBinary(16),
    }
}
