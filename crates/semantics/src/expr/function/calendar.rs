//! Functions of the calendar: ages, bins, intervals from their parts, precisions.

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{Interval, SqlError, SqlState, SqlType, Value};

use super::moment::{fault, interval_fault, moment};
use super::{Builtin, General, Result, arg, entry, int_at, interval_at, missing, str_at};
use crate::datum::Datum;
use crate::expr::bind::constant;
use crate::expr::convert::{implicit_to, unexpected};
use crate::expr::{CastKind, Expr, ExprKind, cast};
use crate::types::Scalar;

const INT: Scalar = Scalar::Integer;
const PLAIN: Scalar = Scalar::Timestamp;
const ZONED: Scalar = Scalar::TimestampTz;
const SPAN: Scalar = Scalar::Interval;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("age", &[PLAIN, PLAIN], SPAN, |a| age(micros_at(a, 0)?, micros_at(a, 1)?).map(Datum::Interval)),
    entry("age", &[ZONED, ZONED], SPAN, |a| age(micros_at(a, 0)?, micros_at(a, 1)?).map(Datum::Interval)),
    entry("date_bin", &[SPAN, PLAIN, PLAIN], PLAIN, |a| Ok(Value::Timestamp(bin(a)?).into())),
    entry("date_bin", &[SPAN, ZONED, ZONED], ZONED, |a| Ok(Value::TimestampTz(bin(a)?).into())),
    entry("justify_interval", &[SPAN], SPAN, |a| justify(interval_at(a, 0)?).map(Datum::Interval)),
    entry("isfinite", &[SPAN], Scalar::Bool, |_| Ok(Value::Bool(true).into())),
    entry("date_trunc", &[Scalar::Text, ZONED, Scalar::Text], ZONED, |a| {
        utc(str_at(a, 2)?)?;
        super::part::truncate(a.get(..2).ok_or_else(unexpected)?)
    }),
    entry("timezone", &[Scalar::Text, PLAIN], ZONED, |a| {
        utc(str_at(a, 0)?)?;
        Ok(Value::TimestampTz(micros_at(a, 1)?).into())
    }),
    entry("timezone", &[Scalar::Text, ZONED], PLAIN, |a| {
        utc(str_at(a, 0)?)?;
        Ok(Value::Timestamp(micros_at(a, 1)?).into())
    }),
    entry("make_timestamptz", &[INT, INT, INT, INT, INT, Scalar::Double], ZONED, |a| {
        match super::moment::make_timestamp(a)? {
            Datum::Value(Value::Timestamp(micros)) => Ok(Value::TimestampTz(micros).into()),
            _ => Err(unexpected()),
        }
    }),
];

/// What a cast to a precision of seconds computes: the value and the precision.
static PRECISIONS: [Builtin; 4] = [
    entry("timestamp", &[PLAIN, INT], PLAIN, |a| {
        Ok(Value::Timestamp(moment(Some(to_precision(micros_at(a, 0)?, int_at(a, 1)?)))?).into())
    }),
    entry("timestamptz", &[ZONED, INT], ZONED, |a| {
        Ok(Value::TimestampTz(moment(Some(to_precision(micros_at(a, 0)?, int_at(a, 1)?)))?).into())
    }),
    entry("time", &[Scalar::Time, INT], Scalar::Time, |a| {
        Ok(Value::Time(to_precision(micros_at(a, 0)?, int_at(a, 1)?)).into())
    }),
    entry("interval", &[SPAN, INT], SPAN, |a| {
        let interval = interval_at(a, 0)?;
        let micros = to_precision(interval.micros, int_at(a, 1)?);
        Ok(Datum::Interval(Interval { micros, ..interval }))
    }),
];

/// A value with at most `digits` digits after the point of its seconds.
pub(in crate::expr) fn with_precision(value: Expr, digits: u64) -> Result<Expr> {
    let builtin = PRECISIONS
        .iter()
        .find(|builtin| matches!(&value.ty, crate::types::Type::Scalar(ty) if builtin.takes[0] == *ty));
    let Some(builtin) = builtin else { return Ok(value) };
    let digits = constant(Value::Integer(digits.min(6) as i32), INT);
    super::call(builtin, vec![value, digits])
}

/// Rounded half away from zero.
fn to_precision(micros: i64, digits: i32) -> i64 {
    let unit = 10_i64.pow((6 - digits.clamp(0, 6)) as u32);
    let half = if micros >= 0 { unit / 2 } else { -(unit / 2) };
    micros.saturating_add(half) / unit * unit
}

fn micros_at(args: &[Datum], n: usize) -> Result<i64> {
    match arg(args, n)? {
        Datum::Value(Value::Timestamp(micros) | Value::TimestampTz(micros) | Value::Time(micros)) => {
            Ok(*micros)
        }
        _ => Err(unexpected()),
    }
}

fn utc(zone: &str) -> Result<()> {
    let known = ["utc", "gmt", "z", "zulu", "etc/utc", "etc/gmt", "uct"];
    match known.contains(&zone.to_ascii_lowercase().as_str()) {
        true => Ok(()),
        false => Err(SqlError::unsupported("a time zone other than UTC")
            .with_hint("Times are kept in UTC; shift by an interval instead.")),
    }
}

/// The call of a function whose arguments may be left out or named.
pub(super) fn bind(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    match (name, args.len()) {
        // Since midnight today.
        ("age", 1) => {
            let today = Expr::scalar(ExprKind::Now, Scalar::Date);
            let today = cast(today, SqlType::Timestamp, CastKind::Explicit)?;
            let since = args[0].clone();
            let since = match &since.ty {
                crate::types::Type::Scalar(Scalar::Timestamp) => since,
                crate::types::Type::Scalar(_) => {
                    let zoned = implicit_to(since, ZONED).map_err(|_| missing(name, args))?;
                    cast(zoned, SqlType::Timestamp, CastKind::Explicit)?
                }
                _ => return Err(missing(name, args)),
            };
            super::call(&FUNCTIONS[0], vec![today, since]).map(Some)
        }
        ("make_interval", ..=7) => {
            let mut bound = Vec::with_capacity(7);
            for n in 0..7 {
                let to = if n == 6 { Scalar::Double } else { INT };
                bound.push(match args.get(n) {
                    Some(given) => implicit_to(given.clone(), to).map_err(|_| missing(name, args))?,
                    None if n == 6 => constant(Value::Double(0.0), to),
                    None => constant(Value::Integer(0), to),
                });
            }
            let kind = ExprKind::General(General { name: "make_interval", run: make_interval }, bound);
            Ok(Some(Expr::scalar(kind, SPAN)))
        }
        _ => Ok(None),
    }
}

/// The names of the parameters of `make_interval`.
pub(super) const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

fn make_interval(args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    let part = |n: usize| int_at(args, n).map(i64::from);
    let seconds = super::double_at(args, 6)?;
    if !seconds.is_finite() {
        return Err(interval_fault());
    }
    let whole = |n: i64| i32::try_from(n).map_err(|_| interval_fault());
    let months = whole(part(0)? * 12 + part(1)?)?;
    let days = whole(part(2)? * 7 + part(3)?)?;
    let clock = (part(4)? * 3600 + part(5)? * 60) * MICROS_PER_SECOND;
    let micros = (seconds * 1e6).round_ties_even();
    if micros.abs() >= i64::MAX as f64 {
        return Err(interval_fault());
    }
    let micros = clock.checked_add(micros as i64).ok_or_else(interval_fault)?;
    Ok(Datum::Interval(Interval { months, days, micros }))
}

/// The difference of two moments in years, months, days and less, as one counts on the calendar.
fn age(later: i64, earlier: i64) -> Result<Interval> {
    if later < earlier {
        let turned = between(earlier, later)?;
        return Ok(Interval { months: -turned.months, days: -turned.days, micros: -turned.micros });
    }
    between(later, earlier)
}

/// What lies between two moments, the later one first. A month that is not over is as long as that of the
/// earlier moment.
fn between(later: i64, earlier: i64) -> Result<Interval> {
    let split = |micros: i64| {
        (Civil::from_days(micros.div_euclid(MICROS_PER_DAY)), micros.rem_euclid(MICROS_PER_DAY))
    };
    let ((to, to_time), (from, from_time)) = (split(later), split(earlier));
    let mut micros = to_time - from_time;
    let mut days = i32::from(to.day) - i32::from(from.day);
    let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    while days < 0 {
        days += i32::from(length_of(from));
        months -= 1;
    }
    let months = i32::try_from(months).map_err(|_| interval_fault())?;
    Ok(Interval { months, days, micros })
}

fn length_of(civil: Civil) -> u8 {
    (28..=31).rev().find(|day| Civil { day: *day, ..civil }.exists()).unwrap_or(31)
}

/// The beginning of the bin that a moment lies in.
fn bin(args: &[Datum]) -> Result<i64> {
    let stride = interval_at(args, 0)?;
    let (source, origin) = (micros_at(args, 1)?, micros_at(args, 2)?);
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let length =
        i64::from(stride.days).checked_mul(MICROS_PER_DAY).and_then(|d| d.checked_add(stride.micros));
    let length = length.ok_or_else(interval_fault)?;
    if length <= 0 {
        return Err(fault("stride must be greater than zero"));
    }
    let distance = source.checked_sub(origin).ok_or_else(interval_fault)?;
    let begin = distance.checked_sub(distance.rem_euclid(length)).and_then(|d| d.checked_add(origin));
    moment(begin)
}

/// Days into months and hours into days, all parts with one sign.
fn justify(interval: Interval) -> Result<Interval> {
    let Interval { months, days, micros } = interval;
    let (mut months, mut days, mut micros) = (i64::from(months), i64::from(days), micros);
    // First so that nothing overflows that need not.
    if days > 0 && micros > 0 || days < 0 && micros < 0 {
        months += days / 30;
        days %= 30;
    }
    days += micros / MICROS_PER_DAY;
    micros %= MICROS_PER_DAY;
    months += days / 30;
    days %= 30;
    if months > 0 && (days < 0 || days == 0 && micros < 0) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || days == 0 && micros > 0) {
        days -= 30;
        months += 1;
    }
    if days > 0 && micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    } else if days < 0 && micros > 0 {
        micros -= MICROS_PER_DAY;
        days += 1;
    }
    let narrow = |n: i64| i32::try_from(n).map_err(|_| interval_fault());
    Ok(Interval { months: narrow(months)?, days: narrow(days)?, micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_rounds_half_away_from_zero() {
        assert_eq!(to_precision(1_500_000, 0), 2_000_000);
        assert_eq!(to_precision(-1_500_000, 0), -2_000_000);
        assert_eq!(to_precision(1_234_567, 3), 1_235_000);
    }
}
