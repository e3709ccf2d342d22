//! One partition: its token, its queue, and the steps of its executor.
//!
//! The executor is a state machine that a driver steps: a thread in production
//! ([`Executor::run`]), a seeded scheduler in tests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use albireo_env::Clock;
use albireo_redo::{Log, LogError};
use parking_lot::{Condvar, Mutex};

use crate::data::PartitionState;
use crate::journal::Receipt;
use crate::parked::Parked;
use crate::token::Token;
use crate::{CallError, SubmitError};

/// Turns of the waiting loop before the thread gives its core away.
const SPINS: u32 = 2_000;
/// Turns of one who may keep its core: about a millisecond.
const LONG_SPINS: u32 = 30_000;
/// Turns before it sleeps, each time so long.
const YIELDS: u32 = SPINS + 200;
const NAP: Duration = Duration::from_micros(50);

/// A queued transaction: runs on the owned partition and hands its result over by itself. With
/// `None` it must report that the database closed.
pub(crate) type Task = Box<dyn FnOnce(Option<&mut PartitionState>) + Send>;

/// One partition.
pub(crate) struct Partition {
    token: Mutex<PartitionState>,
    /// How many spin while others own it, and how many may do so for long.
    spinners: AtomicU32,
    most_spinners: u32,
    /// How many wait to own it with others. While positive nobody else enters.
    wanted: AtomicU32,
    /// How many of those want a snapshot: changed while `wanted` holds their own one, so that whoever
    /// sees the barrier sees its reason.
    for_snapshots: AtomicU32,
    queue: Mutex<VecDeque<Task>>,
    work: Condvar,
    room: Condvar,
    capacity: usize,
    closed: AtomicBool,
    pub(crate) clock: Clock,
    /// What is done at the barrier instead of waiting.
    errand: Arc<dyn Errand>,
}

/// What whoever waits at the barrier may do for whoever raised it.
pub(crate) trait Errand: Send + Sync {
    /// Does it, if there is something to do and nobody else does it; the caller owns no partition.
    fn help(&self) -> bool;
}

/// What somebody wants all partitions for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To take a snapshot.
    Snapshot,
    /// To run a transaction, or to change tables.
    Work,
}

/// What one step of an executor did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Ran one transaction.
    Ran,
    /// The queue is empty.
    Idle,
    /// A crossing owner has, or waits for, the partition.
    Parked,
    /// The database is closing and the queue is empty.
    Closed,
}

impl Partition {
    pub(crate) fn new(state: PartitionState, capacity: usize, clock: Clock, errand: Arc<dyn Errand>) -> Self {
        Self {
            token: Mutex::new(state),
            spinners: AtomicU32::new(0),
            // They are not to take the owner's core.
            most_spinners: albireo_env::cores().saturating_sub(1) as u32,
            wanted: AtomicU32::new(0),
            for_snapshots: AtomicU32::new(0),
            queue: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            capacity: capacity.max(1),
            closed: AtomicBool::new(false),
            clock,
            errand,
        }
    }

    /// Takes the token; waits for the barrier and the present owner.
    #[inline]
    pub(crate) fn enter(&self) -> Token<'_> {
        if self.wanted.load(Ordering::Acquire) == 0
            && let Some(mut state) = self.token.try_lock().map(Token::new)
        {
            state.take();
            return state;
        }
        let mut state = self.enter_slow();
        state.take();
        state
    }

    /// As [`Partition::enter`], for the next statement of `mine`; whether it finds its writes where it left them.
    pub(crate) fn enter_for(&self, mine: &Arc<Parked>) -> (Token<'_>, bool) {
        let free = self.wanted.load(Ordering::Acquire) == 0;
        let token = if free { self.token.try_lock().map(Token::new) } else { None };
        let mut state = token.unwrap_or_else(|| self.enter_slow());
        let in_place = state.take_for(mine);
        (state, in_place)
    }

    #[cold]
    fn enter_slow(&self) -> Token<'_> {
        let start = self.clock.now();
        let (mut parked, mut for_snapshot) = (false, false);
        let mut spinning = None;
        let mut state = loop {
            let mut turns = 0;
            while self.wanted.load(Ordering::Acquire) > 0 {
                parked = true;
                let is_for_snapshot = self.for_snapshots.load(Ordering::Relaxed) > 0;
                for_snapshot |= is_for_snapshot;
                if !(is_for_snapshot && self.errand.help()) {
                    relax(&mut turns, &self.clock);
                }
            }
            if let Some(state) = self.token.try_lock() {
                break Token::new(state);
            }
            if spinning.get_or_insert_with(|| Spinning::new(&self.spinners, self.most_spinners)).turn() {
                continue;
            }
            spinning = None;
            let state = self.token.lock();
            if self.wanted.load(Ordering::Acquire) == 0 {
                break Token::new(state);
            }
        };
        if parked {
            let waited = self.clock.now() - start;
            state.pauses.saturating_record(waited);
            if for_snapshot {
                state.snapshot_pauses.saturating_record(waited);
            }
        }
        state
    }

    /// Announces that somebody wants it with others: the owner gives the token back after its
    /// present transaction and nobody enters.
    pub(crate) fn raise(&self, purpose: Purpose) {
        if purpose == Purpose::Snapshot {
            self.for_snapshots.fetch_add(1, Ordering::Relaxed);
        }
        self.wanted.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes [`Partition::raise`] back.
    pub(crate) fn lower(&self, purpose: Purpose) {
        let before = self.wanted.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a barrier is lowered by whoever raised it");
        if purpose == Purpose::Snapshot {
            let before = self.for_snapshots.fetch_sub(1, Ordering::Relaxed);
            assert!(before > 0, "a barrier is lowered for the purpose that it was raised for");
        }
    }

    /// The transactions that ended here; `None` while somebody has the token.
    pub(crate) fn transactions_so_far(&self) -> Option<u64> {
        self.token.try_lock().map(|state| state.committed + state.rolled_back)
    }

    /// Whether nobody has the token.
    pub(crate) fn is_free(&self) -> bool {
        !self.token.is_locked()
    }

    /// Takes the token for a crossing owner, which has raised the barrier and takes tokens in the order of partitions.
    pub(crate) fn enter_raised(&self) -> Token<'_> {
        assert!(
            self.wanted.load(Ordering::Relaxed) > 0,
            "whoever wants several partitions raised the barrier"
        );
        let mut turns = 0;
        let mut state = loop {
            match self.token.try_lock() {
                Some(state) => break Token::new(state),
                None if turns < SPINS => {
                    turns += 1;
                    std::hint::spin_loop();
                }
                None => break Token::new(self.token.lock()),
            }
        };
        state.take();
        state
    }

    /// Queues a task; the caller decides what to do when there is no room.
    pub(crate) fn try_submit(&self, task: Task, partition: u16) -> Result<(), (SubmitError, Task)> {
        let mut queue = self.queue.lock();
        if self.closed.load(Ordering::Acquire) {
            return Err((SubmitError::Closed, task));
        }
        if queue.len() >= self.capacity {
            return Err((SubmitError::Full { partition, capacity: self.capacity }, task));
        }
        queue.push_back(task);
        debug_assert!(queue.len() <= self.capacity, "a queue is bounded");
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Queues a task, waiting for room.
    pub(crate) fn submit(&self, task: Task) -> Result<(), SubmitError> {
        let mut queue = self.queue.lock();
        while queue.len() >= self.capacity && !self.closed.load(Ordering::Acquire) {
            self.room.wait(&mut queue);
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(SubmitError::Closed);
        }
        queue.push_back(task);
        debug_assert!(queue.len() <= self.capacity, "a queue is bounded");
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// One step of the executor.
    pub(crate) fn step(&self) -> Step {
        if self.wanted.load(Ordering::Acquire) > 0 {
            self.errand.help();
            return Step::Parked;
        }
        let Some(task) = self.pop() else {
            return if self.closed.load(Ordering::Acquire) { Step::Closed } else { Step::Idle };
        };
        task(Some(&mut self.enter()));
        Step::Ran
    }

    fn pop(&self) -> Option<Task> {
        let mut queue = self.queue.lock();
        let task = queue.pop_front();
        if task.is_some() {
            self.room.notify_one();
        }
        task
    }

    /// Waits until there is work or the database closes.
    fn wait(&self) {
        let mut queue = self.queue.lock();
        if queue.is_empty() && !self.closed.load(Ordering::Acquire) {
            self.work.wait(&mut queue);
        }
    }

    /// Refuses new tasks; queued ones are still run.
    pub(crate) fn close(&self) {
        let _queue = self.queue.lock();
        self.closed.store(true, Ordering::Release);
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Tells every task still queued that the database closed.
    pub(crate) fn drain(&self) {
        assert!(self.closed.load(Ordering::Acquire), "only a partition that was closed is drained");
        while let Some(task) = self.pop() {
            task(None);
        }
    }
}

/// Waiting in place for whoever owns a partition.
///
/// Who sleeps has to wait for a core when the owner is done: where the kernel does not interrupt itself, as long as
/// its next tick takes, four milliseconds. So it keeps its core for longer than a step of a bulk statement takes. But
/// only so many do so that the owner has a core too.
struct Spinning<'p> {
    spinners: &'p AtomicU32,
    left: u32,
}

impl<'p> Spinning<'p> {
    fn new(spinners: &'p AtomicU32, most: u32) -> Self {
        let before = spinners.fetch_add(1, Ordering::Relaxed);
        Self { spinners, left: if before < most { LONG_SPINS } else { SPINS } }
    }

    /// One turn; `false`: it has been long enough.
    fn turn(&mut self) -> bool {
        std::hint::spin_loop();
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

impl Drop for Spinning<'_> {
    fn drop(&mut self) {
        self.spinners.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One turn of waiting: first in place, then giving the core to others, then asleep. Who is waited for may need the
/// core, and may have a lower priority.
pub(crate) fn relax(turns: &mut u32, clock: &Clock) {
    *turns = turns.saturating_add(1);
    match *turns {
        ..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => std::thread::yield_now(),
        _ => clock.sleep(NAP),
    }
}

/// The executor of one partition.
pub struct Executor {
    pub(crate) partition: Arc<Partition>,
}

impl Executor {
    /// Runs the next queued transaction, if any and if no barrier is up.
    pub fn step(&self) -> Step {
        self.partition.step()
    }

    /// Body of the executor's thread: steps until the database closes.
    pub fn run(&self) {
        loop {
            match self.step() {
                Step::Ran => {}
                Step::Parked => std::thread::yield_now(),
                Step::Idle => self.partition.wait(),
                Step::Closed => return,
            }
        }
    }
}

/// The result of a queued call, to come: it arrives when the transaction has run, and is given out when a
/// crash cannot take it back any more.
pub struct Pending<T> {
    slot: Arc<Slot<T>>,
    /// The log, and whether results wait for it that do not say.
    log: Option<(Log, bool)>,
}

struct Slot<T> {
    result: Mutex<Option<Ran<T>>>,
    arrived: Condvar,
}

/// What a transaction gave, and what is to become durable before anybody hears of it.
type Ran<T> = Result<(T, Receipt), CallError>;

/// The other end of a [`Pending`]. Dropped unused it reports that the database closed, so that
/// nobody waits for ever.
pub(crate) struct Deliver<T> {
    slot: Arc<Slot<T>>,
    done: bool,
}

impl<T> Pending<T> {
    /// A result to come, and the end that delivers it.
    pub(crate) fn new(log: Option<(Log, bool)>) -> (Self, Deliver<T>) {
        let slot = Arc::new(Slot { result: Mutex::new(None), arrived: Condvar::new() });
        let deliver = Deliver { slot: Arc::clone(&slot), done: false };
        (Self { slot, log }, deliver)
    }

    /// Waits for the result.
    pub fn wait(self) -> Result<T, CallError> {
        let (value, receipt) = self.wait_for_run()?;
        match self.log_for(receipt) {
            Some(log) => receipt.wait(log).map(|()| value),
            None => Ok(value),
        }
    }

    /// The log, if what it gave waits for it.
    fn log_for(&self, receipt: Receipt) -> Option<&Log> {
        self.log.as_ref().filter(|(_, usual)| receipt.is_awaited(None, *usual)).map(|(log, _)| log)
    }

    fn wait_for_run(&self) -> Ran<T> {
        let mut result = self.slot.result.lock();
        loop {
            match result.take() {
                Some(result) => return result,
                None => self.slot.arrived.wait(&mut result),
            }
        }
    }

    /// The result if it is there.
    pub fn try_take(&self) -> Option<Result<T, CallError>> {
        let mut result = self.slot.result.lock();
        if let Some(Ok((_, receipt))) = result.as_ref()
            && let Some(log) = self.log_for(*receipt)
            && !receipt.is_durable(log)
            && !matches!(log.check(), Err(LogError::Failed(_) | LogError::Closed))
        {
            return None;
        }
        let (value, receipt) = match result.take()? {
            Ok(ran) => ran,
            Err(error) => return Some(Err(error)),
        };
        Some(self.log_for(receipt).map_or(Ok(()), |log| receipt.wait(log)).map(|()| value))
    }
}

impl<T> Deliver<T> {
    pub(crate) fn put(mut self, result: Ran<T>) {
        self.done = true;
        let before = self.slot.result.lock().replace(result);
        debug_assert!(before.is_none(), "a call has one result");
        self.slot.arrived.notify_all();
    }
}

impl<T> Drop for Deliver<T> {
    fn drop(&mut self) {
        if !self.done {
            *self.slot.result.lock() = Some(Err(CallError::Closed));
            self.slot.arrived.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many turns one may spin.
    fn turns(mut spinning: Spinning<'_>) -> u32 {
        let mut turns = 1;
        while spinning.turn() {
            turns += 1;
        }
        turns
    }

    #[test]
    fn only_so_many_keep_their_cores_for_long_while_others_own_a_partition() {
        let spinners = AtomicU32::new(0);
        let first = Spinning::new(&spinners, 1);
        assert_eq!(turns(Spinning::new(&spinners, 1)), SPINS);
        assert_eq!(turns(first), LONG_SPINS);
        assert_eq!(turns(Spinning::new(&spinners, 1)), LONG_SPINS, "who has slept since does not count");
        assert_eq!(turns(Spinning::new(&spinners, 0)), SPINS, "the owner has the only core");
        assert_eq!(spinners.into_inner(), 0);
    }
}
