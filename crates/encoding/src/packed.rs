//! Texts of few different bytes, as numbers of a few bits.
//!
//! Responsible for: alphabets, packing, unpacking, comparing without unpacking. Not responsible for: when texts are
//! packed (`encode::choose`).
//!
//! A *symbol* is a byte of a text; its code is its number in the alphabet, which ascends, so that codes are ordered as
//! bytes are. Symbol `i` of the column has bits `i * BITS` to before `(i + 1) * BITS`, counted from the lowest bit of the
//! first byte. So eight symbols have `BITS` bytes, wherever they begin, and 55 bits hold them with the bits before.

use std::cmp::Ordering;
use std::ops::Range;

use crate::offsets::{ends_from, text_range};
use crate::section::Section;

/// The most bytes that differ: codes of up to six bits.
pub(crate) const SYMBOLS: usize = 64;
/// 1 in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// Bytes behind the last one with a code, so that eight bytes can be read wherever a text begins, and be it an empty one.
const TAIL: usize = 8;

/// The bytes of which texts consist, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alphabet {
    /// Those, and zeros behind them.
    table: [u8; SYMBOLS],
    count: u8,
    /// Of a code: 1 to 6.
    bits: u8,
}

impl Alphabet {
    /// The alphabet of these bytes, which ascend; none if they do not, or are none, or more than 64.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let mut table = [0; SYMBOLS];
        table.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let fine = !bytes.is_empty() && bytes.is_sorted_by(|a, b| a < b);
        fine.then(|| {
            let count = bytes.len() as u8;
            Self { table, count, bits: (u8::BITS - (count - 1).leading_zeros()).max(1) as u8 }
        })
    }

    /// The alphabet of `texts`; none if that has no bytes, or too many different ones.
    pub(crate) fn of(texts: &[u8]) -> Option<Self> {
        let mut seen = [false; 256];
        let mut count = 0;
        // In pieces, so that a text of many bytes is found to be one early.
        for piece in texts.chunks(1 << 12) {
            piece.iter().for_each(|byte| seen[usize::from(*byte)] = true);
            count = seen.iter().filter(|seen| **seen).count();
            if count > SYMBOLS {
                return None;
            }
        }
        let mut bytes = Vec::with_capacity(count);
        bytes.extend((0..=u8::MAX).filter(|byte| seen[usize::from(*byte)]));
        Self::new(&bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.table[..usize::from(self.count)]
    }

    /// Bits of a code: 1 to 6.
    #[inline]
    pub(crate) fn bits(&self) -> usize {
        self.bits.into()
    }

    fn code(&self, byte: u8) -> Option<u8> {
        self.bytes().binary_search(&byte).ok().map(|code| code as u8)
    }
}

/// Bytes of a section of so many codes.
pub(crate) fn section_bytes(symbols: u64, bits: usize) -> u64 {
    (symbols * bits as u64).div_ceil(8) + TAIL as u64
}

/// Runs `body` with `$BITS` standing for `$bits`, which are 1 to 6.
macro_rules! with_bits {
    ($bits:expr, $BITS:ident => $body:expr) => {
        match $bits {
            1 => with_bits!(@ $BITS, 1, $body),
            2 => with_bits!(@ $BITS, 2, $body),
            3 => with_bits!(@ $BITS, 3, $body),
            4 => with_bits!(@ $BITS, 4, $body),
            5 => with_bits!(@ $BITS, 5, $body),
            _ => with_bits!(@ $BITS, 6, $body),
        }
    };
    (@ $BITS:ident, $bits:literal, $body:expr) => {{
        const $BITS: u32 = $bits;
        $body
    }};
}

/// The lowest `bits` bits of each lane of so many bits.
const fn low(bits: u32, lane: u32) -> u64 {
    (u64::MAX >> (64 - bits)) * (u64::MAX / (u64::MAX >> (64 - lane)))
}

/// Eight codes, the first one lowest, a byte each: the upper half of what is in each lane moves to the lane's.
#[inline(always)]
fn spread<const BITS: u32>(codes: u64) -> u64 {
    let halves = |codes: u64, bits: u32, lane: u32| {
        codes & low(bits, lane) | (codes & low(bits, lane) << bits) << (lane / 2 - bits)
    };
    halves(halves(halves(codes, 4 * BITS, 64), 2 * BITS, 32), BITS, 16)
}

/// The eight codes without room between them; undoes [`spread`].
#[inline(always)]
fn join<const BITS: u32>(bytes: u64) -> u64 {
    let halves = |codes: u64, bits: u32, lane: u32| {
        codes & low(bits, lane) | (codes & low(bits, lane) << (lane / 2)) >> (lane / 2 - bits)
    };
    halves(halves(halves(bytes, BITS, 16), 2 * BITS, 32), 4 * BITS, 64)
}

/// How long each text is, in symbols.
#[derive(Clone, Debug)]
pub(crate) enum Lengths<S> {
    /// All are as long as that.
    One(u32),
    /// Where each begins, and where the last one ends, `u32`; and that.
    Offsets { offsets: S, symbols: u32 },
}

/// Texts by place, packed.
#[derive(Clone, Debug)]
pub(crate) struct Packed<S> {
    pub(crate) alphabet: Box<Alphabet>,
    pub(crate) lengths: Lengths<S>,
    /// Codes, and [`TAIL`] bytes of zeros.
    pub(crate) codes: S,
}

/// What packed texts are compared with: its codes, eight to a word, and how many bits are above them.
pub(crate) struct Wanted {
    words: Vec<(u64, u32)>,
    length: usize,
}

/// What stands for no code.
const NONE: u8 = 0x80;

/// The codes of `texts`; none if they have bytes that are not of the alphabet.
pub(crate) fn pack(texts: &[u8], alphabet: &Alphabet) -> Option<Vec<u8>> {
    let mut table = [NONE; 256];
    for (code, byte) in alphabet.bytes().iter().enumerate() {
        table[usize::from(*byte)] = code as u8;
    }
    let bits = alphabet.bits();
    let mut codes = vec![0; section_bytes(texts.len() as u64, bits) as usize];
    with_bits!(bits, BITS => pack_into::<BITS>(texts, &table, &mut codes)).then_some(codes)
}

/// Whether there is a code for every byte.
fn pack_into<const BITS: u32>(texts: &[u8], table: &[u8; 256], codes: &mut [u8]) -> bool {
    let mut all = 0;
    let mut join_eight = |eight: [u8; 8]| {
        let lanes = u64::from_le_bytes(eight.map(|byte| table[usize::from(byte)]));
        all |= lanes;
        join::<BITS>(lanes)
    };
    let (pieces, rest) = texts.as_chunks::<8>();
    for (to, eight) in codes.chunks_exact_mut(BITS as usize).zip(pieces) {
        to.copy_from_slice(&join_eight(*eight).to_le_bytes()[..BITS as usize]);
    }
    if let Some(any) = rest.first() {
        let mut eight = [*any; 8];
        eight[..rest.len()].copy_from_slice(rest);
        // Bits behind the last symbol are 0.
        let used = BITS as usize * rest.len();
        let joined = join_eight(eight) & (u64::MAX >> (64 - used));
        let first = pieces.len() * BITS as usize;
        codes[first..][..used.div_ceil(8)].copy_from_slice(&joined.to_le_bytes()[..used.div_ceil(8)]);
    }
    all & (ONES * u64::from(NONE)) == 0
}

/// The eight bytes from `at` on.
#[inline(always)]
fn load(codes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*codes[at..].first_chunk().expect("a tail is behind the last code"))
}

/// Appends the bytes of `symbols`.
#[inline]
fn unpack<const BITS: u32>(codes: &[u8], table: &[u8; SYMBOLS], symbols: Range<usize>, out: &mut Vec<u8>) {
    let (first, before) = (symbols.start * BITS as usize, out.len());
    let (shift, codes) = (first % 8, &codes[first / 8..]);
    // The room is made first, so that the loop writes and does nothing else.
    out.resize(before + symbols.len().next_multiple_of(8), 0);
    for (number, eight) in out[before..].as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let lanes = spread::<BITS>(load(codes, number * BITS as usize) >> shift).to_le_bytes();
        *eight = lanes.map(|code| table[usize::from(code) % SYMBOLS]);
    }
    out.truncate(before + symbols.len());
}

impl<S: Section> Packed<S> {
    /// The same with its sections lent.
    pub(crate) fn borrowed(&self) -> Packed<&[u8]> {
        let lengths = match &self.lengths {
            Lengths::One(length) => Lengths::One(*length),
            Lengths::Offsets { offsets, symbols } => {
                Lengths::Offsets { offsets: offsets.bytes(), symbols: *symbols }
            }
        };
        Packed { alphabet: self.alphabet.clone(), lengths, codes: self.codes.bytes() }
    }

    /// The symbols of the texts at `places`, of which there is one.
    #[inline]
    pub(crate) fn symbols(&self, places: Range<usize>) -> Range<usize> {
        match &self.lengths {
            Lengths::One(length) => places.start * *length as usize..places.end * *length as usize,
            Lengths::Offsets { offsets, .. } => {
                let offsets = offsets.bytes();
                text_range(offsets, places.start).start..text_range(offsets, places.end - 1).end
            }
        }
    }

    /// Appends the texts at `places`, of which there is one.
    #[inline]
    pub(crate) fn texts_into(&self, places: Range<usize>, out: &mut Vec<u8>) {
        let (symbols, table) = (self.symbols(places), &self.alphabet.table);
        with_bits!(self.alphabet.bits, BITS => unpack::<BITS>(self.codes.bytes(), table, symbols, out));
    }

    /// Makes `out` the text at `place`.
    #[inline]
    pub(crate) fn text_in<'o>(&self, place: usize, out: &'o mut Vec<u8>) -> &'o [u8] {
        out.clear();
        self.texts_into(place..place + 1, out);
        out
    }

    /// The text at `place`.
    pub(crate) fn text(&self, place: usize) -> Vec<u8> {
        let symbols = self.symbols(place..place + 1);
        let mut text = Vec::with_capacity(symbols.len().next_multiple_of(8));
        self.texts_into(place..place + 1, &mut text);
        text
    }

    /// Appends where each of the texts at `places` ends, the first of which begins at `start`.
    pub(crate) fn ends_into(&self, places: Range<usize>, start: u32, ends: &mut Vec<u32>) {
        match &self.lengths {
            Lengths::One(length) => ends.extend((1..=places.len() as u32).map(|text| start + text * length)),
            Lengths::Offsets { offsets, .. } => {
                ends_from(start, &offsets.bytes().as_chunks().0[places.start..=places.end], ends);
            }
        }
    }

    /// Codes to compare with; none if no text can have these bytes.
    pub(crate) fn wanted(&self, bytes: &[u8]) -> Option<Wanted> {
        let bits = self.alphabet.bits();
        let word = |eight: &[u8]| {
            let code = |(at, byte): (usize, &u8)| Some(u64::from(self.alphabet.code(*byte)?) << (at * bits));
            let codes = eight.iter().enumerate().map(code).sum::<Option<u64>>()?;
            Some((codes, 64 - (eight.len() * bits) as u32))
        };
        let words = bytes.chunks(8).map(word).collect::<Option<_>>()?;
        let can_be = !matches!(&self.lengths, Lengths::One(length) if bytes.len() > *length as usize);
        can_be.then_some(Wanted { words, length: bytes.len() })
    }

    /// Whether the text at `place` is `wanted`.
    #[inline]
    pub(crate) fn is(&self, place: usize, wanted: &Wanted) -> bool {
        let symbols = self.symbols(place..place + 1);
        symbols.len() == wanted.length && self.has(symbols.start, wanted)
    }

    /// Whether the text at `place` begins with `wanted`.
    #[inline]
    pub(crate) fn begins_with(&self, place: usize, wanted: &Wanted) -> bool {
        let symbols = self.symbols(place..place + 1);
        symbols.len() >= wanted.length && self.has(symbols.start, wanted)
    }

    /// Whether the text at `place` ends with `wanted`.
    #[inline]
    pub(crate) fn ends_with(&self, place: usize, wanted: &Wanted) -> bool {
        let symbols = self.symbols(place..place + 1);
        symbols.len() >= wanted.length && self.has(symbols.end - wanted.length, wanted)
    }

    /// Whether the symbols from `first` on, of which there are enough, are those wanted.
    #[inline]
    fn has(&self, first: usize, wanted: &Wanted) -> bool {
        let (codes, bits) = (self.codes.bytes(), self.alphabet.bits());
        let (at, shift) = (first * bits / 8, first * bits % 8);
        let differs = |number: usize, (word, bits_above): (u64, u32)| {
            (load(codes, at + number * bits) >> shift ^ word) << bits_above != 0
        };
        let Some((first, rest)) = wanted.words.split_first() else { return true };
        !differs(0, *first) && rest.iter().enumerate().all(|(number, word)| !differs(number + 1, *word))
    }

    /// What texts that begin with `bytes` are ordered by, as [`Packed::key`] has it: what is not in the alphabet comes
    /// between what is, and what is behind it does not matter.
    pub(crate) fn key_of(&self, bytes: &[u8]) -> u64 {
        let mut key = [0; 8];
        for (lane, byte) in key.iter_mut().zip(bytes) {
            match self.alphabet.bytes().binary_search(byte) {
                Ok(code) => *lane = 2 * code as u8 + 2,
                Err(code) => {
                    *lane = 2 * code as u8 + 1;
                    break;
                }
            }
        }
        u64::from_be_bytes(key)
    }

    /// The first eight symbols, the first one highest, so that the order of keys is that of texts that differ there; 0
    /// where there is none.
    #[inline]
    fn key(&self, symbols: &Range<usize>) -> u64 {
        let first = symbols.start * self.alphabet.bits();
        let codes = load(self.codes.bytes(), first / 8) >> (first % 8);
        let lanes = with_bits!(self.alphabet.bits(), BITS => spread::<BITS>(codes)) * 2 + 2 * ONES;
        let behind = 8_usize.saturating_sub(symbols.len()) * 8;
        lanes.swap_bytes() & u64::MAX.checked_shl(behind as u32).unwrap_or(0)
    }

    /// The text at `place` compared with `other`, whose key is at hand; `text` is room.
    #[inline]
    pub(crate) fn compare(&self, place: usize, (key, other): (u64, &[u8]), text: &mut Vec<u8>) -> Ordering {
        let symbols = self.symbols(place..place + 1);
        self.key(&symbols).cmp(&key).then_with(|| match symbols.len().max(other.len()) {
            // All of both is in the keys.
            0..=8 => Ordering::Equal,
            _ => self.text_in(place, text).cmp(other),
        })
    }

    /// Whether all codes stand for a symbol, and no bit is set behind the last of `symbols`.
    pub(crate) fn is_sound(&self, symbols: usize) -> bool {
        let (codes, bits) = (self.codes.bytes(), self.alphabet.bits());
        let (end, used) = (symbols * bits / 8, symbols * bits % 8);
        let behind = codes[end] >> used == 0 && codes[end + 1..].iter().all(|byte| *byte == 0);
        // What has no bits behind its last symbol may be read as whole groups of eight.
        let greatest = with_bits!(bits, BITS => {
            let group = |number| spread::<BITS>(load(codes, number * BITS as usize)).to_le_bytes();
            (0..symbols.div_ceil(8)).flat_map(group).max()
        });
        behind && greatest.is_none_or(|greatest| greatest < self.alphabet.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spread_to_bytes_and_joined_again() {
        fn check<const BITS: u32>() {
            for mixed in [0, u64::MAX, 0x0123_4567_89ab_cdef, 0x9e37_79b9_7f4a_7c15] {
                let codes = mixed >> (64 - 8 * BITS);
                let bytes = spread::<BITS>(codes);
                for (at, byte) in bytes.to_le_bytes().into_iter().enumerate() {
                    assert_eq!(
                        u64::from(byte),
                        codes >> (at as u32 * BITS) & ((1 << BITS) - 1),
                        "{BITS} bits"
                    );
                }
                // What lies above the eight codes does not matter.
                assert_eq!(spread::<BITS>(codes | u64::MAX << (8 * BITS)), bytes);
                assert_eq!(join::<BITS>(bytes), codes);
            }
        }
        (1..=6).for_each(|bits| with_bits!(bits, BITS => check::<BITS>()));
    }

    #[test]
    fn alphabet_ascends_and_has_1_to_64_bytes() {
        assert_eq!(Alphabet::of(b""), None);
        assert_eq!(Alphabet::of(b"banana").map(|alphabet| alphabet.bytes().to_vec()), Some(b"abn".to_vec()));
        assert_eq!(Alphabet::new(b"ab").map(|alphabet| alphabet.bits()), Some(1));
        assert!(Alphabet::new(b"ba").is_none() && Alphabet::new(b"aa").is_none());
        let bytes: Vec<u8> = (0..=255).collect();
        for (count, bits) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (16, 4), (17, 5), (33, 6), (64, 6)] {
            assert_eq!(Alphabet::new(&bytes[..count]).map(|alphabet| alphabet.bits()), Some(bits));
        }
        assert!(Alphabet::new(&bytes[..65]).is_none() && Alphabet::of(&bytes[..65]).is_none());
    }
}
