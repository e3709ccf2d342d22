//! Random operations on random tables.

use albireo_base::{ColumnId, SqlType, Tid, Value};
use albireo_encoding::Choose;
use albireo_storage::{
    ChunkEncoder, Col, Fixed, MAX_TEXT_BYTES, NewRow, RowUpdate, Sharing, TableError, TextCol,
};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::shape::{Shape, column_name, shapes, value};
use crate::world::{World, refused};

/// One step; the numbers name rows, columns and values.
#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u16>),
    /// With typed handles.
    InsertTyped(Vec<u16>),
    /// A copy of a row with one column changed: often a duplicate.
    InsertLike(u16, u16, u16),
    InsertWrong(Vec<u16>, u16, u8),
    InsertAbandoned(Vec<u16>, u16),
    /// As cells, in any order.
    InsertCells(Vec<u16>, u16),
    InsertWrongCells(Vec<u16>, Vec<(u16, u8)>, u16),
    Update(u16, Vec<(u16, u16)>),
    UpdateTyped(u16, u16, u16),
    /// As cells, perhaps with a wrong value.
    UpdateCells(u16, Vec<(u16, u16)>, Option<u8>, u16),
    UpdateWrong(u16, Vec<(u16, u16)>, u16, u8),
    /// One row takes another's values column by column, but ends with a key of its own.
    UpdateThrough(u16, u16, u16),
    Delete(u16),
    DeleteDead(u16),
    Savepoint,
    RollBackToSavepoint,
    Commit,
    Abort,
    Snapshot,
    SnapshotOf(u16),
    DropSnapshot(u16, bool),
    SnapshotElsewhere(u16),
    DropKept,
    Squeeze(u8),
    Release,
    Check,
    /// Rows are laid down apart: picks, how many, how different, in batches of so many.
    Stage(Vec<u16>, usize, u16, usize),
    /// They are appended, perhaps much later.
    Append,
    /// Some rows die together; some of them leave the indexes.
    KillSome(u16),
    TidySome(usize),
    /// Staged rows begin to arrive; go on for so many steps.
    Arrive,
    ArriveOn(usize),
    /// New values are written beside the table; rows that were changed are taken over, and all put in place.
    BeginRewrite(u16),
    RewriteOn(u16),
    EndRewrite(u16),
    /// Chunks are frozen, but one of so many; the snapshot stays.
    Freeze(bool, u32, Choose, Sharing),
    /// Chunks begin to cool, or are hot again.
    Cool(u16),
    EndCooling(u16),
    /// Rows move out of a frozen chunk, up to so many.
    MoveOut(u16, usize),
    /// Frozen chunks leave memory.
    Evict,
    /// A transaction does these things to rows, whatever comes of it, and is taken back; where it meets rows that are away it
    /// runs on.
    Prepass(Vec<(u16, u16)>, bool),
    /// A snapshot is loaded into another table, with which it goes on.
    Reload(bool),
}

impl Op {
    /// Whether it changes or reads single rows, as transactions do.
    fn is_of_a_transaction(&self) -> bool {
        matches!(
            self,
            Self::Insert(..)
                | Self::InsertTyped(..)
                | Self::InsertLike(..)
                | Self::InsertCells(..)
                | Self::Update(..)
                | Self::UpdateTyped(..)
                | Self::UpdateCells(..)
                | Self::UpdateThrough(..)
                | Self::Delete(..)
        )
    }
}

/// Forms that chunks are frozen in: the best one, packed or compressed texts, or texts shared with other chunks.
fn forms() -> impl Strategy<Value = (Choose, Sharing)> {
    prop_oneof![
        Just((Choose::Best, Sharing::WhereItPays)),
        Just((Choose::Packed, Sharing::WhereItPays)),
        Just((Choose::Compressed, Sharing::WhereItPays)),
        Just((Choose::Dictionary, Sharing::Always)),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let pick = || 0u16..45;
    let picks = || proptest::collection::vec(0u16..45, 1..9);
    let changes = || proptest::collection::vec((0u16..9, 0u16..45), 1..5);
    let row = any::<u16>;
    let op = prop_oneof![
        12 => picks().prop_map(Op::Insert),
        8 => picks().prop_map(Op::InsertTyped),
        4 => (row(), 0u16..9, pick()).prop_map(|(r, c, p)| Op::InsertLike(r, c, p)),
        2 => (picks(), 0u16..9, 0u8..5).prop_map(|(p, c, w)| Op::InsertWrong(p, c, w)),
        2 => (picks(), 0u16..9).prop_map(|(p, c)| Op::InsertAbandoned(p, c)),
        8 => (picks(), row()).prop_map(|(p, o)| Op::InsertCells(p, o)),
        2 => (picks(), proptest::collection::vec((0u16..9, 0u8..4), 1..4), row())
            .prop_map(|(p, w, o)| Op::InsertWrongCells(p, w, o)),
        12 => (row(), changes()).prop_map(|(r, c)| Op::Update(r, c)),
        10 => (row(), changes(), proptest::option::weighted(0.2, 0u8..4), row())
            .prop_map(|(r, c, w, o)| Op::UpdateCells(r, c, w, o)),
        8 => (row(), 0u16..9, pick()).prop_map(|(r, c, p)| Op::UpdateTyped(r, c, p)),
        2 => (row(), changes(), 0u16..9, 0u8..5).prop_map(|(r, c, d, w)| Op::UpdateWrong(r, c, d, w)),
        3 => (row(), row(), pick()).prop_map(|(r, s, p)| Op::UpdateThrough(r, s, p)),
        8 => row().prop_map(Op::Delete),
        1 => row().prop_map(Op::DeleteDead),
        2 => Just(Op::Savepoint),
        2 => Just(Op::RollBackToSavepoint),
        5 => Just(Op::Commit),
        4 => Just(Op::Abort),
        3 => Just(Op::Snapshot),
        3 => row().prop_map(Op::SnapshotOf),
        4 => (row(), any::<bool>()).prop_map(|(p, keep)| Op::DropSnapshot(p, keep)),
        3 => row().prop_map(Op::SnapshotElsewhere),
        1 => Just(Op::DropKept),
        1 => (0u8..3).prop_map(Op::Squeeze),
        2 => Just(Op::Release),
        2 => Just(Op::Check),
        2 => any::<bool>().prop_map(Op::Reload),
        6 => (picks(), 1usize..40, 0u16..30, 1usize..50).prop_map(|(p, n, s, l)| Op::Stage(p, n, s, l)),
        6 => Just(Op::Append),
        2 => row().prop_map(Op::KillSome),
        3 => (1usize..9).prop_map(Op::TidySome),
        4 => Just(Op::Arrive),
        8 => (1usize..5).prop_map(Op::ArriveOn),
        4 => row().prop_map(Op::BeginRewrite),
        2 => row().prop_map(Op::RewriteOn),
        4 => row().prop_map(Op::EndRewrite),
        4 => (any::<bool>(), 1u32..4, forms())
            .prop_map(|(keeps, but, (choose, sharing))| Op::Freeze(keeps, but, choose, sharing)),
        4 => row().prop_map(Op::Cool),
        2 => row().prop_map(Op::EndCooling),
        4 => (row(), prop_oneof![Just(1_usize), Just(3), Just(1000)]).prop_map(|(p, n)| Op::MoveOut(p, n)),
        5 => Just(Op::Evict),
        5 => (proptest::collection::vec((row(), row()), 1..8), any::<bool>()).prop_map(|(p, f)| Op::Prepass(p, f)),
    ];
    proptest::collection::vec(op, 1..120)
}

/// Whether an error is the wanted one.
type Wanted = fn(&TableError) -> bool;

/// A value that `column` must refuse, and the wanted error; `None` if there is no such value for
/// this column.
fn wrong(shape: &Shape, column: usize, kind: u8) -> Option<(Value, Wanted)> {
    let (ty, nullable) = shape.columns[column];
    Some(match (kind, ty) {
        (0, _) if !nullable => (Value::Null, |e| matches!(e, TableError::NotNull { .. })),
        (1, SqlType::Char(n) | SqlType::Varchar(n)) => {
            (Value::Text("é".repeat(n as usize + 1)), |e| matches!(e, TableError::TooLong { .. }))
        }
        (1, SqlType::Text) => {
            (Value::Text("x".repeat(MAX_TEXT_BYTES + 1)), |e| matches!(e, TableError::TooLong { .. }))
        }
        (1, SqlType::Bytea) => {
            (Value::Bytea(vec![1; MAX_TEXT_BYTES + 1]), |e| matches!(e, TableError::TooLong { .. }))
        }
        (2, ty) if ty.is_string() => (Value::from("\0"), |e| matches!(e, TableError::ZeroCharacter { .. })),
        (3, SqlType::Decimal { precision, scale }) => {
            let unscaled = -(10i128.pow(precision.into()));
            let decimal = albireo_base::Decimal { unscaled, scale };
            (Value::Decimal(decimal), |e| matches!(e, TableError::WrongType { .. }))
        }
        (_, SqlType::BigInt) => (Value::Integer(1), |e| matches!(e, TableError::WrongType { .. })),
        (_, SqlType::Bytea) => (Value::from("text"), |e| matches!(e, TableError::WrongType { .. })),
        _ => (Value::BigInt(1), |e| matches!(e, TableError::WrongType { .. })),
    })
}

/// Whether `error` is what was asked for, or memory was short.
fn is_refusal(world: &World, error: &TableError, wanted: Wanted) -> bool {
    wanted(error) || (world.is_squeezed() && matches!(error, TableError::OutOfMemory(_)))
}

impl World {
    fn step(&mut self, op: Op) {
        if let Op::Reload(plain) = op {
            return self.reload(plain);
        }
        let before = self.standing();
        match op.is_of_a_transaction() {
            true => self.transact(|world| world.run(op.clone())),
            false => self.run(op),
        }
        let after = self.standing();
        assert!(before.0 != after.0 || before.1 == after.1, "rows or keys moved, and nothing tells");
    }

    fn run(&mut self, op: Op) {
        let columns = self.shape.columns.len();
        let column = |c: u16| c as usize % columns;
        match op {
            Op::Insert(picks) => self.insert(self.shape.row(&picks)),
            Op::InsertTyped(picks) => self.insert_typed(self.shape.row(&picks)),
            Op::InsertLike(row, c, pick) => {
                if let Some(tid) = self.pick_row(row) {
                    let mut row = (*self.current[&tid]).clone();
                    row[column(c)] = self.shape.value(column(c), pick);
                    self.insert(row);
                }
            }
            Op::InsertWrong(picks, c, kind) => self.insert_wrong(&picks, column(c), kind),
            Op::InsertAbandoned(picks, set) => self.insert_abandoned(&picks, column(set)),
            Op::InsertCells(picks, order) => self.insert_cells(self.shape.row(&picks), order),
            Op::InsertWrongCells(picks, wrong, order) => {
                let wrong: Vec<(usize, u8)> = wrong.into_iter().map(|(c, kind)| (column(c), kind)).collect();
                self.insert_wrong_cells(self.shape.row(&picks), &wrong, order);
            }
            Op::UpdateCells(row, changes, wrong, pick) => self.update_cells(row, &changes, wrong, pick),
            Op::Update(row, changes) => self.update(row, &changes),
            Op::UpdateTyped(row, c, pick) => self.update_typed(row, column(c), pick),
            Op::UpdateWrong(row, changes, c, kind) => self.update_wrong(row, &changes, column(c), kind),
            Op::UpdateThrough(row, other, pick) => self.update_through(row, other, pick),
            Op::Delete(row) => self.delete(row),
            Op::DeleteDead(tid) => {
                let tid = Tid(u64::from(tid) % 64);
                // Nobody knows the slot of a row that was moved just now (I-2 of `rows::cold`).
                if !self.current.contains_key(&tid) && !self.has_moved_to(tid) {
                    let error = self.table.delete(&mut self.undo, tid).expect_err("nothing lives there");
                    assert!(matches!(error, TableError::NoRow { .. }));
                }
            }
            Op::Savepoint => self.set_savepoint(),
            Op::RollBackToSavepoint => self.roll_back_to_savepoint(),
            Op::Commit => self.commit(),
            Op::Abort => self.abort(),
            Op::Snapshot => self.take_snapshot(),
            Op::SnapshotOf(columns) => self.take_snapshot_of(columns),
            Op::DropSnapshot(pick, keep) => self.drop_snapshot(pick, keep),
            Op::SnapshotElsewhere(pick) => self.snapshot_elsewhere(pick),
            Op::DropKept => self.drop_kept(),
            Op::Squeeze(spare) => self.squeeze(spare.into()),
            Op::Release => self.release(),
            Op::Stage(picks, count, step, length) => {
                let few = if length % 3 == 0 { 20 } else { 0 };
                self.stage_few(self.some_rows(&picks, count, step), length, few);
            }
            Op::Append => self.append_staged(),
            Op::KillSome(pick) => self.kill_some(pick),
            Op::TidySome(count) => self.tidy_some(count),
            Op::Arrive => self.arrive(),
            Op::ArriveOn(steps) => self.arrive_on(steps),
            Op::BeginRewrite(pick) => self.begin_rewrite(pick),
            Op::RewriteOn(pick) => self.rewrite_on(pick, false),
            Op::EndRewrite(pick) => self.rewrite_on(pick, true),
            Op::Freeze(keeps, but, choose, sharing) => {
                self.freeze_sharing(keeps, but, ChunkEncoder::new(choose).with_sharing(sharing));
            }
            Op::Cool(pick) => self.cool(pick),
            Op::EndCooling(pick) => self.end_cooling(pick),
            Op::MoveOut(pick, most) => self.move_out(pick, most),
            Op::Evict => self.evict(),
            Op::Prepass(picks, fetches) => self.prepass(&picks, fetches),
            Op::Reload(plain) => self.reload(plain),
            Op::Check => self.check(),
        }
    }

    /// Inserts a row of right values.
    pub fn insert(&mut self, row: Vec<Value>) {
        let outcome = self.table.insert_values(&mut self.undo, &row);
        self.expect(row, None, outcome);
    }

    /// Inserts a row as compiled code does, by handles where there are some for the type.
    fn insert_typed(&mut self, row: Vec<Value>) {
        let setters: Vec<Setter> =
            row.iter().enumerate().map(|(column, value)| self.setter(column, value.clone())).collect();
        let outcome = self.table.insert(&mut self.undo).map_err(refused).and_then(|mut new| {
            setters.into_iter().try_for_each(|set| set(&mut new))?;
            new.finish()
        });
        self.expect(row, None, outcome);
    }

    fn setter(&self, column: usize, value: Value) -> Setter {
        let name = column_name(column);
        fn fixed<T: Fixed>(column: Col<T>, value: Option<T>) -> Setter {
            Box::new(move |row| {
                row.set_opt(column, value);
                Ok(())
            })
        }
        let table = &self.table;
        match value {
            Value::SmallInt(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::Integer(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::BigInt(v) | Value::Timestamp(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::Double(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::Bool(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::Uuid(v) => fixed(table.column(&name).expect("fits"), Some(v)),
            Value::Null if self.shape.columns[column].0 == SqlType::Integer => {
                fixed::<i32>(table.column(&name).expect("fits"), None)
            }
            Value::Text(text) => {
                let handle = table.text_column(&name).expect("a text column");
                Box::new(move |row| row.set_text(handle, &text).map(|_| ()))
            }
            other => Box::new(move |row| row.set_value(ColumnId(column as u16), &other)),
        }
    }

    fn insert_wrong(&mut self, picks: &[u16], column: usize, kind: u8) {
        let Some((value, wanted)) = wrong(&self.shape, column, kind) else { return };
        let mut row = self.shape.row(picks);
        row[column] = value;
        let error = self.table.insert_values(&mut self.undo, &row).expect_err("a wrong value");
        assert!(is_refusal(self, &error, wanted), "{error} for {row:?}");
    }

    /// Sets the first `set` columns of a row that then never comes to be, or lacks a value.
    fn insert_abandoned(&mut self, picks: &[u16], set: usize) {
        let row = self.shape.row(picks);
        let outcome = self.table.insert(&mut self.undo).map_err(refused).and_then(|mut new| {
            for (column, value) in row.iter().enumerate().take(set) {
                new.set_value(ColumnId(column as u16), value)?;
            }
            if set.is_multiple_of(2) { new.finish().map(Some) } else { Ok(None) }
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(tid)) => {
                let filled = row.into_iter().enumerate().map(|(i, v)| if i < set { v } else { Value::Null });
                self.expect(filled.collect(), None, Ok(tid));
            }
            Err(TableError::NotNull { column, .. }) => {
                assert!(column.index() >= set && !self.shape.columns[column.index()].1);
            }
            Err(error) => {
                let filled = row.into_iter().enumerate().map(|(i, v)| if i < set { v } else { Value::Null });
                self.expect(filled.collect(), None, Err(error));
            }
        }
    }

    fn update(&mut self, row: u16, changes: &[(u16, u16)]) {
        let Some(tid) = self.pick_row(row) else { return };
        let mut row = (*self.current[&tid]).clone();
        let changes: Vec<(ColumnId, Value)> = changes
            .iter()
            .map(|&(c, pick)| {
                let column = c as usize % row.len();
                (ColumnId(column as u16), self.shape.value(column, pick))
            })
            .collect();
        for (column, value) in &changes {
            row[column.index()] = value.clone();
        }
        let outcome = self.table.update_values(&mut self.undo, tid, &changes).map(|()| tid);
        self.expect(row, Some(tid), outcome);
    }

    fn update_typed(&mut self, row: u16, column: usize, pick: u16) {
        let Some(tid) = self.pick_row(row) else { return };
        let (ty, nullable) = self.shape.columns[column];
        let mut row = (*self.current[&tid]).clone();
        let name = column_name(column);
        row[column] = if nullable && pick.is_multiple_of(5) && ty == SqlType::Integer {
            Value::Null
        } else {
            value(ty, pick)
        };
        let new = row[column].clone();
        let outcome = if ty.is_string() {
            let handle = self.table.text_column(&name).expect("a text column");
            let Value::Text(text) = &new else { panic!("a text") };
            self.table.update(&mut self.undo, tid, |row| set_text(row, handle, text))
        } else if ty == SqlType::Integer {
            let handle = self.table.column::<i32>(&name).expect("an integer column");
            self.table.update(&mut self.undo, tid, |row| set_integer(row, handle, &new))
        } else {
            self.table.update(&mut self.undo, tid, |row| row.set_value(ColumnId(column as u16), &new))
        };
        self.expect(row, Some(tid), outcome.map(|()| tid));
    }

    fn update_wrong(&mut self, row: u16, changes: &[(u16, u16)], column: usize, kind: u8) {
        let Some(tid) = self.pick_row(row) else { return };
        let Some((value, wanted)) = wrong(&self.shape, column, kind) else { return };
        let columns = self.shape.columns.len();
        let mut changes: Vec<(ColumnId, Value)> = changes
            .iter()
            .map(|&(c, pick)| {
                (ColumnId((c as usize % columns) as u16), self.shape.value(c as usize % columns, pick))
            })
            .collect();
        changes.push((ColumnId(column as u16), value));
        let error = self.table.update_values(&mut self.undo, tid, &changes).expect_err("a wrong value");
        assert!(is_refusal(self, &error, wanted), "{error}");
    }

    fn update_through(&mut self, row: u16, other: u16, pick: u16) {
        let (Some(tid), Some(other)) = (self.pick_row(row), self.pick_row(other)) else { return };
        let mut end = (*self.current[&other]).clone();
        let mut changes: Vec<(ColumnId, Value)> =
            end.iter().enumerate().map(|(c, value)| (ColumnId(c as u16), value.clone())).collect();
        let last = pick as usize % end.len();
        end[last] = self.shape.value(last, pick);
        changes.push((ColumnId(last as u16), end[last].clone()));
        let outcome = self.table.update_values(&mut self.undo, tid, &changes).map(|()| tid);
        self.expect(end, Some(tid), outcome);
    }

    /// Deletes a row.
    pub fn delete(&mut self, row: u16) {
        let Some(tid) = self.pick_row(row) else { return };
        match self.table.delete(&mut self.undo, tid) {
            Ok(()) => {
                self.current.remove(&tid);
            }
            Err(TableError::OutOfMemory(_)) => assert!(self.is_squeezed()),
            Err(other) => panic!("unexpected {other}"),
        }
    }
}

/// Sets one value of a new row.
type Setter = Box<dyn FnOnce(&mut NewRow<'_>) -> Result<(), TableError>>;

fn set_text(row: &mut RowUpdate<'_>, column: TextCol, text: &str) -> Result<(), TableError> {
    row.set_text(column, "x")?;
    row.set_text(column, text)?;
    assert_eq!(row.text(column), text);
    Ok(())
}

fn set_integer(row: &mut RowUpdate<'_>, column: Col<i32>, value: &Value) -> Result<(), TableError> {
    match value {
        Value::Integer(v) => {
            row.set(column, *v)?;
            row.modify(column, |v| v.wrapping_add(1))?;
            let back = row.modify(column, |v| v.wrapping_sub(1))?;
            assert_eq!(back, *v);
            Ok(())
        }
        _ => row.set_null(column),
    }
}

random_tests! {
    #![cases(48)]

    #[test]
    fn random_table_under_random_operations_equals_the_model(
        shape in shapes(),
        steps in ops(),
        table_first in any::<bool>(),
    ) {
        let mut world = World::new(shape, 128 << 20);
        for op in steps {
            world.step(op);
        }
        world.check();
        world.abort();
        world.check();
        world.finish(table_first);
    }
}
