//! NUMERIC values that each have a number of digits after the point of their own.
//!
//! Arrow's decimals have one scale for a whole column; a quotient, an average or a CASE over different
//! scales does not. Such a column is *open*: its values are [`BYTES`] bytes, the first [`KEY_BYTES`] of
//! which order them and are the same for equal numbers (1.0 and 1.00), and the last of which is the scale.
//!
//! | byte | meaning |
//! |---|---|
//! | 0 | 128 for zero; above it the digits before the point of a positive number, plus 40; below it mirrored |
//! | 1..17 | the number shifted to 38 digits, as an unsigned integer, most significant byte first; mirrored if negative |
//! | 17 | digits after the point |
//!
//! **Invariant:** [`decode`] of [`encode`] is the same number with the same scale.

use albireo_base::Decimal;
use arrow::datatypes::DataType;

/// Bytes of an open value.
pub(crate) const BYTES: i32 = 18;
/// The bytes that say which number it is.
pub(crate) const KEY_BYTES: usize = 17;
/// What a number with no digits before the point has in byte 0, above zero's.
const BIAS: i32 = 40;
/// Zero's byte 0.
const ZERO: u8 = 128;

/// The Arrow type of an open column.
pub(crate) const OPEN: DataType = DataType::FixedSizeBinary(BYTES);

/// The bytes of a number of at most 38 digits.
pub(crate) fn encode(number: Decimal) -> [u8; BYTES as usize] {
    let mut bytes = [0; BYTES as usize];
    bytes[KEY_BYTES] = number.scale;
    let magnitude = number.unscaled.unsigned_abs();
    let Some(last) = magnitude.checked_ilog10() else {
        bytes[0] = ZERO;
        return bytes;
    };
    let digits = last + 1;
    assert!(digits <= 38, "a NUMERIC has at most 38 digits");
    let shifted = magnitude * 10_u128.pow(38 - digits);
    let before = digits as i32 - i32::from(number.scale);
    let rank = (BIAS + before) as u8;
    let (head, tail) = match number.unscaled < 0 {
        false => (ZERO + rank, shifted),
        true => (ZERO - rank, !shifted),
    };
    bytes[0] = head;
    bytes[1..KEY_BYTES].copy_from_slice(&tail.to_be_bytes());
    bytes
}

/// The number that bytes are.
pub(crate) fn decode(bytes: &[u8]) -> Decimal {
    let scale = bytes.get(KEY_BYTES).copied().unwrap_or(0);
    let head = bytes.first().copied().unwrap_or(ZERO);
    if head == ZERO {
        return Decimal::new(0, scale);
    }
    let mut tail = [0; 16];
    tail.copy_from_slice(&bytes[1..KEY_BYTES]);
    let tail = u128::from_be_bytes(tail);
    let negative = head < ZERO;
    let (rank, shifted) = if negative { (ZERO - head, !tail) } else { (head - ZERO, tail) };
    let before = i32::from(rank) - BIAS;
    let digits = (before + i32::from(scale)).clamp(1, 38) as u32;
    let magnitude = (shifted / 10_u128.pow(38 - digits)) as i128;
    Decimal::new(if negative { -magnitude } else { magnitude }, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn numbers_come_back_with_their_scale_and_sort_by_their_keys() {
        let texts = [
            "-99999999999999999999999999999999999999",
            "-12.50",
            "-12.5",
            "-1",
            "-0.00000000000000000000000000000000000001",
            "0",
            "0.000",
            "0.00000000000000000000000000000000000001",
            "0.01",
            "0.1",
            "0.99",
            "1",
            "1.000",
            "9.99",
            "10",
            "33.3333333333333333",
            "99999999999999999999999999999999999999",
        ];
        let numbers: Vec<Decimal> = texts.iter().map(|text| number(text)).collect();
        for a in &numbers {
            let bytes = encode(*a);
            let back = decode(&bytes);
            assert_eq!((back.unscaled, back.scale), (a.unscaled, a.scale), "{a}");
            for b in &numbers {
                let keys = bytes[..KEY_BYTES].cmp(&encode(*b)[..KEY_BYTES]);
                assert_eq!(keys, a.cmp(b), "{a} and {b}");
            }
        }
    }
}
