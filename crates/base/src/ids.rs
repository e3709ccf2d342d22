//! Identities as newtypes. All are dense numbers chosen by us; none is ever reused while the
//! database is open, except [`Tid`]s, whose slots are.

use std::fmt;

/// Row slots in one chunk: 16 Ki.
pub const CHUNK_ROWS: usize = 1 << CHUNK_SHIFT;
/// `log2(CHUNK_ROWS)`.
pub const CHUNK_SHIFT: u32 = 14;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $int);

        impl $name {
            /// The id as an index into a dense array.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A table; unique in one database for ever.
    TableId(u32)
);
id!(
    /// A column's position in its table, from 0.
    ColumnId(u16)
);
id!(
    /// An index's position among the indexes of its table, from 0.
    IndexId(u16)
);
id!(
    /// A partition, from 0.
    PartitionId(u16)
);
id!(
    /// The number of an interval between two snapshots. 64 bits: at a million snapshots a second
    /// they last 584,000 years.
    Epoch(u64)
);

impl Epoch {
    /// The epoch after this one.
    #[inline]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A row's address in its table and partition: chunk number and slot, stable until the row is
/// deleted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tid(pub u64);

impl Tid {
    /// The TID of `slot` in `chunk`.
    #[inline]
    pub fn new(chunk: usize, slot: usize) -> Self {
        debug_assert!(slot < CHUNK_ROWS);
        Self(((chunk as u64) << CHUNK_SHIFT) | slot as u64)
    }

    /// The number of the chunk.
    #[inline]
    pub fn chunk(self) -> usize {
        (self.0 >> CHUNK_SHIFT) as usize
    }

    /// The slot in the chunk, `0..CHUNK_ROWS`.
    #[inline]
    pub fn slot(self) -> usize {
        (self.0 as usize) & (CHUNK_ROWS - 1)
    }
}
