//! A buffer for what is read from files in large pieces.

use std::ptr::NonNull;

use super::system::{self, Pages};
use super::{SLAB_BYTES, SlabPtr};

/// A buffer in two large pages, if the system has them: a disk fills them in half the time that it takes for as many small
/// pages. It begins where a page does.
///
/// Invariant: the bytes are this buffer's alone from when it is made until it is dropped, and were all written.
pub struct ReadBuffer(NonNull<u8>);

// SAFETY: the buffer owns its bytes (its invariant) as a `Box<[u8]>` would.
unsafe impl Send for ReadBuffer {}
// SAFETY: who has it shared only reads it.
unsafe impl Sync for ReadBuffer {}

impl ReadBuffer {
    /// Its length in bytes.
    pub const BYTES: usize = 2 * SLAB_BYTES;

    /// A new one; `None` when the system refuses.
    pub fn new() -> Option<Self> {
        let start = system::map(Self::BYTES, Pages::Huge)?;
        // Before anybody waits for a disk: the system clears the pages.
        for slab in (0..Self::BYTES).step_by(SLAB_BYTES) {
            // SAFETY: it lies in what was mapped.
            system::touch(SlabPtr(unsafe { start.add(slab) }));
        }
        Some(Self(start))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped, and read as zeros where nobody has written; only `bytes_mut` gives them to be
        // written, for as long as nobody else has them.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), Self::BYTES) }
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the buffer is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), Self::BYTES) }
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and nobody has its bytes any more.
        unsafe { system::unmap(self.0, Self::BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_begins_with_a_page_and_holds_what_is_written() {
        let mut buffer = ReadBuffer::new().unwrap();
        assert!((buffer.bytes().as_ptr() as usize).is_multiple_of(system::PAGE_BYTES));
        assert!(buffer.bytes().iter().all(|byte| *byte == 0));
        buffer.bytes_mut()[ReadBuffer::BYTES - 1] = 7;
        assert_eq!(buffer.bytes()[ReadBuffer::BYTES - 1], 7);
    }
}
