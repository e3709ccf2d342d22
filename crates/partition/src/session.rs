//! Query sessions: groups of queries that see one snapshot.
//!
//! Responsible for: sharing a young snapshot among queries that allow it, the age and end of sessions, pauses and
//! counts. Not responsible for: what a snapshot is made of (`storage`), taking one (`exclusive`, `snapshot`),
//! running queries (`olap`).
//!
//! Invariants:
//! - I-1 A session sees every transaction that committed before it was opened (with a staleness
//!   allowed: before that long ago), and none that committed after its snapshot.
//! - I-2 Ending a session frees exactly what only it held.
//! - I-3 A session that was ended holds nothing, even if nobody asks it anything any more.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §3.2 and §4.1 (OLAP query sessions on snapshots).

use std::sync::{Arc, Weak};

use albireo_env::Clock;
use albireo_storage::{
    BudgetSpent, DatabaseSnapshot, Relief, SnapshotCounters, SnapshotRegistry, SnapshotScope,
};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::Partitions;
use crate::token::owns_partition;

/// Why a session could not be opened or goes no further.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Snapshots hold as much memory as they may.
    #[error(transparent)]
    BudgetSpent(#[from] BudgetSpent),
    /// The session was ended because snapshots held more memory than they may.
    #[error("the session was ended: snapshots held more memory than their budget")]
    Ended,
}

/// What snapshots cost so far.
#[derive(Clone, Debug)]
pub struct SnapshotStatistics {
    /// Counts of snapshots, of copied blocks and of the memory that only snapshots hold.
    pub counters: SnapshotCounters,
    /// Time from asking for a snapshot to having it, in nanoseconds: an upper bound of the time
    /// that executors stood still for it.
    pub taking_ns: Histogram<u64>,
}

/// Opens sessions on one database.
pub struct Sessions {
    partitions: Arc<Partitions>,
    clock: Clock,
    open: Arc<OpenSessions>,
    /// The newest snapshot of all tables and when it was taken, for queries that may share one.
    newest: Mutex<(u64, Weak<DatabaseSnapshot>)>,
    taking_ns: Mutex<Histogram<u64>>,
}

/// A group of queries on one snapshot. Dropping it, and the results that still stream from it,
/// ends it.
#[derive(Clone)]
pub struct QuerySession {
    snapshot: Arc<Slot>,
    taken_ns: u64,
    clock: Clock,
}

/// The snapshot of a session; none once it was ended.
type Slot = Mutex<Option<Arc<DatabaseSnapshot>>>;

/// Sessions that may hold a snapshot.
#[derive(Default)]
struct OpenSessions(Mutex<Vec<Weak<Slot>>>);

impl OpenSessions {
    fn add(&self, slot: &Arc<Slot>) {
        let mut all = self.0.lock();
        if all.len() == all.capacity() {
            all.retain(|slot| slot.strong_count() > 0);
            // So that this is seldom.
            let more = all.len() + 16;
            all.reserve(more);
        }
        all.push(Arc::downgrade(slot));
    }

    /// Takes the snapshots that were cancelled from sessions, which may be idle for long. A query that runs on one ends
    /// by itself.
    fn end_cancelled(&self) {
        let slots: Vec<Arc<Slot>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        for slot in slots {
            let mut snapshot = slot.lock();
            let ended = snapshot.take_if(|snapshot| snapshot.is_cancelled());
            drop(snapshot);
            drop(ended);
        }
    }
}

/// Ends the oldest session when memory is short.
struct EndOldest {
    registry: Weak<SnapshotRegistry>,
    partitions: Weak<Partitions>,
    open: Arc<OpenSessions>,
}

impl Relief for EndOldest {
    fn make_room(&self) -> bool {
        !owns_partition() && self.partitions.upgrade().is_some_and(|partitions| partitions.room().make())
    }

    fn relieve(&self, now: bool) {
        // Whoever can move rows out of memory comes first, as long as there is some.
        if let Some(partitions) = self.partitions.upgrade() {
            let room = partitions.room();
            if room.is_made_here() || (room.wake() && !now) {
                return;
            }
        }
        let Some(registry) = self.registry.upgrade() else { return };
        registry.end_oldest();
        let open = Arc::clone(&self.open);
        if now {
            open.end_cancelled();
        } else {
            // Freeing takes a while, and whoever asks may own a partition. Without a thread the next one tries again.
            let _ = albireo_env::spawn_detached("albireo-sessions", move || open.end_cancelled());
        }
    }
}

impl Sessions {
    /// Sessions on `partitions`.
    pub fn new(partitions: Arc<Partitions>, clock: Clock) -> Self {
        let taking_ns = Mutex::new(
            Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
                .expect("an hour with three digits is allowed"),
        );
        let open = Arc::<OpenSessions>::default();
        let registry = partitions.registry();
        let relief = EndOldest {
            registry: Arc::downgrade(registry),
            partitions: Arc::downgrade(&partitions),
            open: Arc::clone(&open),
        };
        registry.pool().set_relief(Box::new(relief));
        Self { partitions, clock, open, newest: Mutex::new((0, Weak::new())), taking_ns }
    }

    /// Ends the oldest session, and frees what only it held.
    pub fn end_oldest(&self) {
        self.partitions.registry().end_oldest();
        self.open.end_cancelled();
    }

    /// Opens a session on a fresh snapshot of `scope`.
    ///
    /// # Errors
    /// [`SessionError::BudgetSpent`].
    pub fn open(&self, scope: &SnapshotScope) -> Result<QuerySession, SessionError> {
        let start = self.clock.now();
        let snapshot = self.partitions.snapshot(scope)?;
        let taken_ns = self.clock.now();
        self.taking_ns.lock().saturating_record(taken_ns - start);
        if *snapshot.scope() == SnapshotScope::All {
            *self.newest.lock() = (taken_ns, Arc::downgrade(&snapshot));
        }
        Ok(self.session(snapshot, taken_ns))
    }

    fn session(&self, snapshot: Arc<DatabaseSnapshot>, taken_ns: u64) -> QuerySession {
        let snapshot = Arc::new(Mutex::new(Some(snapshot)));
        self.open.add(&snapshot);
        QuerySession { snapshot, taken_ns, clock: self.clock.clone() }
    }

    /// Opens a session on a live snapshot of all tables at most `max_staleness_ns` old, or else on a fresh
    /// one: of all tables, so that others can share it, or of `scope` if nothing stale is allowed.
    ///
    /// # Errors
    /// As [`Sessions::open`].
    pub fn open_within(
        &self,
        max_staleness_ns: u64,
        scope: &SnapshotScope,
    ) -> Result<QuerySession, SessionError> {
        if max_staleness_ns == 0 {
            return self.open(scope);
        }
        match self.shared(max_staleness_ns) {
            Some(session) => Ok(session),
            None => self.open(&SnapshotScope::All),
        }
    }

    /// A session on the newest snapshot of all tables, if it lives and is at most so old.
    fn shared(&self, max_staleness_ns: u64) -> Option<QuerySession> {
        let (taken_ns, newest) = self.newest.lock().clone();
        let snapshot = newest.upgrade().filter(|snapshot| !snapshot.is_cancelled())?;
        let session = self.session(snapshot, taken_ns);
        (session.age_ns() <= max_staleness_ns).then_some(session)
    }

    /// What snapshots cost so far.
    pub fn statistics(&self) -> SnapshotStatistics {
        let counters = self.partitions.registry().counters();
        SnapshotStatistics { counters, taking_ns: self.taking_ns.lock().clone() }
    }
}

impl QuerySession {
    /// The snapshot that all its queries see.
    ///
    /// # Errors
    /// [`SessionError::Ended`] once the memory budget has ended the session.
    pub fn snapshot(&self) -> Result<Arc<DatabaseSnapshot>, SessionError> {
        let snapshot = self.snapshot.lock().clone().filter(|snapshot| !snapshot.is_cancelled());
        snapshot.ok_or(SessionError::Ended)
    }

    /// How old its data is, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        self.clock.now() - self.taken_ns
    }
}
