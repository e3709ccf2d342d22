//! What a call of a repeatable routine or procedure leaves in the redo log: itself, or the rows that it changed.
//!
//! The call is short whatever it does, and running it again takes as long as it took. The rows take bytes,
//! and time to write them down, for each; but doing them again searches nothing. Both costs are measured, a
//! few calls among many, and a call leaves the cheaper one: the rows if it changed few enough of them.
//!
//! Papers: Kemper and Neumann, HyPer, 2010, §4.4 (logical records); Malviya, Weisberg, Madden and Stonebraker,
//! Rethinking Main Memory OLTP Recovery, ICDE 2014 (calls cost less while all is well, rows when it is not).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use albireo_partition::{Call, CallError, Command, Measure};
use albireo_redo::Kind;
use albireo_semantics::expr::RoutineId;
use parking_lot::Mutex;

use super::ArgumentRef;
use super::command::put_command;
use crate::Database;

/// Which records calls of repeatable routines leave in the redo log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LogRecords {
    /// The cheaper one, as measured.
    #[default]
    Adaptive,
    /// The call.
    Calls,
    /// The rows that it changed.
    Rows,
}

/// What a byte of the log costs, on its way through memory to the disk, in nanoseconds.
const BYTE_NS: f64 = 2.0;

/// What a byte of rows costs when it is done again, in nanoseconds.
const BYTE_AGAIN_NS: f64 = 10.0;

/// What a nanosecond of recovery counts, in nanoseconds of every day: a transaction is run once and done
/// again rarely.
const AGAIN: f64 = 0.125;

/// One call of so many is measured, and of these every eighth leaves rows, so that their cost is known too.
const MEASURED: u32 = 64;

/// The costs of a routine's records, so far as they are known.
#[derive(Default)]
pub(crate) struct Costs {
    calls: AtomicU32,
    /// Calls with at most so many changes leave rows.
    rows_up_to: AtomicUsize,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// Nanoseconds that a call runs.
    run_ns: Mean,
    call_ns: Mean,
    call_bytes: Mean,
    /// Of each change.
    change_ns: Mean,
    change_bytes: Mean,
}

/// A mean that follows what changes.
#[derive(Clone, Copy, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn learn(&mut self, value: f64) {
        self.0 = Some(self.0.map_or(value, |mean| mean + (value - mean) / 8.0));
    }

    fn get(self) -> f64 {
        self.0.unwrap_or(0.0)
    }
}

impl Known {
    /// Up to how many changes rows cost less than the call.
    fn rows_up_to(&self) -> usize {
        if self.change_ns.0.is_none() || self.call_ns.0.is_none() {
            return 0;
        }
        let call = self.call_ns.get() + self.call_bytes.get() * BYTE_NS + self.run_ns.get() * AGAIN;
        let bytes = self.change_bytes.get();
        let change = self.change_ns.get() + bytes * (BYTE_NS + BYTE_AGAIN_NS * AGAIN);
        // Of something that costs nothing there are no measurements yet.
        if change > 0.0 { (call / change) as usize } else { 0 }
    }
}

/// How calls of a routine stand in the redo log.
#[derive(Clone)]
pub(crate) struct Logged {
    pub(crate) id: RoutineId,
    pub(crate) version: u32,
    pub(crate) costs: Arc<Costs>,
}

impl Logged {
    /// Starts a call, which leaves its record in the redo log.
    pub(super) fn start<R>(
        &self,
        database: &Database,
        args: &[ArgumentRef<'_>],
        call: Call<'_>,
        start: impl FnOnce(&Call<'_>) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let Self { id, version, costs } = self;
        let write = |moved: u64, out: &mut Vec<u8>| put_command(out, (id.0, *version, moved), args);
        database.leave_record(costs, &write, call, start)
    }
}

impl Database {
    /// Starts a call that may be done again: it leaves in the redo log what `write` says, after how many rows
    /// it moved, or the rows.
    pub(crate) fn leave_record<R>(
        &self,
        costs: &Costs,
        write: &dyn Fn(u64, &mut Vec<u8>),
        call: Call<'_>,
        start: impl FnOnce(&Call<'_>) -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let Turn { rows_up_to, measure } = match self.inner.log_records {
            LogRecords::Adaptive => costs.turn(),
            records => Turn::fixed(records),
        };
        let command = Some(Command { kind: Kind::COMMAND, write, rows_up_to });
        let ran = start(&Call { command, measure: measure.as_ref(), ..call });
        if let Some(measure) = measure.filter(|_| ran.is_ok()) {
            costs.learn(rows_up_to, &measure);
        }
        ran
    }
}

/// What one call is to leave.
struct Turn {
    /// The most changes with which it leaves rows.
    rows_up_to: usize,
    /// Where its costs go, if they are to be known.
    measure: Option<Measure>,
}

impl Turn {
    /// Always the same.
    fn fixed(records: LogRecords) -> Self {
        let rows_up_to = if records == LogRecords::Rows { usize::MAX } else { 0 };
        Self { rows_up_to, measure: None }
    }
}

impl Costs {
    /// What the next call is to leave.
    #[inline]
    fn turn(&self) -> Turn {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(MEASURED) {
            return Turn { rows_up_to: self.rows_up_to.load(Ordering::Relaxed), measure: None };
        }
        let rows = (number / MEASURED).is_multiple_of(8);
        Turn { rows_up_to: if rows { usize::MAX } else { 0 }, measure: Some(Measure::default()) }
    }

    /// Learns what a call has cost that was to be measured.
    #[cold]
    fn learn(&self, rows_up_to: usize, measure: &Measure) {
        let changes = measure.changes.get();
        if changes == 0 {
            return;
        }
        let (ns, bytes) = (measure.record_ns.get() as f64, measure.record_bytes.get() as f64);
        let mut known = self.known.lock();
        known.run_ns.learn(measure.run_ns.get() as f64);
        if rows_up_to == 0 {
            known.call_ns.learn(ns);
            known.call_bytes.learn(bytes);
        } else {
            known.change_ns.learn(ns / changes as f64);
            known.change_bytes.learn(bytes / changes as f64);
        }
        self.rows_up_to.store(known.rows_up_to(), Ordering::Relaxed);
    }

    /// In words, for EXPLAIN.
    pub(super) fn shown(&self) -> String {
        let known = *self.known.lock();
        if known.call_ns.0.is_none() || known.change_ns.0.is_none() {
            return "log: the call; its cost has not been measured yet".to_owned();
        }
        let up_to = match self.rows_up_to.load(Ordering::Relaxed) {
            0 => String::new(),
            1 => ", or the rows with 1 change".to_owned(),
            many => format!(", or the rows with up to {many} changes"),
        };
        format!(
            "log: the call{up_to}; a call takes {:.0} bytes, {:.0} ns, and {:.1} us to be done again, \
             each change {:.0} bytes, {:.0} ns",
            known.call_bytes.get(),
            known.call_ns.get(),
            known.run_ns.get() / 1e3,
            known.change_bytes.get(),
            known.change_ns.get(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(run_ns: u64, record_ns: u64, record_bytes: u64, changes: u64) -> Measure {
        let measure = Measure::default();
        measure.run_ns.set(run_ns);
        measure.record_ns.set(record_ns);
        measure.record_bytes.set(record_bytes);
        measure.changes.set(changes);
        measure
    }

    #[test]
    fn long_calls_with_few_changes_leave_rows() {
        let costs = Costs::default();
        assert_eq!(costs.turn().rows_up_to, usize::MAX, "the first is measured");
        costs.learn(usize::MAX, &measured(100_000, 1_000, 100, 10));
        assert_eq!(costs.turn().rows_up_to, 0, "nothing is known of calls yet");
        costs.learn(0, &measured(100_000, 100, 50, 10));
        // 12,700 for the call; 132.5 for a change.
        assert_eq!(costs.turn().rows_up_to, 95);
        assert!(costs.shown().contains("the rows with up to 95 changes"), "{}", costs.shown());
    }

    #[test]
    fn short_calls_with_many_changes_leave_themselves() {
        let costs = Costs::default();
        costs.learn(usize::MAX, &measured(5_000, 3_000, 600, 60));
        costs.learn(0, &measured(5_000, 60, 80, 60));
        assert_eq!(costs.turn().rows_up_to, usize::MAX, "the first is measured");
        let up_to = costs.turn().rows_up_to;
        assert!(up_to < 20, "{up_to}");
        // What changed nothing teaches nothing.
        costs.learn(0, &measured(1_000_000, 0, 0, 0));
        assert_eq!(costs.turn().rows_up_to, up_to);
    }

    #[test]
    fn few_calls_are_measured_and_few_of_these_leave_rows() {
        let costs = Costs::default();
        let turns: Vec<Turn> = (0..6400).map(|_| costs.turn()).collect();
        let measured = turns.iter().filter(|turn| turn.measure.is_some());
        assert_eq!(measured.clone().count(), 100);
        assert_eq!(measured.filter(|turn| turn.rows_up_to > 0).count(), 13);
    }
}
