//! The few rows of unchanged chunks that pass a filter, kept between queries that ask the same.
//!
//! Responsible for: which questions are asked again, what is kept for them and for how long. Not
//! responsible for: finding the rows ([`super::exec`]) or joining them to batches ([`super::gather`]).
//!
//! A table that grows fast is asked the same questions all the time: the orders of a district, the lines
//! of a warehouse with their sums by order. Reading them again costs a cache miss for each run of rows in
//! each column. What is kept lies together, and sums of a chunk are fewer still: the top-10 query of
//! CH-benCHmark on 20 million order lines reads a tenth of what it did. It is exact: only full chunks in
//! which nothing was deleted take part, and the versions of all columns asked for must be the same;
//! whatever is newer is read.
//! A question is kept from the second time that it is asked, so what is asked once leaves nothing behind.
//!
//! Units: bytes. Papers: Moerkotte, *Small Materialized Aggregates*, VLDB 1998, keeps aggregates of parts
//! of a table; Schmidt and others, *Predicate Caching*, SIGMOD 2024, which parts pass a filter. We keep
//! what a query would compute, and let the versions of the chunks decide.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, TableId};
use parking_lot::{Mutex, RwLock};

use super::gather::Selection;
use crate::relation::{ChunkData, ChunkVersion};

/// What all kept rows may take.
const LIMIT_BYTES: usize = 256 << 20;
/// Questions remembered, most of them asked once.
const QUESTIONS: usize = 4096;
/// At most one row in this many of a chunk is kept.
const KEPT_SHARE: usize = 32;
/// A question makes room for others once each of them was asked so often since, on average. If it did at
/// once, questions asked in turn that do not all fit would drive each other out before they serve.
const PATIENCE: u64 = 2;

/// What a scan asks of each chunk. Equal questions have equal answers on equal chunks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Question {
    pub(crate) table: TableId,
    /// The columns delivered.
    pub(crate) projection: Vec<ColumnId>,
    /// The filters, written as numbers.
    pub(crate) filters: Vec<i64>,
    /// Of the columns delivered, those that are summed as long as the others are equal.
    pub(crate) sums: Vec<usize>,
}

/// The kept rows of all tables.
#[derive(Debug)]
pub(crate) struct KeptRows {
    limit_bytes: usize,
    questions: Mutex<HashMap<Question, Arc<Kept>>>,
    clock: AtomicU64,
    bytes: AtomicUsize,
}

/// What is kept for one question.
#[derive(Debug, Default)]
struct Kept {
    /// When it was asked last, by the cache's clock.
    asked: AtomicU64,
    bytes: AtomicUsize,
    /// Nothing is to be kept any more: the cache has forgotten the question.
    forgotten: AtomicBool,
    chunks: RwLock<Vec<Option<KeptChunk>>>,
}

#[derive(Debug)]
struct KeptChunk {
    versions: Box<[ChunkVersion]>,
    rows: Arc<Selection>,
}

impl KeptChunk {
    fn bytes(&self) -> usize {
        size_of::<Option<Self>>() + size_of_val(&*self.versions) + self.rows.bytes()
    }
}

impl Default for KeptRows {
    fn default() -> Self {
        Self::new(LIMIT_BYTES)
    }
}

impl KeptRows {
    /// Nothing kept yet; never more than so many bytes.
    fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            questions: Mutex::default(),
            clock: AtomicU64::default(),
            bytes: AtomicUsize::default(),
        }
    }

    /// Notes that a question is asked. `None` the first time: it is not worth keeping yet.
    ///
    /// `columns`: all that the answer depends on.
    pub(crate) fn ask(self: &Arc<Self>, question: Question, columns: Vec<ColumnId>) -> Option<KeptReader> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut questions = self.questions.lock();
        let known = questions.get(&question).map(Arc::clone);
        match &known {
            Some(kept) => kept.asked.store(now, Ordering::Relaxed),
            None => {
                let kept = Kept { asked: now.into(), ..Kept::default() };
                questions.insert(question, Arc::new(kept));
            }
        }
        if self.is_crowded(&questions) {
            self.forget_oldest(&mut questions);
        }
        known.map(|kept| KeptReader { cache: Arc::clone(self), columns, kept })
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.questions.lock().retain(|question, kept| {
            let keeps = question.table != table;
            if !keeps {
                self.give_up(kept);
            }
            keeps
        });
    }

    /// Bytes of all that is kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Forgets the question that was asked before all others.
    fn forget_oldest(&self, questions: &mut HashMap<Question, Arc<Kept>>) {
        let oldest = questions.iter().min_by_key(|(_, kept)| kept.asked.load(Ordering::Relaxed));
        if let Some(question) = oldest.map(|(question, _)| question.clone())
            && let Some(kept) = questions.remove(&question)
        {
            self.give_up(&kept);
        }
    }

    /// Whether a question is to go: there are too many, or little room is left and nobody has asked the
    /// oldest for long.
    fn is_crowded(&self, questions: &HashMap<Question, Arc<Kept>>) -> bool {
        if questions.len() > QUESTIONS {
            return true;
        }
        if self.bytes() + self.limit_bytes / 8 <= self.limit_bytes {
            return false;
        }
        let asked = questions.values().map(|kept| kept.asked.load(Ordering::Relaxed));
        let age = self.clock.load(Ordering::Relaxed) - asked.min().unwrap_or(0);
        age > PATIENCE * questions.len() as u64
    }

    fn give_up(&self, kept: &Kept) {
        let mut chunks = kept.chunks.write();
        kept.forgotten.store(true, Ordering::Relaxed);
        *chunks = Vec::new();
        self.bytes.fetch_sub(kept.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// What is kept for one question, for one scan.
#[derive(Debug)]
pub(crate) struct KeptReader {
    cache: Arc<KeptRows>,
    columns: Vec<ColumnId>,
    kept: Arc<Kept>,
}

impl KeptReader {
    /// The rows of chunk `i` if they are kept and still right.
    pub(super) fn find(&self, i: usize, chunk: &dyn ChunkData) -> Option<Arc<Selection>> {
        let chunks = self.kept.chunks.read();
        let known = chunks.get(i)?.as_ref()?;
        let mut versions = self.columns.iter().zip(&known.versions);
        versions.all(|(column, version)| chunk.version(*column) == *version).then(|| Arc::clone(&known.rows))
    }

    /// Whether so many rows of a chunk are few enough.
    pub(super) fn keeps(rows: usize) -> bool {
        rows * KEPT_SHARE <= CHUNK_ROWS
    }

    /// Keeps the rows of chunk `i`, which is full and without dead rows, if they are few.
    pub(super) fn store(&self, i: usize, chunk: &dyn ChunkData, rows: Selection) {
        if !Self::keeps(rows.rows()) {
            return;
        }
        let versions = self.columns.iter().map(|column| chunk.version(*column)).collect();
        let new = KeptChunk { versions, rows: Arc::new(rows) };
        let more = new.bytes();
        if self.cache.bytes() + more > self.cache.limit_bytes {
            return;
        }
        let mut chunks = self.kept.chunks.write();
        if self.kept.forgotten.load(Ordering::Relaxed) {
            return;
        }
        if chunks.len() <= i {
            chunks.resize_with(i + 1, || None);
        }
        let less = chunks[i].replace(new).map_or(0, |old| old.bytes());
        // Counted while locked, so that whoever gives the question up takes all of it back.
        for count in [&self.kept.bytes, &self.cache.bytes] {
            count.fetch_add(more, Ordering::Relaxed);
            count.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, RecordBatch};
    use arrow::buffer::BooleanBuffer;
    use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

    use super::*;
    use crate::memory::MemoryRelation;
    use crate::relation::RelationData;
    use crate::scan::gather::Gatherer;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]))
    }

    fn relation(version: u64) -> MemoryRelation {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..CHUNK_ROWS as i32));
        MemoryRelation::new(vec![RecordBatch::try_new(schema(), vec![column]).unwrap()], version)
    }

    fn question(filter: i64) -> Question {
        Question { table: TableId(1), projection: vec![ColumnId(0)], filters: vec![filter], sums: Vec::new() }
    }

    fn ask(cache: &Arc<KeptRows>, filter: i64) -> Option<KeptReader> {
        cache.ask(question(filter), vec![ColumnId(0)])
    }

    /// So many rows of a chunk.
    fn some_rows(relation: &MemoryRelation, count: usize) -> Selection {
        let mask = BooleanBuffer::collect_bool(CHUNK_ROWS, |row| row < count);
        let mut gatherer = Gatherer::new(&[ColumnId(0)], &schema(), CHUNK_ROWS).unwrap();
        let rows = gatherer.push(&*relation.chunk(0), &mask, count, &[]).unwrap();
        gatherer.tail(rows)
    }

    /// Asks twice and stores so many rows; whether they are found afterwards.
    fn keeps(cache: &Arc<KeptRows>, relation: &MemoryRelation, filter: i64, count: usize) -> bool {
        let _ = ask(cache, filter);
        let reader = ask(cache, filter).expect("asked before");
        reader.store(0, &*relation.chunk(0), some_rows(relation, count));
        reader.find(0, &*relation.chunk(0)).is_some()
    }

    #[test]
    fn rows_are_found_in_their_chunk_as_long_as_its_version_is_the_same() {
        let cache = Arc::new(KeptRows::default());
        let (first, second) = (relation(1), relation(2));
        assert!(ask(&cache, 7).is_none(), "asked for the first time");
        let reader = ask(&cache, 7).unwrap();
        reader.store(0, &*first.chunk(0), some_rows(&first, 3));
        assert_eq!(reader.find(0, &*first.chunk(0)).unwrap().rows(), 3);
        assert!(reader.find(0, &*second.chunk(0)).is_none());
        assert!(reader.find(1, &*first.chunk(0)).is_none());
        let before = cache.bytes();
        reader.store(0, &*second.chunk(0), some_rows(&second, 3));
        assert!(reader.find(0, &*first.chunk(0)).is_none());
        assert_eq!(cache.bytes(), before, "it took the other's place");
    }

    #[test]
    fn many_rows_of_a_chunk_are_not_kept() {
        let cache = Arc::new(KeptRows::default());
        assert!(keeps(&cache, &relation(1), 1, CHUNK_ROWS / KEPT_SHARE));
        assert!(!keeps(&cache, &relation(1), 2, CHUNK_ROWS / KEPT_SHARE + 1));
    }

    #[test]
    fn full_cache_keeps_what_is_asked_for_and_gives_up_what_is_not() {
        let data = relation(1);
        let one = {
            let cache = Arc::new(KeptRows::default());
            assert!(keeps(&cache, &data, 0, 100));
            cache.bytes()
        };
        let cache = Arc::new(KeptRows::new(2 * one));
        assert!(keeps(&cache, &data, 1, 100) && keeps(&cache, &data, 2, 100));
        // Asked in turn, the first two keep their places.
        for _ in 0..10 {
            assert!(!keeps(&cache, &data, 3, 100));
            for filter in [1, 2] {
                assert!(ask(&cache, filter).unwrap().find(0, &*data.chunk(0)).is_some());
            }
        }
        assert_eq!(cache.bytes(), 2 * one);
        // Nobody asks the first one any more.
        let held = ask(&cache, 1).unwrap();
        let kept = (0..10).any(|_| ask(&cache, 2).is_some() && keeps(&cache, &data, 3, 100));
        assert!(kept && cache.bytes() <= 2 * one);
        assert!(held.find(0, &*data.chunk(0)).is_none());
        held.store(0, &*data.chunk(0), some_rows(&data, 1));
        assert!(held.find(0, &*data.chunk(0)).is_none(), "a forgotten question takes no more room");
        cache.forget(TableId(1));
        assert_eq!(cache.bytes(), 0);
    }
}
