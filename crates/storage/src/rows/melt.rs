//! Frozen chunks that get blocks again: those in which a statement over many rows writes.

use std::sync::Arc;

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use super::shadow::{Shadow, ShadowHeap};
use super::{Replaced, Rows};
use crate::bitmap;
use crate::column::put_fixed;
use crate::layout::{BITMAP_BYTES, VALIDITY_ENTRY};
use crate::pool::OutOfMemory;

impl Shadow {
    /// Makes all blocks and heaps of a chunk that is frozen in `rows`. Nobody writes its rows meanwhile: they only die, or
    /// move away.
    pub(super) fn melt(&mut self, chunk: usize, rows: &Rows) -> Result<(), OutOfMemory> {
        let frozen = Arc::clone(rows.frozen_chunk(Tid::new(chunk, 0)).expect("the chunk is frozen"));
        let layout = Arc::clone(&self.layout);
        let first = chunk * layout.entries();
        for entry in VALIDITY_ENTRY + 1..layout.entries() {
            self.add_block(first + entry)?;
        }
        self.melted.insert(chunk);
        for at in &layout.columns {
            if at.nullable() {
                let bits = self.blocks[first + at.null_entry as usize].expect("it was added above");
                for slot in (0..CHUNK_ROWS).filter(|slot| !frozen.is_null(at.column, *slot)) {
                    // SAFETY: a bitmap's block, nobody else's (I-2 of `shadow`).
                    unsafe { bitmap::set(bits, slot, true) };
                }
            }
            if at.physical.is_string() {
                self.heaps.insert(self.heap_number(chunk, at), ShadowHeap::default());
            }
            for slot in 0..CHUNK_ROWS {
                let tid = Tid::new(chunk, slot);
                if at.physical.is_string() {
                    if rows.is_live(tid) {
                        self.put_text(tid, at, &frozen.text(at.column, slot))?;
                    }
                    continue;
                }
                let value = match frozen.is_null(at.column, slot) {
                    true => 0,
                    false => frozen.fixed(at.column, slot),
                };
                // SAFETY: `width` bytes lie there by the layout's I-1; the block is nobody else's (I-2 of `shadow`).
                unsafe { put_fixed(self.slot(tid, at), at.width, value) };
            }
        }
        Ok(())
    }
}

impl Rows {
    /// A chunk that was frozen has blocks.
    pub(super) fn note_melted(&mut self, chunk: usize, replaced: &mut Replaced) {
        let list = Arc::make_mut(&mut self.dir_mut().frozen);
        let frozen = list.set(chunk, None).expect("what is melted was frozen");
        self.block_bytes += (self.layout.chunk_bytes() - BITMAP_BYTES) as u64;
        replaced.keep_chunk(frozen);
        self.readdress();
    }
}
