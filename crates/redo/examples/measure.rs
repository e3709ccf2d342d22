//! What the log costs: `cargo run --release -p albireo-redo --example measure -- [DIRECTORY]`.
//!
//! Prints nanoseconds per append, records a second into nothing and into the directory (the system's
//! temporary one by default), and latencies of waiting in units of one write and sync of the same disk.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use albireo_env::{Env, scope, spawn_scoped};
use albireo_redo::{Config, Header, Kind, Log, LogDestination, LogStart, Step, Ticket};
use hdrhistogram::Histogram;

const PAYLOAD: [u8; 100] = [7; 100];
const RUN_NS: u64 = 2_000_000_000;

fn main() {
    let env = Env::real();
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("albireo-measure-{:016x}", env.seeds.next_seed()));
    let ns = append_alone(&env);
    println!("append of 100 bytes, alone: {ns:.1} ns");
    through_run(&env, "into nothing", LogDestination::Null);
    through_run(&env, "into the directory", LogDestination::Directory(directory.join("stream")));
    let unit = write_and_sync(&env, &directory);
    println!("one write of 512 bytes and sync: p50 {:.0} us, p99 {:.0} us", us(&unit, 0.5), us(&unit, 0.99));
    for waiters in [1, 4, 32] {
        let target = LogDestination::Directory(directory.join(format!("waiters-{waiters}")));
        let (waits, flushes) = waiting(&env, target, waiters);
        println!(
            "{waiters} waiting: p50 {:.0} us, p99 {:.0} us, {:.0} commits/s; flush p50 {:.0} us, p99 {:.0} us",
            us(&waits, 0.5),
            us(&waits, 0.99),
            waits.len() as f64 * 1e9 / RUN_NS as f64,
            us(&flushes, 0.5),
            us(&flushes, 0.99),
        );
    }
    env.disk.remove_dir_all(&directory).expect("the directory was made above");
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("a minute with three digits")
}

fn us(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1e3
}

fn start(env: &Env, target: LogDestination) -> Log {
    Log::start(env, Config::new(target, 4), LogStart::new(1)).expect("the log starts")
}

fn put(log: &Log, lane: usize, time_us: i64) -> Ticket {
    let header = Header { kind: Kind::COMMAND, time_us };
    log.append(lane, header, |out| out.extend_from_slice(&PAYLOAD)).expect("the log is open")
}

fn append_alone(env: &Env) -> f64 {
    let log = start(env, LogDestination::Null);
    let (mut spent, mut count) = (0, 0);
    while count < 4_000_000 {
        let begin = env.clock.now();
        for number in 0..500 {
            put(&log, 0, number);
        }
        spent += env.clock.now() - begin;
        count += 500;
        assert!(matches!(log.step(), Step::Wrote { records: 500, .. }));
    }
    spent as f64 / f64::from(count)
}

fn through_run(env: &Env, name: &str, target: LogDestination) {
    let log = start(env, target);
    let (mut count, begin) = (0u64, env.clock.now());
    scope(|s| {
        spawn_scoped(s, "log", || log.run()).expect("a thread");
        while count % 64 != 0 || env.clock.now() - begin < RUN_NS {
            if count % 64 == 0 {
                while log.pending_bytes() > 64 << 20 {
                    std::thread::yield_now();
                }
            }
            put(&log, 0, count as i64 / 3);
            count += 1;
        }
        log.close().expect("the log closes");
    });
    let seconds = (env.clock.now() - begin) as f64 / 1e9;
    let statistics = log.statistics();
    println!(
        "one appender {name}: {:.2} M records/s, {:.0} MB/s, {:.1} bytes a record, {:.0} records a frame, \
         flush p50 {:.0} us",
        count as f64 / seconds / 1e6,
        statistics.written_bytes as f64 / seconds / 1e6,
        statistics.written_bytes as f64 / count as f64,
        count as f64 / statistics.frames as f64,
        us(&statistics.flush_ns, 0.5),
    );
}

fn write_and_sync(env: &Env, directory: &Path) -> Histogram<u64> {
    env.disk.create_dir_all(directory).expect("a directory");
    let file = env.disk.open_placed(&directory.join("unit")).expect("a file");
    for megabyte in 0..4 {
        file.write_at(&vec![0; 1 << 20], megabyte << 20).expect("room");
    }
    file.sync().expect("a sync");
    let mut histogram = histogram();
    for number in 0..2_000 {
        let begin = env.clock.now();
        file.write_at(&[7; 512], number * 512).expect("a write");
        file.sync().expect("a sync");
        histogram.saturating_record(env.clock.now() - begin);
    }
    histogram
}

fn waiting(env: &Env, target: LogDestination, waiters: usize) -> (Histogram<u64>, Histogram<u64>) {
    let log = start(env, target);
    let mut all = histogram();
    scope(|s| {
        spawn_scoped(s, "log", || log.run()).expect("a thread");
        // The first segment is made meanwhile.
        env.clock.sleep(Duration::from_millis(300));
        let begin = env.clock.now();
        let threads: Vec<_> = (0..waiters)
            .map(|waiter| {
                let (log, clock) = (&log, &env.clock);
                let body = move || {
                    let mut waits = histogram();
                    while clock.now() - begin < RUN_NS {
                        let start = clock.now();
                        log.wait(put(log, waiter % 4, start as i64 / 1000)).expect("it is written");
                        waits.saturating_record(clock.now() - start);
                    }
                    waits
                };
                spawn_scoped(s, "waiter", body).expect("a thread")
            })
            .collect();
        for thread in threads {
            all.add(thread.join().expect("no panic")).expect("the same bounds");
        }
        log.close().expect("the log closes");
    });
    (all, log.statistics().flush_ns)
}
