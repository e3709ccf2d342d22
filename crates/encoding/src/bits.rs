//! Bits in words of 64: bit `i` is bit `i % 64` of word `i / 64`.

use std::ops::Range;

/// Words for so many bits.
#[inline]
pub(crate) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// Whether bit `at` is set.
#[inline]
pub(crate) fn get(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

/// How many bits are set.
#[inline]
pub(crate) fn count(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// The bits of the word `word` that lie in `range`, which is not empty and touches it.
#[inline]
fn within(range: &Range<usize>, word: usize) -> u64 {
    let (first, last) = (range.start.max(word * 64), (range.end - 1).min(word * 64 + 63));
    (u64::MAX << (first % 64)) & (u64::MAX >> (63 - last % 64))
}

/// The words that `range` touches; none if it is empty.
#[inline]
fn touched(range: &Range<usize>) -> Range<usize> {
    if range.is_empty() { 0..0 } else { range.start / 64..(range.end - 1) / 64 + 1 }
}

/// How many bits of `range` are set.
#[inline]
pub(crate) fn count_in(bits: &[u64], range: Range<usize>) -> usize {
    touched(&range).map(|word| (bits[word] & within(&range, word)).count_ones() as usize).sum()
}

/// Whether a bit of `range` is set.
#[inline]
pub(crate) fn any_in(bits: &[u64], range: Range<usize>) -> bool {
    touched(&range).any(|word| bits[word] & within(&range, word) != 0)
}

/// Clears the bits of `range`.
#[inline]
pub(crate) fn clear_range(bits: &mut [u64], range: Range<usize>) {
    for word in touched(&range) {
        bits[word] &= !within(&range, word);
    }
}

/// Sets the bits of `range`.
#[inline]
pub(crate) fn set_range(bits: &mut [u64], range: Range<usize>) {
    for word in touched(&range) {
        bits[word] |= within(&range, word);
    }
}

/// Clears what the last word has beyond `bits` bits, for which there are just enough words.
#[inline]
pub(crate) fn clear_tail(words: &mut [u64], bits: usize) {
    if !bits.is_multiple_of(64) {
        words[bits / 64] &= (1 << (bits % 64)) - 1;
    }
}

/// The places of the bits that are set in a word.
#[inline]
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        let some = word != 0;
        word &= word.wrapping_sub(1);
        some.then_some(at)
    })
}

/// How many ranges of set bits there are.
pub(crate) fn count_ranges(bits: &[u64]) -> usize {
    let mut before = 0;
    let begins = |word: &u64| {
        let first = word & !(word << 1 | before);
        before = word >> 63;
        first.count_ones() as usize
    };
    bits.iter().map(begins).sum()
}

/// Calls `take` with each range of set bits.
pub(crate) fn for_each_range(bits: &[u64], mut take: impl FnMut(Range<usize>)) {
    let end = bits.len() * 64;
    let next = |from: usize, flip: u64| {
        let mut word = from / 64;
        let mut rest = (bits.get(word)? ^ flip) & (u64::MAX << (from % 64));
        while rest == 0 {
            word += 1;
            rest = bits.get(word)? ^ flip;
        }
        Some(word * 64 + rest.trailing_zeros() as usize)
    };
    let mut from = 0;
    while let Some(first) = next(from, 0) {
        from = next(first, u64::MAX).unwrap_or(end);
        take(first..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_set_counted_cleared_and_found() {
        let mut bits = [0_u64; 3];
        for (range, count) in [(3..70, 67), (0..0, 0), (128..192, 64), (63..64, 1), (64..128, 64)] {
            bits.fill(0);
            set_range(&mut bits, range.clone());
            assert_eq!(super::count(&bits), count);
            assert_eq!(count_in(&bits, range.clone()), count);
            assert!(!any_in(&bits, 0..range.start));
            assert!(!any_in(&bits, range.end..192));
            let mut found = Vec::new();
            for_each_range(&bits, |range| found.push(range));
            assert_eq!(found.len(), count_ranges(&bits));
            assert_eq!(found, if range.is_empty() { vec![] } else { vec![range.clone()] });
            clear_range(&mut bits, range);
            assert_eq!(bits, [0; 3]);
        }
    }

    #[test]
    fn separate_ranges_are_counted_across_words() {
        let mut bits = [0_u64; 3];
        set_range(&mut bits, 60..65);
        set_range(&mut bits, 66..67);
        set_range(&mut bits, 127..129);
        assert_eq!(count_ranges(&bits), 3);
        assert_eq!(ones(bits[1]).collect::<Vec<_>>(), [0, 2, 63]);
        assert!(get(&bits, 128) && !get(&bits, 65));
        set_range(&mut bits, 180..192);
        clear_tail(&mut bits, 182);
        assert_eq!(count(&bits), 8 + 2);
        clear_tail(&mut bits, 192);
        assert_eq!(count(&bits), 8 + 2);
    }
}
