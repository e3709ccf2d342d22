//! Any transactions, written again on a copy, give the same rows; damaged records give errors.

use std::sync::Arc;

use albireo_base::{ColumnId, Decimal, PartitionId, SqlType, StatementProgress, TableId, Tid, Value};
use albireo_testing::Random;
use arrow_array::RecordBatch;

use super::*;
use crate::{
    BlockPool, BudgetPolicy, ColumnSpec, IndexKind, IndexSpec, KeyBuilder, LayoutChoice, Savepoint,
    SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableError, TableSpec, UndoLog,
};

/// Draws values.
trait Values {
    /// A value of few, so that keys meet; NULL where it may be.
    fn value(&mut self, column: &ColumnSpec) -> Value;
}

impl Values for Random {
    fn value(&mut self, column: &ColumnSpec) -> Value {
        if column.nullable && self.below(4) == 0 {
            return Value::Null;
        }
        let n = self.below(12) as i32 - 3;
        match column.ty {
            SqlType::Bool => Value::Bool(n > 0),
            SqlType::SmallInt => Value::SmallInt(n as i16),
            SqlType::Integer => Value::Integer(n * 1_000_003),
            SqlType::BigInt => Value::BigInt(i64::from(n) << 40),
            SqlType::Real => Value::Real(if n == 0 { -0.0 } else { n as f32 / 7.0 }),
            SqlType::Double => Value::Double(if n == 0 { f64::NAN } else { f64::from(n) / 7.0 }),
            SqlType::Decimal { precision, scale } => {
                let wide = if precision > 18 { 10_i128.pow(30) } else { 1 };
                Value::Decimal(Decimal { unscaled: i128::from(n) * wide, scale })
            }
            SqlType::Bytea => Value::Bytea(vec![n as u8; n.unsigned_abs() as usize * 5]),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                Value::Text("ä%x".repeat(n.unsigned_abs() as usize))
            }
            SqlType::Date => Value::Date(n),
            SqlType::Time => Value::Time(i64::from(n.unsigned_abs()) * 1_000_000),
            SqlType::Timestamp => Value::Timestamp(i64::from(n) << 42),
            SqlType::TimestampTz => Value::TimestampTz(i64::from(n)),
            SqlType::Uuid => Value::Uuid([n as u8; 16]),
        }
    }
}

const TYPES: [SqlType; 15] = [
    SqlType::Integer,
    SqlType::SmallInt,
    SqlType::Text,
    SqlType::BigInt,
    SqlType::Bool,
    SqlType::Real,
    SqlType::Double,
    SqlType::Decimal { precision: 12, scale: 2 },
    SqlType::Decimal { precision: 38, scale: 4 },
    SqlType::Varchar(30),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Uuid,
];

fn spec(random: &mut Random) -> TableSpec {
    let columns: Vec<ColumnSpec> = (0..2 + random.below(6))
        .map(|n| ColumnSpec {
            name: format!("c{n}"),
            ty: TYPES[random.below(TYPES.len() as u64) as usize],
            nullable: n > 1 && random.below(2) == 0,
        })
        .collect();
    let index = |columns: &[u16], unique, kind| IndexSpec {
        name: String::new(),
        columns: columns.iter().copied().map(ColumnId).collect(),
        unique,
        kind,
    };
    let last = columns.len() as u16 - 1;
    let indexes = match random.below(5) {
        0 => vec![],
        1 => vec![index(&[0], true, IndexKind::Hash)],
        2 => vec![index(&[1, 0], true, IndexKind::Ordered), index(&[last], true, IndexKind::Ordered)],
        3 => vec![index(&[last], false, IndexKind::Hash)],
        _ => vec![index(&[last], true, IndexKind::Hash), index(&[0, 1], true, IndexKind::Hash)],
    };
    let layout = [LayoutChoice::Columns, LayoutChoice::Rows][random.below(2) as usize].clone();
    TableSpec {
        id: TableId(3),
        name: "t".to_owned(),
        columns,
        layout,
        indexes,
        partition_by: None,
        checks: Vec::new(),
    }
}

struct World {
    table: Table,
    undo: UndoLog,
}

impl World {
    fn new(spec: &TableSpec) -> Self {
        let pool = BlockPool::new(64 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::default()));
        let layout = Table::layout_of(spec).unwrap();
        Self { table: Table::new(Arc::new(spec.clone()), layout, None, &registry), undo: UndoLog::default() }
    }

    /// All rows, sorted by their texts.
    fn rows(&self) -> Vec<String> {
        let mut rows: Vec<String> =
            self.table.scan_from(Tid(0)).map(|tid| format!("{:?}", self.table.row(tid))).collect();
        rows.sort();
        rows
    }

    fn roll_back(&mut self, to: Savepoint) {
        while let Some(record) = self.undo.pop(to) {
            self.table.undo(&self.undo, &record);
        }
    }

    fn commit(&mut self) {
        let Self { table, undo } = self;
        let mut freed = Vec::new();
        undo.commit(|_, _, tid| freed.push(tid), |_, _, _, _| {});
        freed.into_iter().for_each(|tid| table.free_slot(tid));
        table.tidy_heap(0, 0);
    }

    /// One change, which may be refused.
    fn change(&mut self, random: &mut Random) {
        let spec = Arc::clone(self.table.spec());
        let live: Vec<Tid> = self.table.scan_from(Tid(0)).collect();
        let one = |random: &mut Random| live[random.below(live.len() as u64) as usize];
        self.undo.set_site(0);
        let _ = match random.below(11) {
            10 => self.append(random),
            0..4 => {
                let row: Vec<Value> = spec.columns.iter().map(|column| random.value(column)).collect();
                self.table.insert_values(&mut self.undo, &row).map(|_| ())
            }
            _ if live.is_empty() => Ok(()),
            4..6 => self.table.delete(&mut self.undo, one(random)),
            _ => {
                let mut values = Vec::new();
                for _ in 0..1 + random.below(3) {
                    let column = random.below(spec.columns.len() as u64) as usize;
                    values.push((ColumnId(column as u16), random.value(&spec.columns[column])));
                }
                self.table.update_values(&mut self.undo, one(random), &values)
            }
        };
    }

    /// Appends rows, copies of rows of another table, which may be refused.
    fn append(&mut self, random: &mut Random) -> Result<(), TableError> {
        let spec = Arc::clone(self.table.spec());
        let mut other = World::new(&spec);
        for _ in 0..1 + random.below(4) {
            let row: Vec<Value> = spec.columns.iter().map(|column| random.value(column)).collect();
            let _ = other.table.insert_values(&mut other.undo, &row);
        }
        let registry =
            Arc::new(SnapshotRegistry::new(BlockPool::new(64 << 20), u64::MAX, BudgetPolicy::default()));
        let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).expect("the budget is large");
        builder.add(PartitionId(0), &mut other.table);
        let snapshot = builder.finish();
        let view = snapshot.table(spec.id).expect("the table is in the snapshot");
        let mut staging = self.table.staging().with_few(random.below(3));
        for chunk in (0..view.chunk_count()).map(|chunk| view.chunk(chunk)) {
            let columns = (0..spec.columns.len()).map(|column| chunk.column(ColumnId(column as u16)));
            let batch = RecordBatch::try_new(other.table.arrow_schema(), columns.collect());
            staging.push(&batch.expect("the table's columns")).expect("rows of such a table fit");
        }
        let appended = self.table.append(&mut self.undo, staging, &StatementProgress::default());
        appended.map(|_| ()).map_err(|fault| fault.error)
    }

    fn record(&self) -> Vec<u8> {
        let (mut set, mut record) = (WriteSet::default(), Vec::new());
        set.collect(&self.undo);
        encode_writes(&set, &self.undo, |site| site, |_, _| &self.table, &mut record);
        record
    }
}

impl WrittenTables for World {
    fn table_mut(&mut self, site: u16, table: TableId) -> Option<(&mut Table, &mut UndoLog)> {
        self.undo.set_site(site);
        (table == self.table.spec().id && site == 0).then_some((&mut self.table, &mut self.undo))
    }
}

#[test]
fn any_transactions_written_again_give_the_same_rows() {
    let (mut records, mut rows) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let spec = spec(random);
        let (mut first, mut second) = (World::new(&spec), World::new(&spec));
        for transaction in 0..60 {
            for _ in 0..random.below(12) {
                let point = first.undo.savepoint();
                first.change(random);
                if random.below(6) == 0 {
                    first.roll_back(point);
                }
            }
            let record = first.record();
            first.commit();
            let applied = apply_writes(&record, &mut second);
            let applied = applied.unwrap_or_else(|e| panic!("seed {seed}, transaction {transaction}: {e}"));
            second.commit();
            assert_eq!(first.rows(), second.rows(), "seed {seed}, transaction {transaction}");
            records += usize::from(!record.is_empty());
            rows += applied.rows;
        }
    }
    assert!(records > 1_500 && rows > 4_000, "{records} records with {rows} rows");
}

#[test]
fn keys_that_rows_exchange_are_written_again() {
    let column = |name: &str, nullable| ColumnSpec { name: name.to_owned(), ty: SqlType::Integer, nullable };
    let index = |column| IndexSpec {
        name: String::new(),
        columns: vec![ColumnId(column)],
        unique: true,
        kind: IndexKind::Hash,
    };
    let spec = TableSpec {
        id: TableId(3),
        name: "t".to_owned(),
        columns: vec![column("a", false), column("b", true), column("c", false)],
        layout: LayoutChoice::Columns,
        indexes: vec![index(0), index(1)],
        partition_by: None,
        checks: Vec::new(),
    };
    let row = |a: i32, b: i32, c: i32| [a, b, c].map(Value::Integer);
    let (mut first, mut second) = (World::new(&spec), World::new(&spec));
    let tids = [row(1, 10, 0), row(2, 20, 0), row(3, 30, 0)]
        .map(|row| first.table.insert_values(&mut first.undo, &row).unwrap());
    apply_writes(&first.record(), &mut second).unwrap();
    first.commit();
    second.commit();
    let set = |world: &mut World, row: usize, column: u16, value: i32| {
        let values = [(ColumnId(column), Value::Integer(value))];
        world.table.update_values(&mut world.undo, tids[row], &values).unwrap();
    };
    // Two rows exchange their keys by way of a third value, and two their other unique values.
    for (row, column, value) in
        [(0, 0, 9), (1, 0, 1), (0, 0, 2), (2, 1, 99), (1, 1, 30), (2, 1, 20), (2, 2, 7)]
    {
        set(&mut first, row, column, value);
    }
    apply_writes(&first.record(), &mut second).unwrap();
    assert_eq!(first.rows(), second.rows());
    assert_eq!(second.rows().len(), 3);
    assert!(second.rows().contains(&format!("{:?}", row(3, 20, 7).to_vec())));
}

#[test]
fn records_with_any_damage_are_refused_or_read_but_never_crash() {
    let random = &mut Random::new(7);
    let (mut refused, mut all) = (0, 0);
    for seed in 0..60 {
        let spec = spec(&mut Random::new(seed));
        let mut first = World::new(&spec);
        (0..20).for_each(|_| first.change(random));
        let record = first.record();
        for _ in 0..200 {
            let mut damaged = record.clone();
            if damaged.is_empty() {
                continue;
            }
            for _ in 0..1 + random.below(3) {
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << random.below(8);
            }
            damaged.truncate(
                damaged.len() - random.below(2) as usize * (random.below(5) as usize).min(damaged.len()),
            );
            let mut second = World::new(&spec);
            let result = apply_writes(&damaged, &mut second);
            second.roll_back(Savepoint::START);
            assert_eq!(second.rows().len(), 0, "what a refused record wrote is taken back");
            all += 1;
            refused += usize::from(result.is_err());
        }
    }
    assert!(refused > all / 4, "{refused} of {all}");
}

#[test]
fn row_that_is_not_there_is_named() {
    let mut random = Random::new(0);
    let mut spec = spec(&mut random);
    spec.columns = vec![ColumnSpec { name: "a".to_owned(), ty: SqlType::Integer, nullable: false }];
    spec.indexes.clear();
    let (mut first, mut second) = (World::new(&spec), World::new(&spec));
    let tid = first.table.insert_values(&mut first.undo, &[Value::Integer(42)]).unwrap();
    first.commit();
    first.table.delete(&mut first.undo, tid).unwrap();
    let error = apply_writes(&first.record(), &mut second).unwrap_err();
    assert!(error.to_string().ends_with("that does not exist: 42"), "{error}");
}

#[test]
fn rows_of_a_table_without_an_index_are_found_again_whatever_changed_them() {
    let column = |name: &str, ty| ColumnSpec { name: name.to_owned(), ty, nullable: true };
    let spec = TableSpec {
        id: TableId(3),
        name: "t".to_owned(),
        columns: vec![column("a", SqlType::Integer), column("b", SqlType::Text)],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        partition_by: None,
        checks: Vec::new(),
    };
    let random = &mut Random::new(11);
    let mut world = World::new(&spec);
    let mut key = KeyBuilder::new();
    let mut model: Vec<Vec<Value>> = Vec::new();
    let (mut found, mut changed_apart) = (0, 0);
    for _ in 0..6_000 {
        // Few different rows, so that many are equal.
        let text = if random.below(4) == 0 {
            Value::Null
        } else {
            Value::Text("x".repeat(random.below(30) as usize))
        };
        let row = vec![Value::Integer(random.below(40) as i32), text];
        match random.below(5) {
            0 | 1 => {
                let tid = world.table.insert_values(&mut world.undo, &row).unwrap();
                // Some come in another way, of which nobody tells.
                match random.below(3) {
                    0 => changed_apart += 1,
                    _ => world.table.note_found(tid),
                }
                model.push(row);
            }
            2 if !model.is_empty() => {
                let at = random.below(model.len() as u64) as usize;
                let tid = world.table.find_again(&model[at], &mut key).unwrap();
                let values = [(ColumnId(0), row[0].clone()), (ColumnId(1), row[1].clone())];
                world.table.update_values(&mut world.undo, tid, &values).unwrap();
                world.table.note_found(tid);
                model[at] = row;
            }
            3 if !model.is_empty() => {
                let at = random.below(model.len() as u64) as usize;
                let gone = model.swap_remove(at);
                let tid = world.table.find_again(&gone, &mut key).unwrap();
                world.table.delete(&mut world.undo, tid).unwrap();
                world.commit();
                found += 1;
            }
            _ => {
                let is_there = model.iter().any(|other| format!("{other:?}") == format!("{row:?}"));
                assert_eq!(world.table.find_again(&row, &mut key).is_some(), is_there);
            }
        }
    }
    world.commit();
    let mut rows: Vec<String> = model.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    assert_eq!(world.rows(), rows);
    assert!(found > 500 && changed_apart > 300, "{found}, {changed_apart}");
    world.table.end_finding();
}

#[test]
fn shape_of_a_specification_is_that_of_its_table() {
    for seed in 0..200 {
        let spec = spec(&mut Random::new(seed));
        assert_eq!(Shape::of_spec(&spec), Shape::of(&World::new(&spec).table), "seed {seed}");
    }
}
