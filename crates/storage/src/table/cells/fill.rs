//! Rows whose values the caller writes into their places by itself.
//!
//! ```text
//! Table::vacant_row -- the caller writes values by their ColumnAddress -- Table::enter_filled -- a row
//! Table::overwrite  -- the caller writes values by their ColumnAddress
//! ```
//! Before `enter_filled` there is no row: who gives up in between leaves no trace. What lies in no place of
//! fixed width, or has to be looked at first, comes as [`Cells`] with it: texts, byte strings, DECIMALs of
//! more than 18 digits. `overwrite` has logged the old values, so that a row is undone whatever was written.

use albireo_base::{ColumnId, SqlType, Tid};

use super::super::shape::with_lie;
use super::super::{Table, TableError};
use super::address::RowAddress;
use super::write::put_all;
use super::{ANYHOW, APART, CellShape, Cells, TOGETHER, foreign_handle, wrong_number};
use crate::column::Sealed;
use crate::layout::{ColumnLocation, Physical};
use crate::undo::UndoLog;

/// Which values of a new row the caller writes by itself, the others being cells. Made by
/// [`Table::fill_shape`]; good for every partition of its table, refused by any other table.
pub struct FillShape {
    /// The others.
    cells: CellShape,
    /// Those that the caller writes and that may be NULL.
    nullable: Box<[ColumnLocation]>,
    /// Those that are DECIMALs, and their digits.
    decimals: Box<[(ColumnLocation, u8)]>,
}

/// A row whose values have been written.
#[derive(Clone, Copy)]
pub struct Filled<'a> {
    tid: Tid,
    nulls: u64,
    cells: Cells<'a>,
}

impl<'a> Filled<'a> {
    /// The vacant row at `tid`. Bit `n` of `nulls` says that the value of column `n` is NULL; that of a cell
    /// is not looked at. `cells` are those of a shape's other columns.
    ///
    /// # Safety
    /// When it enters a table with a shape:
    /// - F-1 `tid` is what [`Table::vacant_row`] of this table gave last, and nothing has been done with the
    ///   table since.
    /// - F-2 Since then a value was written to each column that the shape leaves to the caller: at its
    ///   [`ColumnAddress`](super::ColumnAddress), as wide as it says, of a BOOL 0 or 1, of a DECIMAL one of at
    ///   most its digits, and zeroes for NULL.
    #[inline(always)]
    pub unsafe fn new(tid: Tid, nulls: u64, cells: Cells<'a>) -> Self {
        Self { tid, nulls, cells }
    }
}

/// Whether a value is a number of at most 8 bytes.
pub(super) fn is_direct(at: &ColumnLocation) -> bool {
    matches!(
        at.physical,
        Physical::Bool | Physical::I16 | Physical::I32 | Physical::I64 | Physical::F32 | Physical::F64
    )
}

impl Table {
    /// A shape for rows whose values of `direct` columns the caller writes; of NULLs it sees that NOT NULL
    /// columns have none.
    ///
    /// # Panics
    /// There is no such column, or one is a text, a byte string or the 65th or later.
    pub fn fill_shape(&self, direct: &[ColumnId]) -> FillShape {
        for id in direct {
            assert!(id.0 < 64 && self.is_direct(*id), "column {id} is not written directly");
        }
        let all = (0..self.spec.columns.len()).map(|n| ColumnId(n as u16));
        let others: Vec<ColumnId> = all.filter(|id| !direct.contains(id)).collect();
        let locations = direct.iter().map(|id| *self.rows.layout.column(*id));
        let digits = |at: &ColumnLocation| match self.spec.columns[at.column.index()].ty {
            SqlType::Decimal { precision, .. } => Some((*at, precision)),
            _ => None,
        };
        FillShape {
            cells: self.cell_shape(&others),
            decimals: locations.clone().filter_map(|at| digits(&at)).collect(),
            nullable: locations.filter(ColumnLocation::nullable).collect(),
        }
    }

    /// Whether a column has a place of at most 8 bytes that values of its type are written to.
    pub fn is_direct(&self, column: ColumnId) -> bool {
        is_direct(self.rows.layout.column(column))
    }

    /// Where the next row will be. There is no row before [`Table::enter_filled`].
    ///
    /// # Errors
    /// There is no memory.
    #[inline]
    pub fn vacant_row(&mut self) -> Result<(Tid, RowAddress), TableError> {
        let tid = self.rows.new_slot()?.tid();
        let row = self.rows.locate(tid);
        Ok((tid, RowAddress { entries: row.entries.cast(), slot: row.slot as u64 }))
    }

    /// Gets a live row ready for new values of a shape's columns, which the caller writes next: their old
    /// values are logged, and the NULL bits are those of `nulls`, bit `n` for the shape's `n`th column.
    /// Tells where the row is; `None`, without having done anything, if the new values have to be looked at:
    /// in CHECKs and indexes, or because one is no [direct](Table::is_direct) one.
    ///
    /// # Errors
    /// There is no such row, or there is no memory; nothing has happened then.
    ///
    /// # Panics
    /// The shape belongs to another table.
    pub fn overwrite(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, TableError> {
        if shape.layout != self.rows.layout_id() {
            foreign_handle();
        }
        if !self.rows.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        if self.watches(shape) || !shape.direct {
            return Ok(None);
        }
        // SAFETY: the shape was made for this layout and has columns of fixed width; a row lives there.
        unsafe { self.log_all(undo, tid, &shape.columns, |n| nulls >> n & 1 == 1)? };
        let row = self.rows.locate(tid);
        Ok(Some(RowAddress { entries: row.entries.cast(), slot: row.slot as u64 }))
    }

    /// Makes a row of what was written.
    ///
    /// # Errors
    /// A cell or the row breaks a constraint, or there is no memory; nothing has happened then.
    ///
    /// # Panics
    /// The shape belongs to another table, the cells have not its width, or the row is not vacant.
    pub fn enter_filled(
        &mut self,
        undo: &mut UndoLog,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<Tid, TableError> {
        let FillShape { cells: others, nullable, decimals } = shape;
        let Filled { tid, nulls, cells } = filled;
        if others.layout != self.rows.layout_id() {
            foreign_handle();
        }
        if cells.0.len() != others.columns.len() {
            wrong_number(cells.0.len(), others.columns.len());
        }
        let is_present = |at: &&ColumnLocation| at.column.0 < 64 && nulls >> at.column.0 & 1 == 1;
        let null_columns = nullable.iter().filter(is_present).count() as u32;
        debug_assert_eq!(nulls.count_ones(), null_columns, "only columns that take NULL are NULL");
        let slot = self.rows.vacant(tid);
        let mut row = self.insert_at(undo, slot);
        let place = row.place();
        for at in nullable {
            // SAFETY: the columns are of this layout and may be NULL; the row is new and was located just now.
            unsafe { row.rows().known_null(place, at, nulls >> at.column.0 & 1 == 1) };
        }
        debug_assert!(
            decimals.iter().all(|(at, digits)| {
                // SAFETY: as above; the value has 8 bytes.
                let unscaled = unsafe { row.rows_ref().known_place(place, at).cast::<[u8; 8]>().read() };
                i64::from_le_bytes(unscaled).fits(*digits)
            }),
            "a DECIMAL has too many digits"
        );
        if !others.columns.is_empty() {
            // SAFETY: as in `insert_cells`.
            let taken =
                unsafe { with_lie!(others.lie, LIE => put_all::<LIE>(&mut row, &others.columns, cells.0)?) };
            if !taken {
                return Err(row.table().refusal(others, cells));
            }
        }
        row.enter()
    }
}
