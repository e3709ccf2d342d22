//! The redo log: what committed transactions did, in an order in which it can be done again.
//!
//! Responsible for: appending records without waiting for a disk, group commit, the files, reading them
//! back, telling a torn tail from corruption. Not responsible for: what payloads mean, when to log what,
//! doing it again (`engine`), keeping two processes from one directory (`engine` locks it).
//!
//! ```text
//! executors --append--> lanes (one per partition) --close--> batch --assemble--> frame --write, sync--> segment
//!     |                 all cut at one moment                                               |
//!     '--Ticket (the frame's sequence) -----------------------------------------> durable --'
//! ```
//!
//! A *record* is a transaction's; it is in one *lane*, or *crossing* and ordered against all lanes. A
//! *batch* is what was appended between two moments, on disk a *frame*, with CRCs and a sequence of its
//! own. Frames lie in *segments*. The order of records in the files is a serial order of the transactions:
//! those of one partition in their order, crossing ones against all (Kemper and Neumann 2010, §4.4).
//!
//! Beside the segments a *control file* says how far the log was durable at least, and whether it was closed
//! cleanly, so that an end that is missing can be told from one that a crash interrupted (`control`).
//!
//! I-1 A frame counts wholly or not at all. I-2 What is acknowledged is in a frame that was synced, behind
//! frames that were. I-3 No byte in a file makes reading panic or give a record that was not written.
//! (`tests/log`)
//!
//! Room on a full disk. There is always a segment behind the one in use, made ahead; when the disk has no room
//! for it, what is left of the one in use is kept for records that free something, deletions above all
//! ([`Log::append_freeing`]), and all others are refused. Once that is full too, everything is, until there is
//! room ([`LogError::Full`]). The log looks for room by itself and goes on.
//!
//! ```text
//!        no room for the next segment          the segment is full
//! open ------------------------------> short ----------------------> full
//!   ^---------- there is room ------------'--- there is room -----------'
//! ```
//!
//! Units: `_us` microseconds since 1970, `_ns` nanoseconds, `_bytes` bytes. Sequences (of frames),
//! ordinals (of records) and numbers (of segments) count from 1 and never again; 64 bits last 58,000
//! years at ten million a second.
#![forbid(unsafe_code)]

mod config;
mod control;
mod error;
mod format;
mod lanes;
mod log;
mod mark;
mod placement;
mod reader;
mod repair;
mod segment;
mod statistics;
mod writer;

pub use config::{Config, LogDestination, LogStart};
pub use control::{CONTROL_NAME, Control, ControlFault, Controls, Reached, Verdict};
pub use error::{Corruption, Evidence, Failure, Fault, LogError, ReadError, StartError};
pub use format::{FORMAT, FRAME_HEADER_BYTES, Kind, SECTOR_BYTES, SEGMENT_HEADER_BYTES};
pub use lanes::Sealed;
pub use log::{Header, Log, Ticket};
pub use reader::{End, Frame, LogReader, Record, RecordRun, Torn};
pub use repair::repair;
pub use segment::{SegmentInfo, oldest_segment, segment_number};
pub use statistics::Statistics;
pub use writer::Step;
