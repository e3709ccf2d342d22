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

/// Bit `i`: byte `i` of the block is wanted. Written so that the compiler compares 16 bytes or more at once.
#[inline]
fn matches(block: &[u8; BLOCK], [a, b, c, d]: [u8; 4]) -> u64 {
    let mut found = [0_u8; BLOCK];
    for (found, byte) in found.iter_mut().zip(block) {
        *found = u8::from(*byte == a) | u8::from(*byte == b) | u8::from(*byte == c) | u8::from(*byte == d);
    }
    let mut mask = 0;
    for (i, eight) in found.as_chunks::<8>().0.iter().enumerate() {
        // Bit 8k of the factor is bit k of the product's highest byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * i);
    }
    mask
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
