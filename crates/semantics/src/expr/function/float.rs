//! Functions of floating-point numbers.

use albireo_base::{SqlError, SqlState, Value};

use super::{Builtin, Result, double_at, entry, int_at, value};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::expr::number::{checked_float, out_of_range};
use crate::types::Scalar;

const DOUBLE: Scalar = Scalar::Double;
/// A degree in radians, as many digits of it as PostgreSQL has.
pub(super) const DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("abs", &[Scalar::Real], Scalar::Real, |a| match value(a, 0)? {
        Value::Real(n) => Ok(Value::Real(n.abs()).into()),
        _ => Err(unexpected()),
    }),
    entry("abs", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.abs())),
    entry("sign", &[DOUBLE], DOUBLE, |a| {
        let n = double_at(a, 0)?;
        double(if n == 0.0 || n.is_nan() { 0.0 } else { n.signum() })
    }),
    entry("ceil", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.ceil())),
    entry("ceiling", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.ceil())),
    entry("floor", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.floor())),
    entry("round", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.round_ties_even())),
    entry("trunc", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.trunc())),
    entry("sqrt", &[DOUBLE], DOUBLE, |a| {
        let n = double_at(a, 0)?;
        match n < 0.0 {
            true => Err(power_fault("cannot take square root of a negative number")),
            false => double(n.sqrt()),
        }
    }),
    entry("cbrt", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)?.cbrt())),
    entry("exp", &[DOUBLE], DOUBLE, |a| {
        let n = double_at(a, 0)?;
        double(checked_float(n.exp(), n.is_finite(), n == f64::NEG_INFINITY)?)
    }),
    entry("ln", &[DOUBLE], DOUBLE, |a| double(positive(double_at(a, 0)?)?.ln())),
    entry("log", &[DOUBLE], DOUBLE, |a| double(positive(double_at(a, 0)?)?.log10())),
    entry("log10", &[DOUBLE], DOUBLE, |a| double(positive(double_at(a, 0)?)?.log10())),
    entry("power", &[DOUBLE, DOUBLE], DOUBLE, |a| double(power(double_at(a, 0)?, double_at(a, 1)?)?)),
    entry("pow", &[DOUBLE, DOUBLE], DOUBLE, |a| double(power(double_at(a, 0)?, double_at(a, 1)?)?)),
    entry("pi", &[], DOUBLE, |_| double(std::f64::consts::PI)),
    entry("degrees", &[DOUBLE], DOUBLE, |a| {
        let n = double_at(a, 0)?;
        double(checked_float(n / DEGREE, n.is_finite(), true)?)
    }),
    entry("radians", &[DOUBLE], DOUBLE, |a| double(double_at(a, 0)? * DEGREE)),
    entry("width_bucket", &[DOUBLE, DOUBLE, DOUBLE, Scalar::Integer], Scalar::Integer, bucket),
];

pub(super) fn double(n: f64) -> Result<Datum> {
    Ok(Value::Double(n).into())
}

fn power_fault(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, message)
}

fn positive(n: f64) -> Result<f64> {
    let fault = |what: &str| {
        let message = format!("cannot take logarithm of {what}");
        Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message))
    };
    match n {
        0.0 => fault("zero"),
        n if n < 0.0 => fault("a negative number"),
        n => Ok(n),
    }
}

/// `base ^ exponent`
pub(in crate::expr) fn power(base: f64, exponent: f64) -> Result<f64> {
    if base == 0.0 && exponent < 0.0 {
        return Err(power_fault("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(power_fault("a negative number raised to a non-integer power yields a complex result"));
    }
    let finite = base.is_finite() && exponent.is_finite();
    checked_float(base.powf(exponent), finite, base == 0.0 || !finite)
}

/// Which of so many equal parts between two bounds a number lies in.
fn bucket(args: &[Datum]) -> Result<Datum> {
    let (n, low, high) = (double_at(args, 0)?, double_at(args, 1)?, double_at(args, 2)?);
    let count = int_at(args, 3)?;
    let fault = |message: &str| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message));
    if count <= 0 {
        return fault("count must be greater than zero");
    }
    if n.is_nan() || low.is_nan() || high.is_nan() {
        return fault("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return fault("lower and upper bounds must be finite");
    }
    if low == high {
        return fault("lower bound cannot equal upper bound");
    }
    // Turned around, bounds that fall are bounds that rise.
    let (n, low, high) = if low < high { (n, low, high) } else { (-n, -low, -high) };
    if n < low {
        return Ok(Value::Integer(0).into());
    }
    if n >= high {
        let behind = count.checked_add(1).ok_or_else(|| out_of_range("integer"))?;
        return Ok(Value::Integer(behind).into());
    }
    let part = match (high - low).is_finite() {
        true => (n - low) / (high - low),
        false => (n / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
    };
    let found = (f64::from(count) * part) as i32;
    Ok(Value::Integer(found.min(count - 1) + 1).into())
}
