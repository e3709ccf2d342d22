//! The screen for people.

use std::fmt::{self, Write as _};

use super::{LogReport, Oltp, QueryReport, Report};
use crate::config::Logging;
use crate::latency::Quantiles;
use crate::tpcc::input::Mix;

/// What HyPer's authors published for a mix, without redo log.
struct Published {
    alone: u64,
    mixed: u64,
    new_orders: Option<(u64, u64)>,
    query_ms: &'static str,
}

/// §5.4: all five transactions.
const PUBLISHED_SPEC: Published = Published {
    alone: 161_290,
    mixed: 144_928,
    new_orders: Some((73_548, 66_087)),
    query_ms: "26 as rows, 8 as columns",
};

/// §5.3.2: New-Order and Payment.
const PUBLISHED_TWO: Published =
    Published { alone: 181_488, mixed: 149_476, new_orders: None, query_ms: "29 as rows, 14 as columns" };

const NOTE: &str = "\
* published in 2010 (Kemper and Neumann, HyPer, sections 5.3 and 5.4) for 5 warehouses, no redo log,
  one snapshot, on two Xeon E5530 of 2.4 GHz. Another machine and another time: no comparison.
";

/// A number with commas between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of bytes in the unit that suits it.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

/// A duration with as many digits as it deserves.
pub(super) fn duration(number: f64) -> String {
    match number {
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => thousands(number.round() as u64),
    }
}

pub(super) fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// The whole screen, at most 100 columns wide.
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    transactions(&mut out, report);
    queries(&mut out, &report.queries);
    snapshots(&mut out, report);
    memory(&mut out, report);
    log(&mut out, &report.log);
    consistency(&mut out, report);
    ending(&mut out, report);
    out.push('\n');
    out.push_str(NOTE);
    out
}

pub(super) fn line(out: &mut String, text: fmt::Arguments<'_>) {
    writeln!(out, "{}", text.to_string().trim_end()).expect("a String takes everything");
}

/// How the run ended, if not as it should.
pub(super) fn ending(out: &mut String, report: &Report) {
    if report.interrupted {
        line(out, format_args!("interrupted: the figures are of the time until then"));
    }
    if let Some(error) = &report.error {
        line(out, format_args!("FAILED: {error}"));
    }
}

/// A count and what is counted.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn head(out: &mut String, report: &Report) {
    let Report { benchmark, warehouses, partitions, layout, mix, procedures, seed, .. } = report;
    let warehouses = counted(*warehouses as u64, "warehouse");
    let partitions = counted(u64::from(*partitions), "partition");
    line(
        out,
        format_args!(
            "{benchmark}: {warehouses}, {partitions}, layout {layout}, mix {mix}, {procedures} procedures, \
             seed {seed}"
        ),
    );
    let rows = thousands(report.rows_loaded);
    line(out, format_args!("loaded {rows} rows in {:.1} s", report.load_seconds));
    out.push('\n');
}

/// One row for each figure, one column for each phase.
fn transactions(out: &mut String, report: &Report) {
    let published = match report.mix {
        Mix::Spec => PUBLISHED_SPEC,
        Mix::Two => PUBLISHED_TWO,
    };
    let (alone, mixed) = (report.oltp_alone.as_ref(), report.oltp_mixed.as_ref());
    line(
        out,
        format_args!(
            "{:<22}{:>14}{:>16}{:>10}   HyPer* alone / with queries",
            "", "alone", "with queries", "kept"
        ),
    );
    let mut row = |name: &str, figure: &dyn Fn(&Oltp) -> String, kept: String, theirs: String| {
        let (alone, mixed) = (or_dash(alone, figure), or_dash(mixed, figure));
        line(out, format_args!("{name:<22}{alone:>14}{mixed:>16}{kept:>10}   {theirs}"));
    };
    let kept = match (alone, mixed) {
        (Some(a), Some(m)) if a.transactions_per_second > 0.0 => {
            format!("{:.1} %", 100.0 * m.transactions_per_second / a.transactions_per_second)
        }
        _ => String::new(),
    };
    let pair = |(alone, mixed)| format!("{} / {}", thousands(alone), thousands(mixed));
    let rate = |rate: f64| thousands(rate.round() as u64);
    row(
        "transactions/s",
        &|oltp| rate(oltp.transactions_per_second),
        kept,
        pair((published.alone, published.mixed)),
    );
    let turns = &|oltp: &Oltp| {
        let pick = |better: fn(f64, f64) -> f64| oltp.turns.iter().copied().reduce(better);
        let ends = pick(f64::min).zip(pick(f64::max));
        or_dash(ends, |(slowest, fastest)| format!("{:.0}-{:.0}k", slowest / 1e3, fastest / 1e3))
    };
    if [alone, mixed].into_iter().flatten().any(|oltp| oltp.turns.len() > 1) {
        row("  slowest-fastest turn", turns, String::new(), String::new());
    }
    let theirs = published.new_orders.map_or_else(String::new, pair);
    let cpu = &|oltp: &Oltp| rate(oltp.transactions_per_cpu_second);
    row("per CPU second", cpu, String::new(), String::new());
    row("new orders/s", &|oltp| rate(oltp.new_orders_per_second), String::new(), theirs);
    row("committed", &|oltp| thousands(oltp.committed), String::new(), String::new());
    row("rolled back", &|oltp| thousands(oltp.rolled_back), String::new(), String::new());
    let mut latency = |name: &str, quantile: fn(&Quantiles) -> f64| {
        let figure = |oltp: &Oltp| or_dash(oltp.latency_us.as_ref(), |q| duration(quantile(q)));
        row(name, &figure, String::new(), String::new());
    };
    latency("latency, us     p50", |q| q.p50);
    latency("                p99", |q| q.p99);
    latency("                p99.9", |q| q.p999);
    latency("                max", |q| q.max);
    out.push('\n');
    if report.queries.iter().any(|query| query.name == "top10") {
        line(out, format_args!("HyPer* needs for top10: {} ms", published.query_ms));
    }
}

/// Two columns of queries when there are many.
fn queries(out: &mut String, queries: &[QueryReport]) {
    if queries.is_empty() {
        return;
    }
    let columns = if queries.len() > 6 { 2 } else { 1 };
    let height = queries.len().div_ceil(columns);
    let title =
        format!("{:<6}{:>7}{:>11}{:>9}{:>7}{:>9}", "query", "runs", "median ms", "p99", "plan", "rows");
    line(out, format_args!("{}", vec![title; columns].join("  ")));
    for i in 0..height {
        let cells = queries[i..].iter().step_by(height).map(|query| {
            let time = |value| or_dash(value, duration);
            format!(
                "{:<6}{:>7}{:>11}{:>9}{:>7}{:>9}",
                query.name,
                thousands(query.runs),
                time(query.median_ms),
                time(query.p99_ms),
                time(query.planning_ms),
                or_dash(query.rows, thousands),
            )
        });
        line(out, format_args!("{}", cells.collect::<Vec<_>>().join("  ")));
    }
    out.push('\n');
}

fn snapshots(out: &mut String, report: &Report) {
    let snapshots = &report.snapshots;
    let pause = or_dash(snapshots.pause_us, |q| {
        format!("p50 {}, p99 {}, max {}", duration(q.p50), duration(q.p99), duration(q.max))
    });
    line(
        out,
        format_args!(
            "snapshots    {} taken, pause us {pause} (HyPer* 8,000 to 11,000)",
            thousands(snapshots.taken)
        ),
    );
    line(
        out,
        format_args!(
            "copies       {} blocks, {}",
            thousands(snapshots.blocks_copied),
            bytes(snapshots.bytes_copied)
        ),
    );
    if let Some(freshness) = report.freshness_ms {
        let (p50, max) = (duration(freshness.p50), duration(freshness.max));
        line(out, format_args!("freshness    answers are p50 {p50} ms old, at most {max}"));
    }
}

/// What the redo log did, if there was one.
fn log(out: &mut String, log: &LogReport) {
    if log.mode == Logging::Off {
        return;
    }
    let flush = or_dash(log.flush_us, |us| format!("{} us, p99 {}", duration(us.p50), duration(us.p99)));
    let (records, written) = (thousands(log.records), bytes(log.written_bytes));
    let _ = writeln!(
        out,
        "redo log, {}: {records} records of {} bytes, {written} in {} frames; write and sync p50 {flush}",
        log.mode,
        duration(log.bytes_per_record),
        thousands(log.frames),
    );
}

/// Memory at the end, the largest kinds first.
pub(super) fn memory(out: &mut String, report: &Report) {
    let mut kinds: Vec<_> = report.memory_bytes.iter().filter(|(_, count)| **count > 0).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (i, kinds) in kinds.chunks(4).enumerate() {
        let kinds = kinds.iter().map(|(kind, count)| format!("{kind} {}", bytes(**count)));
        let title = if i == 0 { "memory" } else { "" };
        line(out, format_args!("{title:<13}{}", kinds.collect::<Vec<_>>().join(", ")));
    }
}

pub(super) fn consistency(out: &mut String, report: &Report) {
    let numbers = |wanted: Option<bool>| {
        let found = (1..=12).filter(|&number| report.consistency.holds(number) == wanted);
        found.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
    };
    let (holds, violated, unchecked) = (numbers(Some(true)), numbers(Some(false)), numbers(None));
    let mut parts = Vec::new();
    for (conditions, what) in [(violated, "VIOLATED"), (unchecked, "not checked"), (holds, "hold")] {
        match conditions.as_str() {
            "" => {}
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12" => parts.push(format!("all 12 conditions {what}")),
            _ => parts.push(format!("conditions {conditions} {what}")),
        }
    }
    line(out, format_args!("consistency  {}", parts.join("; ")));
}
