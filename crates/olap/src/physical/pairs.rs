//! Pairs of numbers, numbered in the order in which they are met.
//!
//! Several keys are numbered pair by pair: the number of the first and the second, then of that pair and the third. An
//! open hash table, because its entries are the numbers alone: 4 bytes, and the pair is looked at behind them.

use std::ops::Range;

/// The pairs that were met.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// By number: the pair.
    pairs: Vec<u64>,
    /// By hash: the number plus one; 0 means none. At least twice as many as pairs, a power of two.
    slots: Vec<u32>,
}

/// Slots of a table that is new.
const FIRST_SLOTS: usize = 1024;

impl Pairs {
    /// How many there are; numbers are below it.
    pub(super) fn count(&self) -> usize {
        self.pairs.len()
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pairs.capacity() * size_of::<u64>() + self.slots.capacity() * size_of::<u32>()
    }

    /// The first and the second of pair `number`.
    pub(super) fn pair(&self, number: usize) -> (u32, u32) {
        let pair = self.pairs[number];
        ((pair >> 32) as u32, pair as u32)
    }

    /// Makes each number that of the pair that it is with the second one.
    pub(super) fn number(&mut self, numbers: &mut [u32], seconds: impl Iterator<Item = u32>) {
        for (number, second) in numbers.iter_mut().zip(seconds) {
            *number = self.find(u64::from(*number) << 32 | u64::from(second));
        }
    }

    #[inline]
    fn find(&mut self, pair: u64) -> u32 {
        if self.pairs.len() * 2 >= self.slots.len() {
            self.grow();
        }
        for slot in self.probes(pair) {
            match self.slots[slot] {
                0 => {
                    self.pairs.push(pair);
                    self.slots[slot] = self.pairs.len() as u32;
                    break;
                }
                number if self.pairs[number as usize - 1] == pair => return number - 1,
                _ => {}
            }
        }
        self.pairs.len() as u32 - 1
    }

    /// The slots where a pair may be, in order.
    #[inline]
    fn probes(&self, pair: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        // Both halves reach the upper bits, which are taken.
        let hash = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start = (hash >> 32) as usize;
        let all: Range<usize> = 0..mask + 1;
        all.map(move |probe| (start + probe) & mask)
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for number in 0..self.pairs.len() {
            let free = self.probes(self.pairs[number]).find(|slot| self.slots[*slot] == 0);
            if let Some(slot) = free {
                self.slots[slot] = number as u32 + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use albireo_testing::Random;

    use super::*;

    #[test]
    fn pairs_have_one_number_each_and_come_back() {
        let mut random = Random::new(1);
        let mut pairs = Pairs::default();
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for most in [3, 100, 100_000, u64::from(u32::MAX) + 1] {
            let draw = |random: &mut Random| random.below(most) as u32;
            let drawn: Vec<(u32, u32)> = (0..5_000).map(|_| (draw(&mut random), draw(&mut random))).collect();
            let mut numbers: Vec<u32> = drawn.iter().map(|pair| pair.0).collect();
            pairs.number(&mut numbers, drawn.iter().map(|pair| pair.1));
            for (pair, number) in drawn.into_iter().zip(numbers) {
                let next = known.len() as u32;
                assert_eq!(*known.entry(pair).or_insert(next), number);
                assert_eq!(pairs.pair(number as usize), pair);
            }
            assert_eq!(pairs.count(), known.len());
        }
    }
}
