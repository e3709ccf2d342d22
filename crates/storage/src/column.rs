//! Typed handles to columns, for code that is compiled against a table's shape.

use std::marker::PhantomData;

use albireo_base::{ColumnId, SqlType, TableId};

use crate::error::TableError;
use crate::layout::{ColumnLocation, MAX_TEXT_BYTES, Physical};

/// A handle to a fixed-width column. Made by [`crate::Table::column`]; good for every partition of
/// that table, refused by any other table.
pub struct Col<T> {
    pub(crate) at: ColumnLocation,
    /// Most digits of a DECIMAL; 0 for other types, which take every value.
    digits: u8,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Col<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Col<T> {}

/// A handle to a column of character strings.
#[derive(Clone, Copy)]
pub struct TextCol {
    pub(crate) at: ColumnLocation,
    pub(crate) limit: TextLimit,
}

/// What a text column takes.
#[derive(Clone, Copy)]
pub struct TextLimit {
    /// Most characters.
    chars: usize,
    /// CHAR: trailing blanks are not stored.
    trims: bool,
}

/// Why a text does not fit a column.
pub(crate) enum Unfit {
    TooLong,
    ZeroCharacter,
}

impl Unfit {
    #[cold]
    pub(crate) fn error(self, table: TableId, column: ColumnId, text: &str) -> TableError {
        match self {
            Self::TooLong => TableError::TooLong { table, column, bytes: text.len() },
            Self::ZeroCharacter => TableError::ZeroCharacter { table, column },
        }
    }
}

impl TextLimit {
    pub(crate) fn of(ty: SqlType) -> Self {
        match ty {
            SqlType::Char(n) => Self { chars: n as usize, trims: true },
            SqlType::Varchar(n) => Self { chars: n as usize, trims: false },
            _ => Self { chars: usize::MAX, trims: false },
        }
    }

    /// What is stored of a text.
    #[inline(always)]
    pub(crate) fn fit(self, text: &str) -> Result<&str, Unfit> {
        let text = match self.trims && text.as_bytes().last() == Some(&b' ') {
            true => text.trim_end_matches(' '),
            false => text,
        };
        // Most texts have fewer bytes than the limit has characters.
        let fits = text.len() <= self.chars || text.chars().count() <= self.chars;
        if !fits || text.len() > MAX_TEXT_BYTES {
            return Err(Unfit::TooLong);
        }
        match has_zero(text.as_bytes()) {
            true => Err(Unfit::ZeroCharacter),
            false => Ok(text),
        }
    }
}

/// Whether a byte is 0: eight at a time, the last eight overlapping those before.
#[inline(always)]
fn has_zero(bytes: &[u8]) -> bool {
    let word_has_zero = |word: [u8; 8]| {
        let word = u64::from_le_bytes(word);
        word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080 != 0
    };
    let (words, _) = bytes.as_chunks::<8>();
    match bytes.last_chunk::<8>() {
        Some(&last) => words.iter().any(|&word| word_has_zero(word)) || word_has_zero(last),
        None => bytes.contains(&0),
    }
}

/// Why a handle cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HandleError {
    /// The table has no such column.
    #[error("column \"{0}\" does not exist")]
    NoColumn(String),
    /// The table has no such index.
    #[error("index \"{0}\" does not exist")]
    NoIndex(String),
    /// The column has another type.
    #[error("column \"{name}\" is of type {found}, which does not lie in memory as {wanted}")]
    WrongType {
        /// The column.
        name: String,
        /// Its SQL type.
        found: SqlType,
        /// The Rust type asked for.
        wanted: &'static str,
    },
}

mod sealed {
    pub trait Sealed {
        /// The value's little-endian bytes.
        type Bytes: Copy + AsRef<[u8]> + AsMut<[u8]>;
        const ZERO: Self::Bytes;
        /// Whether the value has at most so many decimal digits; 0 stands for any number.
        #[inline(always)]
        fn fits(self, _digits: u8) -> bool
        where
            Self: Sized,
        {
            true
        }
        fn to_bytes(self) -> Self::Bytes;
        fn from_bytes(bytes: Self::Bytes) -> Self;
    }
}

pub(crate) use sealed::Sealed;

/// A Rust type that a fixed-width column holds: `i16` SMALLINT, `i32` INTEGER and DATE, `i64`
/// BIGINT, DECIMAL up to 18 digits (scaled), TIME and timestamps (microseconds), `i128` longer
/// DECIMALs, `f32`, `f64`, `bool`, `[u8; 16]` UUID.
pub trait Fixed: Sealed + Copy + 'static {
    /// The physical form.
    const PHYSICAL: Physical;
    /// The Rust type's name.
    const NAME: &'static str;
}

/// Writes a value of fixed width: the low bytes of `bits`, by one store.
///
/// # Safety
/// `width` bytes may be written there.
///
/// # Panics
/// No column has this width.
#[inline]
pub(crate) unsafe fn put_fixed(to: *mut u8, width: u16, bits: u128) {
    // SAFETY: the caller's; byte arrays need no alignment.
    unsafe {
        match width {
            1 => to.write(bits as u8),
            2 => to.cast::<[u8; 2]>().write((bits as u16).to_le_bytes()),
            4 => to.cast::<[u8; 4]>().write((bits as u32).to_le_bytes()),
            8 => to.cast::<[u8; 8]>().write((bits as u64).to_le_bytes()),
            16 => to.cast::<[u8; 16]>().write(bits.to_le_bytes()),
            _ => unreachable!("values of fixed width take 1, 2, 4, 8 or 16 bytes"),
        }
    }
}

/// By a DECIMAL's precision: what the magnitude of an unscaled value must be below; 0: any.
macro_rules! limits {
    ($ty:ty, $most:literal) => {{
        let mut limits = [<$ty>::MAX; $most + 1];
        let mut digits = 1;
        while digits <= $most {
            limits[digits] = (10 as $ty).pow(digits as u32);
            digits += 1;
        }
        limits
    }};
}

static LIMITS_64: [u64; 19] = limits!(u64, 18);
static LIMITS_128: [u128; 39] = limits!(u128, 38);

/// Whether an unscaled value has at most `precision` digits.
pub(crate) fn has_digits(unscaled: i128, precision: u8) -> bool {
    unscaled.fits(precision)
}

macro_rules! fixed {
    ($($ty:ty, $physical:ident, $width:literal, $to:expr, $from:expr $(, $limits:ident)?;)*) => {$(
        impl Sealed for $ty {
            type Bytes = [u8; $width];
            const ZERO: Self::Bytes = [0; $width];
            $(#[inline(always)]
            fn fits(self, digits: u8) -> bool {
                self.unsigned_abs() < $limits[digits as usize]
            })?
            #[inline(always)]
            fn to_bytes(self) -> Self::Bytes {
                $to(self)
            }
            #[inline(always)]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                $from(bytes)
            }
        }
        impl Fixed for $ty {
            const PHYSICAL: Physical = Physical::$physical;
            const NAME: &'static str = stringify!($ty);
        }
    )*};
}

fixed! {
    bool, Bool, 1, |v| [u8::from(v)], |b: [u8; 1]| b[0] != 0;
    i16, I16, 2, i16::to_le_bytes, i16::from_le_bytes;
    i32, I32, 4, i32::to_le_bytes, i32::from_le_bytes;
    i64, I64, 8, i64::to_le_bytes, i64::from_le_bytes, LIMITS_64;
    i128, I128, 16, i128::to_le_bytes, i128::from_le_bytes, LIMITS_128;
    f32, F32, 4, f32::to_le_bytes, f32::from_le_bytes;
    f64, F64, 8, f64::to_le_bytes, f64::from_le_bytes;
    [u8; 16], Uuid, 16, std::convert::identity, std::convert::identity;
}

impl<T: Fixed> Col<T> {
    pub(crate) fn new(at: ColumnLocation, name: &str, ty: SqlType) -> Result<Self, HandleError> {
        if at.physical != T::PHYSICAL {
            return Err(HandleError::WrongType { name: name.to_owned(), found: ty, wanted: T::NAME });
        }
        let digits = if let SqlType::Decimal { precision, .. } = ty { precision } else { 0 };
        Ok(Self { at, digits, kind: PhantomData })
    }

    /// A handle to a column of type `T` that takes so many digits.
    pub(crate) fn of(at: ColumnLocation, digits: u8) -> Self {
        debug_assert!(at.physical == T::PHYSICAL, "a handle has its column's type");
        debug_assert!(digits <= SqlType::MAX_DECIMAL_PRECISION, "a DECIMAL has at most 38 digits");
        Self { at, digits, kind: PhantomData }
    }

    /// Whether the column takes the value: a DECIMAL has a precision.
    #[inline(always)]
    pub(crate) fn takes(&self, value: T) -> bool {
        value.fits(self.digits)
    }

    /// The column's position.
    pub fn id(&self) -> ColumnId {
        self.at.column
    }
}

impl TextCol {
    pub(crate) fn new(at: ColumnLocation, name: &str, ty: SqlType) -> Result<Self, HandleError> {
        if !ty.is_string() {
            return Err(HandleError::WrongType { name: name.to_owned(), found: ty, wanted: "str" });
        }
        Ok(Self { at, limit: TextLimit::of(ty) })
    }

    /// The column's position.
    pub fn id(&self) -> ColumnId {
        self.at.column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_byte_is_found_wherever_it_stands_and_nowhere_else() {
        for length in 0..40 {
            // Bytes next to 0 and those with the highest bit set are what a borrow could confuse.
            for filling in [1u8, 0x7F, 0x80, 0x81, 0xFF] {
                let mut bytes = vec![filling; length];
                assert!(!has_zero(&bytes), "{filling} {length}");
                for at in 0..length {
                    bytes[at] = 0;
                    assert!(has_zero(&bytes), "{filling} {at} of {length}");
                    bytes[at] = filling;
                }
            }
        }
    }

    #[test]
    fn values_fit_by_their_digits() {
        assert!(999i64.fits(3) && (-999i64).fits(3) && !1_000i64.fits(3) && !(-1_000i64).fits(3));
        assert!(i64::MIN.fits(0) && i64::MAX.fits(0) && i128::MIN.fits(0) && i128::MAX.fits(0));
        let most = 10i64.pow(18) - 1;
        assert!(most.fits(18) && !(most + 1).fits(18) && !i64::MIN.fits(18));
        let most = 10i128.pow(38) - 1;
        assert!(most.fits(38) && !(most + 1).fits(38) && !i128::MIN.fits(38));
        assert!(i16::MIN.fits(1) && 1e300f64.fits(1), "only decimals have a precision");
    }
}
