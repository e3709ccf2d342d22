//! How a log works and where it goes on.
//!
//! Responsible for: what a caller chooses before [`Log::start`](crate::Log::start). Not responsible for: doing it.

use std::path::PathBuf;
use std::time::Duration;

/// Where a log goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogDestination {
    /// Segments in this directory.
    Directory(PathBuf),
    /// Nowhere: everything is done but writing. To measure by.
    Null,
}

/// How a log works. [`Config::new`] has what is good for most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where it goes.
    pub target: LogDestination,
    /// Lanes: partitions, 1 to 65,535.
    pub lanes: usize,
    /// Bytes of a segment; a frame that is longer gets one of its own size.
    pub segment_bytes: u64,
    /// Whether segments made ahead are filled with zeros as long as little is written, which makes syncs
    /// cheaper; without, room is only allocated.
    pub fill_segments: bool,
    /// A batch of so many bytes is closed as soon as the one before is durable.
    pub batch_bytes: u64,
    /// Others are closed so long after the one before.
    pub batch_delay: Duration,
    /// Copies of the control file that is in the directory, elsewhere, in directories that are there.
    pub control_copies: Vec<PathBuf>,
    /// How long [`Log::run`] waits for room before it tries again.
    pub full_retry: Duration,
}

impl Config {
    /// 16 MiB segments, filled with zeros while little is written; batches of 64 KiB or 50 microseconds; a try
    /// every 100 ms when the disk is full.
    pub fn new(target: LogDestination, lanes: usize) -> Self {
        Self {
            target,
            lanes,
            segment_bytes: 16 << 20,
            fill_segments: true,
            batch_bytes: 64 << 10,
            batch_delay: Duration::from_micros(50),
            control_copies: Vec::new(),
            full_retry: Duration::from_millis(100),
        }
    }
}

/// Where a log goes on: 1, 1, 1 and a new id for a new one, what [`End`](crate::End) says for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStart {
    /// Random, the same as long as the database lives: frames of another are never taken for its own.
    pub log_id: u64,
    /// Sequence of the next frame, at least 1.
    pub next_sequence: u64,
    /// Ordinal of the next record, at least 1.
    pub next_ordinal: u64,
    /// Number of the next segment. A log always begins a new one.
    pub next_segment: u64,
}

impl LogStart {
    /// The beginning of a new log.
    pub fn new(log_id: u64) -> Self {
        Self { log_id, next_sequence: 1, next_ordinal: 1, next_segment: 1 }
    }
}
