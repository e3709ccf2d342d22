//! Histories of random transactions that append to lists, checked for cycles: what the levels of isolation promise, on
//! several partitions, with transactions that are taken back, between threads, and after a crash.
//!
//! Each append has a number of its own, so a list says in which order its writers committed, and what is read says which
//! of them came before. Dependencies are those of Adya: who wrote before whom, who read what whom wrote, who read what
//! whom overwrote. SERIALIZABLE has no cycle of them, nor one with the order in which transactions began and ended. READ
//! COMMITTED has none without the last kind (G0, G1c), and nobody reads what was taken back (G1a) or half of what one has
//! written (G1b). Adya, *Weak Consistency*, 1999; Kingsbury and Alvaro, *Elle*, VLDB 2020.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo::{Config, Connection, Database, Value};
use albireo_env::{CrashDisk, Env};
use albireo_testing::Random;
use parking_lot::Mutex;

use super::blocks::told;
use super::row_locks::at_once;

const KEYS: i32 = 6;

/// What a transaction has done.
#[derive(Clone, PartialEq, Debug)]
enum Event {
    Read(i32, Vec<u64>),
    /// Only how many there were.
    Count(i32, usize),
    Append(i32, u64),
}

#[derive(Clone, Default, Debug)]
struct Tx {
    begun: u64,
    ended: u64,
    committed: bool,
    events: Vec<Event>,
}

/// Runs transactions and keeps what they did.
struct Recorder {
    clock: AtomicU64,
    history: Mutex<Vec<Tx>>,
}

impl Recorder {
    fn new() -> Self {
        Self { clock: AtomicU64::new(1), history: Mutex::default() }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn end(&self, mut tx: Tx, committed: bool) {
        (tx.ended, tx.committed) = (self.tick(), committed);
        self.history.lock().push(tx);
    }

    /// Runs a random statement; whether the transaction goes on.
    fn step(&self, connection: &Connection, random: &mut Random, tx: &mut Tx) -> bool {
        let key = random.below(KEYS as u64) as i32;
        let number = self.tick();
        let (sql, parameters): (&str, Vec<Value>) = match random.below(13) {
            0..=2 => (APPEND, vec![format!("{number};").into(), key.into()]),
            3 | 4 => (ONE, vec![key.into()]),
            5 => ("SELECT id, items FROM list WHERE id = $1 FOR UPDATE", vec![key.into()]),
            6 => ("SELECT id, items FROM list WHERE id BETWEEN $1 AND $1 + 2 ORDER BY id", vec![key.into()]),
            7 | 8 => (NAMED, vec![name_of(key).into()]),
            9 => (GROUP, vec![key.into()]),
            10 | 11 => (NEXT, vec![key.into()]),
            12 => (NEIGHBOURS, vec![key.into(), ((key + 1) % KEYS).into()]),
            _ => ("SELECT id, items FROM list ORDER BY length(items), id", Vec::new()),
        };
        let Ok(outcome) = connection.execute_with(sql, &parameters) else { return false };
        match sql {
            APPEND => tx.events.push(Event::Append(key, number)),
            NAMED | GROUP | NEXT => {
                // A digit of ten bits for each.
                let sum: u64 = told(Ok(vec![outcome])).parse().expect("a number");
                let key = if sql == NEXT { (key + 1) % KEYS } else { key };
                tx.events.push(Event::Count(key, (sum >> (10 * key)) as usize));
            }
            _ => {
                let read = lists(&told(Ok(vec![outcome])));
                tx.events.extend(read.into_iter().map(|(key, list)| Event::Read(key, list)));
            }
        }
        true
    }
}

const APPEND: &str = "UPDATE list SET items = items || $1, n = n + 1 WHERE id = $2";
const ONE: &str = "SELECT id, items FROM list WHERE id = $1";
// By keys that are no whole numbers, by a range, and by keys that are asked for ahead.
const NAMED: &str = "SELECT max(n * weight) FROM list WHERE name = $1";
const GROUP: &str = "SELECT max(n * weight) FROM list WHERE place BETWEEN $1 AND $1";
const NEXT: &str = "SELECT max(b.n * b.weight) FROM list a JOIN list b ON b.id = a.next
    WHERE a.place BETWEEN $1 AND $1";
const NEIGHBOURS: &str = "SELECT a.id, a.items || ' ' || b.id || ':' || b.items
    FROM list a JOIN list b ON b.id = $2 WHERE a.id = $1";

fn name_of(key: i32) -> String {
    format!("a name of more than sixteen bytes: {key}")
}

/// `1:7;9; 2:` as lists by key.
fn lists(rows: &str) -> BTreeMap<i32, Vec<u64>> {
    let list = |row: &str| {
        let (key, items) = row.split_once(':').expect("a key and its items");
        let items = items.split(';').filter(|item| !item.is_empty());
        (key.parse().unwrap(), items.map(|item| item.parse().unwrap()).collect())
    };
    rows.split(' ').map(list).collect()
}

fn fill(db: &Database, partitions: u16) {
    // Shared if there is but one.
    let by = if partitions > 1 { "PARTITION BY HASH (id)" } else { "" };
    db.execute(&format!(
        "CREATE TABLE list (id INTEGER PRIMARY KEY, items TEXT NOT NULL, n BIGINT NOT NULL, name TEXT NOT NULL,
            place INTEGER NOT NULL, next INTEGER NOT NULL, weight BIGINT NOT NULL) {by};
         CREATE INDEX list_by_name ON list (name);
         CREATE INDEX list_by_place ON list (place);
         INSERT INTO list SELECT i % {KEYS}, '', 0, '{}' || i, i, (i + 1) % {KEYS}, 1::bigint << (10 * i)
             FROM generate_series(0, {KEYS} - 1) AS x(i)",
        name_of(0).trim_end_matches('0')
    ))
    .unwrap();
}

/// Has statements become machine code, those that can.
fn warm_up(db: &Database) {
    for _ in 0..100 {
        db.execute_with(APPEND, &["".into(), 1.into()]).unwrap();
        db.execute("UPDATE list SET n = 0").unwrap();
        db.execute_with(ONE, &[1.into()]).unwrap();
        db.execute_with(NAMED, &[name_of(1).into()]).unwrap();
        db.execute_with(GROUP, &[1.into()]).unwrap();
        db.execute_with(NEXT, &[1.into()]).unwrap();
        db.execute_with(NEIGHBOURS, &[1.into(), 2.into()]).unwrap();
    }
}

fn last(db: &Database) -> BTreeMap<i32, Vec<u64>> {
    lists(&told(db.execute("SELECT id, items FROM list")))
}

/// Three clients' transactions, interleaved statement by statement.
fn interleaved(db: &Database, level: &str, random: &mut Random) -> Recorder {
    let recorder = Recorder::new();
    let connections: Vec<Connection> = (0..3).map(|_| db.connect()).collect();
    for connection in &connections {
        connection
            .execute(&format!("SET default_transaction_isolation = '{level}'; SET lock_timeout = '1us'"))
            .unwrap();
    }
    let mut open: Vec<Option<Tx>> = vec![None; connections.len()];
    for _ in 0..150 {
        let who = random.index(connections.len());
        let connection = &connections[who];
        match open[who].take() {
            None if random.percent(20) => {
                // By itself.
                let mut tx = Tx { begun: recorder.tick(), ..Tx::default() };
                let done = recorder.step(connection, random, &mut tx);
                recorder.end(tx, done);
            }
            None => {
                connection.execute("BEGIN").unwrap();
                open[who] = Some(Tx { begun: recorder.tick(), ..Tx::default() });
            }
            Some(tx) if random.percent(25) => {
                let committed = random.percent(80);
                let end = told(connection.execute(if committed { "COMMIT" } else { "ROLLBACK" }));
                recorder.end(tx, committed && end == "ok");
            }
            Some(mut tx) => match recorder.step(connection, random, &mut tx) {
                true => open[who] = Some(tx),
                false => {
                    connection.execute("ROLLBACK").unwrap();
                    recorder.end(tx, false);
                }
            },
        }
    }
    recorder
}

/// Checks a history against what was there in the end.
fn check(recorder: Recorder, last: &BTreeMap<i32, Vec<u64>>, is_serializable: bool) {
    let history = recorder.history.into_inner();
    let mut writers: BTreeMap<u64, usize> = BTreeMap::new();
    for (number, tx) in history.iter().enumerate() {
        for event in &tx.events {
            if let Event::Append(key, item) = event {
                writers.insert(*item, number);
                let times = last[key].iter().filter(|other| *other == item).count();
                assert_eq!(times, usize::from(tx.committed), "item {item} of list {key}");
            }
        }
    }
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    let mut edge = |from: usize, to: usize| {
        if from != to {
            edges[from].push(to);
        }
    };
    for list in last.values() {
        list.windows(2).for_each(|pair| edge(writers[&pair[0]], writers[&pair[1]]));
    }
    for (number, tx) in history.iter().enumerate().filter(|(_, tx)| tx.committed) {
        let mut own: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
        for event in &tx.events {
            let (key, list) = match event {
                Event::Append(key, item) => {
                    own.entry(*key).or_default().push(*item);
                    continue;
                }
                Event::Read(key, list) => (key, list.clone()),
                Event::Count(key, count) => {
                    // It could not be told apart from these.
                    let mine = own.get(key).cloned().unwrap_or_default();
                    let others = count.checked_sub(mine.len()).expect("it counts its own");
                    let seen = last[key].get(..others).expect("G1a: it counts no more than there are");
                    (key, [seen, &mine].concat())
                }
            };
            // What others have committed, then what it has appended itself.
            let mine = own.get(key).map_or(&[][..], Vec::as_slice);
            let (others, suffix) =
                list.split_at(list.len().checked_sub(mine.len()).expect("it sees its own"));
            assert_eq!(suffix, mine, "transaction {number} sees its own: {tx:?}");
            assert!(
                last[key].starts_with(others),
                "G1a: transaction {number} has read {list:?}: {history:?}"
            );
            let next = last[key].get(others.len()).map(|item| writers[item]).filter(|next| *next != number);
            if let Some(before) = others.last().map(|item| writers[item]) {
                assert_ne!(Some(before), next, "G1b: transaction {number} has read a half: {history:?}");
                edge(before, number);
            }
            if let Some(next) = next.filter(|_| is_serializable) {
                edge(number, next);
            }
        }
    }
    if is_serializable {
        for (number, tx) in history.iter().enumerate().filter(|(_, tx)| tx.committed) {
            let later =
                history.iter().enumerate().filter(|(_, other)| other.committed && tx.ended < other.begun);
            later.for_each(|(later, _)| edge(number, later));
        }
    }
    if let Some(cycle) = cycle(&edges) {
        panic!("a cycle: {:?}", cycle.iter().map(|number| &history[*number]).collect::<Vec<_>>());
    }
}

/// Transactions of which each comes before the next, and the last before the first.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    fn visit(at: usize, edges: &[Vec<usize>], seen: &mut [u8], path: &mut Vec<usize>) -> bool {
        seen[at] = 1;
        path.push(at);
        for next in &edges[at] {
            if seen[*next] == 1 {
                let from = path.iter().position(|other| other == next).unwrap();
                path.drain(..from);
                return true;
            }
            if seen[*next] == 0 && visit(*next, edges, seen, path) {
                return true;
            }
        }
        seen[at] = 2;
        path.pop();
        false
    }
    let (mut seen, mut path) = (vec![0; edges.len()], Vec::new());
    (0..edges.len()).any(|at| seen[at] == 0 && visit(at, edges, &mut seen, &mut path)).then_some(path)
}

const LEVELS: [&str; 3] = ["serializable", "repeatable read", "read committed"];

#[test]
fn random_histories_have_no_cycle_that_their_level_excludes() {
    for seed in 0..90 {
        let mut random = Random::new(seed);
        let partitions = 1 + (seed % 4) as u16;
        let db = Database::in_memory(Config { partitions, ..Config::default() }).unwrap();
        fill(&db, partitions);
        if seed / 3 % 2 == 1 {
            warm_up(&db);
        }
        let level = LEVELS[seed as usize % 3];
        let recorder = interleaved(&db, level, &mut random);
        check(recorder, &last(&db), level != "read committed");
    }
}

#[test]
fn what_was_committed_before_a_crash_makes_a_history_without_cycles() {
    for seed in 0..12 {
        let mut random = Random::new(1000 + seed);
        let open = |disk: &CrashDisk| {
            let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
            Database::open_in("/data", Config { partitions: 3, ..Config::default() }, env).unwrap()
        };
        let disk = CrashDisk::new(seed);
        let level = LEVELS[seed as usize % 3];
        let recorder = {
            let db = open(&disk);
            fill(&db, 3);
            let recorder = interleaved(&db, level, &mut random);
            disk.crash();
            recorder
        };
        let again = CrashDisk::new(seed + 1);
        disk.files().iter().for_each(|(path, bytes)| again.put(path, bytes));
        check(recorder, &last(&open(&again)), level != "read committed");
    }
}

#[test]
fn histories_of_threads_have_no_cycle_that_their_level_excludes() {
    for level in LEVELS {
        for partitions in [1, 3] {
            let db = Database::in_memory(Config { partitions, ..Config::default() }).unwrap();
            fill(&db, partitions);
            let recorder = Recorder::new();
            at_once(&db, 4, |connection, number| {
                let mut random = Random::new(number as u64);
                let set = format!("SET default_transaction_isolation = '{level}'; SET lock_timeout = '50ms'");
                connection.execute(&set).unwrap();
                for _ in 0..60 {
                    let mut tx = Tx { begun: recorder.tick(), ..Tx::default() };
                    connection.execute("BEGIN").unwrap();
                    let goes_on =
                        (0..random.between(1, 5)).all(|_| recorder.step(connection, &mut random, &mut tx));
                    let committed =
                        goes_on && random.percent(85) && told(connection.execute("COMMIT")) == "ok";
                    connection.rollback().unwrap();
                    recorder.end(tx, committed);
                }
            });
            let committed = recorder.history.lock().iter().filter(|tx| tx.committed).count();
            assert!(committed > 20, "{committed} at {level} on {partitions}");
            check(recorder, &last(&db), level != "read committed");
        }
    }
}

#[test]
fn checker_finds_the_anomalies() {
    let tx = |begun, ended, events: &[Event]| Tx { begun, ended, committed: true, events: events.to_vec() };
    let read = |key, list: &[u64]| Event::Read(key, list.to_vec());
    let check = |history: Vec<Tx>, last: [&[u64]; 2], is_serializable| {
        let recorder = Recorder { clock: AtomicU64::new(0), history: Mutex::new(history) };
        let last = last.iter().enumerate().map(|(key, list)| (key as i32, list.to_vec())).collect();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(recorder, &last, is_serializable)))
            .is_ok()
    };
    let skew = || {
        vec![tx(1, 9, &[read(0, &[]), Event::Append(1, 11)]), tx(2, 8, &[read(1, &[]), Event::Append(0, 10)])]
    };
    assert!(!check(skew(), [&[10], &[11]], true), "write skew");
    assert!(check(skew(), [&[10], &[11]], false));
    let stale = vec![tx(1, 2, &[Event::Append(0, 10)]), tx(3, 4, &[read(0, &[])])];
    assert!(!check(stale, [&[10], &[]], true), "a read of the past");
    let g0 = || {
        vec![
            tx(1, 9, &[Event::Append(0, 10), Event::Append(1, 11)]),
            tx(2, 8, &[Event::Append(0, 20), Event::Append(1, 21)]),
        ]
    };
    assert!(!check(g0(), [&[10, 20], &[21, 11]], false), "G0");
    assert!(check(g0(), [&[10, 20], &[11, 21]], true));
    let half = vec![tx(1, 9, &[Event::Append(0, 10), Event::Append(0, 11)]), tx(2, 8, &[read(0, &[10])])];
    assert!(!check(half, [&[10, 11], &[]], false), "G1b");
    let lost = vec![tx(1, 2, &[Event::Append(0, 10)])];
    assert!(!check(lost, [&[], &[]], false), "a lost update");
}
