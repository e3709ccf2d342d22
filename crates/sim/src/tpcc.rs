//! A small TPC-C in some worlds: its transactions in the log beside all others.
//!
//! Its model is a second database, in memory and without a log, in which the transactions that a recovery
//! brought back are run again from the first, at the same times.

use std::sync::Arc;
use std::time::Duration;

use albireo::{Abort, Database, Procedure, Receipt, Route, SqlError, SqlState, TableHandle, Value};
use albireo_bench::target::Transactions;
use albireo_bench::tpcc::consistency;
use albireo_bench::tpcc::input::{Inputs, Mix, Transaction};
use albireo_bench::tpcc::population::{Population, Sink};
use albireo_bench::tpcc::rows::{Row, Timestamp};
use albireo_bench::tpcc::schema::{Layout, Table, ddl};
use albireo_bench::tpcc::{DISTRICTS, Scale};
use albireo_env::Env;

use crate::check;
use crate::model::{Deed, Part};

/// Small enough that a thousand worlds can have it.
const SCALE: Scale = Scale { items: 60, customers: 10 };

/// The benchmark in a world.
#[derive(Debug)]
pub struct Tpcc {
    population: Population,
    inputs: Inputs,
}

impl Tpcc {
    /// With so many warehouses.
    pub fn new(warehouses: i16, seed: u64) -> Self {
        let population = Population { scale: SCALE, warehouses, seed, loaded_at: Timestamp(0) };
        let homes: Vec<i16> = (1..=warehouses).collect();
        Self { population, inputs: Inputs::new(Mix::Spec, SCALE, warehouses, &homes, seed, 0) }
    }

    /// What has to be done before its transactions can run, in order.
    pub fn preparations(&self) -> Vec<Deed> {
        let definitions = ddl(Layout::default()).into_iter().map(Deed::Define);
        let of_warehouse = |w_id| {
            let districts = (1..=DISTRICTS).map(move |d_id| Part::District(w_id, d_id));
            std::iter::once(Part::Warehouse(w_id)).chain(districts)
        };
        let warehouses = (1..=self.population.warehouses).flat_map(of_warehouse);
        let parts = std::iter::once(Part::Items).chain(warehouses);
        definitions.chain(parts.map(Deed::Load)).collect()
    }

    /// The next transaction.
    pub fn next(&mut self) -> Transaction {
        self.inputs.next_transaction()
    }

    /// Whether the database holds what it has to after these deeds, row for row.
    ///
    /// # Errors
    /// In words, if not.
    pub fn check(&self, database: &Database, deeds: &[Deed]) -> Result<(), String> {
        let (env, hand) = Env::simulated(0);
        let config = crate::world::config(database.partitions(), true);
        let failed = |error: SqlError| format!("TPC-C in memory: {error}");
        let shadow = Database::with_env(config, env.clone()).map_err(failed)?;
        let mut procedures = None;
        for deed in deeds {
            match deed {
                Deed::Changes(_) => continue,
                Deed::Define(text) => {
                    shadow.execute(text).map_err(failed)?;
                    continue;
                }
                Deed::Tpcc(_, at_ns) => hand.advance(Duration::from_nanos(at_ns - env.clock.now())),
                Deed::Load(_) => {}
            }
            if procedures.is_none() {
                procedures = Some(self.procedures(&shadow).map_err(failed)?);
            }
            procedures.as_ref().expect("made above").perform(deed).map_err(failed)?;
        }
        Table::ALL.iter().try_for_each(|table| same_rows(database, &shadow, table.name()))?;
        Ok(())
    }

    /// Whether one of the conditions of consistency holds, from 1 to 12.
    ///
    /// # Errors
    /// In words, if not.
    pub fn check_condition(&self, database: &Database, number: usize) -> Result<(), String> {
        let query = consistency::violations(number, SCALE);
        let answer = database.query(&query, &[]).map_err(|error| format!("condition {number}: {error}"))?;
        match answer.value(0, 0) {
            Value::BigInt(0) => Ok(()),
            count => Err(format!("TPC-C's condition {number} is violated {count} times")),
        }
    }

    /// The procedures, made for a database that has the tables.
    ///
    /// # Errors
    /// It has not.
    pub fn procedures(&self, database: &Database) -> Result<Procedures, SqlError> {
        let handle = |table: &Table| database.with_table(table.name(), |handle, _| Ok(handle));
        let tables = Table::ALL.iter().map(handle).collect::<Result<_, _>>()?;
        let loader = Loader { population: self.population, tables };
        let transactions = Arc::new(Transactions::new(database)?);
        Ok(Procedures { loader: database.register_procedure(loader), transactions })
    }
}

/// Whether two databases have the same rows in a table, or both have no such table.
fn same_rows(database: &Database, shadow: &Database, name: &str) -> Result<(), String> {
    let (catalog, wanted) = (database.catalog(), shadow.catalog());
    let (Some(here), Some(there)) = (catalog.table_named(None, name), wanted.table_named(None, name)) else {
        let same = catalog.table_named(None, name).is_some() == wanted.table_named(None, name).is_some();
        return if same { Ok(()) } else { Err(format!("only one of two databases has TPC-C's {name}")) };
    };
    let mut found = texts(check::rows(database, here)?);
    let mut wanted = texts(check::rows(shadow, there)?);
    found.sort_unstable();
    wanted.sort_unstable();
    if found == wanted {
        return Ok(());
    }
    let odd = found.iter().find(|row| !wanted.contains(row));
    let missing = wanted.iter().find(|row| !found.contains(row));
    Err(format!("TPC-C's {name} has {odd:?}, where {missing:?} should be"))
}

fn texts(rows: Vec<Vec<Value>>) -> Vec<String> {
    rows.iter().map(|row| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|")).collect()
}

/// The benchmark's transactions in a database.
pub struct Procedures {
    loader: albireo::ProcedureHandle<Loader>,
    transactions: Arc<Transactions>,
}

impl Procedures {
    /// Does a deed of the benchmark; the receipt is `None` if it changed nothing.
    ///
    /// # Errors
    /// The database's, but for an order that has to be rolled back.
    ///
    /// # Panics
    /// It is another deed.
    pub fn perform(&self, deed: &Deed) -> Result<Option<Receipt>, SqlError> {
        match deed {
            Deed::Load(part) => self.loader.start(part).map(|((), receipt)| Some(receipt)),
            Deed::Tpcc(transaction, _) => self.run(transaction),
            Deed::Define(_) | Deed::Changes(_) => unreachable!("no deed of the benchmark's procedures"),
        }
    }

    fn run(&self, transaction: &Transaction) -> Result<Option<Receipt>, SqlError> {
        let procedures = &self.transactions;
        Ok(match transaction {
            Transaction::NewOrder(order) => match procedures.new_order.start(order) {
                Ok((_, receipt)) if !order.rolls_back => Some(receipt),
                Ok(_) => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "an order was not rolled back")),
                Err(error) if order.rolls_back && error.state() == SqlState::RAISE_EXCEPTION => None,
                Err(error) => return Err(error),
            },
            Transaction::Payment(payment) => Some(procedures.payment.start(payment)?.1),
            Transaction::OrderStatus(status) => procedures.order_status.start(status).map(|_| None)?,
            Transaction::Delivery(delivery) => {
                let (delivered, receipt) = procedures.delivery.start(delivery)?;
                delivered.iter().any(Option::is_some).then_some(receipt)
            }
            Transaction::StockLevel(level) => procedures.stock_level.start(level).map(|_| None)?,
        })
    }
}

/// Fills tables.
struct Loader {
    population: Population,
    /// In the order of [`Table::ALL`].
    tables: Vec<TableHandle>,
}

impl Procedure for Loader {
    type Args = Part;
    type Output = ();

    fn name(&self) -> &str {
        "load"
    }

    fn route(&self, part: &Part) -> Route {
        match *part {
            Part::Items => Route::Crossing,
            Part::Warehouse(w_id) | Part::District(w_id, _) => Route::Key(w_id.into()),
        }
    }

    fn run(&self, tx: &mut albireo::Transaction, part: &Part) -> Result<(), Abort> {
        let mut sink = Inserting { tx, loader: self };
        match *part {
            Part::Items => self.population.items().try_for_each(|row| sink.row(&row)),
            Part::Warehouse(w_id) => {
                sink.row(&self.population.warehouse(w_id))?;
                self.population.stock(w_id).try_for_each(|row| sink.row(&row))
            }
            Part::District(w_id, d_id) => self.population.of_district(w_id, d_id, &mut sink),
        }
    }
}

/// Inserts rows in a transaction.
struct Inserting<'l, 't> {
    tx: &'t mut albireo::Transaction,
    loader: &'l Loader,
}

impl Sink for Inserting<'_, '_> {
    type Error = Abort;

    fn row<R: Row>(&mut self, row: &R) -> Result<(), Abort> {
        let position = Table::ALL.iter().position(|table| *table == R::TABLE).expect("all tables are there");
        let values: Vec<Value> = row.cells(|cells| cells.iter().map(|&cell| cell.into()).collect());
        let site = self.tx.home();
        self.tx.insert_values_at(site, self.loader.tables[position], &values).map(drop)
    }
}
