//! The segmented table under the hash indexes: keys and opaque 64-bit values.
//!
//! Responsible for: segments, their directory, probing. Not responsible for: what a value is
//! (a TID, or a tagged reference of `multi`).
//!
//! - T-1 Directory entry `i` of `2^bits` names the segment of the hashes whose upper `bits` are `i`;
//!   a segment of depth `d` is named by `2^(bits - d)` entries in a row.
//! - T-2 From the first slot of an entry's home group (lower bits of its hash) to the entry, no slot
//!   is empty. So in a group nothing follows an empty slot.
//! - T-3 At most three quarters of a segment's slots are in use, so every probe ends.
//! - T-4 A directory entry's slot pointer and mask are those of its segment.
//!
//! A full segment is enlarged until it has 4,096 slots and divided from then on. Should hashes
//! agree in so many upper bits that dividing would blow up the directory (nothing but malice does
//! that), it is enlarged further instead.
//!
//! Four slots are a group: their keys side by side, then their values, so that a lookup compares
//! four with one instruction and nearly always ends in the first group, without a branch to
//! mispredict. A group of narrow slots is a cache line.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use super::super::{InsertError, prefetch_line};
use super::{hash_u64, hash_u128};
use crate::pool::{BlockPool, OutOfMemory, SLAB_BYTES};

/// Slots of a table's first segment.
const FIRST_SLOTS: usize = 64;
/// Slots of a segment that is divided, not enlarged, when full.
const FULL_SLOTS: usize = 4096;
/// A segment is enlarged so many times.
const ENLARGE: usize = 4;
/// Directory bits beyond what equal segments would need.
const SPARE_BITS: u32 = 6;

/// The value of an empty slot.
const EMPTY: u64 = u64::MAX;

/// Slots in a group.
const GROUP: usize = 4;

/// An entry, and how four of them are laid out as words.
///
/// # Safety
/// S-1: `load` and `store` touch only the words `4 * w` from `at` on for `w < WORDS`, and `compare`
/// the `4 * WORDS` words from `group` on. S-2: words of all ones are a slot whose value is
/// [`u64::MAX`]; any words are a valid slot.
pub unsafe trait Slot: Copy + Send + Sync {
    #[doc(hidden)]
    const WORDS: usize;
    #[doc(hidden)]
    fn new(key: u128, value: u64) -> Self;
    #[doc(hidden)]
    fn key(&self) -> u128;
    #[doc(hidden)]
    fn value(&self) -> u64;
    #[doc(hidden)]
    fn hash(key: u128) -> u64;
    /// # Safety
    /// The words named in S-1 can be read.
    #[doc(hidden)]
    unsafe fn load(at: *const u64) -> Self;
    /// # Safety
    /// The words named in S-1 can be written.
    #[doc(hidden)]
    unsafe fn store(self, at: *mut u64);
    /// Bits of the group's slots that have the key, and of those that are empty. An empty slot may
    /// seem to have the key.
    /// # Safety
    /// The words named in S-1 can be read, and `group` is aligned to 32 bytes.
    #[doc(hidden)]
    unsafe fn compare(group: *const u64, key: u128) -> (u32, u32);
}

/// Bits of the four words that equal `word`.
///
/// # Safety
/// Four words from `words` on, aligned to 32 bytes, can be read.
#[inline(always)]
unsafe fn equal_words(words: *const u64, word: u64) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
    // SAFETY: the caller's obligation is that of the load; the others touch registers only.
    unsafe {
        use std::arch::x86_64::*;
        let equal = _mm256_cmpeq_epi64(_mm256_load_si256(words.cast()), _mm256_set1_epi64x(word as i64));
        _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
    // SAFETY: the caller's obligation.
    (0..GROUP).map(|i| u32::from(unsafe { words.add(i).read() } == word) << i).sum()
}

/// The upper 8 bytes of the key; the lower ones are zero.
#[derive(Clone, Copy)]
pub struct Slot16 {
    key: u64,
    value: u64,
}

// SAFETY: `load`, `store` and `compare` touch words 0..8 of a group, or words 0 and 4 from a slot's
// first (S-1); two integers (S-2).
unsafe impl Slot for Slot16 {
    const WORDS: usize = 2;
    #[inline(always)]
    fn new(key: u128, value: u64) -> Self {
        debug_assert_eq!(key as u64, 0, "a narrow key has 8 bytes");
        Self { key: (key >> 64) as u64, value }
    }
    #[inline(always)]
    fn key(&self) -> u128 {
        u128::from(self.key) << 64
    }
    #[inline(always)]
    fn value(&self) -> u64 {
        self.value
    }
    #[inline(always)]
    fn hash(key: u128) -> u64 {
        hash_u64((key >> 64) as u64)
    }
    #[inline(always)]
    unsafe fn load(at: *const u64) -> Self {
        // SAFETY: the caller's obligation.
        unsafe { Self { key: at.read(), value: at.add(GROUP).read() } }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u64) {
        // SAFETY: the caller's obligation.
        unsafe {
            at.write(self.key);
            at.add(GROUP).write(self.value);
        }
    }
    #[inline(always)]
    unsafe fn compare(group: *const u64, key: u128) -> (u32, u32) {
        // SAFETY: the caller's obligation.
        unsafe { (equal_words(group, (key >> 64) as u64), equal_words(group.add(GROUP), EMPTY)) }
    }
}

/// The whole key.
#[derive(Clone, Copy)]
pub struct Slot24 {
    key: u128,
    value: u64,
}

// SAFETY: as for `Slot16`, with one word more: 0..12, or 0, 4 and 8.
unsafe impl Slot for Slot24 {
    const WORDS: usize = 3;
    #[inline(always)]
    fn new(key: u128, value: u64) -> Self {
        Self { key, value }
    }
    #[inline(always)]
    fn key(&self) -> u128 {
        self.key
    }
    #[inline(always)]
    fn value(&self) -> u64 {
        self.value
    }
    #[inline(always)]
    fn hash(key: u128) -> u64 {
        hash_u128(key)
    }
    #[inline(always)]
    unsafe fn load(at: *const u64) -> Self {
        // SAFETY: the caller's obligation.
        unsafe {
            let key = u128::from(at.read()) << 64 | u128::from(at.add(GROUP).read());
            Self { key, value: at.add(2 * GROUP).read() }
        }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u64) {
        // SAFETY: the caller's obligation.
        unsafe {
            at.write((self.key >> 64) as u64);
            at.add(GROUP).write(self.key as u64);
            at.add(2 * GROUP).write(self.value);
        }
    }
    #[inline(always)]
    unsafe fn compare(group: *const u64, key: u128) -> (u32, u32) {
        // SAFETY: the caller's obligation.
        unsafe {
            let upper = equal_words(group, (key >> 64) as u64);
            let lower = equal_words(group.add(GROUP), key as u64);
            (upper & lower, equal_words(group.add(2 * GROUP), EMPTY))
        }
    }
}

/// The first slot of the home group, bits above the segment's mask included.
#[inline(always)]
fn home(hash: u64) -> usize {
    hash as usize & !(GROUP - 1)
}

/// A segment's slots, as the directory and the segment list name them.
struct Slots<S> {
    start: NonNull<u64>,
    /// Their number less one; it is a power of two.
    mask: u32,
    segment: u32,
    kind: PhantomData<S>,
}

impl<S> Clone for Slots<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Slots<S> {}

impl<S: Slot> Slots<S> {
    /// The first word of a group; `i` is any slot of it.
    #[inline(always)]
    fn group(&self, i: usize) -> *mut u64 {
        let first = i & self.mask as usize & !(GROUP - 1);
        // SAFETY: slot `first` is one of the segment's (T-4), each has `WORDS` words.
        unsafe { self.start.as_ptr().add(first * S::WORDS) }
    }

    #[inline(always)]
    fn at(&self, i: usize) -> *mut u64 {
        // SAFETY: within the group.
        unsafe { self.group(i).add(i % GROUP) }
    }

    #[inline(always)]
    fn get(&self, i: usize) -> S {
        // SAFETY: in bounds, and every word is initialised when its segment is made.
        unsafe { S::load(self.at(i)) }
    }

    #[inline(always)]
    fn set(&self, i: usize, slot: S) {
        // SAFETY: in bounds; callers have `&mut Table`, so nobody else looks.
        unsafe { slot.store(self.at(i)) }
    }

    /// See [`Slot::compare`]; slots that are empty do not have the key.
    #[inline(always)]
    fn compare(&self, i: usize, key: u128) -> (u32, u32) {
        // SAFETY: in bounds; a segment is aligned to 64 bytes, a group has 64 or 96.
        let (hits, empty) = unsafe { S::compare(self.group(i), key) };
        (hits & !empty, empty)
    }

    #[inline(always)]
    fn is_empty(&self, i: usize) -> bool {
        self.get(i).value() == EMPTY
    }

    fn set_empty(&self, i: usize) {
        for word in 0..S::WORDS {
            // SAFETY: in bounds; words of all ones are an empty slot (S-2).
            unsafe { self.at(i).add(GROUP * word).write(EMPTY) };
        }
    }

    fn count(&self) -> usize {
        self.mask as usize + 1
    }

    /// Puts an entry whose key is not there into the first empty slot from its home on.
    #[inline]
    fn place(&self, slot: S) {
        let key = slot.key();
        let mut i = home(S::hash(key));
        loop {
            let (_, empty) = self.compare(i, key);
            if empty != 0 {
                self.set(i + empty.trailing_zeros() as usize, slot);
                return;
            }
            i += GROUP;
        }
    }

    /// Empties slot `i` and moves entries after it back, so that T-2 holds.
    fn take_out(&self, i: usize) {
        debug_assert!(!self.is_empty(i), "an entry is taken out");
        let mask = self.mask as usize;
        let (mut hole, mut next) = (i & mask, i & mask);
        loop {
            next = (next + 1) & mask;
            if self.is_empty(next) {
                break;
            }
            let slot = self.get(next);
            let home = home(S::hash(slot.key())) & mask;
            // It may move if its home is not after the hole.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.set(hole, slot);
                hole = next;
            }
        }
        self.set_empty(hole);
    }
}

struct Segment<S> {
    slots: Slots<S>,
    len: u32,
    /// Upper bits that its hashes share.
    depth: u32,
    /// Those bits, the others zero.
    upper: u64,
}

/// The table.
pub(crate) struct Table<S: Slot> {
    /// `2^bits` entries, or none.
    directory: Vec<Slots<S>>,
    bits: u32,
    len: usize,
    segments: Vec<Segment<S>>,
    pool: BlockPool,
    memory_bytes: usize,
}

// SAFETY: the table owns its segments as a `Vec<S>` would; shared references only read them.
unsafe impl<S: Slot> Send for Table<S> {}
// SAFETY: as above.
unsafe impl<S: Slot> Sync for Table<S> {}

impl<S: Slot> Table<S> {
    pub(crate) fn new(pool: &BlockPool) -> Self {
        Self {
            directory: Vec::new(),
            bits: 1,
            len: 0,
            segments: Vec::new(),
            pool: pool.clone(),
            memory_bytes: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
            + self.directory.capacity() * size_of::<Slots<S>>()
            + self.segments.capacity() * size_of::<Segment<S>>()
    }

    /// The slots where a hash belongs; `None` in a table without memory.
    #[inline(always)]
    fn slots(&self, hash: u64) -> Option<Slots<S>> {
        self.directory.get((hash >> (64 - self.bits)) as usize).copied()
    }

    #[inline(always)]
    pub(crate) fn find(&self, key: u128, mut equal: impl FnMut(u64) -> bool) -> Option<u64> {
        self.position(key, &mut equal).map(|(slots, i)| slots.get(i).value())
    }

    #[inline(always)]
    fn position(&self, key: u128, equal: &mut impl FnMut(u64) -> bool) -> Option<(Slots<S>, usize)> {
        let hash = S::hash(key);
        let slots = self.slots(hash)?;
        let mut i = home(hash);
        loop {
            let (mut hits, empty) = slots.compare(i, key);
            while hits != 0 {
                let at = i + hits.trailing_zeros() as usize;
                if equal(slots.get(at).value()) {
                    return Some((slots, at));
                }
                hits &= hits - 1;
            }
            if empty != 0 {
                return None;
            }
            i += GROUP;
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, key: u128) {
        let hash = S::hash(key);
        if let Some(slots) = self.slots(hash) {
            let group = slots.group(home(hash));
            prefetch_line(group);
            if S::WORDS > 2 {
                prefetch_line(group.wrapping_add(GROUP * S::WORDS - 1));
            }
        }
    }

    /// Adds an entry; `value` is not the empty slot's.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        key: u128,
        value: u64,
        mut equal: impl FnMut(u64) -> bool,
    ) -> Result<(), InsertError> {
        assert_ne!(value, EMPTY);
        let hash = S::hash(key);
        if let Some(slots) = self.slots(hash) {
            let mut i = home(hash);
            let empty = loop {
                let (mut hits, empty) = slots.compare(i, key);
                while hits != 0 {
                    let there = slots.get(i + hits.trailing_zeros() as usize).value();
                    if equal(there) {
                        return Err(InsertError::Duplicate(there));
                    }
                    hits &= hits - 1;
                }
                if empty != 0 {
                    break i + empty.trailing_zeros() as usize;
                }
                i += GROUP;
            };
            let segment = &mut self.segments[slots.segment as usize];
            if segment.len as usize * 4 < slots.count() * 3 {
                debug_assert!(slots.is_empty(empty), "an entry comes to an empty slot");
                slots.set(empty, S::new(key, value));
                segment.len += 1;
                self.len += 1;
                return Ok(());
            }
        }
        self.insert_growing(hash, S::new(key, value))
    }

    #[cold]
    fn insert_growing(&mut self, hash: u64, slot: S) -> Result<(), InsertError> {
        loop {
            match self.slots(hash) {
                None => self.start()?,
                Some(slots) => {
                    let segment = &mut self.segments[slots.segment as usize];
                    if (segment.len as usize) * 4 < slots.count() * 3 {
                        slots.place(slot);
                        segment.len += 1;
                        self.len += 1;
                        return Ok(());
                    }
                    self.grow(slots.segment as usize)?;
                }
            }
        }
    }

    /// Changes the value of the entry with `key` for which `equal` holds.
    pub(crate) fn replace(&mut self, key: u128, value: u64, mut equal: impl FnMut(u64) -> bool) {
        assert_ne!(value, EMPTY, "an entry has a value");
        let (slots, i) = self.position(key, &mut equal).expect("the entry is there");
        slots.set(i, S::new(key, value));
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: u128, mut equal: impl FnMut(u64) -> bool) -> Option<u64> {
        let (slots, i) = self.position(key, &mut equal)?;
        let value = slots.get(i).value();
        slots.take_out(i);
        let segment = &mut self.segments[slots.segment as usize];
        debug_assert!(segment.len > 0 && self.len > 0, "entries are counted");
        segment.len -= 1;
        self.len -= 1;
        Some(value)
    }

    fn refused(&self) -> OutOfMemory {
        self.pool.refused_by_system()
    }

    /// Empty slots in a new block.
    fn allocate(&mut self, count: usize, segment: usize) -> Result<Slots<S>, OutOfMemory> {
        assert!(count.is_power_of_two() && count >= GROUP, "a mask finds groups of slots");
        let bytes = count * S::WORDS * size_of::<u64>();
        if bytes > SLAB_BYTES {
            return Err(OutOfMemory::Limit { limit_bytes: self.pool.limit_bytes() });
        }
        let start = self.pool.alloc(bytes)?.cast::<u64>();
        assert!((start.as_ptr() as usize).is_multiple_of(GROUP * size_of::<u64>()), "groups are aligned");
        // SAFETY: the block has room for `count` slots and is aligned to a cache line; words of all
        // ones are empty slots (S-2).
        unsafe { start.write_bytes(0xFF, count * S::WORDS) };
        self.memory_bytes += bytes;
        Ok(Slots { start, mask: (count - 1) as u32, segment: segment as u32, kind: PhantomData })
    }

    fn release(&mut self, slots: Slots<S>) {
        let bytes = slots.count() * S::WORDS * size_of::<u64>();
        assert!(self.memory_bytes >= bytes, "no more is given back than was taken");
        self.memory_bytes -= bytes;
        // SAFETY: made by `allocate` with this size; the caller has replaced every mention of it.
        unsafe { self.pool.free(slots.start.cast(), bytes) };
    }

    fn start(&mut self) -> Result<(), OutOfMemory> {
        assert!(self.segments.is_empty() && self.len == 0, "a table starts once");
        let refused = self.refused();
        self.directory.try_reserve_exact(2).map_err(|_| refused)?;
        self.segments.try_reserve(1).map_err(|_| refused)?;
        let slots = self.allocate(FIRST_SLOTS, 0)?;
        self.segments.push(Segment { slots, len: 0, depth: 0, upper: 0 });
        self.directory.extend([slots, slots]);
        self.bits = 1;
        Ok(())
    }

    /// Makes room in a full segment: one step, which may have to be repeated.
    fn grow(&mut self, segment: usize) -> Result<(), OutOfMemory> {
        let Segment { slots, depth, len, .. } = self.segments[segment];
        debug_assert!(len as usize * 4 >= slots.count() * 3, "only a full segment grows (T-3)");
        let needed_bits = self.segments.len().ilog2() + SPARE_BITS;
        if slots.count() < FULL_SLOTS {
            self.enlarge(segment, slots.count() * ENLARGE)
        } else if depth >= needed_bits.max(8) {
            self.enlarge(segment, slots.count() * 2)
        } else {
            self.divide(segment)
        }
    }

    fn enlarge(&mut self, segment: usize, count: usize) -> Result<(), OutOfMemory> {
        let new = self.allocate(count, segment)?;
        let old = std::mem::replace(&mut self.segments[segment].slots, new);
        assert!(new.count() > old.count(), "a segment that is enlarged has more room");
        let mut moved = 0;
        for i in 0..old.count() {
            if !old.is_empty(i) {
                new.place(old.get(i));
                moved += 1;
            }
        }
        assert_eq!(moved, self.segments[segment].len, "all entries move to the larger segment");
        let named = self.named(segment);
        self.directory[named].fill(new);
        self.release(old);
        Ok(())
    }

    /// The directory entries that name a segment (T-1).
    fn named(&self, segment: usize) -> Range<usize> {
        let Segment { depth, upper, .. } = self.segments[segment];
        debug_assert!((1..64).contains(&self.bits) && depth <= self.bits, "hashes find entries (T-1)");
        let first = (upper >> (64 - self.bits)) as usize;
        first..first + (1 << (self.bits - depth))
    }

    /// Moves the half of a segment's hashes with the higher next bit to a new segment.
    fn divide(&mut self, segment: usize) -> Result<(), OutOfMemory> {
        let refused = self.refused();
        let Segment { slots: low, depth, upper, .. } = self.segments[segment];
        self.segments.try_reserve(1).map_err(|_| refused)?;
        if depth == self.bits {
            // Doubled before anything else, so that a failure below leaves a valid table.
            let mut doubled = Vec::new();
            doubled.try_reserve_exact(self.directory.len() * 2).map_err(|_| refused)?;
            doubled.extend(self.directory.iter().flat_map(|&entry| [entry, entry]));
            self.directory = doubled;
            self.bits += 1;
        }
        let high = self.allocate(low.count(), self.segments.len())?;
        let moved = Self::part(low, high, depth);
        let named = self.named(segment);
        assert!(named.len() >= 2 && named.len().is_multiple_of(2), "two halves have entries (T-1)");
        assert!(named.end <= self.directory.len(), "a segment is named by the directory (T-1)");
        let middle = (named.start + named.end) / 2;
        self.directory[middle..named.end].fill(high);
        let low = &mut self.segments[segment];
        assert!(moved <= low.len, "no more entries move than there were");
        low.len -= moved;
        low.depth += 1;
        let upper = upper | 1 << (63 - depth);
        self.segments.push(Segment { slots: high, len: moved, depth: depth + 1, upper });
        Ok(())
    }

    /// Moves entries whose hash has the bit after the upper `depth` set from `low` to the empty
    /// `high`, and puts the others where they belong now. Returns the number moved.
    fn part(low: Slots<S>, high: Slots<S>, depth: u32) -> u32 {
        debug_assert_eq!(low.count(), high.count(), "a segment is divided into two of its size");
        let start = (0..low.count()).find(|&i| low.is_empty(i)).expect("T-3");
        let mut moved = 0;
        // From an empty slot on, a probe sequence never reaches back behind it; what was placed
        // again lies at or before the slot it was taken from.
        for i in start + 1..start + low.count() {
            if low.is_empty(i) {
                continue;
            }
            let slot = low.get(i);
            low.set_empty(i);
            if S::hash(slot.key()) << depth >> 63 == 1 {
                high.place(slot);
                moved += 1;
            } else {
                low.place(slot);
            }
        }
        moved
    }

    pub(crate) fn clear(&mut self) {
        self.directory.clear();
        for segment in std::mem::take(&mut self.segments) {
            self.release(segment.slots);
        }
        self.directory = Vec::new();
        self.bits = 1;
        self.len = 0;
        assert_eq!(self.memory_bytes, 0, "all segments were given back");
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, u64)> + '_ {
        self.segments
            .iter()
            .flat_map(|segment| {
                let slots = segment.slots;
                (0..slots.count()).map(move |i| slots.get(i)).filter(|slot| slot.value() != EMPTY)
            })
            .map(|slot| (slot.key(), slot.value()))
    }

    /// Gives the memory of one segment back; for a table that is used no more. Returns whether there
    /// was one.
    pub(crate) fn release_segment(&mut self) -> bool {
        self.directory.clear();
        self.len = 0;
        match self.segments.pop() {
            Some(segment) => self.release(segment.slots),
            None => {
                self.directory = Vec::new();
                assert_eq!(self.memory_bytes, 0, "all segments were given back");
                return false;
            }
        }
        true
    }

    /// Segments, for [`Table::sweep`].
    pub(crate) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Goes through the slots of a segment from `from` on, at most `budget` of them, and takes out
    /// each entry that `take` accepts. Returns the slot to go on with; `None` at the end.
    pub(crate) fn sweep(
        &mut self,
        segment: usize,
        from: usize,
        budget: &mut usize,
        mut take: impl FnMut(u128, u64) -> bool,
    ) -> Option<usize> {
        let Segment { slots, .. } = self.segments[segment];
        let mut i = from;
        while i < slots.count() {
            if *budget == 0 {
                return Some(i);
            }
            *budget -= 1;
            let slot = slots.get(i);
            if slot.value() != EMPTY && take(slot.key(), slot.value()) {
                // Another may have moved into slot `i`: it is looked at again.
                slots.take_out(i);
                debug_assert!(self.segments[segment].len > 0, "entries are counted");
                self.segments[segment].len -= 1;
                self.len -= 1;
            } else {
                i += 1;
            }
        }
        None
    }

    /// Panics if an invariant of the module does not hold.
    pub(crate) fn check(&self) {
        let mut len = 0;
        let mut named = vec![0usize; self.segments.len()];
        for (i, entry) in self.directory.iter().enumerate() {
            let segment = &self.segments[entry.segment as usize];
            assert!(entry.start == segment.slots.start && entry.mask == segment.slots.mask, "T-4");
            named[entry.segment as usize] += 1;
            assert!(self.named(entry.segment as usize).contains(&i), "T-1");
        }
        for (number, segment) in self.segments.iter().enumerate() {
            assert_eq!(named[number], 1 << (self.bits - segment.depth), "T-1");
            let slots = segment.slots;
            assert!(segment.len as usize * 4 <= slots.count() * 3, "T-3");
            let used = (0..slots.count()).filter(|&i| !slots.is_empty(i));
            for i in used {
                let hash = S::hash(slots.get(i).key());
                let home = self.slots(hash).expect("there is a directory");
                assert_eq!(home.segment as usize, number, "T-1");
                let first = self::home(hash);
                let distance = i.wrapping_sub(first) & slots.mask as usize;
                assert!((0..distance).all(|d| !slots.is_empty(first + d)), "T-2");
                len += 1;
            }
        }
        assert_eq!(len, self.len);
        assert_eq!(self.segments.iter().map(|segment| segment.len as usize).sum::<usize>(), len);
    }
}

impl<S: Slot> Drop for Table<S> {
    fn drop(&mut self) {
        while self.release_segment() {}
    }
}
