//! Many rows at once in slots that nobody has used: room for them, where they lie, making them live.

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;
use arrow_buffer::BooleanBuffer;

use super::Rows;
use crate::bitmap;
use crate::column::Fixed;
use crate::layout::ColumnLocation;
use crate::pool::OutOfMemory;

/// Values of one column in slots next to each other, in one block.
///
/// Invariant: from [`Rows::strip`]: the slots are vacant, all `count` values lie in the block, `stride`
/// apart, and nobody else looks at them.
pub(crate) struct Strip {
    place: *mut u8,
    stride: usize,
    pub(crate) count: usize,
}

impl Strip {
    /// Writes a value into each slot.
    ///
    /// # Panics
    /// There are fewer values than slots.
    #[inline(always)]
    pub(crate) fn fill<T: Fixed>(&self, width: usize, mut values: impl ExactSizeIterator<Item = T>) {
        assert!(width == size_of::<T::Bytes>() && values.len() >= self.count, "each slot gets a value");
        debug_assert!(self.stride >= width, "values do not overlap");
        let mut write = |at: usize| {
            let value = values.next().expect("as many as were counted");
            // SAFETY: the strip's invariant; the column's values are as wide as the type's, asserted.
            unsafe { self.place.add(at).cast::<T::Bytes>().write_unaligned(value.to_bytes()) };
        };
        // The usual case apart: it becomes a copy of the whole.
        if self.stride == width {
            (0..self.count).for_each(|row| write(row * width));
        } else {
            (0..self.count).for_each(|row| write(row * self.stride));
        }
    }

    /// The address of a value.
    pub(crate) fn place(&self, row: usize) -> *mut u8 {
        assert!(row < self.count, "a value of the strip");
        // SAFETY: the strip's invariant.
        unsafe { self.place.add(row * self.stride) }
    }

    /// Writes zeroes: the slot of a NULL.
    pub(crate) fn clear(&self, row: usize, at: &ColumnLocation) {
        // SAFETY: the strip's invariant; a value has `width` bytes.
        unsafe { self.place(row).write_bytes(0, at.width as usize) };
    }
}

impl Rows {
    /// The next vacant slot, and how many there are from it to the end of its chunk. Free slots are not
    /// looked for.
    pub(crate) fn room(&mut self) -> Result<(Tid, usize), OutOfMemory> {
        let first = Tid(self.slots);
        if first.chunk() == self.chunks {
            self.add_chunk()?;
        }
        debug_assert!(first.chunk() < self.chunks, "the next slot lies in a chunk");
        Ok((first, CHUNK_ROWS - first.slot()))
    }

    /// Where the values of at most `most` vacant slots lie, as many as one block holds from `first` on.
    ///
    /// # Panics
    /// The slots are in use or of no chunk; the column is of another table.
    #[inline]
    pub(crate) fn strip(&mut self, first: Tid, most: usize, at: &ColumnLocation) -> Strip {
        assert!(first.0 >= self.slots, "the slots were never used");
        self.strip_of_dead(first, most, at)
    }

    /// [`Rows::strip`] of slots that may have been in use: their blocks are private, and no snapshot sees them.
    ///
    /// # Panics
    /// The slots are of no chunk, or the first is live; the column is of another table.
    #[inline]
    pub(super) fn strip_of_dead(&mut self, first: Tid, most: usize, at: &ColumnLocation) -> Strip {
        assert!(most > 0 && !self.is_live(first), "no row lives where others are laid down");
        let row = self.locate(first);
        // SAFETY: located just now.
        let (_, place) = unsafe { self.entry(row, at) };
        let in_block = at.mask as usize + 1 - (first.slot() & at.mask as usize);
        Strip { place, stride: at.stride as usize, count: most.min(in_block) }
    }

    /// Says which of the vacant slots are NULL: `present` has a bit for each, set for a value.
    ///
    /// # Panics
    /// As [`Rows::strip`]; the column takes no NULL.
    pub(crate) fn put_present_bits(
        &mut self,
        first: Tid,
        count: usize,
        at: &ColumnLocation,
        present: Option<&BooleanBuffer>,
    ) {
        assert!(first.0 >= self.slots, "the slots were never used");
        self.put_bits_of_dead(first, count, at, present);
    }

    /// [`Rows::put_present_bits`] of slots that may have been in use; see [`Rows::strip_of_dead`].
    pub(super) fn put_bits_of_dead(
        &mut self,
        first: Tid,
        count: usize,
        at: &ColumnLocation,
        present: Option<&BooleanBuffer>,
    ) {
        assert!(first.slot() + count <= CHUNK_ROWS, "the slots are of one chunk");
        assert!(!self.is_live(first), "no row lives where others are laid down");
        assert!(present.is_none_or(|bits| bits.len() == count), "each slot has a bit");
        let row = self.locate(first);
        // SAFETY: located just now; a null entry's block is a bitmap, `self` its only writer, and the
        // slots are of one chunk, asserted.
        unsafe {
            let block = (*self.null_entry(row, at)).block;
            match present {
                Some(bits) => bitmap::put(block, first.slot(), count, bits.bit_chunks().iter_padded()),
                None => bitmap::put(block, first.slot(), count, std::iter::repeat(u64::MAX)),
            }
        }
    }

    /// Makes the next `count` vacant slots, which hold values in all columns, live rows.
    ///
    /// # Panics
    /// They are of no chunk.
    pub(crate) fn publish_next(&mut self, count: usize) {
        let first = Tid(self.slots);
        assert!(first.slot() + count <= CHUNK_ROWS, "the slots are of one chunk");
        let block = self.validity(first);
        // SAFETY: the validity bitmap, `self` its only writer; the slots are of one chunk, asserted.
        unsafe { bitmap::put(block, first.slot(), count, std::iter::repeat(u64::MAX)) };
        self.slots += count as u64;
        self.live_rows += count as u64;
        self.moves += 1;
        debug_assert!(self.live_rows <= self.slots, "each live row has a slot");
    }
}
