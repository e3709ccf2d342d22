//! Filling an empty table that nobody reads yet with batches of rows, and building its indexes after.
//!
//! Responsible for: the order of the two, and that a damaged or foreign file breaks nothing: `batch` finds
//! wrong types, NULLs, lengths, digits and partitions, building the indexes finds keys that are there twice.
//! Not responsible for: where batches come from (`archive`); CHECK constraints, which the rows met when they
//! were written.
//!
//! There is no undo: what fails is loaded again, from the beginning, into another table.
//!
//! - I-1 Until [`Loader::finish`] no one but the loader sees the table, so it may have rows that stand in no
//!   index.
//! - I-2 Rows that are loaded lie in the order in which they came: those of frozen chunks in the slots that they had,
//!   dead ones among them, the others in slots next to each other.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §4.7 (an archive is loaded in its entirety, then the log is
//! applied).

use albireo_base::{IndexId, StatementProgress, TableId};
use albireo_encoding::Section;
use arrow_array::RecordBatch;

use super::adopt::{self, ChunkParts};
use super::indexes::TableIndex;
use super::{ColdChunk, EvictedChunk, Table, TableError, batch};
use crate::rows::{Replaced, Rows};

/// A table being loaded. Dropped, or after an error, the table is gone.
pub struct Loader {
    table: Table,
    indexes: Vec<State>,
    /// Slots of frozen chunks whose rows were dead.
    holes: u64,
    /// The first failure of [`Loader::append`]: the table lacks rows.
    failed: Option<TableError>,
}

/// An index of a table that is being loaded.
#[derive(Clone)]
enum State {
    Empty,
    Built,
    Failed(TableError),
}

/// Building one index of a loaded table. Several run at once on several threads.
pub struct IndexBuild<'t> {
    table: TableId,
    id: IndexId,
    rows: &'t Rows,
    index: &'t mut TableIndex,
    state: &'t mut State,
}

impl Loader {
    /// Begins to load `table`, which must be empty.
    ///
    /// # Panics
    /// The table has, or had, rows.
    pub fn new(table: Table) -> Self {
        assert!(table.rows.slots == 0, "only a table that never had a row is loaded");
        let indexes = vec![State::Empty; table.indexes.len()];
        Self { table, indexes, holes: 0, failed: None }
    }

    /// The table's shape.
    pub fn spec(&self) -> &super::TableSpec {
        &self.table.spec
    }

    /// Rows so far.
    pub fn row_count(&self) -> u64 {
        self.table.row_count()
    }

    /// Adds the rows of a batch: the table's columns in order, with the types of [`albireo_base::arrow_type`], or
    /// texts as `Utf8` and byte strings as `Binary`; names do not matter.
    ///
    /// # Errors
    /// The batch does not fit the table, or there is no memory; [`Loader::finish`] then says so again.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        assert!(self.indexes.iter().all(|state| matches!(state, State::Empty)), "rows come before indexes");
        let Table { spec, rows, placement, .. } = &mut self.table;
        let done = batch::lay(spec, *placement, rows, batch);
        self.failed = done.as_ref().err().cloned();
        done
    }

    /// Adds a frozen chunk, which stays as it is. Frozen chunks come before batches: no slot is left over between them.
    ///
    /// # Errors
    /// The chunk does not fit the table, or there is no memory; [`Loader::finish`] then says so again.
    ///
    /// # Panics
    /// Rows came in a batch before, and did not fill their chunks; or `live` has not a bit for each slot of a chunk.
    pub fn adopt<S: Section>(&mut self, chunk: ChunkParts<S>) -> Result<(), TableError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        assert!(self.indexes.iter().all(|state| matches!(state, State::Empty)), "rows come before indexes");
        self.holes += chunk.live.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>();
        let Table { spec, rows, placement, .. } = &mut self.table;
        let done = adopt::adopt(spec, *placement, rows, chunk);
        self.failed = done.as_ref().err().cloned();
        done
    }

    /// As [`Table::cold_chunks`].
    pub fn cold_chunks(&self, from: u32, most: u32) -> (Vec<ColdChunk>, Option<u32>) {
        self.table.cold_chunks(from, most)
    }

    /// As [`Table::evict`].
    pub fn evict(&mut self, chunks: Vec<EvictedChunk>) -> (Replaced, u64) {
        self.table.evict(chunks)
    }

    /// The indexes that are still to be built: nothing can be appended afterwards. Each is built by
    /// [`IndexBuild::run`], on any thread.
    pub fn index_builds(&mut self) -> Vec<IndexBuild<'_>> {
        let Table { spec, rows, indexes, .. } = &mut self.table;
        let (table, rows) = (spec.id, &*rows);
        let all = indexes.iter_mut().zip(&mut self.indexes).enumerate();
        all.filter(|(_, (_, state))| matches!(state, State::Empty))
            .map(|(id, (index, state))| IndexBuild { table, id: IndexId(id as u16), rows, index, state })
            .collect()
    }

    /// Builds what indexes are not built yet, and gives the table.
    ///
    /// # Errors
    /// What failed before, a key that is there twice, no memory.
    pub fn finish(mut self) -> Result<Table, TableError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        for build in self.index_builds() {
            build.run()?;
        }
        match self
            .indexes
            .into_iter()
            .find_map(|state| if let State::Failed(error) = state { Some(error) } else { None })
        {
            Some(error) => Err(error),
            None => {
                let Table { rows, indexes, .. } = &self.table;
                assert_eq!(rows.slots, rows.live_rows + self.holes, "only holes are between rows (I-2)");
                let is_whole = |index: &TableIndex| index.len() == rows.live_rows;
                assert!(indexes.iter().all(is_whole), "each row stands in each index once");
                Ok(self.table)
            }
        }
    }
}

impl IndexBuild<'_> {
    /// The index's position.
    pub fn index(&self) -> IndexId {
        self.id
    }

    /// Puts all rows in.
    ///
    /// # Errors
    /// A key is there twice, or there is no memory; [`Loader::finish`] then says so again.
    pub fn run(self) -> Result<(), TableError> {
        debug_assert!(matches!(self.state, State::Empty), "an index is built once");
        let done = self.index.build(self.rows, &StatementProgress::default());
        let done = done.map_err(|failure| failure.in_index(self.table, self.id));
        *self.state = match &done {
            Ok(()) => State::Built,
            Err(error) => State::Failed(error.clone()),
        };
        done
    }
}
