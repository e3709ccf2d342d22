//! The five transactions statement by statement, as a program runs them that has its logic outside of the database:
//! BEGIN, statements with parameters, COMMIT; again if somebody else has changed what was read.

use std::hint::black_box;

use albireo::{Connection, Database, Decimal, Outcome, Receipt, SqlError, SqlState, Value};

use crate::driver::{Ended, Outcome as End, Worker};
use crate::tpcc::DISTRICTS;
use crate::tpcc::input::{CustomerKey, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction};
use crate::tpcc::rows::Money;

const WAREHOUSE_TAX: &str = "SELECT w_tax FROM warehouse WHERE w_id = $1";
const NEXT_ORDER: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2
    RETURNING d_next_o_id - 1, d_tax";
const ITEM: &str = "SELECT i_name, i_price, i_data LIKE '%ORIGINAL%' FROM item WHERE i_id = $1";
const TAKE_STOCK: &str = "UPDATE stock
    SET s_quantity = CASE WHEN s_quantity - $3 >= 10 THEN s_quantity - $3 ELSE s_quantity - $3 + 91 END,
        s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4
    WHERE s_w_id = $1 AND s_i_id = $2
    RETURNING s_quantity, s_data LIKE '%ORIGINAL%',
        CASE $5 WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10 END";
const ORDER_LINE: &str =
    "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
    ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)";
const ORDER: &str =
    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES ($1, $2, $3, $4, now(), NULL, $5, $6)";
const OPEN_ORDER: &str = "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)";
const BUYER: &str =
    "SELECT c_last, c_credit, c_discount FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";
const PAY_DISTRICT: &str = "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";
const NAMESAKES: &str = "SELECT count(*) FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3";
const NAMED: &str = "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3
    ORDER BY c_first, c_id LIMIT 1 OFFSET $4";
const PAY_CUSTOMER: &str = "UPDATE customer
    SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3
    RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
        c_credit_lim, c_discount, c_balance";
const BAD_CREDIT: &str = "UPDATE customer SET c_data = left($4 || c_data, 500)
    WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING left(c_data, 200)";
const HISTORY: &str =
    "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES ($1, $2, $3, $4, $5, now(), $6, $7)";
const CUSTOMER: &str = "SELECT c_first, c_middle, c_last, c_balance FROM customer
    WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const LAST_ORDER: &str = "SELECT o_id, o_entry_d, o_carrier_id FROM orders
    WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";
const LINES: &str = "SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 ORDER BY ol_number";
const OLDEST: &str = "SELECT min(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2";
const CLOSE: &str = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3";
const CARRY: &str =
    "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id";
const TOTAL: &str =
    "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
const DELIVERED: &str = "UPDATE order_line SET ol_delivery_d = now()
    WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
const BILL: &str = "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1
    WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
const NEXT: &str = "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";
const LOW: &str =
    "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id
    WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3 AND s_quantity < $4";

/// One client.
pub struct StatementTransactions {
    connection: Connection,
    /// How often a transaction ran again because somebody else had changed what it had read.
    retries: u64,
}

/// The values of a row.
type Row = Vec<Value>;

impl StatementTransactions {
    /// A client of a database that is loaded.
    pub fn new(database: &Database) -> Self {
        Self { connection: database.connect(), retries: 0 }
    }

    /// How often a transaction ran again because somebody else had changed what it had read.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Runs one transaction to its COMMIT; again as long as others interfere.
    ///
    /// # Errors
    /// Any failure but that of an order with an unused item, and such an order that committed.
    pub fn run(&mut self, transaction: &Transaction) -> Result<End, SqlError> {
        loop {
            self.connection.begin()?;
            let done = match self.statements(transaction) {
                Ok(Some(())) => self.connection.commit().map(|()| End::Committed),
                Ok(None) => self.connection.rollback().map(|()| End::RolledBack),
                Err(error) => Err(error),
            };
            match done {
                Err(error) => {
                    self.connection.rollback()?;
                    if error.state() != SqlState::SERIALIZATION_FAILURE {
                        return Err(error);
                    }
                    self.retries += 1;
                }
                done => return done,
            }
        }
    }

    fn statements(&self, transaction: &Transaction) -> Result<Option<()>, SqlError> {
        match transaction {
            Transaction::NewOrder(order) => self.new_order(order),
            Transaction::Payment(payment) => self.payment(payment).map(Some),
            Transaction::OrderStatus(status) => self.order_status(status).map(Some),
            Transaction::Delivery(delivery) => self.delivery(delivery).map(Some),
            Transaction::StockLevel(level) => self.stock_level(level).map(Some),
        }
    }

    fn rows(&self, sql: &str, parameters: &[Value]) -> Result<Vec<Row>, SqlError> {
        match black_box(self.connection.execute_with(sql, parameters)?) {
            Outcome::Rows(result) => Ok(result.into_rows()),
            Outcome::Done { .. } => Ok(Vec::new()),
        }
    }

    /// The only row.
    fn row(&self, sql: &str, parameters: &[Value]) -> Result<Row, SqlError> {
        let missing = || SqlError::new(SqlState::INTERNAL_ERROR, format!("there is no row for: {sql}"));
        self.rows(sql, parameters)?.pop().ok_or_else(missing)
    }

    /// `None`: an item is unused, as it had to be.
    fn new_order(&self, order: &NewOrder) -> Result<Option<()>, SqlError> {
        let (w_id, d_id) = (Value::SmallInt(order.w_id), Value::SmallInt(order.d_id));
        let tax = self.row(WAREHOUSE_TAX, std::slice::from_ref(&w_id))?;
        let district = self.row(NEXT_ORDER, &[w_id.clone(), d_id.clone()])?;
        let o_id = district[0].clone();
        for (number, line) in (1_i16..).zip(order.lines()) {
            let item = Value::Integer(line.i_id);
            let Some(found) = self.rows(ITEM, std::slice::from_ref(&item))?.pop() else { return Ok(None) };
            let supply = Value::SmallInt(line.supply_w_id);
            let quantity = Value::SmallInt(line.quantity);
            let remote = Value::SmallInt(i16::from(line.supply_w_id != order.w_id));
            let mut stock = self
                .row(TAKE_STOCK, &[supply.clone(), item.clone(), quantity.clone(), remote, d_id.clone()])?;
            let Value::Decimal(price) = &found[1] else { return Err(unexpected("a price", &found[1])) };
            let amount = Decimal::new(price.unscaled * i128::from(line.quantity), price.scale);
            let info = stock.swap_remove(2);
            let values = [
                o_id.clone(),
                d_id.clone(),
                w_id.clone(),
                Value::SmallInt(number),
                item,
                supply,
                quantity,
                Value::Decimal(amount),
                info,
            ];
            self.rows(ORDER_LINE, &values)?;
        }
        let count = Value::SmallInt(order.lines().len() as i16);
        let local = Value::SmallInt(i16::from(order.all_local));
        let c_id = Value::Integer(order.c_id);
        self.rows(ORDER, &[o_id.clone(), d_id.clone(), w_id.clone(), c_id.clone(), count, local])?;
        self.rows(OPEN_ORDER, &[o_id, d_id.clone(), w_id.clone()])?;
        black_box((tax, self.row(BUYER, &[w_id, d_id, c_id])?));
        match order.rolls_back {
            false => Ok(Some(())),
            true => {
                let text = "an order with an unused item was not rolled back";
                Err(SqlError::new(SqlState::INTERNAL_ERROR, text))
            }
        }
    }

    /// The number of a customer.
    fn customer(&self, w_id: i16, d_id: i16, key: &CustomerKey) -> Result<i32, SqlError> {
        let last = match key {
            CustomerKey::Id(c_id) => return Ok(*c_id),
            CustomerKey::LastName(last) => last,
        };
        let of = [Value::SmallInt(w_id), Value::SmallInt(d_id), Value::Text(last.as_str().to_owned())];
        let count = self.row(NAMESAKES, &of)?;
        let Value::BigInt(count) = count[0] else { return Err(unexpected("a count", &count[0])) };
        let [w_id, d_id, last] = of;
        integer(&self.row(NAMED, &[w_id, d_id, last, Value::BigInt((count - 1) / 2)])?[0])
    }

    fn payment(&self, payment: &Payment) -> Result<(), SqlError> {
        let (w_id, d_id) = (Value::SmallInt(payment.w_id), Value::SmallInt(payment.d_id));
        let amount = money(payment.h_amount);
        let warehouse = self.row(PAY_WAREHOUSE, &[w_id.clone(), amount.clone()])?;
        let district = self.row(PAY_DISTRICT, &[w_id.clone(), d_id.clone(), amount.clone()])?;
        let number = self.customer(payment.c_w_id, payment.c_d_id, &payment.customer)?;
        let customer =
            [Value::SmallInt(payment.c_w_id), Value::SmallInt(payment.c_d_id), Value::Integer(number)];
        let [c_w_id, c_d_id, c_id] = customer.clone();
        let paid = self.row(PAY_CUSTOMER, &[c_w_id, c_d_id, c_id, amount.clone()])?;
        let [c_w_id, c_d_id, c_id] = customer.clone();
        if paid[10] == Value::Text("BC".to_owned()) {
            let note = format!(
                "{number} {} {} {} {} {}|",
                payment.c_d_id, payment.c_w_id, payment.d_id, payment.w_id, amount
            );
            self.row(BAD_CREDIT, &[c_w_id.clone(), c_d_id.clone(), c_id.clone(), Value::Text(note)])?;
        }
        let data = format!("{}    {}", warehouse[0], district[0]);
        self.rows(HISTORY, &[c_id, c_d_id, c_w_id, d_id, w_id, amount, Value::Text(data)]).map(drop)
    }

    fn order_status(&self, status: &OrderStatus) -> Result<(), SqlError> {
        let number = self.customer(status.w_id, status.d_id, &status.customer)?;
        let (w_id, d_id) = (Value::SmallInt(status.w_id), Value::SmallInt(status.d_id));
        let of = [w_id.clone(), d_id.clone(), Value::Integer(number)];
        self.row(CUSTOMER, &of)?;
        let order = self.row(LAST_ORDER, &of)?;
        self.rows(LINES, &[w_id, d_id, order[0].clone()]).map(drop)
    }

    fn delivery(&self, delivery: &Delivery) -> Result<(), SqlError> {
        let w_id = Value::SmallInt(delivery.w_id);
        for d_id in 1..=DISTRICTS {
            let d_id = Value::SmallInt(d_id);
            let oldest = self.row(OLDEST, &[w_id.clone(), d_id.clone()])?;
            if oldest[0] == Value::Null {
                continue;
            }
            let order = || vec![w_id.clone(), d_id.clone(), oldest[0].clone()];
            let with = |value: Value| [order(), vec![value]].concat();
            self.rows(CLOSE, &order())?;
            let customer = self.row(CARRY, &with(Value::SmallInt(delivery.o_carrier_id)))?;
            let total = self.row(TOTAL, &order())?;
            self.rows(DELIVERED, &order())?;
            let bill = [w_id.clone(), d_id.clone(), customer[0].clone(), total[0].clone()];
            self.rows(BILL, &bill)?;
        }
        Ok(())
    }

    fn stock_level(&self, level: &StockLevel) -> Result<(), SqlError> {
        let (w_id, d_id) = (Value::SmallInt(level.w_id), Value::SmallInt(level.d_id));
        let next = self.row(NEXT, &[w_id.clone(), d_id.clone()])?;
        self.row(LOW, &[w_id, d_id, next[0].clone(), Value::SmallInt(level.threshold)]).map(drop)
    }
}

impl Worker for StatementTransactions {
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError> {
        transactions.iter().try_for_each(|transaction| {
            let end = StatementTransactions::run(self, transaction)?;
            // COMMIT has waited already.
            ended(end, Receipt::default())
        })
    }
}

fn money(amount: Money) -> Value {
    Value::Decimal(Decimal::new(amount.0.into(), 2))
}

fn integer(value: &Value) -> Result<i32, SqlError> {
    match value {
        Value::Integer(number) => Ok(*number),
        other => Err(unexpected("a number", other)),
    }
}

fn unexpected(what: &str, found: &Value) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, format!("{what} is expected, not {found}"))
}
