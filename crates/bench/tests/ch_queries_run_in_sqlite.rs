//! The queries and conditions are SQL that another system understands, and say what they should of
//! a fresh population.

mod support;

use albireo_bench::ch::oracle;
use albireo_bench::ch::queries::{QUERIES, Query, TOP10};
use albireo_bench::tpcc::consistency;
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::{DISTRICTS, Scale};
use rusqlite::{Connection, Row, params};
use support::{Decimals, sqlite};

/// Three warehouses, so that Q19's lists of warehouses differ; loaded in March 2011.
const POPULATION: Population = Population {
    scale: Scale { items: 3_000, customers: 90 },
    warehouses: 3,
    seed: 1,
    loaded_at: Timestamp(1_300_000_000_000_000),
};

fn rows(connection: &Connection, query: &Query) -> usize {
    let mut statement = connection.prepare(&oracle::sqlite(query.sql)).expect(query.name);
    let parameters = [1, 1];
    let parameters = rusqlite::params_from_iter(&parameters[..query.parameters]);
    let rows = statement.query_map(parameters, |_| Ok(())).expect(query.name);
    rows.collect::<Result<Vec<_>, _>>().expect(query.name).len()
}

fn number<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> T {
    connection.query_row(sql, params![], |row| row.get(0)).expect(sql)
}

fn violations(connection: &Connection, condition: usize) -> i64 {
    number(connection, &consistency::violations(condition, POPULATION.scale))
}

#[test]
fn queries_on_a_fresh_population_give_the_rows_they_should() {
    let connection = sqlite(&POPULATION, Decimals::Floating).unwrap();
    let count = |name: &str| rows(&connection, QUERIES.iter().find(|query| query.name == name).unwrap());
    let orders =
        i64::from(POPULATION.warehouses) * i64::from(DISTRICTS) * i64::from(POPULATION.scale.customers);
    // Known for certain: lines have all numbers and orders all sizes.
    assert_eq!((count("Q1"), count("Q4"), count("Q12")), (15, 11, 11));
    assert!(count("Q13") > 3);
    assert_eq!((count("Q6"), count("Q14"), count("Q17"), count("Q19")), (1, 1, 1, 1));
    // All items are offered, but by whom depends on their name and price.
    assert!(count("Q16") > 2_900);
    // Undelivered orders have amounts, nearly all of them above 200; delivered ones are free.
    assert_eq!(number::<i64>(&connection, "SELECT count(*) FROM new_order"), orders * 3 / 10);
    assert!((orders * 3 / 10 - 5..=orders * 3 / 10).contains(&(count("Q18") as i64)));
    assert!(count("Q10") > 0 && count("Q3") > 0 && count("Q2") > 0 && count("Q15") > 0);
    // Germany and all of Europe are found through the first character of the state.
    assert!(count("Q5") > 10);
    assert!(count("Q8") == 1 && count("Q7") > 0 && count("Q9") > 0);
    // Nothing has been ordered or delivered by a transaction yet, and everybody has an order.
    assert_eq!((count("Q11"), count("Q21"), count("Q22")), (0, 0, 0));
    count("Q20");
    assert_eq!(rows(&connection, &TOP10), 10);
}

#[test]
fn top10_lists_the_customers_with_undelivered_orders_first() {
    let connection = sqlite(&POPULATION, Decimals::Units).unwrap();
    let mut statement = connection.prepare(&oracle::sqlite(TOP10.sql)).unwrap();
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Vec<(i32, i64)> =
        statement.query_map([2, 3], read).unwrap().collect::<Result<_, _>>().unwrap();
    let orders = POPULATION.orders(2, 3);
    let mut expected: Vec<(i32, i64)> = orders
        .map(|order| {
            let lines = (1..=order.o_ol_cnt).map(|number| POPULATION.order_line(2, 3, order.o_id, number));
            (order.o_c_id, lines.map(|line| line.ol_amount.0).sum())
        })
        .collect();
    expected.sort_by_key(|&(customer, revenue)| (-revenue, customer));
    assert_eq!(found, expected[..10]);
}

#[test]
fn every_condition_holds_on_a_fresh_population() {
    let connection = sqlite(&POPULATION, Decimals::Units).unwrap();
    for condition in 1..=consistency::COUNT {
        assert_eq!(violations(&connection, condition), 0, "condition {condition}");
    }
}

/// Each damage breaks the conditions it is listed with and no other.
#[test]
fn conditions_notice_damage_and_name_it() {
    let damages: [(&str, &[usize]); 11] = [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", &[1, 8]),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 1", &[2]),
        ("UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 1 AND d_id = 1", &[1, 9]),
        ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 80", &[3, 5, 11]),
        (
            "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 90 AND ol_number = 1",
            &[4, 6],
        ),
        ("DELETE FROM orders WHERE o_w_id = 3 AND o_d_id = 1 AND o_id = 90", &[2, 4, 7, 11]),
        ("UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 90", &[5, 7]),
        (
            "UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
            &[10, 12],
        ),
        ("UPDATE customer SET c_ytd_payment = 0 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1", &[12]),
        ("UPDATE customer SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1", &[11]),
        ("DELETE FROM history WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1", &[8, 9, 10]),
    ];
    let connection = sqlite(&POPULATION, Decimals::Units).unwrap();
    for (damage, expected) in damages {
        connection.execute_batch("SAVEPOINT intact").unwrap();
        assert!(connection.execute(damage, []).unwrap() > 0, "{damage}");
        let broken: Vec<_> =
            (1..=consistency::COUNT).filter(|&condition| violations(&connection, condition) > 0).collect();
        assert_eq!(broken, expected, "{damage}");
        connection.execute_batch("ROLLBACK TO intact").unwrap();
    }
}

/// A Delivery done by hand keeps every condition, the eleventh among them.
#[test]
fn conditions_still_hold_after_a_delivery() {
    let connection = sqlite(&POPULATION, Decimals::Units).unwrap();
    let order = "_w_id = 1 AND @_d_id = 1 AND @_o_id = 64";
    let of = |prefix: &str| format!("{prefix}{}", order.replace('@', prefix));
    let by_id = of("o").replace("o_o_id", "o_id");
    let customer = format!("(SELECT o_c_id FROM orders WHERE {by_id})");
    let amount = format!("(SELECT sum(ol_amount) FROM order_line WHERE {})", of("ol"));
    let delivery = format!(
        "DELETE FROM new_order WHERE {};
         UPDATE orders SET o_carrier_id = 7 WHERE {by_id};
         UPDATE order_line SET ol_delivery_d = '2011-04-01 00:00:00.000000' WHERE {};
         UPDATE customer SET c_balance = c_balance + {amount}, c_delivery_cnt = c_delivery_cnt + 1
          WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = {customer}",
        of("no"),
        of("ol"),
    );
    connection.execute_batch(&delivery).unwrap();
    assert_eq!(connection.changes(), 1);
    for condition in 1..=consistency::COUNT {
        assert_eq!(violations(&connection, condition), 0, "condition {condition}");
    }
}
