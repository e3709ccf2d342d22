//! Arithmetic on numbers, exact and with PostgreSQL's errors.
//!
//! Responsible for: overflow, division by zero, the scale of quotients. Not responsible for: which type
//! an operator works in (`operator`).
//!
//! I-1 A NUMERIC is exact as PostgreSQL's or an error: beyond 38 digits or 38 places it is 22003.

use albireo_base::{Decimal, SqlError, SqlState};

use super::operator::Arithmetic;

/// `10^n` where that fits.
pub(super) fn power_of_ten(n: u32) -> Option<i128> {
    10_i128.checked_pow(n)
}

pub(super) fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"))
}

pub(super) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// A NUMERIC that has no place in 38 digits.
pub(super) fn numeric_overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
        .with_detail("Numbers have at most 38 digits.")
}

/// The number, if it has at most 38 digits.
pub(super) fn checked(number: Option<Decimal>) -> Result<Decimal, SqlError> {
    number.filter(|number| number.fits(38)).ok_or_else(numeric_overflow)
}

macro_rules! integer {
    ($name:ident, $ty:ty, $what:literal) => {
        pub(super) fn $name(op: Arithmetic, a: $ty, b: $ty) -> Result<$ty, SqlError> {
            let result = match op {
                Arithmetic::Add => a.checked_add(b),
                Arithmetic::Subtract => a.checked_sub(b),
                Arithmetic::Multiply => a.checked_mul(b),
                Arithmetic::Divide | Arithmetic::Modulo if b == 0 => return Err(division_by_zero()),
                Arithmetic::Divide => a.checked_div(b),
                // The smallest by -1 has no rest, whatever the quotient is.
                Arithmetic::Modulo => Some(a.wrapping_rem(b)),
                Arithmetic::And => Some(a & b),
                Arithmetic::Or => Some(a | b),
                Arithmetic::Xor => Some(a ^ b),
            };
            result.ok_or_else(|| out_of_range($what))
        }
    };
}

integer!(smallint, i16, "smallint");
integer!(integer, i32, "integer");
integer!(bigint, i64, "bigint");

fn float_fault(what: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {what}"))
}

/// A float that came from `finite` numbers must be finite, and may be zero only where that is exact.
pub(super) fn checked_float(result: f64, finite: bool, zero: bool) -> Result<f64, SqlError> {
    if result.is_infinite() && finite {
        return Err(float_fault("overflow"));
    }
    if result == 0.0 && !zero {
        return Err(float_fault("underflow"));
    }
    Ok(result)
}

pub(super) fn double(op: Arithmetic, a: f64, b: f64) -> Result<f64, SqlError> {
    let finite = a.is_finite() && b.is_finite();
    match op {
        Arithmetic::Add => checked_float(a + b, finite, true),
        Arithmetic::Subtract => checked_float(a - b, finite, true),
        Arithmetic::Multiply => checked_float(a * b, finite, a == 0.0 || b == 0.0),
        Arithmetic::Divide if b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        Arithmetic::Divide => checked_float(a / b, a.is_finite(), a == 0.0 || b.is_infinite()),
        _ => Err(SqlError::unsupported("this operator on floating-point numbers")),
    }
}

pub(super) fn real(op: Arithmetic, a: f32, b: f32) -> Result<f32, SqlError> {
    // Twice the digits and two more: rounding twice gives what rounding once does.
    let wide = double(op, f64::from(a), f64::from(b))?;
    let finite = a.is_finite() && b.is_finite();
    let result = wide as f32;
    let zero = wide == 0.0 || b.is_infinite();
    checked_float(f64::from(result), finite, zero)?;
    Ok(result)
}

/// An operator on two NUMERICs.
///
/// # Errors
/// 22003 beyond 38 digits, 22012.
pub fn numeric(op: Arithmetic, a: Decimal, b: Decimal) -> Result<Decimal, SqlError> {
    match op {
        Arithmetic::Add => checked(a.checked_add(b)),
        Arithmetic::Subtract => checked(a.checked_sub(b)),
        Arithmetic::Multiply => multiply(a, b),
        Arithmetic::Divide => divide(a, b, None),
        Arithmetic::Modulo => modulo(a, b),
        _ => Err(SqlError::unsupported("this operator on numeric values")),
    }
}

fn multiply(a: Decimal, b: Decimal) -> Result<Decimal, SqlError> {
    let scale = u32::from(a.scale) + u32::from(b.scale);
    if scale > u32::from(Decimal::MAX_SCALE) {
        return Err(numeric_overflow());
    }
    checked(a.checked_mul(b))
}

fn modulo(a: Decimal, b: Decimal) -> Result<Decimal, SqlError> {
    if b.unscaled == 0 {
        return Err(division_by_zero());
    }
    let scale = a.scale.max(b.scale);
    let (Some(x), Some(y)) = (a.rescale(scale), b.rescale(scale)) else { return Err(numeric_overflow()) };
    Ok(Decimal::new(x.unscaled.wrapping_rem(y.unscaled), scale))
}

/// The quotient with `scale` digits after the point, or as many as PostgreSQL would compute.
pub(super) fn divide(a: Decimal, b: Decimal, scale: Option<u8>) -> Result<Decimal, SqlError> {
    if b.unscaled == 0 {
        return Err(division_by_zero());
    }
    let scale = match scale {
        Some(scale) => i64::from(scale),
        None => quotient_scale(a, b),
    };
    if scale > i64::from(Decimal::MAX_SCALE) {
        return Err(numeric_overflow());
    }
    let shift = scale + i64::from(b.scale) - i64::from(a.scale);
    let quotient = scaled_quotient(a.unscaled.unsigned_abs(), b.unscaled.unsigned_abs(), shift);
    let quotient = quotient.and_then(|q| i128::try_from(q).ok()).ok_or_else(numeric_overflow)?;
    let negative = (a.unscaled < 0) != (b.unscaled < 0);
    checked(Some(Decimal::new(if negative { -quotient } else { quotient }, scale as u8)))
}

/// `a * 10^shift / b`, rounded half up; `None` if it does not fit.
fn scaled_quotient(a: u128, b: u128, shift: i64) -> Option<u128> {
    let Ok(shift) = u32::try_from(shift) else {
        // A quotient has at least the scale of its dividend.
        let factor = 10_u128.checked_pow(u32::try_from(-shift).ok()?)?;
        return rounded(a, b.checked_mul(factor)?);
    };
    if let Some(product) = 10_u128.checked_pow(shift).and_then(|factor| a.checked_mul(factor)) {
        return rounded(product, b);
    }
    let (mut quotient, mut rest) = (a / b, a % b);
    for _ in 0..shift {
        let mut digit = 0;
        let mut next = 0_u128;
        // Ten times the rest, taken down below `b` at each step: it may be too large for 128 bits.
        for _ in 0..10 {
            match next >= b - rest {
                true => {
                    next -= b - rest;
                    digit += 1;
                }
                false => next += rest,
            }
        }
        quotient = quotient.checked_mul(10)?.checked_add(digit)?;
        rest = next;
    }
    quotient.checked_add(u128::from(rest >= b - rest))
}

fn rounded(a: u128, b: u128) -> Option<u128> {
    let (quotient, rest) = (a / b, a % b);
    quotient.checked_add(u128::from(rest >= b - rest))
}

/// The place of the first of four digits that are not all zero, and these: PostgreSQL's numbers have
/// the base 10,000.
fn leading(number: Decimal) -> (i64, u128) {
    let digits = number.unscaled.unsigned_abs();
    if digits == 0 {
        return (0, 0);
    }
    let exponent = i64::from(digits.ilog10()) - i64::from(number.scale);
    let weight = exponent.div_euclid(4);
    let shift = 4 * weight + i64::from(number.scale);
    let factor = 10_u128.pow(shift.unsigned_abs().min(38) as u32);
    (weight, if shift >= 0 { digits / factor } else { digits * factor })
}

/// The digits after the point of a quotient: 16 significant ones, and no fewer than either number has.
fn quotient_scale(a: Decimal, b: Decimal) -> i64 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading(a), leading(b));
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    (16 - weight * 4).max(i64::from(a.scale)).max(i64::from(b.scale)).max(0)
}

/// The place of a number's first digits in the base 10,000.
pub(super) fn weight(number: Decimal) -> i64 {
    leading(number).0
}
