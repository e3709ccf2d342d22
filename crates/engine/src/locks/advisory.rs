//! Advisory locks: locks on numbers that mean what the clients agree on.
//!
//! I-1 A lock of a transaction does not outlive it, one of a session does not outlive the connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use albireo_partition::{Held, LockMode, LockOwner};
use parking_lot::Mutex;

/// What is locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    /// One number.
    One(i64),
    /// Two, which are never the same as one.
    Two(i32, i32),
}

/// How long a lock lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasting {
    /// Until it is unlocked as often as it was locked, or the connection ends.
    Session,
    /// Until the transaction ends, or is taken back to before this step.
    Transaction(u32),
}

/// What a connection has of one lock: an entry for each time it was taken.
struct Holding {
    owner: Arc<LockOwner>,
    taken: Vec<(LockMode, Lasting)>,
}

/// All advisory locks of a database.
#[derive(Default)]
pub(crate) struct Advisory {
    locks: Mutex<HashMap<Key, Vec<Holding>>>,
    /// How many of them are of transactions.
    of_transactions: AtomicUsize,
}

impl Advisory {
    /// Takes a lock; who keeps `owner` from that, if somebody does.
    pub(crate) fn lock(
        &self,
        key: Key,
        owner: &Arc<LockOwner>,
        (mode, lasting): (LockMode, Lasting),
    ) -> Result<(), Held> {
        let mut locks = self.locks.lock();
        let holdings = locks.entry(key).or_default();
        let excludes = |holding: &&Holding| {
            let alone = |taken: &(LockMode, Lasting)| taken.0 == LockMode::Update || mode == LockMode::Update;
            !Arc::ptr_eq(&holding.owner, owner) && holding.taken.iter().any(alone)
        };
        if let Some(holding) = holdings.iter().find(excludes) {
            return Err(Held::by(&holding.owner));
        }
        match holdings.iter_mut().find(|holding| Arc::ptr_eq(&holding.owner, owner)) {
            Some(holding) => holding.taken.push((mode, lasting)),
            None => holdings.push(Holding { owner: Arc::clone(owner), taken: vec![(mode, lasting)] }),
        }
        if lasting != Lasting::Session {
            self.of_transactions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Releases a lock of a session once; whether there was one.
    pub(crate) fn unlock(&self, key: Key, owner: &Arc<LockOwner>, mode: LockMode) -> bool {
        let mut locks = self.locks.lock();
        let Some(holdings) = locks.get_mut(&key) else { return false };
        let mine = holdings.iter_mut().find(|holding| Arc::ptr_eq(&holding.owner, owner));
        let taken = mine.map(|holding| &mut holding.taken);
        let at = |taken: &Vec<_>| taken.iter().position(|taken| *taken == (mode, Lasting::Session));
        let Some((taken, at)) = taken.and_then(|taken| at(taken).map(|at| (taken, at))) else { return false };
        taken.swap_remove(at);
        holdings.retain(|holding| !holding.taken.is_empty());
        if holdings.is_empty() {
            locks.remove(&key);
        }
        drop(locks);
        owner.release();
        true
    }

    /// Releases all locks of a session.
    pub(crate) fn unlock_all(&self, owner: &Arc<LockOwner>) {
        self.retain(owner, |lasting| *lasting != Lasting::Session);
    }

    /// Releases the locks that a transaction has taken in a step and later.
    pub(crate) fn release_since(&self, owner: &Arc<LockOwner>, step: u32) {
        // Its own are counted for it.
        if self.of_transactions.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.retain(owner, |lasting| {
            let goes = matches!(lasting, Lasting::Transaction(taken) if *taken >= step);
            if goes {
                self.of_transactions.fetch_sub(1, Ordering::Relaxed);
            }
            !goes
        });
    }

    fn retain(&self, owner: &Arc<LockOwner>, mut stays: impl FnMut(&Lasting) -> bool) {
        let mut locks = self.locks.lock();
        let mut any = false;
        locks.retain(|_, holdings| {
            for holding in holdings.iter_mut().filter(|holding| Arc::ptr_eq(&holding.owner, owner)) {
                let before = holding.taken.len();
                holding.taken.retain(|(_, lasting)| stays(lasting));
                any |= holding.taken.len() < before;
            }
            holdings.retain(|holding| !holding.taken.is_empty());
            !holdings.is_empty()
        });
        drop(locks);
        if any {
            owner.release();
        }
    }
}
