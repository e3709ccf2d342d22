//! What happens while a long statement works beside its table: nothing, but for tests, in which others run there.

#[cfg(test)]
type Others = std::sync::Arc<dyn Fn() + Send + Sync>;

/// What tests have happen.
#[derive(Default)]
pub(crate) struct Meanwhile {
    #[cfg(test)]
    others: parking_lot::Mutex<Option<Others>>,
}

impl Meanwhile {
    /// A step of a long statement ends, which owns no partition.
    #[inline]
    pub(crate) fn happens(&self) {
        #[cfg(test)]
        {
            // Not while it happens already.
            let others = self.others.lock().take();
            if let Some(others) = others {
                others();
                *self.others.lock() = Some(others);
            }
        }
    }

    /// Has `others` happen from now on.
    #[cfg(test)]
    pub(crate) fn put(&self, others: Option<Others>) {
        *self.others.lock() = others;
    }
}
