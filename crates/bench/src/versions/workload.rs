//! The tables, the small transactions and the queries.
//!
//! Paper: Sharma, Schuhknecht and Dittrich, *Accelerating Analytical Processing in MVCC using Fine-Granular
//! High-Frequency Virtual Snapshotting*, SIGMOD 2018, §5.2 (nine small transactions; TPC-H Q1, Q4, Q6, Q17 and a scan of
//! each table).

use albireo::{Connection, SqlError, Value};

/// Rows of ORDERS for those of LINEITEM, and of PART.
const LINES_OF_ORDER: u64 = 4;
const LINES_OF_PART: u64 = 30;

/// How many rows there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) lineitem: u64,
    pub(super) orders: u64,
    pub(super) part: u64,
}

impl Sizes {
    pub(super) fn of(lineitem: u64) -> Self {
        let at_least_one = |rows: u64| rows.max(1);
        Self {
            lineitem,
            orders: at_least_one(lineitem / LINES_OF_ORDER),
            part: at_least_one(lineitem / LINES_OF_PART),
        }
    }

    /// What makes and fills the tables.
    pub(super) fn script(self) -> String {
        let Self { lineitem, orders, part } = self;
        format!(
            "CREATE TABLE lineitem (l_id BIGINT PRIMARY KEY, l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL,
                 l_quantity DOUBLE PRECISION NOT NULL, l_extendedprice DOUBLE PRECISION NOT NULL,
                 l_discount DOUBLE PRECISION NOT NULL, l_tax DOUBLE PRECISION NOT NULL,
                 l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL,
                 l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL);
             CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_totalprice DOUBLE PRECISION NOT NULL,
                 o_orderdate DATE NOT NULL, o_orderpriority VARCHAR(15) NOT NULL);
             CREATE TABLE part (p_partkey BIGINT PRIMARY KEY, p_brand VARCHAR(10) NOT NULL,
                 p_container VARCHAR(10) NOT NULL, p_retailprice DOUBLE PRECISION NOT NULL);
             INSERT INTO lineitem SELECT i, i / {LINES_OF_ORDER}, i * 7919 % {part}, 1 + i * 31 % 50,
                 900 + i * 104729 % 100000, (i % 11) / 100.0, (i % 9) / 100.0,
                 CASE i % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'N' ELSE 'R' END, CASE i % 2 WHEN 0 THEN 'F' ELSE 'O' END,
                 DATE '1992-01-02' + (i * 53 % 2500)::integer, DATE '1992-01-31' + (i * 59 % 2500)::integer,
                 DATE '1992-01-04' + (i * 61 % 2500)::integer FROM generate_series(0::bigint, {lineitem} - 1) AS x(i);
             INSERT INTO orders SELECT i, 1000 + i * 15485863 % 400000, DATE '1992-01-01' + (i * 67 % 2400)::integer,
                 (i % 5 + 1)::text || '-PRIORITY' FROM generate_series(0::bigint, {orders} - 1) AS x(i);
             INSERT INTO part SELECT i, 'Brand#' || (11 + i % 25)::text, 'BOX' || (i % 40)::text,
                 900 + i % 1000 FROM generate_series(0::bigint, {part} - 1) AS x(i)"
        )
    }
}

/// Random numbers from a seed.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The small transactions: of each table one that reads a row and two that change it.
const SMALL: [&str; 9] = [
    "SELECT l_extendedprice, l_discount, l_shipdate FROM lineitem WHERE l_id = $1",
    "UPDATE lineitem SET l_discount = l_discount * $2, l_extendedprice = l_extendedprice * $2 WHERE l_id = $1",
    "UPDATE lineitem SET l_shipdate = l_shipdate + $2::integer, l_returnflag = 'N' WHERE l_id = $1",
    "SELECT o_totalprice, o_orderpriority FROM orders WHERE o_orderkey = $1",
    "UPDATE orders SET o_totalprice = o_totalprice * $2 WHERE o_orderkey = $1",
    "UPDATE orders SET o_orderpriority = '3-PRIORITY' WHERE o_orderkey = $1",
    "SELECT p_brand, p_retailprice FROM part WHERE p_partkey = $1",
    "UPDATE part SET p_retailprice = p_retailprice * $2 WHERE p_partkey = $1",
    "UPDATE part SET p_brand = 'Brand#23' WHERE p_partkey = $1",
];

/// Runs one of the small transactions.
pub(super) fn small(connection: &Connection, sizes: Sizes, draw: &mut Draw) -> Result<(), SqlError> {
    let number = draw.below(SMALL.len() as u64) as usize;
    let rows = [sizes.lineitem, sizes.orders, sizes.part][number / 3];
    let mut values = vec![Value::BigInt(draw.below(rows) as i64)];
    if SMALL[number].contains("$2") {
        let percent = draw.below(21) as i32 - 10;
        values.push(match SMALL[number].contains("::integer") {
            true => Value::Integer(percent),
            false => Value::Double(1.0 + f64::from(percent) / 100.0),
        });
    }
    connection.execute_with(SMALL[number], &values).map(drop)
}

/// The queries.
pub(super) const QUERIES: [&str; 7] = ["Q1", "Q4", "Q6", "Q17", "scan LINEITEM", "scan ORDERS", "scan PART"];

/// A query with parameters drawn anew, so that no answer is known from before.
pub(super) fn query(number: usize, draw: &mut Draw) -> String {
    let mut n = |limit: u64| draw.below(limit);
    match number {
        0 => format!(
            "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
                 sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
                 avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
             FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - {} GROUP BY l_returnflag, l_linestatus",
            60 + n(61)
        ),
        1 => {
            let month = format!("{}-{:02}-01", 1993 + n(5), 1 + n(10));
            format!(
                "SELECT o_orderpriority, count(*) FROM orders WHERE o_orderdate >= DATE '{month}'
                 AND o_orderdate < DATE '{month}' + 92 AND o_totalprice > {} GROUP BY o_orderpriority",
                n(1000)
            )
        }
        2 => {
            let (year, discount) = (1993 + n(5), 2 + n(8));
            format!(
                "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '{year}-01-01'
                 AND l_shipdate < DATE '{year}-01-01' + 365 AND l_discount BETWEEN {} / 100.0 AND {} / 100.0
                 AND l_quantity < {}",
                discount - 1,
                discount + 1,
                24 + n(2)
            )
        }
        3 => format!(
            "SELECT sum(l_extendedprice) / 7.0 FROM lineitem JOIN part ON p_partkey = l_partkey
             WHERE p_brand = 'Brand#{}' AND p_container = 'BOX{}' AND l_quantity < {}",
            11 + n(25),
            n(40),
            5 + n(10)
        ),
        4 => format!("SELECT count(*), sum(l_extendedprice + {}) FROM lineitem", n(1 << 30)),
        5 => format!("SELECT count(*), sum(o_totalprice + {}) FROM orders", n(1 << 30)),
        _ => format!("SELECT count(*), sum(p_retailprice + {}) FROM part", n(1 << 30)),
    }
}
