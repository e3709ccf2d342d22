//! Working beside a table: a snapshot of it, and what was changed since.

use std::sync::Arc;

use albireo_base::{PartitionId, Tid};
use albireo_storage::{BudgetSpent, ColumnSet, DatabaseSnapshot, SnapshotScope, Table};

use crate::feed::{Feed, Room};
use crate::handle::TableHandle;
use crate::{Exclusive, Partitions};

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
        self.feeds[partition.index()].take().map_or(ChangedRows::Unknown, ChangedRows::These)
    }

    /// About how many changes of a partition wait to be taken.
    pub fn waiting(&self, partition: PartitionId) -> usize {
        self.feeds[partition.index()].waiting()
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
        let count = if table.is_shared() { 1 } else { self.count() };
        let slots = |partition| self.with_table_if_there(table, PartitionId(partition), Table::slots);
        let rooms = (0..count).map(|partition| Room::new(slots(partition).unwrap_or(0))).collect();
        self.exclusively(|all| all.follow(table, scope, columns, rooms))
    }
}

impl Exclusive<'_> {
    /// Begins to follow a table, in as many partitions as there are rooms.
    fn follow(
        &mut self,
        table: TableHandle,
        scope: &SnapshotScope,
        columns: ColumnSet,
        rooms: Vec<Room>,
    ) -> Result<Follower, BudgetSpent> {
        let snapshot = self.snapshot(scope)?;
        let each = self.each_data().zip(rooms);
        let feeds = each.map(|(data, room)| data.feeds.open(table.id(), columns, room)).collect();
        let heaps = self.tables(table).into_iter().map(Table::keep_heaps).collect();
        Ok(Follower { table, snapshot, feeds, _heaps: heaps })
    }
}
