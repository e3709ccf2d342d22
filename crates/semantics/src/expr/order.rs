//! The order of values.

use std::cmp::Ordering;

use albireo_base::{Interval, Value};

use crate::datum::Datum;

/// The order of two values of one type, as ORDER BY has it ascending: NULL last. Rows and arrays by
/// their elements.
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Value(a), Datum::Value(b)) => a.cmp(b),
        (Datum::Interval(a), Datum::Interval(b)) => length(*a).cmp(&length(*b)),
        (Datum::Array(a), Datum::Array(b)) => {
            sequence(&a.items, &b.items).then_with(|| a.lower.cmp(&b.lower))
        }
        (Datum::Row(a), Datum::Row(b)) => sequence(a, b),
        // NULL against something that is no plain value; other pairs have no common type.
        (Datum::Value(Value::Null), _) => Ordering::Greater,
        (_, Datum::Value(Value::Null)) => Ordering::Less,
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Value(_) => 0,
        Datum::Interval(_) => 1,
        Datum::Array(_) => 2,
        Datum::Row(_) => 3,
    }
}

fn sequence(a: &[Datum], b: &[Datum]) -> Ordering {
    let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    first.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Microseconds, where a month has 30 days and a day 24 hours.
pub(super) fn length(interval: Interval) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * i128::from(albireo_base::value::MICROS_PER_DAY) + i128::from(interval.micros)
}
