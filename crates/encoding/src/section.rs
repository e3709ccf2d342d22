//! Where the bytes of a column lie.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Bytes that a column consists of, wherever they lie.
///
/// S-1 The bytes never change: [`Section::bytes`] gives the same at each call. No alignment is asked for.
pub trait Section {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl Section for Vec<u8> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Section for Box<[u8]> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Section for Arc<[u8]> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Section for Cow<'_, [u8]> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Section for &[u8] {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// What a section of a column holds. A column has at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectionName {
    /// Which rows are NULL: a bit for each, in whole words of 64; or the first and the last row of each range, two
    /// `u16`.
    Nulls,
    /// The last row of each run, `u16`, ascending.
    Ends,
    /// For each row, or for each run, the number of its value in the dictionary, `u8` or `u16`.
    Codes,
    /// Where each text begins among the bytes, or among the codes if it is compressed, and where the last one ends, `u32`.
    Offsets,
    /// The values of the rows, of the runs or of the dictionary: integers less their base, other values as they are,
    /// texts one behind the other, packed, compressed or as they are.
    Values,
    /// Of compressed texts, for each of 256 codes: its symbol, eight bytes with zeros behind it; then, for each, how long
    /// it is, `u8`, 0 if there is no symbol.
    Symbols,
}

impl fmt::Display for SectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nulls => "nulls",
            Self::Ends => "ends",
            Self::Codes => "codes",
            Self::Offsets => "offsets",
            Self::Values => "values",
            Self::Symbols => "symbols",
        })
    }
}
