//! How far COPY and CREATE INDEX are, seen from outside while they run.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use albireo::Connection;
use albireo::progress::{Phase, Progress, Unit};
use albireo_env::{Disk, DiskLock, MemoryDisk, PlacedFile, ReadFile, WriteFile};
use parking_lot::Mutex;

use crate::support::{database, database_on, run, small};

/// Asks a connection how far it is whenever a file is read.
#[derive(Clone, Default)]
struct Watcher {
    connection: Arc<OnceLock<Connection>>,
    seen: Arc<Mutex<Vec<Progress>>>,
}

impl Watcher {
    fn look(&self) {
        self.seen.lock().extend(self.connection.get().and_then(Connection::progress));
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

#[derive(Debug)]
struct WatchedDisk(MemoryDisk, Watcher);

#[derive(Debug)]
struct WatchedFile(Box<dyn ReadFile>, Watcher);

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.look();
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
        self.1.look();
        self.0.read_at(buffer, offset)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.0.will_read(offset, bytes);
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

#[test]
fn copy_from_tells_how_much_of_the_file_is_read_and_nothing_afterwards() {
    let (memory, watcher) = (MemoryDisk::default(), Watcher::default());
    let line = |a: u32| format!("{a},{a:0>60}\n");
    let contents: String = (0..100_000).map(line).collect();
    memory.put("/t.csv", contents.as_bytes());
    let db = database_on(WatchedDisk(memory, watcher.clone()), small());
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    assert!(watcher.connection.set(db.connect()).is_ok());
    let connection = watcher.connection.get().unwrap();
    connection.execute("COPY t FROM '/t.csv'").unwrap();
    assert_eq!(connection.progress(), None);
    let total = contents.len() as u64;
    let seen = watcher.seen.lock();
    let read: Vec<_> = seen.iter().filter(|progress| progress.phase == Phase::ReadingFile).collect();
    assert!(read.iter().all(|progress| (progress.unit, progress.total) == (Unit::Bytes, Some(total))));
    assert!(read.is_sorted_by_key(|progress| progress.done), "{read:?}");
    assert!(read.iter().any(|progress| progress.done > 0 && progress.done < total), "{read:?}");
}

#[test]
fn statement_that_fails_leaves_no_progress_behind() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (1)");
    let connection = db.connect();
    assert!(connection.execute("CREATE UNIQUE INDEX i ON t (a)").is_err());
    assert_eq!(connection.progress(), None);
    assert!(connection.execute("COPY t FROM '/nowhere.csv'").is_err());
    assert_eq!(connection.progress(), None);
}
