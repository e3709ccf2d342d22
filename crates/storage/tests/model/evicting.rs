//! Frozen chunks that leave memory while everything else goes on, and transactions that meet their rows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use albireo_base::{ColumnId, SqlType, StatementProgress};
use albireo_encoding::Choose;
use albireo_storage::{
    BlockPool, ColdChunk, Evicted, EvictedChunk, FetchError, IndexKind, IndexSpec, LayoutChoice, OutOfMemory,
    Shelf, without_waiting,
};

use crate::shape::Shape;
use crate::world::World;

/// A shelf in memory.
#[derive(Debug)]
struct Boxes(Vec<Vec<u8>>);

impl Shelf for Boxes {
    fn read(&self, column: ColumnId, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        let mut left = self.0[column.index()].as_slice();
        for section in sections {
            section.copy_from_slice(left.split_off(..section.len()).expect("as long as what was put there"));
        }
        assert!(left.is_empty(), "no more than what was put there");
        Ok(())
    }

    fn will_read(&self, _: &mut dyn Iterator<Item = ColumnId>) {}
}

fn put_away(chunk: &ColdChunk) -> Result<EvictedChunk, OutOfMemory> {
    let boxes = || Boxes(chunk.columns().map(|(_, bytes)| bytes).collect());
    chunk.again().unwrap_or_else(|| chunk.on(Arc::new(boxes()), &BlockPool::new(u64::MAX >> 1)))
}

impl World {
    /// Commits, and has all frozen chunks leave memory, which they do when nobody has read them between two looks.
    pub fn evict(&mut self) {
        self.commit();
        let looks = [(); 2].map(|()| self.table.cold_chunks(0, u32::MAX));
        let [_, (cold, more)] = looks;
        assert_eq!(more, None, "all were looked at");
        let before = self.table.memory().frozen_bytes;
        match cold.iter().map(put_away).collect::<Result<Vec<_>, _>>() {
            Ok(chunks) => {
                let (_replaced, bytes) = self.table.evict(chunks);
                assert_eq!(self.table.memory().frozen_bytes, before - bytes);
            }
            Err(_) => assert!(self.is_squeezed(), "there was memory"),
        }
    }

    /// Runs what a transaction does, which does not wait for rows that are away: again until they all are here. What
    /// it had done is taken back meanwhile.
    pub fn transact(&mut self, run: impl Fn(&mut Self)) {
        let (before, rows) = (self.undo.savepoint(), self.current.clone());
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| without_waiting(|| run(self)))) {
            let evicted = panic.downcast::<Evicted>().unwrap_or_else(|other| resume_unwind(other));
            self.roll_back(before);
            self.current = rows.clone();
            evicted.fetch_beyond().expect("a box gives what was put there");
        }
    }
}

#[test]
fn chunk_whose_columns_a_new_index_compares_stays() {
    let shape = Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Text, false)],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        forbidden: None,
    };
    let mut world = World::new(shape, 128 << 20);
    for n in 0..200_u16 {
        let row = world.shape.row(&[n, n]);
        world.insert(row);
    }
    world.freeze(false, 1, Choose::Best);
    let cold = [(); 2].map(|()| world.table.cold_chunks(0, u32::MAX).0);
    let leaving: Vec<_> = cold[1].iter().map(|chunk| put_away(chunk).unwrap()).collect();
    assert_eq!(leaving.len(), 1);
    // It was worked out before there was the index, and would leave without what that compares.
    let mut spec = (**world.table.spec()).clone();
    let columns = vec![ColumnId(1)];
    spec.indexes.push(IndexSpec { name: "by_text".into(), columns, unique: false, kind: IndexKind::Bare });
    world.table.add_index(Arc::new(spec), &StatementProgress::default()).unwrap();
    assert_eq!(world.table.evict(leaving).1, 0);
    // What is worked out now leaves with what may go.
    let cold = [(); 2].map(|()| world.table.cold_chunks(0, u32::MAX).0);
    let leaving = cold[1].iter().map(|chunk| put_away(chunk).unwrap()).collect();
    assert!(world.table.evict(leaving).1 > 0);
    let row = world.shape.row(&[7, 7]);
    // A search in the index meets nothing that is away.
    without_waiting(|| world.table.insert_values(&mut world.undo, &row)).unwrap();
}
