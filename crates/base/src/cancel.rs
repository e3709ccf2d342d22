//! Whether somebody has asked for work to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says that work is to end, from another thread. Clones say it of the same work.
#[derive(Clone, Default, Debug)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the work to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Self::set`] was called.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
