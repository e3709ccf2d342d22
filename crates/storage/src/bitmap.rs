//! Bitmaps over the slots of a chunk, in Arrow's bit order.
//!
//! The bits of a chunk's last, still growing word are read by a snapshot (slots below its row
//! count) while the executor sets bits above. So both sides go through relaxed atomics on whole
//! words, which cost nothing on the machines we know; there is one writer.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::ids::CHUNK_ROWS;

/// Words in a chunk's bitmap.
pub(crate) const WORDS: usize = CHUNK_ROWS / 64;

/// The word that holds `slot`.
///
/// # Safety
/// S-1: `block` is a live bitmap block, aligned to 8 bytes, not freed for `'a`.
#[inline(always)]
unsafe fn word<'a>(block: NonNull<u8>, index: usize) -> &'a AtomicU64 {
    debug_assert!(index < WORDS, "a word of the bitmap");
    debug_assert!(block.cast::<u64>().is_aligned(), "bitmaps are read by words (S-1)");
    // SAFETY: S-1; `index < WORDS`, and all accesses to bitmap words are atomic while shared.
    unsafe { AtomicU64::from_ptr(block.as_ptr().cast::<u64>().add(index)) }
}

/// Whether the bit of `slot` is set.
///
/// # Safety
/// S-1: as for `word`; `slot < CHUNK_ROWS`.
#[inline(always)]
pub(crate) unsafe fn get(block: NonNull<u8>, slot: usize) -> bool {
    debug_assert!(slot < CHUNK_ROWS, "a slot of the chunk (S-1)");
    // SAFETY: S-1 is the caller's.
    let bits = unsafe { word(block, slot >> 6) }.load(Ordering::Relaxed);
    (bits >> (slot & 63)) & 1 == 1
}

/// Sets or clears the bit of `slot`. There is one writer, so load and store suffice.
///
/// # Safety
/// S-1: as for `word`; `slot < CHUNK_ROWS`. S-2: the caller is the block's only writer.
#[inline(always)]
pub(crate) unsafe fn set(block: NonNull<u8>, slot: usize, on: bool) {
    debug_assert!(slot < CHUNK_ROWS, "a slot of the chunk (S-1)");
    // SAFETY: S-1 is the caller's.
    let word = unsafe { word(block, slot >> 6) };
    let mask = 1u64 << (slot & 63);
    let bits = word.load(Ordering::Relaxed);
    word.store(if on { bits | mask } else { bits & !mask }, Ordering::Relaxed);
}

/// Overwrites the bits of `count` slots from `first` on by those of `source`, 64 at a time.
///
/// # Safety
/// S-1: as for `word`; `first + count <= CHUNK_ROWS`. S-2: the caller is the block's only writer.
pub(crate) unsafe fn put(
    block: NonNull<u8>,
    first: usize,
    count: usize,
    source: impl IntoIterator<Item = u64>,
) {
    debug_assert!(first + count <= CHUNK_ROWS, "slots of one chunk (S-1)");
    let merge = |index: usize, mask: u64, bits: u64| {
        // SAFETY: S-1: a word of a slot that is written.
        let word = unsafe { word(block, index) };
        word.store(word.load(Ordering::Relaxed) & !mask | bits & mask, Ordering::Relaxed);
    };
    for (done, bits) in (0..count).step_by(64).zip(source) {
        let (length, at) = ((count - done).min(64), first + done);
        let (mask, shift) = (u64::MAX >> (64 - length), at & 63);
        merge(at >> 6, mask << shift, bits << shift);
        if shift + length > 64 {
            merge((at >> 6) + 1, mask >> (64 - shift), bits >> (64 - shift));
        }
    }
}

/// Clears all bits of a block that nobody else knows yet.
///
/// # Safety
/// S-1: `block` has [`crate::layout::BITMAP_BYTES`] bytes and one owner, the caller.
pub(crate) unsafe fn clear(block: NonNull<u8>) {
    // SAFETY: S-1.
    unsafe { block.as_ptr().write_bytes(0, crate::layout::BITMAP_BYTES) };
}

/// A copy of the bits of the first `slots` slots, as whole words; the bits behind are zero.
///
/// # Safety
/// S-1: as for `word`.
pub(crate) unsafe fn copy(block: NonNull<u8>, slots: usize) -> Vec<u64> {
    debug_assert!(slots <= CHUNK_ROWS, "slots of one chunk (S-1)");
    let words = slots.div_ceil(64);
    // SAFETY: S-1; `words <= WORDS`.
    let mut bits: Vec<u64> = (0..words).map(|i| unsafe { word(block, i) }.load(Ordering::Relaxed)).collect();
    if !slots.is_multiple_of(64)
        && let Some(last) = bits.last_mut()
    {
        *last &= (1u64 << (slots % 64)) - 1;
    }
    bits
}

/// The bits from `slot` to the end of its word, shifted down.
///
/// # Safety
/// S-1: as for `word`.
#[inline]
pub(crate) unsafe fn tail_of_word(block: NonNull<u8>, slot: usize) -> u64 {
    // SAFETY: S-1 is the caller's.
    unsafe { word(block, slot >> 6) }.load(Ordering::Relaxed) >> (slot & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_put_anywhere_change_their_slots_and_no_other() {
        for before in [0u64, u64::MAX] {
            for (first, count) in
                [(0, 1), (3, 61), (3, 62), (63, 2), (64, 64), (10, 200), (CHUNK_ROWS - 70, 70)]
            {
                let mut words = vec![before; WORDS];
                let block = NonNull::new(words.as_mut_ptr()).expect("not null").cast();
                let source = |i: usize| 0x9e37_79b9_7f4a_7c15u64.rotate_left(i as u32);
                // SAFETY: the block is a bitmap of our own, and the slots are in it.
                unsafe { put(block, first, count, (0..count.div_ceil(64)).map(source)) };
                for slot in 0..CHUNK_ROWS {
                    let expected = match slot.checked_sub(first) {
                        Some(i) if i < count => source(i / 64) >> (i % 64) & 1 == 1,
                        _ => before & 1 == 1,
                    };
                    // SAFETY: as above.
                    assert_eq!(unsafe { get(block, slot) }, expected, "{before} {first} {count} {slot}");
                }
            }
        }
    }
}
