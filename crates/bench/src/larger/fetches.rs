//! How long updates of a hot table wait while another thread waits for rows in files.
//!
//! One thread updates rows of a small table by their keys, all the time. Another reads, from time to time, a row of each
//! chunk of a table whose chunks have all left memory: each read has its chunk fetched. Both are in one partition. What is
//! measured is updates during these reads, and in as long a time in which the other thread sleeps. Between these, chunks
//! leave again, and the page cache forgets the files: that is not measured.
//!
//! Alone too, the longest update is what the machine makes of it: threads of other processes and of the kernel took the core
//! for up to 4 ms, once in a second or so, and the host of the virtual machine stopped it for up to 28. So what these took is
//! taken off where it is known ([`crate::waits`]), and it is told turn by turn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Connection, Database, Outcome, SqlError};
use albireo_base::ids::CHUNK_ROWS;
use albireo_env::Clock;

use super::report::FetchTimes;
use super::{Bench, Experiment, chunk_counts, no_thread, wrong};
use crate::latency::Durations;
use crate::waits::{Longest, Waits};

const TABLES: &str = "CREATE TABLE hot (id BIGINT PRIMARY KEY, hits BIGINT NOT NULL);
                      CREATE TABLE cold (id BIGINT PRIMARY KEY, t TEXT NOT NULL)";
const HOT_ROWS: u64 = 10_000;
const POINT: &str = "UPDATE hot SET hits = hits + 1 WHERE id = $1";
const READ: &str = "SELECT t FROM cold WHERE id = $1";
/// Times that all chunks are fetched, for each turn.
const ROUNDS: usize = 4;
/// What was done before is over then: threads that queries used take cores for some milliseconds.
const SETTLES: Duration = Duration::from_millis(10);
/// Texts that no encoding makes short.
const TEXT: &str = "md5(g::text) || md5((g * 7)::text)";

/// What is measured now. Each change makes it another number, of which the last two bits say what it is.
#[derive(Default)]
struct Period(AtomicU64);

/// One kind of period; nothing is measured in between.
#[derive(Clone, Copy)]
enum Kind {
    Between = 0,
    Alone = 1,
    Beside = 2,
}

impl Period {
    fn begin(&self, kind: Kind) {
        let before = self.0.load(Ordering::Relaxed) >> 2;
        self.0.store((before + 1) << 2 | kind as u64, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// How long updates took in periods of one kind.
#[derive(Default)]
struct Taken {
    durations: Durations,
    /// Of each period, which has a number.
    longest: Vec<(u64, Longest)>,
}

impl Taken {
    fn record(&mut self, period: u64, took_ns: u64) -> &mut Longest {
        self.durations.record(took_ns);
        if self.longest.last().is_none_or(|(number, _)| *number != period) {
            self.longest.push((period, Longest::default()));
        }
        &mut self.longest.last_mut().expect("one was added").1
    }

    /// The longest of each turn, less what the host and other processes took, in microseconds.
    fn longest_us(&self) -> Vec<f64> {
        let longest = |turn: &[(u64, Longest)]| turn.iter().map(|(_, longest)| longest.less_others_ns).max();
        self.longest.chunks(ROUNDS).filter_map(longest).map(|ns| ns as f64 / 1e3).collect()
    }
}

impl Bench<'_> {
    /// Updates alone and beside fetches, in turns.
    pub(super) fn fetches(&self) -> Result<FetchTimes, SqlError> {
        let cold = self.cold("fetches");
        self.observer.running(Experiment::Fetches.name(), Duration::ZERO, Duration::ZERO, 0.0);
        let workload = self.workload(&cold);
        let db = Database::in_memory(albireo::Config { partitions: 1, ..workload.database })?;
        db.execute(TABLES)?;
        db.execute(&format!("INSERT INTO hot SELECT g, 0 FROM generate_series(0, {HOT_ROWS} - 1) s (g)"))?;
        let rows = self.config.chunks * CHUNK_ROWS as u64;
        db.execute(&format!("INSERT INTO cold SELECT g, {TEXT} FROM generate_series(0, {rows} - 1) s (g)"))?;
        db.execute("CALL albireo.freeze('cold')")?;
        let (period, is_over) = (Period::default(), AtomicBool::new(false));
        let mut times = FetchTimes::default();
        albireo_env::scope(|scope| {
            let clock = &self.env.clock;
            let updates = || update(&db, clock, &period, &is_over);
            let updates =
                albireo_env::spawn_scoped(scope, "updates", updates).map_err(|error| no_thread(&error))?;
            let done = self.rounds(&db, &cold, &period, &mut times);
            is_over.store(true, Ordering::Relaxed);
            let taken = updates.join().expect("the updates do not panic");
            done?;
            let taken = taken?;
            let [alone, beside] = taken
                .map(|taken| (taken.durations.quantiles(1_000), taken.durations.count(), taken.longest_us()));
            (times.alone, times.updates_alone, times.alone_longest_us) = alone;
            (times.beside, times.updates_beside, times.beside_longest_us) = beside;
            Ok(times)
        })
    }

    fn rounds(
        &self,
        db: &Database,
        cold: &std::path::Path,
        period: &Period,
        times: &mut FetchTimes,
    ) -> Result<(), SqlError> {
        let (connection, mut durations) = (db.connect(), Durations::default());
        // The first is not measured: it tells how long to sleep.
        let mut took = self.round(db, &connection, cold, |_| {}, &mut Durations::default())?;
        for round in 0..ROUNDS * self.config.turns {
            if self.cancel.is_cancelled() {
                break;
            }
            let alone = |took: Duration| {
                self.env.clock.sleep(SETTLES);
                period.begin(Kind::Alone);
                self.env.clock.sleep(took);
                period.begin(Kind::Between);
            };
            if round % 2 == 0 {
                alone(took);
            }
            let kind =
                |is_measured: bool| period.begin(if is_measured { Kind::Beside } else { Kind::Between });
            took = self.round(db, &connection, cold, kind, &mut durations)?;
            if round % 2 == 1 {
                alone(took);
            }
            times.seconds += took.as_secs_f64();
            times.fetches += self.config.chunks;
        }
        times.fetch_us = durations.quantiles(1_000);
        Ok(())
    }

    /// Has all chunks leave memory, and a row of each be read.
    fn round(
        &self,
        db: &Database,
        connection: &Connection,
        cold: &std::path::Path,
        measures: impl Fn(bool),
        durations: &mut Durations,
    ) -> Result<Duration, SqlError> {
        let clock = &self.env.clock;
        db.evict_frozen();
        self.forget_files(cold)?;
        let (_, _, away) = chunk_counts(db, &["cold"])?;
        if away < self.config.chunks {
            return Err(wrong(format!("{away} chunks have left memory, not {}", self.config.chunks)));
        }
        clock.sleep(SETTLES);
        let start = clock.now();
        measures(true);
        for chunk in 0..self.config.chunks {
            // Somewhere in it.
            let row = chunk * CHUNK_ROWS as u64 + chunk * 7_919 % CHUNK_ROWS as u64;
            let before = clock.now();
            let result = connection.query(READ, &[(row as i64).into()])?;
            durations.record(clock.now() - before);
            if result.row_count() != 1 {
                return Err(wrong(format!("row {row} is not there")));
            }
        }
        measures(false);
        let took = Duration::from_nanos(clock.now() - start);
        let (_, _, still_away) = chunk_counts(db, &["cold"])?;
        if still_away != 0 {
            return Err(wrong(format!(
                "{still_away} chunks were not fetched, although a row of each was read"
            )));
        }
        Ok(took)
    }
}

/// Updates rows of the hot table until it is over; how long they took alone, and beside fetches.
fn update(
    db: &Database,
    clock: &Clock,
    period: &Period,
    is_over: &AtomicBool,
) -> Result<[Taken; 2], SqlError> {
    let (connection, mut state) = (db.connect(), 1_u64);
    let [mut alone, mut beside] = <[Taken; 2]>::default();
    let mut waits = Waits::new(clock);
    while !is_over.load(Ordering::Relaxed) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = ((state >> 33) % HOT_ROWS) as i64;
        let (of, before) = (period.now(), clock.now());
        match connection.execute_with(POINT, &[id.into()])? {
            Outcome::Done { rows: 1, .. } => {}
            other => return Err(wrong(format!("{other:?}"))),
        }
        let took = clock.now() - before;
        // One that began or ended outside does not count.
        let longest = match (period.now() == of, of & 3) {
            (true, kind) if kind == Kind::Alone as u64 => Some(alone.record(of, took)),
            (true, kind) if kind == Kind::Beside as u64 => Some(beside.record(of, took)),
            _ => None,
        };
        waits.record(took, longest);
    }
    Ok([alone, beside])
}
