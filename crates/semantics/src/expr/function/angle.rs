//! Functions of angles: in radians, in degrees, and hyperbolic ones.
//!
//! Those of degrees are exact at multiples of 30 and 45 degrees, by PostgreSQL's way of scaling. The inverse
//! hyperbolic ones are computed as in Sun's library, which C libraries took over.

use albireo_base::{SqlError, SqlState};

use super::float::{DEGREE, double};
use super::{Builtin, Result, double_at, entry};
use crate::types::Scalar;

const DOUBLE: Scalar = Scalar::Double;
const ONE: &[Scalar] = &[DOUBLE];
const TWO: &[Scalar] = &[DOUBLE, DOUBLE];

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("sin", ONE, DOUBLE, |a| double(finite(double_at(a, 0)?)?.sin())),
    entry("cos", ONE, DOUBLE, |a| double(finite(double_at(a, 0)?)?.cos())),
    entry("tan", ONE, DOUBLE, |a| double(finite(double_at(a, 0)?)?.tan())),
    entry("cot", ONE, DOUBLE, |a| double(1.0 / finite(double_at(a, 0)?)?.tan())),
    entry("asin", ONE, DOUBLE, |a| double(unit(double_at(a, 0)?)?.asin())),
    entry("acos", ONE, DOUBLE, |a| double(unit(double_at(a, 0)?)?.acos())),
    entry("atan", ONE, DOUBLE, |a| double(double_at(a, 0)?.atan())),
    entry("atan2", TWO, DOUBLE, |a| double(double_at(a, 0)?.atan2(double_at(a, 1)?))),
    entry("sinh", ONE, DOUBLE, |a| double(double_at(a, 0)?.sinh())),
    entry("cosh", ONE, DOUBLE, |a| double(double_at(a, 0)?.cosh())),
    entry("tanh", ONE, DOUBLE, |a| double(double_at(a, 0)?.tanh())),
    entry("asinh", ONE, DOUBLE, |a| double(asinh(double_at(a, 0)?))),
    entry("acosh", ONE, DOUBLE, |a| {
        let n = double_at(a, 0)?;
        if n < 1.0 { Err(fault()) } else { double(acosh(n)) }
    }),
    entry("atanh", ONE, DOUBLE, |a| {
        let n = unit(double_at(a, 0)?)?;
        double(if n.abs() == 1.0 { n * f64::INFINITY } else { atanh(n) })
    }),
    entry("sind", ONE, DOUBLE, |a| {
        let (angle, sign) = folded(finite(double_at(a, 0)?)?);
        double(sign * sine(if angle > 90.0 { 180.0 - angle } else { angle }))
    }),
    entry("cosd", ONE, DOUBLE, |a| {
        let (angle, _) = folded(finite(double_at(a, 0)?)?);
        double(if angle > 90.0 { -cosine(180.0 - angle) } else { cosine(angle) })
    }),
    entry("tand", ONE, DOUBLE, |a| {
        let (angle, sign) = quarter(finite(double_at(a, 0)?)?);
        double(positive_zero(sign * (sine(angle) / cosine(angle) / (sine(45.0) / cosine(45.0)))))
    }),
    entry("cotd", ONE, DOUBLE, |a| {
        let (angle, sign) = quarter(finite(double_at(a, 0)?)?);
        double(positive_zero(sign * (cosine(angle) / sine(angle) / (cosine(45.0) / sine(45.0)))))
    }),
    entry("asind", ONE, DOUBLE, |a| {
        let n = unit(double_at(a, 0)?)?;
        double(if n < 0.0 { -arc_sine(-n) } else { arc_sine(n) })
    }),
    entry("acosd", ONE, DOUBLE, |a| {
        let n = unit(double_at(a, 0)?)?;
        double(if n < 0.0 { 90.0 + arc_sine(-n) } else { arc_cosine(n) })
    }),
    entry("atand", ONE, DOUBLE, |a| double(double_at(a, 0)?.atan() / 1.0_f64.atan() * 45.0)),
    entry("atan2d", TWO, DOUBLE, |a| {
        double(double_at(a, 0)?.atan2(double_at(a, 1)?) / 1.0_f64.atan() * 45.0)
    }),
];

fn fault() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn finite(n: f64) -> Result<f64> {
    if n.is_infinite() { Err(fault()) } else { Ok(n) }
}

/// A number that is a sine.
fn unit(n: f64) -> Result<f64> {
    if n.abs() > 1.0 { Err(fault()) } else { Ok(n) }
}

fn positive_zero(n: f64) -> f64 {
    if n == 0.0 { 0.0 } else { n }
}

/// An angle between 0 and 180 degrees, and the sign of its sine.
fn folded(angle: f64) -> (f64, f64) {
    let angle = angle % 360.0;
    let (angle, sign) = if angle < 0.0 { (-angle, -1.0) } else { (angle, 1.0) };
    if angle > 180.0 { (360.0 - angle, -sign) } else { (angle, sign) }
}

/// An angle between 0 and 90 degrees, and the sign of its tangent.
fn quarter(angle: f64) -> (f64, f64) {
    let (angle, sign) = folded(angle);
    if angle > 90.0 { (180.0 - angle, -sign) } else { (angle, sign) }
}

/// The sine up to 30 degrees.
fn small_sine(angle: f64) -> f64 {
    (angle * DEGREE).sin() / (30.0 * DEGREE).sin() / 2.0
}

/// The cosine up to 60 degrees.
fn small_cosine(angle: f64) -> f64 {
    1.0 - (1.0 - (angle * DEGREE).cos()) / (1.0 - (60.0 * DEGREE).cos()) / 2.0
}

/// The sine up to 90 degrees.
fn sine(angle: f64) -> f64 {
    if angle <= 30.0 { small_sine(angle) } else { small_cosine(90.0 - angle) }
}

/// The cosine up to 90 degrees.
fn cosine(angle: f64) -> f64 {
    if angle <= 60.0 { small_cosine(angle) } else { small_sine(90.0 - angle) }
}

/// The angle of a sine that is not negative.
fn arc_sine(n: f64) -> f64 {
    if n <= 0.5 { n.asin() / 0.5_f64.asin() * 30.0 } else { 90.0 - n.acos() / 0.5_f64.acos() * 60.0 }
}

/// The angle of a cosine that is not negative.
fn arc_cosine(n: f64) -> f64 {
    if n <= 0.5 { 90.0 - n.asin() / 0.5_f64.asin() * 30.0 } else { n.acos() / 0.5_f64.acos() * 60.0 }
}

/// From here on the square of a number has no digit in common with 1.
const LARGE: f64 = 268_435_456.0;

fn asinh(n: f64) -> f64 {
    let x = n.abs();
    if !n.is_finite() || x < 1.0 / LARGE {
        return n;
    }
    let result = if x > LARGE {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x + 1.0 / ((x * x + 1.0).sqrt() + x)).ln()
    } else {
        (x + x * x / (1.0 + (1.0 + x * x).sqrt())).ln_1p()
    };
    result.copysign(n)
}

fn acosh(n: f64) -> f64 {
    if n > LARGE {
        n.ln() + std::f64::consts::LN_2
    } else if n > 2.0 {
        (2.0 * n - 1.0 / (n + (n * n - 1.0).sqrt())).ln()
    } else {
        let t = n - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    }
}

fn atanh(n: f64) -> f64 {
    let x = n.abs();
    if x < 1.0 / LARGE {
        return n;
    }
    let twice = x + x;
    let result = match x < 0.5 {
        true => 0.5 * (twice + twice * x / (1.0 - x)).ln_1p(),
        false => 0.5 * (twice / (1.0 - x)).ln_1p(),
    };
    result.copysign(n)
}
