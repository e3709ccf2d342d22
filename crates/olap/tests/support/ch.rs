//! Tables and queries of the CH-benCHmark, generated at any size. The data follow TPC-C's rules
//! loosely: enough that every query has something to find.
#![allow(dead_code, reason = "each program uses a part")]

use std::sync::Arc;

use albireo_base::SqlType;
use albireo_olap::relation::Relation;
use arrow::array::{
    ArrayRef, Decimal128Array, Int32Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};

use super::support::{decimal, relation};

/// How much of everything.
#[derive(Clone, Copy)]
pub struct Size {
    pub warehouses: i32,
    pub districts: i32,
    pub customers: i32,
    pub orders: i32,
    pub items: i32,
    pub suppliers: i32,
}

impl Size {
    /// A few thousand rows.
    pub const TINY: Size =
        Size { warehouses: 2, districts: 4, customers: 60, orders: 40, items: 200, suppliers: 200 };
}

/// A small generator of pseudo-random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `low..=high`.
    pub fn within(&mut self, low: i32, high: i32) -> i32 {
        low + (self.next() % (high - low + 1) as u64) as i32
    }

    pub fn text(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        (0..length).map(|_| LETTERS[(self.next() % 62) as usize] as char).collect()
    }
}

const CHUNK: usize = 16_384;
/// 2012-01-01.
const BEGIN_US: i64 = 1_325_376_000_000_000;
const DAY_US: i64 = 86_400_000_000;

enum Cell {
    Int(Option<i32>),
    Money(i64),
    Time(Option<i64>),
    Text(String),
}

/// Gathers rows into chunks.
struct Writer {
    relation: Relation,
    rows: Vec<Vec<Cell>>,
    batches: Vec<RecordBatch>,
}

impl Writer {
    fn new(relation: Relation) -> Self {
        Self { relation, rows: Vec::new(), batches: Vec::new() }
    }

    fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
        if self.rows.len() == CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.relation.columns.iter().enumerate();
        let columns = columns.map(|(i, c)| column(c.ty, rows.iter().map(|r| &r[i]))).collect();
        self.batches.push(RecordBatch::try_new(self.relation.arrow_schema(), columns).unwrap());
    }

    fn finish(mut self) -> (Relation, Vec<RecordBatch>) {
        if !self.rows.is_empty() || self.batches.is_empty() {
            self.flush();
        }
        (self.relation, self.batches)
    }
}

fn column<'a>(ty: SqlType, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
    match ty {
        SqlType::Integer => {
            Arc::new(cells.map(|c| if let Cell::Int(v) = c { *v } else { None }).collect::<Int32Array>())
        }
        SqlType::Decimal { precision, scale } => {
            let values = cells.map(|c| if let Cell::Money(v) = c { i128::from(*v) } else { 0 });
            let array = Decimal128Array::from(values.collect::<Vec<_>>());
            Arc::new(array.with_precision_and_scale(precision, scale as i8).unwrap())
        }
        SqlType::Timestamp => Arc::new(
            cells
                .map(|c| if let Cell::Time(v) = c { *v } else { None })
                .collect::<TimestampMicrosecondArray>(),
        ),
        _ => Arc::new(
            cells
                .map(|c| if let Cell::Text(v) = c { Some(v.as_str()) } else { None })
                .collect::<StringViewArray>(),
        ),
    }
}

fn int(v: i32) -> Cell {
    Cell::Int(Some(v))
}

/// All tables.
pub fn tables(size: Size) -> Vec<(Relation, Vec<RecordBatch>)> {
    let mut random = Random::new(42);
    let mut tables = vec![regions(), nations(), suppliers(size, &mut random)];
    tables.push(items(size, &mut random));
    tables.push(stock(size, &mut random));
    tables.push(customers(size, &mut random));
    tables.extend(orders(size, &mut random));
    tables
}

const I: SqlType = SqlType::Integer;
const T: SqlType = SqlType::Timestamp;

fn text(n: u32) -> SqlType {
    SqlType::Varchar(n)
}

fn regions() -> (Relation, Vec<RecordBatch>) {
    let mut w = Writer::new(relation(1, "region", &[("r_regionkey", I), ("r_name", text(55))], &[0]));
    for (i, name) in ["Africa", "America", "Asia", "Australia", "Europe"].iter().enumerate() {
        w.push(vec![int(i as i32), Cell::Text((*name).to_owned())]);
    }
    w.finish()
}

fn nations() -> (Relation, Vec<RecordBatch>) {
    let columns = [("n_nationkey", I), ("n_name", text(25)), ("n_regionkey", I)];
    let mut w = Writer::new(relation(2, "nation", &columns, &[0]));
    let keys = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z');
    for (i, key) in keys.enumerate() {
        let name = match i {
            13 => "Germany".to_owned(),
            24 => "Cambodia".to_owned(),
            _ => format!("Nation{i}"),
        };
        let region = if i == 13 { 4 } else { i as i32 % 5 };
        w.push(vec![int(i32::from(key)), Cell::Text(name), int(region)]);
    }
    w.finish()
}

/// A nation's key as a letter; in small databases two nations get half of everything, so that
/// the queries about them find something.
fn nation_of(size: Size, random: &mut Random) -> char {
    let letter = random.text(1).remove(0);
    match random.within(1, 4) {
        1 if size.suppliers < 1000 => 'D',
        2 if size.suppliers < 1000 => 'O',
        _ => letter,
    }
}

fn suppliers(size: Size, random: &mut Random) -> (Relation, Vec<RecordBatch>) {
    let columns = [
        ("su_suppkey", I),
        ("su_name", text(25)),
        ("su_address", text(40)),
        ("su_nationkey", I),
        ("su_phone", text(15)),
        ("su_acctbal", decimal(12, 2)),
        ("su_comment", text(101)),
    ];
    let mut w = Writer::new(relation(3, "supplier", &columns, &[0]));
    for key in 0..size.suppliers {
        let comment = if key % 50 == 7 { "a bad one".to_owned() } else { random.text(20) };
        w.push(vec![
            int(key),
            Cell::Text(format!("Supplier#{key:09}")),
            Cell::Text(random.text(20)),
            int(nation_of(size, random) as i32),
            Cell::Text(random.text(15)),
            Cell::Money(i64::from(random.within(-99_999, 999_999))),
            Cell::Text(comment),
        ]);
    }
    w.finish()
}

fn items(size: Size, random: &mut Random) -> (Relation, Vec<RecordBatch>) {
    let columns =
        [("i_id", I), ("i_im_id", I), ("i_name", text(24)), ("i_price", decimal(5, 2)), ("i_data", text(50))];
    let mut w = Writer::new(relation(4, "item", &columns, &[0]));
    for id in 1..=size.items {
        let length = random.within(26, 50) as usize;
        let mut data = random.text(length);
        match id % 20 {
            3 => data.replace_range(..2, "PR"),
            5 => data.replace_range(..2, "co"),
            7 => data.replace_range(length - 2.., "BB"),
            9 => data.replace_range(length - 1.., "b"),
            _ => {}
        }
        w.push(vec![
            int(id),
            int(random.within(1, 10_000)),
            Cell::Text(random.text(20)),
            Cell::Money(i64::from(random.within(100, 9999))),
            Cell::Text(data),
        ]);
    }
    w.finish()
}

fn stock(size: Size, random: &mut Random) -> (Relation, Vec<RecordBatch>) {
    let columns =
        [("s_i_id", I), ("s_w_id", I), ("s_quantity", I), ("s_ytd", decimal(8, 0)), ("s_order_cnt", I)];
    let mut w = Writer::new(relation(5, "stock", &columns, &[0, 1]));
    for warehouse in 1..=size.warehouses {
        for item in 1..=size.items {
            w.push(vec![
                int(item),
                int(warehouse),
                int(random.within(10, 100)),
                Cell::Money(0),
                int(random.within(0, 20)),
            ]);
        }
    }
    w.finish()
}

fn customers(size: Size, random: &mut Random) -> (Relation, Vec<RecordBatch>) {
    let columns = [
        ("c_id", I),
        ("c_d_id", I),
        ("c_w_id", I),
        ("c_last", text(16)),
        ("c_city", text(20)),
        ("c_state", SqlType::Char(2)),
        ("c_phone", SqlType::Char(16)),
        ("c_balance", decimal(12, 2)),
    ];
    let mut w = Writer::new(relation(6, "customer", &columns, &[0, 1, 2]));
    for warehouse in 1..=size.warehouses {
        for district in 1..=size.districts {
            for id in 1..=size.customers {
                w.push(vec![
                    int(id),
                    int(district),
                    int(warehouse),
                    Cell::Text(format!("LAST{}", random.within(0, 999))),
                    Cell::Text(random.text(12)),
                    Cell::Text(format!("{}X", nation_of(size, random))),
                    Cell::Text(format!("{:016}", random.next() % 10_000_000_000_000_000)),
                    Cell::Money(i64::from(random.within(-100_000, 100_000))),
                ]);
            }
        }
    }
    w.finish()
}

fn orders(size: Size, random: &mut Random) -> Vec<(Relation, Vec<RecordBatch>)> {
    let columns = [
        ("o_id", I),
        ("o_d_id", I),
        ("o_w_id", I),
        ("o_c_id", I),
        ("o_entry_d", T),
        ("o_carrier_id", I),
        ("o_ol_cnt", I),
    ];
    let mut orders = Writer::new(relation(7, "orders", &columns, &[0, 1, 2]));
    let columns = [("no_o_id", I), ("no_d_id", I), ("no_w_id", I)];
    let mut new_orders = Writer::new(relation(8, "new_order", &columns, &[0, 1, 2]));
    let columns = [
        ("ol_o_id", I),
        ("ol_d_id", I),
        ("ol_w_id", I),
        ("ol_number", I),
        ("ol_i_id", I),
        ("ol_supply_w_id", I),
        ("ol_delivery_d", T),
        ("ol_quantity", I),
        ("ol_amount", decimal(6, 2)),
    ];
    let mut lines = Writer::new(relation(9, "order_line", &columns, &[0, 1, 2, 3]));
    for warehouse in 1..=size.warehouses {
        for district in 1..=size.districts {
            for id in 1..=size.orders {
                let entry = BEGIN_US + i64::from(id) * DAY_US / 4 + i64::from(random.within(0, 999));
                let delivered = id <= size.orders * 7 / 10;
                let count = random.within(5, 15);
                let carrier = delivered.then(|| random.within(1, 10));
                orders.push(vec![
                    int(id),
                    int(district),
                    int(warehouse),
                    int((id * 7 + district) % size.customers + 1),
                    Cell::Time(Some(entry)),
                    Cell::Int(carrier),
                    int(count),
                ]);
                if !delivered {
                    new_orders.push(vec![int(id), int(district), int(warehouse)]);
                }
                for number in 1..=count {
                    let late = i64::from(random.within(0, 30)) * DAY_US;
                    let amount = if delivered { 0 } else { random.within(1, 999_999) };
                    lines.push(vec![
                        int(id),
                        int(district),
                        int(warehouse),
                        int(number),
                        int(random.within(1, size.items)),
                        int(if random.within(1, 100) == 1 {
                            random.within(1, size.warehouses)
                        } else {
                            warehouse
                        }),
                        Cell::Time(delivered.then_some(entry + late)),
                        int(random.within(1, 10)),
                        Cell::Money(i64::from(amount.max(i32::from(number == 1) * 25_000))),
                    ]);
                }
            }
        }
    }
    vec![orders.finish(), new_orders.finish(), lines.finish()]
}

/// The 22 queries; `{s}` is the number of suppliers.
pub fn queries(size: Size) -> Vec<(u32, String)> {
    let suppliers = size.suppliers.to_string();
    QUERIES.iter().enumerate().map(|(i, sql)| (i as u32 + 1, sql.replace("{s}", &suppliers))).collect()
}

const QUERIES: [&str; 22] = [
    "select ol_number, sum(ol_quantity) as sum_qty, sum(ol_amount) as sum_amount, \
       avg(ol_quantity) as avg_qty, avg(ol_amount) as avg_amount, count(*) as count_order \
     from order_line where ol_delivery_d > timestamp '2007-01-02 00:00:00' \
     group by ol_number order by ol_number",
    "select su_suppkey, su_name, n_name, i_id, i_name, su_address, su_phone, su_comment \
     from item, supplier, stock, nation, region, \
       (select s_i_id as m_i_id, min(s_quantity) as m_s_quantity \
        from stock, supplier, nation, region \
        where (s_w_id * s_i_id) % {s} = su_suppkey and su_nationkey = n_nationkey \
          and n_regionkey = r_regionkey and r_name like 'Europ%' group by s_i_id) m \
     where i_id = s_i_id and (s_w_id * s_i_id) % {s} = su_suppkey and su_nationkey = n_nationkey \
       and n_regionkey = r_regionkey and i_data like '%b' and r_name like 'Europ%' \
       and i_id = m_i_id and s_quantity = m_s_quantity order by n_name, su_name, i_id",
    "select ol_o_id, ol_w_id, ol_d_id, sum(ol_amount) as revenue, o_entry_d \
     from customer, new_order, orders, order_line \
     where c_state like 'A%' and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id \
       and no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id and ol_w_id = o_w_id \
       and ol_d_id = o_d_id and ol_o_id = o_id and o_entry_d > timestamp '2007-01-02 00:00:00' \
     group by ol_o_id, ol_w_id, ol_d_id, o_entry_d order by revenue desc, o_entry_d",
    "select o_ol_cnt, count(*) as order_count from orders \
     where o_entry_d >= timestamp '2007-01-02 00:00:00' and o_entry_d < timestamp '2032-01-02 00:00:00' \
       and exists (select * from order_line where o_id = ol_o_id and o_w_id = ol_w_id \
         and o_d_id = ol_d_id and ol_delivery_d >= o_entry_d) group by o_ol_cnt order by o_ol_cnt",
    "select n_name, sum(ol_amount) as revenue \
     from customer, orders, order_line, stock, supplier, nation, region \
     where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id and ol_o_id = o_id \
       and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_w_id = s_w_id and ol_i_id = s_i_id \
       and (s_w_id * s_i_id) % {s} = su_suppkey and ascii(substr(c_state, 1, 1)) = su_nationkey \
       and su_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'Europe' \
       and o_entry_d >= timestamp '2007-01-02 00:00:00' group by n_name order by revenue desc",
    "select sum(ol_amount) as revenue from order_line \
     where ol_delivery_d >= timestamp '1999-01-01 00:00:00' \
       and ol_delivery_d < timestamp '2020-01-01 00:00:00' and ol_quantity between 1 and 100000",
    "select su_nationkey as supp_nation, substr(c_state, 1, 1) as cust_nation, \
       extract(year from o_entry_d) as l_year, sum(ol_amount) as revenue \
     from supplier, stock, order_line, orders, customer, nation n1, nation n2 \
     where ol_supply_w_id = s_w_id and ol_i_id = s_i_id and (s_w_id * s_i_id) % {s} = su_suppkey \
       and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id and c_id = o_c_id \
       and c_w_id = o_w_id and c_d_id = o_d_id and su_nationkey = n1.n_nationkey \
       and ascii(substr(c_state, 1, 1)) = n2.n_nationkey \
       and ((n1.n_name = 'Germany' and n2.n_name = 'Cambodia') \
         or (n1.n_name = 'Cambodia' and n2.n_name = 'Germany')) \
       and ol_delivery_d between timestamp '2007-01-02 00:00:00' and timestamp '2032-01-02 00:00:00' \
     group by su_nationkey, substr(c_state, 1, 1), extract(year from o_entry_d) \
     order by su_nationkey, cust_nation, l_year",
    "select extract(year from o_entry_d) as l_year, \
       sum(case when n2.n_name = 'Germany' then ol_amount else 0 end) / sum(ol_amount) as mkt_share \
     from item, supplier, stock, order_line, orders, customer, nation n1, nation n2, region \
     where i_id = s_i_id and ol_i_id = s_i_id and ol_supply_w_id = s_w_id \
       and (s_w_id * s_i_id) % {s} = su_suppkey and ol_w_id = o_w_id and ol_d_id = o_d_id \
       and ol_o_id = o_id and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id \
       and n1.n_nationkey = ascii(substr(c_state, 1, 1)) and n1.n_regionkey = r_regionkey \
       and ol_i_id < 1000 and r_name = 'Europe' and su_nationkey = n2.n_nationkey \
       and o_entry_d between timestamp '2007-01-02 00:00:00' and timestamp '2032-01-02 00:00:00' \
       and i_data like '%b' and i_id = ol_i_id \
     group by extract(year from o_entry_d) having sum(ol_amount) > 0 order by l_year",
    "select n_name, extract(year from o_entry_d) as l_year, sum(ol_amount) as sum_profit \
     from item, stock, supplier, order_line, orders, nation \
     where ol_i_id = s_i_id and ol_supply_w_id = s_w_id and (s_w_id * s_i_id) % {s} = su_suppkey \
       and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id and ol_i_id = i_id \
       and su_nationkey = n_nationkey and i_data like '%BB' \
     group by n_name, extract(year from o_entry_d) order by n_name, l_year desc",
    "select c_id, c_last, sum(ol_amount) as revenue, c_city, c_phone, n_name \
     from customer, orders, order_line, nation \
     where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id and ol_w_id = o_w_id \
       and ol_d_id = o_d_id and ol_o_id = o_id and o_entry_d >= timestamp '2007-01-02 00:00:00' \
       and o_entry_d <= ol_delivery_d and n_nationkey = ascii(substr(c_state, 1, 1)) \
     group by c_id, c_last, c_city, c_phone, n_name order by revenue desc",
    "select s_i_id, sum(s_order_cnt) as ordercount from stock, supplier, nation \
     where (s_w_id * s_i_id) % {s} = su_suppkey and su_nationkey = n_nationkey and n_name = 'Germany' \
     group by s_i_id having sum(s_order_cnt) > \
       (select sum(s_order_cnt) * .005 from stock, supplier, nation \
        where (s_w_id * s_i_id) % {s} = su_suppkey and su_nationkey = n_nationkey \
          and n_name = 'Germany') order by ordercount desc",
    "select o_ol_cnt, \
       sum(case when o_carrier_id = 1 or o_carrier_id = 2 then 1 else 0 end) as high_line_count, \
       sum(case when o_carrier_id <> 1 and o_carrier_id <> 2 then 1 else 0 end) as low_line_count \
     from orders, order_line where ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
       and o_entry_d <= ol_delivery_d and ol_delivery_d < timestamp '2030-01-01 00:00:00' \
     group by o_ol_cnt order by o_ol_cnt",
    "select c_count, count(*) as custdist from \
       (select c_id, count(o_id) from customer left outer join orders \
          on (c_w_id = o_w_id and c_d_id = o_d_id and c_id = o_c_id and o_carrier_id > 8) \
        group by c_id) as c_orders (c_id, c_count) \
     group by c_count order by custdist desc, c_count desc",
    "select 100.00 * sum(case when i_data like 'PR%' then ol_amount else 0 end) \
       / (1 + sum(ol_amount)) as promo_revenue from order_line, item \
     where ol_i_id = i_id and ol_delivery_d >= timestamp '2007-01-02 00:00:00' \
       and ol_delivery_d < timestamp '2030-01-02 00:00:00'",
    "with revenue (supplier_no, total_revenue) as \
       (select (s_w_id * s_i_id) % {s} as supplier_no, sum(ol_amount) as total_revenue \
        from order_line, stock where ol_i_id = s_i_id and ol_supply_w_id = s_w_id \
          and ol_delivery_d >= timestamp '2007-01-02 00:00:00' group by (s_w_id * s_i_id) % {s}) \
     select su_suppkey, su_name, su_address, su_phone, total_revenue from supplier, revenue \
     where su_suppkey = supplier_no \
       and total_revenue = (select max(total_revenue) from revenue) order by su_suppkey",
    "select i_name, substr(i_data, 1, 3) as brand, i_price, \
       count(distinct ((s_w_id * s_i_id) % {s})) as supplier_cnt from stock, item \
     where i_id = s_i_id and i_data not like 'zz%' and ((s_w_id * s_i_id) % {s}) not in \
       (select su_suppkey from supplier where su_comment like '%bad%') \
     group by i_name, substr(i_data, 1, 3), i_price order by supplier_cnt desc",
    "select sum(ol_amount) / 2.0 as avg_yearly from order_line, \
       (select i_id, avg(ol_quantity) as a from item, order_line \
        where i_data like '%b' and ol_i_id = i_id group by i_id) t \
     where ol_i_id = t.i_id and ol_quantity < t.a",
    "select c_last, c_id, o_id, o_entry_d, o_ol_cnt, sum(ol_amount) as total \
     from customer, orders, order_line \
     where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id and ol_w_id = o_w_id \
       and ol_d_id = o_d_id and ol_o_id = o_id \
     group by o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt \
     having sum(ol_amount) > 200 order by total desc, o_entry_d",
    "select sum(ol_amount) as revenue from order_line, item where \
       (ol_i_id = i_id and i_data like '%a' and ol_quantity >= 1 and ol_quantity <= 10 \
         and i_price between 1 and 400000 and ol_w_id in (1, 2, 3)) \
       or (ol_i_id = i_id and i_data like '%b' and ol_quantity >= 1 and ol_quantity <= 10 \
         and i_price between 1 and 400000 and ol_w_id in (1, 2, 4)) \
       or (ol_i_id = i_id and i_data like '%c' and ol_quantity >= 1 and ol_quantity <= 10 \
         and i_price between 1 and 400000 and ol_w_id in (1, 5, 3))",
    "select su_name, su_address from supplier, nation where su_suppkey in \
       (select (s_i_id * s_w_id) % {s} from stock, order_line \
        where s_i_id in (select i_id from item where i_data like 'co%') and ol_i_id = s_i_id \
          and ol_delivery_d > timestamp '2010-05-23 12:00:00' \
        group by s_i_id, s_w_id, s_quantity having 2 * s_quantity > sum(ol_quantity)) \
       and su_nationkey = n_nationkey and n_name = 'Germany' order by su_name",
    "select su_name, count(*) as numwait from supplier, order_line l1, orders, stock, nation \
     where l1.ol_o_id = o_id and l1.ol_w_id = o_w_id and l1.ol_d_id = o_d_id \
       and l1.ol_w_id = s_w_id and l1.ol_i_id = s_i_id and (s_w_id * s_i_id) % {s} = su_suppkey \
       and l1.ol_delivery_d > o_entry_d and not exists \
         (select * from order_line l2 where l2.ol_o_id = l1.ol_o_id and l2.ol_w_id = l1.ol_w_id \
            and l2.ol_d_id = l1.ol_d_id and l2.ol_delivery_d > l1.ol_delivery_d) \
       and su_nationkey = n_nationkey and n_name = 'Germany' \
     group by su_name order by numwait desc, su_name",
    "select substr(c_state, 1, 1) as country, count(*) as numcust, sum(c_balance) as totacctbal \
     from customer where substr(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7') \
       and c_balance > (select avg(c_balance) from customer where c_balance > 0.00 \
         and substr(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7')) \
       and not exists (select * from orders where o_c_id = c_id and o_w_id = c_w_id \
         and o_d_id = c_d_id) \
     group by substr(c_state, 1, 1) order by substr(c_state, 1, 1)",
];
