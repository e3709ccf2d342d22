//! Delivery (clause 2.7), all ten districts in one transaction, without the deferred queue.

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Transaction};
use albireo_base::Tid;

use super::found;
use super::tables::Tables;
use crate::tpcc::input::Delivery;
use crate::tpcc::{DISTRICTS, MAX_ORDER_LINES};

/// The procedure.
pub struct DeliveryProcedure(pub(crate) Arc<Tables>);

/// The order delivered in each district; `None` where none was left (clause 2.7.4.2).
pub type Delivered = [Option<i32>; DISTRICTS as usize];

impl Procedure for DeliveryProcedure {
    type Args = Delivery;
    type Output = Delivered;

    fn name(&self) -> &str {
        "delivery"
    }

    fn route(&self, args: &Delivery) -> Route {
        Route::Key(args.w_id.into())
    }

    fn run(&self, tx: &mut Transaction, args: &Delivery) -> Result<Delivered, Abort> {
        let mut due = self.oldest(tx, args);
        self.find_orders(tx, args, &mut due)?;
        self.find_customers(tx, args, &mut due)?;
        let mut delivered = [None; DISTRICTS as usize];
        let now = tx.now();
        for (place, due) in delivered.iter_mut().zip(&due) {
            if let Some(due) = due {
                self.deliver(tx, args, due, now)?;
                *place = Some(due.o_id);
            }
        }
        Ok(delivered)
    }
}

/// An order to be delivered, and where its rows are.
#[derive(Clone, Copy)]
struct Due {
    new_order: Tid,
    o_id: i32,
    order: Tid,
    lines: [Tid; MAX_ORDER_LINES],
    ol_cnt: usize,
    customer: Tid,
}

type AllDue = [Option<Due>; DISTRICTS as usize];

impl DeliveryProcedure {
    /// The oldest order of each district that is not delivered. What it asks for is old enough to
    /// have left the caches, hence the stages: each finds for all districts what the next will read.
    fn oldest(&self, tx: &Transaction, args: &Delivery) -> AllDue {
        let t = &self.0;
        let (n, new_orders) = (&t.new_order, tx.table(t.new_order.table));
        let (orders, order_lines) = (tx.table(t.orders.table), tx.table(t.order_line.table));
        let district = |d_id| ShortKey::new().i16(args.w_id).i16(d_id);
        let mut due = [None; DISTRICTS as usize];
        for (place, d_id) in due.iter_mut().zip(1..) {
            let Some(new_order) = new_orders.first(n.pkey, district(d_id)) else { continue };
            new_orders.prefetch(new_order, n.o_id);
            *place = Some(Due {
                new_order,
                o_id: 0,
                order: Tid(0),
                lines: [Tid(0); MAX_ORDER_LINES],
                ol_cnt: 0,
                customer: Tid(0),
            });
        }
        for (due, d_id) in due.iter_mut().zip(1..) {
            let Some(due) = due else { continue };
            due.o_id = new_orders.get(due.new_order, n.o_id);
            orders.prefetch_key(t.orders.pkey, district(d_id).i32(due.o_id));
            order_lines.prefetch_key(t.order_line.pkey, district(d_id).i32(due.o_id));
        }
        due
    }

    fn find_orders(&self, tx: &Transaction, args: &Delivery, due: &mut AllDue) -> Result<(), Abort> {
        let t = &self.0;
        let (o, orders) = (&t.orders, tx.table(t.orders.table));
        let (l, order_lines) = (&t.order_line, tx.table(t.order_line.table));
        for (due, d_id) in due.iter_mut().zip(1..) {
            let Some(due) = due else { continue };
            let key = ShortKey::new().i16(args.w_id).i16(d_id).i32(due.o_id);
            due.order = found(orders.find(o.pkey, key), "order")?;
            orders.prefetch(due.order, o.c_id);
            orders.prefetch(due.order, o.carrier_id);
            for (place, tid) in due.lines.iter_mut().zip(order_lines.prefix(l.pkey, key)) {
                *place = tid;
                due.ol_cnt += 1;
            }
            // An order's lines lie one behind the other, mostly in one cache line or two.
            for &line in &due.lines[..due.ol_cnt] {
                order_lines.prefetch(line, l.amount);
                order_lines.prefetch(line, l.delivery_d);
            }
        }
        Ok(())
    }

    fn find_customers(&self, tx: &Transaction, args: &Delivery, due: &mut AllDue) -> Result<(), Abort> {
        let t = &self.0;
        let (c, customers) = (&t.customer, tx.table(t.customer.table));
        let orders = tx.table(t.orders.table);
        let mut keys = [ShortKey::new(); DISTRICTS as usize];
        for ((key, due), d_id) in keys.iter_mut().zip(due.iter()).zip(1..) {
            let Some(due) = due else { continue };
            let c_id = orders.get(due.order, t.orders.c_id);
            *key = ShortKey::new().i16(args.w_id).i16(d_id).i32(c_id);
            customers.prefetch_key(c.pkey, *key);
        }
        for (due, &key) in due.iter_mut().zip(&keys) {
            let Some(due) = due else { continue };
            due.customer = found(customers.find(c.pkey, key), "customer")?;
            customers.prefetch(due.customer, c.balance);
            customers.prefetch_liveness(due.customer);
        }
        Ok(())
    }

    /// Clause 2.7.4.2 for one district.
    fn deliver(&self, tx: &mut Transaction, args: &Delivery, due: &Due, now: i64) -> Result<(), Abort> {
        let (n, o, l, c) = (&self.0.new_order, &self.0.orders, &self.0.order_line, &self.0.customer);
        tx.delete(n.table, due.new_order)?;
        tx.update_row(o.table, due.order, &o.delivered, |_| (Some(args.o_carrier_id),))?;
        let mut total = 0;
        for &line in &due.lines[..due.ol_cnt] {
            total += tx.table(l.table).get(line, l.amount);
            tx.update_row(l.table, line, &l.delivered, |_| (Some(now),))?;
        }
        tx.update_row(c.table, due.customer, &c.delivered, |(balance, count)| (balance + total, count + 1))?;
        Ok(())
    }
}
