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

    fn run(&self, tx: &mut Transaction<'_, '_>, args: &Delivery) -> Result<Delivered, Abort> {
        let mut delivered = [None; DISTRICTS as usize];
        let now = tx.now();
        for d_id in 1..=DISTRICTS {
            delivered[d_id as usize - 1] = self.district(tx, args, d_id, now)?;
        }
        Ok(delivered)
    }
}

impl DeliveryProcedure {
    fn district(
        &self,
        tx: &mut Transaction<'_, '_>,
        args: &Delivery,
        d_id: i16,
        now: i64,
    ) -> Result<Option<i32>, Abort> {
        let t = &self.0;
        let district = ShortKey::new().i16(args.w_id).i16(d_id);
        let n = &t.new_order;
        let Some(oldest) = tx.table(n.table).prefix(n.pkey, district).next() else {
            return Ok(None);
        };
        let o_id = tx.table(n.table).get(oldest, n.o_id);
        tx.delete(n.table, oldest)?;
        let (o, l, c) = (&t.orders, &t.order_line, &t.customer);
        let order = found(tx.table(o.table).find(o.pkey, district.i32(o_id)), "order")?;
        let c_id = tx.table(o.table).get(order, o.c_id);
        let customer = found(tx.table(c.table).find(c.pkey, district.i32(c_id)), "customer")?;
        tx.table(c.table).prefetch(customer, c.balance);
        tx.update(o.table, order, |row| row.set(o.carrier_id, args.o_carrier_id))?;
        let mut lines = [Tid(0); MAX_ORDER_LINES];
        let mut count = 0;
        for (place, tid) in lines.iter_mut().zip(tx.table(l.table).prefix(l.pkey, district.i32(o_id))) {
            *place = tid;
            count += 1;
        }
        let mut total = 0;
        for &tid in &lines[..count] {
            total += tx.table(l.table).get(tid, l.amount);
            tx.update(l.table, tid, |row| row.set(l.delivery_d, now))?;
        }
        tx.update(c.table, customer, |row| {
            row.modify(c.balance, |balance| balance + total)?;
            row.modify(c.delivery_cnt, |count| count + 1)
        })?;
        Ok(Some(o_id))
    }
}
