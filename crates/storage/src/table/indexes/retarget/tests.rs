//! Rows that move, among ghosts and without memory, and what is found of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlType, TableId, Tid, Value};
use albireo_testing::Random;

use super::*;
use crate::{
    BlockPool, BudgetPolicy, ColumnSpec, IndexKind, IndexSpec, LayoutChoice, RowSet, Savepoint,
    SnapshotRegistry, TableSpec, UndoLog,
};

/// An index of each form: unique and not, short and long keys, with NULL and without.
fn spec() -> TableSpec {
    let column = |name: &str, ty, nullable| ColumnSpec { name: name.to_owned(), ty, nullable };
    let index = |columns: &[u16], unique, kind| IndexSpec {
        name: String::new(),
        columns: columns.iter().copied().map(ColumnId).collect(),
        unique,
        kind,
    };
    let (hash, ordered, bare) = (IndexKind::Hash, IndexKind::Ordered, IndexKind::Bare);
    TableSpec {
        id: TableId(3),
        name: "t".to_owned(),
        columns: vec![
            column("id", SqlType::Integer, false),
            column("wide", SqlType::BigInt, false),
            column("maybe", SqlType::BigInt, true),
            column("name", SqlType::Text, false),
            column("group", SqlType::Integer, false),
        ],
        layout: LayoutChoice::Columns,
        indexes: vec![
            index(&[0], true, hash),
            index(&[0], true, ordered),
            index(&[1, 0], true, hash),
            index(&[3], true, hash),
            index(&[3], true, ordered),
            index(&[2], true, hash),
            index(&[2], true, ordered),
            index(&[4], false, hash),
            index(&[4], false, ordered),
            index(&[4, 3], false, ordered),
            index(&[2, 4], false, hash),
            index(&[0], true, bare),
            index(&[3], true, bare),
            index(&[2], true, bare),
            index(&[4], false, bare),
            index(&[4, 3], false, bare),
        ],
        partition_by: None,
        checks: Vec::new(),
    }
}

fn row(n: i32) -> Vec<Value> {
    let maybe = if n % 3 == 0 { Value::Null } else { Value::BigInt(i64::from(n)) };
    vec![
        Value::Integer(n),
        Value::BigInt(i64::from(n % 7) << 40),
        maybe,
        Value::Text(format!("a name that many rows begin with {n}")),
        Value::Integer(n % 5),
    ]
}

struct World {
    table: Table,
    undo: UndoLog,
    /// The number of each live row.
    rows: BTreeMap<Tid, i32>,
    ghosts: Vec<Tid>,
}

impl World {
    fn new(pool: &BlockPool) -> Self {
        let spec = Arc::new(spec());
        let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::default()));
        let layout = Table::layout_of(&spec).unwrap();
        let table = Table::new(spec, layout, None, &registry);
        Self { table, undo: UndoLog::default(), rows: BTreeMap::new(), ghosts: Vec::new() }
    }

    fn insert(&mut self, n: i32) -> Result<(), TableError> {
        let tid = self.table.insert_values(&mut self.undo, &row(n))?;
        self.rows.insert(tid, n);
        Ok(())
    }

    fn commit(&mut self) {
        let mut freed = Vec::new();
        self.undo.commit(|_, _, tid| freed.push(tid), |_, _, _, _| {});
        freed.into_iter().for_each(|tid| self.table.free_slot(tid));
    }

    /// The values of a row in another slot, which stands in no index.
    fn copy(&mut self, old: Tid) -> Result<Tid, TableError> {
        let spec = Arc::clone(self.table.spec());
        let without = TableSpec { indexes: Vec::new(), ..(*spec).clone() };
        let indexes = std::mem::take(&mut self.table.indexes);
        self.table.spec = Arc::new(without);
        let values = self.table.row(old);
        let new = self.table.insert_values(&mut self.undo, &values);
        (self.table.spec, self.table.indexes) = (spec, indexes);
        new
    }

    /// Takes the copy of a row back, which stands in no index.
    fn forget(&mut self, copy: Tid) {
        let indexes = std::mem::take(&mut self.table.indexes);
        let record = self.undo.pop(Savepoint::START).unwrap();
        assert_eq!(record.tid, copy);
        self.table.undo(&self.undo, &record);
        self.table.indexes = indexes;
    }

    fn move_row(&mut self, old: Tid) -> Result<Tid, TableError> {
        let pool = self.table.rows.pool().clone();
        let new = pool.with_emergency(|| self.copy(old)).unwrap();
        if let Err(error) = self.table.retarget_all(old, new) {
            self.forget(new);
            return Err(error);
        }
        self.table.rows.kill(old).unwrap();
        self.commit();
        self.table.free_slot(old);
        let n = self.rows.remove(&old).unwrap();
        self.rows.insert(new, n);
        Ok(new)
    }

    fn kill(&mut self, tids: &[Tid]) {
        let mut set = RowSet::default();
        tids.iter().for_each(|tid| set.set(*tid, true));
        self.table.prepare_to_kill(&set).unwrap();
        self.table.kill_all(&set);
        self.ghosts.extend(tids);
        self.rows.retain(|tid, _| !set.has(*tid));
    }

    /// Each live row stands in each index once, under its key, and nobody else is found.
    fn check(&self) {
        for index in &self.table.indexes {
            let key_of = |tid| {
                let mut key = KeyBuilder::new();
                build_key(&index.columns, &self.table.rows, Tid(tid), &mut key);
                key.key().to_key()
            };
            index.index.check(|a, b| key_of(a).cmp(&key_of(b)), |tid| key_of(tid).prefix());
            let mut keys: BTreeMap<Vec<u8>, Vec<Tid>> = BTreeMap::new();
            for &tid in self.rows.keys() {
                keys.entry(self.key(index, tid)).or_default().push(tid);
            }
            for tids in keys.values() {
                let mut key = KeyBuilder::new();
                build_key(&index.columns, &self.table.rows, tids[0], &mut key);
                assert_eq!(&index.find_all(&self.table.rows, key.key()), tids);
            }
            if self.ghosts.is_empty() {
                assert_eq!(index.len(), self.rows.len() as u64);
            }
        }
        for (&tid, &n) in &self.rows {
            assert_eq!(self.table.row(tid), row(n));
        }
    }

    fn key(&self, index: &TableIndex, tid: Tid) -> Vec<u8> {
        let mut key = KeyBuilder::new();
        build_key(&index.columns, &self.table.rows, tid, &mut key);
        [&key.key().prefix.to_be_bytes()[..], key.key().rest].concat()
    }
}

#[test]
fn rows_that_move_are_found_where_they_are_in_each_index() {
    let mut world = World::new(&BlockPool::new(64 << 20));
    let mut random = Random::new(5);
    for n in 0..400 {
        world.insert(n).unwrap();
    }
    world.commit();
    for round in 0..600 {
        let at = random.index(world.rows.len());
        let old = *world.rows.keys().nth(at).unwrap();
        world.move_row(old).unwrap();
        if round % 20 == 0 {
            world.check();
        }
    }
    world.check();
}

#[test]
fn rows_that_move_among_ghosts_with_their_keys_are_found_alone() {
    let mut world = World::new(&BlockPool::new(64 << 20));
    let mut random = Random::new(6);
    for n in 0..200 {
        world.insert(n).unwrap();
    }
    world.commit();
    for round in 0..40 {
        // Some die, and rows with their keys come in their places in the indexes.
        let dying: Vec<Tid> = world.rows.keys().copied().filter(|_| random.below(10) == 0).collect();
        let numbers: Vec<i32> = dying.iter().map(|tid| world.rows[tid]).collect();
        world.kill(&dying);
        numbers.iter().for_each(|n| world.insert(*n).unwrap());
        world.commit();
        for _ in 0..10 {
            let at = random.index(world.rows.len());
            let old = *world.rows.keys().nth(at).unwrap();
            world.move_row(old).unwrap();
        }
        world.check();
        if round % 3 == 0 {
            let ghosts = std::mem::take(&mut world.ghosts);
            world.table.tidy_away(ghosts.into_iter());
            world.check();
        }
    }
}

#[test]
fn row_that_cannot_move_for_memory_stays_in_all_indexes() {
    let pool = BlockPool::new(48 << 20);
    let mut world = World::new(&pool);
    for n in 0..8_000 {
        world.insert(n).unwrap();
    }
    world.commit();
    // What is left of the pool goes, but for what the indexes have in reserve.
    let mut held = Vec::new();
    for bytes in [64, 1024, 16_384, 25_600, 29_696, 8192, 65_536] {
        while let Ok(block) = pool.alloc(bytes) {
            held.push((block, bytes));
        }
    }
    let (mut moved, mut refused) = (0, 0);
    let mut random = Random::new(7);
    while refused < 20 {
        assert!(moved < 20_000, "indexes run out of memory");
        let old = *world.rows.keys().nth(random.index(world.rows.len())).unwrap();
        match world.move_row(old) {
            Ok(_) => moved += 1,
            // The first five are unique and take none, so they had followed and are pointed back.
            Err(TableError::OutOfMemory(_)) => {
                refused += 1;
                if refused % 5 == 0 {
                    world.check();
                }
            }
            Err(other) => panic!("unexpected {other}"),
        }
    }
    world.check();
    for (block, bytes) in held {
        // SAFETY: taken above with this size, given back once.
        unsafe { pool.free(block, bytes) };
    }
    drop(world);
    assert_eq!(pool.in_use_bytes(), 0);
}
