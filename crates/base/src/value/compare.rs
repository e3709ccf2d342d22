//! One total order and its equality and hash.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use super::Value;

impl Value {
    /// The variant's place in the order of variants; NULL comes last, as `ORDER BY` has it.
    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::SmallInt(_) => 1,
            Self::Integer(_) => 2,
            Self::BigInt(_) => 3,
            Self::Real(_) => 4,
            Self::Double(_) => 5,
            Self::Decimal(_) => 6,
            Self::Text(_) => 7,
            Self::Bytea(_) => 8,
            Self::Date(_) => 9,
            Self::Time(_) => 10,
            Self::Timestamp(_) => 11,
            Self::TimestampTz(_) => 12,
            Self::Uuid(_) => 13,
            Self::Null => 14,
        }
    }
}

/// SQL's order of values of one type, made total: NULL is last and equal to NULL, NaN equals
/// itself and follows every other number, strings compare by their UTF-8 bytes. Values of
/// different variants compare by variant; convert them first to compare numbers.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::SmallInt(a), Self::SmallInt(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) | (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::BigInt(a), Self::BigInt(b))
            | (Self::Time(a), Self::Time(b))
            | (Self::Timestamp(a), Self::Timestamp(b))
            | (Self::TimestampTz(a), Self::TimestampTz(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => float(f64::from(*a), f64::from(*b)),
            (Self::Double(a), Self::Double(b)) => float(*a, *b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytea(a), Self::Bytea(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// -0 equals 0, and NaN is the greatest.
fn float(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(b) => b.hash(state),
            Self::SmallInt(n) => n.hash(state),
            Self::Integer(n) | Self::Date(n) => n.hash(state),
            Self::BigInt(n) | Self::Time(n) | Self::Timestamp(n) | Self::TimestampTz(n) => {
                n.hash(state);
            }
            Self::Real(n) => canonical_bits(f64::from(*n)).hash(state),
            Self::Double(n) => canonical_bits(*n).hash(state),
            Self::Decimal(d) => d.hash(state),
            Self::Text(s) => s.hash(state),
            Self::Bytea(bytes) => bytes.hash(state),
            Self::Uuid(bytes) => bytes.hash(state),
        }
    }
}

/// One bit pattern for all zeros and one for all NaNs.
fn canonical_bits(number: f64) -> u64 {
    if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() }
}
