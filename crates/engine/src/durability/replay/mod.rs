//! Doing the records of a log again: one after another, or those of each partition beside those of others.
//!
//! Responsible for: the order, on how many threads, what stands in memory meanwhile, which error is told. Not
//! responsible for: what doing a record means (`recovery`), the files (`albireo_redo`).
//!
//! ```text
//!          batches of whole frames              runs of its lanes
//! source --------------------------> dispatcher ------------------> worker 0: lanes 0, n, 2n, ...
//! (reads, checks, finds runs)         |  at a crossing record:      worker 1: lanes 1, n + 1, ...
//!                                     '- waits for all workers, does it alone
//! ```
//!
//! With one thread the dispatcher is source and worker as well, and does all in the order of the log. With more,
//! the source has a thread from the second batch on, and workers begin with the first stretch between two crossing
//! records that is long enough: a short one the dispatcher does sooner than it wakes others, so that many crossing
//! records cost no more than without threads.
//!
//! I-1 Records of a lane are done one after another in their order. I-2 While a crossing record is done, none
//! other is; all before it have been done, and none after it. I-3 The error that is told is that of the first
//! record, in the order of the log, that cannot be done: what is before it is done in any case, what is after
//! it perhaps. What is wrong with the log behind it does not matter. (`tests.rs`)

mod crew;
mod source;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::SqlError;
use albireo_env::thread::Scope;
use albireo_redo::{End, Frame, LogReader, Record};
use parking_lot::Mutex;

use super::progress::{RecoveryPhase, Reporter};
use super::target::RecoveryTarget;
use crew::Crew;
use source::{Batch, Feed, Source, Step};

pub(super) use source::Last;

/// Bytes of records between two crossing ones that one thread does sooner than several are woken.
const ALONE_BYTES: u64 = 16 << 10;

/// What does a record of a frame again and tells how many rows it wrote.
pub(super) type Redo<'a> = dyn Fn(&Frame, &Record<'_>) -> Result<u64, SqlError> + Sync + 'a;

/// How a log is done again.
pub(super) struct Replay<'a, 'r> {
    /// Does a record.
    pub(super) redo: &'a Redo<'a>,
    /// Lanes that the log must have.
    pub(super) lanes: u16,
    /// Threads that may work at the same time, at least 1.
    pub(super) threads: usize,
    /// How far.
    pub(super) target: RecoveryTarget,
    /// Is told how far it is.
    pub(super) reporter: &'a Reporter<'r>,
}

/// What was done.
pub(super) struct Replayed {
    pub(super) records: u64,
    pub(super) rows: u64,
    /// Bytes of all segments that were read or stepped over.
    pub(super) log_bytes: u64,
    /// The last record that was done.
    pub(super) last: Option<Last>,
    /// Where the log ends; `None` if the target came before.
    pub(super) end: Option<End>,
}

impl Replay<'_, '_> {
    /// Does again what the reader gives.
    ///
    /// # Errors
    /// That of the first record that cannot be done; else what is wrong with the log.
    pub(super) fn run(&self, reader: LogReader) -> Result<Replayed, SqlError> {
        let work = ReplayState::new(self.redo);
        let source = Source::new(reader, self.lanes, self.target);
        let source = albireo_env::scope(|scope| {
            let workers = self.threads.min(usize::from(self.lanes));
            let mut dispatcher = Dispatcher { scope, work: &work, workers, crew: None };
            let mut feed = Feed::new(source);
            let read = loop {
                let report = |total| {
                    self.reporter.report(RecoveryPhase::Log, work.bytes.load(Ordering::Relaxed), total);
                };
                match feed.next(&report) {
                    Ok(Some(batch)) if !work.has_failed() => {
                        if self.threads > 1 {
                            feed = feed.on_thread(scope);
                        }
                        dispatcher.dispatch(&Arc::new(batch));
                    }
                    Ok(_) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            dispatcher.wait();
            work.failure.lock().take().map_or(read, |(_, error)| Err(error))?;
            Ok::<_, SqlError>(feed.finish())
        })?;
        Ok(Replayed {
            records: work.records.load(Ordering::Relaxed),
            rows: work.rows.load(Ordering::Relaxed),
            log_bytes: source.read_bytes(),
            last: source.last(),
            end: source.end(),
        })
    }
}

/// What all threads share.
struct ReplayState<'a> {
    redo: &'a Redo<'a>,
    records: AtomicU64,
    rows: AtomicU64,
    /// How far somebody is, in bytes of the log.
    bytes: AtomicU64,
    /// The first record, as far as is known, that could not be done; else the greatest number.
    failed: AtomicU64,
    failure: Mutex<Option<(u64, SqlError)>>,
}

impl<'a> ReplayState<'a> {
    fn new(redo: &'a Redo<'a>) -> Self {
        Self {
            redo,
            records: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failed: AtomicU64::new(u64::MAX),
            failure: Mutex::default(),
        }
    }

    /// Does some runs of a batch, but nothing behind a record that could not be done.
    fn run(&self, batch: &Batch, steps: &[Step]) {
        let (mut records, mut rows) = (0, 0);
        for step in steps {
            let frame = batch.frame(step);
            for record in frame.records_of(&step.run) {
                if record.ordinal > self.failed.load(Ordering::Relaxed) {
                    break;
                }
                match (self.redo)(frame, &record) {
                    Ok(written) => (records, rows) = (records + 1, rows + written),
                    Err(error) => self.fail(record.ordinal, error),
                }
            }
        }
        self.records.fetch_add(records, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_max(batch.end_bytes, Ordering::Relaxed);
    }

    fn fail(&self, ordinal: u64, error: SqlError) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|(first, _)| ordinal < *first) {
            *failure = Some((ordinal, error));
            self.failed.store(ordinal, Ordering::Relaxed);
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != u64::MAX
    }
}

/// Says who does what.
struct Dispatcher<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    work: &'env ReplayState<'env>,
    /// How many there are to be; with one, the dispatcher itself is the one.
    workers: usize,
    /// Once there was much to do.
    crew: Option<Crew<'scope>>,
}

impl Dispatcher<'_, '_> {
    /// Has a batch done; perhaps it is only on its way then.
    fn dispatch(&mut self, batch: &Arc<Batch>) {
        if self.workers <= 1 {
            return self.work.run(batch, &batch.steps);
        }
        let mut from = 0;
        for (at, step) in batch.steps.iter().enumerate() {
            if step.run.crossing {
                self.stretch(batch, from..at);
                self.wait();
                if self.work.has_failed() {
                    return;
                }
                self.work.run(batch, &batch.steps[at..=at]);
                from = at + 1;
            }
        }
        self.stretch(batch, from..batch.steps.len());
    }

    /// Has what stands between two crossing records done.
    fn stretch(&mut self, batch: &Arc<Batch>, steps: Range<usize>) {
        let is_idle = self.crew.as_ref().is_none_or(Crew::is_idle);
        let bytes: u64 = batch.steps[steps.clone()].iter().map(|step| step.run.bytes()).sum();
        if is_idle && bytes < ALONE_BYTES {
            return self.work.run(batch, &batch.steps[steps]);
        }
        let crew = self.crew.get_or_insert_with(|| Crew::start(self.scope, self.work, self.workers));
        match crew.is_empty() {
            true => self.work.run(batch, &batch.steps[steps]),
            false => crew.hand_over(batch, &batch.steps[steps]),
        }
    }

    /// Waits until nobody has anything to do.
    fn wait(&self) {
        if let Some(crew) = &self.crew {
            crew.wait();
        }
    }
}
