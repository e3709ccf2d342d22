//! How long updates of a hot table wait while another thread waits for rows in files.
//!
//! One thread updates rows of a small table by their keys, all the time. Another reads, from time to time, a row of each
//! chunk of a table whose chunks have all left memory: each read has its chunk fetched. Both are in one partition. What is
//! measured is updates during these reads, and in as long a time in which the other thread sleeps. Between these, chunks
//! leave again, and the page cache forgets the files: that is not measured. The longest update counts less the time for
//! which the host of a virtual machine stopped its thread: alone too, some were stopped for 28 ms.

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

/// How long updates took.
#[derive(Default)]
struct Taken {
    alone: (Durations, Longest),
    beside: (Durations, Longest),
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
            let [alone, beside] = [taken.alone, taken.beside].map(|(durations, longest)| {
                let longest_us = longest.less_host_ns as f64 / 1e3;
                (durations.quantiles(1_000), durations.count(), longest_us)
            });
            (times.alone, times.updates_alone, times.alone_less_host_us) = alone;
            (times.beside, times.updates_beside, times.beside_less_host_us) = beside;
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

/// Updates rows of the hot table until it is over.
fn update(db: &Database, clock: &Clock, period: &Period, is_over: &AtomicBool) -> Result<Taken, SqlError> {
    let (connection, mut taken, mut state) = (db.connect(), Taken::default(), 1_u64);
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
        let mut measured = match (period.now() == of, of & 3) {
            (true, kind) if kind == Kind::Alone as u64 => Some(&mut taken.alone),
            (true, kind) if kind == Kind::Beside as u64 => Some(&mut taken.beside),
            _ => None,
        };
        if let Some((durations, _)) = &mut measured {
            durations.record(took);
        }
        waits.record(took, measured.map(|(_, longest)| longest));
    }
    Ok(taken)
}
