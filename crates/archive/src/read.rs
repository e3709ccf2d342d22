//! Reading the files of an archive.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::Env;
use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use crate::error::{ArchiveError, Damage};
use crate::files::open_file;
use crate::manifest::{FileEntry, FrozenEntry, PartEntry, file_path};

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
///
/// # Panics
/// The file is of a frozen chunk: [`crate::open_frozen`].
pub fn open(env: &Env, directory: &Path, file: &FileEntry) -> Result<Batches, ArchiveError> {
    assert!(file.frozen.is_none(), "a frozen chunk is read as it is");
    let path = file_path(directory, file);
    let data = read_checked(env, &path, file)?;
    let arrow = |what: String| ArchiveError::damaged(&path, Damage::Arrow(what));
    let ArrowFile { schema, version, batches, .. } = ArrowFile::parse(&data).map_err(arrow)?;
    Ok(Batches {
        decoder: FileDecoder::new(Arc::clone(&schema), version),
        schema,
        data,
        blocks: batches.into_iter(),
        expected_rows: file.rows,
        found_rows: 0,
        is_done: false,
        path,
    })
}

/// All bytes of a file, if they are those that were written.
pub(crate) fn read_checked(env: &Env, path: &Path, entry: &FileEntry) -> Result<Buffer, ArchiveError> {
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
    let damage = match &entry.frozen {
        Some(frozen) => damaged_part(bytes, frozen),
        None => {
            let (expected, found) = (entry.crc32c, crc32c::crc32c(bytes));
            (found != expected).then_some(Damage::Checksum { expected, found })
        }
    };
    match damage {
        Some(damage) => Err(ArchiveError::damaged(path, damage)),
        None => Ok(data.into()),
    }
}

/// The first part of a file that is not as it was written. The parts are as long as the file together.
fn damaged_part(mut bytes: &[u8], frozen: &FrozenEntry) -> Option<Damage> {
    let mut offset = 0;
    for PartEntry(length, expected) in &frozen.parts {
        let (part, rest) = bytes.split_at(*length as usize);
        let found = crc32c::crc32c(part);
        if found != *expected {
            return Some(Damage::Part { offset, bytes: *length, expected: *expected, found });
        }
        (bytes, offset) = (rest, offset + length);
    }
    assert!(bytes.is_empty(), "the manifest's parts are the whole file");
    None
}

/// What an Arrow file's footer says. The form is Arrow's own: blocks, footer, its length, `ARROW1`.
pub(crate) struct ArrowFile {
    pub(crate) schema: SchemaRef,
    version: MetadataVersion,
    pub(crate) dictionaries: Vec<Block>,
    pub(crate) batches: Vec<Block>,
}

/// What `read` makes of bytes that may be anything: Arrow's reader panics at some of what cannot be.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // What it was making is dropped; nothing else is changed.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err("Arrow cannot read what it says of itself".to_owned()))
}

impl ArrowFile {
    pub(crate) fn parse(data: &[u8]) -> Result<Self, String> {
        guarded(|| Self::parsed(data))
    }

    fn parsed(data: &[u8]) -> Result<Self, String> {
        let trailer = data.last_chunk::<TRAILER_BYTES>().ok_or("it is too short")?;
        let length = read_footer_length(*trailer).map_err(|error| error.to_string())?;
        let end = data.len() - TRAILER_BYTES;
        let start = end.checked_sub(length).ok_or("its footer is longer than the file")?;
        let footer = root_as_footer(&data[start..end]).map_err(|error| error.to_string())?;
        let schema = Arc::new(fb_to_schema(footer.schema().ok_or("it has no schema")?));
        Ok(Self {
            schema,
            version: footer.version(),
            dictionaries: footer.dictionaries().into_iter().flatten().copied().collect(),
            batches: footer.recordBatches().into_iter().flatten().copied().collect(),
        })
    }

    /// The batch of a file that has one.
    pub(crate) fn only_batch(&self, data: &Buffer) -> Result<RecordBatch, String> {
        guarded(|| self.batch(data))
    }

    fn batch(&self, data: &Buffer) -> Result<RecordBatch, String> {
        let [block] = &self.batches[..] else { return Err("it has not one batch".to_owned()) };
        let mut decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        for dictionary in &self.dictionaries {
            let read = decoder.read_dictionary(dictionary, &message(data, dictionary)?);
            read.map_err(|error| error.to_string())?;
        }
        let batch = decoder.read_record_batch(block, &message(data, block)?);
        batch.map_err(|error| error.to_string())?.ok_or_else(|| "a block holds no rows".to_owned())
    }
}

/// The bytes of a message.
fn message(data: &Buffer, block: &Block) -> Result<Buffer, String> {
    let out = || "a batch lies outside of the file".to_owned();
    let place = |value: i64| usize::try_from(value).map_err(|_| out());
    let (offset, body) = (place(block.offset())?, place(block.bodyLength())?);
    let length = place(block.metaDataLength().into())?.checked_add(body).ok_or_else(out)?;
    if offset.checked_add(length).is_none_or(|end| end > data.len()) {
        return Err(out());
    }
    let data = data.slice_with_length(offset, length);
    // Arrow's reader takes it for granted that buffers are in the body.
    for buffer in batch_in(&data, length - body)?.buffers().into_iter().flatten() {
        let (start, bytes) = (place(buffer.offset())?, place(buffer.length())?);
        if start.checked_add(bytes).is_none_or(|end| end > body) {
            return Err("a buffer lies outside of its batch".to_owned());
        }
    }
    Ok(data)
}

/// What stands before a message: a mark, and its length.
const MESSAGE_PREFIX_BYTES: usize = 8;

/// The batch that a message describes in its first `length` bytes, of rows or of a dictionary.
pub(crate) fn batch_in(message: &[u8], length: usize) -> Result<arrow_ipc::RecordBatch<'_>, String> {
    let head = message.get(MESSAGE_PREFIX_BYTES..length).ok_or("a message is too short")?;
    let message = root_as_message(head).map_err(|error| error.to_string())?;
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    dictionary.or_else(|| message.header_as_record_batch()).ok_or_else(|| "a block holds no rows".to_owned())
}

impl Batches {
    /// The file's columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read(&self, block: &Block) -> Result<RecordBatch, Damage> {
        let data = message(&self.data, block).map_err(Damage::Arrow)?;
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
