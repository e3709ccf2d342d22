//! Two databases with the same rows, of which one is frozen.

use std::time::Duration;

use albireo::{Config as Settings, Database, SqlError};
use albireo_env::{Clock, Env, SimulatedClock};

use super::report::Size;
use super::{Bench, GROWING, freeze, row_count, rows_bytes, wrong};
use crate::config::{Config, Procedures};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::input::Inputs;
use crate::tpcc::rows::Timestamp;
use crate::tpcc::schema::Table;

/// What passes on the clock of the pair for each transaction.
const TRANSACTION: Duration = Duration::from_micros(5);

/// The pair.
pub(super) struct Pair {
    /// As transactions left it.
    pub(super) hot: Albireo,
    /// Frozen, all tables.
    pub(super) frozen: Albireo,
    /// That each has run.
    pub(super) transactions: u64,
}

impl Pair {
    /// The databases in turns: the hot one first, then the frozen one.
    pub(super) fn both(&self) -> [&Database; 2] {
        [self.hot.database(), self.frozen.database()]
    }

    /// What both must answer alike.
    pub(super) fn check(&self, what: &str, sql: &str) -> Result<(), SqlError> {
        let [hot, frozen] = self.both();
        let (expected, found) = (answer(&hot.query(sql, &[])?), answer(&frozen.query(sql, &[])?));
        if expected != found {
            return Err(wrong(format!("after {what}, frozen rows give another answer than hot ones: {sql}")));
        }
        Ok(())
    }
}

/// Rows of a result in an order of their own, so that results can be compared.
pub(super) fn answer(result: &albireo::QueryResult) -> Vec<String> {
    let text = |value: &albireo::Value| match value {
        // Sums of these depend on the order of rows.
        albireo::Value::Double(value) => format!("{value:.6e}"),
        other => format!("{other:?}"),
    };
    let row = |row: &Vec<albireo::Value>| row.iter().map(text).collect::<Vec<_>>().join(" ");
    let mut rows: Vec<String> = result.rows().iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// A loaded database, its clock's hand, and the transactions to come.
struct Grown {
    target: Albireo,
    hand: SimulatedClock,
    inputs: Inputs,
}

impl Bench<'_> {
    /// Makes the pair, and measures what its growing tables take before and after.
    pub(super) fn pair(&self) -> Result<(Pair, Vec<Size>), SqlError> {
        let start_us = self.env.clock.unix_us();
        let mut hot = self.loaded(start_us)?;
        let duration = self.config.workload.duration.as_nanos();
        let start = self.env.clock.now();
        let most = self.config.workload.transactions.unwrap_or(u64::MAX);
        let mut transactions = 0;
        while transactions < most && u128::from(self.env.clock.now() - start) < duration {
            hot.run()?;
            transactions += 1;
        }
        let mut frozen = self.loaded(start_us)?;
        for _ in 0..transactions {
            frozen.run()?;
        }
        let memory = freeze_all(frozen.target.database())?;
        Ok((Pair { hot: hot.target, frozen: frozen.target, transactions }, memory))
    }

    fn loaded(&self, start_us: i64) -> Result<Grown, SqlError> {
        let (clock, hand) = Clock::simulated_from(start_us);
        let env = Env { clock, ..self.env.clone() };
        let database = Settings { query_threads: 1, ..self.config.workload.database.clone() };
        let workload = Config {
            procedures: Procedures::Native,
            database,
            partitions: 1,
            ..self.config.workload.clone()
        };
        let target = Albireo::open(&workload, &env, self.cancel)?;
        target.take_memory(&workload, &mut |_, _| !self.cancel.is_cancelled());
        let population = workload.population(Timestamp(start_us));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        let homes: Vec<i16> = (1..=workload.warehouses).collect();
        let inputs = Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
        Ok(Grown { target, hand, inputs })
    }
}

impl Grown {
    fn run(&mut self) -> Result<(), SqlError> {
        self.target.transactions()?.run(&self.inputs.next_transaction())?;
        self.hand.advance(TRANSACTION);
        Ok(())
    }
}

fn freeze_all(db: &Database) -> Result<Vec<Size>, SqlError> {
    for table in Table::ALL.map(|table| table.definition().name).iter().filter(|name| !GROWING.contains(name))
    {
        freeze(db, table)?;
    }
    GROWING.iter().map(|table| frozen_size(db, table, table)).collect()
}

/// Freezes a table; what its rows took and take, and what they would take if no text were shared.
pub(super) fn frozen_size(db: &Database, table: &str, name: &str) -> Result<Size, SqlError> {
    let (rows, hot_bytes) = (row_count(db, table)?, rows_bytes(db, table)?);
    freeze(db, table)?;
    let frozen_bytes = rows_bytes(db, table)?;
    let memory = db.with_table(table, |_, table| Ok(table.memory()))?;
    if rows > 0 && memory.frozen_bytes == 0 {
        return Err(wrong(format!("nothing of {table} was frozen")));
    }
    if row_count(db, table)? != rows {
        return Err(wrong(format!(
            "{table} does not have the rows any more that it had before it was frozen"
        )));
    }
    let unshared_bytes = frozen_bytes - memory.shared_texts_bytes + memory.unshared_texts_bytes;
    Ok(Size { name: name.to_owned(), rows, hot_bytes, frozen_bytes, unshared_bytes })
}
