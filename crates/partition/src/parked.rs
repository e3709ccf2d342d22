//! Where an open transaction leaves what it has written.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::PartitionId;
use parking_lot::Mutex;

/// What one partition, or the shared tables, got by a transaction of several statements so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartWritten {
    /// The partition; `None` for the shared tables.
    pub partition: Option<PartitionId>,
    /// A write record.
    pub record: Arc<PartRecord>,
}

impl PartWritten {
    pub(crate) fn new(partition: Option<PartitionId>, record: Vec<u8>) -> Self {
        Self { partition, record: Arc::new(PartRecord { bytes: record.into(), account: None }) }
    }
}

/// A write record that waits for its transaction to go on, counted as long as it is there.
#[derive(Default)]
pub struct PartRecord {
    bytes: Box<[u8]>,
    account: Option<Arc<AtomicU64>>,
}

impl PartRecord {
    fn count(&mut self, account: &Arc<AtomicU64>) {
        if self.account.is_none() {
            account.fetch_add(self.bytes.len() as u64, Ordering::Relaxed);
            self.account = Some(Arc::clone(account));
        }
    }
}

impl Deref for PartRecord {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for PartRecord {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for PartRecord {}

impl fmt::Debug for PartRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartRecord").field(&self.bytes.len()).finish()
    }
}

impl Drop for PartRecord {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
        }
    }
}

/// What a transaction of several statements has written, by partition. That of a partition where nobody has been since
/// is still in its rows and its undo log; whoever comes next puts it here.
#[derive(Default)]
pub struct Parked {
    parts: Mutex<Vec<PartWritten>>,
    /// Bytes of the records of all transactions.
    account: Arc<AtomicU64>,
}

impl Parked {
    /// One of a transaction that has written nothing; what it writes is counted in `account`.
    pub fn new(account: &Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self { parts: Mutex::default(), account: Arc::clone(account) })
    }

    /// What it has written where its writes are not in place.
    pub fn parts(&self) -> Vec<PartWritten> {
        self.parts.lock().clone()
    }

    /// Whether [`Parked::parts`] are any for the shared tables.
    pub fn has_shared(&self) -> bool {
        self.parts.lock().iter().any(|part| part.partition.is_none())
    }

    /// Bytes of its records.
    pub fn bytes(&self) -> u64 {
        self.parts.lock().iter().map(|part| part.record.len() as u64).sum()
    }

    /// It has written these, and nothing else.
    pub fn set(&self, parts: Vec<PartWritten>) {
        let before = std::mem::replace(&mut *self.parts.lock(), self.counted(parts));
        drop(before);
    }

    /// It has written these in a partition.
    pub(crate) fn put(&self, partition: PartitionId, written: Vec<PartWritten>) {
        self.put_all(&[partition], written);
    }

    /// It has written these in some partitions.
    pub(crate) fn put_all(&self, partitions: &[PartitionId], written: Vec<PartWritten>) {
        let mut written = self.counted(written);
        let mut parts = self.parts.lock();
        parts.retain(|part| part.partition.is_none_or(|partition| !partitions.contains(&partition)));
        parts.append(&mut written);
    }

    fn counted(&self, mut parts: Vec<PartWritten>) -> Vec<PartWritten> {
        // One that a savepoint has too was counted then.
        let new = parts.iter_mut().filter_map(|part| Arc::get_mut(&mut part.record));
        new.for_each(|record| record.count(&self.account));
        parts
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parked").field(&self.parts.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_once_as_long_as_anybody_has_them() {
        let account = Arc::new(AtomicU64::new(0));
        let (parked, counted) = (Parked::new(&account), || account.load(Ordering::Relaxed));
        let part = |partition, bytes| PartWritten::new(Some(PartitionId(partition)), vec![7; bytes]);
        parked.put(PartitionId(0), vec![part(0, 100)]);
        parked.put(PartitionId(1), vec![part(1, 10)]);
        let savepoint = parked.parts();
        assert_eq!((counted(), parked.bytes()), (110, 110));
        parked.put(PartitionId(0), vec![part(0, 500)]);
        assert_eq!((counted(), parked.bytes()), (610, 510));
        parked.set(savepoint);
        assert_eq!((counted(), parked.bytes()), (110, 110));
        drop(parked);
        assert_eq!(counted(), 0);
    }
}
