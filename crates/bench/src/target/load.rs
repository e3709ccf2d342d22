//! Loads a population: rows are made and inserted inside transactions of some ten thousand rows.
//!
//! A warehouse's rows are made by the procedure that inserts them, field by field and without values
//! in between; each partition's warehouses are loaded by a thread of their own.

use albireo::{
    Abort, Col, Database, HandleError, Procedure, ProcedureHandle, Route, Site, SqlError, SqlState,
    TableHandle, TextCol, Transaction, Value,
};
use parking_lot::Mutex;

use crate::driver::Loading;
use crate::tpcc::DISTRICTS;
use crate::tpcc::population::{Population, Sink};
use crate::tpcc::rows::{Cell, Row};
use crate::tpcc::schema::{Definition, Table};

/// Rows of STOCK inserted by one transaction.
const STOCK_ROWS: i32 = 20_000;

/// What one transaction inserts.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The tables that all partitions share.
    Shared,
    /// The row of WAREHOUSE.
    Warehouse(i16),
    /// Rows of STOCK, from this item on.
    Stock(i16, i32),
    /// A district and all that is in it.
    District(i16, i16),
}

/// Fills the empty tables.
pub(super) fn load(
    database: &Database,
    population: &Population,
    loading: &Loading<'_>,
) -> Result<(), SqlError> {
    let inserters: Result<Vec<Inserter>, SqlError> =
        Table::ALL.iter().map(|table| Inserter::new(database, table.definition())).collect();
    let loader = database.register_procedure(Loader { population: *population, inserters: inserters? });
    insert(&loader, Part::Shared, loading)?;
    let failure = Mutex::new(None);
    albireo_env::scope(|scope| {
        for partition in 0..database.partitions() {
            let (loader, failure) = (&loader, &failure);
            let job = move || {
                let homes = (1..=population.warehouses).filter(|&w_id| {
                    albireo::partition_of(&Value::SmallInt(w_id), database.partitions()) == partition
                });
                for w_id in homes {
                    if let Err(error) = warehouse(loader, population, w_id, loading) {
                        failure.lock().get_or_insert(error);
                        return;
                    }
                }
            };
            if let Err(error) = albireo_env::spawn_scoped(scope, "load", job) {
                let text = format!("could not start a thread: {error}");
                failure.lock().get_or_insert(SqlError::new(SqlState::INSUFFICIENT_RESOURCES, text));
            }
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Inserts everything of one warehouse, unless cancelled.
fn warehouse(
    loader: &ProcedureHandle<Loader>,
    population: &Population,
    w_id: i16,
    loading: &Loading<'_>,
) -> Result<(), SqlError> {
    insert(loader, Part::Warehouse(w_id), loading)?;
    for first in (1..=population.scale.items).step_by(STOCK_ROWS as usize) {
        insert(loader, Part::Stock(w_id, first), loading)?;
    }
    (1..=DISTRICTS).try_for_each(|d_id| insert(loader, Part::District(w_id, d_id), loading))
}

fn insert(loader: &ProcedureHandle<Loader>, part: Part, loading: &Loading<'_>) -> Result<(), SqlError> {
    if !loading.is_cancelled() {
        loading.add(loader.call(&part)?);
    }
    Ok(())
}

/// The procedure that makes and inserts rows.
struct Loader {
    population: Population,
    /// In the order of [`Table::ALL`].
    inserters: Vec<Inserter>,
}

impl Procedure for Loader {
    type Args = Part;
    /// Rows inserted.
    type Output = u64;

    fn name(&self) -> &str {
        "load"
    }

    fn route(&self, part: &Part) -> Route {
        match *part {
            Part::Shared => Route::Crossing,
            Part::Warehouse(w_id) | Part::Stock(w_id, _) | Part::District(w_id, _) => Route::Key(w_id.into()),
        }
    }

    fn run(&self, tx: &mut Transaction, part: &Part) -> Result<u64, Abort> {
        let population = &self.population;
        let site = tx.home();
        let mut sink = Inserting { tx, site, loader: self, rows: 0 };
        match *part {
            Part::Shared => population.shared(&mut sink)?,
            Part::Warehouse(w_id) => sink.row(&population.warehouse(w_id))?,
            Part::Stock(w_id, first) => {
                let last = population.scale.items.min(first + STOCK_ROWS - 1);
                (first..=last).try_for_each(|i_id| sink.row(&population.stock_of(w_id, i_id)))?;
            }
            Part::District(w_id, d_id) => population.of_district(w_id, d_id, &mut sink)?,
        }
        Ok(sink.rows)
    }
}

/// Inserts rows in a transaction.
struct Inserting<'l, 't> {
    tx: &'t mut Transaction,
    site: Site,
    loader: &'l Loader,
    rows: u64,
}

impl Sink for Inserting<'_, '_> {
    type Error = Abort;

    fn row<R: Row>(&mut self, row: &R) -> Result<(), Abort> {
        let position = Table::ALL.iter().position(|table| *table == R::TABLE);
        let inserter = &self.loader.inserters[position.expect("all tables are there")];
        row.cells(|cells| inserter.insert(self.tx, self.site, cells))?;
        self.rows += 1;
        Ok(())
    }
}

/// Inserts rows of one table.
struct Inserter {
    table: TableHandle,
    /// One for each column, in order.
    columns: Vec<Field>,
}

/// A column by what its values lie in memory as.
enum Field {
    I16(Col<i16>),
    I32(Col<i32>),
    I64(Col<i64>),
    Text(TextCol),
}

impl Inserter {
    fn new(database: &Database, definition: &Definition) -> Result<Self, SqlError> {
        database.with_table(definition.name, |handle, table| {
            let field = |name: &str| -> Result<Field, HandleError> {
                let small = table.column(name).map(Field::I16);
                let integer = || table.column(name).map(Field::I32);
                let wide = || table.column(name).map(Field::I64);
                let text = || table.text_column(name).map(Field::Text);
                small.or_else(|_| integer()).or_else(|_| wide()).or_else(|_| text())
            };
            let columns = definition.columns.iter().map(|column| field(column.name));
            Ok(Self { table: handle, columns: columns.collect::<Result<_, _>>()? })
        })
    }

    fn insert(&self, tx: &mut Transaction, site: Site, cells: &[Cell<'_>]) -> Result<(), Abort> {
        let mut row = tx.insert_at(site, self.table)?;
        for (field, cell) in self.columns.iter().zip(cells) {
            match (field, *cell) {
                (Field::I16(column), Cell::SmallInt(value)) => _ = row.set(*column, value),
                (Field::I32(column), Cell::Integer(value)) => _ = row.set(*column, value),
                (Field::I64(column), Cell::Decimal { unscaled, .. }) => _ = row.set(*column, unscaled),
                (Field::I64(column), Cell::Timestamp(value)) => _ = row.set(*column, value),
                (Field::Text(column), Cell::Text(value)) => _ = row.set_text(*column, value)?,
                // Columns without a value become NULL.
                (_, Cell::Null) => {}
                (_, cell) => unreachable!("{cell:?} is not of its column's type"),
            }
        }
        row.finish()?;
        Ok(())
    }
}
