//! The native procedures leave behind exactly what plain SQL does, and show the same.

mod support;

use std::time::Duration;

use albireo_base::{Decimal, Value};
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::{Cell, Timestamp};
use albireo_bench::tpcc::schema::{Layout, Table};
use albireo_env::Env;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use support::native::Native;
use support::{Decimals, timestamp, transactions};

/// Enough to deliver every order there was and some of the new ones.
const TRANSACTIONS: usize = 2_500;

/// A value in the form SQLite has it in.
fn as_in_sqlite(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Decimal(Decimal { unscaled, .. }) => unscaled.to_string(),
        Value::Timestamp(us) => timestamp(Cell::Timestamp(*us)),
        other => other.to_string(),
    }
}

/// A table's rows in SQLite, one text each, sorted.
fn rows_in_sqlite(connection: &Connection, table: Table) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {}", table.name())).unwrap();
    let columns = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| {
        let text = |value: ValueRef<'_>| match value {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => panic!("{other:?} in {}", table.name()),
        };
        let values = (0..columns).map(|i| row.get_ref(i).map(text));
        Ok(values.collect::<Result<Vec<_>, _>>()?.join("|"))
    };
    let mut rows: Vec<String> = statement.query_map([], read).unwrap().map(Result::unwrap).collect();
    rows.sort_unstable();
    rows
}

fn rows_in_partitions(native: &Native, table: Table) -> Vec<String> {
    let text = |row: Vec<Value>| row.iter().map(as_in_sqlite).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = native.rows(table).into_iter().map(text).collect();
    rows.sort_unstable();
    rows
}

fn compare(native: &Native, sqlite: &Connection) {
    for table in Table::ALL {
        let (found, expected) = (rows_in_partitions(native, table), rows_in_sqlite(sqlite, table));
        assert_eq!(found.len(), expected.len(), "rows of {}", table.name());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "a row of {}", table.name());
        }
    }
}

fn agree(partitions: u16, layout: Layout) {
    let (env, hand) = Env::simulated(1);
    let population =
        Population { scale: Scale::SMALL, warehouses: 3, seed: 9, loaded_at: Timestamp(env.clock.unix_us()) };
    let sqlite = support::sqlite(&population, Decimals::Units).unwrap();
    let native = Native::new(&population, partitions, layout, &env);
    compare(&native, &sqlite);
    let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, 3, &[1, 2, 3], 9, 0);
    let (mut rolled_back, mut crossing) = (0, 0);
    sqlite.execute_batch("BEGIN").unwrap();
    for _ in 0..TRANSACTIONS {
        hand.advance(Duration::from_micros(1_234));
        let now = timestamp(Cell::Timestamp(env.clock.unix_us()));
        let transaction = inputs.next_transaction();
        let expected = transactions::run(&sqlite, &transaction, &now).unwrap();
        let found = native.run(&transaction).unwrap();
        assert_eq!(found, expected, "{transaction:?}");
        rolled_back += usize::from(expected.is_none());
        let partition = |w_id: i16| w_id as u16 % partitions;
        crossing += usize::from(transaction.leaves(|w_id| partition(w_id) != partition(transaction.home())));
    }
    sqlite.execute_batch("COMMIT").unwrap();
    compare(&native, &sqlite);
    assert!(rolled_back > 3, "{rolled_back} were rolled back");
    assert_eq!(crossing > 50, partitions > 1, "{crossing} crossed partitions");
}

#[test]
fn one_partition_of_columns_ends_as_sqlite_does() {
    agree(1, Layout::Column);
}

#[test]
fn one_partition_of_groups_ends_as_sqlite_does() {
    agree(1, Layout::Groups);
}

#[test]
fn crossing_partitions_of_rows_end_as_sqlite_does() {
    agree(2, Layout::Row);
}
