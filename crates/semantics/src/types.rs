//! The types of values in a procedure.

use std::fmt;
use std::sync::Arc;

use albireo_base::SqlType;

/// The type of an expression or a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// One value.
    Scalar(Scalar),
    /// An array of one dimension.
    Array(Scalar),
    /// A row with named fields: of a table, of a query, or a variable of type RECORD once its query is
    /// known.
    Row(Arc<RowType>),
    /// What a function gives that returns nothing.
    Void,
}

/// A type without its modifier: lengths and precisions matter where a value is stored or cast, and
/// stand there ([`SqlType`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    /// A literal in quotes or NULL, before something says what it is. No bound expression has it.
    Unknown,
    /// BOOLEAN.
    Bool,
    /// SMALLINT.
    SmallInt,
    /// INTEGER.
    Integer,
    /// BIGINT.
    BigInt,
    /// REAL.
    Real,
    /// DOUBLE PRECISION.
    Double,
    /// NUMERIC; the digits after the point if they are the same for every value the expression can
    /// have, which lets the compiler keep it in a register.
    Numeric {
        /// Digits after the point.
        scale: Option<u8>,
    },
    /// TEXT and VARCHAR.
    Text,
    /// CHAR(n): as TEXT, but trailing blanks count for nothing in comparisons and casts to TEXT.
    Bpchar,
    /// BYTEA.
    Bytea,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// TIMESTAMP.
    Timestamp,
    /// TIMESTAMPTZ.
    TimestampTz,
    /// INTERVAL.
    Interval,
    /// UUID.
    Uuid,
}

/// The fields of a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowType {
    /// Their names, lower case unless quoted, and types. A name may come twice.
    pub fields: Vec<(String, Scalar)>,
}

impl Scalar {
    /// The type of a column's values.
    pub fn of(ty: SqlType) -> Self {
        match ty {
            SqlType::Bool => Self::Bool,
            SqlType::SmallInt => Self::SmallInt,
            SqlType::Integer => Self::Integer,
            SqlType::BigInt => Self::BigInt,
            SqlType::Real => Self::Real,
            SqlType::Double => Self::Double,
            SqlType::Decimal { scale, .. } => Self::Numeric { scale: Some(scale) },
            SqlType::Char(_) => Self::Bpchar,
            SqlType::Varchar(_) | SqlType::Text => Self::Text,
            SqlType::Bytea => Self::Bytea,
            SqlType::Date => Self::Date,
            SqlType::Time => Self::Time,
            SqlType::Timestamp => Self::Timestamp,
            SqlType::TimestampTz => Self::TimestampTz,
            SqlType::Uuid => Self::Uuid,
        }
    }

    /// Whether two types differ at most in what is known of their scale.
    pub fn same(self, other: Self) -> bool {
        self == other || matches!((self, other), (Self::Numeric { .. }, Self::Numeric { .. }))
    }
}

impl fmt::Display for Scalar {
    /// PostgreSQL's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Bool => "boolean",
            Self::SmallInt => "smallint",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Numeric { .. } => "numeric",
            Self::Text => "text",
            Self::Bpchar => "character",
            Self::Bytea => "bytea",
            Self::Date => "date",
            Self::Time => "time without time zone",
            Self::Timestamp => "timestamp without time zone",
            Self::TimestampTz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Uuid => "uuid",
        })
    }
}

impl fmt::Display for Type {
    /// PostgreSQL's name; rows are records.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Array(element) => write!(f, "{element}[]"),
            Self::Row(_) => f.write_str("record"),
            Self::Void => f.write_str("void"),
        }
    }
}
