//! Lists of floats, of long integers and of UUIDs, which are stored as they are.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::values::Values;
use crate::column::Summary;
use crate::layers::Store;
use crate::numbers::Key;
use crate::scalar::{Scalar, f32_key, f64_key, i128_key};

/// A kind whose values are stored as they are.
pub(super) trait FixedKind {
    /// A value as the source has it.
    type Raw: Copy + Eq;
    /// What is compared instead.
    type Key: Key;
    /// The bytes of a value.
    const STRIDE: usize;
    fn key(raw: Self::Raw) -> Self::Key;
    /// A value with this key.
    fn of_key(key: Self::Key) -> Scalar;
    fn scalar(raw: Self::Raw) -> Scalar;
    fn prefix(key: Self::Key) -> u64;
    /// An order of values that are equal in SQL's order.
    fn order_bits(a: Self::Raw, b: Self::Raw) -> Ordering;
    fn hash(raw: Self::Raw) -> u64;
    fn write(raw: &[Self::Raw]) -> Vec<u8>;
}

fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Bytes of values of `N` bytes each.
fn write<T: Copy, const N: usize>(raw: &[T], put: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut bytes = vec![0; raw.len() * N];
    for (to, from) in bytes.as_chunks_mut().0.iter_mut().zip(raw) {
        *to = put(*from);
    }
    bytes
}

/// [`crate::Kind::F32`].
pub(super) struct F32;

impl FixedKind for F32 {
    type Raw = u64;
    type Key = u32;
    const STRIDE: usize = 4;
    #[inline]
    fn key(raw: u64) -> u32 {
        f32_key(raw as u32)
    }
    fn of_key(key: u32) -> Scalar {
        const SIGN: u32 = 1 << 31;
        Scalar::F32(match key {
            u32::MAX => f32::NAN.to_bits(),
            SIGN.. => key - SIGN,
            _ => SIGN | (SIGN - key),
        })
    }
    fn scalar(raw: u64) -> Scalar {
        Scalar::F32(raw as u32)
    }
    fn prefix(key: u32) -> u64 {
        key.into()
    }
    fn order_bits(a: u64, b: u64) -> Ordering {
        (a as u32).cmp(&(b as u32))
    }
    fn hash(raw: u64) -> u64 {
        mix(raw & u64::from(u32::MAX))
    }
    fn write(raw: &[u64]) -> Vec<u8> {
        write(raw, |bits| (bits as u32).to_le_bytes())
    }
}

/// [`crate::Kind::F64`].
pub(super) struct F64;

impl FixedKind for F64 {
    type Raw = u64;
    type Key = u64;
    const STRIDE: usize = 8;
    #[inline]
    fn key(raw: u64) -> u64 {
        f64_key(raw)
    }
    fn of_key(key: u64) -> Scalar {
        const SIGN: u64 = 1 << 63;
        Scalar::F64(match key {
            u64::MAX => f64::NAN.to_bits(),
            SIGN.. => key - SIGN,
            _ => SIGN | (SIGN - key),
        })
    }
    fn scalar(raw: u64) -> Scalar {
        Scalar::F64(raw)
    }
    fn prefix(key: u64) -> u64 {
        key
    }
    fn order_bits(a: u64, b: u64) -> Ordering {
        a.cmp(&b)
    }
    fn hash(raw: u64) -> u64 {
        mix(raw)
    }
    fn write(raw: &[u64]) -> Vec<u8> {
        write(raw, u64::to_le_bytes)
    }
}

/// Both halves of 16 bytes in one hash.
fn hash_wide(raw: [u8; 16]) -> u64 {
    let bits = u128::from_le_bytes(raw);
    mix(bits as u64 ^ mix((bits >> 64) as u64).rotate_left(32))
}

/// [`crate::Kind::I128`].
pub(super) struct I128;

impl FixedKind for I128 {
    type Raw = [u8; 16];
    type Key = u128;
    const STRIDE: usize = 16;
    #[inline]
    fn key(raw: [u8; 16]) -> u128 {
        i128_key(i128::from_le_bytes(raw))
    }
    fn of_key(key: u128) -> Scalar {
        Scalar::I128((key ^ (1 << 127)) as i128)
    }
    fn scalar(raw: [u8; 16]) -> Scalar {
        Scalar::I128(i128::from_le_bytes(raw))
    }
    fn prefix(key: u128) -> u64 {
        (key >> 64) as u64
    }
    fn order_bits(_: [u8; 16], _: [u8; 16]) -> Ordering {
        Ordering::Equal
    }
    fn hash(raw: [u8; 16]) -> u64 {
        hash_wide(raw)
    }
    fn write(raw: &[[u8; 16]]) -> Vec<u8> {
        raw.as_flattened().to_vec()
    }
}

/// [`crate::Kind::Uuid`].
pub(super) struct Uuid;

impl FixedKind for Uuid {
    type Raw = [u8; 16];
    type Key = u128;
    const STRIDE: usize = 16;
    #[inline]
    fn key(raw: [u8; 16]) -> u128 {
        u128::from_be_bytes(raw)
    }
    fn of_key(key: u128) -> Scalar {
        Scalar::Uuid(key.to_be_bytes())
    }
    fn scalar(raw: [u8; 16]) -> Scalar {
        Scalar::Uuid(raw)
    }
    fn prefix(key: u128) -> u64 {
        (key >> 64) as u64
    }
    fn order_bits(_: [u8; 16], _: [u8; 16]) -> Ordering {
        Ordering::Equal
    }
    fn hash(raw: [u8; 16]) -> u64 {
        hash_wide(raw)
    }
    fn write(raw: &[[u8; 16]]) -> Vec<u8> {
        raw.as_flattened().to_vec()
    }
}

/// A value of such a kind; equal if the source's bits are.
pub(super) struct Item<K: FixedKind>(K::Raw);

impl<K: FixedKind> Clone for Item<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: FixedKind> Copy for Item<K> {}

impl<K: FixedKind> PartialEq for Item<K> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: FixedKind> Eq for Item<K> {}

/// Values of such a kind, and what one pass over them shows.
pub(super) struct Fixed<'a, K: FixedKind> {
    values: Cow<'a, [K::Raw]>,
    least: K::Key,
    greatest: K::Key,
    runs: usize,
}

impl<'a, K: FixedKind> Fixed<'a, K> {
    /// Looks at all values once; there is at least one.
    pub(super) fn new(values: Cow<'a, [K::Raw]>) -> Self {
        let (mut least, mut greatest) = (K::Key::GREATEST, K::Key::LEAST);
        for value in values.iter() {
            let key = K::key(*value);
            least = least.min(key);
            greatest = greatest.max(key);
        }
        let changes = values.windows(2).map(|pair| u64::from(pair[0] != pair[1])).sum::<u64>();
        Self { values, least, greatest, runs: changes as usize + 1 }
    }

    /// Says what is known of the values.
    pub(super) fn summarize(&self, summary: &mut Summary) {
        summary.least = Some(K::of_key(self.least));
        summary.greatest = Some(K::of_key(self.greatest));
    }
}

impl<K: FixedKind> Values for Fixed<'_, K> {
    type Item = Item<K>;

    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn at(&self, at: usize) -> Item<K> {
        Item(self.values[at])
    }

    #[inline]
    fn hash(item: Item<K>) -> u64 {
        K::hash(item.0)
    }

    fn prefix(item: Item<K>) -> u64 {
        K::prefix(K::key(item.0))
    }

    fn order(a: Item<K>, b: Item<K>) -> Ordering {
        K::key(a.0).cmp(&K::key(b.0)).then_with(|| K::order_bits(a.0, b.0))
    }

    fn scalar(item: Item<K>) -> Scalar {
        K::scalar(item.0)
    }

    fn runs(&self) -> usize {
        self.runs
    }

    fn plain_bytes(&self) -> usize {
        self.values.len() * K::STRIDE
    }

    fn bytes_each(&self) -> usize {
        K::STRIDE
    }

    fn pick(&self, at: &[u32]) -> Self {
        Self::new(at.iter().map(|at| self.values[*at as usize]).collect())
    }

    fn plain(&self) -> Store<Vec<u8>> {
        Store::Plain(K::write(&self.values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_a_key_has_that_key() {
        for value in [0.0, -0.0, 1.5, -1.5, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let key = F64::key(value.to_bits());
            assert!(matches!(F64::of_key(key), Scalar::F64(bits) if F64::key(bits) == key), "{value}");
            let key = F32::key((value as f32).to_bits().into());
            assert!(matches!(F32::of_key(key), Scalar::F32(bits) if F32::key(bits.into()) == key), "{value}");
        }
        let raw = *b"0123456789abcdef";
        assert_eq!(Uuid::of_key(Uuid::key(raw)), Scalar::Uuid(raw));
        assert_eq!(I128::of_key(I128::key(raw)), Scalar::I128(i128::from_le_bytes(raw)));
    }
}
