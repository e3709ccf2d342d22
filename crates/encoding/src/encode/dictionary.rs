//! Which values there are: of a sample, about, and of all, numbered in order.

use super::values::Values;
use crate::numbers::Width;

/// Rows that are looked at to guess how many distinct values there are.
const SAMPLE: usize = 1024;
/// Slots that a search may go through. Hashes that collide more often are no use, and nobody may make them cost more.
const PROBES: usize = 256;
/// The most entries of a dictionary.
pub(super) const ENTRIES: usize = 1 << 16;

/// Looks for distinct values; keeps its buffers.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// 0, or the upper half of a hash and the number of a value and one.
    slots: Vec<u64>,
    /// The place at which each value came first.
    firsts: Vec<u32>,
    /// The number of the value at each place.
    numbers: Vec<u16>,
    /// How often a hash was in the sample; by slot.
    counts: Vec<u16>,
    /// Order and number of each value, to be sorted.
    order: Vec<(u64, u32)>,
}

/// A sorted dictionary.
pub(super) struct Dictionary {
    /// A place of each value, ascending by value.
    pub(super) entries: Vec<u32>,
    pub(super) width: Width,
    pub(super) codes: Vec<u8>,
}

/// The width of codes for so many entries.
pub(super) fn width(entries: usize) -> Width {
    Width::of(entries.saturating_sub(1) as u64)
}

impl Distinct {
    /// How many distinct values there are, guessed from a sample: those in it, and of those that are not as many as
    /// Chao's estimate says, from how many were met once and twice.
    pub(super) fn estimate<V: Values>(&mut self, values: &V) -> usize {
        let length = values.len();
        let take = length.min(SAMPLE);
        self.slots.clear();
        self.slots.resize(SAMPLE * 2, 0);
        self.counts.clear();
        self.counts.resize(SAMPLE * 2, 0);
        let mut jitter = 0x2545_f491_4f6c_dd1d_u64;
        for number in 0..take {
            // One place of each of `take` parts of the list.
            let (start, end) = (number * length / take, (number + 1) * length / take);
            jitter = jitter.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let at = start + (((jitter >> 32) as usize * (end - start)) >> 32);
            let hash = V::hash(values.at(at)) | 1;
            let mut slot = (hash >> 53) as usize;
            while self.slots[slot] != 0 && self.slots[slot] != hash {
                slot = (slot + 1) % (SAMPLE * 2);
            }
            self.slots[slot] = hash;
            self.counts[slot] += 1;
        }
        let with = |count: u16| self.counts.iter().filter(|other| **other == count).count();
        let (never, once, twice) = (with(0), with(1), with(2));
        let distinct = SAMPLE * 2 - never;
        if take == length {
            return distinct;
        }
        let unseen = if twice == 0 { once * once.saturating_sub(1) / 2 } else { once * once / (2 * twice) };
        (distinct + unseen).min(length)
    }

    /// The dictionary of `values`, unless it has more than `limit` entries or hashes collide too often.
    /// `expected`: about how many it has.
    pub(super) fn build<V: Values>(
        &mut self,
        values: &V,
        limit: usize,
        expected: usize,
    ) -> Option<Dictionary> {
        self.number(values, limit.min(ENTRIES), expected)?;
        self.order.clear();
        let firsts = self.firsts.iter().enumerate();
        self.order.extend(firsts.map(|(number, at)| (V::prefix(values.at(*at as usize)), number as u32)));
        let item = |number: u32| values.at(self.firsts[number as usize] as usize);
        self.order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| V::order(item(a.1), item(b.1))));
        let entries = self.order.iter().map(|(_, number)| self.firsts[*number as usize]).collect();
        let mut ranks = vec![0_u16; self.firsts.len()];
        for (rank, (_, number)) in self.order.iter().enumerate() {
            ranks[*number as usize] = rank as u16;
        }
        let width = width(ranks.len());
        let codes = match width {
            Width::One => self.numbers.iter().map(|number| ranks[usize::from(*number)] as u8).collect(),
            _ => {
                let mut codes = vec![0; self.numbers.len() * 2];
                for (code, number) in codes.as_chunks_mut().0.iter_mut().zip(&self.numbers) {
                    *code = ranks[usize::from(*number)].to_le_bytes();
                }
                codes
            }
        };
        Some(Dictionary { entries, width, codes })
    }

    /// Numbers values in the order in which they come first.
    fn number<V: Values>(&mut self, values: &V, limit: usize, expected: usize) -> Option<()> {
        self.firsts.clear();
        self.numbers.clear();
        self.slots.clear();
        self.slots.resize((expected.min(limit).max(16) * 4).next_power_of_two(), 0);
        for at in 0..values.len() {
            let item = values.at(at);
            let hash = V::hash(item);
            let (slot, found) = self.search(hash, |first| values.at(first) == item)?;
            if let Some(number) = found {
                self.numbers.push(number as u16);
                continue;
            }
            if self.firsts.len() == limit {
                return None;
            }
            let number = self.firsts.len();
            self.firsts.push(at as u32);
            self.numbers.push(number as u16);
            self.slots[slot] = entry(hash, number);
            if self.firsts.len() * 2 > self.slots.len() {
                self.grow(values)?;
            }
        }
        Some(())
    }

    /// The slot where a value with this hash is, and its number; or the one where it can be put.
    #[inline]
    fn search(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<(usize, Option<usize>)> {
        let mask = self.slots.len() - 1;
        let start = (hash >> 32) as usize >> (32 - self.slots.len().trailing_zeros());
        for probe in 0..PROBES {
            let slot = (start + probe) & mask;
            let found = self.slots[slot];
            if found == 0 {
                return Some((slot, None));
            }
            let number = found as u32 as usize - 1;
            if found >> 32 == hash & u64::from(u32::MAX) && is_it(self.firsts[number] as usize) {
                return Some((slot, Some(number)));
            }
        }
        None
    }

    /// Twice as many slots.
    fn grow<V: Values>(&mut self, values: &V) -> Option<()> {
        let length = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(length, 0);
        for number in 0..self.firsts.len() {
            let hash = V::hash(values.at(self.firsts[number] as usize));
            let (slot, _) = self.search(hash, |_| false)?;
            self.slots[slot] = entry(hash, number);
        }
        Some(())
    }
}

/// What a slot holds: the low half of the hash, whose high half chose the slot.
fn entry(hash: u64, number: usize) -> u64 {
    hash << 32 | (number as u64 + 1)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::layers::Store;
    use crate::scalar::Scalar;

    /// Numbers; those of `BAD` with one hash for all.
    struct Numbers<const BAD: bool>(Vec<u64>);

    impl<const BAD: bool> Values for Numbers<BAD> {
        type Item = u64;
        fn len(&self) -> usize {
            self.0.len()
        }
        fn at(&self, at: usize) -> u64 {
            self.0[at]
        }
        fn hash(item: u64) -> u64 {
            if BAD { 42 } else { item.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
        }
        fn prefix(item: u64) -> u64 {
            item / 4
        }
        fn order(a: u64, b: u64) -> Ordering {
            a.cmp(&b)
        }
        fn scalar(item: u64) -> Scalar {
            Scalar::Integer(item as i64)
        }
        fn runs(&self) -> usize {
            self.0.len()
        }
        fn plain_bytes(&self) -> usize {
            self.0.len() * 8
        }
        fn bytes_each(&self) -> usize {
            8
        }
        fn pick(&self, at: &[u32]) -> Self {
            Self(at.iter().map(|at| self.0[*at as usize]).collect())
        }
        fn plain(&self) -> Store<Vec<u8>> {
            Store::Plain(Vec::new())
        }
    }

    fn mixed(count: u64, values: u64) -> Vec<u64> {
        (0..count).map(|row| (row.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20) % values).collect()
    }

    /// The values that codes lead to, and that entries ascend.
    fn assert_leads_back<const BAD: bool>(values: &Numbers<BAD>, dictionary: &Dictionary) {
        let entries = values.pick(&dictionary.entries).0;
        assert!(entries.is_sorted_by(|a, b| a < b));
        for (at, value) in values.0.iter().enumerate() {
            let code = crate::numbers::code_at(dictionary.width, &dictionary.codes, at);
            assert_eq!(entries[code as usize], *value);
        }
    }

    #[test]
    fn values_with_one_hash_are_told_apart_until_there_are_too_many() {
        let values = Numbers::<true>(mixed(3000, 200));
        let dictionary = Distinct::default().build(&values, ENTRIES, 200).expect("200 collide");
        assert_leads_back(&values, &dictionary);
        let values = Numbers::<true>(mixed(3000, 300));
        assert!(Distinct::default().build(&values, ENTRIES, 300).is_none());
    }

    #[test]
    fn dictionary_grows_beyond_what_was_expected_up_to_its_limit() {
        let values = Numbers::<false>(mixed(20_000, 5000));
        let mut distinct = Distinct::default();
        let dictionary = distinct.build(&values, ENTRIES, 1).expect("there is no limit");
        assert_leads_back(&values, &dictionary);
        let entries = dictionary.entries.len();
        assert!(distinct.build(&values, entries, 1).is_some());
        assert!(distinct.build(&values, entries - 1, 1).is_none());
    }

    #[test]
    fn estimate_of_evenly_frequent_values_is_about_right() {
        let mut distinct = Distinct::default();
        for values in [1, 10, 300, 2000, 8000] {
            let values = Numbers::<false>(mixed(16_384, values));
            let found = distinct.estimate(&values);
            let expected = values.0.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert!(found >= expected * 3 / 4 && found <= expected * 4 / 3, "{found} instead of {expected}");
        }
        let few = (0..500).map(|row| row % 77).collect();
        assert_eq!(distinct.estimate(&Numbers::<false>(few)), 77);
    }
}
