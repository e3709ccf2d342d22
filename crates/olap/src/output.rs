//! Results leave the engine in one Arrow type for each SQL type and in memory of their own.
//!
//! **Invariant:** no buffer of a result points into a snapshot's blocks, so keeping a result
//! never keeps a snapshot.

use std::sync::Arc;

use albireo_base::{SqlError, SqlType};
use albireo_semantics::expr::text_of;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, Decimal128Array, MutableArrayData, RecordBatch,
    RecordBatchOptions, StringViewArray, StringViewBuilder, make_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::errors::from_arrow;
use crate::values::datum_at;
use crate::values::numeric::{OPEN, decode};

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputColumn {
    /// Its name; names need not be unique.
    pub name: String,
    /// Its SQL type; `None` for what SQL has no type for here. Intervals are given as text.
    pub ty: Option<SqlType>,
    /// The Arrow type of its values.
    pub arrow: DataType,
}

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

/// What a column of NUMERIC of any scale is before its values are known.
pub(crate) const OPEN_RESULT: DataType = DataType::Decimal128(38, 16);

/// A whole result while it is collected.
pub(crate) struct Collector {
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// The columns whose type is known only at the end; if there are any, batches are until then as the plan gave
    /// them.
    open: Vec<usize>,
}

impl Collector {
    /// For batches of a plan with this schema.
    pub(crate) fn new(columns: &[OutputColumn], plan: &SchemaRef) -> Self {
        let open = (0..).zip(plan.fields()).filter(|(_, field)| *field.data_type() == OPEN);
        let open = open.map(|(at, _)| at).collect();
        Self { columns: columns.to_vec(), schema: schema_of(columns), batches: Vec::new(), open }
    }

    /// Takes a batch in.
    ///
    /// # Errors
    /// As [`finish`].
    pub(crate) fn add(&mut self, batch: RecordBatch) -> Result<(), SqlError> {
        if batch.num_rows() > 0 {
            self.batches.push(if self.open.is_empty() { finish(&batch, &self.schema)? } else { batch });
        }
        Ok(())
    }

    /// The result.
    ///
    /// # Errors
    /// As [`finish`].
    pub(crate) fn finish(mut self) -> Result<Self, SqlError> {
        if !self.open.is_empty() {
            settle(&mut self.columns, &self.batches, &self.open);
            self.schema = schema_of(&self.columns);
            let batches = std::mem::take(&mut self.batches);
            self.batches =
                batches.iter().map(|batch| finish(batch, &self.schema)).collect::<Result<_, _>>()?;
        }
        Ok(self)
    }
}

/// Gives columns of NUMERIC of any scale that of their values; where these differ, they are texts, which keep
/// each value's digits.
fn settle(columns: &mut [OutputColumn], batches: &[RecordBatch], open: &[usize]) {
    for &at in open {
        let column = &mut columns[at];
        let mut scale: Option<(u8, u8)> = None;
        for array in batches.iter().map(|batch| batch.column(at)) {
            for bytes in array.as_fixed_size_binary().iter().flatten() {
                let (least, most) = scale.unwrap_or((u8::MAX, 0));
                let of = decode(bytes).scale;
                scale = Some((least.min(of), most.max(of)));
            }
        }
        let (least, most) = scale.unwrap_or((0, 0));
        column.ty = Some(SqlType::Decimal { precision: 38, scale: most });
        column.arrow = match least == most {
            true => DataType::Decimal128(38, most as i8),
            false => DataType::Utf8View,
        };
    }
}

fn decimals(column: &ArrayRef, scale: i8) -> Result<ArrayRef, SqlError> {
    let rescaled = |bytes: &[u8]| {
        let number = decode(bytes).rescale(u8::try_from(scale).unwrap_or(0));
        let fitting = number.filter(|number| number.fits(38));
        fitting.map(|number| number.unscaled).ok_or_else(|| crate::errors::out_of_range("numeric"))
    };
    let values = column.as_fixed_size_binary().iter().map(|value| value.map(rescaled).transpose());
    let array: Decimal128Array = values.collect::<Result<_, _>>()?;
    Ok(Arc::new(array.with_precision_and_scale(38, scale).map_err(|e| from_arrow(&e))?))
}

fn own(column: &ArrayRef, ty: &DataType) -> Result<ArrayRef, SqlError> {
    if let (true, DataType::Utf8View) = (*column.data_type() == OPEN, ty) {
        let values = column.as_fixed_size_binary().iter();
        let texts = values.map(|value| value.map(|bytes| decode(bytes).to_string()));
        return Ok(Arc::new(texts.collect::<StringViewArray>()));
    }
    if let (true, DataType::Decimal128(_, scale)) = (*column.data_type() == OPEN, ty) {
        return decimals(column, *scale);
    }
    let is_text = column.data_type().is_nested() || matches!(column.data_type(), DataType::Interval(_));
    if is_text && *ty == DataType::Utf8View {
        let text = |row| datum_at(column.as_ref(), row).map(|datum| text_of(&datum));
        let texts = (0..column.len()).map(text).collect::<Result<StringViewArray, SqlError>>()?;
        return Ok(Arc::new(texts));
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
