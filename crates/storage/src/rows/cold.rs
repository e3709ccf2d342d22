//! Rows of frozen chunks, and those that the running transaction has moved away from there or from cooling ones
//! (`cooling`).
//!
//! Invariants:
//! - I-1 A row of a frozen chunk is written nowhere: who wants to change it moves it first, to a slot of a hot chunk.
//! - I-2 Until its transaction is over, a row that was moved is still known by the TID that it had, and by that alone:
//!   whoever has that finds the row, and whoever finds the row gets that. So nobody above storage sees a TID change
//!   while it may hold on to it. Between two transactions no row is known by another TID than that of its slot.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::Tid;
use rustc_hash::FxHashMap;

use super::shadow::Replaced;
use super::{HeapUse, RowPlace, Rows, no_such_row};
use crate::column::{Fixed, put_fixed};
use crate::directory::Entry;
use crate::frozen::{EncodedChunk, FrozenChunk, MOST_TEXT_BYTES};
use crate::layout::{BITMAP_BYTES, ColumnLocation, VALIDITY_ENTRY};
use crate::pool::{Need, OutOfMemory};

/// Bytes of the buffer for texts of rows that move which are kept for the next one.
const MOST_KEPT: usize = 4 << 10;

/// Rows that the running transaction has moved.
#[derive(Default)]
pub(super) struct Moved {
    /// Their slots, by the TIDs by which they are known.
    to: BTreeMap<Tid, Tid>,
    from: FxHashMap<Tid, Tid>,
    /// For one text at a time on its way.
    text: Vec<u8>,
}

/// Why a chunk is not frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WhyHot {
    /// It is already.
    #[error("it is frozen")]
    IsFrozen,
    /// New rows come to it.
    #[error("new rows come to it")]
    IsLast,
    /// A transaction is under way.
    #[error("a transaction is under way")]
    InTransaction,
    /// A statement over many rows is at work in its table.
    #[error("a statement over many rows is at work")]
    WorkedOn,
    /// Its texts are too long together.
    #[error("its texts take more than 256 MiB")]
    TooLong,
    /// It was written since it was encoded.
    #[error("it was written meanwhile")]
    Changed,
}

#[cold]
#[inline(never)]
pub(super) fn has_no_place(tid: Tid) -> ! {
    panic!("row {} is frozen, and has no address", tid.0)
}

impl Rows {
    /// Whether the chunk of a row is one of the last ones, which are all hot.
    #[inline(always)]
    pub(crate) fn is_hot(&self, tid: Tid) -> bool {
        tid.chunk().wrapping_sub(self.hot_first) < self.hot_chunks
    }

    /// Whether a row is encoded, wherever it has been moved since.
    #[inline]
    pub(crate) fn is_frozen(&self, tid: Tid) -> bool {
        !self.is_hot(tid) && self.dir.frozen.get(tid.chunk()).is_some()
    }

    /// [`Rows::find_place`] where not all chunks are hot.
    #[cold]
    #[inline(never)]
    pub(super) fn place_elsewhere(&self, tid: Tid) -> Option<RowPlace> {
        if tid.chunk() >= self.chunks {
            no_such_row(tid);
        }
        let slot = self.slot_of(tid);
        self.dir.frozen.get(slot.chunk()).is_none().then(|| self.place_in(slot))
    }

    /// The chunk of a frozen row that was not moved, and its slot there.
    fn frozen(&self, tid: Tid) -> (&FrozenChunk, usize) {
        match self.dir.frozen.get(tid.chunk()) {
            Some(chunk) => {
                chunk.note_read(self.pool().time());
                (chunk, tid.slot())
            }
            None => no_such_row(tid),
        }
    }

    /// The chunk of a row, if it is encoded.
    pub(crate) fn frozen_chunk(&self, tid: Tid) -> Option<&Arc<FrozenChunk>> {
        self.dir.frozen.get(tid.chunk())
    }

    /// Has a frozen row on its way into the processor's caches.
    #[inline]
    pub(crate) fn prefetch_frozen(&self, tid: Tid) {
        if let Some(chunk) = self.frozen_chunk(tid) {
            chunk.prefetch(tid.slot());
        }
    }

    /// To be filled by [`Rows::freeze`].
    pub(crate) fn nothing_replaced(&self) -> Replaced {
        Replaced::new(&self.registry)
    }

    /// A value of a row without a place.
    #[cold]
    #[inline(never)]
    pub(super) fn frozen_value<T: Fixed>(&self, tid: Tid, at: &ColumnLocation) -> T {
        let (chunk, slot) = self.frozen(tid);
        let value = chunk.fixed(at.column, slot).to_le_bytes();
        let mut bytes = T::ZERO;
        let width = bytes.as_ref().len();
        bytes.as_mut().copy_from_slice(&value[..width]);
        T::from_bytes(bytes)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn is_frozen_null(&self, tid: Tid, at: &ColumnLocation) -> bool {
        let (chunk, slot) = self.frozen(tid);
        chunk.is_null(at.column, slot)
    }

    /// [`Rows::text`] where not all chunks are hot.
    #[cold]
    #[inline(never)]
    pub(super) fn text_elsewhere(&self, tid: Tid, at: &ColumnLocation) -> Cow<'_, [u8]> {
        let slot = self.slot_of(tid);
        match self.is_frozen(slot) {
            true => {
                let (chunk, slot) = self.frozen(slot);
                chunk.text(at.column, slot)
            }
            false => Cow::Borrowed(self.text_of(slot, at, self.raw(slot, at))),
        }
    }

    /// Where a row is that is known by `tid`.
    #[inline]
    pub(crate) fn slot_of(&self, tid: Tid) -> Tid {
        match self.moved.to.is_empty() {
            true => tid,
            false => self.moved.to.get(&tid).copied().unwrap_or(tid),
        }
    }

    /// By which TID a row in a slot is known.
    #[inline]
    pub(crate) fn known_as(&self, slot: Tid) -> Tid {
        match self.moved.to.is_empty() {
            true => slot,
            false => self.moved.from.get(&slot).copied().unwrap_or(slot),
        }
    }

    /// Whether the running transaction has moved a row.
    #[inline(always)]
    pub(crate) fn has_moved(&self) -> bool {
        !self.moved.to.is_empty()
    }

    /// Whether rows that are found in an index have to be looked at: some do not live, or are known by other TIDs.
    #[inline(always)]
    pub(crate) fn is_irregular(&self) -> bool {
        self.ghosts > 0 || self.has_moved()
    }

    /// Whether a row lives where it was moved.
    #[inline(always)]
    pub(super) fn lives_elsewhere(&self, tid: Tid) -> bool {
        self.has_moved() && self.moved_row_lives(tid)
    }

    #[cold]
    fn moved_row_lives(&self, tid: Tid) -> bool {
        self.moved.to.get(&tid).is_some_and(|slot| self.is_live(*slot))
    }

    /// The next row at or after `tid` that lives, each at the TID by which it is known.
    pub(crate) fn next_known(&self, tid: Tid) -> Option<Tid> {
        if !self.has_moved() {
            return self.next_live(tid);
        }
        let mut there = self.next_live(tid);
        while let Some(slot) = there
            && self.moved.from.contains_key(&slot)
        {
            there = self.next_live(Tid(slot.0 + 1));
        }
        let moved = self.moved.to.range(tid..).find(|(_, slot)| self.is_live(**slot)).map(|(tid, _)| *tid);
        there.into_iter().chain(moved).min()
    }

    /// Gets ready for a row to die, for which no more memory is needed then.
    pub(crate) fn prepare_to_die(&mut self, tid: Tid) -> Result<(), OutOfMemory> {
        self.make_entry_private(tid, VALIDITY_ENTRY, Need::Ordinary)
    }

    /// Writes the values of a row of a frozen or cooling chunk into a new slot of another chunk.
    pub(crate) fn copy_out(&mut self, from: Tid, to: Tid) -> Result<(), OutOfMemory> {
        debug_assert!(from.chunk() != to.chunk(), "a row moves to another chunk");
        for number in 0..self.layout.columns().len() {
            let at = self.layout.columns()[number];
            let is_null = match self.frozen_chunk(from) {
                Some(chunk) => chunk.is_null(at.column, from.slot()),
                None => self.is_null(from, &at),
            };
            let row = self.locate(to);
            // SAFETY: located just now, and `at` is of the layout; the slot is new.
            let place = unsafe {
                if at.nullable() {
                    self.new_null(row, &at, is_null);
                }
                self.new_place(row, &at)
            };
            if at.physical.is_string() {
                // SAFETY: the place of a value of `at` in a slot of this chunk, which is new: blocks stay where they are.
                unsafe { self.copy_text_out(from, to.chunk(), &at, place)? };
                continue;
            }
            match self.frozen_chunk(from) {
                // SAFETY: `width` bytes lie there by the layout's I-1.
                _ if is_null => unsafe { put_fixed(place, at.width, 0) },
                // SAFETY: as above.
                Some(chunk) => unsafe {
                    put_fixed(place, at.width, chunk.fixed(at.column, from.slot()));
                },
                None => {
                    let value = self.raw(from, &at);
                    // SAFETY: as above; the value lies in another chunk.
                    unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), place, value.len()) };
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As of [`Rows::put_text`].
    unsafe fn copy_text_out(
        &mut self,
        from: Tid,
        chunk: usize,
        at: &ColumnLocation,
        place: *mut u8,
    ) -> Result<(), OutOfMemory> {
        let mut text = std::mem::take(&mut self.moved.text);
        match self.frozen_chunk(from) {
            Some(frozen) => frozen.text_in(at.column, from.slot(), &mut text),
            None => {
                text.clear();
                text.extend_from_slice(&self.text(from, at));
            }
        }
        // SAFETY: the caller's.
        let done = unsafe { self.put_text(chunk, at, &text, place) };
        if text.capacity() <= MOST_KEPT {
            self.moved.text = text;
        }
        done
    }

    /// A row is moved: it stays known by its TID.
    pub(crate) fn note_moved(&mut self, tid: Tid, slot: Tid) {
        debug_assert!(self.is_cold(tid) && !self.is_cold(slot), "what is cold moves to what is not (I-1)");
        self.dir.frozen.count_moved(tid.chunk(), 1);
        let before = (self.moved.to.insert(tid, slot), self.moved.from.insert(slot, tid));
        debug_assert_eq!(before, (None, None), "a row is moved once");
        self.moves += 1;
    }

    /// A row has not been moved after all.
    pub(crate) fn forget_moved(&mut self, tid: Tid) -> Tid {
        let slot = self.moved.to.remove(&tid).expect("the row was moved");
        self.moved.from.remove(&slot);
        self.dir.frozen.count_moved(tid.chunk(), -1);
        self.moves += 1;
        slot
    }

    /// The transaction is over: rows are known by their slots.
    pub(crate) fn settle_moved(&mut self) {
        self.moved.to.clear();
        self.moved.from.clear();
        self.moves += 1;
    }

    /// Whether a statement over many rows is at work in the table.
    pub(super) fn is_worked_on(&self) -> bool {
        self.has_ghosts() || self.keeps_heaps.strong_count() > 0
    }

    /// What keeps a chunk from being frozen now.
    ///
    /// # Errors
    /// That.
    pub(crate) fn may_freeze(&self, chunk: usize) -> Result<(), WhyHot> {
        if self.dir.frozen.get(chunk).is_some() {
            return Err(WhyHot::IsFrozen);
        }
        if (chunk + 1) as u64 * albireo_base::ids::CHUNK_ROWS as u64 > self.slots {
            return Err(WhyHot::IsLast);
        }
        let heaps = self.layout.heap_columns.len();
        let texts = self.heap_use.iter().skip(chunk * heaps).take(heaps).map(|heap| heap.capacity_bytes);
        if texts.sum::<u64>() > MOST_TEXT_BYTES {
            return Err(WhyHot::TooLong);
        }
        if self.has_moved() {
            return Err(WhyHot::InTransaction);
        }
        if self.is_worked_on() {
            return Err(WhyHot::WorkedOn);
        }
        Ok(())
    }

    /// Puts what was encoded in the place of a chunk's blocks, and leaves these to the snapshots that see them. The
    /// snapshot lives that it was encoded from, and the caller is between two transactions.
    ///
    /// # Errors
    /// It has to stay as it is.
    pub(crate) fn freeze(&mut self, encoded: EncodedChunk, replaced: &mut Replaced) -> Result<(), WhyHot> {
        let EncodedChunk { number, chunk } = encoded;
        self.may_freeze(number)?;
        let first = number * self.chunk_entries;
        let now = &self.dir.entries[first + VALIDITY_ENTRY + 1..first + self.chunk_entries];
        if !now.iter().map(|entry| (entry.block, entry.tag)).eq(chunk.made_from().iter().copied()) {
            return Err(WhyHot::Changed);
        }
        let (epoch, heaps) = (self.epoch, self.layout.heap_columns.len());
        for entry in VALIDITY_ENTRY + 1..self.chunk_entries {
            let old = std::mem::replace(&mut self.dir_mut().entries[first + entry], Entry::FROZEN);
            let contents = self.contents_of(self.layout.entry_columns[entry]);
            replaced.keep(contents, old.block, self.layout.entry_bytes[entry] as usize, old.tag..epoch);
        }
        for heap in 0..heaps {
            let index = number * heaps + heap;
            let old = self.dir_mut().heaps[index].take();
            self.heap_use[index] = HeapUse::default();
            let contents = self.contents_of(crate::ColumnSet::only(self.layout.heap_columns[heap]));
            for old in old.iter().flat_map(|old| &old.blocks) {
                replaced.keep(contents, old.block, old.bytes as usize, old.birth..epoch);
            }
        }
        // They stay holes.
        self.free.forget(number);
        self.untidy.retain(|(chunk, _)| *chunk as usize != number);
        self.block_bytes -= (self.layout.chunk_bytes() - BITMAP_BYTES) as u64;
        let rows = chunk.rows();
        let list = &mut self.dir_mut().frozen;
        Arc::make_mut(list).set(number, Some(chunk));
        self.readdress();
        self.moves += 1;
        if rows == 0 {
            drop(self.give_up(number as u32));
        }
        Ok(())
    }
}
