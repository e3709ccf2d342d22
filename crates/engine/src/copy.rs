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

mod csv;
mod files;
mod parquet;
mod staged;
mod write;

use std::sync::Arc;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{ColumnId, SqlError, SqlState, StatementProgress, Value};
use albireo_olap::CancelToken;
use albireo_partition::{Abort, Call, Route, Transaction};
use albireo_sql::ast::Statement;
use albireo_sql::copy::CopyFormat;
use albireo_sql::{Catalog, CopyPlan, TableDef, plan_copy};

use crate::ddl::handle;
use crate::settings::Settings;
use crate::{Database, Outcome, ReadOnlySession};
use staged::StagedRows;

/// Rows between two looks at the clock and the cancel token.
const ROWS_PER_CHECK: u64 = 1024;

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

    /// Packs a value read for the file's column `index`.
    fn stage(&self, rows: &mut StagedRows, index: usize, value: &Value, place: u64) -> Result<(), SqlError> {
        let column = self.columns[index];
        let def = self.table.column_def(column);
        if value.is_null() && !def.nullable {
            let text = format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                def.name, self.table.name
            );
            return Err(self.at(SqlError::new(SqlState::NOT_NULL_VIOLATION, text), place, Some(column)));
        }
        rows.push(value);
        Ok(())
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
                self.insert_staged(&target, &rows, defaults, &limits)?
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
    ) -> Result<StagedRows, SqlError> {
        let file = self.inner.env.disk.open(target.path.as_ref());
        let file = file.map_err(|error| files::open_error(target.path, &error))?;
        match format {
            CopyFormat::Csv(options) => csv::stage(file, options, target, limits),
            CopyFormat::Parquet => parquet::stage(file, target, limits),
        }
    }

    /// Puts staged rows into their table, all or none.
    fn insert_staged(
        &self,
        target: &Target<'_>,
        rows: &StagedRows,
        defaults: Vec<Value>,
        limits: &Limits<'_>,
    ) -> Result<u64, SqlError> {
        let _fixed = self.inner.definitions.read();
        still_there(&self.catalog(), target.table)?;
        limits.progress.begin(Phase::InsertingRows, Unit::Rows, Some(rows.count()));
        let mut place_of_failure = None;
        let inserted = self.inner.partitions.crossing(&Call::new(Route::Crossing, "COPY"), |tx| {
            let mut count = 0_u64;
            rows.replay(target.columns, defaults, |place, values| {
                if count.is_multiple_of(ROWS_PER_CHECK) {
                    limits.check(0)?;
                    limits.progress.add(if count == 0 { 0 } else { ROWS_PER_CHECK });
                }
                count += 1;
                insert(tx, target.table, values).inspect_err(|_| place_of_failure = Some(place))
            })?;
            Ok(count)
        });
        inserted.map_err(|error| {
            let error = self.explain_call(error);
            match place_of_failure {
                Some(place) => target.at(error, place, None),
                None => error,
            }
        })
    }
}

fn insert(tx: &mut Transaction<'_, '_>, table: &TableDef, values: &[Value]) -> Result<(), Abort> {
    let site = match table.partition_by {
        Some(column) => tx.site_of_value(&values[column.index()])?,
        None => tx.home(),
    };
    tx.insert_values_at(site, handle(table), values).map(|_| ())
}

/// The table may have been dropped while the file was read. Its columns never change.
fn still_there(catalog: &Arc<Catalog>, table: &TableDef) -> Result<(), SqlError> {
    match catalog.table(table.id) {
        Some(_) => Ok(()),
        None => {
            let text = format!("relation \"{}\" was dropped while the file was read", table.name);
            Err(SqlError::new(SqlState::UNDEFINED_TABLE, text))
        }
    }
}
