//! The changes of a table, told to whoever works beside it.
//!
//! Responsible for: which rows were changed by transactions that committed since a snapshot, told without waiting.
//! Not responsible for: what they hold now, which is read in the table by whoever owns it.
//!
//! ```text
//! Partitions::follow    all partitions owned: a snapshot, and a feed in each partition of the table
//! commit                puts the rows that it changed into the feeds of their table
//! Follower::take        gives them and forgets them; the partition is owned, so they are as they are in the table
//! ```
//!
//! I-1 A row that is not as the snapshot, or the last `take`, showed it is in the feed.
//! I-2 Nothing is told while nobody follows: a commit looks at the length of one list then.

use std::sync::{Arc, Weak};

use albireo_base::{PartitionId, TableId, Tid};
use albireo_storage::{BudgetSpent, ChangeEvent, ColumnSet, DatabaseSnapshot, SnapshotScope, Table};
use parking_lot::Mutex;

use crate::data::{PartitionData, TableHandle};
use crate::{Exclusive, Partitions};

/// Rows that a feed holds; beyond that whoever follows begins again.
const MOST_CHANGED: usize = 4 << 20;

/// What was changed.
#[derive(Default)]
struct Changed {
    rows: Vec<(Tid, u64)>,
    /// More than is told row by row.
    lost: bool,
}

/// The changes of a table in one partition.
pub(crate) struct Feed {
    table: TableId,
    /// New values of other columns are not told.
    columns: ColumnSet,
    changed: Mutex<Changed>,
}

impl Feed {
    fn put(&self, tid: Tid, event: ChangeEvent) {
        let rows = match event {
            ChangeEvent::Wrote(column) if !self.columns.has(column) => return,
            ChangeEvent::Came { rows } => rows,
            _ => 1,
        };
        let mut changed = self.changed.lock();
        if changed.rows.len() < MOST_CHANGED {
            changed.rows.push((tid, rows));
        } else {
            changed.lost = true;
        }
    }
}

/// The feeds of a partition; those that nobody follows any more go by themselves.
#[derive(Default)]
pub(crate) struct Feeds(Vec<Weak<Feed>>);

impl Feeds {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whoever follows a table of a change.
    pub(crate) fn tell(&mut self, table: TableId, tid: Tid, event: ChangeEvent) {
        self.0.retain(|feed| {
            let Some(feed) = feed.upgrade() else { return false };
            if feed.table == table {
                feed.put(tid, event);
            }
            true
        });
    }

    /// Tells whoever follows a table that more was changed than is told.
    pub(crate) fn lose(&mut self, table: TableId) {
        let feeds = self.0.iter().filter_map(Weak::upgrade).filter(|feed| feed.table == table);
        feeds.for_each(|feed| feed.changed.lock().lost = true);
    }
}

/// Somebody who works beside a table.
pub struct Follower {
    table: TableHandle,
    /// The table as it was.
    snapshot: Arc<DatabaseSnapshot>,
    /// One for each partition, or one alone.
    feeds: Vec<Arc<Feed>>,
    /// Texts stay where they are meanwhile.
    _heaps: Vec<Arc<()>>,
}

/// Rows that were changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedRows {
    /// These, each once.
    These(Vec<Tid>),
    /// More than was told.
    Unknown,
}

impl Follower {
    /// The table.
    pub fn table(&self) -> TableHandle {
        self.table
    }

    /// The partitions where it has rows.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.feeds.len() as u16).map(PartitionId)
    }

    /// The snapshot with which following began.
    pub fn snapshot(&self) -> &Arc<DatabaseSnapshot> {
        &self.snapshot
    }

    /// The rows of a partition that were changed since this was asked before. The caller owns the partition.
    pub fn take(&self, partition: PartitionId) -> ChangedRows {
        let Changed { rows, lost } = std::mem::take(&mut *self.feeds[partition.index()].changed.lock());
        if lost {
            return ChangedRows::Unknown;
        }
        let mut tids: Vec<Tid> =
            rows.iter().flat_map(|(Tid(first), rows)| (*first..first + rows).map(Tid)).collect();
        tids.sort_unstable();
        tids.dedup();
        ChangedRows::These(tids)
    }

    /// About how many changes of a partition wait to be taken.
    pub fn waiting(&self, partition: PartitionId) -> usize {
        self.feeds[partition.index()].changed.lock().rows.len()
    }
}

impl Partitions {
    /// Begins to follow a table, from a snapshot of `scope` on: rows that come or go, and new values of `columns`.
    ///
    /// # Errors
    /// Snapshots hold as much memory as they may.
    pub fn follow(
        &self,
        table: TableHandle,
        scope: &SnapshotScope,
        columns: ColumnSet,
    ) -> Result<Follower, BudgetSpent> {
        self.exclusively(|all| all.follow(table, scope, columns))
    }
}

impl Exclusive<'_> {
    /// Begins to follow a table.
    fn follow(
        &mut self,
        table: TableHandle,
        scope: &SnapshotScope,
        columns: ColumnSet,
    ) -> Result<Follower, BudgetSpent> {
        let snapshot = self.snapshot(scope)?;
        let count = if table.is_shared() { 1 } else { usize::from(self.count()) };
        let mut feeds = Vec::with_capacity(count);
        for data in self.each_data().take(count) {
            let feed = Arc::new(Feed { table: table.id(), columns, changed: Mutex::default() });
            data.feeds.0.push(Arc::downgrade(&feed));
            feeds.push(feed);
        }
        let heaps = self.tables(table).into_iter().map(Table::keep_heaps).collect();
        Ok(Follower { table, snapshot, feeds, _heaps: heaps })
    }
}

/// Tells whoever follows the tables of `changes`, by partition; the changes of shared tables are told in the first.
pub(crate) fn tell(sites: &mut [PartitionData], site: usize, table: TableId, tid: Tid, event: ChangeEvent) {
    let feeds = &mut sites[site].feeds;
    if !feeds.is_empty() {
        feeds.tell(table, tid, event);
    }
}
