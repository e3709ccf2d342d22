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
use albireo_base::ids::CHUNK_ROWS;
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

/// One row in this many at most is told by its number, which all columns share.
const FEW_ROWS: usize = 64;
// Numbers of rows in a chunk have 16 bits.
const _: () = assert!(CHUNK_ROWS <= 1 << 16);

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
    /// As `runs`: single rows, where they are few.
    numbers: Vec<u16>,
    /// As `runs`, of a column that is encoded so.
    masked_runs: encoding::MaskedRuns,
    /// As `runs`: which rows differ from the one before, and where they do.
    begins: Vec<u8>,
    starts: Vec<u32>,
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
        Some(Self {
            schema: Arc::clone(schema),
            columns,
            rows: 0,
            batch_rows,
            runs: Vec::new(),
            numbers: Vec::new(),
            masked_runs: encoding::MaskedRuns::default(),
            begins: Vec::new(),
            starts: Vec::new(),
        })
    }

    /// Rows gathered since the last batch.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the rows of a chunk that have their bit in `mask`, `selected` in number. `sums` are columns that are summed as
    /// long as all others stay equal from row to row: then these rows become one, and no column has NULLs. Returns how many
    /// rows there are more.
    pub(super) fn push(
        &mut self,
        chunk: &dyn ChunkData,
        mask: &BooleanBuffer,
        selected: usize,
        sums: &[usize],
    ) -> Result<usize> {
        let encoded: Vec<_> = self.columns.iter().map(|column| chunk.encoded(column.id)).collect();
        self.runs.clear();
        if encoded.iter().any(Option::is_none) {
            self.runs.extend(mask.set_slices().map(|(start, end)| start..end));
        }
        let wanted = Wanted { runs: &self.runs, rows: selected, batch_rows: self.batch_rows };
        let words = codes::words(mask);
        let rows = match selected * FEW_ROWS <= chunk.slots() {
            true => {
                self.numbers.clear();
                self.numbers.extend(mask.set_indices().map(|row| row as u16));
                encoding::Selection::Rows(&self.numbers)
            }
            false => encoding::Selection::Mask(&words),
        };
        for (column, encoded) in self.columns.iter_mut().zip(encoded) {
            match encoded {
                Some(encoded) => column.push_decoded(&*encoded, &rows, &wanted),
                None => column.push(chunk, &wanted)?,
            }
        }
        if sums.is_empty() {
            self.rows += selected;
            return Ok(selected);
        }
        Ok(self.combine(selected, sums))
    }

    /// Makes one row of each run of rows that differ in the columns `sums` alone, of the last `rows` rows, which become
    /// part of those gathered; returns how many these are.
    fn combine(&mut self, rows: usize, sums: &[usize]) -> usize {
        let (first, starts) = (self.rows, &mut self.starts);
        self.begins.clear();
        self.begins.resize(rows, 0);
        let is_sum = |index: &usize| sums.contains(index);
        for (_, column) in self.columns.iter().enumerate().filter(|(index, _)| !is_sum(index)) {
            column.values.note_changes(first, &mut self.begins);
        }
        starts.clear();
        starts.resize(rows + 1, 0);
        let mut count = 0;
        for (row, begins) in self.begins.iter().enumerate() {
            starts[count] = row as u32;
            count += usize::from(*begins != 0 || row == 0);
        }
        starts.truncate(count);
        for (index, column) in self.columns.iter_mut().enumerate() {
            if is_sum(&index) {
                column.values.sum_runs(first, starts);
            } else {
                column.values.pick(first, starts);
            }
            column.nulls.truncate(first + count);
        }
        self.rows += count;
        count
    }

    /// The rows gathered last, so many, by themselves. All columns are NOT NULL.
    pub(super) fn tail(&self, rows: usize) -> Selection {
        let first = self.rows - rows;
        Selection { columns: self.columns.iter().map(|column| column.values.tail(first)).collect(), rows }
    }

    /// What [`Gatherer::push`] would add of a chunk, added up on codes, and not added. `None`: the columns beside
    /// `sums` are not one in runs.
    pub(super) fn sums_of_runs(
        &mut self,
        chunk: &dyn ChunkData,
        mask: Option<&BooleanBuffer>,
        sums: &[usize],
    ) -> Option<Selection> {
        let words = mask.map_or_else(|| codes::all(chunk.slots()), codes::words);
        let mut keys = (0..self.columns.len()).filter(|index| !sums.contains(index));
        let (Some(key), None) = (keys.next(), keys.next()) else { return None };
        let runs = &mut self.masked_runs;
        if !chunk.encoded(self.columns[key].id)?.masked_runs(&words, runs) {
            return None;
        }
        let mut values = |index: usize| {
            if index == key {
                return self.columns[key].values.of_integers(runs.keys());
            }
            let mut sums = Vec::with_capacity(runs.keys().len());
            let is_added = chunk.encoded(self.columns[index].id)?.sum_by_runs(runs, &words, &mut sums);
            is_added.then_some(Values::Wide(sums))
        };
        let columns = (0..self.columns.len()).map(&mut values).collect::<Option<_>>()?;
        Some(Selection { columns, rows: runs.keys().len() })
    }

    /// Adds rows that were gathered before, of the same columns, all NOT NULL.
    pub(super) fn add(&mut self, rows: &Selection) {
        for (column, values) in self.columns.iter_mut().zip(&rows.columns) {
            column.values.append(values, self.batch_rows);
            column.nulls.append_n_non_nulls(rows.rows);
        }
        self.rows += rows.rows;
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

    /// These integers, which are values of the same kind; `None`: they are kept as others.
    fn of_integers(&self, integers: &[i64]) -> Option<Self> {
        match self {
            Self::I16(_) => Some(Self::I16(integers.iter().map(|value| *value as i16).collect())),
            Self::I32(_) => Some(Self::I32(integers.iter().map(|value| *value as i32).collect())),
            Self::I64(_) => Some(Self::I64(integers.to_vec())),
            Self::Wide(_) => Some(Self::Wide(integers.iter().copied().map(i128::from).collect())),
        }
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

    /// Notes each of the rows from `first` on that has another value than the one before.
    fn note_changes(&self, first: usize, notes: &mut [u8]) {
        fn note<T: PartialEq>(values: &[T], notes: &mut [u8]) {
            for (note, [before, value]) in notes.iter_mut().skip(1).zip(values.array_windows()) {
                *note |= u8::from(value != before);
            }
        }
        with_vector!(self, v => note(&v[first..], notes));
    }

    /// Keeps of the rows from `first` on these, numbered from there.
    fn pick(&mut self, first: usize, rows: &[u32]) {
        fn pick<T: Copy>(values: &mut Vec<T>, first: usize, rows: &[u32]) {
            let tail = &mut values[first..];
            // They ascend, so that what is read was not written to.
            rows.iter().enumerate().for_each(|(to, from)| tail[to] = tail[*from as usize]);
            values.truncate(first + rows.len());
        }
        with_vector!(self, v => pick(v, first, rows));
    }

    /// Makes of the rows from `first` on one value, the sum, of each run that starts at one of `starts`, numbered from there.
    fn sum_runs(&mut self, first: usize, starts: &[u32]) {
        let Self::Wide(v) = self else { unreachable!("only decimals are summed") };
        let tail = &mut v[first..];
        let end = tail.len() as u32;
        for (to, start) in starts.iter().enumerate() {
            let rows = *start as usize..starts.get(to + 1).copied().unwrap_or(end) as usize;
            tail[to] = tail[rows].iter().sum();
        }
        v.truncate(first + starts.len());
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
