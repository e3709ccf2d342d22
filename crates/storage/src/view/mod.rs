//! What a snapshot shows: the directories of all tables of all partitions, and their
//! chunks as Arrow arrays.
//!
//! Responsible for: keeping a snapshot's blocks alive, handing out columns without copying where
//! their layout allows. Not responsible for: when a snapshot is taken (`session`), which rows a
//! query wants (`olap`).
//!
//! Invariants:
//! - I-1 A snapshot equals the state between two transactions, for as long as it lives.
//! - I-2 Nothing is read that the snapshot does not cover: every way to a column's blocks begins at
//!   [`ChunkView::location`]; which rows are live is always covered.
//! - I-3 An array handed out keeps the snapshot alive, so its blocks are not freed or written.

mod arrays;
mod encode;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Epoch, IndexId, PartitionId, StatementProgress, TableId, Tid};
use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use crate::bitmap;
use crate::directory::{Directory, Entry};
use crate::encoded::EncodedView;
use crate::frozen::ahead::ReadAhead;
use crate::frozen::away::FetchError;
use crate::frozen::{ChunkEncoder, EncodedChunk, FrozenChunk, MOST_TEXT_BYTES};
use crate::layout::{BITMAP_BYTES, ColumnLocation, Layout, VALIDITY_ENTRY};
use crate::pool::{BlockPool, OutOfMemory};
use crate::registry::{BudgetSpent, ColumnSet, SnapshotRegistry, SnapshotScope};
use crate::rows::{Reads, SeenPart, SeenRows};
use crate::table::{IndexAside, Rewrite, Table, TableError, TableSpec};

/// A transaction-consistent state of all tables, or of what its scope covers, that nobody changes. Dropping the
/// last reference frees exactly the blocks that only this snapshot still saw.
pub struct DatabaseSnapshot {
    epoch: Epoch,
    scope: SnapshotScope,
    /// Dropped before the release below, so that the live tables find their directories unshared.
    tables: Vec<Option<Arc<TableParts>>>,
    cancelled: Arc<AtomicBool>,
    registry: Arc<SnapshotRegistry>,
}

/// One table in a snapshot.
pub(crate) struct TableParts {
    id: TableId,
    columns: ColumnSet,
    pub(crate) schema: SchemaRef,
    pub(crate) layout: Arc<Layout>,
    pub(crate) parts: Vec<Part>,
}

/// One table of one partition in a snapshot.
pub(crate) struct Part {
    pub(crate) partition: PartitionId,
    pub(crate) dir: Arc<Directory>,
    pub(crate) slots: u64,
    pub(crate) live_rows: u64,
    pub(crate) reads: Reads,
}

impl DatabaseSnapshot {
    /// The epoch that this snapshot closed.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// It is not cancelled whatever it holds: what it is for, such as an archive, is needed.
    pub fn exempt(&self) {
        self.registry.exempt(self.epoch);
    }

    /// Whether the budget's policy ended this snapshot: its readers must stop with an error.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// What it covers.
    pub fn scope(&self) -> &SnapshotScope {
        &self.scope
    }

    /// Whether `table`, of `partition`, still has the rows that the snapshot shows of it, with the values that it
    /// covers; so does a table that it does not cover. It looks at blocks, not at rows: what was changed and
    /// changed back is not the same. The caller owns the partition.
    ///
    /// This snapshot lives, so a block that it covers is replaced before it is written where it has rows, and
    /// its address is not given out again: the same address and birth are the same values. Rows that came
    /// since lie in slots beyond `slots`, or in blocks that were replaced.
    pub fn is_current(&self, partition: PartitionId, table: &Table) -> bool {
        let id = table.spec().id;
        if self.scope.columns_of(id).is_none() {
            return true;
        }
        let Some(parts) = self.tables.get(id.index()).and_then(Option::as_ref) else { return false };
        let part = parts.parts.iter().find(|part| part.partition == partition);
        part.is_some_and(|part| parts.is_current(part, table))
    }

    /// The table as it was; `None` if it did not exist then or is not covered.
    pub fn table(self: &Arc<Self>, id: TableId) -> Option<TableView> {
        let parts = Arc::clone(self.tables.get(id.index())?.as_ref()?);
        let mut chunks = Vec::new();
        for (part, p) in parts.parts.iter().enumerate() {
            let full = p.slots.div_ceil(CHUNK_ROWS as u64);
            chunks.extend((0..full as u32).map(|chunk| (part as u16, chunk)));
        }
        Some(TableView { snapshot: Arc::clone(self), parts, chunks: chunks.into() })
    }
}

impl TableParts {
    fn is_current(&self, part: &Part, table: &Table) -> bool {
        let (rows, layout) = (&table.rows, &self.layout);
        if layout.id != table.layout().id || (part.slots, part.live_rows) != (rows.slots, rows.live_rows) {
            return false;
        }
        let in_use = part.slots.div_ceil(CHUNK_ROWS as u64) as usize * layout.entries();
        let then = part.dir.entries[..in_use].chunks(layout.entries());
        let now = rows.dir.entries[..in_use].chunks(layout.entries());
        let covered = |entry: usize| layout.entry_columns[entry].meets(self.columns);
        then.zip(now).enumerate().all(|(chunk, (then, now))| {
            let mut both = then.iter().zip(now).enumerate().filter(|(entry, _)| covered(*entry));
            both.all(|(entry, (then, now))| {
                let then = part.dir.unfrozen(chunk, entry, *then);
                let now = rows.dir.unfrozen(chunk, entry, *now);
                (then.block, then.tag) == (now.block, now.tag)
            })
        })
    }
}

/// A snapshot being taken. The caller owns all partitions, each between two transactions, from
/// [`SnapshotBuilder::new`] to [`SnapshotBuilder::finish`].
pub struct SnapshotBuilder {
    parts: Vec<Option<TableParts>>,
    /// The last field dropped if the builder is abandoned: it releases the epoch.
    snapshot: DatabaseSnapshot,
}

impl SnapshotBuilder {
    /// Closes the epoch, for the tables of `scope`.
    pub fn new(registry: &Arc<SnapshotRegistry>, scope: SnapshotScope) -> Result<Self, BudgetSpent> {
        let (epoch, cancelled) = registry.open(scope.clone())?;
        let registry = Arc::clone(registry);
        let snapshot = DatabaseSnapshot { epoch, scope, tables: Vec::new(), cancelled, registry };
        Ok(Self { snapshot, parts: Vec::new() })
    }

    /// Adds one table of one partition if the scope covers it. Every table of the scope is added:
    /// its writer must learn of the new epoch.
    pub fn add(&mut self, partition: PartitionId, table: &mut Table) {
        let Some(columns) = self.snapshot.scope.columns_of(table.spec().id) else { return };
        let id = table.spec().id.index();
        if self.parts.len() <= id {
            self.parts.resize_with(id + 1, || None);
        }
        let parts = self.parts[id].get_or_insert_with(|| TableParts {
            id: table.spec().id,
            columns,
            schema: table.arrow_schema(),
            layout: Arc::clone(table.layout()),
            parts: Vec::new(),
        });
        assert_eq!(parts.layout.id, table.layout().id, "a table lies alike in all partitions");
        let before = parts.parts.last().map(|part| part.partition);
        assert!(before.is_none_or(|before| before < partition), "parts are in the order of partitions");
        let (slots, live_rows) = (table.rows.slots, table.rows.live_rows);
        let dir = table.rows.share(self.snapshot.epoch.next().0);
        let chunks = slots.div_ceil(CHUNK_ROWS as u64) as usize;
        assert!(
            chunks * parts.layout.entries() <= dir.entries.len(),
            "a snapshot has all blocks of its rows"
        );
        let reads = table.rows.reads.clone();
        parts.parts.push(Part { partition, dir, slots, live_rows, reads });
    }

    /// The snapshot.
    pub fn finish(mut self) -> Arc<DatabaseSnapshot> {
        let closed = self.snapshot.epoch;
        assert_eq!(self.snapshot.registry.epoch(), closed.next(), "one snapshot is taken at a time (I-1)");
        self.snapshot.tables = self.parts.into_iter().map(|parts| parts.map(Arc::new)).collect();
        Arc::new(self.snapshot)
    }
}

impl Drop for DatabaseSnapshot {
    fn drop(&mut self) {
        self.tables.clear();
        self.registry.release(self.epoch);
    }
}

/// One table of a snapshot, over all partitions. Cheap to clone; keeps the snapshot alive.
#[derive(Clone)]
pub struct TableView {
    parts: Arc<TableParts>,
    chunks: Arc<[(u16, u32)]>,
    /// The last field dropped: the parts' blocks may go with it.
    snapshot: Arc<DatabaseSnapshot>,
}

/// Identifies the content of one column of one chunk: equal versions of the same table, chunk and
/// column have equal content in slots `0..slots`. A key for caches of minima and maxima.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkVersion {
    block: usize,
    tag: u64,
    nulls: usize,
    nulls_tag: u64,
    slots: u32,
}

impl ChunkVersion {
    /// Of any column of a frozen chunk: no block has an odd address.
    fn of_frozen(id: u64, slots: usize) -> Self {
        Self { block: 1, tag: id, nulls: 1, nulls_tag: 0, slots: slots as u32 }
    }

    /// The version in 128 bits, as good as unique within one table, chunk and column: the epoch of
    /// the last change in full, the rest mixed.
    pub fn as_u128(self) -> u128 {
        let mix = |a: u64, b: u64| (a ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let rest = mix(mix(mix(u64::from(self.slots), self.block as u64), self.nulls as u64), self.nulls_tag);
        (u128::from(self.tag) << 64) | u128::from(rest)
    }
}

/// Identifies the rows of a chunk: while a process runs, equal contents of the same table, partition and
/// chunk mean equal rows. For archives, which need not write again what has not changed.
///
/// Whatever changes a value that a snapshot saw gives its block an epoch after that snapshot's, in a table
/// that takes the place of another too; rows that are appended have slots of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkContent {
    layout: u64,
    changed: u64,
    slots: u32,
}

impl ChunkContent {
    /// The epoch of the last change of a block; rows appended since do not count.
    pub fn changed(self) -> Epoch {
        Epoch(self.changed)
    }
}

impl TableView {
    /// The snapshot it belongs to.
    pub fn snapshot(&self) -> &Arc<DatabaseSnapshot> {
        &self.snapshot
    }

    /// Live rows, exact.
    pub fn row_count(&self) -> u64 {
        self.parts.parts.iter().map(|p| p.live_rows).sum()
    }

    /// Chunks over all partitions.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The `index`th chunk, `index < chunk_count()`.
    pub fn chunk(&self, index: usize) -> ChunkView<'_> {
        let (part, chunk) = self.chunks[index];
        let part = &self.parts.parts[part as usize];
        ChunkView { view: self, part, chunk: chunk as usize, fetched: None }
    }

    /// Names and Arrow types of the columns.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::clone(&self.parts.schema)
    }

    /// Makes the last index of `spec` beside the table, of the rows of one partition, and counts them in `progress`;
    /// `None` if the table is not there.
    ///
    /// # Errors
    /// Two rows have the same key, or memory is at its limit.
    ///
    /// # Panics
    /// The snapshot does not cover the index's columns.
    pub fn index_aside(
        &self,
        partition: PartitionId,
        spec: Arc<TableSpec>,
        progress: &StatementProgress,
    ) -> Result<Option<IndexAside>, TableError> {
        let Some(last) = spec.indexes.len().checked_sub(1) else { return Ok(None) };
        let rows = self.rows_of(partition, &spec.indexes[last].columns);
        rows.map(|rows| IndexAside::new(rows, spec, IndexId(last as u16), progress)).transpose()
    }

    /// Begins to write new values of columns beside the rows of one partition; `None` if the table is not there.
    ///
    /// # Panics
    /// The snapshot does not cover the columns and those of their indexes, or all of them if there are CHECK
    /// constraints; or they cannot be rewritten ([`TableSpec::reindexes`]).
    pub fn rewrite(
        &self,
        partition: PartitionId,
        spec: Arc<TableSpec>,
        columns: &[ColumnId],
    ) -> Option<Rewrite> {
        let all: Vec<ColumnId> = match spec.checks.is_empty() {
            true => spec.read_by_rewrite(columns),
            false => (0..spec.columns.len() as u16).map(ColumnId).collect(),
        };
        let rows = self.rows_of(partition, &all)?;
        Some(Rewrite::new(rows, spec, columns))
    }

    /// The rows of one partition, to be read as live ones are; `None` if the table is not there.
    ///
    /// # Panics
    /// The snapshot does not cover one of the `columns`, which are those that are read.
    fn rows_of(&self, partition: PartitionId, columns: &[ColumnId]) -> Option<SeenRows> {
        assert!(columns.iter().all(|column| self.covers(*column)), "what is read is covered (I-2)");
        let part = self.parts.parts.iter().find(|part| part.partition == partition)?;
        let (dir, layout) = (Arc::clone(&part.dir), Arc::clone(&self.parts.layout));
        let part = SeenPart { dir, slots: part.slots, live_rows: part.live_rows };
        let (registry, keeper) = (Arc::clone(&self.snapshot.registry), Arc::clone(&self.snapshot));
        Some(SeenRows::new(self.parts.id, layout, part, registry, keeper))
    }

    /// Whether the snapshot covers a column, so that it can be read.
    pub fn covers(&self, column: ColumnId) -> bool {
        self.parts.columns.has(column)
    }
}

/// A frozen chunk with columns that its table has not in memory.
pub struct FetchedChunk(Arc<FrozenChunk>);

/// One chunk of a table in a snapshot.
#[derive(Clone, Copy)]
pub struct ChunkView<'a> {
    view: &'a TableView,
    part: &'a Part,
    chunk: usize,
    /// What takes the place of the chunk, which is frozen.
    fetched: Option<&'a FetchedChunk>,
}

impl<'a> ChunkView<'a> {
    /// Slots to look at, dead ones included: `1..=CHUNK_ROWS`.
    pub fn slots(&self) -> usize {
        let first = self.chunk as u64 * CHUNK_ROWS as u64;
        debug_assert!(first < self.part.slots, "a chunk of the snapshot has rows");
        (self.part.slots - first).min(CHUNK_ROWS as u64) as usize
    }

    /// The partition that owns the rows.
    pub fn partition(&self) -> PartitionId {
        self.part.partition
    }

    /// The address of the row in `slot`.
    pub fn tid(&self, slot: usize) -> Tid {
        Tid::new(self.chunk, slot)
    }

    /// Which slots hold a live row; `None` if all do.
    pub fn live(&self) -> Option<BooleanBuffer> {
        if self.part.live_rows == self.part.slots {
            return None;
        }
        let slots = self.slots();
        let bits = self.bits(VALIDITY_ENTRY);
        let live: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        debug_assert!(live <= slots, "only slots of the snapshot are looked at");
        (live < slots).then(|| BooleanBuffer::new(bits.into(), 0, slots))
    }

    /// The column's values in all slots, dead ones included. A fixed-width column of its own group
    /// is not copied, except that longer decimals are widened to 128 bits.
    pub fn column(&self, column: ColumnId) -> ArrayRef {
        arrays::column(self, column)
    }

    /// The values of a 64-bit column (BIGINT, DECIMAL up to 18 digits, TIME, timestamps) as
    /// stored; `None` for other types. NULLs hold arbitrary values; ask [`ChunkView::nulls`].
    pub fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        arrays::raw_i64(self, column)
    }

    /// The column's NULLs: bits of valid slots; `None` if no slot is NULL.
    pub fn nulls(&self, column: ColumnId) -> Option<arrow_buffer::NullBuffer> {
        arrays::nulls(self, column)
    }

    /// A column as it is encoded, if the chunk is frozen.
    pub fn encoded(&self, column: ColumnId) -> Option<EncodedView<'a>> {
        let at = self.location(column);
        let frozen = self.frozen()?;
        debug_assert_eq!(self.slots(), CHUNK_ROWS, "a frozen chunk is whole");
        let ty = self.view.parts.schema.field(column.index()).data_type();
        Some(EncodedView::new(frozen, at, ty))
    }

    /// A reader will fetch what is away of some columns, after what was planned before.
    pub fn plan(&self, columns: ColumnSet, ahead: &mut ReadAhead) {
        if let Some(frozen) = self.frozen() {
            frozen.plan(columns, ahead);
        }
    }

    /// The chunk with some of its columns read from where they lie, for this reader alone; `None` if they are in memory.
    ///
    /// # Errors
    /// They cannot be read, or there is no memory.
    pub fn fetch(
        &self,
        columns: ColumnSet,
        ahead: &mut ReadAhead,
    ) -> Result<Option<FetchedChunk>, FetchError> {
        match self.frozen() {
            Some(frozen) if !frozen.is_here(columns) => Ok(Some(FetchedChunk(frozen.with(columns, ahead)?))),
            _ => Ok(None),
        }
    }

    /// The chunk, read from what was fetched of it.
    pub fn reading<'f>(&'f self, fetched: &'f FetchedChunk) -> ChunkView<'f> {
        debug_assert_eq!(self.frozen_id(), Some(fetched.0.id()), "it was fetched of this chunk");
        ChunkView { fetched: Some(fetched), ..*self }
    }

    /// Identifies the content of `column` in this chunk.
    pub fn version(&self, column: ColumnId) -> ChunkVersion {
        let at = self.location(column);
        if let Some(frozen) = self.frozen() {
            return ChunkVersion::of_frozen(frozen.id(), self.slots());
        }
        // A vector of several blocks changes when one of them does.
        let blocks = CHUNK_ROWS >> at.shift;
        let mut version =
            ChunkVersion { block: 0, tag: 0, nulls: 0, nulls_tag: 0, slots: self.slots() as u32 };
        for i in 0..blocks {
            let entry = self.entry(at.entry as usize + i);
            version.block = version.block.rotate_left(7) ^ entry.block.as_ptr() as usize;
            version.tag = version.tag.max(entry.tag);
        }
        if at.nullable() {
            let entry = self.entry(at.null_entry as usize);
            version.nulls = entry.block.as_ptr() as usize;
            version.nulls_tag = entry.tag;
        }
        version
    }

    /// The chunk's number in its partition, from 0.
    pub fn number(&self) -> u32 {
        self.chunk as u32
    }

    /// About how often transactions have found rows of it through indexes so far, not only until the snapshot, if it is
    /// observed.
    pub fn reads(&self) -> u64 {
        self.part.reads.of(self.chunk)
    }

    /// Identifies the content of all columns in this chunk, and which rows live.
    ///
    /// # Panics
    /// The snapshot does not cover all columns.
    pub fn content(&self) -> ChunkContent {
        let layout = &self.view.parts.layout;
        for column in &layout.columns {
            self.location(column.column);
        }
        let entries = &self.part.dir.entries[self.chunk * layout.entries()..][..layout.entries()];
        let unfrozen = |(at, entry): (usize, &Entry)| self.part.dir.unfrozen(self.chunk, at, *entry).tag;
        let changed = entries.iter().enumerate().map(unfrozen).max().unwrap_or(0);
        ChunkContent { layout: layout.id, changed, slots: self.slots() as u32 }
    }

    /// Where a column lies. Every way to its blocks begins here.
    ///
    /// # Panics
    /// The snapshot does not cover the column: its blocks may be written or gone.
    fn location(&self, column: ColumnId) -> ColumnLocation {
        assert!(self.view.parts.columns.has(column), "the snapshot does not cover column {column}");
        *self.view.parts.layout.column(column)
    }

    /// Its columns, if they are encoded.
    fn frozen(&self) -> Option<&'a Arc<FrozenChunk>> {
        match self.fetched {
            Some(fetched) => Some(&fetched.0),
            None => self.part.dir.frozen.get(self.chunk),
        }
    }

    /// What no other frozen chunk of this process has; `None` of a chunk that has blocks.
    pub fn frozen_id(&self) -> Option<u64> {
        self.frozen().map(|frozen| frozen.id())
    }

    /// Bytes of the heaps of its texts; of a frozen chunk of those that they were in.
    pub fn text_bytes(&self) -> u64 {
        self.frozen().map_or_else(|| self.heap_bytes(), |frozen| frozen.heap_bytes())
    }

    /// Encodes the chunk, beside its table.
    ///
    /// # Errors
    /// There is no memory.
    ///
    /// # Panics
    /// The snapshot does not cover all columns, or it is not [encodable](ChunkView::is_encodable).
    pub fn encode(&self, encoder: &mut ChunkEncoder) -> Result<EncodedChunk, OutOfMemory> {
        let pool = self.view.snapshot.registry.pool();
        let encoded = encode::encode(self, encoder, pool, true)?;
        encoded.chunk.note_read(pool.time());
        Ok(encoded)
    }

    /// As [`ChunkView::encode`], in other memory than the table's: for a chunk that is to be evicted at once. It shares no
    /// texts.
    ///
    /// # Errors
    /// There is no memory.
    pub fn encode_in(
        &self,
        encoder: &mut ChunkEncoder,
        pool: &BlockPool,
    ) -> Result<EncodedChunk, OutOfMemory> {
        encode::encode(self, encoder, pool, false)
    }

    /// How each column is encoded, in words; `None` of a chunk that has blocks.
    pub fn forms(&self) -> Option<Vec<String>> {
        let frozen = self.frozen()?;
        let columns = self.view.parts.layout.columns.iter();
        let form = |at: &ColumnLocation| match frozen.shares(at.column) {
            true => format!("{}, texts shared", frozen.form(at.column)),
            false => frozen.form(at.column).to_string(),
        };
        Some(columns.map(form).collect())
    }

    /// Bytes of its columns as they are now, its validity bitmap included.
    pub fn memory_bytes(&self) -> u64 {
        match self.frozen() {
            Some(frozen) => frozen.memory_bytes() + BITMAP_BYTES as u64,
            None => self.block_bytes(),
        }
    }

    /// Bytes of its blocks and of its texts; of a frozen chunk those that it had.
    pub fn block_bytes(&self) -> u64 {
        self.view.parts.layout.chunk_bytes() as u64 + self.text_bytes()
    }

    fn heap_bytes(&self) -> u64 {
        let heaps = self.view.parts.layout.heap_columns.len();
        let of_chunk = self.part.dir.heaps.iter().skip(self.chunk * heaps).take(heaps).flatten();
        of_chunk.flat_map(|heap| heap.blocks.iter().map(|block| u64::from(block.bytes))).sum()
    }

    /// The epoch in which a value of the chunk was written last; rows that died do not count.
    pub fn written(&self) -> Epoch {
        let layout = &self.view.parts.layout;
        let entries = &self.part.dir.entries[self.chunk * layout.entries()..][..layout.entries()];
        let tag = |(at, entry): (usize, &Entry)| self.part.dir.unfrozen(self.chunk, at, *entry).tag;
        Epoch(entries.iter().enumerate().skip(VALIDITY_ENTRY + 1).map(tag).max().unwrap_or(0))
    }

    /// Whether it may be encoded: it is not, no more rows are appended to it, and its texts are not too long together.
    pub fn is_encodable(&self) -> bool {
        !self.is_frozen() && self.slots() == CHUNK_ROWS && self.heap_bytes() <= MOST_TEXT_BYTES
    }

    /// Whether it is encoded, and some of its columns are not in memory.
    pub fn is_evicted(&self) -> bool {
        self.frozen().is_some_and(|frozen| frozen.is_away())
    }

    /// Whether it is encoded.
    pub fn is_frozen(&self) -> bool {
        self.frozen().is_some()
    }

    /// How many rows have moved out of it since it cools, not only until the snapshot; `None` if it does not cool.
    pub fn moved_rows(&self) -> Option<u32> {
        self.part.dir.frozen.moved(self.chunk)
    }

    /// Rows that lived when it was encoded; 0 of a chunk that is empty by now, `None` of one that has blocks.
    pub fn frozen_rows(&self) -> Option<usize> {
        self.frozen().map(|frozen| frozen.rows())
    }

    /// How many rows live.
    pub fn live_rows(&self) -> usize {
        self.live().map_or(self.slots(), |live| live.count_set_bits())
    }

    fn entry(&self, entry: usize) -> Entry {
        debug_assert!(entry < self.view.parts.layout.entries(), "an entry of the chunk");
        self.part.dir.entries[self.chunk * self.view.parts.layout.entries() + entry]
    }

    /// A copy of a bitmap's bits for the chunk's slots.
    fn bits(&self, entry: usize) -> Vec<u64> {
        debug_assert!(self.view.parts.layout.bitmaps.contains(&(entry as u32)), "the entry is a bitmap");
        // SAFETY: `entry` names a bitmap; the snapshot keeps the block alive.
        unsafe { bitmap::copy(self.entry(entry).block, self.slots()) }
    }
}
