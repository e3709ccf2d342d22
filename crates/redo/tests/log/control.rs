//! Logs held against their control files: what was durable and is not there is noticed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::{Disk, Env, MemoryDisk, SimulatedClock};
use albireo_redo::{CONTROL_NAME, Control, Controls, Fault, Log, ReadError, StartError, Step, Verdict};

use crate::support::{COPY, Call, DIRECTORY, JournalDisk, config, judge, put, read, reopen};

const SEGMENT_BYTES: u64 = 4096 + 1536;

fn segment(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:020}.log"))
}

fn control() -> PathBuf {
    Path::new(DIRECTORY).join(CONTROL_NAME)
}

/// A log in memory, of three segments with two frames, one and one.
fn written() -> (Env, SimulatedClock, MemoryDisk, Log) {
    let (env, hand) = Env::simulated(1);
    let memory = MemoryDisk::default();
    let env = Env { disk: Arc::new(memory.clone()), ..env };
    let (_, _, log) = reopen(&env, config(2, SEGMENT_BYTES));
    for text in ["one", "two", "three", "four"] {
        put(&log, Some(1), text.as_bytes());
        put(&log, None, &text.as_bytes().repeat(if text == "three" { 200 } else { 1 }));
        assert!(matches!(log.step(), Step::Wrote { .. }));
    }
    (env, hand, memory, log)
}

fn copied(memory: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::default();
    copy.create_dir_all(Path::new(DIRECTORY)).unwrap();
    let paths = (1..4).map(segment).chain([control(), COPY.into()]);
    paths.for_each(|path| copy.put(&path, &memory.get(&path).unwrap()));
    copy
}

fn look(disk: &MemoryDisk) -> Result<Verdict, ReadError> {
    judge(&(Arc::new(disk.clone()) as Arc<dyn Disk>))
}

/// Each way in which one file can be damaged.
fn each_damage(memory: &MemoryDisk, path: &Path, mut then: impl FnMut(&str, &MemoryDisk)) {
    let bytes = memory.get(path).unwrap();
    // Of zeros, one in a few.
    for at in (0..bytes.len()).filter(|&at| bytes[at] != 0 || at % 16 == 5) {
        let disk = copied(memory);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        disk.put(path, &flipped);
        then(&format!("byte {at} of {} is flipped", path.display()), &disk);
    }
    for length in (0..bytes.len()).step_by(64) {
        let disk = copied(memory);
        disk.put(path, &bytes[..length]);
        then(&format!("{} is cut to {length} bytes", path.display()), &disk);
    }
    let disk = copied(memory);
    disk.remove_file(path).unwrap();
    then(&format!("{} is removed", path.display()), &disk);
}

#[test]
fn any_damage_to_one_file_of_a_log_that_was_closed_is_noticed() {
    let (_, _, memory, log) = written();
    log.close().unwrap();
    let Ok(Verdict::Complete(control)) = look(&memory) else { panic!("it was closed") };
    assert_eq!((control.sequence, control.ordinal, control.segment), (4, 8, 3));
    let frames = |disk: &MemoryDisk| read(&(Arc::new(disk.clone()) as Arc<dyn Disk>), 0).0;
    let all = frames(&memory);
    let (mut noticed, mut harmless) = (0, 0);
    for number in 1..4 {
        each_damage(&memory, &segment(number), |what, disk| match look(disk) {
            Err(ReadError::Corrupt(_)) | Ok(Verdict::Lost(_)) => noticed += 1,
            // Whoever wants the beginning sees that it is not there.
            Ok(Verdict::Complete(_)) if frames(disk)[0].0 > 1 => noticed += 1,
            // Behind the last frame of a segment that another one follows.
            Ok(Verdict::Complete(_)) if frames(disk) == all => harmless += 1,
            other => panic!("{what}: {other:?}"),
        });
    }
    assert!(noticed > 2_000 && harmless < 60, "{noticed} noticed, {harmless} harmless");
    for path in [self::control(), COPY.into()] {
        each_damage(&memory, &path, |what, disk| {
            assert_eq!(look(disk).unwrap(), Verdict::Complete(control), "{what}");
            let faults = Controls::read(disk, &[self::control(), COPY.into()]).faults();
            assert_eq!(faults.len(), 1, "{what}: {faults:?}");
            assert_eq!(faults[0].0, path, "{what}");
        });
    }
    let disk = copied(&memory);
    [self::control(), COPY.into()].iter().for_each(|path| disk.remove_file(path).unwrap());
    assert_eq!(look(&disk).unwrap(), Verdict::Unknown);
}

#[test]
fn log_that_was_not_closed_is_complete_up_to_its_last_mark() {
    let (env, _, memory, log) = written();
    let Ok(Verdict::Unclosed(before)) = look(&memory) else { panic!("it is open") };
    assert_eq!((before.sequence, before.segment), (0, 0), "nothing has been marked");
    assert!(log.mark());
    assert!(!log.mark(), "it says so already");
    put(&log, None, b"five");
    log.step();
    drop(log);
    let Ok(Verdict::Unclosed(marked)) = look(&memory) else { panic!("it was never closed") };
    assert_eq!((marked.sequence, marked.ordinal), (4, 8));
    let bytes = memory.get(segment(3)).unwrap();
    let cut = |frames: usize| {
        let disk = copied(&memory);
        disk.put(segment(3), &bytes[..4096 + 512 * frames]);
        look(&disk).unwrap()
    };
    assert_eq!((cut(2), cut(1)), (Verdict::Unclosed(marked), Verdict::Unclosed(marked)));
    assert_eq!(cut(0), Verdict::Lost(marked));
    let disk = copied(&memory);
    disk.remove_file(&segment(3)).unwrap();
    assert_eq!(look(&disk).unwrap(), Verdict::Lost(marked));
    // Closed after recovery, it is complete again.
    let (_, _, log) = reopen(&env, config(2, SEGMENT_BYTES));
    let Ok(Verdict::Unclosed(again)) = look(&memory) else { panic!("it is open") };
    assert_eq!(again.sequence, 5, "what recovery found is durable");
    assert!(again.generation > marked.generation);
    log.close().unwrap();
    let Ok(Verdict::Complete(closed)) = look(&memory) else { panic!("it was closed") };
    assert_eq!((closed.sequence, closed.ordinal), (5, 9));
}

#[test]
fn segment_that_was_begun_and_is_gone_is_noticed_without_a_frame_in_it() {
    let (_, _, memory, log) = written();
    log.close().unwrap();
    let control = Controls::read(&memory, &[control()]).newest().copied().unwrap();
    let begun = Control { segment: 4, is_closed: false, ..control };
    begun.write(&memory, &[self::control(), COPY.into()]).unwrap();
    assert_eq!(look(&memory).unwrap(), Verdict::Lost(begun));
}

#[test]
fn control_file_of_another_log_is_told() {
    let (_, _, memory, log) = written();
    log.close().unwrap();
    let mut other = Controls::read(&memory, &[control()]).newest().copied().unwrap();
    other.log_id += 1;
    other.write(&memory, &[COPY.into()]).unwrap();
    let Ok(Verdict::OtherLog { path, found, .. }) = look(&memory) else { panic!("it is of another") };
    assert_eq!((path, found), (COPY.into(), other.log_id));
}

#[test]
fn file_under_the_name_of_the_only_segment_that_is_none_is_refused_and_stays() {
    let memory = MemoryDisk::default();
    let text = b"Nov 24 08:20:58 host kernel: this is no redo log\n".repeat(200);
    memory.put(segment(1), &text);
    let Err(ReadError::Corrupt(corruption)) = look(&memory) else { panic!("it is no segment") };
    assert_eq!(corruption.fault, Fault::NoSegment);
    // A header of which only a part was written is none.
    for count in [0, 1, 7, 8, 60] {
        let (_, _, other, log) = written();
        drop(log);
        let mut bytes = other.get(segment(1)).unwrap();
        bytes[count..].fill(0);
        memory.put(segment(1), &bytes);
        assert_eq!(look(&memory).unwrap(), Verdict::Unknown, "{count} bytes");
    }
}

#[test]
fn log_does_not_start_without_control_files_unless_the_disk_is_full_and_then_no_frame_is_before_them() {
    for (kind, starts) in [(std::io::ErrorKind::StorageFull, true), (std::io::ErrorKind::Other, false)] {
        let disk = JournalDisk::default();
        let env = disk.env();
        let start = albireo_redo::LogStart::new(crate::support::LOG_ID);
        disk.fail(Call::Write, 0, kind);
        match Log::start(&env, config(1, 8192), start) {
            Ok(log) => {
                assert!(starts);
                put(&log, None, b"one");
                disk.heal();
                // The first segment is there before, and the control files must not be left out then.
                log.prepare();
                disk.fail(Call::Write, 0, kind);
                assert_eq!(log.step(), Step::Full);
                assert_eq!(read(&env.disk, 0).0.len(), 0);
                disk.heal();
                assert!(matches!(log.step(), Step::Wrote { .. }));
                assert!(matches!(judge(&env.disk).unwrap(), Verdict::Unclosed(_)));
            }
            Err(StartError::Io(failure)) => assert!(!starts, "{failure}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn mark_that_fails_is_written_by_the_next_and_the_log_goes_on() {
    let disk = JournalDisk::default();
    let env = disk.env();
    let (_, _, log) = reopen(&env, config(1, 8192));
    put(&log, None, b"one");
    log.step();
    disk.fail(Call::Sync, 0, std::io::ErrorKind::Other);
    assert!(!log.mark());
    disk.heal();
    assert!(log.check().is_ok());
    assert!(log.mark());
    let Ok(Verdict::Unclosed(control)) = judge(&env.disk) else { panic!("it is open") };
    assert_eq!(control.sequence, 1);
}

#[test]
fn log_that_runs_by_itself_writes_its_control_files_once_a_second_at_most_and_when_it_closes() {
    let (env, _) = Env::simulated(1);
    let disk = JournalDisk::default();
    // Its clock moves only while the log lingers, far less than a second.
    let env = Env { disk: Arc::new(disk.clone()), ..env };
    let (_, _, log) = reopen(&env, config(1, 1 << 20));
    albireo_env::scope(|scope| {
        albireo_env::spawn_scoped(scope, "log", || log.run()).unwrap();
        for _ in 0..200 {
            log.wait(put(&log, Some(0), b"text")).unwrap();
        }
        log.close().unwrap();
    });
    let is_mark = |operation: &&crate::support::Operation| matches!(operation, crate::support::Operation::Write(path, ..) if *path == control());
    let marks = disk.journal().iter().filter(is_mark).count();
    assert!(
        (2..=4).contains(&marks),
        "at the start, perhaps for the first frame and its segment, and at the end: {marks}"
    );
    let Ok(Verdict::Complete(control)) = judge(&env.disk) else { panic!("it was closed") };
    assert_eq!(control.sequence, log.durable());
}
