//! Parquet files into tables.

use std::sync::Arc;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{ColumnId, SqlError, SqlState, SqlType, Value};
use albireo_env::ReadFile;
use albireo_files::{Damaged, guarded};
use albireo_sql::ColumnDef;
use albireo_storage::arrow_type;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::batch::{Batch, Places, Staged, schema};
use super::{Limits, Rows, Target, files};
use crate::adapters::value_at;

/// Rows decoded at once.
const BATCH_ROWS: usize = 8192;

/// A file of ours as the reader wants one.
struct File {
    file: Arc<dyn ReadFile>,
    length_bytes: u64,
}

/// Reads on from an offset.
struct Tail {
    file: Arc<dyn ReadFile>,
    offset: u64,
}

impl Length for File {
    fn len(&self) -> u64 {
        self.length_bytes
    }
}

impl ChunkReader for File {
    type T = Tail;

    fn get_read(&self, start: u64) -> Result<Tail, ParquetError> {
        Ok(Tail { file: Arc::clone(&self.file), offset: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.length_bytes {
            return Err(ParquetError::EOF("the file ends too early".to_owned()));
        }
        let mut bytes = vec![0; length];
        let mut tail = self.get_read(start)?;
        std::io::Read::read_exact(&mut tail, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl std::io::Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads and checks a whole file.
pub(super) fn stage(
    file: Box<dyn ReadFile>,
    target: &Target<'_>,
    limits: &Limits<'_>,
) -> Result<Staged, SqlError> {
    // A damaged file can make the decoder panic; that is the file's fault, not ours.
    match guarded(|| read(file, target, limits)) {
        Ok(result) => result,
        Err(Damaged) => Err(bad_file(target, "Its pages are damaged.")),
    }
}

fn read(file: Box<dyn ReadFile>, target: &Target<'_>, limits: &Limits<'_>) -> Result<Staged, SqlError> {
    let length_bytes = file.len().map_err(|error| files::read_error(target.path, &error))?;
    if length_bytes == 0 {
        return Err(bad_file(target, "It is empty."));
    }
    let file = File { file: file.into(), length_bytes };
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| unreadable(target, &e))?;
    let fields = fields_of(target, builder.schema())?;
    let total = u64::try_from(builder.metadata().file_metadata().num_rows()).ok();
    limits.progress.begin(Phase::ReadingFile, Unit::Rows, total);
    let mask = ProjectionMask::roots(builder.parquet_schema(), fields.iter().copied());
    let reader = builder.with_batch_size(BATCH_ROWS).with_projection(mask).build();
    let reader = reader.map_err(|e| unreadable(target, &e))?;
    // The projection keeps the file's order; the target has its own.
    let mut sorted = fields.clone();
    sorted.sort_unstable();
    let places: Vec<usize> = fields.iter().map(|field| sorted.partition_point(|f| f < field)).collect();
    let mut staged = Staged::default();
    let mut next_row = 1;
    for batch in reader {
        limits.check(staged.bytes())?;
        let batch = batch.map_err(|error| bad_file(target, &error.to_string()))?;
        staged.push(stage_batch(&batch, &places, next_row, target)?);
        next_row += batch.num_rows() as u64;
        limits.progress.add(batch.num_rows() as u64);
    }
    Ok(staged)
}

/// The file's field for each column: by name if the file has all names, by position if it has none
/// of them and as many fields.
fn fields_of(target: &Target<'_>, schema: &SchemaRef) -> Result<Vec<usize>, SqlError> {
    let name = |column: &ColumnId| target.table.column_def(*column).name.as_str();
    let find = |name: &str| {
        let fields = schema.fields();
        let exact = fields.iter().position(|field| field.name() == name);
        exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
    };
    let found: Vec<Option<usize>> = target.columns.iter().map(|column| find(name(column))).collect();
    if found.iter().all(Option::is_none) && found.len() == schema.fields().len() {
        return Ok((0..found.len()).collect());
    }
    let field = |(column, field): (&ColumnId, &Option<usize>)| {
        field.ok_or_else(|| {
            let text = format!("file \"{}\" has no column \"{}\"", path_of(target), name(column));
            let has: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).take(50).collect();
            SqlError::new(SqlState::UNDEFINED_COLUMN, text)
                .with_detail(format!("It has: {}.", has.join(", ")))
                .with_hint("Name the columns that the file has: COPY table (column, ...) FROM ....")
        })
    };
    target.columns.iter().zip(&found).map(field).collect()
}

fn stage_batch(
    batch: &RecordBatch,
    places: &[usize],
    first_row: u64,
    target: &Target<'_>,
) -> Result<Batch, SqlError> {
    let convert = |(place, column): (&usize, &ColumnId)| convert(batch.column(*place), *column, target);
    let arrays: Vec<ArrayRef> = places.iter().zip(target.columns).map(convert).collect::<Result<_, _>>()?;
    let as_it_is =
        |(array, column): (&ArrayRef, &ColumnId)| as_it_is(array, target.table.column_def(*column));
    let columns: Option<Vec<ArrayRef>> = arrays.iter().zip(target.columns).map(as_it_is).collect();
    if let Some(columns) = columns {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = RecordBatch::try_new_with_options(schema(target), columns, &options);
        let columns = columns.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
        return Ok(Batch { columns, places: Places::Consecutive(first_row) });
    }
    // Value by value: some have to be converted, or are none of the column's.
    let mut rows = Rows::new(target);
    for row in 0..batch.num_rows() {
        let place = first_row + row as u64;
        rows.begin(place);
        for (index, (column, array)) in target.columns.iter().zip(&arrays).enumerate() {
            let ty = target.table.column_def(*column).ty;
            let value: Value = value_at(array, row, ty);
            rows.push(index, value)?;
        }
    }
    rows.finish()
}

/// The array, if each of its values is one of the column's.
fn as_it_is(array: &ArrayRef, def: &ColumnDef) -> Option<ArrayRef> {
    let wanted = arrow_type(def.ty);
    let is_fitting = match def.ty {
        SqlType::SmallInt | SqlType::Integer | SqlType::BigInt | SqlType::Real | SqlType::Double => true,
        SqlType::Date | SqlType::Bool => *array.data_type() == wanted,
        SqlType::Text => array.as_string_view_opt().is_some(),
        // As many bytes are at least as many characters.
        SqlType::Varchar(n) => {
            let texts = array.as_string_view_opt()?;
            texts.views().iter().all(|view| (*view as u32) <= n)
        }
        SqlType::Decimal { precision, .. } => {
            let numbers = array.as_primitive_opt::<Decimal128Type>()?;
            *array.data_type() == wanted && numbers.validate_decimal_precision(precision).is_ok()
        }
        _ => false,
    };
    if !is_fitting || (array.null_count() > 0 && !def.nullable) {
        return None;
    }
    let array = match array.data_type() {
        ty if *ty == wanted => Arc::clone(array),
        // A smaller integer has its place in a larger one, a smaller float too.
        DataType::Int16 | DataType::Int32 | DataType::Float32 if is_wider(array.data_type(), &wanted) => {
            cast_with_options(array, &wanted, &CastOptions { safe: false, ..CastOptions::default() }).ok()?
        }
        _ => return None,
    };
    // The file's pages are shared by the arrays of many batches.
    Some(match array.as_string_view_opt() {
        Some(texts) => Arc::new(texts.gc()),
        None => array,
    })
}

fn is_wider(from: &DataType, to: &DataType) -> bool {
    matches!(
        (from, to),
        (DataType::Int16, DataType::Int32 | DataType::Int64)
            | (DataType::Int32, DataType::Int64)
            | (DataType::Float32, DataType::Float64)
    )
}

/// The array in one of the types that values are made from.
fn convert(array: &ArrayRef, column: ColumnId, target: &Target<'_>) -> Result<ArrayRef, SqlError> {
    let def = target.table.column_def(column);
    let mismatch = |reason: &str| {
        let text =
            format!("column \"{}\" is of type {} but the file has {}", def.name, def.ty, array.data_type());
        let detail = format!("COPY {}, file \"{}\"{reason}.", target.table.name, path_of(target));
        SqlError::new(SqlState::DATATYPE_MISMATCH, text).with_detail(detail)
    };
    let wanted = match array.data_type() {
        other if other.is_nested() => return Err(mismatch("")),
        // Some programs write texts as bytes without saying that they are texts.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView if def.ty.is_string() => {
            DataType::Utf8View
        }
        ty if def.ty == SqlType::Uuid && *ty == DataType::FixedSizeBinary(16) => ty.clone(),
        ty => albireo_olap::result_type(ty),
    };
    let wanted = match wanted {
        // The halves of the range that BIGINT has no room for.
        DataType::Int64 if *array.data_type() == DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::FixedSizeBinary(n) if n != 16 => DataType::BinaryView,
        DataType::FixedSizeBinary(16) if def.ty != SqlType::Uuid => DataType::BinaryView,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone),
        other => other,
    };
    if *array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &wanted, &options).map_err(|error| mismatch(&format!(": {error}")))
}

fn unreadable(target: &Target<'_>, error: &ParquetError) -> SqlError {
    if let ParquetError::External(inner) = error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return files::read_error(target.path, io);
    }
    bad_file(target, &error.to_string())
}

fn bad_file(target: &Target<'_>, reason: &str) -> SqlError {
    let text = format!("file \"{}\" is not a readable Parquet file", path_of(target));
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text).with_detail(reason.to_owned())
}

/// Parquet is read from files alone.
fn path_of<'a>(target: &Target<'a>) -> &'a str {
    target.path.unwrap_or_default()
}
