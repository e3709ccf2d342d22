//! Chunks that were encoded beside a table take the place of their blocks.
//!
//! ```text
//! snapshot ──► encode beside, nobody waits ──► one partition owned, between two transactions: what nobody has written
//!                                              since is frozen, a few words for each chunk
//! ```
//!
//! I-1 The rows are the same before and after, and so are their TIDs: nobody is told, and nothing is logged.
//! I-2 Nothing is frozen while somebody works beside the table: its blocks are theirs to follow.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.2.

use albireo_base::PartitionId;
use albireo_storage::{EncodedChunk, Frozen, Table};

use crate::Partitions;
use crate::handle::TableHandle;

impl Partitions {
    /// Freezes chunks of a partition's part of a table that were encoded from a snapshot, which lives. Tells for each
    /// whether it is frozen, or why not; nothing of a table that was dropped.
    pub fn freeze(
        &self,
        table: TableHandle,
        partition: PartitionId,
        chunks: Vec<EncodedChunk>,
    ) -> Vec<Frozen> {
        let mut frozen = None;
        self.with_table_mut(table, partition, |target| frozen = Some(target.freeze(chunks)));
        // What was replaced goes back where nobody waits for it.
        frozen.map_or_else(Vec::new, |(_replaced, done)| done)
    }

    /// Has new rows of a table come to new chunks from now on, so that those with rows are whole and may be frozen.
    pub fn end_chunks(&self, table: TableHandle) {
        let count = if table.is_shared() { 1 } else { self.count() };
        for partition in (0..count).map(PartitionId) {
            self.with_table_mut(table, partition, Table::end_chunk);
        }
    }
}
