//! What a column is made of, from the rows down: which are NULL, runs, codes, and the store of values below.
//!
//! ```text
//! row --Runs--> number of the run --Codes--> number of the value in the dictionary --Store--> value
//!      or none: the row              or none: the number as it is
//! ```
//!
//! A *place* is a position in the store. Invariants, which the encoder keeps and `check` looks at:
//! - L-1 Ends of runs ascend, and the last is the last row.
//! - L-2 Codes are below the number of entries, which is the length of the store, and entries ascend strictly, in SQL's
//!   order and among equals in that of bits.
//! - L-3 Offsets ascend from 0 to the length of the texts.
//! - L-4 No integer of a store is outside the limits of its kind.
//! - L-5 Each code of a packed text is below the number of symbols. Nothing is packed where there are runs or codes.
//!
//! - L-6 Only the texts of a dictionary are lent, as many as it has entries (`lending`).
//! - L-7 Symbols of compressed texts are such that `fsst` can have made them. Each code is of one of them, or an escape with
//!   a byte. Nothing is compressed where there are runs or codes.

use std::ops::Range;

use crate::bits;
use crate::compressed::Compressed;
use crate::lent::Lent;
use crate::numbers::{Width, code_at};
use crate::offsets::text_range;
use crate::packed::Packed;
use crate::scalar::{Kind, Scalar, ScalarRef, f32_key, f64_key, i128_key};
use crate::section::Section;

/// Which rows are NULL. Of rows that were dead when they were encoded it may say either.
#[derive(Clone, Debug)]
pub(crate) enum Nulls<S> {
    None,
    All,
    /// A bit for each row, in whole words; none is set behind the last row.
    Bits(S),
    /// The first and the last row of each range, ascending and apart.
    Ranges(S),
}

fn u16_at(pair: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([pair[at], pair[at + 1]])
}

/// The ranges of a section of ranges.
pub(crate) fn ranges(bytes: &[u8]) -> impl ExactSizeIterator<Item = Range<usize>> {
    let pairs = bytes.as_chunks::<4>().0;
    pairs.iter().map(|pair| usize::from(u16_at(pair, 0))..usize::from(u16_at(pair, 2)) + 1)
}

/// The words of a section of bits.
pub(crate) fn null_words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

impl<S: Section> Nulls<S> {
    /// Whether `row` is NULL.
    #[inline]
    pub(crate) fn contains(&self, row: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Bits(section) => section.bytes()[row / 8] >> (row % 8) & 1 == 1,
            Self::Ranges(section) => {
                let pairs = section.bytes().as_chunks::<4>().0;
                let behind = pairs.partition_point(|pair| usize::from(u16_at(pair, 0)) <= row);
                behind > 0 && row <= usize::from(u16_at(&pairs[behind - 1], 2))
            }
        }
    }

    /// Clears the bits of rows that are NULL.
    pub(crate) fn clear(&self, mask: &mut [u64]) {
        match self {
            Self::None => {}
            Self::All => mask.fill(0),
            Self::Bits(section) => {
                for (word, nulls) in mask.iter_mut().zip(null_words(section.bytes())) {
                    *word &= !nulls;
                }
            }
            Self::Ranges(section) => {
                for range in ranges(section.bytes()) {
                    bits::clear_range(mask, range);
                }
            }
        }
    }

    /// Clears the bits of rows that are not NULL.
    pub(crate) fn keep(&self, mask: &mut [u64]) {
        match self {
            Self::None => mask.fill(0),
            Self::All => {}
            Self::Bits(section) => {
                for (word, nulls) in mask.iter_mut().zip(null_words(section.bytes())) {
                    *word &= nulls;
                }
            }
            Self::Ranges(section) => {
                let mut from = 0;
                for range in ranges(section.bytes()) {
                    bits::clear_range(mask, from..range.start);
                    from = range.end;
                }
                bits::clear_range(mask, from..mask.len() * 64);
            }
        }
    }
}

/// Rows that follow each other and have one value, by the last row of each.
#[derive(Clone, Debug)]
pub(crate) struct Runs<S> {
    pub(crate) count: u32,
    pub(crate) ends: S,
}

impl<S: Section> Runs<S> {
    #[inline]
    pub(crate) fn list(&self) -> &[[u8; 2]] {
        self.ends.bytes().as_chunks().0
    }

    /// The number of the run that `row` is in: a binary search.
    #[inline]
    pub(crate) fn find(&self, row: usize) -> usize {
        self.list().partition_point(|end| usize::from(u16::from_le_bytes(*end)) < row)
    }

    /// The same, if it is not before run `from`: reads the ends from there on, so it is for what is not far.
    #[inline]
    pub(crate) fn find_from(&self, from: usize, row: usize) -> usize {
        /// Ends that are passed at once, and compared side by side where it is one of them.
        const TOGETHER: usize = 32;
        let Ok(row) = u16::try_from(row) else { return self.list().len() };
        let (list, mut run) = (self.list(), from);
        let is_before = |end: &[u8; 2]| u16::from_le_bytes(*end) < row;
        while list.get(run + TOGETHER - 1).is_some_and(is_before) {
            run += TOGETHER;
        }
        let rest = list[run..].iter().take(TOGETHER);
        run + usize::from(rest.map(|end| u16::from(is_before(end))).sum::<u16>())
    }

    /// Calls `take` with each run that has some of `rows`, which ascend, and with how many of them; a search for each row.
    pub(crate) fn for_each_of(&self, rows: impl Iterator<Item = usize>, mut take: impl FnMut(usize, usize)) {
        let (list, mut run, mut times) = (self.list(), 0, 0);
        for row in rows {
            let behind = list[run..].partition_point(|end| usize::from(u16::from_le_bytes(*end)) < row);
            if behind > 0 && times > 0 {
                take(run, std::mem::take(&mut times));
            }
            run += behind;
            times += 1;
        }
        if times > 0 {
            take(run, times);
        }
    }

    /// The rows of each run, from run `first` on.
    pub(crate) fn ranges(&self, first: usize) -> impl Iterator<Item = Range<usize>> {
        let list = self.list();
        let end = |run: usize| usize::from(u16::from_le_bytes(list[run])) + 1;
        let mut from = if first == 0 { 0 } else { end(first - 1) };
        (first..list.len()).map(move |run| {
            let range = from..end(run);
            from = range.end;
            range
        })
    }
}

/// Numbers of values in a sorted dictionary, which the store has.
#[derive(Clone, Debug)]
pub(crate) struct Codes<S> {
    /// One or two bytes.
    pub(crate) width: Width,
    pub(crate) section: S,
    /// The length of the dictionary, 1 to 65,536.
    pub(crate) entries: u32,
}

impl<S: Section> Codes<S> {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> usize {
        let bytes = self.section.bytes();
        match self.width {
            Width::One => bytes[at].into(),
            _ => u16::from_le_bytes(bytes.as_chunks().0[at]).into(),
        }
    }
}

/// Values by place.
#[derive(Clone, Debug)]
pub(crate) enum Store<S> {
    /// One value at every place.
    Constant(Scalar),
    /// Frame of reference: a value is `base` and its code, added.
    Integers { base: i64, width: Width, codes: S },
    /// Values as they are, little endian; UUIDs in their order.
    Plain(S),
    /// Texts of one length, in bytes.
    FixedTexts { length: u32, bytes: S },
    /// Texts from offset to offset.
    Texts { offsets: S, bytes: S },
    /// Texts of few different bytes; of rows alone, so that what runs and dictionaries have can be lent.
    Packed(Packed<S>),
    /// Texts in strings that are frequent; of rows alone, likewise.
    Compressed(Compressed<S>),
    /// Texts of a dictionary, that somebody else has.
    Lent(Lent),
}

impl<S: Section> Store<S> {
    /// The same store with its bytes where they are.
    pub(crate) fn borrowed(&self) -> Store<&[u8]> {
        match self {
            Self::Constant(scalar) => Store::Constant(scalar.clone()),
            Self::Integers { base, width, codes } => {
                Store::Integers { base: *base, width: *width, codes: codes.bytes() }
            }
            Self::Plain(section) => Store::Plain(section.bytes()),
            Self::FixedTexts { length, bytes: texts } => {
                Store::FixedTexts { length: *length, bytes: texts.bytes() }
            }
            Self::Texts { offsets, bytes: texts } => {
                Store::Texts { offsets: offsets.bytes(), bytes: texts.bytes() }
            }
            Self::Packed(packed) => Store::Packed(packed.borrowed()),
            Self::Compressed(texts) => Store::Compressed(texts.borrowed()),
            Self::Lent(lent) => Store::Lent(lent.clone()),
        }
    }

    /// The value at `place`, which a store for `kind` has; it is neither packed nor compressed.
    #[inline]
    pub(crate) fn scalar(&self, kind: Kind, place: usize) -> ScalarRef<'_> {
        match self {
            Self::Constant(scalar) => scalar.as_ref(),
            Self::Integers { base, width, codes } => {
                ScalarRef::Integer(base.wrapping_add(code_at(*width, codes.bytes(), place) as i64))
            }
            Self::Plain(section) => {
                let bytes = section.bytes();
                match kind {
                    Kind::F32 => ScalarRef::F32(u32::from_le_bytes(bytes.as_chunks().0[place])),
                    Kind::F64 => ScalarRef::F64(u64::from_le_bytes(bytes.as_chunks().0[place])),
                    Kind::I128 => ScalarRef::I128(i128::from_le_bytes(bytes.as_chunks().0[place])),
                    _ => ScalarRef::Uuid(bytes.as_chunks().0[place]),
                }
            }
            Self::FixedTexts { .. }
            | Self::Texts { .. }
            | Self::Packed(_)
            | Self::Compressed(_)
            | Self::Lent(_) => ScalarRef::Text(self.text(place)),
        }
    }

    /// The text at `place`; it is neither packed nor compressed.
    #[inline]
    pub(crate) fn text(&self, place: usize) -> &[u8] {
        match self {
            Self::FixedTexts { length, bytes } => {
                let length = *length as usize;
                &bytes.bytes()[place * length..][..length]
            }
            Self::Texts { offsets, bytes } => &bytes.bytes()[text_range(offsets.bytes(), place)],
            Self::Lent(lent) => lent.list.text(place),
            Self::Constant(Scalar::Text(text)) => text,
            Self::Packed(_) | Self::Compressed(_) => wrong_kind("texts that can be lent"),
            _ => wrong_kind("texts"),
        }
    }
}

/// What a function was called for that the column is not of.
#[cold]
#[inline(never)]
pub(crate) fn wrong_kind(wanted: &str) -> ! {
    panic!("the column does not hold {wanted}")
}

/// The integer that a value is.
pub(crate) fn integer(value: ScalarRef<'_>) -> i64 {
    match value {
        ScalarRef::Integer(value) => value,
        _ => wrong_kind("integers"),
    }
}

/// Bytes that a value of a kind is stored in as it is, and what they are compared as.
pub(crate) mod keys {
    use super::{f32_key, f64_key, i128_key};

    pub(crate) fn f32(bytes: [u8; 4]) -> u32 {
        f32_key(u32::from_le_bytes(bytes))
    }

    pub(crate) fn f64(bytes: [u8; 8]) -> u64 {
        f64_key(u64::from_le_bytes(bytes))
    }

    pub(crate) fn i128(bytes: [u8; 16]) -> u128 {
        i128_key(i128::from_le_bytes(bytes))
    }

    pub(crate) fn uuid(bytes: [u8; 16]) -> u128 {
        u128::from_be_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_a_row_is_found_from_any_before_it() {
        for count in [1_usize, 2, 31, 32, 33, 64, 65, 100] {
            // Runs of 1 to 3 rows, the last up to the last row that there can be.
            let ends = (0..count).scan(0_u16, |end, run| {
                *end = if run + 1 == count { u16::MAX } else { *end + 1 + (run % 3) as u16 };
                Some(*end)
            });
            let ends: Vec<u8> = ends.flat_map(u16::to_le_bytes).collect();
            let runs = Runs { count: count as u32, ends };
            for row in (0..300).chain([usize::from(u16::MAX)]) {
                let run = runs.find(row);
                for from in 0..=run {
                    assert_eq!(runs.find_from(from, row), run, "row {row} of {count} runs from {from}");
                }
            }
        }
    }
}
