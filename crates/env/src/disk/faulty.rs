//! A disk on which writing fails from a chosen write on.

use super::{Disk, DiskLock, PlacedFile, ReadFile, WriteFile, no_space};
use parking_lot::Mutex;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Another disk on which writing fails from the n-th write on, as when it has run full: creating
/// files, writing to them and syncing them then returns ENOSPC, reading and removing go on.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    writes_left: Arc<Mutex<u64>>,
}

impl FaultyDisk {
    /// Lets `writes` calls that write succeed (over all files) before the first failure.
    pub fn failing_after(inner: Arc<dyn Disk>, writes: u64) -> Self {
        Self { inner, writes_left: Arc::new(Mutex::new(writes)) }
    }

    /// Makes room for `writes` more.
    pub fn heal(&self, writes: u64) {
        *self.writes_left.lock() = writes;
    }

    fn count_write(&self) -> io::Result<()> {
        let mut left = self.writes_left.lock();
        *left = left.checked_sub(1).ok_or_else(no_space)?;
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.inner.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.count_write()?;
        Ok(Box::new(FaultyWriter { inner: self.inner.create(path)?, disk: self.clone() }))
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        Ok(Box::new(FaultyPlaced { inner: self.inner.open_placed(path)?, disk: self.clone() }))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.count_write()?;
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.inner.lock(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.count_write()?;
        self.inner.hard_link(from, to)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.count_write()?;
        self.inner.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.read_dir(path)
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        self.inner.open_direct(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        if *self.writes_left.lock() == 0 { Ok(0) } else { self.inner.free_bytes(path) }
    }
}

#[derive(Debug)]
struct FaultyWriter {
    inner: Box<dyn WriteFile>,
    disk: FaultyDisk,
}

impl Write for FaultyWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.disk.count_write()?;
        self.inner.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl WriteFile for FaultyWriter {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.count_write()?;
        self.inner.sync()
    }
}

#[derive(Debug)]
struct FaultyPlaced {
    inner: Box<dyn PlacedFile>,
    disk: FaultyDisk,
}

impl PlacedFile for FaultyPlaced {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.disk.count_write()?;
        self.inner.write_at(data, offset)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.disk.count_write()?;
        self.inner.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.count_write()?;
        self.inner.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.count_write()?;
        self.inner.sync()
    }
}
