//! A transaction's net effect as a write record.

use std::borrow::Cow;

use albireo_base::packed::put_number;
use albireo_base::{ColumnId, Tid};

use super::SHARED_SITE;
use super::collect::{Fate, Span, Touched, WriteSet, Written, rows};
use super::value::put_value;
use crate::layout::ColumnLocation;
use crate::rows::Rows;
use crate::table::{Staging, Table};
use crate::undo::{Change, UndoLog};

/// Appends what the running transaction wrote to `out`, in the form that the module's documentation tells.
/// `table_of` gives a table by site and id, as undo records have them; `named` says which site the record names instead.
pub fn encode_writes<'t>(
    set: &WriteSet,
    undo: &UndoLog,
    named: impl Fn(u16) -> u16,
    table_of: impl Fn(u16, u32) -> &'t Table,
    out: &mut Vec<u8>,
) {
    let named = |site| if site == SHARED_SITE { site } else { named(site) };
    encode(set.tables(), undo, named, table_of, out);
}

/// As [`encode_writes`], of what was written at one site alone, as if it were the only one.
pub fn encode_part<'t>(
    set: &WriteSet,
    undo: &UndoLog,
    site: u16,
    table_of: impl Fn(u16, u32) -> &'t Table,
    out: &mut Vec<u8>,
) {
    let part = set.tables().filter(|written| written.site == site);
    encode(part, undo, |site| if site == SHARED_SITE { site } else { 0 }, table_of, out);
}

fn encode<'s, 't>(
    tables: impl Iterator<Item = Written<'s>>,
    undo: &'s UndoLog,
    named: impl Fn(u16) -> u16,
    table_of: impl Fn(u16, u32) -> &'t Table,
    out: &mut Vec<u8>,
) {
    let mut parts = Parts::default();
    for written in tables {
        let Written { site, table, spans, .. } = written;
        let group = Group { table: table_of(site, table), undo };
        parts.sort(&group, written);
        if parts.is_empty() {
            continue;
        }
        let site = named(site);
        put_number(out, if site == SHARED_SITE { 0 } else { u64::from(site) + 1 });
        put_number(out, u64::from(table));
        put_number(out, parts.leaving.len() as u64);
        for row in &parts.leaving {
            group.identity_before(*row, out);
        }
        put_number(out, parts.staying.len() as u64);
        group.updates(&parts.staying, out);
        assert!(parts.gone.len() as u64 <= parts.appended, "only rows that were appended went again");
        let appended = parts.appended - parts.gone.len() as u64;
        put_number(out, parts.coming.len() as u64 + appended);
        for row in &parts.coming {
            group.row(row.tid, out);
        }
        if appended > 0 {
            group.spans(spans, &parts.gone, out);
        }
    }
}

/// The rows of a table by what is to be done first, second and last.
#[derive(Default)]
struct Parts<'a> {
    /// Deleted, or with another key.
    leaving: Vec<Touched<'a>>,
    /// Updated, with the same keys.
    staying: Vec<Touched<'a>>,
    /// Inserted, or with another key.
    coming: Vec<Touched<'a>>,
    /// How many rows were appended, and which of them were deleted again, in order.
    appended: u64,
    gone: Vec<u64>,
}

impl<'a> Parts<'a> {
    fn sort(&mut self, group: &Group<'_>, written: Written<'a>) {
        self.leaving.clear();
        self.staying.clear();
        self.coming.clear();
        self.gone.clear();
        let Written { runs, spans, .. } = written;
        self.appended = spans.iter().map(|span| span.rows).sum();
        for row in rows(runs) {
            let span = spans[..spans.partition_point(|span| span.first <= row.tid.0)].last();
            if span.is_some_and(|span| span.has(row.tid.0)) {
                // Whatever else became of it, it is written as it is now.
                if row.fate(group.undo) == Fate::Deleted {
                    self.gone.push(row.tid.0);
                }
                continue;
            }
            match row.fate(group.undo) {
                Fate::Nothing => {}
                Fate::Inserted => self.coming.push(row),
                Fate::Deleted => self.leaving.push(row),
                Fate::Updated if group.rekeyed(row) => {
                    self.leaving.push(row);
                    self.coming.push(row);
                }
                Fate::Updated => self.staying.push(row),
            }
        }
    }

    fn is_empty(&self) -> bool {
        let singly = self.leaving.len() + self.staying.len() + self.coming.len();
        singly == 0 && self.appended == self.gone.len() as u64
    }
}

/// One table and the transaction's undo records.
struct Group<'a> {
    table: &'a Table,
    undo: &'a UndoLog,
}

impl Group<'_> {
    /// Whether a key of a unique index may have changed.
    fn rekeyed(&self, row: Touched<'_>) -> bool {
        let wrote = |change: &Change| match change {
            Change::Wrote { column, .. } => self.table.identity.is_in_unique_key(*column),
            _ => false,
        };
        row.records(self.undo).any(|record| wrote(&record.change))
    }

    fn updates(&self, rows: &[Touched<'_>], out: &mut Vec<u8>) {
        let (mut columns, mut before) = (Vec::new(), Vec::new());
        for row in rows {
            row.columns(self.undo, &mut columns);
            if columns == before {
                out.push(0);
            } else {
                put_number(out, columns.len() as u64);
                columns.iter().for_each(|column| put_number(out, u64::from(column.0)));
                before.clone_from(&columns);
            }
            let layout = self.table.layout();
            match self.table.identity.is_unique {
                // Else the row would have another key, and be one that leaves and comes.
                true => self.values_now(row.tid, 0, self.table.identity.columns.iter(), out),
                false => self.identity_before(*row, out),
            }
            let nullable = columns.iter().filter(|column| layout.column(**column).nullable()).count();
            self.values_now(row.tid, nullable, columns.iter(), out);
        }
    }

    /// The identity that a row had when the transaction began.
    fn identity_before(&self, row: Touched<'_>, out: &mut Vec<u8>) {
        let columns = self.table.identity.columns.iter().copied();
        self.values(columns, out, |wanted| {
            let mut records = row.records(self.undo).map(|record| &record.change);
            let first =
                records.find(|change| matches!(change, Change::Wrote { column, .. } if *column == wanted));
            match first {
                Some(Change::Wrote { was_null, image, .. }) => {
                    let width = self.table.layout().column(wanted).width as usize;
                    let slot = self.table.rows.slot_of(row.tid);
                    let value = SlotValue::Lies(slot, self.undo.bytes_of(image, width));
                    Slot { null: *was_null, value }
                }
                _ => self.now(row.tid, wanted),
            }
        });
    }

    /// All values of a row.
    fn row(&self, tid: Tid, out: &mut Vec<u8>) {
        let columns = self.table.layout().columns();
        self.locations_now(tid, self.table.identity.nullable, columns.iter(), out);
    }

    /// All values of rows that were appended, but for those that are `gone`.
    fn spans(&self, spans: &[Span], gone: &[u64], out: &mut Vec<u8>) {
        let columns = self.table.layout().columns();
        let mut gone = gone.iter().peekable();
        for tid in spans.iter().flat_map(|span| span.first..span.first + span.rows) {
            if gone.next_if_eq(&&tid).is_none() {
                self.locations_now(Tid(tid), self.table.identity.nullable, columns.iter(), out);
            }
        }
        assert!(gone.peek().is_none(), "the rows that went again are of the spans");
    }

    /// Values of a row as they are now; `nullable` of the columns take NULL.
    #[inline]
    fn values_now<'c>(
        &self,
        tid: Tid,
        nullable: usize,
        columns: impl Iterator<Item = &'c ColumnId>,
        out: &mut Vec<u8>,
    ) {
        let layout = self.table.layout();
        self.locations_now(tid, nullable, columns.map(|column| layout.column(*column)), out);
    }

    /// [`Group::values_now`] by where the columns lie: the row is found once for all of them.
    #[inline]
    fn locations_now<'c>(
        &self,
        tid: Tid,
        nullable: usize,
        columns: impl Iterator<Item = &'c ColumnLocation>,
        out: &mut Vec<u8>,
    ) {
        put_row(&self.table.rows, tid, nullable, columns, out);
    }

    fn now(&self, tid: Tid, column: ColumnId) -> Slot<'_> {
        let (rows, at) = (&self.table.rows, self.table.layout().column(column));
        let slot = rows.slot_of(tid);
        let value = match rows.frozen_chunk(slot) {
            None => SlotValue::Lies(slot, rows.raw(slot, at)),
            Some(chunk) if at.physical.is_string() => SlotValue::Text(chunk.text(column, slot.slot())),
            Some(chunk) => SlotValue::Fixed(chunk.fixed(column, slot.slot()).to_le_bytes()),
        };
        Slot { null: rows.is_null(slot, at), value }
    }

    /// Appends values, with the bits of their NULLs before.
    #[inline]
    fn values<'s>(
        &self,
        columns: impl Iterator<Item = ColumnId> + Clone,
        out: &mut Vec<u8>,
        slot_of: impl Fn(ColumnId) -> Slot<'s>,
    ) {
        let layout = self.table.layout();
        let nullable = columns.clone().filter(|column| layout.column(*column).nullable()).count();
        let bits = out.len();
        out.resize(bits + nullable.div_ceil(8), 0);
        let mut bit = 0;
        for column in columns {
            let at = layout.column(column);
            let slot = slot_of(column);
            if at.nullable() {
                out[bits + bit / 8] |= u8::from(slot.null) << (bit % 8);
                bit += 1;
                if slot.null {
                    continue;
                }
            }
            match slot.value {
                SlotValue::Lies(tid, bytes) if at.physical.is_string() => {
                    put_value(out, at.physical, bytes, self.table.rows.text_of(tid, at, bytes));
                }
                SlotValue::Lies(_, bytes) => put_value(out, at.physical, bytes, &[]),
                SlotValue::Text(text) => put_value(out, at.physical, &[], &text),
                SlotValue::Fixed(bytes) => put_value(out, at.physical, &bytes[..at.width as usize], &[]),
            }
        }
        debug_assert_eq!(bit, nullable, "there is a bit for each column that takes NULL");
    }
}

/// Appends values of a row as they are now; `nullable` of the columns take NULL.
#[inline]
fn put_row<'c>(
    rows: &Rows,
    tid: Tid,
    nullable: usize,
    columns: impl Iterator<Item = &'c ColumnLocation>,
    out: &mut Vec<u8>,
) {
    let (bits, mut bit) = (out.len(), 0);
    out.resize(bits + nullable.div_ceil(8), 0);
    debug_assert!(rows.is_live(tid), "only rows that are there are written as they are now");
    let tid = rows.slot_of(tid);
    let place = rows.locate(tid);
    for at in columns {
        if at.nullable() {
            // SAFETY: located above, and nothing has changed the directory, which is borrowed; the
            // columns are those of the table's layout.
            let null = unsafe { rows.known_is_null(place, at) };
            out[bits + bit / 8] |= u8::from(null) << (bit % 8);
            bit += 1;
            if null {
                continue;
            }
        }
        // SAFETY: as above; `width` bytes lie there by the layout's I-1, and nobody writes while the
        // table is borrowed.
        let slot = unsafe { std::slice::from_raw_parts(rows.known_place(place, at), usize::from(at.width)) };
        let text = if at.physical.is_string() { rows.text_of(tid, at, slot) } else { &[] };
        put_value(out, at.physical, slot, text);
    }
    debug_assert_eq!(bit, nullable, "there is a bit for each column that takes NULL");
}

/// Appends some of the rows that were laid down beside a table, by their numbers, as rows that come to it at a site.
pub fn encode_staged(staging: &Staging, numbers: std::ops::Range<u64>, site: u16, out: &mut Vec<u8>) {
    let (spec, rows, first) = staging.laid();
    put_number(out, if site == SHARED_SITE { 0 } else { u64::from(site) + 1 });
    put_number(out, u64::from(spec.id.0));
    put_number(out, 0);
    put_number(out, 0);
    put_number(out, numbers.end - numbers.start);
    let nullable = spec.columns.iter().filter(|column| column.nullable).count();
    for number in numbers {
        put_row(rows, Tid(first + number), nullable, rows.layout.columns().iter(), out);
    }
}

/// What a slot holds, or held.
struct Slot<'a> {
    null: bool,
    value: SlotValue<'a>,
}

enum SlotValue<'a> {
    /// Bytes as they lie, or lay, in the slot of this row.
    Lies(Tid, &'a [u8]),
    /// Those of a frozen row, as they would lie there.
    Fixed([u8; 16]),
    /// A text of a frozen row.
    Text(Cow<'a, [u8]>),
}
