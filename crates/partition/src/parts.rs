//! A transaction of several statements, as a partition sees it: one transaction for each statement.
//!
//! Responsible for: writing again what the statements before have written, noting what this one reads and writes,
//! the snapshot that shows both. Not responsible for: what becomes of the statements between (the engine), telling
//! readers (`readers`).
//!
//! ```text
//!                 somebody else comes: taken back, kept as a record
//!   IN PLACE ---------------------------------------------------------> AWAY
//!      |  ^                                                              |
//!      |  `--------------------------------------------------------------'
//!      |          the next statement: written again
//!      `--> COMMIT, if the reader was told of nothing
//! ```
//!
//! I-1 Whatever runs, whichever way, reads plain rows: those that were committed, and those of its own transaction.
//! Nobody else runs while those of an open transaction are in place.
//! I-2 A record written again does what it did: whoever changed a row or key that it names has told the reader, who
//! does not write it again.

use std::sync::Arc;

use albireo_base::{IndexId, PartitionId, SqlState, TableId, Tid};
use albireo_storage::{
    ApplyError, BudgetSpent, ChangeEvent, DatabaseSnapshot, SHARED_SITE, Savepoint, SnapshotBuilder,
    SnapshotRegistry, SnapshotScope, Table, UndoLog, WrittenTables, apply_writes, encode_part,
};

use crate::data::PartitionData;
use crate::handle::TableHandle;
use crate::locks::Held;
use crate::marks::{LockMode, Mark};
use crate::parked::{Parked, PartWritten};
use crate::readers::{Read, Reader, Reads};
use crate::transaction::Site;
use crate::{Abort, Transaction};

/// Parts of a transaction of several statements.
impl Transaction {
    /// Notes from now on what it reads, for `reader`.
    pub fn note_reads(&mut self, reader: &Arc<Reader>) {
        self.reads = Some(self.spare_reads.take().unwrap_or_default());
        self.reader = Some(Arc::clone(reader));
    }

    /// Whether it notes what it reads.
    #[inline]
    pub fn notes_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// It reads a row.
    #[inline]
    pub fn note_row(&mut self, site: Site, table: TableId, tid: Tid) {
        if let Some(reads) = &mut self.reads {
            reads.note(site.number(), Read::Row(table, tid, Mark::Read));
        }
    }

    /// It reads all rows whose keys in an index begin with what is between these, inclusive; see
    /// [`Table::between`].
    #[inline]
    pub fn note_range(&mut self, site: Site, table: TableId, index: IndexId, low: u128, high: u128) {
        if let Some(reads) = &mut self.reads {
            reads.note(site.number(), Read::Range(table, index, low, high));
        }
    }

    /// It reads all rows of a table.
    #[inline]
    pub fn note_table(&mut self, site: Site, table: TableId) {
        if let Some(reads) = &mut self.reads {
            reads.note(site.number(), Read::Table(table, Mark::Read));
        }
    }

    /// What it reads counts no more, but for what it locks, or counts again: SKIP LOCKED promises no more than that.
    pub fn mute_reads(&mut self, mutes: bool) {
        if let Some(reads) = &mut self.reads {
            reads.muted = if mutes { reads.muted + 1 } else { reads.muted.saturating_sub(1) };
        }
    }

    /// Locks a row, or all of a table where none is given; who keeps it from that, if somebody does. A serial
    /// transaction locks nothing, and only asks.
    ///
    /// # Errors
    /// [`Abort::Crossing`] for a row of a shared table, if it does not own all partitions.
    pub fn lock(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Option<Tid>,
        mode: LockMode,
    ) -> Result<Option<Held>, Abort> {
        let mark = Mark::Locked(mode);
        let at = match table.is_shared() {
            true if !self.owns_all() => return Err(Abort::Crossing),
            true => 0..self.sites.len(),
            false => usize::from(site.number())..usize::from(site.number()) + 1,
        };
        let reader = self.reader.as_ref();
        let holder = |data: &PartitionData| {
            data.readers.holder(table.id(), tid, mark, reader).map(|reader| Held::by(reader.owner()))
        };
        let held = self.sites[at].iter().find_map(holder);
        if held.is_none()
            && let Some(reads) = &mut self.reads
        {
            reads.note(
                site.number(),
                match tid {
                    Some(tid) => Read::Row(table.id(), tid, mark),
                    None => Read::Table(table.id(), mark),
                },
            );
        }
        Ok(held)
    }

    /// What it has locked it has only read: it has failed.
    pub fn forget_locks(&mut self) {
        if let Some(reads) = &mut self.reads {
            reads.forget_marks();
        }
    }

    /// Who has locked a row that it has changed since `since`.
    pub fn lock_in_the_way(&self, since: Savepoint) -> Option<Held> {
        let reader = self.reader.as_ref();
        self.undo.events(since).find_map(|(number, table, tid, event)| {
            if !matches!(event, ChangeEvent::Went | ChangeEvent::Wrote(_)) {
                return None;
            }
            let at = match number {
                SHARED_SITE => 0..self.sites.len(),
                number => usize::from(number)..usize::from(number) + 1,
            };
            self.sites[at].iter().find_map(|data| {
                data.readers
                    .holder(table, Some(tid), Mark::Written, reader)
                    .map(|reader| Held::by(reader.owner()))
            })
        })
    }

    /// Leaves whom it must wait for to who runs it.
    pub fn wait_for(&mut self, held: Held) {
        self.waits_for = Some(held);
    }

    /// Whom it must wait for.
    pub fn take_wait(&mut self) -> Option<Held> {
        self.waits_for.take()
    }

    /// Enters what it has locked, what it has written since `since`, and, if `all`, what it has read, for `reader`, whose
    /// transaction is in this step: whoever commits a change of it will tell.
    pub fn enter_reads(&mut self, reader: &Arc<Reader>, since: Savepoint, all: bool, step: u32) {
        let mut reads = self.reads.take().unwrap_or_default();
        reads.muted = 0;
        if !all {
            reads.noted.retain(|(_, read)| read.mark() != Mark::Read);
        }
        self.note_written(&mut reads, since);
        reads.without_own(&self.undo);
        for (site, read) in reads.noted.drain(..) {
            self.sites[usize::from(site)].readers.enter(read, reader, step);
        }
        self.spare_reads = Some(reads);
    }

    /// The rows that it has changed since `since`, and the keys that these must be alone with.
    fn note_written(&self, reads: &mut Reads, since: Savepoint) {
        for (number, table, tid, event) in self.undo.events(since) {
            // Of a shared table it is at home that counts: whoever changes one looks in all partitions.
            let site = if number == SHARED_SITE { self.home() } else { Site(number) };
            let data = self.written_table(number, table);
            match event {
                ChangeEvent::Went | ChangeEvent::Wrote(_) => {
                    reads.note(site.number(), Read::Row(table, tid, Mark::Written));
                }
                ChangeEvent::Came { rows } => {
                    (tid.0..tid.0 + rows).for_each(|tid| note_keys(reads, site, data, Tid(tid), None));
                }
                ChangeEvent::Entered(index) => note_keys(reads, site, data, tid, Some(index)),
                // The row is the same.
                ChangeEvent::Moved { .. } => {}
            }
        }
    }

    fn written_table(&self, site: u16, table: TableId) -> &Table {
        let tables = match site {
            SHARED_SITE => &self.sites[0].shared.as_ref().expect("their writer owns them").tables,
            site => &self.sites[usize::from(site)].tables,
        };
        tables[table.index()].as_ref().expect("a table stays as long as a transaction")
    }

    /// Forgets what `reader` has read in the partitions that the transaction owns.
    pub fn leave(&mut self, reader: &Reader) {
        self.sites.iter_mut().for_each(|site| site.readers.leave(reader));
    }

    /// What it has written, by partition.
    pub(crate) fn parts_written(&mut self) -> Vec<PartWritten> {
        if self.undo.is_empty() {
            return Vec::new();
        }
        let mut writes = std::mem::take(&mut self.writes);
        writes.collect(&self.undo);
        let numbers = (0..self.sites.len() as u16).chain([SHARED_SITE]);
        let part = |site: u16| {
            let mut record = Vec::new();
            let table_of = |site, table| self.written_table(site, TableId(table));
            encode_part(&writes, &self.undo, site, table_of, &mut record);
            let partition = (site != SHARED_SITE).then(|| self.sites[usize::from(site)].id);
            (!record.is_empty()).then(|| PartWritten::new(partition, record))
        };
        let parts = numbers.filter_map(part).collect();
        self.writes = writes;
        parts
    }

    /// Keeps what it has written, which is about to be taken back.
    pub fn park(&mut self, parked: &Parked) {
        let parts = self.parts_written();
        if self.owns_all() {
            return parked.set(parts);
        }
        let owned: Vec<PartitionId> = self.sites.iter().map(|site| site.id).collect();
        parked.put_all(&owned, parts);
    }

    /// The table of each change since `since`.
    pub fn tables_written(&self, since: Savepoint) -> impl Iterator<Item = TableId> {
        self.undo.events(since).map(|(_, table, ..)| table)
    }

    /// Whether all that a snapshot covers is still as it shows it.
    ///
    /// # Panics
    /// It does not own all partitions.
    pub fn is_current(&self, seen: &DatabaseSnapshot) -> bool {
        assert!(self.owns_all(), "a snapshot is of all partitions");
        let own = self.sites.iter().flat_map(|data| data.tables.iter().map(move |table| (data.id, table)));
        let shared = self.sites[0].shared.iter().flat_map(|shared| shared.tables.iter());
        let mut all = own.chain(shared.map(|table| (PartitionId(0), table)));
        all.all(|(partition, table)| table.as_ref().is_none_or(|table| seen.is_current(partition, table)))
    }

    /// A snapshot that shows what it has written too, for nobody else.
    ///
    /// # Errors
    /// Snapshots hold as much memory as they may.
    ///
    /// # Panics
    /// It does not own all partitions.
    pub fn snapshot(
        &mut self,
        registry: &Arc<SnapshotRegistry>,
        scope: &SnapshotScope,
    ) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        assert!(self.owns_all(), "a snapshot is of all partitions");
        snapshot_of(self.sites.iter_mut(), registry, scope)
    }

    /// Writes again what statements before have written.
    ///
    /// # Errors
    /// [`Abort::Crossing`] if it does not own the partition; the rows are not as those statements left them.
    pub fn write_again(&mut self, part: &PartWritten) -> Result<(), Abort> {
        let site = match part.partition {
            Some(partition) => self.site_of_partition(partition)?.number(),
            None if self.owns_all() => SHARED_SITE,
            None => return Err(Abort::Crossing),
        };
        let again = apply_writes(&part.record, &mut At { tx: self, site });
        again.map(drop).map_err(|error| match error {
            ApplyError::Table(error) => Abort::Table(error),
            error => Abort::raise(SqlState::INTERNAL_ERROR, error.to_string()),
        })
    }
}

/// Notes the keys of a row in unique indexes, or in one of them.
fn note_keys(reads: &mut Reads, site: Site, table: &Table, tid: Tid, only: Option<IndexId>) {
    if !table.is_live(tid) {
        return;
    }
    for (number, index) in table.spec().indexes.iter().enumerate() {
        let id = IndexId(number as u16);
        if index.unique && only.is_none_or(|only| only == id) {
            let key = table.key_prefix(id, tid);
            reads.note(site.number(), Read::Range(table.spec().id, id, key, key));
        }
    }
}

/// The tables of one site, under whichever number a record has it.
struct At<'t> {
    tx: &'t mut Transaction,
    site: u16,
}

impl WrittenTables for At<'_> {
    fn table_mut(&mut self, _: u16, table: TableId) -> Option<(&mut Table, &mut UndoLog)> {
        self.tx.table_mut(self.site, table)
    }
}

/// A snapshot of these partitions, which are all; the first holds the only reference to the shared tables.
pub(crate) fn snapshot_of<'d>(
    sites: impl Iterator<Item = &'d mut PartitionData>,
    registry: &Arc<SnapshotRegistry>,
    scope: &SnapshotScope,
) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
    let mut builder = SnapshotBuilder::new(registry, scope.clone())?;
    for data in sites {
        let id = data.id;
        data.tables.iter_mut().flatten().for_each(|table| builder.add(id, table));
        if let Some(shared) = data.shared_mut() {
            shared.tables.iter_mut().flatten().for_each(|table| builder.add(PartitionId(0), table));
        }
    }
    Ok(builder.finish())
}
