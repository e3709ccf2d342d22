//! Rows of tables: found by indexes, addressed for generated code, kept for loops.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, TableId, Tid, Value};
use albireo_execute::query::{self, Search};
use albireo_execute::{Host as _, LiveRows};
use albireo_partition::{Site, TableHandle};
use albireo_plpgsql::plan;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::query::tree::{Bound, IndexUse};
use albireo_storage::{Cell, ColumnSet, IndexRef, RowLines, ShortKey, Table, Thawed};

use super::keys::Part;
use super::statements::{Cursor, DONE};
use super::{Arena, Context, OK, guard, values};
use crate::kind::Kind;

/// A row at hand, as generated code has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RowAt {
    /// The first entry of its chunk.
    pub(crate) entries: *const u8,
    /// Its slot there.
    pub(crate) slot: u64,
    pub(crate) tid: Tid,
    pub(crate) site: u64,
}

/// Where [`RowAt::entries`] and [`RowAt::slot`] are. In an answer to a search they tell where its rows are and
/// how many.
pub(crate) const ENTRIES_OFFSET: i32 = 0;
pub(crate) const SLOT_OFFSET: i32 = 8;

/// An index of a table.
pub(crate) struct IndexOf {
    pub(crate) table: TableHandle,
    pub(crate) layout: u64,
    pub(crate) index: IndexRef,
    /// Bytes of the key of a lookup by whole numbers.
    pub(crate) bytes: u32,
}

/// What generated code looks for in a table.
pub(crate) struct Access {
    pub(crate) of: IndexOf,
    /// What the plan says; its bounds are the cells that come, in order.
    pub(crate) by: *const IndexUse,
    pub(crate) kinds: Box<[Kind]>,
    /// Widths of the columns in bytes, that of the range last, if they are whole numbers that cannot be
    /// NULL, compared with whole numbers.
    pub(crate) integers: Option<Box<[u8]>>,
    /// What the key is made of, if its last column is a text and those before are whole numbers.
    pub(crate) text_key: Option<Box<[Part]>>,
    pub(crate) site: At,
    /// What of a row is needed, if it is found by a key.
    pub(crate) lines: RowLines,
    /// What is read of its rows at their addresses.
    pub(crate) read: ReadColumns,
    /// Whether it is changed then.
    pub(crate) changes: bool,
    /// The number of this search in its routine.
    pub(crate) number: usize,
}

/// The columns of a row that code reads at its address. Whoever makes code to read one adds it, so that all are there when
/// the code runs.
#[derive(Clone, Default, Debug)]
pub(crate) struct ReadColumns(Arc<AtomicU64>);

impl ReadColumns {
    /// One more is read.
    pub(crate) fn add(&self, column: ColumnId) {
        self.0.fetch_or(ColumnSet::of([column]).bits(), Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> ColumnSet {
        ColumnSet::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// In which partition rows are.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// In the first, as those of shared tables.
    Shared,
    /// In that of the whole number in this cell.
    Key(usize),
    /// In that of the value in this cell, as the plan says.
    Bound(usize, *const Bound),
    /// In that of the value in this cell, which is of this column type.
    Column(usize, SqlType),
    /// In any.
    Anywhere,
}

// SAFETY: it is never changed, nor what it points at.
unsafe impl Send for Access {}
// SAFETY: as above.
unsafe impl Sync for Access {}

impl IndexOf {
    /// The table's part in a partition.
    fn table<'s>(&self, live: &'s LiveRows<'_>, site: Site) -> &'s Table {
        let table = live.tx.table_at(site, self.table);
        assert!(table.layout_id() == self.layout, "code is made anew when a table is");
        table
    }

    /// The table's part where the rows are whose partitioning column holds `place`.
    pub(super) fn table_of_key<'s>(
        &self,
        live: &'s LiveRows<'_>,
        place: i64,
    ) -> Result<(Site, &'s Table), Stop> {
        let (site, table) = live.table_of_key(self.table, place)?;
        assert!(table.layout_id() == self.layout, "code is made anew when a table is");
        Ok((site, table))
    }

    /// The key whose bits these are.
    pub(super) fn key(&self, [high, low]: [u64; 2]) -> ShortKey {
        ShortKey::from_bits(u128::from(high) << 64 | u128::from(low), self.bytes)
    }
}

/// Turns the cells of an access into values, one after another.
fn value_at(context: &Context<'_>, kinds: &[Kind], cells: &[Cell], n: usize) -> Value {
    match (kinds.get(n), cells.get(n)) {
        (Some(kind), Some(cell)) => match context.datum(cell, *kind) {
            Datum::Value(value) => value,
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

impl Context<'_> {
    /// Where the rows of an access can be; nowhere if its value is NULL or none of the column's.
    fn sites(&mut self, access: &Access, cells: &[Cell]) -> Result<Sites, Stop> {
        Ok(match access.site {
            At::Shared => Sites::One(self.machine.live.tx.home()),
            At::Key(n) => match values::is_null(&cells[n]) {
                true => Sites::None,
                false => Sites::One(self.machine.live.site_of_key(cells[n].lo as i64)?),
            },
            At::Bound(n, bound) => {
                let value = value_at(self, &access.kinds, cells, n);
                // SAFETY: R-2.
                match plan::key_of(value, unsafe { &*bound }) {
                    Some(key) => Sites::One(self.machine.live.site_of(access.of.table.id(), &key)?),
                    None => Sites::None,
                }
            }
            At::Column(..) | At::Anywhere => Sites::Many(self.machine.live.all_sites(access.of.table.id())?),
        })
    }

    /// The rows of an access in a partition, behind those found before; notes what it reads.
    fn collect(&mut self, access: &Access, cells: &[Cell], site: Site, most: usize) -> Result<(), Stop> {
        let mut found = std::mem::take(&mut self.space.searches[access.number]);
        let before = found.len();
        let range = self.collect_into(access, cells, site, most, &mut found);
        let tx = &mut self.machine.live.tx;
        if let Ok(Some((low, high))) = range
            && tx.notes_reads()
        {
            let table = access.of.table.id();
            tx.note_range(site, table, access.of.index.id(), low, high);
            found[before..].iter().for_each(|(site, tid)| tx.note_row(*site, table, *tid));
        }
        self.space.searches[access.number] = found;
        range.map(drop)
    }

    /// As [`Context::collect`], and gives the beginnings of keys between which it looked; none if there can be no row.
    fn collect_into(
        &mut self,
        access: &Access,
        cells: &[Cell],
        site: Site,
        most: usize,
        found: &mut Vec<(Site, Tid)>,
    ) -> Result<Option<(u128, u128)>, Stop> {
        // SAFETY: R-2.
        let by = unsafe { &*access.by };
        if let Some(widths) = &access.integers {
            let Some((low, high)) = access.short_range(widths, cells) else { return Ok(None) };
            let table = access.of.table(&self.machine.live, site);
            let rows = table.between(access.of.index, low, high);
            match by.backward {
                true => found.extend(rows.rev().take(most).map(|tid| (site, tid))),
                false => found.extend(rows.take(most).map(|tid| (site, tid))),
            }
            return Ok(Some((low, high)));
        }
        if let Some(parts) = &access.text_key {
            let Some(range) = access.text_range(parts, cells) else { return Ok(None) };
            let table = access.of.table(&self.machine.live, site);
            let rows = table.between(access.of.index, range.low, range.high);
            let wanted = |tid: &Tid| range.wants(table, *tid);
            match by.backward {
                true => found.extend(rows.rev().filter(wanted).take(most).map(|tid| (site, tid))),
                false => found.extend(rows.filter(wanted).take(most).map(|tid| (site, tid))),
            }
            return Ok(Some((range.low, range.high)));
        }
        let mut n = 0;
        let search = query::search_of(by, &mut |_| {
            n += 1;
            Ok(value_at(self, &access.kinds, cells, n - 1))
        })?;
        let table = access.of.table(&self.machine.live, site);
        let keep = |tid| (site, tid);
        Ok(match search {
            Search::Nothing | Search::Everything => None,
            Search::Equal(key) => {
                found.extend(table.find_all(access.of.index, key.key()).into_iter().take(most).map(keep));
                Some((key.key().prefix, key.key().prefix))
            }
            Search::Between { low, high, backward, tests } => {
                let wanted = |tid: &Tid| tests.iter().all(|test| test.holds(table, *tid));
                let rows = table.between(access.of.index, low, high);
                match backward {
                    true => found.extend(rows.rev().filter(wanted).take(most).map(keep)),
                    false => found.extend(rows.filter(wanted).take(most).map(keep)),
                }
                Some((low, high))
            }
        })
    }

    /// Notes what was found of a key that at most one row has. While that row stays as it is no other gets its key, so
    /// the key matters if there is none.
    #[inline]
    pub(super) fn note_found(&mut self, of: &IndexOf, site: Site, key: ShortKey, tid: Option<Tid>) {
        match tid {
            Some(tid) => self.machine.live.tx.note_row(site, of.table.id(), tid),
            None => self.note_keys(of, site, key),
        }
    }

    /// Notes that rows whose keys begin so were looked for.
    #[inline]
    pub(super) fn note_keys(&mut self, of: &IndexOf, site: Site, key: ShortKey) {
        let (low, high) = key.range();
        self.machine.live.tx.note_range(site, of.table.id(), of.index.id(), low, high);
    }
}

/// The partitions where rows can be.
enum Sites {
    None,
    One(Site),
    Many(Vec<Site>),
}

/// As [`find`], by a key of whole numbers, whose bits these are; `place` says in which partition the row is.
pub(crate) unsafe extern "C" fn find_short(
    context: *mut Context<'_>,
    access: *const Access,
    high: u64,
    low: u64,
    place: i64,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2, and generated code passes room for a row.
        let (access, row) = unsafe { (&*access, &mut *row) };
        let (site, table) = access.of.table_of_key(&context.machine.live, place)?;
        let key = access.of.key([high, low]);
        let found = table.find(access.of.index, key);
        if let Some(tid) = found {
            // All at once, rather than each when its column is read.
            table.prefetch_row(tid, &access.lines);
            if access.changes {
                table.prefetch_liveness(tid);
            }
            *row = row_at(table, site, tid, access.read.get(), context.space.thawed[access.number].emptied());
        }
        context.note_found(&access.of, site, key, found);
        Ok(if found.is_some() { OK } else { DONE })
    })
}

/// Finds the row of a key that at most one has: [`OK`], [`DONE`] without one, or an error.
pub(crate) unsafe extern "C" fn find(
    context: *mut Context<'_>,
    access: *const Access,
    cells: *const Cell,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let access = unsafe { &*access };
        // SAFETY: generated code passes as many cells as the access has kinds, and room for a row.
        let (cells, row) = unsafe { (std::slice::from_raw_parts(cells, access.kinds.len()), &mut *row) };
        context.look(access, cells, 1)?;
        match context.space.searches[access.number].first() {
            Some((site, tid)) => {
                let (site, tid) = (*site, *tid);
                let table = access.of.table(&context.machine.live, site);
                *row = row_at(
                    table,
                    site,
                    tid,
                    access.read.get(),
                    context.space.thawed[access.number].emptied(),
                );
                Ok(OK)
            }
            None => Ok(DONE),
        }
    })
}

impl Context<'_> {
    /// Makes the rows of a search those of an access, at most `most` in a partition.
    fn look(&mut self, access: &Access, cells: &[Cell], most: usize) -> Result<(), Stop> {
        self.space.searches[access.number].clear();
        match self.sites(access, cells)? {
            Sites::None => Ok(()),
            Sites::One(site) => self.collect(access, cells, site, most),
            Sites::Many(all) => all.into_iter().try_for_each(|site| self.collect(access, cells, site, most)),
        }
    }
}

impl RowAt {
    /// The partition where it is.
    pub(super) fn site(&self, live: &LiveRows<'_>) -> Site {
        live.tx.site(self.site as u16)
    }

    /// The part of its table where it is.
    fn table<'s>(&self, live: &'s LiveRows<'_>, table: TableHandle) -> &'s Table {
        live.tx.table_at(self.site(live), table)
    }
}

/// Where some columns of a row are that can be read; what is frozen is thawed, and stays there until `thawed` is cleared.
pub(crate) fn row_at(table: &Table, site: Site, tid: Tid, columns: ColumnSet, thawed: &mut Thawed) -> RowAt {
    let at = table.readable_row(tid, columns, thawed);
    RowAt { entries: at.entries, slot: at.slot, tid, site: u64::from(site.number()) }
}

/// Where a row is that was written just now.
pub(crate) fn written_row_at(table: &Table, site: Site, tid: Tid) -> RowAt {
    let at = table.row_address(tid).expect("a row that was written has an address");
    RowAt { entries: at.entries, slot: at.slot, tid, site: u64::from(site.number()) }
}

/// Looks for rows, at most `most` in a partition if it says so; `count` gets how many there are.
pub(crate) unsafe extern "C" fn search(
    context: *mut Context<'_>,
    access: *const Access,
    cells: *const Cell,
    most: u64,
    count: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let access = unsafe { &*access };
        // SAFETY: generated code passes as many cells as the access has kinds, and room for a cell.
        let (cells, count) = unsafe { (std::slice::from_raw_parts(cells, access.kinds.len()), &mut *count) };
        context.look(access, cells, most as usize)?;
        *count = values::number(context.space.searches[access.number].len() as u64);
        Ok(OK)
    })
}

/// As [`search`], of rows that nothing changes while they are looked at: `found` gets the address of the
/// first, a [`RowAt`], in its first word, and how many there are in its second.
pub(crate) unsafe extern "C" fn search_rows(
    context: *mut Context<'_>,
    access: *const Access,
    cells: *const Cell,
    most: u64,
    found: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let access = unsafe { &*access };
        // SAFETY: generated code passes as many cells as the access has kinds, and room for a cell.
        let (cells, found) = unsafe { (std::slice::from_raw_parts(cells, access.kinds.len()), &mut *found) };
        context.look(access, cells, most as usize)?;
        let live = &mut context.machine.live;
        let tids = &context.space.searches[access.number];
        for _ in 0..=tids.len() / ROWS {
            live.check_interrupt()?;
        }
        let rows = &mut context.space.rows[access.number];
        rows.clear();
        let thawed = context.space.thawed[access.number].emptied();
        let (mut at, columns) = (None, access.read.get());
        for &(site, tid) in tids {
            let table = match at {
                Some((known, table)) if known == site => table,
                _ => access.of.table(live, site),
            };
            at = Some((site, table));
            rows.push(row_at(table, site, tid, columns, thawed));
        }
        debug_assert_eq!(rows.len(), tids.len(), "each row that was found has an address");
        let growth = thawed.growth();
        if growth > 0 {
            context.machine.take_memory(growth)?;
        }
        let rows = &context.space.rows[access.number];
        *found = Cell::of_two(rows.as_ptr().expose_provenance() as u64, rows.len() as u64);
        Ok(OK)
    })
}

/// Interrupts are asked for once in so many rows.
pub(super) const ROWS: usize = 256;

/// The `n`th row that a search found: [`OK`], or [`DONE`] if it has been deleted meanwhile.
pub(crate) unsafe extern "C" fn row(
    context: *mut Context<'_>,
    access: *const Access,
    n: u64,
    row: *mut RowAt,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2.
        let access = unsafe { &*access };
        context.machine.live.check_interrupt()?;
        let (site, tid) = context.space.searches[access.number][n as usize];
        let table = access.of.table(&context.machine.live, site);
        if !table.is_live(tid) {
            return Ok(DONE);
        }
        // SAFETY: generated code passes room for a row.
        unsafe {
            *row = row_at(table, site, tid, access.read.get(), context.space.thawed[access.number].emptied())
        };
        Ok(OK)
    })
}

/// A table as generated code names it.
pub(crate) fn table_of(code: u64) -> TableHandle {
    TableHandle::new(TableId(code as u32), code >> 32 != 0)
}

/// The number that [`table_of`] reads.
pub(crate) fn code_of(table: TableHandle) -> u64 {
    u64::from(table.id().0) | u64::from(table.is_shared()) << 32
}

/// A column of a row, of any type.
pub(crate) unsafe extern "C" fn column(
    context: *mut Context<'_>,
    table: u64,
    row: *const RowAt,
    column: u32,
    kind: u64,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a row's address.
        let row = unsafe { &*row };
        let table = table_of(table);
        let table = row.table(&context.machine.live, table);
        let value = table.value(row.tid, ColumnId(column as u16));
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(value.into(), Kind::from_code(kind))? };
        Ok(OK)
    })
}

/// A text of a row that does not lie with it.
pub(crate) unsafe extern "C" fn text(
    context: *mut Context<'_>,
    table: u64,
    row: *const RowAt,
    column: u32,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a row's address.
        let row = unsafe { &*row };
        let table = table_of(table);
        let table = row.table(&context.machine.live, table);
        let cell = match table.text_bytes_at(row.tid, ColumnId(column as u16)) {
            Cow::Borrowed(text) => Cell::of_bytes(text),
            Cow::Owned(text) => {
                let cell = context.keep_bytes(&text);
                let growth = context.space.arena.growth();
                if growth > 0 {
                    context.machine.take_memory(growth)?;
                }
                cell
            }
        };
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = cell };
        Ok(OK)
    })
}

/// Rows that generated code keeps for a loop.
pub(crate) struct Buffer {
    cells: Vec<Cell>,
    width: usize,
    next: usize,
    texts: Arena,
}

/// Begins to keep rows of so many cells.
pub(crate) unsafe extern "C" fn open_buffer(context: *mut Context<'_>, width: u64) -> u32 {
    guard(context, |context| {
        let width = width as usize;
        let buffer = Buffer { cells: Vec::new(), width, next: 0, texts: Arena::default() };
        context.space.cursors.push(Cursor::Cells(buffer));
        Ok(OK)
    })
}

/// Keeps a row. Bit `n` of `texts` says that cell `n` is a text.
pub(crate) unsafe extern "C" fn keep_row(context: *mut Context<'_>, cells: *const Cell, texts: u64) -> u32 {
    guard(context, |context| {
        let Some(Cursor::Cells(buffer)) = context.space.cursors.last_mut() else { return Ok(OK) };
        // SAFETY: generated code passes as many cells as the buffer was opened with.
        let cells = unsafe { std::slice::from_raw_parts(cells, buffer.width) };
        let mut bytes = size_of_val(cells);
        for (n, cell) in cells.iter().enumerate() {
            let mut kept = *cell;
            if texts >> n & 1 == 1 && !values::is_null(cell) {
                // SAFETY: R-3.
                let text = unsafe { values::text(cell) };
                kept.lo = buffer.texts.keep(text.as_bytes()).expose_provenance() as u64;
                bytes += text.len();
            }
            buffer.cells.push(kept);
        }
        context.machine.take_memory(bytes)?;
        Ok(OK)
    })
}

/// The next row that was kept: its cells' address, or 0 after the last.
pub(crate) unsafe extern "C" fn kept_row(context: *mut Context<'_>) -> u64 {
    // SAFETY: R-1.
    let context = unsafe { &mut *context };
    let Some(Cursor::Cells(buffer)) = context.space.cursors.last_mut() else { return 0 };
    debug_assert!(buffer.width == 0 || buffer.cells.len().is_multiple_of(buffer.width), "rows are whole");
    let at = buffer.next * buffer.width;
    buffer.next += 1;
    match buffer.cells.get(at..at + buffer.width) {
        Some(row) if buffer.width > 0 => row.as_ptr().expose_provenance() as u64,
        _ => 0,
    }
}

/// Values met by an aggregate that counts each once.
#[derive(Default)]
pub(crate) struct Distinct {
    numbers: HashSet<u64>,
    texts: HashSet<Box<[u8]>>,
}

/// Sets for so many values are kept for the next call.
const KEPT_VALUES: usize = 4096;

impl Distinct {
    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        if self.numbers.capacity() > KEPT_VALUES {
            self.numbers = HashSet::default();
        }
        self.numbers.clear();
        self.texts = HashSet::default();
    }
}

/// Forgets what an aggregate has met.
pub(crate) unsafe extern "C" fn no_values(context: *mut Context<'_>, number: u64) -> u32 {
    guard(context, |context| {
        context.space.distinct[number as usize].clear();
        Ok(OK)
    })
}

/// Whether an aggregate has not met a value before: 1 or 0, by `out`.
pub(crate) unsafe extern "C" fn is_first(
    context: *mut Context<'_>,
    number: u64,
    cell: *const Cell,
    is_text: u32,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes two cells' addresses.
        let (cell, out) = unsafe { (&*cell, &mut *out) };
        let distinct = &mut context.space.distinct[number as usize];
        let first = match is_text != 0 {
            true => {
                // SAFETY: a text; R-3.
                let text = unsafe { values::text(cell) };
                distinct.texts.insert(text.as_bytes().into())
            }
            false => distinct.numbers.insert(cell.lo),
        };
        if first {
            context.machine.take_memory(32 + if is_text != 0 { cell.hi as usize } else { 0 })?;
        }
        *out = values::number(u64::from(first));
        Ok(OK)
    })
}

/// A number of rows for LIMIT or OFFSET that is negative.
pub(crate) unsafe extern "C" fn negative_count(context: *mut Context<'_>, offset: u32) -> u32 {
    guard(context, |_| {
        let (what, state) = match offset {
            0 => ("LIMIT", SqlState::INVALID_ROW_COUNT_IN_LIMIT),
            _ => ("OFFSET", SqlState::INVALID_ROW_COUNT_IN_OFFSET),
        };
        Err(SqlError::new(state, format!("{what} must not be negative")).into())
    })
}
