//! Collects the rows that pass from chunks of which few do, column by column.
//!
//! Responsible for: fixed-width columns, read at the rows wanted and nowhere else. Not responsible
//! for: other columns, and chunks of which most rows pass (Arrow's filter kernels and
//! `BatchCoalescer` serve these). One allocation a column and batch.

use std::sync::Arc;

use albireo_base::ColumnId;
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, NullBufferBuilder, RecordBatch, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::Result;

use crate::errors::{external, internal};
use crate::relation::ChunkData;

/// One row in this many at most passes where gathering is worth it.
const SPARSE: usize = 4;

/// Whether gathering is the better way to read `selected` of `slots` rows.
pub(super) fn is_sparse(selected: usize, slots: usize) -> bool {
    selected * SPARSE <= slots
}

/// The values of a column gathered so far.
enum Values {
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    /// Decimals, 64 bits wide in the storage.
    Wide(Vec<i128>),
}

struct Column {
    id: ColumnId,
    ty: DataType,
    values: Values,
    nulls: NullBufferBuilder,
}

/// The rows gathered so far.
pub(super) struct Gatherer {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    batch_rows: usize,
    /// The rows wanted of the chunk at hand; kept for its memory.
    selected: Vec<u32>,
}

impl Gatherer {
    /// A gatherer of these columns. `None`: one of them has no fixed width, or there are none.
    pub(super) fn new(projection: &[ColumnId], schema: &SchemaRef, batch_rows: usize) -> Option<Self> {
        let column = |(id, field): (&ColumnId, &arrow::datatypes::FieldRef)| {
            let ty = field.data_type().clone();
            let values = empty(&ty)?;
            Some(Column { id: *id, ty, values, nulls: NullBufferBuilder::new(0) })
        };
        let columns: Option<Vec<Column>> = projection.iter().zip(schema.fields()).map(column).collect();
        let columns = columns.filter(|columns| !columns.is_empty())?;
        Some(Self { schema: Arc::clone(schema), columns, rows: 0, batch_rows, selected: Vec::new() })
    }

    /// Rows gathered since the last batch.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of a chunk that have their bit in `mask`.
    pub(super) fn push(&mut self, chunk: &dyn ChunkData, mask: &BooleanBuffer) -> Result<()> {
        self.selected.clear();
        self.selected.extend(mask.set_indices().map(|i| i as u32));
        for column in &mut self.columns {
            column.push(chunk, &self.selected, self.batch_rows)?;
        }
        self.rows += self.selected.len();
        Ok(())
    }

    /// The rows gathered, as a batch; `None` when there are none.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let rows = std::mem::take(&mut self.rows);
        let columns: Result<Vec<ArrayRef>> = self.columns.iter_mut().map(|c| c.take(rows)).collect();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns?)?))
    }
}

fn empty(ty: &DataType) -> Option<Values> {
    Some(match ty {
        DataType::Int16 => Values::I16(Vec::new()),
        DataType::Int32 | DataType::Date32 => Values::I32(Vec::new()),
        DataType::Int64 | DataType::Time64(TimeUnit::Microsecond) => Values::I64(Vec::new()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Values::I64(Vec::new()),
        DataType::Decimal128(precision, _) if *precision <= 18 => Values::Wide(Vec::new()),
        _ => return None,
    })
}

impl Column {
    fn push(&mut self, chunk: &dyn ChunkData, rows: &[u32], batch_rows: usize) -> Result<()> {
        let nulls = match &mut self.values {
            Values::I16(values) => {
                let array = chunk.column(self.id);
                extend(values, array.as_primitive::<Int16Type>().values(), rows, batch_rows);
                array.nulls().cloned()
            }
            Values::I32(values) => {
                let array = chunk.column(self.id);
                let source = match self.ty {
                    DataType::Date32 => array.as_primitive::<Date32Type>().values(),
                    _ => array.as_primitive::<Int32Type>().values(),
                };
                extend(values, source, rows, batch_rows);
                array.nulls().cloned()
            }
            Values::I64(values) => {
                let array = chunk.column(self.id);
                let source = match self.ty {
                    DataType::Int64 => array.as_primitive::<Int64Type>().values(),
                    DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().values(),
                    _ => array.as_primitive::<TimestampMicrosecondType>().values(),
                };
                extend(values, source, rows, batch_rows);
                array.nulls().cloned()
            }
            Values::Wide(values) => {
                let raw = chunk.raw_i64(self.id);
                let raw = raw.ok_or_else(|| external(internal("a short decimal is not kept in 64 bits")))?;
                reserve(values, rows.len(), batch_rows);
                values.extend(rows.iter().map(|&row| i128::from(raw[row as usize])));
                chunk.raw_nulls(self.id)
            }
        };
        match nulls {
            Some(nulls) => rows.iter().for_each(|&row| self.nulls.append(nulls.is_valid(row as usize))),
            None => self.nulls.append_n_non_nulls(rows.len()),
        }
        Ok(())
    }

    fn take(&mut self, rows: usize) -> Result<ArrayRef> {
        let buffer = match &mut self.values {
            Values::I16(values) => Buffer::from_vec(std::mem::take(values)),
            Values::I32(values) => Buffer::from_vec(std::mem::take(values)),
            Values::I64(values) => Buffer::from_vec(std::mem::take(values)),
            Values::Wide(values) => Buffer::from_vec(std::mem::take(values)),
        };
        let nulls: Option<NullBuffer> = self.nulls.finish();
        let data = ArrayData::builder(self.ty.clone()).len(rows).add_buffer(buffer).nulls(nulls).build()?;
        Ok(make_array(data))
    }
}

/// Makes room for a batch at once.
fn reserve<T>(values: &mut Vec<T>, more: usize, batch_rows: usize) {
    if values.capacity() == 0 {
        values.reserve(batch_rows.max(more) + more);
    }
}

fn extend<T: Copy>(values: &mut Vec<T>, source: &[T], rows: &[u32], batch_rows: usize) {
    reserve(values, rows.len(), batch_rows);
    values.extend(rows.iter().map(|&row| source[row as usize]));
}
