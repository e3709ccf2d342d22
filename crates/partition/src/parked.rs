//! Where an open transaction leaves what it has written.

use std::fmt;
use std::sync::Arc;

use albireo_base::PartitionId;
use parking_lot::Mutex;

/// What one partition, or the shared tables, got by a transaction of several statements so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartWritten {
    /// The partition; `None` for the shared tables.
    pub partition: Option<PartitionId>,
    /// A write record.
    pub record: Arc<[u8]>,
}

/// What a transaction of several statements has written, by partition. That of a partition where nobody has been since
/// is still in its rows and its undo log; whoever comes next puts it here.
#[derive(Default)]
pub struct Parked {
    parts: Mutex<Vec<PartWritten>>,
}

impl Parked {
    /// One of a transaction that has written nothing.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What it has written where its writes are not in place.
    pub fn parts(&self) -> Vec<PartWritten> {
        self.parts.lock().clone()
    }

    /// Whether [`Parked::parts`] are any for the shared tables.
    pub fn has_shared(&self) -> bool {
        self.parts.lock().iter().any(|part| part.partition.is_none())
    }

    /// It has written these, and nothing else.
    pub fn set(&self, parts: Vec<PartWritten>) {
        *self.parts.lock() = parts;
    }

    /// It has written these in a partition.
    pub(crate) fn put(&self, partition: PartitionId, mut written: Vec<PartWritten>) {
        let mut parts = self.parts.lock();
        parts.retain(|part| part.partition != Some(partition));
        parts.append(&mut written);
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parked").field(&self.parts.lock().len()).finish()
    }
}
