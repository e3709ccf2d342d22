//! Inserting a row: values are written straight into their slots, then the row is published and
//! enters the indexes.

use albireo_base::{ColumnId, IndexId, Tid};

use super::{Table, TableError};
use crate::column::{Col, Fixed, TextCol, Unfit};
use crate::layout::{ColumnLocation, Physical, ZEROES};
use crate::pool::OutOfMemory;
use crate::rows::{NewSlot, RowPlace, Rows, heap_bytes_of};
use crate::undo::{Change, UndoLog};

/// A row being inserted. Values are set in any order; [`NewRow::finish`] makes it a row. Dropped
/// unfinished it never existed.
pub struct NewRow<'a> {
    table: &'a mut Table,
    undo: &'a mut UndoLog,
    slot: NewSlot,
    /// The slot's place; found again whenever a text has gone to the heap.
    place: RowPlace,
    given: Given,
    /// Texts of the row lie in a heap and are garbage unless it becomes a row.
    has_heap_text: bool,
    /// A column that was given more digits than it takes.
    overflow: Option<ColumnId>,
    /// Visible, but not yet in every index.
    is_published: bool,
}

/// Which columns have a value.
struct Given {
    first: u64,
    others: Vec<bool>,
}

impl Given {
    #[inline(always)]
    fn new(columns: usize) -> Self {
        let others = if columns > 64 { vec![false; columns - 64] } else { Vec::new() };
        Self { first: 0, others }
    }

    #[inline(always)]
    fn set(&mut self, column: ColumnId) {
        match column.0 {
            c @ 0..64 => self.first |= 1 << c,
            c => self.others[c as usize - 64] = true,
        }
    }

    fn has(&self, column: ColumnId) -> bool {
        match column.0 {
            c @ 0..64 => self.first >> c & 1 == 1,
            c => self.others[c as usize - 64],
        }
    }

    #[inline]
    fn all(&self, columns: usize) -> bool {
        let full = if columns >= 64 { u64::MAX } else { (1 << columns) - 1 };
        self.first == full && self.others.iter().all(|&given| given)
    }
}

impl Table {
    /// Begins a new row.
    #[inline(always)]
    pub fn insert<'a>(&'a mut self, undo: &'a mut UndoLog) -> Result<NewRow<'a>, OutOfMemory> {
        let slot = self.rows.new_slot()?;
        Ok(self.insert_at(undo, slot))
    }

    /// Begins a new row in a slot.
    #[inline(always)]
    pub(super) fn insert_at<'a>(&'a mut self, undo: &'a mut UndoLog, slot: NewSlot) -> NewRow<'a> {
        debug_assert!(!self.rows.is_live(slot.tid()), "a new row is not there yet");
        let place = self.rows.locate(slot.tid());
        let given = Given::new(self.columns);
        NewRow {
            table: self,
            undo,
            slot,
            place,
            given,
            has_heap_text: false,
            overflow: None,
            is_published: false,
        }
    }

    #[cold]
    pub(super) fn unfit(&self, column: ColumnId, text: &str, unfit: Unfit) -> TableError {
        unfit.error(self.spec.id, column, text)
    }
}

impl NewRow<'_> {
    pub(super) fn table(&self) -> &Table {
        self.table
    }

    /// Sets a fixed-width value. One with more digits than its DECIMAL column makes
    /// [`NewRow::finish`] fail.
    ///
    /// # Panics
    /// The handle belongs to another table.
    #[inline(always)]
    pub fn set<T: Fixed>(&mut self, column: Col<T>, value: T) -> &mut Self {
        debug_assert!(column.at.physical == T::PHYSICAL, "a handle has its column's type");
        if !column.takes(value) {
            self.overflow = Some(column.id());
        }
        // SAFETY: `place` is found again whenever the directory may have changed.
        let place = unsafe { self.table.rows.new_place(self.place, &column.at) };
        // SAFETY: as many bytes lie there, because a handle has its column's type; no snapshot and
        // no other thread looks at the slot.
        unsafe { place.cast::<T::Bytes>().write_unaligned(value.to_bytes()) };
        self.mark(&column.at);
        self
    }

    /// Sets a value or NULL.
    ///
    /// # Panics
    /// As [`NewRow::set`]; NULL for a NOT NULL column.
    #[inline(always)]
    pub fn set_opt<T: Fixed>(&mut self, column: Col<T>, value: Option<T>) -> &mut Self {
        match value {
            Some(value) => self.set(column, value),
            None => {
                assert!(column.at.nullable(), "NULL for the NOT NULL column {}", column.at.column);
                self.set(column, T::from_bytes(T::ZERO));
                // SAFETY: as in `set`.
                unsafe { self.table.rows.new_null(self.place, &column.at, true) };
                self
            }
        }
    }

    /// Sets a text.
    #[inline]
    pub fn set_text(&mut self, column: TextCol, text: &str) -> Result<&mut Self, TableError> {
        let text = match column.limit.fit(text) {
            Ok(text) => text,
            Err(unfit) => return Err(self.table.unfit(column.id(), text, unfit)),
        };
        let at = &column.at;
        if !self.has_heap_text
            && let Physical::Inline(capacity) = at.physical
            && text.len() <= capacity as usize
        {
            // SAFETY: as in `set`; the slot has `1 + capacity` bytes, and `text` is not in it, since
            // the row is nobody's yet.
            unsafe {
                let place = self.table.rows.new_place(self.place, at);
                *place = text.len() as u8;
                std::ptr::copy_nonoverlapping(text.as_ptr(), place.add(1), text.len());
            }
            self.mark(at);
            return Ok(self);
        }
        self.set_bytes(at, text.as_bytes())?;
        Ok(self)
    }

    pub(super) fn set_bytes(&mut self, at: &ColumnLocation, bytes: &[u8]) -> Result<(), TableError> {
        debug_assert!(bytes.len() <= crate::MAX_TEXT_BYTES, "longer texts were refused");
        let replaced = if self.has_heap_text { self.heap_length(at) } else { 0 };
        // SAFETY: `place` is found again whenever the directory may have changed.
        let place = unsafe { self.table.rows.new_place(self.place, at) };
        // SAFETY: no snapshot and no other thread looks at the new slot.
        let put = unsafe { self.table.rows.put_text(self.slot.tid.chunk(), at, bytes, place) };
        self.place = self.table.rows.locate(self.slot.tid);
        put?;
        if replaced > 0 {
            self.table.rows.count_garbage(self.slot.tid.chunk(), at.heap, replaced);
        }
        self.has_heap_text |= heap_bytes_of(at.physical, bytes.len()) > 0;
        self.mark(at);
        Ok(())
    }

    /// Bytes in the heap of a text that was set before.
    #[cold]
    fn heap_length(&self, at: &ColumnLocation) -> i64 {
        match self.given.has(at.column) {
            true => self.table.rows.heap_length(self.slot.tid, at) as i64,
            false => 0,
        }
    }

    /// A text that was set before becomes garbage.
    #[cold]
    fn drop_text(&mut self, at: &ColumnLocation) {
        let bytes = self.heap_length(at);
        if bytes > 0 {
            self.table.rows.count_garbage(self.slot.tid.chunk(), at.heap, bytes);
        }
    }

    #[inline(always)]
    pub(super) fn set_raw(&mut self, at: &ColumnLocation, bytes: &[u8]) {
        assert!(bytes.len() == at.width as usize, "a value is as wide as its column");
        // SAFETY: as in `set`.
        let place = unsafe { self.table.rows.new_place(self.place, at) };
        // SAFETY: `width` bytes lie there by the layout's I-1; no snapshot and no other thread
        // looks at the slot.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.mark(at);
    }

    #[inline(always)]
    fn mark(&mut self, at: &ColumnLocation) {
        if at.nullable() {
            // SAFETY: as in `set`.
            unsafe { self.table.rows.new_null(self.place, at, false) };
        }
        self.given.set(at.column);
    }

    pub(super) fn set_null(&mut self, at: &ColumnLocation) {
        assert!(at.nullable(), "NULL for the NOT NULL column {}", at.column);
        if self.has_heap_text {
            self.drop_text(at);
        }
        self.set_raw(at, &ZEROES[..at.width as usize]);
        // SAFETY: as in `set`.
        unsafe { self.table.rows.new_null(self.place, at, true) };
    }

    #[inline(always)]
    pub(super) fn rows_ref(&self) -> &Rows {
        &self.table.rows
    }

    #[inline(always)]
    pub(super) fn rows(&mut self) -> &mut Rows {
        &mut self.table.rows
    }

    /// Where the row lies: good until something changes the directory, after which it is another.
    #[inline(always)]
    pub(super) fn place(&self) -> RowPlace {
        self.place
    }

    /// Notes that a column was given more digits than it takes.
    #[cold]
    pub(super) fn overflows(&mut self, column: ColumnId) {
        self.overflow = Some(column);
    }

    /// Makes it a row: columns without a value become NULL, constraints are checked, the row
    /// enters all indexes. On failure nothing has happened.
    #[inline]
    pub fn finish(mut self) -> Result<Tid, TableError> {
        if !self.given.all(self.table.columns) {
            self.fill_with_nulls()?;
        }
        self.enter()
    }

    /// [`NewRow::finish`] of a row whose columns all have a value.
    pub(super) fn enter(mut self) -> Result<Tid, TableError> {
        if let Some(column) = self.overflow {
            return Err(TableError::OutOfRange { table: self.table.spec.id, column });
        }
        let tid = self.slot.tid;
        let table = &mut *self.table;
        table.rows.publish(self.slot);
        self.is_published = true;
        debug_assert_eq!(table.indexes.len(), table.spec.indexes.len(), "the indexes are the shape's");
        if table.has_row_checks {
            table.check_row(tid)?;
        }
        for index in 0..table.indexes.len() {
            if let Err(failure) = table.indexes[index].insert(&table.rows, tid) {
                for entered in &mut table.indexes[..index] {
                    entered.remove(&table.rows, tid);
                }
                return Err(table.index_error(IndexId(index as u16), failure));
            }
        }
        debug_assert!(table.rows.is_live(tid), "a row that came is there");
        self.undo.push(table.id, tid, Change::Inserted);
        table.note_untidy(self.undo);
        (self.is_published, self.has_heap_text) = (false, false);
        if self.given.others.is_empty() {
            // Nothing is left to do or to free.
            std::mem::forget(self);
        }
        Ok(tid)
    }

    /// Accounts the texts of a row that does not come to be.
    #[cold]
    fn abandon_texts(&mut self) {
        let layout = std::sync::Arc::clone(&self.table.rows.layout);
        for &column in &layout.heap_columns {
            self.drop_text(layout.column(column));
        }
        if self.undo.is_empty() {
            // The transaction has changed nothing so far, so no before image refers to a heap.
            self.table.rows.tidy();
        }
    }

    #[cold]
    fn fill_with_nulls(&mut self) -> Result<(), TableError> {
        for index in 0..self.table.spec.columns.len() {
            let column = ColumnId(index as u16);
            if self.given.has(column) {
                continue;
            }
            if !self.table.spec.columns[index].nullable {
                return Err(TableError::NotNull { table: self.table.spec.id, column });
            }
            let at = *self.table.rows.layout.column(column);
            self.set_null(&at);
        }
        debug_assert!(self.given.all(self.table.columns), "each column has a value");
        Ok(())
    }
}

impl Drop for NewRow<'_> {
    /// Without [`NewRow::finish`], or when that failed or panicked in a CHECK, nothing has happened.
    #[inline]
    fn drop(&mut self) {
        if self.is_published {
            self.table.rows.unpublish(self.slot.tid);
        }
        if self.has_heap_text {
            self.abandon_texts();
        }
    }
}
