//! The list of a table's blocks, shared copy-on-write between the live table and its snapshots.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// One block of a chunk and the epoch of its last change.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) block: NonNull<u8>,
    pub(crate) tag: u64,
}

/// One block of a string heap.
#[derive(Clone, Copy)]
pub(crate) struct HeapBlock {
    pub(crate) block: NonNull<u8>,
    pub(crate) bytes: u32,
    /// The epoch in which it was taken.
    pub(crate) birth: u64,
}

/// The blocks of one chunk's heap for one column. All but the last are full; a new block makes a
/// new list.
pub(crate) struct HeapList {
    pub(crate) blocks: Box<[HeapBlock]>,
    /// Bytes written in the last block; grows while snapshots read below it.
    pub(crate) used_in_last: AtomicU32,
}

/// All blocks of one table in one partition.
///
/// Invariant: a directory shared with a snapshot (its `Arc` has more than one owner) is never
/// changed; the live table clones it first. Cloning copies 16 bytes a block and takes no
/// reference counts, except one per chunk and column with a heap.
#[derive(Clone, Default)]
pub(crate) struct Directory {
    /// `chunk * layout.entries() + entry`.
    pub(crate) entries: Vec<Entry>,
    /// `chunk * layout.heap_columns.len() + heap`.
    pub(crate) heaps: Vec<Option<Arc<HeapList>>>,
}

// SAFETY: as for `Directory`; the bytes below `used_in_last` are never written again.
unsafe impl Send for HeapList {}
// SAFETY: as above; `append` is called by the executor alone.
unsafe impl Sync for HeapList {}

// SAFETY: a directory is a list of addresses. Who may read or write behind them is decided by the
// row store (live data, one thread) and the registry (blocks of snapshots are not written in the
// slots that the snapshot sees).
unsafe impl Send for Directory {}
// SAFETY: as above; `&Directory` gives out addresses only inside this crate.
unsafe impl Sync for Directory {}
