//! What texts cost as they are and packed: bytes, and nanoseconds a text for encoding, decoding, single reads in no order
//! and tests. The least of the turns.
//!
//! `cargo run --release -p albireo-storage --example packed_texts -- 31` is 31 turns.
#![allow(clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::ops::Bound;

use albireo_encoding::{Choose, Column, Encoder, Kind, ScalarRef, Selection, Source, SourceValues, Test};
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

fn texts(alphabet: &[u8], lengths: std::ops::RangeInclusive<u64>) -> Texts {
    let (mut ends, mut bytes, mut state) = (Vec::new(), Vec::new(), 1);
    for _ in 0..ROWS {
        let length = lengths.start() + mixed(&mut state) % (lengths.end() - lengths.start() + 1);
        let letter = |_| alphabet[mixed(&mut state) as usize % alphabet.len()];
        bytes.extend((0..length).map(letter));
        ends.push(bytes.len() as u32);
    }
    Texts { ends, bytes }
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
    for choose in [Choose::Plain, Choose::Packed, Choose::Best] {
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
        println!("{name:14} {:30} {each:6.2} B  {}", column.form().to_string(), times.join("  "));
    }
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
    measure("24 bytes", &texts(&(0..=255).collect::<Vec<u8>>(), 24..=24), turns);
}
