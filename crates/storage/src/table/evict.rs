//! Frozen chunks of a table that may leave memory, and do; those that have.
//!
//! Columns stay that an index compares in the rows: a search would wait for them in its midst, and a change half way
//! through its indexes ([`crate::frozen::away`], W-4). So do columns that take nothing.

use std::sync::Arc;

use albireo_base::{ColumnId, Tid};
use albireo_encoding::Section;

use super::indexes::TableIndex;
use super::{Table, TableError};
use crate::frozen::FrozenChunk;
use crate::frozen::away::{FetchError, Shelf};
use crate::frozen::prepass::with_prepass;
use crate::layout::Layout;
use crate::pool::{BlockPool, OutOfMemory};
use crate::registry::ColumnSet;
use crate::rows::Replaced;

/// A frozen chunk that may leave memory.
pub struct ColdChunk {
    number: u32,
    chunk: Arc<FrozenChunk>,
    kept: ColumnSet,
    pool: BlockPool,
    layout: Arc<Layout>,
    bytes: u64,
}

/// One that is to leave it, and what takes its place.
pub struct EvictedChunk {
    number: u32,
    was: Arc<FrozenChunk>,
    now: Arc<FrozenChunk>,
}

/// How many chunks a table has in a partition.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChunkCounts {
    /// All.
    pub all: u32,
    /// Those that are frozen and hold rows.
    pub frozen: u32,
    /// Those of them that were evicted. Some may have been fetched since, in whole or in part.
    pub evicted: u32,
}

/// A frozen chunk whose columns lie elsewhere, be they in memory too.
pub struct AwayChunk {
    number: u32,
    chunk: Arc<FrozenChunk>,
}

impl AwayChunk {
    /// Its number in its partition.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// As [`Shelf::verify`] of where its columns lie.
    ///
    /// # Errors
    /// As of [`Shelf::verify`].
    pub fn verify(&self) -> Result<u64, FetchError> {
        self.chunk.shelf().map_or(Ok(0), |shelf| shelf.verify())
    }
}

impl ColdChunk {
    /// Its number in its partition.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What no other frozen chunk of this process has ([`crate::ChunkView::frozen_id`]).
    pub fn id(&self) -> u64 {
        self.chunk.id()
    }

    /// When a transaction has read rows of it last, or it was frozen ([`BlockPool::time`]); 0 if neither was in the pool's
    /// time, or it was evicted.
    pub fn read_at(&self) -> u32 {
        self.chunk.read_at()
    }

    /// Bytes that memory holds less of when it has left, and whoever shares texts with it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether its columns lie elsewhere too, because it was evicted before.
    pub fn is_on_shelf(&self) -> bool {
        self.chunk.shelf().is_some()
    }

    /// The bytes of each column, as a [`Shelf`] is to give them.
    pub fn columns(&self) -> impl Iterator<Item = (ColumnId, Vec<u8>)> {
        self.chunk.columns().map(|column| {
            let own = self.chunk.column(column).unshared();
            let sections = own.sections();
            (column, sections.flat_map(|(_, section)| section.bytes()).copied().collect())
        })
    }

    /// The chunk without what was fetched since it was evicted before; `None` if it never was.
    ///
    /// # Errors
    /// There is no memory for what stays.
    pub fn again(&self) -> Option<Result<EvictedChunk, OutOfMemory>> {
        let now = self.chunk.evicted_again(self.kept)?;
        Some(now.map(|now| self.replaced_by(now)))
    }

    /// The chunk with its columns on a shelf, which has them all; readers who fetch some for themselves take memory from
    /// `buffer`.
    ///
    /// # Errors
    /// There is no memory for what stays.
    pub fn on(&self, shelf: Arc<dyn Shelf>, buffer: &BlockPool) -> Result<EvictedChunk, OutOfMemory> {
        Ok(self.replaced_by(self.chunk.evicted(self.kept, shelf, (&self.pool, buffer), &self.layout)?))
    }

    fn replaced_by(&self, now: Arc<FrozenChunk>) -> EvictedChunk {
        EvictedChunk { number: self.number, was: Arc::clone(&self.chunk), now }
    }
}

impl Table {
    /// Looks at up to `most` chunks from number `from` on: gives those frozen ones that take less memory when they leave it,
    /// and that nobody waits for, and from where to go on, if there are more.
    pub fn cold_chunks(&self, from: u32, most: u32) -> (Vec<ColdChunk>, Option<u32>) {
        let (kept, to) = (self.compared_columns(), from.saturating_add(most));
        let frozen = self.rows.frozen_chunks(from..to);
        let chunk = |(number, chunk): (u32, &Arc<FrozenChunk>)| ColdChunk {
            number,
            chunk: Arc::clone(chunk),
            kept,
            pool: self.rows.pool().clone(),
            layout: Arc::clone(&self.rows.layout),
            bytes: chunk.evictable_bytes(kept),
        };
        let in_memory = frozen.filter(|(_, chunk)| !chunk.is_wanted()).map(chunk);
        let cold = in_memory.filter(|chunk| chunk.bytes > 0).collect();
        (cold, self.rows.has_frozen_from(to).then_some(to))
    }

    /// Looks at up to `most` chunks from number `from` on: gives those that were evicted, and from where to go on, if there
    /// are more.
    pub fn away_chunks(&self, from: u32, most: u32) -> (Vec<AwayChunk>, Option<u32>) {
        let to = from.saturating_add(most);
        let away = self.rows.frozen_chunks(from..to).filter(|(_, chunk)| chunk.shelf().is_some());
        let away = away.map(|(number, chunk)| AwayChunk { number, chunk: Arc::clone(chunk) }).collect();
        (away, self.rows.has_frozen_from(to).then_some(to))
    }

    /// How many chunks there are, known without looking at them.
    pub fn chunk_counts(&self) -> ChunkCounts {
        let (all, frozen, evicted) = self.rows.chunk_counts();
        ChunkCounts { all, frozen, evicted }
    }

    /// How many chunks some rows lie in of which not all is in memory. For few rows; nothing is fetched.
    pub fn chunks_away(&self, rows: impl Iterator<Item = Tid>) -> usize {
        let mut away: Vec<usize> = rows.filter_map(|tid| self.rows.away_chunk(tid)).collect();
        away.sort_unstable();
        away.dedup();
        away.len()
    }

    /// Makes sure that rows are in memory which are to be read or changed one after another. A transaction ends here if they
    /// are not, and all their chunks are fetched together (as many as one pre-pass may have).
    pub fn require_rows(&self, rows: impl Iterator<Item = Tid>) {
        if self.rows.has_frozen_from(0) {
            // A pre-pass that knows exactly where it is going.
            with_prepass(|| rows.for_each(|tid| drop(self.rows.require(self.rows.slot_of(tid)))));
        }
    }

    /// Has columns in memory that a new index compares in the rows.
    pub(super) fn hold_compared(&self, index: &TableIndex, columns: &[ColumnId]) -> Result<(), TableError> {
        if index.reads_rows() {
            let columns = ColumnSet::of(columns.iter().copied());
            self.rows.frozen_chunks(0..u32::MAX).try_for_each(|(_, chunk)| chunk.bring(columns))?;
        }
        Ok(())
    }

    /// Columns that indexes compare in the rows.
    fn compared_columns(&self) -> ColumnSet {
        let indexes = self.spec.indexes.iter().zip(&self.indexes);
        let compared = indexes.filter(|(_, index)| index.reads_rows());
        ColumnSet::of(compared.flat_map(|(spec, _)| spec.columns.iter().copied()))
    }

    /// Has chunks leave memory that nobody has changed or wanted meanwhile, and of which no index that was made meanwhile
    /// compares more; gives what was replaced, and how many bytes went. The caller is between two transactions.
    pub fn evict(&mut self, chunks: Vec<EvictedChunk>) -> (Replaced, u64) {
        let (mut replaced, mut bytes, compared) = (self.rows.nothing_replaced(), 0, self.compared_columns());
        for EvictedChunk { number, was, now } in
            chunks.into_iter().filter(|chunk| chunk.now.is_here(compared))
        {
            let freed = was.memory_bytes().saturating_sub(now.memory_bytes());
            if self.rows.evict(number, &was, now, &mut replaced) {
                bytes += freed;
            }
        }
        (replaced, bytes)
    }
}
