//! Which chunks a partition of a scan takes next, and what it will read of those that are away.
//!
//! Partitions draw chunks from one counter. Of a relation that is mostly away each takes several that lie one behind the
//! other, and says before the first what it will read of all, so that this is read in large pieces
//! ([`ChunkData::plan`](crate::relation::ChunkData::plan)). Which chunks are pruned is found out once more when their turn
//! comes: a dynamic filter may know more by then.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::buffer::BooleanBuffer;

use super::exec::ScanStream;
use crate::relation::ReadAhead;

/// The fewest and the most chunks that are taken together: a column has some 16 to 64 KB in each.
const TOGETHER: RangeInclusive<usize> = 4..=16;
/// How many times a partition takes chunks, so that all partitions end at about the same time, unless it were fewer than the
/// fewest.
const TURNS: usize = 8;

/// The chunks that a partition has taken.
#[derive(Default)]
pub(super) struct Turn {
    left: Range<usize>,
    together: usize,
    pub(super) ahead: ReadAhead,
}

impl Turn {
    /// Of a scan of so many chunks by so many partitions.
    pub(super) fn of(chunks: usize, partitions: usize, is_away: bool) -> Self {
        let together = (chunks / (partitions * TURNS)).clamp(*TOGETHER.start(), *TOGETHER.end());
        Self { together: if is_away { together } else { 1 }, ..Self::default() }
    }
}

impl ScanStream {
    /// The next chunk of this partition; `None`: all are taken.
    pub(super) fn take_chunk(&mut self) -> Option<usize> {
        if let Some(i) = self.turn.left.next() {
            return Some(i);
        }
        let first = self.next_chunk.fetch_add(self.turn.together, Ordering::Relaxed);
        self.turn.left = first..(first + self.turn.together).min(self.spec.data.chunk_count());
        if self.turn.left.len() > 1 {
            self.plan();
        }
        self.turn.left.next()
    }

    /// Says what will be read of the chunks that were taken.
    fn plan(&mut self) {
        let spec = Arc::clone(&self.spec);
        for i in self.turn.left.clone() {
            let chunk = spec.data.chunk(i);
            if !chunk.is_away() {
                continue;
            }
            let live = chunk.live();
            let live_rows = live.as_ref().map_or(chunk.slots(), BooleanBuffer::count_set_bits);
            let Some(open) = self.undecided(i, &*chunk, &spec).filter(|_| live_rows > 0) else { continue };
            if self.known_sums(&*chunk, &open, live_rows).is_none() {
                chunk.plan(&spec.columns_read(&open), &mut self.turn.ahead);
            }
        }
    }
}
