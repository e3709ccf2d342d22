//! A disk in memory, with a capacity.

use super::{DIRECT_BYTES, Disk, DiskLock, PlacedFile, ReadFile, WriteFile, no_space};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Bytes = Arc<RwLock<Vec<u8>>>;

/// What stands where room was given back.
const DISCARDED: u8 = 0xdd;

/// A disk in memory. Clones share the files.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    tree: Arc<Mutex<Tree>>,
    capacity_bytes: u64,
    direct_reads: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Bytes>,
    directories: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    used_bytes: u64,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::with_capacity(u64::MAX)
    }
}

impl MemoryDisk {
    /// An empty disk that is full (ENOSPC) after `capacity_bytes` of file contents.
    pub fn with_capacity(capacity_bytes: u64) -> Self {
        Self { tree: Arc::default(), capacity_bytes, direct_reads: Arc::default() }
    }

    /// Puts a file there, with the directories above it.
    pub fn put(&self, path: impl AsRef<Path>, contents: &[u8]) {
        let path = path.as_ref();
        let mut tree = self.tree.lock();
        if let Some(parent) = path.parent() {
            tree.make_directories(parent);
        }
        let former = tree.files.insert(path.to_owned(), Arc::new(RwLock::new(contents.to_vec())));
        tree.forget(former);
        tree.used_bytes += contents.len() as u64;
    }

    /// How many reads there were of files that were [opened so](Disk::open_direct).
    pub fn direct_reads(&self) -> u64 {
        self.direct_reads.load(Ordering::Relaxed)
    }

    /// The contents of a file, if it is there.
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.tree.lock().files.get(path.as_ref()).map(|bytes| bytes.read().clone())
    }
}

impl Tree {
    fn make_directories(&mut self, path: &Path) {
        self.directories.extend(path.ancestors().map(Path::to_owned));
    }

    fn parent_exists(&self, path: &Path) -> bool {
        match path.parent() {
            None => false,
            Some(parent) => {
                parent == Path::new("") || parent == Path::new("/") || self.directories.contains(parent)
            }
        }
    }

    fn forget(&mut self, former: Option<Bytes>) {
        if let Some(bytes) = former {
            // A handle may still be open; its bytes leave the account with the name.
            self.used_bytes = self.used_bytes.saturating_sub(bytes.read().len() as u64);
        }
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let tree = self.tree.lock();
        if tree.directories.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let bytes = tree.files.get(path).ok_or(io::ErrorKind::NotFound)?.clone();
        Ok(Box::new(MemoryReader { bytes, cursor: 0 }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut tree = self.tree.lock();
        if tree.directories.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !tree.parent_exists(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let bytes = Bytes::default();
        let former = tree.files.insert(path.to_owned(), bytes.clone());
        tree.forget(former);
        Ok(Box::new(MemoryWriter { bytes, disk: self.clone() }))
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        let known = self.tree.lock().files.get(path).cloned();
        if let Some(bytes) = known {
            return Ok(Box::new(MemoryPlaced { bytes, disk: self.clone() }));
        }
        self.create(path)?;
        self.open_placed(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.read_dir(path).map(|_| ())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.open_placed(path)?;
        match self.tree.lock().locked.insert(path.to_owned()) {
            true => Ok(Box::new(MemoryLock { path: path.to_owned(), disk: self.clone() })),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut tree = self.tree.lock();
        if !tree.parent_exists(to) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let bytes = tree.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        let former = tree.files.insert(to.to_owned(), bytes);
        if from != to {
            tree.forget(former);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let former = tree.files.remove(path).ok_or(io::ErrorKind::NotFound)?;
        tree.forget(Some(former));
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.read_dir(path)?;
        let mut tree = self.tree.lock();
        let gone: Vec<PathBuf> = tree.files.keys().filter(|file| file.starts_with(path)).cloned().collect();
        for file in gone {
            let former = tree.files.remove(&file);
            tree.forget(former);
        }
        tree.directories.retain(|directory| !directory.starts_with(path));
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut tree = self.tree.lock();
        if path.ancestors().any(|ancestor| tree.files.contains_key(ancestor)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        tree.make_directories(path);
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let tree = self.tree.lock();
        if tree.files.contains_key(path) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !tree.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = tree.files.keys().chain(&tree.directories);
        let mut paths: Vec<_> = children.filter(|child| child.parent() == Some(path)).cloned().collect();
        paths.sort();
        Ok(paths)
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        let bytes = self.tree.lock().files.get(path)?.clone();
        let reads = Arc::clone(&self.direct_reads);
        Some(Box::new(DirectReader { file: MemoryReader { bytes, cursor: 0 }, reads }))
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.capacity_bytes.saturating_sub(self.tree.lock().used_bytes))
    }
}

#[derive(Debug)]
struct MemoryReader {
    bytes: Bytes,
    cursor: u64,
}

impl ReadFile for MemoryReader {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.read();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn will_read(&self, _: u64, _: u64) {}
}

/// As strict about places as a disk.
#[derive(Debug)]
struct DirectReader {
    file: MemoryReader,
    reads: Arc<AtomicU64>,
}

impl ReadFile for DirectReader {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let places = [offset, buffer.len() as u64, buffer.as_ptr() as u64];
        match places.iter().all(|place| place.is_multiple_of(DIRECT_BYTES)) {
            true => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.file.read_at(buffer, offset)
            }
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn will_read(&self, _: u64, _: u64) {}
}

impl Read for DirectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for DirectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Read for MemoryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.cursor)?;
        self.cursor += count as u64;
        Ok(count)
    }
}

impl Seek for MemoryReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.cursor.checked_add_signed(by),
            SeekFrom::End(by) => self.len()?.checked_add_signed(by),
        };
        self.cursor = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.cursor)
    }
}

#[derive(Debug)]
struct MemoryWriter {
    bytes: Bytes,
    disk: MemoryDisk,
}

impl Write for MemoryWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut tree = self.disk.tree.lock();
        let room = self.disk.capacity_bytes.saturating_sub(tree.used_bytes);
        let count = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if count == 0 && !data.is_empty() {
            return Err(no_space());
        }
        self.bytes.write().extend_from_slice(&data[..count]);
        tree.used_bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for MemoryWriter {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryPlaced {
    bytes: Bytes,
    disk: MemoryDisk,
}

impl MemoryPlaced {
    /// Makes the file at least that long, if there is room for it.
    fn grow(&self, bytes: u64) -> io::Result<()> {
        let mut tree = self.disk.tree.lock();
        let mut contents = self.bytes.write();
        let more = bytes.saturating_sub(contents.len() as u64);
        if more > self.disk.capacity_bytes.saturating_sub(tree.used_bytes) {
            return Err(no_space());
        }
        tree.used_bytes += more;
        let length = contents.len() + more as usize;
        contents.resize(length, 0);
        Ok(())
    }
}

impl PlacedFile for MemoryPlaced {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.grow(offset + data.len() as u64)?;
        let start = offset as usize;
        self.bytes.write()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.grow(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.grow(bytes)?;
        let mut tree = self.disk.tree.lock();
        let mut contents = self.bytes.write();
        // A file that lost its name has left the account.
        tree.used_bytes = tree.used_bytes.saturating_sub(contents.len() as u64 - bytes);
        contents.truncate(bytes as usize);
        Ok(())
    }

    /// What was there is gone, so that whoever still reads it is found out.
    fn discard(&self, offset: u64, bytes: u64) {
        let mut contents = self.bytes.write();
        let length = contents.len() as u64;
        let within = |at: u64| at.min(length) as usize;
        contents[within(offset)..within(offset.saturating_add(bytes))].fill(DISCARDED);
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryLock {
    path: PathBuf,
    disk: MemoryDisk,
}

impl DiskLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.disk.tree.lock().locked.remove(&self.path);
    }
}
