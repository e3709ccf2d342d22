//! A tar file as a disk that can only be read: what reads a directory reads it too.
//!
//! The file `PATH.tar` is a directory to its users: its entry `log/1` is the file `PATH.tar/log/1`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::{Disk, DiskLock, PlacedFile, ReadFile, WriteFile};

/// A file of which parts are files.
#[derive(Debug)]
pub(super) struct TarDisk {
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    /// Where each entry lies: its first byte and its length.
    entries: BTreeMap<PathBuf, (u64, u64)>,
    directories: BTreeSet<PathBuf>,
}

impl TarDisk {
    /// Reads what is in the file.
    ///
    /// # Errors
    /// The disk's; `InvalidData` if it is no tar file.
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let wrong = |error: &io::Error| match error.kind() {
            kind @ (io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => kind.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("not a tar file: {error}")),
        };
        let mut archive = tar::Archive::new(disk.open(path)?);
        let (mut entries, mut directories) = (BTreeMap::new(), BTreeSet::from([path.to_owned()]));
        for entry in archive.entries_with_seek().map_err(|error| wrong(&error))? {
            let entry = entry.map_err(|error| wrong(&error))?;
            if entry.header().entry_type() != tar::EntryType::Regular {
                continue;
            }
            let name = path.join(entry.path().map_err(|error| wrong(&error))?);
            directories
                .extend(name.ancestors().skip(1).take_while(|above| *above != path).map(Path::to_owned));
            entries.insert(name, (entry.raw_file_position(), entry.size()));
        }
        Ok(Self { path: path.to_owned(), file: disk.open(path)?.into(), entries, directories })
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for TarDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        match self.entries.get(path) {
            Some(&(start, bytes)) => {
                Ok(Box::new(Entry { file: Arc::clone(&self.file), start, bytes, cursor: 0 }))
            }
            None if self.directories.contains(path) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        if self.entries.contains_key(path) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !self.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let all = self.entries.keys().chain(&self.directories);
        let inside: BTreeSet<PathBuf> = all.filter(|name| name.parent() == Some(path)).cloned().collect();
        // The directory above the tar file is not in it.
        Ok(inside.into_iter().filter(|name| *name != self.path).collect())
    }

    fn create(&self, _path: &Path) -> io::Result<Box<dyn WriteFile>> {
        read_only()
    }

    fn open_placed(&self, _path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        read_only()
    }

    fn sync_directory(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn DiskLock>> {
        read_only()
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove_file(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove_dir_all(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(0)
    }
}

/// One entry, as a file.
#[derive(Debug)]
struct Entry {
    file: Arc<dyn ReadFile>,
    start: u64,
    bytes: u64,
    cursor: u64,
}

impl ReadFile for Entry {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        match left {
            0 => Ok(0),
            left => self.file.read_at(&mut buffer[..left], self.start.saturating_add(offset)),
        }
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.file.will_read(self.start.saturating_add(offset), bytes);
    }
}

impl Read for Entry {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.cursor)?;
        self.cursor += count as u64;
        Ok(count)
    }
}

impl Seek for Entry {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.cursor.checked_add_signed(by),
        };
        self.cursor = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.cursor)
    }
}
