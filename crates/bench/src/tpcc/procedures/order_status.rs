//! Order-Status (clause 2.6).

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Transaction};

use super::tables::Tables;
use super::{customer, found};
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::OrderStatus;
use crate::tpcc::text::Text;

/// The procedure.
pub struct OrderStatusProcedure(pub(crate) Arc<Tables>);

/// One line of the customer's last order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct StatusLine {
    pub ol_supply_w_id: i16,
    pub ol_i_id: i32,
    pub ol_quantity: i16,
    pub ol_amount: i64,
    pub ol_delivery_d: Option<i64>,
}

/// What the terminal shows (clause 2.6.3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct StatusResult {
    pub c_id: i32,
    pub c_first: Text<16>,
    pub c_middle: Text<2>,
    pub c_last: Text<16>,
    pub c_balance: i64,
    pub o_id: i32,
    pub o_entry_d: i64,
    pub o_carrier_id: Option<i16>,
    lines: [StatusLine; MAX_ORDER_LINES],
    ol_cnt: u8,
}

impl StatusResult {
    /// The order's lines.
    pub fn lines(&self) -> &[StatusLine] {
        &self.lines[..usize::from(self.ol_cnt)]
    }
}

impl Procedure for OrderStatusProcedure {
    type Args = OrderStatus;
    type Output = StatusResult;

    fn name(&self) -> &str {
        "order_status"
    }

    fn route(&self, args: &OrderStatus) -> Route {
        Route::Key(args.w_id.into())
    }

    fn run(&self, tx: &mut Transaction, args: &OrderStatus) -> Result<StatusResult, Abort> {
        let t = &self.0;
        let tid = customer(t, tx, tx.home(), (args.w_id, args.d_id), &args.customer)?;
        let (c, customers) = (&t.customer, tx.table(t.customer.table));
        let c_id = customers.get(tid, c.id);
        let district = ShortKey::new().i16(args.w_id).i16(args.d_id);
        let (o, orders) = (&t.orders, tx.table(t.orders.table));
        let order = found(orders.last(o.by_customer, district.i32(c_id)), "order")?;
        let (o_id, o_entry_d, o_carrier_id) = orders.read(order, &o.status);
        let (l, order_lines) = (&t.order_line, tx.table(t.order_line.table));
        let mut lines = [StatusLine::default(); MAX_ORDER_LINES];
        let mut ol_cnt = 0;
        for (line, tid) in lines.iter_mut().zip(order_lines.prefix(l.pkey, district.i32(o_id))) {
            let (ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d) =
                order_lines.read(tid, &l.status);
            *line = StatusLine { ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d };
            ol_cnt += 1;
        }
        Ok(StatusResult {
            c_id,
            c_first: Text::new(&customers.text(tid, c.first)),
            c_middle: Text::new(&customers.text(tid, c.middle)),
            c_last: Text::new(&customers.text(tid, c.last)),
            c_balance: customers.get(tid, c.balance),
            o_id,
            o_entry_d,
            o_carrier_id,
            lines,
            ol_cnt,
        })
    }
}
