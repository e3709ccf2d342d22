//! A disk that crashes: what was not synced may be lost or torn, and writes, syncs and reads fail on demand.
//!
//! Responsible for: the files as programs see them and as a power failure leaves them, crashes between
//! and within operations, failing writes and syncs, reads that fail, are short or give wrong bytes,
//! capacity. Not responsible for: the time of day.
//!
//! Contents: for each file chance decides between four fates of what was written since its last
//! [`WriteFile::sync`] or [`PlacedFile::sync`]: lost; kept; kept up to some write, whose sectors may be
//! lost; or each sector of [`SECTOR_BYTES`] for itself, as it was before or after any of the writes. The
//! length is one that the file had since, or one it grew through; holes are zeros.
//! Names: changes of directories are in one journal, of which a prefix survives; syncing a directory
//! takes the changes of its names out of it. A new file or directory thus needs a sync of the directory
//! it is in, and that one of the one above, however well its contents are synced.
//!
//! I-1 A synced sector changes in a crash only if the file was cut since. I-2 A rename survives as a
//! whole or not at all. I-3 All follows from the seed and the calls made, also those that were refused.
//! (`tests.rs`) I-4 Nothing is drawn for faults that are off.

mod contents;
mod handles;
mod machine;
mod names;
#[cfg(test)]
mod tests;

use super::{Disk, DiskLock, PlacedFile, ReadFile, WriteFile};
use crate::clock::SimulatedClock;
use handles::{Handle, Lock, Placed, Reader, Writer};
use machine::Machine;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a device writes in one piece, in bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Failures of a [`CrashDisk`] that are no crashes; all off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of 1,000 writes so many fail with EIO. [`PlacedFile::write_at`] has then written a random part
    /// from the start, [`io::Write::write`] nothing.
    pub failing_writes_per_mille: u16,
    /// Of 1,000 syncs of files and directories so many fail with EIO. What was to be written is taken
    /// for clean all the same, as Linux does: whether it is durable is chance, a program goes on seeing
    /// it, and a later sync succeeds without writing it. Names only remain pending.
    pub failing_syncs_per_mille: u16,
    /// After so many more writes one fails, once.
    pub failing_write: Option<u64>,
    /// After so many more syncs one fails, once.
    pub failing_sync: Option<u64>,
}

/// What happens to reads of chosen files, whose bytes stay as they are; nothing by default. For bytes that
/// have changed in a file there is [`CrashDisk::damage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadFaults {
    /// Of 1,000 reads so many fail with EIO.
    pub failing_per_mille: u16,
    /// Of 1,000 reads so many give only a random part from the start, perhaps all, perhaps nothing as if
    /// the file ended there.
    pub short_per_mille: u16,
    /// Of 1,000 reads so many give one wrong bit.
    pub damaged_per_mille: u16,
}

/// What operations take on a simulated clock; the others take no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// A write, of any size.
    pub write: Duration,
    /// A sync of a file or a directory.
    pub sync: Duration,
}

/// A disk in memory that loses in a crash what real ones lose. Clones share the files. The current
/// directory is the root; directories cannot be renamed.
#[derive(Clone, Debug)]
pub struct CrashDisk {
    machine: Arc<Mutex<Machine>>,
}

impl CrashDisk {
    /// An empty disk without limit; all chance follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { machine: Arc::new(Mutex::new(Machine::new(seed))) }
    }

    /// Power fails and comes back at once: what was not synced is decided by chance, open files and
    /// locks fail with "the machine crashed" and stay so. A planned crash is forgotten.
    pub fn crash(&self) {
        let mut machine = self.machine.lock();
        machine.lose_power();
        machine.down = false;
    }

    /// Plans a crash for when `operation` operations have begun (see [`Self::operations`]): the next
    /// one is struck. It may be done in part, fails, and so does every other until [`Self::restart`].
    /// A number that is past strikes the next operation.
    pub fn crash_at(&self, operation: u64) {
        self.machine.lock().crash_at = Some(operation);
    }

    /// Forgets the planned crash that has not struck yet: for which operation it was planned.
    pub fn take_planned_crash(&self) -> Option<u64> {
        self.machine.lock().crash_at.take()
    }

    /// Brings the machine back after a planned crash, with what survived it; says whether it was down.
    /// A machine that is up stays as it is.
    pub fn restart(&self) -> bool {
        std::mem::take(&mut self.machine.lock().down)
    }

    /// Whether a planned crash has struck and nobody has called [`Self::restart`].
    pub fn is_down(&self) -> bool {
        self.machine.lock().down
    }

    /// The process dies, not the machine: open files fail and locks are free, but what was written
    /// stays, as durable as it was.
    pub fn kill(&self) {
        self.machine.lock().end_era();
    }

    /// Operations that have begun: every call of [`Disk`] and of the files it opened, but `flush`,
    /// seeking from start or cursor, dropping, and calls after a crash.
    pub fn operations(&self) -> u64 {
        self.machine.lock().operations
    }

    /// Lets writes and syncs fail from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.machine.lock().faults = faults;
    }

    /// Has reads go wrong from now on of files whose names, when they were opened, ended in this extension
    /// (without its dot), and of no others.
    pub fn set_read_faults(&self, extension: impl Into<OsString>, faults: ReadFaults) {
        self.machine.lock().read_faults = Some((extension.into(), faults));
    }

    /// Bytes that all files with a name can have; if they have more, none can grow.
    pub fn set_capacity_bytes(&self, bytes: u64) {
        self.machine.lock().capacity_bytes = bytes;
    }

    /// Lets operations move that clock.
    pub fn set_latency(&self, clock: SimulatedClock, latency: Latency) {
        self.machine.lock().latency = Some((clock, latency));
    }

    /// Puts a file there, with the directories above it, all durable. No operation; knows no capacity.
    ///
    /// # Panics
    /// If a file is in the place of a directory, or a directory in that of the file.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.machine.lock().put(path.as_ref(), bytes).expect("a path for a file");
    }

    /// What programs read in a file, if it is there. No operation.
    pub fn contents(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.machine.lock().contents(path.as_ref())
    }

    /// All files with what programs read in them. No operation.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.machine.lock().all_files()
    }

    /// Turns a bit of a file over, counted from the lowest of the first byte; see [`Self::damage`].
    ///
    /// # Panics
    /// If there is no such file, or no such bit in it.
    pub fn flip_bit(&self, path: impl AsRef<Path>, bit: u64) {
        self.damage(path, |bytes| bytes[(bit / 8) as usize] ^= 1 << (bit % 8));
    }

    /// Damages a file on purpose: what `change` makes of its bytes is there, and durable. No operation.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn damage(&self, path: impl AsRef<Path>, change: impl FnOnce(&mut Vec<u8>)) {
        self.machine.lock().damage(path.as_ref(), change).expect("a file to damage");
    }

    fn operation<T>(&self, act: impl FnOnce(&mut Machine) -> io::Result<T>) -> io::Result<T> {
        self.machine.lock().operation(None, act)
    }

    /// Opens a file by an operation that finds or makes it.
    fn open_by(&self, find: impl FnOnce(&mut Machine) -> io::Result<names::Inode>) -> io::Result<Handle> {
        self.operation(|machine| {
            let inode = find(machine)?;
            Ok(Handle::new(self, machine, inode))
        })
    }
}

impl Disk for CrashDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let handle = self.open_by(|machine| machine.names.find_file(path))?;
        Ok(Box::new(Reader::new(handle, path)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let handle = self.open_by(|machine| {
            let inode = machine.find_or_create(path)?;
            machine.set_len(inode, 0)?;
            Ok(inode)
        })?;
        Ok(Box::new(Writer::new(handle)))
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        let handle = self.open_by(|machine| machine.find_or_create(path))?;
        Ok(Box::new(Placed::new(handle)))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.operation(|machine| machine.sync_directory(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let handle = self.open_by(|machine| {
            let inode = machine.find_or_create(path)?;
            match machine.locked.insert(inode) {
                true => Ok(inode),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        })?;
        Ok(Box::new(Lock::new(handle)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operation(|machine| machine.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.operation(|machine| machine.remove_file(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.operation(|machine| machine.remove_tree(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.operation(|machine| machine.names.create_directories(path).map(|_| ()))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.operation(|machine| {
            let directory = machine.names.find_directory(path)?;
            Ok(machine.names.children(directory).map(|(name, _)| path.join(name)).collect())
        })
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        self.open(path).ok()
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        self.operation(|machine| Ok(machine.room()))
    }
}
