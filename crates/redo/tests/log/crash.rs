//! Crashes at every change of the disk, with the unsynced part of it there or not.

use std::sync::Arc;

use albireo_env::Env;
use albireo_testing::{Random, test};

use albireo_redo::Verdict;

use crate::support::{Frames, JournalDisk, Operation, config, controls, judge, put, read, reopen, texts};

const SEGMENT_BYTES: u64 = 4096 + 1536;

/// A log written through a journal, with a note of what it said to be durable; all its frames.
fn journal(seed: u64) -> (JournalDisk, Frames) {
    let disk = JournalDisk::default();
    let env = disk.env();
    let mut random = Random::new(seed);
    let (_, _, mut log) = reopen(&env, config(2, SEGMENT_BYTES));
    for _ in 0..25 {
        for _ in 0..random.below(4) {
            let lane = [Some(0), Some(1), None][random.below(3) as usize];
            let text = format!("{}", random.below(1_000)).repeat(1 + random.below(300) as usize);
            put(&log, lane, text.as_bytes());
        }
        match random.below(7) {
            0 => drop(log.prepare()),
            1 => drop(log.seal()),
            6 => drop(log.mark()),
            2 if random.below(4) == 0 => {
                log.close().unwrap();
                disk.note(Operation::Durable(log.durable()));
                (_, _, log) = reopen(&env, config(2, SEGMENT_BYTES));
            }
            _ => drop(log.step()),
        }
        disk.note(Operation::Durable(log.durable()));
    }
    log.close().unwrap();
    disk.note(Operation::Durable(log.durable()));
    let (frames, end) = read(&env.disk, 0);
    assert_eq!(end.unwrap().torn, None);
    (disk, frames)
}

#[test]
fn crash_at_any_change_keeps_every_acknowledged_frame_and_no_part_of_one() {
    let mut torn = 0;
    let test = test!();
    test.for_each_seed(0..6, |seed| {
        let (disk, frames) = journal(seed);
        let operations = disk.journal();
        let mut durable = 0;
        for until in 0..=operations.len() {
            if let Some(Operation::Durable(sequence)) = until.checked_sub(1).map(|last| &operations[last]) {
                durable = *sequence;
            }
            for tear in 0..4 {
                torn += usize::from(check_crash(&disk, until, tear, &frames, durable));
            }
        }
    });
    assert!(torn > 100 || !test.has_usual_seeds(), "{torn} torn tails: the test tears nothing");
}

/// Recovers after a crash and goes on; returns whether a torn tail was found.
fn check_crash(disk: &JournalDisk, until: usize, tear: u64, frames: &Frames, durable: u64) -> bool {
    let (env, _) = Env::simulated(1);
    let env = Env { disk: Arc::new(disk.crashed(until, tear)), ..env };
    let verdict = judge(&env.disk).unwrap();
    assert!(
        !matches!(verdict, Verdict::Lost(_) | Verdict::OtherLog { .. }),
        "crash at {until}, {tear}: {verdict:?}"
    );
    let controls = controls(&*env.disk);
    let faults = controls.faults();
    assert!(verdict == Verdict::Unknown || faults.is_empty(), "crash at {until}, {tear}: {faults:?}");
    let (found, end, log) = reopen(&env, config(2, SEGMENT_BYTES));
    // None says that the log was closed once there are frames behind it.
    for control in controls.copies.iter().filter_map(|(_, copy)| copy.as_ref().ok()).filter(|it| it.is_closed)
    {
        assert_eq!(control.sequence, found.len() as u64, "crash at {until}, {tear}: {control:?}");
    }
    assert_eq!(found[..], frames[..found.len()], "crash at {until}, {tear}");
    assert!(found.len() as u64 >= durable, "crash at {until}, {tear}: {} of {durable}", found.len());
    let ticket = put(&log, Some(1), b"after the crash");
    assert_eq!(ticket.0, found.len() as u64 + 1);
    log.step();
    drop(log);
    let (again, second) = read(&env.disk, 0);
    assert_eq!(second.unwrap().torn, None);
    assert_eq!(again[..found.len()], found[..]);
    assert_eq!(texts(&again).last().unwrap(), "after the crash");
    end.torn.is_some()
}
