//! Keys of indexes, made of values.

use albireo_base::{SqlType, Value};
use albireo_storage::KeyBuilder;

/// Appends a value of a column to a key.
pub(super) fn push(key: &mut KeyBuilder, value: &Value, ty: SqlType, nullable: bool) {
    if nullable {
        key.push_present();
    }
    match value {
        Value::Null => {}
        Value::Bool(v) => {
            key.push_bool(*v);
        }
        Value::SmallInt(v) => {
            key.push_i16(*v);
        }
        Value::Integer(v) | Value::Date(v) => {
            key.push_i32(*v);
        }
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => {
            key.push_i64(*v);
        }
        Value::Real(v) => {
            key.push_f32(*v);
        }
        Value::Double(v) => {
            key.push_f64(*v);
        }
        Value::Decimal(v) => match ty {
            SqlType::Decimal { precision, .. } if precision <= SqlType::MAX_DECIMAL64_PRECISION => {
                key.push_i64(v.unscaled as i64);
            }
            _ => {
                key.push_i128(v.unscaled);
            }
        },
        Value::Text(v) => {
            key.push_str(v);
        }
        Value::Bytea(v) => {
            key.push_bytes(v);
        }
        Value::Uuid(v) => {
            key.push_uuid(*v);
        }
    }
}
