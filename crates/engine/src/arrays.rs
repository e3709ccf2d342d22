//! Values as Arrow arrays, and back.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, Value, arrow_type};
use albireo_sql::TableDef;
use arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use crate::Column;
use crate::adapters::value_at;

/// What should not happen.
pub(crate) fn internal(error: arrow::error::ArrowError) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, error.to_string())
}

/// The schema of batches with such columns. Whether a column may be NULL is checked with its values.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, SqlType)>) -> SchemaRef {
    let fields = columns.into_iter().map(|(name, ty)| Field::new(name, arrow_type(ty), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The schema of batches with all columns of a table.
pub(crate) fn schema_of(table: &TableDef) -> SchemaRef {
    schema(table.columns.iter().map(|column| (column.name.as_str(), column.ty)))
}

/// A row of a batch with all columns of a table.
pub(crate) fn row_of(batch: &RecordBatch, row: usize, table: &TableDef) -> Vec<Value> {
    let columns = batch.columns().iter().zip(&table.columns);
    columns.map(|(array, column)| value_at(array, row, column.ty)).collect()
}

/// The same value in so many rows.
pub(crate) fn repeated(ty: SqlType, value: &Value, rows: usize) -> Result<ArrayRef, SqlError> {
    match value {
        Value::Null => Ok(new_null_array(&arrow_type(ty), rows)),
        value => array(ty, std::iter::repeat_n(value, rows)),
    }
}

/// Rows of columns as a batch. Where the schema has texts for numbers, they are of several scales.
pub(crate) fn batch(
    columns: &[Column],
    schema: &SchemaRef,
    rows: &[Vec<Value>],
) -> Result<RecordBatch, SqlError> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (at, (column, field)) in columns.iter().zip(schema.fields()).enumerate() {
        let values = rows.iter().map(|row| &row[at]);
        let is_mixed =
            matches!(column.ty, SqlType::Decimal { .. }) && *field.data_type() == DataType::Utf8View;
        arrays.push(if is_mixed { texts(values) } else { array(column.ty, values)? });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(internal)
}

/// Numbers with the digits that each has.
fn texts<'a>(values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let text = |value: &Value| (!value.is_null()).then(|| value.to_string());
    Arc::new(values.map(text).collect::<StringViewArray>())
}

/// Values of one type, or NULL, as an array.
pub(crate) fn array<'a>(ty: SqlType, values: impl Iterator<Item = &'a Value>) -> Result<ArrayRef, SqlError> {
    macro_rules! collect {
        ($array:ty, $variant:ident) => {
            values.map(|v| if let Value::$variant(v) = v { Some(*v) } else { None }).collect::<$array>()
        };
    }
    Ok(match ty {
        SqlType::Bool => Arc::new(collect!(BooleanArray, Bool)),
        SqlType::SmallInt => Arc::new(collect!(Int16Array, SmallInt)),
        SqlType::Integer => Arc::new(collect!(Int32Array, Integer)),
        SqlType::BigInt => Arc::new(collect!(Int64Array, BigInt)),
        SqlType::Real => Arc::new(collect!(Float32Array, Real)),
        SqlType::Double => Arc::new(collect!(Float64Array, Double)),
        SqlType::Date => Arc::new(collect!(Date32Array, Date)),
        SqlType::Time => Arc::new(collect!(Time64MicrosecondArray, Time)),
        SqlType::Timestamp => Arc::new(collect!(TimestampMicrosecondArray, Timestamp)),
        SqlType::TimestampTz => {
            Arc::new(collect!(TimestampMicrosecondArray, TimestampTz).with_timezone("UTC"))
        }
        SqlType::Decimal { precision, scale } => {
            let unscaled = |v: &Value| if let Value::Decimal(d) = v { Some(d.unscaled) } else { None };
            let array: Decimal128Array = values.map(unscaled).collect();
            Arc::new(
                array
                    .with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(38))
                    .map_err(internal)?,
            )
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
            let text = |v: &'a Value| if let Value::Text(v) = v { Some(v.as_str()) } else { None };
            Arc::new(values.map(text).collect::<StringViewArray>())
        }
        SqlType::Bytea => {
            let bytes = |v: &'a Value| if let Value::Bytea(v) = v { Some(v.as_slice()) } else { None };
            Arc::new(values.map(bytes).collect::<BinaryViewArray>())
        }
        SqlType::Uuid => {
            let bytes = |v: &'a Value| if let Value::Uuid(v) = v { Some(v.as_slice()) } else { None };
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.map(bytes), 16);
            Arc::new(array.map_err(internal)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_come_back_from_their_array() {
        let decimal = SqlType::Decimal { precision: 20, scale: 2 };
        let cases = [
            (SqlType::Bool, "t"),
            (SqlType::SmallInt, "-7"),
            (SqlType::Integer, "7"),
            (SqlType::BigInt, "-9223372036854775808"),
            (SqlType::Real, "0.5"),
            (SqlType::Double, "1e+300"),
            (decimal, "-123456789012345678.90"),
            (SqlType::Char(3), "ab"),
            (SqlType::Varchar(3), ""),
            (SqlType::Text, "ä"),
            (SqlType::Bytea, "\\x00ff"),
            (SqlType::Date, "2024-02-29"),
            (SqlType::Time, "23:59:59.5"),
            (SqlType::Timestamp, "1969-12-31 23:59:59"),
            (SqlType::TimestampTz, "2024-01-01 00:00:00+00"),
            (SqlType::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ];
        for (ty, text) in cases {
            let values = [Value::parse(text, ty).unwrap(), Value::Null];
            let array = array(ty, values.iter()).unwrap();
            assert_eq!(*array.data_type(), albireo_base::arrow_type(ty));
            for (row, value) in values.iter().enumerate() {
                assert_eq!(crate::adapters::value_at(&array, row, ty), *value, "{ty}");
            }
        }
    }
}
