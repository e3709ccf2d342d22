//! One value as bytes.

use albireo_base::{Decimal, SqlType, Value};

use super::read::Malformed;
use crate::column::has_digits;
use crate::layout::Physical;

/// Appends a number of variable length.
#[inline(always)]
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        out.push(number as u8);
    } else {
        put_long_number(out, number);
    }
}

/// [`put_number`] of one that has more than seven bits.
#[inline]
fn put_long_number(out: &mut Vec<u8>, mut number: u64) {
    let (mut bytes, mut length) = ([0; 10], 0);
    while number >= 0x80 {
        bytes[length] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length] = number as u8;
    out.extend_from_slice(&bytes[..=length]);
}

/// Appends a signed number of variable length.
#[inline(always)]
fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a signed number of up to 128 bits.
fn put_wide(out: &mut Vec<u8>, number: i128) {
    let mut zigzag = ((number << 1) ^ (number >> 127)) as u128;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// Appends a value that is not NULL: `slot` is what its slot holds, `text` a string's bytes.
///
/// # Panics
/// The slot is not as wide as its form says.
#[inline]
pub(super) fn put_value(out: &mut Vec<u8>, physical: Physical, slot: &[u8], text: &[u8]) {
    match physical {
        Physical::I16 => put_signed(out, i64::from(i16::from_le_bytes(array(slot)))),
        Physical::I32 => put_signed(out, i64::from(i32::from_le_bytes(array(slot)))),
        Physical::I64 => put_signed(out, i64::from_le_bytes(array(slot))),
        Physical::I128 => put_wide(out, i128::from_le_bytes(array(slot))),
        Physical::Bool => out.push(u8::from(slot[0] != 0)),
        Physical::F32 | Physical::F64 | Physical::Uuid => out.extend_from_slice(slot),
        Physical::Inline(_) | Physical::View => {
            put_number(out, text.len() as u64);
            out.extend_from_slice(text);
        }
    }
}

#[inline]
fn array<const N: usize>(slot: &[u8]) -> [u8; N] {
    slot.try_into().expect("a slot is as wide as its form")
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
    /// How many there were.
    length: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Something is wrong here.
    pub(super) fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.length - self.rest.len(), what }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.wrong("the record ends too early"));
        };
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let wide = self.wide()?;
        u64::try_from(wide).map_err(|_| self.wrong("a number has more than 64 bits"))
    }

    #[inline]
    fn wide(&mut self) -> Result<u128, Malformed> {
        let (mut number, mut shift) = (0_u128, 0);
        loop {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift > 121 && bits >> (128 - shift) != 0 {
                return Err(self.wrong("a number has more than 128 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
            if shift > 127 {
                return Err(self.wrong("a number has more than 128 bits"));
            }
        }
    }

    fn signed(&mut self) -> Result<i64, Malformed> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn signed_wide(&mut self) -> Result<i128, Malformed> {
        let zigzag = self.wide()?;
        Ok((zigzag >> 1) as i128 ^ -((zigzag & 1) as i128))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(array(self.bytes(N)?))
    }

    fn narrow<T: TryFrom<i64>>(&mut self) -> Result<T, Malformed> {
        let number = self.signed()?;
        T::try_from(number).map_err(|_| self.wrong("a number does not fit its column's type"))
    }

    /// A value of a type that is not NULL.
    pub(super) fn value(&mut self, ty: SqlType) -> Result<Value, Malformed> {
        Ok(match ty {
            SqlType::Bool => Value::Bool(self.byte()? != 0),
            SqlType::SmallInt => Value::SmallInt(self.narrow()?),
            SqlType::Integer => Value::Integer(self.narrow()?),
            SqlType::BigInt => Value::BigInt(self.signed()?),
            SqlType::Real => Value::Real(f32::from_le_bytes(self.fixed()?)),
            SqlType::Double => Value::Double(f64::from_le_bytes(self.fixed()?)),
            SqlType::Decimal { precision, scale } => {
                let unscaled = self.signed_wide()?;
                if !has_digits(unscaled, precision) {
                    return Err(self.wrong("a decimal has more digits than its column"));
                }
                Value::Decimal(Decimal { unscaled, scale })
            }
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                let bytes = self.string()?;
                let text = std::str::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))?;
                Value::Text(text.to_owned())
            }
            SqlType::Bytea => Value::Bytea(self.string()?.to_vec()),
            SqlType::Date => Value::Date(self.narrow()?),
            SqlType::Time => Value::Time(self.signed()?),
            SqlType::Timestamp => Value::Timestamp(self.signed()?),
            SqlType::TimestampTz => Value::TimestampTz(self.signed()?),
            SqlType::Uuid => Value::Uuid(self.fixed()?),
        })
    }

    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.bytes(length)
    }
}
