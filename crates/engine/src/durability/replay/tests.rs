//! Order, barriers and errors of replay on several threads, over random logs.

use std::path::Path;
use std::sync::Arc;

use albireo_env::{Disk, Env, MemoryDisk};
use albireo_redo::{Config, Header, Kind, Log, LogDestination, LogStart};
use albireo_testing::test;
use parking_lot::Mutex;

use super::*;
use crate::durability::target::RecoveryTarget;

const LANES: u16 = 4;
const DIRECTORY: &str = "/log";

/// A record: its ordinal, its lane, whether it crosses.
type Done = (u64, u16, bool);

/// A log whose record n is in the lane that is said, or a crossing one, and has so many bytes. Every `seal`
/// records a frame ends.
fn log_of(records: &[(Option<u16>, usize)], seal: usize) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    let env = Env { disk: Arc::clone(&disk), ..Env::real() };
    let target = LogDestination::Directory(DIRECTORY.into());
    let config = Config { segment_bytes: 64 << 10, ..Config::new(target, usize::from(LANES)) };
    let log = Log::start(&env, config, LogStart::new(7)).unwrap();
    for (n, (lane, bytes)) in records.iter().enumerate() {
        let header = Header { kind: Kind::WRITE, time_us: 1_000 + n as i64 };
        let put = |out: &mut Vec<u8>| out.resize(out.len() + bytes, 1);
        match lane {
            Some(lane) => log.append(usize::from(*lane), header, put),
            None => log.append_crossing(header, put),
        }
        .unwrap();
        if n % seal == seal - 1 {
            log.seal();
            log.step();
        }
    }
    log.close().unwrap();
    disk
}

fn reader(disk: &Arc<dyn Disk>) -> LogReader {
    LogReader::open(Arc::clone(disk), Path::new(DIRECTORY), 0, None).unwrap()
}

/// What the log has: ordinal, lane, whether it crosses.
fn contents(disk: &Arc<dyn Disk>) -> Vec<Done> {
    let mut reader = reader(disk);
    let mut contents = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        contents.extend(frame.records().map(|record| (record.ordinal, record.lane, record.crossing)));
    }
    contents
}

/// Does a log again: the records in the order in which they were done, and how it ended.
fn replay(
    disk: &Arc<dyn Disk>,
    threads: usize,
    target: RecoveryTarget,
    failing: &[u64],
) -> (Vec<Done>, Result<Replayed, SqlError>) {
    let (clock, _) = albireo_env::Clock::simulated();
    let mut listener = |_| {};
    let reporter = Reporter::new(clock, &mut listener);
    let done = Mutex::new(Vec::new());
    let redo = |_: &Frame, record: &Record<'_>| {
        if failing.contains(&record.ordinal) {
            let text = format!("record {}", record.ordinal);
            return Err(SqlError::new(albireo_base::SqlState::DATA_CORRUPTED, text));
        }
        done.lock().push((record.ordinal, record.lane, record.crossing));
        Ok(2)
    };
    let replay = Replay { redo: &redo, lanes: LANES, threads, target, reporter: &reporter };
    let outcome = replay.run(reader(disk));
    (done.into_inner(), outcome)
}

/// Each lane in its order, and crossing records between what is before and behind them.
fn check_order(done: &[Done]) {
    let (mut lanes, mut all) = ([0; LANES as usize], 0);
    for &(ordinal, lane, crossing) in done {
        match crossing {
            true => {
                assert!(
                    lanes.iter().all(|last| *last < ordinal),
                    "{ordinal} came before one that is before it"
                );
                all = ordinal;
            }
            false => {
                assert!(ordinal > lanes[usize::from(lane)], "lane {lane} went back to {ordinal}");
                assert!(ordinal > all, "{ordinal} came after a crossing one that is behind it");
                lanes[usize::from(lane)] = ordinal;
            }
        }
    }
}

/// A small generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Xorshift: enough for tests.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Mostly small records of lanes, some long ones, few crossing ones.
    fn log(&mut self) -> Arc<dyn Disk> {
        let count = 1 + self.below(600);
        let records: Vec<_> = (0..count)
            .map(|_| {
                let lane = (self.below(20) > 0).then(|| self.below(u64::from(LANES)) as u16);
                let bytes = if self.below(10) > 0 { self.below(40) } else { 3_000 + self.below(17_000) };
                (lane, bytes as usize)
            })
            .collect();
        log_of(&records, 1 + self.below(200) as usize)
    }
}

const SEEDS: std::ops::Range<u64> = 1..60;

#[test]
fn threads_do_all_records_in_an_order_that_is_one_of_the_log() {
    test!().for_each_seed(SEEDS, |seed| {
        let disk = Random(seed).log();
        let all = contents(&disk);
        let (serial, outcome) = replay(&disk, 1, RecoveryTarget::End, &[]);
        assert_eq!(serial, all);
        assert_eq!(outcome.unwrap().rows, 2 * all.len() as u64);
        for threads in [2, 3, 4, 9] {
            let (mut done, outcome) = replay(&disk, threads, RecoveryTarget::End, &[]);
            check_order(&done);
            done.sort_unstable();
            assert_eq!(done, all);
            let outcome = outcome.unwrap();
            assert_eq!((outcome.records, outcome.rows), (all.len() as u64, 2 * all.len() as u64));
            assert_eq!(outcome.end.unwrap().next_ordinal, all.len() as u64 + 1);
        }
    });
}

#[test]
fn first_record_that_fails_is_told_whatever_the_threads_do() {
    test!().for_each_seed(SEEDS, |seed| {
        let mut random = Random(seed);
        let disk = random.log();
        let all = contents(&disk).len() as u64;
        let failing: Vec<u64> = (0..3).map(|_| 1 + random.below(all)).collect();
        let first = *failing.iter().min().unwrap();
        for threads in [1, 2, 4] {
            let (done, outcome) = replay(&disk, threads, RecoveryTarget::End, &failing);
            check_order(&done);
            assert_eq!(outcome.err().unwrap().message(), format!("record {first}"));
            let before = done.iter().filter(|(ordinal, ..)| *ordinal < first).count() as u64;
            assert_eq!(before, first - 1, "all before it are done");
        }
    });
}

#[test]
fn target_ends_replay_behind_its_record() {
    test!().for_each_seed(SEEDS, |seed| {
        let mut random = Random(seed);
        let disk = random.log();
        let all = contents(&disk);
        let at = random.below(all.len() as u64 + 3);
        for threads in [1, 4] {
            let (mut done, outcome) = replay(&disk, threads, RecoveryTarget::Record(at), &[]);
            check_order(&done);
            done.sort_unstable();
            let count = all.len().min(at as usize);
            assert_eq!(done, all[..count]);
            let outcome = outcome.unwrap();
            assert_eq!(outcome.last.map_or(0, |last| last.ordinal), count as u64);
            assert_eq!(outcome.end.is_some(), at >= all.len() as u64);
        }
    });
}

#[test]
fn damage_behind_a_record_that_fails_is_not_what_is_told() {
    let records: Vec<_> = (0..400).map(|n| (Some(n % LANES), 2_000)).collect();
    let disk = log_of(&records, 10);
    let memory = MemoryDisk::default();
    for path in disk.read_dir(Path::new(DIRECTORY)).unwrap() {
        let file = disk.open(&path).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        if path.ends_with("00000000000000000009.log") {
            bytes[5_000] ^= 1;
        }
        memory.put(&path, &bytes);
    }
    let disk: Arc<dyn Disk> = Arc::new(memory);
    for threads in [1, 4] {
        let (done, outcome) = replay(&disk, threads, RecoveryTarget::End, &[]);
        let damage = outcome.err().unwrap();
        assert!(damage.message().contains("the log is corrupt"), "{damage}");
        assert_eq!(done.len() % 10, 0, "all frames before the damage were done");
        let (_, outcome) = replay(&disk, threads, RecoveryTarget::End, &[done.len() as u64]);
        assert_eq!(outcome.err().unwrap().message(), format!("record {}", done.len()));
    }
}
