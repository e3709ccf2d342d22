//! The benchmark commands as a program reads them: arguments in, one JSON object out.

use std::process::{Command, Output};

use serde_json::Value;

fn albireo(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_albireo"));
    if arguments.starts_with("bench compaction") || arguments.starts_with("bench larger-than-memory") {
        // They see to it themselves what is frozen, and where it lies.
        command.env_remove("ALBIREO_FREEZE").env_remove("ALBIREO_EVICT");
    }
    command.args(arguments.split(' ')).output().expect("the program starts")
}

/// The object on standard output of a run that must succeed.
fn json(arguments: &str) -> Value {
    let output = albireo(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

fn assert_consistent(report: &Value) {
    for condition in 1..=12 {
        assert_eq!(report["consistency"][condition.to_string()], true, "condition {condition}");
    }
}

#[test]
fn bench_ch_prints_every_key_of_the_contract_and_is_consistent() {
    let report = json(
        "bench ch --small --warehouses 2 --partitions 2 --transactions 400 --query-streams 1 --queries 6,top10 \
         --layout column --mix spec --seed 3 --format json",
    );
    for key in ["warehouses", "partitions", "layout", "mix", "load_seconds"] {
        assert!(!report[key].is_null(), "{key} is missing");
    }
    for phase in ["oltp_alone", "oltp_mixed"] {
        for key in ["transactions_per_second", "new_orders_per_second", "committed", "rolled_back"] {
            assert!(report[phase][key].is_number(), "{phase}.{key} is missing");
        }
        for quantile in ["p50", "p99", "p999", "max"] {
            assert!(report[phase]["latency_us"][quantile].is_number(), "{phase}.latency_us.{quantile}");
        }
    }
    let queries = report["queries"].as_array().expect("queries is a list");
    let names: Vec<_> = queries.iter().map(|query| query["name"].as_str()).collect();
    assert_eq!(names, [Some("Q6"), Some("top10")]);
    for query in queries {
        for key in ["runs", "median_ms", "p99_ms", "planning_ms", "rows"] {
            assert!(query.get(key).is_some(), "{key} is missing in {query}");
        }
    }
    for key in ["taken", "blocks_copied", "bytes_copied"] {
        assert!(report["snapshots"][key].is_number(), "snapshots.{key} is missing");
    }
    for quantile in ["p50", "p99", "max"] {
        assert!(report["snapshots"]["pause_us"][quantile].is_number(), "snapshots.pause_us.{quantile}");
    }
    assert!(report.get("freshness_ms").is_some());
    assert!(report["memory_bytes"].as_object().is_some_and(|kinds| !kinds.is_empty()));
    assert_consistent(&report);
}

#[test]
fn bench_tpcc_runs_without_queries() {
    let report =
        json("bench tpcc --small --warehouses 1 --transactions 400 --mix two --layout row --format json");
    assert!(report["oltp_alone"]["committed"].as_u64() > Some(0));
    assert!(report["oltp_mixed"].is_null() && report["queries"] == Value::Array(Vec::new()));
    assert_consistent(&report);
}

#[test]
fn bench_snapshot_measures_four_rates_and_memory() {
    let report = json("bench snapshot --small --warehouses 1 --transactions 400 --format json");
    assert_eq!(report["rates"].as_array().map(Vec::len), Some(4));
    assert!(report["memory"]["overhead_percent"].is_number());
    assert_consistent(&report);
}

#[test]
fn bench_that_makes_no_sense_is_a_usage_error_in_words() {
    let output = albireo("bench tpcc --warehouses 1 --partitions 2");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("at least as many warehouses") && output.stdout.is_empty(), "{errors}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test looks at what the program leaves")]
fn bench_recovery_prints_all_figures_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = "bench recovery --small --warehouses 1 --transactions 400 --format json --data";
    let report = json(&format!("{line} {}", directory.path().display()));
    let figures = report["figures"].as_array().expect("figures is a list");
    assert_eq!(figures.len(), 8);
    for figure in figures {
        assert!(figure["value"].as_f64().is_some_and(f64::is_finite), "{figure}");
    }
    let bytes = figures.iter().find(|figure| figure["unit"] == "bytes").expect("one is in bytes");
    assert!(bytes["value"].as_f64().is_some_and(|bytes| bytes < 120.0), "{bytes}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0, "nothing is left");
}

/// Every figure of `shows` has the form that programs rely on.
fn assert_shown(report: &Value, count: usize) {
    let shows = report["shows"].as_array().expect("shows is a list");
    assert_eq!(shows.len(), count, "{shows:?}");
    for shown in shows {
        assert!(shown["what"].is_string() && shown["unit"].is_string() && shown["holds"].is_boolean());
        for key in ["value", "at_least", "aim"] {
            assert!(shown[key].is_number(), "{key} is missing in {shown}");
        }
    }
}

#[test]
fn bench_crossing_loses_no_cent_and_prints_every_load() {
    let report = json("bench crossing --milliseconds 10 --format json");
    assert!(report["spared"]["beside"].as_f64().is_some_and(|per_second| per_second > 0.0));
    assert_eq!(report["loads"].as_array().map(Vec::len), Some(5));
    assert_shown(&report, 1);
}

#[test]
fn bench_stall_runs_every_statement_beside_point_updates() {
    let report = json("bench stall --rows 2000 --milliseconds 10 --format json");
    assert_eq!(report["beside"].as_array().map(Vec::len), Some(10));
    assert_shown(&report, 20);
}

#[test]
fn bench_versions_measures_every_query_every_way() {
    let report = json("bench versions --rows 20000 --transactions 500 --format json");
    assert_eq!(report["latencies"].as_array().map(Vec::len), Some(7));
    assert_eq!(report["throughput"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["scans"].as_array().map(Vec::len), Some(6));
    assert_shown(&report, 2);
}

#[test]
fn bench_compaction_asks_frozen_rows_what_it_asks_hot_ones() {
    let report = json("bench compaction --small --warehouses 2 --seconds 1 --turns 2 --format json");
    assert_eq!(report["queries"].as_array().map(Vec::len), Some(22));
    assert_eq!(report["memory"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["columns"].as_array().map(Vec::len), Some(14));
    assert_eq!(report["scans"].as_array().map(Vec::len), Some(3));
    // On a slow machine few rows come in a second, and nothing is cold.
    let cold = report["loss"]["cold"]["seconds"].as_array().map_or(0, Vec::len);
    assert_shown(&report, 9 + usize::from(cold > 0));
    assert_eq!(report["sizes"], "few");
    assert!(report["order_lines"].as_u64().is_some_and(|lines| lines > 0));
    for shown in report["shows"].as_array().expect("a list") {
        assert!(shown["scale"].as_str().is_some_and(|scale| !scale.is_empty()), "{shown}");
    }
    assert_eq!(report["compared"]["entries"].as_u64(), Some(400_000));
    let all = &report["loss"]["all"];
    assert_eq!(all["seconds"].as_array().map(Vec::len), Some(2));
    assert_eq!(all["order_lines"].as_array().map(Vec::len), Some(2));
    let observed = &report["observers"];
    assert_eq!(observed["transaction_ns"]["frozen"].as_array().map(Vec::len), Some(8));
    assert_eq!(observed["reads_ms"]["frozen"].as_array().map(Vec::len), Some(8));
    let ways = report["compared"]["ways"].as_array().expect("a list");
    assert_eq!(ways.len(), 8);
    for (at, way) in ways.iter().enumerate() {
        // Kernels differ in what they have and permit. Nobody is asked by the first three.
        assert!(way["refused"].is_string() || way["reads_ms"].as_array().map(Vec::len) == Some(2), "{way}");
        assert!(at > 2 || way["refused"].is_null(), "{way}");
        assert_eq!(way["is_default"], at == 1, "{way}");
    }
    assert!(report["archives"]["second_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!(report["instant"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(2));
    let sequences = report["sequences"].as_array().expect("a list");
    assert_eq!(sequences.len(), 2);
    // As many rows move out of a chunk that cools as an eighth of its slots, no more.
    for (updated, lines, move_all) in [(&sequences[0], 12_000, false), (&sequences[1], 1_200, true)] {
        assert_eq!(updated["lines"].as_u64(), Some(lines));
        assert_eq!(updated["frozen_moved"].as_u64(), Some(lines));
        assert_eq!(updated["cooling_moved"].as_u64() == Some(lines), move_all, "{updated}");
        for times in ["hot_ns", "cooling_ns", "frozen_ns"] {
            assert_eq!(updated[times].as_array().map(Vec::len), Some(2), "{times}");
        }
    }
    for (compressed, runs) in [(0_usize, 10), (1, 50)] {
        let compressed = &report["instant"][compressed];
        assert!(compressed["added"].as_u64().is_some_and(|texts| texts > 0), "{compressed}");
        assert_eq!(compressed["insert_ms"]["frozen"].as_array().map(Vec::len), Some(2));
        assert_eq!(compressed["freeze_ms"].as_array().map(Vec::len), Some(2));
        let sums = report["runs"].as_array().and_then(|all| all.iter().find(|sums| sums["length"] == runs));
        let sums = sums.expect("runs of this length");
        assert_eq!(sums["query_ms"]["frozen"].as_array().map(Vec::len), Some(8));
        for form in ["plain", "positions", "lengths"] {
            for times in ["sums_ms", "accesses_ns"] {
                assert_eq!(sums[times][form].as_array().map(Vec::len), Some(2), "{times}, {form}");
            }
        }
    }
    let line = "bench compaction --small --warehouses 1 --turns 1 --only SELECT";
    assert_shown(&json(&format!("{line} --format json")), 1);
    // A reader sees of how much it was measured.
    let table = albireo(line);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(
        table.lines().any(|line| line.contains("point SELECT") && line.contains("M order lines")),
        "{table}"
    );
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test looks at what the program leaves")]
fn bench_larger_than_memory_fetches_and_queries_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = "bench larger-than-memory --small --warehouses 1 --turns 1 --megabytes 16 --format json";
    for (only, count) in [("fetches", 1), ("queries", 1), ("tenfold", 0)] {
        let report = json(&format!("{line} --only {only} --directory {}", directory.path().display()));
        assert_shown(&report, count);
        match only {
            "fetches" => assert_eq!(report["fetches"]["fetches"].as_u64(), Some(12)),
            "tenfold" => {
                let runs = report["tenfold"].as_array().expect("a list");
                assert_eq!(runs.len(), 2);
                assert!(
                    runs.iter().all(|run| run["parts"].as_array().is_some_and(|parts| parts.len() == 10))
                );
            }
            _ => assert_eq!(report["queries"]["queries"].as_array().map(Vec::len), Some(2)),
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0, "nothing is left");
}

#[test]
fn bench_open_measures_procedures_beside_open_transactions() {
    let report = json("bench open --small --warehouses 1 --turns 2 --milliseconds 30 --format json");
    for key in ["alone", "beside_idle", "beside_writing"] {
        assert_eq!(report[key].as_array().map(Vec::len), Some(2), "{key}");
    }
    assert_shown(&report, 1);
}

#[test]
fn bench_tpcc_runs_statement_by_statement() {
    let report =
        json("bench tpcc --small --warehouses 1 --seconds 1 --transactions interactive --format json");
    assert!(report["oltp_alone"]["committed"].as_u64().is_some_and(|committed| committed > 0));
    assert_consistent(&report);
    let output = albireo("bench tpcc --small --transactions many");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interactive"));
}
