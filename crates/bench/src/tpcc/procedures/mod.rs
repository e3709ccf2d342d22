//! The five transactions of clause 2 as native procedures.
//!
//! Each produces all outputs that the specification demands. Where a transaction works through
//! rows that it can name beforehand (the lines of an order, the last orders of a district), it
//! does so in stages: ask for all index entries, find all rows and ask for their cache lines, then
//! work. That hides the memory latency and is worth a fifth of the cycles.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;
mod tables;

pub use delivery::{Delivered, DeliveryProcedure};
pub use new_order::{NewOrderProcedure, OrderResult, OrderedItem};
pub use order_status::{OrderStatusProcedure, StatusLine, StatusResult};
pub use payment::{PaymentProcedure, PaymentResult};
pub use stock_level::StockLevelProcedure;
pub use tables::{Resolver, Tables};

use std::sync::Arc;

use albireo_base::{SqlState, Tid};
use albireo_partition::{Abort, Site, Transaction};
use albireo_storage::{HandleError, ShortKey};

use super::input::CustomerKey;

/// All five procedures.
#[allow(missing_docs, reason = "the names of the specification")]
#[derive(Clone)]
pub struct Procedures {
    pub new_order: Arc<NewOrderProcedure>,
    pub payment: Arc<PaymentProcedure>,
    pub order_status: Arc<OrderStatusProcedure>,
    pub delivery: Arc<DeliveryProcedure>,
    pub stock_level: Arc<StockLevelProcedure>,
}

impl Procedures {
    /// Compiles them against the tables of a database.
    ///
    /// # Errors
    /// A table lacks a column or index, or has one of another type.
    pub fn new(resolver: &dyn Resolver) -> Result<Self, HandleError> {
        let tables = Arc::new(Tables::new(resolver)?);
        Ok(Self {
            new_order: Arc::new(NewOrderProcedure(Arc::clone(&tables))),
            payment: Arc::new(PaymentProcedure(Arc::clone(&tables))),
            order_status: Arc::new(OrderStatusProcedure(Arc::clone(&tables))),
            delivery: Arc::new(DeliveryProcedure(Arc::clone(&tables))),
            stock_level: Arc::new(StockLevelProcedure(tables)),
        })
    }
}

/// A row that must exist, by the population and the inputs.
fn found(tid: Option<Tid>, what: &'static str) -> Result<Tid, Abort> {
    tid.ok_or_else(|| missing(what))
}

#[cold]
fn missing(what: &'static str) -> Abort {
    Abort::raise(SqlState::RAISE_EXCEPTION, format!("no such {what}"))
}

/// The first 16 bytes of the keys of customers with this name.
fn name_key(district: ShortKey, name: &str) -> ShortKey {
    let room = 16 - district.len();
    match name.get(..room) {
        Some(beginning) => district.str_prefix(beginning),
        None => district.str(name),
    }
}

/// Finds a customer by id, or by name the one in the middle (clause 2.5.2.2).
fn customer(
    tables: &Tables,
    tx: &Transaction<'_, '_>,
    site: Site,
    (w_id, d_id): (i16, i16),
    key: &CustomerKey,
) -> Result<Tid, Abort> {
    let t = &tables.customer;
    let table = tx.table_at(site, t.table);
    match key {
        CustomerKey::Id(c_id) => {
            found(table.find(t.pkey, ShortKey::new().i16(w_id).i16(d_id).i32(*c_id)), "customer")
        }
        CustomerKey::LastName(last) => {
            let name = last.as_str();
            // All customers whose key begins like this, and of them those with exactly this name.
            let mut same = [Tid(0); 64];
            let mut count = 0;
            for tid in table.prefix(t.by_name, name_key(ShortKey::new().i16(w_id).i16(d_id), name)) {
                if table.text(tid, t.last) == name && count < same.len() {
                    same[count] = tid;
                    count += 1;
                }
            }
            match count {
                0 => Err(missing("customer")),
                // Position n/2 rounded up, counted from 1; the index orders by first name.
                n => Ok(same[n.div_ceil(2) - 1]),
            }
        }
    }
}
