//! The file of a frozen chunk: its bytes, its parts, and back.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding::{Section, SectionName};
use albireo_env::Env;
use albireo_storage::{ChunkParts, ChunkView};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::Block;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::arrays::array_of;
use super::restore::{Bytes, column_of};
use super::{ENCODING, HEADER, SYMBOLS, TEXT_BYTES};
use crate::error::{ArchiveError, Damage};
use crate::manifest::{FORMAT, FileEntry, FrozenEntry, PartEntry, file_path};
use crate::meta::TableMeta;
use crate::read::{ArrowFile, batch_in, guarded, read_checked};

/// Buffers that are shorter share a part with what is beside them.
const LEAST_PART_BYTES: usize = 1 << 10;

/// The bytes of the file of a chunk, which is frozen.
pub(crate) fn encode(chunk: &ChunkView<'_>, table: &TableMeta) -> Vec<u8> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (meta, number) in table.columns.iter().zip(0..) {
        let view = chunk.encoded(ColumnId(number)).expect("the chunk is frozen");
        let column = view.column();
        let array = array_of(column, meta.ty);
        let mut header = Vec::new();
        column.header(&mut header);
        let mut metadata = HashMap::from([
            ("albireo.type".to_owned(), meta.ty.to_string()),
            (ENCODING.to_owned(), column.form().to_string()),
            (HEADER.to_owned(), BASE64_STANDARD.encode(header)),
        ]);
        if let Some(symbols) = column.section(SectionName::Symbols) {
            metadata.insert(SYMBOLS.to_owned(), BASE64_STANDARD.encode(symbols.bytes()));
        }
        fields.push(Field::new(&meta.name, array.data_type().clone(), meta.nullable).with_metadata(metadata));
        arrays.push(array);
    }
    let mut metadata = table.arrow_metadata(FORMAT);
    metadata.insert(TEXT_BYTES.to_owned(), chunk.text_bytes().to_string());
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let options = RecordBatchOptions::new().with_row_count(Some(chunk.slots()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
    let batch = batch.expect("arrays have the schema's types and all rows");
    in_file(&schema, &batch).unwrap_or_else(|error| panic!("a batch is written to memory: {error}"))
}

fn in_file(schema: &SchemaRef, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = FileWriter::try_new_with_options(Vec::new(), schema, IpcWriteOptions::default())?;
    writer.write(batch)?;
    writer.finish()?;
    writer.into_inner()
}

/// Cuts a file where large buffers begin and end.
pub(crate) fn parts_of(file: &[u8]) -> Vec<PartEntry> {
    let arrow = ArrowFile::parse(file).expect("it was written just now");
    let mut cuts = BTreeSet::from([file.len()]);
    for block in arrow.dictionaries.iter().chain(&arrow.batches) {
        cuts.extend(buffers_of(file, block));
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for end in cuts.into_iter().filter(|end| *end > 0) {
        parts.push(PartEntry((end - start) as u64, crc32c::crc32c(&file[start..end])));
        start = end;
    }
    parts
}

/// Where the large buffers of a message begin and end in the file.
fn buffers_of(file: &[u8], block: &Block) -> Vec<usize> {
    let (start, length) = (block.offset() as usize, block.metaDataLength() as usize);
    let batch = batch_in(&file[start..], length).expect("it was written just now");
    let buffers = batch.buffers().into_iter().flatten();
    let large = buffers.filter(|buffer| buffer.length() as usize >= LEAST_PART_BYTES);
    let ends = large.flat_map(|buffer| [buffer.offset(), buffer.offset() + buffer.length()]);
    ends.map(|at| start + length + at as usize).collect()
}

/// Reads the file of a frozen chunk whole, checks it part by part, and gives what it was made of, with the rows that live
/// by the entry. Sections are those of the file, without copying.
///
/// # Errors
/// The file is missing or damaged, or cannot be read.
///
/// # Panics
/// The file is none of a frozen chunk.
pub fn open_frozen(env: &Env, directory: &Path, file: &FileEntry) -> Result<ChunkParts<Bytes>, ArchiveError> {
    let frozen = file.frozen.as_ref().expect("the file of a frozen chunk");
    open_with_schema(env, directory, file, frozen).map(|(_, parts)| parts)
}

/// [`open_frozen`], and the file's schema.
pub(crate) fn open_with_schema(
    env: &Env,
    directory: &Path,
    file: &FileEntry,
    frozen: &FrozenEntry,
) -> Result<(SchemaRef, ChunkParts<Bytes>), ArchiveError> {
    let path = file_path(directory, file);
    let data = read_checked(env, &path, file)?;
    let damaged = |what: String| ArchiveError::damaged(&path, Damage::Arrow(what));
    let arrow = ArrowFile::parse(&data).map_err(damaged)?;
    let schema = Arc::clone(&arrow.schema);
    let batch = arrow.only_batch(&data).map_err(damaged)?;
    if batch.num_rows() != frozen.slots as usize {
        let (expected_rows, found_rows) = (frozen.slots.into(), batch.num_rows() as u64);
        return Err(ArchiveError::damaged(&path, Damage::Rows { expected_rows, found_rows }));
    }
    let pairs = schema.fields().iter().zip(batch.columns());
    let columns = pairs.map(|(field, array): (_, &ArrayRef)| guarded(|| column_of(field, array)));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(damaged)?;
    let text_bytes = schema.metadata().get(TEXT_BYTES).and_then(|text| text.parse().ok());
    let text_bytes = text_bytes.ok_or_else(|| damaged(format!("it lacks {TEXT_BYTES}")))?;
    let live = frozen.invalid.live().ok_or_else(|| damaged("its invalid rows cannot be".to_owned()))?;
    Ok((schema, ChunkParts { columns, live, text_bytes }))
}
