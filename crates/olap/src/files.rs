//! Parquet and CSV files as relations (`FROM 'file.parquet'`), and Parquet in and out for COPY.
//!
//! Responsible for: finding the files a statement names, reading them with DataFusion's readers,
//! writing Parquet. Not responsible for: COPY's own CSV dialect and its error positions (`engine`).

use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::walk::Walk as _;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlanBuilder, TableSource};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use sqlparser::ast::{ObjectName, Statement};

use crate::engine::{Olap, Shared};
use crate::errors::{external, from_io, to_sql_error};
use crate::prepare::Prepared;
use crate::relation::Relations;

/// The format of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Parquet,
    Csv,
}

fn format_of(path: &str) -> Option<Format> {
    let extension = path.rsplit_once('.')?.1.to_ascii_lowercase();
    match extension.as_str() {
        "parquet" | "pq" => Some(Format::Parquet),
        "csv" => Some(Format::Csv),
        _ => None,
    }
}

/// The path a name in FROM stands for, if it is one.
fn path_of(name: &ObjectName) -> Option<&str> {
    let [part] = name.0.as_slice() else { return None };
    let ident = part.as_ident()?;
    let quoted = ident.quote_style.is_some();
    (quoted && format_of(&ident.value).is_some()).then_some(&ident.value)
}

/// The files a statement names in its FROM clauses, ready to be scanned.
pub(crate) async fn sources(
    shared: &Shared,
    relations: &dyn Relations,
    statement: &Statement,
) -> Result<HashMap<String, Arc<dyn TableSource>>> {
    let mut paths = Vec::new();
    statement.any_relation(&mut |name| {
        if let Some(path) = path_of(name)
            && relations.relation(None, path).is_none()
        {
            paths.push(path.to_owned());
        }
        ControlFlow::Continue(())
    });
    let mut sources = HashMap::new();
    for path in paths {
        let table = table(shared, &path).await?;
        sources.insert(path, provider_as_source(table));
    }
    Ok(sources)
}

async fn table(shared: &Shared, path: &str) -> Result<Arc<dyn TableProvider>> {
    let format: Arc<dyn FileFormat> = match format_of(path) {
        Some(Format::Csv) => Arc::new(CsvFormat::default().with_has_header(true)),
        _ => Arc::new(ParquetFormat::default()),
    };
    let state = shared.state();
    let url = ListingTableUrl::parse(path)?;
    let options = ListingOptions::new(format).with_file_extension("");
    let schema = options.infer_schema(state, &url).await.map_err(|e| missing(path, e))?;
    if schema.fields().is_empty() {
        return Err(missing(path, DataFusionError::Execution("No such file".to_owned())));
    }
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}

/// Names the file in the error when it is not there.
fn missing(path: &str, error: DataFusionError) -> DataFusionError {
    let converted = to_sql_error(&error);
    if converted.state() != SqlState::UNDEFINED_FILE {
        return error;
    }
    let message = format!("could not open file \"{path}\": no such file");
    external(
        SqlError::new(SqlState::UNDEFINED_FILE, message)
            .with_hint("Relative paths start at the directory the database was started in."),
    )
}

impl Olap {
    /// Makes ready to read a whole Parquet or CSV file (with a header line), columns as the file
    /// has them. Run the result like any query, on any snapshot.
    ///
    /// # Errors
    /// 58P01 when there is no such file, 22P04 when it is malformed, 0A000 when its name does not
    /// end in a known format's extension.
    pub fn prepare_file(&self, path: &str) -> Result<Arc<Prepared>, SqlError> {
        if format_of(path).is_none() {
            return Err(SqlError::unsupported(format!("the file format of \"{path}\""))
                .with_hint("Names of files end in .parquet or .csv."));
        }
        let (engine, path) = (self.clone(), path.to_owned());
        self.wait_for(async move {
            let scan = async {
                let source = provider_as_source(table(&engine.shared, &path).await?);
                LogicalPlanBuilder::scan("file", source, None)?.build()
            };
            let prepared = match scan.await {
                Ok(plan) => Prepared::of_plan(&engine.shared, plan),
                Err(e) => Err(e),
            };
            prepared.map(Arc::new).map_err(|e| to_sql_error(&e))
        })
    }
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
