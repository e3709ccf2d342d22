//! Row locks of a transaction of several statements: waiting for those of others, releasing its own.

use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_execute::tables::handle;
use albireo_partition::{Abort, Held, LockMode, Transaction};
use albireo_sql::{Catalog, RowLocks};
use albireo_storage::SnapshotScope;

use super::Interactive;
use crate::Database;
use crate::routines::Limits;
use crate::settings::Settings;

/// Between two questions whether a statement that waits was cancelled.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(5);

impl Database {
    /// Waits until whoever has locked what a statement wants has released something.
    ///
    /// # Errors
    /// 40P01 if they wait for this transaction, 55P03 after `lock_timeout`, 57014, 40001.
    pub(super) fn wait_for(
        &self,
        open: &Interactive,
        held: &Held,
        (settings, limits, catalog): (&Settings, &Limits, &Catalog),
    ) -> Result<(), SqlError> {
        let waiters = self.inner.partitions.waiters();
        let _waiting = waiters.begin(&open.reader, held).ok_or_else(deadlock)?;
        let clock = &limits.interrupts.clock;
        let longest = settings.lock_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let until = longest.map(|longest| clock.now().saturating_add(longest));
        loop {
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(clock.now())));
            if held.wait(left.map_or(BETWEEN_QUESTIONS, |left| left.min(BETWEEN_QUESTIONS))) {
                return Ok(());
            }
            limits.check()?;
            open.check(catalog)?;
            if left.is_some_and(|left| left.is_zero()) {
                let text = "canceling statement due to lock timeout";
                return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, text)
                    .with_detail("Another transaction has locked a row that the statement wants."));
            }
        }
    }

    /// Releases the locks that a transaction has taken in a step and later.
    pub(super) fn release_since(&self, open: &Interactive, step: u32) {
        for partition in &open.entered {
            self.inner.partitions.release_locks(*partition, &open.reader, step);
        }
        open.reader.release();
    }

    /// A statement of a transaction has failed: what it has locked since its last savepoint is no more.
    pub(crate) fn fail_interactive(&self, open: &Interactive) {
        self.release_since(open, open.savepoints.last().map_or(0, |savepoint| savepoint.step));
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

fn deadlock() -> SqlError {
    SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .with_detail("Another transaction has locked a row that the statement wants, and waits for this one.")
        .with_hint("The transaction might succeed if it is run again.")
}
