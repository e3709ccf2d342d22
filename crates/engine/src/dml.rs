//! INSERT, UPDATE and DELETE whose rows no index finds, or with expressions that procedures do not know:
//! what `statements` leaves over.
//!
//! An INSERT of literals for one partition runs there as a short transaction. An INSERT of a query's rows runs
//! the query and lays the rows down before it owns the partitions (`bulk`). Everything else runs
//! over all partitions: a query on a snapshot of that very moment finds the rows and computes the
//! new values, and the changes follow before anyone else gets in, so the statement is serializable.
//! That stops the executors while the query runs.
//!
//! Parameters: a `$n` that alone is a column's new value has the column's type; any other the type
//! that the query around it asks for, and if it asks for none that of the value given.

pub(crate) mod bulk;
mod explain;
mod returning;

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlError, SqlState, SqlType, Tid, Value};
use albireo_olap::CancelToken;
use albireo_olap::relation::{Relations, Snapshot};
use albireo_olap::{Prepared, Query};
use albireo_partition::{Abort, Call, Route, Transaction};
use albireo_sql::ast::{Expr, Statement, Value as Literal};
use albireo_sql::dml::{self, InsertSource, NewValue};
use albireo_sql::literal::literal_value;
use albireo_sql::{BoundQuery, Catalog, ColumnDef, DeletePlan, InsertPlan, TableDef, UpdatePlan};
use albireo_storage::DatabaseSnapshot;

use crate::adapters::{AddressedRelations, AddressedSnapshot, HIDDEN, scope_of};
use crate::ddl::handle;
use crate::query::options;
use crate::settings::Settings;
use crate::{Database, Outcome, QueryResult};
use returning::Returned;

/// One statement's surroundings.
struct Run<'a> {
    database: &'a Database,
    catalog: &'a Arc<Catalog>,
    parameters: &'a [Value],
    settings: &'a Settings,
    cancel: &'a CancelToken,
}

/// What a statement did.
struct Changed {
    rows: u64,
    /// What RETURNING gives, if it was asked for.
    returned: Option<QueryResult>,
}

/// Where a row is.
#[derive(Clone, Copy)]
struct Address {
    partition: PartitionId,
    tid: Tid,
}

impl Database {
    /// Runs an INSERT, UPDATE or DELETE.
    pub(crate) fn run_dml(
        &self,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let _fixed = self.inner.definitions.read();
        let catalog = self.catalog();
        let run = Run { database: self, catalog: &catalog, parameters, settings, cancel };
        let (verb, changed) = match statement {
            Statement::Insert(insert) => {
                let plan = dml::plan_insert(&catalog, insert, text)?;
                run.check_parameters(plan.parameters)?;
                let alias = insert.table_alias.as_ref().map(|a| albireo_sql::names::fold(&a.alias));
                let alias = alias.unwrap_or_else(|| plan.table.name.clone());
                let returned = run.returned(&plan.table, &alias, &plan.returning)?;
                ("INSERT 0", run.insert(&plan, returned.as_ref())?)
            }
            Statement::Update(update) => {
                let plan = dml::plan_update(&catalog, update, text)?;
                run.check_parameters(plan.parameters)?;
                ("UPDATE", run.update(&plan)?)
            }
            Statement::Delete(delete) => {
                let plan = dml::plan_delete(&catalog, delete, text)?;
                run.check_parameters(plan.parameters)?;
                ("DELETE", run.delete(&plan)?)
            }
            _ => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "not a statement that changes rows")),
        };
        Ok(match changed {
            Changed { returned: Some(rows), .. } => Outcome::Rows(rows),
            Changed { rows, .. } => {
                Outcome::Done { tag: format!("{verb} {rows}"), rows, notices: Vec::new() }
            }
        })
    }

    /// Inserts complete rows as one transaction: on their partition if it is one, else over all.
    fn insert_all(
        &self,
        table: &TableDef,
        rows: &[Vec<Value>],
        settings: &Settings,
    ) -> Result<u64, SqlError> {
        let route = self.route_of(table, rows);
        let call = Call { synchronous: settings.synchronous, ..Call::new(route, "INSERT") };
        let inserted = self.inner.partitions.transact(&call, |tx| insert_rows(tx, table, rows));
        inserted.map_err(|error| self.explain_call(error))
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
    fn insert(&self, plan: &InsertPlan, returned: Option<&Returned>) -> Result<Changed, SqlError> {
        let literal = match &plan.source {
            InsertSource::Values(rows) => self.literal_rows(plan, rows)?,
            InsertSource::Query(_) => None,
        };
        if let Some(rows) = literal {
            // Computed first, so that its errors come before any change.
            let returned = returned.map(|r| r.rows(self, &rows)).transpose()?;
            return Ok(Changed {
                rows: self.database.insert_all(&plan.table, &rows, self.settings)?,
                returned,
            });
        }
        let prepared = self.prepare_source(plan)?;
        if let (InsertSource::Query(_), [query], None) = (&plan.source, &prepared[..], returned) {
            return self.insert_query(plan, query);
        }
        let defaults = self.defaults(plan)?;
        self.crossing("INSERT", &prepared, |tx, snapshot| {
            let mut all = Vec::new();
            for prepared in &prepared {
                let result = self.run(prepared, &snapshot)?;
                all.append(&mut complete(&plan.table, &plan.columns, &defaults, &result)?);
            }
            if let InsertSource::Values(rows) = &plan.source {
                for (values, row) in all.iter_mut().zip(rows) {
                    put_defaults(values, &defaults, plan.columns.iter().zip(row));
                }
            }
            let rows = insert_rows(tx, &plan.table, &all)?;
            let returned = returned.map(|r| r.rows(self, &all)).transpose()?;
            Ok(Changed { rows, returned })
        })
    }

    /// The queries that give an INSERT's rows.
    fn prepare_source(&self, plan: &InsertPlan) -> Result<Vec<Arc<Prepared>>, SqlError> {
        match &plan.source {
            InsertSource::Query(query) => Ok(vec![self.prepare(query, None, Vec::new())?]),
            InsertSource::Values(rows) => {
                let row = |(row, values): (usize, &Vec<NewValue>)| {
                    let query = plan.row_query(row)?;
                    let types = self.declared(&plan.table, plan.columns.iter().copied().zip(values));
                    Some(self.prepare(&query, None, types))
                };
                rows.iter().enumerate().filter_map(row).collect()
            }
        }
    }

    /// The rows of VALUES if they are literals, parameters and defaults alone.
    fn literal_rows(
        &self,
        plan: &InsertPlan,
        rows: &[Vec<NewValue>],
    ) -> Result<Option<Vec<Vec<Value>>>, SqlError> {
        let defaults = self.defaults(plan)?;
        let mut complete = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = defaults.clone();
            for (column, value) in plan.columns.iter().zip(row) {
                let NewValue::Expr(expr) = value else { continue };
                let column_def = plan.table.column_def(*column);
                let value = match self.parameter(expr) {
                    Some(value) => Some(assigned(value.clone(), column_def)?),
                    None => {
                        let value = literal_value(expr, column_def.ty);
                        value.map_err(|error| mismatch(column_def, error))?
                    }
                };
                match value {
                    Some(value) => values[column.index()] = value,
                    None => return Ok(None),
                }
            }
            complete.push(values);
        }
        Ok(Some(complete))
    }

    /// The values that columns get of which a row may say nothing.
    fn defaults(&self, plan: &InsertPlan) -> Result<Vec<Value>, SqlError> {
        let said = |value: Option<&NewValue>| matches!(value, Some(NewValue::Expr(_)));
        self.database.default_values(&plan.table, |column| {
            let at = plan.columns.iter().position(|other| *other == column);
            at.is_some_and(|at| match &plan.source {
                InsertSource::Values(rows) => rows.iter().all(|row| said(row.get(at))),
                InsertSource::Query(_) => true,
            })
        })
    }

    fn update(&self, plan: &UpdatePlan) -> Result<Changed, SqlError> {
        let table = &plan.table;
        let columns: Vec<ColumnId> = plan.assignments.iter().map(|(column, _)| *column).collect();
        let defaults = self.set_defaults(plan)?;
        let prepared = self.prepare_update(plan)?;
        let returned = self.returned(table, &plan.alias, &plan.returning)?;
        self.crossing("UPDATE", std::slice::from_ref(&prepared), |tx, snapshot| {
            let found = self.run(&prepared, &snapshot)?.rows();
            let mut new_rows = Vec::new();
            for row in &found {
                let values = row[HIDDEN.len()..].iter().zip(&defaults);
                let values: Vec<Value> =
                    values.map(|(value, default)| default.as_ref().unwrap_or(value).clone()).collect();
                let moved = update_row(tx, table, address(row)?, &columns, &values)?;
                if returned.is_some() {
                    new_rows.push(moved);
                }
            }
            let returned = returned.as_ref().map(|r| r.rows(self, &new_rows)).transpose()?;
            Ok(Changed { rows: found.len() as u64, returned })
        })
    }

    /// For each column that an UPDATE sets, its default, if it is set to that.
    fn set_defaults(&self, plan: &UpdatePlan) -> Result<Vec<Option<Value>>, SqlError> {
        let is_default = |column| plan.assignments.contains(&(column, NewValue::Default));
        let defaults = self.database.default_values(&plan.table, |column| !is_default(column))?;
        let columns = plan.assignments.iter().map(|(column, _)| *column);
        Ok(columns.map(|column| is_default(column).then(|| defaults[column.index()].clone())).collect())
    }

    fn prepare_update(&self, plan: &UpdatePlan) -> Result<Arc<Prepared>, SqlError> {
        let types =
            self.declared(&plan.table, plan.assignments.iter().map(|(column, value)| (*column, value)));
        self.prepare(&plan.rows_query(&HIDDEN), Some(&plan.table), types)
    }

    fn delete(&self, plan: &DeletePlan) -> Result<Changed, SqlError> {
        let table = &plan.table;
        let prepared = self.prepare(&plan.rows_query(&HIDDEN), Some(table), Vec::new())?;
        self.crossing("DELETE", std::slice::from_ref(&prepared), |tx, snapshot| {
            let found = self.run(&prepared, &snapshot)?;
            for row in &returning::addresses(&found)? {
                let at = address(row)?;
                tx.delete_at(tx.site_of_partition(at.partition)?, handle(table), at.tid)?;
            }
            let rows = found.row_count() as u64;
            let asked = !plan.returning.is_empty();
            let returned = asked.then(|| returning::without_address(found, &plan.returning)).transpose()?;
            Ok(Changed { rows, returned })
        })
    }

    fn check_parameters(&self, wanted: usize) -> Result<(), SqlError> {
        let given = self.parameters.len();
        if wanted == given {
            return Ok(());
        }
        let text = format!("the statement has {wanted} parameters, but {given} were given");
        Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, text))
    }

    /// The value of an expression that is a parameter and nothing else.
    fn parameter(&self, expr: &Expr) -> Option<&Value> {
        self.parameters.get(parameter_index(expr)?)
    }

    /// The types of the parameters that alone are new values of columns.
    fn declared<'v>(
        &self,
        table: &TableDef,
        values: impl Iterator<Item = (ColumnId, &'v NewValue)>,
    ) -> Vec<Option<SqlType>> {
        let mut types = vec![None; self.parameters.len()];
        for (column, value) in values {
            let NewValue::Expr(expr) = value else { continue };
            if let Some(place) = parameter_index(expr).and_then(|index| types.get_mut(index)) {
                place.get_or_insert(table.column_def(column).ty);
            }
        }
        types
    }

    /// Types and plans a query, one table with its hidden columns if need be.
    fn prepare(
        &self,
        query: &BoundQuery,
        addressed: Option<&Arc<TableDef>>,
        mut types: Vec<Option<SqlType>>,
    ) -> Result<Arc<Prepared>, SqlError> {
        let addressed = addressed.map(|table| table.id);
        let relations: Arc<dyn Relations> =
            Arc::new(AddressedRelations { catalog: Arc::clone(self.catalog), addressed });
        let olap = &self.database.inner.olap;
        let prepare = |parameter_types| {
            let query = Query { statement: query.statement.clone(), names: None, parameter_types };
            olap.prepare(&relations, query)
        };
        let prepared = prepare(types.clone())?;
        if prepared.parameter_types().iter().all(Option::is_some) {
            return Ok(prepared);
        }
        types.clone_from(&prepared.parameter_types().to_vec());
        for (ty, value) in types.iter_mut().zip(self.parameters) {
            *ty = ty.or_else(|| value.sql_type());
        }
        prepare(types)
    }

    /// The parameters' values as the plan wants them.
    fn arguments(&self, prepared: &Prepared) -> Result<Vec<Value>, SqlError> {
        let coerce = |(ty, value): (&Option<SqlType>, &Value)| match ty {
            Some(ty) => value.clone().coerce(*ty),
            None => Ok(value.clone()),
        };
        prepared.parameter_types().iter().zip(self.parameters).map(coerce).collect()
    }

    fn run(
        &self,
        prepared: &Arc<Prepared>,
        snapshot: &Arc<DatabaseSnapshot>,
    ) -> Result<QueryResult, SqlError> {
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let arguments = self.arguments(prepared)?;
        let options = options(self.settings, self.cancel);
        crate::query::result(self.database.inner.olap.run(prepared, &arguments, &snapshot, options)?)
    }

    fn crossing_call<'n>(&self, name: &'n str) -> Call<'n> {
        Call { synchronous: self.settings.synchronous, ..Call::new(Route::Crossing, name) }
    }

    /// Runs `work` over all partitions, with a snapshot for `queries`.
    fn crossing<R>(
        &self,
        name: &str,
        queries: &[Arc<Prepared>],
        work: impl FnOnce(&mut Transaction, Arc<DatabaseSnapshot>) -> Result<R, Abort>,
    ) -> Result<R, SqlError> {
        let partitions = &self.database.inner.partitions;
        let result = partitions.crossing_with_snapshot(&self.crossing_call(name), &scope_of(queries), work);
        let result = result.map_err(|spent| crate::errors::session(spent.into()))?;
        result.map_err(|error| self.database.explain_call(error))
    }
}

/// The place from 0 of `$n`.
fn parameter_index(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Nested(inner) => parameter_index(inner),
        Expr::Value(value) => match &value.value {
            Literal::Placeholder(name) => name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}

/// Rows of a query's result, completed with defaults and coerced to their columns' types.
pub(crate) fn complete(
    table: &TableDef,
    columns: &[ColumnId],
    defaults: &[Value],
    result: &QueryResult,
) -> Result<Vec<Vec<Value>>, SqlError> {
    check_width(columns.len(), result.columns.len())?;
    let complete = |row: Vec<Value>| {
        let mut values = defaults.to_vec();
        for (column, value) in columns.iter().zip(row) {
            values[column.index()] = assigned(value, table.column_def(*column))?;
        }
        Ok(values)
    };
    result.rows().into_iter().map(complete).collect()
}

/// Puts the defaults into a row where a row of VALUES says DEFAULT.
fn put_defaults<'v>(
    values: &mut [Value],
    defaults: &[Value],
    row: impl Iterator<Item = (&'v ColumnId, &'v NewValue)>,
) {
    for (column, _) in row.filter(|(_, value)| **value == NewValue::Default) {
        values[column.index()].clone_from(&defaults[column.index()]);
    }
}

/// # Errors
/// 42601: an INSERT of so many columns has more or fewer values.
fn check_width(columns: usize, values: usize) -> Result<(), SqlError> {
    if values == columns {
        return Ok(());
    }
    let text = match values > columns {
        true => "INSERT has more expressions than target columns",
        false => "INSERT has more target columns than expressions",
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, text))
}

/// A value as a column takes it.
///
/// # Errors
/// 42804 for a value of a type that is not converted to the column's; those of [`Value::coerce`].
fn assigned(value: Value, column: &ColumnDef) -> Result<Value, SqlError> {
    value.coerce(column.ty).map_err(|error| mismatch(column, error))
}

/// What a failed conversion means where a column is assigned to.
fn mismatch(column: &ColumnDef, error: SqlError) -> SqlError {
    if error.state() != SqlState::CANNOT_COERCE {
        return error;
    }
    let message =
        format!("column \"{}\" is of type {} but expression is of another type", column.name, column.ty);
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        .with_detail(format!("{}.", error.message()))
        .with_hint("You will need to rewrite or cast the expression.")
}

/// Inserts complete rows, each at its partition.
pub(crate) fn insert_rows(tx: &mut Transaction, table: &TableDef, rows: &[Vec<Value>]) -> Result<u64, Abort> {
    for row in rows {
        let site = match table.partition_by {
            Some(column) => tx.site_of_value(&row[column.index()])?,
            None => tx.home(),
        };
        tx.insert_values_at(site, handle(table), row)?;
    }
    Ok(rows.len() as u64)
}

/// Gives a row new values and returns all of it; it moves when its partitioning column changes.
fn update_row(
    tx: &mut Transaction,
    table: &TableDef,
    at: Address,
    columns: &[ColumnId],
    values: &[Value],
) -> Result<Vec<Value>, Abort> {
    let mut new = Vec::with_capacity(columns.len());
    for (column, value) in columns.iter().zip(values) {
        new.push((*column, assigned(value.clone(), table.column_def(*column))?));
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
        tx.update_values_at(site, handle(table), at.tid, &new)?;
        return Ok(tx.table_at(site, handle(table)).row(at.tid));
    }
    let mut row = tx.table_at(site, handle(table)).row(at.tid);
    let by_column: BTreeMap<ColumnId, Value> = new.into_iter().collect();
    for (column, value) in by_column {
        row[column.index()] = value;
    }
    tx.delete_at(site, handle(table), at.tid)?;
    insert_rows(tx, table, std::slice::from_ref(&row))?;
    Ok(row)
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
