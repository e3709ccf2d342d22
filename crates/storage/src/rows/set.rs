//! Sets of rows of one table in one partition.

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use crate::bitmap::WORDS;

/// Rows, a bit for each slot.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RowSet {
    words: Vec<u64>,
    count: u64,
}

impl RowSet {
    /// Without rows, and with memory for those of so many slots, which has been touched.
    pub fn with_room(slots: u64) -> Self {
        // Not zeros, whose memory comes when it is written.
        let mut words = vec![u64::MAX; slots.div_ceil(64) as usize];
        words.fill(0);
        Self { words, count: 0 }
    }

    /// Takes all rows out; the memory stays.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a row is in it.
    #[inline]
    pub fn has(&self, tid: Tid) -> bool {
        let word = self.words.get((tid.0 / 64) as usize);
        word.is_some_and(|word| word >> (tid.0 % 64) & 1 == 1)
    }

    /// Puts a row in, or takes it out.
    #[inline]
    pub fn set(&mut self, tid: Tid, is_in: bool) {
        let (at, bit) = ((tid.0 / 64) as usize, 1 << (tid.0 % 64));
        if self.words.len() <= at {
            if !is_in {
                return;
            }
            self.words.resize(at + 1, 0);
        }
        let word = &mut self.words[at];
        match (is_in, *word & bit != 0) {
            (true, false) => (*word, self.count) = (*word | bit, self.count + 1),
            (false, true) => (*word, self.count) = (*word & !bit, self.count - 1),
            _ => {}
        }
    }

    /// Puts rows in that are next to each other, and not in it.
    pub(crate) fn add_run(&mut self, first: Tid, rows: u64) {
        let end = first.0 + rows;
        let words = end.div_ceil(64) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        let mut next = first.0;
        while next < end {
            let count = (64 - next % 64).min(end - next);
            let bits = (u64::MAX >> (64 - count)) << (next % 64);
            let word = &mut self.words[(next / 64) as usize];
            debug_assert_eq!(*word & bits, 0, "the rows are not in the set");
            *word |= bits;
            next += count;
        }
        self.count += rows;
    }

    /// The first row.
    pub fn first(&self) -> Option<Tid> {
        self.from(Tid(0)).next()
    }

    /// The rows from `tid` on, in order.
    pub fn from(&self, tid: Tid) -> impl Iterator<Item = Tid> + '_ {
        let start = (tid.0 / 64) as usize;
        let words = self.words.iter().enumerate().skip(start);
        words.flat_map(move |(at, word)| {
            let mut left = if at == start { word & (u64::MAX << (tid.0 % 64)) } else { *word };
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(Tid(at as u64 * 64 + u64::from(bit)))
            })
        })
    }

    /// The numbers of the chunks that have rows of it, in order.
    pub fn chunk_numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.chunks().map(|(chunk, _)| chunk)
    }

    /// The chunks that have rows of it, each with the bits of its slots.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, &[u64])> {
        const { assert!(WORDS * 64 == CHUNK_ROWS) };
        self.words.chunks(WORDS).enumerate().filter(|(_, words)| words.iter().any(|word| *word != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_set_are_found_in_order_and_counted_once() {
        let mut set = RowSet::default();
        let tids = [0, 3, 63, 64, 130, CHUNK_ROWS as u64, CHUNK_ROWS as u64 * 3 + 5].map(Tid);
        for tid in tids.iter().rev().chain(&tids) {
            set.set(*tid, true);
        }
        set.set(Tid(1 << 40), false);
        assert_eq!((set.count(), set.from(Tid(0)).collect::<Vec<_>>()), (7, tids.to_vec()));
        assert_eq!(set.from(Tid(64)).collect::<Vec<_>>(), tids[3..]);
        assert_eq!(set.from(Tid(65)).collect::<Vec<_>>(), tids[4..]);
        assert_eq!(set.chunk_numbers().collect::<Vec<_>>(), [0, 1, 3]);
        tids.iter().for_each(|tid| set.set(*tid, false));
        assert_eq!((set.count(), set.first(), set.has(Tid(3))), (0, None, false));
        for (first, rows) in [(0, 1), (5, 59), (64, 64), (130, 300), (1000, 1)] {
            set.add_run(Tid(first), rows);
        }
        let runs = (0..1).chain(5..64).chain(64..128).chain(130..430).chain(1000..1001);
        let wanted: Vec<Tid> = runs.map(Tid).collect();
        assert_eq!((set.count(), set.from(Tid(0)).collect::<Vec<_>>()), (wanted.len() as u64, wanted));
    }
}
