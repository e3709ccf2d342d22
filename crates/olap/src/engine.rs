//! The engine: its threads, memory, temporary files and DataFusion session.
//!
//! Responsible for: everything all queries share. Not responsible for: a single statement
//! ([`crate::prepare`], [`crate::run`]).

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use albireo_base::budget::Budget;
use albireo_base::{SqlError, SqlState};
use albireo_env::{Clock, Disk, RealDisk};
use arrow::temporal_conversions::timestamp_us_to_datetime;
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use futures::future::Either;
use parking_lot::Mutex;

use crate::context::QueryContext;
use crate::errors::{internal, to_sql_error};
use crate::pool::{Account, QueryPool};
use crate::scan::Caches;
use crate::scan::members::MOST_VALUES;
use crate::scan::provider::READERS;
use crate::spill::SpillFiles;
use crate::{nodes, physical};

/// How the engine is set up.
#[derive(Clone)]
pub struct OlapConfig {
    /// Threads, and the parallelism of one query unless it asks for less.
    pub threads: usize,
    /// Bytes all queries together may hold.
    pub memory_limit_bytes: usize,
    /// Bytes one query may hold unless it asks otherwise.
    pub query_memory_limit_bytes: usize,
    /// Where queries spill; `None` means they fail with 53200 instead.
    pub spill_directory: Option<PathBuf>,
    /// Bytes all queries together may spill.
    pub spill_limit_bytes: u64,
    /// Rows in a batch between operators.
    pub batch_rows: usize,
    /// What `now()` is.
    pub clock: Clock,
    /// Where CSV and JSON files are. DataFusion reads Parquet, from the real disk.
    pub disk: Arc<dyn Disk>,
    /// Called on each thread when it starts; the place to lower its scheduling priority.
    pub on_thread_start: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for OlapConfig {
    fn default() -> Self {
        Self {
            threads: 1,
            memory_limit_bytes: 4 << 30,
            query_memory_limit_bytes: 2 << 30,
            spill_directory: None,
            spill_limit_bytes: 64 << 30,
            batch_rows: albireo_base::ids::CHUNK_ROWS,
            clock: Clock::real(),
            disk: Arc::new(RealDisk),
            on_thread_start: None,
        }
    }
}

impl fmt::Debug for OlapConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OlapConfig")
            .field("threads", &self.threads)
            .field("memory_limit_bytes", &self.memory_limit_bytes)
            .field("query_memory_limit_bytes", &self.query_memory_limit_bytes)
            .field("spill_directory", &self.spill_directory)
            .field("spill_limit_bytes", &self.spill_limit_bytes)
            .field("batch_rows", &self.batch_rows)
            .finish_non_exhaustive()
    }
}

/// How long the last to leave waits for queries that nobody waits for to end. They look about each millisecond.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Stack of a worker: planning recurses along the statement's nesting.
const THREAD_STACK_BYTES: usize = 16 << 20;

/// Time between two looks whether planning is to be ended.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// The analytical engine of one database. Cheap to clone.
#[derive(Clone)]
pub struct Olap {
    pub(crate) shared: Arc<Shared>,
}

/// What all clones share.
pub(crate) struct Shared {
    pub(crate) config: OlapConfig,
    runtime: Option<tokio::runtime::Runtime>,
    environment: RuntimeEnv,
    spill: Option<SpillFiles>,
    state: SessionState,
    pub(crate) caches: Caches,
}

impl fmt::Debug for Olap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Olap").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl Olap {
    /// Starts the engine's threads, and removes spill files of processes that were killed.
    ///
    /// # Errors
    /// The configuration makes no sense, or the threads cannot be started.
    pub fn new(config: OlapConfig) -> Result<Self, SqlError> {
        check(&config)?;
        let runtime = start_runtime(&config)?;
        let spill =
            config.spill_directory.as_ref().map(|base| SpillFiles::new(base, config.spill_limit_bytes));
        let environment = environment(&config, spill.as_ref())?;
        let state = session_state(&config);
        let caches = Caches::default();
        let shared = Shared { config, runtime: Some(runtime), environment, spill, state, caches };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The configuration in force.
    pub fn config(&self) -> &OlapConfig {
        &self.shared.config
    }

    /// Bytes all running queries hold now.
    pub fn memory_used_bytes(&self) -> usize {
        self.shared.environment.memory_pool.reserved()
    }

    /// Bytes of rows kept from earlier queries for later ones.
    pub fn memory_kept_bytes(&self) -> usize {
        self.shared.caches.kept.bytes()
    }

    /// Bytes of temporary files now.
    pub fn spill_used_bytes(&self) -> u64 {
        self.shared.spill.as_ref().map_or(0, SpillFiles::used_bytes)
    }

    /// The temporary files, to remove them; `None` if queries do not spill.
    pub fn spill_files(&self) -> Option<&SpillFiles> {
        self.shared.spill.as_ref()
    }
}

impl Shared {
    /// A handle to the engine's threads.
    pub(crate) fn handle(&self) -> &tokio::runtime::Handle {
        match &self.runtime {
            Some(runtime) => runtime.handle(),
            None => unreachable!("the runtime is taken only when the engine is dropped"),
        }
    }

    /// The session common to all queries, without a snapshot.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    pub(crate) fn options(&self) -> &Arc<ConfigOptions> {
        self.state.config_options()
    }

    /// A session for one run: its time, snapshot, parallelism and memory.
    ///
    /// # Errors
    /// 22008 if the machine's clock is beyond the range of timestamps.
    pub(crate) fn query_state(
        &self,
        context: Arc<QueryContext>,
        threads: usize,
        pool: &Arc<QueryPool>,
    ) -> Result<SessionState, SqlError> {
        let mut state = self.state.clone();
        let options = Account::put(state.config_options(), pool);
        let properties = state.execution_props_mut();
        let now = timestamp_us_to_datetime(self.config.clock.unix_us()).ok_or_else(unset_clock)?;
        properties.query_execution_start_time = Some(now.and_utc());
        properties.alias_generator = Arc::default();
        let account = Account::of(&options).cloned();
        properties.config_options = Some(options);
        let config = state.config_mut();
        // For rules over physical plans.
        account.into_iter().for_each(|account| config.options_mut().extensions.insert(account));
        if config.target_partitions() != threads {
            config.options_mut().execution.target_partitions = threads;
        }
        config.set_extension(context);
        Ok(state)
    }

    /// # Errors
    /// 22008 if the machine's clock shows a time before 1970: DataFusion would panic.
    pub(crate) fn check_clock(&self) -> Result<(), SqlError> {
        if self.config.clock.is_set() { Ok(()) } else { Err(unset_clock()) }
    }

    pub(crate) fn query_pool(&self, limit_bytes: usize) -> QueryPool {
        QueryPool::new(Arc::clone(&self.environment.memory_pool), limit_bytes)
    }

    pub(crate) fn task_context(&self, state: &SessionState, pool: Arc<dyn MemoryPool>) -> Arc<TaskContext> {
        let environment = RuntimeEnv { memory_pool: pool, ..self.environment.clone() };
        Arc::new(TaskContext::new(
            None,
            state.session_id().to_owned(),
            state.config().clone(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::new(environment),
        ))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // Its threads are waited for: a thread that ends while it is let go of takes the process with it
        // (`albireo_env::spawn_detached`). On a thread that others wait for, or one of its own, another one waits.
        if tokio::runtime::Handle::try_current().is_err() {
            return runtime.shutdown_timeout(LAST_WAIT);
        }
        let waiting = Arc::new(Mutex::new(Some(runtime)));
        let runtime = Arc::clone(&waiting);
        let end = move || {
            if let Some(runtime) = runtime.lock().take() {
                runtime.shutdown_timeout(LAST_WAIT);
            }
        };
        if albireo_env::spawn_detached("albireo-end", end).is_err()
            && let Some(runtime) = waiting.lock().take()
        {
            runtime.shutdown_background();
        }
    }
}

fn unset_clock() -> SqlError {
    let message = "the system clock is out of range: it is before 1970 or too far in the future";
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message).with_hint("Set the system's clock.")
}

fn check(config: &OlapConfig) -> Result<(), SqlError> {
    let bad = |what: &str| {
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("{what} must not be zero")))
    };
    match config {
        OlapConfig { threads: 0, .. } => bad("the number of analytical threads"),
        OlapConfig { batch_rows: 0, .. } => bad("the number of rows in a batch"),
        OlapConfig { memory_limit_bytes: 0, .. } => bad("the analytical memory limit"),
        _ => Ok(()),
    }
}

fn start_runtime(config: &OlapConfig) -> Result<tokio::runtime::Runtime, SqlError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        // As many as scan what is away. One more, so that cancellation and timers go on while all others compute.
        .worker_threads(config.threads * READERS + 1)
        .thread_name("albireo-olap")
        .thread_stack_size(THREAD_STACK_BYTES)
        .enable_time();
    if let Some(hook) = config.on_thread_start.clone() {
        builder.on_thread_start(move || hook());
    }
    builder.build().map_err(|e| {
        SqlError::new(SqlState::INSUFFICIENT_RESOURCES, "cannot start the analytical threads")
            .with_detail(e.to_string())
    })
}

fn environment(config: &OlapConfig, spill: Option<&SpillFiles>) -> Result<RuntimeEnv, SqlError> {
    let mode = match spill {
        Some(spill) => DiskManagerMode::Custom(Arc::new(spill.clone())),
        None => DiskManagerMode::Disabled,
    };
    let disk = DiskManagerBuilder::default().with_mode(mode);
    let top = NonZeroUsize::new(3).unwrap_or(NonZeroUsize::MIN);
    let pool = TrackConsumersPool::new(FairSpillPool::new(config.memory_limit_bytes), top);
    RuntimeEnvBuilder::new()
        .with_disk_manager_builder(disk)
        .with_memory_pool(Arc::new(pool))
        .build()
        .map_err(|e| to_sql_error(&e))
}

fn session_config(config: &OlapConfig) -> SessionConfig {
    let mut session = SessionConfig::new()
        .with_batch_size(config.batch_rows)
        .with_target_partitions(config.threads)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(false);
    let options = session.options_mut();
    options.optimizer.max_passes = 2;
    options.optimizer.join_reordering = false;
    options.optimizer.repartition_joins = false;
    options.optimizer.enable_round_robin_repartition = false;
    // Scans leave out rows that have none of these values. Batches of few rows may have room for many.
    options.optimizer.hash_join_inlist_pushdown_max_size = 1 << 20;
    options.optimizer.hash_join_inlist_pushdown_max_distinct_values = MOST_VALUES;
    // An array of four bytes a value beats a hash table of sixteen bytes a row by more than its size.
    options.execution.perfect_hash_join_small_build_threshold = 1 << 16;
    options.execution.perfect_hash_join_min_key_density = 0.08;
    // Whether a result may be NULL is seen later by some physical expressions than by logical ones. What may be
    // NULL to them alone never is.
    options.execution.skip_physical_aggregate_schema_check = true;
    options.execution.parquet.pushdown_filters = true;
    options.execution.time_zone = Some("UTC".to_owned());
    options.explain.show_sizes = false;
    session
}

/// The session common to all queries. It registers no functions: plans have those that they call.
fn session_state(config: &OlapConfig) -> SessionState {
    SessionStateBuilder::new()
        .with_config(session_config(config))
        .with_physical_optimizer_rules(physical::rules())
        .with_query_planner(Arc::new(nodes::Planner))
        .build()
}

impl Olap {
    /// Drives a future on the engine's threads and waits for it, whatever thread this is.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        self.shared.check_clock()?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.shared.handle().spawn(async move {
            let guarded = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(future));
            let result = guarded.await.unwrap_or_else(|p| Err(crate::errors::from_panic(&*p)));
            // The caller waits until it has the answer, so the channel is open.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or_else(|_| Err(internal("the query's thread went away")))
    }

    /// As [`Olap::wait_for`], of work within the caller's budget. If that is ended, the answer does not wait for
    /// the work, which ends at its next look.
    pub(crate) fn plan<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        let Some(budget) = Budget::current() else { return self.wait_for(future) };
        let mut future = Box::pin(future);
        let within = Arc::clone(&budget);
        let task = self
            .shared
            .handle()
            .spawn(std::future::poll_fn(move |context| within.within(|| future.as_mut().poll(context))));
        let ended = async move {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Err(error) = budget.within(albireo_base::budget::check) {
                    return error;
                }
            }
        };
        self.wait_for(async move {
            match futures::future::select(task, std::pin::pin!(ended)).await {
                Either::Left((Ok(result), _)) => result,
                Either::Left((Err(e), _)) if e.is_panic() => Err(crate::errors::from_panic(&*e.into_panic())),
                Either::Left((Err(_), _)) => Err(internal("planning was dropped")),
                Either::Right((error, _)) => Err(error),
            }
        })
    }
}
