//! Chunks that are frozen while everything else goes on.

use albireo_base::TableId;
use albireo_base::ids::CHUNK_SHIFT;
use albireo_encoding::Choose;
use albireo_storage::{ChunkEncoder, WhyHot};

use crate::world::World;

/// Chunks of a table up to which they are frozen: each has thousands of slots, all of which are looked at.
const MOST_CHUNKS: u64 = 5;

impl World {
    /// Commits, and freezes chunks in the form that is chosen, but one of so many, unless that is 1; the snapshot that they
    /// were made from stays if `keeps` says so. The best form of so few rows would mostly be runs.
    pub fn freeze(&mut self, keeps: bool, but: u32, choose: Choose) {
        self.commit();
        let is_busy = !self.ghosts.is_empty() || self.arriving.is_some() || self.rewriting.is_some();
        if is_busy || self.table.slots() >> CHUNK_SHIFT >= MOST_CHUNKS || self.current.is_empty() {
            return;
        }
        self.table.end_chunk();
        self.take_snapshot();
        let seen = self.snapshots.last().expect("it was taken just now");
        let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let mut encoder = ChunkEncoder::new(choose);
        let chunks =
            (0..view.chunk_count()).map(|number| view.chunk(number)).filter(|chunk| !chunk.is_frozen());
        let chunks = chunks.filter(|chunk| but == 1 || chunk.number() % but != 1);
        let encoded: Result<Vec<_>, _> = chunks.map(|chunk| chunk.encode(&mut encoder)).collect();
        let Ok(encoded) = encoded else {
            assert!(self.is_squeezed(), "there was memory");
            return;
        };
        let (replaced, done) = self.table.freeze(encoded);
        for (chunk, outcome) in done {
            assert_eq!(outcome, Ok(()), "chunk {chunk}");
            assert_eq!(self.table.may_freeze(chunk), Err(WhyHot::IsFrozen));
        }
        drop(replaced);
        drop(view);
        if !keeps {
            self.snapshots.pop();
        }
    }
}
