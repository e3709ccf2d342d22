//! What transactions of several statements have done with rows, and which deeds exclude each other.
//!
//! Responsible for: the table of the module `locks`, counting releases. Not responsible for: whose marks a row has
//! (`readers`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What SELECT asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// FOR SHARE: the row stays as it is.
    Share,
    /// FOR UPDATE: it is about to be changed.
    Update,
}

/// What a transaction has done with a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Read it.
    Read,
    /// Changed it.
    Written,
    /// Locked it.
    Locked(LockMode),
}

impl Mark {
    /// Whether it does not go with what another transaction has done.
    pub(crate) fn waits_for(self, other: Self) -> bool {
        match (self, other) {
            (Self::Read, _) | (_, Self::Read) | (Self::Written, Self::Written) => false,
            (Self::Locked(LockMode::Share), Self::Locked(LockMode::Share)) => false,
            (Self::Written | Self::Locked(_), Self::Written | Self::Locked(_)) => true,
        }
    }

    /// Both, by the same transaction.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Read, mark) | (mark, Self::Read) => mark,
            (one, other) if one == other => one,
            _ => Self::Locked(LockMode::Update),
        }
    }
}

/// Whoever has locks: a connection. Counts how often it has released some, and wakes who waits for that.
#[derive(Default)]
pub struct LockOwner {
    count: Mutex<u64>,
    changed: Condvar,
}

impl LockOwner {
    /// One without locks.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// It has released locks.
    pub fn release(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    pub(crate) fn releases(&self) -> u64 {
        *self.count.lock()
    }

    /// Waits until there are more than `seen`, and so long at most; whether there are.
    pub(crate) fn wait(&self, seen: u64, longest: Duration) -> bool {
        let mut count = self.count.lock();
        if *count == seen {
            self.changed.wait_for(&mut count, longest);
        }
        *count != seen
    }
}

impl fmt::Debug for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockOwner").field("releases", &self.releases()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_one_transaction_add_up() {
        let (share, update) = (Mark::Locked(LockMode::Share), Mark::Locked(LockMode::Update));
        assert_eq!(Mark::Written.and(share), update);
        assert_eq!(Mark::Read.and(share), share);
        assert!(share.waits_for(Mark::Written) && Mark::Written.waits_for(share));
        assert!(!share.waits_for(share) && !Mark::Written.waits_for(Mark::Written));
        assert!(update.waits_for(share) && !update.waits_for(Mark::Read));
    }
}
