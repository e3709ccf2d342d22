//! From Arrow arrays into the blocks of vacant slots, column by column.
//!
//! Responsible for: writing values, NULLs and texts where they belong, and refusing what does not fit the
//! table: types, NULLs, lengths, digits, the rows' partition; saying which row of a batch is the first that
//! does not fit. Not responsible for: where the slots are (`rows`), uniqueness (`indexes`), who may see the
//! rows (`load`, `staging`).
//!
//! A batch is taken in pieces of [`PIECE_ROWS`]: what all columns of a piece need fits the second-level
//! cache, also where the columns of a row lie together. Faults are looked for row by row only once there is
//! known to be one.

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Decimal, SqlType, Tid, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::{Placement, TableError, TableSpec};
use crate::column::{Fixed, Sealed, TextLimit};
use crate::layout::{ColumnLocation, MAX_TEXT_BYTES, Physical};
use crate::rows::{Rows, Strip};

/// Rows whose columns are written one after another.
const PIECE_ROWS: usize = 256;

/// Some rows of a batch and where they go.
#[derive(Clone, Copy)]
struct Piece {
    /// In the batch.
    start: usize,
    first: Tid,
    count: usize,
}

/// Lays the rows of a batch down in the next vacant slots and makes them live. Its columns are those of the
/// table in order, with the types of [`albireo_base::arrow_type`], or texts as `Utf8` and byte strings as `Binary`;
/// names do not matter.
///
/// # Errors
/// The batch does not fit the table, or there is no memory. Rows before the failure may be there.
pub(super) fn lay(
    spec: &TableSpec,
    placement: Option<Placement>,
    rows: &mut Rows,
    batch: &RecordBatch,
) -> Result<(), TableError> {
    check(spec, placement, batch)?;
    let mut sheet = Sheet { spec, rows };
    let mut start = 0;
    while start < batch.num_rows() {
        let (first, room) = sheet.rows.room()?;
        // Up to a multiple, so that the pieces that follow begin blocks.
        let count = (PIECE_ROWS - first.slot() % PIECE_ROWS).min(room).min(batch.num_rows() - start);
        debug_assert!(count > 0 && first.slot() + count <= CHUNK_ROWS, "a piece is of one chunk");
        let piece = Piece { start, first, count };
        for column in 0..spec.columns.len() {
            sheet.load_column(column, batch.column(column), piece)?;
        }
        sheet.rows.publish_next(count);
        start += count;
    }
    Ok(())
}

/// Whether a batch has the table's columns, no NULL where there may be none, and rows of this partition.
pub(super) fn check(
    spec: &TableSpec,
    placement: Option<Placement>,
    batch: &RecordBatch,
) -> Result<(), TableError> {
    check_shape(spec, batch)?;
    check_places(spec, placement, batch)
}

/// The first row of a batch that [`lay`] does not take, or that does not meet a CHECK constraint, and why: what
/// [`Table::insert_values`](super::Table::insert_values) would say, had the rows come one by one.
pub(super) fn first_fault(spec: &TableSpec, batch: &RecordBatch) -> Option<(usize, TableError)> {
    (0..batch.num_rows()).find_map(|row| fault_of(spec, batch, row).map(|error| (row, error)))
}

/// Looks for the first row of a batch, which [`lay`] has taken, that does not meet a CHECK constraint.
pub(super) fn first_unmet(spec: &TableSpec, batch: &RecordBatch) -> Option<(usize, TableError)> {
    (0..batch.num_rows()).find_map(|row| unmet_by(spec, batch, row).map(|error| (row, error)))
}

/// Checks number and types of the columns, and NULLs.
fn check_shape(spec: &TableSpec, batch: &RecordBatch) -> Result<(), TableError> {
    let (table, columns) = (spec.id, spec.columns.len());
    if batch.num_columns() != columns {
        let column = ColumnId(batch.num_columns().min(columns) as u16);
        return Err(TableError::WrongType { table, column });
    }
    for (index, (column_spec, array)) in spec.columns.iter().zip(batch.columns()).enumerate() {
        let column = ColumnId(index as u16);
        let suits = match (albireo_base::arrow_type(column_spec.ty), array.data_type()) {
            (DataType::Utf8View, DataType::Utf8) | (DataType::BinaryView, DataType::Binary) => true,
            (wanted, found) => wanted == *found,
        };
        if !suits {
            return Err(TableError::WrongType { table, column });
        }
        if !column_spec.nullable && array.null_count() > 0 {
            return Err(TableError::NotNull { table, column });
        }
    }
    Ok(())
}

/// Checks that the rows belong to this partition.
fn check_places(
    spec: &TableSpec,
    placement: Option<Placement>,
    batch: &RecordBatch,
) -> Result<(), TableError> {
    let Some(Placement { column, partition, partitions }) = placement else { return Ok(()) };
    let ty = spec.columns[column.index()].ty;
    let mut places = Vec::new();
    partitions_of(batch.column(column.index()), ty, partitions, &mut places);
    match places.iter().all(|place| *place == partition) {
        true => Ok(()),
        false => Err(TableError::WrongPartition { table: spec.id }),
    }
}

fn unmet_by(spec: &TableSpec, batch: &RecordBatch, row: usize) -> Option<TableError> {
    let read =
        |column: ColumnId| value_in(batch.column(column.index()), spec.columns[column.index()].ty, row);
    spec.unmet(&read)
}

fn fault_of(spec: &TableSpec, batch: &RecordBatch, row: usize) -> Option<TableError> {
    let table = spec.id;
    let columns = || spec.columns.iter().zip(batch.columns()).zip((0..).map(ColumnId));
    if let Some((_, column)) = columns().find(|((spec, array), _)| !spec.nullable && array.is_null(row)) {
        return Some(TableError::NotNull { table, column });
    }
    let unfit = columns().find_map(|((spec, array), column)| {
        if array.is_null(row) {
            return None;
        }
        match spec.ty {
            SqlType::Decimal { precision, .. } => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                (!Sealed::fits(value, precision)).then_some(TableError::OutOfRange { table, column })
            }
            SqlType::Bytea => {
                let bytes = bytes_in(array, row).len();
                (bytes > MAX_TEXT_BYTES).then_some(TableError::TooLong { table, column, bytes })
            }
            ty if ty.is_string() => {
                let text = text_in(array, row);
                TextLimit::of(ty).fit(text).err().map(|unfit| unfit.error(table, column, text))
            }
            _ => None,
        }
    });
    unfit.or_else(|| unmet_by(spec, batch, row))
}

/// The partition of each row of a batch whose partitioning column, of type `ty`, is `array`: what
/// [`crate::partition_of`] says of its value.
pub fn partitions_of(array: &ArrayRef, ty: SqlType, partitions: u16, each: &mut Vec<u16>) {
    fn numbers<P: ArrowPrimitiveType>(array: &ArrayRef, partitions: u16, each: &mut Vec<u16>)
    where
        P::Native: Into<i64>,
    {
        let place = |number: P::Native| number.into().rem_euclid(i64::from(partitions.max(1))) as u16;
        let array = array.as_primitive::<P>();
        match array.null_count() {
            0 => each.extend(array.values().iter().map(|&number| place(number))),
            _ => each.extend(array.iter().map(|number| number.map_or(0, place))),
        }
    }
    each.clear();
    match ty {
        SqlType::SmallInt => numbers::<Int16Type>(array, partitions, each),
        SqlType::Integer => numbers::<Int32Type>(array, partitions, each),
        SqlType::BigInt => numbers::<Int64Type>(array, partitions, each),
        SqlType::Date => numbers::<Date32Type>(array, partitions, each),
        _ => each
            .extend((0..array.len()).map(|row| crate::partition_of(&value_in(array, ty, row), partitions))),
    }
    debug_assert_eq!(each.len(), array.len(), "each row has a partition");
    debug_assert!(each.iter().all(|place| *place < partitions.max(1)), "the partitions are there");
}

/// A table's rows, being laid down.
struct Sheet<'a> {
    spec: &'a TableSpec,
    rows: &'a mut Rows,
}

impl Sheet<'_> {
    fn load_column(&mut self, column: usize, array: &ArrayRef, piece: Piece) -> Result<(), TableError> {
        let at = *self.rows.layout.column(ColumnId(column as u16));
        let nulls = array.nulls().map(|nulls| nulls.slice(piece.start, piece.count));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        assert!(at.nullable() || nulls.is_none(), "NULLs of a NOT NULL column were refused");
        debug_assert!(piece.start + piece.count <= array.len(), "a piece is of the batch");
        let to = ColumnWriter { at, piece, nulls: nulls.as_ref() };
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
struct ColumnWriter<'b> {
    at: ColumnLocation,
    piece: Piece,
    /// Of the piece; `None` without one.
    nulls: Option<&'b NullBuffer>,
}

impl ColumnWriter<'_> {
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
            debug_assert!(strip.count > 0, "laying values down gets on");
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
        sheet: &mut Sheet<'_>,
        values: impl Fn(std::ops::Range<usize>) -> I,
    ) {
        let done = self.each_strip(sheet.rows, |_, done, strip| {
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

    fn primitives<P: ArrowPrimitiveType>(&self, sheet: &mut Sheet<'_>, array: &ArrayRef)
    where
        P::Native: Fixed,
    {
        let values = array.as_primitive::<P>().values();
        self.fixed(sheet, |rows| values[rows].iter().copied());
    }

    fn booleans(&self, sheet: &mut Sheet<'_>, array: &BooleanArray) {
        let values = array.values();
        self.fixed(sheet, |rows| rows.map(|row| values.value(row)));
    }

    fn decimals(
        &self,
        sheet: &mut Sheet<'_>,
        array: &PrimitiveArray<Decimal128Type>,
        precision: u8,
    ) -> Result<(), TableError> {
        let Piece { start, count, .. } = self.piece;
        let values = &array.values()[..];
        let few = values[start..start + count].iter().all(|value| Sealed::fits(*value, precision));
        // What stands behind a NULL does not matter.
        if !few && (0..count).any(|row| !self.is_null(row) && !Sealed::fits(values[start + row], precision)) {
            return Err(TableError::OutOfRange { table: sheet.spec.id, column: self.at.column });
        }
        match self.at.physical {
            Physical::I64 => self.fixed(sheet, |rows| values[rows].iter().map(|&value| value as i64)),
            _ => self.fixed(sheet, |rows| values[rows].iter().copied()),
        }
        Ok(())
    }

    fn strings<'a>(
        &self,
        sheet: &mut Sheet<'_>,
        array: impl ArrayAccessor<Item = &'a str>,
        limit: TextLimit,
    ) -> Result<(), TableError> {
        let (id, column) = (sheet.spec.id, self.at.column);
        self.texts(sheet.rows, |row| {
            let text = array.value(row);
            limit.fit(text).map(str::as_bytes).map_err(|unfit| unfit.error(id, column, text))
        })
    }

    fn byte_strings<'a>(
        &self,
        sheet: &mut Sheet<'_>,
        array: impl ArrayAccessor<Item = &'a [u8]>,
    ) -> Result<(), TableError> {
        let (table_id, column) = (sheet.spec.id, self.at.column);
        self.texts(sheet.rows, |row| match array.value(row) {
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
pub(super) fn value_in(array: &ArrayRef, ty: SqlType, row: usize) -> Value {
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
            let text = text_in(array, row);
            // CHAR is stored without trailing blanks, and placed by what is stored.
            let text = if matches!(ty, SqlType::Char(_)) { text.trim_end_matches(' ') } else { text };
            Value::Text(text.to_owned())
        }
        SqlType::Bytea => Value::Bytea(bytes_in(array, row).to_vec()),
        SqlType::Date => Value::Date(at::<Date32Type>(array, row)),
        SqlType::Time => Value::Time(at::<Time64MicrosecondType>(array, row)),
        SqlType::Timestamp => Value::Timestamp(at::<TimestampMicrosecondType>(array, row)),
        SqlType::TimestampTz => Value::TimestampTz(at::<TimestampMicrosecondType>(array, row)),
        SqlType::Uuid => {
            Value::Uuid(array.as_fixed_size_binary().value(row).try_into().expect("16 bytes, by its type"))
        }
    }
}

fn text_in(array: &ArrayRef, row: usize) -> &str {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row),
        _ => array.as_string_view().value(row),
    }
}

fn bytes_in(array: &ArrayRef, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        _ => array.as_binary_view().value(row),
    }
}
