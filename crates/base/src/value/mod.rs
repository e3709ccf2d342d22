//! One SQL value of any type: text form, coercion, comparison; the same where it lies (`borrowed`).
//!
//! Responsible for: reading and writing PostgreSQL's text form of each type (`parse`, `format`),
//! assignment casts (`coerce`), one total order (`compare`), exact decimal arithmetic
//! (`decimal`), the calendar (`datetime`). Not responsible for: how a value lies in memory
//! (`storage`) and expressions over columns (`olap`).
//!
//! Invariants: `Value::parse(v.to_string(), t) == v` for every value `v` of type `t` that is not
//! NULL, except that CHAR loses trailing blanks and DATE and TIMESTAMP refuse values outside
//! the range documented in `datetime` (tests: `value/properties.rs`). Nothing here panics on any input.
//!
//! Units: days and microseconds since 1970-01-01, microseconds since midnight.

mod borrowed;
mod coerce;
mod compare;
mod datetime;
mod decimal;
mod format;
mod interval;
mod parse;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use borrowed::ValueRef;
pub use datetime::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
pub use decimal::{Decimal, DecimalError};
pub use interval::Interval;

use crate::SqlType;

/// One value, or NULL. Integers of different width are different values; [`Value::coerce`]
/// converts.
#[derive(Clone, Debug)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// BOOLEAN.
    Bool(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE PRECISION.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// CHAR (without trailing blanks), VARCHAR, TEXT.
    Text(String),
    /// BYTEA.
    Bytea(Vec<u8>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIME: microseconds since midnight, 24:00 included.
    Time(i64),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00.
    Timestamp(i64),
    /// TIMESTAMPTZ: microseconds since 1970-01-01 00:00 UTC.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
}

impl Value {
    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The widest type whose values look like this one; `None` for NULL. A decimal gets 38 digits
    /// and its own scale, a string TEXT.
    pub fn sql_type(&self) -> Option<SqlType> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => SqlType::Bool,
            Self::SmallInt(_) => SqlType::SmallInt,
            Self::Integer(_) => SqlType::Integer,
            Self::BigInt(_) => SqlType::BigInt,
            Self::Real(_) => SqlType::Real,
            Self::Double(_) => SqlType::Double,
            Self::Decimal(d) => {
                SqlType::Decimal { precision: SqlType::MAX_DECIMAL_PRECISION, scale: d.scale }
            }
            Self::Text(_) => SqlType::Text,
            Self::Bytea(_) => SqlType::Bytea,
            Self::Date(_) => SqlType::Date,
            Self::Time(_) => SqlType::Time,
            Self::Timestamp(_) => SqlType::Timestamp,
            Self::TimestampTz(_) => SqlType::TimestampTz,
            Self::Uuid(_) => SqlType::Uuid,
        })
    }

    /// Whether a column of type `ty` can hold this value as it is: the right variant, a decimal of
    /// the right scale and within the precision, a string within the length. NULL always fits.
    pub fn fits(&self, ty: SqlType) -> bool {
        match (self, ty) {
            (Self::Null, _)
            | (Self::Bool(_), SqlType::Bool)
            | (Self::SmallInt(_), SqlType::SmallInt)
            | (Self::Integer(_), SqlType::Integer)
            | (Self::BigInt(_), SqlType::BigInt)
            | (Self::Real(_), SqlType::Real)
            | (Self::Double(_), SqlType::Double)
            | (Self::Text(_), SqlType::Text)
            | (Self::Bytea(_), SqlType::Bytea)
            | (Self::Date(_), SqlType::Date)
            | (Self::Time(_), SqlType::Time)
            | (Self::Timestamp(_), SqlType::Timestamp)
            | (Self::TimestampTz(_), SqlType::TimestampTz)
            | (Self::Uuid(_), SqlType::Uuid) => true,
            (Self::Decimal(d), SqlType::Decimal { precision, scale }) => {
                d.scale == scale && d.fits(precision)
            }
            (Self::Text(s), SqlType::Varchar(n)) => parse::length_at_most(s, n),
            (Self::Text(s), SqlType::Char(n)) => parse::length_at_most(s, n) && !s.ends_with(' '),
            _ => false,
        }
    }
}

macro_rules! from {
    ($($rust:ty => $variant:ident;)*) => {
        $(impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from! {
    bool => Bool;
    i16 => SmallInt;
    i32 => Integer;
    i64 => BigInt;
    f32 => Real;
    f64 => Double;
    Decimal => Decimal;
    String => Text;
    Vec<u8> => Bytea;
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
