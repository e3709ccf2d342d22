//! Sections of any length, written once: encoded columns.
//!
//! A section lies in a block of the next larger class, or in a run of pages. Classes are 1, 1.25, 1.5 and 1.75 times
//! the powers of two, in multiples of 64, so tables share slabs. What rounding and the rest of a slab waste is at most a
//! quarter, or 63 bytes (`waste_is_a_quarter_or_less`). Small ones are left to the allocator of everything else: slabs of
//! each of their classes, with few blocks in each, took a tenth of a limit of 500 MB.
//!
//! - P-1 The bytes are one part's alone from when it is made until it is dropped; it holds its pool for so long.
//! - P-2 They are written before anybody has the part, and never after.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use super::system::PAGE_BYTES;
use super::{BLOCK_ALIGN, BlockPool, OutOfMemory, SLAB_BYTES};

/// Longer ones lie in runs: three blocks of a third of a slab waste more than a quarter of it.
const LONGEST_IN_BLOCK: usize = SLAB_BYTES / 4;

/// Shorter ones come from the allocator of everything else.
const SHORTEST_IN_BLOCK: usize = 8 << 10;
const LONGEST_SMALL: usize = SHORTEST_IN_BLOCK - 1;

/// An immutable section of bytes in a pool's memory, aligned to a cache line.
pub struct Part {
    start: NonNull<u8>,
    len: usize,
    pool: BlockPool,
}

// SAFETY: the part owns its bytes (P-1) as a `Box<[u8]>` would, and the pool may be used by any thread.
unsafe impl Send for Part {}
// SAFETY: nobody writes the bytes any more (P-2).
unsafe impl Sync for Part {}

/// A cache line, for a dangling address that is aligned like one.
#[repr(align(64))]
struct Line;

/// The bytes that a section of `len` takes.
fn taken_bytes(len: usize) -> usize {
    const { assert!(align_of::<Line>() == BLOCK_ALIGN) };
    if len > LONGEST_IN_BLOCK {
        return len.next_multiple_of(PAGE_BYTES);
    }
    // A quarter of the greatest power of two below, of which the class is 5 to 8.
    let step = (len.saturating_sub(1).checked_ilog2().map_or(0, |bits| 1 << bits) / 4).max(BLOCK_ALIGN);
    len.next_multiple_of(step)
}

impl Part {
    /// A section with these bytes. An empty one takes no memory.
    ///
    /// # Errors
    /// The pool has no memory, of its limit or of the system.
    pub fn new(pool: &BlockPool, bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let (len, taken) = (bytes.len(), taken_bytes(bytes.len()));
        debug_assert!(taken >= len, "a section fits its class");
        let start = match len {
            0 => NonNull::<Line>::dangling().cast(),
            1..=LONGEST_SMALL => pool.alloc_small(taken)?,
            SHORTEST_IN_BLOCK..=LONGEST_IN_BLOCK => pool.alloc(taken)?,
            _ => pool.alloc_run(taken)?,
        };
        debug_assert!((start.as_ptr() as usize).is_multiple_of(BLOCK_ALIGN), "sections are aligned");
        // SAFETY: `taken` bytes are there, no fewer than `len`; they are new, so not `bytes`. Of none, none are copied.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), len) };
        Ok(Self { start, len, pool: pool.clone() })
    }

    /// Bytes that it takes from the pool.
    pub fn memory_bytes(&self) -> usize {
        taken_bytes(self.len)
    }
}

impl Deref for Part {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes lie there, written (P-2), and stay as long as the part (P-1).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let taken = self.memory_bytes();
        // SAFETY: taken in `new` for this length, from this pool and in this way; the part is gone, so nobody reads it.
        unsafe {
            match self.len {
                0 => {}
                1..=LONGEST_SMALL => self.pool.free_small(self.start, taken),
                SHORTEST_IN_BLOCK..=LONGEST_IN_BLOCK => self.pool.free(self.start, taken),
                _ => self.pool.free_run(self.start, taken),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_is_a_quarter_or_less() {
        let mut classes = std::collections::BTreeSet::new();
        for len in 1..=4 * SLAB_BYTES {
            let taken = taken_bytes(len);
            assert!(taken >= len);
            if len > LONGEST_IN_BLOCK {
                assert!(taken - len < PAGE_BYTES && taken.is_multiple_of(PAGE_BYTES));
                continue;
            }
            classes.insert(taken);
            assert!(taken.is_multiple_of(BLOCK_ALIGN));
            // What a slab full of them holds.
            let held = SLAB_BYTES / taken * len;
            assert!(held * 4 >= SLAB_BYTES * 3 || taken - len < BLOCK_ALIGN, "{len} in {taken}");
        }
        let first: Vec<usize> = classes.iter().copied().take(13).collect();
        assert_eq!(first, [64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280]);
        assert_eq!(classes.len(), 4 * 12);
    }
}
