//! The transactions that change rows as calls in the redo log.
//!
//! They do the same again: rows are found by whole unique keys, but customers by name, whose index orders
//! them by number at last, and lines of an order, each of which is changed alike.

use std::sync::Arc;

use albireo::{Database, Procedures, Repeatable, SqlError};
use albireo_base::packed::{Input, Malformed, put_bytes, put_number, put_signed};

use super::{DeliveryProcedure, NewOrderProcedure, PaymentProcedure, Tables};
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::{CustomerKey, Delivery, Line, NewOrder, Payment};
use crate::tpcc::rows::Fixed;
use crate::tpcc::text::Text;

/// The procedures that recovery calls: for [`albireo::Config::procedures`].
pub fn logged() -> Procedures {
    let tables =
        |database: &Database| -> Result<Arc<Tables>, SqlError> { Tables::new(database).map(Arc::new) };
    Procedures::default()
        .with("new_order", move |database| tables(database).map(NewOrderProcedure))
        .with("payment", move |database| tables(database).map(PaymentProcedure))
        .with("delivery", move |database| tables(database).map(DeliveryProcedure))
}

/// Reads arguments to their end.
fn read<T>(bytes: &[u8], read: impl FnOnce(&mut Input<'_>) -> Result<T, Malformed>) -> Option<T> {
    let mut input = Input::new(bytes);
    read(&mut input).ok().filter(|_| input.is_empty())
}

impl Repeatable for NewOrderProcedure {
    const VERSION: u32 = 1;

    fn put_args(order: &NewOrder, out: &mut Vec<u8>) {
        put_signed(out, order.w_id.into());
        put_signed(out, order.d_id.into());
        put_signed(out, order.c_id.into());
        put_number(out, order.lines().len() as u64);
        for Line { i_id, supply_w_id, quantity } in order.lines() {
            put_signed(out, (*i_id).into());
            put_signed(out, (*supply_w_id).into());
            put_signed(out, (*quantity).into());
        }
    }

    fn read_args(bytes: &[u8]) -> Option<NewOrder> {
        read(bytes, |input| {
            let (w_id, d_id, c_id) = (input.narrow()?, input.narrow()?, input.narrow()?);
            let mut lines = [Line::default(); MAX_ORDER_LINES];
            let count = input.number()? as usize;
            let lines = lines.get_mut(..count).ok_or_else(|| input.wrong("an order has up to 15 lines"))?;
            for line in lines.iter_mut() {
                let (i_id, supply_w_id, quantity) = (input.narrow()?, input.narrow()?, input.narrow()?);
                *line = Line { i_id, supply_w_id, quantity };
            }
            // One that rolled back is not in the log.
            Ok(NewOrder::new(w_id, d_id, c_id, lines, false))
        })
    }
}

impl Repeatable for PaymentProcedure {
    const VERSION: u32 = 1;

    fn put_args(payment: &Payment, out: &mut Vec<u8>) {
        for id in [payment.w_id, payment.d_id, payment.c_w_id, payment.c_d_id] {
            put_signed(out, id.into());
        }
        put_signed(out, payment.h_amount.0);
        match &payment.customer {
            CustomerKey::Id(id) => {
                out.push(0);
                put_signed(out, (*id).into());
            }
            CustomerKey::LastName(name) => {
                out.push(1);
                put_bytes(out, name.as_str().as_bytes());
            }
        }
    }

    fn read_args(bytes: &[u8]) -> Option<Payment> {
        read(bytes, |input| {
            let (w_id, d_id) = (input.narrow()?, input.narrow()?);
            let (c_w_id, c_d_id) = (input.narrow()?, input.narrow()?);
            let h_amount = Fixed(input.signed()?);
            let customer = match input.byte()? {
                0 => CustomerKey::Id(input.narrow()?),
                _ => match input.text()? {
                    name if name.len() <= 16 => CustomerKey::LastName(Text::new(name)),
                    _ => return Err(input.wrong("a name has up to 16 characters")),
                },
            };
            Ok(Payment { w_id, d_id, c_w_id, c_d_id, customer, h_amount })
        })
    }
}

impl Repeatable for DeliveryProcedure {
    const VERSION: u32 = 1;

    fn put_args(delivery: &Delivery, out: &mut Vec<u8>) {
        put_signed(out, delivery.w_id.into());
        put_signed(out, delivery.o_carrier_id.into());
    }

    fn read_args(bytes: &[u8]) -> Option<Delivery> {
        read(bytes, |input| Ok(Delivery { w_id: input.narrow()?, o_carrier_id: input.narrow()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<P: Repeatable>(args: &P::Args) -> Vec<u8> {
        let mut bytes = Vec::new();
        P::put_args(args, &mut bytes);
        bytes
    }

    #[test]
    fn arguments_come_back() {
        let line = |i_id| Line { i_id, supply_w_id: 3, quantity: 10 };
        let order = NewOrder::new(3, 10, 2999, &[line(99_999), line(1), line(50_000)], false);
        let written = bytes::<NewOrderProcedure>(&order);
        assert!(written.len() <= 25, "{}", written.len());
        assert_eq!(NewOrderProcedure::read_args(&written), Some(order));
        for customer in [CustomerKey::Id(7), CustomerKey::LastName(Text::new("BARBARBAR"))] {
            let h_amount = Fixed(499_999);
            let payment = Payment { w_id: 1, d_id: 2, c_w_id: 3, c_d_id: 4, customer, h_amount };
            let written = bytes::<PaymentProcedure>(&payment);
            assert_eq!(PaymentProcedure::read_args(&written), Some(payment));
            assert_eq!(PaymentProcedure::read_args(&written[1..]), None);
        }
        let delivery = Delivery { w_id: 1, o_carrier_id: 9 };
        assert_eq!(DeliveryProcedure::read_args(&bytes::<DeliveryProcedure>(&delivery)), Some(delivery));
        assert_eq!(NewOrderProcedure::read_args(&[2, 2, 2, 0xff, 0xff, 3]), None);
    }
}
