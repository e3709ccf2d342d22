//! Values of the bound form in Arrow arrays, and back.
//!
//! Responsible for: which Arrow type each SQL type has between operators; one value of an array; arrays of
//! values. NUMERIC of one scale is `Decimal128`, of any scale [`OPEN`].

pub(crate) mod numeric;

use std::sync::Arc;

use albireo_base::{Decimal, Interval, SqlError, SqlType, Value, arrow_type};
use albireo_semantics::datum::{Array as SqlArray, Datum};
use albireo_semantics::types::{Scalar, Type};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, StringViewArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};

use crate::errors::{from_arrow, internal};
use numeric::OPEN;

/// The Arrow type of values of a type between operators; `None` for what is no value.
pub(crate) fn arrow_of(ty: &Type) -> Option<DataType> {
    match ty {
        Type::Scalar(scalar) => Some(arrow_of_scalar(*scalar)),
        Type::Array(element) => {
            let item = Field::new("item", arrow_of_scalar(open_items(*element)), true);
            Some(DataType::List(Arc::new(item)))
        }
        Type::Row(row) => {
            let field = |(at, (_, ty)): (usize, &(String, Scalar))| {
                Field::new(format!("f{}", at + 1), arrow_of_scalar(*ty), true)
            };
            Some(DataType::Struct(row.fields.iter().enumerate().map(field).collect()))
        }
        Type::Void => None,
    }
}

/// Elements of arrays have a scale each.
fn open_items(element: Scalar) -> Scalar {
    match element {
        Scalar::Numeric { .. } => Scalar::Numeric { scale: None },
        other => other,
    }
}

/// As [`arrow_of`].
pub(crate) fn arrow_of_scalar(ty: Scalar) -> DataType {
    match ty {
        Scalar::Bool => DataType::Boolean,
        Scalar::SmallInt => DataType::Int16,
        Scalar::Integer => DataType::Int32,
        Scalar::BigInt => DataType::Int64,
        Scalar::Real => DataType::Float32,
        Scalar::Double => DataType::Float64,
        Scalar::Numeric { scale: Some(scale) } => DataType::Decimal128(38, scale as i8),
        Scalar::Numeric { scale: None } => OPEN,
        Scalar::Text | Scalar::Bpchar | Scalar::Unknown => DataType::Utf8View,
        Scalar::Bytea => DataType::BinaryView,
        Scalar::Date => DataType::Date32,
        Scalar::Time => DataType::Time64(TimeUnit::Microsecond),
        Scalar::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Scalar::TimestampTz => arrow_type(SqlType::TimestampTz),
        Scalar::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        Scalar::Uuid => DataType::FixedSizeBinary(16),
    }
}

/// The value in a row of an array.
///
/// # Errors
/// XX000 for an Arrow type that no SQL type has.
pub(crate) fn datum_at(array: &dyn Array, row: usize) -> Result<Datum, SqlError> {
    if array.is_null(row) {
        return Ok(Datum::NULL);
    }
    let value = match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int16 => Value::SmallInt(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Value::BigInt(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Value::Real(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            let unscaled = array.as_primitive::<Decimal128Type>().value(row);
            Value::Decimal(Decimal::new(unscaled, u8::try_from(*scale).unwrap_or(0)))
        }
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::BinaryView => Value::Bytea(array.as_binary_view().value(row).to_vec()),
        DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(_) => Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let moment = array.as_primitive::<TimestampMicrosecondType>().value(row);
            if zone.is_some() { Value::TimestampTz(moment) } else { Value::Timestamp(moment) }
        }
        DataType::FixedSizeBinary(numeric::BYTES) => {
            Value::Decimal(numeric::decode(array.as_fixed_size_binary().value(row)))
        }
        DataType::FixedSizeBinary(16) => {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(array.as_fixed_size_binary().value(row));
            Value::Uuid(uuid)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let v = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let micros = v.nanoseconds / 1000;
            return Ok(Datum::Interval(Interval { months: v.months, days: v.days, micros }));
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let items = (0..items.len()).map(|at| datum_at(&items, at)).collect::<Result<_, _>>()?;
            return Ok(Datum::Array(Arc::new(SqlArray { lower: 1, items })));
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter();
            return Ok(Datum::Row(fields.map(|field| datum_at(field, row)).collect::<Result<_, _>>()?));
        }
        other => return Err(internal(format!("a value of type {other} in an expression"))),
    };
    Ok(value.into())
}

/// Values of an Arrow type as an array.
///
/// # Errors
/// 22015 for an interval that Arrow has no room for; XX000 if one is of another type.
pub(crate) fn array_of(values: &[Datum], ty: &DataType) -> Result<ArrayRef, SqlError> {
    macro_rules! collect {
        ($array:ty, $variant:ident) => {
            Arc::new(
                values
                    .iter()
                    .map(|datum| match datum {
                        Datum::Value(Value::$variant(v)) => Ok(Some(*v)),
                        other => null(other),
                    })
                    .collect::<Result<$array, SqlError>>()?,
            )
        };
    }
    Ok(match ty {
        DataType::Boolean => collect!(BooleanArray, Bool),
        DataType::Int16 => collect!(Int16Array, SmallInt),
        DataType::Int32 => collect!(Int32Array, Integer),
        DataType::Int64 => collect!(Int64Array, BigInt),
        DataType::Float32 => collect!(Float32Array, Real),
        DataType::Float64 => collect!(Float64Array, Double),
        DataType::Date32 => collect!(Date32Array, Date),
        DataType::Time64(_) => collect!(Time64MicrosecondArray, Time),
        DataType::Timestamp(_, None) => collect!(TimestampMicrosecondArray, Timestamp),
        DataType::Timestamp(_, Some(_)) => {
            let array: Arc<TimestampMicrosecondArray> = collect!(TimestampMicrosecondArray, TimestampTz);
            Arc::new(array.as_ref().clone().with_timezone("UTC"))
        }
        DataType::Decimal128(precision, scale) => decimals(values, *precision, *scale)?,
        DataType::Utf8View => {
            let text = |datum: &Datum| match datum {
                Datum::Value(Value::Text(v)) => Ok(Some(v.clone())),
                other => null(other),
            };
            Arc::new(values.iter().map(text).collect::<Result<StringViewArray, SqlError>>()?)
        }
        DataType::BinaryView => {
            let bytes = |datum: &Datum| match datum {
                Datum::Value(Value::Bytea(v)) => Ok(Some(v.clone())),
                other => null(other),
            };
            Arc::new(values.iter().map(bytes).collect::<Result<BinaryViewArray, SqlError>>()?)
        }
        DataType::FixedSizeBinary(size) => fixed(values, *size)?,
        DataType::Interval(_) => intervals(values)?,
        DataType::List(item) => lists(values, item)?,
        DataType::Struct(fields) => rows(values, fields)?,
        other => return Err(internal(format!("values of type {other} from an expression"))),
    })
}

/// NULL where a value of a type is expected.
fn null<T>(datum: &Datum) -> Result<Option<T>, SqlError> {
    match datum.is_null() {
        true => Ok(None),
        false => Err(internal("a value is not of the type of its expression")),
    }
}

fn decimals(values: &[Datum], precision: u8, scale: i8) -> Result<ArrayRef, SqlError> {
    let digits = u8::try_from(scale).unwrap_or(0);
    let unscaled = |datum: &Datum| match datum {
        Datum::Value(Value::Decimal(number)) => match number.rescale(digits) {
            Some(number) if number.fits(precision) => Ok(Some(number.unscaled)),
            _ => Err(crate::errors::out_of_range("numeric")),
        },
        other => null(other),
    };
    let array = values.iter().map(unscaled).collect::<Result<Decimal128Array, SqlError>>()?;
    let array = array.with_precision_and_scale(precision, scale);
    Ok(Arc::new(array.map_err(|e| from_arrow(&e))?))
}

fn fixed(values: &[Datum], size: i32) -> Result<ArrayRef, SqlError> {
    let mut bytes: Vec<Option<Vec<u8>>> = Vec::with_capacity(values.len());
    for datum in values {
        bytes.push(match datum {
            Datum::Value(Value::Decimal(number)) => Some(numeric::encode(*number).to_vec()),
            Datum::Value(Value::Uuid(uuid)) => Some(uuid.to_vec()),
            other => null(other)?,
        });
    }
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), size);
    Ok(Arc::new(array.map_err(|e| from_arrow(&e))?))
}

fn intervals(values: &[Datum]) -> Result<ArrayRef, SqlError> {
    let mut spans = Vec::with_capacity(values.len());
    for datum in values {
        spans.push(match datum {
            Datum::Interval(v) => {
                let nanoseconds = v.micros.checked_mul(1000).ok_or_else(|| {
                    let state = albireo_base::SqlState::INTERVAL_FIELD_OVERFLOW;
                    SqlError::new(state, "interval field value out of range")
                })?;
                Some(IntervalMonthDayNano::new(v.months, v.days, nanoseconds))
            }
            other => null(other)?,
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(spans)))
}

fn rows(values: &[Datum], fields: &Fields) -> Result<ArrayRef, SqlError> {
    let mut columns = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let value = |datum: &Datum| match datum {
            Datum::Row(row) => Ok(row.get(at).cloned().unwrap_or_default()),
            other => null::<()>(other).map(|_| Datum::NULL),
        };
        let values = values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        columns.push(array_of(&values, field.data_type())?);
    }
    let valid = values.iter().map(|datum| !datum.is_null()).collect();
    let rows = StructArray::try_new_with_length(fields.clone(), columns, Some(valid), values.len());
    Ok(Arc::new(rows.map_err(|e| from_arrow(&e))?))
}

fn lists(values: &[Datum], item: &arrow::datatypes::FieldRef) -> Result<ArrayRef, SqlError> {
    let mut items = Vec::new();
    let mut lengths = Vec::with_capacity(values.len());
    let mut valid = Vec::with_capacity(values.len());
    for datum in values {
        match datum {
            Datum::Array(array) => {
                items.extend(array.items.iter().cloned());
                lengths.push(array.items.len());
                valid.push(true);
            }
            other => {
                null::<()>(other)?;
                lengths.push(0);
                valid.push(false);
            }
        }
    }
    let items = array_of(&items, item.data_type())?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(Arc::clone(item), offsets, items, Some(NullBuffer::from(valid)));
    Ok(Arc::new(list.map_err(|e| from_arrow(&e))?))
}
