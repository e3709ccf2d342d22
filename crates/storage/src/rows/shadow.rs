//! Blocks of some columns, filled beside the rows that they will belong to.
//!
//! They begin as copies of what a snapshot shows, take new values while others use the rows, and follow what these
//! change ([`Shadow::follow`]); at the end they take the place of the rows' own blocks, a few words each
//! ([`Rows::install`]). So a change of a whole column takes its rows for a moment, and writes no value twice.
//!
//! Invariants:
//! - I-1 A block holds, in each slot that is in use, what the rows hold there, unless the slot was given another value
//!   since it was followed last: also of columns that lie in the block and are not written.
//!   No row is about to come meanwhile ([`Rows::conceal`]): nobody would tell of it.
//! - I-2 Nobody else knows a block before it is installed.
//! - I-3 A column of texts gets a new heap for each chunk in which it has blocks, with all texts of the chunk in the
//!   end. Of other columns of texts in the same blocks the slots are copied: no heap is rewritten meanwhile
//!   ([`Rows::keep_heaps`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Tid};
use rustc_hash::FxHashMap;

use super::heap::{HeapUse, heap_bytes_of, old_text, slot_in_heap};
use super::{Rows, SeenRows};
use crate::bitmap;
use crate::directory::{Directory, Entry, HeapList};
use crate::frozen::FrozenChunk;
use crate::layout::{ColumnLocation, Layout, Physical};
use crate::pool::{BlockPool, Need, OutOfMemory};
use crate::registry::{BlockContents, ColumnSet, SnapshotRegistry};

/// Blocks beside the rows of one table in one partition.
pub(crate) struct Shadow {
    pub(super) layout: Arc<Layout>,
    pool: BlockPool,
    /// The columns that are written.
    columns: Vec<ColumnLocation>,
    /// All columns that lie in the blocks of these.
    beside: Vec<ColumnLocation>,
    /// As in a directory.
    pub(super) blocks: Vec<Option<NonNull<u8>>>,
    /// By their numbers in a directory.
    pub(super) heaps: FxHashMap<usize, ShadowHeap>,
    /// Chunks that were frozen: all their blocks are here.
    pub(super) melted: BTreeSet<usize>,
}

/// The new heap of a column of texts in a chunk.
#[derive(Default)]
pub(super) struct ShadowHeap {
    list: Option<HeapList>,
    usage: HeapUse,
}

impl ShadowHeap {
    fn append(&mut self, text: &[u8], pool: &BlockPool) -> Result<(u32, u32), OutOfMemory> {
        if self.list.as_ref().is_none_or(|list| list.room() < text.len()) {
            // It is born when it is installed.
            let list = HeapList::grown(self.list.as_ref(), text.len(), 0, pool, Need::Ordinary)?;
            self.usage.add_block(&list);
            self.list = Some(list);
        }
        let list = self.list.as_ref().expect("the heap has a block with room");
        self.usage.add_text(text.len());
        Ok(list.append(text))
    }

    /// Whether a slot, whose text lies in the heap, holds this one.
    fn holds(&self, slot: &[u8], at: &ColumnLocation, text: &[u8]) -> bool {
        self.list.as_ref().is_some_and(|list| old_text(list, slot, at) == text)
    }

    /// The bytes of the text that a slot holds.
    fn length(&self, slot: &[u8], at: &ColumnLocation) -> usize {
        match (at.physical, &self.list) {
            (Physical::Inline(_), Some(list)) => old_text(list, slot, at).len(),
            (Physical::Inline(_), None) => usize::from(slot[0]),
            _ => super::View(slot.try_into().expect("a view has 16 bytes")).length(),
        }
    }
}

// SAFETY: the blocks are known to this alone (I-2), and it is used by one thread at a time.
unsafe impl Send for Shadow {}

/// Where a block is copied from, and how many slots of its table are.
#[derive(Clone, Copy)]
pub(crate) struct Original<'r> {
    rows: &'r Rows,
    slots: u64,
    is_live: bool,
}

impl<'r> Original<'r> {
    /// Rows as a snapshot shows them: others may write into slots that it does not have.
    pub(crate) fn seen(rows: &'r SeenRows) -> Self {
        Self { rows, slots: rows.slots, is_live: false }
    }

    /// Rows whose partition the caller owns.
    pub(crate) fn live(rows: &'r Rows) -> Self {
        Self { rows, slots: rows.slots, is_live: true }
    }
}

impl Shadow {
    /// Of these columns, without a block so far.
    pub(crate) fn new(rows: &Rows, columns: &[ColumnId]) -> Self {
        let layout = Arc::clone(&rows.layout);
        let columns: Vec<ColumnLocation> = columns.iter().map(|column| *layout.column(*column)).collect();
        let lies_beside = |at: &&ColumnLocation| columns.iter().any(|written| written.entry == at.entry);
        let beside = layout.columns.iter().filter(lies_beside).copied().collect();
        let pool = rows.pool().clone();
        let (blocks, heaps, melted) = (Vec::new(), FxHashMap::default(), BTreeSet::new());
        Self { layout, pool, columns, beside, blocks, heaps, melted }
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
        if original.rows.dir.entries[index].is_frozen() {
            self.melt(index / self.layout.entries(), original.rows)?;
            return Ok(self.blocks[index].expect("a chunk that is melted has all its blocks"));
        }
        let old = original.rows.dir.entries[index].block;
        let in_use = usize::try_from(original.slots.saturating_sub(first.0)).unwrap_or(usize::MAX);
        let values = stride.map_or(0, |stride| in_use.saturating_mul(stride as usize));
        let (block, copied) = self.new_block(index, values)?;
        // SAFETY: both blocks have room for as many bytes, the new one is nobody's, and the old one lives as long as the
        // original. Of its values only those in slots that the original has are read, which nobody writes; bits are
        // read word by word, as they are shared.
        unsafe {
            match stride {
                Some(_) => std::ptr::copy_nonoverlapping(old.as_ptr(), block.as_ptr(), copied),
                None => {
                    let count = in_use.min(CHUNK_ROWS);
                    bitmap::put(block, 0, count, bitmap::copy(old, count));
                }
            }
        }
        Ok(block)
    }

    /// A block of zeroes.
    pub(super) fn add_block(&mut self, index: usize) -> Result<NonNull<u8>, OutOfMemory> {
        self.new_block(index, 0).map(|(block, _)| block)
    }

    /// A block of zeroes behind its first bytes, as many as are `wanted` or it has, which whoever calls is to fill: how
    /// many those are.
    fn new_block(&mut self, index: usize, wanted: usize) -> Result<(NonNull<u8>, usize), OutOfMemory> {
        let bytes = self.layout.entry_bytes[index % self.layout.entries()] as usize;
        let (block, filled) = (self.pool.alloc(bytes)?, wanted.min(bytes));
        // SAFETY: it has so many bytes, and is nobody's.
        unsafe { block.as_ptr().add(filled).write_bytes(0, bytes - filled) };
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, None);
        }
        let before = self.blocks[index].replace(block);
        debug_assert!(before.is_none(), "a block is made once");
        Ok((block, filled))
    }

    /// Writes a value of the column at a position among those that are written, the bytes of its slot or of its text;
    /// `None` for NULL.
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
        assert!(value.is_some() || at.nullable(), "NULL for the NOT NULL column {}", at.column);
        if at.nullable() {
            let index = self.null_index(tid, &at);
            let bits = self.block(index, Tid::new(tid.chunk(), 0), None, original)?;
            // SAFETY: a bitmap's block, nobody else's (I-2).
            unsafe { bitmap::set(bits, tid.slot(), value.is_some()) };
        }
        if at.physical.is_string() {
            self.begin_texts(tid.chunk(), &at, original)?;
            return self.put_text(tid, &at, value.unwrap_or_default());
        }
        let (index, offset) = self.place_of(tid, &at);
        let block = self.block(index, Tid(tid.0 & !u64::from(at.mask)), Some(at.stride), original)?;
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
        Ok(())
    }

    pub(super) fn heap_number(&self, chunk: usize, at: &ColumnLocation) -> usize {
        chunk * self.layout.heap_columns.len() + at.heap as usize
    }

    /// The slot of a value whose block is there.
    pub(super) fn slot(&self, tid: Tid, at: &ColumnLocation) -> *mut u8 {
        let (index, offset) = self.place_of(tid, at);
        let block = self.blocks.get(index).copied().flatten().expect("the block is there");
        // SAFETY: in the block by the layout's I-1.
        unsafe { block.as_ptr().add(offset) }
    }

    /// Makes a chunk's blocks and heap of a column of texts, without a text: of live rows these follow at once if the
    /// original is live, else [`Shadow::seal`] brings them.
    fn begin_texts(
        &mut self,
        chunk: usize,
        at: &ColumnLocation,
        original: Original<'_>,
    ) -> Result<(), OutOfMemory> {
        let number = self.heap_number(chunk, at);
        if !self.heaps.contains_key(&number) && original.rows.is_frozen(Tid::new(chunk, 0)) {
            self.melt(chunk, original.rows)?;
        }
        if self.heaps.contains_key(&number) {
            return Ok(());
        }
        for block in 0..CHUNK_ROWS >> at.shift {
            let first = Tid::new(chunk, block << at.shift);
            let (index, _) = self.place_of(first, at);
            self.block(index, first, Some(at.stride), original)?;
        }
        self.heaps.insert(number, ShadowHeap::default());
        for slot in 0..CHUNK_ROWS {
            // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2).
            unsafe { self.slot(Tid::new(chunk, slot), at).write_bytes(0, at.width as usize) };
        }
        match original.is_live {
            true => self.bring_texts(chunk, at, original.rows, |_| true),
            false => Ok(()),
        }
    }

    /// Copies the texts of a chunk's rows for which `wants` is true.
    fn bring_texts(
        &mut self,
        chunk: usize,
        at: &ColumnLocation,
        rows: &Rows,
        wants: impl Fn(Tid) -> bool,
    ) -> Result<(), OutOfMemory> {
        let tids = (0..CHUNK_ROWS).map(|slot| Tid::new(chunk, slot));
        for tid in tids.take_while(|tid| tid.0 < rows.slots) {
            if rows.is_live(tid) && !rows.is_null(tid, at) && wants(tid) {
                self.put_text(tid, at, &rows.text(tid, at))?;
            }
        }
        Ok(())
    }

    /// Ends the part in which values are put for the rows of a snapshot: brings the texts of all other rows.
    pub(crate) fn seal(
        &mut self,
        rows: &SeenRows,
        has_value: impl Fn(Tid) -> bool,
    ) -> Result<(), OutOfMemory> {
        let heaps = self.layout.heap_columns.len().max(1);
        let mut begun: Vec<usize> = self.heaps.keys().copied().collect();
        begun.sort_unstable();
        for number in begun {
            let at = *self.layout.column(self.layout.heap_columns[number % heaps]);
            self.bring_texts(number / heaps, &at, rows, |tid| !has_value(tid))?;
        }
        Ok(())
    }

    /// The rows of the snapshot with the values that were put so far, sealed if there are texts among them. Rows that
    /// follow, or get other values, later are not to be read in it; nor any once this is gone.
    pub(crate) fn view(&self, rows: &SeenRows) -> SeenRows {
        assert!(rows.layout_id == self.layout.id, "the rows are of the table");
        let mut dir = Directory::clone(&rows.dir);
        for (entry, block) in dir.entries.iter_mut().zip(&self.blocks) {
            entry.block = block.unwrap_or(entry.block);
        }
        let melted = self.melted.iter().filter(|chunk| dir.frozen.get(**chunk).is_some());
        for chunk in melted.copied().collect::<Vec<_>>() {
            Arc::make_mut(&mut dir.frozen).set(chunk, None);
        }
        for (number, heap) in &self.heaps {
            dir.heaps[*number] = heap.list.as_ref().map(|list| Arc::new(list.same()));
        }
        rows.with(dir)
    }

    /// Writes a text into a slot of a chunk that has a heap.
    pub(super) fn put_text(&mut self, tid: Tid, at: &ColumnLocation, text: &[u8]) -> Result<(), OutOfMemory> {
        let (number, place) = (self.heap_number(tid.chunk(), at), self.slot(tid, at));
        let heap = self.heaps.get_mut(&number).expect("the heap was begun");
        // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2), and nothing else
        // refers to it.
        let slot = unsafe { std::slice::from_raw_parts_mut(place, at.width as usize) };
        let garbage = heap_bytes_of(at.physical, heap.length(slot, at));
        if garbage > 0 && garbage == heap_bytes_of(at.physical, text.len()) && heap.holds(slot, at, text) {
            return Ok(());
        }
        heap.usage.add_garbage(garbage);
        match at.physical {
            Physical::Inline(capacity) if text.len() <= capacity as usize => {
                slot[0] = text.len() as u8;
                slot[1..=text.len()].copy_from_slice(text);
            }
            physical if heap_bytes_of(physical, text.len()) == 0 => {
                slot.copy_from_slice(&super::View::short(text).0);
            }
            physical => {
                let (bytes, width) = slot_in_heap(physical, text, |bytes| heap.append(bytes, &self.pool))?;
                slot[..width].copy_from_slice(&bytes[..width]);
            }
        }
        Ok(())
    }

    /// Takes over what the rows hold in a slot, where there are blocks. The caller owns the partition.
    pub(crate) fn follow(&mut self, rows: &Rows, tid: Tid) -> Result<(), OutOfMemory> {
        assert!(rows.layout_id == self.layout.id, "the rows are of the table");
        if rows.is_frozen(tid) || rows.slot_of(tid) != tid {
            // It has died, or moved away.
            return Ok(());
        }
        for position in 0..self.beside.len() {
            let at = self.beside[position];
            let (index, offset) = self.place_of(tid, &at);
            let Some(Some(block)) = self.blocks.get(index) else { continue };
            if at.physical.is_string() && self.heaps.contains_key(&self.heap_number(tid.chunk(), &at)) {
                // What is dead has no text.
                let has_text = rows.is_live(tid) && !rows.is_null(tid, &at);
                let text = if has_text { rows.text(tid, &at) } else { Cow::Borrowed(&[][..]) };
                self.put_text(tid, &at, &text)?;
                continue;
            }
            let value = rows.raw(tid, &at);
            // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2).
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), block.as_ptr().add(offset), value.len()) };
        }
        for at in self.columns.iter().filter(|at| at.nullable()) {
            let Some(Some(bits)) = self.blocks.get(self.null_index(tid, at)) else { continue };
            // SAFETY: a bitmap's block, nobody else's (I-2).
            unsafe { bitmap::set(*bits, tid.slot(), !rows.is_null(tid, at)) };
        }
        Ok(())
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
        for block in self.heaps.values().filter_map(|heap| heap.list.as_ref()).flat_map(|list| &list.blocks) {
            // SAFETY: as above.
            unsafe { self.pool.free(block.block, block.bytes as usize) };
        }
    }
}

/// Blocks that were replaced. Dropped, they are left to the snapshots that see them: for that nobody need own the table.
pub struct Replaced {
    registry: Arc<SnapshotRegistry>,
    blocks: Vec<(BlockContents, NonNull<u8>, usize, Range<u64>)>,
    /// Chunks that are not frozen any more.
    chunks: Vec<Arc<FrozenChunk>>,
    /// The rows that the new blocks were made from, whose snapshot ends with them.
    seen: Option<SeenRows>,
}

impl Replaced {
    /// Nothing so far, of a table with this registry.
    pub(super) fn new(registry: &Arc<SnapshotRegistry>) -> Self {
        Self { registry: Arc::clone(registry), blocks: Vec::new(), chunks: Vec::new(), seen: None }
    }

    /// A block that no directory of a live table holds any more.
    pub(super) fn keep(
        &mut self,
        contents: BlockContents,
        block: NonNull<u8>,
        bytes: usize,
        life: Range<u64>,
    ) {
        self.blocks.push((contents, block, bytes, life));
    }

    /// A chunk that is not frozen any more.
    pub(super) fn keep_chunk(&mut self, chunk: Arc<FrozenChunk>) {
        self.chunks.push(chunk);
    }

    /// With the rows that the new blocks were made from.
    pub(crate) fn with(self, seen: SeenRows) -> Self {
        let mut with = self;
        debug_assert!(Arc::ptr_eq(&with.registry, &seen.registry), "both are of one database");
        with.seen = Some(seen);
        with
    }
}

// SAFETY: no table holds the blocks any more, and nobody writes them.
unsafe impl Send for Replaced {}

impl Drop for Replaced {
    fn drop(&mut self) {
        // What only it still saw is free then.
        self.seen = None;
        self.chunks.clear();
        for (contents, block, bytes, life) in self.blocks.drain(..) {
            // SAFETY: the block came from the registry's pool with this size; no directory of a live table holds it
            // since it was replaced, and its last change was when its life begins.
            unsafe { self.registry.retire(contents, block, bytes, life) };
        }
    }
}

impl Rows {
    /// Puts blocks in the place of those that they were made for, and leaves these to the snapshots that see them.
    /// Every row that was changed meanwhile has been followed.
    ///
    /// # Panics
    /// They are of another table.
    #[must_use = "what was replaced is retired when it is dropped, which takes a while"]
    pub(crate) fn install(&mut self, mut shadow: Shadow) -> Replaced {
        assert!(
            shadow.layout.id == self.layout_id,
            "blocks are installed in the rows that they were made for"
        );
        let epoch = self.epoch;
        let mut replaced = Replaced::new(&self.registry);
        for (index, block) in std::mem::take(&mut shadow.blocks).into_iter().enumerate() {
            let Some(block) = block else { continue };
            let old = std::mem::replace(&mut self.dir_mut().entries[index], Entry { block, tag: epoch });
            if old.is_frozen() {
                continue;
            }
            let entry = index % self.chunk_entries;
            let contents = self.contents_of(self.layout.entry_columns[entry]);
            let bytes = self.layout.entry_bytes[entry] as usize;
            replaced.keep(contents, old.block, bytes, old.tag..epoch);
        }
        for chunk in std::mem::take(&mut shadow.melted) {
            self.note_melted(chunk, &mut replaced);
        }
        for (number, heap) in std::mem::take(&mut shadow.heaps) {
            let ShadowHeap { list, usage } = heap;
            let list = list.map(|mut list| {
                list.blocks.iter_mut().for_each(|block| block.birth = epoch);
                Arc::new(list)
            });
            let old = std::mem::replace(&mut self.dir_mut().heaps[number], list);
            self.heap_use[number] = usage.in_the_place_of(self.heap_use[number]);
            let column = self.layout.heap_columns[number % self.layout.heap_columns.len()];
            let contents = self.contents_of(ColumnSet::only(column));
            for old in old.iter().flat_map(|old| &old.blocks) {
                replaced.keep(contents, old.block, old.bytes as usize, old.birth..epoch);
            }
        }
        self.note_move();
        replaced
    }
}
