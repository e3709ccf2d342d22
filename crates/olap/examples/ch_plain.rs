//! The 22 CH queries on one thread: this engine against plain DataFusion over the same batches.
//!
//! `cargo run --release -p albireo-olap --example ch_plain -- [warehouses] [runs] [query,...]`

#[path = "../tests/support/ch.rs"]
mod ch;
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use albireo_olap::{OlapConfig, RunOptions};
use ch::Size;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use support::{Fixture, parse};

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    let clock = albireo_env::Clock::real();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: i32| arguments.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (size, runs) = (Size::full(number(0, 5)), number(1, 5));
    let only: Option<Vec<u32>> =
        arguments.get(2).map(|list| list.split(',').filter_map(|q| q.parse().ok()).collect());
    let tables = ch::tables(size);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(16_384);
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let plain = SessionContext::new_with_config(config);
    for (relation, batches) in &tables {
        let table = MemTable::try_new(relation.arrow_schema(), vec![batches.clone()]).unwrap();
        plain.register_table(relation.name.as_str(), Arc::new(table)).unwrap();
    }
    let fixture = Fixture::with_config(tables, OlapConfig { threads: 1, ..Default::default() });
    println!("query     plain   albireo  planning   ratio  rows  peak MiB");
    let (mut logs, mut count) = (0.0, 0);
    for (query, sql) in ch::queries(size) {
        if only.as_ref().is_some_and(|only| !only.contains(&query)) {
            continue;
        }
        let prepared = fixture.olap.prepare(&fixture.relations(), parse(&sql)).unwrap();
        let (mut ours, mut theirs, mut planning) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rows, mut peak) = (0, 0);
        for _ in 0..runs {
            let begin = clock.now();
            runtime.block_on(async { plain.sql(&sql).await.unwrap().collect().await.unwrap() });
            theirs.push(Duration::from_nanos(clock.now() - begin));
            let begin = clock.now();
            let output = fixture
                .olap
                .run(&prepared, &[], &fixture.snapshot(), RunOptions::default())
                .unwrap_or_else(|e| {
                    let text =
                        fixture.olap.explain(&prepared, &[], &fixture.snapshot(), RunOptions::default());
                    panic!("Q{query}: {e}\n{}", text.unwrap())
                });
            ours.push(Duration::from_nanos(clock.now() - begin));
            planning.push(output.planning);
            (rows, peak) = (output.rows(), output.peak_memory_bytes >> 20);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        logs += (theirs / ours).ln();
        count += 1;
        println!(
            "Q{query:<4} {theirs:9.2} {ours:9.2} {:9.2} {:7.2} {rows:5} {peak:5}",
            median(planning),
            theirs / ours
        );
        if std::env::var_os("SHOW_PLANS").is_some() {
            let text =
                fixture.olap.explain_analyze(&prepared, &[], &fixture.snapshot(), RunOptions::default());
            println!("{}", text.unwrap());
        }
    }
    println!("geometric mean of plain / albireo: {:.2}", (logs / f64::from(count.max(1))).exp());
}
