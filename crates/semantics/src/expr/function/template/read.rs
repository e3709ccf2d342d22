//! Dates and times read by a template, as leniently as PostgreSQL does.

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{SqlError, SqlState};

use super::super::Result;
use super::super::moment::{DAYS as DATE_DAYS, FIRST_MICRO};
use super::write::julian;
use super::{DAYS, MONTHS, Pattern, Piece, ROMAN, is_separator, is_space, pieces};

/// Days from the first of Julian days to 1970-01-01.
const JULIAN: i64 = 2_440_588;

fn malformed(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn overflow(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// The conventions that the parts of a date follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calendar {
    Gregorian,
    Weeks,
}

/// What was read; 0 is what was not.
#[derive(Default)]
struct Fields {
    calendar: Option<Calendar>,
    hour: i64,
    minute: i64,
    second: i64,
    of_day: i64,
    week_day: i64,
    day: i64,
    day_of_year: i64,
    month: i64,
    millis: i64,
    micros: i64,
    year: i64,
    before_christ: i64,
    week: i64,
    week_of_month: i64,
    century: i64,
    julian: i64,
    year_digits: usize,
    afternoon: i64,
    twelve: bool,
    zone_sign: i64,
    zone_hours: i64,
    zone_minutes: i64,
}

/// `to_date`: days since 1970-01-01.
pub(super) fn date(text: &str, template: &str) -> Result<i32> {
    let (date, _, _) = read(text, template)?;
    let days = julian(date.0, date.1, date.2) - JULIAN;
    let found = i32::try_from(days).ok().filter(|days| DATE_DAYS.contains(&i64::from(*days)));
    found.ok_or_else(|| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// `to_timestamp`: microseconds since 1970 in UTC.
pub(super) fn moment(text: &str, template: &str) -> Result<i64> {
    let (date, time, offset) = read(text, template)?;
    let days = julian(date.0, date.1, date.2) - JULIAN;
    let micros = days.checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(time - offset));
    micros
        .filter(|micros| *micros >= FIRST_MICRO)
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

/// Year, month and day; microseconds of the day; microseconds east of UTC.
type Read = ((i64, i64, i64), i64, i64);

fn read(text: &str, template: &str) -> Result<Read> {
    let pieces = pieces(template);
    let mut reader = Reader { text, rest: text, fixed: false, extra: 0, fields: Fields::default() };
    for at in 0..pieces.len() {
        if reader.rest.is_empty() {
            break;
        }
        reader.piece(&pieces, at)?;
    }
    let fields = reader.fields;
    let time = fields.time(text)?;
    Ok((fields.date(text)?, time, fields.offset(text)?))
}

/// The days since 1970 of the Monday of a week of ISO 8601.
pub(super) fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = julian(year, 1, 4) - JULIAN;
    (week - 1) * 7 + fourth - (fourth + 3).rem_euclid(7)
}

struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
    /// `FX` was met: nothing is skipped.
    fixed: bool,
    /// How many more characters were skipped than the template has.
    extra: i32,
    fields: Fields,
}

impl<'t> Reader<'t> {
    fn skip_spaces(&mut self) {
        while let Some(c) = self.rest.chars().next().filter(|c| is_space(*c)) {
            self.rest = &self.rest[c.len_utf8()..];
            self.extra += 1;
        }
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(c) = self.rest.chars().next() {
                self.rest = &self.rest[c.len_utf8()..];
            }
        }
    }

    fn piece(&mut self, pieces: &[Piece], at: usize) -> Result<()> {
        let piece = pieces[at];
        let is_fx = matches!(piece, Piece::Pattern(Pattern { name: "FX", .. }));
        if !self.fixed && !is_fx && (matches!(piece, Piece::Pattern(_)) || at == 0) {
            self.skip_spaces();
            if self.rest.is_empty() && !matches!(piece, Piece::Pattern(_)) {
                return Ok(());
            }
        }
        match piece {
            Piece::Space(_) | Piece::Separator(_) if self.fixed => self.skip(1),
            Piece::Space(_) | Piece::Separator(_) => {
                self.extra -= 1;
                if self.rest.chars().next().is_some_and(|c| is_space(c) || is_separator(c)) {
                    self.skip(1);
                    self.extra += 1;
                }
            }
            Piece::Char(_) if !self.fixed && self.extra > 0 => self.extra -= 1,
            Piece::Char(_) => self.skip(1),
            Piece::Pattern(pattern) => {
                self.pattern(pattern, pieces.get(at + 1).copied())?;
                if !self.fixed {
                    self.extra = 0;
                    self.skip_spaces();
                }
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: Pattern, next: Option<Piece>) -> Result<()> {
        self.follow(pattern.name)?;
        match pattern.name {
            "FX" => self.fixed = true,
            "TZ" | "OF" => {
                let message = format!("formatting field \"{}\" is only supported in to_char", pattern.name);
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            "TZH" => {
                let before = self.text[..self.text.len() - self.rest.len()].ends_with('-');
                let sign = self.rest.chars().next().filter(|c| matches!(c, '+' | '-' | ' '));
                self.fields.zone_sign = match sign {
                    Some('-') => -1,
                    Some(_) => 1,
                    None if self.extra > 0 && before => -1,
                    None => 1,
                };
                self.skip(usize::from(sign.is_some()));
                self.number(pattern, next, 2)?;
            }
            "Y,YYY" => self.thousands(pattern)?,
            "AM" | "PM" | "A.M." | "P.M." | "AD" | "BC" | "A.D." | "B.C." | "MONTH" | "MON" | "DAY"
            | "DY" | "RM" => {
                self.word(pattern)?;
            }
            name => {
                let width = match name {
                    "HH24" | "HH12" | "HH" | "MI" | "SS" | "TZM" | "MM" => 2,
                    "MS" | "IDDD" => 3,
                    "US" => 6,
                    "ID" => 1,
                    "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => usize::from(name.as_bytes()[2] - b'0'),
                    _ => pattern.written,
                };
                self.number(pattern, next, width)?;
            }
        }
        if pattern.ordinal.is_some() && is_number(pattern.name) {
            self.skip(2);
        }
        Ok(())
    }

    /// Notes the calendar that a pattern belongs to.
    fn follow(&mut self, name: &str) -> Result<()> {
        let calendar = match name {
            "DDD" | "DD" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY" | "YYY" | "YY"
            | "Y" => Calendar::Gregorian,
            "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Calendar::Weeks,
            _ => return Ok(()),
        };
        if self.fields.calendar.is_some_and(|other| other != calendar) {
            return Err(malformed("invalid combination of date conventions")
                .with_hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        self.fields.calendar = Some(calendar);
        Ok(())
    }

    /// Reads a whole number as C's `strtol` does: blanks, a sign, digits. `None` without a digit.
    fn integer(text: &str) -> Option<(Option<i64>, usize)> {
        let body = text.trim_start_matches(is_space);
        let digits = body.strip_prefix(['-', '+']).unwrap_or(body);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        let used = text.len() - digits.len() + count;
        let number = body[..body.len() - digits.len() + count].parse::<i64>().ok();
        Some((number.filter(|n| i32::try_from(*n).is_ok()), used))
    }

    fn number(&mut self, pattern: Pattern, next: Option<Piece>, width: usize) -> Result<()> {
        let name = pattern.name;
        let blanks = self.rest.len() - self.rest.trim_start_matches(is_space).len();
        let invalid = |head: &str| malformed(format!("invalid value \"{head}\" for \"{name}\""));
        let from = &self.rest[blanks..];
        let head: String = from.chars().take(width).collect();
        let (number, used) = if pattern.fill || ends_number(pattern, next) {
            Self::integer(self.rest).ok_or_else(|| invalid(&head).with_detail("Value must be an integer."))?
        } else {
            if from.len() < width {
                let message = format!("source string too short for \"{name}\" formatting field");
                let detail = format!("Field requires {width} characters, but only {} remain.", from.len());
                return Err(malformed(message).with_detail(detail));
            }
            let head = from.get(..width).unwrap_or(from);
            let (number, used) =
                Self::integer(head).ok_or_else(|| invalid(head).with_detail("Value must be an integer."))?;
            if used < width {
                let detail = format!("Field requires {width} characters, but only {used} could be parsed.");
                return Err(invalid(head).with_detail(detail));
            }
            (number, used + blanks)
        };
        let Some(number) = number else {
            let message = format!("value for \"{name}\" in source string is out of range");
            return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message));
        };
        self.rest = &self.rest[used..];
        self.fields.set_number(name, number, used)
    }

    fn thousands(&mut self, pattern: Pattern) -> Result<()> {
        let bad = || malformed("invalid input string for \"Y,YYY\"");
        let (Some(thousands), used) = Self::integer(self.rest).ok_or_else(bad)? else { return Err(bad()) };
        let rest = self.rest[used..].strip_prefix(',').ok_or_else(bad)?;
        let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let years: i64 = rest[..digits].parse().map_err(|_| bad())?;
        self.rest = &rest[digits..];
        self.fields.year_digits = 4;
        set(&mut self.fields.year, thousands * 1000 + years, pattern.name)
    }

    fn word(&mut self, pattern: Pattern) -> Result<()> {
        let short: Vec<&str>;
        let words: &[&str] = match pattern.name {
            "AM" | "PM" => &["am", "pm"],
            "A.M." | "P.M." => &["a.m.", "p.m."],
            "AD" | "BC" => &["ad", "bc"],
            "A.D." | "B.C." => &["a.d.", "b.c."],
            "MONTH" => &MONTHS,
            "DAY" => &DAYS,
            "MON" => {
                short = MONTHS.iter().map(|name| &name[..3]).collect();
                &short
            }
            "DY" => {
                short = DAYS.iter().map(|name| &name[..3]).collect();
                &short
            }
            _ => &["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"],
        };
        let begins = |word: &&str| self.rest.get(..word.len()).is_some_and(|h| h.eq_ignore_ascii_case(word));
        let Some(n) = words.iter().position(begins) else {
            let head: String = self.rest.chars().take_while(|c| !is_space(*c)).collect();
            let detail = "The given value did not match any of the allowed values for this field.";
            return Err(
                malformed(format!("invalid value \"{head}\" for \"{}\"", pattern.name)).with_detail(detail)
            );
        };
        self.rest = &self.rest[words[n].len()..];
        let (n, name) = (n as i64, pattern.name);
        let fields = &mut self.fields;
        match name {
            "AM" | "PM" | "A.M." | "P.M." => {
                fields.twelve = true;
                set(&mut fields.afternoon, n, name)
            }
            "AD" | "BC" | "A.D." | "B.C." => set(&mut fields.before_christ, n, name),
            "MONTH" | "MON" => set(&mut fields.month, n + 1, name),
            "RM" => set(&mut fields.month, ROMAN.len() as i64 - n, name),
            _ => {
                set(&mut fields.week_day, n, name)?;
                fields.week_day += 1;
                Ok(())
            }
        }
    }
}

/// Whether a pattern stands for digits that an ordinal suffix may follow.
fn is_number(name: &str) -> bool {
    !matches!(
        name,
        "AM" | "PM"
            | "A.M."
            | "P.M."
            | "AD"
            | "BC"
            | "A.D."
            | "B.C."
            | "MONTH"
            | "MON"
            | "DAY"
            | "DY"
            | "RM"
            | "FX"
    )
}

/// Whether what follows a number cannot be a digit of it.
fn ends_number(pattern: Pattern, next: Option<Piece>) -> bool {
    match next {
        _ if pattern.ordinal.is_some() => true,
        None => true,
        Some(Piece::Pattern(next)) => {
            !is_number(next.name) || matches!(next.name, "TZ" | "TZH" | "OF") || next.name.starts_with("FF")
        }
        Some(Piece::Char(c)) => !c.is_ascii_digit(),
        Some(_) => true,
    }
}

/// Sets a field that has no other value yet.
fn set(field: &mut i64, value: i64, name: &str) -> Result<()> {
    if *field != 0 && *field != value {
        let message = format!("conflicting values for \"{name}\" field in formatting string");
        return Err(malformed(message)
            .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// A year of one to three digits, moved to where it is nearest to 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

impl Fields {
    fn set_number(&mut self, name: &str, number: i64, used: usize) -> Result<()> {
        let fraction = |places: u32| 10_i64.pow(places.saturating_sub(used as u32));
        match name {
            "HH24" => set(&mut self.hour, number, name),
            "HH12" | "HH" => {
                self.twelve = true;
                set(&mut self.hour, number, name)
            }
            "MI" => set(&mut self.minute, number, name),
            "SS" => set(&mut self.second, number, name),
            "SSSS" | "SSSSS" => set(&mut self.of_day, number, name),
            "MS" => {
                set(&mut self.millis, number, name)?;
                self.millis *= fraction(3);
                Ok(())
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                set(&mut self.micros, number, name)?;
                self.micros *= fraction(6);
                Ok(())
            }
            "TZH" => set(&mut self.zone_hours, number, name),
            "TZM" => {
                if self.zone_sign == 0 {
                    self.zone_sign = 1;
                }
                set(&mut self.zone_minutes, number, name)
            }
            "MM" => set(&mut self.month, number, name),
            "DD" => set(&mut self.day, number, name),
            "DDD" | "IDDD" => set(&mut self.day_of_year, number, name),
            "D" => set(&mut self.week_day, number, name),
            "ID" => {
                set(&mut self.week_day, number, name)?;
                self.week_day = if number + 1 > 7 { 1 } else { number + 1 };
                Ok(())
            }
            "WW" | "IW" => set(&mut self.week, number, name),
            "W" => set(&mut self.week_of_month, number, name),
            "CC" => set(&mut self.century, number, name),
            "J" => set(&mut self.julian, number, name),
            "YYYY" | "IYYY" => {
                self.year_digits = 4;
                set(&mut self.year, number, name)
            }
            "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
                set(&mut self.year, number, name)?;
                if used < 4 {
                    self.year = near_2020(number);
                }
                self.year_digits = name.len();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn time(&self, text: &str) -> Result<i64> {
        let or = |value: i64, other: i64| if value != 0 { value } else { other };
        let mut hour = or(self.hour, self.of_day / 3600);
        let minute = or(self.minute, self.of_day / 60 % 60);
        let second = or(self.second, self.of_day % 60);
        if self.twelve {
            if !(1..=12).contains(&hour) {
                return Err(malformed(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.afternoon != 0 { 12 } else { 0 };
        }
        let micros = self.millis * 1000 + self.micros;
        let valid = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_PER_SECOND).contains(&micros);
        match valid {
            true => Ok(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros),
            false => Err(overflow(text)),
        }
    }

    fn offset(&self, text: &str) -> Result<i64> {
        if self.zone_sign == 0 {
            return Ok(0);
        }
        if !(0..=15).contains(&self.zone_hours) || !(0..60).contains(&self.zone_minutes) {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(SqlError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT, message));
        }
        Ok(self.zone_sign * (self.zone_hours * 60 + self.zone_minutes) * 60 * MICROS_PER_SECOND)
    }

    /// The year, and whether one was given.
    fn full_year(&self) -> (i64, bool) {
        let signed_century = if self.before_christ != 0 { -self.century } else { self.century };
        if self.year != 0 {
            if self.century != 0 && self.year_digits <= 2 {
                let of_century = self.year % 100;
                return match (of_century, signed_century) {
                    (0, c) => (c * 100 + i64::from(c < 0), true),
                    (y, c) if c >= 0 => (y + (c - 1) * 100, true),
                    (y, c) => ((c + 1) * 100 - y + 1, true),
                };
            }
            let year = if self.before_christ != 0 { -self.year } else { self.year };
            return (if year < 0 { year + 1 } else { year }, true);
        }
        match signed_century {
            0 => (0, false),
            c if c > 0 => ((c - 1) * 100 + 1, true),
            c => (c * 100 + 1, true),
        }
    }

    fn date(&self, text: &str) -> Result<(i64, i64, i64)> {
        let (mut year, mut has_year) = self.full_year();
        let (mut month, mut day) = (1, 1);
        let (mut has_month, mut has_day) = (false, false);
        let mut day_of_year = self.day_of_year;
        let mut all = None;
        if self.julian != 0 {
            all = Some(self.julian - JULIAN);
        }
        if self.week != 0 && self.calendar == Some(Calendar::Weeks) {
            let behind = match self.week_day {
                0 => 0,
                1 => 6,
                day => day - 2,
            };
            all = Some(iso_week_start(year, self.week) + behind);
        } else if self.week != 0 {
            day_of_year = (self.week - 1) * 7 + 1;
        }
        if let Some(days) = all {
            let civil = Civil::from_days(days);
            (year, month, day) = (civil.year, i64::from(civil.month), i64::from(civil.day));
            (has_year, has_month, has_day) = (true, true, true);
        }
        let given_day = if self.week_of_month != 0 { (self.week_of_month - 1) * 7 + 1 } else { self.day };
        if given_day != 0 {
            (day, has_day) = (given_day, true);
        }
        if self.month != 0 {
            (month, has_month) = (self.month, true);
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.before_christ == 0 {
                return Err(malformed("cannot calculate day of year without year information"));
            }
            if self.calendar == Some(Calendar::Weeks) {
                let civil = Civil::from_days(iso_week_start(year, 1) - 1 + day_of_year);
                (year, month, day) = (civil.year, i64::from(civil.month), i64::from(civil.day));
                has_year = true;
            } else {
                (month, day) = of_year(year, month, day, day_of_year);
            }
            (has_month, has_day) = (true, true);
        }
        let length = i64::from(days_in(year, month));
        let valid = (!has_month || (1..=12).contains(&month))
            && (!has_day || (1..=31).contains(&day))
            && !(has_year && has_month && has_day && day > length);
        if valid { Ok((year, month, day)) } else { Err(overflow(text)) }
    }
}

/// How many days a month has; 31 for one that there is not.
fn days_in(year: i64, month: i64) -> u8 {
    let month = u8::try_from(month).unwrap_or(1);
    (28..=31).rev().find(|day| Civil { year, month, day: *day }.exists()).unwrap_or(31)
}

/// Month and day by the day of the year, where they were not given.
fn of_year(year: i64, month: i64, day: i64, day_of_year: i64) -> (i64, i64) {
    let (mut found, mut before) = (1, 0);
    while found <= 12 {
        let length = i64::from(days_in(year, found));
        if day_of_year <= before + length {
            break;
        }
        before += length;
        found += 1;
    }
    (if month <= 1 { found } else { month }, if day <= 1 { day_of_year - before } else { day })
}
