//! COPY: tables from and to files.
//!
//! A load reads and checks the whole file first, and lays its rows down beside the table, column by column,
//! while transactions go on; then it owns all partitions and makes them the table's rows, as one transaction. So
//! a file is loaded whole or not at all, and the executors stand still only for the index entries.
//!
//! Responsible for: files' contents as rows and back, errors that name file, line and column.
//! Not responsible for: what the statement means (`sql::copy`), which rows are written (`olap`).
//!
//! I-1 A load that fails leaves no row. I-2 A file written in part is never seen under its name.

mod csv;
mod files;
mod load;
mod parquet;
mod text;
mod write;

use std::io::{Read, Write};

use albireo_base::{ColumnId, SqlError, SqlState, StatementProgress, Value};
use albireo_execute::Interrupts;
use albireo_files::{Cause, CellError, Fault, refuse_url};
use albireo_olap::CancelToken;
use albireo_sql::ast::Statement;
use albireo_sql::copy::{CopyFormat, CopyPlace};
use albireo_sql::{CopyPlan, TableDef, plan_copy};

use crate::settings::Settings;
use crate::{Database, Outcome, ReadOnlySession};
use load::Load;

/// Rows between two looks at the clock and the cancel token.
const ROWS_PER_CHECK: u64 = 1024;

/// What a load puts where, for rows and for errors.
pub(crate) struct CopyTarget<'a> {
    table: &'a TableDef,
    /// The columns that the file fills, in the file's order.
    columns: &'a [ColumnId],
    /// The file; `None` is what the client sends.
    path: Option<&'a str>,
    /// What a row is called in the file: line or row.
    unit: &'static str,
}

/// What a load reads.
struct Source<'a> {
    format: &'a CopyFormat,
    encoding: Option<&'a str>,
}

/// The client's end of STDIN and STDOUT.
pub(crate) enum Client<'a> {
    /// It has none.
    None,
    /// What it sends.
    Reader(Box<dyn Read + Send + 'a>),
    /// Where it takes what is sent.
    Writer(&'a mut (dyn Write + Send)),
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

impl CopyTarget<'_> {
    /// Says where in the file an error is.
    fn at(&self, error: SqlError, place: u64, column: Option<ColumnId>) -> SqlError {
        let column = column.map(|column| self.table.column_def(column).name.as_str());
        self.locate(error, Some(place), column, None)
    }

    /// Adds to an error where in the file it is, and what stands there.
    fn locate(
        &self,
        error: SqlError,
        place: Option<u64>,
        column: Option<&str>,
        value: Option<&str>,
    ) -> SqlError {
        let mut context = format!("COPY {}", self.table.name);
        if let Some(path) = self.path {
            context.push_str(&format!(", file \"{path}\""));
        }
        if let Some(place) = place {
            context.push_str(&format!(", {} {place}", self.unit));
        }
        if let Some(column) = column {
            context.push_str(&format!(", column \"{column}\""));
        }
        if let Some(value) = value {
            context.push_str(&format!(": \"{value}\""));
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
            CellError::Null => self.null_error(&self.table.column_def(column).name),
        };
        self.at(error, place, Some(column))
    }

    fn null_error(&self, column: &str) -> SqlError {
        let text = format!(
            "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
            self.table.name
        );
        SqlError::new(SqlState::NOT_NULL_VIOLATION, text)
    }

    /// What is wrong with a text file.
    fn fault(&self, fault: Fault) -> SqlError {
        let column = fault.column.as_deref();
        let error = match fault.cause {
            Cause::Io(error) => return files::read_error(self.path, &error),
            Cause::Null => self.null_error(column.unwrap_or_default()),
            Cause::Sql(error) => error,
        };
        self.locate(error, fault.place, column, fault.value.as_deref())
    }
}

impl Limits<'_> {
    /// The same, as a statement that runs as a transaction has them.
    fn of_statement(&self) -> crate::routines::Limits {
        let clock = self.database.inner.env.clock.clone();
        let (cancelled, deadline_ns) = (self.cancel.flag(), self.deadline_ns);
        let interrupts = Interrupts { cancelled, clock, deadline_ns };
        crate::routines::Limits { interrupts, interprets: false, synchronous: None }
    }

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
        client: Client<'_>,
    ) -> Result<Outcome, SqlError> {
        let catalog = self.catalog();
        let plan = plan_copy(&catalog, statement, text)?;
        let timeout = settings.statement_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        let deadline_ns = timeout.map(|timeout| self.inner.env.clock.now().saturating_add(timeout));
        let Watched { cancel, progress } = watched;
        let limits = Limits { database: self, cancel, deadline_ns, progress };
        check_client(&plan, &client)?;
        if let CopyPlan::From { place: CopyPlace::File(path), .. }
        | CopyPlan::To { place: CopyPlace::File(path), .. } = &plan
        {
            refuse_url(path)?;
        }
        let rows = match &plan {
            CopyPlan::From { .. } if session.is_some() => {
                let text = "cannot change anything in a read-only transaction";
                return Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, text));
            }
            CopyPlan::From { table, columns, place, format, encoding } => {
                let unit = if *format == CopyFormat::Parquet { "row" } else { "line" };
                let path = match place {
                    CopyPlace::File(path) => Some(path.as_str()),
                    CopyPlace::Client => None,
                };
                let target = CopyTarget { table, columns, path, unit };
                let defaults = self.default_values(table, |column| columns.contains(&column))?;
                let source = Source { format, encoding: encoding.as_deref() };
                self.load_file(&target, &source, defaults, &limits, client)?
            }
            CopyPlan::To { query, place, format } => {
                let prepared = self.plan_of_part(query, text)?;
                if !prepared.parameter_types().is_empty() {
                    let message = "there is no parameter $1";
                    return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
                }
                let session = match session {
                    Some(session) => session.session().clone(),
                    None => self.session_for(&prepared, settings)?,
                };
                let snapshot = session.snapshot().map_err(crate::errors::session)?;
                let source = write::Source { prepared: &prepared, snapshot: &snapshot, settings, watched };
                self.write_file(&source, place, format, client)?
            }
        };
        Ok(Outcome::Done { tag: format!("COPY {rows}").into(), rows, notices: Vec::new() })
    }

    /// Loads the whole file, or nothing of it.
    fn load_file(
        &self,
        target: &CopyTarget<'_>,
        source: &Source<'_>,
        defaults: Vec<Value>,
        limits: &Limits<'_>,
        client: Client<'_>,
    ) -> Result<u64, SqlError> {
        let mut load = Load::beside(target, defaults, limits)?;
        let read = self.read_file(source, &mut load, client);
        if read.is_err() && load.is_short_of_memory() {
            load = load.kept();
            self.read_file(source, &mut load, Client::None)?;
        } else {
            read?;
        }
        load.finish()
    }

    /// Reads and checks the whole file.
    fn read_file(
        &self,
        source: &Source<'_>,
        load: &mut Load<'_>,
        client: Client<'_>,
    ) -> Result<(), SqlError> {
        let Source { format, encoding } = *source;
        let file = match (load.target().path, client) {
            (Some(path), _) => {
                let file = self.inner.env.disk.open(path.as_ref());
                file.map_err(|error| files::open_error(path, &error))?
            }
            (None, Client::Reader(reader)) => {
                let read = text::read(reader, None, format, encoding, load);
                load.cannot_read_again();
                return read;
            }
            (None, _) => {
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY FROM STDIN without a client"));
            }
        };
        match format {
            CopyFormat::Parquet => parquet::read(file, load),
            _ => {
                let length_bytes = file.len().ok().filter(|length| *length > 0);
                let read = text::read(Box::new(file), length_bytes, format, encoding, load);
                if length_bytes.is_none() {
                    // It is a pipe, which goes on where it was.
                    load.cannot_read_again();
                }
                read
            }
        }
    }
}

/// STDIN and STDOUT need a client at the other end, and no other statement does.
fn check_client(plan: &CopyPlan, client: &Client<'_>) -> Result<(), SqlError> {
    let invalid = |text: &str| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
    match (plan, client) {
        (CopyPlan::From { place: CopyPlace::Client, format: CopyFormat::Parquet, .. }, _) => {
            let error = SqlError::unsupported("COPY FROM STDIN of Parquet");
            Err(error.with_hint("Its end has to be read first: name a file."))
        }
        (CopyPlan::From { place: CopyPlace::Client, .. }, Client::Reader(_))
        | (CopyPlan::To { place: CopyPlace::Client, .. }, Client::Writer(_)) => Ok(()),
        (CopyPlan::From { place: CopyPlace::Client, .. }, _) => {
            let error = invalid("COPY FROM STDIN needs the rows, and a statement alone has none");
            Err(error.with_hint("Call Connection::copy_from(sql, reader), or name a file."))
        }
        (CopyPlan::To { place: CopyPlace::Client, .. }, _) => {
            let error = invalid("COPY TO STDOUT needs a place for the rows, and a statement alone has none");
            Err(error.with_hint("Call Connection::copy_to(sql, writer), or name a file."))
        }
        (_, Client::None) => Ok(()),
        (_, Client::Reader(_)) => Err(invalid("the statement is not COPY ... FROM STDIN")),
        (_, Client::Writer(_)) => Err(invalid("the statement is not COPY ... TO STDOUT")),
    }
}
