//! INSERT, UPDATE and DELETE.
//!
//! An INSERT of literals for one partition runs there as a short transaction. Everything else runs
//! over all partitions: a query on a snapshot of that very moment finds the rows and computes the
//! new values, and the changes follow before anyone else gets in, so the statement is serializable.
//! That stops the executors while the query runs. Compiling these statements, so that they run in
//! their partition alone, is the procedures' work.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlError, SqlState, Tid, Value};
use albireo_olap::CancelToken;
use albireo_olap::relation::{Relations, Snapshot};
use albireo_olap::{Prepared, Query};
use albireo_partition::{Abort, Procedure, Route, Transaction};
use albireo_sql::ast::Statement;
use albireo_sql::dml::{self, InsertSource, NewValue};
use albireo_sql::literal::literal_value;
use albireo_sql::{BoundQuery, Catalog, InsertPlan, TableDef};
use albireo_storage::DatabaseSnapshot;

use crate::adapters::{AddressedRelations, AddressedSnapshot, HIDDEN};
use crate::ddl::handle;
use crate::query::options;
use crate::settings::Settings;
use crate::{Database, Outcome, QueryResult};

/// One statement's surroundings.
struct Run<'a> {
    database: &'a Database,
    catalog: &'a Arc<Catalog>,
    settings: &'a Settings,
    cancel: &'a CancelToken,
}

/// Where a row is.
#[derive(Clone, Copy)]
struct Address {
    partition: PartitionId,
    tid: Tid,
}

/// Inserts rows of values, all of one partition.
struct InsertRows {
    table: Arc<TableDef>,
    rows: Vec<Vec<Value>>,
}

impl Procedure for InsertRows {
    type Args = Route;
    type Output = u64;

    fn name(&self) -> &str {
        "INSERT"
    }

    fn route(&self, route: &Route) -> Route {
        *route
    }

    fn run(&self, tx: &mut Transaction<'_, '_>, _: &Route) -> Result<u64, Abort> {
        insert_rows(tx, &self.table, &self.rows)
    }
}

impl Database {
    /// Runs an INSERT, UPDATE or DELETE.
    pub(crate) fn run_dml(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let _fixed = self.inner.definitions.read();
        let catalog = self.catalog();
        let run = Run { database: self, catalog: &catalog, settings, cancel };
        let done = |verb: &str, rows: u64| Outcome::Done {
            tag: format!("{verb} {rows}"),
            rows,
            notices: Vec::new(),
        };
        match statement {
            Statement::Insert(insert) => {
                let plan = dml::plan_insert(&catalog, insert, text)?;
                no_parameters(plan.parameters)?;
                no_returning(&plan.returning)?;
                Ok(done("INSERT 0", run.insert(&plan)?))
            }
            Statement::Update(update) => {
                let plan = dml::plan_update(&catalog, update, text)?;
                no_parameters(plan.parameters)?;
                no_returning(&plan.returning)?;
                let columns: Vec<ColumnId> = plan.assignments.iter().map(|(column, _)| *column).collect();
                let rows = run.change(&plan.table, &plan.rows_query(&HIDDEN), |tx, table, at, values| {
                    update_row(tx, table, at, &columns, values)
                })?;
                Ok(done("UPDATE", rows))
            }
            Statement::Delete(delete) => {
                let plan = dml::plan_delete(&catalog, delete, text)?;
                no_parameters(plan.parameters)?;
                no_returning(&plan.returning)?;
                let rows = run.change(&plan.table, &plan.rows_query(&HIDDEN), |tx, table, at, _| {
                    tx.delete_at(tx.site_of_partition(at.partition)?, handle(table), at.tid)
                })?;
                Ok(done("DELETE", rows))
            }
            _ => Err(SqlError::new(SqlState::INTERNAL_ERROR, "not a statement that changes rows")),
        }
    }

    /// Inserts complete rows as one transaction: on their partition if it is one, else over all.
    pub(crate) fn insert_all(&self, table: &Arc<TableDef>, rows: Vec<Vec<Value>>) -> Result<u64, SqlError> {
        let route = self.route_of(table, &rows);
        let insert = InsertRows { table: Arc::clone(table), rows };
        self.inner.partitions.call(&insert, &route).map_err(|error| self.explain_call(error))
    }

    fn route_of(&self, table: &TableDef, rows: &[Vec<Value>]) -> Route {
        let partitions = self.inner.partitions.count();
        let Some(column) = table.partition_by else {
            return if partitions == 1 { Route::Partition(PartitionId(0)) } else { Route::Crossing };
        };
        let place = |row: &Vec<Value>| albireo_storage::partition_of(&row[column.index()], partitions);
        match rows.first().map(place) {
            Some(first) if rows.iter().all(|row| place(row) == first) => Route::Partition(PartitionId(first)),
            Some(_) => Route::Crossing,
            None => Route::Partition(PartitionId(0)),
        }
    }
}

impl Run<'_> {
    fn insert(&self, plan: &InsertPlan) -> Result<u64, SqlError> {
        let literal = match &plan.source {
            InsertSource::Values(rows) => self.literal_rows(plan, rows)?,
            InsertSource::Query(_) => None,
        };
        if let Some(rows) = literal {
            return self.database.insert_all(&plan.table, rows);
        }
        let queries: Vec<BoundQuery> = match &plan.source {
            InsertSource::Query(query) => vec![(**query).clone()],
            InsertSource::Values(rows) => (0..rows.len()).filter_map(|row| plan.row_query(row)).collect(),
        };
        let prepared: Vec<Arc<Prepared>> =
            queries.iter().map(|q| self.prepare(q, None)).collect::<Result<_, _>>()?;
        let defaults = self.defaults(&plan.table)?;
        self.crossing("INSERT", |tx, snapshot| {
            let mut inserted = 0;
            for prepared in &prepared {
                let result = self.run(prepared, &snapshot)?;
                let rows = complete(&plan.table, &plan.columns, &defaults, &result)?;
                inserted += insert_rows(tx, &plan.table, &rows)?;
            }
            Ok(inserted)
        })
    }

    /// The rows of VALUES if they are literals and defaults alone.
    fn literal_rows(
        &self,
        plan: &InsertPlan,
        rows: &[Vec<NewValue>],
    ) -> Result<Option<Vec<Vec<Value>>>, SqlError> {
        let defaults = self.defaults(&plan.table)?;
        let mut complete = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = defaults.clone();
            for (column, value) in plan.columns.iter().zip(row) {
                let NewValue::Expr(expr) = value else { continue };
                let ty = plan.table.column_def(*column).ty;
                match literal_value(expr, ty)? {
                    Some(value) => values[column.index()] = value,
                    None => return Ok(None),
                }
            }
            complete.push(values);
        }
        Ok(Some(complete))
    }

    /// The value that each column gets when none is given.
    fn defaults(&self, table: &TableDef) -> Result<Vec<Value>, SqlError> {
        self.database.default_values(self.catalog, table, self.settings, self.cancel)
    }

    /// Finds rows by `query`, whose first columns are their addresses, and changes each.
    fn change(
        &self,
        table: &Arc<TableDef>,
        query: &BoundQuery,
        each: impl Fn(&mut Transaction<'_, '_>, &TableDef, Address, &[Value]) -> Result<(), Abort>,
    ) -> Result<u64, SqlError> {
        let prepared = self.prepare(query, Some(table))?;
        self.crossing("UPDATE", |tx, snapshot| {
            let result = self.run(&prepared, &snapshot)?;
            let rows = result.rows();
            for row in &rows {
                let address = address(row)?;
                each(tx, table, address, &row[HIDDEN.len()..])?;
            }
            Ok(rows.len() as u64)
        })
    }

    fn prepare(
        &self,
        query: &BoundQuery,
        addressed: Option<&Arc<TableDef>>,
    ) -> Result<Arc<Prepared>, SqlError> {
        let addressed = addressed.map(|table| table.id);
        let relations: Arc<dyn Relations> =
            Arc::new(AddressedRelations { catalog: Arc::clone(self.catalog), addressed });
        let query = Query { statement: query.statement.clone(), names: None, parameter_types: Vec::new() };
        self.database.inner.olap.prepare(&relations, query)
    }

    fn run(
        &self,
        prepared: &Arc<Prepared>,
        snapshot: &Arc<DatabaseSnapshot>,
    ) -> Result<QueryResult, SqlError> {
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let output =
            self.database.inner.olap.run(prepared, &[], &snapshot, options(self.settings, self.cancel))?;
        crate::query::result(output)
    }

    fn crossing(
        &self,
        name: &str,
        work: impl FnOnce(&mut Transaction<'_, '_>, Arc<DatabaseSnapshot>) -> Result<u64, Abort>,
    ) -> Result<u64, SqlError> {
        let result = self.database.inner.partitions.crossing_with_snapshot(name, work);
        let result = result.map_err(|spent| crate::errors::session(spent.into()))?;
        result.map_err(|error| self.database.explain_call(error))
    }
}

impl Database {
    /// The value that each column gets when none is given: its default, or NULL.
    pub(crate) fn default_values(
        &self,
        catalog: &Arc<Catalog>,
        table: &TableDef,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Vec<Value>, SqlError> {
        let value = |column: &albireo_sql::ColumnDef| {
            let Some(default) = &column.default else { return Ok(Value::Null) };
            if let Some(value) = literal_value(&default.ast, column.ty)? {
                return Ok(value);
            }
            let text = format!("SELECT {}", default.text);
            let statement = albireo_sql::parse_one(&text)?;
            let bound = albireo_sql::bind_query(catalog, &statement, &text)?;
            let prepared = self.prepare_bound(catalog, &bound, Vec::new())?;
            let session = self.inner.sessions.open().map_err(crate::errors::session)?;
            let snapshot = session.snapshot().map_err(crate::errors::session)?;
            let result = self.run_prepared(&prepared, &[], snapshot, settings, cancel)?;
            result.value(0, 0).coerce(column.ty)
        };
        table.columns.iter().map(value).collect()
    }
}

/// Rows of a query's result, completed with defaults and coerced to their columns' types.
pub(crate) fn complete(
    table: &TableDef,
    columns: &[ColumnId],
    defaults: &[Value],
    result: &QueryResult,
) -> Result<Vec<Vec<Value>>, SqlError> {
    if result.columns.len() != columns.len() {
        let text = match result.columns.len() > columns.len() {
            true => "INSERT has more expressions than target columns",
            false => "INSERT has more target columns than expressions",
        };
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, text));
    }
    let complete = |row: Vec<Value>| {
        let mut values = defaults.to_vec();
        for (column, value) in columns.iter().zip(row) {
            values[column.index()] = value.coerce(table.column_def(*column).ty)?;
        }
        Ok(values)
    };
    result.rows().into_iter().map(complete).collect()
}

/// Inserts complete rows, each at its partition.
pub(crate) fn insert_rows(
    tx: &mut Transaction<'_, '_>,
    table: &TableDef,
    rows: &[Vec<Value>],
) -> Result<u64, Abort> {
    for row in rows {
        let site = match table.partition_by {
            Some(column) => tx.site_of_value(&row[column.index()])?,
            None => tx.home(),
        };
        tx.insert_values_at(site, handle(table), row)?;
    }
    Ok(rows.len() as u64)
}

/// Gives a row new values; it moves when its partitioning column changes.
fn update_row(
    tx: &mut Transaction<'_, '_>,
    table: &TableDef,
    at: Address,
    columns: &[ColumnId],
    values: &[Value],
) -> Result<(), Abort> {
    let mut new = Vec::with_capacity(columns.len());
    for (column, value) in columns.iter().zip(values) {
        new.push((*column, value.clone().coerce(table.column_def(*column).ty)?));
    }
    let site = tx.site_of_partition(at.partition)?;
    let moves = match table.partition_by {
        Some(key) => match new.iter().find(|(column, _)| *column == key) {
            Some((_, value)) => tx.site_of_value(value)? != site,
            None => false,
        },
        None => false,
    };
    if !moves {
        return tx.update_values_at(site, handle(table), at.tid, &new);
    }
    let mut row = tx.table_at(site, handle(table)).row(at.tid);
    let by_column: BTreeMap<ColumnId, Value> = new.into_iter().collect();
    for (column, value) in by_column {
        row[column.index()] = value;
    }
    tx.delete_at(site, handle(table), at.tid)?;
    insert_rows(tx, table, &[row]).map(|_| ())
}

/// The address in the first columns of a row.
fn address(row: &[Value]) -> Result<Address, Abort> {
    match row {
        [Value::BigInt(partition), Value::BigInt(tid), ..] => {
            Ok(Address { partition: PartitionId(*partition as u16), tid: Tid(*tid as u64) })
        }
        _ => Err(Abort::raise(SqlState::INTERNAL_ERROR, "a row without its address")),
    }
}

fn no_parameters(parameters: usize) -> Result<(), SqlError> {
    match parameters {
        0 => Ok(()),
        _ => Err(SqlError::unsupported("a parameter in a statement that changes rows")
            .with_hint("Write the value into the statement, or use a procedure.")),
    }
}

fn no_returning(returning: &[dml::Returning]) -> Result<(), SqlError> {
    match returning {
        [] => Ok(()),
        _ => Err(SqlError::unsupported("RETURNING")),
    }
}
