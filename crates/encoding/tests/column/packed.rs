//! Texts of few different bytes.

use std::convert::Infallible;
use std::ops::Bound;

use albireo_encoding::{Choose, Column, Kind, Malformed, ScalarRef, Selected, Selection, StoreForm, Test};
use albireo_testing::{Random, test};

use crate::bytes::{fault, rule};
use crate::decode::assert_selections;
use crate::round_trip::assert_round_trips;
use crate::select::{Owned, assert_selects, draw_test};
use crate::support::{Data, bits, draw_mask, with_gaps};

const ALPHABETS: [usize; 10] = [1, 2, 3, 4, 16, 17, 63, 64, 65, 256];

/// So many different bytes, anywhere.
fn alphabet(count: usize, random: &mut Random) -> Vec<u8> {
    let mut all: Vec<u8> = (0..=255).collect();
    while all.len() > count {
        all.swap_remove(random.index(all.len()));
    }
    all
}

/// Texts that have every byte of an alphabet, of one length or of lengths from 0 to that, some NULL and some dead.
fn draw(alphabet: &[u8], length: usize, is_fixed: bool, random: &mut Random) -> Data {
    let rows = random.pick(&[1, 7, 64, 65, 500]);
    let text = |random: &mut Random| -> Vec<u8> {
        let length = if is_fixed { length } else { random.index(length + 1) };
        (0..length).map(|_| random.pick(alphabet)).collect()
    };
    let mut texts: Vec<Vec<u8>> = (0..rows).map(|_| text(random)).collect();
    for (at, byte) in alphabet.iter().enumerate() {
        let row = at % rows;
        if let Some(place) = (!texts[row].is_empty()).then(|| random.index(texts[row].len())) {
            texts[row][place] = *byte;
        }
    }
    with_gaps(Data::texts(texts), random)
}

fn for_each_draw(seeds: u64, mut run: impl FnMut(&Data, &mut Random)) {
    test!().for_each_seed(0..seeds, |seed| {
        let mut random = Random::new(seed);
        let alphabet = alphabet(ALPHABETS[seed as usize % ALPHABETS.len()], &mut random);
        let length = random.pick(&[1, 2, 7, 8, 9, 24, 100]);
        let is_fixed = random.percent(50);
        run(&draw(&alphabet, length, is_fixed, &mut random), &mut random);
    });
}

#[test]
fn texts_over_alphabets_of_each_size_come_back() {
    for_each_draw(200, |data, _| assert_round_trips(data));
}

#[test]
fn selections_of_packed_texts_are_decoded_as_row_after_row() {
    for_each_draw(100, assert_selections);
}

#[test]
fn tests_of_packed_texts_select_the_rows_whose_values_pass() {
    for_each_draw(200, |data, random| {
        for _ in 0..5 {
            let test = draw_test(data, random);
            assert_selects(data, &test, &draw_mask(random, data.rows()));
        }
    });
}

#[test]
fn bits_are_the_fewest_that_hold_the_alphabet() {
    for (count, bits) in
        [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (16, 4), (17, 5), (32, 5), (33, 6), (64, 6)]
    {
        // Each text begins with another byte, so that there is neither a dictionary nor a constant.
        let texts =
            (0..1000_u32).map(|row| [(row % count) as u8, (row / 7 % count) as u8, (row / 3 % count) as u8]);
        let form = Data::texts(texts).encode(Choose::Packed).form();
        let expected =
            if count == 1 { StoreForm::Constant } else { StoreForm::PackedTexts { bits, symbols: Some(3) } };
        assert_eq!(form.store, if count == 1 { form.store } else { expected });
    }
    let one = Data::texts((0..100).map(|row| "x".repeat(row))).encode(Choose::Packed);
    assert_eq!(one.form().to_string(), "texts of 1 bit a byte");
    assert_eq!(one.bytes(), 101 * 4 + (4950_usize).div_ceil(8) + 8);
}

fn selected(column: &Column<Vec<u8>>, test: &mut Test<'_>) -> (Vec<usize>, Selected) {
    let mut mask = bits(&vec![true; column.rows()]);
    let selected = column.select(test, &mut mask);
    ((0..column.rows()).filter(|row| mask[row / 64] >> (row % 64) & 1 == 1).collect(), selected)
}

#[test]
fn byte_that_is_not_in_the_alphabet_selects_nothing() {
    let column = Data::texts(["abc", "abd", "bad", "cab"]).encode(Choose::Packed);
    assert_eq!(column.form().to_string(), "texts of 3 bytes of 2 bits");
    let equal = |text: &str| selected(&column, &mut Test::Equal(ScalarRef::Text(text.as_bytes()))).0;
    assert_eq!(equal("bad"), [2]);
    assert_eq!(equal("bae"), Vec::<usize>::new());
    assert_eq!(equal("ba"), Vec::<usize>::new());
    assert_eq!(equal("abcd"), Vec::<usize>::new());
    let prefix = |text: &str| selected(&column, &mut Test::Prefix(text.as_bytes())).0;
    assert_eq!(prefix("ab"), [0, 1]);
    assert_eq!(prefix("bad"), [2]);
    assert_eq!(prefix("bx"), Vec::<usize>::new());
    assert_eq!(prefix("badb"), Vec::<usize>::new());
    // Bounds need not consist of the alphabet.
    let lower = Bound::Excluded(ScalarRef::Text(b"abc\0"));
    assert_eq!(
        selected(&column, &mut Test::Between(lower, Bound::Unbounded)),
        (vec![1, 2, 3], Selected::Some)
    );
}

#[test]
fn text_that_another_one_begins_with_is_not_equal_to_it() {
    // The byte with code 0 is what lies behind the last symbol.
    let column = Data::texts(["a", "aa", "aaa", "b", "ba", "", "a", "aaaaaaaaa"]).encode(Choose::Packed);
    let equal = |text: &str| selected(&column, &mut Test::Equal(ScalarRef::Text(text.as_bytes()))).0;
    assert_eq!(equal("a"), [0, 6]);
    assert_eq!(equal("aa"), [1]);
    assert_eq!(equal(""), [5]);
    assert_eq!(equal("aaaaaaaaa"), [7]);
    assert_eq!(selected(&column, &mut Test::Prefix(b"aa")).0, [1, 2, 7]);
    assert_eq!(selected(&column, &mut Test::Prefix(b"")).1, Selected::All);
}

#[test]
fn each_is_lent_the_texts_one_after_the_other() {
    let texts: Vec<String> = (0..200).map(|row| format!("{:x}", row * 7919)).collect();
    let column = Data::texts(&texts).encode(Choose::Packed);
    let mut found = Vec::new();
    let mut note = |value: ScalarRef<'_>| {
        found.push(value.to_scalar());
        found.len() % 2 == 0
    };
    let (rows, _) = selected(&column, &mut Test::Each(&mut note));
    assert!(rows.into_iter().eq((0..200).filter(|row| row % 2 == 1)));
    assert!(found.iter().zip(&texts).all(|(found, text)| found.as_ref() == ScalarRef::Text(text.as_bytes())));
    assert!(!column.is_cheap() && column.runs().is_none() && column.dictionary().is_none());
    assert!(column.constant().is_none());
}

#[test]
fn packed_texts_are_the_same_with_sections_elsewhere() {
    let column = Data::texts((0..50).map(|row| "xyz".repeat(row % 5))).encode(Choose::Packed);
    let Ok(other) = column.clone().map_sections(|_, bytes| Ok::<_, Infallible>(bytes.into_boxed_slice()));
    assert!((0..50).all(|row| other.text(row) == column.text(row)));
}

#[test]
fn each_rule_of_packed_texts_is_looked_at() {
    use albireo_encoding::SectionName::{Offsets, Values};
    let fixed = Data::texts(["abc", "bca", "cab", "bac"]);
    let varied = Data::texts(["abc", "b", "", "cabac"]);
    // The form of the store is byte 16, behind which come the length, the number of symbols and these.
    let with = |at: usize, byte: u8| move |header: &mut Vec<u8>| header[at] = byte;
    assert_eq!(fault(&fixed, Choose::Packed, with(21, 0)), "the alphabet");
    assert_eq!(fault(&fixed, Choose::Packed, with(21, 255)), "its end");
    assert_eq!(fault(&fixed, Choose::Packed, with(22, b'b')), "the alphabet");
    assert_eq!(fault(&fixed, Choose::Packed, with(23, b'd')), "the alphabet");
    assert_eq!(fault(&fixed, Choose::Packed, with(16, 8)), "the form of values");
    let many = |header: &mut Vec<u8>| {
        header[21] = 65;
        header.splice(22..25, 0..65);
    };
    assert_eq!(fault(&fixed, Choose::Packed, many), "the alphabet");
    let both = "packed texts, with runs or a dictionary";
    assert_eq!(fault(&fixed, Choose::Packed, with(7, 4)), both);
    assert_eq!(fault(&fixed, Choose::Packed, |header| header[11..13].fill(1)), both);
    // Two bits a symbol, of which there are three; 24 bits, and eight bytes behind them.
    let sound = "packed codes are below the number of symbols, and end with them";
    for data in [&fixed, &varied] {
        for at in 0..9 {
            let set = move |bytes: &mut Vec<u8>| bytes[at] |= 3;
            assert_eq!(rule(data, Choose::Packed, Values, set), sound);
        }
    }
    assert_eq!(rule(&varied, Choose::Packed, Offsets, |bytes| bytes[0] = 1), "offsets ascend from 0");
    assert_eq!(rule(&varied, Choose::Packed, Offsets, |bytes| bytes[4] = 5), "offsets ascend from 0");
    assert_eq!(
        rule(&varied, Choose::Packed, Offsets, |bytes| bytes[16] = 8),
        "the last offset is the texts' length"
    );
}

#[test]
fn length_of_packed_texts_that_overflows_is_refused() {
    let mut header = Vec::new();
    Data::texts(["abc", "bca"]).encode(Choose::Packed).header(&mut header);
    header[17..21].fill(0xff);
    let read = Column::<Vec<u8>>::from_parts(&header, Kind::Text, 2, |_, _| Ok::<_, Infallible>(vec![0; 9]));
    let Err(albireo_encoding::FromPartsError::Malformed(Malformed::Length { expected, found, .. })) = read
    else {
        panic!("{read:?}")
    };
    assert_eq!((expected, found), ((2 * u64::from(u32::MAX) * 2).div_ceil(8) + 8, 9));
}

#[test]
#[should_panic(expected = "does not hold texts that can be lent")]
fn packed_texts_are_not_lent() {
    let column = Data::texts(["abc", "bca"]).encode(Choose::Packed);
    column.texts_as(&Selection::All, <[u8]>::len, &mut vec![]);
}

#[test]
fn longest_text_and_most_rows_come_back() {
    let longest: Vec<u8> = (0..65_535_u32).map(|at| b'a' + (at * at % 26) as u8).collect();
    assert_round_trips(&Data::texts([&longest[..], &longest[1..], b"", &longest]));
    let data = Data::texts((0..65_536).map(|row| format!("{:05}", row * 7 % 65_536)));
    assert_selects(&data, &Owned::Prefix(b"123".into()), &vec![true; 65_536]);
    assert_round_trips(&data);
}
