//! What the engine must supply: the relations of a catalog and their contents in a snapshot.
//!
//! Responsible for: the traits between the analytical engine and the rest of the database.
//! Not responsible for: where rows lie (`storage`), names and constraints (`sql`).
//! These traits are also the test seam: [`crate::memory`] implements them over Arrow batches.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlType, TableId, arrow_type};
use albireo_encoding::{Groups, MaskedRuns, Selection, Sum, Summary, Test};
use arrow::array::ArrayRef;
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{Field, Schema, SchemaRef};

/// A column of a [`Relation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn {
    /// Its name, as stored in the catalog (already folded).
    pub name: String,
    /// Its declared type.
    pub ty: SqlType,
    /// Whether it may hold NULL.
    pub nullable: bool,
}

/// A relation as a query sees it. Column `i` is `ColumnId(i)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Identity; the key of statistics and of the contents in a snapshot.
    pub id: TableId,
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<RelationColumn>,
    /// Columns of the primary key; empty when there is none. Trusted by the optimizer.
    pub primary_key: Vec<ColumnId>,
    /// Further unique keys. Trusted by the optimizer.
    pub unique_keys: Vec<Vec<ColumnId>>,
}

impl Relation {
    /// The Arrow schema that scans of the relation deliver.
    pub fn arrow_schema(&self) -> SchemaRef {
        let field =
            |column: &RelationColumn| Field::new(&column.name, arrow_type(column.ty), column.nullable);
        let fields: Vec<Field> = self.columns.iter().map(field).collect();
        Arc::new(Schema::new(fields))
    }

    /// All unique keys over NOT NULL columns, the primary key first.
    pub fn keys(&self) -> impl Iterator<Item = &[ColumnId]> {
        std::iter::once(self.primary_key.as_slice())
            .chain(self.unique_keys.iter().map(Vec::as_slice))
            .filter(|key| !key.is_empty() && key.iter().all(|c| !self.columns[c.index()].nullable))
    }
}

/// The relations a statement may name: one version of the catalog.
pub trait Relations: Send + Sync + Debug {
    /// Finds a relation; without a schema the search path applies. `None`: no such relation.
    fn relation(&self, schema: Option<&str>, name: &str) -> Option<Arc<Relation>>;
    /// The version of the catalog; equal versions have equal relations.
    fn version(&self) -> u64;
}

/// Identifies the content of one column in one chunk: within one (table, chunk, column), equal
/// versions have equal content in slots `0..slots()`, those aside that are dead in all snapshots that see them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkVersion(pub u128);

/// One relation in one snapshot. Implementations keep the snapshot alive.
pub trait RelationData: Send + Sync + Debug {
    /// Live rows, exact.
    fn row_count(&self) -> u64;
    /// Chunks over all partitions.
    fn chunk_count(&self) -> usize;
    /// Whether a column can be read: a snapshot for one query need not cover those that it does not name.
    fn covers(&self, column: ColumnId) -> bool {
        let _ = column;
        true
    }
    /// Chunk `i`, `i < chunk_count()`.
    fn chunk(&self, i: usize) -> Box<dyn ChunkData + '_>;
    /// Whether most chunks have a column encoded. Looks at each chunk.
    fn is_encoded(&self, column: ColumnId) -> bool {
        (0..self.chunk_count()).filter(|i| self.chunk(*i).encoded(column).is_some()).count() * 2
            > self.chunk_count()
    }
    /// Whether most chunks have to be fetched. Looks at each chunk.
    fn is_away(&self) -> bool {
        (0..self.chunk_count()).filter(|i| self.chunk(*i).is_away()).count() * 2 > self.chunk_count()
    }
}

/// What one reader of a relation has read ahead of chunks that are away, as whoever implements [`ChunkData`] keeps it.
#[derive(Default)]
pub struct ReadAhead(Option<Box<dyn Any + Send>>);

impl ReadAhead {
    /// It, or a new one in the place of one of another type.
    pub fn get_mut<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        self.0.as_mut().and_then(|kept| kept.downcast_mut()).expect("it is of this type")
    }
}

/// One chunk: at most 16 Ki slots, some of which may be dead.
pub trait ChunkData: Send {
    /// Slots to look at, dead ones included.
    fn slots(&self) -> usize;
    /// Which slots are live; `None` means all.
    fn live(&self) -> Option<BooleanBuffer>;
    /// A column of all slots, of the type of [`arrow_type`]. Contents of dead slots are arbitrary
    /// but valid.
    fn column(&self, column: ColumnId) -> ArrayRef;
    /// The values of a `DECIMAL(p<=18)`, `BIGINT` or timestamp column as stored, without the null
    /// mask, if the storage has them as 64-bit integers.
    fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>>;
    /// The null mask that belongs to [`Self::raw_i64`]; `None` means no nulls.
    fn raw_nulls(&self, column: ColumnId) -> Option<NullBuffer> {
        self.column(column).nulls().cloned()
    }
    /// The version of a column's content.
    fn version(&self, column: ColumnId) -> ChunkVersion;
    /// Whether columns may not be in memory, so that they have to be [fetched](ChunkData::fetch) before they are read; what
    /// is known of them without reading is there.
    fn is_away(&self) -> bool {
        false
    }
    /// Says that a reader will [fetch](ChunkData::fetch) columns, after those of other chunks that it said before: what
    /// lies together can be read together then.
    fn plan(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) {
        let _ = (columns, ahead);
    }
    /// Fetches columns, for this reader alone. To be called once.
    ///
    /// # Errors
    /// They cannot be read, or there is no memory.
    fn fetch(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) -> Result<(), SqlError> {
        let _ = (columns, ahead);
        Ok(())
    }
    /// A column as it is encoded; `None` if it is not, and then its values cost nothing to have.
    fn encoded(&self, column: ColumnId) -> Option<Box<dyn EncodedColumn + '_>> {
        let _ = column;
        None
    }
}

/// A column of a chunk that is encoded: it is asked and decoded for the rows wanted instead of as a whole. Values are of
/// the kind that belongs to the column's type: decimals of up to 18 digits, dates, times and timestamps are integers.
pub trait EncodedColumn {
    /// What is known of the values without reading them; of dead rows nothing.
    fn summary(&self) -> &Summary;
    /// Whether [`Test::Each`] is asked much less often than there are slots.
    fn is_cheap(&self) -> bool;
    /// Clears the bits of rows for which `test` is not true; of dead rows any. There are words for all slots, and no bit
    /// behind the last is set.
    fn select(&self, test: &mut Test<'_>, mask: &mut [u64]);
    /// The values of `rows`, of the type of [`arrow_type`].
    fn array(&self, rows: &Selection<'_>) -> ArrayRef;
    /// Appends the values of `rows`, some value where one is NULL.
    ///
    /// # Panics
    /// They are not integers, or longer than those.
    fn append(&self, rows: &Selection<'_>, to: Integers<'_>);
    /// Which of `rows` are not NULL; `None` if none is.
    fn nulls(&self, rows: &Selection<'_>) -> Option<NullBuffer>;
    /// How many values are stored that rows share: those of a dictionary, of runs, or one. `None`: each row has its own.
    /// Known without reading them.
    fn shared(&self) -> Option<usize>;
    /// The texts that rows share; `None`: each row has its own.
    ///
    /// # Panics
    /// They are not texts.
    fn shared_texts(&self) -> Option<ArrayRef>;
    /// Appends for each of `rows` the place of its value among those that rows share; of NULLs any.
    ///
    /// # Panics
    /// Each row has its own.
    fn places(&self, rows: &Selection<'_>, to: &mut Vec<u16>);
    /// Adds up the integers of the rows of `mask` that are not NULL.
    ///
    /// # Panics
    /// They are not integers of up to 64 bits.
    fn sum(&self, mask: &[u64]) -> Sum;
    /// Splits groups by the integers; false, and nothing is changed: there would be too many.
    ///
    /// # Panics
    /// They are not integers of up to 64 bits.
    fn split(&self, groups: &mut Groups) -> bool;
    /// Adds up the integers that are not NULL by group. `None`: sums may be too large.
    ///
    /// # Panics
    /// They are not integers of up to 64 bits.
    fn sum_by(&self, groups: &Groups) -> Option<Vec<Sum>>;
    /// Sets `runs` to the runs of equal integers that have rows of `mask`; false: there are no runs, or some are NULL.
    fn masked_runs(&self, mask: &[u64], runs: &mut MaskedRuns) -> bool;
    /// Appends the sum of the integers of the rows of `mask` in each of `runs`, which another column of the chunk made of
    /// that mask; false, and nothing is appended: rows have no codes of their own, or some are NULL.
    ///
    /// # Panics
    /// They are not integers of up to 64 bits.
    fn sum_by_runs(&self, runs: &MaskedRuns, mask: &[u64], to: &mut Vec<i128>) -> bool;
}

/// Where integers are decoded to.
#[derive(Debug)]
pub enum Integers<'a> {
    /// 16 bits wide.
    I16(&'a mut Vec<i16>),
    /// 32 bits wide.
    I32(&'a mut Vec<i32>),
    /// 64 bits wide.
    I64(&'a mut Vec<i64>),
    /// 128 bits wide, of whatever width they are.
    I128(&'a mut Vec<i128>),
}

/// A transaction-consistent state of all relations.
pub trait Snapshot: Send + Sync + Debug {
    /// The contents of a relation; `None` when it did not exist yet.
    fn relation(&self, id: TableId) -> Option<Arc<dyn RelationData>>;
    /// Whether the snapshot was taken back (its memory budget is spent): queries on it must end.
    fn is_cancelled(&self) -> bool {
        false
    }
}
