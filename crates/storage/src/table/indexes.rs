//! A table's indexes: keys from rows, ties decided in the rows, uniqueness with NULLs.

mod arrivals;
mod aside;
mod bare;
mod build;
mod keys;
mod retarget;
mod sorted;

use albireo_base::{ColumnId, IndexId, SqlType, StatementProgress, TableId, Tid, Value};

use super::{Table, TableError};
use crate::column::HandleError;
use crate::index::{Index, InsertError, Kind};
use crate::key::{KeyBuilder, KeyPart, KeyRef, KeyShape, PartKind, ShortKey};
use crate::layout::{ColumnSpec, Layout, Physical};
use crate::pool::BlockPool;
use crate::rows::Rows;

pub use arrivals::{Arrival, Entering};
pub use aside::{ChangedKeys, IndexAside};
use keys::{KeyColumns, Known, RowKeys, build_key, in_rows, push_value};

/// The kinds of index a user can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// Equality; a plain array when integer keys are dense.
    Hash,
    /// Equality, ranges, prefixes, minimum and maximum: a B+tree.
    Ordered,
    /// The same by TIDs alone, 8 bytes a row: keys are compared in the rows.
    Bare,
}

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Its columns, most significant first.
    pub columns: Vec<ColumnId>,
    /// Whether two rows may have the same key; keys with a NULL never equal another.
    pub unique: bool,
    /// Its kind.
    pub kind: IndexKind,
}

/// A handle to an index; good for every partition of its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexRef {
    table: TableId,
    index: u16,
}

impl IndexRef {
    /// Its number in its table.
    pub fn id(self) -> IndexId {
        IndexId(self.index)
    }
}

/// A search that was begun: see [`Table::ask`].
#[derive(Clone, Copy)]
pub struct Asked<'t> {
    index: &'t TableIndex,
    rows: &'t Rows,
    /// Some rows that stand in it do not live, or are known by other TIDs than those of their slots.
    is_irregular: bool,
    key: u128,
    /// The slot of the key's TID in an array; null: look again. Invariant: nothing has changed the
    /// index since, because it is borrowed.
    slot: *const u64,
}

impl Asked<'_> {
    /// The row with the key, as [`Table::find`] gives it.
    #[inline(always)]
    pub fn tid(self) -> Option<Tid> {
        if self.is_irregular {
            return self.index.live_short(self.rows, self.key);
        }
        if self.slot.is_null() {
            return self.index.find_short(self.rows, self.key);
        }
        // SAFETY: a slot of a page of the index, which is borrowed, so it is still there.
        match unsafe { self.slot.read() } {
            u64::MAX => self.index.find_short(self.rows, self.key),
            tid => Some(self.rows.noted(Tid(tid))),
        }
    }
}

/// One index of a table, filled.
pub(super) struct TableIndex {
    index: Index,
    columns: KeyColumns,
    /// Unique, but for keys with a NULL: the structure takes equal keys, and inserting looks.
    unique_unless_null: bool,
    /// Rows that are about to come, whose keys others have taken.
    taken: Vec<Tid>,
}

impl TableIndex {
    pub(super) fn new(spec: &IndexSpec, columns: &[ColumnSpec], layout: &Layout, pool: &BlockPool) -> Self {
        let parts = spec.columns.iter().map(|c| key_part(&columns[c.index()])).collect();
        let nullable = spec.columns.iter().any(|c| columns[c.index()].nullable);
        let kind = match spec.kind {
            IndexKind::Hash => Kind::Hash,
            IndexKind::Ordered => Kind::Ordered,
            IndexKind::Bare => Kind::Bare,
        };
        Self {
            index: Index::new(kind, spec.unique && !nullable, &KeyShape::new(parts), pool),
            columns: KeyColumns::new(spec, columns, layout),
            unique_unless_null: spec.unique && nullable,
            taken: Vec::new(),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.index.memory_bytes() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.index.len() as u64
    }

    /// Whether a search compares keys in the rows.
    pub(super) fn reads_rows(&self) -> bool {
        !self.index.is_short() || self.index.bare().is_some()
    }

    pub(super) fn covers(&self, column: ColumnId) -> bool {
        self.columns.covers(column)
    }

    /// Puts a row in.
    #[inline]
    pub(super) fn insert(&mut self, rows: &Rows, tid: Tid) -> Result<(), Failure> {
        debug_assert!(rows.is_live(tid) || rows.is_pending(tid), "only live rows stand in indexes (I-1)");
        if self.index.is_short() && !self.unique_unless_null {
            let key = self.short_key(rows, tid);
            return match self.index.insert_short(key, tid.0) {
                Ok(()) => Ok(()),
                Err(error) => self.insert_over(rows, tid, KeyRef { prefix: key, rest: &[] }, error),
            };
        }
        self.insert_slow(rows, tid)
    }

    /// Puts a row in whose key another has: in the place of a ghost.
    #[cold]
    fn insert_over(
        &mut self,
        rows: &Rows,
        tid: Tid,
        key: KeyRef<'_>,
        error: InsertError,
    ) -> Result<(), Failure> {
        match error {
            InsertError::Duplicate(existing) if rows.is_ghost(Tid(existing)) && existing != tid.0 => {
                if rows.is_pending(Tid(existing)) {
                    if !rows.is_live(tid) {
                        return Err(error.into());
                    }
                    self.taken.push(Tid(existing));
                }
                let mut stored = in_rows(&self.columns, rows);
                let removed = self.index.remove(key, existing, &mut stored);
                debug_assert!(removed, "the ghost stood in the index");
                Ok(self.index.insert(key, tid.0, &mut stored)?)
            }
            error => Err(error.into()),
        }
    }

    /// Takes a ghost out, unless another row has its key.
    pub(super) fn remove_ghost(&mut self, rows: &Rows, tid: Tid) {
        debug_assert!(rows.is_ghost(tid), "a ghost is taken out");
        let (mut key, mut stored) = (KeyBuilder::new(), in_rows(&self.columns, rows));
        build_key(&self.columns, rows, tid, &mut key);
        if self.index.is_unique() && self.index.find(key.key(), &mut stored) != Some(tid.0) {
            return;
        }
        self.index.remove(key.key(), tid.0, &mut stored);
    }

    #[inline(never)]
    fn insert_slow(&mut self, rows: &Rows, tid: Tid) -> Result<(), Failure> {
        let mut key = KeyBuilder::new();
        let has_null = build_key(&self.columns, rows, tid, &mut key);
        self.insert_key(rows, tid, key.key(), has_null, |_| None)
    }

    /// Puts a row in by its key. `known` gives other rows' keys, of those that it has at hand.
    fn insert_key<'k>(
        &mut self,
        rows: &Rows,
        tid: Tid,
        key: KeyRef<'_>,
        has_null: bool,
        known: impl Fn(Tid) -> Option<Known<'k>>,
    ) -> Result<(), Failure> {
        let mut stored = RowKeys::knowing(&self.columns, rows, known);
        if self.unique_unless_null && !has_null {
            let is_pending = rows.is_ghost(tid);
            let counts =
                |existing: Tid| !rows.is_ghost(existing) || (is_pending && rows.is_pending(existing));
            for existing in self.index.tids(key, &mut stored).map(Tid) {
                if counts(existing) {
                    return Err(Failure::Duplicate(existing));
                }
                if rows.is_pending(existing) {
                    self.taken.push(existing);
                }
            }
        }
        match self.index.insert(key, tid.0, &mut stored) {
            Ok(()) => Ok(()),
            Err(error) => self.insert_over(rows, tid, key, error),
        }
    }

    /// Takes a row out, which must be in.
    #[inline]
    pub(super) fn remove(&mut self, rows: &Rows, tid: Tid) {
        let removed = match self.index.is_short() {
            true => {
                let key = self.short_key(rows, tid);
                self.index.remove_short(key, tid.0)
            }
            false => {
                let mut key = KeyBuilder::new();
                build_key(&self.columns, rows, tid, &mut key);
                self.index.remove(key.key(), tid.0, &mut in_rows(&self.columns, rows))
            }
        };
        assert!(removed, "a live row stands in each index under its key");
    }

    /// Puts a row back that was in before, while the memory limit is lifted.
    pub(super) fn restore(&mut self, rows: &Rows, tid: Tid) {
        let restored = self.insert(rows, tid);
        assert!(restored.is_ok(), "the key was free when the row left");
    }

    /// A row with this key; of several, the least TID.
    pub(super) fn find(&self, rows: &Rows, key: KeyRef<'_>) -> Option<Tid> {
        if rows.is_irregular() {
            return self.find_all(rows, key).into_iter().next();
        }
        self.index.find(key, &mut in_rows(&self.columns, rows)).map(|tid| rows.noted(Tid(tid)))
    }

    /// The key of values, one for each column; tells whether one is NULL.
    ///
    /// # Panics
    /// A value is of another type than its column.
    pub(super) fn build_key_of<'v>(
        &self,
        value_of: impl Fn(ColumnId) -> &'v Value,
        key: &mut KeyBuilder,
    ) -> bool {
        let mut has_null = false;
        key.clear();
        for at in self.columns.places() {
            let value = value_of(at.column);
            if at.nullable() {
                match value {
                    Value::Null => key.push_null(),
                    _ => key.push_present(),
                };
            }
            has_null |= matches!(value, Value::Null);
            push_value(key, value, at.physical);
        }
        has_null
    }

    /// The rows with this key.
    pub(super) fn find_all(&self, rows: &Rows, key: KeyRef<'_>) -> Vec<Tid> {
        let tids = self.index.tids(key, &mut in_rows(&self.columns, rows));
        let there = tids.map(Tid).filter(|tid| !rows.is_ghost(*tid));
        there.map(|slot| rows.known_as(rows.noted(slot))).collect()
    }

    #[inline(always)]
    fn short_key(&self, rows: &Rows, tid: Tid) -> u128 {
        self.columns.prefix(rows, tid)
    }

    /// The row with a key of at most 16 bytes, if all keys are that short; of several the least TID.
    #[inline(always)]
    fn find_short(&self, rows: &Rows, key: u128) -> Option<Tid> {
        match self.index.bare() {
            None => self.index.find_short(key).map(|tid| rows.noted(Tid(tid))),
            Some(_) => self.find_bare(rows, key),
        }
    }

    #[inline(never)]
    fn find_bare(&self, rows: &Rows, key: u128) -> Option<Tid> {
        let key = KeyRef { prefix: key, rest: &[] };
        self.index.find(key, &mut in_rows(&self.columns, rows)).map(|tid| rows.noted(Tid(tid)))
    }

    /// The live row with a short key; of several the least TID.
    #[cold]
    fn live_short(&self, rows: &Rows, key: u128) -> Option<Tid> {
        let key = KeyRef { prefix: key, rest: &[] };
        let tids = self.index.tids(key, &mut in_rows(&self.columns, rows));
        tids.map(Tid).find(|tid| rows.is_live(*tid)).map(|slot| rows.known_as(rows.noted(slot)))
    }
}

/// Why a row could not enter an index.
pub(super) enum Failure {
    Duplicate(Tid),
    OutOfMemory(crate::pool::OutOfMemory),
}

impl Failure {
    pub(super) fn in_index(self, table: TableId, index: IndexId) -> TableError {
        match self {
            Self::Duplicate(existing) => TableError::Duplicate { table, index, existing },
            Self::OutOfMemory(full) => TableError::OutOfMemory(full),
        }
    }
}

impl From<InsertError> for Failure {
    fn from(error: InsertError) -> Self {
        match error {
            InsertError::Duplicate(tid) => Self::Duplicate(Tid(tid)),
            InsertError::OutOfMemory(full) => Self::OutOfMemory(full),
        }
    }
}

fn key_part(spec: &ColumnSpec) -> KeyPart {
    let kind = match (Physical::of(spec.ty), spec.ty) {
        (Physical::Bool, _) => PartKind::Bool,
        (Physical::I16, _) => PartKind::I16,
        (Physical::I32, _) => PartKind::I32,
        (Physical::I64, _) => PartKind::I64,
        (Physical::I128, _) => PartKind::I128,
        (Physical::F32, _) => PartKind::F32,
        (Physical::F64, _) => PartKind::F64,
        (Physical::Uuid, _) => PartKind::Uuid,
        (_, SqlType::Bytea) => PartKind::Bytes,
        (_, SqlType::Char(n) | SqlType::Varchar(n)) => PartKind::Text(Some(n.saturating_mul(4))),
        (Physical::Inline(_) | Physical::View, _) => PartKind::Text(None),
    };
    KeyPart { kind, nullable: spec.nullable }
}

impl Table {
    /// A handle to the index `name`.
    pub fn index(&self, name: &str) -> Result<IndexRef, HandleError> {
        let position = self.spec.indexes.iter().position(|i| i.name == name);
        let position = position.ok_or_else(|| HandleError::NoIndex(name.to_owned()))?;
        Ok(IndexRef { table: self.spec.id, index: position as u16 })
    }

    #[inline(always)]
    fn table_index(&self, index: IndexRef) -> &TableIndex {
        assert!(index.table == self.spec.id, "an index handle belongs to one table");
        &self.indexes[index.index as usize]
    }

    /// The row with a key of at most 16 bytes, in an index whose keys are all that short; of several
    /// rows the least TID.
    #[inline(always)]
    pub fn find(&self, index: IndexRef, key: ShortKey) -> Option<Tid> {
        let index = self.table_index(index);
        match self.rows.is_irregular() {
            false => index.find_short(&self.rows, key.get()),
            true => index.live_short(&self.rows, key.get()),
        }
    }

    /// A row with the key, in any index; of several, any.
    pub fn find_key(&self, index: IndexRef, key: KeyRef<'_>) -> Option<Tid> {
        self.table_index(index).find(&self.rows, key)
    }

    /// The first 16 bytes of a row's key in an index, as [`Table::between`] compares them.
    ///
    /// # Panics
    /// There is no such index, or no such row.
    pub fn key_prefix(&self, index: IndexId, tid: Tid) -> u128 {
        let index = &self.indexes[index.index()];
        index.columns.prefix(&self.rows, tid)
    }

    /// The rows with the key, in any index.
    pub fn find_all(&self, index: IndexRef, key: KeyRef<'_>) -> Vec<Tid> {
        self.table_index(index).find_all(&self.rows, key)
    }

    /// The rows whose keys begin with `prefix` (at most 16 bytes), in key order, forwards or
    /// backwards; the index is ordered.
    ///
    /// # Panics
    /// The index is a hash index.
    #[inline]
    pub fn prefix(&self, index: IndexRef, prefix: ShortKey) -> impl DoubleEndedIterator<Item = Tid> + '_ {
        let (low, high) = prefix.range();
        self.between(index, low, high)
    }

    /// The row with the least key that begins with `prefix`; the index is ordered.
    ///
    /// # Panics
    /// The index is a hash index.
    #[inline]
    pub fn first(&self, index: IndexRef, prefix: ShortKey) -> Option<Tid> {
        let (low, high) = prefix.range();
        if self.rows.is_irregular() {
            return self.between(index, low, high).next();
        }
        let index = self.table_index(index);
        let tid = index.index.first_in(low, high, &mut in_rows(&index.columns, &self.rows));
        tid.map(|tid| self.rows.noted(Tid(tid)))
    }

    /// The row with the greatest key that begins with `prefix`; the index is ordered.
    ///
    /// # Panics
    /// The index is a hash index.
    #[inline]
    pub fn last(&self, index: IndexRef, prefix: ShortKey) -> Option<Tid> {
        let (low, high) = prefix.range();
        if self.rows.is_irregular() {
            return self.between(index, low, high).next_back();
        }
        let index = self.table_index(index);
        let tid = index.index.last_in(low, high, &mut in_rows(&index.columns, &self.rows));
        tid.map(|tid| self.rows.noted(Tid(tid)))
    }

    /// The rows whose keys' first 16 bytes lie in `low..=high`, in key order.
    ///
    /// # Panics
    /// The index is a hash index.
    #[inline]
    pub fn between(
        &self,
        index: IndexRef,
        low: u128,
        high: u128,
    ) -> impl DoubleEndedIterator<Item = Tid> + '_ {
        self.slots_between(index, low, high).map(|slot| self.rows.known_as(self.rows.noted(slot)))
    }

    /// The first and the last of the rows that [`Table::between`] gives, `each` so many. Nobody has read them for that.
    ///
    /// # Panics
    /// The index is a hash index.
    pub fn ends_between(&self, index: IndexRef, low: u128, high: u128, each: usize) -> Vec<Tid> {
        let mut slots = self.slots_between(index, low, high);
        let mut ends: Vec<Tid> = slots.by_ref().take(each).collect();
        ends.extend(slots.rev().take(each));
        ends.iter_mut().for_each(|slot| *slot = self.rows.known_as(*slot));
        ends
    }

    #[inline]
    fn slots_between(
        &self,
        index: IndexRef,
        low: u128,
        high: u128,
    ) -> impl DoubleEndedIterator<Item = Tid> + '_ {
        let index = self.table_index(index);
        let tids = index.index.range(low, high, &mut in_rows(&index.columns, &self.rows)).map(Tid);
        tids.filter(|tid| !self.rows.is_ghost(*tid))
    }

    /// About how many rows [`Table::between`] gives.
    ///
    /// # Panics
    /// The index is a hash index.
    pub fn estimate_between(&self, index: IndexRef, low: u128, high: u128) -> usize {
        let index = self.table_index(index);
        index.index.estimate(low, high, &mut in_rows(&index.columns, &self.rows))
    }

    /// Begins a search for a key of at most 16 bytes, in an index whose keys are all that short: asks
    /// the processor for what it looks at first. [`Asked::tid`] ends it; between the two, memory has
    /// time to answer, and the place of the key is found once.
    #[inline(always)]
    pub fn ask(&self, index: IndexRef, key: ShortKey) -> Asked<'_> {
        let index = self.table_index(index);
        let (rows, is_irregular) = (&self.rows, self.rows.is_irregular());
        Asked { index, rows, is_irregular, key: key.get(), slot: index.index.ask_short(key.get()) }
    }

    /// Asks the processor to bring what a search for `key` will look at first.
    #[inline(always)]
    pub fn prefetch_key(&self, index: IndexRef, key: ShortKey) {
        self.table_index(index).index.prefetch_short(key.get());
    }

    /// What the index is at present: "dense array", "hash", "b+tree", "b+tree of rows".
    pub fn index_form(&self, index: IndexRef) -> &'static str {
        self.table_index(index).index.kind_name()
    }

    /// Builds an index over the rows that are there, and counts them in `progress`.
    pub fn add_index(
        &mut self,
        spec: std::sync::Arc<super::TableSpec>,
        progress: &StatementProgress,
    ) -> Result<(), TableError> {
        let added = spec.indexes.last().expect("the new shape has one index more");
        assert_eq!(spec.indexes.len(), self.indexes.len() + 1, "the new shape has one index more");
        let mut index = TableIndex::new(added, &spec.columns, &self.rows.layout, self.rows.pool());
        let id = IndexId(self.indexes.len() as u16);
        index.build(&self.rows, progress).map_err(|failure| self.index_error(id, failure))?;
        self.hold_compared(&index, &added.columns)?;
        self.indexes.push(index);
        self.take_spec(spec);
        Ok(())
    }

    /// Drops the index at `position`; `spec` is the shape without it.
    pub fn drop_index(&mut self, position: usize, spec: std::sync::Arc<super::TableSpec>) {
        assert!(position < self.indexes.len(), "the index is there");
        assert_eq!(spec.columns.len(), self.columns, "the columns stay");
        self.indexes.remove(position);
        self.take_spec(spec);
    }

    /// Goes on with another set of indexes.
    fn take_spec(&mut self, spec: std::sync::Arc<super::TableSpec>) {
        (self.guarded, self.identity) = (super::Guarded::new(&spec), super::Identity::of(&spec));
        self.spec = spec;
    }

    pub(super) fn index_error(&self, index: IndexId, failure: Failure) -> TableError {
        let failure = match failure {
            Failure::Duplicate(slot) => Failure::Duplicate(self.rows.known_as(slot)),
            failure => failure,
        };
        failure.in_index(self.spec.id, index)
    }
}
