//! CSV and JSON files as tables.
//!
//! Responsible for: the columns that a file has, its rows as a stream, errors with file, line and column.
//! Not responsible for: what is in the bytes (`albireo_files`).
//!
//! I-1 A file's rows come in its order. I-2 Columns that a query does not name are cut but not read.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, arrow_type};
use albireo_env::Disk;
use albireo_files::{
    Cause, Chunker, CsvDialect, CsvHints, Decoder, Encoding, Fault, Inferred, TextFormat, infer_csv,
    infer_json, io_error,
};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

use super::{Format, Request, empty};
use crate::context::QueryContext;
use crate::errors::{cancelled, external};

/// Files whose columns are known, and the same in all.
#[derive(Debug)]
pub(super) struct TextTable {
    files: Vec<TextFile>,
    inferred: Inferred,
    schema: SchemaRef,
}

/// Where the bytes are.
#[derive(Clone, Debug)]
struct TextFile {
    disk: Arc<dyn Disk>,
    path: String,
    encoding: Encoding,
    /// How many rows decided on the types; all if `None`.
    sample_rows: Option<usize>,
    /// The call that reads such a file, for hints.
    function: &'static str,
}

impl TextTable {
    /// Finds out what the first file with a record has.
    ///
    /// # Errors
    /// There is none, it cannot be read, it is empty, or it is no text.
    pub(super) fn new(disk: &Arc<dyn Disk>, request: Request) -> Result<Self, SqlError> {
        let Request { path, format, encoding, hints } = request;
        let function = if format == Format::Json { "read_json" } else { "read_csv" };
        let file = |path| TextFile {
            disk: Arc::clone(disk),
            path,
            encoding,
            sample_rows: hints.sample_rows,
            function,
        };
        let files: Vec<TextFile> = matching(&**disk, &path)?.into_iter().map(file).collect();
        let mut inferred = None;
        for file in &files {
            inferred = match format {
                Format::Json => file.infer_json()?,
                _ => file.infer_csv(&hints)?,
            };
            if inferred.is_some() {
                break;
            }
        }
        let inferred = inferred.ok_or_else(|| empty(&path))?;
        let field = |f: &albireo_files::Field| Field::new(&f.name, arrow_type(f.ty), true);
        let schema = Arc::new(Schema::new(inferred.fields.iter().map(field).collect::<Vec<_>>()));
        Ok(Self { files, inferred, schema })
    }
}

/// The files that `path` stands for, at least one: `*` in a file's name is any text.
fn matching(disk: &dyn Disk, path: &str) -> Result<Vec<String>, SqlError> {
    if !path.contains('*') {
        return Ok(vec![path.to_owned()]);
    }
    let (directory, pattern) = match path.rsplit_once('/') {
        Some(("", pattern)) => ("/", pattern),
        Some(parts) => parts,
        None => (".", path),
    };
    if directory.contains('*') {
        return Err(SqlError::unsupported("* in the name of a directory"));
    }
    let paths = disk.read_dir(directory.as_ref());
    let paths = paths.map_err(|error| io_error(Some(directory), "read", &error))?;
    let is_match = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| pattern.starts_with('.') == name.starts_with('.') && is_like(name, pattern))
    };
    let found: Vec<String> =
        paths.iter().filter(|path| is_match(path)).map(|path| path.display().to_string()).collect();
    if found.is_empty() {
        return Err(SqlError::new(SqlState::UNDEFINED_FILE, format!("no file matches \"{path}\"")));
    }
    Ok(found)
}

fn is_like(name: &str, pattern: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return name == pattern };
    let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl TextFile {
    fn infer_json(&self) -> Result<Option<Inferred>, SqlError> {
        let mut chunks = self.open(&TextFormat::Json(albireo_files::JsonDialect::default()))?;
        infer_json(&mut chunks, self.sample_rows).map_err(|fault| self.error(fault))
    }

    /// A file called .tsv has tabs, whatever else it has.
    fn infer_csv(&self, hints: &CsvHints) -> Result<Option<Inferred>, SqlError> {
        let bare = albireo_files::without_compression(&self.path);
        let is_tsv = bare.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("tsv"));
        let tab = is_tsv.then_some(b'\t');
        let hints = CsvHints { delimiter: hints.delimiter.or(tab), ..hints.clone() };
        let dialect = CsvDialect { delimiter: hints.delimiter.unwrap_or(b','), ..hints.dialect.clone() };
        let mut chunks = self.open(&TextFormat::Csv(dialect))?;
        infer_csv(&mut chunks, &hints).map_err(|fault| self.error(fault))
    }

    fn open(&self, format: &TextFormat) -> Result<Chunker<'static>, SqlError> {
        let file = self.disk.open(self.path.as_ref());
        let mut file = file.map_err(|error| io_error(Some(&self.path), "open", &error))?;
        // It is read twice: to find out what is in it, and for its rows.
        if file.len().is_ok_and(|bytes| bytes == 0) && file.read(&mut [0]).is_ok_and(|read| read > 0) {
            return Err(SqlError::unsupported(format!(
                "a query of \"{}\", which is a pipe or a device",
                self.path
            ))
            .with_hint("Load it with COPY, or write it to a file."));
        }
        let text = albireo_files::open(Box::new(file), self.encoding).map_err(|fault| self.error(fault))?;
        Ok(Chunker::new(text, format))
    }

    fn other_header(&self) -> SqlError {
        let message =
            format!("file \"{}\" has another header line than the columns were taken from", self.path);
        SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
            .with_hint("Read files with different columns one by one.")
    }

    fn error(&self, fault: Fault) -> SqlError {
        let error = match fault.cause {
            Cause::Io(error) => return io_error(Some(&self.path), "read", &error),
            Cause::Null => SqlError::new(SqlState::NOT_NULL_VIOLATION, "null value where there must be one"),
            Cause::Sql(error) => error,
        };
        let mut context = format!("File \"{}\"", self.path);
        if let Some(line) = fault.place {
            context.push_str(&format!(", line {line}"));
        }
        if let Some(column) = &fault.column {
            context.push_str(&format!(", column \"{column}\""));
        }
        if let Some(value) = &fault.value {
            context.push_str(&format!(": \"{value}\""));
        }
        context.push('.');
        let context = match error.detail() {
            Some(detail) => format!("{detail} {context}"),
            None => context,
        };
        let is_beyond_sample = fault.column.is_some() && error.hint().is_none();
        let error = error.with_detail(context);
        match self.sample_rows.filter(|_| is_beyond_sample) {
            Some(rows) => {
                let (function, path) = (self.function, &self.path);
                let text =
                    if function == "read_csv" { "; all_varchar = true takes all values as text" } else { "" };
                error.with_hint(format!(
                    "The first {rows} rows decided on the columns and their types. {function}('{path}', sample_size = -1) looks at all of them{text}."
                ))
            }
            None => error,
        }
    }
}

#[async_trait]
impl TableProvider for TextTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Inferred { format, fields, header } = self.inferred.clone();
        let wanted = projection.cloned().unwrap_or_else(|| (0..fields.len()).collect());
        let decoder = Arc::new(Decoder::projected(format, fields, wanted));
        let schema = Arc::clone(decoder.schema());
        let rows = |file: &TextFile| {
            let (file, decoder, header) = (file.clone(), Arc::clone(&decoder), header.clone());
            Arc::new(Rows { file, decoder, header }) as Arc<dyn PartitionStream>
        };
        let rows = self.files.iter().map(rows).collect();
        let plan = StreamingTableExec::try_new(schema, rows, None, Vec::new(), false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// A file's rows, each time they are asked for.
struct Rows {
    file: TextFile,
    decoder: Arc<Decoder>,
    header: Option<Vec<Option<String>>>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.file.path).finish_non_exhaustive()
    }
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        self.decoder.schema()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let query = context.session_config().get_extension::<QueryContext>();
        let (file, decoder, header) = (self.file.clone(), Arc::clone(&self.decoder), self.header.clone());
        let mut state = State::Closed;
        let next = move || loop {
            if query.as_ref().is_some_and(|query| query.is_cancelled()) {
                return Err(cancelled());
            }
            match &mut state {
                State::Closed => {
                    let mut chunks = file.open(decoder.format())?;
                    if header.is_some() {
                        let found =
                            chunks.take_record(decoder.format()).map_err(|fault| file.error(fault))?;
                        if found.is_some() && found != header {
                            return Err(file.other_header());
                        }
                    }
                    state = State::Open(chunks);
                }
                State::Open(chunks) => {
                    let Some(chunk) = chunks.next_chunk().map_err(|fault| file.error(fault))? else {
                        state = State::Done;
                        continue;
                    };
                    let decoded = decoder.decode(&chunk).map_err(|fault| file.error(fault))?;
                    chunks.recycle(chunk);
                    return Ok(Some(decoded.batch.columns));
                }
                State::Done => return Ok(None),
            }
        };
        let rows = Stream { next, is_done: false };
        let schema = Arc::clone(self.decoder.schema());
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(rows)))
    }
}

enum State {
    Closed,
    Open(Chunker<'static>),
    Done,
}

/// Batches until the end or the first error.
struct Stream<F> {
    next: F,
    is_done: bool,
}

impl<F: FnMut() -> Result<Option<RecordBatch>, SqlError>> Iterator for Stream<F> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = (self.next)();
        self.is_done = !matches!(next, Ok(Some(_)));
        next.map_err(external).transpose()
    }
}
