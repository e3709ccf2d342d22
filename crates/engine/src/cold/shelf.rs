//! The files in which columns of evicted chunks lie.
//!
//! ```text
//! cold/0000000001.cold    columns of some chunks, one behind the other: sections as they were in memory
//! ```
//!
//! What is there is in the redo log and the archives too, so nothing is synced, and whatever an earlier process left is
//! removed when the database is opened. A file goes when nothing that lies in it is wanted any more.
//!
//! I-1 Each column has a checksum, which stays in memory: no byte is looked at before it was right.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::ColumnId;
use albireo_env::{Disk, PlacedFile, ReadFile};
use albireo_storage::{BlockPool, ColdChunk, EvictedChunk, FetchError, Shelf};
use parking_lot::Mutex;

/// Bytes of a file after which the next is begun.
const FILE_BYTES: u64 = 64 << 20;
/// What stays of the memory that readers have left, for the next. Two threads that scan ten columns have half of it.
const WARM_BYTES: u64 = 8 << 20;

/// The files of one database.
pub(crate) struct Shelves {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The file that is written.
    open: Mutex<Option<OpenFile>>,
    next: AtomicU64,
    /// For what readers fetch for themselves: it is theirs, and no limit for data counts it.
    buffer: BlockPool,
}

/// A file that has room.
struct OpenFile {
    file: Arc<ColdFile>,
    written: Box<dyn PlacedFile>,
    bytes: u64,
}

/// A file of columns, removed when nobody wants what lies in it.
struct ColdFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    read: Box<dyn ReadFile>,
}

/// Where a column of a chunk lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    bytes: usize,
    crc32c: u32,
}

/// The columns of one chunk.
struct ChunkShelf {
    file: Arc<ColdFile>,
    columns: Box<[Place]>,
}

impl Shelves {
    /// In a directory that is made, or emptied.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn open(disk: &Arc<dyn Disk>, directory: &Path) -> io::Result<Self> {
        disk.create_dir_all(directory)?;
        for path in disk.read_dir(directory)? {
            if path.extension().is_some_and(|extension| extension == "cold") {
                disk.remove_file(&path)?;
            }
        }
        Ok(Self {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            open: Mutex::default(),
            next: AtomicU64::new(1),
            buffer: BlockPool::for_buffers(WARM_BYTES),
        })
    }

    /// Memory that no limit for data counts.
    pub(crate) fn buffer(&self) -> &BlockPool {
        &self.buffer
    }

    /// Gives back memory that readers have left.
    pub(crate) fn tidy(&self) {
        self.buffer.shrink();
    }

    /// Writes a chunk, unless it lies in a file already, and gives what takes its place.
    ///
    /// # Errors
    /// The file cannot be written, or there is no memory for what stays.
    pub(crate) fn put(&self, chunk: &ColdChunk) -> io::Result<EvictedChunk> {
        if let Some(again) = chunk.again() {
            return again.map_err(io::Error::other);
        }
        let (mut bytes, mut columns) = (Vec::new(), Vec::new());
        for (column, of_column) in chunk.columns() {
            debug_assert_eq!(column.index(), columns.len(), "columns come in their order");
            let (offset, crc32c) = (bytes.len() as u64, crc32c::crc32c(&of_column));
            columns.push(Place { offset, bytes: of_column.len(), crc32c });
            bytes.extend_from_slice(&of_column);
        }
        let (file, start) = self.append(&bytes)?;
        columns.iter_mut().for_each(|place| place.offset += start);
        let shelf = Arc::new(ChunkShelf { file, columns: columns.into() });
        chunk.on(shelf, &self.buffer).map_err(io::Error::other)
    }

    /// Writes bytes into a file: which, and where.
    fn append(&self, bytes: &[u8]) -> io::Result<(Arc<ColdFile>, u64)> {
        let mut open = self.open.lock();
        let mut file = match open.take() {
            Some(file) => file,
            None => self.begin()?,
        };
        // A file that could not be written is not written again.
        file.written.write_at(bytes, file.bytes)?;
        let at = (Arc::clone(&file.file), file.bytes);
        file.bytes += bytes.len() as u64;
        *open = (file.bytes < FILE_BYTES).then_some(file);
        Ok(at)
    }

    fn begin(&self) -> io::Result<OpenFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("{number:010}.cold"));
        let written = self.disk.open_placed(&path)?;
        let read = self.disk.open(&path)?;
        Ok(OpenFile {
            file: Arc::new(ColdFile { disk: Arc::clone(&self.disk), path, read }),
            written,
            bytes: 0,
        })
    }
}

impl Drop for ColdFile {
    fn drop(&mut self) {
        // What stays is removed when the database is opened.
        let _ = self.disk.remove_file(&self.path);
    }
}

impl fmt::Debug for ChunkShelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkShelf").field("file", &self.file.path).field("columns", &self.columns).finish()
    }
}

impl Shelf for ChunkShelf {
    /// Columns that lie one behind the other are asked for together: each request costs the disk as much as its bytes.
    fn will_read(&self, columns: &mut dyn Iterator<Item = ColumnId>) {
        let places = columns.map(|column| self.columns[column.index()]).filter(|place| place.bytes > 0);
        let mut asked = 0..0;
        for Place { offset, bytes, .. } in places {
            if asked.end != offset {
                self.ask(&asked);
                asked.start = offset;
            }
            asked.end = offset + bytes as u64;
        }
        self.ask(&asked);
    }

    fn read(&self, column: ColumnId, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        let Place { offset, bytes, crc32c } = self.columns[column.index()];
        let (mut at, mut found) = (offset, 0);
        for section in sections {
            self.read_at(section, at)?;
            found = crc32c::crc32c_append(found, section);
            at += section.len() as u64;
        }
        debug_assert_eq!(at, offset + bytes as u64, "it is as long as what was put there");
        match found == crc32c {
            true => Ok(()),
            false => Err(self.damaged(format!("the checksum of {bytes} bytes at offset {offset} is wrong"))),
        }
    }
}

impl ChunkShelf {
    fn ask(&self, bytes: &Range<u64>) {
        if !bytes.is_empty() {
            self.file.read.will_read(bytes.start, bytes.end - bytes.start);
        }
    }

    fn file(&self) -> String {
        self.file.path.display().to_string()
    }

    fn damaged(&self, what: String) -> FetchError {
        FetchError::Damaged { file: self.file(), what }
    }

    /// Reads bytes from a place in the file.
    fn read_at(&self, mut into: &mut [u8], mut offset: u64) -> Result<(), FetchError> {
        while !into.is_empty() {
            match self.file.read.read_at(into, offset) {
                Ok(0) => return Err(self.damaged(format!("it ends at byte {offset}"))),
                Ok(read) => {
                    offset += read as u64;
                    into = &mut into[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(FetchError::Unreadable { file: self.file(), what: error.to_string() });
                }
            }
        }
        Ok(())
    }
}
