//! What happens while a long statement works beside its table: nothing, but for tests, in which others run there.

#[cfg(test)]
type Others = std::sync::Arc<dyn Fn(Moment) + Send + Sync>;

/// When it happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Before what the statement does is there for all to see.
    Before,
    /// After.
    After,
}

/// What tests have happen.
#[derive(Default)]
pub(crate) struct Meanwhile {
    #[cfg(test)]
    others: parking_lot::Mutex<Option<Others>>,
}

impl Meanwhile {
    /// A step of a long statement ends, which owns no partition.
    #[inline]
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "only tests have others"))]
    pub(crate) fn happens(&self, moment: Moment) {
        #[cfg(not(test))]
        let _ = moment;
        #[cfg(test)]
        {
            // Not while it happens already.
            let others = self.others.lock().take();
            if let Some(others) = others {
                others(moment);
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
