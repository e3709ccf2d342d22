//! Chunks that hold nothing: frozen ones all of whose rows have died or moved.
//!
//! Rows that die leave holes in a frozen chunk, which nobody fills. If most are holes, the rows that are left move to
//! where there are blocks, some at a time; what nobody lives in is let go of.
//!
//! - E-1 An empty chunk is frozen, and has its validity bitmap, of which no bit is set, and nothing else. Snapshots that
//!   saw its rows keep them.
//! - E-2 It gets blocks again before the table gets another chunk: TIDs do not run out while rows come and go.
//!
//! Paper: Lang and others, *Data Blocks*, SIGMOD 2016, leaves holes where they are; Funke, Kemper and Neumann,
//! *Compacting Transactional Data*, VLDB 2012, §3.3, counts on few of them.

use std::sync::Arc;

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use super::{Replaced, Rows};
use crate::frozen::FrozenChunk;
use crate::layout::{BITMAP_BYTES, VALIDITY_ENTRY};
use crate::pool::OutOfMemory;

/// The empty chunks of a table.
#[derive(Default)]
pub(super) struct Emptied {
    /// Their numbers.
    chunks: Vec<u32>,
    /// What they all have; made for the first of them.
    nothing: Option<Arc<FrozenChunk>>,
}

impl Rows {
    /// Whether rows may move out of a frozen chunk now, as far as its table knows.
    pub(crate) fn may_move_out(&self, chunk: u32) -> bool {
        let is_frozen = self.dir.frozen.get(chunk as usize).is_some_and(|frozen| frozen.rows() > 0);
        is_frozen && !self.has_moved() && !self.is_worked_on()
    }

    /// The next row at or after `tid` that lives in its chunk.
    pub(crate) fn next_of_chunk(&self, tid: Tid) -> Option<Tid> {
        self.next_live_before(tid, Tid::new(tid.chunk() + 1, 0))
    }

    /// Lets go of what a frozen chunk holds, in which no row lives.
    pub(crate) fn give_up(&mut self, chunk: u32) -> Replaced {
        let first = Tid::new(chunk as usize, 0);
        assert!(self.next_of_chunk(first).is_none(), "no row lives in chunk {chunk}");
        let made_from = self.made_from_nothing();
        let of_nothing = || Arc::new(FrozenChunk::of_nothing(&self.layout, made_from));
        let nothing = Arc::clone(self.empty.nothing.get_or_insert_with(of_nothing));
        let list = Arc::make_mut(&mut self.dir_mut().frozen);
        let frozen = list.set(chunk as usize, Some(nothing)).expect("the chunk is frozen");
        self.empty.chunks.push(chunk);
        self.moves += 1;
        let mut replaced = self.nothing_replaced();
        replaced.keep_chunk(frozen);
        replaced
    }

    /// Gives an empty chunk blocks again, if there is one: its slots are the next ones that are free.
    pub(super) fn refill(&mut self) -> Result<bool, OutOfMemory> {
        let Some(&chunk) = self.empty.chunks.last() else { return Ok(false) };
        let is_empty = self.dir.frozen.get(chunk as usize).is_some_and(|frozen| frozen.rows() == 0);
        assert!(is_empty, "chunk {chunk} is empty still (E-1)");
        let (number, behind) = (chunk as usize, VALIDITY_ENTRY + 1);
        let blocks = self.new_blocks(behind)?;
        for (entry, bytes) in blocks.iter().zip(&self.layout.entry_bytes[behind..]) {
            // Slots are below the table's number of slots at once, and so are to hold a value: no text, and 0.
            // SAFETY: the block was taken just now with this size, and is ours alone.
            unsafe { entry.block.write_bytes(0, *bytes as usize) };
        }
        self.empty.chunks.pop();
        let entries = number * self.chunk_entries..(number + 1) * self.chunk_entries;
        let dir = self.dir_mut();
        dir.entries[entries][behind..].copy_from_slice(&blocks);
        Arc::make_mut(&mut dir.frozen).set(number, None);
        self.block_bytes += (self.layout.chunk_bytes() - BITMAP_BYTES) as u64;
        self.readdress();
        self.moves += 1;
        // No snapshot sees these blocks.
        (0..CHUNK_ROWS).rev().for_each(|slot| self.free.push_front((0, Tid::new(number, slot))));
        Ok(true)
    }
}

const _: () = assert!(VALIDITY_ENTRY == 0, "blocks of a chunk follow its validity bitmap");
