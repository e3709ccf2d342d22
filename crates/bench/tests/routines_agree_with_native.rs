//! The transactions in PL/pgSQL leave behind exactly what the native ones do, and show the same; statement by statement
//! they leave it behind, too.

use std::time::Duration;

use albireo::Argument;
use albireo_base::Value;
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest};
use albireo_bench::progress::Silent;
use albireo_bench::target::{Albireo, Row, StatementTransactions};
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix, Transaction};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::{Layout, Table};
use albireo_env::{Env, SimulatedClock};

const TRANSACTIONS: usize = 1_200;

fn loaded(procedures: Procedures, partitions: u16) -> (Albireo, Env, SimulatedClock) {
    let (env, hand) = Env::simulated(1);
    let population =
        Population { scale: Scale::SMALL, warehouses: 3, seed: 9, loaded_at: Timestamp(env.clock.unix_us()) };
    let config = Config {
        workload: Workload::Tpcc,
        warehouses: 3,
        partitions,
        layout: Layout::Groups,
        mix: Mix::Spec,
        procedures,
        seed: 9,
        scale: Scale::SMALL,
        ..Config::default()
    };
    let cancel = Cancel::default();
    let target = Albireo::open(&config, &env, &cancel).unwrap();
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel)).unwrap();
    (target, env, hand)
}

/// All rows of a table, sorted.
fn rows(target: &Albireo, table: Table) -> Vec<String> {
    let rows = target.database().query(&format!("SELECT * FROM {}", table.name()), &[]).unwrap().rows();
    let text = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = rows.into_iter().map(text).collect();
    rows.sort_unstable();
    rows
}

fn text(argument: &Argument) -> String {
    match argument {
        Argument::Value(value) => value.to_string(),
        Argument::Array(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
    }
}

fn cents(unscaled: i64) -> String {
    format!("{}{}.{:02}", if unscaled < 0 { "-" } else { "" }, unscaled.abs() / 100, unscaled.abs() % 100)
}

/// What both show: of the native result, as the routine's columns give it.
fn check(native: &Albireo, transaction: &Transaction, row: Option<&Row>) {
    let transactions = native.transactions().unwrap();
    let shown = |columns: &[usize]| -> Vec<String> {
        let row = row.expect("it committed");
        columns.iter().map(|&column| text(&row[column])).collect()
    };
    match transaction {
        Transaction::NewOrder(order) => match transactions.new_order(order).unwrap() {
            None => assert!(row.is_none()),
            Some(result) => {
                let items = result.items();
                let join =
                    |f: &dyn Fn(usize) -> String| (0..items.len()).map(f).collect::<Vec<_>>().join(",");
                let expected = [
                    result.o_id.to_string(),
                    result.c_last.as_str().to_owned(),
                    result.c_credit.as_str().to_owned(),
                    cents(result.total_amount),
                    join(&|i| items[i].i_name.as_str().to_owned()),
                    join(&|i| items[i].s_quantity.to_string()),
                    join(&|i| items[i].brand_generic.to_string()),
                    join(&|i| cents(items[i].i_price)),
                    join(&|i| cents(items[i].ol_amount)),
                ];
                assert_eq!(shown(&[0, 2, 3, 7, 8, 9, 10, 11, 12]), expected);
            }
        },
        Transaction::Payment(payment) => {
            let result = transactions.payment.call(payment).unwrap();
            let c_data = result.c_data.map_or("NULL".to_owned(), |data| data.as_str().to_owned());
            let expected = [
                result.c_id.to_string(),
                result.c_first.as_str().to_owned(),
                result.warehouse.street_1.as_str().to_owned(),
                result.district.zip.as_str().to_owned(),
                result.customer.city.as_str().to_owned(),
                result.c_phone.as_str().to_owned(),
                cents(result.c_balance),
                c_data,
            ];
            assert_eq!(shown(&[0, 1, 4, 13, 16, 19, 24, 25]), expected);
        }
        Transaction::OrderStatus(status) => {
            let result = transactions.order_status.call(status).unwrap();
            let lines = result.lines();
            let expected = [
                result.c_id.to_string(),
                cents(result.c_balance),
                result.o_id.to_string(),
                lines.iter().map(|line| line.ol_i_id.to_string()).collect::<Vec<_>>().join(","),
                lines.iter().map(|line| cents(line.ol_amount)).collect::<Vec<_>>().join(","),
            ];
            assert_eq!(shown(&[0, 4, 5, 9, 11]), expected);
        }
        Transaction::Delivery(delivery) => {
            let delivered = transactions.delivery.call(delivery).unwrap();
            let expected = delivered.map(|o_id| o_id.map_or("NULL".to_owned(), |o_id| o_id.to_string()));
            assert_eq!(shown(&[0]), [expected.join(",")]);
        }
        Transaction::StockLevel(level) => {
            assert_eq!(shown(&[0]), [transactions.stock_level.call(level).unwrap().to_string()]);
        }
    }
}

fn agree(partitions: u16) {
    let (native, _, native_hand) = loaded(Procedures::Native, partitions);
    let (stored, _, stored_hand) = loaded(Procedures::PlPgSql, partitions);
    let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, 3, &[1, 2, 3], 9, 0);
    let mut rolled_back = 0;
    for _ in 0..TRANSACTIONS {
        native_hand.advance(Duration::from_micros(1_234));
        stored_hand.advance(Duration::from_micros(1_234));
        let transaction = inputs.next_transaction();
        let row = stored.stored().unwrap().run(&transaction);
        let row = row.unwrap_or_else(|error| panic!("{error}\n{transaction:?}"));
        check(&native, &transaction, row.as_ref());
        rolled_back += usize::from(row.is_none());
    }
    assert!(rolled_back > 1, "{rolled_back} were rolled back");
    same_tables(&stored, &native);
}

fn same_tables(target: &Albireo, native: &Albireo) {
    for table in Table::ALL {
        let (found, expected) = (rows(target, table), rows(native, table));
        assert_eq!(found.len(), expected.len(), "rows of {}", table.name());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "a row of {}", table.name());
        }
    }
}

/// The same transactions, statement by statement.
fn statements_agree(partitions: u16) {
    let (native, _, native_hand) = loaded(Procedures::Native, partitions);
    let (target, _, hand) = loaded(Procedures::Statements, partitions);
    let mut client = StatementTransactions::new(target.database());
    let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, 3, &[1, 2, 3], 9, 0);
    let transactions = native.transactions().unwrap();
    for _ in 0..TRANSACTIONS {
        native_hand.advance(Duration::from_micros(1_234));
        hand.advance(Duration::from_micros(1_234));
        let transaction = inputs.next_transaction();
        let (expected, _) = transactions.run(&transaction).unwrap();
        let end = client.run(&transaction).unwrap_or_else(|error| panic!("{error}\n{transaction:?}"));
        assert_eq!(end, expected, "{transaction:?}");
    }
    assert_eq!(client.retries(), 0, "nobody interferes");
    same_tables(&target, &native);
}

#[test]
fn statements_between_begin_and_commit_end_as_the_native_procedures_do() {
    statements_agree(1);
    statements_agree(2);
}

#[test]
fn one_partition_ends_as_the_native_procedures_do() {
    agree(1);
}

#[test]
fn crossing_partitions_end_as_the_native_procedures_do() {
    agree(2);
}
