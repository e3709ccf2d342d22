//! A partition's transaction as routines see it.

use std::sync::Arc;

use albireo_base::{ColumnId, IndexId, SqlError, SqlState, TableId, Tid, Value};
use albireo_env::Clock;
use albireo_olap::CancelToken;
use albireo_partition::{Abort, TableHandle, Transaction};
use albireo_procedure::parse::ast::RaiseLevel;
use albireo_procedure::store::{Site, Stop, Store, TableRef};
use albireo_sql::{Catalog, TableDef};
use albireo_storage::{CellShape, Cells, FillShape, Filled, RowAddress, Savepoint, Table};

use crate::errors::Explainer;

/// Interrupts are looked for once in so many times that routines ask: it takes a clock. Compiled loops ask
/// once in 16 rounds.
const ROUNDS: u32 = 16;

/// Queries ask for interrupts once in so many rows.
const ROWS: u32 = 256;

/// What ends a statement from outside.
#[derive(Clone)]
pub(crate) struct Limits {
    pub(crate) cancel: CancelToken,
    pub(crate) clock: Clock,
    pub(crate) deadline_ns: Option<u64>,
    /// Whether routines are interpreted though they have machine code.
    pub(crate) interprets: bool,
    /// Whether its end waits for the redo log; `None`: as the database was opened.
    pub(crate) synchronous: Option<bool>,
}

impl Limits {
    /// 57014 if it is to end.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        if self.cancel.is_cancelled() {
            let text = "canceling statement due to user request";
            return Err(SqlError::new(SqlState::QUERY_CANCELED, text));
        }
        if self.deadline_ns.is_some_and(|deadline| self.clock.now() >= deadline) {
            let text = "canceling statement due to statement timeout";
            return Err(SqlError::new(SqlState::QUERY_CANCELED, text));
        }
        Ok(())
    }
}

/// What RAISE told the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Notice {
    pub(crate) level: RaiseLevel,
    pub(crate) message: String,
}

/// As `client_min_messages = notice` has it.
pub(crate) fn is_for_client(notice: &Notice) -> bool {
    matches!(notice.level, RaiseLevel::Info | RaiseLevel::Notice | RaiseLevel::Warning)
}

/// The transaction of a running routine.
pub(crate) struct TransactionStore<'t, 'a, 'p> {
    tx: &'t mut Transaction<'a, 'p>,
    catalog: &'t Arc<Catalog>,
    limits: &'t Limits,
    rounds: u32,
    /// Rows that may still be looked at.
    rows: u32,
    pub(crate) notices: Vec<Notice>,
}

impl<'t, 'a, 'p> TransactionStore<'t, 'a, 'p> {
    pub(crate) fn new(
        tx: &'t mut Transaction<'a, 'p>,
        catalog: &'t Arc<Catalog>,
        limits: &'t Limits,
    ) -> Self {
        Self { tx, catalog, limits, rounds: 0, rows: u32::MAX, notices: Vec::new() }
    }

    /// Ends the statement once it has looked at so many rows, or a few more.
    pub(crate) fn allow_rows(&mut self, rows: u32) {
        self.rows = rows;
    }

    /// What ends it from outside.
    pub(crate) fn limits(&self) -> &'t Limits {
        self.limits
    }

    /// Whether it was ended so.
    pub(crate) fn met_too_many_rows(&self) -> bool {
        self.rows == 0
    }

    /// A table that a bound routine names, which therefore exists.
    fn def(&self, table: TableId) -> &TableDef {
        self.catalog.table(table).expect("a routine is bound again when the catalog changes")
    }

    fn handle(&self, table: TableId) -> TableHandle {
        crate::ddl::handle(self.def(table))
    }

    /// Why a change was not made, in words.
    fn stop(&self, site: albireo_partition::Site, abort: Abort) -> Stop {
        if abort == Abort::Crossing {
            return Stop::Crossing;
        }
        let key_of = |table: TableId, index: IndexId, tid: Tid| {
            let def = self.catalog.table(table)?;
            let rows = self.tx.table_at(site, crate::ddl::handle(def));
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

    fn insert_at_home_of(
        &mut self,
        table: TableId,
        values: &[Value],
    ) -> Result<(albireo_partition::Site, Tid), Stop> {
        let site = match self.def(table).partition_by {
            Some(column) => self.tx.site_of_value(&values[column.index()]).map_err(|_| Stop::Crossing)?,
            None => self.tx.home(),
        };
        let handle = self.handle(table);
        let tid = self.tx.insert_values_at(site, handle, values).map_err(|abort| self.stop(site, abort))?;
        Ok((site, tid))
    }
}

fn number(site: albireo_partition::Site) -> Site {
    Site(site.number())
}

impl Store for TransactionStore<'_, '_, '_> {
    fn now(&mut self) -> i64 {
        self.tx.now()
    }

    fn sites(&self, table: TableId) -> Vec<Site> {
        match self.def(table).is_shared() {
            true => vec![number(self.tx.home())],
            false => self.tx.sites().map(number).collect(),
        }
    }

    fn site_of(&self, table: TableId, key: &Value) -> Result<Site, Stop> {
        if self.def(table).is_shared() {
            return Ok(number(self.tx.home()));
        }
        let site = self.tx.site_of_value(key).map_err(|_| Stop::Crossing)?;
        Ok(number(site))
    }

    fn all_sites(&self, table: TableId) -> Result<Vec<Site>, Stop> {
        match self.def(table).is_shared() || self.tx.sites().len() == usize::from(self.tx.partitions()) {
            true => Ok(self.sites(table)),
            false => Err(Stop::Crossing),
        }
    }

    fn table(&self, site: Site, table: TableId) -> &Table {
        self.tx.table_at(self.tx.site(site.0), self.handle(table))
    }

    fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(Site, Tid), Stop> {
        let (site, tid) = self.insert_at_home_of(table, values)?;
        Ok((number(site), tid))
    }

    fn update(
        &mut self,
        site: Site,
        table: TableId,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(Site, Tid), Stop> {
        let at = self.tx.site(site.0);
        let handle = self.handle(table);
        let key = self.def(table).partition_by;
        let moves = match values.iter().rfind(|(column, _)| Some(*column) == key) {
            Some((_, value)) => self.tx.site_of_value(value).map_err(|_| Stop::Crossing)? != at,
            None => false,
        };
        if !moves {
            let updated = self.tx.update_values_at(at, handle, tid, values);
            updated.map_err(|abort| self.stop(at, abort))?;
            return Ok((site, tid));
        }
        let mut row = self.tx.table_at(at, handle).row(tid);
        for (column, value) in values {
            row[column.index()] = value.clone();
        }
        self.tx.delete_at(at, handle, tid).map_err(|abort| self.stop(at, abort))?;
        let (to, tid) = self.insert_at_home_of(table, &row)?;
        Ok((number(to), tid))
    }

    fn delete(&mut self, site: Site, table: TableId, tid: Tid) -> Result<(), Stop> {
        let at = self.tx.site(site.0);
        let handle = self.handle(table);
        self.tx.delete_at(at, handle, tid).map_err(|abort| self.stop(at, abort))
    }

    fn synchronous_commit(&self) -> Option<bool> {
        self.tx.synchronous_commit()
    }

    fn set_synchronous_commit(&mut self, wait: Option<bool>) {
        self.tx.set_synchronous_commit(wait);
    }

    fn savepoint(&self) -> Savepoint {
        self.tx.savepoint()
    }

    fn roll_back_to(&mut self, to: Savepoint) {
        self.tx.roll_back_to(to);
    }

    fn notice(&mut self, level: RaiseLevel, message: &str, _: Option<&str>, _: Option<&str>) {
        self.notices.push(Notice { level, message: message.to_owned() });
    }

    fn check_interrupt(&mut self) -> Result<(), Stop> {
        if self.rows < u32::MAX {
            self.rows = self.rows.saturating_sub(ROWS);
            if self.rows == 0 {
                let text = "the statement reads too many rows";
                return Err(Stop::Fatal(Box::new(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text))));
            }
        }
        self.rounds += 1;
        match self.rounds.is_multiple_of(ROUNDS) {
            true => self.limits.check().map_err(|error| Stop::Fatal(Box::new(error))),
            false => Ok(()),
        }
    }

    fn home(&self) -> Site {
        Site(self.tx.home().number())
    }

    fn site_of_key(&self, key: i64) -> Result<Site, Stop> {
        let site = self.tx.site_of(key).map_err(|_| Stop::Crossing)?;
        Ok(Site(site.number()))
    }

    fn table_at(&self, site: Site, table: TableRef) -> &Table {
        self.tx.table_at(self.tx.site(site.0), handle_of(table))
    }

    fn table_of_key(&self, table: TableRef, key: i64) -> Result<(Site, &Table), Stop> {
        let site = match table.shared {
            true => self.tx.home(),
            false => self.tx.site_of(key).map_err(|_| Stop::Crossing)?,
        };
        Ok((number(site), self.tx.table_at(site, handle_of(table))))
    }

    fn insert_cells(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Stop> {
        let at = self.tx.site(site.0);
        let inserted = self.tx.insert_cells_at(at, handle_of(table), shape, cells);
        inserted.map_err(|abort| self.stop(at, abort))
    }

    fn vacant_row(&mut self, site: Site, table: TableRef) -> Result<(Tid, RowAddress), Stop> {
        let at = self.tx.site(site.0);
        self.tx.vacant_row_at(at, handle_of(table)).map_err(|abort| self.stop(at, abort))
    }

    fn enter_filled(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<(), Stop> {
        let at = self.tx.site(site.0);
        let entered = self.tx.enter_filled_at(at, handle_of(table), shape, filled);
        entered.map(drop).map_err(|abort| self.stop(at, abort))
    }

    fn overwrite(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Stop> {
        let at = self.tx.site(site.0);
        let ready = self.tx.overwrite_at(at, handle_of(table), tid, shape, nulls);
        ready.map_err(|abort| self.stop(at, abort))
    }

    fn update_cells(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Stop> {
        let at = self.tx.site(site.0);
        let updated = self.tx.update_cells_at(at, handle_of(table), tid, shape, cells);
        updated.map_err(|abort| self.stop(at, abort))
    }

    fn delete_at(&mut self, site: Site, table: TableRef, tid: Tid) -> Result<(), Stop> {
        let at = self.tx.site(site.0);
        self.tx.delete_at(at, handle_of(table), tid).map_err(|abort| self.stop(at, abort))
    }
}

fn handle_of(table: TableRef) -> TableHandle {
    TableHandle::new(table.id, table.shared)
}
