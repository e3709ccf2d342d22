//! Keys that are compared where their values lie, against keys that are built.

use std::sync::Arc;

use albireo_base::TableId;

use super::*;
use crate::{BlockPool, BudgetPolicy, IndexKind, LayoutChoice, SnapshotRegistry, Table, TableSpec, UndoLog};

/// A table of one column with an index of it, and its rows.
fn table(ty: SqlType, nullable: bool, values: &[Value]) -> (Table, Vec<Tid>) {
    let index =
        IndexSpec { name: "i".to_owned(), columns: vec![ColumnId(0)], unique: false, kind: IndexKind::Bare };
    let spec = Arc::new(TableSpec {
        id: TableId(1),
        name: "t".to_owned(),
        columns: vec![ColumnSpec { name: "c".to_owned(), ty, nullable }],
        layout: LayoutChoice::Columns,
        indexes: vec![index],
        partition_by: None,
        checks: Vec::new(),
    });
    let pool = BlockPool::new(64 << 20);
    let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::default()));
    let layout = Table::layout_of(&spec).unwrap();
    let (mut table, mut undo) = (Table::new(spec, layout, None, &registry), UndoLog::default());
    let insert = |value: &Value| table.insert_values(&mut undo, std::slice::from_ref(value)).unwrap();
    let tids = values.iter().map(insert).collect();
    (table, tids)
}

/// Each key against each row.
fn agree(ty: SqlType, nullable: bool, values: &[Value]) {
    let (table, tids) = table(ty, nullable, values);
    let (columns, rows) = (&table.indexes[0].columns, &table.rows);
    let mut stored = in_rows(columns, rows);
    for &a in &tids {
        let mut key = KeyBuilder::new();
        build_key(columns, rows, a, &mut key);
        assert_eq!(stored.prefix(a.0), key.key().prefix, "{ty:?} {a:?}");
        for &b in &tids {
            let mut other = KeyBuilder::new();
            build_key(columns, rows, b, &mut other);
            let expected = key.key().cmp(&other.key());
            assert_eq!(stored.compare(key.key(), b.0), expected, "{ty:?} {a:?} {b:?}");
            if key.key().prefix == other.key().prefix {
                assert_eq!(stored.tie(key.key(), b.0), expected, "{ty:?} {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn keys_are_compared_in_rows_as_they_would_be_built() {
    // Around the 16 bytes of a prefix, with a mark of NULL or without, and around those of a text that lies in its slot.
    let lengths = [0, 1, 11, 12, 13, 14, 15, 16, 17, 18, 23, 24, 25, 40];
    let endings = ["", "\u{1}", "a", "b", "é", "ab"];
    let text = |length: usize, ending: &str| Value::Text("a".repeat(length) + ending);
    let texts: Vec<Value> =
        lengths.iter().flat_map(|length| endings.map(|ending| text(*length, ending))).collect();
    let numbers = |of: fn(i32) -> Value| [i32::MIN, -1, 0, 1, i32::MAX].map(of);
    for nullable in [false, true] {
        let with_null = |mut values: Vec<Value>| {
            values.extend(nullable.then_some(Value::Null));
            values
        };
        for ty in [SqlType::Text, SqlType::Varchar(20), SqlType::Varchar(60)] {
            let fit = |value: &Value| !matches!((ty, value), (SqlType::Varchar(20), Value::Text(t)) if t.chars().count() > 20);
            agree(ty, nullable, &with_null(texts.iter().filter(|value| fit(value)).cloned().collect()));
        }
        agree(SqlType::Integer, nullable, &with_null(numbers(Value::Integer).to_vec()));
        agree(SqlType::BigInt, nullable, &with_null(numbers(|n| Value::BigInt(i64::from(n) << 31)).to_vec()));
        let bytes = |n: i32| Value::Bytea(n.to_be_bytes().repeat(5));
        agree(SqlType::Bytea, nullable, &with_null(numbers(bytes).to_vec()));
    }
}
