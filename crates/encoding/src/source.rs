//! What is to be encoded.

use crate::bits;
use crate::scalar::Kind;

/// The most rows of a column: 65,536.
pub const ROWS: usize = 1 << 16;

/// One column of one chunk as it is before it is encoded. Values of rows that are NULL or dead are not looked at but
/// for their lengths; they may be anything that is valid for the kind.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What the values are.
    pub kind: Kind,
    /// A value for each row.
    pub values: SourceValues<'a>,
    /// A set bit for each row that is NULL, enough words for all rows; none if no row is NULL.
    pub nulls: Option<&'a [u64]>,
    /// A set bit for each row that is alive.
    pub live: &'a [u64],
    /// How many rows there are, [`ROWS`] at most.
    pub rows: usize,
}

/// The values of a [`Source`], by what its kind is handled as.
#[derive(Clone, Copy, Debug)]
pub enum SourceValues<'a> {
    /// Of kinds of integers; live ones are within the limits of the kind.
    Integers(&'a [i64]),
    /// Of [`Kind::I128`], little endian, and of [`Kind::Uuid`].
    Wide(&'a [[u8; 16]]),
    /// Bits of [`Kind::F64`], or of [`Kind::F32`] in the low half, the high half being 0.
    Floats(&'a [u64]),
    /// Of [`Kind::Text`], one behind the other.
    Texts {
        /// Where each text ends; the first begins at 0.
        ends: &'a [u32],
        /// All texts.
        bytes: &'a [u8],
    },
}

impl SourceValues<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Wide(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Texts { ends, .. } => ends.len(),
        }
    }

    fn fits(&self, kind: Kind) -> bool {
        match self {
            Self::Integers(_) => kind.is_integer(),
            Self::Wide(_) => matches!(kind, Kind::I128 | Kind::Uuid),
            Self::Floats(_) => matches!(kind, Kind::F32 | Kind::F64),
            Self::Texts { .. } => kind == Kind::Text,
        }
    }
}

impl Source<'_> {
    /// Asserts that lengths and kind agree.
    pub(crate) fn check(&self) {
        assert!(self.rows <= ROWS, "a column has up to 65,536 rows");
        assert!(self.values.len() == self.rows, "there is a value for each row");
        assert!(self.values.fits(self.kind), "the values are of the kind");
        let words = bits::words(self.rows);
        assert!(self.live.len() >= words && self.nulls.is_none_or(|nulls| nulls.len() >= words));
        if let SourceValues::Texts { ends, bytes } = self.values {
            let last = ends.last().map_or(0, |end| *end as usize);
            assert!(last <= bytes.len(), "texts end within their bytes");
        }
    }
}
