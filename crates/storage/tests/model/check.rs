//! Comparisons of a table, its indexes and its snapshots with the model.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Decimal, SqlType, Tid, Value};
use albireo_storage::{ChunkContent, ChunkVersion, IndexKind, Key, KeyBuilder, Table, TableView};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};

use crate::shape::{Shape, index_name};
use crate::world::Rows;

/// The live table holds exactly `rows`.
pub fn table_equals(table: &Table, shape: &Shape, rows: &Rows) {
    assert_eq!(table.row_count(), rows.len() as u64);
    let scanned: Vec<Tid> = table.scan_from(Tid(0)).collect();
    assert_eq!(scanned, rows.keys().copied().collect::<Vec<_>>());
    for (&tid, row) in rows {
        assert!(table.is_live(tid));
        for (column, expected) in row.iter().enumerate() {
            let found = table.value(tid, ColumnId(column as u16));
            assert_eq!(&found, expected, "row {} column {column} of {shape:?}", tid.0);
        }
    }
}

/// Rows and others have the same values in the columns that a view covers.
pub fn covered_equal(view: &TableView, shape: &Shape, rows: &Rows, others: &Rows) {
    assert!(rows.keys().eq(others.keys()), "rows came or went");
    let covered = (0..shape.columns.len()).filter(|column| view.covers(ColumnId(*column as u16)));
    for column in covered {
        let mut pairs = rows.values().zip(others.values());
        assert!(pairs.all(|(row, other)| row[column] == other[column]), "column {column} was changed");
    }
}

/// The key of `row` in an index of `columns`, and whether it holds a NULL.
pub fn key_of(shape: &Shape, columns: &[ColumnId], row: &[Value]) -> (KeyBuilder, bool) {
    let mut key = KeyBuilder::new();
    let mut has_null = false;
    for column in columns {
        let value = &row[column.index()];
        if shape.columns[column.index()].1 {
            if value.is_null() {
                key.push_null();
                has_null = true;
                continue;
            }
            key.push_present();
        }
        push(&mut key, value, shape.columns[column.index()].0);
    }
    (key, has_null)
}

fn push(key: &mut KeyBuilder, value: &Value, ty: SqlType) {
    match value {
        Value::Bool(v) => key.push_bool(*v),
        Value::SmallInt(v) => key.push_i16(*v),
        Value::Integer(v) | Value::Date(v) => key.push_i32(*v),
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => key.push_i64(*v),
        Value::Real(v) => key.push_f32(*v),
        Value::Double(v) => key.push_f64(*v),
        Value::Decimal(v) => match ty {
            SqlType::Decimal { precision: 0..=18, .. } => key.push_i64(v.unscaled as i64),
            _ => key.push_i128(v.unscaled),
        },
        Value::Text(v) => key.push_str(v),
        Value::Bytea(v) => key.push_bytes(v),
        Value::Uuid(v) => key.push_uuid(*v),
        Value::Null => panic!("NULL in a NOT NULL column"),
    };
}

/// A row by its key, and whether that has a NULL.
type Keyed = (Key, Tid, bool);

/// Compares rows that were found with those that are expected, in the order of their keys.
type OrderedAs<'o> = &'o dyn Fn(Vec<Tid>, Vec<Tid>, &[Keyed]);

/// Every index finds exactly the rows of the model, by key and in order.
pub fn indexes_agree(table: &Table, shape: &Shape, rows: &Rows, has_moved: bool) {
    // A row that has moved is found by its key, in the order of its slot among those with the same.
    let ordered_as = |mut found: Vec<Tid>, expected: Vec<Tid>, keys: &[(Key, Tid, bool)]| {
        if has_moved {
            let key = |tid: &Tid| keys.iter().find(|(_, other, _)| other == tid).map(|(key, ..)| key.clone());
            assert!(found.is_sorted_by_key(key), "rows come in the order of their keys");
            let place = |tid: &Tid| expected.iter().position(|other| other == tid);
            found.sort_by_key(place);
        }
        assert_eq!(found, expected);
    };
    for (i, (columns, unique, kind)) in shape.indexes.iter().enumerate() {
        let index = table.index(&index_name(i)).expect("the index exists");
        let mut keys: Vec<(Key, Tid, bool)> = rows
            .iter()
            .map(|(&tid, row)| {
                let (key, has_null) = key_of(shape, columns, row);
                (key.key().to_key(), tid, has_null)
            })
            .collect();
        keys.sort();
        for group in keys.chunk_by(|a, b| a.0 == b.0) {
            let expected: Vec<Tid> = group.iter().map(|(_, tid, _)| *tid).collect();
            let mut found = table.find_all(index, group[0].0.as_ref());
            found.sort();
            assert_eq!(found, expected, "index {i} of {shape:?}");
            let one = table.find_key(index, group[0].0.as_ref());
            assert!(one.is_some_and(|tid| expected.contains(&tid)));
            assert!(expected.len() == 1 || !unique || group[0].2, "a unique key twice");
        }
        if *kind != IndexKind::Hash {
            let expected: Vec<Tid> = keys.iter().map(|(_, tid, _)| *tid).collect();
            ordered_as(table.between(index, 0, u128::MAX).collect(), by_prefix(&keys, 0, u128::MAX), &keys);
            assert_eq!(by_prefix(&keys, 0, u128::MAX), expected);
            ranges_agree(table, shape, rows, i, (&keys, &ordered_as));
        }
        absent_keys_are_not_found(table, shape, rows, i);
    }
}

fn by_prefix(keys: &[(Key, Tid, bool)], low: u128, high: u128) -> Vec<Tid> {
    keys.iter().filter(|(key, ..)| (low..=high).contains(&key.prefix())).map(|(_, tid, _)| *tid).collect()
}

/// Ranges over the leading columns of a few rows, both ways.
fn ranges_agree(
    table: &Table,
    shape: &Shape,
    rows: &Rows,
    i: usize,
    (keys, ordered_as): (&[Keyed], OrderedAs<'_>),
) {
    let index = table.index(&index_name(i)).expect("the index exists");
    let columns = &shape.indexes[i].0;
    for row in rows.values().step_by(rows.len() / 6 + 1) {
        for leading in 1..=columns.len() {
            let (low, high) = key_of(shape, &columns[..leading], row).0.prefix_range();
            let expected = by_prefix(keys, low, high);
            ordered_as(table.between(index, low, high).collect(), expected.clone(), keys);
            let mut backwards: Vec<Tid> = table.between(index, low, high).rev().collect();
            backwards.reverse();
            ordered_as(backwards, expected, keys);
        }
    }
}

/// Keys near those of the rows, which no row has.
fn absent_keys_are_not_found(table: &Table, shape: &Shape, rows: &Rows, i: usize) {
    let index = table.index(&index_name(i)).expect("the index exists");
    let columns = &shape.indexes[i].0;
    for pick in 200..206 {
        let row = shape.row(&[pick]);
        let equal = |other: &[Value]| columns.iter().all(|c| other[c.index()] == row[c.index()]);
        if !rows.values().any(|other| equal(other)) {
            let (key, _) = key_of(shape, columns, &row);
            assert_eq!(table.find_key(index, key.key()), None);
            assert_eq!(table.find_all(index, key.key()), []);
        }
    }
}

/// A snapshot's view holds exactly `rows`.
pub fn view_equals(view: &TableView, shape: &Shape, rows: &Rows) {
    assert_eq!(view.row_count(), rows.len() as u64);
    let mut live_rows = 0;
    for i in 0..view.chunk_count() {
        let chunk = view.chunk(i);
        assert!((1..=CHUNK_ROWS).contains(&chunk.slots()));
        let live = chunk.live();
        for slot in 0..chunk.slots() {
            let is_live = live.as_ref().is_none_or(|bits| bits.value(slot));
            assert_eq!(is_live, rows.contains_key(&chunk.tid(slot)), "row {}", chunk.tid(slot).0);
            live_rows += u64::from(is_live);
        }
        for (column, &(ty, _)) in shape.columns.iter().enumerate() {
            let id = ColumnId(column as u16);
            if !view.covers(id) {
                continue;
            }
            let array = chunk.column(id);
            assert_eq!(array.len(), chunk.slots());
            assert_eq!(array.data_type(), view.arrow_schema().field(column).data_type());
            array.to_data().validate_full().expect("dead rows too are well formed");
            array_equals(array.as_ref(), ty, column, i, rows);
            let nulls = chunk.nulls(id).map_or(0, |nulls| nulls.null_count());
            assert_eq!(nulls, array.null_count());
            if let Some(raw) = chunk.raw_i64(id) {
                assert_eq!(raw.len(), chunk.slots());
            }
        }
    }
    assert_eq!(live_rows, view.row_count());
}

/// The array of `column` in `chunk` holds the values of `rows`.
pub fn array_equals(array: &dyn Array, ty: SqlType, column: usize, chunk: usize, rows: &Rows) {
    for (&tid, row) in rows.range(Tid::new(chunk, 0)..Tid::new(chunk + 1, 0)) {
        let found = value_at(array, ty, tid.slot());
        assert_eq!(found, row[column], "row {} column {column}", tid.0);
    }
}

/// Equal versions of a column of a chunk mean equal content, dead rows included.
pub fn versions_tell_content(
    view: &TableView,
    shape: &Shape,
    versions: &mut HashMap<(usize, usize, ChunkVersion), u64>,
) {
    for i in 0..view.chunk_count() {
        let chunk = view.chunk(i);
        for (column, &(ty, _)) in shape.columns.iter().enumerate() {
            if !view.covers(ColumnId(column as u16)) {
                continue;
            }
            let array = chunk.column(ColumnId(column as u16));
            let mut hasher = DefaultHasher::new();
            for slot in 0..array.len() {
                value_at(array.as_ref(), ty, slot).hash(&mut hasher);
            }
            let content = hasher.finish();
            let known =
                *versions.entry((i, column, chunk.version(ColumnId(column as u16)))).or_insert(content);
            assert_eq!(known, content, "chunk {i} column {column} changed under one version");
        }
    }
}

/// Equal contents of a chunk mean equal live rows.
pub fn contents_tell_rows(view: &TableView, shape: &Shape, contents: &mut HashMap<(u32, ChunkContent), u64>) {
    if (0..shape.columns.len()).any(|column| !view.covers(ColumnId(column as u16))) {
        return;
    }
    for chunk in (0..view.chunk_count()).map(|i| view.chunk(i)) {
        let mut hasher = DefaultHasher::new();
        let live = chunk.live();
        for (column, &(ty, _)) in shape.columns.iter().enumerate() {
            let array = chunk.column(ColumnId(column as u16));
            for slot in (0..array.len()).filter(|&slot| live.as_ref().is_none_or(|live| live.value(slot))) {
                (slot, value_at(array.as_ref(), ty, slot)).hash(&mut hasher);
            }
        }
        let rows = hasher.finish();
        let known = *contents.entry((chunk.number(), chunk.content())).or_insert(rows);
        assert_eq!(known, rows, "chunk {} changed under one content", chunk.number());
    }
}

/// The value in `slot` of an array that stands for a column of type `ty`.
pub fn value_at(array: &dyn Array, ty: SqlType, slot: usize) -> Value {
    if array.is_null(slot) {
        return Value::Null;
    }
    match ty {
        SqlType::Bool => Value::Bool(array.as_boolean().value(slot)),
        SqlType::SmallInt => Value::SmallInt(array.as_primitive::<Int16Type>().value(slot)),
        SqlType::Integer => Value::Integer(array.as_primitive::<Int32Type>().value(slot)),
        SqlType::BigInt => Value::BigInt(array.as_primitive::<Int64Type>().value(slot)),
        SqlType::Real => Value::Real(array.as_primitive::<Float32Type>().value(slot)),
        SqlType::Double => Value::Double(array.as_primitive::<Float64Type>().value(slot)),
        SqlType::Decimal { scale, .. } => {
            Value::Decimal(Decimal { unscaled: array.as_primitive::<Decimal128Type>().value(slot), scale })
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
            Value::Text(array.as_string_view().value(slot).to_owned())
        }
        SqlType::Bytea => Value::Bytea(array.as_binary_view().value(slot).to_vec()),
        SqlType::Date => Value::Date(array.as_primitive::<Date32Type>().value(slot)),
        SqlType::Time => Value::Time(array.as_primitive::<Time64MicrosecondType>().value(slot)),
        SqlType::Timestamp => Value::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(slot)),
        SqlType::TimestampTz => {
            Value::TimestampTz(array.as_primitive::<TimestampMicrosecondType>().value(slot))
        }
        SqlType::Uuid => Value::Uuid(array.as_fixed_size_binary().value(slot).try_into().expect("16 bytes")),
    }
}
