//! Frozen chunks that leave memory: another takes their place, which says where the columns lie.

use std::ops::Range;
use std::sync::Arc;

use albireo_base::Tid;

use super::{Replaced, Rows};
use crate::TableError;
use crate::frozen::FrozenChunk;

impl Rows {
    /// Those of some chunks that are frozen and hold rows, by number.
    pub(crate) fn frozen_chunks(&self, of: Range<u32>) -> impl Iterator<Item = (u32, &Arc<FrozenChunk>)> {
        let there = of.start..of.end.min(self.dir.frozen.end() as u32);
        let all = there.filter_map(|number| Some((number, self.dir.frozen.get(number as usize)?)));
        all.filter(|(_, chunk)| chunk.rows() > 0)
    }

    /// How many chunks there are, how many of them are frozen and hold rows, and how many of those were evicted.
    pub(crate) fn chunk_counts(&self) -> (u32, u32, u32) {
        let (frozen, evicted) = self.dir.frozen.counts();
        debug_assert!(evicted <= frozen && frozen as usize <= self.chunks, "each is one of the table's");
        (self.chunks as u32, frozen, evicted)
    }

    /// The number of the chunk in which a row lies, if not all of that is in memory.
    pub(crate) fn away_chunk(&self, tid: Tid) -> Option<usize> {
        let slot = self.slot_of(tid);
        self.frozen_chunk(slot).filter(|chunk| chunk.is_away()).map(|_| slot.chunk())
    }

    /// Whether a chunk of this number or a greater one is frozen.
    pub(crate) fn has_frozen_from(&self, number: u32) -> bool {
        (number as usize) < self.dir.frozen.end()
    }

    /// What texts take that frozen chunks share, in bytes, and what they would take if each chunk had its own.
    pub(crate) fn shared_text_bytes(&self) -> (u64, u64) {
        let chunks = self.frozen_chunks(0..u32::MAX).map(|(_, chunk)| chunk.shared_bytes());
        chunks.fold((0, 0), |(shared, own), chunk| (shared + chunk.0, own + chunk.1))
    }

    /// Puts a chunk in the place of one that has the same rows; `false` if that is there no more, or somebody wants it.
    /// The caller is between two transactions.
    pub(crate) fn evict(
        &mut self,
        number: u32,
        was: &Arc<FrozenChunk>,
        now: Arc<FrozenChunk>,
        replaced: &mut Replaced,
    ) -> bool {
        debug_assert_eq!(was.id(), now.id(), "the rows are the same");
        let there = self.dir.frozen.get(number as usize);
        if !there.is_some_and(|there| Arc::ptr_eq(there, was)) || was.is_wanted() || self.has_moved() {
            return false;
        }
        let list = Arc::make_mut(&mut self.dir_mut().frozen);
        let before = list.set(number as usize, Some(now)).expect("it was there");
        replaced.keep_chunk(before);
        self.moves += 1;
        true
    }

    /// Makes sure that all of a row is in memory, which is to be changed; ends the transaction that runs, if one does.
    ///
    /// # Errors
    /// It is not, and the transaction is in a pre-pass: the row must not be changed.
    #[inline]
    pub(crate) fn require(&self, tid: Tid) -> Result<(), TableError> {
        if let Some(chunk) = self.frozen_chunk(tid) {
            chunk.note_read(self.pool().time());
            if !chunk.has_all() {
                return Err(TableError::Away);
            }
        }
        Ok(())
    }
}
