//! Collects the rows that pass from chunks of which few do, column by column.
//!
//! Responsible for: fixed-width columns, read at the rows wanted and nowhere else. Not responsible
//! for: other columns, and chunks of which most rows pass (Arrow's filter kernels and
//! `BatchCoalescer` serve these). One allocation a column and batch.
//!
//! What is wanted lies far apart, so gathering is waiting for memory: 70 ns a run of rows, one after
//! the other, was 40 % of the top-10 query. Rows that belong together were inserted together: the lines
//! of an order are ten in a row. So runs are copied, not rows, and each column is read at the ends of
//! all runs first, which has many cache misses under way at once.

use std::ops::Range;
use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding as encoding;
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, NullBufferBuilder, RecordBatch, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::Result;

use super::codes;
use crate::errors::{external, internal};
use crate::relation::{ChunkData, EncodedColumn, Integers};

/// One row in this many at most passes where gathering is worth it.
const SPARSE: usize = 4;

/// Whether gathering is the better way to read `selected` of `slots` rows.
pub(super) fn is_sparse(selected: usize, slots: usize) -> bool {
    selected * SPARSE <= slots
}

/// The values of a column gathered so far.
#[derive(Clone, Debug)]
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
    /// The runs of rows wanted of the chunk at hand; kept for its memory.
    runs: Vec<Range<usize>>,
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
        Some(Self { schema: Arc::clone(schema), columns, rows: 0, batch_rows, runs: Vec::new() })
    }

    /// Rows gathered since the last batch.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of a chunk that have their bit in `mask`, `selected` in number.
    pub(super) fn push(
        &mut self,
        chunk: &dyn ChunkData,
        mask: &BooleanBuffer,
        selected: usize,
    ) -> Result<()> {
        let encoded: Vec<_> = self.columns.iter().map(|column| chunk.encoded(column.id)).collect();
        self.runs.clear();
        if encoded.iter().any(Option::is_none) {
            self.runs.extend(mask.set_slices().map(|(start, end)| start..end));
        }
        let wanted = Wanted { runs: &self.runs, rows: selected, batch_rows: self.batch_rows };
        let words = codes::words(mask);
        for (column, encoded) in self.columns.iter_mut().zip(encoded) {
            match encoded {
                Some(encoded) => column.push_decoded(&*encoded, &encoding::Selection::Mask(&words), &wanted),
                None => column.push(chunk, &wanted)?,
            }
        }
        self.rows += selected;
        Ok(())
    }

    /// As [`Gatherer::push`]; also gives the rows added. `sums` are columns that are summed as long as all
    /// others stay equal from row to row: then these rows become one. All columns are NOT NULL.
    pub(super) fn push_apart(
        &mut self,
        chunk: &dyn ChunkData,
        mask: &BooleanBuffer,
        selected: usize,
        sums: &[usize],
    ) -> Result<Selection> {
        let first = self.rows;
        self.push(chunk, mask, selected)?;
        let columns = self.columns.iter().map(|column| column.values.tail(first)).collect();
        let mut rows = Selection { columns, rows: selected };
        if !sums.is_empty() {
            rows.combine(sums);
            self.truncate(first);
            self.add(&rows);
        }
        Ok(rows)
    }

    /// Adds rows that were gathered before, of the same columns, all NOT NULL.
    pub(super) fn add(&mut self, rows: &Selection) {
        for (column, values) in self.columns.iter_mut().zip(&rows.columns) {
            column.values.append(values, self.batch_rows);
            column.nulls.append_n_non_nulls(rows.rows);
        }
        self.rows += rows.rows;
    }

    fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.values.truncate(rows);
            column.nulls.truncate(rows);
        }
        self.rows = rows;
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

/// Rows of NOT NULL columns, by themselves.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    columns: Vec<Values>,
    rows: usize,
}

impl Selection {
    /// No rows.
    pub(super) fn none() -> Self {
        Self { columns: Vec::new(), rows: 0 }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.columns.iter().map(Values::bytes).sum::<usize>()
    }

    /// Makes one row of each run of rows that differ in the columns `sums` alone.
    fn combine(&mut self, sums: &[usize]) {
        let is_sum = |index: &usize| sums.contains(index);
        let groups: Vec<&Values> =
            (0..self.columns.len()).filter(|i| !is_sum(i)).map(|i| &self.columns[i]).collect();
        let begins = |&row: &usize| row == 0 || groups.iter().any(|column| column.changes_at(row));
        let starts: Vec<usize> = (0..self.rows).filter(begins).collect();
        for (index, column) in self.columns.iter_mut().enumerate() {
            if is_sum(&index) { column.sum_runs(&starts) } else { column.pick(&starts) }
        }
        self.rows = starts.len();
    }
}

/// Does the same with the vector of any kind.
macro_rules! with_vector {
    ($values:expr, $vector:ident => $body:expr) => {
        match $values {
            Values::I16($vector) => $body,
            Values::I32($vector) => $body,
            Values::I64($vector) => $body,
            Values::Wide($vector) => $body,
        }
    };
}

impl Values {
    fn bytes(&self) -> usize {
        size_of::<Self>() + with_vector!(self, v => size_of_val(v.as_slice()))
    }

    fn truncate(&mut self, rows: usize) {
        with_vector!(self, v => v.truncate(rows));
    }

    /// A copy of the values from row `first` on.
    fn tail(&self, first: usize) -> Self {
        match self {
            Self::I16(v) => Self::I16(v[first..].to_vec()),
            Self::I32(v) => Self::I32(v[first..].to_vec()),
            Self::I64(v) => Self::I64(v[first..].to_vec()),
            Self::Wide(v) => Self::Wide(v[first..].to_vec()),
        }
    }

    /// Appends values of the same kind.
    fn append(&mut self, more: &Self, batch_rows: usize) {
        with_vector!(self, v => if v.capacity() == 0 { v.reserve(batch_rows) });
        match (self, more) {
            (Self::I16(v), Self::I16(more)) => v.extend_from_slice(more),
            (Self::I32(v), Self::I32(more)) => v.extend_from_slice(more),
            (Self::I64(v), Self::I64(more)) => v.extend_from_slice(more),
            (Self::Wide(v), Self::Wide(more)) => v.extend_from_slice(more),
            _ => unreachable!("a scan's columns keep their types"),
        }
    }

    /// Whether a row has another value than the one before.
    fn changes_at(&self, row: usize) -> bool {
        with_vector!(self, v => v[row] != v[row - 1])
    }

    /// Keeps these rows.
    fn pick(&mut self, rows: &[usize]) {
        with_vector!(self, v => *v = rows.iter().map(|&row| v[row]).collect());
    }

    /// Makes one value, the sum, of each run that starts at one of `starts`.
    fn sum_runs(&mut self, starts: &[usize]) {
        let Self::Wide(v) = self else { unreachable!("only decimals are summed") };
        let ends = starts.iter().skip(1).copied().chain([v.len()]);
        *v = starts.iter().zip(ends).map(|(&start, end)| v[start..end].iter().sum()).collect();
    }
}

/// The rows wanted of one chunk.
struct Wanted<'a> {
    runs: &'a [Range<usize>],
    /// Their number.
    rows: usize,
    batch_rows: usize,
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
    fn push_decoded(
        &mut self,
        encoded: &dyn EncodedColumn,
        rows: &encoding::Selection<'_>,
        wanted: &Wanted<'_>,
    ) {
        with_vector!(&mut self.values, values => wanted.make_room(values));
        encoded.append(
            rows,
            match &mut self.values {
                Values::I16(values) => Integers::I16(values),
                Values::I32(values) => Integers::I32(values),
                Values::I64(values) => Integers::I64(values),
                Values::Wide(values) => Integers::I128(values),
            },
        );
        match encoded.nulls(rows) {
            Some(nulls) => self.nulls.append_buffer(&nulls),
            None => self.nulls.append_n_non_nulls(wanted.rows),
        }
    }

    fn push(&mut self, chunk: &dyn ChunkData, wanted: &Wanted<'_>) -> Result<()> {
        let nulls = match &mut self.values {
            Values::I16(values) => {
                let array = chunk.column(self.id);
                wanted.append(values, array.as_primitive::<Int16Type>().values());
                array.nulls().cloned()
            }
            Values::I32(values) => {
                let array = chunk.column(self.id);
                let source = match self.ty {
                    DataType::Date32 => array.as_primitive::<Date32Type>().values(),
                    _ => array.as_primitive::<Int32Type>().values(),
                };
                wanted.append(values, source);
                array.nulls().cloned()
            }
            Values::I64(values) => {
                let array = chunk.column(self.id);
                let source = match self.ty {
                    DataType::Int64 => array.as_primitive::<Int64Type>().values(),
                    DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().values(),
                    _ => array.as_primitive::<TimestampMicrosecondType>().values(),
                };
                wanted.append(values, source);
                array.nulls().cloned()
            }
            Values::Wide(values) => {
                let raw = chunk.raw_i64(self.id);
                let raw = raw.ok_or_else(|| external(internal("a short decimal is not kept in 64 bits")))?;
                wanted.append_mapped(values, &raw, i128::from);
                chunk.raw_nulls(self.id)
            }
        };
        match nulls {
            Some(nulls) => {
                let rows = wanted.runs.iter().cloned().flatten();
                rows.for_each(|row| self.nulls.append(nulls.is_valid(row)));
            }
            None => self.nulls.append_n_non_nulls(wanted.rows),
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

impl Wanted<'_> {
    /// Appends the wanted ones of a chunk's values.
    fn append<T: Copy>(&self, values: &mut Vec<T>, source: &[T]) {
        self.prepare(values, source);
        self.runs.iter().for_each(|run| values.extend_from_slice(&source[run.clone()]));
    }

    /// The same, each of them mapped.
    fn append_mapped<S: Copy, T>(&self, values: &mut Vec<T>, source: &[S], map: impl Fn(S) -> T + Copy) {
        self.prepare(values, source);
        self.runs.iter().for_each(|run| values.extend(source[run.clone()].iter().map(|&value| map(value))));
    }

    /// Makes room for a batch at once.
    fn make_room<T>(&self, values: &mut Vec<T>) {
        if values.capacity() == 0 {
            values.reserve(self.batch_rows.max(self.rows) + self.rows);
        }
    }

    /// Makes room, and has the processor fetch what will be read: loads that wait
    /// for no other.
    fn prepare<S: Copy, T>(&self, values: &mut Vec<T>, source: &[S]) {
        self.make_room(values);
        for run in self.runs {
            std::hint::black_box((source[run.start], source[run.end - 1]));
        }
    }
}
