//! The proleptic Gregorian calendar in days and microseconds since 1970-01-01, and PostgreSQL's
//! ISO text form of dates and times.
//!
//! Arithmetic after Hinnant, "chrono-compatible low-level date algorithms": eras of 400 years
//! that begin on the first of March. The usual crates stop at year 262,143 or 9,999; PostgreSQL's
//! DATE goes to 5,874,897.

use std::fmt;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// First and last year of DATE (4713 BC is astronomical year -4712).
const DATE_YEARS: std::ops::RangeInclusive<i64> = -4712..=5_874_897;
/// First and last year of TIMESTAMP. PostgreSQL ends 29 years later, because its microseconds
/// count from 2000.
const TIMESTAMP_YEARS: std::ops::RangeInclusive<i64> = -4712..=294_247;
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_SHIFT: i64 = 719_468;

/// A calendar day, astronomical years: 0 is 1 BC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// The year; 0 is 1 BC, -1 is 2 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Civil {
    /// The day that is `days` after 1970-01-01.
    pub fn from_days(days: i64) -> Self {
        let shifted = days + EPOCH_SHIFT;
        let era = shifted.div_euclid(DAYS_PER_ERA);
        let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month: month as u8, day: day as u8 }
    }

    /// Days since 1970-01-01.
    pub fn to_days(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = self.year - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * DAYS_PER_ERA + day_of_era - EPOCH_SHIFT
    }

    /// Whether such a day is in the calendar.
    pub fn exists(self) -> bool {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let last = match self.month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u8::from(leap),
            1..=12 => 31,
            _ => return false,
        };
        (1..=last).contains(&self.day)
    }
}

/// Why a text is no date or time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DateTimeError {
    /// Not of the form of a date or time.
    Syntax,
    /// A field that no calendar or clock has, such as month 13.
    Field,
    /// A real date outside the type's range.
    Range,
    /// An offset of 16 hours or more.
    ZoneOffset,
    /// A zone we do not know by name.
    ZoneName,
    /// `infinity`.
    Infinite,
}

type Result<T> = std::result::Result<T, DateTimeError>;

/// A date with what may follow it.
struct Moment {
    date: Civil,
    /// Microseconds since midnight.
    time: i64,
    /// Seconds east of UTC, when written.
    offset: Option<i64>,
}

/// DATE: days since 1970-01-01. A time of day after the date is read and dropped, as PostgreSQL
/// does.
pub(super) fn parse_date(text: &str) -> Result<i32> {
    let moment = parse_moment(text)?;
    in_range(&moment.date, &DATE_YEARS)?;
    i32::try_from(moment.date.to_days()).map_err(|_| DateTimeError::Range)
}

/// TIME: microseconds since midnight, up to 24:00.
pub(super) fn parse_time(text: &str) -> Result<i64> {
    let mut scan = Scan(text.trim_ascii().as_bytes());
    let time = scan.time()?;
    if scan.0.is_empty() { Ok(time) } else { Err(DateTimeError::Syntax) }
}

/// TIMESTAMP: microseconds since 1970-01-01 00:00. An offset is read and ignored, as PostgreSQL
/// does.
pub(super) fn parse_timestamp(text: &str) -> Result<i64> {
    timestamp_micros(&parse_moment(text)?, 0)
}

/// TIMESTAMPTZ: microseconds since 1970-01-01 00:00 UTC. Without an offset the text is in UTC.
pub(super) fn parse_timestamptz(text: &str) -> Result<i64> {
    let moment = parse_moment(text)?;
    timestamp_micros(&moment, moment.offset.unwrap_or(0))
}

fn timestamp_micros(moment: &Moment, offset_seconds: i64) -> Result<i64> {
    in_range(&moment.date, &TIMESTAMP_YEARS)?;
    let micros_of_day = moment.time - offset_seconds * MICROS_PER_SECOND;
    // The last year does not fit whole.
    let midnight = moment.date.to_days().checked_mul(MICROS_PER_DAY);
    midnight.and_then(|m| m.checked_add(micros_of_day)).ok_or(DateTimeError::Range)
}

fn in_range(date: &Civil, years: &std::ops::RangeInclusive<i64>) -> Result<()> {
    if years.contains(&date.year) { Ok(()) } else { Err(DateTimeError::Range) }
}

fn parse_moment(text: &str) -> Result<Moment> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("epoch") {
        let date = Civil { year: 1970, month: 1, day: 1 };
        return Ok(Moment { date, time: 0, offset: None });
    }
    if text.trim_start_matches(['-', '+']).eq_ignore_ascii_case("infinity") {
        return Err(DateTimeError::Infinite);
    }
    let (text, before_christ) = match text.len().checked_sub(3).and_then(|at| text.split_at_checked(at)) {
        Some((rest, era)) if era.eq_ignore_ascii_case(" bc") => (rest.trim_ascii_end(), true),
        Some((rest, era)) if era.eq_ignore_ascii_case(" ad") => (rest.trim_ascii_end(), false),
        _ => (text, false),
    };
    let mut scan = Scan(text.as_bytes());
    let mut date = scan.date()?;
    if before_christ {
        date.year = 1 - date.year;
    }
    // The leap day is checked in the year that is meant.
    if date.year == 0 && !before_christ || !date.exists() {
        return Err(DateTimeError::Field);
    }
    let mut moment = Moment { date, time: 0, offset: None };
    let separated = scan.skip(|b| b == b' ') || scan.skip_one(|b| matches!(b, b'T' | b't'));
    if separated && scan.0.first().is_some_and(u8::is_ascii_digit) {
        moment.time = scan.time()?;
        scan.skip(|b| b == b' ');
    }
    if !scan.0.is_empty() {
        moment.offset = Some(scan.zone()?);
    }
    Ok(moment)
}

/// What is left of a text.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn skip_one(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.0.first().is_some_and(|b| wanted(*b));
        self.0 = &self.0[usize::from(found)..];
        found
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let mut any = false;
        while self.skip_one(&wanted) {
            any = true;
        }
        any
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.skip_one(|b| b == byte) { Ok(()) } else { Err(DateTimeError::Syntax) }
    }

    /// A whole number and how many digits it was written with, at most nine.
    fn number(&mut self) -> Result<(i64, usize)> {
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return Err(DateTimeError::Syntax);
        }
        let (head, rest) = self.0.split_at(digits);
        self.0 = rest;
        Ok((head.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')), digits))
    }

    /// A field of one or two digits.
    fn field(&mut self) -> Result<i64> {
        match self.number()? {
            (number, 1 | 2) => Ok(number),
            _ => Err(DateTimeError::Syntax),
        }
    }

    /// `YYYY-MM-DD` or `YYYYMMDD`; a year has three digits or more.
    fn date(&mut self) -> Result<Civil> {
        let (number, digits) = self.number()?;
        if digits == 8 && self.0.first() != Some(&b'-') {
            let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
            return Ok(Civil { year, month: month as u8, day: day as u8 });
        }
        if digits < 3 {
            return Err(DateTimeError::Syntax);
        }
        self.expect(b'-')?;
        let month = self.field()? as u8;
        self.expect(b'-')?;
        Ok(Civil { year: number, month, day: self.field()? as u8 })
    }

    /// `HH:MM[:SS[.ffffff]]` in microseconds; further digits are rounded.
    fn time(&mut self) -> Result<i64> {
        let hour = self.field()?;
        self.expect(b':')?;
        let minute = self.field()?;
        let mut second = 0;
        let mut micros = 0;
        if self.skip_one(|b| b == b':') {
            second = self.field()?;
            if self.skip_one(|b| b == b'.') {
                micros = self.fraction();
            }
        }
        let total = (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros;
        // A leap second is the first of the next minute.
        if hour > 24 || minute > 59 || second > 60 || total > MICROS_PER_DAY {
            return Err(DateTimeError::Field);
        }
        Ok(total)
    }

    /// The digits after a second's point, in microseconds.
    fn fraction(&mut self) -> i64 {
        let mut micros = 0;
        let mut place = 0;
        while let Some(digit) = self.0.first().filter(|b| b.is_ascii_digit()) {
            match place {
                0..6 => micros = micros * 10 + i64::from(digit - b'0'),
                6 => micros += i64::from(*digit >= b'5'),
                _ => {}
            }
            place += 1;
            self.0 = &self.0[1..];
        }
        (place..6).fold(micros, |micros, _| micros * 10)
    }

    /// `Z`, `UTC`, `+HH`, `+HHMM`, `+HH:MM`, `+HH:MM:SS` to the end: seconds east of UTC.
    fn zone(&mut self) -> Result<i64> {
        let sign = match self.0.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(b) if b.is_ascii_alphabetic() => {
                let known: [&[u8]; 4] = [b"z", b"utc", b"gmt", b"zulu"];
                let zone = self.0;
                return if known.iter().any(|k| zone.eq_ignore_ascii_case(k)) {
                    Ok(0)
                } else {
                    Err(DateTimeError::ZoneName)
                };
            }
            _ => return Err(DateTimeError::Syntax),
        };
        self.0 = &self.0[1..];
        let (number, digits) = self.number()?;
        let (hours, mut minutes) = if digits > 2 { (number / 100, number % 100) } else { (number, 0) };
        let mut seconds = 0;
        if digits <= 2 && self.skip_one(|b| b == b':') {
            minutes = self.field()?;
            if self.skip_one(|b| b == b':') {
                seconds = self.field()?;
            }
        }
        if !self.0.is_empty() {
            return Err(DateTimeError::Syntax);
        }
        if hours > 15 || minutes > 59 || seconds > 59 {
            return Err(DateTimeError::ZoneOffset);
        }
        Ok(sign * (hours * 3600 + minutes * 60 + seconds))
    }
}

/// `YYYY-MM-DD`, and whether ` BC` must follow at the end.
fn format_day(f: &mut fmt::Formatter<'_>, days: i64) -> std::result::Result<bool, fmt::Error> {
    let civil = Civil::from_days(days);
    let before_christ = civil.year <= 0;
    let year = if before_christ { 1 - civil.year } else { civil.year };
    write!(f, "{year:04}-{:02}-{:02}", civil.month, civil.day)?;
    Ok(before_christ)
}

/// DATE.
pub(super) fn format_date(f: &mut fmt::Formatter<'_>, days: i32) -> fmt::Result {
    let before_christ = format_day(f, i64::from(days))?;
    f.write_str(if before_christ { " BC" } else { "" })
}

/// TIME: `HH:MM:SS` and up to six digits without trailing zeros.
pub(super) fn format_time(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let mut fraction = micros.rem_euclid(MICROS_PER_SECOND);
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction == 0 {
        return Ok(());
    }
    let mut width = 6;
    while fraction % 10 == 0 {
        fraction /= 10;
        width -= 1;
    }
    write!(f, ".{fraction:0width$}")
}

/// TIMESTAMP, or TIMESTAMPTZ with `zone` "+00".
pub(super) fn format_timestamp(f: &mut fmt::Formatter<'_>, micros: i64, zone: &str) -> fmt::Result {
    let before_christ = format_day(f, micros.div_euclid(MICROS_PER_DAY))?;
    f.write_str(" ")?;
    format_time(f, micros.rem_euclid(MICROS_PER_DAY))?;
    f.write_str(zone)?;
    f.write_str(if before_christ { " BC" } else { "" })
}
