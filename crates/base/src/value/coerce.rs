//! Assignment casts: what INSERT and UPDATE do to a value of another type than the column's.

use super::datetime::MICROS_PER_DAY;
use super::parse::{bare_name, check_precision, decimal_overflow, fit_string};
use super::{Decimal, DecimalError, Value};
use crate::{SqlError, SqlState, SqlType};

impl Value {
    /// Converts to `ty` as an assignment does: numbers among each other (rounding halves of
    /// decimals away from zero and of floats to even, as PostgreSQL), dates and timestamps among
    /// each other (zone UTC), everything to text, and text to everything by [`Value::parse`].
    ///
    /// # Errors
    /// 22003 for a number that does not fit, 22001 for a string that is too long, 42846 if there
    /// is no such cast, and whatever [`Value::parse`] reports.
    pub fn coerce(self, ty: SqlType) -> Result<Self, SqlError> {
        if self.fits(ty) {
            return Ok(self);
        }
        if let Self::Text(text) = &self {
            return match fit_string(text, ty) {
                Ok(fitting) if ty.is_string() => Ok(Self::Text(fitting.to_owned())),
                Ok(_) => Self::parse(text, ty),
                Err(error) => Err(error),
            };
        }
        let converted = match ty {
            SqlType::SmallInt => self.to_integer(ty)?.map(|n| narrow(n, ty, Self::SmallInt)),
            SqlType::Integer => self.to_integer(ty)?.map(|n| narrow(n, ty, Self::Integer)),
            SqlType::BigInt => self.to_integer(ty)?.map(|n| narrow(n, ty, Self::BigInt)),
            SqlType::Real => self.to_float().map(to_real),
            SqlType::Double => self.to_float().map(|n| Ok(Self::Double(n))),
            SqlType::Decimal { precision, scale } => {
                self.to_decimal(precision, scale)?.map(|d| Ok(Self::Decimal(d)))
            }
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                let text = self.to_string();
                Some(fit_string(&text, ty).map(|s| Self::Text(s.to_owned())))
            }
            SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => self.to_moment(ty),
            SqlType::Bool | SqlType::Bytea | SqlType::Uuid => None,
        };
        converted.unwrap_or_else(|| Err(self.no_cast(ty)))
    }

    fn no_cast(&self, ty: SqlType) -> SqlError {
        let from = self.sql_type().map_or_else(|| "unknown".to_owned(), bare_name);
        let message = format!("cannot cast type {from} to {}", bare_name(ty));
        SqlError::new(SqlState::CANNOT_COERCE, message)
    }

    /// A number as the nearest whole one; `None` if this is no number.
    fn to_integer(&self, ty: SqlType) -> Result<Option<i128>, SqlError> {
        Ok(Some(match self {
            Self::SmallInt(n) => i128::from(*n),
            Self::Integer(n) => i128::from(*n),
            Self::BigInt(n) => i128::from(*n),
            Self::Decimal(d) => d.round(),
            Self::Real(n) => float_to_integer(f64::from(*n), ty)?,
            Self::Double(n) => float_to_integer(*n, ty)?,
            _ => return Ok(None),
        }))
    }

    fn to_float(&self) -> Option<f64> {
        Some(match self {
            Self::SmallInt(n) => f64::from(*n),
            Self::Integer(n) => f64::from(*n),
            Self::BigInt(n) => *n as f64,
            Self::Real(n) => f64::from(*n),
            Self::Double(n) => *n,
            Self::Decimal(d) => d.to_f64(),
            _ => return None,
        })
    }

    fn to_decimal(&self, precision: u8, scale: u8) -> Result<Option<Decimal>, SqlError> {
        let whole = |n: i64| Decimal::new(i128::from(n), 0).rescale(scale);
        let number = match self {
            Self::SmallInt(n) => whole(i64::from(*n)),
            Self::Integer(n) => whole(i64::from(*n)),
            Self::BigInt(n) => whole(*n),
            Self::Decimal(d) => d.rescale(scale),
            Self::Real(n) => from_float(Decimal::from_f32(*n, scale))?,
            Self::Double(n) => from_float(Decimal::from_f64(*n, scale))?,
            _ => return Ok(None),
        };
        let number = number.ok_or_else(|| decimal_overflow(precision, scale))?;
        check_precision(number, precision).map(Some)
    }

    fn to_moment(&self, ty: SqlType) -> Option<Result<Self, SqlError>> {
        let micros = match self {
            Self::Timestamp(micros) | Self::TimestampTz(micros) => *micros,
            Self::Date(days) if ty != SqlType::Time => match i64::from(*days).checked_mul(MICROS_PER_DAY) {
                Some(micros) => micros,
                None => return Some(Err(date_too_far())),
            },
            _ => return None,
        };
        Some(Ok(match ty {
            SqlType::Timestamp => Self::Timestamp(micros),
            SqlType::TimestampTz => Self::TimestampTz(micros),
            SqlType::Time => Self::Time(micros.rem_euclid(MICROS_PER_DAY)),
            // All of i64 microseconds is less than 2^27 days.
            _ => Self::Date(micros.div_euclid(MICROS_PER_DAY) as i32),
        }))
    }
}

fn date_too_far() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

fn out_of_range(ty: SqlType) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

fn narrow<T: TryFrom<i128>>(number: i128, ty: SqlType, make: fn(T) -> Value) -> Result<Value, SqlError> {
    T::try_from(number).map(make).map_err(|_| out_of_range(ty))
}

fn float_to_integer(number: f64, ty: SqlType) -> Result<i128, SqlError> {
    // NaN fails the comparison as well; the limit is far beyond BIGINT and well within 128 bits.
    if number.abs() < 1e20 { Ok(number.round_ties_even() as i128) } else { Err(out_of_range(ty)) }
}

fn to_real(number: f64) -> Result<Value, SqlError> {
    let error = |what: &str| {
        let message = format!("value out of range: {what}");
        Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
    };
    let real = number as f32;
    if real.is_infinite() && number.is_finite() {
        return error("overflow");
    }
    if real == 0.0 && number != 0.0 {
        return error("underflow");
    }
    Ok(Value::Real(real))
}

fn from_float(parsed: Result<Decimal, DecimalError>) -> Result<Option<Decimal>, SqlError> {
    match parsed {
        Ok(number) => Ok(Some(number)),
        Err(DecimalError::Overflow) => Ok(None),
        Err(DecimalError::Syntax) => {
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot convert NaN to numeric"))
        }
    }
}
