//! Tests all rows of a column at once, on codes and runs where there are such.
//!
//! Responsible for: which rows pass. Not responsible for: what a test means in SQL beyond order and NULL; who asks has
//! the values of the column's kind at hand.
//!
//! - E-1 The bit of a live row stays exactly if it was set and the test is TRUE: NULL passes [`Test::IsNull`] alone.
//!   Of rows that were dead when they were encoded it is not said whether their bits stay.
//! - E-2 [`Test::Each`] is asked once for each value of a dictionary, each run or the constant, of whichever there is;
//!   else once for each row that is not NULL and in the mask.
//! - E-3 [`Test::Stored`] is for columns whose rows share values, and has a bit for each of these.

mod compressed;
mod entries;
mod keep;
mod wanted;

use std::cmp::Ordering;
use std::ops::Bound;

use crate::bits;
use crate::column::Column;
use crate::decode::Selection;
use crate::layers::{Runs, Store, integer, keys, wrong_kind};
use crate::numbers::{Code, Key, with_width};
use crate::packed::Packed;
use crate::scalar::{Kind, ScalarRef};
use crate::section::Section;
use keep::{keep_each, keep_wanted};
use wanted::{Wanted, codes, wanted};

/// What a row has to be. Values are of the column's kind; integers may be outside of its limits.
pub enum Test<'t> {
    /// Equal to the value.
    Equal(ScalarRef<'t>),
    /// Equal to one of the values, which ascend in SQL's order.
    In(&'t [ScalarRef<'t>]),
    /// Between the bounds.
    Between(Bound<ScalarRef<'t>>, Bound<ScalarRef<'t>>),
    /// A text that begins with these bytes.
    Prefix(&'t [u8]),
    /// A text that ends with these bytes.
    Suffix(&'t [u8]),
    /// NULL.
    IsNull,
    /// Not NULL.
    IsNotNull,
    /// What the function returns true for.
    Each(&'t mut dyn FnMut(ScalarRef<'_>) -> bool),
    /// Of the values that rows share, one whose place ([`Column::places_into`]) has its bit set. No bit is set behind the last.
    Stored(&'t [u64]),
}

/// What is left of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// No bit.
    None,
    /// Every bit that was set before, and there was one.
    All,
    /// Some of the bits that were set before.
    Some,
}

impl Test<'_> {
    /// Whether a value that is not NULL passes.
    fn passes(&mut self, value: ScalarRef<'_>) -> bool {
        match self {
            Self::Equal(wanted) => value.compare(*wanted) == Ordering::Equal,
            Self::In(list) => list.binary_search_by(|wanted| wanted.compare(value)).is_ok(),
            Self::Between(lower, upper) => is_above(value, *lower) && is_below(value, *upper),
            Self::Prefix(prefix) => matches!(value, ScalarRef::Text(text) if text.starts_with(prefix)),
            Self::Suffix(suffix) => matches!(value, ScalarRef::Text(text) if text.ends_with(suffix)),
            Self::IsNull => false,
            Self::IsNotNull => true,
            Self::Each(passes) => passes(value),
            Self::Stored(_) => unreachable!("a place is tested, not a value"),
        }
    }

    /// Asserts that values are of `kind`.
    fn check(&self, kind: Kind) {
        let fits = |value: &ScalarRef<'_>| match value {
            ScalarRef::Integer(_) => kind.is_integer(),
            ScalarRef::I128(_) => kind == Kind::I128,
            ScalarRef::F32(_) => kind == Kind::F32,
            ScalarRef::F64(_) => kind == Kind::F64,
            ScalarRef::Uuid(_) => kind == Kind::Uuid,
            ScalarRef::Text(_) => kind == Kind::Text,
        };
        let of = |bound: &Bound<ScalarRef<'_>>| match bound {
            Bound::Included(value) | Bound::Excluded(value) => fits(value),
            Bound::Unbounded => true,
        };
        let fine = match self {
            Self::Equal(value) => fits(value),
            Self::In(list) => {
                debug_assert!(list.is_sorted_by(|a, b| a.compare(*b).is_le()), "the list ascends");
                list.iter().all(fits)
            }
            Self::Between(lower, upper) => of(lower) && of(upper),
            Self::Prefix(_) | Self::Suffix(_) => kind == Kind::Text,
            Self::IsNull | Self::IsNotNull | Self::Each(_) | Self::Stored(_) => true,
        };
        if !fine {
            wrong_kind("values that the test is for")
        }
    }

    /// What the test is for all values from `least` to `greatest`, if that is known without looking at them.
    fn of_all(&self, least: ScalarRef<'_>, greatest: ScalarRef<'_>) -> Option<bool> {
        let misses = |first: ScalarRef<'_>, last: ScalarRef<'_>| {
            first.compare(greatest) == Ordering::Greater || last.compare(least) == Ordering::Less
        };
        match self {
            Self::Equal(value) if misses(*value, *value) => Some(false),
            Self::Equal(value) => {
                (value.compare(least).is_eq() && value.compare(greatest).is_eq()).then_some(true)
            }
            Self::In([]) => Some(false),
            Self::In([first, .., last]) => misses(*first, *last).then_some(false),
            Self::In([only]) => misses(*only, *only).then_some(false),
            Self::Between(lower, upper) => match (is_above(least, *lower), is_below(greatest, *upper)) {
                (true, true) => Some(true),
                _ if !is_above(greatest, *lower) || !is_below(least, *upper) => Some(false),
                _ => None,
            },
            Self::Prefix(prefix) => {
                let begins = |value| matches!(value, ScalarRef::Text(text) if text.starts_with(prefix));
                match (begins(least), begins(greatest)) {
                    (true, true) => Some(true),
                    (false, false) if misses(ScalarRef::Text(prefix), ScalarRef::Text(prefix)) => Some(false),
                    _ => None,
                }
            }
            Self::IsNull => Some(false),
            Self::IsNotNull => Some(true),
            Self::Suffix(_) | Self::Each(_) | Self::Stored(_) => None,
        }
    }
}

fn is_above(value: ScalarRef<'_>, bound: Bound<ScalarRef<'_>>) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(bound) => value.compare(bound) != Ordering::Less,
        Bound::Excluded(bound) => value.compare(bound) == Ordering::Greater,
    }
}

fn is_below(value: ScalarRef<'_>, bound: Bound<ScalarRef<'_>>) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(bound) => value.compare(bound) != Ordering::Greater,
        Bound::Excluded(bound) => value.compare(bound) == Ordering::Less,
    }
}

impl<S: Section> Column<S> {
    /// Whether [`Test::Each`] is asked much less often than there are rows: a fourth at most.
    pub fn is_cheap(&self) -> bool {
        let asked = match (&self.store, &self.codes) {
            (Store::Constant(_), _) => 1,
            (_, Some(codes)) => codes.entries as usize,
            (_, None) => self.positions(),
        };
        asked * 4 <= self.rows()
    }

    /// Clears the bits of rows for which `test` is not TRUE.
    ///
    /// # Panics
    /// Values of the test are of another kind, [`Test::Stored`] has not as many bits as rows share values, or the mask is
    /// not one of the rows (see [`Selection::Mask`]).
    pub fn select(&self, test: &mut Test<'_>, mask: &mut [u64]) -> Selected {
        Selection::Mask(mask).check(self.rows());
        test.check(self.kind);
        if let Test::Stored(passing) = test {
            let words = self.shared().map(bits::words);
            assert_eq!(words, Some(passing.len()), "a bit for each value that rows share");
        }
        let before = bits::count(mask);
        match test {
            Test::IsNull => self.nulls.keep(mask),
            _ => {
                self.nulls.clear(mask);
                self.select_values(test, mask);
            }
        }
        match bits::count(mask) {
            0 => Selected::None,
            after if after == before => Selected::All,
            _ => Selected::Some,
        }
    }

    /// As [`Column::select`], of rows that are not NULL.
    fn select_values(&self, test: &mut Test<'_>, mask: &mut [u64]) {
        let of_all = match (&self.summary.least, &self.summary.greatest) {
            (Some(least), Some(greatest)) => test.of_all(least.as_ref(), greatest.as_ref()),
            _ => Some(false),
        };
        match (of_all, &self.runs) {
            (Some(true), _) => {}
            (Some(false), _) => mask.fill(0),
            (None, Some(runs)) => self.select_runs(runs, test, mask),
            (None, None) => self.select_positions(test, mask),
        }
    }

    /// Tests each run that has a row in the mask, and clears the rows of those that do not pass.
    fn select_runs(&self, runs: &Runs<S>, test: &mut Test<'_>, mask: &mut [u64]) {
        let mut passing = vec![0; bits::words(self.positions())];
        for (run, rows) in runs.ranges(0).enumerate() {
            passing[run / 64] |= u64::from(bits::any_in(mask, rows)) << (run % 64);
        }
        self.select_positions(test, &mut passing);
        for (run, rows) in runs.ranges(0).enumerate() {
            if !bits::get(&passing, run) {
                bits::clear_range(mask, rows);
            }
        }
    }

    /// Tests rows, or runs.
    fn select_positions(&self, test: &mut Test<'_>, mask: &mut [u64]) {
        match &self.codes {
            Some(codes) => entries::select(self, codes, test, mask),
            None => self.select_places(test, mask),
        }
    }

    /// Tests what the store has at the places of `mask`.
    fn select_places(&self, test: &mut Test<'_>, mask: &mut [u64]) {
        if let Test::Stored(passing) = test {
            return self.select_stored(passing, mask);
        }
        if let Test::Each(passes) = test {
            if let Store::Constant(scalar) = &self.store {
                if mask.iter().any(|word| *word != 0) && !passes(scalar.as_ref()) {
                    mask.fill(0);
                }
                return;
            }
            if !matches!(self.store, Store::Packed(_) | Store::Compressed(_)) {
                return keep_each(mask, |place| passes(self.store.scalar(self.kind, place)));
            }
        }
        match &self.store {
            Store::Constant(scalar) => {
                if !test.passes(scalar.as_ref()) {
                    mask.fill(0);
                }
            }
            Store::Integers { base, width, codes: section } => {
                let values = wanted(test, |value| integer(value) as u64 ^ 1 << 63);
                with_width!(*width, C => {
                    let wanted = codes::<C>(values, *base);
                    keep_wanted(C::list(section.bytes()), C::get, wanted, mask);
                });
            }
            Store::Plain(section) => self.select_plain(section.bytes(), test, mask),
            Store::FixedTexts { .. } | Store::Texts { .. } | Store::Lent(_) => self.select_texts(test, mask),
            Store::Packed(packed) => select_packed(packed, test, mask),
            Store::Compressed(texts) => compressed::select(texts.reader(), test, mask),
        }
    }

    /// Tests the one value of a constant, or those of runs without a dictionary.
    fn select_stored(&self, passing: &[u64], mask: &mut [u64]) {
        match &self.store {
            Store::Constant(_) if bits::get(passing, 0) => {}
            Store::Constant(_) => mask.fill(0),
            _ => mask.iter_mut().zip(passing).for_each(|(word, passing)| *word &= passing),
        }
    }

    fn select_plain(&self, bytes: &[u8], test: &Test<'_>, mask: &mut [u64]) {
        match self.kind {
            Kind::F32 => select_keys(bytes.as_chunks().0, keys::f32, test, mask),
            Kind::F64 => select_keys(bytes.as_chunks().0, keys::f64, test, mask),
            Kind::I128 => select_keys(bytes.as_chunks().0, keys::i128, test, mask),
            Kind::Uuid => select_keys(bytes.as_chunks().0, keys::uuid, test, mask),
            _ => wrong_kind("values as they are"),
        }
    }

    fn select_texts(&self, test: &mut Test<'_>, mask: &mut [u64]) {
        let text = |place| self.store.text(place);
        match test {
            Test::Equal(ScalarRef::Text(wanted)) => {
                if matches!(&self.store, Store::FixedTexts { length, .. } if *length as usize != wanted.len())
                {
                    return mask.fill(0);
                }
                keep_each(mask, |place| text(place) == *wanted);
            }
            Test::Prefix(prefix) => keep_each(mask, |place| text(place).starts_with(prefix)),
            Test::Suffix(suffix) => keep_each(mask, |place| text(place).ends_with(suffix)),
            test => keep_each(mask, |place| test.passes(ScalarRef::Text(text(place)))),
        }
    }
}

/// A text that packed ones are compared with, behind its key.
fn keyed<'t, S: Section>(packed: &Packed<S>, value: ScalarRef<'t>) -> (u64, &'t [u8]) {
    match value {
        ScalarRef::Text(text) => (packed.key_of(text), text),
        _ => wrong_kind("texts"),
    }
}

/// Tests packed texts: codes where that is enough, else each text in a buffer.
fn select_packed<S: Section>(packed: &Packed<S>, test: &mut Test<'_>, mask: &mut [u64]) {
    match test {
        Test::Equal(ScalarRef::Text(wanted)) => match packed.wanted(wanted) {
            Some(wanted) => keep_each(mask, |place| packed.is(place, &wanted)),
            None => mask.fill(0),
        },
        Test::Prefix(prefix) => match packed.wanted(prefix) {
            Some(wanted) => keep_each(mask, |place| packed.begins_with(place, &wanted)),
            None => mask.fill(0),
        },
        Test::Suffix(suffix) => match packed.wanted(suffix) {
            Some(wanted) => keep_each(mask, |place| packed.ends_with(place, &wanted)),
            None => mask.fill(0),
        },
        Test::Between(lower, upper) => {
            let lower = lower.map(|value| keyed(packed, value));
            let upper = upper.map(|value| keyed(packed, value));
            let mut text = Vec::new();
            keep_each(mask, |place| {
                let mut compare = |wanted| packed.compare(place, wanted, &mut text);
                let is_above = match lower {
                    Bound::Included(wanted) => compare(wanted).is_ge(),
                    Bound::Excluded(wanted) => compare(wanted).is_gt(),
                    Bound::Unbounded => true,
                };
                is_above
                    && match upper {
                        Bound::Included(wanted) => compare(wanted).is_le(),
                        Bound::Excluded(wanted) => compare(wanted).is_lt(),
                        Bound::Unbounded => true,
                    }
            });
        }
        Test::In(list) => {
            let list: Vec<_> = list.iter().map(|value| keyed(packed, *value)).collect();
            let mut text = Vec::new();
            keep_each(mask, |place| {
                list.binary_search_by(|wanted| packed.compare(place, *wanted, &mut text).reverse()).is_ok()
            });
        }
        test => keep_unpacked(packed, mask, |text| test.passes(ScalarRef::Text(text))),
    }
}

/// Clears the bits of places whose texts do not pass. Where most of 64 are asked for, they are unpacked together.
fn keep_unpacked<S: Section>(packed: &Packed<S>, mask: &mut [u64], mut passes: impl FnMut(&[u8]) -> bool) {
    let mut texts = Vec::new();
    for (number, word) in mask.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
        let place = |at: usize| number * 64 + at;
        let places = place(word.trailing_zeros() as usize)..place(64 - word.leading_zeros() as usize);
        let together = word.count_ones() as usize * 2 > places.len();
        let first = packed.symbols(places.clone()).start;
        texts.clear();
        if together {
            packed.texts_into(places, &mut texts);
        }
        for at in bits::ones(*word) {
            let symbols = packed.symbols(place(at)..place(at + 1));
            let text = match together {
                true => &texts[symbols.start - first..symbols.end - first],
                false => packed.text_in(place(at), &mut texts),
            };
            *word &= !(u64::from(!passes(text)) << at);
        }
    }
}

/// Tests values that are compared by a key.
fn select_keys<K: Key + FromScalar, const N: usize>(
    pieces: &[[u8; N]],
    key: impl Fn([u8; N]) -> K + Copy,
    test: &Test<'_>,
    mask: &mut [u64],
) {
    let wanted: Wanted<K> = wanted(test, K::from_scalar);
    keep_wanted(pieces, key, wanted, mask);
}

/// The key of a value that is asked for.
trait FromScalar {
    fn from_scalar(value: ScalarRef<'_>) -> Self;
}

impl FromScalar for u32 {
    fn from_scalar(value: ScalarRef<'_>) -> Self {
        match value {
            ScalarRef::F32(bits) => keys::f32(bits.to_le_bytes()),
            _ => wrong_kind("floats of 32 bits"),
        }
    }
}

impl FromScalar for u64 {
    fn from_scalar(value: ScalarRef<'_>) -> Self {
        match value {
            ScalarRef::F64(bits) => keys::f64(bits.to_le_bytes()),
            _ => wrong_kind("floats of 64 bits"),
        }
    }
}

impl FromScalar for u128 {
    fn from_scalar(value: ScalarRef<'_>) -> Self {
        match value {
            ScalarRef::I128(value) => keys::i128(value.to_le_bytes()),
            ScalarRef::Uuid(bytes) => keys::uuid(bytes),
            _ => wrong_kind("values of 16 bytes"),
        }
    }
}
