//! Loops over masks: 64 rows at once where many are in the mask, single rows where few are.

use super::wanted::Wanted;
use crate::bits;
use crate::numbers::Key;

/// How many rows of a word are worth testing all 64.
const MANY: u32 = 6;
/// The most keys of a set that are compared one by one, all of them with each piece, so that it is vectorised.
const FEW: usize = 8;
/// The most keys between the first and the last of a set that is looked up in a table of bits, of 32 KiB.
const TABLE: usize = 1 << 18;

/// Clears the bits of pieces that do not pass. Pieces whose bits are not set may be tested too.
#[inline]
pub(super) fn keep<B: Copy>(pieces: &[B], mask: &mut [u64], passes: impl Fn(B) -> bool) {
    for (block, word) in pieces.chunks(64).zip(mask) {
        match block.first_chunk() {
            _ if *word == 0 => {}
            Some(block) if word.count_ones() >= MANY => *word &= test_block(block, &passes),
            _ => {
                for at in bits::ones(*word) {
                    *word &= !(u64::from(!passes(block[at])) << at);
                }
            }
        }
    }
}

/// A bit for each of 64 pieces. Long ones are vectorised with the shift of each bit into the word. Of short ones the loop
/// over bytes of 0 or 1 is, and the shift of eights of these over each other: of codes of a byte 3 times as fast.
#[inline]
fn test_block<B: Copy>(block: &[B; 64], passes: impl Fn(B) -> bool) -> u64 {
    if size_of::<B>() >= size_of::<u64>() {
        return block.iter().enumerate().fold(0, |word, (at, piece)| word | u64::from(passes(*piece)) << at);
    }
    let mut passing = [0_u8; 64];
    for (passing, piece) in passing.iter_mut().zip(block) {
        *passing = u8::from(passes(*piece));
    }
    let mut word = 0;
    for (at, eight) in passing.as_chunks::<8>().0.iter().enumerate() {
        // Bit `at` of byte `i` is that of piece `8 * at + i`.
        word |= u64::from_le_bytes(*eight) << at;
    }
    transposed(word)
}

/// Bit `i` of byte `j` is bit `j` of byte `i`: fields of one bit change places, then of two, then of four.
#[inline]
fn transposed(mut word: u64) -> u64 {
    for (apart, upper) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let differ = (word ^ word >> apart) & upper;
        word ^= differ ^ differ << apart;
    }
    word
}

/// Clears the bits of places that do not pass; tests those whose bits are set.
#[inline]
pub(super) fn keep_each(mask: &mut [u64], mut passes: impl FnMut(usize) -> bool) {
    for (number, word) in mask.iter_mut().enumerate() {
        for at in bits::ones(*word) {
            *word &= !(u64::from(!passes(number * 64 + at)) << at);
        }
    }
}

/// Clears the bits of pieces whose keys are not wanted.
pub(super) fn keep_wanted<B: Copy, K: Key>(
    pieces: &[B],
    key: impl Fn(B) -> K,
    wanted: Wanted<K>,
    mask: &mut [u64],
) {
    match wanted {
        Wanted::None => mask.fill(0),
        Wanted::Range(first, last) if first == last => keep(pieces, mask, |piece| key(piece) == first),
        Wanted::Range(first, last) => {
            let span = last.minus(first);
            keep(pieces, mask, |piece| key(piece).minus(first) <= span);
        }
        Wanted::Set(keys) if keys.len() <= FEW => {
            let mut all = [keys[0]; FEW];
            all[..keys.len()].copy_from_slice(&keys);
            keep(pieces, mask, |piece| {
                let found = key(piece);
                all.iter().fold(false, |is_one, key| is_one | (*key == found))
            });
        }
        Wanted::Set(keys) => {
            let (first, last) = (keys[0], keys[keys.len() - 1]);
            let span = last.minus(first);
            let in_table = span.index().filter(|span| *span < TABLE);
            if in_table.is_none() || size_of::<K>() > size_of::<usize>() {
                keep(pieces, mask, |piece| key(piece).minus(first) <= span);
            }
            let Some(span) = in_table else {
                return keep(pieces, mask, |piece| keys.binary_search(&key(piece)).is_ok());
            };
            let mut table = vec![0_u64; bits::words(span + 1)];
            for wanted in &keys {
                let at = wanted.minus(first).low();
                table[at / 64] |= 1 << (at % 64);
            }
            // Long ones outside of the range are not in the mask any more, but may be tested with others.
            let bit = |at: usize| table.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
            keep(pieces, mask, |piece| bit(key(piece).minus(first).low()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_has_the_bit_of_each_piece_that_passes() {
        for at in 0..64 {
            let mut block = [0_u8; 64];
            block[at] = 1;
            assert_eq!(test_block(&block, |piece| piece == 1), 1 << at);
            assert_eq!(test_block(&block, |piece| piece == 0), !(1 << at));
        }
        assert_eq!(test_block(&[3_u32; 64], |_| true), u64::MAX);
        let mixed = 0x9e37_79b9_7f4a_7c15_u64;
        let pieces: [u64; 64] = std::array::from_fn(|at| mixed >> at & 1);
        assert_eq!(test_block(&pieces, |piece| piece == 1), mixed);
        assert_eq!(test_block(&pieces.map(|piece| piece as u16), |piece| piece == 1), mixed);
    }

    #[test]
    fn few_rows_are_tested_as_many_are() {
        let pieces: Vec<u16> = (0..200).collect();
        for mask in [[u64::MAX; 4], [0x8000_0000_0000_0001; 4], [0; 4]] {
            let mut mask = mask.map(|word: u64| word);
            mask[3] &= 0xff;
            let before = mask;
            let list = [0, 1, 63, 64, 65, 127, 128, 130, 198, 199];
            keep_wanted(&pieces, |piece| piece, Wanted::Set(list.to_vec()), &mut mask);
            for at in 0..200 {
                let wanted = list.contains(&(at as u16)) && bits::get(&before, at);
                assert_eq!(bits::get(&mask, at), wanted, "{at}");
            }
        }
    }

    #[test]
    fn set_with_a_span_that_is_a_multiple_of_the_words_size_does_not_wrap() {
        // Low bits of the span alone would say that it is short.
        let keys: Vec<u128> = (0..10).chain([1 << 64]).collect();
        let mut mask = [0b111];
        keep_wanted(&[0_u128, 1 << 64, 1 << 32], |piece| piece, Wanted::Set(keys), &mut mask);
        assert_eq!(mask, [0b011]);
    }
}
