//! Control files: how far a log was durable at least, and whether it was closed cleanly.
//!
//! Responsible for: their form, reading them, holding what a log has against what they say. Not responsible
//! for: when they are written (`mark`).
//!
//! ```text
//!            first frame                  every second, at each new segment
//! (none) ------------------> open, durable to N ------> open, durable to M ------> ...
//!    closed cleanly at N --^            |                        |
//!         ^                             '------- Log::close -----'
//!         '------------------------------------------'
//! ```
//!
//! A log has at least one control file, `control` in its directory; a database keeps a copy of it elsewhere. All
//! copies say the same, but for a crash between writing one and the next; the one with the highest generation
//! counts. A control file is one sector, which a disk writes wholly or not at all:
//!
//! ```text
//! 0 magic 8 | 8 CRC 4 | 12 format 4 | 16 log id 8 | 24 generation 8 | 32 state 8 (1 open, 2 closed)
//! 40 sequence 8 | 48 ordinal 8 | 56 segment 8 | 64 time (us) 8 | 72 zeros
//! ```
//!
//! I-1 `open` is on stable storage in all copies before the first frame behind it is. I-2 What a control file says
//! is durable was durable before it was written. I-3 `closed` is written after the last frame, and no frame is
//! after it. So a log that ends before its control file says has lost something, after a clean close whatever it
//! has lost; what was acknowledged in the second before a crash may be in neither. (`tests/log/control.rs`)

use std::io;
use std::path::{Path, PathBuf};

use albireo_env::Disk;
use crc32c::{crc32c, crc32c_append};

use crate::error::{Attempt, Failure};
use crate::format::{COUNT_LIMIT, SECTOR_BYTES, is_zero, u32_at, u64_at};
use crate::reader::End;

/// The name of the control file in the directory of a log.
pub const CONTROL_NAME: &str = "control";

const MAGIC: [u8; 8] = *b"ALBIRCTL";
const FORMAT: u32 = 1;
const USED_BYTES: usize = 72;

/// What a control file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Which log.
    pub log_id: u64,
    /// How many were written before it, as long as the log lives.
    pub generation: u64,
    /// Whether the log was closed cleanly, and has nothing behind the numbers below.
    pub is_closed: bool,
    /// The newest durable frame; 0 if there was none.
    pub sequence: u64,
    /// The last record in it; 0 if there was none.
    pub ordinal: u64,
    /// The newest segment whose header was durable; 0 if there was none.
    pub segment: u64,
    /// When it was written, in microseconds since 1970.
    pub time_us: i64,
}

/// Why a control file says nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// It is not there.
    #[error("the file is missing")]
    Missing,
    /// The operating system refused.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// It is shorter or longer than one.
    #[error("the file has {found} bytes instead of {SECTOR_BYTES}")]
    Length {
        /// Its bytes.
        found: u64,
    },
    /// Something else.
    #[error("it is not a control file")]
    Foreign,
    /// Its bytes have changed.
    #[error("the checksum is {found:08x} instead of {expected:08x}")]
    Checksum {
        /// Of the bytes that are there.
        expected: u32,
        /// That was stored.
        found: u32,
    },
    /// Written by a program with another format.
    #[error("it has format {0}, this program reads {FORMAT}")]
    Format(u32),
}

impl ControlFault {
    /// Whether a crash while the file was written for the first time leaves it so.
    fn is_of_unfinished(&self) -> bool {
        matches!(self, Self::Missing | Self::Length { .. } | Self::Foreign)
    }
}

impl Control {
    /// Whether it is the first of a new log, whose copies need not all be there yet.
    fn is_first(&self) -> bool {
        self.generation == 1 && !self.is_closed
    }

    /// Whether `next` was written directly after it.
    fn is_before(&self, next: &Self) -> bool {
        self.log_id == next.log_id && self.generation + 1 == next.generation
    }

    fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut bytes = [0; SECTOR_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&FORMAT.to_le_bytes());
        let state = if self.is_closed { 2 } else { 1 };
        let fields = [self.log_id, self.generation, state, self.sequence, self.ordinal, self.segment];
        for (field, place) in fields.into_iter().zip(bytes[16..].chunks_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes[64..72].copy_from_slice(&self.time_us.to_le_bytes());
        let crc = crc_of(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        let read = Self::decode(&bytes);
        assert!(!matches!(read, Ok(read) if read != *self), "a control file reads back as written");
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, ControlFault> {
        if bytes.len() != SECTOR_BYTES {
            return Err(ControlFault::Length { found: bytes.len() as u64 });
        }
        if bytes[..8] != MAGIC {
            return Err(ControlFault::Foreign);
        }
        let (expected, found) = (crc_of(bytes), u32_at(bytes, 8));
        if expected != found {
            return Err(ControlFault::Checksum { expected, found });
        }
        if u32_at(bytes, 12) != FORMAT {
            return Err(ControlFault::Format(u32_at(bytes, 12)));
        }
        let control = Self {
            log_id: u64_at(bytes, 16),
            generation: u64_at(bytes, 24),
            is_closed: u64_at(bytes, 32) == 2,
            sequence: u64_at(bytes, 40),
            ordinal: u64_at(bytes, 48),
            segment: u64_at(bytes, 56),
            time_us: u64_at(bytes, 64) as i64,
        };
        let counts = [control.generation, control.sequence, control.ordinal, control.segment];
        let is_sound = matches!(u64_at(bytes, 32), 1 | 2)
            && counts.iter().all(|&count| count < COUNT_LIMIT)
            && is_zero(&bytes[USED_BYTES..]);
        if is_sound { Ok(control) } else { Err(ControlFault::Foreign) }
    }

    /// Writes it to all of `paths`, one after another, each on stable storage before the next.
    ///
    /// # Errors
    /// The operating system's for the first that cannot be written; the others are written all the same.
    pub fn write(&self, disk: &dyn Disk, paths: &[PathBuf]) -> Result<(), Failure> {
        let bytes = self.encode();
        let mut written = Ok(());
        for path in paths {
            written = written.and(put(disk, path, &bytes));
        }
        written
    }
}

fn crc_of(bytes: &[u8]) -> u32 {
    crc32c_append(crc32c(&bytes[..8]), &bytes[12..])
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let length = disk.open(path).and_then(|file| file.len()).unwrap_or(0);
    // In place, so that a full disk takes it.
    let file = disk.open_placed(path).attempting("open", path)?;
    if length < bytes.len() as u64
        && let Some(parent) = path.parent()
    {
        // The name of a file that is whole was made durable before it was written.
        disk.sync_directory(parent).attempting("sync the directory", parent)?;
    }
    if length > bytes.len() as u64 {
        file.set_len(bytes.len() as u64).attempting("cut", path)?;
    }
    file.write_at(bytes, 0).attempting("write to", path)?;
    file.sync().attempting("sync", path)
}

/// All control files of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controls {
    /// Each with what it says.
    pub copies: Vec<(PathBuf, Result<Control, ControlFault>)>,
}

/// Where a log ends, as what was read of it and of archives says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// Which log, if anything says it.
    pub log_id: Option<u64>,
    /// The last frame; 0 if there is none.
    pub sequence: u64,
    /// The last record; 0 if there is none.
    pub ordinal: u64,
    /// The last segment with a header; 0 if there is none.
    pub segment: u64,
}

impl Reached {
    /// By the end of a log and an archive that has all records before `next_record`.
    pub fn new(end: &End, log_id: Option<u64>, next_record: u64) -> Self {
        Self {
            log_id: end.log_id.or(log_id),
            sequence: end.next_sequence - 1,
            ordinal: end.next_ordinal.max(next_record).saturating_sub(1),
            segment: if end.tail.is_some() { end.next_segment - 1 } else { 0 },
        }
    }
}

/// What control files say of a log that has been read to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// None can be used.
    Unknown,
    /// One is of another log.
    OtherLog {
        /// The control file.
        path: PathBuf,
        /// Its log.
        found: u64,
        /// The log that was read.
        expected: u64,
    },
    /// Something that was durable is not there.
    Lost(Control),
    /// The log was closed cleanly, and all of it is there.
    Complete(Control),
    /// All is there that was durable when this was written; the log was not closed after it.
    Unclosed(Control),
}

impl Controls {
    /// Reads them.
    pub fn read(disk: &dyn Disk, paths: &[PathBuf]) -> Self {
        let copies = paths.iter().map(|path| (path.clone(), read(disk, path))).collect();
        Self { copies }
    }

    /// The one that counts.
    pub fn newest(&self) -> Option<&Control> {
        self.sound().map(|(_, control)| control).max_by_key(|control| control.generation)
    }

    /// What is wrong with the others. After a clean close all say the same; what a crash leaves while one after
    /// another is written is not wrong.
    pub fn faults(&self) -> Vec<(PathBuf, String)> {
        let newest = self.newest();
        let wrong = |(path, copy): &(PathBuf, Result<Control, ControlFault>)| match (copy, newest) {
            (Err(fault), Some(newest)) if newest.is_first() && fault.is_of_unfinished() => None,
            (Err(fault), _) => Some((path.clone(), fault.to_string())),
            (Ok(control), Some(newest))
                if newest.is_closed && control != newest && !control.is_before(newest) =>
            {
                let reason = "it is older than its copy, which says that the log was closed after it";
                Some((path.clone(), reason.to_owned()))
            }
            _ => None,
        };
        self.copies.iter().filter_map(wrong).collect()
    }

    /// Holds a log that has been read against them.
    pub fn judge(&self, reached: &Reached) -> Verdict {
        for (path, control) in self.sound() {
            if let Some(expected) = reached.log_id.filter(|id| *id != control.log_id) {
                return Verdict::OtherLog { path: path.clone(), found: control.log_id, expected };
            }
        }
        let lost = |control: &Control| {
            control.sequence > reached.sequence
                || control.ordinal > reached.ordinal
                || control.segment > reached.segment
        };
        // If nothing says which log it is, any control file may be of one that has lost something.
        if let Some((_, control)) = self.sound().find(|(_, control)| lost(control)) {
            let newest = self.newest().filter(|newest| lost(newest));
            return Verdict::Lost(*newest.unwrap_or(control));
        }
        let Some(newest) = self.newest() else { return Verdict::Unknown };
        let is_end = (newest.sequence, newest.ordinal) == (reached.sequence, reached.ordinal);
        match newest.is_closed && is_end {
            true => Verdict::Complete(*newest),
            false => Verdict::Unclosed(*newest),
        }
    }

    fn sound(&self) -> impl Iterator<Item = (&PathBuf, &Control)> {
        self.copies.iter().filter_map(|(path, copy)| Some((path, copy.as_ref().ok()?)))
    }
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Control, ControlFault> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ControlFault::Missing,
        _ => ControlFault::Unreadable(error.to_string()),
    };
    let file = disk.open(path).map_err(unreadable)?;
    let length = file.len().map_err(unreadable)?;
    if length != SECTOR_BYTES as u64 {
        return Err(ControlFault::Length { found: length });
    }
    let mut bytes = [0; SECTOR_BYTES];
    let read = crate::segment::read_full(&*file, &mut bytes).map_err(unreadable)?;
    Control::decode(&bytes[..read])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: Control = Control {
        log_id: 7,
        generation: 3,
        is_closed: true,
        sequence: 40,
        ordinal: 90,
        segment: 2,
        time_us: -5,
    };

    #[test]
    fn control_file_comes_back_and_every_bit_that_flips_is_found() {
        let bytes = CONTROL.encode();
        assert_eq!(Control::decode(&bytes), Ok(CONTROL));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Control::decode(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            let found = length as u64;
            assert_eq!(Control::decode(&bytes[..length]), Err(ControlFault::Length { found }));
        }
    }

    #[test]
    fn control_file_of_another_format_is_told_from_a_broken_one() {
        let mut bytes = CONTROL.encode();
        bytes[12] = 9;
        assert!(matches!(Control::decode(&bytes), Err(ControlFault::Checksum { .. })));
        let crc = crc_of(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Control::decode(&bytes), Err(ControlFault::Format(9)));
        assert_eq!(Control::decode(&[b'x'; SECTOR_BYTES]), Err(ControlFault::Foreign));
    }
}
