//! A population in partitions, with the native procedures: what is compared with SQLite.

use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, TableId, Tid, Value};
use albireo_bench::tpcc::input::Transaction;
use albireo_bench::tpcc::population::{Population, Sink};
use albireo_bench::tpcc::procedures::{Procedures, Resolver};
use albireo_bench::tpcc::rows::Row;
use albireo_bench::tpcc::schema::{Definition, Layout, Table};
use albireo_env::Env;
use albireo_partition::{Abort, CallError, Partitions, PartitionsConfig, Site, TableHandle};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, HandleError, IndexKind, IndexSpec, LayoutChoice, SnapshotRegistry,
    Table as StoredTable, TableSpec,
};

use super::transactions::Shown;

/// Partitions and a handle to each table.
pub struct Native {
    partitions: Partitions,
    handles: Vec<(Table, TableHandle)>,
}

impl Native {
    /// The population in `partitions` partitions, which take their time from `env`.
    pub fn new(population: &Population, partitions: u16, layout: Layout, env: &Env) -> Self {
        let pool = BlockPool::new(1 << 30);
        let registry = Arc::new(SnapshotRegistry::new(pool, 1 << 30, BudgetPolicy::RefuseNew));
        let config = PartitionsConfig { partitions, ..PartitionsConfig::default() };
        let partitions = Partitions::new(config, registry, env);
        let create = |table: Table| {
            let spec = spec(table.definition(), layout);
            let layout = StoredTable::layout_of(&spec).unwrap();
            (table, partitions.create_table(spec, &layout))
        };
        let handles = Table::ALL.map(create).into();
        let mut native = Self { partitions, handles };
        population.all(&mut native).unwrap();
        native
    }

    fn handle(&self, table: Table) -> TableHandle {
        self.handles.iter().find(|(found, _)| *found == table).unwrap().1
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: Table) -> Vec<Vec<Value>> {
        let handle = self.handle(table);
        let partitions = if handle.is_shared() { 1 } else { self.partitions.count() };
        let rows =
            |table: &StoredTable| table.scan_from(Tid(0)).map(|tid| table.row(tid)).collect::<Vec<_>>();
        let of = |partition| self.partitions.with_table(handle, PartitionId(partition), rows);
        (0..partitions).flat_map(of).collect()
    }

    /// Runs one transaction; see [`Shown`].
    pub fn run(&self, procedures: &Procedures, transaction: &Transaction) -> Result<Shown, CallError> {
        let partitions = &self.partitions;
        Ok(Some(match transaction {
            Transaction::NewOrder(input) => match partitions.call(&*procedures.new_order, input) {
                Ok(result) => vec![result.o_id.into(), result.total_amount],
                Err(CallError::Aborted(_)) if input.rolls_back => return Ok(None),
                Err(error) => return Err(error),
            },
            Transaction::Payment(input) => {
                let result = partitions.call(&*procedures.payment, input)?;
                vec![result.c_id.into(), result.c_balance]
            }
            Transaction::OrderStatus(input) => {
                let result = partitions.call(&*procedures.order_status, input)?;
                let amount = result.lines().iter().map(|line| line.ol_amount).sum();
                vec![result.c_balance, result.o_id.into(), result.lines().len() as i64, amount]
            }
            Transaction::Delivery(input) => {
                let delivered = partitions.call(&*procedures.delivery, input)?;
                delivered.map(|o_id| o_id.map_or(0, i64::from)).into()
            }
            Transaction::StockLevel(input) => {
                vec![partitions.call(&*procedures.stock_level, input)?.into()]
            }
        }))
    }
}

/// What storage has to know of a table.
fn spec(definition: &Definition, layout: Layout) -> TableSpec {
    let column = |name: &str| {
        let position = definition.columns.iter().position(|column| column.name == name);
        ColumnId(position.expect("a column of the table") as u16)
    };
    let columns = |names: &[&str]| names.iter().map(|name| column(name)).collect::<Vec<_>>();
    let index = |name: String, names, unique, kind| IndexSpec { name, columns: columns(names), unique, kind };
    let mut indexes = Vec::new();
    if !definition.primary_key.is_empty() {
        let kind = if definition.key_has_ranges { IndexKind::Ordered } else { IndexKind::Hash };
        indexes.push(index(format!("{}_pkey", definition.name), definition.primary_key, true, kind));
    }
    if let Some((name, names)) = definition.index {
        indexes.push(index(name.to_owned(), names, false, IndexKind::Ordered));
    }
    let column_spec = |column: &albireo_bench::tpcc::schema::Column| ColumnSpec {
        name: column.name.to_owned(),
        ty: column.ty,
        nullable: column.nullable,
    };
    TableSpec {
        id: TableId(definition.table as u32),
        name: definition.name.to_owned(),
        columns: definition.columns.iter().map(column_spec).collect(),
        layout: match layout {
            Layout::Column => LayoutChoice::Columns,
            Layout::Row => LayoutChoice::Rows,
            Layout::Groups => LayoutChoice::Groups(definition.groups.iter().map(|g| columns(g)).collect()),
        },
        indexes,
        partition_by: definition.partition_by.map(column),
        checks: Vec::new(),
    }
}

impl Sink for Native {
    type Error = CallError;

    fn row<R: Row>(&mut self, row: &R) -> Result<(), CallError> {
        let handle = self.handle(R::TABLE);
        let values = row.cells(|cells| cells.iter().map(|&cell| Value::from(cell)).collect::<Vec<_>>());
        let place = R::TABLE.definition().partition_by.map(|name| {
            let position = R::COLUMNS.iter().position(|column| *column == name);
            &values[position.expect("a column of the table")]
        });
        self.partitions.crossing("load", |tx| {
            let site: Result<Site, Abort> = place.map_or(Ok(tx.home()), |value| tx.site_of_value(value));
            tx.insert_values_at(site?, handle, &values)
        })?;
        Ok(())
    }
}

impl Resolver for Native {
    fn with_table(
        &self,
        name: &str,
        look: &mut dyn FnMut(TableHandle, &StoredTable) -> Result<(), HandleError>,
    ) -> Result<(), HandleError> {
        let table = Table::ALL.into_iter().find(|table| table.name() == name);
        let handle = self.handle(table.expect("one of the twelve tables"));
        self.partitions.with_table(handle, PartitionId(0), |table| look(handle, table))
    }
}
