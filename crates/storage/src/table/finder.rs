//! Finding rows by all their values, where no index does: for write records of tables without one.
//!
//! Looking at all rows for each record would make N deletes cost N * N. So once that has cost as much as looking
//! at every row a few times, all rows are entered here by a hash of their values.
//!
//! I-1 What is here is a hint: a row is looked at before it is taken, and what is not found here is looked for
//! among all rows. So nobody has to tell of changes made in other ways; they cost time alone.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use albireo_base::{Tid, Value};

use super::Table;
use crate::key::KeyBuilder;

/// Rows looked at, beside twice those of the table, before all are entered.
const MOST_LOOKED_AT: u64 = if cfg!(test) { 4 } else { 10_000 };

/// What ends a chain.
const END: u32 = u32::MAX;

/// Rows by their values.
#[derive(Default)]
pub(crate) struct Finder {
    /// The first entry for a hash.
    heads: HashMap<u64, u32>,
    /// A row, and the next entry for the same hash.
    entries: Vec<(Tid, u32)>,
    /// Rows that were looked at one by one since all were entered.
    looked_at: u64,
    is_filled: bool,
}

impl Finder {
    fn enter(&mut self, hash: u64, tid: Tid) {
        // What finds no place is looked for among all rows.
        let Ok(entry) = u32::try_from(self.entries.len()) else { return };
        if entry < END {
            let next = self.heads.insert(hash, entry).unwrap_or(END);
            self.entries.push((tid, next));
        }
    }

    /// Takes a row out that `is_it`, and whatever is before it in the chain and is not.
    fn take(&mut self, hash: u64, is_it: impl Fn(Tid) -> bool) -> Option<Tid> {
        let mut entry = *self.heads.get(&hash)?;
        while entry != END {
            let (tid, next) = self.entries[entry as usize];
            debug_assert!(next == END || next < entry, "a list leads to older entries, so it ends");
            if is_it(tid) {
                self.heads.insert(hash, next);
                return Some(tid);
            }
            entry = next;
        }
        self.heads.remove(&hash);
        None
    }

    fn fill(&mut self, table: &Table) {
        self.heads.clear();
        self.entries.clear();
        for tid in table.scan_from(Tid(0)) {
            self.enter(table.hash_of_row(tid), tid);
        }
        (self.looked_at, self.is_filled) = (0, true);
    }
}

impl Table {
    /// As [`Table::find_by_identity`], for many rows one after another.
    pub(crate) fn find_again(&mut self, values: &[Value], key: &mut KeyBuilder) -> Option<Tid> {
        if self.identity.has_index() {
            return self.find_by_identity(values, key);
        }
        let mut finder = std::mem::take(&mut self.finder);
        let is_it = |tid| self.is_live(tid) && self.is_named(tid, values);
        let found = finder.take(hash_of(values.iter()), is_it).or_else(|| {
            let mut looked_at = 0;
            let found = self.scan_from(Tid(0)).inspect(|_| looked_at += 1).find(|tid| is_it(*tid));
            finder.looked_at += looked_at;
            if finder.looked_at > 2 * self.row_count() + MOST_LOOKED_AT {
                finder.fill(self);
            }
            found
        });
        self.finder = finder;
        found
    }

    /// A row came, or has other values, while rows are looked for by [`Table::find_again`].
    pub(crate) fn note_found(&mut self, tid: Tid) {
        if self.finder.is_filled {
            let hash = self.hash_of_row(tid);
            self.finder.enter(hash, tid);
        }
    }

    /// Gives back the memory for finding rows by all their values.
    pub fn end_finding(&mut self) {
        self.finder = Finder::default();
    }

    fn hash_of_row(&self, tid: Tid) -> u64 {
        let values: Vec<Value> =
            self.identity.columns.iter().map(|column| self.value(tid, *column)).collect();
        hash_of(values.iter())
    }
}

/// Equal rows have equal hashes, as values of one column have one form.
fn hash_of<'v>(values: impl Iterator<Item = &'v Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values {
        match value {
            Value::Null => 0u8.hash(&mut hasher),
            Value::Bool(value) => value.hash(&mut hasher),
            Value::SmallInt(value) => value.hash(&mut hasher),
            Value::Integer(value) | Value::Date(value) => value.hash(&mut hasher),
            Value::BigInt(value)
            | Value::Time(value)
            | Value::Timestamp(value)
            | Value::TimestampTz(value) => value.hash(&mut hasher),
            Value::Real(value) => value.to_bits().hash(&mut hasher),
            Value::Double(value) => value.to_bits().hash(&mut hasher),
            Value::Decimal(value) => value.unscaled.hash(&mut hasher),
            Value::Text(value) => value.hash(&mut hasher),
            Value::Bytea(value) => value.hash(&mut hasher),
            Value::Uuid(value) => value.hash(&mut hasher),
        }
    }
    hasher.finish()
}
