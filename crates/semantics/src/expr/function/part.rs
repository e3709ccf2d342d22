//! `EXTRACT`, `date_part` and `date_trunc`.

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{Decimal, Interval, SqlError, SqlType, Value};

use super::{Builtin, Result, arg, entry, invalid, str_at};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::expr::number;
use crate::expr::resolve::NUMERIC;
use crate::expr::{Expr, ExprKind};
use crate::types::{Scalar, Type};

const TEXT: Scalar = Scalar::Text;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("extract", &[TEXT, Scalar::Date], NUMERIC, extract),
    entry("extract", &[TEXT, Scalar::Time], NUMERIC, extract),
    entry("extract", &[TEXT, Scalar::Timestamp], NUMERIC, extract),
    entry("extract", &[TEXT, Scalar::TimestampTz], NUMERIC, extract),
    entry("extract", &[TEXT, Scalar::Interval], NUMERIC, extract),
    entry("date_part", &[TEXT, Scalar::Date], Scalar::Double, date_part),
    entry("date_part", &[TEXT, Scalar::Time], Scalar::Double, date_part),
    entry("date_part", &[TEXT, Scalar::Timestamp], Scalar::Double, date_part),
    entry("date_part", &[TEXT, Scalar::TimestampTz], Scalar::Double, date_part),
    entry("date_part", &[TEXT, Scalar::Interval], Scalar::Double, date_part),
    entry("date_trunc", &[TEXT, Scalar::Timestamp], Scalar::Timestamp, truncate),
    entry("date_trunc", &[TEXT, Scalar::TimestampTz], Scalar::TimestampTz, truncate),
    entry("date_trunc", &[TEXT, Scalar::Interval], Scalar::Interval, truncate),
];

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Unit {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    Dow,
    IsoDow,
    Doy,
    Epoch,
    Julian,
    Timezone,
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name.to_ascii_lowercase().as_str() {
        "microseconds" | "microsecond" | "us" | "usec" | "usecs" => Unit::Microseconds,
        "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" => Unit::Milliseconds,
        "second" | "seconds" | "s" | "sec" | "secs" => Unit::Second,
        "minute" | "minutes" | "m" | "min" | "mins" => Unit::Minute,
        "hour" | "hours" | "h" | "hr" | "hrs" => Unit::Hour,
        "day" | "days" | "d" => Unit::Day,
        "week" | "weeks" | "w" => Unit::Week,
        "month" | "months" | "mon" | "mons" => Unit::Month,
        "quarter" | "qtr" => Unit::Quarter,
        "year" | "years" | "y" | "yr" | "yrs" => Unit::Year,
        "decade" | "decades" | "dec" | "decs" => Unit::Decade,
        "century" | "centuries" | "c" | "cent" => Unit::Century,
        "millennium" | "millennia" | "mil" | "mils" | "millenium" => Unit::Millennium,
        "isoyear" => Unit::IsoYear,
        "dow" => Unit::Dow,
        "isodow" => Unit::IsoDow,
        "doy" => Unit::Doy,
        "epoch" => Unit::Epoch,
        "julian" | "j" | "jd" => Unit::Julian,
        "timezone" | "timezone_hour" | "timezone_minute" => Unit::Timezone,
        _ => return None,
    })
}

/// The scale of what EXTRACT gives, if its unit is a constant.
pub(super) fn scale_of(args: &[Expr]) -> Option<u8> {
    let [field, from] = args else { return None };
    let ExprKind::Constant(Datum::Value(Value::Text(name))) = &field.kind else { return None };
    match unit(name)? {
        Unit::Epoch if from.ty == Type::Scalar(Scalar::Date) => Some(0),
        Unit::Epoch | Unit::Second => Some(6),
        Unit::Milliseconds => Some(3),
        Unit::Julian => None,
        _ => Some(0),
    }
}

fn unknown(name: &str, ty: &str) -> SqlError {
    invalid(format!("unit \"{name}\" not recognized for type {ty}"))
}

fn unsupported(name: &str, ty: &str) -> SqlError {
    SqlError::new(
        albireo_base::SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{name}\" not supported for type {ty}"),
    )
}

fn whole(n: i64) -> Decimal {
    Decimal::new(i128::from(n), 0)
}

fn extract(args: &[Datum]) -> Result<Datum> {
    let name = str_at(args, 0)?;
    let number = match arg(args, 1)? {
        Datum::Value(Value::Date(days)) => of_date(name, i64::from(*days))?,
        Datum::Value(Value::Time(micros)) => of_time(name, *micros)?,
        Datum::Value(Value::Timestamp(micros)) => of_moment(name, *micros, "timestamp without time zone")?,
        Datum::Value(Value::TimestampTz(micros)) => of_moment(name, *micros, "timestamp with time zone")?,
        Datum::Interval(interval) => of_interval(name, *interval)?,
        _ => return Err(unexpected()),
    };
    Ok(Value::Decimal(number).into())
}

fn date_part(args: &[Datum]) -> Result<Datum> {
    let value = match arg(args, 1)? {
        Datum::Value(date @ Value::Date(_)) => date.clone().coerce(SqlType::Timestamp)?.into(),
        other => other.clone(),
    };
    match extract(&[arg(args, 0)?.clone(), value])? {
        Datum::Value(Value::Decimal(number)) => Ok(Value::Double(number.to_f64()).into()),
        _ => Err(unexpected()),
    }
}

fn of_date(name: &str, days: i64) -> Result<Decimal> {
    let ty = "date";
    match unit(name).ok_or_else(|| unknown(name, ty))? {
        Unit::Epoch => Ok(whole(days * 86_400)),
        Unit::Julian => Ok(whole(days + 2_440_588)),
        Unit::Timezone
        | Unit::Microseconds
        | Unit::Milliseconds
        | Unit::Second
        | Unit::Minute
        | Unit::Hour => Err(unsupported(name, ty)),
        unit => calendar(unit, days).map(whole).ok_or_else(|| unsupported(name, ty)),
    }
}

fn of_time(name: &str, micros: i64) -> Result<Decimal> {
    let ty = "time without time zone";
    match unit(name).ok_or_else(|| unknown(name, ty))? {
        Unit::Epoch => Ok(Decimal::new(i128::from(micros), 6)),
        unit => clock(unit, micros).ok_or_else(|| unsupported(name, ty)),
    }
}

fn of_moment(name: &str, micros: i64, ty: &str) -> Result<Decimal> {
    let unit = unit(name).ok_or_else(|| unknown(name, ty))?;
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    match unit {
        Unit::Epoch => Ok(Decimal::new(i128::from(micros), 6)),
        Unit::Timezone if ty.ends_with("with time zone") => Ok(whole(0)),
        Unit::Julian => {
            // The day, and what has passed of it with the digits of a quotient.
            let seconds = Decimal::new(i128::from(time), 6);
            let part = number::divide(seconds, Decimal::new(86_400, 0), None)?;
            number::checked(whole(days + 2_440_588).checked_add(part))
        }
        unit => {
            clock(unit, time).or_else(|| calendar(unit, days).map(whole)).ok_or_else(|| unsupported(name, ty))
        }
    }
}

/// What a time of day has.
fn clock(unit: Unit, micros: i64) -> Option<Decimal> {
    let seconds = micros / MICROS_PER_SECOND;
    let in_minute = micros % (60 * MICROS_PER_SECOND);
    Some(match unit {
        Unit::Hour => whole(seconds / 3600),
        Unit::Minute => whole(seconds / 60 % 60),
        Unit::Second => Decimal::new(i128::from(in_minute), 6),
        Unit::Milliseconds => Decimal::new(i128::from(in_minute), 3),
        Unit::Microseconds => whole(in_minute),
        _ => return None,
    })
}

/// What a day has.
fn calendar(unit: Unit, days: i64) -> Option<i64> {
    let civil = Civil::from_days(days);
    let year = civil.year;
    let month = i64::from(civil.month);
    let group = |size: i64| match year > 0 {
        true => (year + size - 1) / size,
        false => -((size - 1 - (year - 1)) / size),
    };
    Some(match unit {
        Unit::Day => i64::from(civil.day),
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Year => era(year),
        Unit::Decade => year.div_euclid(10),
        Unit::Century => group(100),
        Unit::Millennium => group(1000),
        Unit::Dow => (days + 4).rem_euclid(7),
        Unit::IsoDow => (days + 3).rem_euclid(7) + 1,
        Unit::Doy => days - first_of(year) + 1,
        Unit::Week => iso(days).1,
        Unit::IsoYear => era(iso(days).0),
        _ => return None,
    })
}

/// The year as people count: there is no year 0.
fn era(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

fn first_of(year: i64) -> i64 {
    Civil { year, month: 1, day: 1 }.to_days()
}

/// The year and week that the day belongs to: those of its Thursday.
pub(super) fn iso(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let year = Civil::from_days(thursday).year;
    (year, (thursday - first_of(year)) / 7 + 1)
}

fn of_interval(name: &str, interval: Interval) -> Result<Decimal> {
    let ty = "interval";
    let years = i64::from(interval.months / 12);
    let months = i64::from(interval.months % 12);
    Ok(match unit(name).ok_or_else(|| unknown(name, ty))? {
        Unit::Epoch => {
            // A year has 365 days and a quarter, a month 30 days.
            let days = i128::from(months) * 30 + i128::from(interval.days);
            let seconds = i128::from(years) * 31_557_600 + days * 86_400;
            Decimal::new(seconds * i128::from(MICROS_PER_SECOND) + i128::from(interval.micros), 6)
        }
        Unit::Year => whole(years),
        Unit::Month => whole(months),
        Unit::Quarter => whole(months / 3 + 1),
        Unit::Day => whole(i64::from(interval.days)),
        Unit::Decade => whole(years / 10),
        Unit::Century => whole(years / 100),
        Unit::Millennium => whole(years / 1000),
        unit => clock(unit, interval.micros).ok_or_else(|| unsupported(name, ty))?,
    })
}

pub(super) fn truncate(args: &[Datum]) -> Result<Datum> {
    let name = str_at(args, 0)?;
    let cut = |micros: i64, ty: &str| -> Result<i64> {
        let unit = length(name).ok_or_else(|| unknown(name, ty))?;
        cut_moment(unit, micros).ok_or_else(|| unsupported(name, ty))
    };
    Ok(match arg(args, 1)? {
        Datum::Value(Value::Timestamp(micros)) => {
            Value::Timestamp(cut(*micros, "timestamp without time zone")?).into()
        }
        Datum::Value(Value::TimestampTz(micros)) => {
            Value::TimestampTz(cut(*micros, "timestamp with time zone")?).into()
        }
        Datum::Interval(interval) => {
            let unit = length(name).ok_or_else(|| unknown(name, "interval"))?;
            Datum::Interval(cut_interval(unit, *interval).ok_or_else(|| unsupported(name, "interval"))?)
        }
        _ => return Err(unexpected()),
    })
}

/// A unit that something can be cut to, or a time zone.
fn length(name: &str) -> Option<Unit> {
    let special = [Unit::IsoYear, Unit::Dow, Unit::IsoDow, Unit::Doy, Unit::Epoch, Unit::Julian];
    unit(name).filter(|unit| !special.contains(unit))
}

/// The length of a unit of the clock.
fn micros_of(unit: Unit) -> Option<i64> {
    Some(match unit {
        Unit::Microseconds => 1,
        Unit::Milliseconds => 1000,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Minute => 60 * MICROS_PER_SECOND,
        Unit::Hour => 3600 * MICROS_PER_SECOND,
        Unit::Day => MICROS_PER_DAY,
        _ => return None,
    })
}

fn cut_moment(unit: Unit, micros: i64) -> Option<i64> {
    if let Some(length) = micros_of(unit) {
        return micros.checked_sub(micros.rem_euclid(length));
    }
    let days = micros.div_euclid(MICROS_PER_DAY);
    let Civil { year, month, .. } = Civil::from_days(days);
    let first = |year: i64, month: u8| Civil { year, month, day: 1 }.to_days();
    let days = match unit {
        Unit::Week => days - (days + 3).rem_euclid(7),
        Unit::Month => first(year, month),
        Unit::Quarter => first(year, (month - 1) / 3 * 3 + 1),
        Unit::Year => first(year, 1),
        Unit::Decade => first(year.div_euclid(10) * 10, 1),
        // Centuries and millennia begin with the year 1.
        Unit::Century => first((year - 1).div_euclid(100) * 100 + 1, 1),
        Unit::Millennium => first((year - 1).div_euclid(1000) * 1000 + 1, 1),
        _ => return None,
    };
    days.checked_mul(MICROS_PER_DAY)
}

fn cut_interval(unit: Unit, interval: Interval) -> Option<Interval> {
    let Interval { months, days, micros } = interval;
    if unit == Unit::Day {
        return Some(Interval { months, days, micros: 0 });
    }
    if let Some(length) = micros_of(unit) {
        return Some(Interval { months, days, micros: micros - micros % length });
    }
    let size = match unit {
        Unit::Month => 1,
        Unit::Quarter => 3,
        Unit::Year => 12,
        Unit::Decade => 120,
        Unit::Century => 1200,
        Unit::Millennium => 12_000,
        _ => return None,
    };
    Some(Interval { months: months - months % size, days: 0, micros: 0 })
}
