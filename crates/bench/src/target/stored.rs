//! The five transactions as calls of stored routines in PL/pgSQL: the source is the one that PostgreSQL
//! takes, too.

use std::hint::black_box;

use albireo::{Argument, ArgumentRef, Database, Receipt, Reply, RoutineHandle, SqlError, SqlState, ValueRef};
use albireo_base::Decimal;

use crate::driver::{Ended, Outcome, Worker};
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::{CustomerKey, NewOrder, Transaction};

/// The routines' source.
const SOURCE: &str = include_str!("../../sql/tpcc_procedures.sql");

/// The five routines, created in a database.
#[allow(missing_docs, reason = "the names of the specification")]
pub struct StoredTransactions {
    database: Database,
    pub new_order: RoutineHandle,
    pub payment: RoutineHandle,
    pub order_status: RoutineHandle,
    pub delivery: RoutineHandle,
    pub stock_level: RoutineHandle,
}

/// What a transaction gave, and what to wait for before it counts.
type Started = (Option<Reply>, Receipt);

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
            database: database.clone(),
            new_order: database.routine("new_order")?,
            payment: database.routine("payment")?,
            order_status: database.routine("order_status")?,
            delivery: database.routine("delivery")?,
            stock_level: database.routine("stock_level")?,
        })
    }

    /// The same, run by the interpreter.
    pub fn interpreted(self) -> Self {
        Self {
            database: self.database,
            new_order: self.new_order.interpreted(),
            payment: self.payment.interpreted(),
            order_status: self.order_status.interpreted(),
            delivery: self.delivery.interpreted(),
            stock_level: self.stock_level.interpreted(),
        }
    }

    /// Runs one transaction; `None` if it was rolled back for its unused item, as it had to be.
    ///
    /// # Errors
    /// Any other failure, and an order with an unused item that committed.
    pub fn run(&self, transaction: &Transaction) -> Result<Option<Row>, SqlError> {
        let (reply, receipt) = self.call(transaction)?;
        self.database.acknowledge(receipt)?;
        Ok(reply.and_then(|reply| reply.into_rows().into_iter().next()))
    }

    /// Runs one transaction, and says what to wait for before it counts.
    fn call(&self, transaction: &Transaction) -> Result<Started, SqlError> {
        let reply = match transaction {
            Transaction::NewOrder(order) => return self.order(order),
            Transaction::Payment(payment) => {
                let (c_id, c_last) = customer(&payment.customer);
                let amount = Decimal::new(payment.h_amount.0.into(), 2);
                self.payment.start(&[
                    payment.w_id.into(),
                    payment.d_id.into(),
                    payment.c_w_id.into(),
                    payment.c_d_id.into(),
                    c_id,
                    c_last,
                    amount.into(),
                ])
            }
            Transaction::OrderStatus(status) => {
                let (c_id, c_last) = customer(&status.customer);
                self.order_status.start(&[status.w_id.into(), status.d_id.into(), c_id, c_last])
            }
            Transaction::Delivery(delivery) => {
                self.delivery.start(&[delivery.w_id.into(), delivery.o_carrier_id.into()])
            }
            Transaction::StockLevel(level) => {
                self.stock_level.start(&[level.w_id.into(), level.d_id.into(), level.threshold.into()])
            }
        };
        reply.map(|(reply, receipt)| (Some(reply), receipt))
    }

    fn order(&self, order: &NewOrder) -> Result<Started, SqlError> {
        let (mut items, mut supplies, mut quantities) =
            ([0; MAX_ORDER_LINES], [0; MAX_ORDER_LINES], [0; MAX_ORDER_LINES]);
        let lines = order.lines();
        for (n, line) in lines.iter().enumerate() {
            (items[n], supplies[n], quantities[n]) = (line.i_id, line.supply_w_id, line.quantity);
        }
        let reply = self.new_order.start(&[
            order.w_id.into(),
            order.d_id.into(),
            order.c_id.into(),
            items[..lines.len()].into(),
            supplies[..lines.len()].into(),
            quantities[..lines.len()].into(),
        ]);
        match reply {
            Ok((reply, receipt)) if !order.rolls_back => Ok((Some(reply), receipt)),
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
}

fn customer(key: &CustomerKey) -> (ArgumentRef<'_>, ArgumentRef<'_>) {
    match key {
        CustomerKey::Id(c_id) => ((*c_id).into(), ValueRef::Null.into()),
        CustomerKey::LastName(last) => (ValueRef::Null.into(), last.as_str().into()),
    }
}

impl Worker for &StoredTransactions {
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError> {
        transactions.iter().try_for_each(|transaction| {
            let (reply, receipt) = self.call(transaction)?;
            match black_box(&reply) {
                Some(_) => ended(Outcome::Committed, receipt),
                None => ended(Outcome::RolledBack, receipt),
            }
        })
    }
}
