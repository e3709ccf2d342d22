use super::table::thousands;
use super::*;

fn oltp(transactions_per_second: f64) -> Oltp {
    Oltp {
        seconds: 10.0,
        transactions_per_second,
        transactions_per_cpu_second: transactions_per_second * 1.25,
        new_orders_per_second: transactions_per_second * 0.45,
        turns: vec![transactions_per_second * 0.75, transactions_per_second * 1.25],
        committed: 4_500_000,
        rolled_back: 20_123,
        latency_us: Some(Quantiles { p50: 1.9, p99: 8.25, p999: 31.0, max: 1_234.5 }),
    }
}

fn report() -> Report {
    let query = |name: &str, runs: u64| QueryReport {
        name: name.to_owned(),
        runs,
        median_ms: (runs > 0).then_some(11.2),
        p99_ms: (runs > 0).then_some(19.0),
        planning_ms: (runs > 0).then_some(0.9),
        rows: (runs > 0).then_some(15),
    };
    Report {
        benchmark: "CH-benCHmark".into(),
        warehouses: 5,
        partitions: 1,
        layout: Layout::Groups,
        mix: Mix::Spec,
        procedures: Procedures::PlPgSql,
        log: LogReport { mode: Logging::Group, in_flight: 64, frames: 1_000, ..LogReport::default() },
        seed: 1,
        query_streams: 1,
        load_seconds: 3.21,
        rows_loaded: 2_600_000,
        oltp_alone: Some(oltp(450_000.0)),
        oltp_mixed: Some(oltp(441_000.0)),
        queries: std::iter::once(query("top10", 0))
            .chain((1..=22).map(|i| query(&format!("Q{i}"), i)))
            .collect(),
        snapshots: Snapshots {
            taken: 900,
            pause_us: None,
            blocks_copied: 12_345,
            bytes_copied: 3_000_000_000,
        },
        freshness_ms: Some(Quantiles { p50: 11.0, p99: 40.0, p999: 41.0, max: 44.0 }),
        consistency: Consistency { under_load: [Some(0); 12], at_end: [Some(0); 12] },
        memory_bytes: BTreeMap::from([("tables".into(), 700_000_000), ("indexes".into(), 150_000_000)]),
        interrupted: false,
        error: None,
    }
}

#[test]
fn json_has_every_key_of_the_contract() {
    let json: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
    for key in [
        "/warehouses",
        "/partitions",
        "/layout",
        "/mix",
        "/procedures",
        "/load_seconds",
        "/oltp_alone/transactions_per_second",
        "/oltp_alone/new_orders_per_second",
        "/oltp_mixed/committed",
        "/oltp_mixed/rolled_back",
        "/oltp_mixed/latency_us/p50",
        "/oltp_mixed/latency_us/p99",
        "/oltp_mixed/latency_us/p999",
        "/oltp_mixed/latency_us/max",
        "/queries/1/name",
        "/queries/1/runs",
        "/queries/1/median_ms",
        "/queries/1/p99_ms",
        "/queries/1/planning_ms",
        "/queries/1/rows",
        "/snapshots/taken",
        "/snapshots/pause_us",
        "/snapshots/blocks_copied",
        "/snapshots/bytes_copied",
        "/freshness_ms/p50",
        "/freshness_ms/max",
        "/consistency/1",
        "/consistency/12",
        "/memory_bytes/tables",
    ] {
        assert!(json.pointer(key).is_some(), "{key} is missing");
    }
    assert_eq!(json["layout"], "groups");
    assert_eq!(json["procedures"], "plpgsql");
    assert_eq!(json["consistency"]["12"], true);
}

#[test]
fn violated_condition_fails_the_report_and_is_named() {
    let mut report = report();
    assert!(report.passed());
    report.consistency.under_load[2] = Some(7);
    report.consistency.at_end = [None; 12];
    report.consistency.under_load[11] = None;
    assert!(!report.passed());
    assert_eq!((report.consistency.holds(3), report.consistency.holds(12)), (Some(false), None));
    let table = report.table();
    assert!(table.contains("conditions 3 VIOLATED; conditions 12 not checked"), "{table}");
}

#[test]
fn table_of_a_full_run_fits_one_screen_and_names_the_other_machine() {
    let table = report().table();
    assert!(table.lines().count() <= 40, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for part in [
        "plpgsql procedures",
        "450,000",
        "98.0 %",
        "161,290 / 144,928",
        "26 as rows, 8 as columns",
        "8,000 to 11,000",
    ] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
    assert!(table.contains("Another machine") && table.contains("all 12 conditions hold"));
}

#[test]
fn table_of_an_interrupted_run_shows_what_there_is() {
    let report = Report {
        oltp_mixed: None,
        queries: Vec::new(),
        freshness_ms: None,
        interrupted: true,
        mix: Mix::Two,
        ..report()
    };
    let table = report.table();
    assert!(table.contains("interrupted") && table.contains("181,488 / 149,476"), "{table}");
    assert!(report.passed());
}

#[test]
fn thousands_are_separated() {
    assert_eq!(thousands(0), "0");
    assert_eq!(thousands(999), "999");
    assert_eq!(thousands(1_000), "1,000");
    assert_eq!(thousands(1_234_567), "1,234,567");
}
