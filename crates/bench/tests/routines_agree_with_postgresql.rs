//! The same source of transactions and the same inputs leave the same tables behind in PostgreSQL and here.
//!
//! It asks the server that psql finds by PGHOST, PGUSER and PGDATABASE, in two schemas of its own, if
//! `ALBIREO_TEST_POSTGRESQL` is set; `crates/plpgsql/tests/against_postgresql.py` starts one and sets it.

#![allow(clippy::disallowed_methods, reason = "tests start psql")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use albireo_base::Value;
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{CustomerKey, Inputs, Mix, Transaction};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::{Layout, Table};
use albireo_env::Env;

const TRANSACTIONS: usize = 2_000;
const WAREHOUSES: i16 = 2;
const SCHEMA: &str = include_str!("../sql/tpcc_postgresql_schema.sql");
const PROCEDURES: &str = include_str!("../sql/tpcc_procedures.sql");

/// The tables' schema and one with a clock that is set; its `now` is found before PostgreSQL's.
const BEGIN: &str = "
DROP SCHEMA IF EXISTS albireo_clock, albireo_tpcc CASCADE;
CREATE SCHEMA albireo_clock;
CREATE SCHEMA albireo_tpcc;
CREATE FUNCTION albireo_clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$ SELECT current_setting('albireo.now')::timestamptz $$;
SET search_path = albireo_clock, pg_catalog, albireo_tpcc;
SET timezone = 'UTC';
SET client_min_messages = error;
CREATE FUNCTION albireo_tpcc.mark() RETURNS text LANGUAGE sql AS $$ SELECT 'table' $$;
";

fn loaded(env: &Env) -> Albireo {
    let config = Config {
        workload: Workload::Tpcc,
        warehouses: WAREHOUSES,
        partitions: 1,
        layout: Layout::Groups,
        mix: Mix::Spec,
        procedures: Procedures::PlPgSql,
        seed: 11,
        scale: Scale::SMALL,
        ..Config::default()
    };
    let loaded_at = Timestamp(env.clock.unix_us());
    let population = Population { scale: Scale::SMALL, warehouses: WAREHOUSES, seed: 11, loaded_at };
    let cancel = Cancel::default();
    let target = Albireo::open(&config, env, &cancel).unwrap();
    target.load(&config, &population, &Loading::new(&population, &Silent, &cancel)).unwrap();
    target
}

/// A table's rows as COPY writes them, blanks at the ends of values left out.
fn rows(target: &Albireo, table: Table) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Null => "\\N".to_owned(),
        value => value.to_string().replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n"),
    };
    let rows = target.database().query(&format!("SELECT * FROM {}", table.name()), &[]).unwrap().rows();
    rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join("\t")).collect()
}

fn list<T: std::fmt::Display>(items: impl Iterator<Item = T>) -> String {
    format!("'{{{}}}'", items.map(|item| item.to_string()).collect::<Vec<_>>().join(","))
}

fn customer(key: &CustomerKey) -> String {
    match key {
        CustomerKey::Id(id) => format!("{id}, NULL"),
        CustomerKey::LastName(last) => format!("NULL, '{}'", last.as_str()),
    }
}

/// The call of a transaction.
fn call(transaction: &Transaction) -> String {
    match transaction {
        Transaction::NewOrder(order) => {
            let lines = order.lines();
            format!(
                "new_order({}::smallint, {}::smallint, {}, {}::integer[], {}::smallint[], {}::smallint[])",
                order.w_id,
                order.d_id,
                order.c_id,
                list(lines.iter().map(|line| line.i_id)),
                list(lines.iter().map(|line| line.supply_w_id)),
                list(lines.iter().map(|line| line.quantity)),
            )
        }
        Transaction::Payment(payment) => format!(
            "payment({}::smallint, {}::smallint, {}::smallint, {}::smallint, {}, {}.{:02})",
            payment.w_id,
            payment.d_id,
            payment.c_w_id,
            payment.c_d_id,
            customer(&payment.customer),
            payment.h_amount.0 / 100,
            payment.h_amount.0 % 100,
        ),
        Transaction::OrderStatus(status) => {
            let (w_id, d_id) = (status.w_id, status.d_id);
            format!("order_status({w_id}::smallint, {d_id}::smallint, {})", customer(&status.customer))
        }
        Transaction::Delivery(delivery) => {
            format!("delivery({}::smallint, {}::smallint)", delivery.w_id, delivery.o_carrier_id)
        }
        Transaction::StockLevel(level) => {
            let (w_id, d_id) = (level.w_id, level.d_id);
            format!("stock_level({w_id}::smallint, {d_id}::smallint, {}::smallint)", level.threshold)
        }
    }
}

/// What psql prints for a script, which goes on after errors.
fn psql(script: &str) -> String {
    let mut child = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let script = script.to_owned();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "psql: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn sorted<'a>(rows: impl Iterator<Item = &'a str>) -> Vec<String> {
    let trimmed = |row: &str| row.split('\t').map(str::trim_end).collect::<Vec<_>>().join("\t");
    let mut rows: Vec<String> = rows.map(trimmed).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn same_inputs_end_in_the_same_tables_as_in_postgresql() {
    if std::env::var_os("ALBIREO_TEST_POSTGRESQL").is_none() {
        eprintln!(
            "SKIPPED: PostgreSQL is asked by crates/plpgsql/tests/against_postgresql.py, as in .ci/run"
        );
        return;
    }
    let (env, hand) = Env::simulated(1);
    let target = loaded(&env);
    let mut script = format!("{BEGIN}SET search_path = albireo_tpcc;\n{SCHEMA}\n{PROCEDURES}\n");
    script.push_str("SET search_path = albireo_clock, pg_catalog, albireo_tpcc;\n");
    for table in Table::ALL {
        let rows = rows(&target, table);
        if !rows.is_empty() {
            write!(script, "COPY {} FROM STDIN;\n{}\n\\.\n", table.name(), rows.join("\n")).unwrap();
        }
    }
    let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, WAREHOUSES, &[1, 2], 11, 0);
    let mut outcomes = Vec::new();
    for _ in 0..TRANSACTIONS {
        hand.advance(Duration::from_micros(1_234));
        let transaction = inputs.next_transaction();
        let now = Value::Timestamp(env.clock.unix_us());
        writeln!(script, "SET albireo.now = '{now}+00';\nSELECT 'ok' FROM {};", call(&transaction)).unwrap();
        outcomes.push(target.stored().unwrap().run(&transaction).unwrap().is_some());
    }
    for table in Table::ALL {
        writeln!(script, "SELECT mark();\nCOPY {} TO STDOUT;", table.name()).unwrap();
    }
    script.push_str("DROP SCHEMA albireo_clock, albireo_tpcc CASCADE;\n");
    let printed = psql(&script);
    let mut parts = printed.split("table\n");
    let committed = parts.next().unwrap().lines().filter(|line| *line == "ok").count();
    assert_eq!(committed, outcomes.iter().filter(|committed| **committed).count(), "committed transactions");
    assert!(committed < TRANSACTIONS, "some roll back");
    let parts: Vec<&str> = parts.collect();
    assert_eq!(parts.len(), Table::ALL.len(), "tables shown");
    for (table, theirs) in Table::ALL.into_iter().zip(parts) {
        let ours = rows(&target, table);
        let (ours, theirs) = (sorted(ours.iter().map(String::as_str)), sorted(theirs.lines()));
        assert_eq!(ours.len(), theirs.len(), "rows of {}", table.name());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "a row of {}", table.name());
        }
    }
}
