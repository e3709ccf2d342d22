//! How a table's rows lie in blocks: groups of attributes, strides, offsets.
//!
//! A chunk of a table is an array of *entries*, one pointer to a block each: first the validity
//! bitmap, then each group's blocks, then one null bitmap per nullable column. A group that holds
//! one column is that column's vector, exactly as Arrow wants it; wider groups hold short row
//! pieces. A group whose rows are wide has several blocks per chunk, so that one copy-on-write
//! never moves more than [`MAX_BLOCK_BYTES`].
//!
//! Invariants:
//! - I-1 For every column and slot, `(slot & mask) * stride + offset + width` is at most the size
//!   of the entry's block.
//!   Every entry that a column names, `entry + (slot >> shift)` and `null_entry`, is below
//!   [`Layout::entries`].
//! - I-2 Layout ids are unique in the process, so a handle made for one table cannot reach into
//!   another.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::ids::{CHUNK_ROWS, CHUNK_SHIFT};
use albireo_base::{ColumnId, SqlType};

use crate::pool::SLAB_BYTES;
use crate::registry::ColumnSet;
use crate::texts::ColumnTexts;

/// Strings declared up to this many characters lie inline in fixed slots.
pub const MAX_INLINE_CHARS: u32 = 50;
/// The longest text a column holds, in bytes: what one block of the pool has room for.
pub const MAX_TEXT_BYTES: usize = SLAB_BYTES;
/// A block is at most this big, unless one row of a group is over 4 KiB.
pub const MAX_BLOCK_BYTES: usize = 256 << 10;
/// The widest row a group may have, in bytes.
pub const MAX_GROUP_BYTES: usize = 32 << 10;
/// Bytes of a bitmap over a chunk.
pub const BITMAP_BYTES: usize = CHUNK_ROWS / 8;
/// The slot of a NULL, whatever its type; at least as wide as any slot.
pub(crate) const ZEROES: [u8; 64] = [0; 64];
/// "No such entry".
const NONE: u32 = u32::MAX;

/// How a value lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Physical {
    /// One byte, 0 or 1.
    Bool,
    /// 16 bits.
    I16,
    /// 32 bits; DATE in days.
    I32,
    /// 64 bits; decimals scaled, times in microseconds.
    I64,
    /// 128 bits, decimals scaled.
    I128,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// 16 bytes.
    Uuid,
    /// A length byte and up to this many bytes of text.
    Inline(u8),
    /// A 16-byte Arrow view; long contents in the chunk's heap.
    View,
}

impl Physical {
    /// The form of a type.
    pub fn of(ty: SqlType) -> Self {
        match ty {
            SqlType::Bool => Self::Bool,
            SqlType::SmallInt => Self::I16,
            SqlType::Integer | SqlType::Date => Self::I32,
            SqlType::BigInt | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Self::I64,
            SqlType::Real => Self::F32,
            SqlType::Double => Self::F64,
            SqlType::Decimal { precision, .. } if precision <= SqlType::MAX_DECIMAL64_PRECISION => Self::I64,
            SqlType::Decimal { .. } => Self::I128,
            SqlType::Uuid => Self::Uuid,
            SqlType::Char(n) | SqlType::Varchar(n) if n <= MAX_INLINE_CHARS => Self::Inline(n.max(4) as u8),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text | SqlType::Bytea => Self::View,
        }
    }

    /// Bytes of one value in its slot.
    pub fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
            Self::I128 | Self::Uuid | Self::View => 16,
            Self::Inline(capacity) => 1 + capacity as usize,
        }
    }

    /// Whether values may have bytes in the chunk's heap.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Inline(_) | Self::View)
    }
}

/// One column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnSpec {
    /// Its name, for errors.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Whether NULL is allowed.
    pub nullable: bool,
}

/// The layout a table asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LayoutChoice {
    /// Every attribute a vector of its own.
    #[default]
    Columns,
    /// All attributes together.
    Rows,
    /// The listed groups; every other attribute on its own.
    Groups(Vec<Vec<ColumnId>>),
}

/// Why a layout is impossible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// The row of one group is too wide.
    #[error("a row of one group would take {bytes} bytes, more than {MAX_GROUP_BYTES}")]
    TooWide {
        /// Bytes it would take.
        bytes: usize,
    },
    /// A column stands in two groups.
    #[error("column {} stands in two groups", .0.0)]
    Twice(ColumnId),
}

/// Where a column's values lie. Copied into typed handles.
#[derive(Clone, Copy, Debug)]
pub struct ColumnLocation {
    pub(crate) layout: u64,
    pub(crate) entry: u32,
    pub(crate) shift: u32,
    pub(crate) mask: u32,
    pub(crate) stride: u32,
    pub(crate) offset: u32,
    pub(crate) null_entry: u32,
    /// Bytes of a value in its slot: `physical.width()`.
    pub(crate) width: u16,
    pub(crate) column: ColumnId,
    pub(crate) heap: u16,
    pub(crate) physical: Physical,
    /// Whether the column alone fills its group, so that a scan needs no copy.
    pub(crate) alone: bool,
}

impl ColumnLocation {
    /// Whether NULL is allowed.
    #[inline(always)]
    pub fn nullable(&self) -> bool {
        self.null_entry != NONE
    }

    /// Whether one block holds the group of a whole chunk.
    pub(crate) fn fills_chunk(&self) -> bool {
        self.shift == CHUNK_SHIFT
    }
}

/// The layout of one table.
#[derive(Debug)]
pub struct Layout {
    pub(crate) id: u64,
    pub(crate) columns: Vec<ColumnLocation>,
    /// Size in bytes of the block of each entry of a chunk.
    pub(crate) entry_bytes: Vec<u32>,
    /// The columns whose values each entry holds.
    pub(crate) entry_columns: Vec<ColumnSet>,
    /// Entries that are bitmaps and start out zeroed.
    pub(crate) bitmaps: Vec<u32>,
    /// String columns, by heap number.
    pub(crate) heap_columns: Vec<ColumnId>,
    /// What frozen chunks of string columns share, in all partitions; by heap number.
    pub(crate) texts: Vec<Arc<ColumnTexts>>,
    one_row: OnceLock<OneRow>,
}

/// Where the values of one row lie behind the entries of a chunk of it alone, in words of 128 bits; an entry is one.
#[derive(Debug)]
pub(crate) struct OneRow {
    /// By entry; `u32::MAX` for those of slots other than the first.
    pub(crate) places: Box<[u32]>,
    pub(crate) words: usize,
}

impl OneRow {
    fn of(layout: &Layout) -> Self {
        let mut places = vec![u32::MAX; layout.entries()].into_boxed_slice();
        let mut words = layout.entries();
        let mut take = |entry: u32, bytes: usize| {
            if places[entry as usize] == u32::MAX {
                places[entry as usize] = words as u32;
                words += bytes.div_ceil(size_of::<u128>());
            }
        };
        layout.bitmaps.iter().for_each(|entry| take(*entry, size_of::<u64>()));
        layout.columns.iter().for_each(|at| take(at.entry, at.stride as usize));
        Self { places, words }
    }
}

/// The entry of the validity bitmap.
pub(crate) const VALIDITY_ENTRY: usize = 0;

static NEXT_LAYOUT: AtomicU64 = AtomicU64::new(1);

impl Layout {
    /// Lays `columns` out as `choice` asks.
    pub fn new(columns: &[ColumnSpec], choice: &LayoutChoice) -> Result<Self, LayoutError> {
        let id = NEXT_LAYOUT.fetch_add(1, Ordering::Relaxed);
        let groups = groups_of(columns.len(), choice)?;
        let mut layout = Self {
            id,
            columns: Vec::new(),
            entry_bytes: vec![BITMAP_BYTES as u32],
            entry_columns: vec![ColumnSet::LEAST],
            bitmaps: vec![VALIDITY_ENTRY as u32],
            heap_columns: Vec::new(),
            texts: Vec::new(),
            one_row: OnceLock::new(),
        };
        let mut locations: Vec<Option<ColumnLocation>> = vec![None; columns.len()];
        for group in &groups {
            layout.place_group(group, columns, &mut locations)?;
        }
        for (index, spec) in columns.iter().enumerate() {
            let mut location = locations[index].expect("every column is in one group");
            if spec.nullable {
                location.null_entry = layout.entry_bytes.len() as u32;
                layout.bitmaps.push(location.null_entry);
                layout.entry_bytes.push(BITMAP_BYTES as u32);
                layout.entry_columns.push(ColumnSet::only(location.column));
            }
            if location.physical.is_string() {
                location.heap = layout.heap_columns.len() as u16;
                layout.heap_columns.push(location.column);
                layout.texts.push(Arc::default());
            }
            layout.columns.push(location);
        }
        layout.check();
        Ok(layout)
    }

    /// The texts that frozen chunks share of a column; none if it has no texts.
    pub(crate) fn texts_of(&self, column: ColumnId) -> Option<&Arc<ColumnTexts>> {
        let at = self.column(column);
        if at.physical.is_string() { self.texts.get(usize::from(at.heap)) } else { None }
    }

    /// I-1, and that the lists agree.
    fn check(&self) {
        assert_eq!(self.entry_bytes.len(), self.entry_columns.len(), "each entry has columns and a size");
        for (index, at) in self.columns.iter().enumerate() {
            assert_eq!(at.column.index(), index, "columns are in the order of their ids");
            assert!(at.offset + u32::from(at.width) <= at.stride, "a value lies in its row's part (I-1)");
            let blocks = CHUNK_ROWS >> at.shift;
            assert!(at.entry as usize + blocks <= self.entries(), "a column's blocks are entries (I-1)");
            let end = at.mask as usize * at.stride as usize + at.offset as usize + at.width as usize;
            assert!(end <= self.entry_bytes[at.entry as usize] as usize, "values lie in their block (I-1)");
            assert!(!at.nullable() || self.bitmaps.contains(&at.null_entry), "NULLs are in a bitmap (I-1)");
        }
        let is_bitmap = |entry: &u32| self.entry_bytes[*entry as usize] as usize == BITMAP_BYTES;
        assert!(self.bitmaps.iter().all(is_bitmap), "a bitmap has a bit for each slot");
    }

    /// How a row lies that is a chunk of its own.
    pub(crate) fn one_row(&self) -> &OneRow {
        self.one_row.get_or_init(|| OneRow::of(self))
    }

    /// Entries of one chunk.
    #[inline(always)]
    pub(crate) fn entries(&self) -> usize {
        self.entry_bytes.len()
    }

    /// Where a column lies.
    pub fn column(&self, column: ColumnId) -> &ColumnLocation {
        &self.columns[column.index()]
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[ColumnLocation] {
        &self.columns
    }

    /// Bytes of data in one full chunk, heaps aside.
    pub fn chunk_bytes(&self) -> usize {
        self.entry_bytes.iter().map(|&bytes| bytes as usize).sum()
    }

    fn place_group(
        &mut self,
        group: &[ColumnId],
        columns: &[ColumnSpec],
        locations: &mut [Option<ColumnLocation>],
    ) -> Result<(), LayoutError> {
        let mut order: Vec<(ColumnId, Physical)> =
            group.iter().map(|&c| (c, Physical::of(columns[c.index()].ty))).collect();
        // Widest first, so that aligned values stay aligned; stable, so that neighbours stay.
        order.sort_by_key(|(_, physical)| match physical {
            Physical::Inline(_) => usize::MAX,
            other => usize::MAX - 1 - other.width(),
        });
        let packed: usize = order.iter().map(|(_, physical)| physical.width()).sum();
        let alone = order.len() == 1;
        let stride = if alone || packed < 8 { packed } else { packed.next_multiple_of(8) };
        if stride > MAX_GROUP_BYTES {
            return Err(LayoutError::TooWide { bytes: stride });
        }
        let mut shift = CHUNK_SHIFT;
        while (stride << shift) > MAX_BLOCK_BYTES && shift > 6 {
            shift -= 1;
        }
        let entry = self.entry_bytes.len() as u32;
        let block_bytes = (stride << shift).next_multiple_of(64) as u32;
        assert!(block_bytes as usize <= SLAB_BYTES, "the pool has blocks of this size");
        self.entry_bytes.extend(std::iter::repeat_n(block_bytes, CHUNK_ROWS >> shift));
        let values =
            order.iter().fold(ColumnSet::NONE, |set, (column, _)| set.with(ColumnSet::only(*column)));
        self.entry_columns.extend(std::iter::repeat_n(values, CHUNK_ROWS >> shift));
        let mut offset = 0;
        for (column, physical) in order {
            locations[column.index()] = Some(ColumnLocation {
                layout: self.id,
                entry,
                shift,
                mask: (1 << shift) - 1,
                stride: stride as u32,
                offset: offset as u32,
                null_entry: NONE,
                width: physical.width() as u16,
                column,
                heap: u16::MAX,
                physical,
                alone,
            });
            offset += physical.width();
        }
        assert_eq!(offset, packed, "values lie one behind the other");
        Ok(())
    }
}

fn groups_of(columns: usize, choice: &LayoutChoice) -> Result<Vec<Vec<ColumnId>>, LayoutError> {
    let all = || (0..columns).map(|i| ColumnId(i as u16));
    Ok(match choice {
        LayoutChoice::Columns => all().map(|c| vec![c]).collect(),
        LayoutChoice::Rows if columns == 0 => Vec::new(),
        LayoutChoice::Rows => vec![all().collect()],
        LayoutChoice::Groups(listed) => {
            let mut seen = vec![false; columns];
            for &column in listed.iter().flatten() {
                if std::mem::replace(&mut seen[column.index()], true) {
                    return Err(LayoutError::Twice(column));
                }
            }
            let mut groups: Vec<Vec<ColumnId>> = listed.iter().filter(|g| !g.is_empty()).cloned().collect();
            groups.extend(all().filter(|c| !seen[c.index()]).map(|c| vec![c]));
            groups
        }
    })
}
