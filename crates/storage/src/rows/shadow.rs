//! Blocks of some columns, filled beside the rows that they will belong to.
//!
//! They begin as copies of what a snapshot shows, take new values while others use the rows, and follow what these
//! change ([`Shadow::follow`]); at the end they take the place of the rows' own blocks, a few words each
//! ([`Rows::install`]). So a change of a whole column takes its rows for a moment, and writes no value twice.
//!
//! Invariants:
//! - I-1 A block holds, in each slot that is in use, what the rows hold there, unless the slot was given another value
//!   since it was followed last: also of columns that lie in the block and are not written.
//! - I-2 Nobody else knows a block before it is installed.

use std::ptr::NonNull;
use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Tid};

use super::{FrozenRows, Rows};
use crate::bitmap;
use crate::directory::Entry;
use crate::layout::{ColumnLocation, Layout};
use crate::pool::{BlockPool, OutOfMemory};

/// Blocks beside the rows of one table in one partition.
pub(crate) struct Shadow {
    layout: Arc<Layout>,
    pool: BlockPool,
    /// The columns that are written.
    columns: Vec<ColumnLocation>,
    /// All columns that lie in the blocks of these.
    beside: Vec<ColumnLocation>,
    /// As in a directory.
    blocks: Vec<Option<NonNull<u8>>>,
}

// SAFETY: the blocks are known to this alone (I-2), and it is used by one thread at a time.
unsafe impl Send for Shadow {}

/// Where a block is copied from, and how many slots of its table are.
#[derive(Clone, Copy)]
pub(crate) struct Original<'r> {
    rows: &'r Rows,
    slots: u64,
}

impl<'r> Original<'r> {
    /// Rows as a snapshot shows them: others may write into slots that it does not have.
    pub(crate) fn frozen(rows: &'r FrozenRows) -> Self {
        Self { rows, slots: rows.slots }
    }

    /// Rows whose partition the caller owns.
    pub(crate) fn live(rows: &'r Rows) -> Self {
        Self { rows, slots: rows.slots }
    }
}

impl Shadow {
    /// Of these columns of fixed width, without a block so far.
    pub(crate) fn new(rows: &Rows, columns: &[ColumnId]) -> Self {
        let layout = Arc::clone(&rows.layout);
        let columns: Vec<ColumnLocation> = columns.iter().map(|column| *layout.column(*column)).collect();
        assert!(columns.iter().all(|at| !at.physical.is_string()), "texts lie in heaps");
        let lies_beside = |at: &&ColumnLocation| columns.iter().any(|written| written.entry == at.entry);
        let beside = layout.columns.iter().filter(lies_beside).copied().collect();
        let pool = rows.pool().clone();
        Self { layout, pool, columns, beside, blocks: Vec::new() }
    }

    /// The index of a value's block, as in a directory, and the value's place in it.
    fn place_of(&self, tid: Tid, at: &ColumnLocation) -> (usize, usize) {
        let index = tid.chunk() * self.layout.entries() + at.entry as usize + (tid.slot() >> at.shift);
        (index, (tid.slot() & at.mask as usize) * at.stride as usize + at.offset as usize)
    }

    fn null_index(&self, tid: Tid, at: &ColumnLocation) -> usize {
        tid.chunk() * self.layout.entries() + at.null_entry as usize
    }

    /// The block at an index, a copy of the original if there was none. `first` is the block's first slot in its chunk.
    fn block(
        &mut self,
        index: usize,
        first: Tid,
        stride: Option<u32>,
        original: Original<'_>,
    ) -> Result<NonNull<u8>, OutOfMemory> {
        if let Some(Some(block)) = self.blocks.get(index) {
            return Ok(*block);
        }
        let bytes = self.layout.entry_bytes[index % self.layout.entries()] as usize;
        let block = self.pool.alloc(bytes)?;
        let old = original.rows.dir.entries[index].block;
        let in_use = usize::try_from(original.slots.saturating_sub(first.0)).unwrap_or(usize::MAX);
        // SAFETY: both blocks have `bytes` bytes, the new one is nobody's, and the old one lives as long as the
        // original. Of its values only those in slots that the original has are read, which nobody writes; bits are
        // read word by word, as they are shared.
        unsafe {
            block.as_ptr().write_bytes(0, bytes);
            match stride {
                Some(stride) => {
                    let count = in_use.saturating_mul(stride as usize).min(bytes);
                    std::ptr::copy_nonoverlapping(old.as_ptr(), block.as_ptr(), count);
                }
                None => {
                    let count = in_use.min(CHUNK_ROWS);
                    bitmap::put(block, 0, count, bitmap::copy(old, count));
                }
            }
        }
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, None);
        }
        self.blocks[index] = Some(block);
        Ok(block)
    }

    /// Writes a value of the column at a position among those that are written; `None` for NULL.
    ///
    /// # Panics
    /// It has another width, or is NULL where that is not allowed.
    pub(crate) fn put(
        &mut self,
        tid: Tid,
        column: usize,
        value: Option<&[u8]>,
        original: Original<'_>,
    ) -> Result<(), OutOfMemory> {
        let at = self.columns[column];
        let (index, offset) = self.place_of(tid, &at);
        let first = Tid(tid.0 & !u64::from(at.mask));
        let block = self.block(index, first, Some(at.stride), original)?;
        assert!(value.is_some() || at.nullable(), "NULL for the NOT NULL column {}", at.column);
        assert!(
            value.is_none_or(|value| value.len() == at.width as usize),
            "a value is as wide as its column"
        );
        // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2).
        unsafe {
            let place = block.as_ptr().add(offset);
            match value {
                Some(value) => std::ptr::copy_nonoverlapping(value.as_ptr(), place, value.len()),
                None => place.write_bytes(0, at.width as usize),
            }
        }
        if at.nullable() {
            let bits = self.block(self.null_index(tid, &at), Tid::new(tid.chunk(), 0), None, original)?;
            // SAFETY: a bitmap's block, nobody else's (I-2).
            unsafe { bitmap::set(bits, tid.slot(), value.is_some()) };
        }
        Ok(())
    }

    /// Takes over what the rows hold in a slot, where there are blocks. The caller owns the partition.
    pub(crate) fn follow(&mut self, rows: &Rows, tid: Tid) {
        assert!(rows.layout_id == self.layout.id, "the rows are of the table");
        for at in &self.beside {
            let (index, offset) = self.place_of(tid, at);
            let Some(Some(block)) = self.blocks.get(index) else { continue };
            let value = rows.raw(tid, at);
            // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2).
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), block.as_ptr().add(offset), value.len()) };
        }
        for at in self.columns.iter().filter(|at| at.nullable()) {
            let Some(Some(bits)) = self.blocks.get(self.null_index(tid, at)) else { continue };
            // SAFETY: a bitmap's block, nobody else's (I-2).
            unsafe { bitmap::set(*bits, tid.slot(), !rows.is_null(tid, at)) };
        }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        let entries = self.layout.entries();
        for (index, block) in self.blocks.iter().enumerate() {
            let bytes = self.layout.entry_bytes[index % entries] as usize;
            if let Some(block) = block {
                // SAFETY: taken from this pool with this size, and known to nobody else (I-2).
                unsafe { self.pool.free(*block, bytes) };
            }
        }
    }
}

impl Rows {
    /// Puts blocks in the place of those that they were made for, and leaves these to the snapshots that see them.
    /// Every row that was changed meanwhile has been followed.
    ///
    /// # Panics
    /// They are of another table.
    pub(crate) fn install(&mut self, mut shadow: Shadow) {
        assert!(
            shadow.layout.id == self.layout_id,
            "blocks are installed in the rows that they were made for"
        );
        let epoch = self.epoch;
        for (index, block) in std::mem::take(&mut shadow.blocks).into_iter().enumerate() {
            let Some(block) = block else { continue };
            let old = std::mem::replace(&mut self.dir_mut().entries[index], Entry { block, tag: epoch });
            self.retire_entry(index, old);
        }
        self.note_move();
    }
}
