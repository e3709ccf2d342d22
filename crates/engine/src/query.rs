//! The analytical road: prepare, cache, run on a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::budget::Budget;
use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_olap::relation::{Relations, Snapshot};
use albireo_olap::{CancelToken, LEAST_PLANNING_BYTES, Prepared, QueryOutput, RunOptions};
use albireo_session::QuerySession;
use albireo_sql::Catalog;
use albireo_sql::ast::Statement;
use albireo_storage::{DatabaseSnapshot, SnapshotScope};
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use parking_lot::Mutex;

use crate::adapters::{CatalogRelations, StorageSnapshot, scope_of};
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::Logical;
use crate::{Column, Database, QueryResult};

/// Plans kept before the cache starts anew.
const CACHED_PLANS: usize = 512;

/// Plans by the statement's text, each good for one version of the catalog.
#[derive(Default)]
pub(crate) struct PlanCache {
    plans: Mutex<HashMap<String, Arc<Prepared>>>,
}

impl PlanCache {
    fn get(&self, text: &str, version: u64) -> Option<Arc<Prepared>> {
        self.plans.lock().get(text).filter(|plan| plan.catalog_version() == version).cloned()
    }

    fn put(&self, text: &str, plan: &Arc<Prepared>) {
        let mut plans = self.plans.lock();
        if plans.len() >= CACHED_PLANS {
            plans.clear();
        }
        plans.insert(text.to_owned(), Arc::clone(plan));
    }
}

/// A query made ready once and run many times.
#[derive(Clone)]
pub struct PreparedQuery {
    database: Database,
    text: Arc<str>,
}

impl PreparedQuery {
    /// Runs it, as [`Database::query`] does.
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query(&self, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        self.database.query(&self.text, parameters)
    }

    /// Opens a query session, as [`Database::begin_read_only`], on the columns that this query reads
    /// and no others: transactions that write other columns copy nothing for it.
    ///
    /// # Errors
    /// As [`Database::begin_read_only`]; names that no longer exist.
    pub fn begin_read_only(&self) -> Result<ReadOnlySession, SqlError> {
        let plan = match self.database.known_plan(&self.text) {
            Some(plan) => plan,
            None => self.database.plan_query(&albireo_sql::parse_one(&self.text)?, &self.text, &[])?,
        };
        let session = self.database.session_for(&plan, &Settings::default())?;
        Ok(ReadOnlySession::new(self.database.clone(), session))
    }
}

/// Queries on one snapshot; dropping it ends the session.
pub struct ReadOnlySession {
    database: Database,
    session: QuerySession,
}

impl ReadOnlySession {
    pub(crate) fn new(database: Database, session: QuerySession) -> Self {
        Self { database, session }
    }

    /// Runs a query on the session's snapshot.
    ///
    /// # Errors
    /// As [`Database::query`]; 72000 when the session was ended to free memory.
    pub fn query(&self, sql: &str, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        self.query_with(sql, parameters, &Settings::default(), &CancelToken::new())
    }

    /// As [`ReadOnlySession::query`] on at most so many threads.
    ///
    /// # Errors
    /// As [`ReadOnlySession::query`].
    pub fn query_on(&self, threads: usize, sql: &str, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        self.query_until(&CancelToken::new(), Some(threads), sql, parameters)
    }

    /// As [`ReadOnlySession::query`], on at most so many threads (`None`: all), until `cancel` is
    /// cancelled from another thread.
    ///
    /// # Errors
    /// As [`ReadOnlySession::query`]; 57014 once cancelled.
    pub fn query_until(
        &self,
        cancel: &CancelToken,
        threads: Option<usize>,
        sql: &str,
        parameters: &[Value],
    ) -> Result<QueryResult, SqlError> {
        let settings = Settings { query_threads: threads, ..Settings::default() };
        self.query_with(sql, parameters, &settings, cancel)
    }

    pub(crate) fn query_with(
        &self,
        sql: &str,
        parameters: &[Value],
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<QueryResult, SqlError> {
        let known = self.database.known_plan(sql);
        let (prepared, preparing) = match known {
            Some(plan) => (plan, std::time::Duration::ZERO),
            None => self
                .database
                .budget(settings, cancel)
                .within(|| self.database.timed_plan(&albireo_sql::parse_one(sql)?, sql, parameters))?,
        };
        let snapshot = self.session.snapshot().map_err(crate::errors::session)?;
        if !snapshot.scope().includes(&scope_of(std::slice::from_ref(&prepared))) {
            return Err(not_covered(&prepared, snapshot.scope()));
        }
        let mut result = self.database.run_prepared(&prepared, parameters, snapshot, settings, cancel)?;
        result.planning += preparing;
        Ok(result)
    }

    /// How old the session's data is, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        self.session.age_ns()
    }

    pub(crate) fn session(&self) -> &QuerySession {
        &self.session
    }
}

impl Database {
    /// Makes a query ready to be run many times; the plan is also cached by its text.
    ///
    /// # Errors
    /// Syntax, names and types.
    pub fn prepare(&self, sql: &str) -> Result<PreparedQuery, SqlError> {
        if self.known_plan(sql).is_none() {
            self.plan_query(&albireo_sql::parse_one(sql)?, sql, &[])?;
        }
        Ok(PreparedQuery { database: self.clone(), text: sql.into() })
    }

    /// Runs a query on an open session's snapshot, or else on one of its own.
    pub(crate) fn run_query(
        &self,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
        open: Option<&QuerySession>,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<QueryResult, SqlError> {
        let (prepared, preparing) = self.timed_plan(statement, text, parameters)?;
        let session = match open {
            Some(session) => session.clone(),
            None => self.session_for(&prepared, settings)?,
        };
        let snapshot = session.snapshot().map_err(crate::errors::session)?;
        let mut result = self.run_prepared(&prepared, parameters, snapshot, settings, cancel)?;
        result.planning += preparing;
        Ok(result)
    }

    /// The plan of a query in the cache: its text need not even be parsed.
    fn known_plan(&self, text: &str) -> Option<Arc<Prepared>> {
        self.inner.plans.get(text, self.catalog().version())
    }

    /// As [`Database::plan_query`], and how long it took.
    fn timed_plan(
        &self,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
    ) -> Result<(Arc<Prepared>, std::time::Duration), SqlError> {
        let start = self.inner.env.clock.now();
        let prepared = self.plan_query(statement, text, parameters)?;
        Ok((prepared, std::time::Duration::from_nanos(self.inner.env.clock.now() - start)))
    }

    /// The plan of a query, cached or made now.
    pub(crate) fn plan_query(
        &self,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
    ) -> Result<Arc<Prepared>, SqlError> {
        let catalog = self.catalog();
        if let Some(plan) = self.inner.plans.get(text, catalog.version()) {
            return Ok(plan);
        }
        let (plan, general) = self.plan_anew(&catalog, statement, text, parameters)?;
        if general {
            self.inner.plans.put(text, &plan);
        }
        Ok(plan)
    }

    /// The plan of a statement that is part of the text.
    pub(crate) fn plan_of(
        &self,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
    ) -> Result<Arc<Prepared>, SqlError> {
        self.plan_anew(&self.catalog(), statement, text, parameters).map(|(plan, _)| plan)
    }

    /// The plan of a query by its bound form, and whether it is good whenever its text comes again: for values
    /// of any type, and whatever files have become.
    fn plan_anew(
        &self,
        catalog: &Arc<Catalog>,
        statement: &Statement,
        text: &str,
        parameters: &[Value],
    ) -> Result<(Arc<Prepared>, bool), SqlError> {
        let library = self.library();
        let files = self.inner.olap.files();
        let logical = Logical::new(&library, statement, text, parameters, &files)?;
        let relations: Arc<dyn Relations> = Arc::new(CatalogRelations(Arc::clone(catalog)));
        let plan = self.inner.olap.prepare_bound(&relations, &logical.plan, &logical.parameters)?;
        let general = logical.general && !plan.reads_files();
        Ok((plan, general))
    }

    /// What ends a statement that runs as a transaction.
    pub(crate) fn limits(&self, settings: &Settings, cancel: &CancelToken) -> Limits {
        let clock = self.inner.env.clock.clone();
        let timeout = settings.statement_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let deadline_ns = timeout.map(|timeout| clock.now().saturating_add(timeout));
        let Settings { interprets, synchronous, .. } = *settings;
        Limits { cancel: cancel.clone(), clock, deadline_ns, interprets, synchronous }
    }

    /// What working out a statement may take: the memory of a query, and the statement's time.
    pub(crate) fn budget(&self, settings: &Settings, cancel: &CancelToken) -> Arc<Budget> {
        let limits = self.limits(settings, cancel);
        let memory = settings.query_memory.unwrap_or(self.inner.olap.config().query_memory_limit_bytes);
        Budget::new(memory.max(LEAST_PLANNING_BYTES), Box::new(move || limits.check()))
    }

    /// A session for one query: on a snapshot of the tables that it reads, as stale as the settings
    /// allow.
    pub(crate) fn session_for(
        &self,
        prepared: &Arc<Prepared>,
        settings: &Settings,
    ) -> Result<QuerySession, SqlError> {
        let staleness = u64::try_from(settings.max_staleness.as_nanos()).unwrap_or(u64::MAX);
        let scope = scope_of(std::slice::from_ref(prepared));
        self.inner.sessions.open_within(staleness, &scope).map_err(crate::errors::session)
    }

    pub(crate) fn run_prepared(
        &self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        snapshot: &Arc<DatabaseSnapshot>,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<QueryResult, SqlError> {
        let snapshot: Arc<dyn Snapshot> = Arc::new(StorageSnapshot(Arc::clone(snapshot)));
        let parameters = typed(prepared, parameters)?;
        let output = self.inner.olap.run(prepared, &parameters, &snapshot, options(settings, cancel))?;
        result(output)
    }
}

fn not_covered(prepared: &Prepared, scope: &SnapshotScope) -> SqlError {
    let text = match prepared.relations().iter().find(|relation| scope.columns_of(relation.id).is_none()) {
        Some(relation) => format!("table \"{}\" is not in this session's snapshot", relation.name),
        None => "columns of this query are not in the session's snapshot".to_owned(),
    };
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
        .with_detail("The session was opened for one prepared query, on the columns that it reads.")
        .with_hint("Open a session on all tables with Database::begin_read_only.")
}

pub(crate) fn options(settings: &Settings, cancel: &CancelToken) -> RunOptions {
    RunOptions {
        cancel: cancel.clone(),
        timeout: settings.statement_timeout,
        threads: settings.query_threads,
        memory_limit_bytes: settings.query_memory,
    }
}

/// The values as the plan's parameter types want them.
fn typed(prepared: &Prepared, parameters: &[Value]) -> Result<Vec<Value>, SqlError> {
    let types = prepared.parameter_types();
    if types.len() != parameters.len() {
        let text =
            format!("the statement has {} parameters, but {} were given", types.len(), parameters.len());
        return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, text));
    }
    let coerce = |(value, ty): (&Value, &Option<SqlType>)| match ty {
        Some(ty) => value.clone().coerce(*ty),
        None => Ok(value.clone()),
    };
    parameters.iter().zip(types).map(coerce).collect()
}

/// A result as users see it: PostgreSQL's names, and text for what has no SQL type of ours.
pub(crate) fn result(output: QueryOutput) -> Result<QueryResult, SqlError> {
    let columns: Vec<Column> = output
        .columns
        .iter()
        .map(|c| Column { name: c.name.clone(), ty: c.ty.unwrap_or(SqlType::Text) })
        .collect();
    let as_text: Vec<bool> = output.columns.iter().map(|c| c.ty.is_none()).collect();
    let fields: Vec<Field> = output
        .schema
        .fields()
        .iter()
        .zip(&columns)
        .zip(&as_text)
        .map(|((field, column), &text)| {
            let ty = if text { DataType::Utf8 } else { field.data_type().clone() };
            Field::new(&column.name, ty, field.is_nullable())
        })
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let convert = |batch: RecordBatch| {
        let arrays = batch.columns().iter().zip(&as_text).map(|(array, &text)| match text {
            true => cast(array, &DataType::Utf8),
            false => Ok(Arc::clone(array)),
        });
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&schema), arrays.collect::<Result<_, _>>()?, &options)
    };
    let batches: Result<Vec<RecordBatch>, arrow::error::ArrowError> =
        output.batches.into_iter().map(convert).collect();
    let batches = batches.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
    Ok(QueryResult { columns, schema, batches, planning: output.planning, execution: output.execution })
}
