//! Packs texts that are one behind the other.

use crate::layers::Store;
use crate::packed::{Alphabet, Lengths, Packed, pack, section_bytes};

/// One of so many parts of the bytes has to be saved, or texts stay as they are: they are lent then, and read at once.
const WORTH: u64 = 6;

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
    // Two symbols have to be there, or an alphabet of one bit saves nothing that is worth looking for.
    if !pays(offsets + symbols, offsets + section_bytes(symbols, 1)) {
        return store;
    }
    let Some(alphabet) = Alphabet::of(texts) else { return store };
    if !pays(offsets + symbols, offsets + section_bytes(symbols, alphabet.bits())) {
        return store;
    }
    let (codes, alphabet) = (pack(texts, &alphabet), Box::new(alphabet));
    let lengths = match store {
        Store::FixedTexts { length, .. } => Lengths::One(length),
        Store::Texts { offsets, .. } => Lengths::Offsets { offsets, symbols: symbols as u32 },
        other => return other,
    };
    Store::Packed(Packed { alphabet, lengths, codes })
}
