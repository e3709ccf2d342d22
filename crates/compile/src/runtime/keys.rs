//! Keys of searches, from cells without values in between.

use albireo_base::ColumnId;
use albireo_storage::{Cell, KeyBuilder, ShortKey, Table};

use super::rows::Access;
use super::values;

/// A column of a key that a cell gives as it is: none that can be NULL.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// A whole number of so many bytes, of a cell with one that may be too large for it.
    Whole(u8),
    /// A text.
    Text(ColumnId),
}

/// Keys from the least to the greatest, and the text that their rows must have besides.
pub(super) struct Range<'c> {
    pub(super) low: u128,
    pub(super) high: u128,
    test: Option<(ColumnId, &'c str)>,
}

impl Range<'_> {
    /// Whether a row has the text.
    pub(super) fn wants(&self, table: &Table, tid: albireo_base::Tid) -> bool {
        self.test.is_none_or(|(column, text)| *table.text_bytes_at(tid, column) == *text.as_bytes())
    }
}

impl Access {
    /// The keys that begin with these cells, of which the last may be a text; `None` if no row has one.
    pub(super) fn text_range<'c>(&self, parts: &[Part], cells: &'c [Cell]) -> Option<Range<'c>> {
        let mut key = KeyBuilder::new();
        let mut test = None;
        for (part, cell) in parts.iter().zip(cells) {
            let n = number(cell)?;
            match part {
                Part::Whole(2) => drop(key.push_i16(i16::try_from(n).ok()?)),
                Part::Whole(4) => drop(key.push_i32(i32::try_from(n).ok()?)),
                Part::Whole(_) => drop(key.push_i64(n)),
                Part::Text(column) => {
                    // SAFETY: a cell of this kind holds a text; R-3.
                    let text = unsafe { values::text(cell) };
                    // No row has one with this character.
                    if memchr::memchr(0, text.as_bytes()).is_some() {
                        return None;
                    }
                    key.push_str(text);
                    // What the index compares needs no test.
                    test = (!key.key().rest.is_empty()).then_some((*column, text));
                }
            }
        }
        let (low, high) = key.prefix_range();
        Some(Range { low, high, test })
    }

    /// The least and the greatest key that the cells allow, of an index of whole numbers; `None` if no row
    /// can have one.
    pub(super) fn short_range(&self, widths: &[u8], cells: &[Cell]) -> Option<(u128, u128)> {
        // SAFETY: R-2.
        let by = unsafe { &*self.by };
        let mut cells = cells.iter();
        let mut key = ShortKey::new();
        for (width, cell) in widths.iter().zip(cells.by_ref().take(by.equal.len())) {
            key = with(key, *width, number(cell)?)?;
        }
        let (mut low, mut high) = key.range();
        let Some(range) = &by.range else { return Some((low, high)) };
        let width = *widths.last()?;
        let most = i64::MAX >> (64 - 8 * u32::from(width));
        if let Some((_, inclusive)) = range.low {
            let least = number(cells.next()?)?.checked_add(i64::from(!inclusive))?;
            if least > most {
                return None;
            }
            low = with(key, width, least.max(-most - 1))?.range().0;
        }
        if let Some((_, inclusive)) = range.high {
            let greatest = number(cells.next()?)?.checked_sub(i64::from(!inclusive))?;
            if greatest < -most - 1 {
                return None;
            }
            high = with(key, width, greatest.min(most))?.range().1;
        }
        (low <= high).then_some((low, high))
    }
}

/// A key with one more column; `None` if the column cannot hold the number.
fn with(key: ShortKey, width: u8, n: i64) -> Option<ShortKey> {
    debug_assert!(matches!(width, 2 | 4 | 8), "a column is a whole number");
    Some(match width {
        2 => key.i16(i16::try_from(n).ok()?),
        4 => key.i32(i32::try_from(n).ok()?),
        _ => key.i64(n),
    })
}

/// The whole number in a cell; `None` if it is NULL.
fn number(cell: &Cell) -> Option<i64> {
    (!values::is_null(cell)).then_some(cell.lo as i64)
}
