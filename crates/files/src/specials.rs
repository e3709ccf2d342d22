//! Finds the few bytes that matter in a text, 64 bytes at a time.

/// Bytes looked at together.
const BLOCK: usize = 64;

/// The places of up to four different bytes, in order.
pub(crate) struct Specials<'a> {
    bytes: &'a [u8],
    wanted: [u8; 4],
    base: usize,
    /// Bit `i`: the byte at `base + i` is one of those wanted and has not been given yet.
    mask: u64,
}

impl<'a> Specials<'a> {
    pub(crate) fn new(bytes: &'a [u8], wanted: [u8; 4]) -> Self {
        let mut specials = Self { bytes, wanted, base: 0, mask: 0 };
        specials.mask = specials.load();
        specials
    }

    /// The next place, or the end of the text.
    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        while self.mask == 0 {
            self.base += BLOCK;
            if self.base >= self.bytes.len() {
                return self.bytes.len();
            }
            self.mask = self.load();
        }
        let at = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        at
    }

    /// Goes on from `to`.
    pub(crate) fn seek(&mut self, to: usize) {
        self.base = to - to % BLOCK;
        self.mask = self.load() & (u64::MAX << (to % BLOCK));
    }

    #[inline]
    fn load(&self) -> u64 {
        match self.bytes.get(self.base..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
            Some(block) => matches(block, self.wanted),
            None => self.load_last(),
        }
    }

    #[cold]
    fn load_last(&self) -> u64 {
        let rest = self.bytes.get(self.base..).unwrap_or_default();
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        matches(&block, self.wanted) & ((1_u64 << rest.len()) - 1)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn matches(block: &[u8; BLOCK], wanted: [u8; 4]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};
    let [a, b, c, d] = wanted.map(|byte| _mm_set1_epi8(byte as i8));
    let mut mask = 0;
    for (i, lane) in block.as_chunks::<16>().0.iter().enumerate() {
        let lane = u128::from_le_bytes(*lane);
        let lane = _mm_set_epi64x((lane >> 64) as i64, lane as i64);
        let first = _mm_or_si128(_mm_cmpeq_epi8(lane, a), _mm_cmpeq_epi8(lane, b));
        let second = _mm_or_si128(_mm_cmpeq_epi8(lane, c), _mm_cmpeq_epi8(lane, d));
        let found = _mm_movemask_epi8(_mm_or_si128(first, second));
        mask |= u64::from(found as u16) << (16 * i);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn matches(block: &[u8; BLOCK], wanted: [u8; 4]) -> u64 {
    let bit = |(i, byte): (usize, &u8)| u64::from(wanted.contains(byte)) << i;
    block.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_byte_is_found_once_wherever_the_search_begins() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * i % 251) as u8).collect();
        let wanted = [0, b',', b'"', 250];
        for length in [0, 1, 63, 64, 65, 127, 128, 999, 1000] {
            let bytes = &bytes[..length];
            for start in [0, 1, 62, 63, 64, 65, 500].into_iter().filter(|start| *start < length) {
                let mut specials = Specials::new(bytes, wanted);
                specials.seek(start);
                let found = std::iter::from_fn(|| Some(specials.next()).filter(|at| *at < length));
                let expected = (start..length).filter(|at| wanted.contains(&bytes[*at]));
                assert!(found.eq(expected), "{length} from {start}");
            }
        }
    }
}
