//! What open transactions of several statements have read, and whom a commit concerns.
//!
//! Responsible for: entering what a statement has read, written and locked in a partition, telling its reader that
//! somebody committed a change of it, whose locks keep others out. Not responsible for: which reads count
//! (`albireo_execute`), what the reader does about it (the engine), which locks exclude each other (`locks`).
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::{ColumnId, IndexId, TableId, Tid, Value};
use albireo_storage::{ChangeEvent, SHARED_SITE, Savepoint, Table, UndoLog};
use rustc_hash::FxHashMap;

use crate::marks::{LockOwner, Mark};

/// Rows and ranges that a reader may have entered in a partition; what it reads beyond that is whole tables.
const MOST_READS: usize = 10_000;

/// An open transaction of several statements.
pub struct Reader {
    conflict: OnceLock<Conflict>,
    is_over: AtomicBool,
    /// Rows and tables that it has locked.
    locks: AtomicU64,
    owner: Arc<LockOwner>,
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
    /// One that has read nothing, whose locks are those of `owner`.
    pub fn new(owner: &Arc<LockOwner>) -> Arc<Self> {
        Arc::new(Self {
            conflict: OnceLock::new(),
            is_over: AtomicBool::new(false),
            locks: AtomicU64::new(0),
            owner: Arc::clone(owner),
        })
    }

    /// The first change of what it has read, if there is one.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.conflict.get()
    }

    /// It may not commit any more.
    fn tell(&self, conflict: impl FnOnce() -> Conflict) {
        if self.conflict.get().is_none() {
            self.conflict.get_or_init(conflict);
            self.owner.release();
        }
    }

    /// It has released locks.
    pub fn release(&self) {
        self.owner.release();
    }

    /// It is over, and holds no lock.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.owner.release();
    }

    /// How many rows and whole tables it has locked.
    pub fn locks(&self) -> u64 {
        self.locks.load(Ordering::Relaxed)
    }

    /// Its locks, which somebody wants.
    pub fn owner(&self) -> &Arc<LockOwner> {
        &self.owner
    }

    /// Whether it may still commit.
    fn is_open(&self) -> bool {
        self.conflict.get().is_none() && !self.is_over.load(Ordering::Acquire)
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
    Row(TableId, Tid, Mark),
    /// All rows whose keys in an index begin with what is between these, inclusive.
    Range(TableId, IndexId, u128, u128),
    /// All rows.
    Table(TableId, Mark),
}

impl Read {
    fn table(&self) -> TableId {
        match self {
            Self::Row(table, ..) | Self::Range(table, ..) | Self::Table(table, _) => *table,
        }
    }

    /// What is done with it.
    pub(crate) fn mark(&self) -> Mark {
        match self {
            Self::Row(.., mark) | Self::Table(_, mark) => *mark,
            Self::Range(..) => Mark::Read,
        }
    }
}

/// Rows that are looked for one by one among those that a transaction has made.
const FEW_ROWS: usize = 4;

/// What a statement has read, by the number of the site.
#[derive(Clone, Default, Debug)]
pub struct Reads {
    pub(crate) noted: Vec<(u16, Read)>,
    /// How many of the queries around what runs do not count but for the rows that they lock.
    pub(crate) muted: u32,
}

impl Reads {
    pub(crate) fn note(&mut self, site: u16, read: Read) {
        if self.muted == 0 || read.mark() != Mark::Read {
            self.noted.push((site, read));
        }
    }

    /// What was more than read was read.
    pub(crate) fn forget_marks(&mut self) {
        for (_, read) in &mut self.noted {
            if let Read::Row(.., mark) | Read::Table(_, mark) = read {
                *mark = Mark::Read;
            }
        }
    }

    /// Forgets rows that the transaction itself has made: whoever else reads them there reads others.
    pub(crate) fn without_own(&mut self, undo: &UndoLog) {
        let rows = self.noted.iter().filter(|(_, read)| matches!(read, Read::Row(..))).count();
        if rows == 0 {
            return;
        }
        if rows <= FEW_ROWS {
            let has_made = |of: u16, table: TableId, tid: Tid| {
                undo.events(Savepoint::START).any(|(site, other, first, event)| match event {
                    ChangeEvent::Came { rows } => {
                        (site == of || site == SHARED_SITE)
                            && other == table
                            && (first.0..first.0 + rows).contains(&tid.0)
                    }
                    _ => false,
                })
            };
            return self.noted.retain(|(site, read)| match read {
                Read::Row(table, tid, _) => !has_made(*site, *table, *tid),
                _ => true,
            });
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
        self.noted.retain(|(site, read)| match read {
            Read::Row(table, tid, _) => !is_own(*site, *table, *tid) && !is_own(SHARED_SITE, *table, *tid),
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
    held: Vec<ReadBy>,
}

#[derive(Default)]
struct OfTable {
    whole: Vec<Entered>,
    ranges: Vec<(IndexId, u128, u128, Arc<Reader>)>,
    /// Ranges of one key.
    keys: FxHashMap<(IndexId, u128), Several>,
    rows: FxHashMap<Tid, Several>,
}

/// A reader of a row, a key or a table.
struct Entered {
    reader: Arc<Reader>,
    mark: Mark,
    /// The step of its transaction in which the mark became more than that it was read.
    since: u32,
}

impl Entered {
    /// Its locks of this step and later ones are no more.
    fn release(&mut self, reader: &Reader, since: u32) {
        if self.is(reader) && self.since >= since && self.mark != Mark::Read {
            if matches!(self.mark, Mark::Locked(_)) {
                reader.locks.fetch_sub(1, Ordering::Relaxed);
            }
            self.mark = Mark::Read;
        }
    }

    fn is(&self, reader: &Reader) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.reader), reader)
    }

    fn new(reader: &Arc<Reader>, mark: Mark, since: u32) -> Self {
        let mut entered = Self { reader: Arc::clone(reader), mark: Mark::Read, since };
        entered.add(mark, since);
        entered
    }

    /// Adds a mark.
    fn add(&mut self, mark: Mark, step: u32) {
        let both = self.mark.and(mark);
        if self.mark == Mark::Read && both != Mark::Read {
            self.since = step;
        }
        let locked = |mark| matches!(mark, Mark::Locked(_));
        if locked(both) && !locked(self.mark) {
            self.reader.locks.fetch_add(1, Ordering::Relaxed);
        }
        self.mark = both;
    }
}

/// The readers of a row or key: mostly one.
struct Several(Entered, Vec<Entered>);

impl Several {
    fn iter(&self) -> impl Iterator<Item = &Entered> {
        std::iter::once(&self.0).chain(&self.1)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entered> {
        std::iter::once(&mut self.0).chain(&mut self.1)
    }
}

struct ReadBy {
    reader: Arc<Reader>,
    reads: Vec<Read>,
}

/// Enters a reader; whether it was new.
fn join<K: Eq + Hash>(
    all: &mut FxHashMap<K, Several>,
    key: K,
    (reader, mark, step): (&Arc<Reader>, Mark, u32),
) -> bool {
    match all.entry(key) {
        Entry::Vacant(place) => drop(place.insert(Several(Entered::new(reader, mark, step), Vec::new()))),
        Entry::Occupied(mut place) => {
            if let Some(there) = place.get_mut().iter_mut().find(|other| other.is(reader)) {
                there.add(mark, step);
                return false;
            }
            place.get_mut().1.push(Entered::new(reader, mark, step));
        }
    }
    true
}

/// Takes a reader out.
fn part<K: Eq + Hash>(all: &mut FxHashMap<K, Several>, key: K, reader: &Arc<Reader>) {
    let Entry::Occupied(mut place) = all.entry(key) else { return };
    let Several(first, others) = place.get_mut();
    others.retain(|other| !other.is(reader));
    if !first.is(reader) {
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

    /// Enters a read in a step of its transaction; whether it was new.
    fn enter(&mut self, read: &Read, reader: &Arc<Reader>, step: u32) -> bool {
        let mark = read.mark();
        let entered = (reader, mark, step);
        if let Some(whole) = self.whole.iter_mut().find(|other| other.is(reader)) {
            if matches!(read, Read::Table(..)) {
                whole.add(mark, step);
                return false;
            }
            if mark == Mark::Read {
                return false;
            }
        }
        match *read {
            Read::Table(..) => self.whole.push(Entered::new(reader, mark, step)),
            Read::Range(_, index, low, high) if low == high => {
                return join(&mut self.keys, (index, low), entered);
            }
            Read::Range(_, index, low, high) => self.ranges.push((index, low, high, Arc::clone(reader))),
            Read::Row(_, tid, _) => return join(&mut self.rows, tid, entered),
        }
        true
    }

    /// Who has done with a row, or with any if none is given, what `mark` does not go with.
    fn holder(&self, tid: Option<Tid>, mark: Mark, except: Option<&Arc<Reader>>) -> Option<&Arc<Reader>> {
        let excludes = |other: &&Entered| {
            mark.waits_for(other.mark)
                && other.reader.is_open()
                && except.is_none_or(|reader| !other.is(reader))
        };
        let found = match tid {
            Some(tid) => self.rows.get(&tid).into_iter().flat_map(Several::iter).find(excludes),
            None => self.rows.values().flat_map(Several::iter).find(excludes),
        };
        let found = found.or_else(|| self.whole.iter().find(excludes));
        found.map(|entered| &entered.reader)
    }

    fn leave(&mut self, read: &Read, reader: &Arc<Reader>) {
        match *read {
            Read::Range(_, index, low, high) if low == high => part(&mut self.keys, (index, low), reader),
            Read::Row(_, tid, _) => part(&mut self.rows, tid, reader),
            Read::Table(..) | Read::Range(..) => {}
        }
    }

    /// Takes out what [`OfTable::leave`] leaves, whatever its number.
    fn leave_ranges(&mut self, reader: &Arc<Reader>) {
        self.whole.retain(|other| !other.is(reader));
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
            let of_key = self.keys.get(&(index, key)).into_iter().flat_map(Several::iter);
            of_key.for_each(|entered| tell(&entered.reader));
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

    /// Enters what `reader` has read in a step of its transaction.
    pub(crate) fn enter(&mut self, read: Read, reader: &Arc<Reader>, step: u32) {
        let at = match self.held.iter().position(|held| Arc::ptr_eq(&held.reader, reader)) {
            Some(at) => at,
            None => {
                self.held.push(ReadBy { reader: Arc::clone(reader), reads: Vec::new() });
                self.held.len() - 1
            }
        };
        let held = &mut self.held[at];
        let table = read.table();
        let keeps = held.reads.len() < MOST_READS || read.mark() != Mark::Read;
        let read = if keeps { read } else { Read::Table(table, Mark::Read) };
        if self.tables.len() <= table.index() {
            self.tables.resize_with(table.index() + 1, OfTable::default);
        }
        if self.tables[table.index()].enter(&read, reader, step) {
            held.reads.push(read);
        }
    }

    /// Forgets what `reader` has read.
    pub(crate) fn leave(&mut self, reader: &Reader) {
        let is_reader = |held: &ReadBy| std::ptr::eq(Arc::as_ptr(&held.reader), reader);
        let Some(at) = self.held.iter().position(is_reader) else { return };
        let ReadBy { reader, reads } = self.held.swap_remove(at);
        for read in &reads {
            self.tables[read.table().index()].leave(read, &reader);
        }
        self.tables.iter_mut().for_each(|of| of.leave_ranges(&reader));
        debug_assert!(
            !self.held.is_empty() || self.tables.iter().all(OfTable::is_empty),
            "what nobody holds is not here (I-2)"
        );
    }

    /// Who keeps a transaction from doing with a row, or with any of the table, what `mark` says.
    pub(crate) fn holder(
        &self,
        table: TableId,
        tid: Option<Tid>,
        mark: Mark,
        except: Option<&Arc<Reader>>,
    ) -> Option<&Arc<Reader>> {
        self.tables.get(table.index())?.holder(tid, mark, except)
    }

    /// Releases the locks that `reader` has taken in a step of its transaction and later; what it has read stays.
    pub(crate) fn release(&mut self, reader: &Reader, since: u32) {
        for of in &mut self.tables {
            let of_rows = of.rows.values_mut().flat_map(Several::iter_mut);
            of_rows.chain(&mut of.whole).for_each(|entered| entered.release(reader, since));
        }
    }

    /// Tells whoever has read anything in a table.
    pub(crate) fn tell_all(&self, id: TableId, columns: &[ColumnId], row: &[Value], rival: &str) {
        for held in &self.held {
            if held.reads.iter().any(|read| read.table() == id) {
                let (columns, row) = (columns.to_vec(), row.to_vec());
                held.reader.tell(|| Conflict { table: id, columns, row, rival: rival.to_owned() });
            }
        }
    }

    /// Tells whoever has read what a commit changes in a table.
    pub(crate) fn tell(&self, table: &Table, tid: Tid, event: ChangeEvent, rival: &str) {
        let Some(of) = self.tables.get(table.spec().id.index()) else { return };
        let tell = |reader: &Reader, tid| {
            reader.tell(|| {
                let columns = table.identity_columns().to_vec();
                let row = columns.iter().map(|column| table.value(tid, *column)).collect();
                Conflict { table: table.spec().id, columns, row, rival: rival.to_owned() }
            });
        };
        of.whole.iter().for_each(|entered| tell(&entered.reader, tid));
        match event {
            ChangeEvent::Came { rows } => {
                for tid in (tid.0..tid.0 + rows).map(Tid) {
                    of.entered(table, tid, None, &|reader| tell(reader, tid));
                }
            }
            ChangeEvent::Went | ChangeEvent::Wrote(_) => {
                let readers = of.rows.get(&tid).into_iter().flat_map(Several::iter);
                readers.for_each(|entered| tell(&entered.reader, tid));
            }
            ChangeEvent::Entered(index) => of.entered(table, tid, Some(index), &|reader| tell(reader, tid)),
            // Whoever has read all rows of the table is told of the change for which it has moved, and so are others.
            ChangeEvent::Moved { .. } => {}
        }
    }
}
