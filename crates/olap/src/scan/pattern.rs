//! LIKE with a constant pattern, on one column.
//!
//! Responsible for: which patterns a scan decides itself, and their masks: of a column that is encoded a range of codes
//! for a prefix, else a test of each value of its dictionary, or of the codes of packed or compressed texts; of another by
//! Arrow's kernel, over the rows wanted only if these are few. Not responsible for: ILIKE, `_`, escapes and patterns that are
//! not constant, which are expressions like others ([`super::computed`]).

use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding::{ScalarRef, Test as Codes};
use arrow::array::{Array, ArrayRef, Scalar, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::comparison;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Like;

use super::codes;
use super::computed::{scattered, values_of};
use super::gather::is_sparse;
use crate::relation::{ChunkData, EncodedColumn};

/// One LIKE, or NOT LIKE.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) column: ColumnId,
    pub(crate) negated: bool,
    text: Arc<str>,
}

impl Pattern {
    /// Reads a LIKE of `column`. `None`: not one of ours.
    pub(super) fn read(like: &Like, column: ColumnId, schema: &Schema) -> Option<Self> {
        let Expr::Literal(pattern, _) = &*like.pattern else { return None };
        let text = pattern.try_as_str().flatten()?;
        let is_plain = !text.contains('\\') && Pieces::of(text).is_some();
        let ours = !like.case_insensitive && like.escape_char.is_none() && is_plain;
        let is_text = *schema.field(column.index()).data_type() == DataType::Utf8View;
        (ours && is_text).then(|| Self { column, negated: like.negated, text: text.into() })
    }

    /// The rows that pass; of rows that are not `within` it may say either.
    pub(super) fn mask(
        &self,
        chunk: &dyn ChunkData,
        within: Option<&BooleanBuffer>,
    ) -> Result<BooleanBuffer, ArrowError> {
        let slots = chunk.slots();
        if let Some(column) = chunk.encoded(self.column) {
            let pieces = Pieces::of(&self.text).expect("it was read as such a pattern");
            return Ok(codes::narrowed(slots, within, |mask| match self.negated {
                false => pieces.narrow(&*column, mask),
                true => codes::reject(&*column, mask, |mask| pieces.narrow(&*column, mask)),
            }));
        }
        let selected = within.map_or(slots, BooleanBuffer::count_set_bits);
        let Some(within) = within.filter(|_| is_sparse(selected, slots)) else {
            return self.passed(&chunk.column(self.column));
        };
        let texts = values_of(chunk, self.column, Some(within))?;
        Ok(scattered(&self.passed(&texts)?, within))
    }

    /// Which of the texts pass.
    fn passed(&self, texts: &ArrayRef) -> Result<BooleanBuffer, ArrowError> {
        let pattern = Scalar::new(StringViewArray::from(vec![&*self.text]));
        let passed = match self.negated {
            true => comparison::nlike(texts, &pattern)?,
            false => comparison::like(texts, &pattern)?,
        };
        Ok(match passed.nulls() {
            Some(nulls) => passed.values() & nulls.inner(),
            None => passed.values().clone(),
        })
    }
}

/// A pattern without `_`: what a text begins with, what it ends with, and what lies between, in this order. Without `%`
/// it is the text.
#[derive(Debug, PartialEq, Eq)]
struct Pieces<'p> {
    first: &'p [u8],
    /// The pieces behind the first `%`, the last of which the text ends with; `None`: there is no `%`.
    rest: Option<(Vec<&'p [u8]>, &'p [u8])>,
}

impl<'p> Pieces<'p> {
    fn of(pattern: &'p str) -> Option<Self> {
        if pattern.contains('_') {
            return None;
        }
        let mut pieces = pattern.split('%').map(str::as_bytes);
        let first = pieces.next()?;
        let rest = pieces.next_back().map(|last| (pieces.filter(|piece| !piece.is_empty()).collect(), last));
        Some(Self { first, rest })
    }

    /// Clears the bits of rows that do not match.
    fn narrow(&self, column: &dyn EncodedColumn, mask: &mut [u64]) {
        match &self.rest {
            None => column.select(&mut Codes::Equal(ScalarRef::Text(self.first)), mask),
            Some((middle, [])) if middle.is_empty() => column.select(&mut Codes::Prefix(self.first), mask),
            Some((middle, last)) if middle.is_empty() && self.first.is_empty() => {
                column.select(&mut Codes::Suffix(last), mask);
            }
            Some((_, last)) => {
                // Few are left of which the whole text has to be looked at.
                if !self.first.is_empty() {
                    column.select(&mut Codes::Prefix(self.first), mask);
                }
                if !last.is_empty() {
                    column.select(&mut Codes::Suffix(last), mask);
                }
                let mut matches =
                    |value: ScalarRef<'_>| matches!(value, ScalarRef::Text(text) if self.matches(text));
                column.select(&mut Codes::Each(&mut matches), mask);
            }
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        let Some((middle, last)) = &self.rest else { return text == self.first };
        let Some(text) = text.strip_prefix(self.first) else { return false };
        let Some(mut text) = text.strip_suffix(*last) else { return false };
        middle.iter().all(|piece| match text.windows(piece.len()).position(|part| part == *piece) {
            Some(at) => {
                text = &text[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use albireo_testing::Random;

    use super::*;

    #[test]
    fn pieces_match_as_the_kernel_does() {
        let mut random = Random::new(1);
        let mut word = |letters: &[char], most: u64| -> String {
            (0..random.below(most)).map(|_| random.pick(letters)).collect()
        };
        for _ in 0..3_000 {
            let (pattern, text) = (word(&['a', 'b', 'é', '%'], 6), word(&['a', 'b', 'é'], 7));
            let like = Pattern { column: ColumnId(0), negated: false, text: pattern.as_str().into() };
            let texts: ArrayRef = Arc::new(StringViewArray::from(vec![text.as_str()]));
            let expected = like.passed(&texts).unwrap().value(0);
            let pieces = Pieces::of(&pattern).unwrap();
            assert_eq!(pieces.matches(text.as_bytes()), expected, "{text} LIKE {pattern}");
        }
        assert_eq!(Pieces::of("a_%"), None);
    }
}
