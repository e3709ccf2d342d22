//! EXPLAIN and EXPLAIN ANALYZE as text.

use std::sync::Arc;

use albireo_base::{SqlError, Value};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use futures::StreamExt;

use crate::engine::Olap;
use crate::errors::to_sql_error;
use crate::guard::without_guards;
use crate::prepare::Prepared;
use crate::relation::Snapshot;
use crate::run::{QueryContext, RunOptions, Started, start};

impl Olap {
    /// The logical and the physical plan the query would run with on this snapshot, one node a
    /// line.
    ///
    /// # Errors
    /// As [`Olap::run`], without running.
    pub fn explain(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
    ) -> Result<String, SqlError> {
        self.plan_text(prepared, parameters, snapshot, options, false)
    }

    /// Runs the query, throws its rows away, and gives the physical plan with what each operator
    /// measured.
    ///
    /// # Errors
    /// As [`Olap::run`].
    pub fn explain_analyze(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
    ) -> Result<String, SqlError> {
        self.plan_text(prepared, parameters, snapshot, options, true)
    }

    fn plan_text(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<dyn Snapshot>,
        options: RunOptions,
        analyze: bool,
    ) -> Result<String, SqlError> {
        let (engine, prepared) = (self.clone(), Arc::clone(prepared));
        let parameters = parameters.to_vec();
        let context =
            Arc::new(QueryContext { snapshot: Arc::clone(snapshot), cancel: options.cancel.clone() });
        self.wait_for(async move {
            let started = start(&engine.shared, &prepared, &parameters, context, &options).await?;
            if analyze { measured(started).await } else { Ok(planned(&started)) }
        })
    }
}

fn planned(started: &Started) -> String {
    let physical = DisplayableExecutionPlan::new(started.plan.as_ref());
    format!(
        "Logical plan\n{}\n\nPhysical plan\n{}",
        started.logical.display_indent(),
        without_guards(&physical.indent(false).to_string())
    )
}

async fn measured(mut started: Started) -> Result<String, SqlError> {
    let mut rows = 0;
    while let Some(batch) = started.stream.next().await {
        rows += batch.map_err(|e| to_sql_error(&e))?.num_rows();
    }
    let physical = DisplayableExecutionPlan::with_metrics(started.plan.as_ref());
    let peak = started.pool.peak_bytes();
    let text = without_guards(&physical.indent(false).to_string());
    Ok(format!("{text}\nrows: {rows}, peak memory: {peak} bytes"))
}
