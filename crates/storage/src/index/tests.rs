//! Every kind of index behind the one face, against one model.

use std::collections::BTreeMap;

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::*;
use crate::key::{KeyBuilder, KeyPart, PartKind};

/// The columns of the test's rows, as far as an index has them.
#[derive(Clone, Copy, Debug)]
enum Columns {
    /// 8 bytes, integers.
    Narrow,
    /// 16 bytes, integers.
    Wide,
    /// 9 bytes, nullable.
    Nullable,
    /// Texts that share long beginnings.
    Text,
}

/// A row is a small number; its key follows from it.
fn build(columns: Columns, row: u16, key: &mut KeyBuilder) {
    key.clear();
    let (a, b) = (row / 50, i64::from(row % 50));
    match columns {
        Columns::Narrow => key.push_i32(i32::from(a)).push_i32(b as i32),
        Columns::Wide => key.push_i64(i64::from(a)).push_i64(b),
        Columns::Nullable if b == 0 => key.push_null(),
        Columns::Nullable => key.push_present().push_i64(i64::from(row)),
        Columns::Text => key.push_str(&format!("{}{row}", "long beginning ".repeat(row as usize % 2))),
    };
}

fn shape(columns: Columns) -> KeyShape {
    match columns {
        Columns::Narrow => KeyShape::of(&[PartKind::I32; 2]),
        Columns::Wide => KeyShape::of(&[PartKind::I64; 2]),
        Columns::Nullable => KeyShape::new(vec![KeyPart { kind: PartKind::I64, nullable: true }]),
        Columns::Text => KeyShape::of(&[PartKind::Text(None)]),
    }
}

/// The keys of stored rows by TID, as a table would have them. A question about another row panics.
#[derive(Default)]
struct Rows(BTreeMap<u64, crate::key::Key>);

impl StoredKeys for &Rows {
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        key.cmp(&self.0[&tid].as_ref())
    }

    fn prefix(&mut self, tid: u64) -> u128 {
        self.0[&tid].prefix()
    }
}

fn run(kind: Kind, unique: bool, columns: Columns, ops: &[(u16, u16, bool)]) {
    let pool = BlockPool::new(256 << 20);
    let mut index = Index::new(kind, unique, &shape(columns), &pool);
    let mut model: BTreeMap<Vec<u8>, BTreeMap<u64, u16>> = BTreeMap::new();
    let mut stored = Rows::default();
    let mut builder = KeyBuilder::new();
    for &(row, tid, insert) in ops {
        build(columns, row, &mut builder);
        let key = builder.key();
        let tid = u64::from(tid) << 12 | u64::from(row);
        let bytes = [&key.prefix.to_be_bytes()[..], key.rest].concat();
        let tids = model.entry(bytes).or_default();
        if insert {
            let result = index.insert(key, tid, &mut &stored);
            let there = if unique { tids.keys().next().copied() } else { tids.get(&tid).map(|_| tid) };
            assert_eq!(result, there.map_or(Ok(()), |there| Err(InsertError::Duplicate(there))));
            if result.is_ok() {
                tids.insert(tid, row);
                stored.0.insert(tid, key.to_key());
            }
        } else if unique {
            if let Some((&tid, _)) = tids.first_key_value() {
                assert!(index.remove(key, tid, &mut &stored));
                tids.clear();
                stored.0.remove(&tid);
            } else {
                assert!(!index.remove(key, tid, &mut &stored));
            }
        } else {
            assert_eq!(index.remove(key, tid, &mut &stored), tids.remove(&tid).is_some());
            stored.0.remove(&tid);
        }
        assert_eq!(index.find(key, &mut &stored), tids.keys().next().copied());
        if index.is_short() {
            assert_eq!(index.find_short(key.prefix), tids.keys().next().copied());
        }
        assert!(index.tids(key, &mut &stored).eq(tids.keys().copied()));
        index.prefetch(key);
    }
    index.check(|a, b| stored.0[&a].cmp(&stored.0[&b]), |tid| stored.0[&tid].prefix());
    assert_eq!(index.len(), stored.0.len());
    if index.has_order() {
        check_ranges(&index, &stored, ops);
    }
    index.clear();
    assert!(index.is_empty() && pool.in_use_bytes() == 0);
}

/// What lies between the keys of some operations, and between the ends.
fn check_ranges(index: &Index, rows: &Rows, ops: &[(u16, u16, bool)]) {
    let mut entries: Vec<_> = rows.0.iter().map(|(&tid, key)| (key.clone(), tid)).collect();
    entries.sort();
    let some = ops.iter().take(3).map(|op| entries[usize::from(op.0) % entries.len()].0.prefix());
    let ends = if entries.is_empty() { vec![] } else { some.collect() };
    let near = |prefix: u128| [prefix.saturating_sub(1), prefix, prefix.saturating_add(1)];
    let mut ends: Vec<u128> = ends.into_iter().flat_map(near).collect();
    ends.extend([0, u128::MAX]);
    for (low, high) in ends.iter().flat_map(|low| ends.iter().map(|high| (*low, *high))) {
        let within = |key: &crate::key::Key| (low..=high).contains(&key.prefix());
        let expected: Vec<u64> = entries.iter().filter(|e| within(&e.0)).map(|e| e.1).collect();
        assert!(index.range(low, high, &mut &*rows).eq(expected.iter().copied()));
        assert!(index.range(low, high, &mut &*rows).rev().eq(expected.iter().rev().copied()));
        assert_eq!(index.first_in(low, high, &mut &*rows), expected.first().copied());
        assert_eq!(index.last_in(low, high, &mut &*rows), expected.last().copied());
        assert_eq!(index.estimate(low, high, &mut &*rows), expected.len());
    }
}

random_tests! {
    #![cases(24)]

    #[test]
    fn every_index_under_random_operations_equals_model(
        ops in prop::collection::vec((0u16..1000, 0u16..20, prop::bool::weighted(0.7)), 1..1500)
    ) {
        for columns in [Columns::Narrow, Columns::Wide, Columns::Nullable, Columns::Text] {
            for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
                run(kind, true, columns, &ops);
                run(kind, false, columns, &ops);
            }
        }
    }
}

#[test]
fn kind_names_follow_the_data() {
    let pool = BlockPool::new(64 << 20);
    let shape = KeyShape::of(&[PartKind::I32]);
    let mut index = Index::new(Kind::Hash, true, &shape, &pool);
    assert_eq!(index.kind_name(), "hash");
    for i in 0..1000 {
        index.insert_short(crate::key::ShortKey::new().i32(i).get(), i as u64).unwrap();
    }
    assert_eq!(index.kind_name(), "dense array");
    assert_eq!(Index::new(Kind::Ordered, true, &shape, &pool).kind_name(), "b+tree");
}
