//! Chunks that were encoded beside a table take the place of their blocks, and chunks cool before.
//!
//! ```text
//! snapshot ──► encode beside, nobody waits ──► one partition owned, between two transactions: what nobody has written
//!                                              since is frozen, a few words for each chunk
//! ```
//!
//! I-1 The rows are the same before and after: nothing is logged.
//! I-2 Nothing is frozen while somebody works beside the table: its blocks are theirs to follow.
//! I-3 TIDs stay, but for rows that move out of chunks most of whose rows have died. They move between transactions while
//! nobody is told of changes, who may have got hold of TIDs: whoever has read rows in an open transaction, and whoever
//! works beside a table. Snapshots keep what they show.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.2.

use albireo_base::PartitionId;
use albireo_storage::{AwayChunk, ColdChunk, EncodedChunk, Evicted, EvictedChunk, Frozen, Table, TableError};

use crate::Partitions;
use crate::handle::TableHandle;

/// Rows that move while a partition is owned: some hundred microseconds.
const ROWS_OF_A_STEP: usize = 32;

/// What a step has done in which rows move out of a chunk.
#[derive(Clone, PartialEq, Debug)]
pub enum MoveOut {
    /// So many rows have moved; more may be there.
    Moved(u64),
    /// So many have moved, and the chunk is empty now.
    Emptied(u64),
    /// None: the chunk is to be fetched first, by somebody who owns no partition.
    Away(Evicted),
    /// Not now: somebody may hold on to TIDs, or it is not a frozen chunk that holds anything.
    Refused,
}

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

    /// Has chunks of a partition's part of a table cool ([`Table::cool`]). Tells for each why it stays hot, if it does;
    /// nothing of a table that was dropped.
    pub fn cool(&self, table: TableHandle, partition: PartitionId, chunks: Vec<u32>) -> Vec<Frozen> {
        let mut done = Vec::new();
        self.with_table_mut(table, partition, |target| done = target.cool(chunks));
        done
    }

    /// Has a cooling chunk of a partition's part of a table be hot again ([`Table::end_cooling`]).
    pub fn end_cooling(&self, table: TableHandle, partition: PartitionId, chunk: u32) -> bool {
        let mut ended = false;
        self.with_table_mut(table, partition, |target| ended = target.end_cooling(chunk));
        ended
    }

    /// Moves some rows out of a frozen chunk of a partition's part of a table, to where there are blocks. To be called
    /// again until it says something else than [`MoveOut::Moved`].
    ///
    /// # Errors
    /// There is no memory; rows stay where they are.
    pub fn move_out(
        &self,
        table: TableHandle,
        partition: PartitionId,
        chunk: u32,
    ) -> Result<MoveOut, TableError> {
        let mut outcome = Ok((MoveOut::Refused, None));
        self.with_table_at_rest(table, partition, |target, holds_no_tids| {
            if holds_no_tids {
                outcome = move_some(target, chunk);
            }
        });
        // What was let go of goes back where nobody waits for it.
        outcome.map(|(done, _replaced)| done)
    }

    /// [`Table::cold_chunks`] of a partition's part of a table.
    pub fn cold_chunks(
        &self,
        table: TableHandle,
        partition: PartitionId,
        from: u32,
        most: u32,
    ) -> (Vec<ColdChunk>, Option<u32>) {
        let chunks = self.with_table_if_there(table, partition, |target| target.cold_chunks(from, most));
        chunks.unwrap_or_default()
    }

    /// [`Table::away_chunks`] of a partition's part of a table.
    pub fn away_chunks(
        &self,
        table: TableHandle,
        partition: PartitionId,
        from: u32,
        most: u32,
    ) -> (Vec<AwayChunk>, Option<u32>) {
        let chunks = self.with_table_if_there(table, partition, |target| target.away_chunks(from, most));
        chunks.unwrap_or_default()
    }

    /// Has chunks leave memory that nobody has changed or wanted meanwhile; tells how many bytes went.
    pub fn evict(&self, table: TableHandle, partition: PartitionId, chunks: Vec<EvictedChunk>) -> u64 {
        let mut gone = None;
        self.with_table_mut(table, partition, |target| gone = Some(target.evict(chunks)));
        // What was replaced goes back where nobody waits for it.
        gone.map_or(0, |(_replaced, bytes)| bytes)
    }

    /// Has new rows of a table come to new chunks from now on, so that those with rows are whole and may be frozen.
    pub fn end_chunks(&self, table: TableHandle) {
        let count = if table.is_shared() { 1 } else { self.count() };
        for partition in (0..count).map(PartitionId) {
            self.with_table_mut(table, partition, Table::end_chunk);
        }
    }
}

fn move_some(target: &mut Table, chunk: u32) -> Result<(MoveOut, Option<impl Sized + use<>>), TableError> {
    if !target.may_move_out(chunk) {
        return Ok((MoveOut::Refused, None));
    }
    if let Some(away) = target.away_to_move_out(chunk) {
        return Ok((MoveOut::Away(away), None));
    }
    let mut rows = 0;
    let emptied = target.move_out(chunk, ROWS_OF_A_STEP, |_, _| rows += 1)?;
    let done = if emptied.is_some() { MoveOut::Emptied(rows) } else { MoveOut::Moved(rows) };
    Ok((done, emptied))
}
