//! Filling an empty table that nobody reads yet with batches of rows, and building its indexes after.
//!
//! Responsible for: the way from Arrow arrays into blocks, column by column, and all that a damaged or
//! foreign file could break: types, NULLs, lengths, digits, uniqueness, the rows' partition. Not
//! responsible for: where batches come from (`archive`); CHECK constraints, which the rows met when they
//! were written and which see one row at a time.
//!
//! There is no undo: what fails is loaded again, from the beginning, into another table.
//!
//! - I-1 Until [`Loader::finish`] no one but the loader sees the table, so it may have rows that stand in no
//!   index.
//! - I-2 Rows that are loaded lie in slots `0..n` in the order in which they came.
//!
//! A batch is taken in pieces of [`PIECE_ROWS`]: what all columns of a piece need fits the second-level
//! cache, also where the columns of a row lie together. Paper: Kemper and Neumann, HyPer, 2010, §4.7 (an
//! archive is loaded in its entirety, then the log is applied).

use albireo_base::{ColumnId, Decimal, IndexId, SqlType, StatementProgress, TableId, Tid, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::indexes::TableIndex;
use super::{Placement, Table, TableError};
use crate::column::{Fixed, Sealed, TextLimit};
use crate::layout::{ColumnLocation, Physical};
use crate::rows::{MAX_TEXT_BYTES, Rows, Strip};

/// Rows whose columns are written one after another.
const PIECE_ROWS: usize = 256;

/// A table being loaded. Dropped, or after an error, the table is gone.
pub struct Loader {
    table: Table,
    indexes: Vec<State>,
    /// The first failure of [`Loader::append`]: the table lacks rows.
    failed: Option<TableError>,
}

/// An index of a table that is being loaded.
#[derive(Clone, Copy)]
enum State {
    Empty,
    Built,
    Failed(TableError),
}

/// Building one index of a loaded table. Several run at once on several threads.
pub struct IndexBuild<'t> {
    table: TableId,
    id: IndexId,
    rows: &'t Rows,
    index: &'t mut TableIndex,
    state: &'t mut State,
}

/// Some rows of a batch and where they go.
#[derive(Clone, Copy)]
struct Piece {
    /// In the batch.
    start: usize,
    first: Tid,
    count: usize,
}

impl Loader {
    /// Begins to load `table`, which must be empty.
    ///
    /// # Panics
    /// The table has, or had, rows.
    pub fn new(table: Table) -> Self {
        assert!(table.rows.slots == 0, "only a table that never had a row is loaded");
        let indexes = vec![State::Empty; table.indexes.len()];
        Self { table, indexes, failed: None }
    }

    /// The table's shape.
    pub fn spec(&self) -> &super::TableSpec {
        &self.table.spec
    }

    /// Rows so far.
    pub fn row_count(&self) -> u64 {
        self.table.row_count()
    }

    /// Adds the rows of a batch: the table's columns in order, with the types of [`crate::arrow_type`], or
    /// texts as `Utf8` and byte strings as `Binary`; names do not matter.
    ///
    /// # Errors
    /// The batch does not fit the table, or there is no memory; [`Loader::finish`] then says so again.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        assert!(self.indexes.iter().all(|state| matches!(state, State::Empty)), "rows come before indexes");
        let done = self.table.load(batch);
        self.failed = done.err();
        done
    }

    /// The indexes that are still to be built: nothing can be appended afterwards. Each is built by
    /// [`IndexBuild::run`], on any thread.
    pub fn index_builds(&mut self) -> Vec<IndexBuild<'_>> {
        let Table { spec, rows, indexes, .. } = &mut self.table;
        let (table, rows) = (spec.id, &*rows);
        let all = indexes.iter_mut().zip(&mut self.indexes).enumerate();
        all.filter(|(_, (_, state))| matches!(state, State::Empty))
            .map(|(id, (index, state))| IndexBuild { table, id: IndexId(id as u16), rows, index, state })
            .collect()
    }

    /// Builds what indexes are not built yet, and gives the table.
    ///
    /// # Errors
    /// What failed before, a key that is there twice, no memory.
    pub fn finish(mut self) -> Result<Table, TableError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        for build in self.index_builds() {
            build.run()?;
        }
        match self
            .indexes
            .iter()
            .find_map(|state| if let State::Failed(error) = state { Some(*error) } else { None })
        {
            Some(error) => Err(error),
            None => Ok(self.table),
        }
    }
}

impl IndexBuild<'_> {
    /// The index's position.
    pub fn index(&self) -> IndexId {
        self.id
    }

    /// Puts all rows in.
    ///
    /// # Errors
    /// A key is there twice, or there is no memory; [`Loader::finish`] then says so again.
    pub fn run(self) -> Result<(), TableError> {
        let done = self.index.build(self.rows, &StatementProgress::default());
        let done = done.map_err(|failure| failure.in_index(self.table, self.id));
        *self.state = done.map_or_else(State::Failed, |()| State::Built);
        done
    }
}

impl Table {
    fn load(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.check_shape(batch)?;
        self.check_places(batch)?;
        let mut start = 0;
        while start < batch.num_rows() {
            let (first, room) = self.rows.room()?;
            // Up to a multiple, so that the pieces that follow begin blocks.
            let count = (PIECE_ROWS - first.slot() % PIECE_ROWS).min(room).min(batch.num_rows() - start);
            let piece = Piece { start, first, count };
            for column in 0..self.columns {
                self.load_column(column, batch.column(column), piece)?;
            }
            self.rows.publish_next(count);
            start += count;
        }
        Ok(())
    }

    /// Checks number and types of the columns, and NULLs.
    fn check_shape(&self, batch: &RecordBatch) -> Result<(), TableError> {
        let table = self.spec.id;
        if batch.num_columns() != self.columns {
            let column = ColumnId(batch.num_columns().min(self.columns) as u16);
            return Err(TableError::WrongType { table, column });
        }
        for (index, (spec, array)) in self.spec.columns.iter().zip(batch.columns()).enumerate() {
            let column = ColumnId(index as u16);
            let suits = match (crate::arrow_type(spec.ty), array.data_type()) {
                (DataType::Utf8View, DataType::Utf8) | (DataType::BinaryView, DataType::Binary) => true,
                (wanted, found) => wanted == *found,
            };
            if !suits {
                return Err(TableError::WrongType { table, column });
            }
            if !spec.nullable && array.null_count() > 0 {
                return Err(TableError::NotNull { table, column });
            }
        }
        Ok(())
    }

    /// Checks that the rows belong to this partition.
    fn check_places(&self, batch: &RecordBatch) -> Result<(), TableError> {
        let Some(Placement { column, partition, partitions }) = self.placement else { return Ok(()) };
        let ty = self.spec.columns[column.index()].ty;
        let mut last: Option<Value> = None;
        for row in 0..batch.num_rows() {
            let value = value_in(batch.column(column.index()), ty, row);
            // Rows of a kind lie together.
            if last.as_ref() == Some(&value) {
                continue;
            }
            if crate::partition_of(&value, partitions) != partition {
                return Err(TableError::WrongPartition { table: self.spec.id });
            }
            last = Some(value);
        }
        Ok(())
    }

    fn load_column(&mut self, column: usize, array: &ArrayRef, piece: Piece) -> Result<(), TableError> {
        let at = *self.rows.layout.column(ColumnId(column as u16));
        let nulls = array.nulls().map(|nulls| nulls.slice(piece.start, piece.count));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let to = Target { at, piece, nulls: nulls.as_ref() };
        match self.spec.columns[column].ty {
            SqlType::Bool => to.booleans(self, array.as_boolean()),
            SqlType::SmallInt => to.primitives::<Int16Type>(self, array),
            SqlType::Integer => to.primitives::<Int32Type>(self, array),
            SqlType::BigInt => to.primitives::<Int64Type>(self, array),
            SqlType::Real => to.primitives::<Float32Type>(self, array),
            SqlType::Double => to.primitives::<Float64Type>(self, array),
            SqlType::Date => to.primitives::<Date32Type>(self, array),
            SqlType::Time => to.primitives::<Time64MicrosecondType>(self, array),
            SqlType::Timestamp | SqlType::TimestampTz => {
                to.primitives::<TimestampMicrosecondType>(self, array);
            }
            SqlType::Decimal { precision, .. } => to.decimals(self, array.as_primitive(), precision)?,
            SqlType::Uuid => {
                let values = array.as_fixed_size_binary();
                let uuid = |row| <[u8; 16]>::try_from(values.value(row)).expect("16 bytes, by its type");
                to.fixed(self, |rows| rows.map(uuid));
            }
            SqlType::Bytea => match array.data_type() {
                DataType::Binary => to.byte_strings(self, array.as_binary::<i32>())?,
                _ => to.byte_strings(self, array.as_binary_view())?,
            },
            ty => {
                let limit = TextLimit::of(ty);
                match array.data_type() {
                    DataType::Utf8 => to.strings(self, array.as_string::<i32>(), limit)?,
                    _ => to.strings(self, array.as_string_view(), limit)?,
                }
            }
        }
        if at.nullable() {
            let present = to.nulls.map(NullBuffer::inner);
            self.rows.put_present_bits(piece.first, piece.count, &at, present);
        }
        Ok(())
    }
}

/// The values of one column of a piece.
struct Target<'b> {
    at: ColumnLocation,
    piece: Piece,
    /// Of the piece; `None` without one.
    nulls: Option<&'b NullBuffer>,
}

impl Target<'_> {
    /// The blocks' parts, each with the position of its first row in the piece.
    #[inline(always)]
    fn each_strip(
        &self,
        rows: &mut Rows,
        mut work: impl FnMut(&mut Rows, usize, &Strip) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let mut done = 0;
        while done < self.piece.count {
            let first = Tid(self.piece.first.0 + done as u64);
            let strip = rows.strip(first, self.piece.count - done, &self.at);
            work(rows, done, &strip)?;
            done += strip.count;
        }
        Ok(())
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Values that `values` gives for rows of the batch; zeroes for NULL.
    #[inline(always)]
    fn fixed<T: Fixed, I: ExactSizeIterator<Item = T>>(
        &self,
        table: &mut Table,
        values: impl Fn(std::ops::Range<usize>) -> I,
    ) {
        let done = self.each_strip(&mut table.rows, |_, done, strip| {
            let start = self.piece.start + done;
            strip.fill(self.at.width as usize, values(start..start + strip.count));
            if self.nulls.is_some() {
                let nulls = (0..strip.count).filter(|row| self.is_null(done + row));
                nulls.for_each(|row| strip.clear(row, &self.at));
            }
            Ok(())
        });
        done.expect("writing values of fixed width does not fail");
    }

    fn primitives<P: ArrowPrimitiveType>(&self, table: &mut Table, array: &ArrayRef)
    where
        P::Native: Fixed,
    {
        let values = array.as_primitive::<P>().values();
        self.fixed(table, |rows| values[rows].iter().copied());
    }

    fn booleans(&self, table: &mut Table, array: &BooleanArray) {
        let values = array.values();
        self.fixed(table, |rows| rows.map(|row| values.value(row)));
    }

    fn decimals(
        &self,
        table: &mut Table,
        array: &PrimitiveArray<Decimal128Type>,
        precision: u8,
    ) -> Result<(), TableError> {
        let Piece { start, count, .. } = self.piece;
        let values = &array.values()[..];
        let few = values[start..start + count].iter().all(|value| Sealed::fits(*value, precision));
        // What stands behind a NULL does not matter.
        if !few && (0..count).any(|row| !self.is_null(row) && !Sealed::fits(values[start + row], precision)) {
            return Err(TableError::OutOfRange { table: table.spec.id, column: self.at.column });
        }
        match self.at.physical {
            Physical::I64 => self.fixed(table, |rows| values[rows].iter().map(|&value| value as i64)),
            _ => self.fixed(table, |rows| values[rows].iter().copied()),
        }
        Ok(())
    }

    fn strings<'a>(
        &self,
        table: &mut Table,
        array: impl ArrayAccessor<Item = &'a str>,
        limit: TextLimit,
    ) -> Result<(), TableError> {
        let (id, column) = (table.spec.id, self.at.column);
        self.texts(&mut table.rows, |row| {
            let text = array.value(row);
            limit.fit(text).map(str::as_bytes).map_err(|unfit| unfit.error(id, column, text))
        })
    }

    fn byte_strings<'a>(
        &self,
        table: &mut Table,
        array: impl ArrayAccessor<Item = &'a [u8]>,
    ) -> Result<(), TableError> {
        let (table_id, column) = (table.spec.id, self.at.column);
        self.texts(&mut table.rows, |row| match array.value(row) {
            bytes if bytes.len() <= MAX_TEXT_BYTES => Ok(bytes),
            bytes => Err(TableError::TooLong { table: table_id, column, bytes: bytes.len() }),
        })
    }

    /// What `get` gives for rows of the batch; zeroes for NULL.
    #[inline(always)]
    fn texts<'a>(
        &self,
        rows: &mut Rows,
        get: impl Fn(usize) -> Result<&'a [u8], TableError>,
    ) -> Result<(), TableError> {
        let chunk = self.piece.first.chunk();
        self.each_strip(rows, |rows, done, strip| {
            for row in 0..strip.count {
                if self.is_null(done + row) {
                    strip.clear(row, &self.at);
                    continue;
                }
                let bytes = get(self.piece.start + done + row)?;
                // SAFETY: the place is that of this column's value in a vacant slot of the chunk; blocks
                // do not move when the heap grows, only the list of them may.
                unsafe { rows.put_text(chunk, &self.at, bytes, strip.place(row)) }?;
            }
            Ok(())
        })
    }
}

/// A value of an array of a column of type `ty`, as [`Table::value`] would give it.
fn value_in(array: &ArrayRef, ty: SqlType, row: usize) -> Value {
    fn at<P: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> P::Native {
        array.as_primitive::<P>().value(row)
    }
    if array.is_null(row) {
        return Value::Null;
    }
    match ty {
        SqlType::Bool => Value::Bool(array.as_boolean().value(row)),
        SqlType::SmallInt => Value::SmallInt(at::<Int16Type>(array, row)),
        SqlType::Integer => Value::Integer(at::<Int32Type>(array, row)),
        SqlType::BigInt => Value::BigInt(at::<Int64Type>(array, row)),
        SqlType::Real => Value::Real(at::<Float32Type>(array, row)),
        SqlType::Double => Value::Double(at::<Float64Type>(array, row)),
        SqlType::Decimal { scale, .. } => {
            Value::Decimal(Decimal { unscaled: at::<Decimal128Type>(array, row), scale })
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
            let text = match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().value(row),
                _ => array.as_string_view().value(row),
            };
            // CHAR is stored without trailing blanks, and placed by what is stored.
            let text = if matches!(ty, SqlType::Char(_)) { text.trim_end_matches(' ') } else { text };
            Value::Text(text.to_owned())
        }
        SqlType::Bytea => Value::Bytea(match array.data_type() {
            DataType::Binary => array.as_binary::<i32>().value(row).to_vec(),
            _ => array.as_binary_view().value(row).to_vec(),
        }),
        SqlType::Date => Value::Date(at::<Date32Type>(array, row)),
        SqlType::Time => Value::Time(at::<Time64MicrosecondType>(array, row)),
        SqlType::Timestamp => Value::Timestamp(at::<TimestampMicrosecondType>(array, row)),
        SqlType::TimestampTz => Value::TimestampTz(at::<TimestampMicrosecondType>(array, row)),
        SqlType::Uuid => {
            Value::Uuid(array.as_fixed_size_binary().value(row).try_into().expect("16 bytes, by its type"))
        }
    }
}
