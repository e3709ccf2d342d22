//! Spans of time as PostgreSQL has them: months, days and microseconds, each with its own sign.
//!
//! No column can have the type INTERVAL yet, so it is no [`crate::SqlType`]; queries compute with
//! intervals, and their text form is read and written here.

use std::fmt;

use super::datetime::MICROS_PER_SECOND;
use crate::{SqlError, SqlState};

/// A span of time. A month and a day have no fixed length, so the three parts stay apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interval {
    /// Whole months; a year is twelve of them.
    pub months: i32,
    /// Whole days; a week is seven of them.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

const MICROS_PER_HOUR: i64 = 3600 * MICROS_PER_SECOND;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;

/// What a number in an interval counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

impl Unit {
    fn named(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "millenniums" | "mil" | "mils" => Self::Months(12_000),
            "century" | "centuries" | "cent" | "c" => Self::Months(1200),
            "decade" | "decades" | "dec" | "decs" => Self::Months(120),
            "year" | "years" | "yr" | "yrs" | "y" => Self::Months(12),
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "week" | "weeks" | "w" => Self::Days(7),
            "day" | "days" | "d" => Self::Days(1),
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Micros(MICROS_PER_HOUR),
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Micros(MICROS_PER_MINUTE),
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Micros(MICROS_PER_SECOND),
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Self::Micros(1000),
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Self::Micros(1),
            _ => return None,
        })
    }
}

/// Why a text is no interval.
enum Fault {
    Syntax,
    Range,
}

impl Interval {
    /// Reads PostgreSQL's text form: numbers with units, `HH:MM:SS`, `ago` at the end. A number
    /// without unit counts `unit` (`YEAR`, `DAY`, ...; seconds if there is none).
    ///
    /// # Errors
    /// 22007 for a text that is no interval, 22015 for one beyond the range.
    pub fn parse(text: &str, unit: Option<&str>) -> Result<Self, SqlError> {
        read(text, unit).map_err(|fault| match fault {
            Fault::Syntax => {
                let message = format!("invalid input syntax for type interval: \"{text}\"");
                SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
            }
            Fault::Range => {
                let message = format!("interval field value out of range: \"{text}\"");
                SqlError::new(SqlState::INTERVAL_FIELD_OVERFLOW, message)
            }
        })
    }

    /// Adds `number` units; what is left of a month goes to days, of a day to microseconds.
    fn add(&mut self, number: Number, unit: Unit) -> Result<(), Fault> {
        match unit {
            Unit::Months(months) => {
                let total = number.times(months)?;
                let whole = i32::try_from(total.whole).map_err(|_| Fault::Range)?;
                self.months = self.months.checked_add(whole).ok_or(Fault::Range)?;
                // Fractions of years are whole months and no more.
                if months == 1 && total.billionths != 0 {
                    self.add(Number { whole: 0, billionths: total.billionths }, Unit::Days(30))?;
                }
            }
            Unit::Days(days) => {
                let total = number.times(days)?;
                let whole = i32::try_from(total.whole).map_err(|_| Fault::Range)?;
                self.days = self.days.checked_add(whole).ok_or(Fault::Range)?;
                if total.billionths != 0 {
                    let rest = Number { whole: 0, billionths: total.billionths };
                    self.add(rest, Unit::Micros(24 * MICROS_PER_HOUR))?;
                }
            }
            Unit::Micros(micros) => {
                let total = number.times(micros)?;
                let rounded =
                    total.whole + (total.billionths + total.billionths.signum() * 500_000_000) / BILLION;
                self.micros = self.micros.checked_add(rounded).ok_or(Fault::Range)?;
            }
        }
        Ok(())
    }

    fn negated(self) -> Result<Self, Fault> {
        Ok(Self {
            months: self.months.checked_neg().ok_or(Fault::Range)?,
            days: self.days.checked_neg().ok_or(Fault::Range)?,
            micros: self.micros.checked_neg().ok_or(Fault::Range)?,
        })
    }
}

const BILLION: i64 = 1_000_000_000;

/// A decimal number: both parts have its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    billionths: i64,
}

impl Number {
    fn read(text: &str) -> Result<Self, Fault> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty()
            || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        {
            return Err(Fault::Syntax);
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Fault::Range)? };
        let padded = format!("{fraction:0<9}");
        let billionths: i64 = padded.get(..9).and_then(|d| d.parse().ok()).ok_or(Fault::Syntax)?;
        let sign = if negative { -1 } else { 1 };
        Ok(Self { whole: sign * whole, billionths: sign * billionths })
    }

    fn times(self, factor: i64) -> Result<Self, Fault> {
        let billionths = i128::from(self.billionths) * i128::from(factor);
        let whole = i128::from(self.whole) * i128::from(factor) + billionths / i128::from(BILLION);
        Ok(Self {
            whole: i64::try_from(whole).map_err(|_| Fault::Range)?,
            billionths: (billionths % i128::from(BILLION)) as i64,
        })
    }
}

fn read(text: &str, unit: Option<&str>) -> Result<Interval, Fault> {
    let mut interval = Interval::default();
    let spaced = separated(text);
    let mut words = spaced.split_ascii_whitespace().peekable();
    if words.peek() == Some(&"@") {
        words.next();
    }
    let mut any = false;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") && any && words.peek().is_none() {
            return interval.negated();
        }
        if word.contains(':') {
            interval.micros = interval.micros.checked_add(clock(word)?).ok_or(Fault::Range)?;
        } else {
            let number = Number::read(word)?;
            let next = words.next_if(|next| Unit::named(next).is_some());
            let name = next.or(unit).unwrap_or("second");
            interval.add(number, Unit::named(name).ok_or(Fault::Syntax)?)?;
        }
        any = true;
    }
    if any { Ok(interval) } else { Err(Fault::Syntax) }
}

/// The text with a blank between each number and the unit behind it.
fn separated(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut last = ' ';
    for c in text.chars() {
        if c.is_ascii_alphabetic() && (last.is_ascii_digit() || last == '.') {
            spaced.push(' ');
        }
        spaced.push(c);
        last = c;
    }
    spaced
}

/// `[-]HH:MM[:SS[.ffffff]]` in microseconds.
fn clock(text: &str) -> Result<i64, Fault> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = rest.split(':');
    let mut whole = |limit: i64| -> Result<i64, Fault> {
        let part = parts.next().ok_or(Fault::Syntax)?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Syntax);
        }
        part.parse().ok().filter(|n| *n <= limit).ok_or(Fault::Range)
    };
    let hours = whole(i64::MAX / MICROS_PER_HOUR - 1)?;
    let minutes = whole(59)?;
    let seconds = match parts.next() {
        Some(seconds) => Number::read(seconds)?.times(MICROS_PER_SECOND)?.whole,
        None => 0,
    };
    if parts.next().is_some() || !(0..60 * MICROS_PER_SECOND).contains(&seconds) {
        return Err(Fault::Syntax);
    }
    let micros = hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE + seconds;
    Ok(if negative { -micros } else { micros })
}

/// PostgreSQL's text form, such as `1 year 2 mons -3 days +04:05:06.7`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (years, months) = (self.months / 12, self.months % 12);
        let mut first = true;
        let mut after_negative = false;
        for (number, name) in [(years, "year"), (months, "mon"), (self.days, "day")] {
            if number == 0 {
                continue;
            }
            let space = if first { "" } else { " " };
            let plus = if after_negative && number > 0 { "+" } else { "" };
            let plural = if number == 1 { "" } else { "s" };
            write!(f, "{space}{plus}{number} {name}{plural}")?;
            first = false;
            after_negative = number < 0;
        }
        if self.micros == 0 && !first {
            return Ok(());
        }
        let sign = match self.micros < 0 {
            true => "-",
            false if after_negative => "+",
            false => "",
        };
        let micros = self.micros.unsigned_abs();
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let space = if first { "" } else { " " };
        write!(f, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        if fraction != 0 {
            f.write_str(format!(".{fraction:06}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_text_is_read_and_written_as_postgres_does() {
        // Asked of PostgreSQL 15.
        let cases = [
            ("1 day 02:03:04", "1 day 02:03:04"),
            ("90 days", "90 days"),
            ("1 year 2 months", "1 year 2 mons"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 days", "1 day 12:00:00"),
            ("1 week", "7 days"),
            ("-1 day +02:00", "-1 days +02:00:00"),
            ("1 day ago", "-1 days"),
            ("36 hours", "36:00:00"),
            ("1.25 seconds", "00:00:01.25"),
            ("5", "00:00:05"),
            ("1y 2mon 3d 4h 5m 6s", "1 year 2 mons 3 days 04:05:06"),
            ("-13 months", "-1 years -1 mons"),
            ("0 days", "00:00:00"),
            ("-00:00:01.5", "-00:00:01.5"),
        ];
        for (text, expected) in cases {
            assert_eq!(Interval::parse(text, None).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(Interval::parse("3", Some("MONTH")).unwrap().to_string(), "3 mons");
    }

    #[test]
    fn interval_of_nonsense_is_refused_with_its_state() {
        for text in ["", "day", "1 fortnight", "1 2:3:4:5", "ago", "x", "1:99", "--1 day", "1 day ago 2 days"]
        {
            let state = Interval::parse(text, None).unwrap_err().state().to_string();
            assert!(state == "22007" || state == "22015", "{text}: {state}");
        }
        let state = Interval::parse("999999999999 years", None).unwrap_err().state().to_string();
        assert_eq!(state, "22015");
    }
}
