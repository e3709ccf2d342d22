//! Rows of all temperatures against a map: changes, freezes, packing, evictions, fetches, archives, sessions and new lives of a
//! database, in the order of a seed. What a session has seen it sees for ever, row for row.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo::{Config, Database, FreezeSchedule, QueryResult, ReadOnlySession, Value};
use albireo_env::{Env, MemoryDisk};
use albireo_testing::{Random, test};

use crate::support::{rows_stay, run, small};

/// Keys are below this: rows for three chunks and more.
const KEYS: u64 = 60_000;
const STEPS: usize = 90;
const MOST_SESSIONS: usize = 4;

type Row = (Option<i32>, Option<String>);
type Rows = BTreeMap<i32, Row>;

/// How often things happened that are to happen.
#[derive(Default, Debug)]
struct Counts {
    evicted: u64,
    fetched: u64,
    archives: u64,
    lives: u64,
    compared: u64,
}

struct World<'r> {
    disk: MemoryDisk,
    partitions: u16,
    db: Option<Database>,
    rows: Rows,
    sessions: Vec<(ReadOnlySession, Rows)>,
    has_index: bool,
    random: &'r mut Random,
    counts: &'r mut Counts,
}

/// The text of a row that is one of many.
fn text(key: i32) -> Option<String> {
    match key % 4 {
        0 => None,
        1 => Some(format!("common {}", key % 50)),
        _ => Some(format!("row {key} of {}", key % 1000)),
    }
}

/// The same in SQL.
const TEXT: &str =
    "CASE g % 4 WHEN 0 THEN NULL WHEN 1 THEN 'common ' || g % 50 ELSE 'row ' || g || ' of ' || g % 1000 END";

fn sql_of(value: &Row) -> (String, String) {
    let number = value.0.map_or("NULL".to_owned(), |number| number.to_string());
    (number, value.1.as_ref().map_or("NULL".to_owned(), |text| format!("'{text}'")))
}

impl World<'_> {
    fn open(&mut self) {
        let config = Config {
            partitions: self.partitions,
            freeze: FreezeSchedule::never(),
            eviction: albireo::Eviction::Auto,
            ..small()
        };
        let env = Env { disk: Arc::new(self.disk.clone()), ..Env::real() };
        self.db = Some(Database::open_in("/data", config, env).unwrap());
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open")
    }

    fn key(&mut self) -> i32 {
        self.random.below(KEYS) as i32
    }

    /// Some keys next to each other.
    fn range(&mut self, most: u64) -> (i32, i32) {
        let first = self.key();
        (first, (first + self.random.below(most) as i32).min(KEYS as i32 - 1))
    }

    fn value(&mut self) -> Row {
        let number = (!self.random.percent(10)).then(|| self.random.below(1000) as i32);
        let text = match self.random.below(4) {
            0 => None,
            1 => Some(String::new()),
            2 => Some("changed".to_owned()),
            _ => Some(format!("changed {}", "long ".repeat(self.random.index(12)))),
        };
        (number, text)
    }

    fn insert_many(&mut self) {
        let (first, last) = self.range(20_000);
        run(
            self.db(),
            &format!(
                "INSERT INTO t SELECT g, g % 97, {TEXT} FROM generate_series({first}, {last}) s (g)
                 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = g)"
            ),
        );
        for key in first..=last {
            self.rows.entry(key).or_insert_with(|| (Some(key % 97), text(key)));
        }
    }

    /// Changes a few rows by their keys, in one transaction, which is committed or not.
    fn change_few(&mut self) {
        let (mut statements, mut rows) = (vec!["BEGIN".to_owned()], self.rows.clone());
        for _ in 0..=self.random.index(12) {
            let (key, value) = (self.key(), self.value());
            let (number, text) = sql_of(&value);
            match self.random.below(3) {
                0 => {
                    statements.push(format!(
                        "INSERT INTO t VALUES ({key}, {number}, {text})
                         ON CONFLICT (id) DO UPDATE SET n = excluded.n, t = excluded.t"
                    ));
                    rows.insert(key, value);
                }
                1 => {
                    statements.push(format!("UPDATE t SET n = {number}, t = {text} WHERE id = {key}"));
                    rows.entry(key).and_modify(|row| *row = value);
                }
                _ => {
                    statements.push(format!("DELETE FROM t WHERE id = {key}"));
                    rows.remove(&key);
                }
            }
        }
        let commits = self.random.percent(80);
        statements.push(if commits { "COMMIT" } else { "ROLLBACK" }.to_owned());
        let connection = self.db().connect();
        statements.iter().for_each(|sql| drop(connection.execute(sql).unwrap()));
        if commits {
            self.rows = rows;
        }
    }

    fn change_many(&mut self) {
        let (first, last) = self.range(12_000);
        let within = format!("WHERE id BETWEEN {first} AND {last}");
        match self.random.below(4) {
            0 => {
                run(self.db(), &format!("UPDATE t SET n = n + 1 {within}"));
                let numbers = self.rows.range_mut(first..=last).filter_map(|(_, row)| row.0.as_mut());
                numbers.for_each(|number| *number += 1);
            }
            1 => {
                run(self.db(), &format!("UPDATE t SET t = 'together' {within}"));
                self.rows.range_mut(first..=last).for_each(|(_, row)| row.1 = Some("together".into()));
            }
            2 => {
                run(self.db(), &format!("DELETE FROM t {within}"));
                self.rows.retain(|key, _| !(first..=last).contains(key));
            }
            _ => {
                run(self.db(), "DELETE FROM t WHERE id % 9 = 4");
                self.rows.retain(|key, _| key % 9 != 4);
            }
        }
    }

    fn index(&mut self) {
        let how = if self.random.percent(50) { " WITH (keys = 'none')" } else { "" };
        self.has_index = !self.has_index;
        match self.has_index {
            true => run(self.db(), &format!("CREATE INDEX by_t ON t (t, n){how}")),
            false => run(self.db(), "DROP INDEX by_t"),
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..12 => self.insert_many(),
            12..40 => self.change_few(),
            40..54 => self.change_many(),
            54..66 => run(self.db(), "CALL albireo.freeze('t')"),
            66..76 => self.counts.evicted += u64::from(self.db().evict_frozen() > 0),
            76..82 => {
                run(self.db(), "CHECKPOINT");
                self.counts.archives += 1;
            }
            82..85 => {
                self.sessions.clear();
                self.counts.fetched += self.db().statistics().transactions.chunks_fetched;
                self.db = None;
                self.open();
                self.counts.lives += 1;
            }
            85..94 => {
                if self.sessions.len() == MOST_SESSIONS {
                    self.sessions.remove(0);
                }
                let session = self.db().begin_read_only().unwrap();
                self.sessions.push((session, self.rows.clone()));
            }
            _ => self.index(),
        }
    }

    /// A row, many by a filter, and all that somebody sees.
    fn compare(&mut self, step: usize) {
        let key = self.key();
        let sql = format!("SELECT n, t FROM t WHERE id = {key}");
        let row =
            self.rows.get(&key).map(|row| [row.0.map_or(Value::Null, Value::Integer), text_value(&row.1)]);
        let found = self.db().query(&sql, &[]).unwrap();
        assert_eq!(found.rows().iter().map(Vec::as_slice).next(), row.as_ref().map(|row| &row[..]), "{sql}");
        let at = self.random.index(self.sessions.len() + 1);
        let (session, rows) = match self.sessions.get(at) {
            Some((session, rows)) => (Some(session), rows),
            None => (None, &self.rows),
        };
        let ask = |sql: &str| match session {
            Some(session) => session.query(sql, &[]).unwrap(),
            None => self.db().query(sql, &[]).unwrap(),
        };
        let below = key % 100;
        let right = rows.values().filter(|row| row.0.is_some_and(|number| number < below)).count();
        let found = ask(&format!("SELECT count(*) FROM t WHERE n < {below}")).value(0, 0).to_string();
        assert_eq!(found, right.to_string(), "n < {below}");
        if step.is_multiple_of(4) {
            assert_same(&ask("SELECT id, n, t FROM t ORDER BY id"), rows);
            self.counts.compared += 1;
        }
    }
}

fn text_value(text: &Option<String>) -> Value {
    text.as_ref().map_or(Value::Null, |text| Value::Text(text.as_str().into()))
}

fn assert_same(found: &QueryResult, rows: &Rows) {
    assert_eq!(found.row_count(), rows.len(), "as many rows");
    for (found, (key, row)) in found.rows().iter().zip(rows) {
        let right = [Value::Integer(*key), row.0.map_or(Value::Null, Value::Integer), text_value(&row.1)];
        assert_eq!(found[..], right);
    }
}

fn live(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let partitions = 1 + random.below(2) as u16;
    let mut world = World {
        disk: MemoryDisk::default(),
        partitions,
        db: None,
        rows: Rows::new(),
        sessions: Vec::new(),
        has_index: false,
        random: &mut random,
        counts,
    };
    world.open();
    let by = if partitions > 1 { " PARTITION BY HASH (id)" } else { "" };
    run(world.db(), &format!("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, t TEXT){by}"));
    for step in 0..STEPS {
        world.step();
        world.compare(step);
    }
    assert_same(&world.db().query("SELECT id, n, t FROM t ORDER BY id", &[]).unwrap(), &world.rows);
    for (session, rows) in &world.sessions {
        assert_same(&session.query("SELECT id, n, t FROM t ORDER BY id", &[]).unwrap(), rows);
    }
    world.counts.fetched += world.db().statistics().transactions.chunks_fetched;
}

#[test]
fn hot_frozen_and_evicted_rows_are_those_of_a_map_for_whoever_sees_them() {
    let (test, mut counts) = (test!(), Counts::default());
    test.for_each_seed(0..3, |seed| live(seed, &mut counts));
    if test.has_usual_seeds() && rows_stay() {
        let least = [counts.evicted, counts.fetched, counts.archives, counts.lives].into_iter().min();
        assert!(least > Some(1) && counts.compared > 60, "{counts:?}");
    }
    println!("{counts:?}");
}
