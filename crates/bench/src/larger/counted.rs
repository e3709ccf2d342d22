//! A disk that counts what is read of it.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_env::{Disk, DiskLock, PlacedFile, ReadFile, WriteFile};

/// What was read at places of files since this was taken.
#[derive(Default, Debug)]
pub(super) struct Reads {
    bytes: AtomicU64,
    count: AtomicU64,
}

impl Reads {
    /// Bytes, and how many reads; from now on they are counted anew.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.bytes.swap(0, Ordering::Relaxed), self.count.swap(0, Ordering::Relaxed))
    }
}

/// The disk.
#[derive(Debug)]
pub(super) struct CountedDisk {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) reads: Arc<Reads>,
}

/// A file of it.
#[derive(Debug)]
struct CountedFile {
    file: Box<dyn ReadFile>,
    reads: Arc<Reads>,
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for CountedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl ReadFile for CountedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        self.reads.bytes.fetch_add(read as u64, Ordering::Relaxed);
        self.reads.count.fetch_add(1, Ordering::Relaxed);
        Ok(read)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.file.will_read(offset, bytes);
    }

    fn reads_on(&self) {
        self.file.reads_on();
    }

    fn is_in_memory(&self, offset: u64) -> bool {
        self.file.is_in_memory(offset)
    }
}

impl Disk for CountedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = self.disk.open(path)?;
        Ok(Box::new(CountedFile { file, reads: Arc::clone(&self.reads) }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        self.disk.open_placed(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.read_dir(path)
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        // With what lies between, which nobody needs: it is not counted.
        self.disk.open_direct(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }
}
