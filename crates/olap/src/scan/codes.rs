//! Filters on columns that are encoded: tests of codes, runs and dictionaries instead of values.
//!
//! Responsible for: which test of the encoding a filter is, and masks as words. Not responsible for: how a test is done
//! (`albireo_encoding`), filters themselves ([`super::predicate`]).
//! **Invariant:** of live rows a mask says the same as that of the values. Nothing is said of dead ones, whose values are
//! lost, and of rows outside of those that were asked for.

use std::ops::Bound;

use albireo_base::ColumnId;
use albireo_encoding::{ScalarRef, Test as Codes};
use arrow::array::{Array, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Decimal128Type};

use super::predicate::{Comparison, Predicate, Test};
use crate::relation::{ChunkData, EncodedColumn};

/// The bits of a mask in words; none is set behind the last.
pub(super) fn words(mask: &BooleanBuffer) -> Vec<u64> {
    let mut words: Vec<u64> = mask.bit_chunks().iter_padded().collect();
    words.truncate(mask.len().div_ceil(64));
    words
}

/// The bits of all slots.
pub(super) fn all(slots: usize) -> Vec<u64> {
    let mut all = vec![u64::MAX; slots.div_ceil(64)];
    if let (Some(last), rest @ 1..) = (all.last_mut(), slots % 64) {
        *last = (1 << rest) - 1;
    }
    all
}

/// The rows that are `within`, all of them if that is not said, for which `narrow` leaves the bits.
pub(super) fn narrowed(
    slots: usize,
    within: Option<&BooleanBuffer>,
    narrow: impl FnOnce(&mut [u64]),
) -> BooleanBuffer {
    let mut mask = match within {
        Some(within) => words(within),
        None => all(slots),
    };
    narrow(&mut mask);
    BooleanBuffer::new(mask.into(), 0, slots)
}

/// Clears the bits of rows that are NULL, or of which `passes` leaves the bit.
pub(super) fn reject(column: &dyn EncodedColumn, mask: &mut [u64], passes: impl FnOnce(&mut [u64])) {
    column.select(&mut Codes::IsNotNull, mask);
    let mut rejected = mask.to_vec();
    passes(&mut rejected);
    mask.iter_mut().zip(rejected).for_each(|(word, rejected)| *word &= !rejected);
}

impl Test {
    /// The constant; `None`: it is NULL.
    fn scalar(&self) -> Option<ScalarRef<'_>> {
        if self.value.is_null(0) {
            return None;
        }
        Some(match (&self.ty, self.raw) {
            (_, Some(raw)) => ScalarRef::Integer(raw),
            (DataType::Boolean, _) => ScalarRef::Integer(self.value.as_boolean().value(0).into()),
            (DataType::Decimal128(..), _) => {
                ScalarRef::I128(self.value.as_primitive::<Decimal128Type>().value(0))
            }
            (DataType::Utf8View, _) => ScalarRef::Text(self.value.as_string_view().value(0).as_bytes()),
            (DataType::BinaryView, _) => ScalarRef::Text(self.value.as_binary_view().value(0)),
            (DataType::FixedSizeBinary(_), _) => {
                let bytes: Result<[u8; 16], _> = self.value.as_fixed_size_binary().value(0).try_into();
                ScalarRef::Uuid(bytes.expect("values of a fixed size are UUIDs, of 16 bytes"))
            }
            (ty, _) => unreachable!("{ty} is not compared"),
        })
    }

    /// Clears the bits of rows that do not pass.
    pub(super) fn narrow(&self, column: &dyn EncodedColumn, mask: &mut [u64]) {
        use Bound::{Excluded, Included, Unbounded};
        let Some(value) = self.scalar() else { return mask.fill(0) };
        let mut test = match self.comparison {
            Comparison::Equal => Codes::Equal(value),
            Comparison::NotEqual => {
                return reject(column, mask, |mask| column.select(&mut Codes::Equal(value), mask));
            }
            Comparison::Less => Codes::Between(Unbounded, Excluded(value)),
            Comparison::LessOrEqual => Codes::Between(Unbounded, Included(value)),
            Comparison::Greater => Codes::Between(Excluded(value), Unbounded),
            Comparison::GreaterOrEqual => Codes::Between(Included(value), Unbounded),
        };
        column.select(&mut test, mask);
    }
}

/// The tests that `part` is of, if all of them compare one column so, joined by `join`.
fn gather<'p>(
    part: &'p Predicate,
    comparison: Comparison,
    of: &mut Option<ColumnId>,
    into: &mut Vec<&'p Test>,
) -> bool {
    match (part, comparison) {
        (Predicate::Compare(test), _) => {
            into.push(test);
            test.comparison == comparison && *of.get_or_insert(test.column) == test.column
        }
        (Predicate::Or(parts), Comparison::Equal) | (Predicate::And(parts), Comparison::NotEqual) => {
            parts.iter().all(|part| gather(part, comparison, of, into))
        }
        _ => false,
    }
}

/// The mask of an IN or NOT IN list over a column that is encoded: all constants are looked for at once.
pub(super) fn list(
    predicate: &Predicate,
    chunk: &dyn ChunkData,
    within: Option<&BooleanBuffer>,
) -> Option<BooleanBuffer> {
    let comparison = match predicate {
        Predicate::Or(_) => Comparison::Equal,
        Predicate::And(_) => Comparison::NotEqual,
        _ => return None,
    };
    let (mut column, mut tests) = (None, Vec::new());
    if !gather(predicate, comparison, &mut column, &mut tests) {
        return None;
    }
    let column = chunk.encoded(column?)?;
    let mut values: Vec<ScalarRef<'_>> = tests.iter().filter_map(|test| test.scalar()).collect();
    values.sort_by(|a, b| a.compare(*b));
    Some(narrowed(chunk.slots(), within, |mask| match comparison {
        Comparison::Equal => column.select(&mut Codes::In(&values), mask),
        // NOT IN a list with a NULL is never true.
        _ if values.len() < tests.len() => mask.fill(0),
        _ => reject(&*column, mask, |mask| column.select(&mut Codes::In(&values), mask)),
    }))
}
