//! Numbers in bytes: widths, little-endian codes that loops over many can be vectorised for, and what is decoded into.

/// How many bytes a code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

impl Width {
    /// The least width that holds `greatest`.
    pub(crate) fn of(greatest: u64) -> Self {
        match greatest {
            0..=0xff => Self::One,
            0x100..=0xffff => Self::Two,
            0x1_0000..=0xffff_ffff => Self::Four,
            _ => Self::Eight,
        }
    }

    /// The width of so many bytes.
    pub(crate) fn from_bytes(bytes: u8) -> Option<Self> {
        [Self::One, Self::Two, Self::Four, Self::Eight].into_iter().find(|width| *width as u8 == bytes)
    }

    #[inline]
    pub(crate) fn bytes(self) -> usize {
        self as usize
    }

    /// The greatest code.
    pub(crate) fn greatest(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}

/// An unsigned integer that keys or codes are compared as.
pub(crate) trait Key: Copy + Ord {
    /// The difference, modulo two to the number of bits.
    fn minus(self, other: Self) -> Self;
    /// The next greater; none of the greatest.
    fn next(self) -> Option<Self>;
    /// The next less; none of 0.
    fn previous(self) -> Option<Self>;
    /// The number; its low bits if it is longer.
    fn low(self) -> usize;
    /// The number, if it is not longer.
    fn index(self) -> Option<usize>;
    const LEAST: Self;
    const GREATEST: Self;
}

macro_rules! keys {
    ($($key:ty),+) => {$(
        impl Key for $key {
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }
            #[inline]
            fn low(self) -> usize {
                self as usize
            }
            fn index(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
        }
    )+};
}
keys!(u8, u16, u32, u64, u128);

/// An unsigned integer as a section holds it.
pub(crate) trait Code: Key + 'static {
    type Bytes: Copy + 'static;
    const WIDTH: Width;
    /// The codes of `bytes`, which has no others.
    fn list(bytes: &[u8]) -> &[Self::Bytes];
    /// As [`Code::list`], to be written.
    fn list_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn get(bytes: Self::Bytes) -> Self;
    fn put(self) -> Self::Bytes;
    fn widen(self) -> u64;
    /// The low bits.
    fn narrow(value: u64) -> Self;
}

macro_rules! codes {
    ($($code:ty, $width:expr;)+) => {$(
        impl Code for $code {
            type Bytes = [u8; size_of::<$code>()];
            const WIDTH: Width = $width;
            #[inline]
            fn list(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            #[inline]
            fn list_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }
            #[inline]
            fn get(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }
            #[inline]
            fn put(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline]
            fn widen(self) -> u64 {
                self.into()
            }
            #[inline]
            fn narrow(value: u64) -> Self {
                value as Self
            }
        }
    )+};
}
codes!(u8, Width::One; u16, Width::Two; u32, Width::Four; u64, Width::Eight;);

/// Runs `body` with `$code` standing for the type of codes of a [`Width`].
macro_rules! with_width {
    ($width:expr, $code:ident => $body:expr) => {
        match $width {
            $crate::numbers::Width::One => {
                type $code = u8;
                $body
            }
            $crate::numbers::Width::Two => {
                type $code = u16;
                $body
            }
            $crate::numbers::Width::Four => {
                type $code = u32;
                $body
            }
            $crate::numbers::Width::Eight => {
                type $code = u64;
                $body
            }
        }
    };
}
pub(crate) use with_width;

/// The code at `place` of a section of codes of `width`.
#[inline]
pub(crate) fn code_at(width: Width, bytes: &[u8], place: usize) -> u64 {
    with_width!(width, C => C::get(<C as Code>::list(bytes)[place]).widen())
}

/// The codes of `values`, of type `C`, in bytes.
pub(crate) fn pack<C: Code, T: Copy>(values: &[T], code: impl Fn(T) -> u64) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * C::WIDTH.bytes()];
    for (to, from) in C::list_mut(&mut bytes).iter_mut().zip(values) {
        *to = C::narrow(code(*from)).put();
    }
    bytes
}

/// An integer that values or codes can be decoded into.
pub trait Number: Copy + sealed::Sealed {
    /// Its least value.
    const LEAST: i64;
    /// Its greatest value.
    const GREATEST: i64;
    /// The integer with the low bits of `value`: `value` itself if it is not out of range.
    fn from_low_bits(value: i64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl sealed::Sealed for $number {}
        impl Number for $number {
            const LEAST: i64 = <$number>::MIN as i64;
            const GREATEST: i64 = <$number>::MAX as i64;
            #[inline]
            fn from_low_bits(value: i64) -> Self {
                value as Self
            }
        }
    )+};
}
numbers!(i8, i16, i32, i64, u8, u16, u32);

impl sealed::Sealed for i128 {}

/// Takes every kind of integer.
impl Number for i128 {
    const LEAST: i64 = i64::MIN;
    const GREATEST: i64 = i64::MAX;
    #[inline]
    fn from_low_bits(value: i64) -> Self {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_the_least_that_holds_the_greatest_code() {
        for width in [Width::One, Width::Two, Width::Four, Width::Eight] {
            assert_eq!(Width::of(width.greatest()), width);
            assert_eq!(Width::from_bytes(width as u8), Some(width));
            if let Some(more) = width.greatest().checked_add(1) {
                assert_ne!(Width::of(more), width);
            }
        }
        assert_eq!(Width::from_bytes(3), None);
    }

    #[test]
    fn packed_codes_are_read_back() {
        let values = [0_u64, 1, 255];
        for width in [Width::One, Width::Two, Width::Four, Width::Eight] {
            let bytes = with_width!(width, C => pack::<C, u64>(&values, |value| value));
            assert_eq!(bytes.len(), 3 * width.bytes());
            assert!(values.iter().enumerate().all(|(place, value)| code_at(width, &bytes, place) == *value));
        }
    }
}
