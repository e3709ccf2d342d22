//! Copying bytes: sums, progress, bandwidth, cancelling.

use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_env::{Disk, Env, ReadFile};

use super::{BackupOptions, BackupProgress, BackupStep};

/// What is read and written at once.
const BUFFER_BYTES: usize = 1 << 20;
/// What is written to a file between two syncs: the disk's queue stays short for the log.
const SYNC_BYTES: u64 = 8 << 20;
/// The longest sleep before the flag for cancelling is looked at.
const NAP: Duration = Duration::from_millis(50);

/// Somebody set the flag. No `Interrupted`, after which the standard library tries again.
#[derive(Debug, thiserror::Error)]
#[error("it was cancelled")]
struct Cancelled;

/// An error of the operating system at `path`, or what reading it found.
pub(super) fn failed(what: &str, path: &Path, error: &io::Error) -> SqlError {
    let is_cancelled = error.get_ref().is_some_and(|inner| inner.is::<Cancelled>());
    let state = match error.kind() {
        _ if is_cancelled => SqlState::QUERY_CANCELED,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SqlState::DISK_FULL,
        io::ErrorKind::UnexpectedEof => SqlState::DATA_CORRUPTED,
        _ => SqlState::IO_ERROR,
    };
    SqlError::new(state, format!("could not {what} {}: {error}", path.display()))
}

/// Copying of many files.
pub(super) struct Transfer<'a> {
    env: &'a Env,
    bytes_per_second: Option<NonZeroU64>,
    cancel: Arc<AtomicBool>,
    at: BackupProgress,
    progress: &'a mut dyn FnMut(BackupProgress),
    /// When what was read so far may have been read.
    due_ns: u64,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        env: &'a Env,
        options: &BackupOptions,
        step: BackupStep,
        bytes_total: u64,
        progress: &'a mut dyn FnMut(BackupProgress),
    ) -> Self {
        let at = BackupProgress { step, bytes_done: 0, bytes_total };
        let (bytes_per_second, cancel) = (options.bytes_per_second, Arc::clone(&options.cancel));
        Self { env, bytes_per_second, cancel, at, progress, due_ns: env.clock.now() }
    }

    /// There is more to do than was known.
    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.at.bytes_total += bytes;
    }

    /// So much was done without reading it.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.at.bytes_done += bytes;
        (self.progress)(self.at);
    }

    /// Reads the first `bytes` of a file.
    pub(super) fn read<'t>(&'t mut self, file: Box<dyn ReadFile>, bytes: u64) -> Reading<'t, 'a> {
        Reading { transfer: self, file, offset: 0, bytes, crc32c: 0 }
    }

    /// Counts what was read, and sleeps if that was too fast.
    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.at.bytes_done += bytes;
        (self.progress)(self.at);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(io::Error::other(Cancelled));
        }
        let Some(rate) = self.bytes_per_second else { return Ok(()) };
        let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
        let now_ns = self.env.clock.now();
        self.due_ns = self.due_ns.max(now_ns).saturating_add(takes_ns as u64);
        let mut pause = Duration::from_nanos(self.due_ns - now_ns);
        while !pause.is_zero() && !self.cancel.load(Ordering::Relaxed) {
            self.env.clock.sleep(pause.min(NAP));
            pause = pause.saturating_sub(NAP);
        }
        Ok(())
    }
}

/// A file being read, and summed up.
pub(super) struct Reading<'t, 'a> {
    transfer: &'t mut Transfer<'a>,
    file: Box<dyn ReadFile>,
    offset: u64,
    bytes: u64,
    crc32c: u32,
}

impl Reading<'_, '_> {
    /// CRC-32C of what has been read.
    pub(super) fn crc32c(&self) -> u32 {
        self.crc32c
    }

    /// Reads to the end; the checksum.
    pub(super) fn sum(mut self) -> io::Result<u32> {
        let mut buffer = vec![0; BUFFER_BYTES];
        while self.read(&mut buffer)? > 0 {}
        Ok(self.crc32c)
    }

    /// Writes all of it to a new file, and returns when that is on stable storage.
    pub(super) fn copy_to(&mut self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let mut out = disk.create(path)?;
        let (mut buffer, mut unsynced) = (vec![0; BUFFER_BYTES], 0);
        loop {
            let count = self.read(&mut buffer)?;
            out.write_all(&buffer[..count])?;
            unsynced += count as u64;
            if count == 0 || unsynced >= SYNC_BYTES {
                out.sync()?;
                unsynced = 0;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }
}

impl Read for Reading<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = (self.bytes - self.offset).min(buffer.len() as u64) as usize;
        if left == 0 {
            return Ok(0);
        }
        let count = loop {
            match self.file.read_at(&mut buffer[..left], self.offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if count == 0 {
            let text = format!("it has {} bytes instead of {}", self.offset, self.bytes);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        self.crc32c = crc32c::crc32c_append(self.crc32c, &buffer[..count]);
        self.offset += count as u64;
        self.transfer.count(count as u64)?;
        Ok(count)
    }
}
