//! DataFusion's filter pushdown, where names tell columns apart.
//!
//! The rule finds a filter's columns below a join again by their names. Where two have one name, as the
//! marks or counts of two subqueries always do, a filter moved down looks at the wrong one and keeps or
//! drops rows. Such plans keep their filters where they are; those on tables were moved down in the
//! logical plan before.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// A rule that runs only on plans none of whose steps gives two columns of one name.
pub(super) struct WhereNamesAreUnique(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl fmt::Debug for WhereNamesAreUnique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WhereNamesAreUnique").field(&self.0.name()).finish()
    }
}

impl PhysicalOptimizerRule for WhereNamesAreUnique {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if has_unique_names(&plan) { self.0.optimize(plan, config) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_unique_names(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut seen = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().all(|field| seen.insert(field.name()))
        && plan.children().into_iter().all(has_unique_names)
}
