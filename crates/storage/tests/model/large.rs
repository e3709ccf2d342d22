//! Many rows: several chunks, long heaps, very wide rows.

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, SqlType, TableId, Tid, Value};
use albireo_storage::{IndexKind, LayoutChoice};

use crate::check;
use crate::shape::{Shape, TYPES};
use crate::world::World;

/// A small generator with a fixed seed: same run, same operations.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn change(world: &mut World, tid: Tid, column: usize, value: Value) {
    let mut row = (*world.current[&tid]).clone();
    row[column] = value;
    let changes = [(ColumnId(column as u16), row[column].clone())];
    let outcome = world.table.update_values(&mut world.undo, tid, &changes).map(|()| tid);
    world.expect_unindexed(row, tid, outcome);
}

#[test]
fn table_of_several_chunks_keeps_every_snapshot() {
    let shape = Shape {
        columns: vec![
            (SqlType::Integer, false),
            (SqlType::Varchar(10), true),
            (SqlType::Text, false),
            (SqlType::Decimal { precision: 12, scale: 2 }, true),
        ],
        layout: LayoutChoice::Groups(vec![vec![ColumnId(0), ColumnId(1)]]),
        indexes: Vec::new(),
        forbidden: None,
    };
    let mut world = World::new(shape, 1 << 30);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let rows = 2 * CHUNK_ROWS as u64 + 100;
    for n in 0..rows {
        let row = world.shape.row(&[n as u16, (n / 3) as u16 % 50, n as u16 % 60, 8]);
        let tid = world.table.insert_values(&mut world.undo, &row).unwrap();
        assert_eq!(tid, Tid(n));
        world.current.insert(tid, row.into());
        if [CHUNK_ROWS as u64 - 1, CHUNK_ROWS as u64, rows - 1].contains(&n) {
            world.take_snapshot();
        }
    }
    for round in 0..3 {
        for _ in 0..600 {
            let tid = Tid(dice.roll(rows));
            if !world.current.contains_key(&tid) {
                continue;
            }
            let pick = dice.roll(50) as u16;
            match dice.roll(4) {
                0 => {
                    world.table.delete(&mut world.undo, tid).unwrap();
                    world.current.remove(&tid);
                }
                column => {
                    let value = world.shape.value(column as usize, pick);
                    change(&mut world, tid, column as usize, value);
                }
            }
        }
        match round {
            1 => world.abort(),
            _ => world.take_snapshot(),
        }
        for pick in 0..40 {
            let row = world.shape.row(&[pick]);
            let outcome = world.table.insert_values(&mut world.undo, &row);
            world.expect(row, None, outcome);
        }
        world.commit();
        world.drop_snapshot(1, true);
    }
    world.check();
    world.finish(false);
}

#[test]
fn heap_of_many_blocks_is_rewritten_and_old_snapshots_keep_the_old_one() {
    let shape = Shape {
        columns: vec![(SqlType::Text, false), (SqlType::Varchar(5), true)],
        layout: LayoutChoice::Rows,
        indexes: Vec::new(),
        forbidden: None,
    };
    let mut world = World::new(shape, 1 << 30);
    let text = |n: u64, bytes: usize| Value::Text(format!("{n:06}").repeat(bytes / 6));
    for n in 0..1200u64 {
        // 17 KiB each and some larger than a heap block: over 80 blocks.
        let bytes = if n % 200 == 7 { 300_000 } else { 17_000 };
        let row = vec![text(n, bytes), Value::from("ééééé")];
        let tid = world.table.insert_values(&mut world.undo, &row).unwrap();
        world.current.insert(tid, row.into());
    }
    world.take_snapshot();
    let full_bytes = world.table.memory().heaps_bytes;
    assert!(full_bytes > 64 * (256 << 10));
    for n in 0..700 {
        change(&mut world, Tid(n), 0, text(n, 20));
        change(&mut world, Tid(n), 1, Value::from("漢漢漢"));
    }
    world.take_snapshot();
    assert!(world.table.memory().heaps_bytes < full_bytes * 2 / 3, "the heap was not rewritten");
    for seen in &world.snapshots {
        let view = seen.snapshot.table(TableId(3)).unwrap();
        check::view_equals(&view, &world.shape, &seen.rows);
    }
    check::table_equals(&world.table, &world.shape, &world.current);
    world.drop_snapshot(0, true);
    world.drop_snapshot(0, false);
    check::table_equals(&world.table, &world.shape, &world.current);
    world.finish(true);
}

#[test]
fn very_wide_rows_in_several_blocks_a_chunk_equal_the_model() {
    for layout in [LayoutChoice::Rows, LayoutChoice::Columns] {
        let columns: Vec<(SqlType, bool)> =
            (0..150).map(|i| (TYPES[i * 7 % TYPES.len()], i % 3 == 0)).collect();
        let indexes = vec![(vec![ColumnId(149), ColumnId(70)], false, IndexKind::Ordered)];
        let mut world = World::new(Shape { columns, layout, indexes, forbidden: None }, 1 << 30);
        for pick in 0..150u16 {
            world.insert(world.shape.row(&[pick, pick / 2, 7, 40 - pick % 40, 3]));
            if pick == 70 {
                world.take_snapshot();
            }
        }
        world.commit();
        for pick in 0..40u16 {
            let tid = world.pick_row(pick * 3).unwrap();
            let column = usize::from(pick) * 37 % 150;
            let value = world.shape.value(column, pick);
            change(&mut world, tid, column, value);
            world.delete(pick);
        }
        world.take_snapshot();
        for pick in 0..10 {
            world.insert(world.shape.row(&[pick]));
        }
        world.abort();
        world.check();
        world.finish(false);
    }
}
