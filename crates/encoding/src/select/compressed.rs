//! Tests compressed texts: equality on codes, order and beginnings symbol by symbol, all else in a buffer, text by text.

use std::ops::Bound;

use super::Test;
use super::keep::keep_each;
use crate::compressed::{Other, Reader};
use crate::layers::wrong_kind;
use crate::scalar::ScalarRef;

fn text(value: ScalarRef<'_>) -> &[u8] {
    match value {
        ScalarRef::Text(text) => text,
        _ => wrong_kind("texts"),
    }
}

/// Clears the bits of places whose texts do not pass.
pub(super) fn select(texts: Reader<'_>, test: &mut Test<'_>, mask: &mut [u64]) {
    match test {
        Test::Equal(value) => {
            let wanted = texts.matcher().codes(text(*value));
            keep_each(mask, |place| *texts.codes_at(place) == wanted[..]);
        }
        Test::In(list) => {
            let matcher = texts.matcher();
            let mut wanted: Vec<Vec<u8>> = list.iter().map(|value| matcher.codes(text(*value))).collect();
            wanted.sort_unstable();
            keep_each(mask, |place| {
                let codes = texts.codes_at(place);
                wanted.binary_search_by(|wanted| wanted[..].cmp(codes)).is_ok()
            });
        }
        Test::Prefix(prefix) => {
            let prefix = Other::of(prefix);
            keep_each(mask, |place| texts.begins_with(place, &prefix));
        }
        Test::Between(lower, upper) => {
            let lower = lower.map(|value| Other::of(text(value)));
            let upper = upper.map(|value| Other::of(text(value)));
            keep_each(mask, |place| {
                let is_above = match &lower {
                    Bound::Included(lower) => texts.compare(place, lower).is_ge(),
                    Bound::Excluded(lower) => texts.compare(place, lower).is_gt(),
                    Bound::Unbounded => true,
                };
                is_above
                    && match &upper {
                        Bound::Included(upper) => texts.compare(place, upper).is_le(),
                        Bound::Excluded(upper) => texts.compare(place, upper).is_lt(),
                        Bound::Unbounded => true,
                    }
            });
        }
        test => {
            let mut buffer = Vec::new();
            keep_each(mask, |place| test.passes(ScalarRef::Text(texts.text_in(place, &mut buffer))));
        }
    }
}
