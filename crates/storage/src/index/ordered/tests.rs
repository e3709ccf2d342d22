//! The tree against `std`'s, and its invariants.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::super::pages::NONE;
use super::OrderedIndex;
use crate::index::InsertError;
use crate::pool::BlockPool;

fn pool() -> BlockPool {
    BlockPool::new(256 << 20)
}

/// A tree of short unique keys beside its model.
struct Short {
    tree: OrderedIndex,
    model: BTreeMap<u128, u64>,
}

impl Short {
    fn new() -> Self {
        Self { tree: OrderedIndex::new(&pool()), model: BTreeMap::new() }
    }

    fn insert(&mut self, key: u128, tid: u64) {
        let expected = match self.model.get(&key) {
            Some(&tid) => Err(InsertError::Duplicate(tid)),
            None => Ok(()),
        };
        self.model.entry(key).or_insert(tid);
        assert_eq!(self.tree.insert(key, tid, |_| Ordering::Equal), expected);
    }

    fn remove(&mut self, key: u128) {
        assert_eq!(self.tree.remove(key, |_| Ordering::Equal), self.model.remove(&key));
    }

    fn check(&self) {
        self.tree.check(|_, _| Ordering::Equal);
        assert_eq!(self.tree.len(), self.model.len());
        assert!(self.tree.iter().eq(self.model.iter().map(|(&k, &t)| (k, t))));
        assert!(self.tree.iter().rev().eq(self.model.iter().rev().map(|(&k, &t)| (k, t))));
        assert_eq!(self.tree.first(), self.model.first_key_value().map(|(&k, &t)| (k, t)));
        assert_eq!(self.tree.last(), self.model.last_key_value().map(|(&k, &t)| (k, t)));
    }

    fn check_range(&self, low: u128, high: u128) {
        let expected: Vec<(u128, u64)> =
            if low > high { vec![] } else { self.model.range(low..=high).map(|(&k, &t)| (k, t)).collect() };
        assert!(self.tree.range(low, high).eq(expected.iter().copied()));
        assert!(self.tree.range(low, high).rev().eq(expected.iter().rev().copied()));
        // From both ends in turn.
        let mut range = self.tree.range(low, high);
        let mut ends = (0, expected.len());
        while ends.0 < ends.1 {
            assert_eq!(range.next(), Some(expected[ends.0]));
            ends.0 += 1;
            if ends.0 < ends.1 {
                ends.1 -= 1;
                assert_eq!(range.next_back(), Some(expected[ends.1]));
            }
        }
        assert_eq!((range.next(), range.next_back()), (None, None));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u128),
    Remove(u128),
    /// Ascending or descending, from a key on.
    Run(u128, u8, bool),
    /// Removes the first or last so many.
    Drain(u8, bool),
    Range(u128, u128),
    Find(u128),
}

/// Few enough keys that operations meet, the extremes among them.
fn key() -> impl Strategy<Value = u128> {
    prop_oneof![
        8 => (0u128..4000).prop_map(|k| k << 100),
        2 => (0u128..300).prop_map(|k| k + (7 << 100)),
        1 => Just(0),
        1 => Just(u128::MAX),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => key().prop_map(Op::Insert),
        4 => key().prop_map(Op::Remove),
        2 => (key(), any::<u8>(), any::<bool>()).prop_map(|(k, n, up)| Op::Run(k, n, up)),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(n, first)| Op::Drain(n, first)),
        2 => (key(), key()).prop_map(|(a, b)| Op::Range(a, b)),
        2 => key().prop_map(Op::Find),
    ]
}

fn apply(short: &mut Short, op: Op, tid: u64) {
    match op {
        Op::Insert(key) => short.insert(key, tid),
        Op::Remove(key) => short.remove(key),
        Op::Run(from, count, up) => {
            let mut key = Some(from);
            for i in 0..count as u64 {
                let Some(at) = key else { break };
                short.insert(at, tid + i);
                let step = 1u128 << 92;
                key = if up { at.checked_add(step) } else { at.checked_sub(step) };
            }
        }
        Op::Drain(count, first) => {
            for _ in 0..count {
                let end = if first { short.model.first_key_value() } else { short.model.last_key_value() };
                let Some((&key, _)) = end else { break };
                short.remove(key);
            }
        }
        Op::Range(low, high) => short.check_range(low, high),
        Op::Find(key) => {
            assert_eq!(short.tree.find(key, |_| Ordering::Equal), short.model.get(&key).copied());
        }
    }
}

random_tests! {
    #![cases(64)]

    #[test]
    fn tree_under_random_operations_equals_model(ops in prop::collection::vec(op(), 1..400)) {
        let mut short = Short::new();
        for (i, op) in ops.into_iter().enumerate() {
            apply(&mut short, op, i as u64 * 1000);
            if i % 16 == 0 {
                short.tree.check(|_, _| Ordering::Equal);
            }
        }
        short.check();
    }

    /// Rows are strings; all share few prefixes, and the rest is compared in the "row". A removed
    /// row's slot is emptied, so a comparison with a row that is gone panics.
    #[test]
    fn tree_of_long_keys_with_few_prefixes_equals_model(
        ops in prop::collection::vec((0u8..3, 0u16..600, any::<bool>()), 1..1500)
    ) {
        let mut tree = OrderedIndex::new(&pool());
        let mut model: BTreeMap<(u128, u16), u64> = BTreeMap::new();
        let mut rows: Vec<Option<u16>> = Vec::new();
        for (i, (prefix, rest, insert)) in ops.into_iter().enumerate() {
            let prefix = u128::from(prefix);
            if insert || i < 300 {
                let tid = rows.len() as u64;
                let result = tree.insert(prefix, tid, |t| rest.cmp(&rows[t as usize].unwrap()));
                match model.get(&(prefix, rest)) {
                    Some(&tid) => prop_assert_eq!(result, Err(InsertError::Duplicate(tid))),
                    None => {
                        prop_assert_eq!(result, Ok(()));
                        rows.push(Some(rest));
                        model.insert((prefix, rest), tid);
                    }
                }
            } else {
                let removed = tree.remove(prefix, |t| rest.cmp(&rows[t as usize].unwrap()));
                prop_assert_eq!(removed, model.remove(&(prefix, rest)));
                if let Some(tid) = removed {
                    rows[tid as usize] = None;
                }
            }
            let cmp = |t: u64| rest.cmp(&rows[t as usize].unwrap());
            prop_assert_eq!(tree.find(prefix, cmp), model.get(&(prefix, rest)).copied());
            let from = model.range((prefix, rest)..).next().map(|(k, &t)| (k.0, t));
            prop_assert_eq!(tree.lower_bound(prefix, cmp).peek(), from);
            let before = model.range(..(prefix, rest)).next_back().map(|(k, &t)| (k.0, t));
            prop_assert_eq!(tree.lower_bound(prefix, cmp).prev(), before);
            let up_to = model.range(..=(prefix, rest)).next_back().map(|(k, &t)| (k.0, t));
            prop_assert_eq!(tree.upper_bound(prefix, cmp).prev(), up_to);
        }
        tree.check(|a, b| rows[a as usize].unwrap().cmp(&rows[b as usize].unwrap()));
        let all: Vec<_> = model.iter().map(|(k, &t)| (k.0, t)).collect();
        prop_assert!(tree.iter().eq(all));
    }
}

#[test]
fn interleaved_ascending_runs_fill_leaves() {
    let mut short = Short::new();
    for order in 0..400u128 {
        for district in 0..50u128 {
            for line in 0..10u128 {
                short.insert(district << 96 | order << 64 | line, 0);
            }
        }
    }
    short.check();
    let full = short.tree.len() as f64 / (short.tree.leaves.used() * super::super::search::CAP) as f64;
    assert!(full > 0.95, "{full}");
}

#[test]
fn descending_run_fills_leaves() {
    let mut short = Short::new();
    for key in (0..20_000u128).rev() {
        short.insert(key, 0);
    }
    short.check();
    let full = short.tree.len() as f64 / (short.tree.leaves.used() * super::super::search::CAP) as f64;
    assert!(full > 0.95, "{full}");
}

#[test]
fn random_inserts_and_removes_of_many_keys_equal_model() {
    let mut short = Short::new();
    let mut random = 1u64;
    for round in 0..6 {
        for i in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = u128::from(random >> 48) << 90;
            if (random >> 20) % 6 < 3 + round % 2 * 2 { short.insert(key, i) } else { short.remove(key) }
        }
        short.check();
    }
    for key in short.model.keys().copied().collect::<Vec<_>>() {
        short.remove(key);
    }
    short.check();
    assert_eq!((short.tree.leaves.used(), short.tree.levels.inner_nodes()), (0, 0));
}

#[test]
fn queue_keeps_its_memory() {
    let mut tree = OrderedIndex::new(&pool());
    let equal = |_| Ordering::Equal;
    for key in 0..2000u128 {
        tree.insert(key, 0, equal).unwrap();
    }
    let memory_bytes = tree.memory_bytes();
    for key in 2000..300_000u128 {
        tree.insert(key, 0, equal).unwrap();
        let first = tree.first().unwrap().0;
        assert_eq!(tree.remove(first, equal), Some(0));
    }
    tree.check(|_, _| Ordering::Equal);
    assert!(tree.memory_bytes() <= memory_bytes * 3 / 2);
}

#[test]
fn non_unique_entries_with_one_key_order_by_tid() {
    let mut tree = OrderedIndex::new(&pool());
    let mut random = 7u64;
    let mut model = BTreeMap::new();
    for _ in 0..30_000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (key, tid) = (u128::from(random >> 62), random >> 40 & 0xFFF);
        if random >> 30 & 3 > 0 {
            assert_eq!(
                tree.insert(key, tid, |t| tid.cmp(&t)).is_ok(),
                model.insert((key, tid), ()).is_none()
            );
        } else {
            assert_eq!(tree.remove(key, |t| tid.cmp(&t)).is_some(), model.remove(&(key, tid)).is_some());
        }
    }
    tree.check(|a, b| a.cmp(&b));
    assert!(tree.iter().eq(model.keys().copied()));
    let ones = model.keys().copied().filter(|&(key, _)| key == 1);
    assert!(tree.range(1, 1).eq(ones));
}

#[test]
fn insert_without_memory_changes_nothing() {
    let pool = BlockPool::new(4 << 20);
    let mut tree = OrderedIndex::new(&pool);
    let mut keys = 0;
    let refused = loop {
        // Scattered, so that nodes split in the middle.
        let key = u128::from(u64::wrapping_mul(keys, 0x9E37_79B9_7F4A_7C15));
        match tree.insert(key, keys, |_| Ordering::Equal) {
            Ok(()) => keys += 1,
            Err(InsertError::OutOfMemory(_)) => break key,
            Err(duplicate) => panic!("{duplicate}"),
        }
    };
    tree.check(|_, _| Ordering::Equal);
    assert_eq!(tree.len() as u64, keys);
    assert_eq!(tree.find(refused, |_| Ordering::Equal), None);
    let first = tree.first().unwrap();
    while tree.len() > 10 {
        let last = tree.last().unwrap();
        assert_eq!(tree.remove(last.0, |_| Ordering::Equal), Some(last.1));
    }
    tree.insert(refused, 1, |_| Ordering::Equal).unwrap();
    tree.check(|_, _| Ordering::Equal);
    assert_eq!(tree.first(), Some(first));
    drop(tree);
    assert_eq!(pool.in_use_bytes(), 0);
}

#[test]
fn estimate_is_exact_nearby_and_close_far_away() {
    let mut tree = OrderedIndex::new(&pool());
    assert_eq!(tree.estimate(0, u128::MAX), 0);
    let mut random = 11u64;
    for n in 0..200_000_u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Half of the keys ascend, half are scattered among them.
        let key = if n % 2 == 0 { n } else { random >> 46 };
        let _ = tree.insert(u128::from(key), n, |tid| n.cmp(&tid));
    }
    assert_eq!(tree.estimate(5, 4), 0);
    assert_eq!(tree.estimate(0, u128::MAX), tree.len());
    for low in (0..200_000_u128).step_by(997) {
        for width in [0, 3, 40, 1_000, 20_000, 90_000] {
            let exact = tree.range(low, low + width).count();
            let estimate = tree.estimate(low, low + width);
            let off = exact.abs_diff(estimate);
            assert!(
                off <= if width <= 40 { 0 } else { exact / 5 },
                "{low} + {width}: {estimate} for {exact}"
            );
        }
    }
}

#[test]
fn first_entries_of_leaves_get_other_tids_and_separators_follow() {
    // Keys that are all there is, and keys of which five entries share each prefix: unique, and ordered by TIDs.
    let mut unique = OrderedIndex::new(&pool());
    let mut among = OrderedIndex::new(&pool());
    for n in 0..10_000_u64 {
        unique.insert(u128::from(n) << 80, n, |_| Ordering::Equal).unwrap();
        among.insert(u128::from(n / 5) << 80, n * 10, |stored| (n * 10).cmp(&stored)).unwrap();
    }
    assert!(unique.levels.height() > 1 && among.levels.height() > 1, "separators lie at several levels");
    let firsts = |tree: &OrderedIndex| {
        let mut firsts = Vec::new();
        let mut id = tree.leaf_list.first;
        while id != NONE {
            firsts.push(tree.leaves.get(id).entry(0));
            id = tree.leaves.get(id).links.next;
        }
        firsts
    };
    for (i, (prefix, old)) in firsts(&unique).into_iter().enumerate() {
        let new = 20_000 + i as u64;
        unique.retarget(prefix, old, new, |_| Ordering::Equal);
        unique.check(|_, _| Ordering::Equal);
        assert_eq!(unique.find(prefix, |_| Ordering::Equal), Some(new));
    }
    // To the end of their leaves, to other leaves, and a little down, which is the end of the leaf before.
    for new in [|tid: u64| tid + 3, |tid| tid + 1_000_000, |tid| tid - 2, |tid| tid % 7] {
        for (prefix, old) in firsts(&among) {
            if old > 10 && !among.range(prefix, prefix).any(|entry| entry.1 == new(old)) {
                assert_eq!(among.exchange((prefix, old), (prefix, new(old)), |_| Ordering::Equal), Ok(()));
                among.check(|a, b| a.cmp(&b));
            }
        }
    }
    assert_eq!((unique.len(), among.len()), (10_000, 10_000));
}

/// As in a group of a hash index, where the prefix has the TID.
#[test]
fn first_entry_of_a_leaf_moves_before_it_while_the_leaf_before_is_remembered() {
    let mut tree = OrderedIndex::new(&pool());
    let equal = |_| Ordering::Equal;
    for n in 0..2_000_u64 {
        tree.insert(u128::from(n * 10), n * 10, equal).unwrap();
    }
    for n in (5..2_000).step_by(7) {
        tree.remove(n * 10, equal).unwrap();
    }
    let mut id = tree.leaves.get(tree.leaf_list.first).links.next;
    while tree.leaves.get(id).links.next != NONE {
        let behind = tree.leaves.get(id).links.next;
        let (first, tid) = tree.leaves.get(id).entry(1);
        tree.insert(first + 1, tid + 1, equal).unwrap();
        assert!(tree.hot.iter().any(|hot| hot.leaf == id), "the leaf is remembered");
        let (first, tid) = tree.leaves.get(behind).entry(0);
        tree.exchange((first, tid), (first - 1, tid - 1), equal).unwrap();
        tree.check(|_, _| Ordering::Equal);
        id = behind;
    }
}
