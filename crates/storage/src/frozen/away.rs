//! Columns of a frozen chunk that are not in memory: what is known of them, and how they come back.
//!
//! ```text
//!            evicted: another chunk takes its place, which says where the columns lie
//!  HERE ───────────────────────────────────────────────────────────────────────────────► AWAY
//!   ▲                                                                                      │
//!   └──────────────── fetched: read by any thread, checked, and put in their place ────────┘
//! ```
//!
//! - W-1 What is away comes back bit for bit, or not at all: whoever gives the bytes has checked them.
//! - W-2 A column that is here stays as long as its chunk: only another chunk has it not. So texts can be lent, and
//!   snapshots that hold the chunk from before read on.
//! - W-3 A transaction never waits for it: in [`super::prepass::without_waiting`], reading what is away ends the
//!   transaction by an unwind with [`Evicted`], to be run again when that was [fetched](Evicted::fetch); it may run on
//!   before, to find out what else it needs ([`super::prepass`]). Everybody else waits, unless
//!   they ask for what is here alone ([`super::prepass::unless_away`]), as who owns a partition should.
//! - W-4 What a change reads is here before the change begins ([`crate::Table`]'s `require`), so W-3 leaves none half done,
//!   and no change is made of a row whose values are made up.
//! - W-5 The first chunk of [`Evicted`] is needed for sure, the others are not: only the first one's errors are told, and
//!   only for it memory is taken beyond the limit.
//! - W-6 Texts that a column shared when it left are let go of, and shared again when it is back. A reader who reads it for
//!   itself alone has its own.
//!
//! Paper: DeBrabant and others, *Anti-Caching*, VLDB 2013, §3.2: there a transaction that meets evicted tuples is rolled
//! back, and waits for them beside the others.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use albireo_base::{ColumnId, SqlError, SqlState};
use albireo_encoding::{Column, Form, Summary};

use super::ahead::ReadAhead;
use super::{FrozenChunk, prepass};
use crate::layout::Layout;
use crate::pool::{BlockPool, NewPart, OutOfMemory, Part};
use crate::registry::ColumnSet;
use crate::texts::{ColumnTexts, Sharing};

/// Bytes that may be taken beyond the limit for data, however small that is.
const LEAST_BEYOND: u64 = 64 << 20;

/// Why a column cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The file is missing, or cannot be read.
    #[error("could not read evicted rows from \"{file}\": {what}")]
    Unreadable {
        /// Its path.
        file: String,
        /// The system's words.
        what: String,
    },
    /// The bytes are not those that were written.
    #[error("evicted rows in \"{file}\" are damaged: {what}")]
    Damaged {
        /// Its path.
        file: String,
        /// What is wrong, and where.
        what: String,
    },
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

impl From<FetchError> for SqlError {
    fn from(error: FetchError) -> Self {
        let state = match error {
            FetchError::Unreadable { .. } => SqlState::IO_ERROR,
            FetchError::Damaged { .. } => SqlState::DATA_CORRUPTED,
            FetchError::Memory(_) => SqlState::OUT_OF_MEMORY,
        };
        Self::new(state, error.to_string())
    }
}

/// Where the columns of one chunk lie. It is not read by whoever runs a transaction.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// Reads the sections of a column, as they were put there, into as many and as long ones.
    ///
    /// # Errors
    /// The file cannot be read, or its bytes are not those: then it does not matter what is in the sections.
    fn read(&self, column: ColumnId, sections: &mut [&mut [u8]]) -> Result<(), FetchError>;

    /// Gets ready for columns, in their order, to be read soon.
    fn will_read(&self, columns: &mut dyn Iterator<Item = ColumnId>);

    /// Tells a reader who goes through many chunks where columns lie that it will read.
    fn plan(&self, columns: &mut dyn Iterator<Item = ColumnId>, ahead: &mut ReadAhead) {
        let _ = (columns, ahead);
    }

    /// As [`Shelf::read`], for a reader who may have it already.
    ///
    /// # Errors
    /// As of [`Shelf::read`].
    fn read_from(
        &self,
        ahead: &mut ReadAhead,
        column: ColumnId,
        sections: &mut [&mut [u8]],
    ) -> Result<(), FetchError> {
        let _ = ahead;
        self.read(column, sections)
    }

    /// Reads all that is there, as somebody would who opens the files anew, and checks it; how many bytes.
    ///
    /// # Errors
    /// The first file that cannot be read, or whose bytes are not those.
    fn verify(&self) -> Result<u64, FetchError> {
        Ok(0)
    }
}

/// What stays of a chunk whose columns are elsewhere.
pub(crate) struct Away {
    shelf: Arc<dyn Shelf>,
    /// Of each column, with the length of each section in its place.
    heads: Box<[Column<u64>]>,
    /// Of each column that shared its texts when it left, with whom it does again when it is back.
    texts: Box<[Option<Arc<ColumnTexts>>]>,
    /// For what is fetched to stay.
    pool: BlockPool,
    /// For what one reader reads.
    buffer: BlockPool,
}

/// Columns of a chunk: here, or to be fetched.
pub(crate) struct Residence {
    here: Box<[OnceLock<Column<Part>>]>,
    away: Option<Arc<Away>>,
    /// The chunk that this is of; nothing of one that was always here.
    of: Weak<FrozenChunk>,
    /// Bytes that were fetched.
    fetched_bytes: AtomicU64,
    /// When somebody has read a row last ([`BlockPool::time`]).
    read_at: AtomicU32,
    /// Transactions that wait for it, or run because it is here.
    wanted: AtomicU32,
}

/// A transaction has met rows that are away: what an unwind out of [`super::prepass::without_waiting`] carries. While this
/// is there, their chunks are not evicted again.
#[derive(Clone, PartialEq)]
pub struct Evicted {
    /// The transaction needs this one.
    first: Wanted,
    /// A pre-pass has come to these.
    others: Vec<Wanted>,
}

/// A chunk that somebody waits for, or runs because it is here.
pub(crate) struct Wanted(Arc<FrozenChunk>);

impl Evicted {
    /// `None` if there are no chunks.
    pub(super) fn new(chunks: impl IntoIterator<Item = Wanted>) -> Option<Self> {
        let mut chunks = chunks.into_iter();
        let first = chunks.next()?;
        Some(Self { first, others: chunks.collect() })
    }

    /// For somebody who runs no transaction and wants a chunk to be here; `None` if it is.
    pub(crate) fn of(chunk: &Arc<FrozenChunk>) -> Option<Self> {
        chunk.is_away().then(|| Self { first: Wanted::new(Arc::clone(chunk)), others: Vec::new() })
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        1 + self.others.len()
    }

    /// What no other frozen chunk than the first has ([`crate::ChunkView::frozen_id`]).
    pub fn first_id(&self) -> u64 {
        self.first.0.id
    }

    /// Bytes that the first chunk lacks.
    pub fn first_bytes(&self) -> u64 {
        self.first.0.absent_bytes()
    }

    /// Has the first chunk in memory, when this returns, and of the others those that can be read and for which there is
    /// memory; how many there are. Whoever calls owns no partition.
    ///
    /// # Errors
    /// The first cannot be read, or there is no memory for it. Whether the others are needed is not known for sure.
    pub fn fetch(&self) -> Result<usize, FetchError> {
        let all = || std::iter::once(&self.first).chain(&self.others).map(|wanted| &wanted.0);
        for chunk in all() {
            if let Some(away) = &chunk.residence.away {
                chunk.note_read(away.pool.time());
            }
            chunk.will_read(ColumnSet::ALL);
        }
        self.first.0.read_in(ColumnSet::ALL, Limit::Kept)?;
        let mut fetched = 1;
        for chunk in all().skip(1) {
            match chunk.read_in(ColumnSet::ALL, Limit::Kept) {
                Ok(()) => fetched += 1,
                Err(FetchError::Memory(_)) => break,
                Err(_) => {}
            }
        }
        Ok(fetched)
    }

    /// Has the first chunk in memory, beyond the limit for data if need be: rows must be deleted when nothing else makes
    /// room. No more than half of the limit is taken beyond it, or [`LEAST_BEYOND`] bytes.
    ///
    /// # Errors
    /// It cannot be read, or there is no memory.
    pub fn fetch_beyond(&self) -> Result<(), FetchError> {
        if let Some(away) = &self.first.0.residence.away {
            let limit_bytes = away.pool.limit_bytes();
            if away.buffer.in_use_bytes() > (limit_bytes / 2).max(LEAST_BEYOND) {
                return Err(OutOfMemory::Limit { limit_bytes }.into());
            }
        }
        self.first.0.fetch(ColumnSet::ALL, Limit::Passed)
    }
}

impl Wanted {
    pub(crate) fn new(chunk: Arc<FrozenChunk>) -> Self {
        chunk.residence.wanted.fetch_add(1, Ordering::Relaxed);
        Self(chunk)
    }

    pub(crate) fn chunk(&self) -> &FrozenChunk {
        &self.0
    }

    /// Whether it is this one.
    #[inline]
    pub(super) fn is(&self, chunk: &FrozenChunk) -> bool {
        self.0.id == chunk.id
    }
}

impl Clone for Wanted {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.residence.wanted.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl fmt::Debug for Evicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = std::iter::once(&self.first).chain(&self.others).map(|wanted| wanted.0.id);
        f.debug_tuple("Evicted").field(&ids.collect::<Vec<_>>()).finish()
    }
}

/// What is done when there is no memory within the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Kept,
    Passed,
}

impl Residence {
    /// Of columns that are all here.
    pub(super) fn here(columns: Vec<Column<Part>>) -> Self {
        Self::new(columns.into_iter().map(OnceLock::from).collect(), None, Weak::new())
    }

    fn new(here: Box<[OnceLock<Column<Part>>]>, away: Option<Arc<Away>>, of: Weak<FrozenChunk>) -> Self {
        Self {
            here,
            away,
            of,
            fetched_bytes: AtomicU64::new(0),
            read_at: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
        }
    }

    /// The column, if it is here.
    #[inline]
    pub(super) fn get(&self, column: ColumnId) -> Option<&Column<Part>> {
        self.here[column.index()].get()
    }
}

impl Away {
    /// Reads a column, without putting it anywhere.
    fn read(&self, column: ColumnId, pool: &BlockPool) -> Result<Column<Part>, FetchError> {
        self.read_by(column, pool, |sections| self.shelf.read(column, sections))
    }

    fn read_by(
        &self,
        column: ColumnId,
        pool: &BlockPool,
        read: impl FnOnce(&mut [&mut [u8]]) -> Result<(), FetchError>,
    ) -> Result<Column<Part>, FetchError> {
        let head = &self.heads[column.index()];
        let parts = head.sections().map(|(_, length)| NewPart::of_length(pool, *length as usize));
        let mut parts = parts.collect::<Result<Vec<_>, OutOfMemory>>()?;
        let mut sections: Vec<_> = parts.iter_mut().map(NewPart::bytes_mut).collect();
        read(&mut sections)?;
        let mut parts = parts.into_iter().map(NewPart::finish);
        head.clone().map_sections(|_, _| Ok(parts.next().expect("one for each section of the head")))
    }
}

impl FrozenChunk {
    /// A column. If it is away, others than transactions wait; a transaction ends here, to be run again, or gets another
    /// column and is ended later ([`super::prepass`]).
    ///
    /// # Panics
    /// It cannot be read: with the [`FetchError`].
    #[inline]
    pub(crate) fn column(&self, column: ColumnId) -> &Column<Part> {
        match self.residence.get(column) {
            Some(column) => column,
            None => self.absent(column),
        }
    }

    #[cold]
    #[inline(never)]
    fn absent(&self, column: ColumnId) -> &Column<Part> {
        if prepass::may_wait() {
            return match self.fetch(ColumnSet::only(column), Limit::Passed) {
                Ok(()) => self.residence.get(column).expect("it was fetched"),
                Err(error) => std::panic::resume_unwind(Box::new(error)),
            };
        }
        prepass::meet(self);
        let away = self.residence.away.as_ref().expect("a column is here or away");
        prepass::stand_in(away.heads[column.index()].kind())
    }

    /// The chunk, for somebody who wants it to be here.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted::new(self.residence.of.upgrade().expect("whoever reads a chunk holds it"))
    }

    /// Has columns here, beyond the limit for data if need be. The caller waits.
    ///
    /// # Errors
    /// They cannot be read, or the system has no memory.
    pub(crate) fn bring(&self, columns: ColumnSet) -> Result<(), FetchError> {
        self.fetch(columns, Limit::Passed)
    }

    /// Has columns here, if there is room within the limit for data; else only reads them. The caller waits.
    ///
    /// # Errors
    /// They cannot be read, or the system has no memory.
    pub(crate) fn bring_if_room(&self, columns: ColumnSet) -> Result<(), FetchError> {
        match (self.fetch(columns, Limit::Kept), &self.residence.away) {
            (Err(FetchError::Memory(_)), Some(away)) => {
                self.absent_of(columns).try_for_each(|column| away.read(column, &away.buffer).map(drop))
            }
            (read, _) => read,
        }
    }

    fn fetch(&self, columns: ColumnSet, limit: Limit) -> Result<(), FetchError> {
        self.will_read(columns);
        self.read_in(columns, limit)
    }

    /// Asks for those of some columns that are not here, to be read soon.
    fn will_read(&self, columns: ColumnSet) {
        if let Some(away) = &self.residence.away {
            away.shelf.will_read(&mut self.absent_of(columns));
        }
    }

    fn read_in(&self, columns: ColumnSet, limit: Limit) -> Result<(), FetchError> {
        let Some(away) = &self.residence.away else { return Ok(()) };
        for (number, place) in self.residence.here.iter().enumerate() {
            let column = ColumnId(number as u16);
            if !columns.has(column) || place.get().is_some() {
                continue;
            }
            let read = match (away.read(column, &away.pool), limit) {
                (Err(FetchError::Memory(_)), Limit::Passed) => away.read(column, &away.buffer)?,
                (read, _) => read?,
            };
            let read = match &away.texts[number] {
                Some(texts) => texts.share(read, Sharing::Always, 0, &away.pool),
                None => read,
            };
            let bytes = part_bytes(&read);
            // Who was first counts.
            if place.set(read).is_ok() {
                self.residence.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whether all columns are here, so that a row may be changed (W-4). If not, others than transactions wait, and a
    /// transaction ends here, unless it is in a pre-pass: then the row must not be changed.
    #[inline]
    pub(crate) fn has_all(&self) -> bool {
        if self.residence.away.is_some() {
            self.columns().for_each(|column| {
                self.column(column);
            });
        }
        self.residence.away.is_none() || !self.is_away()
    }

    /// Whether all of some columns are here.
    pub(crate) fn is_here(&self, columns: ColumnSet) -> bool {
        self.residence.away.is_none()
            || self.columns().filter(|column| columns.has(*column)).all(|c| self.residence.get(c).is_some())
    }

    /// Those of some columns that are not here.
    fn absent_of(&self, columns: ColumnSet) -> impl Iterator<Item = ColumnId> {
        self.columns().filter(move |column| columns.has(*column) && self.residence.get(*column).is_none())
    }

    /// Bytes of the columns that are not here.
    fn absent_bytes(&self) -> u64 {
        let Some(away) = &self.residence.away else { return 0 };
        let of_column = |column: ColumnId| -> u64 {
            away.heads[column.index()].sections().map(|(_, length)| *length).sum()
        };
        self.absent_of(ColumnSet::ALL).map(of_column).sum()
    }

    /// A reader will read what is away of some columns.
    pub(crate) fn plan(&self, columns: ColumnSet, ahead: &mut ReadAhead) {
        if let Some(away) = &self.residence.away {
            ahead.set_pool(&away.buffer);
            away.shelf.plan(&mut self.absent_of(columns), ahead);
        }
    }

    /// The same chunk with some columns, read from where they lie and held by nobody else; itself if they are here.
    ///
    /// # Errors
    /// They cannot be read, or there is no memory.
    pub(crate) fn with(
        self: &Arc<Self>,
        columns: ColumnSet,
        ahead: &mut ReadAhead,
    ) -> Result<Arc<Self>, FetchError> {
        let Some(away) = self.residence.away.as_ref().filter(|_| !self.is_here(columns)) else {
            return Ok(Arc::clone(self));
        };
        let here = self.columns().map(|column| match columns.has(column) {
            true => away
                .read_by(column, &away.buffer, |sections| away.shelf.read_from(ahead, column, sections))
                .map(OnceLock::from),
            false => Ok(OnceLock::new()),
        });
        let here = here.collect::<Result<Box<[_]>, _>>()?;
        Ok(self.placed(here, Arc::clone(away)))
    }

    /// The same chunk, from which all columns have gone to a shelf but those that are `kept`.
    ///
    /// # Errors
    /// There is no memory: what is kept is copied.
    pub(crate) fn evicted(
        self: &Arc<Self>,
        kept: ColumnSet,
        shelf: Arc<dyn Shelf>,
        (pool, buffer): (&BlockPool, &BlockPool),
        layout: &Layout,
    ) -> Result<Arc<Self>, OutOfMemory> {
        let head = |column: ColumnId| {
            let mut header = Vec::new();
            self.column(column).header(&mut header);
            Column::of_header(&header).expect("it was written just now")
        };
        let heads = self.columns().map(head).collect();
        let texts = |column| layout.texts_of(column).filter(|_| self.shares(column)).map(Arc::clone);
        let texts = self.columns().map(texts).collect();
        let away = Away { shelf, heads, texts, pool: pool.clone(), buffer: buffer.clone() };
        self.without(kept, Arc::new(away))
    }

    /// The same chunk without what was fetched since it was evicted; `None` if it was not.
    pub(crate) fn evicted_again(self: &Arc<Self>, kept: ColumnSet) -> Option<Result<Arc<Self>, OutOfMemory>> {
        self.residence.away.as_ref().map(|away| self.without(kept, Arc::clone(away)))
    }

    fn without(self: &Arc<Self>, kept: ColumnSet, away: Arc<Away>) -> Result<Arc<Self>, OutOfMemory> {
        let here = self.columns().map(|column| {
            let is_small = away.heads[column.index()].sections().next().is_none();
            match is_small || kept.has(column) {
                true => self.copy(column, &away).map(OnceLock::from),
                false => Ok(OnceLock::new()),
            }
        });
        let here = here.collect::<Result<Box<[_]>, _>>()?;
        Ok(self.placed(here, away))
    }

    fn copy(&self, column: ColumnId, away: &Away) -> Result<Column<Part>, OutOfMemory> {
        self.column(column).as_borrowed().map_sections(|_, bytes| Part::new(&away.pool, bytes))
    }

    fn placed(&self, here: Box<[OnceLock<Column<Part>>]>, away: Arc<Away>) -> Arc<Self> {
        let parts: u64 = here.iter().filter_map(OnceLock::get).map(part_bytes).sum();
        let heads = (size_of_val(&*away.heads) + size_of_val(&*away.texts)) as u64;
        Arc::new_cyclic(|of| Self {
            id: self.id,
            residence: Residence::new(here, Some(away), Weak::clone(of)),
            made_from: self.made_from.clone(),
            memory_bytes: parts + heads + self.header_bytes(),
            heap_bytes: self.heap_bytes,
            rows: self.rows,
        })
    }

    /// What was known of a column's live rows when they were encoded.
    pub(crate) fn summary(&self, column: ColumnId) -> &Summary {
        match &self.residence.away {
            Some(away) => away.heads[column.index()].summary(),
            None => self.column(column).summary(),
        }
    }

    /// How a column is encoded.
    pub(crate) fn form(&self, column: ColumnId) -> Form {
        match &self.residence.away {
            Some(away) => away.heads[column.index()].form(),
            None => self.column(column).form(),
        }
    }

    /// Where columns lie, if they do elsewhere.
    pub(crate) fn shelf(&self) -> Option<&dyn Shelf> {
        self.residence.away.as_deref().map(|away| &*away.shelf)
    }

    /// Whether columns lie elsewhere, and have not been fetched.
    pub(crate) fn is_away(&self) -> bool {
        !self.is_here(ColumnSet::ALL)
    }

    /// Bytes that memory would hold less of if all columns left but those that are `kept`: what is known of them stays.
    pub(crate) fn evictable_bytes(&self, kept: ColumnSet) -> u64 {
        let others = self.columns().filter(|column| !kept.has(*column));
        let bytes = |column: &Column<Part>| part_bytes(column) + shared_bytes_of(column).0;
        let bytes: u64 = others.filter_map(|column| self.residence.get(column)).map(bytes).sum();
        let head = size_of::<Column<u64>>() + size_of::<Option<Arc<ColumnTexts>>>();
        let heads = self.columns().count() * head;
        bytes.saturating_sub(if self.residence.away.is_some() { 0 } else { heads as u64 })
    }

    /// Whether a column is here and shares its texts with other chunks.
    pub(crate) fn shares(&self, column: ColumnId) -> bool {
        self.residence.get(column).is_some_and(|column| column.lender().is_some())
    }

    /// What texts that it shares with other chunks take: its references and its part of the texts, in bytes; and what they
    /// would take if it had them for itself.
    pub(crate) fn shared_bytes(&self) -> (u64, u64) {
        let here = self.residence.here.iter().filter_map(OnceLock::get).map(shared_bytes_of);
        here.fold((0, 0), |(shared, own), column| (shared + column.0, own + column.1))
    }

    /// Bytes that were fetched since it was evicted, shared texts apart.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.residence.fetched_bytes.load(Ordering::Relaxed)
    }

    /// A row of it is read at this time.
    #[inline]
    pub(crate) fn note_read(&self, time: u32) {
        if self.residence.read_at.load(Ordering::Relaxed) != time {
            self.residence.read_at.store(time, Ordering::Relaxed);
        }
    }

    /// When a row of it was read last, or it was frozen; 0 since it was evicted.
    pub(crate) fn read_at(&self) -> u32 {
        self.residence.read_at.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for it, or runs because it is here.
    pub(crate) fn is_wanted(&self) -> bool {
        self.residence.wanted.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnId> + use<> {
        (0..self.residence.here.len() as u16).map(ColumnId)
    }
}

/// What the texts of a column take if it shares them, and what they would take if it did not.
fn shared_bytes_of(column: &Column<Part>) -> (u64, u64) {
    let shared = column.lender().map_or(0, |list| list.memory_bytes());
    (shared, column.lent_texts().unwrap_or(0) as u64)
}

/// Bytes of a column's sections.
pub(super) fn part_bytes(column: &Column<Part>) -> u64 {
    column.sections().map(|(_, part)| part.memory_bytes() as u64).sum()
}
