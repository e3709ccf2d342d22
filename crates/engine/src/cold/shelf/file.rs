//! Reading a file in which columns of evicted chunks lie, and what is wrong with it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use albireo_env::{Disk, ReadFile};
use albireo_storage::{DirectFile, FetchError};

/// A file that is open for reading.
pub(super) struct Opened {
    path: PathBuf,
    read: Box<dyn ReadFile>,
    /// Past the system's memory, where that is possible and wanted.
    direct: Option<Box<dyn ReadFile>>,
}

impl Opened {
    /// For all that readers do.
    pub(super) fn new(disk: &dyn Disk, path: &Path) -> Result<Self, FetchError> {
        Ok(Self { direct: disk.open_direct(path), ..Self::buffered(disk, path)? })
    }

    /// For reading through the system's memory alone.
    pub(super) fn buffered(disk: &dyn Disk, path: &Path) -> Result<Self, FetchError> {
        let read = disk.open(path).map_err(|error| unreadable(path, &error))?;
        Ok(Self { path: path.to_owned(), read, direct: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be read past the system's memory.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Tells the system that the file is mostly read on and on.
    pub(super) fn reads_on(&self) {
        self.read.reads_on();
    }

    /// Tells the system that these bytes are read soon.
    pub(super) fn will_read(&self, range: &Range<u64>) {
        self.read.will_read(range.start, range.end - range.start);
    }

    /// Reads bytes from a place in the file.
    pub(super) fn read_at(&self, mut into: &mut [u8], mut offset: u64) -> Result<(), FetchError> {
        while !into.is_empty() {
            match self.read.read_at(into, offset) {
                Ok(0) => return Err(damaged(&self.path, format!("it ends at byte {offset}"))),
                Ok(read) => {
                    offset += read as u64;
                    into = &mut into[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&self.path, &error)),
            }
        }
        Ok(())
    }
}

impl DirectFile for Opened {
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

/// The system does not read a file.
fn unreadable(path: &Path, error: &io::Error) -> FetchError {
    FetchError::Unreadable { file: path.display().to_string(), what: error.to_string() }
}

/// A file has other bytes than were written.
pub(super) fn damaged(path: &Path, what: String) -> FetchError {
    FetchError::Damaged { file: path.display().to_string(), what }
}

/// Whether the bytes at a place are those that were written there, by their CRC-32C.
pub(super) fn check(path: &Path, place: &Range<u64>, expected: u32, found: u32) -> Result<(), FetchError> {
    let (offset, bytes) = (place.start, place.end - place.start);
    match found == expected {
        true => Ok(()),
        false => Err(damaged(path, format!("the checksum of {bytes} bytes at offset {offset} is wrong"))),
    }
}
