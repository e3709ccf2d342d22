//! Texts compressed by a table of symbols.

use std::ops::Bound;

use albireo_encoding::{
    Choose, Column, Kind, Malformed, ScalarRef, SectionName, Selected, Selection, StoreForm, Test,
    compress_texts,
};
use albireo_testing::{Random, test};

use crate::bytes::{fault, parts, read, read_all, rule};
use crate::decode::assert_selections;
use crate::round_trip::assert_round_trips;
use crate::select::{Owned, assert_selects, draw_test};
use crate::support::{Data, bits, draw_mask, with_gaps};

/// Texts of a few words, and of bytes in no word; some rows are NULL, and some dead.
fn draw(random: &mut Random) -> Data {
    let letters = random.pick(&[2, 26, 256]);
    let byte = |random: &mut Random| match letters {
        256 => random.below(256) as u8,
        letters => b'a' + random.below(letters) as u8,
    };
    let word = |random: &mut Random| -> Vec<u8> { (0..1 + random.index(12)).map(|_| byte(random)).collect() };
    let words: Vec<Vec<u8>> = (0..random.pick(&[1, 3, 20])).map(|_| word(random)).collect();
    let piece = |random: &mut Random| match random.percent(90) {
        true => random.pick(&words),
        // Zeros, which are also what lies behind symbols and texts.
        false => vec![random.pick(&[0, 0, 255, b'a', b'~'])],
    };
    let most = random.pick(&[1, 4, 9]);
    let text = |random: &mut Random| -> Vec<u8> {
        (0..random.index(most + 1)).flat_map(|_| piece(random)).collect()
    };
    let rows = random.pick(&[1, 3, 64, 65, 500]);
    let texts: Vec<Vec<u8>> = (0..rows).map(|_| text(random)).collect();
    with_gaps(Data::texts(texts), random)
}

fn for_each_draw(seeds: u64, mut run: impl FnMut(&Data, &mut Random)) {
    test!().for_each_seed(0..seeds, |seed| {
        let mut random = Random::new(seed);
        run(&draw(&mut random), &mut random);
    });
}

#[test]
fn texts_of_words_come_back() {
    for_each_draw(150, |data, _| assert_round_trips(data));
}

#[test]
fn selections_of_compressed_texts_are_decoded_as_row_after_row() {
    for_each_draw(80, assert_selections);
}

#[test]
fn tests_of_compressed_texts_select_the_rows_whose_values_pass() {
    for_each_draw(150, |data, random| {
        for _ in 0..5 {
            let test = draw_test(data, random);
            assert_selects(data, &test, &draw_mask(random, data.rows()));
        }
    });
}

#[test]
fn characters_of_each_length_come_back() {
    let characters: Vec<char> = (1..0x11_0000).step_by(67).filter_map(char::from_u32).collect();
    let texts: Vec<String> = characters.chunks(7).map(|some| some.iter().collect()).collect();
    let data = Data::texts(&texts);
    assert_round_trips(&data);
    let column = data.encode(Choose::Compressed);
    assert!((0..texts.len()).all(|row| std::str::from_utf8(&column.text(row)).is_ok()));
}

#[test]
fn longest_texts_and_most_rows_come_back() {
    let words = ["order ", "customer ", "item ", "quickly ", "\u{1f600}", "\0\0"];
    let mut random = Random::new(1);
    let long: String = (0..40_000).map(|_| random.pick(&words)).collect();
    assert!(long.len() > 3 << 16);
    let bytes: Vec<u8> = (0..100_000_u64).map(|at| (at * at / 8) as u8).collect();
    assert_round_trips(&Data::texts([long.as_bytes(), &bytes, b"", &long.as_bytes()[1..], b"o"]));
    let data = Data::texts((0..65_536).map(|row| format!("customer {} of 65536", row * 7 % 65_536)));
    assert_round_trips(&data);
    assert_selects(&data, &Owned::Prefix(b"customer 123".into()), &vec![true; 65_536]);
    assert_selects(&data, &Owned::Equal(data.values[77].clone()), &vec![true; 65_536]);
}

#[test]
fn texts_without_bytes_and_few_texts_come_back() {
    assert_round_trips(&Data::texts(["", "", ""]));
    assert_round_trips(&Data::texts(["", "a", ""]));
    assert_round_trips(&Data::texts((0..=255_u8).map(|byte| [byte])));
    let column = Data::texts(["", ""]).encode(Choose::Compressed);
    assert_eq!(column.form().to_string(), "texts compressed by 0 symbols");
}

/// Texts of one code each.
fn of_two_symbols() -> Data {
    Data::texts((0..300).map(|row| ["abcdefgh", "12345678"][row % 2]))
}

#[test]
fn text_that_is_frequent_is_one_code() {
    let column = of_two_symbols().encode(Choose::Compressed);
    assert!(matches!(column.form().store, StoreForm::CompressedTexts { symbols: 2.. }), "{}", column.form());
    assert_eq!(column.bytes(), 301 * 4 + 300 + 256 * 9);
    assert!(!column.is_cheap() && column.runs().is_none() && column.dictionary().is_none());
    assert!(column.constant().is_none() && column.is_compressed() && !column.is_packed());
}

fn selected(column: &Column<Vec<u8>>, test: &mut Test<'_>) -> (Vec<usize>, Selected) {
    let mut mask = bits(&vec![true; column.rows()]);
    let selected = column.select(test, &mut mask);
    ((0..column.rows()).filter(|row| mask[row / 64] >> (row % 64) & 1 == 1).collect(), selected)
}

#[test]
fn text_is_told_from_those_that_begin_with_it() {
    let texts = ["ab", "abab", "ab\0", "ab\0\0", "", "a", "\0", "ababababababab", "b"];
    let column = Data::texts(texts.iter().cycle().take(900)).encode(Choose::Compressed);
    let rows = |wanted: fn(&str) -> bool| -> Vec<usize> {
        (0..900).filter(|row| wanted(texts[row % texts.len()])).collect()
    };
    let equal = |text: &str| selected(&column, &mut Test::Equal(ScalarRef::Text(text.as_bytes()))).0;
    assert_eq!(equal("ab"), rows(|text| text == "ab"));
    assert_eq!(equal("ab\0"), rows(|text| text == "ab\0"));
    assert_eq!(equal(""), rows(str::is_empty));
    assert_eq!(equal("aba"), rows(|_| false));
    let list = ["", "\0", "abab", "abc"].map(|text| ScalarRef::Text(text.as_bytes()));
    assert_eq!(selected(&column, &mut Test::In(&list)).0, rows(|text| ["", "\0", "abab"].contains(&text)));
    assert_eq!(selected(&column, &mut Test::Prefix(b"ab\0")).0, rows(|text| text.starts_with("ab\0")));
    assert_eq!(selected(&column, &mut Test::Prefix(b"")).1, Selected::All);
    let mut between =
        Test::Between(Bound::Excluded(ScalarRef::Text(b"ab")), Bound::Included(ScalarRef::Text(b"ab\0")));
    assert_eq!(selected(&column, &mut between).0, rows(|text| text > "ab" && text <= "ab\0"));
}

#[test]
fn sections_are_those_that_the_texts_and_the_symbols_make() {
    for_each_draw(60, |data, _| {
        let column = data.encode(Choose::Compressed);
        if !column.is_compressed() {
            return assert_eq!(data.valid().count(), 0);
        }
        let texts: Vec<_> = (0..column.rows()).map(|row| column.text(row).into_owned()).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let section = |name| column.section(name).cloned().expect("it has one");
        let made = compress_texts(&section(SectionName::Symbols), &texts);
        assert_eq!(made, Some((section(SectionName::Offsets), section(SectionName::Values))));
    });
}

#[test]
fn symbols_that_are_damaged_are_refused_or_others() {
    let data = Data::texts((0..300).map(|row| format!("customer {} of {row}", row * 7919 % 1000)));
    let column = data.encode(Choose::Compressed);
    let whole = parts(&column);
    let (mut refused, mut random) = (0, Random::new(1));
    for _ in 0..400 {
        let mut damaged = whole.clone();
        let (name, symbols) = damaged.1.last_mut().expect("symbols are the last section");
        assert_eq!(*name, SectionName::Symbols);
        let at = random.index(symbols.len());
        symbols[at] ^= 1 << random.below(8);
        let made = compress_texts(symbols, &[b"customer 7 of 7", b"", b"\0\0"]);
        let found = read(&damaged, Kind::Text, 300);
        assert!(found.is_err() || made.is_some());
        refused += usize::from(found.map(|column| read_all(&column)).is_err());
    }
    assert!(refused > 100, "{refused} were refused");
}

#[test]
fn each_rule_of_compressed_texts_is_looked_at() {
    use SectionName::{Offsets, Symbols, Values};
    let data = of_two_symbols();
    // The form of the store is byte 16, behind which come the bytes of all codes and the number of symbols.
    let both = "compressed texts, with runs or a dictionary";
    assert_eq!(fault(&data, Choose::Compressed, |header| header[7] = 4), both);
    assert_eq!(fault(&data, Choose::Compressed, |header| header[11..13].fill(1)), both);
    let whole = parts(&data.encode(Choose::Compressed));
    assert_eq!(whole.0[16], 7);
    for count in [0, whole.0[21] - 1, whole.0[21] + 1, 255] {
        let mut other = whole.clone();
        other.0[21] = count;
        let found = read(&other, Kind::Text, 300);
        assert!(matches!(found, Err(Malformed::Content { section: Symbols, .. })), "{found:?}");
    }
    let mut longer = whole.clone();
    longer.0[17] ^= 1;
    let found = read(&longer, Kind::Text, 300);
    assert!(matches!(found, Err(Malformed::Length { section: Values, .. })), "{found:?}");
    let symbols = "symbols differ, lie in their order, and have zeros behind them";
    assert_eq!(rule(&data, Choose::Compressed, Symbols, |bytes| bytes[256 * 8] = 9), symbols);
    assert_eq!(rule(&data, Choose::Compressed, Symbols, |bytes| bytes[256 * 9 - 1] = 1), symbols);
    let codes = "codes of compressed texts are of symbols or of escaped bytes";
    // No symbol, and an escape without a byte behind it.
    assert_eq!(rule(&data, Choose::Compressed, Values, |bytes| bytes[7] = 254), codes);
    assert_eq!(rule(&data, Choose::Compressed, Values, |bytes| bytes[7] = 255), codes);
    assert_eq!(rule(&data, Choose::Compressed, Offsets, |bytes| bytes[0] = 1), "offsets ascend from 0");
    assert_eq!(rule(&data, Choose::Compressed, Offsets, |bytes| bytes[4] = 9), "offsets ascend from 0");
    assert_eq!(
        rule(&data, Choose::Compressed, Offsets, |bytes| bytes[1200] ^= 2),
        "the last offset is the texts' length"
    );
}

#[test]
#[should_panic(expected = "does not hold texts that can be lent")]
fn compressed_texts_are_not_lent() {
    let column = of_two_symbols().encode(Choose::Compressed);
    column.texts_as(&Selection::All, <[u8]>::len, &mut vec![]);
}
