//! Methods that make snapshots.

use std::sync::Arc;

use albireo_partition::Partitions;
use albireo_storage::{BudgetSpent, DatabaseSnapshot, SnapshotScope};

/// A way to freeze the state of all partitions.
pub trait SnapshotMethod: Send + Sync {
    /// Its name in settings and reports.
    fn name(&self) -> &'static str;

    /// Takes a snapshot of `scope` between two transactions. It may cover more.
    ///
    /// # Errors
    /// The snapshots' memory budget is spent and the policy is to refuse.
    fn take(
        &self,
        partitions: &Partitions,
        scope: &SnapshotScope,
    ) -> Result<Arc<DatabaseSnapshot>, BudgetSpent>;
}

/// Copy-on-write of blocks in software: the default. Taking one costs a reference per table of its
/// scope and partition; a block is copied when it is first written while a snapshot sees it.
pub struct CopyOnWrite;

impl SnapshotMethod for CopyOnWrite {
    fn name(&self) -> &'static str {
        "copy-on-write"
    }

    fn take(
        &self,
        partitions: &Partitions,
        scope: &SnapshotScope,
    ) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        partitions.snapshot(scope)
    }
}
