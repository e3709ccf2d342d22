//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::report::Shown;

/// What crossing transactions cost.
#[derive(Clone, Default, Debug, Serialize)]
pub struct CrossingReport {
    /// What a client noticed whose partitions nobody else touches.
    pub spared: Option<Spared>,
    /// Two clients, by partitions and share of crossing transfers.
    pub loads: Vec<Load>,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// Transfers a second of a client in two of four partitions, each the median of several turns.
#[derive(Clone, Debug, Serialize)]
pub struct Spared {
    /// Beside one in the other two partitions that crosses none.
    pub alone: f64,
    /// Beside one in the other two of which one in ten crosses them.
    pub beside: f64,
    /// Beside changes of a shared table, which take all partitions, about as many a second.
    pub beside_all: f64,
    /// The least, median and greatest of `beside` to `alone` in one turn, in percent.
    pub percent: [f64; 3],
}

/// Transfers a second of two clients.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Partitions.
    pub partitions: u16,
    /// Transfers that cross, in percent, where there are two.
    pub crossing_percent: u64,
    /// Of both.
    pub per_second: f64,
}

impl Spared {
    /// From turns of alone, beside, and beside changes of a shared table.
    pub(super) fn of(turns: &[[f64; 3]]) -> Self {
        let sorted = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all
        };
        let median = |at: usize| sorted(turns.iter().map(|turn| turn[at]).collect())[turns.len() / 2];
        let percent = sorted(turns.iter().map(|turn| turn[1] / turn[0].max(1.0) * 100.0).collect());
        let percent = [percent[0], percent[percent.len() / 2], percent[percent.len() - 1]];
        Self { alone: median(0), beside: median(1), beside_all: median(2), percent }
    }
}

impl CrossingReport {
    fn shown(&self) -> Vec<Shown> {
        let what = "k-partition crossing: throughput of partitions not touched while 10 % of transactions cross two of four";
        let shown = |spared: &Spared| Shown::new(what, "%", spared.percent[1], 80.0, 95.0);
        self.spared.iter().map(shown).collect()
    }

    /// For programs.
    pub fn json(&self) -> String {
        let report = Self { shows: self.shown(), ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        if let Some(Spared { alone, beside, beside_all, percent: [least, median, most] }) = &self.spared {
            let _ = writeln!(
                text,
                "A client in two of four partitions, transfers a second\n\n\
                 {:<62} {alone:>10.0}\n{:<62} {beside:>10.0}  {median:.0} % ({least:.0} to {most:.0})\n{:<62} {beside_all:>10.0}  {:.0} %\n",
                "beside one in the other two, of which none crosses",
                "beside one in the other two, of which 1 in 10 crosses them",
                "beside changes of a shared table, which take all four, too",
                beside_all / alone.max(1.0) * 100.0
            );
        }
        if !self.loads.is_empty() {
            let _ = writeln!(
                text,
                "Two clients, transfers a second\n\n{:>10} {:>10} {:>12}",
                "partitions", "crossing", "transfers/s"
            );
        }
        for Load { partitions, crossing_percent, per_second } in &self.loads {
            let crossing = if *partitions > 1 { format!("{crossing_percent} %") } else { "-".to_owned() };
            let _ = writeln!(text, "{partitions:>10} {crossing:>10} {per_second:>12.0}");
        }
        text
    }
}
