//! Chunks that are frozen while everything else goes on.

use albireo_base::ids::CHUNK_SHIFT;
use albireo_base::{TableId, Tid};
use albireo_encoding::Choose;
use albireo_storage::{ChunkEncoder, TableError, WhyHot};

use crate::world::World;

/// Chunks of a table up to which they are frozen: each has thousands of slots, all of which are looked at.
const MOST_CHUNKS: u64 = 5;

impl World {
    /// Commits, and freezes chunks in the form that is chosen, but one of so many, unless that is 1; the snapshot that they
    /// were made from stays if `keeps` says so. The best form of so few rows would mostly be runs.
    pub fn freeze(&mut self, keeps: bool, but: u32, choose: Choose) {
        self.freeze_sharing(keeps, but, ChunkEncoder::new(choose));
    }

    /// [`World::freeze`], by an encoder that also says which texts are shared.
    pub fn freeze_sharing(&mut self, keeps: bool, but: u32, mut encoder: ChunkEncoder) {
        self.commit();
        if self.is_worked_on() || self.table.slots() >> CHUNK_SHIFT >= MOST_CHUNKS || self.current.is_empty()
        {
            return;
        }
        self.table.end_chunk();
        self.take_snapshot();
        let seen = self.snapshots.last().expect("it was taken just now");
        let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let chunks =
            (0..view.chunk_count()).map(|number| view.chunk(number)).filter(|chunk| !chunk.is_frozen());
        let chunks = chunks.filter(|chunk| but == 1 || chunk.number() % but != 1);
        let encoded: Result<Vec<_>, _> = chunks.map(|chunk| chunk.encode(&mut encoder)).collect();
        let Ok(encoded) = encoded else {
            assert!(self.is_squeezed(), "there was memory");
            return;
        };
        let ((replaced, done), mut frozen) = (self.table.freeze(encoded), Vec::new());
        for (chunk, outcome) in done {
            assert_eq!(outcome, Ok(()), "chunk {chunk}");
            assert_eq!(self.table.may_freeze(chunk), Err(WhyHot::IsFrozen));
            self.cooling.remove(&chunk);
            frozen.push(chunk);
        }
        drop(replaced);
        drop(view);
        frozen.into_iter().for_each(|chunk| self.note_emptied(chunk));
        if !keeps {
            self.snapshots.pop();
        }
    }

    /// Whether a statement over many rows is at work.
    pub fn is_worked_on(&self) -> bool {
        !self.ghosts.is_empty() || self.arriving.is_some() || self.rewriting.is_some()
    }

    /// Commits, and moves up to `most` rows out of the frozen chunk that `pick` names; follows them in the model.
    pub fn move_out(&mut self, pick: u16, most: usize) {
        self.commit();
        let chunks = self.table.slots().div_ceil(1 << CHUNK_SHIFT) as u32;
        let those: Vec<u32> = (0..chunks).filter(|chunk| self.table.may_move_out(*chunk)).collect();
        if self.is_worked_on() || those.is_empty() {
            return;
        }
        let chunk = those[usize::from(pick) % those.len()];
        let rows_there = |rows: &crate::world::Rows| {
            let chunk = Tid::new(chunk as usize, 0)..Tid::new(chunk as usize + 1, 0);
            rows.range(chunk).count()
        };
        let (before, mut moves) = (rows_there(&self.current), Vec::new());
        let outcome = self.table.move_out(chunk, most, |from, to| moves.push((from, to)));
        for (from, to) in &moves {
            let row = self.current.remove(from).expect("a live row moves");
            assert_eq!(self.current.insert(*to, row), None, "a row moves to where none lives");
        }
        self.commit();
        let left = rows_there(&self.current);
        match outcome {
            Ok(emptied) => {
                assert_eq!(moves.len(), before.min(most), "so many rows moved as were wanted");
                assert_eq!(emptied.is_some(), left == 0, "what no row lives in is let go of");
                self.note_emptied(chunk);
                assert_eq!(self.table.may_move_out(chunk), left > 0);
            }
            Err(TableError::OutOfMemory(_)) => assert!(self.is_squeezed(), "there was memory"),
            Err(other) => panic!("unexpected {other}"),
        }
    }
}
