//! Indexes of one table in one partition: from keys to TIDs.
//!
//! Responsible for: the structures, and choosing among them by the kind asked for and the shape of
//! the keys. Not responsible for: building keys from rows, SQL's rules about NULLs (`table`);
//! indexes are never part of a snapshot and are rebuilt on recovery.
//!
//! | asked for | keys | structure |
//! |---|---|---|
//! | ordered | any | [`OrderedIndex`], a B+tree |
//! | bare | any | [`BareIndex`], a B+tree of TIDs alone |
//! | hash, unique | 1 to 4 integers, 16 bytes | [`DenseOrHash`], an array while keys are dense |
//! | hash, unique | other | [`HashIndex`], extendible hashing |
//! | hash | any | [`MultiHash`], a set of TIDs per key |
//!
//! Measured (`examples/index_bench.rs`, 1.5 million entries, nanoseconds of processor time, medians, an
//! EPYC whose two cores had other builds to do; std or hashbrown with as cheap a hash in brackets):
//! B+tree insert of 50 interleaved runs 19 (158), of random keys 496 (403), random find 380 (653);
//! array insert 7 (74), find 4 in order (31) and 34 at random (32); hash insert 88 (78), find 50 (32),
//! remove 117 (54). Where everything fits the second-level cache a B+tree find takes 63 (55).
//!
//! Worst insert of the array and hash forms: 0.1 to 0.2 ms on memory that was touched before. On
//! untouched memory the kernel clears a huge page first, which took up to 5 ms: let the pool's helper
//! thread keep its reserve.
//!
//! Key and tie: a structure knows the first 16 bytes of a key, or for long keys in a hash index a
//! fingerprint; the bare one knows nothing. What it cannot decide from that it asks the caller ([`StoredKeys`]):
//! `tie` is the order of the probed key relative to the key of a stored row. It compares *keys only*; TIDs of one
//! key are ordered here. For shapes whose keys are all short only the bare index asks.
//!
//! Invariant: an insert or a change of a TID that fails changes no entry. A removal never takes memory it must have.

mod bare;
mod cursor;
mod dense;
mod hash;
mod leaves;
mod levels;
mod ordered;
mod pages;
#[cfg(test)]
mod retarget_tests;
mod search;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use bare::BareIndex;
pub use dense::DenseOrHash;
pub use hash::{HashIndex, MultiHash, NarrowHash, Tids, WideHash, fingerprint};
use hash::{Slot16, Slot24};
pub use ordered::{Cursor, OrderedIndex, Range};

use crate::key::{KeyRef, KeyShape, always_equal};
use crate::pool::{BlockPool, OutOfMemory};

/// Why an insert changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InsertError {
    /// The key is there already, with this TID; in an index that is not unique, with the same TID.
    #[error("the key exists, at row {0}")]
    Duplicate(u64),
    /// The pool refused memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// What an index is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Equality.
    Hash,
    /// Equality, ranges, least and greatest.
    Ordered,
    /// As ordered, in a third of the memory, and slower: it has no keys.
    Bare,
}

/// The keys of the rows whose TIDs stand in an index: what that does not know itself it asks here.
pub trait StoredKeys {
    /// The order of `key` relative to the key of a row.
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering;

    /// The same, where the first 16 bytes of both are equal, or their fingerprints.
    fn tie(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        self.compare(key, tid)
    }

    /// The first 16 bytes of a row's key.
    fn prefix(&mut self, tid: u64) -> u128;
}

/// Of an index that has whole keys.
struct NotAsked;

impl StoredKeys for NotAsked {
    fn compare(&mut self, _: KeyRef<'_>, _: u64) -> Ordering {
        Ordering::Equal
    }

    fn prefix(&mut self, _: u64) -> u128 {
        unreachable!("an index that has short keys does not ask for them")
    }
}

enum Form {
    Ordered(OrderedIndex),
    Bare(BareIndex),
    DenseNarrow(DenseOrHash<Slot16>),
    DenseWide(DenseOrHash<Slot24>),
    Narrow(NarrowHash),
    Wide(WideHash),
    /// Under fingerprints.
    Long(NarrowHash),
    MultiNarrow(MultiHash<Slot16>),
    MultiWide(MultiHash<Slot24>),
    /// Under fingerprints.
    MultiLong(MultiHash<Slot16>),
}

/// An index of any kind.
pub struct Index {
    form: Form,
    unique: bool,
    short: bool,
}

impl Index {
    /// An empty index of keys with this shape; takes no memory before the first insert.
    pub fn new(kind: Kind, unique: bool, shape: &KeyShape, pool: &BlockPool) -> Self {
        // Of a bare index the methods for short keys, which ask for none, would know nothing.
        let short = shape.is_short() && kind != Kind::Bare;
        let form = match (kind, unique) {
            (Kind::Ordered, _) => Form::Ordered(OrderedIndex::new(pool)),
            (Kind::Bare, _) => Form::Bare(BareIndex::new(unique, pool)),
            (Kind::Hash, true) => Self::unique_hash(shape, pool),
            (Kind::Hash, false) if shape.is_narrow() => Form::MultiNarrow(MultiHash::new(pool)),
            (Kind::Hash, false) if short => Form::MultiWide(MultiHash::new(pool)),
            (Kind::Hash, false) => Form::MultiLong(MultiHash::new(pool)),
        };
        Self { form, unique, short }
    }

    fn unique_hash(shape: &KeyShape, pool: &BlockPool) -> Form {
        let (narrow, short) = (shape.is_narrow(), shape.is_short());
        let dense = if narrow {
            DenseOrHash::new(shape, pool).map(Form::DenseNarrow)
        } else {
            DenseOrHash::new(shape, pool).map(Form::DenseWide)
        };
        match dense {
            Some(form) => form,
            None if narrow => Form::Narrow(HashIndex::new(pool)),
            None if short => Form::Wide(HashIndex::new(pool)),
            None => Form::Long(HashIndex::new(pool)),
        }
    }

    /// Prepares the empty index for keys, of which these are the first 16 bytes, that are about to be
    /// inserted.
    pub(crate) fn expect(&mut self, keys: impl Iterator<Item = u128>) {
        match &mut self.form {
            Form::DenseNarrow(index) => index.expect(keys),
            Form::DenseWide(index) => index.expect(keys),
            _ => {}
        }
    }

    /// What it is at present, for EXPLAIN.
    pub fn kind_name(&self) -> &'static str {
        match &self.form {
            Form::Ordered(_) => "b+tree",
            Form::Bare(_) => "b+tree of rows",
            Form::DenseNarrow(index) if index.is_dense() => "dense array",
            Form::DenseWide(index) if index.is_dense() => "dense array",
            _ => "hash",
        }
    }

    /// Whether each key has at most one TID.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Whether all keys fit 16 bytes, so that the methods for short keys serve and no tie is asked.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Entries.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Ordered(index) => index.len(),
            Form::Bare(index) => index.len(),
            Form::DenseNarrow(index) => index.len(),
            Form::DenseWide(index) => index.len(),
            Form::Narrow(index) | Form::Long(index) => index.len(),
            Form::Wide(index) => index.len(),
            Form::MultiNarrow(index) | Form::MultiLong(index) => index.len(),
            Form::MultiWide(index) => index.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Ordered(index) => index.memory_bytes(),
            Form::Bare(index) => index.memory_bytes(),
            Form::DenseNarrow(index) => index.memory_bytes(),
            Form::DenseWide(index) => index.memory_bytes(),
            Form::Narrow(index) | Form::Long(index) => index.memory_bytes(),
            Form::Wide(index) => index.memory_bytes(),
            Form::MultiNarrow(index) | Form::MultiLong(index) => index.memory_bytes(),
            Form::MultiWide(index) => index.memory_bytes(),
        }
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        match &mut self.form {
            Form::Ordered(index) => index.clear(),
            Form::Bare(index) => index.clear(),
            Form::DenseNarrow(index) => index.clear(),
            Form::DenseWide(index) => index.clear(),
            Form::Narrow(index) | Form::Long(index) => index.clear(),
            Form::Wide(index) => index.clear(),
            Form::MultiNarrow(index) | Form::MultiLong(index) => index.clear(),
            Form::MultiWide(index) => index.clear(),
        }
    }

    /// The TID of a short key; of several, the least. The shape must be short.
    #[inline(always)]
    pub fn find_short(&self, key: u128) -> Option<u64> {
        debug_assert!(self.short, "the keys of the index are short");
        match &self.form {
            Form::DenseNarrow(index) => index.find(key),
            Form::DenseWide(index) => index.find(key),
            _ => self.find_short_other(key),
        }
    }

    #[inline(never)]
    fn find_short_other(&self, key: u128) -> Option<u64> {
        match &self.form {
            Form::Ordered(index) if self.unique => index.find(key, always_equal),
            Form::Narrow(index) => index.find(key, always_equal),
            Form::Wide(index) => index.find(key, always_equal),
            _ => self.find(KeyRef { prefix: key, rest: &[] }, &mut NotAsked),
        }
    }

    /// The TID of a key; of several, the least.
    #[inline]
    pub fn find(&self, key: KeyRef<'_>, stored: &mut impl StoredKeys) -> Option<u64> {
        debug_assert!(!self.short || key.rest.is_empty(), "a short key is its prefix");
        let prefix = key.prefix;
        let short = self.short;
        let mut tie = |tid| if short { Ordering::Equal } else { stored.tie(key, tid) };
        match &self.form {
            Form::Ordered(index) if self.unique => index.find(prefix, tie),
            Form::Ordered(index) => {
                let (found, tid) = index.lower_bound(prefix, &mut tie).peek()?;
                (found == prefix && tie(tid).is_eq()).then_some(tid)
            }
            Form::DenseNarrow(index) => index.find(prefix),
            Form::DenseWide(index) => index.find(prefix),
            Form::Narrow(index) => index.find(prefix, always_equal),
            Form::Wide(index) => index.find(prefix, always_equal),
            Form::Long(index) => index.find(fingerprint(key), tie),
            Form::MultiNarrow(index) => index.find(prefix, always_equal),
            Form::MultiWide(index) => index.find(prefix, always_equal),
            Form::MultiLong(index) => index.find(fingerprint(key), tie),
            Form::Bare(index) => index.find(key, stored),
        }
    }

    /// The TIDs of a key, ascending.
    #[inline]
    pub fn tids(&self, key: KeyRef<'_>, stored: &mut impl StoredKeys) -> Tids<'_> {
        debug_assert!(!self.short || key.rest.is_empty(), "a short key is its prefix");
        let prefix = key.prefix;
        match &self.form {
            Form::Ordered(index) if self.short => Tids::Tree(index.range(prefix, prefix)),
            Form::Bare(index) => Tids::Bare(index.tids(key, stored)),
            Form::Ordered(index) => {
                let stored = std::cell::RefCell::new(stored);
                let ask = |tid| stored.borrow_mut().tie(key, tid);
                Tids::Tree(index.range_ties((prefix, ask), (prefix, ask)))
            }
            Form::MultiNarrow(index) => index.tids(prefix, always_equal),
            Form::MultiWide(index) => index.tids(prefix, always_equal),
            Form::MultiLong(index) => index.tids(fingerprint(key), |tid| stored.tie(key, tid)),
            _ => Tids::One(self.find(key, stored).into_iter()),
        }
    }

    /// Adds an entry of a short key; `tid` is below `2^63`. The shape must be short.
    ///
    /// # Errors
    /// As [`Index::insert`].
    #[inline]
    pub fn insert_short(&mut self, key: u128, tid: u64) -> Result<(), InsertError> {
        debug_assert!(self.short, "the keys of the index are short");
        match &mut self.form {
            Form::DenseNarrow(index) => index.insert(key, tid),
            Form::DenseWide(index) => index.insert(key, tid),
            Form::Ordered(index) if self.unique => index.insert(key, tid, always_equal),
            _ => self.insert(KeyRef { prefix: key, rest: &[] }, tid, &mut NotAsked),
        }
    }

    /// Adds an entry of a short key behind all others of an ordered index, if it comes there and there is room;
    /// whether it did.
    #[inline]
    pub fn append_short(&mut self, key: u128, tid: u64) -> bool {
        debug_assert!(self.short, "the keys of the index are short");
        match &mut self.form {
            Form::Ordered(index) => index.append(key, tid, !self.unique),
            _ => false,
        }
    }

    /// Adds an entry; `tid` is below `2^63`.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] when the key is there (in an index that is not unique: with this
    /// TID), [`InsertError::OutOfMemory`] when the pool refuses; the index has the same entries
    /// then as before.
    #[inline(never)]
    pub fn insert(
        &mut self,
        key: KeyRef<'_>,
        tid: u64,
        stored: &mut impl StoredKeys,
    ) -> Result<(), InsertError> {
        debug_assert!(!self.short || key.rest.is_empty(), "a short key is its prefix");
        let prefix = key.prefix;
        let (short, unique) = (self.short, self.unique);
        let mut tie = |tid| stored.tie(key, tid);
        match &mut self.form {
            Form::Ordered(index) => {
                let order = |stored| {
                    let order = if short { Ordering::Equal } else { tie(stored) };
                    if unique { order } else { order.then(tid.cmp(&stored)) }
                };
                index.insert(prefix, tid, order)
            }
            Form::DenseNarrow(index) => index.insert(prefix, tid),
            Form::DenseWide(index) => index.insert(prefix, tid),
            Form::Narrow(index) => index.insert(prefix, tid, always_equal),
            Form::Wide(index) => index.insert(prefix, tid, always_equal),
            Form::Long(index) => index.insert(fingerprint(key), tid, tie),
            Form::MultiNarrow(index) => index.insert(prefix, tid, always_equal),
            Form::MultiWide(index) => index.insert(prefix, tid, always_equal),
            Form::MultiLong(index) => index.insert(fingerprint(key), tid, tie),
            Form::Bare(index) => index.insert(key, tid, stored),
        }
    }

    /// Removes an entry of a short key. Returns whether it was there. The shape must be short.
    #[inline]
    pub fn remove_short(&mut self, key: u128, tid: u64) -> bool {
        debug_assert!(self.short, "the keys of the index are short");
        self.remove(KeyRef { prefix: key, rest: &[] }, tid, &mut NotAsked)
    }

    /// Removes an entry. Returns whether it was there.
    ///
    /// # Panics
    /// The index is unique and the key has another TID.
    #[inline(never)]
    pub fn remove(&mut self, key: KeyRef<'_>, tid: u64, stored: &mut impl StoredKeys) -> bool {
        debug_assert!(!self.short || key.rest.is_empty(), "a short key is its prefix");
        let prefix = key.prefix;
        let (short, unique) = (self.short, self.unique);
        let mut tie = |tid| stored.tie(key, tid);
        let removed = match &mut self.form {
            Form::Ordered(index) => {
                let order = |stored| {
                    let order = if short { Ordering::Equal } else { tie(stored) };
                    if unique { order } else { order.then(tid.cmp(&stored)) }
                };
                index.remove(prefix, order)
            }
            Form::DenseNarrow(index) => index.remove(prefix),
            Form::DenseWide(index) => index.remove(prefix),
            Form::Narrow(index) => index.remove(prefix, always_equal),
            Form::Wide(index) => index.remove(prefix, always_equal),
            Form::Long(index) => index.remove(fingerprint(key), tie),
            Form::MultiNarrow(index) => return index.remove(prefix, tid, always_equal),
            Form::MultiWide(index) => return index.remove(prefix, tid, always_equal),
            Form::MultiLong(index) => return index.remove(fingerprint(key), tid, tie),
            Form::Bare(index) => index.remove(key, tid, stored),
        };
        assert!(removed.is_none_or(|removed| removed == tid), "a unique key has one TID");
        removed.is_some()
    }

    /// Gives an entry of a short key another TID. The shape must be short.
    ///
    /// # Errors
    /// As [`Index::retarget`].
    ///
    /// # Panics
    /// As [`Index::retarget`].
    #[inline]
    pub fn retarget_short(&mut self, key: u128, old: u64, new: u64) -> Result<(), InsertError> {
        debug_assert!(self.short, "the keys of the index are short");
        self.retarget(KeyRef { prefix: key, rest: &[] }, old, new, &mut NotAsked)
    }

    /// Gives the entry of `key` with the TID `old` the TID `new`, below `2^63`: the row has moved. Both rows are there,
    /// and have this key.
    ///
    /// A unique index takes no memory for it, so it does not fail.
    ///
    /// # Errors
    /// Of an index that is not unique: [`InsertError::Duplicate`] when the key has the new TID already,
    /// [`InsertError::OutOfMemory`] when the pool refuses; the index has the same entries then as before.
    ///
    /// # Panics
    /// There is no such entry, or the two TIDs are the same.
    #[inline(never)]
    pub fn retarget(
        &mut self,
        key: KeyRef<'_>,
        old: u64,
        new: u64,
        stored: &mut impl StoredKeys,
    ) -> Result<(), InsertError> {
        debug_assert!(!self.short || key.rest.is_empty(), "a short key is its prefix");
        assert_ne!(old, new, "a row moves to another place");
        let (prefix, short) = (key.prefix, self.short);
        let tie = |tid| if short { Ordering::Equal } else { stored.tie(key, tid) };
        match &mut self.form {
            Form::Ordered(index) if self.unique => index.retarget(prefix, old, new, tie),
            Form::Ordered(index) => return index.exchange((prefix, old), (prefix, new), tie),
            Form::DenseNarrow(index) => index.retarget(prefix, old, new),
            Form::DenseWide(index) => index.retarget(prefix, old, new),
            Form::Narrow(index) => index.retarget(prefix, old, new),
            Form::Wide(index) => index.retarget(prefix, old, new),
            Form::Long(index) => index.retarget(fingerprint(key), old, new),
            Form::MultiNarrow(index) => return index.retarget(prefix, old, new, tie),
            Form::MultiWide(index) => return index.retarget(prefix, old, new, tie),
            Form::MultiLong(index) => return index.retarget(fingerprint(key), old, new, tie),
            Form::Bare(index) => return index.retarget(key, (old, new), stored),
        }
        Ok(())
    }

    /// Asks the processor for what a search for a short key looks at first. In an array that is the
    /// slot of its TID, which is returned, else null: as long as the index is not changed, what
    /// stands there is what [`Index::find_short`] would find, unless it is `u64::MAX`.
    #[inline(always)]
    pub(crate) fn ask_short(&self, key: u128) -> *const u64 {
        match &self.form {
            Form::DenseNarrow(index) => index.ask(key),
            _ => {
                self.prefetch_short_other(key);
                std::ptr::null()
            }
        }
    }

    /// Asks the processor for what a search for a short key looks at first.
    #[inline(always)]
    pub fn prefetch_short(&self, key: u128) {
        match &self.form {
            Form::DenseNarrow(index) => index.prefetch(key),
            _ => self.prefetch_short_other(key),
        }
    }

    #[inline(never)]
    fn prefetch_short_other(&self, key: u128) {
        match &self.form {
            Form::Ordered(index) => index.prefetch(key),
            // What is wanted first are rows, of which nobody knows before.
            Form::Bare(_) => {}
            Form::DenseNarrow(index) => index.prefetch(key),
            Form::DenseWide(index) => index.prefetch(key),
            Form::Narrow(index) | Form::Long(index) => index.prefetch(key),
            Form::Wide(index) => index.prefetch(key),
            Form::MultiNarrow(index) | Form::MultiLong(index) => index.prefetch(key),
            Form::MultiWide(index) => index.prefetch(key),
        }
    }

    /// Asks the processor for what a search for a key looks at first.
    #[inline]
    pub fn prefetch(&self, key: KeyRef<'_>) {
        match &self.form {
            Form::Long(_) | Form::MultiLong(_) => self.prefetch_short(fingerprint(key)),
            _ => self.prefetch_short(key.prefix),
        }
    }

    /// The tree of an ordered index, for cursors and ranges with ties; `None` for others.
    #[inline]
    pub fn ordered(&self) -> Option<&OrderedIndex> {
        match &self.form {
            Form::Ordered(index) => Some(index),
            _ => None,
        }
    }

    /// The tree of a bare index; `None` for others.
    #[inline]
    pub fn bare(&self) -> Option<&BareIndex> {
        match &self.form {
            Form::Bare(index) => Some(index),
            _ => None,
        }
    }

    /// The tree of a bare index that is to be changed; `None` for others.
    pub(crate) fn bare_mut(&mut self) -> Option<&mut BareIndex> {
        match &mut self.form {
            Form::Bare(index) => Some(index),
            _ => None,
        }
    }

    /// Whether entries have an order, with keys or without.
    #[inline]
    pub fn has_order(&self) -> bool {
        matches!(self.form, Form::Ordered(_) | Form::Bare(_))
    }

    #[inline]
    fn tree(&self) -> &OrderedIndex {
        self.ordered().expect("only an ordered index has an order")
    }

    /// The TIDs of the entries whose keys' first 16 bytes are in `low..=high`, in order.
    ///
    /// # Panics
    /// The index is a hash index.
    #[inline]
    pub fn range(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Tids<'_> {
        match &self.form {
            Form::Bare(index) => Tids::Bare(index.range(low, high, stored)),
            _ => Tids::Tree(self.tree().range(low, high)),
        }
    }

    /// About how many entries have a key whose first 16 bytes are in `low..=high`.
    ///
    /// # Panics
    /// As [`Index::range`].
    pub fn estimate(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> usize {
        match &self.form {
            Form::Bare(index) => index.estimate(low, high, stored),
            _ => self.tree().estimate(low, high),
        }
    }

    /// The TID of the least entry whose key's first 16 bytes are in `low..=high`.
    ///
    /// # Panics
    /// As [`Index::range`].
    #[inline]
    pub fn first_in(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Option<u64> {
        if let Form::Bare(index) = &self.form {
            return index.first_in(low, high, stored);
        }
        let (prefix, tid) = self.tree().lower_bound(low, always_equal).peek()?;
        (prefix <= high).then_some(tid)
    }

    /// The TID of the greatest entry whose key's first 16 bytes are in `low..=high`.
    ///
    /// # Panics
    /// As [`Index::range`].
    #[inline]
    pub fn last_in(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Option<u64> {
        if let Form::Bare(index) = &self.form {
            return index.last_in(low, high, stored);
        }
        let (prefix, tid) = self.tree().upper_bound(high, always_equal).prev()?;
        (prefix >= low).then_some(tid)
    }

    /// Panics if an invariant of the structure does not hold. `order` compares the keys of two rows, `prefix` gives the
    /// first 16 bytes of one.
    pub fn check(&self, mut order: impl FnMut(u64, u64) -> Ordering, prefix: impl Fn(u64) -> u128) {
        match &self.form {
            Form::Bare(index) => index.check(order, prefix),
            Form::Ordered(index) => index.check(|a, b| {
                let keys = if self.short { Ordering::Equal } else { order(a, b) };
                if self.unique { keys } else { keys.then(a.cmp(&b)) }
            }),
            Form::DenseNarrow(index) => index.check(),
            Form::DenseWide(index) => index.check(),
            Form::Narrow(index) | Form::Long(index) => index.check(),
            Form::Wide(index) => index.check(),
            Form::MultiNarrow(index) | Form::MultiLong(index) => index.check(),
            Form::MultiWide(index) => index.check(),
        }
    }
}

/// Asks the processor for the cache line at `address`.
#[inline(always)]
pub(crate) fn prefetch_line<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it reads nothing and may name any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast())
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks the processor to bring a value so wide, which is not nothing: its line, and the next one if it crosses
/// into that. There is no branch to mispredict.
#[inline(always)]
pub(crate) fn prefetch_ends(first: *const u8, width: u16) {
    prefetch_line(first);
    prefetch_line(first.wrapping_add(usize::from(width) - 1));
}
