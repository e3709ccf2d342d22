//! Relations over Arrow batches in memory: the test double of a snapshot, and a way to query
//! batches that live outside the database.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::{ColumnId, TableId};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Decimal128Type};

use crate::relation::{ChunkData, ChunkVersion, Relation, RelationData, Relations, Snapshot};

/// One relation's rows, a chunk per batch, with optional dead slots.
#[derive(Debug)]
pub struct MemoryRelation {
    chunks: Vec<MemoryChunk>,
}

#[derive(Debug)]
struct MemoryChunk {
    batch: RecordBatch,
    live: Option<BooleanBuffer>,
    /// Decimals of at most 18 digits as 64-bit integers, as the storage keeps them.
    raw: Vec<Option<(ScalarBuffer<i64>, Option<NullBuffer>)>>,
    version: u128,
}

impl MemoryRelation {
    /// A relation of these batches; `version` tells contents apart, see [`ChunkVersion`].
    pub fn new(batches: Vec<RecordBatch>, version: u64) -> Self {
        let chunks = batches
            .into_iter()
            .map(|batch| MemoryChunk {
                raw: batch.columns().iter().map(raw_values).collect(),
                batch,
                live: None,
                version: u128::from(version),
            })
            .collect();
        Self { chunks }
    }

    /// Declares slots of chunk `i` dead where `live` is false.
    ///
    /// # Panics
    /// When `live` is not as long as the chunk.
    #[must_use]
    pub fn with_live(mut self, i: usize, live: BooleanBuffer) -> Self {
        assert_eq!(live.len(), self.chunks[i].batch.num_rows());
        self.chunks[i].live = Some(live);
        self
    }
}

fn raw_values(column: &ArrayRef) -> Option<(ScalarBuffer<i64>, Option<NullBuffer>)> {
    match column.data_type() {
        DataType::Decimal128(precision, _) if *precision <= 18 => {
            let array = column.as_primitive::<Decimal128Type>();
            let values: Vec<i64> = array.values().iter().map(|v| *v as i64).collect();
            Some((values.into(), array.nulls().cloned()))
        }
        _ => None,
    }
}

impl RelationData for MemoryRelation {
    fn row_count(&self) -> u64 {
        self.chunks
            .iter()
            .map(|c| c.live.as_ref().map_or(c.batch.num_rows(), BooleanBuffer::count_set_bits))
            .sum::<usize>() as u64
    }

    fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    fn chunk(&self, i: usize) -> Box<dyn ChunkData + '_> {
        Box::new(&self.chunks[i])
    }
}

impl ChunkData for &MemoryChunk {
    fn slots(&self) -> usize {
        self.batch.num_rows()
    }

    fn live(&self) -> Option<BooleanBuffer> {
        self.live.clone()
    }

    fn column(&self, column: ColumnId) -> ArrayRef {
        Arc::clone(self.batch.column(column.index()))
    }

    fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        self.raw[column.index()].as_ref().map(|(values, _)| values.clone())
    }

    fn raw_nulls(&self, column: ColumnId) -> Option<NullBuffer> {
        self.raw[column.index()].as_ref().and_then(|(_, nulls)| nulls.clone())
    }

    fn version(&self, _: ColumnId) -> ChunkVersion {
        ChunkVersion(self.version)
    }
}

/// A catalog and a snapshot of relations in memory.
#[derive(Debug, Default)]
pub struct MemoryDatabase {
    relations: HashMap<String, Arc<Relation>>,
    data: HashMap<TableId, Arc<dyn RelationData>>,
}

impl MemoryDatabase {
    /// Adds a relation with its contents, replacing one of the same name.
    pub fn add(&mut self, relation: Relation, data: Arc<dyn RelationData>) {
        self.data.insert(relation.id, data);
        self.relations.insert(relation.name.clone(), Arc::new(relation));
    }

    /// All relations, in no order.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.values()
    }
}

impl Relations for MemoryDatabase {
    fn relation(&self, schema: Option<&str>, name: &str) -> Option<Arc<Relation>> {
        let found = self.relations.get(name)?;
        schema.is_none_or(|s| s == found.schema).then(|| Arc::clone(found))
    }

    fn version(&self) -> u64 {
        0
    }
}

impl Snapshot for MemoryDatabase {
    fn relation(&self, id: TableId) -> Option<Arc<dyn RelationData>> {
        self.data.get(&id).map(Arc::clone)
    }
}
