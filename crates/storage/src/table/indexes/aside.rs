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

use albireo_base::{ColumnId, IndexId, StatementProgress, TableId, Tid, Value};
use rustc_hash::FxHashMap;

use super::{Failure, KeyColumns, Known, RowKeys, Table, TableError, TableIndex, build_key};
use crate::key::{KeyBuilder, KeyRef};
use crate::registry::ColumnSet;
use crate::rows::{Rows, SeenRows};
use crate::table::TableSpec;

/// An index of one partition's rows that its table does not have yet.
pub struct IndexAside {
    table: TableId,
    /// The table's shape with it.
    spec: Arc<TableSpec>,
    /// Its number in that.
    id: IndexId,
    index: TableIndex,
    /// Where the keys of rows are that have not been read again.
    first: SeenRows,
    /// The keys of those that have.
    later: FxHashMap<Tid, Option<OwnKey>>,
    /// Rows that came while another had their key, which is to leave.
    waiting: FxHashMap<Tid, OwnKey>,
}

/// A row's key, apart from the row.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::table) struct OwnKey {
    prefix: u128,
    rest: Box<[u8]>,
    has_null: bool,
}

impl OwnKey {
    fn new(key: &KeyBuilder, has_null: bool) -> Self {
        let KeyRef { prefix, rest } = key.key();
        Self { prefix, rest: rest.into(), has_null }
    }

    fn get(&self) -> KeyRef<'_> {
        KeyRef { prefix: self.prefix, rest: &self.rest }
    }

    fn known(&self) -> Known<'_> {
        Known { prefix: Some(self.prefix), rest: &self.rest }
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
    /// The columns that it compares in the rows, if it does.
    pub(crate) fn compared_columns(&self) -> Option<ColumnSet> {
        let columns = &self.spec.indexes[self.id.index()].columns;
        self.index.reads_rows().then(|| ColumnSet::of(columns.iter().copied()))
    }

    /// Makes an index of `spec` for the rows of a snapshot, and counts them in `progress`.
    ///
    /// # Errors
    /// Two rows have the same key, or memory is at its limit.
    pub(crate) fn new(
        first: SeenRows,
        spec: Arc<TableSpec>,
        id: IndexId,
        progress: &StatementProgress,
    ) -> Result<Self, TableError> {
        let mut index =
            TableIndex::new(&spec.indexes[id.index()], &spec.columns, &first.layout, first.pool());
        let (table, later, waiting) = (spec.id, FxHashMap::default(), FxHashMap::default());
        index.build(&first, progress).map_err(|failure| failure.in_index(table, id))?;
        Ok(Self { table, spec, id, index, first, later, waiting })
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
                Err(failure) => return Err(failure.in_index(self.table, self.id)),
            }
        }
        Ok(waiting)
    }

    /// The key under which it has a row, while the rows that it was made of still show it as it was.
    pub(in crate::table) fn key_of(&self, tid: Tid) -> Option<OwnKey> {
        match self.later.get(&tid) {
            Some(key) => key.clone(),
            None => present_key(&self.index.columns, &self.first, tid, &mut KeyBuilder::new()),
        }
    }

    /// The key of a row of the table.
    pub(in crate::table) fn key_in(&self, table: &Table, tid: Tid) -> Option<OwnKey> {
        present_key(&self.index.columns, &table.rows, tid, &mut KeyBuilder::new())
    }

    /// The key of values, each of its column's type and as it is stored.
    pub(in crate::table) fn key_with(&self, value: impl Fn(ColumnId) -> Value) -> OwnKey {
        let columns = self.spec.indexes[self.id.index()].columns.iter();
        let values: Vec<(ColumnId, Value)> = columns.map(|column| (*column, value(*column))).collect();
        let of = |column| &values.iter().find(|(its, _)| *its == column).expect("a column of the index").1;
        let mut key = KeyBuilder::new();
        let has_null = self.index.build_key_of(of, &mut key);
        OwnKey::new(&key, has_null)
    }

    /// Gives a row another key, in the place of that [which it has](Self::key_of); none if it has died. It waits while
    /// another row has that.
    ///
    /// # Errors
    /// As [`IndexAside::enter`].
    pub(in crate::table) fn renew(
        &mut self,
        tid: Tid,
        before: Option<OwnKey>,
        now: Option<OwnKey>,
    ) -> Result<(), TableError> {
        let waited = self.waiting.remove(&tid).is_some();
        if before == now && !waited {
            // A text may lie elsewhere.
            if self.has_texts() {
                self.later.insert(tid, now);
            }
            return Ok(());
        }
        if let Some(before) = before {
            self.take_out(tid, before);
        }
        self.later.insert(tid, None);
        let Some(key) = now else { return Ok(()) };
        match self.put(tid, &key) {
            Ok(()) => drop(self.later.insert(tid, Some(key))),
            Err(Failure::Duplicate(_)) => drop(self.waiting.insert(tid, key)),
            Err(failure) => return Err(failure.in_index(self.table, self.id)),
        }
        Ok(())
    }

    fn has_texts(&self) -> bool {
        self.index.columns.places().any(|at| at.physical.is_string())
    }

    /// Enters the rows that wait: all that were to leave have.
    ///
    /// # Errors
    /// As [`IndexAside::enter`], or two rows have the same key.
    pub(in crate::table) fn settle(&mut self) -> Result<(), TableError> {
        for (tid, key) in std::mem::take(&mut self.waiting) {
            self.insert(tid, Some(key)).map_err(|failure| failure.in_index(self.table, self.id))?;
        }
        Ok(())
    }

    /// The index, and its number.
    pub(in crate::table) fn into_index(self) -> (IndexId, TableIndex) {
        (self.id, self.index)
    }

    /// Whether a column is in its keys.
    pub(in crate::table) fn covers(&self, column: ColumnId) -> bool {
        self.index.covers(column)
    }

    /// Takes a row out, if it is in.
    fn leave(&mut self, tid: Tid) {
        if let Some(gone) = self.key_of(tid) {
            self.take_out(tid, gone);
        }
        self.later.insert(tid, None);
    }

    fn take_out(&mut self, tid: Tid, gone: OwnKey) {
        let Self { index, first, later, .. } = self;
        let known = |stored| match stored == tid {
            true => Some(gone.known()),
            false => later.get(&stored).and_then(Option::as_ref).map(OwnKey::known),
        };
        let mut stored = RowKeys::knowing(&index.columns, first, known);
        assert!(index.index.remove(gone.get(), tid.0, &mut stored), "a row stands in it under its key (I-1)");
    }

    /// Puts a row in that is not.
    fn insert(&mut self, tid: Tid, key: Option<OwnKey>) -> Result<(), Failure> {
        if let Some(key) = &key {
            self.put(tid, key)?;
        }
        self.later.insert(tid, key);
        Ok(())
    }

    fn put(&mut self, tid: Tid, key: &OwnKey) -> Result<(), Failure> {
        let later = &self.later;
        let known = |stored| later.get(&stored).and_then(Option::as_ref).map(OwnKey::known);
        self.index.insert_key(&self.first, tid, key.get(), key.has_null, known)
    }
}

/// The key of a row that lives.
fn present_key(columns: &KeyColumns, rows: &Rows, tid: Tid, key: &mut KeyBuilder) -> Option<OwnKey> {
    rows.is_live(tid).then(|| {
        let has_null = build_key(columns, rows, tid, key);
        OwnKey::new(key, has_null)
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
        let IndexAside { mut index, spec, id, .. } = aside;
        assert_eq!(spec.indexes.len(), self.indexes.len() + 1, "the new shape has one index more");
        assert_eq!(id.index(), self.indexes.len(), "it is the last one");
        for tid in waiting {
            // All others stand in it as they are now.
            if self.rows.is_live(tid) {
                index.insert(&self.rows, tid).map_err(|failure| failure.in_index(spec.id, id))?;
            }
        }
        assert_eq!(
            index.len(),
            self.rows.live_rows,
            "each live row stands in the index once (I-1 of `table`)"
        );
        // Of a chunk that was frozen and evicted in the last moment (`Table::keys_compared_by`).
        self.hold_compared(&index, &spec.indexes[id.index()].columns)?;
        self.indexes.push(index);
        self.take_spec(spec);
        Ok(())
    }
}
