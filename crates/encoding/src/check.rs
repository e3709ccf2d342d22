//! Checks the sections of a column whose header was read: L-1 to L-5, and L-7.

use crate::column::Column;
use crate::error::Malformed;
use crate::layers::{Codes, Nulls, Runs, Store, null_words, ranges};
use crate::numbers::{Code, Width, with_width};
use crate::packed::Lengths;
use crate::section::{Section, SectionName};

fn holds(condition: bool, section: SectionName, rule: &'static str) -> Result<(), Malformed> {
    if condition { Ok(()) } else { Err(Malformed::Content { section, rule }) }
}

/// Checks all sections; their lengths are right.
pub(crate) fn check<S: Section>(column: &Column<S>) -> Result<(), Malformed> {
    check_nulls(&column.nulls, column.rows())?;
    if let Some(runs) = &column.runs {
        check_runs(runs, column.rows())?;
    }
    if let Some(codes) = &column.codes {
        check_codes(codes)?;
    }
    check_store(column)?;
    check_entries(column)
}

fn check_nulls<S: Section>(nulls: &Nulls<S>, rows: usize) -> Result<(), Malformed> {
    match nulls {
        Nulls::None | Nulls::All => Ok(()),
        Nulls::Bits(section) => {
            let behind = match (null_words(section.bytes()).last(), rows % 64) {
                (Some(last), 1..) => last >> (rows % 64),
                _ => 0,
            };
            holds(behind == 0, SectionName::Nulls, "no bit is behind the last row")
        }
        Nulls::Ranges(section) => {
            let mut from = 0;
            for range in ranges(section.bytes()) {
                let fine = from <= range.start && range.start < range.end && range.end <= rows;
                holds(fine, SectionName::Nulls, "ranges ascend")?;
                from = range.end;
            }
            Ok(())
        }
    }
}

fn check_runs<S: Section>(runs: &Runs<S>, rows: usize) -> Result<(), Malformed> {
    let ends = || runs.list().iter().map(|end| u16::from_le_bytes(*end));
    holds(ends().is_sorted_by(|a, b| a < b), SectionName::Ends, "ends ascend")?;
    let last = ends().next_back().map_or(0, |end| usize::from(end) + 1);
    holds(last == rows, SectionName::Ends, "the last end is the last row")
}

fn check_codes<S: Section>(codes: &Codes<S>) -> Result<(), Malformed> {
    let bytes = codes.section.bytes();
    let greatest = match codes.width {
        Width::One => greatest::<u8>(bytes),
        _ => greatest::<u16>(bytes),
    };
    let fine = greatest.is_none_or(|greatest| greatest < codes.entries.into());
    holds(fine, SectionName::Codes, "codes are below the length of the dictionary")
}

fn greatest<C: Code>(bytes: &[u8]) -> Option<u64> {
    let codes = C::list(bytes);
    let greatest = codes.iter().fold(C::LEAST, |greatest, code| greatest.max(C::get(*code)));
    (!codes.is_empty()).then(|| greatest.widen())
}

fn check_store<S: Section>(column: &Column<S>) -> Result<(), Malformed> {
    match &column.store {
        Store::Integers { base, width, codes } => {
            let greatest = with_width!(*width, C => greatest::<C>(codes.bytes())).unwrap_or(0);
            let greatest = i128::from(*base) + i128::from(greatest);
            let fine = column
                .kind
                .limits()
                .is_some_and(|(least, most)| least <= *base && greatest <= i128::from(most));
            holds(fine, SectionName::Values, "integers are within the limits of the kind")
        }
        Store::Texts { offsets, bytes } => check_offsets(offsets, bytes.bytes().len()),
        Store::Packed(packed) => {
            let symbols = match &packed.lengths {
                Lengths::One(length) => *length as usize * column.places(),
                Lengths::Offsets { offsets, symbols } => {
                    check_offsets(offsets, *symbols as usize)?;
                    *symbols as usize
                }
            };
            let fine = packed.is_sound(symbols);
            holds(
                fine,
                SectionName::Values,
                "packed codes are below the number of symbols, and end with them",
            )
        }
        Store::Compressed(texts) => {
            check_offsets(&texts.offsets, texts.codes.bytes().len())?;
            let table = "symbols differ, lie in their order, and have zeros behind them";
            holds(texts.has_sound_table(), SectionName::Symbols, table)?;
            let codes = "codes of compressed texts are of symbols or of escaped bytes";
            holds(texts.has_sound_codes(column.places()), SectionName::Values, codes)
        }
        Store::Constant(_) | Store::Plain(_) | Store::FixedTexts { .. } | Store::Lent(_) => Ok(()),
    }
}

fn check_offsets<S: Section>(offsets: &S, length: usize) -> Result<(), Malformed> {
    let mut offsets = offsets.bytes().as_chunks().0.iter().map(|offset| u32::from_le_bytes(*offset));
    let fine = offsets.clone().next() == Some(0) && offsets.clone().is_sorted();
    holds(fine, SectionName::Offsets, "offsets ascend from 0")?;
    let last = offsets.next_back().map_or(0, |offset| offset as usize);
    holds(last == length, SectionName::Offsets, "the last offset is the texts' length")
}

fn check_entries<S: Section>(column: &Column<S>) -> Result<(), Malformed> {
    let Some(codes) = &column.codes else { return Ok(()) };
    let entry = |code| column.store.scalar(column.kind, code);
    let pairs = 1..codes.entries as usize;
    let ascends = |code| entry(code - 1).compare_exactly(entry(code)).is_lt();
    holds(pairs.into_iter().all(ascends), SectionName::Values, "values of the dictionary ascend")
}
