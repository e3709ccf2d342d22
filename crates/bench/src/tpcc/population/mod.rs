//! The initial population of clause 4.3.3, row by row.
//!
//! Every row has a random generator of its own, made from the seed and the row's key. So rows can
//! be made in any order, table by table or warehouse by warehouse, by any number of threads, and
//! are always the same (I-1, `row_made_alone_equals_the_row_made_in_order`).
//!
//! The specification takes dates from the operating system while it loads; we take one moment,
//! [`Population::loaded_at`], and let a district's orders be entered a millisecond apart before it.
//! Where it asks for a tenth of the rows "selected at random", exactly one row of every ten in a row
//! is, at a random place among them.

use super::random::{Constants, Random, last_name};
use super::rows::{
    CustomerRow, DistrictRow, Fixed, HistoryRow, ItemRow, Money, NewOrderRow, OrderLineRow, OrderRow, Row,
    StockRow, Timestamp, WarehouseRow,
};
use super::schema::Table;
use super::text::Text;
use super::{DISTRICTS, Scale};

/// Every customer's only payment so far: 10.00.
const FIRST_PAYMENT: i64 = 1_000;
/// Microseconds between two orders of a district.
const ORDER_INTERVAL_US: i64 = 1_000;

/// What a database is populated with. Cheap to copy; nothing is made before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// Cardinalities.
    pub scale: Scale,
    /// Warehouses, numbered from 1.
    pub warehouses: i16,
    /// Decides every random value.
    pub seed: u64,
    /// The date of everything that has one.
    pub loaded_at: Timestamp,
}

/// Takes rows of any table.
pub trait Sink {
    /// Why a row is not taken.
    type Error;

    /// Takes one row.
    ///
    /// # Errors
    /// Whatever the sink says; nothing more is handed to it then.
    fn row<R: Row>(&mut self, row: &R) -> Result<(), Self::Error>;
}

impl Population {
    /// Hands all rows to `sink`: shared tables first, then warehouse by warehouse.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn all<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        self.shared(sink)?;
        (1..=self.warehouses).try_for_each(|w_id| self.of_warehouse(w_id, sink))
    }

    /// Hands the rows of ITEM and CH-benCHmark's three tables to `sink`.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn shared<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        self.items().try_for_each(|row| sink.row(&row))?;
        self.regions().try_for_each(|row| sink.row(&row))?;
        self.nations().try_for_each(|row| sink.row(&row))?;
        self.suppliers().try_for_each(|row| sink.row(&row))
    }

    /// Hands the rows of one warehouse to `sink`, table by table within a district.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn of_warehouse<S: Sink>(&self, w_id: i16, sink: &mut S) -> Result<(), S::Error> {
        sink.row(&self.warehouse(w_id))?;
        self.stock(w_id).try_for_each(|row| sink.row(&row))?;
        (1..=DISTRICTS).try_for_each(|d_id| self.of_district(w_id, d_id, sink))
    }

    /// Hands the rows of one district to `sink`, table by table.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn of_district<S: Sink>(&self, w_id: i16, d_id: i16, sink: &mut S) -> Result<(), S::Error> {
        sink.row(&self.district(w_id, d_id))?;
        self.customers(w_id, d_id).try_for_each(|row| sink.row(&row))?;
        self.histories(w_id, d_id).try_for_each(|row| sink.row(&row))?;
        self.orders(w_id, d_id).try_for_each(|row| sink.row(&row))?;
        self.order_lines(w_id, d_id).try_for_each(|row| sink.row(&row))?;
        self.new_orders(w_id, d_id).try_for_each(|row| sink.row(&row))
    }

    /// Rows of all tables; the random number of order lines is taken at its mean, ten an order.
    pub fn expected_rows(&self) -> u64 {
        let Scale { items, customers, .. } = self.scale;
        let orders = i64::from(DISTRICTS) * i64::from(customers);
        let undelivered = i64::from(DISTRICTS) * i64::from(customers - self.scale.delivered());
        let warehouse = 1 + i64::from(DISTRICTS) + i64::from(items) + orders * 13 + undelivered;
        (i64::from(self.warehouses) * warehouse + i64::from(items) + 10_067) as u64
    }

    /// The rows of ITEM.
    pub fn items(&self) -> impl Iterator<Item = ItemRow> {
        let this = *self;
        (1..=self.scale.items).map(move |i_id| this.item(i_id))
    }

    /// One row of ITEM.
    pub fn item(&self, i_id: i32) -> ItemRow {
        let random = &mut self.random(Table::Item, &[i_id as u64]);
        ItemRow {
            i_id,
            i_im_id: random.uniform(1, 10_000),
            i_name: random.alphanumeric(14, 24),
            i_price: Fixed(random.uniform(1_00, 100_00).into()),
            i_data: random.data(26, 50, self.one_in_ten(Table::Item, &[], i_id)),
        }
    }

    /// The row of WAREHOUSE.
    pub fn warehouse(&self, w_id: i16) -> WarehouseRow {
        let random = &mut self.random(Table::Warehouse, &[w_id as u64]);
        WarehouseRow {
            w_id,
            w_name: random.alphanumeric(6, 10),
            w_street_1: random.alphanumeric(10, 20),
            w_street_2: random.alphanumeric(10, 20),
            w_city: random.alphanumeric(10, 20),
            w_state: random.alphanumeric(2, 2),
            w_zip: random.zip(),
            w_tax: Fixed(random.uniform(0, 2_000).into()),
            w_ytd: Fixed(i64::from(DISTRICTS) * self.district_ytd().0),
        }
    }

    /// The rows of STOCK of a warehouse.
    pub fn stock(&self, w_id: i16) -> impl Iterator<Item = StockRow> {
        let this = *self;
        (1..=self.scale.items).map(move |i_id| this.stock_of(w_id, i_id))
    }

    /// One row of STOCK.
    pub fn stock_of(&self, w_id: i16, i_id: i32) -> StockRow {
        let random = &mut self.random(Table::Stock, &[w_id as u64, i_id as u64]);
        StockRow {
            s_i_id: i_id,
            s_w_id: w_id,
            s_quantity: random.uniform(10, 100) as i16,
            s_dist_01: random.alphanumeric(24, 24),
            s_dist_02: random.alphanumeric(24, 24),
            s_dist_03: random.alphanumeric(24, 24),
            s_dist_04: random.alphanumeric(24, 24),
            s_dist_05: random.alphanumeric(24, 24),
            s_dist_06: random.alphanumeric(24, 24),
            s_dist_07: random.alphanumeric(24, 24),
            s_dist_08: random.alphanumeric(24, 24),
            s_dist_09: random.alphanumeric(24, 24),
            s_dist_10: random.alphanumeric(24, 24),
            s_ytd: 0,
            s_order_cnt: 0,
            s_remote_cnt: 0,
            s_data: random.data(26, 50, self.one_in_ten(Table::Stock, &[w_id as u64], i_id)),
        }
    }

    /// One row of DISTRICT.
    pub fn district(&self, w_id: i16, d_id: i16) -> DistrictRow {
        let random = &mut self.random(Table::District, &[w_id as u64, d_id as u64]);
        DistrictRow {
            d_id,
            d_w_id: w_id,
            d_name: random.alphanumeric(6, 10),
            d_street_1: random.alphanumeric(10, 20),
            d_street_2: random.alphanumeric(10, 20),
            d_city: random.alphanumeric(10, 20),
            d_state: random.alphanumeric(2, 2),
            d_zip: random.zip(),
            d_tax: Fixed(random.uniform(0, 2_000).into()),
            d_ytd: self.district_ytd(),
            d_next_o_id: self.scale.customers + 1,
        }
    }

    /// The rows of CUSTOMER of a district.
    pub fn customers(&self, w_id: i16, d_id: i16) -> impl Iterator<Item = CustomerRow> {
        let this = *self;
        (1..=self.scale.customers).map(move |c_id| this.customer(w_id, d_id, c_id))
    }

    /// One row of CUSTOMER.
    pub fn customer(&self, w_id: i16, d_id: i16, c_id: i32) -> CustomerRow {
        let random = &mut self.random(Table::Customer, &[w_id as u64, d_id as u64, c_id as u64]);
        let bad_credit = self.one_in_ten(Table::Customer, &[w_id as u64, d_id as u64], c_id);
        let names = self.scale.last_names();
        let name = match c_id <= names {
            true => c_id - 1,
            false => Constants::load(self.seed).last_name_number(random, names),
        };
        CustomerRow {
            c_id,
            c_d_id: d_id,
            c_w_id: w_id,
            c_first: random.alphanumeric(8, 16),
            c_middle: Text::new("OE"),
            c_last: last_name(name),
            c_street_1: random.alphanumeric(10, 20),
            c_street_2: random.alphanumeric(10, 20),
            c_city: random.alphanumeric(10, 20),
            c_state: random.alphanumeric(2, 2),
            c_zip: random.zip(),
            c_phone: random.digits(16, 16),
            c_since: self.loaded_at,
            c_credit: Text::new(if bad_credit { "BC" } else { "GC" }),
            c_credit_lim: Fixed(50_000_00),
            c_discount: Fixed(random.uniform(0, 5_000).into()),
            c_balance: Fixed(-FIRST_PAYMENT),
            c_ytd_payment: Fixed(FIRST_PAYMENT),
            c_payment_cnt: 1,
            c_delivery_cnt: 0,
            c_data: random.alphanumeric(300, 500),
        }
    }

    /// The rows of HISTORY of a district: one a customer.
    pub fn histories(&self, w_id: i16, d_id: i16) -> impl Iterator<Item = HistoryRow> {
        let this = *self;
        (1..=self.scale.customers).map(move |c_id| {
            let random = &mut this.random(Table::History, &[w_id as u64, d_id as u64, c_id as u64]);
            HistoryRow {
                h_c_id: c_id,
                h_c_d_id: d_id,
                h_c_w_id: w_id,
                h_d_id: d_id,
                h_w_id: w_id,
                h_date: this.loaded_at,
                h_amount: Fixed(FIRST_PAYMENT),
                h_data: random.alphanumeric(12, 24),
            }
        })
    }

    /// The rows of ORDERS of a district: one a customer, customers in random order.
    pub fn orders(&self, w_id: i16, d_id: i16) -> impl Iterator<Item = OrderRow> {
        let this = *self;
        let mut customers: Vec<i32> = (1..=self.scale.customers).collect();
        self.random(Table::Orders, &[w_id as u64, d_id as u64]).shuffle(&mut customers);
        customers.into_iter().zip(1..).map(move |(o_c_id, o_id)| {
            let (mut random, o_ol_cnt) = this.order_lines_of(w_id, d_id, o_id);
            OrderRow {
                o_id,
                o_d_id: d_id,
                o_w_id: w_id,
                o_c_id,
                o_entry_d: this.entered_at(o_id),
                o_carrier_id: this.is_delivered(o_id).then(|| random.uniform(1, 10) as i16),
                o_ol_cnt,
                o_all_local: 1,
            }
        })
    }

    /// The rows of ORDER_LINE of a district, in the order of their orders.
    pub fn order_lines(&self, w_id: i16, d_id: i16) -> impl Iterator<Item = OrderLineRow> {
        let this = *self;
        (1..=self.scale.customers).flat_map(move |o_id| {
            let (_, o_ol_cnt) = this.order_lines_of(w_id, d_id, o_id);
            (1..=o_ol_cnt).map(move |number| this.order_line(w_id, d_id, o_id, number))
        })
    }

    /// One row of ORDER_LINE; `ol_number` must not be above the order's O_OL_CNT.
    pub fn order_line(&self, w_id: i16, d_id: i16, o_id: i32, ol_number: i16) -> OrderLineRow {
        let key = [w_id as u64, d_id as u64, o_id as u64, ol_number as u64];
        let random = &mut self.random(Table::OrderLine, &key);
        let delivered = self.is_delivered(o_id);
        let amount = |random: &mut Random| random.uniform(1, 9_999_99).into();
        OrderLineRow {
            ol_o_id: o_id,
            ol_d_id: d_id,
            ol_w_id: w_id,
            ol_number,
            ol_i_id: random.uniform(1, self.scale.items),
            ol_supply_w_id: w_id,
            ol_delivery_d: delivered.then(|| self.entered_at(o_id)),
            ol_quantity: 5,
            ol_amount: Fixed(if delivered { 0 } else { amount(random) }),
            ol_dist_info: random.alphanumeric(24, 24),
        }
    }

    /// The rows of NEW_ORDER of a district: its last orders.
    pub fn new_orders(&self, w_id: i16, d_id: i16) -> impl Iterator<Item = NewOrderRow> {
        let undelivered = self.scale.delivered() + 1..=self.scale.customers;
        undelivered.map(move |no_o_id| NewOrderRow { no_o_id, no_d_id: d_id, no_w_id: w_id })
    }

    /// D_YTD: what the district's customers have paid. 30,000.00 by the specification.
    fn district_ytd(&self) -> Money {
        Fixed(i64::from(self.scale.customers) * FIRST_PAYMENT)
    }

    fn is_delivered(&self, o_id: i32) -> bool {
        o_id <= self.scale.delivered()
    }

    fn entered_at(&self, o_id: i32) -> Timestamp {
        Timestamp(self.loaded_at.0 - i64::from(self.scale.customers - o_id) * ORDER_INTERVAL_US)
    }

    /// O_OL_CNT of an order, and the generator of what else is random in its row.
    fn order_lines_of(&self, w_id: i16, d_id: i16, o_id: i32) -> (Random, i16) {
        let mut random = self.random(Table::Orders, &[w_id as u64, d_id as u64, o_id as u64]);
        let lines = random.uniform(5, 15) as i16;
        (random, lines)
    }

    /// The generator of the row of `table` with this key.
    pub(crate) fn random(&self, table: Table, key: &[u64]) -> Random {
        let mut path = [table as u64, 0, 0, 0, 0];
        path[1..=key.len()].copy_from_slice(key);
        Random::stream(self.seed, &path[..=key.len()])
    }

    /// Whether row `number` (from 1) of those that share `prefix` is the chosen one of its ten.
    fn one_in_ten(&self, table: Table, prefix: &[u64], number: i32) -> bool {
        const CHOICE: u64 = u64::MAX; // No row has this number.
        let (ten, place) = ((number - 1) / 10, (number - 1) % 10);
        let mut key = [CHOICE; 4];
        key[..prefix.len()].copy_from_slice(prefix);
        key[prefix.len()] = CHOICE - ten as u64;
        self.random(table, &key[..=prefix.len()]).uniform(0, 9) == place
    }
}

#[cfg(test)]
mod tests;
