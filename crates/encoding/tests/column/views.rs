//! What operators take instead of rows.

use albireo_encoding::{Choose, Kind};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, bits, compare, draw, draw_mask, integer};

#[test]
fn dictionary_has_each_value_once_in_order_and_codes_lead_to_them() {
    test!().for_each_seed(0..90, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        for choose in [Choose::Dictionary, Choose::RunsOfDictionary] {
            let column = data.encode(choose);
            let Some(dictionary) = column.dictionary() else {
                assert_eq!(data.valid().count(), 0);
                continue;
            };
            for (row, value) in data.valid() {
                assert!(dictionary.code(row) < dictionary.entries());
                assert_eq!(dictionary.entry(dictionary.code(row)), value);
            }
            let entries: Vec<_> = (0..dictionary.entries()).map(|code| dictionary.entry(code)).collect();
            assert!(entries.is_sorted_by(|a, b| compare(*a, *b).is_le() && a != b));
            assert!(entries.iter().all(|entry| data.valid().any(|(_, value)| value == *entry)));
        }
        assert!(data.encode(Choose::Plain).dictionary().is_none());
    });
}

#[test]
fn runs_cover_all_rows_with_their_values() {
    test!().for_each_seed(0..90, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        for choose in [Choose::Runs, Choose::RunsOfDictionary] {
            let column = data.encode(choose);
            let Some(runs) = column.runs() else {
                assert_eq!(data.valid().count(), 0);
                continue;
            };
            let mut from = 0;
            for (rows, value) in runs {
                assert!(rows.start == from && rows.end > from);
                from = rows.end;
                for row in rows {
                    assert!(data.value(row as usize).is_none_or(|other| other == value));
                }
            }
            assert_eq!(from as usize, data.rows());
        }
        assert!(data.encode(Choose::Plain).runs().is_none());
    });
}

#[test]
fn constant_is_the_value_of_all_rows_that_have_one() {
    let mut data = Data::integers(Kind::I32, [5; 100]);
    assert_eq!(data.encode(Choose::Best).constant().map(integer), Some(5));
    data.nulls[3] = true;
    assert_eq!(data.encode(Choose::Best).constant().map(integer), Some(5));
    data.nulls.fill(true);
    assert_eq!(data.encode(Choose::Best).constant(), None);
    assert_eq!(Data::integers(Kind::I32, [5, 6]).encode(Choose::Best).constant(), None);
}

#[test]
fn sum_is_that_of_the_rows_of_the_mask() {
    test!().for_each_seed(0..120, |seed| {
        let mut random = Random::new(seed);
        let kind = random.pick(&[Kind::Bool, Kind::I16, Kind::I32, Kind::I64]);
        let data = draw(kind, &mut random);
        for choose in CHOICES {
            let column = data.encode(choose);
            let mut mask = draw_mask(&mut random, data.rows());
            mask.iter_mut().zip(&data.live).for_each(|(mask, live)| *mask &= live);
            let chosen: Vec<_> = data.valid().filter(|(row, _)| mask[*row]).collect();
            let found = column.sum(&bits(&mask));
            assert_eq!(found.count as usize, chosen.len());
            let expected: i128 = chosen.iter().map(|(_, value)| i128::from(integer(*value))).sum();
            assert_eq!(found.sum, expected, "{}", column.form());
        }
    });
}

#[test]
fn sum_of_extremes_does_not_overflow() {
    for value in [i64::MIN, i64::MAX] {
        // Of 65,536 rows all but one have it, so that it is no constant.
        let data = Data::integers(Kind::I64, (0..65_536).map(|row| if row == 77 { 0 } else { value }));
        let expected = i128::from(value) * 65_535;
        for choose in CHOICES {
            let column = data.encode(choose);
            assert_eq!(column.sum(&vec![u64::MAX; 1024]).sum, expected);
            assert_eq!(column.summary().sum, Some(expected));
        }
    }
}

#[test]
#[should_panic(expected = "does not hold integers")]
fn sum_of_texts_is_refused() {
    Data::texts(["1"]).encode(Choose::Best).sum(&[1]);
}
