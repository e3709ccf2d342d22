//! What can go wrong with a log: while it is written, while it is read.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::FORMAT;

/// Why the log does not take a record, or will not make one durable.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A write or a sync failed: what is in the file is not known, so that nothing is acknowledged any
    /// more. Restarting reads what there is.
    #[error(
        "the log failed and takes no more changes: {0}; queries go on; when the disk has been looked \
         after, restart the database"
    )]
    Failed(Arc<Failure>),
    /// There is no room for the log, or none but what is kept for deletions. What was accepted waits for room
    /// and is acknowledged once there is.
    #[error(
        "the disk of the log is full ({0}); changes are refused until there is room: remove files or \
         add space, and the log goes on by itself"
    )]
    Full(Arc<Failure>),
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
    /// One record is longer than the format can say.
    #[error("a log record of {bytes} bytes is longer than 4 GiB")]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
}

/// A call to the operating system that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct Failure {
    /// What was to be done, as an infinitive.
    pub operation: &'static str,
    /// To which file or directory.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

impl Failure {
    /// Whether there was no room, which heals when there is.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Adds to an error of the operating system what was tried.
pub(crate) trait Attempt<T> {
    fn attempting(self, operation: &'static str, path: impl Into<PathBuf>) -> Result<T, Failure>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempting(self, operation: &'static str, path: impl Into<PathBuf>) -> Result<T, Failure> {
        self.map_err(|source| Failure { operation, path: path.into(), source })
    }
}

/// Why a log could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] Failure),
    /// The segment to begin with is there and holds a log: what was read is not all there is.
    #[error("{} holds a log already; refusing to write over it", path.display())]
    InTheWay {
        /// The segment.
        path: PathBuf,
    },
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] Failure),
    /// Written by a program with another format.
    #[error("{} was written by log format {found}, this program reads {FORMAT}", path.display())]
    Format {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Bytes that had been made durable are gone or have changed.
    #[error(transparent)]
    Corrupt(Box<Corruption>),
}

/// Where a log is corrupt, and why that is no torn tail.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the log is corrupt: {} at byte {offset}, frame {sequence}{}: {fault}; {evidence}",
    path.display(), ordinal.map(|ordinal| format!(", record {ordinal}")).unwrap_or_default()
)]
pub struct Corruption {
    /// The segment.
    pub path: PathBuf,
    /// Its number.
    pub segment: u64,
    /// The byte in it.
    pub offset: u64,
    /// The frame that should be there.
    pub sequence: u64,
    /// The record that should be there, if the frame's header is sound.
    pub ordinal: Option<u64>,
    /// What is wrong.
    pub fault: Fault,
    /// Why it is not a torn tail.
    pub evidence: Evidence,
}

/// What is wrong with bytes of a log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A segment's header does not check.
    #[error("the header of the segment does not check")]
    SegmentHeader,
    /// Something else under the name of a segment.
    #[error("the file is not a segment of a redo log")]
    NoSegment,
    /// A segment says another number than its name, or other frames than are due.
    #[error("the segment's header says segment {number} from frame {first_sequence}, record {first_ordinal}")]
    OtherSegment {
        /// The number it says.
        number: u64,
        /// The first frame it says.
        first_sequence: u64,
        /// The first record it says.
        first_ordinal: u64,
    },
    /// Of another database.
    #[error("it belongs to log {found:016x}, not to {expected:016x}")]
    OtherLog {
        /// The log that is read.
        expected: u64,
        /// The log it says.
        found: u64,
    },
    /// No segment of that number.
    #[error("segment {number} is missing")]
    MissingSegment {
        /// The number.
        number: u64,
    },
    /// The oldest segment begins later than what is asked for.
    #[error("the frames before {oldest} are missing")]
    MissingFrames {
        /// The oldest frame there is.
        oldest: u64,
    },
    /// A frame's header does not check.
    #[error("the frame's header does not check")]
    FrameHeader,
    /// A sound header, of another frame.
    #[error("here is frame {sequence} from record {first_ordinal}")]
    OtherFrame {
        /// The frame it says.
        sequence: u64,
        /// The first record it says.
        first_ordinal: u64,
    },
    /// The file ends inside of the frame.
    #[error("the frame needs {needs} bytes and the file has {has}")]
    Short {
        /// Bytes that the header says.
        needs: u64,
        /// Bytes to the end of the file.
        has: u64,
    },
    /// A record's fields do not fit into the frame.
    #[error("the record is malformed")]
    Record,
    /// A record's CRC is another.
    #[error("the record's CRC-32C is {found:08x}, not {expected:08x}")]
    Crc {
        /// Of the bytes that are there.
        expected: u32,
        /// That was stored.
        found: u32,
    },
    /// Something behind the frame's last record.
    #[error("the frame does not end with its last record")]
    Padding,
}

/// Why bytes that do not check are no torn tail.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Evidence {
    /// A later frame, written when the bytes had been durable.
    #[error("not a torn tail: frame {sequence} follows in segment {segment} at byte {offset}")]
    LaterFrame {
        /// Its sequence.
        sequence: u64,
        /// Its segment.
        segment: u64,
        /// Its place there.
        offset: u64,
    },
    /// A later segment, begun when the bytes had been durable.
    #[error("not a torn tail: segment {segment} follows")]
    LaterSegment {
        /// Its number.
        segment: u64,
    },
    /// Nothing that is written last could leave this.
    #[error("no crash leaves this")]
    Misplaced,
}
