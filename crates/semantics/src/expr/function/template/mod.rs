//! `to_char`, `to_date` and `to_timestamp`: dates, times and numbers by templates.
//!
//! Responsible for: taking the templates of dates and times apart. Not responsible for: writing by them
//! (`write`), reading by them (`read`), numbers (`number`).
//!
//! As PostgreSQL has it, what is no pattern is copied, and a pattern is known in capitals or in small letters
//! only, names of months and days with one capital too.

mod number;
mod read;
mod write;

use albireo_base::{SqlError, SqlState, Value};

use super::{Builtin, Result, arg, double_at, entry, str_at, text};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::expr::resolve::NUMERIC;
use crate::types::Scalar;

const TEXT: Scalar = Scalar::Text;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("to_char", &[Scalar::TimestampTz, TEXT], TEXT, to_char),
    entry("to_char", &[Scalar::Timestamp, TEXT], TEXT, to_char),
    entry("to_char", &[Scalar::Interval, TEXT], TEXT, to_char),
    entry("to_char", &[Scalar::Integer, TEXT], TEXT, number_to_char),
    entry("to_char", &[Scalar::BigInt, TEXT], TEXT, number_to_char),
    entry("to_char", &[NUMERIC, TEXT], TEXT, number_to_char),
    entry("to_char", &[Scalar::Real, TEXT], TEXT, number_to_char),
    entry("to_char", &[Scalar::Double, TEXT], TEXT, number_to_char),
    entry("to_date", &[TEXT, TEXT], Scalar::Date, |a| {
        Ok(Value::Date(read::date(str_at(a, 0)?, str_at(a, 1)?)?).into())
    }),
    entry("to_timestamp", &[TEXT, TEXT], Scalar::TimestampTz, |a| {
        Ok(Value::TimestampTz(read::moment(str_at(a, 0)?, str_at(a, 1)?)?).into())
    }),
    entry("to_timestamp", &[Scalar::Double], Scalar::TimestampTz, from_epoch),
];

/// Names of months.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of days.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Roman numbers of months.
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Patterns, longer ones before those they begin with.
const PATTERNS: [&str; 57] = [
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
    "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS",
    "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY",
];

/// How the letters of a pattern are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Capitals,
    First,
    Small,
}

/// A pattern of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pattern {
    /// Its name in capitals.
    name: &'static str,
    case: Case,
    /// As it is written, for messages.
    written: usize,
    /// `FM` before it.
    fill: bool,
    /// `TM` before it.
    local: bool,
    /// `TH` or `th` behind it.
    ordinal: Option<bool>,
}

/// A piece of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    Pattern(Pattern),
    Space(char),
    Separator(char),
    Char(char),
}

/// The pattern a text begins with, and its length.
fn pattern_at(rest: &str) -> Option<(&'static str, Case, usize)> {
    for name in PATTERNS.into_iter().chain(["Y"]) {
        let Some(head) = rest.get(..name.len()) else { continue };
        let mixed = name.len() > 1 && name.as_bytes()[1].is_ascii_lowercase();
        let case = match () {
            () if head == name && mixed => Case::First,
            () if head == name => Case::Capitals,
            () if !mixed && head == name.to_ascii_lowercase() => Case::Small,
            () => continue,
        };
        let capitals = match name {
            "Day" => "DAY",
            "Dy" => "DY",
            "Month" => "MONTH",
            "Mon" => "MON",
            other => other,
        };
        return Some((capitals, case, name.len()));
    }
    None
}

fn is_separator(c: char) -> bool {
    c.is_ascii_graphic() && !c.is_ascii_alphanumeric()
}

/// What C calls a space.
fn is_space(c: char) -> bool {
    crate::expr::text::is_space(c)
}

fn pieces(template: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let (mut fill, mut local) = (false, false);
        // One of them, no more.
        if let Some(prefix) = rest.get(..2).filter(|two| ["FM", "fm", "TM", "tm"].contains(two)) {
            fill = prefix.eq_ignore_ascii_case("fm");
            local = !fill;
            rest = &rest[2..];
        }
        if let Some((name, case, length)) = pattern_at(rest) {
            let mut pattern = Pattern { name, case, written: length, fill, local, ordinal: None };
            rest = &rest[length..];
            if let Some(suffix) = rest.get(..2).filter(|two| ["TH", "th", "SP"].contains(two)) {
                pattern.ordinal = (suffix != "SP").then_some(suffix == "TH");
                rest = &rest[2..];
            }
            pieces.push(Piece::Pattern(pattern));
        } else if let Some(quoted) = rest.strip_prefix('"') {
            rest = quote(quoted, &mut pieces);
        } else if !rest.is_empty() {
            if rest.starts_with("\\\"") {
                rest = &rest[1..];
            }
            let c = rest.chars().next().unwrap_or(' ');
            pieces.push(match c {
                c if is_separator(c) => Piece::Separator(c),
                c if is_space(c) => Piece::Space(c),
                c => Piece::Char(c),
            });
            rest = &rest[c.len_utf8()..];
        }
    }
    pieces
}

/// Takes a text in double quotes, and gives what follows it.
fn quote<'t>(quoted: &'t str, pieces: &mut Vec<Piece>) -> &'t str {
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => pieces.push(Piece::Char(chars.next().unwrap_or('\\'))),
            c => pieces.push(Piece::Char(c)),
        }
    }
    chars.as_str()
}

/// `st`, `nd`, `rd` or `th` of a number.
fn ordinal(number: &str, capitals: bool) -> &'static str {
    let digits = number.as_bytes();
    let last = digits.last().copied().unwrap_or(b'0');
    let teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match (last, capitals) {
        (b'1', true) if !teen => "ST",
        (b'1', false) if !teen => "st",
        (b'2', true) if !teen => "ND",
        (b'2', false) if !teen => "nd",
        (b'3', true) if !teen => "RD",
        (b'3', false) if !teen => "rd",
        (_, true) => "TH",
        (_, false) => "th",
    }
}

fn to_char(args: &[Datum]) -> Result<Datum> {
    let template = str_at(args, 1)?;
    if template.is_empty() {
        return Ok(Datum::NULL);
    }
    text(match arg(args, 0)? {
        Datum::Value(Value::Timestamp(micros)) => write::moment(*micros, false, template),
        Datum::Value(Value::TimestampTz(micros)) => write::moment(*micros, true, template),
        Datum::Interval(interval) => write::interval(*interval, template)?,
        _ => return Err(unexpected()),
    })
}

fn number_to_char(args: &[Datum]) -> Result<Datum> {
    let template = str_at(args, 1)?;
    text(number::write(super::value(args, 0)?, template)?)
}

fn from_epoch(args: &[Datum]) -> Result<Datum> {
    let seconds = double_at(args, 0)?;
    let fault = |message: String| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message);
    if seconds.is_nan() {
        return Err(fault("timestamp cannot be NaN".to_owned()));
    }
    if seconds.is_infinite() {
        return Err(SqlError::unsupported("an infinite timestamp"));
    }
    // PostgreSQL counts from the year 2000.
    const SHIFT: f64 = 946_684_800.0;
    let micros = ((seconds - SHIFT) * 1e6).round_ties_even();
    let first = super::moment::FIRST_MICRO as f64;
    if micros + SHIFT * 1e6 < first || micros + SHIFT * 1e6 >= i64::MAX as f64 {
        return Err(fault(format!("timestamp out of range: \"{seconds}\"")));
    }
    Ok(Value::TimestampTz(micros as i64 + SHIFT as i64 * 1_000_000).into())
}
