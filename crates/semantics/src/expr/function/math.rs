//! Functions of exact numbers.

use albireo_base::{Decimal, SqlError, SqlState, Value};

use super::exponential::{self, power};
use super::{Builtin, Result, decimal_at, entry, int_at, value};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::expr::number::{self, checked, numeric_overflow, out_of_range, power_of_ten};
use crate::expr::operator::Arithmetic;
use crate::expr::resolve::NUMERIC;
use crate::expr::{Expr, ExprKind};
use crate::types::{Scalar, Type};

const SMALL: Scalar = Scalar::SmallInt;
const INT: Scalar = Scalar::Integer;
const BIG: Scalar = Scalar::BigInt;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("abs", &[SMALL], SMALL, abs),
    entry("abs", &[INT], INT, abs),
    entry("abs", &[BIG], BIG, abs),
    entry("abs", &[NUMERIC], NUMERIC, abs),
    entry("sign", &[NUMERIC], NUMERIC, |a| decimal(Decimal::new(decimal_at(a, 0)?.unscaled.signum(), 0))),
    entry("ceil", &[NUMERIC], NUMERIC, |a| whole(a, Toward::Above)),
    entry("ceiling", &[NUMERIC], NUMERIC, |a| whole(a, Toward::Above)),
    entry("floor", &[NUMERIC], NUMERIC, |a| whole(a, Toward::Below)),
    entry("round", &[NUMERIC], NUMERIC, |a| round(decimal_at(a, 0)?, 0)),
    entry("round", &[NUMERIC, INT], NUMERIC, |a| round(decimal_at(a, 0)?, int_at(a, 1)?)),
    entry("trunc", &[NUMERIC], NUMERIC, |a| trunc(decimal_at(a, 0)?, 0)),
    entry("trunc", &[NUMERIC, INT], NUMERIC, |a| trunc(decimal_at(a, 0)?, int_at(a, 1)?)),
    entry("mod", &[SMALL, SMALL], SMALL, modulo),
    entry("mod", &[INT, INT], INT, modulo),
    entry("mod", &[BIG, BIG], BIG, modulo),
    entry("mod", &[NUMERIC, NUMERIC], NUMERIC, modulo),
    entry("div", &[NUMERIC, NUMERIC], NUMERIC, div),
    entry("gcd", &[INT, INT], INT, |a| divisor(a, false)),
    entry("gcd", &[BIG, BIG], BIG, |a| divisor(a, false)),
    entry("lcm", &[INT, INT], INT, |a| divisor(a, true)),
    entry("lcm", &[BIG, BIG], BIG, |a| divisor(a, true)),
    entry("scale", &[NUMERIC], INT, |a| Ok(Value::Integer(i32::from(decimal_at(a, 0)?.scale)).into())),
    entry("trim_scale", &[NUMERIC], NUMERIC, |a| decimal(trim_scale(decimal_at(a, 0)?))),
    entry("sqrt", &[NUMERIC], NUMERIC, |a| square_root(decimal_at(a, 0)?)),
    entry("power", &[NUMERIC, NUMERIC], NUMERIC, |a| decimal(power(decimal_at(a, 0)?, decimal_at(a, 1)?)?)),
    entry("pow", &[NUMERIC, NUMERIC], NUMERIC, |a| decimal(power(decimal_at(a, 0)?, decimal_at(a, 1)?)?)),
    entry("exp", &[NUMERIC], NUMERIC, |a| decimal(exponential::exp(decimal_at(a, 0)?)?)),
    entry("ln", &[NUMERIC], NUMERIC, |a| decimal(exponential::ln(decimal_at(a, 0)?)?)),
    entry("log", &[NUMERIC], NUMERIC, log10),
    entry("log10", &[NUMERIC], NUMERIC, log10),
    entry("log", &[NUMERIC, NUMERIC], NUMERIC, |a| {
        decimal(exponential::log(decimal_at(a, 0)?, decimal_at(a, 1)?)?)
    }),
    entry("factorial", &[BIG], NUMERIC, |a| match value(a, 0)? {
        Value::BigInt(n) => decimal(exponential::factorial(*n)?),
        _ => Err(unexpected()),
    }),
    entry("width_bucket", &[NUMERIC, NUMERIC, NUMERIC, INT], INT, bucket),
    entry("min_scale", &[NUMERIC], INT, |a| {
        Ok(Value::Integer(i32::from(trim_scale(decimal_at(a, 0)?).scale)).into())
    }),
    entry("gcd", &[NUMERIC, NUMERIC], NUMERIC, |a| numeric_divisor(a, false)),
    entry("lcm", &[NUMERIC, NUMERIC], NUMERIC, |a| numeric_divisor(a, true)),
    entry("chr", &[INT], Scalar::Text, chr),
    entry("to_hex", &[INT], Scalar::Text, hex),
    entry("to_hex", &[BIG], Scalar::Text, hex),
];

/// The scale of what a function gives, if it is the same for all values.
pub(super) fn scale_of(name: &str, args: &[Expr]) -> Option<u8> {
    let scale = |n: usize| match args.get(n).map(|arg| &arg.ty) {
        Some(Type::Scalar(Scalar::Numeric { scale })) => *scale,
        _ => None,
    };
    match (name, args) {
        ("abs", _) => scale(0),
        ("mod", _) => Some(scale(0)?.max(scale(1)?)),
        ("sign" | "ceil" | "ceiling" | "floor" | "div", _) => Some(0),
        ("round" | "trunc", [_]) => Some(0),
        ("round" | "trunc", [_, digits]) => match &digits.kind {
            ExprKind::Constant(Datum::Value(Value::Integer(n))) => Some((*n).clamp(0, 38) as u8),
            _ => None,
        },
        _ => None,
    }
}

fn decimal(number: Decimal) -> Result<Datum> {
    Ok(Value::Decimal(checked(Some(number))?).into())
}

fn abs(args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Value(match value(args, 0)? {
        Value::SmallInt(n) => Value::SmallInt(n.checked_abs().ok_or_else(|| out_of_range("smallint"))?),
        Value::Integer(n) => Value::Integer(n.checked_abs().ok_or_else(|| out_of_range("integer"))?),
        Value::BigInt(n) => Value::BigInt(n.checked_abs().ok_or_else(|| out_of_range("bigint"))?),
        Value::Decimal(n) => Value::Decimal(Decimal::new(n.unscaled.saturating_abs(), n.scale)),
        _ => return Err(unexpected()),
    }))
}

#[derive(Clone, Copy)]
enum Toward {
    Above,
    Below,
}

fn whole(args: &[Datum], toward: Toward) -> Result<Datum> {
    let number = decimal_at(args, 0)?;
    let unit = power_of_ten(u32::from(number.scale)).ok_or_else(numeric_overflow)?;
    let below = number.unscaled.div_euclid(unit);
    let exact = number.unscaled.rem_euclid(unit) == 0;
    let whole = match toward {
        Toward::Above if !exact => below + 1,
        _ => below,
    };
    decimal(Decimal::new(whole, 0))
}

/// Rounds to at most 38 `digits` after the point.
pub fn round_to(number: Decimal, digits: u8) -> Result<Decimal> {
    checked(number.rescale(digits.min(38)))
}

/// Rounds to `digits` after the point, or before it if negative.
fn round(number: Decimal, digits: i32) -> Result<Datum> {
    if digits >= 0 {
        return decimal(checked(number.rescale(digits.min(38) as u8))?).and_then(|rounded| {
            // More than 38 places cannot be shown.
            if digits > 38 { Err(numeric_overflow()) } else { Ok(rounded) }
        });
    }
    let Some(unit) = power_of_ten(digits.unsigned_abs()) else { return decimal(Decimal::new(0, 0)) };
    let scale = power_of_ten(u32::from(number.scale)).ok_or_else(numeric_overflow)?;
    let Some(unit) = unit.checked_mul(scale) else { return round_far(number, digits) };
    let (quotient, rest) = (number.unscaled / unit, (number.unscaled % unit).unsigned_abs());
    let away = i128::from(rest >= unit.unsigned_abs() - rest) * number.unscaled.signum();
    back((quotient + away).checked_mul(unit / scale))
}

/// As [`round`], where the unit is beyond 128 bits in the number's scale: only the whole part counts.
fn round_far(number: Decimal, digits: i32) -> Result<Datum> {
    let scale = power_of_ten(u32::from(number.scale)).ok_or_else(numeric_overflow)?;
    round(Decimal::new(number.unscaled / scale, 0), digits)
}

fn back(unscaled: Option<i128>) -> Result<Datum> {
    decimal(Decimal::new(unscaled.ok_or_else(numeric_overflow)?, 0))
}

fn trunc(number: Decimal, digits: i32) -> Result<Datum> {
    if digits >= i32::from(number.scale) {
        return round(number, digits);
    }
    let shift = i64::from(number.scale) - i64::from(digits);
    let unit = u32::try_from(shift).ok().and_then(power_of_ten);
    let Some(unit) = unit else { return decimal(Decimal::new(0, digits.max(0) as u8)) };
    let cut = number.unscaled / unit;
    if digits >= 0 {
        return decimal(Decimal::new(cut, digits as u8));
    }
    back(power_of_ten(digits.unsigned_abs()).and_then(|factor| cut.checked_mul(factor)))
}

fn modulo(args: &[Datum]) -> Result<Datum> {
    let op = Arithmetic::Modulo;
    Ok(Datum::Value(match (value(args, 0)?, value(args, 1)?) {
        (Value::SmallInt(a), Value::SmallInt(b)) => Value::SmallInt(number::smallint(op, *a, *b)?),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(number::integer(op, *a, *b)?),
        (Value::BigInt(a), Value::BigInt(b)) => Value::BigInt(number::bigint(op, *a, *b)?),
        (Value::Decimal(a), Value::Decimal(b)) => Value::Decimal(number::numeric(op, *a, *b)?),
        _ => return Err(unexpected()),
    }))
}

/// The quotient without its fraction.
fn div(args: &[Datum]) -> Result<Datum> {
    let (a, b) = (decimal_at(args, 0)?, decimal_at(args, 1)?);
    if b.unscaled == 0 {
        return Err(number::division_by_zero());
    }
    let scale = a.scale.max(b.scale);
    let (Some(x), Some(y)) = (a.rescale(scale), b.rescale(scale)) else { return Err(numeric_overflow()) };
    decimal(Decimal::new(x.unscaled / y.unscaled, 0))
}

fn divisor(args: &[Datum], multiple: bool) -> Result<Datum> {
    let (a, b, wide) = match (value(args, 0)?, value(args, 1)?) {
        (Value::Integer(a), Value::Integer(b)) => (i128::from(*a), i128::from(*b), false),
        (Value::BigInt(a), Value::BigInt(b)) => (i128::from(*a), i128::from(*b), true),
        _ => return Err(unexpected()),
    };
    let (mut x, mut y) = (a.abs(), b.abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let result = match multiple {
        true if x == 0 => 0,
        true => (a / x * b).abs(),
        false => x,
    };
    Ok(Datum::Value(match wide {
        true => Value::BigInt(i64::try_from(result).map_err(|_| out_of_range("bigint"))?),
        false => Value::Integer(i32::try_from(result).map_err(|_| out_of_range("integer"))?),
    }))
}

pub(super) fn trim_scale(mut number: Decimal) -> Decimal {
    while number.scale > 0 && number.unscaled % 10 == 0 {
        number = Decimal::new(number.unscaled / 10, number.scale - 1);
    }
    number
}

/// A root with 16 significant digits or one less, and no fewer places than the number has.
fn square_root(number: Decimal) -> Result<Datum> {
    if number.unscaled < 0 {
        let message = "cannot take square root of a negative number";
        return Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, message));
    }
    let weight = number::weight(number);
    let scale = (16 - (weight * 2 + 1)).max(i64::from(number.scale)).max(0);
    let Ok(scale) = u8::try_from(scale) else { return Err(numeric_overflow()) };
    if scale > Decimal::MAX_SCALE {
        return Err(numeric_overflow());
    }
    // Digit by digit: what is left of the number, and the root so far.
    let shift = 2 * i32::from(scale) - i32::from(number.scale);
    if number.unscaled.to_string().len() as i32 + shift > 70 {
        return decimal(exponential::square_root(number, scale)?);
    }
    let mut digits = number.unscaled.to_string();
    digits.extend(std::iter::repeat_n('0', shift.max(0) as usize));
    if digits.len() % 2 == 1 {
        digits.insert(0, '0');
    }
    let (mut root, mut rest) = (0_u128, 0_u128);
    for pair in digits.as_bytes().chunks(2) {
        let pair = pair.iter().fold(0, |n, digit| n * 10 + u128::from(digit - b'0'));
        rest = rest.checked_mul(100).and_then(|rest| rest.checked_add(pair)).ok_or_else(numeric_overflow)?;
        let base = root.checked_mul(20).ok_or_else(numeric_overflow)?;
        let digit = (0..=9).rev().find(|digit| (base + digit) * digit <= rest).unwrap_or(0);
        rest -= (base + digit) * digit;
        root = root * 10 + digit;
    }
    let root = root + u128::from(rest > root);
    decimal(Decimal::new(i128::try_from(root).map_err(|_| numeric_overflow())?, scale))
}

fn log10(args: &[Datum]) -> Result<Datum> {
    decimal(exponential::log(Decimal::new(10, 0), decimal_at(args, 0)?)?)
}

/// Which of so many equal parts between two bounds a number lies in.
fn bucket(args: &[Datum]) -> Result<Datum> {
    let (number, low, high) = (decimal_at(args, 0)?, decimal_at(args, 1)?, decimal_at(args, 2)?);
    let count = int_at(args, 3)?;
    let fault = |message: &str| SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message);
    if count <= 0 {
        return Err(fault("count must be greater than zero"));
    }
    let found = exponential::bucket(number, low, high, count);
    let found = found.ok_or_else(|| fault("lower bound cannot equal upper bound"))?;
    Ok(Value::Integer(i32::try_from(found).map_err(|_| out_of_range("integer"))?).into())
}

/// The greatest common divisor of two numbers with the places of the longer one, or their least common multiple.
fn numeric_divisor(args: &[Datum], multiple: bool) -> Result<Datum> {
    let (a, b) = (decimal_at(args, 0)?, decimal_at(args, 1)?);
    let scale = a.scale.max(b.scale);
    let (Some(a), Some(b)) = (a.rescale(scale), b.rescale(scale)) else { return Err(numeric_overflow()) };
    let (mut x, mut y) = (a.unscaled.saturating_abs(), b.unscaled.saturating_abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let result = match multiple {
        true if x == 0 => 0,
        true => {
            let product = (a.unscaled / x).checked_mul(b.unscaled).ok_or_else(numeric_overflow)?;
            product.checked_abs().ok_or_else(numeric_overflow)?
        }
        false => x,
    };
    decimal(Decimal::new(result, scale))
}

fn chr(args: &[Datum]) -> Result<Datum> {
    let code = int_at(args, 0)?;
    let fault = |message: String| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    let Ok(code) = u32::try_from(code) else {
        return Err(super::invalid("character number must be positive"));
    };
    match char::from_u32(code) {
        Some('\0') => fault("null character not permitted".to_owned()),
        Some(c) => super::text(c.to_string()),
        None if code > 0x0010_ffff => fault(format!("requested character too large for encoding: {code}")),
        None => fault(format!("requested character not valid for encoding: {code}")),
    }
}

fn hex(args: &[Datum]) -> Result<Datum> {
    super::text(match value(args, 0)? {
        Value::Integer(n) => format!("{n:x}"),
        Value::BigInt(n) => format!("{n:x}"),
        _ => return Err(unexpected()),
    })
}
