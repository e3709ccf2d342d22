//! Inserting a row: values are written straight into their slots, then the row is published and
//! enters the indexes.

use albireo_base::{ColumnId, IndexId, SqlType, Tid};

use super::{Table, TableError};
use crate::column::{Col, Fixed, TextCol};
use crate::layout::{ColumnLocation, ZEROES};
use crate::pool::OutOfMemory;
use crate::rows::{MAX_TEXT_BYTES, NewSlot, heap_bytes_of};
use crate::undo::{Change, UndoLog};

/// A row being inserted. Values are set in any order; [`NewRow::finish`] makes it a row. Dropped
/// unfinished it never existed.
pub struct NewRow<'a> {
    table: &'a mut Table,
    undo: &'a mut UndoLog,
    slot: NewSlot,
    given: Given,
    /// Texts of the row lie in a heap and are garbage unless it becomes a row.
    has_heap_text: bool,
    /// Visible, but not yet in every index.
    is_published: bool,
}

/// Which columns have a value.
struct Given {
    first: u64,
    others: Vec<bool>,
}

impl Given {
    fn new(columns: usize) -> Self {
        Self { first: 0, others: vec![false; columns.saturating_sub(64)] }
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
    #[inline]
    pub fn insert<'a>(&'a mut self, undo: &'a mut UndoLog) -> Result<NewRow<'a>, OutOfMemory> {
        let slot = self.rows.new_slot()?;
        let given = Given::new(self.spec.columns.len());
        Ok(NewRow { table: self, undo, slot, given, has_heap_text: false, is_published: false })
    }

    /// Checks a text against its column's limits and returns what is stored of it: CHAR loses
    /// trailing blanks.
    pub(super) fn check_text<'t>(&self, column: ColumnId, text: &'t str) -> Result<&'t str, TableError> {
        let (text, limit) = match self.spec.columns[column.index()].ty {
            SqlType::Char(n) => (text.trim_end_matches(' '), n as usize),
            SqlType::Varchar(n) => (text, n as usize),
            _ => (text, usize::MAX),
        };
        // Most texts have fewer bytes than the limit has characters.
        let fits = text.len() <= limit || text.chars().count() <= limit;
        if !fits || text.len() > MAX_TEXT_BYTES {
            return Err(TableError::TooLong { table: self.spec.id, column, bytes: text.len() });
        }
        if text.as_bytes().contains(&0) {
            return Err(TableError::ZeroCharacter { table: self.spec.id, column });
        }
        Ok(text)
    }
}

impl NewRow<'_> {
    pub(super) fn table(&self) -> &Table {
        self.table
    }

    /// Sets a fixed-width value.
    ///
    /// # Panics
    /// The handle belongs to another table.
    #[inline(always)]
    pub fn set<T: Fixed>(&mut self, column: Col<T>, value: T) -> &mut Self {
        self.set_raw(&column.at, value.to_bytes().as_ref());
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
                self.set_null(&column.at);
                self
            }
        }
    }

    /// Sets a text.
    #[inline]
    pub fn set_text(&mut self, column: TextCol, text: &str) -> Result<&mut Self, TableError> {
        let text = self.table.check_text(column.id(), text)?;
        self.set_bytes(&column.at, text.as_bytes())?;
        Ok(self)
    }

    pub(super) fn set_bytes(&mut self, at: &ColumnLocation, bytes: &[u8]) -> Result<(), TableError> {
        let replaced = if self.has_heap_text { self.heap_length(at) } else { 0 };
        let place = self.table.rows.new_place(self.slot, at);
        // SAFETY: no snapshot and no other thread looks at the new slot.
        unsafe { self.table.rows.put_text(self.slot.tid.chunk(), at, bytes, place)? };
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
        assert!(bytes.len() == at.physical.width());
        let place = self.table.rows.new_place(self.slot, at);
        // SAFETY: `width` bytes lie there by the layout's I-1; no snapshot and no other thread
        // looks at the slot.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.mark(at);
    }

    #[inline(always)]
    fn mark(&mut self, at: &ColumnLocation) {
        if at.nullable() {
            self.table.rows.new_null(self.slot, at, false);
        }
        self.given.set(at.column);
    }

    pub(super) fn set_null(&mut self, at: &ColumnLocation) {
        assert!(at.nullable(), "NULL for the NOT NULL column {}", at.column);
        if self.has_heap_text {
            self.drop_text(at);
        }
        self.set_raw(at, &ZEROES[..at.physical.width()]);
        self.table.rows.new_null(self.slot, at, true);
    }

    /// Makes it a row: columns without a value become NULL, constraints are checked, the row
    /// enters all indexes. On failure nothing has happened.
    #[inline]
    pub fn finish(mut self) -> Result<Tid, TableError> {
        if !self.given.all(self.table.spec.columns.len()) {
            self.fill_with_nulls()?;
        }
        let tid = self.slot.tid;
        let table = &mut *self.table;
        table.rows.publish(self.slot);
        self.is_published = true;
        if table.placement.is_some() || !table.spec.checks.is_empty() {
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
        self.undo.push(table.spec.id.0, tid, Change::Inserted);
        table.note_untidy(self.undo);
        (self.is_published, self.has_heap_text) = (false, false);
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
