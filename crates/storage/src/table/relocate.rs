//! Rows of frozen and cooling chunks that are to be written: they move to a hot chunk first.
//!
//! A row that has moved stands in the indexes at its new slot, and stays known by its old TID until its transaction is
//! over (I-2 of `rows::cold`). In the undo log it is under that TID too: before its other changes a [`Change::Moved`].
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data*, VLDB 2012, §3.3 and §5.2.

use std::sync::Arc;

use albireo_base::Tid;

use super::{Table, TableError};
use crate::frozen::EncodedChunk;
use crate::frozen::away::Evicted;
use crate::rows::{Replaced, WhyHot};
use crate::undo::UndoLog;

/// A chunk, and whether it is frozen now, or why not.
pub type Frozen = (u32, Result<(), WhyHot>);

impl Table {
    /// Gets a row ready to be written: by which TID it is known, and its slot, which has an address and may be written.
    ///
    /// # Errors
    /// There is no memory; nothing has happened then.
    #[inline(always)]
    pub(super) fn warm(&mut self, undo: &mut UndoLog, tid: Tid) -> Result<(Tid, Tid), TableError> {
        match self.rows.is_hot(tid) && !self.rows.has_moved() {
            true => Ok((tid, tid)),
            false => self.warm_up(undo, tid),
        }
    }

    #[cold]
    #[inline(never)]
    fn warm_up(&mut self, undo: &mut UndoLog, tid: Tid) -> Result<(Tid, Tid), TableError> {
        let tid = self.rows.known_as(tid);
        let slot = self.rows.slot_of(tid);
        match self.rows.moves_before_written(slot) {
            true => Ok((tid, self.relocate(undo, tid)?)),
            false => Ok((tid, slot)),
        }
    }

    /// Moves a live row of a frozen or cooling chunk; gives its new slot.
    fn relocate(&mut self, undo: &mut UndoLog, tid: Tid) -> Result<Tid, TableError> {
        let slot = self.move_to_hot(tid)?;
        self.rows.note_moved(tid, slot);
        undo.push_moved(self.spec.id.0, tid, slot);
        Ok(slot)
    }

    /// Moves a live row of a frozen or cooling chunk, by whatever TID it is known then; gives its new slot.
    fn move_to_hot(&mut self, tid: Tid) -> Result<Tid, TableError> {
        debug_assert!(self.rows.is_live(tid), "only live rows move");
        self.rows.require(tid)?;
        self.rows.prefetch_frozen(tid);
        // All that may fail for memory comes first.
        self.rows.prepare_to_die(tid)?;
        let slot = self.rows.new_slot()?;
        let before = self.rows.heap_text_bytes(slot.tid().chunk());
        if let Err(full) = self.rows.copy_out(tid, slot.tid()) {
            self.rows.drop_heap_text_since(slot.tid().chunk(), &before);
            return Err(full.into());
        }
        let slot = self.rows.publish(slot);
        if let Err(error) = self.retarget_all(tid, slot) {
            self.count_texts(slot, 1);
            self.rows.unpublish(slot);
            return Err(error);
        }
        self.rows.kill(tid)?;
        self.count_texts_in_blocks(tid, 1);
        Ok(slot)
    }

    /// Whether rows may move out of a chunk, which is frozen and not empty, as far as the table knows.
    pub fn may_move_out(&self, chunk: u32) -> bool {
        self.rows.may_move_out(chunk)
    }

    /// What has to be fetched before rows move out of a chunk; `None` if it is in memory, or no row lives there.
    pub fn away_to_move_out(&self, chunk: u32) -> Option<Evicted> {
        let first = Tid::new(chunk as usize, 0);
        let away = Evicted::of(self.rows.frozen_chunk(first)?)?;
        self.rows.next_of_chunk(first).map(|_| away)
    }

    /// Moves up to `most` rows out of a frozen chunk, and tells their TIDs before and after. Lets go of the chunk if no
    /// row lives there any more, and gives what it held. The caller is between two transactions, nobody holds on to the
    /// TIDs, and nothing is to be fetched ([`Table::away_to_move_out`]).
    ///
    /// # Errors
    /// There is no memory; rows that were told have moved.
    ///
    /// # Panics
    /// The chunk is not frozen, or may not be touched ([`Table::may_move_out`]).
    pub fn move_out(
        &mut self,
        chunk: u32,
        most: usize,
        mut moved: impl FnMut(Tid, Tid),
    ) -> Result<Option<Replaced>, TableError> {
        assert!(self.rows.may_move_out(chunk), "chunk {chunk} may not be touched");
        let mut next = Tid::new(chunk as usize, 0);
        for _ in 0..most {
            let Some(tid) = self.rows.next_of_chunk(next) else { break };
            moved(tid, self.move_to_hot(tid)?);
            next = tid;
        }
        Ok(self.rows.next_of_chunk(next).is_none().then(|| self.rows.give_up(chunk)))
    }

    /// Takes a move back.
    pub(super) fn undo_move(&mut self, tid: Tid) {
        let slot = self.rows.forget_moved(tid);
        self.rows.revive(tid);
        self.count_texts_in_blocks(tid, -1);
        let back = Arc::clone(&self.spec);
        let pool = self.rows.pool().clone();
        pool.with_emergency(|| {
            assert!(self.retarget_all(slot, tid).is_ok(), "entries of {} go back where they were", back.name);
        });
        self.count_texts(slot, 1);
        self.rows.unpublish(slot);
    }

    /// The transaction that moved rows is over: they are known by their slots. Called at commit, before slots are
    /// freed.
    pub fn settle_moved(&mut self) {
        self.rows.settle_moved();
    }

    /// Makes what is left of the last chunk free slots, so that it is whole and may be frozen.
    pub fn end_chunk(&mut self) {
        self.rows.leave_hole();
    }

    /// Has chunks cool: their rows move out before they are written, and nobody comes to their slots. Tells for each why it
    /// stays hot, if it does. The caller is between two transactions.
    pub fn cool(&mut self, chunks: impl IntoIterator<Item = u32>) -> Vec<Frozen> {
        let cool = |chunk: u32| (chunk, self.rows.cool(chunk as usize));
        let done = chunks.into_iter().map(cool).collect();
        self.rows.sweep_free_slots();
        done
    }

    /// Has a cooling chunk be hot again, with the slots of rows that have moved out or died free; `false` if that cannot be
    /// now, or it does not cool. The caller is between two transactions.
    pub fn end_cooling(&mut self, chunk: u32) -> bool {
        self.rows.end_cooling(chunk as usize)
    }

    /// What keeps a chunk from being frozen at the moment.
    ///
    /// # Errors
    /// That.
    pub fn may_freeze(&self, chunk: u32) -> Result<(), WhyHot> {
        self.rows.may_freeze(chunk as usize)
    }

    /// Puts chunks that were encoded in the place of their blocks. The snapshot that they were made from lives, and the
    /// caller is between two transactions, with nobody at work beside the table. Gives what was replaced, and for each
    /// chunk whether that went well, or why not.
    pub fn freeze(&mut self, chunks: impl IntoIterator<Item = EncodedChunk>) -> (Replaced, Vec<Frozen>) {
        let mut replaced = self.rows.nothing_replaced();
        let freeze = |chunk: EncodedChunk| (chunk.number(), self.rows.freeze(chunk, &mut replaced));
        let done = chunks.into_iter().map(freeze).collect();
        self.rows.sweep_free_slots();
        (replaced, done)
    }
}
