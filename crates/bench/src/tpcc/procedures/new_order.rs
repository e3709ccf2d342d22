//! New-Order (clause 2.4).

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Site, Transaction};
use albireo_base::{SqlState, Tid};

use super::found;
use super::tables::Tables;
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::NewOrder;
use crate::tpcc::text::Text;

/// The procedure.
pub struct NewOrderProcedure(pub(crate) Arc<Tables>);

/// What the terminal shows of one line (clause 2.4.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct OrderedItem {
    pub i_name: Text<24>,
    pub s_quantity: i16,
    /// `'B'` if both I_DATA and S_DATA hold "ORIGINAL", else `'G'`.
    pub brand_generic: char,
    pub i_price: i64,
    pub ol_amount: i64,
}

/// What the terminal shows (clause 2.4.3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct OrderResult {
    pub o_id: i32,
    pub o_entry_d: i64,
    pub c_last: Text<16>,
    pub c_credit: Text<2>,
    /// Ten-thousandths.
    pub c_discount: i64,
    /// Ten-thousandths.
    pub w_tax: i64,
    /// Ten-thousandths.
    pub d_tax: i64,
    /// Hundredths, rounded half away from zero.
    pub total_amount: i64,
    items: [OrderedItem; MAX_ORDER_LINES],
    ol_cnt: u8,
}

impl OrderResult {
    /// The lines.
    pub fn items(&self) -> &[OrderedItem] {
        &self.items[..usize::from(self.ol_cnt)]
    }
}

/// Where a line's rows are.
#[derive(Clone, Copy)]
struct Place {
    /// `None`: there is no such item, and the line rolls the order back.
    item: Option<Tid>,
    stock: Tid,
    site: Site,
}

/// What an order knows before its lines are worked through.
struct Head {
    o_id: i32,
    entry_d: i64,
    discount: i64,
    w_tax: i64,
    d_tax: i64,
}

const EMPTY_ITEM: OrderedItem =
    OrderedItem { i_name: Text::EMPTY, s_quantity: 0, brand_generic: 'G', i_price: 0, ol_amount: 0 };

impl Procedure for NewOrderProcedure {
    type Args = NewOrder;
    type Output = OrderResult;

    fn name(&self) -> &str {
        "new_order"
    }

    fn route(&self, args: &NewOrder) -> Route {
        Route::Key(args.w_id.into())
    }

    fn run(&self, tx: &mut Transaction<'_, '_>, args: &NewOrder) -> Result<OrderResult, Abort> {
        let places = self.places(tx, args)?;
        let places = &places[..args.lines().len()];
        let (head, mut result) = self.open(tx, args)?;
        let t = &self.0;
        // The texts that decide the brand lie behind their slots: one more stage.
        for place in places {
            let Some(item) = place.item else { continue };
            tx.table(t.item.table).prefetch_body(item, t.item.data);
            tx.table_at(place.site, t.stock.base.table).prefetch_body(place.stock, t.stock.base.data);
        }
        let mut total = 0;
        for (number, place) in places.iter().enumerate() {
            let item = self.line(tx, args, head.o_id, number, *place)?;
            total += item.ol_amount;
            result.items[number] = item;
        }
        // Hundredths times two factors in ten-thousandths.
        let exact = i128::from(total) * i128::from(10_000 - head.discount);
        let exact = exact * i128::from(10_000 + head.w_tax + head.d_tax);
        result.total_amount = ((exact + 50_000_000) / 100_000_000) as i64;
        debug_assert!(result.o_entry_d == head.entry_d);
        Ok(result)
    }
}

impl NewOrderProcedure {
    /// Finds the rows of all lines and asks for their cache lines.
    fn places(&self, tx: &Transaction<'_, '_>, args: &NewOrder) -> Result<[Place; MAX_ORDER_LINES], Abort> {
        let t = &self.0;
        let items = tx.table(t.item.table);
        let item_key = |i_id: i32| ShortKey::new().i32(i_id);
        let stock_key = |w_id: i16, i_id: i32| ShortKey::new().i16(w_id).i32(i_id);
        let mut places = [Place { item: None, stock: Tid(0), site: tx.home() }; MAX_ORDER_LINES];
        let (c, customers) = (&t.customer, tx.table(t.customer.table));
        let customer = ShortKey::new().i16(args.w_id).i16(args.d_id).i32(args.c_id);
        customers.prefetch_key(c.pkey, customer);
        tx.table(t.orders.table).prefetch_key(t.orders.by_customer, customer);
        for (place, line) in places.iter_mut().zip(args.lines()) {
            place.site = tx.site_of(line.supply_w_id.into())?;
            items.prefetch_key(t.item.pkey, item_key(line.i_id));
            tx.table_at(place.site, t.stock.base.table)
                .prefetch_key(t.stock.base.pkey, stock_key(line.supply_w_id, line.i_id));
        }
        if let Some(customer) = customers.find(c.pkey, customer) {
            customers.prefetch(customer, c.discount);
            customers.prefetch_text(customer, c.last);
            customers.prefetch_text(customer, c.credit);
        }
        let dist = t.stock.dist[args.d_id as usize - 1];
        for (place, line) in places.iter_mut().zip(args.lines()) {
            place.item = items.find(t.item.pkey, item_key(line.i_id));
            let Some(item) = place.item else { continue };
            let stock = tx.table_at(place.site, t.stock.base.table);
            place.stock =
                found(stock.find(t.stock.base.pkey, stock_key(line.supply_w_id, line.i_id)), "stock")?;
            items.prefetch(item, t.item.price);
            items.prefetch_text(item, t.item.name);
            items.prefetch_text(item, t.item.data);
            stock.prefetch(place.stock, t.stock.base.quantity);
            stock.prefetch_text(place.stock, dist);
            stock.prefetch_text(place.stock, t.stock.base.data);
        }
        Ok(places)
    }

    /// Everything that comes before the lines.
    fn open(&self, tx: &mut Transaction<'_, '_>, args: &NewOrder) -> Result<(Head, OrderResult), Abort> {
        let t = &self.0;
        let entry_d = tx.now();
        let warehouse = found(
            tx.table(t.warehouse.table).find(t.warehouse.pkey, ShortKey::new().i16(args.w_id)),
            "warehouse",
        )?;
        let district_key = ShortKey::new().i16(args.w_id).i16(args.d_id);
        let district = found(tx.table(t.district.table).find(t.district.pkey, district_key), "district")?;
        let customer = tx.table(t.customer.table);
        let customer_key = district_key.i32(args.c_id);
        let customer_tid = found(customer.find(t.customer.pkey, customer_key), "customer")?;
        let w_tax = tx.table(t.warehouse.table).get(warehouse, t.warehouse.tax);
        let d_tax = tx.table(t.district.table).get(district, t.district.tax);
        let discount = customer.get(customer_tid, t.customer.discount);
        let c_last = Text::new(customer.text(customer_tid, t.customer.last));
        let c_credit = Text::new(customer.text(customer_tid, t.customer.credit));
        let o_id = tx
            .update(t.district.table, district, |row| row.modify(t.district.next_o_id, |next| next + 1))?
            - 1;
        let ol_cnt = args.lines().len() as i16;
        let mut order = tx.insert(t.orders.table)?;
        order
            .set(t.orders.id, o_id)
            .set(t.orders.d_id, args.d_id)
            .set(t.orders.w_id, args.w_id)
            .set(t.orders.c_id, args.c_id)
            .set(t.orders.entry_d, entry_d)
            .set_opt(t.orders.carrier_id, None)
            .set(t.orders.ol_cnt, ol_cnt)
            .set(t.orders.all_local, i16::from(args.all_local));
        order.finish()?;
        let mut new_order = tx.insert(t.new_order.table)?;
        new_order
            .set(t.new_order.o_id, o_id)
            .set(t.new_order.d_id, args.d_id)
            .set(t.new_order.w_id, args.w_id);
        new_order.finish()?;
        let result = OrderResult {
            o_id,
            o_entry_d: entry_d,
            c_last,
            c_credit,
            c_discount: discount,
            w_tax,
            d_tax,
            total_amount: 0,
            items: [EMPTY_ITEM; MAX_ORDER_LINES],
            ol_cnt: ol_cnt as u8,
        };
        Ok((Head { o_id, entry_d, discount, w_tax, d_tax }, result))
    }

    /// One line (clause 2.4.2.2). An item that does not exist rolls back the order and what earlier
    /// lines did (clause 2.4.2.3).
    fn line(
        &self,
        tx: &mut Transaction<'_, '_>,
        args: &NewOrder,
        o_id: i32,
        number: usize,
        place: Place,
    ) -> Result<OrderedItem, Abort> {
        let t = &self.0;
        let (line, s) = (&args.lines()[number], &t.stock);
        let Some(item) = place.item else { return Err(unused_item()) };
        let items = tx.table(t.item.table);
        let price = items.get(item, t.item.price);
        let i_name = Text::new(items.text(item, t.item.name));
        let original = is_original(items.text(item, t.item.data));
        let stock = tx.table_at(place.site, s.base.table);
        let original = original && is_original(stock.text(place.stock, s.base.data));
        let dist_info: Text<24> = Text::new(stock.text(place.stock, s.dist[args.d_id as usize - 1]));
        let remote = line.supply_w_id != args.w_id;
        let s_quantity = tx.update_at(place.site, s.base.table, place.stock, |row| {
            let quantity = row.modify(s.base.quantity, |quantity| {
                let left = quantity - line.quantity;
                if left >= 10 { left } else { left + 91 }
            })?;
            row.modify(s.base.ytd, |ytd| ytd + i32::from(line.quantity))?;
            row.modify(s.base.order_cnt, |count| count + 1)?;
            if remote {
                row.modify(s.base.remote_cnt, |count| count + 1)?;
            }
            Ok(quantity)
        })?;
        let ol_amount = price * i64::from(line.quantity);
        let l = &t.order_line;
        let mut row = tx.insert(l.table)?;
        row.set(l.o_id, o_id)
            .set(l.d_id, args.d_id)
            .set(l.w_id, args.w_id)
            .set(l.number, number as i16 + 1)
            .set(l.i_id, line.i_id)
            .set(l.supply_w_id, line.supply_w_id)
            .set_opt(l.delivery_d, None)
            .set(l.quantity, line.quantity)
            .set(l.amount, ol_amount);
        row.set_text(l.dist_info, dist_info.as_str())?;
        row.finish()?;
        let brand_generic = if original { 'B' } else { 'G' };
        Ok(OrderedItem { i_name, s_quantity, brand_generic, i_price: price, ol_amount })
    }
}

/// Whether I_DATA or S_DATA holds "ORIGINAL".
fn is_original(data: &str) -> bool {
    data.contains("ORIGINAL")
}

#[cold]
fn unused_item() -> Abort {
    Abort::raise(SqlState::RAISE_EXCEPTION, "item number is not valid")
}
