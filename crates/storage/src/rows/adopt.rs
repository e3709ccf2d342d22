//! Frozen chunks that come from elsewhere, to a store that nobody reads yet.

use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;

use super::{HeapUse, Rows};
use crate::bitmap;
use crate::directory::Entry;
use crate::frozen::{BlockOf, FrozenChunk};
use crate::layout::{BITMAP_BYTES, VALIDITY_ENTRY};
use crate::pool::OutOfMemory;

impl Rows {
    /// What a chunk is made from that was never in blocks here, by entry as [`FrozenChunk::made_from`] has it: nothing,
    /// at the epoch of now.
    pub(crate) fn made_from_nothing(&self) -> Box<[BlockOf]> {
        vec![(Entry::FROZEN.block, self.epoch); self.chunk_entries - VALIDITY_ENTRY - 1].into()
    }

    /// The number of the chunk that is appended next.
    pub(crate) fn next_chunk(&self) -> u32 {
        (self.slots / CHUNK_ROWS as u64) as u32
    }

    /// Appends a chunk, the rows of which live that `live` says.
    ///
    /// # Panics
    /// The last chunk is not full, or there are not as many words as slots of a chunk have.
    pub(crate) fn adopt(&mut self, frozen: Arc<FrozenChunk>, live: &[u64]) -> Result<(), OutOfMemory> {
        assert!(self.slots.is_multiple_of(CHUNK_ROWS as u64), "a frozen chunk begins where a chunk does");
        assert!(live.len() * 64 == CHUNK_ROWS, "each slot lives or not");
        debug_assert_eq!(frozen.made_from().len(), self.chunk_entries - VALIDITY_ENTRY - 1);
        self.drop_vacant_chunks();
        let validity = self.registry.pool().alloc(BITMAP_BYTES)?;
        // SAFETY: a bitmap's block, ours alone so far; it has a bit for each slot of a chunk.
        unsafe {
            bitmap::clear(validity);
            bitmap::put(validity, 0, CHUNK_ROWS, live.iter().copied());
        }
        let (number, heaps) = (self.chunks, self.layout.heap_columns.len());
        let rows = frozen.rows();
        self.heap_use.extend(std::iter::repeat_with(HeapUse::default).take(heaps));
        let mut entries = vec![Entry::FROZEN; self.chunk_entries];
        entries[VALIDITY_ENTRY] = Entry { block: validity, tag: self.epoch };
        self.block_bytes += BITMAP_BYTES as u64;
        let dir = self.dir_mut();
        dir.entries.append(&mut entries);
        dir.heaps.extend(std::iter::repeat_n(None, heaps));
        Arc::make_mut(&mut dir.frozen).set(number, Some(frozen));
        self.readdress();
        self.slots += CHUNK_ROWS as u64;
        self.live_rows += live.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        self.moves += 1;
        if rows == 0 {
            drop(self.give_up(number as u32));
        }
        debug_assert_eq!(self.slots, (self.chunks * CHUNK_ROWS) as u64, "the next row begins a chunk");
        Ok(())
    }
}
