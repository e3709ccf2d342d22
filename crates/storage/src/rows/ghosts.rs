//! Rows that stand in indexes without living: those that a statement over many rows has killed, or is about to bring.
//!
//! They keep their slots and what lies there until they stand in no index any more. While there are some, whoever
//! finds a row by an index looks whether it lives, and string heaps are not rewritten, as a ghost's key may be a text.
//!
//! - I-1 `ghosts` is how many there are; without any, indexes hold live rows alone.
//! - I-2 A slot that a ghost has is not free.

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use super::{RowRun, RowSet, Rows};
use crate::bitmap;
use crate::layout::VALIDITY_ENTRY;
use crate::pool::{Need, OutOfMemory};

impl Rows {
    /// Whether some row is a ghost.
    #[inline(always)]
    pub(crate) fn has_ghosts(&self) -> bool {
        self.ghosts > 0
    }

    /// Whether a row that stands in an index is a ghost.
    #[inline]
    pub(crate) fn is_ghost(&self, tid: Tid) -> bool {
        self.ghosts > 0 && !self.is_live(tid)
    }

    /// Whether a row is about to come.
    pub(crate) fn is_pending(&self, tid: Tid) -> bool {
        self.pending.has(tid)
    }

    /// Makes ghosts of rows that have come, and that nobody has seen yet: they are about to come.
    pub(crate) fn conceal(&mut self, run: RowRun) {
        let (mut first, end) = (run.first, run.first.0 + run.rows);
        while first.0 < end {
            let count = (CHUNK_ROWS - first.slot()).min((end - first.0) as usize);
            let block = self.validity(first);
            // SAFETY: the validity bitmap, `self` its only writer; the slots are of one chunk. No snapshot sees them,
            // which were taken while the caller has owned the table.
            unsafe { bitmap::put(block, first.slot(), count, std::iter::repeat(0)) };
            first = Tid(first.0 + count as u64);
        }
        self.pending.add_run(run.first, run.rows);
        self.live_rows -= run.rows;
        self.ghosts += run.rows;
        self.moves += 1;
    }

    /// Makes rows of ghosts that were about to come; the caller got ready.
    pub(crate) fn wake_all(&mut self, set: &RowSet) {
        self.flip(set, |bits, these| {
            debug_assert_eq!(bits & these, 0, "a row comes once");
            bits | these
        });
        assert!(self.ghosts >= set.count(), "rows that come were ghosts");
        self.live_rows += set.count();
        self.ghosts -= set.count();
        // There is one such set at a time.
        self.pending = RowSet::default();
    }

    /// Gets ready for [`Rows::kill_all`] or [`Rows::wake_all`] of these rows, which then need no memory.
    pub(crate) fn prepare(&mut self, set: &RowSet, need: Need) -> Result<(), OutOfMemory> {
        for (chunk, _) in set.chunks() {
            let index = chunk * self.chunk_entries + VALIDITY_ENTRY;
            if self.dir.entries[index].tag != self.epoch {
                self.privatize_for(index, need)?;
            }
        }
        Ok(())
    }

    /// Makes ghosts of rows, all of which live.
    pub(crate) fn kill_all(&mut self, set: &RowSet) {
        self.flip(set, |bits, these| {
            debug_assert_eq!(bits & these, these, "a row dies once");
            bits & !these
        });
        assert!(self.live_rows >= set.count(), "rows that die lived");
        self.live_rows -= set.count();
        self.ghosts += set.count();
    }

    fn flip(&mut self, set: &RowSet, change: impl Fn(u64, u64) -> u64) {
        for (chunk, words) in set.chunks() {
            let entry = self.dir.entries[chunk * self.chunk_entries + VALIDITY_ENTRY];
            assert_eq!(entry.tag, self.epoch, "only private blocks are written (I-3 of `rows`)");
            let count = words.len() * 64;
            // SAFETY: the validity bitmap, `self` its only writer.
            unsafe {
                let bits = bitmap::copy(entry.block, count);
                bitmap::put(
                    entry.block,
                    0,
                    count,
                    bits.iter().zip(words).map(|(bits, these)| change(*bits, *these)),
                );
            }
        }
        self.moves += 1;
    }

    /// Whether the slots of rows that were about to come can be as if they never were: they are the last, and no snapshot
    /// has them.
    pub(crate) fn leave_no_trace(&self, run: RowRun) -> bool {
        self.are_last(run) && run.first.0 >= self.shared_slots
    }

    /// Gives the slots of rows back that were about to come and stand in no index: as if they never were, if that can be.
    /// What their texts take in a chunk that stays has been counted.
    pub(crate) fn withdraw(&mut self, run: RowRun) {
        if !self.leave_no_trace(run) {
            return run.tids().for_each(|tid| self.lay_to_rest(tid));
        }
        run.tids().for_each(|tid| self.pending.set(tid, false));
        assert!(self.ghosts >= run.rows, "rows that do not come were ghosts");
        self.ghosts -= run.rows;
        self.slots = run.first.0;
        self.drop_vacant_chunks();
    }

    /// Lets the slot of a ghost that stands in no index be used again, in time.
    pub(crate) fn lay_to_rest(&mut self, tid: Tid) {
        assert!(self.is_ghost(tid), "a ghost is laid to rest");
        self.ghosts -= 1;
        self.pending.set(tid, false);
        self.free_slot(tid);
    }
}
