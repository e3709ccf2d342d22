//! The plans of the 22 queries of the CH-benCHmark. What they find is held against SQLite in `albireo-bench`.

#[path = "support/ch.rs"]
mod ch;
mod support;

use albireo_olap::{OlapConfig, RunOptions};
use ch::Size;
use support::Fixture;

#[test]
fn queries_find_the_same_rows_whatever_the_number_of_threads() {
    let size = Size::TINY;
    let fixture = |threads| {
        let config = OlapConfig { threads, ..OlapConfig::default() };
        Fixture::with_config(ch::tables(size), config)
    };
    let (one, two) = (fixture(1), fixture(2));
    for (number, sql) in ch::queries(size) {
        let sorted = |f: &Fixture| {
            let mut rows = f.rows(&sql);
            rows.sort();
            rows
        };
        let expected = sorted(&one);
        assert!(!expected.is_empty(), "Q{number} finds nothing: useless as a test");
        assert_eq!(sorted(&two), expected, "Q{number}");
    }
}

#[test]
fn no_plan_has_a_cross_join() {
    let size = Size::TINY;
    let f = Fixture::new(ch::tables(size));
    for (number, sql) in ch::queries(size) {
        let prepared = f.prepare(&sql).unwrap();
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
        let prepared = f.prepare(&sql).unwrap();
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
        let prepared = f.prepare(&sql).unwrap();
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
