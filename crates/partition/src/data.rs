//! What one partition holds.

use std::sync::Arc;

use albireo_base::PartitionId;
use albireo_env::Clock;
use albireo_storage::{SHARED_SITE, Savepoint, Table, UndoLog, UndoRecord};
use hdrhistogram::Histogram;

use crate::Transaction;
use crate::feed::Feeds;
use crate::parked::Parked;
use crate::readers::Readers;

/// The tables that all partitions read. Every partition holds a reference; whoever owns all
/// partitions takes the references of all but the first away and so may write.
#[derive(Default)]
pub(crate) struct SharedTables {
    pub(crate) tables: Vec<Option<Table>>,
}

/// The tables of one partition.
pub(crate) struct PartitionData {
    pub(crate) id: PartitionId,
    pub(crate) tables: Vec<Option<Table>>,
    /// `None` only while a crossing owner has it.
    pub(crate) shared: Option<Arc<SharedTables>>,
    /// What open transactions of several statements have read here.
    pub(crate) readers: Readers,
    /// Who is told of changes of its tables; of shared ones in the first partition.
    pub(crate) feeds: Feeds,
}

impl PartitionData {
    /// Whether nobody is told of what a commit changes.
    fn is_unwatched(&self) -> bool {
        self.readers.is_empty() && self.feeds.is_empty()
    }

    /// Whether nobody but a transaction that runs here may hold on to TIDs: no open transaction has read rows, and nobody
    /// works beside a table.
    pub(crate) fn holds_no_tids(&self) -> bool {
        self.readers.is_empty() && !self.feeds.is_followed()
    }
}

/// A partition behind its token.
pub(crate) struct PartitionState {
    /// Its transactions, one after another, with its data.
    pub(crate) tx: Transaction,
    /// Who has left what it has written where it is: it is taken back before anybody else runs.
    pub(crate) parked: Option<Arc<Parked>>,
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    /// How long owners waited at the barrier, in nanoseconds.
    pub(crate) pauses: Histogram<u64>,
    /// Those of them that were for a snapshot.
    pub(crate) snapshot_pauses: Histogram<u64>,
}

/// No pauses yet.
pub(crate) fn pauses() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("an hour with three digits is allowed")
}

impl PartitionState {
    /// An empty partition, one of `partitions`.
    pub(crate) fn new(id: PartitionId, partitions: u16, shared: Arc<SharedTables>, clock: Clock) -> Self {
        let (readers, feeds) = (Readers::default(), Feeds::default());
        let data = PartitionData { id, tables: Vec::new(), shared: Some(shared), readers, feeds };
        Self {
            tx: Transaction::of_partition(data, partitions, clock),
            parked: None,
            committed: 0,
            rolled_back: 0,
            pauses: pauses(),
            snapshot_pauses: pauses(),
        }
    }

    /// Somebody takes the token: whoever has parked its writes here gets them as a record.
    #[inline(always)]
    pub(crate) fn take(&mut self) {
        if self.parked.is_some() {
            self.vacate();
        }
        self.check_at_rest();
    }

    /// As [`PartitionState::take`], for the next statement of `mine`; whether it finds its writes where it left them.
    pub(crate) fn take_for(&mut self, mine: &Arc<Parked>) -> bool {
        match &self.parked {
            Some(parked) if Arc::ptr_eq(parked, mine) => {
                self.parked = None;
                true
            }
            _ => {
                self.take();
                false
            }
        }
    }

    #[cold]
    fn vacate(&mut self) {
        let Some(parked) = self.parked.take() else { return };
        let parts = self.tx.parts_written();
        match self.tx.partitions() {
            1 => parked.set(parts),
            _ => parked.put(self.data().id, parts),
        }
        self.tx.roll_back_to(Savepoint::START);
    }

    /// What holds whenever somebody has taken the token.
    #[inline(always)]
    fn check_at_rest(&self) {
        debug_assert_eq!(self.tx.sites.len(), 1, "a crossing owner has given the partition's data back");
        debug_assert!(self.tx.undo.is_empty(), "the last transaction was committed, rolled back or parked");
        debug_assert!(self.data().shared.is_some(), "a crossing owner has given the shared tables back");
    }

    pub(crate) fn data(&self) -> &PartitionData {
        &self.tx.sites[0]
    }

    pub(crate) fn data_mut(&mut self) -> &mut PartitionData {
        &mut self.tx.sites[0]
    }
}

impl PartitionData {
    /// The shared tables, for writing; `None` while other partitions hold references.
    pub(crate) fn shared_mut(&mut self) -> Option<&mut SharedTables> {
        self.shared.as_mut().and_then(Arc::get_mut)
    }
}

/// The table that an undo record or a deferred action speaks of.
pub(crate) fn table_of(sites: &mut [PartitionData], site: u16, table: u32) -> &mut Table {
    let tables = match site {
        SHARED_SITE => &mut sites[0].shared_mut().expect("a writer of shared tables owns them").tables,
        site => &mut sites[site as usize].tables,
    };
    tables[table as usize].as_mut().expect("a table is not dropped inside a transaction")
}

/// Takes everything back, newest change first.
pub(crate) fn roll_back(sites: &mut [PartitionData], undo: &mut UndoLog, to: Savepoint) {
    debug_assert!(to.is_before(undo.savepoint()), "what was rolled back is not rolled back to");
    while let Some(record) = undo.pop(to) {
        let record: UndoRecord = record;
        table_of(sites, record.site(), record.table()).undo(undo, &record);
    }
    assert!(undo.savepoint() == to, "rolling back takes back all that came after the savepoint");
}

/// Makes everything final; `name` says who did it.
pub(crate) fn commit(sites: &mut [PartitionData], undo: &mut UndoLog, name: &str) {
    tell_of_changes(sites, undo, name);
    for &(site, table) in undo.moved_in() {
        table_of(sites, site, table).settle_moved();
    }
    let mut tidy: Vec<(u16, u32, u32, u16)> = Vec::new();
    undo.commit(
        |site, table, tid| table_of(sites, site, table).free_slot(tid),
        |site, table, chunk, heap| tidy.push((site, table, chunk, heap)),
    );
    debug_assert!(undo.savepoint() == Savepoint::START, "a commit leaves nothing to take back");
    for (site, table, chunk, heap) in tidy {
        table_of(sites, site, table).tidy_heap(chunk, heap);
    }
}

/// Tells all who have read, or follow, what a transaction has changed that is about to be final.
#[inline]
fn tell_of_changes(sites: &mut [PartitionData], undo: &UndoLog, rival: &str) {
    if !sites.iter().all(PartitionData::is_unwatched) {
        tell_them(sites, undo, rival);
    }
}

#[cold]
fn tell_them(sites: &mut [PartitionData], undo: &UndoLog, rival: &str) {
    for (site, id, tid, event) in undo.events(Savepoint::START) {
        let at = if site == SHARED_SITE { 0 } else { usize::from(site) };
        let feeds = &mut sites[at].feeds;
        if !feeds.is_empty() {
            feeds.tell(id, tid, event);
        }
        if site == SHARED_SITE {
            let shared = sites[0].shared.as_ref().expect("a writer of shared tables owns them");
            let table = shared.tables[id.index()].as_ref().expect("a table stays as long as a transaction");
            sites.iter().for_each(|site| site.readers.tell(table, tid, event, rival));
        } else {
            let data = &sites[at];
            let table = data.tables[id.index()].as_ref().expect("a table stays as long as a transaction");
            data.readers.tell(table, tid, event, rival);
        }
    }
}
