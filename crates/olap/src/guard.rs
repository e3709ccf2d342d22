//! A plan node that lets a query be cancelled between the batches of an operator that can make
//! many rows out of few.
//!
//! Scans look at the token themselves. A join whose output explodes may not come back to its
//! scans for minutes; so the outputs of joins are guarded. Scans of files that DataFusion decodes are
//! guarded too, against panics: a damaged file makes some. Joins give batches without rows, which go no further.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use albireo_files::{Damaged, guarded};
use arrow::array::RecordBatch;
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::Result;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

use crate::context::QueryContext;
use crate::errors::{cancelled, external, internal};

/// Guards the outputs of all joins and file scans of a finished plan.
pub(crate) fn cancellable(
    plan: Arc<dyn ExecutionPlan>,
    query: &Arc<QueryContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let guarded = plan.transform_up(|node| {
        let is_join = node.is::<HashJoinExec>()
            || node.is::<NestedLoopJoinExec>()
            || node.is::<CrossJoinExec>()
            || node.is::<SortMergeJoinExec>();
        Ok(if is_join || node.is::<DataSourceExec>() {
            Transformed::yes(Arc::new(Guard { input: node, query: Arc::clone(query) }) as _)
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(guarded.data)
}

/// The node.
struct Guard {
    input: Arc<dyn ExecutionPlan>,
    query: Arc<QueryContext>,
}

impl Guard {
    fn over(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) => Ok(Arc::new(Self { input, query: Arc::clone(&self.query) })),
            _ => Err(external(internal("a guard has one input"))),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for Guard {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

const NAME: &str = "Guard";

/// A plan's text without its guards, whose inputs move left to their place.
pub(crate) fn without_guards(text: &str) -> String {
    let mut lines = Vec::new();
    // Indentations of the guards around the current line.
    let mut guards: Vec<usize> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        guards.retain(|guard| *guard < indent);
        if line.trim_start().starts_with(NAME) {
            guards.push(indent);
        } else {
            lines.push(&line[(2 * guards.len()).min(indent)..]);
        }
    }
    lines.join("\n")
}

impl ExecutionPlan for Guard {
    fn name(&self) -> &str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let query = Arc::clone(&self.query);
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        if self.input.is::<DataSourceExec>() {
            let decoded = Decoded { input, query };
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, decoded)));
        }
        let guarded = input.filter_map(move |batch| {
            std::future::ready(match query.is_cancelled() {
                true => Some(Err(external(cancelled()))),
                false => Some(batch).filter(has_rows),
            })
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, guarded)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(inputs.first().map_or_else(
            || {
                let unknown = Statistics::new_unknown(&self.schema());
                Arc::new(unknown.with_num_rows(Precision::Absent))
            },
            Arc::clone,
        ))
    }
}

/// Whether there is something to compute: constants are computed of a batch without rows too, and may fail.
fn has_rows(batch: &Result<RecordBatch>) -> bool {
    batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)
}

/// What DataFusion reads of a file, which may be damaged.
struct Decoded {
    input: SendableRecordBatchStream,
    query: Arc<QueryContext>,
}

impl Stream for Decoded {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.query.is_cancelled() {
            return Poll::Ready(Some(Err(external(cancelled()))));
        }
        match guarded(|| self.input.poll_next_unpin(context)) {
            Ok(poll) => poll,
            Err(Damaged) => {
                Poll::Ready(Some(Err(external(crate::files::damaged("a file that the query reads")))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_guards_keeps_the_tree() {
        let text = "A\n  Guard\n    Join\n      Guard\n        Join\n          B\n      C\n  D";
        assert_eq!(without_guards(text), "A\n  Join\n    Join\n      B\n    C\n  D");
    }
}
