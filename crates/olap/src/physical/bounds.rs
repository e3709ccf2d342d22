//! What rows still matter to least and greatest values, told to the scan below.
//!
//! DataFusion's aggregation of nothing but least and greatest values makes a dynamic filter of those that it has met, by
//! which scans prune chunks. It forgets functions of other than columns, and those whose columns had nothing but NULLs so
//! far. So its place is taken, and the filter made here.
//! **Invariant:** a row that the filter refuses changes no result. So it refuses none while a value has not been met.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, Literal, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use parking_lot::Mutex;

/// The filter, and the values that all partitions have met.
#[derive(Debug)]
pub(super) struct Bounds {
    filter: Arc<dyn PhysicalExpr>,
    met: Mutex<Vec<Bound>>,
}

/// What one function has met.
#[derive(Debug)]
struct Bound {
    column: Arc<dyn PhysicalExpr>,
    /// Whether its greatest value is wanted, or its least.
    greatest: bool,
    value: ScalarValue,
}

impl Bounds {
    /// Those of an aggregation, if it has such a filter and all its functions are of columns.
    pub(super) fn of(aggregate: &AggregateExec) -> Option<Self> {
        let filter = aggregate.dynamic_expressions_produced().pop()?;
        let bound = |function: &Arc<AggregateFunctionExpr>| {
            let (field, greatest) = function.get_minmax_desc()?;
            let value = ScalarValue::try_new_null(field.data_type()).ok()?;
            let column = function.expressions().pop().filter(|argument| argument.is::<Column>())?;
            Some(Bound { column, greatest, value })
        };
        let met = aggregate.aggr_expr().iter().map(bound).collect::<Option<_>>()?;
        Some(Self { filter, met: Mutex::new(met) })
    }

    /// The filter.
    pub(super) fn filter(&self) -> &Arc<dyn PhysicalExpr> {
        &self.filter
    }

    /// Tells which value each function has come to in one partition.
    pub(super) fn meet(&self, values: Vec<ScalarValue>) -> Result<()> {
        let mut met = self.met.lock();
        let mut changed = false;
        for (bound, value) in met.iter_mut().zip(values) {
            if bound.is_passed_by(&value) {
                (bound.value, changed) = (value, true);
            }
        }
        if !changed || met.iter().any(|bound| bound.value.is_null()) {
            return Ok(());
        }
        let either = |a, b| -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(a, Operator::Or, b)) };
        let filter = met.iter().map(Bound::filter).reduce(either);
        self.update(filter.unwrap_or_else(|| lit(true)))
    }

    /// Forgets all values: the rows come once more.
    pub(super) fn forget(&self) -> Result<()> {
        let mut met = self.met.lock();
        for bound in met.iter_mut() {
            bound.value = ScalarValue::try_new_null(&bound.value.data_type())?;
        }
        self.update(lit(true))
    }

    fn update(&self, filter: Arc<dyn PhysicalExpr>) -> Result<()> {
        self.filter
            .downcast_ref::<DynamicFilterPhysicalExpr>()
            .map_or(Ok(()), |dynamic| dynamic.update(filter))
    }
}

impl Bound {
    fn is_passed_by(&self, value: &ScalarValue) -> bool {
        let beyond = if self.greatest { Ordering::Greater } else { Ordering::Less };
        !value.is_null() && (self.value.is_null() || value.partial_cmp(&self.value) == Some(beyond))
    }

    /// The rows that would change it.
    fn filter(&self) -> Arc<dyn PhysicalExpr> {
        let beyond = if self.greatest { Operator::Gt } else { Operator::Lt };
        let value = Arc::new(Literal::new(self.value.clone()));
        Arc::new(BinaryExpr::new(Arc::clone(&self.column), beyond, value))
    }
}
