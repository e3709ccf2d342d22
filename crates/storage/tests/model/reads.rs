//! Reads of chunks are counted, whichever way an index finds their rows.

use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlType, TableId, Tid, Value};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, IndexKind, IndexSpec, KeyBuilder, LayoutChoice, ShortKey,
    SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableSpec, UndoLog,
};

/// Two chunks of rows, each with its number as its value.
const ROWS: i64 = 32_768;
/// One in the second chunk, of those that are counted; it stands for so many.
const ROW: i64 = 20_032;
const COUNTED: u64 = 64;

fn table(registry: &Arc<SnapshotRegistry>) -> Table {
    let kinds = [("hash", IndexKind::Hash), ("ordered", IndexKind::Ordered), ("bare", IndexKind::Bare)];
    let index = |(name, kind): (&str, IndexKind)| IndexSpec {
        name: name.to_owned(),
        columns: vec![ColumnId(0)],
        unique: true,
        kind,
    };
    let spec = Arc::new(TableSpec {
        id: TableId(0),
        name: "t".to_owned(),
        columns: vec![ColumnSpec { name: "a".to_owned(), ty: SqlType::BigInt, nullable: false }],
        layout: LayoutChoice::Columns,
        indexes: kinds.map(index).into(),
        partition_by: None,
        checks: Vec::new(),
    });
    let layout = Table::layout_of(&spec).expect("it fits");
    let (mut table, mut undo) = (Table::new(spec, layout, None, registry), UndoLog::default());
    for a in 0..ROWS {
        table.insert_values(&mut undo, &[Value::BigInt(a)]).expect("memory");
    }
    undo.commit(|_, _, _| {}, |_, _, _, _| {});
    table
}

/// What each search finds, by its name.
type Search<'t> = (&'static str, Box<dyn Fn(i64) -> Vec<Tid> + 't>);

fn searches(table: &Table) -> Vec<Search<'_>> {
    let key = |a: i64| ShortKey::new().i64(a);
    let mut all: Vec<Search<'_>> = Vec::new();
    for name in ["hash", "ordered", "bare"] {
        let index = table.index(name).expect("it is there");
        let built = |a: i64, search: &dyn Fn(&KeyBuilder) -> Vec<Tid>| {
            let mut builder = KeyBuilder::new();
            builder.push_i64(a);
            search(&builder)
        };
        all.push(("find", Box::new(move |a| table.find(index, key(a)).into_iter().collect())));
        all.push(("ask", Box::new(move |a| table.ask(index, key(a)).tid().into_iter().collect())));
        let find = move |key: &KeyBuilder| table.find_key(index, key.key()).into_iter().collect();
        all.push(("find_key", Box::new(move |a| built(a, &find))));
        let find = move |key: &KeyBuilder| table.find_all(index, key.key());
        all.push(("find_all", Box::new(move |a| built(a, &find))));
        if name != "hash" {
            all.push(("first", Box::new(move |a| table.first(index, key(a)).into_iter().collect())));
            all.push(("last", Box::new(move |a| table.last(index, key(a)).into_iter().collect())));
            all.push(("prefix", Box::new(move |a| table.prefix(index, key(a)).collect())));
        }
    }
    all
}

#[test]
fn reads_are_counted_whichever_way_rows_are_found() {
    for is_on in [true, false] {
        let pool = BlockPool::new(64 << 20);
        let registry = SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::default());
        let registry = Arc::new(registry.observing_reads(is_on));
        let mut table = table(&registry);
        let mut builder = SnapshotBuilder::new(&registry, SnapshotScope::All).expect("the budget is large");
        builder.add(PartitionId(0), &mut table);
        let snapshot = builder.finish();
        let view = snapshot.table(TableId(0)).expect("it is there");
        let mut expected = 0;
        for (name, search) in searches(&table) {
            assert_eq!(search(ROW), [Tid(ROW as u64)], "{name}");
            assert_eq!(search(ROWS), [], "{name}");
            expected += if is_on { COUNTED } else { 0 };
            assert_eq!([0, 1].map(|chunk| view.chunk(chunk).reads()), [0, expected], "{name}");
        }
        // All rows of a chunk, once.
        let index = table.index("hash").expect("it is there");
        (0..ROWS / 2).for_each(|a| assert!(table.find(index, ShortKey::new().i64(a)).is_some()));
        let rows = if is_on { ROWS as u64 / 2 } else { 0 };
        assert_eq!([0, 1].map(|chunk| view.chunk(chunk).reads()), [rows, expected]);
        // What is looked at without an index is not counted.
        assert!((0..ROWS).all(|a| table.value(Tid(a as u64), ColumnId(0)) == Value::BigInt(a)));
        assert_eq!(view.chunk(0).reads(), rows);
    }
}
