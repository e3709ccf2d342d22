//! Slots: where a new row goes, how it comes to live, and how its slot is free again.

use std::sync::Arc;

use albireo_base::Tid;

use super::Rows;
use crate::bitmap;
use crate::layout::VALIDITY_ENTRY;
use crate::pool::{Need, OutOfMemory};

/// A slot for a new row, not yet visible.
#[derive(Clone, Copy)]
pub(crate) struct NewSlot {
    pub(crate) tid: Tid,
    reused: bool,
}

impl NewSlot {
    #[inline(always)]
    pub(crate) fn tid(self) -> Tid {
        self.tid
    }
}

impl Rows {
    /// A slot for a new row: a free one that no snapshot sees, else the next.
    #[inline(always)]
    pub(crate) fn new_slot(&mut self) -> Result<NewSlot, OutOfMemory> {
        let tid = Tid(self.slots);
        match self.free.is_empty() && tid.chunk() < self.chunks {
            true => Ok(NewSlot { tid, reused: false }),
            false => self.other_slot(),
        }
    }

    /// The slot that [`Rows::new_slot`] gave last, if nothing has been done with the rows since.
    ///
    /// # Panics
    /// It is in use.
    #[inline(always)]
    pub(crate) fn vacant(&self, tid: Tid) -> NewSlot {
        let reused = tid.0 < self.slots;
        let vacant = match reused {
            false => tid.0 == self.slots && tid.chunk() < self.chunks,
            true => self.free.front().is_some_and(|(_, free)| free == tid),
        };
        assert!(vacant, "row {} is not vacant", tid.0);
        debug_assert!(!self.is_live(tid), "no row lives in a vacant slot");
        NewSlot { tid, reused }
    }

    #[inline(never)]
    fn other_slot(&mut self) -> Result<NewSlot, OutOfMemory> {
        if let Some((death, tid)) = self.free.first()
            && self.is_unseen(death)
        {
            debug_assert!(!self.is_live(tid), "no row lives in a free slot");
            self.privatize_row(tid)?;
            return Ok(NewSlot { tid, reused: true });
        }
        let tid = Tid(self.slots);
        if tid.chunk() == self.chunks {
            if self.refill()? {
                return self.other_slot();
            }
            self.add_chunk()?;
        }
        Ok(NewSlot { tid, reused: false })
    }

    /// Whether no snapshot sees a row that died in an epoch, nor will.
    fn is_unseen(&mut self, death: u64) -> bool {
        let (until, changes) = self.unseen;
        if death <= self.registry.oldest_live() || death <= until {
            return true;
        }
        let now = self.registry.changes();
        if now == changes {
            return false;
        }
        // Those of other tables do not matter. One that comes later is not older than the next may be now.
        self.unseen = (self.registry.oldest_seeing(self.table), now);
        death <= self.unseen.0
    }

    /// Makes every block that holds a part of the row private.
    fn privatize_row(&mut self, tid: Tid) -> Result<(), OutOfMemory> {
        let layout = Arc::clone(&self.layout);
        let first = tid.chunk() * layout.entries();
        let blocks = layout.columns.iter().map(|at| at.entry as usize + (tid.slot() >> at.shift));
        for entry in blocks.chain(layout.bitmaps.iter().map(|&entry| entry as usize)) {
            if self.dir.entries[first + entry].tag != self.epoch {
                self.privatize(first + entry)?;
            }
        }
        Ok(())
    }

    /// Makes a new row visible; gives its slot.
    #[inline]
    pub(crate) fn publish(&mut self, slot: NewSlot) -> Tid {
        debug_assert!(!self.is_live(slot.tid), "a row comes to a slot where none lives");
        debug_assert!(slot.reused || slot.tid.0 == self.slots, "a slot that is not used again is the next");
        let block = self.validity(slot.tid);
        // SAFETY: the validity bitmap; see `new_null`.
        unsafe { bitmap::set(block, slot.tid.slot(), true) };
        if slot.reused {
            let taken = self.free.pop_front();
            assert!(taken.is_some_and(|(_, tid)| tid == slot.tid), "a reused slot is the first free one");
        } else {
            self.slots += 1;
        }
        self.live_rows += 1;
        self.moves += 1;
        debug_assert!(self.live_rows <= self.slots, "each live row has a slot");
        slot.tid
    }

    /// Takes a row of the running transaction back: its slot is free at once.
    ///
    /// The last slot is given back as if it never was: every snapshot that saw it, dead, lost its
    /// blocks to a private copy when the slot was reused. A snapshot that the transaction itself has taken since sees
    /// the row: for it the row dies like any other.
    pub(crate) fn unpublish(&mut self, tid: Tid) {
        debug_assert!(self.is_live(tid), "a row that is taken back lives");
        let entry = tid.chunk() * self.layout.entries() + VALIDITY_ENTRY;
        if tid.0 < self.shared_slots && self.dir.entries[entry].tag != self.epoch {
            let cleared = self.set_bit_for(tid, VALIDITY_ENTRY, false, Need::Undoing);
            cleared.expect("undoing is given its memory");
            self.live_rows -= 1;
            self.moves += 1;
            return self.free_slot(tid);
        }
        let block = self.validity(tid);
        // SAFETY: the validity bitmap. No snapshot sees the slot, which was taken in this
        // transaction, and the word is shared atomically.
        unsafe { bitmap::set(block, tid.slot(), false) };
        self.live_rows -= 1;
        self.moves += 1;
        if tid.0 + 1 == self.slots {
            self.slots -= 1;
        } else {
            self.free.push_front((0, tid));
        }
    }

    /// Kills a row, which is all that a deletion needs memory for. Its slot stays taken until
    /// [`Rows::free_slot`].
    pub(crate) fn kill(&mut self, tid: Tid) -> Result<(), OutOfMemory> {
        debug_assert!(self.is_live(tid), "a row dies once");
        self.set_bit_for(tid, VALIDITY_ENTRY, false, Need::Freeing)?;
        self.live_rows -= 1;
        self.moves += 1;
        Ok(())
    }

    /// Takes [`Rows::kill`] back.
    pub(crate) fn revive(&mut self, tid: Tid) {
        debug_assert!(tid.0 < self.slots && !self.is_live(tid), "only a dead row is revived");
        let set = self.set_bit_for(tid, VALIDITY_ENTRY, true, Need::Undoing);
        set.expect("undoing is given its memory");
        self.live_rows += 1;
        self.moves += 1;
    }

    /// Lets the slot of a row that died in this transaction be used again, in time.
    pub(crate) fn free_slot(&mut self, tid: Tid) {
        debug_assert!(tid.0 < self.slots && !self.is_live(tid), "a free slot holds a dead row");
        if self.is_cold(tid) {
            // It stays a hole.
            return;
        }
        debug_assert!(self.free.newest() <= self.epoch, "free slots are in the order of their rows' deaths");
        self.free.push_back((self.epoch, tid));
    }

    /// Gives memory back of slots that are free no more because their chunks cool or are frozen.
    pub(crate) fn sweep_free_slots(&mut self) {
        self.free.sweep();
    }
}
