//! Tests values of a sorted dictionary, and then codes.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use super::Test;
use super::keep::{keep, keep_wanted};
use super::wanted::Wanted;
use crate::bits;
use crate::column::Column;
use crate::layers::Codes;
use crate::numbers::{Code as _, Width};
use crate::scalar::ScalarRef;
use crate::section::Section;

/// Clears the bits of positions whose codes stand for values that do not pass.
pub(super) fn select<S: Section>(
    column: &Column<S>,
    codes: &Codes<S>,
    test: &mut Test<'_>,
    mask: &mut [u64],
) {
    let entries = codes.entries as usize;
    let value = |code| column.store.scalar(column.kind, code);
    let below = |wanted: ScalarRef<'_>| point(entries, |code| value(code).compare(wanted) == Ordering::Less);
    let up_to =
        |wanted: ScalarRef<'_>| point(entries, |code| value(code).compare(wanted) != Ordering::Greater);
    let mut passing = vec![];
    let range = match test {
        Test::Equal(wanted) => below(*wanted)..up_to(*wanted),
        Test::Between(lower, upper) => {
            let first = match lower {
                Bound::Unbounded => 0,
                Bound::Included(wanted) => below(*wanted),
                Bound::Excluded(wanted) => up_to(*wanted),
            };
            let end = match upper {
                Bound::Unbounded => entries,
                Bound::Included(wanted) => up_to(*wanted),
                Bound::Excluded(wanted) => below(*wanted),
            };
            first..end
        }
        Test::Prefix(prefix) => {
            let text = |code| column.store.text(code);
            let first = point(entries, |code| text(code) < *prefix);
            first..point(entries, |code| text(code) < *prefix || text(code).starts_with(prefix))
        }
        Test::IsNull => 0..0,
        Test::IsNotNull => 0..entries,
        Test::In(list) => {
            passing.resize(bits::words(entries), 0);
            for wanted in list.iter() {
                bits::set_range(&mut passing, below(*wanted)..up_to(*wanted));
            }
            range_of(&passing)
        }
        Test::Stored(stored) => {
            passing.extend_from_slice(stored);
            range_of(&passing)
        }
        Test::Suffix(_) | Test::Each(_) => {
            passing.resize(bits::words(entries), 0);
            for code in 0..entries {
                passing[code / 64] |= u64::from(test.passes(value(code))) << (code % 64);
            }
            range_of(&passing)
        }
    };
    // A set without gaps is a range.
    if passing.is_empty() || bits::count(&passing) == range.len() {
        return keep_range(codes, range, mask);
    }
    keep_set(codes, passing, mask);
}

/// How many entries come before the first for which `is_before` is false.
fn point(entries: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut end) = (0, entries);
    while first < end {
        let middle = first + (end - first) / 2;
        if is_before(middle) { first = middle + 1 } else { end = middle }
    }
    first
}

/// From the first bit to behind the last.
fn range_of(bits: &[u64]) -> Range<usize> {
    let first = bits.iter().position(|word| *word != 0);
    let last = bits.iter().rposition(|word| *word != 0);
    let (Some(first), Some(last)) = (first, last) else { return 0..0 };
    let end = last * 64 + 64 - bits[last].leading_zeros() as usize;
    first * 64 + bits[first].trailing_zeros() as usize..end
}

fn keep_range<S: Section>(codes: &Codes<S>, range: Range<usize>, mask: &mut [u64]) {
    if range.is_empty() {
        return mask.fill(0);
    }
    let bytes = codes.section.bytes();
    match codes.width {
        Width::One => {
            let wanted = Wanted::Range(range.start as u8, (range.end - 1) as u8);
            keep_wanted(bytes, |code| code, wanted, mask);
        }
        _ => {
            let wanted = Wanted::Range(range.start as u16, (range.end - 1) as u16);
            keep_wanted(u16::list(bytes), u16::get, wanted, mask);
        }
    }
}

fn keep_set<S: Section>(codes: &Codes<S>, mut passing: Vec<u64>, mask: &mut [u64]) {
    let bytes = codes.section.bytes();
    match codes.width {
        Width::One => {
            let mut table = [false; 256];
            for (code, passes) in table.iter_mut().enumerate().take(codes.entries as usize) {
                *passes = bits::get(&passing, code);
            }
            keep(bytes, mask, |code| table[usize::from(code)]);
        }
        _ => {
            passing.resize(1 << 10, 0);
            let table: &[u64; 1 << 10] = passing.first_chunk().expect("made so long above");
            keep(u16::list(bytes), mask, |code| {
                let code = u16::get(code);
                table[usize::from(code >> 6)] >> (code & 63) & 1 == 1
            });
        }
    }
}
