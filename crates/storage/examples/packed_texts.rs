//! What texts cost as they are, packed and compressed: bytes, and nanoseconds a text for encoding, compressing again by the
//! symbols that are there (as an archive's are when it is loaded), decoding, single reads in no order and tests. The least
//! of the turns.
//!
//! `cargo run --release -p albireo-storage --example packed_texts -- 31` is 31 turns.
#![allow(clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::ops::Bound;

use albireo_encoding::{
    Choose, Column, Encoder, Kind, ScalarRef, SectionName, Selection, Source, SourceValues, Test,
    compress_texts,
};
use albireo_env::Env;

const ROWS: usize = 1 << 14;

struct Texts {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

/// Texts, each of which `append` appends, with what it draws from.
fn made(mut append: impl FnMut(&mut Vec<u8>, &mut u64)) -> Texts {
    let (mut ends, mut bytes, mut state) = (Vec::new(), Vec::new(), 1);
    for _ in 0..ROWS {
        append(&mut bytes, &mut state);
        ends.push(bytes.len() as u32);
    }
    Texts { ends, bytes }
}

fn texts(alphabet: &[u8], lengths: std::ops::RangeInclusive<u64>) -> Texts {
    made(|bytes, state| {
        let length = lengths.start() + mixed(state) % (lengths.end() - lengths.start() + 1);
        bytes.extend((0..length).map(|_| alphabet[mixed(state) as usize % alphabet.len()]));
    })
}

const WORDS: [&str; 32] = [
    "packages",
    "requests",
    "accounts",
    "deposits",
    "foxes",
    "ideas",
    "theodolites",
    "instructions",
    "excuses",
    "platelets",
    "sleep",
    "wake",
    "cajole",
    "haggle",
    "nag",
    "boost",
    "detect",
    "integrate",
    "are",
    "the",
    "furiously",
    "slyly",
    "carefully",
    "blithely",
    "quickly",
    "fluffily",
    "final",
    "special",
    "pending",
    "regular",
    "express",
    "above",
];
const SYLLABLES: [&str; 10] =
    ["bar", "ought", "able", "pri", "pres", "ese", "anti", "cally", "ation", "eing"];
const HOSTS: [&str; 6] =
    ["example.com", "shop.example.org", "mail.net", "company.de", "news.co.uk", "web.io"];

fn word<'w>(words: &[&'w str], state: &mut u64) -> &'w str {
    words[mixed(state) as usize % words.len()]
}

/// Comments as TPC-H has them: a part of a sentence.
fn comments() -> Texts {
    made(|bytes, state| {
        let sentence: Vec<&str> = (0..9).map(|_| word(&WORDS, state)).collect();
        let sentence = sentence.join(" ");
        let start = mixed(state) as usize % 20;
        let end = sentence.len().min(start + 10 + mixed(state) as usize % 17);
        bytes.extend_from_slice(&sentence.as_bytes()[start..end]);
    })
}

fn addresses() -> Texts {
    made(|bytes, state| {
        let (host, part, leaf) = (word(&HOSTS, state), word(&WORDS, state), word(&WORDS, state));
        let (number, page) = (mixed(state) % 1_000_000, mixed(state) % 50);
        let text = format!("https://www.{host}/{part}/{leaf}/{number}?page={page}&sort=ascending");
        bytes.extend_from_slice(text.as_bytes());
    })
}

fn emails() -> Texts {
    made(|bytes, state| {
        let (first, last, host) = (word(&WORDS, state), word(&WORDS, state), word(&HOSTS, state));
        let number = mixed(state) % 1000;
        bytes.extend_from_slice(format!("{first}.{last}{number}@{host}").as_bytes());
    })
}

fn names() -> Texts {
    made(|bytes, state| {
        (0..3 + mixed(state) % 2).for_each(|_| bytes.extend_from_slice(word(&SYLLABLES, state).as_bytes()));
        bytes.extend_from_slice(format!(" {}", mixed(state) % 100).as_bytes());
    })
}

fn uuids() -> Texts {
    made(|bytes, state| {
        let (high, low) = (mixed(state), mixed(state));
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let text = format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff);
        bytes.extend_from_slice(text.as_bytes());
    })
}

/// Nanoseconds a row that `run` takes, at best.
fn least(turns: usize, mut run: impl FnMut() -> usize) -> f64 {
    let clock = Env::real().clock;
    let turn = |_| {
        let start = clock.now();
        black_box(run());
        (clock.now() - start) as f64 / ROWS as f64
    };
    (0..turns).map(turn).fold(f64::MAX, f64::min)
}

fn select(column: &Column<Vec<u8>>, mut test: Test<'_>) -> usize {
    let mut mask = vec![u64::MAX; ROWS / 64];
    column.select(&mut test, &mut mask);
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

fn measure(name: &str, texts: &Texts, turns: usize) {
    let live = vec![u64::MAX; ROWS / 64];
    let values = SourceValues::Texts { ends: &texts.ends, bytes: &texts.bytes };
    let source = Source { kind: Kind::Text, values, nulls: None, live: &live, rows: ROWS };
    for choose in [Choose::Plain, Choose::Packed, Choose::Compressed, Choose::Best] {
        let mut text = Vec::new();
        let mut encoder = Encoder::new(choose);
        let column = encoder.encode(&source);
        let wanted = column.text(ROWS / 2).into_owned();
        let first = ScalarRef::Text(&wanted);
        let middle = wanted.get(wanted.len() / 3..wanted.len() / 3 + 3).unwrap_or(b"abc");
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        let sparse: Vec<u64> =
            (0..ROWS / 64).map(|word| 0x8004_0020_0100_0801_u64.rotate_left(word as u32)).collect();
        let mut decode = |rows: Selection<'_>| {
            ends.clear();
            bytes.clear();
            column.texts_into(&rows, &mut ends, &mut bytes);
            bytes.len()
        };
        let times = [
            ("encode", least(turns, || encoder.encode(&source).bytes())),
            ("all", least(turns, || decode(Selection::All))),
            ("1 of 10", least(turns, || decode(Selection::Mask(&sparse)))),
            ("point", least(turns, || (0..ROWS).map(|row| column.text(row * 7919 % ROWS).len()).sum())),
            (
                "in place",
                least(turns, || {
                    let mut read = |row| {
                        column.text_in(row, &mut text);
                        text.len()
                    };
                    (0..ROWS).map(|row| read(row * 7919 % ROWS)).sum()
                }),
            ),
            ("equal", least(turns, || select(&column, Test::Equal(first)))),
            ("prefix", least(turns, || select(&column, Test::Prefix(&wanted[..wanted.len().min(2)])))),
            (
                "range",
                least(turns, || select(&column, Test::Between(Bound::Excluded(first), Bound::Unbounded))),
            ),
            (
                "in 3",
                least(turns, || {
                    select(&column, Test::In(&[ScalarRef::Text(b"5"), first, ScalarRef::Text(b"~")]))
                }),
            ),
            (
                "contains",
                least(turns, || {
                    let has = |text: &[u8]| text.windows(3).any(|part| part == middle);
                    select(
                        &column,
                        Test::Each(&mut |value| matches!(value, ScalarRef::Text(text) if has(text))),
                    )
                }),
            ),
        ];
        let times: Vec<_> = times.iter().map(|(name, time)| format!("{name} {time:.2}")).collect();
        let each = column.bytes() as f64 / ROWS as f64;
        let again = again(&column, texts, turns).map_or(String::new(), |time| format!("  again {time:.2}"));
        println!("{name:15} {:32} {each:6.2} B  {}{again}", column.form().to_string(), times.join("  "));
    }
}

/// What it takes to compress texts by the symbols of a column, if it has some.
fn again(column: &Column<Vec<u8>>, texts: &Texts, turns: usize) -> Option<f64> {
    let symbols = column.section(SectionName::Symbols)?;
    let starts = std::iter::once(&0).chain(&texts.ends);
    let each = starts.zip(&texts.ends).map(|(start, end)| &texts.bytes[*start as usize..*end as usize]);
    let each: Vec<&[u8]> = each.collect();
    Some(least(turns, || compress_texts(symbols, &each).map_or(0, |(_, codes)| codes.len())))
}

fn main() {
    let turns = std::env::args().nth(1).and_then(|turns| turns.parse().ok()).unwrap_or(31);
    let letters: Vec<u8> = (b'a'..=b'z').chain(b'A'..=b'Z').collect();
    let base64: Vec<u8> = letters.iter().copied().chain(b'0'..=b'9').chain(*b"+/").collect();
    measure("24 letters", &texts(&letters, 24..=24), turns);
    measure("24 of 26", &texts(&letters[..26], 24..=24), turns);
    measure("32 hex", &texts(b"0123456789abcdef", 32..=32), turns);
    measure("10 digits", &texts(b"0123456789", 10..=10), turns);
    measure("4-12 digits", &texts(b"0123456789", 4..=12), turns);
    measure("10-40 base64", &texts(&base64, 10..=40), turns);
    measure("100-300 letters", &texts(&letters, 100..=300), turns);
    measure("comments", &comments(), turns);
    measure("addresses", &addresses(), turns);
    measure("emails", &emails(), turns);
    measure("names", &names(), turns);
    measure("uuids", &uuids(), turns);
    measure("24 bytes", &texts(&(0..=255).collect::<Vec<u8>>(), 24..=24), turns);
}
