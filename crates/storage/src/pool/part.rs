//! Sections of any length, written once: encoded columns.
//!
//! A section lies in a run of pages, or, if it is short, where everything else is allocated; none in slabs. There hot
//! blocks come and go by the chunk, and sections that stay longer would hold on to slabs that are empty else: when they
//! shared them, 300 of the 460 MB of these slabs were free while TPC-C ran at four times its limit.
//!
//! - P-1 The bytes are one part's alone from when it is made until it is dropped; it holds its pool for so long.
//! - P-2 They are written before anybody has the part, and never after.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use super::system::PAGE_BYTES;
use super::{BLOCK_ALIGN, BlockPool, OutOfMemory};

/// Longer ones lie in runs, of which less than an eighth is wasted then.
const LONGEST_SMALL: usize = 8 * PAGE_BYTES - BLOCK_ALIGN;

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
    len.next_multiple_of(if len > LONGEST_SMALL { PAGE_BYTES } else { BLOCK_ALIGN })
}

impl Part {
    /// A section with these bytes. An empty one takes no memory.
    ///
    /// # Errors
    /// The pool has no memory, of its limit or of the system.
    pub fn new(pool: &BlockPool, bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let part = Self::unwritten(pool, bytes.len())?;
        // SAFETY: so many bytes are there; they are new, so not `bytes`. Of none, none are copied.
        unsafe { part.start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), part.len) };
        Ok(part)
    }

    /// A section of some length, which the caller writes at once.
    fn unwritten(pool: &BlockPool, len: usize) -> Result<Self, OutOfMemory> {
        let taken = taken_bytes(len);
        debug_assert!(taken >= len, "a section fits");
        let start = match len {
            0 => NonNull::<Line>::dangling().cast(),
            1..=LONGEST_SMALL => pool.alloc_small(taken)?,
            _ => pool.alloc_run(taken)?,
        };
        debug_assert!((start.as_ptr() as usize).is_multiple_of(BLOCK_ALIGN), "sections are aligned");
        Ok(Self { start, len, pool: pool.clone() })
    }

    /// Bytes that it takes from the pool.
    pub fn memory_bytes(&self) -> usize {
        taken_bytes(self.len)
    }
}

/// A section that nobody has yet but whoever writes it.
pub struct NewPart(Part);

impl NewPart {
    /// A section of this length, of any bytes.
    ///
    /// # Errors
    /// As of [`Part::new`].
    pub fn of_length(pool: &BlockPool, len: usize) -> Result<Self, OutOfMemory> {
        let part = Part::unwritten(pool, len)?;
        if len <= LONGEST_SMALL {
            // SAFETY: so many bytes are there, of this part alone (P-1). A run has zeros, or what was there before.
            unsafe { part.start.write_bytes(0, len) };
        }
        Ok(Self(part))
    }

    /// Its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes lie there, written in `of_length` or before, and nobody else has the part (P-1).
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
    }

    /// The section, as it is from now on.
    pub fn finish(self) -> Part {
        self.0
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
                _ => self.pool.free_run(self.start, taken),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_is_an_eighth_or_less_than_a_cache_line() {
        for len in 1..=64 * PAGE_BYTES {
            let waste = taken_bytes(len) - len;
            assert!(waste < BLOCK_ALIGN || waste * 8 < len, "{len}");
        }
    }
}
