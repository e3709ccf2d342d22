//! Where values lie, for code that reads them by loads.
//!
//! With `c` from [`Table::column_address`], which holds for every partition of the table, and `r` from
//! [`Table::row_address`], which holds until the table changes:
//!
//! ```text
//! block(e) = *(r.entries + e * ENTRY_BYTES + ENTRY_BLOCK_OFFSET)            8 bytes, an address
//! value    = block(c.entry + (r.slot >> c.shift)) + (r.slot & c.mask) * c.stride + c.offset
//! present  = (*(block(c.null_entry) + (r.slot >> 3)) >> (r.slot & 7)) & 1   a byte; 0: the value is NULL
//! live     = (*(block(VALIDITY_ENTRY) + (r.slot >> 3)) >> (r.slot & 7)) & 1
//! ```
//!
//! `(r.slot >> c.shift)` is 0 and `(r.slot & c.mask)` is `r.slot` where [`ColumnAddress::is_plain`].
//! Rows of one chunk share `entries`: `tid >> 14` is the chunk, `tid & 0x3FFF` the slot.
//!
//! Values are little-endian and not aligned. By [`ColumnAddress::physical`]:
//! - `Bool`: one byte, 0 or 1. `I16`, `I32`, `I64`, `I128`: signed whole numbers, a DECIMAL unscaled.
//!   `F32`, `F64`: IEEE. `Uuid`: 16 bytes.
//! - `Inline(capacity)`: one byte, the length, and from the next one on the bytes; but where the length
//!   byte is [`INLINE_TEXT_APART`] the text is that of [`Table::text_bytes_at`].
//! - `View`: 4 bytes, the length; if it is at most [`VIEW_TEXT_BYTES`] the text is at `value + 4`, else
//!   it is that of [`Table::text_bytes_at`].
//!
//! The value of a NULL is all zeroes, a text the empty one.

use std::borrow::Cow;
use std::mem::offset_of;

use albireo_base::{ColumnId, Tid};

use super::super::Table;
use super::CellShape;
use crate::directory::Entry;
use crate::index::prefetch_ends;
use crate::layout::{ColumnLocation, Physical};
use crate::rows::{OVERFLOW, VIEW_INLINE_BYTES, foreign_handle, no_such_row};

/// Bytes of an entry of a chunk's directory.
pub const ENTRY_BYTES: usize = size_of::<Entry>();
/// Where in an entry the address of its block is.
pub const ENTRY_BLOCK_OFFSET: usize = offset_of!(Entry, block);
/// The entry of the bitmap of live rows.
pub const VALIDITY_ENTRY: u32 = crate::layout::VALIDITY_ENTRY as u32;
/// The length byte of an inline slot whose text lies elsewhere.
pub const INLINE_TEXT_APART: u8 = OVERFLOW;
/// Bytes of text that fit a view.
pub const VIEW_TEXT_BYTES: usize = VIEW_INLINE_BYTES;

/// Where the values of a column lie in every chunk of its table, in every partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnAddress {
    /// Its first entry.
    pub entry: u32,
    /// A block holds `1 << shift` rows.
    pub shift: u32,
    /// `(1 << shift) - 1`.
    pub mask: u32,
    /// Bytes from row to row.
    pub stride: u32,
    /// Bytes from the beginning of a row to the value.
    pub offset: u32,
    /// Bytes of a value.
    pub width: u32,
    /// The form of a value.
    pub physical: Physical,
    /// The entry of its null bitmap; `None` if it is never NULL.
    pub null_entry: Option<u32>,
}

impl ColumnAddress {
    /// Whether one block holds the column of a whole chunk.
    pub fn is_plain(&self) -> bool {
        1usize << self.shift == albireo_base::ids::CHUNK_ROWS
    }
}

/// Where a row lies; good until its table changes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowAddress {
    /// The first entry of its chunk.
    pub entries: *const u8,
    /// Its slot in the chunk.
    pub slot: u64,
}

/// Values of a row that are brought together. Made by [`CellShape::lines`]; good for every partition of its
/// table, refused by any other table.
pub struct RowLines {
    layout: u64,
    columns: Box<[ColumnLocation]>,
}

impl CellShape {
    /// The values of some of its columns, to be brought together.
    pub fn lines(&self, columns: &[ColumnId]) -> RowLines {
        let locations = self.columns.iter().map(|column| column.at);
        let columns = locations.filter(|at| columns.contains(&at.column)).collect();
        RowLines { layout: self.layout, columns }
    }
}

impl Table {
    /// Where the values of a column lie.
    ///
    /// # Panics
    /// There is no such column.
    pub fn column_address(&self, column: ColumnId) -> ColumnAddress {
        let at = self.rows.layout.column(column);
        ColumnAddress {
            entry: at.entry,
            shift: at.shift,
            mask: at.mask,
            stride: at.stride,
            offset: at.offset,
            width: at.width.into(),
            physical: at.physical,
            null_entry: at.nullable().then_some(at.null_entry),
        }
    }

    /// Where a row lies; `None` if it is frozen.
    ///
    /// # Panics
    /// There never was such a row.
    #[inline]
    pub fn row_address(&self, tid: Tid) -> Option<RowAddress> {
        if tid.0 >= self.rows.slots {
            no_such_row(tid);
        }
        let row = self.rows.find_place(tid)?;
        Some(RowAddress { entries: row.entries.cast(), slot: row.slot as u64 })
    }

    /// Asks the processor to bring values of a row.
    ///
    /// # Panics
    /// They are of another table, or there never was such a row.
    #[inline]
    pub fn prefetch_row(&self, tid: Tid, lines: &RowLines) {
        if lines.layout != self.rows.layout_id() {
            foreign_handle();
        }
        let Some(row) = self.rows.find_place(tid) else { return };
        for at in &lines.columns {
            // SAFETY: located just now; the columns are of this layout.
            prefetch_ends(unsafe { self.rows.known_place(row, at) }, at.width);
        }
    }

    /// The text or byte string of a row, wherever it lies; empty for NULL. It is lent, unless the row is frozen and its
    /// texts are packed or compressed.
    ///
    /// # Panics
    /// The column is neither, or there never was such a row.
    pub fn text_bytes_at(&self, tid: Tid, column: ColumnId) -> Cow<'_, [u8]> {
        self.rows.text(tid, self.rows.layout.column(column))
    }

    /// A number that changes whenever a row comes or goes, a key of one changes, or rows are addressed anew.
    /// As long as it is what it was, a row that was found by a key is found by it, and its
    /// [`RowAddress`] holds; its values may have changed. It is read from here as long as the table is
    /// where it is.
    #[inline]
    pub fn moves(&self) -> &u64 {
        self.rows.moves()
    }

    /// The id of the table's layout, the same in every partition and of no other table: what holds for
    /// one table of this id, such as a [`CellShape`](super::CellShape) or a [`ColumnAddress`], holds for
    /// every one.
    #[inline]
    pub fn layout_id(&self) -> u64 {
        self.rows.layout_id()
    }
}
