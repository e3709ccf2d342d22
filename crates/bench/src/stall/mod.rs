//! How long point transactions wait beside statements of many rows.
//!
//! One thread updates single rows by their keys, one statement after another, while another thread runs a statement
//! over the whole table. What the first one notices is measured: its longest update, and how many it made of those that
//! it makes alone. Both use one table, so that the statement meets rows that were changed since it read them. Where there
//! are more threads than cores, a thread waits for the others' turns, of some milliseconds: that part is told apart. How
//! long the machine itself stops a thread, in as much time as the statement took, is measured after it.
//!
//! Memory is taken from the system before, as by a database that has run for a while, unless new memory is asked for.
//! Where the system has to get each page from the host of a virtual machine, it clears 2 MiB in 4.5 ms, and does not
//! let another thread have the core meanwhile: all longest waits are a little longer than that then.
//!
//! Responsible for: these figures. Not responsible for: whether the statements are right (`engine`); their rows are
//! counted all the same.

mod report;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Config as Settings, Database, Outcome, SqlError};
use albireo_base::SqlState;
use albireo_env::{Clock, Env};

use crate::driver::Cancel;
use crate::latency::Durations;
use crate::progress::Observer;
use crate::waits::{Longest, Waits};

pub use report::{Beside, StallReport};

/// The table: a key, a number that the point updates change and one that the statements do, and a text.
const TABLE: &str = "CREATE TABLE big (id BIGINT PRIMARY KEY, hits BIGINT NOT NULL, v BIGINT NOT NULL, \
                     t TEXT NOT NULL) PARTITION BY HASH (id)";
const POINT: &str = "UPDATE big SET hits = hits + 1 WHERE id = $1";
/// Memory taken ahead for each row: so much of it is in use while a statement makes all of them anew.
const ROW_BYTES: u64 = 400;

/// What is run.
#[derive(Clone, Debug)]
pub struct StallConfig {
    /// Rows of the table.
    pub rows: u64,
    /// Partitions.
    pub partitions: u16,
    /// How long the point updates run before a statement, and are measured alone.
    pub alone: Duration,
    /// Only statements whose names contain this are run.
    pub only: String,
    /// How often all of it is run, each time on a new database. Medians count.
    pub turns: u32,
    /// Whether the database takes memory from the system only as it grows.
    pub new_memory: bool,
    /// A directory for the file that COPY reads.
    pub directory: std::path::PathBuf,
    /// The database.
    pub database: Settings,
}

/// A statement over many rows.
struct Bulk {
    name: &'static str,
    text: String,
    /// Rows that it must report.
    rows: Option<u64>,
    /// What makes it possible again.
    before: Vec<String>,
}

fn statements(config: &StallConfig, file: &Path) -> Vec<Bulk> {
    let (rows, file) = (config.rows, file.display());
    let bulk = |name, text: &str, rows| Bulk { name, text: text.to_owned(), rows, before: Vec::new() };
    // A table that has rows and two indexes: what comes to an empty one needs no index entered.
    let twin = |remainders: &str| {
        let drop = "DROP TABLE IF EXISTS twin".to_owned();
        let fill = format!("INSERT INTO twin SELECT id, 0, v, t FROM big WHERE id % 8 IN ({remainders})");
        let index = "CREATE INDEX twin_by_v ON twin (v)".to_owned();
        vec![drop, TABLE.replace("TABLE big", "TABLE twin"), fill, index]
    };
    let indexed = "CREATE INDEX IF NOT EXISTS big_by_v ON big (v)";
    vec![
        bulk(
            "UPDATE, unindexed, 1 of 1000",
            "UPDATE big SET v = v + 7000 WHERE v % 1000 = 7",
            Some(rows / 1000),
        ),
        bulk("UPDATE of all rows", "UPDATE big SET v = v + 1", Some(rows)),
        bulk(
            "UPDATE of a text",
            "UPDATE big SET t = 'text ' || (id % 1000)::text || ' of some length'",
            Some(rows),
        ),
        bulk("CREATE INDEX", "CREATE INDEX big_by_v ON big (v)", None),
        bulk("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX big_by_id_v ON big USING HASH (id, v)", None),
        Bulk {
            before: twin("1"),
            ..bulk("INSERT ... SELECT", "INSERT INTO twin SELECT id, 0, v, t FROM big WHERE id % 4 = 0", None)
        },
        Bulk { before: twin("1"), ..bulk("COPY FROM", &format!("COPY twin FROM '{file}'"), None) },
        Bulk {
            before: vec![indexed.to_owned()],
            ..bulk("UPDATE of an indexed column", "UPDATE big SET v = v - 1", Some(rows))
        },
        Bulk {
            before: [
                twin("0, 1, 4"),
                vec!["DROP INDEX IF EXISTS big_by_v; DROP INDEX IF EXISTS big_by_id_v".to_owned()],
            ]
            .concat(),
            ..bulk(
                "MERGE",
                "MERGE INTO big USING twin ON big.id = twin.id WHEN MATCHED THEN UPDATE SET v = big.v + twin.v",
                None,
            )
        },
        Bulk {
            before: vec![indexed.to_owned()],
            ..bulk("DELETE of half", "DELETE FROM big WHERE id % 2 = 1", Some(rows / 2))
        },
    ]
}

/// Runs it on databases in memory. The report has whatever was measured.
pub fn run(config: &StallConfig, env: &Env, observer: &dyn Observer, cancel: &Cancel) -> StallReport {
    let mut report = StallReport::new(config.rows, config.partitions);
    let mut turns = 0..config.turns;
    let done = turns.try_for_each(|_| measure(config, env, observer, cancel, &mut report));
    report.interrupted = cancel.is_cancelled();
    report.error = done.err().filter(|_| !report.interrupted).map(|error| error.to_string());
    observer.finished();
    report
}

fn measure(
    config: &StallConfig,
    env: &Env,
    observer: &dyn Observer,
    cancel: &Cancel,
    report: &mut StallReport,
) -> Result<(), SqlError> {
    let settings = Settings { partitions: config.partitions, ..config.database.clone() };
    let db = Database::in_memory(settings)?;
    db.execute(TABLE)?;
    observer.loading(0, config.rows);
    if !config.new_memory {
        db.preallocate(config.rows * ROW_BYTES, |_| !cancel.is_cancelled());
    }
    db.execute(&format!(
        "INSERT INTO big SELECT g, 0, g % 1000, 'text ' || (g % 1000)::text FROM generate_series(0, {} - 1) s (g)",
        config.rows
    ))?;
    observer.loading(config.rows, config.rows);
    let file = config.directory.join(format!("albireo-stall-{}.csv", std::process::id()));
    db.execute(&format!("COPY (SELECT id, 0, v, t FROM big WHERE id % 4 = 0) TO '{}'", file.display()))?;
    let all = statements(config, &file);
    let done = all.iter().filter(|bulk| bulk.name.contains(&config.only)).try_for_each(|bulk| {
        for text in &bulk.before {
            db.execute(text)?;
        }
        if cancel.is_cancelled() {
            return Ok(());
        }
        observer.running(bulk.name, Duration::ZERO, config.alone, 0.0);
        report.beside.push(beside(&db, bulk, config, &env.clock)?);
        Ok(())
    });
    // If it stays, no figure is wrong.
    let _ = env.disk.remove_file(&file);
    done
}

/// What the point updates do, as whoever runs the statement has it.
struct Points<'a> {
    db: &'a Database,
    rows: u64,
    clock: &'a Clock,
    is_over: AtomicBool,
    /// Updates since the statement began.
    made: AtomicU64,
    is_measured: AtomicBool,
}

/// How long updates took.
#[derive(Default)]
struct Taken {
    durations: Durations,
    longest: Longest,
}

impl Points<'_> {
    /// Updates rows until it is over; how long each took while it was measured.
    fn run(&self) -> Result<Taken, SqlError> {
        let (connection, mut taken, mut state) = (self.db.connect(), Taken::default(), 1_u64);
        let mut waits = Waits::new(self.clock);
        let mut before = self.clock.now();
        while !self.is_over.load(Ordering::Relaxed) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = ((state >> 33) % self.rows) as i64;
            match connection.execute_with(POINT, &[id.into()])? {
                // The last statement deletes rows.
                Outcome::Done { rows: 0 | 1, .. } => {}
                other => return Err(SqlError::new(SqlState::INTERNAL_ERROR, format!("{other:?}"))),
            }
            let now = self.clock.now();
            let is_measured = self.is_measured.load(Ordering::Relaxed);
            if is_measured {
                taken.durations.record(now - before);
                self.made.fetch_add(1, Ordering::Relaxed);
            }
            waits.record(now - before, is_measured.then_some(&mut taken.longest));
            before = now;
        }
        Ok(taken)
    }

    /// Lets them run and measures them as long as `work` takes: how many a second, and what it gave.
    fn during<R>(&self, work: impl FnOnce() -> R) -> (f64, Duration, R) {
        self.made.store(0, Ordering::Relaxed);
        self.is_measured.store(true, Ordering::Relaxed);
        let start = self.clock.now();
        let result = work();
        let took = self.clock.now() - start;
        let made = self.made.load(Ordering::Relaxed);
        self.is_measured.store(false, Ordering::Relaxed);
        (made as f64 * 1e9 / took.max(1) as f64, Duration::from_nanos(took), result)
    }
}

/// How long the machine keeps a thread that only reads the clock from its core, beside another one: the longest in
/// `during`, less the time in which it waited for the core. Virtual machines stop all their cores now and then.
fn machine_ns(clock: &Clock, during: Duration) -> u64 {
    let spin = || {
        let (mut waits, mut longest_ns) = (Waits::new(clock), 0);
        let start = clock.now();
        let mut before = start;
        while before - start < during.as_nanos() as u64 {
            let now = clock.now();
            if now - before > longest_ns {
                longest_ns = longest_ns.max((now - before).saturating_sub(waits.since().for_core_ns));
            }
            before = clock.now();
        }
        longest_ns
    };
    albireo_env::scope(|scope| {
        let other = albireo_env::spawn_scoped(scope, "spinning", spin);
        let longest_ns = spin();
        other.map_or(longest_ns, |other| longest_ns.max(other.join().unwrap_or(0)))
    })
}

/// Runs a statement beside point updates.
fn beside(db: &Database, bulk: &Bulk, config: &StallConfig, clock: &Clock) -> Result<Beside, SqlError> {
    let StallConfig { rows, alone, .. } = *config;
    let no_thread =
        |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
    let points = |measured: bool| Points {
        db,
        rows,
        clock,
        is_over: AtomicBool::new(false),
        made: AtomicU64::new(0),
        is_measured: AtomicBool::new(measured),
    };
    let run = |points: &Points<'_>, work: &mut dyn FnMut() -> Result<u64, SqlError>| {
        albireo_env::scope(|scope| {
            let client = albireo_env::spawn_scoped(scope, "points", || points.run()).map_err(no_thread)?;
            clock.sleep(alone / 10);
            let (per_second, took, done) = points.during(work);
            points.is_over.store(true, Ordering::Relaxed);
            let taken = client.join().expect("the point updates do not panic")?;
            Ok::<_, SqlError>((per_second, took, done?, taken))
        })
    };
    let (alone_per_second, _, _, taken_alone) = run(&points(false), &mut || {
        clock.sleep(alone);
        Ok(0)
    })?;
    let (per_second, took, changed, taken) =
        run(&points(false), &mut || match db.execute(&bulk.text)?.pop() {
            Some(Outcome::Done { rows, .. }) => Ok(rows),
            _ => Ok(0),
        })?;
    if let Some(expected) = bulk.rows
        && expected != changed
    {
        let text = format!("{} changed {changed} rows, not {expected}", bulk.name);
        return Err(SqlError::new(SqlState::INTERNAL_ERROR, text));
    }
    Ok(Beside {
        statement: bulk.name,
        rows: changed,
        seconds: took.as_secs_f64(),
        alone_per_second,
        per_second,
        alone_us: taken_alone.durations.quantiles(1000),
        latency_us: taken.durations.quantiles(1000),
        longest_on_core_us: taken.longest.on_core_ns as f64 / 1e3,
        longest_less_others_us: taken.longest.less_others_ns as f64 / 1e3,
        machine_us: machine_ns(clock, took) as f64 / 1e3,
    })
}
