//! The 22 queries of the CH-benCHmark against plain DataFusion over the same batches.

#[path = "support/ch.rs"]
mod ch;
mod support;

use std::sync::Arc;

use albireo_olap::{OlapConfig, RunOptions};
use ch::Size;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use support::{Fixture, parse, rows};

fn oracle(size: Size) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2);
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let context = SessionContext::new_with_config(config);
    for (relation, batches) in ch::tables(size) {
        let table = MemTable::try_new(relation.arrow_schema(), vec![batches]).unwrap();
        context.register_table(relation.name.as_str(), Arc::new(table)).unwrap();
    }
    context
}

/// Numbers compare with a tolerance: DataFusion's averages have six digits.
fn same(a: &str, b: &str) -> bool {
    a.split('|').zip(b.split('|')).all(|(x, y)| match (x.parse::<f64>(), y.parse::<f64>()) {
        (Ok(x), Ok(y)) => (x - y).abs() <= 1e-4 * x.abs().max(1.0),
        _ => x == y,
    })
}

#[test]
fn queries_agree_with_plain_datafusion() {
    let size = Size::TINY;
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let oracle = oracle(size);
    for threads in [1, 2] {
        let config = OlapConfig { threads, ..OlapConfig::default() };
        let f = Fixture::with_config(ch::tables(size), config);
        for (number, sql) in ch::queries(size) {
            let expected = runtime.block_on(async {
                let frame = oracle.sql(&sql).await.unwrap();
                rows(&frame.collect().await.unwrap())
            });
            let output = f.query(&sql).unwrap_or_else(|e| panic!("Q{number}: {e}"));
            let (mut actual, mut expected) = (rows(&output.batches), expected);
            actual.sort();
            expected.sort();
            assert_eq!(actual.len(), expected.len(), "Q{number} with {threads} threads");
            for (a, e) in actual.iter().zip(&expected) {
                assert!(same(a, e), "Q{number}: {a} instead of {e}");
            }
            assert!(!actual.is_empty(), "Q{number} finds nothing: useless as a test");
        }
    }
}

#[test]
fn no_plan_has_a_cross_join() {
    let size = Size::TINY;
    let f = Fixture::new(ch::tables(size));
    for (number, sql) in ch::queries(size) {
        let prepared = f.olap.prepare(&f.relations(), parse(&sql)).unwrap();
        let text = f.olap.explain(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
        for bad in ["CrossJoinExec", "NestedLoopJoinExec"] {
            assert!(!text.contains(bad), "Q{number}\n{text}");
        }
        if std::env::var_os("SHOW_PLANS").is_some() {
            println!("Q{number}\n{text}\n");
        }
    }
}

#[test]
fn order_of_from_clause_does_not_matter() {
    let size = Size::TINY;
    let f = Fixture::new(ch::tables(size));
    let condition = "where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id \
        and ol_o_id = o_id and ol_w_id = o_w_id and ol_d_id = o_d_id and n_name = 'Germany' \
        and ascii(substr(c_state, 1, 1)) = n_nationkey";
    let plan = |from: &str| {
        let sql = format!("select count(*) from {from} {condition}");
        let prepared = f.olap.prepare(&f.relations(), parse(&sql)).unwrap();
        let text = f.olap.explain(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
        let scans = text.split("Physical plan").nth(1).unwrap().lines();
        let scans = scans.filter(|l| l.contains("ScanExec"));
        scans.map(|l| l.trim().split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let one = plan("customer, orders, order_line, nation");
    assert_eq!(one, plan("order_line, nation, customer, orders"));
    assert_eq!(one, plan("nation, order_line, orders, customer"));
    assert_eq!(one.first().unwrap(), "ScanExec: nation");
}

/// Larger tables in TPC-C's proportions, so that the order of joins matters.
const PROPORTIONED: Size =
    Size { warehouses: 2, districts: 10, customers: 300, orders: 300, items: 2000, suppliers: 10_000 };

#[test]
fn no_join_of_a_query_makes_more_rows_than_its_largest_table() {
    let f = Fixture::new(ch::tables(PROPORTIONED));
    // Order lines, with room for a semi join's pairs.
    let most = 2 * 10 * 300 * 15;
    for (number, sql) in ch::queries(PROPORTIONED) {
        let prepared = f.olap.prepare(&f.relations(), parse(&sql)).unwrap();
        let text = f.olap.explain_analyze(&prepared, &[], &f.snapshot(), RunOptions::default()).unwrap();
        for line in text.lines().filter(|l| l.contains("JoinExec")) {
            let rows = line.split("output_rows=").nth(1).and_then(|r| {
                let digits: String = r.chars().take_while(|c| c.is_ascii_digit()).collect();
                digits.parse::<usize>().ok()
            });
            assert!(rows.is_some_and(|rows| rows <= most), "Q{number}: {line}\n{text}");
        }
    }
}
