//! Exact decimal arithmetic on 128-bit unscaled integers: result types and single operations.
//!
//! PostgreSQL's NUMERIC has up to 131,072 digits and chooses the scale of each quotient from the
//! operands' values; a column here has one scale, chosen from the operands' types:
//!
//! | operation | scale of the result |
//! |---|---|
//! | `+`, `-`, `%` | the larger one (as PostgreSQL) |
//! | `*` | `s1 + s2` (as PostgreSQL) while `p1 + p2 <= 38` or `s1 + s2 <= 20`; else `max(20, s1, s2)`, rounded |
//! | `/` | at least 16 (PostgreSQL: at least 16 significant digits), 20 where the integral digits leave room |
//!
//! Results are rounded half away from zero, as PostgreSQL does. A result of more than 38 digits
//! is SQLSTATE 22003, never a wrapped number.

use arrow::datatypes::{DataType, i256};

/// Digits of the widest decimal.
pub(crate) const MAX_PRECISION: u8 = 38;
/// Digits after the point of every quotient, at least.
const MIN_QUOTIENT_SCALE: i32 = 16;
/// Digits after the point of a quotient or rounded product where there is room.
const ROOMY_SCALE: i32 = 20;
/// 10^38: the first unscaled value that does not fit.
const LIMIT: u128 = 10u128.pow(38);

/// Precision and scale of a decimal operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) precision: i32,
    pub(crate) scale: i32,
}

impl Shape {
    pub(crate) fn of(ty: &DataType) -> Option<Self> {
        match ty {
            DataType::Decimal128(p, s) => Some(Self { precision: i32::from(*p), scale: i32::from(*s) }),
            _ => None,
        }
    }

    pub(crate) fn data_type(self) -> DataType {
        DataType::Decimal128(self.precision as u8, self.scale as i8)
    }

    fn integral(self) -> i32 {
        self.precision - self.scale
    }

    fn new(integral: i32, scale: i32) -> Self {
        let precision = (integral + scale).clamp(scale.max(1), i32::from(MAX_PRECISION));
        Self { precision, scale }
    }
}

/// The type of `a + b` and `a - b`.
pub(crate) fn sum_shape(a: Shape, b: Shape) -> Shape {
    Shape::new(a.integral().max(b.integral()) + 1, a.scale.max(b.scale))
}

/// The type of `a * b`.
pub(crate) fn product_shape(a: Shape, b: Shape) -> Shape {
    let exact = a.scale + b.scale;
    let fits = a.precision + b.precision <= i32::from(MAX_PRECISION);
    let scale = if fits || exact <= ROOMY_SCALE { exact } else { ROOMY_SCALE.max(a.scale).max(b.scale) };
    Shape::new(a.integral() + b.integral(), scale)
}

/// The type of `a / b`.
pub(crate) fn quotient_shape(a: Shape, b: Shape) -> Shape {
    let integral = a.integral() + b.scale;
    let room = i32::from(MAX_PRECISION) - integral;
    let wanted = if room >= ROOMY_SCALE { ROOMY_SCALE } else { MIN_QUOTIENT_SCALE };
    let scale = wanted.max(a.scale).max(b.scale);
    Shape::new(integral, scale)
}

/// The type of `a % b`.
pub(crate) fn remainder_shape(a: Shape, b: Shape) -> Shape {
    Shape::new(a.integral().max(b.integral()), a.scale.max(b.scale))
}

/// 10^n for `n` in `0..=38`.
pub(crate) fn power_of_ten(n: i32) -> i128 {
    debug_assert!((0..=38).contains(&n));
    10i128.pow(n.clamp(0, 38) as u32)
}

/// Whether an unscaled value has at most 38 digits.
pub(crate) fn fits(value: i128) -> bool {
    value.unsigned_abs() < LIMIT
}

/// `a / b` rounded half away from zero; `b != 0`.
pub(crate) fn divide_rounded(a: i128, b: i128) -> i128 {
    let quotient = a.wrapping_div(b);
    let remainder = a.wrapping_rem(b);
    if remainder.unsigned_abs() >= b.unsigned_abs() - remainder.unsigned_abs() {
        quotient + if (a < 0) == (b < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// `a * b / divisor` rounded half away from zero, through 256 bits when needed. `None`: the
/// result has more than 38 digits. `divisor != 0`.
pub(crate) fn multiply_divide(a: i128, b: i128, divisor: i128) -> Option<i128> {
    let result = match a.checked_mul(b) {
        Some(product) => divide_rounded(product, divisor),
        None => wide_multiply_divide(a, b, divisor)?,
    };
    fits(result).then_some(result)
}

fn wide_multiply_divide(a: i128, b: i128, divisor: i128) -> Option<i128> {
    let product = i256::from_i128(a).checked_mul(i256::from_i128(b))?;
    let wide = i256::from_i128(divisor);
    let quotient = product.checked_div(wide)?.to_i128()?;
    // The remainder is smaller than the divisor, so it fits.
    let remainder = product.checked_rem(wide)?.to_i128()?;
    if remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs() {
        let negative = (a < 0) != (b < 0);
        quotient.checked_add(if negative != (divisor < 0) { -1 } else { 1 })
    } else {
        Some(quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divide_rounded_of_halves_goes_away_from_zero() {
        assert_eq!(divide_rounded(5, 2), 3);
        assert_eq!(divide_rounded(-5, 2), -3);
        assert_eq!(divide_rounded(5, -2), -3);
        assert_eq!(divide_rounded(4, 3), 1);
        assert_eq!(divide_rounded(0, 7), 0);
    }

    #[test]
    fn multiply_divide_beyond_128_bits_is_exact() {
        let big = power_of_ten(30);
        assert_eq!(multiply_divide(big, power_of_ten(20), power_of_ten(20)), Some(big));
        assert_eq!(multiply_divide(-big, power_of_ten(20), power_of_ten(20)), Some(-big));
        assert_eq!(multiply_divide(big, power_of_ten(20), 1), None);
    }

    #[test]
    fn quotient_shape_of_money_keeps_twenty_digits() {
        let money = Shape { precision: 12, scale: 2 };
        assert_eq!(quotient_shape(money, money), Shape { precision: 32, scale: 20 });
        let sum = Shape { precision: 38, scale: 2 };
        assert_eq!(quotient_shape(sum, sum), Shape { precision: 38, scale: 16 });
    }
}
