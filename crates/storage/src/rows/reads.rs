//! How often transactions find rows of each chunk: the read side of its temperature.
//!
//! One row of [`SAMPLED`] is counted when a search in an index finds it, and stands for all of these. So most searches pay
//! for a test of a TID that is in a register anyway, and partitions that read a shared table at the same time seldom count
//! at the same place. Rows that are met without an index are not counted, nor are those that queries read from a snapshot:
//! who reads all rows does not say which are read next.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.1 and
//! §5.3, has three observers: software, page protection, and what the processor marks in page tables. This is the first.
//! `albireo bench compaction --only "observers compared"` compares them (`observe.rs`): 100,000 random reads of 10 million
//! entries that take 0.7 ms take as long counted, 71 with protected pages, and 6 after the marks were cleared, which the
//! system tells of pages to the privileged alone, if at all, and to others by area. What it costs TPC-C is in the same
//! benchmark: about 1 %.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::Tid;

use super::Rows;

/// Of so many rows one is counted; a power of two.
const SAMPLED: u64 = 64;

/// Reads of each chunk, shared with snapshots. Those of chunks that came since the last snapshot are not counted.
#[derive(Clone, Default)]
pub(crate) struct Reads(Arc<[AtomicU64]>);

impl Reads {
    /// A search has found the row in a slot.
    #[inline(always)]
    pub(crate) fn note(&self, slot: Tid) {
        if slot.0.is_multiple_of(SAMPLED) {
            // Not a call: whoever searches would have to save its registers for it.
            if let Some(count) = self.0.get(slot.chunk()) {
                // Two who count at the same time may count once.
                count.store(count.load(Ordering::Relaxed) + SAMPLED, Ordering::Relaxed);
            }
        }
    }

    /// Counts those of so many chunks from now on; of none if not `is_on`.
    pub(crate) fn cover(&mut self, chunks: usize, is_on: bool) {
        match is_on {
            true if chunks > self.0.len() => {
                let count = |chunk| AtomicU64::new(self.of(chunk));
                self.0 = (0..chunks.next_power_of_two()).map(count).collect();
            }
            false if !self.0.is_empty() => *self = Self::default(),
            _ => {}
        }
    }

    /// About how often rows of a chunk were found, since it is counted.
    pub(crate) fn of(&self, chunk: usize) -> u64 {
        self.0.get(chunk).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Rows {
    /// A search has found this slot.
    #[inline(always)]
    pub(crate) fn noted(&self, slot: Tid) -> Tid {
        self.reads.note(slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use albireo_base::ids::CHUNK_ROWS;

    use super::*;

    #[test]
    fn reads_are_counted_by_chunk_and_stay_when_more_come() {
        let all = |reads: &Reads, chunk: usize| {
            let first = chunk * CHUNK_ROWS;
            (first..first + CHUNK_ROWS).for_each(|slot| reads.note(Tid(slot as u64)));
        };
        let mut reads = Reads::default();
        all(&reads, 0);
        assert_eq!(reads.of(0), 0, "nobody looks yet");
        reads.cover(3, true);
        [0, 2, 2].into_iter().for_each(|chunk| all(&reads, chunk));
        reads.cover(2, true);
        reads.cover(100, true);
        all(&reads, 99);
        let rows = CHUNK_ROWS as u64;
        assert_eq!([0, 1, 2, 99, 1000].map(|chunk| reads.of(chunk)), [rows, 0, 2 * rows, rows, 0]);
        reads.cover(100, false);
        all(&reads, 0);
        assert_eq!(reads.of(0), 0, "it is off");
    }
}
