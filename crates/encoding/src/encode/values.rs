//! What the choice of a form asks of a list of values.

use std::cmp::Ordering;

use crate::layers::Store;
use crate::scalar::Scalar;

/// A list of values of one kind, at least one.
pub(super) trait Values: Sized {
    /// A value; equal if its bits are.
    type Item: Copy + Eq;

    /// How many there are.
    fn len(&self) -> usize;

    /// The value at `at`.
    fn at(&self, at: usize) -> Self::Item;

    /// A hash whose high bits are good.
    fn hash(item: Self::Item) -> u64;

    /// A number whose order is SQL's, though values that differ may have the same.
    fn prefix(item: Self::Item) -> u64;

    /// SQL's order, and among values that are equal in it that of bits.
    fn order(a: Self::Item, b: Self::Item) -> Ordering;

    /// The value on its own.
    fn scalar(item: Self::Item) -> Scalar;

    /// How many times a value follows that is not the one before, and one.
    fn runs(&self) -> usize;

    /// The bytes that [`Values::plain`] will have.
    fn plain_bytes(&self) -> usize;

    /// The bytes that one of a few of the values will have, about.
    fn bytes_each(&self) -> usize;

    /// The values at these places.
    fn pick(&self, at: &[u32]) -> Self;

    /// All values one after the other.
    fn plain(&self) -> Store<Vec<u8>>;
}

/// Calls `take` with the place of each value that is not equal to the one before, and of the first.
pub(super) fn for_each_run<V: Values>(values: &V, mut take: impl FnMut(usize)) {
    let mut before = values.at(0);
    take(0);
    for at in 1..values.len() {
        let value = values.at(at);
        if value != before {
            take(at);
            before = value;
        }
    }
}
