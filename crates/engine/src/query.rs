//! The analytical path: plans for snapshots, and running them.

use std::sync::Arc;

use albireo_base::budget::Budget;
use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_execute::Interrupts;
use albireo_olap::relation::{Relations, Snapshot};
use albireo_olap::{CancelToken, LEAST_PLANNING_BYTES, Prepared, QueryOutput, RunOptions};
use albireo_partition::QuerySession;
use albireo_sql::ast::Statement;
use albireo_storage::{DatabaseSnapshot, SnapshotScope};
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};

use crate::adapters::{CatalogRelations, StorageSnapshot, scope_of};
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::{Entry, Meaning, Parsed};
use crate::{Column, Database, QueryResult};

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
        let plan = self.database.plan_by_text(&self.text)?;
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
        let entry = match self.database.kept_query(sql, parameters) {
            Some(entry) => entry,
            None => self.database.budget(settings, cancel).within(|| {
                Ok::<_, SqlError>(self.database.query_entry(&albireo_sql::parse_one(sql)?, sql, parameters))
            })?,
        };
        self.database.run_query(&entry, parameters, Some(&self.session), settings, cancel)
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
        self.plan_by_text(sql)?;
        Ok(PreparedQuery { database: self.clone(), text: sql.into() })
    }

    /// A kept query.
    pub(crate) fn kept_query(&self, text: &str, values: &[Value]) -> Option<Arc<Entry>> {
        let generation = self.inner.definitions.read();
        self.inner.statements.get(text, values, *generation).filter(|entry| entry.is_query())
    }

    /// A query bound, and kept.
    pub(crate) fn query_entry(&self, statement: &Statement, text: &str, values: &[Value]) -> Arc<Entry> {
        let generation = self.inner.definitions.read();
        self.entry(Parsed::Statement(statement), text, values, *generation)
    }

    /// Runs a query on an open session's snapshot, or else on one of its own.
    pub(crate) fn run_query(
        &self,
        entry: &Entry,
        parameters: &[Value],
        open: Option<&QuerySession>,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<QueryResult, SqlError> {
        let start = self.inner.env.clock.now();
        let prepared = match entry.prepared.get() {
            Some(plan) => Arc::clone(plan),
            None => self.budget(settings, cancel).within(|| self.plan_of(entry))?,
        };
        let preparing = std::time::Duration::from_nanos(self.inner.env.clock.now() - start);
        let session = match open {
            Some(session) => session.clone(),
            None => self.session_for(&prepared, settings)?,
        };
        let snapshot = session.snapshot().map_err(crate::errors::session)?;
        if open.is_some() && !snapshot.scope().includes(&scope_of(std::slice::from_ref(&prepared))) {
            return Err(not_covered(&prepared, snapshot.scope()));
        }
        let mut result = self.run_prepared(&prepared, parameters, &snapshot, settings, cancel)?;
        result.planning += preparing;
        Ok(result)
    }

    /// The plan of a query whose parameters have no values yet.
    fn plan_by_text(&self, text: &str) -> Result<Arc<Prepared>, SqlError> {
        let generation = *self.inner.definitions.read();
        if let Some(plan) = self.inner.statements.with_plan(text, generation) {
            return Ok(plan);
        }
        let statement = albireo_sql::parse_one(text)?;
        self.plan_of(&self.query_entry(&statement, text, &[]))
    }

    /// The plan of a query for a snapshot, made once; each time if it reads files, which may change.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub(crate) fn plan_of(&self, entry: &Entry) -> Result<Arc<Prepared>, SqlError> {
        if let Some(plan) = entry.prepared.get() {
            return Ok(Arc::clone(plan));
        }
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let Meaning::Select(query) = &bound.meaning else {
            return Err(SqlError::unsupported("a change as a query"));
        };
        let relations: Arc<dyn Relations> = Arc::new(CatalogRelations(Arc::clone(&entry.library.catalog)));
        let plan = self.inner.olap.prepare(&relations, query, &bound.parameters())?;
        match entry.reads_files {
            true => Ok(plan),
            false => Ok(Arc::clone(entry.prepared.get_or_init(|| plan))),
        }
    }

    /// The plan of a query that is part of a text.
    pub(crate) fn plan_of_part(&self, statement: &Statement, text: &str) -> Result<Arc<Prepared>, SqlError> {
        let generation = *self.inner.definitions.read();
        let parsed = Parsed::Statement(statement);
        let files = self.sources();
        self.plan_of(&Entry::new(&self.library(), parsed, text, &[], generation, Some(&files)))
    }

    /// What ends a statement that runs as a transaction.
    pub(crate) fn limits(&self, settings: &Settings, cancel: &CancelToken) -> Limits {
        let clock = self.inner.env.clock.clone();
        let timeout = settings.statement_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let deadline_ns = timeout.map(|timeout| clock.now().saturating_add(timeout));
        let Settings { interprets, synchronous, .. } = *settings;
        let interrupts = Interrupts { cancelled: cancel.flag(), clock, deadline_ns };
        Limits { interrupts, interprets, synchronous }
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
    let columns: Arc<[Column]> = output
        .columns
        .iter()
        .map(|c| Column { name: c.name.clone(), ty: c.ty.unwrap_or(SqlType::Text) })
        .collect();
    let as_text: Vec<bool> = output.columns.iter().map(|c| c.ty.is_none()).collect();
    let fields: Vec<Field> = output
        .schema
        .fields()
        .iter()
        .zip(&*columns)
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
    Ok(QueryResult::of_batches(columns, schema, batches).after(output.planning, output.execution))
}
