//! One column of a batch while it is made, from values or from their texts.
//!
//! Responsible for: the text form of each type into Arrow's native form, NOT NULL. Not responsible for: where
//! texts come from.
//!
//! I-1 The arrays are of the types that [`albireo_base::arrow_type`] says.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, Value, arrow_type};
use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder};

use crate::{excerpt, fast};

/// Why a field is not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellError {
    /// NULL where a value must be.
    Null,
    /// It is no value of the column's type.
    Value(SqlError),
}

/// The text of a field, or NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    /// No byte is zero, which no string may hold.
    pub(crate) is_checked: bool,
}

impl<'a> Text<'a> {
    /// The characters.
    pub(crate) fn read(self) -> Result<&'a str, SqlError> {
        let error = match std::str::from_utf8(self.bytes) {
            Ok(text) => return Ok(text),
            Err(error) => error,
        };
        let byte = self.bytes[error.valid_up_to()];
        let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}");
        let error = SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message);
        Err(error.with_hint("Say with the option ENCODING how the file is encoded, such as LATIN1."))
    }
}

/// A column that grows.
pub struct ColumnBuilder {
    ty: SqlType,
    values: Values,
    nulls: NullBufferBuilder,
    nullable: bool,
}

enum Values {
    Bool(BooleanBufferBuilder),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Uuid(Vec<u8>),
}

impl ColumnBuilder {
    /// An empty column of type `ty` with room for `rows`; `text_bytes` is what its strings will need at most.
    pub fn new(ty: SqlType, nullable: bool, rows: usize, text_bytes: usize) -> Self {
        let block = u32::try_from(text_bytes).unwrap_or(u32::MAX).clamp(1, 1 << 30);
        let values = match ty {
            SqlType::Bool => Values::Bool(BooleanBufferBuilder::new(rows)),
            SqlType::SmallInt => Values::I16(Vec::with_capacity(rows)),
            SqlType::Integer | SqlType::Date => Values::I32(Vec::with_capacity(rows)),
            SqlType::BigInt | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => {
                Values::I64(Vec::with_capacity(rows))
            }
            SqlType::Real => Values::F32(Vec::with_capacity(rows)),
            SqlType::Double => Values::F64(Vec::with_capacity(rows)),
            SqlType::Decimal { .. } => Values::I128(Vec::with_capacity(rows)),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                Values::Text(StringViewBuilder::with_capacity(rows).with_fixed_block_size(block))
            }
            SqlType::Bytea => {
                Values::Bytes(BinaryViewBuilder::with_capacity(rows).with_fixed_block_size(block))
            }
            SqlType::Uuid => Values::Uuid(Vec::with_capacity(rows * 16)),
        };
        Self { ty, values, nulls: NullBufferBuilder::new(rows), nullable }
    }

    /// Rows so far.
    fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Adds NULL.
    ///
    /// # Errors
    /// The column takes none.
    pub fn push_null(&mut self) -> Result<(), CellError> {
        if !self.nullable {
            return Err(CellError::Null);
        }
        match &mut self.values {
            Values::Bool(values) => values.append(false),
            Values::I16(values) => values.push(0),
            Values::I32(values) => values.push(0),
            Values::I64(values) => values.push(0),
            Values::F32(values) => values.push(0.0),
            Values::F64(values) => values.push(0.0),
            Values::I128(values) => values.push(0),
            // Their builders keep an account of NULLs of their own.
            Values::Text(values) => values.append_null(),
            Values::Bytes(values) => values.append_null(),
            Values::Uuid(values) => values.extend_from_slice(&[0; 16]),
        }
        self.nulls.append_null();
        Ok(())
    }

    /// Adds a value, converted to the column's type as an assignment does.
    ///
    /// # Errors
    /// It has no place in the column.
    pub fn push_value(&mut self, value: Value) -> Result<(), CellError> {
        if value.is_null() {
            return self.push_null();
        }
        let value = value.coerce(self.ty).map_err(CellError::Value)?;
        self.append(&value);
        Ok(())
    }

    /// Adds a value of the column's type.
    fn append(&mut self, value: &Value) {
        match (&mut self.values, value) {
            (Values::Bool(values), Value::Bool(v)) => values.append(*v),
            (Values::I16(values), Value::SmallInt(v)) => values.push(*v),
            (Values::I32(values), Value::Integer(v) | Value::Date(v)) => values.push(*v),
            (
                Values::I64(values),
                Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v),
            ) => values.push(*v),
            (Values::F32(values), Value::Real(v)) => values.push(*v),
            (Values::F64(values), Value::Double(v)) => values.push(*v),
            (Values::I128(values), Value::Decimal(v)) => values.push(v.unscaled),
            (Values::Text(values), Value::Text(v)) => values.append_value(v),
            (Values::Bytes(values), Value::Bytea(v)) => values.append_value(v),
            (Values::Uuid(values), Value::Uuid(v)) => values.extend_from_slice(v),
            (_, value) => unreachable!("{value:?} is no value of type {}", self.ty),
        }
        self.nulls.append_non_null();
    }

    /// Adds the values of `texts`, one after another; `None` is NULL. An error comes with the number of rows
    /// that this call has added before it.
    pub(crate) fn extend<'a>(
        &mut self,
        texts: impl Iterator<Item = Option<Text<'a>>>,
    ) -> Result<(), (usize, CellError)> {
        let before = self.len();
        let result = match self.ty {
            SqlType::Bool => self.each(texts, |b, text| {
                let Values::Bool(values) = &mut b.values else { return false };
                fast::boolean(text).map(|v| values.append(v)).is_some()
            }),
            SqlType::SmallInt => self.each(texts, |b, text| {
                let Values::I16(values) = &mut b.values else { return false };
                let number = fast::integer(text).and_then(|n| i16::try_from(n).ok());
                number.map(|v| values.push(v)).is_some()
            }),
            SqlType::Integer => self.each(texts, |b, text| {
                let Values::I32(values) = &mut b.values else { return false };
                let number = fast::integer(text).and_then(|n| i32::try_from(n).ok());
                number.map(|v| values.push(v)).is_some()
            }),
            SqlType::Date => self.each(texts, |b, text| {
                let Values::I32(values) = &mut b.values else { return false };
                fast::date(text).map(|v| values.push(v)).is_some()
            }),
            SqlType::BigInt => self.each_i64(texts, fast::integer),
            SqlType::Time => self.each_i64(texts, fast::time),
            SqlType::Timestamp => self.each_i64(texts, fast::timestamp),
            SqlType::TimestampTz => self.each_i64(texts, fast::timestamp_in_utc),
            SqlType::Real => self.each(texts, |b, text| {
                let Values::F32(values) = &mut b.values else { return false };
                fast::real(text).map(|v| values.push(v)).is_some()
            }),
            SqlType::Double => self.each(texts, |b, text| {
                let Values::F64(values) = &mut b.values else { return false };
                fast::double(text).map(|v| values.push(v)).is_some()
            }),
            SqlType::Decimal { precision, scale } => self.each(texts, |b, text| {
                let Values::I128(values) = &mut b.values else { return false };
                fast::decimal(text, precision, scale).map(|v| values.push(i128::from(v))).is_some()
            }),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => self.extend_strings(texts),
            SqlType::Bytea | SqlType::Uuid => self.each(texts, |_, _| false),
        };
        result.map_err(|error| (self.len() - before, error))
    }

    fn each_i64<'a>(
        &mut self,
        texts: impl Iterator<Item = Option<Text<'a>>>,
        read: impl Fn(&[u8]) -> Option<i64>,
    ) -> Result<(), CellError> {
        self.each(texts, |b, text| {
            let Values::I64(values) = &mut b.values else { return false };
            read(text).map(|v| values.push(v)).is_some()
        })
    }

    /// Has `fast` add each text's value; if it cannot, reads the text as any other is read.
    #[inline]
    fn each<'a>(
        &mut self,
        texts: impl Iterator<Item = Option<Text<'a>>>,
        fast: impl Fn(&mut Self, &[u8]) -> bool,
    ) -> Result<(), CellError> {
        for text in texts {
            match text {
                None => self.push_null()?,
                Some(text) if fast(self, text.bytes) => self.nulls.append_non_null(),
                Some(text) => self.push_text(text)?,
            }
        }
        Ok(())
    }

    fn extend_strings<'a>(&mut self, texts: impl Iterator<Item = Option<Text<'a>>>) -> Result<(), CellError> {
        let (limit, is_padded) = match self.ty {
            SqlType::Char(n) => (n as usize, true),
            SqlType::Varchar(n) => (n as usize, false),
            _ => (usize::MAX, false),
        };
        for text in texts {
            let Some(text) = text else {
                self.push_null()?;
                continue;
            };
            let known = if text.is_checked && text.bytes.len() <= limit {
                std::str::from_utf8(text.bytes).ok()
            } else {
                None
            };
            match (known, &mut self.values) {
                (Some(known), Values::Text(values)) => {
                    values.append_value(if is_padded { known.trim_end_matches(' ') } else { known });
                    self.nulls.append_non_null();
                }
                _ => self.push_text(text)?,
            }
        }
        Ok(())
    }

    /// Reads a text as [`Value::parse`] does.
    fn push_text(&mut self, text: Text<'_>) -> Result<(), CellError> {
        let text = text.read().map_err(CellError::Value)?;
        let value = Value::parse(text, self.ty).map_err(|error| CellError::Value(shortened(error, text)))?;
        self.append(&value);
        Ok(())
    }

    /// The array.
    pub fn finish(mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        fn primitive<T: ArrowPrimitiveType>(
            values: Vec<T::Native>,
            nulls: Option<arrow_buffer::NullBuffer>,
            ty: SqlType,
        ) -> ArrayRef {
            Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(arrow_type(ty)))
        }
        match self.values {
            Values::Bool(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::I16(values) => primitive::<Int16Type>(values, nulls, self.ty),
            Values::I32(values) if self.ty == SqlType::Date => {
                primitive::<Date32Type>(values, nulls, self.ty)
            }
            Values::I32(values) => primitive::<Int32Type>(values, nulls, self.ty),
            Values::I64(values) => match self.ty {
                SqlType::Time => primitive::<Time64MicrosecondType>(values, nulls, self.ty),
                SqlType::BigInt => primitive::<Int64Type>(values, nulls, self.ty),
                _ => primitive::<TimestampMicrosecondType>(values, nulls, self.ty),
            },
            Values::F32(values) => primitive::<Float32Type>(values, nulls, self.ty),
            Values::F64(values) => primitive::<Float64Type>(values, nulls, self.ty),
            Values::I128(values) => primitive::<Decimal128Type>(values, nulls, self.ty),
            Values::Text(mut values) => Arc::new(values.finish()),
            Values::Bytes(mut values) => Arc::new(values.finish()),
            Values::Uuid(values) => Arc::new(FixedSizeBinaryArray::new(16, Buffer::from_vec(values), nulls)),
        }
    }
}

/// An error that quotes no more of the text than a reader wants to see.
fn shortened(error: SqlError, text: &str) -> SqlError {
    let shown = excerpt(text.as_bytes());
    if shown == text || !error.message().contains(text) {
        return error;
    }
    let mut short = SqlError::new(error.state(), error.message().replace(text, &shown));
    if let Some(detail) = error.detail() {
        short = short.with_detail(detail);
    }
    match error.hint() {
        Some(hint) => short.with_hint(hint),
        None => short,
    }
}

#[cfg(test)]
mod tests;
