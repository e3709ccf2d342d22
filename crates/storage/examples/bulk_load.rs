//! How fast rows like those of TPC-H's lineitem are appended: laying them down, handing them over, entering
//! their keys.
//!
//! `cargo run --release -p albireo-storage --example bulk_load -- [rows] [columns|rows] [hash|ordered] [touch]`

use std::sync::Arc;

use albireo_base::{ColumnId, SqlType, StatementProgress, TableId, Tid};
use albireo_env::Env;
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, IndexKind, IndexSpec, LayoutChoice, Savepoint, SnapshotRegistry,
    Table, TableSpec, UndoLog, WriteSet, encode_writes,
};
use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

const BATCH_ROWS: usize = 8192;

fn spec(layout: LayoutChoice, kind: IndexKind) -> TableSpec {
    let decimal = SqlType::Decimal { precision: 15, scale: 2 };
    let types = [
        SqlType::BigInt,
        SqlType::Integer,
        SqlType::Integer,
        SqlType::Integer,
        decimal,
        decimal,
        decimal,
        decimal,
        SqlType::Char(1),
        SqlType::Char(1),
        SqlType::Date,
        SqlType::Date,
        SqlType::Date,
        SqlType::Char(25),
        SqlType::Char(10),
        SqlType::Varchar(44),
    ];
    let column = |(n, ty): (usize, &SqlType)| ColumnSpec { name: format!("c{n}"), ty: *ty, nullable: false };
    let key =
        IndexSpec { name: "key".to_owned(), columns: vec![ColumnId(0), ColumnId(3)], unique: true, kind };
    TableSpec {
        id: TableId(1),
        name: "lineitem".to_owned(),
        columns: types.iter().enumerate().map(column).collect(),
        layout,
        indexes: vec![key],
        partition_by: None,
        checks: Vec::new(),
    }
}

/// The rows `first..first + BATCH_ROWS`, four to an order, orders as sparse as TPC-H has them.
fn batch(first: usize) -> RecordBatch {
    let rows = || first..first + BATCH_ROWS;
    let decimals = |scale: i128| {
        let values = rows().map(move |n| (n as i128 * 7919) % scale);
        let array: Decimal128Array = Decimal128Array::from_iter_values(values);
        Arc::new(array.with_data_type(DataType::Decimal128(15, 2))) as ArrayRef
    };
    let dates = |plus: i32| Arc::new(Date32Array::from_iter_values(rows().map(|n| (n % 2500) as i32 + plus)));
    let texts = |texts: &[&'static str]| {
        let values = rows().map(|n| texts[n % texts.len()]);
        Arc::new(StringArray::from_iter_values(values)) as ArrayRef
    };
    let order = |n: usize| ((n / 4 / 8) * 32 + n / 4 % 8 + 1) as i64;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows().map(order))),
        Arc::new(Int32Array::from_iter_values(rows().map(|n| (n * 31 % 200_000) as i32))),
        Arc::new(Int32Array::from_iter_values(rows().map(|n| (n * 17 % 10_000) as i32))),
        Arc::new(Int32Array::from_iter_values(rows().map(|n| n as i32 % 4 + 1))),
        decimals(5000),
        decimals(10_000_000),
        decimals(11),
        decimals(9),
        texts(&["A", "N", "R"]),
        texts(&["F", "O"]),
        dates(8000),
        dates(8030),
        dates(8060),
        texts(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
        texts(&["TRUCK", "MAIL", "REG AIR", "AIR", "RAIL", "SHIP", "FOB"]),
        texts(&[
            "egular courts above the",
            "ly final dependencies: slyly bold",
            "riously. regular",
            "arefully",
        ]),
    ];
    let field = |array: &ArrayRef| Field::new("", array.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let rows: usize = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(6_000_000);
    let layout = if has("rows") { LayoutChoice::Rows } else { LayoutChoice::Columns };
    let kind = if has("ordered") { IndexKind::Ordered } else { IndexKind::Hash };
    let clock = Env::real().clock;
    let pool = BlockPool::new(8 << 30);
    let toucher = pool.clone();
    let toucher =
        has("touch").then(|| albireo_env::spawn("toucher", move || toucher.run_toucher()).expect("a thread"));
    let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::RefuseNew));
    let spec = Arc::new(spec(layout, kind));
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    let mut table = Table::new(Arc::clone(&spec), layout, None, &registry);
    let mut undo = UndoLog::default();
    let mut staging = table.staging();
    let (mut made_ns, mut laid_ns) = (0, 0);
    for first in (0..rows).step_by(BATCH_ROWS) {
        let start = clock.now();
        let batch = batch(first);
        let made = clock.now();
        staging.push(&batch).expect("the rows fit");
        (made_ns, laid_ns) = (made_ns + made - start, laid_ns + clock.now() - made);
    }
    let rows = staging.row_count();
    let per_row = |ns: u64| ns as f64 / rows as f64;
    println!("made     {:7.1} ns/row", per_row(made_ns));
    println!("laid     {:7.1} ns/row", per_row(laid_ns));
    let start = clock.now();
    table.append(&mut undo, staging, &StatementProgress::default()).expect("keys differ");
    println!(
        "appended {:7.1} ns/row ({})",
        per_row(clock.now() - start),
        table.index_form(table.index("key").expect("is there"))
    );
    let start = clock.now();
    let (mut set, mut record) = (WriteSet::default(), Vec::new());
    set.collect(&undo);
    encode_writes(&set, &undo, |site| site, |_, _| &table, &mut record);
    println!(
        "encoded  {:7.1} ns/row, {} bytes/row",
        per_row(clock.now() - start),
        record.len() as u64 / rows
    );
    drop(record);
    let memory = table.memory();
    let bytes = memory.blocks_bytes + memory.heaps_bytes + memory.indexes_bytes;
    println!(
        "memory   {:7.1} bytes/row, {} MB in all, pool {} MB",
        bytes as f64 / rows as f64,
        bytes >> 20,
        pool.reserved_bytes() >> 20
    );
    let start = clock.now();
    while let Some(record) = undo.pop(Savepoint::START) {
        table.undo(&undo, &record);
    }
    assert!(table.scan_from(Tid(0)).next().is_none());
    println!("undone   {:7.1} ns/row", per_row(clock.now() - start));
    pool.stop_toucher();
    if let Some(toucher) = toucher {
        toucher.join().expect("it ends");
    }
}
