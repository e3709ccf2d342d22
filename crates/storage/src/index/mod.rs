//! Indexes.

mod ordered;
mod pages;

pub use ordered::{Cursor, OrderedIndex, Range};

use crate::pool::OutOfMemory;

/// Why an insert changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InsertError {
    /// The key is there already, with this TID.
    #[error("the key exists, at row {0}")]
    Duplicate(u64),
    /// The pool refused memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
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
