//! What open transactions of several statements have read, and whom a commit concerns.
//!
//! Responsible for: entering what a statement has read in a partition, telling its reader that somebody committed a
//! change of it. Not responsible for: which reads count (`albireo_execute`), what the reader does about it (the engine).
//!
//! Between two of its statements such a transaction holds nobody up. So whoever commits looks here, and tells those
//! who have read what it changed: a row, a range of an index that a row has come to, a table. They cannot write any
//! more then: what they have read is no longer so. As long as nobody tells them, all that they have read is still as it
//! was, so each of their statements sees one state, the present one, and no version of a row is ever kept.
//!
//! I-1 What a reader has read, and was not told of, is as it was.
//! I-2 Nothing is here while no such transaction is open: a commit looks at one word then.
//! I-3 Reader and committer own the partition when they look, so neither misses the other.
//!
//! Papers: Cahill, Röhm and Fekete, *Serializable Isolation for Snapshot Databases*, SIGMOD 2008 (marks of what was
//! read, §3.2); Neumann, Mühlbauer and Kemper, *Fast Serializable Multi-Version Concurrency Control for Main-Memory
//! Database Systems*, SIGMOD 2015 (what was read as predicates, §2.3).

use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use albireo_base::{ColumnId, IndexId, TableId, Tid, Value};
use albireo_storage::{ChangeEvent, SHARED_SITE, Savepoint, Table, UndoLog};
use rustc_hash::FxHashMap;

/// Rows and ranges that a reader may have entered in a partition; what it reads beyond that is whole tables.
const MOST_READS: usize = 10_000;

/// An open transaction of several statements.
#[derive(Default)]
pub struct Reader {
    conflict: OnceLock<Conflict>,
}

/// What somebody has changed of what a reader has read.
#[derive(Clone, PartialEq, Debug)]
pub struct Conflict {
    /// The table.
    pub table: TableId,
    /// The columns that name a row: [`Table::identity_columns`].
    pub columns: Vec<ColumnId>,
    /// The row that was changed, or came, by their values.
    pub row: Vec<Value>,
    /// The name of the call that did it.
    pub rival: String,
}

impl Reader {
    /// One that has read nothing.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The first change of what it has read, if there is one.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.conflict.get()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("conflict", &self.conflict()).finish()
    }
}

/// What a statement reads.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// A row.
    Row(TableId, Tid),
    /// All rows whose keys in an index begin with what is between these, inclusive.
    Range(TableId, IndexId, u128, u128),
    /// All rows.
    Table(TableId),
}

impl Read {
    fn table(&self) -> TableId {
        match self {
            Self::Row(table, _) | Self::Range(table, ..) | Self::Table(table) => *table,
        }
    }
}

/// What a statement has read, by the number of the site.
#[derive(Clone, Default, Debug)]
pub struct Reads(pub(crate) Vec<(u16, Read)>);

impl Reads {
    pub(crate) fn note(&mut self, site: u16, read: Read) {
        self.0.push((site, read));
    }

    /// Forgets rows that the transaction itself has made: whoever else reads them there reads others.
    pub(crate) fn without_own(&mut self, undo: &UndoLog) {
        if !self.0.iter().any(|(_, read)| matches!(read, Read::Row(..))) {
            return;
        }
        let came = |(site, table, tid, event)| match event {
            ChangeEvent::Came { rows } => Some((site, table, tid, rows)),
            _ => None,
        };
        let mut own: Vec<(u16, TableId, Tid, u64)> = undo.events(Savepoint::START).filter_map(came).collect();
        if own.is_empty() {
            return;
        }
        own.sort_unstable();
        let is_own = |site: u16, table: TableId, tid: Tid| {
            let at = own.partition_point(|(s, t, first, _)| (*s, *t, *first) <= (site, table, tid));
            let before = at.checked_sub(1).map(|at| own[at]);
            before.is_some_and(|(s, t, first, rows)| (s, t) == (site, table) && tid.0 - first.0 < rows)
        };
        self.0.retain(|(site, read)| match read {
            Read::Row(table, tid) => !is_own(*site, *table, *tid) && !is_own(SHARED_SITE, *table, *tid),
            _ => true,
        });
    }
}

/// What is read in a partition, and by whom.
#[derive(Default)]
pub(crate) struct Readers {
    /// By the number of the table.
    tables: Vec<OfTable>,
    /// What each has read, to take it out again.
    held: Vec<Held>,
}

#[derive(Default)]
struct OfTable {
    whole: Vec<Arc<Reader>>,
    ranges: Vec<(IndexId, u128, u128, Arc<Reader>)>,
    /// Ranges of one key.
    keys: FxHashMap<(IndexId, u128), Several>,
    rows: FxHashMap<Tid, Several>,
}

/// The readers of a row or key: mostly one.
struct Several(Arc<Reader>, Vec<Arc<Reader>>);

impl Several {
    fn iter(&self) -> impl Iterator<Item = &Arc<Reader>> {
        std::iter::once(&self.0).chain(&self.1)
    }
}

struct Held {
    reader: Arc<Reader>,
    reads: Vec<Read>,
}

/// Enters a reader; whether it was new.
fn join<K: Eq + Hash>(all: &mut FxHashMap<K, Several>, key: K, reader: &Arc<Reader>) -> bool {
    match all.entry(key) {
        Entry::Vacant(place) => drop(place.insert(Several(Arc::clone(reader), Vec::new()))),
        Entry::Occupied(place) if place.get().iter().any(|other| Arc::ptr_eq(other, reader)) => return false,
        Entry::Occupied(mut place) => place.get_mut().1.push(Arc::clone(reader)),
    }
    true
}

/// Takes a reader out.
fn part<K: Eq + Hash>(all: &mut FxHashMap<K, Several>, key: K, reader: &Arc<Reader>) {
    let Entry::Occupied(mut place) = all.entry(key) else { return };
    let Several(first, others) = place.get_mut();
    others.retain(|other| !Arc::ptr_eq(other, reader));
    if !Arc::ptr_eq(first, reader) {
        return;
    }
    match others.pop() {
        Some(other) => *first = other,
        None => drop(place.remove()),
    }
}

impl OfTable {
    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.ranges.is_empty() && self.keys.is_empty() && self.rows.is_empty()
    }

    /// Enters a read; whether it was new.
    fn enter(&mut self, read: &Read, reader: &Arc<Reader>) -> bool {
        let is_reader = |other: &Arc<Reader>| Arc::ptr_eq(other, reader);
        if self.whole.iter().any(is_reader) {
            return false;
        }
        match *read {
            Read::Table(_) => self.whole.push(Arc::clone(reader)),
            Read::Range(_, index, low, high) if low == high => {
                return join(&mut self.keys, (index, low), reader);
            }
            Read::Range(_, index, low, high) => self.ranges.push((index, low, high, Arc::clone(reader))),
            Read::Row(_, tid) => return join(&mut self.rows, tid, reader),
        }
        true
    }

    fn leave(&mut self, read: &Read, reader: &Arc<Reader>) {
        match *read {
            Read::Range(_, index, low, high) if low == high => part(&mut self.keys, (index, low), reader),
            Read::Row(_, tid) => part(&mut self.rows, tid, reader),
            Read::Table(_) | Read::Range(..) => {}
        }
    }

    /// Takes out what [`OfTable::leave`] leaves, whatever its number.
    fn leave_ranges(&mut self, reader: &Arc<Reader>) {
        self.whole.retain(|other| !Arc::ptr_eq(other, reader));
        self.ranges.retain(|(.., other)| !Arc::ptr_eq(other, reader));
    }

    /// Calls `tell` for whoever has read a key of a row that came to an index, or to all.
    fn entered(&self, table: &Table, tid: Tid, only: Option<IndexId>, tell: &dyn Fn(&Reader)) {
        // What has gone again was never there for others.
        if !table.is_live(tid) || self.keys.is_empty() && self.ranges.is_empty() {
            return;
        }
        // An index that was dropped has no readers that may still commit.
        for index in (0..table.spec().indexes.len() as u16).map(IndexId) {
            if only.is_some_and(|only| only != index) {
                continue;
            }
            let key = table.key_prefix(index, tid);
            self.keys.get(&(index, key)).into_iter().flat_map(Several::iter).for_each(|reader| tell(reader));
            for (other, low, high, reader) in &self.ranges {
                if *other == index && (*low..=*high).contains(&key) {
                    tell(reader);
                }
            }
        }
    }
}

impl Readers {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Enters what `reader` has read.
    pub(crate) fn enter(&mut self, read: Read, reader: &Arc<Reader>) {
        let at = match self.held.iter().position(|held| Arc::ptr_eq(&held.reader, reader)) {
            Some(at) => at,
            None => {
                self.held.push(Held { reader: Arc::clone(reader), reads: Vec::new() });
                self.held.len() - 1
            }
        };
        let held = &mut self.held[at];
        let table = read.table();
        let read = if held.reads.len() < MOST_READS { read } else { Read::Table(table) };
        if self.tables.len() <= table.index() {
            self.tables.resize_with(table.index() + 1, OfTable::default);
        }
        if self.tables[table.index()].enter(&read, reader) {
            held.reads.push(read);
        }
    }

    /// Forgets what `reader` has read.
    pub(crate) fn leave(&mut self, reader: &Reader) {
        let is_reader = |held: &Held| std::ptr::eq(Arc::as_ptr(&held.reader), reader);
        let Some(at) = self.held.iter().position(is_reader) else { return };
        let Held { reader, reads } = self.held.swap_remove(at);
        for read in &reads {
            self.tables[read.table().index()].leave(read, &reader);
        }
        self.tables.iter_mut().for_each(|of| of.leave_ranges(&reader));
        debug_assert!(
            !self.held.is_empty() || self.tables.iter().all(OfTable::is_empty),
            "what nobody holds is not here (I-2)"
        );
    }

    /// Tells whoever has read anything in a table.
    pub(crate) fn tell_all(&self, id: TableId, columns: &[ColumnId], row: &[Value], rival: &str) {
        for held in &self.held {
            if held.reads.iter().any(|read| read.table() == id) {
                let (columns, row) = (columns.to_vec(), row.to_vec());
                let conflict = || Conflict { table: id, columns, row, rival: rival.to_owned() };
                held.reader.conflict.get_or_init(conflict);
            }
        }
    }

    /// Tells whoever has read what a commit changes in a table.
    pub(crate) fn tell(&self, table: &Table, tid: Tid, event: ChangeEvent, rival: &str) {
        let Some(of) = self.tables.get(table.spec().id.index()) else { return };
        let tell = |reader: &Reader, tid| {
            reader.conflict.get_or_init(|| {
                let columns = table.identity_columns().to_vec();
                let row = columns.iter().map(|column| table.value(tid, *column)).collect();
                Conflict { table: table.spec().id, columns, row, rival: rival.to_owned() }
            });
        };
        of.whole.iter().for_each(|reader| tell(reader, tid));
        match event {
            ChangeEvent::Came { rows } => {
                for tid in (tid.0..tid.0 + rows).map(Tid) {
                    of.entered(table, tid, None, &|reader| tell(reader, tid));
                }
            }
            ChangeEvent::Went | ChangeEvent::Wrote(_) => {
                let readers = of.rows.get(&tid).into_iter().flat_map(Several::iter);
                readers.for_each(|reader| tell(reader, tid));
            }
            ChangeEvent::Entered(index) => of.entered(table, tid, Some(index), &|reader| tell(reader, tid)),
        }
    }
}
