//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::latency::{Quantiles, median};
use crate::report::Shown;

/// What point updates noticed.
#[derive(Clone, Debug, Serialize)]
pub struct StallReport {
    /// Rows of the table.
    pub rows: u64,
    /// Partitions.
    pub partitions: u16,
    /// Of each statement, turn by turn.
    pub beside: Vec<Beside>,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// What they noticed of one statement.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// Its name.
    pub statement: &'static str,
    /// Rows that it changed.
    pub rows: u64,
    /// How long it took.
    pub seconds: f64,
    /// Point updates a second before it.
    pub alone_per_second: f64,
    /// Point updates a second beside it.
    pub per_second: f64,
    /// How long one took before it, in microseconds.
    pub alone_us: Option<Quantiles>,
    /// How long one took beside it, in microseconds.
    pub latency_us: Option<Quantiles>,
    /// The longest beside it, less the time in which its thread waited for a core, in microseconds.
    pub longest_on_core_us: f64,
    /// The longest beside it, less the time in which the host of a virtual machine gave the thread's core to others, where that
    /// is certain because the thread never left its core meanwhile, and that in which other processes had the core; in
    /// microseconds.
    pub longest_less_others_us: f64,
    /// How long the machine stopped a thread that only read the clock, for as long as the statement took, likewise.
    pub machine_us: f64,
}

impl Beside {
    fn share(&self) -> f64 {
        self.per_second / self.alone_per_second.max(1.0) * 100.0
    }

    fn worst_ms(&self) -> f64 {
        // One that did not end while the statement ran took as long.
        self.latency_us.map_or(self.seconds * 1e3, |latency| latency.max / 1e3)
    }
}

impl StallReport {
    pub(super) fn new(rows: u64, partitions: u16) -> Self {
        let (beside, shows) = (Vec::new(), Vec::new());
        Self { rows, partitions, beside, shows, interrupted: false, error: None }
    }

    /// Statements in the order in which they were run, each with its turns.
    fn by_statement(&self) -> Vec<(&'static str, Vec<&Beside>)> {
        let mut all: Vec<(&'static str, Vec<&Beside>)> = Vec::new();
        for beside in &self.beside {
            match all.iter_mut().find(|(statement, _)| *statement == beside.statement) {
                Some((_, turns)) => turns.push(beside),
                None => all.push((beside.statement, vec![beside])),
            }
        }
        all
    }

    /// With the figures beside what is asked of them: medians of the turns.
    fn shown(&self) -> Vec<Shown> {
        let shown = |(statement, turns): (&str, Vec<&Beside>)| {
            let of = |figure: fn(&Beside) -> f64| median(turns.iter().map(|turn| figure(turn)));
            let worst = format!("worst latency of point transactions beside {statement}");
            let share = format!("throughput of point transactions beside {statement}, against alone");
            [
                Shown::new(worst, "ms", of(Beside::worst_ms), 5.0, 0.5),
                Shown::new(share, "%", of(Beside::share), 50.0, 80.0),
            ]
        };
        self.by_statement().into_iter().flat_map(shown).collect()
    }

    /// For programs.
    pub fn json(&self) -> String {
        let report = Self { shows: self.shown(), ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Point updates beside one statement; {} rows, {} partition(s)\n\n{:<30} {:>10} {:>9} {:>12} {:>6} {:>10} {:>10} {:>12} {:>14} {:>11}\n",
            self.rows,
            self.partitions,
            "statement",
            "rows",
            "seconds",
            "updates/s",
            "share",
            "p99.9 us",
            "worst ms",
            "on a core ms",
            "less others ms",
            "machine ms"
        );
        for beside in self.by_statement().into_iter().flat_map(|(_, turns)| turns) {
            let p999 = beside.latency_us.map_or(f64::NAN, |latency| latency.p999);
            let Beside { statement, rows, seconds, per_second, .. } = beside;
            let (on_core, machine) = (beside.longest_on_core_us / 1e3, beside.machine_us / 1e3);
            let less_others = beside.longest_less_others_us / 1e3;
            let (share, worst) = (beside.share(), beside.worst_ms());
            let _ = writeln!(
                text,
                "{statement:<30} {rows:>10} {seconds:>9.3} {per_second:>12.0} {share:>5.0}% {p999:>10.1} {worst:>10.2} {on_core:>12.2} {less_others:>14.2} {machine:>11.2}"
            );
        }
        text.push_str(
            "\nworst ms: the longest point update; on a core: less the time in which its thread waited for a core\n\
             less others: less the time in which the host of the virtual machine or other processes had the thread's core\n\
             machine ms: the same of threads that only read the clock, as long as the statement took\n",
        );
        text
    }
}
