//! Which slots of a frozen chunk hold no row.

use albireo_base::ids::CHUNK_ROWS;
use arrow_buffer::BooleanBuffer;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

/// Words of a bitmap over a chunk.
const WORDS: usize = CHUNK_ROWS / 64;

/// Slots without a live row, in the form that is shorter in a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum InvalidRows {
    /// The first and the last slot of each range, ascending and apart.
    Ranges(Vec<(u16, u16)>),
    /// A bit for each slot, the lowest of each byte first, in base64.
    Bits(String),
}

impl InvalidRows {
    /// Of a chunk of which these slots live, all of them if nothing is said.
    pub(crate) fn of(live: Option<&BooleanBuffer>) -> Self {
        let Some(live) = live else { return Self::Ranges(Vec::new()) };
        let invalid = !live;
        let ranges = invalid.set_slices().map(|(first, end)| (first as u16, (end - 1) as u16));
        let ranges = Self::Ranges(ranges.collect());
        let words = invalid.bit_chunks().iter_padded().take(WORDS);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).take(invalid.len().div_ceil(8)).collect();
        let bits = Self::Bits(BASE64_STANDARD.encode(bytes));
        let length = |form: &Self| serde_json::to_vec(form).map_or(usize::MAX, |text| text.len());
        if length(&bits) < length(&ranges) { bits } else { ranges }
    }

    /// A set bit for each slot of a chunk that lives; `None` if this cannot be.
    pub(crate) fn live(&self) -> Option<Vec<u64>> {
        let mut live = vec![u64::MAX; WORDS];
        match self {
            Self::Ranges(ranges) => {
                let mut from = 0;
                for &(first, last) in ranges {
                    let (first, last) = (usize::from(first), usize::from(last));
                    if first < from || last < first || last >= CHUNK_ROWS {
                        return None;
                    }
                    (first..=last).for_each(|slot| live[slot / 64] &= !(1 << (slot % 64)));
                    from = last + 2;
                }
            }
            Self::Bits(text) => {
                let bytes = BASE64_STANDARD.decode(text).ok()?;
                let words = bytes.as_chunks().0;
                if bytes.len() != CHUNK_ROWS / 8 {
                    return None;
                }
                live.iter_mut().zip(words).for_each(|(live, word)| *live = !u64::from_le_bytes(*word));
            }
        }
        Some(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(live: impl FnMut(usize) -> bool) -> BooleanBuffer {
        BooleanBuffer::collect_bool(CHUNK_ROWS, live)
    }

    #[test]
    fn slots_come_back_whichever_form_is_shorter() {
        let mut forms = [0, 0];
        for step in [1, 2, 3, 64, 65, 1000, 16_383] {
            for shift in [0, 1] {
                let live = buffer(|slot| !(slot + shift).is_multiple_of(step) && slot % 5000 < 4990);
                let invalid = InvalidRows::of(Some(&live));
                forms[usize::from(matches!(invalid, InvalidRows::Bits(_)))] += 1;
                let words: Vec<u64> = live.bit_chunks().iter_padded().take(WORDS).collect();
                assert_eq!(invalid.live(), Some(words), "{step} {shift}");
                let text = serde_json::to_string(&invalid).expect("no keys but texts");
                assert!(text.len() <= 2740, "{text}");
                assert_eq!(serde_json::from_str::<InvalidRows>(&text).ok(), Some(invalid));
            }
        }
        assert!(forms.iter().all(|count| *count > 3), "{forms:?}");
        assert_eq!(InvalidRows::of(None).live(), Some(vec![u64::MAX; WORDS]));
        assert_eq!(InvalidRows::of(Some(&buffer(|_| true))), InvalidRows::Ranges(Vec::new()));
    }

    #[test]
    fn slots_that_cannot_be_are_none() {
        for ranges in [vec![(5, 4)], vec![(0, 16_384)], vec![(0, 3), (4, 5)], vec![(9, 9), (1, 1)]] {
            assert_eq!(InvalidRows::Ranges(ranges.clone()).live(), None, "{ranges:?}");
        }
        for text in ["", "AAAA", "?"] {
            assert_eq!(InvalidRows::Bits(text.to_owned()).live(), None, "{text}");
        }
    }
}
