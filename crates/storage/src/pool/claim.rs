//! Bytes that count as a pool's, and lie where everything else is allocated.
//!
//! Responsible for: the account of such bytes, within the pool's limit. Not responsible for: allocating them.

use parking_lot::MutexGuard;

use super::{BlockPool, Need, OutOfMemory, State};

impl BlockPool {
    /// Counts bytes that are about to be allocated elsewhere. Before it refuses, it asks for relief.
    pub(super) fn take_small(&self, bytes: u64) -> Result<(), OutOfMemory> {
        let is_tight = self.with_relief(|| {
            let mut state = self.inner.state.lock();
            self.admit_small(&mut state, bytes)?;
            Ok(self.is_tight(&state))
        })?;
        self.count_in_use(bytes);
        if is_tight {
            self.relieve(false);
        }
        Ok(())
    }

    fn admit_small(&self, state: &mut MutexGuard<'_, State>, bytes: u64) -> Result<(), OutOfMemory> {
        self.admit(state, bytes, Need::Ordinary)?;
        state.small_bytes += bytes;
        self.keep_to_limit(state);
        Ok(())
    }

    /// Counts those that are freed.
    pub(super) fn give_small(&self, bytes: u64) {
        let mut state = self.inner.state.lock();
        assert!(state.small_bytes >= bytes, "no more is given back than was taken");
        state.small_bytes -= bytes;
        drop(state);
        self.count_out_of_use(bytes);
    }
}

/// An account of bytes of a pool that are allocated elsewhere. Dropped, it is closed, and they are the pool's again.
pub(crate) struct Claim {
    pool: BlockPool,
    bytes: u64,
}

impl Claim {
    /// An account of no bytes.
    pub(crate) fn empty(pool: &BlockPool) -> Self {
        Self { pool: pool.clone(), bytes: 0 }
    }

    /// An account of so many bytes, for something that can be done without: nobody is asked for relief.
    ///
    /// # Errors
    /// The pool's limit is reached.
    pub(crate) fn new(pool: &BlockPool, bytes: u64) -> Result<Self, OutOfMemory> {
        let mut state = pool.inner.state.lock();
        pool.admit_small(&mut state, bytes)?;
        drop(state);
        pool.count_in_use(bytes);
        Ok(Self { pool: pool.clone(), bytes })
    }

    /// The bytes of the account.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves bytes here from another account of the pool, which may have fewer; then the limit may be passed.
    pub(crate) fn take_from(&mut self, other: &mut Self, bytes: u64) {
        let there = bytes.min(other.bytes);
        other.bytes -= there;
        self.bytes += bytes;
        if bytes > there {
            self.pool.inner.state.lock().small_bytes += bytes - there;
            self.pool.count_in_use(bytes - there);
        }
    }

    /// Gives bytes back.
    pub(crate) fn give(&mut self, bytes: u64) {
        assert!(self.bytes >= bytes, "no more is given back than the account has");
        self.bytes -= bytes;
        self.pool.give_small(bytes);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.pool.give_small(self.bytes);
    }
}
