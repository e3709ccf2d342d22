//! Tests on codes and runs against tests of each value.

use std::cell::Cell;
use std::ops::Bound;

use albireo_encoding::{Choose, Column, Kind, Scalar, ScalarRef, Selected, Selection, Test};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, any, bits, compare, draw, draw_mask, edges, near, text};

/// A [`Test`] that owns its values.
#[derive(Clone, Debug)]
pub enum Owned {
    Equal(Scalar),
    In(Vec<Scalar>),
    Between(Bound<Scalar>, Bound<Scalar>),
    Prefix(Vec<u8>),
    Suffix(Vec<u8>),
    IsNull,
    IsNotNull,
    /// Values whose hash has this remainder.
    Each(u64, u64),
}

fn hash(value: ScalarRef<'_>) -> u64 {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

fn lend(bound: &Bound<Scalar>) -> Bound<ScalarRef<'_>> {
    match bound {
        Bound::Included(value) => Bound::Included(value.as_ref()),
        Bound::Excluded(value) => Bound::Excluded(value.as_ref()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl Owned {
    /// What plain Rust says of a value.
    fn passes(&self, value: ScalarRef<'_>) -> bool {
        match self {
            Self::Equal(wanted) => compare(value, wanted.as_ref()).is_eq(),
            Self::In(list) => list.iter().any(|wanted| compare(value, wanted.as_ref()).is_eq()),
            Self::Between(lower, upper) => {
                (match lower {
                    Bound::Included(bound) => compare(value, bound.as_ref()).is_ge(),
                    Bound::Excluded(bound) => compare(value, bound.as_ref()).is_gt(),
                    Bound::Unbounded => true,
                }) && (match upper {
                    Bound::Included(bound) => compare(value, bound.as_ref()).is_le(),
                    Bound::Excluded(bound) => compare(value, bound.as_ref()).is_lt(),
                    Bound::Unbounded => true,
                })
            }
            Self::Prefix(prefix) => text(value).starts_with(prefix),
            Self::Suffix(suffix) => text(value).ends_with(suffix),
            Self::IsNull => false,
            Self::IsNotNull => true,
            Self::Each(by, remainder) => hash(value) % by == *remainder,
        }
    }

    fn with<R>(&self, run: impl FnOnce(&mut Test<'_>) -> R) -> R {
        match self {
            Self::Equal(value) => run(&mut Test::Equal(value.as_ref())),
            Self::In(list) => {
                let mut list: Vec<_> = list.iter().map(Scalar::as_ref).collect();
                list.sort_by(|a, b| compare(*a, *b));
                run(&mut Test::In(&list))
            }
            Self::Between(lower, upper) => run(&mut Test::Between(lend(lower), lend(upper))),
            Self::Prefix(prefix) => run(&mut Test::Prefix(prefix)),
            Self::Suffix(suffix) => run(&mut Test::Suffix(suffix)),
            Self::IsNull => run(&mut Test::IsNull),
            Self::IsNotNull => run(&mut Test::IsNotNull),
            Self::Each(by, remainder) => run(&mut Test::Each(&mut |value| hash(value) % by == *remainder)),
        }
    }
}

/// Tests `data` in every form, of rows of `mask`.
pub fn assert_selects(data: &Data, test: &Owned, mask: &[bool]) {
    for column in data.forms(&CHOICES) {
        let before = bits(mask);
        let mut after = before.clone();
        let selected = test.with(|test| column.select(test, &mut after));
        for row in (0..data.rows()).filter(|row| data.live[*row]) {
            let passes = match test {
                Owned::IsNull => data.nulls[row],
                _ => data.value(row).is_some_and(|value| test.passes(value)),
            };
            let found = after[row / 64] >> (row % 64) & 1 == 1;
            let about = || format!("row {row} of {}: {:?}", column.form(), data.value(row));
            assert_eq!(found, passes && mask[row], "{test:?}, {}", about());
        }
        assert!(after.iter().zip(&before).all(|(after, before)| after & !before == 0));
        let expected = match after.iter().any(|word| *word != 0) {
            false => Selected::None,
            true if after == before => Selected::All,
            true => Selected::Some,
        };
        assert_eq!(selected, expected, "{test:?} of {}", column.form());
    }
}

/// A value of the column, one beside it, or any.
fn draw_value(data: &Data, random: &mut Random) -> Scalar {
    let value = match data.rows() {
        0 => any(data.kind, random, 300),
        rows => data.values[random.index(rows)].clone(),
    };
    match (random.below(4), value) {
        (0, Scalar::Integer(value)) => Scalar::Integer(value.wrapping_add(random.between(-2, 2))),
        (0, Scalar::Text(text)) => Scalar::Text(text[..random.index(text.len() + 1)].into()),
        (1, _) => any(data.kind, random, 300),
        (_, value) => value,
    }
}

fn draw_bound(data: &Data, random: &mut Random) -> Bound<Scalar> {
    let value = draw_value(data, random);
    random.pick(&[Bound::Unbounded, Bound::Included(value.clone()), Bound::Excluded(value)])
}

pub fn draw_test(data: &Data, random: &mut Random) -> Owned {
    match random.below(12) {
        0 | 1 => Owned::Equal(draw_value(data, random)),
        2..=4 => {
            let count = random.pick(&[0, 1, 2, 5, 100]);
            Owned::In((0..count).map(|_| draw_value(data, random)).collect())
        }
        5..=7 => Owned::Between(draw_bound(data, random), draw_bound(data, random)),
        8 if data.kind == Kind::Text => {
            let value = draw_value(data, random);
            let whole = text(value.as_ref());
            let length = random.index(whole.len().min(9) + 1);
            match random.percent(50) {
                true => Owned::Prefix(whole[..length].into()),
                false => Owned::Suffix(whole[whole.len() - length..].into()),
            }
        }
        9 => Owned::IsNull,
        10 => Owned::IsNotNull,
        _ => {
            let by = random.pick(&[1, 2, 3, 50]);
            Owned::Each(by, random.below(by))
        }
    }
}

#[test]
fn drawn_tests_select_the_rows_whose_values_pass() {
    test!().for_each_seed(0..250, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        for _ in 0..6 {
            let test = draw_test(&data, &mut random);
            assert_selects(&data, &test, &draw_mask(&mut random, data.rows()));
        }
    });
}

#[test]
fn edges_are_selected_by_each_bound_at_each_edge() {
    for kind in Kind::ALL {
        let edges = edges(kind);
        let data = Data::of(kind, edges.iter().cloned().cycle().take(edges.len() * 20).collect());
        let mask = vec![true; data.rows()];
        for edge in &edges {
            assert_selects(&data, &Owned::Equal(edge.clone()), &mask);
            let bounds = [Bound::Included(edge.clone()), Bound::Excluded(edge.clone()), Bound::Unbounded];
            for bound in bounds {
                assert_selects(&data, &Owned::Between(bound.clone(), Bound::Unbounded), &mask);
                assert_selects(&data, &Owned::Between(Bound::Unbounded, bound.clone()), &mask);
                let last = Bound::Included(edges[edges.len() / 2].clone());
                assert_selects(&data, &Owned::Between(bound.clone(), last.clone()), &mask);
                assert_selects(&data, &Owned::Between(last, bound), &mask);
            }
        }
        assert_selects(&data, &Owned::In(edges.iter().step_by(2).cloned().collect()), &mask);
    }
}

#[test]
fn values_outside_of_a_kind_select_nothing_and_bounds_outside_everything() {
    let data = Data::integers(Kind::I16, [-32_768, 0, 1, 32_767]);
    let mask = vec![true; 4];
    for value in [-40_000, 40_000, i64::MIN, i64::MAX] {
        let value = Scalar::Integer(value);
        assert_selects(&data, &Owned::Equal(value.clone()), &mask);
        assert_selects(&data, &Owned::In(vec![value.clone(), Scalar::Integer(1)]), &mask);
        assert_selects(&data, &Owned::Between(Bound::Included(value.clone()), Bound::Unbounded), &mask);
        assert_selects(&data, &Owned::Between(Bound::Unbounded, Bound::Excluded(value)), &mask);
    }
}

#[test]
fn prefix_selects_what_begins_with_it_up_to_the_last_byte() {
    let words = ["", "a", "a\u{7f}", "ab", "aba", "abb", "abc", "ac", "b", "abz and longer", "\u{10ffff}"];
    let data = Data::texts(words.iter().cycle().take(300));
    let mask = vec![true; 300];
    for prefix in [&b""[..], b"a", b"ab", b"abc", b"abcd", b"b", b"\xff", b"\xf4", b"zzz"] {
        assert_selects(&data, &Owned::Prefix(prefix.into()), &mask);
    }
    let all = Data::texts(["aab", "aac", "aad"]);
    assert_selects(&all, &Owned::Prefix(b"aa".into()), &[true; 3]);
    let some = Data::texts(["ab", "abc", "b", "c"]);
    assert_selects(&some, &Owned::Prefix(b"ab".into()), &[true; 4]);
    assert_selects(&some, &Owned::Prefix(b"c".into()), &[true; 4]);
    let bytes = Data::texts([&b"\xff"[..], b"\xff\xff", b"\xff\xff\xff", b"\xfe\xff"]);
    assert_selects(&bytes, &Owned::Prefix(b"\xff\xff".into()), &[true; 4]);
}

#[test]
fn suffix_selects_what_ends_with_it_however_long_both_are() {
    let words = ["", "a", "ba", "aba", "abab", "ababababab", "bababababa", "b", "aab", "\u{10ffff}ab"];
    let mask = vec![true; 300];
    for suffix in ["", "a", "b", "ab", "bab", "abababab", "babababab", "ababababab", "aababababab", "c"] {
        // All of them, those of few bytes, which are packed, and those of one length.
        let data = Data::texts(words.iter().cycle().take(300));
        assert_selects(&data, &Owned::Suffix(suffix.into()), &mask);
        let data = Data::texts(words[..9].iter().cycle().take(300));
        assert_selects(&data, &Owned::Suffix(suffix.into()), &mask);
        let data = Data::texts(words.iter().filter(|word| word.len() == 10).cycle().take(300));
        assert_selects(&data, &Owned::Suffix(suffix.into()), &mask);
    }
    assert_selects(&Data::texts([&b"\xff"[..], b"\xfe\xff"]), &Owned::Suffix(b"\xff".into()), &[true; 2]);
}

#[test]
fn set_over_a_wide_range_is_searched() {
    let data = Data::integers(Kind::I64, (0..1000).map(|row| row << 40));
    let list = (0..1000).step_by(7).map(|row| Scalar::Integer(row << 40)).chain([Scalar::Integer(1)]);
    assert_selects(&data, &Owned::In(list.collect()), &[true; 1000]);
    let data = Data::of(Kind::Uuid, (0..500).map(|row| near(Kind::Uuid, row)).collect());
    let list = (0..500).step_by(3).map(|row| near(Kind::Uuid, row)).collect();
    assert_selects(&data, &Owned::In(list), &[true; 500]);
}

/// How often `Each` is asked, whoever has the texts.
fn asked(data: &Data, choose: Choose, mask: &[bool]) -> (usize, bool) {
    let asked: Vec<_> = data.forms(&[choose]).iter().map(|column| asked_of(column, mask)).collect();
    assert!(asked.iter().all(|other| *other == asked[0]), "{asked:?}");
    asked[0]
}

fn asked_of(column: &Column<Vec<u8>>, mask: &[bool]) -> (usize, bool) {
    let count = Cell::new(0);
    let mut function = |_: ScalarRef<'_>| {
        count.set(count.get() + 1);
        true
    };
    column.select(&mut Test::Each(&mut function), &mut bits(mask));
    (count.get(), column.is_cheap())
}

#[test]
fn each_is_asked_once_for_each_value_run_or_constant() {
    let data = Data::texts((0..1000).map(|row| format!("{}", row / 50 % 4)));
    let all = vec![true; 1000];
    assert_eq!(asked(&data, Choose::Plain, &all), (1000, false));
    assert_eq!(asked(&data, Choose::Packed, &all), (1000, false));
    assert_eq!(asked(&data, Choose::Compressed, &all), (1000, false));
    assert_eq!(asked(&data, Choose::Dictionary, &all), (4, true));
    assert_eq!(asked(&data, Choose::Runs, &all), (20, true));
    assert_eq!(asked(&data, Choose::RunsOfDictionary, &all), (4, true));
    assert_eq!(asked(&Data::texts(vec!["a"; 100]), Choose::Best, &[true; 100]), (1, true));
    // Rows and runs that are not in the mask are not asked for.
    let few: Vec<bool> = (0..1000).map(|row| row == 3 || row == 120).collect();
    assert_eq!(asked(&data, Choose::Plain, &few), (2, false));
    assert_eq!(asked(&data, Choose::Runs, &few), (2, true));
    assert_eq!(asked(&Data::texts(vec!["a"; 100]), Choose::Best, &[false; 100]), (0, true));
}

#[test]
fn places_select_the_rows_whose_shared_values_are_among_them() {
    test!().for_each_seed(0..100, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        let mask = draw_mask(&mut random, data.rows());
        let share = random.pick(&[0, 10, 50, 100]);
        for column in data.forms(&CHOICES) {
            let Some(shared) = column.shared() else { continue };
            let passing: Vec<bool> = (0..shared).map(|_| random.percent(share)).collect();
            let (mut after, mut places) = (bits(&mask), Vec::new());
            column.select(&mut Test::Stored(&bits(&passing)), &mut after);
            column.places_into(&Selection::All, &mut places);
            for row in (0..data.rows()).filter(|row| data.live[*row]) {
                let wanted = mask[row] && !data.nulls[row] && passing[usize::from(places[row])];
                assert_eq!(after[row / 64] >> (row % 64) & 1 == 1, wanted, "row {row} of {}", column.form());
            }
        }
    });
}

#[test]
#[should_panic(expected = "a bit for each value")]
fn places_of_a_column_whose_rows_share_nothing_are_refused() {
    let column = Data::texts(["a", "b", "c"]).encode(Choose::Plain);
    column.select(&mut Test::Stored(&[7]), &mut [7]);
}

#[test]
#[should_panic(expected = "does not hold")]
fn value_of_another_kind_is_refused() {
    let column = Data::integers(Kind::I64, [1, 2]).encode(Choose::Best);
    column.select(&mut Test::Equal(ScalarRef::Text(b"1")), &mut [3]);
}

#[test]
#[should_panic(expected = "behind the rows")]
fn mask_with_a_bit_behind_the_rows_is_refused() {
    let column = Data::integers(Kind::I64, [1, 2]).encode(Choose::Best);
    column.select(&mut Test::IsNotNull, &mut [7]);
}
