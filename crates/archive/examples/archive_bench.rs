//! Question: how fast is a core at archiving and at loading, indexes included?
//!
//! Tables are TPC-C's three large ones with 5 warehouses (or as many as the first argument says), in columns
//! and in rows; files lie in memory, so that the disk is not what is measured. Times are of the processor,
//! medians of three runs in one thread. Megabytes are those of the files, which hold the values and little
//! else. Answers are checked by counts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use albireo_archive::{ColumnMeta, LogPosition, Manifest, Request, TableMeta, open, write};
use albireo_base::{ColumnId, Decimal, PartitionId, SqlType, TableId, Value};
use albireo_env::{Env, cpu_time_ns};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, IndexKind, IndexSpec, LayoutChoice, Loader, SnapshotBuilder,
    SnapshotRegistry, SnapshotScope, Table, TableSpec, UndoLog,
};

const RUNS: usize = 3;
const DIRECTORY: &str = "/archive";

/// A small generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn text(&mut self, from: u64, to: u64) -> Value {
        let length = from + self.roll(to - from + 1);
        Value::Text((0..length).map(|_| char::from(b'a' + self.roll(26) as u8)).collect())
    }
}

/// Of last names: clause 4.3.2.3.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

type Make = fn(&mut Dice, u64) -> Value;

/// A table: name, columns, indexes, rows of a warehouse.
struct Definition {
    name: &'static str,
    columns: Vec<(SqlType, Make)>,
    indexes: Vec<(Vec<u16>, bool, IndexKind)>,
    rows: u64,
}

fn decimal(precision: u8) -> SqlType {
    SqlType::Decimal { precision, scale: 2 }
}

fn money(dice: &mut Dice, _: u64) -> Value {
    Value::Decimal(Decimal { unscaled: i128::from(dice.roll(9999)), scale: 2 })
}

fn small(dice: &mut Dice, _: u64) -> Value {
    Value::SmallInt(dice.roll(100) as i16)
}

fn definitions() -> Vec<Definition> {
    use SqlType::{Char, Integer, SmallInt, Timestamp, Varchar};
    let district: (SqlType, Make) = (Char(24), |dice, _| dice.text(24, 24));
    vec![
        Definition {
            name: "order_line",
            columns: vec![
                (Integer, |_, n| Value::Integer((n % 30_000 / 10) as i32)),
                (SmallInt, |_, n| Value::SmallInt((n % 300_000 / 30_000) as i16)),
                (SmallInt, |_, n| Value::SmallInt((n / 300_000) as i16)),
                (SmallInt, |_, n| Value::SmallInt((n % 10) as i16)),
                (Integer, |dice, _| Value::Integer(dice.roll(100_000) as i32)),
                (SmallInt, small),
                (Timestamp, |dice, n| {
                    if n % 10 < 7 { Value::Timestamp(dice.roll(1 << 50) as i64) } else { Value::Null }
                }),
                (SmallInt, small),
                (decimal(6), money),
                district,
            ],
            indexes: vec![(vec![2, 1, 0, 3], true, IndexKind::Ordered)],
            rows: 300_000,
        },
        Definition {
            name: "customer",
            columns: vec![
                (Integer, |_, n| Value::Integer((n % 3000) as i32)),
                (SmallInt, |_, n| Value::SmallInt((n % 30_000 / 3000) as i16)),
                (SmallInt, |_, n| Value::SmallInt((n / 30_000) as i16)),
                (Varchar(16), |dice, _| dice.text(8, 16)),
                (Char(2), |_, _| Value::from("OE")),
                (Varchar(16), |dice, _| {
                    Value::Text([(); 3].map(|()| SYLLABLES[dice.roll(10) as usize]).concat())
                }),
                (Varchar(20), |dice, _| dice.text(10, 20)),
                (Varchar(20), |dice, _| dice.text(10, 20)),
                (Varchar(20), |dice, _| dice.text(10, 20)),
                (Char(2), |dice, _| dice.text(2, 2)),
                (Char(9), |dice, _| dice.text(9, 9)),
                (Char(16), |dice, _| dice.text(16, 16)),
                (Timestamp, |dice, _| Value::Timestamp(dice.roll(1 << 50) as i64)),
                (Char(2), |_, _| Value::from("GC")),
                (decimal(12), money),
                (decimal(4), money),
                (decimal(12), money),
                (decimal(12), money),
                (SmallInt, small),
                (SmallInt, small),
                (Varchar(500), |dice, _| dice.text(300, 500)),
            ],
            indexes: vec![
                (vec![2, 1, 0], true, IndexKind::Hash),
                (vec![2, 1, 5, 3], false, IndexKind::Ordered),
            ],
            rows: 30_000,
        },
        Definition {
            name: "stock",
            columns: [(Integer, (|_, n| Value::Integer((n % 100_000) as i32)) as Make)]
                .into_iter()
                .chain([
                    (SmallInt, (|_, n| Value::SmallInt((n / 100_000) as i16)) as Make),
                    (SmallInt, small),
                ])
                .chain(std::iter::repeat_n(district, 10))
                .chain([(Integer, (|dice, _| Value::Integer(dice.roll(9999) as i32)) as Make)])
                .chain([(SmallInt, small as Make), (SmallInt, small)])
                .chain([(Varchar(50), (|dice, _| dice.text(26, 50)) as Make)])
                .collect(),
            indexes: vec![(vec![1, 0], true, IndexKind::Hash)],
            rows: 100_000,
        },
    ]
}

fn spec(definition: &Definition, layout: LayoutChoice) -> TableSpec {
    let column = |(i, (ty, _)): (usize, &(SqlType, Make))| ColumnSpec {
        name: format!("c{i}"),
        ty: *ty,
        nullable: *ty == SqlType::Timestamp,
    };
    let index = |(i, (columns, unique, kind)): (usize, &(Vec<u16>, bool, IndexKind))| IndexSpec {
        name: format!("i{i}"),
        columns: columns.iter().map(|&column| ColumnId(column)).collect(),
        unique: *unique,
        kind: *kind,
    };
    TableSpec {
        id: TableId(0),
        name: definition.name.to_owned(),
        columns: definition.columns.iter().enumerate().map(column).collect(),
        layout,
        indexes: definition.indexes.iter().enumerate().map(index).collect(),
        partition_by: None,
        checks: Vec::new(),
    }
}

fn request(spec: &TableSpec) -> Request {
    let column = |column: &ColumnSpec| ColumnMeta {
        name: column.name.clone(),
        ty: column.ty,
        nullable: column.nullable,
    };
    Request {
        time_us: 0,
        log: LogPosition::default(),
        partitions: 1,
        catalog: serde_json::Value::Null,
        tables: vec![TableMeta {
            id: spec.id,
            schema: "public".to_owned(),
            name: spec.name.clone(),
            columns: spec.columns.iter().map(column).collect(),
        }],
        bytes_per_second: None,
        cancel: Arc::new(AtomicBool::new(false)),
    }
}

/// Nanoseconds of the processor for reading and checking, filling blocks, and each index.
fn load(env: &Env, manifest: &Manifest, empty: impl Fn() -> Table) -> (u64, u64, Vec<u64>) {
    let mut loader = Loader::new(empty());
    let (mut reading, mut filling) = (0, 0);
    for file in manifest.files() {
        let start = cpu_time_ns();
        let batches: Result<Vec<_>, _> = open(env, Path::new(DIRECTORY), file).expect("whole").collect();
        let batches = batches.expect("whole");
        let read = cpu_time_ns();
        batches.iter().for_each(|batch| loader.append(batch).expect("the same table"));
        drop(batches);
        (reading, filling) = (reading + read - start, filling + cpu_time_ns() - read);
    }
    let build = |build: albireo_storage::IndexBuild<'_>| {
        let start = cpu_time_ns();
        build.run().expect("keys differ");
        cpu_time_ns() - start
    };
    let indexing = loader.index_builds().into_iter().map(build).collect();
    assert_eq!(loader.finish().expect("all is built").row_count(), manifest.rows());
    (reading, filling, indexing)
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let warehouses = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5);
    println!(
        "{:<22} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "rows", "MB", "write", "read", "fill", "index", "load"
    );
    for definition in definitions() {
        for (name, layout) in [("columns", LayoutChoice::Columns), ("rows", LayoutChoice::Rows)] {
            run(&definition, name, layout, warehouses);
        }
    }
    println!("(megabytes per second of one core; index in nanoseconds a row)");
}

fn run(definition: &Definition, name: &str, layout: LayoutChoice, warehouses: u64) {
    let pool = BlockPool::new(8 << 30);
    while pool.reserved_bytes() < 3 << 30 && pool.preallocate_slab(3 << 30) {}
    let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
    let spec = Arc::new(spec(definition, layout));
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    let empty = || Table::new(Arc::clone(&spec), Arc::clone(&layout), None, &registry);
    let (mut table, mut undo, mut dice) = (empty(), UndoLog::default(), Dice(0x9e37_79b9_7f4a_7c15));
    for n in 0..definition.rows * warehouses {
        let row: Vec<Value> = definition.columns.iter().map(|(_, make)| make(&mut dice, n)).collect();
        table.insert_values(&mut undo, &row).expect("the row is right");
        undo.commit(|_, _, _| {}, |_, _, _, _| {});
    }
    let (env, _) = Env::simulated(1);
    let (mut writing, mut manifest) = (Vec::new(), None);
    for _ in 0..RUNS {
        let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).expect("no budget");
        builder.add(PartitionId(0), &mut table);
        let snapshot = builder.finish();
        let start = cpu_time_ns();
        let written = write(&env, Path::new(DIRECTORY), snapshot, request(&spec), None, |_| {});
        writing.push(cpu_time_ns() - start);
        manifest = Some(written.expect("memory").contents.manifest().clone());
        albireo_archive::retain(&env, Path::new(DIRECTORY), 1).expect("memory");
    }
    drop(table);
    let manifest = manifest.expect("there were runs");
    let loads: Vec<(u64, u64, Vec<u64>)> = (0..RUNS).map(|_| load(&env, &manifest, empty)).collect();
    let part = |part: fn(&(u64, u64, Vec<u64>)) -> u64| median(loads.iter().map(part).collect());
    let (reading, filling, indexing) = (part(|l| l.0), part(|l| l.1), part(|l| l.2.iter().sum()));
    let megabytes = |ns: u64| manifest.bytes() * 1000 / ns.max(1);
    let each: Vec<u64> = loads[0].2.iter().map(|ns| ns / manifest.rows()).collect();
    println!(
        "{:<22} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        format!("{} {name}", definition.name),
        manifest.rows(),
        manifest.bytes() / 1_000_000,
        megabytes(median(writing)),
        megabytes(reading),
        megabytes(filling),
        format!("{each:?}"),
        megabytes(reading + filling + indexing),
    );
}
