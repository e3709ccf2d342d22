//! Masks of comparisons with constants, kept between queries for chunks that do not change.
//!
//! Responsible for: which masks are kept, and for how long. Not responsible for: computing them
//! ([`super::predicate`]). A full chunk of a table that only grows keeps its columns for ever, and
//! queries ask for the same few constants again and again (a warehouse, a district, a carrier): a
//! kept mask is an eighth of a byte a row to read, the column two to eight bytes.
//! **Invariant:** a mask covers every slot that lives in any snapshot that sees this version of the column, so it is
//! valid for all of these.
//! Units: bytes. Paper: Schmidt and others, *Predicate Caching*, SIGMOD 2024, keeps ranges of rows;
//! we keep bits and let the version of the chunk decide, so nothing has to be invalidated.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, TableId};
use arrow::buffer::BooleanBuffer;
use arrow::error::ArrowError;
use parking_lot::RwLock;

use super::predicate::Comparison;
use crate::relation::{ChunkData, ChunkVersion};

/// Masks kept of one column of one chunk; a new one then takes the place of the oldest.
const MASKS: usize = 16;
/// What all masks may take before the cache starts anew.
const LIMIT_BYTES: usize = 64 << 20;
/// What one mask takes: its bits and what it costs to find them.
const MASK_BYTES: usize = CHUNK_ROWS / 8 + 64;

/// What a mask answers: which values compare so with this constant.
type Question = (Comparison, i64);

#[derive(Debug, Default)]
struct ChunkMasks {
    version: Option<ChunkVersion>,
    masks: Vec<(Question, BooleanBuffer)>,
    /// The mask to be replaced next.
    oldest: usize,
}

type ColumnMasks = Arc<RwLock<Vec<ChunkMasks>>>;

/// The masks of all tables.
#[derive(Debug, Default)]
pub(crate) struct MaskCache {
    columns: RwLock<HashMap<(TableId, ColumnId), ColumnMasks>>,
    bytes: AtomicUsize,
}

impl MaskCache {
    /// The masks of one column.
    pub(crate) fn column(self: &Arc<Self>, table: TableId, column: ColumnId) -> MaskReader {
        let known = self.columns.read().get(&(table, column)).map(Arc::clone);
        let masks =
            known.unwrap_or_else(|| Arc::clone(self.columns.write().entry((table, column)).or_default()));
        MaskReader { cache: Arc::clone(self), column, masks }
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.keep(|(t, _)| *t != table);
    }

    fn keep(&self, keep: impl Fn(&(TableId, ColumnId)) -> bool) {
        self.columns.write().retain(|key, masks| {
            let keeps = keep(key);
            if !keeps {
                // A query may hold the list: it must find it empty, not keep what no longer counts.
                let chunks = std::mem::take(&mut *masks.write());
                let count: usize = chunks.iter().map(|c| c.masks.len()).sum();
                self.bytes.fetch_sub(count * MASK_BYTES, Ordering::Relaxed);
            }
            keeps
        });
    }
}

/// The masks of one column of one table.
#[derive(Clone, Debug)]
pub(crate) struct MaskReader {
    cache: Arc<MaskCache>,
    column: ColumnId,
    masks: ColumnMasks,
}

impl MaskReader {
    /// The answer for chunk `i`, kept or computed now.
    ///
    /// Kept are masks of full chunks that were met before in the same version: the first query over
    /// a chunk, and every query over one that changes all the time, leaves nothing behind; nor does one
    /// that `keeps` nothing, because it keeps the rows that pass.
    pub(crate) fn mask(
        &self,
        i: usize,
        chunk: &dyn ChunkData,
        question: Question,
        keeps: bool,
        compute: impl FnOnce() -> Result<BooleanBuffer, ArrowError>,
    ) -> Result<BooleanBuffer, ArrowError> {
        if chunk.slots() < CHUNK_ROWS {
            return compute();
        }
        let version = Some(chunk.version(self.column));
        if let Some(known) = self.masks.read().get(i).filter(|known| known.version == version)
            && let Some((_, mask)) = known.masks.iter().find(|(asked, _)| *asked == question)
        {
            return Ok(mask.clone());
        }
        let mask = compute()?;
        if keeps && self.store(i, version, question, &mask) {
            self.cache.keep(|_| false);
        }
        Ok(mask)
    }

    /// Keeps a mask if the chunk was met before. Returns whether the cache is full.
    fn store(
        &self,
        i: usize,
        version: Option<ChunkVersion>,
        question: Question,
        mask: &BooleanBuffer,
    ) -> bool {
        let mut chunks = self.masks.write();
        if chunks.len() <= i {
            chunks.resize_with(i + 1, ChunkMasks::default);
        }
        let chunk = &mut chunks[i];
        if chunk.version != version {
            self.cache.bytes.fetch_sub(chunk.masks.len() * MASK_BYTES, Ordering::Relaxed);
            *chunk = ChunkMasks { version, ..ChunkMasks::default() };
            return false;
        }
        if chunk.masks.len() < MASKS {
            chunk.masks.push((question, mask.clone()));
            return self.cache.bytes.fetch_add(MASK_BYTES, Ordering::Relaxed) + MASK_BYTES > LIMIT_BYTES;
        }
        chunk.masks[chunk.oldest] = (question, mask.clone());
        chunk.oldest = (chunk.oldest + 1) % MASKS;
        false
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::memory::MemoryRelation;
    use crate::relation::RelationData;

    fn relation(version: u64, rows: usize) -> MemoryRelation {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows as i32));
        let schema = Schema::new(vec![Field::new("a", DataType::Int32, false)]);
        MemoryRelation::new(vec![RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()], version)
    }

    /// Asks for a mask of one set bit, `bit`, and says which bit the answer has.
    fn ask(cache: &Arc<MaskCache>, relation: &MemoryRelation, value: i64, bit: usize) -> usize {
        let compute = || Ok(BooleanBuffer::collect_bool(CHUNK_ROWS, |i| i == bit));
        let reader = cache.column(TableId(1), ColumnId(0));
        let mask = reader.mask(0, &*relation.chunk(0), (Comparison::Equal, value), true, compute).unwrap();
        mask.set_indices().next().unwrap()
    }

    #[test]
    fn mask_of_an_unchanged_chunk_is_kept_from_its_second_use_until_it_changes() {
        let cache = Arc::new(MaskCache::default());
        let first = relation(1, CHUNK_ROWS);
        assert_eq!(ask(&cache, &first, 7, 10), 10);
        assert_eq!(ask(&cache, &first, 7, 11), 11, "met once: not yet kept");
        assert_eq!(ask(&cache, &first, 7, 12), 11);
        assert_eq!(ask(&cache, &first, 8, 13), 13, "another constant");
        let changed = relation(2, CHUNK_ROWS);
        assert_eq!(ask(&cache, &changed, 7, 14), 14);
        assert_eq!(cache.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn masks_of_a_chunk_that_still_grows_are_not_kept() {
        let cache = Arc::new(MaskCache::default());
        let growing = relation(1, 100);
        for bit in [1, 2, 3] {
            assert_eq!(ask(&cache, &growing, 7, bit), bit);
        }
    }

    #[test]
    fn masks_beyond_the_number_kept_replace_the_oldest_and_dropping_frees_all() {
        let cache = Arc::new(MaskCache::default());
        let chunk = relation(1, CHUNK_ROWS);
        ask(&cache, &chunk, 0, 0);
        for value in 0..=MASKS as i64 {
            ask(&cache, &chunk, value, 1);
        }
        assert_eq!(cache.bytes.load(Ordering::Relaxed), MASKS * MASK_BYTES);
        assert_eq!(ask(&cache, &chunk, 0, 2), 2, "the oldest is gone");
        assert_eq!(ask(&cache, &chunk, MASKS as i64, 3), 1, "the youngest is not");
        cache.forget(TableId(1));
        assert_eq!(cache.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(ask(&cache, &chunk, MASKS as i64, 4), 4);
    }
}
