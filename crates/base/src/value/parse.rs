//! PostgreSQL's text input form, with its error codes and wording.

use std::str::FromStr;

use super::datetime::{self, DateTimeError};
use super::{Decimal, DecimalError, Value};
use crate::{SqlError, SqlState, SqlType};

impl Value {
    /// Reads a value of type `ty` from PostgreSQL's text form. NULL has no text form; callers tell
    /// it apart beforehand.
    ///
    /// # Errors
    /// 22P02, 22007 or 22008 for a text that is no such value, 22003 for a number that does not
    /// fit, 22001 for a string that is too long, 22021 for a zero byte.
    pub fn parse(text: &str, ty: SqlType) -> Result<Self, SqlError> {
        Ok(match ty {
            SqlType::Bool => Self::Bool(parse_bool(text).ok_or_else(|| invalid(text, ty))?),
            SqlType::SmallInt => Self::SmallInt(parse_integer(text, ty)?),
            SqlType::Integer => Self::Integer(parse_integer(text, ty)?),
            SqlType::BigInt => Self::BigInt(parse_integer(text, ty)?),
            SqlType::Real => {
                let number: f32 = parse_float(text, ty, |n: &f32| n.is_infinite() || *n == 0.0)?;
                Self::Real(number)
            }
            SqlType::Double => {
                let number: f64 = parse_float(text, ty, |n: &f64| n.is_infinite() || *n == 0.0)?;
                Self::Double(number)
            }
            SqlType::Decimal { precision, scale } => Self::Decimal(parse_decimal(text, precision, scale)?),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                if text.contains('\0') {
                    let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
                    return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
                }
                Self::Text(fit_string(text, ty)?.to_owned())
            }
            SqlType::Bytea => Self::Bytea(parse_bytea(text)?),
            SqlType::Date => Self::Date(datetime::parse_date(text).map_err(|e| moment_error(e, text, ty))?),
            SqlType::Time => Self::Time(datetime::parse_time(text).map_err(|e| moment_error(e, text, ty))?),
            SqlType::Timestamp => {
                Self::Timestamp(datetime::parse_timestamp(text).map_err(|e| moment_error(e, text, ty))?)
            }
            SqlType::TimestampTz => {
                Self::TimestampTz(datetime::parse_timestamptz(text).map_err(|e| moment_error(e, text, ty))?)
            }
            SqlType::Uuid => Self::Uuid(parse_uuid(text).ok_or_else(|| invalid(text, ty))?),
        })
    }
}

/// The type's name in messages: PostgreSQL leaves out length, precision and scale.
pub(super) fn bare_name(ty: SqlType) -> String {
    match ty {
        SqlType::Decimal { .. } => "numeric".to_owned(),
        SqlType::Char(_) => "character".to_owned(),
        SqlType::Varchar(_) => "character varying".to_owned(),
        other => other.to_string(),
    }
}

/// A text as a message may quote it: whole, or its first hundred characters.
fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(100) {
        Some((at, _)) => format!("{}...", &text[..at]).into(),
        None => text.into(),
    }
}

fn invalid(text: &str, ty: SqlType) -> SqlError {
    let message = format!("invalid input syntax for type {}: \"{}\"", bare_name(ty), excerpt(text));
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
}

fn out_of_range(message: String) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// Any beginning of true, false, yes, no, on, off that means one of them only, and 1 and 0.
fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim_ascii();
    let word = text.to_ascii_lowercase();
    let begins = |full: &str, at_least: usize| word.len() >= at_least && full.starts_with(&word);
    if text.len() > 5 {
        None
    } else if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_integer<T: FromStr>(text: &str, ty: SqlType) -> Result<T, SqlError> {
    let digits = text.trim_ascii();
    digits.parse().map_err(|_| {
        let bare = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        if bare.is_empty() || !bare.bytes().all(|b| b.is_ascii_digit()) {
            return invalid(text, ty);
        }
        out_of_range(format!("value \"{}\" is out of range for type {ty}", excerpt(text)))
    })
}

/// `extreme` says whether the number may have left the type's range: it is infinite or zero.
fn parse_float<T: FromStr>(text: &str, ty: SqlType, extreme: impl Fn(&T) -> bool) -> Result<T, SqlError> {
    let trimmed = text.trim_ascii();
    let number: T = trimmed.parse().map_err(|_| invalid(text, ty))?;
    if extreme(&number) {
        let mantissa = trimmed.split(['e', 'E']).next().unwrap_or_default();
        // "inf" is meant so; "0e5" is zero.
        if mantissa.bytes().any(|b| matches!(b, b'1'..=b'9')) {
            let text = excerpt(trimmed);
            return Err(out_of_range(format!("\"{text}\" is out of range for type {ty}")));
        }
    }
    Ok(number)
}

fn parse_decimal(text: &str, precision: u8, scale: u8) -> Result<Decimal, SqlError> {
    match Decimal::parse_at_scale(text, scale) {
        Ok(number) => check_precision(number, precision),
        Err(DecimalError::Overflow) => Err(decimal_overflow(precision, scale)),
        Err(DecimalError::Syntax) => {
            let ty = SqlType::Decimal { precision, scale };
            let word = text.trim_ascii().trim_start_matches(['-', '+']).to_ascii_lowercase();
            let error = invalid(text, ty);
            Err(if matches!(word.as_str(), "nan" | "inf" | "infinity") {
                error.with_hint("Numeric columns hold finite numbers only; use double precision.")
            } else {
                error
            })
        }
    }
}

pub(super) fn check_precision(number: Decimal, precision: u8) -> Result<Decimal, SqlError> {
    if number.fits(precision) { Ok(number) } else { Err(decimal_overflow(precision, number.scale)) }
}

pub(super) fn decimal_overflow(precision: u8, scale: u8) -> SqlError {
    let whole = i16::from(precision) - i16::from(scale);
    let limit = if whole == 0 { "1".to_owned() } else { format!("10^{whole}") };
    out_of_range("numeric field overflow".to_owned()).with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less \
         than {limit}."
    ))
}

/// Whether `text` has at most `n` characters.
pub(super) fn length_at_most(text: &str, n: u32) -> bool {
    let n = n as usize;
    text.len() <= n || text.chars().nth(n).is_none()
}

/// The string as a column of type `ty` takes it: CHAR loses its trailing blanks, and too long a
/// string loses those too many if they are blanks.
pub(super) fn fit_string(text: &str, ty: SqlType) -> Result<&str, SqlError> {
    let limit = match ty {
        SqlType::Char(n) | SqlType::Varchar(n) => n,
        _ => return Ok(text),
    };
    let text = if matches!(ty, SqlType::Char(_)) { text.trim_end_matches(' ') } else { text };
    if text.len() <= limit as usize {
        return Ok(text);
    }
    match text.char_indices().nth(limit as usize) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|b| b == b' ') => Ok(&text[..end]),
        Some(_) => Err(SqlError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {ty}"),
        )),
    }
}

/// `\x` and hexadecimal digits, or PostgreSQL's older form with `\ooo` and `\\`.
fn parse_bytea(text: &str) -> Result<Vec<u8>, SqlError> {
    match text.strip_prefix("\\x") {
        Some(digits) => parse_hex(digits),
        None => parse_escaped(text).ok_or_else(|| {
            let message = "invalid input syntax for type bytea";
            SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
        }),
    }
}

fn parse_hex(digits: &str) -> Result<Vec<u8>, SqlError> {
    let error = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut high = None;
    for c in digits.chars() {
        let Some(digit) = c.to_digit(16) else {
            // Blanks may stand between the bytes.
            if c.is_ascii_whitespace() && high.is_none() {
                continue;
            }
            return Err(error(format!("invalid hexadecimal digit: \"{c}\"")));
        };
        match high.take() {
            None => high = Some(digit),
            Some(high) => bytes.push((high * 16 + digit) as u8),
        }
    }
    match high {
        None => Ok(bytes),
        Some(_) => Err(error("invalid hexadecimal data: odd number of digits".to_owned())),
    }
}

fn parse_escaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                after
            }
        };
    }
    Some(bytes)
}

/// 32 hexadecimal digits, a hyphen allowed after each group of four, braces allowed around them.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_ascii();
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut bytes = [0; 16];
    let mut digits = 0;
    let mut after_hyphen = true;
    for c in inner.chars() {
        if c == '-' && !after_hyphen && digits % 4 == 0 && digits < 32 {
            after_hyphen = true;
            continue;
        }
        let digit = c.to_digit(16)? as u8;
        let byte = bytes.get_mut(digits / 2)?;
        *byte = *byte * 16 + digit;
        digits += 1;
        after_hyphen = false;
    }
    (digits == 32).then_some(bytes)
}

fn moment_error(error: DateTimeError, text: &str, ty: SqlType) -> SqlError {
    let quoted = excerpt(text);
    let short = match ty {
        SqlType::Timestamp | SqlType::TimestampTz => "timestamp",
        SqlType::Time => "time",
        _ => "date",
    };
    match error {
        DateTimeError::Syntax => {
            let message = format!("invalid input syntax for type {ty}: \"{quoted}\"");
            SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
        }
        DateTimeError::Field => {
            let message = format!("date/time field value out of range: \"{quoted}\"");
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        }
        DateTimeError::Range => {
            let message = format!("{short} out of range: \"{quoted}\"");
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        }
        DateTimeError::ZoneOffset => {
            let message = format!("time zone displacement out of range: \"{quoted}\"");
            SqlError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT, message)
        }
        DateTimeError::ZoneName => {
            let message = format!("time zone not recognized: \"{quoted}\"");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Write the offset from UTC, such as +02:00, or Z.")
        }
        DateTimeError::Infinite => SqlError::unsupported(format!("{short} \"{quoted}\"")),
    }
}
