//! The array: composite integer keys as mixed-radix numbers, pages where there are entries.
//!
//! Responsible for: positions of keys, pages, their release when empty. Not responsible for: which
//! keys are worth an array (`plan`), what happens to the others.
//!
//! - A-1 A page's `used` is the number of its slots that hold a TID; a page with none is `NO_PAGE`,
//!   which nobody writes.
//! - A-2 `pages[0]` is the page of positions `first_page * PAGE_SLOTS` on.

use std::ptr::NonNull;

use super::super::prefetch_line;
use crate::key::{Component, KeyShape};
use crate::pool::{BlockPool, OutOfMemory};

pub(super) const PAGE_SLOTS: usize = 1024;
const PAGE_SHIFT: u32 = PAGE_SLOTS.trailing_zeros();
const PAGE_BYTES: usize = PAGE_SLOTS * size_of::<u64>();

/// A slot without a TID.
pub(super) const EMPTY: u64 = u64::MAX;
/// The page of all positions that have none.
static NO_PAGE: [u64; PAGE_SLOTS] = [EMPTY; PAGE_SLOTS];

/// Pages that the directory may be extended by without entries that justify it, besides a quarter
/// of its length.
const MAX_GAP_PAGES: usize = 64;
/// Slots that need not be justified by entries.
const FREE_SLOTS: usize = 8 * PAGE_SLOTS;
/// An array may have so many slots for each entry.
const SLOTS_PER_ENTRY: usize = 4;

/// One component of the key as a digit: values `min..min + span` (sign bit flipped).
#[derive(Clone, Copy, Debug)]
pub(super) struct Digit {
    component: Component,
    pub(super) min: u64,
    pub(super) span: u64,
    pub(super) stride: u64,
}

impl Digit {
    /// Whether a component can be a digit: it must not straddle the halves of the key.
    pub(super) fn suits(component: Component) -> bool {
        component.shift >= 64 || component.shift + component.bits <= 64
    }

    /// A digit for the values `min..=max`, perhaps with a lower `min`.
    ///
    /// Values relative to `min` have `k` bits, and `min + 2^k` must fit the component: then a value
    /// below `min`, which underflows, has a bit above those `k` (see [`Half`]). If they have as many
    /// bits as the component, nothing can be told apart by higher bits, and all values are taken.
    pub(super) fn new(component: Component, min: u64, max: u64, stride: u64) -> Self {
        assert!(min <= max && stride > 0, "a digit has a value, and weight");
        let bits = Self::bits_of(max - min);
        assert!(bits < 64, "a digit has far fewer values than there are");
        let room = (1u128 << component.bits) - (1 << bits);
        let min = min.min(room as u64);
        let span = if bits == component.bits { 1 << bits } else { max - min + 1 };
        Self { component, min, span, stride }
    }

    /// Bits of the greatest digit.
    fn bits_of(greatest: u64) -> u32 {
        64 - greatest.leading_zeros()
    }

    fn bits(&self) -> u32 {
        Self::bits_of(self.span - 1)
    }

    fn half(&self) -> usize {
        usize::from(self.component.shift < 64)
    }

    fn shift(&self) -> u32 {
        self.component.shift % 64
    }
}

/// Ranges of all digits in one half of the key, checked in one go.
///
/// `x = half - least` is, component by component, the value relative to `min`, unless one is below:
/// the lowest such component borrows and shows a bit outside. `most - x` does the same for one above
/// its greatest digit. So `(x | most - x) & outside == 0` says that all are inside.
#[derive(Clone, Copy, Debug)]
struct Half {
    least: u64,
    most: u64,
    outside: u64,
}

/// A digit as `position` wants it: `(x & mask) >> shift` times `stride`.
#[derive(Clone, Copy, Debug)]
struct Term {
    mask: u64,
    stride: u64,
    shift: u32,
    half: u32,
}

impl Term {
    const ZERO: Self = Self { mask: 0, stride: 0, shift: 0, half: 0 };
}

#[derive(Clone, Copy)]
struct Page {
    slots: NonNull<u64>,
    used: u32,
}

impl Page {
    fn none() -> Self {
        Self { slots: NonNull::from(&NO_PAGE).cast(), used: 0 }
    }

    fn exists(&self) -> bool {
        self.slots != NonNull::from(&NO_PAGE).cast()
    }
}

/// The array. One that covers nothing takes no memory.
pub(super) struct DenseArray {
    terms: [Term; KeyShape::MAX_COMPONENTS],
    halves: [Half; 2],
    first_page: usize,
    pages: Vec<Page>,
    len: usize,
    allocated: usize,
    /// In the order of the key's components; none if no key is covered.
    digits: Vec<Digit>,
    pool: BlockPool,
}

// SAFETY: the array owns its pages as a `Vec<u64>` would; shared references only read them.
unsafe impl Send for DenseArray {}
// SAFETY: as above.
unsafe impl Sync for DenseArray {}

/// What became of a key offered to the array.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Put {
    Done,
    /// Not covered, or a page for it is not worth it.
    Refused,
}

impl DenseArray {
    /// An array that covers no key.
    pub(super) fn nothing(pool: &BlockPool) -> Self {
        Self {
            terms: [Term::ZERO; KeyShape::MAX_COMPONENTS],
            // Whatever `x` is, `x | most - x` is all ones.
            halves: [Half { least: 0, most: u64::MAX, outside: u64::MAX }; 2],
            first_page: 0,
            pages: Vec::new(),
            len: 0,
            allocated: 0,
            digits: Vec::new(),
            pool: pool.clone(),
        }
    }

    /// An array of keys with these digits, one for each component.
    pub(super) fn new(digits: Vec<Digit>, pool: &BlockPool) -> Self {
        assert!((1..=KeyShape::MAX_COMPONENTS).contains(&digits.len()), "a key has one to four digits");
        let mut array = Self::nothing(pool);
        array.halves = [Half { least: 0, most: 0, outside: u64::MAX }; 2];
        for (term, digit) in array.terms.iter_mut().zip(&digits) {
            let (half, shift) = (digit.half(), digit.shift());
            let mask = ((1 << digit.bits()) - 1) << shift;
            *term = Term { mask, stride: digit.stride, shift, half: half as u32 };
            let half = &mut array.halves[half];
            half.least |= digit.min << shift;
            half.most |= (digit.span - 1) << shift;
            half.outside &= !mask;
        }
        array.digits = digits;
        array
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Slots in pages that exist.
    pub(super) fn slots(&self) -> usize {
        self.allocated * PAGE_SLOTS
    }

    /// Whether it can cover any key.
    pub(super) fn covers_something(&self) -> bool {
        !self.digits.is_empty()
    }

    /// Whether it has a position for a key.
    #[inline]
    pub(super) fn covers(&self, key: u128) -> bool {
        self.position(key).is_some()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.allocated * PAGE_BYTES + self.pages.capacity() * size_of::<Page>()
    }

    pub(super) fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// The first and one past the last position for which there may be a page.
    pub(super) fn positions(&self) -> std::ops::Range<u64> {
        let first = self.first_page as u64 * PAGE_SLOTS as u64;
        first..first + self.pages.len() as u64 * PAGE_SLOTS as u64
    }

    /// The position of a key; `None` if a component is outside its digit.
    fn position(&self, key: u128) -> Option<u64> {
        self.position_of(key, false)
    }

    /// [`DenseArray::position`]; `narrow`, a constant where this is inlined: no key of the index has
    /// anything in its lower half, and one that has is none of them.
    #[inline(always)]
    fn position_of(&self, key: u128, narrow: bool) -> Option<u64> {
        let [upper, lower] = &self.halves;
        let x = ((key >> 64) as u64).wrapping_sub(upper.least);
        let y = (key as u64).wrapping_sub(lower.least);
        let outside_upper = (x | upper.most.wrapping_sub(x)) & upper.outside;
        let outside_lower = if narrow { y } else { (y | lower.most.wrapping_sub(y)) & lower.outside };
        if outside_upper | outside_lower != 0 {
            return None;
        }
        let part = |term: &Term| {
            let half = if narrow || term.half == 0 { x } else { y };
            ((half & term.mask) >> term.shift) * term.stride
        };
        let [first, second, others @ ..] = &self.terms;
        let mut position = part(first);
        // Most keys have one or two components; the branch goes the same way for each index.
        if self.digits.len() > 1 {
            position += part(second);
            if self.digits.len() > 2 {
                position += others.iter().map(part).sum::<u64>();
            }
        }
        Some(position)
    }

    /// The key at a position.
    fn key(&self, position: u64) -> u128 {
        let mut key = 0;
        for digit in &self.digits {
            // Strides divide each other; the most significant digit's quotient needs no remainder,
            // but its span is above every quotient, so taking it does no harm.
            let value = digit.min + position / digit.stride % digit.span;
            key |= u128::from(value) << digit.component.shift;
        }
        debug_assert_eq!(self.position(key), Some(position), "a position is that of its key");
        key
    }

    /// The place of a position: index of its page, if the directory reaches there, and slot.
    #[inline(always)]
    fn place(&self, position: u64) -> (usize, usize) {
        let page = (position >> PAGE_SHIFT) as usize;
        (page.wrapping_sub(self.first_page), position as usize % PAGE_SLOTS)
    }

    /// The TID of a key, or [`EMPTY`].
    #[inline(always)]
    pub(super) fn get(&self, key: u128) -> u64 {
        self.look_up(key, false)
    }

    /// [`DenseArray::get`]; `narrow`: all keys of the index have at most eight bytes.
    #[inline(always)]
    pub(super) fn look_up(&self, key: u128, narrow: bool) -> u64 {
        let Some(position) = self.position_of(key, narrow) else { return EMPTY };
        let (page, slot) = self.place(position);
        match self.pages.get(page) {
            // SAFETY: every page, `NO_PAGE` too, has `PAGE_SLOTS` initialised slots, and
            // `slot < PAGE_SLOTS`.
            Some(page) => unsafe { page.slots.add(slot).read() },
            None => EMPTY,
        }
    }

    /// Asks the processor for the slot of a key; null if the array has none.
    #[inline(always)]
    pub(super) fn ask(&self, key: u128, narrow: bool) -> *const u64 {
        let Some(position) = self.position_of(key, narrow) else { return std::ptr::null() };
        let (page, slot) = self.place(position);
        let Some(page) = self.pages.get(page) else { return std::ptr::null() };
        let slot = page.slots.as_ptr().wrapping_add(slot).cast_const();
        prefetch_line(slot);
        slot
    }

    /// The slot of a key whose page exists.
    #[inline(always)]
    fn slot_mut(&mut self, key: u128) -> Option<(&mut u64, &mut u32)> {
        let (page, slot) = self.place(self.position(key)?);
        let page = self.pages.get_mut(page)?;
        if !page.exists() {
            return None;
        }
        // SAFETY: the page is ours, not `NO_PAGE`; in bounds as in `get`; `&mut self` makes the
        // reference the only one.
        let slot = unsafe { page.slots.add(slot).as_mut() };
        Some((slot, &mut page.used))
    }

    /// Puts a TID where its page exists and the slot is empty. Returns what was there before, or
    /// `None` if there is no page.
    #[inline(always)]
    pub(super) fn put_if_paged(&mut self, key: u128, tid: u64) -> Option<u64> {
        let (slot, used) = self.slot_mut(key)?;
        let before = *slot;
        if before == EMPTY {
            *slot = tid;
            *used += 1;
            debug_assert!(*used as usize <= PAGE_SLOTS, "entries are counted (A-1)");
            self.len += 1;
        }
        Some(before)
    }

    /// Puts a TID for a key that is not there. `entries` is the number in the whole index, which
    /// justifies pages.
    pub(super) fn put(&mut self, key: u128, tid: u64, entries: usize) -> Result<Put, OutOfMemory> {
        let Some(position) = self.position(key) else { return Ok(Put::Refused) };
        if self.make_page(position, entries)? == Put::Refused {
            return Ok(Put::Refused);
        }
        let before = self.put_if_paged(key, tid);
        assert_eq!(before, Some(EMPTY), "the page is there and the key is not");
        Ok(Put::Done)
    }

    /// Makes sure that there is a page for a position.
    fn make_page(&mut self, position: u64, entries: usize) -> Result<Put, OutOfMemory> {
        if self.pages.is_empty() {
            self.first_page = (position >> PAGE_SHIFT) as usize;
        }
        let page = (position >> PAGE_SHIFT) as usize;
        let end = self.first_page + self.pages.len();
        let exists = page >= self.first_page && page < end && self.pages[page - self.first_page].exists();
        if exists {
            return Ok(Put::Done);
        }
        let missing = self.first_page.saturating_sub(page) + (page + 1).saturating_sub(end);
        let justified = (SLOTS_PER_ENTRY * entries + FREE_SLOTS) / PAGE_SLOTS;
        let far = missing > MAX_GAP_PAGES + self.pages.len() / 4 && self.pages.len() + missing > justified;
        if self.allocated >= justified || far {
            return Ok(Put::Refused);
        }
        let refused = self.pool.refused_by_system();
        self.pages.try_reserve(missing).map_err(|_| refused)?;
        let slots = self.pool.alloc(PAGE_BYTES)?.cast::<u64>();
        // SAFETY: the block has `PAGE_BYTES`; all bytes 255 are `EMPTY` slots.
        unsafe { slots.write_bytes(0xFF, PAGE_SLOTS) };
        if page < self.first_page {
            self.pages.splice(0..0, (0..missing).map(|_| Page::none()));
            self.first_page = page;
        } else {
            self.pages.extend((0..missing).map(|_| Page::none()));
        }
        let page = &mut self.pages[page - self.first_page];
        assert!(!page.exists(), "a page is made once");
        *page = Page { slots, used: 0 };
        self.allocated += 1;
        debug_assert!(self.allocated <= self.pages.len(), "pages are counted (A-1)");
        Ok(Put::Done)
    }

    /// Removes a key; its TID, or [`EMPTY`] if it is not there.
    pub(super) fn take(&mut self, key: u128) -> u64 {
        let Some((slot, used)) = self.slot_mut(key) else { return EMPTY };
        let tid = std::mem::replace(slot, EMPTY);
        if tid == EMPTY {
            return EMPTY;
        }
        debug_assert!(*used > 0, "entries are counted (A-1)");
        *used -= 1;
        let emptied = *used == 0;
        self.len -= 1;
        if emptied {
            let position = self.position(key).expect("the key was there");
            let (page, _) = self.place(position);
            self.free_page(page);
            self.trim();
        }
        tid
    }

    /// Gives a key another TID; what it had, or [`EMPTY`] if it is not there.
    pub(super) fn retarget(&mut self, key: u128, new: u64) -> u64 {
        debug_assert_ne!(new, EMPTY, "a TID is none of an empty slot");
        match self.slot_mut(key) {
            Some((slot, _)) if *slot != EMPTY => std::mem::replace(slot, new),
            _ => EMPTY,
        }
    }

    fn free_page(&mut self, page: usize) {
        let page = std::mem::replace(&mut self.pages[page], Page::none());
        assert!(page.exists(), "the page of no entries is nobody's (A-1)");
        assert_eq!(page.used, 0, "only an empty page is given back (A-1)");
        self.allocated -= 1;
        // SAFETY: taken in `make_page` with this size; the directory no longer names it.
        unsafe { self.pool.free(page.slots.cast(), PAGE_BYTES) };
    }

    /// Shortens the directory where there are no pages: always at the end, at the front when that
    /// is half of it, so that a queue's directory stays short at constant cost an operation.
    fn trim(&mut self) {
        while self.pages.last().is_some_and(|page| !page.exists()) {
            self.pages.pop();
        }
        debug_assert_eq!(self.pages.is_empty(), self.len == 0, "an array with entries has pages");
        let front = self.pages.iter().take_while(|page| !page.exists()).count();
        if front > MAX_GAP_PAGES && front >= self.pages.len() / 2 {
            self.pages.drain(..front);
            self.first_page += front;
        }
    }

    /// Takes entries out, from the last page on: looks at no more than `budget` slots. `accept` says
    /// whether it found another place for an entry; if not, this stops. Returns whether all is out.
    pub(super) fn drain(&mut self, budget: usize, mut accept: impl FnMut(u128, u64) -> bool) -> bool {
        let mut budget = budget;
        debug_assert!(self.allocated <= self.pages.len(), "pages are counted (A-1)");
        while let Some(&page) = self.pages.last() {
            let base = (self.first_page + self.pages.len() - 1) as u64 * PAGE_SLOTS as u64;
            // Entries are taken from the page's end: what is left of a page that was begun is at its
            // front, and `used` says when to stop.
            for slot in (0..PAGE_SLOTS).rev() {
                if self.pages.last().is_some_and(|page| page.used == 0) {
                    break;
                }
                if budget == 0 {
                    return false;
                }
                // SAFETY: as in `get`.
                let tid = unsafe { page.slots.add(slot).read() };
                if tid == EMPTY {
                    continue;
                }
                budget -= 1;
                if !accept(self.key(base + slot as u64), tid) {
                    return false;
                }
                // SAFETY: the page holds an entry, so it is not `NO_PAGE`; in bounds as above.
                unsafe { page.slots.add(slot).write(EMPTY) };
                self.len -= 1;
                self.pages.last_mut().expect("seen above").used -= 1;
            }
            if page.exists() {
                self.free_page(self.pages.len() - 1);
            }
            self.pages.pop();
        }
        assert_eq!((self.len, self.allocated), (0, 0), "an array without pages has no entries (A-1)");
        true
    }

    /// All entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, u64)> + '_ {
        self.pages.iter().enumerate().flat_map(move |(i, page)| {
            let base = (self.first_page + i) as u64 * PAGE_SLOTS as u64;
            // SAFETY: as in `get`.
            let tid = move |slot: usize| unsafe { page.slots.add(slot).read() };
            let used = (0..PAGE_SLOTS).map(move |slot| (slot, tid(slot))).filter(|entry| entry.1 != EMPTY);
            used.map(move |(slot, tid)| (self.key(base + slot as u64), tid))
        })
    }

    /// Panics if an invariant of the module does not hold.
    pub(super) fn check(&self) {
        let mut len = 0;
        for page in &self.pages {
            // SAFETY: as in `get`.
            let used =
                (0..PAGE_SLOTS).filter(|&slot| unsafe { page.slots.add(slot).read() } != EMPTY).count();
            assert_eq!(used, page.used as usize, "A-1");
            assert_eq!(page.exists(), used > 0, "A-1");
            len += used;
        }
        assert_eq!(len, self.len);
        assert_eq!(self.allocated, self.pages.iter().filter(|page| page.exists()).count());
        assert!(self.iter().all(|(key, tid)| self.get(key) == tid));
    }
}

impl Drop for DenseArray {
    fn drop(&mut self) {
        for page in self.pages.drain(..).filter(|page| page.exists()) {
            // SAFETY: taken in `make_page` with this size; nobody can reach it now.
            unsafe { self.pool.free(page.slots.cast(), PAGE_BYTES) };
        }
    }
}
