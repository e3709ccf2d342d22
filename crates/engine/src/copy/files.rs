//! Files of COPY: what can go wrong with them, and output files that appear only when complete.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_base::{SqlError, StatementProgress};
use albireo_env::{Disk, WriteFile};
use albireo_files::io_error;

/// Bytes gathered before a write.
const BUFFER_BYTES: usize = 256 << 10;

pub(super) fn open_error(path: &str, error: &io::Error) -> SqlError {
    io_error(Some(path), "open", error)
}

/// `None` is the client.
pub(super) fn read_error(path: Option<&str>, error: &io::Error) -> SqlError {
    io_error(path, "read", error)
}

/// `None` is the client.
pub(super) fn write_error(path: Option<&str>, error: &io::Error) -> SqlError {
    io_error(path, "write", error)
}

/// A file being read, whose bytes are counted.
pub(super) struct Counted<'a> {
    pub(super) source: Box<dyn Read + Send + 'a>,
    pub(super) progress: &'a StatementProgress,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}

/// A file being written. It gets its name when it is complete; dropped before, it is removed.
pub(super) struct NewFile<'a> {
    disk: &'a Arc<dyn Disk>,
    path: &'a str,
    /// Where it is written to.
    place: PathBuf,
    writer: BufWriter<Box<dyn WriteFile>>,
    finished: bool,
}

impl<'a> NewFile<'a> {
    /// `number` tells writers of this process apart, who may write to one path at a time.
    pub(super) fn create(disk: &'a Arc<dyn Disk>, path: &'a str, number: u64) -> Result<Self, SqlError> {
        let place = place_of(path, number);
        let file = disk.create(&place).map_err(|error| {
            // A disk that is full may still have made the name.
            if !is_device(&place) {
                let _ = disk.remove_file(&place);
            }
            io_error(Some(path), "create", &error)
        })?;
        let writer = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { disk, path, place, writer, finished: false })
    }

    pub(super) fn path(&self) -> &'a str {
        self.path
    }

    fn error(&self, error: &io::Error) -> SqlError {
        write_error(Some(self.path), error)
    }

    /// Makes the contents durable and gives the file its name.
    pub(super) fn finish(mut self) -> Result<(), SqlError> {
        let mut done = self.writer.flush();
        if !is_device(&self.place) {
            done = done
                .and_then(|()| self.writer.get_mut().sync())
                .and_then(|()| self.disk.rename(&self.place, self.path.as_ref()));
        }
        done.map_err(|error| self.error(&error))?;
        self.finished = true;
        Ok(())
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.finished && !is_device(&self.place) {
            // What cannot be removed either is reported by the error that led here.
            let _ = self.disk.remove_file(&self.place);
        }
    }
}

/// Beside the file, so that renaming stays on one file system; a device is written to directly.
fn place_of(path: &str, number: u64) -> PathBuf {
    match is_device(path.as_ref()) {
        true => path.into(),
        false => format!("{path}.{}-{number}.partial", std::process::id()).into(),
    }
}

fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}
