//! Question: what does an operation on an index cost, in nanoseconds, against the standard library?
//!
//! Each line is the median of `RUNS` runs on fresh structures, taken in turn, in one process.
//! Arguments: words that a line's name must contain. Keys are TPC-C's (warehouse, district, order,
//! line) or random; answers are checked by sums.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use albireo_storage::index::OrderedIndex;
use albireo_storage::key::ShortKey;
use albireo_storage::pool::BlockPool;

const RUNS: usize = 5;
const ENTRIES: usize = 1_500_000;

fn equal(_: u64) -> Ordering {
    Ordering::Equal
}

/// Runs `work` on what `setup` makes, several times, and prints the median time per operation.
fn measure<S>(name: &str, operations: usize, mut setup: impl FnMut() -> S, mut work: impl FnMut(&mut S) -> u64) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if !words.iter().all(|word| name.contains(word.as_str())) {
        return;
    }
    let mut sum = 0;
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut state = setup();
            let start = Instant::now();
            sum = black_box(work(&mut state));
            start.elapsed().as_nanos() as f64 / operations as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<52} {:>8.1} ns  ({:.1} .. {:.1})  sum {sum:x}", times[RUNS / 2], times[0], times[RUNS - 1]);
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Order lines as transactions write them: 50 districts in random turn, ten lines an order.
fn order_lines() -> Vec<u128> {
    let mut next = [1i32; 50];
    let mut random = 42;
    let mut keys = Vec::with_capacity(ENTRIES);
    while keys.len() < ENTRIES {
        let district = (xorshift(&mut random) % 50) as usize;
        let (w, d) = ((district / 10) as i16 + 1, (district % 10) as i16 + 1);
        for line in 1..=10 {
            keys.push(ShortKey::new().i16(w).i16(d).i32(next[district]).i16(line).get());
        }
        next[district] += 1;
    }
    keys
}

fn random_keys() -> Vec<u128> {
    let mut random = 7;
    (0..ENTRIES).map(|_| ShortKey::new().i64(xorshift(&mut random) as i64).get()).collect()
}

fn shuffled(keys: &[u128]) -> Vec<u128> {
    let mut keys = keys.to_vec();
    let mut random = 99;
    for i in (1..keys.len()).rev() {
        keys.swap(i, (xorshift(&mut random) % (i as u64 + 1)) as usize);
    }
    keys
}

fn tree_of(pool: &BlockPool, keys: &[u128]) -> OrderedIndex {
    let mut tree = OrderedIndex::new(pool);
    for (i, &key) in keys.iter().enumerate() {
        tree.insert(key, i as u64, equal).expect("room");
    }
    tree
}

fn std_of(keys: &[u128]) -> BTreeMap<u128, u64> {
    let mut map = BTreeMap::new();
    for (i, &key) in keys.iter().enumerate() {
        map.insert(key, i as u64);
    }
    map
}

fn ordered(pool: &BlockPool) {
    let sets = [("runs", order_lines()), ("random", random_keys())];
    for (set, keys) in &sets {
        let probes = shuffled(keys);
        measure(&format!("ordered insert {set} albireo"), ENTRIES, || (), |()| tree_of(pool, keys).len() as u64);
        measure(&format!("ordered insert {set} std"), ENTRIES, || (), |()| std_of(keys).len() as u64);
        let (tree, map) = (tree_of(pool, keys), std_of(keys));
        println!("    memory {:.1} bytes an entry", tree.memory_bytes() as f64 / tree.len() as f64);
        measure(&format!("ordered find {set} albireo"), ENTRIES, || (), |()| {
            probes.iter().map(|&key| tree.find(key, equal).expect("present")).sum()
        });
        measure(&format!("ordered find {set} std"), ENTRIES, || (), |()| {
            probes.iter().map(|key| map[key]).sum()
        });
        measure(&format!("ordered scan of ten {set} albireo"), ENTRIES / 10, || (), |()| {
            probes.iter().step_by(10).map(|&key| tree.range(key, u128::MAX).take(10).map(|e| e.1).sum::<u64>()).sum()
        });
        measure(&format!("ordered scan of ten {set} std"), ENTRIES / 10, || (), |()| {
            probes.iter().step_by(10).map(|&key| map.range(key..).take(10).map(|e| e.1).sum::<u64>()).sum()
        });
        measure(&format!("ordered remove {set} albireo"), ENTRIES, || tree_of(pool, keys), |tree| {
            probes.iter().map(|&key| tree.remove(key, equal).expect("present")).sum()
        });
        measure(&format!("ordered remove {set} std"), ENTRIES, || std_of(keys), |map| {
            probes.iter().map(|key| map.remove(key).expect("present")).sum()
        });
    }
    let lines = order_lines();
    let order = |key: u128| ((key >> 64) as u64) << 16 >> 16;
    let _ = order;
    let (tree, map) = (tree_of(pool, &lines), std_of(&lines));
    let orders: Vec<(u128, u128)> =
        shuffled(&lines).iter().step_by(10).map(|&k| (k >> 64 << 64, k >> 64 << 64 | u64::MAX as u128)).collect();
    measure("ordered lines of an order albireo", orders.len(), || (), |()| {
        orders.iter().map(|&(low, high)| tree.range(low, high).map(|e| e.1).sum::<u64>()).sum()
    });
    measure("ordered lines of an order std", orders.len(), || (), |()| {
        orders.iter().map(|&(low, high)| map.range(low..=high).map(|e| e.1).sum::<u64>()).sum()
    });
    let queue = 900u64 * 50;
    measure("ordered queue insert+first+remove albireo", ENTRIES, || tree_of(pool, &[]), |tree| {
        let mut sum = 0;
        for i in 0..ENTRIES as u64 {
            tree.insert(u128::from(i) << 64, i, equal).expect("room");
            if i >= queue {
                let (key, tid) = tree.first().expect("not empty");
                tree.remove(key, equal);
                sum += tid;
            }
        }
        sum
    });
    measure("ordered queue insert+first+remove std", ENTRIES, BTreeMap::new, |map| {
        let mut sum = 0;
        for i in 0..ENTRIES as u64 {
            map.insert(u128::from(i) << 64, i);
            if i >= queue {
                sum += map.pop_first().expect("not empty").1;
            }
        }
        sum
    });
}

fn main() {
    let pool = BlockPool::new(8 << 30);
    ordered(&pool);
}
