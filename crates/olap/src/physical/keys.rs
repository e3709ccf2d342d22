//! Joins on several integer columns become joins on one.
//!
//! TPC-C's keys are (warehouse, district, order): DataFusion hashes each column of each row and
//! compares each, while for one integer column in a narrow range it indexes an array. So the columns
//! are packed into one number, in which each takes as much room as its values in this snapshot need.
//! **Invariant:** two rows have the same packed key exactly if their keys are equal; what cannot equal
//! any key of the built side (another range, NULL) has a packed key that the built side has not.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{NullEquality, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};

use super::joins::with_other_keys;
use super::ranges;
use crate::pack::{Pack, Part};

/// The rule.
#[derive(Debug)]
pub(crate) struct PackJoinKeys;

impl PhysicalOptimizerRule for PackJoinKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_other_keys(plan, config, pack)
    }

    fn name(&self) -> &str {
        "pack_join_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The join on one packed key, if it can be.
fn pack(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let on = join.on();
    let plain = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
    if on.len() < 2 || !plain {
        return Ok(None);
    }
    let (left, right) = (join.left().schema(), join.right().schema());
    let mut ranges = Vec::with_capacity(on.len());
    for (l, r) in on {
        let ty = l.data_type(&left)?;
        if !Pack::takes(&ty) || r.data_type(&right)? != ty {
            return Ok(None);
        }
        let Some(range) = ranges::of(l, join.left()) else { return Ok(None) };
        ranges.push(range);
    }
    let parts = |exprs: Vec<&Arc<dyn PhysicalExpr>>| Part::of(exprs, &ranges);
    let lefts = parts(on.iter().map(|(l, _)| l).collect());
    let rights = parts(on.iter().map(|(_, r)| r).collect());
    let (Some(lefts), Some(rights)) = (lefts, rights) else { return Ok(None) };
    let keys = (Arc::new(Pack::of_built(lefts)) as _, Arc::new(Pack::of_probing(rights)) as _);
    HashJoinExecBuilder::from(join).with_on(vec![keys]).build_exec().map(Some)
}
