//! EXPLAIN and EXPLAIN ANALYZE as text.

use std::sync::Arc;

use albireo_base::{SqlError, Value};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use futures::StreamExt;

use crate::context::QueryContext;
use crate::engine::Olap;
use crate::errors::to_sql_error;
use crate::guard::without_guards;
use crate::output::OutputColumn;
use crate::prepare::Prepared;
use crate::relation::Snapshot;
use crate::run::{Purpose, RunOptions, Started, start};

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
            let purpose = if analyze { Purpose::Rows } else { Purpose::Plan };
            let started = start(&engine.shared, &prepared, &parameters, context, &options, purpose).await?;
            let text = if analyze { measured(started).await? } else { planned(&started) };
            Ok(with_names(&text, prepared.columns()))
        })
    }
}

fn planned(started: &Started) -> String {
    let physical = DisplayableExecutionPlan::new(started.plan.as_ref());
    let once = started.once.iter().map(|(logical, plan)| {
        let physical = DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string();
        format!("Computed before\n{}\n\n{}\n", logical.display_indent(), without_guards(&physical))
    });
    let once: String = once.collect();
    format!(
        "{once}Logical plan\n{}\n\nPhysical plan\n{}",
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
    let once = started.once.iter().map(|(_, plan)| {
        let physical = DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false).to_string();
        format!("Computed before\n{}\n", without_guards(&physical))
    });
    let once: String = once.collect();
    Ok(format!("{once}{text}\nrows: {rows}, peak memory: {peak} bytes"))
}

/// What output columns are called in plans, before their number.
const INTERNAL: &str = "__c";

/// A plan's text in which the result's columns have the names their users know.
fn with_names(text: &str, columns: &[OutputColumn]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(INTERNAL) {
        let (before, found) = rest.split_at(at);
        let digits = found[INTERNAL.len()..].bytes().take_while(u8::is_ascii_digit).count();
        let (internal, after) = found.split_at(INTERNAL.len() + digits);
        let number = internal[INTERNAL.len()..].parse::<usize>();
        let known = number.ok().and_then(|number| columns.get(number)).map(|column| column.name.as_str());
        match known {
            // Nobody named it, so the plan need not either.
            Some(name) if name == internal => out.push_str(
                before.strip_suffix(" AS ").or_else(|| before.strip_suffix(" as ")).unwrap_or(before),
            ),
            Some(name) => {
                out.push_str(before);
                let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
                match plain {
                    true => out.push_str(name),
                    false => out.push_str(&format!("\"{name}\"")),
                }
            }
            None => {
                out.push_str(before);
                out.push_str(internal);
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType;

    #[test]
    fn text_of_a_plan_has_the_names_users_know() {
        let column = |name: &str| OutputColumn { name: name.to_owned(), ty: None, arrow: DataType::Int32 };
        let columns = [column("a"), column("?column?"), column("__c2")];
        let text = "Sort: __c0\n  Projection: t.a AS __c0, t.a + 1 AS __c1, t.b AS __c2, t.x AS __c9";
        let shown = "Sort: a\n  Projection: t.a AS a, t.a + 1 AS \"?column?\", t.b, t.x AS __c9";
        assert_eq!(with_names(text, &columns), shown);
    }
}
