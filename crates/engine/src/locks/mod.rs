//! Locks between clients: advisory ones, and waiting for any.
//!
//! Responsible for: who has which advisory lock (`advisory`), how a statement waits. Not responsible for: row locks, and
//! who waits for whom (`albireo_partition`).

mod advisory;

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_partition::{Held, LockOwner};

pub(crate) use advisory::{Advisory, Key, Lasting};

use crate::Database;
use crate::interactive::Activity;
use crate::routines::Limits;
use crate::settings::Settings;

/// Between two questions whether a statement that waits was cancelled.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(5);

impl Database {
    /// Waits until whoever has a lock that a statement wants has released something.
    ///
    /// # Errors
    /// 40P01 if they wait for `owner`, 55P03 after `lock_timeout`, 57014; those of `goes_on`, which is asked now and then.
    pub(crate) fn wait_for_lock(
        &self,
        owner: &Arc<LockOwner>,
        held: &Held,
        (settings, limits, activity): (&Settings, &Limits, Option<&Activity>),
        goes_on: &dyn Fn() -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let waiters = self.inner.partitions.waiters();
        let _waiting = waiters.begin(owner, held).ok_or_else(deadlock)?;
        let _shown = activity.map(|activity| activity.waits_for(held));
        let clock = &limits.interrupts.clock;
        let longest = settings.lock_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let until = longest.map(|longest| clock.now().saturating_add(longest));
        loop {
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(clock.now())));
            if held.wait(left.map_or(BETWEEN_QUESTIONS, |left| left.min(BETWEEN_QUESTIONS))) {
                return Ok(());
            }
            // Perhaps the client of whoever has it is gone.
            self.end_overdue();
            limits.check()?;
            goes_on()?;
            if left.is_some_and(|left| left.is_zero()) {
                let text = "canceling statement due to lock timeout";
                return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, text)
                    .with_detail("Another transaction has a lock that the statement wants."));
            }
        }
    }
}

fn deadlock() -> SqlError {
    SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .with_detail("Another transaction has a lock that the statement wants, and waits for this one.")
        .with_hint("The transaction might succeed if it is run again.")
}
