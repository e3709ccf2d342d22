//! One value as bytes.

use albireo_base::packed::{Input, Malformed, put_bytes, put_signed, put_wide};
use albireo_base::{Decimal, SqlType, Value};

use crate::column::has_digits;
use crate::layout::Physical;

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
            put_bytes(out, text);
        }
    }
}

#[inline]
fn array<const N: usize>(slot: &[u8]) -> [u8; N] {
    slot.try_into().expect("a slot is as wide as its form")
}

/// A value of a type that is not NULL.
pub(super) fn value(input: &mut Input<'_>, ty: SqlType) -> Result<Value, Malformed> {
    Ok(match ty {
        SqlType::Bool => Value::Bool(input.byte()? != 0),
        SqlType::SmallInt => Value::SmallInt(input.narrow()?),
        SqlType::Integer => Value::Integer(input.narrow()?),
        SqlType::BigInt => Value::BigInt(input.signed()?),
        SqlType::Real => Value::Real(f32::from_le_bytes(input.fixed()?)),
        SqlType::Double => Value::Double(f64::from_le_bytes(input.fixed()?)),
        SqlType::Decimal { precision, scale } => {
            let unscaled = input.signed_wide()?;
            if !has_digits(unscaled, precision) {
                return Err(input.wrong("a decimal has more digits than its column"));
            }
            Value::Decimal(Decimal { unscaled, scale })
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => Value::Text(input.text()?.to_owned()),
        SqlType::Bytea => Value::Bytea(input.string()?.to_vec()),
        SqlType::Date => Value::Date(input.narrow()?),
        SqlType::Time => Value::Time(input.signed()?),
        SqlType::Timestamp => Value::Timestamp(input.signed()?),
        SqlType::TimestampTz => Value::TimestampTz(input.signed()?),
        SqlType::Uuid => Value::Uuid(input.fixed()?),
    })
}
