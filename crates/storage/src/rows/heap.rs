//! String slots and the chunk's string heaps.
//!
//! A long string is a 16-byte Arrow view: length, and either up to 12 bytes in place or a prefix,
//! the number of the heap block in its chunk and the offset there. A short declared string lies in
//! an inline slot, `[length][bytes]`; should its UTF-8 form be longer than the slot, the length is
//! [`OVERFLOW`] and four bytes tell where in the heap `[length][bytes]` lies.
//!
//! Heap blocks are append-only, so a snapshot shares them without copying. Text that no live row
//! refers to is garbage; a heap more than half garbage is rewritten between two transactions.

use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use super::Rows;
use crate::directory::{HeapBlock, HeapList};
use crate::layout::{ColumnLocation, MAX_TEXT_BYTES, Physical};
use crate::pool::{BlockPool, Need, OutOfMemory, SLAB_BYTES};
use crate::registry::ColumnSet;

/// The length byte of an inline slot whose text lies in the heap.
pub(crate) const OVERFLOW: u8 = u8::MAX;
/// Bytes of text that fit a view.
pub(crate) const VIEW_INLINE_BYTES: usize = 12;
/// Blocks of a heap grow up to this size.
const HEAP_BLOCK_BYTES: usize = 256 << 10;
/// A heap smaller than this is not worth a rewrite.
const MIN_REWRITE_BYTES: u64 = 64 << 10;
/// Bits of the offset in an overflow reference.
const OVERFLOW_OFFSET_BITS: u32 = 18;

/// An Arrow string view.
#[derive(Clone, Copy)]
pub(crate) struct View(pub(crate) [u8; 16]);

impl View {
    pub(crate) fn short(text: &[u8]) -> Self {
        debug_assert!(text.len() <= VIEW_INLINE_BYTES, "a short text lies in its view");
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        view[4..4 + text.len()].copy_from_slice(text);
        Self(view)
    }

    pub(crate) fn long(text: &[u8], block: u32, offset: u32) -> Self {
        debug_assert!(text.len() > VIEW_INLINE_BYTES, "Arrow has short texts in their views");
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        view[4..8].copy_from_slice(&text[..4]);
        view[8..12].copy_from_slice(&block.to_le_bytes());
        view[12..].copy_from_slice(&offset.to_le_bytes());
        Self(view)
    }

    /// The view of a text that also lies at `offset` of buffer `block`.
    pub(crate) fn of(text: &[u8], block: u32, offset: u32) -> Self {
        if text.len() <= VIEW_INLINE_BYTES { Self::short(text) } else { Self::long(text, block, offset) }
    }

    fn word(self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    pub(crate) fn length(self) -> usize {
        self.word(0) as usize
    }

    fn heap_place(self) -> (u32, u32) {
        (self.word(8), self.word(12))
    }
}

/// How much of a heap is used.
#[derive(Clone, Copy, Default)]
pub(crate) struct HeapUse {
    pub(crate) capacity_bytes: u64,
    text_bytes: u64,
    garbage_bytes: u64,
    /// Garbage when there was last no memory to rewrite it; 0 if there always was.
    refused_bytes: u64,
    /// It stands in the list of heaps to be rewritten.
    is_listed: bool,
}

impl HeapUse {
    pub(super) fn add_text(&mut self, bytes: usize) {
        self.text_bytes += bytes as u64;
        debug_assert!(self.text_bytes <= self.capacity_bytes, "a heap holds what it has room for");
    }

    /// Counts the last block of a list.
    pub(super) fn add_block(&mut self, list: &HeapList) {
        self.capacity_bytes += list.blocks.last().map_or(0, |block| u64::from(block.bytes));
    }

    pub(super) fn add_garbage(&mut self, bytes: u64) {
        self.garbage_bytes += bytes;
    }

    /// Of the heap that takes the place of another.
    pub(super) fn in_the_place_of(self, old: Self) -> Self {
        Self { is_listed: old.is_listed, ..self }
    }

    /// Bytes of text, garbage included.
    pub(crate) fn text_bytes(self) -> u64 {
        self.text_bytes
    }

    fn wants_rewrite(self) -> bool {
        // Not again at every row while memory is short, but in any case when nothing else is left.
        let again_bytes = (self.refused_bytes + self.text_bytes / 16).min(self.text_bytes);
        self.text_bytes > MIN_REWRITE_BYTES
            && self.garbage_bytes * 2 > self.text_bytes
            && self.garbage_bytes >= again_bytes
    }
}

impl Rows {
    /// The text of a string column, also of a dead row; empty for NULL. It is lent, unless the row is frozen and its
    /// texts are packed or compressed.
    #[inline(always)]
    pub(crate) fn text(&self, tid: Tid, at: &ColumnLocation) -> Cow<'_, [u8]> {
        if tid.0 >= self.slots {
            super::no_such_row(tid);
        }
        match self.hot_place(tid) {
            // SAFETY: located just now.
            Some(row) => Cow::Borrowed(self.text_of(tid, at, unsafe { self.raw_at(row, at) })),
            None => self.text_elsewhere(tid, at),
        }
    }

    /// [`Rows::text`] of a column whose texts come from `&str`.
    #[inline(always)]
    pub(crate) fn str(&self, tid: Tid, at: &ColumnLocation) -> Cow<'_, str> {
        match self.text(tid, at) {
            // SAFETY: texts of columns that are no byte strings are written from `&str` only.
            Cow::Borrowed(text) => Cow::Borrowed(unsafe { std::str::from_utf8_unchecked(text) }),
            // SAFETY: as above, and a text that was packed or compressed is the one that was written.
            Cow::Owned(text) => Cow::Owned(unsafe { String::from_utf8_unchecked(text) }),
        }
    }

    /// [`Rows::text`] by the address of its slot.
    ///
    /// # Safety
    /// S-1: `slot` is the address of the value of the string column `at` of the row in the slot `tid`.
    #[inline(always)]
    pub(crate) unsafe fn text_in(&self, tid: Tid, at: &ColumnLocation, slot: *const u8) -> &[u8] {
        if tid.0 >= self.slots {
            super::no_such_row(tid);
        }
        // SAFETY: S-1, and `width` bytes lie there by the layout's I-1; nobody writes while `self` is
        // borrowed.
        self.text_of(tid, at, unsafe { std::slice::from_raw_parts(slot, at.width as usize) })
    }

    /// The text that a slot of the string column `at` of the row `tid` means, or meant when its bytes were
    /// these.
    ///
    /// Bytes from before must be of the running transaction: until it ends, no heap is rewritten.
    #[inline(always)]
    pub(crate) fn text_of<'a>(&'a self, tid: Tid, at: &ColumnLocation, slot: &'a [u8]) -> &'a [u8] {
        match at.physical {
            Physical::Inline(_) if slot[0] != OVERFLOW => &slot[1..=slot[0] as usize],
            _ => self.other_text(tid, at, slot),
        }
    }

    #[inline(never)]
    fn other_text<'a>(&'a self, tid: Tid, at: &ColumnLocation, slot: &'a [u8]) -> &'a [u8] {
        match at.physical {
            Physical::Inline(_) => self.overflow_text(tid, at, slot),
            Physical::View => {
                let view = View(slot.try_into().expect("a view has 16 bytes"));
                let length = view.length();
                if length <= VIEW_INLINE_BYTES {
                    return &slot[4..4 + length];
                }
                let (block, offset) = view.heap_place();
                self.heap_bytes(tid.chunk(), at.heap, block, offset, length)
            }
            _ => panic!("column {} is no string", at.column),
        }
    }

    /// Asks the processor to bring the heap bytes of a text; nothing for one that lies in its slot.
    #[inline]
    pub(crate) fn prefetch_text(&self, tid: Tid, at: &ColumnLocation) {
        if at.physical != Physical::View {
            return;
        }
        if let Some(row) = self.hot_place(tid) {
            // SAFETY: located just now.
            let slot = unsafe { self.raw_at(row, at) };
            crate::index::prefetch_line(self.text_of(tid, at, slot).as_ptr());
        }
    }

    fn overflow_text(&self, tid: Tid, at: &ColumnLocation, slot: &[u8]) -> &[u8] {
        let place = u32::from_le_bytes([slot[1], slot[2], slot[3], slot[4]]);
        let (block, offset) = (place >> OVERFLOW_OFFSET_BITS, place & ((1 << OVERFLOW_OFFSET_BITS) - 1));
        let length = self.heap_bytes(tid.chunk(), at.heap, block, offset, 1)[0] as usize;
        self.heap_bytes(tid.chunk(), at.heap, block, offset + 1, length)
    }

    fn heap_bytes(&self, chunk: usize, heap: u16, block: u32, offset: u32, length: usize) -> &[u8] {
        let list = self.dir.heaps[self.heap_index(chunk, heap)].as_ref().expect("a long text has a heap");
        list.bytes(block, offset, length)
    }

    fn heap_index(&self, chunk: usize, heap: u16) -> usize {
        chunk * self.layout.heap_columns.len() + heap as usize
    }

    /// Lays `text` down in a slot of `chunk`, and in the heap if it is long. A failure leaves the
    /// slot as it was.
    ///
    /// # Safety
    /// S-1: `place` is the address of `at`'s value in a slot of `chunk` that the caller may write.
    #[inline]
    pub(crate) unsafe fn put_text(
        &mut self,
        chunk: usize,
        at: &ColumnLocation,
        text: &[u8],
        place: *mut u8,
    ) -> Result<(), OutOfMemory> {
        match at.physical {
            Physical::Inline(capacity) if text.len() <= capacity as usize => {
                // SAFETY: S-1; the slot has `1 + capacity` bytes, and `text` is not in it, being
                // borrowed from outside the table or copied.
                unsafe {
                    *place = text.len() as u8;
                    std::ptr::copy_nonoverlapping(text.as_ptr(), place.add(1), text.len());
                }
            }
            Physical::View if text.len() <= VIEW_INLINE_BYTES => {
                // SAFETY: S-1; a view has 16 bytes.
                unsafe { place.cast::<[u8; 16]>().write_unaligned(View::short(text).0) };
            }
            _ => {
                let (bytes, width) = self.put_in_heap(chunk, at, text)?;
                // SAFETY: S-1; `width` is at most the slot's.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, width) };
            }
        }
        Ok(())
    }

    /// Lays a long text down in the heap: what its slot holds, and how much of that counts.
    #[inline(never)]
    fn put_in_heap(
        &mut self,
        chunk: usize,
        at: &ColumnLocation,
        text: &[u8],
    ) -> Result<([u8; 16], usize), OutOfMemory> {
        slot_in_heap(at.physical, text, |bytes| self.append(chunk, at.heap, bytes))
    }

    /// Bytes of a slot's text that lie in the heap.
    pub(crate) fn heap_length(&self, tid: Tid, at: &ColumnLocation) -> u64 {
        let slot = self.raw(tid, at);
        let length = match at.physical {
            Physical::Inline(_) if slot[0] == OVERFLOW => self.overflow_text(tid, at, slot).len(),
            Physical::View => View(slot.try_into().expect("a view has 16 bytes")).length(),
            _ => return 0,
        };
        heap_bytes_of(at.physical, length)
    }

    /// Accounts `bytes` of heap text as garbage (or, negative, as text again).
    pub(crate) fn count_garbage(&mut self, chunk: usize, heap: u16, bytes: i64) {
        let index = self.heap_index(chunk, heap);
        let state = &mut self.heap_use[index];
        state.garbage_bytes = state.garbage_bytes.saturating_add_signed(bytes);
        if state.wants_rewrite() && !state.is_listed {
            state.is_listed = true;
            self.untidy.push((chunk as u32, heap));
        }
    }

    /// A heap that is mostly garbage, if there is one.
    #[inline(always)]
    pub(crate) fn untidy(&self) -> Option<(u32, u16)> {
        self.untidy.last().copied()
    }

    /// Rewrites the heaps that are mostly garbage. Runs between two transactions. When memory is
    /// short it leaves them as they are.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.untidy.is_empty() || self.is_worked_on() {
            return;
        }
        while self.tidy_one() {}
    }

    /// Rewrites one of them; whether there was one.
    pub(crate) fn tidy_one(&mut self) -> bool {
        if self.has_ghosts() {
            return false;
        }
        let Some((chunk, heap)) = self.untidy.pop() else { return false };
        self.rewrite_heap(chunk as usize, heap);
        true
    }

    /// Rewrites no heap while what is returned lives: slots of texts stay as they are unless their rows are changed.
    pub(crate) fn keep_heaps(&mut self) -> Arc<()> {
        self.keeps_heaps.upgrade().unwrap_or_else(|| {
            let keeper = Arc::new(());
            self.keeps_heaps = Arc::downgrade(&keeper);
            keeper
        })
    }

    /// Appends `text` to a heap: block and offset.
    fn append(&mut self, chunk: usize, heap: u16, text: &[u8]) -> Result<(u32, u32), OutOfMemory> {
        debug_assert!(text.len() <= MAX_TEXT_BYTES, "longer texts were refused");
        let index = self.heap_index(chunk, heap);
        let room = self.dir.heaps[index].as_ref().is_some_and(|list| list.room() >= text.len());
        if !room {
            self.add_heap_block(index, text.len())?;
        }
        let list = self.dir.heaps[index].as_ref().expect("the heap has a block with room");
        let place = list.append(text);
        self.heap_use[index].add_text(text.len());
        Ok(place)
    }

    fn add_heap_block(&mut self, index: usize, at_least: usize) -> Result<(), OutOfMemory> {
        let (old, epoch) = (self.dir.heaps[index].as_deref(), self.epoch);
        let list = HeapList::grown(old, at_least, epoch, self.registry.pool(), self.heap_need)?;
        self.heap_use[index].add_block(&list);
        self.dir_mut().heaps[index] = Some(Arc::new(list));
        Ok(())
    }

    /// Rewrites a heap without its garbage.
    #[cold]
    fn rewrite_heap(&mut self, chunk: usize, heap: u16) {
        // What no snapshot sees is free as soon as it is rewritten, which frees more than it takes.
        let frees = self.registry.oldest_seeing(self.table) == self.registry.epoch().0;
        self.heap_need = if frees { Need::Freeing } else { Need::Ordinary };
        self.try_rewrite_heap(chunk, heap);
        self.heap_need = Need::Ordinary;
    }

    fn try_rewrite_heap(&mut self, chunk: usize, heap: u16) {
        let index = self.heap_index(chunk, heap);
        self.heap_use[index].is_listed = false;
        if !self.heap_use[index].wants_rewrite() {
            return;
        }
        let at = *self.layout.column(self.layout.heap_columns[heap as usize]);
        let Some(old) = self.dir.heaps[index].clone() else { return };
        let first = Tid::new(chunk, 0);
        for block in 0..CHUNK_ROWS >> at.shift {
            if self.place_mut(Tid::new(chunk, block << at.shift), &at).is_err() {
                self.heap_use[index].refused_bytes = self.heap_use[index].garbage_bytes;
                return;
            }
        }
        let before = self.heap_use[index];
        self.dir_mut().heaps[index] = None;
        self.heap_use[index] = HeapUse::default();
        // A rollback may have taken all slots of the chunk back.
        let end = self.slots.saturating_sub(first.0).min(CHUNK_ROWS as u64);
        let width = at.physical.width();
        // New slots are laid down apart, so that running out of memory changes nothing.
        let mut slots = vec![0; width * end as usize];
        for (slot, place) in slots.chunks_exact_mut(width).enumerate() {
            let tid = Tid(first.0 + slot as u64);
            if !self.is_live(tid) || self.is_null(tid, &at) {
                continue;
            }
            let text = old_text(&old, self.raw(tid, &at), &at).to_vec();
            // SAFETY: `place` stands for the slot and is as wide.
            if unsafe { self.put_text(chunk, &at, &text, place.as_mut_ptr()) }.is_err() {
                return self.abandon_rewrite(index, heap, old, before);
            }
        }
        for (slot, bytes) in slots.chunks_exact(width).enumerate() {
            let tid = Tid(first.0 + slot as u64);
            self.write_raw(tid, &at, bytes).expect("the column's blocks were made private above");
        }
        debug_assert_eq!(self.heap_use[index].garbage_bytes, 0, "a heap that was rewritten has no garbage");
        debug_assert!(self.heap_use[index].text_bytes <= before.text_bytes, "rewriting adds no text");
        self.retire_heap(&old, heap);
    }

    fn abandon_rewrite(&mut self, index: usize, heap: u16, old: Arc<HeapList>, before: HeapUse) {
        if let Some(partial) = self.dir_mut().heaps[index].take() {
            self.retire_heap(&partial, heap);
        }
        self.dir_mut().heaps[index] = Some(old);
        self.heap_use[index] = HeapUse { refused_bytes: before.garbage_bytes, ..before };
    }

    /// Leaves the blocks of a heap, which the directory no longer holds or is going with, to the
    /// snapshots that see them.
    pub(super) fn retire_heap(&self, list: &HeapList, heap: u16) {
        let place = self.contents_of(ColumnSet::only(self.layout.heap_columns[heap as usize]));
        for block in list.blocks.iter() {
            debug_assert!(block.birth <= self.epoch, "no block is of an epoch to come");
            let life = block.birth..self.epoch;
            // SAFETY: the block came from the pool with this size; no directory of a live table holds
            // its list.
            unsafe { self.registry.retire(place, block.block, block.bytes as usize, life) };
        }
    }
}

/// What the slot of a long text holds, which `append` lays down in a heap, and how much of that counts.
pub(super) fn slot_in_heap(
    physical: Physical,
    text: &[u8],
    append: impl FnOnce(&[u8]) -> Result<(u32, u32), OutOfMemory>,
) -> Result<([u8; 16], usize), OutOfMemory> {
    match physical {
        Physical::Inline(_) => {
            assert!(text.len() <= usize::from(u8::MAX), "a short declared text's length is a byte");
            let mut prefixed = Vec::with_capacity(text.len() + 1);
            prefixed.push(text.len() as u8);
            prefixed.extend_from_slice(text);
            let (block, offset) = append(&prefixed)?;
            // Beyond lie 4 GiB of garbage that one transaction made in one heap.
            assert!(block >> (u32::BITS - OVERFLOW_OFFSET_BITS) == 0, "a heap of short texts is full");
            assert!(offset >> OVERFLOW_OFFSET_BITS == 0, "blocks of short texts are short");
            let mut slot = [0; 16];
            slot[0] = OVERFLOW;
            slot[1..5].copy_from_slice(&((block << OVERFLOW_OFFSET_BITS) | offset).to_le_bytes());
            Ok((slot, 5))
        }
        Physical::View => {
            let (block, offset) = append(text)?;
            Ok((View::long(text, block, offset).0, 16))
        }
        _ => panic!("a column of fixed width is no string"),
    }
}

/// Bytes that a text of `length` bytes takes in the heap of a column.
pub(crate) fn heap_bytes_of(physical: Physical, length: usize) -> u64 {
    match physical {
        Physical::Inline(capacity) if length > capacity as usize => length as u64 + 1,
        Physical::View if length > VIEW_INLINE_BYTES => length as u64,
        _ => 0,
    }
}

/// The text of a slot whose heap is `list`.
pub(super) fn old_text<'a>(list: &'a HeapList, slot: &'a [u8], at: &ColumnLocation) -> &'a [u8] {
    match at.physical {
        Physical::Inline(_) if slot[0] != OVERFLOW => &slot[1..=slot[0] as usize],
        Physical::Inline(_) => inline_overflow(list, slot),
        _ => {
            let view = View(slot.try_into().expect("a view has 16 bytes"));
            match view.length() {
                length if length <= VIEW_INLINE_BYTES => &slot[4..4 + length],
                length => {
                    let (block, offset) = view.heap_place();
                    list.bytes(block, offset, length)
                }
            }
        }
    }
}

/// The text of an overflowed inline slot.
pub(crate) fn inline_overflow<'a>(list: &'a HeapList, slot: &[u8]) -> &'a [u8] {
    let (block, offset, length) = inline_overflow_place(list, slot);
    list.bytes(block, offset, length)
}

/// Block, offset and length of the text of an overflowed inline slot.
pub(crate) fn inline_overflow_place(list: &HeapList, slot: &[u8]) -> (u32, u32, usize) {
    let place = u32::from_le_bytes([slot[1], slot[2], slot[3], slot[4]]);
    let (block, offset) = (place >> OVERFLOW_OFFSET_BITS, place & ((1 << OVERFLOW_OFFSET_BITS) - 1));
    (block, offset + 1, list.bytes(block, offset, 1)[0] as usize)
}

impl HeapList {
    /// A list of the same blocks.
    pub(super) fn same(&self) -> Self {
        let used = self.used_in_last.load(std::sync::atomic::Ordering::Relaxed);
        Self { blocks: self.blocks.clone(), used_in_last: used.into() }
    }

    /// A list with the blocks of another and a new one that has room.
    pub(super) fn grown(
        old: Option<&Self>,
        at_least: usize,
        birth: u64,
        pool: &BlockPool,
        need: Need,
    ) -> Result<Self, OutOfMemory> {
        let old: &[HeapBlock] = old.map_or(&[], |list| &list.blocks);
        let grown = (16 << 10 << (2 * old.len()).min(8)).min(HEAP_BLOCK_BYTES);
        let bytes = grown.max(at_least.next_multiple_of(64));
        debug_assert!(bytes >= at_least && bytes <= SLAB_BYTES, "a text has room in one block");
        let block = pool.alloc_for(bytes, need)?;
        let mut blocks = old.to_vec();
        blocks.push(HeapBlock { block, bytes: bytes as u32, birth });
        Ok(Self::new(blocks))
    }

    fn new(blocks: Vec<HeapBlock>) -> Self {
        Self { blocks: blocks.into_boxed_slice(), used_in_last: AtomicU32::new(0) }
    }

    /// Bytes left in the last block.
    pub(super) fn room(&self) -> usize {
        let last = self.blocks.last().map_or(0, |b| b.bytes);
        debug_assert!(self.used_in_last.load(Ordering::Relaxed) <= last, "text lies in its block");
        (last - self.used_in_last.load(Ordering::Relaxed)) as usize
    }

    /// Appends to the last block, which has room. Only the executor calls this.
    pub(super) fn append(&self, text: &[u8]) -> (u32, u32) {
        let offset = self.used_in_last.load(Ordering::Relaxed);
        let last = self.blocks.last().expect("a heap list has a block");
        assert!(offset as usize + text.len() <= last.bytes as usize, "the last block has room for the text");
        // SAFETY: in bounds, asserted; nobody reads beyond `used_in_last`, and the executor is the
        // only writer.
        unsafe {
            let place: NonNull<u8> = last.block.add(offset as usize);
            std::ptr::copy_nonoverlapping(text.as_ptr(), place.as_ptr(), text.len());
        }
        // Release: a reader that sees the new length sees the bytes.
        self.used_in_last.store(offset + text.len() as u32, Ordering::Release);
        (self.blocks.len() as u32 - 1, offset)
    }

    /// Bytes of a text.
    pub(crate) fn bytes(&self, block: u32, offset: u32, length: usize) -> &[u8] {
        let written = self.readable(block as usize);
        debug_assert!(offset as usize + length <= written, "a view refers to text that was written");
        let HeapBlock { block, bytes, .. } = self.blocks[block as usize];
        assert!(offset as usize + length <= bytes as usize, "a view stays in its heap block");
        // SAFETY: in bounds, asserted; bytes that a view refers to are never written again, and
        // the block lives as long as a list that holds it.
        unsafe { std::slice::from_raw_parts(block.as_ptr().add(offset as usize), length) }
    }

    /// Readable bytes of block `index`.
    pub(crate) fn readable(&self, index: usize) -> usize {
        match index + 1 == self.blocks.len() {
            true => self.used_in_last.load(Ordering::Acquire) as usize,
            false => self.blocks[index].bytes as usize,
        }
    }
}
