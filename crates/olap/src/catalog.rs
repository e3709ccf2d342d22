//! The names a statement may use, as DataFusion's SQL planner asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use parking_lot::Mutex;

use crate::engine::Shared;
use crate::errors::external;
use crate::relation::{Relation, Relations};
use crate::scan::provider::SnapshotTable;

/// Resolves the names of one statement and remembers the relations it met.
pub(crate) struct StatementCatalog<'a> {
    shared: &'a Shared,
    relations: &'a dyn Relations,
    files: HashMap<String, Arc<dyn TableSource>>,
    used: Mutex<Vec<Arc<Relation>>>,
}

impl<'a> StatementCatalog<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        relations: &'a dyn Relations,
        files: HashMap<String, Arc<dyn TableSource>>,
    ) -> Self {
        Self { shared, relations, files, used: Mutex::default() }
    }

    /// The relations the statement reads.
    pub(crate) fn into_used(self) -> Vec<Arc<Relation>> {
        self.used.into_inner()
    }

    fn state(&self) -> &SessionState {
        self.shared.state()
    }
}

impl ContextProvider for StatementCatalog<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        if let Some(file) = self.files.get(name.table()) {
            return Ok(Arc::clone(file));
        }
        let Some(relation) = self.relations.relation(name.schema(), name.table()) else {
            if name.table().contains(['.', '/']) {
                albireo_files::refuse_url(name.table()).map_err(external)?;
                return Err(external(crate::files::unknown_format(name.table())));
            }
            let message = format!("relation \"{name}\" does not exist");
            return Err(external(SqlError::new(SqlState::UNDEFINED_TABLE, message)));
        };
        let mut used = self.used.lock();
        if used.iter().all(|known| known.id != relation.id) {
            used.push(Arc::clone(&relation));
        }
        Ok(provider_as_source(Arc::new(SnapshotTable::new(relation, self.shared.caches.clone()))))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_table_function_source(
        &self,
        name: &str,
        args: Vec<datafusion::logical_expr::Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        use datafusion::catalog::TableFunctionArgs;
        let Some(function) = self.state().table_functions().get(name) else {
            let message = format!("function {name} does not exist");
            return Err(external(SqlError::new(SqlState::UNDEFINED_FUNCTION, message)));
        };
        let args = TableFunctionArgs::new(&args, self.state());
        Ok(provider_as_source(function.create_table_provider_with_args(args)?))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state().expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.state().relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(crate::semantics::TypeNames))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state().scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state().higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state().aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state().window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.shared.options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state().scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state().higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state().aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state().window_functions().keys().cloned().collect()
    }
}
