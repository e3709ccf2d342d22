//! Row locks of a transaction of several statements: releasing them, and locking whole tables.

use albireo_execute::tables::handle;
use albireo_partition::{Abort, Held, LockMode, Transaction};
use albireo_sql::{Catalog, RowLocks};
use albireo_storage::SnapshotScope;

use super::Interactive;
use crate::Database;

impl Database {
    /// Releases the locks that a transaction has taken in a step and later.
    pub(super) fn release_since(&self, open: &Interactive, step: u32) {
        for partition in &open.entered {
            self.inner.partitions.release_locks(*partition, &open.reader, step);
        }
        open.reader.release();
        self.inner.advisory.release_since(open.reader.owner(), step);
    }

    /// A statement of a transaction has failed: what it has locked since its last savepoint is no more.
    pub(crate) fn fail_interactive(&self, open: &Interactive) {
        self.release_since(open, open.step_of_savepoint());
    }
}

/// Locks all rows of tables that a query over a snapshot reads, of which nobody knows which it will be; who keeps it
/// from that.
pub(super) fn lock_tables(
    tx: &mut Transaction,
    scope: &SnapshotScope,
    locks: RowLocks,
    catalog: &Catalog,
) -> Result<Option<Held>, Abort> {
    let SnapshotScope::Tables(tables) = scope else { return Ok(None) };
    let mode = if locks.updates { LockMode::Update } else { LockMode::Share };
    for table in tables.iter().filter(|_| locks.any).filter_map(|(id, _)| catalog.table(*id)) {
        for site in tx.sites().collect::<Vec<_>>() {
            if let Some(held) = tx.lock(site, handle(table), None, mode)? {
                return Ok(Some(held));
            }
        }
    }
    Ok(None)
}
