//! What a table refuses, and that a refusal changes nothing: memory, constraints, partitions.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use albireo_base::progress::{Phase, StatementProgress, Unit};
use albireo_base::{ColumnId, PartitionId, SqlError, SqlType, TableId, Tid, Value};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSet, ColumnSpec, DatabaseSnapshot, IndexKind, IndexSpec, LayoutChoice,
    Placement, RowCheck, Savepoint, ShortKey, SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table,
    TableError, TableSpec, UndoLog, partition_of,
};

use crate::shape::Shape;
use crate::world::World;

const POOL_BYTES: u64 = 64 << 20;

fn column(name: &str, ty: SqlType, nullable: bool) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), ty, nullable }
}

fn spec(columns: Vec<ColumnSpec>) -> TableSpec {
    TableSpec {
        id: TableId(0),
        name: "t".to_owned(),
        columns,
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        partition_by: None,
        checks: Vec::new(),
    }
}

fn table(spec: TableSpec, placement: Option<Placement>) -> (Table, Arc<SnapshotRegistry>) {
    let registry =
        Arc::new(SnapshotRegistry::new(BlockPool::new(POOL_BYTES), u64::MAX, BudgetPolicy::RefuseNew));
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    (Table::new(Arc::new(spec), layout, placement, &registry), registry)
}

fn commit(table: &mut Table, undo: &mut UndoLog) {
    let table = RefCell::new(table);
    undo.commit(
        |_, _, tid| table.borrow_mut().free_slot(tid),
        |_, _, chunk, heap| table.borrow_mut().tidy_heap(chunk, heap),
    );
}

fn abort(table: &mut Table, undo: &mut UndoLog) {
    while let Some(record) = undo.pop(Savepoint::START) {
        table.undo(undo, &record);
    }
}

/// A key with few values, a long text and an ordered index on both.
fn crowded_shape() -> Shape {
    Shape {
        columns: vec![(SqlType::BigInt, false), (SqlType::Text, true), (SqlType::Varchar(10), true)],
        layout: LayoutChoice::Groups(vec![vec![ColumnId(0), ColumnId(2)]]),
        indexes: vec![
            (vec![ColumnId(0)], true, IndexKind::Ordered),
            (vec![ColumnId(1), ColumnId(0)], false, IndexKind::Ordered),
        ],
        forbidden: None,
    }
}

#[test]
fn table_without_memory_refuses_and_stays_equal_to_the_model() {
    for spare in 0..6 {
        let mut world = World::new(crowded_shape(), POOL_BYTES);
        for pick in 0..200 {
            world.insert(world.shape.row(&[pick]));
        }
        world.take_snapshot();
        world.squeeze(spare);
        for pick in 0..900u16 {
            let fresh = 200 + pick;
            match pick % 3 {
                0 => world.insert(world.shape.row(&[fresh])),
                1 => world.delete(pick),
                _ => {
                    let tid = world.pick_row(pick).expect("rows remain");
                    let mut row = (*world.current[&tid]).clone();
                    row[1] = Value::Text("y".repeat(usize::from(pick) * 40));
                    let changes = [(ColumnId(1), row[1].clone())];
                    let outcome = world.table.update_values(&mut world.undo, tid, &changes).map(|()| tid);
                    world.expect(row, Some(tid), outcome);
                }
            }
            if pick % 100 == 57 {
                world.abort();
                world.check();
            }
        }
        world.abort();
        world.check();
        world.release();
        world.insert(world.shape.row(&[3000]));
        world.commit();
        world.check();
        world.finish(spare % 2 == 0);
    }
}

#[test]
fn updated_row_that_would_change_partition_is_refused_and_an_equal_value_is_not() {
    let long = |n: usize| Value::Text(format!("a key of more than twelve bytes {n}"));
    let placed = |n: usize| partition_of(&long(n), 2) == 0;
    let here: Vec<usize> = (0..100).filter(|&n| placed(n)).take(2).collect();
    let elsewhere = (0..100).find(|&n| !placed(n)).expect("both partitions get keys");
    let mut shape = spec(vec![column("k", SqlType::Text, true), column("v", SqlType::Integer, false)]);
    shape.partition_by = Some(ColumnId(0));
    let placement = Placement { column: ColumnId(0), partition: 0, partitions: 2 };
    let (mut table, _registry) = table(shape, Some(placement));
    let mut undo = UndoLog::default();
    let wrong = table.insert_values(&mut undo, &[long(elsewhere), Value::Integer(1)]);
    assert!(matches!(wrong, Err(TableError::WrongPartition { .. })));
    let tid = table.insert_values(&mut undo, &[long(here[0]), Value::Integer(1)]).unwrap();
    for stays in [long(here[0]), long(here[1]), Value::Null] {
        table.update_values(&mut undo, tid, &[(ColumnId(0), stays.clone())]).unwrap();
        assert_eq!(table.value(tid, ColumnId(0)), stays);
    }
    let moved = table.update_values(&mut undo, tid, &[(ColumnId(0), long(elsewhere))]);
    assert!(matches!(moved, Err(TableError::WrongPartition { .. })));
    assert_eq!(table.row(tid), [Value::Null, Value::Integer(1)]);
}

#[test]
fn equal_floats_are_placed_in_one_partition() {
    assert_eq!(partition_of(&Value::Double(0.0), 7), partition_of(&Value::Double(-0.0), 7));
    assert_eq!(partition_of(&Value::Real(f32::NAN), 7), partition_of(&Value::Real(-f32::NAN), 7));
}

#[test]
fn char_value_loses_trailing_blanks_however_it_is_written() {
    let mut shape = spec(vec![column("c", SqlType::Char(3), false)]);
    let index = IndexSpec {
        name: "i".to_owned(),
        columns: vec![ColumnId(0)],
        unique: true,
        kind: IndexKind::Ordered,
    };
    shape.indexes.push(index);
    let (mut table, _registry) = table(shape, None);
    let mut undo = UndoLog::default();
    let handle = table.text_column("c").unwrap();
    let mut row = table.insert(&mut undo).unwrap();
    row.set_text(handle, "a     ").unwrap();
    let tid = row.finish().unwrap();
    assert_eq!(table.text(tid, handle), "a");
    assert_eq!(table.find(table.index("i").unwrap(), ShortKey::new().str("a")), Some(tid));
    let again = table.insert_values(&mut undo, &[Value::from("a  ")]);
    assert!(matches!(again, Err(TableError::Duplicate { existing, .. }) if existing == tid));
    table.update(&mut undo, tid, |row| row.set_text(handle, "bc ")).unwrap();
    assert_eq!(table.value(tid, ColumnId(0)), Value::from("bc"));
    let long = table.update(&mut undo, tid, |row| row.set_text(handle, "abcd"));
    assert!(matches!(long, Err(TableError::TooLong { .. })));
}

#[test]
fn update_of_a_dead_row_is_refused() {
    let (mut table, _registry) = table(spec(vec![column("v", SqlType::Integer, false)]), None);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::Integer(1)]).unwrap();
    table.delete(&mut undo, tid).unwrap();
    for tid in [tid, Tid(1), Tid(1 << 40)] {
        let outcome = table.update_values(&mut undo, tid, &[(ColumnId(0), Value::Integer(2))]);
        assert!(matches!(outcome, Err(TableError::NoRow { .. })));
        let handle = table.column::<i32>("v").unwrap();
        let outcome = table.update(&mut undo, tid, |row| row.set(handle, 2));
        assert!(matches!(outcome, Err(TableError::NoRow { .. })));
    }
}

#[test]
fn decimal_with_too_many_digits_is_refused_and_nothing_changes() {
    let columns = vec![
        column("key", SqlType::Decimal { precision: 3, scale: 1 }, false),
        column("small", SqlType::Decimal { precision: 5, scale: 2 }, true),
        column("wide", SqlType::Decimal { precision: 20, scale: 0 }, false),
    ];
    let mut shape = spec(columns);
    let (name, kind) = ("i".to_owned(), IndexKind::Ordered);
    shape.indexes.push(IndexSpec { name, columns: vec![ColumnId(0)], unique: true, kind });
    let (mut table, _registry) = table(shape, None);
    let mut undo = UndoLog::default();
    let key = table.column::<i64>("key").unwrap();
    let small = table.column::<i64>("small").unwrap();
    let wide = table.column::<i128>("wide").unwrap();
    let insert = |table: &mut Table, undo: &mut UndoLog, k, s, w| {
        let mut row = table.insert(undo).unwrap();
        row.set(key, k).set(small, s).set(wide, w);
        row.finish()
    };
    let most = 10i128.pow(20) - 1;
    let tid = insert(&mut table, &mut undo, 999, -99_999, most).unwrap();
    for (k, s, w) in [(1_000, 0, 0), (1, 100_000, 0), (1, i64::MIN, 0), (1, 0, -most - 1)] {
        let outcome = insert(&mut table, &mut undo, k, s, w);
        assert!(matches!(outcome, Err(TableError::OutOfRange { .. })), "{k} {s} {w}");
    }
    table.update(&mut undo, tid, |row| row.set_null(small)).unwrap();
    let before = table.row(tid);
    let overflow = |outcome: Result<(), TableError>| {
        assert!(matches!(outcome, Err(TableError::OutOfRange { .. })));
    };
    overflow(table.update(&mut undo, tid, |row| row.modify(key, |v| v + 1).map(|_| ())));
    overflow(table.update(&mut undo, tid, |row| row.set(key, -1_000)));
    overflow(table.update(&mut undo, tid, |row| row.set(small, 100_000)));
    overflow(table.update(&mut undo, tid, |row| row.modify(wide, |v| v + 1).map(|_| ())));
    assert_eq!(table.row(tid), before);
    abort(&mut table, &mut undo);
    assert_eq!(table.row_count(), 0);
}

#[test]
fn table_without_columns_counts_its_rows() {
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows, LayoutChoice::Groups(vec![vec![]])] {
        let mut shape = spec(Vec::new());
        shape.layout = layout;
        let (mut table, _registry) = table(shape, None);
        let mut undo = UndoLog::default();
        table.insert_values(&mut undo, &[]).unwrap();
        let second = table.insert_values(&mut undo, &[]).unwrap();
        table.delete(&mut undo, second).unwrap();
        assert_eq!(table.row_count(), 1);
    }
}

/// A CHECK that panics when told to, as an expression with a bug in it would.
struct Explosive(AtomicBool);

impl RowCheck for Explosive {
    fn name(&self) -> &str {
        "explosive"
    }

    fn holds(&self, _: &dyn Fn(ColumnId) -> Value) -> Result<bool, SqlError> {
        assert!(!self.0.load(Ordering::Relaxed), "the check's own bug");
        Ok(true)
    }
}

#[test]
fn panic_inside_a_check_leaves_the_table_as_an_abort_does() {
    let check = Arc::new(Explosive(AtomicBool::new(false)));
    let mut shape = spec(vec![column("k", SqlType::Integer, false), column("v", SqlType::Text, false)]);
    let index = IndexSpec {
        name: "i".to_owned(),
        columns: vec![ColumnId(0)],
        unique: true,
        kind: IndexKind::Ordered,
    };
    shape.indexes.push(index);
    shape.checks.push(Arc::clone(&check) as Arc<dyn RowCheck>);
    let (mut table, _registry) = table(shape, None);
    let mut undo = UndoLog::default();
    let row = |k| [Value::Integer(k), Value::from("a text that lies in the heap")];
    let tid = table.insert_values(&mut undo, &row(1)).unwrap();
    commit(&mut table, &mut undo);
    check.0.store(true, Ordering::Relaxed);
    let inserted = catch_unwind(AssertUnwindSafe(|| table.insert_values(&mut undo, &row(2))));
    assert!(inserted.is_err());
    abort(&mut table, &mut undo);
    let updated = catch_unwind(AssertUnwindSafe(|| {
        table.update_values(&mut undo, tid, &[(ColumnId(0), Value::Integer(3))])
    }));
    assert!(updated.is_err());
    abort(&mut table, &mut undo);
    check.0.store(false, Ordering::Relaxed);
    assert_eq!(table.row_count(), 1);
    let index = table.index("i").unwrap();
    assert_eq!(table.find(index, ShortKey::new().i32(1)), Some(tid));
    assert_eq!(table.find(index, ShortKey::new().i32(3)), None);
    assert_eq!(table.insert_values(&mut undo, &row(2)), Ok(Tid(1)));
}

#[test]
fn inserts_that_fail_for_ever_do_not_fill_memory_with_their_texts() {
    let mut shape = spec(vec![column("k", SqlType::Integer, false), column("v", SqlType::Text, false)]);
    let index = IndexSpec {
        name: "i".to_owned(),
        columns: vec![ColumnId(0)],
        unique: true,
        kind: IndexKind::Ordered,
    };
    shape.indexes.push(index);
    let (mut table, _registry) = table(shape, None);
    let mut undo = UndoLog::default();
    let row = [Value::Integer(1), Value::Text("x".repeat(5000))];
    table.insert_values(&mut undo, &row).unwrap();
    commit(&mut table, &mut undo);
    for _ in 0..1000 {
        table.insert_values(&mut undo, &row).unwrap_err();
        abort(&mut table, &mut undo);
        // A text set twice and a row never finished.
        let handle = table.text_column("v").unwrap();
        let mut new = table.insert(&mut undo).unwrap();
        new.set_text(handle, &"y".repeat(3000)).unwrap();
        new.set_text(handle, &"z".repeat(3000)).unwrap();
        drop(new);
        abort(&mut table, &mut undo);
    }
    assert!(table.memory().heaps_bytes <= 512 << 10, "{} bytes", table.memory().heaps_bytes);
    assert_eq!(table.row(Tid(0)), row);
}

#[test]
fn deleted_rows_and_aborted_updates_give_their_texts_memory_back() {
    let (mut table, _registry) = table(spec(vec![column("v", SqlType::Text, false)]), None);
    let mut undo = UndoLog::default();
    let text = |n: usize| [Value::Text(format!("{n:01000}"))];
    for n in 0..4000 {
        table.insert_values(&mut undo, &text(n)).unwrap();
    }
    commit(&mut table, &mut undo);
    for n in 0..3900 {
        table.delete(&mut undo, Tid(n)).unwrap();
    }
    commit(&mut table, &mut undo);
    assert!(table.memory().heaps_bytes <= 1 << 20, "{} bytes", table.memory().heaps_bytes);
    for n in 0..4000 {
        table
            .update_values(&mut undo, Tid(3900 + n % 100), &[(ColumnId(0), text(n as usize)[0].clone())])
            .unwrap();
        abort(&mut table, &mut undo);
    }
    assert!(table.memory().heaps_bytes <= 1 << 20, "{} bytes", table.memory().heaps_bytes);
    for n in 3900..4000 {
        assert_eq!(table.row(Tid(n)), text(n as usize));
    }
}

#[test]
fn failed_insert_under_a_snapshot_copies_no_block() {
    let mut shape = spec(vec![column("k", SqlType::Integer, false)]);
    let index = IndexSpec {
        name: "i".to_owned(),
        columns: vec![ColumnId(0)],
        unique: true,
        kind: IndexKind::Ordered,
    };
    shape.indexes.push(index);
    let (mut table, registry) = table(shape, None);
    let mut undo = UndoLog::default();
    table.insert_values(&mut undo, &[Value::Integer(1)]).unwrap();
    commit(&mut table, &mut undo);
    let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).unwrap();
    builder.add(PartitionId(0), &mut table);
    let snapshot = builder.finish();
    for n in 2..50 {
        table.insert_values(&mut undo, &[Value::Integer(1)]).unwrap_err();
        table.insert_values(&mut undo, &[Value::Integer(n)]).unwrap();
        abort(&mut table, &mut undo);
    }
    assert_eq!(registry.counters().blocks_copied, 0);
    assert_eq!(snapshot.table(TableId(0)).unwrap().chunk(0).slots(), 1);
}

#[test]
fn spent_budget_cancels_one_snapshot_at_a_time() {
    let pool = BlockPool::new(POOL_BYTES);
    let registry = Arc::new(SnapshotRegistry::new(pool, 1, BudgetPolicy::EndOldest));
    let shape = spec(vec![column("a", SqlType::Integer, false), column("b", SqlType::Integer, false)]);
    let layout = Table::layout_of(&shape).unwrap();
    let mut table = Table::new(Arc::new(shape), layout, None, &registry);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::Integer(1), Value::Integer(2)]).unwrap();
    commit(&mut table, &mut undo);
    let take = |table: &mut Table| {
        let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).unwrap();
        builder.add(PartitionId(0), table);
        builder.finish()
    };
    let (first, second) = (take(&mut table), take(&mut table));
    for column in 0..2 {
        table.update_values(&mut undo, tid, &[(ColumnId(column), Value::Integer(9))]).unwrap();
    }
    commit(&mut table, &mut undo);
    assert!(first.is_cancelled() && !second.is_cancelled());
    drop(first);
    let third = take(&mut table);
    table.update_values(&mut undo, tid, &[(ColumnId(0), Value::Integer(10))]).unwrap();
    assert!(second.is_cancelled() && !third.is_cancelled());
}

#[test]
fn snapshot_of_other_tables_costs_a_table_nothing() {
    let (mut table, registry) = table(spec(vec![column("v", SqlType::BigInt, false)]), None);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::BigInt(0)]).unwrap();
    commit(&mut table, &mut undo);
    let take = |table: &mut Table, id: u32| {
        let scope = SnapshotScope::Tables([(TableId(id), ColumnSet::ALL)].into());
        let mut builder = SnapshotBuilder::new(&registry, scope).unwrap();
        builder.add(PartitionId(0), table);
        builder.finish()
    };
    let write = |table: &mut Table, undo: &mut UndoLog, value: i64| {
        table.update_values(undo, tid, &[(ColumnId(0), Value::BigInt(value))]).unwrap();
        commit(table, undo);
    };
    let shown = |snapshot: &Arc<DatabaseSnapshot>| {
        let view = snapshot.table(TableId(0)).expect("covered");
        view.chunk(0).raw_i64(ColumnId(0)).unwrap()[0]
    };
    let other = take(&mut table, 9);
    write(&mut table, &mut undo, 1);
    assert!(other.table(TableId(0)).is_none());
    assert_eq!(registry.counters().blocks_copied, 0);
    let first = take(&mut table, 0);
    let newer = take(&mut table, 9);
    write(&mut table, &mut undo, 2);
    assert_eq!(registry.counters().blocks_copied, 1);
    let second = take(&mut table, 0);
    write(&mut table, &mut undo, 3);
    assert_eq!((shown(&first), shown(&second)), (1, 2));
    assert_eq!(registry.counters().blocks_copied, 2);
    // What the two saw goes with them, although snapshots older and newer than each live on.
    drop(second);
    drop(first);
    assert_eq!(registry.counters().held_bytes, 0);
    write(&mut table, &mut undo, 4);
    assert_eq!(registry.counters().blocks_copied, 2, "nobody sees the table any more");
    drop((other, newer));
}

#[test]
fn snapshot_of_some_columns_costs_the_others_nothing_and_does_not_show_them() {
    let columns = vec![
        column("a", SqlType::BigInt, false),
        column("b", SqlType::BigInt, true),
        column("c", SqlType::Text, false),
    ];
    let (mut table, registry) = table(spec(columns), None);
    let mut undo = UndoLog::default();
    let long = |letter: &str| Value::Text(letter.repeat(40));
    let tid = table.insert_values(&mut undo, &[Value::BigInt(1), Value::Null, long("x")]).unwrap();
    commit(&mut table, &mut undo);
    let take = |table: &mut Table, columns: &[u16]| {
        let columns = ColumnSet::of(columns.iter().copied().map(ColumnId));
        let scope = SnapshotScope::Tables([(TableId(0), columns)].into());
        let mut builder = SnapshotBuilder::new(&registry, scope).unwrap();
        builder.add(PartitionId(0), table);
        builder.finish()
    };
    let first = take(&mut table, &[0]);
    let mut write = |column: u16, value: Value| {
        table.update_values(&mut undo, tid, &[(ColumnId(column), value)]).unwrap();
        commit(&mut table, &mut undo);
        registry.counters().blocks_copied
    };
    assert_eq!(write(1, Value::BigInt(5)), 0);
    assert_eq!(write(2, long("y")), 0);
    assert_eq!(write(0, Value::BigInt(2)), 1);
    let view = first.table(TableId(0)).unwrap();
    assert_eq!(view.chunk(0).raw_i64(ColumnId(0)).unwrap()[0], 1);
    assert!(view.covers(ColumnId(0)) && !view.covers(ColumnId(1)));
    let read = |column: u16| {
        let view = view.clone();
        let read = move || drop(view.chunk(0).column(ColumnId(column)));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
    };
    assert!(read(0).is_ok());
    assert!(read(1).is_err() && read(2).is_err(), "what is not covered is not shown");
    assert!(view.chunk(0).live().is_none(), "which rows live is always covered");
    // The row goes: the snapshot still knows that it was there.
    table.delete(&mut undo, tid).unwrap();
    commit(&mut table, &mut undo);
    let none = take(&mut table, &[]);
    assert_eq!((view.row_count(), none.table(TableId(0)).unwrap().row_count()), (1, 0));
    assert!(view.chunk(0).live().is_none());
}

#[test]
fn typed_write_over_null_is_not_seen_by_a_snapshot_and_is_undone() {
    let (mut table, registry) = table(spec(vec![column("v", SqlType::BigInt, true)]), None);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::Null]).unwrap();
    commit(&mut table, &mut undo);
    let v = table.column::<i64>("v").unwrap();
    let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).unwrap();
    builder.add(PartitionId(0), &mut table);
    let snapshot = builder.finish();
    let still_null = || snapshot.table(TableId(0)).unwrap().chunk(0).column(ColumnId(0)).is_null(0);
    table.update(&mut undo, tid, |row| row.set(v, 5)).unwrap();
    assert_eq!((table.get_opt(tid, v), still_null()), (Some(5), true));
    abort(&mut table, &mut undo);
    assert_eq!((table.get_opt(tid, v), still_null()), (None, true));
    table.update(&mut undo, tid, |row| row.set(v, 6)).unwrap();
    commit(&mut table, &mut undo);
    table.update(&mut undo, tid, |row| row.set(v, 7)).unwrap();
    abort(&mut table, &mut undo);
    assert_eq!((table.get_opt(tid, v), still_null()), (Some(6), true));
}

#[test]
fn snapshot_of_several_partitions_shows_each_with_its_rows() {
    let registry =
        Arc::new(SnapshotRegistry::new(BlockPool::new(POOL_BYTES), u64::MAX, BudgetPolicy::RefuseNew));
    let shape = Arc::new(spec(vec![column("v", SqlType::BigInt, false)]));
    let layout = Table::layout_of(&shape).unwrap();
    let mut undo = UndoLog::default();
    let mut partitions: Vec<Table> =
        (0..3).map(|_| Table::new(Arc::clone(&shape), Arc::clone(&layout), None, &registry)).collect();
    // Partition 1 stays empty and contributes no chunk.
    for (partition, value) in [(0, 1), (2, 10), (2, 20)] {
        partitions[partition].insert_values(&mut undo, &[Value::BigInt(value)]).unwrap();
    }
    let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).unwrap();
    for (id, table) in partitions.iter_mut().enumerate() {
        builder.add(PartitionId(id as u16), table);
    }
    let snapshot = builder.finish();
    let view = snapshot.table(TableId(0)).unwrap();
    assert_eq!((view.row_count(), view.chunk_count()), (3, 2));
    assert_eq!((view.chunk(0).partition(), view.chunk(1).partition()), (PartitionId(0), PartitionId(2)));
    assert_eq!(view.chunk(1).raw_i64(ColumnId(0)).unwrap().as_ref(), [10, 20]);
    assert!(snapshot.table(TableId(7)).is_none());
}

#[test]
fn abandoned_snapshot_leaves_no_trace() {
    let (mut table, registry) = table(spec(vec![column("v", SqlType::BigInt, false)]), None);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::BigInt(1)]).unwrap();
    let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).unwrap();
    builder.add(PartitionId(0), &mut table);
    drop(builder);
    assert_eq!(registry.counters().live, 0);
    table.update_values(&mut undo, tid, &[(ColumnId(0), Value::BigInt(2))]).unwrap();
    assert_eq!(registry.counters().blocks_copied, 0);
}

#[test]
fn index_added_later_holds_every_row_and_a_failed_one_changes_nothing() {
    let plain = spec(vec![column("k", SqlType::Integer, true), column("v", SqlType::Text, false)]);
    let (mut table, registry) = table(plain.clone(), None);
    let mut undo = UndoLog::default();
    for k in [Value::Integer(1), Value::Integer(2), Value::Null, Value::Null, Value::Integer(2)] {
        table.insert_values(&mut undo, &[k, Value::from("v")]).unwrap();
    }
    let with = |unique, kind| {
        let mut shape = plain.clone();
        let index = IndexSpec { name: "i".to_owned(), columns: vec![ColumnId(0)], unique, kind };
        shape.indexes.push(index);
        Arc::new(shape)
    };
    let in_use_bytes = registry.pool().in_use_bytes();
    let failed = table.add_index(with(true, IndexKind::Ordered), &StatementProgress::default());
    assert!(matches!(failed, Err(TableError::Duplicate { existing: Tid(1), .. })));
    assert_eq!(registry.pool().in_use_bytes(), in_use_bytes);
    assert!(table.index("i").is_err());
    table.delete(&mut undo, Tid(4)).unwrap();
    let progress = StatementProgress::default();
    progress.begin(Phase::BuildingIndex, Unit::Rows, Some(4));
    table.add_index(with(true, IndexKind::Hash), &progress).unwrap();
    assert_eq!(progress.get().map(|progress| progress.done), Some(4));
    let index = table.index("i").unwrap();
    assert_eq!(table.find_key(index, ShortKey::new().present().i32(2).into()), Some(Tid(1)));
    assert_eq!(table.find_all(index, ShortKey::new().null().into()), [Tid(2), Tid(3)]);
    let again = table.insert_values(&mut undo, &[Value::Integer(1), Value::from("v")]);
    assert!(matches!(again, Err(TableError::Duplicate { existing: Tid(0), .. })));
    table.drop_index(0, Arc::new(plain.clone()));
    table.insert_values(&mut undo, &[Value::Integer(1), Value::from("v")]).unwrap();
}

#[test]
fn index_of_many_rows_has_them_in_their_order() {
    let plain = spec(vec![column("k", SqlType::BigInt, false), column("v", SqlType::Integer, true)]);
    for (unique, columns) in [(true, vec![0]), (false, vec![1]), (false, vec![1, 0])] {
        let (mut table, _registry) = table(plain.clone(), None);
        let mut undo = UndoLog::default();
        let mut expected = Vec::new();
        for number in 0..3_500_i64 {
            let (k, v) = (number * 1_237 % 3_511 - 1_700, (number % 11 != 0).then_some(number as i32 % 7));
            let value = v.map_or(Value::Null, Value::Integer);
            let tid = table.insert_values(&mut undo, &[Value::BigInt(k), value]).unwrap();
            match number % 5 {
                0 => table.delete(&mut undo, tid).unwrap(),
                _ => expected.push((v.is_none(), v, k, tid)),
            }
        }
        let mut shape = plain.clone();
        let columns: Vec<ColumnId> = columns.into_iter().map(ColumnId).collect();
        expected.sort_by_key(|&(is_null, v, k, tid)| match columns.as_slice() {
            [ColumnId(0)] => (false, None, k, tid),
            [_] => (is_null, v, 0, tid),
            _ => (is_null, v, k, tid),
        });
        shape.indexes.push(IndexSpec { name: "i".to_owned(), columns, unique, kind: IndexKind::Ordered });
        table.add_index(Arc::new(shape), &StatementProgress::default()).unwrap();
        let index = table.index("i").unwrap();
        let found: Vec<Tid> = table.between(index, 0, u128::MAX).collect();
        assert_eq!(found, expected.iter().map(|row| row.3).collect::<Vec<_>>());
    }
}

#[test]
fn handle_of_another_table_is_refused_by_every_access() {
    let shape = || spec(vec![column("a", SqlType::Integer, true), column("b", SqlType::Integer, true)]);
    let (other, _registry) = table(shape(), None);
    let foreign = other.column::<i32>("b").unwrap();
    let (mut table, _registry) = table(shape(), None);
    let mut undo = UndoLog::default();
    let tid = table.insert_values(&mut undo, &[Value::Integer(1), Value::Null]).unwrap();
    let panics = |access: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(access)).is_err();
    assert!(panics(&mut || _ = table.get(tid, foreign)));
    assert!(panics(&mut || _ = table.is_null(tid, foreign)));
    assert!(panics(&mut || table.prefetch(tid, foreign)));
    assert!(panics(&mut || _ = table.insert(&mut undo).unwrap().set(foreign, 2)));
    assert!(panics(&mut || _ = table.update(&mut undo, tid, |row| row.set(foreign, 2))));
    assert_eq!((table.row(tid), table.row_count()), (vec![Value::Integer(1), Value::Null], 1));
    let own = table.column::<i32>("a").unwrap();
    for nowhere in [Tid(1 << 14), Tid(u64::MAX)] {
        assert!(panics(&mut || _ = table.get(nowhere, own)));
        assert!(!table.is_live(nowhere));
    }
}

#[test]
fn key_longer_than_those_of_a_dense_index_is_not_found() {
    let mut shape = spec(vec![column("a", SqlType::Integer, false)]);
    let (name, kind) = ("i".to_owned(), IndexKind::Hash);
    shape.indexes.push(IndexSpec { name, columns: vec![ColumnId(0)], unique: true, kind });
    let (mut table, _registry) = table(shape, None);
    let mut undo = UndoLog::default();
    for a in 0..5_000 {
        table.insert_values(&mut undo, &[Value::Integer(a)]).unwrap();
    }
    let index = table.index("i").unwrap();
    assert_eq!(table.index_form(index), "dense array");
    assert_eq!(table.find(index, ShortKey::new().i32(7)), Some(Tid(7)));
    assert_eq!(table.find(index, ShortKey::new().i32(7).i32(i32::MIN).i32(7)), None);
}
