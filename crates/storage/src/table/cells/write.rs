//! Inserting and updating rows of cells.

use albireo_base::Tid;

use super::super::shape::{ANYHOW, APART, Spot, TOGETHER, address, spot_by, with_lie};
use super::super::{NewRow, RowUpdate, Table, TableError};
use super::{Cell, CellColumn, CellShape, Cells, Form, wrong_number};
use crate::MAX_TEXT_BYTES;
use crate::rows::{Rows, VIEW_INLINE_BYTES, View, foreign_handle};
use crate::undo::{Change, Image, UndoLog};

impl Table {
    /// Inserts a row; see [`Table::insert_values`].
    ///
    /// # Errors
    /// The row breaks a constraint, or there is no memory; nothing has happened then.
    ///
    /// # Panics
    /// The shape belongs to another table or has not all its columns, or `cells` has not its width.
    pub fn insert_cells(
        &mut self,
        undo: &mut UndoLog,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, TableError> {
        if shape.layout != self.rows.layout_id() || !shape.whole {
            foreign_handle();
        }
        if cells.0.len() != shape.columns.len() {
            wrong_number(cells.0.len(), shape.columns.len());
        }
        let mut row = self.insert(undo)?;
        // SAFETY: the shape was made for this layout and lies as it says; the contract of `cells`.
        let taken =
            unsafe { with_lie!(shape.lie, LIE => put_all::<LIE>(&mut row, &shape.columns, cells.0)?) };
        if !taken {
            return Err(row.table().refusal(shape, cells));
        }
        row.enter()
    }

    /// Gives a live row new values; see [`Table::update_values`].
    ///
    /// # Errors
    /// There is no such row, the values break a constraint, or there is no memory; nothing has happened
    /// then.
    ///
    /// # Panics
    /// The shape belongs to another table, or `cells` has not its width.
    pub fn update_cells(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), TableError> {
        if shape.layout != self.rows.layout_id() {
            foreign_handle();
        }
        if cells.0.len() != shape.columns.len() {
            wrong_number(cells.0.len(), shape.columns.len());
        }
        if !self.rows.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        let watched = self.has_checks || shape.bits.is_none_or(|bits| bits & self.guarded.first != 0);
        if watched || !shape.fixed {
            return self.update_cells_slowly(undo, tid, shape, cells);
        }
        let start = undo.savepoint();
        // SAFETY: as in `insert_cells`; a row lives there, and no column is a text.
        let replaced = unsafe {
            with_lie!(shape.lie, LIE => self.replace_all::<LIE>(undo, tid, &shape.columns, cells.0))
        };
        if replaced.is_err() {
            self.roll_back_to(undo, start);
        }
        replaced
    }

    /// [`Table::update_cells`] of texts, or where writing touches an index, the row's place or a CHECK.
    #[inline(never)]
    fn update_cells_slowly(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), TableError> {
        self.update(undo, tid, |row| {
            let mut cells = shape.columns.iter().zip(cells.0);
            // SAFETY: the contract of `cells`; the columns are of this table.
            cells.try_for_each(|(column, &cell)| unsafe { set(row, column, cell) })
        })
    }

    /// Overwrites values, none of them a text. A failure leaves those before it written and logged.
    ///
    /// # Safety
    /// P-1: `columns` are of this table's layout, of fixed width, and lie as `LIE` says. S-1: a row lives
    /// at `tid`.
    #[inline(always)]
    unsafe fn replace_all<const LIE: u8>(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        columns: &[CellColumn],
        cells: &[Cell],
    ) -> Result<(), TableError> {
        let Some(first) = columns.first() else { return Ok(()) };
        let mut row = self.rows.locate(tid);
        let mut spot = Spot { row, base: std::ptr::null_mut() };
        if LIE == TOGETHER {
            // SAFETY: P-1 and S-1, located just now. Later changes of the directory concern null bitmaps
            // only, so that the base of the private block stays.
            unsafe {
                self.rows.make_private(tid, &mut row, &first.at)?;
                spot = spot_by::<LIE>(&self.rows, row, Some(&first.at));
            }
        }
        for (column, &cell) in columns.iter().zip(cells) {
            if !column.takes_fixed(cell) {
                // SAFETY: no column is a text, so nothing is read behind the cell.
                return Err(unsafe { self.fault(column, cell) });
            }
            // SAFETY: P-1 and S-1; `row` is located again wherever the directory changes. The blocks of
            // the value and its null bitmap are private before they are written.
            let (was_null, old) = unsafe {
                match LIE {
                    TOGETHER => self.rows.make_null_private(tid, &mut row, &column.at)?,
                    _ => self.rows.make_private(tid, &mut row, &column.at)?,
                }
                spot.row = row;
                column.replace::<LIE>(&mut self.rows, spot, cell)
            };
            let image = Image::Here(old.to_le_bytes());
            undo.push(self.id, tid, Change::Wrote { column: column.at.column, was_null, image });
        }
        Ok(())
    }

    /// Why a row of these cells cannot be inserted, as [`Table::insert_values`] says it: NULLs first, and
    /// in the order of the table's columns.
    #[cold]
    #[inline(never)]
    fn refusal(&self, shape: &CellShape, cells: Cells<'_>) -> TableError {
        let mut pairs: Vec<(&CellColumn, Cell)> = shape.columns.iter().zip(cells.0.iter().copied()).collect();
        pairs.sort_by_key(|(column, _)| column.at.column);
        let null = pairs.iter().find(|(column, cell)| cell.is_null() && !column.nullable);
        // SAFETY: the contract of `cells`.
        let other = || pairs.iter().find(|(column, cell)| !unsafe { column.takes(*cell) });
        let (column, cell) = null.or_else(other).expect("a cell was refused");
        // SAFETY: the contract of `cells`.
        unsafe { self.fault(column, *cell) }
    }

    /// Why a column does not take a cell.
    ///
    /// # Safety
    /// S-1: the cell is one of a [`Cells`] for the column, or the column is none of text. It is refused.
    #[cold]
    #[inline(never)]
    unsafe fn fault(&self, column: &CellColumn, cell: Cell) -> TableError {
        let (table, id) = (self.spec.id, column.at.column);
        match column.form {
            _ if cell.is_null() => TableError::NotNull { table, column: id },
            Form::Bytea => TableError::TooLong { table, column: id, bytes: cell.hi as usize },
            Form::Inline(_) | Form::View => {
                // SAFETY: S-1.
                let text = unsafe { text_of(cell) };
                match column.limit.fit(text) {
                    Err(unfit) => self.unfit(id, text, unfit),
                    Ok(_) => panic!("a text was refused that fits"),
                }
            }
            _ => TableError::WrongType { table, column: id },
        }
    }
}

/// The text that a cell is; the empty one for NULL.
///
/// # Safety
/// The cell is one of a [`Cells`], of a column of text.
#[inline(always)]
unsafe fn text_of<'a>(cell: Cell) -> &'a str {
    // SAFETY: the contract of `Cells`.
    unsafe { std::str::from_utf8_unchecked(cell.bytes()) }
}

/// Writes all values of a new row; tells whether its columns take them.
///
/// # Safety
/// P-1: `columns` are of this table's layout and lie as `LIE` says. P-2: the cells are those of a
/// [`Cells`] for these columns.
#[inline(always)]
unsafe fn put_all<const LIE: u8>(
    row: &mut NewRow<'_>,
    columns: &[CellColumn],
    cells: &[Cell],
) -> Result<bool, TableError> {
    let first = columns.first().map(|column| &column.at);
    // SAFETY: P-1 and P-2 are the caller's. A long text may change the directory and finds the row's place
    // again, so the spot is found again too.
    unsafe {
        let mut spot = spot_by::<LIE>(row.rows_ref(), row.place(), first);
        for (column, &cell) in columns.iter().zip(cells) {
            if column.form.is_fixed() {
                if !column.takes_fixed(cell) {
                    return Ok(false);
                }
                column.write::<LIE>(row.rows(), spot, cell);
            } else {
                match column.put_text::<LIE>(row, spot, cell) {
                    Put::Done => {}
                    Put::Refused => return Ok(false),
                    Put::Apart(bytes) => {
                        row.set_bytes(&column.at, bytes)?;
                        spot = spot_by::<LIE>(row.rows_ref(), row.place(), first);
                    }
                }
            }
            if column.nullable {
                row.rows().known_null(spot.row, &column.at, cell.is_null());
            }
        }
    }
    Ok(true)
}

/// What became of a text.
enum Put<'a> {
    /// It lies in its slot.
    Done,
    /// The column does not take it.
    Refused,
    /// These bytes are to be laid down in the heap.
    Apart(&'a [u8]),
}

/// The bytes of a value that a column of fixed width takes: `write` gives their address and the bytes
/// to `$do`.
macro_rules! with_bytes {
    ($column:expr, $cell:expr, $LIE:ident, $rows:expr, $spot:expr, $do:ident) => {{
        let (lo, hi) = match $cell.is_null() {
            true => (0, 0),
            false => ($cell.lo, $cell.hi),
        };
        let place = |width| address::<$LIE>($rows, $spot, &$column.at, width);
        match $column.form {
            Form::Bool => $do(place(1), [u8::from(lo != 0)]),
            Form::I16 => $do(place(2), (lo as u16).to_le_bytes()),
            Form::I32 | Form::F32 => $do(place(4), (lo as u32).to_le_bytes()),
            Form::Decimal128 | Form::Uuid => $do(place(16), Cell::of_two(lo, hi).unscaled().to_le_bytes()),
            _ => $do(place(8), lo.to_le_bytes()),
        }
    }};
}

/// Writes bytes.
///
/// # Safety
/// They may be written at `place`.
#[inline(always)]
unsafe fn store<const N: usize>(place: *mut u8, bytes: [u8; N]) {
    // SAFETY: the caller's.
    unsafe { place.cast::<[u8; N]>().write_unaligned(bytes) }
}

/// Writes bytes; gives what was there, as a number of as many bytes.
///
/// # Safety
/// They may be read and written at `place`.
#[inline(always)]
unsafe fn swap<const N: usize>(place: *mut u8, bytes: [u8; N]) -> u128 {
    let mut old = [0; 16];
    // SAFETY: the caller's; no value of fixed width has more than 16 bytes.
    unsafe {
        let place = place.cast::<[u8; N]>();
        old[..N].copy_from_slice(&place.read_unaligned());
        place.write_unaligned(bytes);
    }
    u128::from_le_bytes(old)
}

impl CellColumn {
    /// Whether the column takes the cell.
    ///
    /// # Safety
    /// P-2 of [`put_all`].
    unsafe fn takes(&self, cell: Cell) -> bool {
        match self.form {
            _ if cell.is_null() => self.nullable,
            Form::Bytea => cell.hi as usize <= MAX_TEXT_BYTES,
            // SAFETY: P-2.
            Form::Inline(_) | Form::View => self.limit.fit(unsafe { text_of(cell) }).is_ok(),
            _ => self.takes_fixed(cell),
        }
    }

    /// Writes a value that the column takes, of fixed width; its NULL bit is the caller's.
    ///
    /// # Safety
    /// P-1 of [`put_all`]; `spot` is where the row is, which may be written.
    #[inline(always)]
    unsafe fn write<const LIE: u8>(&self, rows: &Rows, spot: Spot, cell: Cell) {
        // SAFETY: P-1; as many bytes lie there, because the form is that of the column's type.
        unsafe { with_bytes!(self, cell, LIE, rows, spot, store) }
    }

    /// Overwrites a value by one that the column takes, of fixed width, with its NULL bit; tells whether
    /// it was NULL, and its bytes.
    ///
    /// # Safety
    /// As for [`CellColumn::write`]; the blocks are private.
    #[inline(always)]
    unsafe fn replace<const LIE: u8>(&self, rows: &mut Rows, spot: Spot, cell: Cell) -> (bool, u128) {
        let mut was_null = false;
        // SAFETY: the caller's; a nullable column has a null bitmap.
        unsafe {
            if self.nullable {
                was_null = rows.known_is_null(spot.row, &self.at);
                rows.known_null(spot.row, &self.at, cell.is_null());
            }
            (was_null, with_bytes!(self, cell, LIE, rows, spot, swap))
        }
    }

    /// Writes a text or byte string of a new row into its slot, if it fits there.
    ///
    /// # Safety
    /// P-1 and P-2 of [`put_all`]; `spot` is where the new row is.
    #[inline(always)]
    unsafe fn put_text<'a, const LIE: u8>(&self, row: &mut NewRow<'_>, spot: Spot, cell: Cell) -> Put<'a> {
        if cell.is_null() && !self.nullable {
            return Put::Refused;
        }
        // SAFETY: P-2.
        let Some(bytes) = (unsafe { self.stored(cell) }) else { return Put::Refused };
        // SAFETY: P-1; the slot has `1 + capacity` bytes, or is a view, and `bytes` is not in it (S-2 of
        // `Cells`).
        unsafe {
            let slot = address::<LIE>(row.rows(), spot, &self.at, self.at.width as usize);
            match self.form {
                Form::Inline(capacity) if bytes.len() <= capacity as usize => {
                    *slot = bytes.len() as u8;
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), slot.add(1), bytes.len());
                }
                Form::View | Form::Bytea if bytes.len() <= VIEW_INLINE_BYTES => {
                    slot.cast::<[u8; 16]>().write_unaligned(View::short(bytes).0);
                }
                _ => return Put::Apart(bytes),
            }
        }
        Put::Done
    }

    /// What is stored of a text or byte string; `None` if the column does not take it.
    ///
    /// # Safety
    /// P-2 of [`put_all`].
    #[inline(always)]
    unsafe fn stored<'a>(&self, cell: Cell) -> Option<&'a [u8]> {
        // SAFETY: P-2.
        unsafe {
            match self.form {
                Form::Bytea => {
                    let bytes = cell.bytes();
                    (bytes.len() <= MAX_TEXT_BYTES).then_some(bytes)
                }
                _ => self.limit.fit(text_of(cell)).ok().map(str::as_bytes),
            }
        }
    }
}

/// Overwrites a value of a row that is being updated.
///
/// # Safety
/// P-1 and P-2 of [`put_all`].
unsafe fn set(row: &mut RowUpdate<'_>, column: &CellColumn, cell: Cell) -> Result<(), TableError> {
    if cell.is_null() {
        return row.set_null_at(&column.at);
    }
    if !column.form.is_fixed() {
        // SAFETY: P-2.
        return match unsafe { column.stored(cell) } {
            Some(bytes) => row.set_bytes(&column.at, bytes),
            // SAFETY: P-2.
            None => Err(unsafe { row.table().fault(column, cell) }),
        };
    }
    if !column.takes_fixed(cell) {
        // SAFETY: P-2.
        return Err(unsafe { row.table().fault(column, cell) });
    }
    let bytes = match column.form {
        Form::Bool => u128::from(cell.lo != 0),
        _ => cell.unscaled() as u128,
    };
    row.set_raw(&column.at, &bytes.to_le_bytes()[..column.at.width as usize], false)
}
