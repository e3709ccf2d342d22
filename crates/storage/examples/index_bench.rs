//! Question: what does an operation on an index cost, in nanoseconds, against the standard library?
//!
//! Each line is the median of `RUNS` runs on fresh structures, taken in turn, in one process.
//! Arguments: words that a line's name must contain. Keys are TPC-C's (warehouse, district, order,
//! line) or random; answers are checked by sums.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;

use albireo_storage::BlockPool;
use albireo_storage::index::{Index, Kind, OrderedIndex, StoredKeys};
use albireo_storage::key::{KeyRef, KeyShape, PartKind, ShortKey};
use albireo_testing::Random;

const RUNS: usize = 5;
const ENTRIES: usize = 1_500_000;

/// Time this thread has run, in nanoseconds: on a busy machine the clock on the wall tells more
/// about the others.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` where we have one.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn equal(_: u64) -> Ordering {
    Ordering::Equal
}

fn wanted(name: &str) -> bool {
    std::env::args().skip(1).filter(|word| !word.starts_with('-')).all(|word| name.contains(&word))
}

/// Runs `work` on what `setup` makes, several times, and prints the median time per operation.
fn measure<S>(
    name: &str,
    operations: usize,
    mut setup: impl FnMut() -> S,
    mut work: impl FnMut(&mut S) -> u64,
) {
    if !wanted(name) {
        return;
    }
    let mut sum = 0;
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut state = setup();
            let start = cpu_ns();
            sum = black_box(work(&mut state));
            (cpu_ns() - start) as f64 / operations as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<52} {:>8.1} ns  ({:.1} .. {:.1})  sum {sum:x}",
        times[RUNS / 2],
        times[0],
        times[RUNS - 1]
    );
}

/// Order lines as transactions write them: 50 districts in random turn, ten lines an order.
fn order_lines() -> Vec<u128> {
    let mut next = [1i32; 50];
    let mut random = Random::new(42);
    let mut keys = Vec::with_capacity(ENTRIES);
    while keys.len() < ENTRIES {
        let district = random.index(50);
        let (w, d) = ((district / 10) as i16 + 1, (district % 10) as i16 + 1);
        for line in 1..=10 {
            keys.push(ShortKey::new().i16(w).i16(d).i32(next[district]).i16(line).get());
        }
        next[district] += 1;
    }
    keys
}

fn random_keys() -> Vec<u128> {
    let mut random = Random::new(7);
    (0..ENTRIES).map(|_| ShortKey::new().i64(random.bits() as i64).get()).collect()
}

fn shuffled(keys: &[u128]) -> Vec<u128> {
    let mut keys = keys.to_vec();
    Random::new(99).shuffle(&mut keys);
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
        measure(
            &format!("ordered insert {set} albireo"),
            ENTRIES,
            || (),
            |()| tree_of(pool, keys).len() as u64,
        );
        measure(&format!("ordered insert {set} std"), ENTRIES, || (), |()| std_of(keys).len() as u64);
        let (tree, map) = (tree_of(pool, keys), std_of(keys));
        println!("    memory {:.1} bytes an entry", tree.memory_bytes() as f64 / tree.len() as f64);
        measure(
            &format!("ordered find {set} albireo"),
            ENTRIES,
            || (),
            |()| probes.iter().map(|&key| tree.find(key, equal).expect("present")).sum(),
        );
        measure(
            &format!("ordered find {set} std"),
            ENTRIES,
            || (),
            |()| probes.iter().map(|key| map[key]).sum(),
        );
        measure(
            &format!("ordered scan of ten {set} albireo"),
            ENTRIES / 10,
            || (),
            |()| {
                probes
                    .iter()
                    .step_by(10)
                    .map(|&key| tree.range(key, u128::MAX).take(10).map(|e| e.1).sum::<u64>())
                    .sum()
            },
        );
        measure(
            &format!("ordered scan of ten {set} std"),
            ENTRIES / 10,
            || (),
            |()| {
                probes
                    .iter()
                    .step_by(10)
                    .map(|&key| map.range(key..).take(10).map(|e| e.1).sum::<u64>())
                    .sum()
            },
        );
        measure(
            &format!("ordered remove {set} albireo"),
            ENTRIES,
            || tree_of(pool, keys),
            |tree| probes.iter().map(|&key| tree.remove(key, equal).expect("present")).sum(),
        );
        measure(
            &format!("ordered remove {set} std"),
            ENTRIES,
            || std_of(keys),
            |map| probes.iter().map(|key| map.remove(key).expect("present")).sum(),
        );
    }
}

fn ordered_ranges(pool: &BlockPool) {
    let lines = order_lines();
    let (tree, map) = (tree_of(pool, &lines), std_of(&lines));
    let orders: Vec<(u128, u128)> = shuffled(&lines)
        .iter()
        .step_by(10)
        .map(|&k| (k >> 64 << 64, k >> 64 << 64 | u64::MAX as u128))
        .collect();
    measure(
        "ordered lines of an order albireo",
        orders.len(),
        || (),
        |()| orders.iter().map(|&(low, high)| tree.range(low, high).map(|e| e.1).sum::<u64>()).sum(),
    );
    measure(
        "ordered lines of an order std",
        orders.len(),
        || (),
        |()| orders.iter().map(|&(low, high)| map.range(low..=high).map(|e| e.1).sum::<u64>()).sum(),
    );
}

fn ordered_queue(pool: &BlockPool) {
    let queue = 900u64 * 50;
    measure(
        "ordered queue insert+first+remove albireo",
        ENTRIES,
        || tree_of(pool, &[]),
        |tree| {
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
        },
    );
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

/// A hasher as cheap as ours, so that the comparison is of tables, not of hash functions.
#[derive(Clone, Copy, Default)]
struct Cheap(u64);

impl BuildHasher for Cheap {
    type Hasher = Cheap;
    fn build_hasher(&self) -> Cheap {
        Cheap(0)
    }
}

impl Hasher for Cheap {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are integers");
    }
    fn write_u64(&mut self, key: u64) {
        let product = u128::from(key ^ 0xD1B5_4A32_D192_ED03) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
    fn write_u128(&mut self, key: u128) {
        self.write_u64((key >> 64) as u64 ^ (key as u64).rotate_left(32));
    }
}

/// Orders of 5 warehouses of 10 districts, in the order transactions write them.
fn orders() -> Vec<u128> {
    let mut keys = Vec::new();
    for order in 1..=(ENTRIES / 50) as i32 {
        for district in 0..50i16 {
            keys.push(ShortKey::new().i16(district / 10 + 1).i16(district % 10 + 1).i32(order).get());
        }
    }
    keys
}

fn index_of(pool: &BlockPool, kind: Kind, kinds: &[PartKind], keys: &[u128]) -> Index {
    let mut index = Index::new(kind, true, &KeyShape::of(kinds), pool);
    for (i, &key) in keys.iter().enumerate() {
        index.insert_short(key, i as u64).expect("room");
    }
    index
}

fn equality(pool: &BlockPool) {
    use PartKind::{I16, I32, I64};
    let integers = [I16, I16, I32];
    let sets: [(&str, Vec<u128>, &[PartKind]); 3] = [
        ("orders dense", orders(), &integers),
        ("random 8 bytes", random_keys(), &[I64]),
        ("random 16 bytes", random_keys().iter().map(|key| key | key >> 64).collect(), &[I64, PartKind::F64]),
    ];
    for (set, keys, kinds) in &sets {
        let probes = shuffled(keys);
        let build = || index_of(pool, Kind::Hash, kinds, keys);
        let cheap = || {
            let mut map = HashMap::with_hasher(Cheap(0));
            for (i, &key) in keys.iter().enumerate() {
                map.insert(key, i as u64);
            }
            map
        };
        let sip = || keys.iter().enumerate().map(|(i, &key)| (key, i as u64)).collect::<HashMap<u128, u64>>();
        measure(&format!("hash insert {set} albireo"), ENTRIES, || (), |()| build().len() as u64);
        measure(
            &format!("hash insert {set} hashbrown cheap hash"),
            ENTRIES,
            || (),
            |()| cheap().len() as u64,
        );
        measure(&format!("hash insert {set} std"), ENTRIES, || (), |()| sip().len() as u64);
        let index = build();
        println!(
            "    {}: memory {:.1} bytes an entry",
            index.kind_name(),
            index.memory_bytes() as f64 / ENTRIES as f64
        );
        find_all(set, &index, &cheap(), &sip(), [("", &probes), (" in order", keys)]);
        let entries: Vec<(u128, u64)> =
            probes.iter().map(|&key| (key, index.find_short(key).expect("present"))).collect();
        measure(&format!("hash remove {set} albireo"), ENTRIES, build, |index| {
            entries.iter().map(|&(key, tid)| u64::from(index.remove_short(key, tid))).sum()
        });
        measure(&format!("hash remove {set} hashbrown cheap hash"), ENTRIES, cheap, |map| {
            probes.iter().map(|key| map.remove(key).expect("present") & 1).sum()
        });
        worst_insert(set, pool, kinds, keys);
    }
}

fn find_all(
    set: &str,
    index: &Index,
    cheap: &HashMap<u128, u64, Cheap>,
    sip: &HashMap<u128, u64>,
    orders: [(&str, &Vec<u128>); 2],
) {
    for (order, probes) in orders {
        measure(
            &format!("hash find{order} {set} albireo"),
            ENTRIES,
            || (),
            |()| probes.iter().map(|&key| index.find_short(key).expect("present")).sum(),
        );
        measure(
            &format!("hash find prefetched{order} {set} albireo"),
            ENTRIES,
            || (),
            |()| {
                let batches = probes.chunks(16);
                batches
                    .map(|batch| {
                        batch.iter().for_each(|&key| index.prefetch_short(key));
                        batch.iter().map(|&key| index.find_short(key).expect("present")).sum::<u64>()
                    })
                    .sum()
            },
        );
        measure(
            &format!("hash find{order} {set} hashbrown cheap hash"),
            ENTRIES,
            || (),
            |()| probes.iter().map(|key| cheap[key]).sum(),
        );
        measure(
            &format!("hash find{order} {set} std"),
            ENTRIES,
            || (),
            |()| probes.iter().map(|key| sip[key]).sum(),
        );
    }
}

/// Orders of the warehouses loaded one after another, then more in every district in turn: the array
/// is laid out anew again and again.
fn orders_loaded_and_grown() -> Vec<u128> {
    let key = |district: i16, order: i32| {
        ShortKey::new().i16(district / 10 + 1).i16(district % 10 + 1).i32(order).get()
    };
    let loaded = (0..50).flat_map(|district| (1..=3000).map(move |order| key(district, order)));
    let grown =
        (3001..=(ENTRIES / 50) as i32).flat_map(|order| (0..50).map(move |district| key(district, order)));
    loaded.chain(grown).collect()
}

/// The slowest inserts: what a transaction may have to wait for.
fn worst_insert(set: &str, pool: &BlockPool, kinds: &[PartKind], keys: &[u128]) {
    if !wanted(&format!("worst insert {set}")) {
        return;
    }
    let mut index = Index::new(Kind::Hash, true, &KeyShape::of(kinds), pool);
    let mut map = HashMap::with_hasher(Cheap(0));
    let mut times = [Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len())];
    for (i, &key) in keys.iter().enumerate() {
        let start = cpu_ns();
        index.insert_short(key, i as u64).expect("room");
        let middle = cpu_ns();
        map.insert(key, i as u64);
        times[0].push(middle - start);
        times[1].push(cpu_ns() - middle);
    }
    for (name, times) in ["albireo", "hashbrown"].iter().zip(&mut times) {
        times.sort_unstable();
        let at = |share: f64| times[(times.len() as f64 * share) as usize] as f64 / 1000.0;
        let most = times[times.len() - 1] as f64 / 1000.0;
        println!(
            "worst insert {set} {name}: p50 {:.1} us (mostly the clock), p99.9 {:.1}, p99.99 {:.1}, p99.999 {:.1}, most {most:.1}",
            at(0.5),
            at(0.999),
            at(0.9999),
            at(0.99999)
        );
    }
}

fn small(pool: &BlockPool) {
    // Everything in the second-level cache: the price of instructions alone.
    let keys: Vec<u128> = orders().into_iter().take(10_000).collect();
    let (probes, rounds) = (shuffled(&keys), 150);
    for (name, kind, kinds) in [
        ("dense", Kind::Hash, &[PartKind::I16, PartKind::I16, PartKind::I32][..]),
        ("hash", Kind::Hash, &[PartKind::F64]),
        ("ordered", Kind::Ordered, &[PartKind::I64]),
    ] {
        let index = index_of(pool, kind, kinds, &keys);
        measure(
            &format!("small find {name} albireo"),
            probes.len(),
            || (),
            |()| probes.iter().map(|&key| index.find_short(key).expect("present")).sum(),
        );
    }
    let map: BTreeMap<u128, u64> = keys.iter().enumerate().map(|(i, &key)| (key, i as u64)).collect();
    measure(
        "small find ordered std",
        rounds * probes.len(),
        || (),
        |()| (0..rounds).map(|_| probes.iter().map(|key| map[key]).sum::<u64>()).sum(),
    );
    let mut map = HashMap::with_hasher(Cheap(0));
    map.extend(keys.iter().enumerate().map(|(i, &key)| (key, i as u64)));
    measure(
        "small find hash hashbrown cheap hash",
        probes.len(),
        || (),
        |()| probes.iter().map(|key| map[key]).sum(),
    );
}

/// A name, and what its index is: kind, whether unique, its keys, and their shape.
type Moving<'a> = (&'a str, Kind, bool, Vec<u128>, &'a [PartKind]);

/// Rows that move: their entries get other TIDs, in place or by removing and inserting them.
fn moves(pool: &BlockPool) {
    use PartKind::{I16, I32, I64};
    let sets: [Moving<'_>; 6] = [
        ("dense", Kind::Hash, true, orders(), &[I16, I16, I32]),
        ("hash", Kind::Hash, true, random_keys(), &[I64]),
        ("tree unique", Kind::Ordered, true, random_keys(), &[I64]),
        ("tree not unique, keys differ", Kind::Ordered, false, random_keys(), &[I64]),
        ("tree of 1,000 keys", Kind::Ordered, false, thousand_keys(), &[I64]),
        ("hash of 1,000 keys", Kind::Hash, false, thousand_keys(), &[I64]),
    ];
    for (set, kind, unique, keys, kinds) in &sets {
        let build = || {
            let mut index = Index::new(*kind, *unique, &KeyShape::of(kinds), pool);
            keys.iter().enumerate().for_each(|(i, &key)| index.insert_short(key, i as u64).expect("room"));
            index
        };
        let mut rows: Vec<(u128, u64)> = keys.iter().enumerate().map(|(i, &key)| (key, i as u64)).collect();
        Random::new(99).shuffle(&mut rows);
        let moved = |i: usize| (ENTRIES + i) as u64;
        measure(&format!("moves {set} retarget"), ENTRIES, build, |index| {
            for (i, &(key, old)) in rows.iter().enumerate() {
                index.retarget_short(key, old, moved(i)).expect("room");
            }
            rows.iter().step_by(7).map(|row| index.find_short(row.0).expect("present")).sum()
        });
        measure(&format!("moves {set} remove and insert"), ENTRIES, build, |index| {
            for (i, &(prefix, old)) in rows.iter().enumerate() {
                assert!(index.remove_short(prefix, old));
                index.insert_short(prefix, moved(i)).expect("room");
            }
            rows.iter().step_by(7).map(|row| index.find_short(row.0).expect("present")).sum()
        });
    }
}

/// Rows whose keys are here.
struct Rows<'r>(&'r [u128]);

impl StoredKeys for Rows<'_> {
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        key.prefix.cmp(&self.0[tid as usize])
    }

    fn prefix(&mut self, tid: u64) -> u128 {
        self.0[tid as usize]
    }
}

/// TIDs alone, of rows that are the keys' array, against entries with keys.
fn bare(pool: &BlockPool) {
    let key = |prefix: u128| KeyRef { prefix, rest: &[] };
    for (set, keys) in [("order lines", order_lines()), ("random", random_keys())] {
        let probes = shuffled(&keys);
        for (name, kind) in [("bare", Kind::Bare), ("with keys", Kind::Ordered)] {
            let build = |index: &mut Index| {
                for (tid, prefix) in keys.iter().enumerate() {
                    index.insert(key(*prefix), tid as u64, &mut Rows(&keys)).expect("room");
                }
                index.len() as u64
            };
            let new = || Index::new(kind, true, &KeyShape::of(&[PartKind::Uuid]), pool);
            measure(&format!("bare insert {set} {name}"), ENTRIES, new, build);
            if !wanted(&format!("bare find {set} {name}")) {
                continue;
            }
            let mut index = new();
            build(&mut index);
            println!("{set} {name}: {:.2} bytes an entry", index.memory_bytes() as f64 / ENTRIES as f64);
            let mut find = |probe: &u128| index.find(key(*probe), &mut Rows(&keys)).expect("present");
            measure(
                &format!("bare find {set} {name}"),
                ENTRIES,
                || (),
                |()| probes.iter().map(&mut find).sum(),
            );
        }
    }
}

fn thousand_keys() -> Vec<u128> {
    let mut random = Random::new(8);
    (0..ENTRIES).map(|_| ShortKey::new().i64(random.below(1_000) as i64).get()).collect()
}

fn main() {
    let pool = BlockPool::new(8 << 30);
    moves(&pool);
    small(&pool);
    bare(&pool);
    let grown = orders_loaded_and_grown();
    worst_insert("orders loaded and grown", &pool, &[PartKind::I16, PartKind::I16, PartKind::I32], &grown);
    equality(&pool);
    ordered(&pool);
    ordered_ranges(&pool);
    ordered_queue(&pool);
}
