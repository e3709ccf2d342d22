//! Exact decimal numbers of up to 38 digits.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

/// Powers of ten that fit 128 bits.
const POWERS: [i128; 39] = {
    let mut table = [1_i128; 39];
    let mut i = 1;
    while i < table.len() {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// An exact decimal number: `unscaled / 10^scale`.
///
/// Equality, order and hash go by the number, not by its form: 1.0 equals 1.00.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The digits as a whole number.
    pub unscaled: i128,
    /// Digits after the point, at most 38.
    pub scale: u8,
}

/// Why a text or a float is no decimal number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecimalError {
    /// Not a number at all.
    #[error("not a decimal number")]
    Syntax,
    /// A number of more than 38 digits.
    #[error("more than 38 digits")]
    Overflow,
}

/// Digits, sign and exponent of a decimal number's text.
struct Parts<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl Decimal {
    /// The largest scale.
    pub const MAX_SCALE: u8 = 38;

    /// `unscaled / 10^scale`.
    pub fn new(unscaled: i128, scale: u8) -> Self {
        debug_assert!(scale <= Self::MAX_SCALE);
        Self { unscaled, scale }
    }

    /// Reads a number such as `-12.50`, `.5`, `1e-3`, keeping the digits written after the point.
    /// Digits past the 38th after the point are rounded away.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let parts = split(text)?;
        let written = (parts.fraction.len() as i64 - parts.exponent).clamp(0, 38);
        Ok(Self { unscaled: parts.at_scale(written as u8)?, scale: written as u8 })
    }

    /// Reads a number and rounds it to `scale` digits after the point, halves away from zero.
    pub fn parse_at_scale(text: &str, scale: u8) -> Result<Self, DecimalError> {
        Ok(Self { unscaled: split(text)?.at_scale(scale)?, scale })
    }

    /// The number to 15 significant digits, as PostgreSQL casts DOUBLE PRECISION to NUMERIC,
    /// rounded to `scale`. NaN is a syntax error, an infinity an overflow.
    pub fn from_f64(number: f64, scale: u8) -> Result<Self, DecimalError> {
        Self::from_float_text(number, format!("{number:.14e}"), scale)
    }

    /// The number to 6 significant digits, as PostgreSQL casts REAL to NUMERIC, rounded to
    /// `scale`. NaN is a syntax error, an infinity an overflow.
    pub fn from_f32(number: f32, scale: u8) -> Result<Self, DecimalError> {
        Self::from_float_text(f64::from(number), format!("{number:.5e}"), scale)
    }

    fn from_float_text(number: f64, text: String, scale: u8) -> Result<Self, DecimalError> {
        if number.is_infinite() {
            return Err(DecimalError::Overflow);
        }
        Self::parse_at_scale(&text, scale)
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        // Both operands are exact below these limits, so that the division rounds once.
        if self.unscaled.unsigned_abs() < 1 << 53 && self.scale <= 22 {
            return self.unscaled as f64 / 10_f64.powi(i32::from(self.scale));
        }
        self.to_string().parse().expect("a decimal's text is a float's text")
    }

    /// The same number with `scale` digits after the point, rounded half away from zero; `None`
    /// if it does not fit 128 bits.
    #[must_use]
    pub fn rescale(self, scale: u8) -> Option<Self> {
        debug_assert!(scale <= Self::MAX_SCALE);
        let unscaled = if scale >= self.scale {
            self.unscaled.checked_mul(POWERS[usize::from(scale - self.scale)])?
        } else {
            let divisor = POWERS[usize::from(self.scale - scale)];
            let (quotient, rest) = (self.unscaled / divisor, self.unscaled % divisor);
            let round = i128::from(rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2));
            quotient + round * self.unscaled.signum()
        };
        Some(Self { unscaled, scale })
    }

    /// Whether the number has at most `precision` digits.
    pub fn fits(self, precision: u8) -> bool {
        self.unscaled.unsigned_abs() < POWERS[usize::from(precision.min(38))].unsigned_abs()
    }

    /// The nearest whole number, halves away from zero.
    pub fn round(self) -> i128 {
        self.rescale(0).expect("fewer digits always fit").unscaled
    }

    /// The sum at the larger scale; `None` on overflow.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (a, b) = self.aligned(other)?;
        Some(Self { unscaled: a.unscaled.checked_add(b.unscaled)?, scale: a.scale })
    }

    /// The difference at the larger scale; `None` on overflow.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let (a, b) = self.aligned(other)?;
        Some(Self { unscaled: a.unscaled.checked_sub(b.unscaled)?, scale: a.scale })
    }

    /// The product, exact, at the sum of the scales; `None` on overflow or beyond scale 38.
    #[must_use]
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let scale = self.scale + other.scale;
        if scale > Self::MAX_SCALE {
            return None;
        }
        Some(Self { unscaled: self.unscaled.checked_mul(other.unscaled)?, scale })
    }

    /// The negated number; `None` only for the smallest 128-bit one.
    #[must_use]
    pub fn checked_neg(self) -> Option<Self> {
        Some(Self { unscaled: self.unscaled.checked_neg()?, scale: self.scale })
    }

    fn aligned(self, other: Self) -> Option<(Self, Self)> {
        let scale = self.scale.max(other.scale);
        Some((self.rescale(scale)?, other.rescale(scale)?))
    }

    /// The number without trailing zeros after the point.
    fn normalized(mut self) -> Self {
        while self.scale > 0 && self.unscaled % 10 == 0 {
            self.unscaled /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl Parts<'_> {
    /// The number times `10^scale`, rounded half away from zero.
    fn at_scale(&self, scale: u8) -> Result<i128, DecimalError> {
        // How many of the digits count; the next one decides the rounding.
        let keep = self.whole.len() as i64 + self.exponent + i64::from(scale);
        let digits = || self.whole.iter().chain(self.fraction).map(|b| i128::from(b - b'0'));
        if keep < 0 {
            return Ok(0);
        }
        let mut unscaled = 0_i128;
        let push = |unscaled: i128, digit: i128| unscaled.checked_mul(10).and_then(|n| n.checked_add(digit));
        let available = (self.whole.len() + self.fraction.len()) as i64;
        for digit in digits().take(keep.min(available) as usize) {
            unscaled = push(unscaled, digit).ok_or(DecimalError::Overflow)?;
        }
        if unscaled != 0 {
            for _ in available..keep {
                unscaled = push(unscaled, 0).ok_or(DecimalError::Overflow)?;
            }
        }
        if keep < available && digits().nth(keep as usize).is_some_and(|d| d >= 5) {
            unscaled = unscaled.checked_add(1).ok_or(DecimalError::Overflow)?;
        }
        Ok(if self.negative { -unscaled } else { unscaled })
    }
}

/// Takes a number's text apart. Blanks around it are allowed.
fn split(text: &str) -> Result<Parts<'_>, DecimalError> {
    let bytes = text.trim_ascii().as_bytes();
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let (mantissa, exponent) = match bytes.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&bytes[..at], parse_exponent(&bytes[at + 1..])?),
        None => (bytes, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    let all_digits = whole.iter().chain(fraction).all(u8::is_ascii_digit);
    if !all_digits || whole.len() + fraction.len() == 0 {
        return Err(DecimalError::Syntax);
    }
    Ok(Parts { negative, whole, fraction, exponent })
}

fn parse_exponent(bytes: &[u8]) -> Result<i64, DecimalError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DecimalError::Syntax)?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DecimalError::Syntax);
    }
    // Beyond a million the number is nothing or far too large either way.
    let exponent: i64 = digits.parse().unwrap_or(i64::MAX).min(1_000_000);
    Ok(if text.starts_with('-') { -exponent } else { exponent })
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs();
        if self.scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let unit = POWERS[usize::from(self.scale)].unsigned_abs();
        let width = usize::from(self.scale);
        write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled.cmp(&other.unscaled);
        }
        // Whole parts first; the fractions then fit 128 bits at either scale.
        let (a_unit, b_unit) = (POWERS[usize::from(self.scale)], POWERS[usize::from(other.scale)]);
        let whole = (self.unscaled / a_unit).cmp(&(other.unscaled / b_unit));
        whole.then_with(|| {
            let up = |rest: i128, scale: u8| rest * POWERS[usize::from(self.scale.max(other.scale) - scale)];
            let a = up(self.unscaled % a_unit, self.scale);
            a.cmp(&up(other.unscaled % b_unit, other.scale))
        })
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normalized = self.normalized();
        (normalized.unscaled, normalized.scale).hash(state);
    }
}
