//! Frozen chunks that leave memory while everything else goes on, and transactions that meet their rows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, SqlType, StatementProgress, Tid, Value};
use albireo_encoding::Choose;
use albireo_storage::{
    BlockPool, ColdChunk, Evicted, EvictedChunk, FetchError, IndexKind, IndexSpec, LayoutChoice, MOST_WORK,
    OutOfMemory, Savepoint, Shelf, TableError, count_work, unless_away, with_prepass, without_waiting,
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

impl World {
    /// A transaction changes rows and is taken back. Where it meets rows that are away it runs on, and what it then has met is
    /// fetched, or not.
    pub fn prepass(&mut self, picks: &[(u16, u16)], fetches: bool) {
        let before = self.undo.savepoint();
        let work = || picks.iter().for_each(|(row, what)| self.change_somehow(*row, *what));
        let ended = catch_unwind(AssertUnwindSafe(|| without_waiting(|| with_prepass(work))));
        self.roll_back(before);
        let rows: Vec<Tid> = self.table.scan_from(Tid(0)).collect();
        assert!(rows.iter().eq(self.current.keys()), "the same rows live");
        if let Err(panic) = ended {
            let evicted = panic.downcast::<Evicted>().unwrap_or_else(|other| resume_unwind(other));
            if fetches && !self.is_squeezed() {
                assert_eq!(evicted.fetch(), Ok(evicted.chunks()));
            }
        }
    }

    /// Does something with what is read of a row, made up or not, and does not care what comes of it.
    fn change_somehow(&mut self, row: u16, what: u16) {
        let Some(tid) = self.pick_row(row) else { return };
        if !self.table.is_live(tid) {
            return;
        }
        let Self { table, undo, .. } = self;
        let values = table.row(tid);
        let column = usize::from(what) / 8 % values.len();
        let value = (ColumnId(column as u16), values[column].clone());
        let _ = match what % 8 {
            0 | 1 => table.delete(undo, tid),
            2 | 3 => table.insert_values(undo, &values).map(drop),
            4 => table.update_values(undo, Tid(tid.0 ^ 1), &[value]),
            5 => table.update_values(undo, tid, &[value]),
            _ => {
                let values: Vec<_> =
                    values.into_iter().enumerate().map(|(n, v)| (ColumnId(n as u16), v)).collect();
                let other = self.pick_row(what).filter(|other| self.table.is_live(*other)).unwrap_or(tid);
                self.table.update_values(&mut self.undo, other, &values)
            }
        };
    }
}

/// A table of numbers and texts with so many rows, in chunks that are all away.
fn away(rows: u32) -> World {
    let shape = Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::BigInt, true), (SqlType::Text, false)],
        layout: LayoutChoice::Columns,
        indexes: vec![(vec![ColumnId(0)], true, IndexKind::Ordered)],
        forbidden: None,
    };
    let mut world = World::new(shape, 512 << 20);
    for n in 0..rows {
        let row =
            [Value::Integer(n as i32), Value::BigInt(i64::from(n) * 77), Value::Text(format!("text {n}"))];
        world.table.insert_values(&mut world.undo, &row).unwrap();
    }
    world.commit();
    world.current = world.table.scan_from(Tid(0)).map(|tid| (tid, Arc::new(world.table.row(tid)))).collect();
    world.freeze(false, 1, Choose::Best);
    world.evict();
    world
}

/// Runs a transaction once: what it has met, if it met what is away.
fn once(work: impl FnOnce()) -> Option<Evicted> {
    let ended = catch_unwind(AssertUnwindSafe(|| without_waiting(|| with_prepass(work))));
    ended.err().map(|panic| *panic.downcast::<Evicted>().unwrap_or_else(|other| resume_unwind(other)))
}

const CHUNKS: usize = 4;

fn in_each_chunk() -> impl Iterator<Item = Tid> {
    (0..CHUNKS).map(|chunk| Tid::new(chunk, 5))
}

#[test]
fn prepass_reads_null_or_zero_and_meets_each_chunk_once() {
    let world = away(CHUNKS as u32 * CHUNK_ROWS as u32);
    let mut read = Vec::new();
    let met = once(|| in_each_chunk().chain(in_each_chunk()).for_each(|tid| read.push(world.table.row(tid))));
    let nothing = vec![Value::Integer(0), Value::Null, Value::Text(String::new())];
    assert_eq!(read, vec![nothing; 2 * CHUNKS]);
    let met = met.expect("all are away");
    assert_eq!((met.chunks(), met.fetch()), (CHUNKS, Ok(CHUNKS)));
    let mut read = Vec::new();
    assert_eq!(once(|| read.extend(in_each_chunk().map(|tid| world.table.row(tid)))), None);
    assert!(read.iter().zip(in_each_chunk()).all(|(row, tid)| row == &*world.current[&tid]));
}

#[test]
fn prepass_changes_rows_that_are_here_alone_and_leaves_nothing() {
    let mut world = away(CHUNKS as u32 * CHUNK_ROWS as u32);
    let here = world.table.insert_values(&mut world.undo, &world.shape.row(&[40, 1, 1])).unwrap();
    world.undo.commit(|_, _, _| {}, |_, _, _, _| {});
    let (before, table) = (world.table.row(here), &mut world.table);
    let mut outcomes = Vec::new();
    let met = once(|| {
        for tid in in_each_chunk() {
            outcomes.push(table.delete(&mut world.undo, tid));
            outcomes.push(table.update_values(&mut world.undo, tid, &[(ColumnId(1), Value::Null)]));
            let made_up = table.value(tid, ColumnId(0));
            table.update_values(&mut world.undo, here, &[(ColumnId(0), made_up)]).unwrap_err();
            table.update_values(&mut world.undo, here, &[(ColumnId(1), Value::BigInt(9))]).unwrap();
        }
    });
    assert_eq!(met.as_ref().map(Evicted::chunks), Some(CHUNKS));
    assert_eq!(outcomes, vec![Err(TableError::Away); 2 * CHUNKS]);
    world.roll_back(Savepoint::START);
    assert_eq!(world.table.row(here), before);
    world.table.delete(&mut world.undo, here).unwrap();
    world.commit();
    world.check();
}

#[test]
fn prepass_ends_when_it_has_done_enough() {
    let world = away(CHUNK_ROWS as u32);
    let (mut rounds, tid) = (0_u64, Tid(1));
    let met = once(|| {
        while world.table.value(tid, ColumnId(0)) != Value::Integer(1) {
            rounds += 1;
        }
    });
    assert_eq!(met.map(|met| met.chunks()), Some(1));
    let most = u64::from(MOST_WORK);
    assert!((most / 8..=most).contains(&rounds), "{rounds}");
    let met = once(|| {
        assert_eq!(world.table.value(tid, ColumnId(1)), Value::Null);
        loop {
            count_work(1000);
        }
    });
    assert_eq!(met.map(|met| met.chunks()), Some(1));
    // Whoever has met nothing may go on for ever.
    assert_eq!(once(|| (0..MOST_WORK).for_each(|_| count_work(1000))), None);
}

#[test]
fn prepass_that_panics_tells_what_it_has_met() {
    let world = away(CHUNK_ROWS as u32);
    let panics = |tid: Option<Tid>| {
        tid.map(|tid| world.table.row(tid));
        // Without the hook, which would print it.
        resume_unwind(Box::new("a panic"))
    };
    assert_eq!(once(|| panics(Some(Tid(7)))).map(|met| met.chunks()), Some(1));
    let other = catch_unwind(AssertUnwindSafe(|| once(|| panics(None)))).unwrap_err();
    assert_eq!(other.downcast_ref::<&str>(), Some(&"a panic"));
}

#[test]
fn only_transactions_have_a_prepass() {
    let world = away(CHUNK_ROWS as u32);
    let read = |tid: u64| world.table.row(Tid(tid));
    let right = |tid: u64| (*world.current[&Tid(tid)]).clone();
    // Replay and trials wait, whatever they are called in.
    assert_eq!(once(|| assert_eq!(albireo_storage::waiting(|| with_prepass(|| read(3))), right(3))), None);
    assert_eq!(with_prepass(|| read(4)), right(4));
    let mut world = away(CHUNK_ROWS as u32);
    world.table.delete(&mut world.undo, Tid(9)).unwrap();
    world.abort();
}

#[test]
fn who_can_do_without_what_is_away_gets_it_or_is_told() {
    let world = away(CHUNK_ROWS as u32);
    let read = || unless_away(|| world.table.row(Tid(3)));
    let away = read().unwrap_err();
    assert_eq!((away.chunks(), away.fetch()), (1, Ok(1)));
    assert_eq!(read().as_ref(), Ok(&*world.current[&Tid(3)]));
    let other = catch_unwind(|| unless_away(|| resume_unwind(Box::new("a panic")))).unwrap_err();
    assert_eq!(other.downcast_ref::<&str>(), Some(&"a panic"));
}

#[test]
fn rows_of_a_list_are_met_together() {
    let world = away(CHUNKS as u32 * CHUNK_ROWS as u32);
    let require = || world.table.require_rows(in_each_chunk());
    let ended = catch_unwind(AssertUnwindSafe(|| without_waiting(require))).unwrap_err();
    let met = ended.downcast::<Evicted>().unwrap_or_else(|other| resume_unwind(other));
    assert_eq!(met.fetch(), Ok(CHUNKS));
    without_waiting(require);
}

#[test]
fn chunks_are_counted_and_those_away_are_told_by_their_rows() {
    let mut world = away(CHUNKS as u32 * CHUNK_ROWS as u32);
    let counts = |world: &World| {
        let counts = world.table.chunk_counts();
        [counts.all, counts.frozen, counts.evicted].map(|count| count as usize)
    };
    let met = |world: &World| world.table.chunks_away(in_each_chunk().chain(in_each_chunk()));
    assert_eq!((counts(&world), met(&world)), ([CHUNKS; 3], CHUNKS));
    drop(world.table.row(Tid::new(1, 7)));
    assert_eq!(met(&world), CHUNKS - 1, "one was fetched");
    assert_eq!(counts(&world), [CHUNKS; 3], "which counts as evicted");
    let row = world.shape.row(&[40, 1, 1]);
    world.table.insert_values(&mut world.undo, &row).unwrap();
    assert_eq!(counts(&world), [CHUNKS + 1, CHUNKS, CHUNKS]);
    world.abort();
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
