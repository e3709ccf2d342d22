//! The figures beside what is asked of them.

use std::fmt::Write;

use albireo::{LogRecords, RecoveryReport as Recovered};
use serde::Serialize;

use super::phases::BesideArchive;
use crate::config::{Config, Procedures};
use crate::latency::{Quantiles, median, round};
use crate::report::Report;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveryReport {
    /// Warehouses.
    pub warehouses: i16,
    /// Partitions.
    pub partitions: u16,
    /// What the transactions were written in.
    pub procedures: Procedures,
    /// Seconds of each run.
    pub seconds: u64,
    /// The figures, as far as they were measured.
    pub figures: Vec<Figure>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// In which unit.
    pub unit: &'static str,
    /// What it must be.
    pub bar: f64,
    /// What it should be.
    pub aim: f64,
    /// Whether less is better.
    pub less_is_better: bool,
    /// What it comes from.
    pub detail: String,
}

impl Figure {
    /// Whether it is what it must be.
    pub fn holds(&self) -> bool {
        if self.less_is_better { self.value <= self.bar } else { self.value >= self.bar }
    }
}

/// What one round measured.
pub(super) struct Round {
    off: (f64, f64),
    null: (f64, f64),
    group: f64,
    bytes_per_record: f64,
    latency_us: Quantiles,
    unit_us: (f64, f64),
}

const NOTHING: Quantiles = Quantiles { p50: 0.0, p99: 0.0, p999: 0.0, max: 0.0 };

impl Round {
    /// Of runs without a log, with one that goes nowhere, and with group commit; and one write and sync
    /// before and after the last.
    pub(super) fn new(off: &Report, null: &Report, group: &Report, units: (Quantiles, Quantiles)) -> Self {
        let rates = |report: &Report| {
            let oltp = report.oltp_alone.as_ref();
            oltp.map_or((0.0, 0.0), |oltp| (oltp.transactions_per_second, oltp.transactions_per_cpu_second))
        };
        let latency_us = group.oltp_alone.as_ref().and_then(|oltp| oltp.latency_us).unwrap_or(NOTHING);
        Self {
            off: rates(off),
            null: rates(null),
            group: rates(group).0,
            bytes_per_record: null.log.bytes_per_record,
            latency_us,
            unit_us: ((units.0.p50 + units.1.p50) / 2.0, (units.0.p99 + units.1.p99) / 2.0),
        }
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    round(part / whole.max(f64::MIN_POSITIVE) * 100.0)
}

fn list(values: impl Iterator<Item = f64>, digits: usize) -> String {
    values.map(|value| format!("{value:.digits$}")).collect::<Vec<_>>().join(", ")
}

impl RecoveryReport {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            warehouses: config.warehouses,
            partitions: config.partitions,
            procedures: config.procedures,
            seconds: config.duration.as_secs(),
            figures: Vec::new(),
            interrupted: false,
            error: None,
        }
    }

    /// Adds a figure, or puts it in the place of the one of its name.
    fn set(
        &mut self,
        name: &'static str,
        (value, unit): (f64, &'static str),
        (bar, aim): (f64, f64),
        detail: String,
    ) {
        let less_is_better = aim < bar;
        let figure = Figure { name, value: round(value), unit, bar, aim, less_is_better, detail };
        match self.figures.iter_mut().find(|other| other.name == name) {
            Some(other) => *other = figure,
            None => self.figures.push(figure),
        }
    }

    pub(super) fn set_rounds(&mut self, rounds: &[Round]) {
        let null = |round: &Round| percent(round.null.1, round.off.1);
        self.set(
            "throughput with the log discarded, relative to no log",
            (median(rounds.iter().map(null)), "%"),
            (85.0, 95.0),
            format!(
                "per CPU second; by round {}; {} transactions/s without a log; {:.0} bytes per record",
                list(rounds.iter().map(null), 0),
                list(rounds.iter().map(|round| round.off.0), 0),
                median(rounds.iter().map(|round| round.bytes_per_record)),
            ),
        );
        let group = |round: &Round| percent(round.group, round.off.0);
        let detail = format!(
            "by round {}; {} transactions/s",
            list(rounds.iter().map(group), 0),
            list(rounds.iter().map(|round| round.group), 0),
        );
        let value = (median(rounds.iter().map(group)), "%");
        self.set("throughput with group commit, relative to no log", value, (50.0, 90.0), detail);
        let units = |of: fn(&Round) -> (f64, f64)| {
            let ratio = move |round: &Round| of(round).0 / of(round).1.max(f64::MIN_POSITIVE);
            (
                median(rounds.iter().map(ratio)),
                list(rounds.iter().map(|round| of(round).0), 0),
                list(rounds.iter().map(|round| of(round).1), 0),
            )
        };
        let (value, latency, unit) = units(|round| (round.latency_us.p50, round.unit_us.0));
        let detail = format!("{latency} us; one write and sync alone took {unit} us");
        self.set("commit latency, p50", (value, "write + sync"), (3.0, 1.5), detail);
        let (value, latency, unit) = units(|round| (round.latency_us.p99, round.unit_us.1));
        let detail = format!("{latency} us; one write and sync alone took {unit} us");
        self.set("commit latency, p99", (value, "write + sync, p99"), (6.0, 3.0), detail);
    }

    pub(super) fn set_order_bytes(&mut self, records: LogRecords, bytes: f64) {
        match records {
            LogRecords::Rows => {
                let name = "log record of a New-Order, as a call";
                if let Some(figure) = self.figures.iter_mut().find(|figure| figure.name == name) {
                    figure.detail = format!("as rows: {bytes:.0} bytes");
                }
            }
            _ => self.set(
                "log record of a New-Order, as a call",
                (bytes, "bytes"),
                (250.0, 120.0),
                String::new(),
            ),
        }
    }

    pub(super) fn set_archive(&mut self, run: &BesideArchive) {
        let alone = f64::midpoint(run.alone[0], run.alone[1]);
        let detail = format!(
            "{:.0} transactions/s meanwhile, {:.0} before, {:.0} after; {:.0} MB in {:.1} s",
            run.beside,
            run.alone[0],
            run.alone[1],
            run.archive.bytes_written as f64 / 1e6,
            run.archive_ns as f64 / 1e9,
        );
        let lost = 100.0 - percent(run.beside, alone);
        self.set("throughput lost while an archive is written", (lost, "%"), (15.0, 5.0), detail);
    }

    pub(super) fn set_recovery(&mut self, recovered: &Recovered, table_bytes: u64, run: &BesideArchive) {
        let seconds = recovered.load_ns as f64 / 1e9;
        let cores = albireo_env::cores() as f64;
        let per_core = recovered.archive_bytes as f64 / 1e6 / seconds.max(1e-9) / cores;
        let detail = format!(
            "{:.0} MB of files, {:.1} million rows in {seconds:.2} s on {cores} cores; the tables take {:.0} MB",
            recovered.archive_bytes as f64 / 1e6,
            recovered.archive_rows as f64 / 1e6,
            table_bytes as f64 / 1e6,
        );
        self.set("loading an archive, per core", (per_core, "MB/s"), (500.0, 1000.0), detail);
        let replayed = recovered.records as f64 * 1e9 / recovered.replay_ns.max(1) as f64;
        let detail = format!(
            "{replayed:.0} records/s, written at {:.0}/s; {} records, {:.1} MB in {:.1} s",
            run.records_per_second,
            recovered.records,
            recovered.log_bytes as f64 / 1e6,
            recovered.replay_ns as f64 / 1e9,
        );
        let value = percent(replayed, run.records_per_second);
        self.set("replay speed relative to normal execution", (value, "%"), (80.0, 150.0), detail);
    }

    /// As one screen.
    pub fn table(&self) -> String {
        let mut text = format!(
            "recovery: TPC-C, {} warehouses, {} partition(s), {:?} procedures, {} s per run\n\n",
            self.warehouses, self.partitions, self.procedures, self.seconds,
        );
        let width = self.figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
        for figure in &self.figures {
            let Figure { name, value, unit, bar, aim, detail, .. } = figure;
            let bound = if figure.less_is_better { "at most" } else { "at least" };
            let verdict = if figure.holds() { "" } else { "  MISSED" };
            // Writing into a string does not fail.
            let _ = writeln!(text, "{name:width$}  {value:>8.2} {unit}, {bound} {bar}, aim {aim}{verdict}");
            let _ = writeln!(text, "{:width$}  {detail}", "");
        }
        text
    }

    /// As one object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has texts as keys")
    }
}
