//! A database: its parts, and how they start and end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};

use albireo_base::{IndexId, PartitionId, SqlError, SqlState, TableId, Tid, Value};
use albireo_env::Env;
use albireo_execute::Interrupts;
use albireo_execute::errors::Explainer;
use albireo_olap::{CancelToken, Olap, OlapConfig, SpillFiles};
use albireo_partition::{
    Abort, CallError, PartitionCounters, Partitions, PartitionsConfig, Procedure, Sessions,
    SnapshotStatistics, TableHandle,
};
use albireo_sql::{Catalog, TableDef};
use albireo_storage::{
    BlockPool, HandleError, RowFault, SnapshotRegistry, SnapshotScope, Table, TableError, unless_away,
};
use parking_lot::{Mutex, RwLock};

use crate::cold::{Evicting, Freezing};
use crate::definitions::Definitions;
use crate::durability::{Archiving, Home};
use crate::errors::no_thread;
use crate::interactive::OpenTransactions;
use crate::locks::Advisory;
use crate::meanwhile::Meanwhile;
use crate::procedures::Made;
use crate::routines::{Library, Limits};
use crate::settings::Settings;
use crate::statements::{Entry, ExecutionPath, Kept, Statements, Wanted};
use crate::{
    Config, Connection, LogRecords, Outcome, ProcedureHandle, QueryResult, ReadOnlySession, RecoveryProgress,
    RecoveryReport, Repeatable,
};

/// A database in this process. Cheap to clone; clones are the same database, which closes when the
/// last one is dropped.
#[derive(Clone)]
pub struct Database {
    /// Dropped first: what still runs must be told that nobody uses the database any more. None without a
    /// thread of that kind.
    closer: Option<Arc<Closer>>,
    pub(crate) inner: Arc<Inner>,
}

/// Closes the database's threads for archives and for freezing when the last handle goes.
pub(crate) struct Closer {
    inner: Arc<Inner>,
    threads: Mutex<Vec<albireo_env::JoinHandle<()>>>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.inner.archiving.close();
        self.inner.freezing.close();
        self.inner.evicting.close();
        for thread in self.threads.get_mut().drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

/// A database that may be gone.
pub(crate) struct WeakDatabase(Weak<Inner>);

impl WeakDatabase {
    /// A handle that does not keep the database open; `None` if it is gone.
    pub(crate) fn upgrade(&self) -> Option<Database> {
        Some(Database { closer: None, inner: self.0.upgrade()? })
    }
}

pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) sessions: Sessions,
    pub(crate) olap: Olap,
    pub(crate) catalog: RwLock<Arc<Catalog>>,
    /// Held shared by statements that change rows, exclusively by those that change the catalog.
    pub(crate) definitions: Definitions,
    /// Statements that were met before.
    pub(crate) statements: Statements,
    /// Of a statement that nobody can cancel.
    pub(crate) unlimited: Limits,
    /// What calls of repeatable routines leave in the redo log.
    pub(crate) log_records: LogRecords,
    /// The native procedures that recovery calls.
    pub(crate) natives: Made,
    /// What CREATE FUNCTION and CREATE PROCEDURE made.
    pub(crate) routines: RwLock<Arc<Library>>,
    /// Files that COPY began to write.
    pub(crate) files_written: AtomicU64,
    /// Tables whose indexes native procedures may know by their position.
    pub(crate) handed_out: Mutex<BTreeSet<TableId>>,
    /// Parts of transactions, by their numbers, whose end recovery has not come to.
    pub(crate) parts: Mutex<BTreeMap<u64, Vec<Vec<u8>>>>,
    /// What opening did.
    pub(crate) recovered: OnceLock<RecoveryReport>,
    /// What the last archive of this process holds.
    pub(crate) archived: Mutex<Option<albireo_archive::Contents>>,
    /// When the next one is due.
    pub(crate) archiving: Archiving,
    /// What may be frozen.
    pub(crate) freezing: Freezing,
    /// What leaves memory when that is short.
    pub(crate) evicting: Evicting,
    /// The directory that it is kept in.
    pub(crate) home: OnceLock<Home>,
    pub(crate) pool: BlockPool,
    pub(crate) threads: Mutex<Threads>,
    /// What tests have happen while long statements run.
    pub(crate) meanwhile: Meanwhile,
    pub(crate) advisory: Advisory,
    pub(crate) transactions: OpenTransactions,
}

#[derive(Default)]
pub(crate) struct Threads {
    toucher: Option<albireo_env::JoinHandle<()>>,
    executors: Vec<albireo_env::JoinHandle<()>>,
    pub(crate) log: Option<albireo_env::JoinHandle<()>>,
}

/// What a database has done so far.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Transactions, and how long executors stood still for snapshots and crossing transactions.
    pub transactions: PartitionCounters,
    /// Snapshots.
    pub snapshots: SnapshotStatistics,
}

/// Memory by kind, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MemoryReport {
    /// Blocks of rows, and what is frozen.
    pub rows_bytes: u64,
    /// String heaps.
    pub strings_bytes: u64,
    /// Indexes.
    pub indexes_bytes: u64,
    /// Undo buffers.
    pub undo_bytes: u64,
    /// Old versions of blocks that only snapshots still see.
    pub snapshots_bytes: u64,
    /// Running queries.
    pub queries_bytes: u64,
    /// Rows and sums that queries have kept for those that ask the same again.
    pub kept_bytes: u64,
    /// All blocks in use, of rows, strings, indexes and snapshots together.
    pub in_use_bytes: u64,
    /// What is reserved from the operating system for them.
    pub reserved_bytes: u64,
}

impl Database {
    /// Opens an empty database that lives in memory and is gone when it closes.
    ///
    /// # Errors
    /// 22023 for a setting out of range; 53000 when the system refuses threads.
    pub fn in_memory(config: Config) -> Result<Self, SqlError> {
        Self::in_memory_in(config, Env::real())
    }

    /// As [`Database::in_memory`], in a given environment.
    ///
    /// # Errors
    /// As [`Database::in_memory`].
    pub fn in_memory_in(config: Config, env: Env) -> Result<Self, SqlError> {
        let mut database = Self::with_env(config, env)?;
        database.start_freezing()?;
        database.start_evicting()?;
        Ok(database)
    }

    /// Opens the database that is kept in a directory, which is made if it is not there: what was
    /// acknowledged before it was closed, or before a crash, is there again.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// # let directory = std::env::temp_dir().join(format!("albireo-open-{}", std::process::id()));
    /// let db = Database::open(&directory, Config::default())?;
    /// db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)")?;
    /// drop(db);
    /// let db = Database::open(&directory, Config::default())?;
    /// assert_eq!(db.query("SELECT count(*) FROM t", &[])?.value(0, 0).to_string(), "2");
    /// # drop(db);
    /// # std::fs::remove_dir_all(&directory).unwrap();
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::in_memory`]; 55006 if another process has it open; 58030 if files cannot be read or
    /// written; XX001 if they are damaged, with the place; 22023 if it has another number of partitions.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Self, SqlError> {
        Self::open_in(path, config, Env::real())
    }

    /// As [`Database::open`], in a given environment.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_in(path: impl AsRef<Path>, config: Config, env: Env) -> Result<Self, SqlError> {
        Self::open_with_progress(path, config, env, &mut |_| {})
    }

    /// As [`Database::open_in`]; `listener` is told how far recovery is, some ten times a second.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with_progress(
        path: impl AsRef<Path>,
        config: Config,
        env: Env,
        listener: &mut (dyn FnMut(RecoveryProgress) + Send),
    ) -> Result<Self, SqlError> {
        let mut database = Self::open_unstarted(path.as_ref(), config, env, listener)?;
        database.start_log_thread()?;
        database.start_schedule()?;
        database.start_freezing()?;
        database.start_evicting()?;
        Ok(database)
    }

    /// As [`Database::open_in`], but the log makes its steps only when it is told to ([`Database::log`]), and
    /// archives are written only by [`Database::checkpoint_if_due`]: a simulation says when. Whatever waits for
    /// the log waits for ever, unless it does something instead ([`albireo_redo::Log::instead_of_waiting`]).
    /// Recovery starts no thread, whatever the settings say.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_stepped(path: impl AsRef<Path>, config: Config, env: Env) -> Result<Self, SqlError> {
        let config = Config { recovery_threads: 1, ..config };
        Self::open_unstarted(path.as_ref(), config, env, &mut |_| {})
    }

    fn open_unstarted(
        path: &Path,
        config: Config,
        env: Env,
        listener: &mut (dyn FnMut(RecoveryProgress) + Send),
    ) -> Result<Self, SqlError> {
        config.check()?;
        let home = Home::open(&env, path)?;
        let database = Self::without_eviction(config.clone(), env)?;
        database.set_eviction(&config.eviction, Some(&home))?;
        database.start_log(home, &config, listener)?;
        Ok(database)
    }

    /// What opening it did; nothing for a database that lives in memory.
    pub fn recovery(&self) -> RecoveryReport {
        self.inner.recovered.get().cloned().unwrap_or_default()
    }

    /// As [`Database::in_memory_in`], without the threads that freeze rows and make room: rows are frozen by
    /// [`Database::freeze_if_due`], and leave memory when a transaction finds none.
    ///
    /// # Errors
    /// As [`Database::in_memory`].
    pub fn with_env(config: Config, env: Env) -> Result<Self, SqlError> {
        let eviction = config.eviction.clone();
        let database = Self::without_eviction(config, env)?;
        database.set_eviction(&eviction, None)?;
        Ok(database)
    }

    fn without_eviction(config: Config, env: Env) -> Result<Self, SqlError> {
        config.check()?;
        let pool = BlockPool::new(config.data_limit_bytes);
        let registry =
            SnapshotRegistry::new(pool.clone(), config.snapshot_budget_bytes, config.snapshot_policy);
        let registry = Arc::new(registry.observing_reads(config.observe_reads));
        let setup = PartitionsConfig { partitions: config.partitions, queue_capacity: config.queue_capacity };
        let partitions = Arc::new(Partitions::new(setup, registry, &env));
        let sessions = Sessions::new(Arc::clone(&partitions), env.clock.clone());
        let olap = Olap::new(olap_config(&config, &env))?;
        let toucher = pool.clone();
        let toucher = albireo_env::spawn("albireo-memory", move || {
            // Without permission it runs at the priority it has.
            let _ = albireo_env::lower_priority();
            toucher.run_toucher();
        });
        let toucher = Some(toucher.map_err(no_thread)?);
        let catalog = Arc::new(Catalog::new());
        let clock = env.clock.clone();
        let inner = Inner {
            partitions,
            sessions,
            olap,
            routines: RwLock::new(Arc::new(Library::new(Arc::clone(&catalog), clock))),
            catalog: RwLock::new(catalog),
            definitions: Definitions::default(),
            meanwhile: Meanwhile::default(),
            advisory: Advisory::default(),
            transactions: OpenTransactions::new(config.open_transactions, config.open_writes_bytes),
            parts: Mutex::default(),
            statements: Statements::default(),
            unlimited: Limits {
                interrupts: Interrupts::none(env.clock.clone()),
                interprets: false,
                synchronous: None,
            },
            log_records: config.log_records,
            natives: Made::new(config.procedures.clone()),
            recovered: OnceLock::new(),
            archived: Mutex::default(),
            archiving: Archiving::new(config.checkpoint, env.clock.now()),
            freezing: Freezing::new(config.freeze),
            evicting: Evicting::default(),
            home: OnceLock::new(),
            files_written: AtomicU64::new(0),
            handed_out: Mutex::default(),
            pool,
            threads: Mutex::new(Threads { toucher, ..Threads::default() }),
            env,
        };
        Ok(Self { closer: None, inner: Arc::new(inner) })
    }

    /// What does not keep it in memory either.
    pub(crate) fn downgrade(&self) -> WeakDatabase {
        WeakDatabase(Arc::downgrade(&self.inner))
    }

    /// The same database, by a handle that does not keep it open.
    pub(crate) fn without_closer(&self) -> Self {
        Self { closer: None, inner: Arc::clone(&self.inner) }
    }

    /// Leaves it to the last handle that goes to wait for a thread.
    pub(crate) fn closes_with(&mut self, thread: albireo_env::JoinHandle<()>) {
        let closer = || Arc::new(Closer { inner: Arc::clone(&self.inner), threads: Mutex::default() });
        self.closer.get_or_insert_with(closer).threads.lock().push(thread);
    }

    /// A connection: settings, and at most one open transaction.
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }

    /// Runs one or more SQL statements, each a transaction of its own, until the first that fails.
    ///
    /// ```
    /// # use albireo::{Config, Database, Outcome};
    /// let db = Database::in_memory(Config::default())?;
    /// let outcomes = db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)")?;
    /// assert!(matches!(&outcomes[1], Outcome::Done { rows: 2, .. }));
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// The first failing statement's; its position counts in the whole text.
    pub fn execute(&self, sql: &str) -> Result<Vec<Outcome>, SqlError> {
        self.connect().execute(sql)
    }

    /// Runs one SQL statement with parameters `$1`, `$2`, ....
    ///
    /// ```
    /// # use albireo::{Config, Database, Outcome, Value};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE t (a INTEGER, b TEXT)")?;
    /// db.execute_with("INSERT INTO t VALUES ($1, $2)", &[Value::Integer(1), "it's".into()])?;
    /// let rows = db.execute_with("UPDATE t SET a = a + $1 RETURNING a, b", &[Value::Integer(41)])?;
    /// let Outcome::Rows(rows) = rows else { panic!("RETURNING gives rows") };
    /// assert_eq!(rows.rows(), [[Value::Integer(42), "it's".into()]]);
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// The statement's; 42P02 when another number of parameters is given than it has.
    pub fn execute_with(&self, sql: &str, parameters: &[Value]) -> Result<Outcome, SqlError> {
        self.before_statement();
        match self.run_kept(sql, parameters, Wanted::Any, &self.inner.unlimited) {
            Kept::Ran(outcome) => outcome,
            Kept::Query(entry) => self.run_kept_query(&entry, parameters).map(Outcome::Rows),
            Kept::Unknown => self.connect().execute_with(sql, parameters),
        }
    }

    /// Runs one query with parameters `$1`, `$2`, ...: on the live rows if indexes answer it, else on a
    /// fresh snapshot of what it reads. Either way it sees every transaction committed before.
    ///
    /// ```
    /// # use albireo::{Config, Database, Value};
    /// let db = Database::in_memory(Config::default())?;
    /// let result = db.query("SELECT $1 + 1 AS next", &[Value::Integer(41)])?;
    /// assert_eq!(result.columns[0].name, "next");
    /// assert_eq!(result.value(0, 0).to_string(), "42");
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// Syntax, names, types, limits, and whatever its expressions raise.
    pub fn query(&self, sql: &str, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        self.before_statement();
        match self.run_kept(sql, parameters, Wanted::Queries, &self.inner.unlimited) {
            Kept::Ran(outcome) => outcome.and_then(Outcome::into_rows),
            Kept::Query(entry) => self.run_kept_query(&entry, parameters),
            Kept::Unknown => self.connect().query(sql, parameters),
        }
    }

    fn run_kept_query(&self, entry: &Entry, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        self.run_query(entry, parameters, None, &Settings::default(), &CancelToken::new())
    }

    /// Makes every statement that can take this path, for tests that compare the two.
    #[doc(hidden)]
    pub fn force_execution_path(&self, path: Option<ExecutionPath>) {
        self.inner.statements.force(path);
    }

    /// Opens a query session: all its queries see one snapshot, taken now.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")?;
    /// let session = db.begin_read_only()?;
    /// db.execute("INSERT INTO t VALUES (2)")?;
    /// assert_eq!(session.query("SELECT count(*) FROM t", &[])?.value(0, 0).to_string(), "1");
    /// assert_eq!(db.query("SELECT count(*) FROM t", &[])?.value(0, 0).to_string(), "2");
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 53200 when snapshots hold as much memory as they may.
    pub fn begin_read_only(&self) -> Result<ReadOnlySession, SqlError> {
        let session = self.inner.sessions.open(&SnapshotScope::All).map_err(crate::errors::session)?;
        Ok(ReadOnlySession::new(self.clone(), session))
    }

    /// Registers a native procedure.
    ///
    /// ```
    /// use albireo::*;
    ///
    /// struct Deposit { account: TableHandle, by_id: IndexRef, cents: Col<i64> }
    ///
    /// impl Procedure for Deposit {
    ///     type Args = (i32, i64);
    ///     type Output = i64;
    ///     fn name(&self) -> &str { "deposit" }
    ///     fn route(&self, args: &Self::Args) -> Route { Route::Key(args.0.into()) }
    ///     fn run(&self, tx: &mut Transaction, &(id, cents): &Self::Args) -> Result<i64, Abort> {
    ///         let row = tx.table(self.account).find(self.by_id, ShortKey::new().i32(id));
    ///         let row = row.ok_or_else(|| Abort::raise(SqlState::RAISE_EXCEPTION, "no such account"))?;
    ///         tx.update(self.account, row, |row| row.modify(self.cents, |old| old + cents))
    ///     }
    /// }
    ///
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL)
    ///             PARTITION BY HASH (id); INSERT INTO account VALUES (7, 100)")?;
    /// let deposit = db.with_table("account", |account, table| {
    ///     Ok(Deposit { account, by_id: table.index("account_pkey")?, cents: table.column("cents")? })
    /// })?;
    /// let deposit = db.register_procedure(deposit);
    /// assert_eq!(deposit.call(&(7, 23))?, 123);
    /// assert!(deposit.call(&(8, 1)).is_err());
    /// # Ok::<(), SqlError>(())
    /// ```
    pub fn register_procedure<P: Procedure>(&self, procedure: P) -> ProcedureHandle<P> {
        ProcedureHandle::new(self, procedure)
    }

    /// As [`Database::register_procedure`], and lets its calls stand in the redo log, as a few bytes, where
    /// that costs less than the rows that they changed. To open the database again,
    /// [`Config::procedures`] must name it.
    pub fn register_repeatable<P: Repeatable>(&self, procedure: P) -> ProcedureHandle<P> {
        ProcedureHandle::repeatable(self, procedure)
    }

    /// The table that a program calls so, other than in a statement.
    ///
    /// # Errors
    /// 42P01: there is none.
    pub(crate) fn table_called(&self, name: &str) -> Result<Arc<TableDef>, SqlError> {
        self.catalog().table_named(None, name).cloned().ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
        })
    }

    /// Looks at a table's shape, to make handles for a procedure. From then on the table's indexes
    /// are not dropped but with the table, since handles say which of them they mean by position.
    ///
    /// # Errors
    /// 42P01, 42703 or 42804: no such table or column, or of another type.
    pub fn with_table<R>(
        &self,
        name: &str,
        look: impl FnOnce(TableHandle, &Table) -> Result<R, HandleError>,
    ) -> Result<R, SqlError> {
        let _fixed = self.inner.definitions.read();
        let table = self.table_called(name)?;
        self.inner.handed_out.lock().insert(table.id);
        let handle = TableHandle::new(table.id, table.is_shared());
        let result = self.inner.partitions.with_table(handle, PartitionId(0), |table| look(handle, table));
        result.map_err(|error| {
            let state = match error {
                HandleError::NoColumn(_) => SqlState::UNDEFINED_COLUMN,
                HandleError::NoIndex(_) => SqlState::UNDEFINED_OBJECT,
                HandleError::WrongType { .. } => SqlState::DATATYPE_MISMATCH,
            };
            SqlError::new(state, error.to_string())
        })
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.inner.catalog.read())
    }

    /// Live rows of a table, over all partitions.
    pub fn row_count(&self, table: TableId) -> u64 {
        let _fixed = self.inner.definitions.read();
        let Some(def) = self.catalog().table(table).cloned() else { return 0 };
        let handle = TableHandle::new(table, def.is_shared());
        let partitions = if def.is_shared() { 1 } else { self.inner.partitions.count() };
        let count = |p| self.inner.partitions.with_table(handle, PartitionId(p), Table::row_count);
        (0..partitions).map(count).sum()
    }

    /// What happened so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            transactions: self.inner.partitions.counters(),
            snapshots: self.inner.sessions.statistics(),
        }
    }

    /// Forgets the pauses of executors seen so far, for a new measurement.
    pub fn reset_pauses(&self) {
        self.inner.partitions.reset_pauses();
    }

    /// Memory by kind.
    pub fn memory(&self) -> MemoryReport {
        let usage = self.inner.partitions.memory();
        let sum = |f: fn(&albireo_storage::TableMemory) -> u64| usage.tables.iter().map(|(.., m)| f(m)).sum();
        MemoryReport {
            rows_bytes: sum(|m| m.blocks_bytes + m.frozen_bytes),
            strings_bytes: sum(|m| m.heaps_bytes),
            indexes_bytes: sum(|m| m.indexes_bytes),
            undo_bytes: usage.undo_bytes,
            snapshots_bytes: self.inner.partitions.registry().counters().held_bytes,
            queries_bytes: self.inner.olap.memory_used_bytes() as u64,
            kept_bytes: self.inner.olap.memory_kept_bytes() as u64,
            in_use_bytes: self.inner.pool.in_use_bytes(),
            reserved_bytes: self.inner.pool.reserved_bytes(),
        }
    }

    /// Takes memory for data from the system ahead of need, until `bytes` in all are there or the limit
    /// is reached, and touches it on this thread: what grows into it later never waits for the system.
    /// Between two steps of 2 MiB it tells how many bytes are there, and stops when told to.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// let db = Database::in_memory(Config::default())?;
    /// db.preallocate(16 << 20, |_| true);
    /// assert!(db.memory().reserved_bytes >= 16 << 20);
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    pub fn preallocate(&self, bytes: u64, mut go_on: impl FnMut(u64) -> bool) {
        while go_on(self.inner.pool.reserved_bytes()) && self.inner.pool.preallocate_slab(bytes) {}
    }

    /// The files that queries have spilled, for a process that is about to end without closing the database: they
    /// can be removed at any time, from any thread. The handle does not keep the database open.
    pub fn spill_files(&self) -> Option<SpillFiles> {
        self.inner.olap.spill_files().cloned()
    }

    /// The number of partitions.
    pub fn partitions(&self) -> u16 {
        self.inner.partitions.count()
    }

    /// Starts the executor threads, once.
    pub(crate) fn start_executors(&self) -> Result<(), SqlError> {
        let mut threads = self.inner.threads.lock();
        if !threads.executors.is_empty() {
            return Ok(());
        }
        for partition in 0..self.inner.partitions.count() {
            let executor = self.inner.partitions.executor(PartitionId(partition));
            let thread = albireo_env::spawn(&format!("albireo-part-{partition}"), move || executor.run());
            threads.executors.push(thread.map_err(no_thread)?);
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn explain_call(&self, error: CallError) -> SqlError {
        let catalog = self.catalog();
        let key_of = |table, index, tid| self.key_of(&catalog, table, index, tid);
        self.with_why_full(crate::errors::call(&Explainer { catalog: &catalog, key_of: &key_of }, error))
    }

    /// What a table's error means that no transaction met.
    #[cold]
    pub(crate) fn explain_table(&self, error: TableError) -> SqlError {
        self.explain_call(CallError::Aborted(Abort::Table(error)))
    }

    /// What a fault among rows that were to be appended means.
    #[cold]
    pub(crate) fn explain_fault(&self, fault: &RowFault) -> SqlError {
        let catalog = self.catalog();
        self.with_why_full(Explainer { catalog: &catalog, key_of: &|_, _, _| None }.row(fault))
    }

    /// The key of the row in the way of another. It may have changed since; then it says nothing.
    fn key_of(&self, catalog: &Catalog, table: TableId, index: IndexId, tid: Tid) -> Option<Vec<Value>> {
        let def = catalog.table(table)?;
        let columns = &def.indexes.get(index.index())?.columns;
        // Which partition is not known; with several, a row of another would be a lie.
        if !def.is_shared() && self.inner.partitions.count() > 1 {
            return None;
        }
        let handle = TableHandle::new(table, def.is_shared());
        let value = |table: &Table| {
            unless_away(|| table.is_live(tid).then(|| columns.iter().map(|&c| table.value(tid, c)).collect()))
        };
        let ask = || {
            let _fixed = self.inner.definitions.try_read()?;
            Some(self.inner.partitions.with_table(handle, PartitionId(0), value))
        };
        match ask()? {
            Ok(key) => key,
            // The partition's owner waits for no disk. What was fetched stays while it is held.
            Err(away) => {
                away.fetch().ok()?;
                ask()?.ok()?
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(spill) = self.olap.spill_files() {
            spill.remove();
        }
        self.partitions.close();
        self.pool.stop_toucher();
        let Threads { toucher, executors, log } = std::mem::take(&mut *self.threads.lock());
        for thread in executors.into_iter().chain(toucher) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
        self.partitions.drain();
        if let Some(log) = self.partitions.log() {
            // What was acknowledged is durable already; who closes without waiting for the rest has seen
            // why it is not, or did not want to know.
            let _ = log.close();
        }
        if let Some(thread) = log {
            let _ = thread.join();
        }
    }
}

fn olap_config(config: &Config, env: &Env) -> OlapConfig {
    OlapConfig {
        threads: config.query_threads,
        memory_limit_bytes: config.query_memory_bytes,
        query_memory_limit_bytes: config.query_limit_bytes,
        spill_directory: Some(config.spill_directory.clone().unwrap_or_else(std::env::temp_dir)),
        spill_limit_bytes: config.spill_limit_bytes,
        clock: env.clock.clone(),
        disk: Arc::clone(&env.disk),
        on_thread_start: Some(Arc::new(|| {
            // Without permission queries run at the executors' priority.
            let _ = albireo_env::lower_priority();
        })),
        ..OlapConfig::default()
    }
}
