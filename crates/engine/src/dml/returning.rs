//! RETURNING: rows that a statement has changed, as a result.

use std::sync::Arc;

use albireo_base::{SqlError, TableId, Value};
use albireo_olap::memory::MemoryRelation;
use albireo_olap::relation::{Relation, RelationColumn, RelationData, Relations, Snapshot};
use albireo_olap::{Prepared, Query};
use albireo_sql::dml::Returning;
use albireo_sql::walk::Walk as _;
use albireo_sql::{DeletePlan, TableDef};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};

use super::Run;
use crate::adapters::HIDDEN;
use crate::arrays::{array, internal, schema_of};
use crate::query::options;
use crate::{Column, QueryResult};

/// Set in the id of the relation that stands for the changed rows, whose statistics are its own.
const CHANGED: u32 = 1 << 30;

/// A RETURNING list made ready: it reads changed rows under the name of their table.
pub(super) struct Returned {
    table: Arc<TableDef>,
    prepared: Arc<Prepared>,
}

/// The one table that RETURNING may name.
#[derive(Debug)]
struct ChangedRelation(Arc<Relation>);

impl Relations for ChangedRelation {
    fn relation(&self, _schema: Option<&str>, name: &str) -> Option<Arc<Relation>> {
        (name == self.0.name).then(|| Arc::clone(&self.0))
    }

    fn version(&self) -> u64 {
        0
    }
}

/// Its rows.
#[derive(Debug)]
struct ChangedRows(TableId, Arc<MemoryRelation>);

impl Snapshot for ChangedRows {
    fn relation(&self, id: TableId) -> Option<Arc<dyn RelationData>> {
        (id == self.0).then(|| Arc::clone(&self.1) as Arc<dyn RelationData>)
    }
}

fn changed_id(table: &TableDef) -> TableId {
    TableId(table.id.0 | CHANGED)
}

impl Run<'_> {
    /// Makes a RETURNING list ready; `None` if there is none.
    pub(super) fn returned(
        &self,
        table: &Arc<TableDef>,
        alias: &str,
        returning: &[Returning],
    ) -> Result<Option<Returned>, SqlError> {
        if returning.is_empty() {
            return Ok(None);
        }
        let reads_tables =
            |column: &Returning| column.expr.any_relation(&mut |_| std::ops::ControlFlow::Break(()));
        if returning.iter().any(reads_tables) {
            return Err(SqlError::unsupported("a subquery in RETURNING"));
        }
        let column =
            |c: &albireo_sql::ColumnDef| RelationColumn { name: c.name.clone(), ty: c.ty, nullable: true };
        let relation = Relation {
            id: changed_id(table),
            schema: table.schema.clone(),
            name: table.name.clone(),
            columns: table.columns.iter().map(column).collect(),
            primary_key: Vec::new(),
            unique_keys: Vec::new(),
        };
        // A query of the list over the table is what a DELETE of all rows would find them by.
        let list = DeletePlan {
            table: Arc::clone(table),
            alias: alias.to_owned(),
            filter: None,
            returning: returning.to_vec(),
            parameters: self.parameters.len(),
            tables: Vec::new(),
        };
        let relations: Arc<dyn Relations> = Arc::new(ChangedRelation(Arc::new(relation)));
        let query = Query {
            statement: list.rows_query(&[]).statement,
            names: Some(returning.iter().map(|column| column.name.clone()).collect()),
            parameter_types: self.parameters.iter().map(Value::sql_type).collect(),
        };
        let prepared = self.database.inner.olap.prepare(&relations, query)?;
        Ok(Some(Returned { table: Arc::clone(table), prepared }))
    }
}

impl Returned {
    /// The list for complete rows of the table.
    pub(super) fn rows(&self, run: &Run<'_>, rows: &[Vec<Value>]) -> Result<QueryResult, SqlError> {
        let olap = &run.database.inner.olap;
        let id = changed_id(&self.table);
        let data = MemoryRelation::new(vec![batch(&self.table, rows)?], 0);
        let snapshot: Arc<dyn Snapshot> = Arc::new(ChangedRows(id, Arc::new(data)));
        let arguments = run.arguments(&self.prepared)?;
        let output = olap.run(&self.prepared, &arguments, &snapshot, options(run.settings, run.cancel));
        olap.forget(id);
        crate::query::result(output?)
    }
}

/// Rows as Arrow.
fn batch(table: &TableDef, rows: &[Vec<Value>]) -> Result<RecordBatch, SqlError> {
    let column = |(index, column): (usize, &albireo_sql::ColumnDef)| {
        array(column.ty, rows.iter().map(move |row| &row[index]))
    };
    let arrays: Vec<ArrayRef> = table.columns.iter().enumerate().map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema_of(table), arrays, &options).map_err(internal)
}

/// The addresses alone of rows found with theirs.
pub(super) fn addresses(found: &QueryResult) -> Result<Vec<Vec<Value>>, SqlError> {
    Ok(columns_of(found, 0..HIDDEN.len())?.rows())
}

/// The rows found without their addresses, under the names of RETURNING.
pub(super) fn without_address(found: QueryResult, returning: &[Returning]) -> Result<QueryResult, SqlError> {
    let mut result = columns_of(&found, HIDDEN.len()..found.columns.len())?;
    for (column, Returning { name, .. }) in result.columns.iter_mut().zip(returning) {
        *column = Column { name: name.clone(), ty: column.ty };
    }
    let field = |(field, column): (&Arc<Field>, &Column)| field.as_ref().clone().with_name(&column.name);
    let fields: Vec<Field> = result.schema.fields().iter().zip(&result.columns).map(field).collect();
    result.schema = Arc::new(Schema::new(fields));
    for batch in &mut result.batches {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        *batch = RecordBatch::try_new_with_options(Arc::clone(&result.schema), columns, &options)
            .map_err(internal)?;
    }
    Ok(result)
}

fn columns_of(result: &QueryResult, range: std::ops::Range<usize>) -> Result<QueryResult, SqlError> {
    let places: Vec<usize> = range.clone().collect();
    let batches = result.batches.iter().map(|batch| batch.project(&places));
    Ok(QueryResult {
        columns: result.columns[range].to_vec(),
        schema: Arc::new(result.schema.project(&places).map_err(internal)?),
        batches: batches.collect::<Result<_, _>>().map_err(internal)?,
        planning: result.planning,
        execution: result.execution,
    })
}
