//! One table in one partition: rows, their indexes, and the changes of the running transaction.
//!
//! Responsible for: insert, update in place, delete, NOT NULL, lengths, CHECK and uniqueness, the
//! undo of each. Not responsible for: who may call (`partition`: the owner of the partition alone),
//! the meaning of a CHECK expression (`engine`).
//!
//! Invariants:
//! - I-1 Between two transactions every live row stands in every index exactly once, under the key
//!   of its values, and no dead row stands in any.
//! - I-2 A change that fails leaves the row, the indexes and the undo log as they were.
//! - I-3 Undoing the records of a transaction, newest first, restores rows and indexes, except the
//!   order of free slots and garbage in string heaps.

mod adopt;
mod batch;
mod cells;
mod evict;
mod finder;
mod ghosts;
mod identity;
mod indexes;
mod insert;
mod load;
mod relocate;
mod rewrite;
mod shape;
mod staging;
mod update;
mod values;

use std::borrow::Cow;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, TableId, Tid, Value};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::column::{Col, Fixed, HandleError, TextCol};
use crate::layout::{ColumnSpec, Layout, LayoutChoice, LayoutError};
use crate::registry::SnapshotRegistry;
use crate::rows::{RowRun, Rows};
use crate::texts::SharedTexts;
use crate::undo::{Change, UndoLog, UndoRecord};

pub use crate::error::TableError;
pub use adopt::ChunkParts;
pub use batch::partitions_of;
pub use cells::{
    Cell, CellShape, Cells, ColumnAddress, ENTRY_BLOCK_OFFSET, ENTRY_BYTES, FillShape, Filled,
    INLINE_TEXT_APART, RowAddress, RowLines, Thawed, VALIDITY_ENTRY, VIEW_TEXT_BYTES,
};
pub use evict::{AwayChunk, ChunkCounts, ColdChunk, EvictedChunk};
pub use ghosts::FrozenKeys;
pub use indexes::{Arrival, Asked, ChangedKeys, Entering, IndexAside, IndexKind, IndexRef, IndexSpec};
pub use insert::NewRow;
pub use load::{IndexBuild, Loader};
pub use relocate::Frozen;
pub use rewrite::{Replaced, Rewrite};
pub use shape::{FixedRow, RowShape, ShapeRow, ShapeValue};
pub use staging::{RowFault, Staging};
pub use update::RowUpdate;

use finder::Finder;
pub(crate) use identity::Identity;
use indexes::TableIndex;

/// A condition that every row must meet.
pub trait RowCheck: Send + Sync {
    /// The constraint's name.
    fn name(&self) -> &str;
    /// Whether the row whose values `read` gives meets it; NULL counts as met.
    ///
    /// # Errors
    /// It cannot be said: a number overflows, for example.
    fn holds(&self, read: &dyn Fn(ColumnId) -> Value) -> Result<bool, SqlError>;
}

/// How rows find their partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The column that decides.
    pub column: ColumnId,
    /// This partition.
    pub partition: u16,
    /// Partitions in all.
    pub partitions: u16,
}

/// The shape of a table, the same in every partition.
#[derive(Clone)]
pub struct TableSpec {
    /// Its id.
    pub id: TableId,
    /// Its name, for errors.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnSpec>,
    /// How they lie in memory.
    pub layout: LayoutChoice,
    /// Its indexes, those of PRIMARY KEY and UNIQUE included.
    pub indexes: Vec<IndexSpec>,
    /// The column that places rows; `None` for a shared table.
    pub partition_by: Option<ColumnId>,
    /// Its CHECK constraints.
    pub checks: Vec<Arc<dyn RowCheck>>,
}

impl TableSpec {
    /// The first CHECK constraint that the row whose values `read` gives does not meet.
    pub(crate) fn unmet(&self, read: &dyn Fn(ColumnId) -> Value) -> Option<TableError> {
        let unmet = |(check, constraint): (usize, &Arc<dyn RowCheck>)| match constraint.holds(read) {
            Ok(true) => None,
            Ok(false) => Some(TableError::Check { table: self.id, check }),
            Err(error) => Some(error.into()),
        };
        self.checks.iter().enumerate().find_map(unmet)
    }
}

/// Memory of one table in one partition, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TableMemory {
    /// Blocks of rows and bitmaps.
    pub blocks_bytes: u64,
    /// String heaps.
    pub heaps_bytes: u64,
    /// Indexes.
    pub indexes_bytes: u64,
    /// Chunks that are frozen, but for their validity.
    pub frozen_bytes: u64,
    /// Of those, what texts take that chunks share, and references to them.
    pub shared_texts_bytes: u64,
    /// What these texts would take if each chunk had them for itself.
    pub unshared_texts_bytes: u64,
}

/// One table in one partition. Owned by whoever owns the partition; all access is single-threaded.
pub struct Table {
    spec: Arc<TableSpec>,
    pub(crate) rows: Rows,
    indexes: Vec<TableIndex>,
    placement: Option<Placement>,
    /// By column: writing it touches an index or the row's place.
    guarded: Guarded,
    /// What names its rows in write records.
    pub(crate) identity: Identity,
    /// Rows by their values, while write records are written again.
    finder: Finder,
    /// From `spec`, at hand for every change: id, number of columns, whether a row as a whole must be
    /// checked (CHECK constraints, or its partition), whether there are CHECK constraints.
    id: u32,
    columns: usize,
    has_row_checks: bool,
    has_checks: bool,
    arrow_schema: SchemaRef,
}

impl Table {
    /// An empty table. All partitions of a table share `layout`, from [`Table::layout_of`], so that
    /// a column handle serves them all.
    pub fn new(
        spec: Arc<TableSpec>,
        layout: Arc<Layout>,
        placement: Option<Placement>,
        registry: &Arc<SnapshotRegistry>,
    ) -> Self {
        let indexes = spec
            .indexes
            .iter()
            .map(|index| TableIndex::new(index, &spec.columns, &layout, registry.pool()))
            .collect();
        assert_eq!(spec.columns.len(), layout.columns.len(), "a layout is of the table's columns");
        let is_there = |column: &ColumnId| column.index() < spec.columns.len();
        assert!(spec.partition_by.iter().all(is_there), "rows are placed by a column of the table");
        let in_range = placement.is_none_or(|p| p.partition < p.partitions.max(1));
        assert!(in_range, "a table is in a partition that is there");
        let placement = placement.filter(|p| p.partitions > 1);
        let (guarded, identity) = (Guarded::new(&spec), Identity::of(&spec));
        let fields =
            spec.columns.iter().map(|c| Field::new(&c.name, albireo_base::arrow_type(c.ty), c.nullable));
        let arrow_schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self {
            rows: Rows::new(spec.id, layout, Arc::clone(registry)),
            id: spec.id.0,
            columns: spec.columns.len(),
            has_row_checks: placement.is_some() || !spec.checks.is_empty(),
            has_checks: !spec.checks.is_empty(),
            spec,
            indexes,
            placement,
            guarded,
            identity,
            finder: Finder::default(),
            arrow_schema,
        }
    }

    /// Lays the columns of `spec` out.
    pub fn layout_of(spec: &TableSpec) -> Result<Arc<Layout>, LayoutError> {
        Layout::new(&spec.columns, &spec.layout).map(Arc::new)
    }

    /// The table's shape.
    pub fn spec(&self) -> &Arc<TableSpec> {
        &self.spec
    }

    /// Names and Arrow types of its columns.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow_schema)
    }

    /// How its rows lie in memory.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.rows.layout
    }

    /// Live rows.
    pub fn row_count(&self) -> u64 {
        self.rows.live_rows
    }

    /// Slots that rows have, or had.
    pub fn slots(&self) -> u64 {
        self.rows.slots
    }

    /// Memory by kind.
    pub fn memory(&self) -> TableMemory {
        let (blocks_bytes, heaps_bytes, frozen_bytes) = self.rows.memory_bytes();
        let indexes_bytes = self.indexes.iter().map(TableIndex::memory_bytes).sum();
        let (shared_texts_bytes, unshared_texts_bytes) = self.rows.shared_text_bytes();
        TableMemory {
            blocks_bytes,
            heaps_bytes,
            indexes_bytes,
            frozen_bytes,
            shared_texts_bytes,
            unshared_texts_bytes,
        }
    }

    /// The texts that frozen chunks of a column share, of all partitions.
    pub fn shared_texts(&self, column: ColumnId) -> SharedTexts {
        self.rows.layout.texts_of(column).map_or_else(SharedTexts::default, |texts| texts.shared())
    }

    /// A handle to the fixed-width column `name`.
    pub fn column<T: Fixed>(&self, name: &str) -> Result<Col<T>, HandleError> {
        let (id, ty) = self.find_column(name)?;
        Col::new(*self.rows.layout.column(id), name, ty)
    }

    /// A handle to the text column `name`.
    pub fn text_column(&self, name: &str) -> Result<TextCol, HandleError> {
        let (id, ty) = self.find_column(name)?;
        TextCol::new(*self.rows.layout.column(id), name, ty)
    }

    fn find_column(&self, name: &str) -> Result<(ColumnId, albireo_base::SqlType), HandleError> {
        let position = self.spec.columns.iter().position(|c| c.name == name);
        let position = position.ok_or_else(|| HandleError::NoColumn(name.to_owned()))?;
        Ok((ColumnId(position as u16), self.spec.columns[position].ty))
    }

    /// Whether a row lives at `tid`.
    #[inline]
    pub fn is_live(&self, tid: Tid) -> bool {
        self.rows.is_live(tid)
    }

    /// The live rows in slot order, from `tid` on.
    pub fn scan_from(&self, tid: Tid) -> impl Iterator<Item = Tid> + '_ {
        let mut next = tid;
        std::iter::from_fn(move || {
            let found = self.rows.next_known(next)?;
            next = Tid(found.0 + 1);
            Some(found)
        })
    }

    /// A value, of a live row. For NULL it is what was there before; ask [`Table::is_null`].
    ///
    /// # Panics
    /// The handle belongs to another table, or there never was such a row.
    #[inline(always)]
    pub fn get<T: Fixed>(&self, tid: Tid, column: Col<T>) -> T {
        self.rows.get(tid, &column.at)
    }

    /// A value, or `None` for NULL.
    #[inline(always)]
    pub fn get_opt<T: Fixed>(&self, tid: Tid, column: Col<T>) -> Option<T> {
        (!self.rows.is_null(tid, &column.at)).then(|| self.get(tid, column))
    }

    /// A text; empty for NULL. It is lent, unless the row is frozen and its texts are packed or
    /// compressed.
    #[inline(always)]
    pub fn text(&self, tid: Tid, column: TextCol) -> Cow<'_, str> {
        self.rows.str(tid, &column.at)
    }

    /// Whether a value is NULL.
    #[inline(always)]
    pub fn is_null<T: Fixed>(&self, tid: Tid, column: Col<T>) -> bool {
        self.rows.is_null(tid, &column.at)
    }

    /// Asks the processor to bring the cache line of a value.
    #[inline(always)]
    pub fn prefetch<T>(&self, tid: Tid, column: Col<T>) {
        self.rows.prefetch(tid, &column.at);
    }

    /// Asks the processor to bring what an update or a deletion of a row looks at before its values.
    #[inline(always)]
    pub fn prefetch_liveness(&self, tid: Tid) {
        self.rows.prefetch_liveness(tid);
    }

    /// Asks the processor to bring the cache line of a text's slot.
    #[inline(always)]
    pub fn prefetch_text(&self, tid: Tid, column: TextCol) {
        self.rows.prefetch(tid, &column.at);
    }

    /// Asks the processor to bring a text that lies in the heap; its slot should be there already.
    #[inline]
    pub fn prefetch_body(&self, tid: Tid, column: TextCol) {
        self.rows.prefetch_text(tid, &column.at);
    }

    /// Deletes a row.
    pub fn delete(&mut self, undo: &mut UndoLog, tid: Tid) -> Result<(), TableError> {
        if !self.rows.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        let slot = self.rows.slot_of(tid);
        if !self.rows.is_hot(slot) {
            // Its keys leave the indexes, and its identity goes to the log.
            self.rows.require(slot)?;
        }
        self.rows.kill(slot)?;
        debug_assert_eq!(self.indexes.len(), self.spec.indexes.len(), "the indexes are the shape's");
        for index in &mut self.indexes {
            index.remove(&self.rows, slot);
        }
        undo.push_deleted(self.spec.id.0, self.rows.known_as(tid), slot);
        Ok(())
    }

    /// Takes one change back. Records come from [`UndoLog::pop`], newest first.
    pub fn undo(&mut self, log: &UndoLog, record: &UndoRecord) {
        self.undo_change(log, record);
        if log.is_empty() {
            // The transaction is undone whole, so no before image refers to a heap.
            self.rows.tidy();
        }
    }

    fn undo_change(&mut self, log: &UndoLog, record: &UndoRecord) {
        assert_eq!(record.table, self.spec.id.0, "a record is taken back by the table that wrote it");
        let tid = self.rows.slot_of(record.tid);
        match record.change {
            Change::Inserted => {
                debug_assert!(self.rows.is_live(tid), "a row that came is there until that is undone");
                for index in &mut self.indexes {
                    index.remove(&self.rows, tid);
                }
                self.count_texts(tid, 1);
                self.rows.unpublish(tid);
            }
            Change::Appended { rows } => self.undo_append(RowRun { first: tid, rows: rows.into() }),
            Change::Deleted => {
                self.rows.revive(tid);
                let Self { rows, indexes, .. } = self;
                rows.pool().with_emergency(|| {
                    for index in indexes {
                        index.restore(rows, tid);
                    }
                });
            }
            Change::Moved { .. } => self.undo_move(record.tid),
            Change::Wrote { column, was_null, image } => {
                self.undo_write(log, tid, column, was_null, &image);
            }
            Change::Indexed(index) => {
                debug_assert!(self.rows.is_live(tid), "only live rows stand in indexes (I-1)");
                self.rows.note_move();
                self.indexes[index.index()].remove(&self.rows, tid);
            }
            Change::Unindexed(index) => {
                debug_assert!(self.rows.is_live(tid), "only live rows stand in indexes (I-1)");
                self.rows.note_move();
                let Self { rows, indexes, .. } = self;
                rows.pool().with_emergency(|| indexes[index.index()].restore(rows, tid));
            }
        }
    }

    /// Lets a deleted row's slot be used again; its text is garbage. Called at commit.
    pub fn free_slot(&mut self, tid: Tid) {
        self.count_texts_in_blocks(tid, 1);
        self.rows.free_slot(tid);
        self.rows.tidy();
    }

    /// Has heaps that are mostly garbage rewritten when the transaction commits.
    #[inline]
    fn note_untidy(&self, undo: &mut UndoLog) {
        if let Some((chunk, heap)) = self.rows.untidy() {
            undo.note_garbage(self.spec.id.0, chunk, heap);
        }
    }

    /// Rewrites the string heaps that are mostly garbage, the named one among them. Called at
    /// commit.
    pub fn tidy_heap(&mut self, _chunk: u32, _heap: u16) {
        self.rows.tidy();
    }

    /// Rewrites no string heap while what is returned lives: whoever copies slots of texts aside wants that.
    pub fn keep_heaps(&mut self) -> Arc<()> {
        self.rows.keep_heaps()
    }

    /// [`Table::count_texts`] of a row that may be frozen, and then has none.
    fn count_texts_in_blocks(&mut self, tid: Tid, sign: i64) {
        if !self.rows.is_frozen(tid) {
            self.count_texts(tid, sign);
        }
    }

    /// Counts a row's heap texts as garbage (`sign` 1) or as text again (-1).
    fn count_texts(&mut self, tid: Tid, sign: i64) {
        let layout = Arc::clone(&self.rows.layout);
        for &column in &layout.heap_columns {
            let at = layout.column(column);
            let bytes = self.rows.heap_length(tid, at);
            if bytes > 0 {
                self.rows.count_garbage(tid.chunk(), at.heap, sign * bytes as i64);
            }
        }
    }
}

/// A set of columns.
struct Guarded {
    first: u64,
    /// Column 64 and those after.
    others: Vec<bool>,
}

impl Guarded {
    fn new(spec: &TableSpec) -> Self {
        Self::of(spec.columns.len(), spec.indexes.iter().flat_map(|i| &i.columns).chain(&spec.partition_by))
    }

    /// These columns of so many.
    fn of<'c>(width: usize, columns: impl Iterator<Item = &'c ColumnId>) -> Self {
        let mut guarded = Self { first: 0, others: vec![false; width.saturating_sub(64)] };
        for column in columns {
            assert!(column.index() < width, "an index has columns of the table");
            match column.0 {
                c @ 0..64 => guarded.first |= 1 << c,
                c => guarded.others[c as usize - 64] = true,
            }
        }
        guarded
    }

    #[inline(always)]
    fn has(&self, column: ColumnId) -> bool {
        match column.0 {
            c @ 0..64 => self.first >> c & 1 == 1,
            c => self.others[c as usize - 64],
        }
    }
}
