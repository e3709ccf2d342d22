//! Packs texts that are one behind the other.

use crate::layers::Store;
use crate::packed::{Alphabet, Lengths, Packed, pack, section_bytes};

/// One of so many parts of the bytes has to be saved, or texts stay as they are: they are lent then, and read at once.
const WORTH: u64 = 6;

/// Bytes that are looked at first.
const SAMPLE: usize = 4096;

/// About the bytes that `store` has if it is packed, or else as it is: as many or fewer.
pub(super) fn least_bytes(store: &Store<Vec<u8>>) -> usize {
    let (offsets, texts) = match store {
        Store::FixedTexts { bytes, .. } => (0, bytes),
        Store::Texts { offsets, bytes } => (offsets.len(), bytes),
        _ => return store.len(),
    };
    let packed = Alphabet::of(part(texts)).map(|part| section_bytes(texts.len() as u64, part.bits()));
    packed.map_or(store.len(), |packed| store.len().min(offsets + packed as usize))
}

/// A part of the bytes, which mostly has all that there are.
fn part(texts: &[u8]) -> &[u8] {
    &texts[texts.len() / 2..][..texts.len().div_ceil(2).min(SAMPLE)]
}

/// `store`, packed if it is texts and enough is saved.
pub(super) fn if_it_pays(store: Store<Vec<u8>>) -> Store<Vec<u8>> {
    packed(store, |plain, packed| packed + plain / WORTH <= plain)
}

/// `store`, packed if it is texts that can be.
pub(super) fn at_any_rate(store: Store<Vec<u8>>) -> Store<Vec<u8>> {
    packed(store, |_, _| true)
}

/// `store`, packed if it is texts that can be and `pays` says so of the bytes before and after.
fn packed(store: Store<Vec<u8>>, pays: impl Fn(u64, u64) -> bool) -> Store<Vec<u8>> {
    let (offsets, texts) = match &store {
        Store::FixedTexts { bytes, .. } => (0, bytes),
        Store::Texts { offsets, bytes } => (offsets.len() as u64, bytes),
        _ => return store,
    };
    let symbols = texts.len() as u64;
    // Of a few bytes nothing is saved, and so nothing looked for.
    if !pays(offsets + symbols, offsets + section_bytes(symbols, 1)) {
        return store;
    }
    let worth =
        |alphabet: &Alphabet| pays(offsets + symbols, offsets + section_bytes(symbols, alphabet.bits()));
    let Some(part) = Alphabet::of(part(texts)).filter(worth) else { return store };
    let whole = || {
        let whole = Alphabet::of(texts).filter(worth)?;
        Some((pack(texts, &whole)?, whole))
    };
    let packed = pack(texts, &part).map(|codes| (codes, part)).or_else(whole);
    let Some((codes, alphabet)) = packed else { return store };
    let lengths = match store {
        Store::FixedTexts { length, .. } => Lengths::One(length),
        Store::Texts { offsets, .. } => Lengths::Offsets { offsets, symbols: symbols as u32 },
        other => return other,
    };
    Store::Packed(Packed { alphabet: Box::new(alphabet), lengths, codes })
}
