//! SQL types as a column declares them.

use std::fmt;

/// The type of a column or value. Names and limits are PostgreSQL's unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SqlType {
    /// `BOOLEAN`.
    Bool,
    /// `SMALLINT`, 16 bits.
    SmallInt,
    /// `INTEGER`, 32 bits.
    Integer,
    /// `BIGINT`, 64 bits.
    BigInt,
    /// `REAL`, IEEE 754 single.
    Real,
    /// `DOUBLE PRECISION`, IEEE 754 double.
    Double,
    /// `DECIMAL(precision, scale)`: `1 <= precision <= 38`, `scale <= precision`. Stored scaled in
    /// 64 bits up to 18 digits, in 128 beyond.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `CHAR(n)`, `n` characters; trailing blanks carry no meaning and are not stored.
    Char(u32),
    /// `VARCHAR(n)`, at most `n` characters; `VARCHAR` without a length is [`SqlType::Text`].
    Varchar(u32),
    /// `TEXT`.
    Text,
    /// `BYTEA`.
    Bytea,
    /// `DATE`: days since 1970-01-01 in 32 bits.
    Date,
    /// `TIME`: microseconds since midnight.
    Time,
    /// `TIMESTAMP`: microseconds since 1970-01-01 00:00, no zone.
    Timestamp,
    /// `TIMESTAMPTZ`: microseconds since 1970-01-01 00:00 UTC.
    TimestampTz,
    /// `UUID`, 16 bytes.
    Uuid,
}

impl SqlType {
    /// Digits that fit 64 bits in every case.
    pub const MAX_DECIMAL64_PRECISION: u8 = 18;
    /// Digits that fit 128 bits in every case.
    pub const MAX_DECIMAL_PRECISION: u8 = 38;

    /// Whether values are character strings.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Char(_) | Self::Varchar(_) | Self::Text)
    }

    /// Whether values are whole numbers of fixed width.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::SmallInt | Self::Integer | Self::BigInt)
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("boolean"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Integer => f.write_str("integer"),
            Self::BigInt => f.write_str("bigint"),
            Self::Real => f.write_str("real"),
            Self::Double => f.write_str("double precision"),
            Self::Decimal { precision, scale } => write!(f, "numeric({precision},{scale})"),
            Self::Char(n) => write!(f, "character({n})"),
            Self::Varchar(n) => write!(f, "character varying({n})"),
            Self::Text => f.write_str("text"),
            Self::Bytea => f.write_str("bytea"),
            Self::Date => f.write_str("date"),
            Self::Time => f.write_str("time without time zone"),
            Self::Timestamp => f.write_str("timestamp without time zone"),
            Self::TimestampTz => f.write_str("timestamp with time zone"),
            Self::Uuid => f.write_str("uuid"),
        }
    }
}
