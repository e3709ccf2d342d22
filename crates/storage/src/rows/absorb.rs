//! Rows that were laid down apart become rows of a table: whole chunks change hands, others are copied.
//!
//! I-1 What is absorbed was seen by nobody, so its blocks get the epoch in which the table is.
//! I-2 Slots that were in use are written only where no snapshot sees them, after their blocks were made private.

use std::sync::Arc;

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;
use arrow_buffer::BooleanBuffer;

use super::Rows;
use crate::bitmap;
use crate::layout::ColumnLocation;
use crate::pool::OutOfMemory;

/// Rows in slots next to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowRun {
    pub(crate) first: Tid,
    pub(crate) rows: u64,
}

impl RowRun {
    pub(crate) fn tids(self) -> impl DoubleEndedIterator<Item = Tid> {
        (0..self.rows as usize).map(move |row| Tid(self.first.0 + row as u64))
    }
}

impl Rows {
    /// An empty store for rows that are to be absorbed by one of the same layout, which has `slots` in use
    /// now: so that it takes the first rows in what is left of its last chunk.
    pub(crate) fn apart(&self) -> Self {
        let mut apart = Self::new(self.table, Arc::clone(&self.layout), Arc::clone(&self.registry));
        apart.slots = self.slots % CHUNK_ROWS as u64;
        apart
    }

    /// Takes all rows of `from` over, which has no dead ones, and appends where they are to `runs`. Also after
    /// a failure `runs` says which rows came.
    ///
    /// Rows that are copied anyway, because they are few or would not begin a chunk, and whole chunks of which
    /// there are as many free slots as they have rows, go to free slots first: a table that is emptied and
    /// filled again and again does not grow.
    ///
    /// # Panics
    /// `from` has another layout.
    pub(crate) fn absorb(&mut self, mut from: Self, runs: &mut Vec<RowRun>) -> Result<(), OutOfMemory> {
        assert!(from.layout_id == self.layout_id, "rows are absorbed by a table of their layout");
        let first = Tid(from.slots - from.live_rows);
        assert!(first.chunk() == 0 && from.free.is_empty(), "rows that were apart have no dead among them");
        if from.live_rows == 0 {
            return Ok(());
        }
        let fits = first.slot() == 0 && (self.slots.is_multiple_of(CHUNK_ROWS as u64) || from.chunks > 1);
        let reusable = self.reusable_slots();
        if reusable >= from.live_rows || (from.chunks == 1 && !fits) {
            return (0..from.chunks).try_for_each(|chunk| self.copy_chunk(&from, chunk, true, runs));
        }
        let mut copied = usize::from(!fits);
        (0..copied).try_for_each(|chunk| self.copy_chunk(&from, chunk, false, runs))?;
        let reused = copied + reusable as usize / CHUNK_ROWS;
        while copied < reused.min(from.chunks - 1) {
            self.copy_chunk(&from, copied, true, runs)?;
            copied += 1;
        }
        if from.chunks > copied {
            self.leave_hole();
            self.splice(&mut from, copied, runs);
        }
        Ok(())
    }

    /// As [`Rows::absorb`], of the chunk `chunk`, or of all from it on if that is a matter of a few words; the next
    /// chunk that is to be absorbed, if there are more.
    pub(crate) fn absorb_some(
        &mut self,
        from: &mut Self,
        chunk: usize,
        runs: &mut Vec<RowRun>,
    ) -> Result<Option<usize>, OutOfMemory> {
        assert!(from.layout_id == self.layout_id, "rows are absorbed by a table of their layout");
        let begin = if chunk == 0 { from.slots - from.live_rows } else { (chunk * CHUNK_ROWS) as u64 };
        let rows = from.slots.min(((chunk + 1) * CHUNK_ROWS) as u64).saturating_sub(begin);
        if rows == 0 {
            return Ok(None);
        }
        let reuses = self.reusable_slots() >= rows;
        let is_whole = begin.is_multiple_of(CHUNK_ROWS as u64)
            && (rows == CHUNK_ROWS as u64 || self.slots.is_multiple_of(CHUNK_ROWS as u64));
        if reuses || !is_whole {
            self.copy_chunk(from, chunk, reuses, runs)?;
            return Ok((chunk + 1 < from.chunks).then_some(chunk + 1));
        }
        self.leave_hole();
        self.splice(from, chunk, runs);
        Ok(None)
    }

    /// Free slots that no snapshot sees, and perhaps some that are free no more.
    fn reusable_slots(&self) -> u64 {
        self.free.count_until(self.registry.oldest_seeing(self.table))
    }

    /// Copies the rows of a chunk, to free slots first if they are to be used.
    fn copy_chunk(
        &mut self,
        from: &Self,
        chunk: usize,
        reuse: bool,
        runs: &mut Vec<RowRun>,
    ) -> Result<(), OutOfMemory> {
        let begin = if chunk == 0 { from.slots - from.live_rows } else { (chunk * CHUNK_ROWS) as u64 };
        let end = from.slots.min(((chunk + 1) * CHUNK_ROWS) as u64);
        let (mut next, oldest) = (Tid(begin), self.registry.oldest_seeing(self.table));
        while reuse && next.0 < end {
            let Some(free) = self.free_run(end - next.0, oldest) else { break };
            self.copy_to_free(from, next, free)?;
            runs.push(free);
            next = Tid(next.0 + free.rows);
        }
        if next.0 < end { self.copy_rows(from, next, end - next.0, runs) } else { Ok(()) }
    }

    /// The first free slots next to each other in one chunk, at most so many, whose rows died until `oldest`.
    fn free_run(&mut self, most: u64, oldest: u64) -> Option<RowRun> {
        self.free.first()?;
        let mut free = self.free.iter().take_while(|(death, _)| *death <= oldest).map(|(_, tid)| tid);
        let first = free.next()?;
        let most = most.min((CHUNK_ROWS - first.slot()) as u64);
        let next = (first.0 + 1..first.0 + most).zip(free).take_while(|(wanted, tid)| *wanted == tid.0);
        Some(RowRun { first, rows: 1 + next.count() as u64 })
    }

    /// Copies rows into the first free slots, and makes them live. A failure leaves the slots free.
    fn copy_to_free(&mut self, from: &Self, first: Tid, to: RowRun) -> Result<(), OutOfMemory> {
        debug_assert!(to.tids().all(|tid| !self.is_live(tid)), "no row lives in a free slot (I-2)");
        self.privatize_slots(to)?;
        self.copy_columns(from, first, to)?;
        let block = self.validity(to.first);
        // SAFETY: the validity bitmap, `self` its only writer and private since `privatize_slots`; the slots are
        // of one chunk.
        unsafe { bitmap::put(block, to.first.slot(), to.rows as usize, std::iter::repeat(u64::MAX)) };
        for tid in to.tids() {
            let taken = self.free.pop_front();
            assert!(taken.is_some_and(|(_, free)| free == tid), "a reused slot is the first free one");
        }
        self.live_rows += to.rows;
        self.moves += 1;
        Ok(())
    }

    /// Makes every block that holds a part of these slots, which are of one chunk, private.
    fn privatize_slots(&mut self, run: RowRun) -> Result<(), OutOfMemory> {
        let layout = Arc::clone(&self.layout);
        let (chunk, first) = (run.first.chunk() * layout.entries(), run.first.slot());
        let last = first + run.rows as usize - 1;
        debug_assert!(run.rows > 0 && last < CHUNK_ROWS, "the slots are of one chunk");
        let of_column = |at: &ColumnLocation| {
            let entry = at.entry as usize;
            entry + (first >> at.shift)..=entry + (last >> at.shift)
        };
        let blocks = layout.columns.iter().flat_map(of_column);
        for entry in blocks.chain(layout.bitmaps.iter().map(|&entry| entry as usize)) {
            if self.dir.entries[chunk + entry].tag != self.epoch {
                self.privatize(chunk + entry)?;
            }
        }
        Ok(())
    }

    /// Copies rows that are next to each other in one chunk into the next vacant slots.
    fn copy_rows(
        &mut self,
        from: &Self,
        mut first: Tid,
        mut left: u64,
        runs: &mut Vec<RowRun>,
    ) -> Result<(), OutOfMemory> {
        while left > 0 {
            let (to, room) = self.room()?;
            let run = RowRun { first: to, rows: left.min(room as u64) };
            self.copy_columns(from, first, run)?;
            self.publish_next(run.rows as usize);
            match runs.last_mut() {
                Some(last) if last.first.0 + last.rows == to.0 => last.rows += run.rows,
                _ => runs.push(run),
            }
            (first, left) = (Tid(first.0 + run.rows), left - run.rows);
        }
        Ok(())
    }

    /// Copies the values of rows into slots, which are of one chunk and dead, and seen by no snapshot.
    fn copy_columns(&mut self, from: &Self, first: Tid, to: RowRun) -> Result<(), OutOfMemory> {
        let before = self.heap_text_bytes(to.first.chunk());
        let layout = Arc::clone(&self.layout);
        for at in &layout.columns {
            if let Err(full) = self.copy_column(from, first, to.first, to.rows as usize, at) {
                self.drop_heap_text_since(to.first.chunk(), &before);
                return Err(full);
            }
        }
        Ok(())
    }

    fn copy_column(
        &mut self,
        from: &Self,
        first: Tid,
        to: Tid,
        count: usize,
        at: &ColumnLocation,
    ) -> Result<(), OutOfMemory> {
        let (mut done, width) = (0, at.width as usize);
        debug_assert!(first.slot() + count <= CHUNK_ROWS, "rows to be copied are of one chunk");
        debug_assert!(to.slot() + count <= CHUNK_ROWS, "slots to be copied to are of one chunk");
        while done < count {
            let source = Tid(first.0 + done as u64);
            let in_block = at.mask as usize + 1 - (source.slot() & at.mask as usize);
            let strip = self.strip_of_dead(Tid(to.0 + done as u64), in_block.min(count - done), at);
            let place = from.place(source, at);
            for row in 0..strip.count {
                // SAFETY: the rows of the strip lie in one block of `from` too, `stride` apart; `width` bytes
                // lie there by the layout's I-1.
                let slot = unsafe { std::slice::from_raw_parts(place.add(row * at.stride as usize), width) };
                let tid = Tid(source.0 + row as u64);
                if at.physical.is_string() && from.heap_length(tid, at) > 0 {
                    let text = from.text_of(tid, at, slot);
                    // SAFETY: the place is that of this column's value in a vacant slot of the chunk; blocks
                    // do not move when the heap grows, only the list of them may.
                    unsafe { self.put_text(to.chunk(), at, text, strip.place(row)) }?;
                } else {
                    // SAFETY: the strip's invariant; the two stores have different blocks.
                    unsafe { std::ptr::copy_nonoverlapping(slot.as_ptr(), strip.place(row), width) };
                }
            }
            done += strip.count;
        }
        if at.nullable() {
            // SAFETY: located just now; a null entry's block is a live bitmap.
            let words = unsafe {
                let block = (*from.null_entry(from.locate(first), at)).block;
                bitmap::copy(block, first.slot() + count)
            };
            let bits = BooleanBuffer::new(words.into(), first.slot(), count);
            self.put_bits_of_dead(to, count, at, Some(&bits));
        }
        Ok(())
    }

    /// Bytes of text in the heaps of a chunk, garbage included.
    pub(crate) fn heap_text_bytes(&self, chunk: usize) -> Vec<u64> {
        let heaps = self.layout.heap_columns.len();
        self.heap_use[chunk * heaps..][..heaps].iter().map(|heap| heap.text_bytes()).collect()
    }

    /// Counts the text that came into the heaps of a chunk since then as garbage: its rows do not come to be.
    pub(crate) fn drop_heap_text_since(&mut self, chunk: usize, before: &[u64]) {
        let now = self.heap_text_bytes(chunk);
        debug_assert_eq!(now.len(), before.len(), "a chunk keeps its heaps");
        for (heap, (now, before)) in now.iter().zip(before).enumerate() {
            if now > before {
                self.count_garbage(chunk, heap as u16, (now - before) as i64);
            }
        }
    }

    /// Makes what is left of the last chunk free slots, so that the next row begins a chunk.
    pub(crate) fn leave_hole(&mut self) {
        let first = Tid(self.slots);
        if first.slot() == 0 {
            return;
        }
        let layout = Arc::clone(&self.layout);
        for at in &layout.columns {
            let mut tid = first;
            while tid.chunk() == first.chunk() {
                // Every slot below `slots` holds a valid value: I-1 of `rows`.
                let strip = self.strip(tid, CHUNK_ROWS, at);
                (0..strip.count).for_each(|row| strip.clear(row, at));
                tid = Tid(tid.0 + strip.count as u64);
            }
        }
        let end = Tid::new(first.chunk() + 1, 0);
        for tid in (first.0..end.0).rev() {
            self.free.push_front((0, Tid(tid)));
        }
        self.slots = end.0;
        debug_assert!(self.slots.is_multiple_of(CHUNK_ROWS as u64), "the next row begins a chunk");
    }

    /// Takes the chunks of `from` over from `first_chunk` on. The last chunk of `self` is full.
    fn splice(&mut self, from: &mut Self, first_chunk: usize, runs: &mut Vec<RowRun>) {
        self.drop_vacant_chunks();
        assert_eq!(self.slots, (self.chunks * CHUNK_ROWS) as u64, "the last chunk is full");
        let (entries, heaps) = (self.chunk_entries, self.layout.heap_columns.len());
        let chunks = from.chunks - first_chunk;
        let rows = from.slots - (first_chunk * CHUNK_ROWS) as u64;
        assert!(rows <= from.live_rows, "all rows of the chunks that change hands live");
        let first = Tid(self.slots);
        let epoch = self.epoch;
        // From here on `from` has these chunks no more, so that they are not given back with it.
        let source = from.dir_mut();
        let mut blocks = source.entries.split_off(first_chunk * entries);
        let mut lists = source.heaps.split_off(first_chunk * heaps);
        from.readdress();
        blocks.iter_mut().for_each(|entry| entry.tag = epoch);
        for list in lists.iter_mut().flatten() {
            let list = Arc::get_mut(list).expect("no snapshot shares a heap of rows that were apart");
            list.blocks.iter_mut().for_each(|block| block.birth = epoch);
        }
        self.heap_use.extend(from.heap_use.drain(first_chunk * heaps..));
        let bytes = (chunks * self.layout.chunk_bytes()) as u64;
        (self.block_bytes, from.block_bytes) = (self.block_bytes + bytes, from.block_bytes - bytes);
        let dir = self.dir_mut();
        dir.entries.append(&mut blocks);
        dir.heaps.append(&mut lists);
        self.readdress();
        self.slots += rows;
        self.live_rows += rows;
        from.live_rows -= rows;
        from.slots -= rows;
        assert!(
            self.slots <= (self.chunks * CHUNK_ROWS) as u64,
            "the rows lie in chunks that came with them"
        );
        debug_assert_eq!(self.heap_use.len(), self.dir.heaps.len(), "the use of each heap is known");
        self.moves += 1;
        runs.push(RowRun { first, rows });
    }

    /// Whether chunks of these rows go when they are taken back: those that begin with one of them.
    pub(crate) fn are_last(&self, run: RowRun) -> bool {
        run.first.0 + run.rows == self.slots
    }

    /// Takes rows of the running transaction back, the last that came: their slots are free, or as if they never
    /// were. What their texts take in chunks that stay has been counted.
    ///
    /// Slots at the end may have been reused: every snapshot that saw them, dead, lost their blocks to private
    /// copies then, and keeps its own list of blocks.
    pub(crate) fn retract(&mut self, run: RowRun) {
        let end = run.first.0 + run.rows;
        assert!(end <= self.slots && run.rows <= self.live_rows, "rows that are taken back are there");
        let mut first = run.first;
        while first.0 < end {
            let count = (CHUNK_ROWS - first.slot()).min((end - first.0) as usize);
            let block = self.validity(first);
            // SAFETY: the validity bitmap, `self` its only writer; the slots are of one chunk. No snapshot
            // sees them, which were taken in this transaction.
            unsafe { bitmap::put(block, first.slot(), count, std::iter::repeat(0)) };
            first = Tid(first.0 + count as u64);
        }
        self.live_rows -= run.rows;
        self.moves += 1;
        if end == self.slots {
            self.slots = run.first.0;
            self.drop_vacant_chunks();
        } else {
            run.tids().rev().for_each(|tid| self.free.push_front((0, tid)));
        }
    }

    /// Gives back the chunks in which no slot is in use.
    pub(super) fn drop_vacant_chunks(&mut self) {
        let kept = self.slots.div_ceil(CHUNK_ROWS as u64) as usize;
        if kept >= self.chunks {
            return;
        }
        let (entries, heaps) = (self.chunk_entries, self.layout.heap_columns.len());
        let dir = self.dir_mut();
        let blocks = dir.entries.split_off(kept * entries);
        let lists = dir.heaps.split_off(kept * heaps);
        self.block_bytes -= ((self.chunks - kept) * self.layout.chunk_bytes()) as u64;
        self.readdress();
        self.heap_use.truncate(kept * heaps);
        debug_assert_eq!(self.dir.entries.len(), kept * entries, "chunks in use stay whole");
        self.untidy.retain(|(chunk, _)| (*chunk as usize) < kept);
        self.moves += 1;
        for (index, entry) in blocks.iter().enumerate() {
            self.retire_entry(index, *entry);
        }
        for (index, list) in lists.iter().enumerate() {
            list.iter().for_each(|list| self.retire_heap(list, (index % heaps) as u16));
        }
    }
}
