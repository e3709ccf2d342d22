//! Entries of short keys in their order, for an index that is made of all rows of a table.
//!
//! Keys are read twice: once for the bits in which they differ, once for these bits with the row's TID behind them.
//! Where both fit a word, which they do for most integers, entries are sorted as words, eight bytes each instead of
//! the 32 of a batch. What making an index takes longest for is memory that is new to the process.

use albireo_base::Tid;

use super::TableIndex;
use super::build::ROWS_AT_ONCE;
use crate::rows::Rows;

/// Entries that are sorted together: 128 MiB; few where it is tested, so that there are often more.
const MOST_ENTRIES: usize = if cfg!(debug_assertions) { 1_000 } else { 16 << 20 };
/// Bits that are equal in all keys and are left out only together.
const SHORTEST_GAP: u32 = 8;

/// How keys and TIDs are words and the words entries again.
pub(super) struct Packing {
    /// The bits of a key that are in a word: where they begin and how many, from the highest on.
    spans: Vec<(u32, u32)>,
    /// The other bits, which all keys have.
    common: u128,
    tid_bits: u32,
}

impl Packing {
    /// For keys that differ from `example` in the bits `varying`, of TIDs below `slots`. `None`: they do not fit.
    fn new(varying: u128, example: u128, slots: u64) -> Option<Self> {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let mut left = varying;
        while left != 0 {
            let top = 127 - left.leading_zeros();
            // The span ends where a gap begins.
            let mut low = top;
            let mut at = top;
            while at > 0 && low - at < SHORTEST_GAP {
                at -= 1;
                if varying >> at & 1 == 1 {
                    low = at;
                }
            }
            spans.push((low, top - low + 1));
            left &= (1 << low) - 1;
        }
        let key_bits: u32 = spans.iter().map(|span| span.1).sum();
        let tid_bits = u64::BITS - slots.saturating_sub(1).leading_zeros();
        let packing = Self { spans, common: example & !varying, tid_bits };
        (key_bits + tid_bits <= u64::BITS && tid_bits < u64::BITS).then_some(packing)
    }

    fn pack(&self, key: u128, tid: Tid) -> u64 {
        let mut word = 0;
        for &(shift, bits) in &self.spans {
            word = word << (bits - 1) << 1 | (key >> shift) as u64 & (u64::MAX >> (u64::BITS - bits));
        }
        word << self.tid_bits | tid.0
    }

    /// The key and the TID of a word.
    pub(super) fn unpack(&self, word: u64) -> (u128, Tid) {
        let tid = Tid(word & ((1 << self.tid_bits) - 1));
        let mut rest = word >> self.tid_bits;
        let mut key = self.common;
        for &(shift, bits) in self.spans.iter().rev() {
            key |= u128::from(rest & (u64::MAX >> (u64::BITS - bits))) << shift;
            rest = rest >> (bits - 1) >> 1;
        }
        (key, tid)
    }
}

/// The live rows from one on. Gives way now and then: they are all rows of a table, mostly.
pub(super) fn live_from(rows: &Rows, first: Tid) -> impl Iterator<Item = Tid> {
    let (mut next, mut count) = (rows.next_live(first), 0_usize);
    std::iter::from_fn(move || {
        let tid = next?;
        count += 1;
        if count.is_multiple_of(ROWS_AT_ONCE) {
            albireo_env::give_way();
        }
        next = rows.next_live(Tid(tid.0 + 1));
        Some(tid)
    })
}

impl TableIndex {
    /// How the entries of all rows are words; `None` where their keys are not ordered, not short, or differ too much.
    pub(super) fn packing(&self, rows: &Rows) -> Option<Packing> {
        if self.index.ordered().is_none() || !self.index.is_short() || self.unique_unless_null {
            return None;
        }
        let example = self.short_key(rows, rows.next_live(Tid(0))?);
        let varying =
            live_from(rows, Tid(0)).fold(0, |varying, tid| varying | (self.short_key(rows, tid) ^ example));
        Packing::new(varying, example, rows.slots)
    }

    /// The entries of rows from one on, sorted; of most tables all. Also the first row that they are not of.
    pub(super) fn sorted_words(&self, rows: &Rows, packing: &Packing, first: Tid) -> (Vec<u64>, Option<Tid>) {
        let mut words = Vec::with_capacity(MOST_ENTRIES.min(rows.live_rows as usize));
        let mut tids = live_from(rows, first);
        while words.len() < MOST_ENTRIES
            && let Some(tid) = tids.next()
        {
            words.push(packing.pack(self.short_key(rows, tid), tid));
        }
        words.sort_unstable();
        (words, tids.next())
    }
}

#[cfg(test)]
mod tests {
    use albireo_testing::random_tests;
    use proptest::prelude::*;

    use super::*;

    fn packed(keys: &[u128], slots: u64) -> Option<Vec<(u128, Tid)>> {
        let varying = keys.iter().fold(0, |varying, key| varying | (key ^ keys[0]));
        let packing = Packing::new(varying, keys[0], slots)?;
        let mut words: Vec<u64> =
            keys.iter().zip(0..).map(|(key, tid)| packing.pack(*key, Tid(tid))).collect();
        words.sort_unstable();
        Some(words.into_iter().map(|word| packing.unpack(word)).collect())
    }

    #[test]
    fn words_are_in_the_order_of_keys_and_tids() {
        let sets: [&[u128]; 5] = [
            &[7, 7, 7],
            &[u128::MAX, u128::MAX >> 1, u128::MAX],
            &[
                0x0300_0000_0000_0000_0000_0001,
                0x0200_0000_0000_0000_0000_0001,
                0x0300_0000_0000_0000_0000_0000,
            ],
            &[(1 << 40) - 1, 0, 5],
            &[9],
        ];
        for keys in sets {
            let mut expected: Vec<(u128, Tid)> = keys.iter().copied().zip((0..).map(Tid)).collect();
            expected.sort_unstable();
            assert_eq!(packed(keys, keys.len() as u64), Some(expected), "{keys:x?}");
        }
    }

    #[test]
    fn keys_that_differ_too_much_are_not_packed() {
        assert!(packed(&[0, u128::from(u64::MAX >> 2)], 4).is_some());
        assert!(packed(&[0, u128::from(u64::MAX >> 1)], 4).is_none());
        assert!(packed(&[0, u128::MAX], 4).is_none());
        assert!(packed(&[0, 1 | 1 << 127], 4).is_some(), "what lies between is the same");
        assert!(packed(&[0, u128::from(u64::MAX)], 1).is_some());
    }

    random_tests! {
        #![cases(256)]

        #[test]
        fn any_keys_are_sorted(keys in prop::collection::vec(0_u128..1 << 20, 1..50), shift in 0_u32..108) {
            let keys: Vec<u128> = keys.iter().map(|key| key << shift | 1).collect();
            let mut expected: Vec<(u128, Tid)> = keys.iter().copied().zip((0..).map(Tid)).collect();
            expected.sort_unstable();
            prop_assert_eq!(packed(&keys, 50), Some(expected));
        }
    }
}
