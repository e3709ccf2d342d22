//! The dense index against `std`'s map, through every kind of move.

use std::collections::BTreeMap;

use albireo_testing::{Random, random_tests};
use proptest::prelude::*;

use super::*;
use crate::index::hash::{Slot16, Slot24};
use crate::key::{PartKind, ShortKey};

fn pool() -> BlockPool {
    BlockPool::new(512 << 20)
}

struct Beside<S: Slot> {
    index: DenseOrHash<S>,
    model: BTreeMap<u128, u64>,
}

impl<S: Slot> Beside<S> {
    fn new(kinds: &[PartKind]) -> Self {
        let index = DenseOrHash::new(&KeyShape::of(kinds), &pool()).expect("integers");
        Self { index, model: BTreeMap::new() }
    }

    fn insert(&mut self, key: ShortKey, tid: u64) {
        let key = key.get();
        let expected = match self.model.get(&key) {
            Some(&tid) => Err(InsertError::Duplicate(tid)),
            None => Ok(()),
        };
        self.model.entry(key).or_insert(tid);
        assert_eq!(self.index.insert(key, tid), expected);
        assert_eq!(self.index.find(key), Some(self.model[&key]));
    }

    fn remove(&mut self, key: ShortKey) {
        let key = key.get();
        assert_eq!(self.index.remove(key), self.model.remove(&key));
        assert_eq!(self.index.find(key), None);
    }

    fn check(&self) {
        self.index.check();
        assert_eq!(self.index.len(), self.model.len());
        assert!(self.model.iter().all(|(&key, &tid)| self.index.find(key) == Some(tid)));
        let all: BTreeMap<u128, u64> = self.index.iter().collect();
        assert_eq!(all, self.model);
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Every order of a warehouse's districts from one number on.
    Block(i16, i16, i32, u16),
    One(i16, i16, i32),
    RemoveBlock(i16, i16, i32, u16),
    Remove(i16, i16, i32),
}

fn op() -> impl Strategy<Value = Op> {
    let part = (-1i16..4, 0i16..4, prop_oneof![4 => 0i32..3000, 1 => any::<i32>()]);
    let count = 0u16..600;
    prop_oneof![
        3 => (part.clone(), count.clone()).prop_map(|(p, n)| Op::Block(p.0, p.1, p.2, n)),
        3 => part.clone().prop_map(|p| Op::One(p.0, p.1, p.2)),
        2 => (part.clone(), count).prop_map(|(p, n)| Op::RemoveBlock(p.0, p.1, p.2, n)),
        3 => part.prop_map(|p| Op::Remove(p.0, p.1, p.2)),
    ]
}

fn key(w: i16, d: i16, o: i32) -> ShortKey {
    ShortKey::new().i16(w).i16(d).i32(o)
}

random_tests! {
    #![cases(64)]

    #[test]
    fn dense_index_under_random_operations_equals_model(ops in prop::collection::vec(op(), 1..120)) {
        let mut beside = Beside::<Slot16>::new(&[PartKind::I16, PartKind::I16, PartKind::I32]);
        for (i, op) in ops.into_iter().enumerate() {
            let tid = i as u64 * 1000;
            match op {
                Op::Block(w, d, o, n) => (0..i32::from(n))
                    .for_each(|i| beside.insert(key(w, d, o.saturating_add(i)), tid + i as u64)),
                Op::One(w, d, o) => beside.insert(key(w, d, o), tid),
                Op::RemoveBlock(w, d, o, n) => {
                    (0..i32::from(n)).for_each(|i| beside.remove(key(w, d, o.saturating_add(i))));
                }
                Op::Remove(w, d, o) => beside.remove(key(w, d, o)),
            }
            beside.index.check();
        }
        beside.check();
    }

    #[test]
    fn index_of_one_integer_in_random_order_becomes_dense(
        keys in Just((-500i64..6000).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut beside = Beside::<Slot16>::new(&[PartKind::I64]);
        for (tid, &key) in keys.iter().enumerate() {
            beside.insert(ShortKey::new().i64(key), tid as u64);
        }
        beside.check();
        prop_assert!(beside.index.is_dense());
        for &key in &keys {
            beside.remove(ShortKey::new().i64(key));
        }
        beside.check();
    }

    #[test]
    fn one_key_far_off_does_not_keep_the_others_from_the_array(outlier in any::<i64>()) {
        let mut beside = Beside::<Slot16>::new(&[PartKind::I64]);
        beside.insert(ShortKey::new().i64(outlier), 1);
        for key in 1..3000 {
            beside.insert(ShortKey::new().i64(key), 2);
        }
        beside.check();
        prop_assert!(beside.index.is_dense());
    }
}

#[test]
fn tpcc_orders_become_dense_while_loaded_and_stay_so_while_they_grow() {
    let mut beside = Beside::<Slot16>::new(&[PartKind::I16, PartKind::I16, PartKind::I32]);
    for w in 1..=3 {
        for d in 1..=10 {
            for o in 1..=1000 {
                beside.insert(key(w, d, o), 7);
            }
        }
    }
    assert!(beside.index.is_dense());
    for o in 1001..=3000 {
        for w in 1..=3 {
            for d in 1..=10 {
                beside.insert(key(w, d, o), 7);
            }
        }
    }
    beside.check();
    assert_eq!((beside.index.elsewhere, beside.index.moving), (0, Move::None));
    assert!(beside.index.memory_bytes() <= 24 * beside.index.len(), "{}", beside.index.memory_bytes());
}

#[test]
fn keys_get_other_tids_wherever_they_are() {
    let mut beside = Beside::<Slot16>::new(&[PartKind::I16, PartKind::I16, PartKind::I32]);
    let mut random = Random::new(1);
    // In the array, in the one before it, in the hash table.
    let mut seen = [false; 3];
    let mut step = |beside: &mut Beside<Slot16>, new: u64| {
        // One that waits in the old array, which is seldom there, or any.
        let waiting = beside.index.old.iter().next().map(|entry| entry.0);
        let any = beside.model.keys().nth(random.index(beside.model.len()));
        let key = waiting.unwrap_or_else(|| *any.unwrap());
        let old = beside.model.insert(key, new).unwrap();
        let there = [beside.index.current.get(key), beside.index.old.get(key), old];
        seen[there.iter().position(|&tid| tid == old).unwrap()] = true;
        beside.index.retarget(key, old, new);
        assert_eq!(beside.index.find(key), Some(new));
        if new.is_multiple_of(64) {
            beside.index.check();
        }
    };
    let mut tid = 0;
    for orders in [1..=400, 401..=1200] {
        for d in 1..=10 {
            for o in orders.clone() {
                tid += 1;
                beside.insert(key(1, d, o), tid);
                step(&mut beside, 1_000_000 + tid);
            }
        }
    }
    beside.check();
    assert_eq!(seen, [true; 3]);
}

#[test]
fn order_lines_with_random_counts_are_dense_and_wide_keys_work() {
    let mut beside = Beside::<Slot24>::new(&[PartKind::I16, PartKind::I16, PartKind::I32, PartKind::I16]);
    let mut random = 1u64;
    for o in 1..=700 {
        for d in 1..=10 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            for line in 1..=5 + (random >> 60) as i16 % 11 {
                beside.insert(key(1, d, o).i16(line), random >> 1);
            }
        }
    }
    beside.check();
    assert!(beside.index.is_dense());
    assert_eq!(beside.index.elsewhere, 0);
}

#[test]
fn queue_of_growing_keys_keeps_its_memory() {
    let mut index = DenseOrHash::<Slot16>::new(&KeyShape::of(&[PartKind::I64]), &pool()).unwrap();
    let key = |i: i64| ShortKey::new().i64(i).get();
    let mut most_bytes = 0;
    for i in 0..1_000_000 {
        index.insert(key(i), i as u64).unwrap();
        if i >= 5000 {
            assert_eq!(index.remove(key(i - 5000)), Some(i as u64 - 5000));
        }
        if i % 1000 == 0 {
            most_bytes = most_bytes.max(index.memory_bytes());
        }
    }
    index.check();
    assert!(index.is_dense());
    assert!(most_bytes < 512 << 10, "{most_bytes}");
}

#[test]
fn scattered_keys_stay_in_the_hash_table() {
    let mut beside = Beside::<Slot16>::new(&[PartKind::I64]);
    for i in 0..20_000i64 {
        beside.insert(ShortKey::new().i64(i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)), i as u64);
    }
    beside.check();
    assert!(!beside.index.is_dense());
    assert_eq!(beside.index.current.slots(), 0);
}

#[test]
fn keys_that_turn_sparse_leave_the_array() {
    let mut beside = Beside::<Slot16>::new(&[PartKind::I32]);
    for i in 0..100_000 {
        beside.insert(ShortKey::new().i32(i), i as u64);
    }
    assert!(beside.index.is_dense());
    // One in a hundred stays: by removal, then new ones as far apart.
    for i in (0..100_000).filter(|i| i % 100 != 0) {
        beside.remove(ShortKey::new().i32(i));
    }
    for i in 1001..3000 {
        beside.insert(ShortKey::new().i32(i * 100), i as u64);
    }
    beside.check();
    assert!(!beside.index.is_dense());
    assert!(beside.index.memory_bytes() < 64 * beside.index.len(), "{}", beside.index.memory_bytes());
}

#[test]
fn insert_without_memory_changes_nothing() {
    let pool = BlockPool::new(10 << 20);
    let shape = KeyShape::of(&[PartKind::I64]);
    let mut index = DenseOrHash::<Slot16>::new(&shape, &pool).unwrap();
    let key = |i: u64| ShortKey::new().i64(i as i64).get();
    let mut count = 0;
    loop {
        match index.insert(key(count), count) {
            Ok(()) => count += 1,
            Err(InsertError::OutOfMemory(_)) => break,
            Err(duplicate) => panic!("{duplicate}"),
        }
    }
    index.check();
    assert_eq!((index.len() as u64, index.find(key(count))), (count, None));
    for i in 0..count {
        assert_eq!(index.remove(key(i)), Some(i));
    }
    index.insert(key(count), count).unwrap();
    index.check();
    drop(index);
    assert_eq!(pool.in_use_bytes(), 0);
}

#[test]
fn component_across_the_halves_of_a_key_is_not_dense() {
    let shape = KeyShape::of(&[PartKind::I32, PartKind::I64, PartKind::I32]);
    assert!(DenseOrHash::<Slot24>::new(&shape, &pool()).is_none());
}

#[test]
fn index_that_expects_its_keys_is_dense_from_the_first_on_and_takes_others() {
    let keys: Vec<ShortKey> =
        (0..4).flat_map(|w| (0..3).flat_map(move |d| (0..600).map(move |o| key(w, d, o)))).collect();
    let mut beside = Beside::<Slot16>::new(&[PartKind::I16, PartKind::I16, PartKind::I32]);
    beside.index.expect(keys.iter().map(|key| key.get()));
    for (tid, &key) in keys.iter().enumerate() {
        beside.insert(key, tid as u64);
        assert!(beside.index.is_dense() && beside.index.elsewhere == 0, "{tid}");
    }
    beside.check();
    for n in 0..3000 {
        beside.insert(key(4 + n % 5, 2, i32::from(n)), 50_000 + n as u64);
    }
    beside.insert(key(-1, 0, i32::MIN), 90_000);
    beside.insert(key(i16::MAX, i16::MAX, i32::MAX), 90_001);
    keys.iter().step_by(7).for_each(|&key| beside.remove(key));
    beside.check();
}

#[test]
fn index_that_expects_sparse_or_few_or_equal_keys_takes_them_as_ever() {
    let sparse: Vec<ShortKey> =
        (0..1000).map(|n: i64| ShortKey::new().i64(n * n * 77).i64(-n << 40)).collect();
    let few = (0..9).map(|n| ShortKey::new().i64(n).i64(n)).collect();
    let equal = vec![ShortKey::new().i64(1).i64(i64::MIN); 2000];
    for keys in [sparse, few, equal] {
        let mut beside = Beside::<Slot24>::new(&[PartKind::I64, PartKind::I64]);
        beside.index.expect(keys.iter().map(|key| key.get()));
        keys.iter().zip(1..).for_each(|(&key, tid)| beside.insert(key, tid));
        beside.check();
    }
}
