//! Order and bounds of keys.

use std::cmp::Ordering;

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::*;

/// A column value of the test's rows.
#[derive(Clone, Debug)]
enum Cell {
    I16(i16),
    I64(Option<i64>),
    F64(f64),
    Text(String),
    Bytes(Option<Vec<u8>>),
}

fn order_nulls_last<T>(a: &Option<T>, b: &Option<T>, order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => order(a, b),
        _ => a.is_none().cmp(&b.is_none()),
    }
}

impl Cell {
    fn push(&self, key: &mut KeyBuilder) {
        match self {
            Cell::I16(v) => key.push_i16(*v),
            Cell::I64(None) | Cell::Bytes(None) => key.push_null(),
            Cell::I64(Some(v)) => key.push_present().push_i64(*v),
            Cell::F64(v) => key.push_f64(*v),
            Cell::Text(v) => key.push_str(v),
            Cell::Bytes(Some(v)) => key.push_present().push_bytes(v),
        };
    }

    fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::I16(a), Cell::I16(b)) => a.cmp(b),
            (Cell::I64(a), Cell::I64(b)) => order_nulls_last(a, b, Ord::cmp),
            (Cell::F64(a), Cell::F64(b)) => a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
            (Cell::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Cell::Bytes(a), Cell::Bytes(b)) => order_nulls_last(a, b, Ord::cmp),
            _ => unreachable!("rows have one shape"),
        }
    }
}

fn row() -> impl Strategy<Value = Vec<Cell>> {
    let float = prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), any::<f64>()];
    let text = "[ab]{0,3}|[a-c]{14,20}";
    let bytes = prop::option::of(prop::collection::vec(prop_oneof![Just(0u8), Just(255), Just(1)], 0..5));
    let int = prop::option::of(prop_oneof![-2i64..2, any::<i64>()]);
    (-1i16..2, bytes, text, int, float, text).prop_map(|(a, b, c, d, e, f)| {
        vec![Cell::I16(a), Cell::Bytes(b), Cell::Text(c), Cell::I64(d), Cell::F64(e), Cell::Text(f)]
    })
}

random_tests! {
    #![cases(256)]

    #[test]
    fn keys_of_random_rows_order_like_the_rows(a in row(), b in row()) {
        let key = |row: &[Cell]| {
            let mut builder = KeyBuilder::new();
            row.iter().for_each(|cell| cell.push(&mut builder));
            builder.key().to_key()
        };
        let by_row = a.iter().zip(&b).map(|(a, b)| a.order(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
        let (a, b) = (key(&a), key(&b));
        prop_assert_eq!(a.cmp(&b), by_row);
        prop_assert!(by_row.is_ge() || a.prefix() <= b.prefix(), "K-2");
    }

    #[test]
    fn short_key_equals_builder_and_decodes(a in any::<i16>(), b in any::<i32>(), c in any::<i64>()) {
        let short = ShortKey::new().i16(a).i32(b).i64(c);
        let mut builder = KeyBuilder::new();
        builder.push_i16(a).push_i32(b).push_i64(c);
        prop_assert_eq!(KeyRef::from(short), builder.key());
        let shape = KeyShape::of(&[PartKind::I16, PartKind::I32, PartKind::I64]);
        prop_assert_eq!(shape.decode(short.get()), Some(vec![i64::from(a), i64::from(b), c]));
    }

    #[test]
    fn range_of_partial_key_holds_exactly_its_extensions(a in any::<i16>(), b in any::<i32>(), c in -3i16..3) {
        let (low, high) = ShortKey::new().i16(c).range();
        let key = ShortKey::new().i16(a % 4).i32(b).get();
        prop_assert_eq!((low..=high).contains(&key), a % 4 == c);
        prop_assert_eq!(ShortKey::new().i16(c).after().is_some_and(|after| key >= after), a % 4 > c);
        prop_assert_eq!(ShortKey::new().i16(c).before().is_some_and(|before| key <= before), a % 4 < c);
    }
}

#[test]
fn full_width_key_ranges_over_itself_and_ends_have_no_neighbours() {
    let least = ShortKey::new().i128(i128::MIN);
    let greatest = ShortKey::new().i128(i128::MAX);
    assert_eq!(least.range(), (0, 0));
    assert_eq!(greatest.range(), (u128::MAX, u128::MAX));
    assert_eq!((least.before(), least.after()), (None, Some(1)));
    assert_eq!((greatest.before(), greatest.after()), (Some(u128::MAX - 1), None));
    assert_eq!(ShortKey::new().range(), (0, u128::MAX));
}

#[test]
fn text_prefix_range_holds_exactly_texts_that_begin_so() {
    let (low, high) = ShortKey::new().i16(1).str_prefix("ab").range();
    for (text, inside) in [("a", false), ("ab", true), ("abz", true), ("ac", false), ("", false)] {
        let mut key = KeyBuilder::new();
        key.push_i16(1).push_str(text);
        assert_eq!((low..=high).contains(&key.key().prefix), inside, "{text}");
    }
}

#[test]
fn shape_knows_short_keys_and_components() {
    use PartKind::*;
    assert!(KeyShape::of(&[I64, I64]).is_short());
    assert!(!KeyShape::of(&[I64, I64, Bool]).is_short());
    assert!(KeyShape::of(&[I16, I16, I32]).is_narrow());
    assert!(KeyShape::of(&[I16, Text(Some(13))]).is_short());
    assert!(!KeyShape::of(&[I16, Text(None)]).is_short());
    assert!(KeyShape::of(&[I16, Text(Some(3))]).components().is_none());
    let nullable = KeyPart { kind: I16, nullable: true };
    assert!(KeyShape::new(vec![nullable]).components().is_none());
    assert_eq!(KeyShape::new(vec![nullable; 5]).max_len(), Some(15));
}

#[test]
fn reused_builder_forgets_the_last_key() {
    let mut key = KeyBuilder::new();
    key.push_str("a long text that passes sixteen bytes");
    key.clear();
    key.push_i32(5);
    assert_eq!(key.key(), ShortKey::new().i32(5).into());
}
