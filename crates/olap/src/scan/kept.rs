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
#[derive(Debug, Default)]
pub(crate) struct KeptRows {
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

impl KeptRows {
    /// Notes that a question is asked. `None` the first time: it is not worth keeping yet.
    ///
    /// `columns`: all that the answer depends on.
    pub(crate) fn ask(self: &Arc<Self>, question: Question, columns: Vec<ColumnId>) -> Option<KeptReader> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut questions = self.questions.lock();
        if let Some(kept) = questions.get(&question) {
            kept.asked.store(now, Ordering::Relaxed);
            return Some(KeptReader { cache: Arc::clone(self), columns, kept: Arc::clone(kept) });
        }
        let kept = Kept { asked: now.into(), ..Kept::default() };
        questions.insert(question, Arc::new(kept));
        if questions.len() > QUESTIONS {
            self.forget_oldest(&mut questions);
        }
        None
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

    /// Whether there is room for so much, made by forgetting a question that is asked no more.
    fn has_room(&self, bytes: usize) -> bool {
        if self.bytes() + bytes <= LIMIT_BYTES {
            return true;
        }
        let mut questions = self.questions.lock();
        let asked = questions.values().map(|kept| kept.asked.load(Ordering::Relaxed));
        let age = self.clock.load(Ordering::Relaxed) - asked.min().unwrap_or(0);
        if age > PATIENCE * questions.len() as u64 {
            self.forget_oldest(&mut questions);
        }
        self.bytes() + bytes <= LIMIT_BYTES
    }

    fn give_up(&self, kept: &Kept) {
        let mut chunks = kept.chunks.write();
        kept.forgotten.store(true, Ordering::Relaxed);
        *chunks = Vec::new();
        self.bytes.fetch_sub(kept.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// What is kept for one question, for one scan.
#[derive(Clone, Debug)]
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

    /// Keeps the rows of chunk `i`, which is full and without dead rows, if they are few.
    pub(super) fn store(&self, i: usize, chunk: &dyn ChunkData, rows: &Selection) {
        if rows.rows() * KEPT_SHARE > CHUNK_ROWS {
            return;
        }
        let versions = self.columns.iter().map(|column| chunk.version(*column)).collect();
        let new = KeptChunk { versions, rows: Arc::new(rows.clone()) };
        let more = new.bytes();
        if !self.cache.has_room(more) {
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
