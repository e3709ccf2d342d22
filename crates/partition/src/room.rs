//! Transactions that need rows which are not in memory, or memory for their own.
//!
//! ```text
//!  runs ──► meets a row that is away ──► pre-pass: runs on for what else it needs ──► rolled back, its partition given back
//!   ▲                                                                                                       │
//!   └── run again; what was fetched stays ◄── all that the pre-pass has come to is fetched, while others run ┘
//! ```
//!
//! Statements and routines in SQL have a pre-pass ([`albireo_storage::with_prepass`]), so that what they need of many chunks is
//! fetched together; procedures in Rust, and what is read of rows between statements, come to one chunk in each run.
//!
//! I-1 Whoever fetches owns no partition. I-2 What a transaction has had fetched is not evicted before it has ended, so
//! each run gets further than the one before. I-3 Nothing of a run that met such a row is left but what is to be fetched.
//!
//! Papers: DeBrabant and others, *Anti-Caching*, VLDB 2013, §3.2; Kallman and others, *H-Store*, VLDB 2008.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::{SqlError, SqlState};
use albireo_storage::{Evicted, FetchError, OutOfMemory, TableError};

use crate::{Abort, CallError};

/// Who can move rows out of memory.
pub trait Evictor: Send + Sync {
    /// Makes room for what was refused for memory; whether there is some now. The caller owns no partition.
    fn make_room(&self) -> bool;

    /// Has it make room soon; whether it does without being waited for. The caller may own partitions.
    fn wake(&self) -> bool;

    /// Whether this thread is making room: what is refused to it is not worth a snapshot.
    fn is_at_it(&self) -> bool;
}

/// The evictor of a database, once it has one, and what was fetched for transactions.
#[derive(Default)]
pub(crate) struct Room {
    evictor: OnceLock<Box<dyn Evictor>>,
    runs_ended: AtomicU64,
    chunks_fetched: AtomicU64,
}

/// Whether an error says that there is no memory for rows, rather than that a statement needs too much.
fn is_for_rows(error: &SqlError) -> bool {
    error.state() == SqlState::OUT_OF_MEMORY && error.message().starts_with(OutOfMemory::WHAT)
}

/// Runs that one transaction has at most because memory is short: others may take again what was made room for it.
const MOST_RUNS: u32 = 8;

impl Room {
    /// Has transactions that are refused for memory wait for this one. The first counts.
    pub(crate) fn set(&self, evictor: Box<dyn Evictor>) {
        let _ = self.evictor.set(evictor);
    }

    /// Runs a transaction, again if rows that it needs are not in memory, or there is no memory for it but could be. When
    /// `attempt` returns, it owns no partition.
    #[inline]
    pub(crate) fn with_rows<R>(
        &self,
        mut attempt: impl FnMut() -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        match attempt() {
            Err(CallError::Aborted(abort)) if self.helps(&abort) => self.again(abort, attempt),
            ended => ended,
        }
    }

    /// Whether a transaction that ended so is to be run again.
    pub(crate) fn helps(&self, abort: &Abort) -> bool {
        match abort {
            Abort::Away(_) => true,
            Abort::Table(TableError::OutOfMemory(_)) => self.evictor.get().is_some(),
            Abort::Raised(error) => is_for_rows(error) && self.evictor.get().is_some(),
            _ => false,
        }
    }

    /// Runs one again that ended because rows are not in memory, or it found none for its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn again<R>(
        &self,
        mut abort: Abort,
        mut attempt: impl FnMut() -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let (mut fetched, mut runs) = (Vec::new(), 0);
        loop {
            match abort {
                Abort::Away(away) => {
                    self.fetch(&away)?;
                    fetched.push(away);
                }
                refused if !self.makes_room(&mut runs) => return Err(CallError::Aborted(refused)),
                _ => {}
            }
            match attempt() {
                Err(CallError::Aborted(again)) if self.helps(&again) => abort = again,
                ended => return ended,
            }
        }
    }

    /// Has rows in memory when this returns. The caller owns no partition.
    pub(crate) fn fetch(&self, away: &Evicted) -> Result<(), CallError> {
        self.runs_ended.fetch_add(1, Ordering::Relaxed);
        let done = match away.fetch() {
            Err(FetchError::Memory(_)) if self.make() => away.fetch(),
            done => done,
        };
        let done = match done {
            Err(FetchError::Memory(_)) => away.fetch_beyond().map(|()| 1),
            done => done,
        };
        let chunks = done.map_err(|error| CallError::Aborted(error.into()))?;
        self.chunks_fetched.fetch_add(chunks as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Runs of transactions that ended because rows were away, and chunks that were fetched for them.
    pub(crate) fn fetches(&self) -> (u64, u64) {
        (self.runs_ended.load(Ordering::Relaxed), self.chunks_fetched.load(Ordering::Relaxed))
    }

    /// Makes room for a transaction that was refused for memory so many times before.
    fn makes_room(&self, runs: &mut u32) -> bool {
        *runs += 1;
        *runs < MOST_RUNS && self.make()
    }

    /// Makes room; whether there is some now. The caller owns no partition.
    pub(crate) fn make(&self) -> bool {
        self.evictor.get().is_some_and(|evictor| evictor.make_room())
    }

    /// Whether this thread makes room.
    pub(crate) fn is_made_here(&self) -> bool {
        self.evictor.get().is_some_and(|evictor| evictor.is_at_it())
    }

    /// Has room made soon; whether somebody can. The caller may own partitions.
    pub(crate) fn wake(&self) -> bool {
        self.evictor.get().is_some_and(|evictor| evictor.wake())
    }
}
