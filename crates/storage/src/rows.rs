//! The rows of one table in one partition: slots, copy-on-write blocks, string heaps, free slots.
//!
//! Responsible for: reading values, writing them in place, replacing a block that a snapshot sees
//! before it is written, slots and their reuse; chunks that have no blocks, being frozen (`cold`).
//! Not responsible for: indexes, constraints and undo (`table`), the snapshots' side (`view`).
//!
//! What procedures pay for: once lookups are asked for ahead of time, TPC-C at 5 warehouses is bound
//! by instructions, not by memory; a population that fits the second-level cache ran no faster. A
//! row is therefore found once for several accesses ([`RowPlace`]), a handle is checked by one
//! comparison, and what fails is out of line: 26,200 instructions a transaction became 19,400. Columns
//! read and written together are checked once for all rows ([`crate::RowShape`]) and keys of arrays are
//! found in two steps ([`crate::Asked`]): 16,300.
//!
//! Invariants:
//! - I-1 Every slot below `slots` holds a valid value for each column (for strings: a view into
//!   the chunk's heap), also when the row is dead.
//! - I-2 `base` points at the first of `dir.entries`, which are those of `chunks` chunks; from `hot_first` on, `hot_chunks`
//!   of them are neither frozen nor cooling. All are renewed wherever `dir` changes.
//! - I-3 A block whose tag is not newer than the newest live snapshot that covers it is never written in
//!   slots that were in use when that snapshot was taken.
//! - I-4 Undoing needs no memory: what it writes was made private in the same transaction, and a
//!   snapshot is taken only between two transactions.

mod absorb;
mod adopt;
mod bulk;
mod cold;
mod cooling;
mod empty;
mod evict;
mod free;
mod ghosts;
mod heap;
mod melt;
mod reads;
mod seen;
mod set;
mod shadow;
mod slots;

use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use albireo_base::ids::{CHUNK_ROWS, CHUNK_SHIFT};
use albireo_base::{TableId, Tid};

use crate::bitmap;
use crate::column::Fixed;
use crate::directory::{Directory, Entry};
use crate::layout::{ColumnLocation, Layout, VALIDITY_ENTRY};
use crate::pool::{Need, OutOfMemory};
use crate::registry::{BlockContents, ColumnSet, SnapshotRegistry};

pub(crate) use absorb::RowRun;
pub(crate) use bulk::Strip;
use cold::Moved;
pub use cold::WhyHot;
pub use cooling::MOST_MOVED_ROWS;
use empty::Emptied;
use free::FreeSlots;
pub(crate) use heap::{HeapUse, OVERFLOW, VIEW_INLINE_BYTES, View, heap_bytes_of, inline_overflow_place};
pub(crate) use reads::Reads;
pub(crate) use seen::{SeenPart, SeenRows};
pub use set::RowSet;
pub(crate) use shadow::{Original, Replaced, Shadow};
pub(crate) use slots::NewSlot;

pub struct Rows {
    table: TableId,
    pub(crate) layout: Arc<Layout>,
    pub(crate) dir: Arc<Directory>,
    base: *const Entry,
    /// The number of chunks behind `base`.
    chunks: usize,
    /// From the first of these on, so many chunks are hot; before them some are frozen or cool.
    hot_first: usize,
    hot_chunks: usize,
    /// The layout's id and its entries per chunk, at hand for every access.
    layout_id: u64,
    chunk_entries: usize,
    /// Slots ever used; the next appended row gets this one.
    pub(crate) slots: u64,
    /// Those that the last snapshot has.
    shared_slots: u64,
    pub(crate) live_rows: u64,
    /// Rows that stand in indexes without living, and those of them that are about to come.
    ghosts: u64,
    pending: RowSet,
    /// Rows of frozen and cooling chunks that the running transaction has moved.
    moved: Moved,
    /// Chunks that hold nothing.
    empty: Emptied,
    /// The epoch after the last snapshot that covers the table.
    epoch: u64,
    /// How often rows came or went, keys changed or the directory moved.
    moves: u64,
    heap_use: Vec<HeapUse>,
    /// What blocks of heaps are taken for at the moment.
    heap_need: Need,
    /// Chunks and heaps that are mostly garbage, to be rewritten between two transactions.
    untidy: Vec<(u32, u16)>,
    /// Lives while they must not be.
    keeps_heaps: Weak<()>,
    /// Free slots and the epoch in which their rows died, oldest first.
    free: FreeSlots,
    /// Slots of rows that died until this epoch are seen by no snapshot, nor will they be; as it was found when so many
    /// snapshots had come or gone.
    unseen: (u64, u64),
    /// What searches in indexes find.
    pub(crate) reads: Reads,
    registry: Arc<SnapshotRegistry>,
    block_bytes: u64,
}

// SAFETY: `base` points into `dir`, which moves with the store; blocks belong to the pool, and the
// store is their only writer.
unsafe impl Send for Rows {}
// SAFETY: shared references only read; all writes take `&mut self`.
unsafe impl Sync for Rows {}

/// Where a row lies: its chunk's entries and its slot there, for several accesses in a row.
///
/// Invariant: from [`Rows::locate`], and the directory has not changed since. Whatever may change
/// it (making a block private, a new chunk, a new heap block) is followed by another `locate`.
#[derive(Clone, Copy)]
pub struct RowPlace {
    pub(crate) entries: *const Entry,
    pub(crate) slot: usize,
}

#[cold]
#[inline(never)]
pub(crate) fn no_such_row(tid: Tid) -> ! {
    panic!("row {} is not in the table", tid.0)
}

#[cold]
#[inline(never)]
pub(crate) fn foreign_handle() -> ! {
    panic!("a column handle belongs to one table and to its column's type")
}

impl Rows {
    pub(crate) fn new(table: TableId, layout: Arc<Layout>, registry: Arc<SnapshotRegistry>) -> Self {
        let epoch = registry.epoch().0;
        let dir = Arc::new(Directory::default());
        let base = dir.entries.as_ptr();
        Self {
            table,
            layout_id: layout.id,
            chunk_entries: layout.entries(),
            layout,
            dir,
            base,
            chunks: 0,
            hot_first: 0,
            hot_chunks: 0,
            slots: 0,
            shared_slots: 0,
            live_rows: 0,
            ghosts: 0,
            pending: RowSet::default(),
            moved: Moved::default(),
            empty: Emptied::default(),
            epoch,
            moves: 0,
            heap_use: Vec::new(),
            heap_need: Need::Ordinary,
            untidy: Vec::new(),
            keeps_heaps: Weak::new(),
            free: FreeSlots::default(),
            unseen: (0, u64::MAX),
            reads: Reads::default(),
            registry,
            block_bytes: 0,
        }
    }

    /// Finds a row that has a place.
    ///
    /// # Panics
    /// There never was such a row, or it is frozen.
    #[inline(always)]
    pub(crate) fn locate(&self, tid: Tid) -> RowPlace {
        match self.find_place(tid) {
            Some(row) => row,
            None => cold::has_no_place(tid),
        }
    }

    /// Finds a row; `None` if it is frozen.
    ///
    /// # Panics
    /// There never was such a row.
    #[inline(always)]
    pub(crate) fn find_place(&self, tid: Tid) -> Option<RowPlace> {
        match self.hot_place(tid) {
            Some(row) => Some(row),
            None => self.place_elsewhere(tid),
        }
    }

    /// Finds a row of a chunk from which on all are hot; `None` if it is not one.
    #[inline(always)]
    pub(crate) fn hot_place(&self, tid: Tid) -> Option<RowPlace> {
        // One comparison for chunks that are not there, and for those among which some are not hot.
        self.is_hot(tid).then(|| self.place_in(tid))
    }

    #[inline(always)]
    fn place_in(&self, tid: Tid) -> RowPlace {
        debug_assert!(tid.chunk() < self.chunks, "the chunk is there");
        debug_assert!(self.base == self.dir.entries.as_ptr(), "`base` is the directory's (I-2)");
        debug_assert!(
            self.chunks * self.chunk_entries <= self.dir.entries.len(),
            "all chunks are there (I-2)"
        );
        // SAFETY: in bounds, which the caller has checked; I-2.
        let entries = unsafe { self.base.add(tid.chunk() * self.chunk_entries) };
        RowPlace { entries, slot: tid.slot() }
    }

    /// A column's entry for a row, and the value's address.
    ///
    /// # Safety
    /// S-2: `row` keeps its invariant: nothing changed the directory since `locate`.
    #[inline(always)]
    pub(crate) unsafe fn entry(&self, row: RowPlace, at: &ColumnLocation) -> (*const Entry, *mut u8) {
        if at.layout != self.layout_id {
            foreign_handle();
        }
        // SAFETY: S-2, and the layout's I-1: the handle is this layout's, checked, so the entry is
        // one of the chunk's, all of which are there.
        let entry = unsafe { row.entries.add(at.entry as usize + (row.slot >> at.shift)) };
        let offset = (row.slot & at.mask as usize) * at.stride as usize + at.offset as usize;
        self.debug_check_place(row, at, offset);
        // SAFETY: in the block by the layout's I-1.
        (entry, unsafe { (*entry).block.as_ptr().add(offset) })
    }

    /// The layout's I-1, of one value.
    #[inline(always)]
    fn debug_check_place(&self, row: RowPlace, at: &ColumnLocation, offset: usize) {
        debug_assert!(row.slot < CHUNK_ROWS, "a slot lies in its chunk");
        let entry = at.entry as usize + (row.slot >> at.shift);
        debug_assert!(entry < self.chunk_entries, "a column's blocks are its chunk's (I-1 of the layout)");
        let bytes = offset + at.width as usize;
        debug_assert!(bytes <= self.layout.entry_bytes[entry] as usize, "a value lies in its block");
    }

    /// A column's null bitmap for a row.
    ///
    /// # Safety
    /// S-2: as for `entry`.
    #[inline(always)]
    unsafe fn null_entry(&self, row: RowPlace, at: &ColumnLocation) -> *const Entry {
        if at.layout != self.layout_id || !at.nullable() {
            foreign_handle();
        }
        debug_assert!((at.null_entry as usize) < self.chunk_entries, "a bitmap is its chunk's");
        // SAFETY: S-2 and the layout's I-1, as in `entry`.
        unsafe { row.entries.add(at.null_entry as usize) }
    }

    /// The value's address.
    #[inline(always)]
    pub(crate) fn place(&self, tid: Tid, at: &ColumnLocation) -> *mut u8 {
        // SAFETY: located just now.
        unsafe { self.entry(self.locate(tid), at).1 }
    }

    /// Asks the processor to bring the cache line, or two, of a value.
    #[inline(always)]
    pub(crate) fn prefetch(&self, tid: Tid, at: &ColumnLocation) {
        if let Some(row) = self.find_place(tid) {
            // SAFETY: located just now.
            crate::index::prefetch_ends(unsafe { self.entry(row, at).1 }, at.width);
        }
    }

    /// Asks the processor to bring what says whether a row lives, which a change of it looks at first.
    #[inline(always)]
    pub(crate) fn prefetch_liveness(&self, tid: Tid) {
        crate::index::prefetch_line(self.validity(tid).as_ptr().wrapping_add(tid.slot() >> 3));
    }

    /// Reads a fixed-width value.
    #[inline(always)]
    pub(crate) fn get<T: Fixed>(&self, tid: Tid, at: &ColumnLocation) -> T {
        if at.width as usize != size_of::<T::Bytes>() {
            foreign_handle();
        }
        let Some(row) = self.find_place(tid) else { return self.frozen_value(tid, at) };
        // SAFETY: located just now.
        let address = unsafe { self.entry(row, at).1 };
        // SAFETY: as many bytes lie there by the layout's I-1; nobody writes while we hold `&self`.
        T::from_bytes(unsafe { address.cast::<T::Bytes>().read_unaligned() })
    }

    /// The bytes of a value as they lie in its slot.
    ///
    /// # Panics
    /// The row is frozen.
    #[inline(always)]
    pub(crate) fn raw(&self, tid: Tid, at: &ColumnLocation) -> &[u8] {
        // SAFETY: located just now.
        unsafe { self.raw_at(self.locate(tid), at) }
    }

    /// [`Rows::raw`] of a row that has been found.
    ///
    /// # Safety
    /// S-2: as for `entry`.
    #[inline(always)]
    unsafe fn raw_at(&self, row: RowPlace, at: &ColumnLocation) -> &[u8] {
        // SAFETY: S-2.
        let address = unsafe { self.entry(row, at).1 };
        // SAFETY: `width` bytes lie there by the layout's I-1; every slot below `slots` was
        // written (I-1), and writing takes `&mut self`.
        unsafe { std::slice::from_raw_parts(address, at.width as usize) }
    }

    /// Whether the value is NULL.
    #[inline(always)]
    pub(crate) fn is_null(&self, tid: Tid, at: &ColumnLocation) -> bool {
        if !at.nullable() {
            return false;
        }
        let Some(row) = self.find_place(tid) else { return self.is_frozen_null(tid, at) };
        // SAFETY: located just now; a null entry's block is a live bitmap.
        !unsafe { bitmap::get((*self.null_entry(row, at)).block, row.slot) }
    }

    /// Whether a row lives there, or where the running transaction has moved it.
    #[inline]
    pub(crate) fn is_live(&self, tid: Tid) -> bool {
        if tid.0 >= self.slots {
            return false;
        }
        // SAFETY: the validity entry's block is a live bitmap.
        unsafe { bitmap::get(self.validity(tid), tid.slot()) || self.lives_elsewhere(tid) }
    }

    #[inline(always)]
    fn validity(&self, tid: Tid) -> NonNull<u8> {
        if tid.chunk() >= self.chunks {
            no_such_row(tid);
        }
        // SAFETY: in bounds; every chunk has this entry, a frozen one too.
        unsafe { (*self.place_in(tid).entries.add(VALIDITY_ENTRY)).block }
    }

    /// Makes the block of `tid` and `at` private and returns the value's address for writing.
    #[inline(always)]
    pub(crate) fn place_mut(&mut self, tid: Tid, at: &ColumnLocation) -> Result<*mut u8, OutOfMemory> {
        let mut row = self.locate(tid);
        // SAFETY: located just now.
        unsafe { self.place_private(tid, &mut row, at) }
    }

    /// [`Rows::place_mut`] of a row that was found before; finds it again when that is needed.
    ///
    /// # Safety
    /// S-2: as for [`Rows::entry`].
    #[inline(always)]
    pub(crate) unsafe fn place_private(
        &mut self,
        tid: Tid,
        row: &mut RowPlace,
        at: &ColumnLocation,
    ) -> Result<*mut u8, OutOfMemory> {
        // SAFETY: S-2 is the caller's.
        let (entry, address) = unsafe { self.entry(*row, at) };
        // SAFETY: an entry of the directory.
        if unsafe { (*entry).tag } == self.epoch {
            return Ok(address);
        }
        self.privatize_entry(entry)?;
        *row = self.locate(tid);
        // SAFETY: located just now.
        let (entry, address) = unsafe { self.entry(*row, at) };
        // SAFETY: an entry of the directory.
        debug_assert_eq!(unsafe { (*entry).tag }, self.epoch, "a private block is of this epoch (I-3)");
        Ok(address)
    }

    /// Makes a column's null bitmap private and sets the row's bit; returns whether it was NULL.
    ///
    /// # Safety
    /// S-2: as for [`Rows::entry`].
    #[inline(always)]
    pub(crate) unsafe fn put_present(
        &mut self,
        tid: Tid,
        row: &mut RowPlace,
        at: &ColumnLocation,
    ) -> Result<bool, OutOfMemory> {
        // SAFETY: S-2 is the caller's.
        let mut entry = unsafe { self.null_entry(*row, at) };
        // SAFETY: an entry of the directory.
        if unsafe { (*entry).tag } != self.epoch {
            self.privatize_entry(entry)?;
            *row = self.locate(tid);
            // SAFETY: located just now.
            entry = unsafe { self.null_entry(*row, at) };
        }
        // SAFETY: an entry of the directory, of a live bitmap; the executor is its only writer.
        unsafe {
            debug_assert_eq!((*entry).tag, self.epoch, "only private blocks are written (I-3)");
            let was_null = !bitmap::get((*entry).block, row.slot);
            bitmap::set((*entry).block, row.slot, true);
            Ok(was_null)
        }
    }

    /// [`Rows::privatize`] by the entry's address.
    #[cold]
    #[inline(never)]
    fn privatize_entry(&mut self, entry: *const Entry) -> Result<(), OutOfMemory> {
        let index = (entry as usize - self.base as usize) / size_of::<Entry>();
        debug_assert!(index < self.dir.entries.len(), "the entry is one of the directory's");
        self.privatize(index)
    }

    /// Overwrites the slot's bytes, as [`Rows::raw`] gave them.
    pub(crate) fn write_raw(
        &mut self,
        tid: Tid,
        at: &ColumnLocation,
        bytes: &[u8],
    ) -> Result<(), OutOfMemory> {
        assert_eq!(bytes.len(), at.width as usize, "a value is as wide as its column");
        let address = self.place_mut(tid, at)?;
        // SAFETY: as many bytes lie there; the block is private; `bytes` is not in it, since it is
        // borrowed while `self` is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
        Ok(())
    }

    /// Marks a value NULL or not.
    #[inline]
    pub(crate) fn set_null(&mut self, tid: Tid, at: &ColumnLocation, null: bool) -> Result<(), OutOfMemory> {
        debug_assert!(at.nullable(), "the column takes NULL");
        self.set_bit_for(tid, at.null_entry as usize, !null, Need::Ordinary)
    }

    #[inline]
    fn set_bit_for(&mut self, tid: Tid, entry: usize, on: bool, need: Need) -> Result<(), OutOfMemory> {
        let index = tid.chunk() * self.layout.entries() + entry;
        assert!(index < self.dir.entries.len(), "the row is in a chunk of the table");
        if self.dir.entries[index].tag != self.epoch {
            self.privatize_for(index, need)?;
        }
        // SAFETY: a bitmap entry's block; the executor is its only writer.
        unsafe { bitmap::set(self.dir.entries[index].block, tid.slot(), on) };
        Ok(())
    }

    /// Makes a bitmap of a row's chunk private.
    pub(crate) fn make_entry_private(
        &mut self,
        tid: Tid,
        entry: usize,
        need: Need,
    ) -> Result<(), OutOfMemory> {
        let index = tid.chunk() * self.chunk_entries + entry;
        match self.dir.entries[index].tag == self.epoch {
            true => Ok(()),
            false => self.privatize_for(index, need),
        }
    }

    /// Makes what holds a value private again, for taking a write back: the transaction may have taken a snapshot
    /// since.
    #[inline]
    pub(crate) fn privatize_again(&mut self, tid: Tid, at: &ColumnLocation) {
        let first = tid.chunk() * self.layout.entries();
        let block = at.entry as usize + (tid.slot() >> at.shift);
        let bitmap = at.nullable().then_some(at.null_entry as usize);
        for entry in std::iter::once(block).chain(bitmap) {
            if self.dir.entries[first + entry].tag != self.epoch {
                self.privatize_for(first + entry, Need::Undoing).expect("undoing is given its memory");
            }
        }
    }

    /// Replaces a block by a private copy if a live snapshot sees it, else marks it as changed in
    /// this epoch.
    fn privatize(&mut self, index: usize) -> Result<(), OutOfMemory> {
        self.privatize_for(index, Need::Ordinary)
    }

    #[cold]
    #[inline(never)]
    fn privatize_for(&mut self, index: usize, need: Need) -> Result<(), OutOfMemory> {
        let Entry { block, tag } = self.dir.entries[index];
        let epoch = self.epoch;
        debug_assert!(tag < epoch, "a block of this epoch is private already");
        assert!(!self.dir.entries[index].is_frozen(), "what is frozen is not written");
        let entry = index % self.layout.entries();
        let place = self.contents_of(self.layout.entry_columns[entry]);
        if !self.registry.sees(place, tag, epoch) {
            self.dir_mut().entries[index].tag = epoch;
            return Ok(());
        }
        let bytes = self.layout.entry_bytes[entry] as usize;
        let copy = self.registry.pool().alloc_for(bytes, need)?;
        debug_assert_ne!(copy, block, "the pool gives out blocks that nobody has");
        // SAFETY: both blocks have `bytes` bytes and are different; the executor is the only
        // writer of the old one, snapshots only read it.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), copy.as_ptr(), bytes) };
        self.dir_mut().entries[index] = Entry { block: copy, tag: epoch };
        self.registry.count_copy(bytes);
        // SAFETY: the block came from the pool with this size and has just left the directory;
        // its last change was in epoch `tag`.
        unsafe { self.registry.retire(place, block, bytes, tag..epoch) };
        Ok(())
    }

    fn contents_of(&self, columns: ColumnSet) -> BlockContents {
        BlockContents { table: self.table, columns }
    }

    /// The directory for changing, cloned first if a snapshot shares it.
    fn dir_mut(&mut self) -> &mut Directory {
        // `make_mut` clones when shared. Either way the entries may move.
        let dir = Arc::make_mut(&mut self.dir);
        let base = dir.entries.as_ptr();
        debug_assert!(dir.entries.len().is_multiple_of(self.chunk_entries), "chunks are whole");
        let heaps = dir.entries.len() / self.chunk_entries * self.layout.heap_columns.len();
        debug_assert_eq!(dir.heaps.len(), heaps, "each chunk has its heaps");
        // A clone is elsewhere, because what it was made from is still there.
        self.moves += u64::from(base != self.base);
        (self.base, self.chunks) = (base, dir.entries.len() / self.chunk_entries);
        (self.hot_first, self.hot_chunks) = (dir.frozen.cold_end(), self.chunks - dir.frozen.cold_end());
        dir
    }

    /// Notes where the entries are, after their number has changed.
    fn readdress(&mut self) {
        (self.base, self.chunks) =
            (self.dir.entries.as_ptr(), self.dir.entries.len() / self.chunk_entries.max(1));
        let cold = self.dir.frozen.cold_end();
        debug_assert!(cold <= self.chunks, "a cold chunk is one of the table's");
        (self.hot_first, self.hot_chunks) = (cold, self.chunks - cold);
    }

    /// What [`crate::Table::moves`] points at.
    pub(crate) fn moves(&self) -> &u64 {
        &self.moves
    }

    /// Notes that a key of a row has changed.
    pub(crate) fn note_move(&mut self) {
        self.moves += 1;
    }

    /// Where to write a value of a new row. No snapshot sees the slot, so no copy is needed.
    ///
    /// # Safety
    /// S-2: as for [`Rows::entry`].
    #[inline(always)]
    pub(crate) unsafe fn new_place(&mut self, row: RowPlace, at: &ColumnLocation) -> *mut u8 {
        // SAFETY: S-2 is the caller's.
        unsafe { self.entry(row, at).1 }
    }

    /// The value's address, without looking whether the handle is this layout's.
    ///
    /// # Safety
    /// S-2: as for [`Rows::entry`]. S-3: `at` is of this layout.
    #[inline(always)]
    pub(crate) unsafe fn known_place(&self, row: RowPlace, at: &ColumnLocation) -> *mut u8 {
        debug_assert!(at.layout == self.layout_id, "a handle is of the table's layout (S-3)");
        let offset = (row.slot & at.mask as usize) * at.stride as usize + at.offset as usize;
        self.debug_check_place(row, at, offset);
        // SAFETY: S-2 and S-3: the entry is one of the chunk's, the value in its block (the layout's I-1).
        unsafe { (*row.entries.add(at.entry as usize + (row.slot >> at.shift))).block.as_ptr().add(offset) }
    }

    /// [`Rows::known_place`] of a column that has whole blocks to itself, of values `width` wide.
    ///
    /// # Safety
    /// S-2 and S-3: as for [`Rows::known_place`].
    #[inline(always)]
    pub(crate) unsafe fn plain_place(&self, row: RowPlace, at: &ColumnLocation, width: usize) -> *mut u8 {
        debug_assert!(at.layout == self.layout_id, "a handle is of the table's layout (S-3)");
        debug_assert!(at.alone && at.fills_chunk(), "the column has its chunk's block to itself");
        debug_assert!(at.stride as usize == width && at.offset == 0, "values lie one behind the other");
        debug_assert!(row.slot < CHUNK_ROWS, "a slot lies in its chunk");
        // SAFETY: as in `known_place`; one block holds the column of a chunk.
        unsafe { (*row.entries.add(at.entry as usize)).block.as_ptr().add(row.slot * width) }
    }

    /// Whether a value is NULL, without looking whether the handle is this layout's.
    ///
    /// # Safety
    /// S-2 and S-3: as for [`Rows::known_place`]; the column takes NULL.
    #[inline(always)]
    pub(crate) unsafe fn known_is_null(&self, row: RowPlace, at: &ColumnLocation) -> bool {
        debug_assert!(at.nullable(), "the column takes NULL (S-3)");
        // SAFETY: S-2 and S-3; a null entry's block is a live bitmap.
        !unsafe { bitmap::get((*row.entries.add(at.null_entry as usize)).block, row.slot) }
    }

    /// Sets a NULL bit, without looking whether the handle is this layout's.
    ///
    /// # Safety
    /// S-2 and S-3: as for [`Rows::known_place`]; the column takes NULL. S-4: the bitmap is private, or
    /// the row is new.
    #[inline(always)]
    pub(crate) unsafe fn known_null(&mut self, row: RowPlace, at: &ColumnLocation, null: bool) {
        debug_assert!(at.nullable(), "the column takes NULL (S-3)");
        // SAFETY: S-2 to S-4; the word is shared atomically.
        unsafe { bitmap::set((*row.entries.add(at.null_entry as usize)).block, row.slot, !null) };
    }

    /// Makes the blocks of a value and its NULL bit private; finds the row again when that moved them.
    ///
    /// # Safety
    /// S-2 and S-3: as for [`Rows::known_place`].
    #[inline(always)]
    pub(crate) unsafe fn make_private(
        &mut self,
        tid: Tid,
        row: &mut RowPlace,
        at: &ColumnLocation,
    ) -> Result<(), OutOfMemory> {
        // SAFETY: S-2 and S-3, for both entries; located again after a change.
        unsafe {
            let entry = row.entries.add(at.entry as usize + (row.slot >> at.shift));
            if (*entry).tag != self.epoch {
                self.privatize_entry(entry)?;
                *row = self.locate(tid);
            }
            self.make_null_private(tid, row, at)
        }
    }

    /// [`Rows::make_private`] of the NULL bit alone.
    ///
    /// # Safety
    /// S-2 and S-3: as for [`Rows::known_place`].
    #[inline(always)]
    pub(crate) unsafe fn make_null_private(
        &mut self,
        tid: Tid,
        row: &mut RowPlace,
        at: &ColumnLocation,
    ) -> Result<(), OutOfMemory> {
        // SAFETY: S-2 and S-3; located again after a change.
        unsafe {
            if at.nullable() {
                let entry = row.entries.add(at.null_entry as usize);
                if (*entry).tag != self.epoch {
                    self.privatize_entry(entry)?;
                    *row = self.locate(tid);
                }
            }
        }
        Ok(())
    }

    /// The id of the layout, which handles carry.
    #[inline(always)]
    pub(crate) fn layout_id(&self) -> u64 {
        self.layout_id
    }

    /// Sets the NULL bit of a new row's value.
    ///
    /// # Safety
    /// S-2: as for [`Rows::entry`].
    #[inline(always)]
    pub(crate) unsafe fn new_null(&mut self, row: RowPlace, at: &ColumnLocation, null: bool) {
        // SAFETY: S-2 is the caller's.
        let entry = unsafe { self.null_entry(row, at) };
        // SAFETY: a null entry's block; the slot is the caller's, the word is shared atomically.
        unsafe { bitmap::set((*entry).block, row.slot, !null) };
    }

    /// Blocks for a chunk's entries from `first` on, bitmaps without a bit.
    fn new_blocks(&self, first: usize) -> Result<Vec<Entry>, OutOfMemory> {
        let (layout, pool) = (&self.layout, self.registry.pool());
        let mut entries: Vec<Entry> = Vec::with_capacity(layout.entries() - first);
        for &bytes in &layout.entry_bytes[first..] {
            match pool.alloc(bytes as usize) {
                Ok(block) => entries.push(Entry { block, tag: self.epoch }),
                Err(full) => {
                    for (entry, &bytes) in entries.iter().zip(&layout.entry_bytes[first..]) {
                        // SAFETY: taken above, known to nobody.
                        unsafe { pool.free(entry.block, bytes as usize) };
                    }
                    return Err(full);
                }
            }
        }
        for entry in layout.bitmaps.iter().filter_map(|&entry| (entry as usize).checked_sub(first)) {
            // SAFETY: a bitmap's block, ours alone so far.
            unsafe { bitmap::clear(entries[entry].block) };
        }
        Ok(entries)
    }

    fn add_chunk(&mut self) -> Result<(), OutOfMemory> {
        let layout = Arc::clone(&self.layout);
        let entries = self.new_blocks(0)?;
        let heaps = layout.heap_columns.len();
        self.heap_use.extend(std::iter::repeat_with(HeapUse::default).take(heaps));
        self.block_bytes += layout.chunk_bytes() as u64;
        let dir = self.dir_mut();
        dir.entries.extend_from_slice(&entries);
        dir.heaps.extend(std::iter::repeat_n(None, heaps));
        self.readdress();
        self.moves += 1;
        debug_assert_eq!(self.chunks * self.chunk_entries, self.dir.entries.len(), "chunks are whole (I-2)");
        debug_assert_eq!(self.heap_use.len(), self.dir.heaps.len(), "the use of each heap is known");
        Ok(())
    }

    /// Leaves a block that was at `index` of the directory, or of a part of it that begins with a chunk, to the
    /// snapshots that see it. The directory no longer holds it, or is going with it.
    fn retire_entry(&self, index: usize, entry: Entry) {
        if entry.is_frozen() {
            return;
        }
        let index = index % self.layout.entries();
        let bytes = self.layout.entry_bytes[index] as usize;
        let place = self.contents_of(self.layout.entry_columns[index]);
        debug_assert!(entry.tag <= self.epoch, "no block is of an epoch to come");
        // SAFETY: the block came from the pool with this size, and no directory of a live table holds it.
        unsafe { self.registry.retire(place, entry.block, bytes, entry.tag..self.epoch) };
    }

    /// Shares the directory with a snapshot and enters the next epoch.
    pub(crate) fn share(&mut self, next_epoch: u64) -> Arc<Directory> {
        assert!(next_epoch > self.epoch, "a table's epochs go up");
        debug_assert!(self.live_rows <= self.slots, "each live row has a slot");
        (self.epoch, self.shared_slots) = (next_epoch, self.slots);
        self.reads.cover(self.chunks, self.registry.observes_reads());
        Arc::clone(&self.dir)
    }

    /// Where blocks come from.
    pub(crate) fn pool(&self) -> &crate::pool::BlockPool {
        self.registry.pool()
    }

    /// The next live row at or after `tid`.
    pub(crate) fn next_live(&self, tid: Tid) -> Option<Tid> {
        self.next_live_before(tid, Tid(self.slots))
    }

    /// The next live row at or after `tid`, and before `end`.
    fn next_live_before(&self, tid: Tid, end: Tid) -> Option<Tid> {
        let (mut next, end) = (tid.0, end.0.min(self.slots));
        while next < end {
            let here = Tid(next);
            let block = self.validity(here);
            // SAFETY: the validity bitmap; only this store's owner writes it.
            let bits = unsafe { bitmap::tail_of_word(block, here.slot()) };
            if bits != 0 {
                let found = next + u64::from(bits.trailing_zeros());
                debug_assert!(found >= tid.0, "rows are met in the order of their slots");
                return (found < end).then_some(Tid(found));
            }
            next = (next | 63) + 1;
        }
        None
    }

    /// Bytes of blocks, of heaps, and of what is frozen.
    pub(crate) fn memory_bytes(&self) -> (u64, u64, u64) {
        let heaps = self.heap_use.iter().map(|h| h.capacity_bytes).sum();
        (
            self.block_bytes,
            heaps,
            self.frozen_chunks(0..u32::MAX).map(|(_, chunk)| chunk.memory_bytes()).sum(),
        )
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        for (index, entry) in self.dir.entries.iter().enumerate() {
            self.retire_entry(index, *entry);
        }
        for (index, heap) in self.dir.heaps.iter().enumerate() {
            let number = index % self.layout.heap_columns.len();
            heap.iter().for_each(|heap| self.retire_heap(heap, number as u16));
        }
    }
}

const _: () = assert!(CHUNK_ROWS == 1 << CHUNK_SHIFT);
