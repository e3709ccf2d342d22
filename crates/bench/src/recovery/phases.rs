//! Transactions of one thread, alone and beside an archive.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{ArchiveReport, CheckpointSchedule, SqlError, SqlState};
use albireo_env::Clock;

use super::{Bench, End};
use crate::config::Config;
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::input::Inputs;
use crate::tpcc::rows::Timestamp;

/// Transactions handed to the worker at once.
const BATCH: usize = 64;

/// What was measured.
pub(super) struct BesideArchive {
    /// Transactions a second before and after the archive.
    pub(super) alone: [f64; 2],
    /// Transactions a second while it was written.
    pub(super) beside: f64,
    /// The archive, and the time it took in nanoseconds.
    pub(super) archive: ArchiveReport,
    pub(super) archive_ns: u64,
    /// Records of the log made in a second of the last phase, on one thread.
    pub(super) records_per_second: f64,
}

/// A worker's transactions, counted from another thread.
struct Counted<'a> {
    clock: &'a Clock,
    ended: &'a AtomicU64,
    records: &'a dyn Fn() -> u64,
    /// Whether the worker has failed.
    failed: &'a AtomicBool,
}

impl Counted<'_> {
    /// Lets `duration` pass, or as many transactions end as a phase has; the log's own thread counts a record
    /// of them, too.
    fn wait(&self, config: &Config, duration: Duration) {
        let Some(count) = config.transactions else { return self.clock.sleep(duration) };
        let until = self.ended.load(Ordering::Relaxed) + count;
        let records = (self.records)();
        let ended = || self.ended.load(Ordering::Relaxed) >= until && (self.records)() > records;
        while !ended() && !self.failed.load(Ordering::Relaxed) {
            self.clock.sleep(Duration::from_millis(1));
        }
    }

    /// Transactions a second, and records a second, while `meanwhile` is done.
    fn rate<T>(&self, meanwhile: impl FnOnce() -> T) -> (f64, f64, T) {
        let before = (self.clock.now(), self.ended.load(Ordering::Relaxed), (self.records)());
        let done = meanwhile();
        let after = (self.clock.now(), self.ended.load(Ordering::Relaxed), (self.records)());
        let seconds = (after.0 - before.0).max(1) as f64 / 1e9;
        ((after.1 - before.1) as f64 / seconds, (after.2 - before.2) as f64 / seconds, done)
    }
}

/// Loads, runs transactions of the first partition on one thread, and writes an archive meanwhile.
pub(super) fn beside_archive(
    bench: &Bench<'_>,
    config: &Config,
    target: &Albireo,
) -> Result<BesideArchive, End> {
    let population = config.population(Timestamp(bench.env.clock.unix_us()));
    target.load(config, &population, &Loading::new(&population, bench.observer, bench.cancel))?;
    bench.go_on()?;
    let (stop, failed, ended) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let clock = &bench.env.clock;
    albireo_env::scope(|scope| {
        let work = || {
            transactions(config, target, &stop, &ended).inspect_err(|_| failed.store(true, Ordering::Relaxed))
        };
        let worker = albireo_env::spawn_scoped(scope, "transactions", work)?;
        let records =
            || target.log_statistics().map_or_else(|| ended.load(Ordering::Relaxed), |log| log.records);
        let counted = Counted { clock, ended: &ended, records: &records, failed: &failed };
        let measured = phases(bench, config, target, &counted);
        stop.store(true, Ordering::Relaxed);
        let panicked = || SqlError::new(SqlState::INTERNAL_ERROR, "the thread of transactions panicked");
        worker.join().unwrap_or_else(|_| Err(panicked()))?;
        measured
    })
}

fn phases(
    bench: &Bench<'_>,
    config: &Config,
    target: &Albireo,
    counted: &Counted<'_>,
) -> Result<BesideArchive, End> {
    let alone = |name: &str| {
        bench.go_on()?;
        bench.observer.running(name, Duration::ZERO, config.duration, 0.0);
        let (rate, records, ()) = counted.rate(|| counted.wait(config, config.duration));
        Ok::<_, End>((rate, records))
    };
    counted.wait(config, config.duration / 4);
    let (before, _) = alone("before the archive")?;
    let start = counted.clock.now();
    let (beside, _, archive) = counted.rate(|| {
        // As archives are written by themselves.
        target.database().checkpoint_with(&CheckpointSchedule::default().options, |_| {})
    });
    let archive_ns = counted.clock.now() - start;
    let archive = archive?;
    let (after, records_per_second) = alone("after the archive")?;
    Ok(BesideArchive { alone: [before, after], beside, archive, archive_ns, records_per_second })
}

/// Runs transactions until told to stop.
fn transactions(
    config: &Config,
    target: &Albireo,
    stop: &AtomicBool,
    ended: &AtomicU64,
) -> Result<(), SqlError> {
    let homes: Vec<i16> = (1..=config.warehouses).filter(|w_id| target.partition_of(*w_id) == 0).collect();
    let mut inputs = Inputs::new(config.mix, config.scale, config.warehouses, &homes, config.seed, 1 << 40);
    let mut worker = target.worker(0)?;
    while !stop.load(Ordering::Relaxed) {
        let batch: Vec<_> = std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
        worker.run(&batch, &mut |_, _| {
            ended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })?;
    }
    Ok(())
}
