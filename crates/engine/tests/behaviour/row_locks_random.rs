//! Random transactions that lock, change and take back, against a table of locks that is kept by hand.

use std::collections::{BTreeMap, BTreeSet};

use albireo::{Config, Connection, Database};
use albireo_testing::Random;

use super::blocks::told;

const ROWS: i32 = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Read,
    Written,
    Share,
    Update,
}

impl Mark {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Read, mark) | (mark, Self::Read) => mark,
            (one, other) if one == other => one,
            _ => Self::Update,
        }
    }

    fn goes_with(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Read, _) | (_, Self::Read) | (Self::Written, Self::Written) | (Self::Share, Self::Share)
        )
    }
}

/// A transaction as it should be.
#[derive(Default)]
struct Model {
    open: bool,
    failed: bool,
    told: bool,
    step: u32,
    marks: BTreeMap<i32, (Mark, u32)>,
    writes: BTreeMap<i32, i32>,
    savepoints: Vec<(u32, BTreeMap<i32, i32>)>,
}

impl Model {
    fn mark(&mut self, row: i32, mark: Mark) {
        let step = self.step;
        let (there, since) = self.marks.entry(row).or_insert((mark, step));
        if *there == Mark::Read {
            *since = step;
        }
        *there = there.and(mark);
    }

    fn release(&mut self, step: u32) {
        self.marks.values_mut().filter(|(_, since)| *since >= step).for_each(|(mark, _)| *mark = Mark::Read);
    }

    fn fail(&mut self) {
        self.failed = true;
        self.release(self.savepoints.last().map_or(0, |(step, _)| *step));
    }
}

struct World {
    db: Database,
    connections: Vec<Connection>,
    models: Vec<Model>,
    table: BTreeMap<i32, i32>,
    random: Random,
    log: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let partitions = 1 + random.below(2) as u16;
        let by = if random.below(2) == 0 { " PARTITION BY HASH (id)" } else { "" };
        let db = Database::in_memory(Config { partitions, ..Config::default() }).unwrap();
        db.execute(&format!("CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER){by}")).unwrap();
        let table: BTreeMap<i32, i32> = (1..=ROWS).map(|id| (id, id)).collect();
        db.execute(&format!("INSERT INTO test SELECT i, i FROM generate_series(1, {ROWS}) AS x(i)")).unwrap();
        let connections: Vec<Connection> = (0..3).map(|_| db.connect()).collect();
        for connection in &connections {
            let level = "SET default_transaction_isolation = 'read committed'";
            connection.execute(&format!("{level}; SET lock_timeout = '1us'")).unwrap();
        }
        let models = connections.iter().map(|_| Model::default()).collect();
        Self { db, connections, models, table, random, log: vec![format!("seed {seed}, {partitions}{by}")] }
    }

    /// Whether somebody else keeps `who` from that.
    fn is_held(&self, who: usize, row: i32, mark: Mark) -> bool {
        self.models.iter().enumerate().any(|(other, model)| {
            let there = model.marks.get(&row).map_or(Mark::Read, |(mark, _)| *mark);
            other != who && model.open && !model.told && !mark.goes_with(there)
        })
    }

    /// Rows were changed for good by `who`.
    fn changed(&mut self, who: usize, rows: &BTreeMap<i32, i32>) {
        for (row, value) in rows {
            self.table.insert(*row, *value);
            for (_, model) in self.models.iter_mut().enumerate().filter(|(other, _)| *other != who) {
                model.told |= model.open && model.marks.contains_key(row);
            }
        }
    }

    fn check(&mut self, who: usize, sql: &str, expected: &str) {
        self.log.push(format!("{who}: {sql} => {expected}"));
        let done = match self.connections.get(who) {
            Some(connection) => connection.execute(sql),
            None => self.db.execute(sql),
        };
        assert_eq!(told(done), expected, "{:#?}", self.log);
    }

    fn rows(&mut self) -> (i32, i32) {
        let low = 1 + self.random.below(ROWS as u64) as i32;
        (low, (low + self.random.below(3) as i32).min(ROWS))
    }

    fn step(&mut self) {
        let who = self.random.below(4) as usize;
        if who == 3 {
            return self.serial();
        }
        let model = &mut self.models[who];
        if !model.open {
            *model = Model { open: true, ..Model::default() };
            return self.check(who, "BEGIN", "ok");
        }
        if model.failed {
            return match (model.savepoints.is_empty(), self.random.below(2)) {
                (false, 0) => self.roll_back_to(who),
                _ => self.roll_back(who),
            };
        }
        match self.random.below(10) {
            0 => self.commit(who),
            1 => self.roll_back(who),
            2 => {
                let model = &mut self.models[who];
                model.step += 1;
                model.savepoints.push((model.step, model.writes.clone()));
                self.check(who, "SAVEPOINT s", "ok");
            }
            3 if !self.models[who].savepoints.is_empty() => self.roll_back_to(who),
            4 | 5 => self.update(who),
            _ => self.lock(who),
        }
    }

    fn commit(&mut self, who: usize) {
        let model = std::mem::take(&mut self.models[who]);
        let fails = model.told && !model.writes.is_empty();
        if !fails {
            self.changed(who, &model.writes);
        }
        self.check(who, "COMMIT", if fails { "40001" } else { "ok" });
    }

    fn roll_back(&mut self, who: usize) {
        self.models[who] = Model::default();
        self.check(who, "ROLLBACK", "ok");
    }

    fn roll_back_to(&mut self, who: usize) {
        let model = &mut self.models[who];
        let (step, writes) = model.savepoints.last().unwrap().clone();
        model.writes = writes;
        model.failed = false;
        model.release(step);
        self.check(who, "ROLLBACK TO s", "ok");
    }

    fn update(&mut self, who: usize) {
        let (low, high) = self.rows();
        let by = 1 + self.random.below(9) as i32;
        let sql = format!("UPDATE test SET value = value + {by} WHERE id BETWEEN {low} AND {high}");
        let held = (low..=high).any(|row| self.is_held(who, row, Mark::Written));
        if self.models[who].told || held {
            let state = if self.models[who].told { "40001" } else { "55P03" };
            self.models[who].fail();
            return self.check(who, &sql, state);
        }
        for row in low..=high {
            let model = &mut self.models[who];
            let value = model.writes.get(&row).unwrap_or(&self.table[&row]) + by;
            model.writes.insert(row, value);
            model.mark(row, Mark::Written);
        }
        self.check(who, &sql, "ok");
    }

    fn lock(&mut self, who: usize) {
        let (low, high) = self.rows();
        let (mode, mark) =
            if self.random.below(2) == 0 { ("SHARE", Mark::Share) } else { ("UPDATE", Mark::Update) };
        let wait = ["", " NOWAIT", " SKIP LOCKED"][self.random.below(3) as usize];
        let order = ["id", "value * 0, id"][self.random.below(2) as usize];
        let limit = 1 + self.random.below(3) as usize;
        let sql = format!(
            "SELECT id, value FROM test WHERE id BETWEEN {low} AND {high} ORDER BY {order} LIMIT {limit} FOR {mode}{wait}"
        );
        let free: BTreeSet<i32> = (low..=high).filter(|row| !self.is_held(who, *row, mark)).collect();
        let skips = wait == " SKIP LOCKED";
        let got: Vec<i32> = (low..=high).filter(|row| !skips || free.contains(row)).take(limit).collect();
        let told = self.models.get(who).is_some_and(|model| model.told);
        // Outside of a block nobody waits.
        let fails = got.iter().any(|row| !free.contains(row)) && (who < 3 || wait == " NOWAIT");
        if told || fails {
            self.models.get_mut(who).into_iter().for_each(Model::fail);
            return self.check(who, &sql, if told { "40001" } else { "55P03" });
        }
        let mut rows = Vec::new();
        for row in got {
            let mut value = self.table[&row];
            if let Some(model) = self.models.get_mut(who) {
                model.mark(row, mark);
                value = *model.writes.get(&row).unwrap_or(&value);
            }
            rows.push(format!("{row}:{value}"));
        }
        self.check(who, &sql, &rows.join(" "));
    }

    fn serial(&mut self) {
        if self.random.below(4) > 0 {
            return self.lock(3);
        }
        let (low, high) = self.rows();
        let rows: BTreeMap<i32, i32> = (low..=high).map(|row| (row, self.table[&row] * 2)).collect();
        self.changed(3, &rows);
        let sql = format!("UPDATE test SET value = value * 2 WHERE id BETWEEN {low} AND {high}");
        self.check(3, &sql, "ok");
        self.check(3, "UPDATE test SET value = value % 1000 WHERE value >= 1000", "ok");
        let big: BTreeMap<i32, i32> = self
            .table
            .iter()
            .filter(|(_, value)| **value >= 1000)
            .map(|(row, value)| (*row, value % 1000))
            .collect();
        self.changed(3, &big);
    }
}

#[test]
fn random_transactions_lock_as_the_table_of_locks_says() {
    for seed in 0..150 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.step();
        }
        let rows: Vec<String> = world.table.iter().map(|(id, value)| format!("{id}:{value}")).collect();
        world.check(3, "SELECT id, value FROM test ORDER BY id", &rows.join(" "));
    }
}
