//! Statements by their text: what each means, and what its execution paths need.
//!
//! An entry is a text, the generation of the definitions and the types of parameters that it was bound for. It
//! has the bound form; from that, each made when it is first needed: access paths for a transaction ([`Live`]),
//! with machine code once it is asked often, and the plan for a snapshot ([`Prepared`]).
//!
//! Invariants: at most 1,024 entries, with texts of 8 MiB altogether; one that was not used since the hand came
//! by goes first. A look-up takes no lock that excludes another look-up. No entry of older definitions stays.

use std::array::from_fn;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::{SqlError, SqlState, Value, budget};
use albireo_olap::Prepared;
use albireo_semantics::query::{File, Files, NamedFile, View};
use albireo_sql::RowLocks;
use parking_lot::RwLock;

use super::bind::{Bound, GoodFor, Meaning, Parsed, Written};
use super::live::Live;
use super::path::ExecutionPath;
use crate::routines::Library;

/// Places with the same low bits of the hash.
const WAYS: usize = 4;
/// Sets of such slots.
const SETS: usize = 256;
/// Bytes of the texts of a set. Longer texts are not kept: they are hardly sent twice.
const SET_TEXT_BYTES: usize = 32 << 10;

/// A statement that was bound, or could not be.
pub(crate) struct Entry {
    pub(crate) text: Box<str>,
    /// Of the definitions that it was bound to.
    generation: u64,
    good_for: GoodFor,
    /// What it was bound to.
    pub(crate) library: Arc<Library>,
    /// What it means, or why that is not known here.
    pub(crate) bound: Result<Bound, SqlError>,
    /// Whether it calls routines, which only transactions can.
    pub(crate) calls: bool,
    /// Whether it names files or system views, which may be others the next time.
    pub(crate) reads_files: bool,
    /// FOR UPDATE and FOR SHARE.
    pub(crate) locks: RowLocks,
    /// What a transaction runs, or why none can.
    live: OnceLock<Result<Live, SqlError>>,
    /// What runs on a snapshot.
    pub(crate) prepared: OnceLock<Arc<Prepared>>,
}

impl Entry {
    /// Binds a statement that stands in `text` for these values. `files` opens those that it names; without it they
    /// are refused.
    pub(crate) fn new(
        library: &Arc<Library>,
        parsed: Parsed<'_>,
        text: &str,
        values: &[Value],
        generation: u64,
        files: Option<&dyn Files>,
    ) -> Self {
        let calls = match parsed {
            Parsed::Statement(statement) => crate::routines::calls(library, statement),
            Parsed::Call(_) => true,
        };
        let locks = match parsed {
            Parsed::Statement(statement) => RowLocks::of(statement),
            Parsed::Call(_) => RowLocks::default(),
        };
        // Where routines run there are no files.
        let files = files.filter(|_| !calls).map(|files| Opened { files, any: Cell::new(false) });
        let source = Written { parsed, text, files: files.as_ref().map(|files| files as &dyn Files) };
        let (bound, good_for) = match Bound::new(library, source, values, calls) {
            Ok((bound, good_for)) => (Ok(bound), good_for),
            Err(error) => (Err(error), GoodFor::exactly(values)),
        };
        let reads_files = files.is_some_and(|files| files.any.get());
        let library = Arc::clone(library);
        let (live, prepared) = (OnceLock::new(), OnceLock::new());
        let text = text.into();
        Self { text, generation, good_for, library, bound, calls, reads_files, locks, live, prepared }
    }

    /// What a transaction runs.
    ///
    /// # Errors
    /// Why none can.
    #[inline]
    pub(crate) fn live(&self, partitions: u16) -> Result<&Live, SqlError> {
        if self.live.get().is_none() {
            let made = match &self.bound {
                Ok(bound) => Live::new(bound, self.locks, partitions),
                Err(error) => Err(error.clone()),
            };
            if made.is_err() {
                // It may not have been refused but ended.
                budget::check()?;
            }
            let _ = self.live.set(made);
        }
        match self.live.get() {
            Some(made) => made.as_ref().map_err(Clone::clone),
            None => Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement that was not made")),
        }
    }

    /// Whether it is a query.
    pub(crate) fn is_query(&self) -> bool {
        matches!(self.bound, Ok(Bound { meaning: Meaning::Select(_), .. })) || self.prepared.get().is_some()
    }

    fn is(&self, text: &str, values: &[Value], generation: u64) -> bool {
        self.generation == generation && *self.text == *text && self.good_for.takes(values)
    }
}

/// Opens files and system views, and notes that there were any.
struct Opened<'a> {
    files: &'a dyn Files,
    any: Cell<bool>,
}

impl Files for Opened<'_> {
    fn open(&self, named: &NamedFile) -> Result<Arc<File>, SqlError> {
        self.any.set(true);
        self.files.open(named)
    }

    fn view(&self, schema: &str, name: &str) -> Option<View> {
        let view = self.files.view(schema, name);
        self.any.set(self.any.get() || view.is_some());
        view
    }
}

struct CacheSlot {
    hash: u64,
    entry: Arc<Entry>,
    /// Since the hand came by.
    used: AtomicBool,
}

#[derive(Default)]
struct Set {
    slots: [Option<CacheSlot>; WAYS],
    hand: usize,
}

/// The statements of a database that are kept, and what all of them share.
pub(crate) struct Statements {
    sets: Box<[RwLock<Set>]>,
    /// Of the newest entry.
    generation: AtomicU64,
    /// Whose turn it is among partitions that can all run a statement.
    turn: AtomicU16,
    /// A path that tests force all statements to: see [`ExecutionPath::forced`].
    forced: AtomicU8,
}

impl Default for Statements {
    fn default() -> Self {
        let sets = std::iter::repeat_with(RwLock::default).take(SETS).collect();
        Self { sets, generation: AtomicU64::new(0), turn: AtomicU16::new(0), forced: AtomicU8::new(0) }
    }
}

impl Statements {
    /// The statement with this text for values of these types, if it is kept.
    #[inline]
    pub(crate) fn get(&self, text: &str, values: &[Value], generation: u64) -> Option<Arc<Entry>> {
        self.find(text, |entry| entry.is(text, values, generation))
    }

    /// A query with this text that has a plan for a snapshot, whatever the types of its parameters.
    pub(crate) fn with_plan(&self, text: &str, generation: u64) -> Option<Arc<Prepared>> {
        let has_plan = |entry: &Entry| {
            entry.generation == generation && *entry.text == *text && entry.prepared.get().is_some()
        };
        self.find(text, has_plan)?.prepared.get().cloned()
    }

    /// How many of the next executions of a statement with this text are not to be begun as transactions.
    pub(super) fn overruns(&self, text: &str, generation: u64) -> Option<u32> {
        let same = |entry: &Entry| entry.generation == generation && *entry.text == *text;
        match self.find(text, same)?.live.get() {
            Some(Ok(live)) => Some(live.overruns.left()),
            _ => None,
        }
    }

    #[inline]
    fn find(&self, text: &str, wanted: impl Fn(&Entry) -> bool) -> Option<Arc<Entry>> {
        let hash = hash(text);
        let set = self.set(hash).read();
        for place in set.slots.iter().flatten() {
            if place.hash == hash && wanted(&place.entry) {
                if !place.used.load(Ordering::Relaxed) {
                    place.used.store(true, Ordering::Relaxed);
                }
                return Some(Arc::clone(&place.entry));
            }
        }
        None
    }

    /// Keeps a statement that was bound for these values, in the place of what it replaces.
    pub(crate) fn put(&self, entry: &Arc<Entry>, values: &[Value]) {
        // Not if there are more or fewer values than parameters, and types or routines depend on them.
        let good = entry.good_for.takes(values) || (entry.good_for.is_general() && !entry.calls);
        if entry.text.len() > SET_TEXT_BYTES || !good {
            return;
        }
        if self.generation.fetch_max(entry.generation, Ordering::Relaxed) < entry.generation {
            self.forget_before(entry.generation);
        }
        let hash = hash(&entry.text);
        let mut set = self.set(hash).write();
        let at = set.place_for(entry, hash, values);
        set.slots[at] = Some(CacheSlot { hash, entry: Arc::clone(entry), used: AtomicBool::new(true) });
        set.limit_texts(at);
    }

    /// Forgets what was bound to older definitions.
    #[cold]
    fn forget_before(&self, generation: u64) {
        for set in &self.sets {
            for place in &mut set.write().slots {
                if place.as_ref().is_some_and(|place| place.entry.generation < generation) {
                    *place = None;
                }
            }
        }
    }

    #[inline]
    fn set(&self, hash: u64) -> &RwLock<Set> {
        &self.sets[hash as usize % SETS]
    }

    /// The next of `partitions`, in turns.
    pub(super) fn next_partition(&self, partitions: u16) -> u16 {
        self.turn.fetch_add(1, Ordering::Relaxed) % partitions
    }

    pub(super) fn forced(&self) -> Option<ExecutionPath> {
        ExecutionPath::forced(self.forced.load(Ordering::Relaxed))
    }

    pub(crate) fn force(&self, path: Option<ExecutionPath>) {
        self.forced.store(path.map_or(0, ExecutionPath::force), Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count_of(|_| true)
    }

    #[cfg(test)]
    pub(super) fn refused(&self) -> usize {
        self.count_of(|entry| entry.live(1).is_err())
    }

    #[cfg(test)]
    fn count_of(&self, wanted: impl Fn(&Entry) -> bool) -> usize {
        let in_set = |set: &RwLock<Set>| {
            let set = set.read();
            set.slots.iter().flatten().filter(|place| wanted(&place.entry)).count()
        };
        self.sets.iter().map(in_set).sum()
    }
}

impl Set {
    fn place_for(&mut self, entry: &Entry, hash: u64, values: &[Value]) -> usize {
        let replaced = |place: &Option<CacheSlot>| match place {
            None => true,
            Some(place) => place.hash == hash && place.entry.is(&entry.text, values, entry.generation),
        };
        if let Some(at) = self.slots.iter().position(replaced) {
            return at;
        }
        // Second chances end: after one round all are unused.
        loop {
            let at = self.hand;
            self.hand = (at + 1) % WAYS;
            match &self.slots[at] {
                Some(place) if place.used.swap(false, Ordering::Relaxed) => {}
                _ => return at,
            }
        }
    }

    /// Forgets others until the texts are short enough.
    fn limit_texts(&mut self, newest: usize) {
        let bytes = |slots: &[Option<CacheSlot>]| -> usize {
            slots.iter().flatten().map(|place| place.entry.text.len()).sum()
        };
        while bytes(&self.slots) > SET_TEXT_BYTES {
            self.hand = (self.hand + 1) % WAYS;
            if self.hand != newest {
                self.slots[self.hand] = None;
            }
        }
    }
}

/// Eight bytes at a time. Equal hashes of different texts cost a comparison, no more.
#[inline]
fn hash(text: &str) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 29)
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last: [u8; 8] = from_fn(|at| rest.get(at).copied().unwrap_or(0));
    let hash = mix(hash, u64::from_le_bytes(last));
    hash ^ (hash >> 32)
}
