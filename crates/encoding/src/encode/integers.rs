//! Lists of integers, and their frame of reference.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::values::Values;
use crate::bits;
use crate::column::Summary;
use crate::layers::Store;
use crate::numbers::{Width, pack, with_width};
use crate::scalar::{Kind, Scalar};

const SIGN: u64 = 1 << 63;
const LOW: u64 = u32::MAX as u64;

/// Integers, and what one pass over them shows.
pub(super) struct Integers<'a> {
    values: Cow<'a, [i64]>,
    least: i64,
    greatest: i64,
    runs: usize,
    sum: i128,
}

impl<'a> Integers<'a> {
    /// Looks at all values once; there is at least one.
    pub(super) fn new(values: Cow<'a, [i64]>) -> Self {
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        // Halves are added up apart, and signs shifted away, so that nothing overflows: 65,536 times 32 bits.
        let (mut low, mut high) = (0_u64, 0_u64);
        for &value in values.iter() {
            least = least.min(value);
            greatest = greatest.max(value);
            let shifted = value as u64 ^ SIGN;
            low += shifted & LOW;
            high += shifted >> 32;
        }
        let changes = values.windows(2).map(|pair| u64::from(pair[0] != pair[1])).sum::<u64>();
        let sum = (i128::from(high) << 32) + i128::from(low) - values.len() as i128 * i128::from(SIGN);
        Self { values, least, greatest, runs: changes as usize + 1, sum }
    }

    /// Says what is known of the values that are valid; the others have values of valid ones.
    pub(super) fn summarize(&self, kind: Kind, valid: &[u64], summary: &mut Summary) {
        let (least, most) = kind.limits().expect("a kind of integers");
        assert!(
            least <= self.least && self.greatest <= most,
            "live values are within the limits of the kind"
        );
        summary.least = Some(Scalar::Integer(self.least));
        summary.greatest = Some(Scalar::Integer(self.greatest));
        let mut sum = self.sum;
        for (block, word) in self.values.chunks(64).zip(valid).filter(|(_, word)| **word != u64::MAX) {
            sum -= bits::ones(!word)
                .filter_map(|at| block.get(at))
                .map(|value| i128::from(*value))
                .sum::<i128>();
        }
        summary.sum = Some(sum);
    }

    /// The base and the width of codes: 0 where it needs no more than the least value as base would.
    fn frame(&self) -> (i64, Width) {
        let spread = Width::of(self.greatest.wrapping_sub(self.least) as u64);
        match self.least >= 0 && Width::of(self.greatest as u64) == spread {
            true => (0, spread),
            false => (self.least, spread),
        }
    }
}

impl Values for Integers<'_> {
    type Item = i64;

    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn at(&self, at: usize) -> i64 {
        self.values[at]
    }

    #[inline]
    fn hash(item: i64) -> u64 {
        let mixed = (item as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    fn prefix(item: i64) -> u64 {
        item as u64 ^ SIGN
    }

    fn order(a: i64, b: i64) -> Ordering {
        a.cmp(&b)
    }

    fn scalar(item: i64) -> Scalar {
        Scalar::Integer(item)
    }

    fn runs(&self) -> usize {
        self.runs
    }

    fn plain_bytes(&self) -> usize {
        self.len() * self.bytes_each()
    }

    fn bytes_each(&self) -> usize {
        self.frame().1.bytes()
    }

    fn pick(&self, at: &[u32]) -> Self {
        Self::new(at.iter().map(|at| self.values[*at as usize]).collect())
    }

    fn plain(&self) -> Store<Vec<u8>> {
        let (base, width) = self.frame();
        let codes =
            with_width!(width, C => pack::<C, i64>(&self.values, |value| value.wrapping_sub(base) as u64));
        Store::Integers { base, width, codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_is_0_unless_another_saves_a_width() {
        for (values, base, width) in [
            (&[3, 255][..], 0, Width::One),
            (&[3, 256], 3, Width::One),
            (&[0, 256], 0, Width::Two),
            (&[-1, 254], -1, Width::One),
            (&[-1, 255], -1, Width::Two),
            (&[i64::MIN, i64::MAX], i64::MIN, Width::Eight),
            (&[0, i64::MAX], 0, Width::Eight),
            (&[i64::MAX - 255, i64::MAX], i64::MAX - 255, Width::One),
            (&[i64::MIN, i64::MIN + 65_535], i64::MIN, Width::Two),
            (&[1, 1 + 0xffff_ffff], 1, Width::Four),
        ] {
            assert_eq!(Integers::new(values.into()).frame(), (base, width), "{values:?}");
        }
    }

    #[test]
    fn sum_of_extremes_does_not_overflow() {
        for value in [i64::MIN, i64::MAX, -1, 0, 1] {
            let integers = Integers::new(vec![value; 1 << 16].into());
            assert_eq!(integers.sum, i128::from(value) << 16);
            assert_eq!(integers.runs, 1);
        }
    }
}
