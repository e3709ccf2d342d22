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

/// The fewest and the most chunks that are taken together. A column has some 4 to 64 KB in each, and a request to the disk
/// costs as much as 70 KB.
const TOGETHER: RangeInclusive<usize> = 4..=32;
/// A partition takes one of so many of the chunks that are its share of what is left, so that all partitions end at about the
/// same time.
const TURNS: usize = 2;

/// The chunks that a partition has taken.
#[derive(Default)]
pub(super) struct Turn {
    left: Range<usize>,
    /// Of a relation that is mostly away: among how many partitions chunks are shared.
    partitions: Option<usize>,
    pub(super) ahead: ReadAhead,
}

impl Turn {
    /// Of a scan by so many partitions.
    pub(super) fn of(partitions: usize, is_away: bool) -> Self {
        Self { partitions: is_away.then_some(partitions), ..Self::default() }
    }

    /// How many chunks are taken together of so many that are left.
    fn together(&self, left: usize) -> usize {
        self.partitions
            .map_or(1, |partitions| (left / (partitions * TURNS)).clamp(*TOGETHER.start(), *TOGETHER.end()))
    }
}

impl ScanStream {
    /// The next chunk of this partition; `None`: all are taken.
    pub(super) fn take_chunk(&mut self) -> Option<usize> {
        if let Some(i) = self.turn.left.next() {
            return Some(i);
        }
        let (count, turn) = (self.spec.data.chunk_count(), &self.turn);
        let end_of = |first: usize| count.min(first + turn.together(count.saturating_sub(first)));
        let drawn = self.next_chunk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |first| {
            (first < count).then(|| end_of(first))
        });
        let first = drawn.ok()?;
        self.turn.left = first..end_of(first);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_long_at_first_and_short_at_the_end() {
        let turn = Turn::of(6, true);
        let (mut left, mut turns) = (830, Vec::new());
        while left > 0 {
            turns.push(turn.together(left).min(left));
            left -= turns[turns.len() - 1];
        }
        assert!(turns.is_sorted_by(|before, after| before >= after), "{turns:?}");
        assert_eq!((turns[0], turns[20], turns.iter().sum()), (32, 19, 830));
        assert!(turns[turns.len() - 6..].iter().all(|chunks| *chunks <= 4), "{turns:?}");
        assert_eq!(Turn::of(6, false).together(830), 1);
    }
}
