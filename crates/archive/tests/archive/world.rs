//! A table in several partitions, its rows as they should be, and archives of it.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use albireo_archive::{
    ArchiveError, ColumnMeta, Contents, FileEntry, LogPosition, Manifest, Request, TableMeta, Written, open,
    open_frozen, write,
};
use albireo_base::{ColumnId, PartitionId, SqlType, TableId, Tid, Value};
use albireo_env::Env;
use albireo_storage::{
    BlockPool, BudgetPolicy, ChunkEncoder, DatabaseSnapshot, IndexKind, Layout, LayoutChoice, Loader,
    SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableError, TableSpec, UndoLog,
};

use crate::shape::Shape;

/// Where archives lie.
pub const DIRECTORY: &str = "/database/archive";

/// The rows of each partition, in order.
pub type Rows = Vec<Vec<Vec<Value>>>;

/// See the module.
pub struct World {
    /// The table's shape.
    pub shape: Shape,
    /// The table in each partition.
    pub tables: Vec<Table>,
    spec: Arc<TableSpec>,
    layout: Arc<Layout>,
    registry: Arc<SnapshotRegistry>,
    undo: UndoLog,
}

/// A table of two columns that finds its rows by the first.
pub fn small_shape() -> Shape {
    Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Text, true)],
        layout: LayoutChoice::Columns,
        indexes: vec![(vec![ColumnId(0)], true, IndexKind::Hash)],
        forbidden: None,
    }
}

impl World {
    /// Empty.
    pub fn new(shape: Shape, partitions: usize) -> Self {
        let pool = BlockPool::new(1 << 30);
        let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
        let spec = Arc::new(shape.spec());
        let layout = Table::layout_of(&spec).expect("the shape is possible");
        let table = |_| Table::new(Arc::clone(&spec), Arc::clone(&layout), None, &registry);
        let tables = (0..partitions).map(table).collect();
        Self { shape, tables, spec, layout, registry, undo: UndoLog::default() }
    }

    /// Inserts a row, if nothing forbids it.
    pub fn insert(&mut self, partition: usize, row: &[Value]) {
        match self.tables[partition].insert_values(&mut self.undo, row) {
            Ok(_) | Err(TableError::Duplicate { .. } | TableError::Check { .. }) => self.commit(partition),
            Err(other) => panic!("unexpected {other}"),
        }
    }

    /// Deletes the live row that `pick` names.
    pub fn delete(&mut self, partition: usize, pick: usize) {
        let table = &mut self.tables[partition];
        let rows: Vec<Tid> = table.scan_from(Tid(0)).collect();
        if !rows.is_empty() {
            table.delete(&mut self.undo, rows[pick % rows.len()]).expect("the row is there");
            self.commit(partition);
        }
    }

    /// Deletes the live rows in these slots.
    pub fn delete_all(&mut self, partition: usize, slots: impl IntoIterator<Item = u64>) {
        for tid in slots.into_iter().map(Tid) {
            let table = &mut self.tables[partition];
            if table.is_live(tid) {
                table.delete(&mut self.undo, tid).expect("the row is there");
                self.commit(partition);
            }
        }
    }

    /// Gives a row another value in a column, if nothing forbids it.
    pub fn update(&mut self, partition: usize, pick: usize, column: usize, value: Value) {
        let table = &mut self.tables[partition];
        let rows: Vec<Tid> = table.scan_from(Tid(0)).collect();
        if !rows.is_empty() {
            let change = [(ColumnId(column as u16), value)];
            let _ = table.update_values(&mut self.undo, rows[pick % rows.len()], &change);
            self.commit(partition);
        }
    }

    fn commit(&mut self, partition: usize) {
        if !self.undo.moved_in().is_empty() {
            self.tables[partition].settle_moved();
        }
        let table = RefCell::new(&mut self.tables[partition]);
        self.undo.commit(
            |_, _, tid| table.borrow_mut().free_slot(tid),
            |_, _, chunk, heap| table.borrow_mut().tidy_heap(chunk, heap),
        );
    }

    /// A snapshot of all partitions.
    pub fn snapshot(&mut self) -> Arc<DatabaseSnapshot> {
        let mut builder = SnapshotBuilder::new(&self.registry, SnapshotScope::All).expect("no budget");
        for (partition, table) in self.tables.iter_mut().enumerate() {
            builder.add(PartitionId(partition as u16), table);
        }
        builder.finish()
    }

    /// The rows as they are.
    pub fn rows(&self) -> Rows {
        self.tables.iter().map(rows_of).collect()
    }

    /// What to archive.
    pub fn request(&self) -> Request {
        let column = |column: &albireo_storage::ColumnSpec| ColumnMeta {
            name: column.name.clone(),
            ty: column.ty,
            nullable: column.nullable,
        };
        Request {
            time_us: 1_000_000,
            log: LogPosition { log: 1, sequence: u64::MAX, next_record: 7 },
            partitions: self.tables.len() as u16,
            catalog: serde_json::json!({"version": 3, "text": "ä\"\n", "number": 0.1}),
            tables: vec![TableMeta {
                id: TableId(3),
                schema: "public".to_owned(),
                name: "t".to_owned(),
                columns: self.spec.columns.iter().map(column).collect(),
            }],
            bytes_per_second: None,
            cancel: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Archives a snapshot.
    pub fn archive(&mut self, env: &Env, previous: Option<&Contents>) -> Result<Written, ArchiveError> {
        let snapshot = self.snapshot();
        write(env, Path::new(DIRECTORY), snapshot, self.request(), previous, |_| {})
    }

    /// Freezes what rows there are of a partition.
    pub fn freeze(&mut self, partition: usize) {
        self.freeze_but(partition, &[]);
    }

    /// Freezes chunks of a partition, but those of these numbers.
    pub fn freeze_but(&mut self, partition: usize, but: &[u32]) {
        self.tables[partition].end_chunk();
        let snapshot = self.snapshot();
        let view = snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let chunks = (0..view.chunk_count()).map(|index| view.chunk(index));
        let hot = chunks.filter(|chunk| chunk.partition().0 as usize == partition && !chunk.is_frozen());
        let hot = hot.filter(|chunk| !but.contains(&chunk.number()));
        let mut encoder = ChunkEncoder::default();
        let encoded: Vec<_> = hot.map(|chunk| chunk.encode(&mut encoder).expect("there is memory")).collect();
        let (_replaced, done) = self.tables[partition].freeze(encoded);
        assert!(done.iter().all(|(_, outcome)| outcome.is_ok()), "{done:?}");
    }

    /// Loads an archive in the place of what there is; what the next one needs to know.
    pub fn reopen(&mut self, env: &Env, manifest: &Manifest) -> Contents {
        self.tables = self.load_tables(env, manifest).expect("nothing is damaged");
        Contents::loaded(manifest, &self.snapshot())
    }

    /// Chunks that are frozen, over all partitions.
    pub fn frozen_chunks(&mut self) -> usize {
        let snapshot = self.snapshot();
        let view = snapshot.table(TableId(3)).expect("the table is in the snapshot");
        (0..view.chunk_count()).filter(|index| view.chunk(*index).is_frozen()).count()
    }

    /// How the columns of each chunk are encoded.
    pub fn forms(&mut self) -> Vec<Option<Vec<String>>> {
        let snapshot = self.snapshot();
        let view = snapshot.table(TableId(3)).expect("the table is in the snapshot");
        // With whom a chunk shares its texts is not in files.
        let own = |form: String| form.replace(", texts shared", "");
        let forms = |index| Some(view.chunk(index).forms()?.into_iter().map(own).collect());
        (0..view.chunk_count()).map(forms).collect()
    }

    /// Loads the file of a frozen chunk and reads all of its rows, or is refused.
    pub fn may_load(&self, env: &Env, file: &FileEntry) {
        let empty = Table::new(Arc::clone(&self.spec), Arc::clone(&self.layout), None, &self.registry);
        let mut loader = Loader::new(empty);
        let Ok(chunk) = open_frozen(env, Path::new(DIRECTORY), file) else { return };
        if loader.adopt(chunk).is_ok()
            && let Ok(table) = loader.finish()
        {
            assert_eq!(rows_of(&table).len() as u64, file.rows);
        }
    }

    /// The rows of an archive.
    pub fn load(&self, env: &Env, manifest: &Manifest) -> Result<Rows, ArchiveError> {
        Ok(self.load_tables(env, manifest)?.iter().map(rows_of).collect())
    }

    fn load_tables(&self, env: &Env, manifest: &Manifest) -> Result<Vec<Table>, ArchiveError> {
        let mut loaded = Vec::new();
        for partition in 0..manifest.partitions {
            let empty = Table::new(Arc::clone(&self.spec), Arc::clone(&self.layout), None, &self.registry);
            let mut loader = Loader::new(empty);
            let entry = manifest.table(3).expect("the table is in the archive");
            for file in entry.files_of(partition) {
                if file.frozen.is_some() {
                    let chunk = open_frozen(env, Path::new(DIRECTORY), file)?;
                    loader.adopt(chunk).expect("a chunk of the same table");
                    continue;
                }
                for batch in open(env, Path::new(DIRECTORY), file)? {
                    loader.append(&batch?).expect("rows of the same table");
                }
            }
            loaded.push(loader.finish().expect("keys are unique"));
        }
        Ok(loaded)
    }
}

/// The same rows, in an order of their own: frozen chunks are loaded first.
pub fn sorted(mut rows: Rows) -> Rows {
    rows.iter_mut().for_each(|rows| rows.sort_by_cached_key(|row| format!("{row:?}")));
    rows
}

/// The rows of a table, in the order of their slots.
fn rows_of(table: &Table) -> Vec<Vec<Value>> {
    table.scan_from(Tid(0)).map(|tid| table.row(tid)).collect()
}
