//! Decides whether keys are dense, and how to lay them out.

use super::array::{DenseArray, Digit};
use crate::key::{Component, KeyShape};

/// An array may span so many positions for each entry.
const SPAN_PER_ENTRY: u128 = 2;
/// The most significant digit may grow until positions pass this.
const MAX_SPAN: u64 = 1 << 44;

/// Ranges of components (sign bits flipped) over a set of keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranges {
    pub(super) keys: usize,
    min: [u64; KeyShape::MAX_COMPONENTS],
    max: [u64; KeyShape::MAX_COMPONENTS],
}

impl Ranges {
    pub(super) const EMPTY: Self =
        Self { keys: 0, min: [u64::MAX; KeyShape::MAX_COMPONENTS], max: [0; KeyShape::MAX_COMPONENTS] };

    /// Takes a key in. Returns the component whose maximum it raised, the last if several.
    #[inline]
    pub(super) fn include(&mut self, components: &[Component], key: u128) -> Option<usize> {
        debug_assert!(components.len() <= KeyShape::MAX_COMPONENTS, "a key has one to four components");
        let mut raised = None;
        self.keys += 1;
        for (i, component) in components.iter().enumerate() {
            let value = component.unsigned(key);
            self.min[i] = self.min[i].min(value);
            if value > self.max[i] {
                self.max[i] = value;
                raised = Some(i);
            }
        }
        raised
    }

    fn union(&self, other: &Self) -> Self {
        let mut union = *self;
        union.keys += other.keys;
        for i in 0..KeyShape::MAX_COMPONENTS {
            union.min[i] = union.min[i].min(other.min[i]);
            union.max[i] = union.max[i].max(other.max[i]);
        }
        union
    }

    /// The ranges that an array covers now; of its most significant digit, as far as there are pages.
    fn of(array: &DenseArray) -> Self {
        let mut ranges = Self::EMPTY;
        if array.len() == 0 {
            return ranges;
        }
        ranges.keys = array.len();
        let positions = array.positions();
        let greatest = array.digits().iter().map(|digit| digit.stride).max().unwrap_or(1);
        for (i, digit) in array.digits().iter().enumerate() {
            // The most significant digit has more than one value, unlike others of its stride.
            let used = if digit.stride == greatest && digit.span > 1 {
                positions.start / greatest..positions.end.div_ceil(greatest).min(digit.span)
            } else {
                0..digit.span
            };
            ranges.min[i] = digit.min + used.start;
            ranges.max[i] = digit.min + (used.end - 1);
        }
        ranges
    }

    /// The number of values of a component, at most 2^64.
    fn span(&self, i: usize) -> u128 {
        debug_assert!(self.min[i] <= self.max[i], "there are keys");
        u128::from(self.max[i] - self.min[i]) + 1
    }

    /// Positions that an array over all combinations would have; `None` if absurdly many.
    fn positions(&self, components: usize) -> Option<u128> {
        (0..components).try_fold(1u128, |product, i| product.checked_mul(self.span(i)))
    }

    fn is_dense(&self, components: usize, keys: usize) -> bool {
        let most = SPAN_PER_ENTRY * keys as u128;
        keys > 0 && self.positions(components).is_some_and(|positions| positions <= most)
    }
}

/// Where keys came from that the plan is made for.
pub(super) struct Evidence<'a> {
    pub(super) components: &'a [Component],
    /// All keys ever put into the hash table, and those since the last plan.
    pub(super) all: &'a Ranges,
    pub(super) recent: &'a Ranges,
    /// The component that grew last, and a bit for each that grew since the last plan.
    pub(super) raised_last: usize,
    pub(super) raised: u32,
    /// The array there is.
    pub(super) array: &'a DenseArray,
    /// Entries of the index.
    pub(super) entries: usize,
}

impl Evidence<'_> {
    /// Digits for an array worth having, if there is one.
    ///
    /// All keys are tried first, then only the array's and the recent ones: keys far off, such as a
    /// sentinel, should not cost the others their array.
    pub(super) fn plan(&self) -> Option<Vec<Digit>> {
        let count = self.components.len();
        let array = Ranges::of(self.array);
        let all = self.all.union(&array);
        if all.is_dense(count, self.entries) {
            return Some(self.digits(&all, self.entries));
        }
        let recent = self.recent.union(&array);
        let keys = recent.keys.min(self.entries);
        (keys * 4 >= self.entries && recent.is_dense(count, keys)).then(|| self.digits(&recent, keys))
    }

    /// The component that grew last becomes the most significant digit, which can go on growing;
    /// the others keep their order. Those that grew too get a quarter more room if that is cheap.
    fn digits(&self, ranges: &Ranges, keys: usize) -> Vec<Digit> {
        let count = self.components.len();
        assert!(ranges.is_dense(count, keys), "only dense keys get an array");
        let widest = (0..count).max_by_key(|&i| ranges.span(i)).unwrap_or(0);
        let top = if ranges.span(self.raised_last) > 1 { self.raised_last } else { widest };
        let mut ranges = *ranges;
        for i in (0..count).filter(|&i| i != top && self.raised >> i & 1 == 1) {
            let mut wider = ranges;
            let most = u64::MAX >> (64 - self.components[i].bits);
            let room = (ranges.span(i) / 4 + 1).min(u128::from(most - ranges.max[i]));
            wider.max[i] += room as u64;
            if wider.is_dense(count, keys) {
                ranges = wider;
            }
        }
        let mut digits = vec![None; count];
        let mut stride = 1u64;
        for i in (0..count).rev().filter(|&i| i != top) {
            // Dense, so spans and strides are far below 2^63.
            let digit = Digit::new(self.components[i], ranges.min[i], ranges.max[i], stride);
            stride *= digit.span;
            digits[i] = Some(digit);
        }
        let most = (u64::MAX >> (64 - self.components[top].bits)).min(MAX_SPAN / stride);
        assert!(most > 0, "dense keys leave room for the digit that grows");
        digits[top] = Some(Digit::new(
            self.components[top],
            ranges.min[top],
            ranges.min[top].saturating_add(most - 1),
            stride,
        ));
        debug_assert!(digits.iter().all(Option::is_some), "each component is a digit");
        digits.into_iter().flatten().collect()
    }
}
