//! Compresses texts that are one behind the other by a table of symbols that is made of them.
//!
//! A table costs some 100 ns a text to make, whatever comes of it. So it is made only if strings of three bytes come again:
//! of random letters nothing is saved. Then some texts show what all of them will take.

use fsst::Compressor;

use crate::compressed::{Compressed, TABLE, compress, table_of};
use crate::layers::Store;

/// Pieces of the bytes in which it is looked for what comes again, and bytes of each.
const PIECES: usize = 16;
const PIECE: usize = 512;
/// Counters of strings of three bytes.
const COUNTERS: usize = 1 << 12;
/// Symbols of a table.
const SYMBOLS: usize = 255;
/// Texts that are compressed to see what all of them will take.
const SAMPLE: usize = 256;

/// The most bytes that compressed texts may have instead of so many as they are, which are lent and read at once, and so
/// many packed, which are read faster.
pub(super) fn worth(plain: usize, packed: usize) -> usize {
    (plain / 3 * 2).min(packed / 4 * 3)
}

/// Texts of `store`, of which there are `places`, compressed, if that has no more bytes than `limit`.
pub(super) fn below(store: &Store<Vec<u8>>, places: usize, limit: usize) -> Option<Store<Vec<u8>>> {
    let bytes = match store {
        Store::FixedTexts { bytes, .. } | Store::Texts { bytes, .. } => bytes,
        _ => return None,
    };
    let most = limit.checked_sub(4 * (places + 1) + TABLE)?;
    // No code stands for more than eight bytes.
    if bytes.len() > most * 8 || !has_repeats(bytes) {
        return None;
    }
    let texts: Vec<&[u8]> = (0..places).map(|place| store.text(place)).collect();
    let compressor = train(&texts);
    let some: Vec<&[u8]> = texts.iter().copied().step_by((places / SAMPLE) | 1).collect();
    let (_, codes) = compress(&compressor, &some)?;
    let sampled: usize = some.iter().map(|text| text.len()).sum();
    if codes.len() * bytes.len() > (most + most / 8) * sampled {
        return None;
    }
    compressed(&compressor, &texts).filter(|compressed| compressed.len() <= limit)
}

/// `store`, compressed if it is texts, of which there are `places`.
pub(super) fn at_any_rate(store: Store<Vec<u8>>, places: usize) -> Store<Vec<u8>> {
    if !matches!(store, Store::FixedTexts { .. } | Store::Texts { .. }) {
        return store;
    }
    let texts: Vec<&[u8]> = (0..places).map(|place| store.text(place)).collect();
    let compressed = compressed(&train(&texts), &texts);
    compressed.unwrap_or(store)
}

/// Texts, compressed, if they come back and the table is one that is read again. Equal texts are found by their codes, which
/// is looked at for some.
fn compressed(compressor: &Compressor, texts: &[&[u8]]) -> Option<Store<Vec<u8>>> {
    let (offsets, codes) = compress(compressor, texts)?;
    let count = compressor.n_symbols() as u8;
    let compressed = Compressed { count, offsets, codes, table: table_of(compressor) };
    let is_sound =
        compressed.has_sound_table() && compressed.gives_back(texts) && compressed.is_found(texts, SAMPLE);
    is_sound.then_some(Store::Compressed(compressed))
}

/// A table for `texts`. Empty ones are left out, among which a sample would search.
fn train(texts: &[&[u8]]) -> Compressor {
    Compressor::train(&texts.iter().copied().filter(|text| !text.is_empty()).collect())
}

/// Whether half of the strings of three bytes are among as many as a table has symbols. Of texts in words, addresses or
/// names these are 80 % and more, of random digits 40 %, of random letters 20 %, which is chance.
fn has_repeats(bytes: &[u8]) -> bool {
    let mut counts = [0_u16; COUNTERS];
    let mut total = 0_usize;
    for number in 0..PIECES {
        let start = bytes.len().saturating_sub(PIECE) * number / (PIECES - 1);
        for three in bytes[start..].array_windows::<3>().take(PIECE - 2) {
            let [a, b, c] = three.map(u32::from);
            let mixed = (a | b << 8 | c << 16).wrapping_mul(0x9e37_79b1);
            counts[(mixed >> 20) as usize % COUNTERS] += 1;
            total += 1;
        }
    }
    let (_, _, most) = counts.select_nth_unstable(COUNTERS - SYMBOLS - 1);
    most.iter().map(|count| usize::from(*count)).sum::<usize>() * 2 >= total
}

#[cfg(test)]
mod tests {
    use albireo_testing::Random;

    use super::*;

    #[test]
    fn what_comes_again_is_told_from_chance() {
        let mut random = Random::new(1);
        let words = ["order", "customer", "item", "packed", "quick", "furious", "silent", "deposit"];
        let text = |random: &mut Random, word: &dyn Fn(&mut Random) -> String| -> Vec<u8> {
            (0..9000).flat_map(|_| word(random).into_bytes()).collect()
        };
        let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8).to_string();
        let digit = |random: &mut Random| random.below(10).to_string();
        assert!(has_repeats(&text(&mut random, &|random: &mut Random| format!("{} ", random.pick(&words)))));
        assert!(has_repeats(&text(&mut random, &|random: &mut Random| format!("{:08}", random.below(5)))));
        assert!(!has_repeats(&text(&mut random, &letter)));
        assert!(!has_repeats(&text(&mut random, &digit)));
    }
}
