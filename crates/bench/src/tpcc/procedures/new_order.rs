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
    customer: Tid,
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

    /// In stages, each of which asks for what a later one will read and then does other work, so that
    /// memory has time to answer.
    fn run(&self, tx: &mut Transaction<'_, '_>, args: &NewOrder) -> Result<OrderResult, Abort> {
        let mut places = self.ask_for_keys(tx, args)?;
        let places = &mut places[..args.lines().len()];
        let head = self.head(tx, args)?;
        self.find_rows(tx, args, places)?;
        self.insert_order(tx, args, &head)?;
        let t = &self.0;
        let mut result = self.customer(tx, args, &head);
        // The texts that decide the brand lie behind their slots: one more stage.
        for place in &*places {
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
        let exact = i128::from(total) * i128::from(10_000 - result.c_discount);
        let exact = exact * i128::from(10_000 + head.w_tax + head.d_tax);
        result.total_amount = ((exact + 50_000_000) / 100_000_000) as i64;
        Ok(result)
    }
}

impl NewOrderProcedure {
    /// Asks for the index entries of the customer and of all lines.
    fn ask_for_keys(
        &self,
        tx: &Transaction<'_, '_>,
        args: &NewOrder,
    ) -> Result<[Place; MAX_ORDER_LINES], Abort> {
        let t = &self.0;
        let items = tx.table(t.item.table);
        let mut places = [Place { item: None, stock: Tid(0), site: tx.home() }; MAX_ORDER_LINES];
        tx.table(t.customer.table).prefetch_key(t.customer.pkey, customer_key(args));
        for (place, line) in places.iter_mut().zip(args.lines()) {
            place.site = tx.site_of(line.supply_w_id.into())?;
            items.prefetch_key(t.item.pkey, item_key(line.i_id));
            tx.table_at(place.site, t.stock.base.table)
                .prefetch_key(t.stock.base.pkey, stock_key(line.supply_w_id, line.i_id));
        }
        tx.table(t.orders.table).prefetch_key(t.orders.by_customer, customer_key(args));
        Ok(places)
    }

    /// Warehouse, district and the order's number; asks for the customer's row.
    fn head(&self, tx: &mut Transaction<'_, '_>, args: &NewOrder) -> Result<Head, Abort> {
        let t = &self.0;
        let entry_d = tx.now();
        let (w, d, c) = (&t.warehouse, &t.district, &t.customer);
        let customers = tx.table(c.table);
        let customer = found(customers.find(c.pkey, customer_key(args)), "customer")?;
        customers.prefetch(customer, c.discount);
        customers.prefetch_text(customer, c.last);
        let warehouse_key = ShortKey::new().i16(args.w_id);
        let warehouse = found(tx.table(w.table).find(w.pkey, warehouse_key), "warehouse")?;
        let district = found(tx.table(d.table).find(d.pkey, warehouse_key.i16(args.d_id)), "district")?;
        let w_tax = tx.table(w.table).get(warehouse, w.tax);
        let d_tax = tx.table(d.table).get(district, d.tax);
        let next = tx.update(d.table, district, |row| row.modify(d.next_o_id, |next| next + 1))?;
        Ok(Head { o_id: next - 1, entry_d, customer, w_tax, d_tax })
    }

    /// Finds the rows of all lines and asks for their cache lines.
    fn find_rows(
        &self,
        tx: &Transaction<'_, '_>,
        args: &NewOrder,
        places: &mut [Place],
    ) -> Result<(), Abort> {
        let t = &self.0;
        let items = tx.table(t.item.table);
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
        Ok(())
    }

    /// The rows of ORDERS and NEW_ORDER.
    fn insert_order(&self, tx: &mut Transaction<'_, '_>, args: &NewOrder, head: &Head) -> Result<(), Abort> {
        let t = &self.0;
        let mut order = tx.insert(t.orders.table)?;
        order
            .set(t.orders.id, head.o_id)
            .set(t.orders.d_id, args.d_id)
            .set(t.orders.w_id, args.w_id)
            .set(t.orders.c_id, args.c_id)
            .set(t.orders.entry_d, head.entry_d)
            .set_opt(t.orders.carrier_id, None)
            .set(t.orders.ol_cnt, args.lines().len() as i16)
            .set(t.orders.all_local, i16::from(args.all_local));
        order.finish()?;
        let mut new_order = tx.insert(t.new_order.table)?;
        new_order
            .set(t.new_order.o_id, head.o_id)
            .set(t.new_order.d_id, args.d_id)
            .set(t.new_order.w_id, args.w_id);
        new_order.finish()?;
        Ok(())
    }

    /// The result but for its lines and their sum.
    fn customer(&self, tx: &Transaction<'_, '_>, args: &NewOrder, head: &Head) -> OrderResult {
        let (c, customers) = (&self.0.customer, tx.table(self.0.customer.table));
        OrderResult {
            o_id: head.o_id,
            o_entry_d: head.entry_d,
            c_last: Text::new(customers.text(head.customer, c.last)),
            c_credit: Text::new(customers.text(head.customer, c.credit)),
            c_discount: customers.get(head.customer, c.discount),
            w_tax: head.w_tax,
            d_tax: head.d_tax,
            total_amount: 0,
            items: [EMPTY_ITEM; MAX_ORDER_LINES],
            ol_cnt: args.lines().len() as u8,
        }
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

fn item_key(i_id: i32) -> ShortKey {
    ShortKey::new().i32(i_id)
}

fn stock_key(w_id: i16, i_id: i32) -> ShortKey {
    ShortKey::new().i16(w_id).i32(i_id)
}

fn customer_key(args: &NewOrder) -> ShortKey {
    ShortKey::new().i16(args.w_id).i16(args.d_id).i32(args.c_id)
}

/// Whether I_DATA or S_DATA holds "ORIGINAL".
fn is_original(data: &str) -> bool {
    data.contains("ORIGINAL")
}

#[cold]
fn unused_item() -> Abort {
    Abort::raise(SqlState::RAISE_EXCEPTION, "item number is not valid")
}
