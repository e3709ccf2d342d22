//! Rows read, inserted and updated as cells ([`Table::cell_shape`]), and read by the formula that is
//! given to generated code, against the model.

use std::borrow::Cow;

use albireo_base::{ColumnId, Decimal, SqlType, Tid, Value};
use albireo_storage::{
    Cell, CellShape, Cells, ColumnAddress, ColumnSet, ENTRY_BLOCK_OFFSET, ENTRY_BYTES, Filled,
    INLINE_TEXT_APART, IndexKind, LayoutChoice, Physical, RowAddress, Table, TableError, Thawed,
    VALIDITY_ENTRY, VIEW_TEXT_BYTES,
};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::shape::{Shape, TYPES, value};
use crate::world::{Rows, World};

/// Cells and the texts that they point at.
pub struct OwnedCells {
    cells: Vec<Cell>,
    #[allow(dead_code, reason = "the cells hold its addresses")]
    texts: Vec<Vec<u8>>,
}

impl OwnedCells {
    /// The cells of values of columns of `types`; `noise` goes wherever it must not matter.
    pub fn new<'v>(values: impl Iterator<Item = (SqlType, &'v Value)>, noise: u64) -> Self {
        let mut owned = Self { cells: Vec::new(), texts: Vec::new() };
        for (ty, value) in values {
            let cell = owned.cell(ty, value, noise);
            owned.cells.push(cell);
        }
        owned
    }

    fn cell(&mut self, ty: SqlType, value: &Value, noise: u64) -> Cell {
        let one = |lo: u64| Cell { lo, hi: noise, tag: noise << 8 | 1 };
        let number = |v: i64| one(v as u64);
        match value {
            Value::Null => Cell { lo: noise, hi: noise, tag: noise << 8 },
            Value::Bool(v) => one(u64::from(*v)),
            Value::SmallInt(v) => number((*v).into()),
            Value::Integer(v) | Value::Date(v) => number((*v).into()),
            Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => number(*v),
            Value::Real(v) => one(v.to_bits().into()),
            Value::Double(v) => one(v.to_bits()),
            Value::Decimal(v) => Cell { tag: u64::from(v.scale) << 8 | 1, ..Cell::of_unscaled(v.unscaled) },
            Value::Uuid(v) => Cell::of_unscaled(i128::from_le_bytes(*v)),
            Value::Text(text) => {
                // CHAR does not store the blanks behind.
                let blanks = if matches!(ty, SqlType::Char(_)) { noise % 4 } else { 0 };
                self.bytes([text.as_bytes(), &b"   "[..blanks as usize]].concat())
            }
            Value::Bytea(bytes) => self.bytes(bytes.clone()),
        }
    }

    fn bytes(&mut self, bytes: Vec<u8>) -> Cell {
        let cell = Cell::of_bytes(&bytes);
        // The bytes do not move with their `Vec`.
        self.texts.push(bytes);
        cell
    }

    fn get(&self) -> Cells<'_> {
        // SAFETY: S-1: they point at `texts`, made from `str` for texts; S-2: these are no table's.
        unsafe { Cells::new(&self.cells) }
    }
}

/// The value that a cell of a column of type `ty` is.
///
/// # Safety
/// A text may be read at its address.
unsafe fn value_of(ty: SqlType, cell: Cell) -> Value {
    if cell.is_null() {
        assert_eq!(cell, Cell::NULL);
        return Value::Null;
    }
    assert_eq!(cell.tag, 1);
    let number = cell.lo as i64;
    let two = ty.is_string() || matches!(ty, SqlType::Bytea | SqlType::Decimal { .. } | SqlType::Uuid);
    assert!(two || cell.hi == 0);
    // SAFETY: the caller's.
    let bytes = || unsafe {
        let address = std::ptr::with_exposed_provenance::<u8>(cell.lo as usize);
        std::slice::from_raw_parts(address, cell.hi as usize).to_vec()
    };
    match ty {
        SqlType::Bool => Value::Bool([false, true][cell.lo as usize]),
        SqlType::SmallInt => Value::SmallInt(number.try_into().expect("the sign is extended")),
        SqlType::Integer => Value::Integer(number.try_into().expect("the sign is extended")),
        SqlType::Date => Value::Date(number.try_into().expect("the sign is extended")),
        SqlType::BigInt => Value::BigInt(number),
        SqlType::Time => Value::Time(number),
        SqlType::Timestamp => Value::Timestamp(number),
        SqlType::TimestampTz => Value::TimestampTz(number),
        SqlType::Real => Value::Real(f32::from_bits(cell.lo.try_into().expect("zeroes above"))),
        SqlType::Double => Value::Double(f64::from_bits(cell.lo)),
        SqlType::Decimal { scale, .. } => Value::Decimal(Decimal { unscaled: cell.unscaled(), scale }),
        SqlType::Uuid => Value::Uuid(cell.unscaled().to_le_bytes()),
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
            Value::Text(String::from_utf8(bytes()).expect("texts are UTF-8"))
        }
        SqlType::Bytea => Value::Bytea(bytes()),
    }
}

/// The address of the block of an entry, by the formula.
fn block(row: RowAddress, entry: u32) -> *const u8 {
    // SAFETY: the row's chunk has the entry.
    unsafe { row.entries.add(entry as usize * ENTRY_BYTES + ENTRY_BLOCK_OFFSET).cast::<*const u8>().read() }
}

/// Whether a row's bit is set in the bitmap of an entry, by the formula.
fn bit(row: RowAddress, entry: u32) -> bool {
    // SAFETY: a bitmap has a bit for each slot.
    unsafe { block(row, entry).add(row.slot as usize >> 3).read() >> (row.slot & 7) & 1 == 1 }
}

/// The address of a value, by the formula.
fn place(row: RowAddress, c: ColumnAddress) -> *const u8 {
    let offset = (row.slot & u64::from(c.mask)) * u64::from(c.stride) + u64::from(c.offset);
    // SAFETY: the formula gives the address of the value.
    unsafe { block(row, c.entry + (row.slot >> c.shift) as u32).add(offset as usize) }
}

/// Writes a value as generated code does, zeroes for NULL.
fn write_by_address(table: &Table, row: RowAddress, column: ColumnId, value: &Value) {
    let c = table.column_address(column);
    let bytes = match value {
        Value::Null => [0; 8],
        Value::Bool(v) => u64::from(*v).to_le_bytes(),
        Value::SmallInt(v) => i64::from(*v).to_le_bytes(),
        Value::Integer(v) | Value::Date(v) => i64::from(*v).to_le_bytes(),
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => v.to_le_bytes(),
        Value::Real(v) => u64::from(v.to_bits()).to_le_bytes(),
        Value::Double(v) => v.to_bits().to_le_bytes(),
        Value::Decimal(v) => (v.unscaled as i64).to_le_bytes(),
        Value::Uuid(_) | Value::Text(_) | Value::Bytea(_) => panic!("{value:?} is not written directly"),
    };
    // SAFETY: the value is so wide, at most 8 bytes; the world is the table's only user.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place(row, c).cast_mut(), c.width as usize) };
}

/// A value as generated code reads it.
fn read_by_address(
    table: &Table,
    tid: Tid,
    column: ColumnId,
    thawed: &mut Thawed,
    texts: &mut Vec<Box<[u8]>>,
) -> Cell {
    let (c, r) = (table.column_address(column), table.readable_row(tid, ColumnSet::ALL, thawed));
    if c.null_entry.is_some_and(|entry| !bit(r, entry)) {
        return Cell::NULL;
    }
    let at = place(r, c);
    macro_rules! load {
        ($ty:ty) => {{
            assert_eq!(c.width as usize, size_of::<$ty>());
            // SAFETY: so wide is the value.
            unsafe { at.cast::<$ty>().read_unaligned() }
        }};
    }
    let text = |from: usize, length: usize| {
        // SAFETY: the addresses stay in the value.
        Cell::of_bytes(unsafe { std::slice::from_raw_parts(at.add(from), length) })
    };
    let text_apart = |texts: &mut Vec<Box<[u8]>>| match table.text_bytes_at(tid, column) {
        Cow::Borrowed(text) => Cell::of_bytes(text),
        Cow::Owned(text) => Cell::of_bytes(texts.push_mut(text.into())),
    };
    match c.physical {
        Physical::Bool => Cell::of(load!(u8).into()),
        Physical::I16 => Cell::of(i64::from(load!(i16)) as u64),
        Physical::I32 => Cell::of(i64::from(load!(i32)) as u64),
        Physical::I64 => match table.spec().columns[column.index()].ty {
            SqlType::Decimal { .. } => Cell::of_unscaled(load!(i64).into()),
            _ => Cell::of(load!(u64)),
        },
        Physical::I128 | Physical::Uuid => Cell::of_unscaled(load!(i128)),
        Physical::F32 => Cell::of(load!(u32).into()),
        Physical::F64 => Cell::of(load!(u64)),
        // SAFETY: as above.
        Physical::Inline(capacity) => match unsafe { at.read() } {
            INLINE_TEXT_APART => text_apart(texts),
            length => {
                assert!(length <= capacity && c.width == u32::from(capacity) + 1);
                text(1, length.into())
            }
        },
        // SAFETY: as above.
        Physical::View => match unsafe { at.cast::<u32>().read_unaligned() } as usize {
            length if length <= VIEW_TEXT_BYTES => text(4, length),
            _ => text_apart(texts),
        },
    }
}

/// `table` holds exactly `rows`, read as cells and by address.
pub fn cells_equal(table: &Table, shape: &Shape, rows: &Rows) {
    let ids: Vec<ColumnId> = (0..shape.columns.len() as u16).rev().map(ColumnId).collect();
    let backwards = table.cell_shape(&ids);
    let narrow = table.cell_shape(&ids[..1]);
    assert!(backwards.columns().eq(ids.iter().copied()));
    let mut out = vec![Cell::of(7); backwards.width()];
    let mut one = [Cell::of(7)];
    for (&tid, row) in rows {
        let mut texts = Vec::new();
        table.read_cells(tid, &backwards, &mut out, &mut texts);
        table.read_cells(tid, &narrow, &mut one, &mut texts);
        for (id, &cell) in ids.iter().zip(&out) {
            let ty = shape.columns[id.index()].0;
            let mut thawed = Thawed::default();
            let loaded = read_by_address(table, tid, *id, &mut thawed, &mut texts);
            // SAFETY: the cells were read just now, and their texts are in the table or in `texts`.
            let (read, loaded) = unsafe { (value_of(ty, cell), value_of(ty, loaded)) };
            if *id == ids[0] {
                // SAFETY: as above.
                assert_eq!(unsafe { value_of(ty, one[0]) }, read);
            }
            assert_eq!(read, row[id.index()], "row {} column {id}", tid.0);
            assert_eq!(loaded, read, "row {} column {id}", tid.0);
        }
    }
    for tid in (0..rows.last_key_value().map_or(0, |(tid, _)| tid.0)).map(Tid) {
        let mut thawed = Thawed::default();
        let is_live = bit(table.readable_row(tid, ColumnSet::ALL, &mut thawed), VALIDITY_ENTRY);
        assert!(is_live == table.is_live(tid) && is_live >= rows.contains_key(&tid));
    }
}

/// The columns `0..count` in an order that `pick` names.
fn order(count: usize, pick: u16) -> Vec<ColumnId> {
    let mut ids: Vec<ColumnId> = (0..count as u16).map(ColumnId).collect();
    ids.rotate_left(pick as usize % count.max(1));
    if pick.is_multiple_of(2) {
        ids.reverse();
    }
    ids
}

fn noise(pick: u16) -> u64 {
    u64::from(pick).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl World {
    fn cells(&self, shape: &CellShape, row: &[Value], pick: u16) -> OwnedCells {
        let values = shape.columns().map(|id| (self.shape.columns[id.index()].0, &row[id.index()]));
        OwnedCells::new(values, noise(pick))
    }

    fn try_insert_cells(&mut self, row: &[Value], pick: u16) -> Result<Tid, TableError> {
        let shape = self.table.cell_shape(&order(row.len(), pick));
        let cells = self.cells(&shape, row, pick);
        self.table.insert_cells(&mut self.undo, &shape, cells.get())
    }

    /// Inserts a row of right values as cells, in an order that `pick` names, or by writing them where they
    /// lie; sometimes after a row that is given up.
    pub fn insert_cells(&mut self, row: Vec<Value>, pick: u16) {
        if pick.is_multiple_of(5) {
            self.give_up_a_row(&row);
        }
        let outcome = match pick.is_multiple_of(3) {
            true => self.insert_filled(&row, pick),
            false => self.try_insert_cells(&row, pick),
        };
        self.expect(row, None, outcome);
    }

    /// The columns that are written directly, but for some that `pick` names.
    fn direct(&self, pick: u16) -> Vec<ColumnId> {
        let all = (0..self.shape.columns.len().min(64) as u16).map(ColumnId);
        let direct = all.filter(|id| self.table.is_direct(*id));
        direct.filter(|id| pick.is_multiple_of(2) || noise(pick) >> (id.0 % 60) & 1 == 0).collect()
    }

    fn insert_filled(&mut self, row: &[Value], pick: u16) -> Result<Tid, TableError> {
        let direct = self.direct(pick);
        let shape = self.table.fill_shape(&direct);
        let others: Vec<ColumnId> =
            (0..row.len() as u16).map(ColumnId).filter(|id| !direct.contains(id)).collect();
        let cells = OwnedCells::new(
            others.iter().map(|id| (self.shape.columns[id.index()].0, &row[id.index()])),
            noise(pick),
        );
        let (tid, at) = self.table.vacant_row()?;
        let mut nulls = 0;
        for id in direct {
            write_by_address(&self.table, at, id, &row[id.index()]);
            nulls |= u64::from(row[id.index()] == Value::Null) << id.0;
        }
        // SAFETY: F-1 and F-2: it was vacant just now, and all direct columns were written.
        let filled = unsafe { Filled::new(tid, nulls, cells.get()) };
        self.table.enter_filled(&mut self.undo, &shape, filled)
    }

    /// Writes values where the next row will be, and leaves it at that.
    fn give_up_a_row(&mut self, row: &[Value]) {
        let Ok((_, at)) = self.table.vacant_row() else { return };
        for id in self.direct(0) {
            write_by_address(&self.table, at, id, &row[id.index()]);
        }
    }

    /// Updates a row by writing its values where they lie, if they can be; those of NULL bits too.
    fn overwrite(&mut self, tid: Tid, shape: &CellShape, row: &[Value]) -> Option<Result<(), TableError>> {
        let ids: Vec<ColumnId> = shape.columns().collect();
        let nulls = ids.iter().enumerate().map(|(n, id)| u64::from(row[id.index()] == Value::Null) << n);
        let ready = self.table.overwrite(&mut self.undo, tid, shape, nulls.sum());
        let at = match ready.transpose()? {
            Ok(at) => at,
            Err(error) => return Some(Err(error)),
        };
        for id in ids {
            write_by_address(&self.table, at, id, &row[id.index()]);
        }
        Some(Ok(()))
    }

    /// Inserts a row with wrong values, if cells can have such: it is refused as values are.
    pub fn insert_wrong_cells(&mut self, mut row: Vec<Value>, wrong: &[(usize, u8)], pick: u16) {
        let mut is_wrong = false;
        for &(column, kind) in wrong {
            if let Some(value) = self.wrong_value(column, kind) {
                (row[column], is_wrong) = (value, true);
            }
        }
        if !is_wrong {
            return;
        }
        let changes = self.undo.len();
        let expected = self.table.insert_values(&mut self.undo, &row).expect_err("a wrong value");
        // Noise without blanks, which would count in the error.
        let error = self.try_insert_cells(&row, pick / 4 * 4).expect_err("a wrong value");
        let no_memory = |error| matches!(error, TableError::OutOfMemory(_));
        assert!(error == expected || self.is_squeezed() && (no_memory(error) || no_memory(expected)));
        assert_eq!(self.undo.len(), changes);
    }

    /// A value of the column's type that it does not take.
    fn wrong_value(&self, column: usize, kind: u8) -> Option<Value> {
        match (kind, self.shape.columns[column]) {
            (0, (_, false)) => Some(Value::Null),
            (1, (SqlType::Char(n) | SqlType::Varchar(n), _)) => Some(Value::Text("é".repeat(n as usize + 1))),
            (1, (SqlType::Bytea, _)) => Some(Value::Bytea(vec![1; albireo_storage::MAX_TEXT_BYTES + 1])),
            (1..3, (ty, _)) if ty.is_string() => Some(Value::from("\0")),
            (_, (SqlType::Decimal { precision, scale }, _)) => {
                // Too many digits, or in the lower word right ones.
                let unscaled = match (kind, precision) {
                    (2, 0..=18) => 1 << 64 | 1,
                    _ => -(10i128.pow(precision.into())),
                };
                Some(Value::Decimal(Decimal { unscaled, scale }))
            }
            _ => None,
        }
    }

    /// Updates columns of a row, each named by a number and given a value by another; the last gets a
    /// wrong value, if there is one of the kind `wrong`.
    pub fn update_cells(&mut self, row: u16, changes: &[(u16, u16)], wrong: Option<u8>, pick: u16) {
        let Some(tid) = self.pick_row(row) else { return };
        let mut row = (*self.current[&tid]).clone();
        let mut ids = Vec::new();
        for &(column, pick) in changes {
            let column = column as usize % row.len();
            row[column] = self.shape.value(column, pick);
            if !ids.contains(&ColumnId(column as u16)) {
                ids.push(ColumnId(column as u16));
            }
        }
        let last = ids[ids.len() - 1];
        let wrong = wrong.and_then(|kind| self.wrong_value(last.index(), kind));
        let is_wrong = wrong.is_some();
        if let Some(value) = wrong {
            row[last.index()] = value;
        }
        let shape = self.table.cell_shape(&ids);
        // Wrong texts get no blanks, which would count in the error.
        let cells = self.cells(&shape, &row, if is_wrong { pick / 4 * 4 } else { pick });
        let length = self.undo.len();
        let overwritten = match is_wrong || pick.is_multiple_of(3) {
            true => None,
            false => self.overwrite(tid, &shape, &row),
        };
        let outcome = match overwritten {
            Some(outcome) => outcome,
            None => self.table.update_cells(&mut self.undo, tid, &shape, cells.get()),
        };
        if outcome.is_err() {
            assert_eq!(self.undo.len(), length, "a failure leaves no trace");
        }
        if !is_wrong {
            return self.expect(row, Some(tid), outcome.map(|()| tid));
        }
        let values: Vec<(ColumnId, Value)> = ids.iter().map(|id| (*id, row[id.index()].clone())).collect();
        let expected = self.table.update_values(&mut self.undo, tid, &values).expect_err("a wrong value");
        let error = outcome.expect_err("a wrong value");
        let no_memory = |error| matches!(error, TableError::OutOfMemory(_));
        assert!(error == expected || self.is_squeezed() && (no_memory(error) || no_memory(expected)));
    }
}

/// Every type, with and without NULL, twice: more columns than a word has bits.
fn all_types(layout: LayoutChoice, forbidden: Option<u16>) -> Shape {
    let columns: Vec<(SqlType, bool)> =
        [false, true, true, false].iter().flat_map(|&null| TYPES.map(|ty| (ty, null))).collect();
    // Column 0 is an INTEGER, column 24 a VARCHAR that may be NULL, column 66 a VARCHAR.
    let indexes = match forbidden {
        Some(_) => Vec::new(),
        None => vec![
            (vec![ColumnId(0)], true, IndexKind::Ordered),
            (vec![ColumnId(24), ColumnId(1)], true, IndexKind::Hash),
            (vec![ColumnId(66)], false, IndexKind::Ordered),
        ],
    };
    Shape { columns, layout, indexes, forbidden }
}

fn layouts() -> impl Strategy<Value = LayoutChoice> {
    let group = |columns: std::ops::Range<u16>| columns.map(ColumnId).collect::<Vec<_>>();
    let groups = LayoutChoice::Groups(vec![group(0..12), group(20..50), group(70..72)]);
    prop_oneof![Just(LayoutChoice::Columns), Just(LayoutChoice::Rows), Just(groups)]
}

random_tests! {
    #![cases(96)]

    #[test]
    fn rows_as_cells_equal_the_model(
        layout in layouts(),
        forbidden in proptest::option::weighted(0.3, 0u16..40),
        steps in proptest::collection::vec(
            (0u8..18, any::<u16>(), proptest::collection::vec((0u16..84, 0u16..45), 1..7), 0u8..8),
            1..60,
        ),
    ) {
        let mut world = World::new(all_types(layout, forbidden), 128 << 20);
        for (step, row, changes, kind) in steps {
            let picks: Vec<u16> = changes.iter().map(|(_, pick)| *pick).collect();
            // Columns of one half of the first types, none of which is in an index.
            let fixed: Vec<(u16, u16)> = changes.iter().map(|(c, pick)| (8 + c % 2 * 2 + c % 3 * 21, *pick)).collect();
            match step {
                0..5 => world.insert_cells(world.shape.row(&picks), row),
                5 => {
                    let wrong: Vec<_> = changes.iter().map(|(c, _)| (usize::from(*c), kind % 4)).collect();
                    world.insert_wrong_cells(world.shape.row(&picks), &wrong, row);
                }
                6..9 => world.update_cells(row, &changes, None, row),
                9..11 => world.update_cells(row, &fixed, None, row),
                11 => world.update_cells(row, &changes, Some(kind % 4), row),
                12 => world.update_cells(row, &fixed, Some(kind % 4), row),
                13 => world.delete(row),
                14 => world.commit(),
                15 => world.abort(),
                16 if row % 2 == 0 => world.take_snapshot(),
                16 => world.take_snapshot_of(row),
                _ => world.drop_snapshot(row, false),
            }
        }
        world.check();
        world.abort();
        world.check();
        world.finish(true);
    }
}

#[test]
fn rows_in_later_blocks_and_chunks_are_found_by_address() {
    let groups = LayoutChoice::Groups(vec![vec![ColumnId(2), ColumnId(0), ColumnId(4)], vec![ColumnId(5)]]);
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows, groups] {
        let columns = vec![
            (SqlType::Integer, false),
            (SqlType::Varchar(50), true),
            (SqlType::Decimal { precision: 38, scale: 4 }, true),
            (SqlType::Text, false),
            (SqlType::SmallInt, true),
            (SqlType::Bool, false),
        ];
        let mut world = World::new(Shape { columns, layout, indexes: vec![], forbidden: None }, 256 << 20);
        for pick in 0..17_000u16 {
            world.insert_cells(world.shape.row(&[pick % 45, pick % 41, pick % 37]), pick);
        }
        assert!(world.current.keys().any(|tid| tid.chunk() == 1));
        for pick in 0..2_000u16 {
            world.update_cells(pick * 8, &[(2, pick % 43), (4, pick % 31)], None, pick);
        }
        cells_equal(&world.table, &world.shape, &world.current);
        world.abort();
        assert_eq!(world.table.row_count(), 0);
        world.finish(false);
    }
}

#[test]
fn snapshot_keeps_values_and_nulls_that_cells_overwrite() {
    let groups = LayoutChoice::Groups(vec![vec![ColumnId(31), ColumnId(8), ColumnId(29)]]);
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows, groups] {
        let mut world = World::new(all_types(layout, None), 64 << 20);
        for pick in 1..7 {
            world.insert_cells(world.shape.row(&[pick]), 0);
        }
        // Column 8 is never NULL; pick 7 names NULL for the others.
        for (row, changes) in [[(8, 2), (31, 7)], [(8, 3), (29, 7)], [(31, 7), (29, 2)]].iter().enumerate() {
            world.take_snapshot();
            world.update_cells(row as u16, changes, None, 0);
            world.check();
            world.update_cells(row as u16, &[(29, 1), (31, 4), (8, 1)], None, 0);
            world.check();
        }
        world.abort();
        world.finish(true);
    }
}

#[test]
fn texts_of_another_table_are_written_where_they_lie() {
    let mut source = World::new(all_types(LayoutChoice::Rows, None), 64 << 20);
    let mut target = World::new(all_types(LayoutChoice::Columns, None), 64 << 20);
    for pick in 0..40 {
        source.insert_cells(source.shape.row(&[pick]), pick);
    }
    let ids = order(source.shape.columns.len(), 4);
    let (from, to) = (source.table.cell_shape(&ids), target.table.cell_shape(&ids));
    let mut cells = vec![Cell::NULL; ids.len()];
    for (&tid, row) in &source.current {
        source.table.read_cells(tid, &from, &mut cells, &mut Vec::new());
        // SAFETY: the texts are in `source`, which does not change.
        let outcome = target.table.insert_cells(&mut target.undo, &to, unsafe { Cells::new(&cells) });
        target.expect((**row).clone(), None, outcome);
    }
    assert_eq!(target.current.len(), source.current.len());
    target.check();
}

fn one_row() -> (World, Tid) {
    let mut world = World::new(all_types(LayoutChoice::Columns, None), 64 << 20);
    world.insert_cells(world.shape.row(&[1]), 0);
    let tid = *world.current.keys().next().unwrap();
    (world, tid)
}

#[test]
fn update_of_no_column_or_no_row_by_cells_changes_nothing() {
    let (mut world, tid) = one_row();
    let none = world.table.cell_shape(&[]);
    let length = world.undo.len();
    let update = |world: &mut World, tid, shape: &CellShape, cells: &OwnedCells| {
        world.table.update_cells(&mut world.undo, tid, shape, cells.get())
    };
    let nothing = OwnedCells::new(std::iter::empty(), 0);
    assert_eq!(update(&mut world, tid, &none, &nothing), Ok(()));
    let bool_column = world.table.cell_shape(&[ColumnId(8)]);
    let value = value(SqlType::Bool, 1);
    let cells = OwnedCells::new([(SqlType::Bool, &value)].into_iter(), 0);
    let gone = update(&mut world, Tid(70_000), &bool_column, &cells);
    assert!(matches!(gone, Err(TableError::NoRow { tid: Tid(70_000), .. })));
    assert_eq!(world.undo.len(), length);
    world.check();
}

#[test]
#[should_panic(expected = "belongs to one table")]
fn cell_shape_of_another_table_is_refused() {
    let (world, tid) = one_row();
    let (other, _) = one_row();
    let foreign = other.table.cell_shape(&[ColumnId(8)]);
    world.table.read_cells(tid, &foreign, &mut [Cell::NULL], &mut Vec::new());
}

#[test]
#[should_panic(expected = "belongs to one table")]
fn row_of_cells_without_all_columns_is_not_inserted() {
    let (mut world, _) = one_row();
    let part = world.table.cell_shape(&[ColumnId(8)]);
    let cells = [Cell::of(1)];
    // SAFETY: no text.
    _ = world.table.insert_cells(&mut world.undo, &part, unsafe { Cells::new(&cells) });
}

#[test]
#[should_panic(expected = "2 cells for 1 columns")]
fn cells_in_another_number_than_columns_are_refused() {
    let (mut world, tid) = one_row();
    let part = world.table.cell_shape(&[ColumnId(8)]);
    let cells = [Cell::of(1); 2];
    // SAFETY: no text.
    _ = world.table.update_cells(&mut world.undo, tid, &part, unsafe { Cells::new(&cells) });
}

#[test]
#[should_panic(expected = "each column once")]
fn cell_shape_with_a_column_twice_is_refused() {
    let (world, _) = one_row();
    world.table.cell_shape(&[ColumnId(8), ColumnId(1), ColumnId(8)]);
}

#[test]
#[should_panic(expected = "row 1 is not in the table")]
fn cells_of_a_row_that_never_was_are_not_read() {
    let (world, _) = one_row();
    let part = world.table.cell_shape(&[ColumnId(8)]);
    world.table.read_cells(Tid(1), &part, &mut [Cell::NULL], &mut Vec::new());
}
