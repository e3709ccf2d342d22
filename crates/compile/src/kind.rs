//! How values lie in registers and in the frame of generated code.

use albireo_base::{Decimal, SqlType, Value};
use albireo_plpgsql::body::Place;
use albireo_semantics::datum::Datum;
use albireo_semantics::types::{Scalar, Type};

/// The most digits of a number that is kept in 64 bits.
pub(super) const NARROW_DIGITS: u8 = 18;

/// How a value of an expression or variable is kept.
///
/// In a [`Cell`](super::Cell): numbers in `lo`, sign-extended; NUMERIC as 128 bits in `lo` and `hi` with
/// its scale in the tag's second byte; a text as address and length; what is boxed as a number among
/// the call's boxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// BOOLEAN, an integer, a day, a time or a moment: 64 bits.
    Int(Scalar),
    /// DOUBLE PRECISION.
    Double,
    /// NUMERIC whose every value has this scale and at most `digits` digits: 64 bits unscaled.
    Narrow {
        /// Digits after the point.
        scale: u8,
        /// Digits altogether, at most [`NARROW_DIGITS`].
        digits: u8,
    },
    /// Any NUMERIC: a cell's address.
    Numeric,
    /// TEXT, VARCHAR and CHAR: address and length.
    Text,
    /// Anything else: the number of a [`Datum`] that the call keeps.
    Boxed,
}

impl Kind {
    /// Of values of a type, without knowing more.
    pub(super) fn of_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool
            | Scalar::SmallInt
            | Scalar::Integer
            | Scalar::BigInt
            | Scalar::Date
            | Scalar::Time
            | Scalar::Timestamp
            | Scalar::TimestampTz => Self::Int(scalar),
            Scalar::Double => Self::Double,
            Scalar::Numeric { .. } => Self::Numeric,
            Scalar::Text | Scalar::Bpchar => Self::Text,
            Scalar::Unknown | Scalar::Real | Scalar::Bytea | Scalar::Interval | Scalar::Uuid => Self::Boxed,
        }
    }

    /// Of values of a type.
    pub(super) fn of(ty: &Type) -> Self {
        match ty {
            Type::Scalar(scalar) => Self::of_scalar(*scalar),
            Type::Array(_) | Type::Row(_) | Type::Void => Self::Boxed,
        }
    }

    /// Of a column's values.
    pub(super) fn of_column(ty: SqlType) -> Self {
        match ty {
            SqlType::Decimal { precision, scale } if precision <= NARROW_DIGITS => {
                Self::Narrow { scale, digits: precision }
            }
            other => Self::of_scalar(Scalar::of(other)),
        }
    }

    /// Of what a place holds.
    pub(super) fn of_place(place: &Place) -> Self {
        match place {
            Place::Sql(ty) => Self::of_column(*ty),
            Place::Plain(scalar) => Self::of_scalar(*scalar),
            Place::Array(_) | Place::Row(_) | Place::Void => Self::Boxed,
        }
    }

    /// Of a constant; NULL is of the kind of its type.
    pub(super) fn of_constant(datum: &Datum, ty: &Type) -> Self {
        match datum {
            Datum::Value(Value::Decimal(number)) => Self::of_decimal(*number),
            _ => Self::of(ty),
        }
    }

    /// Of one number.
    pub(super) fn of_decimal(number: Decimal) -> Self {
        match (1..=NARROW_DIGITS).find(|digits| number.fits(*digits)) {
            Some(digits) => Self::Narrow { scale: number.scale, digits },
            None => Self::Numeric,
        }
    }

    /// The number that generated code tells the runtime a kind by; [`Kind::from_code`] reads it.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Int(scalar) => {
                let at = INTS.iter().position(|known| *known == scalar);
                1 | (at.unwrap_or_default() as u64) << 8
            }
            Self::Double => 2,
            Self::Narrow { scale, digits } => 3 | u64::from(scale) << 8 | u64::from(digits) << 16,
            Self::Numeric => 4,
            Self::Text => 5,
            Self::Boxed => 6,
        }
    }

    /// The kind of a code.
    pub(super) fn from_code(code: u64) -> Self {
        match code as u8 {
            1 => Self::Int(INTS[(code >> 8) as usize % INTS.len()]),
            2 => Self::Double,
            3 => Self::Narrow { scale: (code >> 8) as u8, digits: (code >> 16) as u8 },
            4 => Self::Numeric,
            5 => Self::Text,
            _ => Self::Boxed,
        }
    }
}

const INTS: [Scalar; 8] = [
    Scalar::Bool,
    Scalar::SmallInt,
    Scalar::Integer,
    Scalar::BigInt,
    Scalar::Date,
    Scalar::Time,
    Scalar::Timestamp,
    Scalar::TimestampTz,
];
