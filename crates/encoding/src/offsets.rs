//! Offsets of texts among their bytes: where each begins, and behind the last one where it ends. 32 bits each.

use std::ops::Range;

/// Where the text at `place` lies among the bytes.
#[inline]
pub(crate) fn text_range(offsets: &[u8], place: usize) -> Range<usize> {
    let list = offsets.as_chunks::<4>().0;
    let at = |place: usize| u32::from_le_bytes(list[place]) as usize;
    at(place)..at(place + 1)
}

/// Appends the ends of texts whose offsets these are, as if the first began at `start`.
pub(crate) fn ends_from(start: u32, offsets: &[[u8; 4]], ends: &mut Vec<u32>) {
    let [first, rest @ ..] = offsets else { return };
    let shift = start.wrapping_sub(u32::from_le_bytes(*first));
    ends.extend(rest.iter().map(|end| u32::from_le_bytes(*end).wrapping_add(shift)));
}
