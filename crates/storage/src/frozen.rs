//! Chunks of a table that are encoded: smaller than as blocks, and never written.
//!
//! Responsible for: encoding what a snapshot shows of a chunk, reading single values of it. Not responsible for: which
//! chunks are frozen and when (`albireo`), where they stand among the others (`rows`), the forms of encoded columns
//! (`albireo_encoding`).
//!
//! Invariants:
//! - F-1 For each row that lived when it was encoded, each column gives the value that its block held then.
//! - F-2 Whether a row lives is not in it: the chunk keeps its validity bitmap, a block like any other. So rows die, come
//!   to live again when that is undone, and are seen by snapshots as in any chunk.
//! - F-3 Nobody writes it. A row gets other values by moving to a chunk that has blocks ([`crate::Table::update`]).
//! - F-4 Its columns may lie elsewhere, and come back when they are read ([`away`], [`prepass`]). Long texts may be in common
//!   with other chunks of the table ([`crate::texts`]).
//!
//! Papers: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012 (§3.3,
//! §4); Lang and others, *Data Blocks*, SIGMOD 2016.

use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_base::ColumnId;
use albireo_base::ids::CHUNK_ROWS;
use albireo_encoding::{Choose, Column, Encoder, Kind, Section, Source, SourceValues};

use crate::index::prefetch_line;
use crate::layout::{ColumnLocation, Layout, Physical};
use crate::pool::{BlockPool, OutOfMemory, Part};
use crate::texts::{ColumnTexts, Sharing};

pub(crate) mod ahead;
pub(crate) mod away;
pub(crate) mod prepass;

use away::Residence;

impl Section for Part {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Bytes of texts of a chunk up to which it is frozen: they are copied on the way, and offsets have 32 bits.
pub(crate) const MOST_TEXT_BYTES: u64 = 256 << 20;

/// A block, and the epoch of its last change.
pub(crate) type BlockOf = (NonNull<u8>, u64);

/// The columns of one chunk, encoded.
pub(crate) struct FrozenChunk {
    /// Of no other one in this process.
    id: u64,
    residence: Residence,
    /// The blocks that it was encoded from and the epochs of their last changes, that of the validity bitmap aside: what
    /// still has these is as it is here.
    made_from: Box<[BlockOf]>,
    /// Of what it has for itself, and was not fetched.
    memory_bytes: u64,
    /// Of the heaps that its texts were in.
    heap_bytes: u64,
    /// Rows that lived when it was encoded.
    rows: usize,
}

// SAFETY: the addresses in `made_from` are compared, and nothing is read there.
unsafe impl Send for FrozenChunk {}
// SAFETY: as above; nobody writes it (F-3).
unsafe impl Sync for FrozenChunk {}

/// A chunk that was encoded beside its table and may take the place of its blocks ([`crate::Table::freeze`]), while the
/// snapshot lives that it was made from.
pub struct EncodedChunk {
    pub(crate) number: usize,
    pub(crate) chunk: Arc<FrozenChunk>,
}

impl EncodedChunk {
    /// The chunk's number in its partition.
    pub fn number(&self) -> u32 {
        self.number as u32
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.chunk.memory_bytes()
    }
}

/// Encodes chunks, and keeps its buffers.
#[derive(Default)]
pub struct ChunkEncoder {
    encoder: Encoder,
    sharing: Sharing,
    integers: Vec<i64>,
    floats: Vec<u64>,
    wide: Vec<[u8; 16]>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

/// What is to be encoded of a column.
pub(crate) enum Values<'a> {
    /// Of a BOOL, a byte each.
    Bools(&'a [u8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// 16 bytes each.
    Wide(&'a [u8]),
    /// Texts; of rows that are dead or NULL any.
    Texts(&'a mut dyn Iterator<Item = &'a [u8]>),
}

/// Which rows of a chunk live, and which are NULL.
#[derive(Clone, Copy)]
pub(crate) struct Presence<'a> {
    pub(crate) live: &'a [u64],
    pub(crate) nulls: Option<&'a [u64]>,
    pub(crate) rows: usize,
}

/// Where a column is to lie.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) pool: &'a BlockPool,
    /// The texts that it may share, and what tells its chunk from others there; none if it has no texts, or stays alone.
    pub(crate) texts: Option<(&'a Arc<ColumnTexts>, u16)>,
}

impl ChunkEncoder {
    /// One that chooses forms as it is told: for tests.
    pub fn new(choose: Choose) -> Self {
        Self { encoder: Encoder::new(choose), ..Self::default() }
    }

    /// One whose chunks share texts as it is told: for tests and measurements.
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// Encodes a column.
    pub(crate) fn column(
        &mut self,
        physical: Physical,
        values: Values<'_>,
        Presence { live, nulls, rows }: Presence<'_>,
        Destination { pool, texts }: Destination<'_>,
    ) -> Result<Column<Part>, OutOfMemory> {
        let integers = &mut self.integers;
        integers.clear();
        let values = match values {
            Values::I64(values) => SourceValues::Integers(values),
            Values::Bools(values) => filled(integers, values.iter().map(|value| i64::from(*value != 0))),
            Values::I16(values) => filled(integers, values.iter().map(|value| i64::from(*value))),
            Values::I32(values) => filled(integers, values.iter().map(|value| i64::from(*value))),
            Values::F32(values) => {
                self.floats.clear();
                self.floats.extend(values.iter().map(|value| u64::from(value.to_bits())));
                SourceValues::Floats(&self.floats)
            }
            Values::F64(values) => {
                self.floats.clear();
                self.floats.extend(values.iter().map(|value| value.to_bits()));
                SourceValues::Floats(&self.floats)
            }
            Values::Wide(bytes) => {
                self.wide.clear();
                self.wide.extend_from_slice(bytes.as_chunks().0);
                SourceValues::Wide(&self.wide)
            }
            Values::Texts(texts) => {
                self.ends.clear();
                self.bytes.clear();
                for text in texts {
                    self.bytes.extend_from_slice(text);
                    self.ends.push(self.bytes.len() as u32);
                }
                SourceValues::Texts { ends: &self.ends, bytes: &self.bytes }
            }
        };
        let source = Source { kind: kind_of(physical), values, nulls, live, rows };
        let mut column = self.encoder.encode(&source);
        if let Some((texts, place)) = texts {
            column = texts.share(column, self.sharing, place, pool);
        }
        column.map_sections(|_, bytes| Part::new(pool, &bytes))
    }
}

fn filled(integers: &mut Vec<i64>, values: impl Iterator<Item = i64>) -> SourceValues<'_> {
    integers.extend(values);
    SourceValues::Integers(integers)
}

pub(crate) fn kind_of(physical: Physical) -> Kind {
    match physical {
        Physical::Bool => Kind::Bool,
        Physical::I16 => Kind::I16,
        Physical::I32 => Kind::I32,
        Physical::I64 => Kind::I64,
        Physical::I128 => Kind::I128,
        Physical::F32 => Kind::F32,
        Physical::F64 => Kind::F64,
        Physical::Uuid => Kind::Uuid,
        Physical::Inline(_) | Physical::View => Kind::Text,
    }
}

impl FrozenChunk {
    /// Of all columns of a table, in their order, which were encoded from these blocks, and heaps of so many bytes; so
    /// many `rows` live.
    pub(crate) fn new(
        columns: Vec<Column<Part>>,
        made_from: Box<[BlockOf]>,
        heap_bytes: u64,
        rows: usize,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let parts: u64 = columns.iter().map(away::part_bytes).sum();
        let chunk = Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            residence: Residence::here(columns),
            made_from,
            memory_bytes: 0,
            heap_bytes,
            rows,
        };
        let memory_bytes = parts + chunk.header_bytes();
        Self { memory_bytes, ..chunk }
    }

    fn header_bytes(&self) -> u64 {
        (self.columns().count() * size_of::<Column<Part>>() + size_of_val(&*self.made_from)) as u64
    }

    /// What chunks in which no row lives have in common.
    pub(crate) fn of_nothing(layout: &Layout, made_from: Box<[BlockOf]>) -> Self {
        let column = |at: &ColumnLocation| Column::of_dead_rows(kind_of(at.physical), CHUNK_ROWS);
        let nothing = Self::new(layout.columns.iter().map(column).collect(), made_from, 0, 0);
        Self { memory_bytes: 0, ..nothing }
    }

    /// Rows that lived when it was encoded.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// What no other one has, nor will have.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Bytes that it takes, and its part of those that it shares with others.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes + self.fetched_bytes() + self.shared_bytes().0
    }

    /// Bytes of the heaps that its texts were in.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }

    /// What it was encoded from, by entry from the second one of its chunk on.
    pub(crate) fn made_from(&self) -> &[BlockOf] {
        &self.made_from
    }

    /// Whether a value is NULL.
    #[inline]
    pub(crate) fn is_null(&self, column: ColumnId, slot: usize) -> bool {
        self.column(column).is_null(slot)
    }

    /// The bytes of a value of fixed width as they lay in its slot, which may have had fewer, little endian.
    ///
    /// A number, not bytes: bytes come back in memory, by two stores of eight, and a load of sixteen has to wait until both
    /// are done, and with them everything before.
    ///
    /// # Panics
    /// It is a text.
    #[inline]
    pub(crate) fn fixed(&self, column: ColumnId, slot: usize) -> u128 {
        let column = self.column(column);
        match column.kind() {
            Kind::Bool | Kind::I16 | Kind::I32 | Kind::I64 => (column.integer(slot) as u64).into(),
            Kind::F32 | Kind::F64 => column.float_bits(slot).into(),
            Kind::I128 | Kind::Uuid => u128::from_le_bytes(column.wide(slot)),
            Kind::Text => panic!("a text is not of fixed width"),
        }
    }

    /// Has the values of a row on their way into the processor's caches, those that are in memory. Each lies elsewhere: who
    /// reads them all waits for all at once then, not for one after the other (updates of random order lines: 4 % faster).
    pub(crate) fn prefetch(&self, slot: usize) {
        for column in self.columns().filter_map(|column| self.residence.get(column)) {
            if let Some(value) = column.begins(slot) {
                prefetch_line(value.as_ptr());
            }
        }
    }

    /// Whether a text has no bytes, or is NULL.
    ///
    /// # Panics
    /// It is none.
    #[inline]
    pub(crate) fn is_empty_text(&self, column: ColumnId, slot: usize) -> bool {
        let column = self.column(column);
        column.is_null(slot) || column.text_length(slot) == 0
    }

    /// A text, lent unless it is packed or compressed; the empty one of a row that was NULL.
    ///
    /// # Panics
    /// It is none.
    #[inline]
    pub(crate) fn text(&self, column: ColumnId, slot: usize) -> Cow<'_, [u8]> {
        match self.column(column) {
            column if column.is_null(slot) => Cow::Borrowed(&[]),
            column => column.text(slot),
        }
    }

    /// Makes `out` a text; the empty one of a row that was NULL.
    ///
    /// # Panics
    /// It is none.
    #[inline]
    pub(crate) fn text_in(&self, column: ColumnId, slot: usize, out: &mut Vec<u8>) {
        match self.column(column) {
            column if column.is_null(slot) => out.clear(),
            column => column.text_in(slot, out),
        }
    }
}
