//! The report of what snapshots cost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::{self, bytes, duration, line, or_dash, thousands};
use super::{Oltp, Report};
use crate::latency::{Quantiles, round};

/// A finished or interrupted measurement of snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotReport {
    /// What every run has; its phases stay empty.
    #[serde(flatten)]
    pub run: Report,
    /// One entry a rate, without snapshots first.
    pub rates: Vec<RateReport>,
    /// Memory while one snapshot lives; null when interrupted before.
    pub memory: Option<SnapshotMemory>,
}

/// Transactions with so many snapshots a second, one of which lives at a time.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// Snapshots a second.
    pub snapshots_per_second: u32,
    /// The transactions.
    pub oltp: Oltp,
    /// Their rate by processor time as a share of the rate without snapshots; null for the latter.
    pub kept: Option<f64>,
    /// Snapshots taken, those of the warm-up included.
    pub taken: u64,
    /// How long executors stood still for one; those that were not about to run a transaction just
    /// then are not among them. Null without snapshots.
    pub pause_us: Option<Quantiles>,
    /// Blocks copied, for each snapshot.
    pub blocks_per_snapshot: f64,
    /// Their bytes.
    pub bytes_per_snapshot: f64,
}

/// Memory at the end of a phase during which one snapshot lived.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SnapshotMemory {
    /// How long transactions ran meanwhile.
    pub seconds: f64,
    /// Live data: rows, strings and indexes.
    pub data_bytes: u64,
    /// Blocks written since, as the snapshot sees them.
    pub held_bytes: u64,
    /// All memory in use.
    pub in_use_bytes: u64,
    /// What is in use beyond data and written blocks, in percent of these.
    pub overhead_percent: f64,
}

impl SnapshotMemory {
    /// Takes it from memory by kind.
    pub(crate) fn new(seconds: f64, kinds: &BTreeMap<String, u64>) -> Self {
        let of = |kind: &str| kinds.get(kind).copied().unwrap_or_default();
        let data_bytes = of("rows") + of("strings") + of("indexes");
        let (held_bytes, in_use_bytes) = (of("snapshots"), of("in_use"));
        let needed = (data_bytes + held_bytes).max(1) as f64;
        let overhead_percent = round((in_use_bytes as f64 / needed - 1.0) * 100.0);
        Self { seconds, data_bytes, held_bytes, in_use_bytes, overhead_percent }
    }
}

impl SnapshotReport {
    /// The JSON object, indented.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys and finite numbers")
    }

    /// The screen for people.
    pub fn table(&self) -> String {
        let mut out = String::new();
        table::head(&mut out, &self.run);
        line(
            &mut out,
            format_args!(
                "{:>11}{:>16}{:>9}{:>14}{:>20}{:>12}{:>13}",
                "snapshots/s",
                "transactions/s",
                "kept",
                "pause us p50",
                "p99 / max",
                "blocks each",
                "bytes each"
            ),
        );
        for rate in &self.rates {
            rate.row(&mut out);
        }
        out.push('\n');
        if let Some(memory) = &self.memory {
            let SnapshotMemory { seconds, data_bytes, held_bytes, in_use_bytes, overhead_percent } = memory;
            let (data, held, all) = (bytes(*data_bytes), bytes(*held_bytes), bytes(*in_use_bytes));
            line(
                &mut out,
                format_args!(
                    "one alive    {all} in use after {seconds:.1} s under one snapshot: data {data}, blocks written \
                     since {held}, {overhead_percent:+.1} %"
                ),
            );
        }
        table::memory(&mut out, &self.run);
        table::consistency(&mut out, &self.run);
        table::ending(&mut out, &self.run);
        out
    }
}

impl RateReport {
    fn row(&self, out: &mut String) {
        let kept = or_dash(self.kept, |kept| format!("{:.1} %", kept * 100.0));
        let p50 = or_dash(self.pause_us, |pause| duration(pause.p50));
        let tail =
            or_dash(self.pause_us, |pause| format!("{} / {}", duration(pause.p99), duration(pause.max)));
        line(
            out,
            format_args!(
                "{:>11}{:>16}{kept:>9}{p50:>14}{tail:>20}{:>12}{:>13}",
                self.snapshots_per_second,
                thousands(self.oltp.transactions_per_second.round() as u64),
                thousands(self.blocks_per_snapshot.round() as u64),
                bytes(self.bytes_per_snapshot.round() as u64),
            ),
        );
    }
}
