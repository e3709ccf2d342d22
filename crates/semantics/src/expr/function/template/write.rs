//! Dates, times and intervals written by a template.

use std::fmt::Write;

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{Interval, SqlError, SqlState};

use super::super::Result;
use super::super::part::iso;
use super::{Case, DAYS, MONTHS, Pattern, Piece, ROMAN, ordinal, pieces};

/// Days from the first of Julian days to 1970-01-01.
const JULIAN: i64 = 2_440_588;

/// The fields of a moment or an interval.
struct Fields {
    year: i64,
    /// From 1; of an interval, the months beside whole years.
    month: i64,
    day: i64,
    /// Microseconds of the day.
    micros: i64,
    day_of_year: i64,
    /// Days since 1970-01-01.
    days: i64,
    is_interval: bool,
    has_zone: bool,
}

/// A moment by a template; `zoned` if it is a TIMESTAMPTZ.
pub(super) fn moment(micros: i64, zoned: bool, template: &str) -> String {
    let days = micros.div_euclid(MICROS_PER_DAY);
    let civil = Civil::from_days(days);
    let first = Civil { year: civil.year, month: 1, day: 1 }.to_days();
    let fields = Fields {
        year: civil.year,
        month: i64::from(civil.month),
        day: i64::from(civil.day),
        micros: micros.rem_euclid(MICROS_PER_DAY),
        day_of_year: days - first + 1,
        days,
        is_interval: false,
        has_zone: zoned,
    };
    written(&fields, template)
}

/// An interval by a template.
pub(super) fn interval(interval: Interval, template: &str) -> Result<String> {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let day = i64::from(interval.days);
    let forbidden =
        ["AD", "A.D.", "BC", "B.C.", "DAY", "DY", "D", "ID", "MONTH", "MON", "TZ", "OF", "TZH", "TZM"];
    for piece in pieces(template) {
        if let Piece::Pattern(pattern) = piece
            && forbidden.contains(&pattern.name)
        {
            let message = "invalid format specification for an interval value";
            return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
                .with_hint("Intervals are not tied to specific calendar dates."));
        }
    }
    let fields = Fields {
        year: years,
        month: months,
        day,
        micros: interval.micros,
        day_of_year: (years * 12 + months) * 30 + day,
        days: julian(years, months, day) - JULIAN,
        is_interval: true,
        has_zone: false,
    };
    Ok(written(&fields, template))
}

/// The Julian day of a date, whose month and day may be beyond the calendar's.
pub(super) fn julian(year: i64, month: i64, day: i64) -> i64 {
    let (month, year) = if month > 2 { (month + 1, year + 4800) } else { (month + 13, year + 4799) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

fn written(fields: &Fields, template: &str) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    for piece in pieces(template) {
        match piece {
            Piece::Char(c) | Piece::Space(c) | Piece::Separator(c) => out.push(c),
            Piece::Pattern(pattern) => fields.write(&mut out, pattern),
        }
    }
    out
}

impl Fields {
    /// The year as people count it.
    fn era_year(&self, year: i64) -> i64 {
        if self.is_interval || year > 0 { year } else { 1 - year }
    }

    fn write(&self, out: &mut String, pattern: Pattern) {
        if let Some((number, width)) = self.number(pattern) {
            // Only these make room for a sign.
            let signed = number < 0 && !matches!(pattern.name, "DD" | "DDD" | "WW" | "IW" | "IDDD");
            let width = if pattern.fill || width == 0 { 0 } else { width + usize::from(signed) };
            let text = format!("{number:0width$}");
            out.push_str(&text);
            if let Some(capitals) = pattern.ordinal {
                out.push_str(ordinal(&text, capitals));
            }
            return;
        }
        let text = self.word(pattern);
        // Names in full are as long as the longest, unless they are a language's own.
        let width = match pattern.name {
            "MONTH" | "DAY" if !pattern.fill && !pattern.local => 9,
            "RM" if !pattern.fill && !text.is_empty() => 4,
            _ => 0,
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "{text:width$}");
        if let (Some(capitals), "Y,YYY") = (pattern.ordinal, pattern.name) {
            out.push_str(ordinal(&text, capitals));
        }
    }

    /// What a pattern of digits gives, and how wide it is; 0 if as wide as it is.
    fn number(&self, pattern: Pattern) -> Option<(i64, usize)> {
        let seconds = self.micros / MICROS_PER_SECOND;
        let fraction = self.micros % MICROS_PER_SECOND;
        let hour = seconds / 3600;
        let year = self.era_year(self.year);
        let iso_year = || match self.is_interval {
            true => iso(self.days).0,
            false => self.era_year(iso(self.days).0),
        };
        Some(match pattern.name {
            "HH24" => (hour, 2),
            "HH12" | "HH" => (if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            "MI" => (seconds / 60 % 60, 2),
            "SS" => (seconds % 60, 2),
            "SSSS" | "SSSSS" => (seconds, 0),
            "FF1" => (fraction / 100_000, 1),
            "FF2" => (fraction / 10_000, 2),
            "FF3" | "MS" => (fraction / 1000, 3),
            "FF4" => (fraction / 100, 4),
            "FF5" => (fraction / 10, 5),
            "FF6" | "US" => (fraction, 6),
            "MM" => (self.month, 2),
            "DD" => (self.day, 2),
            "DDD" => (self.day_of_year, 3),
            "IDDD" => (self.days - super::read::iso_week_start(iso(self.days).0, 1) + 1, 3),
            "D" => ((self.days + 4).rem_euclid(7) + 1, 0),
            "ID" => ((self.days + 3).rem_euclid(7) + 1, 0),
            "WW" => ((self.day_of_year - 1) / 7 + 1, 2),
            "IW" => (iso(self.days).1, 2),
            "W" => ((self.day - 1) / 7 + 1, 0),
            "Q" if self.month != 0 => ((self.month - 1) / 3 + 1, 0),
            "CC" => self.century(),
            "YYYY" => (year, 4),
            "YYY" => (year % 1000, 3),
            "YY" => (year % 100, 2),
            "Y" => (year % 10, 1),
            "IYYY" => (iso_year(), 4),
            "IYY" => (iso_year() % 1000, 3),
            "IY" => (iso_year() % 100, 2),
            "I" => (iso_year() % 10, 1),
            "J" => (self.days + JULIAN, 0),
            _ => return None,
        })
    }

    fn century(&self) -> (i64, usize) {
        let century = match self.year {
            year if self.is_interval => year / 100,
            year if year > 0 => (year - 1) / 100 + 1,
            year => year / 100 - 1,
        };
        (century, if century.abs() <= 99 { 2 } else { 0 })
    }

    /// What a pattern of letters gives.
    fn word(&self, pattern: Pattern) -> String {
        let afternoon = (self.micros / MICROS_PER_SECOND / 3600) % 24 >= 12;
        let before = self.year <= 0;
        let month = || MONTHS[(self.month - 1).rem_euclid(12) as usize];
        let day = || DAYS[(self.days + 4).rem_euclid(7) as usize];
        let text = match pattern.name {
            "AM" | "PM" => if afternoon { "PM" } else { "AM" }.to_owned(),
            "A.M." | "P.M." => if afternoon { "P.M." } else { "A.M." }.to_owned(),
            "AD" | "BC" => if before { "BC" } else { "AD" }.to_owned(),
            "A.D." | "B.C." => if before { "B.C." } else { "A.D." }.to_owned(),
            "MONTH" => month().to_owned(),
            "MON" => month()[..3].to_owned(),
            "DAY" => day().to_owned(),
            "DY" => day()[..3].to_owned(),
            "RM" => return self.roman(pattern.case),
            "TZ" => if self.has_zone { "UTC" } else { "" }.to_owned(),
            "TZH" => "+00".to_owned(),
            "TZM" => "00".to_owned(),
            "OF" => if pattern.fill { "+0" } else { "+00" }.to_owned(),
            "Y,YYY" => {
                let year = self.era_year(self.year);
                format!("{},{:03}", year / 1000, year % 1000)
            }
            _ => String::new(),
        };
        match pattern.case {
            Case::Capitals => text.to_uppercase(),
            Case::First => text,
            Case::Small => text.to_lowercase(),
        }
    }

    /// The month as a Roman number; an interval may have none.
    fn roman(&self, case: Case) -> String {
        let month = match self.month {
            0 if self.year == 0 => return String::new(),
            0 if self.year > 0 => 12,
            0 => 12,
            month if month < 0 => 13 + month,
            month => month,
        };
        let text = ROMAN[((month - 1).rem_euclid(12)) as usize];
        if case == Case::Small { text.to_lowercase() } else { text.to_owned() }
    }
}
