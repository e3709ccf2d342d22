//! A table's indexes: keys from rows, ties decided in the rows, uniqueness with NULLs.

mod arrivals;
mod aside;
mod build;
mod retarget;
mod sorted;

use std::cmp::Ordering;

use albireo_base::{ColumnId, IndexId, SqlType, StatementProgress, TableId, Tid, Value};

use super::{Table, TableError};
use crate::column::HandleError;
use crate::index::{Index, InsertError, Kind};
use crate::key::{KeyBuilder, KeyPart, KeyRef, KeyShape, PartKind, ShortKey};
use crate::layout::{ColumnLocation, ColumnSpec, Layout, Physical};
use crate::pool::BlockPool;
use crate::rows::Rows;

pub use arrivals::{Arrival, Entering};
pub use aside::{ChangedKeys, IndexAside};

/// The kinds of index a user can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// Equality; a plain array when integer keys are dense.
    Hash,
    /// Equality, ranges, prefixes, minimum and maximum: a B+tree.
    Ordered,
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
    index: &'t Index,
    /// If some rows that stand in it do not live, or are known by other TIDs than those of their slots.
    rows: Option<&'t Rows>,
    key: u128,
    /// The slot of the key's TID in an array; null: look again. Invariant: nothing has changed the
    /// index since, because it is borrowed.
    slot: *const u64,
}

impl Asked<'_> {
    /// The row with the key, as [`Table::find`] gives it.
    #[inline(always)]
    pub fn tid(self) -> Option<Tid> {
        if let Some(rows) = self.rows {
            return live_short(self.index, rows, self.key);
        }
        if self.slot.is_null() {
            return self.index.find_short(self.key).map(Tid);
        }
        // SAFETY: a slot of a page of the index, which is borrowed, so it is still there.
        match unsafe { self.slot.read() } {
            u64::MAX => self.index.find_short(self.key).map(Tid),
            tid => Some(Tid(tid)),
        }
    }
}

/// The live row with a short key; of several the least TID.
#[cold]
fn live_short(index: &Index, rows: &Rows, key: u128) -> Option<Tid> {
    let key = KeyRef { prefix: key, rest: &[] };
    let mut there = index.tids(key, crate::key::always_equal).map(Tid).filter(|tid| rows.is_live(*tid));
    there.next().map(|slot| rows.known_as(slot))
}

/// One index of a table, filled.
pub(super) struct TableIndex {
    index: Index,
    columns: Vec<KeyColumn>,
    integers: Option<IntegerKey>,
    /// Unique, but for keys with a NULL: the structure takes equal keys, and inserting looks.
    unique_unless_null: bool,
    /// Rows that are about to come, whose keys others have taken.
    taken: Vec<Tid>,
}

#[derive(Clone, Copy)]
struct KeyColumn {
    at: ColumnLocation,
    bytea: bool,
}

/// The columns of a short key are all integers without NULL, at most 16 bytes together: the usual
/// case, for which a key is a few loads and shifts.
#[derive(Clone, Copy)]
struct IntegerKey {
    /// Bits of the key.
    bits: u32,
}

impl IntegerKey {
    fn of(columns: &[KeyColumn]) -> Option<Self> {
        let mut bits = 0;
        for KeyColumn { at, .. } in columns {
            bits += match at.physical {
                Physical::I16 | Physical::I32 | Physical::I64 if !at.nullable() => 8 * u32::from(at.width),
                _ => return None,
            };
        }
        (1..=128).contains(&bits).then_some(Self { bits })
    }
}

impl TableIndex {
    pub(super) fn new(spec: &IndexSpec, columns: &[ColumnSpec], layout: &Layout, pool: &BlockPool) -> Self {
        let parts = spec.columns.iter().map(|c| key_part(&columns[c.index()])).collect();
        let nullable = spec.columns.iter().any(|c| columns[c.index()].nullable);
        let kind = match spec.kind {
            IndexKind::Hash => Kind::Hash,
            IndexKind::Ordered => Kind::Ordered,
        };
        let key_columns: Vec<KeyColumn> = spec
            .columns
            .iter()
            .map(|&c| KeyColumn { at: *layout.column(c), bytea: columns[c.index()].ty == SqlType::Bytea })
            .collect();
        Self {
            index: Index::new(kind, spec.unique && !nullable, &KeyShape::new(parts), pool),
            integers: IntegerKey::of(&key_columns),
            columns: key_columns,
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

    pub(super) fn covers(&self, column: ColumnId) -> bool {
        self.columns.iter().any(|key| key.at.column == column)
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
                let (columns, mut other) = (&self.columns, KeyBuilder::new());
                let mut tie = |stored| key_order(columns, rows, key, Tid(stored), &mut other);
                let removed = self.index.remove(key, existing, &mut tie);
                debug_assert!(removed, "the ghost stood in the index");
                Ok(self.index.insert(key, tid.0, tie)?)
            }
            error => Err(error.into()),
        }
    }

    /// Takes a ghost out, unless another row has its key.
    pub(super) fn remove_ghost(&mut self, rows: &Rows, tid: Tid) {
        debug_assert!(rows.is_ghost(tid), "a ghost is taken out");
        let (columns, mut key, mut other) = (&self.columns, KeyBuilder::new(), KeyBuilder::new());
        build_key(columns, rows, tid, &mut key);
        let mut tie = |stored| key_order(columns, rows, key.key(), Tid(stored), &mut other);
        if self.index.is_unique() && self.index.find(key.key(), &mut tie) != Some(tid.0) {
            return;
        }
        self.index.remove(key.key(), tid.0, tie);
    }

    #[inline(never)]
    fn insert_slow(&mut self, rows: &Rows, tid: Tid) -> Result<(), Failure> {
        let mut key = KeyBuilder::new();
        let has_null = build_key(&self.columns, rows, tid, &mut key);
        self.insert_key(rows, tid, key.key(), has_null, |_| None)
    }

    /// Puts a row in by its key. `known` gives what is behind the first 16 bytes of other rows' keys, of
    /// those that it has at hand.
    fn insert_key<'k>(
        &mut self,
        rows: &Rows,
        tid: Tid,
        key: KeyRef<'_>,
        has_null: bool,
        known: impl Fn(Tid) -> Option<&'k [u8]>,
    ) -> Result<(), Failure> {
        let columns = &self.columns;
        let mut other = KeyBuilder::new();
        let mut tie = |stored: u64| match known(Tid(stored)) {
            Some(rest) => key.rest.cmp(rest),
            None => key_order(columns, rows, key, Tid(stored), &mut other),
        };
        if self.unique_unless_null && !has_null {
            let is_pending = rows.is_ghost(tid);
            let counts =
                |existing: Tid| !rows.is_ghost(existing) || (is_pending && rows.is_pending(existing));
            for existing in self.index.tids(key, &mut tie).map(Tid) {
                if counts(existing) {
                    return Err(Failure::Duplicate(existing));
                }
                if rows.is_pending(existing) {
                    self.taken.push(existing);
                }
            }
        }
        match self.index.insert(key, tid.0, tie) {
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
                let columns = &self.columns;
                let mut other = KeyBuilder::new();
                let tie = |stored: u64| key_order(columns, rows, key.key(), Tid(stored), &mut other);
                self.index.remove(key.key(), tid.0, tie)
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
        let mut other = KeyBuilder::new();
        self.index.find(key, |stored| key_order(&self.columns, rows, key, Tid(stored), &mut other)).map(Tid)
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
        for KeyColumn { at, .. } in &self.columns {
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
        let mut other = KeyBuilder::new();
        let tie = |stored| key_order(&self.columns, rows, key, Tid(stored), &mut other);
        let there = self.index.tids(key, tie).map(Tid).filter(|tid| !rows.is_ghost(*tid));
        there.map(|slot| rows.known_as(slot)).collect()
    }

    #[inline(always)]
    fn short_key(&self, rows: &Rows, tid: Tid) -> u128 {
        let Some(IntegerKey { bits }) = self.integers else { return self.short_key_general(rows, tid) };
        let Some(row) = rows.find_place(tid) else { return self.short_key_general(rows, tid) };
        let mut key = 0u128;
        for KeyColumn { at, .. } in &self.columns {
            // The encoding of `ShortKey`: most significant column first, sign bits flipped.
            // SAFETY: located above, and `rows` is borrowed since; the columns are of its layout, and
            // integers of this width.
            key = unsafe {
                let place = rows.known_place(row, at);
                match at.width {
                    2 => key << 16 | u128::from(u16::from_le(place.cast::<u16>().read_unaligned()) ^ 1 << 15),
                    4 => key << 32 | u128::from(u32::from_le(place.cast::<u32>().read_unaligned()) ^ 1 << 31),
                    _ => key << 64 | u128::from(u64::from_le(place.cast::<u64>().read_unaligned()) ^ 1 << 63),
                }
            };
        }
        key << (128 - bits)
    }

    #[cold]
    fn short_key_general(&self, rows: &Rows, tid: Tid) -> u128 {
        let mut key = KeyBuilder::new();
        build_key(&self.columns, rows, tid, &mut key);
        key.key().prefix
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

/// Builds the key of a row; tells whether it holds a NULL.
fn build_key(columns: &[KeyColumn], rows: &Rows, tid: Tid, key: &mut KeyBuilder) -> bool {
    let mut has_null = false;
    key.clear();
    for KeyColumn { at, bytea } in columns {
        if at.nullable() {
            if rows.is_null(tid, at) {
                key.push_null();
                has_null = true;
                continue;
            }
            key.push_present();
        }
        match at.physical {
            Physical::Bool => key.push_bool(rows.get(tid, at)),
            Physical::I16 => key.push_i16(rows.get::<i16>(tid, at)),
            Physical::I32 => key.push_i32(rows.get::<i32>(tid, at)),
            Physical::I64 => key.push_i64(rows.get::<i64>(tid, at)),
            Physical::I128 => key.push_i128(rows.get::<i128>(tid, at)),
            Physical::F32 => key.push_f32(rows.get::<f32>(tid, at)),
            Physical::F64 => key.push_f64(rows.get::<f64>(tid, at)),
            Physical::Uuid => key.push_uuid(rows.get(tid, at)),
            Physical::Inline(_) | Physical::View if *bytea => key.push_bytes(&rows.text(tid, at)),
            Physical::Inline(_) | Physical::View => key.push_str(&rows.str(tid, at)),
        };
    }
    has_null
}

/// Pushes a value; nothing for NULL, whose mark says all.
fn push_value(key: &mut KeyBuilder, value: &Value, physical: Physical) {
    match value {
        Value::Null => key,
        Value::Bool(v) => key.push_bool(*v),
        Value::SmallInt(v) => key.push_i16(*v),
        Value::Integer(v) | Value::Date(v) => key.push_i32(*v),
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => key.push_i64(*v),
        Value::Real(v) => key.push_f32(*v),
        Value::Double(v) => key.push_f64(*v),
        Value::Decimal(v) if physical == Physical::I64 => key.push_i64(v.unscaled as i64),
        Value::Decimal(v) => key.push_i128(v.unscaled),
        Value::Text(text) => key.push_str(text),
        Value::Bytea(bytes) => key.push_bytes(bytes),
        Value::Uuid(v) => key.push_uuid(*v),
    };
}

/// The order of `key` relative to the row `stored`, whose key has the same prefix.
fn key_order(
    columns: &[KeyColumn],
    rows: &Rows,
    key: KeyRef<'_>,
    stored: Tid,
    other: &mut KeyBuilder,
) -> Ordering {
    if key.rest.is_empty() {
        // Equal prefixes and no rest: equal keys (K-1 of `key`), unless the probe is a part of one.
        return Ordering::Equal;
    }
    build_key(columns, rows, stored, other);
    key.rest.cmp(other.key().rest)
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
        let index = &self.table_index(index).index;
        match self.rows.is_irregular() {
            false => index.find_short(key.get()).map(Tid),
            true => live_short(index, &self.rows, key.get()),
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
        if index.index.is_short() {
            return index.short_key(&self.rows, tid);
        }
        let mut key = KeyBuilder::new();
        build_key(&index.columns, &self.rows, tid, &mut key);
        key.key().prefix
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
        self.table_index(index).index.first_in(low, high).map(Tid)
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
        self.table_index(index).index.last_in(low, high).map(Tid)
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
        let tids = self.table_index(index).index.range(low, high).map(|(_, tid)| Tid(tid));
        tids.filter(|tid| !self.rows.is_ghost(*tid)).map(|slot| self.rows.known_as(slot))
    }

    /// About how many rows [`Table::between`] gives.
    ///
    /// # Panics
    /// The index is a hash index.
    pub fn estimate_between(&self, index: IndexRef, low: u128, high: u128) -> usize {
        self.table_index(index).index.estimate(low, high)
    }

    /// Begins a search for a key of at most 16 bytes, in an index whose keys are all that short: asks
    /// the processor for what it looks at first. [`Asked::tid`] ends it; between the two, memory has
    /// time to answer, and the place of the key is found once.
    #[inline(always)]
    pub fn ask(&self, index: IndexRef, key: ShortKey) -> Asked<'_> {
        let index = &self.table_index(index).index;
        let rows = self.rows.is_irregular().then_some(&self.rows);
        Asked { index, rows, key: key.get(), slot: index.ask_short(key.get()) }
    }

    /// Asks the processor to bring what a search for `key` will look at first.
    #[inline(always)]
    pub fn prefetch_key(&self, index: IndexRef, key: ShortKey) {
        self.table_index(index).index.prefetch_short(key.get());
    }

    /// What the index is at present: "dense array", "hash", "b+tree".
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
