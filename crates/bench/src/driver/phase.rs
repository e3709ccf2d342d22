//! One phase: threads that run transactions, threads that run queries, and the one that watches.
//!
//! I-1 A transaction counts if it ended while the phase was measured; a query also if it is the first
//! run of its kind, for which the last phase goes on when its time is over. I-2 When [`Phase::run`]
//! returns, all its threads have ended. I-3 The first failure stops everything and is kept. I-4 A phase of so
//! many transactions (`Config::transactions`) runs just these, all of them measured; of the last phase, half
//! before the snapshot of the check and half after it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo_env::thread::{Scope, ScopedJoinHandle};
use parking_lot::Mutex;

use super::in_flight::{InFlight, Started};
use super::{BenchmarkRun, Failure, Outcome, Snapshot, during};
use crate::ch::queries::Query;
use crate::latency::{Durations, round};
use crate::report::{Oltp, QueryReport};
use crate::tpcc::DISTRICTS;
use crate::tpcc::input::{Inputs, Kind};
use crate::tpcc::random::Random;

/// Transactions handed to a worker at once.
const BATCH: usize = 64;
/// The longest warm-up; a tenth of the measured time if that is shorter.
const LONGEST_WARM_UP: Duration = Duration::from_secs(1);
/// How long transactions go on under the snapshot of the check; never longer than was measured.
const LONGEST_OVERLAP: Duration = Duration::from_millis(250);
/// How often the watching thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often threads look that wait for each other.
const WAIT_EVERY: Duration = Duration::from_millis(1);

/// When a phase runs and how long.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Which of the run's phases it is, from 0; decides its inputs.
    pub(super) number: usize,
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
    /// Time of the phases before it, and of all together: what the progress bar shows.
    pub(super) before: Duration,
    pub(super) total: Duration,
}

impl Span {
    /// Phase `number`, told of by itself.
    pub(super) fn single(number: usize, measured: Duration) -> Self {
        let warm_up = (measured / 10).min(LONGEST_WARM_UP);
        Self { number, warm_up, measured, before: Duration::ZERO, total: warm_up + measured }
    }
}

/// A phase before and while it runs.
pub(super) struct Phase<'a> {
    run: &'a BenchmarkRun<'a>,
    span: Span,
    queries: &'a [Query],
    /// Which of them have been answered, in this phase or one before; `queries` in their order.
    answered: &'a [AtomicBool],
    /// Snapshots to take without querying them.
    snapshots_per_second: u32,
    begin_ns: u64,
    measured_from_ns: u64,
    measured_to_ns: u64,
    /// Ends streams after their current query.
    stop_queries: AtomicBool,
    /// Ends workers after their current batch.
    stop_transactions: AtomicBool,
    /// Transactions ended so far, for the progress bar and for phases of so many transactions.
    ended: AtomicU64,
    /// How many transactions a worker of a phase of so many may run by now.
    allowed: AtomicU64,
    /// Whether the phase is over but for the first answers to queries and the snapshot of the check.
    is_over: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// What a phase leaves behind.
pub(super) struct Finished<'a> {
    pub(super) oltp: OltpTally,
    /// Taken under load for the check.
    pub(super) snapshot: Option<Box<dyn Snapshot + 'a>>,
    pub(super) failure: Option<Failure>,
}

/// What one worker counted.
#[derive(Default)]
struct WorkerTally {
    committed: u64,
    rolled_back: u64,
    new_orders: u64,
    latencies: Durations,
    /// Transactions of measured batches, and the thread's processor time for them, which includes
    /// making inputs and counting.
    metered: u64,
    cpu_ns: u64,
}

/// What the workers of one phase or several counted together.
#[derive(Default)]
pub(super) struct OltpTally {
    sum: WorkerTally,
    measured_ns: u64,
    /// Transactions per second of each phase.
    rates: Vec<f64>,
}

/// A stream of queries: where it is, which goes on from phase to phase, and what it counted.
pub(super) struct Stream {
    next: usize,
    random: Random,
    tally: StreamTally,
}

/// What one stream counted, or all together.
#[derive(Default)]
pub(super) struct StreamTally {
    pub(super) freshness: Durations,
    pub(super) by_query: Vec<QueryTally>,
}

/// Runs of one query.
#[derive(Clone)]
pub(super) struct QueryTally {
    name: &'static str,
    times: Durations,
    planning: Durations,
    rows: Option<u64>,
}

impl<'a> Phase<'a> {
    /// A phase that begins now, without queries.
    pub(super) fn new(run: &'a BenchmarkRun<'a>, span: Span) -> Self {
        let begin_ns = run.clock.now();
        let is_timed = run.config.transactions.is_none();
        let measured_from_ns = if is_timed { begin_ns + span.warm_up.as_nanos() as u64 } else { begin_ns };
        let measured_to_ns =
            if is_timed { measured_from_ns + span.measured.as_nanos() as u64 } else { u64::MAX };
        Self {
            run,
            span,
            queries: &[],
            answered: &[],
            snapshots_per_second: 0,
            begin_ns,
            measured_from_ns,
            measured_to_ns,
            stop_queries: AtomicBool::new(false),
            stop_transactions: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            allowed: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// The phase with streams of `queries`.
    pub(super) fn with_queries(self, queries: &'a [Query], answered: &'a [AtomicBool]) -> Self {
        Self { queries, answered, ..self }
    }

    /// The phase with so many snapshots a second.
    pub(super) fn with_snapshots(self, per_second: u32) -> Self {
        Self { snapshots_per_second: per_second, ..self }
    }

    /// Runs the phase to its end. If it `is_last`, it waits for the first answer to every query and takes
    /// the snapshot for the check.
    pub(super) fn run(&self, name: &str, streams: &mut [Stream], is_last: bool) -> Finished<'a> {
        let homes = self.homes();
        let working = homes.iter().filter(|homes| !homes.is_empty()).count() as u64;
        let count = self.run.config.transactions;
        // Those before the phase's end, as far as the snapshot of the check is concerned.
        let first = count.map(|count| if is_last { count / 2 } else { count });
        if self.snapshots_per_second == 0 || count.is_none() {
            self.allow(first);
        }
        let (workers, snapshot, end_ns) = albireo_env::scope(|scope| {
            let workers = homes.iter().enumerate().filter(|(_, homes)| !homes.is_empty());
            let workers: Vec<_> = workers
                .filter_map(|(partition, homes)| {
                    self.start(scope, "transactions", move || self.work(partition as u16, homes))
                })
                .collect();
            let streams: Vec<_> = streams
                .iter_mut()
                .filter_map(|stream| self.start(scope, "queries", || self.stream(stream)))
                .collect();
            let snapshots = (self.snapshots_per_second > 0)
                .then(|| self.start(scope, "snapshots", move || self.take_snapshots(first)))
                .flatten();
            let end_ns = self.watch(name, first.map(|first| first * working));
            self.is_over.store(true, Ordering::Relaxed);
            if is_last {
                self.wait_for_answers(name);
            }
            self.stop_queries.store(true, Ordering::Relaxed);
            let snapshot = if is_last { self.snapshot_under_load() } else { None };
            self.allow(count);
            let goes_on = count.is_some() && !self.run.cancel.is_cancelled();
            self.stop_transactions.fetch_or(!goes_on, Ordering::Relaxed);
            self.join(snapshots.into_iter().collect());
            self.join(streams);
            let workers = self.join(workers);
            (workers, snapshot, if goes_on { self.run.clock.now() } else { end_ns })
        });
        Finished { oltp: self.oltp(&workers, end_ns), snapshot, failure: self.failure.lock().take() }
    }

    /// Lets workers of a phase of so many transactions run `first` of them.
    fn allow(&self, first: Option<u64>) {
        self.allowed.fetch_max(first.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many transactions a worker that has run `done` runs next; nothing if it is to end.
    fn next_batch(&self, done: u64) -> Option<usize> {
        let left = self.run.config.transactions.map_or(u64::MAX, |count| count - done);
        loop {
            if left == 0 || self.stop_transactions.load(Ordering::Relaxed) || self.run.cancel.is_cancelled() {
                return None;
            }
            match self.allowed.load(Ordering::Relaxed).saturating_sub(done) {
                0 => self.run.clock.sleep(WAIT_EVERY),
                allowed => return Some(allowed.min(left).min(BATCH as u64) as usize),
            }
        }
    }

    /// The warehouses of each partition.
    fn homes(&self) -> Vec<Vec<i16>> {
        let config = self.run.config;
        let mut homes = vec![Vec::new(); config.partitions.into()];
        for w_id in 1..=config.warehouses {
            let partition = self.run.target.partition_of(w_id);
            assert!(partition < config.partitions, "warehouse {w_id} is in partition {partition}");
            homes[usize::from(partition)].push(w_id);
        }
        homes
    }

    /// Starts a thread; one that cannot be started is the phase's failure.
    fn start<'scope, T: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        job: impl FnOnce() -> Result<T, Failure> + Send + 'scope,
    ) -> Option<ScopedJoinHandle<'scope, Result<T, Failure>>> {
        let started: io::Result<_> = albireo_env::spawn_scoped(scope, name, job);
        started.map_err(|error| self.fail(format!("starting a thread: {error}"))).ok()
    }

    /// Waits for threads; failed ones count nothing.
    fn join<T>(&self, threads: Vec<ScopedJoinHandle<'_, Result<T, Failure>>>) -> Vec<T> {
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                self.fail("a thread of the benchmark panicked".into());
                Err(String::new())
            })
        });
        joined.filter_map(Result::ok).collect()
    }

    /// Keeps the first failure and stops everything.
    fn fail(&self, failure: Failure) -> Failure {
        self.failure.lock().get_or_insert_with(|| failure.clone());
        self.stop_queries.store(true, Ordering::Relaxed);
        self.stop_transactions.store(true, Ordering::Relaxed);
        failure
    }

    /// Shows progress until the phase is over, that is `count` transactions have ended or its time has,
    /// cancelled or failed; returns when that was.
    fn watch(&self, name: &str, count: Option<u64>) -> u64 {
        let BenchmarkRun { clock, observer, cancel, .. } = self.run;
        let (mut before, mut ended_before) = (self.begin_ns, 0);
        loop {
            let now = clock.now();
            let is_over = count.map_or(now >= self.measured_to_ns, |count| ended_before >= count);
            if is_over || self.stop_transactions.load(Ordering::Relaxed) || cancel.is_cancelled() {
                return now;
            }
            let look_every = if count.is_some() { WAIT_EVERY } else { LOOK_EVERY };
            clock.sleep(look_every.min(Duration::from_nanos(self.measured_to_ns - now)));
            let (now, ended) = (clock.now(), self.ended.load(Ordering::Relaxed));
            let rate = (ended - ended_before) as f64 * 1e9 / (now - before).max(1) as f64;
            (before, ended_before) = (now, ended);
            let elapsed = self.span.before + Duration::from_nanos(now - self.begin_ns);
            observer.running(name, elapsed.min(self.span.total), self.span.total, rate);
        }
    }

    /// Waits until every query has been answered once, the phase is cancelled or failed.
    fn wait_for_answers(&self, name: &str) {
        let BenchmarkRun { clock, observer, cancel, .. } = self.run;
        let total = self.span.total;
        while self.answered.iter().any(|answered| !answered.load(Ordering::Relaxed)) {
            if cancel.is_cancelled() || self.stop_transactions.load(Ordering::Relaxed) {
                return;
            }
            observer.running(&format!("{name}, last ones"), total, total, 0.0);
            clock.sleep(LOOK_EVERY);
        }
    }

    /// Takes a snapshot and lets transactions change what it sees for a while.
    fn snapshot_under_load(&self) -> Option<Box<dyn Snapshot + 'a>> {
        if self.run.cancel.is_cancelled() || self.stop_transactions.load(Ordering::Relaxed) {
            return None;
        }
        let snapshot = self.run.target.snapshot().map_err(during("taking a snapshot under load"));
        let snapshot = snapshot.map_err(|failure| self.fail(failure)).ok()?;
        if self.run.config.transactions.is_none() {
            self.run.clock.sleep(LONGEST_OVERLAP.min(self.run.config.duration));
        }
        Some(snapshot)
    }

    fn is_measured(&self, now_ns: u64) -> bool {
        (self.measured_from_ns..self.measured_to_ns).contains(&now_ns)
    }

    /// Runs transactions for the terminals at `homes` until told to stop.
    fn work(&self, partition: u16, homes: &[i16]) -> Result<WorkerTally, Failure> {
        let BenchmarkRun { config, target, clock, .. } = *self.run;
        let stream = (self.span.number as u64) << 32 | u64::from(partition);
        let mut inputs = Inputs::new(config.mix, config.scale, config.warehouses, homes, config.seed, stream);
        let mut tally = WorkerTally::default();
        let fail = |error| self.fail(during("running transactions")(error));
        let mut worker = target.worker(partition).map_err(fail)?;
        let mut batch = Vec::with_capacity(BATCH);
        let mut in_flight = InFlight::new(target, clock, config.in_flight);
        let mut cpu_before = albireo_env::cpu_time_ns();
        let mut done = 0;
        while let Some(next) = self.next_batch(done) {
            done += next as u64;
            batch.clear();
            batch.extend(std::iter::repeat_with(|| inputs.next_transaction()).take(next));
            let mut kinds = batch.iter().map(|transaction| transaction.kind());
            let mut last = clock.now();
            let mut count = |started: Started, now| self.count(&mut tally, &started, now);
            let mut ended = |outcome, receipt| {
                let now = clock.now();
                let kind = kinds.next().expect("one end for each transaction");
                in_flight.add(Started::new(kind, outcome, last, receipt), now, &mut count)?;
                // Whoever waited for the disk has not waited for the next transaction.
                last = if in_flight.is_empty() { now } else { clock.now() };
                Ok(())
            };
            worker.run(&batch, &mut ended).map_err(fail)?;
            assert_eq!(kinds.next(), None, "a transaction has not ended");
            self.ended.fetch_add(next as u64, Ordering::Relaxed);
            let cpu = albireo_env::cpu_time_ns();
            if self.is_measured(last) {
                tally.metered += next as u64;
                tally.cpu_ns += cpu - cpu_before;
            }
            cpu_before = cpu;
        }
        in_flight.finish(&mut |started, now| self.count(&mut tally, &started, now)).map_err(fail)?;
        Ok(tally)
    }

    fn count(&self, tally: &mut WorkerTally, started: &Started, now_ns: u64) {
        if self.is_measured(now_ns) {
            tally.record(started.kind, started.outcome, now_ns - started.began_ns);
        }
    }

    /// Goes on with the queries of `stream`, each on a fresh snapshot, until told to stop.
    fn stream(&self, stream: &mut Stream) -> Result<(), Failure> {
        let BenchmarkRun { config, cancel, .. } = self.run;
        while !self.stop_queries.load(Ordering::Relaxed) && !cancel.is_cancelled() {
            let i = stream.next;
            stream.next = (i + 1) % self.queries.len();
            let is_over = self.is_over.load(Ordering::Relaxed) || self.run.clock.now() >= self.measured_to_ns;
            if is_over && self.answered[i].load(Ordering::Relaxed) {
                self.run.clock.sleep(Duration::from_millis(1));
                continue;
            }
            let highest = [config.warehouses.into(), DISTRICTS.into()];
            let parameters = highest.map(|highest| stream.random.uniform(1, highest) as i16);
            self.ask(i, &parameters, &mut stream.tally).map_err(|failure| self.fail(failure))?;
        }
        Ok(())
    }

    /// Takes snapshots at the phase's rate, each in place of the one before, until told to stop. Transactions
    /// of a phase of so many begin, with `first`, when there is one.
    fn take_snapshots(&self, first: Option<u64>) -> Result<(), Failure> {
        let BenchmarkRun { target, clock, cancel, .. } = self.run;
        let period_ns = 1_000_000_000 / u64::from(self.snapshots_per_second);
        let (mut held, mut next_ns) = (None, clock.now());
        while !self.stop_queries.load(Ordering::Relaxed) && !cancel.is_cancelled() {
            let now = clock.now();
            if now < next_ns {
                clock.sleep(LOOK_EVERY.min(Duration::from_nanos(next_ns - now)));
                continue;
            }
            next_ns = now.max(next_ns + period_ns);
            drop(held.take());
            let taken = target.snapshot().map_err(during("taking a snapshot"));
            held = Some(taken.map_err(|failure| self.fail(failure))?);
            self.allow(first);
        }
        Ok(())
    }

    /// Takes a snapshot, runs one query on it and counts both.
    fn ask(&self, i: usize, parameters: &[i16], tally: &mut StreamTally) -> Result<(), Failure> {
        let query = &self.queries[i];
        let asked = self.run.clock.now();
        let snapshot = self.run.target.snapshot_for(query);
        let mut snapshot = snapshot.map_err(during("taking a snapshot for a query"))?;
        let answer = snapshot.query(query, &parameters[..query.parameters]).map_err(during(query.name))?;
        let (answered, age_ns) = (self.run.clock.now(), snapshot.age_ns());
        let is_first = !self.answered[i].swap(true, Ordering::Relaxed);
        if is_first || self.is_measured(answered) {
            tally.freshness.record(age_ns);
            let tally = &mut tally.by_query[i];
            tally.times.record(answered - asked);
            tally.planning.record(answer.planning_ns);
            tally.rows = Some(answer.rows);
        }
        Ok(())
    }

    /// All workers' figures; `end_ns` is when the phase ended, perhaps too early.
    fn oltp(&self, workers: &[WorkerTally], end_ns: u64) -> OltpTally {
        let mut sum = WorkerTally::default();
        workers.iter().for_each(|worker| sum.merge(worker));
        let measured_ns = end_ns.min(self.measured_to_ns).saturating_sub(self.measured_from_ns);
        let rates = vec![per_second(sum.ended(), measured_ns)];
        OltpTally { sum, measured_ns, rates }
    }
}

/// How many a second `count` in `ns` nanoseconds are.
fn per_second(count: u64, ns: u64) -> f64 {
    round(count as f64 * 1e9 / ns.max(1) as f64)
}

impl OltpTally {
    /// Adds another phase.
    pub(super) fn merge(&mut self, other: Self) {
        self.sum.merge(&other.sum);
        self.measured_ns += other.measured_ns;
        self.rates.extend(other.rates);
    }

    /// The entry in the report.
    pub(super) fn report(&self) -> Oltp {
        let Self { sum, measured_ns, rates } = self;
        Oltp {
            seconds: round(*measured_ns as f64 / 1e9),
            transactions_per_second: per_second(sum.ended(), *measured_ns),
            transactions_per_cpu_second: per_second(sum.metered, sum.cpu_ns),
            new_orders_per_second: per_second(sum.new_orders, *measured_ns),
            turns: rates.clone(),
            committed: sum.committed,
            rolled_back: sum.rolled_back,
            latency_us: sum.latencies.quantiles(1_000),
        }
    }
}

impl WorkerTally {
    fn record(&mut self, kind: Kind, outcome: Outcome, latency_ns: u64) {
        match outcome {
            Outcome::Committed => self.committed += 1,
            Outcome::RolledBack => self.rolled_back += 1,
        }
        self.new_orders += u64::from(kind == Kind::NewOrder);
        self.latencies.record(latency_ns);
    }

    /// Transactions that ended while they were measured.
    fn ended(&self) -> u64 {
        self.committed + self.rolled_back
    }

    fn merge(&mut self, other: &Self) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.new_orders += other.new_orders;
        self.latencies.merge(&other.latencies);
        self.metered += other.metered;
        self.cpu_ns += other.cpu_ns;
    }
}

impl Stream {
    /// Streams 0 to `count` of `queries`, which begin at different ones.
    pub(super) fn all(count: usize, queries: &[Query], seed: u64) -> Vec<Self> {
        let stream = |stream: usize| Self {
            next: stream % queries.len(),
            random: Random::stream(seed, &[u64::from_be_bytes(*b"queries "), stream as u64]),
            tally: StreamTally::new(queries),
        };
        (0..count).map(stream).collect()
    }
}

impl StreamTally {
    fn new(queries: &[Query]) -> Self {
        let tally = |query: &Query| QueryTally {
            name: query.name,
            times: Durations::default(),
            planning: Durations::default(),
            rows: None,
        };
        Self { by_query: queries.iter().map(tally).collect(), ..Self::default() }
    }

    /// The figures of all `streams`.
    pub(super) fn of(queries: &[Query], streams: &[Stream]) -> Self {
        let mut sum = Self::new(queries);
        for Stream { tally, .. } in streams {
            sum.freshness.merge(&tally.freshness);
            for (sum, query) in sum.by_query.iter_mut().zip(&tally.by_query) {
                sum.times.merge(&query.times);
                sum.planning.merge(&query.planning);
                sum.rows = query.rows.or(sum.rows);
            }
        }
        sum
    }
}

impl QueryTally {
    /// The query's entry in the report.
    pub(super) fn report(&self) -> QueryReport {
        let times = self.times.quantiles(1_000_000);
        QueryReport {
            name: self.name.to_owned(),
            runs: self.times.count(),
            median_ms: times.map(|times| times.p50),
            p99_ms: times.map(|times| times.p99),
            planning_ms: self.planning.quantiles(1_000_000).map(|planning| planning.p50),
            rows: self.rows,
        }
    }
}
