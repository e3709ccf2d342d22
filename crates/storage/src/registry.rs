//! Which snapshots live, and the blocks that only they still see.
//!
//! Responsible for: numbering epochs, knowing the newest live snapshot, keeping replaced blocks
//! until the last snapshot that sees them is gone, the snapshots' memory account and budget.
//! Not responsible for: taking a snapshot of the tables (`view`) or parking executors (`partition`).
//!
//! A block carries the epoch of its last change, its *birth*. A snapshot closes an epoch and is
//! named by it. A block replaced in epoch `death` is seen by exactly the snapshots `s` with
//! `birth <= s < death` that cover it. It waits in the list of the newest of them; when that
//! one ends, it moves to the next older one that sees it or is freed. So ending a snapshot looks at
//! its own list alone.
//!
//! A snapshot may cover some columns of a few tables only ([`SnapshotScope`]), which is what one query
//! needs: other tables stay in the epoch of the last snapshot that covered them, and of the tables that
//! it covers, blocks of other columns are not copied.
//! Paper: AnKerDB (Sharma and others, 2018, §3) takes fine-grained snapshots of columns by virtual
//! memory.
//!
//! Invariants:
//! - I-1 A retired block is freed when, and only when, no live snapshot that covers it lies in its
//!   range. What a snapshot does not cover may be gone or be written: it is never read in it.
//! - I-2 `newest_live` is never lower than the newest live snapshot; it may be higher for a moment
//!   after a drop, which costs one needless look.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use albireo_base::{ColumnId, Epoch, TableId};
use parking_lot::Mutex;

use crate::pool::BlockPool;

/// Columns of one table. Those from the 64th on are always among them, and so is what says which rows
/// are live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnSet(u64);

impl ColumnSet {
    /// All columns.
    pub const ALL: Self = Self(u64::MAX);
    /// What every set of a snapshot holds.
    pub(crate) const LEAST: Self = Self(1 << 63);
    /// No column.
    pub(crate) const NONE: Self = Self(0);

    /// A set of these columns.
    pub fn of(columns: impl IntoIterator<Item = ColumnId>) -> Self {
        columns.into_iter().fold(Self::LEAST, |set, column| Self(set.0 | Self::bit(column)))
    }

    /// The one column, and nothing else.
    pub(crate) fn only(column: ColumnId) -> Self {
        Self(Self::bit(column))
    }

    fn bit(column: ColumnId) -> u64 {
        1 << column.0.min(63)
    }

    /// The set as bits, one for each of the first 63 columns and one for all others.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The set of these bits.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The columns of both sets.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the column is in the set.
    pub fn has(self, column: ColumnId) -> bool {
        self.meets(Self::only(column))
    }

    /// Whether some column is in both sets.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn includes(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}

/// What a snapshot covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SnapshotScope {
    /// All tables.
    All,
    /// Columns of these tables, each table once; nothing else can be read in it.
    Tables(Arc<[(TableId, ColumnSet)]>),
}

impl SnapshotScope {
    /// The columns of a table that are covered; `None`: not even its rows.
    pub fn columns_of(&self, table: TableId) -> Option<ColumnSet> {
        match self {
            Self::All => Some(ColumnSet::ALL),
            Self::Tables(tables) => {
                tables.iter().find(|(covered, _)| *covered == table).map(|(_, columns)| *columns)
            }
        }
    }

    /// Whether all that `other` covers is covered.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Tables(_), Self::All) => false,
            (Self::Tables(_), Self::Tables(tables)) => tables
                .iter()
                .all(|(table, columns)| self.columns_of(*table).is_some_and(|own| own.includes(*columns))),
        }
    }

    /// With these columns of a table too.
    pub fn covering(&self, table: TableId, columns: ColumnSet) -> Self {
        let Self::Tables(tables) = self else { return Self::All };
        let mut tables = tables.to_vec();
        match tables.iter_mut().find(|(covered, _)| *covered == table) {
            Some((_, covered)) => *covered = covered.with(columns),
            None => tables.push((table, columns)),
        }
        Self::Tables(tables.into())
    }

    fn sees(&self, place: BlockContents) -> bool {
        self.columns_of(place.table).is_some_and(|columns| columns.meets(place.columns))
    }
}

/// What a block holds: values of these columns of a table.
#[derive(Clone, Copy)]
pub(crate) struct BlockContents {
    pub(crate) table: TableId,
    pub(crate) columns: ColumnSet,
}

/// What happens when snapshots hold more memory than their budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BudgetPolicy {
    /// The oldest snapshot is cancelled; its queries end with a clear error. The next one is
    /// cancelled only if the budget is still spent when that one is gone. The same happens before a change is refused
    /// because there is no memory.
    #[default]
    EndOldest,
    /// No new snapshot is taken until old ones end.
    RefuseNew,
}

/// The budget is spent and the policy is to refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("snapshots hold {held_bytes} bytes, more than their budget of {budget_bytes}")]
pub struct BudgetSpent {
    /// Bytes that only snapshots still see.
    pub held_bytes: u64,
    /// The budget.
    pub budget_bytes: u64,
}

/// Counters of a database's snapshots.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SnapshotCounters {
    /// Snapshots taken so far.
    pub taken: u64,
    /// Snapshots alive.
    pub live: u64,
    /// Blocks copied because a snapshot could see them.
    pub blocks_copied: u64,
    /// Bytes of these.
    pub bytes_copied: u64,
    /// Bytes that only snapshots still see.
    pub held_bytes: u64,
}

/// The registry of one database, shared by its partitions and snapshots.
pub struct SnapshotRegistry {
    pool: BlockPool,
    budget_bytes: u64,
    policy: BudgetPolicy,
    epoch: AtomicU64,
    newest_live: AtomicU64,
    oldest_live: AtomicU64,
    /// How often a snapshot came or went.
    changes: AtomicU64,
    blocks_copied: AtomicU64,
    bytes_copied: AtomicU64,
    observes_reads: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: BTreeMap<u64, Live>,
    retired_bytes: u64,
    taken: u64,
}

/// A live snapshot.
struct Live {
    scope: SnapshotScope,
    cancelled: Arc<AtomicBool>,
    is_exempt: bool,
    /// Replaced blocks of which it is the newest live snapshot that sees them.
    retired: Vec<Retired>,
}

struct Retired {
    place: BlockContents,
    block: NonNull<u8>,
    bytes: usize,
    birth: u64,
}
// SAFETY: a retired block is memory that no writer knows any more; only the registry frees it.
unsafe impl Send for Retired {}

impl State {
    /// The newest live snapshot of these epochs that covers a block.
    fn newest_seeing(&mut self, place: BlockContents, epochs: Range<u64>) -> Option<&mut Live> {
        let mut seeing = self.live.range_mut(epochs).rev().map(|(_, live)| live);
        seeing.find(|live| live.scope.sees(place))
    }
}

impl SnapshotRegistry {
    /// A registry whose snapshots may hold `budget_bytes`.
    pub fn new(pool: BlockPool, budget_bytes: u64, policy: BudgetPolicy) -> Self {
        Self {
            pool,
            budget_bytes,
            policy,
            // Epoch 0 means "no snapshot", so the first interval is 1.
            epoch: AtomicU64::new(1),
            newest_live: AtomicU64::new(0),
            oldest_live: AtomicU64::new(u64::MAX),
            changes: AtomicU64::new(0),
            blocks_copied: AtomicU64::new(0),
            bytes_copied: AtomicU64::new(0),
            observes_reads: true,
            state: Mutex::default(),
        }
    }

    /// The same, which says whether it is counted what transactions read ([`crate::ChunkView::reads`]). It is, unless this
    /// says otherwise.
    #[must_use]
    pub fn observing_reads(mut self, observes_reads: bool) -> Self {
        self.observes_reads = observes_reads;
        self
    }

    pub(crate) fn observes_reads(&self) -> bool {
        self.observes_reads
    }

    /// The pool that blocks come from.
    pub fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// The current epoch.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Relaxed))
    }

    /// Whether a live snapshot sees a block that was last changed in epoch `birth`, when its table is
    /// in epoch `now`.
    pub(crate) fn sees(&self, place: BlockContents, birth: u64, now: u64) -> bool {
        debug_assert!(birth < now, "a block of the present epoch is private");
        // Acquire pairs with the release in `release`: a writer that finds a snapshot gone also
        // finds its readers' reads done. The lock does the same.
        self.newest_live.load(Ordering::Acquire) >= birth
            && self.state.lock().newest_seeing(place, birth..now).is_some()
    }

    /// The oldest live snapshot, `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn oldest_live(&self) -> u64 {
        self.oldest_live.load(Ordering::Acquire)
    }

    /// How often a snapshot came or went.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The oldest live snapshot that covers a table; if there is none, the one that may come next.
    pub(crate) fn oldest_seeing(&self, table: TableId) -> u64 {
        let state = self.state.lock();
        let oldest = state.live.iter().find(|(_, live)| live.scope.columns_of(table).is_some());
        oldest.map_or_else(|| self.epoch.load(Ordering::Relaxed), |(epoch, _)| *epoch)
    }

    /// Closes the current epoch for a snapshot of `scope`. The caller owns every partition meanwhile.
    /// Returns the closed epoch, which names the snapshot, and its cancellation flag.
    pub(crate) fn open(&self, scope: SnapshotScope) -> Result<(Epoch, Arc<AtomicBool>), BudgetSpent> {
        let mut state = self.state.lock();
        if state.retired_bytes > self.budget_bytes && self.policy == BudgetPolicy::RefuseNew {
            return Err(BudgetSpent { held_bytes: state.retired_bytes, budget_bytes: self.budget_bytes });
        }
        let closed = self.epoch.fetch_add(1, Ordering::Relaxed);
        let cancelled = Arc::<AtomicBool>::default();
        let live = Live { scope, cancelled: Arc::clone(&cancelled), is_exempt: false, retired: Vec::new() };
        let newest = state.live.last_key_value().map_or(0, |(newest, _)| *newest);
        assert!(newest < closed, "a later snapshot has a higher epoch");
        let before = self.newest_live.load(Ordering::Relaxed);
        debug_assert!(before >= newest && before < closed, "the newest live snapshot is known (I-2)");
        state.live.insert(closed, live);
        state.taken += 1;
        self.newest_live.store(closed, Ordering::Release);
        self.publish_oldest(&state);
        Ok((Epoch(closed), cancelled))
    }

    /// Ends a snapshot and frees what only it held.
    pub(crate) fn release(&self, snapshot: Epoch) {
        let mut state = self.state.lock();
        let ended = state.live.remove(&snapshot.0).expect("a snapshot is released once");
        let newest = state.live.keys().next_back().copied().unwrap_or(0);
        let before = self.newest_live.load(Ordering::Relaxed);
        assert!(newest <= before, "the newest live snapshot is never older than was said (I-2)");
        self.newest_live.store(newest, Ordering::Release);
        self.publish_oldest(&state);
        let mut unseen = Vec::with_capacity(ended.retired.len());
        for r in ended.retired {
            debug_assert!(r.birth <= snapshot.0, "a block waits with a snapshot that sees it");
            debug_assert!(ended.scope.sees(r.place), "a block waits with a snapshot that covers it");
            match state.newest_seeing(r.place, r.birth..snapshot.0) {
                Some(older) => older.retired.push(r),
                None => unseen.push(r),
            }
        }
        let unseen_bytes = unseen.iter().map(|r| r.bytes as u64).sum::<u64>();
        assert!(state.retired_bytes >= unseen_bytes, "what is freed was held");
        state.retired_bytes -= unseen_bytes;
        debug_assert!(!state.live.is_empty() || state.retired_bytes == 0, "only snapshots hold blocks (I-1)");
        let ends_another = self.is_spent(&state) && self.cancel_oldest(&state);
        // Executors retire blocks under this lock; they need not wait for the freeing.
        drop(state);
        for r in unseen {
            // SAFETY: the block was taken from this pool with this size; its table dropped it
            // when it was retired, and no live snapshot is in its range (I-1).
            unsafe { self.pool.free(r.block, r.bytes) };
        }
        if ends_another {
            self.pool.relieve(false);
        }
    }

    /// Whether snapshots hold too much, and the oldest is to end for that.
    fn is_spent(&self, state: &State) -> bool {
        state.retired_bytes > self.budget_bytes && self.policy == BudgetPolicy::EndOldest
    }

    /// Takes over a block that its table no longer refers to: last changed in epoch `life.start`,
    /// replaced in epoch `life.end`.
    ///
    /// # Safety
    /// S-1: `block` came from this registry's pool with this size. S-2: the table's directory no
    /// longer holds it. S-3: `life.start` is the epoch in which it last changed.
    pub(crate) unsafe fn retire(
        &self,
        place: BlockContents,
        block: NonNull<u8>,
        bytes: usize,
        life: Range<u64>,
    ) {
        debug_assert!(life.start <= life.end, "a block is replaced after it was changed");
        let mut state = self.state.lock();
        let birth = life.start;
        let Some(newest) = state.newest_seeing(place, life) else {
            drop(state);
            // SAFETY: S-1, S-2; no live snapshot sees it.
            unsafe { self.pool.free(block, bytes) };
            return;
        };
        newest.retired.push(Retired { place, block, bytes, birth });
        state.retired_bytes += bytes as u64;
        if self.is_spent(&state) && self.cancel_oldest(&state) {
            drop(state);
            self.pool.relieve(false);
        }
    }

    /// Cancels the oldest snapshot, if snapshots hold memory, unless one is already on its way out.
    pub fn end_oldest(&self) {
        let state = self.state.lock();
        if state.retired_bytes > 0 && self.policy == BudgetPolicy::EndOldest {
            self.cancel_oldest(&state);
        }
    }

    /// A snapshot is not cancelled whatever it holds: what it is for is needed.
    pub(crate) fn exempt(&self, snapshot: Epoch) {
        if let Some(live) = self.state.lock().live.get_mut(&snapshot.0) {
            live.is_exempt = true;
        }
    }

    /// Cancels the oldest snapshot, unless one is already on its way out; whether it did.
    #[cold]
    fn cancel_oldest(&self, state: &State) -> bool {
        let mut may_end = state.live.values().filter(|live| !live.is_exempt).peekable();
        let Some(oldest) = may_end.peek() else { return false };
        let oldest = &oldest.cancelled;
        if may_end.any(|live| live.cancelled.load(Ordering::Relaxed)) {
            return false;
        }
        oldest.store(true, Ordering::Relaxed);
        true
    }

    pub(crate) fn count_copy(&self, bytes: usize) {
        self.blocks_copied.fetch_add(1, Ordering::Relaxed);
        self.bytes_copied.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What happened so far.
    pub fn counters(&self) -> SnapshotCounters {
        let state = self.state.lock();
        SnapshotCounters {
            taken: state.taken,
            live: state.live.len() as u64,
            blocks_copied: self.blocks_copied.load(Ordering::Relaxed),
            bytes_copied: self.bytes_copied.load(Ordering::Relaxed),
            held_bytes: state.retired_bytes,
        }
    }

    fn publish_oldest(&self, state: &State) {
        let oldest = state.live.keys().next().copied().unwrap_or(u64::MAX);
        self.oldest_live.store(oldest, Ordering::Release);
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Drop for SnapshotRegistry {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        // So nothing is retired either: blocks wait with a live snapshot.
        assert!(state.live.is_empty(), "a snapshot holds its registry");
    }
}
