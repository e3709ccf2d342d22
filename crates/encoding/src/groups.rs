//! Rows numbered by the values of some columns, and integers added up by these numbers.
//!
//! Responsible for: few groups, numbered by codes without decoding where the form allows it, and sums of codes by group.
//! Not responsible for: more groups than a byte holds; groups of several chunks, which differ in their numbers.
//!
//! - G-1 A row that was alive and has its bit in every mask given to [`Groups::keep`] is in the group of its values, NULL
//!   being one. Every other row is in no group, or, as long as `keep` was not told, in any.
//!
//! The number of a group is one byte, so the cells of a sum need no check of bounds and stay in the first cache. Each
//! column has four cells for each group, taken in turns: neighbours often are of one group, and an addition that waits for
//! the one before to be stored takes five times as long.

use crate::bits;
use crate::column::Column;
use crate::decode::Selection;
use crate::layers::{Nulls, Store, integer, wrong_kind};
use crate::numbers::{Code, Key, with_width};
use crate::section::Section;
use crate::views::Sum;

/// The number of no group; those of groups are below it.
const NONE: u8 = u8::MAX;
/// Cells of a sum that are taken in turns.
const LANES: usize = 4;
/// By eight bits of a mask: the bytes of those that are not set, in one word.
static OTHERS: [u64; 256] = {
    let mut others = [0; 256];
    let mut bits = 0;
    while bits < 256 * 8 {
        let (mask, at) = (bits / 8, bits % 8);
        if mask >> at & 1 == 0 {
            others[mask] |= 0xff << (8 * at);
        }
        bits += 1;
    }
    others
};

/// Which group each row is of.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    of_row: Vec<u8>,
    /// By column: the values in the order of their numbers.
    keys: Vec<Vec<Option<i64>>>,
    groups: usize,
    counts: Vec<u32>,
    offsets: Vec<u8>,
}

impl Groups {
    /// Makes all of `rows` rows one group, with no column.
    pub fn reset(&mut self, rows: usize) {
        self.of_row.clear();
        self.of_row.resize(rows, 0);
        self.keys.clear();
        self.groups = 1;
        self.counts.clear();
    }

    /// How many groups there may be.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Rows of `group`, once [`Groups::keep`] was called last.
    pub fn count(&self, group: usize) -> u32 {
        self.counts[group]
    }

    /// The value that `group` has of each column, in the order in which they split the rows.
    pub fn key(&self, group: usize) -> Vec<Option<i64>> {
        let mut rest = group;
        let digit = |values: &Vec<Option<i64>>| {
            let value = values[rest % values.len()];
            rest /= values.len();
            value
        };
        let mut key: Vec<Option<i64>> = self.keys.iter().rev().map(digit).collect();
        key.reverse();
        key
    }

    /// Splits each group by the values of a column; false, and nothing is changed: there would be too many.
    ///
    /// # Panics
    /// The column has another number of rows, or no integers.
    pub fn split<S: Section>(&mut self, column: &Column<S>) -> bool {
        assert_eq!(column.rows(), self.of_row.len(), "columns of one chunk");
        let most = usize::from(NONE) / self.groups;
        let Some(values) = column.numbered(most, &mut self.offsets) else { return false };
        let size = values.len() as u8;
        if self.groups == 1 {
            self.of_row.iter_mut().zip(&self.offsets).for_each(|(group, offset)| *group |= offset);
        } else {
            for (group, offset) in self.of_row.iter_mut().zip(&self.offsets) {
                let number = group.wrapping_mul(size).wrapping_add(*offset);
                *group = if *group == NONE || *offset == NONE { NONE } else { number };
            }
        }
        self.groups *= values.len();
        self.keys.push(values);
        true
    }

    /// Leaves the rows of `mask`, all if that is not said, in their groups and no other, and counts them.
    ///
    /// # Panics
    /// The mask is not one of the rows.
    pub fn keep(&mut self, mask: Option<&[u64]>) {
        if let Some(mask) = mask {
            Selection::Mask(mask).check(self.of_row.len());
            keep(&mut self.of_row, mask);
        }
        self.counts = counts(&self.of_row, self.groups);
    }
}

/// Takes the rows that have no bit in `mask` out of their groups.
fn keep(of_row: &mut [u8], mask: &[u64]) {
    for (rows, word) in of_row.chunks_mut(64).zip(mask).filter(|(_, word)| **word != u64::MAX) {
        let (steps, rest) = rows.as_chunks_mut::<8>();
        let bytes = word.to_le_bytes();
        for (groups, byte) in steps.iter_mut().zip(bytes) {
            *groups = (u64::from_le_bytes(*groups) | OTHERS[usize::from(byte)]).to_le_bytes();
        }
        let first = steps.len() * 8;
        let others = rest.iter_mut().enumerate().filter(|(at, _)| word >> (first + at) & 1 == 0);
        others.for_each(|(_, group)| *group = NONE);
    }
}

fn counts(of_row: &[u8], groups: usize) -> Vec<u32> {
    let mut cells = [[0_u32; 256]; LANES];
    let (blocks, rest) = of_row.as_chunks::<LANES>();
    for block in blocks {
        for (cells, group) in cells.iter_mut().zip(block) {
            cells[usize::from(*group)] += 1;
        }
    }
    rest.iter().for_each(|group| cells[0][usize::from(*group)] += 1);
    (0..groups).map(|group| cells.iter().map(|cells| cells[group]).sum()).collect()
}

/// The sums of what `get` makes of values, by group, modulo two to the 64.
fn totals<B: Copy>(of_row: &[u8], values: &[B], groups: usize, get: impl Fn(B) -> u64) -> Vec<u64> {
    let mut cells = [[0_u64; 256]; LANES];
    let add = |cells: &mut [u64; 256], group: u8, value: B| {
        let cell = &mut cells[usize::from(group)];
        *cell = cell.wrapping_add(get(value));
    };
    let (blocks, rest) = of_row.as_chunks::<LANES>();
    let (value_blocks, value_rest) = values.as_chunks::<LANES>();
    for (block, values) in blocks.iter().zip(value_blocks) {
        for lane in 0..LANES {
            add(&mut cells[lane], block[lane], values[lane]);
        }
    }
    rest.iter().zip(value_rest).for_each(|(group, value)| add(&mut cells[0], *group, *value));
    let total = |group| cells.iter().fold(0, |total: u64, cells| total.wrapping_add(cells[group]));
    (0..groups).map(total).collect()
}

impl<S: Section> Column<S> {
    /// Numbers the values, NULL as the last, sets `to` to the number of each row, and returns the values in the order of
    /// their numbers; `None`: there may be more than `most`. A row that was dead has any number, or that of no group.
    fn numbered(&self, most: usize, to: &mut Vec<u8>) -> Option<Vec<Option<i64>>> {
        if !self.kind.is_integer() {
            wrong_kind("integers")
        }
        // Nothing lies between them if no row lives that is not NULL.
        let (least, greatest) = self.summary.integers().unwrap_or((0, -1));
        let entries = self.codes.as_ref().filter(|_| self.runs.is_none());
        let mut values: Vec<Option<i64>> = match entries {
            Some(codes) if codes.entries as usize > most => return None,
            Some(codes) => (0..codes.entries as usize)
                .map(|code| Some(integer(self.store.scalar(self.kind, code))))
                .collect(),
            None if (greatest.wrapping_sub(least) as u64) < most as u64 || greatest < least => {
                (least..=greatest).map(Some).collect()
            }
            None => return None,
        };
        let count = values.len() as u8;
        to.clear();
        match (&self.store, entries) {
            (_, Some(_)) => self.codes_to(&Selection::All, to),
            (Store::Constant(_), _) => to.resize(self.rows(), 0),
            (Store::Integers { base, width, codes }, None) if self.runs.is_none() => {
                let shift = least.wrapping_sub(*base) as u64;
                with_width!(*width, C => {
                    let (shift, count) = (C::narrow(shift), C::narrow(count.into()));
                    to.extend(C::list(codes.bytes()).iter().map(|code| {
                        let offset = C::get(*code).minus(shift);
                        if offset < count { offset.low() as u8 } else { NONE }
                    }));
                });
            }
            _ => {
                for (rows, value) in self.runs().into_iter().flatten() {
                    let offset = integer(value).wrapping_sub(least) as u64;
                    let number = if offset < count.into() { offset as u8 } else { NONE };
                    to.resize(rows.end as usize, number);
                }
            }
        }
        if self.has_nulls() || values.is_empty() {
            if values.len() == most {
                return None;
            }
            values.push(None);
            let mut nulls = Vec::new();
            self.nulls_of(&Selection::All, &mut nulls);
            bits::for_each_range(&nulls, |rows| to[rows].fill(count));
        }
        Some(values)
    }

    /// Adds up the integers that are not NULL by group, and counts them; `None`: their sums may not fit 64 bits.
    ///
    /// # Panics
    /// The column has another number of rows, no integers, or groups were not counted.
    pub fn sum_by(&self, groups: &Groups) -> Option<Vec<Sum>> {
        assert_eq!(self.rows(), groups.of_row.len(), "columns of one chunk");
        if !self.kind.is_integer() {
            wrong_kind("integers")
        }
        let mut of_row = &groups.of_row;
        let mut without_nulls = Vec::new();
        let mut counts = &groups.counts;
        let mut own_counts = Vec::new();
        assert_eq!(counts.len(), groups.groups, "groups are counted before sums");
        match &self.nulls {
            Nulls::None => {}
            Nulls::All => return Some(vec![Sum::default(); groups.groups]),
            Nulls::Bits(_) | Nulls::Ranges(_) => {
                without_nulls.extend_from_slice(of_row);
                let mut mask = Vec::new();
                self.nulls_of(&Selection::All, &mut mask);
                bits::for_each_range(&mask, |rows| without_nulls[rows].fill(NONE));
                own_counts.extend(self::counts(&without_nulls, groups.groups));
                (of_row, counts) = (&without_nulls, &own_counts);
            }
        }
        let (base, totals) = self.totals_by(of_row, groups.groups)?;
        let sum =
            |(total, count): (i128, &u32)| Sum { sum: base * i128::from(*count) + total, count: *count };
        Some(totals.into_iter().zip(counts).map(sum).collect())
    }

    /// What is to be added for each value, and the sums of the rest by group.
    fn totals_by(&self, of_row: &[u8], groups: usize) -> Option<(i128, Vec<i128>)> {
        let Some((least, greatest)) = self.summary.integers() else { return Some((0, vec![0; groups])) };
        // Rows that were dead may be outside of the bounds, but they are of no group.
        let rows = self.rows() as u128;
        match &self.store {
            Store::Constant(_) => Some((least.into(), vec![0; groups])),
            Store::Integers { base, width, codes } if self.runs.is_none() && self.codes.is_none() => {
                if u128::from(greatest.wrapping_sub(*base) as u64) * rows > u64::MAX.into() {
                    return None;
                }
                let sums = with_width!(*width, C => {
                    totals(of_row, C::list(codes.bytes()), groups, |code| C::get(code).widen())
                });
                Some((i128::from(*base), sums.into_iter().map(i128::from).collect()))
            }
            _ => {
                if u128::from(least.unsigned_abs().max(greatest.unsigned_abs())) * rows > i64::MAX as u128 {
                    return None;
                }
                let mut values: Vec<i64> = Vec::with_capacity(self.rows());
                self.integers_into(&Selection::All, &mut values);
                let sums = totals(of_row, &values, groups, |value| value as u64);
                Some((0, sums.into_iter().map(|sum| i128::from(sum as i64)).collect()))
            }
        }
    }
}
