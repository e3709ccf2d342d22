//! The usual spellings of values, read from bytes without detours. `None` is "not one of them": the caller
//! then asks [`albireo_base::Value::parse`], which decides whether the text is a value at all.
//!
//! I-1 What is read here reads the same there (test: `column::tests`).

use albireo_base::value::{Civil, MICROS_PER_DAY};

/// Digits that fit 64 bits in every case.
const SAFE_DIGITS: usize = 18;

/// Powers of ten up to the number of digits that fit 64 bits.
const POWERS: [i64; SAFE_DIGITS + 1] = {
    let mut table = [1_i64; SAFE_DIGITS + 1];
    let mut i = 1;
    while i < table.len() {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

#[inline]
fn digit(byte: u8) -> Option<i64> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(i64::from(value))
}

#[inline]
fn digits(bytes: &[u8]) -> Option<i64> {
    let mut number = 0;
    for byte in bytes {
        number = number * 10 + digit(*byte)?;
    }
    Some(number)
}

#[inline]
fn sign(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    }
}

/// `-?[0-9]{1,18}`.
#[inline]
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, bare) = sign(bytes);
    if bare.is_empty() || bare.len() > SAFE_DIGITS {
        return None;
    }
    let number = digits(bare)?;
    Some(if negative { -number } else { number })
}

/// `-?[0-9]+(\.[0-9]+)?` as a multiple of `10^-scale`, if it is one and 18 digits are enough.
#[inline]
pub(crate) fn decimal(bytes: &[u8], precision: u8, scale: u8) -> Option<i64> {
    let (negative, bare) = sign(bytes);
    let scale = usize::from(scale);
    let mut number = 0_i64;
    let mut whole = 0;
    while let Some(value) = bare.get(whole).and_then(|byte| digit(*byte)) {
        if whole == SAFE_DIGITS {
            return None;
        }
        number = number * 10 + value;
        whole += 1;
    }
    let fraction = match bare.get(whole) {
        None => 0,
        Some(b'.') => bare.len() - whole - 1,
        Some(_) => return None,
    };
    let is_bare_point = fraction == 0 && whole < bare.len();
    if whole == 0 || is_bare_point || fraction > scale || whole + scale > SAFE_DIGITS {
        return None;
    }
    if fraction > 0 {
        number = number * POWERS[fraction] + digits(&bare[whole + 1..])?;
    }
    number *= POWERS[scale - fraction];
    let fits = usize::from(precision) >= SAFE_DIGITS || number < POWERS[usize::from(precision)];
    fits.then_some(if negative { -number } else { number })
}

/// `YYYY-MM-DD` from year 1 on, in days.
#[inline]
pub(crate) fn date(bytes: &[u8]) -> Option<i32> {
    let bytes: &[u8; 10] = bytes.try_into().ok()?;
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..])?);
    let civil = Civil { year, month: month as u8, day: day as u8 };
    (year > 0 && civil.exists()).then(|| civil.to_days() as i32)
}

/// `HH:MM:SS` or `HH:MM:SS.f` with up to six digits, before 24:00:00, in microseconds.
#[inline]
pub(crate) fn time(bytes: &[u8]) -> Option<i64> {
    let (clock, fraction) = bytes.split_first_chunk::<8>()?;
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (digits(&clock[..2])?, digits(&clock[3..5])?, digits(&clock[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = match fraction {
        [] => 0,
        [b'.', rest @ ..] if (1..=6).contains(&rest.len()) => digits(rest)? * POWERS[6 - rest.len()],
        _ => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * 1_000_000 + micros)
}

/// A date, a blank or `T`, and a time, in microseconds.
#[inline]
pub(crate) fn timestamp(bytes: &[u8]) -> Option<i64> {
    let (day, rest) = bytes.split_at_checked(10)?;
    let [b' ' | b'T', clock @ ..] = rest else { return None };
    // Four digits of a year are far from the type's limits.
    Some(i64::from(date(day)?) * MICROS_PER_DAY + time(clock)?)
}

/// A timestamp in UTC: with nothing, `Z` or `+00` behind it.
#[inline]
pub(crate) fn timestamp_in_utc(bytes: &[u8]) -> Option<i64> {
    let bare = bytes.strip_suffix(b"Z").or_else(|| bytes.strip_suffix(b"+00")).unwrap_or(bytes);
    timestamp(bare)
}

/// The words that PostgreSQL writes, and the usual others.
#[inline]
pub(crate) fn boolean(bytes: &[u8]) -> Option<bool> {
    match bytes {
        b"t" | b"true" | b"1" => Some(true),
        b"f" | b"false" | b"0" => Some(false),
        _ => None,
    }
}

/// Whether a number may have this byte.
#[inline]
pub(crate) fn is_plain(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')
}

/// `-?` digits, points and exponents; what it means is for the standard library to say.
#[inline]
fn plain_number(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > 40 || !bytes.iter().all(is_plain) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// A number neither zero nor infinite: those may have left the type's range.
#[inline]
pub(crate) fn double(bytes: &[u8]) -> Option<f64> {
    let number: f64 = plain_number(bytes)?.parse().ok()?;
    (number.is_finite() && number != 0.0).then_some(number)
}

/// As [`double`].
#[inline]
pub(crate) fn real(bytes: &[u8]) -> Option<f32> {
    let number: f32 = plain_number(bytes)?.parse().ok()?;
    (number.is_finite() && number != 0.0).then_some(number)
}
