//! The prefixes of one node and searching them: 64, those past the node's length all ones.
//!
//! Prefixes lie in halves, sign bits flipped, so that the compiler compares four at once with
//! AVX2, which knows only signed 64-bit integers. A search compares three of them to choose a group
//! of sixteen and then the group, without a branch to mispredict, and the cache misses of each of
//! the two steps overlap. It looks at upper halves alone unless some equal the probe's: half the
//! cache lines, and descents through a big tree wait for little else.

use std::cmp::Ordering;

use super::prefetch_line;

/// Entries in a node.
pub(super) const CAP: usize = 64;

const GROUP: usize = 16;

/// What fills the places past a node's length.
const FILL: u128 = u128::MAX;

const SIGN: u64 = 1 << 63;

#[inline(always)]
fn halves(key: u128) -> (i64, i64) {
    (((key >> 64) as u64 ^ SIGN) as i64, (key as u64 ^ SIGN) as i64)
}

/// The prefixes of a node.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Keys {
    upper: [i64; CAP],
    lower: [i64; CAP],
}

impl Keys {
    pub(super) const FILLED: Self = Self { upper: [i64::MAX; CAP], lower: [i64::MAX; CAP] };

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> u128 {
        u128::from(self.upper[at] as u64 ^ SIGN) << 64 | u128::from(self.lower[at] as u64 ^ SIGN)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, at: usize, key: u128) {
        (self.upper[at], self.lower[at]) = halves(key);
    }

    /// Whether every place from `at` on is filling.
    pub(super) fn is_filled_from(&self, at: usize) -> bool {
        (at..CAP).all(|at| self.get(at) == FILL)
    }

    /// Makes room at `at` among the first `len`.
    #[inline]
    pub(super) fn insert(&mut self, at: usize, len: usize, key: u128) {
        debug_assert!(at <= len && len < CAP, "there is room for one more");
        if at < len {
            self.upper.copy_within(at..len, at + 1);
            self.lower.copy_within(at..len, at + 1);
        }
        self.set(at, key);
    }

    /// Closes the gap at `at` among the first `len`.
    #[inline]
    pub(super) fn remove(&mut self, at: usize, len: usize) {
        debug_assert!(at < len && len <= CAP, "the key is there");
        self.upper.copy_within(at + 1..len, at);
        self.lower.copy_within(at + 1..len, at);
        self.set(len - 1, FILL);
    }

    /// Copies `from[start..start + count]` to `at`.
    pub(super) fn copy_from(&mut self, at: usize, from: &Self, start: usize, count: usize) {
        self.upper[at..at + count].copy_from_slice(&from.upper[start..start + count]);
        self.lower[at..at + count].copy_from_slice(&from.lower[start..start + count]);
    }

    pub(super) fn fill_from(&mut self, at: usize) {
        self.upper[at..].fill(i64::MAX);
        self.lower[at..].fill(i64::MAX);
    }

    /// Asks the processor for the upper halves: what a search looks at first.
    #[inline]
    pub(super) fn prefetch(&self) {
        for at in (0..CAP).step_by(8) {
            prefetch_line(&raw const self.upper[at]);
        }
    }

    /// The number of keys below the probe and, if it is `inclusive`, of those equal to it; `near` is
    /// told the group as soon as it is known.
    #[inline(always)]
    fn count(&self, probe: u128, inclusive: bool, near: impl Fn(usize)) -> usize {
        let (upper, lower) = halves(probe);
        let below = |at: usize| usize::from(self.upper[at] < upper);
        let start = (below(GROUP - 1) + below(2 * GROUP - 1) + below(3 * GROUP - 1)) * GROUP;
        near(start);
        // At most `CAP - GROUP`, so the group is in bounds; saying so lets the compiler know too.
        let mut less = 0i64;
        for &other in &self.upper[start..start + GROUP] {
            less += i64::from(other < upper);
        }
        // Upper halves ascend, so the first equal one, if there is one, is here. Mostly it is alone.
        let at = start + less as usize;
        if self.upper.get(at) != Some(&upper) {
            return at;
        }
        if self.upper.get(at + 1) == Some(&upper) {
            return self.count_by_both(upper, lower, inclusive);
        }
        let other = self.lower[at];
        at + usize::from(other < lower || (inclusive && other == lower))
    }

    #[inline(never)]
    fn count_by_both(&self, upper: i64, lower: i64, inclusive: bool) -> usize {
        match inclusive {
            false => self.count_while(|u, l| (u < upper) | ((u == upper) & (l < lower))),
            true => self.count_while(|u, l| (u < upper) | ((u == upper) & (l <= lower))),
        }
    }

    /// The number of keys before the first one that is not `before` the probe's halves.
    #[inline(always)]
    fn count_while(&self, before: impl Fn(i64, i64) -> bool) -> usize {
        let test = |at: usize| before(self.upper[at], self.lower[at]);
        let groups = usize::from(test(GROUP - 1))
            + usize::from(test(2 * GROUP - 1))
            + usize::from(test(3 * GROUP - 1));
        let start = groups * GROUP;
        // At most `CAP - GROUP`, so the group is in bounds; saying so lets the compiler know too.
        let (upper, lower) = (&self.upper[start..start + GROUP], &self.lower[start..start + GROUP]);
        let mut within = 0i64;
        for (&upper, &lower) in upper.iter().zip(lower) {
            within += i64::from(before(upper, lower));
        }
        start + within as usize
    }

    /// The number of keys below `probe`. So the filling is never counted.
    #[inline(always)]
    pub(super) fn below(&self, probe: u128) -> usize {
        let at = self.count(probe, false, |_| ());
        debug_assert!(at == 0 || self.get(at - 1) < probe, "what stands before is below");
        debug_assert!(at == CAP || self.get(at) >= probe, "what stands there is not below");
        at
    }

    /// [`Keys::below`] that asks for the cache lines with the TIDs that may belong to the result
    /// while it is still searching: one wait for memory less.
    #[inline(always)]
    pub(super) fn below_for_tid(&self, tids: &[u64; CAP], probe: u128) -> usize {
        self.count(probe, false, |group| {
            prefetch_line(tids.as_ptr().wrapping_add(group));
            prefetch_line(tids.as_ptr().wrapping_add(group + GROUP / 2));
        })
    }

    /// The number of keys, among the first `len`, not above `probe`.
    #[inline(always)]
    pub(super) fn up_to(&self, len: usize, probe: u128) -> usize {
        // The filling equals a probe of all ones, hence `min`.
        let at = self.count(probe, true, |_| ()).min(len);
        debug_assert!(at == 0 || self.get(at - 1) <= probe, "what stands before is not above");
        debug_assert!(at == len || self.get(at) > probe, "what stands there is above");
        at
    }
}

/// Among the entries `from..to`, all with the probe's prefix and ordered by `tie`: the equal one,
/// or where it would be.
#[inline]
pub(super) fn among_equals(
    tids: &[u64; CAP],
    mut from: usize,
    mut to: usize,
    tie: &mut impl FnMut(u64) -> Ordering,
) -> Result<usize, usize> {
    debug_assert!(from <= to && to <= CAP, "equals stand in one node");
    while from < to {
        let middle = (from + to) / 2;
        match tie(tids[middle]) {
            Ordering::Equal => return Ok(middle),
            Ordering::Less => to = middle,
            Ordering::Greater => from = middle + 1,
        }
    }
    Err(from)
}
