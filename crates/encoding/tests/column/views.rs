//! What operators take instead of rows.

use std::collections::BTreeMap;

use albireo_encoding::{Choose, Groups, Kind, MaskedRuns, Sum};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, bits, compare, draw, draw_mask, integer};

#[test]
fn dictionary_has_each_value_once_in_order_and_codes_lead_to_them() {
    test!().for_each_seed(0..90, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        for column in data.forms(&[Choose::Dictionary, Choose::RunsOfDictionary]) {
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
        for column in data.forms(&[Choose::Runs, Choose::RunsOfDictionary]) {
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

/// Rows of a column that live, with few values, drawn.
fn few(random: &mut Random, rows: usize) -> Data {
    let kind = random.pick(&[Kind::Bool, Kind::I16, Kind::I32, Kind::I64]);
    let (values, step) = (random.between(1, 12), random.pick(&[1, 1, 1, 1000]));
    let run = random.pick(&[1, 1, 3, 200]);
    let of = |row: i64| match kind {
        Kind::Bool => row / run % 2,
        _ => (row / run * 7 % values - 3) * step,
    };
    let mut data = Data::integers(kind, (0..rows as i64).map(of));
    for row in 0..rows {
        data.live[row] = !random.percent(5);
        data.nulls[row] = values % 3 == 0 && random.percent(10);
    }
    data
}

#[test]
fn sums_by_groups_are_those_of_the_rows_of_each() {
    let mut split = 0;
    test!().for_each_seed(0..160, |seed| {
        let mut random = Random::new(seed);
        let kind = random.pick(&[Kind::Bool, Kind::I16, Kind::I32, Kind::I64]);
        let data = draw(kind, &mut random);
        let by: Vec<Data> = (0..random.between(0, 2)).map(|_| few(&mut random, data.rows())).collect();
        let live = |row: usize| data.live[row] && by.iter().all(|by| by.live[row]);
        let drawn = draw_mask(&mut random, data.rows());
        let mask: Vec<bool> = (0..data.rows()).map(|row| drawn[row] && live(row)).collect();
        let mut expected: BTreeMap<Vec<Option<i64>>, (u32, Sum)> = BTreeMap::new();
        for row in (0..data.rows()).filter(|row| mask[*row]) {
            let key = by.iter().map(|by| by.value(row).map(integer)).collect();
            let (rows, sum) = expected.entry(key).or_default();
            *rows += 1;
            if let Some(value) = data.value(row).map(integer) {
                *sum = Sum { sum: sum.sum + i128::from(value), count: sum.count + 1 };
            }
        }
        for choose in CHOICES {
            let mut groups = Groups::default();
            groups.reset(data.rows());
            if !by.iter().all(|by| groups.split(&by.encode(choose))) {
                continue;
            }
            groups.keep(Some(&bits(&mask)));
            let column = data.encode(choose);
            let Some(sums) = column.sum_by(&groups) else {
                assert_eq!(kind, Kind::I64, "narrower ones never overflow");
                continue;
            };
            let filled = (0..groups.groups()).filter(|group| groups.count(*group) > 0);
            let found: BTreeMap<_, _> =
                filled.map(|group| (groups.key(group), (groups.count(group), sums[group]))).collect();
            assert_eq!(found, expected, "{} by {}", column.form(), by.len());
            split += usize::from(!by.is_empty());
        }
    });
    assert!(split > 400, "{split} were split");
}

#[test]
fn all_rows_are_kept_without_a_mask() {
    let column = Data::integers(Kind::I32, (0..1000).map(|row| row % 7)).encode(Choose::Best);
    let mut groups = Groups::default();
    groups.reset(1000);
    assert!(groups.split(&column));
    groups.keep(None);
    let sums = column.sum_by(&groups).expect("they fit");
    assert_eq!(groups.groups(), 7);
    for (group, sum) in sums.iter().enumerate() {
        let value = groups.key(group)[0].expect("no NULL");
        assert_eq!(sum.sum, i128::from(value) * i128::from(groups.count(group)));
    }
}

#[test]
fn groups_are_no_more_than_a_byte_has() {
    for (values, fits) in [(254, true), (255, true), (256, false), (257, false)] {
        for choose in CHOICES {
            let column = Data::integers(Kind::I32, (0..1000).map(|row| row % values)).encode(choose);
            let mut groups = Groups::default();
            groups.reset(1000);
            assert_eq!(groups.split(&column), fits, "{values} values, {}", column.form());
            groups.keep(None);
            assert_eq!(
                groups.groups(),
                if fits { values as usize } else { 1 },
                "a refused column changes nothing"
            );
            assert!(!groups.split(&column));
        }
    }
}

#[test]
#[should_panic(expected = "does not hold integers")]
fn sum_of_texts_is_refused() {
    Data::texts(["1"]).encode(Choose::Best).sum(&[1]);
}

#[test]
fn sums_by_runs_are_those_of_neighbours_of_one_value() {
    let mut added = 0;
    test!().for_each_seed(0..200, |seed| {
        let mut random = Random::new(seed);
        let kinds = [Kind::Bool, Kind::I16, Kind::I32, Kind::I64];
        let (mut data, mut by) =
            (draw(random.pick(&kinds), &mut random), draw(random.pick(&kinds), &mut random));
        if random.percent(70) {
            data.nulls.fill(false);
            by.nulls.fill(false);
        }
        let rows = data.rows().min(by.rows());
        for data in [&mut data, &mut by] {
            data.values.truncate(rows);
            data.nulls.truncate(rows);
            data.live.truncate(rows);
        }
        let drawn = draw_mask(&mut random, rows);
        let mask: Vec<bool> = (0..rows).map(|row| drawn[row] && data.live[row] && by.live[row]).collect();
        let mut expected: Vec<(i64, i128)> = Vec::new();
        for row in (0..rows).filter(|row| mask[*row] && !data.nulls[*row]) {
            let (key, value) = (integer(by.values[row].as_ref()), integer(data.values[row].as_ref()));
            match expected.last_mut() {
                Some((last, sum)) if *last == key => *sum += i128::from(value),
                _ => expected.push((key, value.into())),
            }
        }
        let mask = bits(&mask);
        let mut runs = MaskedRuns::default();
        for choose in CHOICES {
            let by_encoded = by.encode(choose);
            let is_runs = by_encoded.masked_runs(&mask, &mut runs);
            assert_eq!(is_runs, by_encoded.runs().is_some() && !by_encoded.has_nulls());
            for choose in CHOICES.into_iter().filter(|_| is_runs) {
                let (column, mut sums) = (data.encode(choose), vec![7]);
                if !column.sum_by_runs(&runs, &mask, &mut sums) {
                    assert_eq!(sums, [7]);
                    assert!(column.has_nulls() || column.shared().is_some(), "{}", column.form());
                    continue;
                }
                let mut found: Vec<(i64, i128)> = Vec::new();
                for (key, sum) in runs.keys().iter().zip(&sums[1..]) {
                    match found.last_mut() {
                        Some((last, of_last)) if last == key => *of_last += sum,
                        _ => found.push((*key, *sum)),
                    }
                }
                assert_eq!(
                    (found, sums.len()),
                    (expected.clone(), runs.keys().len() + 1),
                    "{}",
                    column.form()
                );
                added += 1;
            }
        }
    });
    assert!(added > 400, "{added} were added");
}
