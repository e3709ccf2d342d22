//! Reads of what is away for one reader who goes through many chunks, by large pieces.
//!
//! ```text
//! file of a column   ── chunk 7 ── chunk 8 ─(gap)─ chunk 10 ── chunk 11 ── chunk 12 ──
//! planned               ▒▒▒▒▒▒▒    ▒▒▒▒▒▒▒         ▒▒▒▒▒▒▒▒    ▒▒▒▒▒▒▒▒
//! window              └────────────── read at once ──────────────────┘
//! ```
//!
//! Whoever reads says of some chunks ahead what will be read of them, chunk by chunk. When the first is read, all that lies
//! together is, past the system's memory, into a window from which the others are copied. The system's own reading ahead
//! goes up to 8 MiB deep into one file while the query waits for another, begins anew behind each chunk that is in memory,
//! and all threads of a query wait for the same of it. A reader with windows of its own has a request of its own at the
//! disk. What lies in small pages is read half as fast as what lies in large ones: with small ones, all of this gained
//! nothing.
//!
//! What the system has in its memory, because it was written or read not long ago, is read from there. To ask for what it
//! has not costs a read of a page, so a reader who was told no does not ask again.
//!
//! - A-1 Nothing depends on it: what was not planned, or is not read so, is read by itself, and that read says what is
//!   wrong.
//! - A-2 A place in a file is written once, before anybody knows it, so a window holds what the file does. Whoever takes
//!   bytes from it checks them as if they came from the file.

use std::collections::VecDeque;
use std::ops::Range;

use albireo_env::DIRECT_BYTES;
use rustc_hash::FxHashMap;

use crate::pool::{BlockPool, Buffer};

/// Bytes that are read at a time, at most: with half of them the disk is almost as fast.
const MOST_WINDOW_BYTES: usize = 512 << 10;
/// The same at least.
const LEAST_WINDOW_BYTES: usize = 64 << 10;
/// Bytes of all windows of a reader, unless each is of the least.
const ALL_WINDOWS_BYTES: usize = 4 << 20;
/// Bytes between two pieces that are read along: to ask the disk once more takes as long.
const GAP_BYTES: u64 = 64 << 10;

/// What one reader has read ahead, and what it is going to read.
#[derive(Default)]
pub struct ReadAhead {
    windows: FxHashMap<u64, Window>,
    /// For the windows.
    pool: Option<BlockPool>,
    /// Something was taken since the last was planned.
    is_taking: bool,
    /// The system was asked for something that it had not in its memory.
    is_on_disk: bool,
}

/// A file that can be read past the system's memory.
pub trait DirectFile {
    /// Whether the byte at `offset` can be read without waiting for the disk.
    fn is_in_memory(&self, offset: u64) -> bool;

    /// Fills the first bytes of a buffer from a range, as far as the file goes; `false` if it cannot. Offset, address and
    /// length of the buffer are multiples of [`DIRECT_BYTES`].
    fn read(&self, range: Range<u64>, into: &mut [u8]) -> bool;
}

/// A part of a file.
#[derive(Default)]
struct Window {
    /// What is going to be read, in this order.
    planned: VecDeque<Range<u64>>,
    buffer: Option<Buffer>,
    holds: Range<u64>,
    /// What begins before is read by itself.
    alone_until: u64,
}

impl ReadAhead {
    /// A place in a file will be read, after those that were planned since something was taken; what was planned before will
    /// not.
    pub fn plan(&mut self, file: u64, place: Range<u64>) {
        if std::mem::take(&mut self.is_taking) {
            self.windows.clear();
        }
        if !place.is_empty() {
            self.windows.entry(file).or_default().planned.push_back(place);
        }
    }

    /// Windows lie in this pool from now on.
    pub(super) fn set_pool(&mut self, pool: &BlockPool) {
        self.pool.get_or_insert_with(|| pool.clone());
    }

    /// Copies what is at a planned place, if it could be read ahead; else it is to be read by itself.
    pub fn take(
        &mut self,
        (file, source): (u64, &impl DirectFile),
        place: &Range<u64>,
        sections: &mut [&mut [u8]],
    ) -> bool {
        self.is_taking = true;
        let files = self.windows.len();
        let (Some(window), Some(pool)) = (self.windows.get_mut(&file), &self.pool) else { return false };
        let is_filled = window.has(place)
            || window.provide(pool, files) && window.fill(place, source, &mut self.is_on_disk);
        if !is_filled {
            return false;
        }
        let Some(buffer) = &window.buffer else { return false };
        let mut at = (place.start - window.holds.start) as usize;
        for section in sections {
            section.copy_from_slice(&buffer[at..at + section.len()]);
            at += section.len();
        }
        true
    }
}

impl Window {
    fn has(&self, place: &Range<u64>) -> bool {
        self.holds.start <= place.start && place.end <= self.holds.end
    }

    /// Has a buffer, of a size for so many files.
    fn provide(&mut self, pool: &BlockPool, files: usize) -> bool {
        if self.buffer.is_none() {
            let each = (ALL_WINDOWS_BYTES / files + 1).next_power_of_two() / 2;
            self.buffer = Buffer::new(pool, each.clamp(LEAST_WINDOW_BYTES, MOST_WINDOW_BYTES)).ok();
        }
        self.buffer.is_some()
    }

    /// Reads what is planned from `place` on.
    fn fill(&mut self, place: &Range<u64>, source: &impl DirectFile, is_on_disk: &mut bool) -> bool {
        if place.start < self.alone_until {
            return false;
        }
        let Some(range) = self.next_stretch(place) else { return false };
        let Some(buffer) = &mut self.buffer else { return false };
        self.holds = 0..0;
        *is_on_disk = *is_on_disk || !source.is_in_memory(range.end - 1);
        let length = (range.end - range.start).next_multiple_of(DIRECT_BYTES) as usize;
        let is_read = *is_on_disk && source.read(range.clone(), &mut buffer[..length]);
        match is_read {
            true => self.holds = range,
            false => self.alone_until = range.end,
        }
        is_read
    }

    /// What is read together, beginning with a place; then it is not planned any more. `None`: it is not planned, or too
    /// long.
    fn next_stretch(&mut self, place: &Range<u64>) -> Option<Range<u64>> {
        let skipped = self.planned.iter().position(|planned| planned == place)?;
        self.planned.drain(..skipped);
        let start = place.start / DIRECT_BYTES * DIRECT_BYTES;
        let length = self.buffer.as_ref().map_or(0, |buffer| buffer.len()) as u64;
        let fits = |end: u64| (end - start).next_multiple_of(DIRECT_BYTES) <= length;
        let mut end = start;
        while let Some(next) = self.planned.front()
            && (end == start || next.start.checked_sub(end).is_some_and(|gap| gap <= GAP_BYTES))
            && fits(next.end)
        {
            end = next.end;
            self.planned.pop_front();
        }
        (end > start).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const K: u64 = 1 << 10;

    /// A file whose bytes count up by words of 4.
    #[derive(Default)]
    struct Counted {
        reads: RefCell<Vec<Range<u64>>>,
        asked: Cell<u32>,
        is_in_memory: Cell<bool>,
        is_broken: Cell<bool>,
    }

    impl DirectFile for Counted {
        fn is_in_memory(&self, _: u64) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.is_in_memory.get()
        }

        fn read(&self, range: Range<u64>, into: &mut [u8]) -> bool {
            assert!((into.as_ptr() as u64).is_multiple_of(DIRECT_BYTES));
            assert!((into.len() as u64).is_multiple_of(DIRECT_BYTES));
            assert!(range.start.is_multiple_of(DIRECT_BYTES) && into.len() as u64 >= range.end - range.start);
            for (index, word) in into.chunks_exact_mut(4).enumerate() {
                word.copy_from_slice(&(range.start as u32 + 4 * index as u32).to_le_bytes());
            }
            self.reads.borrow_mut().push(range);
            !self.is_broken.get()
        }
    }

    fn reader() -> ReadAhead {
        ReadAhead { pool: Some(BlockPool::new(u64::MAX >> 1)), ..ReadAhead::default() }
    }

    /// Whether the place was read ahead; its bytes are right then.
    fn takes(ahead: &mut ReadAhead, file: (u64, &Counted), place: &Range<u64>) -> bool {
        let (mut one, mut rest) = (vec![0; 4], vec![0; (place.end - place.start - 4) as usize]);
        let taken = ahead.take(file, place, &mut [&mut one, &mut rest]);
        if taken {
            let words = (place.start..place.end).step_by(4).flat_map(|at| (at as u32).to_le_bytes());
            assert_eq!([one, rest].concat(), words.collect::<Vec<u8>>());
        }
        taken
    }

    #[test]
    fn what_lies_together_is_read_together() {
        let (mut ahead, file) = (reader(), Counted::default());
        let far = 60 * K + GAP_BYTES + 4;
        let places = [400..20 * K, 20 * K..40 * K, 50 * K..60 * K, far..far + 8 * K];
        places.iter().for_each(|place| ahead.plan(1, place.clone()));
        assert!(places.iter().all(|place| takes(&mut ahead, (1, &file), place)));
        assert_eq!(*file.reads.borrow(), [0..60 * K, far / DIRECT_BYTES * DIRECT_BYTES..far + 8 * K]);
        assert_eq!(file.asked.get(), 1, "what is on the disk is not asked for again");
    }

    #[test]
    fn windows_of_all_files_together_are_bounded() {
        for (files, expected) in [(1, MOST_WINDOW_BYTES), (9, 256 << 10), (200, LEAST_WINDOW_BYTES)] {
            let (mut ahead, file) = (reader(), Counted::default());
            let places: Vec<_> = (0..60).map(|i| 100 + i * 20 * K..100 + (i + 1) * 20 * K).collect();
            for number in 0..files {
                places.iter().for_each(|place| ahead.plan(number, place.clone()));
            }
            assert!(places.iter().all(|place| takes(&mut ahead, (0, &file), place)));
            let longest = file.reads.borrow().iter().map(|range| range.end - range.start).max().unwrap();
            assert!(longest <= expected as u64 && longest > expected as u64 - 24 * K, "{files}: {longest}");
            // Windows are of this one file then.
            let long = 0..MOST_WINDOW_BYTES as u64 + 4;
            ahead.plan(0, long.clone());
            assert!(!takes(&mut ahead, (0, &file), &long), "it fits no window");
        }
    }

    #[test]
    fn what_the_system_has_or_cannot_be_read_is_read_by_itself() {
        let (mut ahead, file) = (reader(), Counted::default());
        let places = [0..8 * K, 8 * K..16 * K, 400 * K..408 * K, 900 * K..908 * K];
        places.iter().for_each(|place| ahead.plan(1, place.clone()));
        file.is_in_memory.set(true);
        assert!(!takes(&mut ahead, (1, &file), &places[0]) && !takes(&mut ahead, (1, &file), &places[1]));
        assert_eq!((file.asked.get(), file.reads.borrow().len()), (1, 0), "they were asked for together");
        file.is_in_memory.set(false);
        file.is_broken.set(true);
        assert!(!takes(&mut ahead, (1, &file), &places[2]));
        file.is_broken.set(false);
        assert!(takes(&mut ahead, (1, &file), &places[3]));
        assert!(!takes(&mut ahead, (1, &file), &(16 * K..24 * K)), "it was not planned");
        assert_eq!((file.asked.get(), file.reads.borrow().len()), (2, 2));
    }

    #[test]
    fn reader_may_leave_out_what_it_planned_and_plan_anew() {
        let (mut ahead, file) = (reader(), Counted::default());
        let places = [0..8 * K, 600 * K..608 * K, 8 * K..16 * K];
        places.iter().for_each(|place| ahead.plan(1, place.clone()));
        assert!(takes(&mut ahead, (1, &file), &places[1]));
        assert!(takes(&mut ahead, (1, &file), &places[2]), "places may go back");
        assert!(!takes(&mut ahead, (1, &file), &places[0]), "it came before");
        assert_eq!(*file.reads.borrow(), [places[1].clone(), places[2].clone()]);
        ahead.plan(2, 0..8 * K);
        assert!(!takes(&mut ahead, (1, &file), &places[2]), "windows are those of what was planned last");
        assert!(takes(&mut ahead, (2, &file), &places[0]));
    }
}
