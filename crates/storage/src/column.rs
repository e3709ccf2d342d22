//! Typed handles to columns, for code that is compiled against a table's shape.

use std::marker::PhantomData;

use albireo_base::{ColumnId, SqlType};

use crate::layout::{ColumnLocation, Physical};

/// A handle to a fixed-width column. Made by [`crate::Table::column`]; good for every partition of
/// that table, refused by any other table.
pub struct Col<T> {
    pub(crate) at: ColumnLocation,
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
        type Bytes: Copy + AsRef<[u8]>;
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

macro_rules! fixed {
    ($($ty:ty, $physical:ident, $width:literal, $to:expr, $from:expr;)*) => {$(
        impl Sealed for $ty {
            type Bytes = [u8; $width];
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
    i64, I64, 8, i64::to_le_bytes, i64::from_le_bytes;
    i128, I128, 16, i128::to_le_bytes, i128::from_le_bytes;
    f32, F32, 4, f32::to_le_bytes, f32::from_le_bytes;
    f64, F64, 8, f64::to_le_bytes, f64::from_le_bytes;
    [u8; 16], Uuid, 16, std::convert::identity, std::convert::identity;
}

impl<T: Fixed> Col<T> {
    pub(crate) fn new(at: ColumnLocation, name: &str, ty: SqlType) -> Result<Self, HandleError> {
        if at.physical != T::PHYSICAL {
            return Err(HandleError::WrongType { name: name.to_owned(), found: ty, wanted: T::NAME });
        }
        Ok(Self { at, kind: PhantomData })
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
        Ok(Self { at })
    }

    /// The column's position.
    pub fn id(&self) -> ColumnId {
        self.at.column
    }
}
