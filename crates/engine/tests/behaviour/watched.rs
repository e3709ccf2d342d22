//! A disk of which every read is seen.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::{Disk, DiskLock, MemoryDisk, PlacedFile, ReadFile, WriteFile};

/// What is done at each read, before it, on the thread that reads.
#[derive(Clone)]
struct Watcher(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// The disk.
#[derive(Debug)]
pub(crate) struct WatchedDisk(MemoryDisk, Watcher);

#[derive(Debug)]
struct WatchedFile(Box<dyn ReadFile>, Watcher);

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.1.0)();
        self.0.read(buffer)
    }
}

impl Seek for WatchedFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

impl ReadFile for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.1.0)();
        self.0.read_at(buffer, offset)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.0.will_read(offset, bytes);
    }
}

impl WatchedDisk {
    /// A disk of which `watch` sees each read, before it, on the thread that reads.
    pub(crate) fn new(disk: MemoryDisk, watch: impl Fn() + Send + Sync + 'static) -> Self {
        Self(disk, Watcher(Arc::new(watch)))
    }
}

impl Disk for WatchedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(WatchedFile(self.0.open(path)?, self.1.clone())))
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.0.create(path)
    }
    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        self.0.open_placed(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.sync_directory(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.0.lock(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }
    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.read_dir(path)
    }
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.free_bytes(path)
    }
}
