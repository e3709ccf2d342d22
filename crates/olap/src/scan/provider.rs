//! A relation as DataFusion's table provider.
//!
//! Responsible for: claiming the filters a scan decides itself, and making the scan for the
//! snapshot of the running query, which it finds in the session. **Invariant:** holds no snapshot.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use albireo_base::ColumnId;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Constraint, Constraints, DFSchema, Result};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::Caches;
use super::computed::Computed;
use super::exec::{ScanExec, ScanSpec};
use super::predicate::Predicate;
use super::selectivity;
use crate::context::QueryContext;
use crate::errors::{external, internal};
use crate::relation::{Relation, RelationData};

/// The provider of one relation.
pub(crate) struct SnapshotTable {
    pub(crate) relation: Arc<Relation>,
    schema: SchemaRef,
    constraints: Constraints,
    caches: Caches,
}

impl SnapshotTable {
    pub(crate) fn new(relation: Arc<Relation>, caches: Caches) -> Self {
        let indices = |key: &[ColumnId]| key.iter().map(|c| c.index()).collect();
        let mut constraints = Vec::new();
        if !relation.primary_key.is_empty() {
            constraints.push(Constraint::PrimaryKey(indices(&relation.primary_key)));
        }
        // Rows whose key has a NULL are as many as there are, and differ.
        let never_null = |key: &&Vec<ColumnId>| key.iter().all(|c| !relation.columns[c.index()].nullable);
        let unique = relation.unique_keys.iter().filter(never_null);
        constraints.extend(unique.map(|key| Constraint::Unique(indices(key))));
        Self {
            schema: relation.arrow_schema(),
            constraints: Constraints::new_unverified(constraints),
            relation,
            caches,
        }
    }

    /// The same table, with nothing said about its keys.
    pub(crate) fn without_keys(&self) -> Self {
        Self {
            relation: Arc::clone(&self.relation),
            schema: Arc::clone(&self.schema),
            constraints: Constraints::default(),
            caches: self.caches.clone(),
        }
    }

    fn estimated_rows(&self, data: &dyn RelationData, filters: &[Expr]) -> Precision<usize> {
        let rows = data.row_count() as usize;
        if filters.is_empty() {
            return Precision::Exact(rows);
        }
        let mut facts = |name: &str| {
            let column = ColumnId(u16::try_from(self.schema.index_of(name).ok()?).ok()?);
            let Caches { statistics, zones, .. } = &self.caches;
            Some(statistics.column(&self.relation, data, zones, column))
        };
        let share: f64 = filters.iter().map(|f| selectivity::of(f, &mut facts)).product();
        Precision::Inexact((rows as f64 * share).ceil() as usize)
    }
}

impl fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnapshotTable").field(&self.relation.name).finish()
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match Predicate::fits(filter, &self.schema) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let query = state
            .config()
            .get_extension::<QueryContext>()
            .ok_or_else(|| external(internal("a scan was planned without a snapshot")))?;
        let data = query
            .snapshot
            .relation(self.relation.id)
            .ok_or_else(|| external(internal(format!("{} is not in the snapshot", self.relation.name))))?;
        let computed = |filter: &Expr| -> Result<Computed> {
            let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
            Computed::new(state.create_physical_expr(unqualified(filter)?, &schema)?, &self.schema)
        };
        let mut predicates = Vec::new();
        let mut others = Vec::new();
        for filter in filters {
            match Predicate::read(filter, &self.schema, &|part| computed(part).ok()) {
                Some(predicate) => predicates.push(predicate),
                None => others.push(computed(filter)?),
            }
        }
        cheapest_first(&mut predicates);
        let all = || (0..self.relation.columns.len()).collect();
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(all);
        if let Some(&column) = columns.iter().find(|&&column| !data.covers(ColumnId(column as u16))) {
            let name = &self.relation.columns[column].name;
            return Err(external(internal(format!("column {name} is not in the snapshot"))));
        }
        let text: Vec<String> = filters.iter().map(ToString::to_string).collect();
        let spec = ScanSpec {
            relation: Arc::clone(&self.relation),
            estimated_rows: self.estimated_rows(&*data, filters),
            is_away: data.is_away(),
            data,
            query,
            caches: self.caches.clone(),
            projection: columns.into_iter().map(|c| ColumnId(c as u16)).collect(),
            table_schema: Arc::clone(&self.schema),
            predicates,
            others,
            filters_text: text.join(", "),
            limit,
            batch_rows: state.config().batch_size(),
            sums: Vec::new(),
            ids: Vec::new(),
            joined: None,
        };
        let partitions = match state.config().target_partitions() {
            // While some wait for what is read, others compute.
            several @ 2.. if spec.is_away => several * READERS,
            others => others,
        };
        Ok(Arc::new(ScanExec::try_new(spec, partitions)?))
    }
}

/// Threads for each core that scan what is mostly away: two for each did not keep the disk busy.
pub(crate) const READERS: usize = 3;

/// Expressions last, and patterns before them; else filters over fewer columns first: they are the likelier to be decided by
/// a zone map.
fn cheapest_first(predicates: &mut [Predicate]) {
    predicates.sort_by_key(|predicate| {
        let mut columns = BTreeSet::new();
        predicate.columns(&mut columns);
        (predicate.cost(), columns.len())
    });
}

fn unqualified(filter: &Expr) -> Result<Expr> {
    use datafusion::common::Column;
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let filter = filter.clone().transform(|e| match e {
        Expr::Column(c) => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(c.name)))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(filter.data)
}
