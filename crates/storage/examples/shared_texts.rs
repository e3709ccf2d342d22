//! What names that come again in chunk after chunk cost when each chunk has its own, and when chunks share them: bytes, and
//! the time of freezing a chunk, of arrays of all its rows and of its texts, of single reads in no order, and of letting go
//! of a chunk. The least of the turns.
//!
//! Names as Funke, Kemper and Neumann have them (2012, §5.5): 88,800, of which Zipf's law with s = 1.2 chooses.
//! `cargo run --release -p albireo-storage --example shared_texts -- 200000` has so many rows.
#![allow(clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlType, TableId, Tid, Value};
use albireo_encoding::Selection;
use albireo_env::{Clock, Env};
use albireo_storage::{
    BlockPool, BudgetPolicy, ChunkEncoder, ColumnSpec, DatabaseSnapshot, LayoutChoice, Sharing,
    SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableSpec, UndoLog,
};

const NAMES: u64 = 88_800;
const ZIPF: f64 = 1.2;
const TURNS: usize = 5;

fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

fn name(rank: u64, length: usize) -> String {
    let mut state = rank << 20;
    (0..length).map(|_| char::from(b'a' + (mixed(&mut state) >> 20) as u8 % 26)).collect()
}

fn snapshot(registry: &Arc<SnapshotRegistry>, table: &mut Table) -> Arc<DatabaseSnapshot> {
    let mut builder = SnapshotBuilder::new(registry, SnapshotScope::All).expect("the budget is large");
    builder.add(PartitionId(0), table);
    builder.finish()
}

/// Microseconds that `run` takes, at best.
fn least(clock: &Clock, mut run: impl FnMut() -> usize) -> f64 {
    let turn = |_| {
        let start = clock.now();
        black_box(run());
        (clock.now() - start) as f64 / 1e3
    };
    (0..TURNS).map(turn).fold(f64::MAX, f64::min)
}

fn spec(length: usize) -> TableSpec {
    let column = ColumnSpec { name: "name".to_owned(), ty: SqlType::Varchar(length as u32), nullable: false };
    TableSpec {
        id: TableId(0),
        name: "names".to_owned(),
        columns: vec![column],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        partition_by: None,
        checks: Vec::new(),
    }
}

fn measure(length: usize, names: &[u64], sharing: Sharing) {
    let Env { clock, .. } = &Env::real();
    let pool = BlockPool::new(8 << 30);
    let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::RefuseNew));
    let spec = Arc::new(spec(length));
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    let (mut table, mut undo) = (Table::new(spec, layout, None, &registry), UndoLog::default());
    for rank in names {
        table.insert_values(&mut undo, &[Value::Text(name(*rank, length))]).expect("there is memory");
    }
    undo.commit(|_, _, _| {}, |_, _, _, _| {});
    table.end_chunk();
    let hot = snapshot(&registry, &mut table);
    let view = hot.table(TableId(0)).expect("the table is in the snapshot");
    let mut encoder = ChunkEncoder::default().with_sharing(sharing);
    let start = clock.now();
    for number in 0..view.chunk_count() {
        let encoded = view.chunk(number).encode(&mut encoder).expect("there is memory");
        let (_, done) = table.freeze([encoded]);
        assert_eq!(done[0].1, Ok(()), "nobody wrote it");
    }
    let freeze_us = (clock.now() - start) as f64 / 1e3;
    drop(view);
    drop(hot);
    let frozen = snapshot(&registry, &mut table);
    let view = frozen.table(TableId(0)).expect("the table is in the snapshot");
    let chunks: Vec<_> = (0..view.chunk_count()).map(|number| view.chunk(number)).collect();
    let columns: Vec<_> = chunks.iter().filter_map(|chunk| chunk.encoded(ColumnId(0))).collect();
    let arrays = least(clock, || columns.iter().map(|column| column.array(&Selection::All).len()).sum());
    let texts =
        least(clock, || columns.iter().filter_map(|column| column.shared_texts()).map(|all| all.len()).sum());
    let column = table.text_column("name").expect("it is there");
    let points = least(clock, || {
        let mut state = 7;
        let mut read = || {
            let text = table.text(Tid(mixed(&mut state) % names.len() as u64), column);
            text.len() + usize::from(text.as_bytes()[length / 2])
        };
        (0..100_000).map(|_| read()).sum()
    });
    let memory = table.memory();
    let count = columns.len() as f64;
    let form = chunks[1].forms().expect("it is frozen").join("; ");
    drop(columns);
    drop(chunks);
    drop(view);
    drop(frozen);
    let start = clock.now();
    drop(table);
    let dropped_us = (clock.now() - start) as f64 / 1e3;
    println!(
        "{length:4} {:12} {:>10} B  freeze {:6.0} µs  arrays {:5.0} µs  texts {:5.0} µs  point {:5.0} ns  drop {:5.0} µs  {form}",
        format!("{sharing:?}"),
        memory.frozen_bytes,
        freeze_us / count,
        arrays / count,
        texts / count,
        points / 100.0,
        dropped_us / count,
    );
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(200_000);
    let sums: Vec<f64> = (1..=NAMES)
        .scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-ZIPF);
            Some(*sum)
        })
        .collect();
    let (all, mut state) = (sums[sums.len() - 1], 3);
    let mut draw = || {
        let drawn = (mixed(&mut state) >> 11) as f64 / (1_u64 << 53) as f64 * all;
        sums.partition_point(|sum| *sum < drawn) as u64
    };
    let names: Vec<u64> = (0..rows).map(|_| draw()).collect();
    for length in [24, 60, 120, 240] {
        [Sharing::Never, Sharing::WhereItPays].into_iter().for_each(|how| measure(length, &names, how));
    }
}
