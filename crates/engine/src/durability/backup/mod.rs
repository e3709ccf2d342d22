//! Backups: a copy of a database that needs nothing but itself, taken while transactions run.
//!
//! Responsible for: what belongs to a backup, copying it, its manifest, checking it, putting it back.
//! Not responsible for: archives (`albireo_archive`), the log's form (`albireo_redo`), opening what was
//! restored ([`Database::open`]).
//!
//! ```text
//! BACKUP/backup.json          the manifest: all other files with their lengths and checksums; written last,
//!                             under another name, and renamed
//! BACKUP/archive/...          one archive, as in the database's directory
//! BACKUP/log/...              the segments behind it, each up to its last frame
//!
//! begin ──► target made, marked ──► fresh archive ──► its files ──► log sealed: the moment ──► segments
//!             ──► manifest written, renamed ──► complete
//!             │ an error: what was made is removed, as far as the disk allows
//!
//! restore: all is checked ──► DIR made, marked ──► files ──► mark removed ──► opened
//! ```
//!
//! A target that ends in `.tar` is one file with the same names in it; the manifest is its last entry, and the
//! file gets its name when all is in it.
//!
//! - I-1 A backup is complete when its manifest has its name, and then all of it is on stable storage.
//! - I-2 It is the state at one moment, between the beginning and the end of taking it, over all partitions.
//! - I-3 While files are copied none of them is removed: whoever writes archives waits. Transactions do not.
//! - I-4 A directory that a restore has not finished, or that is a backup, cannot be opened as a database.
//!   (`durability/backup/tests.rs`, `tests/durability/backup.rs` of the program)

mod manifest;
mod restore;
mod source;
mod statement;
mod tar_disk;
mod target;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use albireo_archive::{Manifest, list};
use albireo_base::{SqlError, SqlState};
use albireo_env::{Disk, Env};
use albireo_redo::{Log, LogReader, Ticket};

use super::checkpoint::{CheckpointOptions, archive_error};
use super::recovery::damaged;
use crate::Database;
use crate::errors::log as log_error;
use manifest::FORMAT;
use target::BackupWriter;
use transfer::Transfer;

pub use manifest::{BackupFile, BackupManifest};
pub(in crate::durability) use manifest::{NAME, UNFINISHED_NAME};
pub use restore::{RestoreOptions, RestoreReport, restore};
pub use source::{Backup, BackupFault};
pub(crate) use statement::backup_target;

/// How a backup is taken.
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    /// The most to write in a second, in bytes; `None`: as fast as the disk takes it.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Gives the archive's files a second name instead of copying them, where the target is a directory of the
    /// same file system: it takes no time and no room, and damage to one is damage to the other.
    pub links: bool,
    /// Set by others to stop.
    pub cancel: Arc<AtomicBool>,
}

/// What taking or restoring a backup is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupStep {
    /// A fresh archive is being written.
    Archive,
    /// Checksums are being looked at.
    Check,
    /// Files are being copied.
    Copy,
}

/// How far a step has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupProgress {
    /// The step.
    pub step: BackupStep,
    /// Bytes done in it.
    pub bytes_done: u64,
    /// Bytes to do in it; of an archive an estimate.
    pub bytes_total: u64,
}

/// A backup that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BackupReport {
    /// The archive in it.
    pub archive: u64,
    /// Rows of the archive.
    pub rows: u64,
    /// Records of the log behind it.
    pub records: u64,
    /// The moment whose state it is, in microseconds since 1970.
    pub time_us: i64,
    /// Files, without the manifest.
    pub files: u64,
    /// Those that are second names.
    pub files_linked: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// From the beginning to the end.
    pub duration_ns: u64,
}

/// One file of a backup to be.
struct Part {
    /// Where it lies.
    path: PathBuf,
    /// What it is called in the backup.
    name: String,
    /// Bytes of it that count.
    bytes: u64,
    /// Its checksum, if it is known.
    crc32c: Option<u32>,
}

impl Database {
    /// Copies the database to `target` while transactions go on: a directory that is not there or empty, or a
    /// file that is not there, whose name ends in `.tar`. A fresh archive is written first, unless nothing has been
    /// committed since the last; the copy has it and all that was committed until its last moment. `progress` is
    /// told from time to time.
    ///
    /// # Errors
    /// 0A000 for a database that lives in memory; 55000 if there is something at `target`; 53100 without room,
    /// 58030 if the disk fails, XX001 if a file is damaged, 57014 when it was cancelled. Then there is no backup.
    pub fn backup(
        &self,
        target: impl AsRef<Path>,
        options: &BackupOptions,
        mut progress: impl FnMut(BackupProgress) + Send,
    ) -> Result<BackupReport, SqlError> {
        let (Some(home), Some(log)) = (self.inner.home.get(), self.log()) else {
            return Err(SqlError::unsupported("a backup of a database that lives in memory")
                .with_hint("Open it with a directory."));
        };
        let env = &self.inner.env;
        let start_ns = env.clock.now();
        let mut target = BackupWriter::create(env, target.as_ref())?;
        if !self.is_archived(&home.archive(), log) {
            self.fresh_archive(options, &mut progress)?;
        }
        // I-3: whoever writes or removes archives needs this.
        let _held = self.inner.archived.lock();
        let archive = newest(env, &home.archive())?;
        let parts = archive_parts(env, &home.archive(), &archive)?;
        let bytes_total = parts.iter().map(|part| part.bytes).sum();
        target.check_room(bytes_total, options.links)?;
        let mut transfer = Transfer::new(env, options, BackupStep::Copy, bytes_total, &mut progress);
        let mut files = Vec::new();
        for part in &parts {
            files.push(target.put(part, options.links, &mut transfer)?);
        }
        let sealed = seal(log)?;
        let time_us = env.clock.unix_us();
        let (segments, records) = segments(&env.disk, &home.log(), &archive, sealed)?;
        transfer.add_bytes(segments.iter().map(|part| part.bytes).sum());
        for part in &segments {
            files.push(target.put(part, false, &mut transfer)?);
        }
        let manifest = BackupManifest {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            time_us,
            archive: archive.number,
            partitions: self.partitions(),
            tables: archive.tables.len() as u64,
            rows: archive.rows(),
            records,
            log: archive.log.log,
            last_frame: sealed.max(archive.log.sequence),
            memory_bytes: self.memory_to_restore(),
            files,
        };
        let (bytes, files) = (manifest.bytes(), manifest.files.len() as u64);
        let files_linked = target.finish(&manifest)?;
        Ok(BackupReport {
            archive: archive.number,
            rows: manifest.rows,
            records,
            time_us,
            files,
            files_linked,
            bytes,
            duration_ns: env.clock.now().saturating_sub(start_ns),
        })
    }

    /// Whether nothing has been committed since the newest archive.
    fn is_archived(&self, directory: &Path, log: &Log) -> bool {
        let newest = newest(&self.inner.env, directory);
        newest.is_ok_and(|manifest| manifest.log.sequence == log.seal().sequence)
    }

    /// Writes an archive, after the one that may be being written.
    fn fresh_archive(
        &self,
        options: &BackupOptions,
        progress: &mut (dyn FnMut(BackupProgress) + Send),
    ) -> Result<(), SqlError> {
        let settings =
            CheckpointOptions { bytes_per_second: options.bytes_per_second, ..CheckpointOptions::default() };
        loop {
            let written = self.checkpoint_with(&settings, |at| {
                progress(BackupProgress {
                    step: BackupStep::Archive,
                    bytes_done: at.bytes_written + at.bytes_reused,
                    bytes_total: at.bytes_total_estimate(),
                });
            });
            match written {
                Err(error) if error.state() == SqlState::OBJECT_IN_USE => drop(self.inner.archived.lock()),
                written => return written.map(drop),
            }
        }
    }

    /// Memory that the tables need when they are loaded again, about, in bytes: what they need now.
    fn memory_to_restore(&self) -> u64 {
        let memory = self.memory();
        memory.rows_bytes + memory.strings_bytes + memory.indexes_bytes
    }
}

/// The newest archive.
fn newest(env: &Env, directory: &Path) -> Result<Manifest, SqlError> {
    let listing = list(env, directory).map_err(archive_error)?;
    let newest = listing.complete.into_iter().next();
    newest.ok_or_else(|| SqlError::new(SqlState::DATA_CORRUPTED, "the archive that was just written is gone"))
}

/// The files of an archive, its manifest last.
fn archive_parts(env: &Env, directory: &Path, archive: &Manifest) -> Result<Vec<Part>, SqlError> {
    let mut parts: Vec<Part> = archive
        .files()
        .map(|file| Part {
            path: directory.join(&file.path),
            name: format!("archive/{}", file.path),
            bytes: file.bytes,
            crc32c: Some(file.crc32c),
        })
        .collect();
    let name = format!("{:010}/manifest.json", archive.number);
    let path = directory.join(&name);
    let length = env.disk.open(&path).and_then(|file| file.len());
    let bytes = length.map_err(|error| transfer::failed("read", &path, &error))?;
    parts.push(Part { path, name: format!("archive/{name}"), bytes, crc32c: None });
    Ok(parts)
}

/// Closes the log's frame now and waits until all up to it is durable; its sequence.
fn seal(log: &Log) -> Result<u64, SqlError> {
    let sealed = log.seal().sequence;
    log.wait(Ticket(sealed)).map_err(|error| log_error(&error))?;
    Ok(sealed)
}

/// The segments that have the frames behind an archive, up to frame `last`, and how many records these have; if
/// there are none, the one in which they will be, up to there: a log must not end before its archive. Frames that
/// are younger may be half written, and are not looked at.
fn segments(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    archive: &Manifest,
    last: u64,
) -> Result<(Vec<Part>, u64), SqlError> {
    let from = archive.log.sequence + 1;
    let (mut ends, mut records) = (BTreeMap::new(), 0);
    let log = Some(archive.log.log);
    let mut reader = LogReader::open(Arc::clone(disk), directory, from, log).map_err(damaged)?;
    for sequence in from..=last {
        let frame = reader.next_frame().map_err(damaged)?.ok_or_else(|| {
            let text = format!("the log ends before frame {sequence}, which had been written");
            SqlError::new(SqlState::DATA_CORRUPTED, text)
        })?;
        ends.insert(frame.segment, frame.offset + frame.bytes);
        records += u64::from(frame.record_count);
    }
    if ends.is_empty() {
        let end = match reader.next_frame().map_err(damaged)? {
            Some(younger) => Some((younger.segment, younger.offset)),
            None => reader.end().and_then(|end| end.tail.as_ref()).and_then(|(path, bytes)| {
                let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
                number.map(|segment: u64| (segment, *bytes))
            }),
        };
        ends.extend(end);
    }
    let part = |(segment, bytes)| {
        let file = format!("{segment:020}.log");
        Part { path: directory.join(&file), name: format!("log/{file}"), bytes, crc32c: None }
    };
    Ok((ends.into_iter().map(part).collect(), records))
}
