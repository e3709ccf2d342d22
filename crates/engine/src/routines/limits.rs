//! How a statement that runs as a transaction is run.

use std::time::Duration;

use albireo_base::SqlError;
use albireo_execute::Interrupts;

/// What ends a statement, and what else it does not say itself.
#[derive(Clone)]
pub(crate) struct Limits {
    pub(crate) interrupts: Interrupts,
    /// Whether routines are interpreted though they have machine code.
    pub(crate) interprets: bool,
    /// Whether its end waits for the redo log; `None`: as the database was opened.
    pub(crate) synchronous: Option<bool>,
}

impl Limits {
    /// 57014 if it is to end.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        self.interrupts.check()
    }

    /// How long it may go on; `None`: for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        let deadline_ns = self.interrupts.deadline_ns?;
        Some(Duration::from_nanos(deadline_ns.saturating_sub(self.interrupts.clock.now())))
    }
}
