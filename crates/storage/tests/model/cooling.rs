//! Chunks that cool while everything else goes on.

use albireo_base::ids::{CHUNK_ROWS, CHUNK_SHIFT};
use albireo_base::{ColumnId, SqlType, TableId, Tid, Value};
use albireo_encoding::Choose;
use albireo_storage::{ChangeEvent, IndexKind, LayoutChoice, MOST_MOVED_ROWS, Savepoint, TableError, WhyHot};

use crate::shape::Shape;
use crate::world::World;

/// Chunks of a table up to which they cool: each has thousands of slots, all of which are looked at.
const MOST_CHUNKS: u64 = 5;

impl World {
    /// Commits, and has those chunks cool that `pick` has a bit for.
    pub fn cool(&mut self, pick: u16) {
        self.commit();
        if self.is_worked_on() || self.table.slots() >> CHUNK_SHIFT >= MOST_CHUNKS || self.current.is_empty()
        {
            return;
        }
        self.table.end_chunk();
        let chunks = (self.table.slots() >> CHUNK_SHIFT) as u32;
        let those: Vec<u32> = (0..chunks).filter(|chunk| pick >> (chunk % 16) & 1 == 1).collect();
        for (chunk, outcome) in self.table.cool(those) {
            let wanted = if self.is_frozen(chunk) { Err(WhyHot::IsFrozen) } else { Ok(()) };
            assert_eq!(outcome, wanted, "chunk {chunk}");
            if outcome.is_ok() {
                self.cooling.insert(chunk);
            }
        }
    }

    fn is_frozen(&self, chunk: u32) -> bool {
        self.table.may_freeze(chunk) == Err(WhyHot::IsFrozen)
    }

    /// Commits, and has those chunks be hot again that `pick` has a bit for.
    pub fn end_cooling(&mut self, pick: u16) {
        self.commit();
        let chunks = self.table.slots().div_ceil(CHUNK_ROWS as u64) as u32;
        for chunk in (0..chunks).filter(|chunk| pick >> (chunk % 16) & 1 == 1) {
            let ends = self.cooling.contains(&chunk) && self.ghosts.is_empty() && self.arriving.is_none();
            let ended = self.table.end_cooling(chunk);
            // Of rows that arrive not all are ghosts already.
            assert!(ended == ends || (self.arriving.is_some() && self.cooling.contains(&chunk)));
            if ended {
                self.cooling.remove(&chunk);
            }
        }
    }

    /// Rows of cooling chunks that the running transaction has written have moved, and none has come there.
    pub fn cooling_chunks_are_left(&self) {
        let events = || self.undo.events(Savepoint::START);
        let cools = |tid: Tid| self.cooling.contains(&(tid.chunk() as u32));
        let moved: Vec<(Tid, Tid)> = events()
            .filter_map(|(.., tid, event)| match event {
                ChangeEvent::Moved { to } => Some((tid, to)),
                _ => None,
            })
            .collect();
        assert!(moved.iter().all(|(_, to)| !cools(*to)), "a row has moved to a chunk that cools");
        for (.., tid, event) in events() {
            match event {
                ChangeEvent::Came { .. } => assert!(!cools(tid), "a row has come to a chunk that cools"),
                ChangeEvent::Wrote(_) | ChangeEvent::Entered(_) if cools(tid) => {
                    assert!(moved.iter().any(|(from, _)| *from == tid), "{tid:?} was written in place");
                }
                _ => {}
            }
        }
    }
}

/// A chunk with rows 0.., numbered in the first column, and texts of which most lie in the heap.
fn world(rows: u16) -> World {
    let index = |column, unique, kind| (vec![ColumnId(column)], unique, kind);
    let shape = Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Text, true), (SqlType::BigInt, true)],
        layout: LayoutChoice::Columns,
        indexes: vec![
            index(0, true, IndexKind::Hash),
            index(0, true, IndexKind::Ordered),
            index(1, false, IndexKind::Bare),
        ],
        forbidden: None,
    };
    let mut world = World::new(shape, 128 << 20);
    for n in 0..rows {
        world.insert(row(n.into(), "as it was"));
    }
    world.commit();
    world.table.end_chunk();
    world
}

fn row(n: i32, text: &str) -> Vec<Value> {
    let number = if n % 3 == 0 { Value::Null } else { Value::BigInt(n.into()) };
    vec![Value::Integer(n), Value::Text(format!("a text that does not fit its slot, {text} {n}")), number]
}

fn update(world: &mut World, tid: Tid, row: Vec<Value>) {
    let changes: Vec<(ColumnId, Value)> = (0..).map(ColumnId).zip(row.iter().cloned()).collect();
    let outcome = world.table.update_values(&mut world.undo, tid, &changes).map(|()| tid);
    world.expect(row, Some(tid), outcome);
}

fn slot(slot: usize) -> Tid {
    Tid::new(0, slot)
}

/// Rows that have moved out of the first chunk since it cools.
fn moved(world: &mut World) -> Option<u32> {
    world.take_snapshot();
    let seen = world.snapshots.pop().expect("it was taken just now");
    seen.snapshot.table(TableId(3)).expect("it is there").chunk(0).moved_rows()
}

#[test]
fn row_that_is_written_moves_out_of_a_cooling_chunk() {
    let mut world = world(200);
    world.take_snapshot();
    assert_eq!(moved(&mut world), None);
    world.cool(1);
    assert_eq!((moved(&mut world), world.table.may_freeze(0)), (Some(0), Ok(())));
    world.check();

    // In the transaction it is known by the TID that it had, and found by its new key.
    update(&mut world, slot(7), row(1007, "changed"));
    update(&mut world, slot(7), row(1008, "changed again"));
    assert!(world.has_moved());
    world.check();
    world.commit();
    world.check();
    let there = world.current.iter().find(|(_, row)| row[0] == Value::Integer(1008));
    let tid = *there.expect("it lives").0;
    assert_eq!((tid.chunk(), moved(&mut world)), (1, Some(1)), "it lies in a hot chunk");

    // Once there, it is written in place.
    update(&mut world, tid, row(1009, "in place"));
    assert!(!world.has_moved());
    world.commit();
    world.check();
    assert!(matches!(world.table.delete(&mut world.undo, slot(7)), Err(TableError::NoRow { .. })));
    world.finish(false);
}

#[test]
fn row_that_has_moved_out_of_a_cooling_chunk_comes_back_when_that_is_undone() {
    let mut world = world(200);
    world.cool(1);
    world.take_snapshot();
    update(&mut world, slot(7), row(1007, "changed"));
    update(&mut world, slot(8), row(8, "changed"));
    world.set_savepoint();
    update(&mut world, slot(9), row(9, "changed"));
    world.delete(8);
    world.check();
    world.roll_back_to_savepoint();
    world.check();
    assert_eq!(world.table.row(slot(9)), row(9, "as it was"));
    world.abort();
    world.check();
    assert_eq!(moved(&mut world), Some(0), "rows that came back have not moved");
    assert_eq!(world.table.row(slot(7)), row(7, "as it was"));
    // A statement that fails has not moved it either.
    let twice = world.table.update_values(&mut world.undo, slot(7), &[(ColumnId(0), Value::Integer(8))]);
    assert!(matches!(twice, Err(TableError::Duplicate { .. })));
    assert!(!world.has_moved());
    world.check();
    world.finish(true);
}

#[test]
fn row_that_dies_in_a_cooling_chunk_leaves_a_hole_until_the_chunk_is_hot_again() {
    let mut world = world(200);
    world.cool(1);
    world.delete(5);
    update(&mut world, slot(7), row(7, "changed"));
    world.abort();
    world.check();
    world.delete(5);
    update(&mut world, slot(7), row(7, "changed"));
    world.commit();
    world.insert(row(5000, "new"));
    world.commit();
    assert!(world.current.keys().filter(|tid| tid.chunk() == 1).count() == 2, "nobody comes to a hole");
    world.check();
    world.end_cooling(1);
    assert_eq!(moved(&mut world), None);
    world.insert(row(5001, "new"));
    world.commit();
    assert!(world.current[&slot(5)][0] == Value::Integer(5001), "the first hole is used again");
    update(&mut world, slot(9), row(9, "in place"));
    assert!(!world.has_moved());
    world.commit();
    world.check();
    world.finish(false);
}

#[test]
fn cooling_chunk_is_frozen_as_it_is_but_for_the_rows_that_have_left() {
    let mut world = world(200);
    world.cool(1);
    update(&mut world, slot(7), row(7, "changed"));
    world.commit();
    world.freeze(true, 1, Choose::Best);
    assert_eq!((world.table.may_freeze(0), moved(&mut world)), (Err(WhyHot::IsFrozen), None));
    assert_eq!(world.table.cool([0]), [(0, Err(WhyHot::IsFrozen))]);
    assert!(!world.table.end_cooling(0));
    update(&mut world, slot(8), row(8, "changed"));
    world.commit();
    world.check();
    world.finish(false);
}

#[test]
fn chunk_in_which_most_rows_are_written_is_left_by_a_part_of_them() {
    const ROWS: u16 = 2 * MOST_MOVED_ROWS as u16;
    let mut world = world(ROWS);
    world.cool(1);
    // The model wants all rows to move.
    world.cooling.clear();
    for n in 0..ROWS {
        update(&mut world, slot(n.into()), row(n.into(), "changed"));
    }
    world.commit();
    assert_eq!(moved(&mut world), Some(MOST_MOVED_ROWS));
    let stay = world.current.keys().filter(|tid| tid.chunk() == 0).count();
    assert_eq!(stay, usize::from(ROWS) - MOST_MOVED_ROWS as usize);
    for (tid, row) in &world.current {
        assert_eq!(world.table.row(*tid), **row);
    }
    assert!(world.table.end_cooling(0));
    // Its holes are free.
    for n in 0..100 {
        world.insert(row(20_000 + n, "new"));
    }
    world.commit();
    assert_eq!(world.current.keys().filter(|tid| tid.chunk() == 0).count(), stay + 100);
    world.finish(true);
}
