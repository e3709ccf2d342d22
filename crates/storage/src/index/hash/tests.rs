//! The hash indexes against `std`'s maps, and their invariants.

use std::collections::{BTreeMap, BTreeSet};

use albireo_testing::{Random, random_tests};
use proptest::prelude::*;

use super::*;
use crate::key::{KeyBuilder, always_equal};

fn pool() -> BlockPool {
    BlockPool::new(256 << 20)
}

fn unique_equals_model<S: Slot>(ops: &[(u16, bool)], spread: impl Fn(u16) -> u128) {
    let mut index = HashIndex::<S>::new(&pool());
    let mut model = BTreeMap::new();
    for (i, &(key, insert)) in ops.iter().enumerate() {
        let key = spread(key);
        if insert {
            let result = index.insert(key, i as u64, always_equal);
            match model.get(&key) {
                Some(&tid) => assert_eq!(result, Err(InsertError::Duplicate(tid))),
                None => {
                    assert_eq!(result, Ok(()));
                    model.insert(key, i as u64);
                }
            }
        } else {
            assert_eq!(index.remove(key, always_equal), model.remove(&key));
        }
        assert_eq!(index.find(key, always_equal), model.get(&key).copied());
    }
    index.check();
    assert!(model.iter().all(|(&key, &tid)| index.find(key, always_equal) == Some(tid)));
    let all: BTreeMap<u128, u64> = index.iter().collect();
    assert_eq!(all, model);
}

random_tests! {
    #![cases(48)]

    #[test]
    fn unique_hash_under_random_operations_equals_model(
        ops in prop::collection::vec((0u16..3000, prop::bool::weighted(0.7)), 1..6000)
    ) {
        unique_equals_model::<Slot16>(&ops, |key| u128::from(key) << 112);
        unique_equals_model::<Slot24>(&ops, |key| u128::from(key) << 112 | u128::from(key));
    }

    /// All keys share few fingerprints, so probes meet long runs of equal ones.
    #[test]
    fn unique_hash_of_equal_fingerprints_asks_the_rows(
        ops in prop::collection::vec((0u16..400, any::<bool>()), 1..1000)
    ) {
        let mut index = NarrowHash::new(&pool());
        let mut model = BTreeMap::new();
        let mut rows: Vec<Option<u16>> = Vec::new();
        for (key, insert) in ops {
            let print = u128::from(key % 3) << 64;
            if insert {
                let result = index.insert(print, rows.len() as u64, |t| key.cmp(&rows[t as usize].unwrap()));
                match model.get(&key) {
                    Some(&tid) => prop_assert_eq!(result, Err(InsertError::Duplicate(tid))),
                    None => {
                        prop_assert_eq!(result, Ok(()));
                        model.insert(key, rows.len() as u64);
                        rows.push(Some(key));
                    }
                }
            } else {
                let removed = index.remove(print, |t| key.cmp(&rows[t as usize].unwrap()));
                prop_assert_eq!(removed, model.remove(&key));
                if let Some(tid) = removed {
                    rows[tid as usize] = None;
                }
            }
        }
        index.check();
    }

    #[test]
    fn multi_hash_under_random_operations_equals_model(
        ops in prop::collection::vec((0u8..12, 0u64..40, prop::bool::weighted(0.55)), 1..2500)
    ) {
        let mut index = MultiHash::<Slot16>::new(&pool());
        let mut model: BTreeMap<u8, BTreeSet<u64>> = BTreeMap::new();
        // Keys of one parity share a fingerprint; a TID's key is `tid % 100`.
        for (key, n, insert) in ops {
            let tid = n * 100 + u64::from(key);
            let print = u128::from(key % 2) << 64;
            let tie = |t: u64| u64::from(key).cmp(&(t % 100));
            let tids = model.entry(key).or_default();
            if insert {
                let expected = if tids.insert(tid) { Ok(()) } else { Err(InsertError::Duplicate(tid)) };
                prop_assert_eq!(index.insert(print, tid, tie), expected);
            } else {
                prop_assert_eq!(index.remove(print, tid, tie), tids.remove(&tid));
            }
            prop_assert!(index.tids(print, tie).eq(tids.iter().copied()));
            prop_assert!(index.tids(print, tie).rev().eq(tids.iter().rev().copied()));
            prop_assert_eq!(index.find(print, tie), tids.first().copied());
        }
        index.check();
        prop_assert_eq!(index.key_count(), model.values().filter(|tids| !tids.is_empty()).count());
    }
}

#[test]
fn entries_with_one_fingerprint_get_other_tids_each_its_own() {
    let (mut unique, mut multi) = (NarrowHash::new(&pool()), MultiHash::<Slot16>::new(&pool()));
    let print = |key: u64| u128::from(key % 2) << 64;
    // The key of each TID; in the second index keys have nine TIDs each.
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    let key_of = |tid: u64| tid / 9;
    for tid in 0..400 {
        unique.insert(print(tid), tid, |stored| tid.cmp(&rows[&stored])).unwrap();
        rows.insert(tid, tid);
        multi.insert(print(key_of(tid)), tid, |stored| key_of(tid).cmp(&key_of(stored % 400))).unwrap();
    }
    let mut random = Random::new(2);
    let mut placed: Vec<u64> = (0..400).collect();
    for round in 0..2_000 {
        let key = random.below(400);
        let (old, new) = (placed[key as usize], (round + 1) * 400 + key);
        unique.retarget(print(key), old, new);
        rows.insert(new, key);
        rows.remove(&old);
        assert_eq!(unique.find(print(key), |stored| key.cmp(&rows[&stored])), Some(new));
        let group = key_of(key);
        let tie = |stored: u64| group.cmp(&key_of(stored % 400));
        multi.retarget(print(group), old, new, tie).unwrap();
        placed[key as usize] = new;
        let mut tids: Vec<u64> =
            (group * 9..(group * 9 + 9).min(400)).map(|key| placed[key as usize]).collect();
        tids.sort_unstable();
        assert!(multi.tids(print(group), tie).eq(tids));
    }
    unique.check();
    multi.check();
    for key in 0..400 {
        let found = unique.find(print(key), |stored| key.cmp(&rows[&stored]));
        assert_eq!(found, Some(placed[key as usize]));
    }
}

#[test]
fn many_keys_divide_segments_and_drain_to_nothing() {
    let mut index = WideHash::new(&pool());
    let key = |i: u64| u128::from(i) << 48;
    for i in 0..200_000 {
        index.insert(key(i), i, always_equal).unwrap();
    }
    index.check();
    assert!((0..200_000).all(|i| index.find(key(i), always_equal) == Some(i)));
    assert_eq!(index.find(key(200_000), always_equal), None);
    for i in 0..200_000 {
        assert_eq!(index.remove(key(i), always_equal), Some(i));
    }
    index.check();
    assert_eq!(index.iter().count(), 0);
}

#[test]
fn keys_with_one_hash_enlarge_their_segment_not_the_directory() {
    let mut index = NarrowHash::new(&pool());
    let key = 5u128 << 64;
    for tid in 0..5000 {
        index.insert(key, tid, |t| tid.cmp(&t)).unwrap();
    }
    index.check();
    assert!(index.memory_bytes() < 4 << 20);
    let tid = 4999;
    assert_eq!(index.find(key, |t| u64::cmp(&tid, &t)), Some(tid));
}

#[test]
fn insert_without_memory_changes_nothing() {
    // One slab for each of the first sizes, none for more.
    let pool = BlockPool::new(6 << 20);
    let mut unique = WideHash::new(&pool);
    let mut count = 0;
    let refused = loop {
        match unique.insert(u128::from(count) << 64, count, always_equal) {
            Ok(()) => count += 1,
            Err(InsertError::OutOfMemory(_)) => break count,
            Err(duplicate) => panic!("{duplicate}"),
        }
    };
    unique.check();
    assert_eq!((unique.len() as u64, unique.find(u128::from(refused) << 64, always_equal)), (count, None));
    assert_eq!(unique.remove(0, always_equal), Some(0));
    drop(unique);
    assert_eq!(pool.in_use_bytes(), 0);

    let mut multi = MultiHash::<Slot16>::new(&pool);
    let mut count = 0;
    while multi.insert(u128::from(count % 5000) << 64, count, always_equal).is_ok() {
        count += 1;
    }
    multi.check();
    assert_eq!(multi.len() as u64, count);
    assert!((0..count).all(|tid| multi.remove(u128::from(tid % 5000) << 64, tid, always_equal)));
    multi.check();
}

#[test]
fn fingerprint_tells_keys_with_one_prefix_apart() {
    let mut seen = BTreeSet::new();
    let mut key = KeyBuilder::new();
    for i in 0..10_000 {
        key.clear();
        key.push_str("https://www.example.org/").push_str(&i.to_string());
        assert!(seen.insert(fingerprint(key.key())));
    }
    let ends: BTreeSet<u128> = (0..40)
        .map(|zeros| {
            key.clear();
            key.push_bytes(&vec![0; zeros]);
            fingerprint(key.key())
        })
        .collect();
    assert_eq!(ends.len(), 40);
}

#[test]
fn hashes_of_regular_keys_spread_over_slots_and_directory() {
    for shift in [0, 16, 32, 48] {
        let mut low = vec![0u32; 1024];
        let mut high = vec![0u32; 1024];
        for i in 0..10_240u64 {
            let hash = hash_u64(i << shift);
            low[hash as usize & 1023] += 1;
            high[(hash >> 54) as usize] += 1;
        }
        // Ten expected in each.
        assert!(low.iter().chain(&high).all(|&count| count <= 40), "{shift}");
    }
}
