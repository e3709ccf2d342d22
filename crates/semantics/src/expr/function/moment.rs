//! Functions and operators of dates, times and intervals. The time zone is UTC.

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{Interval, SqlError, SqlState, SqlType, Value};

use super::{Builtin, Result, arg, double_at, entry, int_at, interval_at};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::expr::number::{division_by_zero, out_of_range};
use crate::expr::operator::Binary;
use crate::expr::{Expr, ExprKind};
use crate::types::Scalar;

const INT: Scalar = Scalar::Integer;

/// Days from 1970-01-01 to the first and last day of DATE.
pub(super) const DAYS: std::ops::RangeInclusive<i64> = -2_440_588..=2_145_042_905;
/// Microseconds from 1970 to the first moment of TIMESTAMP; the last is the last of 64 bits.
pub(super) const FIRST_MICRO: i64 = -2_440_588 * MICROS_PER_DAY;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("make_date", &[INT, INT, INT], Scalar::Date, make_date),
    entry("make_time", &[INT, INT, Scalar::Double], Scalar::Time, |a| {
        Ok(Value::Time(time_of(int_at(a, 0)?, int_at(a, 1)?, double_at(a, 2)?, "time")?).into())
    }),
    entry("make_timestamp", &[INT, INT, INT, INT, INT, Scalar::Double], Scalar::Timestamp, make_timestamp),
    entry("isfinite", &[Scalar::Date], Scalar::Bool, |_| Ok(Value::Bool(true).into())),
    entry("isfinite", &[Scalar::Timestamp], Scalar::Bool, |_| Ok(Value::Bool(true).into())),
    entry("isfinite", &[Scalar::TimestampTz], Scalar::Bool, |_| Ok(Value::Bool(true).into())),
    entry("justify_days", &[Scalar::Interval], Scalar::Interval, |a| {
        let i = interval_at(a, 0)?;
        let months = i.months.checked_add(i.days / 30).ok_or_else(interval_fault)?;
        Ok(Datum::Interval(Interval { months, days: i.days % 30, micros: i.micros }))
    }),
    entry("justify_hours", &[Scalar::Interval], Scalar::Interval, |a| {
        let i = interval_at(a, 0)?;
        let days = i.days.checked_add((i.micros / MICROS_PER_DAY) as i32).ok_or_else(interval_fault)?;
        Ok(Datum::Interval(Interval { months: i.months, days, micros: i.micros % MICROS_PER_DAY }))
    }),
    entry("date", &[Scalar::Timestamp], Scalar::Date, day_of),
    entry("date", &[Scalar::TimestampTz], Scalar::Date, day_of),
];

/// `make_timestamp`
pub(super) fn make_timestamp(args: &[Datum]) -> Result<Datum> {
    let Datum::Value(Value::Date(days)) = make_date(args)? else { return Err(unexpected()) };
    let time = time_of(int_at(args, 3)?, int_at(args, 4)?, double_at(args, 5)?, "timestamp")?;
    let micros = i64::from(days).checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(time));
    Ok(Value::Timestamp(moment(micros)?).into())
}

fn day_of(args: &[Datum]) -> Result<Datum> {
    match arg(args, 0)? {
        Datum::Value(value) => Ok(value.clone().coerce(SqlType::Date)?.into()),
        _ => Err(unexpected()),
    }
}

/// The functions that give the transaction's time.
pub(super) fn clock(name: &str, args: &[Expr]) -> Option<Expr> {
    let ty = clock_type(name)?;
    args.is_empty().then(|| Expr::scalar(ExprKind::Now, ty))
}

/// The type of the clock of this name.
pub(super) fn clock_type(name: &str) -> Option<Scalar> {
    Some(match name {
        "now" | "current_timestamp" | "transaction_timestamp" => Scalar::TimestampTz,
        "localtimestamp" => Scalar::Timestamp,
        "current_date" => Scalar::Date,
        "localtime" => Scalar::Time,
        _ => return None,
    })
}

pub(super) fn fault(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

pub(super) fn interval_fault() -> SqlError {
    fault("interval out of range")
}

fn make_date(args: &[Datum]) -> Result<Datum> {
    let (year, month, day) = (int_at(args, 0)?, int_at(args, 1)?, int_at(args, 2)?);
    let bad = || fault(format!("date field value out of range: {year}-{month:02}-{day:02}"));
    // Negative years are BC.
    let astronomical = if year < 0 { i64::from(year) + 1 } else { i64::from(year) };
    let (Ok(month), Ok(day)) = (u8::try_from(month), u8::try_from(day)) else { return Err(bad()) };
    let civil = Civil { year: astronomical, month, day };
    if year == 0 || !civil.exists() {
        return Err(bad());
    }
    let days = civil.to_days();
    match DAYS.contains(&days) {
        true => Ok(Value::Date(days as i32).into()),
        false => Err(fault(format!("date out of range: {year}-{month:02}-{day:02}"))),
    }
}

fn time_of(hour: i32, minute: i32, second: f64, what: &str) -> Result<i64> {
    let valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let micros = (second * 1e6).round_ties_even() as i64;
    let total = (i64::from(hour) * 60 + i64::from(minute)) * 60 * MICROS_PER_SECOND + micros;
    if !valid || total > MICROS_PER_DAY {
        let shown = format!("{hour}:{minute:02}:{second}");
        return Err(fault(format!("{what} field value out of range: {shown}")));
    }
    Ok(total)
}

/// Looks whether a moment that a client gave as a number is one that its type has.
///
/// # Errors
/// 22008 if it is not.
pub(in crate::expr) fn check_range(value: &Value) -> Result<()> {
    let (has, name) = match value {
        Value::Time(micros) => ((0..=MICROS_PER_DAY).contains(micros), "time"),
        Value::Date(days) => (DAYS.contains(&i64::from(*days)), "date"),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => (*micros >= FIRST_MICRO, "timestamp"),
        _ => return Ok(()),
    };
    if has { Ok(()) } else { Err(fault(format!("{name} out of range"))) }
}

/// A moment that TIMESTAMP has.
pub(super) fn moment(micros: Option<i64>) -> Result<i64> {
    micros.filter(|micros| *micros >= FIRST_MICRO).ok_or_else(|| fault("timestamp out of range"))
}

/// Months first, the day cut to the month's last, then days, then microseconds.
fn add_interval(micros: i64, interval: Interval) -> Result<i64> {
    let mut days = micros.div_euclid(MICROS_PER_DAY);
    let time = micros.rem_euclid(MICROS_PER_DAY);
    if interval.months != 0 {
        let civil = Civil::from_days(days);
        let months = civil.year * 12 + i64::from(civil.month) - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u8 + 1);
        let mut moved = Civil { year, month, day: civil.day };
        while !moved.exists() && moved.day > 28 {
            moved.day -= 1;
        }
        days = moved.to_days();
    }
    let midnight = (days + i64::from(interval.days)).checked_mul(MICROS_PER_DAY);
    let sum = midnight.and_then(|day| day.checked_add(time)).and_then(|sum| sum.checked_add(interval.micros));
    moment(sum)
}

fn negated(interval: Interval) -> Result<Interval> {
    let parts = (interval.months.checked_neg(), interval.days.checked_neg(), interval.micros.checked_neg());
    match parts {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(interval_fault()),
    }
}

/// `- interval`
pub(in crate::expr) fn negate(interval: Interval) -> Result<Datum> {
    negated(interval).map(Datum::Interval)
}

fn sum(a: Interval, b: Interval) -> Result<Interval> {
    let parts = (a.months.checked_add(b.months), a.days.checked_add(b.days), a.micros.checked_add(b.micros));
    match parts {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(interval_fault()),
    }
}

/// Rounded to the microsecond of a second.
fn to_micros(n: f64) -> f64 {
    (n * 1e6).round_ties_even() / 1e6
}

/// Each part of an interval scaled; what is left of months goes to days, of days to microseconds.
fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Result<Interval> {
    let whole = |n: f64| match n.abs() < f64::from(i32::MAX) {
        true => Ok(n as i32),
        false => Err(interval_fault()),
    };
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let (whole_months, mut whole_days) = (whole(months)?, whole(days)?);
    let rest_days = to_micros((months - f64::from(whole_months)) * 30.0);
    let mut rest_seconds =
        to_micros((days - f64::from(whole_days) + rest_days - rest_days.trunc()) * 86_400.0);
    if rest_seconds.abs() >= 86_400.0 {
        let extra = (rest_seconds / 86_400.0).trunc();
        whole_days = whole_days.checked_add(extra as i32).ok_or_else(interval_fault)?;
        rest_seconds -= extra * 86_400.0;
    }
    let days = whole_days.checked_add(rest_days as i32).ok_or_else(interval_fault)?;
    let micros = (scale(interval.micros as f64) + rest_seconds * 1e6).round_ties_even();
    if micros.is_nan() || micros.abs() >= i64::MAX as f64 {
        return Err(interval_fault());
    }
    Ok(Interval { months: whole_months, days, micros: micros as i64 })
}

/// An operator of dates, times or intervals.
pub(crate) fn binary(op: Binary, a: &Datum, b: &Datum) -> Result<Datum> {
    match (a, b) {
        (Datum::Value(a), Datum::Value(b)) => of_moments(op, a, b),
        (Datum::Value(a), Datum::Interval(b)) => with_interval(op, a, *b),
        (Datum::Interval(a), b) => of_intervals(op, *a, b),
        _ => Err(unexpected()),
    }
}

fn of_moments(op: Binary, a: &Value, b: &Value) -> Result<Datum> {
    let day = |days: Option<i64>| match days.filter(|days| DAYS.contains(days)) {
        Some(days) => Ok(Value::Date(days as i32).into()),
        None => Err(fault("date out of range")),
    };
    match (op, a, b) {
        (Binary::DatePlusDays, Value::Date(a), Value::Integer(b)) => day(Some(i64::from(*a) + i64::from(*b))),
        (Binary::DateMinusDays, Value::Date(a), Value::Integer(b)) => {
            day(Some(i64::from(*a) - i64::from(*b)))
        }
        (Binary::DateMinusDate, Value::Date(a), Value::Date(b)) => {
            Ok(Value::Integer(a.checked_sub(*b).ok_or_else(|| out_of_range("integer"))?).into())
        }
        (Binary::DatePlusTime, Value::Date(a), Value::Time(b)) => {
            let micros = i64::from(*a).checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(*b));
            Ok(Value::Timestamp(moment(micros)?).into())
        }
        (
            Binary::MomentMinusMoment,
            Value::Timestamp(a) | Value::TimestampTz(a),
            Value::Timestamp(b) | Value::TimestampTz(b),
        ) => {
            let micros = a.checked_sub(*b).ok_or_else(interval_fault)?;
            // All of 64 bits of microseconds is less than 2^27 days.
            let days = (micros / MICROS_PER_DAY) as i32;
            Ok(Datum::Interval(Interval { months: 0, days, micros: micros % MICROS_PER_DAY }))
        }
        (Binary::TimeMinusTime, Value::Time(a), Value::Time(b)) => {
            let micros = a.checked_sub(*b).ok_or_else(interval_fault)?;
            Ok(Datum::Interval(Interval { months: 0, days: 0, micros }))
        }
        _ => Err(unexpected()),
    }
}

fn with_interval(op: Binary, a: &Value, b: Interval) -> Result<Datum> {
    let signed = |minus: bool| if minus { negated(b) } else { Ok(b) };
    match (op, a) {
        (Binary::MomentPlusInterval | Binary::MomentMinusInterval, Value::Timestamp(a)) => {
            let by = signed(op == Binary::MomentMinusInterval)?;
            Ok(Value::Timestamp(add_interval(*a, by)?).into())
        }
        (Binary::MomentPlusInterval | Binary::MomentMinusInterval, Value::TimestampTz(a)) => {
            let by = signed(op == Binary::MomentMinusInterval)?;
            Ok(Value::TimestampTz(add_interval(*a, by)?).into())
        }
        (Binary::TimePlusInterval, Value::Time(a)) => {
            let micros = (a % MICROS_PER_DAY + b.micros % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY);
            Ok(Value::Time(micros).into())
        }
        (Binary::TimeMinusInterval, Value::Time(a)) => {
            let micros = (a % MICROS_PER_DAY - b.micros % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY);
            Ok(Value::Time(micros).into())
        }
        _ => Err(unexpected()),
    }
}

fn of_intervals(op: Binary, a: Interval, b: &Datum) -> Result<Datum> {
    let result = match (op, b) {
        (Binary::IntervalPlusInterval, Datum::Interval(b)) => sum(a, *b)?,
        (Binary::IntervalMinusInterval, Datum::Interval(b)) => sum(a, negated(*b)?)?,
        (Binary::IntervalTimes, Datum::Value(Value::Double(b))) => scaled(a, |n| n * b)?,
        (Binary::IntervalBy, Datum::Value(Value::Double(0.0))) => return Err(division_by_zero()),
        (Binary::IntervalBy, Datum::Value(Value::Double(b))) => scaled(a, |n| n / b)?,
        _ => return Err(unexpected()),
    };
    Ok(Datum::Interval(result))
}
