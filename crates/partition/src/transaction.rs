//! What a procedure sees while it runs.

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, StatementProgress, TableId, Tid, Value};
use albireo_env::Clock;
use albireo_storage::{
    Applied, ApplyError, CellShape, Cells, FillShape, Filled, FixedRow, NewRow, RowAddress, RowFault,
    RowShape, RowUpdate, SHARED_SITE, Savepoint, ShapeRow, Table, TableError, UndoLog, WriteSet,
    WrittenTables, apply_writes,
};

use crate::bulk::AppendError;
use crate::data::{PartitionData, roll_back};
use crate::handle::TableHandle;
use crate::locks::Held;
use crate::readers::{Reader, Reads};
use crate::{Abort, BulkInsert};

/// A partition that the running transaction owns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site(pub(crate) u16);

impl Site {
    /// Its number among those that the transaction owns, from 0.
    #[inline(always)]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// The running transaction: the only one on the partitions it owns.
///
/// A partition has one, which is used again and again, and so have the transactions that cross partitions.
///
/// In a pre-pass ([`albireo_storage::with_prepass`]) a change of a row that is not in memory succeeds without being made, if
/// its values are given; one by a closure is refused.
pub struct Transaction {
    /// One partition, or several in order; of a crossing one that is not running, none.
    pub(crate) sites: Vec<PartitionData>,
    pub(crate) undo: UndoLog,
    /// What its record is made of.
    pub(crate) writes: WriteSet,
    home: u16,
    partitions: u16,
    /// Whether it runs over several partitions, or all.
    pub(crate) crossing: bool,
    pub(crate) clock: Clock,
    /// Microseconds since 1970, read at first use.
    now: Option<i64>,
    synchronous: Option<bool>,
    /// What it reads, if that is to be known.
    pub(crate) reads: Option<Box<Reads>>,
    /// The memory of the last ones, empty.
    pub(crate) spare_reads: Option<Box<Reads>>,
    /// For whom: of a transaction of several statements.
    pub(crate) reader: Option<Arc<Reader>>,
    /// Who holds a lock that it must wait for.
    pub(crate) waits_for: Option<Held>,
    /// The partition that it has reached for last, without owning it.
    reached: Cell<Option<PartitionId>>,
}

impl Transaction {
    fn new(sites: Vec<PartitionData>, partitions: u16, crossing: bool, clock: Clock) -> Self {
        let (undo, writes) = (UndoLog::default(), WriteSet::default());
        Self {
            sites,
            undo,
            writes,
            home: 0,
            partitions,
            crossing,
            clock,
            now: None,
            synchronous: None,
            reads: None,
            spare_reads: None,
            reader: None,
            waits_for: None,
            reached: Cell::new(None),
        }
    }

    /// Those of one of so many partitions.
    pub(crate) fn of_partition(data: PartitionData, partitions: u16, clock: Clock) -> Self {
        Self::new(vec![data], partitions, false, clock)
    }

    /// Those that cross so many partitions. Whoever runs one puts their data in.
    pub(crate) fn crossing(partitions: u16, clock: Clock) -> Self {
        Self::new(Vec::new(), partitions, true, clock)
    }

    /// The next one begins, at home in the site `home`.
    pub(crate) fn begin(&mut self, home: u16, now: Option<i64>) {
        debug_assert!(self.undo.is_empty(), "the last transaction has ended");
        self.resume(home, now);
    }

    /// A part of one begins whose writes may be in place.
    pub(crate) fn resume(&mut self, home: u16, now: Option<i64>) {
        let owned = self.sites.len();
        debug_assert!(owned == 1 || self.crossing, "a transaction of several partitions crosses them");
        debug_assert!(usize::from(home) < owned, "a transaction is at home where it owns");
        (self.home, self.now, self.synchronous) = (home, now, None);
        (self.reads, self.reader, self.waits_for) = (None, None, None);
        self.reached.set(None);
    }

    /// The transaction's time, in microseconds since 1970 UTC: the same at every call.
    #[inline]
    pub fn now(&mut self) -> i64 {
        *self.now.get_or_insert_with(|| self.clock.unix_us())
    }

    /// Whether it asked for its caller to wait until a crash cannot take it back, or not to; `None`: it did not
    /// say, and the call or the database does.
    #[inline]
    pub fn synchronous_commit(&self) -> Option<bool> {
        self.synchronous
    }

    /// Asks for that: `SET LOCAL synchronous_commit`.
    pub fn set_synchronous_commit(&mut self, synchronous: Option<bool>) {
        self.synchronous = synchronous;
    }

    /// How often it has inserted or deleted a row so far.
    pub fn rows_moved(&self) -> u64 {
        self.undo.rows_moved()
    }

    /// Whether it runs over several partitions, or all, as one that crosses them.
    pub fn is_crossing(&self) -> bool {
        self.crossing
    }

    /// Whether it owns all partitions.
    #[inline]
    pub fn owns_all(&self) -> bool {
        self.sites.len() == usize::from(self.partitions)
    }

    /// Whether it owns a partition.
    pub fn owns(&self, partition: PartitionId) -> bool {
        self.sites.iter().any(|site| site.id == partition)
    }

    /// The partition for which it has reached in vain; `None`: not one alone.
    pub(crate) fn take_reached(&mut self) -> Option<PartitionId> {
        self.reached.take()
    }

    /// Where the transaction is at home.
    #[inline(always)]
    pub fn home(&self) -> Site {
        Site(self.home)
    }

    /// The partitions of the database.
    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The partition of this [number](Site::number).
    ///
    /// # Panics
    /// The transaction owns fewer.
    #[inline(always)]
    pub fn site(&self, number: u16) -> Site {
        assert!(usize::from(number) < self.sites.len(), "a site is owned by the transaction");
        Site(number)
    }

    /// Every partition the transaction owns.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = Site> + use<> {
        (0..self.sites.len() as u16).map(Site)
    }

    /// The partition at `site`.
    pub fn partition(&self, site: Site) -> PartitionId {
        self.sites[site.0 as usize].id
    }

    /// The site of rows whose partitioning column holds the whole number `key`; asks for a
    /// crossing transaction when this one does not own it.
    #[inline]
    pub fn site_of(&self, key: i64) -> Result<Site, Abort> {
        if self.partitions == 1 {
            return Ok(Site(0));
        }
        self.owned_site(key.rem_euclid(i64::from(self.partitions)) as u16)
    }

    /// As [`Transaction::site_of`], for any value.
    pub fn site_of_value(&self, value: &Value) -> Result<Site, Abort> {
        self.owned_site(albireo_storage::partition_of(value, self.partitions))
    }

    /// As [`Transaction::site_of`], for a partition.
    pub fn site_of_partition(&self, partition: PartitionId) -> Result<Site, Abort> {
        self.owned_site(partition.0)
    }

    #[inline]
    fn owned_site(&self, partition: u16) -> Result<Site, Abort> {
        debug_assert!(partition < self.partitions, "rows belong to a partition that is there");
        match self.owns_all() {
            true => Ok(Site(partition)),
            false if self.sites[0].id.0 == partition => Ok(Site(0)),
            false => self.other_site(PartitionId(partition)),
        }
    }

    #[inline(never)]
    fn other_site(&self, partition: PartitionId) -> Result<Site, Abort> {
        match self.sites.iter().position(|site| site.id == partition) {
            Some(site) => Ok(Site(site as u16)),
            None => {
                self.reached.set(Some(partition));
                Err(Abort::Crossing)
            }
        }
    }

    /// A table of the home partition, or a shared table.
    ///
    /// # Panics
    /// The table was dropped.
    #[inline(always)]
    pub fn table(&self, table: TableHandle) -> &Table {
        self.table_at(self.home(), table)
    }

    /// A table at `site`; the site of a shared table does not matter.
    ///
    /// # Panics
    /// The table was dropped.
    #[inline(always)]
    pub fn table_at(&self, site: Site, table: TableHandle) -> &Table {
        let data = match table.shared {
            false => &self.sites[site.0 as usize].tables,
            true => &self.sites[0].shared.as_ref().expect("the first site holds the shared tables").tables,
        };
        data[table.id.index()].as_ref().expect("the table exists")
    }

    /// The table for writing, and the undo buffer.
    #[inline(always)]
    fn table_mut(&mut self, site: Site, table: TableHandle) -> Result<(&mut Table, &mut UndoLog), Abort> {
        let (tables, site) = match table.shared {
            false => (&mut self.sites[site.0 as usize].tables, site.0),
            true => match self.sites[0].shared_mut() {
                Some(shared) => (&mut shared.tables, SHARED_SITE),
                None => return Err(Abort::Crossing),
            },
        };
        self.undo.set_site(site);
        Ok((tables[table.id.index()].as_mut().expect("the table exists"), &mut self.undo))
    }

    /// Begins a new row of a table at home.
    #[inline(always)]
    pub fn insert(&mut self, table: TableHandle) -> Result<NewRow<'_>, Abort> {
        self.insert_at(self.home(), table)
    }

    /// Begins a new row of a table at `site`.
    #[inline(always)]
    pub fn insert_at(&mut self, site: Site, table: TableHandle) -> Result<NewRow<'_>, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.insert(undo)?)
    }

    /// Inserts a row at home; see [`Table::insert_row`].
    #[inline(always)]
    pub fn insert_row<V: ShapeRow>(
        &mut self,
        table: TableHandle,
        shape: &RowShape<V>,
        values: V::At<'_>,
    ) -> Result<Tid, Abort> {
        let (table, undo) = self.table_mut(self.home(), table)?;
        Ok(table.insert_row(undo, shape, values)?)
    }

    /// Replaces values of a row at home by `change` of them; see [`Table::update_row`].
    #[inline(always)]
    pub fn update_row<V: FixedRow>(
        &mut self,
        table: TableHandle,
        tid: Tid,
        shape: &RowShape<V>,
        change: impl FnOnce(V) -> V,
    ) -> Result<V, Abort> {
        self.update_row_at(self.home(), table, tid, shape, change)
    }

    /// Replaces values of a row at `site` by `change` of them; see [`Table::update_row`].
    #[inline(always)]
    pub fn update_row_at<V: FixedRow>(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        shape: &RowShape<V>,
        change: impl FnOnce(V) -> V,
    ) -> Result<V, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.update_row(undo, tid, shape, change)?)
    }

    /// Inserts a row of values at `site`.
    pub fn insert_values_at(
        &mut self,
        site: Site,
        table: TableHandle,
        values: &[Value],
    ) -> Result<Tid, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.insert_values(undo, values)?)
    }

    /// Makes rows that were collected rows of their table, all or none, and counts them in `progress`; what is wrong with
    /// one of them is left in `fault`.
    ///
    /// # Errors
    /// A key is there twice, there is no memory, or the transaction does not own their partitions. Rows of some
    /// partitions may have been appended: the transaction is to be rolled back.
    pub fn append(
        &mut self,
        rows: BulkInsert,
        progress: &StatementProgress,
        fault: &mut Option<RowFault>,
    ) -> Result<u64, Abort> {
        let handle = rows.table;
        let appended = rows.append(|partition, staged| {
            let site = match handle.shared {
                true => Site(0),
                false => self.owned_site(partition).map_err(|_| AppendError::Crossing)?,
            };
            let (table, undo) = self.table_mut(site, handle).map_err(|_| AppendError::Crossing)?;
            Ok(table.append(undo, staged, progress)?)
        });
        appended.map_err(|error| {
            if let AppendError::Row(row) = &error {
                *fault = Some(row.clone());
            }
            error.into()
        })
    }

    /// Inserts a row of cells at `site`; see [`Table::insert_cells`].
    #[inline]
    pub fn insert_cells_at(
        &mut self,
        site: Site,
        table: TableHandle,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.insert_cells(undo, shape, cells)?)
    }

    /// Where the next row of a table at `site` will be; see [`Table::vacant_row`].
    #[inline]
    pub fn vacant_row_at(&mut self, site: Site, table: TableHandle) -> Result<(Tid, RowAddress), Abort> {
        let (table, _) = self.table_mut(site, table)?;
        Ok(table.vacant_row()?)
    }

    /// Makes a row of what was written there; see [`Table::enter_filled`].
    #[inline]
    pub fn enter_filled_at(
        &mut self,
        site: Site,
        table: TableHandle,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<Tid, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.enter_filled(undo, shape, filled)?)
    }

    /// Gets a row at `site` ready for new values; see [`Table::overwrite`].
    #[inline]
    pub fn overwrite_at(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        or_not_made(table.overwrite(undo, tid, shape, nulls), None)
    }

    /// Gives a row at `site` new values; see [`Table::update_cells`].
    #[inline]
    pub fn update_cells_at(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        or_not_made(table.update_cells(undo, tid, shape, cells), ())
    }

    /// Updates a row at home in place; see [`Table::update`].
    #[inline(always)]
    pub fn update<R>(
        &mut self,
        table: TableHandle,
        tid: Tid,
        change: impl FnOnce(&mut RowUpdate<'_>) -> Result<R, TableError>,
    ) -> Result<R, Abort> {
        self.update_at(self.home(), table, tid, change)
    }

    /// Updates a row at `site` in place.
    #[inline(always)]
    pub fn update_at<R>(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        change: impl FnOnce(&mut RowUpdate<'_>) -> Result<R, TableError>,
    ) -> Result<R, Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        Ok(table.update(undo, tid, change)?)
    }

    /// Gives a row at `site` new values; see [`Table::update_values`].
    pub fn update_values_at(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(), Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        or_not_made(table.update_values(undo, tid, values), ())
    }

    /// Deletes a row at home.
    #[inline]
    pub fn delete(&mut self, table: TableHandle, tid: Tid) -> Result<(), Abort> {
        self.delete_at(self.home(), table, tid)
    }

    /// Deletes a row at `site`.
    pub fn delete_at(&mut self, site: Site, table: TableHandle, tid: Tid) -> Result<(), Abort> {
        let (table, undo) = self.table_mut(site, table)?;
        or_not_made(table.delete(undo, tid), ())
    }

    /// Writes a write record of the redo log again.
    ///
    /// # Errors
    /// The record, or the state it finds, is not what it should be.
    pub fn apply(&mut self, record: &[u8]) -> Result<Applied, ApplyError> {
        apply_writes(record, self)
    }

    /// A point to which a part of the transaction can be rolled back.
    pub fn savepoint(&self) -> Savepoint {
        self.undo.savepoint()
    }

    /// Takes everything since `to` back.
    pub fn roll_back_to(&mut self, to: Savepoint) {
        roll_back(&mut self.sites, &mut self.undo, to);
    }

    /// Changes so far.
    pub fn changes(&self) -> usize {
        self.undo.len()
    }
}

/// What a change gave; `instead` of one that was not made because its row is away: the transaction is in a pre-pass, which is
/// to find out what else it needs.
#[inline(always)]
fn or_not_made<T>(made: Result<T, TableError>, instead: T) -> Result<T, Abort> {
    match made {
        Ok(made) => Ok(made),
        Err(TableError::Away) => Ok(instead),
        Err(error) => Err(error.into()),
    }
}

impl WrittenTables for Transaction {
    fn table_mut(&mut self, site: u16, table: TableId) -> Option<(&mut Table, &mut UndoLog)> {
        self.undo.set_site(site);
        let tables = match site {
            SHARED_SITE => &mut self.sites[0].shared_mut()?.tables,
            site => &mut self.sites.get_mut(usize::from(site))?.tables,
        };
        Some((tables.get_mut(table.index())?.as_mut()?, &mut self.undo))
    }
}
