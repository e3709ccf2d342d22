//! The files in which columns of evicted chunks lie.
//!
//! ```text
//! cold/0000000001.cold    the column "o_id" of chunk 7, of chunk 8, of chunk 12, ...: sections as they were in memory
//! cold/0000000002.cold    the column "o_c_id" of these chunks
//! ```
//!
//! Each column has files of its own, in which its pieces of some 16 to 64 KB lie one behind the other. So a query reads
//! from end to end what it needs, and what it does not need lies elsewhere. A scan of what is mostly away reads past the
//! system's memory, half a megabyte at once ([`ReadAhead`]). Elsewhere the system reads ahead by itself, in large pieces.
//! Asking it for pieces ahead (`POSIX_FADV_WILLNEED`) made that half as fast, even where they lay one behind the other and
//! were asked for by megabytes: 1.1 to 1.2 GB/s against 2.2 to 2.4. A transaction that needs one chunk reads at as many
//! places as there are columns; these are asked for, all at once.
//!
//! What is there is in the redo log and the archives too, so nothing is synced, and whatever an earlier process left is
//! removed when the database is opened. When nothing that lies at some place is wanted any more, its room is given back to
//! the file system; a file that is full goes when that is so of all of it.
//!
//! I-1 Each column has a checksum, which stays in memory: no byte is looked at before it was right.
//! I-2 Room is given back only of what nobody can read any more.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::{ColumnId, TableId};
use albireo_env::{Disk, PlacedFile, ReadFile};
use albireo_storage::{BlockPool, ColdChunk, DirectFile, EvictedChunk, FetchError, ReadAhead, Shelf};
use parking_lot::Mutex;

/// Bytes of a file after which the next is begun.
const FILE_BYTES: u64 = 256 << 20;
/// Files that are written at a time, at most. Of a database with more columns than that some share one.
const SLOTS: usize = 128;
/// The most files that the columns of one table have.
const SLOTS_OF_A_TABLE: usize = 16;
/// What stays of the memory that readers have left, for the next. Two threads that scan ten columns have half of it.
const WARM_BYTES: u64 = 8 << 20;

/// The files of one database.
pub(crate) struct Shelves {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The files that are written, by slots: in the same order each time they go.
    open: Mutex<BTreeMap<usize, OpenFile>>,
    next: AtomicU64,
    gone: Arc<Gone>,
    /// For what readers fetch for themselves: it is theirs, and no limit for data counts it.
    buffer: BlockPool,
}

/// A file that has room.
struct OpenFile {
    file: Arc<ColdFile>,
    written: Box<dyn PlacedFile>,
    bytes: u64,
}

/// What nobody wants any more, until its room is given back: whoever lets go of a chunk does not wait for the disk.
type Gone = Mutex<Vec<(Arc<ColdFile>, Range<u64>)>>;

/// A file of columns, removed when nobody wants what lies in it.
struct ColdFile {
    disk: Arc<dyn Disk>,
    /// Among the files of this database.
    number: u64,
    path: PathBuf,
    read: Box<dyn ReadFile>,
    /// Past the system's memory, where that is possible.
    direct: Option<Box<dyn ReadFile>>,
}

/// Where a column of a chunk lies.
struct Place {
    file: Arc<ColdFile>,
    offset: u64,
    bytes: usize,
    crc32c: u32,
}

/// The columns of one chunk.
struct ChunkShelf {
    columns: Vec<Place>,
    gone: Arc<Gone>,
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
            gone: Arc::default(),
            buffer: BlockPool::for_buffers(WARM_BYTES),
        })
    }

    /// Memory that no limit for data counts.
    pub(crate) fn buffer(&self) -> &BlockPool {
        &self.buffer
    }

    /// Gives the room of what nobody wants any more back to the file system.
    pub(crate) fn give_room_back(&self) {
        let mut gone = std::mem::take(&mut *self.gone.lock());
        gone.sort_by_key(|(file, bytes)| (Arc::as_ptr(file), bytes.start));
        // What lies together goes together; the last of a file that nobody wants removes it instead.
        gone.dedup_by(|(file, bytes), (before_file, before)| {
            let goes_on = Arc::ptr_eq(file, before_file) && before.end == bytes.start;
            before.end = if goes_on { bytes.end } else { before.end };
            goes_on
        });
        for (file, bytes) in gone {
            if Arc::strong_count(&file) > 1
                && let Ok(file) = self.disk.open_placed(&file.path)
            {
                file.discard(bytes.start, bytes.end - bytes.start);
            }
        }
    }

    /// Writes a chunk of a table, unless it lies in files already, and gives what takes its place.
    ///
    /// # Errors
    /// The files cannot be written, or there is no memory for what stays.
    pub(crate) fn put(&self, table: TableId, chunk: &ColdChunk) -> io::Result<EvictedChunk> {
        if let Some(again) = chunk.again() {
            return again.map_err(io::Error::other);
        }
        let all: Vec<(ColumnId, Vec<u8>)> = chunk.columns().collect();
        let slots = all.len().min(SLOTS_OF_A_TABLE);
        let mut shelf = ChunkShelf { columns: Vec::with_capacity(all.len()), gone: Arc::clone(&self.gone) };
        for (column, bytes) in &all {
            debug_assert_eq!(column.index(), shelf.columns.len(), "columns come in their order");
            // Where columns share a file, neighbours do.
            let slot = table.0 as usize * SLOTS_OF_A_TABLE + column.index() * slots / all.len();
            let (file, offset) = self.append(slot % SLOTS, bytes)?;
            shelf.columns.push(Place { file, offset, bytes: bytes.len(), crc32c: crc32c::crc32c(bytes) });
        }
        chunk.on(Arc::new(shelf), &self.buffer).map_err(io::Error::other)
    }

    /// Writes bytes behind those of a slot's file: which, and where.
    fn append(&self, slot: usize, bytes: &[u8]) -> io::Result<(Arc<ColdFile>, u64)> {
        let mut open = self.open.lock();
        let mut file = match open.remove(&slot) {
            Some(file) => file,
            None => self.begin()?,
        };
        // A file that could not be written is not written again.
        file.written.write_at(bytes, file.bytes)?;
        let at = (Arc::clone(&file.file), file.bytes);
        file.bytes += bytes.len() as u64;
        if file.bytes < FILE_BYTES {
            open.insert(slot, file);
        }
        Ok(at)
    }

    fn begin(&self) -> io::Result<OpenFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("{number:010}.cold"));
        let written = self.disk.open_placed(&path)?;
        let read = self.disk.open(&path)?;
        read.reads_on();
        let direct = self.disk.open_direct(&path);
        let file = ColdFile { disk: Arc::clone(&self.disk), number, path, read, direct };
        Ok(OpenFile { file: Arc::new(file), written, bytes: 0 })
    }
}

impl Drop for ColdFile {
    fn drop(&mut self) {
        // What stays is removed when the database is opened.
        let _ = self.disk.remove_file(&self.path);
    }
}

impl Place {
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes as u64
    }

    /// Whether these are the bytes that were put there (I-1).
    fn check(&self, sections: &[&mut [u8]]) -> Result<(), FetchError> {
        let found = sections.iter().fold(0, |found, section| crc32c::crc32c_append(found, section));
        let Self { file, offset, bytes, crc32c } = self;
        match found == *crc32c {
            true => Ok(()),
            false => Err(file.damaged(format!("the checksum of {bytes} bytes at offset {offset} is wrong"))),
        }
    }
}

impl Drop for ChunkShelf {
    fn drop(&mut self) {
        let of_place = |place: &Place| (Arc::clone(&place.file), place.range());
        self.gone.lock().extend(self.columns.iter().map(of_place));
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at offset {} of {}", self.bytes, self.offset, self.file.path.display())
    }
}

impl fmt::Debug for ChunkShelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkShelf").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Shelf for ChunkShelf {
    fn will_read(&self, columns: &mut dyn Iterator<Item = ColumnId>) {
        for Place { file, offset, bytes, .. } in columns.map(|column| &self.columns[column.index()]) {
            file.read.will_read(*offset, *bytes as u64);
        }
    }

    fn plan(&self, columns: &mut dyn Iterator<Item = ColumnId>, ahead: &mut ReadAhead) {
        for place in columns.map(|column| &self.columns[column.index()]) {
            if place.file.direct.is_some() {
                ahead.plan(place.file.number, place.range());
            }
        }
    }

    fn read(&self, column: ColumnId, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        let place = &self.columns[column.index()];
        let mut at = place.offset;
        for section in &mut *sections {
            place.file.read_at(section, at)?;
            at += section.len() as u64;
        }
        debug_assert_eq!(at, place.range().end, "it is as long as what was put there");
        place.check(sections)
    }

    fn read_from(
        &self,
        ahead: &mut ReadAhead,
        column: ColumnId,
        sections: &mut [&mut [u8]],
    ) -> Result<(), FetchError> {
        let place = &self.columns[column.index()];
        match ahead.take((place.file.number, &*place.file), &place.range(), sections) {
            true => place.check(sections),
            false => self.read(column, sections),
        }
    }
}

impl DirectFile for ColdFile {
    fn is_in_memory(&self, offset: u64) -> bool {
        self.read.is_in_memory(offset)
    }

    fn read(&self, range: Range<u64>, into: &mut [u8]) -> bool {
        let Some(direct) = &self.direct else { return false };
        let (mut read, wanted) = (0, (range.end - range.start) as usize);
        while read < wanted {
            match direct.read_at(&mut into[read..], range.start + read as u64) {
                Ok(more) if more > 0 => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }
}

impl ColdFile {
    fn damaged(&self, what: String) -> FetchError {
        FetchError::Damaged { file: self.path.display().to_string(), what }
    }

    /// Reads bytes from a place in the file.
    fn read_at(&self, mut into: &mut [u8], mut offset: u64) -> Result<(), FetchError> {
        while !into.is_empty() {
            match self.read.read_at(into, offset) {
                Ok(0) => return Err(self.damaged(format!("it ends at byte {offset}"))),
                Ok(read) => {
                    offset += read as u64;
                    into = &mut into[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let (file, what) = (self.path.display().to_string(), error.to_string());
                    return Err(FetchError::Unreadable { file, what });
                }
            }
        }
        Ok(())
    }
}
