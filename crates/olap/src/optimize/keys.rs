//! Keys of joins whose keys are equal where both are NULL.
//!
//! Such joins pair rows with those that were computed for them. DataFusion makes keys of equalities in a join's
//! condition, and moves a WHERE above an inner join into its condition; of NULLs these equalities are not true.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, NullEquality, Result};
use datafusion::logical_expr::utils::{conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerRule};

/// DataFusion's rule that makes keys of equalities; rows that have NULL there leave the join before.
#[derive(Debug, Default)]
pub(super) struct KeysOfEqualities(ExtractEquijoinPredicate);

impl OptimizerRule for KeysOfEqualities {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let plan = match plan {
            LogicalPlan::Join(mut join) if join.null_equality == NullEquality::NullEqualsNull => {
                let strict = |filter| strict(filter, join.left.schema(), join.right.schema());
                join.filter = join.filter.take().map(strict).transpose()?;
                LogicalPlan::Join(join)
            }
            other => other,
        };
        self.0.rewrite(plan, config)
    }
}

/// A condition whose equalities between the sides say that neither is NULL.
fn strict(condition: Expr, left: &DFSchema, right: &DFSchema) -> Result<Expr> {
    let mut parts = Vec::new();
    for part in split_conjunction_owned(condition) {
        if let Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) = &part
            && find_valid_equijoin_key_pair(a, b, left, right)?.is_some()
        {
            parts.extend([a.clone().is_not_null(), b.clone().is_not_null()]);
        }
        parts.push(part);
    }
    Ok(conjunction(parts).unwrap_or_else(|| datafusion::logical_expr::lit(true)))
}
