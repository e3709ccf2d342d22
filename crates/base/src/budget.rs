//! What working out a statement may take: memory, and time until somebody ends it.
//!
//! Reading, binding, planning and compiling a statement build trees, and the text says how large. Whoever has a
//! statement worked out does that [within](Budget::within) a budget; whatever makes a node of a tree says so by
//! [`take`], which is where the work ends. The budget is the thread's: trees are built by recursive functions of
//! many modules, none of which knows who asked. Work that goes on on another thread takes it along.
//!
//! The same for values: [`value`] is asked before a text or array is made whose size its arguments decide.
//!
//! **Invariant:** what is within no budget is not limited, but for the size of one value.
//! **Invariant:** a budget that has ended work ends all further work within it.
//! Units: bytes, roughly; what was freed again counts too.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{SqlError, SqlState};

/// The longest value that is made of shorter ones, in bytes: PostgreSQL's largest allocation without its header.
pub const MAX_BYTES: usize = (1 << 30) - 5;

/// A value that would be longer than [`MAX_BYTES`].
pub fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// Why work must end; nothing if it may go on.
pub type Interrupt = Box<dyn Fn() -> Result<(), SqlError> + Send + Sync>;

/// What one statement may take.
pub struct Budget {
    limit_bytes: usize,
    taken_bytes: AtomicUsize,
    interrupt: Interrupt,
}

/// Nodes between two looks at the budget, and bytes.
const NODES: u32 = 64;
const BYTES: usize = 64 << 10;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
    /// What was taken since the last look: nodes and bytes.
    static OWED: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    /// Bytes that a new value may have.
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Budget {
    /// Ends work that takes more than `limit_bytes`, or that `interrupt` ends.
    pub fn new(limit_bytes: usize, interrupt: Interrupt) -> Arc<Self> {
        Arc::new(Self { limit_bytes, taken_bytes: AtomicUsize::new(0), interrupt })
    }

    /// The budget that this thread works within.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Option::clone)
    }

    /// Does work within the budget. No value in it may be larger than what the budget has left.
    pub fn within<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        let outer = CURRENT.replace(Some(Arc::clone(self)));
        let _restored = Restored { outer: Some(outer), owed: OWED.replace((0, 0)) };
        let _room = Room::of(self.limit_bytes.saturating_sub(self.taken_bytes.load(Ordering::Relaxed)));
        work()
    }

    /// The bytes taken so far.
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    fn settle(&self, owed: usize) -> Result<(), SqlError> {
        let before = self.taken_bytes.fetch_add(owed, Ordering::Relaxed);
        (self.interrupt)()?;
        match before.saturating_add(owed) > self.limit_bytes {
            true => Err(self.exhausted()),
            false => Ok(()),
        }
    }

    fn exhausted(&self) -> SqlError {
        let message = "the statement is too large to be planned within its memory limit";
        SqlError::new(SqlState::OUT_OF_MEMORY, message)
            .with_detail(format!("Its trees would take more than {} bytes.", self.limit_bytes))
            .with_hint("Raise query_memory, or make it smaller: COPY rows, and put long lists into a table.")
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit_bytes, taken_bytes, .. } = self;
        f.debug_struct("Budget")
            .field("limit", limit_bytes)
            .field("taken", taken_bytes)
            .finish_non_exhaustive()
    }
}

/// Puts back what was there before work within a budget.
struct Restored {
    outer: Option<Option<Arc<Budget>>>,
    owed: (u32, usize),
}

impl Drop for Restored {
    fn drop(&mut self) {
        let (_, owed) = OWED.replace(self.owed);
        if let Some(outer) = self.outer.take()
            && let Some(budget) = CURRENT.replace(outer)
        {
            budget.taken_bytes.fetch_add(owed, Ordering::Relaxed);
        }
    }
}

/// Takes the bytes of one node of a tree from the budget of this thread.
///
/// # Errors
/// 53200 beyond its limit; what its interrupt says. Both are looked at once in some nodes.
#[inline]
pub fn take(bytes: usize) -> Result<(), SqlError> {
    let (nodes, owed) = OWED.get();
    let (nodes, owed) = (nodes + 1, owed.saturating_add(bytes));
    if nodes < NODES && owed < BYTES {
        OWED.set((nodes, owed));
        return Ok(());
    }
    settle(owed)
}

/// Looks at the budget of this thread now.
///
/// # Errors
/// As [`take`].
pub fn check() -> Result<(), SqlError> {
    settle(OWED.get().1)
}

#[cold]
fn settle(owed: usize) -> Result<(), SqlError> {
    OWED.set((0, 0));
    CURRENT.with_borrow(|budget| budget.as_ref().map_or(Ok(()), |budget| budget.settle(owed)))
}

/// As long as it lives, the values that this thread makes are limited.
#[derive(Debug)]
pub struct Room {
    outer: usize,
}

impl Room {
    /// No value may have more than `bytes`, nor more than an outer limit says.
    pub fn of(bytes: usize) -> Self {
        let outer = ROOM.get();
        ROOM.set(outer.min(bytes));
        Self { outer }
    }

    /// A value of so many bytes stays: that much less is left for others.
    pub fn keep(&self, bytes: usize) {
        ROOM.set(ROOM.get().saturating_sub(bytes));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        ROOM.set(self.outer);
    }
}

/// Asks for a value of so many bytes, before it is made.
///
/// # Errors
/// 54000 beyond what a value may have, 53200 beyond what the memory limit leaves.
#[inline]
pub fn value(bytes: usize) -> Result<(), SqlError> {
    match bytes > MAX_BYTES || bytes > ROOM.get() {
        true => Err(refused(bytes)),
        false => Ok(()),
    }
}

#[cold]
fn refused(bytes: usize) -> SqlError {
    if bytes > MAX_BYTES {
        return too_long();
    }
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!("A value of {bytes} bytes is more than the statement's memory limit leaves."))
        .with_hint("Raise query_memory, or make smaller values.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_after(looks: usize) -> Interrupt {
        let seen = AtomicUsize::new(0);
        Box::new(move || match seen.fetch_add(1, Ordering::Relaxed) < looks {
            true => Ok(()),
            false => Err(SqlError::new(SqlState::QUERY_CANCELED, "canceled")),
        })
    }

    /// How many nodes of so many bytes may be made.
    fn nodes(budget: &Arc<Budget>, bytes: usize) -> (usize, SqlState) {
        budget.within(|| {
            let mut made = 0;
            loop {
                match take(bytes) {
                    Ok(()) => made += 1,
                    Err(error) => return (made, error.state()),
                }
            }
        })
    }

    #[test]
    fn work_ends_at_the_limit_and_stays_ended() {
        let budget = Budget::new(1 << 20, Box::new(|| Ok(())));
        let (made, state) = nodes(&budget, 1 << 10);
        assert_eq!(state, SqlState::OUT_OF_MEMORY);
        assert!((1024..=1024 + NODES as usize).contains(&made), "{made}");
        assert_eq!(budget.within(check).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
    }

    #[test]
    fn interrupt_is_looked_at_between_nodes() {
        let (made, state) = nodes(&Budget::new(usize::MAX, ends_after(3)), 1);
        assert_eq!((made, state), (4 * NODES as usize - 1, SqlState::QUERY_CANCELED));
    }

    #[test]
    fn budget_inside_of_another_takes_nothing_from_it() {
        let (outer, inner) = (Budget::new(4096, ends_after(9)), Budget::new(4096, ends_after(9)));
        outer.within(|| {
            take(1000).unwrap();
            inner.within(|| take(2000).unwrap());
            take(1000).unwrap();
        });
        assert_eq!((outer.taken_bytes(), inner.taken_bytes()), (2000, 2000));
        assert!(Budget::current().is_none());
        assert!((0..1000).all(|_| take(1 << 20).is_ok()), "what is within no budget is not limited");
    }

    #[test]
    fn values_are_limited_by_their_size_and_by_what_is_left() {
        assert!(value(MAX_BYTES).is_ok());
        assert_eq!(value(MAX_BYTES + 1).unwrap_err().state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        let room = Room::of(100);
        room.keep(40);
        assert!(value(60).is_ok());
        assert_eq!(value(61).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
        drop(Room::of(10));
        assert!(value(60).is_ok());
        drop(room);
        assert!(value(101).is_ok());
    }
}
