//! The order of intervals, and their multiples.
//!
//! PostgreSQL compares intervals as if a month had 30 days and a day 24 hours, Arrow part by part.
//! Multiplied, fractions of months become days and fractions of days time, as in PostgreSQL.

use std::sync::Arc;

use albireo_base::value::MICROS_PER_DAY;
use albireo_base::{Interval, SqlError};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::casts::{INTERVAL, interval_of, interval_value};
use super::rowwise;
use crate::errors::{division_by_zero, internal, out_of_range};

/// A number that is ordered as the interval is.
pub(crate) fn order(interval: Expr) -> Expr {
    function().call(vec![interval])
}

fn function() -> Arc<ScalarUDF> {
    rowwise::function("interval_order", interval_type, micros)
}

fn interval_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [DataType::Interval(_) | DataType::Duration(_)] => {
            Some((vec![INTERVAL], DataType::Decimal128(38, 0)))
        }
        _ => None,
    }
}

fn micros(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let Some(interval) = interval_of(&args[0]) else { return Err(internal("an interval was expected")) };
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    let micros = days * i128::from(MICROS_PER_DAY) + i128::from(interval.micros);
    Ok(ScalarValue::Decimal128(Some(micros), 38, 0))
}

/// `interval * factor`.
pub(crate) fn multiply(interval: Expr, factor: Expr) -> Expr {
    rowwise::function("interval_multiply", scaled_type, multiplied).call(vec![interval, factor])
}

/// `interval / divisor`.
pub(crate) fn divide(interval: Expr, divisor: Expr) -> Expr {
    rowwise::function("interval_divide", scaled_type, divided).call(vec![interval, divisor])
}

fn scaled_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [DataType::Interval(_) | DataType::Duration(_), _] => {
            Some((vec![INTERVAL, DataType::Float64], INTERVAL))
        }
        _ => None,
    }
}

fn multiplied(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let (interval, factor) = operands(args)?;
    scaled(interval, |part| part * factor)
}

fn divided(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let (interval, divisor) = operands(args)?;
    if divisor == 0.0 {
        return Err(division_by_zero());
    }
    scaled(interval, |part| part / divisor)
}

fn operands(args: &[ScalarValue]) -> Result<(Interval, f64), SqlError> {
    match (interval_of(&args[0]), args.get(1)) {
        (Some(interval), Some(ScalarValue::Float64(Some(number)))) => Ok((interval, *number)),
        _ => Err(internal("an interval and a number were expected")),
    }
}

/// Rounded to a millionth, lest a tenth times ten come out below one.
fn rounded(x: f64) -> f64 {
    (x * 1e6).round_ties_even() / 1e6
}

fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Result<ScalarValue, SqlError> {
    const DAY: f64 = 86_400.0;
    let whole = |x: f64, limit: f64| {
        // NaN is in no range.
        if (-limit..limit).contains(&x) { Ok(x.trunc()) } else { Err(out_of_range("interval")) }
    };
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let (whole_months, whole_days) = (whole(months, 2_147_483_647.0)?, whole(days, 2_147_483_647.0)?);
    let more_days = rounded((months - whole_months) * 30.0);
    let seconds = rounded((days - whole_days + more_days.fract()) * DAY);
    let days = whole(whole_days + more_days.trunc() + (seconds / DAY).trunc(), 2_147_483_647.0)?;
    let micros = (scale(interval.micros as f64) + seconds % DAY * 1e6).round_ties_even();
    let micros = whole(micros, 9.2e18)?;
    interval_value(Interval { months: whole_months as i32, days: days as i32, micros: micros as i64 })
}
