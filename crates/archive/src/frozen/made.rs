//! How sections are made of the bytes of arrays.
//!
//! Nothing here trusts the bytes: what cannot be is an error.

use std::sync::Arc;

use albireo_encoding::Column;
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, TimeUnit};

/// Bytes of an array, and what is made of them.
pub(crate) struct Piece {
    pub(crate) bytes: Buffer,
    pub(crate) made: Made,
}

/// How a section is made of bytes of an array.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// It is those.
    Same,
    /// As bits of NULLs, of bits of so many rows that are none.
    NullBits { rows: u32 },
    /// As ranges of NULLs, of the same.
    NullRanges { rows: u32 },
    /// As the last row of each run, of the rows behind.
    Ends,
    /// As differences to a base, in so many bytes each, of so many integers.
    Differences { of: Integers, count: u32, base: i64, width: u8 },
    /// As codes of texts.
    Packed(Arc<Column<u64>>),
}

/// Integers of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Integers {
    /// One bit each.
    Bits,
    /// So many bytes each.
    One,
    Two,
    Four,
    Eight,
}

impl Piece {
    pub(crate) fn same(bytes: Buffer) -> Self {
        Self { bytes, made: Made::Same }
    }
}

impl Made {
    /// The section that is made of these bytes.
    pub(crate) fn section(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Same => Ok(bytes.to_vec()),
            Self::NullBits { rows } => {
                let nulls = nulls_of(bytes, *rows as usize)?;
                let words = nulls.bit_chunks().iter_padded().take(nulls.len().div_ceil(64));
                Ok(words.flat_map(u64::to_le_bytes).collect())
            }
            Self::NullRanges { rows } => {
                let nulls = nulls_of(bytes, *rows as usize)?;
                let ends = |(first, end): (usize, usize)| [first as u16, (end - 1) as u16];
                Ok(nulls.set_slices().flat_map(ends).flat_map(u16::to_le_bytes).collect())
            }
            Self::Ends => {
                let ends = bytes.as_chunks::<2>().0.iter().map(|end| u16::from_le_bytes(*end));
                Ok(ends.flat_map(|end| end.wrapping_sub(1).to_le_bytes()).collect())
            }
            Self::Differences { of, count, base, width } => {
                differences(&of.read(bytes, *count as usize), *base, *width)
            }
            Self::Packed(header) => header.pack(bytes).ok_or_else(|| "a text has other bytes".to_owned()),
        }
    }
}

/// A set bit for each row that is NULL.
fn nulls_of(bytes: &[u8], rows: usize) -> Result<BooleanBuffer, String> {
    match rows.div_ceil(8) <= bytes.len() {
        true => Ok(!&BooleanBuffer::new(Buffer::from(bytes), 0, rows)),
        false => Err("there are too few bits of NULLs".to_owned()),
    }
}

/// Integers as differences to a base.
fn differences(values: &[i64], base: i64, width: u8) -> Result<Vec<u8>, String> {
    let differences = || values.iter().map(|value| value.wrapping_sub(base) as u64);
    let bits = differences().fold(0, |bits, difference| bits | difference);
    if width < 8 && bits >> (8 * u32::from(width)) != 0 {
        return Err("a value is out of the frame".to_owned());
    }
    let mut made = vec![0; values.len() * usize::from(width)];
    match width {
        1 => made.iter_mut().zip(differences()).for_each(|(to, difference)| *to = difference as u8),
        2 => {
            let places = made.as_chunks_mut::<2>().0.iter_mut();
            places.zip(differences()).for_each(|(to, difference)| *to = (difference as u16).to_le_bytes());
        }
        4 => {
            let places = made.as_chunks_mut::<4>().0.iter_mut();
            places.zip(differences()).for_each(|(to, difference)| *to = (difference as u32).to_le_bytes());
        }
        8 => {
            let places = made.as_chunks_mut::<8>().0.iter_mut();
            places.zip(differences()).for_each(|(to, difference)| *to = difference.to_le_bytes());
        }
        _ => return Err("a difference has no such width".to_owned()),
    }
    Ok(made)
}

impl Integers {
    /// Those of arrays of a type; `None` of another type.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Boolean => Some(Self::Bits),
            DataType::Int8 => Some(Self::One),
            DataType::Int16 => Some(Self::Two),
            DataType::Int32 | DataType::Date32 | DataType::Decimal32(..) => Some(Self::Four),
            DataType::Int64
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Decimal64(..) => Some(Self::Eight),
            _ => None,
        }
    }

    /// Bytes that so many take.
    pub(crate) fn bytes(self, count: usize) -> usize {
        match self {
            Self::Bits => count.div_ceil(8),
            Self::One => count,
            Self::Two => count * 2,
            Self::Four => count * 4,
            Self::Eight => count * 8,
        }
    }

    /// The first `count`, if there are as many.
    fn read(self, bytes: &[u8], count: usize) -> Vec<i64> {
        let bytes = &bytes[..self.bytes(count).min(bytes.len())];
        match self {
            Self::Bits => {
                let all =
                    bytes.iter().flat_map(|byte| (0..8_u32).map(move |bit| i64::from((*byte >> bit) & 1)));
                all.take(count).collect()
            }
            Self::One => bytes.iter().map(|byte| i8::from_le_bytes([*byte]).into()).collect(),
            Self::Two => {
                bytes.as_chunks::<2>().0.iter().map(|value| i16::from_le_bytes(*value).into()).collect()
            }
            Self::Four => {
                bytes.as_chunks::<4>().0.iter().map(|value| i32::from_le_bytes(*value).into()).collect()
            }
            Self::Eight => bytes.as_chunks::<8>().0.iter().map(|value| i64::from_le_bytes(*value)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_come_of_integers_of_each_width() {
        let made = |of: Integers, width: u8, bytes: &[u8], base: i64| {
            let count = if of == Integers::Bits { 10 } else { 2 };
            Made::Differences { of, count, base, width }.section(bytes)
        };
        let out_of_frame = "a value is out of the frame".to_owned();
        assert_eq!(made(Integers::Bits, 1, &[0b101, 0b10], 0), Ok(vec![1, 0, 1, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(made(Integers::One, 1, &[0xff, 3], -1), Ok(vec![0, 4]));
        assert_eq!(made(Integers::Two, 1, &[1, 1, 0xff, 0], 2), Ok(vec![0xff, 0xfd]));
        assert_eq!(made(Integers::Four, 2, &[0, 0, 1, 0, 1, 2, 0, 0], 0), Err(out_of_frame));
        assert_eq!(made(Integers::Four, 2, &[0, 0, 1, 0, 1, 0, 1, 0], 65_000), Ok(vec![24, 2, 25, 2]));
        let wide = [i64::MIN.to_le_bytes(), i64::MAX.to_le_bytes()].concat();
        let all = [0u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat();
        assert_eq!(made(Integers::Eight, 8, &wide, i64::MIN), Ok(all));
        assert_eq!(made(Integers::Eight, 4, &[7, 0, 0, 0, 0, 0, 0, 0], 7), Ok(vec![0; 4]), "what there is");
    }

    #[test]
    fn nulls_come_as_bits_and_as_ranges() {
        let valid = [0b1111_0000, 0xff, 0b1110_1111, 0x7f, 0xff, 0xff, 0xff, 0xff];
        let bits = Made::NullBits { rows: 64 }.section(&valid);
        assert_eq!(bits, Ok(vec![0b1111, 0, 0b1_0000, 0x80, 0, 0, 0, 0]));
        let ranges = Made::NullRanges { rows: 64 }.section(&valid);
        assert_eq!(ranges, Ok(vec![0, 0, 3, 0, 20, 0, 20, 0, 31, 0, 31, 0]));
        assert!(Made::NullBits { rows: 65 }.section(&valid).is_err());
        assert_eq!(Made::NullBits { rows: 0 }.section(&[]), Ok(Vec::new()));
        assert_eq!(Made::Ends.section(&[1, 0, 0, 0x40]), Ok(vec![0, 0, 0xff, 0x3f]));
    }
}
