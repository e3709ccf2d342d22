//! What a running procedure needs from the transaction it runs in.
//!
//! `engine` implements it over the transaction of a partition; tests over a table or two.

use albireo_base::{ColumnId, TableId, Tid, Value};
use albireo_storage::{CellShape, Cells, FillShape, Filled, RowAddress, Savepoint, Table};

pub use albireo_semantics::Stop;

/// How bad what RAISE says is, from DEBUG to WARNING.
pub use crate::parse::ast::RaiseLevel;

/// A partition that the transaction owns, by number among these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site(pub u16);

/// A table as compiled code names it: what is needed to find it without the catalog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableRef {
    /// Its id.
    pub id: TableId,
    /// Whether it is shared by all partitions, as it was created.
    pub shared: bool,
}

/// The transaction of a running procedure.
pub trait Store {
    /// The transaction's time, in microseconds since 1970 UTC: the same at every call.
    fn now(&mut self) -> i64;

    /// The partitions it owns; a shared table is in the first of them.
    fn sites(&self, table: TableId) -> Vec<Site>;

    /// The partition of the rows whose partitioning column holds `key`.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if it is not this transaction's.
    fn site_of(&self, table: TableId, key: &Value) -> Result<Site, Stop>;

    /// Asks for all partitions, because nothing says in which one the rows are.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if the transaction does not own all; never for a shared table.
    fn all_sites(&self, table: TableId) -> Result<Vec<Site>, Stop>;

    /// A table's part in a partition.
    fn table(&self, site: Site, table: TableId) -> &Table;

    /// Inserts a row: one value per column, each of its column's type. It finds its partition by itself.
    fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(Site, Tid), Stop>;

    /// Gives a row new values, each of its column's type. It may move to another partition.
    fn update(
        &mut self,
        site: Site,
        table: TableId,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(Site, Tid), Stop>;

    /// Deletes a row.
    fn delete(&mut self, site: Site, table: TableId, tid: Tid) -> Result<(), Stop>;

    /// Whether the transaction asked for its caller to wait for the disk, or not to; `None`: it did not say.
    fn synchronous_commit(&self) -> Option<bool>;

    /// Asks for that.
    fn set_synchronous_commit(&mut self, wait: Option<bool>);

    /// A point to which the transaction's changes can be rolled back.
    fn savepoint(&self) -> Savepoint;

    /// Takes all changes since `to` back.
    fn roll_back_to(&mut self, to: Savepoint);

    /// Tells the client.
    fn notice(&mut self, level: RaiseLevel, message: &str, detail: Option<&str>, hint: Option<&str>);

    /// Called in every round of a loop and every so many rows.
    ///
    /// # Errors
    /// [`Stop::Fatal`] once the statement was cancelled or has no time left.
    fn check_interrupt(&mut self) -> Result<(), Stop>;

    /// Where the transaction is at home. Shared tables are named by this site.
    fn home(&self) -> Site;

    /// The partition of the rows of a partitioned table whose partitioning column is of a whole-number
    /// type and holds `key`.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if it is not this transaction's.
    fn site_of_key(&self, key: i64) -> Result<Site, Stop>;

    /// A table's part in a partition; the site of a shared table does not matter.
    fn table_at(&self, site: Site, table: TableRef) -> &Table;

    /// [`Store::site_of_key`] and what [`Store::table_at`] gives for it; of a shared table, home.
    ///
    /// # Errors
    /// [`Stop::Crossing`] if the partition is not this transaction's.
    fn table_of_key(&self, table: TableRef, key: i64) -> Result<(Site, &Table), Stop> {
        let site = if table.shared { self.home() } else { self.site_of_key(key)? };
        Ok((site, self.table_at(site, table)))
    }

    /// Inserts a row into its partition, which the caller knows.
    fn insert_cells(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Stop>;

    /// Where the next row of a table in a partition will be; see [`Table::vacant_row`].
    fn vacant_row(&mut self, site: Site, table: TableRef) -> Result<(Tid, RowAddress), Stop>;

    /// Makes a row of what was written there; see [`Table::enter_filled`].
    fn enter_filled(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<(), Stop>;

    /// Gets a row ready for new values that leave it in its partition, as the caller knows; see
    /// [`Table::overwrite`].
    fn overwrite(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Stop>;

    /// Gives a row new values that leave it in its partition, as the caller knows.
    fn update_cells(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Stop>;

    /// Deletes a row.
    fn delete_at(&mut self, site: Site, table: TableRef, tid: Tid) -> Result<(), Stop>;
}
