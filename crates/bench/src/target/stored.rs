//! The five transactions as calls of stored routines in PL/pgSQL: the source is the one that PostgreSQL
//! takes, too.

use albireo::{Argument, Database, RoutineHandle, SqlError, SqlState, Value};
use albireo_base::Decimal;

use crate::driver::{Outcome, Worker};
use crate::tpcc::input::{CustomerKey, NewOrder, Transaction};

/// The routines' source.
const SOURCE: &str = include_str!("../../sql/tpcc_procedures.sql");

/// The five routines, created in a database.
#[allow(missing_docs, reason = "the names of the specification")]
pub struct StoredTransactions {
    pub new_order: RoutineHandle,
    pub payment: RoutineHandle,
    pub order_status: RoutineHandle,
    pub delivery: RoutineHandle,
    pub stock_level: RoutineHandle,
}

/// A row of a routine's result.
pub type Row = Vec<Argument>;

impl StoredTransactions {
    /// Creates the routines.
    ///
    /// # Errors
    /// A table is missing or of another shape.
    pub fn new(database: &Database) -> Result<Self, SqlError> {
        database.execute(SOURCE)?;
        Ok(Self {
            new_order: database.routine("new_order")?,
            payment: database.routine("payment")?,
            order_status: database.routine("order_status")?,
            delivery: database.routine("delivery")?,
            stock_level: database.routine("stock_level")?,
        })
    }

    /// Runs one transaction; `None` if it was rolled back for its unused item, as it had to be.
    ///
    /// # Errors
    /// Any other failure, and an order with an unused item that committed.
    pub fn run(&self, transaction: &Transaction) -> Result<Option<Row>, SqlError> {
        let rows = match transaction {
            Transaction::NewOrder(order) => return self.order(order),
            Transaction::Payment(payment) => {
                let (c_id, c_last) = customer(&payment.customer);
                let amount = Value::Decimal(Decimal::new(payment.h_amount.0.into(), 2));
                let home = [payment.w_id, payment.d_id, payment.c_w_id, payment.c_d_id].map(Argument::from);
                self.payment.call(&[&home[..], &[c_id, c_last, amount.into()]].concat())?
            }
            Transaction::OrderStatus(status) => {
                let (c_id, c_last) = customer(&status.customer);
                self.order_status.call(&[status.w_id.into(), status.d_id.into(), c_id, c_last])?
            }
            Transaction::Delivery(delivery) => {
                self.delivery.call(&[delivery.w_id.into(), delivery.o_carrier_id.into()])?
            }
            Transaction::StockLevel(level) => {
                self.stock_level.call(&[level.w_id.into(), level.d_id.into(), level.threshold.into()])?
            }
        };
        Ok(rows.into_iter().next())
    }

    fn order(&self, order: &NewOrder) -> Result<Option<Row>, SqlError> {
        let lines = order.lines();
        let args = [
            order.w_id.into(),
            order.d_id.into(),
            order.c_id.into(),
            Argument::Array(lines.iter().map(|line| line.i_id.into()).collect()),
            Argument::Array(lines.iter().map(|line| line.supply_w_id.into()).collect()),
            Argument::Array(lines.iter().map(|line| line.quantity.into()).collect()),
        ];
        match self.new_order.call(&args) {
            Ok(rows) if !order.rolls_back => Ok(rows.into_iter().next()),
            Err(error) if order.rolls_back && error.state() == SqlState::RAISE_EXCEPTION => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let text = "an order with an unused item was not rolled back";
                Err(SqlError::new(SqlState::INTERNAL_ERROR, text))
            }
        }
    }
}

fn customer(key: &CustomerKey) -> (Argument, Argument) {
    match key {
        CustomerKey::Id(c_id) => ((*c_id).into(), Value::Null.into()),
        CustomerKey::LastName(last) => (Value::Null.into(), last.as_str().into()),
    }
}

impl Worker for &StoredTransactions {
    fn run(&mut self, transactions: &[Transaction], ended: &mut dyn FnMut(Outcome)) -> Result<(), SqlError> {
        for transaction in transactions {
            ended(match StoredTransactions::run(self, transaction)? {
                Some(_) => Outcome::Committed,
                None => Outcome::RolledBack,
            });
        }
        Ok(())
    }
}
