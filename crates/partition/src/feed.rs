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

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{TableId, Tid};
use albireo_storage::{ChangeEvent, ColumnSet, RowSet};
use parking_lot::Mutex;

/// What was changed.
struct Changed {
    rows: RowSet,
    /// Empty, with memory for the next ones.
    spare: RowSet,
    /// More than is told row by row.
    lost: bool,
}

/// Memory for the changes of a feed. It has been touched: a page that is new to the process takes longer to come, two
/// milliseconds for a huge one in some virtual machines, than whoever commits should wait.
pub(crate) struct Room(RowSet, RowSet);

impl Room {
    /// For a table of so many slots, and some more.
    pub(crate) fn new(slots: u64) -> Self {
        let slots = slots + slots / 8 + CHUNK_ROWS as u64;
        Self(RowSet::with_room(slots), RowSet::with_room(slots))
    }
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
        let (mut rows, lost) = {
            let changed = &mut *self.changed.lock();
            let spare = std::mem::take(&mut changed.spare);
            (std::mem::replace(&mut changed.rows, spare), std::mem::take(&mut changed.lost))
        };
        let tids = rows.from(Tid(0)).collect();
        rows.clear();
        self.changed.lock().spare = rows;
        (!lost).then_some(tids)
    }

    /// How many rows wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.lock().rows.count() as usize
    }

    fn put(&self, tid: Tid, event: ChangeEvent) {
        let rows = match event {
            ChangeEvent::Wrote(column) if !self.columns.has(column) => return,
            ChangeEvent::Came { rows } => rows,
            _ => 1,
        };
        let changed = &mut *self.changed.lock();
        if let ChangeEvent::Moved { to } = event {
            changed.rows.set(to, true);
        }
        (tid.0..tid.0 + rows).for_each(|tid| changed.rows.set(Tid(tid), true));
    }
}

/// The feeds of a partition; those that nobody follows any more go by themselves.
#[derive(Default)]
pub(crate) struct Feeds(Vec<Weak<Feed>>);

impl Feeds {
    /// A feed of a table.
    pub(crate) fn open(&mut self, table: TableId, columns: ColumnSet, room: Room) -> Arc<Feed> {
        let changed = Changed { rows: room.0, spare: room.1, lost: false };
        let feed = Arc::new(Feed { table, columns, changed: Mutex::new(changed) });
        self.0.push(Arc::downgrade(&feed));
        feed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody follows a table.
    pub(crate) fn is_followed(&self) -> bool {
        self.0.iter().any(|feed| feed.strong_count() > 0)
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
