//! TPC-C until its rows take some times the memory that is left for them, against the same with memory for all.
//!
//! ```text
//!  all in memory:  load -- transactions until the rows have their size -- measured -- checks
//!  limited:        load -- as many transactions                        -- measured -- checks
//! ```
//! Indexes do not leave memory, and TPC-C's take nearly half as much as its rows: four times the limit in all, and the
//! indexes alone would exceed it. So the multiple is one of the rows of the tables that grow, as they are while hot: the limit
//! is one part of so many of these, and everything else, that is the indexes and the tables that do not grow. They are taken
//! in the middle of what is measured, from the first run, which has memory for everything.

use std::path::Path;

use albireo::{Database, SqlError};

use super::report::{GrowthRun, Held, LargerReport, Plan};
use super::{Bench, chunk_counts, wrong};
use crate::config::Config;
use crate::driver::{Loading, SystemUnderTest};
use crate::latency::Durations;
use crate::target::Albireo;
use crate::tpcc::consistency;
use crate::tpcc::input::{Inputs, Transaction};
use crate::tpcc::rows::Timestamp;

/// Transactions that the worker gets at once.
const BATCH: u64 = 64;
/// Batches between two looks at the memory.
const LOOKS: u64 = 64;
/// Of the transactions that have it grow, one part of so many is measured then.
const MEASURED: u64 = 8;
/// Parts of the growth whose throughput is told.
pub(super) const PARTS: u64 = 10;
/// The tables that grow.
const GROWING: [&str; 3] = ["order_line", "orders", "history"];
/// The least limit of a database.
const LEAST_LIMIT_BYTES: u64 = 16 << 20;

/// One database while it grows.
pub(super) struct Growing<'a> {
    bench: &'a Bench<'a>,
    target: &'a Albireo,
    inputs: Inputs,
    what: &'static str,
    /// Transactions so far, and those of the whole run if that is known.
    transactions: u64,
    all: Option<u64>,
    /// The most memory in use that was seen.
    most_in_use_bytes: u64,
    /// When it began.
    start: u64,
}

impl Bench<'_> {
    /// Both databases in turns: A B B A.
    pub(super) fn growth(&self, report: &mut LargerReport) -> Result<(), SqlError> {
        for turn in 0..self.config.turns {
            for limited in if turn % 2 == 0 { [false, true] } else { [true, false] } {
                if self.cancel.is_cancelled() {
                    return Ok(());
                }
                let (run, plan) =
                    self.grown(report.plan.as_ref().filter(|_| limited || turn > 0), limited)?;
                report.plan.get_or_insert(plan);
                report.runs.push(run);
            }
        }
        Ok(())
    }

    /// A database that is loaded, and in memory but for what leaves for a directory; with a limit, if one is given.
    pub(super) fn loaded(&self, cold: &Path, limit: Option<u64>) -> Result<(Albireo, Config), SqlError> {
        let mut workload = self.workload(cold);
        if let Some(limit) = limit {
            workload.database.data_limit_bytes = limit;
            workload.database.snapshot_budget_bytes = limit / 5 * 2;
        }
        let target = Albireo::in_memory(&workload, self.cancel)?;
        // So that it is not taken while they are measured; not more than the limit.
        let wanted = self.config.rows_bytes / 4 * 7;
        target.database().preallocate(wanted, |_| !self.cancel.is_cancelled());
        let population = workload.population(Timestamp(self.env.clock.unix_us()));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        self.observer.finished();
        Ok((target, workload))
    }

    /// Both of one database: what it did, and what was planned, or is from now on.
    pub(super) fn grown(&self, plan: Option<&Plan>, limited: bool) -> Result<(GrowthRun, Plan), SqlError> {
        let cold = self.cold("growth");
        let limit = plan.filter(|_| limited).map(|plan| plan.limit_bytes);
        let (target, workload) = self.loaded(&cold, limit)?;
        let what = if limited { "TPC-C, limited" } else { "TPC-C, all in memory" };
        let all = plan.map(|plan| plan.transactions + plan.measured);
        let (mut run, plan) = Growing::new(self, &target, &workload, what, all).run(plan)?;
        run.limited = limited;
        self.observer.finished();
        self.check(&target, &workload)?;
        (run.hot_chunks, run.frozen_chunks, run.evicted_chunks) = chunk_counts(target.database(), &[])?;
        run.file_bytes = self.file_bytes_if_there(&cold)?;
        Ok((run, plan))
    }

    fn file_bytes_if_there(&self, cold: &Path) -> Result<u64, SqlError> {
        match self.env.disk.read_dir(cold) {
            Ok(_) => self.file_bytes(cold),
            Err(_) => Ok(0),
        }
    }

    /// Checks the consistency conditions.
    pub(super) fn check(&self, target: &Albireo, workload: &Config) -> Result<(), SqlError> {
        let mut snapshot = target.snapshot()?;
        for condition in 1..=consistency::COUNT {
            self.observer.checking(condition - 1, consistency::COUNT);
            let violations = snapshot.count(&consistency::violations(condition, workload.scale))?;
            if violations > 0 && !self.cancel.is_cancelled() {
                let text = format!("consistency condition {condition} does not hold, {violations} times");
                return Err(wrong(text));
            }
        }
        self.observer.finished();
        Ok(())
    }
}

/// What a database holds, as people count it.
pub(super) fn held(db: &Database) -> Result<Held, SqlError> {
    let memory = db.memory();
    let of_table = |name: &&str| {
        db.with_table(name, |_, table| {
            let memory = table.memory();
            Ok(memory.blocks_bytes + memory.heaps_bytes + memory.frozen_bytes)
        })
    };
    Ok(Held {
        rows_bytes: memory.rows_bytes + memory.strings_bytes,
        growing_bytes: GROWING.iter().map(of_table).sum::<Result<u64, SqlError>>()?,
        indexes_bytes: memory.indexes_bytes,
        in_use_bytes: memory.in_use_bytes,
    })
}

impl<'a> Growing<'a> {
    /// One that is just loaded; `all` are the transactions of the whole run, if that is known.
    pub(super) fn new(
        bench: &'a Bench<'a>,
        target: &'a Albireo,
        workload: &Config,
        what: &'static str,
        all: Option<u64>,
    ) -> Self {
        let homes: Vec<i16> = (1..=workload.warehouses).collect();
        let inputs = Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
        let start = bench.env.clock.now();
        Self { bench, target, inputs, what, transactions: 0, all, most_in_use_bytes: 0, start }
    }

    /// Grows as planned, or to its size; then it is measured.
    fn run(&mut self, plan: Option<&Plan>) -> Result<(GrowthRun, Plan), SqlError> {
        let clock = &self.bench.env.clock;
        let (start, mut parts) = (clock.now(), Vec::new());
        match plan {
            Some(plan) => {
                for part in 1..=PARTS {
                    let until = plan.transactions * part / PARTS;
                    parts.push(self.until(until, &mut Durations::default())?);
                }
            }
            None => self.grow()?,
        }
        let grow_seconds = (clock.now() - start) as f64 / 1e9;
        let grown = self.transactions;
        let measured = plan.map_or((grown / MEASURED).max(2 * BATCH), |plan| plan.measured);
        let (mut durations, before, start) =
            (Durations::default(), held(self.target.database())?, clock.now());
        self.until(grown + measured / 2, &mut durations)?;
        let middle = held(self.target.database())?;
        self.until(grown + measured, &mut durations)?;
        let seconds = (clock.now() - start) as f64 / 1e9;
        let done = self.transactions - grown;
        let run = GrowthRun {
            limited: false,
            grow_seconds,
            parts_per_second: parts,
            per_second: done as f64 / seconds,
            latency_us: durations.quantiles(1_000),
            before,
            after: held(self.target.database())?,
            most_in_use_bytes: self.most_in_use_bytes,
            hot_chunks: 0,
            frozen_chunks: 0,
            evicted_chunks: 0,
            file_bytes: 0,
        };
        let growing = (middle.growing_bytes as f64 / self.bench.config.multiple) as u64;
        let others = middle.in_use_bytes.saturating_sub(middle.growing_bytes);
        let limit_bytes = (others + growing).max(LEAST_LIMIT_BYTES);
        Ok((run, Plan { transactions: grown, measured, limit_bytes, middle }))
    }

    /// Runs transactions until the rows have their size.
    fn grow(&mut self) -> Result<(), SqlError> {
        let wanted = self.bench.config.rows_bytes;
        while held(self.target.database())?.rows_bytes < wanted && !self.bench.cancel.is_cancelled() {
            self.until(self.transactions + BATCH * LOOKS, &mut Durations::default())?;
        }
        Ok(())
    }

    /// Runs transactions until there were so many: how many a second.
    pub(super) fn until(&mut self, transactions: u64, durations: &mut Durations) -> Result<f64, SqlError> {
        let clock = &self.bench.env.clock;
        let mut worker = self.target.worker(0)?;
        let (start, first) = (clock.now(), self.transactions);
        let mut looked = 0;
        while self.transactions < transactions && !self.bench.cancel.is_cancelled() {
            let count = BATCH.min(transactions - self.transactions);
            let batch: Vec<Transaction> =
                std::iter::repeat_with(|| self.inputs.next_transaction()).take(count as usize).collect();
            let mut before = clock.now();
            worker.run(&batch, &mut |_, _| {
                let now = clock.now();
                durations.record(now - before);
                before = now;
                Ok(())
            })?;
            self.transactions += count;
            if (self.transactions - first) / (BATCH * LOOKS) > looked {
                looked += 1;
                self.look(clock.now() - start, self.transactions - first);
            }
        }
        let seconds = (clock.now() - start) as f64 / 1e9;
        self.look(clock.now() - start, self.transactions - first);
        Ok((self.transactions - first) as f64 / seconds)
    }

    /// Looks at the memory, and tells how far it is.
    fn look(&mut self, took_ns: u64, made: u64) {
        let memory = self.target.database().memory();
        self.most_in_use_bytes = self.most_in_use_bytes.max(memory.in_use_bytes);
        let (done, all) = match self.all {
            Some(all) => (self.transactions, all),
            None => (memory.rows_bytes + memory.strings_bytes, self.bench.config.rows_bytes),
        };
        let so_far = self.bench.env.clock.now() - self.start;
        let expected = so_far as f64 * all as f64 / done.max(1) as f64;
        let per_second = made as f64 * 1e9 / took_ns.max(1) as f64;
        let [so_far, expected] = [so_far, expected as u64].map(std::time::Duration::from_nanos);
        self.bench.observer.running(self.what, so_far, expected, per_second);
    }
}
