//! What a log has done so far.

use hdrhistogram::Histogram;

/// The longest flush that is told apart from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counters since the log was started.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Records made durable.
    pub records: u64,
    /// Their bytes in memory: payloads and what describes them, without CRCs.
    pub record_bytes: u64,
    /// Frames made durable.
    pub frames: u64,
    /// Bytes of frames written, with headers, CRCs and padding.
    pub written_bytes: u64,
    /// Syncs of segments for frames.
    pub syncs: u64,
    /// Nanoseconds that writing and syncing one frame took.
    pub flush_ns: Histogram<u64>,
}

impl Statistics {
    pub(crate) fn new() -> Self {
        let bounds = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        let flush_ns = bounds.expect("an hour with three digits is allowed");
        Self { records: 0, record_bytes: 0, frames: 0, written_bytes: 0, syncs: 0, flush_ns }
    }
}
