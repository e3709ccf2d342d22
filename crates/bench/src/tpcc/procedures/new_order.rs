//! New-Order (clause 2.4).

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Site, Transaction};
use albireo_base::{SqlState, Tid};
use arrayvec::ArrayVec;

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
struct LineRows {
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
    district: Tid,
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
    fn run(&self, tx: &mut Transaction, args: &NewOrder) -> Result<OrderResult, Abort> {
        let t = &self.0;
        let mut places = [LineRows { item: None, stock: Tid(0), site: tx.home() }; MAX_ORDER_LINES];
        let places = &mut places[..args.lines().len()];
        let head = self.find_rows(tx, args, places)?;
        tx.update_row(t.district.table, head.district, &t.district.ordered, |(next,)| (next + 1,))?;
        self.insert_order(tx, args, &head)?;
        let mut result = self.customer(tx, args, &head);
        // The texts that decide the brand lie behind their slots: one more stage.
        for place in &*places {
            let Some(item) = place.item else { continue };
            tx.table(t.item.table).prefetch_body(item, t.item.data);
            tx.table_at(place.site, t.stock.base.table).prefetch_body(place.stock, t.stock.base.data);
        }
        let mut total = 0;
        for (number, place) in places.iter().enumerate() {
            let shown = &mut result.items[number];
            self.line(tx, args, head.o_id, number, *place, shown)?;
            total += shown.ol_amount;
        }
        // Hundredths times two factors in ten-thousandths.
        let exact = i128::from(total) * i128::from(10_000 - result.c_discount);
        let exact = exact * i128::from(10_000 + head.w_tax + head.d_tax);
        result.total_amount = ((exact + 50_000_000) / 100_000_000) as i64;
        Ok(result)
    }
}

impl NewOrderProcedure {
    /// Finds the rows of all lines, and warehouse, district and customer between asking for the lines'
    /// index entries and reading them; asks for the rows' cache lines.
    #[inline(always)]
    fn find_rows(
        &self,
        tx: &mut Transaction,
        args: &NewOrder,
        places: &mut [LineRows],
    ) -> Result<Head, Abort> {
        let entry_d = tx.now();
        let tx: &Transaction = tx;
        let t = &self.0;
        let items = tx.table(t.item.table);
        let customer = tx.table(t.customer.table).ask(t.customer.pkey, customer_key(args));
        let mut asked = ArrayVec::<_, MAX_ORDER_LINES>::new();
        for (place, line) in places.iter_mut().zip(args.lines()) {
            place.site = tx.site_of(line.supply_w_id.into())?;
            let stock = tx.table_at(place.site, t.stock.base.table);
            let item = items.ask(t.item.pkey, item_key(line.i_id));
            asked.push((item, stock, stock.ask(t.stock.base.pkey, stock_key(line.supply_w_id, line.i_id))));
        }
        tx.table(t.orders.table).prefetch_key(t.orders.by_customer, customer_key(args));
        let head = self.head(tx, args, found(customer.tid(), "customer")?, entry_d)?;
        let dist = t.stock.dist[args.d_id as usize - 1];
        for (place, (item, stock, stock_row)) in places.iter_mut().zip(&asked) {
            place.item = item.tid();
            let Some(item) = place.item else { continue };
            place.stock = found(stock_row.tid(), "stock")?;
            // I_PRICE lies between these two.
            items.prefetch_text(item, t.item.name);
            items.prefetch_text(item, t.item.data);
            stock.prefetch(place.stock, t.stock.base.quantity);
            stock.prefetch_text(place.stock, dist);
            stock.prefetch_text(place.stock, t.stock.base.data);
            stock.prefetch_liveness(place.stock);
        }
        Ok(head)
    }

    /// Warehouse, district and the order's number; asks for the customer's row.
    fn head(&self, tx: &Transaction, args: &NewOrder, customer: Tid, entry_d: i64) -> Result<Head, Abort> {
        let t = &self.0;
        let (w, d, c) = (&t.warehouse, &t.district, &t.customer);
        let customers = tx.table(c.table);
        customers.prefetch(customer, c.discount);
        customers.prefetch_text(customer, c.last);
        let warehouse_key = ShortKey::new().i16(args.w_id);
        let warehouse = found(tx.table(w.table).find(w.pkey, warehouse_key), "warehouse")?;
        let district = found(tx.table(d.table).find(d.pkey, warehouse_key.i16(args.d_id)), "district")?;
        let w_tax = tx.table(w.table).get(warehouse, w.tax);
        let d_tax = tx.table(d.table).get(district, d.tax);
        let o_id = tx.table(d.table).get(district, d.next_o_id);
        Ok(Head { o_id, entry_d, customer, district, w_tax, d_tax })
    }

    /// The rows of ORDERS and NEW_ORDER.
    fn insert_order(&self, tx: &mut Transaction, args: &NewOrder, head: &Head) -> Result<(), Abort> {
        let t = &self.0;
        let order = (
            head.o_id,
            args.d_id,
            args.w_id,
            args.c_id,
            head.entry_d,
            None,
            args.lines().len() as i16,
            i16::from(args.all_local),
        );
        tx.insert_row(t.orders.table, &t.orders.row, order)?;
        tx.insert_row(t.new_order.table, &t.new_order.row, (head.o_id, args.d_id, args.w_id))?;
        Ok(())
    }

    /// The result but for its lines and their sum.
    fn customer(&self, tx: &Transaction, args: &NewOrder, head: &Head) -> OrderResult {
        let c = &self.0.customer;
        let (c_discount, c_last, c_credit) = tx.table(c.table).read(head.customer, &c.ordering);
        OrderResult {
            o_id: head.o_id,
            o_entry_d: head.entry_d,
            c_last: Text::new(&c_last),
            c_credit: Text::new(&c_credit),
            c_discount,
            w_tax: head.w_tax,
            d_tax: head.d_tax,
            total_amount: 0,
            items: [EMPTY_ITEM; MAX_ORDER_LINES],
            ol_cnt: args.lines().len() as u8,
        }
    }

    /// One line (clause 2.4.2.2), which is shown in `shown`. An item that does not exist rolls back the order and what
    /// earlier lines did (clause 2.4.2.3).
    #[inline(always)]
    fn line(
        &self,
        tx: &mut Transaction,
        args: &NewOrder,
        o_id: i32,
        number: usize,
        place: LineRows,
        shown: &mut OrderedItem,
    ) -> Result<(), Abort> {
        let t = &self.0;
        let (line, s) = (&args.lines()[number], &t.stock);
        let Some(item) = place.item else { return Err(unused_item()) };
        let items = tx.table(t.item.table);
        let (price, i_name, i_data) = items.read(item, &t.item.ordered);
        // Texts are copied to where they stay: copied on, they would be read before they are written.
        shown.i_name.set(&i_name);
        let original = is_original(&i_data);
        let stock = tx.table_at(place.site, s.base.table);
        let original = original && is_original(&stock.text(place.stock, s.base.data));
        let dist_info: Text<24> = Text::new(&stock.text(place.stock, s.dist[args.d_id as usize - 1]));
        let remote = i32::from(line.supply_w_id != args.w_id);
        let ordered = |(quantity, ytd, order_cnt, remote_cnt)| {
            let left = quantity - line.quantity;
            let quantity = if left >= 10 { left } else { left + 91 };
            (quantity, ytd + i32::from(line.quantity), order_cnt + 1, remote_cnt + remote)
        };
        let (s_quantity, ..) =
            tx.update_row_at(place.site, s.base.table, place.stock, &s.base.counts, ordered)?;
        let ol_amount = price * i64::from(line.quantity);
        let l = &t.order_line;
        let row = (
            o_id,
            args.d_id,
            args.w_id,
            number as i16 + 1,
            line.i_id,
            line.supply_w_id,
            None,
            line.quantity,
            ol_amount,
            dist_info.as_str(),
        );
        tx.insert_row(l.table, &l.row, row)?;
        shown.brand_generic = if original { 'B' } else { 'G' };
        (shown.s_quantity, shown.i_price, shown.ol_amount) = (s_quantity, price, ol_amount);
        Ok(())
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
