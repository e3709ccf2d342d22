//! The 22 CH queries on one thread, without load: our analytical engine against plain DataFusion over
//! the same batches in memory.
//!
//! `cargo build --release -p albireo-bench -p albireo-olap --examples`, both so that DataFusion is built
//! as everywhere else, then `target/release/examples/ch_plain [warehouses] [runs] [query,...]`. With
//! SHOW_PLANS set, our plans are printed as well. Times are milliseconds of processor time, medians of
//! the runs, which alternate. A query of ours may hold 2 GiB, one of plain DataFusion 4 GiB, each may
//! take a minute; means are over the queries that both finish. Ours are planned once (`prepare`) and
//! bound at each run; plain DataFusion plans each time, so its execution alone is shown as well.
#![allow(clippy::print_stdout, reason = "a program")]

#[path = "../tests/support/ch.rs"]
mod ch;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use albireo_base::SqlState;
use albireo_olap::{OlapConfig, RunOptions};
use ch::Size;
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use support::{Fixture, parse};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OUR_LIMIT_BYTES: usize = 2 << 30;
const PLAIN_LIMIT_BYTES: usize = 4 << 30;
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A query's result, or why there is none.
type Outcome<T> = Result<T, &'static str>;

/// Processor time of the whole process, in milliseconds.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A pool that remembers the most it gave out.
#[derive(Debug)]
struct PeakPool {
    pool: GreedyMemoryPool,
    peak_bytes: AtomicUsize,
}

impl fmt::Display for PeakPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for PeakPool {
    fn name(&self) -> &str {
        "peak"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.peak_bytes.fetch_max(self.pool.reserved(), Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        self.pool.try_grow(reservation, additional)?;
        self.peak_bytes.fetch_max(self.pool.reserved(), Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

/// Plain DataFusion.
struct Plain {
    runtime: tokio::runtime::Runtime,
    context: SessionContext,
    pool: Arc<PeakPool>,
}

/// What one run took: everything, and execution alone.
#[derive(Clone, Copy)]
struct Took {
    total_ms: f64,
    execution_ms: f64,
}

impl Plain {
    fn new(tables: &[(albireo_olap::relation::Relation, Vec<arrow::array::RecordBatch>)]) -> Self {
        let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(16_384);
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        let pool =
            PeakPool { pool: GreedyMemoryPool::new(PLAIN_LIMIT_BYTES), peak_bytes: AtomicUsize::new(0) };
        let pool = Arc::new(pool);
        let environment = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool) as _).build_arc();
        let context = SessionContext::new_with_config_rt(config, environment.expect("an environment"));
        for (relation, batches) in tables {
            let table = MemTable::try_new(relation.arrow_schema(), vec![batches.clone()]).expect("a table");
            context.register_table(relation.name.as_str(), Arc::new(table)).expect("a new name");
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_time().build().expect("a runtime");
        Self { runtime, context, pool }
    }

    fn run(&self, sql: &str) -> Outcome<Took> {
        self.pool.peak_bytes.store(0, Ordering::Relaxed);
        let (context, sql) = (self.context.clone(), sql.to_owned());
        let begin = cpu_ms();
        let mut task = self.runtime.spawn(async move {
            let plan = context.sql(&sql).await?.create_physical_plan().await?;
            let planned = cpu_ms();
            collect(plan, context.task_ctx()).await?;
            Ok::<_, DataFusionError>(planned)
        });
        let result = self.runtime.block_on(async { tokio::time::timeout(TIME_LIMIT, &mut task).await });
        let end = cpu_ms();
        match result {
            Ok(Ok(Ok(planned))) => Ok(Took { total_ms: end - begin, execution_ms: end - planned }),
            Ok(Ok(Err(error))) if is_memory(&error) => Err("memory"),
            Ok(_) => Err("error"),
            Err(_) => {
                task.abort();
                Err("timeout")
            }
        }
    }
}

fn is_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// The medians of alternating runs of one query.
struct Line {
    plain: Outcome<Took>,
    plain_peak_bytes: usize,
    ours: Outcome<Took>,
    our_peak_bytes: usize,
    rows: usize,
}

fn measure(plain: &Plain, ours: &Fixture, sql: &str, runs: i32) -> Line {
    let prepared = ours.olap.prepare(&ours.relations(), parse(sql)).expect("a query");
    let mut line =
        Line { plain: Err("not run"), plain_peak_bytes: 0, ours: Err("not run"), our_peak_bytes: 0, rows: 0 };
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for run in 0..runs {
        if run == 0 || line.plain.is_ok() {
            line.plain = plain.run(sql);
            line.plain_peak_bytes = line.plain_peak_bytes.max(plain.pool.peak_bytes.load(Ordering::Relaxed));
            theirs.extend(line.plain);
        }
        let options = RunOptions {
            timeout: Some(TIME_LIMIT),
            memory_limit_bytes: Some(OUR_LIMIT_BYTES),
            ..RunOptions::default()
        };
        let begin = cpu_ms();
        let output = ours.olap.run(&prepared, &[], &ours.snapshot(), options);
        let total_ms = cpu_ms() - begin;
        line.ours = match output {
            Ok(output) => {
                line.rows = output.rows();
                line.our_peak_bytes = line.our_peak_bytes.max(output.peak_memory_bytes);
                Ok(Took { total_ms, execution_ms: total_ms - output.planning.as_secs_f64() * 1e3 })
            }
            Err(error) if error.state() == SqlState::OUT_OF_MEMORY => Err("memory"),
            Err(error) if error.state() == SqlState::QUERY_CANCELED => Err("timeout"),
            Err(_) => Err("error"),
        };
        own.extend(line.ours);
        if line.ours.is_err() {
            break;
        }
    }
    let medians = |took: Vec<Took>| Took {
        total_ms: median(took.iter().map(|t| t.total_ms).collect()),
        execution_ms: median(took.iter().map(|t| t.execution_ms).collect()),
    };
    line.plain = line.plain.map(|_| medians(theirs));
    line.ours = line.ours.map(|_| medians(own));
    line
}

fn shown(outcome: Outcome<f64>) -> String {
    outcome.map_or_else(str::to_owned, |ms| format!("{ms:.2}"))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: i32| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (size, runs) = (Size::full(number(0, 5)), number(1, 5));
    let only: Option<Vec<u32>> =
        arguments.get(2).map(|list| list.split(',').filter_map(|q| q.parse().ok()).collect());
    let tables = ch::tables(size);
    let plain = Plain::new(&tables);
    let ours = Fixture::with_config(tables, OlapConfig { threads: 1, ..Default::default() });
    println!("query    plain  execution  albireo  planning  ratio    rows  plain MiB  albireo MiB");
    let (mut plain_log, mut execution_log, mut our_log, mut both) = (0.0, 0.0, 0.0, 0);
    for (query, sql) in ch::queries(size) {
        if only.as_ref().is_some_and(|only| !only.contains(&query)) {
            continue;
        }
        let line = measure(&plain, &ours, &sql, runs);
        let mut ratio = String::new();
        if let (Ok(theirs), Ok(own)) = (line.plain, line.ours) {
            plain_log += theirs.total_ms.ln();
            execution_log += theirs.execution_ms.ln();
            our_log += own.total_ms.ln();
            both += 1;
            ratio = format!("{:.2}", theirs.total_ms / own.total_ms);
        }
        println!(
            "Q{query:<4} {:>8}  {:>9} {:>8}  {:>8} {ratio:>6} {:7} {:10} {:12}",
            shown(line.plain.map(|t| t.total_ms)),
            shown(line.plain.map(|t| t.execution_ms)),
            shown(line.ours.map(|t| t.total_ms)),
            shown(line.ours.map(|t| t.total_ms - t.execution_ms)),
            line.rows,
            line.plain_peak_bytes >> 20,
            line.our_peak_bytes >> 20,
        );
        if std::env::var_os("SHOW_PLANS").is_some() {
            show_plan(&ours, &sql);
        }
    }
    let mean = |log: f64| (log / f64::from(both.max(1))).exp();
    println!(
        "geometric means over {both} queries: plain {:.2} ms, its execution {:.2} ms, albireo {:.2} ms; \
         plain / albireo {:.2}, execution / albireo {:.2}",
        mean(plain_log),
        mean(execution_log),
        mean(our_log),
        mean(plain_log - our_log),
        mean(execution_log - our_log),
    );
}

fn show_plan(ours: &Fixture, sql: &str) {
    let prepared = ours.olap.prepare(&ours.relations(), parse(sql)).expect("a query");
    match ours.olap.explain_analyze(&prepared, &[], &ours.snapshot(), RunOptions::default()) {
        Ok(text) => println!("{text}"),
        Err(error) => println!("{error}"),
    }
}
