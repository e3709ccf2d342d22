//! Updating a row in place, and taking it back.

use std::borrow::Cow;

use albireo_base::{ColumnId, IndexId, Tid};

use super::{Table, TableError};
use crate::column::{Col, Fixed, TextCol};
use crate::layout::{ColumnLocation, ZEROES};
use crate::rows::{RowPlace, heap_bytes_of};
use crate::undo::{Change, Image, Savepoint, UndoLog};

/// A row being updated; see [`Table::update`].
pub struct RowUpdate<'a> {
    table: &'a mut Table,
    undo: &'a mut UndoLog,
    /// By which it is known, and its slot.
    tid: Tid,
    slot: Tid,
    /// The row's place; found again whenever the directory may have changed.
    place: RowPlace,
    /// Indexes that the row has left until the update ends: a key of several columns may pass
    /// through values that belong to another row.
    left: Vec<IndexId>,
    /// The column that places the row was written.
    may_move: bool,
}

impl Table {
    /// Updates a live row in place: `change` sets values one by one, then CHECK constraints are
    /// checked. On failure the row is as it was.
    #[inline]
    pub fn update<R>(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        change: impl FnOnce(&mut RowUpdate<'_>) -> Result<R, TableError>,
    ) -> Result<R, TableError> {
        let start = undo.savepoint();
        if !self.rows.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        let (tid, slot) = self.warm(undo, tid)?;
        let place = self.rows.locate(slot);
        let mut row = RowUpdate { table: self, undo, tid, slot, place, left: Vec::new(), may_move: false };
        let result = change(&mut row);
        let RowUpdate { left, may_move, .. } = row;
        let result = match result {
            Ok(value) if left.is_empty() && !may_move && self.spec.checks.is_empty() => return Ok(value),
            Ok(value) => self.finish_update(undo, (tid, slot), &left).map(|()| value),
            Err(error) => Err(error),
        };
        if result.is_err() {
            self.roll_back_to(undo, start);
        }
        result
    }

    #[cold]
    fn finish_update(
        &mut self,
        undo: &mut UndoLog,
        (tid, slot): (Tid, Tid),
        left: &[IndexId],
    ) -> Result<(), TableError> {
        debug_assert!(self.rows.is_live(tid), "only live rows stand in indexes (I-1)");
        for &index in left {
            self.rows.note_move();
            if let Err(failure) = self.indexes[index.index()].insert(&self.rows, slot) {
                return Err(self.index_error(index, failure));
            }
            undo.push(self.spec.id.0, tid, Change::Indexed(index));
        }
        self.check_row(slot)
    }

    #[cold]
    pub(super) fn roll_back_to(&mut self, undo: &mut UndoLog, start: Savepoint) {
        debug_assert!(start.is_before(undo.savepoint()), "a statement is taken back to its beginning");
        while let Some(record) = undo.pop_for_rollback(start) {
            self.undo(undo, &record);
        }
        debug_assert_eq!(undo.savepoint(), start, "a statement that fails leaves no record (I-2)");
    }

    pub(super) fn undo_write(
        &mut self,
        log: &UndoLog,
        tid: Tid,
        column: ColumnId,
        was_null: bool,
        image: &Image,
    ) {
        let at = *self.rows.layout.column(column);
        debug_assert!(self.rows.is_live(tid), "a row that was changed is there until that is undone");
        debug_assert!(at.nullable() || !was_null, "only columns that take NULL were NULL");
        if at.physical.is_string() {
            let bytes = self.rows.heap_length(tid, &at) as i64;
            self.rows.count_garbage(tid.chunk(), at.heap, bytes);
        }
        let old = log.bytes_of(image, at.width as usize);
        self.rows.privatize_again(tid, &at);
        self.rows.write_raw(tid, &at, old).expect("the block is private since the write that is undone");
        if at.nullable() {
            self.rows.set_null(tid, &at, was_null).expect("the bitmap is private since the write");
        }
        if at.physical.is_string() {
            let bytes = self.rows.heap_length(tid, &at) as i64;
            self.rows.count_garbage(tid.chunk(), at.heap, -bytes);
        }
    }

    /// Checks what concerns the row as a whole: CHECK constraints and its partition.
    #[cold]
    pub(super) fn check_row(&self, tid: Tid) -> Result<(), TableError> {
        if let Some(placement) = self.placement {
            let value = self.value(tid, placement.column);
            if crate::partition_of(&value, placement.partitions) != placement.partition {
                return Err(TableError::WrongPartition { table: self.spec.id });
            }
        }
        self.spec.unmet(&|column| self.value(tid, column)).map_or(Ok(()), Err)
    }
}

impl RowUpdate<'_> {
    pub(super) fn table(&self) -> &Table {
        self.table
    }

    /// The row's address.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// A value as it is now.
    #[inline(always)]
    pub fn get<T: Fixed>(&self, column: Col<T>) -> T {
        self.table.get(self.slot, column)
    }

    /// A text as it is now.
    #[inline]
    pub fn text(&self, column: TextCol) -> Cow<'_, str> {
        self.table.text(self.slot, column)
    }

    /// Overwrites a value.
    #[inline(always)]
    pub fn set<T: Fixed>(&mut self, column: Col<T>, value: T) -> Result<(), TableError> {
        if self.table.guarded.has(column.at.column) {
            return self.set_guarded(column, value);
        }
        self.write(column, |_| value).map(|_| ())
    }

    /// Overwrites a value that is in no index by `f` of it; returns the new one.
    #[inline(always)]
    fn write<T: Fixed>(&mut self, column: Col<T>, f: impl FnOnce(T) -> T) -> Result<T, TableError> {
        let at = &column.at;
        debug_assert!(at.physical == T::PHYSICAL, "a handle has its column's type");
        // All that may fail for memory comes first.
        // SAFETY: `place` is found again by whatever changes the directory.
        let mut address = unsafe { self.table.rows.place_private(self.slot, &mut self.place, at)? };
        // SAFETY: the address of this column's value, as wide as `T::Bytes` because a handle has its
        // column's type.
        let old = unsafe { address.cast::<T::Bytes>().read_unaligned() };
        let value = f(T::from_bytes(old));
        if !column.takes(value) {
            return Err(self.out_of_range(at.column));
        }
        let mut was_null = false;
        if at.nullable() {
            // SAFETY: as above, twice.
            was_null = unsafe { self.table.rows.put_present(self.slot, &mut self.place, at)? };
            // SAFETY: as above.
            address = unsafe { self.table.rows.new_place(self.place, at) };
        }
        // SAFETY: as above; the block is private.
        unsafe { address.cast::<T::Bytes>().write_unaligned(value.to_bytes()) };
        let change = Change::Wrote { column: at.column, was_null, image: Image::of(old) };
        self.undo.push(self.table.id, self.tid, change);
        Ok(value)
    }

    /// Overwrites a value that is part of a key.
    fn set_guarded<T: Fixed>(&mut self, column: Col<T>, value: T) -> Result<(), TableError> {
        match column.takes(value) {
            true => self.set_raw(&column.at, value.to_bytes().as_ref(), false),
            false => Err(self.out_of_range(column.id())),
        }
    }

    #[cold]
    fn out_of_range(&self, column: ColumnId) -> TableError {
        TableError::OutOfRange { table: self.table.spec.id, column }
    }

    /// Replaces a value by `f` of it; returns the new one.
    #[inline(always)]
    pub fn modify<T: Fixed>(&mut self, column: Col<T>, f: impl FnOnce(T) -> T) -> Result<T, TableError> {
        if self.table.guarded.has(column.at.column) {
            let value = f(self.get(column));
            self.set_guarded(column, value)?;
            return Ok(value);
        }
        self.write(column, f)
    }

    /// Overwrites a value by NULL.
    pub fn set_null<T: Fixed>(&mut self, column: Col<T>) -> Result<(), TableError> {
        self.set_null_at(&column.at)
    }

    /// Overwrites a text.
    pub fn set_text(&mut self, column: TextCol, text: &str) -> Result<(), TableError> {
        let text = super::values::check_text(&self.table.spec, column.id(), text)?;
        self.set_bytes(&column.at, text.as_bytes())
    }

    pub(super) fn set_null_at(&mut self, at: &ColumnLocation) -> Result<(), TableError> {
        if !at.nullable() {
            return Err(TableError::NotNull { table: self.table.spec.id, column: at.column });
        }
        self.set_raw(at, &ZEROES[..at.width as usize], true)
    }

    pub(super) fn set_bytes(&mut self, at: &ColumnLocation, bytes: &[u8]) -> Result<(), TableError> {
        let mut slot = ZEROES;
        // SAFETY: `slot` stands for the row's slot of this column and is at least as wide.
        unsafe { self.table.rows.put_text(self.slot.chunk(), at, bytes, slot.as_mut_ptr())? };
        let result = self.set_raw(at, &slot[..at.width as usize], false);
        let heap_bytes = heap_bytes_of(at.physical, bytes.len());
        if result.is_err() && heap_bytes > 0 {
            self.table.rows.count_garbage(self.slot.chunk(), at.heap, heap_bytes as i64);
        }
        result
    }

    /// Overwrites a slot, with its NULL bit, its garbage and its indexes.
    pub(super) fn set_raw(
        &mut self,
        at: &ColumnLocation,
        bytes: &[u8],
        null: bool,
    ) -> Result<(), TableError> {
        let tid = self.slot;
        self.may_move |= self.table.placement.is_some_and(|p| p.column == at.column);
        // All that may fail for memory comes first.
        let was_null = self.make_private(at);
        // A text may have gone to the heap just before.
        self.place = self.table.rows.locate(tid);
        let was_null = was_null?;
        if self.table.guarded.has(at.column) {
            self.leave_indexes(at.column);
        }
        self.write_slot(at, bytes, was_null, null)
    }

    /// Makes the blocks of a value private; returns whether it is NULL.
    fn make_private(&mut self, at: &ColumnLocation) -> Result<bool, TableError> {
        let (tid, rows) = (self.slot, &mut self.table.rows);
        rows.place_mut(tid, at)?;
        let is_null = rows.is_null(tid, at);
        if at.nullable() {
            rows.set_null(tid, at, is_null)?;
        }
        Ok(is_null)
    }

    #[cold]
    fn leave_indexes(&mut self, column: ColumnId) {
        for position in 0..self.table.indexes.len() {
            let index = IndexId(position as u16);
            if self.table.indexes[position].covers(column) && !self.left.contains(&index) {
                self.table.rows.note_move();
                self.table.indexes[position].remove(&self.table.rows, self.slot);
                self.undo.push(self.table.spec.id.0, self.tid, Change::Unindexed(index));
                self.left.push(index);
            }
        }
    }

    fn write_slot(
        &mut self,
        at: &ColumnLocation,
        bytes: &[u8],
        was_null: bool,
        null: bool,
    ) -> Result<(), TableError> {
        debug_assert!(at.nullable() || !null, "NULL was refused");
        let (tid, rows) = (self.slot, &mut self.table.rows);
        let old_text = if at.physical.is_string() { rows.heap_length(tid, at) as i64 } else { 0 };
        let image = self.undo.image(rows.raw(tid, at));
        let wrote = Change::Wrote { column: at.column, was_null, image };
        self.undo.push(self.table.spec.id.0, self.tid, wrote);
        rows.write_raw(tid, at, bytes)?;
        if at.nullable() {
            rows.set_null(tid, at, null)?;
        }
        if old_text > 0 {
            rows.count_garbage(tid.chunk(), at.heap, old_text);
            self.table.note_untidy(self.undo);
        }
        Ok(())
    }
}
