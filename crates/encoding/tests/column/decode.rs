//! Many values against single ones.

use albireo_encoding::{Choose, Column, Kind, Selection};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, bits, draw, draw_mask, edges};

type Rows = Vec<usize>;

fn assert_numbers(column: &Column<Vec<u8>>, selection: &Selection<'_>, rows: &Rows) {
    let expected: Vec<i64> = rows.iter().map(|row| column.integer(*row)).collect();
    let mut found = vec![7_i64];
    column.integers_into(selection, &mut found);
    assert_eq!(found[1..], expected, "{} {selection:?}", column.form());
    if column.kind() != Kind::I64 {
        let mut found = Vec::<i32>::new();
        column.integers_into(selection, &mut found);
        assert!(found.iter().map(|value| i64::from(*value)).eq(expected.iter().copied()));
    }
    if matches!(column.kind(), Kind::Bool | Kind::I16) {
        let mut found = Vec::<i16>::new();
        column.integers_into(selection, &mut found);
        assert!(found.iter().map(|value| i64::from(*value)).eq(expected.iter().copied()));
    }
    let mut found = vec![7_i128];
    column.integers_into(selection, &mut found);
    assert!(found[1..].iter().copied().eq(expected.iter().map(|value| i128::from(*value))));
    if column.kind() == Kind::Bool {
        let mut found = Vec::<u8>::new();
        column.integers_into(selection, &mut found);
        assert!(found.iter().map(|value| i64::from(*value)).eq(expected));
    }
}

fn assert_floats(column: &Column<Vec<u8>>, selection: &Selection<'_>, rows: &Rows) {
    let expected: Vec<u64> = rows.iter().map(|row| column.float_bits(*row)).collect();
    let mut found = vec![7_u64];
    column.floats_into(selection, &mut found);
    assert_eq!(found[1..], expected);
    if column.kind() == Kind::F32 {
        let mut found = Vec::<f32>::new();
        column.floats_into(selection, &mut found);
        assert!(found.iter().map(|value| u64::from(value.to_bits())).eq(expected));
    } else {
        let mut found = Vec::<f64>::new();
        column.floats_into(selection, &mut found);
        assert!(found.iter().map(|value| value.to_bits()).eq(expected));
    }
}

fn assert_texts(column: &Column<Vec<u8>>, selection: &Selection<'_>, rows: &Rows) {
    let expected: Vec<_> = rows.iter().map(|row| column.text(*row).into_owned()).collect();
    let mut found = Vec::new();
    column.for_each_text(selection, |text| found.push(text.to_vec()));
    assert_eq!(found, expected);
    if column.lends_texts() {
        let mut found: Vec<&[u8]> = vec![b"before"];
        column.texts_as(selection, |text| text, &mut found);
        assert_eq!(found[1..], expected);
    }
    let (mut ends, mut bytes) = (vec![2_u32], b"xy".to_vec());
    column.texts_into(selection, &mut ends, &mut bytes);
    assert_eq!(ends.len(), expected.len() + 1);
    for (pair, expected) in ends.windows(2).zip(expected) {
        assert_eq!(bytes[pair[0] as usize..pair[1] as usize], *expected);
    }
    assert_eq!(ends.last().map(|end| *end as usize), Some(bytes.len()));
}

fn assert_decodes(column: &Column<Vec<u8>>, selection: &Selection<'_>, rows: &Rows) {
    assert_eq!(selection.count(column.rows()), rows.len());
    match column.kind() {
        Kind::I128 | Kind::Uuid => {
            let mut found = vec![[7; 16]];
            column.wide_into(selection, &mut found);
            assert!(found[1..].iter().copied().eq(rows.iter().map(|row| column.wide(*row))));
        }
        Kind::F32 | Kind::F64 => assert_floats(column, selection, rows),
        Kind::Text => assert_texts(column, selection, rows),
        _ => assert_numbers(column, selection, rows),
    }
    let mut found = Vec::new();
    column.for_each(selection, |value| found.push(value.to_scalar()));
    assert!(found.into_iter().eq(rows.iter().map(|row| column.scalar(*row))));
    if let Some(dictionary) = column.dictionary() {
        let mut found = vec![9_u32];
        dictionary.codes_into(selection, &mut found);
        assert!(
            found[1..].iter().map(|code| *code as usize).eq(rows.iter().map(|row| dictionary.code(*row)))
        );
    }
    if let Some(shared) = column.shared() {
        let (stored, mut found) = (column.stored(), vec![9_u16]);
        column.places_into(selection, &mut found);
        assert_eq!(found.len(), rows.len() + 1);
        for (place, row) in found[1..].iter().zip(rows) {
            assert!(usize::from(*place) < shared);
            assert_eq!(stored.scalar((*place).into()), column.scalar(*row));
        }
    }
    let mut found = vec![u64::MAX];
    let count = column.nulls_of(selection, &mut found);
    let expected: Vec<bool> = rows.iter().map(|row| column.is_null(*row)).collect();
    assert_eq!(found, bits(&expected));
    assert_eq!(count, expected.iter().filter(|null| **null).count());
}

/// Decodes all, ranges and masks.
pub fn assert_selections(data: &Data, random: &mut Random) {
    let rows = data.rows();
    for column in data.forms(&CHOICES) {
        assert_decodes(&column, &Selection::All, &(0..rows).collect());
        for _ in 0..3 {
            let (a, b) = (random.index(rows + 1), random.index(rows + 1));
            let range = a.min(b)..a.max(b);
            assert_decodes(&column, &Selection::Range(range.clone()), &range.collect());
            let mask = draw_mask(random, rows);
            let chosen: Vec<usize> = (0..rows).filter(|row| mask[*row]).collect();
            let few = chosen.iter().copied().step_by(1 + random.index(40)).collect();
            for chosen in [chosen, few] {
                let mask: Vec<bool> = (0..rows).map(|row| chosen.binary_search(&row).is_ok()).collect();
                assert_decodes(&column, &Selection::Mask(&bits(&mask)), &chosen);
                let numbers: Vec<u16> = chosen.iter().map(|row| *row as u16).collect();
                assert_decodes(&column, &Selection::Rows(&numbers), &chosen);
            }
        }
    }
}

#[test]
fn drawn_selections_are_decoded_as_row_after_row() {
    test!().for_each_seed(0..120, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        assert_selections(&data, &mut random);
    });
}

#[test]
fn edges_are_decoded_as_row_after_row() {
    let mut random = Random::new(1);
    for kind in Kind::ALL {
        assert_selections(&Data::of(kind, edges(kind)), &mut random);
        assert_selections(&Data::of(kind, edges(kind)[..1].to_vec()), &mut random);
        assert_selections(&Data::of(kind, vec![]), &mut random);
    }
}

#[test]
#[should_panic(expected = "values of the kind fit")]
fn numbers_that_may_not_fit_are_refused() {
    Data::integers(Kind::I32, [1]).encode(Choose::Best).integers_into::<i16>(&Selection::All, &mut vec![]);
}

#[test]
#[should_panic(expected = "does not hold integers")]
fn integers_of_texts_are_refused() {
    Data::texts(["1"]).encode(Choose::Best).integers_into::<i64>(&Selection::All, &mut vec![]);
}

#[test]
#[should_panic(expected = "rows of the column")]
fn range_behind_the_rows_is_refused() {
    let selection = Selection::Range(0..2);
    Data::integers(Kind::I32, [1]).encode(Choose::Best).integers_into::<i64>(&selection, &mut vec![]);
}
