//! Rows as [`Cell`]s: nearly as fast as a [`RowShape`](super::RowShape), for code whose rows have a
//! shape that is known only at run time, such as that of a compiler of procedures.
//!
//! A [`CellShape`] knows of each of its columns where it lies, how a cell becomes its bytes, and what
//! it takes. So a row is one pass over its cells; what fails, and texts that do not lie in their slot,
//! are out of line. What such code needs to read values without a call is in `address`, to write those of
//! new rows in `fill`.

mod address;
mod fill;
mod thaw;
mod write;

use std::borrow::Cow;
use std::ptr::with_exposed_provenance;

use albireo_base::{ColumnId, SqlType, Tid};

use super::Table;
use super::shape::{ANYHOW, APART, Spot, TOGETHER, address, lie_of, spot_by, with_lie};
use crate::column::{Sealed, TextLimit, has_digits};
use crate::layout::{ColumnLocation, Physical};
use crate::rows::{OVERFLOW, Rows, VIEW_INLINE_BYTES, foreign_handle, no_such_row};

pub use address::{
    ColumnAddress, ENTRY_BLOCK_OFFSET, ENTRY_BYTES, INLINE_TEXT_APART, RowAddress, RowLines, VALIDITY_ENTRY,
    VIEW_TEXT_BYTES,
};
pub use fill::{FillShape, Filled};
pub use thaw::Thawed;

/// A value as generated code holds it.
///
/// By the SQL type of the column:
/// - BOOL: `lo` is 0 or 1.
/// - SMALLINT, INTEGER, BIGINT, DATE, TIME, TIMESTAMP, TIMESTAMPTZ: `lo` is the value, its sign
///   extended to 64 bits.
/// - REAL: `lo` is its 32 bits, the upper ones zero. DOUBLE: `lo` is its 64 bits.
/// - DECIMAL: `lo` and `hi` are the lower and the upper half of the unscaled value in 128 bits, of the
///   column's scale, whatever the precision.
/// - CHAR, VARCHAR, TEXT, BYTEA: `lo` is the address of the bytes, `hi` their number.
/// - UUID: `lo` and `hi` are its 16 bytes in memory order.
///
/// What is read from a table has zeroes in what is not named here, and is all zeroes for NULL. What is
/// written may have anything there.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The value, or its first half.
    pub lo: u64,
    /// The second half of a value that has two.
    pub hi: u64,
    /// The low byte is 0 for NULL, 1 for a value. The second byte is a NUMERIC's scale where the type
    /// does not fix it; a column's type always does, and the byte is not looked at.
    pub tag: u64,
}

impl Cell {
    /// NULL.
    pub const NULL: Self = Self { lo: 0, hi: 0, tag: 0 };

    /// A value of one word.
    #[inline(always)]
    pub const fn of(lo: u64) -> Self {
        Self { lo, hi: 0, tag: 1 }
    }

    /// A value of two words.
    #[inline(always)]
    pub const fn of_two(lo: u64, hi: u64) -> Self {
        Self { lo, hi, tag: 1 }
    }

    /// A DECIMAL, unscaled.
    #[inline(always)]
    pub const fn of_unscaled(unscaled: i128) -> Self {
        Self::of_two(unscaled as u64, (unscaled >> 64) as u64)
    }

    /// A text or byte string, by its address: the bytes must stay as long as the cell is used.
    #[inline(always)]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::of_two(bytes.as_ptr().expose_provenance() as u64, bytes.len() as u64)
    }

    /// Whether it is NULL.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.tag as u8 == 0
    }

    /// The DECIMAL that it is.
    #[inline(always)]
    pub const fn unscaled(self) -> i128 {
        ((self.hi as u128) << 64 | self.lo as u128) as i128
    }

    /// The bytes of the text that it is; none of NULL.
    ///
    /// # Safety
    /// Unless it is NULL or has no bytes, they may be read at its address for `'a`.
    #[inline(always)]
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.is_null() || self.hi == 0 {
            return &[];
        }
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(with_exposed_provenance(self.lo as usize), self.hi as usize) }
    }
}

/// Cells that may be written to a table.
#[derive(Clone, Copy)]
pub struct Cells<'a>(&'a [Cell]);

impl<'a> Cells<'a> {
    /// `cells`, to be written with a shape.
    ///
    /// # Safety
    /// Whenever they are written with a shape:
    /// - S-1 A cell that is not NULL, of a column of type CHAR, VARCHAR, TEXT or BYTEA, has an address at
    ///   which as many bytes as it says may be read for `'a`; they do not change meanwhile, and if the
    ///   type is not BYTEA they are UTF-8.
    /// - S-2 These bytes are not in the table that is written: what [`Table::read_cells`] gave of it is
    ///   copied first.
    #[inline(always)]
    pub unsafe fn new(cells: &'a [Cell]) -> Self {
        Self(cells)
    }
}

/// Some columns of a table, in any order. Made by [`Table::cell_shape`]; good for every partition of its
/// table, refused by any other table.
pub struct CellShape {
    layout: u64,
    /// How the columns lie, as in a [`RowShape`](super::RowShape).
    lie: u8,
    /// Every column of the table is there, so rows can be inserted.
    whole: bool,
    /// No column is a text or byte string.
    fixed: bool,
    /// All columns are numbers of at most 8 bytes.
    direct: bool,
    /// The columns as bits; `None` if one is beyond the 64th.
    bits: Option<u64>,
    columns: Box<[CellColumn]>,
}

/// A column of a shape.
struct CellColumn {
    at: ColumnLocation,
    form: Form,
    /// Most digits of a DECIMAL.
    digits: u8,
    nullable: bool,
    limit: TextLimit,
}

/// How a cell and a column's bytes become each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Bool,
    I16,
    I32,
    I64,
    F32,
    F64,
    Decimal64,
    Decimal128,
    Uuid,
    /// A text that lies in its slot if it has at most so many bytes.
    Inline(u8),
    View,
    Bytea,
}

impl Form {
    fn of(ty: SqlType) -> Self {
        match (ty, Physical::of(ty)) {
            (SqlType::Bytea, _) => Self::Bytea,
            (SqlType::Decimal { .. }, Physical::I64) => Self::Decimal64,
            (_, Physical::Bool) => Self::Bool,
            (_, Physical::I16) => Self::I16,
            (_, Physical::I32) => Self::I32,
            (_, Physical::I64) => Self::I64,
            (_, Physical::F32) => Self::F32,
            (_, Physical::F64) => Self::F64,
            (_, Physical::I128) => Self::Decimal128,
            (_, Physical::Uuid) => Self::Uuid,
            (_, Physical::Inline(capacity)) => Self::Inline(capacity),
            (_, Physical::View) => Self::View,
        }
    }

    fn is_fixed(self) -> bool {
        !matches!(self, Self::Inline(_) | Self::View | Self::Bytea)
    }
}

impl CellShape {
    /// How many cells a row has.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The columns, in the order of the cells.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns.iter().map(|column| column.at.column)
    }
}

#[cold]
#[inline(never)]
fn wrong_number(cells: usize, columns: usize) -> ! {
    panic!("{cells} cells for {columns} columns")
}

impl Table {
    /// The columns `columns` as cells.
    ///
    /// # Panics
    /// There is no such column, or one is named twice.
    pub fn cell_shape(&self, columns: &[ColumnId]) -> CellShape {
        assert!((1..columns.len()).all(|i| !columns[..i].contains(&columns[i])), "each column once");
        let bit = |id: &ColumnId| 1u64.checked_shl(id.0.into());
        let bits = columns.iter().try_fold(0, |bits, id| Some(bits | bit(id)?));
        let columns: Box<[CellColumn]> = columns.iter().map(|&id| self.cell_column(id)).collect();
        CellShape {
            layout: self.rows.layout_id(),
            lie: lie_of(columns.iter().map(|column| &column.at)),
            whole: columns.len() == self.columns,
            fixed: columns.iter().all(|column| column.form.is_fixed()),
            direct: columns.len() <= 64 && columns.iter().all(|column| fill::is_direct(&column.at)),
            bits,
            columns,
        }
    }

    fn cell_column(&self, id: ColumnId) -> CellColumn {
        let ty = self.spec.columns[id.index()].ty;
        let at = *self.rows.layout.column(id);
        let digits = if let SqlType::Decimal { precision, .. } = ty { precision } else { 0 };
        CellColumn { at, form: Form::of(ty), digits, nullable: at.nullable(), limit: TextLimit::of(ty) }
    }

    /// Reads the columns of a row. Texts are addresses into the table, good until it changes; those of a frozen row that
    /// are packed or compressed come to `texts` first.
    ///
    /// # Panics
    /// The shape belongs to another table, `out` has not its width, or there never was such a row.
    pub fn read_cells(&self, tid: Tid, shape: &CellShape, out: &mut [Cell], texts: &mut Vec<Box<[u8]>>) {
        if shape.layout != self.rows.layout_id() {
            foreign_handle();
        }
        if out.len() != shape.columns.len() {
            wrong_number(out.len(), shape.columns.len());
        }
        if tid.0 >= self.rows.slots {
            no_such_row(tid);
        }
        if !self.rows.is_hot(tid) {
            return shape
                .columns
                .iter()
                .zip(out)
                .for_each(|(column, out)| *out = column.find(&self.rows, tid, texts));
        }
        // SAFETY: the shape was made for this layout and lies as it says; there is such a row.
        unsafe { with_lie!(shape.lie, LIE => read_all::<LIE>(&self.rows, tid, &shape.columns, out)) }
    }
}

/// Reads a row.
///
/// # Safety
/// P-1: `columns` are of this table's layout and lie as `LIE` says. S-1: there is a row at `tid`, or
/// there was.
#[inline(always)]
unsafe fn read_all<const LIE: u8>(rows: &Rows, tid: Tid, columns: &[CellColumn], out: &mut [Cell]) {
    let row = rows.locate(tid);
    // SAFETY: P-1, and `row` was located just now; a nullable column has a null bitmap.
    unsafe {
        let spot = spot_by::<LIE>(rows, row, columns.first().map(|column| &column.at));
        for (column, out) in columns.iter().zip(out) {
            if column.nullable && rows.known_is_null(row, &column.at) {
                *out = Cell::NULL;
                continue;
            }
            let (lo, hi) = column.read::<LIE>(rows, tid, spot);
            *out = Cell::of_two(lo, hi);
        }
    }
}

impl CellColumn {
    /// The cell, or zeroes for NULL; `None` if that is not allowed.
    #[inline(always)]
    fn or_zeroes(&self, cell: Cell) -> Option<Cell> {
        match (cell.is_null(), self.nullable) {
            (false, _) => Some(cell),
            (true, true) => Some(Cell::of(0)),
            (true, false) => None,
        }
    }

    /// Whether an unscaled value has at most the digits of the column, which lies in 64 bits.
    #[inline(always)]
    fn takes_decimal64(&self, cell: Cell) -> bool {
        let unscaled = cell.lo as i64;
        cell.hi == (unscaled >> 63) as u64 && unscaled.fits(self.digits)
    }

    /// Whether the column takes the cell, which is none of a text.
    fn takes_fixed(&self, cell: Cell) -> bool {
        match self.form {
            _ if cell.is_null() => self.nullable,
            Form::Decimal64 => self.takes_decimal64(cell),
            Form::Decimal128 => has_digits(cell.unscaled(), self.digits),
            _ => true,
        }
    }

    /// The value of a row that may have no place.
    #[cold]
    fn find(&self, rows: &Rows, tid: Tid, texts: &mut Vec<Box<[u8]>>) -> Cell {
        let at = &self.at;
        if self.nullable && rows.is_null(tid, at) {
            return Cell::NULL;
        }
        match self.form {
            Form::Bool => Cell::of(u64::from(rows.get::<bool>(tid, at))),
            Form::I16 => Cell::of(i64::from(rows.get::<i16>(tid, at)) as u64),
            Form::I32 => Cell::of(i64::from(rows.get::<i32>(tid, at)) as u64),
            Form::I64 => Cell::of(rows.get::<i64>(tid, at) as u64),
            Form::F32 => Cell::of(u64::from(rows.get::<f32>(tid, at).to_bits())),
            Form::F64 => Cell::of(rows.get::<f64>(tid, at).to_bits()),
            Form::Decimal64 => Cell::of_unscaled(rows.get::<i64>(tid, at).into()),
            Form::Decimal128 => Cell::of_unscaled(rows.get(tid, at)),
            Form::Uuid => {
                let both = u128::from_le_bytes(rows.get(tid, at));
                Cell::of_two(both as u64, (both >> 64) as u64)
            }
            Form::Inline(_) | Form::View | Form::Bytea => Cell::of_bytes(match rows.text(tid, at) {
                Cow::Borrowed(text) => text,
                Cow::Owned(text) => texts.push_mut(text.into()),
            }),
        }
    }

    /// The two words of a value that is not NULL.
    ///
    /// # Safety
    /// P-1 and S-1 of [`read_all`]; `spot` is where the row is.
    #[inline(always)]
    unsafe fn read<const LIE: u8>(&self, rows: &Rows, tid: Tid, spot: Spot) -> (u64, u64) {
        macro_rules! read {
            ($ty:ty) => {{
                // SAFETY: P-1; as many bytes lie there, because the form is that of the column's type.
                // Nobody writes while `rows` is borrowed.
                <$ty>::from_le_bytes(unsafe {
                    let place = address::<LIE>(rows, spot, &self.at, size_of::<$ty>());
                    place.cast::<[u8; size_of::<$ty>()]>().read_unaligned()
                })
            }};
        }
        match self.form {
            Form::Bool => (u64::from(read!(u8) != 0), 0),
            Form::I16 => (i64::from(read!(i16)) as u64, 0),
            Form::I32 => (i64::from(read!(i32)) as u64, 0),
            Form::I64 | Form::F64 => (read!(u64), 0),
            Form::F32 => (u64::from(read!(u32)), 0),
            Form::Decimal64 => {
                let unscaled = read!(i64);
                (unscaled as u64, (unscaled >> 63) as u64)
            }
            Form::Decimal128 | Form::Uuid => {
                let both = read!(u128);
                (both as u64, (both >> 64) as u64)
            }
            Form::Inline(_) => {
                // SAFETY: P-1; a slot has a length byte and as many bytes as that says, or four for a
                // text that lies in the heap.
                unsafe {
                    let slot = address::<LIE>(rows, spot, &self.at, self.at.width as usize);
                    match *slot {
                        OVERFLOW => self.read_apart(rows, tid, slot),
                        length => (slot.add(1).expose_provenance() as u64, u64::from(length)),
                    }
                }
            }
            Form::View | Form::Bytea => {
                // SAFETY: P-1; a view has 16 bytes, of which up to 12 are the text.
                unsafe {
                    let slot = address::<LIE>(rows, spot, &self.at, 16);
                    let length = u32::from_le_bytes(slot.cast::<[u8; 4]>().read_unaligned());
                    match length as usize <= VIEW_INLINE_BYTES {
                        true => (slot.add(4).expose_provenance() as u64, u64::from(length)),
                        false => self.read_apart(rows, tid, slot),
                    }
                }
            }
        }
    }

    /// A text that lies in the heap.
    ///
    /// # Safety
    /// S-1: `slot` is the address of the column's value of the row `tid`.
    #[inline(never)]
    unsafe fn read_apart(&self, rows: &Rows, tid: Tid, slot: *const u8) -> (u64, u64) {
        // SAFETY: S-1.
        let text = unsafe { rows.text_in(tid, &self.at, slot) };
        (text.as_ptr().expose_provenance() as u64, text.len() as u64)
    }
}
