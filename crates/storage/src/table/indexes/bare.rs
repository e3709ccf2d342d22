//! The entries of all rows of a table in their order, for an index of TIDs alone.
//!
//! Such an index asks rows for their keys at each step of a search, so it is made of entries that are sorted before:
//! by the first 16 bytes of their keys, and in the rows only where these are equal and more follows.

use std::cmp::Ordering;

use albireo_base::{StatementProgress, Tid};

use super::build::sort_by;
use super::sorted::live_from;
use super::{Failure, KeyColumns, TableIndex, build_key, in_rows};
use crate::index::{BareIndex, StoredKeys};
use crate::key::KeyBuilder;
use crate::rows::Rows;

/// Entries that are sorted together: 128 MiB; few where it is tested, so that there are often more.
const MOST_ENTRIES: usize = if cfg!(debug_assertions) { 1_000 } else { 4 << 20 };
/// Entries between two reports of progress.
const REPORTED: usize = 64 << 10;

/// An entry that is to be sorted.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u128,
    tid: Tid,
    /// Whether its key has more than 16 bytes.
    is_long: bool,
    has_null: bool,
}

/// How entries are compared.
struct Order<'r, S> {
    columns: &'r KeyColumns,
    rows: &'r Rows,
    stored: S,
    key: KeyBuilder,
}

fn order<'r>(columns: &'r KeyColumns, rows: &'r Rows) -> Order<'r, impl StoredKeys> {
    Order { columns, rows, stored: in_rows(columns, rows), key: KeyBuilder::new() }
}

impl<S: StoredKeys> Order<'_, S> {
    fn keys(&mut self, a: &Entry, b: &Entry) -> Ordering {
        let rests = match (a.is_long, b.is_long) {
            (true, true) => Ordering::Equal,
            (a, b) => a.cmp(&b),
        };
        a.prefix.cmp(&b.prefix).then(rests).then_with(|| {
            if !a.is_long {
                return Ordering::Equal;
            }
            build_key(self.columns, self.rows, a.tid, &mut self.key);
            self.stored.tie(self.key.key(), b.tid.0)
        })
    }
}

impl TableIndex {
    /// Puts all rows into the empty index, which is bare, and counts them in `progress`.
    pub(super) fn build_bare(&mut self, rows: &Rows, progress: &StatementProgress) -> Result<(), Failure> {
        let mut from = Some(Tid(0));
        while let Some(first) = from {
            let entries;
            (entries, from) = self.sorted_entries(rows, first);
            for some in entries.chunks(REPORTED) {
                self.enter_sorted(rows, some)?;
                progress.add(some.len() as u64);
                albireo_env::give_way();
            }
        }
        Ok(())
    }

    /// The entries of rows from one on, sorted; of most tables all. Also the first row that they are not of.
    fn sorted_entries(&self, rows: &Rows, first: Tid) -> (Vec<Entry>, Option<Tid>) {
        let (mut tids, mut key) = (live_from(rows, first), KeyBuilder::new());
        let mut entries = Vec::with_capacity(MOST_ENTRIES.min(rows.live_rows as usize));
        while entries.len() < MOST_ENTRIES
            && let Some(tid) = tids.next()
        {
            let has_null = build_key(&self.columns, rows, tid, &mut key);
            let key = key.key();
            entries.push(Entry { prefix: key.prefix, tid, is_long: !key.rest.is_empty(), has_null });
        }
        let mut order = order(&self.columns, rows);
        sort_by(&mut entries, |a, b| order.keys(a, b).then(a.tid.cmp(&b.tid)));
        (entries, tids.next())
    }

    /// Puts entries in that are sorted: at the end, if they come there.
    fn enter_sorted(&mut self, rows: &Rows, entries: &[Entry]) -> Result<(), Failure> {
        let has_equal_keys = !self.index.is_unique() && !self.unique_unless_null;
        let mut key = KeyBuilder::new();
        // The one before, if it is the last of all.
        let mut last: Option<&Entry> = None;
        for entry in entries {
            let comes_last = last
                .is_some_and(|last| has_equal_keys || order(&self.columns, rows).keys(last, entry).is_lt());
            match self.index.bare_mut() {
                Some(index) if comes_last => {
                    index.append(entry.prefix, entry.tid.0).map_err(Failure::OutOfMemory)?;
                    last = Some(entry);
                }
                _ => {
                    build_key(&self.columns, rows, entry.tid, &mut key);
                    self.insert_key(rows, entry.tid, key.key(), entry.has_null, |_| None)?;
                    let is_last = self.index.bare().and_then(BareIndex::last) == Some(entry.tid.0);
                    last = is_last.then_some(entry);
                }
            }
        }
        Ok(())
    }
}
