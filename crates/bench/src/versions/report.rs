//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::report::Shown;

/// What old versions cost.
#[derive(Clone, Debug, Serialize)]
pub struct VersionsReport {
    /// Rows of LINEITEM.
    pub rows: u64,
    /// Small transactions of each measurement of throughput.
    pub transactions: u64,
    /// Of each query.
    pub latencies: Vec<Latency>,
    /// Each way.
    pub throughput: Vec<Throughput>,
    /// For each share of rows that were changed.
    pub scans: Vec<Scan>,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// Milliseconds of a query beside small transactions.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Its name.
    pub query: &'static str,
    /// On a snapshot.
    pub heterogeneous_ms: f64,
    /// On live rows, SERIALIZABLE.
    pub serializable_ms: f64,
    /// On live rows, READ COMMITTED.
    pub read_committed_ms: f64,
}

/// Transactions a second.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    /// Which way queries go.
    pub processing: &'static str,
    /// Small transactions alone.
    pub alone_per_second: f64,
    /// Small transactions and queries.
    pub mixed_per_second: f64,
}

/// Milliseconds of a scan of LINEITEM, ORDERS and PART through a snapshot.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// Rows that are then changed, in percent.
    pub percent: u64,
    /// Before.
    pub before_ms: [f64; 3],
    /// After.
    pub after_ms: [f64; 3],
}

fn geometric_mean(all: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    (sum / count).exp()
}

impl Latency {
    fn times(&self) -> f64 {
        self.serializable_ms.min(self.read_committed_ms) / self.heterogeneous_ms
    }
}

impl Scan {
    fn times(&self) -> f64 {
        geometric_mean(self.after_ms.iter().zip(&self.before_ms).map(|(after, before)| after / before))
    }
}

impl VersionsReport {
    pub(super) fn new(rows: u64, transactions: u64) -> Self {
        Self {
            rows,
            transactions,
            latencies: Vec::new(),
            throughput: Vec::new(),
            scans: Vec::new(),
            shows: Vec::new(),
            interrupted: false,
            error: None,
        }
    }

    fn shown(&self) -> Vec<Shown> {
        let mut shows = Vec::new();
        if !self.latencies.is_empty() {
            let times = geometric_mean(self.latencies.iter().map(Latency::times));
            let what = "OLAP latency under 7:1 OLTP load, heterogeneous against homogeneous";
            shows.push(Shown::new(what, "x", times, 2.0, 4.0));
        }
        if let Some(scan) = self.scans.iter().find(|scan| scan.percent == 100) {
            let what =
                "scan of a table with every row versioned once, through a snapshot, against unversioned";
            shows.push(Shown::new(what, "x", scan.times(), 1.1, 1.0));
        }
        shows
    }

    /// For programs.
    pub fn json(&self) -> String {
        let report = Self { shows: self.shown(), ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!("LINEITEM has {} rows, ORDERS a quarter, PART a thirtieth\n", self.rows);
        if !self.latencies.is_empty() {
            let _ = writeln!(
                text,
                "\nA query beside small transactions of one thread, ms (Fig. 7: homogeneous is 2 to 4 times as slow)\n\n\
                 {:<16} {:>12} {:>14} {:>16} {:>7}",
                "query", "on snapshot", "serializable", "read committed", "times"
            );
        }
        for latency in &self.latencies {
            let Latency { query, heterogeneous_ms, serializable_ms, read_committed_ms } = latency;
            let times = latency.times();
            let _ = writeln!(
                text,
                "{query:<16} {heterogeneous_ms:>12.2} {serializable_ms:>14.2} {read_committed_ms:>16.2} {times:>6.1}x"
            );
        }
        if !self.throughput.is_empty() {
            let _ = writeln!(
                text,
                "\n{} small transactions on two threads, alone and with 10 queries, a second (Fig. 8)\n\n{:<30} {:>10} {:>10} {:>6}",
                self.transactions, "queries", "alone", "mixed", "share"
            );
        }
        for Throughput { processing, alone_per_second, mixed_per_second } in &self.throughput {
            let share = mixed_per_second / alone_per_second * 100.0;
            let _ = writeln!(
                text,
                "{processing:<30} {alone_per_second:>10.0} {mixed_per_second:>10.0} {share:>5.0}%"
            );
        }
        if !self.scans.is_empty() {
            let _ = writeln!(
                text,
                "\nScans through a snapshot, ms before and after rows are changed (Fig. 9: 5 times as slow at 100 %)\n\n\
                 {:>8} {:>20} {:>20} {:>20} {:>7}",
                "changed", "LINEITEM", "ORDERS", "PART", "times"
            );
        }
        for scan in &self.scans {
            let [lineitem, orders, part] =
                [0, 1, 2].map(|at| format!("{:.3} {:.3}", scan.before_ms[at], scan.after_ms[at]));
            let (percent, times) = (scan.percent, scan.times());
            let _ = writeln!(text, "{percent:>7}% {lineitem:>20} {orders:>20} {part:>20} {times:>6.2}x");
        }
        text
    }
}
