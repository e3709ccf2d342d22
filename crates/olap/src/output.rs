//! Results leave the engine in one Arrow type for each SQL type and in memory of their own.
//!
//! **Invariant:** no buffer of a result points into a snapshot's blocks, so keeping a result
//! never keeps a snapshot.

use std::sync::Arc;

use albireo_base::SqlError;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, MutableArrayData, RecordBatch, RecordBatchOptions,
    StringViewBuilder, make_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::errors::from_arrow;
use crate::prepare::OutputColumn;

/// The Arrow schema of a result.
pub(crate) fn schema_of(columns: &[OutputColumn]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|c| Field::new(&c.name, c.arrow.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

/// Converts a batch of the plan's output into one of the result.
///
/// # Errors
/// A value does not fit the SQL type its column is delivered in.
pub(crate) fn finish(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
    let columns: Result<Vec<ArrayRef>, SqlError> = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| own(column, field.data_type()))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns?, &options).map_err(|e| from_arrow(&e))
}

fn own(column: &ArrayRef, ty: &DataType) -> Result<ArrayRef, SqlError> {
    if matches!(column.data_type(), DataType::Interval(_) | DataType::Duration(_))
        && *ty == DataType::Utf8View
    {
        return crate::functions::casts::interval_texts(column);
    }
    if column.data_type() != ty {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let converted = cast_with_options(column, ty, &options).map_err(|e| from_arrow(&e))?;
        return copy(&converted).map_err(|e| from_arrow(&e));
    }
    copy(column).map_err(|e| from_arrow(&e))
}

/// A copy that shares no memory with its source.
fn copy(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Utf8View => {
            let mut builder = StringViewBuilder::with_capacity(column.len());
            builder.extend(column.as_string_view().iter());
            Arc::new(builder.finish())
        }
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::with_capacity(column.len());
            builder.extend(column.as_binary_view().iter());
            Arc::new(builder.finish())
        }
        _ => {
            let data = column.to_data();
            let mut copy = MutableArrayData::new(vec![&data], false, column.len());
            copy.try_extend(0, 0, column.len())?;
            make_array(copy.freeze())
        }
    })
}
