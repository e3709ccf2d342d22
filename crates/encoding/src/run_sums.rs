//! Integers added up by the runs of another column.
//!
//! Responsible for: which runs have rows of a mask, and sums of codes over these rows. Not responsible for: runs of equal
//! value that are not neighbours, which stay apart; for columns whose rows have one value each ([`crate::Groups`]).
//!
//! The lines of an order lie together, so what an order comes to is the sum of some ten codes that lie together: nothing has
//! to be decoded row by row, and no order compared with the one before.

use std::ops::Range;

use crate::bits;
use crate::column::Column;
use crate::decode::Selection;
use crate::layers::{Store, integer, wrong_kind};
use crate::numbers::{Code, Width, with_width};
use crate::scalar::Scalar;
use crate::section::Section;

/// Runs that have rows of a mask.
#[derive(Clone, Debug, Default)]
pub struct MaskedRuns {
    keys: Vec<i64>,
    runs: Vec<Run>,
}

/// The rows of a run, and whether the mask has all of them.
#[derive(Clone, Debug)]
struct Run {
    rows: Range<u32>,
    is_whole: bool,
}

impl MaskedRuns {
    /// The value of each; neighbours may have the same.
    pub fn keys(&self) -> &[i64] {
        &self.keys
    }
}

/// The bits of `mask` from `start` on, up to 64 of them; those behind the mask are not set.
#[inline]
fn word_at(mask: &[u64], start: usize) -> u64 {
    let (word, shift) = (start / 64, start % 64);
    let low = mask[word] >> shift;
    // In two steps: a shift by 64 is none.
    low | mask.get(word + 1).map_or(0, |next| next << 1 << (63 - shift))
}

impl<S: Section> Column<S> {
    /// Sets `to` to the runs of this column that have rows of `mask`; false: it is not runs of integers, or has NULLs.
    ///
    /// # Panics
    /// The mask is not one of the rows.
    pub fn masked_runs(&self, mask: &[u64], to: &mut MaskedRuns) -> bool {
        Selection::Mask(mask).check(self.rows());
        to.keys.clear();
        to.runs.clear();
        let Some(runs) = self.runs.as_ref().filter(|_| self.kind.is_integer() && !self.has_nulls()) else {
            return false;
        };
        let lasts = runs.list();
        let end =
            |run: usize| lasts.get(run).map_or(usize::MAX, |last| u16::from_le_bytes(*last) as usize + 1);
        let (mut run, mut start) = (0, 0);
        bits::for_each_range(mask, |rows| {
            let first = runs.find_from(run, rows.start);
            if first > run {
                (run, start) = (first, end(first - 1));
            }
            // The range before may have ended in this run, and has taken it then.
            let mut is_known = to.runs.last().is_some_and(|last| last.rows.start as usize == start);
            while start < rows.end {
                let end = end(run);
                if !is_known {
                    let place = self.codes.as_ref().map_or(run, |codes| codes.get(run));
                    to.keys.push(integer(self.store.scalar(self.kind, place)));
                    let is_whole = rows.start <= start && end <= rows.end;
                    to.runs.push(Run { rows: start as u32..end as u32, is_whole });
                }
                if end > rows.end {
                    return;
                }
                (run, start, is_known) = (run + 1, end, false);
            }
        });
        true
    }

    /// Appends for each of `runs`, which [`Column::masked_runs`] made of `mask` and a column of the same rows, the sum of
    /// the integers in its rows of `mask`; false, and nothing is appended: they are not codes by row, or some are NULL.
    ///
    /// # Panics
    /// The kind is none of integers, or the runs or the mask are not of so many rows.
    pub fn sum_by_runs(&self, runs: &MaskedRuns, mask: &[u64], to: &mut Vec<i128>) -> bool {
        if !self.kind.is_integer() {
            wrong_kind("integers")
        }
        Selection::Mask(mask).check(self.rows());
        if self.has_nulls() {
            return false;
        }
        let runs = runs.runs.iter().map(|run| (run.rows.start as usize..run.rows.end as usize, run.is_whole));
        match &self.store {
            Store::Constant(Scalar::Integer(value)) => {
                to.extend(runs.map(|(rows, _)| i128::from(*value) * bits::count_in(mask, rows) as i128));
            }
            Store::Integers { base, width, codes } if self.runs.is_none() && self.codes.is_none() => {
                let base = i128::from(*base);
                with_width!(*width, C => {
                    let codes = C::list(codes.bytes());
                    to.extend(runs.map(|(rows, is_whole)| {
                        let (sum, count) = match is_whole {
                            true => (total::<C>(&codes[rows.clone()]), rows.len()),
                            false => total_of::<C>(codes, mask, rows),
                        };
                        base * count as i128 + sum as i128
                    }));
                });
            }
            _ => return false,
        }
        true
    }
}

/// The sum of codes.
#[inline]
fn total<C: Code>(codes: &[C::Bytes]) -> u128 {
    let get = |code: &C::Bytes| C::get(*code).widen();
    match C::WIDTH {
        Width::Eight => codes.iter().map(|code| u128::from(get(code))).sum(),
        // There are 65,536 at most.
        _ => codes.iter().map(get).sum::<u64>().into(),
    }
}

/// The sum of the codes in `rows` whose bits are set, and how many these are.
fn total_of<C: Code>(codes: &[C::Bytes], mask: &[u64], rows: Range<usize>) -> (u128, usize) {
    let (mut sum, mut count) = (0, 0);
    for start in rows.clone().step_by(64) {
        let codes = &codes[start..rows.end.min(start + 64)];
        let wanted = word_at(mask, start) & (u64::MAX >> (64 - codes.len()));
        count += wanted.count_ones() as usize;
        sum += bits::ones(wanted).map(|at| u128::from(C::get(codes[at]).widen())).sum::<u128>();
    }
    (sum, count)
}
