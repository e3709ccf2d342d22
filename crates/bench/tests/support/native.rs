//! A population in our own database, with the native procedures: what is compared with SQLite.

use albireo_base::{SqlError, Value};
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::input::{Mix, Transaction};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::schema::{Layout, Table};
use albireo_env::Env;

use super::transactions::Shown;

/// A loaded database.
pub struct Native(Albireo);

impl Native {
    /// The population in `partitions` partitions, which take their time from `env`.
    pub fn new(population: &Population, partitions: u16, layout: Layout, env: &Env) -> Self {
        let config = Config {
            workload: Workload::Tpcc,
            warehouses: population.warehouses,
            partitions,
            layout,
            mix: Mix::Spec,
            procedures: Procedures::Native,
            seed: population.seed,
            scale: population.scale,
            ..Config::default()
        };
        let cancel = Cancel::default();
        let target = Albireo::open(&config, env, &cancel).unwrap();
        target.load(&config, population, &Loading::new(population, &Silent, &cancel)).unwrap();
        Self(target)
    }

    /// All rows of a table, in no particular order.
    pub fn rows(&self, table: Table) -> Vec<Vec<Value>> {
        self.0.database().query(&format!("SELECT * FROM {}", table.name()), &[]).unwrap().rows()
    }

    /// Runs one transaction; see [`Shown`].
    pub fn run(&self, transaction: &Transaction) -> Result<Shown, SqlError> {
        let transactions = self.0.transactions()?;
        Ok(Some(match transaction {
            Transaction::NewOrder(input) => match transactions.new_order(input)? {
                Some(result) => vec![result.o_id.into(), result.total_amount],
                None => return Ok(None),
            },
            Transaction::Payment(input) => {
                let result = transactions.payment.call(input)?;
                vec![result.c_id.into(), result.c_balance]
            }
            Transaction::OrderStatus(input) => {
                let result = transactions.order_status.call(input)?;
                let amount = result.lines().iter().map(|line| line.ol_amount).sum();
                vec![result.c_balance, result.o_id.into(), result.lines().len() as i64, amount]
            }
            Transaction::Delivery(input) => {
                let delivered = transactions.delivery.call(input)?;
                delivered.map(|o_id| o_id.map_or(0, i64::from)).into()
            }
            Transaction::StockLevel(input) => vec![transactions.stock_level.call(input)?.into()],
        }))
    }
}
