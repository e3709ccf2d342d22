//! What a partition belongs to whoever has it, and whether a thread has one.

use std::ops::{Deref, DerefMut};

use albireo_env::KeptCore;
use parking_lot::MutexGuard;

use crate::data::PartitionState;

/// Whether this thread owns a partition, so that nobody may wait in it who needs one.
pub(crate) fn owns_partition() -> bool {
    KeptCore::is_held()
}

/// A partition, owned until this is dropped. Whoever has one keeps its core: others wait for it.
pub(crate) struct Token<'p>(MutexGuard<'p, PartitionState>, KeptCore);

impl<'p> Token<'p> {
    /// Of the thread that has locked it.
    #[inline]
    pub(crate) fn new(state: MutexGuard<'p, PartitionState>) -> Self {
        Self(state, KeptCore::new())
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
