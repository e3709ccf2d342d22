//! Real threads on a real disk.

use std::path::PathBuf;
use std::sync::Arc;

use albireo_env::{Env, scope, spawn_scoped};
use albireo_redo::{Config, Header, Kind, Log, LogDestination, LogReader, LogStart, Ticket};
use albireo_testing::wait_until;

const RECORDS: u64 = 300;

/// A directory of its own that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let seed = Env::real().seeds.next_seed();
        Self(std::env::temp_dir().join(format!("albireo-redo-{name}-{seed:016x}")))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Env::real().disk.remove_dir_all(&self.0);
    }
}

/// Closes the log whatever happens, so that its thread ends.
struct Closing<'a>(&'a Log);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close().unwrap();
    }
}

fn append(log: &Log, lane: usize, number: u64) -> Ticket {
    let header = Header { kind: Kind::COMMAND, time_us: 5 };
    let encode = |out: &mut Vec<u8>| out.extend_from_slice(&number.to_le_bytes());
    match number % 50 {
        49 => log.append_crossing(header, |out| {
            encode(out);
            out.push(lane as u8);
        }),
        _ => log.append(lane, header, |out| {
            encode(out);
            out.push(lane as u8);
        }),
    }
    .unwrap()
}

#[test]
fn concurrent_appenders_find_all_they_were_told_is_durable() {
    let scratch = Scratch::new("threads");
    let env = Env::real();
    let lanes = 3;
    let target = LogDestination::Directory(scratch.0.clone());
    let config = Config { segment_bytes: 64 << 10, ..Config::new(target, lanes) };
    let log = Log::start(&env, config, LogStart::new(3)).unwrap();
    scope(|s| {
        let _closing = Closing(&log);
        spawn_scoped(s, "log", || log.run()).unwrap();
        let appenders: Vec<_> = (0..lanes)
            .map(|lane| {
                let log = &log;
                spawn_scoped(s, "appender", move || {
                    for number in 0..RECORDS {
                        let ticket = append(log, lane, number);
                        if number % 7 == 0 {
                            log.wait(ticket).unwrap();
                            assert!(log.is_durable(ticket));
                        }
                        if number % 100 == 0 {
                            log.seal();
                        }
                    }
                    log.wait(log.last_ticket(lane)).unwrap();
                })
                .unwrap()
            })
            .collect();
        appenders.into_iter().for_each(|appender| appender.join().unwrap());
        assert_eq!(log.pending_bytes(), 0);
    });
    let mut reader = LogReader::open(Arc::clone(&env.disk), &scratch.0, 0, None).unwrap();
    let mut next = vec![0u64; lanes];
    let mut ordinal = 1;
    while let Some(frame) = reader.next_frame().unwrap() {
        for record in frame.records() {
            assert_eq!(record.ordinal, ordinal);
            ordinal += 1;
            let (number, lane) = record.payload.split_at(8);
            let number = u64::from_le_bytes(number.try_into().unwrap());
            assert_eq!(number, next[usize::from(lane[0])], "order within a lane");
            next[usize::from(lane[0])] += 1;
        }
    }
    assert_eq!(next, vec![RECORDS; lanes]);
    let statistics = log.statistics();
    assert_eq!(statistics.records, RECORDS * lanes as u64);
    assert!(statistics.syncs >= statistics.frames && statistics.flush_ns.len() == statistics.frames);
}

#[test]
fn sleeping_log_is_woken_by_every_append_seal_and_close() {
    let scratch = Scratch::new("wake");
    let env = Env::real();
    let config = Config::new(LogDestination::Directory(scratch.0.clone()), 1);
    let log = Log::start(&env, Config { segment_bytes: 1 << 20, ..config }, LogStart::new(3)).unwrap();
    scope(|s| {
        let _closing = Closing(&log);
        spawn_scoped(s, "log", || log.run()).unwrap();
        for number in 0..200 {
            let ticket = append(&log, 0, number);
            // Would hang if the log slept through it.
            log.wait(ticket).unwrap();
            if number % 20 == 0 {
                wait_until("the log sleeps", || log.is_parked());
            }
        }
        let soon = env.clock.now() + 1_000_000;
        assert!(!log.wait_until(Ticket(1_000_000), soon).unwrap());
    });
}
