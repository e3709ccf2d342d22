//! The transaction of a running statement or routine.
//!
//! Responsible for: in which partitions rows are, changes that move rows between them, what is wrong with a row
//! in words ([`Explainer`]), what ends a statement ([`Interrupts`]). Not responsible for: rows and indexes
//! (`storage`), commit and rollback (`partition`).

use albireo_base::{CancelFlag, ColumnId, IndexId, PartitionId, SqlError, SqlState, TableId, Tid, Value};
use albireo_env::Clock;
use albireo_partition::{Abort, LockMode, Site, TableHandle, Transaction};
use albireo_plpgsql::parse::ast::RaiseLevel;
use albireo_semantics::query::tree::{self, LockWait, RowLock};
use albireo_sql::{Catalog, TableDef};
use albireo_storage::{CellShape, Cells, FillShape, Filled, RowAddress, Table, count_work};

use crate::errors::Explainer;
use crate::tables::handle;
pub use albireo_semantics::Stop;

/// Interrupts are looked for once in so many times that routines ask: it takes a clock. Compiled loops ask
/// once in 16 rounds.
const ROUNDS: u32 = 16;

/// Queries ask for interrupts once in so many rows.
const ROWS: u32 = 256;

/// The work of a round of a loop, as [`count_work`] counts it; of a compiled loop, of 16.
pub(crate) const ROUND_WORK: u32 = 512;

/// That of so many rows of a query.
pub(crate) const ROWS_WORK: u32 = 4096;

/// What ends a statement from outside.
#[derive(Clone)]
pub struct Interrupts {
    /// Somebody cancelled it.
    pub cancelled: CancelFlag,
    /// The clock of the deadline.
    pub clock: Clock,
    /// When it has taken too long.
    pub deadline_ns: Option<u64>,
}

impl Interrupts {
    /// None will come.
    pub fn none(clock: Clock) -> Self {
        Self { cancelled: CancelFlag::default(), clock, deadline_ns: None }
    }

    /// # Errors
    /// 57014 if the statement is to end.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.cancelled.is_set() {
            let text = "canceling statement due to user request";
            return Err(SqlError::new(SqlState::QUERY_CANCELED, text));
        }
        if self.deadline_ns.is_some_and(|deadline| self.clock.now() >= deadline) {
            let text = "canceling statement due to statement timeout";
            return Err(SqlError::new(SqlState::QUERY_CANCELED, text));
        }
        Ok(())
    }

    /// The error of a statement that was ended.
    pub fn ended(&self) -> SqlError {
        let ended = || SqlError::new(SqlState::QUERY_CANCELED, "the statement was ended");
        self.check().err().unwrap_or_else(ended)
    }
}

/// What RAISE told the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// How bad it is.
    pub level: RaiseLevel,
    /// What it says.
    pub message: String,
}

impl Notice {
    /// A warning.
    pub fn warning(message: String) -> Self {
        Self { level: RaiseLevel::Warning, message }
    }

    /// Whether clients hear of it, as `client_min_messages = notice` has it.
    pub fn is_for_client(&self) -> bool {
        matches!(self.level, RaiseLevel::Info | RaiseLevel::Notice | RaiseLevel::Warning)
    }
}

/// A statement under way in a transaction.
pub struct Execution<'t> {
    tx: &'t mut Transaction,
    catalog: &'t Catalog,
    interrupts: &'t Interrupts,
    progress: Progress,
}

/// How far a statement has come.
struct Progress {
    rounds: u32,
    /// Rows that may still be looked at.
    rows: u32,
    notices: Vec<Notice>,
}

impl<'t> Execution<'t> {
    /// One that begins. Its tables are those of `catalog`.
    #[inline]
    pub fn new(tx: &'t mut Transaction, catalog: &'t Catalog, interrupts: &'t Interrupts) -> Self {
        Self {
            tx,
            catalog,
            interrupts,
            progress: Progress { rounds: 0, rows: u32::MAX, notices: Vec::new() },
        }
    }

    /// Ends the statement once it has looked at so many rows, or a few more.
    pub fn allow_rows(&mut self, rows: u32) {
        self.progress.rows = rows;
    }

    /// Whether it was ended so.
    pub fn met_too_many_rows(&self) -> bool {
        self.progress.rows == 0
    }

    /// What ends it from outside.
    pub fn interrupts(&self) -> &'t Interrupts {
        self.interrupts
    }

    /// What was told to the client since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.progress.notices)
    }

    /// What queries and routines work on.
    #[inline]
    pub fn live(&mut self) -> LiveRows<'_> {
        let Self { tx, catalog, interrupts, progress } = self;
        LiveRows { tx, catalog, interrupts, progress }
    }
}

/// The rows that a running statement reads and changes: its transaction, with what says why it stops.
pub struct LiveRows<'a> {
    /// The transaction.
    pub tx: &'a mut Transaction,
    catalog: &'a Catalog,
    interrupts: &'a Interrupts,
    progress: &'a mut Progress,
}

impl LiveRows<'_> {
    /// The same, for as long as this is not used.
    #[inline]
    pub fn reborrow(&mut self) -> LiveRows<'_> {
        let Self { tx, catalog, interrupts, progress } = self;
        LiveRows { tx, catalog, interrupts, progress }
    }

    /// A table that a bound statement names, which therefore exists.
    fn def(&self, table: TableId) -> &TableDef {
        self.catalog.table(table).expect("a statement is bound again when the catalog changes")
    }

    fn handle(&self, table: TableId) -> TableHandle {
        handle(self.def(table))
    }

    /// Why a change was not made, in words.
    #[cold]
    fn stop(&self, site: Site, abort: Abort) -> Stop {
        if abort == Abort::Crossing {
            return Stop::Crossing;
        }
        let key_of = |table: TableId, index: IndexId, tid: Tid| {
            let def = self.catalog.table(table)?;
            let rows = self.tx.table_at(site, handle(def));
            let columns = &def.indexes.get(index.index())?.columns;
            rows.is_live(tid).then(|| columns.iter().map(|&column| rows.value(tid, column)).collect())
        };
        let error = Explainer { catalog: self.catalog, key_of: &key_of }.abort(abort);
        match error.state() {
            // The database has no memory left, and a handler would need some.
            SqlState::OUT_OF_MEMORY => Stop::Fatal(Box::new(error)),
            _ => error.into(),
        }
    }

    /// The partitions of the transaction that have a part of a table: of a shared one, home.
    pub fn sites(&self, table: TableId) -> Vec<Site> {
        match self.def(table).is_shared() {
            true => vec![self.tx.home()],
            false => self.tx.sites().collect(),
        }
    }

    /// The partition of the rows whose partitioning column holds `key`.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if it is not this transaction's.
    pub fn site_of(&self, table: TableId, key: &Value) -> Result<Site, Stop> {
        match self.def(table).is_shared() {
            true => Ok(self.tx.home()),
            false => self.tx.site_of_value(key).map_err(|_| Stop::Crossing),
        }
    }

    /// A partition as one of the transaction's.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if it is not.
    pub fn site_of_partition(&self, partition: PartitionId) -> Result<Site, Stop> {
        self.tx.site_of_partition(partition).map_err(|_| Stop::Crossing)
    }

    /// Asks for all partitions, because nothing says in which one the rows are.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if the transaction does not own all; never for a shared table.
    pub fn all_sites(&self, table: TableId) -> Result<Vec<Site>, Stop> {
        match self.def(table).is_shared() || self.tx.owns_all() {
            true => Ok(self.sites(table)),
            false => Err(Stop::Crossing),
        }
    }

    /// A table's part in a partition.
    pub fn table(&self, site: Site, table: TableId) -> &Table {
        self.tx.table_at(site, self.handle(table))
    }

    /// Inserts a row: one value per column, each of its column's type. It finds its partition by itself.
    ///
    /// # Errors
    /// What is wrong with the row; [`Stop::Crossing`].
    pub fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(Site, Tid), Stop> {
        let site = match self.def(table).partition_by {
            Some(column) => self.tx.site_of_value(&values[column.index()]).map_err(|_| Stop::Crossing)?,
            None => self.tx.home(),
        };
        let handle = self.handle(table);
        let tid = self.tx.insert_values_at(site, handle, values).map_err(|abort| self.stop(site, abort))?;
        Ok((site, tid))
    }

    /// Gives a row new values, each of its column's type. It may move to another partition.
    ///
    /// # Errors
    /// What is wrong with the row; [`Stop::Crossing`].
    pub fn update(
        &mut self,
        site: Site,
        table: TableId,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(Site, Tid), Stop> {
        let handle = self.handle(table);
        let key = self.def(table).partition_by;
        let moves = match values.iter().rfind(|(column, _)| Some(*column) == key) {
            Some((_, value)) => self.tx.site_of_value(value).map_err(|_| Stop::Crossing)? != site,
            None => false,
        };
        if !moves {
            let updated = self.tx.update_values_at(site, handle, tid, values);
            updated.map_err(|abort| self.stop(site, abort))?;
            return Ok((site, tid));
        }
        let mut row = self.tx.table_at(site, handle).row(tid);
        for (column, value) in values {
            row[column.index()] = value.clone();
        }
        self.delete_at(site, handle, tid)?;
        self.insert(table, &row)
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// [`Stop::Crossing`], no memory.
    pub fn delete(&mut self, site: Site, table: TableId, tid: Tid) -> Result<(), Stop> {
        self.delete_at(site, self.handle(table), tid)
    }

    /// As [`LiveRows::delete`].
    ///
    /// # Errors
    /// As [`LiveRows::delete`].
    pub fn delete_at(&mut self, site: Site, table: TableHandle, tid: Tid) -> Result<(), Stop> {
        self.tx.delete_at(site, table, tid).map_err(|abort| self.stop(site, abort))
    }

    /// Notes that it matters which rows have a key that begins so in an index.
    pub(crate) fn note_key(&mut self, site: Site, table: TableId, index: &str, prefix: u128) {
        self.note_range(site, table, index, prefix, prefix);
    }

    /// As [`LiveRows::note_key`], of keys that begin with what is between two.
    pub(crate) fn note_range(&mut self, site: Site, table: TableId, index: &str, low: u128, high: u128) {
        if !self.tx.notes_reads() {
            return;
        }
        let indexes = &self.def(table).indexes;
        match indexes.iter().position(|other| other.name == index) {
            Some(at) => self.tx.note_range(site, table, IndexId(at as u16), low, high),
            None => self.tx.note_table(site, table),
        }
    }

    /// Locks a row; whether it is to be taken. A serial transaction waits for nobody.
    ///
    /// # Errors
    /// [`Stop::Locked`] if another transaction has it and the lock waits, 55P03 with NOWAIT; [`Stop::Crossing`].
    pub(crate) fn lock(
        &mut self,
        site: Site,
        table: &TableDef,
        tid: Tid,
        lock: &RowLock,
    ) -> Result<bool, Stop> {
        let mode = match lock.mode {
            tree::LockMode::Share => LockMode::Share,
            tree::LockMode::Update => LockMode::Update,
        };
        if lock.wait == LockWait::Waits && !self.tx.notes_reads() {
            return Ok(true);
        }
        let held = self.tx.lock(site, handle(table), Some(tid), mode).map_err(|_| Stop::Crossing)?;
        match (held, lock.wait) {
            (None, _) => Ok(true),
            (Some(_), LockWait::Skips) => Ok(false),
            (Some(held), LockWait::Waits) => {
                self.tx.wait_for(held);
                Err(Stop::Locked)
            }
            (Some(_), LockWait::Fails) => {
                let text = format!("could not obtain lock on row in relation \"{}\"", table.name);
                Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, text).into())
            }
        }
    }

    /// Tells the client.
    pub fn notice(&mut self, level: RaiseLevel, message: String) {
        self.progress.notices.push(Notice { level, message });
    }

    /// Called in every round of a loop and every so many rows.
    ///
    /// # Errors
    /// [`Stop::Fatal`] once the statement was cancelled, has no time left, or has looked at too many rows.
    pub fn check_interrupt(&mut self) -> Result<(), Stop> {
        let Progress { rows, rounds, .. } = &mut *self.progress;
        if *rows < u32::MAX {
            *rows = rows.saturating_sub(ROWS);
            if *rows == 0 {
                let text = "the statement reads too many rows";
                return Err(Stop::Fatal(Box::new(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text))));
            }
        }
        *rounds = rounds.wrapping_add(1);
        if !rounds.is_multiple_of(ROUNDS) {
            return Ok(());
        }
        count_work(ROUNDS * ROUND_WORK);
        self.interrupts.check().map_err(|error| Stop::Fatal(Box::new(error)))
    }

    /// The partition of the rows of a partitioned table whose partitioning column is of a whole-number
    /// type and holds `key`.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if it is not this transaction's.
    #[inline]
    pub fn site_of_key(&self, key: i64) -> Result<Site, Stop> {
        self.tx.site_of(key).map_err(|_| Stop::Crossing)
    }

    /// [`LiveRows::site_of_key`] and the table's part there; of a shared table, home.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if the partition is not this transaction's.
    #[inline]
    pub fn table_of_key(&self, table: TableHandle, key: i64) -> Result<(Site, &Table), Stop> {
        let site = if table.is_shared() { self.tx.home() } else { self.site_of_key(key)? };
        Ok((site, self.tx.table_at(site, table)))
    }

    /// Inserts a row into its partition, which the caller knows.
    ///
    /// # Errors
    /// What is wrong with the row.
    #[inline]
    pub fn insert_cells(
        &mut self,
        site: Site,
        table: TableHandle,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Stop> {
        self.tx.insert_cells_at(site, table, shape, cells).map_err(|abort| self.stop(site, abort))
    }

    /// Where the next row of a table in a partition will be; see [`Table::vacant_row`].
    ///
    /// # Errors
    /// There is no memory for it.
    #[inline]
    pub fn vacant_row(&mut self, site: Site, table: TableHandle) -> Result<(Tid, RowAddress), Stop> {
        self.tx.vacant_row_at(site, table).map_err(|abort| self.stop(site, abort))
    }

    /// Makes a row of what was written there; see [`Table::enter_filled`].
    ///
    /// # Errors
    /// What is wrong with the row.
    #[inline]
    pub fn enter_filled(
        &mut self,
        site: Site,
        table: TableHandle,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<(), Stop> {
        let entered = self.tx.enter_filled_at(site, table, shape, filled);
        entered.map(drop).map_err(|abort| self.stop(site, abort))
    }

    /// Gets a row ready for new values that leave it in its partition, as the caller knows; see
    /// [`Table::overwrite`].
    ///
    /// # Errors
    /// There is no memory for it.
    #[inline]
    pub fn overwrite(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Stop> {
        self.tx.overwrite_at(site, table, tid, shape, nulls).map_err(|abort| self.stop(site, abort))
    }

    /// Gives a row new values that leave it in its partition, as the caller knows.
    ///
    /// # Errors
    /// What is wrong with the row.
    #[inline]
    pub fn update_cells(
        &mut self,
        site: Site,
        table: TableHandle,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Stop> {
        self.tx.update_cells_at(site, table, tid, shape, cells).map_err(|abort| self.stop(site, abort))
    }
}
