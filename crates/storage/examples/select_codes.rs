//! What testing all rows of an encoded chunk costs, by the bytes of its codes: nanoseconds a chunk of 16,384 rows, the
//! median of the turns; the chunks lie in the second cache.
//!
//! `cargo run --release -p albireo-storage --example select_codes -- 31` is 31 turns.
#![allow(clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::ops::Bound;

use albireo_encoding::{Choose, Column, Encoder, Kind, ScalarRef, Source, SourceValues, Test};
use albireo_env::Env;

const ROWS: usize = 1 << 14;
/// Chunks that are read one after the other in a turn, and how often.
const CHUNKS: usize = 8;
const TIMES: usize = 20;

fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

fn chunk(kind: Kind, values: SourceValues<'_>) -> Column<Vec<u8>> {
    let live = vec![u64::MAX; ROWS / 64];
    Encoder::new(Choose::Plain).encode(&Source { kind, values, nulls: None, live: &live, rows: ROWS })
}

/// Nanoseconds a chunk that a test takes.
fn median(turns: usize, chunks: &[Column<Vec<u8>>], mut test: impl FnMut() -> Test<'static>) -> f64 {
    let clock = Env::real().clock;
    let mut mask = vec![0; ROWS / 64];
    let mut times: Vec<f64> = (0..turns)
        .map(|_| {
            let start = clock.now();
            for column in chunks.iter().cycle().take(CHUNKS * TIMES) {
                mask.fill(u64::MAX);
                column.select(&mut test(), &mut mask);
                black_box(&mask);
            }
            (clock.now() - start) as f64 / (CHUNKS * TIMES) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[turns / 2]
}

fn show(
    name: &str,
    turns: usize,
    chunks: &[Column<Vec<u8>>],
    first: ScalarRef<'static>,
    last: ScalarRef<'static>,
) {
    let equal = median(turns, chunks, || Test::Equal(first));
    let between = median(turns, chunks, || Test::Between(Bound::Included(first), Bound::Included(last)));
    println!("{name:20} equal {equal:8.0} ns   between {between:8.0} ns");
}

fn main() {
    let turns = std::env::args().nth(1).map_or(31, |turns| turns.parse().expect("a number of turns"));
    let mut state = 1;
    for bytes in [1, 2, 4, 8] {
        let most = u64::MAX >> (65 - 8 * bytes);
        let mut integers = || -> Vec<i64> { (0..ROWS).map(|_| (mixed(&mut state) % most) as i64).collect() };
        let chunks: Vec<_> =
            (0..CHUNKS).map(|_| chunk(Kind::I64, SourceValues::Integers(&integers()))).collect();
        let value = |part: u64| ScalarRef::Integer((most / part) as i64);
        show(&format!("codes of {bytes} bytes"), turns, &chunks, value(3), value(2));
    }
    let mut floats = || -> Vec<u64> { (0..ROWS).map(|_| (mixed(&mut state) as f64).to_bits()).collect() };
    let chunks: Vec<_> = (0..CHUNKS).map(|_| chunk(Kind::F64, SourceValues::Floats(&floats()))).collect();
    show(
        "floats of 8 bytes",
        turns,
        &chunks,
        ScalarRef::F64(1e18_f64.to_bits()),
        ScalarRef::F64(5e18_f64.to_bits()),
    );
}
