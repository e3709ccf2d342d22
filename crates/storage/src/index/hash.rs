//! Hash indexes: unique ([`HashIndex`]) and non-unique ([`MultiHash`]).
//!
//! Responsible for: equality lookups at one cache miss, and a bounded worst insert. Not responsible
//! for: what a key means; entries with equal stored keys are told apart by the caller's `tie(tid)`,
//! of which only `Equal` or not matters here.
//!
//! Extendible hashing (Fagin et al., TODS 4(3), 1979) over segments of at most 4,096 slots with
//! linear probing inside: an insert moves at most one segment's entries and copies at most the
//! directory. Deletion shifts entries back, so there are no tombstones. See `table` for invariants.

mod multi;
mod table;
#[cfg(test)]
mod tests;

pub use multi::{MultiHash, Tids};
pub(crate) use table::{Slot, Slot16, Slot24, Table};

use std::cmp::Ordering;

use super::InsertError;
use crate::key::KeyRef;
use crate::pool::BlockPool;

const MIX_1: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX_2: u64 = 0xD1B5_4A32_D192_ED03;

/// Multiplies and folds the upper half of the product onto the lower one.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// The hash of 8 bytes.
#[inline(always)]
pub(crate) fn hash_u64(key: u64) -> u64 {
    fold(key ^ MIX_2, MIX_1)
}

/// The hash of a prefix.
#[inline(always)]
pub(crate) fn hash_u128(key: u128) -> u64 {
    fold((key >> 64) as u64 ^ MIX_1, key as u64 ^ MIX_2)
}

/// What a hash index stores for a key that does not fit 16 bytes: a hash of the whole key, in the
/// upper half. `tie` decides among keys that share it.
#[inline]
pub fn fingerprint(key: KeyRef<'_>) -> u128 {
    let mut hash = hash_u128(key.prefix);
    let mut words = key.rest.chunks_exact(8);
    for word in &mut words {
        hash = fold(hash ^ u64::from_le_bytes(word.try_into().expect("eight bytes")), MIX_1)
            ^ hash.rotate_left(29);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    // The length tells a key from one with zeros appended.
    hash = fold(hash ^ u64::from_le_bytes(last), MIX_2) ^ key.rest.len() as u64;
    u128::from(hash) << 64
}

/// A unique hash index over `(key, tie)`, where `key` is a short key or a [`fingerprint`].
pub struct HashIndex<S: Slot> {
    table: Table<S>,
}

/// Keys of at most 8 bytes, left-aligned in the `u128`, and fingerprints: 16 bytes an entry.
pub type NarrowHash = HashIndex<Slot16>;
/// Keys of at most 16 bytes: 24 bytes an entry.
pub type WideHash = HashIndex<Slot24>;

impl<S: Slot> HashIndex<S> {
    /// An empty index; takes no memory before the first insert.
    pub fn new(pool: &BlockPool) -> Self {
        Self { table: Table::new(pool) }
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    /// The TID of the entry with `key` for which `tie` says `Equal`.
    #[inline]
    pub fn find(&self, key: u128, mut tie: impl FnMut(u64) -> Ordering) -> Option<u64> {
        self.table.find(key, |tid| tie(tid).is_eq())
    }

    /// Adds an entry; `tid` is below `2^63`.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when `tie` says `Equal` to an entry with `key`,
    /// [`InsertError::OutOfMemory`] when the pool refuses; the index is then as it was.
    #[inline]
    pub fn insert(
        &mut self,
        key: u128,
        tid: u64,
        mut tie: impl FnMut(u64) -> Ordering,
    ) -> Result<(), InsertError> {
        self.table.insert(key, tid, |tid| tie(tid).is_eq())
    }

    /// Removes the entry with `key` for which `tie` says `Equal`, and returns its TID.
    #[inline]
    pub fn remove(&mut self, key: u128, mut tie: impl FnMut(u64) -> Ordering) -> Option<u64> {
        self.table.remove(key, |tid| tie(tid).is_eq())
    }

    /// Gives the entry with `key` and the TID `old` the TID `new`, below `2^63`. Takes no memory. Entries of one
    /// fingerprint are told apart by their TIDs, so no row is looked at.
    ///
    /// # Panics
    /// There is no such entry.
    #[inline]
    pub fn retarget(&mut self, key: u128, old: u64, new: u64) {
        self.table.replace(key, new, |tid| tid == old);
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Asks the processor for the place of `key`.
    #[inline]
    pub fn prefetch(&self, key: u128) {
        self.table.prefetch(key);
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, u64)> + '_ {
        self.table.iter()
    }

    /// Panics if an invariant does not hold.
    pub fn check(&self) {
        self.table.check();
    }
}
