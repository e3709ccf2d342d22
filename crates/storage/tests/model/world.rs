//! One table, its model, and the snapshots of both.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ptr::NonNull;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, TableId, Tid, Value};
use albireo_storage::{
    BlockPool, BudgetPolicy, ChangeEvent, ChunkContent, ChunkVersion, ColumnSet, DatabaseSnapshot,
    OutOfMemory, RowAddress, Savepoint, SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableError,
    UndoLog,
};
use arrow_array::ArrayRef;

use crate::check;
use crate::shape::Shape;

/// The model: every live row.
pub type Rows = BTreeMap<Tid, Arc<Vec<Value>>>;

/// A row, where it is if it has an address, and its keys.
pub type Standing = (Tid, Option<RowAddress>, Vec<Value>);

/// A snapshot and what it must show for ever.
pub struct Seen {
    /// The snapshot.
    pub snapshot: Arc<DatabaseSnapshot>,
    /// The rows as they were.
    pub rows: Rows,
    /// Chunks that were let go of since: it alone has what they held, and other blocks take their place.
    pub gone: BTreeSet<usize>,
}

/// An array that outlives the handle of its snapshot.
pub struct Kept {
    array: ArrayRef,
    column: usize,
    chunk: usize,
    rows: Rows,
}

/// Sizes of the blocks that fill the pool up.
const BALLAST_BYTES: [usize; 12] = {
    let mut sizes = [0; 12];
    let mut i = 0;
    while i < sizes.len() {
        sizes[i] = albireo_storage::SLAB_BYTES >> i;
        i += 1;
    }
    sizes
};

/// Everything one case works on.
pub struct World {
    /// The table's shape.
    pub shape: Shape,
    /// The table under test.
    pub table: Table,
    /// The running transaction's before images.
    pub undo: UndoLog,
    /// The model, with the running transaction.
    pub current: Rows,
    /// Live snapshots.
    pub snapshots: Vec<Seen>,
    /// Live snapshots that do not cover the table.
    elsewhere: Vec<Arc<DatabaseSnapshot>>,
    committed: Rows,
    savepoint: Option<(Savepoint, Rows)>,
    kept: Vec<Kept>,
    versions: HashMap<(usize, usize, ChunkVersion), u64>,
    contents: HashMap<(u32, ChunkContent), u64>,
    registry: Arc<SnapshotRegistry>,
    pool: BlockPool,
    ballast: Vec<(NonNull<u8>, usize)>,
    /// Rows that are to be appended some time.
    pub staged: Option<crate::append::Staged>,
    /// Rows that were killed together and stand in indexes.
    pub ghosts: Vec<Tid>,
    /// Rows that arrive in steps.
    pub arriving: Option<crate::ghosts::Arriving>,
    /// New values that are written beside the table.
    pub rewriting: Option<crate::rewrites::Rewriting>,
    /// Chunks that cool.
    pub cooling: BTreeSet<u32>,
}

impl World {
    /// An empty table in a pool of `limit_bytes`.
    pub fn new(shape: Shape, limit_bytes: u64) -> Self {
        let pool = BlockPool::new(limit_bytes);
        let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::RefuseNew));
        let spec = Arc::new(shape.spec());
        let layout = Table::layout_of(&spec).expect("the shape is possible");
        let table = Table::new(spec, layout, None, &registry);
        Self {
            shape,
            table,
            undo: UndoLog::default(),
            current: Rows::new(),
            snapshots: Vec::new(),
            elsewhere: Vec::new(),
            committed: Rows::new(),
            savepoint: None,
            kept: Vec::new(),
            versions: HashMap::new(),
            contents: HashMap::new(),
            registry,
            pool,
            ballast: Vec::new(),
            staged: None,
            ghosts: Vec::new(),
            arriving: None,
            rewriting: None,
            cooling: BTreeSet::new(),
        }
    }

    /// Whether an operation may be refused for memory.
    pub fn is_squeezed(&self) -> bool {
        !self.ballast.is_empty()
    }

    /// [`Table::moves`], and what must be as it was as long as that is: which rows there are, where, with
    /// which keys.
    pub fn standing(&self) -> (u64, Vec<Standing>) {
        let keys = self.shape.indexes.iter().flat_map(|(columns, ..)| columns.iter().map(|c| c.index()));
        let keys: Vec<usize> = keys.collect();
        let rows = self.current.iter().map(|(&tid, row)| {
            let key = keys.iter().map(|&column| row[column].clone()).collect();
            (tid, self.table.row_address(tid), key)
        });
        (*self.table.moves(), rows.collect())
    }

    /// A chunk was frozen, or rows have moved out of it: if none lives there, it was let go of.
    pub fn note_emptied(&mut self, chunk: u32) {
        let rows = Tid::new(chunk as usize, 0)..Tid::new(chunk as usize + 1, 0);
        if self.current.range(rows).next().is_none() {
            self.snapshots.iter_mut().for_each(|seen| {
                seen.gone.insert(chunk as usize);
            });
        }
    }

    /// The live row that `pick` names.
    pub fn pick_row(&self, pick: u16) -> Option<Tid> {
        let count = self.current.len();
        (count > 0).then(|| *self.current.keys().nth(pick as usize % count).expect("in range"))
    }

    /// Another row with the same key in a unique index, if any.
    pub fn rival(&self, row: &[Value], but: Option<Tid>) -> Option<Tid> {
        let uniques = self.shape.indexes.iter().filter(|(_, unique, _)| *unique);
        uniques.flat_map(|(columns, ..)| self.current.iter().map(move |other| (columns, other))).find_map(
            |(columns, (&tid, other))| {
                let equal = |c: &ColumnId| !row[c.index()].is_null() && row[c.index()] == other[c.index()];
                (Some(tid) != but && columns.iter().all(equal)).then_some(tid)
            },
        )
    }

    /// Checks that no snapshot sees a row live in a slot that was given to another. A chunk that was frozen for a snapshot,
    /// or let go of since, and has blocks again, does not matter to it.
    pub fn assert_unseen(&self, tid: Tid) {
        let shares_blocks = |seen: &Seen| {
            let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
            !view.chunk(tid.chunk()).is_frozen() && !seen.gone.contains(&tid.chunk())
        };
        let mut seen = self.snapshots.iter().filter(|seen| seen.rows.contains_key(&tid));
        assert!(!seen.any(shares_blocks), "a slot was reused that a snapshot sees live");
    }

    /// Checks how a change to `row` at `at` (`None`: a new row) ended, and follows it in the model.
    pub fn expect(&mut self, row: Vec<Value>, at: Option<Tid>, outcome: Result<Tid, TableError>) {
        let rival = self.rival(&row, at);
        match outcome {
            Ok(tid) => {
                assert_eq!(rival, None, "a unique key is there twice: {row:?}");
                assert!(self.shape.allows(&row), "a check was passed over: {row:?}");
                assert!(at.is_none_or(|at| at == tid));
                if at.is_none() {
                    assert!(!self.current.contains_key(&tid), "the slot of a live row was given away");
                    self.assert_unseen(tid);
                }
                self.current.insert(tid, Arc::new(row));
            }
            Err(TableError::Duplicate { existing, index, .. }) => {
                assert!(rival.is_some(), "nothing has the key of {row:?}");
                let columns = &self.shape.indexes[index.index()].0;
                let other = &self.current[&existing];
                assert!(
                    columns.iter().all(|c| other[c.index()] == row[c.index()]),
                    "the named row has another key"
                );
            }
            Err(TableError::Check { .. }) => assert!(!self.shape.allows(&row), "the check holds: {row:?}"),
            Err(TableError::OutOfMemory(_)) => assert!(self.is_squeezed(), "there was memory"),
            Err(other) => panic!("unexpected {other}"),
        }
    }

    /// Like [`World::expect`] for a change that can hurt no index.
    pub fn expect_unindexed(&mut self, row: Vec<Value>, tid: Tid, outcome: Result<Tid, TableError>) {
        assert_eq!(outcome, Ok(tid));
        self.current.insert(tid, Arc::new(row));
    }

    /// Makes the transaction final.
    pub fn commit(&mut self) {
        self.cooling_chunks_are_left();
        let Self { table, undo, .. } = self;
        for (_, _, tid, event) in undo.events(Savepoint::START) {
            if let ChangeEvent::Moved { to } = event
                && let Some(row) = self.current.remove(&tid)
            {
                self.current.insert(to, row);
            }
        }
        for _ in undo.moved_in() {
            table.settle_moved();
        }
        let table = RefCell::new(table);
        undo.commit(
            |_, _, tid| table.borrow_mut().free_slot(tid),
            |_, _, chunk, heap| table.borrow_mut().tidy_heap(chunk, heap),
        );
        self.committed = self.current.clone();
        self.savepoint = None;
    }

    /// Whether the running transaction has moved rows.
    pub fn has_moved(&self) -> bool {
        let mut events = self.undo.events(Savepoint::START);
        events.any(|(.., event)| matches!(event, ChangeEvent::Moved { .. }))
    }

    /// Whether the running transaction has moved a row to this slot.
    pub fn has_moved_to(&self, slot: Tid) -> bool {
        let mut events = self.undo.events(Savepoint::START);
        events.any(|(.., event)| matches!(event, ChangeEvent::Moved { to } if to == slot))
    }

    /// Whether a row was there when the last transaction had committed.
    pub fn committed_has(&self, tid: Tid) -> bool {
        self.committed.contains_key(&tid)
    }

    /// Takes the transaction back.
    pub fn abort(&mut self) {
        self.roll_back(Savepoint::START);
        assert!(self.undo.is_empty());
        self.current = self.committed.clone();
        self.savepoint = None;
    }

    /// Marks a place to roll back to.
    pub fn set_savepoint(&mut self) {
        self.savepoint = Some((self.undo.savepoint(), self.current.clone()));
    }

    /// Rolls back to the last savepoint, if the transaction has one.
    pub fn roll_back_to_savepoint(&mut self) {
        if let Some((to, rows)) = self.savepoint.clone() {
            self.roll_back(to);
            self.current = rows;
        }
    }

    /// Rolls back to a place, but for the model.
    pub fn roll_back(&mut self, to: Savepoint) {
        while let Some(record) = self.undo.pop(to) {
            self.table.undo(&self.undo, &record);
        }
    }

    /// An empty table of the same shape.
    pub fn empty_table(&self) -> Table {
        let spec = Arc::clone(self.table.spec());
        Table::new(spec, Arc::clone(self.table.layout()), None, &self.registry)
    }

    /// Goes on with another table, whose committed rows are `rows`.
    pub fn replace(&mut self, table: Table, rows: Rows) {
        self.snapshots.clear();
        self.ghosts.clear();
        (self.arriving, self.rewriting) = (None, None);
        self.cooling.clear();
        self.table = table;
        self.current = rows;
        self.commit();
    }

    /// Commits and takes a snapshot.
    pub fn take_snapshot(&mut self) {
        self.take(SnapshotScope::All);
    }

    /// Commits and takes a snapshot of some columns; `pick` says which, one bit each.
    pub fn take_snapshot_of(&mut self, pick: u16) {
        let picked = (0..16).filter(|column| pick >> column & 1 == 1).map(ColumnId);
        self.take(SnapshotScope::Tables([(TableId(3), ColumnSet::of(picked))].into()));
    }

    fn take(&mut self, scope: SnapshotScope) {
        self.commit();
        let mut builder = SnapshotBuilder::new(&self.registry, scope).expect("the budget is large");
        builder.add(PartitionId(0), &mut self.table);
        let snapshot = builder.finish();
        assert!(snapshot.is_current(PartitionId(0), &self.table), "nothing has happened since");
        self.snapshots.push(Seen { snapshot, rows: self.current.clone(), gone: BTreeSet::new() });
    }

    /// Commits and takes a snapshot of another table, or drops the one that `pick` names.
    pub fn snapshot_elsewhere(&mut self, pick: u16) {
        self.commit();
        if pick % 2 == 1 && !self.elsewhere.is_empty() {
            self.elsewhere.swap_remove(pick as usize % self.elsewhere.len());
            return;
        }
        let scope = SnapshotScope::Tables([(TableId(4), ColumnSet::ALL)].into());
        let mut builder = SnapshotBuilder::new(&self.registry, scope).expect("the budget is large");
        builder.add(PartitionId(0), &mut self.table);
        self.elsewhere.push(builder.finish());
    }

    /// Drops a snapshot; with `keep_array` one of its arrays stays.
    pub fn drop_snapshot(&mut self, pick: u16, keep_array: bool) {
        if self.snapshots.is_empty() {
            return;
        }
        let seen = self.snapshots.swap_remove(pick as usize % self.snapshots.len());
        let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let column = pick as usize % self.shape.columns.len();
        if keep_array && view.chunk_count() > 0 && view.covers(ColumnId(column as u16)) {
            let chunk = pick as usize % view.chunk_count();
            let array = view.chunk(chunk).column(ColumnId(column as u16));
            self.kept.push(Kept { array, column, chunk, rows: seen.rows });
        }
    }

    /// Lets go of the arrays that outlived their snapshots.
    pub fn drop_kept(&mut self) {
        self.kept.clear();
    }

    /// Memory that the pool has handed out.
    pub fn in_use_bytes(&self) -> u64 {
        self.pool.in_use_bytes()
    }

    /// Takes all memory that the pool has left, but for `spare` blocks of each size.
    pub fn squeeze(&mut self, spare: usize) {
        self.release();
        for bytes in BALLAST_BYTES {
            let first = self.ballast.len();
            while let Ok(block) = self.pool.alloc(bytes) {
                self.ballast.push((block, bytes));
            }
            let keep = self.ballast.len().saturating_sub(spare).max(first);
            for (block, bytes) in self.ballast.drain(keep..) {
                // SAFETY: taken above with this size, and unused.
                unsafe { self.pool.free(block, bytes) };
            }
        }
    }

    /// Gives that memory back.
    pub fn release(&mut self) {
        for (block, bytes) in self.ballast.drain(..) {
            // SAFETY: taken in `squeeze` with this size, and unused.
            unsafe { self.pool.free(block, bytes) };
        }
    }

    /// Compares everything with the model.
    pub fn check(&mut self) {
        check::table_equals(&self.table, &self.shape, &self.current);
        crate::cells::cells_equal(&self.table, &self.shape, &self.current);
        check::indexes_agree(&self.table, &self.shape, &self.current, self.has_moved());
        for seen in &self.snapshots {
            let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
            check::view_equals(&view, &self.shape, &seen.rows);
            if seen.snapshot.is_current(PartitionId(0), &self.table) {
                check::covered_equal(&view, &self.shape, &seen.rows, &self.current);
            }
            check::versions_tell_content(&view, &self.shape, &mut self.versions);
            check::contents_tell_rows(&view, &self.shape, &mut self.contents);
        }
        assert!(self.elsewhere.iter().all(|snapshot| snapshot.table(TableId(3)).is_none()));
        let (away, _) = self.table.away_chunks(0, u32::MAX);
        assert_eq!(self.table.chunk_counts().evicted as usize, away.len(), "evicted chunks are counted");
        if self.snapshots.is_empty() && self.kept.is_empty() && self.rewriting.is_none() {
            let held = self.registry.counters().held_bytes;
            assert_eq!(held, 0, "blocks are held although no snapshot covers their table");
        }
        for kept in &self.kept {
            let ty = self.shape.columns[kept.column].0;
            check::array_equals(kept.array.as_ref(), ty, kept.column, kept.chunk, &kept.rows);
        }
    }

    /// Drops everything, the table first or last, and demands every byte back.
    pub fn finish(mut self, table_first: bool) {
        self.release();
        (self.staged, self.arriving, self.rewriting) = (None, None, None);
        let Self { table, snapshots, kept, elsewhere, registry, pool, shape, .. } = self;
        let table = if table_first {
            drop(table);
            for seen in &snapshots {
                let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
                check::view_equals(&view, &shape, &seen.rows);
            }
            None
        } else {
            Some(table)
        };
        drop(snapshots);
        drop(kept);
        drop(elsewhere);
        assert_eq!(registry.counters().held_bytes, 0, "a retired block stays although no snapshot lives");
        assert_eq!(registry.counters().live, 0);
        drop(table);
        drop(registry);
        assert_eq!(pool.in_use_bytes(), 0, "blocks leaked");
    }
}

/// What a call that makes a row says when memory is short.
pub fn refused(full: OutOfMemory) -> TableError {
    TableError::OutOfMemory(full)
}
