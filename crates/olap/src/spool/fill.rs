//! The rows of a spool: kept in memory up to its share of the query's, the rest in a temporary file.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::{ExecutionPlan, SpillManager, execute_stream};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;

use crate::errors::{external, internal};

/// Rows that are all there.
pub(super) struct Rows {
    pub(super) batches: Vec<RecordBatch>,
    /// Those after them.
    spilled: Option<Spilled>,
    /// Held as long as the rows are.
    _memory: MemoryReservation,
}

/// Rows in a temporary file, which goes when the last reader has.
struct Spilled {
    manager: SpillManager,
    file: Arc<dyn datafusion::execution::SpillFile>,
}

type Filled = Result<Arc<Rows>, Arc<DataFusionError>>;

/// One execution of a spool. It is filled when the first of its readers asks for rows.
#[derive(Default)]
pub(super) struct Spool {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    /// Nobody has said what fills it.
    #[default]
    New,
    /// By this plan, once it is asked.
    Waiting(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    /// It is filled, or being filled.
    Filling(Shared<BoxFuture<'static, Filled>>),
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spool")
    }
}

impl Spool {
    /// Says what fills it, once.
    pub(super) fn is_filled_by(&self, plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) {
        let mut state = self.state.lock();
        if matches!(*state, State::New) {
            *state = State::Waiting(Arc::clone(plan), Arc::clone(context));
        }
    }

    /// All its rows.
    pub(super) async fn rows(&self) -> Result<Arc<Rows>> {
        let filling = self.filling()?;
        filling.await.map_err(DataFusionError::Shared)
    }

    fn filling(&self) -> Result<Shared<BoxFuture<'static, Filled>>> {
        let mut state = self.state.lock();
        match std::mem::take(&mut *state) {
            State::New => Err(external(internal("nothing fills a spool"))),
            State::Waiting(plan, context) => {
                let task = SpawnedTask::spawn(fill(plan, context));
                let filled = task.join_unwind().map(|filled| match filled {
                    Ok(rows) => rows.map(Arc::new).map_err(Arc::new),
                    Err(gone) => Err(Arc::new(DataFusionError::ExecutionJoin(Box::new(gone)))),
                });
                let filling = filled.boxed().shared();
                *state = State::Filling(filling.clone());
                Ok(filling)
            }
            State::Filling(filling) => {
                *state = State::Filling(filling.clone());
                Ok(filling)
            }
        }
    }
}

/// Runs a plan to its end.
async fn fill(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Rows> {
    let schema = plan.schema();
    let memory = MemoryConsumer::new("rows of WITH").register(context.memory_pool());
    // Readers, above all joins, need the other half.
    let share = match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(limit) => limit / 2,
        _ => usize::MAX,
    };
    let environment = context.runtime_env();
    let spills = environment.disk_manager.tmp_files_enabled();
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let manager = SpillManager::new(environment, metrics, schema);
    let mut file = None;
    let mut batches = Vec::new();
    let mut stream = execute_stream(plan, context)?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        if file.is_none() {
            let bytes = get_record_batch_memory_size(&batch);
            let fits = memory.size().saturating_add(bytes) <= share || !spills;
            match fits.then(|| memory.try_grow(bytes)) {
                Some(Ok(())) => {
                    batches.push(batch);
                    continue;
                }
                Some(Err(error)) if !spills => return Err(error),
                _ => file = Some(manager.create_in_progress_file("rows of WITH")?),
            }
        }
        if let Some(file) = &mut file {
            file.append_batch(&batch)?;
        }
    }
    let file = file.map(|mut file| file.finish()).transpose()?.flatten();
    let spilled = file.map(|file| Spilled { manager, file });
    Ok(Rows { batches, spilled, _memory: memory })
}

impl Rows {
    /// The rows that are in a file.
    pub(super) fn spilled(&self) -> Result<Option<SendableRecordBatchStream>> {
        let read = |spilled: &Spilled| spilled.manager.read_spill_as_stream(Arc::clone(&spilled.file), None);
        self.spilled.as_ref().map(read).transpose()
    }
}
