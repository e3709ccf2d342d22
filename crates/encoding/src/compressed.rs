//! Texts compressed by a table of symbols: FSST.
//!
//! Responsible for: tables, codes of texts, texts of codes, comparing without expanding. Not responsible for: which texts
//! are compressed, and by which table (`encode::compress`).
//!
//! A *symbol* of a table is a string of one to eight bytes that is frequent; its code is its number there, one byte.
//! [`ESCAPE`] and a byte stand for a byte where no symbol fits. Each text is compressed alone, so each is read alone.
//!
//! - F-1 Codes stand, one after the other, for the longest symbol that the rest of the text begins with, or for an escaped
//!   byte, where the table is sound ([`Compressed::has_sound_table`]). So they depend on the text and the table alone: equal
//!   texts of a column have equal codes, and others have others.
//! - F-2 Bytes that somebody made up may break F-1 in codes. Such a text is read as any other, but is not found by
//!   equality. What an archive gives back is compressed anew, and so never does.
//!
//! `fsst` keeps F-1. It looks at the next eight bytes, with zeros behind the end of the text. Symbols of three bytes or more
//! lie at a place that their first three bytes have, one at each place, so one at most matches. If none does, it takes the
//! symbol of two bytes, if there is one with these, then that of one byte, then an escape. It leaves the first step out only
//! where no longer symbol begins with these two bytes. No symbol of several bytes ends with a zero, so none matches beyond
//! the end. Texts that are compressed in turns, by several cursors, take the same steps each.
//!
//! Expanding is done here: what the crate has either allocates for each text or wants room that is not initialized.
//!
//! Paper: Boncz, Neumann and Leis, *FSST: Fast Random Access String Compression*, PVLDB 13, 2020.

use std::cmp::Ordering;
use std::ops::Range;

use fsst::{Compressor, ESCAPE_CODE as ESCAPE, Symbol};

use crate::offsets::text_range;
use crate::section::Section;

/// Codes that there are, one of which is [`ESCAPE`].
const CODES: usize = 256;
/// The most bytes of a symbol.
const LONGEST: usize = 8;
/// Bytes of the section of a table: of each code the symbol, with zeros behind it; then of each its length.
pub(crate) const TABLE: usize = CODES * (LONGEST + 1);
/// Places that `fsst` has for symbols of three bytes or more.
const PLACES: u64 = 1 << 11;
/// Texts for which room is made together.
const BLOCK: usize = 64;
/// Codes for which eight bytes each are not much.
const FEW_CODES: usize = 1 << 10;
/// Texts that are compressed together: twice their bytes are reserved for their codes.
const TOGETHER: usize = 1024;

/// Texts by place, compressed.
#[derive(Clone, Debug)]
pub(crate) struct Compressed<S> {
    /// Symbols of the table.
    pub(crate) count: u8,
    /// Where the codes of each text begin, and where those of the last one end, `u32`.
    pub(crate) offsets: S,
    pub(crate) codes: S,
    /// [`TABLE`] bytes.
    pub(crate) table: S,
}

/// Symbols by code.
#[derive(Clone, Copy)]
struct Table<'a> {
    symbols: &'a [[u8; LONGEST]; CODES],
    lengths: &'a [u8; CODES],
}

/// Compressed texts, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    table: Table<'a>,
    offsets: &'a [u8],
    codes: &'a [u8],
}

/// The symbols of a table by their first bytes, the longest of each first: compresses a few texts.
pub(crate) struct Matcher<'a> {
    table: Table<'a>,
    /// Where the codes for each byte begin in `order`, and where the last ones end.
    starts: [u8; CODES + 1],
    order: [u8; CODES],
}

/// A text that others are compared with, and eight zeros behind it.
pub(crate) struct Other {
    bytes: Vec<u8>,
    length: usize,
}

/// The place that `fsst` has for a symbol of three bytes or more. A table with two at one place can be none of its own.
fn place_of(symbol: [u8; LONGEST]) -> u32 {
    let first = u64::from_le_bytes(symbol) & 0xff_ffff;
    ((first.wrapping_mul(2_971_215_073) ^ first >> 15) % PLACES) as u32
}

/// The highest `count` of eight bytes.
#[inline]
fn high(count: usize) -> u64 {
    u64::MAX.checked_shl(64 - 8 * count as u32).unwrap_or(0)
}

impl<'a> Table<'a> {
    /// `None`: the section is too short.
    #[inline]
    fn of(section: &'a [u8]) -> Option<Self> {
        let (symbols, lengths) = section.split_first_chunk::<{ CODES * LONGEST }>()?;
        let symbols = symbols.as_chunks::<LONGEST>().0.first_chunk::<CODES>()?;
        Some(Self { symbols, lengths: lengths.first_chunk::<CODES>()? })
    }

    fn count(self) -> u8 {
        self.lengths.iter().take(CODES - 1).take_while(|length| **length > 0).count() as u8
    }

    #[inline]
    fn symbol(self, code: u8) -> &'a [u8] {
        let code = usize::from(code);
        &self.symbols[code][..usize::from(self.lengths[code]).min(LONGEST)]
    }

    /// Whether it has `count` symbols that differ, in the order of `fsst`: of two bytes, of three and so on, and of one.
    fn is_sound(self, count: u8) -> bool {
        let (lengths, behind) = self.lengths.split_at(count.into());
        let (symbols, none) = self.symbols.split_at(count.into());
        let is_whole = |(symbol, length): (&[u8; LONGEST], &u8)| {
            let (text, zeros) = match usize::from(*length) {
                length @ 1..=LONGEST => symbol.split_at(length),
                _ => return false,
            };
            (text.len() == 1 || text.last() != Some(&0)) && zeros.iter().all(|byte| *byte == 0)
        };
        let key = |(symbol, length): (&[u8; LONGEST], &u8)| match *length {
            1 | 2 => u32::from(*length) << 16 | u32::from(u16::from_le_bytes([symbol[0], symbol[1]])),
            _ => 3 << 16 | place_of(*symbol),
        };
        let mut keys: Vec<u32> = symbols.iter().zip(lengths).map(key).collect();
        keys.sort_unstable();
        symbols.iter().zip(lengths).all(is_whole)
            && lengths.is_sorted_by_key(|length| length.wrapping_sub(2))
            && keys.is_sorted_by(|a, b| a < b)
            && behind.iter().all(|length| *length == 0)
            && none.as_flattened().iter().all(|byte| *byte == 0)
    }

    /// What codes stand for, one after the other: bytes, with zeros behind them, and how many they are.
    #[inline]
    fn pieces(self, codes: &[u8]) -> impl Iterator<Item = ([u8; LONGEST], usize)> {
        let mut codes = codes.iter();
        std::iter::from_fn(move || {
            let code = *codes.next()?;
            if code == ESCAPE {
                let byte = *codes.next()?;
                return Some((u64::from(byte).to_le_bytes(), 1));
            }
            let code = usize::from(code);
            Some((self.symbols[code], usize::from(self.lengths[code])))
        })
    }

    /// Bytes that codes stand for.
    #[inline]
    fn length(self, codes: &[u8]) -> usize {
        self.pieces(codes).map(|(_, length)| length).sum()
    }

    /// The same, if the codes are of `count` symbols, and no byte lacks behind an escape.
    fn checked_length(self, codes: &[u8], count: u8) -> Option<u64> {
        let (mut codes, mut total) = (codes.iter(), 0);
        while let Some(code) = codes.next() {
            total += match *code {
                ESCAPE => codes.next().map(|_| 1)?,
                code if code < count => u64::from(self.lengths[usize::from(code)]),
                _ => return None,
            };
        }
        Some(total)
    }

    /// Writes what codes stand for, and says how many bytes that is. There is room for eight bytes of each code; or for as
    /// many as they stand for, and seven.
    #[inline]
    fn expand(self, codes: &[u8], out: &mut [u8]) -> usize {
        let mut at = 0;
        for (piece, length) in self.pieces(codes) {
            let Some(room) = out[at..].first_chunk_mut::<LONGEST>() else { break };
            *room = piece;
            at += length;
        }
        at
    }
}

impl<S: Section> Compressed<S> {
    /// The same with its sections lent.
    pub(crate) fn borrowed(&self) -> Compressed<&[u8]> {
        let Self { count, offsets, codes, table } = self;
        Compressed { count: *count, offsets: offsets.bytes(), codes: codes.bytes(), table: table.bytes() }
    }

    /// The texts.
    ///
    /// # Panics
    /// The section of the table has another length.
    #[inline]
    pub(crate) fn reader(&self) -> Reader<'_> {
        let table = Table::of(self.table.bytes()).expect("a table has its length");
        Reader { table, offsets: self.offsets.bytes(), codes: self.codes.bytes() }
    }

    /// Whether these texts come back, bit for bit.
    pub(crate) fn gives_back(&self, texts: &[&[u8]]) -> bool {
        let (reader, mut found) = (self.reader(), Vec::new());
        texts.iter().enumerate().all(|(place, text)| reader.text_in(place, &mut found) == *text)
    }

    /// Whether some of these texts have the codes by which they are searched for (F-1), about so many of them.
    pub(crate) fn is_found(&self, texts: &[&[u8]], about: usize) -> bool {
        let (reader, matcher) = (self.reader(), self.reader().matcher());
        let some = texts.iter().enumerate().step_by((texts.len() / about) | 1);
        some.into_iter().all(|(place, text)| matcher.codes(text) == reader.codes_at(place))
    }

    /// Whether the table is one of `count` symbols.
    pub(crate) fn has_sound_table(&self) -> bool {
        self.reader().table.is_sound(self.count)
    }

    /// Whether the codes of all texts, of which there are `places`, are whole, and stand for no more than 4 GiB.
    pub(crate) fn has_sound_codes(&self, places: usize) -> bool {
        let reader = self.reader();
        let length = |place| reader.table.checked_length(reader.codes_at(place), self.count);
        let total = (0..places).map(length).sum::<Option<u64>>();
        total.is_some_and(|total| total <= u64::from(u32::MAX))
    }
}

impl<'a> Reader<'a> {
    /// The codes of the text at `place`.
    #[inline]
    pub(crate) fn codes_at(self, place: usize) -> &'a [u8] {
        &self.codes[text_range(self.offsets, place)]
    }

    /// Bytes of the text at `place`.
    #[inline]
    pub(crate) fn length(self, place: usize) -> usize {
        self.table.length(self.codes_at(place))
    }

    /// The text at `place`.
    pub(crate) fn text(self, place: usize) -> Vec<u8> {
        let codes = self.codes_at(place);
        let length = self.table.length(codes);
        let mut text = vec![0; length + LONGEST - 1];
        self.table.expand(codes, &mut text);
        text.truncate(length);
        text
    }

    /// The text at `place`, in a buffer that is as long as any before.
    #[inline]
    pub(crate) fn text_in(self, place: usize, buffer: &mut Vec<u8>) -> &[u8] {
        let codes = self.codes_at(place);
        let room = self.room_for(codes);
        // What was there before is written over.
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let length = self.table.expand(codes, buffer);
        &buffer[..length]
    }

    /// Bytes in which these codes can be expanded: of few without looking at them.
    #[inline]
    fn room_for(self, codes: &[u8]) -> usize {
        match codes.len() {
            few @ ..=FEW_CODES => few * LONGEST,
            _ => self.table.length(codes) + LONGEST - 1,
        }
    }

    /// Appends the texts at `places`, and calls `ended` with how long `out` is then, once for each.
    pub(crate) fn texts_into(self, places: Range<usize>, out: &mut Vec<u8>, mut ended: impl FnMut(usize)) {
        let (mut at, mut first) = (out.len(), places.start);
        while first < places.end {
            let behind = places.end.min(first + BLOCK);
            let codes = text_range(self.offsets, first).start..text_range(self.offsets, behind - 1).end;
            let room = at + self.room_for(&self.codes[codes]);
            if out.len() < room {
                out.resize(room, 0);
            }
            for place in first..behind {
                at += self.table.expand(self.codes_at(place), &mut out[at..]);
                ended(at);
            }
            first = behind;
        }
        out.truncate(at);
    }

    /// The text at `place` compared with another, symbol by symbol.
    #[inline]
    pub(crate) fn compare(self, place: usize, other: &Other) -> Ordering {
        let mut at = 0;
        for (piece, length) in self.table.pieces(self.codes_at(place)) {
            let order = u64::from_be_bytes(piece).cmp(&other.word(at, length));
            if order.is_ne() {
                return order;
            }
            at += length;
            if at > other.length {
                // What it has more is zeros, which are behind the other one too.
                return Ordering::Greater;
            }
        }
        at.cmp(&other.length)
    }

    /// Whether the text at `place` begins with another.
    #[inline]
    pub(crate) fn begins_with(self, place: usize, other: &Other) -> bool {
        let mut at = 0;
        for (piece, length) in self.table.pieces(self.codes_at(place)) {
            let (piece, rest) = (u64::from_be_bytes(piece), other.length - at);
            if rest <= length {
                return piece & high(rest) == other.word(at, rest);
            }
            if piece != other.word(at, length) {
                return false;
            }
            at += length;
        }
        at == other.length
    }

    /// What compresses texts as these are.
    pub(crate) fn matcher(self) -> Matcher<'a> {
        let table = self.table;
        let (count, first) = (table.count(), |code: u8| usize::from(table.symbols[usize::from(code)][0]));
        let ones = table.lengths.iter().filter(|length| **length == 1).count() as u8;
        let mut starts = [0_u8; CODES + 1];
        (0..count).for_each(|code| starts[first(code) + 1] += 1);
        for byte in 0..CODES {
            starts[byte + 1] += starts[byte];
        }
        let (mut next, mut order) = (starts, [0; CODES]);
        // Symbols of one byte are the last ones of a table, and the others ascend by length.
        for code in (0..count - ones).rev().chain(count - ones..count) {
            let at = &mut next[first(code)];
            order[usize::from(*at)] = code;
            *at += 1;
        }
        Matcher { table, starts, order }
    }
}

impl Matcher<'_> {
    /// The codes that a text has (F-1).
    pub(crate) fn codes(&self, text: &[u8]) -> Vec<u8> {
        let (mut codes, mut rest) = (Vec::new(), text);
        while let Some((first, behind)) = rest.split_first() {
            let byte = usize::from(*first);
            let some = &self.order[usize::from(self.starts[byte])..usize::from(self.starts[byte + 1])];
            let longest = some.iter().find(|code| rest.starts_with(self.table.symbol(**code)));
            rest = match longest {
                Some(code) => {
                    codes.push(*code);
                    &rest[self.table.symbol(*code).len()..]
                }
                None => {
                    codes.extend_from_slice(&[ESCAPE, *first]);
                    behind
                }
            };
        }
        codes
    }
}

impl Other {
    /// That text.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self { bytes: [text, &[0; LONGEST][..]].concat(), length: text.len() }
    }

    /// The first `count` bytes from `at` on, the first one highest, and zeros behind them.
    #[inline]
    fn word(&self, at: usize, count: usize) -> u64 {
        let eight = self.bytes[at..].first_chunk().expect("eight bytes are behind the text");
        u64::from_be_bytes(*eight) & high(count)
    }
}

/// The table of a compressor as a section.
pub(crate) fn table_of(compressor: &Compressor) -> Vec<u8> {
    let mut section = Vec::with_capacity(TABLE);
    section.extend(compressor.symbol_table().iter().flat_map(|symbol| symbol.to_u64().to_le_bytes()));
    section.resize(CODES * LONGEST, 0);
    section.extend_from_slice(compressor.symbol_lengths());
    section.resize(TABLE, 0);
    section
}

/// Offsets and codes of texts; `None`: their codes are longer than offsets can say.
pub(crate) fn compress(compressor: &Compressor, texts: &[&[u8]]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut codes, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
    for some in texts.chunks(TOGETHER) {
        compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(some, &mut codes, &mut ends);
    }
    u32::try_from(codes.len()).ok()?;
    let mut offsets = Vec::with_capacity(4 * (texts.len() + 1));
    offsets.extend_from_slice(&[0; 4]);
    offsets.extend(ends.iter().flat_map(|end| (*end as u32).to_le_bytes()));
    Some((offsets, codes))
}

/// The sections of offsets and of values of a column of compressed texts, from its texts and its section of symbols. `None`:
/// that has no such symbols, or the texts would not come back.
pub fn compress_texts(symbols: &[u8], texts: &[&[u8]]) -> Option<(Vec<u8>, Vec<u8>)> {
    let table = Table::of(symbols).filter(|table| symbols.len() == TABLE && table.is_sound(table.count()))?;
    let count = usize::from(table.count());
    let all: Vec<Symbol> = table.symbols[..count].iter().map(Symbol::from_slice).collect();
    let (offsets, codes) = compress(&Compressor::rebuild_from(all, &table.lengths[..count]), texts)?;
    let made = Compressed { count: table.count(), offsets: &offsets[..], codes: &codes[..], table: symbols };
    made.gives_back(texts).then_some((offsets, codes))
}

#[cfg(test)]
mod tests {
    use albireo_testing::Random;

    use super::*;

    /// Texts of words, zeros and any bytes.
    fn texts(random: &mut Random) -> Vec<Vec<u8>> {
        let words: [&[u8]; 12] = [
            b"https://",
            b"example.com",
            b"/orders/",
            b"\0",
            b"\0\0\0a",
            b"a\0",
            b"ab",
            b"abc",
            b"abcd",
            b"\xff",
            b"zz",
            "größer".as_bytes(),
        ];
        let piece = |random: &mut Random| match random.percent(80) {
            true => random.pick(&words).to_vec(),
            false => vec![random.below(256) as u8],
        };
        let text =
            |random: &mut Random| -> Vec<u8> { (0..random.index(9)).flat_map(|_| piece(random)).collect() };
        (0..500).map(|_| text(random)).collect()
    }

    #[test]
    fn matcher_gives_the_codes_that_the_compressor_gives() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let all = texts(&mut random);
            let all: Vec<&[u8]> = all.iter().map(|text| &text[..]).collect();
            let trained = Compressor::train(&all[..random.pick(&[0, 1, 7, 500])].to_vec());
            let table = table_of(&trained);
            let (offsets, codes) = compress(&trained, &all).expect("it is short");
            let count = trained.n_symbols() as u8;
            let column = Compressed { count, offsets, codes, table };
            assert!(column.has_sound_table() && column.has_sound_codes(all.len()), "{count} symbols");
            let (reader, matcher) = (column.reader(), column.reader().matcher());
            for (place, text) in all.iter().enumerate() {
                assert_eq!(matcher.codes(text), reader.codes_at(place), "{text:?}");
                assert_eq!(trained.compress(text), reader.codes_at(place), "{text:?}");
                assert_eq!((&*reader.text(place), reader.length(place)), (*text, text.len()));
            }
            let again = compress_texts(&column.table, &all);
            assert_eq!(again, Some((column.offsets, column.codes)), "the same from its symbols");
        }
    }

    #[test]
    fn text_is_compared_as_its_bytes_are() {
        let mut random = Random::new(1);
        let all = texts(&mut random);
        let all: Vec<&[u8]> = all.iter().map(|text| &text[..]).collect();
        let trained = Compressor::train(&all);
        let (offsets, codes) = compress(&trained, &all).expect("it is short");
        let column =
            Compressed { count: trained.n_symbols() as u8, offsets, codes, table: table_of(&trained) };
        for text in &all[..60] {
            for cut in 0..=text.len() {
                for other in [
                    text[..cut].to_vec(),
                    [&text[..cut], &b"\0"[..]].concat(),
                    [&text[..cut], &b"b"[..]].concat(),
                ] {
                    let with = Other::of(&other);
                    for (place, text) in all.iter().enumerate().take(120) {
                        assert_eq!(
                            column.reader().compare(place, &with),
                            text.cmp(&&other[..]),
                            "{text:?} {other:?}"
                        );
                        assert_eq!(column.reader().begins_with(place, &with), text.starts_with(&other));
                    }
                }
            }
        }
    }

    #[test]
    fn table_with_symbols_that_are_none_of_the_compressor_is_refused() {
        let text = b"the quick brown fox jumps over the lazy dog";
        let trained = Compressor::train(&vec![&text[..]; 20]);
        let (sound, count) = (table_of(&trained), trained.n_symbols());
        let is_sound = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut table = sound.clone();
            change(&mut table);
            compress_texts(&table, &[text]).is_some()
        };
        assert!(count > 1 && is_sound(&|_| {}));
        assert!(!is_sound(&|table| table.push(0)) && !is_sound(&|table| table.truncate(TABLE - 1)));
        // A length that is none, or not that of the symbol; a symbol twice; something behind the last one.
        assert!(!is_sound(&|table| table[CODES * LONGEST] = 9));
        assert!(!is_sound(&|table| table[CODES * LONGEST] = 0));
        assert!(!is_sound(&|table| table[CODES * LONGEST] ^= 1));
        assert!(!is_sound(&|table| {
            table.copy_within(..LONGEST, LONGEST);
            table[CODES * LONGEST + 1] = table[CODES * LONGEST];
        }));
        assert!(!is_sound(&|table| table[count * LONGEST] = 1));
        assert!(!is_sound(&|table| table[TABLE - 1] = 1));
    }
}
