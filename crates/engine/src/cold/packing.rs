//! Frozen chunks most of whose rows have died: the others move to where there are blocks, and the chunk is let go of.
//!
//! ```text
//!                               32 rows at a time, between transactions
//! in memory ─────────────────────────────────────────────────────────────► empty
//!     ▲   │ not now, or no memory for the rows: what was fetched for this leaves again    ▲
//!     │   ▼                                                                               │ no row lives: without
//! evicted, fetched where memory has room for it ──────────────────────────────────────────┘ being read
//! ```
//!
//! I-1 Whoever fetches owns no partition, and nothing leaves memory for what is fetched. What has moved leaves memory in its
//! time, as other rows do.
//! I-2 What cannot be read is not read again by itself, until `CALL albireo.freeze` or a transaction that needs it has read it.

use std::collections::HashMap;

use albireo_base::{SqlError, TableId};
use albireo_partition::{MoveOut, TableHandle};
use albireo_storage::{ChunkView, Evicted, FetchError};
use parking_lot::Mutex;

use super::FreezeReport;
use super::freezer::ChunkPlace;
use crate::Database;

/// Whether most rows of a frozen chunk have died since, of which so many live. An empty one has none that could.
pub(super) fn is_mostly_holes(chunk: &ChunkView<'_>, live: usize) -> bool {
    chunk.frozen_rows().is_some_and(|rows| live * 2 < rows)
}

/// Chunks that could not be read when they were to be fetched, and why, by what tells them from others.
#[derive(Default)]
pub(super) struct Unread(Mutex<HashMap<u64, (TableId, String)>>);

impl Unread {
    /// Why a chunk could not be read, if that was so.
    pub(super) fn why(&self, chunk: &ChunkView<'_>) -> Option<String> {
        let id = chunk.frozen_id()?;
        self.0.lock().get(&id).map(|(_, why)| why.clone())
    }

    /// Whether it is useless to fetch a chunk.
    pub(super) fn has(&self, chunk: &ChunkView<'_>) -> bool {
        chunk.frozen_id().is_some_and(|id| self.0.lock().contains_key(&id))
    }

    /// Forgets chunks that are not as they were.
    pub(super) fn retain(&self, stays: impl Fn(u64, TableId) -> bool) {
        self.0.lock().retain(|id, (table, _)| stays(*id, *table));
    }
}

impl Database {
    /// Moves the rows out of a frozen chunk, a few at a time, and lets go of it. It may stay as it is, or half way.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn empty_chunk(
        &self,
        table: TableHandle,
        place: ChunkPlace,
        report: &mut FreezeReport,
    ) -> Result<(), SqlError> {
        let (partition, chunk) = place;
        // While this is there, what was fetched stays.
        let mut fetched = None;
        let outcome = loop {
            match self.inner.partitions.move_out(table, partition, chunk) {
                Ok(MoveOut::Moved(rows)) => report.moved += rows,
                Ok(MoveOut::Emptied(rows)) => {
                    (report.moved, report.emptied) = (report.moved + rows, report.emptied + 1);
                    return Ok(());
                }
                Ok(MoveOut::Away(away)) => match self.fetch_to_move(table, &away) {
                    true => fetched = Some(away),
                    false => {
                        report.unfetched += 1;
                        return Ok(());
                    }
                },
                Ok(MoveOut::Refused) => break Ok(()),
                Err(error) => break Err(self.explain_table(error)),
            }
        };
        if fetched.take().is_some() {
            self.evict_again(table, place);
        }
        outcome
    }

    /// Fetches a chunk whose rows are to move, if memory has room for it; whether it is in memory now.
    fn fetch_to_move(&self, table: TableHandle, away: &Evicted) -> bool {
        if !self.has_room(away.first_bytes()) {
            return false;
        }
        let (fetched, unread) = (away.fetch(), &self.inner.freezing.unread);
        match &fetched {
            Ok(_) => drop(unread.0.lock().remove(&away.first_id())),
            Err(FetchError::Memory(_)) => {}
            Err(error) => drop(unread.0.lock().insert(away.first_id(), (table.id(), error.to_string()))),
        }
        fetched.is_ok()
    }

    /// Has a chunk leave memory that was fetched in vain, unless somebody wants it now.
    fn evict_again(&self, table: TableHandle, (partition, number): ChunkPlace) {
        let (chunks, _) = self.inner.partitions.cold_chunks(table, partition, number, 1);
        let again = chunks.iter().filter_map(|chunk| chunk.again()?.ok()).collect();
        self.inner.partitions.evict(table, partition, again);
    }
}
