//! What transactions lose while another thread freezes what they have written.
//!
//! As in the paper (Funke, Kemper, Neumann: Compacting Transactional Data in Hybrid OLTP & OLAP Databases, §5.1), the cold
//! chunks of order lines and history are frozen at once: here those that nobody has written for [`COLD_AFTER`], as the
//! database finds them where tables are frozen by themselves. What is undelivered is younger than that: TPC-C delivers orders
//! 0.4 to 0.9 seconds after they were entered while it runs for five seconds.
//!
//! By default TPC-C runs for some seconds before. On request it runs until as many lines are cold as in the paper, which takes
//! half a minute. It delivers 8 of 9 orders that it enters, so that the others wait ever longer: then what is cold has to be older.
//!
//! The thread rests three quarters of the time, as it does then; the paper's does not.
//!
//! What is not the paper's is measured besides, without rest: all rows of the tables that grow are frozen by
//! `CALL albireo.freeze`, those too that are written meanwhile. Then deliveries find their orders and lines frozen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use albireo::{Database, SqlError, SqlState, Value};

use super::counts::{RowCounts, Sizes};
use super::report::{Loss, LossTimes};
use super::{Bench, GROWING, freeze, row_count, rows_bytes, wrong};
use crate::config::{Config, Procedures};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::consistency;
use crate::tpcc::input::{Inputs, Transaction};
use crate::tpcc::rows::Timestamp;

/// The tables of which what is cold is frozen.
const COLD: [&str; 2] = ["order_line", "history"];
/// What nobody has written for so long is cold, or for half of the time for which TPC-C is measured, if that is less.
const COLD_AFTER: Duration = Duration::from_millis(1_500);
/// The same where TPC-C runs for as long as in the paper: longer than an order waits for its delivery then.
const PAPER_COLD_AFTER: Duration = Duration::from_secs(8);
/// Order lines that are there, at least, when it is measured. Of so many, the paper's 18.3 million are cold: 4 million belong to
/// orders that are not delivered.
const ORDER_LINES: RowCounts = RowCounts { few: 0, usual: 0, paper: 22_300_000 };
/// For how long TPC-C runs then, about.
const PAPER_DURATION: Duration = Duration::from_secs(30);
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

/// What is frozen.
#[derive(Clone, Copy)]
enum What {
    Cold,
    All,
}

impl Bench<'_> {
    /// TPC-C on one thread, alone and while another thread freezes, on a new database in each turn.
    pub(super) fn loss(&self) -> Result<Loss, SqlError> {
        let mut loss = Loss::default();
        // Freezing takes half a second, in which whatever else the machine does counts for much.
        for turn in 0..self.config.turns as u64 {
            self.loss_of_turn(What::Cold, turn * 2, &mut loss.cold)?;
            self.loss_of_turn(What::All, turn, &mut loss.all)?;
            self.loss_of_turn(What::Cold, turn * 2 + 1, &mut loss.cold)?;
        }
        Ok(loss)
    }

    fn loss_of_turn(&self, what: What, turn: u64, loss: &mut LossTimes) -> Result<(), SqlError> {
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        let workload = &self.config.workload;
        let duration = workload.duration.saturating_mul(2);
        let workload = Config {
            procedures: Procedures::Native,
            partitions: 1,
            duration: match self.config.sizes {
                Sizes::Few | Sizes::Usual => duration,
                Sizes::Paper => duration.max(PAPER_DURATION),
            },
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
            let measured = self.beside(what, target.database(), &counters, loss);
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

    fn beside(
        &self,
        what: What,
        db: &Database,
        counters: &Counters,
        loss: &mut LossTimes,
    ) -> Result<(), SqlError> {
        let duration = self.config.workload.duration;
        let cold_after = match self.config.sizes {
            Sizes::Few | Sizes::Usual => COLD_AFTER.min(duration / 2),
            Sizes::Paper => PAPER_COLD_AFTER,
        };
        let wait = |duration: Duration| {
            move || {
                self.env.clock.sleep(duration);
                Ok::<_, SqlError>(())
            }
        };
        // They are looked at, and not frozen yet.
        set_freeze(db, "1 d")?;
        self.env.clock.sleep(duration);
        self.wait_for_lines(db, counters)?;
        db.freeze_if_due()?;
        let alone = self.rate(counters, wait(cold_after))?;
        set_freeze(db, &format!("{} ms", cold_after.as_millis()))?;
        let mut hot_bytes = 0;
        let beside = match what {
            What::Cold => self.rate(counters, || {
                hot_bytes = db.freeze_if_due()?.block_bytes;
                Ok(())
            })?,
            What::All => {
                hot_bytes =
                    GROWING.iter().map(|table| rows_bytes(db, table)).sum::<Result<u64, SqlError>>()?;
                self.rate(counters, || GROWING.iter().try_for_each(|table| freeze(db, table)))?
            }
        };
        if hot_bytes == 0 {
            return Ok(());
        }
        let [order_lines, other_rows] = rows_frozen(db)?;
        let after = self.rate(counters, wait(duration.min(Duration::from_millis(500))))?;
        loss.seconds.push(beside.seconds);
        loss.hot_bytes.push(hot_bytes);
        loss.order_lines.push(order_lines);
        loss.other_rows.push(other_rows);
        loss.per_second.push(alone.per_second, beside.per_second);
        loss.per_cpu_second.push(alone.per_cpu_second, beside.per_cpu_second);
        loss.after_per_second.push(after.per_second);
        Ok(())
    }

    /// Waits until there are enough order lines, or the thread makes no more transactions.
    fn wait_for_lines(&self, db: &Database, counters: &Counters) -> Result<(), SqlError> {
        let (least, mut before) = (self.count(ORDER_LINES) as u64, 0);
        while row_count(db, "order_line")? < least && !self.cancel.is_cancelled() {
            let transactions = counters.transactions.load(Ordering::Relaxed);
            if transactions == before {
                return Err(wrong(format!("TPC-C stopped before there were {least} order lines")));
            }
            before = transactions;
            self.env.clock.sleep(Duration::from_millis(500));
        }
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

/// Says after which time what nobody writes is frozen.
fn set_freeze(db: &Database, after: &str) -> Result<(), SqlError> {
    COLD.iter()
        .try_for_each(|table| db.execute(&format!("ALTER TABLE {table} SET (freeze = '{after}')")).map(drop))
}

/// Rows that live in frozen chunks: order lines, and those of other tables.
fn rows_frozen(db: &Database) -> Result<[u64; 2], SqlError> {
    let rows = db.query(
        "SELECT sum(CASE WHEN \"table\" = 'order_line' THEN rows ELSE 0 END)::BIGINT, \
         sum(CASE WHEN \"table\" <> 'order_line' THEN rows ELSE 0 END)::BIGINT \
         FROM albireo.chunks WHERE state = 'frozen'",
        &[],
    )?;
    Ok([0, 1].map(|column| match rows.value(0, column) {
        Value::BigInt(rows) => rows as u64,
        // No chunk is frozen.
        _ => 0,
    }))
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
