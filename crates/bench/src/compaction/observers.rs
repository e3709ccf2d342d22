//! What it costs to observe what transactions read.

mod compared;
mod marks;

use albireo::{Config as Settings, Database, ShortKey, SqlError, SqlState};
use rustix::fs::{Mode, OFlags, open};

use super::Bench;
use super::report::{InTurns, Marks, Observers};
use crate::config::{Config, Procedures};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::input::{Inputs, Transaction};
use crate::tpcc::random::Random;
use crate::tpcc::rows::Timestamp;

/// Transactions between two looks at the clock.
const BATCH: usize = 64;
/// Entries, and reads of these, as in the paper; the first for each customer of a district.
const ENTRIES_A_CUSTOMER: i64 = 3_334;
const READS: usize = 100_000;
/// Measured pairs of each turn: what is compared differs by less than the machine from one second to the next.
const PAIRS: usize = 4;

/// TPC-C with or without an observer.
struct Observed {
    target: Albireo,
    inputs: Inputs,
}

impl Bench<'_> {
    /// The default observer against none: TPC-C, in processor time, and reads of random entries; and what the processor
    /// marks, which the system gives by area of memory.
    pub(super) fn observers(&self) -> Result<Observers, SqlError> {
        let mut observers = Observers {
            transaction_ns: InTurns::default(),
            entries: 0,
            reads_ms: InTurns::default(),
            marks: None,
        };
        self.observed_transactions(&mut observers.transaction_ns)?;
        self.observed_reads(&mut observers)?;
        Ok(observers)
    }

    /// Both databases run the same transactions, in turns.
    fn observed_transactions(&self, times: &mut InTurns) -> Result<(), SqlError> {
        let (mut without, mut with) = (self.observed(false)?, self.observed(true)?);
        let (clock, duration) = (&self.env.clock, self.config.workload.duration.as_nanos() as u64 / 8);
        let (start, mut count) = (clock.now(), 0);
        while clock.now() - start < duration {
            without.run(BATCH)?;
            count += BATCH;
        }
        with.run(count)?;
        for turn in 0..self.config.turns * PAIRS {
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            let (ns_without, ns_with) = if turn % 2 == 0 {
                let first = without.run(count)?;
                (first, with.run(count)?)
            } else {
                let first = with.run(count)?;
                (without.run(count)?, first)
            };
            times.push(ns_without, ns_with);
        }
        Ok(())
    }

    fn observed(&self, observe_reads: bool) -> Result<Observed, SqlError> {
        let workload = &self.config.workload;
        let database = Settings { observe_reads, ..workload.database.clone() };
        let workload = Config { procedures: Procedures::Native, partitions: 1, database, ..workload.clone() };
        let target = Albireo::open(&workload, self.env, self.cancel)?;
        target.take_memory(&workload, &mut |_, _| !self.cancel.is_cancelled());
        let population = workload.population(Timestamp(self.env.clock.unix_us()));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        let homes: Vec<i16> = (1..=workload.warehouses).collect();
        let inputs = Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
        self.show(super::Experiment::Observers);
        Ok(Observed { target, inputs })
    }

    fn observed_reads(&self, observers: &mut Observers) -> Result<(), SqlError> {
        let entries = i64::from(self.config.workload.scale.customers) * ENTRIES_A_CUSTOMER;
        observers.entries = entries as u64;
        let [without, with] = [false, true].map(|observe_reads| {
            let settings = Settings { observe_reads, ..self.config.workload.database.clone() };
            let db = Database::in_memory(settings)?;
            db.execute("CREATE TABLE entry (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)")?;
            let fill =
                format!("INSERT INTO entry SELECT g, g FROM generate_series(0, {}) s (g)", entries - 1);
            db.execute(&fill)?;
            // A look at the tables: what was there is counted from now on.
            db.freeze_if_due()?;
            Ok::<_, SqlError>(db)
        });
        let (without, with) = (without?, with?);
        let mut random = Random::stream(self.config.workload.seed, &[2]);
        for _ in 0..self.config.turns * PAIRS {
            let keys: Vec<i64> =
                (0..READS).map(|_| i64::from(random.uniform(0, entries as i32 - 1))).collect();
            // The first time brings the entries of these keys closer, in both.
            self.read_entries(&without, &keys)?;
            let first = self.read_entries(&without, &keys)?;
            self.read_entries(&with, &keys)?;
            observers.reads_ms.push(first, self.read_entries(&with, &keys)?);
            let Ok(clear_ms) = self.timed_file(OFlags::WRONLY, "/proc/self/clear_refs", &mut [b'1']) else {
                continue;
            };
            let marked_ms = self.read_entries(&without, &keys)?;
            let Ok(look_ms) = self.timed_file(OFlags::RDONLY, "/proc/self/smaps_rollup", &mut [0; 4096])
            else {
                continue;
            };
            let gib = without.memory().in_use_bytes.max(1) as f64 / (1 << 30) as f64;
            let marks = observers.marks.get_or_insert_with(Marks::default);
            marks.reads_ms.push(marked_ms);
            marks.clear_ms.push(clear_ms);
            marks.look_ms.push(look_ms);
            marks.gib = gib + with.memory().in_use_bytes as f64 / (1 << 30) as f64;
        }
        Ok(())
    }

    /// Reads entries by their keys: milliseconds.
    fn read_entries(&self, db: &Database, keys: &[i64]) -> Result<f64, SqlError> {
        db.with_table("entry", |_, table| {
            let (index, value) = (table.index("entry_pkey")?, table.column::<i64>("value")?);
            let start = self.env.clock.now();
            let read =
                |key: &i64| table.find(index, ShortKey::new().i64(*key)).map(|tid| table.get(tid, value));
            let sum: i64 = keys.iter().filter_map(read).sum();
            let ms = (self.env.clock.now() - start) as f64 / 1e6;
            Ok((ms, sum))
        })
        .and_then(|(ms, sum)| match sum == keys.iter().sum::<i64>() {
            true => Ok(ms),
            false => {
                Err(SqlError::new(SqlState::INTERNAL_ERROR, "entries have other values than they were given"))
            }
        })
    }

    /// Reads or writes a file of the system once: milliseconds.
    fn timed_file(&self, flags: OFlags, path: &str, bytes: &mut [u8]) -> rustix::io::Result<f64> {
        let start = self.env.clock.now();
        let file = open(path, flags | OFlags::CLOEXEC, Mode::empty())?;
        match flags {
            OFlags::RDONLY => rustix::io::read(&file, bytes)?,
            _ => rustix::io::write(&file, bytes)?,
        };
        Ok((self.env.clock.now() - start) as f64 / 1e6)
    }
}

impl Observed {
    /// Runs so many transactions: nanoseconds of processor time of each.
    fn run(&mut self, count: usize) -> Result<f64, SqlError> {
        // As whoever looks for cold rows does: chunks are counted that were there.
        self.target.database().freeze_if_due()?;
        let mut worker = self.target.worker(0)?;
        let start = albireo_env::cpu_time_ns();
        let mut left = count;
        while left > 0 {
            let some = left.min(BATCH);
            let batch: Vec<Transaction> =
                std::iter::repeat_with(|| self.inputs.next_transaction()).take(some).collect();
            worker.run(&batch, &mut |_, _| Ok(()))?;
            left -= some;
        }
        Ok((albireo_env::cpu_time_ns() - start) as f64 / count as f64)
    }
}
