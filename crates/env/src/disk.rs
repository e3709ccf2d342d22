//! Files: the real disk, one in memory, one that fails on purpose, and one that crashes.
//!
//! Used by the redo log, archives, COPY, spilling and the shell's history. Responsible for: opening,
//! creating, renaming, listing, removing, locking, free space. Not responsible for: buffering and formats.
//!
//! I-1 What was written survives a crash for certain only after [`WriteFile::sync`] or
//! [`PlacedFile::sync`] has returned, and a file's name only after [`Disk::sync_directory`] of the
//! directory it is in.

mod faulty;
mod memory;
mod simulated;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use faulty::FaultyDisk;
pub use memory::MemoryDisk;
pub use simulated::{CrashDisk, Faults, Latency, ReadFaults, SECTOR_BYTES};

/// What the kernel says when the device has no room.
fn no_space() -> io::Error {
    io::Error::from(rustix::io::Errno::NOSPC)
}

/// What places, lengths and addresses are multiples of where reads go past the system's memory, in bytes.
pub const DIRECT_BYTES: u64 = 4096;

/// A file open for reading, from several threads at once if need be.
pub trait ReadFile: Read + Seek + Send + Sync + fmt::Debug {
    /// Bytes in the file when asked.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// The operating system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads at `offset` without moving the cursor; returns the bytes read, 0 at the end.
    ///
    /// # Errors
    /// The operating system's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Tells the system that these bytes are read soon, so that it fetches them meanwhile.
    fn will_read(&self, offset: u64, bytes: u64);

    /// Whether the byte at `offset` can be read without waiting for the disk, as far as the system says.
    fn is_in_memory(&self, offset: u64) -> bool {
        let _ = offset;
        false
    }

    /// Tells the system that the file is mostly read on and on, so that it fetches much ahead. It does that in larger
    /// pieces than what is asked for by [`ReadFile::will_read`].
    fn reads_on(&self) {}
}

/// A file open for writing. Unbuffered: wrap it in [`io::BufWriter`].
pub trait WriteFile: Write + Send + fmt::Debug {
    /// Returns when everything written is on stable storage.
    ///
    /// # Errors
    /// The operating system's; what was written may then be lost.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is written at chosen places, from several threads if need be: a segment of the log.
pub trait PlacedFile: Send + Sync + fmt::Debug {
    /// Writes all of `data` at `offset`; beyond the end the file grows.
    ///
    /// # Errors
    /// The operating system's; any part of `data` may then have been written.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Takes room for the first `bytes` from the file system, so that writing there does not run out of
    /// it; what is new reads as zeros and counts as the file's length.
    ///
    /// # Errors
    /// `StorageFull`, and the operating system's.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts the file, or extends it by zeros.
    ///
    /// # Errors
    /// The operating system's.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Gives the room of some bytes back to the file system, if it takes it: whatever is read there afterwards. The file
    /// stays as long as it is.
    fn discard(&self, _offset: u64, _bytes: u64) {}

    /// Returns when everything written, and the length, is on stable storage.
    ///
    /// # Errors
    /// The operating system's; what was written since the last success may then be lost, whatever a
    /// later call says.
    fn sync(&self) -> io::Result<()>;
}

/// Keeps others from locking the same path; given back when dropped, and when the process ends.
pub trait DiskLock: Send + Sync + fmt::Debug {}

/// A file system. All errors are the operating system's own or look the same.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied`, `IsADirectory` and the rest of them.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;

    /// Creates a file for writing, or empties the one that is there.
    ///
    /// # Errors
    /// As [`Disk::open`], and `StorageFull`.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Opens a file to write at places of it, and creates it if it is not there.
    ///
    /// # Errors
    /// As [`Disk::create`].
    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>>;

    /// Returns when names that were made, changed and removed in a directory are on stable storage.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Locks a file, which is created if it is not there, against every other process and every other
    /// call, without waiting.
    ///
    /// # Errors
    /// As [`Disk::create`]; `WouldBlock` if somebody has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;

    /// Gives a file another name in one step; a file of that name is replaced.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// As [`Disk::open`], `AlreadyExists`, `CrossesDevices`, and `Unsupported` where a file has one name.
    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all that is in it.
    ///
    /// # Errors
    /// As [`Disk::read_dir`].
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates a directory and those above it; one that is there is fine.
    ///
    /// # Errors
    /// As [`Disk::open`], and `AlreadyExists` when a file is in the way.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Paths in a directory, sorted.
    ///
    /// # Errors
    /// As [`Disk::open`], and `NotADirectory`.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>>;

    /// Opens a file whose reads go past the system's memory: places, lengths and the addresses of buffers are to be
    /// multiples of [`DIRECT_BYTES`]. `None` where that is not possible.
    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        let _ = path;
        None
    }

    /// Bytes an unprivileged process may still write where `path` is.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// The machine's file systems.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let file = File::open(path)?;
        // Opening a directory succeeds and the first read fails: say it early.
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(file))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        Ok(Box::new(File::options().write(true).create(true).truncate(false).open(path)?))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        file.try_lock()?;
        Ok(Box::new(RealLock { file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let file = File::options().read(true).custom_flags(direct).open(path).ok()?;
        Some(Box::new(file))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl ReadFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        // Who is not heard reads all the same.
        let _ = rustix::fs::fadvise(self, offset, NonZeroU64::new(bytes), rustix::fs::Advice::WillNeed);
    }

    fn is_in_memory(&self, offset: u64) -> bool {
        let mut byte = [0];
        let into = &mut [io::IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(self, into, offset, rustix::io::ReadWriteFlags::NOWAIT)
            .is_ok_and(|read| read == 1)
    }

    fn reads_on(&self) {
        // Advice: without it they are read all the same.
        let _ = rustix::fs::fadvise(self, 0, None, rustix::fs::Advice::Sequential);
    }
}

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl PlacedFile for File {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, data, offset)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        // The kernel refuses to allocate nothing.
        if bytes == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            // Some file systems cannot; then room is found when it is needed.
            Err(rustix::io::Errno::OPNOTSUPP) if self.metadata()?.len() < bytes => File::set_len(self, bytes),
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) {
        use rustix::fs::FallocateFlags as Flags;
        if bytes > 0 {
            // Where it cannot be done, nothing is lost but room.
            let _ = rustix::fs::fallocate(self, Flags::PUNCH_HOLE | Flags::KEEP_SIZE, offset, bytes);
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The lock belongs to the open file, which a child that another thread is just starting shares until it runs its
/// own program. So it is given back expressly: closing our descriptor would leave it with the child.
#[derive(Debug)]
struct RealLock {
    file: File,
}

impl DiskLock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // If this fails, closing the descriptor gives it back all the same, with the last copy.
        let _ = self.file.unlock();
    }
}
