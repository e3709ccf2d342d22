//! The list of a table's blocks, shared copy-on-write between the live table and its snapshots.

use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::frozen::FrozenChunk;
use crate::layout::VALIDITY_ENTRY;

/// One block of a chunk and the epoch of its last change.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) block: NonNull<u8>,
    pub(crate) tag: u64,
}

impl Entry {
    /// Of what a frozen chunk has instead of a block. Nothing lies at its address, which no processor takes for one: who
    /// reads there does not read something else.
    pub(crate) const FROZEN: Self = Self {
        block: NonNull::without_provenance(NonZeroUsize::new(0xdead_f0e0_0000_0040).expect("it is not 0")),
        tag: 0,
    };

    /// Whether there is no block.
    #[inline(always)]
    pub(crate) fn is_frozen(&self) -> bool {
        self.block == Self::FROZEN.block
    }
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

/// The chunks of a table in one partition that are encoded, by their numbers, and those that cool.
#[derive(Clone, Default)]
pub(crate) struct FrozenList {
    encoded: Vec<Option<Arc<FrozenChunk>>>,
    /// How many of these hold rows.
    with_rows: u32,
    /// How many of those were evicted.
    evicted: u32,
    /// In the order of their numbers; none is encoded.
    cooling: Vec<Cooling>,
}

/// A chunk with blocks, out of which rows move before they are written.
#[derive(Clone)]
struct Cooling {
    chunk: usize,
    /// Rows that have moved since it cools. Counted by the table, and shared with its snapshots.
    moved: Arc<AtomicU32>,
}

impl FrozenList {
    /// The chunk, if it is encoded.
    #[inline]
    pub(crate) fn get(&self, chunk: usize) -> Option<&Arc<FrozenChunk>> {
        self.encoded.get(chunk)?.as_ref()
    }

    /// One more than the number of the last one that is encoded.
    pub(crate) fn end(&self) -> usize {
        self.encoded.len()
    }

    /// One more than the number of the last one that is encoded or cools.
    pub(crate) fn cold_end(&self) -> usize {
        self.cooling.last().map_or(0, |last| last.chunk + 1).max(self.encoded.len())
    }

    /// Puts one in the place of what was there. An encoded chunk no longer cools.
    pub(crate) fn set(&mut self, chunk: usize, frozen: Option<Arc<FrozenChunk>>) -> Option<Arc<FrozenChunk>> {
        if frozen.is_some() {
            self.end_cooling(chunk);
        }
        if self.encoded.len() <= chunk {
            self.encoded.resize(chunk + 1, None);
        }
        let before = std::mem::replace(&mut self.encoded[chunk], frozen);
        let (gone, come) = (Self::counted(before.as_ref()), Self::counted(self.get(chunk)));
        self.with_rows = self.with_rows + come.0 - gone.0;
        self.evicted = self.evicted + come.1 - gone.1;
        while self.encoded.last().is_some_and(Option::is_none) {
            self.encoded.pop();
        }
        before
    }

    /// What a chunk adds to `with_rows` and `evicted`; neither changes while it is here.
    fn counted(chunk: Option<&Arc<FrozenChunk>>) -> (u32, u32) {
        let chunk = chunk.filter(|chunk| chunk.rows() > 0);
        chunk.map_or((0, 0), |chunk| (1, u32::from(chunk.shelf().is_some())))
    }

    /// How many encoded chunks hold rows, and how many of those were evicted.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.with_rows, self.evicted)
    }

    fn find_cooling(&self, chunk: usize) -> Result<usize, usize> {
        self.cooling.binary_search_by_key(&chunk, |cooling| cooling.chunk)
    }

    /// How many rows have moved out of a chunk since it cools, if it does.
    pub(crate) fn moved(&self, chunk: usize) -> Option<u32> {
        self.find_cooling(chunk).ok().map(|at| self.cooling[at].moved.load(Ordering::Relaxed))
    }

    /// A row has moved out of a chunk, or has come back (`by` -1), which counts if the chunk cools.
    pub(crate) fn count_moved(&self, chunk: usize, by: i32) {
        if let Ok(at) = self.find_cooling(chunk) {
            let moved = &self.cooling[at].moved;
            moved.store(moved.load(Ordering::Relaxed).saturating_add_signed(by), Ordering::Relaxed);
        }
    }

    /// Has a chunk cool that does not.
    pub(crate) fn cool(&mut self, chunk: usize) {
        debug_assert!(self.get(chunk).is_none(), "only a chunk with blocks cools");
        let at = self.find_cooling(chunk).expect_err("a chunk begins to cool once");
        self.cooling.insert(at, Cooling { chunk, moved: Arc::default() });
    }

    /// Has a chunk cool no longer, if it does.
    pub(crate) fn end_cooling(&mut self, chunk: usize) {
        if let Ok(at) = self.find_cooling(chunk) {
            self.cooling.remove(at);
        }
    }
}

/// All blocks of one table in one partition.
///
/// Invariant: `frozen` has a chunk if and only if all its entries but the validity bitmap are [`Entry::FROZEN`]; it has no
/// heaps then.
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
    /// Chunks that are encoded, or cool.
    pub(crate) frozen: Arc<FrozenList>,
}

impl Directory {
    /// An entry of a chunk, or that which a frozen chunk was made from: what is encoded is as it was.
    pub(crate) fn unfrozen(&self, chunk: usize, entry: usize, is: Entry) -> Entry {
        match self.frozen.get(chunk) {
            Some(frozen) if is.is_frozen() => {
                let (block, tag) = frozen.made_from()[entry - VALIDITY_ENTRY - 1];
                Entry { block, tag }
            }
            _ => is,
        }
    }
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
