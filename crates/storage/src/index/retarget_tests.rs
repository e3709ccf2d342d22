//! Entries that get another TID, in every kind of index, against one model.

use std::collections::{BTreeMap, BTreeSet};

use albireo_testing::Random;

use super::*;
use crate::key::{Key, KeyBuilder, KeyPart, PartKind};

/// What keys the rows of a test have.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Keys {
    /// Integers of 8 bytes, which an array takes.
    Dense,
    /// Integers of 8 bytes, which none takes.
    Narrow,
    /// Integers of 16 bytes that follow each other.
    DenseWide,
    /// 16 bytes.
    Wide,
    /// 9 bytes, some NULL.
    Nullable,
    /// Texts that begin alike for more than 16 bytes.
    Text,
}

const ALL: [Keys; 6] = [Keys::Dense, Keys::Narrow, Keys::DenseWide, Keys::Wide, Keys::Nullable, Keys::Text];

impl Keys {
    fn shape(self) -> KeyShape {
        match self {
            Self::Dense => KeyShape::of(&[PartKind::I32; 2]),
            Self::Narrow => KeyShape::of(&[PartKind::F64]),
            Self::DenseWide => KeyShape::of(&[PartKind::I64; 2]),
            Self::Wide => KeyShape::of(&[PartKind::Uuid]),
            Self::Nullable => KeyShape::new(vec![KeyPart { kind: PartKind::I64, nullable: true }]),
            Self::Text => KeyShape::of(&[PartKind::Text(None)]),
        }
    }

    fn build(self, number: u64, key: &mut KeyBuilder) {
        key.clear();
        let (a, b) = (number / 50, number % 50);
        match self {
            Self::Dense => key.push_i32(a as i32).push_i32(b as i32),
            Self::Narrow => key.push_f64(number as f64),
            Self::DenseWide => key.push_i64(a as i64).push_i64(b as i64),
            Self::Wide => key.push_uuid([number as u8; 16]),
            Self::Nullable if b == 0 => key.push_null(),
            Self::Nullable => key.push_present().push_i64(number as i64),
            Self::Text => key.push_str(&format!("the same beginning of all of them {number}")),
        };
    }
}

/// An index beside its model.
struct World {
    index: Index,
    keys: Keys,
    model: BTreeMap<Key, BTreeSet<u64>>,
    /// The key of each row that is there. A comparison with another panics.
    rows: BTreeMap<u64, Key>,
}

struct Stored<'w>(&'w BTreeMap<u64, Key>);

impl StoredKeys for Stored<'_> {
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        key.cmp(&self.0[&tid].as_ref())
    }

    fn prefix(&mut self, tid: u64) -> u128 {
        self.0[&tid].prefix()
    }
}

impl World {
    fn new(kind: Kind, unique: bool, keys: Keys, pool: &BlockPool) -> Self {
        let index = Index::new(kind, unique, &keys.shape(), pool);
        Self { index, keys, model: BTreeMap::new(), rows: BTreeMap::new() }
    }

    fn key(&self, number: u64) -> Key {
        let mut builder = KeyBuilder::new();
        self.keys.build(number, &mut builder);
        builder.key().to_key()
    }

    fn insert(&mut self, number: u64, tid: u64) -> bool {
        let key = self.key(number);
        let rows = &self.rows;
        if rows.contains_key(&tid) || (self.index.is_unique() && self.model.contains_key(&key)) {
            return false;
        }
        let inserted = self.index.insert(key.as_ref(), tid, &mut Stored(rows));
        assert!(matches!(inserted, Ok(()) | Err(InsertError::OutOfMemory(_))), "{inserted:?}");
        if inserted.is_ok() {
            self.model.entry(key.clone()).or_default().insert(tid);
            self.rows.insert(tid, key);
        }
        inserted.is_ok()
    }

    fn remove(&mut self, tid: u64) {
        let Some(key) = self.rows.get(&tid).cloned() else { return };
        let rows = &self.rows;
        assert!(self.index.remove(key.as_ref(), tid, &mut Stored(rows)));
        self.rows.remove(&tid);
        let tids = self.model.get_mut(&key).unwrap();
        tids.remove(&tid);
        if tids.is_empty() {
            self.model.remove(&key);
        }
    }

    /// Whether there was memory.
    fn retarget(&mut self, old: u64, new: u64) -> bool {
        let key = self.rows[&old].clone();
        assert!(!self.rows.contains_key(&new));
        self.rows.insert(new, key.clone());
        let rows = &self.rows;
        let done = match self.index.is_short() {
            true => self.index.retarget_short(key.as_ref().prefix, old, new),
            false => self.index.retarget(key.as_ref(), old, new, &mut Stored(rows)),
        };
        let gone = match done {
            Ok(()) => {
                let tids = self.model.get_mut(&key).unwrap();
                tids.remove(&old);
                tids.insert(new);
                old
            }
            Err(InsertError::OutOfMemory(_)) => new,
            Err(duplicate) => panic!("{duplicate}"),
        };
        self.rows.remove(&gone);
        done.is_ok()
    }

    fn check(&self) {
        self.index.check(|a, b| self.rows[&a].cmp(&self.rows[&b]), |tid| self.rows[&tid].prefix());
        let mut stored = Stored(&self.rows);
        assert_eq!(self.index.len(), self.rows.len());
        for (key, tids) in &self.model {
            assert!(self.index.tids(key.as_ref(), &mut stored).eq(tids.iter().copied()));
            assert_eq!(self.index.find(key.as_ref(), &mut stored), tids.first().copied());
        }
        if self.index.has_order() {
            let all = self.model.values().flatten().copied();
            assert!(self.index.range(0, u128::MAX, &mut stored).eq(all));
        }
    }

    /// A row that is there, if any is: often one of the first of a key, which may be that of its leaf.
    fn any(&self, random: &mut Random) -> Option<u64> {
        if self.rows.is_empty() {
            return None;
        }
        if random.percent(30) {
            let tids = self.model.values().nth(random.index(self.model.len())).unwrap();
            return tids.first().copied();
        }
        self.rows.keys().nth(random.index(self.rows.len())).copied()
    }

    /// A TID that no row has: near `tid`, or anywhere.
    fn vacant(&self, tid: u64, random: &mut Random) -> u64 {
        loop {
            let new = match random.below(3) {
                0 => tid.saturating_sub(1 + random.below(4)),
                1 => tid + 1 + random.below(4),
                _ => random.below(100_000),
            };
            if !self.rows.contains_key(&new) {
                return new;
            }
        }
    }
}

/// So many operations on keys with a number below `numbers`.
fn run(kind: Kind, unique: bool, keys: Keys, seed: u64, numbers: u64, operations: usize, check_each: bool) {
    let pool = BlockPool::new(256 << 20);
    let mut random = Random::new(seed);
    let mut world = World::new(kind, unique, keys, &pool);
    for _ in 0..operations {
        match random.below(10) {
            0..5 => drop(world.insert(random.below(numbers), random.below(100_000))),
            5..6 => {
                if let Some(tid) = world.any(&mut random) {
                    world.remove(tid);
                }
            }
            _ => {
                if let Some(old) = world.any(&mut random) {
                    let new = world.vacant(old, &mut random);
                    assert!(world.retarget(old, new), "there is memory");
                }
            }
        }
        if check_each {
            world.check();
        }
    }
    world.check();
    for tid in world.rows.keys().copied().collect::<Vec<_>>() {
        world.remove(tid);
    }
    assert!(world.index.is_empty());
    drop(world);
    assert_eq!(pool.in_use_bytes(), 0);
}

#[test]
fn every_index_whose_entries_move_equals_model_after_each_operation() {
    albireo_testing::test!().for_each_seed(0..3, |seed| {
        for keys in ALL {
            for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
                run(kind, true, keys, seed, 1000, 500, true);
                // Few keys with many TIDs each, and many with few.
                run(kind, false, keys, seed, 3, 500, true);
                run(kind, false, keys, seed, 100, 500, true);
            }
        }
    });
}

#[test]
fn every_index_whose_entries_move_equals_model_in_long_runs() {
    albireo_testing::test!().for_each_seed(10..11, |seed| {
        for keys in ALL {
            for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
                run(kind, true, keys, seed, 20_000, 12_000, false);
                run(kind, false, keys, seed, 5, 12_000, false);
                run(kind, false, keys, seed, 2_000, 12_000, false);
            }
        }
    });
}

/// Entries move while an array is laid out anew and filled from a hash table and an older array.
#[test]
fn entries_move_while_they_change_between_array_and_hash_table() {
    let pool = BlockPool::new(256 << 20);
    let mut world = World::new(Kind::Hash, true, Keys::Dense, &pool);
    let mut random = Random::new(4);
    let mut forms = BTreeSet::new();
    for n in 0..12_000 {
        world.insert(n * 31 % 12_007, n);
        let old = world.any(&mut random).unwrap();
        assert!(world.retarget(old, 200_000 + n));
        forms.insert(world.index.kind_name());
    }
    world.check();
    for n in 0..12_000 {
        let tid = world.any(&mut random).unwrap();
        world.remove(tid);
        if let Some(old) = world.any(&mut random) {
            assert!(world.retarget(old, 300_000 + n));
        }
        forms.insert(world.index.kind_name());
    }
    assert_eq!(forms.into_iter().collect::<Vec<_>>(), ["dense array", "hash"]);
    assert!(world.rows.is_empty());
}

/// Fills the index and then the pool, and moves entries until one does not for memory, and on.
fn run_without_memory(kind: Kind, unique: bool, keys: Keys) -> usize {
    let pool = BlockPool::new(16 << 20);
    let mut random = Random::new(9);
    let mut world = World::new(kind, unique, keys, &pool);
    for n in 0..4_000 {
        let number = if unique { n } else { n % 3 };
        // Ascending TIDs fill leaves, so that entries that move have them divided.
        world.insert(number, n * 25);
    }
    for bytes in [64, 128, 512, 1024, 8192, 16_384, 25_600, 29_696, 65_536, 98_304] {
        while pool.alloc(bytes).is_ok() {}
    }
    let memory_bytes = world.index.memory_bytes();
    let mut refused = 0;
    for round in 0..6_000 {
        let old = world.any(&mut random).unwrap();
        let new = world.vacant(old, &mut random);
        refused += usize::from(!world.retarget(old, new));
        if round % 500 == 0 {
            world.check();
        }
    }
    assert_eq!(world.index.memory_bytes(), memory_bytes, "there was no memory");
    world.check();
    refused
}

#[test]
fn unique_indexes_take_no_memory_for_entries_that_move() {
    for keys in ALL {
        for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
            assert_eq!(run_without_memory(kind, true, keys), 0, "{kind:?} {keys:?}");
        }
    }
}

#[test]
fn entry_that_cannot_move_for_memory_stays() {
    for keys in ALL {
        for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
            assert!(run_without_memory(kind, false, keys) > 0, "{kind:?} {keys:?}");
        }
    }
}

#[test]
fn keys_with_few_tids_take_no_memory_for_them_to_move() {
    let mut random = Random::new(3);
    for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
        let pool = BlockPool::new(16 << 20);
        let mut world = World::new(kind, false, Keys::Wide, &pool);
        for n in 0..60 {
            assert!(world.insert(n % 10, random.below(100_000)));
        }
        while pool.alloc(64).is_ok()
            || pool.alloc(16_384).is_ok()
            || pool.alloc(25_600).is_ok()
            || pool.alloc(29_696).is_ok()
        {}
        for _ in 0..2_000 {
            let old = world.any(&mut random).unwrap();
            let new = world.vacant(old, &mut random);
            assert!(world.retarget(old, new));
            world.check();
        }
    }
}

#[test]
fn tid_that_the_key_has_is_not_given_to_another_entry() {
    let pool = BlockPool::new(16 << 20);
    for kind in [Kind::Hash, Kind::Ordered, Kind::Bare] {
        for count in [2, 5, 200] {
            let mut world = World::new(kind, false, Keys::Wide, &pool);
            (0..count).for_each(|tid| assert!(world.insert(1, tid)));
            let key = world.key(1);
            let moved = world.index.retarget(key.as_ref(), 1, 0, &mut Stored(&world.rows));
            assert_eq!(moved, Err(InsertError::Duplicate(0)));
            world.check();
        }
    }
}

#[test]
#[should_panic(expected = "the entry is there")]
fn entry_that_is_not_there_does_not_move() {
    let mut index = Index::new(Kind::Ordered, true, &Keys::Wide.shape(), &BlockPool::new(16 << 20));
    index.insert_short(7, 1).unwrap();
    let _ = index.retarget_short(7, 2, 3);
}
