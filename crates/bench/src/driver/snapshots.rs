//! What snapshots cost: transactions at full load with more and more snapshots a second, then with one
//! snapshot that lives all the time.

use albireo_env::Clock;

use super::phase::{Phase, Span};
use super::{BenchmarkRun, Cancel, Failure, SystemUnderTest, during};
use crate::config::{Config, ConfigError};
use crate::latency::round;
use crate::progress::Observer;
use crate::report::{RateReport, SnapshotMemory, SnapshotReport};

/// Snapshots a second, one phase each.
const RATES: [u32; 4] = [0, 1, 10, 100];

/// Measures snapshots under the transactions of `config`, whose workload does not matter. The report
/// holds whatever was measured.
///
/// # Errors
/// The configuration makes no sense; nothing has been done then.
pub fn run_snapshots(
    config: &Config,
    target: &dyn SystemUnderTest,
    clock: &Clock,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<SnapshotReport, ConfigError> {
    config.validate()?;
    let run = BenchmarkRun { config, target, clock, observer, cancel };
    let mut report = SnapshotReport { run: super::blank(config), rates: Vec::new(), memory: None };
    report.run.benchmark = "snapshots".to_owned();
    let done = run.load(&mut report.run).and_then(|()| run.snapshots(&mut report));
    run.finish(done, &mut report.run);
    Ok(report)
}

impl BenchmarkRun<'_> {
    fn snapshots(&self, report: &mut SnapshotReport) -> Result<(), Failure> {
        for (number, rate) in RATES.into_iter().enumerate() {
            let measured = self.at_rate(number, rate, report)?;
            report.rates.push(measured);
            self.go_on()?;
        }
        self.with_one_alive(report)?;
        self.check_at_end(&mut report.run)
    }

    fn at_rate(&self, number: usize, rate: u32, report: &SnapshotReport) -> Result<RateReport, Failure> {
        self.target.forget_pauses();
        let before = self.target.snapshot_costs();
        let phase = Phase::new(self, Span::single(number, self.config.duration)).with_snapshots(rate);
        let result = phase.run(&format!("{rate} snapshots/s"), &mut [], false);
        self.observer.finished();
        result.failure.map_or(Ok(()), Err)?;
        let oltp = result.oltp.report();
        let after = self.target.snapshot_costs();
        let taken = after.taken - before.taken;
        let each = |count: u64| if taken > 0 { round(count as f64 / taken as f64) } else { 0.0 };
        let alone = report.rates.first().map(|alone| alone.oltp.transactions_per_cpu_second);
        let share = |alone: f64| round(oltp.transactions_per_cpu_second / alone.max(1.0));
        Ok(RateReport {
            snapshots_per_second: rate,
            kept: alone.map(share),
            taken,
            pause_us: after.pauses.quantiles(1_000).filter(|_| taken > 0),
            blocks_per_snapshot: each(after.blocks_copied - before.blocks_copied),
            bytes_per_snapshot: each(after.bytes_copied - before.bytes_copied),
            oltp,
        })
    }

    /// Runs transactions for a phase while one snapshot lives; its conditions are checked afterwards.
    fn with_one_alive(&self, report: &mut SnapshotReport) -> Result<(), Failure> {
        let mut snapshot = self.target.snapshot().map_err(during("taking a snapshot"))?;
        let span = Span::single(RATES.len(), self.config.duration);
        let result = Phase::new(self, span).run("one snapshot alive", &mut [], false);
        self.observer.finished();
        report.memory = Some(SnapshotMemory::new(result.oltp.report().seconds, &self.target.memory_bytes()));
        result.failure.map_or(Ok(()), Err)?;
        self.go_on()?;
        report.run.consistency.under_load = self.check(snapshot.as_mut())?;
        Ok(())
    }
}
