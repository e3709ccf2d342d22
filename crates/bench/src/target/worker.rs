//! The five transactions as calls of registered procedures.

use std::hint::black_box;
use std::sync::Arc;

use albireo::{Database, ProcedureHandle, SqlError, SqlState};

use crate::driver::{Outcome, Worker};
use crate::tpcc::input::{NewOrder, Transaction};
use crate::tpcc::procedures::{
    DeliveryProcedure, NewOrderProcedure, OrderResult, OrderStatusProcedure, PaymentProcedure,
    StockLevelProcedure, Tables,
};

/// The five procedures, registered in a database.
#[allow(missing_docs, reason = "the names of the specification")]
pub struct Transactions {
    pub new_order: ProcedureHandle<NewOrderProcedure>,
    pub payment: ProcedureHandle<PaymentProcedure>,
    pub order_status: ProcedureHandle<OrderStatusProcedure>,
    pub delivery: ProcedureHandle<DeliveryProcedure>,
    pub stock_level: ProcedureHandle<StockLevelProcedure>,
}

impl Transactions {
    /// Compiles the procedures against the tables of `database` and registers them.
    ///
    /// # Errors
    /// A table is missing or of another shape.
    pub fn new(database: &Database) -> Result<Self, SqlError> {
        let tables = Arc::new(Tables::new(database)?);
        let tables = || Arc::clone(&tables);
        Ok(Self {
            new_order: database.register_procedure(NewOrderProcedure(tables())),
            payment: database.register_procedure(PaymentProcedure(tables())),
            order_status: database.register_procedure(OrderStatusProcedure(tables())),
            delivery: database.register_procedure(DeliveryProcedure(tables())),
            stock_level: database.register_procedure(StockLevelProcedure(tables())),
        })
    }

    /// Runs New-Order; `None` if it was rolled back for its unused item, as it had to be.
    ///
    /// # Errors
    /// Any other failure, and an order with an unused item that committed.
    #[inline]
    pub fn new_order(&self, order: &NewOrder) -> Result<Option<OrderResult>, SqlError> {
        match self.new_order.call(order) {
            Ok(result) if !order.rolls_back => Ok(Some(result)),
            Err(error) if order.rolls_back && error.state() == SqlState::RAISE_EXCEPTION => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let text = "an order with an unused item was not rolled back";
                Err(SqlError::new(SqlState::INTERNAL_ERROR, text))
            }
        }
    }

    /// Runs one transaction. All its outputs are made, but nobody looks at them.
    ///
    /// # Errors
    /// It failed, other than by an order's unused item.
    #[inline]
    pub fn run(&self, transaction: &Transaction) -> Result<Outcome, SqlError> {
        match transaction {
            Transaction::NewOrder(order) => {
                if black_box(&self.new_order(order)?).is_none() {
                    return Ok(Outcome::RolledBack);
                }
            }
            Transaction::Payment(payment) => _ = black_box(&self.payment.call(payment)?),
            Transaction::OrderStatus(status) => _ = black_box(&self.order_status.call(status)?),
            Transaction::Delivery(delivery) => _ = black_box(&self.delivery.call(delivery)?),
            Transaction::StockLevel(level) => _ = black_box(&self.stock_level.call(level)?),
        }
        Ok(Outcome::Committed)
    }
}

impl Worker for &Transactions {
    fn run(&mut self, transactions: &[Transaction], ended: &mut dyn FnMut(Outcome)) -> Result<(), SqlError> {
        transactions.iter().try_for_each(|transaction| {
            ended(Transactions::run(self, transaction)?);
            Ok(())
        })
    }
}
