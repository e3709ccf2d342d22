//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::latency::median;
use crate::report::Shown;

/// What open transactions cost: transactions a second by procedures, in turns.
#[derive(Clone, Default, Debug, Serialize)]
pub struct OpenReport {
    /// With none open.
    pub alone: Vec<f64>,
    /// With ten that do nothing.
    pub beside_idle: Vec<f64>,
    /// With ten that write.
    pub beside_writing: Vec<f64>,
    /// How many of the open ones a procedure has ended.
    pub ended_by_procedures: u64,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

impl OpenReport {
    fn share(&self, beside: &[f64]) -> f64 {
        median(beside) / median(&self.alone) * 100.0
    }

    fn shown(&self) -> Vec<Shown> {
        if self.beside_writing.is_empty() {
            return Vec::new();
        }
        let what =
            "TPC-C by procedures while 10 interactive transactions are open and writing, against alone";
        vec![Shown::new(what, "%", self.share(&self.beside_writing), 60.0, 85.0)]
    }

    /// For programs.
    pub fn json(&self) -> String {
        let report = Self { shows: self.shown(), ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = "TPC-C by procedures on one partition, transactions a second\n\n".to_owned();
        let lines = [
            ("alone", &self.alone),
            ("beside 10 open transactions", &self.beside_idle),
            ("beside 10 that write", &self.beside_writing),
        ];
        for (name, times) in lines.into_iter().filter(|(_, times)| !times.is_empty()) {
            let _ = writeln!(text, "{name:<30}{:>10.0} {:>6.1} %", median(times), self.share(times));
        }
        let _ = writeln!(text, "\n{} open ones were ended by a procedure", self.ended_by_procedures);
        text
    }
}
