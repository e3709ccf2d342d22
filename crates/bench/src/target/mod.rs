//! Our own database as the system under test.
//!
//! Transactions are native procedures or stored routines in PL/pgSQL, called on the thread that makes their inputs: it takes the
//! partition's token for one transaction after another. Every query runs on a fresh snapshot of the
//! columns that it reads ([`albireo::PreparedQuery::begin_read_only`]), on one analytical thread, with a
//! plan that is in the cache.
//!
//! As pause counts how long an executor that had a transaction to run waited for a snapshot.

mod load;
mod statements;
mod stored;
mod worker;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use albireo::{
    CancelToken, CheckpointSchedule, Config as Settings, Database, Durability, Log, LogRecords,
    LogStatistics, ReadOnlySession, Receipt, SqlError, SqlState, Value,
};
use albireo_env::Env;

use crate::ch::queries::Query;
use crate::config::{Config, Logging, Procedures, Workload};
use crate::driver::{Answer, Cancel, Loading, Snapshot, SnapshotCosts, SystemUnderTest, Worker};
use crate::latency::Durations;
use crate::tpcc::Scale;
use crate::tpcc::population::Population;
use crate::tpcc::procedures::logged;
use crate::tpcc::schema::ddl;

pub use statements::StatementTransactions;
pub use stored::{Row, StoredTransactions};
pub use worker::Transactions;

/// Bytes of a loaded warehouse.
const WAREHOUSE_BYTES: u64 = 128 << 20;
/// Bytes that one partition's transactions add in a second: 500 each, with copies for snapshots.
const GROWTH_BYTES: u64 = 160 << 20;

/// 53200 if the loaded tables of a run will not fit into the limit, or into what the machine has left.
fn check_memory(config: &Config, available_bytes: Option<u64>) -> Result<(), SqlError> {
    let warehouses = u64::from(config.warehouses.unsigned_abs());
    let needed_bytes = if config.scale == Scale::SPEC { warehouses * WAREHOUSE_BYTES } else { 0 };
    let limit_bytes = config.database.data_limit_bytes;
    let available_bytes = available_bytes.unwrap_or(u64::MAX);
    if needed_bytes <= limit_bytes.min(available_bytes) {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let (reason, remedy) = match limit_bytes < needed_bytes {
        true => (format!("the limit for data is {}", gigabytes(limit_bytes)), ", or raise --data-limit"),
        false => (format!("{} are available", gigabytes(available_bytes)), ", or free memory"),
    };
    let text = format!("{warehouses} warehouses need about {}, and {reason}", gigabytes(needed_bytes));
    let hint = match limit_bytes.min(available_bytes) / WAREHOUSE_BYTES {
        0 => format!("Use a machine with more memory{remedy}."),
        most => format!("Use --warehouses {most} at most{remedy}."),
    };
    Err(SqlError::new(SqlState::OUT_OF_MEMORY, text).with_hint(hint))
}

/// What the tables of a run will grow to, roughly; at most half of what the machine has left.
fn expected_bytes(config: &Config) -> u64 {
    let phases = match config.workload {
        Workload::Tpcc => 1,
        Workload::Ch { .. } => 2,
    };
    let seconds = match config.transactions {
        // Not many.
        Some(_) => 0,
        None => phases * (config.duration.as_secs() + 1),
    };
    let executors = u64::from(config.partitions).min(albireo_env::cores() as u64);
    let wanted = u64::from(config.warehouses.unsigned_abs()) * WAREHOUSE_BYTES
        + (executors * GROWTH_BYTES).saturating_mul(seconds);
    wanted.min(albireo_env::available_memory_bytes().unwrap_or(0) / 2)
}

/// Settings of the database of a run.
fn settings(config: &Config, log_records: LogRecords) -> Settings {
    Settings {
        durability: match config.logging {
            Logging::Async => Durability::Async,
            _ => Durability::Group,
        },
        partitions: config.partitions,
        procedures: logged(),
        log_records,
        // What is measured beside archives says so.
        checkpoint: CheckpointSchedule::never(),
        ..config.database.clone()
    }
}

/// A database and the benchmark's procedures in it.
pub struct Albireo {
    database: Database,
    transactions: OnceLock<Transactions>,
    /// Instead of these, if the run is to use them.
    stored: OnceLock<StoredTransactions>,
    /// Nobody waits for the log.
    asynchronous: AtomicBool,
    /// Whether workers run transactions statement by statement.
    by_statements: AtomicBool,
    cancel: CancelToken,
}

impl Albireo {
    /// An empty database for a run of `config`; [`SystemUnderTest::load`] fills it. Once `cancel` is
    /// cancelled, queries end early.
    ///
    /// # Errors
    /// The system refuses memory or threads.
    pub fn open(config: &Config, env: &Env, cancel: &Cancel) -> Result<Self, SqlError> {
        Self::open_with(config, env, cancel, LogRecords::default())
    }

    /// As [`Albireo::open`], with records of one kind in the redo log.
    ///
    /// # Errors
    /// As [`Albireo::open`].
    pub fn open_with(
        config: &Config,
        env: &Env,
        cancel: &Cancel,
        log_records: LogRecords,
    ) -> Result<Self, SqlError> {
        check_memory(config, albireo_env::available_memory_bytes())?;
        let settings = settings(config, log_records);
        let database = match &config.data {
            Some(directory) => Database::open_in(directory, settings, env.clone())?,
            None => Database::with_env(settings, env.clone())?,
        };
        Ok(Self::around(database, cancel))
    }

    /// An empty database in memory that freezes rows and has them leave memory by itself, as [`Database::in_memory`] makes
    /// it; its limit need not hold what is loaded.
    ///
    /// # Errors
    /// As [`Albireo::open`].
    pub fn in_memory(config: &Config, cancel: &Cancel) -> Result<Self, SqlError> {
        let database = Database::in_memory(settings(config, LogRecords::default()))?;
        Ok(Self::around(database, cancel))
    }

    fn around(database: Database, cancel: &Cancel) -> Self {
        let token = CancelToken::new();
        let ended = token.clone();
        cancel.on_cancel(move || ended.cancel());
        Self {
            database,
            transactions: OnceLock::new(),
            stored: OnceLock::new(),
            asynchronous: AtomicBool::new(false),
            by_statements: AtomicBool::new(false),
            cancel: token,
        }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The five transactions.
    ///
    /// # Errors
    /// The database is not loaded.
    pub fn transactions(&self) -> Result<&Transactions, SqlError> {
        let not_loaded = || SqlError::new(SqlState::UNDEFINED_TABLE, "the database is not loaded");
        self.transactions.get().ok_or_else(not_loaded)
    }

    /// The five transactions in PL/pgSQL.
    ///
    /// # Errors
    /// The database is not loaded, or not for a run with them.
    pub fn stored(&self) -> Result<&StoredTransactions, SqlError> {
        let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "the routines were not created");
        self.stored.get().ok_or_else(missing)
    }

    /// Queries on a snapshot, which this run's interruption ends.
    fn session(&self, session: ReadOnlySession) -> Box<dyn Snapshot + '_> {
        Box::new(Session { session, cancel: &self.cancel })
    }
}

impl SystemUnderTest for Albireo {
    fn take_memory(&self, config: &Config, go_on: &mut dyn FnMut(u64, u64) -> bool) {
        if config.scale == Scale::SPEC {
            let wanted = expected_bytes(config);
            self.database.preallocate(wanted, |there| go_on(there, wanted));
        }
    }

    fn load(&self, config: &Config, population: &Population, loading: &Loading<'_>) -> Result<(), SqlError> {
        for statement in ddl(config.layout) {
            self.database.execute(&statement)?;
        }
        load::load(&self.database, population, loading)?;
        if config.logging == Logging::Null {
            self.database.log_to_nowhere()?;
        }
        self.asynchronous.store(config.logging == Logging::Async, Ordering::Relaxed);
        // A second load into the same target has failed at its DDL.
        let _ = self.transactions.set(Transactions::new(&self.database)?);
        let stored = || StoredTransactions::new(&self.database);
        match config.procedures {
            Procedures::Native => {}
            Procedures::Statements => self.by_statements.store(true, Ordering::Relaxed),
            Procedures::PlPgSql => drop(self.stored.set(stored()?)),
            Procedures::Interpreted => drop(self.stored.set(stored()?.interpreted())),
        }
        Ok(())
    }

    fn partition_of(&self, w_id: i16) -> u16 {
        albireo::partition_of(&Value::SmallInt(w_id), self.database.partitions())
    }

    fn worker(&self, _partition: u16) -> Result<Box<dyn Worker + '_>, SqlError> {
        if self.by_statements.load(Ordering::Relaxed) {
            return Ok(Box::new(StatementTransactions::new(&self.database)));
        }
        // A transaction finds its partition by its arguments.
        Ok(match self.stored.get() {
            Some(stored) => Box::new(stored),
            None => Box::new(self.transactions()?),
        })
    }

    fn prepare(&self, query: &Query) -> Result<(), SqlError> {
        self.database.prepare(query.sql).map(drop)
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, SqlError> {
        Ok(self.session(self.database.begin_read_only()?))
    }

    fn snapshot_for(&self, query: &Query) -> Result<Box<dyn Snapshot + '_>, SqlError> {
        Ok(self.session(self.database.prepare(query.sql)?.begin_read_only()?))
    }

    fn is_acknowledged(&self, receipt: Receipt) -> bool {
        self.asynchronous.load(Ordering::Relaxed) || self.database.is_acknowledged(receipt)
    }

    fn acknowledge(&self, receipt: Receipt) -> Result<(), SqlError> {
        self.database.acknowledge(receipt)
    }

    fn log_statistics(&self) -> Option<LogStatistics> {
        self.database.log().map(Log::statistics)
    }

    fn forget_pauses(&self) {
        self.database.reset_pauses();
    }

    fn snapshot_costs(&self) -> SnapshotCosts {
        let statistics = self.database.statistics();
        let counters = statistics.snapshots.counters;
        SnapshotCosts {
            taken: counters.taken,
            blocks_copied: counters.blocks_copied,
            bytes_copied: counters.bytes_copied,
            pauses: Durations::of(&statistics.transactions.snapshot_pauses_ns),
        }
    }

    fn memory_bytes(&self) -> BTreeMap<String, u64> {
        let memory = self.database.memory();
        let kinds = [
            ("rows", memory.rows_bytes),
            ("strings", memory.strings_bytes),
            ("indexes", memory.indexes_bytes),
            ("undo", memory.undo_bytes),
            ("snapshots", memory.snapshots_bytes),
            ("queries", memory.queries_bytes),
            ("kept", memory.kept_bytes),
            ("in_use", memory.in_use_bytes),
            ("reserved", memory.reserved_bytes),
        ];
        kinds.map(|(kind, bytes)| (kind.to_owned(), bytes)).into()
    }
}

/// One snapshot.
struct Session<'a> {
    session: ReadOnlySession,
    cancel: &'a CancelToken,
}

impl Snapshot for Session<'_> {
    fn age_ns(&self) -> u64 {
        self.session.age_ns()
    }

    fn query(&mut self, query: &Query, parameters: &[i16]) -> Result<Answer, SqlError> {
        let mut values = [Value::Null, Value::Null];
        for (value, &parameter) in values.iter_mut().zip(parameters) {
            *value = Value::SmallInt(parameter);
        }
        let values = &values[..parameters.len()];
        let result = self.session.query_until(self.cancel, Some(1), query.sql, values)?;
        Ok(Answer { rows: result.row_count() as u64, planning_ns: result.planning.as_nanos() as u64 })
    }

    fn count(&mut self, sql: &str) -> Result<u64, SqlError> {
        let result = self.session.query_until(self.cancel, None, sql, &[])?;
        match result.value(0, 0) {
            Value::BigInt(count) => Ok(count as u64),
            other => {
                let text = format!("a count is expected, not {other}");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_that_will_not_fit_is_refused_with_the_most_warehouses_that_do() {
        let config = |warehouses, data_limit_bytes| Config {
            warehouses,
            database: Settings { data_limit_bytes, ..Settings::default() },
            ..Config::default()
        };
        check_memory(&config(8, 1 << 30), Some(1 << 30)).unwrap();
        check_memory(&config(8, 1 << 30), None).unwrap();
        check_memory(&Config { scale: Scale::SMALL, ..config(8, 1 << 20) }, Some(0)).unwrap();
        let refused = |config: Config, available| {
            let error = check_memory(&config, Some(available)).unwrap_err();
            assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
            (error.message().to_owned(), error.hint().unwrap().to_owned())
        };
        let (message, hint) = refused(config(40, 1 << 30), 1 << 40);
        assert_eq!(message, "40 warehouses need about 5.4 GB, and the limit for data is 1.1 GB");
        assert_eq!(hint, "Use --warehouses 8 at most, or raise --data-limit.");
        let (message, hint) = refused(config(40, 16 << 30), 1 << 20);
        assert_eq!(message, "40 warehouses need about 5.4 GB, and 0.0 GB are available");
        assert_eq!(hint, "Use a machine with more memory, or free memory.");
    }
}
