//! How far opening a database has come, told while it goes on.

use albireo_env::Clock;
use parking_lot::Mutex;

/// Nanoseconds between two reports.
const EVERY_NS: u64 = 100_000_000;

/// What recovery is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryPhase {
    /// It loads an archive.
    Archive,
    /// It does the records of the redo log again.
    Log,
}

/// How far recovery has come in its phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryProgress {
    /// What it is doing.
    pub phase: RecoveryPhase,
    /// Bytes of the phase's files that are done.
    pub bytes_done: u64,
    /// Bytes of all of them. Of the log an upper bound: its last segment may hold room that no record uses.
    pub bytes_total: u64,
    /// Nanoseconds since the phase began.
    pub elapsed_ns: u64,
}

impl RecoveryProgress {
    /// Bytes done in a second, on average.
    pub fn bytes_per_second(&self) -> u64 {
        let per_second = u128::from(self.bytes_done) * 1_000_000_000 / u128::from(self.elapsed_ns.max(1));
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }

    /// Nanoseconds that the rest of the phase will take if it goes on so; `None` before anything is done.
    pub fn left_ns(&self) -> Option<u64> {
        let left = u128::from(self.bytes_total.saturating_sub(self.bytes_done));
        let left_ns = (left * u128::from(self.elapsed_ns)).checked_div(u128::from(self.bytes_done))?;
        Some(u64::try_from(left_ns).unwrap_or(u64::MAX))
    }
}

/// Tells somebody, but not too often. May be used by several threads; whoever comes while it is telling goes on.
pub(super) struct Reporter<'a> {
    clock: Clock,
    told: Mutex<Told<'a>>,
}

struct Told<'a> {
    listener: &'a mut (dyn FnMut(RecoveryProgress) + Send),
    began_ns: u64,
    last_ns: u64,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(clock: Clock, listener: &'a mut (dyn FnMut(RecoveryProgress) + Send)) -> Self {
        let now = clock.now();
        Self { clock, told: Mutex::new(Told { listener, began_ns: now, last_ns: now }) }
    }

    /// A phase begins.
    pub(super) fn begin(&self) {
        let mut told = self.told.lock();
        told.began_ns = self.clock.now();
        told.last_ns = told.began_ns;
    }

    /// So much is done of it.
    pub(super) fn report(&self, phase: RecoveryPhase, bytes_done: u64, bytes_total: u64) {
        let Some(mut told) = self.told.try_lock() else { return };
        let now = self.clock.now();
        if now.saturating_sub(told.last_ns) < EVERY_NS {
            return;
        }
        told.last_ns = now;
        let elapsed_ns = now.saturating_sub(told.began_ns);
        let bytes_done = bytes_done.min(bytes_total);
        (told.listener)(RecoveryProgress { phase, bytes_done, bytes_total, elapsed_ns });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reports_come_at_most_every_tenth_of_a_second_and_know_the_rate() {
        let (clock, hand) = Clock::simulated();
        let mut seen = Vec::new();
        let mut listener = |progress| seen.push(progress);
        let reporter = Reporter::new(clock, &mut listener);
        hand.advance(Duration::from_secs(5));
        reporter.begin();
        for done in 0..=20 {
            reporter.report(RecoveryPhase::Log, done * 100, 1_500);
            hand.advance(Duration::from_millis(50));
        }
        let done: Vec<u64> = seen.iter().map(|progress| progress.bytes_done).collect();
        assert_eq!(done, [200, 400, 600, 800, 1_000, 1_200, 1_400, 1_500, 1_500, 1_500]);
        assert_eq!(seen[4].elapsed_ns, 500_000_000);
        assert_eq!(seen[4].bytes_per_second(), 2_000);
        assert_eq!(seen[4].left_ns(), Some(250_000_000));
        assert_eq!(RecoveryProgress { bytes_done: 0, ..seen[4] }.left_ns(), None);
    }
}
