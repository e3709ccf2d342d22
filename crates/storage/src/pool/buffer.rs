//! Buffers that whoever has them writes again and again: what is read from files in large pieces.

use std::ptr::NonNull;

use super::{BlockPool, OutOfMemory};

/// A buffer that lies in a slab, so in a large page: a disk fills it in half the time that it takes for as many small pages.
///
/// B-1 The bytes are this buffer's alone from when it is made until it is dropped; it holds its pool for so long.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
    pool: BlockPool,
}

// SAFETY: the buffer owns its bytes (B-1) as a `Box<[u8]>` would, and the pool may be used by any thread.
unsafe impl Send for Buffer {}
// SAFETY: who has it shared only reads it.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` bytes, as long as a block may be, with any contents. It begins at a multiple of its length if that is
    /// a power of two.
    ///
    /// # Errors
    /// The pool has no memory, of its limit or of the system.
    pub(crate) fn new(pool: &BlockPool, len: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { start: pool.alloc(len)?, len, pool: pool.clone() })
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes are mapped there, so they have been written or read as zeros, and nobody else writes them (B-1).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: taken in `new` from this pool with this length, and nobody has its bytes any more.
        unsafe { self.pool.free(self.start, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_begins_at_a_multiple_of_its_length_and_is_used_again() {
        let pool = BlockPool::for_buffers(0);
        let mut buffer = Buffer::new(&pool, 64 << 10).unwrap();
        let start = buffer.as_ptr();
        assert!((start as usize).is_multiple_of(64 << 10));
        buffer.fill(7);
        assert_eq!((buffer.len(), buffer[buffer.len() - 1], pool.in_use_bytes()), (64 << 10, 7, 64 << 10));
        drop(buffer);
        assert_eq!(pool.in_use_bytes(), 0);
        assert_eq!(Buffer::new(&pool, 64 << 10).unwrap().as_ptr(), start);
    }
}
