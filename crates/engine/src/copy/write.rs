//! Query results into files, batch by batch.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState, SqlType, Value, arrow_type};
use albireo_files::{Compression, Compressor};
use albireo_olap::relation::Snapshot;
use albireo_olap::{Prepared, write_parquet};
use albireo_sql::copy::{CopyFormat, CopyPlace, Header};
use albireo_storage::DatabaseSnapshot;
use arrow::array::{Array as _, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::csv::{CsvWriter, json_record, text_record};
use super::files::{NewFile, write_error};
use super::{Client, Watched};
use crate::Database;
use crate::adapters::{StorageSnapshot, value_at};
use crate::arrays;
use crate::query::options;
use crate::settings::Settings;

/// The rows to write.
pub(super) struct Source<'a> {
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) snapshot: &'a Arc<DatabaseSnapshot>,
    pub(super) settings: &'a Settings,
    pub(super) watched: Watched<'a>,
}

/// Columns of the output: names and types; `None` is written as text.
type Columns = Vec<(String, Option<SqlType>)>;

/// Where the bytes go.
enum Sink<'a> {
    File(NewFile<'a>),
    Client(&'a mut (dyn Write + Send)),
}

impl Sink<'_> {
    fn path(&self) -> Option<&str> {
        match self {
            Self::File(file) => Some(file.path()),
            Self::Client(_) => None,
        }
    }

    fn finish(self) -> Result<(), SqlError> {
        match self {
            Self::File(file) => file.finish(),
            Self::Client(writer) => writer.flush().map_err(|error| write_error(None, &error)),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Client(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Client(writer) => writer.flush(),
        }
    }
}

impl Database {
    /// Writes a query's rows; gives their number.
    pub(super) fn write_file(
        &self,
        source: &Source<'_>,
        place: &CopyPlace,
        format: &CopyFormat,
        client: Client<'_>,
    ) -> Result<u64, SqlError> {
        let prepared = source.prepared;
        let snapshot: Arc<dyn Snapshot> = Arc::new(StorageSnapshot(Arc::clone(source.snapshot)));
        let options = options(source.settings, source.watched.cancel);
        let column = |c: &albireo_olap::OutputColumn| (c.name.clone(), c.ty);
        let columns: Columns = prepared.columns().iter().map(column).collect();
        if matches!(format, CopyFormat::Parquet | CopyFormat::Json) {
            distinct_names(&columns)?;
        }
        let (mut sink, compression) = match (place, client) {
            (CopyPlace::File(path), _) => {
                let number = self.inner.files_written.fetch_add(1, Ordering::Relaxed);
                let file = NewFile::create(&self.inner.env.disk, path, number)?;
                (Sink::File(file), Compression::of_path(path))
            }
            (CopyPlace::Client, Client::Writer(writer)) => (Sink::Client(writer), Compression::None),
            (CopyPlace::Client, _) => {
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY TO STDOUT without a client"));
            }
        };
        let mut stream = self.inner.olap.run_stream(prepared, &[], &snapshot, options);
        let progress = source.watched.progress;
        progress.begin(Phase::WritingFile, Unit::Rows, None);
        let schema = Arc::clone(stream.schema());
        let batches = std::iter::from_fn(|| stream.next_blocking());
        let batches = batches.inspect(|batch| {
            progress.add(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
        });
        if *format == CopyFormat::Parquet {
            let schema = parquet_schema(&columns, &schema);
            let batches = batches.map(|batch| as_schema(&batch?, &columns, &schema));
            let rows = write_parquet(&mut sink, &schema, batches)?;
            sink.finish()?;
            return Ok(rows);
        }
        let path = sink.path().map(str::to_owned);
        let failed = |error: &io::Error| write_error(path.as_deref(), error);
        let mut compressor = Compressor::new(sink, compression).map_err(|error| failed(&error))?;
        let mut rows = 0;
        let mut lines = Lines::new(format, &columns);
        for batch in batches {
            let batch = batch?;
            lines.add(&batch);
            compressor.write_all(&lines.bytes).map_err(|error| failed(&error))?;
            lines.bytes.clear();
            rows += batch.num_rows() as u64;
        }
        // The header of no rows.
        let written = compressor.write_all(&lines.bytes).and_then(|()| compressor.finish());
        let sink = written.map_err(|error| failed(&error))?;
        sink.finish()?;
        Ok(rows)
    }
}

/// Rows as lines of a text format.
struct Lines<'a> {
    format: &'a CopyFormat,
    columns: &'a Columns,
    /// The columns' names as JSON.
    names: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Begins with the header, if there is one.
    fn new(format: &'a CopyFormat, columns: &'a Columns) -> Self {
        let name = |(name, _): &(String, Option<SqlType>)| {
            let mut json = Vec::new();
            albireo_files::write_json_string(name, &mut json);
            json
        };
        let mut lines =
            Self { format, columns, names: columns.iter().map(name).collect(), bytes: Vec::new() };
        let has_header = match format {
            CopyFormat::Csv(options) => options.header != Header::None,
            CopyFormat::Text(options) => options.header != Header::None,
            CopyFormat::Json | CopyFormat::Parquet => false,
        };
        if has_header {
            let names: Vec<Value> = columns.iter().map(|(name, _)| Value::Text(name.clone())).collect();
            lines.record(&names);
        }
        lines
    }

    fn add(&mut self, batch: &RecordBatch) {
        let mut values = Vec::with_capacity(self.columns.len());
        for row in 0..batch.num_rows() {
            values.clear();
            let columns = batch.columns().iter().zip(self.columns);
            values.extend(columns.map(|(array, (_, ty))| value_at(array, row, ty.unwrap_or(SqlType::Text))));
            self.record(&values);
        }
    }

    fn record(&mut self, values: &[Value]) {
        let texts = || values.iter().map(Value::to_text);
        match self.format {
            CopyFormat::Csv(options) => {
                let mut writer = CsvWriter::new(&mut self.bytes, options);
                let written =
                    texts().try_for_each(|text| writer.field(text.as_deref())).and_then(|()| writer.end());
                written.expect("memory takes what is written");
            }
            CopyFormat::Text(options) => {
                let texts: Vec<_> = texts().collect();
                text_record(texts.iter().map(|text| text.as_deref()), options, &mut self.bytes);
            }
            CopyFormat::Json => json_record(&self.names, values.iter(), &mut self.bytes),
            CopyFormat::Parquet => unreachable!("Parquet has no lines"),
        }
    }
}

/// Readers of Parquet and JSON tell columns apart by their names.
fn distinct_names(columns: &Columns) -> Result<(), SqlError> {
    for (index, (name, _)) in columns.iter().enumerate() {
        if columns[..index].iter().any(|(other, _)| other == name) {
            let text = format!("column \"{name}\" appears twice in the result");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text)
                .with_hint("Give the columns of a Parquet or JSON file different names with AS."));
        }
    }
    Ok(())
}

/// A column of Parquet has one scale, so NUMERIC of any scale gets one.
fn parquet_schema(columns: &Columns, schema: &SchemaRef) -> SchemaRef {
    let field = |((name, ty), field): (&(String, Option<SqlType>), &Arc<Field>)| {
        let ty = match ty {
            Some(ty @ SqlType::Decimal { .. }) => arrow_type(*ty),
            Some(_) => field.data_type().clone(),
            None => DataType::Utf8,
        };
        Field::new(name, ty, true)
    };
    let fields: Vec<Field> = columns.iter().zip(schema.fields()).map(field).collect();
    Arc::new(Schema::new(fields))
}

fn as_schema(batch: &RecordBatch, columns: &Columns, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
    let convert = |array: &ArrayRef, field: &Field, ty: Option<SqlType>| match ty {
        _ if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
        Some(ty @ SqlType::Decimal { .. }) => of_one_scale(array, ty),
        _ => cast(array, field.data_type()).map_err(arrays::internal),
    };
    let parts = batch.columns().iter().zip(schema.fields()).zip(columns);
    let arrays = parts.map(|((array, field), (_, ty))| convert(array, field, *ty));
    RecordBatch::try_new(Arc::clone(schema), arrays.collect::<Result<_, _>>()?).map_err(arrays::internal)
}

/// Numbers of several scales, rounded to that of `ty`.
fn of_one_scale(array: &ArrayRef, ty: SqlType) -> Result<ArrayRef, SqlError> {
    let number = |row| {
        value_at(array, row, ty).coerce(ty).map_err(|error| {
            error.with_hint(
                "Cast the column to a NUMERIC with a precision and scale that hold all its values.",
            )
        })
    };
    let numbers = (0..array.len()).map(number).collect::<Result<Vec<Value>, SqlError>>()?;
    arrays::array(ty, numbers.iter())
}
