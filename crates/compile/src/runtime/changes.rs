//! Changes of rows.

use std::sync::{Arc, OnceLock};

use albireo_base::{ColumnId, Value};
use albireo_partition::{Site, TableHandle};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_storage::{Cell, CellShape, Cells, FillShape, Filled, Table};

use super::rows::{At, ROWS, RowAt, table_of, written_row_at};
use super::statements::DONE;
use super::{Context, OK, guard, values};
use crate::kind::Kind;
use crate::layout::TableLayout;

/// A table that generated code changes, and the columns that it writes.
pub(crate) struct Writing {
    pub(crate) table: TableHandle,
    pub(crate) layout: Arc<TableLayout>,
    /// The columns of an UPDATE, in the order of the cells; of INSERT all are written.
    pub(crate) columns: Box<[ColumnId]>,
    /// Which of the cells says in which partition a new row is, and the column's type.
    pub(crate) site: At,
    pub(crate) shape: OnceLock<CellShape>,
    /// The same of an INSERT whose code writes the values of `columns` by itself.
    pub(crate) fill: OnceLock<FillShape>,
    /// Whether the address of a new row is used when it is one.
    pub(crate) returns: bool,
}

// SAFETY: it is never changed but for the shapes, once, nor what it points at.
unsafe impl Send for Writing {}
// SAFETY: as above.
unsafe impl Sync for Writing {}

impl Writing {
    /// Generated code writes to addresses that hold for the table's layout only.
    fn check(&self, table: &Table) {
        assert!(table.layout_id() == self.layout.id, "code is made anew when a table is");
    }
}

impl Context<'_> {
    fn home_of(&mut self, writing: &Writing, cells: &[Cell]) -> Result<Site, Stop> {
        match writing.site {
            At::Key(n) if !values::is_null(&cells[n]) => self.machine.live.site_of_key(cells[n].lo as i64),
            At::Column(n, ty) => {
                let value = match self.datum(&cells[n], Kind::of_column(ty)) {
                    Datum::Value(value) => value,
                    _ => Value::Null,
                };
                self.machine.live.site_of(writing.table.id(), &value)
            }
            At::Key(_) => self.machine.live.site_of(writing.table.id(), &Value::Null),
            At::Shared | At::Anywhere | At::Bound(..) => Ok(self.machine.live.tx.home()),
        }
    }
}

/// Inserts a row: a cell for each column; tells where it is unless `row` is null.
pub(crate) unsafe extern "C" fn insert(
    context: *mut Context<'_>,
    writing: *const Writing,
    cells: *const Cell,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let writing = unsafe { &*writing };
        let width = writing.layout.columns.len();
        // SAFETY: generated code passes a cell for each column, and room for a row or none.
        let (cells, row) = unsafe { (std::slice::from_raw_parts(cells, width), row.as_mut()) };
        let site = context.home_of(writing, cells)?;
        // SAFETY: their kinds are those of the columns, and texts are not in the table: generated code
        // has copied those that may be.
        let cells = unsafe { Cells::new(cells) };
        let live = &mut context.machine.live;
        let tid = live.insert_cells(site, writing.table, &writing.layout.whole, cells)?;
        if let Some(row) = row {
            *row = written_row_at(live.tx.table_at(site, writing.table), site, tid);
        }
        Ok(OK)
    })
}

/// Tells where the next row will be, whose partition `key` names unless the table is shared.
pub(crate) unsafe extern "C" fn vacant_row(
    context: *mut Context<'_>,
    writing: *const Writing,
    key: i64,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let writing = unsafe { &*writing };
        let live = &mut context.machine.live;
        let site = match writing.site {
            At::Key(_) => live.site_of_key(key)?,
            _ => live.tx.home(),
        };
        writing.check(live.tx.table_at(site, writing.table));
        let (tid, at) = live.vacant_row(site, writing.table)?;
        let vacant = RowAt { entries: at.entries, slot: at.slot, tid, site: u64::from(site.number()) };
        // SAFETY: generated code passes room for a row.
        unsafe { row.write(vacant) };
        Ok(OK)
    })
}

/// Makes a row of the values that generated code has written to a vacant one. Of the other columns there
/// are cells; `nulls` are the columns that are NULL.
pub(crate) unsafe extern "C" fn enter_row(
    context: *mut Context<'_>,
    writing: *const Writing,
    row: *mut RowAt,
    cells: *const Cell,
    nulls: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let writing = unsafe { &*writing };
        let others = writing.layout.columns.len() - writing.columns.len();
        // SAFETY: generated code passes a row, and a cell for each column that it has not written.
        let (cells, row) = unsafe { (std::slice::from_raw_parts(cells, others), &mut *row) };
        let live = &mut context.machine.live;
        let site = row.site(live);
        let shape =
            writing.fill.get_or_init(|| live.tx.table_at(site, writing.table).fill_shape(&writing.columns));
        // SAFETY: cells as of `insert`. Generated code calls nothing between `vacant_row` and this, and has
        // written values of the columns' kinds to all of `columns`, 0 for NULL.
        let filled = unsafe { Filled::new(row.tid, nulls, Cells::new(cells)) };
        live.enter_filled(site, writing.table, shape, filled)?;
        if writing.returns {
            *row = written_row_at(live.tx.table_at(site, writing.table), site, row.tid);
        }
        Ok(OK)
    })
}

/// Gives all rows that a search found the same new values.
pub(crate) unsafe extern "C" fn update_alike(
    context: *mut Context<'_>,
    writing: *const Writing,
    cells: *const Cell,
    rows: *const RowAt,
    count: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let writing = unsafe { &*writing };
        // SAFETY: generated code passes a cell for each column that is written, and as many rows as it says.
        let (cells, rows) = unsafe {
            let rows = if count == 0 { &[] } else { std::slice::from_raw_parts(rows, count as usize) };
            (std::slice::from_raw_parts(cells, writing.columns.len()), rows)
        };
        // SAFETY: as of `insert`.
        let cells = unsafe { Cells::new(cells) };
        let live = &mut context.machine.live;
        for (n, row) in rows.iter().enumerate() {
            let (site, tid) = (row.site(live), row.tid);
            if n % ROWS == 0 {
                live.check_interrupt()?;
            }
            let shape = writing
                .shape
                .get_or_init(|| live.tx.table_at(site, writing.table).cell_shape(&writing.columns));
            live.update_cells(site, writing.table, tid, shape, cells)?;
        }
        Ok(OK)
    })
}

/// Gives a row new values, and tells where it is then.
pub(crate) unsafe extern "C" fn update(
    context: *mut Context<'_>,
    writing: *const Writing,
    cells: *const Cell,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let writing = unsafe { &*writing };
        // SAFETY: generated code passes a cell for each column that is written, and a row.
        let (cells, row) = unsafe { (std::slice::from_raw_parts(cells, writing.columns.len()), &mut *row) };
        let live = &mut context.machine.live;
        let site = row.site(live);
        let shape =
            writing.shape.get_or_init(|| live.tx.table_at(site, writing.table).cell_shape(&writing.columns));
        // SAFETY: as of `insert`.
        let cells = unsafe { Cells::new(cells) };
        live.update_cells(site, writing.table, row.tid, shape, cells)?;
        // It has no address if it was not written: the transaction is in a pre-pass.
        if let Some(at) = live.tx.table_at(site, writing.table).row_address(row.tid) {
            (row.entries, row.slot) = (at.entries, at.slot);
        }
        Ok(OK)
    })
}

/// Gets a row ready for new values of the columns, which generated code writes next, and tells where it is
/// then; `nulls` are those that are NULL, a bit for each in order. [`DONE`]: they are for [`update`] to write.
pub(crate) unsafe extern "C" fn overwrite(
    context: *mut Context<'_>,
    writing: *const Writing,
    row: *mut RowAt,
    nulls: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2; generated code passes a row.
        let (writing, row) = unsafe { (&*writing, &mut *row) };
        let live = &mut context.machine.live;
        let site = row.site(live);
        let table = live.tx.table_at(site, writing.table);
        writing.check(table);
        let shape = writing.shape.get_or_init(|| table.cell_shape(&writing.columns));
        Ok(match live.overwrite(site, writing.table, row.tid, shape, nulls)? {
            None => DONE,
            Some(at) => {
                (row.entries, row.slot) = (at.entries, at.slot);
                OK
            }
        })
    })
}

/// Deletes a row.
pub(crate) unsafe extern "C" fn delete(context: *mut Context<'_>, table: u64, row: *const RowAt) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a row's address.
        let row = unsafe { &*row };
        let table = table_of(table);
        let live = &mut context.machine.live;
        live.delete_at(row.site(live), table, row.tid)?;
        Ok(OK)
    })
}
