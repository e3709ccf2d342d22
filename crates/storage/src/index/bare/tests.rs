//! The index against the ordered one, which has the same entries and keys, and what its rows say.

use std::collections::BTreeMap;

use albireo_testing::{Random, random_tests};
use proptest::prelude::*;

use super::super::{Index, InsertError, Kind};
use super::*;
use crate::key::{Key, KeyBuilder, KeyPart, KeyShape, PartKind};

/// What stands in the index has a row here, and nothing else has: a question about any other panics.
#[derive(Default)]
struct Rows {
    keys: BTreeMap<u64, Key>,
    /// How often a row was looked at.
    looks: usize,
}

impl StoredKeys for Rows {
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        self.looks += 1;
        key.cmp(&self.keys[&tid].as_ref())
    }

    fn prefix(&mut self, tid: u64) -> u128 {
        self.looks += 1;
        self.keys[&tid].prefix()
    }
}

/// Texts that are equal in more than their first 16 bytes, short ones, and NULL.
fn key(number: u16) -> Key {
    let mut key = KeyBuilder::new();
    match number % 4 {
        0 if number == 0 => key.push_null(),
        0 => key.push_present().push_str(&format!("the same for all of these {number}")),
        1 => key.push_present().push_str(&number.to_string()),
        2 => key.push_present().push_str(&"a".repeat(usize::from(number) % 40)),
        _ => key.push_present().push_str(&format!("{:015}", number / 8)),
    };
    key.key().to_key()
}

fn shape() -> KeyShape {
    KeyShape::new(vec![KeyPart { kind: PartKind::Text(None), nullable: true }])
}

/// A bare index and an ordered one.
struct World {
    pool: BlockPool,
    bare: Index,
    ordered: Index,
    unique: bool,
    rows: Rows,
}

impl World {
    fn new(unique: bool) -> Self {
        let pool = BlockPool::new(64 << 20);
        let index = |kind| Index::new(kind, unique, &shape(), &pool);
        Self { bare: index(Kind::Bare), ordered: index(Kind::Ordered), unique, rows: Rows::default(), pool }
    }

    fn insert(&mut self, number: u16, tid: u64) {
        let key = key(number);
        if self.rows.keys.contains_key(&tid) {
            return;
        }
        let expected = self.ordered.insert(key.as_ref(), tid, &mut self.rows);
        assert_eq!(self.bare.insert(key.as_ref(), tid, &mut self.rows), expected);
        if expected.is_ok() {
            self.rows.keys.insert(tid, key);
        }
    }

    fn remove(&mut self, tid: u64) {
        let Some(key) = self.rows.keys.get(&tid).cloned() else { return };
        assert!(self.ordered.remove(key.as_ref(), tid, &mut self.rows));
        assert!(self.bare.remove(key.as_ref(), tid, &mut self.rows));
        assert!(!self.bare.remove(key.as_ref(), tid, &mut self.rows), "it has gone");
        self.rows.keys.remove(&tid);
    }

    fn move_to(&mut self, old: u64, new: u64) {
        let Some(key) = self.rows.keys.get(&old).cloned() else { return };
        if self.rows.keys.contains_key(&new) {
            return;
        }
        self.rows.keys.insert(new, key.clone());
        self.ordered.retarget(key.as_ref(), old, new, &mut self.rows).unwrap();
        self.bare.retarget(key.as_ref(), old, new, &mut self.rows).unwrap();
        self.rows.keys.remove(&old);
    }

    /// Keys and ranges give the same rows.
    fn compare(&mut self, low: u16, high: u16) {
        let Self { bare, ordered, rows, .. } = self;
        let key_low = key(low);
        assert_eq!(bare.find(key_low.as_ref(), rows), ordered.find(key_low.as_ref(), rows));
        let tids: Vec<u64> = ordered.tids(key_low.as_ref(), rows).collect();
        assert!(bare.tids(key_low.as_ref(), rows).eq(tids.iter().copied()));
        assert!(bare.tids(key_low.as_ref(), rows).rev().eq(tids.iter().rev().copied()));
        let (low, high) = (key_low.prefix(), key(high).prefix());
        for (low, high) in [(low, high), (low + 1, high), (low, high - 1), (0, high), (low, u128::MAX)] {
            let expected: Vec<u64> = ordered.range(low, high, rows).collect();
            assert!(bare.range(low, high, rows).eq(expected.iter().copied()));
            assert!(bare.range(low, high, rows).rev().eq(expected.iter().rev().copied()));
            assert_eq!(bare.first_in(low, high, rows), ordered.first_in(low, high, rows));
            assert_eq!(bare.last_in(low, high, rows), ordered.last_in(low, high, rows));
            assert_eq!(bare.estimate(low, high, rows), expected.len(), "of few leaves each is counted");
        }
    }

    fn check(&mut self) {
        let keys = &self.rows.keys;
        self.bare.check(|a, b| keys[&a].cmp(&keys[&b]), |tid| keys[&tid].prefix());
        assert_eq!((self.bare.len(), self.bare.is_unique()), (self.ordered.len(), self.unique));
        let all: Vec<u64> = self.ordered.range(0, u128::MAX, &mut self.rows).collect();
        assert!(self.bare.bare().unwrap().iter().eq(all.iter().copied()));
        assert_eq!(self.bare.bare().unwrap().last(), all.last().copied());
    }
}

fn bare_index_answers_as_the_ordered_one_does(unique: bool, ops: &[(u8, u16, u16)]) {
    let mut world = World::new(unique);
    for (at, &(what, number, other)) in ops.iter().enumerate() {
        match what {
            0..6 => world.insert(number, u64::from(other)),
            6..8 => world.remove(u64::from(other)),
            8 => world.move_to(u64::from(other), u64::from(number)),
            _ => world.compare(number, other),
        }
        if at % 200 == 0 {
            world.check();
        }
    }
    world.check();
    let tids: Vec<u64> = world.rows.keys.keys().copied().collect();
    for (at, tid) in tids.into_iter().enumerate() {
        world.remove(tid);
        if at % 200 == 0 {
            world.check();
        }
    }
    world.bare.clear();
    world.ordered.clear();
    assert_eq!(world.pool.in_use_bytes(), 0);
}

random_tests! {
    #![cases(16)]

    #[test]
    fn unique_index_of_tids_answers_as_the_ordered_one(
        ops in prop::collection::vec((0u8..10, 0u16..2000, 0u16..2500), 1..2500)
    ) {
        bare_index_answers_as_the_ordered_one_does(true, &ops);
    }

    #[test]
    fn index_of_tids_answers_as_the_ordered_one(
        ops in prop::collection::vec((0u8..10, 0u16..2000, 0u16..2500), 1..2500),
        keys in 1u16..2000
    ) {
        let ops: Vec<_> = ops.iter().map(|&(what, number, other)| match what {
            8 => (8, number, other),
            _ => (what, number % keys, other),
        }).collect();
        bare_index_answers_as_the_ordered_one_does(false, &ops);
    }
}

#[test]
fn runs_that_ascend_fill_leaves_and_look_at_one_row_each() {
    for unique in [true, false] {
        let (pool, mut rows) = (BlockPool::new(64 << 20), Rows::default());
        let mut index = BareIndex::new(unique, &pool);
        for tid in 0..100_000_u64 {
            let mut key = KeyBuilder::new();
            key.push_i64(tid as i64);
            index.insert(key.key(), tid, &mut rows).unwrap();
            rows.keys.insert(tid, key.key().to_key());
        }
        assert!(rows.looks <= 100_000, "{} rows were looked at", rows.looks);
        assert!(index.iter().eq(0..100_000));
        assert!(index.memory_bytes() < 100_000 * 9, "{} bytes", index.memory_bytes());
        let keys = &rows.keys;
        index.check(|a, b| keys[&a].cmp(&keys[&b]), |tid| keys[&tid].prefix());
    }
}

#[test]
fn search_looks_at_the_rows_of_one_leaf() {
    let (pool, mut rows) = (BlockPool::new(64 << 20), Rows::default());
    let mut index = BareIndex::new(true, &pool);
    let mut random = Random::new(3);
    let mut numbers: Vec<i64> = (0..50_000).collect();
    random.shuffle(&mut numbers);
    for (tid, number) in numbers.iter().enumerate() {
        let mut key = KeyBuilder::new();
        key.push_i64(*number);
        index.insert(key.key(), tid as u64, &mut rows).unwrap();
        rows.keys.insert(tid as u64, key.key().to_key());
    }
    rows.looks = 0;
    for (tid, number) in numbers.iter().enumerate() {
        let mut key = KeyBuilder::new();
        key.push_i64(*number);
        assert_eq!(index.find(key.key(), &mut rows), Some(tid as u64));
    }
    assert!(rows.looks <= 8 * numbers.len(), "{} rows were looked at", rows.looks);
}

/// The first entry of each leaf goes, again and again, and its row with it: no separator asks for it later.
#[test]
fn first_entries_of_leaves_go_and_separators_follow() {
    let mut world = World::new(false);
    for n in 0..20_000_u16 {
        world.insert(n % 3000, u64::from(n));
    }
    while !world.bare.is_empty() {
        let bare = world.bare.bare().unwrap();
        let mut firsts = Vec::new();
        let mut leaf = bare.leaf_list.first;
        while leaf != NONE {
            firsts.push(bare.leaves.get(leaf).tids()[0]);
            leaf = bare.leaves.get(leaf).links.next;
        }
        firsts.into_iter().for_each(|tid| world.remove(tid));
        if world.bare.len().is_multiple_of(11) {
            world.check();
        }
    }
    assert_eq!(world.bare.bare().unwrap().levels.inner_nodes(), 0);
}

#[test]
fn entries_without_memory_change_nothing() {
    let mut world = World::new(false);
    for n in 0..3000 {
        world.insert(n % 7, u64::from(n) * 2);
    }
    for bytes in [64, 1024, 16_384, 25_600, 29_696, 65_536] {
        while world.pool.alloc(bytes).is_ok() {}
    }
    let (mut refused, mut random) = (0, Random::new(8));
    for _ in 0..20_000 {
        let (number, tid) = (random.below(7) as u16, 2 * random.below(3000) + 1);
        let (key, is_new) = (key(number), !world.rows.keys.contains_key(&tid));
        match world.bare.insert(key.as_ref(), tid, &mut world.rows) {
            Ok(()) => {
                assert!(is_new);
                assert!(world.bare.remove(key.as_ref(), tid, &mut { RowsAnd(&world.rows.keys, tid, &key) }));
            }
            Err(InsertError::OutOfMemory(_)) => refused += 1,
            Err(duplicate) => panic!("{duplicate}"),
        }
    }
    assert!(refused > 0);
    world.check();
}

/// Rows, and one more.
struct RowsAnd<'r>(&'r BTreeMap<u64, Key>, u64, &'r Key);

impl RowsAnd<'_> {
    fn of(&self, tid: u64) -> &Key {
        if tid == self.1 { self.2 } else { &self.0[&tid] }
    }
}

impl StoredKeys for RowsAnd<'_> {
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        key.cmp(&self.of(tid).as_ref())
    }

    fn prefix(&mut self, tid: u64) -> u128 {
        self.of(tid).prefix()
    }
}
