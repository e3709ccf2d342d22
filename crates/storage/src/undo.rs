//! Before images of the running transaction.
//!
//! A record is 40 bytes with the old value inside; wider images lie in a byte buffer beside.
//! Commit forgets everything; abort hands the records back newest first, and the table that wrote
//! one takes it back ([`crate::Table::undo`]).

use albireo_base::{ColumnId, IndexId, TableId, Tid};

use crate::rows::RowRun;

/// What a record takes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A row was inserted.
    Inserted,
    /// Rows were appended: the record's and so many in the slots behind it, itself included.
    Appended { rows: u32 },
    /// A row was deleted.
    Deleted,
    /// A value was overwritten.
    Wrote {
        column: ColumnId,
        /// Whether the old value was NULL.
        was_null: bool,
        image: Image,
    },
    /// A row entered an index.
    Indexed(IndexId),
    /// A row left an index.
    Unindexed(IndexId),
    /// A row of a frozen chunk was moved to a slot.
    Moved { to: Tid },
}

/// The old bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Image {
    /// Up to 16 bytes.
    Here([u8; 16]),
    /// Wider: where it begins in the log's byte buffer, in two halves to keep records small.
    Apart { start: [u32; 2] },
}

impl Image {
    /// Old bytes, at most 16.
    #[inline(always)]
    pub(crate) fn of<B: AsRef<[u8]>>(old: B) -> Self {
        let mut here = [0; 16];
        let old = old.as_ref();
        here[..old.len()].copy_from_slice(old);
        Self::Here(here)
    }
}

/// One change of one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoRecord {
    pub(crate) tid: Tid,
    pub(crate) site: u16,
    pub(crate) table: u32,
    pub(crate) change: Change,
}

impl UndoRecord {
    /// The partition, as the transaction numbered it in [`UndoLog::set_site`].
    pub fn site(&self) -> u16 {
        self.site
    }

    /// The table's id.
    pub fn table(&self) -> u32 {
        self.table
    }

    /// The rows, if they were appended together.
    pub(crate) fn appended(&self) -> Option<RowRun> {
        match self.change {
            Change::Appended { rows } => Some(RowRun { first: self.tid, rows: rows.into() }),
            _ => None,
        }
    }
}

/// A change as those see it who have read rows before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeEvent {
    /// So many rows came, one behind the other.
    Came {
        /// At least one.
        rows: u64,
    },
    /// A row went.
    Went,
    /// A row has another value in this column.
    Wrote(ColumnId),
    /// A row stands in this index under another key than before.
    Entered(IndexId),
    /// A row has another TID from the end of the transaction on.
    Moved {
        /// This.
        to: Tid,
    },
}

/// The undo buffer of one executor; reused from transaction to transaction.
#[derive(Default)]
pub struct UndoLog {
    records: Vec<UndoRecord>,
    bytes: Vec<u8>,
    site: u16,
    /// Rows that records of many rows stand for, beyond one each.
    more_rows: usize,
    /// Records of rows that were moved, and the tables in which there are some, by site.
    moved: usize,
    moved_in: Vec<(u16, u32)>,
    /// Rows whose slots become free at commit.
    deleted: Vec<(u16, u32, Tid)>,
    /// Tables with string heaps that are mostly garbage, to be rewritten at commit: site, table and
    /// one of the heaps.
    garbage: Vec<(u16, u32, u32, u16)>,
}

/// A position in the log, to which a part of a transaction can be rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    records: usize,
    deleted: usize,
}

impl UndoLog {
    /// Names the partition that following records belong to.
    #[inline(always)]
    pub fn set_site(&mut self, site: u16) {
        self.site = site;
    }

    /// Whether the transaction changed anything.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether all that the transaction did was to delete rows.
    pub fn only_deletes(&self) -> bool {
        self.records.iter().all(|record| record.change == Change::Deleted)
    }

    /// Changes so far; each row that was appended with others is one, and that a row has moved is none.
    pub fn len(&self) -> usize {
        self.records.len() + self.more_rows - self.moved
    }

    /// How often a row came or went so far: the same whichever way a statement takes.
    pub fn rows_moved(&self) -> u64 {
        let moved =
            |record: &UndoRecord| u64::from(matches!(record.change, Change::Inserted | Change::Deleted));
        self.records
            .iter()
            .map(|record| record.appended().map_or_else(|| moved(record), |run| run.rows))
            .sum()
    }

    /// The records, oldest first.
    pub(crate) fn records(&self) -> &[UndoRecord] {
        &self.records
    }

    /// What has changed since `since`, oldest first: site, table, row and what became of it.
    pub fn events(&self, since: Savepoint) -> impl Iterator<Item = (u16, TableId, Tid, ChangeEvent)> {
        let event = |record: &UndoRecord| {
            let event = match record.change {
                Change::Inserted => ChangeEvent::Came { rows: 1 },
                Change::Appended { rows } => ChangeEvent::Came { rows: rows.into() },
                Change::Deleted => ChangeEvent::Went,
                Change::Wrote { column, .. } => ChangeEvent::Wrote(column),
                Change::Indexed(index) => ChangeEvent::Entered(index),
                Change::Moved { to } => ChangeEvent::Moved { to },
                Change::Unindexed(_) => return None,
            };
            Some((record.site, TableId(record.table), record.tid, event))
        };
        self.records[since.records..].iter().filter_map(event)
    }

    /// Where the log stands.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { records: self.records.len(), deleted: self.deleted.len() }
    }

    /// Bytes that the buffers hold on to.
    pub fn memory_bytes(&self) -> usize {
        self.records.capacity() * size_of::<UndoRecord>() + self.bytes.capacity()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, table: u32, tid: Tid, change: Change) {
        self.records.push(UndoRecord { tid, site: self.site, table, change });
    }

    /// Notes that a row was moved.
    #[cold]
    pub(crate) fn push_moved(&mut self, table: u32, tid: Tid, to: Tid) {
        self.push(table, tid, Change::Moved { to });
        self.moved += 1;
        if !self.moved_in.contains(&(self.site, table)) {
            self.moved_in.push((self.site, table));
        }
    }

    /// Notes that rows were appended.
    pub(crate) fn push_appended(&mut self, table: u32, run: RowRun) {
        debug_assert!(run.rows > 0, "rows that were appended are some");
        let mut first = run.first;
        let end = first.0 + run.rows;
        while first.0 < end {
            let rows = u32::try_from(end - first.0).unwrap_or(u32::MAX);
            self.push(table, first, Change::Appended { rows });
            self.more_rows += rows as usize - 1;
            first = Tid(first.0 + u64::from(rows));
        }
    }

    /// Takes the newest record off.
    fn pop_record(&mut self) -> Option<UndoRecord> {
        let record = self.records.pop()?;
        if let Change::Appended { rows } = record.change {
            debug_assert!(self.more_rows + 1 >= rows as usize, "rows are counted as they came");
            self.more_rows -= rows as usize - 1;
        }
        self.moved -= usize::from(matches!(record.change, Change::Moved { .. }));
        Some(record)
    }

    #[inline]
    pub(crate) fn push_deleted(&mut self, table: u32, tid: Tid, slot: Tid) {
        self.push(table, tid, Change::Deleted);
        self.deleted.push((self.site, table, slot));
        debug_assert!(self.deleted.len() <= self.records.len(), "each deletion has a record");
    }

    #[cold]
    pub(crate) fn note_garbage(&mut self, table: u32, chunk: u32, heap: u16) {
        let known = |&(site, other, ..): &(u16, u32, u32, u16)| site == self.site && other == table;
        if !self.garbage.iter().any(known) {
            self.garbage.push((self.site, table, chunk, heap));
        }
    }

    /// Stores an image.
    #[inline(always)]
    pub(crate) fn image(&mut self, old: &[u8]) -> Image {
        if old.len() <= 16 {
            return Image::of(old);
        }
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(old);
        Image::Apart { start: [start as u32, (start >> 32) as u32] }
    }

    /// The bytes of an image that has `width` of them.
    pub(crate) fn bytes_of<'a>(&'a self, image: &'a Image, width: usize) -> &'a [u8] {
        match image {
            Image::Here(bytes) => &bytes[..width],
            Image::Apart { start: [low, high] } => {
                debug_assert!(width > 16, "what is short lies in its record");
                let start = (u64::from(*high) << 32 | u64::from(*low)) as usize;
                debug_assert!(start + width <= self.bytes.len(), "an image stays until its record goes");
                &self.bytes[start..start + width]
            }
        }
    }

    /// The newest record after `to`, which is removed; `None` when all are undone.
    pub fn pop(&mut self, to: Savepoint) -> Option<UndoRecord> {
        if self.records.len() > to.records {
            return self.pop_record();
        }
        debug_assert_eq!(self.records.len(), to.records, "a savepoint lies behind");
        debug_assert!(self.deleted.len() >= to.deleted, "a savepoint lies behind");
        self.deleted.truncate(to.deleted);
        if to.records == 0 {
            debug_assert_eq!((self.more_rows, self.moved), (0, 0), "without records there are no rows");
            self.moved_in.clear();
            self.bytes.clear();
            self.garbage.clear();
        }
        None
    }

    /// Like [`UndoLog::pop`], inside one statement: byte images of older records stay.
    pub(crate) fn pop_for_rollback(&mut self, to: Savepoint) -> Option<UndoRecord> {
        debug_assert!(self.records.len() >= to.records, "a savepoint lies behind");
        (self.records.len() > to.records).then(|| self.pop_record()).flatten()
    }

    /// The tables in which rows have moved, by site: before [`UndoLog::commit`], each is told
    /// ([`crate::Table::settle_moved`]).
    pub fn moved_in(&self) -> &[(u16, u32)] {
        &self.moved_in
    }

    /// Forgets everything; calls `free` for each deleted row and `tidy` for each heap with much
    /// garbage, with site, table and place.
    pub fn commit(&mut self, mut free: impl FnMut(u16, u32, Tid), mut tidy: impl FnMut(u16, u32, u32, u16)) {
        debug_assert!(self.deleted.len() <= self.records.len(), "each deletion has a record");
        self.records.clear();
        self.bytes.clear();
        (self.more_rows, self.moved) = (0, 0);
        self.moved_in.clear();
        if self.deleted.is_empty() && self.garbage.is_empty() {
            return;
        }
        for (site, table, tid) in self.deleted.drain(..) {
            free(site, table, tid);
        }
        for (site, table, chunk, heap) in self.garbage.drain(..) {
            tidy(site, table, chunk, heap);
        }
    }
}

impl Savepoint {
    /// The beginning of the transaction.
    pub const START: Self = Self { records: 0, deleted: 0 };

    /// Whether what it stands for is part of what `later` does.
    pub fn is_before(self, later: Self) -> bool {
        self.records <= later.records && self.deleted <= later.deleted
    }
}
