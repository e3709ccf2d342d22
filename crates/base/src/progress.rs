//! How far a long statement has come: written by whoever executes it, read by whoever waits for it.
//!
//! **To feed it** (COPY, index builds, whatever else takes long): call [`StatementProgress::begin`] where a
//! phase of work begins and [`StatementProgress::add`] as work is done, once for every few hundred rows or
//! every buffer of a file rather than for every row. Both take `&self`, may be called by several threads and
//! never lock or allocate. A phase ends when the next one begins or the statement ends; whoever runs the
//! statement calls [`StatementProgress::end`]. Code that nobody watches passes a
//! `StatementProgress::default()`.
//!
//! I-1 A reader never sees the counts of one phase under the name of another.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a statement is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// COPY FROM reads and checks the file.
    ReadingFile,
    /// COPY FROM puts rows into the table.
    InsertingRows,
    /// CREATE INDEX, or a load at its end, builds an index.
    BuildingIndex,
    /// COPY TO writes rows.
    WritingFile,
}

/// What [`Progress::done`] and [`Progress::total`] count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes of a file, as it lies on the disk: compressed ones if it is compressed.
    Bytes,
    /// Rows.
    Rows,
}

/// How far a statement was when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// What is counted.
    pub unit: Unit,
    /// How many of them are done in this phase; never more than `total`.
    pub done: u64,
    /// How many there are, if that is known.
    pub total: Option<u64>,
    /// Which phase of the connection's statements this is: another number, another phase.
    pub number: u64,
}

/// How far a statement has come; see the module's documentation for how to feed it.
#[derive(Debug, Default)]
pub struct StatementProgress {
    /// The number of the phase times 16, and which it is: 0 while there is none or it is being changed.
    current: AtomicU64,
    done: AtomicU64,
    /// `u64::MAX` if it is not known.
    total: AtomicU64,
}

const PHASES: [Phase; 4] =
    [Phase::ReadingFile, Phase::InsertingRows, Phase::BuildingIndex, Phase::WritingFile];

impl StatementProgress {
    /// A phase begins, with nothing done of `total` (`None`: not known).
    pub fn begin(&self, phase: Phase, unit: Unit, total: Option<u64>) {
        let number = (self.clear() >> 4) + 1;
        self.done.store(0, Ordering::SeqCst);
        self.total.store(total.unwrap_or(u64::MAX), Ordering::SeqCst);
        let code = match unit {
            Unit::Bytes => 1 + phase as u64,
            Unit::Rows => 9 + phase as u64,
        };
        self.current.store(number << 4 | code, Ordering::SeqCst);
    }

    /// So many more are done.
    #[inline]
    pub fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::SeqCst);
    }

    /// The statement has ended: [`StatementProgress::get`] gives `None` until the next phase begins.
    pub fn end(&self) {
        self.clear();
    }

    /// Leaves the phase; gives what was current.
    fn clear(&self) -> u64 {
        self.current.fetch_and(!15, Ordering::SeqCst)
    }

    /// How far the statement is; `None` if none runs, or one that does not tell.
    pub fn get(&self) -> Option<Progress> {
        let current = self.current.load(Ordering::SeqCst);
        let (done, total) = (self.done.load(Ordering::SeqCst), self.total.load(Ordering::SeqCst));
        // Counts of a phase that began meanwhile are not those of this one.
        if current & 15 == 0 || self.current.load(Ordering::SeqCst) != current {
            return None;
        }
        let code = (current & 15) - 1;
        let unit = if code < 8 { Unit::Bytes } else { Unit::Rows };
        let phase = PHASES[code as usize % 8];
        let total = (total != u64::MAX).then_some(total);
        // A file may grow, and an estimate of rows be wrong.
        let done = total.map_or(done, |total| done.min(total));
        Some(Progress { phase, unit, done, total, number: current >> 4 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_and_unit_is_read_as_it_was_begun() {
        let progress = StatementProgress::default();
        assert_eq!(progress.get(), None);
        let units = [Unit::Bytes, Unit::Rows];
        let all = PHASES.iter().flat_map(|phase| units.map(|unit| (*phase, unit)));
        for (number, (phase, unit)) in (1_u64..).zip(all) {
            let total = number.is_multiple_of(2).then_some(10);
            progress.begin(phase, unit, total);
            progress.add(3);
            progress.add(4);
            assert_eq!(progress.get(), Some(Progress { phase, unit, done: 7, total, number }));
        }
        progress.end();
        assert_eq!(progress.get(), None);
    }

    #[test]
    fn done_is_never_more_than_all() {
        let progress = StatementProgress::default();
        progress.begin(Phase::ReadingFile, Unit::Bytes, Some(5));
        progress.add(9);
        assert_eq!(progress.get().map(|progress| progress.done), Some(5));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate is below the one that hands out threads")]
    fn counts_read_while_phases_change_are_of_their_phase() {
        let progress = StatementProgress::default();
        let ends = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=20_000 {
                    // The total says which phase it belongs to.
                    progress.begin(Phase::InsertingRows, Unit::Rows, Some(round));
                    progress.add(round);
                }
                ends.store(1, Ordering::SeqCst);
            });
            while ends.load(Ordering::SeqCst) == 0 {
                if let Some(seen) = progress.get() {
                    assert_eq!(seen.total, Some(seen.number));
                    assert!(seen.done == 0 || seen.done == seen.number);
                }
            }
        });
    }
}
