//! Rows of which many die at once.
//!
//! They die in a moment ([`Table::kill_all`]): a bit for each. They stand in the indexes until they are tidied away, a
//! few at a time ([`Table::tidy_away`]); until then whoever finds one knows that it does not live. The keys of those whose
//! chunks are not in memory are brought before ([`FrozenKeys`]), by somebody who owns no partition.

use std::sync::Arc;

use albireo_base::Tid;

use super::{IndexAside, Table, TableError};
use crate::frozen::away::{FetchError, Wanted};
use crate::pool::Need;
use crate::registry::ColumnSet;
use crate::rows::RowSet;

/// Columns of a frozen chunk by which its rows stand in an index. While this is there, the chunk is not evicted, be it for the
/// first time.
pub struct FrozenKeys {
    number: usize,
    chunk: Wanted,
    columns: ColumnSet,
}

impl FrozenKeys {
    /// The number of the chunk in its partition.
    pub fn chunk(&self) -> usize {
        self.number
    }

    /// Has them in memory, beyond the limit for data if need be. The caller owns no partition.
    ///
    /// # Errors
    /// They cannot be read, or the system has no memory.
    pub fn bring(&self) -> Result<(), FetchError> {
        self.chunk.chunk().bring(self.columns)
    }

    /// Sees whether they can be read, and has them in memory if there is room within the limit. The caller owns no partition.
    ///
    /// # Errors
    /// They cannot be read, or the system has no memory.
    pub fn check(&self) -> Result<(), FetchError> {
        self.chunk.chunk().bring_if_room(self.columns)
    }
}

impl Table {
    /// Gets ready for [`Table::kill_all`], which then cannot fail.
    ///
    /// # Errors
    /// There is no memory.
    pub fn prepare_to_kill(&mut self, set: &RowSet) -> Result<(), TableError> {
        Ok(self.rows.prepare(set, Need::Freeing)?)
    }

    /// Kills rows, all of which live, and for which it is ready. They are to be tidied away.
    pub fn kill_all(&mut self, set: &RowSet) {
        self.rows.kill_all(set);
    }

    /// What is to be brought before rows of some chunks leave the indexes, and kept until they have.
    pub fn frozen_keys(&self, chunks: impl Iterator<Item = usize>) -> Vec<FrozenKeys> {
        self.frozen_columns(self.key_columns(), chunks).collect()
    }

    /// What is to be brought of some chunks, and kept, before an index that compares keys in the rows is one of the table's.
    pub fn keys_compared_by(
        &self,
        index: &IndexAside,
        chunks: impl Iterator<Item = usize>,
    ) -> Vec<FrozenKeys> {
        index
            .compared_columns()
            .map_or_else(Vec::new, |columns| self.frozen_columns(columns, chunks).collect())
    }

    fn frozen_columns(
        &self,
        columns: ColumnSet,
        chunks: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = FrozenKeys> {
        chunks.filter_map(move |number| {
            let chunk = self.rows.frozen_chunk(Tid::new(number, 0))?;
            Some(FrozenKeys { number, chunk: Wanted::new(Arc::clone(chunk)), columns })
        })
    }

    fn key_columns(&self) -> ColumnSet {
        ColumnSet::of(self.spec.indexes.iter().flat_map(|index| index.columns.iter().copied()))
    }

    /// Whether a row can leave the indexes without anything being waited for.
    fn has_keys_of(&self, tid: Tid) -> bool {
        self.rows.frozen_chunk(tid).is_none_or(|chunk| chunk.is_here(self.key_columns()))
    }

    /// Takes rows out of the indexes that were killed together, and lets their slots be used again. Their keys are in memory
    /// ([`Table::frozen_keys`]).
    ///
    /// # Panics
    /// One lives.
    pub fn tidy_away(&mut self, tids: impl Iterator<Item = Tid>) {
        for tid in tids {
            debug_assert!(self.has_keys_of(tid), "nothing is waited for");
            for index in &mut self.indexes {
                index.remove_ghost(&self.rows, tid);
            }
            self.count_texts_in_blocks(tid, 1);
            self.rows.lay_to_rest(tid);
        }
    }

    /// Rewrites a string heap that is mostly garbage, also while heaps are kept as they are; whether there was one. The
    /// caller is between two transactions, and has [kept the heaps](Table::keep_heaps) alone.
    pub fn tidy_one_heap(&mut self) -> bool {
        self.rows.tidy_one()
    }
}
