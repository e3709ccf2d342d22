//! Keys of indexes, from values of other types.
//!
//! Responsible for: which types of values serve as keys of a column, and what a value is among the
//! values of the column. Not responsible for: which index (`access`), reading (`run`).

use albireo_base::{Decimal, SqlType, Value};

use crate::types::{Scalar, Type};

/// What a value is among the values that a column can have.
#[derive(Clone, PartialEq, Debug)]
pub enum Fit {
    /// One of them.
    Exact(Value),
    /// None of them; this is the next below.
    After(Value),
    /// Less than all.
    Below,
    /// Greater than all.
    Above,
    /// NULL: comparisons with it are never true.
    Null,
}

/// Whether values of type `key`, compared with a column of type `column`, can be looked for in an
/// index of it.
pub fn serves(column: SqlType, key: &Type) -> bool {
    let Type::Scalar(key) = key else { return false };
    let exact = |ty: Scalar| {
        matches!(ty, Scalar::SmallInt | Scalar::Integer | Scalar::BigInt | Scalar::Numeric { .. })
    };
    match Scalar::of(column) {
        Scalar::Bpchar | Scalar::Text => matches!(key, Scalar::Text | Scalar::Bpchar),
        column if exact(column) => exact(*key),
        column => column == *key,
    }
}

/// Finds the place of `value`, of type `key`, among the values of a column.
pub fn fit(value: Value, key: &Type, column: SqlType) -> Fit {
    match (value, column) {
        (Value::Null, _) => Fit::Null,
        (Value::SmallInt(n), _) => whole(i128::from(n), column),
        (Value::Integer(n), _) => whole(i128::from(n), column),
        (Value::BigInt(n), _) => whole(i128::from(n), column),
        (Value::Decimal(number), SqlType::Decimal { precision, scale }) => decimal(number, precision, scale),
        (Value::Decimal(number), _) => {
            let floor = number.unscaled.div_euclid(10_i128.pow(u32::from(number.scale.min(38))));
            let exact = Decimal::new(floor, 0) == number;
            match whole(floor, column) {
                Fit::Exact(value) if !exact => Fit::After(value),
                fit => fit,
            }
        }
        (Value::Text(text), _) => {
            let text = match key {
                Type::Scalar(Scalar::Bpchar) => text.trim_end_matches(' ').to_owned(),
                _ => text,
            };
            // The index has no texts with this character.
            match text.split_once('\0') {
                Some((before, _)) => Fit::After(Value::Text(before.to_owned())),
                None => Fit::Exact(Value::Text(text)),
            }
        }
        (value, _) => Fit::Exact(value),
    }
}

fn whole(n: i128, column: SqlType) -> Fit {
    let outside = if n < 0 { Fit::Below } else { Fit::Above };
    let value = match column {
        SqlType::SmallInt => i16::try_from(n).ok().map(Value::SmallInt),
        SqlType::Integer => i32::try_from(n).ok().map(Value::Integer),
        SqlType::BigInt => i64::try_from(n).ok().map(Value::BigInt),
        SqlType::Decimal { precision, scale } => return decimal(Decimal::new(n, 0), precision, scale),
        _ => None,
    };
    value.map_or(outside, Fit::Exact)
}

fn decimal(number: Decimal, precision: u8, scale: u8) -> Fit {
    let outside = if number.unscaled < 0 { Fit::Below } else { Fit::Above };
    let Some(mut near) = number.rescale(scale) else { return outside };
    let exact = near == number;
    if near > number {
        near.unscaled -= 1;
    }
    match near.fits(precision) {
        true if exact => Fit::Exact(Value::Decimal(near)),
        true => Fit::After(Value::Decimal(near)),
        false => outside,
    }
}
