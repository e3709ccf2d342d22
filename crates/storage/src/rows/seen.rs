//! The rows of a table as a snapshot shows them, read by the same code as live ones.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use albireo_base::TableId;

use super::Rows;
use crate::directory::Directory;
use crate::layout::Layout;
use crate::registry::SnapshotRegistry;

/// Rows that nobody writes. They own no block: the snapshot does.
///
/// Invariant: only columns are read that the snapshot covers, and rows below its last slot.
pub(crate) struct SeenRows {
    rows: Rows,
    /// Dropped after the rows: the snapshot.
    keeper: Arc<dyn Any + Send + Sync>,
}

/// What a snapshot has of a table in one partition.
pub(crate) struct SeenPart {
    pub(crate) dir: Arc<Directory>,
    pub(crate) slots: u64,
    pub(crate) live_rows: u64,
}

impl SeenRows {
    /// Those of a part of the snapshot `keeper`.
    pub(crate) fn new(
        table: TableId,
        layout: Arc<Layout>,
        part: SeenPart,
        registry: Arc<SnapshotRegistry>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let SeenPart { dir, slots, live_rows } = part;
        let mut rows = Rows::new(table, layout, registry);
        (rows.dir, rows.slots, rows.shared_slots, rows.live_rows) = (dir, slots, slots, live_rows);
        rows.readdress();
        Self { rows, keeper }
    }

    /// The same rows with other blocks, which whoever has made them keeps.
    pub(super) fn with(&self, dir: Directory) -> Self {
        assert_eq!(dir.entries.len(), self.dir.entries.len(), "there are as many blocks");
        let Rows { table, slots, live_rows, .. } = self.rows;
        let part = SeenPart { dir: Arc::new(dir), slots, live_rows };
        Self::new(table, Arc::clone(&self.layout), part, Arc::clone(&self.registry), Arc::clone(&self.keeper))
    }
}

impl Deref for SeenRows {
    type Target = Rows;

    fn deref(&self) -> &Rows {
        &self.rows
    }
}

impl Drop for SeenRows {
    fn drop(&mut self) {
        // A store gives the blocks of its directory back, and these are not its own.
        self.rows.dir = Arc::default();
    }
}
