//! What operators take instead of rows: the dictionary, runs, the one value of a constant; and sums.

use std::ops::Range;

use crate::bits;
use crate::column::Column;
use crate::decode::Selection;
use crate::layers::{Store, integer, wrong_kind};
use crate::numbers::{Code, Number, with_width};
use crate::scalar::{Scalar, ScalarRef};
use crate::section::Section;

/// Integers that were added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Their sum; 65,536 integers of 64 bits do not overflow it.
    pub sum: i128,
    /// How many they are.
    pub count: u32,
}

/// The codes of a column, and the values that they stand for, ascending in SQL's order.
#[derive(Debug)]
pub struct DictionaryView<'a, S> {
    column: &'a Column<S>,
}

impl<'a, S: Section> DictionaryView<'a, S> {
    /// How many values there are; codes are below it.
    pub fn entries(&self) -> usize {
        self.column.places()
    }

    /// The value of `code`, which is below [`DictionaryView::entries`].
    #[inline]
    pub fn entry(&self, code: usize) -> ScalarRef<'a> {
        self.column.store.scalar(self.column.kind, code)
    }

    /// The code of `row`; of NULLs some code.
    #[inline]
    pub fn code(&self, row: usize) -> usize {
        self.column.place(row)
    }

    /// Appends the codes of `selection`.
    ///
    /// # Panics
    /// Codes are not of `T`.
    pub fn codes_into<T: Number>(&self, selection: &Selection<'_>, out: &mut Vec<T>) {
        self.column.codes_to(selection, out);
    }
}

impl<S: Section> Column<S> {
    /// The dictionary, if there is one, of rows or of runs.
    pub fn dictionary(&self) -> Option<DictionaryView<'_, S>> {
        self.codes.as_ref().map(|_| DictionaryView { column: self })
    }

    /// The rows of each run and the value of those that are not NULL, if it is runs. Neighbours may have the same
    /// value.
    pub fn runs(&self) -> Option<impl Iterator<Item = (Range<u32>, ScalarRef<'_>)>> {
        let runs = self.runs.as_ref()?;
        let value = |(number, rows): (usize, Range<usize>)| {
            let place = self.codes.as_ref().map_or(number, |codes| codes.get(number));
            (rows.start as u32..rows.end as u32, self.store.scalar(self.kind, place))
        };
        Some(runs.ranges(0).enumerate().map(value))
    }

    /// The value of all rows that are not NULL, if it is a constant and there are such rows.
    pub fn constant(&self) -> Option<ScalarRef<'_>> {
        match &self.store {
            Store::Constant(scalar) if self.summary.count > 0 => Some(scalar.as_ref()),
            _ => None,
        }
    }

    /// How many values are stored that rows share: those of a dictionary, of runs, or one. `None`: each row has its own.
    pub fn shared(&self) -> Option<usize> {
        self.form().shared()
    }

    /// Adds up the integers of the rows of `mask` that are not NULL.
    ///
    /// # Panics
    /// The kind is none of integers, or the mask is not one of the rows.
    pub fn sum(&self, mask: &[u64]) -> Sum {
        if !self.kind.is_integer() {
            wrong_kind("integers")
        }
        Selection::Mask(mask).check(self.rows());
        let mut kept = Vec::new();
        let mut mask = mask;
        if self.has_nulls() {
            kept.extend_from_slice(mask);
            self.nulls.clear(&mut kept);
            mask = &kept;
        }
        let count = bits::count(mask);
        let sum = match (&self.store, &self.runs, &self.codes) {
            (Store::Constant(Scalar::Integer(value)), ..) => i128::from(*value) * count as i128,
            (_, Some(_), _) => self.sum_of_runs(mask),
            (Store::Integers { base, width, codes }, None, None) => {
                let sum = with_width!(*width, C => sum_of_codes::<C>(C::list(codes.bytes()), mask));
                i128::from(*base) * count as i128 + sum
            }
            (_, None, _) => self.sum_of_entries(mask),
        };
        Sum { sum, count: count as u32 }
    }

    fn sum_of_runs(&self, mask: &[u64]) -> i128 {
        let runs = self.runs().into_iter().flatten();
        let sum = |(rows, value): (Range<u32>, ScalarRef<'_>)| {
            let count = bits::count_in(mask, rows.start as usize..rows.end as usize);
            i128::from(integer(value)) * count as i128
        };
        runs.map(sum).sum()
    }

    /// Each value of the dictionary times how often it is there.
    fn sum_of_entries(&self, mask: &[u64]) -> i128 {
        let Some(codes) = &self.codes else { return 0 };
        let mut counts = vec![0_u32; codes.entries as usize];
        for (number, word) in mask.iter().enumerate() {
            bits::ones(*word).for_each(|at| counts[codes.get(number * 64 + at)] += 1);
        }
        let value = |code| i128::from(integer(self.store.scalar(self.kind, code)));
        counts.iter().enumerate().map(|(code, count)| value(code) * i128::from(*count)).sum()
    }
}

/// Codes that are added at once.
const LANES: usize = 8;

/// By eight bits of a mask: for each of them all ones or all zeros.
static WHOLE: [[u32; LANES]; 256] = {
    let mut whole = [[0; LANES]; 256];
    let mut bits = 0;
    while bits < 256 * LANES {
        let (mask, lane) = (bits / LANES, bits % LANES);
        whole[mask][lane] = if mask >> lane & 1 == 1 { u32::MAX } else { 0 };
        bits += 1;
    }
    whole
};

/// Sums of the halves of codes by lane.
#[derive(Default)]
struct Sums {
    low: [u64; LANES],
    high: [u64; LANES],
}

impl Sums {
    #[inline(always)]
    fn add<C: Code>(&mut self, lane: usize, code: C::Bytes, whole: u32) {
        let code = C::get(code).widen();
        self.low[lane] += u64::from(code as u32 & whole);
        self.high[lane] += u64::from((code >> 32) as u32 & whole);
    }

    fn total(&self) -> i128 {
        let sum = |lanes: &[u64]| lanes.iter().map(|lane| i128::from(*lane)).sum::<i128>();
        (sum(&self.high) << 32) + sum(&self.low)
    }
}

/// The sum of the codes whose bits are set.
///
/// Where some bits of a word are not set, all its codes are read and zeros added for those: where they are is not known to
/// the processor before, and a mispredicted branch would cost as much as the whole word.
fn sum_of_codes<C: Code>(codes: &[C::Bytes], mask: &[u64]) -> i128 {
    let mut sums = Sums::default();
    for (block, word) in codes.chunks(64).zip(mask) {
        let (steps, rest) = block.as_chunks::<LANES>();
        match *word {
            0 => {}
            u64::MAX => {
                for step in steps {
                    (0..LANES).for_each(|lane| sums.add::<C>(lane, step[lane], u32::MAX));
                }
            }
            word if word.count_ones() > 8 => {
                let bytes = word.to_le_bytes();
                for (step, byte) in steps.iter().zip(bytes) {
                    let whole = &WHOLE[usize::from(byte)];
                    (0..LANES).for_each(|lane| sums.add::<C>(lane, step[lane], whole[lane]));
                }
                let whole = bytes.get(steps.len()).map_or(&WHOLE[0], |byte| &WHOLE[usize::from(*byte)]);
                for (lane, code) in rest.iter().enumerate() {
                    sums.add::<C>(lane, *code, whole[lane]);
                }
            }
            word => {
                let codes = bits::ones(word).filter_map(|at| block.get(at));
                codes.for_each(|code| sums.add::<C>(0, *code, u32::MAX));
            }
        }
    }
    sums.total()
}
