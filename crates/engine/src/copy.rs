//! COPY: tables from and to files.
//!
//! A load reads and checks the whole file first, into packed rows, while transactions go on; then
//! it owns all partitions and puts the rows in as one transaction. So a file is loaded whole or not
//! at all, and the executors stand still only for the insertion.
//!
//! Responsible for: files' contents as rows and back, errors that name file, line and column.
//! Not responsible for: what the statement means (`sql::copy`), which rows are written (`olap`).
//!
//! I-1 A load that fails leaves no row. I-2 A file written in part is never seen under its name.

pub(crate) mod batch;
mod csv;
mod files;
mod insert;
mod parquet;
mod write;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{ColumnId, SqlError, SqlState, StatementProgress, Value};
use albireo_files::{CellError, ColumnBuilder};
use albireo_olap::CancelToken;
use albireo_sql::ast::Statement;
use albireo_sql::copy::CopyFormat;
use albireo_sql::{CopyPlan, TableDef, plan_copy};
use arrow::array::{RecordBatch, RecordBatchOptions};

use crate::settings::Settings;
use crate::{Database, Outcome, ReadOnlySession};
use batch::{Batch, Places, Staged};

/// Rows between two looks at the clock and the cancel token.
const ROWS_PER_CHECK: u64 = 1024;

/// Rows in a batch that is made value by value.
const BATCH_ROWS: usize = 8192;

/// What a load puts where, for rows and for errors.
pub(crate) struct Target<'a> {
    table: &'a TableDef,
    /// The columns that the file fills, in the file's order.
    columns: &'a [ColumnId],
    path: &'a str,
    /// What a row is called in the file: line or row.
    unit: &'static str,
}

/// How the client reaches a COPY that runs.
#[derive(Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) cancel: &'a CancelToken,
    pub(crate) progress: &'a StatementProgress,
}

/// When a COPY must end early, and whom it tells how far it is.
pub(crate) struct Limits<'a> {
    database: &'a Database,
    cancel: &'a CancelToken,
    deadline_ns: Option<u64>,
    progress: &'a StatementProgress,
}

impl Target<'_> {
    /// Says where in the file an error is.
    fn at(&self, error: SqlError, place: u64, column: Option<ColumnId>) -> SqlError {
        let mut context = format!("COPY {}, file \"{}\", {} {place}", self.table.name, self.path, self.unit);
        if let Some(column) = column {
            context.push_str(&format!(", column \"{}\"", self.table.column_def(column).name));
        }
        context.push('.');
        match error.detail() {
            Some(detail) => {
                let detail = format!("{detail} {context}");
                error.with_detail(detail)
            }
            None => error.with_detail(context),
        }
    }

    /// What is wrong with the file's column `index` at `place`.
    fn cell_error(&self, error: CellError, place: u64, index: usize) -> SqlError {
        let column = self.columns[index];
        let error = match error {
            CellError::Value(error) => error,
            CellError::Null => {
                let text = format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    self.table.column_def(column).name,
                    self.table.name
                );
                SqlError::new(SqlState::NOT_NULL_VIOLATION, text)
            }
        };
        self.at(error, place, Some(column))
    }
}

/// Rows that are read value by value.
struct Rows<'a> {
    target: &'a Target<'a>,
    builders: Vec<ColumnBuilder>,
    places: Vec<u64>,
}

impl<'a> Rows<'a> {
    fn new(target: &'a Target<'a>) -> Self {
        let builder = |column: &ColumnId| {
            let def = target.table.column_def(*column);
            ColumnBuilder::new(def.ty, def.nullable, BATCH_ROWS, BATCH_ROWS * 16)
        };
        Self { target, builders: target.columns.iter().map(builder).collect(), places: Vec::new() }
    }

    /// A row begins.
    fn begin(&mut self, place: u64) {
        self.places.push(place);
    }

    fn push(&mut self, index: usize, value: Value) -> Result<(), SqlError> {
        let place = *self.places.last().expect("a row was begun");
        self.builders[index].push_value(value).map_err(|error| self.target.cell_error(error, place, index))
    }

    fn finish(self) -> Result<Batch, SqlError> {
        let arrays = self.builders.into_iter().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.places.len()));
        let columns = RecordBatch::try_new_with_options(batch::schema(self.target), arrays, &options);
        let columns = columns.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
        Ok(Batch { columns, places: Places::Listed(self.places) })
    }
}

impl Limits<'_> {
    /// Ends the statement with 57014 when it was cancelled or is out of time, with 53200 when the
    /// rows of a load can have no place in the end.
    fn check(&self, staged_bytes: u64) -> Result<(), SqlError> {
        let canceled = |text: &str| Err(SqlError::new(SqlState::QUERY_CANCELED, text));
        if self.cancel.is_cancelled() {
            return canceled("canceling statement due to user request");
        }
        if self.deadline_ns.is_some_and(|deadline| self.database.inner.env.clock.now() >= deadline) {
            return canceled("canceling statement due to statement timeout");
        }
        let limit = self.database.inner.partitions.registry().pool().limit_bytes();
        if staged_bytes > limit {
            let text = format!("the file's rows are larger than the data limit of {limit} bytes");
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, text).with_hint("Raise data_limit_bytes."));
        }
        Ok(())
    }
}

impl Database {
    /// Runs a COPY; a session gives the snapshot that COPY TO reads.
    pub(crate) fn run_copy(
        &self,
        statement: &Statement,
        text: &str,
        session: Option<&ReadOnlySession>,
        settings: &Settings,
        watched: Watched<'_>,
    ) -> Result<Outcome, SqlError> {
        let catalog = self.catalog();
        let plan = plan_copy(&catalog, statement, text)?;
        let timeout = settings.statement_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let deadline_ns = timeout.map(|timeout| self.inner.env.clock.now().saturating_add(timeout));
        let Watched { cancel, progress } = watched;
        let limits = Limits { database: self, cancel, deadline_ns, progress };
        let rows = match &plan {
            CopyPlan::From { .. } if session.is_some() => {
                let text = "cannot change anything in a read-only transaction";
                return Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, text));
            }
            CopyPlan::From { table, columns, path, format } => {
                let unit = if *format == CopyFormat::Parquet { "row" } else { "line" };
                let target = Target { table, columns, path, unit };
                let rows = self.stage(&target, format, &limits)?;
                let defaults = self.default_values(&catalog, table, settings, cancel)?;
                insert::insert_batches(&target, &rows, defaults, &limits)?
            }
            CopyPlan::To { query, path, format } => {
                let prepared = self.prepare_bound(&catalog, query, Vec::new())?;
                let session = match session {
                    Some(session) => session.session().clone(),
                    None => self.session_for(&prepared, settings)?,
                };
                let snapshot = session.snapshot().map_err(crate::errors::session)?;
                let source = write::Source { prepared: &prepared, query, snapshot, settings, watched };
                self.write_file(&source, path, format)?
            }
        };
        Ok(Outcome::Done { tag: format!("COPY {rows}"), rows, notices: Vec::new() })
    }

    /// Reads and checks the whole file.
    fn stage(
        &self,
        target: &Target<'_>,
        format: &CopyFormat,
        limits: &Limits<'_>,
    ) -> Result<Staged, SqlError> {
        let file = self.inner.env.disk.open(target.path.as_ref());
        let file = file.map_err(|error| files::open_error(target.path, &error))?;
        match format {
            CopyFormat::Csv(options) => csv::stage(file, options, target, limits),
            CopyFormat::Parquet => parquet::stage(file, target, limits),
        }
    }
}
