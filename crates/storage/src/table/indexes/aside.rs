//! An index made beside its table while others go on reading and writing it.
//!
//! Its first rows are those of a snapshot. Rows that were changed since are told by whoever made it; they are read in
//! the table in small steps ([`IndexAside::read`]), for which alone the table is owned, and entered when it is not
//! ([`IndexAside::enter`]). With the last of them it becomes an index of the table ([`Table::install_index`]).
//!
//! Invariants:
//! - I-1 Each row stands in it once, under the key that it had when it was last read; a row that was dead then in none.
//! - I-2 A key that two rows have when they were read at different moments is no fault: the later one waits, and is
//!   read again. Only keys that were read at one moment are.

use std::sync::Arc;

use albireo_base::{IndexId, StatementProgress, TableId, Tid};
use rustc_hash::FxHashMap;

use super::{Failure, KeyColumn, Table, TableError, TableIndex, build_key, key_order};
use crate::key::{KeyBuilder, KeyRef};
use crate::rows::{FrozenRows, Rows};
use crate::table::TableSpec;

/// An index of one partition's rows that its table does not have yet.
pub struct IndexAside {
    table: TableId,
    /// The table's shape with it, as its last one.
    spec: Arc<TableSpec>,
    index: TableIndex,
    /// Where the keys of rows are that have not been read again.
    first: FrozenRows,
    /// The keys of those that have.
    later: FxHashMap<Tid, Option<OwnKey>>,
}

/// A row's key, apart from the row.
struct OwnKey {
    prefix: u128,
    rest: Box<[u8]>,
    has_null: bool,
}

impl OwnKey {
    fn get(&self) -> KeyRef<'_> {
        KeyRef { prefix: self.prefix, rest: &self.rest }
    }
}

/// Rows that were changed, with their present keys; none if they are dead.
#[derive(Default)]
pub struct ChangedKeys(Vec<(Tid, Option<OwnKey>)>);

impl ChangedKeys {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IndexAside {
    /// Makes the last index of `spec` for the rows of a snapshot, and counts them in `progress`.
    ///
    /// # Errors
    /// Two rows have the same key, or memory is at its limit.
    pub(crate) fn new(
        first: FrozenRows,
        spec: Arc<TableSpec>,
        progress: &StatementProgress,
    ) -> Result<Self, TableError> {
        let added = spec.indexes.last().expect("the shape has the index");
        let mut index = TableIndex::new(added, &spec.columns, &first.layout, first.pool());
        let (table, later) = (spec.id, FxHashMap::default());
        index.build(&first, progress).map_err(|failure| failure.in_index(table, last_of(&spec)))?;
        Ok(Self { table, spec, index, first, later })
    }

    /// Reads the present keys of rows in the table: of each once.
    ///
    /// # Panics
    /// It is another table.
    pub fn read(&self, table: &Table, tids: impl Iterator<Item = Tid>, keys: &mut ChangedKeys) {
        assert!(table.spec.id == self.table, "an index is of one table");
        let mut key = KeyBuilder::new();
        keys.0.extend(tids.map(|tid| (tid, present_key(&self.index.columns, &table.rows, tid, &mut key))));
    }

    /// Enters rows that were read, in the place of what it has of them. Gives those whose keys others have that
    /// may not have been read at the same moment: they stand in it no longer, and are to be read again.
    ///
    /// # Errors
    /// Memory is at its limit; it is of no use any more.
    pub fn enter(&mut self, keys: ChangedKeys) -> Result<Vec<Tid>, TableError> {
        let mut waiting = Vec::new();
        keys.0.iter().for_each(|(tid, _)| self.leave(*tid));
        for (tid, key) in keys.0 {
            match self.insert(tid, key) {
                Ok(()) => {}
                Err(Failure::Duplicate(_)) => waiting.push(tid),
                Err(failure) => return Err(failure.in_index(self.table, last_of(&self.spec))),
            }
        }
        Ok(waiting)
    }

    /// Takes a row out, if it is in.
    fn leave(&mut self, tid: Tid) {
        let Self { index, first, later, .. } = self;
        let mut key = KeyBuilder::new();
        let gone = match later.remove(&tid) {
            Some(gone) => gone,
            None => present_key(&index.columns, first, tid, &mut key),
        };
        if let Some(gone) = gone {
            let (later, columns) = (&*later, &index.columns);
            let mut other = KeyBuilder::new();
            let tie = |stored| match later.get(&Tid(stored)) {
                Some(known) => gone.rest.as_ref().cmp(known.as_ref().map_or(&[][..], |key| &key.rest)),
                None if Tid(stored) == tid => std::cmp::Ordering::Equal,
                None => key_order(columns, first, gone.get(), Tid(stored), &mut other),
            };
            assert!(index.index.remove(gone.get(), tid.0, tie), "a row stands in it under its key (I-1)");
        }
        later.insert(tid, None);
    }

    /// Puts a row in that is not.
    fn insert(&mut self, tid: Tid, key: Option<OwnKey>) -> Result<(), Failure> {
        if let Some(key) = &key {
            let later = &self.later;
            let known = |stored| later.get(&stored).and_then(Option::as_ref).map(|key| &*key.rest);
            self.index.insert_key(&self.first, tid, key.get(), key.has_null, known)?;
        }
        self.later.insert(tid, key);
        Ok(())
    }
}

fn last_of(spec: &TableSpec) -> IndexId {
    IndexId((spec.indexes.len() - 1) as u16)
}

/// The key of a row that lives.
fn present_key(columns: &[KeyColumn], rows: &Rows, tid: Tid, key: &mut KeyBuilder) -> Option<OwnKey> {
    rows.is_live(tid).then(|| {
        let has_null = build_key(columns, rows, tid, key);
        let KeyRef { prefix, rest } = key.key();
        OwnKey { prefix, rest: rest.into(), has_null }
    })
}

impl Table {
    /// Makes an index that was made beside the table one of its own, after the rows that were changed last have been
    /// read and entered.
    ///
    /// # Errors
    /// These are read and entered here once more, and a key is there twice.
    ///
    /// # Panics
    /// It is of another table, or lacks rows.
    pub fn install_index(
        &mut self,
        mut aside: IndexAside,
        changed: impl Iterator<Item = Tid>,
    ) -> Result<(), TableError> {
        let mut keys = ChangedKeys::default();
        aside.read(self, changed, &mut keys);
        let waiting = aside.enter(keys)?;
        let IndexAside { mut index, spec, .. } = aside;
        assert_eq!(spec.indexes.len(), self.indexes.len() + 1, "the new shape has one index more");
        for tid in waiting {
            // All others stand in it as they are now.
            if self.rows.is_live(tid) {
                index.insert(&self.rows, tid).map_err(|failure| failure.in_index(spec.id, last_of(&spec)))?;
            }
        }
        assert_eq!(
            index.len(),
            self.rows.live_rows,
            "each live row stands in the index once (I-1 of `table`)"
        );
        self.indexes.push(index);
        self.take_spec(spec);
        Ok(())
    }
}
