//! Open files and locks of the disk that crashes.

use super::CrashDisk;
use super::machine::Machine;
use super::names::Inode;
use crate::disk::{DiskLock, PlacedFile, ReadFile, WriteFile, no_space};
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// An open file, until the machine crashes or the process dies.
#[derive(Debug)]
pub(super) struct Handle {
    disk: CrashDisk,
    inode: Inode,
    era: u64,
    /// Keeps the file though it may lose its name.
    _open: Arc<()>,
}

impl Handle {
    pub(super) fn new(disk: &CrashDisk, machine: &Machine, inode: Inode) -> Self {
        let open = machine.files[&inode].open.clone();
        Self { disk: disk.clone(), inode, era: machine.era, _open: open }
    }

    fn operation<T>(&self, act: impl FnOnce(&mut Machine, Inode) -> io::Result<T>) -> io::Result<T> {
        self.disk.machine.lock().operation(Some(self.era), |machine| act(machine, self.inode))
    }

    fn check(&self) -> io::Result<()> {
        self.disk.machine.lock().check(Some(self.era))
    }
}

#[derive(Debug)]
pub(super) struct Reader {
    handle: Handle,
    cursor: u64,
    /// Of the name that it was opened by.
    extension: Option<OsString>,
}

impl Reader {
    pub(super) fn new(handle: Handle, path: &Path) -> Self {
        Self { handle, cursor: 0, extension: path.extension().map(OsString::from) }
    }
}

impl ReadFile for Reader {
    fn len(&self) -> io::Result<u64> {
        self.handle.operation(|machine, inode| Ok(machine.present(inode).len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let extension = self.extension.as_deref();
        self.handle.operation(|machine, inode| machine.read(inode, extension, buffer, offset))
    }

    fn will_read(&self, _: u64, _: u64) {}
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.cursor)?;
        self.cursor += count as u64;
        Ok(count)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.handle.check()?;
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
pub(super) struct Writer {
    handle: Handle,
    cursor: u64,
}

impl Writer {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, cursor: 0 }
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let cursor = self.cursor;
        let count = self.handle.operation(|machine, inode| machine.write(inode, data, cursor, false))?;
        self.cursor += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.handle.check()
    }
}

impl WriteFile for Writer {
    fn sync(&mut self) -> io::Result<()> {
        self.handle.operation(Machine::sync)
    }
}

#[derive(Debug)]
pub(super) struct Placed {
    handle: Handle,
}

impl Placed {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl PlacedFile for Placed {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.handle.operation(|machine, inode| {
            let count = machine.write(inode, data, offset, true)?;
            if count < data.len() { Err(no_space()) } else { Ok(()) }
        })
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.handle.operation(|machine, inode| {
            let length = machine.present(inode).len() as u64;
            machine.set_len(inode, bytes.max(length))
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.handle.operation(|machine, inode| machine.set_len(inode, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.operation(Machine::sync)
    }
}

/// Free when dropped, unless the machine crashed before.
#[derive(Debug)]
pub(super) struct Lock {
    handle: Handle,
}

impl Lock {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl DiskLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut machine = self.handle.disk.machine.lock();
        if machine.era == self.handle.era {
            machine.locked.remove(&self.handle.inode);
        }
    }
}
