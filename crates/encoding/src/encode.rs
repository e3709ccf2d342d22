//! Encodes columns.
//!
//! Responsible for: which form a column gets, and its bytes. Not responsible for: what a form means (`layers`).
//!
//! - N-1 Rows that are NULL or dead get the value of a row before them (or, if none is before, behind them), or no bytes
//!   at all, so that they never cost width, entries of a dictionary, or runs.
//! - N-2 A sample decides only what is tried. Whether a dictionary is as short as was thought shows when it is built;
//!   all else is counted over all rows.

mod choose;
mod compress;
mod dictionary;
mod fixed;
mod integers;
mod pack;
mod texts;
mod values;

use crate::bits;
use crate::column::{Column, Summary};
use crate::layers::{Nulls, Store};
use crate::packed::Lengths;
use crate::scalar::Kind;
use crate::source::{Source, SourceValues};
use choose::{Chooser, Chosen};
use fixed::{Fixed, FixedKind};
use integers::Integers;
use texts::Texts;

/// Which forms an [`Encoder`] may choose. All but [`Choose::Best`] are for tests and measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choose {
    /// The one with the fewest bytes; runs only if they have less than half of the best other's. Texts are packed only
    /// where there are neither runs nor a dictionary, and a sixth of the bytes is saved; compressed only where they have
    /// two thirds of the bytes that they have as they are, three fourths of those that they have packed, and half of those
    /// of a dictionary at most.
    #[default]
    Best,
    /// Neither dictionary nor runs, nor packed or compressed.
    Plain,
    /// Neither dictionary nor runs; texts are packed if their bytes can be, even if that saves nothing.
    Packed,
    /// Neither dictionary nor runs; texts are compressed by a table of symbols, even if that saves nothing.
    Compressed,
    /// A dictionary; values as they are only if hashes collide too often.
    Dictionary,
    /// Runs of values as they are.
    Runs,
    /// Runs of codes.
    RunsOfDictionary,
}

/// Encodes one column after the other; keeps its buffers.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Live rows that have a value.
    valid: Vec<u64>,
    chooser: Chooser,
    integers: Vec<i64>,
    floats: Vec<u64>,
    wide: Vec<[u8; 16]>,
    rows: Vec<u32>,
}

impl Encoder {
    /// An encoder that chooses as it is told.
    pub fn new(choose: Choose) -> Self {
        Self { chooser: Chooser::new(choose), ..Self::default() }
    }

    /// Encodes a column.
    ///
    /// # Panics
    /// The source contradicts itself: lists that are too short, ends of texts that do not ascend, a live value that is
    /// not of the kind.
    pub fn encode(&mut self, source: &Source<'_>) -> Column<Vec<u8>> {
        source.check();
        let (count, null_count) = self.look_for_valid(source);
        let rows = source.rows;
        let nulls = nulls(source, count, null_count);
        let mut summary = Summary { count: count as u32, nulls: null_count as u32, ..Summary::default() };
        summary.sum = source.kind.is_integer().then_some(0);
        let chosen = match count {
            0 => Chosen::constant(source.kind.zero()),
            _ => self.encode_values(source, count < rows, &mut summary),
        };
        let Chosen { runs, codes, store } = chosen;
        Column { kind: source.kind, rows: rows as u32, nulls, runs, codes, store, summary }
    }

    /// Sets the bits of live rows with a value; how many there are, and how many live ones are NULL.
    fn look_for_valid(&mut self, source: &Source<'_>) -> (usize, usize) {
        let words = bits::words(source.rows);
        self.valid.clear();
        self.valid.extend_from_slice(&source.live[..words]);
        bits::clear_tail(&mut self.valid, source.rows);
        let live = bits::count(&self.valid);
        if let Some(nulls) = source.nulls {
            self.valid.iter_mut().zip(nulls).for_each(|(word, nulls)| *word &= !nulls);
        }
        let count = bits::count(&self.valid);
        (count, live - count)
    }

    /// At least one value is valid; `has_gaps`: not all are.
    fn encode_values(&mut self, source: &Source<'_>, has_gaps: bool, summary: &mut Summary) -> Chosen {
        match (source.values, source.kind) {
            (SourceValues::Integers(values), kind) => {
                let values = filled(values, has_gaps.then_some(&self.valid), &mut self.integers);
                let integers = Integers::new(values.into());
                integers.summarize(kind, &self.valid, summary);
                self.chooser.choose(&integers)
            }
            (SourceValues::Floats(values), kind) => {
                let values = filled(values, has_gaps.then_some(&self.valid), &mut self.floats);
                match kind {
                    Kind::F32 => {
                        let all = values.iter().fold(0, |all, bits| all | bits);
                        assert!(all >> 32 == 0, "bits of floats of 32 bits are in the low half alone");
                        choose_fixed::<fixed::F32>(&mut self.chooser, values, summary)
                    }
                    _ => choose_fixed::<fixed::F64>(&mut self.chooser, values, summary),
                }
            }
            (SourceValues::Wide(values), kind) => {
                let values = filled(values, has_gaps.then_some(&self.valid), &mut self.wide);
                match kind {
                    Kind::I128 => choose_fixed::<fixed::I128>(&mut self.chooser, values, summary),
                    _ => choose_fixed::<fixed::Uuid>(&mut self.chooser, values, summary),
                }
            }
            (SourceValues::Texts { ends, bytes }, _) => {
                let gaps = has_gaps.then(|| {
                    fill_rows(&self.valid, source.rows, &mut self.rows);
                    (&self.rows[..], &self.valid[..])
                });
                let texts = Texts::new(ends, bytes, gaps);
                texts.summarize(summary);
                self.chooser.choose(&texts)
            }
        }
    }
}

fn choose_fixed<K: FixedKind>(chooser: &mut Chooser, values: &[K::Raw], summary: &mut Summary) -> Chosen {
    let values = Fixed::<K>::new(values.into());
    values.summarize(summary);
    chooser.choose(&values)
}

/// `values`, where those that are not valid have the value of a valid one before them; of the first if there is none.
fn filled<'a, T: Copy>(values: &'a [T], valid: Option<&Vec<u64>>, scratch: &'a mut Vec<T>) -> &'a [T] {
    let Some(valid) = valid else { return values };
    let word = valid.iter().position(|word| *word != 0).unwrap_or(0);
    let mut last = values[word * 64 + valid[word].trailing_zeros() as usize % 64];
    scratch.clear();
    scratch.reserve(values.len());
    for (block, word) in values.chunks(64).zip(valid) {
        match *word {
            u64::MAX => {
                scratch.extend_from_slice(block);
                last = block[63];
            }
            0 => scratch.extend(std::iter::repeat_n(last, block.len())),
            word => scratch.extend(block.iter().enumerate().map(|(at, value)| {
                last = if word >> at & 1 == 1 { *value } else { last };
                last
            })),
        }
    }
    scratch
}

/// For each row the row whose value it gets, as [`filled`] has it.
fn fill_rows(valid: &[u64], rows: usize, scratch: &mut Vec<u32>) {
    let word = valid.iter().position(|word| *word != 0).unwrap_or(0);
    let mut last = word as u32 * 64 + valid[word].trailing_zeros() % 64;
    scratch.clear();
    scratch.extend((0..rows as u32).map(|row| {
        last = if bits::get(valid, row as usize) { row } else { last };
        last
    }));
}

/// Which rows are NULL, in the shorter form; ranges only if they have less than half of the bytes.
fn nulls(source: &Source<'_>, count: usize, null_count: usize) -> Nulls<Vec<u8>> {
    let Some(nulls) = source.nulls.filter(|_| null_count > 0) else { return Nulls::None };
    if count == 0 {
        return Nulls::All;
    }
    let words = filled_nulls(nulls, source.live, source.rows);
    let ranges = bits::count_ranges(&words);
    if ranges * 4 * 2 >= words.len() * 8 {
        return Nulls::Bits(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    let mut pairs = Vec::with_capacity(ranges * 4);
    bits::for_each_range(&words, |range| {
        pairs.extend_from_slice(&(range.start as u16).to_le_bytes());
        pairs.extend_from_slice(&((range.end - 1) as u16).to_le_bytes());
    });
    Nulls::Ranges(pairs)
}

/// A bit for each row that is NULL; rows that are dead are what the row before them is.
fn filled_nulls(nulls: &[u64], live: &[u64], rows: usize) -> Vec<u64> {
    let mut before = 0;
    let fill = |(nulls, live): (&u64, &u64)| {
        let mut word = nulls & live;
        for dead in bits::ones(!live) {
            let previous = if dead == 0 { before } else { word >> (dead - 1) & 1 };
            word |= previous << dead;
        }
        before = word >> 63;
        word
    };
    let mut words: Vec<u64> = nulls.iter().zip(&live[..bits::words(rows)]).map(fill).collect();
    bits::clear_tail(&mut words, rows);
    words
}

impl Store<Vec<u8>> {
    /// The bytes of its sections.
    fn len(&self) -> usize {
        match self {
            Self::Constant(_) | Self::Lent(_) => 0,
            Self::Integers { codes: bytes, .. } | Self::Plain(bytes) | Self::FixedTexts { bytes, .. } => {
                bytes.len()
            }
            Self::Texts { offsets, bytes } => offsets.len() + bytes.len(),
            Self::Packed(packed) => {
                let offsets = match &packed.lengths {
                    Lengths::One(_) => 0,
                    Lengths::Offsets { offsets, .. } => offsets.len(),
                };
                offsets + packed.codes.len()
            }
            Self::Compressed(texts) => texts.offsets.len() + texts.codes.len() + texts.table.len(),
        }
    }
}
