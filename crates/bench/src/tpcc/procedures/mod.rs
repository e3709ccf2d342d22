//! The five transactions of clause 2 as native procedures.
//!
//! Each produces all outputs that the specification demands. Where a transaction works through
//! rows that it can name beforehand (the lines of an order, the last orders of a district), it
//! does so in stages: ask for all index entries, find all rows and ask for their cache lines, then
//! work. That hides the memory latency and is worth a fifth of the cycles.
//!
//! Asking also for the rows of the next two transactions while one runs was tried: looking all keys up
//! twice costs more (8 %) than it hides.

mod commands;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;
mod tables;

pub use commands::logged;
pub use delivery::{Delivered, DeliveryProcedure};
pub use new_order::{NewOrderProcedure, OrderResult, OrderedItem};
pub use order_status::{OrderStatusProcedure, StatusLine, StatusResult};
pub use payment::{PaymentProcedure, PaymentResult};
pub use stock_level::StockLevelProcedure;
pub use tables::Tables;

use albireo::{Abort, ShortKey, Site, Transaction};
use albireo_base::{SqlState, Tid};

use super::input::CustomerKey;

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

/// Customers of one name in a district that are remembered while they are counted: the specification's
/// population has 3 on average. Of more than twice as many the one in the middle is looked up again.
const FEW_NAMESAKES: usize = 32;

/// Asks for the index entries of what [`customer`] will look for.
fn ask_for_customer(
    tables: &Tables,
    tx: &Transaction,
    site: Site,
    (w_id, d_id): (i16, i16),
    key: &CustomerKey,
) {
    let (t, district) = (&tables.customer, ShortKey::new().i16(w_id).i16(d_id));
    let table = tx.table_at(site, t.table);
    match key {
        CustomerKey::Id(c_id) => table.prefetch_key(t.pkey, district.i32(*c_id)),
        CustomerKey::LastName(last) => table.prefetch_key(t.by_name, name_key(district, last.as_str())),
    }
}

/// Finds a customer by id, or by name the one in the middle (clause 2.5.2.2).
fn customer(
    tables: &Tables,
    tx: &Transaction,
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
            let key = name_key(ShortKey::new().i16(w_id).i16(d_id), name);
            let namesakes = || table.prefix(t.by_name, key).filter(|&tid| table.text(tid, t.last) == name);
            let mut first = [Tid(0); FEW_NAMESAKES];
            let mut count = 0;
            for tid in namesakes() {
                if let Some(place) = first.get_mut(count) {
                    *place = tid;
                }
                count += 1;
            }
            // Position n/2 rounded up, counted from 1; the index orders by first name.
            match count.div_ceil(2).checked_sub(1) {
                None => Err(missing("customer")),
                Some(middle) if middle < FEW_NAMESAKES => Ok(first[middle]),
                Some(middle) => found(namesakes().nth(middle), "customer"),
            }
        }
    }
}
