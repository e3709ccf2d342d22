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
//! A chunk that an archive of the database has as it is frozen is not written: it lies in the archive's file ([`archived`]).
//!
//! I-1 Each column has a checksum, which stays in memory: no byte is looked at before it was right.
//! I-2 Room is given back only of what nobody can read any more.

mod archived;
mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_archive::{FileEntry, Stretch};
use albireo_base::{ColumnId, TableId};
use albireo_env::{Disk, PlacedFile};
use albireo_storage::{BlockPool, ColdChunk, EvictedChunk, FetchError, ReadAhead, Shelf};
use parking_lot::Mutex;

use archived::ArchivedColumn;
pub(super) use archived::{Archives, Pins};
use file::{Opened, check};

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
    /// The archives in which chunks lie too, if the database has any.
    archives: Option<Archives>,
    /// The files that are written, by slots: in the same order each time they go.
    open: Mutex<BTreeMap<usize, OpenFile>>,
    next: AtomicU64,
    /// Why what was written last could not be, if that was so.
    unwritten: Mutex<Option<String>>,
    gone: Arc<Gone>,
    /// For what readers fetch for themselves: it is theirs, and no limit for data counts it.
    buffer: BlockPool,
    /// For what is frozen to leave memory that has no room for it.
    passing: BlockPool,
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
    /// Among the files of evicted chunks.
    number: u64,
    opened: Opened,
}

/// Where a column of a chunk lies.
enum Place {
    /// In a file of ours.
    Cold(ColdPlace),
    /// In a file of an archive.
    Archived(ArchivedColumn),
}

/// Where a column lies in a file of ours.
struct ColdPlace {
    file: Arc<ColdFile>,
    offset: u64,
    bytes: usize,
    crc32c: u32,
}

/// The columns of one chunk.
struct ChunkShelf {
    disk: Arc<dyn Disk>,
    columns: Vec<Place>,
    gone: Arc<Gone>,
}

impl Shelves {
    /// In a directory that is made, or emptied.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        archives: Option<Archives>,
    ) -> io::Result<Self> {
        disk.create_dir_all(directory)?;
        for path in disk.read_dir(directory)? {
            if path.extension().is_some_and(|extension| extension == "cold") {
                disk.remove_file(&path)?;
            }
        }
        Ok(Self {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            archives,
            open: Mutex::default(),
            next: AtomicU64::new(1),
            unwritten: Mutex::default(),
            gone: Arc::default(),
            buffer: BlockPool::for_buffers(WARM_BYTES),
            passing: BlockPool::for_buffers(WARM_BYTES),
        })
    }

    /// Why rows cannot leave memory, if they could not last time.
    pub(super) fn why_unwritten(&self) -> Option<String> {
        self.unwritten.lock().clone()
    }

    /// Memory that no limit for data counts.
    pub(crate) fn buffer(&self) -> &BlockPool {
        &self.buffer
    }

    /// For what is frozen to leave memory that has no room for it.
    pub(crate) fn passing(&self) -> &BlockPool {
        &self.passing
    }

    /// Whether chunks may lie in the archives of a directory.
    pub(crate) fn has_archives(&self, directory: &Path) -> bool {
        self.archives.as_ref().is_some_and(|archives| archives.directory() == directory)
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
                && let Ok(file) = self.disk.open_placed(file.opened.path())
            {
                file.discard(bytes.start, bytes.end - bytes.start);
            }
        }
    }

    /// Gives what takes a chunk's place. It is written, unless it lies in files already: because it was evicted before, or
    /// in `archived`, the file of an archive that may have it. `None`: it stays, because it `may_write` no more, which it says
    /// for others when files cannot be written; or because there is no memory for what would stay of it.
    pub(crate) fn put(
        &self,
        table: TableId,
        chunk: &ColdChunk,
        archived: Option<&FileEntry>,
        may_write: &mut bool,
    ) -> Option<EvictedChunk> {
        if let Some(again) = chunk.again() {
            return again.ok();
        }
        if archived.is_none() && !*may_write {
            return None;
        }
        let all: Vec<(ColumnId, Vec<u8>)> = chunk.columns().collect();
        let held = self
            .archives
            .as_ref()
            .zip(archived)
            .and_then(|(archives, file)| archives.hold(file, self.next.fetch_add(1, Ordering::Relaxed)));
        let (disk, gone) = (Arc::clone(&self.disk), Arc::clone(&self.gone));
        let mut shelf = ChunkShelf { disk, columns: Vec::with_capacity(all.len()), gone };
        for (column, bytes) in &all {
            debug_assert_eq!(column.index(), shelf.columns.len(), "columns come in their order");
            let there = held.as_ref().and_then(|held| held.place_of(*column, bytes));
            let place = match there {
                Some(there) => Place::Archived(there),
                None if !*may_write => return None,
                None => {
                    let written = self.write((table, *column), all.len(), bytes);
                    let why = written.as_ref().err().map(|error| {
                        format!("Rows cannot leave memory for \"{}\": {error}.", self.directory.display())
                    });
                    (*may_write, *self.unwritten.lock()) = (why.is_none(), why);
                    Place::Cold(written.ok()?)
                }
            };
            shelf.columns.push(place);
        }
        chunk.on(Arc::new(shelf), &self.buffer).ok()
    }

    /// Writes a column, one of so many that its table has.
    fn write(
        &self,
        (table, column): (TableId, ColumnId),
        columns: usize,
        bytes: &[u8],
    ) -> io::Result<ColdPlace> {
        // Where columns share a file, neighbours do.
        let slots = columns.min(SLOTS_OF_A_TABLE);
        let slot = table.0 as usize * SLOTS_OF_A_TABLE + column.index() * slots / columns;
        let (file, offset) = self.append(slot % SLOTS, bytes)?;
        Ok(ColdPlace { file, offset, bytes: bytes.len(), crc32c: crc32c::crc32c(bytes) })
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
        let opened = Opened::new(&*self.disk, &path).map_err(io::Error::other)?;
        opened.reads_on();
        let file = ColdFile { disk: Arc::clone(&self.disk), number, opened };
        Ok(OpenFile { file: Arc::new(file), written, bytes: 0 })
    }
}

impl Drop for ColdFile {
    fn drop(&mut self) {
        // What stays is removed when the database is opened.
        let _ = self.disk.remove_file(self.opened.path());
    }
}

impl Place {
    /// All that is to be read: of which file, where, and its checksum.
    fn parts(&self) -> Vec<(&Path, Range<u64>, u32)> {
        match self {
            // Of rows that are all alike nothing is put anywhere.
            Self::Cold(place) if place.bytes == 0 => Vec::new(),
            Self::Cold(place) => vec![(place.file.opened.path(), place.range(), place.crc32c)],
            Self::Archived(column) => {
                let part = |stretch: &Stretch| (column.path(), stretch.range(), stretch.crc32c);
                column.stretches().iter().map(part).collect()
            }
        }
    }
}

impl ColdPlace {
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes as u64
    }

    /// Whether these are the bytes that were put there (I-1).
    fn check(&self, sections: &[&mut [u8]]) -> Result<(), FetchError> {
        let found = sections.iter().fold(0, |found, section| crc32c::crc32c_append(found, section));
        check(self.file.opened.path(), &self.range(), self.crc32c, found)
    }

    fn read(&self, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        let mut at = self.offset;
        for section in &mut *sections {
            self.file.opened.read_at(section, at)?;
            at += section.len() as u64;
        }
        debug_assert_eq!(at, self.range().end, "it is as long as what was put there");
        self.check(sections)
    }
}

impl Drop for ChunkShelf {
    fn drop(&mut self) {
        let of_place = |place: &Place| match place {
            Place::Cold(place) => Some((Arc::clone(&place.file), place.range())),
            Place::Archived(_) => None,
        };
        self.gone.lock().extend(self.columns.iter().filter_map(of_place));
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold(ColdPlace { file, offset, bytes, .. }) => {
                write!(f, "{bytes} bytes at offset {offset} of {}", file.opened.path().display())
            }
            Self::Archived(column) => fmt::Debug::fmt(column, f),
        }
    }
}

impl fmt::Debug for ChunkShelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkShelf").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl ChunkShelf {
    /// Calls `cold` with each of some columns that lies in a file of ours, and gives the others.
    fn sort_out<'s>(
        &'s self,
        columns: &mut dyn Iterator<Item = ColumnId>,
        mut cold: impl FnMut(&'s ColdPlace),
    ) -> Vec<&'s ArchivedColumn> {
        let mut archived = Vec::new();
        for place in columns.map(|column| &self.columns[column.index()]) {
            match place {
                Place::Cold(place) => cold(place),
                Place::Archived(column) => archived.push(column),
            }
        }
        archived
    }
}

impl Shelf for ChunkShelf {
    fn will_read(&self, columns: &mut dyn Iterator<Item = ColumnId>) {
        let archived = self.sort_out(columns, |place| place.file.opened.will_read(&place.range()));
        archived::will_read(&archived);
    }

    fn plan(&self, columns: &mut dyn Iterator<Item = ColumnId>, ahead: &mut ReadAhead) {
        let archived = self.sort_out(columns, |place| {
            if place.file.opened.is_direct() {
                ahead.plan(place.file.number, place.range());
            }
        });
        archived::plan(&archived, ahead);
    }

    fn read(&self, column: ColumnId, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        match &self.columns[column.index()] {
            Place::Cold(place) => place.read(sections),
            Place::Archived(column) => column.read(sections),
        }
    }

    fn read_from(
        &self,
        ahead: &mut ReadAhead,
        column: ColumnId,
        sections: &mut [&mut [u8]],
    ) -> Result<(), FetchError> {
        let place = match &self.columns[column.index()] {
            Place::Cold(place) => place,
            Place::Archived(column) => return column.read_from(ahead, sections),
        };
        match ahead.take((place.file.number, &place.file.opened), &place.range(), sections) {
            true => place.check(sections),
            false => place.read(sections),
        }
    }

    fn verify(&self) -> Result<u64, FetchError> {
        let (mut bytes, mut last): (u64, Option<Opened>) = (0, None);
        for (path, range, crc32c) in self.columns.iter().flat_map(Place::parts) {
            // By its name: a file that is open can be read when it has none any more.
            let file = match last.take().filter(|file| file.path() == path) {
                Some(file) => file,
                None => Opened::buffered(&*self.disk, path)?,
            };
            let mut part = vec![0; (range.end - range.start) as usize];
            file.read_at(&mut part, range.start)?;
            check(path, &range, crc32c, crc32c::crc32c(&part))?;
            bytes += part.len() as u64;
            last = Some(file);
        }
        Ok(bytes)
    }
}
