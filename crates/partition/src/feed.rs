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

/// Changes of a piece of a list, 64 KiB.
const PIECE: usize = 4096;
/// Pieces that a feed holds; beyond that whoever follows begins again.
const MOST_PIECES: usize = 1024;
/// Empty pieces that are kept.
const SPARE: usize = 16;

/// The first of some rows that were changed together, and how many they are.
type Piece = Vec<(Tid, u64)>;

/// What was changed.
#[derive(Default)]
struct Changed {
    /// All but the last are full.
    pieces: Vec<Piece>,
    /// Empty ones whose memory has been touched: a page that is new to the process takes longer to come, two
    /// milliseconds for a huge one in some virtual machines, than whoever commits should wait.
    spare: Vec<Piece>,
    /// More than is told row by row.
    lost: bool,
}

impl Changed {
    fn count(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    fn push(&mut self, tid: Tid, rows: u64) {
        if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
            if self.pieces.len() == MOST_PIECES {
                self.lost = true;
                return;
            }
            let piece = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
            self.pieces.push(piece);
        }
        self.pieces.last_mut().expect("there is one with room").push((tid, rows));
    }
}

/// Memory for the first changes of a feed.
pub(crate) struct Room(Vec<Piece>);

impl Room {
    /// Touched.
    pub(crate) fn new() -> Self {
        let piece = || {
            let mut piece = vec![(Tid(u64::MAX), 0); PIECE];
            piece.clear();
            piece
        };
        Self(std::iter::repeat_with(piece).take(SPARE).collect())
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
        let (mut pieces, lost) = {
            let mut changed = self.changed.lock();
            (std::mem::take(&mut changed.pieces), std::mem::take(&mut changed.lost))
        };
        let rows = pieces.iter().flatten();
        let mut tids: Vec<Tid> = rows.flat_map(|(Tid(first), rows)| (*first..first + rows).map(Tid)).collect();
        let mut changed = self.changed.lock();
        while changed.spare.len() < SPARE
            && let Some(mut piece) = pieces.pop()
        {
            piece.clear();
            changed.spare.push(piece);
        }
        drop(changed);
        tids.sort_unstable();
        tids.dedup();
        (!lost).then_some(tids)
    }

    /// About how many changes wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.lock().count()
    }

    fn put(&self, tid: Tid, event: ChangeEvent) {
        let rows = match event {
            ChangeEvent::Wrote(column) if !self.columns.has(column) => return,
            ChangeEvent::Came { rows } => rows,
            _ => 1,
        };
        self.changed.lock().push(tid, rows);
    }
}

/// The feeds of a partition; those that nobody follows any more go by themselves.
#[derive(Default)]
pub(crate) struct Feeds(Vec<Weak<Feed>>);

impl Feeds {
    /// A feed of a table.
    pub(crate) fn open(&mut self, table: TableId, columns: ColumnSet, room: Room) -> Arc<Feed> {
        let changed = Changed { spare: room.0, ..Changed::default() };
        let feed = Arc::new(Feed { table, columns, changed: Mutex::new(changed) });
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
