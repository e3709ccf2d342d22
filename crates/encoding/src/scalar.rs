//! What a column holds: kinds, single values, and SQL's order of them.
//!
//! Units: floats are the bits of their value, texts are bytes.

use std::cmp::Ordering;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 0 or 1.
    Bool,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed; dates too.
    I32,
    /// 64 bits, signed; decimals of up to 18 digits, times and timestamps too.
    I64,
    /// 128 bits, signed: longer decimals.
    I128,
    /// Floating point of 32 bits.
    F32,
    /// Floating point of 64 bits.
    F64,
    /// 16 bytes, ordered as bytes.
    Uuid,
    /// Bytes, ordered as bytes; whether they are UTF-8 is for others to know.
    Text,
}

impl Kind {
    /// Every kind, in the order of their numbers in headers.
    pub const ALL: [Self; 9] = [
        Self::Bool,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::F32,
        Self::F64,
        Self::Uuid,
        Self::Text,
    ];

    /// The kind that has a number in headers.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Whether values are handled as `i64`.
    #[inline]
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Bool | Self::I16 | Self::I32 | Self::I64)
    }

    /// The least and the greatest value of a kind of integer.
    pub(crate) fn limits(self) -> Option<(i64, i64)> {
        match self {
            Self::Bool => Some((0, 1)),
            Self::I16 => Some((i16::MIN.into(), i16::MAX.into())),
            Self::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            Self::I64 => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// The bytes of a value that is stored as it is; none of integers and texts.
    pub(crate) fn stride(self) -> Option<usize> {
        match self {
            Self::F32 => Some(4),
            Self::F64 => Some(8),
            Self::I128 | Self::Uuid => Some(16),
            _ => None,
        }
    }

    /// Its number in headers.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// What stands for a value where there is none.
    pub(crate) fn zero(self) -> Scalar {
        match self {
            Self::Bool | Self::I16 | Self::I32 | Self::I64 => Scalar::Integer(0),
            Self::I128 => Scalar::I128(0),
            Self::F32 => Scalar::F32(0),
            Self::F64 => Scalar::F64(0),
            Self::Uuid => Scalar::Uuid([0; 16]),
            Self::Text => Scalar::Text(Box::default()),
        }
    }
}

/// One value of its own. Equality is of bits; for SQL's order see [`ScalarRef::compare`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// Of [`Kind::Bool`], [`Kind::I16`], [`Kind::I32`] or [`Kind::I64`].
    Integer(i64),
    /// Of [`Kind::I128`].
    I128(i128),
    /// Bits of [`Kind::F32`].
    F32(u32),
    /// Bits of [`Kind::F64`].
    F64(u64),
    /// Of [`Kind::Uuid`].
    Uuid([u8; 16]),
    /// Of [`Kind::Text`].
    Text(Box<[u8]>),
}

impl Scalar {
    /// The value, lent.
    #[inline]
    pub fn as_ref(&self) -> ScalarRef<'_> {
        match self {
            Self::Integer(value) => ScalarRef::Integer(*value),
            Self::I128(value) => ScalarRef::I128(*value),
            Self::F32(bits) => ScalarRef::F32(*bits),
            Self::F64(bits) => ScalarRef::F64(*bits),
            Self::Uuid(bytes) => ScalarRef::Uuid(*bytes),
            Self::Text(bytes) => ScalarRef::Text(bytes),
        }
    }

    /// Whether it can be a value of `kind`.
    pub fn is_of(&self, kind: Kind) -> bool {
        match self {
            Self::Integer(value) => kind.limits().is_some_and(|(least, most)| (least..=most).contains(value)),
            Self::I128(_) => kind == Kind::I128,
            Self::F32(_) => kind == Kind::F32,
            Self::F64(_) => kind == Kind::F64,
            Self::Uuid(_) => kind == Kind::Uuid,
            Self::Text(_) => kind == Kind::Text,
        }
    }
}

/// One value, lent by a column or by who asks. Equality is of bits; for SQL's order see [`ScalarRef::compare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarRef<'a> {
    /// Of [`Kind::Bool`], [`Kind::I16`], [`Kind::I32`] or [`Kind::I64`].
    Integer(i64),
    /// Of [`Kind::I128`].
    I128(i128),
    /// Bits of [`Kind::F32`].
    F32(u32),
    /// Bits of [`Kind::F64`].
    F64(u64),
    /// Of [`Kind::Uuid`].
    Uuid([u8; 16]),
    /// Of [`Kind::Text`].
    Text(&'a [u8]),
}

impl ScalarRef<'_> {
    /// SQL's order: integers by value; floats as PostgreSQL does, NaN equal to itself and above all others, -0.0
    /// equal to 0.0; UUIDs and texts by bytes.
    ///
    /// # Panics
    /// The two are not of one kind.
    #[inline]
    pub fn compare(self, other: ScalarRef<'_>) -> Ordering {
        match (self, other) {
            (Self::Integer(a), ScalarRef::Integer(b)) => a.cmp(&b),
            (Self::I128(a), ScalarRef::I128(b)) => a.cmp(&b),
            (Self::F32(a), ScalarRef::F32(b)) => f32_key(a).cmp(&f32_key(b)),
            (Self::F64(a), ScalarRef::F64(b)) => f64_key(a).cmp(&f64_key(b)),
            (Self::Uuid(a), ScalarRef::Uuid(b)) => a.cmp(&b),
            (Self::Text(a), ScalarRef::Text(b)) => a.cmp(b),
            _ => panic!("values of two kinds have no order"),
        }
    }

    /// SQL's order, and among values that are equal in it that of their bits: a total order in which two values are
    /// equal only if they are the same.
    pub(crate) fn compare_exactly(self, other: ScalarRef<'_>) -> Ordering {
        self.compare(other).then_with(|| match (self, other) {
            (Self::F32(a), ScalarRef::F32(b)) => a.cmp(&b),
            (Self::F64(a), ScalarRef::F64(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        })
    }

    /// The value on its own.
    pub fn to_scalar(self) -> Scalar {
        match self {
            Self::Integer(value) => Scalar::Integer(value),
            Self::I128(value) => Scalar::I128(value),
            Self::F32(bits) => Scalar::F32(bits),
            Self::F64(bits) => Scalar::F64(bits),
            Self::Uuid(bytes) => Scalar::Uuid(bytes),
            Self::Text(bytes) => Scalar::Text(bytes.into()),
        }
    }
}

/// A number whose order is SQL's order of the floats with these bits; the same for both zeros and for all NaNs.
#[inline]
pub(crate) fn f64_key(bits: u64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let magnitude = bits & !SIGN;
    let key = if bits & SIGN == 0 { SIGN + magnitude } else { SIGN - magnitude };
    if magnitude > f64::INFINITY.to_bits() { u64::MAX } else { key }
}

/// As [`f64_key`], of 32 bits.
#[inline]
pub(crate) fn f32_key(bits: u32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let magnitude = bits & !SIGN;
    let key = if bits & SIGN == 0 { SIGN + magnitude } else { SIGN - magnitude };
    if magnitude > f32::INFINITY.to_bits() { u32::MAX } else { key }
}

/// A number whose order is that of signed integers.
#[inline]
pub(crate) fn i128_key(value: i128) -> u128 {
    value as u128 ^ (1 << 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_ordered_as_postgresql_orders_them() {
        let ascending =
            [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, f64::INFINITY];
        let keys: Vec<u64> = ascending.iter().map(|value| f64_key(value.to_bits())).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert_eq!(f64_key((-0.0_f64).to_bits()), f64_key(0));
        for nan in [f64::NAN.to_bits(), 0xfff8_0000_0000_0001, 0x7ff0_0000_0000_0001] {
            assert_eq!(f64_key(nan), u64::MAX);
        }
        let singles = [f32::NEG_INFINITY, -1.0, 0.0, 1e-45, f32::MAX, f32::INFINITY, f32::NAN];
        assert!(singles.iter().map(|value| f32_key(value.to_bits())).is_sorted_by(|a, b| a < b));
        assert_eq!(f32_key((-0.0_f32).to_bits()), f32_key(0));
        assert_eq!(f32_key(0xffc0_0001), u32::MAX);
    }

    #[test]
    fn values_of_other_kinds_are_ordered_by_value_or_by_bytes() {
        assert!(i128_key(-1) < i128_key(0) && i128_key(i128::MIN) == 0 && i128_key(i128::MAX) == u128::MAX);
        assert_eq!(ScalarRef::Text(b"ab").compare(ScalarRef::Text(b"abc")), Ordering::Less);
        assert_eq!(ScalarRef::Integer(-1).compare(ScalarRef::Integer(1)), Ordering::Less);
        let (minus, plus) = (ScalarRef::F64((-0.0_f64).to_bits()), ScalarRef::F64(0));
        assert_eq!(minus.compare(plus), Ordering::Equal);
        assert_eq!(minus.compare_exactly(plus), Ordering::Greater);
    }

    #[test]
    fn kinds_are_numbered_in_order() {
        assert!(Kind::ALL.iter().enumerate().all(|(number, kind)| usize::from(kind.number()) == number));
        assert!(Kind::ALL.iter().all(|kind| kind.zero().is_of(*kind)));
    }
}
