//! The five transactions in SQLite, slow and plain: what faster ones are compared with. Amounts are
//! in hundredths ([`super::Decimals::Units`]).

use albireo_bench::tpcc::DISTRICTS;
use albireo_bench::tpcc::input::{
    CustomerKey, Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};

/// Some figures that the terminal shows; `None` of a New-Order that was rolled back.
///
/// New-Order: O_ID, total-amount. Payment: C_ID, C_BALANCE. Order-Status: C_BALANCE, O_ID, lines,
/// their amount. Delivery: O_ID of each district or 0. Stock-Level: low items.
pub type Shown = Option<Vec<i64>>;

/// Runs one transaction whose date is `now`; see [`super::timestamp`] for its form.
pub fn run(connection: &Connection, transaction: &Transaction, now: &str) -> Result<Shown> {
    connection.execute_batch("SAVEPOINT before")?;
    let transaction = Sqlite { connection, now }.run(transaction);
    match transaction {
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => connection.execute_batch("ROLLBACK TO before")?,
    }
    connection.execute_batch("RELEASE before")?;
    transaction
}

struct Sqlite<'a> {
    connection: &'a Connection,
    now: &'a str,
}

impl Sqlite<'_> {
    fn run(&self, transaction: &Transaction) -> Result<Shown> {
        match transaction {
            Transaction::NewOrder(input) => self.new_order(input),
            Transaction::Payment(input) => self.payment(input).map(Some),
            Transaction::OrderStatus(input) => self.order_status(input).map(Some),
            Transaction::Delivery(input) => self.delivery(input).map(Some),
            Transaction::StockLevel(input) => self.stock_level(input).map(Some),
        }
    }

    /// The one row of a query that must have one.
    fn one<T>(&self, sql: &str, params: impl Params, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Result<T> {
        self.connection.prepare_cached(sql)?.query_row(params, read)
    }

    /// Changes exactly one row.
    fn change(&self, sql: &str, params: impl Params) -> Result<()> {
        let changed = self.connection.prepare_cached(sql)?.execute(params)?;
        assert_eq!(changed, 1, "{sql}");
        Ok(())
    }

    fn new_order(&self, input: &NewOrder) -> Result<Shown> {
        let NewOrder { w_id, d_id, c_id, .. } = *input;
        let o_id: i32 = self.one(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ?1 AND d_id = ?2
             RETURNING d_next_o_id - 1",
            params![w_id, d_id],
            |row| row.get(0),
        )?;
        self.change(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![o_id, d_id, w_id, c_id, self.now, input.lines().len(), input.all_local],
        )?;
        self.change("INSERT INTO new_order VALUES (?1, ?2, ?3)", params![o_id, d_id, w_id])?;
        let mut sum = 0;
        for (line, number) in input.lines().iter().zip(1..) {
            let price = "SELECT i_price FROM item WHERE i_id = ?1";
            let price: Option<i64> = self.one(price, [line.i_id], |row| row.get(0)).optional()?;
            let Some(price) = price else { return Ok(None) };
            let dist_info = self.take_stock(line, w_id, d_id)?;
            let amount = price * i64::from(line.quantity);
            sum += amount;
            self.change(
                "INSERT INTO order_line VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7, ?8, ?9)",
                params![
                    o_id,
                    d_id,
                    w_id,
                    number,
                    line.i_id,
                    line.supply_w_id,
                    line.quantity,
                    amount,
                    dist_info
                ],
            )?;
        }
        // Discount and taxes are in ten-thousandths; half a hundredth is rounded up.
        let factor: i64 = self.one(
            "SELECT (10000 - c_discount) * (10000 + w_tax + d_tax) FROM warehouse, district, customer
              WHERE w_id = ?1 AND d_w_id = ?1 AND d_id = ?2 AND c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
            params![w_id, d_id, c_id],
            |row| row.get(0),
        )?;
        Ok(Some(vec![o_id.into(), (sum * factor + 50_000_000) / 100_000_000]))
    }

    /// Takes a line's quantity out of stock and says what OL_DIST_INFO is.
    fn take_stock(&self, line: &Line, w_id: i16, d_id: i16) -> Result<String> {
        let sql = format!("SELECT s_quantity, s_dist_{d_id:02} FROM stock WHERE s_w_id = ?1 AND s_i_id = ?2");
        let (quantity, dist_info): (i16, String) =
            self.one(&sql, params![line.supply_w_id, line.i_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.change(
            "UPDATE stock
                SET s_quantity = ?3, s_ytd = s_ytd + ?4, s_order_cnt = s_order_cnt + 1,
                    s_remote_cnt = s_remote_cnt + ?5
              WHERE s_w_id = ?1 AND s_i_id = ?2",
            params![
                line.supply_w_id,
                line.i_id,
                stock_after(quantity, line.quantity),
                line.quantity,
                line.supply_w_id != w_id
            ],
        )?;
        Ok(dist_info)
    }

    fn customer_id(&self, w_id: i16, d_id: i16, key: &CustomerKey) -> Result<i32> {
        let name = match key {
            CustomerKey::Id(c_id) => return Ok(*c_id),
            CustomerKey::LastName(name) => name.as_str(),
        };
        let mut statement = self.connection.prepare_cached(
            "SELECT c_id FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_last = ?3 ORDER BY c_first",
        )?;
        let ids = statement.query_map(params![w_id, d_id, name], |row| row.get(0))?;
        let ids = ids.collect::<Result<Vec<i32>>>()?;
        // Position n/2, rounded up, counted from 1.
        Ok(ids[ids.len().div_ceil(2) - 1])
    }

    fn payment(&self, input: &Payment) -> Result<Vec<i64>> {
        let Payment { w_id, d_id, c_w_id, c_d_id, h_amount, .. } = *input;
        let (amount, name) = (h_amount.0, |row: &Row<'_>| row.get::<_, String>(0));
        let sql = "UPDATE warehouse SET w_ytd = w_ytd + ?2 WHERE w_id = ?1 RETURNING w_name";
        let w_name = self.one(sql, params![w_id, amount], name)?;
        let sql = "UPDATE district SET d_ytd = d_ytd + ?3 WHERE d_w_id = ?1 AND d_id = ?2 RETURNING d_name";
        let d_name = self.one(sql, params![w_id, d_id, amount], name)?;
        let c_id = self.customer_id(c_w_id, c_d_id, &input.customer)?;
        let (credit, data, balance): (String, String, i64) = self.one(
            "UPDATE customer
                SET c_balance = c_balance - ?4, c_ytd_payment = c_ytd_payment + ?4,
                    c_payment_cnt = c_payment_cnt + 1
              WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3
             RETURNING c_credit, c_data, c_balance",
            params![c_w_id, c_d_id, c_id, amount],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        if credit == "BC" {
            let (units, cents) = (amount / 100, amount % 100);
            let mut data = format!("{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {units}.{cents:02}|{data}");
            data.truncate(500);
            let sql = "UPDATE customer SET c_data = ?4 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
            self.change(sql, params![c_w_id, c_d_id, c_id, data])?;
        }
        self.change(
            "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![c_id, c_d_id, c_w_id, d_id, w_id, self.now, amount, format!("{w_name}    {d_name}")],
        )?;
        Ok(vec![c_id.into(), balance])
    }

    fn order_status(&self, input: &OrderStatus) -> Result<Vec<i64>> {
        let OrderStatus { w_id, d_id, .. } = *input;
        let c_id = self.customer_id(w_id, d_id, &input.customer)?;
        self.one(
            "SELECT c_balance, ol_o_id, count(*), sum(ol_amount) FROM customer, order_line
              WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3
                AND ol_w_id = ?1 AND ol_d_id = ?2
                AND ol_o_id = (SELECT max(o_id) FROM orders
                                WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_c_id = ?3)",
            params![w_id, d_id, c_id],
            |row| (0..4).map(|i| row.get(i)).collect(),
        )
    }

    fn delivery(&self, input: &Delivery) -> Result<Vec<i64>> {
        let Delivery { w_id, o_carrier_id } = *input;
        let mut delivered = vec![0; DISTRICTS as usize];
        for d_id in 1..=DISTRICTS {
            let oldest = "SELECT min(no_o_id) FROM new_order WHERE no_w_id = ?1 AND no_d_id = ?2";
            let oldest: Option<i32> = self.one(oldest, params![w_id, d_id], |row| row.get(0))?;
            let Some(o_id) = oldest else { continue };
            self.change(
                "DELETE FROM new_order WHERE no_w_id = ?1 AND no_d_id = ?2 AND no_o_id = ?3",
                params![w_id, d_id, o_id],
            )?;
            let c_id: i32 = self.one(
                "UPDATE orders SET o_carrier_id = ?4 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3
                 RETURNING o_c_id",
                params![w_id, d_id, o_id, o_carrier_id],
                |row| row.get(0),
            )?;
            let lines = "WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3";
            let sum = format!("SELECT sum(ol_amount) FROM order_line {lines}");
            let sum: i64 = self.one(&sum, params![w_id, d_id, o_id], |row| row.get(0))?;
            let deliver = format!("UPDATE order_line SET ol_delivery_d = ?4 {lines}");
            self.connection.prepare_cached(&deliver)?.execute(params![w_id, d_id, o_id, self.now])?;
            self.change(
                "UPDATE customer SET c_balance = c_balance + ?4, c_delivery_cnt = c_delivery_cnt + 1
                  WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
                params![w_id, d_id, c_id, sum],
            )?;
            delivered[d_id as usize - 1] = o_id.into();
        }
        Ok(delivered)
    }

    fn stock_level(&self, input: &StockLevel) -> Result<Vec<i64>> {
        let StockLevel { w_id, d_id, threshold } = *input;
        self.one(
            "SELECT count(DISTINCT s_i_id) FROM order_line, stock, district
              WHERE d_w_id = ?1 AND d_id = ?2
                AND ol_w_id = d_w_id AND ol_d_id = d_id
                AND ol_o_id < d_next_o_id AND ol_o_id >= d_next_o_id - 20
                AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < ?3",
            params![w_id, d_id, threshold],
            |row| Ok(vec![row.get(0)?]),
        )
    }
}

/// S_QUANTITY after an order line: refilled by 91 when fewer than 10 would be left.
fn stock_after(s_quantity: i16, ol_quantity: i16) -> i16 {
    if s_quantity >= ol_quantity + 10 { s_quantity - ol_quantity } else { s_quantity - ol_quantity + 91 }
}
