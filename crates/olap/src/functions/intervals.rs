//! The order of intervals: PostgreSQL compares them as if a month had 30 days and a day 24 hours,
//! Arrow part by part.

use std::sync::Arc;

use albireo_base::SqlError;
use albireo_base::value::MICROS_PER_DAY;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::casts::{INTERVAL, interval_of};
use super::rowwise;
use crate::errors::internal;

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
