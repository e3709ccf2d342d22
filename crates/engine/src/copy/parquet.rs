//! Parquet files into tables.
//!
//! Several threads decode row groups, each ahead of the load by a few batches; the load takes them in order.
//!
//! I-1 The outcome does not depend on which thread was faster: rows come in the file's order, and of what goes
//! wrong the first row's counts.

use std::io::{BufReader, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use albireo_base::progress::{Phase, Unit};
use albireo_base::{ColumnId, SqlError, SqlState, SqlType, arrow_type};
use albireo_env::ReadFile;
use albireo_files::parquet::{Implausible, Pages, TAIL_BYTES, check_footer, check_row_groups, footer_range};
use albireo_files::{Batch, CellError, ColumnBuilder, Damaged, Places, guarded};
use albireo_sql::ColumnDef;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::{ChunkReader, Length};

use super::load::schema;
use super::{CopyTarget, Load, files};
use crate::adapters::value_at;

/// Rows decoded at once.
const BATCH_ROWS: usize = 8192;
/// More threads than this would wait for the load.
const MAX_THREADS: usize = 8;
/// Batches of a row group that are decoded ahead of the load.
const AHEAD: usize = 8;

/// Bytes read ahead where headers of pages are looked for.
const HEADER_BYTES: usize = 1024;

/// A file of ours as the reader wants one.
#[derive(Clone)]
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
    type T = BufReader<Tail>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // Headers of pages are read byte by byte.
        let tail = Tail { file: Arc::clone(&self.file), offset: start };
        Ok(BufReader::with_capacity(HEADER_BYTES, tail))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.length_bytes {
            return Err(ParquetError::EOF("the file ends too early".to_owned()));
        }
        let mut bytes = vec![0; length];
        let mut tail = Tail { file: Arc::clone(&self.file), offset: start };
        tail.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads and checks a whole file.
pub(super) fn read(file: Box<dyn ReadFile>, load: &mut Load<'_>) -> Result<(), SqlError> {
    let target = load.target();
    let groups = unless_damaged(target, || Groups::open(file, target))?;
    let (total, count) = (groups.metadata.metadata().file_metadata().num_rows(), groups.first_rows.len());
    load.limits().progress.begin(Phase::ReadingFile, Unit::Rows, u64::try_from(total).ok());
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| sync_channel(AHEAD)).unzip();
    let workers = albireo_env::cores().min(MAX_THREADS).min(count);
    let waiting = Mutex::new(senders.into_iter().enumerate());
    let spent: Spent = Default::default();
    let (groups, waiting, spent) = (&groups, &waiting, &spent);
    let work = move |thread: usize| {
        while let Some((group, sender)) = take_next(waiting) {
            let take = |batch| {
                spent[thread].lock().clear();
                albireo_env::give_way();
                sender.send(Ok(Some(Decoded { batch, thread }))).is_ok()
            };
            let read = groups.read(group, target, take);
            // Nobody listens any more where the load has ended.
            if sender.send(read.map(|()| None)).is_err() {
                return;
            }
        }
    };
    albireo_env::scope(|threads| {
        let spawn = |thread: &usize| {
            let thread = *thread;
            albireo_env::spawn_scoped(threads, "albireo-copy", move || work(thread)).is_ok()
        };
        if (0..workers).filter(spawn).count() == 0 && count > 0 {
            let text = "no thread could be started to read the file";
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, text));
        }
        receivers.into_iter().try_for_each(|batches| take_group(&batches, spent, load))
    })
}

/// A batch, and the thread that made it.
struct Decoded {
    batch: Batch,
    thread: usize,
}

/// Batches that the load is done with, for each thread those that it made: memory that goes back to the thread that
/// took it is used again at once.
type Spent = [Mutex<Vec<Batch>>; MAX_THREADS];

fn take_next<T>(items: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    items.lock().next()
}

/// Gives the load the batches of a row group.
fn take_group(
    batches: &Receiver<Result<Option<Decoded>, SqlError>>,
    spent: &Spent,
    load: &mut Load<'_>,
) -> Result<(), SqlError> {
    loop {
        let batch = batches.recv().map_err(|_| SqlError::new(SqlState::INTERNAL_ERROR, "a reader ended"))?;
        let Some(Decoded { mut batch, thread }) = batch? else { return Ok(()) };
        load.check()?;
        load.push(&mut batch)?;
        load.limits().progress.add(batch.columns.num_rows() as u64);
        spent[thread].lock().push(batch);
    }
}

/// A damaged file can make the decoder panic; that is the file's fault, not ours.
fn unless_damaged<R>(
    target: &CopyTarget<'_>,
    work: impl FnOnce() -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    guarded(work).unwrap_or_else(|Damaged| Err(bad_file(target, "Its pages are damaged.")))
}

/// A file's row groups, which are read one by one, on several threads.
struct Groups {
    file: File,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Where each column of the target is among those that are read.
    places: Vec<usize>,
    /// The number of the first row of each, from 1.
    first_rows: Vec<u64>,
}

impl Groups {
    fn open(file: Box<dyn ReadFile>, target: &CopyTarget<'_>) -> Result<Self, SqlError> {
        let length_bytes = file.len().map_err(|error| files::read_error(target.path, &error))?;
        if length_bytes == 0 {
            return Err(bad_file(target, "It is empty."));
        }
        let file = File { file: file.into(), length_bytes };
        let metadata = with_views(read_footer(&file, target)?);
        let fields = fields_of(target, metadata.schema())?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), fields.iter().copied());
        // The projection keeps the file's order; the target has its own.
        let mut sorted = fields.clone();
        sorted.sort_unstable();
        let places = fields.iter().map(|field| sorted.partition_point(|f| f < field)).collect();
        let mut next = 1_u64;
        let first_rows = metadata.metadata().row_groups().iter().map(|group| {
            let first = next;
            next = next.saturating_add(group.num_rows().try_into().unwrap_or(0));
            first
        });
        let first_rows = first_rows.collect();
        Ok(Self { file, metadata, mask, places, first_rows })
    }

    /// Checks the pages of a row group that will be read.
    fn check(&self, group: usize, target: &CopyTarget<'_>) -> Result<(), SqlError> {
        let (source, group) = (Arc::new(self.file.clone()), self.metadata.metadata().row_group(group));
        for (index, chunk) in group.columns().iter().enumerate() {
            if self.mask.leaf_included(index) {
                let (start, length) = chunk.byte_range();
                let pages =
                    Pages { source: &source, chunk, rows: group.num_rows(), range: start..start + length };
                pages.check().map_err(|error| implausible(target, &error))?;
            }
        }
        Ok(())
    }

    /// Reads a row group, until `take` wants no more.
    fn read(
        &self,
        group: usize,
        target: &CopyTarget<'_>,
        mut take: impl FnMut(Batch) -> bool,
    ) -> Result<(), SqlError> {
        unless_damaged(target, || self.check(group, target))?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let builder = builder.with_row_groups(vec![group]).with_projection(self.mask.clone());
        let mut reader = unless_damaged(target, || {
            builder.with_batch_size(BATCH_ROWS).build().map_err(|error| unreadable(target, &error))
        })?;
        let mut next_row = self.first_rows[group];
        while let Some(batch) = unless_damaged(target, || {
            reader.next().transpose().map_err(|error| bad_file(target, &error.to_string()))
        })? {
            if !take(batch_of(&batch, &self.places, next_row, target)?) {
                break;
            }
            next_row += batch.num_rows() as u64;
        }
        Ok(())
    }
}

fn read_footer(file: &File, target: &CopyTarget<'_>) -> Result<ArrowReaderMetadata, SqlError> {
    let get = |range: Range<u64>| {
        let bytes = file.get_bytes(range.start, (range.end - range.start) as usize);
        bytes.map_err(|error| unreadable(target, &error))
    };
    let (length, implausible) = (file.length_bytes, |error: Implausible| implausible(target, &error));
    let tail = get(length.saturating_sub(TAIL_BYTES)..length)?;
    let footer = get(footer_range(&tail, length).map_err(implausible)?)?;
    check_footer(&footer).map_err(implausible)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&footer);
    let metadata = metadata.map_err(|error| unreadable(target, &error))?;
    check_row_groups(&metadata, length).map_err(implausible)?;
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new());
    metadata.map_err(|error| unreadable(target, &error))
}

fn implausible(target: &CopyTarget<'_>, error: &Implausible) -> SqlError {
    bad_file(target, &error.to_string())
}

/// Texts as views, which the reader makes without copying them where it can.
fn with_views(metadata: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let viewed = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => Arc::clone(field),
    };
    let fields: Fields = metadata.schema().fields().iter().map(viewed).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata)
}

/// The file's field for each column: by name if the file has all names, by position if it has none
/// of them and as many fields.
fn fields_of(target: &CopyTarget<'_>, schema: &SchemaRef) -> Result<Vec<usize>, SqlError> {
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

/// A batch in the types of the target's columns.
///
/// # Errors
/// What the first row raises that has a value which does not fit.
fn batch_of(
    batch: &RecordBatch,
    places: &[usize],
    first_row: u64,
    target: &CopyTarget<'_>,
) -> Result<Batch, SqlError> {
    let mut first: Option<(usize, usize, CellError)> = None;
    let mut arrays = Vec::with_capacity(places.len());
    for (index, (place, column)) in places.iter().zip(target.columns).enumerate() {
        let array = convert(batch.column(*place), *column, target)?;
        let def = target.table.column_def(*column);
        match as_it_is(&array, def).map_or_else(|| value_by_value(&array, def), Ok) {
            Ok(array) => arrays.push(array),
            Err((row, error)) if first.as_ref().is_none_or(|(before, ..)| row < *before) => {
                first = Some((row, index, error));
            }
            Err(_) => {}
        }
    }
    if let Some((row, index, error)) = first {
        return Err(target.cell_error(error, first_row + row as u64, index));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = RecordBatch::try_new_with_options(schema(target), arrays, &options);
    let columns = columns.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
    Ok(Batch { columns, places: Places::Consecutive(first_row) })
}

/// Values that have to be converted, or are none of the column's; or the first row that has one of these.
fn value_by_value(array: &ArrayRef, def: &ColumnDef) -> Result<ArrayRef, (usize, CellError)> {
    let mut builder = ColumnBuilder::new(def.ty, def.nullable, array.len(), array.len() * 16);
    for row in 0..array.len() {
        builder.push_value(value_at(array, row, def.ty)).map_err(|error| (row, error))?;
    }
    Ok(builder.finish())
}

/// The array, if each of its values is one of the column's.
fn as_it_is(array: &ArrayRef, def: &ColumnDef) -> Option<ArrayRef> {
    let wanted = arrow_type(def.ty);
    let is_fitting = match def.ty {
        SqlType::SmallInt | SqlType::Integer | SqlType::BigInt | SqlType::Real | SqlType::Double => true,
        SqlType::Date | SqlType::Bool => *array.data_type() == wanted,
        SqlType::Text => array.as_string_view_opt().is_some(),
        // As many bytes are at least as many characters.
        SqlType::Varchar(n) => array.as_string_view_opt()?.lengths().all(|bytes| bytes <= n),
        SqlType::Char(n) => {
            let texts = array.as_string_view_opt()?;
            // Blanks at the end are cut off.
            texts.lengths().all(|bytes| bytes <= n)
                && !texts.bytes_iter().any(|text| text.last() == Some(&b' '))
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
    match array.data_type() {
        ty if *ty == wanted => Some(Arc::clone(array)),
        // A smaller integer has its place in a larger one, a smaller float too.
        DataType::Int16 | DataType::Int32 | DataType::Float32 if is_wider(array.data_type(), &wanted) => {
            cast_with_options(array, &wanted, &CastOptions { safe: false, ..CastOptions::default() }).ok()
        }
        _ => None,
    }
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
fn convert(array: &ArrayRef, column: ColumnId, target: &CopyTarget<'_>) -> Result<ArrayRef, SqlError> {
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

fn unreadable(target: &CopyTarget<'_>, error: &ParquetError) -> SqlError {
    if let ParquetError::External(inner) = error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return files::read_error(target.path, io);
    }
    bad_file(target, &error.to_string())
}

fn bad_file(target: &CopyTarget<'_>, reason: &str) -> SqlError {
    let text = format!("file \"{}\" is not a readable Parquet file", path_of(target));
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text).with_detail(reason.to_owned())
}

/// Parquet is read from files alone.
fn path_of<'a>(target: &CopyTarget<'a>) -> &'a str {
    target.path.unwrap_or_default()
}
