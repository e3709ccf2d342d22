//! What transactions lose while another thread freezes what they have written.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Database, SqlError, SqlState};

use super::report::Loss;
use super::{Bench, GROWING, freeze, row_count, wrong};
use crate::config::{Config, Procedures};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::consistency;
use crate::tpcc::input::{Inputs, Transaction};
use crate::tpcc::rows::Timestamp;

/// Transactions that the thread makes at once.
const BATCH: usize = 64;

/// What the thread has done.
#[derive(Default)]
struct Counters {
    is_over: AtomicBool,
    transactions: AtomicU64,
    /// Its processor time.
    cpu_ns: AtomicU64,
}

/// Transactions a second, and a second of processor time.
#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    per_cpu_second: f64,
    seconds: f64,
}

impl Bench<'_> {
    /// TPC-C on one thread, alone and while another thread freezes the tables that grow, on a new database in each turn:
    /// where everything is frozen, deliveries find their orders frozen for seconds.
    pub(super) fn loss(&self) -> Result<Loss, SqlError> {
        let mut loss = Loss::default();
        // Freezing takes half a second, in which whatever else the machine does counts for much.
        for turn in 0..self.config.turns * 2 + 1 {
            if self.cancel.is_cancelled() {
                break;
            }
            self.loss_of_turn(turn as u64, &mut loss)?;
        }
        Ok(loss)
    }

    fn loss_of_turn(&self, turn: u64, loss: &mut Loss) -> Result<(), SqlError> {
        let workload = &self.config.workload;
        let workload = Config {
            procedures: Procedures::Native,
            partitions: 1,
            duration: workload.duration.saturating_mul(2),
            seed: workload.seed + turn,
            ..workload.clone()
        };
        let target = Albireo::open(&workload, self.env, self.cancel)?;
        target.take_memory(&workload, &mut |_, _| !self.cancel.is_cancelled());
        let population = workload.population(Timestamp(self.env.clock.unix_us()));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        self.show(super::Experiment::Loss);
        let no_thread =
            |error: std::io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let counters = Counters::default();
        albireo_env::scope(|scope| {
            let client = || run(&target, &workload, &counters);
            let client = albireo_env::spawn_scoped(scope, "transactions", client).map_err(no_thread)?;
            let measured = self.beside(target.database(), &counters, loss);
            counters.is_over.store(true, Ordering::Relaxed);
            client.join().expect("transactions do not panic").and(measured)
        })?;
        let mut snapshot = target.snapshot()?;
        for condition in 1..=consistency::COUNT {
            let violations = snapshot.count(&consistency::violations(condition, workload.scale))?;
            if violations > 0 && !self.cancel.is_cancelled() {
                return Err(wrong(format!(
                    "consistency condition {condition} does not hold, {violations} times"
                )));
            }
        }
        Ok(())
    }

    fn beside(&self, db: &Database, counters: &Counters, loss: &mut Loss) -> Result<(), SqlError> {
        let duration = self.config.workload.duration;
        let wait = |duration: Duration| {
            move || {
                self.env.clock.sleep(duration);
                Ok::<_, SqlError>(())
            }
        };
        self.env.clock.sleep(duration / 4);
        let alone = self.rate(counters, wait(duration))?;
        let mut rows = 0;
        let beside = self.rate(counters, || {
            for table in GROWING {
                rows += row_count(db, table)?;
                freeze(db, table)?;
            }
            Ok(())
        })?;
        loss.rows.push(rows);
        loss.seconds.push(beside.seconds);
        loss.per_second.push(alone.per_second, beside.per_second);
        loss.per_cpu_second.push(alone.per_cpu_second, beside.per_cpu_second);
        let after = self.rate(counters, wait(Duration::from_millis(500).min(duration)))?;
        loss.after_per_second.push(after.per_second);
        Ok(())
    }

    /// What the thread does while `work` runs.
    fn rate(
        &self,
        counters: &Counters,
        work: impl FnOnce() -> Result<(), SqlError>,
    ) -> Result<Rate, SqlError> {
        let read = || {
            let counted = [&counters.transactions, &counters.cpu_ns].map(|at| at.load(Ordering::Relaxed));
            (self.env.clock.now(), counted)
        };
        let (start, [transactions, cpu_ns]) = read();
        work()?;
        let (end, [transactions_then, cpu_ns_then]) = read();
        let (made, seconds) = ((transactions_then - transactions) as f64, (end - start) as f64 / 1e9);
        let per_cpu_second = made * 1e9 / (cpu_ns_then - cpu_ns).max(1) as f64;
        Ok(Rate { per_second: made / seconds, per_cpu_second, seconds })
    }
}

/// Runs transactions until it is over.
fn run(target: &Albireo, workload: &Config, counters: &Counters) -> Result<(), SqlError> {
    let homes: Vec<i16> = (1..=workload.warehouses).collect();
    let mut inputs = Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
    let mut worker = target.worker(0)?;
    while !counters.is_over.load(Ordering::Relaxed) {
        let batch: Vec<Transaction> =
            std::iter::repeat_with(|| inputs.next_transaction()).take(BATCH).collect();
        worker.run(&batch, &mut |_, _| {
            counters.transactions.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })?;
        counters.cpu_ns.store(albireo_env::cpu_time_ns(), Ordering::Relaxed);
    }
    Ok(())
}
