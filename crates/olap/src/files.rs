//! Files as relations (`FROM 'file.parquet'`, `FROM read_csv('file')`), and Parquet out for COPY.
//!
//! Responsible for: opening the files that a statement names (`open`), Parquet by DataFusion's reader
//! (checked: `parquet`), CSV and JSON by ours (`text`), writing Parquet. Not responsible for: what is in text files (`albireo_files`).

mod open;
mod parquet;
mod text;

use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use albireo_base::{SqlError, SqlState};
use albireo_env::{Disk, RealDisk};
use albireo_files::{CsvHints, Damaged, Encoding, guarded, io_error};
use albireo_semantics::query::FileFormat as Format;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use crate::engine::Shared;
use crate::errors::{external, from_io, to_sql_error};
pub use open::StatementFiles;
pub(crate) use open::{column_type, source_of};
use text::TextTable;

/// A file to read, and how.
#[derive(Clone, Debug)]
struct Request {
    path: String,
    format: Format,
    encoding: Encoding,
    hints: CsvHints,
}

/// Rows that decide on the types of a file's columns.
const SAMPLE_ROWS: usize = 20_480;

/// The format that a file's name says.
fn format_of(path: &str) -> Option<Format> {
    let bare = albireo_files::without_compression(path);
    let extension = bare.rsplit_once('.')?.1.to_ascii_lowercase();
    match extension.as_str() {
        "parquet" | "pq" if bare.len() == path.len() => Some(Format::Parquet),
        "csv" | "tsv" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" => Some(Format::Json),
        _ => None,
    }
}

impl Request {
    fn new(path: &str, format: Format) -> Self {
        let hints = CsvHints { sample_rows: Some(SAMPLE_ROWS), ..CsvHints::default() };
        Self { path: path.to_owned(), format, encoding: Encoding::Utf8, hints }
    }
}

/// The error of a path that does not say a format.
fn unknown_format(path: &str) -> SqlError {
    SqlError::unsupported(format!("the file format of \"{path}\"")).with_hint(
        "Names of files end in .parquet, .csv, .tsv, .json, .jsonl or .ndjson, the latter with .gz or .zst behind it; read_csv('...') takes any.",
    )
}

async fn table(shared: &Shared, request: Request) -> Result<Arc<dyn TableProvider>> {
    albireo_files::refuse_url(&request.path).map_err(external)?;
    if request.format != Format::Parquet {
        return Ok(Arc::new(TextTable::new(&shared.config.disk, request).map_err(external)?));
    }
    let path = request.path.as_str();
    check_parquet(path).map_err(external)?;
    let state = shared.state();
    let url = ListingTableUrl::parse(path)?;
    let options = ListingOptions::new(Arc::new(parquet::Checked::default())).with_file_extension("");
    let what = format!("file \"{path}\"");
    let schema = unless_damaged(&what, options.infer_schema(state, &url)).await;
    let schema = schema.map_err(|e| unreadable(path, e))?;
    if schema.fields().is_empty() {
        return Err(unreadable(path, DataFusionError::Execution("No such file".to_owned())));
    }
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}

/// Says what is wrong with a file that is no Parquet file, before the decoder does in other words.
fn check_parquet(path: &str) -> std::result::Result<(), SqlError> {
    if path.contains('*') || path.ends_with('/') {
        return Ok(());
    }
    let file = RealDisk.open(path.as_ref()).map_err(|error| io_error(Some(path), "open", &error))?;
    match file.len() {
        Ok(0) => Err(empty(path)),
        _ => Ok(()),
    }
}

fn empty(path: &str) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, format!("file \"{path}\" is empty"))
        .with_detail("There is nothing in it to find columns in.")
}

/// Whether a plan reads Parquet files.
pub(crate) fn reads_parquet(plan: &LogicalPlan) -> bool {
    let reads = |node: &LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => {
            source_as_provider(&scan.source).is_ok_and(|table| table.downcast_ref::<ListingTable>().is_some())
        }
        _ => false,
    };
    plan.exists(|node| Ok(reads(node))).unwrap_or(false)
}

/// Drives what reads the footers of Parquet files. Damaged ones make it panic.
pub(crate) async fn unless_damaged<T>(what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    let guarded = poll_fn(|context| match guarded(|| work.as_mut().poll(context)) {
        Ok(poll) => poll,
        Err(Damaged) => Poll::Ready(Err(external(damaged(what)))),
    });
    guarded.await
}

/// A decoder panicked.
pub(crate) fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, format!("{what} is damaged"))
        .with_detail("It is not what a program that writes Parquet leaves behind.")
}

/// Names the file in an error of reading its schema.
fn unreadable(path: &str, error: DataFusionError) -> DataFusionError {
    let converted = to_sql_error(&error);
    match converted.state() {
        SqlState::UNDEFINED_FILE => {
            external(io_error(Some(path), "open", &std::io::ErrorKind::NotFound.into()))
        }
        SqlState::BAD_COPY_FILE_FORMAT => {
            let detail = converted.detail().unwrap_or(converted.message()).to_owned();
            external(not_readable(path, detail))
        }
        _ => error,
    }
}

fn not_readable(path: &str, detail: String) -> SqlError {
    let text = format!("file \"{path}\" is not a readable Parquet file");
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text).with_detail(detail)
}

/// Writes batches as one Parquet file and gives the number of rows.
///
/// # Errors
/// Whatever a batch's producer or the sink raises. The sink then holds an incomplete file.
pub fn write_parquet<W: Write + Send>(
    sink: W,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, SqlError>>,
) -> Result<u64, SqlError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("albireo".to_owned())
        .build();
    let mut writer =
        ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties)).map_err(|e| write_error(&e))?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(|e| write_error(&e))?;
    }
    writer.close().map_err(|e| write_error(&e))?;
    Ok(rows)
}

fn write_error(error: &ParquetError) -> SqlError {
    if let ParquetError::External(e) = error
        && let Some(e) = e.downcast_ref::<std::io::Error>()
    {
        return match e.kind() {
            std::io::ErrorKind::StorageFull => {
                SqlError::new(SqlState::DISK_FULL, format!("could not write the file: {e}"))
            }
            _ => from_io(e),
        };
    }
    SqlError::new(SqlState::IO_ERROR, format!("could not write the Parquet file: {error}"))
}
