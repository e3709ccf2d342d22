//! Exponentials and logarithms of NUMERIC, with the digits PostgreSQL gives.
//!
//! Responsible for: `exp`, `ln`, `log`, powers, factorials and roots too large for 128 bits. How many digits a
//! result has is PostgreSQL's rule: 16 significant ones, and no fewer places than an argument. The values are
//! computed with at least ten digits more and rounded once.
//!
//! Units: a *fixed* number is a whole number that counts units of `10^-places`.

use albireo_base::{Decimal, SqlError, SqlState};
use num_bigint::BigInt;

use super::Result;
use crate::expr::number::{checked, division_by_zero, numeric_overflow};

/// Significant digits of a result, at least.
pub(super) const SIGNIFICANT: i64 = 16;
/// Decimal digits in one of PostgreSQL's.
pub(super) const GROUP: i64 = 4;
/// Digits that are computed and rounded away.
const GUARD: u32 = 15;
#[expect(clippy::approx_constant, reason = "PostgreSQL's rounding of it says how many digits a result has")]
const LOG10_OF_E: f64 = 0.434_294_481_903_252;

pub(super) fn ten_to(places: u32) -> BigInt {
    BigInt::from(10).pow(places)
}

/// A number with `places` digits after the point, cut or filled up.
fn fixed(number: Decimal, places: u32) -> BigInt {
    let scale = u32::from(number.scale);
    let whole = BigInt::from(number.unscaled);
    match places >= scale {
        true => whole * ten_to(places - scale),
        false => whole / ten_to(scale - places),
    }
}

/// `a / b`, rounded half away from zero.
pub(super) fn rounded_quotient(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = (a / b, a % b);
    let twice: BigInt = rest.magnitude().clone().into();
    let far = twice * 2 >= BigInt::from(b.magnitude().clone());
    let zero = BigInt::ZERO;
    match (far, (*a < zero) == (*b < zero)) {
        (false, _) => quotient,
        (true, true) => quotient + 1,
        (true, false) => quotient - 1,
    }
}

/// A fixed number with fewer places as a NUMERIC.
pub(super) fn rounded(number: &BigInt, places: u32, scale: i64) -> Result<Decimal> {
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= Decimal::MAX_SCALE);
    let scale = scale.ok_or_else(numeric_overflow)?;
    let number = match places.checked_sub(u32::from(scale)) {
        Some(excess) => rounded_quotient(number, &ten_to(excess)),
        None => number * ten_to(u32::from(scale) - places),
    };
    let unscaled = i128::try_from(&number).map_err(|_| numeric_overflow())?;
    checked(Some(Decimal::new(unscaled, scale)))
}

/// `2 * atanh(p / q)`, a logarithm.
fn twice_atanh(p: &BigInt, q: &BigInt, places: u32) -> BigInt {
    let unit = ten_to(places);
    let z = p * &unit / q;
    let square = &z * &z / &unit;
    let (mut power, mut sum, mut n) = (z.clone(), z, 1_u32);
    loop {
        power = &power * &square / &unit;
        n += 2;
        let term: BigInt = &power / n;
        if term == BigInt::ZERO {
            return sum * 2;
        }
        sum += term;
    }
}

/// The natural logarithm of a positive number.
fn ln_fixed(number: Decimal, places: u32) -> BigInt {
    let places_inside = places + 5;
    let digits = i64::from(number.unscaled.unsigned_abs().ilog10());
    let exponent = digits - i64::from(number.scale);
    // The digits with the point behind the first; between 1 and 10, brought between 0.5 and 2 by twos.
    let unit = ten_to(digits as u32);
    let mut mantissa = BigInt::from(number.unscaled);
    let mut one = unit;
    let mut twos = 0_i64;
    while exponent >= 0 && mantissa > &one * 2 {
        one *= 2;
        twos += 1;
    }
    let mut tens = exponent;
    if exponent < 0 {
        // A number a little below 1 must not become a difference of large logarithms.
        tens += 1;
        one *= 10;
        while &mantissa * 2 < one {
            mantissa *= 2;
            twos -= 1;
        }
    }
    let mut sum = twice_atanh(&(&mantissa - &one), &(&mantissa + &one), places_inside);
    if tens != 0 || twos != 0 {
        let two = twice_atanh(&BigInt::from(1), &BigInt::from(3), places_inside);
        let five_fourths = twice_atanh(&BigInt::from(1), &BigInt::from(9), places_inside);
        sum += &two * (twos + 3 * tens) + five_fourths * tens;
    }
    sum / ten_to(5)
}

/// `e` to the power of a fixed number below 300; the result has the same places, and as many digits before
/// the point as it needs.
fn exp_fixed(power: &BigInt, places: u32) -> BigInt {
    let halvings = 16_u32;
    let inside = places + 150;
    let unit = ten_to(inside);
    let x = power * ten_to(150) / BigInt::from(1_u32 << halvings);
    let (mut term, mut sum, mut n) = (unit.clone(), unit.clone(), 0_u32);
    loop {
        n += 1;
        term = &term * &x / &unit / n;
        if term == BigInt::ZERO {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &unit;
    }
    sum / ten_to(150)
}

/// The first group of four digits that PostgreSQL would keep of a number, with its place, and the two first as
/// one number with theirs.
fn leading_pair(number: Decimal) -> (f64, i64) {
    let digits = number.unscaled.unsigned_abs();
    let exponent = i64::from(digits.ilog10()) - i64::from(number.scale);
    let weight = exponent.div_euclid(GROUP);
    let shift = GROUP * (weight - 1) + i64::from(number.scale);
    let factor = 10_u128.pow(shift.unsigned_abs().min(38) as u32);
    let pair = if shift >= 0 { digits / factor } else { digits.saturating_mul(factor) };
    (pair as f64, GROUP * (weight - 1))
}

/// About the place of the first digit of a logarithm, as PostgreSQL guesses it.
fn ln_weight(number: Decimal) -> i64 {
    let near = number >= Decimal::new(9, 1) && number <= Decimal::new(11, 1);
    if near {
        let difference = number.checked_sub(Decimal::new(1, 0)).unwrap_or(Decimal::new(0, 0));
        return match difference.unscaled.unsigned_abs().checked_ilog10() {
            Some(log) => i64::from(log) - i64::from(difference.scale),
            None => 0,
        };
    }
    let (digits, place) = leading_pair(number);
    let ln = digits.ln() + place as f64 * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

fn logarithm_fault(what: &str) -> SqlError {
    let message = format!("cannot take logarithm of {what}");
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message)
}

fn positive(number: Decimal) -> Result<Decimal> {
    match number.unscaled {
        0 => Err(logarithm_fault("zero")),
        n if n < 0 => Err(logarithm_fault("a negative number")),
        _ => Ok(number),
    }
}

/// `exp(numeric)`
pub(super) fn exp(number: Decimal) -> Result<Decimal> {
    let weight = (number.to_f64() * LOG10_OF_E).clamp(-2000.0, 2000.0);
    let scale = (SIGNIFICANT - weight as i64).max(i64::from(number.scale)).max(0);
    if weight > 40.0 || scale > i64::from(Decimal::MAX_SCALE) {
        return Err(numeric_overflow());
    }
    let places = scale as u32 + GUARD;
    rounded(&exp_fixed(&fixed(number, places + 40), places + 40), places + 40, scale)
}

/// `ln(numeric)`
pub(super) fn ln(number: Decimal) -> Result<Decimal> {
    let number = positive(number)?;
    let scale = (SIGNIFICANT - ln_weight(number)).max(i64::from(number.scale)).max(0);
    let places = scale.clamp(0, 100) as u32 + GUARD;
    rounded(&ln_fixed(number, places), places, scale)
}

/// `log(base, numeric)`
pub(super) fn log(base: Decimal, number: Decimal) -> Result<Decimal> {
    let (base, number) = (positive(base)?, positive(number)?);
    let weight = ln_weight(number) - ln_weight(base);
    let scale = SIGNIFICANT - weight;
    let scale = scale.max(i64::from(base.scale)).max(i64::from(number.scale)).max(0);
    let places = 160;
    let (ln_base, ln_number) = (ln_fixed(base, places), ln_fixed(number, places));
    if ln_base == BigInt::ZERO {
        return Err(division_by_zero());
    }
    rounded(&rounded_quotient(&(ln_number * ten_to(places)), &ln_base), places, scale)
}

/// `base ^ exponent`
pub(in crate::expr) fn power(base: Decimal, exponent: Decimal) -> Result<Decimal> {
    let fault = |message: &str| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, message));
    if base.unscaled == 0 && exponent.unscaled < 0 {
        return fault("zero raised to a negative power is undefined");
    }
    let places = super::math::trim_scale(exponent);
    if places.scale == 0
        && let Ok(n) = i32::try_from(places.unscaled)
    {
        return whole_power(base, n);
    }
    if base.unscaled < 0 && places.scale > 0 {
        return fault("a negative number raised to a non-integer power yields a complex result");
    }
    if base.unscaled == 0 {
        return checked(Some(Decimal::new(0, SIGNIFICANT as u8)));
    }
    let negative = base.unscaled < 0 && places.unscaled % 2 != 0;
    let base = Decimal::new(base.unscaled.saturating_abs(), base.scale);
    let weight = power_weight(base, exponent)?;
    if weight.abs() > 40.0 {
        return Err(numeric_overflow());
    }
    let inside = 140;
    let ln = ln_fixed(base, inside) * BigInt::from(exponent.unscaled) / ten_to(u32::from(exponent.scale));
    let scale =
        (SIGNIFICANT - weight as i64).max(i64::from(base.scale)).max(i64::from(exponent.scale)).max(0);
    let result = rounded(&exp_fixed(&ln, inside), inside, scale)?;
    Ok(if negative { Decimal::new(-result.unscaled, result.scale) } else { result })
}

/// About how many digits before the point a power has, from a logarithm of eight digits as PostgreSQL takes it.
fn power_weight(base: Decimal, exponent: Decimal) -> Result<f64> {
    let places = (8 - ln_weight(base)).clamp(0, 100) as u32;
    let ln = rounded_quotient(&ln_fixed(base, places + GUARD), &ten_to(GUARD));
    let product = ln * BigInt::from(exponent.unscaled);
    let product = rounded_quotient(&product, &ten_to(u32::from(exponent.scale)));
    let digits: f64 = product.to_string().parse().map_err(|_| numeric_overflow())?;
    Ok(digits / 10_f64.powi(places as i32) * LOG10_OF_E)
}

/// A whole power, with 16 places or as many as the base has.
fn whole_power(base: Decimal, n: i32) -> Result<Decimal> {
    let scale = i64::from(base.scale).max(SIGNIFICANT);
    if n == 0 || base.unscaled == 0 {
        let one = Decimal::new(i128::from(n == 0), 0);
        return checked(one.rescale(scale as u8));
    }
    let trimmed = super::math::trim_scale(base);
    let magnitude = trimmed.unscaled.unsigned_abs();
    let size = (magnitude as f64).log10() - f64::from(trimmed.scale);
    let weight = size * f64::from(n);
    if weight > 39.0 {
        return Err(numeric_overflow());
    }
    if weight + 1.0 < -(scale as f64) {
        return checked(Some(Decimal::new(0, scale as u8)));
    }
    // Enough digits of each product that what is cut away does not count.
    let digits = 39 + scale as u64 + 30;
    let (mut square, mut square_scale) = (BigInt::from(magnitude), i64::from(trimmed.scale));
    let (mut result, mut result_scale) = (BigInt::from(1), 0_i64);
    let mut left = n.unsigned_abs();
    while left > 0 {
        if left & 1 == 1 {
            result = &result * &square;
            result_scale += square_scale;
            cut(&mut result, &mut result_scale, digits);
        }
        left >>= 1;
        if left > 0 {
            square = &square * &square;
            square_scale *= 2;
            cut(&mut square, &mut square_scale, digits);
        }
    }
    if n < 0 {
        // 1 / (result / 10^result_scale), with a guard.
        let places = scale + i64::from(GUARD) + 20;
        let shift = places + result_scale;
        result = match u32::try_from(shift) {
            Ok(shift) => ten_to(shift) / &result,
            Err(_) => BigInt::ZERO,
        };
        result_scale = places;
    }
    let negative = base.unscaled < 0 && n % 2 != 0;
    let unscaled = match u32::try_from(result_scale) {
        Ok(places) => rounded(&result, places, scale)?,
        Err(_) => rounded(&(result * ten_to((-result_scale) as u32)), 0, scale)?,
    };
    Ok(if negative { Decimal::new(-unscaled.unscaled, unscaled.scale) } else { unscaled })
}

/// Cuts a number to `digits` digits.
fn cut(number: &mut BigInt, scale: &mut i64, digits: u64) {
    // A digit has a little more than 3.3 bits.
    let excess = (number.bits() * 3 / 10).saturating_sub(digits) as u32;
    if excess > 0 {
        *number /= ten_to(excess);
        *scale -= i64::from(excess);
    }
}

/// A root whose digits the caller chose, for numbers that 128 bits cannot hold.
pub(super) fn square_root(number: Decimal, scale: u8) -> Result<Decimal> {
    let places = 2 * u32::from(scale) + 2;
    let root = fixed(number, places).sqrt();
    rounded(&root, u32::from(scale) + 1, i64::from(scale))
}

/// `factorial(bigint)`
pub(super) fn factorial(n: i64) -> Result<Decimal> {
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    // 33! is the last of 38 digits or less.
    let product = (1..=i128::from(n.min(40))).try_fold(1_i128, i128::checked_mul);
    checked(product.map(|product| Decimal::new(product, 0)))
}

/// Which of `count` equal parts between two bounds a number lies in, from 1; `None` if the bounds are equal.
pub(super) fn bucket(number: Decimal, low: Decimal, high: Decimal, count: i32) -> Option<i64> {
    let places = 38;
    let [number, low, high] = [number, low, high].map(|number| fixed(number, places));
    if low == high {
        return None;
    }
    let up = low < high;
    let (before, behind) = if up { (number < low, number >= high) } else { (number > low, number <= high) };
    if before {
        return Some(0);
    }
    if behind {
        return Some(i64::from(count) + 1);
    }
    let part: BigInt = (number - &low) * count / (high - low);
    i64::try_from(part).ok().map(|part| part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn logarithm_undoes_the_exponential_to_the_last_digits() {
        for text in ["0.0001", "0.3", "0.95", "1", "1.00001", "2", "9.99", "10", "12345.678", "1e20"] {
            let x = number(text);
            let back = exp_fixed(&ln_fixed(x, 60), 60);
            let off = (back - fixed(x, 60)).magnitude().clone();
            assert!(off < ten_to(40).magnitude().clone(), "{text}: {off}");
        }
    }
}
