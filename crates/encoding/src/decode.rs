//! Decodes many values at once.
//!
//! Responsible for: values, texts and NULLs of a selection of rows, appended in the order of the rows. Runs are decoded
//! as runs, a dictionary once. Not responsible for: NULLs among values, which have some value.

use std::marker::PhantomData;
use std::ops::Range;

use crate::bits;
use crate::blocks::{self, Blocks};
use crate::column::Column;
use crate::layers::{Nulls, Store, null_words, ranges, wrong_kind};
use crate::numbers::{Code, Number, Width, with_width};
use crate::offsets::{ends_from, text_range};
use crate::scalar::{Kind, Scalar, ScalarRef};
use crate::section::Section;

/// Which rows are asked for.
#[derive(Clone, Debug)]
pub enum Selection<'a> {
    /// All.
    All,
    /// Those from the start to before the end.
    Range(Range<usize>),
    /// Those whose bit is set, in their order; there are words for all rows, and no bit behind the last is set.
    Mask(&'a [u64]),
    /// Those with these numbers, which ascend: faster than a mask where they are few.
    Rows(&'a [u16]),
}

impl Selection<'_> {
    /// How many of `rows` rows it selects.
    pub fn count(&self, rows: usize) -> usize {
        match self {
            Self::All => rows,
            Self::Range(range) => range.len(),
            Self::Mask(mask) => bits::count(mask),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// Asserts that only rows below `rows` are selected.
    pub(crate) fn check(&self, rows: usize) {
        match self {
            Self::All => {}
            Self::Range(range) => {
                assert!(range.start <= range.end && range.end <= rows, "rows of the column")
            }
            Self::Mask(mask) => {
                assert!(mask.len() == bits::words(rows), "a mask has words for the rows of the column");
                let tail = if rows.is_multiple_of(64) { 0 } else { u64::MAX << (rows % 64) };
                assert!(mask.last().is_none_or(|last| last & tail == 0), "a mask has no bit behind the rows");
            }
            Self::Rows(numbers) => {
                assert!(numbers.last().is_none_or(|last| usize::from(*last) < rows), "rows of the column");
                debug_assert!(numbers.is_sorted_by(|one, next| one < next), "rows ascend");
            }
        }
    }
}

/// A float that values can be decoded into.
pub trait Float: Copy + sealed::Sealed {
    /// From the bits of [`Kind::F32`].
    fn from_single(bits: u32) -> Self;
    /// From the bits of [`Kind::F64`].
    fn from_double(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for u64 {}
}

/// Takes [`Kind::F32`] only.
impl Float for f32 {
    #[inline]
    fn from_single(bits: u32) -> Self {
        Self::from_bits(bits)
    }
    fn from_double(_: u64) -> Self {
        wrong_kind("floats of 32 bits")
    }
}

/// Takes [`Kind::F64`] only.
impl Float for f64 {
    fn from_single(_: u32) -> Self {
        wrong_kind("floats of 64 bits")
    }
    #[inline]
    fn from_double(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

/// The bits, of [`Kind::F32`] in the low half.
impl Float for u64 {
    #[inline]
    fn from_single(bits: u32) -> Self {
        bits.into()
    }
    #[inline]
    fn from_double(bits: u64) -> Self {
        bits
    }
}

/// Values by place, to be decoded.
trait Reader {
    type Item: Copy;
    fn at(&self, place: usize) -> Self::Item;
    fn append(&self, places: Range<usize>, out: &mut Vec<Self::Item>);
}

/// What lies in equal pieces.
struct Pieces<'a, B, T, F> {
    pieces: &'a [B],
    convert: F,
    item: PhantomData<T>,
}

impl<'a, B: Copy, T: Copy, F: Fn(B) -> T> Pieces<'a, B, T, F> {
    fn new(pieces: &'a [B], convert: F) -> Self {
        Self { pieces, convert, item: PhantomData }
    }
}

impl<B: Copy, T: Copy, F: Fn(B) -> T> Reader for Pieces<'_, B, T, F> {
    type Item = T;

    #[inline]
    fn at(&self, place: usize) -> T {
        (self.convert)(self.pieces[place])
    }

    #[inline]
    fn append(&self, places: Range<usize>, out: &mut Vec<T>) {
        out.extend(self.pieces[places].iter().map(|piece| (self.convert)(*piece)));
    }
}

/// One value at every place.
struct Same<T>(T);

impl<T: Copy> Reader for Same<T> {
    type Item = T;

    fn at(&self, _: usize) -> T {
        self.0
    }

    fn append(&self, places: Range<usize>, out: &mut Vec<T>) {
        out.extend(std::iter::repeat_n(self.0, places.len()));
    }
}

/// The places themselves.
struct Places;

impl Reader for Places {
    type Item = u16;

    #[inline]
    fn at(&self, place: usize) -> u16 {
        place as u16
    }

    #[inline]
    fn append(&self, places: Range<usize>, out: &mut Vec<u16>) {
        out.extend(places.map(|place| place as u16));
    }
}

/// Rows of a range, in the mean, from which on values are decoded range by range. Of 16,384 integers of 4 bytes, with 1 of so
/// many rows left out at random, in 60 masks in turns (of one and the same, the processor learns where its ranges end, and
/// ranges seem to take a third), ns a row:
///
/// | 1 of | 8 | 12 | 16 | 36 | 200 |
/// |---|---|---|---|---|---|
/// | ranges | | 2.1 | 1.8 | 1.0 | 0.3 |
/// | words | 0.6 | 0.6 | 0.6 | 0.5 | |
const LONG: usize = 64;

/// Appends the values of rows that are one place each.
fn rows<R: Reader>(reader: &R, selection: &Selection<'_>, rows: usize, out: &mut Vec<R::Item>) {
    match selection {
        Selection::All => reader.append(0..rows, out),
        Selection::Range(range) => reader.append(range.clone(), out),
        Selection::Rows(rows) => out.extend(rows.iter().map(|row| reader.at(usize::from(*row)))),
        Selection::Mask(mask) => {
            let count = bits::count(mask);
            out.reserve(count);
            if bits::count_ranges(mask) * LONG <= count {
                return bits::for_each_range(mask, |range| reader.append(range, out));
            }
            for (number, word) in mask.iter().enumerate() {
                let first = number * 64;
                match *word {
                    0 => {}
                    u64::MAX => reader.append(first..first + 64, out),
                    // What is squeezed is longer at first. To make more room would copy what is there of it, used or not.
                    word if word.count_ones() >= DENSE
                        && first + 64 <= rows
                        && out.capacity() - out.len() >= 64 =>
                    {
                        squeeze(reader, first, word, out)
                    }
                    word => pick(reader, first, word, out),
                }
            }
        }
    }
}

/// Runs for each row, in the mean, from which on the run of a row is searched, where else all are counted through. Q9 of
/// CH-benCHmark, which wants some 20 of the 16,384 rows of a chunk, took 26 ms over frozen rows before, and 23 since.
const FEW_OF_RUNS: usize = 16;

/// So many rows of a word from which on all are decoded, which is vectorised.
const DENSE: u32 = 24;

/// Appends the values of the 64 rows from `first` on whose bits are set in `word`: all of them, of which the others are
/// written over. There is no branch that depends on the bits.
#[inline]
fn squeeze<R: Reader>(reader: &R, first: usize, word: u64, out: &mut Vec<R::Item>) {
    let before = out.len();
    reader.append(first..first + 64, out);
    let Some(values) = out[before..].first_chunk_mut::<64>() else { return };
    let mut count = 0;
    for row in 0..64 {
        values[count & 63] = values[row];
        count += (word >> row & 1) as usize;
    }
    out.truncate(before + count);
}

/// Appends the values of the rows from `first` on whose bits are set in `word`, which is not 0. The room is made first,
/// so that the loop writes and does nothing else.
#[inline]
fn pick<R: Reader>(reader: &R, first: usize, word: u64, out: &mut Vec<R::Item>) {
    let before = out.len();
    let any = reader.at(first + word.trailing_zeros() as usize);
    out.resize(before + word.count_ones() as usize, any);
    let mut rest = word;
    for value in &mut out[before..] {
        *value = reader.at(first + rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
    }
}

/// What a function makes of the text at each place.
struct Texts<'a, S, F> {
    store: &'a Store<S>,
    convert: F,
}

impl<'a, S: Section, T: Copy, F: Fn(&'a [u8]) -> T> Reader for Texts<'a, S, F> {
    type Item = T;

    #[inline]
    fn at(&self, place: usize) -> T {
        (self.convert)(self.store.text(place))
    }

    fn append(&self, places: Range<usize>, out: &mut Vec<T>) {
        match self.store {
            Store::FixedTexts { length, bytes } if *length > 0 => {
                let length = *length as usize;
                let bytes = &bytes.bytes()[places.start * length..places.end * length];
                out.extend(bytes.chunks_exact(length).map(&self.convert));
            }
            Store::Texts { offsets, bytes } => {
                let bytes = bytes.bytes();
                let ends = &offsets.bytes().as_chunks::<4>().0[places.start..=places.end];
                let at = |end: [u8; 4]| u32::from_le_bytes(end) as usize;
                out.extend(
                    ends.array_windows().map(|[start, end]| (self.convert)(&bytes[at(*start)..at(*end)])),
                );
            }
            _ => out.extend(places.map(|place| self.at(place))),
        }
    }
}

fn end_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("texts of up to 4 GiB")
}

impl<S: Section> Column<S> {
    /// Appends the integers of `selection`; of NULLs and of rows that were dead any.
    ///
    /// # Panics
    /// The kind is none of integers, or has values that are not of `T`.
    pub fn integers_into<T: Number>(&self, selection: &Selection<'_>, out: &mut Vec<T>) {
        let Some((least, most)) = self.kind.limits() else { wrong_kind("integers") };
        assert!(T::LEAST <= least && most <= T::GREATEST, "values of the kind fit");
        match &self.store {
            Store::Integers { base, width, codes } => {
                let base = *base;
                with_width!(*width, C => {
                    let convert = |code| T::from_low_bits(base.wrapping_add(C::get(code).widen() as i64));
                    self.decode(&Pieces::new(C::list(codes.bytes()), convert), selection, out);
                });
            }
            Store::Constant(Scalar::Integer(value)) => {
                self.decode(&Same(T::from_low_bits(*value)), selection, out);
            }
            _ => wrong_kind("integers"),
        }
    }

    /// Appends the values of [`Kind::I128`], little endian, or of [`Kind::Uuid`].
    ///
    /// # Panics
    /// The kind is another.
    pub fn wide_into(&self, selection: &Selection<'_>, out: &mut Vec<[u8; 16]>) {
        match &self.store {
            Store::Plain(section) if matches!(self.kind, Kind::I128 | Kind::Uuid) => {
                self.decode(&Pieces::new(section.bytes().as_chunks().0, |bytes| bytes), selection, out);
            }
            Store::Constant(Scalar::I128(value)) => self.decode(&Same(value.to_le_bytes()), selection, out),
            Store::Constant(Scalar::Uuid(bytes)) => self.decode(&Same(*bytes), selection, out),
            _ => wrong_kind("values of 16 bytes"),
        }
    }

    /// Appends the floats of `selection`, bit for bit.
    ///
    /// # Panics
    /// The kind is none of floats, or not the one of `T`.
    pub fn floats_into<T: Float>(&self, selection: &Selection<'_>, out: &mut Vec<T>) {
        match (&self.store, self.kind) {
            (Store::Plain(section), Kind::F32) => {
                let convert = |bytes| T::from_single(u32::from_le_bytes(bytes));
                self.decode(&Pieces::new(section.bytes().as_chunks().0, convert), selection, out);
            }
            (Store::Plain(section), Kind::F64) => {
                let convert = |bytes| T::from_double(u64::from_le_bytes(bytes));
                self.decode(&Pieces::new(section.bytes().as_chunks().0, convert), selection, out);
            }
            (Store::Constant(Scalar::F32(bits)), _) => {
                self.decode(&Same(T::from_single(*bits)), selection, out);
            }
            (Store::Constant(Scalar::F64(bits)), _) => {
                self.decode(&Same(T::from_double(*bits)), selection, out);
            }
            _ => wrong_kind("floats"),
        }
    }

    /// Appends the codes of `selection`, of whatever kind the dictionary is.
    ///
    /// # Panics
    /// There is no dictionary, or codes are not of `T`.
    pub(crate) fn codes_to<T: Number>(&self, selection: &Selection<'_>, out: &mut Vec<T>) {
        selection.check(self.rows());
        let codes = self.codes.as_ref().expect("the column has a dictionary");
        assert!(i64::from(codes.entries) - 1 <= T::GREATEST, "codes fit");
        let bytes = codes.section.bytes();
        with_width!(codes.width, C => {
            let convert = |code| T::from_low_bits(C::get(code).widen() as i64);
            self.by_position(&Pieces::new(C::list(bytes), convert), selection, out);
        });
    }

    /// Appends for each row of `selection` the place of its value in [`Column::stored`]; of NULLs any.
    ///
    /// # Panics
    /// Rows do not share values ([`Column::shared`]).
    pub fn places_into(&self, selection: &Selection<'_>, out: &mut Vec<u16>) {
        assert!(self.shared().is_some(), "rows share values");
        selection.check(self.rows());
        match (&self.store, &self.codes) {
            (Store::Constant(_), _) => {
                let count = out.len() + selection.count(self.rows());
                out.resize(count, 0);
            }
            (_, Some(_)) => self.codes_to(selection, out),
            (_, None) => self.by_position(&Places, selection, out),
        }
    }

    /// Appends what `reader` has for `selection`.
    fn decode<R: Reader>(&self, reader: &R, selection: &Selection<'_>, out: &mut Vec<R::Item>) {
        selection.check(self.rows());
        let Some(codes) = &self.codes else { return self.by_position(reader, selection, out) };
        let bytes = codes.section.bytes();
        if codes.entries as usize > selection.count(self.rows()) {
            // Fewer values than entries: each is looked up by itself.
            return match codes.width {
                Width::One => {
                    let convert = |code: &u8| reader.at(usize::from(*code));
                    self.by_position(&Pieces::new(bytes, |code| convert(&code)), selection, out);
                }
                _ => {
                    let convert = |code| reader.at(u16::from_le_bytes(code).into());
                    self.by_position(&Pieces::new(bytes.as_chunks().0, convert), selection, out);
                }
            };
        }
        let mut table = Vec::with_capacity(256.max(codes.entries as usize));
        reader.append(0..codes.entries as usize, &mut table);
        if codes.width == Width::One {
            table.resize(256, table[0]);
            let table: &[R::Item; 256] = table.first_chunk().expect("256 were made above");
            return self.by_position(&Pieces::new(bytes, |code| table[usize::from(code)]), selection, out);
        }
        let convert = |code| table[usize::from(u16::from_le_bytes(code))];
        self.by_position(&Pieces::new(bytes.as_chunks().0, convert), selection, out);
    }

    /// Appends what `reader` has at the positions of `selection`: rows, or runs.
    fn by_position<R: Reader>(&self, reader: &R, selection: &Selection<'_>, out: &mut Vec<R::Item>) {
        let Some(runs) = &self.runs else { return rows(reader, selection, self.rows(), out) };
        let count = selection.count(self.rows());
        if count == 0 {
            return;
        }
        if let Selection::All = selection {
            let mut values = Vec::with_capacity(runs.list().len());
            reader.append(0..runs.list().len(), &mut values);
            return blocks::repeat_all(&values, runs.list(), out);
        }
        out.reserve(count);
        let mut blocks = Blocks::new(reader.at(0), out);
        self.for_each_run_of(selection, |run, times| blocks.repeat(reader.at(run), times));
        blocks.finish();
    }

    /// Calls `take` with each run that `selection` has rows of, and with how many. There are runs.
    fn for_each_run_of(&self, selection: &Selection<'_>, mut take: impl FnMut(usize, usize)) {
        let Some(runs) = &self.runs else { return };
        match selection {
            Selection::Rows(rows) => return runs.for_each_of(rows.iter().map(|row| usize::from(*row)), take),
            Selection::Mask(mask) if bits::count(mask) * FEW_OF_RUNS <= runs.list().len() => {
                let of_word =
                    |(number, word): (usize, &u64)| bits::ones(*word).map(move |at| number * 64 + at);
                return runs.for_each_of(mask.iter().enumerate().flat_map(of_word), take);
            }
            _ => {}
        }
        let wanted = match selection {
            Selection::Range(range) => range.clone(),
            _ => 0..self.rows(),
        };
        let first = if wanted.is_empty() { return } else { runs.find(wanted.start) };
        for (number, rows) in runs.ranges(first).enumerate() {
            if rows.start >= wanted.end {
                return;
            }
            let times = match selection {
                Selection::Mask(mask) => bits::count_in(mask, rows),
                _ => rows.end.min(wanted.end) - rows.start.max(wanted.start),
            };
            if times > 0 {
                take(first + number, times);
            }
        }
    }

    /// Calls `take` with each row of `selection`, and the number of its run or itself.
    fn for_each_position(&self, selection: &Selection<'_>, mut take: impl FnMut(usize)) {
        if self.runs.is_some() {
            return self.for_each_run_of(selection, |run, times| (0..times).for_each(|_| take(run)));
        }
        match selection {
            Selection::All => (0..self.rows()).for_each(take),
            Selection::Range(range) => range.clone().for_each(take),
            Selection::Rows(rows) => rows.iter().map(|row| usize::from(*row)).for_each(take),
            Selection::Mask(mask) => {
                for (number, word) in mask.iter().enumerate() {
                    bits::ones(*word).for_each(|at| take(number * 64 + at));
                }
            }
        }
    }

    /// Calls `take` with each text of `selection`.
    ///
    /// # Panics
    /// The kind is another.
    pub fn for_each_text(&self, selection: &Selection<'_>, mut take: impl FnMut(&[u8])) {
        selection.check(self.rows());
        if self.kind != Kind::Text {
            wrong_kind("texts")
        }
        let mut text = Vec::new();
        if let Store::Packed(packed) = &self.store {
            return self.for_each_position(selection, |row| take(packed.text_in(row, &mut text)));
        }
        if let Store::Compressed(texts) = &self.store {
            let texts = texts.reader();
            return self.for_each_position(selection, |row| take(texts.text_in(row, &mut text)));
        }
        match &self.codes {
            None => self.for_each_position(selection, |position| take(self.store.text(position))),
            Some(codes) => {
                self.for_each_position(selection, |position| take(self.store.text(codes.get(position))));
            }
        }
    }

    /// Appends what `convert` makes of the texts of `selection`, which it is lent. It is asked once for each run, each
    /// value of a dictionary that is not longer than the selection, or the constant.
    ///
    /// # Panics
    /// The kind is another, or texts cannot be lent ([`Column::lends_texts`]).
    pub fn texts_as<'a, T: Copy>(
        &'a self,
        selection: &Selection<'_>,
        convert: impl Fn(&'a [u8]) -> T,
        out: &mut Vec<T>,
    ) {
        match &self.store {
            Store::Constant(Scalar::Text(text)) => self.decode(&Same(convert(text)), selection, out),
            store if self.lends_texts() => self.decode(&Texts { store, convert }, selection, out),
            _ => wrong_kind("texts that can be lent"),
        }
    }

    /// Calls `take` with each value of `selection`, of whatever kind.
    pub fn for_each(&self, selection: &Selection<'_>, mut take: impl FnMut(ScalarRef<'_>)) {
        if let Store::Packed(_) | Store::Compressed(_) = &self.store {
            return self.for_each_text(selection, |text| take(ScalarRef::Text(text)));
        }
        selection.check(self.rows());
        self.for_each_position(selection, |position| {
            let place = self.codes.as_ref().map_or(position, |codes| codes.get(position));
            take(self.store.scalar(self.kind, place));
        });
    }

    /// Appends the texts of `selection` to `bytes`, and to `ends` for each how many bytes there are then.
    ///
    /// # Panics
    /// The kind is another, or `bytes` becomes longer than `u32` says.
    pub fn texts_into(&self, selection: &Selection<'_>, ends: &mut Vec<u32>, bytes: &mut Vec<u8>) {
        if self.kind != Kind::Text {
            wrong_kind("texts")
        }
        ends.reserve(selection.count(self.rows()));
        if self.codes.is_none() && self.runs.is_none() && !matches!(self.store, Store::Constant(_)) {
            selection.check(self.rows());
            return match selection {
                Selection::All => self.texts_of(0..self.rows(), ends, bytes),
                Selection::Range(range) => self.texts_of(range.clone(), ends, bytes),
                Selection::Rows(rows) => {
                    let each = rows.iter().map(|row| usize::from(*row));
                    each.for_each(|row| self.texts_of(row..row + 1, ends, bytes));
                }
                Selection::Mask(mask) => {
                    bits::for_each_range(mask, |range| self.texts_of(range, ends, bytes))
                }
            };
        }
        self.for_each_text(selection, |text| {
            bytes.extend_from_slice(text);
            ends.push(end_of(bytes));
        });
    }

    /// As [`Column::texts_into`] of rows one after the other, each of which is a place.
    fn texts_of(&self, rows: Range<usize>, ends: &mut Vec<u32>, bytes: &mut Vec<u8>) {
        if rows.is_empty() {
            return;
        }
        let before = end_of(bytes);
        match &self.store {
            Store::FixedTexts { length, bytes: texts } => {
                let (length, count) = (*length as usize, rows.len() as u32);
                bytes.extend_from_slice(&texts.bytes()[rows.start * length..rows.end * length]);
                end_of(bytes);
                ends.extend((1..=count).map(|text| before + text * length as u32));
            }
            Store::Texts { offsets, bytes: texts } => {
                let offsets = offsets.bytes();
                let (start, end) =
                    (text_range(offsets, rows.start).start, text_range(offsets, rows.end - 1).end);
                bytes.extend_from_slice(&texts.bytes()[start..end]);
                end_of(bytes);
                ends_from(before, &offsets.as_chunks().0[rows.start..=rows.end], ends);
            }
            Store::Lent(lent) => rows.for_each(|place| {
                bytes.extend_from_slice(lent.list.text(place));
                ends.push(end_of(bytes));
            }),
            Store::Packed(packed) => {
                packed.texts_into(rows.clone(), bytes);
                end_of(bytes);
                packed.ends_into(rows, before, ends);
            }
            Store::Compressed(texts) => {
                texts.reader().texts_into(rows, bytes, |end| ends.push(end as u32));
                end_of(bytes);
            }
            _ => wrong_kind("texts"),
        }
    }

    /// Sets `out` to a bit for each row of `selection`, set if it is NULL, in their order; returns how many are.
    pub fn nulls_of(&self, selection: &Selection<'_>, out: &mut Vec<u64>) -> usize {
        selection.check(self.rows());
        let count = selection.count(self.rows());
        out.clear();
        out.resize(bits::words(count), 0);
        match (&self.nulls, selection) {
            (Nulls::None, _) => return 0,
            (Nulls::All, _) => bits::set_range(out, 0..count),
            (_, Selection::All) => self.fill_nulls(out),
            (_, Selection::Range(range)) => {
                let all = self.null_bits();
                let shift = range.start % 64;
                for (number, word) in out.iter_mut().enumerate() {
                    let at = range.start / 64 + number;
                    let high =
                        if shift == 0 { 0 } else { all.get(at + 1).map_or(0, |next| next << (64 - shift)) };
                    *word = all[at] >> shift | high;
                }
                bits::clear_tail(out, count);
            }
            (_, Selection::Rows(rows)) => {
                for (place, row) in rows.iter().enumerate() {
                    out[place / 64] |= u64::from(self.nulls.contains(usize::from(*row))) << (place % 64);
                }
            }
            (_, Selection::Mask(mask)) => {
                let mut at = 0;
                for (nulls, word) in self.null_bits().into_iter().zip(*mask) {
                    for null in bits::ones(nulls & word) {
                        let before = word & ((1 << null) - 1);
                        let place = at + before.count_ones() as usize;
                        out[place / 64] |= 1 << (place % 64);
                    }
                    at += word.count_ones() as usize;
                }
            }
        }
        bits::count(out)
    }

    fn null_bits(&self) -> Vec<u64> {
        let mut all = vec![0; bits::words(self.rows())];
        self.fill_nulls(&mut all);
        all
    }

    /// Sets the bits of rows that are NULL.
    fn fill_nulls(&self, out: &mut [u64]) {
        match &self.nulls {
            Nulls::None => {}
            Nulls::All => bits::set_range(out, 0..self.rows()),
            Nulls::Bits(section) => {
                out.iter_mut().zip(null_words(section.bytes())).for_each(|(to, from)| *to = from)
            }
            Nulls::Ranges(section) => ranges(section.bytes()).for_each(|range| bits::set_range(out, range)),
        }
    }
}
