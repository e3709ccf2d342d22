//! Many rows appended at once, against inserting them one by one into the model.

use std::collections::HashSet;
use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, IndexId, SqlType, StatementProgress, Tid, Value, arrow_type};
use albireo_storage::{IndexKind, LayoutChoice, RowFault, SLAB_BYTES, Staging, TableError};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};

use crate::load::batch;
use crate::shape::Shape;
use crate::world::World;

/// Values of one type, or NULL, as an array.
fn array(ty: SqlType, values: impl Iterator<Item = Value>) -> ArrayRef {
    macro_rules! collect {
        ($array:ty, $variant:ident) => {
            values.map(|v| if let Value::$variant(v) = v { Some(v) } else { None }).collect::<$array>()
        };
    }
    match ty {
        SqlType::Bool => Arc::new(collect!(BooleanArray, Bool)),
        SqlType::SmallInt => Arc::new(collect!(Int16Array, SmallInt)),
        SqlType::Integer => Arc::new(collect!(Int32Array, Integer)),
        SqlType::BigInt => Arc::new(collect!(Int64Array, BigInt)),
        SqlType::Real => Arc::new(collect!(Float32Array, Real)),
        SqlType::Double => Arc::new(collect!(Float64Array, Double)),
        SqlType::Date => Arc::new(collect!(Date32Array, Date)),
        SqlType::Time => Arc::new(collect!(Time64MicrosecondArray, Time)),
        SqlType::Timestamp => Arc::new(collect!(TimestampMicrosecondArray, Timestamp)),
        SqlType::TimestampTz => {
            Arc::new(collect!(TimestampMicrosecondArray, TimestampTz).with_data_type(arrow_type(ty)))
        }
        SqlType::Decimal { .. } => {
            let unscaled = |v| if let Value::Decimal(d) = v { Some(d.unscaled) } else { None };
            let array: Decimal128Array = values.map(unscaled).collect();
            Arc::new(array.with_data_type(arrow_type(ty)))
        }
        SqlType::Char(_) | SqlType::Varchar(_) => Arc::new(collect!(StringArray, Text)),
        SqlType::Text => Arc::new(collect!(StringViewArray, Text)),
        SqlType::Bytea => Arc::new(collect!(BinaryViewArray, Bytea)),
        SqlType::Uuid => {
            let bytes = values.map(|v| if let Value::Uuid(v) = v { Some(v) } else { None });
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).expect("16 bytes each"))
        }
    }
}

pub fn rows_batch(shape: &Shape, rows: &[Vec<Value>]) -> RecordBatch {
    let column = |(i, (ty, _)): (usize, &(SqlType, bool))| array(*ty, rows.iter().map(|row| row[i].clone()));
    batch(shape.columns.iter().enumerate().map(column).collect())
}

/// Rows that were staged, to be appended at some later time.
pub struct Staged {
    /// They.
    pub staging: Staging,
    /// As values.
    pub rows: Vec<Vec<Value>>,
}

impl World {
    /// Stages rows in batches of `length`.
    pub fn stage(&mut self, rows: Vec<Vec<Value>>, length: usize) {
        self.stage_few(rows, length, 0);
    }

    /// Stages rows, which are appended one by one if they are at most `few`.
    pub fn stage_few(&mut self, rows: Vec<Vec<Value>>, length: usize, few: u64) {
        let mut staging = self.table.staging().with_few(few);
        let mut pushed = Ok(());
        for rows in rows.chunks(length.max(1)) {
            pushed = pushed.and_then(|()| staging.push(&rows_batch(&self.shape, rows)));
        }
        match pushed {
            Ok(()) => {
                assert_eq!(staging.row_count(), rows.len() as u64);
                if few.is_multiple_of(2) {
                    staging.index(&StatementProgress::default());
                }
                self.staged = Some(Staged { staging, rows });
            }
            Err(RowFault { row: Some(row), error: TableError::Check { .. }, .. }) => {
                let first = rows.iter().position(|row| !self.shape.allows(row));
                assert_eq!(first, Some(row as usize), "the first row that violates a check is named");
            }
            Err(RowFault { row: None, error: TableError::OutOfMemory(_), .. }) => {
                assert!(self.is_squeezed(), "there was memory");
            }
            Err(other) => panic!("unexpected {other:?}"),
        }
    }

    /// Deletes rows and commits.
    fn delete_rows(&mut self, tids: &[Tid]) {
        for tid in tids {
            self.table.delete(&mut self.undo, *tid).expect("there is memory");
            self.current.remove(tid);
        }
        self.commit();
    }

    /// Appends what was staged.
    pub fn append_staged(&mut self) {
        let Some(Staged { staging, rows }) = self.staged.take() else { return };
        let fault = self.first_fault(&rows);
        let changes = self.undo.len();
        let moved = self.undo.rows_moved();
        let progress = StatementProgress::default();
        match self.table.append(&mut self.undo, staging, &progress) {
            Ok(count) => {
                assert_eq!((count, fault), (rows.len() as u64, None), "a unique key is there twice");
                assert_eq!(self.undo.rows_moved() - moved, count);
                assert_eq!((self.undo.len() - changes) as u64, count);
                let new: Vec<Tid> =
                    self.table.scan_from(Tid(0)).filter(|tid| !self.current.contains_key(tid)).collect();
                assert_eq!(new.len(), rows.len());
                let found: Vec<Vec<Value>> = new.iter().map(|tid| self.table.row(*tid)).collect();
                let sorted = |rows: &[Vec<Value>]| {
                    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                    rows.sort_unstable();
                    rows
                };
                // Free slots are filled in the order in which they became free.
                assert_eq!(sorted(&found), sorted(&rows), "the rows are those that were staged");
                for (tid, row) in new.into_iter().zip(found) {
                    self.assert_unseen(tid);
                    self.current.insert(tid, Arc::new(row));
                }
            }
            Err(RowFault { row, error: TableError::Duplicate { index, .. }, key }) => {
                assert_eq!(row.map(|row| (row as usize, index)), fault, "the first row at fault is named");
                let columns = &self.shape.indexes[index.index()].0;
                let wanted: Vec<Value> = columns
                    .iter()
                    .map(|c| rows[row.expect("compared") as usize][c.index()].clone())
                    .collect();
                assert_eq!(format!("{key:?}"), format!("{wanted:?}"));
                assert_eq!(self.undo.len(), changes, "a failure leaves no trace");
                self.check();
            }
            Err(RowFault { row: None, error: TableError::OutOfMemory(_), .. }) => {
                assert!(self.is_squeezed(), "there was memory");
                assert_eq!(self.undo.len(), changes, "a failure leaves no trace");
                self.check();
            }
            Err(other) => panic!("unexpected {other:?}"),
        }
    }

    /// The first of the rows whose unique key is there already, or in a row before it, and the first index of
    /// which that is so.
    pub fn first_fault(&self, rows: &[Vec<Value>]) -> Option<(usize, IndexId)> {
        let key = |columns: &[ColumnId], row: &[Value]| {
            let key = columns.iter().map(|c| match &row[c.index()] {
                Value::Null => None,
                // Equal numbers have one text, but for zeroes.
                value => {
                    let is_zero = *value == Value::Double(0.0) || *value == Value::Real(0.0);
                    Some(value.to_string().replacen("-0", "0", usize::from(is_zero)))
                }
            });
            key.collect::<Option<Vec<String>>>()
        };
        let uniques = self.shape.indexes.iter().enumerate().filter(|(_, (_, unique, _))| *unique);
        let first = |(index, (columns, ..)): (usize, &(Vec<ColumnId>, bool, IndexKind))| {
            let mut taken: HashSet<_> = self.current.values().filter_map(|row| key(columns, row)).collect();
            let at = rows.iter().position(|row| key(columns, row).is_some_and(|key| !taken.insert(key)))?;
            Some((at, IndexId(index as u16)))
        };
        uniques.filter_map(first).min_by_key(|(at, _)| *at)
    }

    /// Takes the rows that are there into the model, and commits them.
    fn follow(&mut self) {
        self.current = self.table.scan_from(Tid(0)).map(|tid| (tid, Arc::new(self.table.row(tid)))).collect();
        self.commit();
    }

    /// Rows of right values, many of which collide in unique keys unless `step` says otherwise.
    pub fn some_rows(&self, picks: &[u16], count: usize, step: u16) -> Vec<Vec<Value>> {
        let row = |n: usize| {
            let picks: Vec<u16> = picks.iter().map(|pick| (pick + n as u16 * step) % 1000).collect();
            self.shape.row(&picks)
        };
        (0..count).map(row).collect()
    }
}

fn keyed(layout: LayoutChoice) -> Shape {
    let ids = |columns: &[u16]| columns.iter().map(|&c| ColumnId(c)).collect::<Vec<_>>();
    Shape {
        columns: vec![
            (SqlType::BigInt, false),
            (SqlType::Text, true),
            (SqlType::Varchar(10), true),
            (SqlType::Decimal { precision: 12, scale: 2 }, false),
            (SqlType::Varchar(60), false),
        ],
        layout,
        indexes: vec![
            (ids(&[0]), true, IndexKind::Hash),
            (ids(&[3, 0]), false, IndexKind::Ordered),
            (ids(&[1]), false, IndexKind::Hash),
            (ids(&[4, 0]), true, IndexKind::Ordered),
            (ids(&[4]), false, IndexKind::Bare),
            (ids(&[0, 1]), true, IndexKind::Bare),
        ],
        forbidden: None,
    }
}

/// Rows with keys from `first` on.
fn keyed_rows(shape: &Shape, first: i64, count: usize) -> Vec<Vec<Value>> {
    let row = |n: usize| {
        let mut row = shape.row(&[(n % 40) as u16, (n % 37) as u16, (n % 41) as u16]);
        row[0] = Value::BigInt(first + n as i64);
        // Few are NULL or equal: those of one key are looked for all together.
        let text = &row[4];
        row[1] = if n.is_multiple_of(997) { Value::Null } else { Value::Text(format!("{n} {text}")) };
        row
    };
    (0..count).map(row).collect()
}

fn layouts() -> [LayoutChoice; 3] {
    let group = LayoutChoice::Groups(vec![(0..3).map(ColumnId).collect(), vec![ColumnId(4)]]);
    [LayoutChoice::Columns, LayoutChoice::Rows, group]
}

#[test]
fn rows_of_several_chunks_are_appended_behind_others_and_taken_back() {
    for layout in layouts() {
        let mut world = World::new(keyed(layout.clone()), 1 << 30);
        let mut next = 0;
        // In an empty table, at the end of a chunk, in the middle of one, beyond the next, few and many.
        let counts = [CHUNK_ROWS, 10, CHUNK_ROWS - 10, 700, 2 * CHUNK_ROWS, 1];
        let count_of = if matches!(layout, LayoutChoice::Columns) { &counts[..] } else { &counts[1..2] };
        for &count in count_of {
            let rows = keyed_rows(&world.shape, next, count);
            for kept in [false, true] {
                world.take_snapshot();
                world.stage(rows.clone(), 8192);
                world.append_staged();
                match kept {
                    true => world.commit(),
                    false => world.abort(),
                }
                world.check();
                world.drop_snapshot(0, false);
            }
            next += count as i64;
        }
        assert_eq!(world.current.len() as i64, next);
        assert_eq!(world.table.scan_from(Tid(0)).last(), Some(Tid(next as u64 - 1)), "no slot is left out");
        world.finish(true);
    }
}

#[test]
fn rows_staged_before_others_came_leave_slots_that_are_used_again() {
    let mut world = World::new(keyed(LayoutChoice::Columns), 1 << 30);
    world.stage(keyed_rows(&world.shape, 1_000_000, CHUNK_ROWS + 7), 5000);
    for row in keyed_rows(&world.shape, 0, 100) {
        world.insert(row);
    }
    world.append_staged();
    world.take_snapshot();
    world.check();
    let hole = CHUNK_ROWS - 100;
    assert_eq!(world.table.scan_from(Tid(100)).next(), Some(Tid(CHUNK_ROWS as u64)));
    for rows in keyed_rows(&world.shape, 200, hole).chunks(1000) {
        world.stage_few(rows.to_vec(), 1000, 1000);
        world.append_staged();
    }
    world.check();
    assert!(world.table.is_live(Tid(CHUNK_ROWS as u64 - 1)), "the slots that were left out are used");
    world.abort();
    world.check();
    world.finish(false);
}

#[test]
fn rows_appended_and_changed_in_one_transaction_are_taken_back_with_their_changes() {
    let mut world = World::new(keyed(LayoutChoice::Columns), 1 << 30);
    world.stage(keyed_rows(&world.shape, 0, 50), 50);
    world.append_staged();
    world.commit();
    world.stage(keyed_rows(&world.shape, 100, CHUNK_ROWS + 50), 999);
    world.append_staged();
    world.set_savepoint();
    for n in 0..200u16 {
        world.delete(n.wrapping_mul(331));
    }
    for row in keyed_rows(&world.shape, 1_000_000, 30) {
        world.insert(row);
    }
    world.stage(keyed_rows(&world.shape, 2_000_000, 300), 999);
    world.append_staged();
    world.check();
    world.roll_back_to_savepoint();
    world.check();
    world.abort();
    world.check();
    assert_eq!(world.current.len(), 50);
    world.finish(true);
}

#[test]
fn key_that_is_there_twice_is_named_by_the_first_row_and_nothing_is_appended() {
    let fault = |world: &mut World, rows: &[Vec<Value>]| {
        let mut staging = world.table.staging();
        for rows in rows.chunks(4096) {
            staging.push(&rows_batch(&world.shape, rows)).expect("the rows fit the table");
        }
        let progress = StatementProgress::default();
        let fault =
            world.table.append(&mut world.undo, staging, &progress).expect_err("a key is there twice");
        assert!(world.undo.is_empty());
        world.check();
        let TableError::Duplicate { index, .. } = fault.error else { panic!("unexpected {fault:?}") };
        (fault.row.expect("a row is to blame"), index.0, fault.key)
    };
    let shape = || Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Integer, true)],
        layout: LayoutChoice::Columns,
        indexes: vec![
            (vec![ColumnId(0)], true, IndexKind::Ordered),
            (vec![ColumnId(1)], true, IndexKind::Hash),
        ],
        forbidden: None,
    };
    let integer = |n: usize| Value::Integer(n as i32);
    for already in [0, 300] {
        let mut world = World::new(shape(), 1 << 30);
        for n in 0..already {
            world.insert(vec![integer(n), integer(n)]);
        }
        world.commit();
        // Key by key downwards, so that sorting turns all around.
        let base: Vec<Vec<Value>> =
            (0..30_000).map(|n| vec![integer(100_000 - n), integer(50_000 + n)]).collect();
        let mut rows = base.clone();
        rows[20_000][0] = integer(100_000 - 7);
        rows[25_000][0] = integer(100_000 - 6);
        assert_eq!(fault(&mut world, &rows), (20_000, 0, vec![integer(100_000 - 7)]), "within the batch");
        rows[19_999][1] = integer(50_003);
        assert_eq!(fault(&mut world, &rows), (19_999, 1, vec![integer(50_003)]), "in another index first");
        rows[19_999][1] = Value::Null;
        assert_eq!(fault(&mut world, &rows), (20_000, 0, vec![integer(100_000 - 7)]), "NULLs are no key");
        if already > 0 {
            rows[11][1] = integer(299);
            assert_eq!(fault(&mut world, &rows), (11, 1, vec![integer(299)]), "against rows that are there");
            rows[11][0] = integer(0);
            assert_eq!(fault(&mut world, &rows), (11, 0, vec![integer(0)]), "the first index first");
        }
        world.stage(base, 4096);
        world.append_staged();
        world.commit();
        world.check();
        world.finish(true);
    }
}

#[test]
fn row_that_does_not_fit_is_named_as_inserting_row_by_row_would() {
    let shape = Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Varchar(3), true), (SqlType::Text, false)],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        forbidden: Some(30),
    };
    let world = World::new(shape, 64 << 20);
    let right = || vec![Value::Integer(1), Value::from("abc"), Value::from("x")];
    let wrong: [fn(&mut Vec<Value>); 6] = [
        |row| row[0] = Value::Null,
        |row| row[1] = Value::from("abcd"),
        |row| row[2] = Value::from("\0"),
        |row| row[0] = crate::shape::value(SqlType::Integer, 30),
        |row| row[2] = Value::Null,
        |row| row[1] = Value::from("a\0"),
    ];
    for (first, make_first) in wrong.iter().enumerate() {
        for make_second in &wrong {
            for second in [700, 900] {
                let mut rows: Vec<Vec<Value>> = (0..1000).map(|_| right()).collect();
                make_first(&mut rows[700]);
                make_second(&mut rows[second]);
                let few = if first % 2 == 0 { 0 } else { 1000 };
                let mut staging = world.table.staging().with_few(few);
                staging.push(&rows_batch(&world.shape, &rows[..600])).expect("these are right");
                let fault = staging.push(&rows_batch(&world.shape, &rows[600..])).expect_err("these are not");
                let mut one = World::new(world.shape.clone(), 64 << 20);
                let wanted = one.table.insert_values(&mut one.undo, &rows[700]).expect_err("a wrong value");
                assert_eq!((fault.row, &fault.error), (Some(700), &wanted), "{first} {second}");
                let again = staging.push(&rows_batch(&world.shape, &rows[..1])).expect_err("it has failed");
                assert_eq!(again, fault);
            }
        }
    }
    world.finish(true);
}

#[test]
fn table_that_is_emptied_and_filled_again_and_again_does_not_grow() {
    for layout in layouts() {
        let mut world = World::new(keyed(layout.clone()), 1 << 30);
        let mut next = 0;
        // Whole chunks and parts of them; few enough to be inserted one by one.
        let several = if matches!(layout, LayoutChoice::Columns) { CHUNK_ROWS + 700 } else { 700 };
        for (count, few) in [(several, 0), (500, 0), (500, 1000)] {
            let mut slots = None;
            for round in 0..3 {
                world.stage_few(keyed_rows(&world.shape, next, count), 8192, few);
                world.append_staged();
                world.abort();
                world.stage_few(keyed_rows(&world.shape, next, count), 8192, few);
                world.append_staged();
                world.commit();
                next += count as i64;
                world.check();
                let last = world.table.scan_from(Tid(0)).last().expect("there are rows");
                let most = slots.get_or_insert(last).0 + CHUNK_ROWS as u64;
                assert!(last.0 < most, "{round}: {last:?}");
                let all: Vec<Tid> = world.table.scan_from(Tid(0)).collect();
                world.delete_rows(&all);
            }
        }
        world.finish(true);
    }
}

#[test]
fn rows_appended_to_free_slots_are_not_seen_by_older_snapshots_and_are_taken_back() {
    let mut world = World::new(keyed(LayoutChoice::Columns), 1 << 30);
    for row in keyed_rows(&world.shape, 0, 3000) {
        world.insert(row);
    }
    world.commit();
    // Every third row goes; the slots of the later ones are kept from use by a snapshot.
    let third: Vec<Tid> = world.table.scan_from(Tid(0)).step_by(3).collect();
    world.delete_rows(&third[..500]);
    world.take_snapshot();
    world.delete_rows(&third[500..]);
    for kept in [false, true] {
        world.stage(keyed_rows(&world.shape, 10_000, 1700), 600);
        world.append_staged();
        let reused = third[..500].iter().filter(|tid| world.table.is_live(**tid)).count();
        assert_eq!(reused, 500, "free slots are used");
        assert!(third[500..].iter().all(|tid| !world.table.is_live(*tid)), "but none that a snapshot sees");
        world.check();
        if kept {
            world.commit()
        } else {
            world.abort()
        }
        world.check();
    }
    world.drop_snapshot(0, false);
    world.check();
    world.finish(true);
}

#[test]
fn memory_that_runs_out_at_any_moment_of_an_append_changes_nothing() {
    let (mut unstaged, mut refused, mut appended) = (0, 0, 0);
    for (slabs, count) in (8..16).flat_map(|slabs| (4..10).map(move |n| (slabs, n * 5000))) {
        let mut world = World::new(keyed(LayoutChoice::Columns), slabs * SLAB_BYTES as u64);
        for row in keyed_rows(&world.shape, 0, 300) {
            if world.table.insert_values(&mut world.undo, &row).is_err() {
                break;
            }
        }
        world.follow();
        world.take_snapshot();
        let mut staging = world.table.staging();
        let rows = keyed_rows(&world.shape, 10_000, count);
        let mut batches = rows.chunks(8192).map(|rows| rows_batch(&world.shape, rows));
        let out_of_memory = |fault: RowFault| {
            assert!(
                matches!(fault, RowFault { row: None, error: TableError::OutOfMemory(_), .. }),
                "{fault:?}"
            );
        };
        if let Err(fault) = batches.try_for_each(|batch| staging.push(&batch)) {
            out_of_memory(fault);
            unstaged += 1;
            drop(staging);
        } else {
            match world.table.append(&mut world.undo, staging, &StatementProgress::default()) {
                Ok(_) => appended += 1,
                Err(fault) => {
                    out_of_memory(fault);
                    assert!(world.undo.is_empty());
                    refused += 1;
                }
            }
        }
        world.abort();
        world.check();
        world.finish(slabs % 2 == 0);
    }
    assert!(unstaged > 3 && refused > 3 && appended > 3, "{unstaged}, {refused}, {appended}");
}

#[test]
fn staging_that_is_dropped_gives_its_memory_back() {
    let mut world = World::new(keyed(LayoutChoice::Rows), 64 << 20);
    let before = world.in_use_bytes();
    world.stage(keyed_rows(&world.shape, 0, 20_000), 8192);
    let Staged { staging, .. } = world.staged.take().expect("staged above");
    assert!(staging.memory_bytes() > 1 << 20 && world.in_use_bytes() >= before + staging.memory_bytes());
    drop(staging);
    assert_eq!(world.in_use_bytes(), before);
    world.finish(true);
}
