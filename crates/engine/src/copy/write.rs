//! Query results into files, batch by batch.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState, SqlType};
use albireo_olap::relation::Snapshot;
use albireo_olap::{Prepared, write_parquet};
use albireo_sql::BoundQuery;
use albireo_sql::copy::{CopyFormat, CsvOptions};
use albireo_storage::DatabaseSnapshot;
use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::Watched;
use super::csv::CsvWriter;
use super::files::NewFile;
use crate::Database;
use crate::adapters::{StorageSnapshot, value_at};
use crate::query::options;
use crate::settings::Settings;

/// The rows to write.
pub(super) struct Source<'a> {
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) query: &'a BoundQuery,
    pub(super) snapshot: &'a Arc<DatabaseSnapshot>,
    pub(super) settings: &'a Settings,
    pub(super) watched: Watched<'a>,
}

/// Columns of the output: names and types; `None` is written as text.
type Columns = Vec<(String, Option<SqlType>)>;

impl Database {
    /// Writes a query's rows; gives their number.
    pub(super) fn write_file(
        &self,
        source: &Source<'_>,
        path: &str,
        format: &CopyFormat,
    ) -> Result<u64, SqlError> {
        let prepared = source.prepared;
        let snapshot: Arc<dyn Snapshot> = Arc::new(StorageSnapshot(Arc::clone(source.snapshot)));
        let options = options(source.settings, source.watched.cancel);
        let column = |c: &albireo_olap::OutputColumn| (source.query.column_name(&c.name).to_owned(), c.ty);
        let columns: Columns = prepared.columns().iter().map(column).collect();
        if *format == CopyFormat::Parquet {
            distinct_names(&columns)?;
        }
        let number = self.inner.files_written.fetch_add(1, Ordering::Relaxed);
        let mut file = NewFile::create(&self.inner.env.disk, path, number)?;
        let mut stream = self.inner.olap.run_stream(prepared, &[], &snapshot, options);
        let progress = source.watched.progress;
        progress.begin(Phase::WritingFile, Unit::Rows, None);
        let schema = Arc::clone(stream.schema());
        let batches = std::iter::from_fn(|| stream.next_blocking());
        let batches = batches.inspect(|batch| {
            progress.add(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
        });
        let rows = match format {
            CopyFormat::Csv(options) => write_csv(&mut file, &columns, options, batches)?,
            CopyFormat::Parquet => {
                let schema = parquet_schema(&columns, &schema);
                let batches = batches.map(|batch| as_schema(&batch?, &schema));
                write_parquet(&mut file, &schema, batches)?
            }
        };
        file.finish()?;
        Ok(rows)
    }
}

fn write_csv(
    file: &mut NewFile<'_>,
    columns: &Columns,
    options: &CsvOptions,
    batches: impl Iterator<Item = Result<RecordBatch, SqlError>>,
) -> Result<u64, SqlError> {
    let mut rows = 0;
    if options.header {
        let header = |writer: &mut CsvWriter<'_, _>| {
            columns.iter().try_for_each(|(name, _)| writer.field(Some(name)))?;
            writer.end()
        };
        let written = header(&mut CsvWriter::new(&mut *file, options));
        written.map_err(|error| file.error(&error))?;
    }
    for batch in batches {
        let batch = batch?;
        let written = write_records(&mut CsvWriter::new(&mut *file, options), columns, &batch);
        written.map_err(|error| file.error(&error))?;
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

fn write_records<W: io::Write>(
    writer: &mut CsvWriter<'_, W>,
    columns: &Columns,
    batch: &RecordBatch,
) -> io::Result<()> {
    for row in 0..batch.num_rows() {
        for (array, (_, ty)) in batch.columns().iter().zip(columns) {
            let value = value_at(array, row, ty.unwrap_or(SqlType::Text));
            writer.field(value.to_text().as_deref())?;
        }
        writer.end()?;
    }
    Ok(())
}

/// Readers of Parquet tell columns apart by their names.
fn distinct_names(columns: &Columns) -> Result<(), SqlError> {
    for (index, (name, _)) in columns.iter().enumerate() {
        if columns[..index].iter().any(|(other, _)| other == name) {
            let text = format!("column \"{name}\" appears twice in the result");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text)
                .with_hint("Give the columns of a Parquet file different names with AS."));
        }
    }
    Ok(())
}

fn parquet_schema(columns: &Columns, schema: &SchemaRef) -> SchemaRef {
    let field = |((name, ty), field): (&(String, Option<SqlType>), &Arc<Field>)| {
        let ty = if ty.is_some() { field.data_type().clone() } else { DataType::Utf8 };
        Field::new(name, ty, true)
    };
    let fields: Vec<Field> = columns.iter().zip(schema.fields()).map(field).collect();
    Arc::new(Schema::new(fields))
}

fn as_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
    let arrays = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        if array.data_type() == field.data_type() {
            Ok(Arc::clone(array))
        } else {
            cast(array, field.data_type())
        }
    });
    let batch =
        arrays.collect::<Result<_, _>>().and_then(|arrays| RecordBatch::try_new(Arc::clone(schema), arrays));
    batch.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))
}
