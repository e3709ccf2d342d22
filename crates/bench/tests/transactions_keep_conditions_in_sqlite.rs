//! The driver, the inputs and the conditions together, with SQLite as the system under test.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use albireo::Receipt;
use albireo_base::{SqlError, SqlState};
use albireo_bench::ch::oracle;
use albireo_bench::ch::queries::{Query, Selection};
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{
    Answer, Cancel, Ended, Loading, Outcome, Snapshot, SnapshotCosts, SystemUnderTest, Worker, run,
};
use albireo_bench::progress::Silent;
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Mix, Transaction};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::schema::Layout;
use albireo_env::Clock;
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use support::{Decimals, transactions};

/// One connection that everybody takes turns with.
struct Sqlite(Mutex<Option<Connection>>);

/// A copy of the whole database.
struct Copy(Connection);

fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, error.to_string())
}

impl SystemUnderTest for Sqlite {
    fn load(&self, _: &Config, population: &Population, loading: &Loading<'_>) -> Result<(), SqlError> {
        *self.0.lock() = Some(support::sqlite(population, Decimals::Units).map_err(internal)?);
        loading.add(population.expected_rows());
        Ok(())
    }

    fn partition_of(&self, _: i16) -> u16 {
        0
    }

    fn worker(&self, _: u16) -> Result<Box<dyn Worker + '_>, SqlError> {
        Ok(Box::new(Turn(self)))
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, SqlError> {
        let connection = self.0.lock();
        let connection = connection.as_ref().ok_or_else(|| internal("nothing is loaded"))?;
        let mut copy = support::empty().map_err(internal)?;
        let backup = Backup::new(connection, &mut copy).map_err(internal)?;
        backup.run_to_completion(1_000_000, Duration::ZERO, None).map_err(internal)?;
        drop(backup);
        Ok(Box::new(Copy(copy)))
    }

    fn forget_pauses(&self) {}

    fn snapshot_costs(&self) -> SnapshotCosts {
        SnapshotCosts::default()
    }

    fn memory_bytes(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

struct Turn<'a>(&'a Sqlite);

impl Worker for Turn<'_> {
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError> {
        for transaction in transactions {
            let connection = self.0.0.lock();
            let connection = connection.as_ref().ok_or_else(|| internal("nothing is loaded"))?;
            let now = "2026-01-01 00:00:00.000000";
            let shown = transactions::run(connection, transaction, now).map_err(internal)?;
            let rolls_back = matches!(transaction, Transaction::NewOrder(order) if order.rolls_back);
            assert_eq!(shown.is_none(), rolls_back);
            let outcome = if shown.is_some() { Outcome::Committed } else { Outcome::RolledBack };
            ended(outcome, Receipt::default())?;
        }
        Ok(())
    }
}

impl Snapshot for Copy {
    fn age_ns(&self) -> u64 {
        0
    }

    fn query(&mut self, query: &Query, parameters: &[i16]) -> Result<Answer, SqlError> {
        let mut statement = self.0.prepare(&oracle::sqlite(query.sql)).map_err(internal)?;
        let rows = statement.query_map(rusqlite::params_from_iter(parameters), |_| Ok(()));
        Ok(Answer { rows: rows.map_err(internal)?.count() as u64, planning_ns: 0 })
    }

    fn count(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.0.query_row(sql, [], |row| row.get(0)).map_err(internal)
    }
}

#[test]
fn mixed_run_over_sqlite_keeps_every_condition() {
    let config = Config {
        workload: Workload::Ch { queries: "top10,1,6".parse::<Selection>().unwrap(), streams: 1 },
        warehouses: 2,
        partitions: 1,
        transactions: Some(300),
        layout: Layout::Row,
        mix: Mix::Spec,
        procedures: Procedures::Native,
        seed: 5,
        scale: Scale::SMALL,
        ..Config::default()
    };
    let target = Sqlite(Mutex::new(None));
    let report = run(&config, &target, &Clock::real(), &Silent, &Cancel::default()).unwrap();
    assert!(report.passed(), "{}", report.json());
    assert_eq!((1..=12).filter(|&number| report.consistency.holds(number) == Some(true)).count(), 12);
    for oltp in [report.oltp_alone.unwrap(), report.oltp_mixed.unwrap()] {
        assert_eq!(oltp.committed + oltp.rolled_back, 300, "{oltp:?}");
    }
    assert!(report.queries.iter().all(|query| query.runs > 0));
}
