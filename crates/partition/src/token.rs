//! What a partition belongs to whoever has it, and whether a thread has one.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use parking_lot::MutexGuard;

use crate::data::PartitionState;

thread_local! {
    /// The partitions that this thread owns.
    static OWNED: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread owns a partition, so that nobody may wait in it who needs one.
pub(crate) fn owns_partition() -> bool {
    OWNED.get() > 0
}

/// A partition, owned until this is dropped.
pub(crate) struct Token<'p>(MutexGuard<'p, PartitionState>);

impl<'p> Token<'p> {
    /// Of the thread that has locked it.
    #[inline]
    pub(crate) fn new(state: MutexGuard<'p, PartitionState>) -> Self {
        OWNED.set(OWNED.get() + 1);
        Self(state)
    }
}

impl Drop for Token<'_> {
    #[inline]
    fn drop(&mut self) {
        OWNED.set(OWNED.get() - 1);
    }
}

impl Deref for Token<'_> {
    type Target = PartitionState;

    #[inline]
    fn deref(&self) -> &PartitionState {
        &self.0
    }
}

impl DerefMut for Token<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut PartitionState {
        &mut self.0
    }
}
