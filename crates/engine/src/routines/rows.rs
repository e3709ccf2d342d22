//! What routines give back, as results.
use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::text_of;
use albireo_semantics::types::{Scalar, Type};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};

use crate::arrays::{array, internal, schema};
use crate::{Column, QueryResult};

/// Rows with names and types of their columns. Arrays, rows and intervals become texts.
///
/// # Errors
/// 22003 if the numbers of a NUMERIC column have no place in one type of 38 digits.
pub(super) fn result(columns: &[(String, Type)], rows: &[Vec<Datum>]) -> Result<QueryResult, SqlError> {
    let types: Vec<SqlType> =
        columns.iter().enumerate().map(|(index, (_, ty))| column_type(ty, rows, index)).collect();
    let arrays: Result<Vec<ArrayRef>, SqlError> = types
        .iter()
        .enumerate()
        .map(|(index, &ty)| {
            let values = rows.iter().map(|row| value(&row[index], ty));
            let values: Vec<Value> =
                values.collect::<Option<_>>().ok_or_else(|| too_wide(&columns[index].0, ty))?;
            array(ty, values.iter())
        })
        .collect();
    let schema = schema(columns.iter().zip(&types).map(|((name, _), ty)| (name.as_str(), *ty)));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays?, &options);
    let column = |((name, _), ty): (&(String, Type), &SqlType)| Column { name: name.clone(), ty: *ty };
    Ok(QueryResult {
        columns: columns.iter().zip(&types).map(column).collect(),
        schema,
        batches: vec![batch.map_err(internal)?],
        planning: Duration::ZERO,
        execution: Duration::ZERO,
    })
}

/// The type of a column of the result. NUMERIC has the most digits after the point that a value of the
/// column has.
pub(crate) fn column_type(ty: &Type, rows: &[Vec<Datum>], index: usize) -> SqlType {
    let Type::Scalar(scalar) = ty else { return SqlType::Text };
    match scalar {
        Scalar::Bool => SqlType::Bool,
        Scalar::SmallInt => SqlType::SmallInt,
        Scalar::Integer => SqlType::Integer,
        Scalar::BigInt => SqlType::BigInt,
        Scalar::Real => SqlType::Real,
        Scalar::Double => SqlType::Double,
        Scalar::Numeric { .. } => {
            let scale = |row: &Vec<Datum>| match &row[index] {
                Datum::Value(Value::Decimal(number)) => number.scale,
                _ => 0,
            };
            let scale = rows.iter().map(scale).max().unwrap_or(0);
            SqlType::Decimal { precision: SqlType::MAX_DECIMAL_PRECISION, scale }
        }
        Scalar::Bytea => SqlType::Bytea,
        Scalar::Date => SqlType::Date,
        Scalar::Time => SqlType::Time,
        Scalar::Timestamp => SqlType::Timestamp,
        Scalar::TimestampTz => SqlType::TimestampTz,
        Scalar::Uuid => SqlType::Uuid,
        Scalar::Unknown | Scalar::Text | Scalar::Bpchar | Scalar::Interval => SqlType::Text,
    }
}

/// A value as the column has it; `None` for a number that has no place there.
pub(crate) fn value(datum: &Datum, ty: SqlType) -> Option<Value> {
    Some(match (datum, ty) {
        (Datum::Value(Value::Decimal(number)), SqlType::Decimal { precision, scale }) => {
            Value::Decimal(number.rescale(scale).filter(|number| number.fits(precision))?)
        }
        (Datum::Value(value), SqlType::Text) if !matches!(value, Value::Text(_)) => {
            text_of(datum).map_or(Value::Null, Value::Text)
        }
        (Datum::Value(value), _) => value.clone(),
        (other, _) => text_of(other).map_or(Value::Null, Value::Text),
    })
}

/// The numbers of a column have no type in common.
pub(crate) fn too_wide(column: &str, ty: SqlType) -> SqlError {
    let scale = if let SqlType::Decimal { scale, .. } = ty { scale } else { 0 };
    let message = format!("the numbers of column \"{column}\" do not fit in one type");
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        .with_detail(format!(
            "With {scale} digits after the point, which one of them has, another has more than {} digits.",
            SqlType::MAX_DECIMAL_PRECISION
        ))
        .with_hint("Round the column.")
}
