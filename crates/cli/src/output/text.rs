//! The text form of one value in an Arrow array, as PostgreSQL writes it.

use super::Cell;
use albireo_base::{Decimal, SqlType, Value};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::*;
use arrow::util::display::array_value_to_string;

/// The text of `array[row]` in a column of type `ty`; `None` if it is NULL.
pub fn cell(array: &dyn Array, row: usize, ty: SqlType) -> Cell {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::Decimal128(_, scale) if (0..=38).contains(scale) => {
            Decimal::new(array.as_primitive::<Decimal128Type>().value(row), scale.unsigned_abs()).to_string()
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            interval(array.as_primitive::<IntervalMonthDayNanoType>().value(row))
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row), ty),
        DataType::Dictionary(_, values) => match cast(&array.slice(row, 1), values) {
            Ok(value) => return cell(&value, 0, ty),
            Err(_) => by_arrow(array, row),
        },
        _ => match value(array, row, ty) {
            Some(value) => value.to_string(),
            None => by_arrow(array, row),
        },
    })
}

/// The value as one of ours, if its type is one of ours.
fn value(array: &dyn Array, row: usize, ty: SqlType) -> Option<Value> {
    Some(match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Float32 => Value::Real(get::<Float32Type>(array, row)),
        DataType::Float64 => Value::Double(get::<Float64Type>(array, row)),
        DataType::Date32 => Value::Date(get::<Date32Type>(array, row)),
        DataType::Time64(TimeUnit::Microsecond) => Value::Time(get::<Time64MicrosecondType>(array, row)),
        DataType::Timestamp(unit, zone) => {
            let micros = micros(array, row, *unit)?;
            if zone.is_some() { Value::TimestampTz(micros) } else { Value::Timestamp(micros) }
        }
        DataType::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary().value(row);
            match (ty, <[u8; 16]>::try_from(bytes)) {
                (SqlType::Uuid, Ok(uuid)) => Value::Uuid(uuid),
                _ => Value::Bytea(bytes.to_vec()),
            }
        }
        DataType::Binary => Value::Bytea(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytea(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytea(array.as_binary_view().value(row).to_vec()),
        _ => return None,
    })
}

fn get<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    let array: &PrimitiveArray<T> = array.as_primitive();
    array.value(row)
}

fn micros(array: &dyn Array, row: usize, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => get::<TimestampSecondType>(array, row).checked_mul(1_000_000),
        TimeUnit::Millisecond => get::<TimestampMillisecondType>(array, row).checked_mul(1_000),
        TimeUnit::Microsecond => Some(get::<TimestampMicrosecondType>(array, row)),
        TimeUnit::Nanosecond => Some(get::<TimestampNanosecondType>(array, row).div_euclid(1_000)),
    }
}

/// Integers of every width, and types that are not ours.
fn by_arrow(array: &dyn Array, row: usize) -> String {
    array_value_to_string(array, row).unwrap_or_else(|error| format!("<{error}>"))
}

/// `1 year 2 mons -3 days 04:05:06.7`, PostgreSQL's `intervalstyle = postgres`.
fn interval(value: IntervalMonthDayNano) -> String {
    let mut parts = Vec::new();
    let mut part = |count: i32, one: &str, more: &str| {
        if count != 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { more }));
        }
    };
    part(value.months / 12, "year", "years");
    part(value.months % 12, "mon", "mons");
    part(value.days, "day", "days");
    let micros = value.nanoseconds / 1_000;
    if micros != 0 || parts.is_empty() {
        let (sign, total) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
        let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
        let mut time = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            time.push('.');
            time.push_str(digits.trim_end_matches('0'));
        }
        parts.push(time);
    }
    parts.join(" ")
}

/// `{1,NULL,"two words"}`.
fn list(values: &ArrayRef, ty: SqlType) -> String {
    let elements: Vec<String> = (0..values.len())
        .map(|row| match cell(values, row, ty) {
            None => "NULL".to_owned(),
            Some(text) if matches!(values.data_type(), DataType::List(_)) => text,
            Some(text) if is_bare_element(&text) => text,
            Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        })
        .collect();
    format!("{{{}}}", elements.join(","))
}

fn is_bare_element(text: &str) -> bool {
    let special = |c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\\' | '{' | '}');
    !text.is_empty() && !text.contains(special) && !text.eq_ignore_ascii_case("null")
}
