//! Reading the files of an archive.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::Env;
use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::SchemaRef;

use crate::error::{ArchiveError, Damage};
use crate::files::open_file;
use crate::manifest::{FileEntry, file_path};

/// Bytes behind an Arrow file's footer: its length and the magic word.
const TRAILER_BYTES: usize = 10;

/// The rows of a file, whose checksum was right. Batches share the file's memory.
pub struct Batches {
    path: PathBuf,
    schema: SchemaRef,
    decoder: FileDecoder,
    data: Buffer,
    blocks: std::vec::IntoIter<Block>,
    expected_rows: u64,
    found_rows: u64,
    is_done: bool,
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads a file whole, checks it, and gives its rows batch by batch. They are checked for what Arrow
/// demands, texts to be UTF-8 among it.
///
/// # Errors
/// The file is missing or damaged, or cannot be read.
pub fn open(env: &Env, directory: &Path, file: &FileEntry) -> Result<Batches, ArchiveError> {
    let path = file_path(directory, file);
    let data = read_checked(env, &path, file)?;
    let arrow = |what: String| ArchiveError::damaged(&path, Damage::Arrow(what));
    let (schema, decoder, blocks) = parse_footer(&data).map_err(arrow)?;
    Ok(Batches {
        schema,
        decoder,
        data,
        blocks: blocks.into_iter(),
        expected_rows: file.rows,
        found_rows: 0,
        is_done: false,
        path,
    })
}

/// All bytes of a file, if they are those that were written.
fn read_checked(env: &Env, path: &Path, entry: &FileEntry) -> Result<Buffer, ArchiveError> {
    let (file, found_bytes) = open_file(env, path)?;
    if found_bytes != entry.bytes {
        return Err(ArchiveError::damaged(path, Damage::Length { expected_bytes: entry.bytes, found_bytes }));
    }
    let mut data = MutableBuffer::from_len_zeroed(found_bytes as usize);
    let (bytes, mut done) = (data.as_slice_mut(), 0);
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => {
                let damage = Damage::Length { expected_bytes: entry.bytes, found_bytes: done as u64 };
                return Err(ArchiveError::damaged(path, damage));
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ArchiveError::io(path, error)),
        }
    }
    let found = crc32c::crc32c(bytes);
    if found != entry.crc32c {
        return Err(ArchiveError::damaged(path, Damage::Checksum { expected: entry.crc32c, found }));
    }
    Ok(data.into())
}

/// Schema and places of the batches. The form is Arrow's own: blocks, footer, its length, `ARROW1`.
fn parse_footer(data: &Buffer) -> Result<(SchemaRef, FileDecoder, Vec<Block>), String> {
    let trailer = data.last_chunk::<TRAILER_BYTES>().ok_or("it is too short")?;
    let length = read_footer_length(*trailer).map_err(|error| error.to_string())?;
    let end = data.len() - TRAILER_BYTES;
    let start = end.checked_sub(length).ok_or("its footer is longer than the file")?;
    let footer = root_as_footer(&data[start..end]).map_err(|error| error.to_string())?;
    let schema = Arc::new(fb_to_schema(footer.schema().ok_or("it has no schema")?));
    let decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
    let blocks = footer.recordBatches().into_iter().flatten().copied().collect();
    Ok((schema, decoder, blocks))
}

impl Batches {
    /// The file's columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read(&self, block: &Block) -> Result<RecordBatch, Damage> {
        let out = || Damage::Arrow("a batch lies outside of the file".to_owned());
        let place = |value: i64| usize::try_from(value).map_err(|_| out());
        let (offset, body) = (place(block.offset())?, place(block.bodyLength())?);
        let length = place(block.metaDataLength().into())?.checked_add(body).ok_or_else(out)?;
        if offset.checked_add(length).is_none_or(|end| end > self.data.len()) {
            return Err(out());
        }
        let data = self.data.slice_with_length(offset, length);
        let batch = self.decoder.read_record_batch(block, &data);
        let batch = batch.map_err(|error| Damage::Arrow(error.to_string()))?;
        batch.ok_or_else(|| Damage::Arrow("a block holds no rows".to_owned()))
    }

    fn rows_agree(&self) -> Result<(), Damage> {
        let Self { expected_rows, found_rows, .. } = *self;
        match expected_rows == found_rows {
            true => Ok(()),
            false => Err(Damage::Rows { expected_rows, found_rows }),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArchiveError>;

    /// The next batch. The last item is an error if the file has not the rows that it should.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let read = match self.blocks.next() {
            Some(block) => self.read(&block).inspect(|batch| self.found_rows += batch.num_rows() as u64),
            None => {
                self.is_done = true;
                self.rows_agree().err().map(Err)?
            }
        };
        self.is_done |= read.is_err();
        Some(read.map_err(|damage| ArchiveError::damaged(&self.path, damage)))
    }
}
