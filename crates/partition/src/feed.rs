//! The changes of a table, told to whoever works beside it.
//!
//! Responsible for: which rows were changed by transactions that committed since a snapshot, told without waiting.
//! Not responsible for: what they hold now, which is read in the table by whoever owns it.
//!
//! ```text
//! Feeds::open   all partitions owned, beside a snapshot (`follow`)
//! commit        puts the rows that it changed into the feeds of their table
//! Feed::take    gives them and forgets them; the partition is owned, so they are as they are in the table
//! ```
//!
//! I-1 A row that is not as the snapshot, or the last `take`, showed it is in the feed.
//! I-2 Nothing is told while nobody follows: a commit looks at the length of one list then.

use std::sync::{Arc, Weak};

use albireo_base::{TableId, Tid};
use albireo_storage::{ChangeEvent, ColumnSet};
use parking_lot::Mutex;

/// Rows that a feed holds; beyond that whoever follows begins again.
const MOST_CHANGED: usize = 4 << 20;

/// What was changed.
#[derive(Default)]
struct Changed {
    rows: Vec<(Tid, u64)>,
    /// More than is told row by row.
    lost: bool,
}

/// The changes of a table in one partition.
pub(crate) struct Feed {
    table: TableId,
    /// New values of other columns are not told.
    columns: ColumnSet,
    changed: Mutex<Changed>,
}

impl Feed {
    /// The rows that were changed since this was asked before, each once; `None`: more than was told.
    pub(crate) fn take(&self) -> Option<Vec<Tid>> {
        let Changed { rows, lost } = std::mem::take(&mut *self.changed.lock());
        if lost {
            return None;
        }
        let mut tids: Vec<Tid> =
            rows.iter().flat_map(|(Tid(first), rows)| (*first..first + rows).map(Tid)).collect();
        tids.sort_unstable();
        tids.dedup();
        Some(tids)
    }

    /// About how many changes wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.lock().rows.len()
    }

    fn put(&self, tid: Tid, event: ChangeEvent) {
        let rows = match event {
            ChangeEvent::Wrote(column) if !self.columns.has(column) => return,
            ChangeEvent::Came { rows } => rows,
            _ => 1,
        };
        let mut changed = self.changed.lock();
        if changed.rows.len() < MOST_CHANGED {
            changed.rows.push((tid, rows));
        } else {
            changed.lost = true;
        }
    }
}

/// The feeds of a partition; those that nobody follows any more go by themselves.
#[derive(Default)]
pub(crate) struct Feeds(Vec<Weak<Feed>>);

impl Feeds {
    /// A feed of a table.
    pub(crate) fn open(&mut self, table: TableId, columns: ColumnSet) -> Arc<Feed> {
        let feed = Arc::new(Feed { table, columns, changed: Mutex::default() });
        self.0.push(Arc::downgrade(&feed));
        feed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whoever follows a table of a change.
    pub(crate) fn tell(&mut self, table: TableId, tid: Tid, event: ChangeEvent) {
        self.0.retain(|feed| {
            let Some(feed) = feed.upgrade() else { return false };
            if feed.table == table {
                feed.put(tid, event);
            }
            true
        });
    }

    /// Tells whoever follows a table that more was changed than is told.
    pub(crate) fn lose(&mut self, table: TableId) {
        let feeds = self.0.iter().filter_map(Weak::upgrade).filter(|feed| feed.table == table);
        feeds.for_each(|feed| feed.changed.lock().lost = true);
    }
}
