//! Row locks: which exclude each other, waiting for whoever holds one, deadlocks.
//!
//! Responsible for: the above. Not responsible for: where the locks of a partition are (`readers`), when a statement
//! takes one (`albireo_execute`), what it does once it has waited (the engine).
//!
//! A lock is what a transaction of several statements has read, with a mode. It keeps other such transactions from
//! locking the row or changing it; they wait on their own thread. A serial transaction, such as a procedure, never
//! waits: it changes the row, and whoever holds the lock is told, as of any other change of what it has read.
//!
//! | asked for \ there | written | FOR SHARE | FOR UPDATE |
//! |---|---|---|---|
//! | UPDATE, DELETE | goes on; the first to commit wins | waits | waits |
//! | FOR SHARE | waits | goes on | waits |
//! | FOR UPDATE | waits | waits | waits |
//!
//! I-1 Whoever waits owns no partition, and has taken none of the locks of the statement that waits.
//! I-2 Each waits for one other at a time; who would close a circle does not wait but fails.
//! I-3 Who is over, or was told of a conflict, holds no lock.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::marks::LockOwner;

/// Somebody else has a lock that a statement wants.
#[derive(Clone, Debug)]
pub struct Held {
    holder: Arc<LockOwner>,
    /// Of its releases, when that was so.
    releases: u64,
}

impl Held {
    /// This one has it.
    pub fn by(holder: &Arc<LockOwner>) -> Self {
        Self { holder: Arc::clone(holder), releases: holder.releases() }
    }

    /// Waits until the holder has released something, and so long at most; whether it has.
    pub fn wait(&self, longest: Duration) -> bool {
        self.holder.wait(self.releases, longest)
    }

    /// Whether this one had it.
    pub fn is_by(&self, owner: &Arc<LockOwner>) -> bool {
        Arc::ptr_eq(&self.holder, owner)
    }

    fn is_so(&self) -> bool {
        self.holder.releases() == self.releases
    }
}

/// Who waits for whom.
#[derive(Default)]
pub struct Waiters(Mutex<Vec<(Arc<LockOwner>, Held)>>);

/// One who waits; dropped, it waits no more.
pub struct Waiting<'w> {
    waiters: &'w Waiters,
    owner: Arc<LockOwner>,
}

impl Waiters {
    /// `owner` begins to wait; `None` if whom it would wait for waits for it.
    pub fn begin(&self, owner: &Arc<LockOwner>, held: &Held) -> Option<Waiting<'_>> {
        let mut all = self.0.lock();
        let mut next = &held.holder;
        while let Some((_, held)) = all.iter().find(|(other, held)| Arc::ptr_eq(other, next) && held.is_so())
        {
            next = &held.holder;
            if Arc::ptr_eq(next, owner) {
                return None;
            }
        }
        all.push((Arc::clone(owner), held.clone()));
        Some(Waiting { waiters: self, owner: Arc::clone(owner) })
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiters.0.lock().retain(|(other, _)| !Arc::ptr_eq(other, &self.owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_close_a_circle_does_not_wait() {
        let (waiters, all) = (Waiters::default(), [LockOwner::new(), LockOwner::new(), LockOwner::new()]);
        let held = |at: usize| Held::by(&all[at]);
        let first = waiters.begin(&all[0], &held(1)).unwrap();
        let second = waiters.begin(&all[1], &held(2)).unwrap();
        assert!(waiters.begin(&all[2], &held(0)).is_none());
        drop(second);
        let third = waiters.begin(&all[2], &held(0)).unwrap();
        // Who has released what the second wants makes no circle any more, though the first waits still.
        all[1].release();
        assert!(waiters.begin(&all[1], &held(2)).is_some());
        drop((first, third));
        assert_eq!(waiters.count(), 0);
    }

    #[test]
    fn who_waits_is_woken_by_a_release_before_or_after() {
        let owner = LockOwner::new();
        let held = Held::by(&owner);
        assert!(!held.wait(Duration::ZERO));
        owner.release();
        assert!(held.wait(Duration::MAX));
    }
}
