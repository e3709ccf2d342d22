//! Running prepared queries: cancellation, time and memory limits, streams of results.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use albireo_base::budget::Budget;
use albireo_base::{SqlError, SqlState, Value};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use futures::future::Either;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::context::{CancelToken, QueryContext};
use crate::engine::{Olap, Shared};
use crate::errors::{cancelled, from_panic, internal, timed_out, to_sql_error};
use crate::output::{self, OutputColumn};
use crate::pool::QueryPool;
use crate::prepare::{CachedPlan, Prepared};
use crate::relation::Snapshot;
use crate::{files, guard};

/// How to run one query.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Stops the query.
    pub cancel: CancelToken,
    /// Ends the query with 57014 when it takes longer.
    pub timeout: Option<Duration>,
    /// Its parallelism; `None` takes the engine's.
    pub threads: Option<usize>,
    /// Bytes it may hold; `None` takes the engine's limit for one query.
    pub memory_limit_bytes: Option<usize>,
}

/// A complete result.
#[derive(Clone, Debug)]
pub struct QueryOutput {
    /// The columns.
    pub columns: Vec<OutputColumn>,
    /// The Arrow schema of the batches.
    pub schema: SchemaRef,
    /// The rows, in memory of their own.
    pub batches: Vec<RecordBatch>,
    /// Time from the call to the finished physical plan.
    pub planning: Duration,
    /// Time from there to the last row.
    pub execution: Duration,
    /// Most bytes the query's operators held at once.
    pub peak_memory_bytes: usize,
}

impl QueryOutput {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The next batch of a stream, to come.
pub type BoxedBatch<'a> = Pin<Box<dyn Future<Output = Option<Result<RecordBatch, SqlError>>> + Send + 'a>>;

/// A result as it is computed. Columns of NUMERIC of any scale are texts in it.
pub struct QueryStream {
    columns: Vec<OutputColumn>,
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    /// Of this query alone: the client's token also belongs to what its statement does next.
    cancel: CancelToken,
}

impl QueryStream {
    /// The columns.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` at the end. After an error the stream is at its end.
    pub fn next_batch(&mut self) -> BoxedBatch<'_> {
        Box::pin(self.batches.recv())
    }

    /// The next batch, waiting on this thread, which must not be one that drives futures.
    pub fn next_blocking(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        futures::executor::block_on(self.next_batch())
    }
}

impl fmt::Debug for QueryStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryStream").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Drop for QueryStream {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// A future that any executor can drive.
pub type BoxedRun = Pin<Box<dyn Future<Output = Result<QueryOutput, SqlError>> + Send>>;

/// One run: everything it needs, owned.
struct Run {
    engine: Olap,
    prepared: Arc<Prepared>,
    parameters: Vec<Value>,
    context: Arc<QueryContext>,
    options: RunOptions,
}

/// A physical plan ready to deliver.
pub(crate) struct Started {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) stream: SendableRecordBatchStream,
    pub(crate) pool: Arc<QueryPool>,
    pub(crate) logical: LogicalPlan,
    /// What was computed before, or would be.
    pub(crate) once: Vec<(LogicalPlan, Arc<dyn ExecutionPlan>)>,
}

/// What a start is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The rows.
    Rows,
    /// The plan alone: nothing is computed, so that values of queries that are computed before stay open.
    Plan,
}

impl Olap {
    /// Runs a query and waits for its whole result.
    ///
    /// # Errors
    /// Whatever the query's expressions raise; 57014 when cancelled or out of time, 53200 out of
    /// memory, 53100 out of disk, 72000 when the snapshot was taken back.
    pub fn run(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
    ) -> Result<QueryOutput, SqlError> {
        let run = Run::new(self, prepared, parameters, snapshot, options);
        self.wait_for(run.collect())
    }

    /// The same as a future. Dropping it cancels the query.
    pub fn run_async(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
    ) -> BoxedRun {
        let run = Run::new(self, prepared, parameters, snapshot, options);
        let task = self.shared.handle().spawn(run.collect());
        Box::pin(async move {
            let mut task = AbortOnDrop(task);
            match (&mut task.0).await {
                Ok(result) => result,
                Err(e) if e.is_panic() => Err(from_panic(&*e.into_panic())),
                Err(_) => Err(internal("the query's task was dropped")),
            }
        })
    }

    /// Starts a query and delivers its rows as they come. At most a few batches wait to be
    /// fetched; dropping the stream cancels the query.
    pub fn run_stream(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        mut options: RunOptions,
    ) -> QueryStream {
        let (sender, batches) = mpsc::channel(4);
        options.cancel = options.cancel.child();
        let cancel = options.cancel.clone();
        let run = Run::new(self, prepared, parameters, snapshot, options);
        let columns = prepared.streamed();
        let schema = output::schema_of(&columns);
        self.shared.handle().spawn(run.deliver(sender, Arc::clone(&schema)));
        QueryStream { columns, schema, batches, cancel }
    }
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<Result<T, SqlError>>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Run {
    fn new(
        engine: &Olap,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
    ) -> Self {
        let context = QueryContext { snapshot: Arc::clone(snapshot), cancel: options.cancel.clone() };
        Self {
            engine: engine.clone(),
            prepared: Arc::clone(prepared),
            parameters: parameters.to_vec(),
            context: Arc::new(context),
            options,
        }
    }

    /// The whole result.
    async fn collect(self) -> Result<QueryOutput, SqlError> {
        let begin = Instant::now();
        let deadline = self.options.timeout.map(|timeout| begin + timeout);
        let run = Arc::new(self);
        let work = {
            let run = Arc::clone(&run);
            async move {
                let mut started = run.start().await?;
                let planned = Instant::now();
                let mut result = output::Collector::new(run.prepared.columns(), &started.stream.schema());
                while let Some(batch) = started.stream.next().await {
                    result.add(batch.map_err(|e| to_sql_error(&e))?)?;
                }
                Ok((result.finish()?, planned, started.pool.peak_bytes()))
            }
        };
        let (result, planned, peak_memory_bytes) = run.guard(deadline, work).await?;
        Ok(QueryOutput {
            columns: result.columns,
            schema: result.schema,
            batches: result.batches,
            planning: planned - begin,
            execution: planned.elapsed(),
            peak_memory_bytes,
        })
    }

    /// The result batch by batch.
    async fn deliver(self, sender: mpsc::Sender<Result<RecordBatch, SqlError>>, schema: SchemaRef) {
        let deadline = self.options.timeout.map(|timeout| Instant::now() + timeout);
        let run = Arc::new(self);
        let work = {
            let (run, sender) = (Arc::clone(&run), sender.clone());
            async move {
                let mut started = run.start().await?;
                while let Some(batch) = started.stream.next().await {
                    let batch = output::finish(&batch.map_err(|e| to_sql_error(&e))?, &schema)?;
                    if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
                        break;
                    }
                }
                Ok(())
            }
        };
        if let Err(e) = run.guard(deadline, work).await {
            // The receiver may be gone; then nobody wants the error either.
            let _ = sender.send(Err(e)).await;
        }
    }

    async fn start(&self) -> Result<Started, SqlError> {
        let context = Arc::clone(&self.context);
        let (shared, options) = (&self.engine.shared, &self.options);
        start(shared, &self.prepared, &self.parameters, context, options, Purpose::Rows).await
    }

    /// Runs `work` as a task of its own until it ends, is cancelled or is out of time; panics
    /// become errors. A task that is given up stops at its next batch.
    async fn guard<T: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        let mut task = AbortOnDrop(self.engine.shared.handle().spawn(work));
        let stop = std::pin::pin!(self.stop(deadline));
        match futures::future::select(&mut task.0, stop).await {
            Either::Left((Ok(result), _)) => result.map_err(|e| self.reason(e, deadline)),
            Either::Left((Err(e), _)) if e.is_panic() => Err(from_panic(&*e.into_panic())),
            Either::Left((Err(_), _)) => Err(cancelled()),
            Either::Right((error, _)) => Err(error),
        }
    }

    /// Ends when the query is to be given up, with the reason.
    async fn stop(&self, deadline: Option<Instant>) -> SqlError {
        let cancel = &self.context.cancel;
        match deadline {
            Some(deadline) => {
                if tokio::time::timeout_at(deadline, cancel.wait()).await.is_err() {
                    // Operators look at the token between batches.
                    cancel.cancel();
                    return timed_out();
                }
            }
            None => cancel.wait().await,
        }
        cancelled()
    }

    /// A scan stops with "cancelled" whatever the reason; this finds the reason.
    fn reason(&self, error: SqlError, deadline: Option<Instant>) -> SqlError {
        if error.state() != SqlState::QUERY_CANCELED {
            return error;
        }
        if self.context.snapshot.is_cancelled() {
            return SqlError::new(
                SqlState::SNAPSHOT_TOO_OLD,
                "the snapshot was taken back to free its memory",
            )
            .with_hint("Raise the snapshots' memory budget, or keep query sessions shorter.");
        }
        match deadline {
            Some(deadline) if Instant::now() >= deadline => timed_out(),
            _ => error,
        }
    }
}

/// Planning may take so much, however little a query may: some thousand nodes.
pub const LEAST_PLANNING_BYTES: usize = 16 << 20;

/// What planning a run may take. Whoever cancels the run, or ends it when its time is over, ends this too.
fn planning_budget(limit_bytes: usize, context: &Arc<QueryContext>) -> Arc<Budget> {
    let context = Arc::clone(context);
    let interrupt = move || if context.is_cancelled() { Err(cancelled()) } else { Ok(()) };
    Budget::new(limit_bytes.max(LEAST_PLANNING_BYTES), Box::new(interrupt))
}

/// Plans a run and starts its stream.
pub(crate) async fn start(
    shared: &Shared,
    prepared: &Prepared,
    parameters: &[Value],
    context: Arc<QueryContext>,
    options: &RunOptions,
    purpose: Purpose,
) -> Result<Started, SqlError> {
    shared.check_clock()?;
    let limit = options.memory_limit_bytes.unwrap_or(shared.config.query_memory_limit_bytes);
    let budget = planning_budget(limit, &context);
    let threads = options.threads.unwrap_or(shared.config.threads).max(1);
    let pool = Arc::new(shared.query_pool(limit));
    let state = shared.query_state(Arc::clone(&context), threads, &pool)?;
    let mut arguments = prepared.arguments(parameters)?;
    let logical_of = |plan: &CachedPlan, arguments: &[ScalarValue]| {
        budget.within(|| {
            let optimized = prepared.optimized(plan, shared, &context.snapshot)?;
            let optimized = match purpose {
                Purpose::Rows => optimized,
                Purpose::Plan => optimized.left_open(arguments.len())?,
            };
            prepared.bind(optimized, arguments, &state)
        })
    };
    let mut once = Vec::with_capacity(prepared.once().len());
    for plan in prepared.once() {
        let logical = logical_of(plan, &arguments)?;
        let plan = physical(&logical, &state, &context).await?;
        once.push((logical, Arc::clone(&plan)));
        if purpose == Purpose::Rows {
            let task = shared.task_context(&state, Arc::clone(&pool) as _);
            let stream = execute_stream(plan, task).map_err(|e| to_sql_error(&e))?;
            arguments.append(&mut one_row(stream).await?);
        }
    }
    let logical = logical_of(prepared.plan(), &arguments)?;
    let plan = physical(&logical, &state, &context).await?;
    let task = shared.task_context(&state, Arc::clone(&pool) as _);
    let stream = execute_stream(Arc::clone(&plan), task).map_err(|e| to_sql_error(&e))?;
    Ok(Started { plan, stream, pool, logical, once })
}

/// The operators of a plan.
async fn physical(
    logical: &LogicalPlan,
    state: &SessionState,
    context: &Arc<QueryContext>,
) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
    let planning = state.query_planner().create_physical_plan(logical, state);
    let planned = match files::reads_parquet(logical) {
        true => files::unless_damaged("a file that the query reads", planning).await,
        false => planning.await,
    };
    guard::cancellable(planned.map_err(|e| to_sql_error(&e))?, context).map_err(|e| to_sql_error(&e))
}

/// The values of the first row; NULLs if there is none.
async fn one_row(mut stream: SendableRecordBatchStream) -> Result<Vec<ScalarValue>, SqlError> {
    let schema = stream.schema();
    let mut values = None;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|e| to_sql_error(&e))?;
        if values.is_none() && batch.num_rows() > 0 {
            let first = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, 0));
            values = Some(first.collect::<Result<_, _>>().map_err(|e| to_sql_error(&e))?);
        }
    }
    let nulls = || schema.fields().iter().map(|field| ScalarValue::try_new_null(field.data_type()));
    match values {
        Some(values) => Ok(values),
        None => nulls().collect::<Result<_, _>>().map_err(|e| to_sql_error(&e)),
    }
}
