//! Lists of texts.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hasher as _;

use rustc_hash::FxHasher;

use super::values::Values;
use crate::bits;
use crate::column::Summary;
use crate::layers::Store;
use crate::scalar::Scalar;

/// Texts, and what one pass over them shows.
#[derive(Clone)]
pub(super) struct Texts<'a> {
    ends: &'a [u32],
    bytes: &'a [u8],
    /// Which texts of the source they are; none if all, in order.
    rows: Option<Cow<'a, [u32]>>,
    /// Which of them count; the others need no bytes. None if all do.
    valid: Option<&'a [u64]>,
    /// Places of the least and the greatest.
    least: usize,
    greatest: usize,
    runs: usize,
    /// The shortest and the longest of those that count, how many they are, and their bytes.
    shortest: usize,
    longest: usize,
    count: usize,
    total: usize,
}

/// The first eight bytes, the first one highest; zeros where there are fewer.
#[inline]
fn prefix(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => text.iter().rev().fold(0, |prefix, byte| prefix >> 8 | u64::from(*byte) << 56),
    }
}

#[inline]
fn is_less(a: (u64, &[u8]), b: (u64, &[u8])) -> bool {
    a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
}

impl<'a> Texts<'a> {
    /// Looks at all texts once; there is at least one. `gaps`: for each row the one whose text it gets, and which of
    /// the rows count.
    pub(super) fn new(ends: &'a [u32], bytes: &'a [u8], gaps: Option<(&'a [u32], &'a [u64])>) -> Self {
        Self::with(ends, bytes, gaps.map(|gaps| gaps.0.into()), gaps.map(|gaps| gaps.1))
    }

    fn with(
        ends: &'a [u32],
        bytes: &'a [u8],
        rows: Option<Cow<'a, [u32]>>,
        valid: Option<&'a [u64]>,
    ) -> Self {
        let (least, greatest, runs, longest, count, total) = (0, 0, 1, 0, 0, 0);
        let shortest = usize::MAX;
        let mut texts =
            Self { ends, bytes, rows, valid, least, greatest, runs, shortest, longest, count, total };
        texts.look();
        texts
    }

    fn look(&mut self) {
        let first = self.at(0);
        let mut before = (prefix(first), first);
        let (mut least, mut greatest) = (before, before);
        for at in 0..self.len() {
            let text = self.at(at);
            let now = (prefix(text), text);
            self.runs += usize::from(now.0 != before.0 || text != before.1);
            before = now;
            if is_less(now, least) {
                (least, self.least) = (now, at);
            }
            if is_less(greatest, now) {
                (greatest, self.greatest) = (now, at);
            }
            if self.counts(at) {
                self.shortest = self.shortest.min(text.len());
                self.longest = self.longest.max(text.len());
                self.count += 1;
                self.total += text.len();
            }
        }
        debug_assert!(self.count > 0 && self.least < self.len() && self.greatest < self.len());
    }

    #[inline]
    fn counts(&self, at: usize) -> bool {
        self.valid.is_none_or(|valid| bits::get(valid, at))
    }

    /// Says what is known of the texts.
    pub(super) fn summarize(&self, summary: &mut Summary) {
        summary.least = Some(Scalar::Text(self.at(self.least).into()));
        summary.greatest = Some(Scalar::Text(self.at(self.greatest).into()));
    }

    /// Whether one length for all is no longer than offsets are.
    fn is_fixed(&self) -> bool {
        self.shortest == self.longest && self.len() * self.longest <= self.offset_bytes()
    }

    fn offset_bytes(&self) -> usize {
        self.total + 4 * (self.len() + 1)
    }
}

impl<'a> Values for Texts<'a> {
    type Item = &'a [u8];

    fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.ends.len(), |rows| rows.len())
    }

    #[inline]
    fn at(&self, at: usize) -> &'a [u8] {
        let row = self.rows.as_ref().map_or(at, |rows| rows[at] as usize);
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    #[inline]
    fn hash(item: &'a [u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(item);
        hasher.write_usize(item.len());
        hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn prefix(item: &'a [u8]) -> u64 {
        prefix(item)
    }

    fn order(a: &'a [u8], b: &'a [u8]) -> Ordering {
        a.cmp(b)
    }

    fn scalar(item: &'a [u8]) -> Scalar {
        Scalar::Text(item.into())
    }

    fn runs(&self) -> usize {
        self.runs
    }

    fn plain_bytes(&self) -> usize {
        if self.is_fixed() { self.len() * self.longest } else { self.offset_bytes() }
    }

    fn bytes_each(&self) -> usize {
        let offset = if self.shortest == self.longest { 0 } else { 4 };
        self.total.div_ceil(self.count) + offset
    }

    fn pick(&self, at: &[u32]) -> Self {
        let row = |at: &u32| self.rows.as_ref().map_or(*at, |rows| rows[*at as usize]);
        Self::with(self.ends, self.bytes, Some(at.iter().map(row).collect()), None)
    }

    fn plain(&self) -> Store<Vec<u8>> {
        let whole = || self.bytes[..self.total].to_vec();
        if self.is_fixed() {
            let all = || {
                (0..self.len()).fold(Vec::with_capacity(self.plain_bytes()), |mut bytes, at| {
                    bytes.extend_from_slice(self.at(at));
                    bytes
                })
            };
            let bytes = if self.rows.is_none() { whole() } else { all() };
            return Store::FixedTexts { length: self.longest as u32, bytes };
        }
        let mut offsets = Vec::with_capacity(4 * (self.len() + 1));
        offsets.extend_from_slice(&[0; 4]);
        if self.rows.is_none() {
            offsets.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
            return Store::Texts { offsets, bytes: whole() };
        }
        let mut bytes = Vec::with_capacity(self.total);
        for at in 0..self.len() {
            if self.counts(at) {
                bytes.extend_from_slice(self.at(at));
            }
            offsets.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        Store::Texts { offsets, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_ordered_as_the_text() {
        assert!(prefix(b"") == 0 && prefix(b"a") == u64::from(b'a') << 56);
        assert_eq!(prefix(b"abcdefgh"), prefix(b"abcdefghi"));
        let mut texts: Vec<&[u8]> =
            vec![b"", b"\0", b"a", b"a\0", b"ab", b"abcdefg", b"abcdefgh", b"b", b"\xff"];
        texts.sort_unstable();
        assert!(texts.is_sorted_by_key(|text| prefix(text)));
    }
}
