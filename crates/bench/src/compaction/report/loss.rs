//! What transactions lose while others freeze.

use std::fmt::Write as _;

use serde::Serialize;

use super::InTurns;
use crate::latency::median;

/// What TPC-C loses while others freeze.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Loss {
    /// What nobody has written for a while of order lines and history, as the paper has it.
    pub cold: LossTimes,
    /// All rows of the tables that grow, those too that deliveries are about to change.
    pub all: LossTimes,
}

/// Throughput of TPC-C: "hot" is alone, "frozen" while others freeze.
#[derive(Clone, Default, Debug, Serialize)]
pub struct LossTimes {
    /// Transactions a second.
    pub per_second: InTurns,
    /// Transactions a second of the thread's processor time.
    pub per_cpu_second: InTurns,
    /// A second right after.
    pub after_per_second: Vec<f64>,
    /// How long it took to freeze.
    pub seconds: Vec<f64>,
    /// Bytes of what was frozen, as they were.
    pub hot_bytes: Vec<u64>,
    /// Order lines that lived in frozen chunks then.
    pub order_lines: Vec<u64>,
    /// Rows of other tables that did.
    pub other_rows: Vec<u64>,
}

impl LossTimes {
    pub(super) fn millions(rows: &[u64]) -> f64 {
        median(rows.iter().map(|rows| *rows as f64 / 1e6))
    }

    pub(super) fn percent(times: &InTurns) -> Vec<f64> {
        times.ratios().iter().map(|ratio| (1.0 - ratio) * 100.0).collect()
    }

    pub(super) fn show(&self, what: &str, paper: &str, text: &mut String) {
        if self.seconds.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n{:<60} {:>12} {:>14} {:>8}",
            format!("TPC-C on one thread beside freezing {what}"),
            "alone",
            "while freezing",
            "loss",
        );
        let all = [
            ("transactions a second, medians", &self.per_second),
            ("transactions a CPU second, medians", &self.per_cpu_second),
        ];
        for (name, times) in all {
            let (alone, beside) = (median(&times.hot), median(&times.frozen));
            let loss = median(Self::percent(times));
            let _ = writeln!(text, "{name:<60} {alone:>12.0} {beside:>14.0} {loss:>6.1} %");
        }
        for (name, turns) in [("alone", &self.per_second.hot), ("beside", &self.per_second.frozen)] {
            let turns: Vec<_> = turns.iter().map(|turn| format!("{turn:.0}")).collect();
            let _ = writeln!(text, "{name:<8} turn by turn: {}", turns.join(" "));
        }
        let speeds = self.hot_bytes.iter().zip(&self.seconds).map(|(hot, took)| *hot as f64 / took / 1e6);
        let _ = writeln!(
            text,
            "right after it {:.0} a second; freezing took {:.2} s, {:.0} MB of hot rows a second; {:.2} M order lines and {:.2} M \
             rows of other tables are frozen then{paper}",
            median(&self.after_per_second),
            median(&self.seconds),
            median(speeds),
            Self::millions(&self.order_lines),
            Self::millions(&self.other_rows),
        );
    }
}
