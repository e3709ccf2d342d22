//! Inserting and updating rows of cells.

use albireo_base::Tid;

use super::super::shape::{ANYHOW, APART, Spot, TOGETHER, address, spot_by, with_lie};
use super::super::{NewRow, RowUpdate, Table, TableError};
use super::{Cell, CellColumn, CellShape, Cells, Form, wrong_number};
use crate::MAX_TEXT_BYTES;
use crate::column::has_digits;
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
        if self.watches(shape) || !shape.fixed {
            return self.update_cells_slowly(undo, tid, shape, cells);
        }
        let columns = &shape.columns;
        if let Some((column, &cell)) =
            columns.iter().zip(cells.0).find(|(column, cell)| !column.takes_fixed(**cell))
        {
            // SAFETY: no column is a text, so nothing is read behind the cell.
            return Err(unsafe { self.fault(column, cell) });
        }
        // SAFETY: as in `insert_cells`; a row lives there, and no column is a text.
        unsafe {
            self.log_all(undo, tid, columns, |n| cells.0[n].is_null())?;
            with_lie!(shape.lie, LIE => self.write_all::<LIE>(tid, columns, cells.0));
        }
        Ok(())
    }

    /// Whether writing to a shape's columns touches an index, the row's place or a CHECK.
    #[inline(always)]
    pub(super) fn watches(&self, shape: &CellShape) -> bool {
        self.has_checks || shape.bits.is_none_or(|bits| bits & self.guarded.first != 0)
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

    /// Logs values, makes what holds them private, and sets the NULL bit of each of which `null` says so. A
    /// failure changes nothing.
    ///
    /// # Safety
    /// P-1: `columns` are of this table's layout and of fixed width. S-1: a row lives at `tid`.
    #[inline(always)]
    pub(super) unsafe fn log_all(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        columns: &[CellColumn],
        null: impl Fn(usize) -> bool,
    ) -> Result<(), TableError> {
        debug_assert!(columns.iter().all(|column| column.form.is_fixed()), "values lie in their slots");
        let start = undo.savepoint();
        let (known, tid) = self.warm(undo, tid)?;
        let mut row = self.rows.locate(tid);
        for (n, column) in columns.iter().enumerate() {
            // SAFETY: P-1 and S-1; `row` was located just now, and is again wherever the directory changes.
            if let Err(error) = unsafe { self.rows.make_private(tid, &mut row, &column.at) } {
                self.roll_back_to(undo, start);
                return Err(error.into());
            }
            let mut was_null = false;
            // SAFETY: as above; both blocks are private.
            let image = unsafe {
                if column.nullable {
                    was_null = self.rows.known_is_null(row, &column.at);
                    self.rows.known_null(row, &column.at, null(n));
                }
                let place = self.rows.known_place(row, &column.at);
                match column.at.width {
                    1 => image::<1>(place),
                    2 => image::<2>(place),
                    4 => image::<4>(place),
                    8 => image::<8>(place),
                    _ => image::<16>(place),
                }
            };
            undo.push(self.id, known, Change::Wrote { column: column.at.column, was_null, image });
        }
        debug_assert!(self.rows.is_live(tid), "only live rows are changed");
        Ok(())
    }

    /// Writes values that the columns take; zeroes for NULL, whose bit is the caller's.
    ///
    /// # Safety
    /// P-1: `columns` are of this table's layout, of fixed width, and lie as `LIE` says. S-1: a row lives
    /// at `tid`, in private blocks.
    #[inline(always)]
    unsafe fn write_all<const LIE: u8>(&mut self, tid: Tid, columns: &[CellColumn], cells: &[Cell]) {
        // SAFETY: P-1 and S-1, located just now.
        unsafe {
            let spot =
                spot_by::<LIE>(&self.rows, self.rows.locate(tid), columns.first().map(|column| &column.at));
            for (column, &cell) in columns.iter().zip(cells) {
                let value = if cell.is_null() { Cell::of(0) } else { cell };
                column.write::<LIE>(&self.rows, spot, value);
            }
        }
    }

    /// Why a row of these cells cannot be inserted, as [`Table::insert_values`] says it: NULLs first, and
    /// in the order of the table's columns.
    #[cold]
    #[inline(never)]
    pub(super) fn refusal(&self, shape: &CellShape, cells: Cells<'_>) -> TableError {
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
pub(super) unsafe fn put_all<const LIE: u8>(
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
            let Some(value) = column.or_zeroes(cell) else { return Ok(false) };
            let put = match column.form {
                Form::Inline(_) | Form::View | Form::Bytea => {
                    let slot = address::<LIE>(row.rows_ref(), spot, &column.at, column.at.width as usize);
                    column.put_text(row, slot, value.lo, value.hi)?
                }
                _ => match column.write::<LIE>(row.rows_ref(), spot, value) {
                    true => Put::Here,
                    false => Put::Nowhere,
                },
            };
            match put {
                Put::Here => {}
                Put::InHeap => spot = spot_by::<LIE>(row.rows_ref(), row.place(), first),
                Put::Nowhere => return Ok(false),
            }
            if column.nullable {
                row.rows().known_null(spot.row, &column.at, cell.is_null());
            }
        }
    }
    Ok(true)
}

/// Where a new row's value was put.
enum Put {
    /// In its slot.
    Here,
    /// In the heap, so that the directory may have changed.
    InHeap,
    /// The column does not take it.
    Nowhere,
}

/// The bytes at a place, and zeroes behind, as they are logged.
///
/// # Safety
/// `N` bytes may be read there.
#[inline(always)]
unsafe fn image<const N: usize>(place: *const u8) -> Image {
    let mut image = [0; 16];
    // SAFETY: the caller's.
    image[..N].copy_from_slice(&unsafe { place.cast::<[u8; N]>().read() });
    Image::Here(image)
}

/// Writes bytes.
///
/// # Safety
/// They may be written at `place`.
#[inline(always)]
unsafe fn put<const N: usize>(place: *mut u8, bytes: [u8; N]) {
    // SAFETY: the caller's.
    unsafe { place.cast::<[u8; N]>().write_unaligned(bytes) };
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

    /// Writes a value of fixed width; its NULL bit is the caller's. Tells whether the column takes it; if not,
    /// nothing was written.
    ///
    /// # Safety
    /// P-1 of [`put_all`]; `spot` is where the row is, which may be written.
    #[inline(always)]
    unsafe fn write<const LIE: u8>(&self, rows: &Rows, spot: Spot, cell: Cell) -> bool {
        // SAFETY: P-1; as many bytes lie there, because the form is that of the column's type.
        unsafe {
            let place = |width| address::<LIE>(rows, spot, &self.at, width);
            let Cell { lo, .. } = cell;
            match self.form {
                Form::Bool => put(place(1), [u8::from(lo != 0)]),
                Form::I16 => put(place(2), (lo as u16).to_le_bytes()),
                Form::I32 | Form::F32 => put(place(4), (lo as u32).to_le_bytes()),
                Form::I64 | Form::F64 => put(place(8), lo.to_le_bytes()),
                Form::Decimal64 if self.takes_decimal64(cell) => put(place(8), lo.to_le_bytes()),
                Form::Decimal128 if has_digits(cell.unscaled(), self.digits) => {
                    put(place(16), cell.unscaled().to_le_bytes());
                }
                Form::Uuid => put(place(16), cell.unscaled().to_le_bytes()),
                _ => return false,
            }
        }
        true
    }

    /// Writes a text or byte string of a new row; its NULL bit is the caller's. Out of line, so that
    /// columns of fixed width have the registers.
    ///
    /// # Safety
    /// P-1 and P-2 of [`put_all`], of the cell with `lo` and `hi`, which are zeroes for NULL; `slot` is
    /// where the value of the new row is.
    #[inline(never)]
    unsafe fn put_text(
        &self,
        row: &mut NewRow<'_>,
        slot: *mut u8,
        lo: u64,
        hi: u64,
    ) -> Result<Put, TableError> {
        // SAFETY: P-2.
        let Some(bytes) = (unsafe { self.stored(Cell::of_two(lo, hi)) }) else { return Ok(Put::Nowhere) };
        // SAFETY: P-1; the slot has `1 + capacity` bytes, or is a view, and `bytes` is not in it (S-2 of
        // `Cells`).
        unsafe {
            match self.form {
                Form::Inline(capacity) if bytes.len() <= capacity as usize => {
                    *slot = bytes.len() as u8;
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), slot.add(1), bytes.len());
                }
                Form::View | Form::Bytea if bytes.len() <= VIEW_INLINE_BYTES => {
                    slot.cast::<[u8; 16]>().write_unaligned(View::short(bytes).0);
                }
                _ => {
                    row.set_bytes(&self.at, bytes)?;
                    return Ok(Put::InHeap);
                }
            }
        }
        Ok(Put::Here)
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
