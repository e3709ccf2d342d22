//! The five transactions as calls of registered procedures.

use std::hint::black_box;
use std::sync::Arc;

use albireo::{Database, ProcedureHandle, Receipt, SqlError, SqlState};

use crate::driver::{Ended, Outcome, Worker};
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
            new_order: database.register_repeatable(NewOrderProcedure(tables())),
            payment: database.register_repeatable(PaymentProcedure(tables())),
            order_status: database.register_procedure(OrderStatusProcedure(tables())),
            delivery: database.register_repeatable(DeliveryProcedure(tables())),
            stock_level: database.register_procedure(StockLevelProcedure(tables())),
        })
    }

    /// Runs New-Order, without waiting for a disk; `None` if it was rolled back for its unused item, as it
    /// had to be.
    ///
    /// # Errors
    /// Any other failure, and an order with an unused item that committed.
    #[inline]
    pub fn new_order(&self, order: &NewOrder) -> Result<Option<OrderResult>, SqlError> {
        self.start_new_order(order).map(|(result, _)| result)
    }

    #[inline]
    fn start_new_order(&self, order: &NewOrder) -> Result<(Option<OrderResult>, Receipt), SqlError> {
        match self.new_order.start(order) {
            Ok((result, receipt)) if !order.rolls_back => Ok((Some(result), receipt)),
            Err(error) if order.rolls_back && error.state() == SqlState::RAISE_EXCEPTION => {
                Ok((None, Receipt::default()))
            }
            Err(error) => Err(error),
            Ok(_) => {
                let text = "an order with an unused item was not rolled back";
                Err(SqlError::new(SqlState::INTERNAL_ERROR, text))
            }
        }
    }

    /// Runs one transaction, and says what to wait for before it counts. All its outputs are made, but nobody
    /// looks at them.
    ///
    /// # Errors
    /// It failed, other than by an order's unused item.
    #[inline]
    pub fn run(&self, transaction: &Transaction) -> Result<(Outcome, Receipt), SqlError> {
        let receipt = match transaction {
            Transaction::NewOrder(order) => {
                let (result, receipt) = self.start_new_order(order)?;
                if black_box(&result).is_none() {
                    return Ok((Outcome::RolledBack, receipt));
                }
                receipt
            }
            Transaction::Payment(payment) => black_box(&self.payment.start(payment)?).1,
            Transaction::OrderStatus(status) => black_box(&self.order_status.start(status)?).1,
            Transaction::Delivery(delivery) => black_box(&self.delivery.start(delivery)?).1,
            Transaction::StockLevel(level) => black_box(&self.stock_level.start(level)?).1,
        };
        Ok((Outcome::Committed, receipt))
    }
}

impl Worker for &Transactions {
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError> {
        transactions.iter().try_for_each(|transaction| {
            let (outcome, receipt) = Transactions::run(self, transaction)?;
            ended(outcome, receipt)
        })
    }
}
