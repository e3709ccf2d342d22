//! Single values and summaries.

use std::borrow::Cow;

use albireo_encoding::{Choose, Column, Encoder, Kind, Scalar, Section, StoreForm, Summary};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, compare, draw, edges, float_bits, integer, limits, near, text, wide};

/// Each value through each function that gives it.
fn assert_same<S: Section>(data: &Data, column: &Column<S>) {
    assert_eq!((column.kind(), column.rows()), (data.kind, data.rows()));
    for row in (0..data.rows()).filter(|row| data.live[*row]) {
        assert_eq!(column.is_null(row), data.nulls[row], "{}: NULL in row {row}", column.form());
        assert!(column.has_nulls() || !data.nulls[row]);
    }
    for (row, value) in data.valid() {
        assert_eq!(column.scalar(row).as_ref(), value, "{}: row {row}", column.form());
        match data.kind {
            Kind::I128 | Kind::Uuid => assert_eq!(column.wide(row), wide(value)),
            Kind::F32 | Kind::F64 => assert_eq!(column.float_bits(row), float_bits(value)),
            Kind::Text => {
                assert_eq!(column.text(row), text(value));
                assert_eq!(column.text_length(row), text(value).len());
                let mut found = b"before".to_vec();
                column.text_in(row, &mut found);
                assert_eq!(found, text(value));
                assert_eq!(matches!(column.text(row), Cow::Borrowed(_)), column.lends_texts());
            }
            _ => assert_eq!(column.integer(row), integer(value)),
        }
        assert_begins(column, row, value);
    }
    // Other rows have some value.
    (0..data.rows()).for_each(|row| assert!(column.scalar(row).is_of(data.kind)));
    assert_summary(data, column.summary());
}

/// The value of a row lies where it is said to begin, as far as it lies as it is.
fn assert_begins<S: Section>(column: &Column<S>, row: usize, value: albireo_encoding::ScalarRef<'_>) {
    let begins = column.begins(row);
    let bytes = match (column.form().store, column.kind()) {
        (StoreForm::Constant, _) => return assert_eq!(begins, None),
        (StoreForm::Integers { bytes }, _) => {
            let (base, _) = column.frame().expect("differences have a base");
            let code = integer(value).wrapping_sub(base);
            code.to_le_bytes()[..usize::from(bytes)].to_vec()
        }
        (StoreForm::Plain { bytes }, Kind::F32 | Kind::F64) => {
            float_bits(value).to_le_bytes()[..usize::from(bytes)].to_vec()
        }
        (StoreForm::Plain { .. }, _) => wide(value).to_vec(),
        (StoreForm::FixedTexts { .. }, _) if begins.is_some() => text(value).to_vec(),
        // What is lent lies nowhere here, and of others the offsets come first, or codes.
        _ => return,
    };
    assert!(begins.is_some_and(|begins| begins.starts_with(&bytes)), "{}: row {row}", column.form());
}

fn assert_summary(data: &Data, summary: &Summary) {
    let live_nulls = (0..data.rows()).filter(|row| data.live[*row] && data.nulls[*row]).count();
    assert_eq!(summary.count as usize, data.valid().count());
    assert_eq!(summary.nulls as usize, live_nulls);
    let least = data.valid().map(|(_, value)| value).min_by(|a, b| compare(*a, *b));
    let greatest = data.valid().map(|(_, value)| value).max_by(|a, b| compare(*a, *b));
    for (found, expected) in [(&summary.least, least), (&summary.greatest, greatest)] {
        assert_eq!(found.is_some(), expected.is_some());
        if let (Some(found), Some(expected)) = (found, expected) {
            assert!(compare(found.as_ref(), expected).is_eq(), "{found:?} instead of {expected:?}");
        }
    }
    let sum: Option<i128> = data.valid().map(|(_, value)| integer_of(value)).sum();
    assert_eq!(summary.sum, sum.filter(|_| data.kind.is_integer()));
}

fn integer_of(value: albireo_encoding::ScalarRef<'_>) -> Option<i128> {
    match value {
        albireo_encoding::ScalarRef::Integer(value) => Some(value.into()),
        _ => None,
    }
}

pub fn assert_round_trips(data: &Data) {
    for column in data.forms(&CHOICES) {
        assert_same(data, &column);
    }
}

#[test]
fn edges_of_every_kind_come_back_in_every_form() {
    for kind in Kind::ALL {
        let edges = edges(kind);
        assert_round_trips(&Data::of(kind, edges.clone()));
        for value in &edges {
            assert_round_trips(&Data::of(kind, vec![value.clone()]));
            assert_round_trips(&Data::of(kind, vec![value.clone(); 130]));
        }
        let twice = edges.iter().flat_map(|value| [value.clone(), value.clone()]).cycle();
        assert_round_trips(&Data::of(kind, twice.take(1000).collect()));
    }
}

#[test]
fn drawn_columns_come_back_in_every_form() {
    test!().for_each_seed(0..180, |seed| {
        let mut random = Random::new(seed);
        let kind = Kind::ALL[seed as usize % Kind::ALL.len()];
        assert_round_trips(&draw(kind, &mut random));
    });
}

#[test]
fn encoder_that_is_used_again_remembers_nothing() {
    let mut encoder = Encoder::default();
    test!().for_each_seed(0..60, |seed| {
        let mut random = Random::new(seed);
        let data = draw(random.pick(&Kind::ALL), &mut random);
        let (again, new) = (data.encode_with(&mut encoder), data.encode(Choose::Best));
        assert_same(&data, &again);
        assert_eq!(format!("{again:?}"), format!("{new:?}"));
    });
}

#[test]
fn spread_at_each_limit_of_a_width_comes_back() {
    for kind in [Kind::I16, Kind::I32, Kind::I64] {
        let (least, most) = limits(kind);
        for spread in [0, 1, 255, 256, 65_535, 65_536, u32::MAX.into(), 1 << 32, i64::MAX] {
            for base in [least, -1, 0, 1, most.saturating_sub(spread)] {
                let top = base.saturating_add(spread);
                if base >= least && top <= most {
                    assert_round_trips(&Data::integers(kind, [base, top, base + (top - base) / 2]));
                }
            }
        }
        assert_round_trips(&Data::integers(kind, [least, most, 0, least, most]));
    }
}

#[test]
fn column_of_65536_rows_comes_back() {
    let rows = 1_u64 << 16;
    for kind in Kind::ALL {
        // As many values as there may be; a run of its own each.
        assert_round_trips(&Data::of(kind, (0..rows).map(|row| near(kind, row)).collect()));
        let mut data = Data::of(kind, (0..rows).map(|row| near(kind, row / 300)).collect());
        data.nulls[65_535] = true;
        data.live[0] = false;
        assert_round_trips(&data);
    }
}

#[test]
fn longest_texts_come_back() {
    let longest = vec![b'x'; 65_535];
    let other: Vec<u8> = (0..65_535_u32).map(|byte| byte as u8).collect();
    assert_round_trips(&Data::texts([&longest[..], &other, b"", &longest, &longest[1..]]));
    assert_round_trips(&Data::texts([&longest[..], &other]));
}

#[test]
fn columns_without_values_come_back() {
    for kind in Kind::ALL {
        for rows in [1, 64, 1000] {
            let edges = edges(kind);
            let mut data = Data::of(kind, edges.iter().cloned().cycle().take(rows).collect());
            data.nulls.fill(true);
            assert_round_trips(&data);
            assert_eq!(data.encode(Choose::Best).form().to_string(), "all NULL");
            assert_eq!(data.encode(Choose::Best).bytes(), 0);
            data.live.fill(false);
            assert_round_trips(&data);
            data.nulls.fill(false);
            assert_round_trips(&data);
            assert_eq!(data.encode(Choose::Best).form().to_string(), "constant");
            data.live[rows / 2] = true;
            assert_round_trips(&data);
            assert_eq!(data.encode(Choose::Best).bytes(), 0);
        }
        assert_round_trips(&Data::of(kind, vec![]));
    }
}

#[test]
fn kinds_of_nulls_come_back() {
    for (every, rows) in [(1, 3000), (2, 3000), (100, 3000), (1000, 3000), (70, 64)] {
        let mut data = Data::integers(Kind::I32, 0..rows as i64);
        data.nulls = (0..rows).map(|row| row / every % 2 == 1).collect();
        assert_round_trips(&data);
    }
}

#[test]
#[should_panic(expected = "within the limits")]
fn value_outside_of_its_kind_is_refused() {
    Data::integers(Kind::I16, [40_000]).encode(Choose::Best);
}

#[test]
fn values_of_dead_rows_may_be_outside_of_the_kind() {
    let mut data = Data::integers(Kind::I16, [40_000, 1, 2]);
    data.live[0] = false;
    let column = data.encode(Choose::Best);
    assert_eq!((column.integer(1), column.integer(2)), (1, 2));
    assert_eq!(column.summary().greatest, Some(Scalar::Integer(2)));
}
