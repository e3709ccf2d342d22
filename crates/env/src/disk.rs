//! Files: the real disk, one in memory, and one that fails on purpose.
//!
//! Used by COPY, spilling and the shell's history. Responsible for: opening, creating, renaming,
//! listing, removing, free space. Not responsible for: buffering and formats.
//!
//! I-1 What was written survives a crash for certain only after [`WriteFile::sync`] has returned.
//! The file's name may still be lost: directories are not synced yet, nor does the disk in memory
//! simulate crashes. Nothing durable is built on this so far.

mod memory;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use memory::{FaultyDisk, MemoryDisk};

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
}

/// A file open for writing. Unbuffered: wrap it in [`io::BufWriter`].
pub trait WriteFile: Write + Send + fmt::Debug {
    /// Returns when everything written is on stable storage.
    ///
    /// # Errors
    /// The operating system's; what was written may then be lost.
    fn sync(&mut self) -> io::Result<()>;
}

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

    /// Gives a file another name in one step; a file of that name is replaced.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As [`Disk::open`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;

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

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
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
}

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
