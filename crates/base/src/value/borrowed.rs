//! Values that lie elsewhere.

use super::{Decimal, Value};

/// A [`Value`] whose text is borrowed, so that it can be looked at where it lies.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
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
    /// DOUBLE PRECISION.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// CHAR (without trailing blanks), VARCHAR, TEXT.
    Text(&'a str),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIME: microseconds since midnight, 24:00 included.
    Time(i64),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00.
    Timestamp(i64),
    /// TIMESTAMPTZ: microseconds since 1970-01-01 00:00 UTC.
    TimestampTz(i64),
    /// A value of any other type.
    Other(&'a Value),
}

impl ValueRef<'_> {
    /// Whether this is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null | Self::Other(Value::Null))
    }

    /// The value by itself.
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::SmallInt(n) => Value::SmallInt(n),
            Self::Integer(n) => Value::Integer(n),
            Self::BigInt(n) => Value::BigInt(n),
            Self::Double(n) => Value::Double(n),
            Self::Decimal(n) => Value::Decimal(n),
            Self::Text(text) => Value::Text(text.to_owned()),
            Self::Date(n) => Value::Date(n),
            Self::Time(n) => Value::Time(n),
            Self::Timestamp(n) => Value::Timestamp(n),
            Self::TimestampTz(n) => Value::TimestampTz(n),
            Self::Other(value) => value.clone(),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::SmallInt(n) => Self::SmallInt(*n),
            Value::Integer(n) => Self::Integer(*n),
            Value::BigInt(n) => Self::BigInt(*n),
            Value::Double(n) => Self::Double(*n),
            Value::Decimal(n) => Self::Decimal(*n),
            Value::Text(text) => Self::Text(text),
            Value::Date(n) => Self::Date(*n),
            Value::Time(n) => Self::Time(*n),
            Value::Timestamp(n) => Self::Timestamp(*n),
            Value::TimestampTz(n) => Self::TimestampTz(*n),
            other => Self::Other(other),
        }
    }
}

macro_rules! from {
    ($($rust:ty => $variant:ident),*) => {
        $(impl From<$rust> for ValueRef<'_> {
            fn from(value: $rust) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from!(bool => Bool, i16 => SmallInt, i32 => Integer, i64 => BigInt, f64 => Double, Decimal => Decimal);

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a, T: Into<ValueRef<'a>>> From<Option<T>> for ValueRef<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Two are the same if their [values](ValueRef::to_value) are.
impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => self.to_value() == other.to_value(),
        }
    }
}
