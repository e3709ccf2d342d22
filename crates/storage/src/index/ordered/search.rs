//! Search in one node: 64 prefixes, those past the node's length filled with `u128::MAX`.
//!
//! Two levels of eight comparisons that do not depend on each other: on a cold node their cache
//! misses overlap, and there is no branch to mispredict.

use std::cmp::Ordering;

use super::super::prefetch_line;

/// Entries in a node.
pub(super) const CAP: usize = 64;

const FAN: usize = 8;

macro_rules! count {
    ($keys:expr, $start:expr, $stride:expr, $test:expr) => {{
        let mut count = 0;
        let mut i = 0;
        while i < FAN {
            // SAFETY: `$start + $stride * i < CAP`: either start = 7 and stride = 8, or start is a
            // multiple of 8 below 64 and stride = 1; `i < 8`.
            let key = unsafe { *$keys.get_unchecked($start + $stride * i) };
            count += $test(key) as usize;
            i += 1;
        }
        count
    }};
}

#[inline(always)]
fn count_while(keys: &[u128; CAP], test: impl Fn(u128) -> bool, near: impl Fn(usize)) -> usize {
    let full: usize = count!(keys, FAN - 1, FAN, test);
    let start = full.min(FAN - 1) * FAN;
    near(start);
    let within: usize = count!(keys, start, 1, test);
    start + within
}

/// The number of keys below `probe`. So the filling is never counted.
#[inline(always)]
pub(super) fn lower(keys: &[u128; CAP], probe: u128) -> usize {
    count_while(keys, |key| key < probe, |_| ())
}

/// [`lower`] that asks for the cache line with the TID that belongs to the result, as soon as it is
/// known to a group of eight: one wait for memory less.
#[inline(always)]
pub(super) fn lower_for_tid(keys: &[u128; CAP], tids: &[u64; CAP], probe: u128) -> usize {
    count_while(keys, |key| key < probe, |group| prefetch_line(tids.as_ptr().wrapping_add(group)))
}

/// The number of keys, among the first `len`, not above `probe`.
#[inline(always)]
pub(super) fn upper(keys: &[u128; CAP], len: usize, probe: u128) -> usize {
    // The filling equals a probe of all ones, hence `min`.
    count_while(keys, |key| key <= probe, |_| ()).min(len)
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
