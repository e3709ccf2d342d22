//! `to_char`, `to_date` and `to_timestamp`: dates, times and numbers by PostgreSQL's templates.
//!
//! A pattern that is not known here is refused (0A000), never copied as if it were text.

use std::fmt::Write;
use std::sync::Arc;

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{Decimal, SqlError, SqlState};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use super::casts::{TIMESTAMP, interval_of};
use super::numerals;
use super::rowwise::{self, is_text, text, text_value};
use super::temporal::{day_of_year, is_moment, iso_week};
use crate::errors::internal;

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
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Patterns, longer ones before those they begin with.
const PATTERNS: [&str; 38] = [
    "YYYY", "YYY", "YY", "Y,YYY", "Y", "IYYY", "IW", "ID", "MONTH", "Month", "month", "MON", "Mon", "mon",
    "MM", "MI", "MS", "DAY", "Day", "day", "DDD", "DD", "DY", "Dy", "dy", "D", "HH24", "HH12", "HH", "SSSS",
    "SS", "US", "AM", "PM", "am", "pm", "WW", "Q",
];

/// A piece of a template.
enum Piece<'t> {
    /// A pattern; whether `FM` stands before it.
    Pattern(&'static str, bool),
    /// Text to be copied.
    Text(&'t str),
}

fn unknown(template: &str) -> SqlError {
    SqlError::unsupported(format!("the template \"{template}\""))
        .with_hint(format!("Known patterns are {}; put other letters in double quotes.", PATTERNS.join(", ")))
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>, SqlError> {
    let mut pieces = Vec::new();
    let mut rest = template;
    let mut fill = false;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or_else(|| unknown(template))?;
            pieces.push(Piece::Text(&quoted[..end]));
            rest = &quoted[end + 1..];
        } else if let Some(after) = rest.strip_prefix("FM") {
            fill = true;
            rest = after;
        } else if let Some((pattern, length)) = pattern_at(rest) {
            pieces.push(Piece::Pattern(pattern, fill));
            fill = false;
            rest = &rest[length..];
        } else if first.is_ascii_alphabetic() {
            return Err(unknown(template));
        } else {
            pieces.push(Piece::Text(&rest[..first.len_utf8()]));
            rest = &rest[first.len_utf8()..];
        }
        // Ordinal suffixes belong to the pattern before them.
        if rest.starts_with("TH") || rest.starts_with("th") {
            return Err(unknown(template));
        }
    }
    Ok(pieces)
}

/// The pattern a text begins with. Numeric ones may be written small as well.
fn pattern_at(text: &str) -> Option<(&'static str, usize)> {
    let found = PATTERNS.into_iter().find(|pattern| text.starts_with(*pattern)).or_else(|| {
        let numeric = PATTERNS
            .into_iter()
            .filter(|p| !p.starts_with("MON") && !matches!(*p, "DAY" | "DY" | "AM" | "PM"));
        numeric.into_iter().find(|p| text.get(..p.len()).is_some_and(|head| head.eq_ignore_ascii_case(p)))
    })?;
    Some((found, found.len()))
}

/// The functions of this module.
pub(crate) fn row_functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        rowwise::function("to_char", to_char_type, to_char),
        rowwise::function("to_date", to_date_type, to_date),
        rowwise::function("to_timestamp", to_timestamp_type, to_timestamp),
    ]
}

fn to_char_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let [value, template] = args else { return None };
    let value = match value {
        DataType::Date32 => TIMESTAMP,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..) => value.clone(),
        _ => return None,
    };
    is_text(template).then(|| (vec![value, DataType::Utf8View], DataType::Utf8View))
}

fn to_char(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let template = text(&args[1]);
    let number =
        |unscaled: i128, scale: u8| numerals::write(Decimal::new(unscaled, scale), template).map(text_value);
    match &args[0] {
        ScalarValue::TimestampMicrosecond(Some(moment), _) => write_moment(*moment, template).map(text_value),
        ScalarValue::Int16(Some(v)) => number(i128::from(*v), 0),
        ScalarValue::Int32(Some(v)) => number(i128::from(*v), 0),
        ScalarValue::Int64(Some(v)) => number(i128::from(*v), 0),
        ScalarValue::Decimal128(Some(v), _, scale) => number(*v, u8::try_from(*scale).unwrap_or(0)),
        other => match interval_of(other) {
            Some(_) => Err(SqlError::unsupported("to_char of an interval")),
            None => Err(internal(format!("to_char of {other}"))),
        },
    }
}

fn write_moment(moment: i64, template: &str) -> Result<String, SqlError> {
    let (days, micros) = (moment.div_euclid(MICROS_PER_DAY), moment.rem_euclid(MICROS_PER_DAY));
    let civil = Civil::from_days(days);
    let mut out = String::new();
    for piece in pieces(template)? {
        let (pattern, fill) = match piece {
            Piece::Text(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Pattern(pattern, fill) => (pattern, fill),
        };
        let mut number = |value: i64, width: usize| {
            let width = if fill { 0 } else { width };
            // Writing to a String cannot fail.
            let _ = write!(out, "{value:0width$}");
        };
        let year = if civil.year <= 0 { 1 - civil.year } else { civil.year };
        let hour = micros / (3600 * MICROS_PER_SECOND);
        let week_day = (days + 4).rem_euclid(7);
        match pattern {
            "YYYY" => number(year, 4),
            "YYY" => number(year % 1000, 3),
            "YY" => number(year % 100, 2),
            "Y" => number(year % 10, 1),
            "Y,YYY" => {
                let _ = write!(out, "{},{:03}", year / 1000, year % 1000);
            }
            "IYYY" => number(iso_week(days).0, 4),
            "IW" => number(iso_week(days).1, 2),
            "ID" => number((days + 3).rem_euclid(7) + 1, 1),
            "MM" => number(i64::from(civil.month), 2),
            "DD" => number(i64::from(civil.day), 2),
            "DDD" => number(day_of_year(days), 3),
            "D" => number(week_day + 1, 1),
            "HH24" => number(hour, 2),
            "HH12" | "HH" => number((hour + 11) % 12 + 1, 2),
            "MI" => number(micros / (60 * MICROS_PER_SECOND) % 60, 2),
            "SS" => number(micros / MICROS_PER_SECOND % 60, 2),
            "SSSS" => number(micros / MICROS_PER_SECOND, 1),
            "MS" => number(micros % MICROS_PER_SECOND / 1000, 3),
            "US" => number(micros % MICROS_PER_SECOND, 6),
            "WW" => number((day_of_year(days) - 1) / 7 + 1, 2),
            "Q" => number(i64::from((civil.month - 1) / 3 + 1), 1),
            "AM" | "PM" => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            "am" | "pm" => out.push_str(if hour < 12 { "am" } else { "pm" }),
            name => out.push_str(&name_of(name, civil.month, week_day, fill)),
        }
    }
    Ok(out)
}

/// The name of the month or day a pattern asks for, in the pattern's case.
fn name_of(pattern: &str, month: u8, week_day: i64, fill: bool) -> String {
    let is_month = pattern.to_ascii_lowercase().starts_with("mon");
    let full = match is_month {
        true => MONTHS[usize::from(month - 1) % 12],
        false => DAYS[week_day as usize % 7],
    };
    let is_short = matches!(pattern.len(), 2) || pattern.len() == 3 && is_month;
    let name = if is_short { &full[..3] } else { full };
    let name = match pattern.as_bytes() {
        [first, second, ..] if first.is_ascii_uppercase() && second.is_ascii_uppercase() => {
            name.to_uppercase()
        }
        [first, ..] if first.is_ascii_uppercase() => name.to_owned(),
        _ => name.to_lowercase(),
    };
    // Full names are padded to the longest one's length.
    if is_short || fill { name } else { format!("{name:9}") }
}

fn to_date_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let texts = args.len() == 2 && args.iter().all(is_text);
    texts.then(|| (vec![DataType::Utf8View; 2], DataType::Date32))
}

fn to_date(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let moment = read_moment(text(&args[0]), text(&args[1]))?;
    let days = i32::try_from(moment.div_euclid(MICROS_PER_DAY)).map_err(|_| out_of_range(text(&args[0])))?;
    Ok(ScalarValue::Date32(Some(days)))
}

fn to_timestamp_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let result = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    match args {
        [a, b] if is_text(a) && is_text(b) => Some((vec![DataType::Utf8View; 2], result)),
        [ty] if ty.is_numeric() => Some((vec![DataType::Float64], result)),
        [ty] if is_moment(ty) => None,
        _ => None,
    }
}

fn to_timestamp(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let moment = match args {
        [ScalarValue::Float64(Some(seconds))] => {
            let micros = (seconds * 1e6).round_ties_even();
            if !micros.is_finite() || micros.abs() > 9.0e18 {
                return Err(out_of_range(&seconds.to_string()));
            }
            micros as i64
        }
        [value, template] => read_moment(text(value), text(template))?,
        _ => return Err(internal("to_timestamp takes one or two arguments")),
    };
    Ok(ScalarValue::TimestampMicrosecond(Some(moment), Some(Arc::from("UTC"))))
}

fn out_of_range(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// The fields read so far.
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    afternoon: Option<bool>,
}

fn read_moment(input: &str, template: &str) -> Result<i64, SqlError> {
    let mut fields =
        Fields { year: 1, month: 1, day: 1, hour: 0, minute: 0, second: 0, micros: 0, afternoon: None };
    let mut rest = input;
    let pieces = pieces(template)?;
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) if text.chars().all(|c| !c.is_alphanumeric()) => {
                rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '-');
                rest = rest.strip_prefix('-').unwrap_or(rest);
            }
            Piece::Text(text) => rest = rest.get(text.len()..).unwrap_or_default(),
            Piece::Pattern(pattern, _) => {
                rest = rest.trim_start();
                // Digits end where the next pattern begins only if nothing stands between them.
                let packed = matches!(pieces.get(i + 1), Some(Piece::Pattern(..)));
                rest = fields.read(pattern, rest, packed, template)?;
            }
        }
    }
    fields.moment().ok_or_else(|| out_of_range(input))
}

impl Fields {
    /// Reads one pattern and gives what is left.
    fn read<'i>(
        &mut self,
        pattern: &str,
        input: &'i str,
        packed: bool,
        template: &str,
    ) -> Result<&'i str, SqlError> {
        if matches!(pattern, "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon") {
            let is_short = pattern.len() == 3;
            let begins = |name: &&str| {
                let name = if is_short { &name[..3] } else { name };
                input.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
            };
            let Some(month) = MONTHS.iter().position(begins) else {
                return Err(invalid(input, pattern));
            };
            self.month = month as i64 + 1;
            return Ok(&input[if is_short { 3 } else { MONTHS[month].len() }..]);
        }
        if matches!(pattern, "AM" | "PM" | "am" | "pm") {
            let half = input.get(..2).map(str::to_ascii_lowercase);
            self.afternoon = match half.as_deref() {
                Some("am") => Some(false),
                Some("pm") => Some(true),
                _ => return Err(invalid(input, pattern)),
            };
            return Ok(&input[2..]);
        }
        let width = match pattern {
            "YYYY" => 4,
            "MM" | "DD" | "HH24" | "HH12" | "HH" | "MI" | "SS" => 2,
            "MS" => 3,
            "US" => 6,
            _ => return Err(unknown(template)),
        };
        let limit = if pattern == "YYYY" && !packed { 9 } else { width };
        let digits = input.bytes().take(limit).take_while(u8::is_ascii_digit).count();
        let Ok(number) = input[..digits].parse::<i64>() else { return Err(invalid(input, pattern)) };
        match pattern {
            "YYYY" => self.year = number,
            "MM" => self.month = number,
            "DD" => self.day = number,
            "MI" => self.minute = number,
            "SS" => self.second = number,
            "MS" | "US" => self.micros = number * 10_i64.pow(6 - digits as u32),
            "HH24" => self.hour = number,
            _ if (1..=12).contains(&number) => self.hour = number,
            _ => {
                let message = format!("hour \"{number}\" is invalid for the 12-hour clock");
                return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message));
            }
        }
        Ok(&input[digits..])
    }

    fn moment(&self) -> Option<i64> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let civil = Civil {
            year: self.year,
            month: u8::try_from(self.month).ok()?,
            day: u8::try_from(self.day).ok()?,
        };
        let in_range = civil.exists() && hour < 24 && self.minute < 60 && self.second < 60 && self.year > 0;
        if !in_range {
            return None;
        }
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        civil.to_days().checked_mul(MICROS_PER_DAY)?.checked_add(seconds * MICROS_PER_SECOND + self.micros)
    }
}

fn invalid(input: &str, pattern: &str) -> SqlError {
    let head: String = input.chars().take(pattern.len()).collect();
    let message = format!("invalid value \"{head}\" for \"{pattern}\"");
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}
